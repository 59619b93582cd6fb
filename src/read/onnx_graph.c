/* ONNX's graphs: the main one, the branches and loop bodies in attributes, local functions. A
 * graph's fields stand in any order, so they are gathered first: inputs, then stored weights, then
 * nodes, then what is declared about values. */
#include "onnx.h"

typedef struct stored_value {
    tv_value v;
    double elements;
    uint64_t at;
    bool sparse;
} stored_value;

typedef struct graph_fields {
    tv_str name;
    tv_fields nodes, inputs, outputs, infos;
    struct {
        stored_value *v;
        size_t n, cap;
    } weights;
} graph_fields;

/* Weights are read at once, while the page that their head lies in is there. */
static const tv_err *gather_weight(tv_onnx *o, const tv_wire *w, const tv_wire_field *f,
                                   graph_fields *g)
{
    tv_wire inner;
    stored_value *s = tv_push(o->g->a, &g->weights);
    s->sparse = f->number == 15;
    s->at = f->at;
    TV_TRY(tv_wire_enter(w, f, &inner));
    TV_TRY(tv_onnx_tensor(o, inner, s->sparse ? TV_ONNX_SPARSE : TV_ONNX_INITIALIZER, (tv_str){0},
                          &s->v, &s->elements));
    tv_onnx_stepped(o, f->bytes.n);
    return NULL;
}

static const tv_err *gather_fields(tv_onnx *o, tv_wire w, graph_fields *g)
{
    tv_wire_field f;
    bool more = true;
    for (;;) {
        tv_fields *list = NULL;
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        switch (f.number) {
        case 1:
            list = &g->nodes;
            break;
        case 2:
            TV_TRY(tv_wire_str(&w, &f, &g->name));
            break;
        case 5:
        case 15:
            TV_TRY(gather_weight(o, &w, &f, g));
            break;
        case 11:
            list = &g->inputs;
            break;
        case 12:
            list = &g->outputs;
            break;
        case 13:
            list = &g->infos;
            break;
        default:
            break;
        }
        if (list)
            *tv_push(o->g->a, list) = f;
    }
}

static bool is_main(const tv_scope *scope)
{
    return !scope->parent && scope->depth == 0;
}

static void note_twice(tv_onnx *o, tv_str name)
{
    o->counts.declared_twice++;
    o->counts.twice = o->counts.twice.n ? o->counts.twice : name;
}

/* Some writers list what a branch reads from outside among its inputs. Nobody gives a branch
 * inputs: the name means the value outside. */
static bool is_from_outside(const tv_onnx *o, const tv_scope *scope, tv_str name)
{
    return scope->parent && scope->parent->branches &&
           tv_onnx_resolve(o, scope->parent, name) != TV_NO_VALUE;
}

/* The first declaration of a name counts. */
static const tv_err *read_inputs(tv_onnx *o, const tv_wire *w, const tv_fields *fields,
                                 tv_scope *scope, tv_body *body)
{
    uint32_t *inputs = tv_new(o->g->a, uint32_t, fields->n + 1);
    tv_onnx_room(o, fields->n);
    for (size_t i = 0; i < fields->n; i++) {
        tv_wire inner;
        tv_value v = {.role = is_main(scope) ? TV_VALUE_INPUT : TV_VALUE_TEMP,
                      .storage = TV_NO_VALUE};
        TV_TRY(tv_wire_enter(w, &fields->v[i], &inner));
        TV_TRY(tv_onnx_value_info(o, inner, &v));
        if (is_from_outside(o, scope, v.name))
            continue;
        uint32_t *slot = tv_names_slot(o->g->a, &scope->names, v.name);
        if (*slot) {
            note_twice(o, v.name);
            continue;
        }
        TV_TRY(tv_onnx_value(o, v, TV_NO_VALUE, &inputs[body->n_inputs]));
        *slot = inputs[body->n_inputs++] + 1;
    }
    body->inputs = inputs;
    return NULL;
}

