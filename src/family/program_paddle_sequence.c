/* Paddle's recurrent layers and its operators on sequences without padding: of those the first
 * axis holds the tokens of all sequences together, and where one ends is data. One sequence is
 * taken where the number of them matters. */
#include "program_paddle.h"

#include <math.h>

static int64_t axis_of(const tv_shape *s, uint32_t i)
{
    return i < s->rank ? s->d[i] : 1;
}

static uint32_t matrix(tv_running *r, tv_dtype dtype, int64_t rows, int64_t columns)
{
    return tv_run_make(r, dtype, &(tv_shape){.rank = 2, .d = {rows, columns}});
}

static double gates_of(tv_str mode)
{
    return tv_str_is(mode, "GRU") ? 3 : tv_str_starts(mode, TV_S("RNN")) ? 1 : 4;
}

/* Input [steps, batch, width]; states and weights in lists. */
PD_RULE(rnn)
{
    const uint32_t x = tv_pd_in(r, n, "Input", 0);
    const tv_pd_list states = tv_pd_in_list(r, n, "PreState", 1);
    const tv_pd_list weights = tv_pd_in_list(r, n, "WeightList", 2);
    uint32_t y = TV_NO_VALUE, h = TV_NO_VALUE, c = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const tv_str mode = tv_node_string(n, "mode");
    const tv_rnn_call call = {.gates = gates_of(mode),
                              .hidden = tv_pd_attr_num(r, n, "hidden_size", 1),
                              .layers = tv_pd_attr_num(r, n, "num_layers", 1),
                              .directions = tv_pd_attr_num(r, n, "is_bidirec", 0) != 0 ? 2 : 1};
    uint32_t *operands = tv_new(tv_run_arena(r), uint32_t, 1 + weights.n + states.n);
    size_t count = 0;
    operands[count++] = x;
    for (size_t i = 0; i < weights.n; i++)
        operands[count++] = weights.v[i];
    for (size_t i = 0; i < states.n; i++)
        operands[count++] = states.v[i];
    TV_TRY(tv_rule_rnn(r, &call, operands, count, &y, &h, &c));
    tv_pd_out(r, n, "Out", 0, y);
    tv_pd_out_at(r, n, "State", 2, 0, h);
    tv_pd_out_at(r, n, "State", 2, 1, c);
    return NULL;
}

/* cudnn_lstm: one weight for all. */
PD_RULE(cudnn_lstm)
{
    const uint32_t x = tv_pd_in(r, n, "Input", 0);
    uint32_t y = TV_NO_VALUE, h = TV_NO_VALUE, c = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const tv_rnn_call call = {.gates = 4,
                              .hidden = tv_pd_attr_num(r, n, "hidden_size", 1),
                              .layers = tv_pd_attr_num(r, n, "num_layers", 1),
                              .directions = tv_pd_attr_num(r, n, "is_bidirec", 0) != 0 ? 2 : 1};
    TV_TRY(tv_rule_rnn(r, &call, &x, 1, &y, &h, &c));
    tv_pd_out(r, n, "Out", 0, y);
    tv_pd_out(r, n, "LastH", 1, h);
    tv_pd_out(r, n, "LastC", 2, c);
    return NULL;
}

/* A recurrence over tokens whose input was projected before: Input [tokens, gates·hidden],
 * Weight [hidden, gates·hidden]. arg: gates. */
PD_RULE(projected_rnn)
{
    const uint32_t x = tv_pd_in(r, n, "Input", 0), w = tv_pd_in(r, n, "Weight", 1);
    static const char *const states[] = {"Cell", "BatchCellPreAct", "BatchHidden",
                                         "BatchResetHiddenPrev"};
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w));
    const tv_shape *s = tv_run_shape(r, x);
    const tv_dtype t = tv_run_at(r, x)->dtype;
    const int64_t tokens = axis_of(s, 0), hidden = axis_of(tv_run_shape(r, w), 0);
    const uint32_t y = matrix(r, t, tokens, hidden);
    tv_step step = {.kind = TV_STEP_RNN};
    step.u.rnn.gates = rule->arg;
    step.u.rnn.hidden = (double)hidden;
    step.u.rnn.directions = step.u.rnn.layers = step.u.rnn.batch = 1;
    step.u.rnn.steps = (double)tokens;
    tv_run_push(r, &step, (uint32_t[]){x, w, tv_pd_in(r, n, "Bias", 2)}, 3, &y, 1);
    tv_pd_out(r, n, "Hidden", 0, y);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        tv_pd_out(r, n, states[i], PD_NONE, matrix(r, t, tokens, hidden));
    tv_pd_out(r, n, "BatchGate", PD_NONE, matrix(r, t, tokens, rule->arg * hidden));
    return NULL;
}

