/* Chrome's trace event format, piece by piece: one event or one member of the outer object at a
 * time. A profile may be larger than memory, cut, or no valid JSON (names with bare quotes,
 * back-slashes of Windows paths): what can be read is delivered, the rest is counted. Knows no
 * profiler. */
#ifndef TV_EVENT_SCAN_H
#define TV_EVENT_SCAN_H

#include "codec/stream.h"

/* Views of the text as it stands there, escapes and all; valid until the next call. */
typedef struct tv_event {
    tv_str name, cat;
    tv_str pid, tid; /* without their quotes */
    tv_str args;     /* the whole object with its braces; empty: none */
    char ph;         /* 0: none */
    bool has_ts, has_dur;
    bool ts_fraction; /* the time stamp has decimals */
    int64_t ts_ns, dur_ns;
} tv_event;

typedef enum tv_scan_what {
    TV_SCAN_END,
    TV_SCAN_EVENT,
    TV_SCAN_MEMBER, /* of the outer object, but for the events themselves */
} tv_scan_what;

typedef struct tv_scanned {
    tv_scan_what what;
    tv_event event;
    tv_str key, value; /* of a member; value is JSON text */
} tv_scanned;

typedef struct tv_event_scan tv_event_scan;

tv_event_scan *tv_event_scan_open(tv_arena *a, tv_stream *stream);
const tv_err *tv_event_scan_next(tv_event_scan *s, tv_scanned *out) TV_CHECKED;

uint64_t tv_event_scan_damaged(const tv_event_scan *s); /* events with faults in their text */
bool tv_event_scan_is_cut(const tv_event_scan *s);      /* the text ended inside */
bool tv_event_scan_is_list(const tv_event_scan *s);     /* events without an outer object */

/* ---- for args: one member after the other ---- */

typedef struct tv_arg_scan {
    const char *p, *end;
} tv_arg_scan;

tv_arg_scan tv_args_of(tv_str args);
/* The next member; texts come without their quotes. False at the end. */
bool tv_args_next(tv_arg_scan *s, tv_str *key, tv_str *value);
/* Microseconds with or without decimals, as whole nanoseconds; false: no number. */
bool tv_read_stamp(tv_str s, int64_t *ns, bool *fraction);
/* A decimal number that ends where it ends; NaN: none. */
double tv_read_number(tv_str s);

/* ---- used by the readers' recognition ---- */

/* True where the text begins like trace events. */
bool tv_event_scan_is(tv_str head);

#endif
