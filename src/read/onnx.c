/* ONNX models, IR versions 3 and later: the graph becomes a program, stored weights become
 * tensors. Opset numbers are noted, not judged: what an operator means belongs to the family. */
#include "onnx.h"

enum { newest_ir = 14 }; /* onnx.proto, Version */

const tv_err *tv_onnx_broken(tv_onnx *o, uint64_t at, const char *id, const char *msgid)
{
    return tv_fail_at(o->g->a, TV_INPUT, TV_TEXT0(id, msgid), o->path, at);
}

const tv_err *tv_onnx_named(tv_onnx *o, uint64_t at, const char *id, const char *msgid, tv_str name)
{
    return tv_fail_at(o->g->a, TV_INPUT, TV_TEXT(o->g->a, id, msgid, tv_arg_str("name", name)),
                      o->path, at);
}

const tv_err *tv_onnx_value(tv_onnx *o, tv_value v, uint32_t producer, uint32_t *index)
{
    if (o->values.n >= TV_LIMIT_PROGRAM_VALUES)
        return TV_FAIL0(o->g->a, TV_LIMIT, "onnx.too-many-values",
                        N_("the program has too many values"));
    *index = (uint32_t)o->values.n;
    *tv_push(o->g->a, &o->values) = v;
    *tv_push(o->g->a, &o->producers) = producer;
    return NULL;
}

void tv_onnx_room(tv_onnx *o, size_t n)
{
    if (n <= o->values.cap - o->values.n || n > TV_LIMIT_PROGRAM_VALUES)
        return;
    const size_t cap = o->values.n + n + o->values.cap / 2;
    tv_value *values = tv_new(o->g->a, tv_value, cap);
    uint32_t *producers = tv_new(o->g->a, uint32_t, cap);
    for (size_t i = 0; i < o->values.n; i++) {
        values[i] = o->values.v[i];
        producers[i] = o->producers.v[i];
    }
    o->values.v = values;
    o->producers.v = producers;
    o->values.cap = o->producers.cap = cap;
}

/* Of a file with a thousand large weights 64 MB would be mapped, of which a few pages are needed.
 */
void tv_onnx_stepped(tv_onnx *o, uint64_t bytes)
{
    enum { most = 256 };
    o->stepped += bytes >= TV_ONNX_AROUND;
    if (o->stepped < most)
        return;
    o->stepped = 0;
    tv_file_forget(o->map);
}

void tv_onnx_count_row(tv_onnx *o, tv_str name, tv_onnx_rows which)
{
    tv_count_rows *rows = &o->rows[which];
    uint32_t *slot = tv_names_slot(o->g->a, &rows->names, name);
    if (!*slot) {
        *tv_push(o->g->a, rows) = (tv_count_row){.name = name};
        *slot = (uint32_t)rows->n;
    }
    rows->v[*slot - 1].n++;
}

/* ---- the model ---- */

static const tv_err *read_opset(tv_onnx *o, tv_wire w)
{
    tv_opset s = {0};
    tv_wire_field f;
    bool more = true;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            break;
        if (f.number == 1)
            TV_TRY(tv_wire_str(&w, &f, &s.domain));
        else if (f.number == 2)
            TV_TRY(tv_wire_i64(&w, &f, &s.version));
    }
    if (tv_str_is(s.domain, "ai.onnx"))
        s.domain = (tv_str){0};
    for (size_t i = 0; i < o->opsets.n; i++)
        if (tv_str_eq(o->opsets.v[i].domain, s.domain))
            return NULL;
    *tv_push(o->g->a, &o->opsets) = s;
    return NULL;
}

static const tv_err *read_property(tv_onnx *o, tv_wire w)
{
    tv_str key = {0}, value = {0};
    TV_TRY(tv_onnx_pair(w, &key, &value));
    *tv_push(o->g->a, &o->properties) = key;
    *tv_push(o->g->a, &o->properties) = value;
    return NULL;
}

typedef struct model_fields {
    tv_wire_field graph;
    bool has_graph;
    tv_fields functions;
} model_fields;

