/* ONNX's element types and the types of values. */
#include "onnx.h"

typedef struct type_row {
    const char *name;
    tv_dtype dtype;
} type_row;

/* TensorProto.DataType; 27 and 28 came with IR version 14. */
static const type_row types[] = {
    {"UNDEFINED", TV_DTYPE_UNKNOWN},
    {"FLOAT", TV_F32},
    {"UINT8", TV_U8},
    {"INT8", TV_I8},
    {"UINT16", TV_U16},
    {"INT16", TV_I16},
    {"INT32", TV_I32},
    {"INT64", TV_I64},
    {"STRING", TV_DTYPE_UNKNOWN},
    {"BOOL", TV_BOOL},
    {"FLOAT16", TV_F16},
    {"DOUBLE", TV_F64},
    {"UINT32", TV_U32},
    {"UINT64", TV_U64},
    {"COMPLEX64", TV_C64},
    {"COMPLEX128", TV_C128},
    {"BFLOAT16", TV_BF16},
    {"FLOAT8E4M3FN", TV_F8_E4M3},
    {"FLOAT8E4M3FNUZ", TV_F8_E4M3FNUZ},
    {"FLOAT8E5M2", TV_F8_E5M2},
    {"FLOAT8E5M2FNUZ", TV_F8_E5M2FNUZ},
    {"UINT4", TV_U4},
    {"INT4", TV_I4},
    {"FLOAT4E2M1", TV_F4},
    {"FLOAT8E8M0", TV_F8_E8M0},
    {"UINT2", TV_U2},
    {"INT2", TV_I2},
    {"FLOAT6E2M3", TV_F6_E2M3},
    {"FLOAT6E3M2", TV_F6_E3M2},
};
enum { n_types = sizeof types / sizeof *types };

tv_dtype tv_onnx_element(int64_t number)
{
    return number >= 0 && number < n_types ? types[number].dtype : TV_DTYPE_UNKNOWN;
}

tv_str tv_onnx_type_name(tv_onnx *o, int64_t number)
{
    if (number >= 0 && number < n_types)
        return tv_str_of(types[number].name);
    tv_buf b = tv_buf_in(o->g->a);
    tv_puts(&b, "type ");
    tv_put_double(&b, (double)number);
    return tv_buf_str(&b);
}

/* The same for a value; "sequence" and others where it is no tensor. */
tv_str tv_onnx_type_of(tv_onnx *o, const tv_value *v)
{
    if (v->list)
        return TV_S("sequence");
    for (int64_t i = 1; i < n_types; i++)
        if (v->dtype != TV_DTYPE_UNKNOWN && types[i].dtype == v->dtype)
            return tv_onnx_type_name(o, i);
    return v->dtype_text.n ? v->dtype_text : TV_S("UNDEFINED");
}

static void set_type(tv_onnx *o, tv_value *v, int64_t number)
{
    v->dtype = tv_onnx_element(number);
    if (v->dtype == TV_DTYPE_UNKNOWN)
        v->dtype_text = tv_onnx_type_name(o, number);
}

/* dim_value 1, dim_param 2. Some exporters write -1 for a dimension that is open; a dimension
 * without either is open, too. */
static const tv_err *read_dim(tv_wire w, tv_dim *dim)
{
    tv_wire_field f;
    bool more = true;
    *dim = (tv_dim){.size = -1};
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        if (f.number == 1) {
            TV_TRY(tv_wire_i64(&w, &f, &dim->size));
            dim->size = dim->size < 0 ? -1 : dim->size;
        } else if (f.number == 2) {
            TV_TRY(tv_wire_str(&w, &f, &dim->symbol));
        }
    }
}

/* TensorShapeProto: dim 1. A shape without dimensions is a scalar's. */
static const tv_err *read_shape(tv_onnx *o, tv_wire w, tv_value *v)
{
    struct {
        tv_dim *v;
        size_t n, cap;
    } dims = {0};
    tv_wire_field f;
    tv_wire inner;
    bool more = true;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            break;
        if (f.number != 1)
            continue;
        TV_TRY(tv_wire_enter(&w, &f, &inner));
        TV_TRY(read_dim(inner, tv_push(o->g->a, &dims)));
    }
    if (dims.n > TV_LIMIT_RANK) /* nothing that runs it could hold the shape */
        return NULL;
    v->shaped = true;
    v->rank = (uint32_t)dims.n;
    v->dims = dims.v;
    return NULL;
}

/* TypeProto.Tensor and TypeProto.SparseTensor: elem_type 1, shape 2. */
static const tv_err *read_tensor_type(tv_onnx *o, tv_wire w, tv_value *v)
{
    tv_wire_field f;
    tv_wire inner;
    bool more = true;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        if (f.number == 1) {
            int32_t number = 0;
            TV_TRY(tv_wire_i32(&w, &f, &number));
            set_type(o, v, number);
        } else if (f.number == 2) {
            TV_TRY(tv_wire_enter(&w, &f, &inner));
            TV_TRY(read_shape(o, inner, v));
        }
    }
}

/* TypeProto.Sequence and TypeProto.Optional: elem_type 1 is a type again. */
static const tv_err *read_element_type(tv_onnx *o, tv_wire w, tv_value *v)
{
    tv_wire_field f;
    tv_wire inner;
    bool more = true;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        if (f.number != 1)
            continue;
        TV_TRY(tv_wire_enter(&w, &f, &inner));
        TV_TRY(tv_onnx_type(o, inner, v));
    }
}

const tv_err *tv_onnx_type(tv_onnx *o, tv_wire w, tv_value *v)
{
    enum { tensor = 1, sequence = 4, map = 5, opaque = 7, sparse_tensor = 8, optional = 9 };
    tv_wire_field f;
    tv_wire inner;
    bool more = true;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        if (f.number < tensor || f.number > optional || f.type != TV_WIRE_BYTES)
            continue;
        TV_TRY(tv_wire_enter(&w, &f, &inner));
        if (f.number == tensor || f.number == sparse_tensor) {
            TV_TRY(read_tensor_type(o, inner, v));
        } else if (f.number == sequence || f.number == optional) {
            TV_TRY(read_element_type(o, inner, v));
            v->list = v->list || f.number == sequence;
        } else if (f.number == map || f.number == opaque) {
            v->dtype_text = f.number == map ? TV_S("map") : TV_S("opaque");
        }
    }
}

const tv_err *tv_onnx_value_info(tv_onnx *o, tv_wire w, tv_value *v)
{
    tv_wire_field f;
    tv_wire inner;
    bool more = true;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        if (f.number == 1) {
            TV_TRY(tv_wire_str(&w, &f, &v->name));
        } else if (f.number == 2) {
            TV_TRY(tv_wire_enter(&w, &f, &inner));
            TV_TRY(tv_onnx_type(o, inner, v));
        }
    }
}

const tv_err *tv_onnx_pair(tv_wire w, tv_str *key, tv_str *value)
{
    tv_wire_field f;
    bool more = true;
    for (;;) {
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        if (f.number == 1)
            TV_TRY(tv_wire_str(&w, &f, key));
        else if (f.number == 2)
            TV_TRY(tv_wire_str(&w, &f, value));
    }
}
