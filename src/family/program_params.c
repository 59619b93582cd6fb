/* Which stored tensors of a program are parameters, under which name, in how many bytes. Formats
 * do not always say: constants that an export computed stand beside parameters. Told by use (the
 * matrix of a product, the weight of a norm, a looked-up table) and, where use does not tell, by
 * whether the name is one that exporters make up. */
#include "program_lower.h"

#include <string.h>

/* "mul_9", "unsqueeze": results that the newer exporter computed are called after their operator.
 */
static bool is_op_name(tv_str name)
{
    static const char *const ops[] = {
        "mul",    "sub",     "add",         "div",       "neg",    "unsqueeze", "squeeze",
        "index",  "slice",   "view",        "reshape",   "expand", "cat",       "stack",
        "where",  "permute", "t",           "transpose", "to",     "clone",     "arange",
        "full",   "ones",    "zeros",       "sin",       "cos",    "exp",       "pow",
        "rsqrt",  "sqrt",    "mean",        "sum",       "select", "detach",    "alias",
        "matmul", "bmm",     "masked_fill", "triu",      "tril",   "cumsum",    "getitem",
    };
    while (name.n && name.p[name.n - 1] >= '0' && name.p[name.n - 1] <= '9')
        name.n--;
    if (name.n && name.p[name.n - 1] == '_')
        name.n--;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tv_str_is(name, ops[i]))
            return true;
    return false;
}

/* Names that exporters give to what they computed themselves. */
static bool made_up(tv_str name)
{
    static const char *const starts[] = {"onnx::",   "val_",  "scalar_tensor", "lifted_tensor",
                                         "_to_copy", "node_", "const_",        "tmp_"};
    if (!name.n)
        return true;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (tv_str_starts(name, tv_str_of(starts[i])))
            return true;
    if (tv_str_has(name, TV_S("Constant")) || tv_str_has(name, TV_S("_output_")))
        return true;
    if (is_op_name(name))
        return true;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] < '0' || name.p[i] > '9')
            return false;
    return true;
}

static bool can_train(tv_dtype t)
{
    return tv_dtype_of(t)->is_float || t == TV_DTYPE_UNKNOWN;
}

/* Exporters store equal tensors once and name the others through Identity; each is a parameter of
 * its own in the module. */
static uint8_t *renamed_weights(const tv_lower *l)
{
    const tv_program *p = l->program;
    uint8_t *renamed = tv_new(l->a, uint8_t, p->n_values + 1);
    for (size_t i = 0; p->dialect == TV_DIALECT_ONNX && i < p->main->n_nodes; i++) {
        const tv_node *n = &p->main->nodes[i];
        const uint32_t in = tv_node_in(n, 0), out = tv_node_out(n, 0);
        if (tv_str_is(n->op, "Identity") && in != TV_NO_VALUE && out != TV_NO_VALUE &&
            (p->values[in].role == TV_VALUE_WEIGHT || renamed[in]) && !made_up(p->values[out].name))
            renamed[out] = 1;
    }
    return renamed;
}

static uint32_t param_behind(const tv_lower *l, const uint8_t *renamed, uint32_t v)
{
    const tv_run_value *r = &l->run->values[v];
    if (r->from && renamed[r->from - l->program->values])
        return v;
    return r->weight;
}

static tv_lowered_param *param_at(tv_lower *l, const uint8_t *renamed, uint32_t v)
{
    const uint32_t key = param_behind(l, renamed, v);
    l->param_of[v] = key;
    tv_lowered_param *p = &l->param[key];
    const tv_run_value *stored = &l->run->values[l->run->values[v].weight];
    if (p->used)
        return p;
    p->used = true;
    p->from = stored->from;
    p->name = l->run->values[key].from ? l->run->values[key].from->name : (tv_str){0};
    /* ATen states its parameters: a part of one, cut or turned, stands for the whole. */
    const bool whole = l->program->dialect == TV_DIALECT_ATEN;
    p->elements = tv_shape_elements(whole ? &stored->shape : &l->run->values[v].shape);
    p->stored_bytes = tv_shape_elements(&stored->shape) * tv_dtype_bytes(stored->dtype);
    return p;
}

/* Weights, biases and tables of ops that have such. */
static bool told_by_use(const tv_lower *l, const tv_item *t, size_t i)
{
    const tv_step *s = tv_lower_step(l, t->step);
    if (t->kind != TV_ITEM_STEP)
        return false;
    switch ((int)s->kind) {
    case TV_STEP_MATMUL:
    case TV_STEP_CONV:
    case TV_STEP_RNN:
        return true;
    case TV_STEP_NORM:
        return i == 1 || i == 2;
    case TV_STEP_GATHER:
        return i == 0;
    }
    return false;
}

