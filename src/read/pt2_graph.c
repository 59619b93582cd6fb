/* Graphs of a torch.export program: names, sizes, values and nodes. The file says what a name means
 * only after the nodes that use it, so that names get their places first and their meaning when it
 * comes. Stack traces, which are most of such a file, are passed over without being kept. */
#include "pt2_parts.h"

#include <string.h>

/* ---- what every part needs ---- */

const tv_err *tv_pt2_broken(tv_pt2_read *r, const char *id, const char *msgid, uint64_t offset)
{
    return tv_fail_at(r->a, TV_INPUT, TV_TEXT0(id, msgid), r->scan.file, offset);
}

const tv_err *tv_pt2_too_many(tv_pt2_read *r, const char *id, const char *msgid)
{
    return tv_fail_at(r->a, TV_LIMIT, TV_TEXT0(id, msgid), r->scan.file, r->scan.at);
}

tv_str tv_pt2_keep(tv_pt2_read *r, tv_str s)
{
    const tv_str text = r->scan.text;
    const bool view = s.n == 0 || (s.p >= text.p && s.p < text.p + text.n);
    return view ? s : tv_str_copy(r->a, s);
}

const tv_err *tv_pt2_expect(tv_pt2_read *r, tv_json_type type, tv_json_event *event)
{
    TV_TRY(tv_json_next(&r->scan, event));
    if (event->type == type)
        return NULL;
    if (type == TV_JSON_ARRAY)
        return tv_pt2_broken(r, "pt2.expected-list", N_("expected a list"), event->offset);
    return tv_pt2_broken(r, "pt2.expected-object", N_("expected an object"), event->offset);
}

const tv_err *tv_pt2_skip_next(tv_pt2_read *r)
{
    tv_json_event event;
    r->scan.raw = true; /* stack traces have thousands of escapes */
    const tv_err *e = tv_json_next(&r->scan, &event);
    r->scan.raw = false;
    return e ? e : tv_json_skip(&r->scan, event);
}

const tv_err *tv_pt2_text(tv_pt2_read *r, tv_str *s)
{
    tv_json_event event;
    TV_TRY(tv_json_next(&r->scan, &event));
    *s = event.type == TV_JSON_STRING ? tv_pt2_keep(r, event.s) : (tv_str){0};
    return tv_json_skip(&r->scan, event);
}

const tv_err *tv_pt2_whole(tv_pt2_read *r, tv_json_event event, int64_t *v)
{
    const bool minus = event.s.n && event.s.p[0] == '-';
    const tv_u64_read u = tv_str_u64(tv_str_drop(event.s, minus));
    const uint64_t most = (uint64_t)INT64_MAX + minus;
    if (event.type != TV_JSON_NUMBER || !u.ok || u.v > most)
        return tv_pt2_broken(r, "pt2.no-whole", N_("expected a whole number"), event.offset);
    *v = !minus ? (int64_t)u.v : u.v == most ? INT64_MIN : -(int64_t)u.v;
    return NULL;
}

/* ---- names ---- */

static void place(tv_pt2_scope *g, uint32_t index)
{
    size_t at = (size_t)tv_str_hash(g->names.v[index].name) & (g->n_slots - 1);
    while (g->slots[at])
        at = (at + 1) & (g->n_slots - 1);
    g->slots[at] = index + 1;
}

static void more_slots(tv_pt2_scope *g)
{
    g->n_slots = g->n_slots ? 2 * g->n_slots : 64;
    g->slots = tv_new(g->r->a, uint32_t, g->n_slots);
    for (size_t i = 0; i < g->names.n; i++)
        place(g, (uint32_t)i);
}

bool tv_pt2_find(const tv_pt2_scope *g, tv_str name, uint32_t *index)
{
    if (!g->n_slots)
        return false;
    size_t at = (size_t)tv_str_hash(name) & (g->n_slots - 1);
    for (; g->slots[at]; at = (at + 1) & (g->n_slots - 1))
        if (tv_str_eq(g->names.v[g->slots[at] - 1].name, name)) {
            *index = g->slots[at] - 1;
            return true;
        }
    return false;
}

