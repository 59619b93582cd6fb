/* Networks that a description lists layer by layer ("schema": "trivet.model/1", docs/models.md):
 * convolutions in 1, 2 or 3 dimensions with the blocks that image models are made of.
 * Knows shapes and how layers join. Does not know what an op saves or costs (desc/emit.h). */
#include "cnn.h"

#include <math.h>

#define RUN_STEPS 200000u /* the largest network built in takes 3,000 */
#define RUN_DEPTH 24u     /* nesting of lists; ten is the deepest built in */

static const tv_err *run_list(tv_cnn_run *r, const tv_scope *scope, const tv_json *list,
                              tv_feature *f);

/* ---- joins ---- */

static const tv_err *same_shape(tv_cnn_run *r, const tv_json *j, const tv_feature *x,
                                const tv_feature *y)
{
    if (x->c == y->c && x->d[0] == y->d[0] && x->d[1] == y->d[1] && x->d[2] == y->d[2])
        return NULL;
    return tv_cnn_bad(r, j,
                      TV_TEXT(r->a, "layers.join",
                              N_("two values of different shape cannot be added: {a} and {b} "
                                 "elements"),
                              tv_arg_num("a", TV_ARG_COUNT, tv_cnn_elements(x)),
                              tv_arg_num("b", TV_ARG_COUNT, tv_cnn_elements(y))));
}

static const tv_err *join(tv_cnn_run *r, const tv_json *j, tv_str how, tv_feature *parts, size_t n,
                          tv_feature *f)
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
        if (tv_cnn_positions(&parts[i]) != tv_cnn_positions(&parts[0]))
            return tv_cnn_bad(
                r, j,
                TV_TEXT0("layers.concat", N_("values of different size cannot be concatenated")));
        v[i] = parts[i].v;
        f->c += parts[i].c;
    }
    if (n > 1)
        f->v = tv_emit_concat(r->e, "concat", v, n);
    return NULL;
}

static const tv_err *put_residual(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                  tv_feature *f)
{
    double adds = 1;
    TV_TRY(tv_cnn_value(r, (tv_layer_call){j, scope}, "if", 0, 1, &adds));
    tv_feature side = *f;
    TV_TRY(run_list(r, scope, tv_json_get(j, "body"), f));
    if (adds == 0)
        return NULL;
    TV_TRY(run_list(r, scope, tv_json_get(j, "shortcut"), &side));
    TV_TRY(same_shape(r, j, f, &side));
    f->v = tv_emit_add(r->e, "add", f->v, side.v);
    tv_str act = tv_json_str(tv_json_get(j, "act"));
    return act.n ? tv_cnn_act(r, j, act, f) : NULL;
}

static const tv_err *put_branches(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                  tv_feature *f)
{
    const tv_json *lists = tv_json_get(j, "branches");
    if (lists->type != TV_JSON_ARRAY || !lists->n)
        return tv_cnn_bad(r, j, TV_TEXT0("layers.branches", N_("branches need a list of lists")));
    tv_feature *parts = tv_new(r->a, tv_feature, lists->n);
    for (size_t i = 0; i < lists->n; i++) {
        parts[i] = *f;
        TV_TRY(run_list(r, scope, &lists->items[i], &parts[i]));
    }
    return join(r, j, tv_json_str(tv_json_get(j, "join")), parts, lists->n, f);
}

/* x, then body again and again on the last result; all of them concatenated. With "from" below 1
 * only that share of x's channels goes into the first repetition. */
