/* What plan.c and remedy.c share: cases and memory predictions that serve many cards. */
#ifndef TV_SPACE_H
#define TV_SPACE_H

#include "search.h"

#include "predict/ledger.h"

/* A resolved case, and the cards that it stands for. */
typedef struct tv_class_case {
    const tv_device *like; /* any card of the class */
    double states_bytes;   /* of the whole job: no shape needs less in all */
    const tv_err *e;       /* the class cannot run the job */
    tv_case c;
} tv_class_case;

/* The choices that memory depends on beside the class. */
typedef struct tv_shape {
    tv_strategy strategy;
    uint32_t tp;
    uint32_t batch;
    uint32_t accum;
} tv_shape;

typedef struct tv_class_memory {
    const tv_class_case *of;
    uint32_t gpus, nodes;
    tv_shape shape;
    tv_walk walk;
} tv_class_memory;

typedef struct tv_space {
    tv_arena *a;
    tv_arena *scratch;
    const tv_search *s;
    tv_job job; /* the job as asked, with the search's own defaults */
    struct {
        tv_class_case **v;
        size_t n, cap;
    } cases;
    struct {
        tv_class_memory **v;
        size_t n, cap;
    } memories;
} tv_space;

/* The case of a card's class. The number of cards does not enter: it comes with tv_space_bind. */
const tv_class_case *tv_space_case(tv_space *space, const tv_machine *machine);

/* The memory of a shape on a machine: the class's prediction, judged by this card's size and links.
 */
tv_memory tv_space_memory(tv_space *space, const tv_class_case *of, const tv_shape *shape,
                          const tv_machine *machine);

/* The class's case as it runs in this shape on this machine. */
tv_case tv_space_bind(const tv_class_case *of, const tv_shape *shape, const tv_machine *machine);

#endif
