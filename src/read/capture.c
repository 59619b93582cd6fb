/* Captures: the JSON that python/trivet_capture.py writes of one forward pass (docs/formats.md,
 * section "Captures"). Becomes a program of the ATen or Paddle dialect with what autograd kept.
 * Checks every index; says nothing about what an operator means. */
#include "gather.h"

#include "base/json.h"

#include <math.h>

#define SCHEMA "trivet.capture/"

typedef struct capture {
    tv_gather *g;
    tv_str path;
    const tv_json *doc;
    tv_value *values;
    size_t n_values;
    bool *written; /* per value: somebody puts it out, or it is there from the start */
    const tv_json *operators, *modules;
} capture;

static const tv_err *bad(const capture *c, const tv_json *at, const char *id, const char *msgid)
{
    const uint64_t offset = at && at->type != TV_JSON_END ? at->offset : 0;
    return tv_broken(c->g, c->path, id, msgid, offset);
}

static const tv_err *bad_index(const capture *c, const tv_json *at)
{
    return bad(c, at, "capture.index", N_("the capture names a tensor that it does not list"));
}

static const tv_err *section(const capture *c, const char *key, const tv_json **out)
{
    *out = tv_json_get(c->doc, key);
    if ((*out)->type == TV_JSON_ARRAY)
        return NULL;
    return bad(c, c->doc, "capture.section",
               N_("the capture lacks one of its lists: it is cut or not written by the tool"));
}

/* ---- values ---- */

/* A dimension or another whole number, or an expression over the batch symbol. */
static bool read_dim(const tv_json *j, tv_dim *d)
{
    if (j->type == TV_JSON_STRING && j->s.n > 0) {
        *d = (tv_dim){.size = -1, .symbol = j->s};
        return true;
    }
    const tv_u64_read v = tv_json_u64(j);
    if (!v.ok || v.v > (uint64_t)1 << 53)
        return false;
    *d = (tv_dim){.size = (int64_t)v.v};
    return true;
}

static const tv_err *read_shape(const capture *c, const tv_json *dims, tv_value *v)
{
    if (dims->type != TV_JSON_ARRAY || dims->n > TV_LIMIT_RANK)
        return bad(c, dims, "capture.shape",
                   N_("a tensor's shape is missing or has too many dimensions"));
    tv_dim *d = tv_new(c->g->a, tv_dim, dims->n + 1);
    for (size_t i = 0; i < dims->n; i++)
        if (!read_dim(&dims->items[i], &d[i]))
            return bad(c, &dims->items[i], "capture.dim",
                       N_("a tensor's dimension is no whole number"));
    v->shaped = true;
    v->rank = (uint32_t)dims->n;
    v->dims = d;
    return NULL;
}

/* [type, shape, storage, 1 where gradients flow to it] */
static const tv_err *read_value(const capture *c, const tv_json *row, tv_value *v)
{
    const tv_str type = tv_json_str(tv_json_at(row, 0));
    const tv_u64_read storage = tv_json_u64(tv_json_at(row, 2));
    if (row->type != TV_JSON_ARRAY || type.n == 0 || !storage.ok || storage.v >= UINT32_MAX - 1)
        return bad(c, row, "capture.value", N_("a tensor lacks its type, shape or storage"));
    v->dtype = tv_dtype_named(type);
    v->dtype_text = type;
    v->storage = (uint32_t)storage.v + 1;
    v->grad_known = true;
    v->grad = tv_json_num(tv_json_at(row, 3), 0) > 0;
    return read_shape(c, tv_json_at(row, 1), v);
}

static const tv_err *read_values(capture *c)
{
    const tv_json *rows = NULL;
    TV_TRY(section(c, "values", &rows));
    if (rows->n > TV_LIMIT_PROGRAM_VALUES)
        return bad(c, rows, "capture.limit",
                   N_("the capture lists more tensors or operators than are read"));
    c->n_values = rows->n;
    c->values = tv_new(c->g->a, tv_value, rows->n + 1);
    c->written = tv_new(c->g->a, bool, rows->n + 1);
    for (size_t i = 0; i < rows->n; i++)
        TV_TRY(read_value(c, &rows->items[i], &c->values[i]));
    return NULL;
}

static const tv_err *index_of(const capture *c, const tv_json *j, uint32_t *out)
{
    const tv_u64_read v = tv_json_u64(j);
    if (!v.ok || v.v >= c->n_values)
        return bad_index(c, j);
    *out = (uint32_t)v.v;
    return NULL;
}

