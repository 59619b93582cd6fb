/* ONNX's nodes. Two walks over a body's nodes: the first notes what each puts out, the second
 * looks up what it reads, so that their order in the file does not matter. */
#include "onnx.h"

enum {
    field_input = 1,
    field_output = 2,
    field_name = 3,
    field_op = 4,
    field_attribute = 5,
    field_domain = 7,
    field_overload = 8,
    field_properties = 9,
};

/* ---- names of modules ---- */

/* The exporter of torch 2 that traces calls: "/layer1/layer1.0/conv1/Conv" is a Conv in
 * "layer1.0.conv1". A container's member repeats the container's name. */
static tv_str path_of_scopes(tv_onnx *o, tv_str name)
{
    char *path = tv_new(o->g->a, char, name.n);
    tv_str last = {0};
    size_t n = 0, before = 0; /* before: length without the last part */
    tv_cut c = tv_str_cut(tv_str_drop(name, 1), '/');
    for (; c.found; c = tv_str_cut(c.tail, '/')) {
        const bool member =
            last.n && c.head.n > last.n && c.head.p[last.n] == '.' && tv_str_starts(c.head, last);
        if (member)
            n = before;
        before = n;
        if (n)
            path[n++] = '.';
        for (size_t i = 0; i < c.head.n; i++)
            path[n++] = c.head.p[i];
        last = c.head;
    }
    return (tv_str){path, n};
}

/* torch.export's: "['', 'layer1.0', 'layer1.0.conv1', 'conv2d_3']"; the last is the node. */
static tv_str path_of_list(tv_str list)
{
    tv_str last = {0}, path = {0};
    for (tv_cut open = tv_str_cut(list, '\''); open.found; open = tv_str_cut(open.tail, '\'')) {
        const tv_cut close = tv_str_cut(open.tail, '\'');
        if (!close.found)
            break;
        path = last;
        last = close.head;
        open.tail = close.tail;
    }
    return path;
}

static const tv_err *read_property(const tv_wire *w, const tv_wire_field *f, tv_str *path)
{
    tv_wire inner;
    tv_str key = {0}, value = {0};
    TV_TRY(tv_wire_enter(w, f, &inner));
    TV_TRY(tv_onnx_pair(inner, &key, &value));
    if (tv_str_is(key, "pkg.torch.onnx.name_scopes"))
        *path = path_of_list(value);
    return NULL;
}

/* ---- the first walk ---- */

static tv_str full_op(tv_onnx *o, tv_str op, tv_str overload)
{
    if (overload.n == 0)
        return op;
    tv_buf b = tv_buf_in(o->g->a);
    tv_put(&b, op);
    tv_putc(&b, ':');
    tv_put(&b, overload);
    return tv_buf_str(&b);
}

static const tv_err *declare(tv_onnx *o, tv_scope *scope, tv_str name, uint32_t node, uint64_t at,
                             uint32_t *index)
{
    *index = TV_NO_VALUE;
    if (name.n == 0) /* an optional output that nobody asks for */
        return tv_onnx_value(o, (tv_value){.storage = TV_NO_VALUE}, node, index);
    uint32_t *slot = tv_names_slot(o->g->a, &scope->names, name);
    if (*slot)
        return tv_onnx_named(o, at, "onnx.assigned-twice",
                             N_("the value \"{name}\" is put out twice"), name);
    const tv_value v = {.name = name, .storage = TV_NO_VALUE};
    TV_TRY(tv_onnx_value(o, v, node, index));
    *slot = *index + 1;
    return NULL;
}

typedef struct head {
    tv_str name, overload, path;
    struct {
        uint32_t *v;
        size_t n, cap;
    } outputs;
} head;

static const tv_err *read_head_field(tv_onnx *o, const tv_wire *w, const tv_wire_field *f,
                                     tv_scope *scope, uint32_t i, tv_node *node, head *h)
{
    tv_str s = {0};
    switch (f->number) {
    case field_input:
        node->n_inputs++;
        return NULL;
    case field_attribute:
        node->n_attrs++;
        return NULL;
    case field_output:
        TV_TRY(tv_wire_str(w, f, &s));
        return declare(o, scope, s, i, f->at, tv_push(o->g->a, &h->outputs));
    case field_name:
        return tv_wire_str(w, f, &h->name);
    case field_op:
        return tv_wire_str(w, f, &node->op);
    case field_domain:
        return tv_wire_str(w, f, &node->domain);
    case field_overload:
        return tv_wire_str(w, f, &h->overload);
    case field_properties:
        return read_property(w, f, &h->path);
    default:
        return NULL;
    }
}

static tv_str node_name(tv_onnx *o, const head *h)
{
    if (h->path.n)
        return h->path;
    if (!o->pytorch || h->name.n == 0 || h->name.p[0] != '/')
        return h->name;
    const tv_str path = path_of_scopes(o, h->name);
    return path.n ? path : h->name;
}

static void note_name(tv_onnx *o, tv_names *seen, tv_str name)
{
    if (name.n == 0)
        return;
    uint32_t *slot = tv_names_slot(o->g->a, seen, name);
    if (*slot == 1) {
        o->counts.named_twice++;
        o->counts.same_node = o->counts.same_node.n ? o->counts.same_node : name;
    }
    *slot += *slot < 2;
}

