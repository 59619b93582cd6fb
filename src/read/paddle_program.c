/* Paddle's ProgramDesc (.pdmodel, __model__): blocks of variables and operators in protobuf, read
 * in place. Call stacks of the author's machine are passed over, as are the nodes of a backward
 * pass and of an optimizer: training makes its own. Says nothing about what an operator means.
 * Field numbers: Paddle, paddle/fluid/framework/framework.proto. */
#include "paddle.h"

#include <stdlib.h>

#include "paddle_attr.h"

/* framework.proto, VarType.Type: what is no element type. */
enum {
    kind_tensor = 7,
    kind_rows = 8,
    kind_feed = 9,
    kind_fetch = 10,
    kind_array = 13,
};

/* op_proto_maker.h, OpRole. */
enum { role_backward = 1, role_optimize = 2, role_schedule = 16 };

typedef struct field_list {
    tv_wire_field *v;
    size_t n;
    size_t cap;
} field_list;

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

typedef struct attr_list {
    tv_attr *v;
    size_t n;
    size_t cap;
} attr_list;

typedef struct block {
    tv_wire wire; /* inside the block */
    field_list vars;
    field_list ops;
    int64_t parent;
    unsigned depth;
    bool used; /* some operator's attribute names it */
} block;

/* What the walk learns of a value beside what is handed over. */
typedef struct note {
    bool written;
    bool read;
    bool dropped;     /* a node that was left out touches it */
    bool persistable; /* and a tensor */
    bool data;        /* declared as the user's data */
    bool listed;      /* among the inputs */
} note;

typedef struct seat {
    uint32_t block;
    uint32_t value; /* plus one; 0 is free */
} seat;

typedef struct desc {
    tv_gather *g;
    tv_str path;
    tv_wire wire;
    block *blocks;
    size_t n_blocks;
    tv_body *bodies;
    tv_value_list values;
    struct {
        note *v;
        size_t n;
        size_t cap;
    } notes;
    seat *seats; /* open addressing by block and name */
    size_t n_seats;
    index_list feeds, fetches; /* by column */
    size_t backward, optimizer, nodes;
} desc;

/* ---- names ---- */

static size_t home(const desc *d, uint32_t in, tv_str name)
{
    return (size_t)(tv_str_hash(name) + (uint64_t)in * 0x9e3779b97f4a7c15u) & (d->n_seats - 1);
}

static void seat_value(desc *d, uint32_t in, uint32_t value)
{
    size_t i = home(d, in, d->values.v[value].name);
    while (d->seats[i].value)
        i = (i + 1) & (d->n_seats - 1);
    d->seats[i] = (seat){in, value + 1};
}

static uint32_t find_in(const desc *d, uint32_t in, tv_str name)
{
    if (d->n_seats == 0)
        return TV_NO_VALUE;
    for (size_t i = home(d, in, name); d->seats[i].value; i = (i + 1) & (d->n_seats - 1))
        if (d->seats[i].block == in && tv_str_eq(d->values.v[d->seats[i].value - 1].name, name))
            return d->seats[i].value - 1;
    return TV_NO_VALUE;
}

static void widen(desc *d)
{
    const seat *old = d->seats;
    const size_t n = d->n_seats;
    d->n_seats = n ? 2 * n : 1024;
    d->seats = tv_new(d->g->a, seat, d->n_seats);
    for (size_t i = 0; i < n; i++)
        if (old[i].value)
            seat_value(d, old[i].block, old[i].value - 1);
}

static const tv_err *too_many(desc *d)
{
    return tv_in_file(tv_fail(d->g->a, TV_LIMIT,
                              TV_TEXT0("program.too-large",
                                       N_("the program has more nodes or values than any known"))),
                      d->path);
}

static const tv_err *add_value(desc *d, uint32_t in, tv_value value, note n, uint32_t *index)
{
    if (d->values.n == TV_LIMIT_PROGRAM_VALUES)
        return too_many(d);
    if (2 * (d->values.n + 1) > d->n_seats)
        widen(d);
    *index = (uint32_t)d->values.n;
    *tv_push(d->g->a, &d->values) = value;
    *tv_push(d->g->a, &d->notes) = n;
    seat_value(d, in, *index);
    return NULL;
}

