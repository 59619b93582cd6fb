/* ONNX: look-ups, scatters, sorting and other moves that depend on data. */
#include "program_onnx.h"

static const tv_err *route_to(tv_running *r, const tv_node *n, tv_dtype dtype,
                              const tv_shape *shape)
{
    uint32_t y = tv_run_make(r, dtype, shape);
    TV_TRY(tv_rule_route(r, tv_opset_operands(r, n), n->n_inputs, &y, 1));
    return tv_opset_done(r, n, y);
}

static const tv_err *gather(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(
        tv_rule_gather(r, tv_node_int(n, "axis", 0), tv_run_in(r, n, 0), tv_run_in(r, n, 1), &y));
    return tv_opset_done(r, n, y);
}

/* The result has the indices' shape. */
static const tv_err *gather_elements(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t ids = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, ids));
    return route_to(r, n, tv_run_at(r, x)->dtype, tv_run_shape(r, ids));
}

/* The last axis of the indices picks in as many axes of the data behind the batch axes. */
static const tv_err *gather_nd(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t ids = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, ids));
    const tv_shape *s = tv_run_shape(r, x);
    const tv_shape *i = tv_run_shape(r, ids);
    int64_t batch = tv_node_int(n, "batch_dims", 0);
    int64_t depth = i->rank ? i->d[i->rank - 1] : 0;
    if (!i->rank || batch < 0 || batch + depth > s->rank || batch > (int64_t)i->rank - 1)
        return tv_run_fail_shapes(r, "program.gather-nd",
                                  N_("indices {y} point outside of the axes of {x}"), s, i);
    tv_shape shape = tv_shape_of(i->rank - 1, i->d);
    for (uint32_t k = (uint32_t)(batch + depth); k < s->rank; k++)
        if (!tv_shape_push(&shape, s->d[k]))
            return tv_run_fail_shapes(r, "program.gather-nd",
                                      N_("indices {y} point outside of the axes of {x}"), s, i);
    return route_to(r, n, tv_run_at(r, x)->dtype, &shape);
}

/* A copy of the first operand with some elements replaced. */
static const tv_err *scatter(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    return route_to(r, n, tv_run_at(r, x)->dtype, tv_run_shape(r, x));
}

/* ---- results whose size depends on data ---- */

static const tv_err *compress(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t which = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, which));
    tv_shape shape = *tv_run_shape(r, x);
    uint32_t at = 0;
    bool along = tv_node_attr(n, "axis") != NULL;
    if (along && !tv_shape_axis(tv_node_int(n, "axis", 0), shape.rank, &at))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), &shape, NULL);
    int64_t total = tv_shape_count(&shape);
    if (!along)
        shape = tv_shape_of(1, &total);
    const double *flags = tv_run_data(r, which);
    int64_t some = 0;
    int64_t count = tv_shape_count(tv_run_shape(r, which));
    for (int64_t i = 0; flags && i < count; i++)
        some += flags[i] != 0;
    if (flags) {
        shape.d[at] = some;
        return route_to(r, n, tv_run_at(r, x)->dtype, &shape);
    }
    return tv_opset_guess(r, n, &tv_run_at(r, x)->dtype, &shape, 1);
}

static const tv_err *non_zero(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    const double *data = tv_run_data(r, x);
    int64_t count = tv_shape_count(s);
    int64_t some = 0;
    for (int64_t i = 0; data && i < count; i++)
        some += data[i] != 0;
    tv_shape shape = tv_shape_of(2, (int64_t[]){s->rank ? s->rank : 1, data ? some : count});
    if (!data)
        return tv_opset_guess(r, n, (tv_dtype[]){TV_I64}, &shape, 1);
    uint32_t y = tv_run_make(r, TV_I64, &shape);
    /* The places of a short vector's non-zero elements are shape arithmetic too. */
    if (s->rank <= 1 && some <= (int64_t)TV_LIMIT_PROGRAM_CONST_ELEMENTS) {
        double *places = tv_new(tv_run_arena(r), double, some ? (size_t)some : 1);
        size_t at = 0;
        for (int64_t i = 0; i < count; i++)
            if (data[i] != 0)
                places[at++] = (double)i;
        tv_run_set_data(r, y, places);
    }
    TV_TRY(tv_rule_route(r, &x, 1, &y, 1));
    return tv_opset_done(r, n, y);
}

