/* Networks that a description lists layer by layer ("schema": "trivet.model/1", docs/models.md):
 * convolutions in 1, 2 or 3 dimensions with the blocks that image models are made of.
 * Knows shapes and how layers join. Does not know what an op saves or costs (desc/emit.h). */
#include "family.h"
#include "layer_expr.h"
#include "pieces.h"

#include <math.h>

#define AXES 3
#define RUN_STEPS 200000u /* the largest network built in takes 3,000 */
#define RUN_DEPTH 24u     /* nesting of lists; ten is the deepest built in */

/* A value with its shape per sample. */
typedef struct feature {
    tv_val v;
    double c;
    double d[AXES]; /* 1 for axes that are not there */
} feature;

typedef struct saved {
    tv_str name;
    feature f;
    struct saved *next;
} saved;

typedef struct cnn_spec {
    const tv_json *doc;
    const tv_scope *vars;
    double channels;
    double size[AXES];
    unsigned axes;
} cnn_spec;

typedef struct cnn_run {
    tv_arena *a;
    tv_emit *e;
    const cnn_spec *x;
    const saved *saved;
    size_t n_saved;
    unsigned depth;
    unsigned steps;
    bool open;               /* a block kind is being written */
    size_t entry, last_body; /* top-level position, and that of the last block entry */
    bool any_body;
} cnn_run;

typedef struct layer_call {
    const tv_json *j;
    const tv_scope *scope;
} layer_call;

static const tv_err *run_list(cnn_run *r, const tv_scope *scope, const tv_json *list, feature *f);
static const tv_err *run_op(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f);

static double positions(const feature *f)
{
    return f->d[0] * f->d[1] * f->d[2];
}

static double elements(const feature *f)
{
    return f->c * positions(f);
}

static const tv_err *value(cnn_run *r, layer_call c, const char *key, size_t axis, double fallback,
                           double *v)
{
    return tv_layer_value(r->a, c.scope, tv_json_get(c.j, key), axis, fallback, v);
}

static bool says(layer_call c, const char *key)
{
    return tv_json_has(c.j, key);
}

static const char *name_of(cnn_run *r, layer_call c, const char *fallback)
{
    tv_str given = tv_json_str(tv_json_get(c.j, "name"));
    return given.n ? tv_cstr(r->a, given) : fallback;
}

static tv_err *bad(cnn_run *r, const tv_json *j, tv_text what)
{
    tv_err *e = tv_fail(r->a, TV_INPUT, what);
    e->offset = j ? j->offset : 0;
    e->has_offset = j && j->offset > 0;
    return e;
}

/* ---- geometry ---- */

typedef struct window {
    double kernel[AXES], stride[AXES], pad[AXES], dilation[AXES];
    bool same;
    bool ceil;
} window;

static const tv_err *read_window(cnn_run *r, layer_call c, double kernel, double stride, window *w)
{
    w->same = tv_str_is(tv_json_str(tv_json_get(c.j, "pad")), "same");
    w->ceil = tv_json_bool(tv_json_get(c.j, "ceil"), false);
    for (size_t i = 0; i < AXES; i++) {
        w->kernel[i] = w->stride[i] = w->dilation[i] = 1;
        w->pad[i] = 0;
        if (i >= r->x->axes)
            continue;
        TV_TRY(value(r, c, "kernel", i, kernel, &w->kernel[i]));
        TV_TRY(value(r, c, "stride", i, stride, &w->stride[i]));
        TV_TRY(value(r, c, "dilation", i, 1, &w->dilation[i]));
        double centre = floor(w->dilation[i] * (w->kernel[i] - 1) / 2);
        if (!w->same)
            TV_TRY(value(r, c, "pad", i, centre, &w->pad[i]));
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1 || w->pad[i] < 0)
            return bad(r, c.j,
                       TV_TEXT0("layers.window", N_("a kernel, stride, dilation or padding "
                                                    "is out of range")));
    }
    return NULL;
}

static double window_volume(const window *w)
{
    return w->kernel[0] * w->kernel[1] * w->kernel[2];
}

static const tv_err *slide(cnn_run *r, const tv_json *j, const window *w, feature *f)
{
    for (size_t i = 0; i < r->x->axes; i++) {
        double reach = w->dilation[i] * (w->kernel[i] - 1) + 1;
        double room = f->d[i] + 2 * w->pad[i] - reach;
        double steps = w->ceil ? ceil(room / w->stride[i]) : floor(room / w->stride[i]);
        f->d[i] = w->same ? ceil(f->d[i] / w->stride[i]) : steps + 1;
        if (f->d[i] < 1)
            return bad(r, j,
                       TV_TEXT0("layers.small",
                                N_("the image is too small: nothing is left at this layer")));
    }
    return NULL;
}