/* fusion_gru, fusion_lstm: the projection is part of it. */
PD_RULE(fused_rnn)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), wx = tv_pd_in(r, n, "WeightX", 1);
    const uint32_t wh = tv_pd_in(r, n, "WeightH", 2);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, wx));
    TV_TRY(tv_run_need(r, wh));
    const int64_t tokens = axis_of(tv_run_shape(r, x), 0);
    const int64_t hidden = axis_of(tv_run_shape(r, wh), 0);
    const tv_dtype t = tv_run_at(r, x)->dtype;
    const uint32_t y = matrix(r, t, tokens, hidden);
    tv_step step = {.kind = TV_STEP_RNN};
    step.u.rnn.gates = rule->arg;
    step.u.rnn.hidden = (double)hidden;
    step.u.rnn.input = (double)axis_of(tv_run_shape(r, wx), 0);
    step.u.rnn.directions = step.u.rnn.layers = step.u.rnn.batch = 1;
    step.u.rnn.steps = (double)tokens;
    tv_run_push(r, &step, (uint32_t[]){x, wx, wh}, 3, &y, 1);
    tv_pd_out(r, n, "Hidden", 0, y);
    tv_pd_out(r, n, "Cell", PD_NONE, matrix(r, t, tokens, hidden));
    return NULL;
}

/* One step for a batch: Input [b, gates·hidden], HiddenPrev [b, hidden]. */
PD_RULE(rnn_unit)
{
    const bool gru = rule->arg == 3;
    const uint32_t x = tv_pd_in(r, n, gru ? "Input" : "X", 0);
    const uint32_t old = tv_pd_in(r, n, gru ? "HiddenPrev" : "C_prev", 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, old));
    const tv_shape *s = tv_run_shape(r, old);
    const tv_dtype t = tv_run_at(r, x)->dtype;
    const uint32_t y = tv_run_make(r, t, s);
    tv_step step = {.kind = TV_STEP_RNN};
    step.u.rnn.gates = rule->arg;
    step.u.rnn.hidden = gru ? (double)axis_of(s, 1) : 0;
    step.u.rnn.directions = step.u.rnn.layers = step.u.rnn.steps = 1;
    step.u.rnn.batch = (double)axis_of(s, 0);
    tv_run_push(r, &step, (uint32_t[]){x, old}, 2, &y, 1);
    tv_pd_out(r, n, gru ? "Hidden" : "H", 0, y);
    tv_pd_out(r, n, gru ? "ResetHiddenPrev" : "C", 1, tv_run_make(r, t, s));
    tv_pd_out(r, n, "Gate", 2, matrix(r, t, axis_of(s, 0), 3 * axis_of(s, 1)));
    return NULL;
}

/* ---- sequences ---- */

PD_RULE(sequence_pool)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    if (s.rank)
        s.d[0] = 1;
    const uint32_t y = tv_pd_make_guess(r, tv_run_at(r, x)->dtype, &s);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "Out", 0, y);
    tv_pd_out(r, n, "MaxIndex", 1, tv_run_make(r, TV_I32, &s));
    return NULL;
}

/* Rows repeated as often as the other operand has tokens. */
PD_RULE(sequence_expand)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), y = tv_pd_in(r, n, "Y", 1);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    tv_shape s = *tv_run_shape(r, x);
    if (s.rank)
        s.d[0] = axis_of(tv_run_shape(r, y), 0);
    const uint32_t out = tv_pd_make_guess(r, tv_run_at(r, x)->dtype, &s);
    TV_TRY(tv_pd_route(r, n, &out, 1));
    tv_pd_out(r, n, "Out", 0, out);
    return NULL;
}