/* A name in a block or in one around it; an undeclared one becomes a value of the block. */
static const tv_err *value_named(desc *d, uint32_t in, tv_str name, uint32_t *index)
{
    *index = TV_NO_VALUE;
    if (name.n == 0 || tv_str_is(name, "@EMPTY@"))
        return NULL;
    for (int64_t b = in; b >= 0; b = d->blocks[b].parent)
        if ((*index = find_in(d, (uint32_t)b, name)) != TV_NO_VALUE)
            return NULL;
    return add_value(d, in, (tv_value){.name = name}, (note){0}, index);
}

/* ---- variables ---- */

static const tv_err *rank_too_high(desc *d, const tv_wire_field *f)
{
    return tv_fail_at(d->g->a, TV_LIMIT,
                      TV_TEXT0("program.rank", N_("a tensor has too many dimensions")), d->path,
                      f->at);
}

/* TensorDesc: 1 data_type, 2 dims. */
static const tv_err *read_tensor(desc *d, const tv_wire *w, const tv_wire_field *f, tv_value *v)
{
    tv_wire in;
    tv_wire_ints dims = {.keep = TV_LIMIT_RANK};
    bool more = false;
    uint64_t kind = 0;
    tv_wire_field x;
    TV_TRY(tv_wire_enter(w, f, &in));
    for (;;) {
        TV_TRY(tv_wire_next(&in, &x, &more));
        if (!more)
            break;
        if (x.number == 1)
            TV_TRY(tv_wire_u64(&in, &x, &kind));
        if (x.number == 2)
            TV_TRY(tv_wire_add_ints(&in, &x, &dims));
    }
    v->dtype = tv_paddle_dtype(kind);
    if (v->dtype == TV_DTYPE_UNKNOWN) {
        tv_buf b = tv_buf_in(d->g->a);
        tv_puts(&b, "VarType ");
        tv_put_u64(&b, kind);
        v->dtype_text = tv_buf_str(&b);
    }
    if (dims.n > TV_LIMIT_RANK)
        return rank_too_high(d, f);
    tv_dim *shape = tv_new(d->g->a, tv_dim, dims.n ? dims.n : 1);
    for (size_t i = 0; i < dims.n; i++)
        shape[i].size = dims.v[i] < 0 ? -1 : dims.v[i];
    v->shaped = true;
    v->rank = (uint32_t)dims.n;
    v->dims = shape;
    return NULL;
}

/* lod_tensor and tensor_array: 1 tensor, 2 lod_level. */
static const tv_err *read_leveled(desc *d, const tv_wire *w, const tv_wire_field *f, tv_value *v)
{
    tv_wire in;
    tv_wire_field x;
    bool more = false;
    TV_TRY(tv_wire_enter(w, f, &in));
    for (;;) {
        TV_TRY(tv_wire_next(&in, &x, &more));
        if (!more)
            return NULL;
        if (x.number == 1)
            TV_TRY(read_tensor(d, &in, &x, v));
    }
}

static const tv_err *read_var_type(desc *d, const tv_wire *w, const tv_wire_field *f, tv_value *v,
                                   uint64_t *kind)
{
    tv_wire in;
    tv_wire_field x;
    bool more = false;
    TV_TRY(tv_wire_enter(w, f, &in));
    for (;;) {
        TV_TRY(tv_wire_next(&in, &x, &more));
        if (!more)
            return NULL;
        if (x.number == 1)
            TV_TRY(tv_wire_u64(&in, &x, kind));
        if (x.number == 2)
            TV_TRY(read_tensor(d, &in, &x, v));
        if (x.number == 3 || x.number == 4)
            TV_TRY(read_leveled(d, &in, &x, v));
        v->list = *kind == kind_array;
    }
}

/* VarDesc: 1 name, 2 type, 3 persistable, 4 need_check_feed, 5 is_parameter, 6 stop_gradient. */
static const tv_err *read_var(desc *d, uint32_t in, const tv_wire_field *f)
{
    const block *b = &d->blocks[in];
    tv_wire w;
    tv_wire_field x;
    tv_value v = {0};
    note n = {0};
    uint64_t kind = 0;
    bool more = false, persistable = false;
    TV_TRY(tv_wire_enter(&b->wire, f, &w));
    for (;;) {
        TV_TRY(tv_wire_next(&w, &x, &more));
        if (!more)
            break;
        if (x.number == 1)
            TV_TRY(tv_wire_str(&w, &x, &v.name));
        if (x.number == 2)
            TV_TRY(read_var_type(d, &w, &x, &v, &kind));
        if (x.number == 3)
            TV_TRY(tv_wire_bool(&w, &x, &persistable));
        if (x.number == 4)
            TV_TRY(tv_wire_bool(&w, &x, &n.data));
        if (x.number == 6)
            TV_TRY(tv_wire_bool(&w, &x, &v.frozen));
    }
    /* An exporter may mark every variable: what is not a weight has no such state. */
    n.persistable = persistable && kind == kind_tensor;
    v.frozen = v.frozen && n.persistable;
    uint32_t index = find_in(d, in, v.name);
    return index == TV_NO_VALUE ? add_value(d, in, v, n, &index) : NULL;
}

