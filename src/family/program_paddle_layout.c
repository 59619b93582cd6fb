/* Paddle's moves: reshape, transpose, slice, split, join, pad, repeat. */
#include "program_paddle.h"

#include <math.h>

/* ---- shapes that are stated ---- */

/* The stated sizes, with what is not known taken from the program's own declaration of the output;
 * one number that stays open is what remains. */
static bool wanted_shape(tv_running *r, const tv_node *n, const tv_pd_ints *want, tv_pd_ints *out)
{
    tv_shape declared = {0};
    tv_dtype dtype = TV_DTYPE_UNKNOWN;
    const bool told = tv_pd_declared(r, n, "Out", 0, 0, &declared, &dtype);
    size_t open = 0;
    *out = *want;
    if (!want->given || (told && want->n != declared.rank && !want->known))
        out->n = 0;
    for (size_t i = 0; out->n == 0 && told && i < declared.rank; i++)
        out->v[out->n++] = declared.d[i] < 0 ? PD_OPEN : declared.d[i];
    for (size_t i = 0; i < out->n; i++) {
        if (out->v[i] == PD_OPEN && told && i < declared.rank && declared.d[i] >= 0)
            out->v[i] = declared.d[i];
        open += out->v[i] == PD_OPEN || out->v[i] == -1;
        if (out->v[i] == PD_OPEN)
            out->v[i] = -1;
    }
    return out->n > 0 && open <= 1;
}

/* With several open sizes: those that x has at the same place, then one that remains. */
static void fill_open(const tv_shape *x, tv_pd_ints *want)
{
    size_t open = 0;
    for (size_t i = 0; i < want->n; i++)
        open += want->v[i] == -1;
    for (size_t i = 0; i < want->n && open > 1; i++)
        if (want->v[i] == -1 && i < x->rank) {
            want->v[i] = x->d[i];
            open--;
        }
    for (size_t i = want->n; i-- > 0 && open > 1;)
        if (want->v[i] == -1) {
            want->v[i] = 1;
            open--;
        }
}

static const tv_err *reshape_to(tv_running *r, uint32_t x, tv_pd_ints *want, bool guessed,
                                uint32_t *y)
{
    tv_shape shape = {0};
    if (want->n > TV_LIMIT_RANK)
        return tv_run_fail(r, "program.reshape-rank", N_("a tensor has too many dimensions"));
    if (!guessed || tv_shape_reshape(tv_run_shape(r, x), want->v, want->n, true, &shape))
        return tv_rule_reshape(r, x, want->v, want->n, true, y);
    shape.rank = (uint32_t)want->n;
    for (size_t i = 0; i < want->n; i++)
        shape.d[i] = want->v[i];
    *y = tv_pd_make_guess(r, tv_run_at(r, x)->dtype, &shape);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY, .guessed = true}, &x, 1, y, 1);
    return NULL;
}