/* ---- norm and activation, alone or behind another op ---- */

static const tv_err *norm_kind(cnn_run *r, const tv_json *j, tv_str name, tv_norm_kind *kind)
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
    return bad(
        r, j,
        TV_TEXT(r->a, "layers.norm", N_("no norm is called {name}"), tv_arg_str("name", name)));
}

/* ReLU is in place where descriptions do not say otherwise, as in torchvision. */
static const tv_err *act_named(cnn_run *r, const tv_json *j, tv_str name, tv_act *act)
{
    if (tv_str_is(name, "relu")) {
        *act = TV_ACT_RELU_INPLACE;
        return NULL;
    }
    *act = tv_cfg_act(name, TV_ACT_SOFTPLUS);
    if (*act != TV_ACT_SOFTPLUS || tv_str_is(name, "softplus"))
        return NULL;
    return bad(r, j,
               TV_TEXT(r->a, "layers.act", N_("no activation is called {name}"),
                       tv_arg_str("name", name)));
}

static const tv_err *put_norm(cnn_run *r, const tv_json *j, tv_str name, feature *f)
{
    tv_norm_kind kind = TV_NORM_BATCH;
    TV_TRY(norm_kind(r, j, name, &kind));
    f->v = tv_emit_norm(r->e, "norm", kind, f->v, f->c, true, kind != TV_NORM_RMS);
    return NULL;
}

static const tv_err *put_act(cnn_run *r, const tv_json *j, tv_str name, feature *f)
{
    tv_act act = TV_ACT_RELU;
    TV_TRY(act_named(r, j, name, &act));
    f->v = tv_emit_act(r->e, "act", act, f->v);
    return NULL;
}

static const tv_err *put_tail(cnn_run *r, layer_call c, feature *f)
{
    tv_str norm = tv_json_str(tv_json_get(c.j, "norm"));
    tv_str act = tv_json_str(tv_json_get(c.j, "act"));
    if (norm.n)
        TV_TRY(put_norm(r, c.j, norm, f));
    if (act.n)
        TV_TRY(put_act(r, c.j, act, f));
    return NULL;
}

/* ---- plain layers ---- */

static const tv_err *put_conv(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    layer_call c = {j, scope};
    window w = {0};
    double out = 0;
    double groups = 0;
    TV_TRY(read_window(r, c, 1, 1, &w));
    TV_TRY(value(r, c, "out", 0, f->c, &out));
    TV_TRY(value(r, c, "groups", 0, 1, &groups));
    if (out < 1 || groups < 1 || fmod(f->c, groups) != 0 || fmod(out, groups) != 0)
        return bad(r, j,
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
                                   .positions = positions(f),
                                   .bias = bias},
                        f->v);
    return put_tail(r, c, f);
}

static const tv_err *put_deconv(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    layer_call c = {j, scope};
    double out = 0;
    double volume = 1;
    TV_TRY(value(r, c, "out", 0, f->c, &out));
    for (size_t i = 0; i < r->x->axes; i++) {
        double kernel = 0, stride = 0, pad = 0, extra = 0;
        TV_TRY(value(r, c, "kernel", i, 2, &kernel));
        TV_TRY(value(r, c, "stride", i, 2, &stride));
        TV_TRY(value(r, c, "pad", i, 0, &pad));
        TV_TRY(value(r, c, "output_pad", i, 0, &extra));
        f->d[i] = (f->d[i] - 1) * stride - 2 * pad + kernel + extra;
        volume *= kernel;
        if (f->d[i] < 1 || kernel < 1)
            return bad(r, j,
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
                                   .positions = positions(f),
                                   .bias = tv_json_bool(tv_json_get(j, "bias"), !says(c, "norm")),
                                   .transposed = true},
                        f->v);
    return put_tail(r, c, f);
}

