/* What the ONNX rules share. */
#include "program_onnx.h"

#include "program_running.h"

tv_dtype tv_opset_dtype(int64_t number)
{
    /* onnx.proto3, TensorProto.DataType, IR version 13 */
    static const tv_dtype types[] = {
        TV_DTYPE_UNKNOWN, TV_F32,     TV_U8,          TV_I8,
        TV_U16,           TV_I16,     TV_I32,         TV_I64,
        TV_DTYPE_UNKNOWN, TV_BOOL,    TV_F16,         TV_F64,
        TV_U32,           TV_U64,     TV_C64,         TV_C128,
        TV_BF16,          TV_F8_E4M3, TV_F8_E4M3FNUZ, TV_F8_E5M2,
        TV_F8_E5M2FNUZ,   TV_U4,      TV_I4,          TV_F4,
        TV_F8_E8M0,       TV_U2,      TV_I2,
    };
    bool known = number >= 0 && number < (int64_t)(sizeof types / sizeof *types);
    return known ? types[number] : TV_DTYPE_UNKNOWN;
}

const int64_t *tv_opset_ints(tv_running *r, const tv_node *n, const char *attr, size_t operand,
                             size_t *count, bool *known)
{
    const int64_t *v = NULL;
    *known = true;
    *count = attr ? tv_run_attr_ints(r, n, attr, &v) : 0;
    if (*count)
        return v;
    uint32_t x = tv_run_in(r, n, operand);
    if (x == TV_NO_VALUE)
        return NULL;
    const tv_shape *s = tv_run_shape(r, x);
    int64_t total = tv_shape_count(s);
    *known = total >= 0 && total <= (int64_t)TV_LIMIT_PROGRAM_CONST_ELEMENTS;
    if (!*known)
        return NULL;
    int64_t *out = tv_new(tv_run_arena(r), int64_t, total ? (size_t)total : 1);
    *known = total == 0 || tv_run_ints(r, x, out, (size_t)total, count);
    return *known ? out : NULL;
}

const tv_err *tv_opset_done(tv_running *r, const tv_node *n, uint32_t y)
{
    tv_run_out(r, n, 0, y);
    return NULL;
}

const uint32_t *tv_opset_operands(tv_running *r, const tv_node *n)
{
    uint32_t *in = tv_new(tv_run_arena(r), uint32_t, n->n_inputs + 1);
    for (size_t i = 0; i < n->n_inputs; i++)
        in[i] = tv_run_in(r, n, i);
    return in;
}

const tv_err *tv_opset_guess(tv_running *r, const tv_node *n, const tv_dtype *dtypes,
                             const tv_shape *most, size_t n_out)
{
    uint32_t *out = tv_new(tv_run_arena(r), uint32_t, n_out + 1);
    for (size_t i = 0; i < n_out; i++) {
        out[i] = tv_run_make_guess(r, n, i, dtypes[i], &most[i]);
        tv_run_out(r, n, i, out[i]);
    }
    return tv_rule_route(r, tv_opset_operands(r, n), n->n_inputs, out, n_out);
}

bool tv_opset_is(tv_str s, const char *word)
{
    return tv_str_is(s, word);
}

static void copy_ints(int64_t *to, const int64_t *from, size_t n)
{
    for (size_t i = 0; i < n && i < TV_WINDOW_AXES; i++)
        to[i] = from[i];
}

tv_window tv_opset_window(const tv_node *n)
{
    tv_window w = {0};
    const int64_t *v = NULL;
    size_t count = tv_node_ints(n, "kernel_shape", &v);
    copy_ints(w.kernel, v, count);
    count = tv_node_ints(n, "strides", &v);
    copy_ints(w.stride, v, count);
    count = tv_node_ints(n, "dilations", &v);
    copy_ints(w.dilation, v, count);
    count = tv_node_ints(n, "pads", &v);
    copy_ints(w.before, v, count / 2);
    if (count)
        copy_ints(w.after, v + count / 2, count / 2);
    tv_str mode = tv_node_string(n, "auto_pad");
    w.mode = tv_opset_is(mode, "SAME_UPPER")   ? TV_PAD_SAME_UPPER
             : tv_opset_is(mode, "SAME_LOWER") ? TV_PAD_SAME_LOWER
             : tv_opset_is(mode, "VALID")      ? TV_PAD_VALID
                                               : TV_PAD_STATED;
    w.ceil = tv_node_int(n, "ceil_mode", 0) != 0;
    return w;
}