PD_RULE(reshape)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_pd_ints stated, want;
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_pd_read_ints(r, n, (tv_pd_where){"shape", "Shape", "ShapeTensor", 1}, &stated);
    const bool clear = wanted_shape(r, n, &stated, &want);
    if (!clear)
        fill_open(tv_run_shape(r, x), &want);
    TV_TRY(reshape_to(r, x, &want, !stated.known || !clear, &y));
    if (!clear)
        tv_run_guess(r, y);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(transpose)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_pd_ints axes;
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "axis|perm", .place = PD_NONE}, &axes);
    TV_TRY(tv_rule_transpose(r, x, axes.v, axes.n, false, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(flatten)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_flatten(r, x, tv_pd_attr_int(r, n, "start_axis", 1),
                           tv_pd_attr_int(r, n, "stop_axis", -1), &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* To a matrix: axes before `axis` and from it on. */
PD_RULE(flatten2)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const double axis = tv_pd_attr_num(r, n, "axis", 1);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    tv_shape shape = {.rank = 2, .d = {1, 1}};
    for (uint32_t i = 0; i < s->rank; i++)
        shape.d[(double)i >= axis] *= s->d[i];
    TV_TRY(tv_rule_view(r, x, &shape, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* Axes of size 1 that are named; those of another size stay (Paddle passes over them). */
static size_t ones_of(const tv_shape *s, const tv_pd_ints *axes, int64_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < axes->n && n < TV_LIMIT_RANK; i++) {
        uint32_t at = 0;
        if (tv_shape_axis(axes->v[i], s->rank, &at) && s->d[at] == 1)
            out[n++] = at;
    }
    return n;
}

PD_RULE(squeeze)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    int64_t ones[TV_LIMIT_RANK];
    tv_pd_ints axes;
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_pd_read_ints(r, n, (tv_pd_where){"axes|axis", "AxesTensor", "AxesTensorList", 1}, &axes);
    const tv_shape *s = tv_run_shape(r, x);
    const size_t count = ones_of(s, &axes, ones);
    if (axes.n && !count)
        TV_TRY(tv_rule_view(r, x, s, &y));
    else
        TV_TRY(tv_rule_squeeze(r, x, ones, count, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(unsqueeze)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_pd_ints axes;
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_pd_read_ints(r, n, (tv_pd_where){"axes|axis", "AxesTensor", "AxesTensorList", 1}, &axes);
    TV_TRY(tv_rule_unsqueeze(r, x, axes.v, axes.n, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* The same elements in the shape that the program declares. */
PD_RULE(declared_view)
{
    const uint32_t x = tv_pd_main(r, n);
    tv_shape shape = {0};
    tv_dtype dtype = TV_DTYPE_UNKNOWN;
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const bool told = tv_pd_declared(r, n, "Out", 0, 0, &shape, &dtype);
    tv_pd_ints want = {.n = told ? shape.rank : 0, .given = told, .known = true};
    for (size_t i = 0; i < want.n; i++)
        want.v[i] = shape.d[i];
    if (!told)
        return tv_run_unknown(r, n);
    fill_open(tv_run_shape(r, x), &want);
    TV_TRY(reshape_to(r, x, &want, true, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* ---- slices ---- */

typedef struct ranges {
    tv_pd_ints axes, starts, ends, strides;
} ranges;

/* A bound that is not known takes the whole axis, or what the program declares. */
static bool fill_slices(const ranges *x, const tv_shape *s, tv_slice *out)
{
    bool known = true;
    for (size_t i = 0; i < x->axes.n; i++) {
        uint32_t at = 0;
        const int64_t axis = x->axes.v[i];
        const int64_t size = tv_shape_axis(axis, s->rank, &at) ? s->d[at] : 0;
        out[i] = (tv_slice){.axis = axis, .start = 0, .end = size, .step = 1};
        if (i < x->starts.n && x->starts.v[i] != PD_OPEN)
            out[i].start = x->starts.v[i];
        if (i < x->ends.n && x->ends.v[i] != PD_OPEN)
            out[i].end = x->ends.v[i];
        if (i < x->strides.n && x->strides.v[i] != PD_OPEN)
            out[i].step = x->strides.v[i];
        known = known && i < x->starts.n && x->starts.v[i] != PD_OPEN && i < x->ends.n &&
                x->ends.v[i] != PD_OPEN;
        /* An index that is not known, as in x[i]: one element. */
        const bool unknown = i >= x->starts.n || x->starts.v[i] == PD_OPEN;
        if (unknown && i < x->ends.n && x->ends.v[i] == PD_OPEN && size > 1)
            out[i].end = size;
    }
    return known;
}

static void read_ranges(tv_running *r, const tv_node *n, ranges *x)
{
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "axes", .place = PD_NONE}, &x->axes);
    tv_pd_read_ints(r, n, (tv_pd_where){"starts", "StartsTensor", "StartsTensorList", 1},
                    &x->starts);
    tv_pd_read_ints(r, n, (tv_pd_where){"ends", "EndsTensor", "EndsTensorList", 2}, &x->ends);
    tv_pd_read_ints(r, n, (tv_pd_where){"strides|steps", "StridesTensor", "StridesTensorList", 3},
                    &x->strides);
}

/* Index axes vanish: one element of each, even where which one is not known. */
static void keep_one(const tv_pd_ints *drop, const tv_shape *s, tv_slice *v, size_t n)
{
    for (size_t k = 0; k < drop->n; k++)
        for (size_t i = 0; i < n; i++) {
            uint32_t one = 0, two = 0;
            if (tv_shape_axis(drop->v[k], s->rank, &one) &&
                tv_shape_axis(v[i].axis, s->rank, &two) && one == two && v[i].start >= 0 &&
                (v[i].end - v[i].start != 1 || v[i].start >= s->d[one]) && v[i].end != INT64_MAX)
                v[i].end = v[i].start + 1;
        }
}

PD_RULE(slice)
{
    const uint32_t x = tv_pd_in(r, n, "Input", 0);
    ranges *g = tv_new(tv_run_arena(r), ranges, 1);
    tv_slice v[TV_LIMIT_RANK];
    tv_pd_ints drop;
    int64_t ones[TV_LIMIT_RANK];
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    read_ranges(r, n, g);
    if (g->axes.n > TV_LIMIT_RANK)
        return tv_run_fail(r, "program.reshape-rank", N_("a tensor has too many dimensions"));
    const bool known = fill_slices(g, tv_run_shape(r, x), v);
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "decrease_axis", .place = PD_NONE}, &drop);
    if (!known)
        keep_one(&drop, tv_run_shape(r, x), v, g->axes.n);
    TV_TRY(tv_rule_slice(r, v, g->axes.n, false, x, &y));
    if (!known)
        tv_run_guess(r, y);
    const size_t count = ones_of(tv_run_shape(r, y), &drop, ones);
    if (count)
        TV_TRY(tv_rule_squeeze(r, y, ones, count, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* Writes into a part of its operand: the shape stays. */
PD_RULE(set_value)
{
    const uint32_t x = tv_pd_in(r, n, "Input", 0);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x));
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(crop)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_pd_ints shape, offsets;
    tv_slice v[TV_LIMIT_RANK];
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_pd_read_ints(r, n, (tv_pd_where){"shape", "Shape", "ShapeTensor", 1}, &shape);
    tv_pd_read_ints(r, n, (tv_pd_where){"offsets", "Offsets", "OffsetsTensor", 2}, &offsets);
    const tv_shape *s = tv_run_shape(r, x);
    for (uint32_t i = 0; i < s->rank; i++) {
        const bool given = i < offsets.n && offsets.v[i] != PD_OPEN;
        const int64_t from = given ? offsets.v[i] : 0;
        const bool open = i >= shape.n || shape.v[i] == PD_OPEN || shape.v[i] < 0;
        v[i] = (tv_slice){.axis = i, .start = from, .end = open ? s->d[i] : from + shape.v[i]};
    }
    TV_TRY(tv_rule_slice(r, v, s->rank, false, x, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* ---- join and part ---- */

PD_RULE(concat)
{
    const tv_pd_list x = tv_pd_in_list(r, n, "X", 0);
    const int64_t axis =
        tv_pd_read_int(r, n, (tv_pd_where){.attr = "axis", .tensor = "AxisTensor", .place = 1}, 0);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    if (x.n == 0)
        return tv_run_need(r, TV_NO_VALUE);
    TV_TRY(tv_rule_concat(r, axis, x.v, x.n, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(stack)
{
    const tv_pd_list x = tv_pd_in_list(r, n, "X", 0);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    if (x.n == 0)
        return tv_run_need(r, TV_NO_VALUE);
    TV_TRY(tv_rule_stack(r, tv_pd_attr_int(r, n, "axis", 0), x.v, x.n, &y));
    tv_pd_out(r, n, "Y", 0, y);
    return NULL;
}

/* Sizes along the axis for so many outputs: stated (one -1: what remains), or equal. */
static void part_sizes(const tv_pd_ints *sections, int64_t size, int64_t *parts, size_t n)
{
    int64_t rest = size;
    size_t open = 0;
    for (size_t i = 0; i < n; i++) {
        parts[i] = i < sections->n && sections->v[i] >= 0 ? sections->v[i] : -1;
        rest -= parts[i] < 0 ? 0 : parts[i];
        open += parts[i] < 0;
    }
    for (size_t i = 0; i < n; i++)
        if (parts[i] < 0)
            parts[i] = open && rest > 0 ? rest / (int64_t)open : 0;
}

static const tv_err *split_axis(tv_running *r, const tv_node *n, int64_t axis,
                                const tv_pd_ints *sections)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const size_t count = tv_pd_out_count(r, n, "Out", 0);
    uint32_t at = 0;
    TV_TRY(tv_run_need(r, x));
    if (!tv_shape_axis(axis, tv_run_shape(r, x)->rank, &at) || count == 0)
        return tv_run_fail(r, "program.axis", N_("an axis is out of range"));
    int64_t *parts = tv_new(tv_run_arena(r), int64_t, count);
    uint32_t *y = tv_new(tv_run_arena(r), uint32_t, count);
    part_sizes(sections, tv_run_shape(r, x)->d[at], parts, count);
    TV_TRY(tv_rule_split(r, axis, parts, count, false, x, y));
    for (size_t i = 0; i < count; i++)
        tv_pd_out_at(r, n, "Out", 0, i, y[i]);
    return NULL;
}

PD_RULE(split)
{
    tv_pd_ints sections;
    const bool equal = tv_str_is(n->op, "split_with_num");
    const tv_pd_where axis = {.attr = "axis", .tensor = "AxisTensor", .place = equal ? 1 : 2};
    (void)rule;
    tv_pd_read_ints(
        r, n,
        (tv_pd_where){equal ? NULL : "sections", NULL, "SectionsTensorList", equal ? PD_NONE : 1},
        &sections);
    return split_axis(r, n, tv_pd_read_int(r, n, axis, 0), &sections);
}

/* unstack and unbind: the axis vanishes. */
PD_RULE(unbind)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const char *out = tv_str_is(n->op, "unstack") ? "Y" : "Out";
    const int64_t axis = tv_pd_attr_int(r, n, "axis", 0);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    for (size_t i = 0; i < tv_pd_out_count(r, n, out, 0); i++) {
        uint32_t y = TV_NO_VALUE;
        TV_TRY(tv_rule_select(r, axis, (int64_t)i, true, x, &y));
        tv_pd_out_at(r, n, out, 0, i, y);
    }
    return NULL;
}

/* ---- repeat ---- */

PD_RULE(tile)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_pd_ints times;
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_pd_read_ints(
        r, n, (tv_pd_where){"repeat_times|expand_times", "RepeatTimes", "repeat_times_tensor", 1},
        &times);
    for (size_t i = 0; i < times.n; i++)
        times.v[i] = times.v[i] == PD_OPEN ? 1 : times.v[i];
    TV_TRY(tv_rule_tile(r, times.v, times.n, x, &y));
    if (!times.known)
        tv_run_guess(r, y);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(expand)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_pd_ints stated, want;
    uint32_t y = TV_NO_VALUE;
    /* The first form repeats. */
    if (tv_node_attr(n, "expand_times"))
        return tile(r, n, rule);
    TV_TRY(tv_run_need(r, x));
    tv_pd_read_ints(r, n, (tv_pd_where){"shape", "Shape", "expand_shapes_tensor", 1}, &stated);
    if (stated.given && stated.known)
        want = stated;
    else
        (void)wanted_shape(r, n, &stated, &want);
    TV_TRY(tv_rule_expand(r, x, want.v, want.n, false, &y));
    if (!stated.known)
        tv_run_guess(r, y);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(expand_as)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    static const char *const slots[] = {"Y", "target_tensor"};
    uint32_t like = TV_NO_VALUE, y = TV_NO_VALUE;
    tv_pd_ints shape;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    for (size_t i = 0; i < 2; i++)
        like = like == TV_NO_VALUE ? tv_pd_in(r, n, slots[i], 1) : like;
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "target_shape", .place = PD_NONE}, &shape);
    const tv_shape *s = like == TV_NO_VALUE ? NULL : tv_run_shape(r, like);
    for (uint32_t i = 0; s && i < s->rank; i++)
        shape.v[i] = s->d[i];
    TV_TRY(tv_rule_expand(r, x, shape.v, s ? s->rank : shape.n, false, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(repeat_interleave)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const double times = tv_pd_attr_num(r, n, "Repeats|repeats", 0);
    const int64_t axis = tv_pd_attr_int(r, n, "dim|axis", 0);
    uint32_t at = 0, y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    if (!tv_shape_axis(axis, s.rank, &at))
        return tv_run_fail(r, "program.axis", N_("an axis is out of range"));
    s.d[at] *= times > 0 ? (int64_t)times : 1;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &s, &x, 1, &y));
    if (times <= 0)
        tv_run_guess(r, y);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* All operands broadcast against each other. */
PD_RULE(broadcast_tensors)
{
    const tv_pd_list x = tv_pd_in_list(r, n, "X", 0);
    tv_shape s = {0};
    (void)rule;
    for (size_t i = 0; i < x.n; i++)
        if (!tv_shape_broadcast(&s, tv_run_shape(r, x.v[i]), &s))
            return tv_run_fail(r, "program.broadcast", N_("shapes do not go together"));
    for (size_t i = 0; i < x.n; i++) {
        uint32_t y = TV_NO_VALUE;
        TV_TRY(tv_rule_expand(r, x.v[i], s.d, s.rank, false, &y));
        tv_pd_out_at(r, n, "Out", 0, i, y);
    }
    return NULL;
}

PD_RULE(meshgrid)
{
    const tv_pd_list x = tv_pd_in_list(r, n, "X", 0);
    tv_shape s = {0};
    (void)rule;
    for (size_t i = 0; i < x.n; i++)
        if (!tv_shape_push(&s, tv_shape_count(tv_run_shape(r, x.v[i]))))
            return tv_run_fail(r, "program.reshape-rank", N_("a tensor has too many dimensions"));
    for (size_t i = 0; i < x.n; i++) {
        tv_shape one = {.rank = s.rank};
        uint32_t y = TV_NO_VALUE;
        for (uint32_t k = 0; k < s.rank; k++)
            one.d[k] = k == i ? s.d[k] : 1;
        TV_TRY(tv_rule_view(r, x.v[i], &one, &y));
        TV_TRY(tv_rule_expand(r, y, s.d, s.rank, false, &y));
        tv_pd_out_at(r, n, "Out", 0, i, y);
    }
    return NULL;
}

/* ---- pad ---- */

typedef struct pads {
    int64_t before[TV_LIMIT_RANK], after[TV_LIMIT_RANK];
} pads;

/* Image pads: pad2d counts top, bottom, left, right; pad3d left, right, top, bottom, front, back,
 * that is the innermost axis first. */
static void image_pads(const tv_pd_ints *v, bool inner_first, bool last, uint32_t rank, pads *p)
{
    const uint32_t first = last ? 1 : 2, axes = rank > 2 ? rank - 2 : 0;
    for (uint32_t i = 0; i < axes && 2 * i + 1 < v->n; i++) {
        const uint32_t axis = first + (inner_first ? axes - 1 - i : i);
        p->before[axis] = v->v[2 * i] == PD_OPEN ? 0 : v->v[2 * i];
        p->after[axis] = v->v[2 * i + 1] == PD_OPEN ? 0 : v->v[2 * i + 1];
    }
}

PD_RULE(pad_image)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_pd_ints v;
    pads p = {0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    tv_pd_read_ints(r, n, (tv_pd_where){"paddings", "Paddings", NULL, 1}, &v);
    const uint32_t rank = tv_run_shape(r, x)->rank;
    image_pads(&v, rule->arg != 0, tv_pd_channels_last(r, n), rank, &p);
    TV_TRY(tv_rule_pad(r, p.before, p.after, rank, x, &y));
    if (!v.known)
        tv_run_guess(r, y);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(pad)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_pd_ints v;
    pads p = {0};
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "paddings", .place = PD_NONE}, &v);
    const uint32_t rank = tv_run_shape(r, x)->rank;
    for (uint32_t i = 0; i < rank && 2 * i + 1 < v.n; i++) {
        p.before[i] = v.v[2 * i];
        p.after[i] = v.v[2 * i + 1];
    }
    TV_TRY(tv_rule_pad(r, p.before, p.after, rank, x, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* ---- moves that keep the shape, and those between channels and space ---- */

PD_RULE(same_shape)
{
    const uint32_t x = tv_pd_main(r, n);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x), &x, 1, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* No work at all on the GPU: the same tensor under another name. */
PD_RULE(same)
{
    const uint32_t x = tv_pd_main(r, n);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_view(r, x, tv_run_shape(r, x), &y));
    if (!tv_run_at(r, y)->data && tv_run_data(r, x))
        tv_run_set_data(r, y, tv_run_data(r, x));
    if (tv_run_at(r, x)->list)
        y = x;
    tv_pd_out(r, n, "Out", 0, y);
    tv_pd_out(r, n, "out", 0, y);
    return NULL;
}

/* arg 1: channels to space, -1: space to channels. */
PD_RULE(shuffle_space)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const int64_t k =
        (int64_t)fmax(tv_pd_attr_num(r, n, "upscale_factor|downscale_factor|blocksize", 2), 1);
    const bool last = tv_pd_channels_last(r, n);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    if (s.rank != 4)
        return tv_run_fail(r, "program.rank-4", N_("an image of four axes is expected"));
    const uint32_t c = last ? 3 : 1, h = last ? 1 : 2;
    s.d[c] = rule->arg > 0 ? s.d[c] / (k * k) : s.d[c] * k * k;
    s.d[h] = rule->arg > 0 ? s.d[h] * k : s.d[h] / k;
    s.d[h + 1] = rule->arg > 0 ? s.d[h + 1] * k : s.d[h + 1] / k;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &s, &x, 1, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

static int64_t pair_at(const tv_pd_ints *v, size_t i, int64_t fallback)
{
    return v->n == 0 ? fallback : v->v[i < v->n ? i : v->n - 1];
}

/* im2col: [n, c·kh·kw, windows]. */
PD_RULE(unfold)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_pd_ints k, stride, pad, dilation;
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    if (s->rank != 4)
        return tv_run_fail(r, "program.rank-4", N_("an image of four axes is expected"));
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "kernel_sizes", .place = PD_NONE}, &k);
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "strides", .place = PD_NONE}, &stride);
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "paddings", .place = PD_NONE}, &pad);
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "dilations", .place = PD_NONE}, &dilation);
    tv_shape out = {.rank = 3, .d = {s->d[0], s->d[1], 1}};
    for (uint32_t i = 0; i < 2; i++) {
        tv_window w = {.axes = 1,
                       .kernel = {pair_at(&k, i, 1)},
                       .stride = {pair_at(&stride, i, 1)},
                       .dilation = {pair_at(&dilation, i, 1)},
                       .before = {pair_at(&pad, i, 0)},
                       .after = {pair_at(&pad, pad.n == 4 ? i + 2 : i, 0)}};
        out.d[1] *= w.kernel[0];
        out.d[2] *= tv_shape_slide(&w, 0, s->d[2 + i]);
    }
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &out, &x, 1, &y));
    tv_pd_out(r, n, "Y", 0, y);
    return NULL;
}

