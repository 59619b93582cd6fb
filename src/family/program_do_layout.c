/* Canonical operations that move or rename elements: shapes, contents of small tensors, steps. */
#include <math.h>
#include <string.h>

#include "program_running.h"

static const tv_step view_step = {.kind = TV_STEP_VIEW, .u.layout.kind = TV_LAYOUT_RESHAPE};
static const tv_step copy_step = {.kind = TV_STEP_COPY};

static tv_step moves(bool view, tv_layout kind, uint32_t axis)
{
    tv_step s = {.kind = view ? TV_STEP_VIEW : TV_STEP_COPY};
    s.u.layout.kind = kind;
    s.u.layout.axis = (uint8_t)axis;
    return s;
}

static const tv_err *bad_axis(tv_running *r, const tv_shape *x)
{
    return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), x, NULL);
}

static size_t count_of(const tv_shape *s)
{
    int64_t n = tv_shape_count(s);
    return n > 0 ? (size_t)n : 0;
}

static bool is_few(const tv_shape *s)
{
    int64_t n = tv_shape_count(s);
    return n >= 0 && n <= (int64_t)TV_LIMIT_PROGRAM_CONST_ELEMENTS;
}

/* Contents of y where each element is one of x's: from x's first element and a stride per axis of
 * y (0 repeats). */
static void pick(tv_running *r, uint32_t x, uint32_t y, int64_t first, const int64_t *stride)
{
    const double *from = tv_run_data(r, x);
    const tv_shape *shape = tv_run_shape(r, y);
    if (!from || !is_few(shape))
        return;
    size_t n = count_of(shape);
    double *to = tv_new(r->a, double, n ? n : 1);
    int64_t at[TV_LIMIT_RANK] = {0};
    for (size_t i = 0; i < n; i++) {
        int64_t place = first;
        for (uint32_t d = 0; d < shape->rank; d++)
            place += at[d] * stride[d];
        to[i] = from[place];
        for (uint32_t d = shape->rank; d > 0; d--) {
            if (++at[d - 1] < shape->d[d - 1])
                break;
            at[d - 1] = 0;
        }
    }
    tv_running_at(r, y)->data = to;
}

/* Strides matter for contents alone: where there are none, zeros keep the sums below small. */
static void strides_of(tv_running *r, uint32_t x, int64_t *stride)
{
    const tv_shape *s = tv_run_shape(r, x);
    int64_t step = tv_run_data(r, x) ? 1 : 0;
    for (uint32_t i = s->rank; i > 0; i--) {
        stride[i - 1] = step;
        step *= s->d[i - 1];
    }
}

/* ---- the same elements under another shape ---- */

const tv_err *tv_rule_view(tv_running *r, uint32_t x, const tv_shape *shape, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    if (tv_shape_count(shape) != tv_shape_count(&v->shape))
        return tv_run_fail_shapes(r, "program.reshape", N_("{x} cannot be seen as {y}"), &v->shape,
                                  shape);
    *y = tv_run_make(r, v->dtype, shape);
    tv_running_at(r, *y)->data = tv_run_data(r, x);
    tv_run_view_of(r, *y, x);
    tv_run_push(r, &view_step, &x, 1, y, 1);
    return NULL;
}

/* A program that was written for another batch says its own batch in the first place. */
static bool reshape_rebatched(const tv_running *r, const tv_shape *x, const int64_t *target,
                              size_t n, bool zero_copies, tv_shape *out)
{
    int64_t was = (int64_t)r->batch_stated;
    int64_t is = (int64_t)r->batch;
    int64_t other[TV_LIMIT_RANK];
    if (was == is || !n || n > TV_LIMIT_RANK || !x->rank || target[0] <= 0 || target[0] % was)
        return false;
    bool leads = x->d[0] == is || x->d[0] % is == 0;
    if (!leads || (was == 1 && target[0] != 1))
        return false;
    memcpy(other, target, n * sizeof *other);
    other[0] = tv_shape_times(target[0] / was, is);
    return tv_shape_reshape(x, other, n, zero_copies, out);
}

