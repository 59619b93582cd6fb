/* Precision is a policy, not a type: which dtype each stream of a run has. */
#ifndef TV_POLICY_H
#define TV_POLICY_H

#include "dtype.h"

typedef enum tv_precision {
    TV_PRECISION_DEFAULT, /* chosen by the card: amp-bf16 from compute capability 8.0, else amp-fp16
                           */
    TV_PRECISION_FP32,
    TV_PRECISION_TF32,
    TV_PRECISION_AMP_FP16,
    TV_PRECISION_AMP_BF16,
    TV_PRECISION_BF16, /* pure 16 bit */
    TV_PRECISION_FP16,
    TV_PRECISION_FP8,
    TV_PRECISION_INT8,
    TV_PRECISION_INT4,
    TV_PRECISION_NF4,
    TV_PRECISION_AS_STORED,
    TV_PRECISION_COUNT,
} tv_precision;

typedef enum tv_framework {
    TV_FRAMEWORK_DEFAULT, /* as the model's files say, else torch */
    TV_TORCH,
    TV_PADDLE,
} tv_framework;

typedef struct tv_policy {
    tv_precision precision; /* never DEFAULT once resolved */
    tv_framework framework;
    tv_dtype param;         /* parameters in memory (frozen base of QLoRA: see base) */
    tv_dtype base;          /* frozen weights of matrix multiplies; equals param unless quantised */
    bool base_experts_only; /* only the experts are quantised */
    double base_bytes;      /* bytes per quantised weight incl. scales; 0: tv_dtype_bytes(base) */
    tv_dtype compute;       /* matrix multiplies */
    tv_dtype stream; /* what an embedding or a 16-bit module hands on: the residual's dtype */
    tv_dtype grad;
    tv_dtype state; /* optimizer moments */
    bool master;    /* an fp32 copy of 16-bit parameters */
    bool autocast;  /* casts at every matmul/conv; norms, softmax and losses in fp32 */
    tv_dtype kv;    /* KV cache */
} tv_policy;

#endif
