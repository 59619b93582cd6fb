/* From training to serving: the served job, its number formats, what moving between cards costs.
 * docs/model.md, "Build phases". */
#include "deploy.h"

#include <math.h>

tv_target tv_life_target_of(tv_engine engine)
{
    switch (engine) {
    case TV_ENGINE_EAGER:
        return TV_TARGET_UNSAID;
    case TV_ENGINE_COMPILE:
        return TV_TARGET_COMPILE;
    case TV_ENGINE_VLLM:
        return TV_TARGET_VLLM;
    case TV_ENGINE_LLAMA_CPP:
        return TV_TARGET_LLAMA_CPP;
    case TV_ENGINE_TENSORRT:
        return TV_TARGET_TENSORRT;
    case TV_ENGINE_PADDLE_INFERENCE:
        return TV_TARGET_PADDLE_INFERENCE;
    }
    return TV_TARGET_UNSAID;
}

static tv_engine engine_of(tv_target target, tv_engine asked)
{
    switch (target) {
    case TV_TARGET_UNSAID:
    case TV_TARGET_NONE:
    case TV_TARGET_COUNT:
        return asked;
    case TV_TARGET_TORCHSCRIPT:
    case TV_TARGET_TORCH_EXPORT:
    case TV_TARGET_ONNX:
        return TV_ENGINE_EAGER; /* kernels one by one, as their runtimes launch them */
    case TV_TARGET_COMPILE:
        return TV_ENGINE_COMPILE;
    case TV_TARGET_TENSORRT:
        return TV_ENGINE_TENSORRT;
    case TV_TARGET_PADDLE_INFERENCE:
    case TV_TARGET_PADDLE_TENSORRT:
        return TV_ENGINE_PADDLE_INFERENCE;
    case TV_TARGET_VLLM:
        return TV_ENGINE_VLLM;
    case TV_TARGET_LLAMA_CPP:
        return TV_ENGINE_LLAMA_CPP;
    }
    return asked;
}

tv_job tv_life_serve_job(const tv_job *asked, const tv_deploy *d)
{
    tv_job job = *asked;
    const bool trains = tv_job_trains(asked) || asked->task == TV_TASK_DEFAULT;
    job.defaults = NULL;
    job.n_defaults = 0;
    if (trains) {
        job.task = TV_TASK_INFER;
        job.precision = TV_PRECISION_DEFAULT;
        job.optimizer = TV_OPT_DEFAULT;
        job.recompute = TV_RECOMPUTE_NONE;
        job.strategy = TV_STRATEGY_DEFAULT;
        job.batch = 1;
        job.accum = 1;
        job.samples = job.epochs = 0;
    }
    job.engine = engine_of(d->target, asked->engine);
    if (d->precision)
        job.precision = d->precision;
    if (d->max_batch)
        job.batch = d->max_batch;
    if (d->max_seq)
        job.seq = d->max_seq;
    return job;
}

double tv_life_source_bytes(const tv_model *m, const tv_case *train)
{
    if (train && tv_job_trains(&train->job)) {
        const double each = train->policy.master ? 4 : tv_dtype_bytes(train->policy.param);
        return m->params * (each > 0 ? each : 4);
    }
    return m->stored_bytes > 0 ? m->stored_bytes : 4 * m->params;
}

/* ---- from one card to another ---- */

static tv_str capability(tv_arena *a, int cc)
{
    tv_buf b = tv_buf_in(a);
    tv_put_fixed(&b, cc / 10.0, 1);
    return tv_buf_str(&b);
}

typedef struct mover {
    tv_arena *a;
    const tv_device *train, *serve;
    tv_text *notes;
    size_t n;
} mover;

static void say(mover *m, const char *id, const char *msgid)
{
    if (m->n < TV_LIFE_NOTES)
        m->notes[m->n++] =
            TV_TEXT(m->a, id, msgid, tv_arg_str("train", m->train->name),
                    tv_arg_str("serve", m->serve->name),
                    tv_arg_str("train_cc", capability(m->a, m->train->compute_capability)),
                    tv_arg_str("serve_cc", capability(m->a, m->serve->compute_capability)));
}

