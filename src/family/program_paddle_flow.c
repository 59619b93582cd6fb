/* Paddle's control flow, what runs between cards, and what only training does: gradients and
 * optimizers of a program that was saved with them cost nothing here, since a training job reckons
 * its own. */
#include "program_paddle.h"

#include <math.h>

/* ---- values that pass through ---- */

/* Every output without a step: gradients have the shape of what they belong to where the program
 * does not say. */
PD_RULE(nothing)
{
    (void)rule;
    const uint32_t first = tv_run_in(r, n, 0);
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] == TV_NO_VALUE)
            continue;
        const tv_value *v = &tv_run_program(r)->values[n->outputs[i]];
        tv_shape s = first == TV_NO_VALUE ? (tv_shape){0} : *tv_run_shape(r, first);
        for (uint32_t k = 0; v->shaped && v->rank <= TV_LIMIT_RANK && k < v->rank; k++)
            s.d[k] = v->dims[k].size;
        s.rank = v->shaped && v->rank <= TV_LIMIT_RANK ? v->rank : s.rank;
        tv_run_out(r, n, i, tv_pd_make_guess(r, v->dtype, &s));
    }
    return NULL;
}

/* ---- loops ---- */

static const tv_node *maker_of(const tv_body *b, uint32_t value)
{
    for (size_t i = b->n_nodes; i-- > 0;)
        for (size_t k = 0; k < b->nodes[i].n_outputs; k++)
            if (b->nodes[i].outputs[k] == value)
                return &b->nodes[i];
    return NULL;
}

static double step_of(tv_running *r, const tv_body *b, uint32_t counter)
{
    const tv_node *n = maker_of(b, counter);
    if (!n)
        return 0;
    if (tv_str_starts(n->op, TV_S("increment")))
        return tv_pd_attr_num(r, n, "step|value", 1);
    if (tv_str_starts(n->op, TV_S("scale")))
        return tv_pd_attr_num(r, n, "bias", 0);
    return tv_str_is(n->op, "elementwise_add") || tv_str_is(n->op, "add") ||
                   tv_str_starts(n->op, TV_S("assign"))
               ? 1
               : 0;
}

/* Trips of "i < limit" with a counter that starts at a known number; -1: not known. */
static double trips_of(double start, double limit, double step, bool equal)
{
    if (isnan(start) || isnan(limit) || step <= 0)
        return -1;
    const double trips = equal ? floor((limit - start) / step) + 1 : ceil((limit - start) / step);
    return fmax(trips, 0);
}

/* ProgramDesc: the body writes outer variables by name. */
static double named_trips(tv_running *r, const tv_node *n, const tv_body *b)
{
    const uint32_t condition = tv_node_in_slot(n, "Condition", 0);
    const tv_node *test = maker_of(b, condition);
    if (!test || !(tv_str_is(test->op, "less_than") || tv_str_is(test->op, "less_equal")))
        return -1;
    const uint32_t i = tv_node_in_slot(test, "X", 0), limit = tv_node_in_slot(test, "Y", 0);
    if (i == TV_NO_VALUE || limit == TV_NO_VALUE)
        return -1;
    const uint32_t from = tv_run_of(r, i), to = tv_run_of(r, limit);
    if (from == TV_NO_VALUE || to == TV_NO_VALUE)
        return -1;
    return trips_of(tv_run_scalar(r, from, (double)NAN), tv_run_scalar(r, to, (double)NAN),
                    step_of(r, b, i), tv_str_is(test->op, "less_equal"));
}

/* The constant that a node of the body puts out: full's value. */
static double constant_of(tv_running *r, const tv_body *b, uint32_t value)
{
    const tv_node *n = maker_of(b, value);
    if (n && tv_str_is(n->op, "full"))
        return tv_pd_attr_num(r, n, "value", (double)NAN);
    if (n)
        return (double)NAN;
    const uint32_t v = tv_run_of(r, value);
    return v == TV_NO_VALUE ? (double)NAN : tv_run_scalar(r, v, (double)NAN);
}

/* PIR: the body yields the next condition, less_than(next counter, limit). */
static double yielded_trips(tv_running *r, const tv_body *b)
{
    const tv_node *test = b->n_outputs ? maker_of(b, b->outputs[0]) : NULL;
    if (!test || test->n_inputs < 2 ||
        !(tv_str_is(test->op, "less_than") || tv_str_is(test->op, "less_equal")))
        return -1;
    const tv_node *next = maker_of(b, test->inputs[0]);
    const uint32_t counter = next && next->n_inputs ? next->inputs[0] : TV_NO_VALUE;
    if (counter == TV_NO_VALUE)
        return -1;
    const uint32_t from = tv_run_of(r, counter);
    return trips_of(from == TV_NO_VALUE ? (double)NAN : tv_run_scalar(r, from, (double)NAN),
                    constant_of(r, b, test->inputs[1]), step_of(r, b, test->inputs[0]),
                    tv_str_is(test->op, "less_equal"));
}

