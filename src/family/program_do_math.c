/* Canonical operations element by element, and reductions: shapes, contents of small tensors,
 * steps. What a function keeps for its backward is torch's derivative formula for it. */
#include <math.h>

#include "program_running.h"

/* ---- functions of one tensor ---- */

typedef struct fn_row {
    tv_keeps keeps;
    bool is_act, is_bool;
    tv_act act;
    double flop;
} fn_row;

static const fn_row fns[TV_FN_COUNT] = {
    [TV_FN_RELU] = {TV_KEEPS_OUTPUT, true, false, TV_ACT_RELU, 1},
    [TV_FN_RELU6] = {TV_KEEPS_INPUT, true, false, TV_ACT_RELU6, 2},
    [TV_FN_LEAKY_RELU] = {TV_KEEPS_INPUT, true, false, TV_ACT_LEAKY_RELU, 2},
    [TV_FN_ELU] = {TV_KEEPS_INPUT, .flop = 4},
    [TV_FN_SELU] = {TV_KEEPS_INPUT, .flop = 5},
    [TV_FN_CELU] = {TV_KEEPS_INPUT, .flop = 5},
    [TV_FN_GELU] = {TV_KEEPS_INPUT, true, false, TV_ACT_GELU, 8},
    [TV_FN_GELU_TANH] = {TV_KEEPS_INPUT, true, false, TV_ACT_GELU, 10},
    [TV_FN_QUICK_GELU] = {TV_KEEPS_INPUT, true, false, TV_ACT_QUICK_GELU, 5},
    [TV_FN_SILU] = {TV_KEEPS_INPUT, true, false, TV_ACT_SILU, 4},
    [TV_FN_HARDSWISH] = {TV_KEEPS_INPUT, true, false, TV_ACT_HARDSWISH, 4},
    [TV_FN_HARDSIGMOID] = {TV_KEEPS_INPUT, true, false, TV_ACT_HARDSIGMOID, 3},
    [TV_FN_SIGMOID] = {TV_KEEPS_OUTPUT, true, false, TV_ACT_SIGMOID, 4},
    [TV_FN_LOG_SIGMOID] = {TV_KEEPS_INPUT, .flop = 5},
    [TV_FN_TANH] = {TV_KEEPS_OUTPUT, true, false, TV_ACT_TANH, 5},
    [TV_FN_MISH] = {TV_KEEPS_INPUT, true, false, TV_ACT_MISH, 8},
    [TV_FN_SOFTPLUS] = {TV_KEEPS_INPUT, true, false, TV_ACT_SOFTPLUS, 4},
    [TV_FN_SOFTSIGN] = {TV_KEEPS_INPUT, .flop = 3},
    [TV_FN_THRESHOLDED_RELU] = {TV_KEEPS_INPUT, .flop = 1},
    [TV_FN_SHRINK] = {TV_KEEPS_INPUT, .flop = 2},
    [TV_FN_CLIP] = {TV_KEEPS_INPUT, .flop = 2},
    [TV_FN_EXP] = {TV_KEEPS_OUTPUT, .flop = 4},
    [TV_FN_EXPM1] = {TV_KEEPS_OUTPUT, .flop = 4},
    [TV_FN_LOG] = {TV_KEEPS_INPUT, .flop = 4},
    [TV_FN_LOG1P] = {TV_KEEPS_INPUT, .flop = 4},
    [TV_FN_LOG2] = {TV_KEEPS_INPUT, .flop = 4},
    [TV_FN_LOG10] = {TV_KEEPS_INPUT, .flop = 4},
    [TV_FN_SQRT] = {TV_KEEPS_OUTPUT, .flop = 2},
    [TV_FN_RSQRT] = {TV_KEEPS_OUTPUT, .flop = 2},
    [TV_FN_RECIPROCAL] = {TV_KEEPS_OUTPUT, .flop = 1},
    [TV_FN_SQUARE] = {TV_KEEPS_INPUT, .flop = 1},
    [TV_FN_ABS] = {TV_KEEPS_INPUT, .flop = 1},
    [TV_FN_NEG] = {TV_KEEPS_NOTHING, .flop = 1},
    [TV_FN_SIGN] = {TV_KEEPS_NOTHING, .flop = 1},
    [TV_FN_FLOOR] = {TV_KEEPS_NOTHING, .flop = 1},
    [TV_FN_CEIL] = {TV_KEEPS_NOTHING, .flop = 1},
    [TV_FN_ROUND] = {TV_KEEPS_NOTHING, .flop = 1},
    [TV_FN_TRUNC] = {TV_KEEPS_NOTHING, .flop = 1},
    [TV_FN_ERF] = {TV_KEEPS_INPUT, .flop = 6},
    [TV_FN_LGAMMA] = {TV_KEEPS_INPUT, .flop = 10},
    [TV_FN_SIN] = {TV_KEEPS_INPUT, .flop = 4},
    [TV_FN_COS] = {TV_KEEPS_INPUT, .flop = 4},
    [TV_FN_TAN] = {TV_KEEPS_OUTPUT, .flop = 6},
    [TV_FN_ASIN] = {TV_KEEPS_INPUT, .flop = 6},
    [TV_FN_ACOS] = {TV_KEEPS_INPUT, .flop = 6},
    [TV_FN_ATAN] = {TV_KEEPS_INPUT, .flop = 6},
    [TV_FN_SINH] = {TV_KEEPS_INPUT, .flop = 6},
    [TV_FN_COSH] = {TV_KEEPS_INPUT, .flop = 6},
    [TV_FN_ASINH] = {TV_KEEPS_INPUT, .flop = 6},
    [TV_FN_ACOSH] = {TV_KEEPS_INPUT, .flop = 6},
    [TV_FN_ATANH] = {TV_KEEPS_INPUT, .flop = 6},
    [TV_FN_NOT] = {TV_KEEPS_NOTHING, false, true, 0, 1},
    [TV_FN_BIT_NOT] = {TV_KEEPS_NOTHING, .flop = 1},
    [TV_FN_IS_NAN] = {TV_KEEPS_NOTHING, false, true, 0, 1},
    [TV_FN_IS_INF] = {TV_KEEPS_NOTHING, false, true, 0, 1},
    [TV_FN_SCALE] = {TV_KEEPS_NOTHING, .flop = 2},
    [TV_FN_POW] = {TV_KEEPS_INPUT, .flop = 6},
    [TV_FN_QUANTIZE] = {TV_KEEPS_NOTHING, .flop = 3},
    [TV_FN_DEQUANTIZE] = {TV_KEEPS_NOTHING, .flop = 2},
};

