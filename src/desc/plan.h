/* What the search says: ranked choices, why the others lost, what would make it fit. */
#ifndef TV_PLAN_H
#define TV_PLAN_H

#include "estimate.h"
#include "life.h"

/* The same card in another count. */
typedef struct tv_alternative {
    uint32_t gpus;
    tv_verdict verdict;
    double total_bytes;
    tv_fact step_s;
    double run_s; /* 0 unknown */
    tv_fact per_hour, per_run;
} tv_alternative;

typedef struct tv_choice {
    tv_job job; /* the job as it would run there */
    tv_machine machine;
    tv_estimate estimate;
    double score;
    double speed;     /* work per second relative to the fastest choice */
    bool accelerated; /* has matrix units for the precision asked */
    bool pareto;      /* no other choice is both faster and cheaper per unit of work */
    tv_text headroom; /* runs / runs well / room to spare */
    const tv_text *notes;
    size_t n_notes;
    const tv_alternative *counts; /* every count that runs, this one among them */
    size_t n_counts;
} tv_choice;

typedef struct tv_rejection {
    const tv_device *device;
    uint32_t gpus;
    tv_text reason;  /* id "vram", "unknown-memory", "dtype", "budget", "deadline" ... */
    double by_bytes; /* how much memory is missing; 0 for other reasons */
} tv_rejection;

/* A change that would make a job fit, in order of cost. */
typedef struct tv_remedy {
    tv_text what;
    double total_bytes; /* predicted after the change */
    double slowdown;    /* step time ratio, 1 = none */
    bool fits;
} tv_remedy;

typedef struct tv_plan {
    tv_text question;
    double need_bytes;       /* on one card, as asked */
    tv_memory need;          /* its composition */
    uint32_t most_gpus;      /* largest number of cards that was tried */
    double states_bytes;     /* weights, gradients and optimizer states of the whole job */
    double sharding;         /* cards that the states must be divided over; 1 none, 0 unknown */
    const tv_text *defaults; /* what was assumed for the choice among cards */
    size_t n_defaults;
    const tv_choice *choices;
    size_t n_choices;
    const tv_rejection *rejected;
    size_t n_rejected;
    const tv_remedy *remedies;
    size_t n_remedies;
    const tv_device *remedies_for; /* the card that they are reckoned on; NULL: none */
} tv_plan;

/* One phase of the model's life, and what holds it. */
typedef struct tv_life_stage {
    tv_life_need need;
    bool stated;             /* the user's own figure */
    const tv_device *card;   /* what it is reckoned on */
    uint32_t gpus;           /* ... and how many of them */
    tv_verdict verdict;      /* there */
    const tv_device *chosen; /* the card for this phase when each has its own; NULL: none */
    uint32_t chosen_gpus;
} tv_life_stage;

/* Every phase, the most demanding one, and the cards: one for all, or one for each. */
typedef struct tv_life_plan {
    tv_target target;
    const tv_life_stage *stages;
    size_t n_stages;
    size_t worst; /* among stages */
    tv_fact requirement_bytes;
    const tv_device *one; /* the best card that holds every phase; NULL: none does */
    uint32_t one_gpus;
    const tv_choice *serve; /* the choice for serving; NULL: none, or not asked */
    const tv_text *notes;
    size_t n_notes;
} tv_life_plan;

#endif
