/* Paddle's makers: constants, ranges, random numbers, shapes of tensors; and lists of tensors. */
#include "program_paddle.h"

#include <math.h>

/* ---- filled tensors ---- */

static bool shape_of(const tv_pd_ints *v, tv_shape *s)
{
    s->rank = 0;
    if (v->n > TV_LIMIT_RANK)
        return false;
    for (size_t i = 0; i < v->n; i++)
        s->d[s->rank++] = v->v[i];
    return v->known;
}

/* Sizes that are not known come from the declaration, else they are 1. */
static bool stated_shape(tv_running *r, const tv_node *n, int place, tv_shape *s)
{
    tv_pd_ints v;
    tv_shape declared = {0};
    tv_dtype dtype = TV_DTYPE_UNKNOWN;
    tv_pd_read_ints(r, n, (tv_pd_where){"shape", "ShapeTensor", "ShapeTensorList", place}, &v);
    bool known = shape_of(&v, s);
    const bool told = tv_pd_declared(r, n, "Out", 0, 0, &declared, &dtype);
    if (!v.given && told)
        *s = declared;
    for (uint32_t i = 0; i < s->rank; i++) {
        if (s->d[i] >= 0)
            continue;
        const bool stated = told && i < declared.rank && declared.d[i] >= 0;
        s->d[i] = stated ? declared.d[i] : 1;
        known = known && stated;
    }
    return known;
}

static void put_full(tv_running *r, const tv_node *n, tv_dtype dtype, const tv_shape *s,
                     double number, bool known)
{
    const uint32_t y = tv_rule_full(r, dtype, s, number);
    if (!known)
        tv_run_guess(r, y);
    tv_pd_out(r, n, "Out", 0, y);
}

PD_RULE(full)
{
    tv_shape s = {0};
    const bool tensor = tv_str_is(n->op, "full_with_tensor");
    const bool known = stated_shape(r, n, tensor ? 1 : tv_str_is(n->op, "full_") ? PD_NONE : 0, &s);
    const tv_pd_where where = {"str_value|value", "ValueTensor", NULL, tensor ? 0 : PD_NONE};
    double v =
        tensor ? tv_pd_read_num(r, n, where, 0) : tv_pd_attr_num(r, n, "str_value", (double)NAN);
    (void)rule;
    if (isnan(v))
        v = tv_pd_read_num(r, n, where, 0);
    put_full(r, n, tv_pd_attr_dtype(n, "dtype", TV_F32), &s, v, known);
    return NULL;
}

/* The shape of another tensor, with one axis (the batch) taken over where it says so. */
PD_RULE(full_like)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const double v = tv_pd_read_num(r, n, (tv_pd_where){.attr = "value", .place = 1}, 0);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    put_full(r, n, tv_pd_attr_dtype(n, "dtype", tv_run_at(r, x)->dtype), tv_run_shape(r, x), v,
             !tv_run_at(r, x)->guessed);
    return NULL;
}

PD_RULE(batch_size_like)
{
    const uint32_t x = tv_pd_in(r, n, "Input", 0);
    const uint32_t from = (uint32_t)tv_pd_attr_num(r, n, "input_dim_idx", 0);
    const uint32_t to = (uint32_t)tv_pd_attr_num(r, n, "output_dim_idx", 0);
    tv_shape s = {0};
    tv_pd_ints v;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "shape", .place = PD_NONE}, &v);
    (void)shape_of(&v, &s);
    if (to < s.rank && from < tv_run_shape(r, x)->rank)
        s.d[to] = tv_run_shape(r, x)->d[from];
    put_full(r, n, tv_pd_attr_dtype(n, "dtype", TV_F32), &s, tv_pd_attr_num(r, n, "value", 0),
             true);
    return NULL;
}