const tv_err *tv_pt2_name_of(tv_pt2_scope *g, tv_str name, uint32_t *index)
{
    if (tv_pt2_find(g, name, index))
        return NULL;
    if (g->names.n == TV_LIMIT_PROGRAM_VALUES)
        return tv_pt2_too_many(g->r, "pt2.values", N_("a program has too many values"));
    *index = (uint32_t)g->names.n;
    *tv_push(g->r->a, &g->names) =
        (tv_pt2_name){.name = tv_pt2_keep(g->r, name), .value = TV_NO_VALUE};
    if (2 * g->names.n > g->n_slots)
        more_slots(g);
    else
        place(g, *index);
    return NULL;
}

const tv_err *tv_pt2_value_of(tv_pt2_scope *g, tv_str name, uint32_t *value)
{
    uint32_t index = 0;
    TV_TRY(tv_pt2_name_of(g, name, &index));
    tv_pt2_name *x = &g->names.v[index];
    if (x->value == TV_NO_VALUE) {
        tv_pt2_read *r = g->r;
        if (r->values.n == TV_LIMIT_PROGRAM_VALUES)
            return tv_pt2_too_many(r, "pt2.values", N_("a program has too many values"));
        x->value = (uint32_t)r->values.n;
        *tv_push(r->a, &r->values) = (tv_value){.name = x->name};
    }
    *value = x->value;
    return NULL;
}

/* ---- sizes ---- */

/* What the symbol was when the program was taken; the last statement wins. */
void tv_pt2_note_example(tv_pt2_read *r, tv_str name, int64_t example)
{
    for (size_t i = 0; i < r->symbols.n; i++)
        if (tv_str_eq(r->symbols.v[i].name, name)) {
            r->symbols.v[i].example = example ? example : r->symbols.v[i].example;
            return;
        }
    if (r->symbols.n < TV_PT2_SYMBOLS)
        *tv_push(r->a, &r->symbols) = (tv_symbol){.name = name, .example = example};
}

static bool is_one_symbol(tv_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= 'A' && s.p[i] <= 'Z') ||
              s.p[i] == '_' || (i && s.p[i] >= '0' && s.p[i] <= '9')))
            return false;
    return s.n > 0;
}

/* hint: 3 until 2.2, {"as_int": 3} since. */
static const tv_err *read_hint(tv_pt2_read *r, int64_t *hint)
{
    tv_json_event event;
    TV_TRY(tv_json_next(&r->scan, &event));
    if (event.type == TV_JSON_NUMBER)
        return tv_pt2_whole(r, event, hint);
    if (event.type != TV_JSON_OBJECT)
        return tv_json_skip(&r->scan, event);
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        const bool whole = tv_str_is(key.s, "as_int");
        TV_TRY(tv_json_next(&r->scan, &event));
        if (whole && event.type == TV_JSON_NUMBER)
            TV_TRY(tv_pt2_whole(r, event, hint));
        else
            TV_TRY(tv_json_skip(&r->scan, event));
    }
}

static const tv_err *read_expression(tv_pt2_read *r, tv_json_event event, tv_dim *dim)
{
    tv_str text = {0};
    int64_t hint = 0;
    if (event.type == TV_JSON_STRING)
        text = event.s;
    while (event.type == TV_JSON_OBJECT) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            break;
        if (tv_str_is(key.s, "expr_str"))
            TV_TRY(r->in_strides ? tv_pt2_skip_next(r) : tv_pt2_text(r, &text));
        else if (tv_str_is(key.s, "hint"))
            TV_TRY(read_hint(r, &hint));
        else
            TV_TRY(tv_pt2_skip_next(r));
    }
    dim->size = -1;
    r->last_size = hint;
    if (r->in_strides)
        return NULL;
    dim->symbol = tv_pt2_keep(r, tv_pt2_expression(r->a, text));
    if (is_one_symbol(dim->symbol))
        tv_pt2_note_example(r, dim->symbol, hint);
    return NULL;
}

