/* A walk over protobuf fields. Every length is compared with what remains of the message before
 * a pointer moves; bytes behind a length are views. */
#include "wire.h"

#include "base/limits.h"

#include <string.h>

enum { start_group = 3, end_group = 4, varint_bytes = 10 };

tv_wire tv_wire_in(tv_arena *a, tv_str file, tv_bytes_view bytes)
{
    const char *p = bytes.n ? (const char *)bytes.p : "";
    return (tv_wire){.a = a, .file = file, .base = p, .p = p, .end = p + bytes.n};
}

static const tv_err *broken_at(const tv_wire *w, const char *p, const char *id, const char *msgid)
{
    return tv_fail_at(w->a, TV_INPUT, TV_TEXT0(id, msgid), w->file, (uint64_t)(p - w->base));
}

const tv_err *tv_wire_broken(const tv_wire *w, const tv_wire_field *f, tv_text what)
{
    return tv_fail_at(w->a, TV_INPUT, what, w->file, f->at);
}

static const tv_err *ends(const tv_wire *w)
{
    return broken_at(w, w->end, "wire.short",
                     w->depth ? N_("a message ends inside one of its fields")
                              : N_("the file ends inside a field"));
}

/* Bits beyond the 64th are dropped, as protobuf's own readers do. */
static const tv_err *take_varint(tv_wire *w, uint64_t *v)
{
    const char *p = w->p;
    const size_t left = (size_t)(w->end - p);
    const unsigned most = left < varint_bytes ? (unsigned)left : varint_bytes;
    uint64_t bits = 0;
    for (unsigned i = 0; i < most; i++) {
        const unsigned char byte = (unsigned char)p[i];
        bits |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            w->p = p + i + 1;
            *v = bits;
            return NULL;
        }
    }
    if (most < varint_bytes)
        return ends(w);
    return broken_at(w, p, "wire.varint", N_("a number is longer than ten bytes"));
}

static const tv_err *take_fixed(tv_wire *w, unsigned n, uint64_t *v)
{
    if ((size_t)(w->end - w->p) < n)
        return ends(w);
    *v = 0;
    for (unsigned i = n; i-- > 0;)
        *v = *v << 8 | (unsigned char)w->p[i];
    w->p += n;
    return NULL;
}

static const tv_err *take_bytes(tv_wire *w, tv_str *s)
{
    uint64_t n = 0;
    const char *at = w->p;
    TV_TRY(take_varint(w, &n));
    const uint64_t left = (uint64_t)(w->end - w->p);
    if (n > left)
        return tv_fail_at(w->a, TV_INPUT,
                          TV_TEXT(w->a, "wire.length",
                                  N_("a field claims {n} bytes, {left} are left"),
                                  tv_arg_num("n", TV_ARG_COUNT, (double)n),
                                  tv_arg_num("left", TV_ARG_COUNT, (double)left)),
                          w->file, (uint64_t)(at - w->base));
    *s = (tv_str){w->p, (size_t)n};
    w->p += n;
    return NULL;
}

static const tv_err *take_key(tv_wire *w, uint32_t *number, unsigned *type)
{
    uint64_t key = 0;
    const char *at = w->p;
    TV_TRY(take_varint(w, &key));
    if (key > UINT32_MAX || key >> 3 == 0)
        return broken_at(w, at, "wire.number", N_("no field has this number"));
    *number = (uint32_t)(key >> 3);
    *type = (unsigned)(key & 7);
    return NULL;
}

static const tv_err *take_value(tv_wire *w, unsigned type, const char *at, tv_wire_field *f)
{
    f->type = (tv_wire_type)type;
    switch (type) {
    case TV_WIRE_VARINT:
        return take_varint(w, &f->v);
    case TV_WIRE_FIXED64:
        return take_fixed(w, 8, &f->v);
    case TV_WIRE_BYTES:
        return take_bytes(w, &f->bytes);
    case TV_WIRE_FIXED32:
        return take_fixed(w, 4, &f->v);
    default:
        return broken_at(w, at, "wire.type", N_("no field has this wire type"));
    }
}

static const tv_err *too_deep(const tv_wire *w, const char *at)
{
    return tv_fail_at(w->a, TV_LIMIT,
                      TV_TEXT0("wire.too-deep", N_("messages are nested too deeply")), w->file,
                      (uint64_t)(at - w->base));
}

/* Everything up to the end of the group that began at `at`. */
static const tv_err *skip_group(tv_wire *w, uint32_t number, const char *at)
{
    uint32_t open[TV_LIMIT_WIRE_DEPTH];
    unsigned n = 0;
    open[n++] = number;
    while (n) {
        unsigned type = 0;
        tv_wire_field f = {0};
        const char *key = w->p;
        if (w->p == w->end)
            return ends(w);
        TV_TRY(take_key(w, &f.number, &type));
        if (type == end_group) {
            if (f.number != open[--n])
                return broken_at(w, key, "wire.group", N_("a group ends that did not begin"));
        } else if (type == start_group) {
            if (n == TV_LIMIT_WIRE_DEPTH)
                return too_deep(w, at);
            open[n++] = f.number;
        } else {
            TV_TRY(take_value(w, type, key, &f));
        }
    }
    return NULL;
}

const tv_err *tv_wire_next(tv_wire *w, tv_wire_field *f, bool *more)
{
    while (w->p < w->end) {
        unsigned type = 0;
        const char *at = w->p;
        *f = (tv_wire_field){.at = (uint64_t)(at - w->base)};
        TV_TRY(take_key(w, &f->number, &type));
        if (type == end_group)
            return broken_at(w, at, "wire.group", N_("a group ends that did not begin"));
        if (type == start_group) {
            TV_TRY(skip_group(w, f->number, at));
            continue;
        }
        TV_TRY(take_value(w, type, at, f));
        *more = true;
        return NULL;
    }
    *more = false;
    return NULL;
}

