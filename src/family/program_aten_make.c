/* ATen's tensors out of nothing: constants, ranges, random numbers, and what fills them. */
#include "program_aten.h"

#include <math.h>

#include "program_running.h"

static tv_dtype usual_dtype(bool whole)
{
    return whole ? TV_I64 : TV_F32;
}

/* Sizes by the argument; a size that states the file's own batch gives way to the run's when the
 * file's shape of the output is all there is to know. */
static const tv_err *filled(tv_running *r, const tv_node *n, double number)
{
    const uint32_t like = tv_aten_first(r, n);
    const int64_t *sizes = NULL;
    const size_t count = tv_aten_ints(r, n, "size", &sizes);
    tv_shape s = {0};
    if (tv_aten_has(n, "size") && count <= TV_LIMIT_RANK)
        s = tv_shape_of((uint32_t)count, sizes);
    else if (like != TV_NO_VALUE)
        s = *tv_run_shape(r, like);
    else if (!tv_aten_stated(r, n, 0, TV_NO_VALUE, &s))
        s = (tv_shape){0};
    const tv_dtype fallback = like != TV_NO_VALUE ? tv_run_at(r, like)->dtype : TV_F32;
    tv_aten_out(r, n, 0, tv_rule_full(r, tv_aten_dtype(r, n, 0, fallback), &s, number));
    return NULL;
}

static const tv_err *constant(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    return filled(r, n, rule->arg);
}

static const tv_err *full(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    return filled(r, n, tv_aten_num(r, n, "fill_value", 0));
}

static const tv_err *scalar_tensor(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const double v = tv_aten_num(r, n, "s", 0);
    tv_aten_out(r, n, 0, tv_rule_full(r, tv_aten_dtype(r, n, 0, TV_F32), &(tv_shape){0}, v));
    return NULL;
}

static const tv_err *range(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const double start = tv_aten_num(r, n, "start", 0), end = tv_aten_num(r, n, "end", 0);
    const double step = tv_aten_num(r, n, "step", 1);
    const double count = step != 0 ? ceil((end - start) / step) : 0;
    const tv_attr *a = tv_node_attr(n, "end");
    const bool whole = a && (a->kind == TV_ATTR_INT || a->kind == TV_ATTR_DIMS);
    if (!(count >= 0 && count < 1e15))
        return tv_run_unknown(r, n);
    tv_aten_out(r, n, 0,
                tv_rule_range(r, tv_aten_dtype(r, n, 0, usual_dtype(whole)), start, step, count));
    return NULL;
}

static const tv_err *linspace(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const double start = tv_aten_num(r, n, "start", 0), end = tv_aten_num(r, n, "end", 0);
    const double steps = tv_aten_num(r, n, "steps", 0);
    if (!(steps >= 0 && steps < 1e15))
        return tv_run_unknown(r, n);
    const double step = steps > 1 ? (end - start) / (steps - 1) : 0;
    tv_aten_out(r, n, 0, tv_rule_range(r, tv_aten_dtype(r, n, 0, TV_F32), start, step, steps));
    return NULL;
}

/* Numbers that nobody knows before: written once, kept by nothing. */
static const tv_err *random(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t like = tv_aten_first(r, n);
    const int64_t *sizes = NULL;
    const size_t count = tv_aten_ints(r, n, "size", &sizes);
    tv_shape s = {0};
    if (tv_aten_has(n, "size") && count <= TV_LIMIT_RANK)
        s = tv_shape_of((uint32_t)count, sizes);
    else if (like != TV_NO_VALUE)
        s = *tv_run_shape(r, like);
    else
        (void)tv_aten_stated(r, n, 0, TV_NO_VALUE, &s);
    const tv_dtype fallback = like != TV_NO_VALUE ? tv_run_at(r, like)->dtype : TV_F32;
    const uint32_t y = tv_run_make(r, tv_aten_dtype(r, n, 0, fallback), &s);
    if (tv_aten_inplace(n) && like != TV_NO_VALUE)
        tv_running_at(r, y)->base = tv_run_at(r, like)->base;
    tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY}, &like, like == TV_NO_VALUE ? 0 : 1, &y, 1);
    tv_aten_out(r, n, 0, y);
    return NULL;
}

