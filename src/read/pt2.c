/* Archives of torch.export.save: a zip with the program's JSON and its tensors. Three layouts:
 *   2.1 to 2.6  serialized_exported_program.json, serialized_state_dict.pt at the root
 *   2.7, 2.8    NAME/models/model.json, NAME/data/weights/model.pt
 *   since 2.9   the same, with NAME/data/weights/weight_0 ... and a table of what they are
 * The directory, the JSON and the tables are read; of tensors only small constants. Shapes of the
 * first two layouts come from the graph: their pickled tensors are left alone. */
#include "pt2.h"

typedef struct archive {
    tv_gather *g;
    tv_str path;
    tv_zip zip;
    uint32_t file;
    tv_str root;  /* "NAME/" of the newer layouts, or empty */
    tv_str model; /* "model" */
    const tv_zip_entry *json;
    const tv_zip_entry *weights; /* the older layouts' pickled tensors; NULL: none */
    const tv_zip_entry *constants;
} archive;

/* ---- finding the parts ---- */

static const tv_zip_entry *entry_at(const archive *x, tv_str inner)
{
    return tv_zip_find(&x->zip, tv_str_join(x->g->a, x->root, inner));
}

/* The first of several programs is read, "model" before others; *n is how many there are. */
static const tv_zip_entry *find_model(archive *x, size_t *n)
{
    const tv_zip_entry *first = NULL;
    *n = 0;
    for (size_t i = 0; i < x->zip.n; i++) {
        const tv_str name = x->zip.entries[i].name;
        const tv_cut top = tv_str_cut(name, '/');
        const tv_str inner = top.tail;
        if (!top.found || !tv_str_starts(inner, TV_S("models/")) ||
            !tv_str_ends(inner, TV_S(".json")))
            continue;
        const bool usual = tv_str_is(inner, "models/model.json");
        (*n)++;
        if (first && !usual)
            continue;
        first = &x->zip.entries[i];
        x->root = tv_str_take(name, top.head.n + 1);
        x->model =
            tv_str_drop(tv_str_take(inner, inner.n - (sizeof ".json" - 1)), sizeof "models/" - 1);
    }
    return first;
}

static tv_str inner_name(const archive *x, const char *folder, const char *ending)
{
    tv_arena *a = x->g->a;
    return tv_str_join(a, tv_str_join(a, tv_str_of(folder), x->model), tv_str_of(ending));
}

static bool has_inner(const archive *x, const char *part)
{
    for (size_t i = 0; i < x->zip.n; i++)
        if (tv_str_has(x->zip.entries[i].name, tv_str_of(part)))
            return true;
    return false;
}

static const tv_err *no_program(archive *x)
{
    const bool compiled = has_inner(x, "data/aotinductor/");
    tv_err *e = tv_fail(
        x->g->a, compiled ? TV_UNSUPPORTED : TV_INPUT,
        compiled ? TV_TEXT0("pt2.compiled", N_("the package holds compiled code and no graph"))
                 : TV_TEXT0("pt2.no-program", N_("the archive holds no exported program")));
    return tv_hint(tv_in_file(e, x->path),
                   TV_TEXT0("pt2.no-program",
                            N_("Save the program itself: torch.export.save(torch.export.export("
                               "model, inputs), \"model.pt2\").")));
}

static void warn_models(archive *x, size_t n)
{
    if (n > 1)
        tv_gather_warn(x->g, TV_TEXT(x->g->a, "pt2.models",
                                     N_("the archive holds {n} programs: \"{name}\" is read"),
                                     tv_arg_num("n", TV_ARG_COUNT, (double)n),
                                     tv_arg_str("name", x->model)));
}

static const tv_err *find_parts(archive *x)
{
    size_t n = 0;
    x->json = tv_zip_find(&x->zip, TV_S("serialized_exported_program.json"));
    if (x->json) {
        x->weights = tv_zip_find(&x->zip, TV_S("serialized_state_dict.pt"));
        x->constants = tv_zip_find(&x->zip, TV_S("serialized_constants.pt"));
        /* 2.1 and 2.2 */
        if (!x->weights)
            x->weights = tv_zip_find(&x->zip, TV_S("serialized_state_dict.json"));
        return NULL;
    }
    x->json = find_model(x, &n);
    if (!x->json)
        return no_program(x);
    warn_models(x, n);
    x->weights = entry_at(x, inner_name(x, "data/weights/", ".pt"));
    x->constants = entry_at(x, inner_name(x, "data/constants/", ".pt"));
    return NULL;
}

