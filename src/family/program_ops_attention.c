/* Attention onto the open block: found over several steps, or one kernel's step. */
#include "program_lower.h"

#include <math.h>

static double q_groups(const tv_run *r, const tv_step *s)
{
    (void)r;
    return s->u.matmul.groups;
}

static double q_attention_groups(const tv_run *r, const tv_step *s)
{
    (void)r;
    return s->u.attention.batch * s->u.attention.heads;
}

static double per_sample(const tv_lower *l, tv_form f)
{
    return f.b > 0 ? f.b : tv_form_at(f, l->t->batch[0], 0) / l->t->batch[0];
}

static double elements_of(const tv_lower *l, uint32_t v)
{
    return v == TV_NO_VALUE ? 0 : tv_shape_elements(&l->run->values[v].shape);
}

/* A bias per head on the scores of a square window, folded by the exporter from its table of
 * relative positions: (2w - 1)² rows for windows of w·w (docs/model.md, "programs"). */
static void declare_folded_table(tv_lower *l, uint32_t v)
{
    const tv_run_value *r = &l->run->values[v];
    const uint32_t n = r->shape.rank;
    const tv_lowered_param *p = l->param_of[v] == TV_NO_VALUE ? NULL : &l->param[l->param_of[v]];
    if (!p || p->parameter || !p->from || p->from->buffer || n < 3 ||
        !tv_dtype_of(r->dtype)->is_float)
        return;
    const double heads = (double)r->shape.d[n - 3], side = (double)r->shape.d[n - 1];
    const double window = round(sqrt(side));
    const bool whole = !(fabs(tv_shape_elements(&r->shape) - heads * side * side) > 0);
    if (!whole || heads < 2 || window > 24 || r->shape.d[n - 2] != r->shape.d[n - 1] ||
        fabs(window * window - side) > 0)
        return;
    tv_emit_weight(l->e, "relative positions", TV_WEIGHT_OTHER, (2 * window - 1) * (2 * window - 1),
                   heads, 1, TV_SHARD_NONE);
}

static void put_attention(tv_lower *l, const tv_item *t)
{
    for (size_t i = 3; i < t->n_in; i++)
        if (t->in[i] != TV_NO_VALUE)
            declare_folded_table(l, t->in[i]);
    const tv_step *scores = tv_lower_step(l, t->scores), *values = tv_lower_step(l, t->values);
    const double heads = per_sample(l, tv_lower_fit(l, t->scores, q_groups));
    const double k_all = elements_of(l, scores->in[1]), k_own = elements_of(l, t->in[1]);
    const bool decode = l->set->phase == TV_PHASE_DECODE;
    const tv_attention a = {
        .name = t->name,
        .heads = heads,
        .kv_heads = t->kv_source != TV_NO_VALUE && k_all > 0 ? heads * k_own / k_all : heads,
        .head_dim = scores->u.matmul.k,
        .v_dim = values->u.matmul.n,
        .q_tokens = scores->u.matmul.m,
        .k_tokens = decode ? 1 : scores->u.matmul.n,
        .causal = t->causal,
        .dropout = l->set->dropout >= 0 ? l->set->dropout : t->dropout,
        .softmax_fp32 = t->upcast,
        .no_kernel = t->learned_mask,
    };
    const tv_val y =
        tv_emit_attention(l->e, &a, tv_lower_operand(l, t->in[0]), tv_lower_operand(l, t->in[1]),
                          tv_lower_operand(l, t->in[2]));
    tv_lower_result(l, t->out[0], y);
}

static void put_kernel_attention(tv_lower *l, const tv_item *t, const tv_step *s)
{
    const double heads = per_sample(l, tv_lower_fit(l, t->step, q_attention_groups));
    const bool decode = l->set->phase == TV_PHASE_DECODE;
    const tv_attention a = {
        .name = t->name,
        .heads = heads,
        .kv_heads = s->u.attention.kv_heads > 0
                        ? heads * s->u.attention.kv_heads / fmax(1, s->u.attention.heads)
                        : heads,
        .head_dim = s->u.attention.head_dim,
        .v_dim = s->u.attention.v_dim,
        .q_tokens = s->u.attention.q_tokens,
        .k_tokens = decode ? 1 : s->u.attention.k_tokens,
        .causal = s->u.attention.causal,
        .dropout = l->set->dropout >= 0 ? l->set->dropout : s->u.attention.dropout,
    };
    tv_val q[3] = {tv_no_val, tv_no_val, tv_no_val};
    for (size_t i = 0; i < 3 && i < t->n_in; i++)
        q[i] = tv_lower_operand(l, t->in[i]);
    tv_lower_result(l, t->out[0], tv_emit_attention(l->e, &a, q[0], q[1], q[2]));
    for (size_t k = 1; k < t->n_out; k++) /* further outputs: keys and values for the cache */
        if (t->out[k] != TV_NO_VALUE && k < 3)
            tv_lower_result(l, t->out[k], q[k]);
}

void tv_lower_attention(tv_lower *l, const tv_item *t)
{
    if (t->kind == TV_ITEM_ATTENTION)
        put_attention(l, t);
    else
        put_kernel_attention(l, t, tv_lower_step(l, t->step));
}
