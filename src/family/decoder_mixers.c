/* What mixes tokens, as ops: attention with its projections, latent and compressed attention, and
 * the indexers that pick keys. Scans are in decoder_scans.c. */
#include "decoder.h"

typedef struct projection {
    const char *name;
    double in, out;
    bool bias, row, flat; /* flat: every rank holds it whole */
    tv_shard shard;       /* 0: tensor */
} projection;

static tv_val project(tv_emit *e, projection p, tv_form tokens, tv_val x)
{
    tv_linear l = {
        .name = p.name,
        .in = p.in,
        .out = p.out,
        .rows = tokens,
        .bias = p.bias,
        .shard = p.flat    ? TV_SHARD_NONE
                 : p.shard ? p.shard
                           : TV_SHARD_TENSOR,
        .row = p.row,
    };
    return tv_emit_linear(e, &l, x);
}

static tv_form tokens_of(const tv_decoder *d, tv_val x)
{
    return tv_form_scale(x.n, 1 / d->hidden);
}

static tv_val part(tv_val v, tv_form tokens, double width)
{
    return tv_emit_view(v, tv_form_scale(tokens, width));
}

static double v_width(const tv_decoder_mix *m)
{
    return m->v_dim > 0 ? m->v_dim : m->head_dim;
}

/* ---- q, k and v ---- */

typedef struct heads_of {
    tv_val q, k, v, gate;
} heads_of;

static heads_of fused_heads(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x)
{
    tv_form t = tokens_of(d, x);
    double q = m->heads * m->head_dim, k = m->kv_heads * m->head_dim, v = m->kv_heads * v_width(m);
    tv_val all =
        project(e, (projection){d->names->qkv, d->hidden, q + k + v, .bias = m->qkv_bias}, t, x);
    return (heads_of){part(all, t, q), part(all, t, k), part(all, t, v), tv_no_val};
}

static heads_of split_heads(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x,
                            tv_val xv)
{
    tv_form t = tokens_of(d, x);
    double q = m->heads * m->head_dim;
    projection qp = {d->names->q, d->hidden, m->gate ? 2 * q : q, .bias = m->qkv_bias};
    projection kp = {d->names->k, d->hidden, m->kv_heads * m->head_dim, .bias = m->qkv_bias,
                     .shard = TV_SHARD_KV_HEADS};
    projection vp = {d->names->v, d->hidden, m->kv_heads * v_width(m), .bias = m->qkv_bias,
                     .shard = TV_SHARD_KV_HEADS};
    heads_of h = {.gate = tv_no_val, .k = tv_no_val, .v = tv_no_val};
    h.q = project(e, qp, t, x);
    if (m->gate) {
        h.gate = part(h.q, t, q);
        h.q = h.gate;
    }
    if (m->reads_kv)
        return h;
    h.k = project(e, kp, t, x);
    h.v = m->k_is_v ? h.k : project(e, vp, t, xv);
    return h;
}

static tv_val head_norm(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, const char *name,
                        tv_val x, double heads)
{
    if (x.storage == TV_NONE)
        return x;
    double width = m->qk_norm == TV_QK_HEAD ? m->head_dim : heads * m->head_dim;
    bool plain = m->qk_norm == TV_QK_PLAIN;
    return tv_emit_norm(e, name, d->norm, x, plain ? m->head_dim : width, !plain, false);
}

static void norm_heads(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, heads_of *h)
{
    if (m->qk_norm != TV_QK_NONE) {
        h->q = head_norm(e, d, m, "self_attn.q_norm", h->q, m->heads);
        h->k = head_norm(e, d, m, "self_attn.k_norm", h->k, m->kv_heads);
    }
    if (m->v_norm && h->v.storage != TV_NONE)
        h->v = tv_emit_norm(e, "self_attn.v_norm", d->norm, h->v, v_width(m), false, false);
    if (m->no_rope)
        return;
    h->q = tv_emit_rope(e, "self_attn.rope_q", h->q);
    if (h->k.storage != TV_NONE)
        h->k = tv_emit_rope(e, "self_attn.rope_k", h->k);
}

/* ---- the core ---- */

static double dropout_of(const tv_emit *e, double stated)
{
    return e->set->dropout >= 0 ? e->set->dropout : stated;
}