static const tv_err *unique(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = *tv_run_shape(r, x);
    uint32_t at = 0;
    int64_t total = tv_shape_count(&shape);
    if (!tv_node_attr(n, "axis"))
        shape = tv_shape_of(1, &total);
    else if (!tv_shape_axis(tv_node_int(n, "axis", 0), shape.rank, &at))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), &shape, NULL);
    tv_shape line = tv_shape_of(1, &shape.d[at]);
    tv_dtype dtype = tv_run_at(r, x)->dtype;
    return tv_opset_guess(r, n, (tv_dtype[]){dtype, TV_I64, TV_I64, TV_I64},
                          (tv_shape[]){shape, line, line, line},
                          n->n_outputs < 4 ? n->n_outputs : 4);
}

/* As many boxes as may be chosen, for each image and class. */
static const tv_err *nms(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t boxes = tv_run_in(r, n, 0);
    uint32_t scores = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, boxes));
    TV_TRY(tv_run_need(r, scores));
    const tv_shape *s = tv_run_shape(r, scores);
    if (s->rank != 3)
        return tv_run_fail_shapes(r, "program.nms", N_("scores have three axes, not {x}"), s, NULL);
    double most = tv_run_scalar(r, tv_run_in(r, n, 2), (double)s->d[2]);
    most = most < (double)s->d[2] ? most : (double)s->d[2];
    double rows = most * (double)s->d[0] * (double)s->d[1];
    tv_shape shape = tv_shape_of(2, (int64_t[]){rows < 1e12 ? (int64_t)rows : 0, 3});
    return tv_opset_guess(r, n, (tv_dtype[]){TV_I64}, &shape, 1);
}

static const tv_err *top_k(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = *tv_run_shape(r, x);
    uint32_t at = 0;
    if (!tv_shape_axis(tv_node_int(n, "axis", -1), shape.rank, &at))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), &shape, NULL);
    int64_t all = shape.d[at];
    double k = tv_run_scalar(r, tv_run_in(r, n, 1), (double)tv_node_int(n, "k", -1));
    tv_dtype types[] = {tv_run_at(r, x)->dtype, TV_I64};
    if (k < 0)
        return tv_opset_guess(r, n, types, (tv_shape[]){shape, shape}, 2);
    shape.d[at] = k < (double)all ? (int64_t)k : all;
    uint32_t y[] = {tv_run_make(r, types[0], &shape), tv_run_make(r, types[1], &shape)};
    TV_TRY(tv_rule_route(r, tv_opset_operands(r, n), n->n_inputs, y, 2));
    tv_run_out(r, n, 1, y[1]);
    return tv_opset_done(r, n, y[0]);
}

static const tv_err *one_hot(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t ids = tv_run_in(r, n, 0);
    uint32_t values = tv_run_in(r, n, 2);
    TV_TRY(tv_run_need(r, ids));
    TV_TRY(tv_run_need(r, values));
    const tv_shape *s = tv_run_shape(r, ids);
    double depth = tv_run_scalar(r, tv_run_in(r, n, 1), -1);
    uint32_t at = 0;
    tv_shape shape = {0};
    if (!tv_shape_axis(tv_node_int(n, "axis", -1), s->rank + 1, &at) ||
        !tv_shape_unsqueeze(s, (int64_t[]){at}, 1, &shape))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), s, NULL);
    shape.d[at] = depth >= 0 && depth < 1e12 ? (int64_t)depth : 1;
    tv_dtype dtype = tv_run_at(r, values)->dtype;
    if (depth < 0)
        return tv_opset_guess(r, n, &dtype, &shape, 1);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_copy(r, dtype, &shape, &ids, 1, &y));
    return tv_opset_done(r, n, y);
}

static const tv_rule rules[] = {
    {"Compress", compress, 0},
    {"Gather", gather, 0},
    {"GatherElements", gather_elements, 0},
    {"GatherND", gather_nd, 0},
    {"NonMaxSuppression", nms, 0},
    {"NonZero", non_zero, 0},
    {"OneHot", one_hot, 0},
    {"Scatter", scatter, 0},
    {"ScatterElements", scatter, 0},
    {"ScatterND", scatter, 0},
    {"TensorScatter", scatter, 0},
    {"TopK", top_k, 0},
    {"Unique", unique, 0},
};

const tv_rule_table tv_rules_onnx_index = {TV_DIALECT_ONNX, "", rules,
                                           sizeof rules / sizeof *rules};
