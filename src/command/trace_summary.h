/* One answer for every profiler: what a sighting of a trace, a table or a summary says of the step,
 * under the names of `trivet trace --json`. */
#ifndef TV_TRACE_SUMMARY_H
#define TV_TRACE_SUMMARY_H

#include "desc/finding.h"

/* Fills a map; false: the sighting is of another kind. top: kernels that are listed. */
bool tv_trace_summary(tv_arena *a, const tv_sighting *s, size_t top, tv_note *out);

#endif