static const tv_err *model_field(tv_onnx *o, const tv_wire *w, const tv_wire_field *f,
                                 model_fields *m)
{
    tv_wire inner;
    switch (f->number) {
    case 1:
        return tv_wire_i64(w, f, &o->ir_version);
    case 2:
        return tv_wire_str(w, f, &o->producer_name);
    case 3:
        return tv_wire_str(w, f, &o->producer_version);
    case 4:
        return tv_wire_str(w, f, &o->model_domain);
    case 5:
        return tv_wire_i64(w, f, &o->model_version);
    case 7:
        if (m->has_graph)
            return tv_onnx_broken(o, f->at, "onnx.two-graphs", N_("the model has two graphs"));
        m->graph = *f;
        m->has_graph = true;
        return NULL;
    case 8:
        TV_TRY(tv_wire_enter(w, f, &inner));
        return read_opset(o, inner);
    case 14:
        TV_TRY(tv_wire_enter(w, f, &inner));
        return read_property(o, inner);
    case 20:
        o->counts.training++;
        return NULL;
    case 25:
        *tv_push(o->g->a, &m->functions) = *f;
        return NULL;
    default:
        return NULL;
    }
}

static const tv_err *model_fields_of(tv_onnx *o, tv_wire w, model_fields *m)
{
    tv_wire_field f;
    bool more = true;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        TV_TRY(model_field(o, &w, &f, m));
    }
}

static const tv_err *read_functions(tv_onnx *o, const tv_wire *w, const tv_fields *fields)
{
    for (size_t i = 0; i < fields->n; i++) {
        tv_wire inner;
        tv_function f = {0};
        TV_TRY(tv_wire_enter(w, &fields->v[i], &inner));
        TV_TRY(tv_onnx_function(o, inner, &f));
        *tv_push(o->g->a, &o->functions) = f;
    }
    return NULL;
}

static tv_str producer_of(tv_onnx *o)
{
    if (o->producer_version.n == 0)
        return o->producer_name;
    tv_buf b = tv_buf_in(o->g->a);
    tv_put(&b, o->producer_name);
    tv_putc(&b, ' ');
    tv_put(&b, o->producer_version);
    return tv_buf_str(&b);
}

/* ---- what is odd ---- */

static bool is_imported(const tv_onnx *o, tv_str domain)
{
    for (size_t i = 0; i < o->opsets.n; i++)
        if (tv_str_eq(o->opsets.v[i].domain, domain))
            return true;
    return false;
}

static void warn_domains(tv_onnx *o)
{
    const tv_count_rows *rows = &o->rows[TV_ONNX_DOMAINS];
    tv_buf names = tv_buf_in(o->g->a);
    if (o->opsets.n == 0) {
        tv_gather_warn(o->g, TV_TEXT0("onnx.no-opset",
                                      N_("the model imports no operator set: its operators are "
                                         "read as those of the newest version")));
        return;
    }
    for (size_t i = 0; i < rows->n; i++) {
        const tv_str domain = rows->v[i].name;
        if (is_imported(o, domain))
            continue;
        tv_puts(&names, names.n ? ", " : "");
        tv_put(&names, domain.n ? domain : TV_S("ai.onnx"));
    }
    if (names.n)
        tv_gather_warn(o->g, TV_TEXT(o->g->a, "onnx.domain",
                                     N_("operators of domains that the model does not import: "
                                        "{names}"),
                                     tv_arg_str("names", tv_buf_str(&names))));
}

static void warn_names(tv_onnx *o)
{
    const tv_onnx_counts *c = &o->counts;
    if (o->graph_name.n == 0)
        tv_gather_warn(o->g, TV_TEXT0("onnx.no-name", N_("the graph has no name")));
    if (c->declared_twice > 0)
        tv_gather_warn(o->g, TV_TEXT(o->g->a, "onnx.declared-twice",
                                     N_("inputs that are declared more than once: {n} "
                                        "(\"{name}\"); the first declaration counts"),
                                     tv_arg_num("n", TV_ARG_COUNT, c->declared_twice),
                                     tv_arg_str("name", c->twice)));
    if (c->named_twice > 0)
        tv_gather_warn(o->g, TV_TEXT(o->g->a, "onnx.named-twice",
                                     N_("names that more than one node has: {n} (\"{name}\")"),
                                     tv_arg_num("n", TV_ARG_COUNT, c->named_twice),
                                     tv_arg_str("name", c->same_node)));
}