static void count_initializer(tv_onnx *o, const tv_scope *scope, bool sparse, double elements)
{
    if (sparse) {
        o->counts.sparse++;
    } else if (is_main(scope)) {
        o->counts.initializers++;
        o->counts.initializer_elements += elements;
    } else {
        o->counts.subgraph_initializers++;
        o->counts.subgraph_initializer_elements += elements;
    }
}

/* Before IR version 4 a stored weight had to be listed as an input, too: it is none. */
static const tv_err *place_weight(tv_onnx *o, tv_scope *scope, uint64_t at, const tv_value *v)
{
    uint32_t index = 0;
    if (v->name.n == 0)
        return tv_onnx_broken(o, at, "onnx.nameless", N_("a stored weight has no name"));
    uint32_t *slot = tv_names_slot(o->g->a, &scope->names, v->name);
    if (!*slot) {
        TV_TRY(tv_onnx_value(o, *v, TV_NO_VALUE, &index));
        *slot = index + 1;
        return NULL;
    }
    tv_value *input = &o->values.v[*slot - 1];
    if (input->role == TV_VALUE_WEIGHT)
        return tv_onnx_named(o, at, "onnx.stored-twice", N_("the weight \"{name}\" stands twice"),
                             v->name);
    *input = *v;
    o->counts.inputs_stored += is_main(scope);
    return NULL;
}

static const tv_err *place_weights(tv_onnx *o, const graph_fields *g, tv_scope *scope)
{
    tv_onnx_room(o, g->weights.n);
    tv_names_room(o->g->a, &scope->names, g->weights.n);
    for (size_t i = 0; i < g->weights.n; i++) {
        const stored_value *s = &g->weights.v[i];
        TV_TRY(place_weight(o, scope, s->at, &s->v));
        count_initializer(o, scope, s->sparse, s->elements);
        if (is_main(scope) && !s->sparse)
            tv_onnx_count_row(o, tv_onnx_type_of(o, &s->v), TV_ONNX_TYPES);
    }
    return NULL;
}

static void drop_weights_from_inputs(const tv_onnx *o, tv_body *body)
{
    uint32_t *kept = tv_new(o->g->a, uint32_t, body->n_inputs + 1);
    size_t n = 0;
    for (size_t i = 0; i < body->n_inputs; i++)
        if (o->values.v[body->inputs[i]].role != TV_VALUE_WEIGHT)
            kept[n++] = body->inputs[i];
    body->inputs = kept;
    body->n_inputs = n;
}

/* What is declared about a value that a node puts out. */
static void declare_type(tv_onnx *o, uint32_t index, const tv_value *info)
{
    tv_value *v = &o->values.v[index];
    if (v->role == TV_VALUE_WEIGHT)
        return;
    if (v->dtype == TV_DTYPE_UNKNOWN && v->dtype_text.n == 0) {
        v->dtype = info->dtype;
        v->dtype_text = info->dtype_text;
        v->list = info->list;
    }
    if (!v->shaped && info->shaped) {
        v->shaped = true;
        v->rank = info->rank;
        v->dims = info->dims;
    }
}

static const tv_err *read_infos(tv_onnx *o, const tv_wire *w, const tv_fields *fields,
                                const tv_scope *scope)
{
    for (size_t i = 0; i < fields->n; i++) {
        tv_wire inner;
        tv_value info = {0};
        TV_TRY(tv_wire_enter(w, &fields->v[i], &inner));
        TV_TRY(tv_onnx_value_info(o, inner, &info));
        const uint32_t found = tv_names_find(&scope->names, info.name);
        if (found)
            declare_type(o, found - 1, &info);
    }
    return NULL;
}

static const tv_err *no_output(tv_onnx *o, uint64_t at, tv_str name)
{
    return tv_onnx_named(o, at, "onnx.no-output",
                         N_("nothing puts out the graph's output \"{name}\""), name);
}