static const tv_err *put_pool(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    layer_call c = {j, scope};
    window w = {0};
    bool max = tv_str_is(tv_json_str(tv_json_get(j, "op")), "maxpool");
    double kernel = 2;
    TV_TRY(value(r, c, "kernel", 0, 2, &kernel));
    layer_call pads = c;
    TV_TRY(read_window(r, pads, 2, kernel, &w));
    if (!says(c, "pad"))
        w.pad[0] = w.pad[1] = w.pad[2] = 0;
    TV_TRY(slide(r, j, &w, f));
    f->v = tv_emit_pool(r->e, name_of(r, c, max ? "maxpool" : "avgpool"), max, f->v, elements(f),
                        window_volume(&w));
    return NULL;
}

static const tv_err *put_adaptive_pool(cnn_run *r, const tv_scope *scope, const tv_json *j,
                                       feature *f)
{
    layer_call c = {j, scope};
    double volume = 1;
    for (size_t i = 0; i < r->x->axes; i++) {
        double to = 1;
        TV_TRY(value(r, c, "size", i, 1, &to));
        volume *= fmax(1, ceil(f->d[i] / fmax(1, to)));
        f->d[i] = to;
    }
    f->v = positions(f) > 1
               ? tv_emit_pool(r->e, name_of(r, c, "avgpool"), false, f->v, elements(f), volume)
               : tv_emit_global_pool(r->e, name_of(r, c, "avgpool"), f->v, f->c);
    return NULL;
}

static const saved *find_saved(const cnn_run *r, tv_str name)
{
    for (const saved *s = r->saved; s; s = s->next)
        if (tv_str_eq(s->name, name))
            return s;
    return NULL;
}

static const tv_err *saved_value(cnn_run *r, const tv_json *j, const tv_json *name, feature *f)
{
    const saved *s = find_saved(r, tv_json_str(name));
    if (!s)
        return bad(r, j,
                   TV_TEXT(r->a, "layers.saved", N_("nothing was saved as {name}"),
                           tv_arg_str("name", tv_json_str(name))));
    *f = s->f;
    return NULL;
}

static const tv_err *put_upsample(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    layer_call c = {j, scope};
    feature like = {0};
    if (says(c, "like"))
        TV_TRY(saved_value(r, j, tv_json_get(j, "like"), &like));
    for (size_t i = 0; i < r->x->axes; i++) {
        double scale = 2;
        TV_TRY(value(r, c, "scale", i, 2, &scale));
        double size = floor(f->d[i] * scale);
        TV_TRY(value(r, c, "size", i, size, &size));
        f->d[i] = like.c > 0 ? like.d[i] : fmax(1, size);
    }
    f->v = tv_emit_resize(r->e, name_of(r, c, "upsample"), f->v, elements(f));
    return NULL;
}

static const tv_err *put_linear(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    layer_call c = {j, scope};
    double out = 0;
    TV_TRY(value(r, c, "out", 0, 0, &out));
    if (out < 1)
        return bad(r, j, TV_TEXT0("layers.out", N_("a linear layer says no output width")));
    f->v = tv_emit_linear(r->e,
                          &(tv_linear){.name = name_of(r, c, "linear"),
                                       .in = f->c,
                                       .out = out,
                                       .rows = tv_form_per_batch(positions(f)),
                                       .bias = tv_json_bool(tv_json_get(j, "bias"), true)},
                          f->v);
    f->c = out;
    return put_tail(r, c, f);
}

static const tv_err *put_flatten(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    (void)r;
    (void)scope;
    (void)j;
    f->c = elements(f);
    f->d[0] = f->d[1] = f->d[2] = 1;
    return NULL;
}

static const tv_err *put_norm_op(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    (void)scope;
    tv_str kind = tv_json_str(tv_json_get(j, "kind"));
    TV_TRY(put_norm(r, j, kind.n ? kind : TV_S("batch"), f));
    tv_str act = tv_json_str(tv_json_get(j, "act"));
    return act.n ? put_act(r, j, act, f) : NULL;
}

static const tv_err *put_act_op(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    (void)scope;
    return put_act(r, j, tv_json_str(tv_json_get(j, "act")), f);
}

static const tv_err *put_dropout_op(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    double p = 0;
    TV_TRY(value(r, (layer_call){j, scope}, "p", 0, 0.5, &p));
    f->v = tv_emit_dropout(r->e, "dropout", tv_dropout(r->e->set, p), f->v);
    return NULL;
}

static const tv_err *put_scale(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    (void)scope;
    (void)j;
    f->v = tv_emit_scale(r->e, "layer_scale", f->v, f->c);
    return NULL;
}

