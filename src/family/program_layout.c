/* Which values share memory. Export formats have no strides: their transposes and slices are views
 * in the framework that the user runs, and a reshape behind them is a copy when strides cannot
 * express it. The rules are torch's (aten/src/ATen/TensorUtils.cpp, computeStride). */
#include "program_lower.h"

#include <string.h>

static const tv_shape *shape_of(const tv_lower *l, uint32_t v)
{
    return &l->run->values[v].shape;
}

static void set_dense(tv_lower *l, uint32_t v)
{
    const tv_shape *s = shape_of(l, v);
    int64_t step = 1;
    for (uint32_t i = s->rank; i-- > 0;) {
        l->stride[v][i] = step;
        step *= s->d[i] > 0 ? s->d[i] : 1;
    }
}

/* Elementwise results keep the order of their input's axes in memory. */
static void set_like(tv_lower *l, uint32_t v, uint32_t x)
{
    const tv_shape *s = shape_of(l, v);
    uint32_t order[TV_LIMIT_RANK];
    if (x == TV_NO_VALUE || shape_of(l, x)->rank != s->rank) {
        set_dense(l, v);
        return;
    }
    for (uint32_t i = 0; i < s->rank; i++)
        order[i] = i;
    for (uint32_t i = 1; i < s->rank; i++) /* by falling stride; stable */
        for (uint32_t k = i; k > 0 && l->stride[x][order[k]] > l->stride[x][order[k - 1]]; k--) {
            const uint32_t swap = order[k];
            order[k] = order[k - 1];
            order[k - 1] = swap;
        }
    int64_t step = 1;
    for (uint32_t i = s->rank; i-- > 0;) {
        l->stride[v][order[i]] = step;
        step *= s->d[order[i]] > 0 ? s->d[order[i]] : 1;
    }
}

static bool is_dense(const tv_lower *l, uint32_t v)
{
    const tv_shape *s = shape_of(l, v);
    int64_t step = 1;
    for (uint32_t i = s->rank; i-- > 0;) {
        if (s->d[i] > 1 && l->stride[v][i] != step)
            return false;
        step *= s->d[i] > 0 ? s->d[i] : 1;
    }
    return true;
}

/* Strides of y that show x's elements in order; false: there are none. */
static bool view_strides(const tv_lower *l, uint32_t x, uint32_t y, int64_t *stride)
{
    const tv_shape *from = shape_of(l, x), *to = shape_of(l, y);
    if (tv_shape_elements(from) <= 0 || from->rank == 0) {
        for (uint32_t i = 0; i < to->rank; i++)
            stride[i] = 1;
        return true;
    }
    int64_t base = l->stride[x][from->rank - 1], of_chunk = 1, of_view = 1;
    uint32_t at = to->rank;
    for (uint32_t i = from->rank; i-- > 0;) {
        of_chunk *= from->d[i];
        const bool ends = i == 0 || (from->d[i - 1] != 1 && l->stride[x][i - 1] != of_chunk * base);
        if (!ends)
            continue;
        while (at > 0 && (of_view < of_chunk || to->d[at - 1] == 1)) {
            stride[at - 1] = of_view * base;
            of_view *= to->d[at - 1];
            at--;
        }
        if (of_view != of_chunk)
            return false;
        if (i > 0) {
            base = l->stride[x][i - 1];
            of_chunk = of_view = 1;
        }
    }
    return at == 0;
}

static void share(tv_lower *l, uint32_t y, uint32_t x)
{
    l->root[y] = l->root[x];
}

static void reshape(tv_lower *l, tv_item *t)
{
    int64_t stride[TV_LIMIT_RANK] = {0};
    const uint32_t x = t->in[0], y = t->out[0];
    if (!view_strides(l, x, y, stride)) {
        t->kind = TV_ITEM_CONTIGUOUS;
        set_dense(l, y);
        return;
    }
    t->kind = TV_ITEM_ALIAS;
    memcpy(l->stride[y], stride, sizeof stride);
    share(l, y, x);
}

static void permute(tv_lower *l, tv_item *t, const tv_step *s)
{
    const uint32_t x = t->in[0], y = t->out[0];
    const uint32_t rank = shape_of(l, y)->rank;
    for (uint32_t i = 0; i < rank; i++)
        l->stride[y][i] = l->stride[x][s->u.layout.order[i] < rank ? s->u.layout.order[i] : i];
    t->kind = TV_ITEM_ALIAS;
    share(l, y, x);
}

