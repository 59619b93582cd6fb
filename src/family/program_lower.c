/* The way from a program's steps to a graph: the passes in order, then every segment either
 * written as a block kind or found equal to one that is written already. */
#include "program_lower.h"

#include <math.h>
#include <string.h>

/* ---- tables ---- */

static uint32_t *filled(tv_arena *a, size_t n, uint32_t with)
{
    uint32_t *v = tv_new(a, uint32_t, n + 1);
    for (size_t i = 0; i <= n; i++)
        v[i] = with;
    return v;
}

void tv_lower_open(tv_lower *l)
{
    const size_t n = l->run->n_values;
    l->maker = filled(l->a, n, TV_NO_VALUE);
    l->uses = filled(l->a, n, 0);
    l->user = filled(l->a, n, TV_NO_VALUE);
    l->item_of = filled(l->a, n, TV_NO_VALUE);
    l->root = filled(l->a, n, TV_NO_VALUE);
    l->param_of = filled(l->a, n, TV_NO_VALUE);
    l->made_in = filled(l->a, n, TV_NO_VALUE);
    l->is_output = tv_new(l->a, bool, n + 1);
    l->global = tv_new(l->a, bool, n + 1);
    l->stride = tv_alloc(l->a, n + 1, sizeof *l->stride);
    l->param = tv_new(l->a, tv_lowered_param, n + 1);
    l->val = tv_new(l->a, tv_val, n + 1);
    l->absorbed = tv_new(l->a, bool, l->run->n_steps + 1);
    for (uint32_t i = 0; i < l->run->n_steps; i++) {
        const tv_step *s = &l->run->steps[i];
        for (size_t k = 0; k < s->n_out; k++)
            if (s->out[k] != TV_NO_VALUE)
                l->maker[s->out[k]] = i;
        for (size_t k = 0; k < s->n_in; k++)
            if (s->in[k] != TV_NO_VALUE) {
                l->uses[s->in[k]]++;
                l->user[s->in[k]] = i;
            }
    }
    for (size_t i = 0; i < l->run->n_outputs; i++)
        if (l->run->outputs[i] != TV_NO_VALUE)
            l->is_output[l->run->outputs[i]] = true;
    for (uint32_t v = 0; v < n; v++)
        l->val[v] = tv_no_val;
    l->run_of = filled(l->a, l->program->n_values, TV_NO_VALUE);
    for (uint32_t v = 0; v < n; v++)
        if (l->run->values[v].from)
            l->run_of[l->run->values[v].from - l->program->values] = v;
}

/* ---- values ---- */

tv_val tv_lower_operand(const tv_lower *l, uint32_t v)
{
    if (v == TV_NO_VALUE)
        return tv_no_val;
    tv_val x = l->val[l->root[v]];
    x.n = tv_trials_elements(l->t, v);
    if (x.storage == TV_NONE)
        x.dtype = l->run->values[v].dtype;
    return x;
}

/* Captures know which results lie in the same memory: what is written in place, views. */
static void share_recorded(tv_lower *l, uint32_t number, tv_val *val)
{
    if (l->weight_storage[number])
        return;
    const tv_graph *g = l->e->g;
    const uint32_t old = l->recorded_storage[number];
    if (!tv_lower_sees(l, old) || old == val->storage) {
        l->recorded_storage[number] = val->storage;
        return;
    }
    for (uint32_t i = l->item_op; i < g->n_ops; i++)
        for (uint32_t k = 0; k < g->ops[i].writes.n; k++)
            if (g->ids[g->ops[i].writes.first + k] == val->storage)
                g->ids[g->ops[i].writes.first + k] = old;
    val->storage = old;
}

static void record_storage(tv_lower *l, uint32_t v, uint32_t storage)
{
    const tv_value *from = v == TV_NO_VALUE ? NULL : l->run->values[v].from;
    if (l->recorded && from && from->storage && from->storage < l->n_recorded)
        l->recorded_storage[from->storage] = storage;
}