/* Arithmetic that occurs on shapes and scales; false: not worked out. */
static bool fn_number(const tv_fn_call *c, double x, double *y)
{
    switch ((int)c->fn) {
    case TV_FN_RELU:
        *y = x > 0 ? x : 0;
        return true;
    case TV_FN_CLIP:
        *y = x < c->a ? c->a : x > c->b ? c->b : x;
        return true;
    case TV_FN_EXP:
        *y = exp(x);
        return true;
    case TV_FN_LOG:
        *y = log(x);
        return true;
    case TV_FN_SQRT:
        *y = sqrt(x);
        return true;
    case TV_FN_RSQRT:
        *y = 1 / sqrt(x);
        return true;
    case TV_FN_RECIPROCAL:
        *y = 1 / x;
        return true;
    case TV_FN_SQUARE:
        *y = x * x;
        return true;
    case TV_FN_ABS:
        *y = fabs(x);
        return true;
    case TV_FN_NEG:
        *y = -x;
        return true;
    case TV_FN_SIGN:
        *y = (x > 0) - (x < 0);
        return true;
    case TV_FN_FLOOR:
        *y = floor(x);
        return true;
    case TV_FN_CEIL:
        *y = ceil(x);
        return true;
    case TV_FN_ROUND:
        *y = nearbyint(x);
        return true;
    case TV_FN_TRUNC:
        *y = trunc(x);
        return true;
    case TV_FN_NOT:
        *y = x == 0;
        return true;
    case TV_FN_SCALE:
        *y = c->a * x + c->b;
        return true;
    case TV_FN_POW:
        *y = pow(x, c->a);
        return true;
    }
    return false;
}

