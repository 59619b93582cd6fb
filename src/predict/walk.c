/* One walk: storages of every layer instance become slots; each op allocates what it writes,
 * keeps what it saves and frees what nobody needs any more. Backward runs the ops in reverse with
 * gradients as slots of their own. See docs/model.md, "liveness walk". */
#include "walk.h"

#include <assert.h>
#include <math.h>

typedef struct slot {
    double bytes; /* counted by the allocator; 0: not allocated */
    uint32_t block;
    uint32_t reads; /* forward reads to come */
    uint32_t holds; /* saved by so many ops, or held for the next block */
} slot;

typedef struct walk {
    const tv_walk_plan *plan;
    const tv_graph *g;
    tv_pool *pool;
    double *bytes; /* per storage of the graph, on this rank */
    tv_term *term;
    uint32_t *base;        /* first slot of each order entry */
    uint32_t *in_slot;     /* slot that stands for each order entry's formal input */
    uint32_t *weight_base; /* first weight-gradient slot of each order entry */
    uint32_t *home;        /* first order entry of each block kind */
    slot *data, *grads, *weight_grads;
    uint32_t *global; /* slot of each global storage */
    double running[TV_TERM_COUNT];
    tv_walk best;
    tv_walk_phase phase;
    uint32_t at_op, at_layer;
    bool *outside_core; /* per storage: comes from outside the attention core */
    uint32_t *region;   /* per storage: the checkpointed region that it is made in; 0: none */
    bool measuring;
    bool replay; /* forward runs again for recompute: saves count, reads of others do not */
} walk;

double tv_rank_share(const tv_rank *r, tv_shard shard, double kv_heads)
{
    const double t = r->tensor > 1 ? r->tensor : 1;
    switch (shard) {
    case TV_SHARD_NONE:
        return 1;
    case TV_SHARD_TENSOR:
    case TV_SHARD_VOCAB:
        return 1 / t;
    case TV_SHARD_KV_HEADS:
        return kv_heads > 0 ? ceil(kv_heads / t) / kv_heads : 1 / t;
    case TV_SHARD_SEQUENCE:
        return r->sequence_parallel ? 1 / t : 1;
    case TV_SHARD_EXPERT:
        return 1 / (r->expert > 1 ? r->expert : t);
    }
    return 1;
}

/* ---- counting ---- */

static void note_peak(walk *w)
{
    double sum = 0;
    for (int t = 0; t < TV_TERM_COUNT; t++)
        sum += w->running[t];
    double *phase_peak = w->phase == TV_WALK_FORWARD    ? &w->best.forward_peak_bytes
                         : w->phase == TV_WALK_BACKWARD ? &w->best.backward_peak_bytes
                                                        : &w->best.step_peak_bytes;
    if (!w->measuring)
        return;
    if (sum > *phase_peak)
        *phase_peak = sum;
    if (sum <= w->best.allocated_peak_bytes)
        return;
    w->best.allocated_peak_bytes = sum;
    for (int t = 0; t < TV_TERM_COUNT; t++)
        w->best.term_bytes[t] = w->running[t];
    w->best.peak_phase = w->phase;
    w->best.peak_op = w->at_op;
    w->best.peak_layer = w->at_layer;
}

static void take(walk *w, slot *s, double bytes, tv_term term)
{
    if (s->bytes > 0 || !(bytes > 0))
        return;
    s->bytes = tv_pool_alloc(w->pool, bytes, &s->block);
    w->running[term] += s->bytes;
    note_peak(w);
}

static void drop(walk *w, slot *s, tv_term term)
{
    if (!(s->bytes > 0))
        return;
    tv_pool_free(w->pool, s->block, s->bytes);
    w->running[term] -= s->bytes;
    s->bytes = 0;
}

/* ---- slots ---- */

static uint32_t slot_of(const walk *w, uint32_t layer, uint32_t storage)
{
    const tv_storage *s = &w->g->storages[storage];
    if (s->kind == TV_NONE)
        return w->global[storage];
    const tv_block *b = &w->g->blocks[w->g->order[layer]];
    if (storage == b->in)
        return w->in_slot[layer];
    return w->base[layer] + (storage - b->first_storage);
}

