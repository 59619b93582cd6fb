/* Canonical products of matrices: matmul, linear, einsum. */
#include "program_running.h"

static const tv_err *no_product(tv_running *r, const tv_shape *x, const tv_shape *y)
{
    return tv_run_fail_shapes(r, "program.matmul", N_("{x} and {y} cannot be multiplied"), x, y);
}

/* An operand as a stack of matrices. */
typedef struct matrices {
    tv_shape batch;
    int64_t rows, columns;
    bool vector;
} matrices;

static matrices matrices_of(const tv_shape *s, bool transpose, bool right)
{
    matrices m = {0};
    if (s->rank == 1) {
        m.vector = true;
        m.rows = right ? s->d[0] : 1;
        m.columns = right ? 1 : s->d[0];
        return m;
    }
    m.batch = tv_shape_of(s->rank - 2, s->d);
    m.rows = s->d[transpose ? s->rank - 1 : s->rank - 2];
    m.columns = s->d[transpose ? s->rank - 2 : s->rank - 1];
    return m;
}

/* Rows of all matrices together where one operand is a single matrix: one large product. */
static void put_sizes(tv_step *s, const matrices *a, const matrices *b, const tv_shape *batch)
{
    double groups = tv_shape_elements(batch);
    bool single = tv_shape_elements(&b->batch) == 1;
    s->u.matmul.groups = single ? 1 : groups;
    s->u.matmul.m = (double)a->rows * (single ? groups : 1);
    s->u.matmul.n = (double)b->columns;
    s->u.matmul.k = (double)a->columns;
}

const tv_err *tv_rule_matmul(tv_running *r, tv_matmul_call call, uint32_t x, uint32_t y,
                             uint32_t bias, uint32_t *z)
{
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    const tv_run_value *v = tv_run_at(r, x);
    const tv_run_value *u = tv_run_at(r, y);
    if (!v->shape.rank || !u->shape.rank)
        return no_product(r, &v->shape, &u->shape);
    matrices a = matrices_of(&v->shape, call.transpose_x, false);
    matrices b = matrices_of(&u->shape, call.transpose_y, true);
    tv_shape shape = {0};
    if (a.columns != b.rows || !tv_shape_broadcast(&a.batch, &b.batch, &shape))
        return no_product(r, &v->shape, &u->shape);
    tv_step s = {.kind = TV_STEP_MATMUL};
    put_sizes(&s, &a, &b, &shape);
    bool fits = (a.vector || tv_shape_push(&shape, a.rows)) &&
                (b.vector || tv_shape_push(&shape, b.columns));
    if (!fits)
        return no_product(r, &v->shape, &u->shape);
    s.u.matmul.bias = bias != TV_NO_VALUE;
    s.u.matmul.weight_left = v->constant && !u->constant;
    *z = tv_run_make(r, call.dtype ? call.dtype : v->dtype ? v->dtype : u->dtype, &shape);
    tv_run_push(r, &s, (uint32_t[]){x, y, bias}, s.u.matmul.bias ? 3 : 2, z, 1);
    return NULL;
}

const tv_err *tv_rule_linear(tv_running *r, bool in_first, uint32_t x, uint32_t weight,
                             uint32_t bias, uint32_t *y)
{
    tv_matmul_call call = {.transpose_y = !in_first};
    return tv_rule_matmul(r, call, x, weight, bias, y);
}

/* ---- einsum ---- */

#define LETTERS 64u

/* Subscripts as small numbers: letters, and from 52 on the axes of "...", counted from the end. */
typedef struct labels {
    unsigned char v[TV_LIMIT_RANK];
    uint32_t n;
} labels;

typedef struct einsum {
    tv_running *r;
    int64_t size[LETTERS];
    uint32_t most_dots;
} einsum;