static const tv_err *read_outputs(tv_onnx *o, const tv_wire *w, const tv_fields *fields,
                                  tv_scope *scope, tv_body *body)
{
    uint32_t *outputs = tv_new(o->g->a, uint32_t, fields->n + 1);
    scope->at = TV_NO_VALUE; /* behind every node */
    for (size_t i = 0; i < fields->n; i++) {
        tv_wire inner;
        tv_value info = {0};
        TV_TRY(tv_wire_enter(w, &fields->v[i], &inner));
        TV_TRY(tv_onnx_value_info(o, inner, &info));
        outputs[i] = tv_onnx_resolve(o, scope, info.name);
        if (outputs[i] == TV_NO_VALUE)
            return no_output(o, fields->v[i].at, info.name);
        declare_type(o, outputs[i], &info);
    }
    body->outputs = outputs;
    body->n_outputs = fields->n;
    return NULL;
}

static void count_graph(tv_onnx *o, const tv_scope *scope, const tv_body *body)
{
    o->counts.subgraphs += !is_main(scope);
    if (!is_main(scope)) {
        o->counts.subgraph_nodes += (double)body->n_nodes;
        return;
    }
    o->counts.nodes = (double)body->n_nodes;
    for (size_t i = 0; i < body->n_nodes; i++)
        tv_onnx_count_row(o, body->nodes[i].op, TV_ONNX_OPS);
}

static const tv_err *order(tv_onnx *o, const tv_scope *scope, uint64_t at, tv_body *body)
{
    if (!scope->late)
        return NULL;
    TV_TRY(tv_onnx_sort(o, scope, at, body));
    tv_gather_warn(o->g, TV_TEXT(o->g->a, "onnx.unsorted",
                                 N_("nodes of the graph \"{name}\" stand before others that they "
                                    "read: they were sorted"),
                                 tv_arg_str("name", body->name)));
    return NULL;
}

const tv_err *tv_onnx_graph(tv_onnx *o, tv_wire w, tv_scope *parent, const tv_body **out)
{
    graph_fields g = {0};
    tv_scope scope = {.parent = parent, .depth = parent ? parent->depth + 1 : 0};
    const uint64_t at = (uint64_t)(w.p - w.base);
    TV_TRY(gather_fields(o, w, &g));
    tv_body *body = tv_new(o->g->a, tv_body, 1);
    body->name = g.name;
    TV_TRY(read_inputs(o, &w, &g.inputs, &scope, body));
    TV_TRY(place_weights(o, &g, &scope));
    drop_weights_from_inputs(o, body);
    TV_TRY(tv_onnx_nodes(o, &w, &g.nodes, &scope, body));
    TV_TRY(read_infos(o, &w, &g.infos, &scope));
    TV_TRY(read_outputs(o, &w, &g.outputs, &scope, body));
    TV_TRY(order(o, &scope, at, body));
    count_graph(o, &scope, body);
    o->counts.value_infos += is_main(&scope) ? (double)g.infos.n : 0;
    *out = body;
    return NULL;
}

/* ---- local functions ---- */

typedef struct function_fields {
    tv_fields nodes, infos, defaults;
    struct {
        tv_str *v;
        size_t n, cap;
    } inputs, outputs, attributes;
    tv_str overload;
} function_fields;

static const tv_err *function_field(tv_onnx *o, const tv_wire *w, const tv_wire_field *f,
                                    function_fields *g, tv_function *out)
{
    tv_arena *a = o->g->a;
    switch (f->number) {
    case 1:
        return tv_wire_str(w, f, &out->name);
    case 4:
        return tv_wire_str(w, f, tv_push(a, &g->inputs));
    case 5:
        return tv_wire_str(w, f, tv_push(a, &g->outputs));
    case 6:
        return tv_wire_str(w, f, tv_push(a, &g->attributes));
    case 7:
        *tv_push(a, &g->nodes) = *f;
        return NULL;
    case 10:
        return tv_wire_str(w, f, &out->domain);
    case 11:
        *tv_push(a, &g->defaults) = *f;
        return NULL;
    case 12:
        *tv_push(a, &g->infos) = *f;
        return NULL;
    case 13:
        return tv_wire_str(w, f, &g->overload);
    default:
        return NULL;
    }
}

