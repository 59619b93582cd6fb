/* Paddle's tensors on disk (.pdiparams, __params__, or one file each): records without names, in
 * ascending order of the names that the program gives its weights. Only the heads of the records
 * are touched.
 * Layout: Paddle, framework/lod_tensor.cc and tensor_util.cc (SerializeToStream). */
#include "paddle.h"

#include <string.h>

#include "codec/wire.h"

typedef struct records {
    tv_gather *g;
    tv_str path;
    tv_bytes_view bytes;
    uint64_t at;
    uint32_t file;
} records;

static const tv_err *broken(const records *r, const char *id, const char *msgid, uint64_t at)
{
    return tv_broken(r->g, r->path, id, msgid, at);
}

static const tv_err *cut_short(const records *r)
{
    return broken(r, "paddle.cut-short", N_("the file ends inside a tensor"), r->bytes.n);
}

static const tv_err *take(records *r, unsigned n, uint64_t *v)
{
    if (r->bytes.n - r->at < n)
        return cut_short(r);
    *v = 0;
    for (unsigned i = n; i-- > 0;)
        *v = *v << 8 | r->bytes.p[r->at + i];
    r->at += n;
    return NULL;
}

static const tv_err *skip(records *r, uint64_t n)
{
    if (n > r->bytes.n - r->at)
        return cut_short(r);
    r->at += n;
    return NULL;
}

static const tv_err *take_zero(records *r)
{
    uint64_t version = 0;
    const uint64_t at = r->at;
    TV_TRY(take(r, 4, &version));
    return version == 0 ? NULL
                        : broken(r, "paddle.no-record",
                                 N_("no tensor of Paddle begins here: its version is not 0"), at);
}

/* Offsets of sequences in the tensor; weights have none. */
static const tv_err *skip_levels(records *r)
{
    uint64_t levels = 0, n = 0;
    TV_TRY(take(r, 8, &levels));
    for (uint64_t i = 0; i < levels; i++) {
        TV_TRY(take(r, 8, &n));
        TV_TRY(skip(r, n));
    }
    return NULL;
}

static const tv_err *take_dim(const records *r, tv_tensor *t, int64_t dim, uint64_t at)
{
    if (t->rank == TV_LIMIT_RANK)
        return tv_fail_at(r->g->a, TV_LIMIT,
                          TV_TEXT0("program.rank", N_("a tensor has too many dimensions")), r->path,
                          at);
    if (dim < 0)
        return broken(r, "paddle.dim", N_("a stored tensor has a negative dimension"), at);
    t->dims[t->rank++] = (uint64_t)dim;
    return NULL;
}

/* TensorDesc: 1 data_type, 2 dims. */
static const tv_err *take_desc(records *r, tv_tensor *t)
{
    uint64_t n = 0, kind = 0;
    const uint64_t at = r->at;
    TV_TRY(take(r, 4, &n));
    const uint64_t begin = r->at;
    if (n > INT32_MAX)
        return broken(r, "paddle.no-record", N_("no tensor of Paddle begins here"), at);
    TV_TRY(skip(r, n));
    tv_wire w = tv_wire_in(r->g->a, r->path, (tv_bytes_view){r->bytes.p, begin + n});
    w.p += begin;
    for (;;) {
        tv_wire_field f;
        bool more = false;
        tv_wire_ints dims = {.keep = TV_LIMIT_RANK + 1};
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            break;
        if (f.number == 1)
            TV_TRY(tv_wire_u64(&w, &f, &kind));
        if (f.number == 2)
            TV_TRY(tv_wire_add_ints(&w, &f, &dims));
        for (size_t i = 0; i < dims.kept; i++)
            TV_TRY(take_dim(r, t, dims.v[i], f.at));
    }
    t->dtype = tv_paddle_dtype(kind);
    if (t->dtype == TV_DTYPE_UNKNOWN)
        return broken(r, "paddle.type", N_("an element type that is not known"), begin);
    return NULL;
}

static const tv_err *take_data(records *r, tv_tensor *t)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(elements, t->dims[i], &elements))
            return broken(r, "safetensors.shape-overflow", N_("a shape is larger than any file"),
                          r->at);
    const tv_u64_read bytes = tv_dtype_tensor_bytes(t->dtype, elements, elements);
    if (!bytes.ok)
        return broken(r, "safetensors.shape-overflow", N_("a shape is larger than any file"),
                      r->at);
    t->elements = elements;
    t->bytes = bytes.v;
    t->offset = r->at;
    t->file = r->file;
    if (t->bytes <= r->bytes.n - r->at)
        return skip(r, t->bytes);
    const double missing = (double)(t->bytes - (r->bytes.n - r->at));
    return tv_fail_at(r->g->a, TV_INPUT,
                      TV_TEXT(r->g->a, "safetensors.cut-short",
                              N_("the file ends {bytes} bytes before the data of \"{name}\" does"),
                              tv_arg_num("bytes", TV_ARG_COUNT, missing),
                              tv_arg_str("name", t->name)),
                      r->path, r->bytes.n);
}