static const uint32_t *ids_of(const walk *w, tv_ids run)
{
    return w->g->ids + run.first;
}

static uint32_t layout_globals(walk *w, tv_arena *a, uint32_t n)
{
    w->global = tv_new(a, uint32_t, w->g->n_storages + 1);
    for (uint32_t i = 0; i < w->g->n_storages; i++)
        if (w->g->storages[i].kind == TV_NONE)
            w->global[i] = n++;
    return n;
}

static void layout(walk *w, tv_arena *a)
{
    const tv_graph *g = w->g;
    w->base = tv_new(a, uint32_t, g->n_order + 1);
    w->in_slot = tv_new(a, uint32_t, g->n_order + 1);
    w->weight_base = tv_new(a, uint32_t, g->n_order + 1);
    uint32_t n = layout_globals(w, a, 0), weights = 0;
    uint32_t out = n++; /* what the first block takes in, when it takes anything */
    for (uint32_t i = 0; i < g->n_order; i++) {
        const tv_block *b = &g->blocks[g->order[i]];
        w->base[i] = n;
        w->in_slot[i] = out;
        w->weight_base[i] = weights;
        n += b->n_storages;
        weights += b->n_weights;
        if (b->out != TV_NONE)
            out = slot_of(w, i, b->out);
    }
    w->home = tv_new(a, uint32_t, g->n_blocks + 1);
    for (uint32_t i = (uint32_t)g->n_order; i-- > 0;)
        w->home[g->order[i]] = i;
    w->data = tv_new(a, slot, n + 1);
    w->grads = tv_new(a, slot, n + 1);
    w->weight_grads = tv_new(a, slot, weights + 1);
}

static void size_storages(walk *w, tv_arena *a)
{
    const tv_graph *g = w->g;
    const tv_walk_plan *p = w->plan;
    w->bytes = tv_new(a, double, g->n_storages + 1);
    w->term = tv_new(a, tv_term, g->n_storages + 1);
    for (size_t i = 0; i < g->n_storages; i++) {
        const tv_storage *s = &g->storages[i];
        const double heads = s->kind == TV_NONE ? 0 : g->blocks[s->kind].kv_heads;
        w->bytes[i] =
            tv_form_at(s->bytes, p->batch, p->cached) * tv_rank_share(&p->rank, s->shard, heads);
        w->term[i] = s->cast_cache ? TV_TERM_TEMPORARIES : s->term;
        if (s->cast_cache && p->gather_bytes > 0) /* sharded parameters are gathered in 16 bit */
            w->bytes[i] = 0;
    }
}

static void find_core(walk *w, tv_arena *a)
{
    const tv_graph *g = w->g;
    w->outside_core = tv_new(a, bool, g->n_storages + 1);
    for (size_t i = 0; i < g->n_blocks; i++)
        if (g->blocks[i].in != TV_NONE)
            w->outside_core[g->blocks[i].in] = true;
    w->region = tv_new(a, uint32_t, g->n_storages + 1);
    /* what only backward sees has no writer: it is made where it is saved */
    for (size_t i = 0; i < g->n_ops; i++)
        for (uint32_t k = 0; k < g->ops[i].saved.n; k++)
            w->region[ids_of(w, g->ops[i].saved)[k]] = g->ops[i].region;
    for (size_t i = 0; i < g->n_ops; i++)
        for (uint32_t k = 0; k < g->ops[i].reads.n; k++)
            w->region[ids_of(w, g->ops[i].reads)[k]] = 0;
    for (size_t i = 0; i < g->n_ops; i++)
        for (uint32_t k = 0; k < g->ops[i].writes.n; k++) {
            const uint32_t id = ids_of(w, g->ops[i].writes)[k];
            w->outside_core[id] = !g->ops[i].attention_core;
            w->region[id] = g->ops[i].region;
        }
}

