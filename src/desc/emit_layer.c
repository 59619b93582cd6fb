/* Linear layers with their adapters, embeddings, norms, activations and the small streams.
 * Saved bytes: docs/model.md, "activation ledger"; checked there against published measurements. */
#include "emit_parts.h"

/* ---- linear ---- */

/* bitsandbytes unpacks a 4-bit or 8-bit matrix to 16 bit each time it is used. */
static double unpacked_bytes(const tv_emit *e, const tv_weight *w)
{
    const tv_policy *p = &e->set->policy;
    return w->dtype == TV_NF4 && p->base == TV_NF4 ? w->elements * 2 : 0;
}

/* Autocast's 16-bit copy of an fp32 weight: made once per pass, kept for the backward. */
tv_val tv_emit_cast_weight(tv_emit *e, double elements, bool kept)
{
    const tv_dtype to = tv_emit_matmul_dtype(e);
    if (!tv_emit_autocast(e) || e->set->policy.param == to)
        return tv_no_val;
    tv_op *op = tv_emit_op(e, TV_OP_COPY, "weight cast");
    op->backward_launches = 0;
    op->read_bytes.a = elements * tv_dtype_bytes(e->set->policy.param);
    op->write_bytes.a = elements * tv_dtype_bytes(to);
    op->compute = TV_F32;
    const tv_val v = tv_emit_out(e, op, "weight in 16 bit", (tv_form){.a = elements}, to, false);
    /* The cache serves trainable leaves; Paddle's eager mode has none. */
    e->g->storages[v.storage].cast_cache = kept && e->set->policy.framework != TV_PADDLE;
    return v;
}

static tv_val to_compute(tv_emit *e, bool keep_fp32, tv_val x)
{
    if (keep_fp32)
        return tv_emit_cast(e, "fp32 copy", x, TV_F32);
    return tv_emit_autocast(e) ? tv_emit_cast(e, "16-bit copy", x, tv_emit_matmul_dtype(e)) : x;
}

static bool targets(const tv_emit *e, const tv_linear *l, const char *path)
{
    const tv_setting *s = e->set;
    const bool trains = s->trainable == TV_TRAIN_LORA && tv_emit_trains(e);
    if (!(trains || s->lora_beside) || l->no_adapter || e->frozen)
        return false;
    if (e->block == TV_NONE || e->g->blocks[e->block].stage != TV_STAGE_BODY)
        return false;
    /* PEFT's rule: the module's own name, or the end of its path after a dot. */
    return s->lora_targets.n == 0 || tv_emit_name_in(tv_str_of(path), s->lora_targets);
}

static tv_form rows_of(const tv_linear *l, tv_val x)
{
    const tv_form r = l->rows;
    const bool given = r.a > 0 || r.b > 0 || r.c > 0 || r.d > 0;
    return given ? r : tv_form_scale(x.n, 1 / l->in);
}

typedef struct product {
    const tv_linear *l;
    tv_form rows;
    tv_val x; /* in the compute type */
    tv_dtype out;
    double factor; /* of the rows that are held at once (a fused loss works in chunks) */
    tv_weight_role role;
    bool adapter;
} product;

static void declare_linear(tv_emit *e, tv_op *op, const product *p)
{
    const tv_linear *l = p->l;
    const tv_shard rows = l->row ? TV_SHARD_NONE : l->shard;
    tv_weight_plan plan = {
        .name = "weight",
        .role = p->role,
        .rows = l->out,
        .cols = l->in,
        .count = 1,
        .shard = l->shard,
        .no_quant = l->no_quant || l->keep_fp32,
        .adapter = p->adapter,
    };
    plan.name = l->name;
    if (!l->tied)
        (void)tv_emit_declare(e, op, plan);
    if (!l->bias || l->tied_bias)
        return;
    plan.role = TV_WEIGHT_BIAS;
    plan.cols = 1;
    plan.shard = rows;
    (void)tv_emit_declare(e, op, plan);
}

