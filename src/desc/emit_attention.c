/* Attention in its forms: one fused kernel, or matmul, softmax, matmul as modules write it; the
 * decode step over a cache; mixture-of-experts layers and recurrent kernels. */
#include "emit_parts.h"

/* ---- shapes ---- */

typedef struct shape {
    double q_tokens; /* per sample */
    double k_tokens; /* per sample, without the cached ones */
    bool cached;     /* plus K cached tokens */
    double seen;     /* mean keys that a query sees */
    double v_dim;
} shape;

static double mean_seen(const tv_attention *t, double q, double k)
{
    double seen = k;
    const double w = t->window > 0 && t->window < k ? t->window : k;
    if (t->causal && q == k)
        seen = w - w * (w - 1) / (2 * k); /* the first w queries see fewer */
    else if (t->window > 0 && w < k)
        seen = w;
    return seen;
}

static shape shape_of(const tv_emit *e, const tv_attention *t)
{
    shape s = {0};
    const bool decode = e->set->phase == TV_PHASE_DECODE;
    s.q_tokens = t->q_tokens > 0 ? t->q_tokens : tv_emit_tokens(e);
    s.k_tokens = t->k_tokens > 0 ? t->k_tokens : s.q_tokens;
    s.cached = decode && !t->cross;
    s.seen = mean_seen(t, s.q_tokens, s.k_tokens);
    s.v_dim = t->v_dim > 0 ? t->v_dim : t->head_dim;
    return s;
}

/* ---- one kernel ---- */

static tv_val repeated(tv_emit *e, const tv_attention *t, const char *what, tv_val v)
{
    if (!e->set->repeat_kv || t->kv_heads >= t->heads || v.storage == TV_NONE)
        return v;
    return tv_emit_stream(e, &(tv_stream){
                                 .kind = TV_OP_COPY,
                                 .name = "repeat_kv",
                                 .what = what,
                                 .x = v,
                                 .y = tv_no_val,
                                 .n = tv_form_scale(v.n, t->heads / t->kv_heads),
                                 .dtype = v.dtype,
                             });
}

static void price_fused(const tv_emit *e, tv_op *op, const tv_attention *t, const shape *s)
{
    const double per_key = 2 * t->heads * (t->head_dim + s->v_dim);
    /* Kernels skip what the causal mask hides. */
    op->flop =
        (tv_form){.b = per_key * s->q_tokens * s->seen, .c = s->cached ? per_key * s->q_tokens : 0};
    op->m = (tv_form){.a = s->q_tokens};
    op->n = s->seen;
    op->k = t->head_dim;
    op->groups = t->heads;
    op->window = t->window;
    op->attention_core = true;
    const double kv = t->kv_heads * (t->head_dim + s->v_dim);
    const double each =
        tv_dtype_bytes(e->set->policy.kv ? e->set->policy.kv : tv_emit_matmul_dtype(e));
    if (e->set->phase == TV_PHASE_DECODE)
        op->kv_read_bytes =
            s->cached ? (tv_form){.c = kv * each} : tv_form_per_batch(kv * each * s->k_tokens);
    if (e->set->phase != TV_PHASE_TRAIN && !t->cross)
        op->kv_write_bytes = tv_form_per_batch(kv * each * s->q_tokens);
}