static bool recomputes(const walk *w, const tv_block *b)
{
    return w->plan->trains && w->plan->recompute == TV_RECOMPUTE_FULL &&
           b->stage == TV_STAGE_BODY && b->in != TV_NONE;
}

/* Runs again when backward reaches it: a checkpointed region of the program's own, or an attention
 * core under selective recompute. */
static bool runs_again(const walk *w, const tv_op *op)
{
    if (recomputes(w, &w->g->blocks[op->block]))
        return false; /* with its whole block */
    return op->region || (w->plan->recompute == TV_RECOMPUTE_SELECTIVE && op->attention_core);
}

/* Whether what runs again found a storage there. */
static bool from_outside(const walk *w, const tv_op *op, uint32_t id)
{
    return op->region ? w->region[id] != op->region : w->outside_core[id];
}

/* Reads to come of every slot, so that a value goes with its last reader. */
static void count_reads(walk *w)
{
    for (uint32_t i = 0; i < w->g->n_order; i++) {
        const tv_block *b = &w->g->blocks[w->g->order[i]];
        for (uint32_t o = b->first_op; o < b->first_op + b->n_ops; o++) {
            const tv_op *op = &w->g->ops[o];
            for (uint32_t k = 0; k < op->reads.n; k++)
                w->data[slot_of(w, i, ids_of(w, op->reads)[k])].reads++;
        }
    }
}

static double conv_workspace(const walk *w, const tv_op *op)
{
    if (op->kind != TV_OP_CONV)
        return 0;
    const double all = tv_form_at(op->read_bytes, w->plan->batch, w->plan->cached) +
                       tv_form_at(op->write_bytes, w->plan->batch, w->plan->cached);
    return fmin(all, w->plan->conv_workspace_bytes);
}

/* Something that lives only while an op runs. */
static void breathe(walk *w, double bytes, tv_term term)
{
    slot s = {0};
    take(w, &s, bytes, term);
    drop(w, &s, term);
}

static double temp_bytes(const walk *w, const tv_op *op, tv_form f)
{
    return tv_form_at(f, w->plan->batch, w->plan->cached) *
           tv_rank_share(&w->plan->rank, op->temp_shard ? op->temp_shard : op->shard, 0);
}

/* ---- forward ---- */

static void release_if_done(walk *w, uint32_t storage, slot *s)
{
    if (s->reads == 0 && s->holds == 0 && !w->g->storages[storage].resident)
        drop(w, s, w->term[storage]);
}

/* Keeps what backward needs. What runs again keeps only what comes into it, once. */
static void save(walk *w, uint32_t layer, const tv_op *op)
{
    const bool dropped = runs_again(w, op);
    for (uint32_t k = 0; k < op->saved.n; k++) {
        const uint32_t id = ids_of(w, op->saved)[k];
        if (dropped && from_outside(w, op, id) == w->replay)
            continue;
        slot *s = &w->data[slot_of(w, layer, id)];
        take(w, s, w->bytes[id], w->term[id]);
        s->holds++;
    }
}

/* A checkpointed region holds what it was given, whether its operators save it or not. */
static void hold_inputs(walk *w, uint32_t layer, const tv_op *op, bool hold)
{
    if (!op->region || !runs_again(w, op))
        return;
    for (uint32_t k = 0; k < op->reads.n; k++) {
        const uint32_t id = ids_of(w, op->reads)[k];
        if (!from_outside(w, op, id) || w->g->storages[id].cast_cache)
            continue;
        slot *s = &w->data[slot_of(w, layer, id)];
        if (hold)
            s->holds++;
        else if (s->holds)
            s->holds--;
        if (!hold)
            release_if_done(w, id, s);
    }
}

