/* Two bytes a unit, pairs of units for what lies beyond 16 bits; what is no pair becomes U+FFFD. */
#include "wide_text.h"

const tv_err *tv_wide_text_begin(tv_wide_text *w, tv_stream *stream)
{
    tv_bytes_view head;
    TV_TRY(tv_stream_peek(stream, 2, &head));
    if (head.n == 2 && head.p[0] == 0xff && head.p[1] == 0xfe)
        w->wide = TV_WIDE_LITTLE;
    else if (head.n == 2 && head.p[0] == 0xfe && head.p[1] == 0xff)
        w->wide = TV_WIDE_BIG;
    return w->wide ? tv_stream_skip(stream, 2) : NULL;
}

static size_t put_char(char *to, unsigned v)
{
    if (v < 0x80) {
        to[0] = (char)v;
        return 1;
    }
    if (v < 0x800) {
        to[0] = (char)(0xc0 | v >> 6);
        to[1] = (char)(0x80 | (v & 63));
        return 2;
    }
    if (v < 0x10000) {
        to[0] = (char)(0xe0 | v >> 12);
        to[1] = (char)(0x80 | (v >> 6 & 63));
        to[2] = (char)(0x80 | (v & 63));
        return 3;
    }
    to[0] = (char)(0xf0 | v >> 18);
    to[1] = (char)(0x80 | (v >> 12 & 63));
    to[2] = (char)(0x80 | (v >> 6 & 63));
    to[3] = (char)(0x80 | (v & 63));
    return 4;
}

/* At most six bytes: a lone half and what follows it. */
static size_t put_unit(tv_wide_text *w, char *to, unsigned unit)
{
    size_t n = 0;
    const bool second = unit >= 0xdc00 && unit < 0xe000;
    if (w->high && second) {
        n = put_char(to, 0x10000 + ((w->high - 0xd800) << 10) + (unit - 0xdc00));
        w->high = 0;
        return n;
    }
    if (w->high)
        n = put_char(to, 0xfffd);
    w->high = unit >= 0xd800 && unit < 0xdc00 ? unit : 0;
    return w->high ? n : n + put_char(to + n, second ? 0xfffd : unit);
}

enum { most_of_unit = 6 };

const tv_err *tv_wide_text_read(tv_wide_text *w, tv_stream *stream, char *to, size_t n, size_t *got)
{
    *got = 0;
    if (!w->wide) {
        TV_TRY(tv_stream_read(stream, to, n, got));
        w->over = *got < n;
        return NULL;
    }
    while (!w->over && n - *got >= most_of_unit) {
        unsigned char raw[4096];
        const size_t room = (n - *got) / most_of_unit * 2;
        size_t k;
        TV_TRY(tv_stream_read(stream, raw, room < sizeof raw ? room : sizeof raw, &k));
        w->over = k < (room < sizeof raw ? room : sizeof raw);
        for (size_t i = 0; i + 1 < k; i += 2) {
            const unsigned a = raw[i], b = raw[i + 1];
            *got += put_unit(w, to + *got, w->wide == TV_WIDE_LITTLE ? b << 8 | a : a << 8 | b);
        }
    }
    return NULL;
}
