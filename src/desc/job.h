/* The job as asked: what to run, how, on how much data. Filled from the options; the zero value
 * of a field means "not said". What the program assumed for it is listed in defaults. */
#ifndef TV_JOB_H
#define TV_JOB_H

#include "base/text.h"
#include "policy.h"

typedef enum tv_task {
    TV_TASK_DEFAULT,
    TV_TASK_TRAIN,
    TV_TASK_FINETUNE,
    TV_TASK_LORA,
    TV_TASK_QLORA,
    TV_TASK_INFER,
    TV_TASK_SERVE,
} tv_task;

typedef enum tv_engine {
    TV_ENGINE_EAGER,
    TV_ENGINE_COMPILE,
    TV_ENGINE_VLLM,
    TV_ENGINE_LLAMA_CPP,
    TV_ENGINE_TENSORRT,
    TV_ENGINE_PADDLE_INFERENCE,
} tv_engine;

typedef enum tv_optimizer {
    TV_OPT_DEFAULT, /* adamw */
    TV_OPT_ADAMW,
    TV_OPT_ADAM,
    TV_OPT_AMSGRAD,
    TV_OPT_SGD,
    TV_OPT_MOMENTUM,
    TV_OPT_ADAFACTOR,
    TV_OPT_LION,
    TV_OPT_ADAMW8BIT,
    TV_OPT_LION8BIT,
    TV_OPT_MUON,
    TV_OPT_COUNT,
} tv_optimizer;

typedef enum tv_optimizer_form {
    TV_FORM_DEFAULT,
    TV_FORM_FOREACH,
    TV_FORM_FUSED,
    TV_FORM_LOOP
} tv_optimizer_form;

typedef enum tv_recompute {
    TV_RECOMPUTE_NONE,
    TV_RECOMPUTE_SELECTIVE,
    TV_RECOMPUTE_FULL
} tv_recompute;

typedef enum tv_attention_impl {
    TV_ATTENTION_DEFAULT, /* sdpa: flash where the card and the dtype allow it, else efficient */
    TV_ATTENTION_EAGER,
    TV_ATTENTION_SDPA,
    TV_ATTENTION_FLASH,
} tv_attention_impl;

typedef enum tv_loss_variant { TV_LOSS_STANDARD, TV_LOSS_CHUNKED, TV_LOSS_FUSED } tv_loss_variant;

typedef enum tv_strategy {
    TV_STRATEGY_DEFAULT, /* ddp */
    TV_STRATEGY_DDP,
    TV_STRATEGY_ZERO1,
    TV_STRATEGY_ZERO2,
    TV_STRATEGY_ZERO3,
    TV_STRATEGY_FSDP,
    TV_STRATEGY_HSDP,
} tv_strategy;

typedef enum tv_adapter_use {
    TV_ADAPTER_DEFAULT, /* beside: as it is loaded */
    TV_ADAPTER_BESIDE,
    TV_ADAPTER_MERGED,
} tv_adapter_use;

typedef struct tv_parallel {
    uint32_t tp, pp, cp, ep; /* 0 or 1: not used */
} tv_parallel;

typedef struct tv_job {
    tv_task task;
    tv_framework framework;
    tv_engine engine;
    tv_precision precision;
    uint32_t batch; /* per GPU; sequences at once when serving */
    uint32_t accum; /* micro-batches per step */
    uint32_t seq;
    uint32_t gen; /* tokens to generate */
    uint32_t image_h, image_w;
    tv_optimizer optimizer;
    tv_optimizer_form optimizer_form;
    tv_recompute recompute;
    tv_attention_impl attention;
    tv_loss_variant loss;
    tv_strategy strategy;
    tv_parallel parallel;
    int master; /* fp32 master copy and fp32 moments beside 16-bit parameters: 1 yes, 2 yes and fp32
                   gradients that stay (Megatron's main_grad), -1 no, 0 as
                   the precision and the framework imply */
    bool logits_all; /* prefill computes the logits of every position (transformers before 4.45) */
    tv_dtype lora_dtype; /* of adapters; unknown: fp32, as PEFT makes them */
    uint32_t lora_rank;
    tv_str
        lora_targets; /* comma-separated globs over module paths; empty: every linear of the body */
    double lora_dropout;
    tv_adapter_use adapter; /* of a model that is one: how inference runs it */
    double dropout;         /* < 0: as the model's configuration says; >= 0 overrides it */
    tv_dtype kv;
    double samples; /* in the data set */
    double epochs;
    double sample_bytes;
    tv_str data_dir;
    uint32_t loader_workers, prefetch;
    double checkpoint_hours;
    /* names of fields that nobody stated, with what was taken: shown in the report */
    const tv_text *defaults;
    size_t n_defaults;
} tv_job;

static inline bool tv_job_trains(const tv_job *job)
{
    return job->task == TV_TASK_TRAIN || job->task == TV_TASK_FINETUNE ||
           job->task == TV_TASK_LORA || job->task == TV_TASK_QLORA;
}

static inline bool tv_job_adapts(const tv_job *job)
{
    return job->task == TV_TASK_LORA || job->task == TV_TASK_QLORA;
}

/* The interface's words for each enumeration; unknown words give found = false. */
typedef struct tv_word {
    int value;
    bool found;
} tv_word;

const char *tv_task_name(tv_task v);
const char *tv_engine_name(tv_engine v);
const char *tv_optimizer_name(tv_optimizer v);
const char *tv_recompute_name(tv_recompute v);
const char *tv_attention_name(tv_attention_impl v);
const char *tv_loss_name(tv_loss_variant v);
const char *tv_strategy_name(tv_strategy v);
const char *tv_precision_name(tv_precision v);
const char *tv_framework_name(tv_framework v);

#endif