/* Engines are made for the type of card that they are built on; both ways around it are options of
 * the builder (NVIDIA, engine compatibility). */
static void engine_moves(mover *m, tv_target target)
{
    const bool trt = target == TV_TARGET_TENSORRT || target == TV_TARGET_PADDLE_TENSORRT;
    const int from = m->train->compute_capability, to = m->serve->compute_capability;
    if (!trt || m->train == m->serve)
        return;
    if (from == to)
        say(m, "move.same-capability",
            N_("an engine built on {train} is meant for {train} alone: build it on {serve}, or "
               "with "
               "hardware compatibility level same compute capability ({serve_cc})"));
    else if (from >= 80 && to >= 80)
        say(m, "move.rebuild",
            N_("an engine built on {train} ({train_cc}) must be rebuilt on {serve} ({serve_cc}), "
               "or "
               "built with hardware compatibility level Ampere+, which leaves out kernels and is "
               "slower"));
    else
        say(m, "move.rebuild-only",
            N_("an engine built on {train} ({train_cc}) must be rebuilt on {serve} ({serve_cc}): "
               "no "
               "compatibility level joins the two"));
    say(m, "move.version",
        N_("and it belongs to the version of TensorRT that built it, unless it was built version "
           "compatible: install the same version on {serve}"));
}

/* TensorRT 10.5 and later need 7.5 (release notes). */
static void engine_supports(mover *m, tv_target target)
{
    const bool trt = target == TV_TARGET_TENSORRT || target == TV_TARGET_PADDLE_TENSORRT;
    const int to = m->serve->compute_capability;
    if (trt && to > 0 && to < 75)
        say(m, "move.old",
            N_("TensorRT 10.5 and later no longer run on {serve} ({serve_cc}): stay with an "
               "earlier version"));
    if (trt && to == 0)
        say(m, "move.maker", N_("TensorRT runs on NVIDIA cards only, {serve} is none"));
}

static void type_moves(mover *m, tv_dtype trained_in, const tv_policy *served)
{
    const int to = m->serve->compute_capability;
    if (to == 0)
        return;
    const bool narrow = served->base == TV_I8 || served->compute == TV_I8;
    if (trained_in == TV_BF16 && to < 80)
        say(m, "move.bf16",
            N_("{serve} ({serve_cc}) has no BF16: a model trained in it is served in FP16, whose "
               "largest number is 65,504, so check for overflow"));
    if (trained_in == TV_F8_E4M3 && to < 89)
        say(m, "move.fp8", N_("{serve} ({serve_cc}) has no FP8: it is served in 16 bit"));
    if (narrow && to < 75)
        say(m, "move.int8", N_("{serve} ({serve_cc}) has no tensor cores for INT8"));
    if (m->n == 0 && m->train != m->serve && m->train->compute_capability > 0)
        say(m, "move.free",
            N_("number formats and kernels of {train} ({train_cc}) are on {serve} ({serve_cc}) "
               "too"));
}

size_t tv_life_moves(tv_arena *a, const tv_device *train, tv_dtype trained_in,
                     const tv_device *serve, const tv_policy *served, tv_target target,
                     tv_text *notes)
{
    mover m = {.a = a, .train = train, .serve = serve, .notes = notes};
    engine_moves(&m, target);
    engine_supports(&m, target);
    type_moves(&m, trained_in, served);
    return m.n;
}

/* ---- number formats ---- */

/* Weights of an op as they lie in memory; an output matrix that is an embedding too has none of its
 * own. */
static double stored_weights(const tv_graph *g, const tv_op *op)
{
    double bytes = 0;
    for (uint32_t i = 0; i < op->n_weights; i++)
        bytes += g->weights[op->first_weight + i].bytes;
    return bytes > 0 ? bytes : op->weight_bytes;
}

