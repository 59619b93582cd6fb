/* Which stored tensors of a program are parameters, under which name, in how many bytes. Formats
 * do not always say: constants that an export computed stand beside parameters. Told by use (the
 * matrix of a product, the weight of a norm, a looked-up table) and, where use does not tell, by
 * whether the name is one that exporters make up. */
#include "program_lower.h"

#include <string.h>

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
    p->elements = tv_shape_elements(&l->run->values[v].shape);
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

/* Exporters fold a batch norm into the convolution before it; the tensors that come out have no
 * name of the module's any more. */
static bool has_folded_norm(const tv_lower *l, const tv_item *t)
{
    const tv_step *s = tv_lower_step(l, t->step);
    if (l->program->dialect != TV_DIALECT_ONNX || t->kind != TV_ITEM_STEP ||
        s->kind != TV_STEP_CONV || t->n_in < 3 || t->in[1] == TV_NO_VALUE ||
        t->in[2] == TV_NO_VALUE)
        return false;
    const uint32_t w = l->param_of[t->in[1]], b = l->param_of[t->in[2]];
    return w != TV_NO_VALUE && b != TV_NO_VALUE && made_up(l->param[w].name) &&
           made_up(l->param[b].name);
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
    }
    for (size_t i = 0; i < l->items.n; i++)
        l->items.v[i].folded_norm = has_folded_norm(l, &l->items.v[i]);
}
