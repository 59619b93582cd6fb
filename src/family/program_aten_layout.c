/* ATen's operators that change the shape or the place of data: views, copies, joins, cuts. In eager
 * PyTorch a view has no kernel; what a file calls view, permute or slice costs nothing here. A
 * reshape of something whose strides do not allow a view is a copy. */
#include "program_aten.h"

#include <math.h>

#include "program_running.h"

static const tv_err *view_out(tv_running *r, const tv_node *n, uint32_t y)
{
    tv_aten_out(r, n, 0, y);
    return NULL;
}

static bool axis_of(tv_running *r, const tv_node *n, uint32_t x, const char *name, int64_t fallback,
                    int64_t *axis)
{
    uint32_t at = 0;
    if (!tv_shape_axis(tv_aten_int(r, n, name, fallback), tv_run_shape(r, x)->rank, &at))
        return false;
    *axis = at;
    return true;
}

/* ---- the same elements under another shape ---- */

/* Elements in another order than their axes say: strides came with the value. */
static bool strided(const tv_running *r, uint32_t x)
{
    const tv_value *from = tv_run_at(r, x)->from;
    return from && from->strided;
}

static const tv_err *written_out(tv_running *r, const tv_node *n, uint32_t x, const tv_shape *s)
{
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, s, &x, 1, &y));
    return view_out(r, n, y);
}

/* view, reshape, _unsafe_view; sizes may be one -1. arg: may copy. */
static const tv_err *reshape(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    const int64_t *sizes = NULL;
    size_t count = tv_aten_ints(r, n, tv_aten_has(n, "shape") ? "shape" : "size", &sizes);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    if (!tv_aten_has(n, "shape") && !tv_aten_has(n, "size")) {
        /* view.dtype: the bytes as another type */
        const uint32_t same = tv_aten_make(r, n, 0, x);
        tv_run_view_of(r, same, x);
        tv_run_push(r, &(tv_step){.kind = TV_STEP_VIEW}, &x, 1, &same, 1);
        return view_out(r, n, same);
    }
    TV_TRY(tv_rule_reshape(r, x, sizes, count, false, &y));
    if (rule->arg && strided(r, x) && !tv_shape_same(tv_run_shape(r, y), tv_run_shape(r, x)))
        return written_out(r, n, x, tv_run_shape(r, y));
    return view_out(r, n, y);
}

static const tv_err *reshape_as(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t other = tv_aten_in(r, n, "other");
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, other));
    const tv_shape *s = tv_run_shape(r, other);
    TV_TRY(tv_rule_reshape(r, tv_aten_first(r, n), s->d, s->rank, false, &y));
    return view_out(r, n, y);
}

static const tv_err *flatten(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_flatten(r, x, tv_aten_int(r, n, "start_dim", 0),
                           tv_aten_int(r, n, "end_dim", -1), &y));
    if (strided(r, x) && !tv_shape_same(tv_run_shape(r, y), tv_run_shape(r, x)))
        return written_out(r, n, x, tv_run_shape(r, y));
    return view_out(r, n, y);
}

static const tv_err *unflatten(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    const int64_t *sizes = NULL;
    const size_t count = tv_aten_ints(r, n, "sizes", &sizes);
    int64_t axis = 0, target[TV_LIMIT_RANK];
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    if (!axis_of(r, n, x, "dim", 0, &axis) || s->rank - 1 + count > TV_LIMIT_RANK)
        return tv_run_unknown(r, n);
    size_t k = 0;
    for (uint32_t i = 0; i < s->rank; i++) {
        if (i != (uint32_t)axis)
            target[k++] = s->d[i];
        for (size_t j = 0; i == (uint32_t)axis && j < count; j++)
            target[k++] = sizes[j];
    }
    TV_TRY(tv_rule_reshape(r, x, target, k, false, &y));
    return view_out(r, n, y);
}

static const tv_err *squeeze(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    const int64_t *dims = NULL;
    const size_t count = tv_aten_ints(r, n, "dim", &dims);
    int64_t ones[TV_LIMIT_RANK];
    size_t n_ones = 0;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    for (size_t i = 0; i < count && n_ones < TV_LIMIT_RANK; i++) {
        uint32_t at = 0;
        if (tv_shape_axis(dims[i], s->rank, &at) && s->d[at] == 1)
            ones[n_ones++] = at;
    }
    /* Axes of another size stay: torch does not complain. */
    if (count && !n_ones)
        TV_TRY(tv_rule_view(r, x, s, &y));
    else
        TV_TRY(tv_rule_squeeze(r, x, ones, n_ones, &y));
    return view_out(r, n, y);
}