/* Rows [name, value, 1 where it is trained] of parameters, or [name, value] of buffers. */
static const tv_err *read_weights(const capture *c, const char *key, bool buffer)
{
    const tv_json *rows = NULL;
    TV_TRY(section(c, key, &rows));
    for (size_t i = 0; i < rows->n; i++) {
        const tv_json *row = &rows->items[i];
        uint32_t index = 0;
        TV_TRY(index_of(c, tv_json_at(row, 1), &index));
        tv_value *v = &c->values[index];
        if (c->written[index])
            return bad(c, row, "capture.twice", N_("a tensor has two origins"));
        c->written[index] = true;
        v->role = TV_VALUE_WEIGHT;
        v->name = tv_json_str(tv_json_at(row, 0));
        v->buffer = buffer;
        v->frozen = !buffer && !(tv_json_num(tv_json_at(row, 2), 1) > 0);
    }
    return NULL;
}

static const tv_err *read_ids(const capture *c, const tv_json *rows, const uint32_t **out,
                              size_t *n)
{
    uint32_t *v = tv_new(c->g->a, uint32_t, rows->n + 1);
    for (size_t i = 0; i < rows->n; i++)
        TV_TRY(index_of(c, &rows->items[i], &v[i]));
    *out = v;
    *n = rows->n;
    return NULL;
}

static tv_str numbered(tv_arena *a, const char *stem, size_t i)
{
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, stem);
    tv_put_u64(&b, i);
    return tv_buf_str(&b);
}

static const tv_err *read_inputs(const capture *c, tv_body *main)
{
    const tv_json *rows = NULL;
    TV_TRY(section(c, "inputs", &rows));
    TV_TRY(read_ids(c, rows, &main->inputs, &main->n_inputs));
    for (size_t i = 0; i < main->n_inputs; i++) {
        const uint32_t v = main->inputs[i];
        if (c->written[v])
            return bad(c, &rows->items[i], "capture.twice", N_("a tensor has two origins"));
        c->written[v] = true;
        c->values[v].role = TV_VALUE_INPUT;
        c->values[v].name = numbered(c->g->a, "input", i);
    }
    return NULL;
}

/* ---- operators ---- */

/* Operands by argument: "i" runs parallel to the operator's argument names; null is not given, a
 * list is several. */
typedef struct operands {
    uint32_t *v;
    size_t n, cap;
    tv_slot *slots;
    size_t n_slots;
} operands;

static const tv_err *add_operand(const capture *c, operands *o, const tv_json *j)
{
    uint32_t v = TV_NO_VALUE;
    if (j->type != TV_JSON_NULL)
        TV_TRY(index_of(c, j, &v));
    *tv_push(c->g->a, o) = v;
    return NULL;
}

static const tv_err *read_operand(const capture *c, operands *o, tv_str name, const tv_json *j)
{
    if (j->type == TV_JSON_NULL)
        return NULL;
    tv_slot *s = &o->slots[o->n_slots++];
    *s = (tv_slot){.name = name, .first = (uint32_t)o->n};
    if (j->type != TV_JSON_ARRAY) {
        s->n = 1;
        return add_operand(c, o, j);
    }
    s->n = (uint32_t)j->n;
    for (size_t i = 0; i < j->n; i++)
        TV_TRY(add_operand(c, o, &j->items[i]));
    return NULL;
}

static const tv_err *read_slots(const capture *c, const tv_json *in, const tv_json *names,
                                operands *o)
{
    if (in->n > names->n)
        return bad(c, in, "capture.arguments", N_("an operator has more operands than arguments"));
    o->slots = tv_new(c->g->a, tv_slot, in->n + 1);
    for (size_t i = 0; i < in->n; i++)
        TV_TRY(read_operand(c, o, tv_json_str(&names->items[i]), &in->items[i]));
    return NULL;
}

static const tv_err *read_operands(const capture *c, const tv_json *row, const tv_json *names,
                                   tv_node *n)
{
    operands o = {0};
    TV_TRY(read_slots(c, tv_json_get(row, "i"), names, &o));
    n->inputs = o.v;
    n->n_inputs = o.n;
    n->input_slots = o.slots;
    n->n_input_slots = o.n_slots;
    return NULL;
}