static void forward_op(walk *w, uint32_t layer, uint32_t index, bool saving)
{
    const tv_op *op = &w->g->ops[index];
    w->at_op = index;
    w->at_layer = layer;
    for (uint32_t k = 0; k < op->writes.n; k++) {
        const uint32_t id = ids_of(w, op->writes)[k];
        slot *s = &w->data[slot_of(w, layer, id)];
        take(w, s, w->bytes[id], w->term[id]);
        if (w->g->storages[id].held && w->plan->trains && !w->replay)
            s->holds++; /* until the step is over */
    }
    if (saving)
        save(w, layer, op);
    if (saving && !w->replay)
        hold_inputs(w, layer, op, true);
    breathe(w, temp_bytes(w, op, op->temp_forward_bytes), TV_TERM_TEMPORARIES);
    breathe(w, conv_workspace(w, op), TV_TERM_WORKSPACE);
    for (uint32_t k = 0; k < op->reads.n; k++) {
        const uint32_t id = ids_of(w, op->reads)[k];
        slot *s = &w->data[slot_of(w, layer, id)];
        if (s->reads)
            s->reads--;
        if (!w->g->storages[id].cast_cache || !w->plan->trains)
            release_if_done(w, id, s);
    }
    for (uint32_t k = 0; k < op->writes.n; k++) {
        const uint32_t id = ids_of(w, op->writes)[k];
        slot *s = &w->data[slot_of(w, layer, id)];
        const bool handed_on = w->g->blocks[op->block].out == id && !w->replay;
        if (!handed_on)
            release_if_done(w, id, s);
    }
}

/* Parameters of a block when they are gathered from the ranks that share them. */
static double gathered_bytes(const walk *w, const tv_block *b)
{
    double sum = 0;
    if (w->plan->rank.shard <= 1)
        return 0;
    for (uint32_t i = b->first_weight; i < b->first_weight + b->n_weights; i++) {
        const tv_weight *x = &w->g->weights[i];
        const double all = w->plan->gather_bytes > 0 && x->trainable
                               ? x->elements * w->plan->gather_bytes
                               : x->bytes;
        sum += all * tv_rank_share(&w->plan->rank, x->shard, b->kv_heads);
    }
    return sum;
}

static void forward_block(walk *w, uint32_t layer, bool saving)
{
    const tv_block *b = &w->g->blocks[w->g->order[layer]];
    const bool again = recomputes(w, b);
    slot whole = {0};
    /* the gathered copy beside the all-gather's output (docs/model.md, "DDP and FSDP") */
    take(w, &whole, 2 * gathered_bytes(w, b), TV_TERM_COMM_BUFFERS);
    slot *in = &w->data[w->in_slot[layer]];
    if (again)
        in->holds++;
    for (uint32_t o = b->first_op; o < b->first_op + b->n_ops; o++)
        forward_op(w, layer, o, saving && !again);
    drop(w, &whole, TV_TERM_COMM_BUFFERS);
}

/* ---- backward ---- */

static double grad_bytes_of(const walk *w, const tv_weight *x, double each)
{
    const tv_block *b = x->block == TV_NONE ? NULL : &w->g->blocks[x->block];
    return x->elements * each * tv_rank_share(&w->plan->rank, x->shard, b ? b->kv_heads : 0);
}

static void weight_gradients(walk *w, uint32_t layer, const tv_op *op)
{
    for (uint32_t i = op->first_weight; i < op->first_weight + op->n_weights; i++) {
        const tv_weight *x = &w->g->weights[i];
        if (!x->trainable)
            continue;
        /* a tied weight's gradient is where the weight was declared */
        const uint32_t kind = x->block == TV_NONE ? op->block : x->block;
        const uint32_t at = kind == op->block ? layer : w->home[kind];
        slot *s = &w->weight_grads[w->weight_base[at] + (i - w->g->blocks[kind].first_weight)];
        const double bytes = grad_bytes_of(w, x, w->plan->grad_bytes);
        const double left = w->plan->grads_resident || s->bytes > 0 ? bytes : 0;
        breathe(w, left, TV_TERM_TEMPORARIES); /* accumulates into the one that is there */
        if (!w->plan->grads_resident)
            take(w, s, bytes, TV_TERM_GRADIENTS);
    }
}

