/* ONNX: convolutions, pools and everything that samples images. */
#include <math.h>

#include "program_onnx.h"

static void copy_ints(int64_t *to, const int64_t *from, size_t n)
{
    for (size_t i = 0; i < n && i < TV_WINDOW_AXES; i++)
        to[i] = from[i];
}

/* ---- convolutions ---- */

static tv_conv_call conv_call(const tv_node *n)
{
    return (tv_conv_call){.w = tv_opset_window(n), .groups = tv_node_int(n, "group", 1)};
}

static const tv_err *conv(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_conv_call call = conv_call(n);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_conv(r, &call, tv_run_in(r, n, 0), tv_run_in(r, n, 1), tv_run_in(r, n, 2), &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *conv_integer(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_conv_call call = conv_call(n);
    call.dtype = TV_I32;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_conv(r, &call, tv_run_in(r, n, 0), tv_run_in(r, n, 1), TV_NO_VALUE, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *conv_transpose(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_conv_call call = conv_call(n);
    call.transposed = true;
    const int64_t *v = NULL;
    size_t count = tv_node_ints(n, "output_padding", &v);
    copy_ints(call.extra, v, count);
    count = tv_node_ints(n, "output_shape", &v);
    /* Some files write batch and channels too. */
    size_t spatial = count > TV_WINDOW_AXES || count == 4 ? count - 2 : count;
    if (count)
        copy_ints(call.out_size, v + (count - spatial), spatial);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_conv(r, &call, tv_run_in(r, n, 0), tv_run_in(r, n, 1), tv_run_in(r, n, 2), &y));
    return tv_opset_done(r, n, y);
}

/* A convolution whose samples are moved by offsets: the products are the same. */
static const tv_err *deform_conv(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_conv_call call = conv_call(n);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_conv(r, &call, tv_run_in(r, n, 0), tv_run_in(r, n, 1), tv_run_in(r, n, 3), &y));
    return tv_opset_done(r, n, y);
}

/* ---- pools ---- */

enum { POOL_AVERAGE, POOL_MAX };

static const tv_err *pool(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    tv_pool_call call = {.w = tv_opset_window(n), .max = rule->arg == POOL_MAX};
    uint32_t y = TV_NO_VALUE;
    uint32_t indices = TV_NO_VALUE;
    bool both = call.max && tv_node_out(n, 1) != TV_NO_VALUE;
    TV_TRY(tv_rule_pool(r, &call, tv_run_in(r, n, 0), &y, both ? &indices : NULL));
    if (both)
        tv_run_out(r, n, 1, indices);
    return tv_opset_done(r, n, y);
}

static const tv_err *global_pool(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    tv_pool_call call = {.global = true, .max = rule->arg == POOL_MAX};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_pool(r, &call, tv_run_in(r, n, 0), &y, NULL));
    return tv_opset_done(r, n, y);
}

static const tv_err *route_shape(tv_running *r, const tv_node *n, const tv_shape *shape)
{
    uint32_t y = tv_run_make(r, tv_run_at(r, tv_run_in(r, n, 0))->dtype, shape);
    TV_TRY(tv_rule_route(r, tv_opset_operands(r, n), n->n_inputs, &y, 1));
    return tv_opset_done(r, n, y);
}

static const tv_err *max_unpool(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = *tv_run_shape(r, x);
    size_t count = 0;
    bool known = true;
    const int64_t *sizes = tv_opset_ints(r, n, NULL, 2, &count, &known);
    tv_window w = tv_opset_window(n);
    for (uint32_t i = 0; i < shape.rank; i++) {
        if (known && count == shape.rank)
            shape.d[i] = sizes[i];
        else if (i >= 2 && i - 2 < TV_WINDOW_AXES)
            shape.d[i] = tv_shape_slide_back(&w, i - 2, shape.d[i], 0);
    }
    return route_shape(r, n, &shape);
}

/* ---- regions ---- */

static const tv_err *regions(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t rois = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, rois));
    const tv_shape *s = tv_run_shape(r, x);
    const tv_shape *boxes = tv_run_shape(r, rois);
    const int64_t *pooled = NULL;
    bool stated = tv_node_ints(n, "pooled_shape", &pooled) == 2;
    if (s->rank != 4 || boxes->rank < 1)
        return tv_run_fail_shapes(r, "program.regions", N_("regions {y} of {x} have no shape"), s,
                                  boxes);
    tv_shape shape =
        tv_shape_of(4, (int64_t[]){boxes->d[0], s->d[1],
                                   stated ? pooled[0] : tv_node_int(n, "output_height", 1),
                                   stated ? pooled[1] : tv_node_int(n, "output_width", 1)});
    return route_shape(r, n, &shape);
}

