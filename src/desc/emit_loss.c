/* Losses. Bytes at the peak per token and class: docs/model.md, "loss". */
#include "emit_parts.h"

static void as_logits(tv_emit *e, tv_val v)
{
    if (v.storage != TV_NONE)
        e->g->storages[v.storage].term = TV_TERM_LOGITS;
}

/* Liger computes the gradients of hidden state and weight in the forward pass: gradient of the
 * input, of the weight, a product's temporary and its fp32 copy. */
static void fused_gradients(tv_emit *e, tv_val logits, double classes, double rows)
{
    tv_op *op = &e->g->ops[e->g->n_ops - 1];
    const double width = op->k > 0 ? op->k : 0;
    const double each = tv_dtype_bytes(logits.dtype);
    op->temp_forward_bytes =
        tv_form_add(op->temp_forward_bytes,
                    (tv_form){.a = classes * width * (each + 4), .b = rows * width * each});
}

static tv_val log_softmax(tv_emit *e, const char *name, tv_val wide)
{
    const bool paddle = e->set->policy.framework == TV_PADDLE;
    const tv_val out = tv_emit_stream(e, &(tv_stream){
                                             .kind = TV_OP_LOSS,
                                             .name = name,
                                             .what = paddle ? "softmax" : "log-probabilities",
                                             .x = wide,
                                             .y = tv_no_val,
                                             .n = wide.n,
                                             .dtype = wide.dtype,
                                             .saves_out = true,
                                             .flop_per_out = 5,
                                         });
    as_logits(e, out);
    return out;
}

/* Mean negative log likelihood: one number out; its gradient has the probabilities' size. Paddle
 * writes that gradient over the saved softmax. */
static void likelihood(tv_emit *e, tv_val logp)
{
    tv_op *op = tv_emit_op(e, TV_OP_LOSS, "nll");
    const bool paddle = e->set->policy.framework == TV_PADDLE;
    op->compute = TV_F32;
    op->backward = logp.grad ? 1 : 0;
    op->read_bytes = (tv_form){.a = 4};
    op->backward_bytes = tv_emit_val_bytes(logp);
    op->grad_reuses_saved = paddle;
    op->backward_launches = 2;
    tv_emit_reads(e, op, &logp.storage, 1);
    (void)tv_emit_out(e, op, "loss", (tv_form){.a = 1}, TV_F32, false);
    if (logp.grad && !paddle)
        tv_emit_saves(e, op, &logp.storage, 1);
}

void tv_emit_cross_entropy(tv_emit *e, const char *name, tv_val logits, double classes, double rows)
{
    as_logits(e, logits);
    if (!tv_emit_trains(e)) {
        /* Transformers before 4.45 upcast the logits of the whole prompt. */
        if (e->set->phase == TV_PHASE_PREFILL && !e->set->last_logits)
            as_logits(e, tv_emit_cast(e, "fp32 logits", logits, TV_F32));
        return;
    }
    if (e->set->loss == TV_LOSS_FUSED)
        fused_gradients(e, logits, classes, rows);
    if (e->set->keep_logits && e->set->loss == TV_LOSS_STANDARD)
        e->g->storages[logits.storage].resident = true;
    const tv_val wide = tv_emit_cast(e, "fp32 logits", logits, TV_F32);
    as_logits(e, wide);
    const tv_val logp = log_softmax(e, name, wide);
    if (e->set->policy.framework == TV_PADDLE) {
        /* One op: softmax saved, its gradient written in place (docs/model.md, "Paddle"). */
        e->g->ops[e->g->n_ops - 1].grad_reuses_saved = true;
        e->g->storages[logp.storage].grad = false;
        return;
    }
    likelihood(e, logp);
}

void tv_emit_pointwise_loss(tv_emit *e, const char *name, tv_val x)
{
    if (!tv_emit_trains(e))
        return;
    const tv_val target = tv_emit_input(e, "target", x.n.b, x.dtype);
    tv_val in = tv_emit_autocast(e) ? tv_emit_cast(e, "fp32 copy", x, TV_F32) : x;
    tv_op *op = tv_emit_op(e, TV_OP_LOSS, name);
    op->compute = TV_F32;
    op->flop = tv_form_scale(in.n, 3);
    op->backward = in.grad ? 1 : 0;
    op->m = in.n;
    op->read_bytes = tv_form_scale(tv_emit_val_bytes(in), 2);
    op->backward_bytes = tv_form_scale(tv_emit_val_bytes(in), 3);
    const uint32_t storages[2] = {in.storage, target.storage};
    tv_emit_reads(e, op, storages, 2);
    (void)tv_emit_out(e, op, "loss", (tv_form){.a = 1}, TV_F32, false);
    if (in.grad)
        tv_emit_saves(e, op, storages, 2);
}