const tv_err *tv_rule_reshape(tv_running *r, uint32_t x, const int64_t *target, size_t n,
                              bool zero_copies, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = {0};
    const tv_shape *from = tv_run_shape(r, x);
    bool constant = tv_run_at(r, x)->constant;
    if (!constant && reshape_rebatched(r, from, target, n, zero_copies, &shape))
        return tv_rule_view(r, x, &shape, y);
    if (!tv_shape_reshape(from, target, n, zero_copies, &shape)) {
        tv_shape asked = tv_shape_of(n < TV_LIMIT_RANK ? (uint32_t)n : TV_LIMIT_RANK, target);
        return tv_run_fail_shapes(r, "program.reshape", N_("{x} cannot be seen as {y}"), from,
                                  &asked);
    }
    return tv_rule_view(r, x, &shape, y);
}

const tv_err *tv_rule_squeeze(tv_running *r, uint32_t x, const int64_t *axes, size_t n, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = {0};
    if (!tv_shape_squeeze(tv_run_shape(r, x), axes, n, &shape))
        return tv_run_fail_shapes(r, "program.squeeze", N_("an axis of {x} is not of size 1"),
                                  tv_run_shape(r, x), NULL);
    return tv_rule_view(r, x, &shape, y);
}

const tv_err *tv_rule_unsqueeze(tv_running *r, uint32_t x, const int64_t *axes, size_t n,
                                uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = {0};
    if (!tv_shape_unsqueeze(tv_run_shape(r, x), axes, n, &shape))
        return bad_axis(r, tv_run_shape(r, x));
    return tv_rule_view(r, x, &shape, y);
}

const tv_err *tv_rule_flatten(tv_running *r, uint32_t x, int64_t first, int64_t last, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_shape *from = tv_run_shape(r, x);
    uint32_t a = 0;
    uint32_t b = 0;
    tv_shape shape = {0};
    if (from->rank == 0) {
        shape = tv_shape_of(1, (int64_t[]){1});
        return tv_rule_view(r, x, &shape, y);
    }
    if (!tv_shape_axis(first, from->rank, &a) || !tv_shape_axis(last, from->rank, &b) || b < a)
        return bad_axis(r, from);
    for (uint32_t i = 0; i < from->rank; i++) {
        if (i > a && i <= b)
            shape.d[a] = tv_shape_times(shape.d[a], from->d[i]);
        else
            shape.d[shape.rank++] = from->d[i];
    }
    return tv_rule_view(r, x, &shape, y);
}

/* ---- other orders, parts, joins ---- */

const tv_err *tv_rule_transpose(tv_running *r, uint32_t x, const int64_t *order, size_t n,
                                bool view, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    tv_shape shape = {0};
    if (!tv_shape_permute(&v->shape, order, n, &shape))
        return bad_axis(r, &v->shape);
    *y = tv_run_make(r, v->dtype, &shape);
    if (view)
        tv_run_view_of(r, *y, x);
    tv_run_weight_of(r, *y, x);
    int64_t own[TV_LIMIT_RANK] = {0};
    int64_t stride[TV_LIMIT_RANK] = {0};
    strides_of(r, x, own);
    tv_step s = moves(view, TV_LAYOUT_PERMUTE, 0);
    for (uint32_t i = 0; i < shape.rank; i++) {
        uint32_t axis = shape.rank - 1 - i;
        if (!order || tv_shape_axis(order[i], shape.rank, &axis))
            stride[i] = own[axis];
        s.u.layout.order[i] = (uint8_t)axis;
    }
    pick(r, x, *y, 0, stride);
    tv_run_push(r, &s, &x, 1, y, 1);
    return NULL;
}

