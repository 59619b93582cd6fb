/* ONNX Runtime's contributed attention operators. Splitting heads, biases and the caches' growth
 * happen within their kernels. */
#include "program_onnx.h"

static const tv_err *bad(tv_running *r, const tv_shape *s)
{
    return tv_run_fail_shapes(r, "program.heads", N_("{x} does not divide into heads"), s, NULL);
}

/* What the attention operators have in common once the projections are laid out. */
typedef struct qkv {
    int64_t batch, tokens, keys, heads, kv_heads, dim, v_dim;
    tv_dtype dtype;
    bool causal;
} qkv;

static uint32_t of_heads(tv_running *r, const qkv *x, int64_t tokens, int64_t heads, int64_t dim)
{
    tv_shape s = tv_shape_of(4, (int64_t[]){x->batch, heads, tokens, dim});
    return tv_run_make(r, x->dtype, &s);
}

/* One kernel: operands as the node has them, the result [batch, tokens, heads·dim]. */
static void push_attention(tv_running *r, const qkv *x, const uint32_t *in, size_t n, uint32_t *y)
{
    tv_shape s =
        tv_shape_of(3, (int64_t[]){x->batch, x->tokens, tv_shape_times(x->heads, x->v_dim)});
    *y = tv_run_make(r, x->dtype, &s);
    tv_step step = {.kind = TV_STEP_ATTENTION};
    step.u.attention.batch = (double)x->batch;
    step.u.attention.heads = (double)x->heads;
    step.u.attention.kv_heads = (double)x->kv_heads;
    step.u.attention.head_dim = (double)x->dim;
    step.u.attention.v_dim = (double)x->v_dim;
    step.u.attention.q_tokens = (double)x->tokens;
    step.u.attention.k_tokens = (double)x->keys;
    step.u.attention.causal = x->causal;
    tv_run_push(r, &step, in, n, y, 1);
}

static int64_t past_tokens(tv_running *r, uint32_t past, uint32_t axis)
{
    if (past == TV_NO_VALUE)
        return 0;
    const tv_shape *s = tv_run_shape(r, past);
    return axis < s->rank ? s->d[axis] : 0;
}

/* x [batch, tokens, in] by weight [in, 3·hidden] (+ bias), then attention. */
static const tv_err *attention(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    bool quantised = rule->arg != 0;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t weight = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, weight));
    uint32_t qkv_all = TV_NO_VALUE;
    tv_dtype dtype = quantised ? TV_F32 : TV_DTYPE_UNKNOWN;
    TV_TRY(tv_rule_matmul(r, (tv_matmul_call){.dtype = dtype}, x, weight, tv_run_in(r, n, 2),
                          &qkv_all));
    const tv_shape *s = tv_run_shape(r, qkv_all);
    int64_t heads = tv_node_int(n, "num_heads", 0);
    const int64_t *widths = NULL;
    size_t count = tv_node_ints(n, "qkv_hidden_sizes", &widths);
    int64_t total = s->rank == 3 ? s->d[2] : 0;
    int64_t q = count == 3 ? widths[0] : total / 3;
    int64_t v = count == 3 ? widths[2] : total / 3;
    if (s->rank != 3 || heads < 1 || q < 1 || v < 1 || q % heads || v % heads)
        return bad(r, s);
    uint32_t past = tv_run_in(r, n, quantised ? 8 : 4);
    int64_t before = past_tokens(r, past, 3);
    qkv c = {s->d[0],
             s->d[1],
             s->d[1] + before,
             heads,
             heads,
             q / heads,
             v / heads,
             tv_run_at(r, qkv_all)->dtype,
             tv_node_int(n, "unidirectional", 0) != 0};
    uint32_t y = TV_NO_VALUE;
    push_attention(r, &c, (uint32_t[]){qkv_all, qkv_all, qkv_all, past}, 4, &y);
    if (tv_node_out(n, 1) != TV_NO_VALUE) {
        tv_shape present = tv_shape_of(5, (int64_t[]){2, c.batch, heads, c.keys, c.dim});
        tv_run_out(r, n, 1, tv_run_make(r, c.dtype, &present));
    }
    return tv_opset_done(r, n, y);
}

/* Width of a projected operand, whatever its layout: [b, t, w], [b, n, t, h], [b, t, n, 3, h]. */
static int64_t width_of(const tv_shape *s)
{
    if (s->rank == 3)
        return s->d[2];
    if (s->rank == 4)
        return tv_shape_times(s->d[1], s->d[3]);
    return s->rank == 5 ? tv_shape_times(s->d[2], s->d[4]) : 0;
}

