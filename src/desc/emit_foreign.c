/* Ops of graphs that were read, not written by a family: the reader states shapes and what a
 * function keeps, the rules of gradients, casts and traffic are the emitter's own. Knows no
 * operator's name. */
#include "emit_parts.h"

static bool params_train(const tv_emit *e, size_t n)
{
    return n > 0 && tv_emit_trains(e) && e->set->trainable == TV_TRAIN_ALL && !e->frozen;
}

static void declare_params(tv_emit *e, tv_op *op, const tv_param *params, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)tv_emit_declare(e, op,
                              (tv_weight_plan){
                                  .name = params[i].name,
                                  .role = params[i].role,
                                  .rows = params[i].rows,
                                  .cols = params[i].cols,
                                  .count = 1,
                                  .no_quant = true,
                              });
}

static double param_bytes(const tv_emit *e, const tv_op *op)
{
    double sum = 0;
    for (uint32_t i = 0; i < op->n_weights; i++)
        sum += e->g->weights[op->first_weight + i].bytes;
    return sum;
}

static void keep(tv_emit *e, const tv_foreign *f, tv_val out)
{
    tv_op *op = &e->g->ops[e->g->n_ops - 1];
    tv_few saved = {0};
    for (size_t i = 0; i < f->n_in && i < 16; i++)
        if (f->saves_in >> i & 1 && saved.n < 12)
            tv_few_add(&saved, f->in[i].storage);
    if (f->saves_out)
        tv_few_add(&saved, out.storage);
    if (f->saves_bytes.a > 0 || f->saves_bytes.b > 0 || f->saves_bytes.c > 0 ||
        f->saves_bytes.d > 0)
        tv_few_add(&saved,
                   tv_emit_storage(e, "mask or indices", f->saves_bytes, TV_U8, op->shard, false));
    tv_emit_saves(e, op, saved.v, saved.n);
}

tv_val tv_emit_foreign(tv_emit *e, const tv_foreign *f)
{
    tv_op *op = tv_emit_op(e, f->kind, f->name);
    bool grad = params_train(e, f->n_params);
    tv_form bytes = {0};
    uint32_t *in = tv_new(e->a, uint32_t, f->n_in + 1);
    for (size_t i = 0; i < f->n_in; i++) {
        in[i] = f->in[i].storage;
        grad = grad || f->in[i].grad;
        bytes = tv_form_add(bytes, tv_emit_val_bytes(f->in[i]));
    }
    grad = grad && !f->constant;
    declare_params(e, op, f->params, f->n_params);
    op->shard = f->n_in ? tv_emit_shard_of(e, f->in[0]) : e->act_shard;
    op->flop = f->flop;
    op->m = f->n;
    op->compute = TV_F32;
    op->weight_bytes = param_bytes(e, op);
    op->launches = (uint16_t)(f->launches ? f->launches : 1);
    op->read_bytes = bytes;
    op->write_bytes = tv_emit_bytes(f->n, f->dtype);
    op->backward = grad ? 1 : 0;
    op->backward_launches =
        (uint16_t)(grad ? (f->backward_launches ? f->backward_launches : 1) : 0);
    if (grad)
        op->backward_bytes = tv_form_add(bytes, tv_form_scale(op->write_bytes, 2));
    tv_emit_reads(e, op, in, f->n_in);
    tv_val out = {f->n_in ? f->in[0].storage : TV_NONE, f->n, f->dtype, grad};
    if (!f->in_place || out.storage == TV_NONE)
        out = tv_emit_out(e, op, f->what, f->n, f->dtype, grad);
    if (grad)
        keep(e, f, out);
    return out;
}

/* ---- products ---- */

static void price_product(tv_op *op, const tv_product *p, const tv_form bytes, const tv_form out)
{
    const bool per_batch = p->groups.a <= 0 && (p->groups.b > 0 || p->groups.d > 0);
    op->flop = p->flop;
    /* The tables' convention: a batched product has m constant and its groups per B. */
    op->m = p->m;
    op->groups = per_batch ? p->groups.b : tv_form_at(p->groups, 1, 0);
    op->n = p->n;
    op->k = p->k;
    op->read_bytes = bytes;
    op->write_bytes = out;
    op->backward_bytes = tv_form_scale(tv_form_add(bytes, out), op->backward);
    op->backward_launches = (uint16_t)op->backward;
    op->attention_core = p->core;
}