static void fn_data(tv_running *r, const tv_fn_call *c, uint32_t x, uint32_t y)
{
    const double *from = tv_run_data(r, x);
    if (!from)
        return;
    size_t n = (size_t)tv_shape_count(tv_run_shape(r, x));
    double *to = tv_new(r->a, double, n ? n : 1);
    for (size_t i = 0; i < n; i++)
        if (!fn_number(c, from[i], &to[i]))
            return;
    tv_running_at(r, y)->data = to;
}

const tv_err *tv_rule_fn(tv_running *r, tv_fn_call call, uint32_t x, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    const fn_row *row = &fns[call.fn];
    tv_dtype dtype = call.dtype ? call.dtype : row->is_bool ? TV_BOOL : v->dtype;
    *y = tv_run_make(r, dtype, &v->shape);
    if (call.inplace)
        tv_running_at(r, *y)->base = v->base;
    if (call.fn == TV_FN_DEQUANTIZE || call.fn == TV_FN_QUANTIZE)
        tv_run_weight_of(r, *y, x);
    fn_data(r, &call, x, *y);
    tv_step s = {.kind = TV_STEP_UNARY};
    s.u.unary.fn = call.fn;
    s.u.unary.a = call.a;
    s.u.unary.b = call.b;
    s.u.unary.keeps = row->keeps;
    s.u.unary.is_act = row->is_act;
    s.u.unary.act = row->act;
    s.u.unary.inplace = call.inplace;
    s.u.unary.flop_per_element = row->flop;
    tv_run_push(r, &s, &x, 1, y, 1);
    return NULL;
}

const tv_err *tv_rule_cast(tv_running *r, uint32_t x, tv_dtype dtype, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    if (v->dtype == dtype)
        return tv_rule_view(r, x, &v->shape, y);
    *y = tv_run_make(r, dtype, &v->shape);
    tv_run_weight_of(r, *y, x);
    const double *from = tv_run_data(r, x);
    if (from) {
        size_t n = (size_t)tv_shape_count(&v->shape);
        double *to = tv_new(r->a, double, n ? n : 1);
        bool is_float = tv_dtype_of(dtype)->is_float;
        for (size_t i = 0; i < n; i++)
            to[i] = dtype == TV_BOOL ? from[i] != 0 : is_float ? from[i] : trunc(from[i]);
        tv_running_at(r, *y)->data = to;
    }
    tv_step s = {.kind = TV_STEP_COPY};
    s.u.layout.kind = TV_LAYOUT_CAST;
    tv_run_push(r, &s, &x, 1, y, 1);
    return NULL;
}

/* ---- functions of two ---- */

static bool is_compare(tv_fn2 f)
{
    return f >= TV_FN2_EQUAL && f <= TV_FN2_XOR;
}

static bool is_float_type(tv_dtype t)
{
    return tv_dtype_of(t)->is_float;
}

/* The wider of two; a floating type beats integers. */
static tv_dtype promoted(tv_dtype x, tv_dtype y)
{
    if (x == y || !y)
        return x;
    if (!x)
        return y;
    if (is_float_type(x) != is_float_type(y))
        return is_float_type(x) ? x : y;
    if ((x == TV_F16 && y == TV_BF16) || (x == TV_BF16 && y == TV_F16))
        return TV_F32;
    return tv_dtype_bytes(x) >= tv_dtype_bytes(y) ? x : y;
}

static double divided(double x, double y, bool whole)
{
    return whole ? (y != 0 ? trunc(x / y) : 0) : x / y;
}

