/* Values of a run: made, read, bound to the program's names. Contents of stored tensors are decoded
 * when a rule first asks for them. */
#include <math.h>
#include <string.h>

#include "program_running.h"

/* Stands for an optional operand that a caller does not give. */
#define NOT_GIVEN (TV_NO_VALUE - 1)

tv_run_value *tv_running_at(const tv_running *r, uint32_t v)
{
    return &r->pieces.v[v / TV_RUN_PIECE][v % TV_RUN_PIECE];
}

const tv_run_value *tv_run_at(const tv_running *r, uint32_t v)
{
    return tv_running_at(r, v);
}

const tv_shape *tv_run_shape(const tv_running *r, uint32_t v)
{
    return &tv_running_at(r, v)->shape;
}

/* No axis is longer than this: sums and differences of sizes stay exact. */
#define LONGEST ((int64_t)1 << 40)

static void bound_axes(tv_run_value *v)
{
    for (uint32_t i = 0; i < v->shape.rank; i++) {
        int64_t d = v->shape.d[i];
        v->shape.d[i] = d < 0 ? 0 : d > LONGEST ? LONGEST : d;
        v->guessed = v->guessed || v->shape.d[i] != d;
    }
}

uint32_t tv_run_make(tv_running *r, tv_dtype dtype, const tv_shape *shape)
{
    if (r->n_values == r->pieces.n * TV_RUN_PIECE)
        *tv_push(r->a, &r->pieces) = tv_new(r->a, tv_run_value, TV_RUN_PIECE);
    uint32_t v = (uint32_t)r->n_values++;
    *tv_running_at(r, v) = (tv_run_value){
        .known = true,
        .dtype = dtype,
        .shape = *shape,
        .base = v,
        .weight = TV_NO_VALUE,
    };
    bound_axes(tv_running_at(r, v));
    return v;
}

static bool is_small(const tv_shape *s)
{
    int64_t n = tv_shape_count(s);
    return n >= 0 && n <= (int64_t)TV_LIMIT_PROGRAM_CONST_ELEMENTS;
}

void tv_run_set_data(tv_running *r, uint32_t v, const double *data)
{
    tv_run_value *x = tv_running_at(r, v);
    if (!is_small(&x->shape))
        return;
    size_t n = (size_t)tv_shape_count(&x->shape);
    double *copy = tv_new(r->a, double, n ? n : 1);
    if (n)
        memcpy(copy, data, n * sizeof *copy);
    x->data = copy;
}

uint32_t tv_run_make_data(tv_running *r, tv_dtype dtype, const tv_shape *shape, const double *data)
{
    uint32_t v = tv_run_make(r, dtype, shape);
    tv_run_set_data(r, v, data);
    return v;
}

uint32_t tv_run_make_list(tv_running *r, tv_dtype dtype, const uint32_t *items, size_t n)
{
    tv_shape shape = n ? *tv_run_shape(r, items[0]) : (tv_shape){0};
    uint32_t v = tv_run_make(r, dtype, &shape);
    tv_run_value *x = tv_running_at(r, v);
    uint32_t *copy = tv_new(r->a, uint32_t, n ? n : 1);
    if (n)
        memcpy(copy, items, n * sizeof *copy);
    x->list = true;
    x->items = copy;
    x->n_items = n;
    return v;
}

void tv_run_view_of(tv_running *r, uint32_t v, uint32_t x)
{
    tv_running_at(r, v)->base = tv_running_at(r, x)->base;
    tv_run_weight_of(r, v, x);
}

void tv_run_weight_of(tv_running *r, uint32_t v, uint32_t x)
{
    tv_running_at(r, v)->weight = tv_running_at(r, x)->weight;
}

void tv_run_constant(tv_running *r, uint32_t v)
{
    tv_running_at(r, v)->constant = true;
}

void tv_run_guess(tv_running *r, uint32_t v)
{
    tv_running_at(r, v)->guessed = true;
}