const tv_err *tv_pt2_read_size(tv_pt2_read *r, tv_json_event event, tv_dim *dim)
{
    if (event.type == TV_JSON_NUMBER)
        return tv_pt2_whole(r, event, &dim->size);
    if (event.type != TV_JSON_OBJECT)
        return tv_pt2_broken(r, "pt2.no-size", N_("a size does not say its kind"), event.offset);
    *dim = (tv_dim){.size = -1};
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        const bool whole = tv_str_is(key.s, "as_int"), expr = tv_str_is(key.s, "as_expr");
        TV_TRY(tv_json_next(&r->scan, &event));
        if (whole && event.type == TV_JSON_NUMBER) {
            TV_TRY(tv_pt2_whole(r, event, &dim->size));
            r->last_size = dim->size;
        } else if (expr)
            TV_TRY(read_expression(r, event, dim));
        else
            TV_TRY(tv_json_skip(&r->scan, event));
    }
}

/* Sizes at the example that the program was taken with; -1: not all are stated. */
typedef struct example {
    int64_t sizes[TV_LIMIT_RANK], strides[TV_LIMIT_RANK];
    uint32_t n_sizes, n_strides;
} example;

/* Whether an element's neighbours along the last axes are its neighbours in memory. */
static bool is_strided(const example *x)
{
    int64_t step = 1;
    if (x->n_sizes != x->n_strides)
        return false;
    for (uint32_t i = x->n_sizes; i-- > 0;) {
        if (x->sizes[i] <= 0)
            return false; /* nothing is known, or there are no elements */
        if (x->sizes[i] != 1 && x->strides[i] != step)
            return true;
        if (__builtin_mul_overflow(step, x->sizes[i], &step))
            return false;
    }
    return false;
}