/* ---- attributes ---- */

static const tv_err *bad_block(desc *d, const tv_wire_field *f)
{
    return tv_broken(d->g, d->path, "paddle.block",
                     N_("an operator names a block that is not inside its own"), f->at);
}

/* Blocks nest as a tree: a child has a higher number than its parent and one operator. */
static const tv_err *child_body(desc *d, uint32_t in, int64_t index, const tv_wire_field *f,
                                const tv_body **body)
{
    if (index <= in || (uint64_t)index >= d->n_blocks)
        return bad_block(d, f);
    block *child = &d->blocks[index];
    if (child->used || child->parent != in)
        return bad_block(d, f);
    child->used = true;
    *body = &d->bodies[index];
    return NULL;
}

static const tv_err *take_bodies(desc *d, uint32_t in, const tv_paddle_attr *raw,
                                 const tv_wire_field *f, tv_attr *attr)
{
    if (raw->ints.n != raw->ints.kept)
        return bad_block(d, f);
    const tv_body **bodies = tv_new(d->g->a, const tv_body *, raw->ints.kept + 1);
    for (size_t i = 0; i < raw->ints.kept; i++)
        TV_TRY(child_body(d, in, raw->ints.v[i], f, &bodies[i]));
    attr->kind = raw->type == TV_PADDLE_BLOCK ? TV_ATTR_BODY : TV_ATTR_BODIES;
    attr->n = raw->ints.kept;
    if (attr->kind == TV_ATTR_BODIES)
        attr->u.bodies = bodies;
    else if (attr->n)
        attr->u.body = bodies[0];
    else
        attr->kind = TV_ATTR_NONE;
    return NULL;
}

static const tv_err *take_values(desc *d, uint32_t in, const tv_paddle_attr *raw, tv_attr *attr)
{
    uint32_t *values = tv_new(d->g->a, uint32_t, raw->strings.n + 1);
    for (size_t i = 0; i < raw->strings.n; i++)
        TV_TRY(value_named(d, in, raw->strings.v[i], &values[i]));
    attr->kind = TV_ATTR_VALUES;
    attr->n = raw->strings.n;
    attr->u.values = values;
    if (raw->type == TV_PADDLE_VAR && attr->n) {
        attr->kind = TV_ATTR_VALUE;
        attr->u.value = values[0];
    }
    return NULL;
}

static const tv_err *take_attr(desc *d, uint32_t in, const tv_paddle_attr *raw,
                               const tv_wire_field *f, tv_attr *attr)
{
    *attr = (tv_attr){.name = raw->name};
    if (raw->type == TV_PADDLE_BLOCK || raw->type == TV_PADDLE_BLOCKS)
        return take_bodies(d, in, raw, f, attr);
    if (raw->type == TV_PADDLE_VAR || raw->type == TV_PADDLE_VARS)
        return take_values(d, in, raw, attr);
    tv_paddle_take_attr(raw, attr);
    return NULL;
}

/* ---- operators ---- */

/* Var: 1 parameter (the slot), 2 arguments. */
static const tv_err *read_slot(desc *d, uint32_t in, const tv_wire *w, const tv_wire_field *f,
                               slot_list *slots, index_list *values)
{
    tv_wire inner;
    tv_wire_field x;
    bool more = false;
    tv_slot slot = {.first = (uint32_t)values->n};
    TV_TRY(tv_wire_enter(w, f, &inner));
    for (;;) {
        tv_str name;
        TV_TRY(tv_wire_next(&inner, &x, &more));
        if (!more)
            break;
        if (x.number == 1)
            TV_TRY(tv_wire_str(&inner, &x, &slot.name));
        if (x.number != 2)
            continue;
        uint32_t value = TV_NO_VALUE;
        TV_TRY(tv_wire_str(&inner, &x, &name));
        TV_TRY(value_named(d, in, name, &value));
        *tv_push(d->g->a, values) = value;
    }
    slot.n = (uint32_t)(values->n - slot.first);
    if (slot.n)
        *tv_push(d->g->a, slots) = slot;
    return NULL;
}

