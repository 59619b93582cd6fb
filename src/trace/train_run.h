/* One training's log: the moments that it prints, and what they add up to. */
#ifndef TV_TRAIN_RUN_H
#define TV_TRAIN_RUN_H

#include "trace.h"

/* What one line says; NaN: nothing. */
typedef struct tv_moment {
    double epoch;
    double step;
    double data_s; /* the wait for the batch, within step_s */
    double step_s;
    double comm_s;        /* of the backward pass, where the log parts it */
    double samples_per_s; /* over all devices, as printed */
    double tokens_per_s;  /* likewise */
    double mem_bytes;     /* of one device */
    double batch;         /* samples of a step over all devices */
    size_t line;          /* in the sheet */
} tv_moment;

tv_moment tv_moment_none(size_t line);
bool tv_moment_any(const tv_moment *m);

/* Moments that are kept: of a longer run every second, fourth, ... one. */
enum { TV_MOST_MOMENTS = 1024 };

typedef struct tv_train_run {
    const char *dialect; /* "mmengine" */
    const char *framework;
    bool mem_is_peak;
    double gpus; /* NaN: not told */
    tv_moment v[TV_MOST_MOMENTS];
    size_t n;
    size_t stride; /* 0 counts as 1 */
    uint64_t seen; /* all of them */
    tv_moment last;
} tv_train_run;

void tv_train_add(tv_train_run *run, const tv_moment *m);
/* True where the moment begins another run: its epoch or step is far behind. */
bool tv_train_restarts(const tv_train_run *run, const tv_moment *m);
/* Writes the sighting. */
void tv_train_end(tv_reading *r, const tv_train_run *run);

#endif
