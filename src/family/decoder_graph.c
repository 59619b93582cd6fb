/* A decoder as an op list: embedding, layer kinds in their order, head and loss. */
#include "decoder.h"

static double dropout_of(const tv_emit *e, double stated)
{
    return e->set->dropout >= 0 ? e->set->dropout : stated;
}

tv_val tv_decoder_norm(tv_emit *e, const tv_decoder *d, const char *name, tv_val x, double width)
{
    return tv_emit_norm(e, name, d->norm, x, width, !d->norm_plain, d->norm_bias);
}

/* ---- MLP ---- */

static tv_val dense(tv_emit *e, const tv_decoder *d, const tv_decoder_mlp *m, tv_val x)
{
    tv_form t = tv_form_scale(x.n, 1 / d->hidden);
    tv_linear up = {.name = d->names->up,
                    .in = d->hidden,
                    .out = m->inter,
                    .rows = t,
                    .bias = m->bias,
                    .shard = TV_SHARD_TENSOR};
    tv_linear down = {.name = d->names->down,
                      .in = m->inter,
                      .out = d->hidden,
                      .rows = t,
                      .bias = m->bias,
                      .shard = TV_SHARD_TENSOR,
                      .row = true};
    if (!m->gated)
        return tv_emit_linear(e, &down,
                              tv_emit_act(e, "mlp.act", m->act, tv_emit_linear(e, &up, x)));
    tv_val gate, raised;
    if (m->fused) {
        up.name = d->names->gate_up;
        up.out = 2 * m->inter;
        gate = tv_emit_linear(e, &up, x);
        gate = tv_emit_view(gate, tv_form_scale(t, m->inter));
        raised = gate;
    } else {
        tv_linear gate_proj = up;
        gate_proj.name = d->names->gate;
        gate = tv_emit_linear(e, &gate_proj, x);
        raised = tv_emit_linear(e, &up, x);
    }
    tv_val h = tv_emit_mul(e, "mlp.product", tv_emit_act(e, "mlp.act", m->act, gate), raised);
    return tv_emit_linear(e, &down, h);
}

static tv_moe moe_of(const tv_decoder *d, const tv_decoder_mlp *m)
{
    return (tv_moe){
        .name = "mlp",
        .hidden = m->latent > 0 ? m->latent : d->hidden,
        .inter = m->expert_inter,
        .experts = m->experts,
        .top_k = m->top_k,
        .shared_inter = m->latent > 0 ? 0 : m->shared_inter,
        .gated = m->gated,
        .bias = m->expert_bias,
        .shared_gate = m->shared_gate,
        .router_bias = m->router_bias,
        .act = m->act,
    };
}

/* Experts at a narrower width: a projection before, one after; router and shared experts stay at
 * the full width. */
static tv_val latent_experts(tv_emit *e, const tv_decoder *d, const tv_decoder_mlp *m, tv_val x)
{
    tv_form t = tv_form_scale(x.n, 1 / d->hidden);
    tv_linear down = {.name = "mlp.latent_down", .in = d->hidden, .out = m->latent, .rows = t};
    tv_linear up = {.name = "mlp.latent_up", .in = m->latent, .out = d->hidden, .rows = t};
    tv_moe moe = moe_of(d, m);
    tv_val h = tv_emit_linear(e, &down, x);
    if (m->latent_norm)
        h = tv_emit_norm(e, "mlp.latent_norm", d->norm, h, m->latent, true, false);
    h = tv_emit_linear(e, &up, tv_emit_moe(e, &moe, h));
    /* the router reads the full width: the rest of its columns */
    tv_emit_weight(e, "mlp.router_rest", TV_WEIGHT_OTHER, m->experts, d->hidden - m->latent, 1,
                   TV_SHARD_NONE);
    if (!(m->shared_inter > 0))
        return h;
    tv_decoder_mlp shared = {.inter = m->shared_inter, .gated = m->gated, .act = m->act};
    return tv_emit_add(e, "mlp.shared_sum", h, dense(e, d, &shared, x));
}

static tv_val experts(tv_emit *e, const tv_decoder *d, const tv_decoder_mlp *m, tv_val x)
{
    if (m->latent > 0)
        return latent_experts(e, d, m, x);
    const char *before = e->prefix;
    tv_moe moe = moe_of(d, m);
    e->prefix = "mlp.";
    tv_val out = tv_emit_moe(e, &moe, x);
    e->prefix = before;
    return out;
}

