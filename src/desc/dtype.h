/* Element types: names, block sizes, bytes. One table for frameworks' types and GGUF's blocks. */
#ifndef TV_DTYPE_H
#define TV_DTYPE_H

#include "base/str.h"

typedef enum tv_dtype {
    TV_DTYPE_UNKNOWN,
    TV_F64,
    TV_F32,
    TV_TF32, /* stored as F32; a compute type */
    TV_F16,
    TV_BF16,
    TV_F8_E4M3,
    TV_F8_E5M2,
    TV_F8_E8M0,
    TV_F8_E4M3FNUZ, /* no infinities, no negative zero: AMD's */
    TV_F8_E5M2FNUZ,
    TV_I64,
    TV_I32,
    TV_I16,
    TV_I8,
    TV_U64,
    TV_U32,
    TV_U16,
    TV_U8,
    TV_BOOL,
    TV_I4,
    TV_U4,
    TV_I2,
    TV_U2,
    TV_F4, /* E2M1 */
    TV_F6_E2M3,
    TV_F6_E3M2,
    TV_NF4,
    TV_C64,
    TV_C128,
    /* GGUF blocks; the numbers of the format are in the table */
    TV_Q4_0,
    TV_Q4_1,
    TV_Q5_0,
    TV_Q5_1,
    TV_Q8_0,
    TV_Q8_1,
    TV_Q2_K,
    TV_Q3_K,
    TV_Q4_K,
    TV_Q5_K,
    TV_Q6_K,
    TV_Q8_K,
    TV_IQ2_XXS,
    TV_IQ2_XS,
    TV_IQ3_XXS,
    TV_IQ1_S,
    TV_IQ4_NL,
    TV_IQ3_S,
    TV_IQ2_S,
    TV_IQ4_XS,
    TV_IQ1_M,
    TV_TQ1_0,
    TV_TQ2_0,
    TV_MXFP4,
    TV_NVFP4,
    TV_Q1_0,
    TV_Q2_0,
    TV_DTYPE_COUNT,
} tv_dtype;

typedef struct tv_dtype_info {
    const char *name;        /* as the field writes it: "BF16", "Q4_K" */
    uint32_t block_elements; /* 1 for plain types; 2 for 4-bit pairs */
    uint32_t block_bytes;
    bool is_float; /* a plain floating type that training can compute in */
} tv_dtype_info;

const tv_dtype_info *tv_dtype_of(tv_dtype t);

/* Bytes per element (a fraction for packed types); 0 for unknown. */
double tv_dtype_bytes(tv_dtype t);

/* Exact bytes of a tensor of n elements whose innermost dimension is `row` (blocks do not cross
 * rows). ok is false where n overflows or row is no multiple of the block. */
tv_u64_read tv_dtype_tensor_bytes(tv_dtype t, uint64_t n, uint64_t row);

/* "bfloat16", "torch.float16", "F8_E4M3", "fp16", "int8" ... without case; unknown: 0. */
tv_dtype tv_dtype_named(tv_str name);

/* GGUF's number for a type; removed numbers (4, 5, 31–33, 36–38) map to their block of equal size
 * or, where there is none, to unknown. */
tv_dtype tv_dtype_gguf(uint32_t number);

#endif
