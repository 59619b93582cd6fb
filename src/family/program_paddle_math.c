/* Paddle's arithmetic: functions of one and of two tensors, reductions, softmax and losses. */
#include "program_paddle.h"

#include <float.h>

/* ---- one tensor ---- */

PD_RULE(unary)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_fn_call call = {.fn = (tv_fn)rule->arg, .inplace = tv_pd_inplace(n)};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    if (call.fn == TV_FN_GELU && tv_pd_attr_num(r, n, "approximate", 0) != 0)
        call.fn = TV_FN_GELU_TANH;
    TV_TRY(tv_rule_fn(r, call, x, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(scale)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const tv_pd_where where = {.attr = "scale", .tensor = "ScaleTensor", .place = 1};
    tv_fn_call call = {.fn = TV_FN_SCALE, .inplace = tv_pd_inplace(n)};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    call.a = tv_pd_read_num(r, n, where, 1);
    call.b = tv_pd_attr_num(r, n, "bias", 0);
    if (tv_pd_attr_num(r, n, "bias_after_scale", 1) == 0)
        call.b *= call.a;
    (void)rule;
    TV_TRY(tv_rule_fn(r, call, x, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(clip)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_fn_call call = {.fn = TV_FN_CLIP, .inplace = tv_pd_inplace(n)};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    call.a = tv_pd_read_num(r, n, (tv_pd_where){.attr = "min|t_min", .tensor = "Min", .place = 1},
                            -DBL_MAX);
    call.b = tv_pd_read_num(r, n, (tv_pd_where){.attr = "max|t_max", .tensor = "Max", .place = 2},
                            DBL_MAX);
    (void)rule;
    TV_TRY(tv_rule_fn(r, call, x, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(power)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_fn_call call = {.fn = TV_FN_POW, .inplace = tv_pd_inplace(n)};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    call.a = tv_pd_read_num(
        r, n, (tv_pd_where){.attr = "factor|y", .tensor = "FactorTensor", .place = PD_NONE}, 2);
    (void)rule;
    TV_TRY(tv_rule_fn(r, call, x, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(cast)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_cast(r, x, tv_pd_attr_dtype(n, "out_dtype|dtype", tv_run_at(r, x)->dtype), &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* x·sigmoid-like gates: swiglu halves its last axis, or takes a second tensor. */
PD_RULE(swiglu)
{
    uint32_t x = tv_pd_in(r, n, "x", 0), gate = tv_pd_in(r, n, "y", 1), y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    if (gate == TV_NO_VALUE) {
        const tv_shape *s = tv_run_shape(r, x);
        const int64_t half = s->rank ? s->d[s->rank - 1] / 2 : 0;
        uint32_t parts[2];
        TV_TRY(tv_rule_split(r, -1, (const int64_t[]){half, half}, 2, true, x, parts));
        x = parts[0];
        gate = parts[1];
    }
    TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = TV_FN_SILU}, x, &y));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MUL}, y, gate, &y));
    tv_pd_out(r, n, "out", 0, y);
    return NULL;
}

/* ---- two tensors ---- */

/* y's axes stand under x's from `axis` on: trailing axes of size 1 are added. */
static const tv_err *align(tv_running *r, int64_t axis, uint32_t x, uint32_t *y)
{
    const tv_shape *xs = tv_run_shape(r, x);
    tv_shape ys = *tv_run_shape(r, *y);
    if (axis < 0 || ys.rank >= xs->rank || axis + (int64_t)ys.rank >= (int64_t)xs->rank)
        return NULL;
    /* Axes of size 1 at the end count for nothing (Paddle trims them). */
    while ((int64_t)ys.rank + axis < (int64_t)xs->rank)
        ys.d[ys.rank++] = 1;
    return tv_rule_view(r, *y, &ys, y);
}

static const tv_err *trimmed(tv_running *r, int64_t axis, uint32_t x, uint32_t *y)
{
    tv_shape ys = *tv_run_shape(r, *y);
    const uint32_t rank = ys.rank;
    while (axis >= 0 && ys.rank > 1 && ys.d[ys.rank - 1] == 1 &&
           axis + (int64_t)ys.rank > (int64_t)tv_run_shape(r, x)->rank)
        ys.rank--;
    return ys.rank == rank ? NULL : tv_rule_view(r, *y, &ys, y);
}

PD_RULE(binary)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t y = tv_pd_in(r, n, "Y", 1), z = TV_NO_VALUE;
    const int64_t axis = tv_pd_attr_int(r, n, "axis", -1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    TV_TRY(trimmed(r, axis, x, &y));
    TV_TRY(align(r, axis, x, &y));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = (tv_fn2)rule->arg, .inplace = tv_pd_inplace(n)}, x, y,
                       &z));
    tv_pd_out(r, n, "Out", 0, z);
    return NULL;
}