static bool weight_trains(const tv_emit *e, const product *p)
{
    return tv_emit_trains(e) && (p->adapter || (e->set->trainable == TV_TRAIN_ALL && !e->frozen) ||
                                 tv_emit_is_saved(e, p->l->name));
}

static void price_linear(const tv_emit *e, tv_op *op, const product *p, bool wgrad)
{
    const tv_linear *l = p->l;
    const tv_form in = tv_emit_bytes(tv_form_scale(p->rows, l->in), p->x.dtype);
    const tv_form out = tv_emit_bytes(tv_form_scale(p->rows, l->out), p->out);
    op->flop = tv_form_scale(p->rows, 2 * l->in * l->out);
    op->backward = (p->x.grad ? 1 : 0) + (wgrad ? 1 : 0);
    op->m = p->rows;
    op->n = l->out;
    op->k = l->in;
    op->read_bytes = in;
    op->write_bytes = out;
    op->backward_bytes = tv_form_scale(tv_form_add(in, out), op->backward);
    op->backward_launches = (uint16_t)(op->backward + (wgrad && l->bias ? 1 : 0));
    op->launches = (uint16_t)(l->bias && e->set->policy.framework == TV_PADDLE ? 2 : 1);
    op->compute = l->keep_fp32 ? TV_F32 : e->set->policy.compute;
    op->shard = l->shard;
}

/* y = x·W (+ b): saves x when W trains, and the 16-bit copy of W when a gradient flows to x. */
static tv_val multiply(tv_emit *e, const product *p)
{
    const tv_linear *l = p->l;
    const bool wgrad = weight_trains(e, p);
    const tv_weight_plan plan = {.role = p->role, .no_quant = l->no_quant || l->keep_fp32};
    const bool packed = !wgrad && tv_emit_quantised(e, plan);
    const tv_val cast =
        l->keep_fp32 || packed ? tv_no_val : tv_emit_cast_weight(e, l->in * l->out, wgrad);
    tv_op *op = tv_emit_op(e, TV_OP_GEMM, l->name);
    price_linear(e, op, p, wgrad);
    declare_linear(e, op, p);
    const double weight_bytes = l->in * l->out * tv_dtype_bytes(tv_emit_matmul_dtype(e));
    const tv_weight *w = op->n_weights ? &e->g->weights[op->first_weight] : NULL;
    const bool plain = !w || w->role == TV_WEIGHT_BIAS || cast.storage != TV_NONE;
    op->weight_bytes = plain ? weight_bytes : w->bytes;
    op->temp_forward_bytes.a = plain ? 0 : unpacked_bytes(e, w);
    op->temp_backward_bytes.a = p->x.grad ? op->temp_forward_bytes.a : 0;
    const uint32_t in[2] = {p->x.storage, cast.storage};
    tv_emit_reads(e, op, in, 2);
    if (l->shard == TV_SHARD_TENSOR || l->shard == TV_SHARD_VOCAB || l->shard == TV_SHARD_KV_HEADS)
        op->shard = l->row ? TV_SHARD_SEQUENCE : l->shard;
    else
        op->shard = tv_emit_shard_of(e, p->x);
    const tv_form n = tv_form_scale(p->rows, l->out * p->factor);
    const tv_val out = tv_emit_out(e, op, l->name, n, p->out, p->x.grad || wgrad);
    op->shard = l->shard;
    tv_few saved = {0};
    if (wgrad)
        tv_few_add(&saved, p->x.storage);
    if (p->x.grad)
        tv_few_add(&saved, cast.storage);
    tv_emit_saves(e, op, saved.v, saved.n);
    return out;
}

static void reduce_rows(tv_emit *e, const tv_linear *l, tv_val out)
{
    if (!l->row || l->shard == TV_SHARD_NONE)
        return;
    tv_op *op = tv_emit_op(e, TV_OP_COLLECTIVE, "all-reduce");
    op->collective = TV_COLL_ALL_REDUCE;
    op->collective_bytes = tv_emit_val_bytes(out);
    op->backward_launches = 0;
}

