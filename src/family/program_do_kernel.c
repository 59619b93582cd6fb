/* Canonical operations that frameworks have a kernel of its own for: norms, recurrent layers,
 * attention, losses. */
#include "program_running.h"

/* ---- norms ---- */

static double width_of(const tv_running *r, uint32_t weight, double fallback)
{
    return weight == TV_NO_VALUE ? fallback : tv_shape_elements(tv_run_shape(r, weight));
}

static double rows_of(const tv_norm_call *c, const tv_shape *s, uint32_t channels)
{
    double rows = 1;
    if (c->kind == TV_NORM_BATCH || c->kind == TV_NORM_BATCH_FROZEN)
        return (double)s->d[channels];
    if (c->kind == TV_NORM_GROUP) {
        double parts = c->instance ? (double)s->d[channels] : (double)c->groups;
        return (double)s->d[0] * parts;
    }
    for (uint32_t i = 0; i < c->axis && i < s->rank; i++)
        rows *= (double)s->d[i];
    return rows;
}

static double normal_width(const tv_norm_call *c, const tv_shape *s, uint32_t channels)
{
    if (c->kind == TV_NORM_BATCH || c->kind == TV_NORM_BATCH_FROZEN || c->kind == TV_NORM_GROUP)
        return (double)s->d[channels];
    double width = 1;
    for (uint32_t i = c->axis; i < s->rank; i++)
        width *= (double)s->d[i];
    return width;
}

const tv_err *tv_rule_norm(tv_running *r, const tv_norm_call *call, uint32_t x, uint32_t weight,
                           uint32_t bias, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    bool channelled = call->kind == TV_NORM_BATCH || call->kind == TV_NORM_BATCH_FROZEN ||
                      call->kind == TV_NORM_GROUP;
    if (v->shape.rank < (channelled ? 2u : 1u) || (!channelled && call->axis >= v->shape.rank))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), &v->shape,
                                  NULL);
    uint32_t channels = call->channels_last ? v->shape.rank - 1 : 1;
    *y = tv_run_make(r, v->dtype, &v->shape);
    tv_step s = {.kind = TV_STEP_NORM};
    s.u.norm.kind = call->kind;
    s.u.norm.instance = call->instance;
    s.u.norm.rows = rows_of(call, &v->shape, channels);
    s.u.norm.width =
        width_of(r, weight, width_of(r, bias, normal_width(call, &v->shape, channels)));
    s.u.norm.affine = weight != TV_NO_VALUE;
    s.u.norm.bias = bias != TV_NO_VALUE;
    uint32_t in[5] = {x, weight, bias, TV_NO_VALUE, TV_NO_VALUE};
    size_t n_statistics = call->n_statistics < 2 ? call->n_statistics : 2;
    for (size_t i = 0; i < n_statistics; i++)
        in[3 + i] = call->statistics[i];
    tv_run_push(r, &s, in, 3 + n_statistics, y, 1);
    return NULL;
}

/* ---- recurrent layers ---- */

const tv_err *tv_rule_rnn(tv_running *r, const tv_rnn_call *call, const uint32_t *operands,
                          size_t n, uint32_t *y, uint32_t *final_h, uint32_t *final_c)
{
    TV_TRY(tv_run_need(r, n ? operands[0] : TV_NO_VALUE));
    const tv_run_value *v = tv_run_at(r, operands[0]);
    if (v->shape.rank != 3)
        return tv_run_fail_shapes(
            r, "program.rnn", N_("a recurrent layer reads three axes, not {x}"), &v->shape, NULL);
    int64_t steps = v->shape.d[call->batch_first ? 1 : 0];
    int64_t batch = v->shape.d[call->batch_first ? 0 : 1];
    tv_shape shape = v->shape;
    shape.d[2] = (int64_t)(call->directions * call->hidden);
    tv_shape state = tv_shape_of(
        3, (int64_t[]){(int64_t)(call->layers * call->directions), batch, (int64_t)call->hidden});
    uint32_t out[3] = {tv_run_make(r, v->dtype, &shape), tv_run_make(r, v->dtype, &state),
                       tv_run_make(r, v->dtype, &state)};
    tv_step s = {.kind = TV_STEP_RNN};
    s.u.rnn.gates = call->gates;
    s.u.rnn.hidden = call->hidden;
    s.u.rnn.input = (double)v->shape.d[2];
    s.u.rnn.directions = call->directions;
    s.u.rnn.layers = call->layers;
    s.u.rnn.steps = (double)steps;
    s.u.rnn.batch = (double)batch;
    tv_run_push(r, &s, operands, n, out, final_c ? 3 : 2);
    *y = out[0];
    if (final_h)
        *final_h = out[1];
    if (final_c)
        *final_c = out[2];
    return NULL;
}

