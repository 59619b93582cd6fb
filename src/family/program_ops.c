/* Items onto the open block: operands become values, shapes become forms, and the emitter's rules
 * say what is kept. Knows step kinds; does not know which dialect they came from. */
#include "program_lower.h"

#include <math.h>

/* ---- quantities as forms ---- */

static double elements_at(const tv_run *r, uint32_t v)
{
    return v == TV_NO_VALUE ? 0 : tv_shape_elements(&r->values[v].shape);
}

tv_form tv_lower_fit(const tv_lower *l, uint32_t step, tv_quantity of)
{
    double q[TV_TRIALS] = {0};
    for (size_t i = 0; i < l->t->n; i++)
        q[i] = of(l->t->run[i], &l->t->run[i]->steps[step]);
    return tv_trials_fit(l->t, q);
}

static double q_rows(const tv_run *r, const tv_step *s)
{
    (void)r;
    return s->u.matmul.groups * (s->u.matmul.weight_left ? s->u.matmul.n : s->u.matmul.m);
}

static double q_groups(const tv_run *r, const tv_step *s)
{
    (void)r;
    return s->u.matmul.groups;
}

static double q_m(const tv_run *r, const tv_step *s)
{
    (void)r;
    return s->u.matmul.m;
}

static double q_matmul_flop(const tv_run *r, const tv_step *s)
{
    (void)r;
    return 2 * s->u.matmul.groups * s->u.matmul.m * s->u.matmul.n * s->u.matmul.k;
}

static double q_conv_rows(const tv_run *r, const tv_step *s)
{
    return s->n_out ? elements_at(r, s->out[0]) / fmax(1, s->u.conv.out_channels) : 0;
}

static double q_norm_rows(const tv_run *r, const tv_step *s)
{
    (void)r;
    return s->u.norm.rows;
}

static double q_in_elements(const tv_run *r, const tv_step *s)
{
    double n = 0;
    for (size_t i = 0; i < s->n_in; i++)
        n = fmax(n, elements_at(r, s->in[i]));
    return n;
}

static double q_rnn_rows(const tv_run *r, const tv_step *s)
{
    (void)r;
    return s->u.rnn.steps * s->u.rnn.batch;
}

static tv_form elements(const tv_lower *l, uint32_t v)
{
    return tv_trials_elements(l->t, v);
}

/* ---- names and weights ---- */

static const char *param_name(const tv_lower *l, uint32_t v, const char *fallback)
{
    const uint32_t p = v == TV_NO_VALUE ? TV_NO_VALUE : l->param_of[v];
    return p == TV_NO_VALUE || !l->param[p].name.n ? fallback : tv_cstr(l->keep, l->param[p].name);
}

static tv_lowered_param *param_of(const tv_lower *l, uint32_t v)
{
    const uint32_t p = v == TV_NO_VALUE ? TV_NO_VALUE : l->param_of[v];
    return p == TV_NO_VALUE || !l->param[p].parameter ? NULL : &l->param[p];
}

/* True the first time: the op declares it. */
static bool declares(const tv_lower *l, uint32_t v)
{
    tv_lowered_param *p = param_of(l, v);
    if (!p || p->declared)
        return false;
    p->declared = true;
    return true;
}

static bool is_frozen(const tv_lower *l, uint32_t v)
{
    const tv_lowered_param *p = param_of(l, v);
    return p && p->from && p->from->frozen;
}

/* What an item's ops declared gets the file's names and, where the job takes the file's types, its
 * bytes. */
static void settle_weights(tv_lower *l, uint32_t first, const uint32_t *of, size_t n)
{
    tv_graph *g = l->e->g;
    const bool stored = l->set->policy.precision == TV_PRECISION_AS_STORED;
    size_t k = 0;
    for (uint32_t i = first; i < g->n_weights && k < n; i++) {
        tv_weight *w = &g->weights[i];
        if (w->role == TV_WEIGHT_ADAPTER)
            continue;
        tv_lowered_param *p = param_of(l, of[k]);
        if (p)
            p->weight = i + 1;
        w->name = param_name(l, of[k], w->name);
        w->stored = p && p->from ? p->from->dtype : TV_DTYPE_UNKNOWN;
        const bool packed = w->stored && !tv_dtype_of(w->stored)->is_float;
        if (p && !w->trainable && stored && packed) {
            w->dtype = w->stored;
            w->bytes = p->stored_bytes;
        }
        k++;
    }
}