const tv_err *tv_rule_expand(tv_running *r, uint32_t x, const int64_t *shape, size_t n, bool view,
                             uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    if (n > TV_LIMIT_RANK)
        return bad_axis(r, &v->shape);
    tv_shape asked = {.rank = (uint32_t)n};
    tv_shape out = {0};
    for (uint32_t i = 0; i < asked.rank; i++)
        asked.d[i] = shape[i] < 0 ? 1 : shape[i];
    if (!tv_shape_broadcast(&v->shape, &asked, &out))
        return tv_run_fail_shapes(r, "program.expand", N_("{x} cannot be spread to {y}"), &v->shape,
                                  &asked);
    if (tv_shape_same(&out, &v->shape))
        return tv_rule_view(r, x, &out, y);
    *y = tv_run_make(r, v->dtype, &out);
    if (view)
        tv_run_view_of(r, *y, x); /* a weight that is spread stays that weight */
    int64_t own[TV_LIMIT_RANK] = {0};
    int64_t stride[TV_LIMIT_RANK] = {0};
    strides_of(r, x, own);
    for (uint32_t i = 0; i < v->shape.rank; i++)
        if (v->shape.d[i] != 1)
            stride[out.rank - v->shape.rank + i] = own[i];
    pick(r, x, *y, 0, stride);
    tv_step s = moves(view, TV_LAYOUT_EXPAND, 0);
    tv_run_push(r, &s, &x, 1, y, 1);
    return NULL;
}

/* Contents of joined vectors and tables. */
static void join(tv_running *r, const uint32_t *x, size_t n, uint32_t axis, uint32_t y)
{
    const tv_shape *shape = tv_run_shape(r, y);
    if (!is_few(shape))
        return;
    for (size_t i = 0; i < n; i++)
        if (!tv_run_data(r, x[i]))
            return;
    size_t outer = 1;
    size_t inner = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (i < axis)
            outer *= (size_t)shape->d[i];
        else if (i > axis)
            inner *= (size_t)shape->d[i];
    size_t total = count_of(shape);
    double *to = tv_new(r->a, double, total ? total : 1);
    size_t at = 0;
    for (size_t o = 0; o < outer; o++)
        for (size_t i = 0; i < n; i++) {
            size_t run = (size_t)tv_run_shape(r, x[i])->d[axis] * inner;
            if (run)
                memcpy(&to[at], &tv_run_data(r, x[i])[o * run], run * sizeof *to);
            at += run;
        }
    tv_running_at(r, y)->data = to;
}

/* A class token or table written for another batch repeats along with the batch. */
static int64_t batch_of_part(const tv_running *r, const uint32_t *x, size_t n)
{
    int64_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t d = tv_run_shape(r, x[i])->rank ? tv_run_shape(r, x[i])->d[0] : 0;
        largest = d > largest ? d : largest;
    }
    return r->batch != r->batch_stated && largest == (int64_t)r->batch ? largest : 0;
}

static bool repeats(const tv_running *r, uint32_t x, uint32_t axis, int64_t batch)
{
    const tv_run_value *v = tv_run_at(r, x);
    return batch && axis > 0 && v->constant && v->shape.d[0] == (int64_t)r->batch_stated;
}

const tv_err *tv_rule_concat(tv_running *r, int64_t axis, const uint32_t *x, size_t n, uint32_t *y)
{
    TV_TRY(tv_run_need(r, n ? x[0] : TV_NO_VALUE));
    uint32_t at = 0;
    tv_shape shape = *tv_run_shape(r, x[0]);
    if (!tv_shape_axis(axis, shape.rank, &at))
        return bad_axis(r, &shape);
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        TV_TRY(tv_run_need(r, x[i]));
    int64_t batch = batch_of_part(r, x, n);
    for (size_t i = 0; i < n; i++) {
        tv_shape part = *tv_run_shape(r, x[i]);
        if (part.rank == shape.rank) {
            sum += part.d[at];
            part.d[at] = shape.d[at];
            if (repeats(r, x[i], at, batch))
                part.d[0] = batch;
            if (i == 0)
                shape = part;
        }
        if (!tv_shape_same(&part, &shape))
            return tv_run_fail_shapes(r, "program.concat", N_("{x} and {y} cannot be joined"),
                                      &shape, tv_run_shape(r, x[i]));
    }
    shape.d[at] = sum;
    *y = tv_run_make(r, tv_run_at(r, x[0])->dtype, &shape);
    if (!batch)
        join(r, x, n, at, *y);
    if (n == 1)
        tv_run_view_of(r, *y, x[0]);
    tv_step s = moves(n == 1, n == 1 ? TV_LAYOUT_RESHAPE : TV_LAYOUT_CONCAT, at);
    tv_run_push(r, &s, x, n, y, 1);
    return NULL;
}