/* Bits of numbers that are whole and not negative: flags and sizes. */
static bool bits(tv_fn2 f, double x, double y, double *z)
{
    if (!(x >= 0 && y >= 0 && x < 9e15 && y < 9e15))
        return false;
    uint64_t a = (uint64_t)x;
    uint64_t b = (uint64_t)y;
    if (f == TV_FN2_BIT_AND)
        *z = (double)(a & b);
    else if (f == TV_FN2_BIT_OR)
        *z = (double)(a | b);
    else if (f == TV_FN2_BIT_XOR)
        *z = (double)(a ^ b);
    else if (f == TV_FN2_SHIFT_LEFT)
        *z = ldexp(x, (int)(b < 64 ? b : 64));
    else
        *z = floor(ldexp(x, -(int)(b < 64 ? b : 64)));
    return true;
}

static bool fn2_number(tv_fn2 f, bool whole, double x, double y, double *z)
{
    switch (f) {
    case TV_FN2_ADD:
        *z = x + y;
        return true;
    case TV_FN2_SUB:
        *z = x - y;
        return true;
    case TV_FN2_MUL:
        *z = x * y;
        return true;
    case TV_FN2_DIV:
        *z = divided(x, y, whole);
        return true;
    case TV_FN2_FLOOR_DIV:
        *z = y != 0 ? floor(x / y) : 0;
        return true;
    case TV_FN2_MOD:
        *z = y != 0 ? x - y * floor(x / y) : 0;
        return true;
    case TV_FN2_FMOD:
        *z = y != 0 ? fmod(x, y) : 0;
        return true;
    case TV_FN2_POW:
        *z = pow(x, y);
        return true;
    case TV_FN2_MIN:
        *z = x < y ? x : y;
        return true;
    case TV_FN2_MAX:
        *z = x > y ? x : y;
        return true;
    case TV_FN2_EQUAL:
        *z = x == y;
        return true;
    case TV_FN2_LESS:
        *z = x < y;
        return true;
    case TV_FN2_LESS_EQUAL:
        *z = x <= y;
        return true;
    case TV_FN2_GREATER:
        *z = x > y;
        return true;
    case TV_FN2_GREATER_EQUAL:
        *z = x >= y;
        return true;
    case TV_FN2_NOT_EQUAL:
        *z = x != y;
        return true;
    case TV_FN2_AND:
        *z = x != 0 && y != 0;
        return true;
    case TV_FN2_OR:
        *z = x != 0 || y != 0;
        return true;
    case TV_FN2_XOR:
        *z = (x != 0) != (y != 0);
        return true;
    case TV_FN2_BIT_AND:
    case TV_FN2_BIT_OR:
    case TV_FN2_BIT_XOR:
    case TV_FN2_SHIFT_LEFT:
    case TV_FN2_SHIFT_RIGHT:
        return bits(f, x, y, z);
    case TV_FN2_ATAN2:
        *z = atan2(x, y);
        return true;
    case TV_FN2_PRELU:
    case TV_FN2_COUNT:
        break;
    }
    return false;
}

/* Position in a tensor of shape s, broadcast to out, of out's i-th element. */
static size_t broadcast_at(const tv_shape *s, const tv_shape *out, size_t i)
{
    size_t at = 0;
    size_t stride = 1;
    for (uint32_t b = 0; b < out->rank; b++) {
        size_t size = (size_t)out->d[out->rank - 1 - b];
        size_t here = i % size;
        i /= size;
        if (b >= s->rank)
            break;
        size_t own = (size_t)s->d[s->rank - 1 - b];
        at += own == 1 ? 0 : here * stride;
        stride *= own;
    }
    return at;
}

static bool is_few(const tv_shape *s)
{
    int64_t n = tv_shape_count(s);
    return n >= 0 && n <= (int64_t)TV_LIMIT_PROGRAM_CONST_ELEMENTS;
}

