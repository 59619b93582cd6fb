/* What a graph is built for: the choices that change byte sizes and which tensors are kept. */
#ifndef TV_SETTING_H
#define TV_SETTING_H

#include "job.h"

typedef enum tv_phase {
    TV_PHASE_TRAIN,   /* forward that keeps what backward needs, loss, backward */
    TV_PHASE_PREFILL, /* forward over seq tokens, nothing kept but the cache */
    TV_PHASE_DECODE,  /* one new token per sequence, K tokens cached */
} tv_phase;

/* The attention kernel that really runs (see modelling notes: flash needs 16 bit and compute
 * capability 8.0; the efficient kernel serves fp32 and older cards; math is the fallback). */
typedef enum tv_kernel {
    TV_KERNEL_EAGER, /* matmul, softmax, matmul as modules write it */
    TV_KERNEL_FLASH,
    TV_KERNEL_EFFICIENT,
    TV_KERNEL_MATH, /* SDPA's unfused fallback */
} tv_kernel;

typedef enum tv_trainable {
    TV_TRAIN_ALL,
    TV_TRAIN_LORA, /* adapters only */
    TV_TRAIN_NONE,
} tv_trainable;

typedef struct tv_setting {
    tv_phase phase;
    tv_policy policy;
    tv_kernel kernel;
    uint32_t seq; /* tokens per sequence (prefill, training); encoder side of encoder–decoders */
    uint32_t target_seq;       /* decoder side of encoder–decoders; 0: as seq */
    uint32_t image_h, image_w; /* 0: the model's own size */
    double dropout;            /* < 0: as the model says */
    tv_loss_variant loss;
    tv_trainable trainable;
    uint32_t lora_rank;
    tv_str lora_targets; /* comma-separated globs; empty: every linear of the body */
    double lora_dropout;
    tv_dtype lora_dtype;  /* PEFT makes adapters fp32 unless told otherwise */
    bool lora_beside;     /* inference: adapters stay beside their matrices */
    tv_str saved_modules; /* comma-separated names: trained whole beside adapters, as copies */
    bool repeat_kv; /* K and V are repeated to all heads before the kernel (padding mask, old code)
                     */
    bool forced_contiguous; /* q is made contiguous before SDPA (transformers 4.48-4.52) */
    bool keep_logits;       /* the model output with its logits stays alive through backward */
    bool fused_norm;        /* one-kernel norms (apex, Liger, TE) instead of the module's own */
    bool last_logits;       /* inference: logits of the last position only */
} tv_setting;

#endif
