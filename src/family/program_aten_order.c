/* ATen programs: what is not a kernel. Conditions, loops and wrappers that carry graphs of their
 * own
 * ("higher order": their arguments are named by their place), arithmetic on symbolic numbers, and
 * checks. */
#include "program_aten.h"

#include "program_running.h"

/* ---- graphs ---- */

static const tv_body *body_at(const tv_node *n, const char *place)
{
    const tv_attr *a = tv_node_attr(n, place);
    return a && a->kind == TV_ATTR_BODY ? a->u.body : NULL;
}

static void bind_all(tv_running *r, const tv_body *b, const uint32_t *v, size_t n)
{
    for (size_t i = 0; i < b->n_inputs && i < n; i++)
        tv_run_bind(r, b->inputs[i], v[i]);
}

/* Operands from one or several tuples, as the body takes them. */
static uint32_t *tuples(tv_running *r, const tv_node *n, const char *const *places, size_t *count)
{
    uint32_t *v = tv_new(tv_run_arena(r), uint32_t, n->n_inputs + 1);
    *count = 0;
    for (; *places; places++)
        *count += tv_aten_list(r, n, *places, v + *count, n->n_inputs - *count);
    return v;
}

static void hand_out(tv_running *r, const tv_node *n, const tv_body *b)
{
    for (size_t i = 0; i < n->n_outputs && i < b->n_outputs; i++)
        if (b->outputs[i] != TV_NO_VALUE)
            tv_aten_out(r, n, i, tv_run_of(r, b->outputs[i]));
}

/* cond(pred, true_graph, false_graph, operands) */
static const tv_err *cond(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const tv_body *yes = body_at(n, "1"), *no = body_at(n, "2"), *chosen = NULL;
    size_t count = 0;
    if (!yes || !no)
        return tv_run_unknown(r, n);
    const uint32_t *v = tuples(r, n, (const char *const[]){"3", NULL}, &count);
    bind_all(r, yes, v, count);
    bind_all(r, no, v, count);
    const uint32_t flag = tv_aten_in(r, n, "0");
    const double known = flag == TV_NO_VALUE ? -1 : tv_run_scalar(r, flag, -1);
    TV_TRY(tv_run_branch(r, yes, no, known < 0 ? -1 : known != 0, &chosen));
    hand_out(r, n, chosen);
    return NULL;
}

/* while_loop(cond_graph, body_graph, carried, further operands) */
static const tv_err *while_loop(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const tv_body *test = body_at(n, "0"), *body = body_at(n, "1");
    size_t count = 0;
    if (!test || !body)
        return tv_run_unknown(r, n);
    const uint32_t *v = tuples(r, n, (const char *const[]){"2", "3", NULL}, &count);
    const double trips = tv_run_trips(r, -1);
    bind_all(r, test, v, count);
    TV_TRY(tv_run_body(r, test, trips));
    bind_all(r, body, v, count);
    TV_TRY(tv_run_body(r, body, trips));
    hand_out(r, n, body);
    return NULL;
}

/* The i-th element of the first axis, as one run of a body reads it. */
static const tv_err *one_of_each(tv_running *r, uint32_t *v, size_t n, double *trips)
{
    for (size_t i = 0; i < n; i++) {
        TV_TRY(tv_run_need(r, v[i]));
        const tv_shape *s = tv_run_shape(r, v[i]);
        if (!s->rank)
            continue;
        *trips = (double)s->d[0];
        TV_TRY(tv_rule_select(r, 0, 0, true, v[i], &v[i]));
    }
    return NULL;
}