/* PEFT: y + B(A(dropout(x)))·scale. fp32 adapters cast their own copy of x. */
static tv_val adapt(tv_emit *e, const tv_linear *l, tv_form rows, tv_val x, tv_val y)
{
    const double r = e->set->lora_rank;
    const bool wide = !tv_emit_autocast(e);
    tv_val in = wide ? tv_emit_cast(e, "adapter's input copy", x, e->set->lora_dtype) : x;
    if (e->set->lora_dropout > 0)
        in = tv_emit_dropout(e, "lora_dropout", e->set->lora_dropout, in);
    if (!wide)
        in = tv_emit_stream(e, &(tv_stream){
                                   .kind = TV_OP_COPY,
                                   .name = "to",
                                   .what = "adapter's input copy",
                                   .x = in,
                                   .y = tv_no_val,
                                   .n = in.n,
                                   .dtype = tv_emit_matmul_dtype(e),
                               });
    const tv_dtype between = in.dtype;
    const tv_linear down = {.name = "lora_A", .in = l->in, .out = r, .rows = rows};
    const tv_linear up = {.name = "lora_B", .in = r, .out = l->out, .rows = rows};
    tv_val mid = multiply(e, &(product){.l = &down,
                                        .rows = rows,
                                        .x = in,
                                        .out = between,
                                        .factor = 1,
                                        .role = TV_WEIGHT_ADAPTER,
                                        .adapter = true});
    tv_val delta = multiply(e, &(product){.l = &up,
                                          .rows = rows,
                                          .x = mid,
                                          .out = between,
                                          .factor = 1,
                                          .role = TV_WEIGHT_ADAPTER,
                                          .adapter = true});
    const tv_dtype keep = y.dtype;
    return tv_emit_cast(e, l->name, tv_emit_add(e, "lora sum", y, delta), keep);
}

/* Liger's fused linear cross entropy holds a chunk of rows: about 1.5·t·h/V of t (between one
 * and two times t·h elements, its chunk is the next power of two). */
static double held_rows(const tv_emit *e, const tv_linear *l)
{
    if (e->role != TV_WEIGHT_HEAD || !tv_emit_trains(e))
        return 1;
    const tv_loss_variant loss = e->set->loss;
    if (loss == TV_LOSS_CHUNKED)
        return 1.0 / 8; /* torchtune's default number of chunks */
    return loss == TV_LOSS_FUSED && l->out > 1.5 * l->in ? 1.5 * l->in / l->out : 1;
}

tv_val tv_emit_linear(tv_emit *e, const tv_linear *l, tv_val x)
{
    const tv_form rows = rows_of(l, x);
    const tv_val original = x;
    x = to_compute(e, l->keep_fp32, x);
    tv_dtype out_dtype = x.dtype;
    /* Paddle adds an fp32 bias outside the matmul, which makes the output fp32. */
    if (l->bias && tv_emit_autocast(e) && e->set->policy.framework == TV_PADDLE)
        out_dtype = TV_F32;
    const tv_weight_role role = e->role;
    const product p = {l, rows, x, out_dtype, held_rows(e, l), role, false};
    tv_val out = multiply(e, &p);
    e->role = TV_WEIGHT_MATRIX;
    if (role == TV_WEIGHT_HEAD)
        e->g->storages[out.storage].term = TV_TERM_LOGITS;
    reduce_rows(e, l, out);
    if (targets(e, l, tv_emit_path(e, l->name)) || (l->path && targets(e, l, l->path)))
        out = adapt(e, l, rows, original, out);
    return out;
}

