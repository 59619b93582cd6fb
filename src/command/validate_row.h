/* One measured row of a training or an inference table as a job and a figure to compare with.
 * Knows the tables' columns; predicts nothing. */
#ifndef TV_VALIDATE_ROW_H
#define TV_VALIDATE_ROW_H

#include "desc/job.h"
#include "validate_rules.h"

typedef enum tv_rows_kind {
    TV_ROWS_NONE,
    TV_ROWS_TRAINING,
    TV_ROWS_INFERENCE,
    TV_ROWS_OPERATORS,
    TV_ROWS_COLLECTIVES,
} tv_rows_kind;

/* What kind of table the columns make. */
tv_rows_kind tv_rows_kind_of(const tv_csv *csv);

typedef enum tv_measure {
    TV_MEASURE_NONE,
    TV_MEASURE_ALLOCATED, /* bytes */
    TV_MEASURE_RESERVED,
    TV_MEASURE_TOTAL,
    TV_MEASURE_STEP,    /* seconds of a training step */
    TV_MEASURE_SAMPLES, /* per second, over all cards */
    TV_MEASURE_TOKENS,
    TV_MEASURE_TOKENS_PER_GPU,
    TV_MEASURE_MFU,
    TV_MEASURE_LATENCY,    /* seconds of a whole batch or request */
    TV_MEASURE_RATE,       /* requests or samples of an inference job per second */
    TV_MEASURE_ALL_TOKENS, /* prompt and generated tokens per second */
    TV_MEASURE_TTFT,
    TV_MEASURE_ITL,
    TV_MEASURE_PREFILL, /* tokens per second */
    TV_MEASURE_DECODE,
} tv_measure;

typedef struct tv_want {
    tv_measure measure;
    double value; /* SI units */
    bool sum;     /* memory of all cards together */
    tv_job job;
    tv_str gpu;
    uint32_t gpus; /* of one machine */
    uint32_t nodes;
    double weight_bytes; /* of one quantised weight; 0: the precision says it */
    bool iterations;     /* a rate that counts steps of the whole batch */
    bool assumed;        /* something of the job was taken from the table of defaults */
} tv_want;

/* Fills want; false: the row does not state enough, and *reason says what (a msgid, or the
 * tables' own words). */
bool tv_want_read(tv_arena *a, const tv_rules *rules, const tv_row *row, tv_rows_kind kind,
                  tv_want *want, tv_str *reason);

/* "fp32", "16-bit", "8-bit", "4-bit": the class of a precision, for groups. */
const char *tv_precision_class(tv_precision p);

#endif
