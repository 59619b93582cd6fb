/* ATen, element by element: functions of one and two tensors, comparisons, selections, reductions.
 * Numbers among the arguments become constants; in-place forms share their operand's memory. */
#include "program_aten.h"

#include <math.h>

#include "program_shape.h"

/* ---- one tensor ---- */

static const tv_err *fn_out(tv_running *r, const tv_node *n, tv_fn_call call, uint32_t x)
{
    uint32_t y = TV_NO_VALUE;
    call.inplace = tv_aten_inplace(n);
    TV_TRY(tv_run_need(r, x));
    if (!call.dtype)
        call.dtype = tv_aten_dtype(r, n, 0, TV_DTYPE_UNKNOWN);
    TV_TRY(tv_rule_fn(r, call, x, &y));
    tv_aten_out(r, n, 0, y);
    tv_aten_rest(r, n, 1, x);
    return NULL;
}

static const tv_err *unary(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    return fn_out(r, n, (tv_fn_call){.fn = (tv_fn)rule->arg}, tv_aten_first(r, n));
}

static const tv_err *gelu(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const bool tanh = tv_str_is(tv_node_string(n, "approximate"), "tanh");
    return fn_out(r, n, (tv_fn_call){.fn = tanh ? TV_FN_GELU_TANH : TV_FN_GELU},
                  tv_aten_first(r, n));
}

/* Bounds are numbers; the overload with tensors is a minimum or maximum of two. */
static const tv_err *clamp(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_aten_first(r, n);
    const uint32_t low = tv_aten_in(r, n, "min"), high = tv_aten_in(r, n, "max");
    if (low == TV_NO_VALUE && high == TV_NO_VALUE) {
        const tv_fn_call call = {
            .fn = TV_FN_CLIP,
            .a = tv_aten_num(r, n, "min", tv_aten_num(r, n, "min_val", -(double)INFINITY)),
            .b = tv_aten_num(r, n, "max", tv_aten_num(r, n, "max_val", (double)INFINITY)),
        };
        return fn_out(r, n, call, x);
    }
    if (low != TV_NO_VALUE)
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MAX}, x, low, &x));
    if (high != TV_NO_VALUE)
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MIN}, x, high, &x));
    tv_aten_out(r, n, 0, x);
    return NULL;
}

static const tv_err *hardtanh(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const double low = tv_aten_num(r, n, "min_val", -1), high = tv_aten_num(r, n, "max_val", 1);
    const bool relu6 = low == 0 && high == 6;
    return fn_out(r, n, (tv_fn_call){.fn = relu6 ? TV_FN_RELU6 : TV_FN_CLIP, .a = low, .b = high},
                  tv_aten_first(r, n));
}

/* Halves along an axis; one half gates the other. */
static const tv_err *glu(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    uint32_t parts[2], gate = TV_NO_VALUE, y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const int64_t dim = tv_aten_int(r, n, "dim", -1);
    const tv_shape *s = tv_run_shape(r, x);
    const int64_t axis = dim < 0 ? dim + s->rank : dim;
    if (axis < 0 || axis >= s->rank)
        return tv_run_unknown(r, n);
    const int64_t half[2] = {s->d[axis] / 2, s->d[axis] - s->d[axis] / 2};
    TV_TRY(tv_rule_split(r, axis, half, 2, true, x, parts));
    TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = TV_FN_SIGMOID}, parts[1], &gate));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MUL}, parts[0], gate, &y));
    tv_aten_out(r, n, 0, y);
    return NULL;
}

/* ---- two tensors ---- */

/* x·a + b with plain numbers keeps nothing: one step without a second operand. */
static bool plain(tv_running *r, const tv_node *n, tv_fn2 fn, uint32_t x, tv_fn_call *call)
{
    const double v = tv_aten_num(r, n, "other", (double)NAN);
    const double alpha = tv_aten_num(r, n, "alpha", 1);
    *call = (tv_fn_call){.fn = TV_FN_SCALE, .a = 1};
    if (isnan(v) || isinf(v) || tv_aten_in(r, n, "other") != TV_NO_VALUE ||
        !tv_dtype_of(tv_run_at(r, x)->dtype)->is_float)
        return false;
    if (fn == TV_FN2_ADD)
        call->b = alpha * v;
    else if (fn == TV_FN2_SUB)
        call->b = -alpha * v;
    else if (fn == TV_FN2_MUL)
        call->a = v;
    else if (fn == TV_FN2_DIV && v != 0)
        call->a = 1 / v;
    else
        return false;
    return true;
}