static const tv_err *read_defaults(tv_onnx *o, const tv_wire *w, const tv_fields *fields,
                                   tv_scope *scope, tv_function *f)
{
    tv_attr *attrs = tv_new(o->g->a, tv_attr, fields->n + 1);
    for (size_t i = 0; i < fields->n; i++) {
        tv_wire inner;
        TV_TRY(tv_wire_enter(w, &fields->v[i], &inner));
        TV_TRY(tv_onnx_attr(o, inner, scope, f->name, &attrs[i]));
    }
    f->defaults = attrs;
    f->n_defaults = fields->n;
    return NULL;
}

static const tv_err *function_inputs(tv_onnx *o, const function_fields *g, uint64_t at,
                                     tv_scope *scope, tv_body *body)
{
    uint32_t *inputs = tv_new(o->g->a, uint32_t, g->inputs.n + 1);
    for (size_t i = 0; i < g->inputs.n; i++) {
        const tv_value v = {.name = g->inputs.v[i], .storage = TV_NO_VALUE};
        uint32_t *slot = tv_names_slot(o->g->a, &scope->names, v.name);
        if (*slot)
            return tv_onnx_named(o, at, "onnx.assigned-twice",
                                 N_("the value \"{name}\" is put out twice"), v.name);
        TV_TRY(tv_onnx_value(o, v, TV_NO_VALUE, &inputs[i]));
        *slot = inputs[i] + 1;
    }
    body->inputs = inputs;
    body->n_inputs = g->inputs.n;
    return NULL;
}

static const tv_err *function_outputs(tv_onnx *o, const function_fields *g, uint64_t at,
                                      tv_scope *scope, tv_body *body)
{
    uint32_t *outputs = tv_new(o->g->a, uint32_t, g->outputs.n + 1);
    scope->at = TV_NO_VALUE;
    for (size_t i = 0; i < g->outputs.n; i++) {
        outputs[i] = tv_onnx_resolve(o, scope, g->outputs.v[i]);
        if (outputs[i] == TV_NO_VALUE)
            return no_output(o, at, g->outputs.v[i]);
    }
    body->outputs = outputs;
    body->n_outputs = g->outputs.n;
    return NULL;
}

static void name_function(tv_onnx *o, const function_fields *g, tv_function *out, tv_body *body)
{
    if (tv_str_is(out->domain, "ai.onnx"))
        out->domain = (tv_str){0};
    if (g->overload.n) {
        tv_buf b = tv_buf_in(o->g->a);
        tv_put(&b, out->name);
        tv_putc(&b, ':');
        tv_put(&b, g->overload);
        out->name = tv_buf_str(&b);
    }
    body->name = out->name;
    out->body = body;
    out->attributes = g->attributes.v;
    out->n_attributes = g->attributes.n;
}

const tv_err *tv_onnx_function(tv_onnx *o, tv_wire w, tv_function *out)
{
    function_fields g = {0};
    tv_scope scope = {.depth = 1}; /* no scope around it, and not the main graph */
    const tv_wire whole = w;
    const uint64_t at = (uint64_t)(w.p - w.base);
    tv_wire_field f;
    bool more = true;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            break;
        TV_TRY(function_field(o, &w, &f, &g, out));
    }
    tv_body *body = tv_new(o->g->a, tv_body, 1);
    name_function(o, &g, out, body);
    TV_TRY(function_inputs(o, &g, at, &scope, body));
    TV_TRY(read_defaults(o, &whole, &g.defaults, &scope, out));
    TV_TRY(tv_onnx_nodes(o, &whole, &g.nodes, &scope, body));
    TV_TRY(read_infos(o, &whole, &g.infos, &scope));
    TV_TRY(function_outputs(o, &g, at, &scope, body));
    return order(o, &scope, at, body);
}
