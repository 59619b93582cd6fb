/* Everything a request may know about its surroundings. Filled at the door; nothing below a door
 * reads the clock, the locale or the environment. */
#ifndef TV_REQUEST_H
#define TV_REQUEST_H

#include "base/buf.h"
#include "base/text.h"

typedef struct tv_request {
    tv_arena *a;
    tv_lang lang;
    bool colour;
    bool json;
    int width;    /* columns; 0: 80 */
    tv_str today; /* "2026-11-30"; empty: unknown (price ages are not judged then) */
    tv_str path;  /* folders with programs, parted by ':'; empty: none is looked for */
    tv_str home;  /* where ~/.config/trivet lies; empty: no overrides are read */
    tv_buf *out;
    tv_buf *err; /* warnings and help after a mistake */
    /* Progress of long work: done and total in [0, 1]; may be NULL. Returns false to cancel. */
    bool (*progress)(void *ctx, tv_text what, double done);
    void *progress_ctx;
    /* Seconds from any start, for bounded scans; NULL: scans are bounded by counts only. */
    double (*clock_s)(void *ctx);
    void *clock_ctx;
} tv_request;

#endif
