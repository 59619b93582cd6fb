/* The emitter's core: blocks, storages, weights, and the ops that only stream bytes. What a layer
 * saves is in emit_layer.c, emit_attention.c, emit_vision.c, emit_loss.c. */
#include "emit_parts.h"

#include <assert.h>
#include <string.h>

const tv_val tv_no_val = {.storage = TV_NONE};

tv_emit tv_emit_open(tv_arena *a, const tv_setting *set)
{
    tv_emit e = {.a = a, .set = set, .prefix = "", .block = TV_NONE};
    e.g = tv_new(a, tv_graph, 1);
    e.act_shard = TV_SHARD_SEQUENCE;
    e.g->tokens_per_sample = set->phase == TV_PHASE_DECODE ? 1 : (double)set->seq;
    return e;
}

tv_graph *tv_emit_close(tv_emit *e)
{
    tv_graph *g = e->g;
    uint32_t *counts = tv_new(e->a, uint32_t, g->n_blocks + 1);
    tv_graph_counts(g, counts);
    for (size_t i = 0; i < g->n_weights; i++) {
        const tv_weight *w = &g->weights[i];
        const double all = w->elements * tv_weight_copies(g, counts, w);
        if (w->role != TV_WEIGHT_ADAPTER)
            g->params += all;
        g->trainable_params += w->trainable ? all : 0;
    }
    return g;
}

/* ---- blocks ---- */

tv_val tv_emit_block(tv_emit *e, const char *name, tv_stage stage, tv_val in)
{
    tv_graph *g = e->g;
    if (g->n_blocks == e->cap_blocks)
        g->blocks = tv_grow(e->a, g->blocks, g->n_blocks, &e->cap_blocks, sizeof *g->blocks);
    tv_block *b = &g->blocks[g->n_blocks++];
    e->block = (uint32_t)g->n_blocks - 1;
    *b = (tv_block){
        .name = name,
        .stage = stage,
        .first_op = (uint32_t)g->n_ops,
        .first_storage = (uint32_t)g->n_storages,
        .first_weight = (uint32_t)g->n_weights,
        .in = TV_NONE,
        .out = TV_NONE,
    };
    if (in.storage == TV_NONE)
        return in;
    /* With adapters the first layer's input needs no gradient, the later ones' do; one kind serves
     * all, so every layer is taken to need it: one layer too many at most. */
    if (stage != TV_STAGE_EMBED && tv_emit_trains(e) && e->set->trainable != TV_TRAIN_NONE)
        in.grad = in.grad || !e->frozen;
    const tv_shard shard = tv_emit_shard_of(e, in);
    in.storage = tv_emit_storage(e, "block input", tv_emit_val_bytes(in), in.dtype, shard, in.grad);
    g->blocks[e->block].in = in.storage;
    return in;
}

tv_val tv_emit_end(tv_emit *e, tv_val out)
{
    tv_block *b = &e->g->blocks[e->block];
    b->n_ops = (uint32_t)e->g->n_ops - b->first_op;
    b->n_storages = (uint32_t)e->g->n_storages - b->first_storage;
    b->n_weights = (uint32_t)e->g->n_weights - b->first_weight;
    b->out = out.storage;
    e->block = TV_NONE;
    return out;
}

void tv_emit_order(tv_emit *e, uint32_t kind, size_t n)
{
    tv_graph *g = e->g;
    for (size_t i = 0; i < n; i++) {
        if (g->n_order == e->cap_order)
            g->order = tv_grow(e->a, g->order, g->n_order, &e->cap_order, sizeof *g->order);
        g->order[g->n_order++] = kind;
    }
}

void tv_emit_cache(tv_emit *e, double kv_width, double kv_heads, double window, double state_bytes)
{
    tv_block *b = &e->g->blocks[e->block];
    b->kv_width = kv_width;
    b->kv_heads = kv_heads;
    b->kv_window = window;
    b->state_bytes = state_bytes;
}

/* ---- values and storages ---- */

void tv_few_add(tv_few *f, uint32_t storage)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i] == storage)
            return;
    assert(f->n < sizeof f->v / sizeof *f->v);
    if (storage != TV_NONE)
        f->v[f->n++] = storage;
}

bool tv_emit_trains(const tv_emit *e)
{
    return e->set->phase == TV_PHASE_TRAIN;
}

bool tv_emit_autocast(const tv_emit *e)
{
    return e->set->policy.autocast;
}

tv_dtype tv_emit_matmul_dtype(const tv_emit *e)
{
    const tv_dtype compute = e->set->policy.compute;
    return compute == TV_TF32 ? TV_F32 : compute;
}

double tv_emit_tokens(const tv_emit *e)
{
    return e->set->phase == TV_PHASE_DECODE ? 1 : (double)e->set->seq;
}

const char *tv_emit_path(tv_emit *e, const char *name)
{
    if (!*e->prefix)
        return name;
    return tv_str_join(e->a, tv_str_of(e->prefix), tv_str_of(name)).p;
}

