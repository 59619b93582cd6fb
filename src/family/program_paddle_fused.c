/* Paddle's fused kernels of transformers: what inference passes and PaddleNLP put in the place of
 * several operators. They are taken apart into the products and the attention that they hold. */
#include "program_paddle.h"

#include <math.h>

static int64_t last_of(const tv_shape *s)
{
    return s->rank ? s->d[s->rank - 1] : 0;
}

/* A weight of any rank as [in, out] for x's last axis. */
static const tv_err *project(tv_running *r, uint32_t x, uint32_t w, uint32_t bias, uint32_t *y)
{
    const int64_t in = last_of(tv_run_shape(r, x));
    const int64_t all = tv_shape_count(tv_run_shape(r, w));
    uint32_t matrix = TV_NO_VALUE;
    if (in <= 0 || all % in)
        return tv_run_fail_shapes(r, "program.project", N_("{y} does not multiply {x}"),
                                  tv_run_shape(r, x), tv_run_shape(r, w));
    /* Stored [out..., in] in PaddleNLP's layers, [in, out...] in the older passes. */
    const bool in_first = tv_run_shape(r, w)->rank && tv_run_shape(r, w)->d[0] == in;
    const tv_shape s = {.rank = 2, .d = {in_first ? in : all / in, in_first ? all / in : in}};
    TV_TRY(tv_rule_view(r, w, &s, &matrix));
    if (bias != TV_NO_VALUE && tv_run_shape(r, bias)->rank != 1)
        TV_TRY(tv_rule_view(
            r, bias, &(tv_shape){.rank = 1, .d = {tv_shape_count(tv_run_shape(r, bias))}}, &bias));
    return tv_rule_linear(r, in_first, x, matrix, bias, y);
}

typedef struct heads {
    double q, kv, dim;
} heads;

/* q, k and v side by side in the last axis. */
static const tv_err *attend(tv_running *r, uint32_t qkv, heads h, uint32_t mask, bool causal,
                            uint32_t *y)
{
    const int64_t parts[] = {(int64_t)(h.q * h.dim), (int64_t)(h.kv * h.dim),
                             (int64_t)(h.kv * h.dim)};
    const tv_attention_call call = {.causal = causal, .heads = h.q, .kv_heads = h.kv};
    uint32_t v[3];
    TV_TRY(tv_rule_split(r, -1, parts, 3, true, qkv, v));
    return tv_rule_attention(r, &call, v[0], v[1], v[2], mask, y);
}

static uint32_t first_given(tv_running *r, const tv_node *n, const char *one, const char *two,
                            int place)
{
    const uint32_t v = tv_pd_in(r, n, one, place);
    return v == TV_NO_VALUE ? tv_pd_in(r, n, two, place) : v;
}

/* Input [b, s, h], W [h, 3, h], BiasQK. */
PD_RULE(multihead_matmul)
{
    const uint32_t x = tv_pd_in(r, n, "Input", 0), w = tv_pd_in(r, n, "W", 1);
    const double count = tv_pd_attr_num(r, n, "head_number", 1);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w));
    TV_TRY(project(r, x, w, tv_pd_in(r, n, "Bias", 2), &y));
    const double width = (double)last_of(tv_run_shape(r, y)) / 3;
    TV_TRY(attend(r, y, (heads){count, count, width / fmax(count, 1)}, tv_pd_in(r, n, "BiasQK", 3),
                  false, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* q, k, v [b, s, heads, dim]. */
PD_RULE(flash_attention)
{
    const uint32_t q = first_given(r, n, "q", "query", 0);
    const uint32_t k = first_given(r, n, "k", "key", 1);
    const uint32_t v = first_given(r, n, "v", "value", 2);
    const uint32_t mask = first_given(r, n, "attn_mask", "bias", rule->arg ? 3 : 4);
    tv_attention_call call = {.heads_third = true};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, q));
    TV_TRY(tv_run_need(r, k));
    TV_TRY(tv_run_need(r, v));
    if (tv_run_shape(r, q)->rank != 4)
        return tv_run_unknown(r, n);
    call.causal = tv_pd_attr_num(r, n, "causal", 0) != 0;
    call.dropout = tv_pd_attr_num(r, n, "dropout|dropout_p", 0);
    TV_TRY(tv_rule_attention(r, &call, q, k, v, mask, &y));
    tv_pd_out(r, n, "out", 0, y);
    tv_pd_out(r, n, "output", 0, y);
    return NULL;
}

