/* ONNX: operators that move elements or tell shapes. */
#include "program_onnx.h"
#include "program_running.h"

static const tv_err *guess_like(tv_running *r, const tv_node *n, uint32_t x)
{
    return tv_opset_guess(r, n, &tv_run_at(r, x)->dtype, tv_run_shape(r, x), 1);
}

/* ---- the same elements ---- */

static const tv_err *reshape(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    size_t count = 0;
    bool known = true;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const int64_t *target = tv_opset_ints(r, n, "shape", 1, &count, &known);
    if (!known)
        return guess_like(r, n, x);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_reshape(r, x, target, count, !tv_node_int(n, "allowzero", 0), &y));
    return tv_opset_done(r, n, y);
}

/* Two axes: what is before `axis`, and the rest. */
static const tv_err *flatten(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    int64_t axis = tv_node_int(n, "axis", 1);
    if (axis < 0)
        axis += s->rank;
    tv_shape shape = tv_shape_of(2, (int64_t[]){1, 1});
    for (uint32_t i = 0; i < s->rank; i++) {
        int64_t *side = &shape.d[i < axis ? 0 : 1];
        *side = tv_shape_times(*side, s->d[i]);
    }
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_view(r, x, &shape, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *squeeze(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    size_t count = 0;
    bool known = true;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const int64_t *axes = tv_opset_ints(r, n, "axes", 1, &count, &known);
    if (!known)
        return guess_like(r, n, x);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(rule->arg ? tv_rule_unsqueeze(r, x, axes, count, &y)
                     : tv_rule_squeeze(r, x, axes, count, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *expand_dims(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    int64_t axis = (int64_t)tv_run_scalar(r, tv_run_in(r, n, 1), 0);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_unsqueeze(r, tv_run_in(r, n, 0), &axis, 1, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *transpose(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const int64_t *order = NULL;
    size_t count = tv_node_ints(n, "perm", &order);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_transpose(r, tv_run_in(r, n, 0), count ? order : NULL, count, false, &y));
    return tv_opset_done(r, n, y);
}

/* ---- parts and joins ---- */

static const tv_err *concat(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_concat(r, tv_node_int(n, "axis", 1), tv_opset_operands(r, n), n->n_inputs, &y));
    return tv_opset_done(r, n, y);
}

/* Equal parts; the last one is smaller where the axis does not divide. */
static const int64_t *equal_parts(tv_running *r, int64_t size, size_t n)
{
    int64_t *parts = tv_new(tv_run_arena(r), int64_t, n ? n : 1);
    int64_t each = n ? (size + (int64_t)n - 1) / (int64_t)n : 0;
    for (size_t i = 0; i < n; i++) {
        int64_t left = size - each * (int64_t)i;
        parts[i] = left < each ? (left > 0 ? left : 0) : each;
    }
    return parts;
}

static const tv_err *split(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    int64_t axis = tv_node_int(n, "axis", 0);
    size_t count = 0;
    bool known = true;
    uint32_t at = 0;
    const int64_t *parts = tv_opset_ints(r, n, "split", 1, &count, &known);
    if (!tv_shape_axis(axis, s->rank, &at))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), s, NULL);
    if (!known || !count || count != n->n_outputs) {
        parts = equal_parts(r, s->d[at], n->n_outputs);
        count = n->n_outputs;
    }
    uint32_t *y = tv_new(tv_run_arena(r), uint32_t, count + 1);
    TV_TRY(tv_rule_split(r, axis, parts, count, false, x, y));
    for (size_t i = 0; i < count; i++) {
        if (!known)
            tv_run_guess(r, y[i]);
        tv_run_out(r, n, i, y[i]);
    }
    return NULL;
}

typedef struct slice_lists {
    const int64_t *starts, *ends, *axes, *steps;
    size_t n, n_ends, n_axes, n_steps;
    bool known;
} slice_lists;

static slice_lists slices_of(tv_running *r, const tv_node *n)
{
    slice_lists l = {0};
    bool known[4];
    l.starts = tv_opset_ints(r, n, "starts", 1, &l.n, &known[0]);
    l.ends = tv_opset_ints(r, n, "ends", 2, &l.n_ends, &known[1]);
    l.axes = tv_opset_ints(r, n, "axes", 3, &l.n_axes, &known[2]);
    l.steps = tv_opset_ints(r, n, NULL, 4, &l.n_steps, &known[3]);
    l.known = known[0] && known[1] && known[2] && known[3];
    return l;
}

static const tv_err *slice(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    slice_lists l = slices_of(r, n);
    if (!l.known)
        return guess_like(r, n, x);
    if (l.n > TV_LIMIT_RANK || l.n_ends != l.n || (l.n_axes && l.n_axes != l.n) ||
        (l.n_steps && l.n_steps != l.n))
        return tv_run_fail(r, "program.slice", N_("starts, ends and axes differ in number"));
    tv_slice s[TV_LIMIT_RANK];
    for (size_t i = 0; i < l.n; i++)
        s[i] = (tv_slice){l.n_axes ? l.axes[i] : (int64_t)i, l.starts[i], l.ends[i],
                          l.n_steps ? l.steps[i] : 1};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_slice(r, s, l.n, false, x, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *pad(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    size_t count = 0;
    size_t n_axes = 0;
    bool known = true;
    bool axes_known = true;
    const int64_t *old = NULL;
    size_t n_old = tv_node_ints(n, "paddings", &old); /* operator set 1 */
    const int64_t *pads = tv_opset_ints(r, n, "pads", 1, &count, &known);
    const int64_t *axes = tv_opset_ints(r, n, NULL, 3, &n_axes, &axes_known);
    pads = n_old ? old : pads;
    count = n_old ? n_old : count;
    if (!known || !axes_known)
        return guess_like(r, n, x);
    int64_t before[TV_LIMIT_RANK] = {0};
    int64_t after[TV_LIMIT_RANK] = {0};
    if (count != 2 * (n_axes ? n_axes : (size_t)s->rank))
        return tv_run_fail_shapes(r, "program.pads", N_("the padding does not fit {x}"), s, NULL);
    for (size_t i = 0; i < count / 2; i++) {
        uint32_t at = 0;
        if (!tv_shape_axis(n_axes ? axes[i] : (int64_t)i, s->rank, &at))
            return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), s, NULL);
        before[at] = pads[i];
        after[at] = pads[count / 2 + i];
    }
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_pad(r, before, after, s->rank, x, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *center_crop_pad(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = *tv_run_shape(r, x);
    size_t count = 0;
    bool known = true;
    const int64_t *sizes = tv_opset_ints(r, n, NULL, 1, &count, &known);
    const int64_t *axes = NULL;
    size_t n_axes = tv_node_ints(n, "axes", &axes);
    if (!known)
        return guess_like(r, n, x);
    for (size_t i = 0; i < count; i++) {
        uint32_t at = 0;
        if (!tv_shape_axis(i < n_axes ? axes[i] : (int64_t)i, shape.rank, &at))
            return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), &shape,
                                      NULL);
        shape.d[at] = sizes[i];
    }
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &shape, &x, 1, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *tile(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    size_t count = 0;
    bool known = true;
    const int64_t *repeats = tv_opset_ints(r, n, NULL, 1, &count, &known);
    if (!known)
        return guess_like(r, n, x);
    int64_t old[TV_LIMIT_RANK];
    uint32_t at = 0;
    const tv_shape *s = tv_run_shape(r, x);
    /* Operator set 1: a number of tiles and an axis. */
    if (n->n_inputs == 3 && count == 1 &&
        tv_shape_axis((int64_t)tv_run_scalar(r, tv_run_in(r, n, 2), 0), s->rank, &at)) {
        for (uint32_t i = 0; i < s->rank; i++)
            old[i] = i == at ? repeats[0] : 1;
        repeats = old;
        count = s->rank;
    }
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_tile(r, repeats, count, x, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *expand(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    size_t count = 0;
    bool known = true;
    const int64_t *shape = tv_opset_ints(r, n, NULL, 1, &count, &known);
    if (!known)
        return guess_like(r, n, x);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_expand(r, x, shape, count, false, &y));
    return tv_opset_done(r, n, y);
}

/* ---- blocks and orders ---- */

static const tv_err *to_depth(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = *tv_run_shape(r, x);
    int64_t b = tv_node_int(n, "blocksize", 1);
    bool to_space = rule->arg != 0;
    bool fits = shape.rank == 4 && b > 0 && b < 1024 &&
                (to_space ? shape.d[1] % (b * b) == 0 : shape.d[2] % b == 0 && shape.d[3] % b == 0);
    if (!fits)
        return tv_run_fail_shapes(r, "program.blocks", N_("{x} does not divide into blocks"),
                                  &shape, NULL);
    shape.d[1] = to_space ? shape.d[1] / (b * b) : shape.d[1] * b * b;
    shape.d[2] = to_space ? shape.d[2] * b : shape.d[2] / b;
    shape.d[3] = to_space ? shape.d[3] * b : shape.d[3] / b;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &shape, &x, 1, &y));
    return tv_opset_done(r, n, y);
}

/* One pass over the first operand into a tensor of its shape: reversals, triangles. */
static const tv_err *copy_like(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x), tv_opset_operands(r, n),
                        n->n_inputs, &y));
    return tv_opset_done(r, n, y);
}

