/* ONNX's tensors: initializers, sparse initializers, tensors in attributes. Sizes come from the
 * dimensions and are compared with what is stored; the stored bytes are not touched, except of
 * tensors with few elements whose contents a program may need (shapes, axes, scales). */
#include "onnx.h"

#include <string.h>

enum {
    field_dims = 1,
    field_type = 2,
    field_float = 4,
    field_int32 = 5,
    field_string = 6,
    field_int64 = 7,
    field_name = 8,
    field_raw = 9,
    field_double = 10,
    field_uint64 = 11,
    field_external = 13,
    field_location = 14,
    external_location = 1,   /* TensorProto.DataLocation.EXTERNAL */
    counted_bytes = 1 << 20, /* longer lists of numbers are not counted one by one */
};

typedef struct stored {
    tv_str name;
    int64_t type;
    tv_dtype dtype;
    tv_wire_ints dims;
    uint64_t elements;
    uint64_t bytes; /* by the dimensions */
    bool has_raw, has_typed, external;
    tv_str raw;
    tv_str location;
    uint64_t offset, length;
    bool has_length;
    uint32_t file; /* where the data lies */
    uint64_t at;   /* offset of the data */
    tv_bytes_view kept;
} stored;

/* StringStringEntryProto of external_data: location, offset, length, checksum. */
static const tv_err *read_external(tv_onnx *o, const tv_wire *w, const tv_wire_field *f, stored *t)
{
    tv_wire inner;
    tv_str key = {0}, value = {0};
    TV_TRY(tv_wire_enter(w, f, &inner));
    TV_TRY(tv_onnx_pair(inner, &key, &value));
    if (tv_str_is(key, "location")) {
        t->location = value;
        return NULL;
    }
    if (!tv_str_is(key, "offset") && !tv_str_is(key, "length"))
        return NULL;
    const tv_u64_read v = tv_str_u64(value);
    if (!v.ok)
        return tv_onnx_named(o, f->at, "onnx.external-number",
                             N_("external data: \"{name}\" is no whole number"), value);
    if (tv_str_is(key, "offset")) {
        t->offset = v.v;
    } else {
        t->length = v.v;
        t->has_length = true;
    }
    return NULL;
}

static const tv_err *read_head_field(tv_onnx *o, const tv_wire *w, const tv_wire_field *f,
                                     stored *t)
{
    int32_t v = 0;
    switch (f->number) {
    case field_dims:
        return tv_wire_add_ints(w, f, &t->dims);
    case field_type:
        TV_TRY(tv_wire_i32(w, f, &v));
        t->type = v;
        t->dtype = tv_onnx_element(v);
        return NULL;
    case field_name:
        return tv_wire_str(w, f, &t->name);
    case field_raw:
        t->has_raw = true;
        return tv_wire_str(w, f, &t->raw);
    case field_external:
        return read_external(o, w, f, t);
    case field_location:
        TV_TRY(tv_wire_i32(w, f, &v));
        t->external = v == external_location;
        return NULL;
    case field_float:
    case field_int32:
    case field_string:
    case field_int64:
    case field_double:
    case field_uint64:
        if (!t->has_typed)
            t->at = f->at;
        t->has_typed = true;
        return NULL;
    default:
        return NULL;
    }
}

/* Bits of one element: 0 unknown. */
static unsigned bits_of(tv_dtype t)
{
    const tv_dtype_info *info = tv_dtype_of(t);
    return info->block_bytes * 8 / info->block_elements;
}