static int letter(char c)
{
    if (c >= 'a' && c <= 'z')
        return c - 'a';
    return c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

static bool put_label(labels *l, unsigned label)
{
    if (l->n == TV_LIMIT_RANK)
        return false;
    l->v[l->n++] = (unsigned char)label;
    return true;
}

/* "...": as many axes as the rank leaves; the last one is label 52. */
static bool read_term(tv_str term, uint32_t dots, labels *l)
{
    *l = (labels){0};
    for (size_t i = 0; i < term.n; i++) {
        int c = letter(term.p[i]);
        if (c >= 0) {
            if (!put_label(l, (unsigned)c))
                return false;
        } else if (term.p[i] == '.') {
            i += 2;
            for (uint32_t d = dots; d > 0; d--)
                if (!put_label(l, 52 + d - 1))
                    return false;
        } else if (term.p[i] != ' ') {
            return false;
        }
    }
    return true;
}

static uint32_t letters_of(tv_str term)
{
    uint32_t n = 0;
    for (size_t i = 0; i < term.n; i++)
        n += letter(term.p[i]) >= 0;
    return n;
}

static bool note_sizes(einsum *e, const labels *l, const tv_shape *s)
{
    if (l->n != s->rank)
        return false;
    for (uint32_t i = 0; i < l->n; i++) {
        int64_t *size = &e->size[l->v[i]];
        bool same = *size < 0 || *size == s->d[i] || *size == 1 || s->d[i] == 1;
        if (!same)
            return false;
        *size = *size <= 1 ? s->d[i] : *size;
    }
    return true;
}

static bool holds(const labels *l, unsigned label)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->v[i] == label)
            return true;
    return false;
}

/* Without "->": the axes of "...", then letters that occur once, in alphabetical order (capitals
 * first, as NumPy sorts). */
static bool implied(const einsum *e, const labels *in, size_t n, labels *out)
{
    for (uint32_t d = e->most_dots; d > 0; d--)
        if (!put_label(out, 52 + d - 1))
            return false;
    for (unsigned k = 0; k < 52; k++) {
        unsigned label = k < 26 ? k + 26 : k - 26;
        unsigned times = 0;
        for (size_t i = 0; i < n; i++)
            for (uint32_t a = 0; a < in[i].n; a++)
                times += in[i].v[a] == label;
        if (times == 1 && !put_label(out, label))
            return false;
    }
    return true;
}

static bool shape_of_labels(const einsum *e, const labels *l, tv_shape *s)
{
    *s = (tv_shape){0};
    for (uint32_t i = 0; i < l->n; i++)
        if (e->size[l->v[i]] < 0 || !tv_shape_push(s, e->size[l->v[i]]))
            return false;
    return true;
}

/* Sizes of the product of two terms: shared and kept labels are groups, shared and dropped ones
 * are summed over. */
static void product_sizes(const einsum *e, const labels *x, const labels *y, const labels *out,
                          tv_step *s)
{
    double groups = 1;
    double m = 1;
    double n = 1;
    double k = 1;
    for (unsigned label = 0; label < LETTERS; label++) {
        bool in_x = holds(x, label);
        bool in_y = holds(y, label);
        bool kept = holds(out, label);
        double size = in_x || in_y ? (double)e->size[label] : 1;
        if (in_x && in_y && kept)
            groups *= size;
        else if (in_x && in_y)
            k *= size;
        else if (in_x && kept)
            m *= size;
        else if (in_y && kept)
            n *= size;
    }
    s->u.matmul.groups = groups;
    s->u.matmul.m = m;
    s->u.matmul.n = n;
    s->u.matmul.k = k;
}

static bool same_labels(const labels *x, const labels *y)
{
    if (x->n != y->n)
        return false;
    for (uint32_t i = 0; i < x->n; i++)
        if (x->v[i] != y->v[i])
            return false;
    return true;
}

/* One operand: a transpose, a sum over axes, or both. */
static void push_single(tv_running *r, const labels *in, const labels *out, uint32_t x, uint32_t y)
{
    tv_step s = {.kind = in->n == out->n ? TV_STEP_COPY : TV_STEP_REDUCE};
    if (same_labels(in, out)) {
        s.kind = TV_STEP_VIEW;
        s.u.layout.kind = TV_LAYOUT_RESHAPE;
        tv_run_view_of(r, y, x);
    } else if (s.kind == TV_STEP_COPY) {
        s.u.layout.kind = TV_LAYOUT_PERMUTE;
        for (uint32_t i = 0; i < out->n; i++)
            for (uint32_t k = 0; k < in->n; k++)
                if (in->v[k] == out->v[i])
                    s.u.layout.order[i] = (uint8_t)k;
        tv_run_weight_of(r, y, x);
    }
    tv_run_push(r, &s, &x, 1, &y, 1);
}

