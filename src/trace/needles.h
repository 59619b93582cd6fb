/* Which formats a text may hold: one pass over the bytes for the needles of all formats at once. */
#ifndef TV_NEEDLES_H
#define TV_NEEDLES_H

#include "trace.h"

typedef struct tv_needles tv_needles;

/* An automaton (Aho and Corasick 1975) over the needles of every format. */
const tv_needles *tv_needles_of(tv_arena *a, const tv_log_format *const *formats);
/* Sets hit[i] for every format of which a needle occurs in the text or ends the name. */
void tv_needles_in(const tv_needles *needles, tv_str name, tv_str text, bool *hit);
size_t tv_needles_formats(const tv_needles *needles);

#endif