/* ---- attention ---- */

typedef struct heads {
    double batch, heads, tokens, dim;
} heads;

static bool heads_of(const tv_shape *s, double n, bool third, heads *h)
{
    if (s->rank == 4) {
        *h = (heads){(double)s->d[0], (double)s->d[third ? 2 : 1], (double)s->d[third ? 1 : 2],
                     (double)s->d[3]};
        return true;
    }
    if (s->rank != 3 || n <= 0 || s->d[2] % (int64_t)n)
        return false;
    *h = (heads){(double)s->d[0], n, (double)s->d[1], (double)s->d[2] / n};
    return true;
}

static const tv_err *bad_attention(tv_running *r, const tv_shape *q, const tv_shape *k)
{
    return tv_run_fail_shapes(r, "program.attention",
                              N_("queries {x} and keys {y} do not go together"), q, k);
}

const tv_err *tv_rule_attention(tv_running *r, const tv_attention_call *call, uint32_t q,
                                uint32_t k, uint32_t v, uint32_t extra, uint32_t *y)
{
    TV_TRY(tv_run_need(r, q));
    TV_TRY(tv_run_need(r, k));
    TV_TRY(tv_run_need(r, v));
    const tv_shape *sq = tv_run_shape(r, q);
    const tv_shape *sk = tv_run_shape(r, k);
    double kv = call->kv_heads > 0 ? call->kv_heads : call->heads;
    heads hq = {0};
    heads hk = {0};
    heads hv = {0};
    if (!heads_of(sq, call->heads, call->heads_third, &hq) ||
        !heads_of(sk, kv, call->heads_third, &hk) ||
        !heads_of(tv_run_shape(r, v), kv, call->heads_third, &hv) || hq.dim != hk.dim ||
        hk.tokens != hv.tokens)
        return bad_attention(r, sq, sk);
    tv_shape shape = *sq;
    shape.d[shape.rank - 1] = (int64_t)(sq->rank == 4 ? hv.dim : hv.dim * hq.heads);
    *y = tv_run_make(r, tv_run_at(r, q)->dtype, &shape);
    tv_step s = {.kind = TV_STEP_ATTENTION};
    s.u.attention.batch = hq.batch;
    s.u.attention.heads = hq.heads;
    s.u.attention.kv_heads = hk.heads;
    s.u.attention.head_dim = hq.dim;
    s.u.attention.v_dim = hv.dim;
    s.u.attention.q_tokens = hq.tokens;
    s.u.attention.k_tokens = hk.tokens;
    s.u.attention.causal = call->causal;
    s.u.attention.dropout = call->dropout;
    tv_run_push(r, &s, (uint32_t[]){q, k, v, extra}, extra == TV_NO_VALUE ? 3 : 4, y, 1);
    return NULL;
}

/* ---- losses ---- */

const tv_err *tv_rule_loss(tv_running *r, bool cross_entropy, bool reduced, uint32_t x,
                           uint32_t target, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    tv_shape shape = {0};
    if (!reduced)
        shape = target != TV_NO_VALUE && cross_entropy ? *tv_run_shape(r, target) : v->shape;
    *y = tv_run_make(r, v->dtype, &shape);
    tv_step s = {.kind = TV_STEP_LOSS};
    s.u.loss.cross_entropy = cross_entropy;
    s.u.loss.classes = v->shape.rank > 1 ? (double)v->shape.d[1] : 1;
    tv_run_push(r, &s, (uint32_t[]){x, target}, target == TV_NO_VALUE ? 1 : 2, y, 1);
    return NULL;
}
