/* ONNX: numbers stored in few bits. A dequantised weight stays that weight. */
#include "program_onnx.h"

/* The type of the zero point, else of an attribute, else unsigned bytes. */
static tv_dtype quantised_type(tv_running *r, const tv_node *n, size_t zero_point)
{
    uint32_t zero = tv_run_in(r, n, zero_point);
    if (zero != TV_NO_VALUE)
        return tv_run_at(r, zero)->dtype;
    tv_dtype stated = tv_opset_dtype(tv_node_int(n, "output_dtype", 0));
    return stated ? stated : TV_U8;
}

static const tv_err *quantize(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_fn_call call = {.fn = TV_FN_QUANTIZE, .dtype = quantised_type(r, n, 2)};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_fn(r, call, tv_run_in(r, n, 0), &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *dequantize(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t scale = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, scale));
    tv_dtype stated = tv_opset_dtype(tv_node_int(n, "output_dtype", 0));
    tv_fn_call call = {.fn = TV_FN_DEQUANTIZE,
                       .dtype = stated ? stated : tv_run_at(r, scale)->dtype};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_fn(r, call, tv_run_in(r, n, 0), &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *dynamic_quantize(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(
        tv_rule_fn(r, (tv_fn_call){.fn = TV_FN_QUANTIZE, .dtype = TV_U8}, tv_run_in(r, n, 0), &y));
    tv_run_out(r, n, 1, tv_run_make(r, TV_F32, &(tv_shape){0}));
    tv_run_out(r, n, 2, tv_run_make(r, TV_U8, &(tv_shape){0}));
    return tv_opset_done(r, n, y);
}

static const tv_err *matmul_integer(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_matmul(r, (tv_matmul_call){.dtype = TV_I32}, tv_run_in(r, n, 0),
                          tv_run_in(r, n, 1), TV_NO_VALUE, &y));
    return tv_opset_done(r, n, y);
}

/* a, scale, zero, b, scale, zero, scale of y, zero of y */
static const tv_err *qlinear_matmul(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_matmul_call call = {.dtype = quantised_type(r, n, 7)};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_matmul(r, call, tv_run_in(r, n, 0), tv_run_in(r, n, 3), TV_NO_VALUE, &y));
    return tv_opset_done(r, n, y);
}

/* x, scale, zero, w, scale, zero, scale of y, zero of y, bias */
static const tv_err *qlinear_conv(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_conv_call call = {.w = tv_opset_window(n),
                         .groups = tv_node_int(n, "group", 1),
                         .dtype = quantised_type(r, n, 7)};
    call.w.channels_last = tv_node_int(n, "channels_last", 0) != 0;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_conv(r, &call, tv_run_in(r, n, 0), tv_run_in(r, n, 3), tv_run_in(r, n, 8), &y));
    return tv_opset_done(r, n, y);
}

static const tv_rule rules[] = {
    {"DequantizeLinear", dequantize, 0},  {"DynamicQuantizeLinear", dynamic_quantize, 0},
    {"MatMulInteger", matmul_integer, 0}, {"QLinearConv", qlinear_conv, 0},
    {"QLinearMatMul", qlinear_matmul, 0}, {"QuantizeLinear", quantize, 0},
};

const tv_rule_table tv_rules_onnx_quant = {TV_DIALECT_ONNX, "", rules,
                                           sizeof rules / sizeof *rules};

/* ---- ONNX Runtime's own ---- */

/* Elementwise on quantised tensors: operands at stated places. */
static const tv_err *q_binary(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_fn2_call call = {.fn = (tv_fn2)rule->arg, .dtype = tv_run_at(r, x)->dtype};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_fn2(r, call, x, tv_run_in(r, n, 3), &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *q_unary(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = (tv_fn)rule->arg}, tv_run_in(r, n, 0), &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *q_softmax(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_softmax(r, false, tv_node_int(n, "axis", -1), tv_run_in(r, n, 0), &y));
    return tv_opset_done(r, n, y);
}

enum { Q_WINDOW, Q_GLOBAL };

static const tv_err *q_pool(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    tv_pool_call call = {.w = tv_opset_window(n), .global = rule->arg == Q_GLOBAL};
    call.w.channels_last = tv_node_int(n, "channels_last", 0) != 0;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_pool(r, &call, tv_run_in(r, n, 0), &y, NULL));
    return tv_opset_done(r, n, y);
}

/* scale of y, zero of y, then (x, scale, zero) for each part */
static const tv_err *q_concat(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t *parts = tv_new(tv_run_arena(r), uint32_t, n->n_inputs + 1);
    size_t count = 0;
    for (size_t i = 2; i < n->n_inputs; i += 3)
        parts[count++] = tv_run_in(r, n, i);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_concat(r, tv_node_int(n, "axis", 0), parts, count, &y));
    return tv_opset_done(r, n, y);
}