PD_RULE(fold)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_pd_ints size, k;
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "output_sizes", .place = PD_NONE}, &size);
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "kernel_sizes", .place = PD_NONE}, &k);
    const int64_t area = pair_at(&k, 0, 1) * pair_at(&k, 1, 1);
    if (s->rank != 3 || area < 1)
        return tv_run_fail(r, "program.fold", N_("folding needs three axes"));
    const tv_shape out = {
        .rank = 4, .d = {s->d[0], s->d[1] / area, pair_at(&size, 0, 1), pair_at(&size, 1, 1)}};
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &out, &x, 1, &y));
    tv_pd_out(r, n, "Y", 0, y);
    return NULL;
}

/* diag, diagonal, diag_embed, trace ...: the program's declaration says the shape, the operand
 * where it is open. */
PD_RULE(declared_copy)
{
    const uint32_t x = tv_pd_main(r, n);
    static const char *const outputs[] = {"Out", "Y", "out", "Output"};
    tv_shape s = {0};
    tv_dtype dtype = TV_DTYPE_UNKNOWN;
    uint32_t y = TV_NO_VALUE;
    bool told = false;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    for (size_t i = 0; i < 4 && !told; i++)
        told = tv_pd_declared(r, n, outputs[i], 0, 0, &s, &dtype);
    if (!told)
        return tv_run_unknown(r, n);
    bool open = false;
    const tv_shape *xs = tv_run_shape(r, x);
    for (uint32_t i = 0; i < s.rank; i++) {
        open = open || (s.d[i] < 0 && i > 0);
        if (s.d[i] < 0)
            s.d[i] = i < xs->rank ? xs->d[i] : 1;
    }
    y = tv_run_make(r, dtype ? dtype : tv_run_at(r, x)->dtype, &s);
    if (open)
        tv_run_guess(r, y);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    for (size_t i = 0; i < 4; i++)
        tv_pd_out(r, n, outputs[i], 0, y);
    return NULL;
}