static tv_val fused(tv_emit *e, const tv_attention *t, tv_val q, tv_val k, tv_val v)
{
    const shape s = shape_of(e, t);
    const bool grad = q.grad || k.grad || v.grad;
    tv_op *op = tv_emit_op(e, TV_OP_ATTENTION, t->name);
    price_fused(e, op, t, &s);
    op->backward = grad ? 2.5 : 0; /* one product is computed again */
    op->shard = t->shard;
    const uint32_t in[3] = {q.storage, k.storage, v.storage};
    const tv_form n = tv_form_per_batch(s.q_tokens * t->heads * s.v_dim);
    op->read_bytes =
        tv_form_add(tv_emit_val_bytes(q), tv_form_add(tv_emit_val_bytes(k), tv_emit_val_bytes(v)));
    op->write_bytes = tv_emit_bytes(n, q.dtype);
    op->backward_bytes = tv_form_scale(tv_form_add(op->read_bytes, op->write_bytes), 2);
    op->backward_launches = grad ? 3 : 0;
    /* flash's backward keeps an fp32 sum per row and accumulates dq in fp32 */
    if (grad)
        op->temp_backward_bytes =
            tv_form_add(tv_form_per_batch(4 * s.q_tokens * t->heads),
                        tv_dtype_bytes(q.dtype) < 4 ? tv_emit_bytes(q.n, TV_F32) : (tv_form){0});
    op->temp_shard = t->shard;
    tv_emit_reads(e, op, in, 3);
    const tv_val out = tv_emit_out(e, op, "attention output", n, q.dtype, grad);
    if (!grad || !tv_emit_trains(e))
        return out;
    const tv_form rows = tv_form_per_batch(4 * s.q_tokens * t->heads);
    const uint32_t lse = tv_emit_storage(e, "log-sum-exp", rows, TV_F32, t->shard, false);
    tv_few saved = {0};
    for (size_t i = 0; i < 3; i++)
        tv_few_add(&saved, in[i]);
    tv_few_add(&saved, out.storage);
    tv_few_add(&saved, lse);
    tv_emit_saves(e, &e->g->ops[e->g->n_ops - 1], saved.v, saved.n);
    return out;
}

/* ---- as modules write it ---- */

typedef struct pair {
    const char *name, *what;
    tv_val x, y;
    double m, n, k; /* per head and sample */
    double heads;
    tv_dtype dtype;
} pair;

/* A batched product; saves both factors. */
static tv_val batched(tv_emit *e, const pair *p, tv_shard shard)
{
    tv_op *op = tv_emit_op(e, TV_OP_GEMM, p->name);
    const bool grad = p->x.grad || p->y.grad;
    const tv_form n = tv_form_per_batch(p->heads * p->m * p->n);
    op->flop = tv_form_scale(n, 2 * p->k);
    op->backward = (p->x.grad ? 1 : 0) + (p->y.grad ? 1 : 0);
    op->backward_launches = (uint16_t)op->backward;
    op->m = (tv_form){.a = p->m};
    op->n = p->n;
    op->k = p->k;
    op->groups = p->heads;
    op->shard = shard;
    op->attention_core = true;
    op->read_bytes = tv_form_add(tv_emit_val_bytes(p->x), tv_emit_val_bytes(p->y));
    op->write_bytes = tv_emit_bytes(n, p->dtype);
    op->backward_bytes = tv_form_scale(tv_form_add(op->read_bytes, op->write_bytes), op->backward);
    const uint32_t in[2] = {p->x.storage, p->y.storage};
    tv_emit_reads(e, op, in, 2);
    const tv_val out = tv_emit_out(e, op, p->what, n, p->dtype, grad);
    tv_few saved = {0};
    if (p->x.grad)
        tv_few_add(&saved, p->y.storage);
    if (p->y.grad)
        tv_few_add(&saved, p->x.storage);
    tv_emit_saves(e, op, saved.v, saved.n);
    return out;
}

static tv_val core_stream(tv_emit *e, tv_stream s)
{
    s.core = true;
    s.y = tv_no_val;
    return tv_emit_stream(e, &s);
}

/* Scale and mask make a new tensor each; at most one of them lives beside the result. */
static tv_val masked(tv_emit *e, tv_val scores)
{
    return core_stream(e, (tv_stream){
                              .kind = TV_OP_ELEMENTWISE,
                              .name = "scale and mask",
                              .what = "masked scores",
                              .x = scores,
                              .n = scores.n,
                              .dtype = scores.dtype,
                              .flop_per_out = 2,
                              .temp_forward = tv_emit_val_bytes(scores),
                              .extra_forward_bytes_per_out = 2 * tv_dtype_bytes(scores.dtype),
                              .launches = 2,
                          });
}

