/* Terms of the ledger that the user states instead of the prediction. */
#ifndef TV_RESTATE_H
#define TV_RESTATE_H

#include "predict.h"

typedef struct tv_stated_term {
    tv_term term;
    double bytes;
} tv_stated_term;

/* Replaces terms. The result is a sum, not a walk: what is not stated stands at its full size
 * (gradients whole), what only the walk knows (temporaries, fragmentation) is left out once
 * activations are stated. */
void tv_memory_restate(const tv_case *c, const tv_stated_term *terms, size_t n, tv_memory *m);

/* The ledger's name of a term ("activations"), and back; TV_TERM_COUNT when unknown. */
const char *tv_term_name(tv_term term);
tv_term tv_term_named(tv_str name);

#endif