/* Numbers that belong to no layer here: a fixed projection, a learned table. */
static const tv_err *put_param(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    layer_call c = {j, scope};
    double n = 0;
    (void)f;
    TV_TRY(value(r, c, "elements", 0, 0, &n));
    if (n < 1 || n > 1e12)
        return bad(r, j, TV_TEXT0("layers.param", N_("param needs a number of elements")));
    tv_emit_weight(r->e, name_of(r, c, "param"), TV_WEIGHT_OTHER, n, 1, 1, TV_SHARD_NONE);
    return NULL;
}

/* Squeeze and excitation: pool, two 1x1 layers, a gate on every channel. */
static const tv_err *put_se(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    layer_call c = {j, scope};
    double squeeze = 0;
    tv_act act = TV_ACT_RELU_INPLACE;
    tv_act gate = TV_ACT_SIGMOID;
    TV_TRY(value(r, c, "squeeze", 0, floor(f->c / 16), &squeeze));
    if (says(c, "act"))
        TV_TRY(act_named(r, j, tv_json_str(tv_json_get(j, "act")), &act));
    if (says(c, "gate"))
        TV_TRY(act_named(r, j, tv_json_str(tv_json_get(j, "gate")), &gate));
    bool bias = tv_json_bool(tv_json_get(j, "bias"), true);
    tv_val s = tv_emit_global_pool(r->e, "se.pool", f->v, f->c);
    tv_conv down = {"se.reduce", f->c, squeeze, 1, 1, 1, bias, false};
    tv_conv up = {"se.expand", squeeze, f->c, 1, 1, 1, bias, false};
    s = tv_emit_act(r->e, "se.act", act, tv_emit_conv(r->e, &down, s));
    s = tv_emit_act(r->e, "se.gate", gate, tv_emit_conv(r->e, &up, s));
    f->v = tv_emit_mul(r->e, "se.scale", f->v, s);
    return NULL;
}

/* ---- joins ---- */

static const tv_err *same_shape(cnn_run *r, const tv_json *j, const feature *x, const feature *y)
{
    if (x->c == y->c && x->d[0] == y->d[0] && x->d[1] == y->d[1] && x->d[2] == y->d[2])
        return NULL;
    return bad(r, j,
               TV_TEXT(r->a, "layers.join",
                       N_("two values of different shape cannot be added: {a} and {b} "
                          "elements"),
                       tv_arg_num("a", TV_ARG_COUNT, elements(x)),
                       tv_arg_num("b", TV_ARG_COUNT, elements(y))));
}

static const tv_err *join(cnn_run *r, const tv_json *j, tv_str how, feature *parts, size_t n,
                          feature *f)
{
    *f = parts[0];
    if (tv_str_is(how, "add") || tv_str_is(how, "mul")) {
        for (size_t i = 1; i < n; i++) {
            bool add = tv_str_is(how, "add");
            if (add)
                TV_TRY(same_shape(r, j, f, &parts[i]));
            f->v = add ? tv_emit_add(r->e, "add", f->v, parts[i].v)
                       : tv_emit_mul(r->e, "mul", f->v, parts[i].v);
        }
        return NULL;
    }
    tv_val *v = tv_new(r->a, tv_val, n);
    f->c = 0;
    for (size_t i = 0; i < n; i++) {
        if (positions(&parts[i]) != positions(&parts[0]))
            return bad(
                r, j,
                TV_TEXT0("layers.concat", N_("values of different size cannot be concatenated")));
        v[i] = parts[i].v;
        f->c += parts[i].c;
    }
    if (n > 1)
        f->v = tv_emit_concat(r->e, "concat", v, n);
    return NULL;
}

static const tv_err *put_residual(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    double adds = 1;
    TV_TRY(value(r, (layer_call){j, scope}, "if", 0, 1, &adds));
    feature side = *f;
    TV_TRY(run_list(r, scope, tv_json_get(j, "body"), f));
    if (adds == 0)
        return NULL;
    TV_TRY(run_list(r, scope, tv_json_get(j, "shortcut"), &side));
    TV_TRY(same_shape(r, j, f, &side));
    f->v = tv_emit_add(r->e, "add", f->v, side.v);
    tv_str act = tv_json_str(tv_json_get(j, "act"));
    return act.n ? put_act(r, j, act, f) : NULL;
}

