/* The cards for a whole life: trained, exported, built into an engine, served. The plan holds the
 * most demanding phase; or each phase gets a card of its own. */
#ifndef TV_PHASES_H
#define TV_PHASES_H

#include "predict/deploy.h"
#include "search.h"

typedef struct tv_life_query {
    const tv_search *first; /* the job as asked */
    const tv_plan *ranked;  /* its ranking */
    const tv_search *serve; /* the served job on the cards for it */
    const tv_deploy *deploy;
    double stated_bytes[TV_LIFE_COUNT]; /* the user's own figures; 0: predicted */
} tv_life_query;

void tv_search_life(tv_arena *a, tv_arena *scratch, const tv_life_query *q, tv_life_plan *out);

/* The phases of one configuration on its own card: no search. c: the job as resolved; its memory
 * is known. */
void tv_search_life_of(tv_arena *a, tv_arena *scratch, const tv_case *c, const tv_memory *memory,
                       const tv_deploy *d, tv_life_plan *out);

#endif