/* ---- norms with what stands around them ---- */

static const tv_err *layer_norm(tv_running *r, uint32_t x, uint32_t scale, uint32_t bias,
                                uint32_t *y)
{
    tv_norm_call call = {.kind = TV_NORM_LAYER};
    const uint32_t rank = tv_run_shape(r, x)->rank;
    call.axis = rank ? rank - 1 : 0;
    return tv_rule_norm(r, &call, x, scale, bias, y);
}

PD_RULE(skip_layernorm)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), other = tv_pd_in(r, n, "Y", 1);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, other));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, x, other, &y));
    tv_pd_out(r, n, "Out_0", 0, y);
    TV_TRY(layer_norm(r, y, tv_pd_in(r, n, "Scale", 2), tv_pd_in(r, n, "Bias", 3), &y));
    tv_pd_out(r, n, "Out", 0, y);
    tv_pd_out(r, n, "Out_1", 1, y);
    return NULL;
}

/* Several look-ups added and normalised. */
PD_RULE(embedding_layernorm)
{
    const tv_pd_list ids = tv_pd_in_list(r, n, "Ids", 0), tables = tv_pd_in_list(r, n, "Embs", 1);
    uint32_t sum = TV_NO_VALUE;
    (void)rule;
    for (size_t i = 0; i < ids.n && i < tables.n; i++) {
        tv_shape s = *tv_run_shape(r, ids.v[i]);
        uint32_t id = ids.v[i], y = TV_NO_VALUE;
        if (s.rank > 2 && s.d[s.rank - 1] == 1) {
            s.rank--;
            TV_TRY(tv_rule_view(r, id, &s, &id));
        }
        TV_TRY(tv_rule_gather(r, 0, tables.v[i], id, &y));
        if (sum == TV_NO_VALUE)
            sum = y;
        else
            TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, sum, y, &sum));
    }
    TV_TRY(tv_run_need(r, sum));
    TV_TRY(layer_norm(r, sum, tv_pd_in(r, n, "Scale", 3), tv_pd_in(r, n, "Bias", 2), &sum));
    tv_pd_out(r, n, "Out", 0, sum);
    tv_pd_out(r, n, "out", 0, sum);
    return NULL;
}

PD_RULE(fc_layernorm)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), w = tv_pd_in(r, n, "W", 1),
                   other = tv_pd_in(r, n, "Y", 2);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w));
    TV_TRY(project(r, x, w, tv_pd_in(r, n, "Bias0", 3), &y));
    if (other != TV_NO_VALUE)
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, y, other, &y));
    TV_TRY(layer_norm(r, y, tv_pd_in(r, n, "Scale", 4), tv_pd_in(r, n, "Bias1", 5), &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* layernorm(residual + dropout(bias + x)). */
PD_RULE(bias_dropout_residual_layernorm)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), residual = tv_pd_in(r, n, "Residual", 1);
    const uint32_t bias = tv_pd_in(r, n, "Bias", 2);
    uint32_t y = x;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, residual));
    if (bias != TV_NO_VALUE)
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, y, bias, &y));
    TV_TRY(tv_rule_dropout(r, tv_pd_attr_num(r, n, "dropout_rate", 0), y, &y));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, y, residual, &y));
    TV_TRY(layer_norm(r, y, tv_pd_in(r, n, "LnScale", 3), tv_pd_in(r, n, "LnBias", 4), &y));
    tv_pd_out(r, n, "Y", 0, y);
    return NULL;
}