/* u32 version, levels, u32 version of the tensor, i32 length, TensorDesc, data. */
static const tv_err *take_record(records *r, tv_tensor *t)
{
    TV_TRY(take_zero(r));
    TV_TRY(skip_levels(r));
    TV_TRY(take_zero(r));
    TV_TRY(take_desc(r, t));
    return take_data(r, t);
}

/* ---- against the program ---- */

static bool same_shape(const tv_tensor *t, const tv_value *v)
{
    if (!v->shaped)
        return true;
    bool same = t->rank == v->rank;
    for (uint32_t i = 0; same && i < t->rank; i++)
        same = v->dims[i].size < 0 || (uint64_t)v->dims[i].size == t->dims[i];
    return same;
}

static void put_shape(tv_buf *b, const tv_tensor *t)
{
    tv_puts(b, tv_dtype_of(t->dtype)->name);
    tv_puts(b, " [");
    for (uint32_t i = 0; i < t->rank; i++) {
        tv_puts(b, i ? ", " : "");
        tv_put_u64(b, t->dims[i]);
    }
    tv_puts(b, "]");
}

static const tv_err *differs(const records *r, const tv_tensor *t, uint64_t at)
{
    tv_buf b = tv_buf_in(r->g->a);
    put_shape(&b, t);
    tv_err *e = tv_fail_at(r->g->a, TV_INPUT,
                           TV_TEXT(r->g->a, "paddle.other-shape",
                                   N_("the record in the place of \"{name}\" is {have}, which the "
                                      "program declares otherwise"),
                                   tv_arg_str("name", t->name), tv_arg_str("have", tv_buf_str(&b))),
                           r->path, at);
    return tv_hint(e, TV_TEXT0("paddle.other-shape",
                               N_("The program and the parameters are of two different models: "
                                  "fetch both from one place.")));
}

static const tv_err *too_few(const records *r, size_t have, size_t want)
{
    return tv_fail_at(r->g->a, TV_INPUT,
                      TV_TEXT(r->g->a, "paddle.too-few",
                              N_("the file ends after {have} of the program's {want} tensors"),
                              tv_arg_num("have", TV_ARG_COUNT, (double)have),
                              tv_arg_num("want", TV_ARG_COUNT, (double)want)),
                      r->path, r->bytes.n);
}

static const tv_err *too_many(const records *r, size_t want)
{
    return tv_fail_at(r->g->a, TV_INPUT,
                      TV_TEXT(r->g->a, "paddle.too-many",
                              N_("bytes that are left behind the program's {want} tensors: {left}"),
                              tv_arg_num("want", TV_ARG_COUNT, (double)want),
                              tv_arg_num("left", TV_ARG_COUNT, (double)(r->bytes.n - r->at))),
                      r->path, r->at);
}

static void keep_data(const records *r, const tv_tensor *t, tv_value *v)
{
    if (t->elements <= TV_LIMIT_PROGRAM_CONST_ELEMENTS)
        v->data = (tv_bytes_view){r->bytes.p + t->offset, (size_t)t->bytes};
}

static const tv_err *take_weight(records *r, tv_paddle_program *p, const tv_paddle_weight *w)
{
    tv_value *v = &p->values[w->value];
    tv_tensor t = {.name = w->name};
    const uint64_t at = r->at;
    TV_TRY(take_record(r, &t));
    if (!same_shape(&t, v) || (v->dtype && v->dtype != t.dtype))
        return differs(r, &t, at);
    keep_data(r, &t, v);
    *tv_push(r->g->a, &r->g->tensors) = t;
    return NULL;
}

static const tv_err *take_named(records *r, tv_paddle_program *p)
{
    tv_gather_room(r->g, p->weights.n);
    for (size_t i = 0; i < p->weights.n; i++) {
        if (r->at == r->bytes.n)
            return too_few(r, i, p->weights.n);
        TV_TRY(take_weight(r, p, &p->weights.v[i]));
    }
    return r->at < r->bytes.n ? too_many(r, p->weights.n) : NULL;
}

/* "#00001", in the file's order; the width keeps the order when they are sorted. */
static tv_str number_name(tv_arena *a, size_t i)
{
    enum { width = 7 };
    tv_buf number = tv_buf_in(a), b = tv_buf_in(a);
    tv_put_u64(&number, i + 1);
    tv_puts(&b, "#");
    tv_put_repeat(&b, TV_S("0"), number.n < width ? width - number.n : 0);
    tv_put(&b, tv_buf_str(&number));
    return tv_buf_str(&b);
}

static const tv_err *take_unnamed(records *r)
{
    size_t n = 0;
    while (r->at < r->bytes.n) {
        if (n == TV_LIMIT_TENSORS)
            return tv_fail_at(r->g->a, TV_LIMIT,
                              TV_TEXT0("read.too-many-tensors", N_("too many tensors")), r->path,
                              r->at);
        tv_tensor t = {.name = number_name(r->g->a, n++)};
        TV_TRY(take_record(r, &t));
        *tv_push(r->g->a, &r->g->tensors) = t;
    }
    return NULL;
}

