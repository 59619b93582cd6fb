/* What the rules of ATen's operators share: arguments by the names of the schema, results held to
 * what the file states. Only for program_aten*.c. */
#ifndef TV_PROGRAM_ATEN_H
#define TV_PROGRAM_ATEN_H

#include "program_run.h"

#define TV_ATEN_OPERANDS 4096u /* of one list: torch.cat of everything a loop made */

/* ---- arguments ---- */

/* The tensor of that name; TV_NO_VALUE: not given, or a number. */
uint32_t tv_aten_in(const tv_running *r, const tv_node *n, const char *name);
/* The i-th tensor operand, whatever it is called. */
uint32_t tv_aten_first(const tv_running *r, const tv_node *n);
/* All tensors of a list, at most max; those not given are TV_NO_VALUE. */
size_t tv_aten_list(const tv_running *r, const tv_node *n, const char *name, uint32_t *out,
                    size_t max);
double tv_aten_num(tv_running *r, const tv_node *n, const char *name, double fallback);
int64_t tv_aten_int(tv_running *r, const tv_node *n, const char *name, int64_t fallback);
bool tv_aten_flag(tv_running *r, const tv_node *n, const char *name);
bool tv_aten_has(const tv_node *n, const char *name);
/* Whole numbers of a list; 0 when absent. */
size_t tv_aten_ints(tv_running *r, const tv_node *n, const char *name, const int64_t **v);
/* Pairs and triples that may be one number for all axes. */
void tv_aten_per_axis(tv_running *r, const tv_node *n, const char *name, int64_t fallback,
                      uint32_t axes, int64_t *out);
/* A tensor, or a number as a scalar whose type gives way to like's. */
uint32_t tv_aten_operand(tv_running *r, const tv_node *n, const char *name, uint32_t like);
/* The operator's name ends with an underscore. */
bool tv_aten_inplace(const tv_node *n);

/* ---- results ---- */

/* The type of the i-th output: as the argument dtype says, as the file states, or fallback. */
tv_dtype tv_aten_dtype(tv_running *r, const tv_node *n, size_t i, tv_dtype fallback);
/* The file's shape of the i-th output at this run's sizes; false: not stated. Where a stated batch
 * gives way to another, x's first axis tells (TV_NO_VALUE: none). */
bool tv_aten_stated(tv_running *r, const tv_node *n, size_t i, uint32_t x, tv_shape *s);
/* Hands v out. Where the program runs at its own sizes and states another shape or type, the
 * statement holds. */
void tv_aten_out(tv_running *r, const tv_node *n, size_t i, uint32_t v);
/* Outputs from i on that the rule says nothing about, as stated: seeds, saved statistics, empty
 * tensors. No step. */
void tv_aten_rest(tv_running *r, const tv_node *n, size_t i, uint32_t x);
/* One output that the file's shape decides; x stands in where it does not. The caller pushes the
 * step. */
uint32_t tv_aten_make(tv_running *r, const tv_node *n, size_t i, uint32_t x);
/* A copy of bytes to the stated shape. */
const tv_err *tv_aten_copied(tv_running *r, const tv_node *n, const tv_rule *rule) TV_CHECKED;
/* A data-dependent move to the stated shapes of all outputs. */
const tv_err *tv_aten_routed(tv_running *r, const tv_node *n, const tv_rule *rule) TV_CHECKED;
/* The first operand, renamed: detach, alias, checks that hand their input on. */
const tv_err *tv_aten_same(tv_running *r, const tv_node *n, const tv_rule *rule) TV_CHECKED;

extern const tv_rule_table tv_rules_aten_math;
extern const tv_rule_table tv_rules_aten_layout;
extern const tv_rule_table tv_rules_aten_make;
extern const tv_rule_table tv_rules_aten_kernel;
extern const tv_rule_table tv_rules_aten_index;
extern const tv_rule_table tv_rules_aten_order;

#endif