/* ---- stored tensors ---- */

static double half(uint16_t h)
{
    unsigned exponent = h >> 10 & 31;
    double fraction = h & 1023;
    double v = exponent == 31  ? (fraction != 0 ? (double)NAN : (double)INFINITY)
               : exponent == 0 ? ldexp(fraction, -24)
                               : ldexp(1024 + fraction, (int)exponent - 25);
    return h >> 15 ? -v : v;
}

static double single(uint32_t bits)
{
    float f = 0;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static double wide(uint64_t bits)
{
    double d = 0;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static uint64_t little_endian(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = n; i > 0; i--)
        v = v << 8 | p[i - 1];
    return v;
}

static bool number(tv_dtype t, uint64_t bits, double *v)
{
    if (t == TV_F64)
        *v = wide(bits);
    else if (t == TV_F32)
        *v = single((uint32_t)bits);
    else if (t == TV_BF16)
        *v = single((uint32_t)bits << 16);
    else if (t == TV_F16)
        *v = half((uint16_t)bits);
    else if (t == TV_I64)
        *v = (double)(int64_t)bits;
    else if (t == TV_I32)
        *v = (int32_t)(uint32_t)bits;
    else if (t == TV_I16)
        *v = (int16_t)(uint16_t)bits;
    else if (t == TV_I8)
        *v = (int8_t)(uint8_t)bits;
    else if (t == TV_U64 || t == TV_U32 || t == TV_U16 || t == TV_U8 || t == TV_BOOL)
        *v = (double)bits;
    else
        return false;
    return true;
}

bool tv_value_numbers(const tv_value *v, size_t n, double *out)
{
    size_t bytes = (size_t)tv_dtype_bytes(v->dtype);
    if (!bytes || bytes > 8 || n > v->data.n / bytes)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!number(v->dtype, little_endian(v->data.p + i * bytes, bytes), &out[i]))
            return false;
    return true;
}

const double *tv_run_data(tv_running *r, uint32_t v)
{
    if (v == TV_NO_VALUE)
        return NULL;
    tv_run_value *x = tv_running_at(r, v);
    if (x->data || !x->from || !x->from->data.n || x->weight != v || !is_small(&x->shape))
        return x->data;
    size_t n = (size_t)tv_shape_count(&x->shape);
    double *data = tv_new(r->a, double, n ? n : 1);
    if (tv_value_numbers(x->from, n, data))
        x->data = data;
    return x->data;
}

static int64_t whole(double v)
{
    if (!(v > -9.2e18))
        return INT64_MIN;
    return v >= 9.2e18 ? INT64_MAX : (int64_t)v;
}

bool tv_run_ints(tv_running *r, uint32_t v, int64_t *out, size_t max, size_t *n)
{
    const double *data = tv_run_data(r, v);
    *n = 0;
    if (!data)
        return false;
    size_t count = (size_t)tv_shape_count(tv_run_shape(r, v));
    if (count > max)
        return false;
    for (size_t i = 0; i < count; i++)
        out[i] = whole(data[i]);
    *n = count;
    return true;
}

double tv_run_scalar(tv_running *r, uint32_t v, double fallback)
{
    const double *data = tv_run_data(r, v);
    return data && tv_shape_count(tv_run_shape(r, v)) == 1 ? data[0] : fallback;
}

/* ---- names of the program ---- */

/* A stored tensor becomes a value when it is first read, whatever body reads it. */
static uint32_t stored(tv_running *r, uint32_t program_value)
{
    const tv_value *from = &r->p->values[program_value];
    tv_shape shape = {.rank = from->rank < TV_LIMIT_RANK ? from->rank : TV_LIMIT_RANK};
    bool guess = from->rank > TV_LIMIT_RANK;
    for (uint32_t i = 0; i < shape.rank; i++) {
        int64_t d = tv_run_dim(r, &from->dims[i]);
        guess = guess || d < 0;
        shape.d[i] = d < 0 ? 1 : d;
    }
    uint32_t v = tv_run_make(r, from->dtype, &shape);
    tv_run_value *x = tv_running_at(r, v);
    x->from = from;
    x->weight = v;
    x->constant = true;
    x->guessed = guess;
    r->now[program_value] = v;
    return v;
}

