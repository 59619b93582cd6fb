/* Paddle's look-ups by index, sorting and choosing. */
#include "program_paddle.h"

#include <math.h>

PD_RULE(gather)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), ids = tv_pd_in(r, n, "Index", 1);
    const tv_pd_where where = {
        .attr = "axis|dim", .tensor = "Axis", .place = tv_str_is(n->op, "gather") ? 2 : PD_NONE};
    const double axis = tv_pd_read_num(r, n, where, 0);
    uint32_t flat = ids, y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, ids));
    const tv_shape *s = tv_run_shape(r, ids);
    if (s->rank == 2 && s->d[1] == 1)
        TV_TRY(tv_rule_view(r, ids, &(tv_shape){.rank = 1, .d = {s->d[0]}}, &flat));
    TV_TRY(tv_rule_gather(r, (int64_t)axis, x, flat, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* The last axis of the index addresses the first axes of x. */
PD_RULE(gather_nd)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), ids = tv_pd_in(r, n, "Index", 1);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, ids));
    const tv_shape *xs = tv_run_shape(r, x), *is = tv_run_shape(r, ids);
    const int64_t deep = is->rank ? is->d[is->rank - 1] : 0;
    tv_shape s = {0};
    bool fits = is->rank > 0 && deep <= (int64_t)xs->rank;
    for (uint32_t i = 0; fits && i + 1 < is->rank; i++)
        fits = tv_shape_push(&s, is->d[i]);
    for (uint32_t i = (uint32_t)deep; fits && i < xs->rank; i++)
        fits = tv_shape_push(&s, xs->d[i]);
    if (!fits)
        return tv_run_fail(r, "program.gather-nd",
                           N_("the index addresses more axes than there are"));
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &s);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* One element of x per element of the index. */
PD_RULE(like_index)
{
    const bool search = tv_str_is(n->op, "searchsorted");
    const uint32_t x = search ? tv_pd_in(r, n, "SortedSequence", 0) : tv_pd_main(r, n);
    const uint32_t ids = tv_pd_in(r, n, search ? "Values" : "Index", 1);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, ids));
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, tv_run_shape(r, ids));
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "Result", 0, y);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* x with some elements replaced: scatter and its kin. */
PD_RULE(like_first)
{
    static const char *const outputs[] = {"Out", "Result", "Output"};
    const uint32_t x = tv_pd_main(r, n);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x));
    TV_TRY(tv_pd_route(r, n, &y, 1));
    for (size_t i = 0; i < 3; i++)
        tv_pd_out(r, n, outputs[i], 0, y);
    return NULL;
}

PD_RULE(masked_fill)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), mask = tv_pd_in(r, n, "Mask", 1);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, mask));
    const uint32_t value = tv_pd_in(r, n, "Value", 2);
    TV_TRY(tv_rule_where(r, mask, value == TV_NO_VALUE ? x : value, x, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* Elements that hold: as many as there are, for lack of better. */
PD_RULE(nonzero)
{
    static const char *const outputs[] = {"Out", "Y"};
    const uint32_t x = tv_pd_main(r, n);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *xs = tv_run_shape(r, x);
    tv_shape s = {.rank = 1, .d = {tv_shape_count(xs)}};
    if (rule->arg)
        s = (tv_shape){.rank = 2, .d = {s.d[0], (int64_t)xs->rank}};
    const uint32_t y = tv_pd_make_guess(r, rule->arg ? TV_I64 : tv_run_at(r, x)->dtype, &s);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    for (size_t i = 0; i < 2; i++)
        tv_pd_out(r, n, outputs[i], 0, y);
    return NULL;
}

PD_RULE(unique)
{
    static const char *const counts[] = {"Index", "Indices", "Counts", "Count"};
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const tv_shape s = {.rank = 1, .d = {tv_shape_count(tv_run_shape(r, x))}};
    const uint32_t y = tv_pd_make_guess(r, tv_run_at(r, x)->dtype, &s);
    const uint32_t i64 = tv_pd_make_guess(r, TV_I64, &s);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "Out", 0, y);
    for (size_t i = 0; i < 4; i++)
        tv_pd_out(r, n, counts[i], (int)i < 3 ? (int)i + 1 : PD_NONE, i64);
    return NULL;
}

PD_RULE(top_k)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const double k = tv_pd_read_num(r, n, (tv_pd_where){.attr = "k", .tensor = "K", .place = 1}, 1);
    uint32_t at = 0;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    if (!tv_shape_axis(tv_pd_attr_int(r, n, "axis", -1), s.rank, &at))
        return tv_run_fail(r, "program.axis", N_("an axis is out of range"));
    s.d[at] = (int64_t)k < s.d[at] || s.d[at] == 0 ? (int64_t)k : s.d[at];
    const uint32_t y[2] = {tv_run_make(r, tv_run_at(r, x)->dtype, &s), tv_run_make(r, TV_I64, &s)};
    TV_TRY(tv_pd_route(r, n, y, 2));
    tv_pd_out(r, n, "Out", 0, y[0]);
    tv_pd_out(r, n, "Indices", 1, y[1]);
    return NULL;
}