/* ---- dtypes ---- */

static tv_dtype result_dtype(const tv_lower *l, uint32_t v, const tv_val *in, size_t n)
{
    const tv_dtype own = l->run->values[v].dtype;
    if (own != TV_DTYPE_UNKNOWN && (l->recorded || !tv_dtype_of(own)->is_float))
        return own;
    tv_dtype best = TV_DTYPE_UNKNOWN;
    for (size_t i = 0; i < n; i++)
        if (in[i].storage != TV_NONE && tv_dtype_of(in[i].dtype)->is_float &&
            tv_dtype_bytes(in[i].dtype) > tv_dtype_bytes(best))
            best = in[i].dtype;
    return best ? best : l->set->policy.stream;
}

static bool floats(const tv_lower *l, uint32_t v)
{
    const tv_dtype t = l->run->values[v].dtype;
    return t == TV_DTYPE_UNKNOWN || tv_dtype_of(t)->is_float;
}

/* ---- generic ops ---- */

/* A recurrent layer of several levels and directions has its weights and biases one by one. */
enum { most_operands = 64, most_params = 64 };

typedef struct operands {
    tv_val in[most_operands];
    size_t n;
    tv_param params[most_params];
    uint32_t declared[most_params];
    size_t n_params;
} operands;

static void gather_operands(const tv_lower *l, const tv_item *t, operands *o)
{
    o->n = t->n_in < most_operands ? t->n_in : most_operands;
    for (size_t i = 0; i < o->n; i++) {
        const uint32_t v = t->in[i];
        o->in[i] = tv_lower_operand(l, v);
        const tv_lowered_param *p = param_of(l, v);
        if (!p || o->n_params == most_params)
            continue;
        o->in[i].grad = !p->from || !p->from->frozen;
        if (!declares(l, v))
            continue;
        const tv_shape *s = &l->run->values[v].shape;
        const double cols = s->rank > 1 ? (double)s->d[s->rank - 1] : 1;
        o->declared[o->n_params] = v;
        o->params[o->n_params++] = (tv_param){.name = param_name(l, v, "parameter"),
                                              .role = TV_WEIGHT_OTHER,
                                              .rows = p->elements / fmax(1, cols),
                                              .cols = fmax(1, cols)};
    }
}

/* Operands that are parameters count as needing a gradient only where they train. */
static bool trains(const tv_lower *l)
{
    return l->set->phase == TV_PHASE_TRAIN && l->set->trainable == TV_TRAIN_ALL && !l->e->frozen;
}

static bool needs_grad(const tv_lower *l, const operands *o, size_t i)
{
    if (i >= o->n || !o->in[i].grad)
        return false;
    return o->in[i].storage != TV_NONE || trains(l);
}

typedef struct generic {
    tv_op_kind kind;
    const char *what;
    uint32_t saves_in;
    bool saves_out, constant;
    tv_form saves_bytes, flop;
    int launches, backward_launches;
} generic;

static void put_generic(tv_lower *l, const tv_item *t, const generic *g, operands *o)
{
    const uint32_t first = (uint32_t)l->e->g->n_weights;
    bool flows = false;
    for (size_t i = 0; i < o->n; i++) {
        flows = flows || needs_grad(l, o, i);
        if (o->in[i].storage == TV_NONE)
            o->in[i].grad = needs_grad(l, o, i);
    }
    for (size_t k = 0; k < t->n_out; k++) {
        const uint32_t v = t->out[k];
        if (v == TV_NO_VALUE)
            continue;
        const tv_foreign f = {
            .kind = g->kind,
            .name = t->name,
            .what = g->what,
            .in = o->in,
            .n_in = o->n,
            .saves_in = k == 0 ? g->saves_in : 0,
            .saves_out = g->saves_out && k == 0,
            .saves_bytes = k == 0 ? g->saves_bytes : (tv_form){0},
            .n = elements(l, v),
            .dtype = result_dtype(l, v, o->in, o->n),
            .flop = k == 0 ? g->flop : (tv_form){0},
            .constant = g->constant || !flows || !floats(l, v),
            .in_place = t->in_place,
            .params = k == 0 ? o->params : NULL,
            .n_params = k == 0 ? o->n_params : 0,
            .launches = g->launches,
            .backward_launches = g->backward_launches,
        };
        tv_lower_result(l, v, tv_emit_foreign(l->e, &f));
    }
    settle_weights(l, first, o->declared, o->n_params);
}

