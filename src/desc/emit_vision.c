/* Convolutions, pooling, resizing, concatenation. Saved bytes: docs/model.md, "CNN ledger". */
#include "emit_parts.h"

static void declare_conv(tv_emit *e, tv_op *op, const tv_conv *c, double groups)
{
    tv_weight_plan plan = {
        .name = c->name,
        .role = TV_WEIGHT_MATRIX,
        .rows = c->out,
        .cols = c->in / groups * c->kernel,
        .count = 1,
        .no_quant = true, /* weight-only quantisation serves linear layers */
    };
    if (!c->tied)
        (void)tv_emit_declare(e, op, plan);
    if (!c->bias || c->tied_bias)
        return;
    plan.role = TV_WEIGHT_BIAS;
    plan.cols = 1;
    (void)tv_emit_declare(e, op, plan);
}

static tv_form rows_of(const tv_conv *c)
{
    const bool given = c->rows.a > 0 || c->rows.b > 0 || c->rows.c > 0 || c->rows.d > 0;
    return given ? c->rows : tv_form_per_batch(c->positions);
}

static void price_conv(const tv_emit *e, tv_op *op, const tv_conv *c, tv_val x, bool wgrad)
{
    const double groups = c->groups > 1 ? c->groups : 1;
    /* A transposed convolution multiplies once per input position. */
    const tv_form positions = c->transposed ? tv_form_scale(x.n, 1 / c->in) : rows_of(c);
    op->flop = tv_form_scale(positions, 2 * c->out * c->in / groups * c->kernel);
    op->backward = (x.grad ? 1 : 0) + (wgrad ? 1 : 0);
    op->m = positions;
    op->n = c->out / groups;
    op->k = c->in / groups * c->kernel;
    op->groups = groups;
    op->backward_launches = (uint16_t)(op->backward + (wgrad && c->bias ? 1 : 0));
    op->launches = (uint16_t)(c->bias && e->set->policy.framework == TV_PADDLE ? 2 : 1);
}

tv_val tv_emit_conv(tv_emit *e, const tv_conv *c, tv_val x)
{
    const double groups = c->groups > 1 ? c->groups : 1;
    const double elements = c->out * c->in / groups * c->kernel;
    const tv_dtype compute = tv_emit_matmul_dtype(e);
    if (tv_emit_autocast(e))
        x = tv_emit_cast(e, "16-bit copy", x, compute);
    const bool wgrad = tv_emit_trains(e) && e->set->trainable == TV_TRAIN_ALL && !e->frozen;
    const tv_val cast = tv_emit_cast_weight(e, elements, wgrad);
    tv_op *op = tv_emit_op(e, TV_OP_CONV, c->name);
    price_conv(e, op, c, x, wgrad);
    declare_conv(e, op, c, groups);
    op->weight_bytes = elements * tv_dtype_bytes(compute);
    const tv_form n = tv_form_scale(rows_of(c), c->out);
    op->read_bytes = tv_emit_val_bytes(x);
    op->write_bytes = tv_emit_bytes(n, x.dtype);
    op->backward_bytes = tv_form_scale(tv_form_add(op->read_bytes, op->write_bytes), op->backward);
    op->shard = tv_emit_shard_of(e, x);
    const uint32_t in[2] = {x.storage, cast.storage};
    tv_emit_reads(e, op, in, 2);
    const tv_val out = tv_emit_out(e, op, "convolution output", n, x.dtype, x.grad || wgrad);
    tv_few saved = {0};
    if (wgrad)
        tv_few_add(&saved, x.storage);
    if (x.grad)
        tv_few_add(&saved, cast.storage);
    tv_emit_saves(e, op, saved.v, saved.n);
    return out;
}

tv_val tv_emit_pool(tv_emit *e, const char *name, bool max, tv_val x, double out, double window)
{
    return tv_emit_pool_to(e, name, max, x, tv_form_per_batch(out), window);
}

tv_val tv_emit_pool_to(tv_emit *e, const char *name, bool max, tv_val x, tv_form out, double window)
{
    tv_stream s = {
        .kind = TV_OP_POOL,
        .name = name,
        .what = "pooled",
        .x = x,
        .y = tv_no_val,
        .n = out,
        .dtype = x.dtype,
        .flop_per_out = window,
    };
    if (x.grad)
        tv_few_add(&s.saved, x.storage);
    /* torch keeps int64 indices beside the input; Paddle keeps input and output. */
    if (x.grad && max && e->set->policy.framework != TV_PADDLE)
        tv_few_add(&s.saved, tv_emit_storage(e, "maximum's indices", tv_form_scale(out, 8), TV_I64,
                                             tv_emit_shard_of(e, x), false));
    s.saves_out = x.grad && max && e->set->policy.framework == TV_PADDLE;
    return tv_emit_stream(e, &s);
}

tv_val tv_emit_global_pool(tv_emit *e, const char *name, tv_val x, double out)
{
    return tv_emit_global_pool_to(e, name, x, tv_form_per_batch(out));
}

static double form_ratio(tv_form x, tv_form y)
{
    const double below = tv_form_at(y, 1, 0);
    return below > 0 ? tv_form_at(x, 1, 0) / below : 0;
}

tv_val tv_emit_global_pool_to(tv_emit *e, const char *name, tv_val x, tv_form out)
{
    return tv_emit_stream(e, &(tv_stream){
                                 .kind = TV_OP_POOL,
                                 .name = name,
                                 .what = "pooled",
                                 .x = x,
                                 .y = tv_no_val,
                                 .n = out,
                                 .dtype = x.dtype,
                                 .flop_per_out = form_ratio(x.n, out),
                             });
}

tv_val tv_emit_resize(tv_emit *e, const char *name, tv_val x, double out)
{
    return tv_emit_resize_to(e, name, x, tv_form_per_batch(out));
}

tv_val tv_emit_resize_to(tv_emit *e, const char *name, tv_val x, tv_form out)
{
    return tv_emit_stream(e, &(tv_stream){
                                 .kind = TV_OP_RESIZE,
                                 .name = name,
                                 .what = "resized",
                                 .x = x,
                                 .y = tv_no_val,
                                 .n = out,
                                 .dtype = x.dtype,
                                 .flop_per_out = 4,
                             });
}

tv_val tv_emit_concat(tv_emit *e, const char *name, const tv_val *parts, size_t n)
{
    uint32_t *in = tv_new(e->a, uint32_t, n + 1);
    tv_form total = {0}, bytes = {0};
    bool grad = false;
    tv_dtype dtype = TV_DTYPE_UNKNOWN;
    for (size_t i = 0; i < n; i++) {
        in[i] = parts[i].storage;
        total = tv_form_add(total, parts[i].n);
        bytes = tv_form_add(bytes, tv_emit_val_bytes(parts[i]));
        grad = grad || parts[i].grad;
        if (tv_dtype_bytes(parts[i].dtype) > tv_dtype_bytes(dtype))
            dtype = parts[i].dtype;
    }
    tv_op *op = tv_emit_op(e, TV_OP_COPY, name);
    op->m = total;
    op->compute = TV_F32;
    op->backward = grad ? 1 : 0;
    op->backward_launches = (uint16_t)(grad ? n : 0);
    op->read_bytes = bytes;
    op->write_bytes = tv_emit_bytes(total, dtype);
    op->backward_bytes = grad ? tv_form_scale(op->write_bytes, 2) : (tv_form){0};
    op->shard = n ? tv_emit_shard_of(e, parts[0]) : e->act_shard;
    tv_emit_reads(e, op, in, n);
    return tv_emit_out(e, op, "concatenation", total, dtype, grad);
}