PD_RULE(fused_binary)
{
    uint32_t x = tv_pd_in(r, n, "X", 0), y = tv_pd_in(r, n, "Y", 1), z = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    TV_TRY(align(r, tv_pd_attr_int(r, n, "axis", -1), x, &y));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = (tv_fn2)rule->arg}, x, y, &z));
    const tv_attr *list = tv_node_attr(n, "functor_list");
    for (size_t i = 0; list && list->kind == TV_ATTR_STRINGS && i < list->n; i++)
        TV_TRY(tv_pd_activate(r, list->u.strings[i], z, &z));
    tv_pd_out(r, n, "Out", 0, z);
    return NULL;
}

PD_RULE(prelu)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t alpha = tv_pd_in(r, n, "Alpha", 1), y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, alpha));
    const tv_shape *s = tv_run_shape(r, x);
    const int64_t slopes = tv_shape_count(tv_run_shape(r, alpha));
    tv_shape shape = {.rank = s->rank};
    for (uint32_t i = 0; i < s->rank; i++)
        shape.d[i] = i == 1 && s->d[1] == slopes ? slopes : 1;
    if (slopes > 1 && s->rank > 1 && s->d[1] == slopes)
        TV_TRY(tv_rule_view(r, alpha, &shape, &alpha));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_PRELU}, x, alpha, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(where)
{
    const uint32_t c = tv_pd_in(r, n, "Condition", 0), x = tv_pd_in(r, n, "X", 1);
    const uint32_t y = tv_pd_in(r, n, "Y", 2);
    uint32_t z = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, c));
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    TV_TRY(tv_rule_where(r, c, x, y, &z));
    tv_pd_out(r, n, "Out", 0, z);
    return NULL;
}

static const tv_err *add_all(tv_running *r, const tv_node *n)
{
    const tv_pd_list x = tv_pd_in_list(r, n, "X", 0);
    uint32_t y = TV_NO_VALUE;
    if (x.n == 0)
        return tv_run_need(r, TV_NO_VALUE);
    TV_TRY(tv_rule_many(r, TV_FN2_ADD, false, x.v, x.n, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(add_n)
{
    (void)rule;
    return add_all(r, n);
}

/* ---- reductions ---- */

static const tv_err *reduce(tv_running *r, const tv_node *n, tv_reduce_kind kind, tv_dtype dtype)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_pd_ints axes;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "dim|axis", .tensor = "AxisTensor", .place = 1},
                    &axes);
    const bool all =
        tv_pd_attr_num(r, n, "reduce_all|asvector", 0) != 0 || axes.n >= tv_run_shape(r, x)->rank;
    tv_reduce_call call = {.kind = kind, .dtype = dtype};
    call.keep_axes = tv_pd_attr_num(r, n, "keep_dim|keepdim|keepdims", 0) != 0;
    TV_TRY(tv_rule_reduce(r, call, x, axes.v, all || !axes.known ? 0 : axes.n, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(reduction)
{
    return reduce(r, n, (tv_reduce_kind)rule->arg, tv_pd_attr_dtype(n, "out_dtype|dtype", 0));
}

/* "sum" adds its operands in ProgramDesc and an axis in PIR. */
PD_RULE(sum)
{
    (void)rule;
    return tv_run_program(r)->pir ? reduce(r, n, TV_REDUCE_SUM, tv_pd_attr_dtype(n, "dtype", 0))
                                  : add_all(r, n);
}

/* Over everything: mean of ProgramDesc, mean_all, norms of a whole tensor. */
PD_RULE(reduce_whole)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t y = TV_NO_VALUE;
    if (rule->arg == TV_REDUCE_MEAN && tv_run_program(r)->pir && tv_str_is(n->op, "mean"))
        return reduce(r, n, TV_REDUCE_MEAN, 0);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_reduce(r, (tv_reduce_call){.kind = (tv_reduce_kind)rule->arg}, x, NULL, 0, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(arg_extreme)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const int64_t axis = tv_pd_read_int(r, n, (tv_pd_where){.attr = "axis", .place = 1}, -1);
    const bool flat = tv_pd_attr_num(r, n, "flatten", 0) != 0;
    tv_reduce_call call = {.kind = (tv_reduce_kind)rule->arg, .dtype = TV_I64};
    call.keep_axes = tv_pd_attr_num(r, n, "keepdims|keepdim", 0) != 0;
    call.dtype = tv_pd_attr_dtype(n, "dtype", TV_I64);
    TV_TRY(tv_rule_reduce(r, call, x, &axis, flat ? 0 : 1, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(cumulative)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t flat = x, y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    if (tv_pd_attr_num(r, n, "flatten", 0) != 0)
        TV_TRY(tv_rule_flatten(r, x, 0, (int64_t)tv_run_shape(r, x)->rank - 1, &flat));
    TV_TRY(tv_rule_cumulative(r, flat, &y));
    tv_pd_out(r, n, "Out", 0, y);
    if (tv_pd_out_count(r, n, "indices", 1))
        tv_pd_out(r, n, "indices", 1, tv_run_make(r, TV_I64, tv_run_shape(r, y)));
    return NULL;
}

/* x / ||x|| along an axis. */
PD_RULE(l2_normalize)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const int64_t axis = tv_pd_attr_int(r, n, "axis", -1);
    uint32_t norm = TV_NO_VALUE, y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_reduce(r, (tv_reduce_call){.kind = TV_REDUCE_L2, .keep_axes = true}, x, &axis, 1,
                          &norm));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_DIV}, x, norm, &y));
    tv_pd_out(r, n, "Out", 0, y);
    tv_pd_out(r, n, "Norm", 1, norm);
    return NULL;
}