static void put_plain(tv_lower *l, const tv_item *t, generic g)
{
    operands o = {0};
    gather_operands(l, t, &o);
    put_generic(l, t, &g, &o);
}

static uint32_t every_operand(const tv_item *t)
{
    return t->n_in >= 31 ? 0x7fffffff : (1u << t->n_in) - 1;
}

/* ---- functions ---- */

static void put_act(tv_lower *l, const tv_item *t, tv_act act)
{
    const tv_val x = tv_lower_operand(l, t->in[0]);
    tv_lower_result(l, t->out[0], tv_emit_act(l->e, t->name, act, x));
}

/* The form of an activation that writes over its input, or the one that does not. */
static tv_act over_input(tv_act act, bool in_place)
{
    if (act == TV_ACT_RELU || act == TV_ACT_RELU_INPLACE)
        return in_place ? TV_ACT_RELU_INPLACE : TV_ACT_RELU;
    return act == TV_ACT_LEAKY_RELU && in_place ? TV_ACT_LEAKY_RELU_INPLACE : act;
}

static void put_unary(tv_lower *l, const tv_item *t, const tv_step *s)
{
    const tv_form n = elements(l, t->out[0]);
    if (s->u.unary.is_act && floats(l, t->out[0])) {
        put_act(l, t, over_input(s->u.unary.act, t->in_place));
        return;
    }
    const tv_keeps keeps = s->u.unary.keeps;
    const bool both = keeps == TV_KEEPS_BOTH;
    put_plain(l, t,
              (generic){
                  .kind = TV_OP_ELEMENTWISE,
                  .what = "function's output",
                  .saves_in = both || keeps == TV_KEEPS_INPUT ? 1 : 0,
                  .saves_out = both || keeps == TV_KEEPS_OUTPUT,
                  .saves_bytes = keeps == TV_KEEPS_MASK ? n : (tv_form){0},
                  .flop = tv_form_scale(n, fmax(1, s->u.unary.flop_per_element)),
              });
}

static void put_binary(tv_lower *l, const tv_item *t, const tv_step *s)
{
    operands o = {0};
    gather_operands(l, t, &o);
    const bool x = needs_grad(l, &o, 0), y = needs_grad(l, &o, 1);
    generic g = {
        .kind = TV_OP_ELEMENTWISE,
        .what = s->u.binary.product ? "product" : "sum",
        .flop = elements(l, t->out[0]),
        .constant = s->u.binary.compare,
        .backward_launches = s->u.binary.product && x && y ? 2 : 1,
    };
    if (s->u.binary.product)
        g.saves_in = (y ? 1u : 0) | (x ? 2u : 0);
    else if (s->u.binary.division)
        g.saves_in = (y ? 1u : 0) | (x || y ? 2u : 0);
    else if (s->u.binary.select)
        g.saves_in = s->u.binary.fn == TV_FN2_COUNT ? 1 : 3;
    else if (s->u.binary.fn == TV_FN2_PRELU || s->u.binary.fn == TV_FN2_POW ||
             s->u.binary.fn == TV_FN2_ATAN2)
        g.saves_in = 3;
    put_generic(l, t, &g, &o);
}

/* ---- products ---- */

/* Rows of a table that tokens are looked up in: what a head puts out. */
static bool is_vocabulary(const tv_lower *l, double n)
{
    for (size_t i = 0; i < l->items.n; i++) {
        const tv_item *t = &l->items.v[i];
        const tv_step *s = tv_lower_step(l, t->step);
        if (t->kind != TV_ITEM_STEP || s->kind != TV_STEP_GATHER || !param_of(l, t->in[0]))
            continue;
        const tv_shape *shape = &l->run->values[t->in[0]].shape;
        if (shape->rank == 2 && !(fabs((double)shape->d[0] - n) > 0) && n > 1024)
            return true;
    }
    return false;
}