static int64_t tokens_of(const tv_shape *s)
{
    return s->rank == 4 ? s->d[2] : s->d[1];
}

/* query, key, value, bias, mask, bias of scores, past key, past value */
static const tv_err *multi_head(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    size_t past_at = rule->arg ? 5 : 6;
    uint32_t q = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, q));
    const tv_shape *s = tv_run_shape(r, q);
    uint32_t k = tv_run_in(r, n, 1);
    uint32_t v = tv_run_in(r, n, 2);
    int64_t heads = tv_node_int(n, "num_heads", 0);
    if (s->rank < 3 || heads < 1 || width_of(s) % heads)
        return bad(r, s);
    const tv_shape *sk = k == TV_NO_VALUE ? s : tv_run_shape(r, k);
    const tv_shape *sv = v == TV_NO_VALUE ? s : tv_run_shape(r, v);
    if (sk->rank < 3 || sv->rank < 3)
        return bad(r, sk->rank < 3 ? sk : sv);
    /* Keys and values together: [batch, tokens, heads, 2, dim]. */
    int64_t dim = width_of(s) / heads;
    int64_t v_dim = v == TV_NO_VALUE ? dim : width_of(sv) / heads;
    int64_t before = past_tokens(r, tv_run_in(r, n, past_at), 2);
    qkv c = {s->d[0],
             tokens_of(s),
             tokens_of(sk) + before,
             heads,
             heads,
             dim,
             v_dim,
             tv_run_at(r, q)->dtype,
             tv_node_int(n, "unidirectional", 0) != 0};
    uint32_t y = TV_NO_VALUE;
    uint32_t in[] = {q, k == TV_NO_VALUE ? q : k, v == TV_NO_VALUE ? (k == TV_NO_VALUE ? q : k) : v,
                     tv_run_in(r, n, 3)};
    push_attention(r, &c, in, 4, &y);
    if (tv_node_out(n, 1) != TV_NO_VALUE)
        tv_run_out(r, n, 1, of_heads(r, &c, c.keys, heads, dim));
    if (tv_node_out(n, 2) != TV_NO_VALUE)
        tv_run_out(r, n, 2, of_heads(r, &c, c.keys, heads, v_dim));
    return tv_opset_done(r, n, y);
}

/* query (or q, k and v in one), key, value, past key, past value, lengths, total, tables */
static const tv_err *group_query(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t q = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, q));
    const tv_shape *s = tv_run_shape(r, q);
    uint32_t k = tv_run_in(r, n, 1);
    uint32_t v = tv_run_in(r, n, 2);
    int64_t heads = tv_node_int(n, "num_heads", 0);
    int64_t kv_heads = tv_node_int(n, "kv_num_heads", heads);
    int64_t parts = k == TV_NO_VALUE ? heads + 2 * kv_heads : heads;
    if (s->rank != 3 || heads < 1 || kv_heads < 1 || s->d[2] % parts)
        return bad(r, s);
    /* The present cache is as long as the past one where that is a buffer for all tokens; the
     * stated total length says how much of it counts. */
    int64_t before = past_tokens(r, tv_run_in(r, n, 3), 2);
    double total = tv_run_scalar(r, tv_run_in(r, n, 6), (double)(before + s->d[1]));
    int64_t keys = total >= (double)s->d[1] && total < 1e12 ? (int64_t)total : before + s->d[1];
    int64_t dim = s->d[2] / parts;
    qkv c = {s->d[0], s->d[1], keys, heads, kv_heads, dim, dim, tv_run_at(r, q)->dtype, true};
    uint32_t y = TV_NO_VALUE;
    uint32_t in[] = {q, k == TV_NO_VALUE ? q : k, v == TV_NO_VALUE ? q : v};
    push_attention(r, &c, in, 3, &y);
    int64_t cache = before > keys ? before : keys;
    for (size_t i = 1; i < 3; i++)
        if (tv_node_out(n, i) != TV_NO_VALUE)
            tv_run_out(r, n, i, of_heads(r, &c, cache, kv_heads, dim));
    return tv_opset_done(r, n, y);
}

