/* Just enough of Python's line structure. */
#include "script_lines.h"

#include <string.h>

typedef struct join_state {
    unsigned depth; /* of open brackets */
    char quote;     /* of an open triple quoted text; 0: none */
    bool bare;      /* that text stands alone: a doc string */
    bool escaped;   /* the line ends with a backslash */
} join_state;

static bool is_triple(tv_str s, size_t i, char quote)
{
    return i + 2 < s.n && s.p[i] == quote && s.p[i + 1] == quote && s.p[i + 2] == quote;
}

/* A quoted text that ends in its line, or the opening of one that does not. Yields where it ends.
 */
static size_t pass_text(tv_str s, size_t i, join_state *st)
{
    const char quote = s.p[i];
    if (is_triple(s, i, quote)) {
        st->quote = quote;
        return i + 3;
    }
    for (i++; i < s.n && s.p[i] != quote; i++)
        i += s.p[i] == '\\';
    return i < s.n ? i + 1 : s.n;
}

static size_t end_of_triple(tv_str s, size_t i, join_state *st)
{
    for (; i < s.n; i++)
        if (is_triple(s, i, st->quote)) {
            st->quote = 0;
            return i + 3;
        }
    return s.n;
}

/* Copies one physical line without its comment and without triple quoted text. */
static void add_line(tv_buf *b, tv_str s, join_state *st)
{
    st->escaped = false;
    for (size_t i = 0; i < s.n;) {
        if (st->quote) {
            i = end_of_triple(s, i, st);
            continue;
        }
        const char c = s.p[i];
        if (c == '#')
            break;
        if (c == '"' || c == '\'') {
            const size_t end = pass_text(s, i, st);
            if (!st->quote)
                tv_put(b, (tv_str){s.p + i, end - i});
            i = end;
            continue;
        }
        if (c == '(' || c == '[' || c == '{')
            st->depth++;
        if ((c == ')' || c == ']' || c == '}') && st->depth)
            st->depth--;
        if (c == '\\' && i + 1 >= s.n) {
            st->escaped = true;
            break;
        }
        tv_putc(b, c);
        i++;
    }
}

static size_t columns(tv_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n && (s.p[i] == ' ' || s.p[i] == '\t'); i++)
        n = s.p[i] == '\t' ? (n / 8 + 1) * 8 : n + 1;
    return n;
}

static bool opens_statement(tv_str s)
{
    static const char *const words[] = {"def ",  "class ",  "for ",  "while ", "if ",
                                        "with ", "import ", "from ", "@",      "return ",
                                        "try:",  "else:",   "elif ", "async "};
    const tv_str t = tv_str_trim(s);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_str_starts(t, tv_str_of(words[i])))
            return true;
    return false;
}

/* A bracket that never closes would swallow the rest: a statement at the left ends it, and so does
 * a length that no call has. */
enum { MOST_JOINED = 200 };

static bool joins_on(const join_state *st, tv_str next, size_t joined)
{
    if (st->quote)
        return true;
    if (joined >= MOST_JOINED)
        return false;
    return st->escaped || (st->depth && !(opens_statement(next) && !columns(next)));
}

/* Fences of a page and Python's own prompts. */
static tv_str plain(tv_str s)
{
    if (tv_str_starts(s, TV_S(">>> ")) || tv_str_starts(s, TV_S("... ")))
        return tv_str_drop(s, 4);
    return tv_str_starts(tv_str_trim(s), TV_S("```")) ? (tv_str){0} : s;
}

static void nest(tv_listing *code, size_t *open, size_t cap)
{
    size_t depth = 0;
    for (size_t i = 0; i < code->n; i++) {
        tv_listing_line *line = &code->v[i];
        line->end = i + 1;
        while (depth && code->v[open[depth - 1]].indent >= line->indent)
            code->v[open[--depth]].end = i;
        line->parent = depth ? open[depth - 1] : TV_NO_LINE;
        if (tv_str_ends(line->s, TV_S(":")) && depth < cap)
            open[depth++] = i;
    }
    while (depth)
        code->v[open[--depth]].end = code->n;
}

enum { MOST_NESTED = 100 };

