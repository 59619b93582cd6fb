/* The run in progress, for the engine and the canonical operations; rules see program_run.h. */
#ifndef TV_PROGRAM_RUNNING_H
#define TV_PROGRAM_RUNNING_H

#include "program_run.h"
#include "program_shape.h"
#include "program_symbol.h"

/* Run values live in pieces, so that a pointer to one stays good while the run goes on. */
#define TV_RUN_PIECE 256u

typedef struct tv_running_values {
    tv_run_value **v; /* pieces */
    size_t n, cap;
} tv_running_values;

typedef struct tv_running_steps {
    tv_step *v;
    size_t n, cap;
} tv_running_steps;

typedef struct tv_running_texts {
    tv_text *v;
    size_t n, cap;
} tv_running_texts;

typedef struct tv_running_unknowns {
    tv_unknown_op *v;
    size_t n, cap;
} tv_running_unknowns;

/* Which of the asked sizes an attempt uses; else what the program states. */
typedef struct tv_run_plan {
    bool ask_batch, ask_seq, ask_image;
    double seq, image; /* in place of the usual sizes of axes that nobody states; 0: those */
} tv_run_plan;

/* Who writes a value: a node of the body that was last looked at with that stamp. */
typedef struct tv_maker {
    uint32_t stamp;
    uint32_t node;
} tv_maker;

typedef struct tv_rule_map tv_rule_map;

struct tv_running {
    tv_arena *a;
    const tv_program *p;
    const tv_run_sizes *sizes;
    tv_run_plan plan;
    tv_run *out;
    tv_symbols symbols;
    uint32_t *now; /* program value -> run value; TV_NO_VALUE: nobody wrote it yet */
    tv_running_values pieces;
    size_t n_values;
    tv_running_steps steps;
    tv_running_texts warnings;
    tv_running_unknowns unknown;
    const tv_rule_map *rules;
    tv_maker *maker; /* of the program's values */
    uint32_t stamp;
    const tv_node *node;
    const tv_node *call; /* of the local function that runs */
    const tv_function *function;
    size_t node_index;
    double times;
    unsigned depth;
    double batch_stated, batch;      /* where a stated batch gives way to another; else equal */
    bool assumed_seq, assumed_image; /* an axis took its usual size */
    const tv_value *unshaped;        /* an input of which nothing is stated */
    bool folds;                      /* constants are folded when the framework loads the graph */
};

tv_run_value *tv_running_at(const tv_running *r, uint32_t v);

/* The rule of an operator, see tv_rule_table. */
const tv_rule_map *tv_rule_map_make(tv_arena *a, const tv_program *p);
const tv_rule *tv_rule_find(const tv_rule_map *m, const tv_node *n);
/* Local functions come before operators of their name. */
const tv_function *tv_rule_function(const tv_rule_map *m, const tv_node *n);

/* Shapes and first bindings of the main graph's inputs (program_inputs.c). */
const tv_err *tv_run_open_inputs(tv_running *r) TV_CHECKED;

/* Nodes of a body in an order in which each finds its operands; NULL: as they stand. */
const tv_err *tv_run_order(tv_running *r, const tv_body *b, const uint32_t **order) TV_CHECKED;

/* Numbers of a value's contents (little-endian in its dtype); false: the type has none. */
bool tv_value_numbers(const tv_value *v, size_t n, double *out);

#endif
