/* Text as UTF-8: what a Windows shell writes to a file is UTF-16 with a mark in front. */
#ifndef TV_WIDE_TEXT_H
#define TV_WIDE_TEXT_H

#include "codec/stream.h"

typedef enum tv_wide { TV_NOT_WIDE, TV_WIDE_LITTLE, TV_WIDE_BIG } tv_wide;

typedef struct tv_wide_text {
    tv_wide wide;
    unsigned high; /* the first half of a pair whose second half comes next; 0: none */
    bool over;     /* the stream's end was reached */
} tv_wide_text;

/* Looks at the first bytes; a mark is taken. */
const tv_err *tv_wide_text_begin(tv_wide_text *w, tv_stream *stream) TV_CHECKED;
/* Up to n bytes of text; fewer than could be had only at the end, or where a character does not fit
 * any more. */
const tv_err *tv_wide_text_read(tv_wide_text *w, tv_stream *stream, char *to, size_t n,
                                size_t *got) TV_CHECKED;

#endif