static const tv_err *read_strides(tv_pt2_read *r, example *x)
{
    tv_json_event event;
    TV_TRY(tv_json_next(&r->scan, &event));
    if (event.type != TV_JSON_ARRAY)
        return tv_json_skip(&r->scan, event);
    for (;;) {
        tv_dim dim = {0};
        TV_TRY(tv_json_next(&r->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        r->in_strides = true;
        TV_TRY(tv_pt2_read_size(r, event, &dim));
        r->in_strides = false;
        if (x->n_strides < TV_LIMIT_RANK)
            x->strides[x->n_strides++] = r->last_size;
    }
}

static const tv_err *read_sizes(tv_pt2_read *r, tv_value *v, example *x)
{
    tv_json_event event;
    tv_dim dims[TV_LIMIT_RANK];
    uint32_t rank = 0;
    TV_TRY(tv_pt2_expect(r, TV_JSON_ARRAY, &event));
    for (;;) {
        TV_TRY(tv_json_next(&r->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            break;
        if (rank == TV_LIMIT_RANK)
            return tv_pt2_too_many(r, "pt2.rank", N_("a tensor has too many dimensions"));
        dims[rank] = (tv_dim){0};
        TV_TRY(tv_pt2_read_size(r, event, &dims[rank]));
        if (dims[rank].size < -1 || (dims[rank].size == -1 && !dims[rank].symbol.n))
            return tv_pt2_broken(r, "pt2.negative-size", N_("a size is negative"), event.offset);
        x->sizes[rank++] = r->last_size;
    }
    x->n_sizes = rank;
    tv_dim *kept = tv_new(r->a, tv_dim, rank);
    for (uint32_t i = 0; i < rank; i++)
        kept[i] = dims[i];
    v->shaped = true;
    v->rank = rank;
    v->dims = kept;
    return NULL;
}

/* ---- values ---- */

static const tv_err *read_type(tv_pt2_read *r, tv_value *v)
{
    tv_json_event event;
    int64_t number = 0;
    TV_TRY(tv_json_next(&r->scan, &event));
    TV_TRY(tv_pt2_whole(r, event, &number));
    v->dtype = tv_pt2_dtype((uint64_t)number);
    if (v->dtype == TV_DTYPE_UNKNOWN)
        v->dtype_text = tv_pt2_keep(r, event.s);
    return NULL;
}

static const tv_err *read_meta(tv_pt2_read *r, tv_value *v);

/* The rest of the object that "meta" stands in goes with it. */
static const tv_err *read_old_meta(tv_pt2_read *r, tv_value *v)
{
    TV_TRY(read_meta(r, v));
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        TV_TRY(tv_pt2_skip_next(r));
    }
}

/* A tensor's meta; until 2.1 inside {"meta": ...}. */
static const tv_err *read_meta(tv_pt2_read *r, tv_value *v)
{
    tv_json_event event;
    example x = {0};
    TV_TRY(tv_pt2_expect(r, TV_JSON_OBJECT, &event));
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            break;
        if (tv_str_is(key.s, "meta")) {
            return read_old_meta(r, v);
        } else if (tv_str_is(key.s, "dtype")) {
            TV_TRY(read_type(r, v));
        } else if (tv_str_is(key.s, "sizes")) {
            TV_TRY(read_sizes(r, v, &x));
        } else if (tv_str_is(key.s, "strides")) {
            TV_TRY(read_strides(r, &x));
        } else if (tv_str_is(key.s, "requires_grad")) {
            TV_TRY(tv_json_next(&r->scan, &event));
            v->frozen = event.type == TV_JSON_FALSE; /* see roles() in pt2_program.c */
            TV_TRY(tv_json_skip(&r->scan, event));
        } else {
            TV_TRY(tv_pt2_skip_next(r));
        }
    }
    v->strided = is_strided(&x);
    return NULL;
}

static const tv_err *read_tensor_values(tv_pt2_scope *g)
{
    tv_pt2_read *r = g->r;
    tv_json_event event;
    TV_TRY(tv_pt2_expect(r, TV_JSON_OBJECT, &event));
    for (;;) {
        const tv_mark mark = tv_arena_mark(r->scratch);
        tv_json_event key;
        uint32_t value = 0;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        TV_TRY(tv_pt2_value_of(g, key.s, &value));
        tv_value v = r->values.v[value];
        TV_TRY(read_meta(r, &v));
        r->values.v[value] = v;
        tv_arena_rewind(r->scratch, mark);
    }
}

/* sym_int_values, sym_float_values and sym_bool_values: what the symbolic numbers are. */
static const tv_err *read_symbol_values(tv_pt2_scope *g)
{
    tv_pt2_read *r = g->r;
    tv_json_event event;
    TV_TRY(tv_pt2_expect(r, TV_JSON_OBJECT, &event));
    for (;;) {
        tv_json_event key;
        uint32_t index = 0;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        TV_TRY(tv_pt2_name_of(g, key.s, &index));
        tv_dim dim = {.size = -1};
        TV_TRY(tv_json_next(&r->scan, &event));
        if (event.type == TV_JSON_OBJECT)
            TV_TRY(tv_pt2_read_size(r, event, &dim));
        g->names.v[index].symbolic = true;
        g->names.v[index].dim = dim;
    }
}

/* What was waited for; a number that the file never explains keeps its own name as a symbol. */
static void resolve(tv_pt2_scope *g)
{
    for (size_t i = 0; i < g->pending.n; i++) {
        const tv_pt2_name *x = &g->names.v[g->pending.v[i].name];
        *g->pending.v[i].at = x->symbolic ? x->dim : (tv_dim){-1, x->name};
    }
}

/* ---- nodes ---- */

/* Operators of higher order do not name their arguments: they are called by their place. */
static tv_str argument_name(tv_pt2_read *r, tv_str name, size_t place)
{
    if (name.n)
        return name;
    tv_buf b = tv_buf_in(r->a);
    tv_put_u64(&b, place);
    return tv_buf_str(&b);
}

static const tv_err *read_input(tv_pt2_scope *g, tv_pt2_node *x, size_t place)
{
    tv_pt2_read *r = g->r;
    tv_str name = {0};
    bool named = false;
    for (;;) {
        tv_json_event key, event;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        if (tv_str_is(key.s, "name")) {
            TV_TRY(tv_pt2_text(r, &name));
            named = true;
        } else if (tv_str_is(key.s, "arg")) {
            if (!named) /* its name decides where it goes; writers put it first */
                return tv_pt2_broken(r, "pt2.no-name", N_("an argument comes before its name"),
                                     key.offset);
            TV_TRY(tv_json_next(&r->scan, &event));
            TV_TRY(tv_pt2_read_argument(g, x, argument_name(r, name, place), event));
        } else {
            TV_TRY(tv_pt2_skip_next(r));
        }
    }
}

static const tv_err *read_inputs(tv_pt2_scope *g, tv_pt2_node *x)
{
    tv_json_event event;
    TV_TRY(tv_pt2_expect(g->r, TV_JSON_ARRAY, &event));
    for (size_t place = 0;; place++) {
        TV_TRY(tv_json_next(&g->r->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        if (event.type != TV_JSON_OBJECT)
            return tv_pt2_broken(g->r, "pt2.expected-object", N_("expected an object"),
                                 event.offset);
        TV_TRY(read_input(g, x, place));
    }
}

static const tv_err *read_name_list(tv_pt2_scope *g, bool symbols, tv_pt2_ids *ids)
{
    tv_json_event event;
    TV_TRY(tv_pt2_expect(g->r, TV_JSON_ARRAY, &event));
    for (;;) {
        TV_TRY(tv_json_next(&g->r->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        TV_TRY(tv_pt2_read_names(g, event, symbols, ids));
    }
}

static const tv_err *read_metadata(tv_pt2_read *r, tv_str *module)
{
    tv_json_event event;
    TV_TRY(tv_json_next(&r->scan, &event));
    if (event.type != TV_JSON_OBJECT)
        return tv_json_skip(&r->scan, event);
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        if (!tv_str_is(key.s, "nn_module_stack")) {
            TV_TRY(tv_pt2_skip_next(r));
            continue;
        }
        TV_TRY(tv_json_next(&r->scan, &event));
        if (event.type == TV_JSON_STRING)
            *module = tv_pt2_keep(r, tv_pt2_module(r->a, event.s));
        else
            TV_TRY(tv_json_skip(&r->scan, event));
    }
}

static tv_str operator_name(tv_str target)
{
    static const tv_str ops = {"torch.ops.", sizeof "torch.ops." - 1};
    return tv_str_starts(target, ops) ? tv_str_drop(target, ops.n) : target;
}

static const tv_err *read_node_member(tv_pt2_scope *g, tv_pt2_node *x, tv_str key, tv_str *own_name)
{
    tv_pt2_read *r = g->r;
    if (tv_str_is(key, "target")) {
        TV_TRY(tv_pt2_text(r, &x->node.op));
        x->node.op = operator_name(x->node.op);
        return NULL;
    }
    if (tv_str_is(key, "inputs"))
        return read_inputs(g, x);
    if (tv_str_is(key, "outputs"))
        return read_name_list(g, false, &x->outputs);
    if (tv_str_is(key, "metadata"))
        return read_metadata(r, &x->node.name);
    if (tv_str_is(key, "name"))
        return tv_pt2_text(r, own_name);
    return tv_pt2_skip_next(r);
}

void *tv_pt2_copy(tv_arena *a, const void *v, size_t n, size_t size)
{
    void *kept = tv_alloc(a, n, size);
    return n ? memcpy(kept, v, n * size) : kept;
}

static void close_node(tv_pt2_scope *g, tv_pt2_node *x, tv_str own_name)
{
    tv_node *n = tv_push(g->r->a, &g->nodes);
    *n = x->node;
    if (!n->name.n)
        n->name = own_name;
    if (!n->name.n && x->outputs.n && x->outputs.v[0] != TV_NO_VALUE) /* until 2.7 */
        n->name = g->r->values.v[x->outputs.v[0]].name;
    tv_arena *a = g->r->a;
    n->inputs = tv_pt2_copy(a, x->inputs.v, x->inputs.n, sizeof *x->inputs.v);
    n->n_inputs = x->inputs.n;
    n->outputs = tv_pt2_copy(a, x->outputs.v, x->outputs.n, sizeof *x->outputs.v);
    n->n_outputs = x->outputs.n;
    n->input_slots = tv_pt2_copy(a, x->slots.v, x->slots.n, sizeof *x->slots.v);
    n->n_input_slots = x->slots.n;
    n->attrs = tv_pt2_copy(a, x->attrs.v, x->attrs.n, sizeof *x->attrs.v);
    n->n_attrs = x->attrs.n;
}

static const tv_err *read_node(tv_pt2_scope *g, tv_json_event event)
{
    tv_pt2_read *r = g->r;
    tv_pt2_node x = {0};
    tv_str own_name = {0};
    if (event.type != TV_JSON_OBJECT)
        return tv_pt2_broken(r, "pt2.expected-object", N_("expected an object"), event.offset);
    if (r->n_nodes++ == TV_LIMIT_PROGRAM_NODES)
        return tv_pt2_too_many(r, "pt2.nodes", N_("a program has too many nodes"));
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            break;
        TV_TRY(read_node_member(g, &x, key.s, &own_name));
    }
    if (!x.node.op.n)
        return tv_pt2_broken(r, "pt2.no-target", N_("a node does not name its operator"),
                             event.offset);
    close_node(g, &x, own_name);
    return NULL;
}

static const tv_err *read_nodes(tv_pt2_scope *g)
{
    tv_json_event event;
    TV_TRY(tv_pt2_expect(g->r, TV_JSON_ARRAY, &event));
    for (;;) {
        const tv_mark mark = tv_arena_mark(g->r->scratch);
        TV_TRY(tv_json_next(&g->r->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        TV_TRY(read_node(g, event));
        tv_arena_rewind(g->r->scratch, mark);
    }
}

/* ---- graphs ---- */

static const tv_err *read_graph_member(tv_pt2_scope *g, tv_str key)
{
    if (tv_str_is(key, "inputs"))
        return read_name_list(g, true, &g->inputs);
    if (tv_str_is(key, "outputs"))
        return read_name_list(g, true, &g->outputs);
    if (tv_str_is(key, "nodes"))
        return read_nodes(g);
    if (tv_str_is(key, "tensor_values"))
        return read_tensor_values(g);
    if (tv_str_is(key, "sym_int_values") || tv_str_is(key, "sym_bool_values") ||
        tv_str_is(key, "sym_float_values"))
        return read_symbol_values(g);
    return tv_pt2_skip_next(g->r);
}

static tv_body *close_body(const tv_pt2_scope *g, tv_str name)
{
    tv_body *b = tv_new(g->r->a, tv_body, 1);
    *b = (tv_body){
        .name = name,
        .inputs = tv_pt2_copy(g->r->a, g->inputs.v, g->inputs.n, sizeof *g->inputs.v),
        .n_inputs = g->inputs.n,
        .outputs = tv_pt2_copy(g->r->a, g->outputs.v, g->outputs.n, sizeof *g->outputs.v),
        .n_outputs = g->outputs.n,
        .nodes = g->nodes.v,
        .n_nodes = g->nodes.n,
    };
    return b;
}

const tv_err *tv_pt2_read_body(tv_pt2_read *r, tv_json_event event, tv_str name,
                               const tv_body **body, tv_pt2_scope *g)
{
    tv_pt2_scope own = {.r = r};
    if (!g)
        g = &own;
    *g = (tv_pt2_scope){.r = r};
    if (event.type != TV_JSON_OBJECT)
        return tv_pt2_broken(r, "pt2.no-graph", N_("a graph is no object"), event.offset);
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            break;
        TV_TRY(read_graph_member(g, key.s));
    }
    resolve(g);
    *body = close_body(g, name);
    return NULL;
}