PD_RULE(bias_act)
{
    const uint32_t x = first_given(r, n, "x", "X", 0), bias = tv_pd_in(r, n, "bias", 1);
    const tv_str act = tv_node_string(n, "act_method");
    uint32_t y = x;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    if (bias != TV_NO_VALUE)
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, y, bias, &y));
    if (tv_str_ends(act, TV_S("glu"))) {
        const int64_t half = last_of(tv_run_shape(r, y)) / 2;
        uint32_t v[2];
        TV_TRY(tv_rule_split(r, -1, (const int64_t[]){half, half}, 2, true, y, v));
        const tv_fn fn = tv_str_is(act, "geglu") ? TV_FN_GELU : TV_FN_SILU;
        TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = fn}, v[0], &y));
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MUL}, y, v[1], &y));
    } else {
        TV_TRY(tv_pd_activate(r, act, y, &y));
    }
    tv_pd_out(r, n, "out", 0, y);
    return NULL;
}

PD_RULE(dropout_add)
{
    const uint32_t x = tv_pd_in(r, n, "x", 0), other = tv_pd_in(r, n, "y", 1);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, other));
    TV_TRY(tv_rule_dropout(r, tv_pd_attr_num(r, n, "p", 0), x, &y));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, y, other, &y));
    tv_pd_out(r, n, "out", 0, y);
    return NULL;
}

/* q, k and v turned: each output has its operand's shape. */
PD_RULE(rotary)
{
    static const char *const in[] = {"q", "k", "v"};
    static const char *const out[] = {"out_q", "out_k", "out_v"};
    (void)rule;
    for (int i = 0; i < 3; i++) {
        const uint32_t x = tv_pd_in(r, n, in[i], i);
        uint32_t y = TV_NO_VALUE;
        if (x == TV_NO_VALUE)
            continue;
        TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = TV_FN_SCALE, .a = 1}, x, &y));
        tv_pd_out(r, n, out[i], i, y);
    }
    return NULL;
}

/* ---- whole layers ---- */

/* Norm, q k v, attention, projection, residual: fused_attention. QKVW [3, heads, dim, h]. */
PD_RULE(attention_layer)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), w = tv_pd_in(r, n, "QKVW", 3);
    const uint32_t out = tv_pd_in(r, n, "OutLinearW", 7);
    const bool pre = tv_pd_attr_num(r, n, "pre_layer_norm", 0) != 0;
    uint32_t y = x;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w));
    TV_TRY(tv_run_need(r, out));
    const tv_shape ws = *tv_run_shape(r, w);
    if (ws.rank != 4)
        return tv_run_unknown(r, n);
    if (pre)
        TV_TRY(layer_norm(r, y, tv_pd_in(r, n, "LnScale", 1), tv_pd_in(r, n, "LnBias", 2), &y));
    TV_TRY(project(r, y, w, tv_pd_in(r, n, "QKVBias", 4), &y));
    const heads h = {(double)ws.d[1], (double)ws.d[1], (double)ws.d[2]};
    TV_TRY(attend(r, y, h, tv_pd_in(r, n, "SrcMask", 6), false, &y));
    TV_TRY(project(r, y, out, tv_pd_in(r, n, "OutLinearBias", 8), &y));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, y, x, &y));
    if (!pre)
        TV_TRY(layer_norm(r, y, tv_pd_in(r, n, "Ln2Scale", 9), tv_pd_in(r, n, "Ln2Bias", 10), &y));
    tv_pd_out(r, n, "Y", tv_run_program(r)->pir ? (int)n->n_output_slots - 1 : 0, y);
    return NULL;
}