static void use(tv_lower *l, const uint8_t *renamed, uint32_t v, bool told)
{
    if (!tv_lower_is_weight(l, v))
        return;
    tv_lowered_param *p = param_at(l, renamed, v);
    const tv_value *from = p->from;
    const bool stated_buffer = from && from->buffer;
    const bool quantised =
        from && !can_train(from->dtype) && tv_dtype_of(l->run->values[v].dtype)->is_float;
    const bool floats = from && (can_train(from->dtype) || quantised);
    const bool named = p->elements > 1 ? !made_up(p->name) : told || !made_up(p->name);
    if (floats && !stated_buffer && (told || named))
        p->parameter = true;
}

/* ---- what exporters folded away ---- */

static tv_str module_of(tv_str name)
{
    for (size_t i = name.n; i-- > 0;)
        if (name.p[i] == '.')
            return tv_str_take(name, i);
    return (tv_str){0};
}

/* A convolution with a norm behind it, as it stands or over reshaped groups, had no other one. */
static bool norm_follows(const tv_lower *l, uint32_t v)
{
    const tv_step *next = l->uses[v] == 1 ? tv_lower_step(l, l->user[v]) : NULL;
    if (next && next->kind == TV_STEP_VIEW && next->n_out && l->uses[next->out[0]] == 1)
        next = tv_lower_step(l, l->user[next->out[0]]);
    return next && next->kind == TV_STEP_NORM &&
           (next->u.norm.kind == TV_NORM_BATCH || next->u.norm.instance);
}

/* Exporters fold a batch norm into the convolution before it. The older one's tensors have no
 * name of the module's any more; the newer one's convolution stands in the norm's scope, which is
 * neither the convolution's module nor above it. */
static bool has_folded_norm(const tv_lower *l, const tv_item *t)
{
    const tv_step *s = tv_lower_step(l, t->step);
    if (l->program->dialect != TV_DIALECT_ONNX || t->kind != TV_ITEM_STEP ||
        s->kind != TV_STEP_CONV || t->n_in < 2 || t->in[1] == TV_NO_VALUE ||
        l->param_of[t->in[1]] == TV_NO_VALUE)
        return false;
    const tv_str weight = l->param[l->param_of[t->in[1]]].name;
    if (norm_follows(l, t->out[0]))
        return false;
    if (made_up(weight))
        return tv_str_starts(weight, TV_S("onnx::Conv"));
    const tv_str module = module_of(weight);
    return module.n && s->name.n && !made_up(s->name) && !memchr(s->name.p, '/', s->name.n) &&
           !tv_str_starts(module, s->name);
}

/* Operators that only move what they are given. */
static bool only_moves(tv_str op)
{
    static const char *const ops[] = {"Gather",  "Slice",     "Concat",  "Transpose",
                                      "Reshape", "Unsqueeze", "Squeeze", "Expand",
                                      "Cast",    "Identity",  "Split",   "Flatten"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tv_str_is(op, ops[i]))
            return true;
    return false;
}

typedef struct leaves {
    const tv_program *p;
    const uint32_t *node_of; /* of the main graph, by value put out; TV_NO_VALUE: none */
    bool *found;             /* by program value */
    size_t n_found;          /* so far, each time anew where one is met again */
} leaves;

static void find_leaves(leaves *x, uint32_t value, int depth)
{
    if (value == TV_NO_VALUE || depth > 40)
        return;
    const tv_value *v = &x->p->values[value];
    if (v->role == TV_VALUE_WEIGHT) {
        x->found[value] = tv_dtype_of(v->dtype)->is_float && !v->buffer && !made_up(v->name) &&
                          tv_value_elements(v) > 1;
        x->n_found += x->found[value];
        return;
    }
    if (x->node_of[value] == TV_NO_VALUE)
        return;
    const tv_node *n = &x->p->main->nodes[x->node_of[value]];
    for (size_t i = 0; only_moves(n->op) && i < n->n_inputs; i++)
        find_leaves(x, n->inputs[i], depth + 1);
}

