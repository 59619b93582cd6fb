/* Memory while an engine is built. Nobody documents what a builder's kernels take while they are
 * timed, so the parts are bounded from what is documented and from logs of real builds; each
 * constant names its source in docs/model.md, "Build phases". */
#include "deploy.h"

#include <math.h>

#include "ledger.h"
#include "outside.h"

static const double gib = 1073741824.0;

/* ---- shapes ---- */

typedef struct extremes {
    double largest_io;     /* of one op: what it reads and writes */
    double largest_weight; /* of one op */
    double score_elements; /* of the largest attention, all heads and sequences */
} extremes;

/* Keys that an unfused kernel scores: a causal op counts only what it sees, half of them. */
static double keys_of(const tv_op *op)
{
    return op->n >= 0.5 * op->m.a ? fmax(op->n, op->m.a) : op->n;
}

static extremes extremes_of(const tv_case *c)
{
    const tv_graph *g = c->graph;
    const double batch = c->job.batch, split = c->job.parallel.tp > 1 ? c->job.parallel.tp : 1;
    extremes x = {0};
    for (size_t i = 0; i < g->n_ops; i++) {
        const tv_op *op = &g->ops[i];
        const double io =
            tv_form_at(op->read_bytes, batch, 0) + tv_form_at(op->write_bytes, batch, 0);
        x.largest_io = fmax(x.largest_io, io);
        x.largest_weight = fmax(x.largest_weight, op->weight_bytes);
        if (op->kind == TV_OP_ATTENTION)
            x.score_elements =
                fmax(x.score_elements, batch * op->m.a * keys_of(op) * op->groups / split);
    }
    return x;
}

/* ---- the parts ---- */

typedef struct parts {
    tv_arena *a;
    struct {
        tv_need_line *v;
        size_t n, cap;
    } lines;
    struct {
        tv_text *v;
        size_t n, cap;
    } notes;
} parts;

static tv_fact between(double low, double v, double high)
{
    return (tv_fact){.v = v,
                     .lo = low,
                     .hi = high,
                     .origin = TV_COMPUTED,
                     .tier = TV_TIER_PRIOR,
                     .source = TV_S("Build phases")};
}

static void part(parts *p, const char *name, bool host, tv_fact bytes)
{
    if (bytes.hi > 0)
        *tv_push(p->a, &p->lines) = (tv_need_line){name, host, bytes};
}

static void note(parts *p, tv_text t)
{
    *tv_push(p->a, &p->notes) = t;
}

/* The parts may all be at their worst at once, and are then not independent: bounds add. */
static tv_fact total(const parts *p, bool host)
{
    tv_fact sum = between(0, 0, 0);
    for (size_t i = 0; i < p->lines.n; i++) {
        const tv_need_line *l = &p->lines.v[i];
        if (l->host != host)
            continue;
        sum.v += l->bytes.v;
        sum.lo += l->bytes.lo;
        sum.hi += l->bytes.hi;
    }
    return sum.v > 0 ? sum : (tv_fact){0};
}

static void finish(const parts *p, tv_life_need *out)
{
    out->device_bytes = total(p, false);
    out->host_bytes = total(p, true);
    out->lines = p->lines.v;
    out->n_lines = p->lines.n;
    out->notes = p->notes.v;
    out->n_notes = p->notes.n;
}

static void context_part(parts *p, const tv_device *d)
{
    const tv_range r = tv_outside_context(d);
    part(p, N_("driver context"), false, between(r.lo, r.v, r.hi));
}

/* What a process of the framework holds before any model: torch with CUDA libraries mapped. */
static void process_part(parts *p)
{
    part(p, N_("the process itself"), true, between(0.4 * gib, 0.6 * gib, 3 * gib));
}

typedef struct run_bytes {
    double weights, moving; /* moving: activations, logits and what ops hold while they run */
} run_bytes;

static run_bytes run_of(tv_arena *scratch, const tv_case *c)
{
    const tv_walk w = tv_memory_walk(scratch, c, c->job.batch, false);
    return (run_bytes){
        .weights = w.term_bytes[TV_TERM_WEIGHTS],
        .moving = w.term_bytes[TV_TERM_ACTIVATIONS] + w.term_bytes[TV_TERM_LOGITS] +
                  w.term_bytes[TV_TERM_TEMPORARIES],
    };
}

/* ---- TensorRT ---- */

