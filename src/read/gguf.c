/* GGUF, versions 1 to 3, little and big endian, whole or split: the key-values become an object,
 * the tensor table becomes tensors. The data is not touched.
 * Format: github.com/ggml-org/ggml docs/gguf.md; version 1 has 32-bit counts and lengths. */
#include "gather.h"

#include <stdlib.h>
#include <string.h>

/* An array of a key-value is kept up to this length (layer patterns); vocabularies are counted. */
enum { array_kept = 512, array_depth = 4 };

typedef enum value_type {
    VALUE_U8,
    VALUE_I8,
    VALUE_U16,
    VALUE_I16,
    VALUE_U32,
    VALUE_I32,
    VALUE_F32,
    VALUE_BOOL,
    VALUE_STRING,
    VALUE_ARRAY,
    VALUE_U64,
    VALUE_I64,
    VALUE_F64,
    VALUE_TYPE_COUNT,
} value_type;

static const unsigned char value_bytes[VALUE_TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

typedef struct cursor {
    tv_gather *g;
    tv_str path;
    tv_bytes_view bytes;
    size_t at;
    uint32_t file;
    uint32_t version;
    bool big; /* byte order */
    uint64_t n_tensors, n_keys;
    tv_json *keys;
    size_t first; /* index of this file's first tensor */
} cursor;

/* ---- bytes ---- */

static const tv_err *broken(cursor *c, const char *id, const char *msgid, uint64_t at)
{
    return tv_broken(c->g, c->path, id, msgid, at);
}

static const tv_err *too_many(cursor *c, const char *msgid, uint64_t n, uint64_t at)
{
    return tv_fail_at(
        c->g->a, TV_LIMIT,
        TV_TEXT(c->g->a, "gguf.limit", msgid, tv_arg_num("n", TV_ARG_COUNT, (double)n)), c->path,
        at);
}

static size_t remaining(const cursor *c)
{
    return c->bytes.n - c->at;
}

static const tv_err *ends(cursor *c)
{
    return broken(c, "gguf.short", N_("the file ends inside its header"), c->bytes.n);
}

static const tv_err *take(cursor *c, size_t n, const unsigned char **p)
{
    if (n > remaining(c))
        return ends(c);
    *p = c->bytes.p + c->at;
    c->at += n;
    return NULL;
}

static const tv_err *take_uint(cursor *c, size_t n, uint64_t *v)
{
    const unsigned char *p = NULL;
    TV_TRY(take(c, n, &p));
    *v = 0;
    for (size_t i = 0; i < n; i++)
        *v = *v << 8 | p[c->big ? i : n - 1 - i];
    return NULL;
}

/* A count or a length: 32 bits in version 1. */
static const tv_err *take_size(cursor *c, uint64_t *v)
{
    return take_uint(c, c->version == 1 ? 4 : 8, v);
}

static const tv_err *take_text(cursor *c, tv_str *s)
{
    uint64_t n = 0;
    const unsigned char *p = NULL;
    TV_TRY(take_size(c, &n));
    if (n > remaining(c))
        return ends(c);
    TV_TRY(take(c, (size_t)n, &p));
    *s = (tv_str){(const char *)p, (size_t)n};
    return NULL;
}

/* ---- values ---- */

static double as_f32(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float v;
    memcpy(&v, &low, sizeof v);
    return (double)v;
}

static double as_f64(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static int64_t sign_extend(uint64_t v, unsigned bytes)
{
    const unsigned shift = 64 - 8 * bytes;
    return (int64_t)(v << shift) >> shift;
}

static bool is_finite(double v)
{
    return v - v == 0;
}

static void set_number(cursor *c, tv_json *node, value_type type, uint64_t bits)
{
    tv_buf text = tv_buf_in(c->g->a);
    node->type = TV_JSON_NUMBER;
    if (type == VALUE_F32 || type == VALUE_F64) {
        const double v = type == VALUE_F32 ? as_f32(bits) : as_f64(bits);
        if (!is_finite(v)) {
            node->type = TV_JSON_NULL;
            return;
        }
        if (type == VALUE_F32)
            tv_put_float(&text, (float)v);
        else
            tv_put_double(&text, v);
        node->number = v;
    } else if (type == VALUE_I8 || type == VALUE_I16 || type == VALUE_I32 || type == VALUE_I64) {
        const int64_t v = sign_extend(bits, value_bytes[type]);
        if (v < 0)
            tv_putc(&text, '-');
        tv_put_u64(&text, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
        node->number = (double)v;
    } else {
        tv_put_u64(&text, bits);
        node->number = (double)bits;
    }
    node->s = tv_buf_str(&text);
}

static const tv_err *read_value(cursor *c, value_type type, unsigned depth, tv_json *node);

static const tv_err *read_type(cursor *c, value_type *type)
{
    uint64_t v = 0;
    const size_t at = c->at;
    TV_TRY(take_uint(c, 4, &v));
    if (v >= VALUE_TYPE_COUNT)
        return tv_fail_at(c->g->a, TV_INPUT,
                          TV_TEXT(c->g->a, "gguf.value-type", N_("no value has the type {n}"),
                                  tv_arg_num("n", TV_ARG_COUNT, (double)v)),
                          c->path, at);
    *type = (value_type)v;
    return NULL;
}

static const tv_err *skip_values(cursor *c, value_type type, uint64_t n, unsigned depth)
{
    if (type != VALUE_STRING && type != VALUE_ARRAY) {
        if (n > remaining(c) / value_bytes[type])
            return ends(c);
        c->at += (size_t)n * value_bytes[type];
        return NULL;
    }
    tv_json ignored;
    tv_str text;
    const tv_mark mark = tv_arena_mark(c->g->a);
    for (uint64_t i = 0; i < n; i++) {
        if (type == VALUE_STRING) {
            TV_TRY(take_text(c, &text));
            continue;
        }
        TV_TRY(read_value(c, type, depth, &ignored));
        tv_arena_rewind(c->g->a, mark);
    }
    return NULL;
}

/* {"n": count} stands for a long array. */
static void set_count(cursor *c, tv_json *node, uint64_t n)
{
    tv_json *count = tv_new(c->g->a, tv_json, 1);
    set_number(c, count, VALUE_U64, n);
    count->key = TV_S("n");
    *node = (tv_json){.type = TV_JSON_OBJECT, .items = count, .n = 1};
}

static const tv_err *read_array(cursor *c, unsigned depth, tv_json *node)
{
    value_type type = VALUE_U8;
    uint64_t n = 0;
    if (depth == array_depth)
        return broken(c, "gguf.too-deep", N_("arrays are nested too deeply"), c->at);
    TV_TRY(read_type(c, &type));
    const size_t at = c->at;
    TV_TRY(take_size(c, &n));
    if (n > TV_LIMIT_GGUF_ARRAY)
        return too_many(c, N_("an array claims {n} elements"), n, at);
    if (n > array_kept) {
        set_count(c, node, n);
        return skip_values(c, type, n, depth + 1);
    }
    if (n > remaining(c)) /* no element is smaller than a byte */
        return ends(c);
    tv_json *items = tv_new(c->g->a, tv_json, n ? (size_t)n : 1);
    for (size_t i = 0; i < n; i++)
        TV_TRY(read_value(c, type, depth + 1, &items[i]));
    *node = (tv_json){.type = TV_JSON_ARRAY, .items = items, .n = (size_t)n};
    return NULL;
}

static const tv_err *read_bool(cursor *c, tv_json *node)
{
    uint64_t v = 0;
    const size_t at = c->at;
    TV_TRY(take_uint(c, 1, &v));
    if (v > 1)
        return broken(c, "gguf.bool", N_("a truth value is neither 0 nor 1"), at);
    node->type = v ? TV_JSON_TRUE : TV_JSON_FALSE;
    return NULL;
}

static const tv_err *read_value(cursor *c, value_type type, unsigned depth, tv_json *node)
{
    uint64_t bits = 0;
    *node = (tv_json){.offset = c->at};
    switch (type) {
    case VALUE_STRING:
        node->type = TV_JSON_STRING;
        return take_text(c, &node->s);
    case VALUE_ARRAY:
        return read_array(c, depth, node);
    case VALUE_BOOL:
        return read_bool(c, node);
    case VALUE_U8:
    case VALUE_I8:
    case VALUE_U16:
    case VALUE_I16:
    case VALUE_U32:
    case VALUE_I32:
    case VALUE_F32:
    case VALUE_U64:
    case VALUE_I64:
    case VALUE_F64:
        TV_TRY(take_uint(c, value_bytes[type], &bits));
        set_number(c, node, type, bits);
        return NULL;
    case VALUE_TYPE_COUNT:
        break;
    }
    return broken(c, "gguf.value-type", N_("no value has this type"), c->at);
}

/* ---- header and key-values ---- */

static const tv_err *read_counts(cursor *c)
{
    size_t at = c->at;
    TV_TRY(take_size(c, &c->n_tensors));
    if (c->n_tensors > TV_LIMIT_GGUF_TENSORS)
        return too_many(c, N_("the file claims {n} tensors"), c->n_tensors, at);
    at = c->at;
    TV_TRY(take_size(c, &c->n_keys));
    if (c->n_keys > TV_LIMIT_GGUF_KEYS)
        return too_many(c, N_("the file claims {n} key-values"), c->n_keys, at);
    return NULL;
}

/* Big-endian files keep the magic's letters in order and turn the version around; some writers
 * turn the magic too. */
static const tv_err *read_start(cursor *c)
{
    const unsigned char *magic = NULL;
    uint64_t version = 0;
    TV_TRY(take(c, 4, &magic));
    if (memcmp(magic, "FUGG", 4) == 0)
        c->big = true;
    else if (memcmp(magic, "GGUF", 4) != 0)
        return broken(c, "gguf.magic", N_("no GGUF file: the first four bytes differ"), 0);
    TV_TRY(take_uint(c, 4, &version));
    if (!c->big && version && (version & 0xffff) == 0) {
        c->big = true;
        c->at -= 4;
        TV_TRY(take_uint(c, 4, &version));
    }
    if (version < 1 || version > 3)
        return tv_fail_at(c->g->a, TV_UNSUPPORTED,
                          TV_TEXT(c->g->a, "gguf.version",
                                  N_("GGUF version {n}: versions 1 to 3 are read"),
                                  tv_arg_num("n", TV_ARG_COUNT, (double)version)),
                          c->path, 4);
    c->version = (uint32_t)version;
    return read_counts(c);
}

typedef struct key_list {
    tv_json *v;
    size_t n;
    size_t cap;
} key_list;

static int by_key(const void *x, const void *y)
{
    const tv_json *p = *(const tv_json *const *)x, *q = *(const tv_json *const *)y;
    const int order = tv_str_cmp(p->key, q->key);
    return order ? order : (p->offset > q->offset) - (p->offset < q->offset);
}

static const tv_err *check_keys(cursor *c, const key_list *list)
{
    const tv_json **sorted = tv_new(c->g->a, const tv_json *, list->n + 1);
    for (size_t i = 0; i < list->n; i++)
        sorted[i] = &list->v[i];
    qsort(sorted, list->n, sizeof *sorted, by_key);
    for (size_t i = 1; i < list->n; i++)
        if (tv_str_eq(sorted[i - 1]->key, sorted[i]->key))
            return tv_fail_at(c->g->a, TV_INPUT,
                              TV_TEXT(c->g->a, "json.duplicate-key",
                                      N_("the key \"{key}\" stands twice"),
                                      tv_arg_str("key", sorted[i]->key)),
                              c->path, sorted[i]->offset);
    return NULL;
}

static const tv_err *read_keys(cursor *c)
{
    key_list list = {0};
    for (uint64_t i = 0; i < c->n_keys; i++) {
        value_type type = VALUE_U8;
        tv_str key = {0};
        const size_t at = c->at;
        TV_TRY(take_text(c, &key));
        TV_TRY(read_type(c, &type));
        tv_json *node = tv_push(c->g->a, &list);
        TV_TRY(read_value(c, type, 0, node));
        node->key = key;
        node->offset = at;
    }
    tv_json *object = tv_new(c->g->a, tv_json, 1);
    *object = (tv_json){.type = TV_JSON_OBJECT, .items = list.v, .n = list.n};
    c->keys = object;
    return check_keys(c, &list);
}

/* ---- tensors ---- */

static const tv_err *read_dims(cursor *c, tv_tensor *t)
{
    uint64_t rank = 0;
    size_t at = c->at;
    TV_TRY(take_uint(c, 4, &rank));
    if (rank > TV_LIMIT_GGUF_RANK)
        return too_many(c, N_("a tensor claims {n} dimensions"), rank, at);
    t->rank = (uint32_t)rank;
    t->elements = 1;
    for (uint32_t i = 0; i < t->rank; i++) { /* the file has the innermost first */
        uint64_t *dim = &t->dims[t->rank - 1 - i];
        at = c->at;
        TV_TRY(take_size(c, dim));
        if (__builtin_mul_overflow(t->elements, *dim, &t->elements))
            return broken(c, "gguf.shape-overflow", N_("a shape is larger than any file"), at);
    }
    return NULL;
}

static void name_type(cursor *c, tv_tensor *t, uint64_t number)
{
    tv_buf text = tv_buf_in(c->g->a);
    tv_puts(&text, "ggml type ");
    tv_put_u64(&text, number);
    t->dtype_text = tv_buf_str(&text);
}

static const tv_err *row_splits(cursor *c, const tv_tensor *t, uint64_t row, uint64_t at)
{
    const tv_dtype_info *info = tv_dtype_of(t->dtype);
    return tv_fail_at(c->g->a, TV_INPUT,
                      TV_TEXT(c->g->a, "gguf.row",
                              N_("\"{name}\": rows of {row} do not divide into blocks of {block} "
                                 "({type})"),
                              tv_arg_str("name", t->name),
                              tv_arg_num("row", TV_ARG_COUNT, (double)row),
                              tv_arg_num("block", TV_ARG_COUNT, info->block_elements),
                              tv_arg_str("type", tv_str_of(info->name))),
                      c->path, at);
}

static const tv_err *read_tensor_type(cursor *c, tv_tensor *t)
{
    uint64_t number = 0;
    const size_t at = c->at;
    TV_TRY(take_uint(c, 4, &number));
    t->dtype = number > UINT32_MAX ? TV_DTYPE_UNKNOWN : tv_dtype_gguf((uint32_t)number);
    if (t->dtype == TV_DTYPE_UNKNOWN) {
        name_type(c, t, number);
        return NULL;
    }
    const uint64_t row = t->rank ? t->dims[t->rank - 1] : 1;
    const tv_u64_read bytes = tv_dtype_tensor_bytes(t->dtype, t->elements, row);
    if (!bytes.ok)
        return row_splits(c, t, row, at);
    t->bytes = bytes.v;
    return NULL;
}

static const tv_err *read_tensor(cursor *c, uint64_t alignment)
{
    tv_tensor t = {.file = c->file};
    TV_TRY(take_text(c, &t.name));
    TV_TRY(read_dims(c, &t));
    TV_TRY(read_tensor_type(c, &t));
    const size_t at = c->at;
    TV_TRY(take_uint(c, 8, &t.offset));
    if (t.offset % alignment)
        return broken(c, "gguf.unaligned", N_("a tensor's offset breaks the file's alignment"), at);
    *tv_push(c->g->a, &c->g->tensors) = t;
    return NULL;
}

/* Default 32; llama.cpp asks for a power of two. */
static const tv_err *read_alignment(cursor *c, uint64_t *alignment)
{
    const tv_json *stated = tv_json_get(c->keys, "general.alignment");
    *alignment = 32;
    if (stated->type == TV_JSON_END)
        return NULL;
    const tv_u64_read v = tv_json_u64(stated);
    if (!v.ok || v.v == 0 || (v.v & (v.v - 1)) || v.v > (1u << 30))
        return broken(c, "gguf.alignment", N_("general.alignment is no power of two"),
                      stated->offset);
    *alignment = v.v;
    return NULL;
}

static const tv_err *cut_short(cursor *c, const tv_tensor *t, uint64_t end)
{
    return tv_fail_at(c->g->a, TV_INPUT,
                      TV_TEXT(c->g->a, "gguf.cut-short",
                              N_("the file ends {bytes} bytes before the data of \"{name}\" does"),
                              tv_arg_num("bytes", TV_ARG_COUNT, (double)(end - c->bytes.n)),
                              tv_arg_str("name", t->name)),
                      c->path, c->bytes.n);
}

static const tv_err *place_tensors(cursor *c, uint64_t alignment)
{
    const uint64_t begin = (c->at + alignment - 1) / alignment * alignment;
    const tv_tensor *worst = NULL;
    uint64_t worst_end = c->bytes.n;
    size_t unknown = 0;
    for (size_t i = c->first; i < c->g->tensors.n; i++) {
        tv_tensor *t = &c->g->tensors.v[i];
        uint64_t end = UINT64_MAX; /* an offset that wraps around is far outside */
        if (__builtin_add_overflow(t->offset, begin, &t->offset) ||
            __builtin_add_overflow(t->offset, t->bytes, &end))
            end = UINT64_MAX;
        if (end > worst_end) {
            worst_end = end;
            worst = t;
        }
        unknown += t->dtype == TV_DTYPE_UNKNOWN;
    }
    if (worst)
        return cut_short(c, worst, worst_end);
    if (unknown)
        tv_gather_warn(c->g, TV_TEXT(c->g->a, "gguf.unknown-type",
                                     N_("tensors of {file} with a type that is not known: {n}; "
                                        "their bytes are taken from the next one's place"),
                                     tv_arg_num("n", TV_ARG_COUNT, (double)unknown),
                                     tv_arg_str("file", tv_path_name(c->path))));
    const uint64_t first = begin < c->bytes.n ? begin : c->bytes.n;
    return tv_gather_check(c->g, c->first, (tv_data_area){first, c->bytes.n, alignment, true});
}

static const tv_err *read_tensors(cursor *c)
{
    uint64_t alignment = 32;
    /* name's length, rank, type, offset: no tensor takes less of the header */
    const uint64_t least = c->version == 1 ? 20 : 24;
    TV_TRY(read_alignment(c, &alignment));
    if (c->n_tensors > remaining(c) / least)
        return ends(c);
    if (c->n_tensors > TV_LIMIT_TENSORS - c->g->tensors.n)
        return too_many(c, N_("the model has {n} tensors"), c->n_tensors, 8);
    tv_gather_room(c->g, (size_t)c->n_tensors);
    for (uint64_t i = 0; i < c->n_tensors; i++)
        TV_TRY(read_tensor(c, alignment));
    return place_tensors(c, alignment);
}

/* A text filter turns bytes that are no UTF-8 into EF BF BD and so moves everything behind. */
static const tv_err *explain(cursor *c, const tv_err *e)
{
    const size_t n = c->at < 65536 ? c->at + 64 : 65536;
    const size_t seen = n < c->bytes.n ? n : c->bytes.n;
    if (!memmem(c->bytes.p, seen, "\xEF\xBF\xBD\xEF\xBF\xBD", 6) &&
        !memmem(c->bytes.p, seen, "\xEF\xBF\xBD", 3))
        return e;
    tv_err *outer = tv_fail(
        c->g->a, e->code,
        TV_TEXT0("gguf.text-filter", N_("the file went through a text filter, its bytes are "
                                        "damaged")));
    outer->cause = e;
    return tv_hint(outer, TV_TEXT0("gguf.text-filter", N_("Fetch it again as binary data.")));
}

static const tv_err *read_part(cursor *c)
{
    c->file = tv_gather_file(c->g, c->path, c->bytes);
    c->path = c->g->files.v[c->file].path;
    c->first = c->g->tensors.n;
    TV_TRY(read_start(c));
    const tv_err *e = read_keys(c);
    if (!e)
        e = read_tensors(c);
    return e ? explain(c, e) : NULL;
}

const tv_err *tv_read_gguf_part(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    cursor c = {.g = g, .path = path, .bytes = bytes};
    g->source.kind = TV_SOURCE_GGUF;
    TV_TRY(read_part(&c));
    if (!g->source.metadata) {
        g->source.metadata = c.keys;
        g->source.stated_params = tv_json_num(tv_json_get(c.keys, "general.parameter_count"), 0);
    }
    return NULL;
}

/* ---- split files ---- */

static void put_five(tv_buf *b, uint64_t v)
{
    for (uint64_t power = 10000; power; power /= 10)
        tv_putc(b, (char)('0' + v / power % 10));
}

static tv_str part_path(tv_gather *g, const tv_part *s, uint64_t i)
{
    tv_buf b = tv_buf_in(g->a);
    tv_put(&b, s->stem);
    tv_putc(&b, '-');
    put_five(&b, i);
    tv_puts(&b, "-of-");
    put_five(&b, s->count);
    tv_puts(&b, ".gguf");
    return tv_buf_str(&b);
}

static const tv_err *missing_part(tv_gather *g, tv_str path)
{
    tv_err *e = tv_fail(g->a, TV_UNAVAILABLE,
                        TV_TEXT0("gguf.missing-part", N_("a part of the split model is missing")));
    return tv_hint(tv_in_file(e, path),
                   TV_TEXT0("gguf.missing-part", N_("Put all parts of the model in one folder, "
                                                    "with the names they were published under.")));
}

static const tv_err *read_parts(tv_gather *g, const tv_part *s)
{
    if (s->count > TV_LIMIT_SHARDS)
        return TV_FAIL0(g->a, TV_LIMIT, "index.too-many", N_("the model has too many files"));
    for (uint64_t i = 1; i <= s->count; i++)
        if (!tv_file_stat(g->a, part_path(g, s, i)).exists)
            return missing_part(g, part_path(g, s, i));
    for (uint64_t i = 1; i <= s->count; i++) {
        tv_bytes_view bytes;
        const tv_str path = part_path(g, s, i);
        TV_TRY(tv_gather_map(g, path, &bytes));
        TV_TRY(tv_read_gguf_part(g, path, bytes));
    }
    return NULL;
}

/* What the first part says about the whole must be what the parts hold. */
static const tv_err *check_parts(tv_gather *g, tv_str path, uint64_t parts)
{
    const tv_json *keys = g->source.metadata;
    const tv_json *count = tv_json_get(keys, "split.count");
    const tv_json *tensors = tv_json_get(keys, "split.tensors.count");
    const double stated = tv_json_num(count, 1);
    if (parts == 1 && stated > 1)
        return missing_part(g, path);
    if (tv_json_is_num(count) && stated > 0 && stated != (double)parts)
        return tv_fail_at(g->a, TV_INPUT,
                          TV_TEXT(g->a, "gguf.part-count",
                                  N_("the first part says {stated} parts, the names say {named}"),
                                  tv_arg_num("stated", TV_ARG_COUNT, stated),
                                  tv_arg_num("named", TV_ARG_COUNT, (double)parts)),
                          g->files.v[0].path, count->offset);
    if (parts > 1 && tv_json_is_num(tensors) && tensors->number != (double)g->tensors.n)
        return tv_fail_at(g->a, TV_INPUT,
                          TV_TEXT(g->a, "gguf.part-tensors",
                                  N_("the first part says {stated} tensors, the parts hold {held}"),
                                  tv_arg_num("stated", TV_ARG_COUNT, tensors->number),
                                  tv_arg_num("held", TV_ARG_COUNT, (double)g->tensors.n)),
                          g->files.v[0].path, tensors->offset);
    return NULL;
}

const tv_err *tv_read_gguf(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    const tv_part s = tv_part_of(path, TV_S(".gguf"));
    if (s.count > 1)
        TV_TRY(read_parts(g, &s));
    else
        TV_TRY(tv_read_gguf_part(g, path, bytes));
    TV_TRY(check_parts(g, path, s.count ? s.count : 1));
    if (g->tensors.n == 0)
        tv_gather_warn(g, TV_TEXT(g->a, "gguf.no-tensors",
                                  N_("{file} holds no tensors: a vocabulary, not a model"),
                                  tv_arg_str("file", tv_path_name(path))));
    return NULL;
}

static bool probe(tv_str name, tv_bytes_view bytes)
{
    const tv_str start = {(const char *)bytes.p, bytes.n};
    if (bytes.n >= 4 && (tv_str_starts(start, TV_S("GGUF")) || tv_str_starts(start, TV_S("FUGG"))))
        return true;
    return tv_str_ends(name, TV_S(".gguf"));
}

extern const tv_format tv_format_gguf;
const tv_format tv_format_gguf = {
    .name = "gguf",
    .summary = N_("GGUF"),
    .probe = probe,
    .read = tv_read_gguf,
};
