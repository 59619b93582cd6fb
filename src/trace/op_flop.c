/* Matrix products and attention; a convolution's stride stands in no list of shapes, so that it is
 * left out. Two floating point operations a multiply-add. */
#include "op_flop.h"

#include <math.h>
#include <string.h>

#include "event_scan.h"

enum { most_tensors = 4, most_dims = 5 };

typedef struct shapes {
    double v[most_tensors][most_dims];
    unsigned dims[most_tensors];
    unsigned n;
} shapes;

typedef struct known_op {
    const char *name;
    tv_kernel_class is;
    unsigned first; /* of the two tensors that are multiplied */
} known_op;

static const known_op ops[] = {
    {"aten::mm", TV_CLASS_GEMM, 0},
    {"aten::addmm", TV_CLASS_GEMM, 1},
    {"aten::bmm", TV_CLASS_GEMM, 0},
    {"aten::baddbmm", TV_CLASS_GEMM, 1},
    {"aten::_scaled_mm", TV_CLASS_GEMM, 0},
    {"aten::_int_mm", TV_CLASS_GEMM, 0},
    {"aten::_scaled_dot_product_flash_attention", TV_CLASS_ATTENTION, 0},
    {"aten::_scaled_dot_product_efficient_attention", TV_CLASS_ATTENTION, 0},
    {"aten::_scaled_dot_product_cudnn_attention", TV_CLASS_ATTENTION, 0},
};

/* "[[16, 1024], [], [1024, 512]]" */
static shapes read_shapes(tv_str text)
{
    shapes s = {0};
    unsigned depth = 0;
    for (size_t i = 0; i < text.n; i++) {
        const char c = text.p[i];
        if (c == '[') {
            if (++depth == 2 && s.n == most_tensors)
                break;
        } else if (c == ']') {
            if (depth == 2)
                s.n++;
            depth -= depth > 0;
        } else if (c >= '0' && c <= '9' && depth == 2) {
            double v = 0;
            for (; i < text.n && text.p[i] >= '0' && text.p[i] <= '9'; i++)
                v = v * 10 + (text.p[i] - '0');
            i--;
            if (s.dims[s.n] < most_dims)
                s.v[s.n][s.dims[s.n]++] = v;
        }
    }
    return s;
}

/* [.., m, k] times [.., k, n]. */
static double product(const shapes *s, unsigned first)
{
    const unsigned second = first + 1;
    if (second >= s->n || s->dims[first] != s->dims[second] || s->dims[first] < 2)
        return 0;
    const double *x = s->v[first], *y = s->v[second];
    const unsigned d = s->dims[first];
    double batch = 1;
    for (unsigned i = 0; i + 2 < d; i++)
        batch *= x[i];
    return 2 * batch * x[d - 2] * x[d - 1] * y[d - 1];
}

/* Queries and keys of [batch, heads, length, width]: two products; a causal mask would halve them
 * and is not told. */
static double attention(const shapes *s)
{
    if (s->n < 2 || s->dims[0] != 4 || s->dims[1] != 4)
        return 0;
    const double *q = s->v[0], *k = s->v[1];
    return 4 * q[0] * q[1] * q[2] * q[3] * k[2];
}

/* The first word of "["c10::Half", "c10::Half"]". */
static tv_str first_type(tv_str list)
{
    const char *p = memchr(list.p, '"', list.n), *end = list.p + list.n;
    const char *quote = p ? memchr(p + 1, '"', (size_t)(end - p - 1)) : NULL;
    return quote ? tv_str_span(p + 1, quote) : (tv_str){0};
}

tv_op_flop tv_op_flop_of(tv_str name, tv_str args)
{
    tv_op_flop out = {0};
    const known_op *op = NULL;
    for (size_t i = 0; i < sizeof ops / sizeof *ops && !op; i++)
        op = tv_str_is(name, ops[i].name) ? &ops[i] : NULL;
    if (!op)
        return out;
    out.is = op->is;
    tv_arg_scan scan = tv_args_of(args);
    tv_str key, value;
    while (tv_args_next(&scan, &key, &value)) {
        if (tv_str_is(key, "Input Dims") || tv_str_is(key, "Input dims")) {
            const shapes s = read_shapes(value);
            out.flop = op->is == TV_CLASS_GEMM ? product(&s, op->first) : attention(&s);
        } else if (tv_str_is(key, "Input type")) {
            out.dtype = first_type(value);
        }
    }
    return out;
}
