/* ONNX: element by element, reductions and products of matrices. */
#include <math.h>

#include "program_onnx.h"

/* ---- one tensor ---- */

static const tv_err *unary(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = (tv_fn)rule->arg}, tv_run_in(r, n, 0), &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *gelu(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    bool tanh_form = tv_opset_is(tv_node_string(n, "approximate"), "tanh");
    tv_fn_call call = {.fn = tanh_form ? TV_FN_GELU_TANH : (tv_fn)rule->arg};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_fn(r, call, tv_run_in(r, n, 0), &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *identity(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    if (tv_run_at(r, x)->list)
        return tv_opset_done(r, n, x);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_view(r, x, tv_run_shape(r, x), &y));
    return tv_opset_done(r, n, y);
}

static double bound(tv_running *r, const tv_node *n, const char *attr, size_t operand,
                    double fallback)
{
    return tv_node_float(n, attr, tv_run_scalar(r, tv_run_in(r, n, operand), fallback));
}

static const tv_err *clip(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_fn_call call = {.fn = TV_FN_CLIP,
                       .a = bound(r, n, "min", 1, (double)-INFINITY),
                       .b = bound(r, n, "max", 2, (double)INFINITY)};
    if (call.a == 0 && call.b == 6)
        call.fn = TV_FN_RELU6;
    else if (call.a == 0 && isinf(call.b))
        call.fn = TV_FN_RELU;
    /* RELU6 has no contents of its own; bounds that depend on data cost the same. */
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_fn(r, call, tv_run_in(r, n, 0), &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *cast(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_str word = tv_node_string(n, "to"); /* operator set 1 */
    tv_dtype to = word.n ? tv_dtype_named(word) : tv_opset_dtype(tv_node_int(n, "to", 0));
    if (word.n && tv_str_eq_nocase(word, TV_S("float")))
        to = TV_F32;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_cast(r, x, to, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *cast_like(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t like = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, like));
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_cast(r, tv_run_in(r, n, 0), tv_run_at(r, like)->dtype, &y));
    return tv_opset_done(r, n, y);
}

/* ---- two tensors and more ---- */

/* Before operator set 7 the second operand was laid on the first from a stated axis on. */
static const tv_err *laid_on(tv_running *r, const tv_node *n, uint32_t x, uint32_t *y)
{
    const tv_shape *a = tv_run_shape(r, x);
    const tv_shape *b = tv_run_shape(r, *y);
    int64_t axis = tv_node_int(n, "axis", (int64_t)a->rank - (int64_t)b->rank);
    if (axis < 0)
        axis += a->rank;
    int64_t behind = (int64_t)a->rank - axis - (int64_t)b->rank;
    if (behind <= 0 || tv_shape_count(b) == 1)
        return NULL;
    tv_shape shape = *b;
    for (int64_t i = 0; i < behind; i++)
        if (!tv_shape_push(&shape, 1))
            return NULL;
    return tv_rule_view(r, *y, &shape, y);
}

static const tv_err *binary(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t y = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    if (tv_node_int(n, "broadcast", 0))
        TV_TRY(laid_on(r, n, x, &y));
    uint32_t z = TV_NO_VALUE;
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = (tv_fn2)rule->arg}, x, y, &z));
    return tv_opset_done(r, n, z);
}

static const tv_err *modulo(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_fn2_call call = {.fn = tv_node_int(n, "fmod", 0) ? TV_FN2_FMOD : TV_FN2_MOD};
    uint32_t z = TV_NO_VALUE;
    TV_TRY(tv_rule_fn2(r, call, tv_run_in(r, n, 0), tv_run_in(r, n, 1), &z));
    return tv_opset_done(r, n, z);
}

/* The result has the base's type, whatever the exponent's is. */
static const tv_err *power(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t y = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    if (tv_node_int(n, "broadcast", 0))
        TV_TRY(laid_on(r, n, x, &y));
    tv_fn2_call call = {.fn = TV_FN2_POW, .dtype = tv_run_at(r, x)->dtype};
    uint32_t z = TV_NO_VALUE;
    TV_TRY(tv_rule_fn2(r, call, x, y, &z));
    return tv_opset_done(r, n, z);
}

static const tv_err *shift(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    bool left = tv_opset_is(tv_node_string(n, "direction"), "LEFT");
    uint32_t z = TV_NO_VALUE;
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = left ? TV_FN2_SHIFT_LEFT : TV_FN2_SHIFT_RIGHT},
                       tv_run_in(r, n, 0), tv_run_in(r, n, 1), &z));
    return tv_opset_done(r, n, z);
}

#define MEAN (-1)

