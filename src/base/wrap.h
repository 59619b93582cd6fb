/* Text as wide as a terminal shows it: Chinese takes two columns. Lines break where Unicode
 * allows it, so Chinese without spaces wraps too. */
#ifndef TV_WRAP_H
#define TV_WRAP_H

#include "buf.h"

/* Columns that UTF-8 text takes. */
size_t tv_columns(tv_str s);

/* s, then spaces up to `columns` (none where s is wider). */
void tv_put_padded(tv_buf *b, tv_str s, size_t columns);
/* Spaces, then s: for columns of numbers. */
void tv_put_padded_left(tv_buf *b, tv_str s, size_t columns);

/* s wrapped at `width`; the cursor stands at column `at`, and further lines begin at `indent`. */
void tv_put_wrapped(tv_buf *b, tv_str s, size_t at, size_t indent, size_t width);

#endif