static tv_attention core_of(const tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m)
{
    bool trains = e->set->phase == TV_PHASE_TRAIN;
    return (tv_attention){
        .name = "self_attn.core",
        .heads = m->heads,
        .kv_heads = m->kv_heads,
        .head_dim = m->head_dim,
        .v_dim = m->v_dim,
        .causal = true,
        .window = m->index_keys > 0 ? m->index_keys : m->window,
        .dropout = dropout_of(e, d->attention_dropout),
        .softmax_fp32 = !m->softmax_16,
        .no_kernel = m->no_kernel && trains, /* engines that serve have kernels for these */
        .shard = TV_SHARD_TENSOR,
    };
}

/* What the cache moves per token differs from the heads' widths where it holds latents. */
static void set_cache_traffic(tv_emit *e, double width_share)
{
    tv_op *op = &e->g->ops[e->g->n_ops - 1];
    op->kv_read_bytes = tv_form_scale(op->kv_read_bytes, width_share);
    op->kv_write_bytes = tv_form_scale(op->kv_write_bytes, width_share);
}

static tv_val joined(tv_emit *e, tv_val out)
{
    return e->set->forced_contiguous && e->set->phase == TV_PHASE_TRAIN
               ? tv_emit_contiguous(e, "self_attn.contiguous", out)
               : out;
}

static tv_val output(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_form t, tv_val x)
{
    projection p = {d->names->out, m->heads * v_width(m), d->hidden, .bias = m->out_bias,
                    .row = true};
    return project(e, p, t, x);
}

static tv_val gated(tv_emit *e, tv_val out, tv_val gate)
{
    if (gate.storage == TV_NONE)
        return out;
    gate = tv_emit_act(e, "self_attn.gate_sigmoid", TV_ACT_SIGMOID, gate);
    return tv_emit_mul(e, "self_attn.gated", out, gate);
}

static void sinks(tv_emit *e, const tv_decoder_mix *m)
{
    if (m->sinks)
        tv_emit_weight(e, "self_attn.sinks", TV_WEIGHT_OTHER, m->heads, 1, 1, TV_SHARD_TENSOR);
}

/* ---- indexers ---- */

/* Scores every earlier token with few small heads; attention then sees the best ones. */
static void index_scores(tv_emit *e, const tv_decoder_mix *m, double share)
{
    bool decode = e->set->phase == TV_PHASE_DECODE;
    double t = tv_emit_tokens(e), each = 2 * m->index_heads * m->index_dim * share;
    tv_op *op = tv_emit_op(e, TV_OP_ROUTING, "self_attn.indexer.scores");
    op->flop = decode ? (tv_form){.b = each * t, .c = each * t}
                      : tv_form_per_batch(each * t * (t + 1) / 2);
    op->backward_launches = 0;
    tv_dtype kv = e->set->policy.kv ? e->set->policy.kv : e->set->policy.stream;
    if (decode)
        op->kv_read_bytes = (tv_form){.c = m->index_dim * share * tv_dtype_bytes(kv)};
}

static void indexer(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_form t, tv_val x,
                    tv_val q)
{
    if (!(m->index_heads > 0))
        return;
    double width = m->index_heads * m->index_dim;
    double from = m->index_flat ? d->hidden : m->q_rank;
    (void)project(e, (projection){"self_attn.indexer.wq", from, width, .flat = true}, t,
                  m->index_flat ? x : q);
    tv_val k = project(
        e, (projection){"self_attn.indexer.wk", d->hidden, m->index_dim, .flat = true}, t, x);
    if (m->index_flat) {
        tv_emit_weight(e, "self_attn.indexer.norms", TV_WEIGHT_NORM, m->index_dim, 1, 2,
                       TV_SHARD_NONE);
    } else {
        (void)tv_emit_norm(e, "self_attn.indexer.k_norm", TV_NORM_LAYER, k, m->index_dim, true,
                           true);
        (void)project(
            e,
            (projection){"self_attn.indexer.weights_proj", d->hidden, m->index_heads, .flat = true},
            t, x);
    }
    index_scores(e, m, 1);
}

/* ---- ordinary attention ---- */

