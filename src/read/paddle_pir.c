/* A program of Paddle 3's intermediate representation as JSON (inference.json, model.json). The
 * top list of operators is read one by one, so that memory follows the program and not the text.
 * Lists of tensors (builtin.combine, split, slice) are resolved here: every operand is a tensor.
 * Layout: Paddle, paddle/fluid/pir/serialize_deserialize (schema.h, ir_serialize.h). */
#include "paddle.h"

#include <math.h>

typedef struct index_list {
    uint32_t *v;
    size_t n;
    size_t cap;
} index_list;

typedef struct node_list {
    tv_node *v;
    size_t n;
    size_t cap;
} node_list;

typedef struct slot_list {
    tv_slot *v;
    size_t n;
    size_t cap;
} slot_list;

/* What an id of the file stands for: one value, or several where its type is a list. */
typedef struct meaning {
    uint32_t first; /* in pir.refs */
    uint32_t n;
    bool known;
} meaning;

typedef struct meaning_list {
    meaning *v;
    size_t n;
    size_t cap;
} meaning_list;

typedef struct pir {
    tv_gather *g;
    tv_arena *a;
    tv_arena *scratch; /* one operator's document */
    tv_str path;
    tv_str text;
    tv_value_list values;
    index_list refs;
    meaning_list results, arguments; /* by id, and by -id */
    index_list inputs, outputs;      /* of the main body */
    tv_paddle_weights weights;
    size_t nodes;
    unsigned depth;
    bool is_pir;
    bool trainable;
    int64_t version;
} pir;

static const tv_err *read_body(pir *x, const tv_json *region, tv_body *body);

static const tv_err *broken(const pir *x, const char *id, const char *msgid, const tv_json *at)
{
    return tv_broken(x->g, x->path, id, msgid, at ? at->offset : 0);
}

/* A text that outlives the scratch arena: views of the file stay, unescaped ones are copied. */
static tv_str keep(const pir *x, tv_str s)
{
    const uintptr_t base = (uintptr_t)x->text.p, p = (uintptr_t)s.p;
    return p >= base && p - base <= x->text.n ? s : tv_str_copy(x->a, s);
}

static const tv_err *whole(const pir *x, const tv_json *j, int64_t *v)
{
    if (!tv_json_is_num(j) || j->number != floor(j->number) || fabs(j->number) > 9e18)
        return broken(x, "pir.no-integer", N_("expected a whole number"), j);
    *v = (int64_t)j->number;
    return NULL;
}

/* ---- values ---- */

static meaning *slot_of(pir *x, int64_t id)
{
    meaning_list *list = id < 0 ? &x->arguments : &x->results;
    const uint64_t i = id < 0 ? (uint64_t)-id : (uint64_t)id;
    while (list->n <= i)
        *tv_push(x->a, list) = (meaning){0};
    return &list->v[i];
}

/* Ids count upwards from 1, so that a far one is no id. */
static const tv_err *check_id(const pir *x, int64_t id, const tv_json *at)
{
    const int64_t most = TV_LIMIT_PROGRAM_VALUES;
    if (id < -most || id > most || (uint64_t)(id < 0 ? -id : id) > x->text.n)
        return broken(x, "pir.id", N_("a value's number is out of range"), at);
    return NULL;
}

static const tv_err *define(pir *x, int64_t id, const uint32_t *values, size_t n, const tv_json *at)
{
    TV_TRY(check_id(x, id, at));
    meaning *m = slot_of(x, id);
    if (m->known)
        return broken(x, "pir.twice", N_("a value is put out twice"), at);
    *m = (meaning){(uint32_t)x->refs.n, (uint32_t)n, true};
    for (size_t i = 0; i < n; i++)
        *tv_push(x->a, &x->refs) = values[i];
    return NULL;
}

