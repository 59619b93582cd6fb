/* A growing text and locale-proof numbers. */
#include "buf.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

tv_buf tv_buf_in(tv_arena *a)
{
    return (tv_buf){.a = a};
}

tv_str tv_buf_str(const tv_buf *b)
{
    return (tv_str){b->p ? b->p : "", b->n};
}

void tv_put(tv_buf *b, tv_str s)
{
    if (s.n == 0)
        return;
    while (s.n > b->cap - b->n)
        b->p = tv_grow(b->a, b->p, b->n, &b->cap, 1);
    memcpy(b->p + b->n, s.p, s.n);
    b->n += s.n;
}

void tv_puts(tv_buf *b, const char *text)
{
    tv_put(b, tv_str_of(text));
}

void tv_putc(tv_buf *b, char c)
{
    tv_put(b, (tv_str){&c, 1});
}

void tv_put_repeat(tv_buf *b, tv_str s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tv_put(b, s);
}

void tv_put_u64(tv_buf *b, uint64_t v)
{
    char digits[20];
    size_t n = 0;
    do
        digits[sizeof digits - ++n] = (char)('0' + v % 10);
    while (v /= 10);
    tv_put(b, (tv_str){digits + sizeof digits - n, n});
}

/* snprintf writes the process's decimal point; what is kept is always a full stop. */
static void put_plain(tv_buf *b, char *text)
{
    const char point = *localeconv()->decimal_point;
    for (char *p = text; point != '.' && *p; p++)
        if (*p == point)
            *p = '.';
    tv_puts(b, text);
}

void tv_put_double(tv_buf *b, double v)
{
    char text[40];
    if (!isfinite(v)) {
        tv_puts(b, "null");
        return;
    }
    if (v == floor(v) && fabs(v) < 9007199254740992.0) {
        (void)snprintf(text, sizeof text, "%.0f", v + 0.0);
        tv_puts(b, text);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        const char point = *localeconv()->decimal_point;
        for (char *p = text; *p; p++)
            if (*p == point)
                *p = '.';
        if (tv_str_double(tv_str_of(text)).v == v)
            break;
    }
    tv_puts(b, text);
}

void tv_put_float(tv_buf *b, float v)
{
    char text[40];
    if (!isfinite(v)) {
        tv_puts(b, "null");
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, (double)v);
        const char point = *localeconv()->decimal_point;
        for (char *p = text; *p; p++)
            if (*p == point)
                *p = '.';
        if ((float)tv_str_double(tv_str_of(text)).v == v)
            break;
    }
    tv_puts(b, text);
}

void tv_put_fixed(tv_buf *b, double v, int decimals)
{
    char text[400];
    (void)snprintf(text, sizeof text, "%.*f", decimals, v);
    put_plain(b, text);
}

void tv_put_short(tv_buf *b, double v, int digits)
{
    const double size = fabs(v);
    if (size >= 1e15 || (size > 0 && size < 1e-6)) {
        char text[40];
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        put_plain(b, text);
        return;
    }
    int decimals = digits - 1 - (size > 0 ? (int)floor(log10(size)) : 0);
    tv_put_fixed(b, v, decimals > 0 ? decimals : 0);
}
