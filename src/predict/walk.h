/* The liveness walk: forward, backward and optimizer step over the op list in time order, on one
 * rank, driving the simulated allocator. What it returns is the state at the instant of the peak.
 */
#ifndef TV_WALK_H
#define TV_WALK_H

#include "desc/graph.h"
#include "desc/job.h"
#include "pool.h"

/* How a rank divides things. All degrees at least 1. */
typedef struct tv_rank {
    double tensor, expert;
    bool sequence_parallel;
    double shard;      /* ranks that ZeRO-3/FSDP splits weights and gradients over */
    double grad_shard; /* ranks that gradients are split over after a block's backward (ZeRO-2) */
} tv_rank;

/* Bytes that are there before the step starts: n equal allocations. */
typedef struct tv_static {
    tv_term term;
    double bytes;
    double n;
} tv_static;

typedef struct tv_walk_plan {
    const tv_graph *graph;
    const tv_static *statics;
    size_t n_statics;
    tv_rank rank;
    double batch, cached;
    tv_pool_kind pool;
    bool trains;
    tv_recompute recompute;
    bool grads_resident;         /* gradients exist before backward starts (accumulation, Paddle) */
    double grad_bytes;           /* per trainable parameter: bytes of its gradient */
    double reduce_bytes;         /* ... in a sharded gradient's reduction; 0: as grad_bytes */
    double gather_bytes;         /* per parameter of an unsharded block (ZeRO-3); 0: as stored */
    const tv_static *step_temps; /* the optimizer's temporaries, one tensor per parameter */
    size_t n_step_temps;
    const tv_static *states; /* optimizer state: appears at the end of the first step */
    size_t n_states;
    double conv_workspace_bytes; /* transient at each convolution, at most */
    double bucket_bytes; /* fused gradient buffers alive at the end of backward only (Paddle DDP) */
} tv_walk_plan;

typedef enum tv_walk_phase { TV_WALK_FORWARD, TV_WALK_BACKWARD, TV_WALK_STEP } tv_walk_phase;

typedef struct tv_walk {
    double term_bytes[TV_TERM_COUNT];
    double allocated_peak_bytes;
    double reserved_peak_bytes;
    double saved_bytes; /* what forward left for backward (weights and states not counted) */
    double forward_peak_bytes, backward_peak_bytes, step_peak_bytes;
    tv_walk_phase peak_phase;
    uint32_t peak_op;    /* index in the graph; TV_NONE at the optimizer step */
    uint32_t peak_layer; /* place in the graph's order */
} tv_walk;

/* scratch is rewound before return. */
tv_walk tv_walk_run(tv_arena *scratch, const tv_walk_plan *plan);

/* What share of a quantity one rank holds. */
double tv_rank_share(const tv_rank *r, tv_shard shard, double kv_heads);

#endif