static bool is_whole(const tv_json *j)
{
    return j->type == TV_JSON_NUMBER && fabs(j->number) <= 9007199254740992.0 &&
           j->number == floor(j->number) && !tv_str_has(j->s, TV_S(".")) &&
           !tv_str_has(j->s, TV_S("e"));
}

/* "B", "2*B", "196*B+1": digits, the symbol and signs only. */
static bool is_expression(const capture *c, tv_str s)
{
    const tv_str symbol = tv_json_str(tv_json_path(c->doc, "batch.symbol"));
    if (symbol.n == 0 || !tv_str_has(s, symbol))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= '0' && s.p[i] <= '9') && s.p[i] != symbol.p[0] && s.p[i] != '*' &&
            s.p[i] != '+' && s.p[i] != '-')
            return false;
    return true;
}

static tv_dim dim_of(const tv_json *j)
{
    if (j->type == TV_JSON_STRING)
        return (tv_dim){.size = -1, .symbol = j->s};
    return (tv_dim){.size = (int64_t)j->number};
}

typedef enum list_kind { LIST_INTS, LIST_DIMS, LIST_FLOATS, LIST_STRINGS } list_kind;

static list_kind kind_of_list(const capture *c, const tv_json *j)
{
    list_kind kind = LIST_INTS;
    for (size_t i = 0; i < j->n; i++) {
        const tv_json *x = &j->items[i];
        const bool whole = is_whole(x) || x->type == TV_JSON_TRUE || x->type == TV_JSON_FALSE;
        if (whole)
            continue;
        if (x->type == TV_JSON_NUMBER)
            kind = kind == LIST_STRINGS ? kind : LIST_FLOATS;
        else if (x->type == TV_JSON_STRING && is_expression(c, x->s))
            kind = kind == LIST_INTS || kind == LIST_DIMS ? LIST_DIMS : LIST_STRINGS;
        else
            kind = LIST_STRINGS;
    }
    return kind;
}

static void take_list(const capture *c, const tv_json *j, tv_attr *out)
{
    tv_arena *a = c->g->a;
    int64_t *ints = tv_new(a, int64_t, j->n + 1);
    double *floats = tv_new(a, double, j->n + 1);
    tv_dim *dims = tv_new(a, tv_dim, j->n + 1);
    tv_str *strings = tv_new(a, tv_str, j->n + 1);
    const list_kind kind = kind_of_list(c, j);
    out->n = j->n;
    for (size_t i = 0; i < j->n; i++) {
        const tv_json *x = &j->items[i];
        ints[i] = x->type == TV_JSON_TRUE            ? 1
                  : kind == LIST_INTS && is_whole(x) ? (int64_t)x->number
                                                     : 0;
        floats[i] = x->number;
        dims[i] = kind == LIST_DIMS ? dim_of(x) : (tv_dim){0};
        strings[i] = x->s;
    }
    switch (kind) {
    case LIST_INTS:
        out->kind = TV_ATTR_INTS;
        out->u.ints = ints;
        return;
    case LIST_DIMS:
        out->kind = TV_ATTR_DIMS;
        out->u.dims = dims;
        return;
    case LIST_FLOATS:
        out->kind = TV_ATTR_FLOATS;
        out->u.floats = floats;
        return;
    case LIST_STRINGS:
        out->kind = TV_ATTR_STRINGS;
        out->u.strings = strings;
        return;
    }
}

static void take_string(const capture *c, const tv_json *j, tv_attr *out)
{
    if (tv_str_is(out->name, "dtype") || tv_str_is(out->name, "out_dtype")) {
        out->kind = TV_ATTR_DTYPE;
        out->u.dtype = tv_dtype_named(j->s);
        return;
    }
    if (is_expression(c, j->s)) {
        tv_dim *d = tv_new(c->g->a, tv_dim, 1);
        *d = dim_of(j);
        out->kind = TV_ATTR_DIMS;
        out->n = 1;
        out->u.dims = d;
        return;
    }
    out->kind = TV_ATTR_STRING;
    out->u.s = j->s;
}