static const tv_err *unsqueeze(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const int64_t dim = tv_aten_int(r, n, "dim", 0);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_unsqueeze(r, tv_aten_first(r, n), &dim, 1, &y));
    return view_out(r, n, y);
}

/* ---- other orders of the axes ---- */

static const tv_err *permute(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const int64_t *dims = NULL;
    const size_t count = tv_aten_ints(r, n, "dims", &dims);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_transpose(r, tv_aten_first(r, n), dims, count, true, &y));
    return view_out(r, n, y);
}

static const tv_err *swapped(tv_running *r, const tv_node *n, int64_t one, int64_t two)
{
    const uint32_t x = tv_aten_first(r, n);
    int64_t order[TV_LIMIT_RANK];
    uint32_t a = 0, b = 0, y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const uint32_t rank = tv_run_shape(r, x)->rank;
    for (uint32_t i = 0; i < rank; i++)
        order[i] = i;
    if (rank >= 2 && tv_shape_axis(one, rank, &a) && tv_shape_axis(two, rank, &b)) {
        order[a] = b;
        order[b] = a;
    }
    TV_TRY(tv_rule_transpose(r, x, order, rank, true, &y));
    return view_out(r, n, y);
}

static const tv_err *transpose(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const bool by_axis = tv_aten_has(n, "axis0");
    return swapped(r, n, tv_aten_int(r, n, by_axis ? "axis0" : "dim0", 0),
                   tv_aten_int(r, n, by_axis ? "axis1" : "dim1", 1));
}

/* t, mT: the last two axes; numpy_T: all of them. */
static const tv_err *turned(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t y = TV_NO_VALUE;
    if (rule->arg == 0)
        return swapped(r, n, -2, -1);
    TV_TRY(tv_rule_transpose(r, tv_aten_first(r, n), NULL, 0, true, &y));
    return view_out(r, n, y);
}