static void release_saved(walk *w, uint32_t layer, const tv_op *op)
{
    for (uint32_t k = 0; k < op->saved.n; k++) {
        const uint32_t id = ids_of(w, op->saved)[k];
        slot *s = &w->data[slot_of(w, layer, id)];
        if (s->holds)
            s->holds--;
        release_if_done(w, id, s);
    }
}

static tv_term grad_term(const walk *w, uint32_t id)
{
    return w->term[id] == TV_TERM_LOGITS ? TV_TERM_LOGITS : TV_TERM_TEMPORARIES;
}

static void input_gradients(walk *w, uint32_t layer, const tv_op *op)
{
    for (uint32_t k = 0; k < op->reads.n; k++) {
        const uint32_t id = ids_of(w, op->reads)[k];
        if (!w->g->storages[id].grad)
            continue;
        slot *s = &w->grads[slot_of(w, layer, id)];
        if (s->bytes > 0)
            breathe(w, w->bytes[id], grad_term(w, id)); /* summed into the first */
        else
            take(w, s, w->bytes[id], grad_term(w, id));
    }
}

static bool written_and_read(const walk *w, const tv_op *op, uint32_t id)
{
    for (uint32_t k = 0; k < op->reads.n; k++)
        if (ids_of(w, op->reads)[k] == id)
            return true;
    return false;
}

static void backward_op(walk *w, uint32_t layer, uint32_t index)
{
    const tv_op *op = &w->g->ops[index];
    w->at_op = index;
    w->at_layer = layer;
    if (op->backward <= 0) {
        release_saved(w, layer, op);
        hold_inputs(w, layer, op, false);
        return;
    }
    for (uint32_t k = 0; k < op->writes.n; k++) {
        const uint32_t id = ids_of(w, op->writes)[k];
        if (w->g->storages[id].grad)
            take(w, &w->grads[slot_of(w, layer, id)], w->bytes[id], grad_term(w, id));
    }
    if (op->grad_reuses_saved)
        release_saved(w, layer, op);
    input_gradients(w, layer, op);
    breathe(w, temp_bytes(w, op, op->temp_backward_bytes), TV_TERM_TEMPORARIES);
    breathe(w, conv_workspace(w, op), TV_TERM_WORKSPACE);
    weight_gradients(w, layer, op);
    if (!op->grad_reuses_saved)
        release_saved(w, layer, op);
    hold_inputs(w, layer, op, false);
    for (uint32_t k = 0; k < op->writes.n; k++) {
        const uint32_t id = ids_of(w, op->writes)[k];
        if (!written_and_read(w, op, id))
            drop(w, &w->grads[slot_of(w, layer, id)], grad_term(w, id));
    }
}

/* Frees what a block's replayed forward left that nobody saved. */
static void sweep(walk *w, uint32_t layer, const tv_block *b)
{
    for (uint32_t i = b->first_storage; i < b->first_storage + b->n_storages; i++) {
        if (w->g->storages[i].kind == TV_NONE || i == b->in)
            continue;
        slot *s = &w->data[slot_of(w, layer, i)];
        s->reads = 0;
        s->holds = 0;
        drop(w, s, w->term[i]);
    }
}

static void replay_ops(walk *w, uint32_t layer, uint32_t first, uint32_t end)
{
    w->replay = true;
    for (uint32_t o = first; o < end; o++) {
        const tv_op *op = &w->g->ops[o];
        for (uint32_t k = 0; k < op->reads.n; k++) {
            const uint32_t id = ids_of(w, op->reads)[k];
            const bool mine =
                w->g->storages[id].kind != TV_NONE && id != w->g->blocks[op->block].in;
            if (mine)
                w->data[slot_of(w, layer, id)].reads++;
        }
    }
    for (uint32_t o = first; o < end; o++)
        forward_op(w, layer, o, true);
    w->replay = false;
}

/* The forward of what was dropped runs again when backward reaches its last operator. */
static uint32_t replay_dropped(walk *w, uint32_t layer, uint32_t last)
{
    uint32_t first = last;
    const tv_op *op = &w->g->ops[last];
    const tv_block *b = &w->g->blocks[op->block];
    while (first > b->first_op && w->g->ops[first - 1].region == op->region &&
           runs_again(w, &w->g->ops[first - 1]))
        first--;
    replay_ops(w, layer, first, last + 1);
    return first;
}