/* Yuan's localised filtering: two causal convolutions of two taps before q and k. */
static tv_val filtered(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x)
{
    if (!(m->filter_conv > 0))
        return x;
    double h = d->hidden, t = tv_emit_tokens(e);
    tv_conv down = {.name = "self_attn.lf_gate.conv1",
                    .in = h,
                    .out = h / 2,
                    .kernel = m->filter_conv,
                    .positions = t,
                    .bias = true};
    tv_conv up = {.name = "self_attn.lf_gate.conv2",
                  .in = h / 2,
                  .out = h,
                  .kernel = m->filter_conv,
                  .positions = t,
                  .bias = true};
    tv_val y = tv_emit_conv(e, &up, tv_emit_conv(e, &down, x));
    return tv_emit_norm(e, "self_attn.lf_gate.norm", d->norm, tv_emit_add(e, "lf_sum", x, y), h,
                        true, d->norm_bias);
}

static tv_val attention(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x)
{
    tv_form t = tokens_of(d, x);
    tv_val xq = filtered(e, d, m, x);
    heads_of h = m->fused ? fused_heads(e, d, m, x) : split_heads(e, d, m, xq, x);
    norm_heads(e, d, m, &h);
    indexer(e, d, m, t, x, x);
    sinks(e, m);
    tv_attention core = core_of(e, d, m);
    tv_val out = joined(e, tv_emit_attention(e, &core, h.q, h.k, h.v));
    if (!m->reads_kv)
        tv_emit_cache(e, m->kv_heads * (m->head_dim + v_width(m)) + m->index_dim, m->kv_heads,
                      m->window, 0);
    return output(e, d, m, t, gated(e, out, h.gate));
}

/* ---- latent attention ---- */

static tv_val latent_queries(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_form t,
                             tv_val x, tv_val *latent)
{
    double width = m->heads * m->head_dim;
    *latent = x;
    if (!(m->q_rank > 0))
        return project(e, (projection){"self_attn.q_proj", d->hidden, width, .bias = m->qkv_bias},
                       t, x);
    tv_val a = project(
        e,
        (projection){"self_attn.q_a_proj", d->hidden, m->q_rank, .bias = m->qkv_bias, .flat = true},
        t, x);
    *latent = tv_emit_norm(e, "self_attn.q_a_layernorm", d->norm, a, m->q_rank, true, false);
    return project(e, (projection){"self_attn.q_b_proj", m->q_rank, width, .bias = false}, t,
                   *latent);
}

/* Rotates the positional part of each head and joins it with the rest: a new tensor. */
static tv_val with_rope(tv_emit *e, const tv_decoder_mix *m, const char *name, tv_form t,
                        tv_val content, tv_val position, double heads)
{
    double rope = heads * m->rope_dim;
    tv_val parts[2] = {part(content, t, m->heads * (m->head_dim - m->rope_dim)),
                       part(position, t, rope)};
    if (!m->no_rope)
        parts[1] = tv_emit_rope(e, "self_attn.rope", parts[1]);
    parts[1] = part(parts[1], t, m->heads * m->rope_dim); /* one rotated key serves all heads */
    return tv_emit_concat(e, name, parts, 2);
}

/* Serving engines fold the up-projection into the query and the output, so that a decoded token
 * reads latents: one key of rank + rope for all heads. The folded products cost what kv_b costs. */
static tv_val absorbed(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_form t,
                       tv_val q, tv_val latent)
{
    tv_attention core = core_of(e, d, m);
    core.kv_heads = 1;
    core.head_dim = m->kv_rank + m->rope_dim;
    core.v_dim = m->kv_rank;
    q = part(q, t, m->heads * core.head_dim);
    tv_val out = tv_emit_attention(e, &core, q, part(latent, t, core.head_dim), tv_no_val);
    set_cache_traffic(e, core.head_dim / (core.head_dim + core.v_dim));
    return part(out, t, m->heads * v_width(m));
}