/* "Init builder kernel library" of published build logs: 312 and 428 MiB on Ampere and Ada, 80 MiB
 * on Volta; older versions load cuDNN and cuBLAS instead, 423 MiB. */
static tv_fact builder_library(const tv_device *d)
{
    const double usual = d && d->compute_capability && d->compute_capability < 80 ? 0.08 : 0.36;
    return between(0.08 * gib, usual * gib, 0.45 * gib);
}

/* Paddle's own default, as its configuration object holds it (1 << 30). */
static double workspace_limit(const tv_deploy *d)
{
    if (d->workspace_bytes > 0)
        return d->workspace_bytes;
    return d->target == TV_TARGET_PADDLE_TENSORRT ? gib : 0;
}

static double at_most(double v, double limit)
{
    return limit > 0 ? fmin(v, limit) : v;
}

/* What the kernels that are timed take beside inputs and outputs. Usual: one copy of the largest
 * tensors in another layout, or the score matrix of an attention that was not fused. At worst the
 * scores in fp32 with their softmax, and two copies. */
static tv_fact tactic_scratch(const tv_case *c, const extremes *x, double limit)
{
    const double scores = x->score_elements * tv_dtype_bytes(c->policy.stream);
    const double worst = fmax(2 * 4 * x->score_elements, 2 * x->largest_io);
    return between(0, at_most(fmax(scores, x->largest_io), limit), at_most(worst, limit));
}

static void workspace_notes(parts *p, const tv_case *c, double limit, double scores)
{
    tv_arena *a = p->a;
    if (limit > 0 && scores > limit)
        note(p, TV_TEXT(a, "build.workspace-small",
                        N_("the attention scores alone are {scores}: with a workspace of {limit} "
                           "a kernel that does not fuse them is left out, and without a fused one "
                           "the build fails"),
                        tv_arg_num("scores", TV_ARG_MEMORY, scores),
                        tv_arg_num("limit", TV_ARG_MEMORY, limit)));
    if (limit > 0)
        return;
    const tv_device *device = c->machine->device;
    note(p, TV_TEXT(a, "build.workspace-default",
                    N_("without --workspace the builder tries every kernel that the free memory "
                       "of {gpu} lets it and skips the rest, so a monitor may show the card full; "
                       "the figure is what it needs"),
                    tv_arg_str("gpu", device ? device->name : TV_S("?"))));
}

/* Returns what the timed kernels take. */
static tv_fact tensorrt_device(parts *p, const tv_case *c, const tv_deploy *d, run_bytes run,
                               double source_bytes)
{
    const extremes x = extremes_of(c);
    const double limit = workspace_limit(d), e = tv_dtype_bytes(c->policy.stream);
    const bool paddle = d->target == TV_TARGET_PADDLE_TENSORRT;
    context_part(p, c->machine->device);
    part(p, N_("builder's kernels"), false, builder_library(c->machine->device));
    part(p, N_("weights of the engine, and their copy while it is built"), false,
         between(run.weights, 2 * run.weights, 2 * run.weights + x.largest_weight));
    if (paddle)
        part(p, N_("weights of the program, dropped afterwards"), false,
             between(source_bytes / 2, source_bytes, source_bytes));
    part(p, N_("tensors at the largest shapes"), false,
         between(fmin(x.largest_io, run.moving), run.moving,
                 run.moving * (e > 0 && e < 4 ? 4 / e : 1)));
    const tv_fact scratch = tactic_scratch(c, &x, limit);
    part(p, N_("scratch of the kernels that are timed"), false, scratch);
    workspace_notes(p, c, limit, x.score_elements * e);
    return scratch;
}

/* NVIDIA: at least two copies of the weights, the network's and the engine's; Torch-TensorRT
 * measured once the weights and 2 GB at the least, five times at the most. */
static void tensorrt_host(parts *p, double source_bytes, double engine_bytes)
{
    process_part(p);
    part(p, N_("weights of the network"), true, between(0, source_bytes, 3 * source_bytes));
    part(p, N_("weights of the engine and its file"), true,
         between(engine_bytes, 2 * engine_bytes, 2 * engine_bytes + source_bytes));
    part(p, N_("builder's working memory"), true, between(1.8e9, 2.2e9, 3.4e9));
}

