/* ATen's moves that depend on data: look-ups, scatters, sorts, selections. */
#include "program_aten.h"

#include "program_running.h"

static const tv_err *index_select(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_gather(r, tv_aten_int(r, n, "dim", 0), tv_aten_first(r, n),
                          tv_aten_in(r, n, "index"), &y));
    tv_aten_out(r, n, 0, y);
    return NULL;
}

/* gather and take_along_dim: one element for each index; the result has the index's shape. */
static const tv_err *pick(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    const uint32_t ids = tv_aten_in(r, n, rule->arg ? "indices" : "index");
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, ids));
    tv_shape s = *tv_run_shape(r, ids);
    if (rule->arg && !tv_aten_stated(r, n, 0, ids, &s))
        s = *tv_run_shape(r, ids);
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &s);
    TV_TRY(tv_rule_route(r, (uint32_t[]){x, ids}, 2, &y, 1));
    tv_aten_out(r, n, 0, y);
    return NULL;
}

/* x[:, i, j]: the indexed axes give way to the indices' common shape, in front where they do not
 * stand together. A mask selects an unknown number: the file's shape, or all, counts. */
static const tv_err *index(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t ids[TV_LIMIT_RANK] = {0};
    const uint32_t x = tv_aten_first(r, n);
    const size_t count = tv_aten_list(r, n, "indices", ids, TV_LIMIT_RANK);
    tv_shape common = {0}, out = {0};
    size_t first = TV_LIMIT_RANK, last = 0, given = 0;
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    for (size_t i = 0; i < count; i++) {
        if (ids[i] == TV_NO_VALUE)
            continue;
        const tv_dtype t = tv_run_at(r, ids[i])->dtype;
        if (t == TV_BOOL || t == TV_U8 || count > s->rank ||
            !tv_shape_broadcast(&common, tv_run_shape(r, ids[i]), &common))
            return tv_aten_routed(r, n, rule);
        first = given ? first : i;
        last = i;
        given++;
    }
    const bool together = given && last - first + 1 == given;
    if (given == 1 && last < s->rank) { /* rows of a table */
        uint32_t y = TV_NO_VALUE;
        TV_TRY(tv_rule_gather(r, (int64_t)last, x, ids[last], &y));
        tv_aten_out(r, n, 0, y);
        return NULL;
    }
    for (uint32_t i = 0; given && !together && i < common.rank; i++)
        (void)tv_shape_push(&out, common.d[i]);
    for (uint32_t i = 0; i < s->rank; i++) {
        for (uint32_t k = 0; together && i == first && k < common.rank; k++)
            if (!tv_shape_push(&out, common.d[k]))
                return tv_aten_routed(r, n, rule);
        if ((i >= count || ids[i] == TV_NO_VALUE) && !tv_shape_push(&out, s->d[i]))
            return tv_aten_routed(r, n, rule);
    }
    uint32_t in[TV_LIMIT_RANK + 1] = {x};
    for (size_t i = 0; i < count; i++)
        in[1 + i] = ids[i];
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &out);
    tv_step step = {.kind = TV_STEP_GATHER};
    step.u.gather.axis = (uint8_t)(first < TV_LIMIT_RANK ? first : 0);
    tv_run_push(r, &step, in, 1 + count, &y, 1);
    tv_aten_out(r, n, 0, y);
    return NULL;
}

/* Writes into self: the result is self's size, and self's place for in-place forms. */
static const tv_err *put(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t in[16];
    const size_t count = n->n_inputs < 16 ? n->n_inputs : 16;
    for (size_t i = 0; i < count; i++)
        in[i] = tv_run_in(r, n, i);
    const uint32_t x = tv_aten_first(r, n);
    TV_TRY(tv_run_need(r, x));
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x));
    if (tv_aten_inplace(n))
        tv_running_at(r, y)->base = tv_run_at(r, x)->base;
    TV_TRY(tv_rule_route(r, in, count, &y, 1));
    tv_aten_out(r, n, 0, y);
    return NULL;
}

/* Values and indices along an axis: k of them, or all. */
static const tv_err *ordered(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    uint32_t axis = 0;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    const int64_t k = rule->arg == 1 ? tv_aten_int(r, n, "k", -1) : -1;
    if (s.rank && tv_shape_axis(tv_aten_int(r, n, "dim", -1), s.rank, &axis) && k >= 0)
        s.d[axis] = k;
    const bool index_only = rule->arg == 2;
    const tv_dtype own = tv_run_at(r, x)->dtype;
    const uint32_t out[2] = {tv_run_make(r, index_only ? TV_I64 : own, &s),
                             tv_run_make(r, TV_I64, &s)};
    TV_TRY(tv_rule_route(r, &x, 1, out, index_only || n->n_outputs < 2 ? 1 : 2));
    tv_aten_out(r, n, 0, out[0]);
    if (!index_only)
        tv_aten_out(r, n, 1, out[1]);
    return NULL;
}

