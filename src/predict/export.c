/* Memory while a model is exported, or turned from dynamic to static: host work, whose copies of
 * the weights were measured. docs/model.md, "Build phases". */
#include "deploy.h"

#include <math.h>

#include "need_parts.h"
#include "outside.h"

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
static void tracing_parts(tv_parts *p, tv_arena *scratch, const tv_case *serve, tv_target target,
                          double source_bytes)
{
    const bool traces =
        target == TV_TARGET_ONNX || target == TV_TARGET_TENSORRT || target == TV_TARGET_TORCHSCRIPT;
    tv_case one = *serve;
    one.job.batch = 1;
    const tv_run_bytes run = tv_run_bytes_of(scratch, &one);
    const double e = tv_dtype_bytes(serve->policy.stream);
    const double wide = run.weights > 0 && e > 0 ? fmax(1, source_bytes / run.weights) : 1;
    const tv_range r = tv_outside_context(serve->machine->device);
    tv_part_add(p, N_("driver context"), false, tv_between(0, r.v, r.hi));
    tv_part_add(p, N_("weights"), false, tv_between(0, source_bytes, source_bytes));
    tv_part_add(p, N_("one pass over an example"), false,
                tv_between(0, traces ? run.moving * wide : 0, run.moving * wide));
    tv_part_note(p, TV_TEXT0("export.device", N_("exporting takes room on the card only where the "
                                                 "model is there: on the CPU it takes none")));
}

static void export_notes(tv_parts *p, tv_target target, double source_bytes)
{
    tv_arena *a = p->a;
    const bool onnx = target == TV_TARGET_ONNX || target == TV_TARGET_TENSORRT;
    if (onnx && source_bytes >= PROTOBUF_BYTES)
        tv_part_note(
            p, TV_TEXT(a, "export.external",
                       N_("{bytes} of weights are more than the 2 GiB of one protobuf message: "
                          "they go to external data files beside the .onnx file, which must stay "
                          "together"),
                       tv_arg_num("bytes", TV_ARG_MEMORY, source_bytes)));
    else if (onnx)
        tv_part_note(p,
                     TV_TEXT0("export.onnx", N_("the TorchScript exporter copies the weights three "
                                                "times; dynamo=True copies none")));
    if (target == TV_TARGET_PADDLE_INFERENCE || target == TV_TARGET_PADDLE_TENSORRT)
        tv_part_note(p, TV_TEXT0("export.paddle",
                                 N_("paddle.jit.to_static turns the model into a program and "
                                    "paddle.jit.save writes it; no step is run")));
}

void tv_predict_export(tv_arena *a, tv_arena *scratch, const tv_case *serve, const tv_deploy *d,
                       double source_bytes, tv_life_need *out)
{
    tv_parts p = {.a = a};
    *out = (tv_life_need){.phase = TV_LIFE_EXPORT};
    if (!exports(d->target))
        return;
    const copies k = copies_of(d->target, source_bytes);
    tv_part_process(&p);
    tv_part_add(&p, N_("weights"), true, tv_between(source_bytes, source_bytes, source_bytes));
    tv_part_add(&p, N_("copies while exporting"), true,
                tv_between(k.low * source_bytes, k.usual * source_bytes + k.fixed_bytes,
                           k.high * source_bytes + k.fixed_bytes));
    if (d->target != TV_TARGET_VLLM && d->target != TV_TARGET_LLAMA_CPP)
        tracing_parts(&p, scratch, serve, d->target, source_bytes);
    export_notes(&p, d->target, source_bytes);
    tv_parts_finish(&p, out);
    out->disk_bytes = tv_between(source_bytes, source_bytes, 1.02 * source_bytes);
}
