/* What the rows of a torch.profiler table add up to: loader, steps, launches, waits. */
#ifndef TV_KEY_AVERAGES_H
#define TV_KEY_AVERAGES_H

#include "desc/finding.h"

/* Adds the sums to facts that hold row0, row1, ...; gpu_rows: a name was seen that only a run with
 * a GPU has. */
void tv_key_averages_sum(tv_arena *a, tv_note *facts, tv_str device, bool gpu_rows);

#endif