tv_form tv_emit_bytes(tv_form n, tv_dtype dtype)
{
    return tv_form_scale(n, tv_dtype_bytes(dtype));
}

tv_form tv_emit_val_bytes(tv_val v)
{
    return v.storage == TV_NONE ? (tv_form){0} : tv_emit_bytes(v.n, v.dtype);
}

tv_shard tv_emit_shard_of(const tv_emit *e, tv_val v)
{
    return v.storage == TV_NONE ? e->act_shard : e->g->storages[v.storage].shard;
}

uint32_t tv_emit_storage(tv_emit *e, const char *what, tv_form bytes, tv_dtype dtype,
                         tv_shard shard, bool grad)
{
    tv_graph *g = e->g;
    if (g->n_storages == e->cap_storages)
        g->storages =
            tv_grow(e->a, g->storages, g->n_storages, &e->cap_storages, sizeof *g->storages);
    g->storages[g->n_storages++] = (tv_storage){
        .what = what,
        .bytes = bytes,
        .dtype = dtype,
        .shard = shard,
        .kind = e->block,
        .grad = grad,
    };
    return (uint32_t)g->n_storages - 1;
}

tv_val tv_emit_input(tv_emit *e, const char *what, double per_sample, tv_dtype dtype)
{
    const uint32_t block = e->block;
    e->block = TV_NONE; /* the batch belongs to no block */
    const tv_form n = tv_form_per_batch(per_sample);
    const uint32_t id =
        tv_emit_storage(e, what, tv_emit_bytes(n, dtype), dtype, TV_SHARD_NONE, false);
    e->g->storages[id].resident = true;
    e->block = block;
    return (tv_val){id, n, dtype, false};
}

void tv_emit_global(tv_emit *e, tv_val v)
{
    if (v.storage != TV_NONE)
        e->g->storages[v.storage].kind = TV_NONE;
}

tv_val tv_emit_view(tv_val v, tv_form n)
{
    v.n = n;
    return v;
}

/* ---- ops ---- */

tv_op *tv_emit_op(tv_emit *e, tv_op_kind kind, const char *name)
{
    tv_graph *g = e->g;
    if (g->n_ops == e->cap_ops)
        g->ops = tv_grow(e->a, g->ops, g->n_ops, &e->cap_ops, sizeof *g->ops);
    tv_op *op = &g->ops[g->n_ops++];
    *op = (tv_op){
        .kind = kind,
        .name = tv_emit_path(e, name),
        .block = e->block,
        .groups = 1,
        .compute = e->set->policy.compute,
        .first_weight = (uint32_t)g->n_weights,
        .launches = 1,
        .backward_launches = 1,
    };
    return op;
}

static tv_ids add_ids(tv_emit *e, tv_ids run, const uint32_t *storages, size_t n)
{
    tv_graph *g = e->g;
    assert(run.n == 0 || run.first + run.n == g->n_ids);
    if (run.n == 0)
        run.first = (uint32_t)g->n_ids;
    for (size_t i = 0; i < n; i++)
        if (storages[i] != TV_NONE) {
            if (g->n_ids == e->cap_ids)
                g->ids = tv_grow(e->a, g->ids, g->n_ids, &e->cap_ids, sizeof *g->ids);
            g->ids[g->n_ids++] = storages[i];
            run.n++;
        }
    return run;
}

tv_val tv_emit_out(tv_emit *e, tv_op *op, const char *what, tv_form n, tv_dtype dtype, bool grad)
{
    const tv_shard shard = op->shard;
    const uint32_t id = tv_emit_storage(e, what, tv_emit_bytes(n, dtype), dtype, shard, grad);
    op->writes = add_ids(e, op->writes, &id, 1);
    return (tv_val){id, n, dtype, grad};
}

void tv_emit_reads(tv_emit *e, tv_op *op, const uint32_t *storages, size_t n)
{
    op->reads = add_ids(e, op->reads, storages, n);
}

void tv_emit_saves(tv_emit *e, tv_op *op, const uint32_t *storages, size_t n)
{
    if (tv_emit_trains(e))
        op->saved = add_ids(e, op->saved, storages, n);
}

/* ---- weights ---- */

static bool is_matrix(tv_weight_role role)
{
    return role == TV_WEIGHT_MATRIX || role == TV_WEIGHT_EXPERT;
}

bool tv_emit_quantised(const tv_emit *e, tv_weight_plan plan)
{
    const tv_policy *p = &e->set->policy;
    if (p->base == TV_DTYPE_UNKNOWN || p->base == p->param || plan.no_quant)
        return false;
    return p->base_experts_only ? plan.role == TV_WEIGHT_EXPERT : is_matrix(plan.role);
}

bool tv_emit_name_in(tv_str path, tv_str names)
{
    for (tv_cut c = tv_str_cut(names, ',');; c = tv_str_cut(c.tail, ',')) {
        const tv_str name = tv_str_trim(c.head);
        const bool end =
            tv_str_ends(path, name) && (path.n == name.n || path.p[path.n - name.n - 1] == '.');
        if (name.n && (end || tv_str_glob(path, name)))
            return true;
        if (!c.found)
            return false;
    }
}