static bool is_head(const tv_lower *l, const tv_item *t, double out)
{
    const tv_segment *s = &l->segments.v[t->segment];
    return s->stage == TV_STAGE_HEAD && l->run->has_seq && is_vocabulary(l, out);
}

static const char *dotted(const tv_lower *l, tv_str path)
{
    char *copy = tv_new(l->a, char, path.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] != '/' || n > 0)
            copy[n++] = path.p[i] == '/' ? '.' : path.p[i];
    return copy;
}

static void put_linear(tv_lower *l, const tv_item *t, const tv_step *s)
{
    const bool left = s->u.matmul.weight_left;
    const uint32_t w = t->in[left ? 0 : 1], x = t->in[left ? 1 : 0];
    const uint32_t bias = s->u.matmul.bias && t->n_in > 2 ? t->in[2] : t->bias;
    const double out = left ? s->u.matmul.m : s->u.matmul.n;
    const bool has_bias = bias != TV_NO_VALUE;
    const uint32_t first = (uint32_t)l->e->g->n_weights;
    const bool owns = declares(l, w), owns_bias = has_bias && declares(l, bias);
    tv_val v = tv_lower_operand(l, x);
    if (t->copies_in)
        v = tv_emit_contiguous(l->e, t->name, v);
    l->e->frozen = is_frozen(l, w);
    const bool head = is_head(l, t, out);
    l->e->role = head ? TV_WEIGHT_HEAD : TV_WEIGHT_MATRIX;
    const tv_linear linear = {
        .name = t->name,
        .in = s->u.matmul.k,
        .out = out,
        .rows = tv_lower_fit(l, t->step, q_rows),
        .bias = has_bias,
        .tied = !owns,
        .tied_bias = !owns_bias,
        .no_adapter = head,
        .no_quant = head,
        .path = dotted(l, t->path),
    };
    v = tv_emit_linear(l->e, &linear, v);
    l->e->frozen = false;
    const uint32_t of[2] = {owns ? w : bias, bias};
    settle_weights(l, first, of, (owns ? 1u : 0) + (owns_bias ? 1u : 0));
    tv_lower_result(l, t->out[0], v);
}

static void put_matmul(tv_lower *l, const tv_item *t, const tv_step *s)
{
    const size_t wi = s->u.matmul.weight_left ? 0 : 1;
    const tv_lowered_param *p = t->n_in > wi ? param_of(l, t->in[wi]) : NULL;
    const double one =
        s->u.matmul.weight_left ? s->u.matmul.m * s->u.matmul.k : s->u.matmul.n * s->u.matmul.k;
    if (p && p->elements < 1.5 * one) {
        put_linear(l, t, s);
        return;
    }
    const uint32_t first = (uint32_t)l->e->g->n_weights;
    const bool owns = p && declares(l, t->in[wi]);
    const tv_param param = {.name = p ? param_name(l, t->in[wi], "weight") : NULL,
                            .role = TV_WEIGHT_EXPERT,
                            .rows = p ? p->elements / fmax(1, s->u.matmul.k) : 0,
                            .cols = s->u.matmul.k};
    const tv_product product = {
        .name = t->name,
        .what = "product of matrices",
        .groups = tv_lower_fit(l, t->step, q_groups),
        .m = tv_lower_fit(l, t->step, q_m),
        .n = s->u.matmul.n,
        .k = s->u.matmul.k,
        .out = elements(l, t->out[0]),
        .flop = tv_lower_fit(l, t->step, q_matmul_flop),
        .param = owns ? &param : NULL,
    };
    const tv_val x = tv_lower_operand(l, t->in[0]);
    const tv_val y = t->n_in > 1 ? tv_lower_operand(l, t->in[1]) : tv_no_val;
    tv_lower_result(l, t->out[0], tv_emit_product(l->e, &product, x, y));
    settle_weights(l, first, &t->in[wi], owns ? 1 : 0);
}

/* ---- convolutions ---- */