static const tv_err *read_dims(const pir *x, const tv_json *dims, tv_value *v)
{
    if (dims->type != TV_JSON_ARRAY)
        return broken(x, "pir.no-shape", N_("a shape is no list"), dims);
    if (dims->n > TV_LIMIT_RANK)
        return tv_fail_at(x->a, TV_LIMIT,
                          TV_TEXT0("program.rank", N_("a tensor has too many dimensions")), x->path,
                          dims->offset);
    tv_dim *shape = tv_new(x->a, tv_dim, dims->n ? dims->n : 1);
    for (size_t i = 0; i < dims->n; i++) {
        TV_TRY(whole(x, &dims->items[i], &shape[i].size));
        if (shape[i].size < 0)
            shape[i].size = -1;
    }
    v->shaped = true;
    v->rank = (uint32_t)dims->n;
    v->dims = shape;
    return NULL;
}

typedef struct element_name {
    const char *name;
    tv_dtype type;
} element_name;

static tv_dtype element_type(tv_str name)
{
    static const element_name names[] = {
        {"t_f32", TV_F32},          {"t_f16", TV_F16},        {"t_bf16", TV_BF16},
        {"t_f64", TV_F64},          {"t_i8", TV_I8},          {"t_ui8", TV_U8},
        {"t_i16", TV_I16},          {"t_i32", TV_I32},        {"t_i64", TV_I64},
        {"t_bool", TV_BOOL},        {"t_c64", TV_C64},        {"t_c128", TV_C128},
        {"t_f8e4m3", TV_F8_E4M3},   {"t_f8e5m2", TV_F8_E5M2}, {"t_index", TV_I64},
        {"t_f8e4m3fn", TV_F8_E4M3},
    };
    const tv_str own = tv_str_cut(name, '.').tail;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tv_str_is(own, names[i].name))
            return names[i].type;
    return TV_DTYPE_UNKNOWN;
}

static tv_str kind_of(const tv_json *j)
{
    return tv_json_str(tv_json_get(j, "#"));
}

/* t_dtensor: [{"#": element}, [dims], layout, levels, offset]; a distributed one wraps it. */
static const tv_err *read_type(const pir *x, const tv_json *type, tv_value *v)
{
    const tv_json *d = tv_json_get(type, "D");
    const tv_str kind = tv_str_cut(kind_of(type), '.').tail;
    if (d->type != TV_JSON_ARRAY || d->n == 0)
        return NULL;
    const tv_str inner = tv_str_cut(kind_of(tv_json_at(d, 0)), '.').tail;
    if (tv_str_is(inner, "t_dtensor"))
        return read_type(x, tv_json_at(d, 0), v);
    if (tv_str_is(kind, "t_vec") || d->n < 2)
        return NULL;
    v->list = tv_str_has(kind, TV_S("array"));
    v->dtype = element_type(kind_of(tv_json_at(d, 0)));
    if (v->dtype == TV_DTYPE_UNKNOWN)
        v->dtype_text = keep(x, kind_of(tv_json_at(d, 0)));
    return read_dims(x, tv_json_at(d, 1), v);
}

static const tv_err *add_value(pir *x, tv_value v, uint32_t *index, const tv_json *at)
{
    if (x->values.n == TV_LIMIT_PROGRAM_VALUES)
        return tv_fail_at(x->a, TV_LIMIT,
                          TV_TEXT0("program.too-large",
                                   N_("the program has more nodes or values than any known")),
                          x->path, at->offset);
    *index = (uint32_t)x->values.n;
    *tv_push(x->a, &x->values) = v;
    return NULL;
}

/* A result or an argument: its values are new ones, as many as its type lists. */
static const tv_err *read_result(pir *x, const tv_json *result, int64_t id, index_list *values)
{
    const tv_json *type = tv_json_get(result, "TT"), *list = tv_json_get(type, "D");
    const bool vec = tv_str_ends(kind_of(type), TV_S(".t_vec")) && list->type == TV_JSON_ARRAY;
    const size_t first = values->n;
    for (size_t i = 0; i < (vec ? list->n : 1); i++) {
        tv_value v = {0};
        uint32_t index = TV_NO_VALUE;
        TV_TRY(read_type(x, vec ? tv_json_at(list, i) : type, &v));
        TV_TRY(add_value(x, v, &index, result));
        *tv_push(x->a, values) = index;
    }
    return define(x, id, values->v + first, values->n - first, result);
}