/* A scaling by a norm that is worked out first: clip_by_norm. */
PD_RULE(clip_by_norm)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t norm = TV_NO_VALUE, y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_reduce(r, (tv_reduce_call){.kind = TV_REDUCE_L2}, x, NULL, 0, &norm));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MUL}, x, norm, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* ---- softmax and losses ---- */

PD_RULE(softmax)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_softmax(r, rule->arg != 0, tv_pd_attr_int(r, n, "axis", -1), x, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* softmax(x + mask), the mask given or causal, in one kernel. */
PD_RULE(softmax_mask)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), mask = tv_pd_in(r, n, "Mask", 1);
    uint32_t y = x;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    if (mask != TV_NO_VALUE && tv_str_has(n->op, TV_S("mask")) && n->n_inputs > 1)
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, x, mask, &y));
    TV_TRY(tv_rule_softmax(r, false, -1, y, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* x with its class axis of size 1. */
static uint32_t per_row(tv_running *r, uint32_t x, int64_t axis)
{
    tv_shape s = *tv_run_shape(r, x);
    uint32_t at = 0;
    if (tv_shape_axis(axis, s.rank, &at))
        s.d[at] = 1;
    return tv_run_make(r, tv_run_at(r, x)->dtype, &s);
}

PD_RULE(softmax_cross_entropy)
{
    const uint32_t x = tv_pd_in(r, n, "Logits", 0), label = tv_pd_in(r, n, "Label", 1);
    const int64_t axis = tv_pd_attr_int(r, n, "axis", -1);
    uint32_t loss = TV_NO_VALUE, softmax = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, label));
    TV_TRY(tv_rule_loss(r, true, false, x, label, &loss));
    const uint32_t rows = per_row(r, x, axis);
    TV_TRY(tv_pd_reshaped(r, loss, tv_run_shape(r, rows), &loss));
    softmax = tv_run_make(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x));
    tv_pd_out(r, n, "Softmax", 0, softmax);
    tv_pd_out(r, n, "Loss", 1, loss);
    return NULL;
}

/* Probabilities and labels: cross_entropy of ProgramDesc. */
PD_RULE(cross_entropy)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), label = tv_pd_in(r, n, "Label", 1);
    uint32_t loss = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, label));
    TV_TRY(tv_rule_loss(r, true, false, x, label, &loss));
    TV_TRY(tv_pd_reshaped(r, loss, tv_run_shape(r, per_row(r, x, -1)), &loss));
    tv_pd_out(r, n, "Y", 0, loss);
    return NULL;
}

