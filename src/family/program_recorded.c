/* What a capture recorded: an item's ops keep the tensors that autograd kept, each storage once.
 * Tensors that only backward sees become storages of the block. */
#include "program_lower.h"

static tv_form stated_bytes(const tv_lower *l, uint32_t program_value)
{
    const tv_value *v = &l->program->values[program_value];
    double n = 1;
    bool batch = false;
    for (uint32_t i = 0; i < v->rank; i++) {
        const bool symbolic = v->dims[i].size < 0;
        batch = batch || symbolic;
        n *= symbolic ? 1 : (double)v->dims[i].size;
    }
    n *= tv_dtype_bytes(v->dtype);
    if (batch)
        return (tv_form){.b = n};
    return l->t->scaled ? (tv_form){.b = n / l->t->batch[0]} : (tv_form){.a = n};
}

/* The value that a storage was made for: later ones may be larger views of it (expanded). */
static uint32_t first_in_storage(const tv_lower *l, uint32_t program_value)
{
    const uint32_t storage = l->program->values[program_value].storage;
    for (uint32_t i = 0; storage && i < program_value; i++)
        if (l->program->values[i].storage == storage)
            return i;
    return program_value;
}

/* A tensor that only backward sees (statistics, masks): a storage of its own, once. */
static uint32_t recorded(tv_lower *l, uint32_t program_value)
{
    const tv_value *v = &l->program->values[program_value];
    if (v->role == TV_VALUE_WEIGHT || v->role == TV_VALUE_NULL)
        return TV_NONE;
    const bool numbered = v->storage && v->storage < l->n_recorded;
    if (numbered && l->weight_storage[v->storage])
        return TV_NONE; /* a view of a weight */
    const uint32_t at = l->run_of[program_value];
    const uint32_t now = at != TV_NO_VALUE ? l->val[l->root[at]].storage : TV_NONE;
    if (tv_lower_sees(l, now))
        return now;
    if (numbered && tv_lower_sees(l, l->recorded_storage[v->storage]))
        return l->recorded_storage[v->storage];
    const tv_dtype dtype = v->dtype ? v->dtype : TV_U8;
    const uint32_t first = first_in_storage(l, program_value), made = l->run_of[first];
    const bool shaped = made != TV_NO_VALUE && l->run->values[made].known;
    const tv_form n = shaped ? tv_trials_elements(l->t, made)
                             : tv_form_scale(stated_bytes(l, first), 1 / tv_dtype_bytes(dtype));
    const tv_val s = tv_emit_kept(l->e, "kept inside", n, dtype);
    if (numbered)
        l->recorded_storage[v->storage] = s.storage;
    return s.storage;
}

static bool last_of_node(const tv_lower *l, const tv_item *t)
{
    const tv_step *s = tv_lower_step(l, t->step);
    return t->step + 1 >= l->run->n_steps || l->run->steps[t->step + 1].node != s->node;
}

void tv_lower_recorded(tv_lower *l, const tv_item *t, uint32_t first_op)
{
    tv_graph *g = l->e->g;
    const tv_node *n = tv_lower_step(l, t->step)->node;
    for (uint32_t i = first_op; i < g->n_ops; i++)
        g->ops[i].saved.n = 0;
    if (!last_of_node(l, t) || n->n_saved == 0)
        return;
    uint32_t *ids = tv_new(l->a, uint32_t, n->n_saved + 1);
    size_t count = 0;
    for (size_t i = 0; i < n->n_saved; i++) {
        const uint32_t id = n->saved[i] == TV_NO_VALUE ? TV_NONE : recorded(l, n->saved[i]);
        const bool here = id != TV_NONE &&
                          (g->storages[id].kind == TV_NONE || g->storages[id].kind == l->e->block);
        bool twice = !here;
        for (size_t k = 0; k < count && !twice; k++)
            twice = ids[k] == id;
        if (!twice)
            ids[count++] = id;
    }
    if (g->n_ops == first_op) { /* a view that keeps something: an op of no cost holds it */
        tv_op *op = tv_emit_op(l->e, TV_OP_COPY, t->name);
        op->launches = op->backward_launches = 0;
    }
    tv_emit_saves(l->e, &g->ops[g->n_ops - 1], ids, count);
}