/* ---- tables of tensors ---- */

/* Names to numbers. */
typedef struct index_of {
    const tv_str *names;
    uint32_t *slots;
    size_t n_slots;
} index_of;

static index_of index_for(tv_arena *a, const tv_str *names, size_t most)
{
    index_of x = {.names = names, .n_slots = 64};
    while (x.n_slots < 2 * most)
        x.n_slots *= 2;
    x.slots = tv_new(a, uint32_t, x.n_slots);
    return x;
}

/* The number under which the name stands; i where it is new. */
static size_t index_put(index_of *x, size_t i)
{
    size_t at = (size_t)tv_str_hash(x->names[i]) & (x->n_slots - 1);
    for (; x->slots[at]; at = (at + 1) & (x->n_slots - 1))
        if (tv_str_eq(x->names[x->slots[at] - 1], x->names[i]))
            return x->slots[at] - 1;
    x->slots[at] = (uint32_t)i + 1;
    return i;
}

static size_t index_get(const index_of *x, tv_str name, size_t none)
{
    size_t at = (size_t)tv_str_hash(name) & (x->n_slots - 1);
    for (; x->slots[at]; at = (at + 1) & (x->n_slots - 1))
        if (tv_str_eq(x->names[x->slots[at] - 1], name))
            return x->slots[at] - 1;
    return none;
}

/* One row of a table: a tensor and the entry that holds its storage. */
typedef struct row {
    tv_tensor t;
    tv_str entry;
    bool contiguous;
    bool pickled;
    size_t first; /* the first row with this entry: itself unless tensors share memory */
    bool shared;
} row;

typedef struct table {
    row *v;
    size_t n;
    tv_str *names;
    index_of by_name;
} table;

static const tv_err *bad_table(archive *x, tv_str file, uint64_t offset)
{
    return tv_broken(x->g, file, "pt2.table", N_("a tensor's entry is malformed"), offset);
}

/* C order, without gaps, as far as the strides are stated. */
static bool is_contiguous(const tv_tensor *t, const tv_json *strides)
{
    uint64_t step = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        const tv_u64_read s = tv_json_u64(tv_json_get(tv_json_at(strides, i), "as_int"));
        if (t->dims[i] != 1 && (!s.ok || s.v != step))
            return false;
        if (__builtin_mul_overflow(step, t->dims[i], &step))
            return false;
    }
    return true;
}

static const tv_err *read_meta(archive *x, tv_str file, const tv_json *meta, row *y)
{
    const tv_json *sizes = tv_json_get(meta, "sizes");
    const tv_u64_read type = tv_json_u64(tv_json_get(meta, "dtype"));
    if (sizes->type != TV_JSON_ARRAY || !type.ok || sizes->n > TV_LIMIT_RANK)
        return bad_table(x, file, meta->offset);
    tv_tensor *t = &y->t;
    t->dtype = tv_pt2_dtype(type.v);
    if (t->dtype == TV_DTYPE_UNKNOWN)
        t->dtype_text = tv_json_get(meta, "dtype")->s;
    t->rank = (uint32_t)sizes->n;
    t->elements = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        const tv_u64_read d = tv_json_u64(tv_json_get(tv_json_at(sizes, i), "as_int"));
        t->dims[i] = d.v;
        if (!d.ok || __builtin_mul_overflow(t->elements, d.v, &t->elements))
            return bad_table(x, file, sizes->offset);
    }
    const tv_dtype_info *info = tv_dtype_of(t->dtype);
    if (info->block_elements && __builtin_mul_overflow(t->elements / info->block_elements,
                                                       (uint64_t)info->block_bytes, &t->bytes))
        return bad_table(x, file, sizes->offset);
    y->contiguous = is_contiguous(t, tv_json_get(meta, "strides"));
    return NULL;
}

static const tv_err *too_short(archive *x, tv_str name, uint64_t want, uint64_t have, uint64_t at)
{
    tv_arena *a = x->g->a;
    return tv_fail_at(a, TV_INPUT,
                      TV_TEXT(a, "pt2.short-entry",
                              N_("\"{name}\" should take {want} bytes, the archive has {have}"),
                              tv_arg_str("name", name),
                              tv_arg_num("want", TV_ARG_COUNT, (double)want),
                              tv_arg_num("have", TV_ARG_COUNT, (double)have)),
                      x->path, at);
}

