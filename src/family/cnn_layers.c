/* The plain layers of a description: convolutions, pools, norms, linear layers, gates. Knows
 * shapes. How layers join and repeat is in cnn.c; what an op saves or costs is in desc/emit.h. */
#include "cnn.h"

#include <math.h>

double tv_cnn_positions(const tv_feature *f)
{
    return f->d[0] * f->d[1] * f->d[2];
}

double tv_cnn_elements(const tv_feature *f)
{
    return f->c * tv_cnn_positions(f);
}

const tv_err *tv_cnn_value(tv_cnn_run *r, tv_layer_call c, const char *key, size_t axis,
                           double fallback, double *v)
{
    return tv_layer_value(r->a, c.scope, tv_json_get(c.j, key), axis, fallback, v);
}

static bool says(tv_layer_call c, const char *key)
{
    return tv_json_has(c.j, key);
}

static const char *name_of(tv_cnn_run *r, tv_layer_call c, const char *fallback)
{
    tv_str given = tv_json_str(tv_json_get(c.j, "name"));
    return given.n ? tv_cstr(r->a, given) : fallback;
}

tv_err *tv_cnn_bad(tv_cnn_run *r, const tv_json *j, tv_text what)
{
    tv_err *e = tv_fail(r->a, TV_INPUT, what);
    e->offset = j ? j->offset : 0;
    e->has_offset = j && j->offset > 0;
    return r->x->path.n ? tv_in_file(e, r->x->path) : e;
}

/* ---- geometry ---- */

typedef struct window {
    double kernel[TV_AXES], stride[TV_AXES], pad[TV_AXES], dilation[TV_AXES];
    bool same;
    bool ceil;
} window;

static const tv_err *read_window(tv_cnn_run *r, tv_layer_call c, double kernel, double stride,
                                 window *w)
{
    w->same = tv_str_is(tv_json_str(tv_json_get(c.j, "pad")), "same");
    w->ceil = tv_json_bool(tv_json_get(c.j, "ceil"), false);
    for (size_t i = 0; i < TV_AXES; i++) {
        w->kernel[i] = w->stride[i] = w->dilation[i] = 1;
        w->pad[i] = 0;
        if (i >= r->x->axes)
            continue;
        TV_TRY(tv_cnn_value(r, c, "kernel", i, kernel, &w->kernel[i]));
        TV_TRY(tv_cnn_value(r, c, "stride", i, stride, &w->stride[i]));
        TV_TRY(tv_cnn_value(r, c, "dilation", i, 1, &w->dilation[i]));
        double centre = floor(w->dilation[i] * (w->kernel[i] - 1) / 2);
        if (!w->same)
            TV_TRY(tv_cnn_value(r, c, "pad", i, centre, &w->pad[i]));
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1 || w->pad[i] < 0)
            return tv_cnn_bad(r, c.j,
                              TV_TEXT0("layers.window", N_("a kernel, stride, dilation or padding "
                                                           "is out of range")));
    }
    return NULL;
}

static double window_volume(const window *w)
{
    return w->kernel[0] * w->kernel[1] * w->kernel[2];
}

static const tv_err *slide(tv_cnn_run *r, const tv_json *j, const window *w, tv_feature *f)
{
    for (size_t i = 0; i < r->x->axes; i++) {
        double reach = w->dilation[i] * (w->kernel[i] - 1) + 1;
        double room = f->d[i] + 2 * w->pad[i] - reach;
        double steps = w->ceil ? ceil(room / w->stride[i]) : floor(room / w->stride[i]);
        f->d[i] = w->same ? ceil(f->d[i] / w->stride[i]) : steps + 1;
        if (f->d[i] < 1)
            return tv_cnn_bad(
                r, j,
                TV_TEXT0("layers.small",
                         N_("the image is too small: nothing is left at this layer")));
    }
    return NULL;
}

/* ---- norm and activation, alone or behind another op ---- */

