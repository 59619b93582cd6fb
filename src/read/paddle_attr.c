/* The attributes of Paddle's operators in protobuf. The kind says which of the lists counts; lists
 * longer than what is kept have no contents. */
#include "paddle_attr.h"

/* Scalar: 1 type, 2 b, 3 i, 4 r; a complex number has none that we use. */
static const tv_err *read_scalar(const tv_wire *w, const tv_wire_field *f, tv_paddle_attr *raw)
{
    tv_wire in;
    tv_wire_field x;
    uint64_t type = 0;
    int64_t i = 0;
    double r = 0;
    bool more = false;
    TV_TRY(tv_wire_enter(w, f, &in));
    for (;;) {
        TV_TRY(tv_wire_next(&in, &x, &more));
        if (!more)
            break;
        if (x.number == 1)
            TV_TRY(tv_wire_u64(&in, &x, &type));
        if (x.number == 2 || x.number == 3)
            TV_TRY(tv_wire_i64(&in, &x, &i));
        if (x.number == 4)
            TV_TRY(tv_wire_f64(&in, &x, &r));
    }
    if (raw->floats.kept < raw->floats.keep) {
        if (raw->floats.kept == raw->floats.cap)
            raw->floats.v = tv_grow(w->a, raw->floats.v, raw->floats.kept, &raw->floats.cap,
                                    sizeof *raw->floats.v);
        raw->floats.v[raw->floats.kept++] = type == 3 ? r : (double)i;
    }
    raw->floats.n++;
    return NULL;
}

static const tv_err *add_string(const tv_wire *w, const tv_wire_field *f, tv_paddle_attr *raw)
{
    tv_str s;
    TV_TRY(tv_wire_str(w, f, &s));
    *tv_push(w->a, &raw->strings) = s;
    return NULL;
}

/* Every scalar goes to the list of its kind; the type tells later which one counts. */
static const tv_err *read_attr_field(const tv_wire *w, const tv_wire_field *f, tv_paddle_attr *raw)
{
    switch (f->number) {
    case 1:
        return tv_wire_str(w, f, &raw->name);
    case 2:
        return tv_wire_u64(w, f, &raw->type);
    case 3:
    case 6:
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
    case 15:
        return tv_wire_add_ints(w, f, &raw->ints);
    case 4:
    case 7:
        return tv_wire_add_floats(w, f, 4, &raw->floats);
    case 16:
    case 19:
        return tv_wire_add_floats(w, f, 8, &raw->floats);
    case 5:
    case 8:
    case 17:
    case 18:
        return add_string(w, f, raw);
    case 20:
    case 21:
        return read_scalar(w, f, raw);
    default:
        return NULL;
    }
}

bool tv_paddle_passes_over(tv_str name)
{
    static const char *const names[] = {
        "op_callstack", "op_role_var",      "op_device",     "op_namescope", "with_quant_attr",
        "use_mkldnn",   "mkldnn_data_type", "use_quantizer", "use_cudnn",    "use_onednn",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tv_str_is(name, names[i]))
            return true;
    return false;
}

/* The name stands first in every file; where it does not, the attribute is read and then
 * passed over. */
const tv_err *tv_paddle_read_attr(const tv_wire *w, const tv_wire_field *f, tv_paddle_attr *raw)
{
    tv_wire in;
    tv_wire_field x;
    bool more = false;
    *raw = (tv_paddle_attr){.ints = {.keep = TV_LIMIT_PROGRAM_CONST_ELEMENTS},
                            .floats = {.keep = TV_LIMIT_PROGRAM_CONST_ELEMENTS}};
    TV_TRY(tv_wire_enter(w, f, &in));
    for (;;) {
        TV_TRY(tv_wire_next(&in, &x, &more));
        if (!more || tv_paddle_passes_over(raw->name))
            return NULL;
        TV_TRY(read_attr_field(&in, &x, raw));
    }
}

static void take_int(const tv_paddle_attr *raw, tv_attr *attr)
{
    const int64_t v = raw->ints.kept ? raw->ints.v[0] : 0;
    attr->kind = TV_ATTR_INT;
    attr->u.i = v;
    if (!tv_str_ends(raw->name, TV_S("dtype")))
        return;
    attr->kind = TV_ATTR_DTYPE;
    attr->u.dtype = v < 0 ? TV_DTYPE_UNKNOWN : tv_paddle_dtype((uint64_t)v);
}

/* Lists that are longer than what is kept have no contents: kind NONE. */
static void take_list(const tv_paddle_attr *raw, tv_attr *attr)
{
    const bool ints =
        raw->type == TV_PADDLE_INTS || raw->type == TV_PADDLE_BOOLS || raw->type == TV_PADDLE_LONGS;
    attr->n = ints ? raw->ints.kept : raw->floats.kept;
    attr->kind = ints ? TV_ATTR_INTS : TV_ATTR_FLOATS;
    if (ints)
        attr->u.ints = raw->ints.v;
    else
        attr->u.floats = raw->floats.v;
    if (ints ? raw->ints.n != raw->ints.kept : raw->floats.n != raw->floats.kept)
        attr->kind = TV_ATTR_NONE;
}

void tv_paddle_take_attr(const tv_paddle_attr *raw, tv_attr *attr)
{
    *attr = (tv_attr){.name = raw->name};
    switch (raw->type) {
    case TV_PADDLE_INT:
    case TV_PADDLE_BOOL:
    case TV_PADDLE_LONG:
        take_int(raw, attr);
        return;
    case TV_PADDLE_FLOAT:
    case TV_PADDLE_DOUBLE:
    case TV_PADDLE_SCALAR:
        attr->kind = TV_ATTR_FLOAT;
        attr->u.f = raw->floats.kept ? raw->floats.v[0] : 0;
        return;
    case TV_PADDLE_STRING:
        attr->kind = TV_ATTR_STRING;
        attr->u.s = raw->strings.n ? raw->strings.v[0] : (tv_str){0};
        return;
    case TV_PADDLE_STRINGS:
        attr->kind = TV_ATTR_STRINGS;
        attr->n = raw->strings.n;
        attr->u.strings = raw->strings.v;
        return;
    case TV_PADDLE_INTS:
    case TV_PADDLE_BOOLS:
    case TV_PADDLE_LONGS:
    case TV_PADDLE_FLOATS:
    case TV_PADDLE_DOUBLES:
    case TV_PADDLE_SCALARS:
        take_list(raw, attr);
        return;
    default: /* a kind of later versions, or what the caller knows */
        return;
    }
}
