/* safetensors: eight bytes of length, a JSON header, the data. Only the header's pages are
 * touched; its events go straight into tensors, no document is built.
 * Format: github.com/huggingface/safetensors README ("Format"). */
#include "gather.h"

#include <string.h>

typedef struct header {
    tv_gather *g;
    tv_json_scan scan; /* offsets are the file's: the text starts with the file */
    tv_str path;
    uint32_t file;
    uint64_t data_begin;
    uint64_t data_bytes;
    tv_str last_type_text; /* the tensors of a file have few types */
    tv_dtype last_type;
    size_t unknown_types;
    tv_str unknown_type;
} header;

/* One entry while it is read. */
typedef struct entry {
    tv_tensor t;
    uint64_t begin, end;
    uint64_t key_at, shape_at, offsets_at;
    bool has_type, has_shape, has_offsets;
} entry;

static const tv_err *broken(header *h, const char *id, const char *msgid, uint64_t at)
{
    return tv_broken(h->g, h->path, id, msgid, at);
}

/* ---- the parts of an entry ---- */

static const tv_err *next_number(header *h, tv_json_event *event, uint64_t *v)
{
    const tv_u64_read r = tv_str_u64(event->s);
    if (event->type != TV_JSON_NUMBER || !r.ok)
        return broken(h, "safetensors.no-count", N_("expected a whole number, not negative"),
                      event->offset);
    *v = r.v;
    return NULL;
}