const tv_err *tv_rule_stack(tv_running *r, int64_t axis, const uint32_t *x, size_t n, uint32_t *y)
{
    TV_TRY(tv_run_need(r, n ? x[0] : TV_NO_VALUE));
    uint32_t *parts = tv_new(r->a, uint32_t, n);
    for (size_t i = 0; i < n; i++)
        TV_TRY(tv_rule_unsqueeze(r, x[i], &axis, 1, &parts[i]));
    return tv_rule_concat(r, axis, parts, n, y);
}

/* y is a box of x: from `first` elements on, `step` apart, along one axis. */
static void cut(tv_running *r, uint32_t x, uint32_t y, uint32_t axis, int64_t first, int64_t step)
{
    int64_t stride[TV_LIMIT_RANK] = {0};
    strides_of(r, x, stride);
    int64_t offset = first * stride[axis];
    stride[axis] *= step;
    pick(r, x, y, offset, stride);
}

const tv_err *tv_rule_split(tv_running *r, int64_t axis, const int64_t *parts, size_t n, bool view,
                            uint32_t x, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    uint32_t at = 0;
    if (!tv_shape_axis(axis, v->shape.rank, &at))
        return bad_axis(r, &v->shape);
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (parts[i] < 0 || parts[i] > v->shape.d[at] - sum)
            return tv_run_fail_shapes(r, "program.split", N_("the parts do not add up to {x}"),
                                      &v->shape, NULL);
        tv_shape shape = v->shape;
        shape.d[at] = parts[i];
        y[i] = tv_run_make(r, v->dtype, &shape);
        if (view)
            tv_running_at(r, y[i])->base = v->base;
        cut(r, x, y[i], at, sum, 1);
        sum += parts[i];
    }
    tv_step s = moves(view, TV_LAYOUT_SLICE, at);
    tv_run_push(r, &s, &x, 1, y, n);
    return NULL;
}

const tv_err *tv_rule_slice(tv_running *r, const tv_slice *s, size_t n, bool view, uint32_t x,
                            uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    tv_shape shape = v->shape;
    int64_t stride[TV_LIMIT_RANK] = {0};
    int64_t offset = 0;
    uint32_t last = 0;
    strides_of(r, x, stride);
    for (size_t i = 0; i < n; i++) {
        uint32_t at = 0;
        int64_t first = 0;
        if (!tv_shape_axis(s[i].axis, shape.rank, &at))
            return bad_axis(r, &shape);
        int64_t step = s[i].step ? s[i].step : 1;
        shape.d[at] = tv_shape_slice(v->shape.d[at], s[i].start, s[i].end, step, &first);
        last = shape.d[at] != v->shape.d[at] ? at : last;
        offset += first * stride[at];
        bool strides = stride[at] && shape.d[at] > 1;
        stride[at] = strides ? stride[at] * step : 0;
    }
    if (tv_shape_same(&shape, &v->shape))
        return tv_rule_view(r, x, &shape, y);
    *y = tv_run_make(r, v->dtype, &shape);
    if (view)
        tv_running_at(r, *y)->base = v->base;
    pick(r, x, *y, offset, stride);
    tv_step like = moves(view, TV_LAYOUT_SLICE, last);
    tv_run_push(r, &like, &x, 1, y, 1);
    return NULL;
}