static const tv_err *feed_forward(tv_running *r, uint32_t x, uint32_t w1, uint32_t b1, uint32_t w2,
                                  uint32_t b2, tv_str act, uint32_t *y)
{
    TV_TRY(project(r, x, w1, b1, y));
    const int64_t width = last_of(tv_run_shape(r, *y));
    const int64_t outs = last_of(tv_run_shape(r, x));
    const int64_t in2 = outs > 0 ? tv_shape_count(tv_run_shape(r, w2)) / outs : 0;
    if (in2 * 2 == width) { /* a gate beside the values */
        uint32_t v[2];
        TV_TRY(tv_rule_split(r, -1, (const int64_t[]){in2, in2}, 2, true, *y, v));
        TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = TV_FN_SILU}, v[0], y));
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MUL}, *y, v[1], y));
    } else {
        TV_TRY(tv_pd_activate(r, act.n ? act : TV_S("gelu"), *y, y));
    }
    return project(r, *y, w2, b2, y);
}

PD_RULE(feedforward_layer)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), w1 = tv_pd_in(r, n, "Linear1Weight", 3);
    const uint32_t w2 = tv_pd_in(r, n, "Linear2Weight", 5);
    const bool pre = tv_pd_attr_num(r, n, "pre_layer_norm", 0) != 0;
    uint32_t y = x;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w1));
    TV_TRY(tv_run_need(r, w2));
    if (pre)
        TV_TRY(layer_norm(r, y, tv_pd_in(r, n, "Ln1Scale", 7), tv_pd_in(r, n, "Ln1Bias", 8), &y));
    TV_TRY(feed_forward(r, y, w1, tv_pd_in(r, n, "Linear1Bias", 4), w2,
                        tv_pd_in(r, n, "Linear2Bias", 6), tv_node_string(n, "act_method"), &y));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, y, x, &y));
    if (!pre)
        TV_TRY(layer_norm(r, y, tv_pd_in(r, n, "Ln2Scale", 9), tv_pd_in(r, n, "Ln2Bias", 10), &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

static uint32_t nth(const tv_pd_list *list, size_t i)
{
    return i < list->n ? list->v[i] : TV_NO_VALUE;
}

typedef struct layer_weights {
    tv_pd_list ln, ln_bias, qkv, qkv_bias, out, out_bias, ffn_ln, ffn_ln_bias, up, up_bias, down,
        down_bias;
} layer_weights;

static const tv_err *run_layer(tv_running *r, const tv_node *n, const layer_weights *w, size_t i,
                               uint32_t *x)
{
    const tv_shape qkv = *tv_run_shape(r, w->qkv.v[i]);
    heads h = {(double)qkv.d[1], (double)qkv.d[1], (double)qkv.d[2]};
    uint32_t y = TV_NO_VALUE;
    if (qkv.rank == 3) /* grouped: [heads + 2·kv, dim, h] */
        h = (heads){(double)qkv.d[0] / 3, (double)qkv.d[0] / 3, (double)qkv.d[1]};
    if (qkv.rank != 4 && qkv.rank != 3)
        return tv_run_fail(r, "program.qkv",
                           N_("a weight for q, k and v of three or four axes is "
                              "expected"));
    TV_TRY(layer_norm(r, *x, nth(&w->ln, i), nth(&w->ln_bias, i), &y));
    TV_TRY(project(r, y, w->qkv.v[i], nth(&w->qkv_bias, i), &y));
    TV_TRY(attend(r, y, h, TV_NO_VALUE, true, &y));
    TV_TRY(tv_run_need(r, nth(&w->out, i)));
    TV_TRY(project(r, y, w->out.v[i], nth(&w->out_bias, i), &y));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, y, *x, x));
    TV_TRY(tv_run_need(r, nth(&w->up, i)));
    TV_TRY(tv_run_need(r, nth(&w->down, i)));
    TV_TRY(layer_norm(r, *x, nth(&w->ffn_ln, i), nth(&w->ffn_ln_bias, i), &y));
    TV_TRY(feed_forward(r, y, w->up.v[i], nth(&w->up_bias, i), w->down.v[i], nth(&w->down_bias, i),
                        tv_node_string(n, "act_method"), &y));
    return tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, y, *x, x);
}