/* Where the tensor lies; its storage must be as long as the tensor. */
static const tv_err *place_row(archive *x, const char *folder, const tv_json *meta, row *y)
{
    tv_arena *a = x->g->a;
    const tv_zip_entry *e = entry_at(x, tv_str_join(a, tv_str_of(folder), y->entry));
    if (!e)
        return tv_in_file(
            tv_fail(a, TV_INPUT,
                    TV_TEXT(a, "pt2.no-entry", N_("the data of \"{name}\" is not in the archive"),
                            tv_arg_str("name", y->t.name))),
            x->path);
    const tv_u64_read skip = tv_json_u64(tv_json_path(meta, "storage_offset.as_int"));
    uint64_t before = 0;
    TV_TRY(tv_zip_data(a, &x->zip, e, &y->t.offset));
    if (skip.ok && __builtin_mul_overflow(skip.v, (uint64_t)tv_dtype_bytes(y->t.dtype), &before))
        before = UINT64_MAX;
    if (!y->pickled && y->contiguous && (before > e->bytes || y->t.bytes > e->bytes - before))
        return too_short(x, y->t.name, y->t.bytes, e->bytes, y->t.offset);
    if (e->method == 0 && before <= e->bytes)
        y->t.offset += before;
    else
        y->contiguous = false; /* packed: its contents are not looked at */
    return NULL;
}

/* The entry's bytes as text, and the name that messages give it. */
static const tv_err *read_text(archive *x, const tv_zip_entry *e, size_t limit, tv_str *file,
                               tv_str *text)
{
    tv_arena *a = x->g->a;
    tv_bytes_view bytes;
    *file = tv_path_join(a, x->path, e->name);
    TV_TRY(tv_zip_read(a, &x->zip, e, limit, &bytes));
    *text = (tv_str){(const char *)bytes.p, bytes.n};
    return NULL;
}

/* {"config": {"c.weight": {"path_name": "weight_0", "use_pickle": false, "tensor_meta": {...}}}} */
static const tv_err *read_table(archive *x, const char *folder, const char *ending, table *out)
{
    tv_arena *a = x->g->a;
    tv_str file, text;
    const tv_json *doc = NULL;
    const tv_zip_entry *e = entry_at(x, inner_name(x, folder, ending));
    if (!e)
        return NULL;
    TV_TRY(read_text(x, e, TV_LIMIT_JSON_DOC_BYTES, &file, &text));
    TV_TRY(tv_json_parse(a, file, text, &doc));
    const tv_json *config = tv_json_get(doc, "config");
    if (config->type != TV_JSON_OBJECT)
        return bad_table(x, file, 0);
    out->v = tv_new(a, row, config->n);
    out->names = tv_new(a, tv_str, config->n);
    tv_str *entries = tv_new(a, tv_str, config->n);
    out->by_name = index_for(a, out->names, config->n);
    index_of by_entry = index_for(a, entries, config->n);
    for (size_t i = 0; i < config->n; i++) {
        const tv_json *j = &config->items[i], *meta = tv_json_get(j, "tensor_meta");
        row *y = &out->v[out->n];
        *y = (row){.t = {.name = j->key, .file = x->file}};
        y->entry = tv_json_str(tv_json_get(j, "path_name"));
        y->pickled = tv_json_bool(tv_json_get(j, "use_pickle"), false);
        if (meta->type != TV_JSON_OBJECT)
            continue; /* an object of a script, no tensor */
        TV_TRY(read_meta(x, file, meta, y));
        TV_TRY(place_row(x, folder, meta, y));
        out->names[out->n] = y->t.name;
        entries[out->n] = y->entry;
        y->first = index_put(&by_entry, out->n);
        if (y->first != out->n)
            y->shared = out->v[y->first].shared = true;
        index_put(&out->by_name, out->n++);
    }
    return NULL;
}

/* ---- the program's tensors ---- */

static void keep_contents(archive *x, const row *y, tv_value *v)
{
    const tv_tensor *t = &y->t;
    if (y->pickled || !y->contiguous || t->elements > TV_LIMIT_PROGRAM_CONST_ELEMENTS ||
        t->dtype != v->dtype || t->elements != tv_value_elements(v) || t->offset > x->zip.bytes.n ||
        t->bytes > x->zip.bytes.n - t->offset)
        return;
    v->data = (tv_bytes_view){x->zip.bytes.p + t->offset, (size_t)t->bytes};
}