tv_val tv_decoder_mlp_emit(tv_emit *e, const tv_decoder *d, const tv_decoder_mlp *m, tv_val x)
{
    if (!(m->experts > 0))
        return dense(e, d, m, x);
    tv_val out = experts(e, d, m, x);
    return m->beside ? tv_emit_add(e, "mlp.sum", out, dense(e, d, m, x)) : out;
}

/* ---- layers ---- */

/* Hyper-connections keep several residual streams: a small projection of all of them decides how
 * they mix, one weighted sum goes in, the result is spread over them again. */
static tv_val streams_in(tv_emit *e, const tv_decoder *d, const char *name, double n, tv_val x)
{
    if (n <= 1)
        return x;
    tv_form t = tv_form_scale(x.n, 1 / (n * d->hidden));
    tv_linear mix = {.name = name,
                     .in = n * d->hidden,
                     .out = n * (n + 2),
                     .rows = t,
                     .bias = true,
                     .keep_fp32 = true,
                     .no_adapter = true,
                     .no_quant = true};
    (void)tv_emit_linear(e, &mix, x);
    tv_emit_weight(e, "hyper_scale", TV_WEIGHT_OTHER, 3, 1, 1, TV_SHARD_NONE);
    tv_op *op = tv_emit_op(e, TV_OP_ELEMENTWISE, "hyper_reduce");
    op->flop = tv_form_scale(x.n, 2);
    op->backward = x.grad ? 2 : 0;
    op->read_bytes = tv_form_scale(x.n, tv_dtype_bytes(x.dtype));
    tv_emit_reads(e, op, &x.storage, 1);
    tv_val out = tv_emit_out(e, op, "mixed stream", tv_form_scale(t, d->hidden), x.dtype, x.grad);
    tv_emit_saves(e, &e->g->ops[e->g->n_ops - 1], &x.storage, 1);
    return out;
}

static tv_val streams_out(tv_emit *e, double n, tv_val before, tv_val y)
{
    if (n <= 1)
        return tv_emit_add(e, "residual", before, y);
    tv_op *op = tv_emit_op(e, TV_OP_ELEMENTWISE, "hyper_spread");
    op->flop = tv_form_scale(before.n, 2 * n);
    op->backward = before.grad ? 2 : 0;
    op->read_bytes = tv_form_scale(before.n, tv_dtype_bytes(before.dtype));
    op->write_bytes = op->read_bytes;
    const uint32_t in[2] = {before.storage, y.storage};
    tv_emit_reads(e, op, in, 2);
    tv_val out = tv_emit_out(e, op, "streams", before.n, before.dtype, before.grad || y.grad);
    tv_emit_saves(e, &e->g->ops[e->g->n_ops - 1], &y.storage, 1);
    return out;
}

static tv_val residual_dropout(tv_emit *e, const tv_decoder *d, const char *name, tv_val x)
{
    return tv_emit_dropout(e, name, dropout_of(e, d->residual_dropout), x);
}

static tv_val branch(tv_emit *e, const tv_decoder *d, bool post, const char *norm_name,
                     const char *drop_name, tv_val y)
{
    if (post)
        y = tv_decoder_norm(e, d, norm_name, y, d->hidden);
    return residual_dropout(e, d, drop_name, y);
}

static tv_val parallel_layer(tv_emit *e, const tv_decoder *d, const tv_decoder_layer *l, tv_val x)
{
    tv_val h = l->pre_mix ? tv_decoder_norm(e, d, "input_layernorm", x, d->hidden) : x;
    tv_val hm = l->pre_mlp ? tv_decoder_norm(e, d, "post_attention_layernorm", x, d->hidden) : h;
    tv_val y = residual_dropout(e, d, "attn_dropout", tv_decoder_mix_emit(e, d, &l->mix, h));
    tv_val z = residual_dropout(e, d, "mlp_dropout", tv_decoder_mlp_emit(e, d, &l->mlp, hm));
    return tv_emit_add(e, "residual", tv_emit_add(e, "branches", y, z), x);
}

static bool has_mlp(const tv_decoder_layer *l)
{
    return l->mlp.inter > 0 || l->mlp.experts > 0;
}

/* BERT's order: the norm stands behind the residual addition. */
static tv_val after_add_layer(tv_emit *e, const tv_decoder *d, const tv_decoder_layer *l, tv_val x)
{
    tv_val y = residual_dropout(e, d, "attn_dropout", tv_decoder_mix_emit(e, d, &l->mix, x));
    x = tv_decoder_norm(e, d, "self_attn_layer_norm", tv_emit_add(e, "residual", x, y), d->hidden);
    y = residual_dropout(e, d, "mlp_dropout", tv_decoder_mlp_emit(e, d, &l->mlp, x));
    return tv_decoder_norm(e, d, "final_layer_norm", tv_emit_add(e, "residual", x, y), d->hidden);
}

