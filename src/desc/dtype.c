/* The table of element types. Block sizes: ggml-common.h (block structs), checked there one by
 * one; plain types by definition. */
#include "dtype.h"

static const tv_dtype_info table[TV_DTYPE_COUNT] = {
    [TV_DTYPE_UNKNOWN] = {"unknown", 1, 0, false},
    [TV_F64] = {"F64", 1, 8, true},
    [TV_F32] = {"F32", 1, 4, true},
    [TV_TF32] = {"TF32", 1, 4, true},
    [TV_F16] = {"F16", 1, 2, true},
    [TV_BF16] = {"BF16", 1, 2, true},
    [TV_F8_E4M3] = {"F8_E4M3", 1, 1, false},
    [TV_F8_E5M2] = {"F8_E5M2", 1, 1, false},
    [TV_F8_E8M0] = {"F8_E8M0", 1, 1, false},
    [TV_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 1, 1, false},
    [TV_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 1, 1, false},
    [TV_I64] = {"I64", 1, 8, false},
    [TV_I32] = {"I32", 1, 4, false},
    [TV_I16] = {"I16", 1, 2, false},
    [TV_I8] = {"I8", 1, 1, false},
    [TV_U64] = {"U64", 1, 8, false},
    [TV_U32] = {"U32", 1, 4, false},
    [TV_U16] = {"U16", 1, 2, false},
    [TV_U8] = {"U8", 1, 1, false},
    [TV_BOOL] = {"BOOL", 1, 1, false},
    [TV_I4] = {"I4", 2, 1, false},
    [TV_U4] = {"U4", 2, 1, false},
    [TV_I2] = {"I2", 4, 1, false},
    [TV_U2] = {"U2", 4, 1, false},
    [TV_F4] = {"F4", 2, 1, false},
    [TV_F6_E2M3] = {"F6_E2M3", 4, 3, false},
    [TV_F6_E3M2] = {"F6_E3M2", 4, 3, false},
    [TV_NF4] = {"NF4", 2, 1, false},
    [TV_C64] = {"C64", 1, 8, false},
    [TV_C128] = {"C128", 1, 16, false},
    [TV_Q4_0] = {"Q4_0", 32, 18, false},
    [TV_Q4_1] = {"Q4_1", 32, 20, false},
    [TV_Q5_0] = {"Q5_0", 32, 22, false},
    [TV_Q5_1] = {"Q5_1", 32, 24, false},
    [TV_Q8_0] = {"Q8_0", 32, 34, false},
    [TV_Q8_1] = {"Q8_1", 32, 36, false},
    [TV_Q2_K] = {"Q2_K", 256, 84, false},
    [TV_Q3_K] = {"Q3_K", 256, 110, false},
    [TV_Q4_K] = {"Q4_K", 256, 144, false},
    [TV_Q5_K] = {"Q5_K", 256, 176, false},
    [TV_Q6_K] = {"Q6_K", 256, 210, false},
    [TV_Q8_K] = {"Q8_K", 256, 292, false},
    [TV_IQ2_XXS] = {"IQ2_XXS", 256, 66, false},
    [TV_IQ2_XS] = {"IQ2_XS", 256, 74, false},
    [TV_IQ3_XXS] = {"IQ3_XXS", 256, 98, false},
    [TV_IQ1_S] = {"IQ1_S", 256, 50, false},
    [TV_IQ4_NL] = {"IQ4_NL", 32, 18, false},
    [TV_IQ3_S] = {"IQ3_S", 256, 110, false},
    [TV_IQ2_S] = {"IQ2_S", 256, 82, false},
    [TV_IQ4_XS] = {"IQ4_XS", 256, 136, false},
    [TV_IQ1_M] = {"IQ1_M", 256, 56, false},
    [TV_TQ1_0] = {"TQ1_0", 256, 54, false},
    [TV_TQ2_0] = {"TQ2_0", 256, 66, false},
    [TV_MXFP4] = {"MXFP4", 32, 17, false},
    [TV_NVFP4] = {"NVFP4", 64, 36, false},
    [TV_Q1_0] = {"Q1_0", 128, 18, false},
    [TV_Q2_0] = {"Q2_0", 64, 18, false},
};

const tv_dtype_info *tv_dtype_of(tv_dtype t)
{
    return &table[t];
}