static const tv_err *put_chain(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                               tv_feature *f)
{
    tv_layer_call c = {j, scope};
    double from = 1, times = 1, keep = 1;
    TV_TRY(tv_cnn_value(r, c, "from", 0, 1, &from));
    TV_TRY(tv_cnn_value(r, c, "repeat", 0, 1, &times));
    TV_TRY(tv_cnn_value(r, c, "keep", 0, 1, &keep));
    if (times < 1 || times > TV_LIMIT_LAYERS || from <= 0 || from > 1)
        return tv_cnn_bad(r, j, TV_TEXT0("layers.repeat", N_("a repetition is out of range")));
    tv_feature *parts = tv_new(r->a, tv_feature, (size_t)times + 1);
    parts[0] = *f;
    tv_feature run = *f;
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
static const tv_err *put_dense(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                               tv_feature *f)
{
    tv_feature parts[2] = {*f, *f};
    TV_TRY(run_list(r, scope, tv_json_get(j, "body"), &parts[1]));
    return join(r, j, TV_S("concat"), parts, 2, f);
}

/* ---- names ---- */

static const tv_err *put_save(tv_cnn_run *r, const tv_scope *scope, const tv_json *j, tv_feature *f)
{
    (void)scope;
    tv_saved *s = tv_new(r->a, tv_saved, 1);
    s->name = tv_json_str(tv_json_get(j, "as"));
    s->f = *f;
    s->next = (tv_saved *)(uintptr_t)r->saved;
    tv_emit_global(r->e, f->v);
    r->saved = s;
    r->n_saved++;
    return NULL;
}

static const tv_err *put_load(tv_cnn_run *r, const tv_scope *scope, const tv_json *j, tv_feature *f)
{
    (void)scope;
    return tv_cnn_saved(r, j, tv_json_get(j, "from"), f);
}

/* "with": the names of saved values, joined behind the current one. */
static const tv_err *put_join_op(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                 tv_feature *f)
{
    (void)scope;
    const tv_json *with = tv_json_get(j, "with");
    size_t n = with->type == TV_JSON_ARRAY ? with->n : 1;
    tv_feature *parts = tv_new(r->a, tv_feature, n + 1);
    parts[0] = *f;
    for (size_t i = 0; i < n; i++)
        TV_TRY(tv_cnn_saved(r, j, with->type == TV_JSON_ARRAY ? &with->items[i] : with,
                            &parts[i + 1]));
    TV_TRY(join(r, j, tv_json_str(tv_json_get(j, "op")), parts, n + 1, f));
    tv_str act = tv_json_str(tv_json_get(j, "act"));
    return act.n ? tv_cnn_act(r, j, act, f) : NULL;
}

/* ---- blocks with arguments ---- */

static const tv_scope *bind(tv_cnn_run *r, const tv_scope *scope, tv_str name, double v)
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
static const tv_err *block_scope(tv_cnn_run *r, tv_layer_call c, const tv_json *block,
                                 size_t repetition, const tv_feature *f, const tv_scope **inner)
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

static const tv_err *repetitions(tv_cnn_run *r, tv_layer_call c, size_t *n)
{
    double times = 1;
    TV_TRY(tv_cnn_value(r, c, "repeat", 0, 1, &times));
    if (!(times >= 0 && times <= TV_LIMIT_LAYERS))
        return tv_cnn_bad(r, c.j, TV_TEXT0("layers.repeat", N_("a repetition is out of range")));
    *n = (size_t)times;
    return NULL;
}

static const tv_json *block_named(const tv_cnn_run *r, tv_str op)
{
    const tv_json *blocks = tv_json_get(r->x->doc, "blocks");
    for (size_t i = 0; blocks->type == TV_JSON_OBJECT && i < blocks->n; i++)
        if (tv_str_eq(blocks->items[i].key, op))
            return &blocks->items[i];
    return NULL;
}

static const tv_err *run_block(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                               const tv_json *block, tv_feature *f)
{
    tv_layer_call c = {j, scope};
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

static const struct {
    const char *name;
    tv_put_layer put;
} ops[] = {
    {"add", put_join_op},    {"branches", put_branches}, {"chain", put_chain},
    {"concat", put_join_op}, {"dense", put_dense},       {"load", put_load},
    {"mul", put_join_op},    {"residual", put_residual}, {"save", put_save},
};

static const tv_err *run_op(tv_cnn_run *r, const tv_scope *scope, const tv_json *j, tv_feature *f)
{
    if (++r->steps > RUN_STEPS)
        return tv_cnn_bad(
            r, j, TV_TEXT0("layers.many", N_("the description unfolds to too many layers")));
    const tv_scope *here = bind(r, scope, TV_S("in"), f->c);
    double when = 1;
    TV_TRY(tv_cnn_value(r, (tv_layer_call){j, here}, "when", 0, 1, &when));
    if (when == 0)
        return NULL;
    tv_str op = tv_json_str(tv_json_get(j, "op"));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tv_str_is(op, ops[i].name))
            return ops[i].put(r, here, j, f);
    tv_put_layer plain = tv_cnn_layer(op);
    if (plain)
        return plain(r, here, j, f);
    const tv_json *block = block_named(r, op);
    if (block)
        return run_block(r, here, j, block, f);
    return tv_cnn_bad(r, j,
                      TV_TEXT(r->a, "layers.op", N_("no layer or block is called {name}"),
                              tv_arg_str("name", op)));
}

static const tv_err *run_list(tv_cnn_run *r, const tv_scope *scope, const tv_json *list,
                              tv_feature *f)
{
    if (list->type == TV_JSON_END || list->type == TV_JSON_NULL)
        return NULL;
    if (list->type != TV_JSON_ARRAY)
        return tv_cnn_bad(r, list, TV_TEXT0("layers.list", N_("layers must be a list")));
    if (++r->depth > RUN_DEPTH)
        return tv_cnn_bad(r, list, TV_TEXT0("layers.deep", N_("layers are nested too deeply")));
    for (size_t i = 0; i < list->n; i++)
        TV_TRY(run_op(r, scope, &list->items[i], f));
    r->depth--;
    return NULL;
}

/* ---- top level: block kinds of the graph ---- */

static tv_stage stage_here(const tv_cnn_run *r)
{
    if (!r->any_body)
        return TV_STAGE_BODY;
    if (r->entry > r->last_body)
        return TV_STAGE_HEAD;
    return r->e->g->n_blocks ? TV_STAGE_BODY : TV_STAGE_EMBED;
}

static void open_kind(tv_cnn_run *r, const char *name, tv_stage stage, tv_feature *f)
{
    tv_val in = tv_emit_block(r->e, name, stage, r->loaded ? tv_no_val : f->v);
    if (!r->loaded)
        f->v = in;
    r->loaded = false;
    r->open = true;
}

static void close_kind(tv_cnn_run *r, tv_feature *f)
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

/* What is saved stays for others: where a save follows, the last repetition is a kind of its own,
 * or the values that the earlier ones hand on would be one storage with the saved one. */
static bool saved_next(const tv_cnn_run *r)
{
    const tv_json *layers = tv_json_get(r->x->doc, "layers");
    return r->entry + 1 < layers->n &&
           tv_str_is(tv_json_str(tv_json_get(&layers->items[r->entry + 1], "op")), "save");
}

/* Repetitions with equal arguments and shapes are one block kind that runs several times. */
static const tv_err *top_block(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                               const tv_json *block, tv_feature *f)
{
    tv_layer_call c = {j, scope};
    const tv_scope *last = NULL;
    tv_feature last_in = {0};
    size_t n = 0;
    bool mergeable = true;
    TV_TRY(repetitions(r, c, &n));
    for (size_t i = 0; i < n; i++) {
        const tv_scope *inner = NULL;
        TV_TRY(block_scope(r, c, block, i, f, &inner));
        bool same = last && mergeable && same_scope(inner, last, scope) && f->c == last_in.c &&
                    f->d[0] == last_in.d[0] && f->d[1] == last_in.d[1] && f->d[2] == last_in.d[2];
        if (same && !(i + 1 == n && saved_next(r))) {
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

static const tv_err *put_loss(tv_cnn_run *r, tv_feature *f)
{
    if (!tv_trains(r->e->set))
        return NULL;
    tv_str kind = tv_json_str(tv_json_get(r->x->doc, "loss"));
    if (tv_str_is(kind, "pointwise"))
        tv_emit_pointwise_loss(r->e, "loss", f->v);
    else
        tv_emit_cross_entropy(r->e, "loss", f->v, f->c, tv_cnn_positions(f));
    return NULL;
}

/* The open kind uses parameters that another head declared. */
static void forget_weights(tv_cnn_run *r)
{
    tv_graph *g = r->e->g;
    const tv_block *b = &g->blocks[r->e->block];
    for (size_t i = b->first_op; i < g->n_ops; i++)
        g->ops[i].n_weights = 0;
    g->n_weights = b->first_weight;
}

/* A head on a saved value (one scale of a detector) with its own loss; the main value goes on. */
static const tv_err *top_head(tv_cnn_run *r, const tv_scope *scope, const tv_json *j, tv_feature *f)
{
    tv_feature from = {0};
    close_kind(r, f);
    TV_TRY(tv_cnn_saved(r, j, tv_json_get(j, "from"), &from));
    tv_feature v = from;
    v.v = tv_emit_block(r->e, "head", TV_STAGE_HEAD, tv_no_val);
    v.v = from.v;
    r->open = true;
    TV_TRY(run_list(r, scope, tv_json_get(j, "layers"), &v));
    if (tv_json_bool(tv_json_get(j, "tied"), false))
        forget_weights(r);
    if (tv_json_bool(tv_json_get(j, "loss"), true))
        TV_TRY(put_loss(r, &v));
    close_kind(r, &v);
    return NULL;
}

static const tv_err *top_entry(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                               tv_feature *f)
{
    tv_str op = tv_json_str(tv_json_get(j, "op"));
    if (tv_str_is(op, "head"))
        return top_head(r, scope, j, f);
    const tv_json *block = block_named(r, op);
    if (block) {
        const tv_scope *here = bind(r, scope, TV_S("in"), f->c);
        double when = 1;
        TV_TRY(tv_cnn_value(r, (tv_layer_call){j, here}, "when", 0, 1, &when));
        close_kind(r, f);
        return when == 0 ? NULL : top_block(r, here, j, block, f);
    }
    if (tv_str_is(op, "load")) {
        close_kind(r, f);
        r->loaded = true;
        return run_op(r, scope, j, f);
    }
    if (!r->open && !tv_str_is(op, "save"))
        open_kind(r, stage_here(r) == TV_STAGE_HEAD ? "head" : "stem", stage_here(r), f);
    return run_op(r, scope, j, f);
}

static void find_body(tv_cnn_run *r, const tv_json *layers)
{
    for (size_t i = 0; i < layers->n; i++)
        if (block_named(r, tv_json_str(tv_json_get(&layers->items[i], "op")))) {
            r->any_body = true;
            r->last_body = i;
        }
}

static const tv_err *run_network(tv_cnn_run *r, tv_feature *f)
{
    const tv_json *layers = tv_json_get(r->x->doc, "layers");
    if (layers->type != TV_JSON_ARRAY)
        return tv_cnn_bad(r, layers, TV_TEXT0("layers.list", N_("layers must be a list")));
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

static void image_size(const tv_cnn_spec *x, const tv_setting *set, double *d)
{
    for (size_t i = 0; i < TV_AXES; i++)
        d[i] = i < x->axes ? x->size[i] : 1;
    if (set->image_h && x->axes >= 2) {
        d[x->axes - 2] = set->image_h;
        d[x->axes - 1] = set->image_w ? set->image_w : set->image_h;
    }
}

static const tv_err *build(tv_arena *a, const tv_model *m, const tv_setting *set, tv_graph **graph)
{
    const tv_cnn_spec *x = m->spec;
    tv_emit e = tv_emit_open(a, set);
    /* the images are there for all: no kind's input that would stand beside them */
    tv_cnn_run r = {.a = a, .e = &e, .x = x, .loaded = true};
    tv_feature f = {.c = x->channels};
    image_size(x, set, f.d);
    f.v = tv_emit_input(&e, "images", tv_cnn_elements(&f), set->policy.stream);
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

static const tv_err *read_input(tv_arena *a, const tv_source *s, tv_cnn_spec *x)
{
    const tv_json *input = tv_json_get(s->config, "input");
    const tv_json *size = tv_json_get(input, "size");
    x->channels = tv_json_num(tv_json_get(input, "channels"), 3);
    x->axes =
        size->type == TV_JSON_ARRAY ? (unsigned)(size->n <= TV_AXES ? size->n : TV_AXES + 1) : 2;
    bool sound = x->axes >= 1 && x->axes <= TV_AXES && x->channels >= 1;
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
    tv_cnn_spec *x = tv_new(a, tv_cnn_spec, 1);
    x->path = s->path;
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
