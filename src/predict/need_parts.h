/* The parts that a phase's need is summed from: private to the predictor's phase files. */
#ifndef TV_NEED_PARTS_H
#define TV_NEED_PARTS_H

#include "deploy.h"

typedef struct tv_parts {
    tv_arena *a;
    struct {
        tv_need_line *v;
        size_t n, cap;
    } lines;
    struct {
        tv_text *v;
        size_t n, cap;
    } notes;
} tv_parts;

/* A computed amount with its bounds. */
tv_fact tv_between(double low, double v, double high);

/* host: main memory, else the card. Nothing is added where the upper bound is 0. */
void tv_part_add(tv_parts *p, const char *name, bool host, tv_fact bytes);
void tv_part_note(tv_parts *p, tv_text t);
void tv_part_context(tv_parts *p, const tv_device *d);
/* What a process of the framework holds before any model: torch with its libraries mapped. */
void tv_part_process(tv_parts *p);
/* Sums, lines and notes into the need. */
void tv_parts_finish(const tv_parts *p, tv_life_need *out);

/* A pass of a case without an allocator. moving: activations, logits and what ops hold while they
 * run. */
typedef struct tv_run_bytes {
    double weights, moving;
} tv_run_bytes;

tv_run_bytes tv_run_bytes_of(tv_arena *scratch, const tv_case *c);

#endif