static const tv_err *movedim(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    const int64_t *from = NULL, *to = NULL;
    const size_t count = tv_aten_ints(r, n, "source", &from);
    int64_t order[TV_LIMIT_RANK];
    bool taken[TV_LIMIT_RANK] = {0}, placed[TV_LIMIT_RANK] = {0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const uint32_t rank = tv_run_shape(r, x)->rank;
    if (tv_aten_ints(r, n, "destination", &to) != count)
        return tv_run_unknown(r, n);
    for (size_t i = 0; i < count; i++) {
        uint32_t a = 0, b = 0;
        if (!tv_shape_axis(from[i], rank, &a) || !tv_shape_axis(to[i], rank, &b) || taken[a] ||
            placed[b])
            return tv_run_unknown(r, n);
        taken[a] = placed[b] = true;
        order[b] = a;
    }
    uint32_t next = 0;
    for (uint32_t i = 0; i < rank; i++) {
        while (next < rank && taken[next])
            next++;
        if (!placed[i])
            order[i] = next++;
    }
    TV_TRY(tv_rule_transpose(r, x, order, rank, true, &y));
    return view_out(r, n, y);
}

/* ---- repeats without and with a copy ---- */

/* A size that the file states for its own batch gives way to the run's. */
static const tv_err *expand_to(tv_running *r, const tv_node *n, uint32_t x, const int64_t *sizes,
                               size_t count)
{
    int64_t to[TV_LIMIT_RANK];
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    if (count > TV_LIMIT_RANK || count < s->rank)
        return tv_run_unknown(r, n);
    for (size_t i = 0; i < count; i++) {
        const size_t missing = count - s->rank;
        const int64_t own = i < missing ? 1 : s->d[i - missing];
        const bool other_batch = r->batch != r->batch_stated && i == 0 && own == 1 &&
                                 sizes[i] > 1 && sizes[i] == (int64_t)r->batch_stated;
        to[i] = own != 1 ? own : other_batch ? (int64_t)r->batch : sizes[i];
    }
    TV_TRY(tv_rule_expand(r, x, to, count, true, &y));
    return view_out(r, n, y);
}

static const tv_err *expand(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const int64_t *sizes = NULL;
    const size_t count = tv_aten_ints(r, n, "size", &sizes);
    return expand_to(r, n, tv_aten_first(r, n), sizes, count);
}

static const tv_err *expand_as(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t other = tv_aten_in(r, n, "other");
    TV_TRY(tv_run_need(r, other));
    const tv_shape s = *tv_run_shape(r, other);
    return expand_to(r, n, tv_aten_first(r, n), s.d, s.rank);
}

static const tv_err *repeat(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    const int64_t *v = NULL;
    const size_t count = tv_aten_ints(r, n, rule->arg ? "dims" : "repeats", &v);
    int64_t times[TV_LIMIT_RANK];
    tv_shape s = {0};
    uint32_t seen = TV_NO_VALUE, y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const tv_shape *from = tv_run_shape(r, x);
    const size_t rank = count > from->rank ? count : from->rank;
    if (rank > TV_LIMIT_RANK)
        return tv_run_unknown(r, n);
    s.rank = (uint32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        const size_t own = rank - from->rank, given = rank - count;
        s.d[i] = i < own ? 1 : from->d[i - own];
        times[i] = i < given ? 1 : v[i - given];
        const bool other_batch = r->batch != r->batch_stated && i == 0 && s.d[i] == 1 &&
                                 times[i] > 1 && times[i] == (int64_t)r->batch_stated;
        times[i] = other_batch ? (int64_t)r->batch : times[i];
    }
    TV_TRY(tv_rule_view(r, x, &s, &seen));
    TV_TRY(tv_rule_tile(r, times, rank, seen, &y));
    return view_out(r, n, y);
}

/* ---- joins ---- */

static const tv_err *join(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t *in = tv_new(tv_run_arena(r), uint32_t, n->n_inputs + 1);
    uint32_t y = TV_NO_VALUE;
    size_t count = 0;
    for (size_t i = 0; i < n->n_inputs; i++) {
        const uint32_t v = tv_run_in(r, n, i);
        /* torch.cat passes over empty vectors, whatever the others' rank */
        const bool empty =
            v != TV_NO_VALUE && tv_run_shape(r, v)->rank == 1 && tv_run_shape(r, v)->d[0] == 0;
        if (v != TV_NO_VALUE && !(empty && rule->arg == 0 && n->n_inputs > 1))
            in[count++] = v;
    }
    if (!count)
        return tv_run_unknown(r, n);
    const int64_t axis = tv_aten_int(r, n, "dim", 0);
    if (rule->arg)
        TV_TRY(tv_rule_stack(r, axis, in, count, &y));
    else
        TV_TRY(tv_rule_concat(r, axis, in, count, &y));
    return view_out(r, n, y);
}

/* ---- cuts ---- */

static const tv_err *parts_out(tv_running *r, const tv_node *n, uint32_t x, int64_t axis,
                               const int64_t *parts, size_t count)
{
    uint32_t *y = tv_new(tv_run_arena(r), uint32_t, count + 1);
    TV_TRY(tv_rule_split(r, axis, parts, count, true, x, y));
    for (size_t i = 0; i < count; i++)
        tv_aten_out(r, n, i, y[i]);
    return NULL;
}

enum { BY_SIZES, BY_SIZE, BY_COUNT, BY_EVEN_COUNT };

/* split.sizes, split.Tensor, chunk, tensor_split: what the number means is all that differs. */
static const tv_err *split(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    static const char *const names[] = {"split_sizes", "split_size", "chunks", "sections"};
    const uint32_t x = tv_aten_first(r, n);
    const int64_t *v = NULL;
    int64_t axis = 0;
    TV_TRY(tv_run_need(r, x));
    size_t count = tv_aten_ints(r, n, names[rule->arg], &v);
    int how = rule->arg;
    const tv_attr *a = tv_node_attr(n, "split_size");
    if (!count && how == BY_SIZES)
        count = tv_aten_ints(r, n, "split_size", &v);
    if (how == BY_SIZE && (count > 1 || (a && a->kind == TV_ATTR_INTS)))
        how = BY_SIZES;
    if (!axis_of(r, n, x, "dim", 0, &axis) || !count)
        return tv_aten_routed(r, n, rule);
    if (how == BY_SIZES)
        return parts_out(r, n, x, axis, v, count);
    const int64_t size = tv_run_shape(r, x)->d[axis];
    if (v[0] <= 0 || n->n_outputs == 0)
        return tv_run_unknown(r, n);
    const int64_t chunk = how == BY_SIZE ? v[0] : (size + v[0] - 1) / v[0];
    const size_t n_parts = how == BY_EVEN_COUNT ? (size_t)v[0] : n->n_outputs;
    int64_t *parts = tv_new(tv_run_arena(r), int64_t, n_parts + 1), left = size;
    for (size_t i = 0; i < n_parts; i++) {
        const int64_t even = size / v[0] + ((int64_t)i < size % v[0]);
        const int64_t want = how == BY_EVEN_COUNT ? even : chunk;
        parts[i] = want < left ? want : left;
        left -= parts[i];
    }
    if (left > 0 && n_parts) /* other sizes than the file's: the last part takes what remains */
        parts[n_parts - 1] += left;
    return parts_out(r, n, x, axis, parts, n_parts);
}

static const tv_err *unbind(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    const int64_t axis = tv_aten_int(r, n, "dim", 0);
    for (size_t i = 0; i < n->n_outputs; i++) {
        uint32_t y = TV_NO_VALUE;
        TV_TRY(tv_rule_select(r, axis, (int64_t)i, true, x, &y));
        tv_aten_out(r, n, i, y);
    }
    return NULL;
}

static const tv_err *select_one(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_select(r, tv_aten_int(r, n, "dim", 0), tv_aten_int(r, n, "index", 0), true,
                          tv_aten_first(r, n), &y));
    return view_out(r, n, y);
}