/* Per-layer embeddings: a narrow gate over the hidden state, times this layer's slice. */
static tv_val side_branch(tv_emit *e, const tv_decoder *d, double width, tv_val x)
{
    tv_linear gate = {.name = "per_layer_input_gate", .in = d->hidden, .out = width};
    tv_linear out = {.name = "per_layer_projection", .in = width, .out = d->hidden};
    tv_val y = tv_emit_linear(
        e, &out, tv_emit_act(e, "per_layer_act", TV_ACT_GELU, tv_emit_linear(e, &gate, x)));
    y = tv_decoder_norm(e, d, "post_per_layer_input_norm", y, d->hidden);
    return tv_emit_add(e, "residual", x, y);
}

static tv_val serial_layer(tv_emit *e, const tv_decoder *d, const tv_decoder_layer *l, tv_val x)
{
    if (l->mix.kind != TV_MIX_NONE) {
        tv_val h = streams_in(e, d, "hyper_attn", l->streams, x);
        h = l->pre_mix ? tv_decoder_norm(e, d, "input_layernorm", h, d->hidden) : h;
        tv_val y = branch(e, d, l->post_mix, "post_attention_norm", "attn_dropout",
                          tv_decoder_mix_emit(e, d, &l->mix, h));
        x = streams_out(e, l->streams, x, y);
    }
    if (has_mlp(l)) {
        tv_val h = streams_in(e, d, "hyper_mlp", l->streams, x);
        h = l->pre_mlp ? tv_decoder_norm(e, d, "post_attention_layernorm", h, d->hidden) : h;
        tv_val y = branch(e, d, l->post_mlp, "post_feedforward_norm", "mlp_dropout",
                          tv_decoder_mlp_emit(e, d, &l->mlp, h));
        x = streams_out(e, l->streams, x, y);
    }
    return l->side_input > 0 ? side_branch(e, d, l->side_input, x) : x;
}

static tv_val layer(tv_emit *e, const tv_decoder *d, const tv_decoder_layer *l, tv_val in)
{
    tv_val x = tv_emit_block(e, l->name, TV_STAGE_BODY, in);
    if (l->extra > 0)
        tv_emit_weight(e, "gates", TV_WEIGHT_OTHER, l->extra, 1, 1, TV_SHARD_NONE);
    if (l->after_add)
        x = after_add_layer(e, d, l, x);
    else if (l->parallel && l->mix.kind != TV_MIX_NONE && has_mlp(l))
        x = parallel_layer(e, d, l, x);
    else
        x = serial_layer(e, d, l, x);
    return tv_emit_end(e, x);
}

/* ---- embedding and head ---- */

static double stream_count(const tv_decoder *d)
{
    double n = d->n_kinds ? d->kinds[0].streams : 1;
    return n > 1 ? n : 1;
}

static void side_embedding(tv_emit *e, const tv_decoder *d, tv_form t, tv_val ids, tv_val x)
{
    if (!(d->side_width > 0))
        return;
    double all = d->n_layers * d->side_width;
    tv_linear p = {
        .name = "per_layer_model_projection", .in = d->hidden, .out = all, .no_adapter = true};
    tv_val y = tv_emit_linear(e, &p, x);
    y = tv_emit_norm(e, "per_layer_projection_norm", d->norm, y, d->side_width, true, false);
    tv_val v = tv_emit_embedding(e, "embed_tokens_per_layer", ids, d->side_vocab, all, t);
    tv_emit_global(e, tv_emit_add(e, "per_layer_inputs", v, y));
}