void tv_lower_result(tv_lower *l, uint32_t v, tv_val val)
{
    const uint32_t root = l->root[v];
    if (val.storage == TV_NONE)
        return;
    const tv_value *from = l->run->values[v].from;
    if (l->recorded && from && from->storage && from->storage < l->n_recorded)
        share_recorded(l, from->storage, &val);
    tv_graph *g = l->e->g;
    const tv_block *b = &g->blocks[l->e->block];
    tv_storage *s = &g->storages[val.storage];
    if (l->global[root] && s->kind == l->e->block && val.storage != b->in)
        s->kind = TV_NONE;
    if (l->recorded && from && from->grad_known)
        val.grad = from->grad;
    l->val[root] = val;
}

/* ---- inputs ---- */

static tv_dtype input_dtype(const tv_lower *l, tv_dtype stated)
{
    if (stated != TV_DTYPE_UNKNOWN && !tv_dtype_of(stated)->is_float)
        return stated;
    return l->recorded ? stated : l->set->policy.stream;
}

/* What earlier tokens left is the cache's, which the ledger counts by itself. */
static bool is_cached(const tv_lower *l, size_t i)
{
    return l->kv_width && l->kv_width[i] > 0;
}

static void put_inputs(tv_lower *l)
{
    for (size_t i = 0; i < l->run->n_inputs; i++) {
        const uint32_t v = l->run->inputs[i];
        if (v == TV_NO_VALUE || is_cached(l, i) || tv_lower_is_weight(l, v))
            continue;
        const tv_run_value *r = &l->run->values[v];
        const char *what = r->from && r->from->name.n ? tv_cstr(l->keep, r->from->name) : "input";
        const tv_val x =
            tv_emit_input_of(l->e, what, tv_trials_elements(l->t, v), input_dtype(l, r->dtype));
        l->val[v] = x;
        record_storage(l, v, x.storage);
    }
}

static double cache_width(const tv_lower *l, const tv_segment *s)
{
    double width = 0;
    for (size_t i = 0; i < l->run->n_inputs; i++) {
        const uint32_t v = l->run->inputs[i];
        bool read = false;
        if (v == TV_NO_VALUE || !is_cached(l, i))
            continue;
        for (uint32_t k = 0; k < s->n && !read; k++) {
            const tv_item *t = &l->items.v[s->first + k];
            for (size_t o = 0; o < t->n_in; o++)
                read = read || (t->in[o] != TV_NO_VALUE && l->root[t->in[o]] == v);
        }
        width += read ? l->kv_width[i] : 0;
    }
    return width;
}

/* ---- blocks ---- */

typedef struct written {
    const tv_segment *segment;
    tv_dtype in, out;
    tv_val result;
} written;

typedef struct kinds {
    written *v;
    size_t n, cap;
} kinds;

static bool same_tokens(const tv_segment *x, const tv_segment *y)
{
    return x->n_tokens == y->n_tokens &&
           memcmp(x->tokens, y->tokens, x->n_tokens * sizeof *x->tokens) == 0;
}

static const char *block_name(const tv_lower *l, const tv_segment *s)
{
    tv_str unit = s->unit;
    while (unit.n && unit.p[unit.n - 1] >= '0' && unit.p[unit.n - 1] <= '9')
        unit.n--;
    while (unit.n && (unit.p[unit.n - 1] == '.' || unit.p[unit.n - 1] == '_'))
        unit.n--;
    for (size_t i = unit.n; i-- > 0;)
        if (unit.p[i] == '/' || unit.p[i] == '.') {
            unit = tv_str_drop(unit, i + 1);
            break;
        }
    if (unit.n)
        return tv_cstr(l->keep, unit);
    return s->stage == TV_STAGE_EMBED ? "embed" : s->stage == TV_STAGE_HEAD ? "head" : "body";
}

static void declare_behind(tv_lower *l)
{
    for (size_t i = 0; i < l->behind.n; i++) {
        const tv_value *v = l->behind.v[i];
        const double n = (double)tv_value_elements(v);
        const double cols = v->rank > 1 ? (double)v->dims[v->rank - 1].size : 1;
        tv_emit_weight(l->e, tv_cstr(l->keep, v->name), TV_WEIGHT_OTHER, n / fmax(1, cols),
                       fmax(1, cols), 1, TV_SHARD_NONE);
    }
    l->behind.n = 0;
}

