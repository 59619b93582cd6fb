/* What the rules of profiles ask of a sighting of the kind `trace` (docs/facts/trace.md). */
#ifndef TV_TRACE_SCENE_H
#define TV_TRACE_SCENE_H

#include "diagnose.h"

/* Shares of a step from which on a profile is called by their name (spec: exposed communication
 * 20 %, waiting for data 10 %). */
#define TV_COMM_FINDING 0.20
#define TV_DATA_FINDING 0.10

/* The next profile behind s that holds work of a device; NULL: the first one, or the end. */
const tv_sighting *tv_trace_next(const tv_inquiry *q, const tv_sighting *s);

double tv_trace_num(const tv_sighting *s, const char *path);
/* A sum over the profile as a share of its steps, or of the host's time where no step is marked. */
double tv_trace_share(const tv_sighting *s, double seconds);
/* How often a step; over the whole profile where no step is marked. */
double tv_trace_per_step(const tv_sighting *s, double count);

/* "rank 3" or nothing, in front of a figure. */
void tv_trace_evidence(tv_inquiry *q, tv_finding *f, const tv_sighting *s, const char *what,
                       double seconds, double of_seconds);

/* How several ranks of one job met in their collectives. */
typedef struct tv_rank_skew {
    size_t ranks, collectives;
    double share;            /* of the time in collectives that is waiting for the last to come */
    double waits_s;          /* the mean wait of a rank, over the collectives that were compared */
    const tv_sighting *late; /* the rank that came last most often */
    double late_share;       /* of the collectives */
} tv_rank_skew;

/* False: one rank, or ranks whose lists do not fit. */
bool tv_trace_skew(const tv_inquiry *q, tv_rank_skew *out);
/* One direction of the slot that the known cards have, nominal; NaN: not known. */
double tv_pcie_link(const tv_inquiry *q);
double tv_trace_rank(const tv_sighting *s); /* NaN: not told */

#endif