/* What the runs of a body put out one by one, as one tensor. */
static void stack_out(tv_running *r, const tv_node *n, const tv_body *b, size_t from, double trips)
{
    for (size_t i = from; i < n->n_outputs && i < b->n_outputs; i++) {
        const uint32_t x = b->outputs[i] == TV_NO_VALUE ? TV_NO_VALUE : tv_run_of(r, b->outputs[i]);
        if (x == TV_NO_VALUE)
            continue;
        const tv_run_value *v = tv_run_at(r, x);
        tv_shape s = {.rank = 1, .d = {(int64_t)trips}};
        bool fits = true;
        for (uint32_t k = 0; k < v->shape.rank && fits; k++)
            fits = tv_shape_push(&s, v->shape.d[k]);
        const uint32_t y = tv_run_make(r, v->dtype, fits ? &s : &v->shape);
        tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY}, &x, 1, &y, 1);
        tv_aten_out(r, n, i, y);
    }
}

/* map(body, sequences, further operands) */
static const tv_err *map(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const tv_body *body = body_at(n, "0");
    size_t count = 0, all = 0;
    double trips = 1;
    if (!body)
        return tv_run_unknown(r, n);
    (void)tuples(r, n, (const char *const[]){"1", NULL}, &count);
    uint32_t *v = tuples(r, n, (const char *const[]){"1", "2", NULL}, &all);
    TV_TRY(one_of_each(r, v, count, &trips));
    bind_all(r, body, v, all);
    TV_TRY(tv_run_body(r, body, trips));
    stack_out(r, n, body, 0, trips);
    return NULL;
}

/* scan(body, carried, sequences, further operands): the carried come out first. */
static const tv_err *scan(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const tv_body *body = body_at(n, "0");
    size_t carried = 0, with = 0, all = 0;
    double trips = 1;
    if (!body)
        return tv_run_unknown(r, n);
    (void)tuples(r, n, (const char *const[]){"1", NULL}, &carried);
    (void)tuples(r, n, (const char *const[]){"1", "2", NULL}, &with);
    uint32_t *v = tuples(r, n, (const char *const[]){"1", "2", "3", NULL}, &all);
    TV_TRY(one_of_each(r, v + carried, with - carried, &trips));
    bind_all(r, body, v, all);
    TV_TRY(tv_run_body(r, body, trips));
    for (size_t i = 0; i < carried && i < body->n_outputs && i < n->n_outputs; i++)
        if (body->outputs[i] != TV_NO_VALUE)
            tv_aten_out(r, n, i, tv_run_of(r, body->outputs[i]));
    stack_out(r, n, body, carried, trips);
    return NULL;
}

static const tv_err *associative_scan(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    for (size_t i = 0; i < n->n_outputs; i++) {
        uint32_t y = TV_NO_VALUE;
        TV_TRY(tv_rule_cumulative(r, tv_run_in(r, n, i), &y));
        tv_aten_out(r, n, i, y);
    }
    return NULL;
}

/* A graph that runs once, in other circumstances: without gradients, under autocast, as a
 * checkpoint. Its operands are all tensors in order. */
static const tv_err *wrapped(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const tv_body *body = NULL;
    for (size_t i = 0; i < n->n_attrs && !body; i++)
        if (n->attrs[i].kind == TV_ATTR_BODY)
            body = n->attrs[i].u.body;
    if (!body)
        return tv_run_unknown(r, n);
    uint32_t *v = tv_new(tv_run_arena(r), uint32_t, n->n_inputs + 1);
    for (size_t i = 0; i < n->n_inputs; i++)
        v[i] = tv_run_in(r, n, i);
    bind_all(r, body, v, n->n_inputs);
    TV_TRY(tv_run_body(r, body, 1));
    hand_out(r, n, body);
    return NULL;
}

/* ---- nothing ---- */

/* Symbolic numbers are expressions over the inputs' sizes and are worked out where they are used;
 * checks cost nothing that counts. */
static const tv_err *nothing(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_aten_rest(r, n, 0, TV_NO_VALUE);
    return NULL;
}