static const tv_err *read_head(tv_onnx *o, tv_wire w, tv_scope *scope, uint32_t i, tv_node *node,
                               tv_names *seen)
{
    head h = {0};
    const uint64_t at = (uint64_t)(w.p - w.base);
    tv_wire_field f;
    bool more = true;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            break;
        TV_TRY(read_head_field(o, &w, &f, scope, i, node, &h));
    }
    if (node->op.n == 0)
        return tv_onnx_named(o, at, "onnx.no-operator", N_("the node \"{name}\" names no operator"),
                             h.name);
    note_name(o, seen, h.name);
    node->op = full_op(o, node->op, h.overload);
    if (tv_str_is(node->domain, "ai.onnx"))
        node->domain = (tv_str){0};
    node->name = node_name(o, &h);
    node->outputs = h.outputs.v;
    node->n_outputs = h.outputs.n;
    tv_onnx_count_row(o, node->domain, TV_ONNX_DOMAINS);
    return NULL;
}

/* ---- the second walk ---- */

/* Remembers, for the order, that the node which is looked up in that scope reads a value of it. */
static void note_reader(const tv_onnx *o, tv_scope *s, uint32_t value, bool inner)
{
    const uint32_t producer = o->producers.v[value];
    if (producer == TV_NO_VALUE)
        return;
    if (producer >= s->at)
        s->late = true;
    if (inner)
        *tv_push(o->g->a, &s->captures) = (tv_capture){s->at, producer};
}

uint32_t tv_onnx_resolve(const tv_onnx *o, tv_scope *scope, tv_str name)
{
    for (tv_scope *s = scope; s; s = s->parent) {
        const uint32_t found = tv_names_find(&s->names, name);
        if (!found)
            continue;
        note_reader(o, s, found - 1, s != scope);
        return found - 1;
    }
    return TV_NO_VALUE;
}

static const tv_err *look_up(tv_onnx *o, const tv_wire *w, const tv_wire_field *f, tv_scope *scope,
                             uint32_t *index)
{
    tv_str name = {0};
    TV_TRY(tv_wire_str(w, f, &name));
    *index = TV_NO_VALUE;
    if (name.n == 0)
        return NULL;
    *index = tv_onnx_resolve(o, scope, name);
    if (*index != TV_NO_VALUE)
        return NULL;
    return tv_onnx_named(o, f->at, "onnx.undefined",
                         N_("a node reads \"{name}\", which nothing puts out"), name);
}

/* The mean and variance that batch normalisation keeps: no gradient reaches them. */
static void mark_buffers(tv_onnx *o, const tv_node *node, const uint32_t *inputs)
{
    if (node->domain.n || !tv_str_is(node->op, "BatchNormalization"))
        return;
    for (size_t i = 3; i < 5 && i < node->n_inputs; i++)
        if (inputs[i] != TV_NO_VALUE && o->values.v[inputs[i]].role == TV_VALUE_WEIGHT)
            o->values.v[inputs[i]].buffer = true;
}

static void count_constant(tv_onnx *o, const tv_node *node)
{
    if (node->domain.n || !tv_str_is(node->op, "Constant"))
        return;
    o->counts.constants++;
    for (size_t i = 0; i < node->n_attrs; i++) {
        const tv_attr *attr = &node->attrs[i];
        if (attr->kind == TV_ATTR_VALUE)
            o->counts.constant_elements += (double)tv_value_elements(&o->values.v[attr->u.value]);
    }
}

static const tv_err *read_body(tv_onnx *o, tv_wire w, tv_scope *scope, tv_node *node)
{
    uint32_t *inputs = tv_new(o->g->a, uint32_t, node->n_inputs + 1);
    tv_attr *attrs = node->n_attrs ? tv_new(o->g->a, tv_attr, node->n_attrs) : NULL;
    size_t n_inputs = 0, n_attrs = 0;
    const tv_str owner = node->n_outputs ? o->values.v[node->outputs[0]].name : node->name;
    tv_wire_field f;
    tv_wire inner;
    bool more = true;
    scope->branches = node->domain.n == 0 && tv_str_is(node->op, "If");
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            break;
        if (f.number == field_input) {
            TV_TRY(look_up(o, &w, &f, scope, &inputs[n_inputs++]));
        } else if (f.number == field_attribute) {
            TV_TRY(tv_wire_enter(&w, &f, &inner));
            TV_TRY(tv_onnx_attr(o, inner, scope, owner, &attrs[n_attrs++]));
        }
    }
    node->inputs = inputs;
    node->attrs = attrs;
    mark_buffers(o, node, inputs);
    count_constant(o, node);
    return NULL;
}

const tv_err *tv_onnx_nodes(tv_onnx *o, const tv_wire *w, const tv_fields *fields, tv_scope *scope,
                            tv_body *body)
{
    tv_names seen = {0};
    tv_wire inner;
    if (fields->n > TV_LIMIT_PROGRAM_NODES - o->n_nodes)
        return TV_FAIL0(o->g->a, TV_LIMIT, "onnx.too-many-nodes",
                        N_("the program has too many nodes"));
    o->n_nodes += fields->n;
    tv_node *nodes = tv_new(o->g->a, tv_node, fields->n + 1);
    tv_onnx_room(o, fields->n);
    tv_names_room(o->g->a, &scope->names, fields->n);
    tv_names_room(o->g->a, &seen, fields->n);
    for (size_t i = 0; i < fields->n; i++) {
        TV_TRY(tv_wire_enter(w, &fields->v[i], &inner));
        TV_TRY(read_head(o, inner, scope, (uint32_t)i, &nodes[i], &seen));
    }
    for (size_t i = 0; i < fields->n; i++) {
        scope->at = (uint32_t)i;
        TV_TRY(tv_wire_enter(w, &fields->v[i], &inner));
        TV_TRY(read_body(o, inner, scope, &nodes[i]));
    }
    body->nodes = nodes;
    body->n_nodes = fields->n;
    return NULL;
}