static void put_conv(tv_lower *l, const tv_item *t, const tv_step *s)
{
    const uint32_t w = t->n_in > 1 ? t->in[1] : TV_NO_VALUE;
    const uint32_t bias = s->u.conv.bias && t->n_in > 2 ? t->in[2] : TV_NO_VALUE;
    /* Where a batch norm was folded in, the module that trains has no bias but the norm. */
    const bool refold = t->folded_norm && l->set->phase == TV_PHASE_TRAIN;
    const bool has_bias = bias != TV_NO_VALUE && !refold;
    const uint32_t first = (uint32_t)l->e->g->n_weights;
    const bool owns = declares(l, w), owns_bias = has_bias && declares(l, bias);
    l->e->frozen = is_frozen(l, w);
    const tv_conv conv = {
        .name = t->name,
        .in = s->u.conv.in_channels,
        .out = s->u.conv.out_channels,
        .kernel = s->u.conv.kernel,
        .groups = s->u.conv.groups,
        .rows = tv_lower_fit(l, t->step, q_conv_rows),
        .bias = has_bias,
        .transposed = s->u.conv.transposed,
        .tied = !owns,
        .tied_bias = !owns_bias,
    };
    tv_val v = tv_emit_conv(l->e, &conv, tv_lower_operand(l, t->in[0]));
    const uint32_t of[2] = {owns ? w : bias, bias};
    settle_weights(l, first, of, (owns ? 1u : 0) + (owns_bias ? 1u : 0));
    if (refold)
        v = tv_emit_norm(l->e, "batch norm", TV_NORM_BATCH, v, s->u.conv.out_channels, true, true);
    l->e->frozen = false;
    tv_lower_result(l, t->out[0], v);
}

static void put_pool(tv_lower *l, const tv_item *t, const tv_step *s)
{
    const tv_form out = elements(l, t->out[0]);
    const tv_val x = tv_lower_operand(l, t->in[0]);
    const tv_val y = s->u.pool.global && !s->u.pool.max
                         ? tv_emit_global_pool_to(l->e, t->name, x, out)
                         : tv_emit_pool_to(l->e, t->name, s->u.pool.max, x, out, s->u.pool.window);
    tv_lower_result(l, t->out[0], y);
}

/* ---- norms ---- */

static void put_norm(tv_lower *l, const tv_item *t, const tv_step *s)
{
    const bool found = t->kind == TV_ITEM_NORM;
    const uint32_t w = found ? t->weight : t->n_in > 1 ? t->in[1] : TV_NO_VALUE;
    const uint32_t bias = found ? t->bias : t->n_in > 2 ? t->in[2] : TV_NO_VALUE;
    const uint32_t rows_of = found ? t->norm_step : t->step;
    const tv_norm_kind kind = found ? t->norm : s->u.norm.kind;
    const bool affine = param_of(l, w) != NULL, has_bias = param_of(l, bias) != NULL;
    const uint32_t first = (uint32_t)l->e->g->n_weights;
    const bool owns = declares(l, w), owns_bias = declares(l, bias);
    l->e->frozen = is_frozen(l, w);
    const tv_norm norm = {
        .name = t->name,
        .kind = kind,
        .width = found ? t->width : s->u.norm.width,
        .rows = rows_of == TV_NO_VALUE || kind == TV_NORM_BATCH
                    ? (tv_form){0}
                    : tv_lower_fit(l, rows_of, q_norm_rows),
        .affine = affine || kind == TV_NORM_BATCH_FROZEN,
        .bias = has_bias,
        .tied = !owns,
    };
    const tv_val y = tv_emit_norm_of(l->e, &norm, tv_lower_operand(l, t->in[0]));
    l->e->frozen = false;
    const uint32_t of[2] = {w, bias};
    settle_weights(l, first, of, owns && owns_bias ? 2 : owns ? 1 : 0);
    tv_lower_result(l, t->out[0], y);
}

/* ---- tables, moves, recurrence ---- */

