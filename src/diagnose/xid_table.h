/* The catalogue of Xid codes. */
#ifndef TV_XID_TABLE_H
#define TV_XID_TABLE_H

#include "base/text.h"

typedef enum tv_xid_class {
    TV_XID_APPLICATION, /* the program first; the card where one place repeats */
    TV_XID_HARDWARE,
    TV_XID_DRIVER,
    TV_XID_NVLINK,
    TV_XID_INFO, /* nothing is lost */
} tv_xid_class;

typedef struct tv_xid_row {
    unsigned first, last; /* codes of engines of one kind share a row */
    const char *name;
    const char *meaning; /* msgid */
    const char *action;  /* msgid */
    const char *then;    /* msgid; NULL: nothing more is said */
    tv_xid_class kind;
    const char *rule; /* of its own; NULL: the general one tells it */
} tv_xid_row;

extern const tv_xid_row tv_xid_rows[]; /* by code */
extern const size_t tv_xid_n;

/* NULL: a code that is not known. */
const tv_xid_row *tv_xid_named(unsigned code);
/* A msgid. */
const char *tv_xid_class_name(tv_xid_class kind);

#endif
