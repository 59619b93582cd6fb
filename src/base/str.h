/* Views of text. NUL only at the edge to the system. Parsing returns values or moves a cursor
 * only on success. Knows no encoding but ASCII digits and space. */
#ifndef TV_STR_H
#define TV_STR_H

#include "arena.h"

typedef struct tv_str {
    const char *p;
    size_t n;
} tv_str;

typedef struct tv_cut {
    tv_str head;
    tv_str tail;
    bool found;
} tv_cut;

typedef struct tv_u64_read {
    uint64_t v;
    bool ok;
} tv_u64_read;

typedef struct tv_double_read {
    double v;
    bool ok;
} tv_double_read;

#define TV_S(literal) ((tv_str){"" literal, sizeof(literal) - 1})

/* What to hand to "%.*s". */
#define TV_FMT(s) (int)(s).n, (s).p

/* A view of a NUL-terminated text; NULL gives the empty view. */
tv_str tv_str_of(const char *text);
tv_str tv_str_span(const char *p, const char *end);

/* A NUL-terminated copy in the arena, for system calls. */
const char *tv_cstr(tv_arena *a, tv_str s);
tv_str tv_str_copy(tv_arena *a, tv_str s);
tv_str tv_str_join(tv_arena *a, tv_str x, tv_str y);
tv_str tv_str_lower(tv_arena *a, tv_str s);

bool tv_str_eq(tv_str x, tv_str y);
bool tv_str_is(tv_str x, const char *literal);
/* ASCII letters compare without case. */
bool tv_str_eq_nocase(tv_str x, tv_str y);
int tv_str_cmp(tv_str x, tv_str y);
bool tv_str_starts(tv_str s, tv_str prefix);
bool tv_str_ends(tv_str s, tv_str suffix);
bool tv_str_has(tv_str s, tv_str part);

tv_str tv_str_trim(tv_str s);
tv_str tv_str_drop(tv_str s, size_t n);
tv_str tv_str_take(tv_str s, size_t n);
/* Splits at the first separator; not found: head is the whole, tail empty. */
tv_cut tv_str_cut(tv_str s, char separator);

/* Whole-text numbers: no sign and no space for the first; C decimal notation for the second. */
tv_u64_read tv_str_u64(tv_str s);
tv_double_read tv_str_double(tv_str s);

/* Glob: '*' any run, '?' any one. Used for module patterns. */
bool tv_str_glob(tv_str s, tv_str pattern);

/* Number of single-character edits between two texts, capped at limit + 1. */
size_t tv_str_distance(tv_arena *a, tv_str x, tv_str y, size_t limit);

uint64_t tv_str_hash(tv_str s);

#endif