static const tv_err *slice(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    const tv_slice s = {
        .axis = tv_aten_int(r, n, "dim", 0),
        .start = tv_aten_int(r, n, "start", 0),
        .end = tv_aten_int(r, n, "end", INT64_MAX),
        .step = tv_aten_int(r, n, "step", 1),
    };
    TV_TRY(tv_rule_slice(r, &s, 1, true, tv_aten_first(r, n), &y));
    return view_out(r, n, y);
}

static const tv_err *narrow(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    const uint32_t at = tv_aten_operand(r, n, "start", TV_NO_VALUE);
    const int64_t start = at == TV_NO_VALUE ? 0 : (int64_t)tv_run_scalar(r, at, 0);
    const tv_slice s = {
        .axis = tv_aten_int(r, n, "dim", 0),
        .start = start,
        .end = start + tv_aten_int(r, n, "length", 0),
        .step = 1,
    };
    TV_TRY(tv_rule_slice(r, &s, 1, true, tv_aten_first(r, n), &y));
    return view_out(r, n, y);
}

/* x.unfold(dim, size, step): windows along an axis as a new last axis; a view. */
static const tv_err *unfold(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    int64_t axis = 0;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    const int64_t size = tv_aten_int(r, n, "size", 1), step = tv_aten_int(r, n, "step", 1);
    if (!axis_of(r, n, x, "dimension", 0, &axis) || step <= 0 || size > s.d[axis])
        return tv_run_unknown(r, n);
    s.d[axis] = (s.d[axis] - size) / step + 1;
    if (!tv_shape_push(&s, size))
        return tv_run_unknown(r, n);
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &s);
    tv_run_view_of(r, y, x);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_VIEW}, &x, 1, &y, 1);
    return view_out(r, n, y);
}

/* Views that the file's shape describes: as_strided, diagonal, real parts of complex numbers. */
static const tv_err *stated_view(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    TV_TRY(tv_run_need(r, x));
    const uint32_t y = tv_aten_make(r, n, 0, x);
    tv_run_view_of(r, y, x);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_VIEW}, &x, 1, &y, 1);
    return view_out(r, n, y);
}

/* ---- copies ---- */

