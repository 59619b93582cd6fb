/* The arithmetic of symbolic dimensions: a recursive-descent reader with bounded depth. A symbol
 * that the table holds as a whole text ("a + b" used as a name) is taken as it is. */
#include "program_symbol.h"

#include <math.h>

#include "base/arena.h"

#define SYMBOL_DEPTH 32

typedef struct reader {
    const tv_symbols *t;
    tv_str left;
    tv_str missing;
    unsigned depth;
    bool bad;
} reader;

void tv_symbols_set(tv_arena *a, tv_symbols *t, tv_str name, double v)
{
    for (size_t i = 0; i < t->n; i++)
        if (tv_str_eq(t->v[i].name, name)) {
            t->v[i].v = v;
            return;
        }
    *tv_push(a, t) = (tv_symbol_value){name, v};
}

bool tv_symbols_get(const tv_symbols *t, tv_str name, double *v)
{
    for (size_t i = 0; i < t->n; i++)
        if (tv_str_eq(t->v[i].name, name)) {
            *v = t->v[i].v;
            return true;
        }
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_inner(char c)
{
    return is_letter(c) || is_digit(c) || c == '.' || c == ':';
}

bool tv_symbol_is_name(tv_str s)
{
    if (!s.n || !is_letter(s.p[0]))
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (!is_inner(s.p[i]))
            return false;
    return true;
}

static char peek(reader *x)
{
    while (x->left.n && x->left.p[0] == ' ')
        x->left = tv_str_drop(x->left, 1);
    return x->left.n ? x->left.p[0] : 0;
}

static bool accept(reader *x, char c)
{
    if (peek(x) != c)
        return false;
    x->left = tv_str_drop(x->left, 1);
    return true;
}

static double fail(reader *x)
{
    x->bad = true;
    return 0;
}

static double sum(reader *x);

static double closed(reader *x, double v)
{
    return accept(x, ')') ? v : fail(x);
}

/* The functions that sympy prints and exporters write. */
static double call(reader *x, tv_str f)
{
    double a = sum(x);
    bool two = accept(x, ',');
    double b = two ? sum(x) : 1;
    while (accept(x, ',')) {
        double c = sum(x);
        b = tv_str_eq_nocase(f, TV_S("min")) ? fmin(b, c) : fmax(b, c);
    }
    if (tv_str_eq_nocase(f, TV_S("floor")))
        return closed(x, floor(a));
    if (tv_str_eq_nocase(f, TV_S("ceiling")) || tv_str_eq_nocase(f, TV_S("ceil")))
        return closed(x, ceil(a));
    if (two && tv_str_eq_nocase(f, TV_S("max")))
        return closed(x, fmax(a, b));
    if (two && tv_str_eq_nocase(f, TV_S("min")))
        return closed(x, fmin(a, b));
    if (two && b != 0 && (tv_str_is(f, "FloorDiv") || tv_str_is(f, "CleanDiv")))
        return closed(x, floor(a / b));
    if (two && b != 0 && tv_str_is(f, "CeilDiv"))
        return closed(x, ceil(a / b));
    if (two && b != 0 && tv_str_is(f, "IntTrueDiv"))
        return closed(x, a / b);
    if (two && b != 0 && (tv_str_is(f, "Mod") || tv_str_is(f, "PythonMod")))
        return closed(x, a - b * floor(a / b));
    if (tv_str_is(f, "TruncToInt") || tv_str_is(f, "ToFloat") || tv_str_is(f, "Identity"))
        return closed(x, a);
    return fail(x);
}

static double name_or_call(reader *x)
{
    size_t n = 0;
    while (n < x->left.n && is_inner(x->left.p[n]))
        n++;
    tv_str w = tv_str_take(x->left, n);
    x->left = tv_str_drop(x->left, n);
    if (accept(x, '('))
        return call(x, w);
    double v = 0;
    if (tv_symbols_get(x->t, w, &v))
        return v;
    x->missing = w;
    return fail(x);
}

static double atom(reader *x)
{
    char c = peek(x);
    if (x->depth >= SYMBOL_DEPTH)
        return fail(x);
    x->depth++;
    double v = 0;
    if (accept(x, '(')) {
        v = sum(x);
        v = closed(x, v);
    } else if (accept(x, '-')) {
        v = -atom(x);
    } else if (is_letter(c)) {
        v = name_or_call(x);
    } else {
        size_t n = 0;
        while (n < x->left.n && (is_digit(x->left.p[n]) || x->left.p[n] == '.'))
            n++;
        tv_double_read d = tv_str_double(tv_str_take(x->left, n));
        x->left = tv_str_drop(x->left, n);
        v = n && d.ok ? d.v : fail(x);
    }
    x->depth--;
    return v;
}

static double power(reader *x)
{
    double v = atom(x);
    peek(x);
    if (tv_str_starts(x->left, TV_S("**"))) {
        x->left = tv_str_drop(x->left, 2);
        return pow(v, atom(x));
    }
    return v;
}

static double product(reader *x)
{
    double v = power(x);
    while (!x->bad) {
        char c = peek(x);
        if (c != '*' && c != '/' && c != '%')
            return v;
        x->left = tv_str_drop(x->left, 1);
        bool whole = c == '/' && accept(x, '/');
        double w = power(x);
        if (c == '*')
            v *= w;
        else if (w == 0)
            return fail(x);
        else if (c == '%')
            v -= w * floor(v / w);
        else
            v = whole ? floor(v / w) : v / w;
    }
    return v;
}

static double sum(reader *x)
{
    if (x->depth >= SYMBOL_DEPTH)
        return fail(x);
    x->depth++;
    double v = product(x);
    while (!x->bad) {
        char c = peek(x);
        if (c != '+' && c != '-')
            break;
        x->left = tv_str_drop(x->left, 1);
        double w = product(x);
        v = c == '+' ? v + w : v - w;
    }
    x->depth--;
    return v;
}

bool tv_symbols_eval(const tv_symbols *t, tv_str expression, double *v, tv_str *missing)
{
    if (tv_symbols_get(t, expression, v))
        return true;
    reader x = {.t = t, .left = expression};
    double w = sum(&x);
    bool ok = !x.bad && peek(&x) == 0 && isfinite(w);
    if (missing)
        *missing = x.missing;
    if (ok)
        *v = floor(w + 1e-9);
    return ok;
}
