/* How far a configuration reaches: the largest batch, the longest sequence. Memory never falls
 * when either grows (a property that predict's tests hold), so bisection is exact. Each probe is a
 * whole prediction, so the bracket is guessed from the slope first. */
#include "search.h"

#include <math.h>

#include "predict/ledger.h"

/* Beyond these nobody asks; they bound the search, not the answer's meaning. */
#define BATCH_MOST 65536.0
#define SEQ_MOST 4194304.0

typedef double (*need_at)(tv_arena *scratch, const tv_case *c, double x);

static double need_of(tv_arena *scratch, const tv_case *c)
{
    const tv_walk w = tv_memory_quick_walk(scratch, c);
    tv_memory m;
    tv_memory_from_walk(scratch, c, &w, &m);
    return m.total_bytes;
}

static double need_at_batch(tv_arena *scratch, const tv_case *c, double batch)
{
    tv_case changed = *c;
    changed.job.batch = (uint32_t)batch;
    return need_of(scratch, &changed);
}

static double need_at_seq(tv_arena *scratch, const tv_case *c, double seq)
{
    tv_job job = c->job;
    tv_case changed;
    job.seq = (uint32_t)seq;
    if (tv_predict_case(scratch, c->model, &job, c->machine, c->dataset, &changed))
        return (double)INFINITY;
    return need_of(scratch, &changed);
}

static double probe(tv_arena *scratch, const tv_case *c, need_at need, double x)
{
    const tv_mark mark = tv_arena_mark(scratch);
    const double bytes = need(scratch, c, x);
    tv_arena_rewind(scratch, mark);
    return bytes;
}

/* Where the line through two probes meets the capacity. */
static double guess(double x0, double y0, double x1, double y1, double capacity)
{
    const double slope = (y1 - y0) / (x1 - x0);
    return slope > 0 ? floor(x0 + (capacity - y0) / slope) : x1 * 2;
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* The largest x in [1, most] with need(x) <= capacity: fits at low, does not at high. */
static double largest(tv_arena *scratch, const tv_case *c, need_at need, double start, double most,
                      double capacity)
{
    double low = 1, low_need = probe(scratch, c, need, 1);
    if (!(capacity > 0) || low_need > capacity)
        return 0;
    double high = clamp(start < 2 ? 2 : start, 2, most), high_need = probe(scratch, c, need, high);
    while (high_need <= capacity) {
        if (high >= most)
            return most;
        const double next = guess(low, low_need, high, high_need, capacity) + 1;
        low = high;
        low_need = high_need;
        high = clamp(next, high + 1, clamp(high * 8, 2, most));
        high_need = probe(scratch, c, need, high);
    }
    while (high - low > 1) {
        /* The secant lands beside the answer; the middle keeps the worst case logarithmic. */
        double x = guess(low, low_need, high, high_need, capacity);
        x = high - low > 16 ? clamp(x, low + 1, high - 1) : floor((low + high) / 2);
        const double y = probe(scratch, c, need, x);
        const bool fits = y <= capacity;
        low = fits ? x : low;
        low_need = fits ? y : low_need;
        high = fits ? high : x;
        high_need = fits ? high_need : y;
        const double beyond = clamp(fits ? low + 1 : high - 1, low, high);
        if (beyond > low && beyond < high && high - low > 16) {
            const double z = probe(scratch, c, need, beyond);
            if (z <= capacity) {
                low = beyond;
                low_need = z;
            } else {
                high = beyond;
                high_need = z;
            }
        }
    }
    return low;
}

double tv_search_max_batch(tv_arena *scratch, const tv_case *c)
{
    return largest(scratch, c, need_at_batch, c->job.batch, BATCH_MOST,
                   tv_device_memory(c->machine->device));
}

double tv_search_max_seq(tv_arena *scratch, const tv_case *c)
{
    if (c->job.seq == 0)
        return 0;
    const double most = c->model->max_seq > 0 ? c->model->max_seq : SEQ_MOST;
    return largest(scratch, c, need_at_seq, c->job.seq, most, tv_device_memory(c->machine->device));
}

double tv_search_states(tv_arena *scratch, const tv_case *c)
{
    const tv_mark mark = tv_arena_mark(scratch);
    const tv_graph *g = c->graph;
    uint32_t *counts = tv_new(scratch, uint32_t, g->n_blocks + 1);
    tv_graph_counts(g, counts);
    double bytes = g->frozen_buffers_bytes;
    for (size_t i = 0; i < g->n_weights; i++)
        bytes += g->weights[i].bytes * tv_weight_copies(g, counts, &g->weights[i]);
    if (tv_job_trains(&c->job)) {
        const tv_policy *p = &c->policy;
        bytes +=
            g->trainable_params * (tv_dtype_bytes(p->grad) +
                                   tv_predict_state_bytes(c->job.optimizer, p->state, p->master));
    }
    tv_arena_rewind(scratch, mark);
    return bytes;
}
