/* All parts of one configuration. */
#include "predict.h"

void tv_predict_estimate(tv_arena *a, tv_arena *scratch, const tv_case *c, tv_estimate *out)
{
    *out = (tv_estimate){
        .model = c->model,
        .job = &c->job,
        .machine = c->machine,
        .graph = c->graph,
        .policy = c->policy,
    };
    tv_predict_memory(a, scratch, c, &out->memory);
    tv_predict_time(a, c, &out->memory, &out->time);
    tv_predict_balance(a, c, &out->memory, &out->time, &out->balance);
    tv_predict_grades(a, c, &out->memory, &out->time, &out->grades);
}