/* ---- operands ---- */

static const tv_err *read_operand(pir *x, const tv_json *operand, index_list *values)
{
    int64_t id = 0;
    TV_TRY(whole(x, tv_json_get(operand, "%"), &id));
    if (id == 0) {
        *tv_push(x->a, values) = TV_NO_VALUE;
        return NULL;
    }
    TV_TRY(check_id(x, id, operand));
    const meaning m = *slot_of(x, id);
    if (!m.known)
        return broken(x, "pir.unknown-value",
                      N_("an operator reads a value that none before it puts out"), operand);
    for (uint32_t i = 0; i < m.n; i++)
        *tv_push(x->a, values) = x->refs.v[m.first + i];
    return NULL;
}

static const tv_err *read_operands(pir *x, const tv_json *list, index_list *values,
                                   slot_list *slots)
{
    for (size_t i = 0; i < list->n; i++) {
        tv_slot slot = {.first = (uint32_t)values->n};
        TV_TRY(read_operand(x, &list->items[i], values));
        slot.n = (uint32_t)(values->n - slot.first);
        *tv_push(x->a, slots) = slot;
        if (values->n > TV_LIMIT_PROGRAM_VALUES)
            return broken(x, "program.too-large",
                          N_("the program has more nodes or values than any known"), list);
    }
    return NULL;
}

static const tv_err *read_results(pir *x, const tv_json *list, index_list *values, slot_list *slots)
{
    for (size_t i = 0; i < list->n; i++) {
        int64_t id = 0;
        tv_slot slot = {.first = (uint32_t)values->n};
        TV_TRY(whole(x, tv_json_get(&list->items[i], "%"), &id));
        if (id == 0)
            *tv_push(x->a, values) = TV_NO_VALUE;
        else
            TV_TRY(read_result(x, &list->items[i], id, values));
        slot.n = (uint32_t)(values->n - slot.first);
        *tv_push(x->a, slots) = slot;
    }
    return NULL;
}

/* ---- attributes ---- */

static bool is_whole(const tv_json *j)
{
    if (j->type == TV_JSON_TRUE || j->type == TV_JSON_FALSE)
        return true;
    return j->type == TV_JSON_NUMBER && j->number == floor(j->number) && fabs(j->number) < 9e18;
}

static int64_t int_of(const tv_json *j)
{
    return j->type == TV_JSON_NUMBER ? (int64_t)j->number : j->type == TV_JSON_TRUE;
}

static double float_of(const tv_json *j)
{
    const tv_str s = tv_json_str(j); /* VD: "NAN", "INF", "-INF" */
    if (tv_str_is(s, "INF"))
        return (double)INFINITY;
    if (tv_str_is(s, "-INF"))
        return (double)-INFINITY;
    return tv_json_num(j, (double)NAN);
}

/* An element of a list: either the value itself, or an attribute of its own. */
static const tv_json *plain(const tv_json *item)
{
    if (item->type != TV_JSON_OBJECT)
        return item;
    const tv_json *d = tv_json_get(item, "D");
    return d->type == TV_JSON_END ? tv_json_get(item, "VD") : d;
}

static bool is_float_kind(const tv_json *at)
{
    const tv_str kind = tv_str_cut(kind_of(at), '.').tail;
    return tv_str_is(kind, "a_f32") || tv_str_is(kind, "a_f64");
}

static void read_list(const pir *x, const tv_json *list, tv_attr *attr)
{
    bool ints = true, strings = list->n > 0;
    attr->n = list->n;
    if (list->n > TV_LIMIT_PROGRAM_CONST_ELEMENTS)
        return; /* contents that are not kept: kind NONE */
    for (size_t i = 0; i < list->n; i++) {
        const tv_json *item = plain(&list->items[i]);
        ints = ints && is_whole(item) && !is_float_kind(&list->items[i]);
        strings = strings && item->type == TV_JSON_STRING;
    }
    attr->kind = strings ? TV_ATTR_STRINGS : ints ? TV_ATTR_INTS : TV_ATTR_FLOATS;
    tv_str *s = tv_new(x->a, tv_str, strings ? list->n : 0);
    int64_t *v = tv_new(x->a, int64_t, ints && !strings ? list->n : 0);
    double *f = tv_new(x->a, double, !ints && !strings ? list->n : 0);
    for (size_t i = 0; i < list->n; i++) {
        const tv_json *item = plain(&list->items[i]);
        if (strings)
            s[i] = keep(x, item->s);
        else if (ints)
            v[i] = int_of(item);
        else
            f[i] = float_of(item);
    }
    if (strings)
        attr->u.strings = s;
    else if (ints)
        attr->u.ints = v;
    else
        attr->u.floats = f;
}