static const tv_err *put_branches(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    const tv_json *lists = tv_json_get(j, "branches");
    if (lists->type != TV_JSON_ARRAY || !lists->n)
        return bad(r, j, TV_TEXT0("layers.branches", N_("branches need a list of lists")));
    feature *parts = tv_new(r->a, feature, lists->n);
    for (size_t i = 0; i < lists->n; i++) {
        parts[i] = *f;
        TV_TRY(run_list(r, scope, &lists->items[i], &parts[i]));
    }
    return join(r, j, tv_json_str(tv_json_get(j, "join")), parts, lists->n, f);
}

/* x, then body again and again on the last result; all of them concatenated. With "from" below 1
 * only that share of x's channels goes into the first repetition. */
static const tv_err *put_chain(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    layer_call c = {j, scope};
    double from = 1, times = 1, keep = 1;
    TV_TRY(value(r, c, "from", 0, 1, &from));
    TV_TRY(value(r, c, "repeat", 0, 1, &times));
    TV_TRY(value(r, c, "keep", 0, 1, &keep));
    if (times < 1 || times > TV_LIMIT_LAYERS || from <= 0 || from > 1)
        return bad(r, j, TV_TEXT0("layers.repeat", N_("a repetition is out of range")));
    feature *parts = tv_new(r->a, feature, (size_t)times + 1);
    parts[0] = *f;
    feature run = *f;
    run.c = f->c * from;
    run.v = tv_emit_view(f->v, tv_form_scale(f->v.n, from));
    for (size_t i = 0; i < (size_t)times; i++) {
        TV_TRY(run_list(r, scope, tv_json_get(j, "body"), &run));
        parts[i + 1] = run;
    }
    size_t skip = keep == 0 ? 1 : 0;
    return join(r, j, TV_S("concat"), parts + skip, (size_t)times + 1 - skip, f);
}

/* Each repetition sees everything before it (DenseNet): x becomes concat(x, body(x)). */
static const tv_err *put_dense(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    feature parts[2] = {*f, *f};
    TV_TRY(run_list(r, scope, tv_json_get(j, "body"), &parts[1]));
    return join(r, j, TV_S("concat"), parts, 2, f);
}

/* ---- names ---- */

static const tv_err *put_save(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    (void)scope;
    saved *s = tv_new(r->a, saved, 1);
    s->name = tv_json_str(tv_json_get(j, "as"));
    s->f = *f;
    s->next = (saved *)(uintptr_t)r->saved;
    tv_emit_global(r->e, f->v);
    r->saved = s;
    r->n_saved++;
    return NULL;
}

static const tv_err *put_load(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    (void)scope;
    return saved_value(r, j, tv_json_get(j, "from"), f);
}

/* "with": the names of saved values, joined behind the current one. */
static const tv_err *put_join_op(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    (void)scope;
    const tv_json *with = tv_json_get(j, "with");
    size_t n = with->type == TV_JSON_ARRAY ? with->n : 1;
    feature *parts = tv_new(r->a, feature, n + 1);
    parts[0] = *f;
    for (size_t i = 0; i < n; i++)
        TV_TRY(
            saved_value(r, j, with->type == TV_JSON_ARRAY ? &with->items[i] : with, &parts[i + 1]));
    TV_TRY(join(r, j, tv_json_str(tv_json_get(j, "op")), parts, n + 1, f));
    tv_str act = tv_json_str(tv_json_get(j, "act"));
    return act.n ? put_act(r, j, act, f) : NULL;
}

/* ---- blocks with arguments ---- */

static const tv_scope *bind(cnn_run *r, const tv_scope *scope, tv_str name, double v)
{
    tv_scope *s = tv_new(r->a, tv_scope, 1);
    *s = (tv_scope){name, v, scope};
    return s;
}

static bool is_argument(tv_str key)
{
    return !tv_str_is(key, "op") && !tv_str_is(key, "repeat") && !tv_str_is(key, "name") &&
           !tv_str_is(key, "when");
}

/* The scope inside a block: its defaults, then the call's arguments for this repetition. */
static const tv_err *block_scope(cnn_run *r, layer_call c, const tv_json *block, size_t repetition,
                                 const feature *f, const tv_scope **inner)
{
    const tv_scope *s = c.scope;
    const tv_json *defaults = tv_json_get(block, "args");
    for (size_t i = 0; defaults->type == TV_JSON_OBJECT && i < defaults->n; i++) {
        double v = 0;
        TV_TRY(tv_layer_value(r->a, s, &defaults->items[i], 0, 0, &v));
        s = bind(r, s, defaults->items[i].key, v);
    }
    const tv_scope *with_defaults = s;
    for (size_t i = 0; i < c.j->n; i++) {
        double v = 0;
        if (!is_argument(c.j->items[i].key))
            continue;
        TV_TRY(tv_layer_value(r->a, with_defaults, &c.j->items[i], repetition, 0, &v));
        s = bind(r, s, c.j->items[i].key, v);
    }
    s = bind(r, s, TV_S("first"), repetition == 0);
    *inner = bind(r, s, TV_S("cin"), f->c);
    return NULL;
}