/* Numbers in an attribute: assign_value, full_int_array. */
PD_RULE(assign_value)
{
    static const char *const lists[] = {"values",       "value",        "fp32_values",
                                        "int32_values", "int64_values", "bool_values"};
    const tv_dtype dtype = tv_pd_attr_dtype(n, "dtype", TV_I64);
    const tv_attr *a = NULL;
    tv_shape s = {.rank = 1};
    (void)rule;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const tv_attr *one = tv_node_attr(n, lists[i]);
        a = one && (!a || a->n == 0) ? one : a;
    }
    s.d[0] = a ? (int64_t)a->n : 0;
    if (tv_node_attr(n, "shape"))
        (void)stated_shape(r, n, PD_NONE, &s);
    const bool kept = a && (a->kind == TV_ATTR_INTS || a->kind == TV_ATTR_FLOATS) &&
                      tv_shape_count(&s) == (int64_t)a->n;
    double *v = tv_new(tv_run_arena(r), double, kept ? a->n + 1 : 1);
    for (size_t i = 0; kept && i < a->n; i++)
        v[i] = a->kind == TV_ATTR_INTS ? (double)a->u.ints[i] : a->u.floats[i];
    const uint32_t y = tv_run_make(r, dtype, &s);
    if (kept)
        tv_run_set_data(r, y, v);
    tv_run_constant(r, y);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* Contents that nobody knows before it runs: random numbers, empty memory. */
PD_RULE(random)
{
    tv_shape s = {0};
    const bool known = stated_shape(r, n, 0, &s);
    (void)rule;
    const uint32_t y = tv_run_make(r, tv_pd_attr_dtype(n, "dtype", TV_F32), &s);
    if (!known)
        tv_run_guess(r, y);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY}, NULL, 0, &y, 1);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* A random number per element of the operand: bernoulli, poisson, multinomial's draws. */