/* condition, (x, scale, zero), (y, scale, zero), scale, zero */
static const tv_err *q_where(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_where(r, tv_run_in(r, n, 0), tv_run_in(r, n, 1), tv_run_in(r, n, 4), &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *q_reduce(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const int64_t *axes = NULL;
    size_t count = tv_node_ints(n, "axes", &axes);
    tv_reduce_call call = {.kind = TV_REDUCE_MEAN, .keep_axes = tv_node_int(n, "keepdims", 1) != 0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_reduce(r, call, tv_run_in(r, n, 0), axes, count, &y));
    return tv_opset_done(r, n, y);
}

/* A (quantised or not) by B at stated places, with a plain result. */
static const tv_err *q_product(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_matmul(r, (tv_matmul_call){.dtype = TV_F32}, tv_run_in(r, n, 0),
                          tv_run_in(r, n, 1), TV_NO_VALUE, &y));
    return tv_opset_done(r, n, y);
}

/* a, scale, zero, b, scale, zero, c, scale of y, zero of y */
static const tv_err *q_gemm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_matmul_call call = {.transpose_x = tv_node_int(n, "transA", 0) != 0,
                           .transpose_y = tv_node_int(n, "transB", 0) != 0,
                           .dtype = tv_run_in(r, n, 7) == TV_NO_VALUE ? TV_F32
                                                                      : quantised_type(r, n, 8)};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_matmul(r, call, tv_run_in(r, n, 0), tv_run_in(r, n, 3), tv_run_in(r, n, 6), &y));
    return tv_opset_done(r, n, y);
}

/* Weights in blocks of few bits: [N, blocks, bytes]; K and N are stated. */
static const tv_err *matmul_bits(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t weight = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, weight));
    tv_shape shape = *tv_run_shape(r, x);
    int64_t k = tv_node_int(n, "K", 0);
    int64_t columns = tv_node_int(n, "N", 0);
    if (!shape.rank || shape.d[shape.rank - 1] != k || columns < 1 || k < 1)
        return tv_run_fail_shapes(r, "program.bits", N_("{x} does not fit the weight's stated K"),
                                  &shape, NULL);
    double rows = tv_shape_elements(&shape) / (double)k;
    shape.d[shape.rank - 1] = columns;
    uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &shape);
    tv_step s = {.kind = TV_STEP_MATMUL};
    s.u.matmul.groups = 1;
    s.u.matmul.m = rows;
    s.u.matmul.n = (double)columns;
    s.u.matmul.k = (double)k;
    tv_run_push(r, &s, (uint32_t[]){x, weight}, 2, &y, 1);
    return tv_opset_done(r, n, y);
}

/* Rows of a table whose elements are packed two or four to a byte. */
static const tv_err *gather_blocks(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t table = tv_run_in(r, n, 0);
    uint32_t scales = tv_run_in(r, n, 2);
    TV_TRY(tv_run_need(r, table));
    TV_TRY(tv_run_need(r, scales));
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_gather(r, tv_node_int(n, "gather_axis", 0), table, tv_run_in(r, n, 1), &y));
    tv_shape shape = *tv_run_shape(r, y);
    int64_t bits = tv_node_int(n, "bits", 4);
    bool packed = tv_run_at(r, table)->dtype == TV_U8 && (bits == 4 || bits == 2);
    if (packed && shape.rank)
        shape.d[shape.rank - 1] = tv_shape_times(shape.d[shape.rank - 1], 8 / bits);
    uint32_t plain = tv_run_make(r, tv_run_at(r, scales)->dtype, &shape);
    tv_step s = {.kind = TV_STEP_UNARY};
    s.u.unary.fn = TV_FN_DEQUANTIZE;
    s.u.unary.flop_per_element = 2;
    tv_run_push(r, &s, (uint32_t[]){y, scales}, 2, &plain, 1);
    return tv_opset_done(r, n, plain);
}

static const tv_rule ort[] = {
    {"DynamicQuantizeMatMul", q_product, 0},
    {"GatherBlockQuantized", gather_blocks, 0},
    {"MatMulBnb4", matmul_bits, 0},
    {"MatMulFpQ4", matmul_bits, 0},
    {"MatMulIntegerToFloat", q_product, 0},
    {"MatMulNBits", matmul_bits, 0},
    {"QGemm", q_gemm, 0},
    {"QLinearAdd", q_binary, TV_FN2_ADD},
    {"QLinearAveragePool", q_pool, Q_WINDOW},
    {"QLinearConcat", q_concat, 0},
    {"QLinearGlobalAveragePool", q_pool, Q_GLOBAL},
    {"QLinearLeakyRelu", q_unary, TV_FN_LEAKY_RELU},
    {"QLinearMul", q_binary, TV_FN2_MUL},
    {"QLinearReduceMean", q_reduce, 0},
    {"QLinearSigmoid", q_unary, TV_FN_SIGMOID},
    {"QLinearSoftmax", q_softmax, 0},
    {"QLinearWhere", q_where, 0},
};

const tv_rule_table tv_rules_onnx_ort_quant = {TV_DIALECT_ONNX, "com.microsoft", ort,
                                               sizeof ort / sizeof *ort};