/* Element by element against a target: the loss has x's shape. */
PD_RULE(elementwise_loss)
{
    static const char *const inputs[] = {"X", "Logits", "Predicted", "Input"};
    static const char *const targets[] = {"Label", "Y", "Labels", "Target"};
    static const char *const outputs[] = {"Out", "Loss"};
    uint32_t x = TV_NO_VALUE, target = TV_NO_VALUE, y = TV_NO_VALUE;
    (void)rule;
    for (size_t i = 0; i < 4; i++) {
        x = x == TV_NO_VALUE ? tv_pd_in(r, n, inputs[i], 0) : x;
        target = target == TV_NO_VALUE ? tv_pd_in(r, n, targets[i], 1) : target;
    }
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_loss(r, false, false, x, target, &y));
    for (size_t i = 0; i < 2; i++)
        tv_pd_out(r, n, outputs[i], 0, y);
    return NULL;
}

/* One number per row: nll, CTC, CRF, ranking losses. */
PD_RULE(row_loss)
{
    static const char *const outputs[] = {"Loss", "Out", "LogLikelihood", "Cost", "Total_weight"};
    const uint32_t x = tv_pd_main(r, n), target = tv_pd_in(r, n, "Label", 1);
    tv_shape declared = {0};
    tv_dtype dtype = TV_DTYPE_UNKNOWN;
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_loss(r, true, true, x, target, &y));
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        if (!tv_pd_out_count(r, n, outputs[i], i == 0 ? 0 : PD_NONE))
            continue;
        if (tv_pd_declared(r, n, outputs[i], 0, 0, &declared, &dtype) && declared.rank)
            TV_TRY(tv_pd_reshaped(r, y, &declared, &y));
        tv_pd_out(r, n, outputs[i], 0, y);
    }
    return NULL;
}

#define FN(name, fn)                                                                               \
    {                                                                                              \
        name, unary, fn                                                                            \
    }
#define FN2(name, fn)                                                                              \
    {                                                                                              \
        name, binary, fn                                                                           \
    }
#define RED(name, kind)                                                                            \
    {                                                                                              \
        name, reduction, kind                                                                      \
    }