static void put_gather(tv_lower *l, const tv_item *t, const tv_step *s)
{
    const tv_shape *table = &l->run->values[t->in[0]].shape;
    const bool param = param_of(l, t->in[0]) != NULL;
    if (!param || table->rank < 2 || t->n_in < 2) {
        const tv_form n = elements(l, t->out[0]);
        put_plain(l, t,
                  (generic){.kind = TV_OP_EMBEDDING,
                            .what = "rows",
                            .saves_in = 2,
                            .flop = {0},
                            .saves_bytes = {0},
                            .launches = 1,
                            .saves_out = n.b < 0});
        return;
    }
    const double rows = (double)table->d[s->u.gather.axis < table->rank ? s->u.gather.axis : 0];
    const double width = tv_shape_elements(table) / fmax(1, rows);
    const tv_form tokens = tv_form_scale(elements(l, t->out[0]), 1 / fmax(1, width));
    const uint32_t first = (uint32_t)l->e->g->n_weights;
    const tv_val ids = tv_lower_operand(l, t->in[1]);
    l->e->frozen = is_frozen(l, t->in[0]);
    tv_val y;
    if (declares(l, t->in[0])) {
        y = tv_emit_embedding(l->e, t->name, ids, rows, width, tokens);
        settle_weights(l, first, &t->in[0], 1);
    } else {
        y = tv_emit_lookup(l->e, t->name, ids, rows, width, tokens);
    }
    l->e->frozen = false;
    tv_lower_result(l, t->out[0], y);
}

static void put_concat(tv_lower *l, const tv_item *t)
{
    tv_val *parts = tv_new(l->a, tv_val, t->n_in + 1);
    size_t n = 0;
    for (size_t i = 0; i < t->n_in; i++)
        if (t->in[i] != TV_NO_VALUE)
            parts[n++] = tv_lower_operand(l, t->in[i]);
    /* a class token, a learned prompt: parameters among the parts */
    for (size_t i = 0; i < t->n_in; i++)
        if (param_of(l, t->in[i])) {
            put_plain(l, t, (generic){.kind = TV_OP_COPY, .what = "concatenation"});
            return;
        }
    tv_lower_result(l, t->out[0], tv_emit_concat(l->e, t->name, parts, n));
}

static void put_copy(tv_lower *l, const tv_item *t, const tv_step *s)
{
    if (s->kind == TV_STEP_COPY && s->u.layout.kind == TV_LAYOUT_CONCAT && floats(l, t->out[0]))
        put_concat(l, t);
    else
        put_plain(l, t, (generic){.kind = TV_OP_COPY, .what = "copy"});
}

/* cuDNN's recurrent kernels keep gates and states of every step (docs/model.md, "programs"). */
static void put_rnn(tv_lower *l, const tv_item *t, const tv_step *s)
{
    const double h = s->u.rnn.hidden * s->u.rnn.directions;
    const tv_form rows = tv_lower_fit(l, t->step, q_rnn_rows);
    const double layers = fmax(1, s->u.rnn.layers);
    const double per_row =
        2 * s->u.rnn.gates * h *
        (s->u.rnn.input + s->u.rnn.hidden + (layers - 1) * (h + s->u.rnn.hidden));
    put_plain(l, t,
              (generic){
                  .kind = TV_OP_SCAN,
                  .what = "recurrent output",
                  .saves_in = 1,
                  .saves_out = true,
                  .saves_bytes = tv_form_scale(rows, layers * (s->u.rnn.gates + 1) * h *
                                                         tv_dtype_bytes(l->set->policy.stream)),
                  .flop = tv_form_scale(rows, per_row),
                  .launches = (int)fmin(2 * layers * s->u.rnn.steps, 60000),
                  .backward_launches = (int)fmin(2 * layers * s->u.rnn.steps, 60000),
              });
}

static double per_sample(const tv_lower *l, tv_form f)
{
    return f.b > 0 ? f.b : tv_form_at(f, l->t->batch[0], 0) / l->t->batch[0];
}

static void put_loss_step(tv_lower *l, const tv_item *t, const tv_step *s)
{
    const tv_val x = tv_lower_operand(l, t->in[0]);
    /* A capture has the log-softmax before it as an operator of its own. */
    if (s->u.loss.cross_entropy && s->u.loss.classes > 0 && !l->recorded)
        tv_emit_cross_entropy(l->e, t->name, x, s->u.loss.classes,
                              per_sample(l, x.n) / s->u.loss.classes);
    else
        put_plain(l, t,
                  (generic){.kind = TV_OP_LOSS,
                            .what = "loss",
                            .saves_in = every_operand(t),
                            .flop = tv_form_scale(x.n, 3)});
}