const tv_err *tv_rule_select(tv_running *r, int64_t axis, int64_t index, bool view, uint32_t x,
                             uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    uint32_t at = 0;
    uint32_t place = 0;
    if (!tv_shape_axis(axis, v->shape.rank, &at) ||
        (v->shape.d[at] < UINT32_MAX && !tv_shape_axis(index, (uint32_t)v->shape.d[at], &place)))
        return bad_axis(r, &v->shape);
    tv_shape shape = {0};
    int64_t own[TV_LIMIT_RANK] = {0};
    int64_t stride[TV_LIMIT_RANK] = {0};
    strides_of(r, x, own);
    for (uint32_t i = 0; i < v->shape.rank; i++)
        if (i != at) {
            stride[shape.rank] = own[i];
            shape.d[shape.rank++] = v->shape.d[i];
        }
    *y = tv_run_make(r, v->dtype, &shape);
    if (view)
        tv_running_at(r, *y)->base = v->base;
    pick(r, x, *y, (int64_t)place * own[at], stride);
    tv_step s = moves(view, TV_LAYOUT_SLICE, at);
    tv_run_push(r, &s, &x, 1, y, 1);
    return NULL;
}

const tv_err *tv_rule_pad(tv_running *r, const int64_t *before, const int64_t *after, size_t n,
                          uint32_t x, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    if (n != v->shape.rank)
        return bad_axis(r, &v->shape);
    tv_shape shape = v->shape;
    for (uint32_t i = 0; i < shape.rank; i++) {
        int64_t both = 0;
        if (__builtin_add_overflow(before[i], after[i], &both) ||
            __builtin_add_overflow(shape.d[i], both, &shape.d[i]) || shape.d[i] < 0)
            return tv_run_fail_shapes(r, "program.pad", N_("cropping leaves nothing of {x}"),
                                      &v->shape, NULL);
    }
    if (tv_shape_same(&shape, &v->shape))
        return tv_rule_view(r, x, &shape, y);
    return tv_rule_copy(r, v->dtype, &shape, &x, 1, y);
}

const tv_err *tv_rule_tile(tv_running *r, const int64_t *repeats_of, size_t n, uint32_t x,
                           uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    if (n > TV_LIMIT_RANK)
        return bad_axis(r, &v->shape);
    tv_shape shape = {.rank = n > v->shape.rank ? (uint32_t)n : v->shape.rank};
    for (uint32_t i = 0; i < shape.rank; i++) {
        uint32_t back = shape.rank - 1 - i;
        int64_t own = i < v->shape.rank ? v->shape.d[v->shape.rank - 1 - i] : 1;
        int64_t times = i < n ? repeats_of[n - 1 - i] : 1;
        if (times < 0 || __builtin_mul_overflow(own, times, &shape.d[back]))
            return bad_axis(r, &v->shape);
    }
    if (tv_shape_count(&shape) == tv_shape_count(&v->shape))
        return tv_rule_view(r, x, &shape, y);
    return tv_rule_copy(r, v->dtype, &shape, &x, 1, y);
}

const tv_err *tv_rule_copy(tv_running *r, tv_dtype dtype, const tv_shape *shape, const uint32_t *x,
                           size_t n, uint32_t *y)
{
    *y = tv_run_make(r, dtype, shape);
    tv_run_push(r, &copy_step, x, n, y, 1);
    return NULL;
}

/* ---- rows by index ---- */

static void gather_data(tv_running *r, uint32_t axis, uint32_t x, uint32_t ids, uint32_t y)
{
    const double *from = tv_run_data(r, x);
    const double *which = from ? tv_run_data(r, ids) : NULL;
    const tv_shape *own = tv_run_shape(r, x);
    if (!from || !which || !is_few(tv_run_shape(r, y)))
        return;
    size_t n_ids = count_of(tv_run_shape(r, ids));
    size_t outer = 1;
    size_t inner = 1;
    for (uint32_t i = 0; i < own->rank; i++)
        if (i < axis)
            outer *= (size_t)own->d[i];
        else if (i > axis)
            inner *= (size_t)own->d[i];
    size_t total = outer * n_ids * inner;
    double *to = tv_new(r->a, double, total ? total : 1);
    for (size_t o = 0; o < outer; o++)
        for (size_t k = 0; k < n_ids; k++) {
            double size = (double)own->d[axis];
            double at = which[k] < 0 ? which[k] + size : which[k];
            if (!(at >= 0 && at < size))
                return;
            for (size_t i = 0; i < inner; i++)
                to[(o * n_ids + k) * inner + i] =
                    from[(o * (size_t)own->d[axis] + (size_t)at) * inner + i];
        }
    tv_running_at(r, y)->data = to;
}