static const tv_rule rules[] = {
    {"reshape", reshape, 0},
    {"reshape2", reshape, 0},
    {"view_shape", declared_view, 0},
    {"transpose", transpose, 0},
    {"transpose2", transpose, 0},
    {"fused_transpose", transpose, 0},
    {"flatten_contiguous_range", flatten, 0},
    {"flatten", flatten, 0},
    {"flatten2", flatten2, 0},
    {"squeeze", squeeze, 0},
    {"squeeze2", squeeze, 0},
    {"unsqueeze", unsqueeze, 0},
    {"unsqueeze2", unsqueeze, 0},
    {"slice", slice, 0},
    {"strided_slice", slice, 0},
    {"set_value", set_value, 0},
    {"set_value_with_tensor", set_value, 0},
    {"crop", crop, 0},
    {"crop_tensor", crop, 0},
    {"concat", concat, 0},
    {"stack", stack, 0},
    {"split", split, 0},
    {"split_with_num", split, 0},
    {"unstack", unbind, 0},
    {"unbind", unbind, 0},
    {"expand_v2", expand, 0},
    {"expand", expand, 0},
    {"expand_as", expand_as, 0},
    {"expand_as_v2", expand_as, 0},
    {"tile", tile, 0},
    {"repeat_interleave", repeat_interleave, 0},
    {"broadcast_tensors", broadcast_tensors, 0},
    {"meshgrid", meshgrid, 0},
    {"pad", pad, 0},
    {"pad2d", pad_image, 0},
    {"pad3d", pad_image, 1},
    {"roll", same_shape, 0},
    {"flip", same_shape, 0},
    {"reverse", same_shape, 0},
    {"tril", same_shape, 0},
    {"triu", same_shape, 0},
    {"tril_triu", same_shape, 0},
    {"shuffle_channel", same_shape, 0},
    {"channel_shuffle", same_shape, 0},
    {"temporal_shift", same_shape, 0},
    {"transfer_layout", same_shape, 0},
    {"assign", same_shape, 0},
    {"assign_out", same_shape, 0},
    {"memcpy", same, 0},
    {"memcpy_d2h", same, 0},
    {"memcpy_h2d", same, 0},
    {"share_data", same, 0},
    {"share_buffer", same, 0},
    {"label_smooth", same_shape, 0},
    {"conj", same_shape, 0},
    {"lod_reset", same, 0},
    {"contiguous", same_shape, 0},
    {"print", same, 0},
    {"depend", same, 0},
    {"pixel_shuffle", shuffle_space, 1},
    {"pixel_unshuffle", shuffle_space, -1},
    {"space_to_depth", shuffle_space, -1},
    {"unfold", unfold, 0},
    {"fold", fold, 0},
    {"diag", declared_copy, 0},
    {"diag_v2", declared_copy, 0},
    {"diag_embed", declared_copy, 0},
    {"diagonal", declared_copy, 0},
    {"trace", declared_copy, 0},
    {"real", declared_copy, 0},
    {"imag", declared_copy, 0},
    {"complex", declared_copy, 0},
    {"as_complex", declared_copy, 0},
    {"as_real", declared_copy, 0},
    {"as_strided", declared_copy, 0},
    {"view_dtype", declared_copy, 0},
    {"tensor_unfold", declared_copy, 0},
    {"frame", declared_copy, 0},
    {"overlap_add", declared_copy, 0},
    {"fft_r2c", declared_copy, 0},
    {"fft_c2r", declared_copy, 0},
    {"fft_c2c", declared_copy, 0},
};

const tv_rule_table tv_rules_paddle_layout = {TV_DIALECT_PADDLE, "", rules,
                                              sizeof rules / sizeof *rules};