/* Without padding: [tokens, in]; the batch is in the offsets. */
static const tv_err *packed(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    bool projected = rule->arg != 0;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    uint32_t all = x;
    if (!projected)
        TV_TRY(tv_rule_matmul(r, (tv_matmul_call){0}, x, tv_run_in(r, n, 1), tv_run_in(r, n, 2),
                              &all));
    const tv_shape *s = tv_run_shape(r, all);
    int64_t heads = tv_node_int(n, "num_heads", 0);
    int64_t width = s->rank == 4 ? tv_shape_times(s->d[1], s->d[3]) : s->rank == 2 ? s->d[1] : 0;
    if (!projected)
        width /= 3;
    if (!s->rank || heads < 1 || width < 1 || width % heads)
        return bad(r, s);
    uint32_t offsets = tv_run_in(r, n, projected ? 4 : 3);
    const tv_shape *o = offsets == TV_NO_VALUE ? NULL : tv_run_shape(r, offsets);
    int64_t batch = o && o->rank == 2 && o->d[0] > 0 ? o->d[0] : 1;
    int64_t tokens = (s->d[0] + batch - 1) / batch;
    qkv c = {batch, tokens,        tokens,        heads,
             heads, width / heads, width / heads, tv_run_at(r, all)->dtype,
             false};
    uint32_t y = TV_NO_VALUE;
    push_attention(r, &c, (uint32_t[]){all, all, all}, 3, &y);
    tv_shape flat = tv_shape_of(2, (int64_t[]){s->d[0], width});
    uint32_t out = tv_run_make(r, c.dtype, &flat);
    tv_run_view_of(r, out, y);
    tv_step view = {.kind = TV_STEP_VIEW};
    view.u.layout.kind = TV_LAYOUT_RESHAPE;
    tv_run_push(r, &view, &y, 1, &out, 1);
    return tv_opset_done(r, n, out);
}

/* Padding taken out of, or put back into, [batch, tokens, width]. */
static const tv_err *remove_padding(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    if (s->rank != 3)
        return bad(r, s);
    tv_shape flat = tv_shape_of(2, (int64_t[]){tv_shape_times(s->d[0], s->d[1]), s->d[2]});
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &flat, &x, 1, &y));
    tv_shape offsets = tv_shape_of(2, (int64_t[]){s->d[0], s->d[1]});
    tv_shape ends = tv_shape_of(1, (int64_t[]){s->d[0] + 1});
    tv_shape one = tv_shape_of(1, (int64_t[]){1});
    tv_run_out(r, n, 1, tv_run_make(r, TV_I32, &offsets));
    tv_run_out(r, n, 2, tv_run_make(r, TV_I32, &ends));
    tv_run_out(r, n, 3, tv_run_make(r, TV_I32, &one));
    return tv_opset_done(r, n, y);
}

static const tv_err *restore_padding(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t offsets = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, offsets));
    const tv_shape *s = tv_run_shape(r, x);
    const tv_shape *o = tv_run_shape(r, offsets);
    if (s->rank != 2 || o->rank != 2)
        return bad(r, s);
    tv_shape shape = tv_shape_of(3, (int64_t[]){o->d[0], o->d[1], s->d[1]});
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_copy(r, tv_run_at(r, x)->dtype, &shape, &x, 1, &y));
    return tv_opset_done(r, n, y);
}

/* A table of biases per head, looked up by distance: [1, heads, queries, keys]. */
static const tv_err *relative_bias(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t table = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, table));
    const tv_shape *t = tv_run_shape(r, table);
    double q = tv_run_scalar(r, tv_run_in(r, n, 1), -1);
    double k = tv_run_scalar(r, tv_run_in(r, n, 2), q);
    if (t->rank != 2 || q < 0 || k < 0 || q > 1e9 || k > 1e9)
        return tv_run_unknown(r, n);
    tv_shape shape = tv_shape_of(4, (int64_t[]){1, t->d[1], (int64_t)q, (int64_t)k});
    uint32_t y = tv_run_make(r, tv_run_at(r, table)->dtype, &shape);
    TV_TRY(tv_rule_route(r, &table, 1, &y, 1));
    return tv_opset_done(r, n, y);
}

static const tv_rule rules[] = {
    {"Attention", attention, 0},
    {"DecoderMaskedMultiHeadAttention", multi_head, 1},
    {"GroupQueryAttention", group_query, 0},
    {"MultiHeadAttention", multi_head, 0},
    {"PackedAttention", packed, 0},
    {"PackedMultiHeadAttention", packed, 1},
    {"PagedAttention", group_query, 0},
    {"QAttention", attention, 1},
    {"QOrderedAttention", attention, 1},
    {"RelativePositionBias", relative_bias, 0},
    {"RemovePadding", remove_padding, 0},
    {"RestorePadding", restore_padding, 0},
    {"SparseAttention", group_query, 0},
};

const tv_rule_table tv_rules_onnx_ort_attention = {TV_DIALECT_ONNX, "com.microsoft", rules,
                                                   sizeof rules / sizeof *rules};