static void push_pair(const einsum *e, const labels *a, const labels *b, const labels *out,
                      const uint32_t *in, uint32_t y)
{
    tv_step s = {.kind = TV_STEP_MATMUL};
    product_sizes(e, a, b, out, &s);
    s.u.matmul.weight_left = tv_run_at(e->r, in[0])->constant && !tv_run_at(e->r, in[1])->constant;
    /* Nothing is summed: an outer or elementwise product. */
    if (s.u.matmul.k <= 1) {
        s = (tv_step){.kind = TV_STEP_BINARY};
        s.u.binary.fn = TV_FN2_MUL;
        s.u.binary.product = true;
    }
    tv_run_push(e->r, &s, in, 2, &y, 1);
}

/* Labels of a and b that later terms or the result still need. */
static bool joined(const labels *a, const labels *b, const labels *rest, size_t n_rest,
                   const labels *out, labels *z)
{
    *z = (labels){0};
    for (uint32_t i = 0; i < a->n + b->n; i++) {
        unsigned label = i < a->n ? a->v[i] : b->v[i - a->n];
        bool needed = holds(out, label);
        for (size_t k = 0; k < n_rest; k++)
            needed = needed || holds(&rest[k], label);
        if (needed && !holds(z, label) && !put_label(z, label))
            return false;
    }
    return true;
}

static const tv_err *bad_equation(tv_running *r, tv_str equation)
{
    return TV_FAIL(r->a, TV_INPUT, "program.einsum",
                   N_("the equation {text} does not fit its operands"),
                   tv_arg_str("text", equation));
}

/* Left to right, as frameworks do without an optimised path. */
static const tv_err *contract(einsum *e, tv_str equation, labels *terms, const uint32_t *x,
                              size_t n, const labels *out, uint32_t *y)
{
    uint32_t held = x[0];
    labels at = terms[0];
    tv_shape shape = {0};
    tv_dtype dtype = tv_run_at(e->r, x[0])->dtype;
    for (size_t i = 1; i < n; i++) {
        labels next = *out;
        if (i + 1 < n && !joined(&at, &terms[i], &terms[i + 1], n - i - 1, out, &next))
            return bad_equation(e->r, equation);
        if (!shape_of_labels(e, &next, &shape))
            return bad_equation(e->r, equation);
        uint32_t made = tv_run_make(e->r, dtype, &shape);
        push_pair(e, &at, &terms[i], &next, (uint32_t[]){held, x[i]}, made);
        held = made;
        at = next;
    }
    if (n == 1) {
        if (!shape_of_labels(e, out, &shape))
            return bad_equation(e->r, equation);
        *y = tv_run_make(e->r, dtype, &shape);
        push_single(e->r, &at, out, x[0], *y);
        return NULL;
    }
    *y = held;
    return NULL;
}

static tv_cut cut_arrow(tv_str s)
{
    for (size_t i = 0; i + 1 < s.n; i++)
        if (s.p[i] == '-' && s.p[i + 1] == '>')
            return (tv_cut){tv_str_take(s, i), tv_str_drop(s, i + 2), true};
    return (tv_cut){.head = s};
}

const tv_err *tv_rule_einsum(tv_running *r, tv_str equation, const uint32_t *x, size_t n,
                             uint32_t *y)
{
    einsum e = {.r = r};
    for (size_t i = 0; i < LETTERS; i++)
        e.size[i] = -1;
    if (n == 0)
        return bad_equation(r, equation);
    labels *terms = tv_new(r->a, labels, n);
    tv_cut sides = cut_arrow(equation);
    tv_cut term = {.tail = sides.head};
    for (size_t i = 0; i < n; i++) {
        TV_TRY(tv_run_need(r, x[i]));
        const tv_shape *s = tv_run_shape(r, x[i]);
        term = tv_str_cut(term.tail, ',');
        uint32_t named = letters_of(term.head);
        uint32_t dots = s->rank > named ? s->rank - named : 0;
        e.most_dots = dots > e.most_dots ? dots : e.most_dots;
        if (!read_term(term.head, dots, &terms[i]) || !note_sizes(&e, &terms[i], s))
            return bad_equation(r, equation);
    }
    labels out = {0};
    bool ok = sides.found ? read_term(sides.tail, e.most_dots, &out) : implied(&e, terms, n, &out);
    if (!ok)
        return bad_equation(r, equation);
    return contract(&e, equation, terms, x, n, &out, y);
}