static const tv_err *repetitions(cnn_run *r, layer_call c, size_t *n)
{
    double times = 1;
    TV_TRY(value(r, c, "repeat", 0, 1, &times));
    if (!(times >= 0 && times <= TV_LIMIT_LAYERS))
        return bad(r, c.j, TV_TEXT0("layers.repeat", N_("a repetition is out of range")));
    *n = (size_t)times;
    return NULL;
}

static const tv_json *block_named(const cnn_run *r, tv_str op)
{
    const tv_json *blocks = tv_json_get(r->x->doc, "blocks");
    for (size_t i = 0; blocks->type == TV_JSON_OBJECT && i < blocks->n; i++)
        if (tv_str_eq(blocks->items[i].key, op))
            return &blocks->items[i];
    return NULL;
}

static const tv_err *run_block(cnn_run *r, const tv_scope *scope, const tv_json *j,
                               const tv_json *block, feature *f)
{
    layer_call c = {j, scope};
    size_t n = 0;
    TV_TRY(repetitions(r, c, &n));
    for (size_t i = 0; i < n; i++) {
        const tv_scope *inner = NULL;
        TV_TRY(block_scope(r, c, block, i, f, &inner));
        TV_TRY(run_list(r, inner, tv_json_get(block, "layers"), f));
    }
    return NULL;
}

/* ---- dispatch ---- */

typedef const tv_err *(*put_fn)(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f);

static const struct {
    const char *name;
    put_fn put;
} ops[] = {
    {"act", put_act_op},        {"add", put_join_op},
    {"avgpool", put_pool},      {"branches", put_branches},
    {"chain", put_chain},       {"concat", put_join_op},
    {"conv", put_conv},         {"deconv", put_deconv},
    {"dense", put_dense},       {"dropout", put_dropout_op},
    {"flatten", put_flatten},   {"globalpool", put_adaptive_pool},
    {"linear", put_linear},     {"load", put_load},
    {"maxpool", put_pool},      {"mul", put_join_op},
    {"norm", put_norm_op},      {"param", put_param},
    {"residual", put_residual}, {"save", put_save},
    {"scale", put_scale},       {"se", put_se},
    {"upsample", put_upsample},
};

static const tv_err *run_op(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    if (++r->steps > RUN_STEPS)
        return bad(r, j, TV_TEXT0("layers.many", N_("the description unfolds to too many layers")));
    const tv_scope *here = bind(r, scope, TV_S("in"), f->c);
    double when = 1;
    TV_TRY(value(r, (layer_call){j, here}, "when", 0, 1, &when));
    if (when == 0)
        return NULL;
    tv_str op = tv_json_str(tv_json_get(j, "op"));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tv_str_is(op, ops[i].name))
            return ops[i].put(r, here, j, f);
    const tv_json *block = block_named(r, op);
    if (block)
        return run_block(r, here, j, block, f);
    return bad(r, j,
               TV_TEXT(r->a, "layers.op", N_("no layer or block is called {name}"),
                       tv_arg_str("name", op)));
}

static const tv_err *run_list(cnn_run *r, const tv_scope *scope, const tv_json *list, feature *f)
{
    if (list->type == TV_JSON_END || list->type == TV_JSON_NULL)
        return NULL;
    if (list->type != TV_JSON_ARRAY)
        return bad(r, list, TV_TEXT0("layers.list", N_("layers must be a list")));
    if (++r->depth > RUN_DEPTH)
        return bad(r, list, TV_TEXT0("layers.deep", N_("layers are nested too deeply")));
    for (size_t i = 0; i < list->n; i++)
        TV_TRY(run_op(r, scope, &list->items[i], f));
    r->depth--;
    return NULL;
}

/* ---- top level: block kinds of the graph ---- */

static tv_stage stage_here(const cnn_run *r)
{
    if (!r->any_body)
        return TV_STAGE_BODY;
    if (r->entry > r->last_body)
        return TV_STAGE_HEAD;
    return r->e->g->n_blocks ? TV_STAGE_BODY : TV_STAGE_EMBED;
}