static void fn2_data(tv_running *r, tv_fn2 f, uint32_t x, uint32_t y, uint32_t z)
{
    const double *a = tv_run_data(r, x);
    const double *b = a ? tv_run_data(r, y) : NULL;
    const tv_shape *shape = tv_run_shape(r, z);
    if (!a || !b || !is_few(shape))
        return;
    size_t n = (size_t)tv_shape_count(shape);
    bool whole = !is_float_type(tv_run_at(r, x)->dtype) && !is_float_type(tv_run_at(r, y)->dtype);
    double *to = tv_new(r->a, double, n ? n : 1);
    for (size_t i = 0; i < n; i++)
        if (!fn2_number(f, whole, a[broadcast_at(tv_run_shape(r, x), shape, i)],
                        b[broadcast_at(tv_run_shape(r, y), shape, i)], &to[i]))
            return;
    tv_running_at(r, z)->data = to;
}

static const tv_err *no_broadcast(tv_running *r, const tv_shape *x, const tv_shape *y)
{
    return tv_run_fail_shapes(r, "program.broadcast", N_("shapes {x} and {y} do not broadcast"), x,
                              y);
}

/* A power with a plain exponent keeps its base alone. */
static const tv_err *plain_power(tv_running *r, const tv_fn2_call *call, uint32_t x, uint32_t y,
                                 uint32_t *z)
{
    tv_fn_call one = {.fn = TV_FN_POW,
                      .dtype = call->dtype,
                      .a = tv_run_scalar(r, y, 1),
                      .inplace = call->inplace};
    if (one.a == 2)
        one.fn = TV_FN_SQUARE;
    return tv_rule_fn(r, one, x, z);
}

const tv_err *tv_rule_fn2(tv_running *r, tv_fn2_call call, uint32_t x, uint32_t y, uint32_t *z)
{
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    const tv_run_value *a = tv_run_at(r, x);
    const tv_run_value *b = tv_run_at(r, y);
    tv_shape shape = {0};
    if (!tv_shape_broadcast(&a->shape, &b->shape, &shape))
        return no_broadcast(r, &a->shape, &b->shape);
    if (call.fn == TV_FN2_POW && b->constant && tv_shape_count(&b->shape) == 1 &&
        tv_shape_same(&shape, &a->shape) && tv_run_data(r, y))
        return plain_power(r, &call, x, y, z);
    tv_dtype dtype = call.dtype                ? call.dtype
                     : is_compare(call.fn)     ? TV_BOOL
                     : call.fn == TV_FN2_PRELU ? a->dtype
                                               : promoted(a->dtype, b->dtype);
    *z = tv_run_make(r, dtype, &shape);
    if (call.inplace)
        tv_running_at(r, *z)->base = a->base;
    fn2_data(r, call.fn, x, y, *z);
    tv_step s = {.kind = TV_STEP_BINARY};
    s.u.binary.fn = call.fn;
    s.u.binary.product = call.fn == TV_FN2_MUL;
    s.u.binary.division = call.fn == TV_FN2_DIV || call.fn == TV_FN2_POW ||
                          call.fn == TV_FN2_ATAN2 || call.fn == TV_FN2_PRELU;
    s.u.binary.compare = is_compare(call.fn);
    s.u.binary.select = call.fn == TV_FN2_MIN || call.fn == TV_FN2_MAX;
    s.u.binary.inplace = call.inplace;
    tv_run_push(r, &s, (uint32_t[]){x, y}, 2, z, 1);
    return NULL;
}

static const tv_err *two_or_one(tv_running *r, tv_fn2 fn, const uint32_t *x, size_t n, uint32_t *y)
{
    if (n == 2)
        return tv_rule_fn2(r, (tv_fn2_call){.fn = fn}, x[0], x[1], y);
    TV_TRY(tv_run_need(r, x[0]));
    return tv_rule_view(r, x[0], tv_run_shape(r, x[0]), y);
}

