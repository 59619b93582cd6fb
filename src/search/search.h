/* Which cards, how many, set how: lays out the configurations of a job, weighs each with predict
 * and ranks them. Knows no file and no catalogue: cards, links and prices come from the caller.
 * Memory does not depend on the card beyond its class, so one prediction serves many cards. */
#ifndef TV_SEARCH_H
#define TV_SEARCH_H

#include "desc/plan.h"
#include "predict/predict.h"

/* What the ranking is for. value: the most work for the money; cheapest: the least money for the
 * run, or per hour where the run has no length; fastest: the most work per second. */
typedef enum tv_goal { TV_GOAL_VALUE, TV_GOAL_CHEAPEST, TV_GOAL_FASTEST } tv_goal;

typedef struct tv_search {
    const tv_model *model;
    const tv_job *job; /* as asked: what is 0 is the search's to choose */
    const tv_dataset *dataset;
    const tv_device *const *devices;
    size_t n_devices;
    const uint32_t *counts; /* cards of one server to try, ascending */
    size_t n_counts;
    uint32_t nodes;
    tv_goal goal;
    double budget;     /* for the run, or a year where the run has no length; 0: none */
    double deadline_s; /* 0: none */
    /* The machine that holds n of a card: its links, server, disk. */
    const tv_err *(*machine)(void *ctx, tv_arena *a, const tv_device *d, uint32_t gpus,
                             uint32_t nodes, tv_machine *machine);
    /* Fills est->cost; NULL: no prices. */
    void (*price)(void *ctx, tv_arena *a, tv_estimate *est);
    void *ctx;
} tv_search;

/* The plan lives in a; scratch is left as it was found. Fails only where no card could be looked
 * at, never because none fits: that is a plan without a choice. */
const tv_err *tv_search_plan(tv_arena *a, tv_arena *scratch, const tv_search *s,
                             tv_plan *plan) TV_CHECKED;

/* One configuration in full. */
const tv_err *tv_search_one(tv_arena *a, tv_arena *scratch, const tv_search *s, const tv_device *d,
                            uint32_t gpus, tv_choice *out) TV_CHECKED;

/* Changes that lower the need of a job on a machine, in order of cost, each predicted. quick: now
 * was walked without the allocator, so the changes are too. */
void tv_search_remedies(tv_arena *a, tv_arena *scratch, const tv_search *s, const tv_case *c,
                        const tv_estimate *now, bool quick, tv_plan *plan);

/* What mixed precision would give a training job that runs without it; false: nothing to say. */
bool tv_search_amp(tv_arena *a, tv_arena *scratch, const tv_search *s, const tv_case *c,
                   const tv_estimate *now, tv_remedy *out);

/* The largest batch and the longest sequence that fit a case's card; 0: none, or no such axis.
 * Memory grows with both, so each is found by bisection. */
double tv_search_max_batch(tv_arena *scratch, const tv_case *c);
double tv_search_max_seq(tv_arena *scratch, const tv_case *c);

/* Weights, gradients and optimizer states of the whole job, wherever they lie. */
double tv_search_states(tv_arena *scratch, const tv_case *c);

/* Is the estimate itself within the card? A plan proposes nothing less, though a job whose lower
 * bound is within may run. */
static inline bool tv_search_holds(const tv_memory *m)
{
    return m->capacity_bytes > 0 && m->total_bytes <= m->capacity_bytes;
}

/* "just runs", "runs well", "room to spare" (thresholds in docs/commands/plan.md). */
tv_text tv_search_headroom(const tv_memory *m);

const char *tv_goal_name(tv_goal goal); /* a msgid */

#endif