static const tv_err *norm_kind(tv_cnn_run *r, const tv_json *j, tv_str name, tv_norm_kind *kind)
{
    static const struct {
        const char *name;
        tv_norm_kind kind;
    } kinds[] = {
        {"batch", TV_NORM_BATCH}, {"frozen", TV_NORM_BATCH_FROZEN}, {"group", TV_NORM_GROUP},
        {"layer", TV_NORM_LAYER}, {"instance", TV_NORM_GROUP},      {"rms", TV_NORM_RMS},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (tv_str_is(name, kinds[i].name)) {
            *kind = kinds[i].kind;
            return NULL;
        }
    return tv_cnn_bad(
        r, j,
        TV_TEXT(r->a, "layers.norm", N_("no norm is called {name}"), tv_arg_str("name", name)));
}

/* ReLU and leaky ReLU write over their input, as torchvision and nnU-Net have them. */
static const tv_err *act_named(tv_cnn_run *r, const tv_json *j, tv_str name, tv_act *act)
{
    if (tv_str_is(name, "relu") || tv_str_is(name, "leaky_relu")) {
        *act = tv_str_is(name, "relu") ? TV_ACT_RELU_INPLACE : TV_ACT_LEAKY_RELU_INPLACE;
        return NULL;
    }
    *act = tv_cfg_act(name, TV_ACT_SOFTPLUS);
    if (*act != TV_ACT_SOFTPLUS || tv_str_is(name, "softplus"))
        return NULL;
    return tv_cnn_bad(r, j,
                      TV_TEXT(r->a, "layers.act", N_("no activation is called {name}"),
                              tv_arg_str("name", name)));
}

static const tv_err *put_norm(tv_cnn_run *r, const tv_json *j, tv_str name, tv_feature *f)
{
    tv_norm_kind kind = TV_NORM_BATCH;
    TV_TRY(norm_kind(r, j, name, &kind));
    f->v = tv_emit_norm(r->e, "norm", kind, f->v, f->c, true, kind != TV_NORM_RMS);
    return NULL;
}

const tv_err *tv_cnn_act(tv_cnn_run *r, const tv_json *j, tv_str name, tv_feature *f)
{
    tv_act act = TV_ACT_RELU;
    TV_TRY(act_named(r, j, name, &act));
    f->v = tv_emit_act(r->e, "act", act, f->v);
    return NULL;
}

static const tv_err *put_tail(tv_cnn_run *r, tv_layer_call c, tv_feature *f)
{
    tv_str norm = tv_json_str(tv_json_get(c.j, "norm"));
    tv_str act = tv_json_str(tv_json_get(c.j, "act"));
    if (norm.n)
        TV_TRY(put_norm(r, c.j, norm, f));
    if (act.n)
        TV_TRY(tv_cnn_act(r, c.j, act, f));
    return NULL;
}

/* ---- plain layers ---- */

static const tv_err *put_conv(tv_cnn_run *r, const tv_scope *scope, const tv_json *j, tv_feature *f)
{
    tv_layer_call c = {j, scope};
    window w = {0};
    double out = 0;
    double groups = 0;
    TV_TRY(read_window(r, c, 1, 1, &w));
    TV_TRY(tv_cnn_value(r, c, "out", 0, f->c, &out));
    TV_TRY(tv_cnn_value(r, c, "groups", 0, 1, &groups));
    if (out < 1 || groups < 1 || fmod(f->c, groups) != 0 || fmod(out, groups) != 0)
        return tv_cnn_bad(r, j,
                          TV_TEXT(r->a, "layers.channels",
                                  N_("a convolution from {in} to {out} channels in {groups} groups "
                                     "does not divide"),
                                  tv_arg_num("in", TV_ARG_NUMBER, f->c),
                                  tv_arg_num("out", TV_ARG_NUMBER, out),
                                  tv_arg_num("groups", TV_ARG_NUMBER, groups)));
    double in = f->c;
    TV_TRY(slide(r, j, &w, f));
    f->c = out;
    bool bias = tv_json_bool(tv_json_get(j, "bias"), !says(c, "norm"));
    f->v = tv_emit_conv(r->e,
                        &(tv_conv){.name = name_of(r, c, "conv"),
                                   .in = in,
                                   .out = out,
                                   .kernel = window_volume(&w),
                                   .groups = groups,
                                   .positions = tv_cnn_positions(f),
                                   .bias = bias},
                        f->v);
    return put_tail(r, c, f);
}

static const tv_err *put_deconv(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                tv_feature *f)
{
    tv_layer_call c = {j, scope};
    double out = 0;
    double volume = 1;
    TV_TRY(tv_cnn_value(r, c, "out", 0, f->c, &out));
    for (size_t i = 0; i < r->x->axes; i++) {
        double kernel = 0, stride = 0, pad = 0, extra = 0;
        TV_TRY(tv_cnn_value(r, c, "kernel", i, 2, &kernel));
        TV_TRY(tv_cnn_value(r, c, "stride", i, 2, &stride));
        TV_TRY(tv_cnn_value(r, c, "pad", i, 0, &pad));
        TV_TRY(tv_cnn_value(r, c, "output_pad", i, 0, &extra));
        f->d[i] = (f->d[i] - 1) * stride - 2 * pad + kernel + extra;
        volume *= kernel;
        if (f->d[i] < 1 || kernel < 1)
            return tv_cnn_bad(r, j,
                              TV_TEXT0("layers.small", N_("the image is too small: nothing is left "
                                                          "at this layer")));
    }
    double in = f->c;
    f->c = out;
    f->v = tv_emit_conv(r->e,
                        &(tv_conv){.name = name_of(r, c, "deconv"),
                                   .in = in,
                                   .out = out,
                                   .kernel = volume,
                                   .groups = 1,
                                   .positions = tv_cnn_positions(f),
                                   .bias = tv_json_bool(tv_json_get(j, "bias"), !says(c, "norm")),
                                   .transposed = true},
                        f->v);
    return put_tail(r, c, f);
}

static const tv_err *put_pool(tv_cnn_run *r, const tv_scope *scope, const tv_json *j, tv_feature *f)
{
    tv_layer_call c = {j, scope};
    window w = {0};
    bool max = tv_str_is(tv_json_str(tv_json_get(j, "op")), "maxpool");
    double kernel = 2;
    TV_TRY(tv_cnn_value(r, c, "kernel", 0, 2, &kernel));
    tv_layer_call pads = c;
    TV_TRY(read_window(r, pads, 2, kernel, &w));
    if (!says(c, "pad"))
        w.pad[0] = w.pad[1] = w.pad[2] = 0;
    TV_TRY(slide(r, j, &w, f));
    f->v = tv_emit_pool(r->e, name_of(r, c, max ? "maxpool" : "avgpool"), max, f->v,
                        tv_cnn_elements(f), window_volume(&w));
    return NULL;
}

static const tv_err *put_adaptive_pool(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                       tv_feature *f)
{
    tv_layer_call c = {j, scope};
    double volume = 1;
    for (size_t i = 0; i < r->x->axes; i++) {
        double to = 1;
        TV_TRY(tv_cnn_value(r, c, "size", i, 1, &to));
        volume *= fmax(1, ceil(f->d[i] / fmax(1, to)));
        f->d[i] = to;
    }
    f->v =
        tv_cnn_positions(f) > 1
            ? tv_emit_pool(r->e, name_of(r, c, "avgpool"), false, f->v, tv_cnn_elements(f), volume)
            : tv_emit_global_pool(r->e, name_of(r, c, "avgpool"), f->v, f->c);
    return NULL;
}

static const tv_saved *find_saved(const tv_cnn_run *r, tv_str name)
{
    for (const tv_saved *s = r->saved; s; s = s->next)
        if (tv_str_eq(s->name, name))
            return s;
    return NULL;
}

const tv_err *tv_cnn_saved(tv_cnn_run *r, const tv_json *j, const tv_json *name, tv_feature *f)
{
    const tv_saved *s = find_saved(r, tv_json_str(name));
    if (!s)
        return tv_cnn_bad(r, j,
                          TV_TEXT(r->a, "layers.saved", N_("nothing was saved as {name}"),
                                  tv_arg_str("name", tv_json_str(name))));
    *f = s->f;
    return NULL;
}

static const tv_err *put_upsample(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                  tv_feature *f)
{
    tv_layer_call c = {j, scope};
    tv_feature like = {0};
    if (says(c, "like"))
        TV_TRY(tv_cnn_saved(r, j, tv_json_get(j, "like"), &like));
    for (size_t i = 0; i < r->x->axes; i++) {
        double scale = 2;
        TV_TRY(tv_cnn_value(r, c, "scale", i, 2, &scale));
        double size = floor(f->d[i] * scale);
        TV_TRY(tv_cnn_value(r, c, "size", i, size, &size));
        f->d[i] = like.c > 0 ? like.d[i] : fmax(1, size);
    }
    f->v = tv_emit_resize(r->e, name_of(r, c, "upsample"), f->v, tv_cnn_elements(f));
    return NULL;
}

static const tv_err *put_linear(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                tv_feature *f)
{
    tv_layer_call c = {j, scope};
    double out = 0;
    TV_TRY(tv_cnn_value(r, c, "out", 0, 0, &out));
    if (out < 1)
        return tv_cnn_bad(r, j, TV_TEXT0("layers.out", N_("a linear layer says no output width")));
    f->v = tv_emit_linear(r->e,
                          &(tv_linear){.name = name_of(r, c, "linear"),
                                       .in = f->c,
                                       .out = out,
                                       .rows = tv_form_per_batch(tv_cnn_positions(f)),
                                       .bias = tv_json_bool(tv_json_get(j, "bias"), true)},
                          f->v);
    f->c = out;
    return put_tail(r, c, f);
}

/* To one row a sample, or to "rows" of them (regions of an image). */
static const tv_err *put_flatten(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                 tv_feature *f)
{
    double rows = 1;
    TV_TRY(tv_cnn_value(r, (tv_layer_call){j, scope}, "rows", 0, 1, &rows));
    if (rows < 1)
        return tv_cnn_bad(r, j, TV_TEXT0("layers.rows", N_("flatten needs at least one row")));
    f->c = tv_cnn_elements(f) / rows;
    f->d[0] = rows;
    f->d[1] = f->d[2] = 1;
    return NULL;
}

/* Regions cut out of a map and resized; backward needs their coordinates only. */
static const tv_err *put_regions(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                 tv_feature *f)
{
    tv_layer_call c = {j, scope};
    double count = 0, size = 0;
    TV_TRY(tv_cnn_value(r, c, "count", 0, 512, &count));
    TV_TRY(tv_cnn_value(r, c, "size", 0, 7, &size));
    if (count < 1 || size < 1 || r->x->axes != 2)
        return tv_cnn_bad(
            r, j, TV_TEXT0("layers.regions", N_("regions need a count, a size and an image")));
    f->d[0] = count * size;
    f->d[1] = size;
    f->v = tv_emit_resize(r->e, name_of(r, c, "regions"), f->v, tv_cnn_elements(f));
    return NULL;
}

/* From here on parameters are not trained ("on": 1), or are again (0). */
static const tv_err *put_freeze(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                tv_feature *f)
{
    double on = 1;
    (void)f;
    TV_TRY(tv_cnn_value(r, (tv_layer_call){j, scope}, "on", 0, 1, &on));
    r->e->frozen = on != 0;
    return NULL;
}

static const tv_err *put_norm_op(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                 tv_feature *f)
{
    (void)scope;
    tv_str kind = tv_json_str(tv_json_get(j, "kind"));
    TV_TRY(put_norm(r, j, kind.n ? kind : TV_S("batch"), f));
    tv_str act = tv_json_str(tv_json_get(j, "act"));
    return act.n ? tv_cnn_act(r, j, act, f) : NULL;
}

static const tv_err *put_act_op(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                tv_feature *f)
{
    (void)scope;
    return tv_cnn_act(r, j, tv_json_str(tv_json_get(j, "act")), f);
}

static const tv_err *put_dropout_op(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                    tv_feature *f)
{
    double p = 0;
    TV_TRY(tv_cnn_value(r, (tv_layer_call){j, scope}, "p", 0, 0.5, &p));
    f->v = tv_emit_dropout(r->e, "dropout", tv_dropout(r->e->set, p), f->v);
    return NULL;
}

static const tv_err *put_scale(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                               tv_feature *f)
{
    (void)scope;
    (void)j;
    f->v = tv_emit_scale(r->e, "layer_scale", f->v, f->c);
    return NULL;
}

/* Numbers that belong to no layer here: a fixed projection, a learned table. */
static const tv_err *put_param(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                               tv_feature *f)
{
    tv_layer_call c = {j, scope};
    double n = 0;
    (void)f;
    TV_TRY(tv_cnn_value(r, c, "elements", 0, 0, &n));
    if (n < 1 || n > 1e12)
        return tv_cnn_bad(r, j, TV_TEXT0("layers.param", N_("param needs a number of elements")));
    tv_emit_weight(r->e, name_of(r, c, "param"), TV_WEIGHT_OTHER, n, 1, 1, TV_SHARD_NONE);
    return NULL;
}

/* Squeeze and excitation: pool, two 1x1 layers, a gate on every channel. */
static const tv_err *put_se(tv_cnn_run *r, const tv_scope *scope, const tv_json *j, tv_feature *f)
{
    tv_layer_call c = {j, scope};
    double squeeze = 0;
    tv_act act = TV_ACT_RELU_INPLACE;
    tv_act gate = TV_ACT_SIGMOID;
    TV_TRY(tv_cnn_value(r, c, "squeeze", 0, floor(f->c / 16), &squeeze));
    if (says(c, "act"))
        TV_TRY(act_named(r, j, tv_json_str(tv_json_get(j, "act")), &act));
    if (says(c, "gate"))
        TV_TRY(act_named(r, j, tv_json_str(tv_json_get(j, "gate")), &gate));
    bool bias = tv_json_bool(tv_json_get(j, "bias"), true);
    tv_val s = tv_emit_global_pool(r->e, "se.pool", f->v, f->c);
    tv_conv down = {
        .name = "se.reduce", .in = f->c, .out = squeeze, .kernel = 1, .positions = 1, .bias = bias};
    tv_conv up = {
        .name = "se.expand", .in = squeeze, .out = f->c, .kernel = 1, .positions = 1, .bias = bias};
    s = tv_emit_act(r->e, "se.act", act, tv_emit_conv(r->e, &down, s));
    s = tv_emit_act(r->e, "se.gate", gate, tv_emit_conv(r->e, &up, s));
    f->v = tv_emit_mul(r->e, "se.scale", f->v, s);
    return NULL;
}

static const struct {
    const char *name;
    tv_put_layer put;
} ops[] = {
    {"act", put_act_op},      {"attention", tv_cnn_attention}, {"avgpool", put_pool},
    {"conv", put_conv},       {"deconv", put_deconv},          {"dropout", put_dropout_op},
    {"flatten", put_flatten}, {"freeze", put_freeze},          {"globalpool", put_adaptive_pool},
    {"linear", put_linear},   {"maxpool", put_pool},           {"norm", put_norm_op},
    {"param", put_param},     {"regions", put_regions},        {"scale", put_scale},
    {"se", put_se},           {"table", tv_cnn_table},         {"upsample", put_upsample},
};

tv_put_layer tv_cnn_layer(tv_str op)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tv_str_is(op, ops[i].name))
            return ops[i].put;
    return NULL;
}
