/* Optimizer state and temporaries per weight; for the ledger and the time of the step. */
#ifndef TV_STATE_H
#define TV_STATE_H

#include "desc/graph.h"
#include "desc/job.h"

double tv_state_of_weight(tv_optimizer optimizer, const tv_policy *p, const tv_weight *w);
/* Temporaries of a step: so many lists of the parameters' size, or copies of the largest one. */
typedef struct tv_step_temp {
    double lists, largest;
} tv_step_temp;

tv_step_temp tv_state_step_temp(tv_optimizer optimizer, tv_optimizer_form form);

#endif