static void read_value(const pir *x, const tv_json *at, tv_attr *attr)
{
    const tv_str kind = tv_str_cut(kind_of(at), '.').tail;
    const tv_json *d = plain(at);
    if (tv_str_is(kind, "a_dtype")) {
        attr->kind = TV_ATTR_DTYPE;
        attr->u.dtype = tv_dtype_named(tv_json_str(d));
    } else if (tv_str_is(kind, "a_place")) {
        attr->kind = TV_ATTR_NONE;
    } else if (d->type == TV_JSON_ARRAY) {
        read_list(x, d, attr);
    } else if (is_float_kind(at)) {
        attr->kind = TV_ATTR_FLOAT;
        attr->u.f = float_of(d);
    } else if (d->type == TV_JSON_STRING) {
        attr->kind = TV_ATTR_STRING;
        attr->u.s = keep(x, d->s);
    } else if (is_whole(d)) {
        attr->kind = TV_ATTR_INT;
        attr->u.i = int_of(d);
    } else if (d->type == TV_JSON_NUMBER) {
        attr->kind = TV_ATTR_FLOAT;
        attr->u.f = d->number;
    }
}

static void read_attrs(const pir *x, const tv_json *list, tv_node *node, size_t extra)
{
    tv_attr *attrs = tv_new(x->a, tv_attr, list->n + extra);
    for (size_t i = 0; i < list->n; i++) {
        const tv_json *name = tv_json_get(&list->items[i], "N");
        tv_attr attr = {.name = keep(x, tv_json_str(name))};
        read_value(x, tv_json_get(&list->items[i], "AT"), &attr);
        if (tv_str_is(attr.name, "struct_name") && attr.kind == TV_ATTR_STRING)
            node->name = attr.u.s;
        else if (attr.name.n && attr.kind != TV_ATTR_NONE && !tv_str_is(attr.name, "op_callstack"))
            attrs[node->n_attrs++] = attr;
    }
    node->attrs = attrs;
}

/* "/Sequential_6/Conv2D/" as a module path: Sequential_6.Conv2D. */
static tv_str module_path(const pir *x, tv_str s)
{
    tv_buf b = tv_buf_in(x->a);
    while (s.n) {
        const tv_cut c = tv_str_cut(s, '/');
        if (c.head.n && b.n)
            tv_puts(&b, ".");
        tv_put(&b, c.head);
        s = c.tail;
    }
    return tv_buf_str(&b);
}

/* ---- operators that are no nodes ---- */

static const tv_json *attr_named(const tv_json *op, const char *name)
{
    const tv_json *list = tv_json_get(op, "A");
    for (size_t i = 0; i < list->n; i++)
        if (tv_str_is(tv_json_str(tv_json_get(&list->items[i], "N")), name))
            return plain(tv_json_get(&list->items[i], "AT"));
    return tv_json_at(NULL, 0);
}

static const tv_json *first_result(const tv_json *op)
{
    const tv_json *o = tv_json_get(op, "O");
    return o->type == TV_JSON_ARRAY ? tv_json_at(o, 0) : o;
}

typedef struct flags {
    bool persistable, stop_gradient, trainable;
} flags;

/* "p": A is [is_distributed, is_parameter, need_clip, name], OA [persistable, stop_gradient,
 * trainable]; a long form names its attributes. */