/* Elements and bytes by the dimensions; the last byte of packed types is padded. */
static const tv_err *measure(tv_onnx *o, uint64_t at, stored *t)
{
    uint64_t bits = 0;
    if (t->dims.n > TV_LIMIT_RANK)
        return tv_fail_at(
            o->g->a, TV_LIMIT,
            TV_TEXT(o->g->a, "onnx.rank", N_("\"{name}\": a tensor of {n} dimensions"),
                    tv_arg_str("name", t->name), tv_arg_num("n", TV_ARG_COUNT, (double)t->dims.n)),
            o->path, at);
    t->elements = 1;
    for (size_t i = 0; i < t->dims.kept; i++) {
        if (t->dims.v[i] < 0)
            return tv_onnx_named(o, at, "onnx.negative-dim",
                                 N_("\"{name}\": a stored tensor has a negative dimension"),
                                 t->name);
        if (__builtin_mul_overflow(t->elements, (uint64_t)t->dims.v[i], &t->elements))
            return tv_onnx_named(o, at, "onnx.shape-overflow",
                                 N_("\"{name}\": the shape is larger than any file"), t->name);
    }
    if (__builtin_mul_overflow(t->elements, (uint64_t)bits_of(t->dtype), &bits))
        return tv_onnx_named(o, at, "onnx.shape-overflow",
                             N_("\"{name}\": the shape is larger than any file"), t->name);
    t->bytes = bits / 8 + (bits % 8 > 0);
    return NULL;
}

static const tv_err *differs(tv_onnx *o, uint64_t at, const stored *t, const char *msgid,
                             uint64_t held, uint64_t want)
{
    return tv_fail_at(o->g->a, TV_INPUT,
                      TV_TEXT(o->g->a, "onnx.tensor-size", msgid, tv_arg_str("name", t->name),
                              tv_arg_num("want", TV_ARG_COUNT, (double)want),
                              tv_arg_num("held", TV_ARG_COUNT, (double)held)),
                      o->path, at);
}

#define OTHER_BYTES N_("\"{name}\": its dimensions ask for {want} bytes, {held} are stored")
#define OTHER_NUMBERS N_("\"{name}\": its dimensions ask for {want} numbers, {held} are stored")

static bool few(const stored *t)
{
    return t->elements <= TV_LIMIT_PROGRAM_CONST_ELEMENTS;
}

/* ---- data in typed fields ---- */

typedef struct numbers {
    tv_wire_ints ints;
    tv_wire_floats floats;
    uint64_t strings, string_bytes;
    uint64_t least, most; /* how many there may be, where they were not counted */
} numbers;

static const tv_err *add_numbers(const tv_wire *w, const tv_wire_field *f, numbers *n)
{
    switch (f->number) {
    case field_float:
        return tv_wire_add_floats(w, f, 4, &n->floats);
    case field_double:
        return tv_wire_add_floats(w, f, 8, &n->floats);
    case field_string:
        n->strings++;
        n->string_bytes += f->bytes.n;
        return NULL;
    case field_int32:
    case field_int64:
    case field_uint64:
        if (f->type != TV_WIRE_BYTES || f->bytes.n <= counted_bytes)
            return tv_wire_add_ints(w, f, &n->ints);
        n->least += f->bytes.n / 10;
        n->most += f->bytes.n;
        return NULL;
    default:
        return NULL;
    }
}

/* Numbers that the elements take in their field: onnx.proto at int32_data and float_data. */
static uint64_t numbers_wanted(const stored *t)
{
    const unsigned bits = bits_of(t->dtype);
    if (t->dtype == TV_C64 || t->dtype == TV_C128)
        return t->elements * 2;
    if (bits == 4 || bits == 2)
        return t->bytes;
    return t->elements;
}

/* The kept numbers as the bytes that raw_data would hold. */
static void keep_numbers(tv_onnx *o, stored *t, const numbers *n)
{
    const unsigned bits = bits_of(t->dtype);
    const bool is_float = t->dtype == TV_F32 || t->dtype == TV_C64;
    const unsigned width = t->dtype == TV_C64                  ? 4
                           : t->dtype == TV_C128 || bits == 64 ? 8
                                                               : (bits + 7) / 8;
    const size_t count = n->floats.kept ? n->floats.kept : n->ints.kept;
    if (bits == 6 || bits == 0)
        return;
    unsigned char *p = tv_new(o->g->a, unsigned char, count *width + 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t v = 0;
        if (n->floats.kept && is_float) {
            const float x = (float)n->floats.v[i];
            uint32_t low = 0;
            memcpy(&low, &x, sizeof low);
            v = low;
        } else if (n->floats.kept) {
            memcpy(&v, &n->floats.v[i], sizeof v);
        } else {
            v = (uint64_t)n->ints.v[i];
        }
        for (unsigned k = 0; k < width; k++)
            p[i * width + k] = (unsigned char)(v >> (8 * k));
    }
    t->kept = (tv_bytes_view){p, count * width};
}