static void open_kind(cnn_run *r, const char *name, tv_stage stage, feature *f)
{
    f->v = tv_emit_block(r->e, name, stage, f->v);
    r->open = true;
}

static void close_kind(cnn_run *r, feature *f)
{
    if (!r->open)
        return;
    f->v = tv_emit_end(r->e, f->v);
    tv_emit_runs(r->e, 1);
    r->open = false;
}

static bool same_scope(const tv_scope *x, const tv_scope *y, const tv_scope *end)
{
    while (x && y && x != end && y != end) {
        if (!tv_str_eq(x->name, y->name))
            return false;
        if (x->v != y->v && !tv_str_is(x->name, "first"))
            return false;
        x = x->next;
        y = y->next;
    }
    return true;
}

/* Repetitions with equal arguments and shapes are one block kind that runs several times. */
static const tv_err *top_block(cnn_run *r, const tv_scope *scope, const tv_json *j,
                               const tv_json *block, feature *f)
{
    layer_call c = {j, scope};
    const tv_scope *last = NULL;
    feature last_in = {0};
    size_t n = 0;
    bool mergeable = true;
    TV_TRY(repetitions(r, c, &n));
    for (size_t i = 0; i < n; i++) {
        const tv_scope *inner = NULL;
        TV_TRY(block_scope(r, c, block, i, f, &inner));
        bool same = last && mergeable && same_scope(inner, last, scope) && f->c == last_in.c &&
                    f->d[0] == last_in.d[0] && f->d[1] == last_in.d[1] && f->d[2] == last_in.d[2];
        if (same) {
            tv_emit_runs(r->e, 1);
            continue;
        }
        close_kind(r, f);
        size_t saves = r->n_saved;
        last = inner;
        last_in = *f;
        open_kind(r, tv_cstr(r->a, block->key), TV_STAGE_BODY, f);
        TV_TRY(run_list(r, inner, tv_json_get(block, "layers"), f));
        close_kind(r, f);
        mergeable = saves == r->n_saved;
    }
    return NULL;
}

static const tv_err *put_loss(cnn_run *r, feature *f)
{
    if (!tv_trains(r->e->set))
        return NULL;
    tv_str kind = tv_json_str(tv_json_get(r->x->doc, "loss"));
    if (tv_str_is(kind, "pointwise"))
        tv_emit_pointwise_loss(r->e, "loss", f->v);
    else
        tv_emit_cross_entropy(r->e, "loss", f->v, f->c, positions(f));
    return NULL;
}

/* A head on a saved value (one scale of a detector) with its own loss; the main value goes on. */
static const tv_err *top_head(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    feature from = {0};
    close_kind(r, f);
    TV_TRY(saved_value(r, j, tv_json_get(j, "from"), &from));
    feature v = from;
    v.v = tv_emit_block(r->e, "head", TV_STAGE_HEAD, tv_no_val);
    v.v = from.v;
    r->open = true;
    TV_TRY(run_list(r, scope, tv_json_get(j, "layers"), &v));
    if (tv_json_bool(tv_json_get(j, "loss"), true))
        TV_TRY(put_loss(r, &v));
    close_kind(r, &v);
    return NULL;
}

static const tv_err *top_entry(cnn_run *r, const tv_scope *scope, const tv_json *j, feature *f)
{
    tv_str op = tv_json_str(tv_json_get(j, "op"));
    if (tv_str_is(op, "head"))
        return top_head(r, scope, j, f);
    const tv_json *block = block_named(r, op);
    if (block) {
        const tv_scope *here = bind(r, scope, TV_S("in"), f->c);
        double when = 1;
        TV_TRY(value(r, (layer_call){j, here}, "when", 0, 1, &when));
        close_kind(r, f);
        return when == 0 ? NULL : top_block(r, here, j, block, f);
    }
    if (tv_str_is(op, "load")) {
        close_kind(r, f);
        return run_op(r, scope, j, f);
    }
    if (!r->open && !tv_str_is(op, "save"))
        open_kind(r, stage_here(r) == TV_STAGE_HEAD ? "head" : "stem", stage_here(r), f);
    return run_op(r, scope, j, f);
}

static void find_body(cnn_run *r, const tv_json *layers)
{
    for (size_t i = 0; i < layers->n; i++)
        if (block_named(r, tv_json_str(tv_json_get(&layers->items[i], "op")))) {
            r->any_body = true;
            r->last_body = i;
        }
}