static void warn_versions(tv_onnx *o)
{
    if (o->ir_version < 3 || o->ir_version > newest_ir)
        tv_gather_warn(o->g, TV_TEXT(o->g->a, "onnx.ir-version",
                                     N_("IR version {n}: versions 3 to {newest} are known"),
                                     tv_arg_num("n", TV_ARG_NUMBER, (double)o->ir_version),
                                     tv_arg_num("newest", TV_ARG_COUNT, newest_ir)));
    if (o->counts.training > 0)
        tv_gather_warn(o->g, TV_TEXT0("onnx.training",
                                      N_("the model holds graphs for training: only the graph "
                                         "for inference is read")));
}

/* ---- the file ---- */

static const tv_err *read_program(tv_onnx *o, tv_wire w)
{
    model_fields m = {0};
    tv_wire inner;
    TV_TRY(model_fields_of(o, w, &m));
    if (!m.has_graph)
        return tv_onnx_broken(o, 0, "onnx.no-graph", N_("no ONNX model: it holds no graph"));
    tv_program *p = tv_new(o->g->a, tv_program, 1);
    o->pytorch = tv_str_is(o->producer_name, "pytorch");
    TV_TRY(tv_wire_enter(&w, &m.graph, &inner));
    TV_TRY(tv_onnx_graph(o, inner, NULL, &p->main));
    o->graph_name = p->main->name;
    TV_TRY(read_functions(o, &w, &m.functions));
    p->dialect = TV_DIALECT_ONNX;
    p->values = o->values.v;
    p->n_values = o->values.n;
    p->functions = o->functions.v;
    p->n_functions = o->functions.n;
    p->opsets = o->opsets.v;
    p->n_opsets = o->opsets.n;
    p->producer = producer_of(o);
    o->g->source.program = p;
    o->g->source.metadata = tv_onnx_facts(o, p);
    return NULL;
}

static bool is_wire_error(const tv_err *e)
{
    const tv_str id = tv_str_of(e->what.id);
    return tv_str_starts(id, TV_S("wire.")) && !tv_str_is(id, "wire.too-deep");
}

/* An error of the encoding means that the file is cut or something else altogether. */
static const tv_err *explain(tv_onnx *o, const tv_err *e)
{
    if (!is_wire_error(e))
        return e;
    tv_err *outer = tv_while(o->g->a, e, TV_TEXT0("onnx.broken", N_("reading the ONNX graph")));
    return tv_hint(outer, TV_TEXT0("onnx.broken", N_("Fetch the file again: it is cut short, "
                                                     "damaged or no ONNX model.")));
}

const tv_err *tv_read_onnx(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    tv_onnx *o = tv_new(g->a, tv_onnx, 1);
    o->g = g;
    o->file = tv_gather_file(g, path, bytes);
    o->path = g->files.v[o->file].path;
    o->folder = tv_path_folder(o->path);
    o->map = bytes.p == g->mapped ? bytes : (tv_bytes_view){0};
    g->source.kind = TV_SOURCE_PROGRAM;
    const tv_err *e = read_program(o, tv_wire_in(g->a, o->path, bytes));
    if (e)
        return explain(o, e);
    warn_versions(o);
    warn_domains(o);
    warn_names(o);
    tv_onnx_warn_tensors(o);
    return NULL;
}

/* The first field is the IR version; the next is a text or a message of the model. */
static bool looks_like_onnx(tv_bytes_view bytes)
{
    if (bytes.n < 4 || bytes.p[0] != 0x08 || bytes.p[1] < 3 || bytes.p[1] > 32)
        return false;
    return bytes.p[2] == 0x12 || bytes.p[2] == 0x1a || bytes.p[2] == 0x3a || bytes.p[2] == 0x42;
}

static bool probe(tv_str name, tv_bytes_view bytes)
{
    if (tv_str_ends(name, TV_S(".onnx")))
        return true;
    return tv_str_ends(name, TV_S(".pb")) && looks_like_onnx(bytes);
}

extern const tv_format tv_format_onnx;
const tv_format tv_format_onnx = {
    .name = "onnx",
    .summary = N_("ONNX"),
    .probe = probe,
    .read = tv_read_onnx,
};