static void take_attr(const capture *c, const tv_json *j, tv_attr *out)
{
    out->name = j->key;
    switch (j->type) {
    case TV_JSON_FALSE:
    case TV_JSON_TRUE:
        out->kind = TV_ATTR_INT;
        out->u.i = j->type == TV_JSON_TRUE;
        return;
    case TV_JSON_NUMBER:
        out->kind = is_whole(j) ? TV_ATTR_INT : TV_ATTR_FLOAT;
        if (is_whole(j))
            out->u.i = (int64_t)j->number;
        else
            out->u.f = j->number;
        return;
    case TV_JSON_STRING:
        take_string(c, j, out);
        return;
    case TV_JSON_ARRAY:
        take_list(c, j, out);
        return;
    case TV_JSON_END:
    case TV_JSON_NULL:
    case TV_JSON_KEY:
    case TV_JSON_OBJECT:
    case TV_JSON_CLOSE:
        return; /* nothing is known of it */
    }
}

/* Results in order; where the operator's row names them (Paddle), by slot as operands are. */
static const tv_err *read_outputs(const capture *c, const tv_json *row, const tv_json *names,
                                  tv_node *n)
{
    operands o = {0};
    const tv_json *list = tv_json_get(row, "p");
    if (names->type == TV_JSON_ARRAY) {
        TV_TRY(read_slots(c, list, names, &o));
        n->outputs = o.v;
        n->n_outputs = o.n;
        n->output_slots = o.slots;
        n->n_output_slots = o.n_slots;
    } else {
        TV_TRY(read_ids(c, list, &n->outputs, &n->n_outputs));
    }
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] == TV_NO_VALUE)
            continue;
        if (c->written[n->outputs[i]])
            return bad(c, row, "capture.twice", N_("a tensor has two origins"));
        c->written[n->outputs[i]] = true;
    }
    return NULL;
}

/* What nobody writes and no list names was there before: a constant. */
static void found_constants(const capture *c, const uint32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] == TV_NO_VALUE || c->written[ids[i]])
            continue;
        tv_value *v = &c->values[ids[i]];
        c->written[ids[i]] = true;
        v->role = TV_VALUE_WEIGHT;
        v->buffer = !v->grad;
        v->name = numbered(c->g->a, "constant", ids[i]);
    }
}

static const tv_err *read_op(const capture *c, const tv_json *row, size_t n_regions, tv_node *n)
{
    const tv_u64_read op = tv_json_u64(tv_json_get(row, "o"));
    const tv_json *module = tv_json_get(row, "m");
    const double region = tv_json_num(tv_json_get(row, "r"), 0);
    if (!op.ok || op.v >= c->operators->n || !(region >= 0 && region <= (double)n_regions))
        return bad(c, row, "capture.op",
                   N_("an operator lacks its name, or names a region that is not listed"));
    const tv_json *kind = &c->operators->items[op.v];
    const tv_u64_read at = tv_json_u64(module);
    const tv_json *attrs = tv_json_get(row, "a");
    n->op = tv_json_str(tv_json_at(kind, 0));
    n->name = tv_json_str(tv_json_at(tv_json_at(c->modules, at.ok ? at.v : 0), 0));
    n->region = (uint32_t)region;
    TV_TRY(read_operands(c, row, tv_json_at(kind, 1), n));
    found_constants(c, n->inputs, n->n_inputs);
    TV_TRY(read_outputs(c, row, tv_json_at(kind, 2), n));
    TV_TRY(read_ids(c, tv_json_get(row, "s"), &n->saved, &n->n_saved));
    found_constants(c, n->saved, n->n_saved);
    n->saved_known = tv_json_bool(tv_json_get(c->doc, "train"), false);
    tv_attr *list = tv_new(c->g->a, tv_attr, attrs->n + 1);
    for (size_t i = 0; i < attrs->n; i++)
        take_attr(c, &attrs->items[i], &list[i]);
    n->attrs = list;
    n->n_attrs = attrs->n;
    return NULL;
}

static const tv_err *read_ops(capture *c, size_t n_regions, tv_body *main)
{
    const tv_json *rows = NULL;
    TV_TRY(section(c, "operators", &c->operators));
    TV_TRY(section(c, "modules", &c->modules));
    TV_TRY(section(c, "ops", &rows));
    if (rows->n > TV_LIMIT_PROGRAM_NODES)
        return bad(c, rows, "capture.limit",
                   N_("the capture lists more tensors or operators than are read"));
    tv_node *nodes = tv_new(c->g->a, tv_node, rows->n + 1);
    for (size_t i = 0; i < rows->n; i++)
        TV_TRY(read_op(c, &rows->items[i], n_regions, &nodes[i]));
    main->nodes = nodes;
    main->n_nodes = rows->n;
    return NULL;
}

/* ---- the document ---- */