const tv_err *tv_rule_many(tv_running *r, tv_fn2 fn, bool mean, const uint32_t *x, size_t n,
                           uint32_t *y)
{
    if (n == 0)
        return tv_run_need(r, TV_NO_VALUE);
    if (n == 1 || (n == 2 && !mean))
        return two_or_one(r, fn, x, n, y);
    TV_TRY(tv_run_need(r, x[0]));
    tv_shape shape = *tv_run_shape(r, x[0]);
    bool known = tv_run_data(r, x[0]) && !mean;
    for (size_t i = 1; i < n; i++) {
        TV_TRY(tv_run_need(r, x[i]));
        if (!tv_shape_broadcast(&shape, tv_run_shape(r, x[i]), &shape))
            return no_broadcast(r, &shape, tv_run_shape(r, x[i]));
        known = known && tv_run_data(r, x[i]);
    }
    *y = tv_run_make(r, tv_run_at(r, x[0])->dtype, &shape);
    if (known && is_few(&shape)) {
        size_t count = (size_t)tv_shape_count(&shape);
        double *to = tv_new(r->a, double, count ? count : 1);
        for (size_t i = 0; i < count; i++)
            to[i] = tv_run_data(r, x[0])[broadcast_at(tv_run_shape(r, x[0]), &shape, i)];
        for (size_t k = 1; k < n && known; k++)
            for (size_t i = 0; i < count && known; i++)
                known = fn2_number(
                    fn, false, to[i],
                    tv_run_data(r, x[k])[broadcast_at(tv_run_shape(r, x[k]), &shape, i)], &to[i]);
        tv_running_at(r, *y)->data = known ? to : NULL;
    }
    tv_step s = {.kind = TV_STEP_BINARY};
    s.u.binary.fn = fn;
    s.u.binary.select = fn == TV_FN2_MIN || fn == TV_FN2_MAX;
    tv_run_push(r, &s, x, n, y, 1);
    return NULL;
}

const tv_err *tv_rule_where(tv_running *r, uint32_t condition, uint32_t x, uint32_t y, uint32_t *z)
{
    uint32_t in[] = {condition, x, y};
    tv_shape shape = {0};
    const double *data[3];
    bool known = true;
    for (size_t i = 0; i < 3; i++) {
        TV_TRY(tv_run_need(r, in[i]));
        if (!tv_shape_broadcast(&shape, tv_run_shape(r, in[i]), &shape))
            return no_broadcast(r, &shape, tv_run_shape(r, in[i]));
        data[i] = tv_run_data(r, in[i]);
        known = known && data[i];
    }
    *z = tv_run_make(r, promoted(tv_run_at(r, x)->dtype, tv_run_at(r, y)->dtype), &shape);
    if (known && is_few(&shape)) {
        size_t n = (size_t)tv_shape_count(&shape);
        double *to = tv_new(r->a, double, n ? n : 1);
        for (size_t i = 0; i < n; i++) {
            size_t side = data[0][broadcast_at(tv_run_shape(r, condition), &shape, i)] != 0 ? 1 : 2;
            to[i] = data[side][broadcast_at(tv_run_shape(r, in[side]), &shape, i)];
        }
        tv_running_at(r, *z)->data = to;
    }
    tv_step s = {.kind = TV_STEP_BINARY};
    s.u.binary.fn = TV_FN2_COUNT;
    s.u.binary.select = true;
    tv_run_push(r, &s, in, 3, z, 1);
    return NULL;
}

/* ---- along axes ---- */

static bool gives_bool(tv_reduce_kind k)
{
    return k == TV_REDUCE_ANY || k == TV_REDUCE_ALL;
}

static bool gives_index(tv_reduce_kind k)
{
    return k == TV_REDUCE_ARG_MAX || k == TV_REDUCE_ARG_MIN;
}

