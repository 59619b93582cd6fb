/* What a card can do: `plan --gpu CARD` without a model. */
#ifndef TV_REACH_H
#define TV_REACH_H

#include "desc/job.h"
#include "market.h"

/* A reference job. */
typedef struct tv_rung {
    const char *model; /* a built-in name */
    tv_task task;
    tv_precision precision;
    uint32_t batch, seq;
} tv_rung;

/* Of growing need; model NULL at the end. */
extern const tv_rung tv_reach_ladder[];

typedef struct tv_reach {
    tv_request *req;
    tv_arena *scratch;
    tv_market *market;
    const tv_device *device;
    uint32_t gpus;
    const tv_job
        *job; /* framework, engine and the like; task, batch and lengths are the ladder's */
} tv_reach;

const tv_err *tv_reach_show(const tv_reach *r) TV_CHECKED;

#endif
