/* The interface's word for each enumeration of the nouns. */
#include "desc/device.h"
#include "desc/estimate.h"
#include "desc/fact.h"
#include "desc/job.h"

const char *tv_origin_name(tv_origin origin)
{
    switch (origin) {
    case TV_UNKNOWN:
        return "unknown";
    case TV_ASSUMED:
        return "assumed";
    case TV_CATALOG:
        return "catalog";
    case TV_STATED:
        return "stated";
    case TV_COMPUTED:
        return "computed";
    case TV_MEASURED:
        return "measured";
    }
    return "unknown";
}

const char *tv_task_name(tv_task v)
{
    static const char *const names[] = {"", "train", "finetune", "lora", "qlora", "infer", "serve"};
    return names[v];
}

const char *tv_engine_name(tv_engine v)
{
    static const char *const names[] = {"eager",     "compile",  "vllm",
                                        "llama.cpp", "tensorrt", "paddle-inference"};
    return names[v];
}

const char *tv_optimizer_name(tv_optimizer v)
{
    static const char *const names[TV_OPT_COUNT] = {
        "",          "adamw", "adam",      "amsgrad",  "sgd",  "momentum",
        "adafactor", "lion",  "adamw8bit", "lion8bit", "muon",
    };
    return names[v];
}

const char *tv_recompute_name(tv_recompute v)
{
    static const char *const names[] = {"none", "selective", "full"};
    return names[v];
}

const char *tv_attention_name(tv_attention_impl v)
{
    static const char *const names[] = {"", "eager", "sdpa", "flash"};
    return names[v];
}

const char *tv_loss_name(tv_loss_variant v)
{
    static const char *const names[] = {"standard", "chunked", "fused"};
    return names[v];
}

const char *tv_strategy_name(tv_strategy v)
{
    static const char *const names[] = {"", "ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"};
    return names[v];
}

const char *tv_precision_name(tv_precision v)
{
    static const char *const names[TV_PRECISION_COUNT] = {
        "",     "fp32", "tf32", "amp-fp16", "amp-bf16", "bf16",
        "fp16", "fp8",  "int8", "int4",     "nf4",      "as-stored",
    };
    return names[v];
}

const char *tv_framework_name(tv_framework v)
{
    static const char *const names[] = {"", "torch", "paddle"};
    return names[v];
}

const char *tv_bound_name(tv_bound b)
{
    static const char *const names[TV_BOUND_COUNT] = {
        "unknown",       "compute", "memory-bandwidth", "launch",
        "communication", "storage", "decode",           "host-copy",
    };
    return names[b];
}

typedef struct rate_words {
    const char *key;
    const char *name;
} rate_words;

static const rate_words rates[TV_RATE_COUNT] = {
    [TV_RATE_FP64] = {"fp64", N_("FP64")},
    [TV_RATE_FP64_TENSOR] = {"fp64_tensor", N_("FP64 tensor")},
    [TV_RATE_FP32] = {"fp32", N_("FP32")},
    [TV_RATE_TF32] = {"tf32", N_("TF32 tensor")},
    [TV_RATE_FP16] = {"fp16", N_("FP16, no tensor cores")},
    [TV_RATE_FP16_TENSOR] = {"fp16_tensor", N_("FP16 tensor, FP32 accumulate")},
    [TV_RATE_FP16_TENSOR_FP16] = {"fp16_tensor_fp16acc", N_("FP16 tensor, FP16 accumulate")},
    [TV_RATE_BF16_TENSOR] = {"bf16_tensor", N_("BF16 tensor")},
    [TV_RATE_FP8_TENSOR] = {"fp8_tensor", N_("FP8 tensor, FP32 accumulate")},
    [TV_RATE_FP8_TENSOR_FP16] = {"fp8_tensor_fp16acc", N_("FP8 tensor, FP16 accumulate")},
    [TV_RATE_FP6_TENSOR] = {"fp6_tensor", N_("FP6 tensor")},
    [TV_RATE_FP4_TENSOR] = {"fp4_tensor", N_("FP4 tensor")},
    [TV_RATE_INT8_TENSOR] = {"int8_tensor", N_("INT8 tensor")},
    [TV_RATE_INT8_DP4A] = {"int8_dp4a", N_("INT8, no tensor cores")},
};

const char *tv_rate_name(tv_rate r)
{
    return rates[r].name;
}

const char *tv_rate_key(tv_rate r)
{
    return rates[r].key;
}

const char *tv_term_label(tv_term term)
{
    static const char *const labels[TV_TERM_COUNT] = {
        [TV_TERM_WEIGHTS] = N_("weights"),
        [TV_TERM_GRADIENTS] = N_("gradients"),
        [TV_TERM_OPTIMIZER] = N_("optimizer states"),
        [TV_TERM_ACTIVATIONS] = N_("activations"),
        [TV_TERM_LOGITS] = N_("logits and loss"),
        [TV_TERM_KV] = N_("KV cache"),
        [TV_TERM_COMM_BUFFERS] = N_("communication buffers"),
        [TV_TERM_TEMPORARIES] = N_("temporaries"),
        [TV_TERM_WORKSPACE] = N_("workspace"),
    };
    return labels[term];
}
