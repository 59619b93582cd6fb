/* ONNX: norms, recurrent layers, attention, dropout, losses. */
#include "program_onnx.h"

/* ---- norms ---- */

/* A further output that holds statistics. */
static void put_statistics(tv_running *r, const tv_node *n, size_t first, const tv_shape *shape,
                           tv_dtype dtype)
{
    for (size_t i = first; i < n->n_outputs; i++)
        tv_run_out(r, n, i, tv_run_make(r, dtype, shape));
}

static const tv_err *batch_norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    uint32_t statistics[] = {tv_run_in(r, n, 3), tv_run_in(r, n, 4)};
    tv_norm_call call = {.kind = TV_NORM_BATCH, .statistics = statistics, .n_statistics = 2};
    const tv_shape *s = tv_run_shape(r, x);
    uint32_t y = TV_NO_VALUE;
    /* A vector per sample has no channel axis of its own. */
    call.channels_last = s->rank == 1;
    TV_TRY(tv_rule_norm(r, &call, x, tv_run_in(r, n, 1), tv_run_in(r, n, 2), &y));
    int64_t channels = s->rank > 1 ? s->d[1] : 1;
    tv_shape line = tv_shape_of(1, &channels);
    put_statistics(r, n, 1, &line, tv_run_at(r, x)->dtype);
    return tv_opset_done(r, n, y);
}

enum { LAYER, RMS };

static const tv_err *layer_norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    tv_norm_call call = {.kind = rule->arg == RMS ? TV_NORM_RMS_FUSED : TV_NORM_LAYER};
    if (!tv_shape_axis(tv_node_int(n, "axis", -1), s->rank, &call.axis))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), s, NULL);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_norm(r, &call, x, tv_run_in(r, n, 1),
                        rule->arg == RMS ? TV_NO_VALUE : tv_run_in(r, n, 2), &y));
    tv_shape rows = *s;
    for (uint32_t i = call.axis; i < rows.rank; i++)
        rows.d[i] = 1;
    put_statistics(r, n, 1, &rows, TV_F32);
    return tv_opset_done(r, n, y);
}

static const tv_err *group_norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    tv_norm_call call = {.kind = TV_NORM_GROUP,
                         .instance = rule->arg != 0,
                         .groups = tv_node_int(n, "num_groups", 1)};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_norm(r, &call, tv_run_in(r, n, 0), tv_run_in(r, n, 1), tv_run_in(r, n, 2), &y));
    return tv_opset_done(r, n, y);
}