static tv_val latent_attention(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x)
{
    tv_form t = tokens_of(d, x);
    double nope = m->head_dim - m->rope_dim, latent_width = m->kv_rank + m->rope_dim;
    tv_val q_latent;
    tv_val q = latent_queries(e, d, m, t, x, &q_latent);
    tv_val kv_a = project(e,
                          (projection){"self_attn.kv_a_proj", d->hidden, latent_width,
                                       .bias = m->qkv_bias, .flat = true},
                          t, x);
    tv_val latent = tv_emit_norm(e, "self_attn.kv_a_layernorm", d->norm, part(kv_a, t, m->kv_rank),
                                 m->kv_rank, true, false);
    tv_val kv = project(e,
                        (projection){"self_attn.kv_b_proj", m->kv_rank,
                                     m->heads * (nope + v_width(m)), .bias = false},
                        t, latent);
    indexer(e, d, m, t, x, q_latent);
    tv_val out;
    if (e->set->phase == TV_PHASE_DECODE) {
        out = absorbed(e, d, m, t, q, latent);
    } else {
        tv_attention core = core_of(e, d, m);
        q = with_rope(e, m, "self_attn.query", t, q, q, m->heads);
        tv_val k = with_rope(e, m, "self_attn.key", t, kv, kv_a, 1);
        tv_val v = part(kv, t, m->heads * v_width(m));
        out = tv_emit_attention(e, &core, q, k, v);
        set_cache_traffic(e, latent_width / (m->heads * (m->head_dim + v_width(m))));
    }
    tv_emit_cache(e, latent_width + m->index_dim, 0, m->window, 0);
    out = joined(e, out);
    if (m->latent_gate)
        out = gated(e, out,
                    project(e,
                            (projection){"self_attn.g_proj", d->hidden, m->heads * v_width(m),
                                         .bias = false},
                            t, x));
    return output(e, d, m, t, out);
}

/* ---- cross attention ---- */

static tv_val cross_attention(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x)
{
    tv_form t = tokens_of(d, x), seen = tv_form_per_batch(m->tower_tokens);
    double k_width = m->kv_heads * m->head_dim;
    bool decode = e->set->phase == TV_PHASE_DECODE;
    projection qp = {"cross_attn.q_proj", d->hidden, m->heads * m->head_dim, .bias = false};
    projection kp = {"cross_attn.k_proj", m->tower_width, k_width, .shard = TV_SHARD_KV_HEADS};
    projection vp = {"cross_attn.v_proj", m->tower_width, k_width, .shard = TV_SHARD_KV_HEADS};
    tv_val q = head_norm(e, d, m, "cross_attn.q_norm", project(e, qp, t, x), m->heads);
    tv_val k = tv_no_val, v = tv_no_val;
    if (decode) { /* computed once per image, then cached */
        tv_emit_weight(e, kp.name, TV_WEIGHT_MATRIX, k_width, m->tower_width, 1, TV_SHARD_KV_HEADS);
        tv_emit_weight(e, vp.name, TV_WEIGHT_MATRIX, k_width, m->tower_width, 1, TV_SHARD_KV_HEADS);
        tv_emit_weight(e, "cross_attn.k_norm", TV_WEIGHT_NORM, m->head_dim, 1, 1, TV_SHARD_NONE);
    } else {
        tv_val tower = tv_emit_input(e, "image states", m->tower_tokens * m->tower_width,
                                     e->set->policy.stream);
        k = head_norm(e, d, m, "cross_attn.k_norm", project(e, kp, seen, tower), m->kv_heads);
        v = project(e, vp, seen, tower);
    }
    tv_attention core = core_of(e, d, m);
    core.name = "cross_attn.core";
    core.causal = false;
    core.cross = true;
    core.k_tokens = m->tower_tokens;
    tv_val out = joined(e, tv_emit_attention(e, &core, q, k, v));
    double cached = 2 * k_width * m->tower_tokens;
    tv_dtype kv = e->set->policy.kv ? e->set->policy.kv : e->set->policy.stream;
    tv_emit_cache(e, 0, m->kv_heads, 0, cached * tv_dtype_bytes(kv));
    projection op = {"cross_attn.o_proj", m->heads * m->head_dim, d->hidden, .row = true};
    return project(e, op, t, out);
}

/* ---- compressed attention ---- */

/* One entry stands for `ratio` tokens: gated sums of projected hidden states; the fine ratio
 * overlaps its windows and so needs both halves. */