static const tv_rule rules[] = {
    {"higher_order.cond", cond, 0},
    {"higher_order.while_loop", while_loop, 0},
    {"higher_order.map", map, 0},
    {"higher_order.map_impl", map, 0},
    {"higher_order.scan", scan, 0},
    {"higher_order.associative_scan", associative_scan, 0},
    {"higher_order.wrap", wrapped, 0},
    {"higher_order.wrap_with_set_grad_enabled", wrapped, 0},
    {"higher_order.wrap_with_autocast", wrapped, 0},
    {"higher_order.wrap_activation_checkpoint", wrapped, 0},
    {"higher_order.tag_activation_checkpoint", wrapped, 0},
    {"higher_order.invoke_subgraph", wrapped, 0},
    {"higher_order.hints_wrapper", wrapped, 0},
    {"higher_order.strict_mode", wrapped, 0},
    {"higher_order.run_const_graph", wrapped, 0},
    {"aten.sym_size", nothing, 0},
    {"aten.sym_stride", nothing, 0},
    {"aten.sym_numel", nothing, 0},
    {"aten.sym_storage_offset", nothing, 0},
    {"aten.sym_is_contiguous", nothing, 0},
    {"aten.sym_constrain_range", nothing, 0},
    {"aten.sym_constrain_range_for_size", nothing, 0},
    {"aten._functional_sym_constrain_range", nothing, 0},
    {"aten._functional_sym_constrain_range_for_size", nothing, 0},
    {"aten._make_dep_token", nothing, 0},
    {"aten._assert_scalar", nothing, 0},
    {"aten._assert_async", nothing, 0},
    {"aten._functional_assert_scalar", nothing, 0},
    {"aten._functional_assert_async", nothing, 0},
    {"aten._assert_tensor_metadata", nothing, 0},
    {"aten.item", nothing, 0},
    {"aten._local_scalar_dense", nothing, 0},
    {"aten.is_nonzero", nothing, 0},
    {"aten.size", nothing, 0},
    {"aten.numel", nothing, 0},
    {"aten._is_all_true", nothing, 0},
    {"profiler._record_function_enter_new", nothing, 0},
    {"profiler._record_function_exit", nothing, 0},
    {"torch._C._set_grad_enabled", nothing, 0},
    {"torch.sym_float", nothing, 0},
    {"torch.sym_int", nothing, 0},
    {"torch.sym_max", nothing, 0},
    {"torch.sym_min", nothing, 0},
    {"torch.sym_not", nothing, 0},
    {"torch.sym_ite", nothing, 0},
    {"torch.sym_sum", nothing, 0},
    {"torch._sym_sqrt", nothing, 0},
    {"torch._check", nothing, 0},
    {"math.ceil", nothing, 0},
    {"math.floor", nothing, 0},
    {"math.trunc", nothing, 0},
    {"math.sqrt", nothing, 0},
    {"math.pow", nothing, 0},
    {"math.log2", nothing, 0},
    {"builtins.max", nothing, 0},
    {"builtins.min", nothing, 0},
    {"builtins.round", nothing, 0},
    {"builtins.abs", nothing, 0},
    {"_operator.add", nothing, 0},
    {"_operator.sub", nothing, 0},
    {"_operator.mul", nothing, 0},
    {"_operator.floordiv", nothing, 0},
    {"_operator.truediv", nothing, 0},
    {"_operator.mod", nothing, 0},
    {"_operator.pow", nothing, 0},
    {"_operator.neg", nothing, 0},
    {"_operator.pos", nothing, 0},
    {"_operator.eq", nothing, 0},
    {"_operator.ne", nothing, 0},
    {"_operator.lt", nothing, 0},
    {"_operator.le", nothing, 0},
    {"_operator.gt", nothing, 0},
    {"_operator.ge", nothing, 0},
    {"_operator.and_", nothing, 0},
    {"_operator.or_", nothing, 0},
    {"_operator.not_", nothing, 0},
    {"_operator.lshift", nothing, 0},
    {"_operator.rshift", nothing, 0},
};

extern const tv_rule_table tv_rules_aten_order;
const tv_rule_table tv_rules_aten_order = {TV_DIALECT_ATEN, "", rules,
                                           sizeof rules / sizeof *rules};
