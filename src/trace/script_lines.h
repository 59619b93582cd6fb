/* A Python script as logical lines with their nesting: brackets and backslashes join lines,
 * comments and doc strings are gone. Nothing is parsed further, nothing is run. */
#ifndef TV_SCRIPT_LINES_H
#define TV_SCRIPT_LINES_H

#include "env_words.h"

typedef struct tv_listing_line {
    tv_str s;      /* without indentation and comment */
    size_t line;   /* where it begins in the sheet */
    size_t indent; /* columns */
    size_t parent; /* the line that opens the block it stands in; TV_NO_LINE: none */
    size_t end;    /* the first line behind the block that it opens; its own index + 1: none */
} tv_listing_line;

#define TV_NO_LINE ((size_t)-1)

typedef struct tv_listing {
    tv_listing_line *v;
    size_t n;
} tv_listing;

/* The logical lines from physical line `from` on. */
tv_listing tv_listing_of(tv_arena *a, const tv_sheet *sheet, size_t from);

/* True where the text occurs as a whole name: not within a longer identifier. */
bool tv_listing_names(tv_str s, const char *name);
/* The first line in [from, to) that holds the text; TV_NO_LINE: none. */
size_t tv_listing_find(const tv_listing *code, size_t from, size_t to, const char *text);
bool tv_listing_holds(const tv_listing *code, const char *text);
/* The nearest line above in the nesting that begins with one of the words ("for", "with");
 * TV_NO_LINE: none. */
size_t tv_listing_within(const tv_listing *code, size_t i, const char *word);
/* The arguments of the call NAME( ... ): what stands between its brackets; empty: no such call. */
tv_str tv_listing_call(tv_str s, const char *name);
/* A keyword argument's value within arguments; empty: not given. */
tv_str tv_listing_keyword(tv_str arguments, const char *name);

#endif