/* Values and their places, of x's shape: argsort. */
PD_RULE(sort)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const uint32_t y[2] = {tv_run_make(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x)),
                           tv_run_make(r, TV_I64, tv_run_shape(r, x))};
    TV_TRY(tv_pd_route(r, n, y, 2));
    tv_pd_out(r, n, "Out", 0, y[0]);
    tv_pd_out(r, n, "Indices", 1, y[1]);
    return NULL;
}

/* kthvalue, mode, median: one element of an axis, with its place. */
PD_RULE(one_of_axis)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const bool keep = tv_pd_attr_num(r, n, "keepdim", 0) != 0;
    const int64_t axis = tv_pd_attr_int(r, n, "axis", -1);
    tv_shape s = {0};
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    if (!tv_shape_reduce(tv_run_shape(r, x), &axis, 1, keep, &s))
        return tv_run_fail(r, "program.axis", N_("an axis is out of range"));
    const uint32_t y[2] = {tv_run_make(r, tv_run_at(r, x)->dtype, &s), tv_run_make(r, TV_I64, &s)};
    TV_TRY(tv_pd_route(r, n, y, 2));
    tv_pd_out(r, n, "Out", 0, y[0]);
    tv_pd_out(r, n, "Indices", 1, y[1]);
    return NULL;
}

PD_RULE(one_hot)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const tv_pd_where depth = {.attr = "depth|num_classes", .tensor = "depth_tensor", .place = 1};
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    /* The first form replaces a last axis of size 1. */
    if (tv_str_is(n->op, "one_hot") && !tv_run_program(r)->pir && s.rank && s.d[s.rank - 1] == 1)
        s.rank--;
    if (!tv_shape_push(&s, (int64_t)fmax(tv_pd_read_num(r, n, depth, 1), 1)))
        return tv_run_fail(r, "program.reshape-rank", N_("a tensor has too many dimensions"));
    TV_TRY(tv_rule_copy(r, tv_pd_attr_dtype(n, "dtype", TV_F32), &s, &x, 1, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

static const tv_rule rules[] = {
    {"one_hot", one_hot, 0},
    {"one_hot_v2", one_hot, 0},
    {"gather", gather, 0},
    {"index_select", gather, 0},
    {"gather_nd", gather_nd, 0},
    {"take_along_axis", like_index, 0},
    {"index_sample", like_index, 0},
    {"searchsorted", like_index, 0},
    {"bucketize", like_first, 0},
    {"put_along_axis", like_first, 0},
    {"scatter", like_first, 0},
    {"scatter_nd_add", like_first, 0},
    {"index_add", like_first, 0},
    {"index_put", like_first, 0},
    {"index_fill", like_first, 0},
    {"fill_diagonal", like_first, 0},
    {"fill_diagonal_tensor", like_first, 0},
    {"gather_tree", like_first, 0},
    {"shard_index", like_first, 0},
    {"masked_fill", masked_fill, 0},
    {"masked_select", nonzero, 0},
    {"where_index", nonzero, 1},
    {"nonzero", nonzero, 1},
    {"unique", unique, 0},
    {"unique_consecutive", unique, 0},
    {"unique_with_counts", unique, 0},
    {"top_k", top_k, 0},
    {"top_k_v2", top_k, 0},
    {"topk", top_k, 0},
    {"argsort", sort, 0},
    {"kthvalue", one_of_axis, 0},
    {"mode", one_of_axis, 0},
};

const tv_rule_table tv_rules_paddle_index = {TV_DIALECT_PADDLE, "", rules,
                                             sizeof rules / sizeof *rules};
