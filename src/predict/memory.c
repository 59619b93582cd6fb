/* The memory of one configuration: what is there before the step (ledger.c), the walk, what lies
 * outside the allocator, the interval and the verdict. */
#include "predict.h"

#include <math.h>

#include "ledger.h"
#include "outside.h"
#include "walk.h"

static const tv_text *peak_words(tv_arena *a, const tv_case *c, const tv_walk *w)
{
    tv_text *t = tv_new(a, tv_text, 1);
    const tv_graph *g = c->graph;
    if (w->peak_op == TV_NONE || w->peak_op >= g->n_ops) {
        *t = TV_TEXT0("peak.step", N_("the optimizer step"));
        return t;
    }
    const tv_op *op = &g->ops[w->peak_op];
    const tv_arg block = tv_arg_str("block", tv_str_of(g->blocks[op->block].name));
    const tv_arg name = tv_arg_str("op", tv_str_of(op->name));
    const tv_arg layer = tv_arg_num("place", TV_ARG_NUMBER, (double)w->peak_layer);
    if (w->peak_phase == TV_WALK_BACKWARD)
        *t = TV_TEXT(a, "peak.backward", N_("the backward pass at {block}, block {place}: {op}"),
                     block, layer, name);
    else
        *t = TV_TEXT(a, "peak.forward", N_("the forward pass at {block}, block {place}: {op}"),
                     block, layer, name);
    return t;
}

static tv_pool_kind pool_of(const tv_case *c)
{
    if (c->job.engine == TV_ENGINE_TENSORRT)
        return TV_POOL_NONE; /* an execution context is one block, laid out at build time */
    return c->job.framework == TV_PADDLE ? TV_POOL_PADDLE : TV_POOL_TORCH;
}

/* ---- pipeline stages ---- */

/* The layers that one stage of a pipeline runs: equal shares of the body; the first stage has the
 * embedding too, the last the head. */
static tv_graph stage_graph(tv_arena *a, const tv_graph *g, uint32_t stage, uint32_t stages)
{
    size_t first = 0, last = g->n_order;
    while (first < g->n_order && g->blocks[g->order[first]].stage == TV_STAGE_EMBED)
        first++;
    while (last > first && g->blocks[g->order[last - 1]].stage == TV_STAGE_HEAD)
        last--;
    const size_t body = last - first;
    const size_t from = first + body * stage / stages, to = first + body * (stage + 1) / stages;
    tv_graph s = *g;
    const size_t begin = stage == 0 ? 0 : from;
    const size_t end = stage + 1 == stages ? g->n_order : to;
    s.order = tv_new(a, uint32_t, end - begin + 1);
    s.n_order = end - begin;
    for (size_t i = begin; i < end; i++)
        s.order[i - begin] = g->order[i];
    return s;
}

static tv_walk walk_once(tv_arena *scratch, const tv_case *c, double batch, bool pool)
{
    const tv_mark mark = tv_arena_mark(scratch);
    tv_walk_plan plan = {0};
    tv_ledger_plan(scratch, c, batch, &plan);
    plan.pool = pool ? pool_of(c) : TV_POOL_NONE;
    const tv_walk w = tv_walk_run(scratch, &plan);
    tv_arena_rewind(scratch, mark);
    return w;
}

/* Further micro-batches in flight add their activations to the passes, not to the optimizer's step,
 * where none is left. */
static void hold_more(tv_walk *w, double bytes)
{
    const double passes = fmax(w->forward_peak_bytes, w->backward_peak_bytes) + bytes;
    const double more = fmax(0, passes - w->allocated_peak_bytes);
    w->term_bytes[TV_TERM_ACTIVATIONS] += more;
    w->allocated_peak_bytes += more;
    w->reserved_peak_bytes += more;
    w->forward_peak_bytes += bytes;
    w->backward_peak_bytes += bytes;
}

/* 1F1B: stage i holds the saved activations of min(m, p - i) micro-batches. Every stage is looked
 * at; the fullest one counts. */
static tv_walk pipeline_walk(tv_arena *scratch, const tv_case *c, double batch, bool pool)
{
    const uint32_t stages = c->job.parallel.pp;
    tv_walk worst = {0};
    for (uint32_t i = 0; i < stages; i++) {
        const tv_mark mark = tv_arena_mark(scratch);
        const tv_graph g = stage_graph(scratch, c->graph, i, stages);
        tv_case part = *c;
        part.graph = &g;
        tv_walk w = walk_once(scratch, &part, batch, pool);
        const double held = fmax(1, fmin(c->job.accum, (double)(stages - i)));
        if (tv_job_trains(&c->job))
            hold_more(&w, (held - 1) * w.saved_bytes);
        if (w.allocated_peak_bytes > worst.allocated_peak_bytes)
            worst = w;
        tv_arena_rewind(scratch, mark);
    }
    return worst;
}

tv_walk tv_memory_walk(tv_arena *scratch, const tv_case *c, double batch, bool pool)
{
    if (c->job.parallel.pp > 1)
        return pipeline_walk(scratch, c, batch, pool);
    return walk_once(scratch, c, batch, pool);
}

static double square(double v)
{
    return v * v;
}

/* Relative uncertainty of what the walk counts, downwards and upwards: what the calibrate rows of
 * the published measurements show (docs/accuracy.md). Adapters are used through many libraries that
 * keep more than PEFT does; convolutions take workspaces of their own choice. */
typedef struct spread {
    double below, above;
} spread;

static spread walk_spread(const tv_case *c)
{
    if (tv_job_adapts(&c->job))
        return (spread){0.10, 0.35};
    if (!tv_job_trains(&c->job))
        return (spread){0.06, 0.10};
    const bool images = c->graph->tokens_per_sample <= 1;
    return images ? (spread){0.12, 0.15} : (spread){0.08, 0.10};
}