/* Pairs from the last axis backwards. */
static const tv_err *pad(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    const int64_t *v = NULL;
    const size_t count = tv_aten_ints(r, n, rule->arg ? "padding" : "pad", &v);
    int64_t before[TV_LIMIT_RANK] = {0}, after[TV_LIMIT_RANK] = {0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const uint32_t rank = tv_run_shape(r, x)->rank;
    for (size_t i = 0; 2 * i + 1 < count && i < rank; i++) {
        before[rank - 1 - i] = v[2 * i];
        after[rank - 1 - i] = v[2 * i + 1];
    }
    TV_TRY(tv_rule_pad(r, before, after, rank, x, &y));
    return view_out(r, n, y);
}

/* A new place for the same elements: roll, flip, tril ... and clone, contiguous. */
static const tv_err *moved(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x), &x, 1, &y));
    tv_run_weight_of(r, y, x);
    return view_out(r, n, y);
}

/* Nothing happens where the elements lie in order already. */
static const tv_err *contiguous(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    TV_TRY(tv_run_need(r, x));
    const tv_str format = tv_node_string(n, "memory_format");
    if (strided(r, x) || tv_str_starts(format, TV_S("channels_last")))
        return moved(r, n, rule);
    return tv_aten_same(r, n, rule);
}

static const tv_err *cast(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const tv_dtype dtype = tv_aten_dtype(r, n, 0, tv_run_at(r, x)->dtype);
    const bool copies = rule->arg || tv_aten_flag(r, n, "copy");
    if (dtype == tv_run_at(r, x)->dtype && copies)
        return moved(r, n, rule);
    TV_TRY(tv_rule_cast(r, x, dtype, &y));
    return view_out(r, n, y);
}

/* copy_(self, src): self's place takes src's elements, in self's type. */
static const tv_err *copy_into(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n), src = tv_aten_in(r, n, "src");
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const uint32_t from = src == TV_NO_VALUE ? x : src;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x), &from, 1, &y));
    if (tv_aten_inplace(n))
        tv_running_at(r, y)->base = tv_run_at(r, x)->base;
    return view_out(r, n, y);
}

/* A part of self is replaced by src: both are read, the whole is written. */
static const tv_err *scattered(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t in[2] = {tv_aten_first(r, n), tv_aten_in(r, n, "src")};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, in[0]));
    TV_TRY(tv_rule_copy(r, tv_run_at(r, in[0])->dtype, tv_run_shape(r, in[0]), in,
                        in[1] == TV_NO_VALUE ? 1 : 2, &y));
    return view_out(r, n, y);
}

static const tv_err *pixel_shuffle(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    const int64_t f = tv_aten_int(r, n, rule->arg ? "downscale_factor" : "upscale_factor", 1);
    if (s.rank < 3 || f <= 0 || f > 1 << 20)
        return tv_run_unknown(r, n);
    int64_t *c = &s.d[s.rank - 3], *h = &s.d[s.rank - 2], *w = &s.d[s.rank - 1];
    *c = rule->arg ? *c * f * f : *c / (f * f);
    *h = rule->arg ? *h / f : *h * f;
    *w = rule->arg ? *w / f : *w * f;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &s, &x, 1, &y));
    return view_out(r, n, y);
}

static const tv_err *meshgrid(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_shape s = {0};
    const bool xy = tv_str_is(tv_node_string(n, "indexing"), "xy");
    for (size_t i = 0; i < n->n_inputs; i++) {
        const uint32_t v = tv_run_in(r, n, i);
        TV_TRY(tv_run_need(r, v));
        const int64_t count = tv_shape_count(tv_run_shape(r, v));
        if (!tv_shape_push(&s, count < 0 ? 0 : count))
            return tv_run_unknown(r, n);
    }
    if (xy && s.rank >= 2) {
        const int64_t first = s.d[0];
        s.d[0] = s.d[1];
        s.d[1] = first;
    }
    for (size_t i = 0; i < n->n_inputs && i < n->n_outputs; i++) {
        const uint32_t x = tv_run_in(r, n, i);
        const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &s);
        tv_run_push(r, &(tv_step){.kind = TV_STEP_VIEW}, &x, 1, &y, 1);
        tv_aten_out(r, n, i, y);
    }
    return NULL;
}

/* repeat_interleave: of each element as many as stated, or as a tensor says. */
static const tv_err *repeat_interleave(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    const int64_t times = tv_aten_int(r, n, "repeats", -1);
    int64_t axis = 0;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    if (times < 0 || times > 1 << 24)
        return tv_aten_copied(r, n, rule);
    if (!tv_aten_has(n, "dim"))
        s = tv_shape_of(1, (int64_t[]){tv_shape_count(&s)});
    else if (!axis_of(r, n, x, "dim", 0, &axis))
        return tv_run_unknown(r, n);
    s.d[axis] *= times;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &s, &x, 1, &y));
    return view_out(r, n, y);
}