/* The probabilities as the second product reads them: softmax (fp32 where the module or autocast
 * says so), dropout, 16-bit copy. Kept per score: 2, 6, 5 or 7 bytes in 16 bit (docs/model.md). */
static tv_val probabilities(tv_emit *e, const tv_attention *t, tv_val scores, tv_dtype to)
{
    const bool autocast = tv_emit_autocast(e);
    const bool wide = autocast || t->softmax_fp32 || e->set->kernel == TV_KERNEL_MATH;
    tv_val in = autocast ? tv_emit_cast(e, "fp32 scores", scores, TV_F32) : scores;
    tv_val p = core_stream(e, (tv_stream){
                                  .kind = TV_OP_SOFTMAX,
                                  .name = "softmax",
                                  .what = "softmax output",
                                  .x = in,
                                  .n = in.n,
                                  .dtype = wide ? TV_F32 : in.dtype,
                                  .saves_out = true,
                                  .flop_per_out = 5,
                              });
    /* A module that upcasts by hand casts back before dropout; autocast casts at the product. */
    if (!autocast)
        p = tv_emit_cast(e, "16-bit probabilities", p, to);
    p = tv_emit_dropout(e, "attention dropout", t->dropout, p);
    return tv_emit_cast(e, "16-bit probabilities", p, to);
}

static tv_val unfused(tv_emit *e, const tv_attention *t, tv_val q, tv_val k, tv_val v)
{
    const shape s = shape_of(e, t);
    const tv_dtype to = q.dtype;
    const uint32_t first = (uint32_t)e->g->n_ops;
    pair p = {"scores", "scores", q, k, s.q_tokens, s.k_tokens, t->head_dim, t->heads, to};
    tv_val scores = masked(e, batched(e, &p, t->shard));
    const tv_val probs = probabilities(e, t, scores, to);
    p = (pair){"weighted values", "attention output", probs,    v, s.q_tokens,
               s.v_dim,           s.k_tokens,         t->heads, to};
    const tv_val out = batched(e, &p, t->shard);
    for (uint32_t i = first; i < e->g->n_ops; i++)
        e->g->ops[i].attention_core = true;
    return out;
}

static tv_val attention_in(tv_emit *e, tv_val v, tv_dtype dtype)
{
    return tv_emit_cast(e, "16-bit copy", v, dtype);
}

tv_val tv_emit_attention(tv_emit *e, const tv_attention *t, tv_val q, tv_val k, tv_val v)
{
    const tv_kernel kernel = e->set->kernel;
    if (tv_emit_autocast(e)) {
        const tv_dtype to = tv_emit_matmul_dtype(e);
        q = attention_in(e, q, to);
        k = attention_in(e, k, to);
        v = attention_in(e, v, to);
    }
    if (e->set->phase == TV_PHASE_DECODE)
        return fused(e, t, q, k, v);
    const bool one_kernel = kernel == TV_KERNEL_FLASH || kernel == TV_KERNEL_EFFICIENT;
    if (one_kernel && !t->no_kernel) {
        k = repeated(e, t, "repeated k", k);
        v = repeated(e, t, "repeated v", v);
        return fused(e, t, q, k, v);
    }
    const tv_setting *set = e->set;
    tv_setting repeat = *set;
    repeat.repeat_kv = true; /* products need all heads */
    e->set = &repeat;
    k = repeated(e, t, "repeated k", k);
    v = repeated(e, t, "repeated v", v);
    e->set = set;
    const tv_dtype back = q.dtype;
    if (kernel == TV_KERNEL_MATH && tv_dtype_bytes(back) < 4) {
        q = attention_in(e, q, TV_F32);
        k = attention_in(e, k, TV_F32);
        v = attention_in(e, v, TV_F32);
    }
    return tv_emit_cast(e, "attention output", unfused(e, t, q, k, v), back);
}

/* ---- mixture of experts ---- */

typedef struct expert_product {
    const char *name;
    double in, out;
    const tv_moe *moe;
    tv_form rows; /* tokens times top-k */
} expert_product;