/* ---- values ---- */

static const tv_err *must_be(const tv_wire *w, const tv_wire_field *f, tv_wire_type type)
{
    if (f->type == type)
        return NULL;
    return tv_wire_broken(w, f,
                          TV_TEXT(w->a, "wire.other-type",
                                  N_("field {number} has wire type {type}, {expected} is expected"),
                                  tv_arg_num("number", TV_ARG_COUNT, f->number),
                                  tv_arg_num("type", TV_ARG_COUNT, (double)f->type),
                                  tv_arg_num("expected", TV_ARG_COUNT, (double)type)));
}

const tv_err *tv_wire_enter(const tv_wire *w, const tv_wire_field *f, tv_wire *inner)
{
    TV_TRY(must_be(w, f, TV_WIRE_BYTES));
    if (w->depth + 1 >= TV_LIMIT_WIRE_DEPTH)
        return too_deep(w, w->base + f->at);
    *inner = *w;
    inner->p = f->bytes.p;
    inner->end = f->bytes.p + f->bytes.n;
    inner->depth = w->depth + 1;
    return NULL;
}

const tv_err *tv_wire_u64(const tv_wire *w, const tv_wire_field *f, uint64_t *v)
{
    TV_TRY(must_be(w, f, TV_WIRE_VARINT));
    *v = f->v;
    return NULL;
}

const tv_err *tv_wire_i64(const tv_wire *w, const tv_wire_field *f, int64_t *v)
{
    TV_TRY(must_be(w, f, TV_WIRE_VARINT));
    *v = (int64_t)f->v;
    return NULL;
}

const tv_err *tv_wire_i32(const tv_wire *w, const tv_wire_field *f, int32_t *v)
{
    TV_TRY(must_be(w, f, TV_WIRE_VARINT));
    *v = (int32_t)(uint32_t)f->v;
    return NULL;
}

const tv_err *tv_wire_bool(const tv_wire *w, const tv_wire_field *f, bool *v)
{
    TV_TRY(must_be(w, f, TV_WIRE_VARINT));
    *v = f->v != 0;
    return NULL;
}

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

const tv_err *tv_wire_f32(const tv_wire *w, const tv_wire_field *f, double *v)
{
    TV_TRY(must_be(w, f, TV_WIRE_FIXED32));
    *v = as_f32(f->v);
    return NULL;
}

const tv_err *tv_wire_f64(const tv_wire *w, const tv_wire_field *f, double *v)
{
    TV_TRY(must_be(w, f, TV_WIRE_FIXED64));
    *v = as_f64(f->v);
    return NULL;
}

const tv_err *tv_wire_str(const tv_wire *w, const tv_wire_field *f, tv_str *s)
{
    TV_TRY(must_be(w, f, TV_WIRE_BYTES));
    *s = f->bytes;
    return NULL;
}

/* ---- repeated scalars ---- */

static void keep_int(tv_arena *a, tv_wire_ints *list, uint64_t v)
{
    list->n++;
    if (list->kept == list->keep)
        return;
    if (list->kept == list->cap)
        list->v = tv_grow(a, list->v, list->kept, &list->cap, sizeof *list->v);
    list->v[list->kept++] = (int64_t)v;
}

const tv_err *tv_wire_add_ints(const tv_wire *w, const tv_wire_field *f, tv_wire_ints *list)
{
    if (f->type == TV_WIRE_VARINT) {
        keep_int(w->a, list, f->v);
        return NULL;
    }
    tv_wire packed;
    TV_TRY(tv_wire_enter(w, f, &packed));
    while (packed.p < packed.end && list->kept < list->keep) {
        uint64_t v = 0;
        TV_TRY(take_varint(&packed, &v));
        keep_int(w->a, list, v);
    }
    /* The others end where a byte has no continuation bit. */
    for (const char *p = packed.p; p < packed.end; p++)
        list->n += (unsigned char)*p < 0x80;
    if (packed.p < packed.end && (unsigned char)packed.end[-1] >= 0x80)
        return ends(&packed);
    return NULL;
}

static void keep_float(tv_arena *a, tv_wire_floats *list, double v)
{
    list->n++;
    if (list->kept == list->keep)
        return;
    if (list->kept == list->cap)
        list->v = tv_grow(a, list->v, list->kept, &list->cap, sizeof *list->v);
    list->v[list->kept++] = v;
}

const tv_err *tv_wire_add_floats(const tv_wire *w, const tv_wire_field *f, unsigned bytes,
                                 tv_wire_floats *list)
{
    const tv_wire_type single = bytes == 4 ? TV_WIRE_FIXED32 : TV_WIRE_FIXED64;
    if (f->type == single) {
        keep_float(w->a, list, bytes == 4 ? as_f32(f->v) : as_f64(f->v));
        return NULL;
    }
    tv_wire packed;
    TV_TRY(tv_wire_enter(w, f, &packed));
    if (f->bytes.n % bytes)
        return ends(&packed);
    while (packed.p < packed.end && list->kept < list->keep) {
        uint64_t v = 0;
        TV_TRY(take_fixed(&packed, bytes, &v));
        keep_float(w->a, list, bytes == 4 ? as_f32(v) : as_f64(v));
    }
    list->n += (uint64_t)(packed.end - packed.p) / bytes;
    return NULL;
}