/* Slices keep strides; a select loses an axis. */
static void slice(tv_lower *l, tv_item *t, uint32_t axis)
{
    const uint32_t x = t->in[0];
    for (size_t k = 0; k < t->n_out; k++) {
        const uint32_t y = t->out[k];
        if (y == TV_NO_VALUE)
            continue;
        const uint32_t rank = shape_of(l, y)->rank, from = shape_of(l, x)->rank;
        for (uint32_t i = 0; i < rank; i++)
            l->stride[y][i] = l->stride[x][rank < from && i >= axis && i + 1 < from ? i + 1 : i];
        share(l, y, x);
    }
    t->kind = TV_ITEM_ALIAS;
}

static void expand(tv_lower *l, tv_item *t)
{
    const uint32_t x = t->in[0], y = t->out[0];
    const tv_shape *to = shape_of(l, y), *from = shape_of(l, x);
    for (uint32_t i = 0; i < to->rank; i++) {
        const int64_t at = (int64_t)i - (int64_t)to->rank + (int64_t)from->rank;
        const bool grown = at < 0 || (from->d[at] == 1 && to->d[i] != 1);
        l->stride[y][i] = grown ? 0 : l->stride[x][at];
    }
    t->kind = TV_ITEM_ALIAS;
    share(l, y, x);
}

/* A change between floating types is the precision policy's business, which decides again. */
static void cast(tv_lower *l, tv_item *t)
{
    const tv_dtype from = l->run->values[t->in[0]].dtype, to = l->run->values[t->out[0]].dtype;
    const bool floats = tv_dtype_of(from)->is_float && tv_dtype_of(to)->is_float;
    set_like(l, t->out[0], t->in[0]);
    if (l->recorded ? from != to : !floats)
        return;
    t->kind = TV_ITEM_ALIAS;
    share(l, t->out[0], t->in[0]);
}

static void moved(tv_lower *l, tv_item *t, const tv_step *s)
{
    switch (s->u.layout.kind) {
    case TV_LAYOUT_RESHAPE:
        reshape(l, t);
        return;
    case TV_LAYOUT_PERMUTE:
        permute(l, t, s);
        return;
    case TV_LAYOUT_SLICE:
        slice(l, t, s->u.layout.axis);
        return;
    case TV_LAYOUT_EXPAND:
        expand(l, t);
        return;
    case TV_LAYOUT_CAST:
        cast(l, t);
        return;
    case TV_LAYOUT_CLONE:
        set_dense(l, t->out[0]);
        if (!is_dense(l, t->in[0]))
            return;
        t->kind = TV_ITEM_ALIAS;
        share(l, t->out[0], t->in[0]);
        return;
    case TV_LAYOUT_OTHER:
    case TV_LAYOUT_CONCAT:
        break;
    }
    for (size_t k = 0; k < t->n_out; k++)
        if (t->out[k] != TV_NO_VALUE)
            set_dense(l, t->out[k]);
    if (s->kind == TV_STEP_VIEW) { /* the dialect says that nothing moves */
        t->kind = TV_ITEM_ALIAS;
        for (size_t k = 0; k < t->n_out; k++)
            if (t->out[k] != TV_NO_VALUE)
                share(l, t->out[k], t->in[0]);
    }
}

static bool elementwise(const tv_lower *l, const tv_item *t)
{
    const tv_step_kind kind = tv_lower_step(l, t->step)->kind;
    return t->kind == TV_ITEM_ACT ||
           (t->kind == TV_ITEM_STEP && (kind == TV_STEP_UNARY || kind == TV_STEP_BINARY ||
                                        kind == TV_STEP_DROPOUT || kind == TV_STEP_SOFTMAX));
}

/* Of the operands, the one with as many elements as the result. */
static uint32_t whole_operand(const tv_lower *l, const tv_item *t)
{
    for (size_t i = 0; i < t->n_in; i++)
        if (t->in[i] != TV_NO_VALUE &&
            tv_shape_elements(shape_of(l, t->in[i])) >= tv_shape_elements(shape_of(l, t->out[0])))
            return t->in[i];
    return TV_NO_VALUE;
}

/* A product with a weight takes its rows as they lie; else the framework writes them out first. */
static bool rows_are_apart(const tv_lower *l, uint32_t x)
{
    const tv_shape *s = shape_of(l, x);
    if (s->rank < 2)
        return false;
    for (uint32_t i = 0; i + 2 < s->rank; i++)
        if (s->d[i] > 1 && s->d[i + 1] > 0 && l->stride[x][i] != l->stride[x][i + 1] * s->d[i + 1])
            return true;
    return false;
}

/* ReLU in networks of convolutions writes over its input where that is free to be written over
 * (torchvision's modules do; assumed for others). */