/* Neighbours' differences: n short of the axis. */
static const tv_err *diff(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    int64_t axis = 0;
    uint32_t parts[2], y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    if (tv_aten_int(r, n, "n", 1) != 1 || tv_node_in_slot(n, "prepend", 0) != TV_NO_VALUE ||
        tv_node_in_slot(n, "append", 0) != TV_NO_VALUE || !axis_of(r, n, x, "dim", -1, &axis))
        return tv_aten_copied(r, n, rule);
    for (size_t i = 0; i < 2; i++) {
        const tv_slice s = {axis, i ? 0 : 1, i ? -1 : INT64_MAX, 1};
        TV_TRY(tv_rule_slice(r, &s, 1, true, x, &parts[i]));
    }
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_SUB}, parts[0], parts[1], &y));
    return view_out(r, n, y);
}

static const tv_rule rules[] = {
    {"aten.view", reshape, 0},
    {"aten.view_copy", reshape, 1},
    {"aten.reshape", reshape, 1},
    {"aten._unsafe_view", reshape, 0},
    {"aten._reshape_alias", reshape, 0},
    {"aten._reshape_copy", reshape, 1},
    {"aten.view_as", reshape_as, 0},
    {"aten.reshape_as", reshape_as, 0},
    {"aten.flatten", flatten, 0},
    {"aten.unflatten", unflatten, 0},
    {"aten.squeeze", squeeze, 0},
    {"aten.squeeze_copy", squeeze, 0},
    {"aten.unsqueeze", unsqueeze, 0},
    {"aten.unsqueeze_copy", unsqueeze, 0},
    {"aten.permute", permute, 0},
    {"aten.permute_copy", permute, 0},
    {"aten.transpose", transpose, 0},
    {"aten.transpose_copy", transpose, 0},
    {"aten.swapaxes", transpose, 0},
    {"aten.swapdims", transpose, 0},
    {"aten.t", turned, 0},
    {"aten.t_copy", turned, 0},
    {"aten.mT", turned, 0},
    {"aten.adjoint", turned, 0},
    {"aten.mH", turned, 0},
    {"aten.numpy_T", turned, 1},
    {"aten.movedim", movedim, 0},
    {"aten.moveaxis", movedim, 0},
    {"aten.expand", expand, 0},
    {"aten.expand_copy", expand, 0},
    {"aten.broadcast_to", expand, 0},
    {"aten.expand_as", expand_as, 0},
    {"aten.repeat", repeat, 0},
    {"aten.tile", repeat, 1},
    {"aten.repeat_interleave", repeat_interleave, 0},
    {"aten.cat", join, 0},
    {"aten.concat", join, 0},
    {"aten.concatenate", join, 0},
    {"aten.stack", join, 1},
    {"aten.hstack", tv_aten_copied, 0},
    {"aten.vstack", tv_aten_copied, 0},
    {"aten.dstack", tv_aten_copied, 0},
    {"aten.column_stack", tv_aten_copied, 0},
    {"aten.block_diag", tv_aten_copied, 0},
    {"aten.split", split, BY_SIZE},
    {"aten.split_copy", split, BY_SIZE},
    {"aten.unsafe_split", split, BY_SIZE},
    {"aten.split_with_sizes", split, BY_SIZES},
    {"aten.split_with_sizes_copy", split, BY_SIZES},
    {"aten.unsafe_split_with_sizes", split, BY_SIZES},
    {"aten.chunk", split, BY_COUNT},
    {"aten.unsafe_chunk", split, BY_COUNT},
    {"aten.tensor_split", split, BY_EVEN_COUNT},
    {"aten.unbind", unbind, 0},
    {"aten.unbind_copy", unbind, 0},
    {"aten.select", select_one, 0},
    {"aten.select_copy", select_one, 0},
    {"aten.slice", slice, 0},
    {"aten.slice_copy", slice, 0},
    {"aten.narrow", narrow, 0},
    {"aten.narrow_copy", narrow, 0},
    {"aten.unfold", unfold, 0},
    {"aten.as_strided", stated_view, 0},
    {"aten.as_strided_copy", stated_view, 0},
    {"aten.diagonal", stated_view, 0},
    {"aten.diagonal_copy", stated_view, 0},
    {"aten.view_as_real", stated_view, 0},
    {"aten.view_as_complex", stated_view, 0},
    {"aten.real", stated_view, 0},
    {"aten.imag", stated_view, 0},
    {"aten.atleast_1d", stated_view, 0},
    {"aten.atleast_2d", stated_view, 0},
    {"aten.atleast_3d", stated_view, 0},
    {"aten.ravel", flatten, 0},
    {"aten.detach", tv_aten_same, 0},
    {"aten.detach_copy", tv_aten_same, 0},
    {"aten.alias", tv_aten_same, 0},
    {"aten.alias_copy", tv_aten_same, 0},
    {"aten.lift", tv_aten_same, 0},
    {"aten.lift_fresh", tv_aten_same, 0},
    {"aten.lift_fresh_copy", tv_aten_same, 0},
    {"aten.positive", tv_aten_same, 0},
    {"aten.conj", tv_aten_same, 0},
    {"aten._conj", tv_aten_same, 0},
    {"aten.resolve_conj", tv_aten_same, 0},
    {"aten.resolve_neg", tv_aten_same, 0},
    {"aten.requires_grad", tv_aten_same, 0},
    {"prims.view_of", tv_aten_same, 0},
    {"prims.broadcast_in_dim", stated_view, 0},
    {"prims.device_put", tv_aten_same, 0},
    {"prims.convert_element_type", cast, 0},
    {"aten.clone", moved, 0},
    {"aten.contiguous", contiguous, 0},
    {"aten.to", cast, 0},
    {"aten._to_copy", cast, 1},
    {"aten.type_as", cast, 0},
    {"aten._autocast_to_reduced_precision", cast, 0},
    {"aten._autocast_to_full_precision", cast, 0},
    {"aten.float", cast, 0},
    {"aten.copy", copy_into, 0},
    {"aten.copy_", copy_into, 0},
    {"aten.pad", pad, 0},
    {"aten.constant_pad_nd", pad, 0},
    {"aten.reflection_pad1d", pad, 1},
    {"aten.reflection_pad2d", pad, 1},
    {"aten.reflection_pad3d", pad, 1},
    {"aten.replication_pad1d", pad, 1},
    {"aten.replication_pad2d", pad, 1},
    {"aten.replication_pad3d", pad, 1},
    {"aten._pad_circular", pad, 0},
    {"aten.roll", moved, 0},
    {"aten.flip", moved, 0},
    {"aten.fliplr", moved, 0},
    {"aten.flipud", moved, 0},
    {"aten.tril", moved, 0},
    {"aten.triu", moved, 0},
    {"aten.native_channel_shuffle", moved, 0},
    {"aten.channel_shuffle", moved, 0},
    {"aten.rot90", tv_aten_copied, 0},
    {"aten.diag", tv_aten_copied, 0},
    {"aten.diag_embed", tv_aten_copied, 0},
    {"aten.diagflat", tv_aten_copied, 0},
    {"aten.im2col", tv_aten_copied, 0},
    {"aten.col2im", tv_aten_copied, 0},
    {"aten.complex", tv_aten_copied, 0},
    {"aten.polar", tv_aten_copied, 0},
    {"aten.cartesian_prod", tv_aten_copied, 0},
    {"aten.combinations", tv_aten_copied, 0},
    {"aten.one_hot", tv_aten_copied, 0},
    {"aten.nonzero_static", tv_aten_copied, 0},
    {"aten.diff", diff, 0},
    {"aten.pixel_shuffle", pixel_shuffle, 0},
    {"aten.pixel_unshuffle", pixel_shuffle, 1},
    {"aten.slice_scatter", scattered, 0},
    {"aten.select_scatter", scattered, 0},
    {"aten.diagonal_scatter", scattered, 0},
    {"aten.as_strided_scatter", scattered, 0},
    {"aten.meshgrid", meshgrid, 0},
};

extern const tv_rule_table tv_rules_aten_layout;
const tv_rule_table tv_rules_aten_layout = {TV_DIALECT_ATEN, "", rules,
                                            sizeof rules / sizeof *rules};
