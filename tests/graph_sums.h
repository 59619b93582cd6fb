/* Sums over a graph that tests compare with published figures. */
#ifndef TV_GRAPH_SUMS_H
#define TV_GRAPH_SUMS_H

#include "desc/graph.h"
#include "testing.h"

/* Bytes kept for backward, each storage once; a block's output is the next block's input.
 * Autocast's weight copies are left out: they are no activations. */
typedef struct test_saved {
    const tv_graph *g;
    bool *seen;
    double batch;
    double sum;
} test_saved;

static inline bool test_is_saved(const tv_graph *g, const tv_block *b, uint32_t id)
{
    for (uint32_t i = b->first_op; id != TV_NONE && i < b->first_op + b->n_ops; i++)
        for (uint32_t k = 0; k < g->ops[i].saved.n; k++)
            if (g->ids[g->ops[i].saved.first + k] == id)
                return true;
    return false;
}

static inline void test_add_saved(test_saved *s, uint32_t id, bool once)
{
    const tv_storage *t = &s->g->storages[id];
    if (s->seen[id] || t->cast_cache)
        return;
    s->seen[id] = once;
    s->sum += tv_form_at(t->bytes, s->batch, 0);
}

/* Of one run of a kind, without its output (which belongs to whoever reads it). */
static inline double test_block_saved(tv_arena *a, const tv_graph *g, uint32_t kind, double batch)
{
    const tv_block *b = &g->blocks[kind];
    test_saved s = {g, tv_new(a, bool, g->n_storages + 1), batch, 0};
    for (uint32_t i = b->first_op; i < b->first_op + b->n_ops; i++)
        for (uint32_t k = 0; k < g->ops[i].saved.n; k++) {
            uint32_t id = g->ids[g->ops[i].saved.first + k];
            if (id != b->out)
                test_add_saved(&s, id, true);
        }
    return s.sum;
}

static inline bool test_is_global(const tv_graph *g, uint32_t id)
{
    return id != TV_NONE && g->storages[id].kind == TV_NONE;
}

/* A kind's input is the output of the kind before: counted once, under its own name where it is
 * visible to all. */
static inline double test_graph_saved(tv_arena *a, const tv_graph *g, double batch)
{
    double sum = 0;
    bool *global = tv_new(a, bool, g->n_storages + 1);
    for (size_t o = 0; o < g->n_order; o++) {
        const tv_block *b = &g->blocks[g->order[o]];
        const tv_block *before = o ? &g->blocks[g->order[o - 1]] : NULL;
        const tv_block *after = o + 1 < g->n_order ? &g->blocks[g->order[o + 1]] : NULL;
        test_saved s = {g, tv_new(a, bool, g->n_storages + 1), batch, 0};
        for (size_t i = 0; i < g->n_storages; i++)
            s.seen[i] = global[i];
        if (b->in != TV_NONE && before) {
            const bool kept = test_is_saved(g, b, b->in) || test_is_saved(g, before, before->out);
            const uint32_t id = test_is_global(g, before->out) ? before->out : b->in;
            if (kept)
                test_add_saved(&s, id, true);
            global[id] = global[id] || (kept && test_is_global(g, id));
            s.seen[b->in] = true;
        }
        for (uint32_t i = b->first_op; i < b->first_op + b->n_ops; i++)
            for (uint32_t k = 0; k < g->ops[i].saved.n; k++) {
                const uint32_t id = g->ids[g->ops[i].saved.first + k];
                if (id == b->out && !test_is_global(g, id) && after && after->in != TV_NONE)
                    continue;
                test_add_saved(&s, id, true);
                global[id] = global[id] || test_is_global(g, id);
            }
        sum += s.sum;
    }
    return sum;
}

/* Forward FLOPs of the multiplying ops for one sample. */
static inline double test_graph_flop(tv_arena *a, const tv_graph *g)
{
    uint32_t *counts = tv_new(a, uint32_t, g->n_blocks + 1);
    double sum = 0;
    tv_graph_counts(g, counts);
    for (size_t i = 0; i < g->n_ops; i++) {
        const tv_op *op = &g->ops[i];
        if (op->kind == TV_OP_GEMM || op->kind == TV_OP_CONV || op->kind == TV_OP_ATTENTION)
            sum += tv_form_at(op->flop, 1, 0) * counts[op->block];
    }
    return sum;
}

static inline tv_policy test_policy(tv_precision precision)
{
    tv_policy p = {.precision = precision,
                   .param = TV_F32,
                   .base = TV_F32,
                   .compute = TV_F32,
                   .stream = TV_F32,
                   .grad = TV_F32,
                   .state = TV_F32,
                   .kv = TV_F32};
    if (precision == TV_PRECISION_AMP_FP16) {
        p.compute = p.kv = TV_F16;
        p.autocast = true;
    }
    if (precision == TV_PRECISION_FP16)
        p.param = p.base = p.compute = p.stream = p.grad = p.state = p.kv = TV_F16;
    return p;
}

#endif
