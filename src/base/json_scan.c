/* The pull scanner: bytes to events, with the offset of whatever is wrong. */
#include "json.h"

#include <string.h>

static tv_err *bad(tv_json_scan *s, const char *id, const char *msgid, size_t at)
{
    return tv_fail_at(s->a, TV_INPUT, TV_TEXT0(id, msgid), s->file, at);
}

tv_json_scan tv_json_open(tv_arena *a, tv_str file, tv_str text)
{
    tv_json_scan s = {.a = a, .file = file, .text = text, .expects_value = true};
    if (tv_str_starts(text, TV_S("\xEF\xBB\xBF")))
        s.at = 3;
    return s;
}

static bool more(const tv_json_scan *s)
{
    return s->at < s->text.n;
}

static char here(const tv_json_scan *s)
{
    return s->text.p[s->at];
}

static void skip_space(tv_json_scan *s)
{
    while (more(s)) {
        const char c = here(s);
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
            return;
        s->at++;
    }
}

static int hex4(tv_str s)
{
    int v = 0;
    if (s.n < 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        const char c = s.p[i];
        int digit = -1;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if (c >= 'a' && c <= 'f')
            digit = c - 'a' + 10;
        else if (c >= 'A' && c <= 'F')
            digit = c - 'A' + 10;
        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

static void put_utf8(tv_buf *b, unsigned v)
{
    if (v < 0x80) {
        tv_putc(b, (char)v);
        return;
    }
    if (v < 0x800) {
        tv_putc(b, (char)(0xC0 | v >> 6));
    } else if (v < 0x10000) {
        tv_putc(b, (char)(0xE0 | v >> 12));
        tv_putc(b, (char)(0x80 | (v >> 6 & 0x3F)));
    } else {
        tv_putc(b, (char)(0xF0 | v >> 18));
        tv_putc(b, (char)(0x80 | (v >> 12 & 0x3F)));
        tv_putc(b, (char)(0x80 | (v >> 6 & 0x3F)));
    }
    tv_putc(b, (char)(0x80 | (v & 0x3F)));
}

/* One \uXXXX (or a pair); returns the bytes used after "\u", 0 when malformed. */
static size_t put_unicode(tv_buf *b, tv_str rest)
{
    const int first = hex4(rest);
    if (first < 0)
        return 0;
    const bool high = first >= 0xD800 && first <= 0xDBFF;
    const bool low = first >= 0xDC00 && first <= 0xDFFF;
    if (high && rest.n >= 10 && rest.p[4] == '\\' && rest.p[5] == 'u') {
        const int second = hex4(tv_str_drop(rest, 6));
        if (second >= 0xDC00 && second <= 0xDFFF) {
            const unsigned both = 0x10000u + ((unsigned)(first - 0xD800) << 10);
            put_utf8(b, both + (unsigned)(second - 0xDC00));
            return 10;
        }
    }
    put_utf8(b, high || low ? 0xFFFD : (unsigned)first);
    return 4;
}

static const tv_err *unescape(tv_json_scan *s, tv_str raw, size_t start, tv_str *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    tv_buf b = tv_buf_in(s->a);
    for (size_t i = 0; i < raw.n;) {
        if (raw.p[i] != '\\') {
            tv_putc(&b, raw.p[i++]);
            continue;
        }
        const char c = raw.p[i + 1]; /* the closing quote was found, so there is one */
        const char *known = memchr(from, c, sizeof from - 1);
        if (known) {
            tv_putc(&b, to[known - from]);
            i += 2;
            continue;
        }
        const size_t used = c == 'u' ? put_unicode(&b, tv_str_drop(raw, i + 2)) : 0;
        if (!used)
            return bad(s, "json.bad-escape", N_("invalid escape in a string"), start + i);
        i += 2 + used;
    }
    *out = tv_buf_str(&b);
    return NULL;
}

static const tv_err *scan_string(tv_json_scan *s, tv_str *out)
{
    const size_t start = s->at + 1;
    bool escaped = false;
    for (size_t i = start; i < s->text.n; i++) {
        const unsigned char c = (unsigned char)s->text.p[i];
        if (c == '"') {
            const tv_str raw = {s->text.p + start, i - start};
            s->at = i + 1;
            if (escaped && !s->raw)
                return unescape(s, raw, start, out);
            *out = raw;
            return NULL;
        }
        if (c < 0x20)
            return bad(s, "json.control", N_("control character in a string"), i);
        if (c == '\\') {
            escaped = true;
            i++;
        }
    }
    return bad(s, "json.open-string", N_("the text ends inside a string"), s->text.n);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits(tv_json_scan *s)
{
    size_t n = 0;
    for (; more(s) && is_digit(here(s)); s->at++)
        n++;
    return n;
}

static const tv_err *scan_number(tv_json_scan *s, tv_str *out)
{
    const size_t start = s->at;
    if (here(s) == '-')
        s->at++;
    const bool zero = more(s) && here(s) == '0';
    const size_t whole = digits(s);
    bool ok = whole > 0 && !(zero && whole > 1);
    if (ok && more(s) && here(s) == '.') {
        s->at++;
        ok = digits(s) > 0;
    }
    if (ok && more(s) && (here(s) == 'e' || here(s) == 'E')) {
        s->at++;
        if (more(s) && (here(s) == '+' || here(s) == '-'))
            s->at++;
        ok = digits(s) > 0;
    }
    if (!ok)
        return bad(s, "json.bad-number", N_("malformed number"), start);
    *out = (tv_str){s->text.p + start, s->at - start};
    return NULL;
}

static bool accept_word(tv_json_scan *s, const char *word)
{
    const tv_str w = tv_str_of(word);
    if (!tv_str_starts(tv_str_drop(s->text, s->at), w))
        return false;
    s->at += w.n;
    return true;
}

static const tv_err *scan_word(tv_json_scan *s, tv_json_type *type)
{
    if (accept_word(s, "true"))
        *type = TV_JSON_TRUE;
    else if (accept_word(s, "false"))
        *type = TV_JSON_FALSE;
    else if (accept_word(s, "null"))
        *type = TV_JSON_NULL;
    else if (s->lenient &&
             (accept_word(s, "NaN") || accept_word(s, "Infinity") || accept_word(s, "-Infinity")))
        *type = TV_JSON_NULL;
    else
        return bad(s, "json.unexpected", N_("unexpected character"), s->at);
    return NULL;
}

static const tv_err *open_bracket(tv_json_scan *s, tv_json_event *event)
{
    const bool object = here(s) == '{';
    if (s->depth == TV_LIMIT_JSON_DEPTH)
        return bad(s, "json.too-deep", N_("nested too deeply"), s->at);
    s->in_object[s->depth++] = object;
    s->at++;
    s->expects_value = false;
    s->after_value = false;
    event->type = object ? TV_JSON_OBJECT : TV_JSON_ARRAY;
    return NULL;
}

static const tv_err *scan_value(tv_json_scan *s, tv_json_event *event)
{
    const char c = here(s);
    if (c == '{' || c == '[')
        return open_bracket(s, event);
    s->expects_value = false;
    s->after_value = true;
    if (c == '"') {
        event->type = TV_JSON_STRING;
        return scan_string(s, &event->s);
    }
    const bool infinite = c == '-' && s->at + 1 < s->text.n && s->text.p[s->at + 1] == 'I';
    if ((c == '-' && !infinite) || is_digit(c)) {
        event->type = TV_JSON_NUMBER;
        return scan_number(s, &event->s);
    }
    return scan_word(s, &event->type);
}

static const tv_err *scan_key(tv_json_scan *s, tv_json_event *event)
{
    if (here(s) != '"')
        return bad(s, "json.no-key", N_("expected a quoted key"), s->at);
    event->type = TV_JSON_KEY;
    TV_TRY(scan_string(s, &event->s));
    skip_space(s);
    if (!more(s) || here(s) != ':')
        return bad(s, "json.no-colon", N_("expected ':' after a key"), s->at);
    s->at++;
    s->expects_value = true;
    s->after_value = false;
    return NULL;
}

static const tv_err *after_value(tv_json_scan *s, tv_json_event *event, bool *found)
{
    const bool object = s->in_object[s->depth - 1];
    *found = true;
    if (here(s) == (object ? '}' : ']')) {
        s->at++;
        s->depth--;
        s->after_value = true;
        event->type = TV_JSON_CLOSE;
        return NULL;
    }
    *found = false;
    if (!s->after_value)
        return NULL; /* just opened */
    if (here(s) != ',')
        return bad(s, "json.no-comma", N_("expected ',' or the end of the list"), s->at);
    s->at++;
    skip_space(s);
    s->after_value = false;
    if (!more(s) || here(s) == '}' || here(s) == ']')
        return bad(s, "json.trailing-comma", N_("nothing follows a comma"), s->at);
    return NULL;
}

static const tv_err *at_end(tv_json_scan *s, tv_json_event *event)
{
    if (s->depth || !s->done)
        return bad(s, "json.short", N_("the text ends before the document does"), s->at);
    event->type = TV_JSON_END;
    return NULL;
}

const tv_err *tv_json_next(tv_json_scan *s, tv_json_event *event)
{
    *event = (tv_json_event){0};
    skip_space(s);
    event->offset = s->at;
    if (!more(s))
        return at_end(s, event);
    if (s->depth == 0) {
        if (s->done)
            return bad(s, "json.more", N_("something follows the document"), s->at);
        s->done = true;
        return scan_value(s, event);
    }
    if (!s->expects_value) {
        bool found = false;
        TV_TRY(after_value(s, event, &found));
        if (found)
            return NULL;
        event->offset = s->at;
        if (s->in_object[s->depth - 1])
            return scan_key(s, event);
    }
    return scan_value(s, event);
}

const tv_err *tv_json_skip(tv_json_scan *s, tv_json_event event)
{
    if (event.type != TV_JSON_OBJECT && event.type != TV_JSON_ARRAY)
        return NULL;
    const unsigned outside = s->depth - 1;
    const bool raw = s->raw;
    const tv_err *e = NULL;
    s->raw = true;
    while (!e && s->depth > outside)
        e = tv_json_next(s, &event);
    s->raw = raw;
    return e;
}
