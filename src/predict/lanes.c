/* Kernel and host time of every block kind, once each, and their sums over the graph. The walk is
 * folded: a 70-layer decoder is judged by a handful of kinds. */
#include "lanes.h"

#include <math.h>

/* Host time per issued kernel, forward and backward, fitted to calibrate rows: Transformers decodes
 * at 25 us a kernel through its Python modules (30-45 ms a token on 28-40 layers); plain modules of
 * image models take 20-35 us alone, less in a row (18 taken). Backward is C++. Paddle's dygraph is
 * taken to be alike. vLLM: decode steps are replayed as graphs, 2 ms a token around them. */
static const tv_engine_cost engines[] = {
    [TV_ENGINE_EAGER] = {25e-6, 9e-6, 0, 1, 1, false},
    [TV_ENGINE_COMPILE] = {5e-6, 4e-6, 0.3e-3, 0.45, 0.35, false},
    [TV_ENGINE_VLLM] = {10e-6, 10e-6, 2.0e-3, 0.4, 0.35, true},
    [TV_ENGINE_LLAMA_CPP] = {1.5e-6, 1.5e-6, 0.2e-3, 0.7, 0.6, true},
    [TV_ENGINE_TENSORRT] = {1.5e-6, 1.5e-6, 0.05e-3, 0.25, 0.25, true},
    [TV_ENGINE_PADDLE_INFERENCE] = {6e-6, 6e-6, 0.5e-3, 0.6, 0.5, false},
};

tv_engine_cost tv_engine_cost_of(const tv_case *c)
{
    tv_engine_cost cost = engines[c->job.engine];
    const bool plain = !c->graph || !(c->graph->tokens_per_sample > 1);
    if (c->job.engine == TV_ENGINE_EAGER && plain && !c->decode) {
        cost.forward_issue_s = 18e-6;
        cost.backward_issue_s = 7e-6;
    }
    return cost;
}

static double at_least_one(uint32_t v)
{
    return v > 1 ? v : 1;
}

tv_degrees tv_degrees_of(const tv_case *c)
{
    const tv_parallel *p = &c->job.parallel;
    tv_degrees d = {
        at_least_one(p->tp), at_least_one(p->pp), at_least_one(p->cp), at_least_one(p->ep), 1, 1};
    d.cards = at_least_one(c->machine->gpus) * at_least_one(c->machine->nodes);
    d.data = fmax(1, floor(d.cards / (d.tp * d.pp * d.cp)));
    return d;
}

/* ---- one op on one rank ---- */

static bool has_int8(const tv_case *c)
{
    return c->policy.precision == TV_PRECISION_INT8 &&
           tv_known(tv_predict_rate(c->machine->device, TV_I8));
}

/* TensorRT's and Paddle Inference's int8 multiplies int8 by int8; others only store it. */
static bool multiplies_int8(const tv_case *c, const tv_op *op)
{
    const bool engine =
        c->job.engine == TV_ENGINE_TENSORRT || c->job.engine == TV_ENGINE_PADDLE_INFERENCE;
    return engine && has_int8(c) && (op->kind == TV_OP_GEMM || op->kind == TV_OP_CONV);
}

/* Between TensorRT's int8 layers the tensors are int8 as well, one byte where 16-bit modules hand
 * on two. */
static bool passes_int8(const tv_case *c)
{
    return c->job.engine == TV_ENGINE_TENSORRT && has_int8(c);
}

/* Tensor parallelism cuts the columns or rows of a product, and the heads; context parallelism
 * the tokens of everything. */
static tv_op on_rank(const tv_op *op, const tv_degrees *d)
{
    tv_op r = *op;
    double cut = 1;
    if (op->shard == TV_SHARD_TENSOR || op->shard == TV_SHARD_KV_HEADS ||
        op->shard == TV_SHARD_VOCAB)
        cut = d->tp;
    else if (op->shard == TV_SHARD_EXPERT)
        cut = d->ep > 1 ? d->ep : d->tp;
    if (cut > 1) {
        r.flop = tv_form_scale(r.flop, 1 / cut);
        r.weight_bytes /= cut;
        r.kv_read_bytes = tv_form_scale(r.kv_read_bytes, 1 / cut);
        r.kv_write_bytes = tv_form_scale(r.kv_write_bytes, 1 / cut);
        r.write_bytes = tv_form_scale(r.write_bytes, 1 / cut);
        r.backward_bytes = tv_form_scale(r.backward_bytes, 1 / cut);
        if (r.kind == TV_OP_ATTENTION)
            r.groups = fmax(1, r.groups / cut);
        else
            r.n = fmax(1, r.n / cut);
        if (r.kind != TV_OP_GEMM)
            r.read_bytes = tv_form_scale(r.read_bytes, 1 / cut);
    }
    return r;
}

static bool is_stream(tv_op_kind kind)
{
    return kind != TV_OP_GEMM && kind != TV_OP_CONV && kind != TV_OP_ATTENTION &&
           kind != TV_OP_COLLECTIVE;
}

typedef struct walk {
    const tv_case *c;
    tv_degrees degrees;
    tv_engine_cost cost;
    double batch, cached;
    double count;                     /* of the block being walked */
    double wrong_s[TV_OP_KIND_COUNT]; /* spread times time */
    double tier_s[TV_TIER_EXACT + 1];
} walk;

static void add_collective(const walk *w, const tv_op *op, tv_block_lane *b)
{
    const bool experts = op->collective == TV_COLL_ALL_TO_ALL;
    const double n = experts ? w->degrees.ep : w->degrees.tp;
    const double bytes = tv_form_at(op->collective_bytes, w->batch, w->cached) / w->degrees.cp;
    const double s = tv_predict_collective(op->collective, bytes, n, &w->c->machine->intra);
    b->comm_forward_s += s;
    /* The gradient of a row-parallel product is summed where its column-parallel partner begins:
     * as many all-reduces backward as forward (Megatron's f and g). */
    b->comm_backward_s += s;
}