static const tv_err *grid_sample(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t grid = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, grid));
    tv_shape shape = *tv_run_shape(r, x);
    const tv_shape *g = tv_run_shape(r, grid);
    if (g->rank != shape.rank || shape.rank < 3)
        return tv_run_fail_shapes(r, "program.grid", N_("{x} cannot be sampled at {y}"), &shape, g);
    for (uint32_t i = 2; i < shape.rank; i++)
        shape.d[i] = g->d[i - 1];
    uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &shape);
    tv_step s = {.kind = TV_STEP_RESIZE};
    s.u.resize.nearest = tv_opset_is(tv_node_string(n, "mode"), "nearest");
    tv_run_push(r, &s, (uint32_t[]){x, grid}, 2, &y, 1);
    return tv_opset_done(r, n, y);
}

static const tv_err *affine_grid(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t theta = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, theta));
    size_t count = 0;
    bool known = true;
    const int64_t *size = tv_opset_ints(r, n, NULL, 1, &count, &known);
    if (!known || count < 4 || count > 5)
        return tv_opset_guess(r, n, &tv_run_at(r, theta)->dtype, tv_run_shape(r, theta), 1);
    tv_shape shape = tv_shape_of(1, size);
    for (size_t i = 2; i < count; i++)
        shape.d[shape.rank++] = size[i];
    shape.d[shape.rank++] = (int64_t)count - 2;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, theta)->dtype, &shape, &theta, 1, &y));
    return tv_opset_done(r, n, y);
}

/* ---- sizes ---- */

/* Scales and sizes may name some axes only. */
typedef struct resizing {
    const int64_t *axes;
    size_t n_axes;
    const double *scales;
    const int64_t *sizes;
    size_t n;
} resizing;

static const double *attr_scales(tv_running *r, const tv_node *n, size_t *count)
{
    const tv_attr *a = tv_node_attr(n, "scales");
    if (a && a->kind == TV_ATTR_FLOATS) {
        *count = a->n;
        return a->u.floats;
    }
    /* Operator set 1 */
    double h = tv_node_float(n, "height_scale", 0);
    if (h <= 0)
        return NULL;
    double *v = tv_new(tv_run_arena(r), double, 4);
    v[0] = v[1] = 1;
    v[2] = h;
    v[3] = tv_node_float(n, "width_scale", h);
    *count = 4;
    return v;
}

/* Resize of operator set 10 has scales second, later ones third; an empty operand is none. */
static bool read_resizing(tv_running *r, const tv_node *n, bool upsample, resizing *z)
{
    size_t at = upsample || n->n_inputs == 2 ? 1 : 2;
    uint32_t scales = tv_run_in(r, n, at);
    bool known = true;
    z->n_axes = tv_node_ints(n, "axes", &z->axes);
    z->scales = attr_scales(r, n, &z->n);
    if (z->scales)
        return true;
    z->sizes = upsample ? NULL : tv_opset_ints(r, n, NULL, 3, &z->n, &known);
    if (z->n || !known)
        return known;
    z->scales = tv_run_data(r, scales);
    if (!z->scales)
        return false;
    z->n = (size_t)tv_shape_count(tv_run_shape(r, scales));
    return z->n > 0;
}

/* keep_aspect_ratio_policy: one scale for all axes. */
static double common_scale(const resizing *z, const tv_shape *s, tv_str policy)
{
    bool larger = tv_opset_is(policy, "not_smaller");
    double scale = larger ? 0 : (double)INFINITY;
    for (size_t i = 0; i < z->n; i++) {
        uint32_t at = 0;
        if (!tv_shape_axis(z->n_axes ? z->axes[i] : (int64_t)i, s->rank, &at) || !s->d[at])
            continue;
        double own = (double)z->sizes[i] / (double)s->d[at];
        scale = larger ? fmax(scale, own) : fmin(scale, own);
    }
    return scale;
}