uint32_t tv_run_of(tv_running *r, uint32_t program_value)
{
    if (program_value >= r->p->n_values)
        return TV_NO_VALUE;
    uint32_t v = r->now[program_value];
    if (v == TV_NO_VALUE && r->p->values[program_value].role == TV_VALUE_WEIGHT)
        return stored(r, program_value);
    return v == NOT_GIVEN ? TV_NO_VALUE : v;
}

void tv_run_bind(tv_running *r, uint32_t program_value, uint32_t v)
{
    if (program_value >= r->p->n_values)
        return;
    r->now[program_value] = v == TV_NO_VALUE ? NOT_GIVEN : v;
    if (v == TV_NO_VALUE)
        return;
    tv_run_value *x = tv_running_at(r, v);
    if (!x->from)
        x->from = &r->p->values[program_value];
}

uint32_t tv_run_in(const tv_running *r, const tv_node *n, size_t i)
{
    uint32_t v = tv_node_in(n, i);
    return v < r->p->n_values && r->now[v] != NOT_GIVEN ? r->now[v] : TV_NO_VALUE;
}

uint32_t tv_run_in_slot(const tv_running *r, const tv_node *n, const char *slot, size_t i)
{
    uint32_t v = tv_node_in_slot(n, slot, i);
    return v < r->p->n_values && r->now[v] != NOT_GIVEN ? r->now[v] : TV_NO_VALUE;
}

void tv_run_out(tv_running *r, const tv_node *n, size_t i, uint32_t v)
{
    uint32_t to = tv_node_out(n, i);
    if (to != TV_NO_VALUE)
        tv_run_bind(r, to, v);
}

void tv_run_out_slot(tv_running *r, const tv_node *n, const char *slot, size_t i, uint32_t v)
{
    uint32_t to = tv_node_out_slot(n, slot, i);
    if (to != TV_NO_VALUE)
        tv_run_bind(r, to, v);
}

int64_t tv_run_dim(tv_running *r, const tv_dim *d)
{
    if (d->size >= 0)
        return d->size;
    double v = 0;
    if (!d->symbol.n || !tv_symbols_eval(&r->symbols, d->symbol, &v, NULL) || v < 0)
        return -1;
    return whole(v);
}

static size_t dims_of(tv_running *r, const tv_attr *a, const int64_t **v)
{
    int64_t *out = tv_new(r->a, int64_t, a->n ? a->n : 1);
    for (size_t i = 0; i < a->n; i++) {
        /* -1 is a size of its own here: "what remains". */
        out[i] = a->u.dims[i].symbol.n ? tv_run_dim(r, &a->u.dims[i]) : a->u.dims[i].size;
    }
    *v = out;
    return a->n;
}

static size_t contents_of(tv_running *r, uint32_t value, const int64_t **v)
{
    uint32_t x = tv_run_of(r, value);
    if (x == TV_NO_VALUE || !tv_run_data(r, x))
        return 0;
    size_t n = (size_t)tv_shape_count(tv_run_shape(r, x));
    int64_t *out = tv_new(r->a, int64_t, n ? n : 1);
    if (!tv_run_ints(r, x, out, n, &n))
        return 0;
    *v = out;
    return n;
}

size_t tv_run_attr_ints(tv_running *r, const tv_node *n, const char *name, const int64_t **v)
{
    const tv_attr *a = tv_node_attr(n, name);
    if (a && a->kind == TV_ATTR_DIMS)
        return dims_of(r, a, v);
    if (a && a->kind == TV_ATTR_VALUE)
        return contents_of(r, a->u.value, v);
    return tv_node_ints(n, name, v);
}