double tv_dtype_bytes(tv_dtype t)
{
    return (double)table[t].block_bytes / (double)table[t].block_elements;
}

tv_u64_read tv_dtype_tensor_bytes(tv_dtype t, uint64_t n, uint64_t row)
{
    const tv_dtype_info *info = &table[t];
    const uint64_t block = info->block_elements;
    const tv_u64_read bad = {0, false};
    if (info->block_bytes == 0)
        return bad;
    /* packed pairs and fours: the last byte of the tensor is padded */
    if (block > 1 && info->block_bytes == 1)
        return (tv_u64_read){n / block + (n % block > 0), true};
    if (block > 1 && row % block)
        return bad;
    const uint64_t blocks = n / block;
    if (blocks > UINT64_MAX / info->block_bytes)
        return bad;
    return (tv_u64_read){blocks * info->block_bytes, true};
}

typedef struct alias {
    const char *name;
    tv_dtype type;
} alias;

tv_dtype tv_dtype_named(tv_str name)
{
    static const alias aliases[] = {
        {"float64", TV_F64},
        {"double", TV_F64},
        {"float32", TV_F32},
        {"float", TV_F32},
        {"fp32", TV_F32},
        {"half", TV_F16},
        {"float16", TV_F16},
        {"fp16", TV_F16},
        {"bfloat16", TV_BF16},
        {"fp8", TV_F8_E4M3},
        {"f8_e4m3fn", TV_F8_E4M3},
        {"float8_e4m3fn", TV_F8_E4M3},
        {"float8_e5m2", TV_F8_E5M2},
        {"float8_e4m3", TV_F8_E4M3},
        {"int64", TV_I64},
        {"int32", TV_I32},
        {"int16", TV_I16},
        {"int8", TV_I8},
        {"uint8", TV_U8},
        {"int4", TV_I4},
        {"uint4", TV_U4},
        {"nf4", TV_NF4},
        {"fp4", TV_F4},
        {"float4", TV_F4},
        {"bool", TV_BOOL},
        {"f8_e8m0fnu", TV_F8_E8M0},
        {"float8_e8m0fnu", TV_F8_E8M0},
        {"float8_e4m3fnuz", TV_F8_E4M3FNUZ},
        {"float8_e5m2fnuz", TV_F8_E5M2FNUZ},
        {"int2", TV_I2},
        {"uint2", TV_U2},
        {"complex64", TV_C64},
        {"complex128", TV_C128},
        {"uint16", TV_U16},
        {"uint32", TV_U32},
        {"uint64", TV_U64},
    };
    if (tv_str_starts(name, TV_S("torch.")))
        name = tv_str_drop(name, 6);
    if (name.n == 0 || tv_str_eq_nocase(name, TV_S("unknown")))
        return TV_DTYPE_UNKNOWN;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (tv_str_eq_nocase(name, tv_str_of(aliases[i].name)))
            return aliases[i].type;
    for (tv_dtype t = 1; t < TV_DTYPE_COUNT; t++)
        if (tv_str_eq_nocase(name, tv_str_of(table[t].name)))
            return t;
    return TV_DTYPE_UNKNOWN;
}

tv_dtype tv_dtype_gguf(uint32_t number)
{
    static const tv_dtype types[] = {
        TV_F32,     TV_F16,    TV_Q4_0,    TV_Q4_1,  0,         0,         TV_Q5_0,   TV_Q5_1,
        TV_Q8_0,    TV_Q8_1,   TV_Q2_K,    TV_Q3_K,  TV_Q4_K,   TV_Q5_K,   TV_Q6_K,   TV_Q8_K,
        TV_IQ2_XXS, TV_IQ2_XS, TV_IQ3_XXS, TV_IQ1_S, TV_IQ4_NL, TV_IQ3_S,  TV_IQ2_S,  TV_IQ4_XS,
        TV_I8,      TV_I16,    TV_I32,     TV_I64,   TV_F64,    TV_IQ1_M,  TV_BF16,   TV_Q4_0,
        TV_Q4_0,    TV_Q4_0,   TV_TQ1_0,   TV_TQ2_0, TV_IQ4_NL, TV_IQ4_NL, TV_IQ4_NL, TV_MXFP4,
        TV_NVFP4,   TV_Q1_0,   TV_Q2_0,
    };
    return number < sizeof types / sizeof *types ? types[number] : TV_DTYPE_UNKNOWN;
}