tv_val tv_emit_embedding(tv_emit *e, const char *name, tv_val ids, double vocab, double width,
                         tv_form tokens)
{
    tv_op *op = tv_emit_op(e, TV_OP_EMBEDDING, name);
    (void)tv_emit_declare(e, op,
                          (tv_weight_plan){
                              .name = name,
                              .role = TV_WEIGHT_EMBEDDING,
                              .rows = vocab,
                              .cols = width,
                              .count = 1,
                              .shard = TV_SHARD_VOCAB,
                          });
    const bool grad = e->g->weights[op->first_weight].trainable;
    const tv_dtype dtype = e->set->policy.stream;
    const tv_form n = tv_form_scale(tokens, width);
    op->m = tokens;
    op->n = width;
    op->k = vocab;
    op->read_bytes = tv_form_add(tv_emit_val_bytes(ids), tv_emit_bytes(n, dtype));
    op->write_bytes = tv_emit_bytes(n, dtype);
    op->backward = grad ? 1 : 0;
    op->backward_launches = grad ? 2 : 0;
    op->backward_bytes = grad ? tv_form_scale(op->write_bytes, 2) : (tv_form){0};
    op->compute = TV_F32;
    op->shard = e->act_shard;
    tv_emit_reads(e, op, &ids.storage, 1);
    const tv_val out = tv_emit_out(e, op, name, n, dtype, grad);
    if (grad)
        tv_emit_saves(e, op, &ids.storage, 1);
    return out;
}

/* ---- norms ---- */

static void norm_weights(tv_emit *e, uint32_t op, const char *name, double width, bool bias)
{
    tv_weight_plan plan = {
        .name = name, .role = TV_WEIGHT_NORM, .rows = width, .cols = 1, .count = 1};
    (void)tv_emit_declare(e, &e->g->ops[op], plan);
    if (!bias)
        return;
    plan.role = TV_WEIGHT_BIAS;
    (void)tv_emit_declare(e, &e->g->ops[op], plan);
}

static bool norm_trains(const tv_emit *e, bool affine)
{
    return affine && tv_emit_trains(e) && e->set->trainable == TV_TRAIN_ALL && !e->frozen;
}

static uint32_t kept(tv_emit *e, tv_val like, const char *what, tv_form n, tv_dtype dtype)
{
    return tv_emit_storage(e, what, tv_emit_bytes(n, dtype), dtype, tv_emit_shard_of(e, like),
                           false);
}

/* RMSNorm as modules write it in Python: fp32 copy, power, mean, rsqrt, product, cast, weight. */
static tv_val rms_norm(tv_emit *e, const char *name, tv_norm_kind kind, tv_val x, bool trains)
{
    const bool gemma = kind == TV_NORM_RMS_GEMMA;
    const tv_val wide = tv_emit_cast(e, "fp32 copy of the norm input", x, TV_F32);
    const bool grad = wide.grad || trains;
    tv_stream s = {
        .kind = TV_OP_NORM,
        .name = name,
        .what = "norm output",
        .x = wide,
        .y = tv_no_val,
        .n = x.n,
        .dtype = x.dtype,
        .flop_per_out = 6,
        .temp_forward = tv_emit_bytes(x.n, TV_F32),
        .temp_backward = tv_form_scale(x.n, 12),
        .extra_forward_bytes_per_out = 16,
        .extra_backward_bytes_per_out = 24,
        .launches = gemma ? 7 : 6,
        .backward_launches = 9,
    };
    if (grad && tv_emit_trains(e)) {
        tv_few_add(&s.saved, wide.storage);
        if (trains)
            tv_few_add(&s.saved, kept(e, x, "normalised", x.n, gemma ? TV_F32 : x.dtype));
    }
    if (trains)
        s.x.grad = true;
    return tv_emit_stream(e, &s);
}