typedef struct op {
    tv_node node;
    slot_list in_slots, out_slots;
    index_list in, out;
    attr_list attrs;
    field_list raw; /* the attributes' fields, until it is known that the node is kept */
    int64_t role;
} op;

/* The role of a node decides whether it is kept, so it is looked for before its blocks. */
static const tv_err *read_role(desc *d, const tv_wire *w, const tv_wire_field *f, op *o)
{
    tv_wire in;
    tv_wire_field x;
    tv_str name = {0};
    bool more = false;
    (void)d;
    TV_TRY(tv_wire_enter(w, f, &in));
    TV_TRY(tv_wire_next(&in, &x, &more));
    if (more && x.number == 1)
        TV_TRY(tv_wire_str(&in, &x, &name));
    while (more && tv_str_is(name, "op_role")) {
        TV_TRY(tv_wire_next(&in, &x, &more));
        if (more && x.number == 3)
            TV_TRY(tv_wire_i64(&in, &x, &o->role));
    }
    return NULL;
}

/* OpDesc: 1 inputs, 2 outputs, 3 type, 4 attrs. */
static const tv_err *read_op_fields(desc *d, uint32_t in, const tv_wire *w, op *o)
{
    tv_wire walk = *w;
    tv_wire_field x;
    bool more = false;
    for (;;) {
        TV_TRY(tv_wire_next(&walk, &x, &more));
        if (!more)
            return NULL;
        if (x.number == 1)
            TV_TRY(read_slot(d, in, &walk, &x, &o->in_slots, &o->in));
        if (x.number == 2)
            TV_TRY(read_slot(d, in, &walk, &x, &o->out_slots, &o->out));
        if (x.number == 3)
            TV_TRY(tv_wire_str(&walk, &x, &o->node.op));
        if (x.number == 4) {
            TV_TRY(read_role(d, &walk, &x, o));
            *tv_push(d->g->a, &o->raw) = x;
        }
    }
}

static const tv_err *read_attrs(desc *d, uint32_t in, const tv_wire *w, op *o)
{
    for (size_t i = 0; i < o->raw.n; i++) {
        tv_paddle_attr raw;
        tv_attr attr;
        TV_TRY(tv_paddle_read_attr(w, &o->raw.v[i], &raw));
        if (raw.name.n == 0 || tv_paddle_passes_over(raw.name) || tv_str_is(raw.name, "op_role"))
            continue;
        TV_TRY(take_attr(d, in, &raw, &o->raw.v[i], &attr));
        *tv_push(d->g->a, &o->attrs) = attr;
    }
    return NULL;
}

static int64_t column_of(const op *o)
{
    for (size_t i = 0; i < o->attrs.n; i++)
        if (tv_str_is(o->attrs.v[i].name, "col") && o->attrs.v[i].kind == TV_ATTR_INT)
            return o->attrs.v[i].u.i;
    return 0;
}

static const tv_err *put_column(desc *d, index_list *list, int64_t column, uint32_t value)
{
    if (column < 0 || column >= TV_LIMIT_PROGRAM_CONST_ELEMENTS)
        return tv_broken(d->g, d->path, "paddle.column",
                         N_("a feed or fetch operator has no sensible column"), 0);
    while (list->n <= (size_t)column)
        *tv_push(d->g->a, list) = TV_NO_VALUE;
    list->v[column] = value;
    return NULL;
}

/* "conv2d_3.w_0" and "conv2d_3.tmp_0" belong to the layer "conv2d_3". */
static tv_str layer_name(const desc *d, const op *o)
{
    for (size_t i = 0; i < o->in.n; i++)
        if (o->in.v[i] != TV_NO_VALUE && d->notes.v[o->in.v[i]].persistable)
            return tv_str_cut(d->values.v[o->in.v[i]].name, '.').head;
    for (size_t i = 0; i < o->out.n; i++)
        if (o->out.v[i] != TV_NO_VALUE)
            return tv_str_cut(d->values.v[o->out.v[i]].name, '.').head;
    return (tv_str){0};
}