/* All decoder layers of a model in one operator. */
PD_RULE(multi_transformer)
{
    uint32_t x = tv_pd_in(r, n, "X", 0);
    const tv_pd_list cache = tv_pd_in_list(r, n, "CacheKV", PD_NONE);
    const layer_weights w = {
        tv_pd_in_list(r, n, "LnScale", 1),     tv_pd_in_list(r, n, "LnBias", 2),
        tv_pd_in_list(r, n, "QKVW", 3),        tv_pd_in_list(r, n, "QKVBias", 4),
        tv_pd_in_list(r, n, "OutLinearW", 12), tv_pd_in_list(r, n, "OutLinearBias", 13),
        tv_pd_in_list(r, n, "FFNLnScale", 14), tv_pd_in_list(r, n, "FFNLnBias", 15),
        tv_pd_in_list(r, n, "FFN1Weight", 16), tv_pd_in_list(r, n, "FFN1Bias", 17),
        tv_pd_in_list(r, n, "FFN2Weight", 18), tv_pd_in_list(r, n, "FFN2Bias", 19),
    };
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    if (w.qkv.n == 0 || tv_run_program(r)->pir)
        return tv_run_unknown(r, n);
    for (size_t i = 0; i < w.qkv.n; i++)
        TV_TRY(run_layer(r, n, &w, i, &x));
    tv_pd_out(r, n, "Out", 0, x);
    for (size_t i = 0; i < cache.n; i++)
        tv_pd_out_at(r, n, "CacheKVOut", PD_NONE, i, cache.v[i]);
    return NULL;
}

/* ---- squeeze and excite, and other small ones ---- */

PD_RULE(groupnorm_act)
{
    const uint32_t x = tv_pd_in(r, n, "x", 0),
                   other = rule->arg ? tv_pd_in(r, n, "y", 1) : TV_NO_VALUE;
    tv_norm_call call = {.kind = TV_NORM_GROUP};
    uint32_t y = x;
    TV_TRY(tv_run_need(r, x));
    if (other != TV_NO_VALUE)
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, x, other, &y));
    call.groups = (int64_t)fmax(tv_pd_attr_num(r, n, "groups", 1), 1);
    call.channels_last = tv_pd_channels_last(r, n);
    TV_TRY(tv_rule_norm(r, &call, y, TV_NO_VALUE, TV_NO_VALUE, &y));
    TV_TRY(tv_pd_activate(r, tv_node_string(n, "activation"), y, &y));
    tv_pd_out(r, n, "out", 0, y);
    return NULL;
}

static const tv_rule rules[] = {
    {"multihead_matmul", multihead_matmul, 0},
    {"flash_attn", flash_attention, 0},
    {"flash_attention", flash_attention, 0},
    {"flash_attn_v3", flash_attention, 0},
    {"memory_efficient_attention", flash_attention, 1},
    {"variable_length_memory_efficient_attention", flash_attention, 1},
    {"fused_dot_product_attention", flash_attention, 1},
    {"skip_layernorm", skip_layernorm, 0},
    {"preln_skip_layernorm", skip_layernorm, 0},
    {"fused_embedding_eltwise_layernorm", embedding_layernorm, 0},
    {"fused_fc_elementwise_layernorm", fc_layernorm, 0},
    {"fused_bias_dropout_residual_layer_norm", bias_dropout_residual_layernorm, 0},
    {"fused_bias_act", bias_act, 0},
    {"fused_dropout_add", dropout_add, 0},
    {"fused_rotary_position_embedding", rotary, 0},
    {"fused_attention", attention_layer, 0},
    {"fused_feedforward", feedforward_layer, 0},
    {"fused_multi_transformer", multi_transformer, 0},
    {"fused_multi_transformer_int8", multi_transformer, 0},
    {"add_group_norm_silu", groupnorm_act, 1},
    {"skip_groupnorm_act", groupnorm_act, 1},
    {"groupnorm_act", groupnorm_act, 0},
};

const tv_rule_table tv_rules_paddle_fused = {TV_DIALECT_PADDLE, "", rules,
                                             sizeof rules / sizeof *rules};