/* ---- dispatch ---- */

/* Ops of which only traffic and what they keep is told apart. */
static void put_stream(tv_lower *l, const tv_item *t, const tv_step *s)
{
    const bool any = t->n_out && t->out[0] != TV_NO_VALUE;
    const tv_form out = any ? elements(l, t->out[0]) : (tv_form){0};
    const tv_form in = tv_lower_fit(l, t->step, q_in_elements);
    switch ((int)s->kind) {
    case TV_STEP_REDUCE:
        put_plain(l, t,
                  (generic){.kind = TV_OP_POOL,
                            .what = "reduced",
                            .saves_in = s->u.reduce.keeps_input ? 1 : 0,
                            .saves_bytes = tv_form_scale(out, s->u.reduce.keeps_indices ? 8 : 0),
                            .flop = in});
        return;
    case TV_STEP_ROUTE:
        put_plain(l, t,
                  (generic){.kind = TV_OP_ROUTING,
                            .what = "moved",
                            .saves_bytes = tv_form_scale(out, 8),
                            .launches = 3,
                            .backward_launches = 2});
        return;
    case TV_STEP_SCAN:
        put_plain(l, t,
                  (generic){.kind = TV_OP_SCAN,
                            .what = "scan output",
                            .saves_in = every_operand(t),
                            .flop = tv_form_scale(out, 6 * fmax(1, s->u.scan.state)),
                            .launches = 2,
                            .backward_launches = 4});
        return;
    }
    /* Nothing is known but the tensors: at least one operation an element, everything kept. */
    put_plain(l, t,
              (generic){.kind = TV_OP_ELEMENTWISE,
                        .what = "output",
                        .saves_in = every_operand(t),
                        .flop = tv_form_add(in, out)});
}

static void put_step(tv_lower *l, const tv_item *t, const tv_step *s)
{
    switch (s->kind) {
    case TV_STEP_VIEW:
    case TV_STEP_COPY:
        put_copy(l, t, s);
        return;
    case TV_STEP_UNARY:
        put_unary(l, t, s);
        return;
    case TV_STEP_BINARY:
        put_binary(l, t, s);
        return;
    case TV_STEP_MATMUL:
        put_matmul(l, t, s);
        return;
    case TV_STEP_CONV:
        put_conv(l, t, s);
        return;
    case TV_STEP_POOL:
        put_pool(l, t, s);
        return;
    case TV_STEP_NORM:
        put_norm(l, t, s);
        return;
    case TV_STEP_SOFTMAX:
        tv_lower_result(l, t->out[0],
                        tv_emit_softmax(l->e, t->name, tv_lower_operand(l, t->in[0])));
        return;
    case TV_STEP_GATHER:
        put_gather(l, t, s);
        return;
    case TV_STEP_RESIZE:
        tv_lower_result(l, t->out[0],
                        tv_emit_resize_to(l->e, t->name, tv_lower_operand(l, t->in[0]),
                                          elements(l, t->out[0])));
        return;
    case TV_STEP_RNN:
        put_rnn(l, t, s);
        return;
    case TV_STEP_ATTENTION:
        tv_lower_attention(l, t);
        return;
    case TV_STEP_DROPOUT:
        tv_lower_result(l, t->out[0],
                        tv_emit_dropout(l->e, t->name,
                                        l->set->dropout >= 0 ? l->set->dropout : s->u.dropout.p,
                                        tv_lower_operand(l, t->in[0])));
        return;
    case TV_STEP_LOSS:
        put_loss_step(l, t, s);
        return;
    case TV_STEP_REDUCE:
    case TV_STEP_ROUTE:
    case TV_STEP_SCAN:
    case TV_STEP_UNKNOWN:
    case TV_STEP_KIND_COUNT:
        break;
    }
    put_stream(l, t, s);
}