const tv_err *tv_rule_gather(tv_running *r, int64_t axis, uint32_t x, uint32_t ids, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, ids));
    const tv_run_value *v = tv_run_at(r, x);
    const tv_shape *places = tv_run_shape(r, ids);
    uint32_t at = 0;
    if (!tv_shape_axis(axis, v->shape.rank, &at))
        return bad_axis(r, &v->shape);
    tv_shape shape = {0};
    bool fits = true;
    for (uint32_t i = 0; i < v->shape.rank; i++) {
        if (i != at) {
            fits = fits && tv_shape_push(&shape, v->shape.d[i]);
            continue;
        }
        for (uint32_t k = 0; k < places->rank; k++)
            fits = fits && tv_shape_push(&shape, places->d[k]);
    }
    if (!fits)
        return bad_axis(r, &v->shape);
    *y = tv_run_make(r, v->dtype, &shape);
    gather_data(r, at, x, ids, *y);
    tv_step s = {.kind = TV_STEP_GATHER};
    s.u.gather.axis = (uint8_t)at;
    s.u.gather.embedding = v->weight != TV_NO_VALUE && at == 0 && v->shape.rank == 2 &&
                           tv_dtype_of(v->dtype)->is_float;
    tv_run_push(r, &s, (uint32_t[]){x, ids}, 2, y, 1);
    return NULL;
}

const tv_err *tv_rule_route(tv_running *r, const uint32_t *x, size_t n, const uint32_t *y,
                            size_t n_y)
{
    tv_run_push(r, &(tv_step){.kind = TV_STEP_ROUTE}, x, n, y, n_y);
    return NULL;
}

/* ---- tensors out of nothing ---- */

uint32_t tv_rule_shape_of(tv_running *r, uint32_t x, tv_dtype dtype)
{
    const tv_shape *s = tv_run_shape(r, x);
    double data[TV_LIMIT_RANK];
    for (uint32_t i = 0; i < s->rank; i++)
        data[i] = (double)s->d[i];
    tv_shape shape = tv_shape_of(1, (int64_t[]){s->rank});
    uint32_t y = tv_run_make_data(r, dtype, &shape, data);
    tv_running_at(r, y)->guessed = tv_run_at(r, x)->guessed;
    return y;
}

uint32_t tv_rule_range(tv_running *r, tv_dtype dtype, double start, double step, double n)
{
    int64_t count = n > 0 && n < 9e15 ? (int64_t)n : 0;
    tv_shape shape = tv_shape_of(1, &count);
    uint32_t y = tv_run_make(r, dtype, &shape);
    if (is_few(&shape)) {
        double *data = tv_new(r->a, double, count ? (size_t)count : 1);
        for (size_t i = 0; i < (size_t)count; i++)
            data[i] = start + step * (double)i;
        tv_running_at(r, y)->data = data;
    }
    tv_run_push(r, &copy_step, NULL, 0, &y, 1);
    return y;
}

uint32_t tv_rule_full(tv_running *r, tv_dtype dtype, const tv_shape *shape, double number)
{
    uint32_t y = tv_run_make(r, dtype, shape);
    if (is_few(shape)) {
        size_t n = count_of(shape);
        double *data = tv_new(r->a, double, n ? n : 1);
        for (size_t i = 0; i < n; i++)
            data[i] = number;
        tv_running_at(r, y)->data = data;
    }
    tv_run_push(r, &copy_step, NULL, 0, &y, 1);
    return y;
}