/* Norms without parameters over stated axes: as many passes as an RMS norm. */
static const tv_err *plain_norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    tv_norm_call call = {.kind = TV_NORM_RMS_FUSED};
    if (!tv_shape_axis(tv_node_int(n, "axis", rule->arg), s->rank, &call.axis))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), s, NULL);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_norm(r, &call, x, TV_NO_VALUE, TV_NO_VALUE, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *dropout(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    double p = tv_run_scalar(r, tv_run_in(r, n, 1), tv_node_float(n, "ratio", 0.5));
    uint32_t y = TV_NO_VALUE;
    if (tv_run_training(r) && p > 0)
        TV_TRY(tv_rule_dropout(r, p, x, &y));
    else
        TV_TRY(tv_rule_view(r, x, tv_run_shape(r, x), &y));
    if (tv_node_out(n, 1) != TV_NO_VALUE)
        tv_run_out(r, n, 1, tv_run_make(r, TV_BOOL, tv_run_shape(r, x)));
    return tv_opset_done(r, n, y);
}

/* ---- recurrent layers ---- */

static const tv_err *lay_out(tv_running *r, const tv_node *n, const tv_rnn_call *call, uint32_t y,
                             uint32_t h, uint32_t c)
{
    const tv_shape *s = tv_run_shape(r, y);
    int64_t steps = s->d[call->batch_first ? 1 : 0];
    int64_t batch = s->d[call->batch_first ? 0 : 1];
    int64_t directions = (int64_t)call->directions;
    int64_t hidden = (int64_t)call->hidden;
    tv_shape all = call->batch_first
                       ? tv_shape_of(4, (int64_t[]){batch, steps, directions, hidden})
                       : tv_shape_of(4, (int64_t[]){steps, directions, batch, hidden});
    TV_TRY(tv_rule_view(r, y, &all, &y));
    tv_shape state = tv_shape_of(3, (int64_t[]){batch, directions, hidden});
    if (call->batch_first) {
        TV_TRY(tv_rule_view(r, h, &state, &h));
        TV_TRY(tv_rule_view(r, c, &state, &c));
    }
    tv_run_out(r, n, 1, h);
    tv_run_out(r, n, 2, c);
    return tv_opset_done(r, n, y);
}

static const tv_err *recurrent(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t weight = tv_run_in(r, n, 2);
    TV_TRY(tv_run_need(r, weight));
    const tv_shape *w = tv_run_shape(r, weight);
    int64_t hidden = tv_node_int(n, "hidden_size", w->rank == 3 ? w->d[2] : 1);
    tv_rnn_call call = {
        .gates = rule->arg,
        .hidden = (double)hidden,
        .directions = tv_opset_is(tv_node_string(n, "direction"), "bidirectional") ? 2 : 1,
        .layers = 1,
        .batch_first = tv_node_int(n, "layout", 0) != 0,
    };
    if (w->rank != 3 || hidden < 1 || w->d[2] != hidden)
        return tv_run_fail_shapes(r, "program.recurrent",
                                  N_("the recurrence weight {x} does not fit its hidden size"), w,
                                  NULL);
    uint32_t y = TV_NO_VALUE;
    uint32_t h = TV_NO_VALUE;
    uint32_t c = TV_NO_VALUE;
    TV_TRY(tv_rule_rnn(r, &call, tv_opset_operands(r, n), n->n_inputs, &y, &h, &c));
    return lay_out(r, n, &call, y, h, c);
}

/* ---- attention ---- */

/* Earlier keys or values before the new ones. */
static const tv_err *with_past(tv_running *r, uint32_t past, uint32_t x, uint32_t *y)
{
    *y = x;
    if (past == TV_NO_VALUE)
        return NULL;
    return tv_rule_concat(r, -2, (uint32_t[]){past, x}, 2, y);
}

/* [batch, tokens, heads·dim] as [batch, heads, tokens, dim]. */
static const tv_err *split_heads(tv_running *r, uint32_t x, int64_t heads, uint32_t *y)
{
    const tv_shape *s = tv_run_shape(r, x);
    *y = x;
    if (s->rank != 3)
        return NULL;
    if (heads < 1 || s->d[2] % heads)
        return tv_run_fail_shapes(r, "program.heads", N_("{x} does not divide into heads"), s,
                                  NULL);
    tv_shape shape = tv_shape_of(4, (int64_t[]){s->d[0], heads, s->d[1], s->d[2] / heads});
    return tv_rule_view(r, x, &shape, y);
}

static const tv_err *join_heads(tv_running *r, uint32_t x, uint32_t *y)
{
    const tv_shape *s = tv_run_shape(r, x);
    tv_shape shape = tv_shape_of(3, (int64_t[]){s->d[0], s->d[2], s->d[1] * s->d[3]});
    return tv_rule_view(r, x, &shape, y);
}

/* Operator set 23. Splitting and joining heads happens within the kernel. */
static const tv_err *attention(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t in[3];
    for (size_t i = 0; i < 3; i++) {
        in[i] = tv_run_in(r, n, i);
        TV_TRY(tv_run_need(r, in[i]));
    }
    bool flat = tv_run_shape(r, in[0])->rank == 3;
    int64_t heads = tv_node_int(n, "q_num_heads", 0);
    int64_t kv_heads = tv_node_int(n, "kv_num_heads", heads);
    for (size_t i = 0; i < 3; i++)
        TV_TRY(split_heads(r, in[i], i ? kv_heads : heads, &in[i]));
    TV_TRY(with_past(r, tv_run_in(r, n, 4), in[1], &in[1]));
    TV_TRY(with_past(r, tv_run_in(r, n, 5), in[2], &in[2]));
    tv_attention_call call = {.causal = tv_node_int(n, "is_causal", 0) != 0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_attention(r, &call, in[0], in[1], in[2], tv_run_in(r, n, 3), &y));
    const tv_shape *q = tv_run_shape(r, in[0]);
    tv_shape scores =
        tv_shape_of(4, (int64_t[]){q->d[0], q->d[1], q->d[2], tv_run_shape(r, in[1])->d[2]});
    if (flat)
        TV_TRY(join_heads(r, y, &y));
    tv_run_out(r, n, 1, in[1]);
    tv_run_out(r, n, 2, in[2]);
    if (tv_node_out(n, 3) != TV_NO_VALUE)
        tv_run_out(r, n, 3, tv_run_make(r, tv_run_at(r, y)->dtype, &scores));
    return tv_opset_done(r, n, y);
}

/* A rotation of pairs by tables: one pass. */
static const tv_err *rotary(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x));
    tv_step s = {.kind = TV_STEP_BINARY};
    s.u.binary.fn = TV_FN2_MUL;
    s.u.binary.product = true;
    tv_run_push(r, &s, tv_opset_operands(r, n), n->n_inputs, &y, 1);
    return tv_opset_done(r, n, y);
}

/* ---- losses ---- */

static const tv_err *loss(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    bool reduced = !tv_opset_is(tv_node_string(n, "reduction"), "none");
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_loss(r, true, reduced, x, tv_run_in(r, n, 1), &y));
    if (rule->arg && tv_node_out(n, 1) != TV_NO_VALUE)
        tv_run_out(r, n, 1, tv_run_make(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x)));
    return tv_opset_done(r, n, y);
}

static const tv_rule rules[] = {
    {"Attention", attention, 0},
    {"BatchNormalization", batch_norm, 0},
    {"Dropout", dropout, 0},
    {"GRU", recurrent, 3},
    {"GroupNormalization", group_norm, 0},
    {"InstanceNormalization", group_norm, 1},
    {"LRN", plain_norm, 1},
    {"LSTM", recurrent, 4},
    {"LayerNormalization", layer_norm, LAYER},
    {"LpNormalization", plain_norm, -1},
    {"MeanVarianceNormalization", plain_norm, 0},
    {"NegativeLogLikelihoodLoss", loss, 0},
    {"RMSNormalization", layer_norm, RMS},
    {"RNN", recurrent, 1},
    {"RotaryEmbedding", rotary, 0},
    {"SoftmaxCrossEntropyLoss", loss, 1},
};

const tv_rule_table tv_rules_onnx_net = {TV_DIALECT_ONNX, "", rules, sizeof rules / sizeof *rules};