static const tv_err *read_typed(tv_onnx *o, tv_wire w, uint64_t at, stored *t)
{
    const uint64_t want = numbers_wanted(t);
    const size_t keep = few(t) ? (size_t)want : 0;
    numbers n = {.ints = {.keep = keep}, .floats = {.keep = keep}};
    tv_wire_field f;
    bool more = true;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            break;
        TV_TRY(add_numbers(&w, &f, &n));
    }
    const uint64_t held = n.ints.n + n.floats.n + n.strings;
    if (t->dtype == TV_DTYPE_UNKNOWN) {
        t->bytes = n.string_bytes;
        return NULL;
    }
    if (want < held + n.least || want > held + n.most)
        return differs(o, at, t, OTHER_NUMBERS, held, want);
    if (keep)
        keep_numbers(o, t, &n);
    return NULL;
}

/* ---- external data ---- */

static const tv_err *open_external(tv_onnx *o, const stored *t, uint64_t at, tv_onnx_external *e)
{
    tv_str inside = t->location;
    while (tv_str_starts(inside, TV_S("./")))
        inside = tv_str_drop(inside, 2);
    *e = (tv_onnx_external){.location = t->location, .file = o->file, .absent = true};
    if (!tv_is_inside(inside))
        return tv_onnx_named(o, at, "onnx.external-outside",
                             N_("external data: \"{name}\" leaves the model's folder"),
                             t->location);
    const tv_str path = tv_path_join(o->g->a, o->folder, inside);
    const tv_file_info info = tv_file_stat(o->g->a, path);
    if (!info.exists || info.is_dir)
        return NULL;
    if (info.bytes)
        TV_TRY(tv_file_map(o->g->a, path, &e->bytes));
    if (tv_is_lfs_pointer(e->bytes))
        return NULL;
    e->absent = false;
    e->file = tv_gather_file(o->g, path, e->bytes);
    return NULL;
}

static const tv_err *external_of(tv_onnx *o, const stored *t, uint64_t at,
                                 const tv_onnx_external **e)
{
    uint32_t *slot = tv_names_slot(o->g->a, &o->files, t->location);
    if (!*slot) {
        tv_onnx_external opened;
        TV_TRY(open_external(o, t, at, &opened));
        *tv_push(o->g->a, &o->externals) = opened;
        *slot = (uint32_t)o->externals.n;
    }
    *e = &o->externals.v[*slot - 1];
    return NULL;
}

static const tv_err *place_external(tv_onnx *o, uint64_t at, stored *t)
{
    const tv_onnx_external *e = NULL;
    uint64_t end = 0;
    o->counts.external++;
    if (t->has_length && t->dtype != TV_DTYPE_UNKNOWN && t->length != t->bytes)
        return differs(o, at, t, OTHER_BYTES, t->length, t->bytes);
    if (t->dtype == TV_DTYPE_UNKNOWN)
        t->bytes = t->length;
    TV_TRY(external_of(o, t, at, &e));
    if (e->absent)
        return NULL;
    if (__builtin_add_overflow(t->offset, t->bytes, &end) || end > e->bytes.n)
        return tv_fail_at(o->g->a, TV_INPUT,
                          TV_TEXT(o->g->a, "onnx.external-short",
                                  N_("{file} ends before the data of \"{name}\" does"),
                                  tv_arg_str("file", t->location), tv_arg_str("name", t->name)),
                          o->path, at);
    t->file = e->file;
    t->at = t->offset;
    if (few(t) && t->bytes)
        t->kept = (tv_bytes_view){e->bytes.p + t->offset, (size_t)t->bytes};
    return NULL;
}