static const tv_err *fn2_out(tv_running *r, const tv_node *n, tv_fn2 fn, uint32_t x, uint32_t y)
{
    uint32_t z = TV_NO_VALUE;
    const tv_fn2_call call = {
        .fn = fn, .dtype = tv_aten_dtype(r, n, 0, TV_DTYPE_UNKNOWN), .inplace = tv_aten_inplace(n)};
    TV_TRY(tv_rule_fn2(r, call, x, y, &z));
    tv_aten_out(r, n, 0, z);
    return NULL;
}

static const tv_err *binary(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_aten_operand(r, n, "self", TV_NO_VALUE);
    const tv_fn2 fn = (tv_fn2)rule->arg;
    tv_fn_call call;
    if (x == TV_NO_VALUE)
        x = tv_aten_first(r, n);
    if (x == TV_NO_VALUE)
        return NULL; /* of symbolic numbers: worked out where they are used */
    if (plain(r, n, fn, x, &call))
        return fn_out(r, n, call, x);
    return fn2_out(r, n, fn, x, tv_aten_operand(r, n, "other", x));
}

static const tv_err *division(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const tv_str mode = tv_node_string(n, "rounding_mode");
    const uint32_t x = tv_aten_first(r, n);
    if (!mode.n || x == TV_NO_VALUE)
        return binary(r, n, rule);
    const tv_fn2 fn = tv_str_is(mode, "floor") ? TV_FN2_FLOOR_DIV : TV_FN2_DIV;
    return fn2_out(r, n, fn, x, tv_aten_operand(r, n, "other", x));
}

/* other - self. */
static const tv_err *reversed(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    TV_TRY(tv_run_need(r, x));
    const double v = tv_aten_num(r, n, "other", (double)NAN);
    if (!isnan(v) && tv_dtype_of(tv_run_at(r, x)->dtype)->is_float)
        return fn_out(r, n, (tv_fn_call){.fn = TV_FN_SCALE, .a = -1, .b = v}, x);
    return fn2_out(r, n, TV_FN2_SUB, tv_aten_operand(r, n, "other", x), x);
}

static const tv_err *power(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_in(r, n, "self");
    const uint32_t exponent = tv_aten_operand(r, n, "exponent", x);
    if (x != TV_NO_VALUE)
        return fn2_out(r, n, TV_FN2_POW, x, exponent);
    /* A plain base to a tensor's power is an exponential. */
    return fn_out(r, n, (tv_fn_call){.fn = TV_FN_EXP}, exponent);
}

/* Between two tensors by a third, self + value·a·b, self + value·a/b: one kernel of three. */
static const tv_err *three(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    static const char *const names[][2] = {
        {"end", "weight"}, {"tensor1", "tensor2"}, {"tensor1", "tensor2"}};
    const uint32_t x = tv_aten_first(r, n);
    const uint32_t in[3] = {x, tv_aten_operand(r, n, names[rule->arg][0], x),
                            tv_aten_operand(r, n, names[rule->arg][1], x)};
    tv_shape s = {0};
    for (size_t i = 0; i < 3; i++) {
        TV_TRY(tv_run_need(r, in[i]));
        if (!tv_shape_broadcast(&s, tv_run_shape(r, in[i]), &s))
            return tv_run_unknown(r, n);
    }
    const uint32_t y = tv_run_make(r, tv_aten_dtype(r, n, 0, tv_run_at(r, x)->dtype), &s);
    tv_step step = {.kind = TV_STEP_BINARY};
    step.u.binary.product = true;
    step.u.binary.inplace = tv_aten_inplace(n);
    tv_run_push(r, &step, in, 3, &y, 1);
    tv_aten_out(r, n, 0, y);
    return NULL;
}

