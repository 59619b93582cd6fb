/* The utilisation tables and how a card finds its own: private to the predictor. A table says
 * what share of the ideal time (the roofline) measured kernels reached, over the operator's shape.
 * Knows nothing of graphs or jobs. */
#ifndef TV_EFFICIENCY_H
#define TV_EFFICIENCY_H

#include "desc/device.h"
#include "desc/dtype.h"

typedef enum tv_table_kind {
    TV_TABLE_GEMM,        /* log2 of m, n (times the batch), k */
    TV_TABLE_PREFILL,     /* log2 of the sequence, of sequences times heads */
    TV_TABLE_DECODE,      /* log2 of the cached tokens, of sequences times KV heads */
    TV_TABLE_CONV,        /* log2 of output positions, output channels, window times channels */
    TV_TABLE_ELEMENTWISE, /* log2 of bytes moved, and so the next three */
    TV_TABLE_NORM,
    TV_TABLE_SOFTMAX,
    TV_TABLE_EMBEDDING,
    TV_TABLE_KIND_COUNT,
} tv_table_kind;

/* Width of the multiplies; W: narrow weights, 16-bit activations. */
typedef enum tv_width {
    TV_WIDTH_32,
    TV_WIDTH_16,
    TV_WIDTH_8,
    TV_WIDTH_4,
    TV_WIDTH_W8,
    TV_WIDTH_W4,
} tv_width;

typedef struct tv_op_axis {
    short first, step, count;
} tv_op_axis;

typedef struct tv_op_table {
    tv_table_kind kind;
    tv_width width;
    short compute_capability; /* 0: arch says it */
    const char *arch;
    tv_op_axis axis[3];
    const short *log_util; /* 1000·ln(utilisation) */
    double spread;         /* relative, one sigma, of a shape that was not in the fit */
    double floor_s;        /* what the smallest kernels of the group took */
    double fed;            /* sustained share of the peak of the cards behind it */
    unsigned rows;         /* measurements behind it */
} tv_op_table;

extern const tv_op_table tv_op_tables[];
extern const size_t tv_op_table_count;

/* A share of the ideal with its pedigree. */
typedef struct tv_util {
    double u;       /* of the ideal time at the sustained rate ... */
    double floor_s; /* ... to which this is added */
    tv_tier tier;
    double spread;
} tv_util;

/* Utilisation of a kind at a shape (up to three coordinates, not yet logarithms). */
tv_util tv_efficiency(tv_table_kind kind, tv_width width, const tv_device *device,
                      const double shape[3]);

/* Share of a peak rate that the board's power budget can feed for long. */
double tv_efficiency_sustained(const tv_device *device, tv_width width, double peak_flops);

#endif