/* Contents of what no gradient changes: tables of indices, scales, masks. */
static void join_table(archive *x, tv_pt2_graph *graph, const table *t, uint32_t base)
{
    for (size_t i = 0; t->n && i < graph->n_weights; i++) {
        /* the list is ours until the source is handed over */
        tv_pt2_weight *w = &graph->weights[i];
        const size_t k = index_get(&t->by_name, w->name, t->n);
        if (k == t->n || w->found)
            continue;
        w->found = true;
        if (t->v[k].shared) /* a number from 1 for each storage */
            w->at->storage = base + (uint32_t)t->v[k].first + 1;
        if (w->role != TV_PT2_PARAMETER)
            keep_contents(x, &t->v[k], w->at);
    }
}

static void list_table(archive *x, const table *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].first == i)
            *tv_push(x->g->a, &x->g->tensors) = t->v[i].t;
}

/* A tensor of the older layouts, by what the graph says of it. */
static const tv_err *list_weight(archive *x, const tv_pt2_weight *w, const tv_zip_entry *e)
{
    const tv_value *v = w->at;
    tv_tensor t = {.name = w->name, .dtype = v->dtype, .dtype_text = v->dtype_text};
    t.file = x->file;
    t.offset = e->header;
    t.rank = v->rank;
    for (uint32_t i = 0; i < v->rank; i++)
        t.dims[i] = v->dims[i].size < 0 ? 0 : (uint64_t)v->dims[i].size;
    t.elements = tv_value_elements(v);
    const tv_u64_read bytes = tv_dtype_tensor_bytes(v->dtype, t.elements, t.elements);
    t.bytes = bytes.ok ? bytes.v : 0;
    if (t.bytes > e->bytes)
        return too_short(x, t.name, t.bytes, e->bytes, t.offset);
    *tv_push(x->g->a, &x->g->tensors) = t;
    return NULL;
}

static const tv_err *list_weights(archive *x, const tv_pt2_graph *graph)
{
    for (size_t i = 0; i < graph->n_weights; i++) {
        const tv_pt2_weight *w = &graph->weights[i];
        const tv_zip_entry *e = w->role == TV_PT2_CONSTANT ? x->constants : x->weights;
        if (!w->found && w->at->shaped && e)
            TV_TRY(list_weight(x, w, e));
    }
    return NULL;
}

static const tv_err *read_tensors(archive *x, tv_pt2_graph *graph)
{
    table weights = {0}, constants = {0};
    TV_TRY(read_table(x, "data/weights/", "_weights_config.json", &weights));
    TV_TRY(read_table(x, "data/constants/", "_constants_config.json", &constants));
    join_table(x, graph, &weights, 0);
    join_table(x, graph, &constants, (uint32_t)weights.n);
    list_table(x, &weights);
    list_table(x, &constants);
    return list_weights(x, graph);
}

const tv_err *tv_read_pt2(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    archive x = {.g = g, .file = tv_gather_file(g, path, bytes)};
    tv_str file, text;
    tv_pt2_graph graph;
    x.path = g->files.v[x.file].path;
    TV_TRY(tv_zip_open(g->a, x.path, bytes, &x.zip));
    TV_TRY(find_parts(&x));
    TV_TRY(read_text(&x, x.json, TV_LIMIT_PT2_JSON_BYTES, &file, &text));
    TV_TRY(tv_pt2_read_graph(g->a, file, text, &graph));
    TV_TRY(read_tensors(&x, &graph));
    g->source.kind = TV_SOURCE_PROGRAM;
    g->source.program = graph.program;
    return NULL;
}

/* ---- what it looks like ---- */

/* The first entry's name stands 30 bytes into the file. */
static tv_str first_entry(tv_bytes_view bytes)
{
    enum { fixed = 30, length_at = 26 };
    if (bytes.n < fixed || !tv_zip_is(bytes))
        return (tv_str){0};
    const size_t n = bytes.p[length_at] | (size_t)bytes.p[length_at + 1] << 8;
    return n <= bytes.n - fixed ? (tv_str){(const char *)bytes.p + fixed, n} : (tv_str){0};
}

static bool probe(tv_str name, tv_bytes_view bytes)
{
    if (tv_str_ends(name, TV_S(".pt2")))
        return true;
    const tv_str first = first_entry(bytes), inner = tv_str_cut(first, '/').tail;
    return tv_str_is(first, "serialized_exported_program.json") ||
           tv_str_is(inner, "archive_format") || tv_str_starts(inner, TV_S("models/")) ||
           tv_str_starts(inner, TV_S("data/weights/"));
}

extern const tv_format tv_format_pt2;
const tv_format tv_format_pt2 = {
    .name = "pt2",
    .summary = N_("PyTorch exported program"),
    .probe = probe,
    .read = tv_read_pt2,
};