static const tv_err *where(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t condition = tv_aten_in(r, n, "condition");
    uint32_t x = tv_aten_in(r, n, "self"), y = tv_aten_in(r, n, "other"), z = TV_NO_VALUE;
    if (!tv_aten_has(n, "self") && x == TV_NO_VALUE)
        return tv_aten_routed(r, n, rule); /* where(condition): the indices */
    const uint32_t like = x != TV_NO_VALUE ? x : y;
    x = x != TV_NO_VALUE ? x : tv_aten_operand(r, n, "self", like);
    y = y != TV_NO_VALUE ? y : tv_aten_operand(r, n, "other", like);
    TV_TRY(tv_rule_where(r, condition, x, y, &z));
    tv_aten_out(r, n, 0, z);
    return NULL;
}

static const tv_err *masked_fill(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    uint32_t z = TV_NO_VALUE;
    TV_TRY(tv_rule_where(r, tv_aten_in(r, n, "mask"), tv_aten_operand(r, n, "value", x), x, &z));
    tv_aten_out(r, n, 0, z);
    return NULL;
}

/* max and min: of all, along an axis with indices, or of two tensors. */
static const tv_err *extreme(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n), other = tv_aten_in(r, n, "other");
    const bool max = rule->arg == TV_REDUCE_MAX;
    const int64_t *axes = NULL;
    const size_t n_axes = tv_aten_ints(r, n, "dim", &axes);
    uint32_t y = TV_NO_VALUE;
    if (other != TV_NO_VALUE)
        return fn2_out(r, n, max ? TV_FN2_MAX : TV_FN2_MIN, x, other);
    TV_TRY(tv_rule_reduce(r,
                          (tv_reduce_call){.kind = (tv_reduce_kind)rule->arg,
                                           .keep_axes = tv_aten_flag(r, n, "keepdim")},
                          x, axes, n_axes, &y));
    tv_aten_out(r, n, 0, y);
    tv_aten_rest(r, n, 1, x);
    return NULL;
}

/* ---- along axes ---- */

static const tv_err *reduce_as(tv_running *r, const tv_node *n, tv_reduce_kind kind)
{
    const uint32_t x = tv_aten_first(r, n);
    const int64_t *axes = NULL;
    const size_t n_axes = tv_aten_ints(r, n, "dim", &axes);
    uint32_t y = TV_NO_VALUE;
    const tv_reduce_call call = {.kind = kind,
                                 .keep_axes = tv_aten_flag(r, n, "keepdim"),
                                 .dtype = tv_aten_dtype(r, n, 0, TV_DTYPE_UNKNOWN)};
    TV_TRY(tv_rule_reduce(r, call, x, axes, n_axes, &y));
    tv_aten_out(r, n, 0, y);
    return NULL;
}

static const tv_err *reduce(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    return reduce_as(r, n, (tv_reduce_kind)rule->arg);
}

static const tv_err *norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const double p = tv_aten_num(r, n, "p", tv_aten_num(r, n, "ord", 2));
    return reduce_as(r, n, p == 1 ? TV_REDUCE_L1 : isinf(p) ? TV_REDUCE_MAX : TV_REDUCE_L2);
}

/* Two reductions of the same shape: variance or deviation and mean, least and greatest. */
static const tv_err *two_of_one(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    const int64_t *axes = NULL;
    const size_t n_axes = tv_aten_ints(r, n, "dim", &axes);
    const bool keep = tv_aten_flag(r, n, "keepdim");
    const bool ends = rule->arg == TV_REDUCE_MIN;
    for (size_t i = 0; i < 2; i++) {
        uint32_t y = TV_NO_VALUE;
        const tv_reduce_kind second = ends ? TV_REDUCE_MAX : TV_REDUCE_MEAN;
        const tv_reduce_kind kind = i ? second : (tv_reduce_kind)rule->arg;
        TV_TRY(tv_rule_reduce(r, (tv_reduce_call){.kind = kind, .keep_axes = keep}, x, axes, n_axes,
                              &y));
        tv_aten_out(r, n, i, y);
    }
    return NULL;
}

static const tv_err *cumulative(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_cumulative(r, x, &y));
    tv_aten_out(r, n, 0, y);
    tv_aten_rest(r, n, 1, x);
    return NULL;
}

static const tv_err *softmax(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t y = TV_NO_VALUE;
    TV_TRY(
        tv_rule_softmax(r, rule->arg != 0, tv_aten_int(r, n, "dim", -1), tv_aten_first(r, n), &y));
    tv_aten_out(r, n, 0, y);
    return NULL;
}