static const tv_err *run_network(cnn_run *r, feature *f)
{
    const tv_json *layers = tv_json_get(r->x->doc, "layers");
    if (layers->type != TV_JSON_ARRAY)
        return bad(r, layers, TV_TEXT0("layers.list", N_("layers must be a list")));
    find_body(r, layers);
    for (r->entry = 0; r->entry < layers->n; r->entry++)
        TV_TRY(top_entry(r, r->x->vars, &layers->items[r->entry], f));
    bool heads = layers->n &&
                 tv_str_is(tv_json_str(tv_json_get(&layers->items[layers->n - 1], "op")), "head");
    if (!heads) {
        if (!r->open)
            open_kind(r, "loss", TV_STAGE_HEAD, f);
        TV_TRY(put_loss(r, f));
    }
    close_kind(r, f);
    return NULL;
}

static void image_size(const cnn_spec *x, const tv_setting *set, double *d)
{
    for (size_t i = 0; i < AXES; i++)
        d[i] = i < x->axes ? x->size[i] : 1;
    if (set->image_h && x->axes >= 2) {
        d[x->axes - 2] = set->image_h;
        d[x->axes - 1] = set->image_w ? set->image_w : set->image_h;
    }
}

static const tv_err *build(tv_arena *a, const tv_model *m, const tv_setting *set, tv_graph **graph)
{
    const cnn_spec *x = m->spec;
    tv_emit e = tv_emit_open(a, set);
    cnn_run r = {.a = a, .e = &e, .x = x};
    feature f = {.c = x->channels};
    image_size(x, set, f.d);
    f.v = tv_emit_input(&e, "images", elements(&f), set->policy.stream);
    const tv_err *err = run_network(&r, &f);
    if (err)
        return tv_while(
            a, err,
            TV_TEXT(a, "layers.while", N_("in the layers of {name}"), tv_arg_str("name", m->name)));
    *graph = tv_emit_close(&e);
    return NULL;
}

/* ---- the model ---- */

static const tv_scope *read_vars(tv_arena *a, const tv_json *vars)
{
    const tv_scope *scope = NULL;
    for (size_t i = 0; vars->type == TV_JSON_OBJECT && i < vars->n; i++) {
        tv_scope *s = tv_new(a, tv_scope, 1);
        *s = (tv_scope){vars->items[i].key, tv_json_num(&vars->items[i], 0), scope};
        scope = s;
    }
    return scope;
}

static const tv_err *read_input(tv_arena *a, const tv_source *s, cnn_spec *x)
{
    const tv_json *input = tv_json_get(s->config, "input");
    const tv_json *size = tv_json_get(input, "size");
    x->channels = tv_json_num(tv_json_get(input, "channels"), 3);
    x->axes = size->type == TV_JSON_ARRAY ? (unsigned)(size->n <= AXES ? size->n : AXES + 1) : 2;
    bool sound = x->axes >= 1 && x->axes <= AXES && x->channels >= 1;
    for (size_t i = 0; sound && i < x->axes; i++) {
        x->size[i] = tv_cfg_at(size, i, 224);
        sound = x->size[i] >= 1 && x->size[i] <= 1e6;
    }
    if (!sound)
        return tv_in_file(TV_FAIL0(a, TV_INPUT, "layers.input",
                                   N_("input needs channels and a size of one to three numbers")),
                          s->path);
    return NULL;
}

static unsigned claims(const tv_source *s)
{
    return s->kind == TV_SOURCE_BUILTIN && tv_json_has(s->config, "layers") ? 95 : 0;
}

static const tv_err *make(tv_arena *a, const tv_source *s, tv_model *m)
{
    cnn_spec *x = tv_new(a, cnn_spec, 1);
    x->doc = s->config;
    x->vars = read_vars(a, tv_json_get(s->config, "vars"));
    TV_TRY(read_input(a, s, x));
    m->spec = x;
    m->build = build;
    m->image_c = (uint32_t)x->channels;
    m->image_h = (uint32_t)(x->axes >= 2 ? x->size[x->axes - 2] : 1);
    m->image_w = (uint32_t)x->size[x->axes - 1];
    m->stored = tv_cfg_dtype(s->config);
    return tv_count_params(a, m, s);
}

const tv_family tv_family_cnn = {
    .name = "cnn",
    .summary = N_("networks described layer by layer: ResNet, YOLO, U-Net and your own"),
    .claims = claims,
    .make = make,
};
