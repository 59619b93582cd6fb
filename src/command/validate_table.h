/* Errors by group: count, median, tails, sign, rows outside the stated interval. */
#ifndef TV_VALIDATE_TABLE_H
#define TV_VALIDATE_TABLE_H

#include "desc/request.h"

/* One row judged. A prediction for several cards (a name that stands for a group) is a range:
 * inside it the error is 0, outside it is the distance to the nearer end. */
typedef struct tv_judged {
    double measured;
    double least, most; /* of the predictions; equal for one card */
    double lo, hi;      /* the interval that the predictions state */
} tv_judged;

/* Signed error as a fraction of the measured value: positive where the prediction is too high. */
double tv_judged_error(tv_judged j);
bool tv_judged_outside(tv_judged j);

typedef struct tv_score {
    double error;
    bool outside;
} tv_score;

typedef struct tv_score_group {
    tv_str file, metric, name;
    uint64_t hash;
    tv_score *v;
    size_t n;
    size_t cap;
} tv_score_group;

typedef struct tv_skip {
    tv_str reason;
    size_t n;
} tv_skip;

typedef struct tv_scores {
    tv_arena *a;
    struct {
        tv_score_group *v;
        size_t n, cap;
    } groups;
    struct {
        tv_skip *v;
        size_t n, cap;
    } skips;
    size_t rows;
    size_t judged;
} tv_scores;

/* The texts are copied when they start a group. */
void tv_scores_add(tv_scores *s, tv_str file, tv_str metric, tv_str group, tv_judged j);
void tv_scores_skip(tv_scores *s, tv_str reason);

typedef struct tv_summary {
    size_t n;
    double median, p90, p95; /* of |error| */
    double bias;             /* mean of the signed error */
    double outside;          /* share of the rows */
} tv_summary;

/* Sorts the group's scores. Quantiles interpolate between neighbours. */
tv_summary tv_score_summary(tv_score_group *g);

/* Groups in order of file, metric and name; reasons from the most frequent down. */
void tv_scores_put_json(tv_scores *s, tv_request *r);
void tv_scores_put_text(tv_scores *s, tv_request *r);

#endif