/* What rests on guesses may as well not be kept, or be kept twice. */
static spread widened(spread s, double guessed)
{
    return (spread){s.below + 0.5 * guessed, s.above + guessed};
}

static void interval(const tv_case *c, tv_memory *m, tv_range context, tv_range nccl)
{
    const double fixed = m->term_bytes[TV_TERM_WEIGHTS] + m->term_bytes[TV_TERM_OPTIMIZER] +
                         m->term_bytes[TV_TERM_GRADIENTS] + m->term_bytes[TV_TERM_KV];
    const double moving = m->allocated_peak_bytes - fixed;
    const spread wrong = widened(walk_spread(c), c->graph->guessed_share);
    const double still = square(0.005 * fixed);
    /* Cached blocks that nobody uses go back to the card before a request fails. */
    const double below =
        sqrt(square(wrong.below * moving) + still + square(0.9 * m->fragmentation_bytes) +
             square(context.v - context.lo) + square(nccl.v - nccl.lo));
    const double above =
        sqrt(square(wrong.above * moving) + still + square(0.3 * m->fragmentation_bytes) +
             square(context.hi - context.v) + square(nccl.hi - nccl.v));
    m->low_bytes = m->total_bytes - below;
    m->high_bytes = m->total_bytes + above;
}

tv_verdict tv_memory_verdict(const tv_memory *m)
{
    if (!(m->capacity_bytes > 0))
        return TV_VERDICT_UNKNOWN;
    if (m->high_bytes <= m->capacity_bytes)
        return TV_FITS;
    return m->low_bytes <= m->capacity_bytes ? TV_TIGHT : TV_NO_FIT;
}

static double communicators(const tv_case *c)
{
    const tv_parallel p = c->job.parallel;
    return 1 + (p.tp > 1 ? 1 : 0) + (p.pp > 1 ? 1 : 0) + (p.ep > 1 ? 1 : 0);
}

static void cache_room(const tv_case *c, tv_memory *m)
{
    m->kv_bytes_per_token = tv_ledger_kv_per_token(c);
    if (!(m->kv_bytes_per_token > 0) || !(m->capacity_bytes > 0))
        return;
    const double used = m->total_bytes - m->term_bytes[TV_TERM_KV];
    const double share = c->job.engine == TV_ENGINE_VLLM ? 0.92 : 1; /* gpu_memory_utilization */
    const double room = m->capacity_bytes * share - used;
    m->kv_tokens = room > 0 ? floor(room / m->kv_bytes_per_token) : 0;
    const double request = (double)c->job.seq + (double)c->job.gen;
    m->concurrent = request > 0 ? floor(m->kv_tokens / request) : 0;
}

void tv_memory_from_walk(tv_arena *a, const tv_case *c, const tv_walk *w, tv_memory *out)
{
    *out = (tv_memory){0};
    for (int t = 0; t < TV_TERM_COUNT; t++)
        out->term_bytes[t] = w->term_bytes[t];
    out->allocated_peak_bytes = w->allocated_peak_bytes;
    out->reserved_peak_bytes = fmax(w->reserved_peak_bytes, w->allocated_peak_bytes);
    out->fragmentation_bytes = out->reserved_peak_bytes - w->allocated_peak_bytes;
    out->saved_bytes = w->saved_bytes;
    out->forward_peak_bytes = w->forward_peak_bytes;
    out->backward_peak_bytes = w->backward_peak_bytes;
    out->step_peak_bytes = w->step_peak_bytes;
    out->peak_at = *peak_words(a, c, w);
    const tv_range context = tv_outside_context(c->machine->device);
    const tv_range nccl = tv_outside_nccl(c->machine, communicators(c));
    out->context_bytes = context.v;
    out->nccl_bytes = nccl.v;
    out->total_bytes = out->reserved_peak_bytes + context.v + nccl.v;
    interval(c, out, context, nccl);
    const tv_device *d = c->machine->device;
    out->capacity_bytes = d && tv_known(d->mem_bytes) ? tv_device_memory(d) : 0;
    out->verdict = tv_memory_verdict(out);
    cache_room(c, out);
}

/* Without the allocator: its holes are taken at the mean of what the full walk finds. */
static const double usual_slack = 0.03;

tv_walk tv_memory_quick_walk(tv_arena *scratch, const tv_case *c)
{
    tv_walk w = tv_memory_walk(scratch, c, c->job.batch, false);
    w.reserved_peak_bytes = w.allocated_peak_bytes * (1 + usual_slack);
    return w;
}

/* Without what lies beside the tensors of a pass: weights, states, workspaces, buckets. */
static tv_tensor_bytes tensors_alone(tv_arena *scratch, const tv_case *c)
{
    const tv_mark mark = tv_arena_mark(scratch);
    tv_walk_plan plan = {0};
    tv_ledger_plan(scratch, c, c->job.batch, &plan);
    plan.pool = TV_POOL_EXACT;
    plan.n_statics = plan.n_states = plan.n_step_temps = 0;
    plan.conv_workspace_bytes = plan.bucket_bytes = 0;
    const tv_walk w = tv_walk_run(scratch, &plan);
    tv_arena_rewind(scratch, mark);
    return (tv_tensor_bytes){w.saved_bytes, w.forward_peak_bytes, w.backward_peak_bytes};
}

void tv_predict_memory(tv_arena *a, tv_arena *scratch, const tv_case *c, tv_memory *out)
{
    const tv_walk w = tv_memory_walk(scratch, c, c->job.batch, true);
    tv_memory_from_walk(a, c, &w, out);
    out->tensors = tensors_alone(scratch, c);
    tv_ledger_lines(a, c, out);
}