static tv_val embed(tv_emit *e, const tv_decoder *d)
{
    tv_val none = tv_emit_block(e, "embed", TV_STAGE_EMBED, tv_no_val);
    (void)none;
    double width = d->embed_width > 0 ? d->embed_width : d->hidden;
    tv_form t = tv_form_per_batch(tv_emit_tokens(e));
    tv_val ids = tv_emit_input(e, "token ids", t.b, TV_I64);
    tv_val x = tv_emit_embedding(e, "embed_tokens", ids, d->vocab + d->extra_rows, width, t);
    if (d->embed_width > 0) {
        tv_linear in = {.name = "project_in", .in = width, .out = d->hidden};
        x = tv_emit_linear(e, &in, x);
    }
    if (d->embed_scale)
        x = tv_emit_scale(e, "embed_scale", x, 0);
    if (d->positions > 0)
        x = tv_emit_add(e, "positions", x,
                        tv_emit_embedding(e, "embed_positions", ids, d->positions, d->hidden, t));
    if (d->embed_norm)
        x = tv_decoder_norm(e, d, "embed_layernorm", x, d->hidden);
    x = tv_emit_dropout(e, "embed_dropout", dropout_of(e, d->embed_dropout), x);
    side_embedding(e, d, t, ids, x);
    if (d->spare > 0)
        tv_emit_weight(e, "unassigned", TV_WEIGHT_OTHER, d->spare, 1, 1, TV_SHARD_NONE);
    double streams = stream_count(d);
    if (streams > 1) { /* the embedding stands in every stream at the start */
        tv_val copies[16];
        size_t n = streams < 16 ? (size_t)streams : 16;
        for (size_t i = 0; i < n; i++)
            copies[i] = x;
        x = tv_emit_concat(e, "streams", copies, n);
    }
    return tv_emit_end(e, x);
}

static tv_val last_position(tv_emit *e, const tv_decoder *d, tv_val x)
{
    bool last = e->set->phase == TV_PHASE_PREFILL && e->set->last_logits;
    return last ? tv_emit_view(x, tv_form_per_batch(d->hidden)) : x;
}

static void head(tv_emit *e, const tv_decoder *d, tv_val x)
{
    x = tv_emit_block(e, "head", TV_STAGE_HEAD, x);
    double streams = stream_count(d), rows = tv_emit_tokens(e);
    if (streams > 1) {
        tv_emit_weight(e, "hyper_head", TV_WEIGHT_OTHER,
                       streams * streams * d->hidden + streams + 1, 1, 1, TV_SHARD_NONE);
        x = tv_emit_view(x, tv_form_scale(x.n, 1 / streams));
    }
    if (d->final_norm)
        x = tv_decoder_norm(e, d, "norm", x, d->hidden);
    if (d->head == TV_HEAD_NONE) {
        (void)tv_emit_end(e, x);
        return;
    }
    double width = d->hidden;
    if (d->embed_width > 0) {
        tv_linear out = {
            .name = "project_out", .in = d->hidden, .out = d->embed_width, .no_adapter = true};
        x = tv_emit_linear(e, &out, x);
        width = d->embed_width;
    }
    if (d->head == TV_HEAD_CLASSES) {
        tv_linear score = {
            .name = "score", .in = width, .out = d->classes, .no_adapter = true, .no_quant = true};
        x = tv_emit_linear(e, &score, x);
        tv_emit_cross_entropy(e, "loss", x, d->classes, rows);
        (void)tv_emit_end(e, x);
        return;
    }
    e->role = TV_WEIGHT_HEAD;
    tv_linear lm = {.name = "lm_head",
                    .in = width,
                    .out = d->vocab,
                    .bias = d->head_bias,
                    .shard = TV_SHARD_VOCAB,
                    .tied = d->tied,
                    .no_adapter = true,
                    .no_quant = true};
    x = tv_emit_linear(e, &lm, last_position(e, d, x));
    tv_emit_cross_entropy(e, "loss", x, d->vocab, rows);
    (void)tv_emit_end(e, x);
}

static double most_heads(const tv_decoder *d)
{
    double most = 0;
    for (size_t i = 0; i < d->n_kinds; i++)
        if (d->kinds[i].mix.heads > most)
            most = d->kinds[i].mix.heads;
    return most;
}

const tv_err *tv_decoder_build(tv_arena *a, const tv_model *m, const tv_setting *set,
                               tv_graph **graph)
{
    const tv_decoder *d = m->spec;
    tv_emit e = tv_emit_open(a, set);
    tv_val x = embed(&e, d);
    tv_emit_order(&e, 0, 1);
    for (uint32_t i = 0; i < d->n_kinds; i++) {
        tv_val out = layer(&e, d, &d->kinds[i], x);
        if (i + 1 == d->n_kinds)
            x = out;
    }
    for (uint32_t i = 0; i < d->n_layers; i++)
        tv_emit_order(&e, d->order[i] + 1, 1);
    head(&e, d, x);
    tv_emit_order(&e, d->n_kinds + 1, 1);
    tv_graph *g = tv_emit_close(&e);
    g->heads = most_heads(d);
    *graph = g;
    return NULL;
}
