/* The catalogue: accelerators, groups of them, servers, links, disks and prices, from records that
 * are built in and from the user's own files (~/.config/trivet/NAME*.json, which win by slug).
 * Looks names up; ranks nothing. Parts are read when first asked for. Unknown stays unknown. */
#ifndef TV_CATALOG_H
#define TV_CATALOG_H

#include "base/json.h"
#include "desc/device.h"

typedef struct tv_catalog tv_catalog;

/* home: where .config/trivet lies; empty: only what is built in. The catalogue lives in a. */
const tv_err *tv_catalog_open(tv_arena *a, tv_str home, tv_catalog **catalog) TV_CHECKED;

typedef struct tv_device_list {
    const tv_device *v;
    size_t n;
} tv_device_list;

/* Every card, in the order of the files. */
const tv_err *tv_catalog_devices(tv_catalog *c, tv_device_list *devices) TV_CHECKED;

typedef struct tv_group_list {
    const tv_device_group *v;
    size_t n;
} tv_group_list;

const tv_err *tv_catalog_groups(tv_catalog *c, tv_group_list *groups) TV_CHECKED;

/* "entry", "advanced" or "datacenter" where the card is the reference of that class; else empty. */
const tv_err *tv_catalog_reference(tv_catalog *c, tv_str slug, tv_str *class) TV_CHECKED;

/* What a name stands for: one card, or several. Exactly one of the two is set. */
typedef struct tv_naming {
    const tv_device *device;
    const tv_device_group *group;
} tv_naming;

/* A slug, a slug without its vendor, a product string as nvidia-smi prints it, an alias with a
 * memory size, a PCI id ("10de:2684"), or part of a name. mem_bytes, when it is known (> 0),
 * separates cards that share a name. An unknown name is a usage error that suggests others. */
const tv_err *tv_catalog_find(tv_catalog *c, tv_str name, double mem_bytes,
                              tv_naming *found) TV_CHECKED;

/* The same where only one card will do: a name for several is a usage error that lists them. */
const tv_err *tv_catalog_device(tv_catalog *c, tv_str name, double mem_bytes,
                                const tv_device **device) TV_CHECKED;

/* The card or all members, one by one. */
size_t tv_naming_count(tv_naming f);
const tv_device *tv_naming_at(tv_naming f, size_t i);

typedef struct tv_server_list {
    const tv_server *v;
    size_t n;
} tv_server_list;

const tv_err *tv_catalog_servers(tv_catalog *c, tv_server_list *servers) TV_CHECKED;
const tv_err *tv_catalog_server(tv_catalog *c, tv_str slug, const tv_server **server) TV_CHECKED;
/* A server that holds n of this card: one that is a product before one that is a layout, the
 * smallest first. NULL when none is known. */
const tv_err *tv_catalog_server_for(tv_catalog *c, const tv_device *d, uint32_t n,
                                    const tv_server **server) TV_CHECKED;

/* How n cards of one machine talk; server may be NULL (then what the card allows: a switch board
 * for SXM cards, bridges for pairs, else PCIe). */
const tv_err *tv_catalog_link(tv_catalog *c, const tv_device *d, const tv_server *server,
                              uint32_t n, tv_link *link) TV_CHECKED;
/* The network between machines at this many bytes per second per machine. */
tv_link tv_catalog_network(tv_fact bytes_per_s);
/* One direction between host and card over its slot; reached, not nominal. */
const tv_err *tv_catalog_host_link(tv_catalog *c, const tv_device *d, tv_link *link) TV_CHECKED;
/* The wire of a slot: PCIe generation and lanes; unknown for others than those of the table. */
const tv_err *tv_catalog_pcie(tv_catalog *c, int gen, int lanes, tv_fact *wire_bytes_per_s,
                              tv_fact *reached_bytes_per_s) TV_CHECKED;

typedef struct tv_disk_list {
    const tv_disk *v;
    size_t n;
} tv_disk_list;

const tv_err *tv_catalog_disks(tv_catalog *c, tv_disk_list *disks) TV_CHECKED;
const tv_err *tv_catalog_disk(tv_catalog *c, tv_str id, const tv_disk **disk) TV_CHECKED;

typedef struct tv_offer_list {
    const tv_offer *v;
    size_t n;
} tv_offer_list;

/* Every offer (prices: a file of the user's own as well; empty: none). */
const tv_err *tv_catalog_offers(tv_catalog *c, tv_str prices, tv_offer_list *offers) TV_CHECKED;

/* Which offers count. */
typedef struct tv_offer_query {
    tv_str gpu;
    tv_str currency;  /* empty: any */
    tv_str today;     /* with it, offers older than max_age_days do not count */
    int max_age_days; /* 0: 365 */
    bool spot;        /* spot prices instead of on demand */
    uint32_t gpus;    /* at least so many cards in one instance; 0: any */
} tv_offer_query;

/* Price of one card for one hour in the offer's currency; 0: unknown (a part of a card, no spot
 * price). */
double tv_offer_gpu_per_h(const tv_offer *o, bool spot);
/* The cheapest per card and hour; at equal price the newest. NULL: none counts. Offers without a
 * date count only when today is not given. */
const tv_offer *tv_offer_cheapest(tv_offer_list offers, const tv_offer_query *q);
bool tv_offer_counts(const tv_offer *o, const tv_offer_query *q);
/* Days from date to today ("2026-07", "2026" are the first of them); negative when either is no
 * date. */
int tv_date_age_days(tv_str date, tv_str today);

/* Where a value is from. */
typedef struct tv_source_note {
    tv_str id, where, date, licence, grade, note;
} tv_source_note;

/* ok is false when the id is not defined. */
bool tv_catalog_source(const tv_catalog *c, tv_str id, tv_source_note *note);
size_t tv_catalog_source_count(const tv_catalog *c);

/* What a card's remark says: one of tv_device.notes in a language; empty when it is not defined (a
 * user's own remark is its own text). */
const tv_err *tv_catalog_remark(tv_catalog *c, tv_lang lang, tv_str id, tv_str *text) TV_CHECKED;

#endif