static tv_val expert_linear(tv_emit *e, const expert_product *p, tv_val x)
{
    if (tv_emit_autocast(e))
        x = tv_emit_cast(e, "16-bit copy", x, tv_emit_matmul_dtype(e));
    const tv_moe *m = p->moe;
    const bool trains = tv_emit_trains(e) && e->set->trainable == TV_TRAIN_ALL && !e->frozen;
    const bool packed = !trains && tv_emit_quantised(e, (tv_weight_plan){.role = TV_WEIGHT_EXPERT});
    const tv_val cast =
        packed ? tv_no_val : tv_emit_cast_weight(e, p->in * p->out * m->experts, trains);
    tv_op *op = tv_emit_op(e, TV_OP_GEMM, p->name);
    tv_weight_plan plan = {
        .name = p->name,
        .role = TV_WEIGHT_EXPERT,
        .rows = p->out,
        .cols = p->in,
        .count = m->experts,
        .shard = TV_SHARD_EXPERT,
    };
    const tv_weight *w = tv_emit_declare(e, op, plan);
    const bool wgrad = w->trainable;
    op->weight_bytes = w->bytes;
    if (m->bias) {
        plan.role = TV_WEIGHT_BIAS;
        plan.cols = 1;
        (void)tv_emit_declare(e, op, plan);
    }
    op->flop = tv_form_scale(p->rows, 2 * p->in * p->out);
    op->backward = (x.grad ? 1 : 0) + (wgrad ? 1 : 0);
    op->m = p->rows;
    op->n = p->out;
    op->k = p->in;
    op->experts = m->experts;
    op->expert_top_k = m->top_k;
    op->shard = TV_SHARD_EXPERT;
    op->read_bytes = tv_emit_val_bytes(x);
    const tv_form n = tv_form_scale(p->rows, p->out);
    op->write_bytes = tv_emit_bytes(n, x.dtype);
    op->backward_bytes = tv_form_scale(tv_form_add(op->read_bytes, op->write_bytes), op->backward);
    op->backward_launches = (uint16_t)op->backward;
    const uint32_t in[2] = {x.storage, cast.storage};
    tv_emit_reads(e, op, in, 2);
    const tv_val out = tv_emit_out(e, op, p->name, n, x.dtype, x.grad || wgrad);
    tv_few saved = {0};
    if (wgrad)
        tv_few_add(&saved, x.storage);
    if (x.grad)
        tv_few_add(&saved, cast.storage);
    tv_emit_saves(e, op, saved.v, saved.n);
    return out;
}

static tv_val gated_mlp(tv_emit *e, const tv_moe *m, tv_form rows, tv_val x)
{
    tv_val h;
    if (m->gated) {
        const tv_val gate =
            expert_linear(e, &(expert_product){"experts.gate", m->hidden, m->inter, m, rows}, x);
        const tv_val up =
            expert_linear(e, &(expert_product){"experts.up", m->hidden, m->inter, m, rows}, x);
        h = tv_emit_mul(e, "experts.product", tv_emit_act(e, "experts.act", m->act, gate), up);
    } else {
        h = expert_linear(e, &(expert_product){"experts.up", m->hidden, m->inter, m, rows}, x);
        h = tv_emit_act(e, "experts.act", m->act, h);
    }
    return expert_linear(e, &(expert_product){"experts.down", m->inter, m->hidden, m, rows}, h);
}

static tv_val shared_experts(tv_emit *e, const tv_moe *m, tv_val x)
{
    const tv_linear up = {
        .name = "shared.up", .in = m->hidden, .out = m->shared_inter, .shard = TV_SHARD_TENSOR};
    tv_linear gate = up;
    gate.name = "shared.gate";
    const tv_linear down = {.name = "shared.down",
                            .in = m->shared_inter,
                            .out = m->hidden,
                            .shard = TV_SHARD_TENSOR,
                            .row = true};
    tv_val h = tv_emit_act(e, "shared.act", m->act, tv_emit_linear(e, m->gated ? &gate : &up, x));
    if (m->gated)
        h = tv_emit_mul(e, "shared.product", h, tv_emit_linear(e, &up, x));
    h = tv_emit_linear(e, &down, h);
    if (!m->shared_gate)
        return h;
    const tv_linear one = {
        .name = "shared.score", .in = m->hidden, .out = 1, .no_adapter = true, .no_quant = true};
    const tv_val score =
        tv_emit_act(e, "shared.sigmoid", TV_ACT_SIGMOID, tv_emit_linear(e, &one, x));
    return tv_emit_mul(e, "shared.scaled", h, score);
}