static flags parameter_flags(const tv_json *op)
{
    const tv_json *oa = tv_json_get(op, "OA");
    if (tv_json_is_num(tv_json_at(oa, 0)))
        return (flags){tv_json_num(tv_json_at(oa, 0), 1) != 0,
                       tv_json_num(tv_json_at(oa, 1), 0) != 0,
                       tv_json_num(tv_json_at(oa, 2), 1) != 0};
    return (flags){.persistable = true, .trainable = true};
}

static const tv_err *read_parameter(pir *x, const tv_json *op)
{
    const tv_json *result = first_result(op);
    const flags f = parameter_flags(op);
    tv_str name = tv_json_str(tv_json_at(tv_json_get(op, "A"), 3));
    index_list values = {0};
    int64_t id = 0;
    if (name.n == 0)
        name = tv_json_str(attr_named(op, "parameter_name"));
    if (name.n == 0)
        return broken(x, "pir.no-name", N_("a parameter has no name"), op);
    TV_TRY(whole(x, tv_json_get(result, "%"), &id));
    TV_TRY(read_result(x, result, id, &values));
    if (values.n != 1)
        return broken(x, "pir.parameter", N_("a parameter is no single tensor"), op);
    tv_value *v = &x->values.v[values.v[0]];
    v->name = keep(x, name);
    v->role = TV_VALUE_WEIGHT;
    v->buffer = !f.persistable || (v->dtype && !tv_dtype_of(v->dtype)->is_float);
    v->frozen = f.stop_gradient && !f.trainable;
    if (f.persistable)
        *tv_push(x->a, &x->weights) = (tv_paddle_weight){v->name, values.v[0]};
    return NULL;
}

/* data, feed: the user's. */
static const tv_err *read_input(pir *x, const tv_json *op)
{
    index_list values = {0};
    slot_list slots = {0};
    TV_TRY(read_results(x, tv_json_get(op, "O"), &values, &slots));
    for (size_t i = 0; i < values.n; i++) {
        if (values.v[i] == TV_NO_VALUE)
            continue;
        tv_value *v = &x->values.v[values.v[i]];
        v->name = keep(x, tv_json_str(attr_named(op, "name")));
        v->role = TV_VALUE_INPUT;
        *tv_push(x->a, &x->inputs) = values.v[i];
    }
    return NULL;
}

/* fetch, shadow_output: what the program is run for; the results are the operands. */
static const tv_err *read_output(pir *x, const tv_json *op)
{
    index_list values = {0};
    slot_list slots = {0};
    TV_TRY(read_operands(x, tv_json_get(op, "I"), &values, &slots));
    for (size_t i = 0; i < values.n; i++)
        if (values.v[i] != TV_NO_VALUE)
            *tv_push(x->a, &x->outputs) = values.v[i];
    return NULL;
}

static const tv_err *same_values(pir *x, const tv_json *result, const uint32_t *values, size_t n)
{
    int64_t id = 0;
    TV_TRY(whole(x, tv_json_get(result, "%"), &id));
    return define(x, id, values, n, result);
}

/* combine: the list is its operands. slice: one of them. split: each one. */
static const tv_err *read_list_op(pir *x, const tv_json *op, tv_str name)
{
    const tv_json *results = tv_json_get(op, "O");
    index_list values = {0};
    slot_list slots = {0};
    TV_TRY(read_operands(x, tv_json_get(op, "I"), &values, &slots));
    if (tv_str_is(name, "combine"))
        return same_values(x, tv_json_at(results, 0), values.v, values.n);
    if (tv_str_is(name, "slice")) {
        const double i = tv_json_num(attr_named(op, "index"), -1);
        if (!(i >= 0 && i < (double)values.n))
            return broken(x, "pir.slice", N_("a list is read past its end"), op);
        return same_values(x, tv_json_at(results, 0), values.v + (size_t)i, 1);
    }
    if (results->n != values.n)
        return broken(x, "pir.slice", N_("a list is read past its end"), op);
    for (size_t i = 0; i < results->n; i++)
        TV_TRY(same_values(x, &results->items[i], values.v + i, 1));
    return NULL;
}

/* ---- nodes ---- */