bool tv_emit_is_saved(const tv_emit *e, const char *path)
{
    const tv_setting *s = e->set;
    return s->saved_modules.n && s->trainable == TV_TRAIN_LORA && tv_emit_trains(e) &&
           tv_emit_name_in(tv_str_of(path), s->saved_modules);
}

tv_weight *tv_emit_declare(tv_emit *e, tv_op *op, tv_weight_plan plan)
{
    tv_graph *g = e->g;
    if (g->n_weights == e->cap_weights)
        g->weights = tv_grow(e->a, g->weights, g->n_weights, &e->cap_weights, sizeof *g->weights);
    tv_weight *w = &g->weights[g->n_weights++];
    const tv_policy *p = &e->set->policy;
    const bool all = e->set->trainable == TV_TRAIN_ALL && !e->frozen;
    *w = (tv_weight){
        .name = tv_emit_path(e, plan.name),
        .block = e->block,
        .role = plan.role,
        .elements = plan.rows * plan.cols * plan.count,
        .count = plan.count,
        .rows = plan.rows,
        .cols = plan.cols,
        .dtype = plan.adapter ? e->set->lora_dtype : p->param,
        .trainable = tv_emit_trains(e) && (all || plan.adapter),
        .shared = e->shared,
        .shard = plan.shard,
    };
    double each = tv_dtype_bytes(w->dtype);
    if (!w->trainable && tv_emit_quantised(e, plan)) {
        w->dtype = p->base;
        each = p->base_bytes > 0 ? p->base_bytes : tv_dtype_bytes(p->base);
    }
    w->bytes = w->elements * each;
    if (!w->trainable && tv_emit_is_saved(e, w->name)) {
        w->trainable = true; /* PEFT's ModulesToSaveWrapper: a copy trains, the original stays */
        e->g->frozen_buffers_bytes += w->bytes;
    }
    if (op)
        op->n_weights++;
    return w;
}

void tv_emit_weight(tv_emit *e, const char *name, tv_weight_role role, double rows, double cols,
                    double count, tv_shard shard)
{
    (void)tv_emit_declare(e, NULL,
                          (tv_weight_plan){
                              .name = name,
                              .role = role,
                              .rows = rows,
                              .cols = cols,
                              .count = count,
                              .shard = shard,
                          });
}

void tv_emit_buffer(tv_emit *e, double bytes)
{
    e->g->frozen_buffers_bytes += bytes;
}

/* ---- streams ---- */

static tv_form plus_scaled(tv_form x, tv_form y, double by)
{
    return tv_form_add(x, tv_form_scale(y, by));
}

tv_val tv_emit_stream(tv_emit *e, const tv_stream *s)
{
    tv_op *op = tv_emit_op(e, s->kind, s->name);
    const bool grad = s->x.grad || s->y.grad;
    const uint32_t in[2] = {s->x.storage, s->y.storage};
    const tv_form in_bytes = tv_form_add(tv_emit_val_bytes(s->x), tv_emit_val_bytes(s->y));
    const tv_form out_bytes = tv_emit_bytes(s->n, s->dtype);
    op->shard = tv_emit_shard_of(e, s->x);
    op->flop = tv_form_scale(s->n, s->flop_per_out);
    op->backward = grad ? 1 : 0;
    op->compute = TV_F32;
    op->m = s->n;
    op->launches = (uint16_t)(s->launches ? s->launches : 1);
    op->backward_launches =
        (uint16_t)(grad ? (s->backward_launches ? s->backward_launches : 1) : 0);
    op->read_bytes = plus_scaled(in_bytes, s->n, s->extra_forward_bytes_per_out);
    op->write_bytes = out_bytes;
    op->temp_forward_bytes = s->temp_forward;
    op->attention_core = s->core;
    tv_emit_reads(e, op, in, 2);
    const tv_val out = tv_emit_out(e, op, s->what, s->n, s->dtype, grad);
    if (!grad)
        return out;
    op->temp_backward_bytes = s->temp_backward;
    op->backward_bytes = plus_scaled(tv_form_add(in_bytes, tv_form_scale(out_bytes, 2)), s->n,
                                     s->extra_backward_bytes_per_out);
    tv_few saved = s->saved;
    if (s->saves_out)
        tv_few_add(&saved, out.storage);
    tv_emit_saves(e, op, saved.v, saved.n);
    return out;
}

tv_val tv_emit_cast(tv_emit *e, const char *what, tv_val x, tv_dtype dtype)
{
    if (x.dtype == dtype || x.storage == TV_NONE)
        return x;
    return tv_emit_stream(e, &(tv_stream){
                                 .kind = TV_OP_COPY,
                                 .name = "to",
                                 .what = what,
                                 .x = x,
                                 .y = tv_no_val,
                                 .n = x.n,
                                 .dtype = dtype,
                             });
}