static bool resized(const resizing *z, tv_str policy, tv_shape *s)
{
    bool keeps =
        z->sizes && (tv_opset_is(policy, "not_larger") || tv_opset_is(policy, "not_smaller"));
    double common = keeps ? common_scale(z, s, policy) : 1;
    if (z->n > (z->n_axes ? z->n_axes : s->rank))
        return false;
    for (size_t i = 0; i < z->n; i++) {
        uint32_t at = 0;
        if (!tv_shape_axis(z->n_axes ? z->axes[i] : (int64_t)i, s->rank, &at))
            return false;
        double size = z->scales ? floor((double)s->d[at] * z->scales[i] + 1e-6)
                      : keeps   ? floor((double)s->d[at] * common + 0.5)
                                : (double)z->sizes[i];
        if (!(size >= 0 && size < 1e12))
            return false;
        s->d[at] = (int64_t)size;
    }
    return true;
}

static const tv_err *resize(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = *tv_run_shape(r, x);
    resizing z = {0};
    if (!read_resizing(r, n, rule->arg != 0, &z))
        return tv_opset_guess(r, n, &tv_run_at(r, x)->dtype, &shape, 1);
    if (!resized(&z, tv_node_string(n, "keep_aspect_ratio_policy"), &shape))
        return tv_run_fail_shapes(r, "program.scales", N_("the scales do not fit {x}"),
                                  tv_run_shape(r, x), NULL);
    tv_str mode = tv_node_string(n, "mode");
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_resize(r, !mode.n || tv_opset_is(mode, "nearest"), &shape, x, &y));
    return tv_opset_done(r, n, y);
}

/* Operator set 1: a border [left, top, right, bottom] and a scale. */
static const tv_err *crop(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = *tv_run_shape(r, x);
    const int64_t *border = NULL;
    const int64_t *scale = NULL;
    size_t n_border = tv_node_ints(n, "border", &border);
    size_t n_scale = tv_node_ints(n, "scale", &scale);
    if (shape.rank != 4 || (n_border != 4 && n_scale != 2))
        return tv_run_fail_shapes(r, "program.pads", N_("the padding does not fit {x}"), &shape,
                                  NULL);
    for (uint32_t i = 0; i < 2; i++) {
        int64_t cut = n_border == 4 ? tv_shape_times(1, border[1 - i]) : 0;
        int64_t end = n_border == 4 ? tv_shape_times(1, border[3 - i]) : 0;
        bool sane = cut >= 0 && end >= 0 && cut < shape.d[2 + i] && end < shape.d[2 + i] - cut;
        shape.d[2 + i] = n_scale == 2 ? scale[i] : sane ? shape.d[2 + i] - cut - end : 0;
    }
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &shape, &x, 1, &y));
    return tv_opset_done(r, n, y);
}

static const tv_rule rules[] = {
    {"AffineGrid", affine_grid, 0},
    {"AveragePool", pool, POOL_AVERAGE},
    {"Conv", conv, 0},
    {"ConvInteger", conv_integer, 0},
    {"ConvTranspose", conv_transpose, 0},
    {"Crop", crop, 0},
    {"DeformConv", deform_conv, 0},
    {"GlobalAveragePool", global_pool, POOL_AVERAGE},
    {"GlobalLpPool", global_pool, POOL_AVERAGE},
    {"GlobalMaxPool", global_pool, POOL_MAX},
    {"GridSample", grid_sample, 0},
    {"LpPool", pool, POOL_AVERAGE},
    {"MaxPool", pool, POOL_MAX},
    {"MaxRoiPool", regions, 0},
    {"MaxUnpool", max_unpool, 0},
    {"Resize", resize, 0},
    {"RoiAlign", regions, 0},
    {"Upsample", resize, 1},
};

const tv_rule_table tv_rules_onnx_window = {TV_DIALECT_ONNX, "", rules,
                                            sizeof rules / sizeof *rules};