const tv_err *tv_read_paddle_records(tv_gather *g, tv_str path, tv_bytes_view bytes,
                                     tv_paddle_program *p)
{
    records r = {.g = g, .path = tv_str_copy(g->a, path), .bytes = bytes};
    if (bytes.n == 0)
        return broken(&r, "read.empty", N_("the file is empty"), 0);
    r.file = tv_gather_file(g, path, bytes);
    return p ? take_named(&r, p) : take_unnamed(&r);
}

/* Versions and levels 0, a short TensorDesc, its first field. */
bool tv_is_paddle_record(tv_bytes_view bytes)
{
    static const unsigned char zeros[16] = {0};
    return bytes.n > 22 && memcmp(bytes.p, zeros, sizeof zeros) == 0 && bytes.p[16] < 128 &&
           bytes.p[16] >= 2 && bytes.p[17] == 0 && bytes.p[18] == 0 && bytes.p[19] == 0 &&
           bytes.p[20] == 0x08;
}

/* ---- one file per weight ---- */

static const tv_err *take_file(tv_gather *g, tv_str path, tv_paddle_program *p,
                               const tv_paddle_weight *w)
{
    tv_bytes_view bytes = {0};
    TV_TRY(tv_gather_map(g, path, &bytes));
    records r = {.g = g, .path = path, .bytes = bytes};
    if (tv_is_lfs_pointer(bytes)) {
        tv_warn_pointer(g, tv_path_name(path));
        return NULL;
    }
    r.file = tv_gather_file(g, path, bytes);
    TV_TRY(take_weight(&r, p, w));
    return r.at < bytes.n ? too_many(&r, 1) : NULL;
}

/* The tensor of a weight that is not there, from its declaration. */
static const tv_err *list_weight(tv_gather *g, const tv_paddle_program *p, size_t i, uint32_t file)
{
    const tv_value *v = &p->values[p->weights.v[i].value];
    tv_tensor t = {.name = p->weights.v[i].name,
                   .dtype = v->dtype,
                   .dtype_text = v->dtype_text,
                   .rank = v->rank,
                   .elements = 1,
                   .file = file};
    bool known = v->shaped;
    for (uint32_t k = 0; known && k < t.rank; k++) {
        known = v->dims[k].size >= 0;
        t.dims[k] = known ? (uint64_t)v->dims[k].size : 0;
        if (known && __builtin_mul_overflow(t.elements, t.dims[k], &t.elements))
            return tv_broken(g, g->files.v[file].path, "safetensors.shape-overflow",
                             N_("a shape is larger than any file"), 0);
    }
    const tv_u64_read bytes = tv_dtype_tensor_bytes(v->dtype, t.elements, t.elements);
    if (!known)
        t.elements = 0;
    t.bytes = known && bytes.ok ? bytes.v : 0;
    *tv_push(g->a, &g->tensors) = t;
    return NULL;
}

const tv_err *tv_paddle_list(tv_gather *g, const tv_paddle_program *p, uint32_t file)
{
    tv_gather_room(g, p->weights.n);
    for (size_t i = 0; i < p->weights.n; i++)
        TV_TRY(list_weight(g, p, i, file));
    return NULL;
}

static void warn_absent(tv_gather *g, size_t there, size_t all)
{
    tv_gather_warn(g, TV_TEXT(g->a, "paddle.files-absent",
                              N_("files of weights that are there: {n} of {all}; the others' sizes "
                                 "come from the program"),
                              tv_arg_num("n", TV_ARG_COUNT, (double)there),
                              tv_arg_num("all", TV_ARG_COUNT, (double)all)));
}

const tv_err *tv_read_paddle_files(tv_gather *g, tv_str folder, tv_paddle_program *p, size_t *there)
{
    const uint32_t program = (uint32_t)(g->files.n - 1);
    const size_t n = p->weights.n;
    bool *found = tv_new(g->a, bool, n + 1);
    *there = 0;
    for (size_t i = 0; i < n; i++) {
        const tv_str name = p->weights.v[i].name;
        if (!tv_is_inside(name))
            continue;
        const tv_str path = tv_path_join(g->a, folder, name);
        const tv_file_info info = tv_file_stat(g->a, path);
        const size_t before = g->tensors.n;
        if (info.exists && !info.is_dir)
            TV_TRY(take_file(g, path, p, &p->weights.v[i]));
        found[i] = g->tensors.n > before;
        *there += found[i];
    }
    for (size_t i = 0; *there && i < n; i++)
        if (!found[i])
            TV_TRY(list_weight(g, p, i, program));
    if (*there && *there < n)
        warn_absent(g, *there, n);
    return NULL;
}

/* One file per weight has no ending of its own; the first bytes tell. */
static bool probe(tv_str name, tv_bytes_view bytes)
{
    return tv_str_ends(name, TV_S(".pdiparams")) || tv_str_is(name, "__params__") ||
           tv_is_paddle_record(bytes);
}

extern const tv_format tv_format_paddle_params;
const tv_format tv_format_paddle_params = {
    .name = "pdiparams",
    .summary = N_("Paddle parameters"),
    .probe = probe,
    .read = tv_read_paddle_parameters,
};
