/* Sums over the rows of one card. */
#include "smi_series.h"

#include <math.h>
#include <string.h>

typedef struct span_row {
    const char *fact;
    const char *mean, *least, *most;
} span_row;

static const span_row rows[TV_SMI_SPANS] = {
    {"util_frac", "util_mean_frac", "util_min_frac", "util_max_frac"},
    {"mem_util_frac", "mem_util_mean_frac", "mem_util_min_frac", "mem_util_max_frac"},
    {"power_w", "power_mean_w", "power_min_w", "power_max_w"},
    {"temp_c", "temp_mean_c", "temp_min_c", "temp_max_c"},
    {"mem_temp_c", "mem_temp_mean_c", "mem_temp_min_c", "mem_temp_max_c"},
    {"sm_mhz", "sm_mean_mhz", "sm_min_mhz", "sm_max_mhz"},
    {"used_bytes", "used_mean_bytes", "used_min_bytes", "used_max_bytes"},
    {"rx_bytes_per_s", "rx_mean_bytes_per_s", "rx_min_bytes_per_s", "rx_max_bytes_per_s"},
    {"replays", NULL, NULL, "replays_max"},
    {"thermal_violation", NULL, NULL, "thermal_violation_max"},
    {"power_violation_frac", "power_violation_mean_frac", NULL, "power_violation_max_frac"},
    {"single_bit_volatile", NULL, NULL, "single_bit_volatile_max"},
    {"double_bit_volatile", NULL, NULL, "double_bit_volatile_max"},
};

void tv_smi_span_add(tv_smi_span *span, double v)
{
    if (isnan(v))
        return;
    if (!span->n) {
        span->least = span->most = span->first = v;
    } else {
        span->least = v < span->least ? v : span->least;
        span->most = v > span->most ? v : span->most;
    }
    span->last = v;
    span->sum += v;
    span->n++;
}

double tv_smi_span_mean(const tv_smi_span *span)
{
    return span->n ? span->sum / (double)span->n : (double)NAN;
}

void tv_smi_series_see(tv_smi_series *s, const char *fact, double v)
{
    for (size_t i = 0; i < TV_SMI_SPANS; i++)
        if (strcmp(rows[i].fact, fact) == 0) {
            tv_smi_span_add(&s->spans[i], v);
            return;
        }
}

void tv_smi_series_put(tv_arena *a, const tv_smi_series *s)
{
    if (s->rows < 2)
        return;
    tv_note *in = tv_note_map(a, s->card, "series");
    (void)tv_note_num(a, in, "samples", (double)s->rows);
    for (size_t i = 0; i < TV_SMI_SPANS; i++) {
        const tv_smi_span *span = &s->spans[i];
        if (!span->n)
            continue;
        if (rows[i].mean)
            (void)tv_note_num(a, in, rows[i].mean, tv_smi_span_mean(span));
        if (rows[i].least)
            (void)tv_note_num(a, in, rows[i].least, span->least);
        (void)tv_note_num(a, in, rows[i].most, span->most);
        if (strcmp(rows[i].fact, "replays") == 0)
            (void)tv_note_num(a, in, "replays_gained", span->last - span->first);
    }
}
