/* The arithmetic of model descriptions: a recursive-descent reader with bounded depth. */
#include "layer_expr.h"

#include <math.h>

#define EXPR_DEPTH 32

typedef struct expr {
    tv_arena *a;
    const tv_scope *scope;
    tv_str whole;
    tv_str left; /* what is still to read */
    unsigned depth;
} expr;

static const tv_err *sum(expr *x, double *v);

static const tv_err *broken(const expr *x)
{
    return TV_FAIL(x->a, TV_INPUT, "layers.expression", N_("cannot read the expression {text}"),
                   tv_arg_str("text", x->whole));
}

static char peek(expr *x)
{
    while (x->left.n && *x->left.p == ' ')
        x->left = tv_str_drop(x->left, 1);
    return x->left.n ? *x->left.p : 0;
}

static bool accept(expr *x, char c)
{
    if (peek(x) != c)
        return false;
    x->left = tv_str_drop(x->left, 1);
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static tv_str word(expr *x)
{
    size_t n = 0;
    while (n < x->left.n && (is_letter(x->left.p[n]) || is_digit(x->left.p[n])))
        n++;
    tv_str w = tv_str_take(x->left, n);
    x->left = tv_str_drop(x->left, n);
    return w;
}

static const tv_err *name(expr *x, double *v)
{
    tv_str w = word(x);
    for (const tv_scope *s = x->scope; s; s = s->next)
        if (tv_str_eq(s->name, w)) {
            *v = s->v;
            return NULL;
        }
    return TV_FAIL(x->a, TV_INPUT, "layers.name",
                   N_("the description uses {name}, which has no value"), tv_arg_str("name", w));
}

/* The nearest multiple of 8, but not less than nine tenths of v (MobileNet's rule). */
static double div8(double v)
{
    double near = fmax(8, floor((v + 4) / 8) * 8);
    return near < 0.9 * v ? near + 8 : near;
}

static const tv_err *call(expr *x, double *v)
{
    tv_str f = word(x);
    double first = 0;
    double second = 0;
    if (!accept(x, '('))
        return broken(x);
    TV_TRY(sum(x, &first));
    bool two = accept(x, ',');
    if (two)
        TV_TRY(sum(x, &second));
    if (!accept(x, ')'))
        return broken(x);
    if (tv_str_is(f, "floor"))
        *v = floor(first);
    else if (tv_str_is(f, "ceil"))
        *v = ceil(first);
    else if (tv_str_is(f, "round")) /* half to even, as Python does */
        *v = nearbyint(first);
    else if (tv_str_is(f, "div8"))
        *v = div8(first);
    else if (tv_str_is(f, "ceil8"))
        *v = ceil(first / 8) * 8;
    else if (tv_str_is(f, "max") && two)
        *v = fmax(first, second);
    else if (tv_str_is(f, "min") && two)
        *v = fmin(first, second);
    else if (tv_str_is(f, "eq") && two)
        *v = first == second;
    else if (tv_str_is(f, "ne") && two)
        *v = first != second;
    else if (tv_str_is(f, "gt") && two)
        *v = first > second;
    else
        return broken(x);
    return NULL;
}

static const tv_err *number(expr *x, double *v)
{
    size_t n = 0;
    while (n < x->left.n && (is_digit(x->left.p[n]) || x->left.p[n] == '.'))
        n++;
    tv_double_read r = tv_str_double(tv_str_take(x->left, n));
    if (!r.ok)
        return broken(x);
    x->left = tv_str_drop(x->left, n);
    *v = r.v;
    return NULL;
}

static const tv_err *atom(expr *x, double *v)
{
    if (++x->depth > EXPR_DEPTH)
        return broken(x);
    const tv_err *e = NULL;
    char c = peek(x);
    if (accept(x, '(')) {
        e = sum(x, v);
        if (!e && !accept(x, ')'))
            e = broken(x);
    } else if (accept(x, '-')) {
        e = atom(x, v);
        *v = -*v;
    } else if (accept(x, '$')) {
        e = name(x, v);
    } else if (is_letter(c)) {
        e = call(x, v);
    } else {
        e = number(x, v);
    }
    x->depth--;
    return e;
}

static const tv_err *product(expr *x, double *v)
{
    TV_TRY(atom(x, v));
    for (;;) {
        double by = 0;
        if (accept(x, '*')) {
            TV_TRY(atom(x, &by));
            *v *= by;
        } else if (accept(x, '/')) {
            TV_TRY(atom(x, &by));
            if (by == 0)
                return broken(x);
            *v /= by;
        } else {
            return NULL;
        }
    }
}

static const tv_err *sum(expr *x, double *v)
{
    TV_TRY(product(x, v));
    for (;;) {
        double more = 0;
        if (accept(x, '+')) {
            TV_TRY(product(x, &more));
            *v += more;
        } else if (accept(x, '-')) {
            TV_TRY(product(x, &more));
            *v -= more;
        } else {
            return NULL;
        }
    }
}

static const tv_err *expression(tv_arena *a, const tv_scope *scope, tv_str text, double *v)
{
    expr x = {.a = a, .scope = scope, .whole = text, .left = text};
    TV_TRY(sum(&x, v));
    if (peek(&x) || !isfinite(*v))
        return broken(&x);
    return NULL;
}

const tv_err *tv_layer_value(tv_arena *a, const tv_scope *scope, const tv_json *j,
                             size_t repetition, double fallback, double *v)
{
    if (j && j->type == TV_JSON_ARRAY && j->n)
        j = tv_json_at(j, repetition < j->n ? repetition : j->n - 1);
    *v = fallback;
    if (!j)
        return NULL;
    if (j->type == TV_JSON_STRING)
        return expression(a, scope, j->s, v);
    if (j->type == TV_JSON_TRUE)
        *v = 1;
    else if (j->type == TV_JSON_FALSE)
        *v = 0;
    else
        *v = tv_json_num(j, fallback);
    return NULL;
}
