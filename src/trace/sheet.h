/* Text -> lines, cleaned of what terminals, web pages and other systems put into them. */
#ifndef TV_SHEET_H
#define TV_SHEET_H

#include "trace.h"

/* Splits text into lines; a line that needs no cleaning is a view. What is longer than
 * TV_LIMIT_LINE_BYTES is cut. */
void tv_sheet_fill(tv_arena *a, tv_sheet *sheet, tv_str file, uint64_t first_line, tv_str text);

/* Line ends in a text. */
size_t tv_count_lines(tv_str text);

/* True where a twentieth of the bytes or more are such as no text has: weights, archives, dumps of
 * memory. Zeros do not count: they fill the holes of logs whose host lost its power. */
bool tv_is_binary(tv_str text);

typedef struct tv_lines_cut {
    tv_str head;
    tv_str tail;
    size_t n; /* line ends in head */
} tv_lines_cut;

/* head: the first lines, at most so many. */
tv_lines_cut tv_cut_lines(tv_str text, size_t most);

#endif