/* A one-kernel norm: saves its input and the statistics. */
static tv_val kernel_norm(tv_emit *e, const tv_norm *n, tv_norm_kind kind, tv_val x, bool trains)
{
    const double width = n->width;
    const bool batch = kind == TV_NORM_BATCH;
    const bool fp32 = tv_emit_autocast(e) && !batch && kind != TV_NORM_RMS_FUSED;
    const tv_val in = fp32 ? tv_emit_cast(e, "fp32 copy of the norm input", x, TV_F32) : x;
    tv_stream s = {
        .kind = TV_OP_NORM,
        .name = n->name,
        .what = "norm output",
        .x = in,
        .y = tv_no_val,
        .n = in.n,
        .dtype = in.dtype,
        .flop_per_out = 8,
        .backward_launches = trains && !batch ? 2 : 1,
    };
    /* Statistics over the batch (or the group) are one pass over the input, their use another; the
     * backward reads input and gradient twice likewise. */
    if (tv_emit_trains(e) && (batch || kind == TV_NORM_GROUP)) {
        s.extra_forward_bytes_per_out = tv_dtype_bytes(in.dtype);
        s.extra_backward_bytes_per_out = 2 * tv_dtype_bytes(in.dtype);
    }
    if ((in.grad || trains) && tv_emit_trains(e)) {
        tv_few_add(&s.saved, in.storage);
        /* Two fp32 statistics per row (or per channel, which is small whatever the batch). */
        const bool given = n->rows.a > 0 || n->rows.b > 0 || n->rows.c > 0 || n->rows.d > 0;
        const tv_form rows = given   ? n->rows
                             : batch ? (tv_form){.a = width}
                                     : tv_form_scale(in.n, 1 / width);
        tv_few_add(&s.saved, kept(e, in, "norm statistics", tv_form_scale(rows, 2), TV_F32));
    }
    if (trains)
        s.x.grad = true;
    return tv_emit_stream(e, &s);
}

/* FrozenBatchNorm is a scale and a shift by constants: saves nothing. */
static tv_val frozen_norm(tv_emit *e, const char *name, tv_val x)
{
    return tv_emit_stream(e, &(tv_stream){
                                 .kind = TV_OP_ELEMENTWISE,
                                 .name = name,
                                 .what = "norm output",
                                 .x = x,
                                 .y = tv_no_val,
                                 .n = x.n,
                                 .dtype = x.dtype,
                                 .flop_per_out = 2,
                                 .temp_forward = tv_emit_val_bytes(x),
                                 .launches = 2,
                             });
}

tv_val tv_emit_norm(tv_emit *e, const char *name, tv_norm_kind kind, tv_val x, double width,
                    bool affine, bool bias)
{
    const tv_norm n = {.name = name, .kind = kind, .width = width, .affine = affine, .bias = bias};
    return tv_emit_norm_of(e, &n, x);
}

tv_val tv_emit_norm_of(tv_emit *e, const tv_norm *n, tv_val x)
{
    tv_norm_kind kind = n->kind;
    const bool rms = kind == TV_NORM_RMS || kind == TV_NORM_RMS_GEMMA;
    if (rms && e->set->fused_norm)
        kind = TV_NORM_RMS_FUSED;
    const bool trains = norm_trains(e, n->affine) && kind != TV_NORM_BATCH_FROZEN;
    const uint32_t first_weight = (uint32_t)e->g->n_weights;
    tv_val out;
    if (kind == TV_NORM_RMS || kind == TV_NORM_RMS_GEMMA)
        out = rms_norm(e, n->name, kind, x, trains);
    else if (kind == TV_NORM_BATCH_FROZEN)
        out = frozen_norm(e, n->name, x);
    else
        out = kernel_norm(e, n, kind, x, trains);
    const uint32_t op = (uint32_t)e->g->n_ops - 1;
    e->g->ops[op].first_weight = first_weight;
    if (n->affine && !n->tied && kind != TV_NORM_BATCH_FROZEN)
        norm_weights(e, op, n->name, n->width, n->bias);
    if (kind == TV_NORM_BATCH)
        tv_emit_buffer(e, 8 * n->width + 8); /* running mean and variance, and a counter */
    if (kind == TV_NORM_BATCH_FROZEN)
        tv_emit_buffer(e, 16 * n->width);
    return out;
}

/* ---- activations and small streams ---- */

typedef struct act_rule {
    bool saves_in;
    bool saves_out;
    int extra; /* further copies kept (functions written out in Python) */
    int temps; /* copies alive only while it runs */
    int launches;
    bool in_place;
    bool fp32; /* autocast runs it in fp32 */
} act_rule;