/* Running statistics are the only weights that an operator of the forward pass writes. */
static void mark_statistics(pir *x, const tv_node *n)
{
    if (!tv_str_has(n->op, TV_S("batch_norm")))
        return;
    for (size_t i = 1; i <= 2 && i < n->n_inputs; i++)
        if (n->inputs[i] != TV_NO_VALUE && x->values.v[n->inputs[i]].role == TV_VALUE_WEIGHT)
            x->values.v[n->inputs[i]].buffer = true;
}

static const tv_err *read_regions(pir *x, const tv_json *regions, tv_node *node)
{
    if (regions->n == 0)
        return NULL;
    const tv_body **bodies = tv_new(x->a, const tv_body *, regions->n);
    for (size_t i = 0; i < regions->n; i++) {
        tv_body *body = tv_new(x->a, tv_body, 1);
        TV_TRY(read_body(x, &regions->items[i], body));
        bodies[i] = body;
    }
    tv_attr *attrs = tv_new(x->a, tv_attr, node->n_attrs + 1);
    for (size_t i = 0; i < node->n_attrs; i++)
        attrs[i] = node->attrs[i];
    attrs[node->n_attrs++] = (tv_attr){
        .name = TV_S("regions"), .kind = TV_ATTR_BODIES, .n = regions->n, .u.bodies = bodies};
    node->attrs = attrs;
    return NULL;
}

/* "1.conv2d": pd_op needs no domain, it is the dialect itself. */
static tv_str domain_of(tv_str dialect)
{
    static const char *const names[] = {"builtin", "", "cf", "custom_op", "dist"};
    const tv_u64_read n = tv_str_u64(dialect);
    return n.ok && n.v < sizeof names / sizeof *names ? tv_str_of(names[n.v]) : dialect;
}

static const tv_err *read_node(pir *x, const tv_json *op, tv_cut name, node_list *nodes)
{
    index_list in = {0}, out = {0};
    slot_list in_slots = {0}, out_slots = {0};
    tv_node node = {.op = keep(x, name.tail), .domain = keep(x, domain_of(name.head))};
    if (x->nodes++ == TV_LIMIT_PROGRAM_NODES)
        return broken(x, "program.too-large",
                      N_("the program has more nodes or values than any known"), op);
    TV_TRY(read_operands(x, tv_json_get(op, "I"), &in, &in_slots));
    read_attrs(x, tv_json_get(op, "A"), &node, 0);
    TV_TRY(read_regions(x, tv_json_get(op, "regions"), &node));
    TV_TRY(read_results(x, tv_json_get(op, "O"), &out, &out_slots));
    node.name = module_path(x, node.name);
    node.inputs = in.v;
    node.n_inputs = in.n;
    node.input_slots = in_slots.v;
    node.n_input_slots = in_slots.n;
    node.outputs = out.v;
    node.n_outputs = out.n;
    node.output_slots = out_slots.v;
    node.n_output_slots = out_slots.n;
    mark_statistics(x, &node);
    *tv_push(x->a, nodes) = node;
    return NULL;
}

/* yields: where a region's operands of its last operator go; NULL for the main one. */
static const tv_err *read_op(pir *x, const tv_json *op, node_list *nodes, index_list *yields)
{
    const tv_str full = kind_of(op);
    const tv_cut name = tv_str_cut(full, '.');
    if (op->type != TV_JSON_OBJECT || full.n == 0)
        return broken(x, "pir.no-op", N_("an operator has no name"), op);
    if (tv_str_is(full, "p") || tv_str_is(full, "0.parameter"))
        return read_parameter(x, op);
    if (tv_str_is(full, "1.data") || tv_str_is(full, "1.feed"))
        return read_input(x, op);
    if (tv_str_is(full, "1.fetch") || tv_str_is(full, "0.shadow_output"))
        return read_output(x, op);
    if (tv_str_is(name.head, "0") &&
        (tv_str_is(name.tail, "combine") || tv_str_is(name.tail, "slice") ||
         tv_str_is(name.tail, "split")))
        return read_list_op(x, op, name.tail);
    if (tv_str_is(full, "2.yield") && yields) {
        slot_list slots = {0};
        return read_operands(x, tv_json_get(op, "I"), yields, &slots);
    }
    if (!name.found)
        return broken(x, "pir.no-op", N_("an operator has no name"), op);
    return read_node(x, op, name, nodes);
}

