/* What a comparison of cards holds before it is written: columns, ratios like for like, the five
 * numbers of a maker's table, and the estimates of a job where one was named. */
#ifndef TV_GPUS_COMPARE_H
#define TV_GPUS_COMPARE_H

#include "gpus.h"
#include "predict/rules.h"

/* One card against the first. state: see predict/rules.h; not TV_RATIO_OK: no number is given. */
typedef struct tv_card_ratio {
    const tv_device *card;
    tv_rate mode, first_mode; /* of the compute ratio */
    tv_ratio compute;
    tv_fact memory, bandwidth; /* unknown where either is */
    double cores;              /* ratio of CUDA cores, only to show what it hides; 0 unknown */
} tv_card_ratio;

/* The job on one card; blocked: what stands against it. */
typedef struct tv_card_job {
    const tv_estimate *estimate;
    const tv_err *blocked;
} tv_card_job;

/* A number of the maker's table: what it decides, and whether it binds the named job. */
typedef struct tv_parameter {
    const char *id;   /* "memory", "generation", "fp16", "nvlink", "pcie" */
    const char *name; /* msgid */
    tv_text decides;
    int binds; /* 1 yes, 0 no, -1 no job was named, or unknown */
} tv_parameter;

enum { TV_PARAMETERS = 5 };

typedef struct tv_comparison {
    const tv_device *const *cards;
    size_t n;
    const tv_card_ratio *ratios; /* n - 1, the second card first */
    const tv_card_job *jobs;     /* n; NULL: no model was named */
    const tv_model *model;
    tv_parameter parameters[TV_PARAMETERS];
    const tv_text *remarks; /* what to take from it */
    size_t n_remarks;
    bool consumer_and_professional;
} tv_comparison;

void tv_compare_text(const tv_gpus_run *g, const tv_comparison *c);
void tv_compare_json(const tv_gpus_run *g, const tv_comparison *c);

#endif
