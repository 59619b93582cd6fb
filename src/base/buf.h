/* A text that grows in the arena. Numbers are written the same way under every locale. */
#ifndef TV_BUF_H
#define TV_BUF_H

#include "str.h"

typedef struct tv_buf {
    tv_arena *a;
    char *p;
    size_t n;
    size_t cap;
} tv_buf;

tv_buf tv_buf_in(tv_arena *a);
/* What was written so far; stays valid until the next put. */
tv_str tv_buf_str(const tv_buf *b);

void tv_put(tv_buf *b, tv_str s);
void tv_puts(tv_buf *b, const char *text);
void tv_putc(tv_buf *b, char c);
void tv_put_repeat(tv_buf *b, tv_str s, size_t n);
void tv_put_u64(tv_buf *b, uint64_t v);
/* Shortest decimal text that reads back as v; whole numbers below 2^53 without exponent. */
void tv_put_double(tv_buf *b, double v);
/* The same for a 32-bit number: 1e-06, not 9.99999997e-07. */
void tv_put_float(tv_buf *b, float v);
/* v with a fixed number of decimals. */
void tv_put_fixed(tv_buf *b, double v, int decimals);
/* v with about `digits` significant digits and no exponent for ordinary sizes. */
void tv_put_short(tv_buf *b, double v, int digits);

#endif