/* kthvalue, median, mode: one value and its index along an axis. */
static const tv_err *one_of(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    return tv_aten_routed(r, n, rule);
}

static const tv_err *multinomial(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    if (!s.rank)
        return tv_run_unknown(r, n);
    s.d[s.rank - 1] = tv_aten_int(r, n, "num_samples", 1);
    const uint32_t y = tv_run_make(r, TV_I64, &s);
    TV_TRY(tv_rule_route(r, &x, 1, &y, 1));
    tv_aten_out(r, n, 0, y);
    return NULL;
}

/* bucketize(input, boundaries), searchsorted(sorted, input): a place for each number. */
static const tv_err *places(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t of = tv_run_in(r, n, (size_t)rule->arg),
                   in[2] = {tv_run_in(r, n, 0), tv_run_in(r, n, 1)};
    TV_TRY(tv_run_need(r, of));
    const uint32_t y = tv_run_make(r, tv_aten_dtype(r, n, 0, TV_I64), tv_run_shape(r, of));
    TV_TRY(tv_rule_route(r, in, 2, &y, 1));
    tv_aten_out(r, n, 0, y);
    return NULL;
}

static const tv_rule rules[] = {
    {"aten.index_select", index_select, 0},
    {"aten.gather", pick, 0},
    {"aten.take_along_dim", pick, 1},
    {"aten.take", tv_aten_routed, 0},
    {"aten.index", index, 0},
    {"aten._unsafe_index", index, 0},
    {"aten._unsafe_masked_index", tv_aten_routed, 0},
    {"aten.index_put", put, 0},
    {"aten._unsafe_index_put", put, 0},
    {"aten._index_put_impl", put, 0},
    {"aten._unsafe_masked_index_put_accumulate", put, 0},
    {"aten.index_add", put, 0},
    {"aten.index_copy", put, 0},
    {"aten.index_fill", put, 0},
    {"aten.index_reduce", put, 0},
    {"aten.put", put, 0},
    {"aten.scatter", put, 0},
    {"aten.scatter_add", put, 0},
    {"aten.scatter_reduce", put, 0},
    {"aten.masked_scatter", put, 0},
    {"aten.masked_select", tv_aten_routed, 0},
    {"aten.nonzero", tv_aten_routed, 0},
    {"aten.nonzero_numpy", tv_aten_routed, 0},
    {"aten.argwhere", tv_aten_routed, 0},
    {"aten.topk", ordered, 1},
    {"aten.sort", ordered, 0},
    {"aten.msort", ordered, 0},
    {"aten.argsort", ordered, 2},
    {"aten.kthvalue", one_of, 0},
    {"aten.median", one_of, 0},
    {"aten.nanmedian", one_of, 0},
    {"aten.mode", one_of, 0},
    {"aten.quantile", one_of, 0},
    {"aten.unique", tv_aten_routed, 0},
    {"aten._unique", tv_aten_routed, 0},
    {"aten._unique2", tv_aten_routed, 0},
    {"aten.unique_dim", tv_aten_routed, 0},
    {"aten.unique_consecutive", tv_aten_routed, 0},
    {"aten.bincount", tv_aten_routed, 0},
    {"aten.histc", tv_aten_routed, 0},
    {"aten.multinomial", multinomial, 0},
    {"aten.bucketize", places, 0},
    {"aten.searchsorted", places, 1},
    {"aten.isin", places, 0},
    {"aten.max_unpool2d", tv_aten_routed, 0},
    {"aten.max_unpool3d", tv_aten_routed, 0},
    {"aten.segment_reduce", tv_aten_routed, 0},
    {"aten.fractional_max_pool2d", tv_aten_routed, 0},
    {"aten.fractional_max_pool3d", tv_aten_routed, 0},
    {"torchvision.nms", tv_aten_routed, 0},
};

extern const tv_rule_table tv_rules_aten_index;
const tv_rule_table tv_rules_aten_index = {TV_DIALECT_ATEN, "", rules,
                                           sizeof rules / sizeof *rules};