/* ---- a tensor ---- */

static const tv_err *place(tv_onnx *o, const tv_wire *w, uint64_t at, stored *t)
{
    t->file = o->file;
    if (t->external)
        return place_external(o, at, t);
    if (t->has_raw && !t->has_typed) {
        t->at = (uint64_t)(t->raw.p - w->base);
        if (t->dtype == TV_DTYPE_UNKNOWN)
            t->bytes = t->raw.n;
        else if (t->raw.n == 0 && t->bytes)
            o->counts.weightless++;
        else if (t->raw.n != t->bytes)
            return differs(o, at, t, OTHER_BYTES, t->raw.n, t->bytes);
        if (few(t) && t->raw.n)
            t->kept = (tv_bytes_view){(const unsigned char *)t->raw.p, t->raw.n};
        return NULL;
    }
    if (t->has_typed)
        return read_typed(o, *w, at, t);
    o->counts.weightless += t->elements > 0;
    return NULL;
}

static const tv_err *read_stored(tv_onnx *o, tv_wire w, stored *t)
{
    const uint64_t at = (uint64_t)(w.p - w.base);
    const tv_wire whole = w;
    tv_wire_field f;
    bool more = true;
    t->dims.keep = TV_LIMIT_RANK;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            break;
        TV_TRY(read_head_field(o, &w, &f, t));
    }
    TV_TRY(measure(o, at, t));
    return place(o, &whole, at, t);
}

/* SparseTensorProto: values 1, indices 2, dims 3. Few runtimes keep it sparse: the value has the
 * dense shape, and the stored bytes are those of values and indices. */
static const tv_err *read_sparse(tv_onnx *o, tv_wire w, stored *t)
{
    stored values = {0}, indices = {0};
    const uint64_t at = (uint64_t)(w.p - w.base);
    tv_wire_field f;
    tv_wire inner;
    bool more = true;
    t->dims.keep = TV_LIMIT_RANK;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            break;
        if (f.number == 1 || f.number == 2) {
            TV_TRY(tv_wire_enter(&w, &f, &inner));
            TV_TRY(read_stored(o, inner, f.number == 1 ? &values : &indices));
        } else if (f.number == 3) {
            TV_TRY(tv_wire_add_ints(&w, &f, &t->dims));
        }
    }
    t->name = values.name;
    t->type = values.type;
    t->dtype = values.dtype;
    TV_TRY(measure(o, at, t));
    if (values.elements > t->elements)
        return differs(o, at, t, OTHER_NUMBERS, values.elements, t->elements);
    t->bytes = values.bytes + indices.bytes;
    t->file = values.file;
    t->at = values.at;
    return NULL;
}

/* ---- what becomes of it ---- */

static const tv_dim *dims_of(tv_onnx *o, const stored *t)
{
    tv_dim *dims = tv_new(o->g->a, tv_dim, t->dims.kept + 1);
    for (size_t i = 0; i < t->dims.kept; i++)
        dims[i].size = t->dims.v[i];
    return dims;
}

/* A constant that training would hold, rather than a number that the graph reckons with: several
 * elements of a floating, quantised or packed type, or a table of integers. */
static bool is_weight_like(const stored *t)
{
    if (t->elements < 2)
        return false;
    const bool whole = t->dtype == TV_I64 || t->dtype == TV_I32 || t->dtype == TV_I16 ||
                       t->dtype == TV_U64 || t->dtype == TV_U32 || t->dtype == TV_U16 ||
                       t->dtype == TV_BOOL || t->dtype == TV_DTYPE_UNKNOWN;
    return !whole || t->elements > 64;
}

/* Two branches may each hold a weight of the same name: the later ones get a number. */
static tv_str unique_name(tv_onnx *o, tv_str name)
{
    for (unsigned i = 2;; i++) {
        if (!tv_names_find(&o->tensors, name))
            return name;
        tv_buf b = tv_buf_in(o->g->a);
        tv_put(&b, name);
        tv_putc(&b, '#');
        tv_put_u64(&b, i);
        if (!tv_names_find(&o->tensors, tv_buf_str(&b)))
            return tv_buf_str(&b);
    }
}

