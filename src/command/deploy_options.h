/* Options about what comes after training, and the phases that follow from them. */
#ifndef TV_DEPLOY_OPTIONS_H
#define TV_DEPLOY_OPTIONS_H

#include "desc/life.h"
#include "options.h"

typedef struct tv_deploy_options {
    tv_deploy deploy;
    tv_str serve_gpu; /* cards to serve on; empty: as --gpu */
    tv_texts phase;   /* "build=20GB" as given */
} tv_deploy_options;

extern const tv_option tv_deploy_rows[];

enum { TV_DEPLOY_ROWS = 7 };

/* --phase NAME=BYTES into stated[TV_LIFE_COUNT]. Fails: unknown phase, bad amount (TV_USAGE). */
const tv_err *tv_deploy_stated(tv_arena *a, const tv_deploy_options *o, double *stated) TV_CHECKED;

#endif
