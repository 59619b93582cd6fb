/* The phases of a model's life after training: exported, built into an engine, served. Each needs
 * memory of its own, on the card and on the host; a plan must hold the most demanding one. */
#ifndef TV_LIFE_H
#define TV_LIFE_H

#include "fact.h"
#include "policy.h"

typedef enum tv_life {
    TV_LIFE_TRAIN,
    TV_LIFE_VALIDATE,
    TV_LIFE_EXPORT, /* to a file that another program reads, or dynamic to static */
    TV_LIFE_BUILD,  /* the engine chooses and times its kernels */
    TV_LIFE_SERVE,
    TV_LIFE_COUNT,
} tv_life;

/* What the trained model is turned into. */
typedef enum tv_target {
    TV_TARGET_UNSAID,
    TV_TARGET_NONE, /* it stays in the framework */
    TV_TARGET_TORCHSCRIPT,
    TV_TARGET_TORCH_EXPORT,
    TV_TARGET_ONNX,
    TV_TARGET_COMPILE,
    TV_TARGET_TENSORRT,
    TV_TARGET_PADDLE_INFERENCE,
    TV_TARGET_PADDLE_TENSORRT, /* Paddle Inference with TensorRT subgraphs */
    TV_TARGET_VLLM,
    TV_TARGET_LLAMA_CPP,
    TV_TARGET_COUNT,
} tv_target;

typedef struct tv_deploy {
    tv_target target;
    tv_precision precision; /* of what is served; default: chosen by the card */
    uint32_t max_batch;     /* the largest shapes that the engine must run; 0: as the job's */
    uint32_t max_seq;
    double workspace_bytes; /* what one kernel of the builder may take; 0: the engine's default */
} tv_deploy;

/* A part of what a phase needs. */
typedef struct tv_need_line {
    const char *name; /* msgid */
    bool host;
    tv_fact bytes;
} tv_need_line;

typedef struct tv_life_need {
    tv_life phase;
    tv_fact device_bytes; /* on one card; unknown: the phase does not exist */
    tv_fact host_bytes;   /* main memory of the process; unknown: not estimated */
    tv_fact disk_bytes;   /* what it writes */
    double ceiling_bytes; /* what the builder may take on the card although less would do; 0: no
                             more than device_bytes */
    const tv_need_line *lines;
    size_t n_lines;
    const tv_text *notes;
    size_t n_notes;
} tv_life_need;

/* What a number format does to a model that is served (R218). */
typedef struct tv_format_effect {
    tv_precision precision;
    bool runs;   /* the card takes it */
    tv_text why; /* ... or not */
    double weights_bytes;
    double total_bytes;
    double bound_s; /* weights read once at the card's bandwidth: no pass is faster */
    tv_fact step_s; /* one pass, or one generated token */
    bool holds;
} tv_format_effect;

const char *tv_life_name(tv_life v);     /* "train", "export", ... */
const char *tv_life_words(tv_life v);    /* a msgid */
const char *tv_target_name(tv_target v); /* "tensorrt", ... */

#endif