static void note_operands(desc *d, const op *o)
{
    for (size_t i = 0; i < o->in.n; i++)
        if (o->in.v[i] != TV_NO_VALUE)
            d->notes.v[o->in.v[i]].read = true;
    for (size_t i = 0; i < o->out.n; i++)
        if (o->out.v[i] != TV_NO_VALUE)
            d->notes.v[o->out.v[i]].written = true;
}

static void drop(desc *d, const op *o)
{
    if (o->role & role_backward)
        d->backward++;
    else
        d->optimizer++;
    for (size_t i = 0; i < o->in.n; i++)
        if (o->in.v[i] != TV_NO_VALUE)
            d->notes.v[o->in.v[i]].dropped = true;
    for (size_t i = 0; i < o->out.n; i++)
        if (o->out.v[i] != TV_NO_VALUE)
            d->notes.v[o->out.v[i]].dropped = true;
}

static void take_node(desc *d, op *o, node_list *nodes)
{
    o->node.name = layer_name(d, o);
    o->node.inputs = o->in.v;
    o->node.n_inputs = o->in.n;
    o->node.outputs = o->out.v;
    o->node.n_outputs = o->out.n;
    o->node.input_slots = o->in_slots.v;
    o->node.n_input_slots = o->in_slots.n;
    o->node.output_slots = o->out_slots.v;
    o->node.n_output_slots = o->out_slots.n;
    o->node.attrs = o->attrs.v;
    o->node.n_attrs = o->attrs.n;
    *tv_push(d->g->a, nodes) = o->node;
}

static const tv_err *read_op(desc *d, uint32_t in, const tv_wire_field *f, node_list *nodes)
{
    op o = {0};
    tv_wire w;
    TV_TRY(tv_wire_enter(&d->blocks[in].wire, f, &w));
    TV_TRY(read_op_fields(d, in, &w, &o));
    if (o.node.op.n == 0)
        return tv_broken(d->g, d->path, "paddle.no-type", N_("an operator has no type"), f->at);
    if (o.role & (role_backward | role_optimize | role_schedule)) {
        drop(d, &o);
        return NULL;
    }
    if (d->nodes++ == TV_LIMIT_PROGRAM_NODES)
        return too_many(d);
    TV_TRY(read_attrs(d, in, &w, &o));
    if (tv_str_is(o.node.op, "feed") && o.out.n && o.out.v[0] != TV_NO_VALUE) {
        d->notes.v[o.out.v[0]].data = true;
        return put_column(d, &d->feeds, column_of(&o), o.out.v[0]);
    }
    if (tv_str_is(o.node.op, "fetch") && o.in.n && o.in.v[0] != TV_NO_VALUE) {
        d->notes.v[o.in.v[0]].read = true;
        return put_column(d, &d->fetches, column_of(&o), o.in.v[0]);
    }
    note_operands(d, &o);
    take_node(d, &o, nodes);
    return NULL;
}

/* ---- blocks ---- */

/* BlockDesc: 1 idx, 2 parent_idx, 3 vars, 4 ops. */
static const tv_err *read_block(desc *d, uint32_t index, const tv_wire_field *f)
{
    block *b = &d->blocks[index];
    bool more = false;
    int32_t parent = -1;
    int32_t idx = (int32_t)index;
    tv_wire_field x;
    TV_TRY(tv_wire_enter(&d->wire, f, &b->wire));
    tv_wire walk = b->wire;
    for (;;) {
        TV_TRY(tv_wire_next(&walk, &x, &more));
        if (!more)
            break;
        if (x.number == 1)
            TV_TRY(tv_wire_i32(&walk, &x, &idx));
        if (x.number == 2)
            TV_TRY(tv_wire_i32(&walk, &x, &parent));
        if (x.number == 3)
            *tv_push(d->g->a, &b->vars) = x;
        if (x.number == 4)
            *tv_push(d->g->a, &b->ops) = x;
    }
    /* The root's parent is -1; a file that leaves it out means the same. */
    b->parent = index == 0 || parent < 0 ? -1 : parent;
    if (idx != (int32_t)index || b->parent >= (int64_t)index)
        return tv_broken(d->g, d->path, "paddle.block-order",
                         N_("the blocks are not numbered from the outermost inwards"), f->at);
    b->depth = b->parent < 0 ? 0 : d->blocks[b->parent].depth + 1;
    if (b->depth >= TV_LIMIT_PROGRAM_DEPTH)
        return tv_fail_at(d->g->a, TV_LIMIT,
                          TV_TEXT0("program.depth", N_("bodies are nested too deeply")), d->path,
                          f->at);
    return NULL;
}