PD_RULE(random_like)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_copy(r, tv_pd_attr_dtype(n, "dtype", tv_run_at(r, x)->dtype), tv_run_shape(r, x),
                        &x, 1, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(multinomial)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const double draws = tv_pd_read_num(r, n, (tv_pd_where){.attr = "num_samples", .place = 1}, 1);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    if (s.rank)
        s.d[s.rank - 1] = (int64_t)draws;
    const uint32_t y = tv_run_make(r, TV_I64, &s);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* ---- ranges ---- */

PD_RULE(range)
{
    const double start = tv_pd_read_num(r, n, (tv_pd_where){"start", "Start", NULL, 0}, 0);
    const double end = tv_pd_read_num(r, n, (tv_pd_where){"end", "End", NULL, 1}, (double)NAN);
    const double step = tv_pd_read_num(r, n, (tv_pd_where){"step", "Step", NULL, 2}, 1);
    const uint32_t first = tv_pd_in(r, n, "Start", 0);
    tv_dtype dtype =
        tv_pd_attr_dtype(n, "dtype", first == TV_NO_VALUE ? TV_I64 : tv_run_at(r, first)->dtype);
    tv_shape declared = {0};
    tv_dtype told = TV_DTYPE_UNKNOWN;
    (void)rule;
    double count = step == 0 ? 0 : ceil((end - start) / step);
    const bool known = isfinite(count);
    if (!known) {
        const bool stated =
            tv_pd_declared(r, n, "Out", 0, 0, &declared, &told) && declared.rank == 1;
        count = stated && declared.d[0] >= 0 ? (double)declared.d[0] : 1;
    }
    const uint32_t y = tv_rule_range(r, dtype, start, step, fmax(count, 0));
    if (!known)
        tv_run_guess(r, y);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(linspace)
{
    const double start = tv_pd_read_num(r, n, (tv_pd_where){NULL, "Start", NULL, 0}, 0);
    const double stop = tv_pd_read_num(r, n, (tv_pd_where){NULL, "Stop", NULL, 1}, 1);
    const double count = fmax(tv_pd_read_num(r, n, (tv_pd_where){NULL, "Num", NULL, 2}, 1), 0);
    (void)rule;
    const uint32_t y = tv_rule_range(r, tv_pd_attr_dtype(n, "dtype", TV_F32), start,
                                     count > 1 ? (stop - start) / (count - 1) : 0, count);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(eye)
{
    const double rows = tv_pd_read_num(r, n, (tv_pd_where){.attr = "num_rows", .place = 0}, 1);
    const double columns =
        tv_pd_read_num(r, n, (tv_pd_where){.attr = "num_columns", .place = 1}, -1);
    const tv_shape s = {.rank = 2, .d = {(int64_t)rows, (int64_t)(columns < 0 ? rows : columns)}};
    (void)rule;
    const uint32_t y = tv_run_make(r, tv_pd_attr_dtype(n, "dtype", TV_F32), &s);
    tv_run_constant(r, y);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* ---- about tensors ---- */

PD_RULE(shape)
{
    const uint32_t x = tv_pd_in(r, n, "Input", 0);
    TV_TRY(tv_run_need(r, x));
    tv_pd_out(r, n, "Out", 0, tv_rule_shape_of(r, x, rule->arg ? TV_I64 : TV_I32));
    return NULL;
}

/* One number that follows from the shape: elements, or the rank. */
PD_RULE(count)
{
    const uint32_t x = tv_pd_main(r, n);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    const double v = rule->arg ? (double)s->rank : tv_shape_elements(s);
    const uint32_t y = tv_run_make_data(r, TV_I64, &(tv_shape){0}, &v);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(increment)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const tv_fn_call call = {.fn = TV_FN_SCALE, .a = 1, .b = tv_pd_attr_num(r, n, "step|value", 1)};
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_fn(r, call, x, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* ---- arrays of tensors ---- */

/* The list that a slot's variable stands for now, and its elements. */
static tv_pd_list items_of(tv_running *r, uint32_t list)
{
    const tv_run_value *v = list == TV_NO_VALUE ? NULL : tv_run_at(r, list);
    tv_pd_list x = {.v = tv_new(tv_run_arena(r), uint32_t, v && v->list ? v->n_items + 1 : 1)};
    for (size_t i = 0; v && v->list && i < v->n_items; i++)
        x.v[x.n++] = v->items[i];
    return x;
}

PD_RULE(create_array)
{
    const tv_pd_list x = tv_pd_in_list(r, n, "X", 0);
    (void)rule;
    tv_pd_out(r, n, "Out", 0,
              tv_run_make_list(r, tv_pd_attr_dtype(n, "dtype", TV_F32), x.v,
                               tv_run_program(r)->pir ? 0 : x.n));
    return NULL;
}

/* PIR: array, x, i; ProgramDesc: X, I to the array Out that may not exist yet. */
PD_RULE(write_array)
{
    const bool pir = tv_run_program(r)->pir;
    const uint32_t x = pir ? tv_pd_in(r, n, "", 1) : tv_pd_in(r, n, "X", 0);
    const uint32_t at = pir ? tv_pd_in(r, n, "", 2) : tv_pd_in(r, n, "I", 1);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    uint32_t old = pir ? tv_pd_in(r, n, "", 0) : TV_NO_VALUE;
    if (!pir && n->n_outputs && n->outputs[0] != TV_NO_VALUE)
        old = tv_run_of(r, n->outputs[0]);
    tv_pd_list items = items_of(r, old);
    const double i = at == TV_NO_VALUE ? (double)items.n : tv_run_scalar(r, at, (double)items.n);
    if (i >= 0 && i < (double)items.n)
        items.v[(size_t)i] = x;
    else
        items.v[items.n++] = x;
    tv_pd_out(r, n, "Out", 0, tv_run_make_list(r, tv_run_at(r, x)->dtype, items.v, items.n));
    return NULL;
}

PD_RULE(read_array)
{
    const uint32_t at = tv_pd_in(r, n, "I", 1);
    const tv_pd_list items = items_of(r, tv_pd_in(r, n, "X", 0));
    tv_shape s = {0};
    tv_dtype dtype = TV_DTYPE_UNKNOWN;
    (void)rule;
    const double i = at == TV_NO_VALUE ? 0 : tv_run_scalar(r, at, 0);
    if (items.n) {
        tv_pd_out(r, n, "Out", 0, items.v[i >= 0 && i < (double)items.n ? (size_t)i : 0]);
        return NULL;
    }
    (void)tv_pd_declared(r, n, "Out", 0, 0, &s, &dtype);
    tv_pd_out(r, n, "Out", 0, tv_pd_make_guess(r, dtype, &s));
    return NULL;
}

PD_RULE(array_length)
{
    const double count = (double)items_of(r, tv_pd_in(r, n, "X", 0)).n;
    (void)rule;
    tv_pd_out(r, n, "Out", 0,
              tv_run_make_data(r, TV_I64, &(tv_shape){.rank = 1, .d = {1}}, &count));
    return NULL;
}

PD_RULE(array_to_tensor)
{
    const tv_pd_list items = items_of(r, tv_pd_in(r, n, "X", 0));
    const int64_t axis = tv_pd_attr_int(r, n, "axis", 0);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    if (items.n == 0)
        return tv_run_unknown(r, n);
    if (tv_pd_attr_num(r, n, "use_stack", 0) != 0)
        TV_TRY(tv_rule_stack(r, axis, items.v, items.n, &y));
    else
        TV_TRY(tv_rule_concat(r, axis, items.v, items.n, &y));
    tv_pd_out(r, n, "Out", 0, y);
    const tv_shape s = {.rank = 1, .d = {(int64_t)items.n}};
    tv_pd_out(r, n, "OutIndex", 1, tv_run_make(r, TV_I32, &s));
    return NULL;
}

static const tv_rule rules[] = {
    {"fill_constant", full, 0},
    {"full", full, 0},
    {"full_", full, 0},
    {"full_with_tensor", full, 0},
    {"fill_any_like", full_like, 0},
    {"full_like", full_like, 0},
    {"fill_zeros_like", full_like, 0},
    {"zeros_like", full_like, 0},
    {"ones_like", full_like, 0},
    {"empty_like", full_like, 0},
    {"fill", full_like, 0},
    {"fill_any", full_like, 0},
    {"fill_constant_batch_size_like", batch_size_like, 0},
    {"full_batch_size_like", batch_size_like, 0},
    {"gaussian_random_batch_size_like", batch_size_like, 0},
    {"uniform_random_batch_size_like", batch_size_like, 0},
    {"assign_value", assign_value, 0},
    {"full_int_array", assign_value, 0},
    {"empty", random, 0},
    {"gaussian_random", random, 0},
    {"gaussian", random, 0},
    {"uniform_random", random, 0},
    {"uniform", random, 0},
    {"truncated_gaussian_random", random, 0},
    {"randint", random, 0},
    {"randperm", random, 0},
    {"bernoulli", random_like, 0},
    {"poisson", random_like, 0},
    {"exponential", random_like, 0},
    {"multinomial", multinomial, 0},
    {"range", range, 0},
    {"arange", range, 0},
    {"linspace", linspace, 0},
    {"eye", eye, 0},
    {"shape", shape, 0},
    {"shape64", shape, 1},
    {"size", count, 0},
    {"numel", count, 0},
    {"rank", count, 1},
    {"increment", increment, 0},
    {"create_array", create_array, 0},
    {"create_array_like", create_array, 0},
    {"write_to_array", write_array, 0},
    {"array_write", write_array, 0},
    {"read_from_array", read_array, 0},
    {"array_read", read_array, 0},
    {"lod_array_length", array_length, 0},
    {"array_length", array_length, 0},
    {"tensor_array_to_tensor", array_to_tensor, 0},
    {"array_to_tensor", array_to_tensor, 0},
};

const tv_rule_table tv_rules_paddle_make = {TV_DIALECT_PADDLE, "", rules,
                                            sizeof rules / sizeof *rules};