static void add_op(walk *w, const tv_op *op, tv_block_lane *b, tv_lanes *sum)
{
    if (op->kind == TV_OP_COLLECTIVE) {
        add_collective(w, op, b);
        return;
    }
    tv_op rank = on_rank(op, &w->degrees);
    if (multiplies_int8(w->c, op))
        rank.compute = TV_I8;
    if (passes_int8(w->c)) {
        rank.read_bytes = tv_form_scale(rank.read_bytes, 0.5);
        rank.write_bytes = tv_form_scale(rank.write_bytes, 0.5);
    }
    tv_op_time t = tv_predict_op(&rank, &w->c->policy, w->c->machine->device, w->batch, w->cached);
    const double fused = is_stream(op->kind) ? w->cost.fused_traffic : 1;
    const double tokens = 1 / w->degrees.cp;
    t.forward_s *= fused * tokens;
    t.backward_s *= fused * tokens;
    b->forward_s += t.forward_s;
    b->backward_s += t.backward_s;
    b->core_s += op->attention_core ? t.forward_s : 0;
    b->region_s += op->region ? t.forward_s : 0;
    const double launches = is_stream(op->kind) ? w->cost.fused_launches : 1;
    b->issue_forward_s += op->launches * launches * w->cost.forward_issue_s;
    b->issue_backward_s += op->backward_launches * launches * w->cost.backward_issue_s;

    const double s = (t.forward_s + t.backward_s) * w->count;
    sum->by_kind_s[op->kind] += s;
    w->wrong_s[op->kind] += s * t.spread;
    w->tier_s[t.tier] += s;
    *(t.math_s >= t.stream_s && t.math_s > 0 ? &sum->math_s : &sum->memory_s) += s;
    if (!is_stream(op->kind)) {
        const double flop = tv_form_at(rank.flop, w->batch, w->cached) * w->count * tokens;
        sum->flop_forward += flop;
        sum->flop_backward += flop * fmin(op->backward, 2);
    }
}

/* ---- weights ---- */

static double rank_share(const tv_weight *w, const tv_degrees *d)
{
    if (w->shard == TV_SHARD_EXPERT)
        return d->ep > 1 ? d->ep : d->tp;
    return w->shard == TV_SHARD_NONE || w->shard == TV_SHARD_SEQUENCE ? 1 : d->tp;
}

static void add_weights(const walk *w, const tv_graph *g, const tv_block *block, tv_block_lane *b)
{
    const double grad_bytes = tv_dtype_bytes(w->c->policy.grad);
    for (uint32_t i = block->first_weight; i < block->first_weight + block->n_weights; i++) {
        const tv_weight *weight = &g->weights[i];
        const double share = rank_share(weight, &w->degrees);
        /* mixed precision gathers what the products read, not the fp32 original */
        const double least = tv_dtype_bytes(w->c->policy.compute);
        const double cut = least >= 1 ? weight->elements * least : weight->bytes;
        b->weight_bytes += fmin(weight->bytes, cut) / share;
        if (weight->trainable)
            b->grad_bytes += weight->elements / share * (grad_bytes > 0 ? grad_bytes : 4);
    }
}

/* ---- sums ---- */

/* What a whole step is wrong by beyond its kernels (fusion, clocks, gaps, libraries' versions):
 * half of the calibrate groups of training and inference lie within about this. */
static const double step_sigma = 0.2;

/* Errors of a kind are taken to be wrong together, kinds independently of each other. */
static double sigma_of(const walk *w, double total_s)
{
    double square = step_sigma * step_sigma * total_s * total_s;
    for (int k = 0; k < TV_OP_KIND_COUNT; k++)
        square += w->wrong_s[k] * w->wrong_s[k];
    return total_s > 0 ? sqrt(square) / total_s : 0;
}

/* The weakest tier that at least a fifth of the time rests on. */
static tv_tier tier_of(const walk *w, double total_s)
{
    for (int tier = TV_TIER_PRIOR; tier <= TV_TIER_EXACT; tier++)
        if (w->tier_s[tier] > 0.2 * total_s)
            return (tv_tier)tier;
    return TV_TIER_NONE;
}

tv_lanes tv_lanes_of(tv_arena *a, const tv_case *c, const tv_graph *g, double batch, double cached)
{
    tv_lanes sum = {.n_blocks = g->n_blocks};
    sum.blocks = tv_new(a, tv_block_lane, g->n_blocks + 1);
    uint32_t *counts = tv_new(a, uint32_t, g->n_blocks + 1);
    tv_graph_counts(g, counts);
    walk w = {.c = c,
              .degrees = tv_degrees_of(c),
              .cost = tv_engine_cost_of(c),
              .batch = batch,
              .cached = cached};
    for (size_t i = 0; i < g->n_blocks; i++) {
        const tv_block *block = &g->blocks[i];
        tv_block_lane *b = &sum.blocks[i];
        b->count = w.count = counts[i];
        if (counts[i] == 0)
            continue;
        for (uint32_t k = block->first_op; k < block->first_op + block->n_ops; k++)
            add_op(&w, &g->ops[k], b, &sum);
        add_weights(&w, g, block, b);
        sum.forward_s += b->forward_s * b->count;
        sum.backward_s += b->backward_s * b->count;
    }
    const double total_s = sum.forward_s + sum.backward_s;
    sum.sigma = hypot(sigma_of(&w, total_s), g->guessed_share);
    sum.tier = tier_of(&w, total_s);
    return sum;
}