PD_RULE(sequence_concat)
{
    const tv_pd_list x = tv_pd_in_list(r, n, "X", 0);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    if (x.n == 0)
        return tv_run_need(r, TV_NO_VALUE);
    TV_TRY(tv_rule_concat(r, 0, x.v, x.n, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* The same tokens in another order or number of columns. */
PD_RULE(sequence_move)
{
    static const char *const out[] = {"Out", "Y", "Output"};
    const uint32_t x =
        tv_pd_in(r, n, "X", 0) != TV_NO_VALUE ? tv_pd_in(r, n, "X", 0) : tv_pd_in(r, n, "Input", 0);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    const int64_t width = tv_pd_attr_int(r, n, "new_dim", 0);
    if (width > 0 && s.rank == 2) {
        s.d[0] = s.d[0] * s.d[1] / width;
        s.d[1] = width;
    }
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &s);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    for (size_t i = 0; i < 3; i++)
        tv_pd_out(r, n, out[i], 0, y);
    return NULL;
}

/* [tokens, width] to [sequences, longest, width]. */
PD_RULE(sequence_pad)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const double length = tv_pd_attr_num(r, n, "padded_length", -1);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const tv_shape *xs = tv_run_shape(r, x);
    tv_shape s = {.rank = 2, .d = {1, length > 0 ? (int64_t)length : axis_of(xs, 0)}};
    for (uint32_t i = 1; i < xs->rank; i++)
        if (!tv_shape_push(&s, xs->d[i]))
            return tv_run_fail(r, "program.reshape-rank", N_("a tensor has too many dimensions"));
    const uint32_t y = tv_pd_make_guess(r, tv_run_at(r, x)->dtype, &s);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "Out", 0, y);
    tv_shape lengths = {.rank = 1, .d = {1}};
    tv_dtype dtype = TV_I64;
    (void)tv_pd_declared(r, n, "Length", 1, 0, &lengths, &dtype);
    tv_pd_out(r, n, "Length", 1, tv_pd_make_guess(r, dtype, &lengths));
    return NULL;
}

/* [sequences, longest, width] and lengths to [tokens, width]. */
PD_RULE(sequence_unpad)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const tv_shape *xs = tv_run_shape(r, x);
    tv_shape s = {.rank = 1, .d = {axis_of(xs, 0) * axis_of(xs, 1)}};
    for (uint32_t i = 2; i < xs->rank; i++)
        if (!tv_shape_push(&s, xs->d[i]))
            return tv_run_fail(r, "program.reshape-rank", N_("a tensor has too many dimensions"));
    const uint32_t y = tv_pd_make_guess(r, tv_run_at(r, x)->dtype, &s);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(sequence_mask)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const tv_pd_where most = {.attr = "maxlen", .tensor = "MaxLenTensor", .place = 1};
    tv_shape declared = {0};
    tv_dtype dtype = TV_DTYPE_UNKNOWN;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    double length = tv_pd_read_num(r, n, most, -1);
    const bool known = length > 0;
    if (!known && tv_pd_declared(r, n, "Y", 0, 0, &declared, &dtype) && declared.rank)
        length = (double)declared.d[declared.rank - 1];
    if (!tv_shape_push(&s, (int64_t)fmax(length, 1)))
        return tv_run_fail(r, "program.reshape-rank", N_("a tensor has too many dimensions"));
    const uint32_t y = tv_run_make(r, tv_pd_attr_dtype(n, "out_dtype", TV_I64), &s);
    if (!known)
        tv_run_guess(r, y);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "Y", 0, y);
    return NULL;
}

