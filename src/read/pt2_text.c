/* What torch.export writes as Python text inside its JSON: symbolic expressions, module paths, and
 * the numbers of element types. Nothing is evaluated here. */
#include "pt2.h"

/* ---- expressions ---- */

/* How tightly a printed expression binds. */
typedef enum binding { BIND_SUM, BIND_PRODUCT, BIND_POWER, BIND_ATOM } binding;

typedef struct printed {
    tv_str s;
    binding b;
} printed;

typedef struct form {
    tv_arena *a;
    tv_str left;
    unsigned depth;
    bool bad;
} form;

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

static bool accept(form *f, char c)
{
    while (f->left.n && f->left.p[0] == ' ')
        f->left = tv_str_drop(f->left, 1);
    if (!f->left.n || f->left.p[0] != c)
        return false;
    f->left = tv_str_drop(f->left, 1);
    return true;
}

static tv_str word(form *f)
{
    while (f->left.n && f->left.p[0] == ' ')
        f->left = tv_str_drop(f->left, 1);
    size_t n = f->left.n && f->left.p[0] == '-' ? 1 : 0;
    while (n < f->left.n && is_word(f->left.p[n]))
        n++;
    const tv_str w = tv_str_take(f->left, n);
    f->left = tv_str_drop(f->left, n);
    f->bad = f->bad || n == 0;
    return w;
}

static tv_str quoted(form *f)
{
    if (!accept(f, '\'')) {
        f->bad = true;
        return (tv_str){0};
    }
    const tv_cut c = tv_str_cut(f->left, '\'');
    f->bad = f->bad || !c.found;
    f->left = c.tail;
    return c.head;
}

/* Keyword arguments say what a symbol may be; the ranges say it too. */
static void skip_rest(form *f)
{
    const tv_cut c = tv_str_cut(f->left, ')');
    f->bad = f->bad || !c.found;
    f->left = c.tail;
}

static printed read_form(form *f);

static void put_bound(tv_buf *b, printed x, binding least)
{
    if (x.b >= least) {
        tv_put(b, x.s);
        return;
    }
    tv_putc(b, '(');
    tv_put(b, x.s);
    tv_putc(b, ')');
}

/* "Add(a, b, c)" with its operator between the arguments. */
static printed read_chain(form *f, const char *between, binding own, binding operand)
{
    tv_buf b = tv_buf_in(f->a);
    size_t n = 0;
    do {
        if (n++)
            tv_puts(&b, between);
        put_bound(&b, read_form(f), operand);
    } while (!f->bad && accept(f, ','));
    f->bad = f->bad || !accept(f, ')');
    return (printed){tv_buf_str(&b), n > 1 ? own : BIND_SUM};
}

static printed read_call(form *f, tv_str name)
{
    tv_buf b = tv_buf_in(f->a);
    tv_put(&b, name);
    tv_putc(&b, '(');
    tv_put(&b, read_chain(f, ", ", BIND_SUM, BIND_SUM).s);
    tv_putc(&b, ')');
    return (printed){tv_buf_str(&b), BIND_ATOM};
}

static printed read_named(form *f, tv_str name)
{
    if (tv_str_is(name, "Symbol")) {
        const tv_str s = quoted(f);
        skip_rest(f);
        return (printed){s, BIND_ATOM};
    }
    if (tv_str_is(name, "Integer")) {
        const tv_str s = word(f);
        f->bad = f->bad || !accept(f, ')');
        return (printed){s, s.n && s.p[0] == '-' ? BIND_SUM : BIND_ATOM};
    }
    if (tv_str_is(name, "Float")) {
        const tv_str s = quoted(f);
        skip_rest(f);
        return (printed){s, s.n && s.p[0] == '-' ? BIND_SUM : BIND_ATOM};
    }
    if (tv_str_is(name, "Mul"))
        return read_chain(f, "*", BIND_PRODUCT, BIND_PRODUCT);
    if (tv_str_is(name, "Add"))
        return read_chain(f, " + ", BIND_SUM, BIND_SUM);
    if (tv_str_is(name, "Rational"))
        return read_chain(f, "/", BIND_PRODUCT, BIND_ATOM);
    if (tv_str_is(name, "Pow"))
        return read_chain(f, "**", BIND_POWER, BIND_ATOM);
    return read_call(f, name);
}