static const tv_err *read_regions(const capture *c, tv_program *p)
{
    const tv_json *rows = tv_json_get(c->doc, "regions");
    tv_region *v = tv_new(c->g->a, tv_region, rows->n + 1);
    for (size_t i = 0; i < rows->n; i++)
        TV_TRY(read_ids(c, &rows->items[i], &v[i].keeps, &v[i].n_keeps));
    p->regions = v;
    p->n_regions = rows->n;
    return NULL;
}

/* What the tool had to say about its run. */
static void take_notes(const capture *c)
{
    const tv_json *notes = tv_json_get(c->doc, "notes");
    for (size_t i = 0; i < notes->n; i++) {
        const tv_str note = tv_json_str(&notes->items[i]);
        if (note.n)
            tv_gather_warn(c->g, TV_TEXT(c->g->a, "capture.note", N_("the capture says: {note}"),
                                         tv_arg_str("note", note)));
    }
}

static tv_dialect dialect_of(const capture *c)
{
    const tv_str framework = tv_json_str(tv_json_get(c->doc, "framework"));
    return tv_str_is(framework, "paddle") ? TV_DIALECT_PADDLE : TV_DIALECT_ATEN;
}

static tv_str producer(const capture *c)
{
    tv_arena *a = c->g->a;
    const tv_str name = tv_json_str(tv_json_get(c->doc, "framework"));
    const tv_str version = tv_json_str(tv_json_get(c->doc, "version"));
    return tv_str_join(a, tv_str_join(a, name, TV_S(" ")), version);
}

static const tv_err *read_document(capture *c)
{
    tv_program *p = tv_new(c->g->a, tv_program, 1);
    tv_body *main = tv_new(c->g->a, tv_body, 1);
    const tv_json *outputs = NULL;
    TV_TRY(read_values(c));
    TV_TRY(read_weights(c, "parameters", false));
    TV_TRY(read_weights(c, "buffers", true));
    TV_TRY(read_inputs(c, main));
    TV_TRY(read_regions(c, p));
    TV_TRY(read_ops(c, p->n_regions, main));
    TV_TRY(section(c, "outputs", &outputs));
    TV_TRY(read_ids(c, outputs, &main->outputs, &main->n_outputs));
    found_constants(c, main->outputs, main->n_outputs);
    for (size_t i = 0; i < p->n_regions; i++)
        found_constants(c, p->regions[i].keeps, p->regions[i].n_keeps);
    main->name = tv_json_str(tv_json_get(c->doc, "name"));
    p->dialect = dialect_of(c);
    p->pir = tv_json_bool(tv_json_get(c->doc, "pir"), false);
    p->values = c->values;
    p->n_values = c->n_values;
    p->main = main;
    p->producer = producer(c);
    p->batch_symbol = tv_json_str(tv_json_path(c->doc, "batch.symbol"));
    p->training = tv_json_bool(tv_json_get(c->doc, "train"), false);
    c->g->source.program = p;
    return NULL;
}

const tv_err *tv_read_capture(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    capture c = {.g = g, .path = path};
    const tv_str text = {(const char *)bytes.p, bytes.n};
    TV_TRY(tv_json_parse(g->a, path, text, &c.doc));
    if (!tv_str_is(tv_json_str(tv_json_get(c.doc, "schema")), SCHEMA "1"))
        return tv_hint(tv_in_file(TV_FAIL0(g->a, TV_UNSUPPORTED, "capture.version",
                                           N_("a capture of another version")),
                                  path),
                       TV_TEXT0("capture.version",
                                N_("Write it again with the trivet_capture.py of this trivet.")));
    TV_TRY(read_document(&c));
    take_notes(&c);
    (void)tv_gather_file(g, path, bytes);
    g->source.kind = TV_SOURCE_PROGRAM;
    g->source.name = tv_json_str(tv_json_get(c.doc, "name"));
    return NULL;
}

/* The tool writes the schema first. */
static bool probe(tv_str name, tv_bytes_view bytes)
{
    const tv_str start = tv_str_take((tv_str){(const char *)bytes.p, bytes.n}, 128);
    (void)name;
    return tv_str_starts(tv_str_trim(start), TV_S("{")) && tv_str_has(start, TV_S("\"" SCHEMA));
}

extern const tv_format tv_format_capture;
const tv_format tv_format_capture = {
    .name = "capture",
    .summary = N_("capture of a PyTorch or Paddle module"),
    .probe = probe,
    .read = tv_read_capture,
};