static const tv_err *read_arguments(pir *x, const tv_json *args, index_list *values)
{
    for (size_t i = 0; i < args->n; i++) {
        const tv_json *arg = &args->items[i];
        int64_t id = 0;
        TV_TRY(whole(x, tv_json_get(arg, tv_json_has(arg, "%") ? "%" : "#"), &id));
        TV_TRY(read_result(x, arg, id, values));
    }
    return NULL;
}

/* A region has one block; several (branches of a lower level) are not written to files. */
static const tv_err *read_body(pir *x, const tv_json *region, tv_body *body)
{
    const tv_json *blocks = tv_json_get(region, "blocks"), *block = tv_json_at(blocks, 0);
    const tv_json *ops = tv_json_get(block, "ops");
    index_list inputs = {0}, outputs = {0};
    node_list nodes = {0};
    if (blocks->n != 1)
        return broken(x, "pir.blocks", N_("a region of the program has not one block"), region);
    if (++x->depth > TV_LIMIT_PROGRAM_DEPTH)
        return tv_fail_at(x->a, TV_LIMIT,
                          TV_TEXT0("program.depth", N_("bodies are nested too deeply")), x->path,
                          region->offset);
    body->name = keep(x, kind_of(block));
    TV_TRY(read_arguments(x, tv_json_get(block, "args"), &inputs));
    for (size_t i = 0; i < ops->n; i++)
        TV_TRY(read_op(x, &ops->items[i], &nodes, &outputs));
    *body = (tv_body){body->name, inputs.v, inputs.n, outputs.v, outputs.n, nodes.v, nodes.n};
    x->depth--;
    return NULL;
}

/* ---- the document, read as it comes ---- */

static const tv_err *expect(const pir *x, const tv_json_event *event, tv_json_type type)
{
    if (event->type == type)
        return NULL;
    return tv_broken(x->g, x->path, "pir.layout",
                     N_("the JSON is not laid out as a Paddle program"), event->offset);
}

