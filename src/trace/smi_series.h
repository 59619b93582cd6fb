/* One card's readings over time, kept as least, most and mean: logs of days fit. */
#ifndef TV_SMI_SERIES_H
#define TV_SMI_SERIES_H

#include "smi_parts.h"

typedef struct tv_smi_span {
    double sum, least, most, first, last;
    size_t n;
} tv_smi_span;

enum { TV_SMI_SPANS = 13 };

typedef struct tv_smi_series {
    tv_str key;    /* index, UUID or place on the bus, as it stands */
    tv_note *card; /* the facts of its first row */
    size_t rows;
    tv_smi_span spans[TV_SMI_SPANS];
} tv_smi_series;

/* NaN is not counted. */
void tv_smi_span_add(tv_smi_span *span, double v);
double tv_smi_span_mean(const tv_smi_span *span); /* NaN: nothing was counted */

/* One more reading of a fact; facts that nobody follows are passed over. */
void tv_smi_series_see(tv_smi_series *s, const char *fact, double v);
/* Writes "series" into the card's facts: samples, util_mean_frac, util_min_frac ... */
void tv_smi_series_put(tv_arena *a, const tv_smi_series *s);

#endif