static const tv_body *body_of(const tv_node *n, const char *name, size_t i)
{
    const tv_attr *a = tv_node_attr(n, name);
    if (a && a->kind == TV_ATTR_BODY)
        return i == 0 ? a->u.body : NULL;
    return a && a->kind == TV_ATTR_BODIES && i < a->n ? a->u.bodies[i] : NULL;
}

/* The body runs once for its shapes and counts as often as it turns. */
static const tv_err *run_while_pir(tv_running *r, const tv_node *n, const tv_body *b)
{
    for (size_t i = 0; i < b->n_inputs; i++)
        tv_run_bind(r, b->inputs[i], tv_run_in(r, n, i + 1));
    const double trips = tv_run_trips(r, yielded_trips(r, b));
    if (trips > 0)
        TV_TRY(tv_run_body(r, b, trips));
    for (size_t i = 0; i < n->n_outputs; i++) {
        const bool ran = trips > 0 && i + 1 < b->n_outputs;
        const uint32_t v = ran ? tv_run_of(r, b->outputs[i + 1]) : tv_run_in(r, n, i + 1);
        if (v != TV_NO_VALUE)
            tv_run_out(r, n, i, v);
    }
    return NULL;
}

PD_RULE(while_loop)
{
    (void)rule;
    const tv_body *region = body_of(n, "regions", 0), *block = body_of(n, "sub_block", 0);
    if (region)
        return run_while_pir(r, n, region);
    if (!block)
        return tv_run_unknown(r, n);
    const double trips = tv_run_trips(r, named_trips(r, n, block));
    return trips > 0 ? tv_run_body(r, block, trips) : NULL;
}

/* ---- branches ---- */

PD_RULE(branch)
{
    const uint32_t condition = tv_run_in(r, n, 0);
    const tv_body *yes = body_of(n, "regions", 0), *no = body_of(n, "regions", 1);
    const tv_body *chosen = NULL;
    (void)rule;
    if (!yes || !no)
        return tv_run_unknown(r, n);
    const double known = condition == TV_NO_VALUE ? -1 : tv_run_scalar(r, condition, -1);
    TV_TRY(tv_run_branch(r, yes, no, known < 0 ? -1 : known != 0, &chosen));
    for (size_t i = 0; i < n->n_outputs && i < chosen->n_outputs; i++) {
        const uint32_t v = tv_run_of(r, chosen->outputs[i]);
        if (v != TV_NO_VALUE)
            tv_run_out(r, n, i, v);
    }
    return NULL;
}

/* One branch of a condition; its other one is another operator with the condition turned round.
 * Where the condition is not known both count. */
PD_RULE(conditional_block)
{
    uint32_t condition = tv_run_in_slot(r, n, "Cond", 0);
    const tv_body *b = body_of(n, "sub_block", 0);
    (void)rule;
    if (condition == TV_NO_VALUE)
        condition = tv_run_in_slot(r, n, "Condition", 0);
    if (!b)
        return tv_run_unknown(r, n);
    const double known = condition == TV_NO_VALUE ? -1 : tv_run_scalar(r, condition, -1);
    if (known == 0)
        return NULL;
    if (known < 0)
        tv_run_warn(r, TV_TEXT0("paddle.branches",
                                N_("which branch a condition takes is not known: both count")));
    return tv_run_body(r, b, 1);
}

/* Whichever of the operands was written. */
PD_RULE(select_input)
{
    const tv_pd_list x = tv_pd_in_list(r, n, "X", PD_NONE);
    (void)rule;
    if (x.n == 0)
        return tv_run_need(r, TV_NO_VALUE);
    tv_pd_out(r, n, "Out", 0, x.v[x.n - 1]);
    return NULL;
}

PD_RULE(run_block)
{
    const tv_body *b = body_of(n, "regions", 0);
    (void)rule;
    b = b ? b : body_of(n, "sub_block", 0);
    if (!b)
        return tv_run_unknown(r, n);
    TV_TRY(tv_run_body(r, b, 1));
    for (size_t i = 0; i < n->n_outputs && i < b->n_outputs; i++)
        tv_run_out(r, n, i, tv_run_of(r, b->outputs[i]));
    return NULL;
}