static void shard_gradients(walk *w, uint32_t layer, const tv_block *b)
{
    if (w->plan->rank.grad_shard <= 1 || w->plan->grads_resident)
        return;
    const double each = w->plan->reduce_bytes > 0 ? w->plan->reduce_bytes : w->plan->grad_bytes;
    double reduce = 0;
    for (uint32_t i = b->first_weight; i < b->first_weight + b->n_weights; i++)
        if (w->g->weights[i].trainable)
            reduce += grad_bytes_of(w, &w->g->weights[i], each);
    slot buffer = {0};
    take(w, &buffer, reduce, TV_TERM_COMM_BUFFERS);
    for (uint32_t i = 0; i < b->n_weights; i++) {
        const tv_weight *x = &w->g->weights[b->first_weight + i];
        slot *s = &w->weight_grads[w->weight_base[layer] + i];
        drop(w, s, TV_TERM_GRADIENTS);
        if (x->trainable)
            take(w, s, grad_bytes_of(w, x, each) / w->plan->rank.grad_shard, TV_TERM_GRADIENTS);
    }
    drop(w, &buffer, TV_TERM_COMM_BUFFERS);
}

static void backward_block(walk *w, uint32_t layer)
{
    const tv_block *b = &w->g->blocks[w->g->order[layer]];
    const bool again = recomputes(w, b);
    slot whole = {0};
    take(w, &whole, 2 * gathered_bytes(w, b), TV_TERM_COMM_BUFFERS);
    if (again)
        replay_ops(w, layer, b->first_op, b->first_op + b->n_ops);
    uint32_t replayed_from = TV_NONE;
    for (uint32_t o = b->first_op + b->n_ops; o-- > b->first_op;) {
        const bool dropped = !again && runs_again(w, &w->g->ops[o]);
        if (dropped && (replayed_from == TV_NONE || o < replayed_from))
            replayed_from = replay_dropped(w, layer, o);
        backward_op(w, layer, o);
    }
    if (again) {
        w->data[w->in_slot[layer]].holds--;
        sweep(w, layer, b);
    }
    if (b->in != TV_NONE)
        release_if_done(w, b->in, &w->data[w->in_slot[layer]]);
    shard_gradients(w, layer, b);
    drop(w, &whole, TV_TERM_COMM_BUFFERS);
}

/* ---- the step ---- */

static void end_forward(walk *w)
{
    double sum = 0;
    for (int t = 0; t < TV_TERM_COUNT; t++)
        sum += w->running[t];
    double fixed = 0;
    for (size_t i = 0; i < w->plan->n_statics; i++)
        fixed += w->plan->statics[i].bytes * w->plan->statics[i].n;
    const double states = w->running[TV_TERM_OPTIMIZER];
    if (w->measuring)
        w->best.saved_bytes = fmax(0, sum - fixed - states);
    /* Autocast's weight copies that nobody saved end with the autocast block. */
    for (uint32_t i = 0; i < w->g->n_order; i++) {
        const tv_block *b = &w->g->blocks[w->g->order[i]];
        for (uint32_t s = b->first_storage; s < b->first_storage + b->n_storages; s++)
            if (w->g->storages[s].cast_cache)
                release_if_done(w, s, &w->data[slot_of(w, i, s)]);
    }
}

/* Takes a list of equal allocations and yields their slots. */
static slot *take_each(walk *w, const tv_static *one, tv_arena *a, size_t *n)
{
    *n = one->n < 65536 ? (size_t)one->n : 1;
    slot *slots = tv_new(a, slot, *n + 1);
    for (size_t k = 0; k < *n; k++)
        take(w, &slots[k], one->bytes * one->n / (double)*n, one->term);
    return slots;
}

