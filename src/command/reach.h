/* What a card can do: `plan --gpu CARD` without a model. */
#ifndef TV_REACH_H
#define TV_REACH_H

#include "market.h"

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
