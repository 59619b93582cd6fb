/* ONNX's attributes: numbers, texts, tensors, types, subgraphs, and references to the attributes
 * of the local function's call. */
#include "onnx.h"

enum {
    field_name = 1,
    field_f = 2,
    field_i = 3,
    field_s = 4,
    field_t = 5,
    field_g = 6,
    field_floats = 7,
    field_ints = 8,
    field_strings = 9,
    field_tensors = 10,
    field_graphs = 11,
    field_tp = 14,
    field_tps = 15,
    field_type = 20,
    field_ref = 21,
    field_sparse = 22,
    field_sparses = 23,
};

/* AttributeProto.AttributeType by the field that it stands for. */
enum { type_float = 1, type_int, type_string, type_floats = 6, type_ints, type_strings };

typedef struct parts {
    tv_attr *attr;
    tv_scope *scope;
    tv_str owner;
    tv_str ref;
    int32_t type;
    bool has_f, has_i, has_s;
    double f;
    int64_t i;
    tv_str s;
    tv_wire_ints ints;
    tv_wire_floats floats;
    struct {
        tv_str *v;
        size_t n, cap;
    } strings;
    struct {
        uint32_t *v;
        size_t n, cap;
    } values;
    struct {
        const tv_body **v;
        size_t n, cap;
    } bodies;
} parts;

/* What a tensor of an attribute is called: "node.value"; a Constant's has its output's name. */
static tv_str tensor_name(tv_onnx *o, const parts *p)
{
    tv_buf b = tv_buf_in(o->g->a);
    if (tv_str_is(p->attr->name, "value") || tv_str_is(p->attr->name, "sparse_value"))
        return p->owner;
    tv_put(&b, p->owner);
    tv_putc(&b, '.');
    tv_put(&b, p->attr->name);
    return tv_buf_str(&b);
}

static const tv_err *add_tensor(tv_onnx *o, const tv_wire *w, const tv_wire_field *f, parts *p)
{
    tv_wire inner;
    tv_value v;
    double elements = 0;
    const bool sparse = f->number == field_sparse || f->number == field_sparses;
    TV_TRY(tv_wire_enter(w, f, &inner));
    TV_TRY(tv_onnx_tensor(o, inner, sparse ? TV_ONNX_SPARSE : TV_ONNX_ATTRIBUTE, tensor_name(o, p),
                          &v, &elements));
    return tv_onnx_value(o, v, TV_NO_VALUE, tv_push(o->g->a, &p->values));
}

static const tv_err *add_type(tv_onnx *o, const tv_wire *w, const tv_wire_field *f, parts *p)
{
    tv_wire inner;
    tv_value v = {.role = TV_VALUE_NULL, .storage = TV_NO_VALUE};
    TV_TRY(tv_wire_enter(w, f, &inner));
    TV_TRY(tv_onnx_type(o, inner, &v));
    return tv_onnx_value(o, v, TV_NO_VALUE, tv_push(o->g->a, &p->values));
}

static const tv_err *add_graph(tv_onnx *o, const tv_wire *w, const tv_wire_field *f, parts *p)
{
    tv_wire inner;
    TV_TRY(tv_wire_enter(w, f, &inner));
    return tv_onnx_graph(o, inner, p->scope, tv_push(o->g->a, &p->bodies));
}

