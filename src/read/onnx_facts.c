/* What an ONNX file says of itself, as a JSON object: versions, counts, inputs and outputs. */
#include "onnx.h"

typedef struct object {
    tv_json *v;
    size_t n, cap;
} object;

static tv_json *member(tv_arena *a, object *obj, tv_str key, tv_json_type type)
{
    tv_json *j = tv_push(a, obj);
    *j = (tv_json){.type = type, .key = key};
    return j;
}

static void set_number(tv_arena *a, tv_json *j, double v)
{
    tv_buf b = tv_buf_in(a);
    tv_put_double(&b, v);
    j->type = TV_JSON_NUMBER;
    j->s = tv_buf_str(&b);
    j->number = v;
}

static void put_num(tv_arena *a, object *obj, const char *key, double v)
{
    set_number(a, member(a, obj, tv_str_of(key), TV_JSON_NUMBER), v);
}

static void put_str(tv_arena *a, object *obj, const char *key, tv_str s)
{
    member(a, obj, tv_str_of(key), TV_JSON_STRING)->s = s;
}

static void close_object(tv_json *j, const object *obj)
{
    j->items = obj->v;
    j->n = obj->n;
}

static void put_dims(tv_arena *a, object *list, const tv_value *v)
{
    object dims = {0};
    tv_json *j = member(a, list, (tv_str){0}, v->shaped ? TV_JSON_ARRAY : TV_JSON_NULL);
    for (uint32_t i = 0; v->shaped && i < v->rank; i++) {
        const tv_dim *d = &v->dims[i];
        tv_json *one = member(a, &dims, (tv_str){0}, TV_JSON_NULL);
        if (d->size >= 0) {
            set_number(a, one, (double)d->size);
        } else if (d->symbol.n) {
            one->type = TV_JSON_STRING;
            one->s = d->symbol;
        }
    }
    j->items = dims.v;
    j->n = dims.n;
}

/* {"x": ["FLOAT", [1, "batch", null]]}; the shape is null where there is none. */
static void put_values(tv_onnx *o, object *obj, const char *key, const uint32_t *v, size_t n)
{
    tv_arena *a = o->g->a;
    object all = {0};
    tv_names seen = {0};
    for (size_t i = 0; i < n; i++) {
        const tv_value *value = &o->values.v[v[i]];
        object parts = {0};
        uint32_t *slot = tv_names_slot(a, &seen, value->name);
        if (*slot)
            continue;
        *slot = 1;
        member(a, &parts, (tv_str){0}, TV_JSON_STRING)->s = tv_onnx_type_of(o, value);
        put_dims(a, &parts, value);
        close_object(member(a, &all, value->name, TV_JSON_ARRAY), &parts);
    }
    close_object(member(a, obj, tv_str_of(key), TV_JSON_OBJECT), &all);
}

static void put_rows(tv_arena *a, object *obj, const char *key, const tv_count_rows *rows)
{
    object all = {0};
    for (size_t i = 0; i < rows->n; i++)
        set_number(a, member(a, &all, rows->v[i].name, TV_JSON_NUMBER), (double)rows->v[i].n);
    close_object(member(a, obj, tv_str_of(key), TV_JSON_OBJECT), &all);
}

static void put_opsets(tv_onnx *o, object *obj)
{
    tv_arena *a = o->g->a;
    object all = {0};
    for (size_t i = 0; i < o->opsets.n; i++) {
        const tv_opset *s = &o->opsets.v[i];
        set_number(a, member(a, &all, s->domain.n ? s->domain : TV_S("ai.onnx"), TV_JSON_NUMBER),
                   (double)s->version);
    }
    close_object(member(a, obj, TV_S("opset"), TV_JSON_OBJECT), &all);
}

/* metadata_props: what exporters and trainers noted. Long texts are lists of labels. */
static void put_properties(tv_onnx *o, object *obj)
{
    enum { longest = 1000 };
    tv_arena *a = o->g->a;
    object all = {0};
    tv_names seen = {0};
    for (size_t i = 0; i + 1 < o->properties.n; i += 2) {
        uint32_t *slot = tv_names_slot(a, &seen, o->properties.v[i]);
        if (!*slot && o->properties.v[i + 1].n <= longest)
            member(a, &all, o->properties.v[i], TV_JSON_STRING)->s = o->properties.v[i + 1];
        *slot = 1;
    }
    if (all.n)
        close_object(member(a, obj, TV_S("properties"), TV_JSON_OBJECT), &all);
}

static void put_counts(tv_onnx *o, object *obj, size_t n_functions)
{
    tv_arena *a = o->g->a;
    const tv_onnx_counts *c = &o->counts;
    put_num(a, obj, "n_nodes", c->nodes);
    put_num(a, obj, "subgraphs", c->subgraphs);
    put_num(a, obj, "n_subgraph_nodes", c->subgraph_nodes);
    put_num(a, obj, "n_initializers", c->initializers);
    put_num(a, obj, "initializer_elements", c->initializer_elements);
    put_num(a, obj, "subgraph_initializers", c->subgraph_initializers);
    put_num(a, obj, "subgraph_initializer_elements", c->subgraph_initializer_elements);
    put_num(a, obj, "constant_nodes", c->constants);
    put_num(a, obj, "constant_elements", c->constant_elements);
    put_num(a, obj, "external", c->external);
    put_num(a, obj, "sparse_initializers", c->sparse);
    put_num(a, obj, "n_value_info", c->value_infos);
    put_num(a, obj, "functions", (double)n_functions);
    put_num(a, obj, "inputs_that_are_initializers", c->inputs_stored);
    put_num(a, obj, "training_graphs", c->training);
}

const tv_json *tv_onnx_facts(tv_onnx *o, const tv_program *p)
{
    tv_arena *a = o->g->a;
    object all = {0};
    tv_json *doc = tv_new(a, tv_json, 1);
    put_str(a, &all, "format", TV_S("onnx"));
    put_num(a, &all, "ir_version", (double)o->ir_version);
    put_opsets(o, &all);
    put_str(a, &all, "producer", p->producer);
    put_str(a, &all, "domain", o->model_domain);
    put_num(a, &all, "model_version", (double)o->model_version);
    put_str(a, &all, "graph", o->graph_name);
    put_counts(o, &all, p->n_functions);
    put_rows(a, &all, "init_dtypes", &o->rows[TV_ONNX_TYPES]);
    put_values(o, &all, "inputs", p->main->inputs, p->main->n_inputs);
    put_values(o, &all, "outputs", p->main->outputs, p->main->n_outputs);
    put_rows(a, &all, "ops", &o->rows[TV_ONNX_OPS]);
    put_properties(o, &all);
    doc->type = TV_JSON_OBJECT;
    close_object(doc, &all);
    return doc;
}