static const tv_err *dropout(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    uint32_t y = TV_NO_VALUE;
    const double p = tv_aten_num(r, n, "p", 0.5);
    const bool on = tv_aten_int(r, n, "train", 1) != 0 || tv_run_program(r)->training == false;
    if (!on)
        TV_TRY(tv_aten_same(r, n, rule));
    else {
        TV_TRY(tv_rule_dropout(r, p, x, &y));
        tv_aten_out(r, n, 0, y);
    }
    tv_aten_rest(r, n, 1, x);
    return NULL;
}

/* A slope for each channel: the second axis. */
static const tv_err *prelu(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    uint32_t w = tv_aten_in(r, n, "weight");
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w));
    const tv_shape *s = tv_run_shape(r, w);
    const uint32_t rank = tv_run_shape(r, x)->rank;
    if (s->rank == 1 && s->d[0] > 1 && rank >= 2) {
        tv_shape spread = {.rank = rank - 1};
        for (uint32_t i = 0; i < spread.rank; i++)
            spread.d[i] = i ? 1 : s->d[0];
        TV_TRY(tv_rule_view(r, w, &spread, &w));
    }
    return fn2_out(r, n, TV_FN2_PRELU, x, w);
}

static const tv_rule rules[] = {
    {"aten.relu", unary, TV_FN_RELU},
    {"aten.relu6", unary, TV_FN_RELU6},
    {"aten.leaky_relu", unary, TV_FN_LEAKY_RELU},
    {"aten.rrelu", unary, TV_FN_LEAKY_RELU},
    {"aten.rrelu_with_noise", unary, TV_FN_LEAKY_RELU},
    {"aten.elu", unary, TV_FN_ELU},
    {"aten.selu", unary, TV_FN_SELU},
    {"aten.celu", unary, TV_FN_CELU},
    {"aten.gelu", gelu, 0},
    {"aten.silu", unary, TV_FN_SILU},
    {"aten.hardswish", unary, TV_FN_HARDSWISH},
    {"aten.hardsigmoid", unary, TV_FN_HARDSIGMOID},
    {"aten.hardtanh", hardtanh, 0},
    {"aten.hardshrink", unary, TV_FN_SHRINK},
    {"aten.softshrink", unary, TV_FN_SHRINK},
    {"aten.sigmoid", unary, TV_FN_SIGMOID},
    {"aten.special_expit", unary, TV_FN_SIGMOID},
    {"aten.log_sigmoid", unary, TV_FN_LOG_SIGMOID},
    {"aten.log_sigmoid_forward", unary, TV_FN_LOG_SIGMOID},
    {"aten.tanh", unary, TV_FN_TANH},
    {"aten.mish", unary, TV_FN_MISH},
    {"aten.softplus", unary, TV_FN_SOFTPLUS},
    {"aten.threshold", unary, TV_FN_THRESHOLDED_RELU},
    {"aten.prelu", prelu, 0},
    {"aten._prelu_kernel", prelu, 0},
    {"aten.glu", glu, 0},
    {"aten.exp", unary, TV_FN_EXP},
    {"aten.exp2", unary, TV_FN_EXP},
    {"aten.expm1", unary, TV_FN_EXPM1},
    {"aten.log", unary, TV_FN_LOG},
    {"aten.log1p", unary, TV_FN_LOG1P},
    {"aten.log2", unary, TV_FN_LOG2},
    {"aten.log10", unary, TV_FN_LOG10},
    {"aten.logit", unary, TV_FN_LOG},
    {"aten.sqrt", unary, TV_FN_SQRT},
    {"aten.rsqrt", unary, TV_FN_RSQRT},
    {"aten.reciprocal", unary, TV_FN_RECIPROCAL},
    {"aten.square", unary, TV_FN_SQUARE},
    {"aten.abs", unary, TV_FN_ABS},
    {"aten.absolute", unary, TV_FN_ABS},
    {"aten.neg", unary, TV_FN_NEG},
    {"aten.negative", unary, TV_FN_NEG},
    {"aten.sign", unary, TV_FN_SIGN},
    {"aten.sgn", unary, TV_FN_SIGN},
    {"aten.signbit", unary, TV_FN_IS_NAN},
    {"aten.floor", unary, TV_FN_FLOOR},
    {"aten.ceil", unary, TV_FN_CEIL},
    {"aten.round", unary, TV_FN_ROUND},
    {"aten.trunc", unary, TV_FN_TRUNC},
    {"aten.fix", unary, TV_FN_TRUNC},
    {"aten.frac", unary, TV_FN_CEIL},
    {"aten.erf", unary, TV_FN_ERF},
    {"aten.erfc", unary, TV_FN_ERF},
    {"aten.erfinv", unary, TV_FN_ERF},
    {"aten.special_erf", unary, TV_FN_ERF},
    {"aten.lgamma", unary, TV_FN_LGAMMA},
    {"aten.digamma", unary, TV_FN_LGAMMA},
    {"aten.i0", unary, TV_FN_LGAMMA},
    {"aten.sin", unary, TV_FN_SIN},
    {"aten.cos", unary, TV_FN_COS},
    {"aten.tan", unary, TV_FN_TAN},
    {"aten.sinc", unary, TV_FN_SIN},
    {"aten.asin", unary, TV_FN_ASIN},
    {"aten.arcsin", unary, TV_FN_ASIN},
    {"aten.acos", unary, TV_FN_ACOS},
    {"aten.arccos", unary, TV_FN_ACOS},
    {"aten.atan", unary, TV_FN_ATAN},
    {"aten.arctan", unary, TV_FN_ATAN},
    {"aten.angle", unary, TV_FN_ATAN},
    {"aten.sinh", unary, TV_FN_SINH},
    {"aten.cosh", unary, TV_FN_COSH},
    {"aten.asinh", unary, TV_FN_ASINH},
    {"aten.acosh", unary, TV_FN_ACOSH},
    {"aten.atanh", unary, TV_FN_ATANH},
    {"aten.deg2rad", unary, TV_FN_SCALE},
    {"aten.rad2deg", unary, TV_FN_SCALE},
    {"aten.nan_to_num", unary, TV_FN_CLIP},
    {"aten.logical_not", unary, TV_FN_NOT},
    {"aten.bitwise_not", unary, TV_FN_BIT_NOT},
    {"aten.isnan", unary, TV_FN_IS_NAN},
    {"aten.isinf", unary, TV_FN_IS_INF},
    {"aten.isfinite", unary, TV_FN_IS_INF},
    {"aten.clamp", clamp, 0},
    {"aten.clip", clamp, 0},
    {"aten.clamp_min", clamp, 0},
    {"aten.clamp_max", clamp, 0},

    {"aten.add", binary, TV_FN2_ADD},
    {"aten.sub", binary, TV_FN2_SUB},
    {"aten.subtract", binary, TV_FN2_SUB},
    {"aten.rsub", reversed, 0},
    {"aten.mul", binary, TV_FN2_MUL},
    {"aten.multiply", binary, TV_FN2_MUL},
    {"aten.div", division, TV_FN2_DIV},
    {"aten.divide", division, TV_FN2_DIV},
    {"aten.true_divide", binary, TV_FN2_DIV},
    {"aten.floor_divide", binary, TV_FN2_FLOOR_DIV},
    {"aten.remainder", binary, TV_FN2_MOD},
    {"aten.fmod", binary, TV_FN2_FMOD},
    {"aten.pow", power, 0},
    {"aten.float_power", power, 0},
    {"aten.maximum", binary, TV_FN2_MAX},
    {"aten.minimum", binary, TV_FN2_MIN},
    {"aten.fmax", binary, TV_FN2_MAX},
    {"aten.fmin", binary, TV_FN2_MIN},
    {"aten.eq", binary, TV_FN2_EQUAL},
    {"aten.ne", binary, TV_FN2_NOT_EQUAL},
    {"aten.not_equal", binary, TV_FN2_NOT_EQUAL},
    {"aten.lt", binary, TV_FN2_LESS},
    {"aten.less", binary, TV_FN2_LESS},
    {"aten.le", binary, TV_FN2_LESS_EQUAL},
    {"aten.less_equal", binary, TV_FN2_LESS_EQUAL},
    {"aten.gt", binary, TV_FN2_GREATER},
    {"aten.greater", binary, TV_FN2_GREATER},
    {"aten.ge", binary, TV_FN2_GREATER_EQUAL},
    {"aten.greater_equal", binary, TV_FN2_GREATER_EQUAL},
    {"aten.logical_and", binary, TV_FN2_AND},
    {"aten.logical_or", binary, TV_FN2_OR},
    {"aten.logical_xor", binary, TV_FN2_XOR},
    {"aten.bitwise_and", binary, TV_FN2_BIT_AND},
    {"aten.bitwise_or", binary, TV_FN2_BIT_OR},
    {"aten.bitwise_xor", binary, TV_FN2_BIT_XOR},
    {"aten.__and__", binary, TV_FN2_BIT_AND},
    {"aten.__or__", binary, TV_FN2_BIT_OR},
    {"aten.__xor__", binary, TV_FN2_BIT_XOR},
    {"aten.__lshift__", binary, TV_FN2_SHIFT_LEFT},
    {"aten.__rshift__", binary, TV_FN2_SHIFT_RIGHT},
    {"aten.bitwise_left_shift", binary, TV_FN2_SHIFT_LEFT},
    {"aten.bitwise_right_shift", binary, TV_FN2_SHIFT_RIGHT},
    {"aten.atan2", binary, TV_FN2_ATAN2},
    {"aten.arctan2", binary, TV_FN2_ATAN2},
    {"aten.hypot", binary, TV_FN2_ATAN2},
    {"aten.logaddexp", binary, TV_FN2_ATAN2},
    {"aten.xlogy", binary, TV_FN2_ATAN2},
    {"aten.copysign", binary, TV_FN2_ATAN2},
    {"aten.lerp", three, 0},
    {"aten.addcmul", three, 1},
    {"aten.addcdiv", three, 2},
    {"aten.where", where, 0},
    {"aten.masked_fill", masked_fill, 0},

    {"aten.max", extreme, TV_REDUCE_MAX},
    {"aten.min", extreme, TV_REDUCE_MIN},
    {"aten.amax", reduce, TV_REDUCE_MAX},
    {"aten.amin", reduce, TV_REDUCE_MIN},
    {"aten.aminmax", two_of_one, TV_REDUCE_MIN},
    {"aten.sum", reduce, TV_REDUCE_SUM},
    {"aten.nansum", reduce, TV_REDUCE_SUM},
    {"aten.count_nonzero", reduce, TV_REDUCE_SUM},
    {"aten.mean", reduce, TV_REDUCE_MEAN},
    {"aten.nanmean", reduce, TV_REDUCE_MEAN},
    {"aten.prod", reduce, TV_REDUCE_PROD},
    {"aten.any", reduce, TV_REDUCE_ANY},
    {"aten.all", reduce, TV_REDUCE_ALL},
    {"aten.argmax", reduce, TV_REDUCE_ARG_MAX},
    {"aten.argmin", reduce, TV_REDUCE_ARG_MIN},
    {"aten.logsumexp", reduce, TV_REDUCE_LOG_SUM_EXP},
    {"aten.var", reduce, TV_REDUCE_VARIANCE},
    {"aten.std", reduce, TV_REDUCE_VARIANCE},
    {"aten.var_mean", two_of_one, TV_REDUCE_VARIANCE},
    {"aten.std_mean", two_of_one, TV_REDUCE_VARIANCE},
    {"aten.norm", norm, 0},
    {"aten.linalg_vector_norm", norm, 0},
    {"aten.frobenius_norm", norm, 0},
    {"aten.cumsum", cumulative, 0},
    {"aten.cumprod", cumulative, 0},
    {"aten.logcumsumexp", cumulative, 0},
    {"aten.cummax", cumulative, 0},
    {"aten.cummin", cumulative, 0},
    {"aten.softmax", softmax, 0},
    {"aten._softmax", softmax, 0},
    {"aten._safe_softmax", softmax, 0},
    {"aten.special_softmax", softmax, 0},
    {"aten.log_softmax", softmax, 1},
    {"aten._log_softmax", softmax, 1},
    {"aten.special_log_softmax", softmax, 1},
    {"aten.dropout", dropout, 0},
    {"aten.native_dropout", dropout, 0},
    {"aten.feature_dropout", dropout, 0},
    {"aten.alpha_dropout", dropout, 0},
};

extern const tv_rule_table tv_rules_aten_math;
const tv_rule_table tv_rules_aten_math = {TV_DIALECT_ATEN, "", rules, sizeof rules / sizeof *rules};