/* Bytes of weights that one pass reads: active experts only, and of look-up tables a few rows. */
static double weights_read(const tv_case *c, tv_arena *scratch)
{
    const tv_graph *g = c->decode ? c->decode : c->graph;
    const tv_mark mark = tv_arena_mark(scratch);
    uint32_t *counts = tv_new(scratch, uint32_t, g->n_blocks + 1);
    tv_graph_counts(g, counts);
    double bytes = 0;
    for (size_t i = 0; i < g->n_ops; i++) {
        const tv_op *op = &g->ops[i];
        if (op->kind == TV_OP_EMBEDDING)
            continue;
        const double share =
            op->experts > 0 ? fmin(1, op->expert_top_k * c->job.batch / op->experts) : 1;
        bytes += stored_weights(g, op) * share * counts[op->block];
    }
    tv_arena_rewind(scratch, mark);
    return c->job.parallel.tp > 1 ? bytes / c->job.parallel.tp : bytes;
}

/* The card's 16-bit type. */
static tv_precision sixteen_on(const tv_device *d)
{
    return d->compute_capability == 0 || d->compute_capability >= 80 ? TV_PRECISION_BF16
                                                                     : TV_PRECISION_FP16;
}

static void effect(tv_arena *a, tv_arena *scratch, const tv_case *c, tv_precision precision,
                   tv_format_effect *row)
{
    tv_job job = c->job;
    job.precision = precision;
    job.kv = 0;
    tv_case *now = tv_new(a, tv_case, 1);
    *row = (tv_format_effect){.precision = precision};
    const tv_err *e = tv_predict_case(a, c->model, &job, c->machine, c->dataset, now);
    if (e) {
        row->why = e->what;
        return;
    }
    tv_memory memory;
    tv_time time = {0};
    tv_predict_memory(a, scratch, now, &memory);
    tv_predict_time(a, now, &memory, &time);
    const tv_fact bandwidth = c->machine->device->mem_bytes_per_s;
    row->runs = true;
    row->weights_bytes = memory.term_bytes[TV_TERM_WEIGHTS];
    row->total_bytes = memory.total_bytes;
    row->holds = memory.capacity_bytes > 0 && memory.total_bytes <= memory.capacity_bytes;
    row->bound_s = tv_known(bandwidth) ? weights_read(now, scratch) / bandwidth.v : 0;
    row->step_s = tv_known(time.itl_s) ? time.itl_s : time.step_s;
}

size_t tv_life_formats(tv_arena *a, tv_arena *scratch, const tv_case *c, tv_format_effect *rows)
{
    if (!c->machine->device || tv_job_trains(&c->job) || c->model->quant.method.n)
        return 0;
    const tv_precision formats[TV_LIFE_FORMATS] = {
        TV_PRECISION_FP32, sixteen_on(c->machine->device), TV_PRECISION_FP8, TV_PRECISION_INT8,
        TV_PRECISION_INT4,
    };
    for (size_t i = 0; i < TV_LIFE_FORMATS; i++)
        effect(a, scratch, c, formats[i], &rows[i]);
    return TV_LIFE_FORMATS;
}

/* ---- what is predicted anyway ---- */

void tv_predict_run(const tv_memory *m, tv_life phase, tv_life_need *out)
{
    *out = (tv_life_need){
        .phase = phase,
        .device_bytes = {.v = m->total_bytes,
                         .lo = m->low_bytes,
                         .hi = m->high_bytes,
                         .origin = TV_COMPUTED,
                         .source = TV_S("Memory")},
    };
}

tv_verdict tv_life_verdict(const tv_life_need *n, double capacity_bytes)
{
    if (!tv_known(n->device_bytes))
        return TV_FITS;
    if (!(capacity_bytes > 0))
        return TV_VERDICT_UNKNOWN;
    if (n->device_bytes.hi <= capacity_bytes)
        return TV_FITS;
    return n->device_bytes.lo <= capacity_bytes ? TV_TIGHT : TV_NO_FIT;
}