static printed read_form(form *f)
{
    if (f->depth == TV_LIMIT_PROGRAM_DEPTH)
        f->bad = true;
    if (f->bad)
        return (printed){0};
    f->depth++;
    const tv_str name = word(f);
    printed x = {name, BIND_ATOM};
    if (accept(f, '('))
        x = read_named(f, name);
    f->depth--;
    return x;
}

tv_str tv_pt2_expression(tv_arena *a, tv_str text)
{
    if (!tv_str_has(text, TV_S("Symbol(")) && !tv_str_has(text, TV_S("Integer(")))
        return text;
    form f = {.a = a, .left = text};
    const printed x = read_form(&f);
    return f.bad || tv_str_trim(f.left).n ? text : x.s;
}

/* ---- module paths ---- */

/* Modules that are called twice are counted behind '@'. */
static tv_str without_count(tv_str path)
{
    return tv_str_cut(path, '@').head;
}

/* Until 2.4 paths are Python: "L['self'].layer1[0].conv", "getattr(L['self'].layer1, '0').conv".
 * Kept are names and numbers, with dots between. */
static tv_str plain_path(tv_arena *a, tv_str path)
{
    tv_buf b = tv_buf_in(a);
    bool skipped_root = false;
    for (size_t i = 0; i < path.n;) {
        size_t n = 0;
        while (i + n < path.n && is_word(path.p[i + n]) && path.p[i + n] != '.')
            n++;
        const tv_str w = tv_str_take(tv_str_drop(path, i), n);
        i += n ? n : 1;
        if (n == 0 || tv_str_is(w, "getattr") || tv_str_is(w, "L"))
            continue;
        if (!skipped_root) {
            skipped_root = true;
            continue;
        }
        if (b.n)
            tv_putc(&b, '.');
        tv_put(&b, w);
    }
    return tv_buf_str(&b);
}

tv_str tv_pt2_module(tv_arena *a, tv_str stack)
{
    tv_str last = stack;
    for (tv_cut c = tv_str_cut(stack, ';'); c.found; c = tv_str_cut(c.tail, ';'))
        last = c.tail;
    /* key,path,class; getattr(x, '0') has commas of its own */
    const tv_str behind_key = tv_str_cut(last, ',').tail;
    size_t n = behind_key.n;
    while (n && behind_key.p[n - 1] != ',')
        n--;
    if (n == 0)
        return (tv_str){0};
    const tv_str path = tv_str_trim(tv_str_take(behind_key, n - 1));
    if (tv_str_starts(path, TV_S("_empty_nn_module_stack")))
        return (tv_str){0};
    if (tv_str_cut(path, '[').found)
        return plain_path(a, path);
    return without_count(path);
}

/* ---- element types ---- */

tv_dtype tv_pt2_dtype(uint64_t number)
{
    /* ScalarType of torch/_export/serde/schema.py */
    static const tv_dtype types[] = {
        [1] = TV_U8,           [2] = TV_I8,       [3] = TV_I16,      [4] = TV_I32,
        [5] = TV_I64,          [6] = TV_F16,      [7] = TV_F32,      [8] = TV_F64,
        [10] = TV_C64,         [11] = TV_C128,    [12] = TV_BOOL,    [13] = TV_BF16,
        [28] = TV_U16,         [29] = TV_F8_E4M3, [30] = TV_F8_E5M2, [31] = TV_F8_E4M3FNUZ,
        [32] = TV_F8_E5M2FNUZ, [33] = TV_F8_E8M0, [34] = TV_U32,     [35] = TV_U64,
    };
    return number < sizeof types / sizeof *types ? types[number] : TV_DTYPE_UNKNOWN;
}