tv_listing tv_listing_of(tv_arena *a, const tv_sheet *sheet, size_t from)
{
    tv_listing code = {tv_new(a, tv_listing_line, sheet->n - from + 1), 0};
    for (size_t i = from; i < sheet->n;) {
        join_state st = {0};
        tv_buf b = tv_buf_in(a);
        const size_t begin = i;
        const tv_str first = plain(sheet->v[i].s);
        do
            add_line(&b, plain(sheet->v[i++].s), &st);
        while (i < sheet->n && b.n < TV_LIMIT_LINE_BYTES &&
               joins_on(&st, sheet->v[i].s, i - begin));
        const tv_str s = tv_str_trim(tv_buf_str(&b));
        if (s.n)
            code.v[code.n++] = (tv_listing_line){.s = s, .line = begin, .indent = columns(first)};
    }
    size_t open[MOST_NESTED];
    nest(&code, open, MOST_NESTED);
    return code;
}

/* ---- looking ---- */

static bool is_identifier(char c)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

bool tv_listing_names(tv_str s, const char *name)
{
    const size_t n = strlen(name);
    tv_str rest = s;
    while (tv_past(rest, name, &rest)) {
        const char *at = rest.p - n;
        const bool begins = at == s.p || !is_identifier(at[-1]);
        const bool ends = !rest.n || !is_identifier(*rest.p) || !is_identifier(name[n - 1]);
        if (begins && ends)
            return true;
    }
    return false;
}

size_t tv_listing_find(const tv_listing *code, size_t from, size_t to, const char *text)
{
    for (size_t i = from; i < to && i < code->n; i++)
        if (tv_holds(code->v[i].s, text))
            return i;
    return TV_NO_LINE;
}

bool tv_listing_holds(const tv_listing *code, const char *text)
{
    return tv_listing_find(code, 0, code->n, text) != TV_NO_LINE;
}

size_t tv_listing_within(const tv_listing *code, size_t i, const char *word)
{
    const tv_str head = tv_str_of(word);
    for (i = code->v[i].parent; i != TV_NO_LINE; i = code->v[i].parent)
        if (tv_str_starts(code->v[i].s, head))
            return i;
    return TV_NO_LINE;
}

static size_t text_end(tv_str s, size_t i)
{
    const char quote = s.p[i];
    for (i++; i < s.n && s.p[i] != quote; i++)
        i += s.p[i] == '\\';
    return i;
}

/* A name within a text is no call, and a definition is none either. */
static bool is_text_at(tv_str s, const char *at)
{
    for (size_t i = 0; i < s.n && s.p + i < at; i++)
        if (s.p[i] == '"' || s.p[i] == '\'') {
            i = text_end(s, i);
            if (i >= s.n || s.p + i > at)
                return true;
        }
    return false;
}

static bool defines(tv_str s)
{
    return tv_str_starts(s, TV_S("def ")) || tv_str_starts(s, TV_S("class ")) ||
           tv_str_starts(s, TV_S("async def "));
}

/* A line that names one thing more often is no call of it. */
enum { MOST_NAMED = 16 };

tv_str tv_listing_call(tv_str s, const char *name)
{
    const size_t n = strlen(name);
    tv_str rest = s;
    for (unsigned turn = 0; turn < MOST_NAMED && !defines(s) && tv_past(rest, name, &rest);
         turn++) {
        const char *at = rest.p - n;
        if ((at != s.p && is_identifier(at[-1])) || !rest.n || *rest.p != '(')
            continue;
        if (is_text_at(s, at))
            continue;
        unsigned depth = 0;
        for (size_t i = 0; i < rest.n; i++) {
            const char c = rest.p[i];
            if (c == '"' || c == '\'')
                i = text_end(rest, i);
            else if (c == '(' || c == '[' || c == '{')
                depth++;
            else if ((c == ')' || c == ']' || c == '}') && !--depth)
                return i > 1 ? (tv_str){rest.p + 1, i - 1} : TV_S(" ");
        }
        return tv_str_drop(rest, 1);
    }
    return (tv_str){0};
}

tv_str tv_listing_keyword(tv_str arguments, const char *name)
{
    const size_t n = strlen(name);
    unsigned depth = 0;
    size_t begin = 0;
    for (size_t i = 0; i <= arguments.n; i++) {
        const char c = i < arguments.n ? arguments.p[i] : ',';
        if (i < arguments.n && (c == '"' || c == '\'')) {
            i = text_end(arguments, i);
            continue;
        }
        depth += c == '(' || c == '[' || c == '{';
        if ((c == ')' || c == ']' || c == '}') && depth)
            depth--;
        if (c != ',' || (depth && i < arguments.n))
            continue;
        const tv_str part = tv_str_trim((tv_str){arguments.p + begin, i - begin});
        const tv_cut cut = tv_str_cut(part, '=');
        if (cut.found && tv_str_trim(cut.head).n == n && tv_str_is(tv_str_trim(cut.head), name))
            return tv_str_trim(cut.tail);
        begin = i + 1;
    }
    return (tv_str){0};
}