/* A product of each token's neighbourhood by a filter [context·width, out]. */
PD_RULE(sequence_conv)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), w = tv_pd_in(r, n, "Filter", 2);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w));
    const tv_shape s = {.rank = 2,
                        .d = {axis_of(tv_run_shape(r, x), 0), axis_of(tv_run_shape(r, w), 0)}};
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &s, &x, 1, &y));
    TV_TRY(tv_rule_linear(r, true, y, w, TV_NO_VALUE, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* Windows of an image as tokens. */
PD_RULE(image_to_sequence)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const int64_t *k = NULL, *stride = NULL, *pad = NULL;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    const size_t nk = tv_node_ints(n, "kernels", &k), ns = tv_node_ints(n, "strides", &stride);
    const size_t np = tv_node_ints(n, "paddings", &pad);
    if (s->rank != 4 || nk < 2)
        return tv_run_unknown(r, n);
    int64_t windows = s->d[0];
    for (uint32_t i = 0; i < 2; i++) {
        const tv_window w = {.axes = 1,
                             .kernel = {k[i]},
                             .stride = {ns > i ? stride[i] : 1},
                             .before = {np > i ? pad[i] : 0},
                             .after = {np > i + 2 ? pad[i + 2] : 0}};
        windows *= tv_shape_slide(&w, 0, s->d[2 + i]);
    }
    const uint32_t y = matrix(r, tv_run_at(r, x)->dtype, windows, s->d[1] * k[0] * k[1]);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* Row convolution: a filter over the tokens ahead. */
PD_RULE(row_conv)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_cumulative(r, x, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* ---- decoding ---- */

/* A path of one label per token: viterbi_decode, crf_decoding, ctc_align. */
PD_RULE(decode_path)
{
    static const char *const out[] = {"ViterbiPath", "Output", "Path"};
    const uint32_t x = tv_pd_main(r, n);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *xs = tv_run_shape(r, x);
    tv_shape s = *xs;
    if (s.rank && rule->arg)
        s.d[s.rank - 1] = 1;
    if (tv_str_is(n->op, "viterbi_decode") && s.rank == 3)
        s = (tv_shape){.rank = 2, .d = {xs->d[0], xs->d[1]}};
    const uint32_t y = tv_run_make(r, TV_I64, &s);
    const uint32_t score = tv_run_make(r, TV_F32, &(tv_shape){.rank = 1, .d = {axis_of(xs, 0)}});
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "Scores", 0, score);
    for (size_t i = 0; i < 3; i++)
        tv_pd_out(r, n, out[i], i == 2 ? 1 : 0, y);
    return NULL;
}

static const tv_rule rules[] = {
    {"rnn", rnn, 0},
    {"cudnn_lstm", cudnn_lstm, 0},
    {"lstm", projected_rnn, 4},
    {"lstmp", projected_rnn, 4},
    {"gru", projected_rnn, 3},
    {"fusion_lstm", fused_rnn, 4},
    {"fusion_gru", fused_rnn, 3},
    {"multi_gru", fused_rnn, 3},
    {"gru_unit", rnn_unit, 3},
    {"lstm_unit", rnn_unit, 4},
    {"sequence_pool", sequence_pool, 0},
    {"sequence_first_step", sequence_pool, 0},
    {"sequence_last_step", sequence_pool, 0},
    {"sequence_expand", sequence_expand, 0},
    {"sequence_expand_as", sequence_expand, 0},
    {"sequence_concat", sequence_concat, 0},
    {"sequence_reverse", sequence_move, 0},
    {"sequence_reshape", sequence_move, 0},
    {"sequence_slice", sequence_move, 0},
    {"sequence_erase", sequence_move, 0},
    {"sequence_enumerate", sequence_move, 0},
    {"sequence_scatter", sequence_move, 0},
    {"sequence_pad", sequence_pad, 0},
    {"sequence_unpad", sequence_unpad, 0},
    {"sequence_mask", sequence_mask, 0},
    {"sequence_conv", sequence_conv, 0},
    {"im2sequence", image_to_sequence, 0},
    {"row_conv", row_conv, 0},
    {"viterbi_decode", decode_path, 0},
    {"crf_decoding", decode_path, 1},
    {"ctc_align", decode_path, 1},
    {"edit_distance", tv_pd_as_declared, 0},
    {"beam_search", tv_pd_as_declared, 0},
    {"beam_search_decode", tv_pd_as_declared, 0},
    {"chunk_eval", tv_pd_as_declared, 0},
    {"sequence_topk_avg_pooling", tv_pd_as_declared, 0},
    {"match_matrix_tensor", tv_pd_as_declared, 0},
    {"var_conv_2d", tv_pd_as_declared, 0},
    {"hash", tv_pd_as_declared, 0},
    {"pyramid_hash", tv_pd_as_declared, 0},
};

const tv_rule_table tv_rules_paddle_sequence = {TV_DIALECT_PADDLE, "", rules,
                                                sizeof rules / sizeof *rules};
