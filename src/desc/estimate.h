/* What prediction says about one configuration: the memory ledger, the time, the balance. */
#ifndef TV_ESTIMATE_H
#define TV_ESTIMATE_H

#include "device.h"
#include "graph.h"
#include "job.h"

/* A line of the ledger that --explain prints: what, how much, by which formula. */
typedef struct tv_ledger_line {
    tv_term term;
    const char *name; /* msgid */
    double bytes;
    tv_text formula;     /* with its numbers filled in */
    const char *section; /* of docs/model.md */
    tv_origin origin;
} tv_ledger_line;

typedef enum tv_verdict { TV_VERDICT_UNKNOWN, TV_FITS, TV_TIGHT, TV_NO_FIT } tv_verdict;

/* The tensors of a pass alone, by their own sizes: no weights, no optimizer, no workspaces, no
 * rounding of an allocator. What a framework's counters of tensors show. */
typedef struct tv_tensor_bytes {
    double saved_bytes;                             /* at the end of forward */
    double forward_peak_bytes, backward_peak_bytes; /* gradients of the weights included */
} tv_tensor_bytes;

/* "optimizer states": a msgid. */
const char *tv_term_label(tv_term term);

typedef struct tv_memory {
    double
        term_bytes[TV_TERM_COUNT]; /* composition at the instant of the peak; sums to allocated */
    double allocated_peak_bytes;
    double fragmentation_bytes;
    double reserved_peak_bytes; /* allocated + fragmentation */
    double context_bytes;
    double nccl_bytes;
    double total_bytes; /* reserved + context + nccl */
    double low_bytes, high_bytes;
    tv_text peak_at; /* "backward of layers.31.mlp" */
    tv_verdict verdict;
    double capacity_bytes; /* what the card offers */
    double max_batch;      /* 0 unknown or none */
    double max_seq;
    double kv_tokens; /* tokens of cache that fit (serving) */
    double kv_bytes_per_token;
    double concurrent;      /* requests of prompt + gen tokens that fit */
    double load_peak_bytes; /* host or device peak while loading; 0 unknown */
    double saved_bytes;     /* kept for backward at the end of forward */
    double forward_peak_bytes, backward_peak_bytes, step_peak_bytes;
    tv_tensor_bytes tensors;
    const tv_ledger_line *lines;
    size_t n_lines;
} tv_memory;

typedef enum tv_bound {
    TV_BOUND_UNKNOWN,
    TV_BOUND_COMPUTE,
    TV_BOUND_MEMORY,
    TV_BOUND_LAUNCH,
    TV_BOUND_COMMUNICATION,
    TV_BOUND_STORAGE,
    TV_BOUND_DECODE,
    TV_BOUND_HOST_COPY,
    TV_BOUND_COUNT,
} tv_bound;

const char *tv_bound_name(tv_bound b); /* "memory-bandwidth": the interface's word */

typedef struct tv_time {
    tv_fact step_s;   /* training step, or one decode step */
    double compute_s; /* kernels of forward and backward */
    double issue_s;   /* host time to issue all kernels, most of it beside them */
    double launch_s;  /* time the device waits for the host to issue kernels */
    double optimizer_s;
    double comm_s;
    double comm_exposed_s;
    double data_s; /* the slowest of storage, decode, copy per step */
    double data_exposed_s;
    double storage_s, decode_s, copy_s; /* per step; 0 unknown */
    double math_bound_s;                /* share of compute_s in ops that the math units bound, */
    double memory_bound_s;              /* and in ops that memory bandwidth binds */
    double flop;           /* model FLOPs of a step on one card, recompute not counted */
    tv_fact samples_per_s; /* over all cards */
    tv_fact tokens_per_s;
    tv_fact mfu;
    tv_fact ttft_s, itl_s, prefill_tokens_per_s, decode_tokens_per_s, requests_per_s;
    double epoch_s, run_s; /* 0 unknown */
    double gemm_share;     /* of kernel time: GEMM, convolution and attention */
    double by_kind_s[TV_OP_KIND_COUNT];
} tv_time;

typedef struct tv_balance {
    tv_bound bottleneck;
    double share_compute, share_communication, share_data; /* of step_s, sum to 1 */
    double gain_if_removed; /* step time ratio minus one when the bottleneck costs nothing */
    const tv_text *advice;  /* cheapest first */
    size_t n_advice;
} tv_balance;

typedef enum tv_grade { TV_GRADE_UNKNOWN, TV_GRADE_GOOD, TV_GRADE_FAIR, TV_GRADE_POOR } tv_grade;

/* The grade of a share of kernel time in matrix work (GEMM, convolution, attention), predicted or
 * seen in a trace: above 0.6 the newest tensor cores pay, under 0.3 a consumer card gives more for
 * the money (R040). */
static inline tv_grade tv_grade_of_gemm_share(double share)
{
    return share > 0.6    ? TV_GRADE_GOOD
           : share >= 0.3 ? TV_GRADE_FAIR
           : share >= 0   ? TV_GRADE_POOR
                          : TV_GRADE_UNKNOWN;
}

typedef struct tv_grades {
    tv_grade vram, density, io;
    tv_text vram_text, density_text, io_text;
    double gemm_share;
} tv_grades;

typedef struct tv_hidden_cost {
    const char *id; /* "electricity", "cooling", ... */
    double amount;  /* per year */
    bool known;
    tv_str basis;
} tv_hidden_cost;

typedef struct tv_cost {
    tv_str currency;
    tv_fact per_hour; /* renting what the job uses */
    tv_fact spot_per_hour;
    tv_fact per_run;
    tv_fact buy; /* cards only */
    tv_fact energy_per_year;
    tv_fact total_year;
    const tv_hidden_cost *hidden;
    size_t n_hidden;
    tv_str price_date, price_source, offer;
    bool stale;           /* older than 90 days */
    const tv_text *notes; /* what the amounts leave out or could not be turned into */
    size_t n_notes;
} tv_cost;

/* What a configuration runs on. */
typedef struct tv_machine {
    const tv_device *device;
    uint32_t gpus; /* per node */
    uint32_t nodes;
    const tv_server *server; /* NULL: none named */
    tv_link intra;
    tv_link inter;
    const tv_disk *disk; /* NULL: unknown */
    double cpu_cores;    /* 0 unknown */
    double ram_bytes;
} tv_machine;

typedef struct tv_estimate {
    const struct tv_model *model;
    const tv_job *job;
    const tv_machine *machine;
    const tv_graph *graph;
    tv_policy policy;
    tv_memory memory;
    tv_time time;
    tv_balance balance;
    tv_grades grades;
    tv_cost cost;
} tv_estimate;

#endif