static act_rule act_rule_of(tv_act act)
{
    switch (act) {
    case TV_ACT_RELU:
    case TV_ACT_SIGMOID:
    case TV_ACT_TANH:
        return (act_rule){.saves_out = true, .launches = 1};
    case TV_ACT_RELU_INPLACE:
    case TV_ACT_LEAKY_RELU_INPLACE:
        return (act_rule){.saves_out = true, .launches = 1, .in_place = true};
    case TV_ACT_RELU6:
    case TV_ACT_LEAKY_RELU:
    case TV_ACT_GELU:
    case TV_ACT_SILU:
    case TV_ACT_HARDSWISH:
    case TV_ACT_HARDSIGMOID:
    case TV_ACT_MISH:
        return (act_rule){.saves_in = true, .launches = 1};
    case TV_ACT_SOFTPLUS:
        return (act_rule){.saves_in = true, .launches = 1, .fp32 = true};
    case TV_ACT_QUICK_GELU:
        return (act_rule){.saves_in = true, .extra = 1, .temps = 1, .launches = 3};
    case TV_ACT_GELU_NEW:
        return (act_rule){.saves_in = true, .extra = 3, .temps = 2, .launches = 8};
    case TV_ACT_RELU2:
        return (act_rule){.extra = 1, .launches = 2};
    }
    return (act_rule){.saves_in = true, .launches = 1};
}

static tv_val relu_in_place(tv_emit *e, const char *name, tv_val x)
{
    tv_op *op = tv_emit_op(e, TV_OP_ELEMENTWISE, name);
    const tv_form bytes = tv_emit_val_bytes(x);
    op->flop = x.n;
    op->m = x.n;
    op->compute = TV_F32;
    op->backward = x.grad ? 1 : 0;
    op->backward_launches = x.grad ? 1 : 0;
    op->read_bytes = op->write_bytes = bytes;
    op->backward_bytes = tv_form_scale(bytes, 3);
    op->shard = tv_emit_shard_of(e, x);
    tv_emit_reads(e, op, &x.storage, 1);
    if (x.grad)
        tv_emit_saves(e, op, &x.storage, 1);
    return x;
}

tv_val tv_emit_act(tv_emit *e, const char *name, tv_act act, tv_val x)
{
    const act_rule rule = act_rule_of(act);
    if (rule.in_place)
        return relu_in_place(e, name, x);
    if (rule.fp32 && tv_emit_autocast(e))
        x = tv_emit_cast(e, "fp32 copy", x, TV_F32);
    tv_stream s = {
        .kind = TV_OP_ELEMENTWISE,
        .name = name,
        .what = "activation output",
        .x = x,
        .y = tv_no_val,
        .n = x.n,
        .dtype = x.dtype,
        .saves_out = rule.saves_out,
        .flop_per_out = 4,
        .temp_forward = tv_form_scale(tv_emit_val_bytes(x), rule.temps),
        .temp_backward = tv_form_scale(tv_emit_val_bytes(x), rule.extra ? rule.extra : 0),
        .extra_forward_bytes_per_out = 2 * tv_dtype_bytes(x.dtype) * (rule.launches - 1),
        .extra_backward_bytes_per_out = 2 * tv_dtype_bytes(x.dtype) * (rule.launches - 1),
        .launches = rule.launches,
        .backward_launches = rule.launches,
    };
    if (x.grad && tv_emit_trains(e)) {
        if (rule.saves_in)
            tv_few_add(&s.saved, x.storage);
        for (int i = 0; i < rule.extra; i++)
            tv_few_add(&s.saved, kept(e, x, "activation's inner value", x.n, x.dtype));
    }
    return tv_emit_stream(e, &s);
}

static tv_dtype wider(tv_dtype x, tv_dtype y)
{
    return tv_dtype_bytes(x) >= tv_dtype_bytes(y) ? x : y;
}

tv_val tv_emit_mul(tv_emit *e, const char *name, tv_val x, tv_val y)
{
    tv_stream s = {
        .kind = TV_OP_ELEMENTWISE,
        .name = name,
        .what = "product",
        .x = x,
        .y = y,
        .n = x.n,
        .dtype = wider(x.dtype, y.dtype),
        .flop_per_out = 1,
        .backward_launches = 2,
    };
    if (x.grad)
        tv_few_add(&s.saved, y.storage);
    if (y.grad)
        tv_few_add(&s.saved, x.storage);
    return tv_emit_stream(e, &s);
}