/* Tables of fixed numbers: identity, windows, indices of a triangle. */
static const tv_err *fixed(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t y = tv_aten_make(r, n, 0, TV_NO_VALUE);
    tv_run_constant(r, y);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY}, NULL, 0, &y, 1);
    tv_aten_out(r, n, 0, y);
    return NULL;
}

static const tv_err *eye(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const int64_t rows = tv_aten_int(r, n, "n", -1);
    const int64_t columns = tv_aten_int(r, n, "m", rows);
    if (rows < 0)
        return fixed(r, n, rule);
    const tv_shape s = tv_shape_of(2, (int64_t[]){rows, columns});
    const uint32_t y = tv_run_make(r, tv_aten_dtype(r, n, 0, TV_F32), &s);
    tv_run_constant(r, y);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY}, NULL, 0, &y, 1);
    tv_aten_out(r, n, 0, y);
    return NULL;
}

static const tv_err *permutation(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const tv_shape s = tv_shape_of(1, (int64_t[]){tv_aten_int(r, n, "n", 0)});
    const uint32_t y = tv_run_make(r, tv_aten_dtype(r, n, 0, TV_I64), &s);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_ROUTE}, NULL, 0, &y, 1);
    tv_aten_out(r, n, 0, y);
    return NULL;
}

/* fill_(x, v), zero_(x): x's place, written. */
static const tv_err *fill(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    const uint32_t y = tv_rule_full(r, v->dtype, &v->shape, tv_aten_num(r, n, "value", 0));
    if (tv_aten_inplace(n))
        tv_running_at(r, y)->base = v->base;
    tv_aten_out(r, n, 0, y);
    return NULL;
}

static const tv_rule rules[] = {
    {"aten.zeros", constant, 0},
    {"aten.zeros_like", constant, 0},
    {"aten.new_zeros", constant, 0},
    {"aten.ones", constant, 1},
    {"aten.ones_like", constant, 1},
    {"aten.new_ones", constant, 1},
    {"aten.empty", constant, 0},
    {"aten.empty_like", constant, 0},
    {"aten.new_empty", constant, 0},
    {"aten.empty_strided", constant, 0},
    {"aten.new_empty_strided", constant, 0},
    {"aten.empty_permuted", constant, 0},
    {"aten.full", full, 0},
    {"aten.full_like", full, 0},
    {"aten.new_full", full, 0},
    {"aten.scalar_tensor", scalar_tensor, 0},
    {"aten.arange", range, 0},
    {"aten.range", range, 0},
    {"prims.iota", fixed, 0},
    {"aten.linspace", linspace, 0},
    {"aten.logspace", fixed, 0},
    {"aten.eye", eye, 0},
    {"aten.tril_indices", fixed, 0},
    {"aten.triu_indices", fixed, 0},
    {"aten.hann_window", fixed, 0},
    {"aten.hamming_window", fixed, 0},
    {"aten.blackman_window", fixed, 0},
    {"aten.fft_fftfreq", fixed, 0},
    {"aten.fft_rfftfreq", fixed, 0},
    {"aten.affine_grid_generator", tv_aten_copied, 0},
    {"aten.randperm", permutation, 0},
    {"aten.rand", random, 0},
    {"aten.rand_like", random, 0},
    {"aten.randn", random, 0},
    {"aten.randn_like", random, 0},
    {"aten.randint", random, 0},
    {"aten.randint_like", random, 0},
    {"aten.uniform", random, 0},
    {"aten.normal", random, 0},
    {"aten.normal_functional", random, 0},
    {"aten.bernoulli", random, 0},
    {"aten.exponential", random, 0},
    {"aten.random", random, 0},
    {"aten.poisson", random, 0},
    {"aten.fill", fill, 0},
    {"aten.zero", fill, 0},
};

extern const tv_rule_table tv_rules_aten_make;
const tv_rule_table tv_rules_aten_make = {TV_DIALECT_ATEN, "", rules, sizeof rules / sizeof *rules};