static void compressor(tv_emit *e, const tv_decoder *d, double ratio, double width, tv_form t,
                       tv_val x)
{
    double wide = ratio == 4 ? 2 * width : width;
    (void)project(e, (projection){"self_attn.compressor.wkv", d->hidden, wide, .flat = true}, t, x);
    (void)project(e, (projection){"self_attn.compressor.wgate", d->hidden, wide, .flat = true}, t,
                  x);
    tv_emit_weight(e, "self_attn.compressor.positions", TV_WEIGHT_OTHER, ratio, wide, 1,
                   TV_SHARD_NONE);
    tv_emit_weight(e, "self_attn.compressor.norm", TV_WEIGHT_NORM, width, 1, 1, TV_SHARD_NONE);
}

static void far_tokens(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_form t,
                       tv_val x, tv_val q_latent)
{
    if (!(m->compress > 0))
        return;
    compressor(e, d, m->compress, m->head_dim, t, x);
    if (!(m->index_heads > 0))
        return;
    (void)project(e,
                  (projection){"self_attn.indexer.wq", m->q_rank, m->index_heads * m->index_dim,
                               .flat = true},
                  t, q_latent);
    (void)project(
        e, (projection){"self_attn.indexer.weights_proj", d->hidden, m->index_heads, .flat = true},
        t, x);
    compressor(e, d, m->compress, m->index_dim, t, x);
    index_scores(e, m, 1 / m->compress);
}

static void compressed_cache(tv_emit *e, const tv_decoder_mix *m)
{
    tv_dtype kv = e->set->policy.kv ? e->set->policy.kv : e->set->policy.stream;
    if (!(m->compress > 0)) {
        tv_emit_cache(e, m->head_dim, 0, m->window, 0);
        return;
    }
    double far = (m->head_dim + m->index_dim) / m->compress;
    tv_emit_cache(e, far, 0, 0, m->window * m->head_dim * tv_dtype_bytes(kv));
}

static tv_val compressed_attention(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m,
                                   tv_val x)
{
    tv_form t = tokens_of(d, x);
    double width = m->heads * m->head_dim;
    tv_val q_latent;
    tv_val q = tv_emit_rope(e, "self_attn.rope_q", latent_queries(e, d, m, t, x, &q_latent));
    tv_val kv =
        project(e, (projection){"self_attn.kv_proj", d->hidden, m->head_dim, .flat = true}, t, x);
    kv = tv_emit_norm(e, "self_attn.kv_norm", d->norm, kv, m->head_dim, true, false);
    kv = tv_emit_rope(e, "self_attn.rope_k", kv);
    far_tokens(e, d, m, t, x, q_latent);
    sinks(e, m);
    tv_attention core = core_of(e, d, m);
    core.kv_heads = 1;
    double far = m->compress > 0 ? (double)e->set->seq / m->compress : 0;
    if (m->index_keys > 0 && far > m->index_keys)
        far = m->index_keys;
    core.window = m->window + far;
    tv_val out = joined(e, tv_emit_attention(e, &core, q, kv, kv));
    set_cache_traffic(e, 0.5); /* the key is the value too */
    compressed_cache(e, m);
    projection a = {"self_attn.o_a_proj", width / m->out_groups, m->out_groups * m->out_rank,
                    .bias = false};
    projection b = {"self_attn.o_b_proj", m->out_groups * m->out_rank, d->hidden, .row = true};
    return project(e, b, t, project(e, a, t, out));
}

tv_val tv_decoder_mix_emit(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x)
{
    switch (m->kind) {
    case TV_MIX_NONE:
        return x;
    case TV_MIX_ATTENTION:
        return attention(e, d, m, x);
    case TV_MIX_LATENT:
        return latent_attention(e, d, m, x);
    case TV_MIX_CROSS:
        return cross_attention(e, d, m, x);
    case TV_MIX_COMPRESSED:
        return compressed_attention(e, d, m, x);
    case TV_MIX_MAMBA:
    case TV_MIX_MAMBA2:
    case TV_MIX_DELTA:
    case TV_MIX_KDA:
    case TV_MIX_CONV:
        return tv_decoder_scan_emit(e, d, m, x);
    }
    return x;
}