static const tv_rule rules[] = {
    FN("relu", TV_FN_RELU),
    FN("relu6", TV_FN_RELU6),
    FN("leaky_relu", TV_FN_LEAKY_RELU),
    FN("elu", TV_FN_ELU),
    FN("selu", TV_FN_SELU),
    FN("celu", TV_FN_CELU),
    FN("gelu", TV_FN_GELU),
    FN("fast_gelu", TV_FN_GELU_TANH),
    FN("silu", TV_FN_SILU),
    FN("swish", TV_FN_SILU),
    FN("hard_swish", TV_FN_HARDSWISH),
    FN("hardswish", TV_FN_HARDSWISH),
    FN("hard_sigmoid", TV_FN_HARDSIGMOID),
    FN("hardsigmoid", TV_FN_HARDSIGMOID),
    FN("sigmoid", TV_FN_SIGMOID),
    FN("logsigmoid", TV_FN_LOG_SIGMOID),
    FN("tanh", TV_FN_TANH),
    FN("mish", TV_FN_MISH),
    FN("softplus", TV_FN_SOFTPLUS),
    FN("softsign", TV_FN_SOFTSIGN),
    FN("thresholded_relu", TV_FN_THRESHOLDED_RELU),
    FN("hard_shrink", TV_FN_SHRINK),
    FN("hardshrink", TV_FN_SHRINK),
    FN("softshrink", TV_FN_SHRINK),
    FN("tanh_shrink", TV_FN_TANH),
    FN("stanh", TV_FN_TANH),
    FN("logit", TV_FN_LOG),
    FN("exp", TV_FN_EXP),
    FN("expm1", TV_FN_EXPM1),
    FN("log", TV_FN_LOG),
    FN("log1p", TV_FN_LOG1P),
    FN("log2", TV_FN_LOG2),
    FN("log10", TV_FN_LOG10),
    FN("sqrt", TV_FN_SQRT),
    FN("rsqrt", TV_FN_RSQRT),
    FN("reciprocal", TV_FN_RECIPROCAL),
    FN("square", TV_FN_SQUARE),
    FN("abs", TV_FN_ABS),
    FN("neg", TV_FN_NEG),
    FN("sign", TV_FN_SIGN),
    FN("floor", TV_FN_FLOOR),
    FN("ceil", TV_FN_CEIL),
    FN("round", TV_FN_ROUND),
    FN("trunc", TV_FN_TRUNC),
    FN("erf", TV_FN_ERF),
    FN("erfinv", TV_FN_ERF),
    FN("lgamma", TV_FN_LGAMMA),
    FN("digamma", TV_FN_LGAMMA),
    FN("sin", TV_FN_SIN),
    FN("cos", TV_FN_COS),
    FN("tan", TV_FN_TAN),
    FN("asin", TV_FN_ASIN),
    FN("acos", TV_FN_ACOS),
    FN("atan", TV_FN_ATAN),
    FN("sinh", TV_FN_SINH),
    FN("cosh", TV_FN_COSH),
    FN("asinh", TV_FN_ASINH),
    FN("acosh", TV_FN_ACOSH),
    FN("atanh", TV_FN_ATANH),
    FN("logical_not", TV_FN_NOT),
    FN("bitwise_not", TV_FN_BIT_NOT),
    FN("isnan", TV_FN_IS_NAN),
    FN("isnan_v2", TV_FN_IS_NAN),
    FN("isinf", TV_FN_IS_INF),
    FN("isinf_v2", TV_FN_IS_INF),
    FN("isfinite", TV_FN_IS_INF),
    FN("isfinite_v2", TV_FN_IS_INF),
    {"scale", scale, 0},
    {"clip", clip, 0},
    {"brelu", clip, 0},
    {"hardtanh", clip, 0},
    {"pow", power, 0},
    {"cast", cast, 0},
    {"swiglu", swiglu, 0},
    FN2("elementwise_add", TV_FN2_ADD),
    FN2("elementwise_sub", TV_FN2_SUB),
    FN2("elementwise_mul", TV_FN2_MUL),
    FN2("elementwise_div", TV_FN2_DIV),
    FN2("elementwise_min", TV_FN2_MIN),
    FN2("elementwise_max", TV_FN2_MAX),
    FN2("elementwise_fmin", TV_FN2_MIN),
    FN2("elementwise_fmax", TV_FN2_MAX),
    FN2("elementwise_pow", TV_FN2_POW),
    FN2("elementwise_mod", TV_FN2_MOD),
    FN2("elementwise_floordiv", TV_FN2_FLOOR_DIV),
    FN2("elementwise_heaviside", TV_FN2_MAX),
    FN2("grad_add", TV_FN2_ADD),
    FN2("minus", TV_FN2_SUB),
    FN2("add", TV_FN2_ADD),
    FN2("subtract", TV_FN2_SUB),
    FN2("multiply", TV_FN2_MUL),
    FN2("divide", TV_FN2_DIV),
    FN2("minimum", TV_FN2_MIN),
    FN2("maximum", TV_FN2_MAX),
    FN2("fmin", TV_FN2_MIN),
    FN2("fmax", TV_FN2_MAX),
    FN2("remainder", TV_FN2_MOD),
    FN2("floor_divide", TV_FN2_FLOOR_DIV),
    FN2("heaviside", TV_FN2_MAX),
    FN2("equal", TV_FN2_EQUAL),
    FN2("not_equal", TV_FN2_NOT_EQUAL),
    FN2("less_than", TV_FN2_LESS),
    FN2("less_equal", TV_FN2_LESS_EQUAL),
    FN2("greater_than", TV_FN2_GREATER),
    FN2("greater_equal", TV_FN2_GREATER_EQUAL),
    FN2("isclose", TV_FN2_EQUAL),
    FN2("logical_and", TV_FN2_AND),
    FN2("logical_or", TV_FN2_OR),
    FN2("logical_xor", TV_FN2_XOR),
    FN2("bitwise_and", TV_FN2_BIT_AND),
    FN2("bitwise_or", TV_FN2_BIT_OR),
    FN2("bitwise_xor", TV_FN2_BIT_XOR),
    FN2("bitwise_left_shift", TV_FN2_SHIFT_LEFT),
    FN2("bitwise_right_shift", TV_FN2_SHIFT_RIGHT),
    FN2("atan2", TV_FN2_ATAN2),
    {"fused_elemwise_activation", fused_binary, TV_FN2_ADD},
    {"fused_elemwise_add_activation", fused_binary, TV_FN2_ADD},
    {"fused_elementwise_add", binary, TV_FN2_ADD},
    {"fused_elementwise_sub", binary, TV_FN2_SUB},
    {"fused_elementwise_mul", binary, TV_FN2_MUL},
    {"fused_elementwise_div", binary, TV_FN2_DIV},
    {"prelu", prelu, 0},
    {"where", where, 0},
    {"add_n", add_n, 0},
    {"sum", sum, 0},
    RED("reduce_sum", TV_REDUCE_SUM),
    RED("reduce_mean", TV_REDUCE_MEAN),
    RED("reduce_max", TV_REDUCE_MAX),
    RED("reduce_min", TV_REDUCE_MIN),
    RED("reduce_amax", TV_REDUCE_MAX),
    RED("reduce_amin", TV_REDUCE_MIN),
    RED("reduce_prod", TV_REDUCE_PROD),
    RED("reduce_all", TV_REDUCE_ALL),
    RED("reduce_any", TV_REDUCE_ANY),
    RED("max", TV_REDUCE_MAX),
    RED("min", TV_REDUCE_MIN),
    RED("amax", TV_REDUCE_MAX),
    RED("amin", TV_REDUCE_MIN),
    RED("prod", TV_REDUCE_PROD),
    RED("all", TV_REDUCE_ALL),
    RED("any", TV_REDUCE_ANY),
    RED("logsumexp", TV_REDUCE_LOG_SUM_EXP),
    RED("frobenius_norm", TV_REDUCE_L2),
    RED("p_norm", TV_REDUCE_L2),
    RED("nanmedian", TV_REDUCE_MAX),
    {"mean", reduce_whole, TV_REDUCE_MEAN},
    {"mean_all", reduce_whole, TV_REDUCE_MEAN},
    {"squared_l2_norm", reduce_whole, TV_REDUCE_SUM_SQUARE},
    {"l1_norm", reduce_whole, TV_REDUCE_L1},
    {"arg_max", arg_extreme, TV_REDUCE_ARG_MAX},
    {"argmax", arg_extreme, TV_REDUCE_ARG_MAX},
    {"arg_min", arg_extreme, TV_REDUCE_ARG_MIN},
    {"argmin", arg_extreme, TV_REDUCE_ARG_MIN},
    {"cumsum", cumulative, 0},
    {"cumprod", cumulative, 0},
    {"logcumsumexp", cumulative, 0},
    {"cummax", cumulative, 0},
    {"cummin", cumulative, 0},
    {"norm", l2_normalize, 0},
    {"clip_by_norm", clip_by_norm, 0},
    {"softmax", softmax, 0},
    {"sequence_softmax", softmax, 0},
    {"log_softmax", softmax, 1},
    {"gumbel_softmax", softmax, 0},
    {"fused_softmax_mask", softmax_mask, 0},
    {"fused_softmax_mask_upper_triangle", softmax_mask, 0},
    {"softmax_with_cross_entropy", softmax_cross_entropy, 0},
    {"cross_entropy_with_softmax", softmax_cross_entropy, 0},
    {"margin_cross_entropy", softmax_cross_entropy, 0},
    {"c_softmax_with_cross_entropy", softmax_cross_entropy, 0},
    {"cross_entropy", cross_entropy, 0},
    {"cross_entropy2", cross_entropy, 0},
    {"sigmoid_cross_entropy_with_logits", elementwise_loss, 0},
    {"bce_loss", elementwise_loss, 0},
    {"square_error_cost", elementwise_loss, 0},
    {"huber_loss", elementwise_loss, 0},
    {"kldiv_loss", elementwise_loss, 0},
    {"log_loss", elementwise_loss, 0},
    {"hinge_loss", elementwise_loss, 0},
    {"sigmoid_focal_loss", elementwise_loss, 0},
    {"smooth_l1_loss", row_loss, 0},
    {"nll_loss", row_loss, 0},
    {"warpctc", row_loss, 0},
    {"warprnnt", row_loss, 0},
    {"linear_chain_crf", row_loss, 0},
    {"rank_loss", row_loss, 0},
    {"margin_rank_loss", row_loss, 0},
    {"bpr_loss", row_loss, 0},
    {"yolov3_loss", row_loss, 0},
    {"yolo_loss", row_loss, 0},
};

const tv_rule_table tv_rules_paddle_math = {TV_DIALECT_PADDLE, "", rules,
                                            sizeof rules / sizeof *rules};
