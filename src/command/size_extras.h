/* What stands beside an estimate: terms that the user states, what one step of an input changes,
 * the guides' rules of thumb, the data set. */
#ifndef TV_SIZE_EXTRAS_H
#define TV_SIZE_EXTRAS_H

#include "desc/request.h"
#include "job_options.h"

#include "predict/predict.h"
#include "report/report.h"

typedef struct tv_size_extras {
    struct {
        tv_delta *v;
        size_t n, cap;
    } deltas;
    struct {
        tv_thumb *v;
        size_t n, cap;
    } thumbs;
    struct {
        tv_text *v;
        size_t n, cap;
    } remarks;
} tv_size_extras;

/* --set TERM=VALUE: replaces terms of the estimate's memory; says what a breakdown of the user's
 * own left out. Fails: unknown term, bad amount (TV_USAGE). */
const tv_err *tv_size_restate(tv_request *r, const tv_any_options *any, const tv_case *c,
                              tv_estimate *e, tv_size_extras *x) TV_CHECKED;

/* Bytes per further sample, per halved precision of what moves. */
void tv_size_deltas(tv_arena *a, tv_arena *scratch, const tv_case *c, const tv_estimate *e,
                    tv_size_extras *x);

/* The guides' figures beside ours (rules.c; docs/factcheck.md). */
void tv_size_thumbs(tv_arena *a, const tv_case *c, const tv_estimate *e, tv_size_extras *x);

/* What --data, --samples and --sample-bytes say; NULL: nothing. */
const tv_err *tv_size_dataset(tv_request *r, const tv_job *job,
                              const tv_dataset **dataset) TV_CHECKED;

#endif