static void build_tensorrt(parts *p, const tv_case *c, const tv_deploy *d, run_bytes run,
                           double source_bytes, tv_life_need *out)
{
    const tv_fact scratch = tensorrt_device(p, c, d, run, source_bytes);
    tensorrt_host(p, source_bytes, run.weights);
    const double limit = workspace_limit(d);
    const tv_device *device = c->machine->device;
    finish(p, out);
    out->disk_bytes = between(run.weights, run.weights, 1.1 * run.weights);
    if (limit > 0)
        out->ceiling_bytes = out->device_bytes.v - scratch.v + limit;
    else if (device)
        out->ceiling_bytes = tv_device_memory(device);
    if (out->ceiling_bytes < out->device_bytes.v)
        out->ceiling_bytes = 0;
}

/* ---- the others ---- */

/* Triton's timing clears the second-level cache with a buffer of this size. */
#define TIMING_BUFFER_BYTES 256e6

static void build_compile(parts *p, const tv_case *c, run_bytes run, double source_bytes)
{
    const extremes x = extremes_of(c);
    context_part(p, c->machine->device);
    part(p, N_("weights"), false, between(run.weights, run.weights, run.weights));
    part(p, N_("tensors at the largest shapes"), false,
         between(run.moving, run.moving, run.moving));
    part(p, N_("operands of the kernels that are timed"), false,
         between(0, x.largest_io + x.largest_weight + TIMING_BUFFER_BYTES,
                 2 * (x.largest_io + x.largest_weight) + TIMING_BUFFER_BYTES));
    part(p, N_("pool of recorded CUDA graphs"), false, between(0, 0, run.moving));
    process_part(p);
    part(p, N_("weights"), true, between(0, source_bytes, source_bytes));
    part(p, N_("compiler processes"), true, between(0.5 * gib, 2 * gib, 12 * gib));
    note(p, TV_TEXT0("build.compile",
                     N_("kernels are timed with mode max-autotune only; modes that record CUDA "
                        "graphs keep a second pool of activations")));
}

static void build_paddle(parts *p, const tv_case *c, run_bytes run, double source_bytes)
{
    const bool casts = source_bytes > 1.5 * run.weights;
    context_part(p, c->machine->device);
    part(p, N_("weights of the engine"), false, between(run.weights, run.weights, run.weights));
    if (casts)
        part(p, N_("weights of the program, dropped afterwards"), false,
             between(0, source_bytes, source_bytes));
    part(p, N_("tensors at the largest shapes"), false, between(0, run.moving, run.moving));
    process_part(p);
    part(p, N_("weights of the program"), true, between(0, source_bytes, 2 * source_bytes));
}

/* A note for those that have no build of their own. */
static void no_build(parts *p, tv_target target)
{
    if (target == TV_TARGET_VLLM)
        note(p, TV_TEXT0("build.vllm", N_("vLLM compiles and records its graphs when it starts, "
                                          "inside the share of the card that it is given")));
}

void tv_predict_build(tv_arena *a, tv_arena *scratch, const tv_case *serve, const tv_deploy *d,
                      double source_bytes, tv_life_need *out)
{
    parts p = {.a = a};
    *out = (tv_life_need){.phase = TV_LIFE_BUILD};
    const run_bytes run = run_of(scratch, serve);
    switch (d->target) {
    case TV_TARGET_TENSORRT:
    case TV_TARGET_PADDLE_TENSORRT:
        build_tensorrt(&p, serve, d, run, source_bytes, out);
        return;
    case TV_TARGET_COMPILE:
        build_compile(&p, serve, run, source_bytes);
        break;
    case TV_TARGET_PADDLE_INFERENCE:
        build_paddle(&p, serve, run, source_bytes);
        break;
    case TV_TARGET_UNSAID:
    case TV_TARGET_NONE:
    case TV_TARGET_TORCHSCRIPT:
    case TV_TARGET_TORCH_EXPORT:
    case TV_TARGET_ONNX:
    case TV_TARGET_VLLM:
    case TV_TARGET_LLAMA_CPP:
    case TV_TARGET_COUNT:
        no_build(&p, d->target);
        break;
    }
    finish(&p, out);
}

/* ---- exporting ---- */

/* Extra copies of the weights in main memory, measured (docs/model.md, "Build phases"). */
typedef struct copies {
    double low, usual, high;
    double fixed_bytes;
} copies;

/* One protobuf message holds 2 GiB: larger weights go to files of their own and are not copied
 * into the message. */
#define PROTOBUF_BYTES 2147483648.0