static const tv_err *list_tensor(tv_onnx *o, const stored *t, tv_str name)
{
    tv_gather *g = o->g;
    if (g->tensors.n >= TV_LIMIT_TENSORS)
        return TV_FAIL0(g->a, TV_LIMIT, "onnx.too-many-tensors",
                        N_("the model has too many tensors"));
    tv_tensor *out = tv_push(g->a, &g->tensors);
    *out = (tv_tensor){.name = unique_name(o, name),
                       .dtype = t->dtype,
                       .rank = (uint32_t)t->dims.kept,
                       .elements = t->elements,
                       .bytes = t->bytes,
                       .file = t->file,
                       .offset = t->at};
    if (t->dtype == TV_DTYPE_UNKNOWN)
        out->dtype_text = tv_onnx_type_name(o, t->type);
    for (size_t i = 0; i < t->dims.kept; i++)
        out->dims[i] = (uint64_t)t->dims.v[i];
    *tv_names_slot(g->a, &o->tensors, out->name) = (uint32_t)g->tensors.n;
    return NULL;
}

const tv_err *tv_onnx_tensor(tv_onnx *o, tv_wire w, tv_onnx_place from, tv_str name, tv_value *v,
                             double *elements)
{
    stored t = {0};
    if (from == TV_ONNX_SPARSE)
        TV_TRY(read_sparse(o, w, &t));
    else
        TV_TRY(read_stored(o, w, &t));
    if (name.n == 0)
        name = t.name;
    /* Names are compared later: that must not touch the pages between large weights again. */
    if (t.bytes >= TV_ONNX_AROUND)
        name = tv_str_copy(o->g->a, name);
    const tv_str type = tv_onnx_type_name(o, t.type);
    *v = (tv_value){.name = name,
                    .role = TV_VALUE_WEIGHT,
                    .dtype = t.dtype,
                    .dtype_text = t.dtype == TV_DTYPE_UNKNOWN ? type : (tv_str){0},
                    .shaped = true,
                    .rank = (uint32_t)t.dims.kept,
                    .dims = dims_of(o, &t),
                    .data = t.kept,
                    .buffer = !is_weight_like(&t) && !tv_dtype_of(t.dtype)->is_float,
                    .storage = TV_NO_VALUE};
    *elements = (double)t.elements;
    o->counts.unknown_types += t.dtype == TV_DTYPE_UNKNOWN && t.type != 8;
    if (from == TV_ONNX_ATTRIBUTE && !is_weight_like(&t))
        return NULL;
    return list_tensor(o, &t, name);
}

void tv_onnx_warn_tensors(tv_onnx *o)
{
    double absent = 0;
    tv_str first = {0};
    for (size_t i = 0; i < o->externals.n; i++) {
        if (!o->externals.v[i].absent)
            continue;
        absent++;
        first = first.n ? first : o->externals.v[i].location;
    }
    if (absent > 0)
        tv_gather_warn(o->g,
                       TV_TEXT(o->g->a, "onnx.external-absent",
                               N_("files of external data that are not there: {n} "
                                  "(\"{file}\"); sizes come from the tensors' dimensions"),
                               tv_arg_num("n", TV_ARG_COUNT, absent), tv_arg_str("file", first)));
    if (o->counts.weightless > 0)
        tv_gather_warn(o->g, TV_TEXT(o->g->a, "onnx.weightless",
                                     N_("tensors without data: {n}; sizes come from their "
                                        "dimensions"),
                                     tv_arg_num("n", TV_ARG_COUNT, o->counts.weightless)));
    if (o->counts.unknown_types > 0)
        tv_gather_warn(o->g, TV_TEXT(o->g->a, "onnx.unknown-type",
                                     N_("tensors with a type that is not known: {n}; their bytes "
                                        "are taken from what is stored"),
                                     tv_arg_num("n", TV_ARG_COUNT, o->counts.unknown_types)));
}