static bool writes_over(const tv_lower *l, const tv_item *t, const tv_step *s)
{
    if (s->kind == TV_STEP_BINARY && s->u.binary.inplace && t->kind == TV_ITEM_STEP)
        return t->in[0] != TV_NO_VALUE && !tv_lower_is_weight(l, t->in[0]) &&
               tv_shape_elements(shape_of(l, t->in[0])) >=
                   tv_shape_elements(shape_of(l, t->out[0]));
    const bool relu = s->kind == TV_STEP_UNARY &&
                      (s->u.unary.fn == TV_FN_RELU || s->u.unary.fn == TV_FN_LEAKY_RELU);
    if (!relu || t->kind != TV_ITEM_STEP)
        return false;
    if (s->u.unary.inplace)
        return true;
    const uint32_t x = t->in[0];
    if (l->recorded || l->uses[x] != 1 || l->is_output[x] || l->item_of[x] == TV_NO_VALUE ||
        shape_of(l, x)->rank < 4)
        return false;
    const tv_item *maker = &l->items.v[l->item_of[x]];
    const tv_step_kind kind = tv_lower_step(l, maker->step)->kind;
    return maker->kind == TV_ITEM_NORM || kind == TV_STEP_NORM || kind == TV_STEP_CONV ||
           kind == TV_STEP_BINARY;
}

/* One element of an axis, picked by a plain number. */
static bool is_select(const tv_lower *l, const tv_item *t, const tv_step *s)
{
    return t->kind == TV_ITEM_STEP && s->kind == TV_STEP_GATHER && t->n_in > 1 &&
           t->in[1] != TV_NO_VALUE && !tv_lower_is_weight(l, t->in[0]) &&
           l->run->values[t->in[1]].constant && shape_of(l, t->in[1])->rank == 0;
}

static bool does_nothing(const tv_lower *l, const tv_item *t, const tv_step *s)
{
    if (t->kind != TV_ITEM_STEP)
        return false;
    if (s->kind == TV_STEP_DROPOUT)
        return l->set->phase != TV_PHASE_TRAIN ||
               (l->set->dropout >= 0 && !(l->set->dropout > 0)) || !(s->u.dropout.p > 0);
    /* Quantised exports mark what integers replace; the engine's own types are the policy's. */
    return s->kind == TV_STEP_UNARY &&
           (s->u.unary.fn == TV_FN_QUANTIZE || s->u.unary.fn == TV_FN_DEQUANTIZE) && t->n_in &&
           l->item_of[t->in[0]] != TV_NO_VALUE;
}

static void lay(tv_lower *l, tv_item *t)
{
    const tv_step *s = tv_lower_step(l, t->step);
    if (does_nothing(l, t, s)) {
        set_like(l, t->out[0], t->in[0]);
        share(l, t->out[0], t->in[0]);
        t->kind = TV_ITEM_ALIAS;
        return;
    }
    if (is_select(l, t, s)) {
        slice(l, t, s->u.gather.axis);
        return;
    }
    if (t->kind == TV_ITEM_STEP && t->n_in && t->in[0] != TV_NO_VALUE &&
        (s->kind == TV_STEP_VIEW || s->kind == TV_STEP_COPY)) {
        moved(l, t, s);
        return;
    }
    for (size_t k = 0; k < t->n_out; k++)
        if (t->out[k] != TV_NO_VALUE)
            set_dense(l, t->out[k]);
    if (elementwise(l, t))
        set_like(l, t->out[0], whole_operand(l, t));
    /* fused kernels lay their output out as the queries are */
    const bool attention =
        t->kind == TV_ITEM_ATTENTION || (t->kind == TV_ITEM_STEP && s->kind == TV_STEP_ATTENTION);
    if (attention && l->set->kernel != TV_KERNEL_EAGER)
        set_like(l, t->out[0], t->in[0]);
    if (writes_over(l, t, s)) {
        t->in_place = true;
        share(l, t->out[0], t->in[0]);
    }
    const uint32_t side = s->kind == TV_STEP_MATMUL && s->u.matmul.weight_left ? 1 : 0;
    t->copies_in = t->kind == TV_ITEM_STEP && s->kind == TV_STEP_MATMUL && t->n_in > 1 &&
                   tv_lower_is_weight(l, t->in[1 - side]) && !tv_lower_is_weight(l, t->in[side]) &&
                   rows_are_apart(l, t->in[side]);
}

void tv_lower_layout(tv_lower *l)
{
    for (uint32_t v = 0; v < l->run->n_values; v++) {
        l->root[v] = v;
        set_dense(l, v);
    }
    for (size_t i = 0; i < l->items.n; i++)
        lay(l, &l->items.v[i]);
}