static const tv_err *read_body(desc *d, uint32_t index)
{
    const block *b = &d->blocks[index];
    node_list nodes = {0};
    for (size_t i = 0; i < b->ops.n; i++)
        TV_TRY(read_op(d, index, &b->ops.v[i], &nodes));
    d->bodies[index].nodes = nodes.v;
    d->bodies[index].n_nodes = nodes.n;
    return NULL;
}

static const tv_err *read_blocks(desc *d, const field_list *list)
{
    d->blocks = tv_new(d->g->a, block, list->n);
    d->bodies = tv_new(d->g->a, tv_body, list->n);
    d->n_blocks = list->n;
    for (size_t i = 0; i < list->n; i++)
        TV_TRY(read_block(d, (uint32_t)i, &list->v[i]));
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < d->blocks[i].vars.n; k++)
            TV_TRY(read_var(d, (uint32_t)i, &d->blocks[i].vars.v[k]));
    for (size_t i = 0; i < list->n; i++)
        TV_TRY(read_body(d, (uint32_t)i));
    return NULL;
}

/* ---- what the values are ---- */

static bool is_weight(const desc *d, size_t i)
{
    const tv_str name = d->values.v[i].name;
    const note *n = &d->notes.v[i];
    if (!n->persistable || n->data || tv_str_is(name, "feed") || tv_str_is(name, "fetch"))
        return false;
    return n->read || !n->dropped; /* else an optimizer's state */
}

/* A weight that the forward pass itself writes is a running statistic; integers have no
 * gradient. */
static void set_weight(desc *d, size_t i, tv_paddle_weights *weights)
{
    tv_value *v = &d->values.v[i];
    v->role = TV_VALUE_WEIGHT;
    v->buffer = d->notes.v[i].written || (v->dtype && !tv_dtype_of(v->dtype)->is_float);
    *tv_push(d->g->a, weights) = (tv_paddle_weight){v->name, (uint32_t)i};
}

static void list_input(desc *d, index_list *inputs, uint32_t value)
{
    if (value == TV_NO_VALUE || d->notes.v[value].listed)
        return;
    d->notes.v[value].listed = true;
    d->values.v[value].role = TV_VALUE_INPUT;
    *tv_push(d->g->a, inputs) = value;
}

/* Inputs: what feed operators put out, in their order; without them (training programs) what is
 * declared as data, and whatever is read and never written. */
static void set_roles(desc *d, index_list *inputs, tv_paddle_weights *weights)
{
    for (size_t i = 0; i < d->feeds.n; i++)
        list_input(d, inputs, d->feeds.v[i]);
    for (size_t i = 0; i < d->values.n; i++) {
        const note *n = &d->notes.v[i];
        if (is_weight(d, i))
            set_weight(d, i, weights);
        else if (n->read && (n->data || (!n->written && !d->values.v[i].list)))
            list_input(d, inputs, (uint32_t)i);
    }
}

static const tv_err *finish_main(desc *d, tv_paddle_program *p)
{
    index_list inputs = {0}, outputs = {0};
    set_roles(d, &inputs, &p->weights);
    for (size_t i = 0; i < d->fetches.n; i++)
        if (d->fetches.v[i] != TV_NO_VALUE)
            *tv_push(d->g->a, &outputs) = d->fetches.v[i];
    tv_body *main = &d->bodies[0];
    main->inputs = inputs.v;
    main->n_inputs = inputs.n;
    main->outputs = outputs.v;
    main->n_outputs = outputs.n;
    return tv_paddle_sort(d->g, d->path, p);
}

/* 2002002 is 2.2.2; 0 is a build between releases, and files before 1.8 have none. */
static tv_str producer(desc *d, int64_t version)
{
    tv_buf b = tv_buf_in(d->g->a);
    tv_puts(&b, "paddle");
    if (version > 0) {
        tv_puts(&b, " ");
        tv_put_u64(&b, (uint64_t)version / 1000000);
        tv_puts(&b, ".");
        tv_put_u64(&b, (uint64_t)version / 1000 % 1000);
        tv_puts(&b, ".");
        tv_put_u64(&b, (uint64_t)version % 1000);
    }
    return tv_buf_str(&b);
}

