/* What the rules of Paddle's operators share. An operator has two forms: in ProgramDesc its
 * operands stand in named slots and its numbers in attributes, in PIR operands have places and many
 * numbers are operands. A rule names both. Only for program_paddle*.c. */
#ifndef TV_PROGRAM_PADDLE_H
#define TV_PROGRAM_PADDLE_H

#include "program_run.h"
#include "program_shape.h"

/* No such operand in PIR. */
#define PD_NONE (-1)

/* The run value in a slot, or at a place in PIR; TV_NO_VALUE where it is not given. slot "" : none
 * in ProgramDesc. */
uint32_t tv_pd_in(tv_running *r, const tv_node *n, const char *slot, int place);
/* The operand that an operator works on: X, Input, Logits ... by name, since ProgramDesc lists its
 * slots in the order of their names. */
uint32_t tv_pd_main(tv_running *r, const tv_node *n);
/* All of a slot's values. */
typedef struct tv_pd_list {
    uint32_t *v;
    size_t n;
} tv_pd_list;
tv_pd_list tv_pd_in_list(tv_running *r, const tv_node *n, const char *slot, int place);

/* Names v as what stands in the slot; PIR: at the place. A scalar becomes a list of one where the
 * program declares it so (Paddle before 2.5 had no scalars). */
void tv_pd_out(tv_running *r, const tv_node *n, const char *slot, int place, uint32_t v);
/* The i-th value of a slot. */
void tv_pd_out_at(tv_running *r, const tv_node *n, const char *slot, int place, size_t i,
                  uint32_t v);
size_t tv_pd_out_count(const tv_running *r, const tv_node *n, const char *slot, int place);
/* What the program declares of an output, with -1 for what is open; false: no shape. */
bool tv_pd_declared(tv_running *r, const tv_node *n, const char *slot, int place, size_t i,
                    tv_shape *shape, tv_dtype *dtype);

/* Attributes; names may give alternatives: "axis|dim". */
double tv_pd_attr_num(tv_running *r, const tv_node *n, const char *names, double fallback);
bool tv_pd_attr_is(tv_running *r, const tv_node *n, const char *name, const char *word);
tv_dtype tv_pd_attr_dtype(const tv_node *n, const char *names, tv_dtype fallback);

/* Where a list of whole numbers may stand. */
typedef struct tv_pd_where {
    const char *attr;   /* alternatives with '|' */
    const char *tensor; /* slot of a tensor that holds them */
    const char *list;   /* slot of one tensor per number */
    int place;          /* in PIR */
} tv_pd_where;

#define PD_MOST 512
#define PD_OPEN INT64_MIN /* a number that is not known */

typedef struct tv_pd_ints {
    int64_t v[PD_MOST];
    size_t n;
    bool given; /* stated somewhere */
    bool known; /* and every number is known */
} tv_pd_ints;

/* The numbers into out; n_of_tensor says how many a tensor with unknown contents holds. */
void tv_pd_read_ints(tv_running *r, const tv_node *n, tv_pd_where w, tv_pd_ints *out);
/* One number: tensor or attribute. */
double tv_pd_read_num(tv_running *r, const tv_node *n, tv_pd_where w, double fallback);
/* The same two as integers, whatever number the file holds. */
int64_t tv_pd_attr_int(tv_running *r, const tv_node *n, const char *names, double fallback);
int64_t tv_pd_read_int(tv_running *r, const tv_node *n, tv_pd_where where, double fallback);

/* The image layout: the last axis holds the channels. */
bool tv_pd_channels_last(tv_running *r, const tv_node *n);
/* True where the operator works on its operand in place. */
bool tv_pd_inplace(const tv_node *n);

/* An output of a data-dependent or hardly known size: shape with what is open replaced. */
uint32_t tv_pd_make_guess(tv_running *r, tv_dtype dtype, const tv_shape *shape);
/* x's elements in another shape of as many; anything else is a guess of that shape. */
const tv_err *tv_pd_reshaped(tv_running *r, uint32_t x, const tv_shape *shape,
                             uint32_t *y) TV_CHECKED;
/* A step that moves bytes from all operands to one output per shape, in the order of outputs. */
const tv_err *tv_pd_route(tv_running *r, const tv_node *n, const uint32_t *y,
                          size_t n_y) TV_CHECKED;

/* Applies an activation by Paddle's name ("relu", "gelu"; empty: none). */
const tv_err *tv_pd_activate(tv_running *r, tv_str name, uint32_t x, uint32_t *y) TV_CHECKED;

#define PD_RULE(name)                                                                              \
    static const tv_err *name(tv_running *r, const tv_node *n, const tv_rule *rule)

extern const tv_rule_table tv_rules_paddle_math;
extern const tv_rule_table tv_rules_paddle_index;
extern const tv_rule_table tv_rules_paddle_layout;
extern const tv_rule_table tv_rules_paddle_net;
extern const tv_rule_table tv_rules_paddle_fused;
extern const tv_rule_table tv_rules_paddle_vision;
extern const tv_rule_table tv_rules_paddle_sequence;
extern const tv_rule_table tv_rules_paddle_make;
extern const tv_rule_table tv_rules_paddle_flow;

/* A rule: outputs as the program declares them, moved by whatever the operator is (beam search,
 * targets of training). */
const tv_err *tv_pd_as_declared(tv_running *r, const tv_node *n, const tv_rule *rule) TV_CHECKED;

#endif