static copies copies_of(tv_target target, double source_bytes)
{
    const bool inside = source_bytes < PROTOBUF_BYTES;
    switch (target) {
    case TV_TARGET_ONNX:
    case TV_TARGET_TENSORRT:
        return inside ? (copies){0.01, 3.1, 4.1, 0} : (copies){0.01, 0.7, 1.1, 0};
    case TV_TARGET_TORCHSCRIPT:
        return (copies){0.04, 0.11, 1, 0};
    case TV_TARGET_TORCH_EXPORT:
        return (copies){0, 0, 1, 0.24e9};
    case TV_TARGET_PADDLE_INFERENCE:
    case TV_TARGET_PADDLE_TENSORRT:
        return (copies){0.02, 0.05, 2, 0};
    case TV_TARGET_VLLM:
    case TV_TARGET_LLAMA_CPP:
        return (copies){0, 0.1, 1, 0};
    case TV_TARGET_UNSAID:
    case TV_TARGET_NONE:
    case TV_TARGET_COMPILE:
    case TV_TARGET_COUNT:
        break;
    }
    return (copies){0};
}

static bool exports(tv_target target)
{
    return target != TV_TARGET_UNSAID && target != TV_TARGET_NONE && target != TV_TARGET_COMPILE &&
           target != TV_TARGET_COUNT;
}

/* Tracing runs the module once on example inputs, on the card if the module is there; symbolic
 * exporters (torch.export, paddle.jit) run nothing. */
static void tracing_parts(parts *p, tv_arena *scratch, const tv_case *serve, tv_target target,
                          double source_bytes)
{
    const bool traces =
        target == TV_TARGET_ONNX || target == TV_TARGET_TENSORRT || target == TV_TARGET_TORCHSCRIPT;
    tv_case one = *serve;
    one.job.batch = 1;
    const run_bytes run = run_of(scratch, &one);
    const double e = tv_dtype_bytes(serve->policy.stream);
    const double wide = run.weights > 0 && e > 0 ? fmax(1, source_bytes / run.weights) : 1;
    const tv_range r = tv_outside_context(serve->machine->device);
    part(p, N_("driver context"), false, between(0, r.v, r.hi));
    part(p, N_("weights"), false, between(0, source_bytes, source_bytes));
    part(p, N_("one pass over an example"), false,
         between(0, traces ? run.moving * wide : 0, run.moving * wide));
    note(p, TV_TEXT0("export.device", N_("on the card only where the module is there; "
                                         "module.cpu() before exporting needs none of it")));
}

static void export_notes(parts *p, tv_target target, double source_bytes)
{
    tv_arena *a = p->a;
    const bool onnx = target == TV_TARGET_ONNX || target == TV_TARGET_TENSORRT;
    if (onnx && source_bytes >= PROTOBUF_BYTES)
        note(p, TV_TEXT(a, "export.external",
                        N_("{bytes} of weights are more than the 2 GiB of one protobuf message: "
                           "they go to external data files beside the .onnx file, which must stay "
                           "together"),
                        tv_arg_num("bytes", TV_ARG_MEMORY, source_bytes)));
    else if (onnx)
        note(p, TV_TEXT0("export.onnx", N_("the TorchScript exporter copies the weights three "
                                           "times; dynamo=True copies none")));
    if (target == TV_TARGET_PADDLE_INFERENCE || target == TV_TARGET_PADDLE_TENSORRT)
        note(p,
             TV_TEXT0("export.paddle", N_("paddle.jit.to_static turns the model into a program and "
                                          "paddle.jit.save writes it; no step is run")));
}

void tv_predict_export(tv_arena *a, tv_arena *scratch, const tv_case *serve, const tv_deploy *d,
                       double source_bytes, tv_life_need *out)
{
    parts p = {.a = a};
    *out = (tv_life_need){.phase = TV_LIFE_EXPORT};
    if (!exports(d->target))
        return;
    const copies k = copies_of(d->target, source_bytes);
    process_part(&p);
    part(&p, N_("weights"), true, between(source_bytes, source_bytes, source_bytes));
    part(&p, N_("copies while exporting"), true,
         between(k.low * source_bytes, k.usual * source_bytes + k.fixed_bytes,
                 k.high * source_bytes + k.fixed_bytes));
    if (d->target != TV_TARGET_VLLM && d->target != TV_TARGET_LLAMA_CPP)
        tracing_parts(&p, scratch, serve, d->target, source_bytes);
    export_notes(&p, d->target, source_bytes);
    finish(&p, out);
    out->disk_bytes = between(source_bytes, source_bytes, 1.02 * source_bytes);
}

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