tv_val tv_emit_add(tv_emit *e, const char *name, tv_val x, tv_val y)
{
    return tv_emit_stream(e, &(tv_stream){
                                 .kind = TV_OP_ELEMENTWISE,
                                 .name = name,
                                 .what = "sum",
                                 .x = x,
                                 .y = y,
                                 .n = x.n,
                                 .dtype = wider(x.dtype, y.dtype),
                                 .flop_per_out = 1,
                             });
}

tv_val tv_emit_dropout(tv_emit *e, const char *name, double p, tv_val x)
{
    if (p <= 0 || !tv_emit_trains(e))
        return x;
    tv_stream s = {
        .kind = TV_OP_ELEMENTWISE,
        .name = name,
        .what = "dropout output",
        .x = x,
        .y = tv_no_val,
        .n = x.n,
        .dtype = x.dtype,
        .flop_per_out = 2,
        .extra_forward_bytes_per_out = 1,
    };
    if (x.grad)
        tv_few_add(&s.saved, kept(e, x, "dropout mask", x.n, TV_BOOL));
    return tv_emit_stream(e, &s);
}

tv_val tv_emit_softmax(tv_emit *e, const char *name, tv_val x)
{
    if (tv_emit_autocast(e))
        x = tv_emit_cast(e, "fp32 copy", x, TV_F32);
    return tv_emit_stream(e, &(tv_stream){
                                 .kind = TV_OP_SOFTMAX,
                                 .name = name,
                                 .what = "softmax output",
                                 .x = x,
                                 .y = tv_no_val,
                                 .n = x.n,
                                 .dtype = x.dtype,
                                 .saves_out = true,
                                 .flop_per_out = 5,
                             });
}

tv_val tv_emit_contiguous(tv_emit *e, const char *name, tv_val x)
{
    return tv_emit_stream(e, &(tv_stream){
                                 .kind = TV_OP_COPY,
                                 .name = name,
                                 .what = "contiguous copy",
                                 .x = x,
                                 .y = tv_no_val,
                                 .n = x.n,
                                 .dtype = x.dtype,
                             });
}

tv_val tv_emit_rope(tv_emit *e, const char *name, tv_val x)
{
    /* The rotary tables have the residual's type, which is fp32 under autocast. */
    const tv_dtype out = wider(x.dtype, e->set->policy.stream);
    return tv_emit_stream(e, &(tv_stream){
                                 .kind = TV_OP_ELEMENTWISE,
                                 .name = name,
                                 .what = "rotated",
                                 .x = x,
                                 .y = tv_no_val,
                                 .n = x.n,
                                 .dtype = out,
                                 .flop_per_out = 3,
                                 .temp_forward = tv_form_scale(tv_emit_bytes(x.n, out), 2),
                                 .temp_backward = tv_form_scale(tv_emit_bytes(x.n, out), 2),
                                 .extra_forward_bytes_per_out = 6 * tv_dtype_bytes(out),
                                 .extra_backward_bytes_per_out = 6 * tv_dtype_bytes(out),
                                 .launches = 5,
                                 .backward_launches = 5,
                             });
}

tv_val tv_emit_scale(tv_emit *e, const char *name, tv_val x, double weight_width)
{
    const bool trains = norm_trains(e, weight_width > 0);
    const uint32_t first_weight = (uint32_t)e->g->n_weights;
    tv_stream s = {
        .kind = TV_OP_ELEMENTWISE,
        .name = name,
        .what = "scaled",
        .x = x,
        .y = tv_no_val,
        .n = x.n,
        .dtype = x.dtype,
        .flop_per_out = 1,
        .backward_launches = trains ? 2 : 1,
    };
    if (trains) {
        s.x.grad = true;
        tv_few_add(&s.saved, x.storage);
    }
    const tv_val out = tv_emit_stream(e, &s);
    const uint32_t op = (uint32_t)e->g->n_ops - 1;
    e->g->ops[op].first_weight = first_weight;
    if (weight_width > 0)
        norm_weights(e, op, name, weight_width, false);
    return out;
}
