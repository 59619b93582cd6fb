/* Optimizer state and temporaries per weight; for the ledger and the time of the step. */
#ifndef TV_STATE_H
#define TV_STATE_H

#include "desc/graph.h"
#include "desc/job.h"

double tv_state_of_weight(tv_optimizer optimizer, const tv_policy *p, const tv_weight *w);
double tv_state_step_temp(tv_optimizer optimizer, tv_optimizer_form form, double list_bytes,
                          double largest_bytes);

#endif