static const tv_err *read_shape(header *h, tv_json_event event, entry *x)
{
    x->shape_at = event.offset;
    x->has_shape = true;
    if (event.type != TV_JSON_ARRAY)
        return broken(h, "safetensors.no-shape", N_("a shape is no list"), event.offset);
    for (;;) {
        TV_TRY(tv_json_next(&h->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        if (x->t.rank == TV_LIMIT_RANK)
            return tv_fail_at(h->g->a, TV_LIMIT,
                              TV_TEXT0("safetensors.rank", N_("a tensor has too many dimensions")),
                              h->path, event.offset);
        TV_TRY(next_number(h, &event, &x->t.dims[x->t.rank++]));
    }
}

static const tv_err *read_offsets(header *h, tv_json_event event, entry *x)
{
    uint64_t v[2] = {0};
    size_t n = 0;
    x->offsets_at = event.offset;
    x->has_offsets = true;
    if (event.type != TV_JSON_ARRAY)
        return broken(h, "safetensors.offsets", N_("data_offsets is no pair of numbers"),
                      x->offsets_at);
    for (;;) {
        TV_TRY(tv_json_next(&h->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            break;
        if (n == 2)
            return broken(h, "safetensors.offsets", N_("data_offsets is no pair of numbers"),
                          x->offsets_at);
        TV_TRY(next_number(h, &event, &v[n++]));
    }
    if (n != 2)
        return broken(h, "safetensors.offsets", N_("data_offsets is no pair of numbers"),
                      x->offsets_at);
    x->begin = v[0];
    x->end = v[1];
    return NULL;
}

static const tv_err *read_type(header *h, tv_json_event event, entry *x)
{
    if (event.type != TV_JSON_STRING)
        return broken(h, "safetensors.no-type", N_("an element type is no text"), event.offset);
    x->has_type = true;
    if (!tv_str_eq(event.s, h->last_type_text)) {
        h->last_type_text = event.s;
        h->last_type = tv_dtype_named(event.s);
    }
    x->t.dtype = h->last_type;
    if (x->t.dtype == TV_DTYPE_UNKNOWN)
        x->t.dtype_text = event.s;
    return NULL;
}

static const tv_err *read_member(header *h, tv_json_event key, entry *x)
{
    tv_json_event event;
    TV_TRY(tv_json_next(&h->scan, &event));
    const bool type = tv_str_is(key.s, "dtype"), shape = tv_str_is(key.s, "shape");
    const bool offsets = tv_str_is(key.s, "data_offsets");
    if ((type && x->has_type) || (shape && x->has_shape) || (offsets && x->has_offsets))
        return tv_fail_at(h->g->a, TV_INPUT,
                          TV_TEXT(h->g->a, "json.duplicate-key",
                                  N_("the key \"{key}\" stands twice"), tv_arg_str("key", key.s)),
                          h->path, key.offset);
    if (type)
        return read_type(h, event, x);
    if (shape)
        return read_shape(h, event, x);
    if (offsets)
        return read_offsets(h, event, x);
    return tv_json_skip(&h->scan, event);
}

/* ---- what must agree ---- */

static bool multiply_dims(tv_tensor *t)
{
    t->elements = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(t->elements, t->dims[i], &t->elements))
            return false;
    return true;
}

static const tv_err *size_differs(header *h, const entry *x, double want)
{
    return tv_fail_at(h->g->a, TV_INPUT,
                      TV_TEXT(h->g->a, "safetensors.size",
                              N_("\"{name}\" should take {want} bytes by type and shape, its "
                                 "offsets say {have}"),
                              tv_arg_str("name", x->t.name), tv_arg_num("want", TV_ARG_COUNT, want),
                              tv_arg_num("have", TV_ARG_COUNT, (double)(x->end - x->begin))),
                      h->path, x->offsets_at);
}

/* Types smaller than a byte are packed without padding between rows, but fill whole bytes. */
static const tv_err *check_size(header *h, entry *x)
{
    const tv_dtype_info *info = tv_dtype_of(x->t.dtype);
    const uint64_t n = x->t.elements, block = info->block_elements;
    x->t.bytes = x->end - x->begin;
    if (x->t.dtype == TV_DTYPE_UNKNOWN) {
        h->unknown_types++;
        h->unknown_type = x->t.dtype_text;
        return NULL;
    }
    if (n % block)
        return broken(h, "safetensors.half-byte", N_("a packed tensor does not fill whole bytes"),
                      x->shape_at);
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(n / block, (uint64_t)info->block_bytes, &bytes))
        return broken(h, "safetensors.shape-overflow", N_("a shape is larger than any file"),
                      x->shape_at);
    return bytes == x->t.bytes ? NULL : size_differs(h, x, (double)bytes);
}

static const tv_err *cut_short(header *h, const entry *x)
{
    const uint64_t have = h->data_begin + h->data_bytes;
    return tv_fail_at(h->g->a, TV_INPUT,
                      TV_TEXT(h->g->a, "safetensors.cut-short",
                              N_("the file ends {bytes} bytes before the data of \"{name}\" does"),
                              tv_arg_num("bytes", TV_ARG_COUNT, (double)(x->end - h->data_bytes)),
                              tv_arg_str("name", x->t.name)),
                      h->path, have);
}

static const tv_err *check_entry(header *h, entry *x)
{
    if (!x->has_type || !x->has_shape || !x->has_offsets)
        return broken(h, "safetensors.incomplete",
                      N_("a tensor lacks its dtype, shape or data_offsets"), x->key_at);
    if (x->end < x->begin)
        return broken(h, "safetensors.backwards", N_("a tensor ends before it begins"),
                      x->offsets_at);
    if (!multiply_dims(&x->t))
        return broken(h, "safetensors.shape-overflow", N_("a shape is larger than any file"),
                      x->shape_at);
    TV_TRY(check_size(h, x));
    if (x->end > h->data_bytes)
        return cut_short(h, x);
    x->t.offset = h->data_begin + x->begin;
    return NULL;
}

static const tv_err *read_entry(header *h, tv_json_event key)
{
    entry x = {.t = {.name = key.s, .file = h->file}, .key_at = key.offset};
    tv_json_event event;
    TV_TRY(tv_json_next(&h->scan, &event));
    if (event.type != TV_JSON_OBJECT)
        return broken(h, "safetensors.no-entry", N_("a tensor is no object"), event.offset);
    for (;;) {
        TV_TRY(tv_json_next(&h->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            break;
        TV_TRY(read_member(h, event, &x));
    }
    TV_TRY(check_entry(h, &x));
    if (h->g->tensors.n == TV_LIMIT_TENSORS)
        return tv_fail_at(h->g->a, TV_LIMIT,
                          TV_TEXT0("read.too-many-tensors", N_("the model has too many tensors")),
                          h->path, key.offset);
    *tv_push(h->g->a, &h->g->tensors) = x.t;
    return NULL;
}

/* ---- __metadata__ ---- */

typedef struct node_list {
    tv_json *v;
    size_t n;
    size_t cap;
} node_list;

static bool has_key(const node_list *list, tv_str key)
{
    for (size_t i = 0; i < list->n; i++)
        if (tv_str_eq(list->v[i].key, key))
            return true;
    return false;
}

/* Writers put a handful of strings there; more are skipped, so that the search stays short. */
enum { metadata_keys = 256 };

static const tv_err *read_metadata(header *h)
{
    tv_json_event event, value;
    node_list list = {0};
    TV_TRY(tv_json_next(&h->scan, &event));
    if (event.type == TV_JSON_NULL)
        return NULL;
    if (event.type != TV_JSON_OBJECT)
        return broken(h, "safetensors.metadata", N_("__metadata__ is no map of texts"),
                      event.offset);
    for (;;) {
        TV_TRY(tv_json_next(&h->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            break;
        TV_TRY(tv_json_next(&h->scan, &value));
        if (value.type != TV_JSON_STRING)
            return broken(h, "safetensors.metadata", N_("__metadata__ is no map of texts"),
                          value.offset);
        if (list.n < metadata_keys && !has_key(&list, event.s))
            *tv_push(h->g->a, &list) = (tv_json){
                .type = TV_JSON_STRING,
                .key = event.s,
                .s = value.s,
                .offset = event.offset,
            };
    }
    if (h->g->source.metadata)
        return NULL; /* the first shard's */
    tv_json *object = tv_new(h->g->a, tv_json, 1);
    *object = (tv_json){.type = TV_JSON_OBJECT, .items = list.v, .n = list.n};
    h->g->source.metadata = object;
    return NULL;
}

/* ---- the header ---- */

/* Each entry says "data_offsets" once: room for all of them at once saves copies. The shortest
 * entry bounds what a false header can claim. */
static size_t count_entries(tv_str text)
{
    static const char word[] = "\"data_offsets\"";
    enum { shortest = sizeof "\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,0]}" - 1 };
    const size_t most = text.n / shortest + 1;
    size_t n = 0;
    while (n < most) {
        const char *at = memmem(text.p, text.n, word, sizeof word - 1);
        if (!at)
            break;
        text = tv_str_drop(text, (size_t)(at - text.p) + sizeof word - 1);
        n++;
    }
    return n;
}

static const tv_err *read_entries(header *h)
{
    tv_json_event event;
    bool metadata = false;
    TV_TRY(tv_json_next(&h->scan, &event));
    if (event.type != TV_JSON_OBJECT)
        return broken(h, "safetensors.no-object", N_("the header is no object"), event.offset);
    tv_gather_room(h->g, count_entries(tv_str_drop(h->scan.text, 8)));
    for (;;) {
        TV_TRY(tv_json_next(&h->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            break;
        if (!tv_str_is(event.s, "__metadata__")) {
            TV_TRY(read_entry(h, event));
            continue;
        }
        if (metadata)
            return broken(h, "safetensors.metadata-twice", N_("__metadata__ stands twice"),
                          event.offset);
        metadata = true;
        TV_TRY(read_metadata(h));
    }
    return tv_json_next(&h->scan, &event);
}

static void warn_types(header *h)
{
    if (h->unknown_types == 0)
        return;
    tv_gather_warn(h->g, TV_TEXT(h->g->a, "safetensors.unknown-type",
                                 N_("tensors of {file} with a type that is not known ({type}): "
                                    "{n}; their bytes are the file's, their use is not known"),
                                 tv_arg_num("n", TV_ARG_COUNT, (double)h->unknown_types),
                                 tv_arg_str("file", tv_path_name(h->path)),
                                 tv_arg_str("type", h->unknown_type)));
}

static uint64_t little_endian(const unsigned char *p)
{
    uint64_t v = 0;
    for (unsigned i = 8; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static const tv_err *header_length(tv_gather *g, tv_str path, tv_bytes_view bytes, uint64_t *n)
{
    if (bytes.n < 8)
        return tv_broken(g, path, "safetensors.short",
                         N_("the file ends inside the header's length"), bytes.n);
    *n = little_endian(bytes.p);
    if (*n > TV_LIMIT_SAFETENSORS_HEADER_BYTES)
        return tv_fail_at(g->a, TV_LIMIT,
                          TV_TEXT(g->a, "safetensors.header-limit",
                                  N_("the header claims {n} bytes: no safetensors file, or a "
                                     "damaged one"),
                                  tv_arg_num("n", TV_ARG_COUNT, (double)*n)),
                          path, 0);
    if (*n > bytes.n - 8)
        return tv_broken(g, path, "safetensors.short-header", N_("the file ends inside the header"),
                         bytes.n);
    return NULL;
}

const tv_err *tv_read_safetensors(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    uint64_t n = 0;
    TV_TRY(header_length(g, path, bytes, &n));
    header h = {.g = g, .file = tv_gather_file(g, path, bytes)};
    const size_t first = g->tensors.n;
    h.path = g->files.v[h.file].path;
    h.data_begin = 8 + n;
    h.data_bytes = bytes.n - h.data_begin;
    h.scan = tv_json_open(g->a, h.path, (tv_str){(const char *)bytes.p, (size_t)h.data_begin});
    h.scan.at = 8;
    TV_TRY(read_entries(&h));
    warn_types(&h);
    if (g->source.kind == TV_SOURCE_NONE)
        g->source.kind = TV_SOURCE_SAFETENSORS;
    return tv_gather_check(g, first, (tv_data_area){h.data_begin, bytes.n, 1, false});
}

/* ---- a file that was named ---- */

/* "model-00002-of-00003.safetensors": the index that goes with it, if it is there. */
static tv_str index_of_part(tv_gather *g, tv_str path)
{
    const tv_part part = tv_part_of(path, TV_S(".safetensors"));
    if (part.count == 0)
        return (tv_str){0};
    const tv_str index = tv_str_join(g->a, part.stem, TV_S(".safetensors.index.json"));
    return tv_file_stat(g->a, index).exists ? index : (tv_str){0};
}

static const tv_err *read_named_index(tv_gather *g, tv_str path)
{
    tv_bytes_view bytes;
    TV_TRY(tv_gather_map(g, path, &bytes));
    return tv_read_weight_index(g, path, bytes);
}

static const tv_err *read(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    TV_TRY(tv_read_config_beside(g, path));
    const tv_str index = index_of_part(g, path);
    if (index.n)
        return read_named_index(g, index);
    if (tv_str_glob(path, TV_S("*-of-*.safetensors")))
        tv_gather_warn(g, TV_TEXT(g->a, "safetensors.one-part",
                                  N_("{file} is one part of a model: only its tensors are counted; "
                                     "name the folder to read all parts"),
                                  tv_arg_str("file", tv_path_name(path))));
    if (tv_str_starts(tv_path_name(path), TV_S("adapter")))
        TV_TRY(tv_warn_adapter(g, tv_path_folder(path)));
    return tv_read_safetensors(g, path, bytes);
}

static bool probe(tv_str name, tv_bytes_view bytes)
{
    if (tv_str_ends(name, TV_S(".safetensors")))
        return true;
    return bytes.n > 9 && bytes.p[8] == '{' && little_endian(bytes.p) <= bytes.n - 8;
}

extern const tv_format tv_format_safetensors;
const tv_format tv_format_safetensors = {
    .name = "safetensors",
    .summary = N_("safetensors"),
    .probe = probe,
    .read = read,
};