/* Shape arithmetic reduces short vectors to one number. */
static bool whole_number(tv_reduce_kind k, const double *x, size_t n, double *y)
{
    double v = k == TV_REDUCE_PROD || k == TV_REDUCE_ALL ? 1 : 0;
    if (k == TV_REDUCE_MAX || k == TV_REDUCE_MIN)
        v = x[0];
    for (size_t i = 0; i < n; i++) {
        if (k == TV_REDUCE_SUM || k == TV_REDUCE_MEAN)
            v += x[i];
        else if (k == TV_REDUCE_PROD)
            v *= x[i];
        else if (k == TV_REDUCE_MAX)
            v = x[i] > v ? x[i] : v;
        else if (k == TV_REDUCE_MIN)
            v = x[i] < v ? x[i] : v;
        else if (k == TV_REDUCE_ANY)
            v = v != 0 || x[i] != 0;
        else if (k == TV_REDUCE_ALL)
            v = v != 0 && x[i] != 0;
        else
            return false;
    }
    *y = k == TV_REDUCE_MEAN ? v / (double)n : v;
    return true;
}

const tv_err *tv_rule_reduce(tv_running *r, tv_reduce_call call, uint32_t x, const int64_t *axes,
                             size_t n_axes, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    tv_shape shape = {0};
    if (!tv_shape_reduce(&v->shape, axes, n_axes, call.keep_axes, &shape))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), &v->shape,
                                  NULL);
    tv_dtype dtype = call.dtype               ? call.dtype
                     : gives_bool(call.kind)  ? TV_BOOL
                     : gives_index(call.kind) ? TV_I64
                                              : v->dtype;
    *y = tv_run_make(r, dtype, &shape);
    double number = 0;
    int64_t n = tv_shape_count(&v->shape);
    const double *data = tv_run_data(r, x);
    if (data && n > 0 && tv_shape_count(&shape) == 1 &&
        whole_number(call.kind, data, (size_t)n, &number))
        tv_run_set_data(r, *y, &number);
    tv_step s = {.kind = TV_STEP_REDUCE};
    s.u.reduce.kind = call.kind;
    s.u.reduce.keeps_indices = call.kind == TV_REDUCE_MAX || call.kind == TV_REDUCE_MIN;
    s.u.reduce.keeps_input = call.kind == TV_REDUCE_PROD || call.kind == TV_REDUCE_L1 ||
                             call.kind == TV_REDUCE_L2 || call.kind == TV_REDUCE_LOG_SUM ||
                             call.kind == TV_REDUCE_LOG_SUM_EXP ||
                             call.kind == TV_REDUCE_SUM_SQUARE || call.kind == TV_REDUCE_VARIANCE;
    tv_run_push(r, &s, &x, 1, y, 1);
    return NULL;
}

const tv_err *tv_rule_cumulative(tv_running *r, uint32_t x, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    *y = tv_run_make(r, v->dtype, &v->shape);
    tv_step s = {.kind = TV_STEP_SCAN};
    s.u.scan.inner = tv_shape_elements(&v->shape);
    s.u.scan.state = 1;
    tv_run_push(r, &s, &x, 1, y, 1);
    return NULL;
}

static const tv_err *like_input(tv_running *r, const tv_step *s, uint32_t x, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    *y = tv_run_make(r, v->dtype, &v->shape);
    tv_run_push(r, s, &x, 1, y, 1);
    return NULL;
}

const tv_err *tv_rule_softmax(tv_running *r, bool log, int64_t axis, uint32_t x, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_shape *shape = tv_run_shape(r, x);
    uint32_t at = 0;
    if (shape->rank && !tv_shape_axis(axis, shape->rank, &at))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), shape, NULL);
    tv_step s = {.kind = TV_STEP_SOFTMAX};
    s.u.softmax.log = log;
    return like_input(r, &s, x, y);
}

const tv_err *tv_rule_dropout(tv_running *r, double p, uint32_t x, uint32_t *y)
{
    tv_step s = {.kind = TV_STEP_DROPOUT};
    s.u.dropout.p = p;
    return like_input(r, &s, x, y);
}
