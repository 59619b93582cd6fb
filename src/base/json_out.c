/* The JSON writer. */
#include "json.h"

#include <assert.h>
#include <math.h>

tv_json_out tv_json_write(tv_buf *b)
{
    return (tv_json_out){.b = b};
}

static void new_line(tv_json_out *w)
{
    tv_putc(w->b, '\n');
    tv_put_repeat(w->b, TV_S("  "), w->depth);
}

static void before_value(tv_json_out *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->depth == 0)
        return;
    if (w->some[w->depth - 1])
        tv_putc(w->b, ',');
    w->some[w->depth - 1] = true;
    new_line(w);
}

void tv_json_begin(tv_json_out *w, char bracket)
{
    before_value(w);
    assert(w->depth < TV_LIMIT_JSON_DEPTH);
    tv_putc(w->b, bracket);
    w->some[w->depth++] = false;
}

void tv_json_end(tv_json_out *w, char bracket)
{
    assert(w->depth > 0);
    const bool some = w->some[--w->depth];
    if (some)
        new_line(w);
    tv_putc(w->b, bracket);
    if (w->depth == 0)
        tv_putc(w->b, '\n');
}

static void put_escaped(tv_buf *b, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    tv_puts(b, "\\u00");
    tv_putc(b, hex[c >> 4]);
    tv_putc(b, hex[c & 15]);
}

/* Length of the well-formed UTF-8 sequence that s starts with, 0 when it is malformed. */
static size_t utf8_length(tv_str s)
{
    const unsigned char first = (unsigned char)s.p[0];
    size_t n = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (n > s.n || (first >= 0x80 && first < 0xC2) || first > 0xF4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)s.p[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

static void put_quoted(tv_buf *b, tv_str s)
{
    tv_putc(b, '"');
    while (s.n) {
        const unsigned char c = (unsigned char)s.p[0];
        const size_t n = utf8_length(s);
        if (c == '"' || c == '\\') {
            tv_putc(b, '\\');
            tv_putc(b, (char)c);
        } else if (c == '\n') {
            tv_puts(b, "\\n");
        } else if (c < 0x20) {
            put_escaped(b, c);
        } else if (n == 0) {
            tv_puts(b, "\xEF\xBF\xBD"); /* U+FFFD: the output is always UTF-8 */
        } else {
            tv_put(b, tv_str_take(s, n));
        }
        s = tv_str_drop(s, n ? n : 1);
    }
    tv_putc(b, '"');
}

void tv_json_key_str(tv_json_out *w, tv_str key)
{
    before_value(w);
    put_quoted(w->b, key);
    tv_puts(w->b, ": ");
    w->after_key = true;
}

void tv_json_key(tv_json_out *w, const char *key)
{
    tv_json_key_str(w, tv_str_of(key));
}

void tv_json_put_str(tv_json_out *w, tv_str s)
{
    before_value(w);
    put_quoted(w->b, s);
}

void tv_json_put_num(tv_json_out *w, double v)
{
    before_value(w);
    tv_put_double(w->b, v);
}

void tv_json_put_bool(tv_json_out *w, bool v)
{
    before_value(w);
    tv_puts(w->b, v ? "true" : "false");
}

void tv_json_put_null(tv_json_out *w)
{
    before_value(w);
    tv_puts(w->b, "null");
}

static void put_scalar(tv_json_out *w, const tv_json *j)
{
    if (j->type == TV_JSON_STRING)
        tv_json_put_str(w, j->s);
    else if (j->type == TV_JSON_NUMBER) {
        before_value(w);
        tv_put(w->b, j->s);
    } else if (j->type == TV_JSON_TRUE || j->type == TV_JSON_FALSE)
        tv_json_put_bool(w, j->type == TV_JSON_TRUE);
    else
        tv_json_put_null(w);
}

void tv_json_put_tree(tv_json_out *w, const tv_json *j)
{
    const bool object = j->type == TV_JSON_OBJECT;
    if (!object && j->type != TV_JSON_ARRAY) {
        put_scalar(w, j);
        return;
    }
    tv_json_begin(w, object ? '{' : '[');
    for (size_t i = 0; i < j->n; i++) {
        if (object)
            tv_json_key_str(w, j->items[i].key);
        tv_json_put_tree(w, &j->items[i]);
    }
    tv_json_end(w, object ? '}' : ']');
}

static void put_arg(tv_json_out *w, const tv_arg *arg)
{
    tv_json_key(w, arg->name);
    if (arg->kind == TV_ARG_STR || arg->kind == TV_ARG_WORD)
        tv_json_put_str(w, arg->s);
    else
        tv_json_put_num(w, arg->v);
}

void tv_json_put_text(tv_json_out *w, tv_lang lang, tv_text t)
{
    tv_json_begin(w, '{');
    tv_json_key(w, "id");
    tv_json_put_str(w, tv_str_of(t.id));
    tv_json_key(w, "args");
    tv_json_begin(w, '{');
    for (size_t i = 0; i < t.n_args; i++)
        put_arg(w, &t.args[i]);
    tv_json_end(w, '}');
    tv_json_key(w, "text");
    tv_json_put_str(w, tv_text_in(w->b->a, lang, t));
    tv_json_end(w, '}');
}
