/* The lanes of a step, folded by block kind: private to the predictor's time files. */
#ifndef TV_LANES_H
#define TV_LANES_H

#include "predict.h"

/* What an engine or framework adds around the kernels (docs/model.md, "host"). */
typedef struct tv_engine_cost {
    double forward_issue_s; /* host time per kernel issued */
    double backward_issue_s;
    double step_s;         /* fixed per decode step: scheduler, sampler, detokenizer */
    double fused_traffic;  /* share of stream ops' time that fusion leaves; 1 none */
    double fused_launches; /* share of the launches that it leaves */
    bool graphs;           /* decode steps are replayed as CUDA graphs */
} tv_engine_cost;

tv_engine_cost tv_engine_cost_of(const tv_case *c);

/* One run of a block kind on one rank. */
typedef struct tv_block_lane {
    double count;                             /* repetitions in the graph */
    double forward_s, backward_s;             /* device */
    double core_s;                            /* forward of what selective recompute runs again */
    double region_s;                          /* forward of the program's own checkpoints */
    double issue_forward_s, issue_backward_s; /* host */
    double comm_forward_s, comm_backward_s;   /* tensor and expert parallel: on the critical path */
    double weight_bytes; /* parameters of one repetition on this rank, as they are gathered */
    double grad_bytes;   /* gradients it makes */
} tv_block_lane;

typedef struct tv_lanes {
    tv_block_lane *blocks;
    size_t n_blocks;
    /* sums over the graph, repetitions counted */
    double forward_s, backward_s;
    double flop_forward, flop_backward; /* model FLOPs, kernels' own recompute not counted */
    double math_s, memory_s;            /* kernel time in ops that math or memory bind */
    double by_kind_s[TV_OP_KIND_COUNT];
    double sigma; /* relative, of the kernel time */
    tv_tier tier; /* of the ops that take most of the time */
} tv_lanes;

tv_lanes tv_lanes_of(tv_arena *a, const tv_case *c, const tv_graph *g, double batch, double cached);

/* Degrees with 1 for "not used". */
typedef struct tv_degrees {
    double tp, pp, cp, ep;
    double data; /* data-parallel ranks */
    double cards;
} tv_degrees;

tv_degrees tv_degrees_of(const tv_case *c);

typedef struct tv_comm_time {
    double total_s;
    double exposed_s;
    double tax_s; /* compute slowed by the communication kernels beside it */
} tv_comm_time;

/* Gradient, parameter and stage traffic of a training step with `micro` passes. */
tv_comm_time tv_communicate(const tv_case *c, const tv_lanes *lanes, double micro);

typedef struct tv_data_time {
    double storage_s, decode_s, copy_s; /* per step of one card; 0 unknown */
    double slowest_s;
    double host_bytes; /* copied to the card per step */
} tv_data_time;

tv_data_time tv_data_side(const tv_case *c, double samples_per_step);

/* Bytes that a step of the optimizer moves per trainable parameter, and kernels' issue time. */
double tv_optimizer_bytes(const tv_job *job, const tv_policy *policy);

#endif