static tv_val gathered(tv_emit *e, const tv_moe *m, tv_val x, tv_form rows)
{
    return tv_emit_stream(e, &(tv_stream){
                                 .kind = TV_OP_ROUTING,
                                 .name = "experts.permute",
                                 .what = "tokens by expert",
                                 .x = x,
                                 .y = tv_no_val,
                                 .n = tv_form_scale(rows, m->hidden),
                                 .dtype = x.dtype,
                                 .launches = 3,
                                 .backward_launches = 2,
                             });
}

tv_val tv_emit_moe(tv_emit *e, const tv_moe *m, tv_val x)
{
    const tv_form tokens = tv_form_scale(x.n, 1 / m->hidden);
    const tv_form rows = tv_form_scale(tokens, m->top_k);
    const tv_linear router = {.name = "router",
                              .in = m->hidden,
                              .out = m->experts,
                              .bias = m->router_bias,
                              .no_adapter = true,
                              .no_quant = true};
    tv_val scores = tv_emit_linear(e, &router, x);
    scores = tv_emit_softmax(e, "router.softmax", tv_emit_cast(e, "fp32 scores", scores, TV_F32));
    const tv_val chosen = tv_emit_stream(e, &(tv_stream){
                                                .kind = TV_OP_ROUTING,
                                                .name = "router.top_k",
                                                .what = "routing weights",
                                                .x = scores,
                                                .y = tv_no_val,
                                                .n = rows,
                                                .dtype = TV_F32,
                                                .launches = 3,
                                                .backward_launches = 2,
                                            });
    tv_val h = gated_mlp(e, m, rows, gathered(e, m, x, rows));
    tv_val weights = tv_emit_cast(e, "routing weights", chosen, h.dtype);
    h = tv_emit_mul(e, "experts.weighted", h, weights);
    tv_val out = tv_emit_stream(e, &(tv_stream){
                                       .kind = TV_OP_ROUTING,
                                       .name = "experts.unpermute",
                                       .what = "experts' sum",
                                       .x = h,
                                       .y = tv_no_val,
                                       .n = x.n,
                                       .dtype = h.dtype,
                                       .launches = 2,
                                   });
    if (m->shared_inter > 0)
        out = tv_emit_add(e, "shared.sum", out, shared_experts(e, m, x));
    return out;
}

/* ---- recurrence ---- */

tv_val tv_emit_scan(tv_emit *e, const char *name, tv_val x, double out_width, double inner,
                    double state)
{
    const double chunk = 256; /* Mamba-2's and the linear-attention kernels' usual chunk */
    const double tokens = tv_emit_tokens(e);
    tv_stream s = {
        .kind = TV_OP_SCAN,
        .name = name,
        .what = "scan output",
        .x = x,
        .y = tv_no_val,
        .n = tv_form_per_batch(tokens * out_width),
        .dtype = x.dtype,
        .flop_per_out = 6 * inner * state / out_width,
        .launches = 5,
        .backward_launches = 8,
    };
    if (x.grad && tv_emit_trains(e)) {
        tv_few_add(&s.saved, x.storage);
        const double states = (tokens / chunk < 1 ? 1 : tokens / chunk) * inner * state;
        tv_few_add(&s.saved,
                   tv_emit_storage(e, "states at chunk ends", tv_form_per_batch(4 * states), TV_F32,
                                   tv_emit_shard_of(e, x), false));
    }
    return tv_emit_stream(e, &s);
}
