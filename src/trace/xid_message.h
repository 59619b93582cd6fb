/* What one "NVRM: Xid" line says: where, which code, whose process, and the parts of its message.
 * What a code means is the catalogue's business (diagnose/xid_table). */
#ifndef TV_XID_MESSAGE_H
#define TV_XID_MESSAGE_H

#include "glean.h"

#include "desc/note.h"

typedef struct tv_xid_part {
    const char *key;
    bool is_number; /* NaN: asked and not known */
    double v;
    tv_str s; /* empty: asked and not known */
} tv_xid_part;

enum { TV_XID_PARTS = 24 };

typedef enum tv_pid_form { TV_PID_NONE, TV_PID_BARE, TV_PID_NAMED } tv_pid_form;

typedef struct tv_xid_message {
    unsigned code;
    tv_str pci;
    tv_pid_form pid_form;
    tv_xid_part parts[TV_XID_PARTS]; /* in the order of writing */
    size_t n;
    tv_str place; /* what tells one multiprocessor from another; empty: no such */
} tv_xid_message;

/* line: from "Xid" on. False: it is no Xid line. */
bool tv_xid_message_read(tv_str line, tv_xid_message *m);
/* "79 on Device=GPU-...", behind "XidCriticalError: Xid=": the UUID stands for the address. */
bool tv_xid_message_plugin(tv_str text, tv_xid_message *m);
/* The same event once more: burst of one fault are told as one with a count. */
bool tv_xid_message_same(const tv_xid_message *x, const tv_xid_message *y);
void tv_xid_message_note(tv_arena *a, const tv_xid_message *m, tv_note *event);

#endif