static uint32_t *nodes_by_output(const tv_lower *l)
{
    const tv_program *p = l->program;
    uint32_t *of = tv_new(l->a, uint32_t, p->n_values + 1);
    for (size_t i = 0; i <= p->n_values; i++)
        of[i] = TV_NO_VALUE;
    for (uint32_t i = 0; i < p->main->n_nodes; i++)
        for (size_t k = 0; k < p->main->nodes[i].n_outputs; k++)
            if (p->main->nodes[i].outputs[k] != TV_NO_VALUE)
                of[p->main->nodes[i].outputs[k]] = i;
    return of;
}

/* A matrix that the graph itself fills (files whose weights were taken out): as good as stored. */
static void take_constant(tv_lower *l, uint32_t v)
{
    const tv_run_value *r = &l->run->values[v];
    tv_lowered_param *p = &l->param[v];
    if (p->used || !tv_dtype_of(r->dtype)->is_float)
        return;
    *p = (tv_lowered_param){.name = r->from ? r->from->name : (tv_str){0},
                            .parameter = true,
                            .used = true,
                            .elements = tv_shape_elements(&r->shape)};
    l->param_of[v] = v;
}

/* ATen and Paddle say which of their values are parameters: those that no step reads are there all
 * the same (what rests on them alone is worked out when the file is loaded; heads that an
 * evaluation leaves out). Tied ones are one. */
static void add_folded(tv_lower *l)
{
    const tv_program *p = l->program;
    bool *read = tv_new(l->a, bool, p->n_values + 1);
    for (size_t v = 0; v < l->run->n_values; v++)
        if (l->param[v].used && l->param[v].from)
            read[l->param[v].from - p->values] = true;
    for (size_t i = 0; i < p->n_values; i++) {
        const tv_value *v = &p->values[i];
        bool tied = false;
        for (size_t k = 0; v->storage && k < p->n_values && !tied; k++)
            tied = k != i && p->values[k].storage == v->storage &&
                   p->values[k].role == TV_VALUE_WEIGHT && (k < i || read[k]);
        if (v->role == TV_VALUE_WEIGHT && !v->buffer && !read[i] && !tied && can_train(v->dtype))
            *tv_push(l->a, &l->behind) = v;
    }
}

/* Constants that are parts or rearrangements of parameters (positions looked up once and for all,
 * a recurrent net's gates in another order): the parameters are there, though no step reads them
 * as they are stored. */
static void find_behind_constants(tv_lower *l)
{
    const tv_program *p = l->program;
    if (p->dialect == TV_DIALECT_PADDLE || p->dialect == TV_DIALECT_ATEN)
        add_folded(l);
    if (p->dialect != TV_DIALECT_ONNX)
        return;
    leaves x = {p, nodes_by_output(l), tv_new(l->a, bool, p->n_values + 1), 0};
    for (size_t i = 0; i < l->items.n; i++)
        for (size_t k = 0; k < l->items.v[i].n_in; k++) {
            const uint32_t v = l->items.v[i].in[k];
            const tv_run_value *r = v == TV_NO_VALUE ? NULL : &l->run->values[v];
            if (!r || !r->constant || r->weight != TV_NO_VALUE)
                continue;
            const size_t before = x.n_found;
            if (r->from)
                find_leaves(&x, (uint32_t)(r->from - p->values), 0);
            if (x.n_found == before && told_by_use(l, &l->items.v[i], k))
                take_constant(l, v);
        }
    for (size_t v = 0; v < l->run->n_values; v++)
        if (l->param[v].used && l->param[v].from)
            x.found[l->param[v].from - p->values] = false;
    for (size_t i = 0; i < p->n_values; i++)
        if (x.found[i])
            *tv_push(l->a, &l->behind) = &p->values[i];
}

void tv_lower_params(tv_lower *l)
{
    const uint8_t *renamed = renamed_weights(l);
    for (size_t i = 0; i < l->items.n; i++) {
        const tv_item *t = &l->items.v[i];
        for (size_t k = 0; k < t->n_in; k++)
            use(l, renamed, t->in[k], told_by_use(l, t, k));
        use(l, renamed, t->weight, true);
        use(l, renamed, t->bias, true);
        /* an expanded class token is still the parameter */
        for (size_t k = 0; t->kind == TV_ITEM_ALIAS && t->n_in && k < t->n_out; k++)
            if (t->in[0] != TV_NO_VALUE && t->out[k] != TV_NO_VALUE &&
                l->param_of[t->out[k]] == TV_NO_VALUE)
                l->param_of[t->out[k]] = l->param_of[t->in[0]];
    }
    find_behind_constants(l);
    for (size_t i = 0; i < l->items.n; i++)
        l->items.v[i].folded_norm = has_folded_norm(l, &l->items.v[i]);
}