static const tv_err *read_field(tv_onnx *o, const tv_wire *w, const tv_wire_field *f, parts *p)
{
    tv_str s = {0};
    switch (f->number) {
    case field_f:
        p->has_f = true;
        return tv_wire_f32(w, f, &p->f);
    case field_i:
        p->has_i = true;
        return tv_wire_i64(w, f, &p->i);
    case field_s:
        p->has_s = true;
        return tv_wire_str(w, f, &p->s);
    case field_floats:
        return tv_wire_add_floats(w, f, 4, &p->floats);
    case field_ints:
        return tv_wire_add_ints(w, f, &p->ints);
    case field_strings:
        TV_TRY(tv_wire_str(w, f, &s));
        *tv_push(o->g->a, &p->strings) = s;
        return NULL;
    case field_t:
    case field_tensors:
    case field_sparse:
    case field_sparses:
        return add_tensor(o, w, f, p);
    case field_tp:
    case field_tps:
        return add_type(o, w, f, p);
    case field_g:
    case field_graphs:
        return add_graph(o, w, f, p);
    case field_type:
        return tv_wire_i32(w, f, &p->type);
    case field_ref:
        return tv_wire_str(w, f, &p->ref);
    default:
        return NULL;
    }
}

static void set_list(tv_attr *attr, tv_attr_kind kind, size_t n)
{
    attr->kind = kind;
    attr->n = n;
}

static void decide_single(parts *p)
{
    tv_attr *attr = p->attr;
    const bool untyped = p->type == 0;
    if (p->type == type_float || (untyped && p->has_f)) {
        attr->kind = TV_ATTR_FLOAT;
        attr->u.f = p->f;
    } else if (p->type == type_int || (untyped && p->has_i)) {
        attr->kind = TV_ATTR_INT;
        attr->u.i = p->i;
    } else if (p->type == type_string || (untyped && p->has_s)) {
        attr->kind = TV_ATTR_STRING;
        attr->u.s = p->s;
    }
}

/* Which of the fields is meant; `type` says so where the list or the number is empty: writers
 * leave zeros out. */
static void decide(parts *p)
{
    tv_attr *attr = p->attr;
    if (p->ref.n) {
        attr->kind = TV_ATTR_REF;
        attr->u.s = p->ref;
    } else if (p->ints.kept || p->type == type_ints) {
        set_list(attr, TV_ATTR_INTS, p->ints.kept);
        attr->u.ints = p->ints.v;
    } else if (p->floats.kept || p->type == type_floats) {
        set_list(attr, TV_ATTR_FLOATS, p->floats.kept);
        attr->u.floats = p->floats.v;
    } else if (p->strings.n || p->type == type_strings) {
        set_list(attr, TV_ATTR_STRINGS, p->strings.n);
        attr->u.strings = p->strings.v;
    } else if (p->bodies.n > 1) {
        set_list(attr, TV_ATTR_BODIES, p->bodies.n);
        attr->u.bodies = p->bodies.v;
    } else if (p->bodies.n) {
        attr->kind = TV_ATTR_BODY;
        attr->u.body = p->bodies.v[0];
    } else if (p->values.n > 1) {
        set_list(attr, TV_ATTR_VALUES, p->values.n);
        attr->u.values = p->values.v;
    } else if (p->values.n) {
        attr->kind = TV_ATTR_VALUE;
        attr->u.value = p->values.v[0];
    } else {
        decide_single(p);
    }
}

/* The name stands first, but need not. */
static const tv_err *find_name(tv_wire w, tv_str *name)
{
    tv_wire_field f;
    bool more = true;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        if (f.number == field_name)
            return tv_wire_str(&w, &f, name);
    }
}

const tv_err *tv_onnx_attr(tv_onnx *o, tv_wire w, tv_scope *scope, tv_str owner, tv_attr *attr)
{
    parts p = {.attr = attr, .scope = scope, .owner = owner};
    tv_wire_field f;
    bool more = true;
    p.ints.keep = p.floats.keep = TV_LIMIT_PROGRAM_VALUES;
    *attr = (tv_attr){0};
    TV_TRY(find_name(w, &attr->name));
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            break;
        TV_TRY(read_field(o, &w, &f, &p));
    }
    if (p.ints.n > p.ints.kept || p.floats.n > p.floats.kept)
        return tv_onnx_named(o, (uint64_t)(w.base ? w.p - w.base : 0), "onnx.long-attribute",
                             N_("the attribute \"{name}\" holds too many numbers"), attr->name);
    decide(&p);
    return NULL;
}