static void put_item(tv_lower *l, const tv_item *t)
{
    const tv_step *s = tv_lower_step(l, t->step);
    switch (t->kind) {
    case TV_ITEM_ALIAS:
        return;
    case TV_ITEM_CONTIGUOUS:
        tv_lower_result(l, t->out[0],
                        tv_emit_contiguous(l->e, t->name, tv_lower_operand(l, t->in[0])));
        return;
    case TV_ITEM_ATTENTION:
        tv_lower_attention(l, t);
        return;
    case TV_ITEM_NORM:
        put_norm(l, t, s);
        return;
    case TV_ITEM_ACT:
        put_act(l, t, t->act);
        return;
    case TV_ITEM_STEP:
        put_step(l, t, s);
        return;
    }
}

/* Loop bodies: work and traffic of every trip; kept tensors of all trips stay for backward. */
static void repeat(tv_lower *l, uint32_t first_op, uint32_t first_storage, double times)
{
    tv_graph *g = l->e->g;
    for (uint32_t i = first_op; i < g->n_ops; i++) {
        tv_op *op = &g->ops[i];
        op->flop = tv_form_scale(op->flop, times);
        op->read_bytes = tv_form_scale(op->read_bytes, times);
        op->write_bytes = tv_form_scale(op->write_bytes, times);
        op->backward_bytes = tv_form_scale(op->backward_bytes, times);
        op->weight_bytes *= times;
        op->launches = (uint16_t)fmin(65535, op->launches * times);
        op->backward_launches = (uint16_t)fmin(65535, op->backward_launches * times);
    }
    for (uint32_t i = first_storage; i < g->n_storages && l->set->phase == TV_PHASE_TRAIN; i++)
        g->storages[i].bytes = tv_form_scale(g->storages[i].bytes, times);
}

/* A parameter's further uses add to its gradient: the op that is last of the item names those that
 * an earlier one declared, where they stand side by side. */
static void use_again(tv_lower *l, const tv_item *t, uint32_t first_op, uint32_t first_weight)
{
    tv_graph *g = l->e->g;
    if (g->n_ops == first_op || g->ops[g->n_ops - 1].n_weights)
        return;
    tv_op *op = &g->ops[g->n_ops - 1];
    for (size_t i = 0; i < t->n_in; i++) {
        const tv_lowered_param *p = param_of(l, t->in[i]);
        const uint32_t w = p && p->weight ? p->weight - 1 : TV_NONE;
        if (w >= first_weight)
            continue;
        if (!op->n_weights)
            op->first_weight = w;
        if (w == op->first_weight + op->n_weights)
            op->n_weights++;
    }
}

/* ---- one item ---- */

static void account(tv_lower *l, uint32_t first_op, bool guessed)
{
    const tv_graph *g = l->e->g;
    for (uint32_t i = first_op; i < g->n_ops; i++) {
        const tv_op *op = &g->ops[i];
        const double bytes = tv_form_at(op->read_bytes, 1, 0) + tv_form_at(op->write_bytes, 1, 0);
        l->all_bytes += bytes;
        l->all_flop += tv_form_at(op->flop, 1, 0);
        l->guessed_bytes += guessed ? bytes : 0;
        l->guessed_flop += guessed ? tv_form_at(op->flop, 1, 0) : 0;
    }
}

void tv_lower_item(tv_lower *l, const tv_item *item)
{
    const uint32_t first_op = (uint32_t)l->e->g->n_ops;
    const uint32_t first_storage = (uint32_t)l->e->g->n_storages;
    const tv_step *s = tv_lower_step(l, item->step);
    const uint32_t first_weight = (uint32_t)l->e->g->n_weights;
    l->item_op = first_op;
    put_item(l, item);
    if (s->times > 1)
        repeat(l, first_op, first_storage, s->times);
    if (l->recorded && s->node && s->node->saved_known && l->set->phase == TV_PHASE_TRAIN)
        tv_lower_recorded(l, item, first_op);
    if (l->recorded)
        use_again(l, item, first_op, first_weight);
    for (uint32_t i = first_op; i < l->e->g->n_ops && s->node; i++)
        l->e->g->ops[i].region = s->node->region;
    account(l, first_op, s->guessed || s->kind == TV_STEP_UNKNOWN);
}
