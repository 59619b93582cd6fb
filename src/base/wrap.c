/* Columns and line breaks through libunistring; the C library's wcwidth fails in the C locale. */
#include "wrap.h"

#include <unilbrk.h>
#include <uniwidth.h>

static const uint8_t *bytes_of(tv_str s)
{
    return (const uint8_t *)s.p;
}

size_t tv_columns(tv_str s)
{
    const int columns = s.n ? u8_width(bytes_of(s), s.n, "UTF-8") : 0;
    return columns > 0 ? (size_t)columns : 0;
}

void tv_put_padded(tv_buf *b, tv_str s, size_t columns)
{
    const size_t wide = tv_columns(s);
    tv_put(b, s);
    tv_put_repeat(b, TV_S(" "), wide < columns ? columns - wide : 0);
}

void tv_put_padded_left(tv_buf *b, tv_str s, size_t columns)
{
    const size_t wide = tv_columns(s);
    tv_put_repeat(b, TV_S(" "), wide < columns ? columns - wide : 0);
    tv_put(b, s);
}

static tv_str without_end_space(tv_str s)
{
    while (s.n && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

void tv_put_wrapped(tv_buf *b, tv_str s, size_t at, size_t indent, size_t width)
{
    /* A narrow terminal gets a ragged text, not one letter a line. */
    const size_t room = width > indent + 20 ? width - indent : 20;
    char *breaks = tv_new(b->a, char, s.n + 1);
    if (s.n)
        u8_width_linebreaks(bytes_of(s), s.n, (int)room, at > indent ? (int)(at - indent) : 0, 0,
                            NULL, "UTF-8", breaks);
    size_t from = 0;
    for (size_t i = 0; i < s.n; i++) {
        const bool newline = breaks[i] == UC_BREAK_MANDATORY; /* s[i] itself is the line feed */
        if (!newline && breaks[i] != UC_BREAK_POSSIBLE)
            continue;
        tv_put(b, without_end_space((tv_str){s.p + from, i - from}));
        tv_putc(b, '\n');
        tv_put_repeat(b, TV_S(" "), indent);
        from = newline ? i + 1 : i;
    }
    tv_put(b, without_end_space((tv_str){s.p + from, s.n - from}));
}
