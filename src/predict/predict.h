/* Op list + card + job -> memory, time, balance. Reads no file, no clock, no environment, and
 * never a model's name. A case is resolved once and then judged by each part. */
#ifndef TV_PREDICT_H
#define TV_PREDICT_H

#include "desc/dataset.h"
#include "desc/estimate.h"
#include "desc/model.h"

/* A configuration with everything decided: what was not said in the job has been chosen. */
typedef struct tv_case {
    const tv_model *model;
    tv_job job; /* defaults filled in; job.defaults lists them */
    const tv_machine *machine;
    const tv_dataset *dataset; /* NULL: no data side */
    tv_policy policy;
    tv_setting setting;
    const tv_graph *graph;  /* training, or prefill */
    const tv_graph *decode; /* one token per sequence; NULL when the job does not generate */
} tv_case;

/* Chooses precision, kernels and lengths for a card (predict/resolve.c) and builds the graphs.
 * Fails where the card cannot run what was asked (id "dtype.unsupported" and the like). */
const tv_err *tv_predict_case(tv_arena *a, const tv_model *model, const tv_job *job,
                              const tv_machine *machine, const tv_dataset *dataset,
                              tv_case *out) TV_CHECKED;

/* The dtypes that a precision preset means under a framework (predict/policy.c). */
tv_policy tv_predict_policy(tv_precision precision, tv_framework framework, const tv_model *model,
                            bool trains);

/* The ledger, the walk and the allocator (predict/memory.c). scratch is rewound by the callee. */
void tv_predict_memory(tv_arena *a, tv_arena *scratch, const tv_case *c, tv_memory *out);

/* Kernel, host, optimizer, communication and data time (predict/time.c and its neighbours). */
void tv_predict_time(tv_arena *a, const tv_case *c, const tv_memory *memory, tv_time *out);

/* Which leg holds the step back, what removing it gains, the cheapest change (predict/balance.c).
 */
void tv_predict_balance(tv_arena *a, const tv_case *c, const tv_memory *memory, const tv_time *time,
                        tv_balance *out);

/* The three grades of the one-page report (predict/grade.c). */
void tv_predict_grades(tv_arena *a, const tv_case *c, const tv_memory *memory, const tv_time *time,
                       tv_grades *out);

/* All of the above. */
void tv_predict_estimate(tv_arena *a, tv_arena *scratch, const tv_case *c, tv_estimate *out);

/* ---- parts that others use ---- */

/* Seconds of one op forward and backward on a card at batch B with K tokens cached, with the tier
 * that the efficiency came from (predict/roofline.c). */
typedef struct tv_op_time {
    double forward_s, backward_s;
    double math_s, stream_s; /* the two sides of the forward roofline */
    tv_tier tier;
    double spread; /* relative, one sigma */
} tv_op_time;

tv_op_time tv_predict_op(const tv_op *op, const tv_policy *policy, const tv_device *device,
                         double batch, double cached);

/* Peak rate that a compute dtype runs at on a card, and the rate's kind; unknown where the card
 * cannot or nobody knows. */
tv_fact tv_predict_rate(const tv_device *device, tv_dtype compute);

/* Seconds of a collective of `bytes` per rank over n cards on a link (predict/collective.c). */
double tv_predict_collective(tv_collective_kind kind, double bytes, double n, const tv_link *link);

/* Optimizer state bytes per trainable parameter beyond weight and gradient, from the table. */
double tv_predict_state_bytes(tv_optimizer optimizer, tv_dtype state, bool master);

#endif
