/* Escapes of the texts of protocol 0, as Python's own unpickler reads them. */
#include "pickle_text.h"

#include "base/buf.h"

#include <string.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    const char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static void put_utf8(tv_buf *b, uint32_t c)
{
    if (c < 0x80) {
        tv_putc(b, (char)c);
    } else if (c < 0x800) {
        tv_putc(b, (char)(0xc0 | c >> 6));
        tv_putc(b, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        tv_putc(b, (char)(0xe0 | c >> 12));
        tv_putc(b, (char)(0x80 | (c >> 6 & 0x3f)));
        tv_putc(b, (char)(0x80 | (c & 0x3f)));
    } else {
        tv_putc(b, (char)(0xf0 | (c >> 18 & 7)));
        tv_putc(b, (char)(0x80 | (c >> 12 & 0x3f)));
        tv_putc(b, (char)(0x80 | (c >> 6 & 0x3f)));
        tv_putc(b, (char)(0x80 | (c & 0x3f)));
    }
}

/* A hexadecimal number of exactly n digits; false: there is none. */
static bool hex_number(tv_str s, size_t n, uint32_t *v)
{
    *v = 0;
    if (s.n < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const int digit = hex_digit(s.p[i]);
        if (digit < 0)
            return false;
        *v = *v << 4 | (uint32_t)digit;
    }
    return true;
}

/* Bytes are as Python's repr writes them; a byte above 0x7f stays a byte. */
static size_t put_escape(tv_buf *b, tv_str s)
{
    static const char from[] = "nrtabfv", to[] = "\n\r\t\a\b\f\v";
    uint32_t v = 0;
    if (s.n && s.p[0] == 'x' && hex_number(tv_str_drop(s, 1), 2, &v)) {
        tv_putc(b, (char)v);
        return 3;
    }
    const char *at = s.n ? strchr(from, s.p[0]) : NULL;
    if (at && *at)
        tv_putc(b, to[at - from]);
    else if (s.n)
        tv_putc(b, s.p[0]); /* quotes and the backslash itself */
    return s.n ? 1 : 0;
}

tv_str tv_pickle_unescape_bytes(tv_arena *a, tv_str s)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < s.n;) {
        if (s.p[i] != '\\')
            tv_putc(&b, s.p[i++]);
        else
            i += 1 + put_escape(&b, tv_str_drop(s, i + 1));
    }
    return tv_buf_str(&b);
}

tv_str tv_pickle_unescape_unicode(tv_arena *a, tv_str s)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < s.n;) {
        const tv_str rest = tv_str_drop(s, i);
        uint32_t v = 0;
        if (tv_str_starts(rest, TV_S("\\u")) && hex_number(tv_str_drop(rest, 2), 4, &v)) {
            put_utf8(&b, v);
            i += 6;
        } else if (tv_str_starts(rest, TV_S("\\U")) && hex_number(tv_str_drop(rest, 2), 8, &v)) {
            put_utf8(&b, v);
            i += 10;
        } else {
            put_utf8(&b, (unsigned char)s.p[i++]);
        }
    }
    return tv_buf_str(&b);
}