static void write_segment(tv_lower *l, tv_segment *s, bool last, kinds *all)
{
    const tv_val handed = s->in == TV_NO_VALUE ? tv_no_val : l->val[s->in];
    tv_val in = tv_emit_block(l->e, block_name(l, s), s->stage, handed);
    if (s->in != TV_NO_VALUE)
        l->val[s->in] = in;
    record_storage(l, s->in, in.storage);
    const double cached = cache_width(l, s);
    if (cached > 0)
        tv_emit_cache(l->e, cached, 0, 0, 0);
    declare_behind(l);
    for (uint32_t i = 0; i < s->n; i++)
        tv_lower_item(l, &l->items.v[s->first + i]);
    if (last)
        tv_lower_loss(l);
    const tv_val out = s->out == TV_NO_VALUE ? tv_no_val : l->val[s->out];
    (void)tv_emit_end(l->e, out);
    if (s->in != TV_NO_VALUE)
        l->val[s->in] = handed;
    record_storage(l, s->in, handed.storage);
    record_storage(l, s->out, out.storage);
    *tv_push(l->a, all) = (written){s, handed.dtype, out.dtype, out};
    tv_emit_order(l->e, (uint32_t)l->e->g->n_blocks - 1, 1);
}

static void put_segment(tv_lower *l, tv_segment *s, bool last, kinds *all)
{
    const tv_dtype in = s->in == TV_NO_VALUE ? TV_DTYPE_UNKNOWN : l->val[s->in].dtype;
    tv_lower_tokens(l, s);
    for (size_t i = 0; i < all->n && !last; i++) {
        const written *k = &all->v[i];
        const bool same_in = s->in == TV_NO_VALUE || k->in == in;
        if (!same_in || !same_tokens(s, k->segment))
            continue;
        tv_emit_order(l->e, (uint32_t)i, 1);
        if (s->out != TV_NO_VALUE) {
            l->val[s->out] = k->result;
            l->val[s->out].n = tv_trials_elements(l->t, s->out);
            record_storage(l, s->out, k->result.storage);
        }
        return;
    }
    write_segment(l, s, last, all);
}

/* ---- all ---- */

static double heads_of(const tv_lower *l)
{
    for (size_t i = 0; i < l->items.n; i++) {
        const tv_item *t = &l->items.v[i];
        const tv_step *s = tv_lower_step(l, t->step);
        if (t->kind == TV_ITEM_STEP && s->kind == TV_STEP_ATTENTION)
            return s->u.attention.heads;
        const tv_shape *shape =
            t->kind == TV_ITEM_ATTENTION ? &l->run->values[t->out[0]].shape : NULL;
        if (shape && shape->rank >= 4)
            return (double)shape->d[shape->rank - 3];
    }
    return 0;
}

static void add_buffers(tv_lower *l)
{
    double bytes = 0;
    for (size_t v = 0; v < l->run->n_values; v++) {
        const tv_lowered_param *p = &l->param[v];
        if (p->used && !p->parameter && p->elements > 1)
            bytes += p->stored_bytes;
    }
    tv_emit_buffer(l->e, bytes);
}

/* The caller of a training step has what the pass returned until the step is over. */
static void hold_outputs(tv_lower *l)
{
    for (size_t i = 0; i < l->run->n_outputs; i++) {
        const uint32_t v = l->run->outputs[i];
        const uint32_t storage = v == TV_NO_VALUE ? TV_NONE : l->val[l->root[v]].storage;
        if (storage != TV_NONE)
            l->e->g->storages[storage].held = true;
    }
}

const tv_err *tv_lower_graph(tv_lower *l, tv_graph **graph)
{
    l->run = l->t->run[0];
    tv_lower_open(l);
    tv_lower_match(l);
    tv_lower_layout(l);
    tv_lower_params(l);
    tv_lower_units(l);
    if (l->segments.n == 0)
        return TV_FAIL0(l->keep, TV_INPUT, "program.empty",
                        N_("nothing in the graph depends on an input: there is nothing to run"));
    tv_emit e = tv_emit_open(l->keep, l->set);
    l->e = &e;
    put_inputs(l);
    kinds all = {0};
    for (size_t i = 0; i < l->segments.n; i++)
        put_segment(l, &l->segments.v[i], i + 1 == l->segments.n, &all);
    add_buffers(l);
    if (l->recorded)
        hold_outputs(l);
    e.g->tokens_per_sample = l->run->has_seq ? e.g->tokens_per_sample : 0;
    e.g->heads = heads_of(l);
    *graph = tv_emit_close(&e);
    return NULL;
}
