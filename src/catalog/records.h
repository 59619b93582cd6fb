/* What the parts of the catalogue share: its state and the records they are made from. */
#ifndef TV_RECORDS_H
#define TV_RECORDS_H

#include "catalog.h"

typedef struct tv_record {
    tv_str id;
    tv_str text;         /* built in: one line; read when it is asked for */
    const tv_json *json; /* an object; a user's keys have replaced the built-in ones; or NULL */
    tv_str file;         /* the user's file; empty when all of it is built in */
} tv_record;

typedef struct tv_records {
    tv_record *v;
    size_t n;
    size_t cap;
} tv_records;

typedef struct tv_name_key {
    tv_str key; /* sorted words, see lookup.c */
    const tv_device *device;
    const tv_device_group *group;
} tv_name_key;

typedef struct tv_name_keys {
    tv_name_key *v;
    size_t n;
    size_t cap;
} tv_name_keys;

struct tv_catalog {
    tv_arena *a;
    tv_str home;
    const tv_source_note *sources; /* sorted by id */
    size_t n_sources;
    const tv_json *street; /* rows of street_prices.json */
    tv_records records;    /* of accelerators, one for one with devices */
    tv_device *devices;    /* without a slug: not read yet */
    size_t n_devices;
    tv_device_group *groups; /* read with the first name that is no card's slug */
    size_t n_groups;
    const tv_json *references; /* comes with the groups */
    tv_name_keys keys;         /* filled by the first look-up that needs it */
    const tv_server *servers;
    size_t n_servers;
    const tv_disk *disks;
    size_t n_disks;
    const tv_json *links;
    tv_offer_list offers;
    tv_records remarks;
};

/* A text that is built in. */
typedef struct tv_blob {
    const char *start;
    const char *end;
} tv_blob;
#define TV_BLOB(name) extern const char tv_data_##name##_start[], tv_data_##name##_end[]
#define TV_BLOB_OF(name) ((tv_blob){tv_data_##name##_start, tv_data_##name##_end})

const tv_err *tv_blob_parse(tv_arena *a, const char *name, tv_blob blob,
                            const tv_json **doc) TV_CHECKED;

/* The list of that name, built in and from the user's NAME*.json; records with the same id are
 * merged, key by key. Built-in lines must begin with the id's key; tv_record_read reads them. */
const tv_err *tv_records_load(tv_catalog *c, const char *name, const char *list, const char *id,
                              tv_blob blob, tv_records *records) TV_CHECKED;
const tv_err *tv_record_read(tv_catalog *c, tv_record *r) TV_CHECKED;
/* Only the user's files, unmerged. */
const tv_err *tv_records_user(tv_catalog *c, const char *name, const char *list,
                              tv_records *records) TV_CHECKED;
/* The list of one document, appended. */
const tv_err *tv_records_append(tv_arena *a, const tv_json *doc, const char *list, tv_str file,
                                tv_records *records) TV_CHECKED;

/* "record {record}: {what}" at the place of j. */
const tv_err *tv_record_fail(const tv_catalog *c, const tv_record *r, const tv_json *j,
                             tv_text what);

/* A number of a record: [value, source...] or, in a user's file, a plain number. Absent or null is
 * unknown. Outside of [min, max] it is an error. */
const tv_err *tv_record_fact(const tv_catalog *c, const tv_record *r, const tv_json *j, double min,
                             double max, tv_fact *fact) TV_CHECKED;

const tv_err *tv_device_read(const tv_catalog *c, const tv_record *r, tv_device *d) TV_CHECKED;

/* Reads the i-th card, all cards, the groups: once each. */
const tv_err *tv_catalog_need(tv_catalog *c, size_t i) TV_CHECKED;
const tv_err *tv_catalog_need_all(tv_catalog *c) TV_CHECKED;
const tv_err *tv_catalog_need_groups(tv_catalog *c) TV_CHECKED;
/* The index of a slug among the cards; n_devices: none. */
size_t tv_catalog_index(const tv_catalog *c, tv_str slug);

#endif