tv_val tv_emit_product(tv_emit *e, const tv_product *p, tv_val x, tv_val y)
{
    if (tv_emit_autocast(e)) {
        x = tv_emit_cast(e, "16-bit copy", x, tv_emit_matmul_dtype(e));
        y = tv_emit_cast(e, "16-bit copy", y, tv_emit_matmul_dtype(e));
    }
    const size_t n_params = p->param ? 1 : 0;
    const bool wgrad = params_train(e, n_params);
    const double elements = p->param ? p->param->rows * p->param->cols : 0;
    const tv_val cast = p->param ? tv_emit_cast_weight(e, elements, wgrad) : tv_no_val;
    const tv_dtype dtype = x.storage != TV_NONE ? x.dtype : y.dtype;
    tv_op *op = tv_emit_op(e, TV_OP_GEMM, p->name);
    declare_params(e, op, p->param, n_params);
    op->weight_bytes = elements * tv_dtype_bytes(tv_emit_matmul_dtype(e));
    op->backward = (x.grad ? 1 : 0) + (y.grad || wgrad ? 1 : 0);
    op->shard = tv_emit_shard_of(e, x);
    price_product(op, p, tv_form_add(tv_emit_val_bytes(x), tv_emit_val_bytes(y)),
                  tv_emit_bytes(p->out, dtype));
    const uint32_t in[3] = {x.storage, y.storage, cast.storage};
    tv_emit_reads(e, op, in, 3);
    const tv_val out = tv_emit_out(e, op, p->what, p->out, dtype, x.grad || y.grad || wgrad);
    tv_few saved = {0};
    if (y.grad || wgrad)
        tv_few_add(&saved, x.storage);
    if (x.grad)
        tv_few_add(&saved, p->param ? cast.storage : y.storage);
    tv_emit_saves(e, op, saved.v, saved.n);
    return out;
}

/* ---- inputs and tables ---- */

tv_val tv_emit_input_of(tv_emit *e, const char *what, tv_form n, tv_dtype dtype)
{
    const uint32_t block = e->block;
    e->block = TV_NONE;
    const uint32_t id =
        tv_emit_storage(e, what, tv_emit_bytes(n, dtype), dtype, TV_SHARD_NONE, false);
    e->g->storages[id].resident = true;
    e->block = block;
    return (tv_val){id, n, dtype, false};
}

tv_val tv_emit_kept(tv_emit *e, const char *what, tv_form n, tv_dtype dtype)
{
    const uint32_t id =
        tv_emit_storage(e, what, tv_emit_bytes(n, dtype), dtype, e->act_shard, false);
    return (tv_val){id, n, dtype, false};
}

tv_val tv_emit_lookup(tv_emit *e, const char *name, tv_val ids, double vocab, double width,
                      tv_form tokens)
{
    const bool grad = params_train(e, 1);
    const tv_val out = tv_emit_foreign(e, &(tv_foreign){
                                              .kind = TV_OP_EMBEDDING,
                                              .name = name,
                                              .what = name,
                                              .in = &ids,
                                              .n_in = 1,
                                              .saves_in = 1,
                                              .n = tv_form_scale(tokens, width),
                                              .dtype = e->set->policy.stream,
                                          });
    tv_op *op = &e->g->ops[e->g->n_ops - 1];
    op->m = tokens;
    op->n = width;
    op->k = vocab;
    op->read_bytes = tv_form_add(op->read_bytes, op->write_bytes);
    if (!grad)
        return out;
    e->g->storages[out.storage].grad = true;
    op->backward = 1;
    op->backward_launches = 2;
    op->backward_bytes = tv_form_scale(op->write_bytes, 2);
    tv_emit_saves(e, op, &ids.storage, 1);
    return (tv_val){out.storage, out.n, out.dtype, true};
}