static const tv_err *many(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    bool mean = rule->arg == MEAN;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_many(r, mean ? TV_FN2_ADD : (tv_fn2)rule->arg, mean, tv_opset_operands(r, n),
                        n->n_inputs, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *where(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t z = TV_NO_VALUE;
    TV_TRY(tv_rule_where(r, tv_run_in(r, n, 0), tv_run_in(r, n, 1), tv_run_in(r, n, 2), &z));
    return tv_opset_done(r, n, z);
}

/* ---- along axes ---- */

static const tv_err *reduce(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    size_t count = 0;
    bool known = true;
    const int64_t *axes = tv_opset_ints(r, n, "axes", 1, &count, &known);
    tv_reduce_call call = {.kind = (tv_reduce_kind)rule->arg,
                           .keep_axes = tv_node_int(n, "keepdims", 1) != 0};
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    if (!known)
        return tv_opset_guess(r, n, &tv_run_at(r, x)->dtype, tv_run_shape(r, x), 1);
    uint32_t y = TV_NO_VALUE;
    if (!count && tv_node_int(n, "noop_with_empty_axes", 0)) {
        TV_TRY(tv_rule_view(r, x, tv_run_shape(r, x), &y));
        return tv_opset_done(r, n, y);
    }
    TV_TRY(tv_rule_reduce(r, call, x, axes, count, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *arg_reduce(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    int64_t axis = tv_node_int(n, "axis", 0);
    tv_reduce_call call = {.kind = (tv_reduce_kind)rule->arg,
                           .keep_axes = tv_node_int(n, "keepdims", 1) != 0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_reduce(r, call, tv_run_in(r, n, 0), &axis, 1, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *cumulative(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_cumulative(r, tv_run_in(r, n, 0), &y));
    return tv_opset_done(r, n, y);
}

/* Operator sets below 13: axes from `axis` on are one; the shape is the same either way. */
static const tv_err *softmax(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    int64_t last = tv_run_opset(r, "") >= 13 ? -1 : 1;
    int64_t axis = tv_node_int(n, "axis", last);
    uint32_t rank = tv_run_shape(r, x)->rank;
    if (last == 1 && axis == (int64_t)rank)
        axis = -1;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_softmax(r, rule->arg != 0, axis, x, &y));
    return tv_opset_done(r, n, y);
}

/* ---- products ---- */

static const tv_err *matmul(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t z = TV_NO_VALUE;
    TV_TRY(tv_rule_matmul(r, (tv_matmul_call){0}, tv_run_in(r, n, 0), tv_run_in(r, n, 1),
                          TV_NO_VALUE, &z));
    return tv_opset_done(r, n, z);
}

/* The old Gemm flattened its first operand. */
static const tv_err *flat(tv_running *r, uint32_t *x)
{
    const tv_shape *s = tv_run_shape(r, *x);
    if (s->rank <= 2)
        return NULL;
    return tv_rule_flatten(r, *x, 1, -1, x);
}

static const tv_err *gemm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t y = tv_run_in(r, n, 1);
    uint32_t c = tv_run_in(r, n, 2);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    TV_TRY(flat(r, &x));
    tv_matmul_call call = {.transpose_x = tv_node_int(n, "transA", 0) != 0,
                           .transpose_y = tv_node_int(n, "transB", 0) != 0};
    uint32_t z = TV_NO_VALUE;
    TV_TRY(tv_rule_matmul(r, call, x, y, c, &z));
    if (c != TV_NO_VALUE) {
        tv_shape shape = {0};
        const tv_shape *out = tv_run_shape(r, z);
        if (!tv_shape_broadcast(out, tv_run_shape(r, c), &shape) || !tv_shape_same(&shape, out))
            return tv_run_fail_shapes(r, "program.gemm", N_("{x} cannot be added to {y}"),
                                      tv_run_shape(r, c), out);
    }
    return tv_opset_done(r, n, z);
}

static const tv_err *einsum(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(
        tv_rule_einsum(r, tv_node_string(n, "equation"), tv_opset_operands(r, n), n->n_inputs, &y));
    return tv_opset_done(r, n, y);
}

/* Determinants of the last two axes. */
static const tv_err *determinant(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    static const int64_t axes[] = {-2, -1};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_reduce(r, (tv_reduce_call){.kind = TV_REDUCE_PROD}, tv_run_in(r, n, 0), axes, 2,
                          &y));
    return tv_opset_done(r, n, y);
}

/* The same shape and type by a few operations per element: functions that have no row of their
 * own among the canonical ones. */
static const tv_err *same(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x));
    tv_step s = {.kind = TV_STEP_UNARY};
    s.u.unary.fn = TV_FN_SOFTPLUS;
    s.u.unary.keeps = TV_KEEPS_INPUT;
    s.u.unary.flop_per_element = rule->arg;
    tv_run_push(r, &s, tv_opset_operands(r, n), n->n_inputs, &y, 1);
    return tv_opset_done(r, n, y);
}

static const tv_rule rules[] = {
    {"Abs", unary, TV_FN_ABS},
    {"Acos", unary, TV_FN_ACOS},
    {"Acosh", unary, TV_FN_ACOSH},
    {"Add", binary, TV_FN2_ADD},
    {"Affine", unary, TV_FN_SCALE},
    {"And", binary, TV_FN2_AND},
    {"ArgMax", arg_reduce, TV_REDUCE_ARG_MAX},
    {"ArgMin", arg_reduce, TV_REDUCE_ARG_MIN},
    {"Asin", unary, TV_FN_ASIN},
    {"Asinh", unary, TV_FN_ASINH},
    {"Atan", unary, TV_FN_ATAN},
    {"Atanh", unary, TV_FN_ATANH},
    {"BitShift", shift, 0},
    {"BitwiseAnd", binary, TV_FN2_BIT_AND},
    {"BitwiseNot", unary, TV_FN_BIT_NOT},
    {"BitwiseOr", binary, TV_FN2_BIT_OR},
    {"BitwiseXor", binary, TV_FN2_BIT_XOR},
    {"Cast", cast, 0},
    {"CastLike", cast_like, 0},
    {"Ceil", unary, TV_FN_CEIL},
    {"Celu", unary, TV_FN_CELU},
    {"Clip", clip, 0},
    {"Cos", unary, TV_FN_COS},
    {"Cosh", unary, TV_FN_COSH},
    {"CumProd", cumulative, 0},
    {"CumSum", cumulative, 0},
    {"Det", determinant, 0},
    {"Div", binary, TV_FN2_DIV},
    {"Einsum", einsum, 0},
    {"Elu", unary, TV_FN_ELU},
    {"Equal", binary, TV_FN2_EQUAL},
    {"Erf", unary, TV_FN_ERF},
    {"Exp", unary, TV_FN_EXP},
    {"Floor", unary, TV_FN_FLOOR},
    {"Gelu", gelu, TV_FN_GELU},
    {"Gemm", gemm, 0},
    {"Greater", binary, TV_FN2_GREATER},
    {"GreaterOrEqual", binary, TV_FN2_GREATER_EQUAL},
    {"HardSigmoid", unary, TV_FN_HARDSIGMOID},
    {"HardSwish", unary, TV_FN_HARDSWISH},
    {"Hardmax", softmax, 0},
    {"Identity", identity, 0},
    {"ImageScaler", unary, TV_FN_SCALE},
    {"IsInf", unary, TV_FN_IS_INF},
    {"IsNaN", unary, TV_FN_IS_NAN},
    {"LeakyRelu", unary, TV_FN_LEAKY_RELU},
    {"Less", binary, TV_FN2_LESS},
    {"LessOrEqual", binary, TV_FN2_LESS_EQUAL},
    {"Log", unary, TV_FN_LOG},
    {"LogSoftmax", softmax, 1},
    {"MatMul", matmul, 0},
    {"Max", many, TV_FN2_MAX},
    {"Mean", many, MEAN},
    {"Min", many, TV_FN2_MIN},
    {"Mish", unary, TV_FN_MISH},
    {"Mod", modulo, 0},
    {"Mul", binary, TV_FN2_MUL},
    {"Neg", unary, TV_FN_NEG},
    {"Not", unary, TV_FN_NOT},
    {"Or", binary, TV_FN2_OR},
    {"PRelu", binary, TV_FN2_PRELU},
    {"ParametricSoftplus", same, 5},
    {"Pow", power, 0},
    {"Reciprocal", unary, TV_FN_RECIPROCAL},
    {"ReduceL1", reduce, TV_REDUCE_L1},
    {"ReduceL2", reduce, TV_REDUCE_L2},
    {"ReduceLogSum", reduce, TV_REDUCE_LOG_SUM},
    {"ReduceLogSumExp", reduce, TV_REDUCE_LOG_SUM_EXP},
    {"ReduceMax", reduce, TV_REDUCE_MAX},
    {"ReduceMean", reduce, TV_REDUCE_MEAN},
    {"ReduceMin", reduce, TV_REDUCE_MIN},
    {"ReduceProd", reduce, TV_REDUCE_PROD},
    {"ReduceSum", reduce, TV_REDUCE_SUM},
    {"ReduceSumSquare", reduce, TV_REDUCE_SUM_SQUARE},
    {"Relu", unary, TV_FN_RELU},
    {"Round", unary, TV_FN_ROUND},
    {"Scale", unary, TV_FN_SCALE},
    {"ScaledTanh", same, 7},
    {"Selu", unary, TV_FN_SELU},
    {"Shrink", unary, TV_FN_SHRINK},
    {"Sigmoid", unary, TV_FN_SIGMOID},
    {"Sign", unary, TV_FN_SIGN},
    {"Sin", unary, TV_FN_SIN},
    {"Sinh", unary, TV_FN_SINH},
    {"Softmax", softmax, 0},
    {"Softplus", unary, TV_FN_SOFTPLUS},
    {"Softsign", unary, TV_FN_SOFTSIGN},
    {"Sqrt", unary, TV_FN_SQRT},
    {"Sub", binary, TV_FN2_SUB},
    {"Sum", many, TV_FN2_ADD},
    {"Swish", unary, TV_FN_SILU},
    {"Tan", unary, TV_FN_TAN},
    {"Tanh", unary, TV_FN_TANH},
    {"ThresholdedRelu", unary, TV_FN_THRESHOLDED_RELU},
    {"Where", where, 0},
    {"Xor", binary, TV_FN2_XOR},
};

const tv_rule_table tv_rules_onnx_math = {TV_DIALECT_ONNX, "", rules, sizeof rules / sizeof *rules};