static void warn_training(desc *d)
{
    if (d->backward + d->optimizer == 0)
        return;
    tv_gather_warn(d->g, TV_TEXT(d->g->a, "paddle.training",
                                 N_("a training program: its operators of the backward pass "
                                    "({backward}) and the optimizer ({optimizer}) are left out, "
                                    "--task train reckons its own"),
                                 tv_arg_num("backward", TV_ARG_COUNT, (double)d->backward),
                                 tv_arg_num("optimizer", TV_ARG_COUNT, (double)d->optimizer)));
}

/* ProgramDesc: 1 blocks, 4 version {1}. */
static const tv_err *read_fields(desc *d, field_list *blocks, int64_t *version)
{
    tv_wire walk = d->wire, in;
    tv_wire_field x;
    bool more = false;
    for (;;) {
        TV_TRY(tv_wire_next(&walk, &x, &more));
        if (!more)
            return NULL;
        if (x.number == 1)
            *tv_push(d->g->a, blocks) = x;
        if (x.number != 4 || x.type != TV_WIRE_BYTES)
            continue;
        TV_TRY(tv_wire_enter(&walk, &x, &in));
        TV_TRY(tv_wire_next(&in, &x, &more));
        if (more && x.number == 1)
            TV_TRY(tv_wire_i64(&in, &x, version));
    }
}

const tv_err *tv_read_paddle_desc(tv_gather *g, tv_str path, tv_bytes_view bytes,
                                  tv_paddle_program *p)
{
    desc d = {.g = g, .path = tv_str_copy(g->a, path)};
    field_list blocks = {0};
    int64_t version = 0;
    d.wire = tv_wire_in(g->a, d.path, bytes);
    TV_TRY(read_fields(&d, &blocks, &version));
    if (blocks.n == 0)
        return tv_broken(g, d.path, "paddle.no-program", N_("this is no Paddle program"), 0);
    TV_TRY(read_blocks(&d, &blocks));
    *p = (tv_paddle_program){.values = d.values.v};
    TV_TRY(finish_main(&d, p));
    tv_opset *opset = tv_new(g->a, tv_opset, 1);
    opset->version = version;
    p->program = (tv_program){
        .dialect = TV_DIALECT_PADDLE,
        .values = d.values.v,
        .n_values = d.values.n,
        .main = &d.bodies[0],
        .opsets = opset,
        .n_opsets = 1,
        .producer = producer(&d, version),
    };
    warn_training(&d);
    return NULL;
}

/* ---- shared with the JSON form ---- */

tv_dtype tv_paddle_dtype(uint64_t kind)
{
    static const tv_dtype types[] = {
        [0] = TV_BOOL,  [1] = TV_I16,  [2] = TV_I32,   [3] = TV_I64,      [4] = TV_F16,
        [5] = TV_F32,   [6] = TV_F64,  [19] = TV_U64,  [20] = TV_U8,      [21] = TV_I8,
        [22] = TV_BF16, [23] = TV_C64, [24] = TV_C128, [32] = TV_F8_E4M3, [33] = TV_F8_E5M2,
        [36] = TV_U16,  [37] = TV_U32, [38] = TV_U64,
    };
    return kind < sizeof types / sizeof *types ? types[kind] : TV_DTYPE_UNKNOWN;
}

static int by_name(const void *x, const void *y)
{
    return tv_str_cmp(((const tv_paddle_weight *)x)->name, ((const tv_paddle_weight *)y)->name);
}

const tv_err *tv_paddle_sort(tv_gather *g, tv_str path, tv_paddle_program *p)
{
    tv_paddle_weights *w = &p->weights;
    if (w->n)
        qsort(w->v, w->n, sizeof *w->v, by_name);
    for (size_t i = 1; i < w->n; i++) {
        if (!tv_str_eq(w->v[i - 1].name, w->v[i].name))
            continue;
        tv_err *e =
            tv_fail(g->a, TV_INPUT,
                    TV_TEXT(g->a, "read.duplicate-tensor", N_("the tensor \"{name}\" stands twice"),
                            tv_arg_str("name", w->v[i].name)));
        return tv_in_file(e, path);
    }
    return NULL;
}

static bool probe(tv_str name, tv_bytes_view bytes)
{
    (void)bytes;
    return tv_str_ends(name, TV_S(".pdmodel")) || tv_is_paddle_model_name(name);
}

extern const tv_format tv_format_paddle_program;
const tv_format tv_format_paddle_program = {
    .name = "pdmodel",
    .summary = N_("Paddle inference program"),
    .probe = probe,
    .read = tv_read_paddle_model,
};