/* ---- between cards ---- */

/* Collectives leave one card's shape, but for gathers, which the program's declaration tells. */
PD_RULE(collective)
{
    const uint32_t x = tv_pd_main(r, n);
    tv_shape s = {0}, declared = {0};
    tv_dtype dtype = TV_DTYPE_UNKNOWN;
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    s = *tv_run_shape(r, x);
    if (tv_pd_declared(r, n, "Out", 0, 0, &declared, &dtype) && declared.rank == s.rank)
        for (uint32_t i = 0; i < s.rank; i++)
            s.d[i] = declared.d[i] >= 0 ? declared.d[i] : s.d[i];
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &s, &x, 1, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

#define NOTHING(name)                                                                              \
    {                                                                                              \
        name, nothing, 0                                                                           \
    }
#define COLLECTIVE(name)                                                                           \
    {                                                                                              \
        name, collective, 0                                                                        \
    }

static const tv_rule rules[] = {
    {"while", while_loop, 0},
    {"if", branch, 0},
    {"conditional_block", conditional_block, 0},
    {"conditional_block_infer", conditional_block, 0},
    {"select_input", select_input, 0},
    {"pylayer", run_block, 0},
    {"run_program", run_block, 0},
    NOTHING("select_output"),
    NOTHING("feed"),
    NOTHING("fetch"),
    NOTHING("fetch_v2"),
    NOTHING("fetch_barrier"),
    NOTHING("assert"),
    NOTHING("has_elements"),
    NOTHING("get_places"),
    NOTHING("seed"),
    NOTHING("coalesce_tensor"),
    NOTHING("nop"),
    NOTHING("delete_var"),
    NOTHING("load"),
    NOTHING("load_combine"),
    NOTHING("save"),
    NOTHING("save_combine"),
    NOTHING("stack_create"),
    NOTHING("tuple_push"),
    NOTHING("tuple_pop"),
    /* every gradient: program_rules.c looks here for "..._grad" */
    NOTHING("*_grad"),
    NOTHING("sgd"),
    NOTHING("momentum"),
    NOTHING("merged_momentum"),
    NOTHING("lars_momentum"),
    NOTHING("adam"),
    NOTHING("adamw"),
    NOTHING("merged_adam"),
    NOTHING("fused_adam"),
    NOTHING("adamax"),
    NOTHING("adagrad"),
    NOTHING("decayed_adagrad"),
    NOTHING("adadelta"),
    NOTHING("rmsprop"),
    NOTHING("ftrl"),
    NOTHING("lamb"),
    NOTHING("rprop"),
    NOTHING("asgd"),
    NOTHING("dpsgd"),
    NOTHING("average_accumulates"),
    NOTHING("check_finite_and_unscale"),
    NOTHING("update_loss_scaling"),
    NOTHING("check_numerics"),
    NOTHING("accuracy"),
    NOTHING("auc"),
    NOTHING("precision_recall"),
    NOTHING("lookup_table_dequant"),
    COLLECTIVE("c_identity"),
    COLLECTIVE("c_allreduce_sum"),
    COLLECTIVE("c_allreduce_max"),
    COLLECTIVE("c_allgather"),
    COLLECTIVE("c_reduce_sum"),
    COLLECTIVE("c_reducescatter"),
    COLLECTIVE("c_broadcast"),
    COLLECTIVE("c_concat"),
    COLLECTIVE("c_split"),
    COLLECTIVE("c_sync_calc_stream"),
    COLLECTIVE("c_sync_comm_stream"),
    COLLECTIVE("mp_allreduce_sum"),
    COLLECTIVE("all_reduce"),
    COLLECTIVE("all_gather"),
    COLLECTIVE("reduce_scatter"),
    COLLECTIVE("all_to_all"),
    COLLECTIVE("global_scatter"),
    COLLECTIVE("global_gather"),
    COLLECTIVE("partial_allgather"),
    COLLECTIVE("broadcast"),
    COLLECTIVE("reduce"),
    COLLECTIVE("p_recv"),
    COLLECTIVE("p_send"),
    COLLECTIVE("send_v2"),
    COLLECTIVE("recv_v2"),
    COLLECTIVE("barrier"),
};

const tv_rule_table tv_rules_paddle_flow = {TV_DIALECT_PADDLE, "", rules,
                                            sizeof rules / sizeof *rules};