static const tv_err *stream_ops(pir *x, tv_json_scan *s, node_list *nodes)
{
    for (;;) {
        tv_json_event event;
        tv_json op;
        const tv_mark mark = tv_arena_mark(x->scratch);
        TV_TRY(tv_json_next(s, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        TV_TRY(tv_json_value(s, event, &op));
        TV_TRY(read_op(x, &op, nodes, NULL));
        tv_arena_rewind(x->scratch, mark);
    }
}

/* Walks {... "key": [ {first}, ...]} and stops inside the first element of the named list. */
typedef const tv_err *member_reader(pir *x, tv_json_scan *s, tv_str key, node_list *nodes,
                                    tv_json_event event);

static const tv_err *members(pir *x, tv_json_scan *s, node_list *nodes, member_reader *read)
{
    for (;;) {
        tv_json_event key, event;
        TV_TRY(tv_json_next(s, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        TV_TRY(tv_json_next(s, &event));
        TV_TRY(read(x, s, keep(x, key.s), nodes, event));
    }
}

/* A list of exactly one object. */
static const tv_err *only(pir *x, tv_json_scan *s, node_list *nodes, member_reader *read,
                          tv_json_event event)
{
    TV_TRY(expect(x, &event, TV_JSON_ARRAY));
    TV_TRY(tv_json_next(s, &event));
    TV_TRY(expect(x, &event, TV_JSON_OBJECT));
    TV_TRY(members(x, s, nodes, read));
    TV_TRY(tv_json_next(s, &event));
    return expect(x, &event, TV_JSON_CLOSE);
}

static const tv_err *block_member(pir *x, tv_json_scan *s, tv_str key, node_list *nodes,
                                  tv_json_event event)
{
    if (!tv_str_is(key, "ops"))
        return tv_json_skip(s, event);
    TV_TRY(expect(x, &event, TV_JSON_ARRAY));
    return stream_ops(x, s, nodes);
}

static const tv_err *region_member(pir *x, tv_json_scan *s, tv_str key, node_list *nodes,
                                   tv_json_event event)
{
    if (!tv_str_is(key, "blocks"))
        return tv_json_skip(s, event);
    return only(x, s, nodes, block_member, event);
}

static const tv_err *program_member(pir *x, tv_json_scan *s, tv_str key, node_list *nodes,
                                    tv_json_event event)
{
    if (!tv_str_is(key, "regions"))
        return tv_json_skip(s, event);
    return only(x, s, nodes, region_member, event);
}

static const tv_err *top_member(pir *x, tv_json_scan *s, tv_str key, node_list *nodes,
                                tv_json_event event)
{
    if (tv_str_is(key, "program")) {
        TV_TRY(expect(x, &event, TV_JSON_OBJECT));
        return members(x, s, nodes, program_member);
    }
    if (!tv_str_is(key, "base_code"))
        return tv_json_skip(s, event);
    tv_json base;
    TV_TRY(tv_json_value(s, event, &base));
    x->is_pir = tv_str_is(tv_json_str(tv_json_get(&base, "magic")), "pir");
    x->trainable = tv_json_bool(tv_json_get(&base, "trainable"), false);
    x->version = (int64_t)fmin(fmax(tv_json_num(tv_json_get(&base, "version"), 0), 0), 1e9);
    return NULL;
}

static const tv_err *read_document(pir *x, node_list *nodes)
{
    tv_json_scan s = tv_json_open(x->scratch, x->path, x->text);
    tv_json_event event;
    TV_TRY(tv_json_next(&s, &event));
    TV_TRY(expect(x, &event, TV_JSON_OBJECT));
    TV_TRY(members(x, &s, nodes, top_member));
    TV_TRY(tv_json_next(&s, &event));
    if (!x->is_pir)
        return tv_broken(x->g, x->path, "pir.magic",
                         N_("base_code does not say that this is a Paddle PIR program"), 0);
    return NULL;
}

const tv_err *tv_read_paddle_pir(tv_gather *g, tv_str path, tv_bytes_view bytes,
                                 tv_paddle_program *p)
{
    pir x = {.g = g,
             .a = g->a,
             .path = tv_str_copy(g->a, path),
             .text = {(const char *)bytes.p, bytes.n},
             .scratch = tv_arena_child(g->a, TV_LIMIT_ARENA_BYTES / 2)};
    node_list nodes = {0};
    TV_TRY(read_document(&x, &nodes));
    tv_body *body = tv_new(g->a, tv_body, 1);
    *body = (tv_body){TV_S("block_0"), x.inputs.v, x.inputs.n, x.outputs.v,
                      x.outputs.n,     nodes.v,    nodes.n};
    tv_opset *opset = tv_new(g->a, tv_opset, 1);
    *opset = (tv_opset){TV_S("pir"), x.version};
    *p = (tv_paddle_program){.values = x.values.v, .weights = x.weights};
    p->program = (tv_program){
        .dialect = TV_DIALECT_PADDLE,
        .pir = true,
        .values = x.values.v,
        .n_values = x.values.n,
        .main = body,
        .opsets = opset,
        .n_opsets = 1,
        .producer = TV_S("paddle 3"),
    };
    return tv_paddle_sort(g, x.path, p);
}

bool tv_is_paddle_pir(tv_bytes_view bytes)
{
    const tv_str text = tv_str_take((tv_str){(const char *)bytes.p, bytes.n}, 512);
    return tv_str_has(text, TV_S("\"base_code\"")) && tv_str_has(text, TV_S("\"pir\""));
}

static bool probe(tv_str name, tv_bytes_view bytes)
{
    (void)name;
    return tv_is_paddle_pir(bytes);
}

extern const tv_format tv_format_paddle_pir;
const tv_format tv_format_paddle_pir = {
    .name = "pir",
    .summary = N_("Paddle 3 program (PIR JSON)"),
    .probe = probe,
    .read = tv_read_paddle_model,
};