/* Columns to an image: [batch, channels·block, positions]. */
static const tv_err *col2im(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    size_t n_image = 0;
    size_t n_block = 0;
    bool known[2];
    const int64_t *image = tv_opset_ints(r, n, NULL, 1, &n_image, &known[0]);
    const int64_t *block = tv_opset_ints(r, n, NULL, 2, &n_block, &known[1]);
    int64_t volume = 1;
    for (size_t i = 0; i < n_block; i++)
        if (block[i] <= 0 || __builtin_mul_overflow(volume, block[i], &volume))
            known[1] = false;
    if (!known[0] || !known[1] || s->rank != 3)
        return guess_like(r, n, x);
    tv_shape shape = tv_shape_of(2, (int64_t[]){s->d[0], s->d[1] / volume});
    for (size_t i = 0; i < n_image; i++)
        if (!tv_shape_push(&shape, image[i]))
            return guess_like(r, n, x);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &shape, &x, 1, &y));
    return tv_opset_done(r, n, y);
}

/* ---- shapes as values ---- */

static int64_t cut_to(int64_t v, int64_t rank)
{
    v = v < 0 ? (v < -rank ? 0 : v + rank) : v;
    return v > rank ? rank : v;
}

static const tv_err *shape_of(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    uint32_t all = tv_rule_shape_of(r, x, TV_I64);
    int64_t rank = tv_run_shape(r, x)->rank;
    int64_t start = cut_to(tv_node_int(n, "start", 0), rank);
    int64_t end = cut_to(tv_node_int(n, "end", rank), rank);
    if (start == 0 && end == rank)
        return tv_opset_done(r, n, all);
    uint32_t y = TV_NO_VALUE;
    tv_slice s = {.axis = 0, .start = start, .end = end};
    TV_TRY(tv_rule_slice(r, &s, 1, true, all, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *size_of(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    double count = tv_shape_elements(tv_run_shape(r, x));
    return tv_opset_done(r, n, tv_run_make_data(r, TV_I64, &(tv_shape){0}, &count));
}

static const tv_rule rules[] = {
    {"CenterCropPad", center_crop_pad, 0},
    {"Col2Im", col2im, 0},
    {"Concat", concat, 0},
    {"DepthToSpace", to_depth, 1},
    {"Expand", expand, 0},
    {"ExpandDims", expand_dims, 0},
    {"Flatten", flatten, 0},
    {"Pad", pad, 0},
    {"Reshape", reshape, 0},
    {"ReverseSequence", copy_like, 0},
    {"Shape", shape_of, 0},
    {"Size", size_of, 0},
    {"Slice", slice, 0},
    {"SpaceToDepth", to_depth, 0},
    {"Split", split, 0},
    {"Squeeze", squeeze, 0},
    {"Tile", tile, 0},
    {"Transpose", transpose, 0},
    {"Trilu", copy_like, 0},
    {"Unsqueeze", squeeze, 1},
};

const tv_rule_table tv_rules_onnx_layout = {TV_DIALECT_ONNX, "", rules,
                                            sizeof rules / sizeof *rules};
