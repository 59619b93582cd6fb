/* Memory while an engine is built. Nobody documents what a builder's kernels take while they are
 * timed, so the parts are bounded from what is documented and from logs of real builds; each
 * constant names its source in docs/model.md, "Build phases". */
#include "deploy.h"

#include <math.h>

#include "need_parts.h"

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

/* ---- TensorRT ---- */

/* "Init builder kernel library" of published build logs: 312 and 428 MiB on Ampere and Ada, 80 MiB
 * on Volta; older versions load cuDNN and cuBLAS instead, 423 MiB. */
static tv_fact builder_library(const tv_device *d)
{
    const double usual = d && d->compute_capability && d->compute_capability < 80 ? 0.08 : 0.36;
    return tv_between(0.08 * gib, usual * gib, 0.45 * gib);
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
    return tv_between(0, at_most(fmax(scores, x->largest_io), limit), at_most(worst, limit));
}

static void workspace_notes(tv_parts *p, const tv_case *c, double limit, double scores)
{
    tv_arena *a = p->a;
    if (limit > 0 && scores > limit)
        tv_part_note(
            p, TV_TEXT(a, "build.workspace-small",
                       N_("the attention scores alone are {scores}: with a workspace of {limit} "
                          "a kernel that does not fuse them is left out, and without a fused one "
                          "the build fails"),
                       tv_arg_num("scores", TV_ARG_MEMORY, scores),
                       tv_arg_num("limit", TV_ARG_MEMORY, limit)));
    if (limit > 0)
        return;
    const tv_device *device = c->machine->device;
    tv_part_note(
        p, TV_TEXT(a, "build.workspace-default",
                   N_("without --workspace the builder tries every kernel that the free memory "
                      "of {gpu} lets it and skips the rest, so a monitor may show the card full; "
                      "the figure is what it needs"),
                   tv_arg_str("gpu", device ? device->name : TV_S("?"))));
}

/* Returns what the timed kernels take. */
static tv_fact tensorrt_device(tv_parts *p, const tv_case *c, const tv_deploy *d, tv_run_bytes run,
                               double source_bytes)
{
    const extremes x = extremes_of(c);
    const double limit = workspace_limit(d), e = tv_dtype_bytes(c->policy.stream);
    const bool paddle = d->target == TV_TARGET_PADDLE_TENSORRT;
    tv_part_context(p, c->machine->device);
    tv_part_add(p, N_("builder's kernels"), false, builder_library(c->machine->device));
    tv_part_add(p, N_("weights of the engine, and their copy while it is built"), false,
                tv_between(run.weights, 2 * run.weights, 2 * run.weights + x.largest_weight));
    if (paddle)
        tv_part_add(p, N_("weights of the program, dropped afterwards"), false,
                    tv_between(source_bytes / 2, source_bytes, source_bytes));
    tv_part_add(p, N_("tensors at the largest shapes"), false,
                tv_between(fmin(x.largest_io, run.moving), run.moving,
                           run.moving * (e > 0 && e < 4 ? 4 / e : 1)));
    const tv_fact scratch = tactic_scratch(c, &x, limit);
    tv_part_add(p, N_("scratch of the kernels that are timed"), false, scratch);
    workspace_notes(p, c, limit, x.score_elements * e);
    return scratch;
}

/* NVIDIA: at least two copies of the weights, the network's and the engine's; Torch-TensorRT
 * measured once the weights and 2 GB at the least, five times at the most. */
static void tensorrt_host(tv_parts *p, double source_bytes, double engine_bytes)
{
    tv_part_process(p);
    tv_part_add(p, N_("weights of the network"), true,
                tv_between(0, source_bytes, 3 * source_bytes));
    tv_part_add(p, N_("weights of the engine and its file"), true,
                tv_between(engine_bytes, 2 * engine_bytes, 2 * engine_bytes + source_bytes));
    tv_part_add(p, N_("builder's working memory"), true, tv_between(1.8e9, 2.2e9, 3.4e9));
}

static void build_tensorrt(tv_parts *p, const tv_case *c, const tv_deploy *d, tv_run_bytes run,
                           double source_bytes, tv_life_need *out)
{
    const tv_fact scratch = tensorrt_device(p, c, d, run, source_bytes);
    tensorrt_host(p, source_bytes, run.weights);
    const double limit = workspace_limit(d);
    const tv_device *device = c->machine->device;
    tv_parts_finish(p, out);
    out->disk_bytes = tv_between(run.weights, run.weights, 1.1 * run.weights);
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

static void build_compile(tv_parts *p, const tv_case *c, tv_run_bytes run, double source_bytes)
{
    const extremes x = extremes_of(c);
    tv_part_context(p, c->machine->device);
    tv_part_add(p, N_("weights"), false, tv_between(run.weights, run.weights, run.weights));
    tv_part_add(p, N_("tensors at the largest shapes"), false,
                tv_between(run.moving, run.moving, run.moving));
    tv_part_add(p, N_("operands of the kernels that are timed"), false,
                tv_between(0, x.largest_io + x.largest_weight + TIMING_BUFFER_BYTES,
                           2 * (x.largest_io + x.largest_weight) + TIMING_BUFFER_BYTES));
    tv_part_add(p, N_("pool of recorded CUDA graphs"), false, tv_between(0, 0, run.moving));
    tv_part_process(p);
    tv_part_add(p, N_("weights"), true, tv_between(0, source_bytes, source_bytes));
    tv_part_add(p, N_("compiler processes"), true, tv_between(0.5 * gib, 2 * gib, 12 * gib));
    tv_part_note(
        p, TV_TEXT0("build.compile",
                    N_("kernels are timed with mode max-autotune only; modes that record CUDA "
                       "graphs keep a second pool of activations")));
}

static void build_paddle(tv_parts *p, const tv_case *c, tv_run_bytes run, double source_bytes)
{
    const bool casts = source_bytes > 1.5 * run.weights;
    tv_part_context(p, c->machine->device);
    tv_part_add(p, N_("weights of the engine"), false,
                tv_between(run.weights, run.weights, run.weights));
    if (casts)
        tv_part_add(p, N_("weights of the program, dropped afterwards"), false,
                    tv_between(0, source_bytes, source_bytes));
    tv_part_add(p, N_("tensors at the largest shapes"), false,
                tv_between(0, run.moving, run.moving));
    tv_part_process(p);
    tv_part_add(p, N_("weights of the program"), true,
                tv_between(0, source_bytes, 2 * source_bytes));
}

/* A note for those that have no build of their own. */
static void no_build(tv_parts *p, tv_target target)
{
    if (target == TV_TARGET_VLLM)
        tv_part_note(
            p, TV_TEXT0("build.vllm", N_("vLLM compiles and records its graphs when it starts, "
                                         "inside the share of the card that it is given")));
}

void tv_predict_build(tv_arena *a, tv_arena *scratch, const tv_case *serve, const tv_deploy *d,
                      double source_bytes, tv_life_need *out)
{
    tv_parts p = {.a = a};
    *out = (tv_life_need){.phase = TV_LIFE_BUILD};
    const tv_run_bytes run = tv_run_bytes_of(scratch, serve);
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
    tv_parts_finish(&p, out);
}
