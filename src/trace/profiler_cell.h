/* Cells of profiler tables: times, shares, sizes, counts, and what stands there when there is no
 * value. Used by every reader of printed tables. */
#ifndef TV_PROFILER_CELL_H
#define TV_PROFILER_CELL_H

#include "glean.h"

typedef struct tv_cell {
    double v; /* NaN: "--", "NaN%", "N/A", "inf" (is_inf says so) */
    bool ok;  /* it is a cell of that sort at all */
    bool is_inf;
} tv_cell;

/* "12.3us", "-1.000us", "--", "0": seconds. A bare number is seconds x unit_s; unit_s 0: only a
 * bare 0 is understood. */
tv_cell tv_cell_time(tv_str s, double unit_s);
/* "88.64%", "NaN%", "0": a fraction. */
tv_cell tv_cell_frac(tv_str s);
/* "-3.75 Kb", "0 b", "1.2 Gb": bytes, powers of 1024. */
tv_cell tv_cell_bytes(tv_str s);
/* "100", "1,234", "--", "1.2e+03". */
tv_cell tv_cell_number(tv_str s);

/* True for a line of nothing but rules: "---", "===", "+---+". */
bool tv_is_rule(tv_str s);

#endif
