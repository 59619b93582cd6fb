/* The loss that training needs and that graphs for inference do not have: told from the main
 * output's shape and what put it out. */
#include "program_lower.h"

typedef enum loss_kind { LOSS_NONE, LOSS_OWN, LOSS_CROSS_ENTROPY, LOSS_POINTWISE } loss_kind;

typedef struct loss {
    loss_kind kind;
    uint32_t v;
    double classes;
} loss;

static bool floats(const tv_lower *l, uint32_t v)
{
    return tv_dtype_of(l->run->values[v].dtype)->is_float;
}

/* Past views and copies to what computed it. */
static const tv_item *computed_by(const tv_lower *l, uint32_t v)
{
    for (int i = 0; i < 8 && v != TV_NO_VALUE && l->item_of[v] != TV_NO_VALUE; i++) {
        const tv_item *t = &l->items.v[l->item_of[v]];
        const tv_step_kind kind = tv_lower_step(l, t->step)->kind;
        const bool passes = t->kind == TV_ITEM_ALIAS || t->kind == TV_ITEM_CONTIGUOUS ||
                            kind == TV_STEP_SOFTMAX ||
                            (t->kind == TV_ITEM_STEP && kind == TV_STEP_COPY);
        if (!passes)
            return t;
        v = t->in[0];
    }
    return NULL;
}

static bool is_product(const tv_lower *l, uint32_t v)
{
    const tv_item *t = computed_by(l, v);
    const tv_step_kind kind = t ? tv_lower_step(l, t->step)->kind : TV_STEP_KIND_COUNT;
    return t && t->kind == TV_ITEM_STEP && (kind == TV_STEP_MATMUL || kind == TV_STEP_CONV);
}

static loss loss_of(const tv_lower *l)
{
    if (l->program->training) /* captured with the loss that it had */
        return (loss){.kind = LOSS_OWN};
    for (size_t i = 0; i < l->run->n_steps; i++)
        if (l->run->steps[i].kind == TV_STEP_LOSS)
            return (loss){.kind = LOSS_OWN};
    for (size_t i = 0; i < l->run->n_outputs; i++) {
        const uint32_t v = l->run->outputs[i];
        if (v == TV_NO_VALUE || !floats(l, v) || l->item_of[v] == TV_NO_VALUE)
            continue;
        const tv_shape *s = &l->run->values[v].shape;
        const bool logits = (s->rank == 2 || (s->rank == 3 && l->run->has_seq)) &&
                            s->d[s->rank - 1] > 1 && is_product(l, v);
        if (s->rank == 0 || !(tv_shape_elements(s) > 1))
            return (loss){.kind = LOSS_OWN}; /* a scalar is a loss already */
        return (loss){logits ? LOSS_CROSS_ENTROPY : LOSS_POINTWISE, v,
                      logits ? (double)s->d[s->rank - 1] : 0};
    }
    return (loss){.kind = LOSS_NONE};
}

uint32_t tv_lower_main_output(const tv_lower *l)
{
    const loss x = loss_of(l);
    return x.kind == LOSS_CROSS_ENTROPY || x.kind == LOSS_POINTWISE ? x.v : TV_NO_VALUE;
}

void tv_lower_loss(tv_lower *l)
{
    const loss x = loss_of(l);
    if (l->set->phase != TV_PHASE_TRAIN || x.kind == LOSS_NONE || x.kind == LOSS_OWN)
        return;
    const tv_val v = tv_lower_operand(l, x.v);
    if (v.storage == TV_NONE)
        return;
    if (x.kind == LOSS_CROSS_ENTROPY)
        tv_emit_cross_entropy(l->e, "loss", v, x.classes, v.n.b / x.classes);
    else
        tv_emit_pointwise_loss(l->e, "loss", v);
}

tv_text tv_lower_loss_words(const tv_lower *l)
{
    const loss x = loss_of(l);
    if (x.kind == LOSS_CROSS_ENTROPY)
        return TV_TEXT(l->keep, "program.cross-entropy",
                       N_("for training a cross entropy over {n} classes is put on the output"),
                       tv_arg_num("n", TV_ARG_COUNT, x.classes));
    if (x.kind == LOSS_POINTWISE)
        return TV_TEXT0("program.pointwise",
                        N_("for training a loss per element is put on the main output"));
    return (tv_text){0};
}
