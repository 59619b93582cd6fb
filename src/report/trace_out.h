/* What `trivet trace` shows: one summary a profile (command/trace_summary.h), and how several ranks
 * met. */
#ifndef TV_TRACE_OUT_H
#define TV_TRACE_OUT_H

#include "desc/finding.h"
#include "report.h"

typedef struct tv_trace_view {
    const tv_note *ranks; /* a list of summaries */
    const tv_note *slowest;
    const tv_diagnosis *diagnosis;
    bool skew; /* what follows is known */
    size_t collectives;
    double wait_share, wait_s;
    double late_rank, late_share;
    double peak_flop_per_s; /* of the card, for the arithmetic's number format; NaN: not known */
} tv_trace_view;

void tv_trace_text(const tv_request *req, tv_buf *b, const tv_trace_view *v);
/* The slowest rank's summary with `ranks`, `skew` and `findings` (docs/commands/trace.md). */
void tv_trace_json(const tv_request *req, tv_buf *b, const tv_trace_view *v);

#endif