static void take_statics(walk *w, const tv_static *list, size_t n, tv_arena *a)
{
    size_t taken;
    for (size_t i = 0; i < n; i++)
        (void)take_each(w, &list[i], a, &taken);
}

/* foreach's lists: all of them at once, then none. */
static void step_temporaries(walk *w, tv_arena *a)
{
    const size_t n = w->plan->n_step_temps;
    slot **slots = tv_new(a, slot *, n + 1);
    size_t *counts = tv_new(a, size_t, n + 1);
    for (size_t i = 0; i < n; i++)
        slots[i] = take_each(w, &w->plan->step_temps[i], a, &counts[i]);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < counts[i]; k++)
            drop(w, &slots[i][k], w->plan->step_temps[i].term);
}

static void take_batch(walk *w)
{
    for (uint32_t i = 0; i < w->g->n_storages; i++)
        if (w->g->storages[i].kind == TV_NONE && w->g->storages[i].resident)
            take(w, &w->data[w->global[i]], w->bytes[i], w->term[i]);
}

static void drop_left(walk *w)
{
    for (uint32_t i = 0; i < w->g->n_order; i++) {
        const tv_block *b = &w->g->blocks[w->g->order[i]];
        sweep(w, i, b);
        for (uint32_t s = b->first_storage; s < b->first_storage + b->n_storages; s++)
            drop(w, &w->grads[slot_of(w, i, s)], grad_term(w, s));
        if (w->plan->grads_resident)
            continue;
        for (uint32_t k = 0; k < b->n_weights; k++)
            drop(w, &w->weight_grads[w->weight_base[i] + k], TV_TERM_GRADIENTS);
    }
    for (uint32_t i = 0; i < w->g->n_storages; i++) {
        if (w->g->storages[i].kind != TV_NONE)
            continue;
        slot *s = &w->data[w->global[i]];
        s->reads = s->holds = 0;
        drop(w, s, w->term[i]);
        drop(w, &w->grads[w->global[i]], grad_term(w, i));
    }
}

static void run_step(walk *w, tv_arena *a, bool first)
{
    const uint32_t n = (uint32_t)w->g->n_order;
    count_reads(w);
    w->phase = TV_WALK_FORWARD;
    take_batch(w);
    for (uint32_t i = 0; i < n; i++)
        forward_block(w, i, w->plan->trains);
    end_forward(w);
    w->phase = TV_WALK_BACKWARD;
    for (uint32_t i = n; w->plan->trains && i-- > 0;)
        backward_block(w, i);
    if (w->plan->trains)
        breathe(w, w->plan->bucket_bytes, TV_TERM_COMM_BUFFERS);
    w->phase = TV_WALK_STEP;
    w->at_op = TV_NONE;
    if (first)
        take_statics(w, w->plan->states, w->plan->n_states, a);
    if (w->plan->trains)
        note_peak(w);
    step_temporaries(w, a);
    drop_left(w);
}

tv_walk tv_walk_run(tv_arena *scratch, const tv_walk_plan *plan)
{
    const tv_mark mark = tv_arena_mark(scratch);
    walk w = {.plan = plan, .g = plan->graph, .at_op = TV_NONE};
    w.pool = tv_pool_open(scratch, plan->pool);
    layout(&w, scratch);
    size_storages(&w, scratch);
    find_core(&w, scratch);
    take_statics(&w, plan->statics, plan->n_statics, scratch);
    /* Step one has no optimizer state yet; what is measured is a later step on a warm pool. */
    const bool caches = plan->pool != TV_POOL_NONE && plan->pool != TV_POOL_EXACT;
    const bool warms = plan->trains && caches;
    w.measuring = !warms;
    if (!warms)
        take_statics(&w, plan->states, plan->n_states, scratch);
    run_step(&w, scratch, warms);
    if (warms) {
        w.measuring = true;
        run_step(&w, scratch, false);
    }
    w.best.reserved_peak_bytes = tv_pool_reserved_peak(w.pool);
    const tv_walk best = w.best;
    tv_arena_rewind(scratch, mark);
    return best;
}
