/* The ledger of what does not move during a step: weights, optimizer states, gradients that stay,
 * communication buffers, workspaces, the KV cache. docs/model.md, "memory". */
#include "ledger.h"

#include <math.h>

#include "outside.h"
#include "state.h"

typedef struct static_list {
    tv_static *v;
    size_t n, cap;
} static_list;

static void add(tv_arena *a, static_list *l, tv_term term, double bytes, double n)
{
    if (bytes > 0 && n > 0)
        *tv_push(a, l) = (tv_static){term, bytes, n};
}

/* ---- degrees ---- */

static double at_least_one(double v)
{
    return v > 1 ? v : 1;
}

/* Cards that hold copies of the same weights. */
static double data_degree(const tv_case *c)
{
    const tv_parallel p = c->job.parallel;
    const double all = at_least_one(c->machine->gpus) * at_least_one(c->machine->nodes);
    const double model = at_least_one(p.tp) * at_least_one(p.pp);
    return at_least_one(floor(all / model));
}

static double shard_degree(const tv_case *c)
{
    const bool node = c->job.strategy == TV_STRATEGY_HSDP;
    return node ? at_least_one(c->machine->gpus) : data_degree(c);
}

typedef struct degrees {
    double states, gradients, weights;
} degrees;

static degrees degrees_of(const tv_case *c)
{
    const double n = tv_job_trains(&c->job) ? shard_degree(c) : 1;
    switch (c->job.strategy) {
    case TV_STRATEGY_DEFAULT:
    case TV_STRATEGY_DDP:
        return (degrees){1, 1, 1};
    case TV_STRATEGY_ZERO1:
        return (degrees){n, 1, 1};
    case TV_STRATEGY_ZERO2:
        return (degrees){n, n, 1};
    case TV_STRATEGY_ZERO3:
    case TV_STRATEGY_FSDP:
    case TV_STRATEGY_HSDP:
        return (degrees){n, n, n};
    }
    return (degrees){1, 1, 1};
}

static tv_rank rank_of(const tv_case *c)
{
    const degrees d = degrees_of(c);
    const tv_parallel p = c->job.parallel;
    return (tv_rank){
        .tensor = at_least_one(p.tp),
        .expert = at_least_one(p.ep),
        .shard = d.weights,
        .grad_shard = d.gradients,
    };
}

/* ---- weights, states, gradients ---- */

static double copies(const tv_graph *g, const uint32_t *counts, const tv_weight *w)
{
    return tv_weight_copies(g, counts, w);
}

static double kv_heads_of(const tv_graph *g, const tv_weight *w)
{
    return w->block == TV_NONE ? 0 : g->blocks[w->block].kv_heads;
}

static bool resident_gradients(const tv_case *c)
{
    return tv_job_trains(&c->job) &&
           (c->job.accum > 1 || c->policy.framework == TV_PADDLE || c->job.master == 2);
}

typedef struct weight_sums {
    double largest_bytes; /* of one trainable tensor */
    double grad_elements; /* trainable on the rank, not sharded */
} weight_sums;

/* llama.cpp looks tokens up in host memory, unless the table is the output matrix too. */
static bool on_host(const tv_case *c, const tv_graph *g, const tv_weight *w)
{
    if (c->job.engine != TV_ENGINE_LLAMA_CPP || w->role != TV_WEIGHT_EMBEDDING)
        return false;
    for (size_t i = 0; i < g->n_weights; i++)
        if (g->weights[i].role == TV_WEIGHT_HEAD)
            return true;
    return false;
}

static weight_sums add_weights(tv_arena *a, const tv_case *c, static_list *statics,
                               static_list *states, static_list *temps)
{
    const tv_graph *g = c->graph;
    const tv_rank rank = rank_of(c);
    const degrees d = degrees_of(c);
    uint32_t *counts = tv_new(a, uint32_t, g->n_blocks + 1);
    tv_graph_counts(g, counts);
    const tv_step_temp temp = tv_state_step_temp(c->job.optimizer, c->job.optimizer_form);
    weight_sums sums = {0};
    for (size_t i = 0; i < g->n_weights; i++) {
        const tv_weight *w = &g->weights[i];
        const double n = copies(g, counts, w);
        const double share = tv_rank_share(&rank, w->shard, kv_heads_of(g, w));
        if (!on_host(c, g, w))
            add(a, statics, TV_TERM_WEIGHTS, w->bytes * share / d.weights, n);
        if (!w->trainable || n <= 0)
            continue;
        const double state = tv_state_of_weight(c->job.optimizer, &c->policy, w) * share;
        add(a, states, TV_TERM_OPTIMIZER, state / 2 / d.states, 2 * n);
        const double bytes = w->elements * tv_dtype_bytes(w->dtype) * share / d.weights;
        add(a, temps, TV_TERM_TEMPORARIES, bytes * temp.lists / (d.states / d.weights), n);
        sums.largest_bytes = fmax(sums.largest_bytes, bytes);
        sums.grad_elements += w->elements * share * n;
        if (resident_gradients(c)) {
            const double each = fmax(w->dtype == TV_F32 ? 4 : 0, tv_dtype_bytes(c->policy.grad));
            add(a, statics, TV_TERM_GRADIENTS, w->elements * each * share / d.gradients, n);
        }
    }
    add(a, temps, TV_TERM_TEMPORARIES, sums.largest_bytes * temp.largest, 1);
    add(a, statics, TV_TERM_WEIGHTS, g->frozen_buffers_bytes, 1);
    return sums;
}

static double grad_bytes_of(const tv_case *c)
{
    return c->setting.trainable == TV_TRAIN_LORA ? tv_dtype_bytes(c->setting.lora_dtype)
                                                 : tv_dtype_bytes(c->policy.grad);
}

double tv_ledger_gradient_bytes(const tv_case *c)
{
    const tv_graph *g = c->graph;
    const tv_rank rank = rank_of(c);
    double sum = 0;
    for (size_t i = 0; i < g->n_weights; i++) {
        const tv_weight *w = &g->weights[i];
        if (!w->trainable)
            continue;
        double n = 0;
        for (size_t k = 0; k < g->n_order; k++)
            n += g->order[k] == w->block;
        n = w->shared && n > 1 ? 1 : n;
        sum += w->elements * n * tv_rank_share(&rank, w->shard, kv_heads_of(g, w));
    }
    return sum * grad_bytes_of(c) / degrees_of(c).gradients;
}

/* ---- communication ---- */

/* torch's DDP allocates all gradient buckets once, 25 MiB each, and copies into them; DeepSpeed's
 * stages 1 and 2 keep a reduce bucket of 5e8 elements. */
static void add_buckets(tv_arena *a, const tv_case *c, const weight_sums *sums, double grad_bytes,
                        static_list *statics, tv_walk_plan *plan)
{
    if (data_degree(c) <= 1 || !tv_job_trains(&c->job))
        return;
    const double bytes = sums->grad_elements * grad_bytes;
    const double bucket = 25 * 1048576.0;
    switch (c->job.strategy) {
    case TV_STRATEGY_DEFAULT:
    case TV_STRATEGY_DDP:
        if (c->policy.framework == TV_PADDLE)
            plan->bucket_bytes = bytes;
        else
            add(a, statics, TV_TERM_COMM_BUFFERS, fmin(bucket, bytes), ceil(bytes / bucket));
        break;
    case TV_STRATEGY_ZERO1:
    case TV_STRATEGY_ZERO2:
        add(a, statics, TV_TERM_COMM_BUFFERS, fmin(5e8 * grad_bytes, bytes), 1);
        break;
    case TV_STRATEGY_ZERO3:
    case TV_STRATEGY_FSDP:
    case TV_STRATEGY_HSDP:
        break;
    }
}

/* ---- cache ---- */

double tv_ledger_kv_bytes(const tv_case *c, double batch, double tokens)
{
    const tv_graph *g = c->graph;
    const tv_rank rank = rank_of(c);
    const double each = tv_dtype_bytes(c->policy.kv);
    double sum = 0;
    for (size_t i = 0; i < g->n_order; i++) {
        const tv_block *b = &g->blocks[g->order[i]];
        const double kept = b->kv_window > 0 ? fmin(b->kv_window, tokens) : tokens;
        const double share =
            b->kv_heads > 0 ? tv_rank_share(&rank, TV_SHARD_KV_HEADS, b->kv_heads) : 1;
        sum += batch * (kept * b->kv_width * each * share + b->state_bytes / rank.tensor);
    }
    return sum;
}

double tv_ledger_kv_per_token(const tv_case *c)
{
    const tv_graph *g = c->graph;
    const tv_rank rank = rank_of(c);
    double sum = 0;
    for (size_t i = 0; i < g->n_order; i++) {
        const tv_block *b = &g->blocks[g->order[i]];
        const double share =
            b->kv_heads > 0 ? tv_rank_share(&rank, TV_SHARD_KV_HEADS, b->kv_heads) : 1;
        sum += b->kv_width * tv_dtype_bytes(c->policy.kv) * share;
    }
    return tv_job_trains(&c->job) || !c->model->generates ? 0 : sum;
}

static void add_cache(tv_arena *a, const tv_case *c, double batch, static_list *statics)
{
    if (tv_job_trains(&c->job) || !c->model->generates)
        return;
    const double tokens = (double)c->job.seq + (double)c->job.gen;
    const double layers = (double)c->graph->n_order;
    add(a, statics, TV_TERM_KV, tv_ledger_kv_bytes(c, batch, tokens) / (2 * layers), 2 * layers);
}

/* ---- the plan ---- */

/* Engines fill the cache in chunks: vLLM schedules up to 8192 tokens at once (chunked prefill),
 * llama.cpp's ubatch is 512. Only so many sequences' worth of activations is alive. */
static double batch_at_once(const tv_case *c, double batch)
{
    if (tv_job_trains(&c->job) || !c->model->generates || !c->job.seq)
        return batch;
    const double seq = c->job.seq;
    if (c->job.engine == TV_ENGINE_VLLM)
        return fmin(batch, 8192 / seq);
    if (c->job.engine == TV_ENGINE_LLAMA_CPP)
        return fmin(batch, 512 / seq);
    return batch;
}

void tv_ledger_plan(tv_arena *a, const tv_case *c, double batch, tv_walk_plan *plan)
{
    static_list statics = {0}, states = {0}, temps = {0};
    const bool trains = tv_job_trains(&c->job);
    const tv_device *device = c->machine ? c->machine->device : NULL;
    *plan = (tv_walk_plan){
        .graph = c->graph,
        .rank = rank_of(c),
        .batch = batch_at_once(c, batch),
        .trains = trains,
        .recompute = c->job.recompute,
        .grads_resident = resident_gradients(c),
        .grad_bytes = grad_bytes_of(c),
        .conv_workspace_bytes = 64 * 1048576.0, /* assumed: cuDNN's heuristics rarely take more */
    };
    const weight_sums sums = add_weights(a, c, &statics, &states, &temps);
    if (trains) {
        add_buckets(a, c, &sums, plan->grad_bytes, &statics, plan);
        plan->step_temps = temps.v;
        plan->n_step_temps = temps.n;
        if (plan->rank.shard > 1 && c->policy.autocast)
            plan->gather_bytes = tv_dtype_bytes(c->policy.compute);
    }
    const double cublas = tv_outside_cublas(device, trains);
    add(a, &statics, TV_TERM_WORKSPACE, trains ? cublas / 2 : cublas, trains ? 2 : 1);
    add_cache(a, c, batch, &statics);
    plan->statics = statics.v;
    plan->n_statics = statics.n;
    plan->states = states.v;
    plan->n_states = states.n;
}

/* ---- lines ---- */

typedef struct line_list {
    tv_ledger_line *v;
    size_t n, cap;
} line_list;

static void line(tv_arena *a, line_list *l, tv_term term, const char *name, double bytes,
                 tv_text formula, const char *section)
{
    *tv_push(a, l) = (tv_ledger_line){
        .term = term,
        .name = name,
        .bytes = bytes,
        .formula = formula,
        .section = section,
        .origin = TV_COMPUTED,
    };
}

static tv_text per_param(tv_arena *a, const char *id, const char *msgid, double params,
                         double bytes)
{
    return TV_TEXT(a, id, msgid, tv_arg_num("params", TV_ARG_COUNT, params),
                   tv_arg_num("each", TV_ARG_NUMBER, params > 0 ? bytes / params : 0));
}

static void training_lines(tv_arena *a, const tv_case *c, const tv_memory *m, line_list *l)
{
    const tv_graph *g = c->graph;
    const double trainable = g->trainable_params;
    const double states = m->term_bytes[TV_TERM_OPTIMIZER];
    line(a, l, TV_TERM_GRADIENTS, N_("gradients"), m->term_bytes[TV_TERM_GRADIENTS],
         per_param(
             a, "ledger.gradients",
             resident_gradients(c)
                 ? N_("{params} trainable parameters, {each} bytes each, there all the time")
                 : N_("{params} trainable parameters; at the peak {each} bytes each: gradients "
                      "appear during backward"),
             trainable, m->term_bytes[TV_TERM_GRADIENTS]),
         "gradients");
    line(a, l, TV_TERM_OPTIMIZER, N_("optimizer states"), states,
         TV_TEXT(a, "ledger.optimizer",
                 N_("{params} trainable parameters, {optimizer}: {each} bytes each"),
                 tv_arg_num("params", TV_ARG_COUNT, trainable),
                 tv_arg_str("optimizer", tv_str_of(tv_optimizer_name(c->job.optimizer))),
                 tv_arg_num("each", TV_ARG_NUMBER, trainable > 0 ? states / trainable : 0)),
         "optimizer states");
}

static void moving_lines(tv_arena *a, const tv_memory *m, line_list *l)
{
    line(a, l, TV_TERM_ACTIVATIONS, N_("activations"), m->term_bytes[TV_TERM_ACTIVATIONS],
         TV_TEXT(a, "ledger.activations",
                 N_("alive at {peak}; {saved} were kept for backward at the end of forward"),
                 tv_arg_str("peak", tv_text_in(a, TV_EN, m->peak_at)),
                 tv_arg_num("saved", TV_ARG_MEMORY, m->saved_bytes)),
         "activation ledger");
    line(a, l, TV_TERM_LOGITS, N_("logits and loss"), m->term_bytes[TV_TERM_LOGITS],
         TV_TEXT0("ledger.logits", N_("logits, their fp32 copy, log-probabilities and gradients")),
         "loss");
    line(a, l, TV_TERM_TEMPORARIES, N_("temporaries"), m->term_bytes[TV_TERM_TEMPORARIES],
         TV_TEXT0(
             "ledger.temporaries",
             N_("activation gradients, autocast's weight copies, what ops hold while they run")),
         "liveness walk");
    line(a, l, TV_TERM_WORKSPACE, N_("workspace"), m->term_bytes[TV_TERM_WORKSPACE],
         TV_TEXT0("ledger.workspace",
                  N_("cuBLAS handles of the forward and backward threads, cuDNN")),
         "outside the allocator");
    line(
        a, l, TV_TERM_COMM_BUFFERS, N_("communication buffers"),
        m->term_bytes[TV_TERM_COMM_BUFFERS],
        TV_TEXT0("ledger.comm", N_("gradient buckets, gathered parameters, reduce-scatter inputs")),
        "DDP and FSDP");
}

void tv_ledger_lines(tv_arena *a, const tv_case *c, tv_memory *out)
{
    line_list l = {0};
    const double weights = out->term_bytes[TV_TERM_WEIGHTS];
    line(a, &l, TV_TERM_WEIGHTS, N_("weights"), weights,
         per_param(a, "ledger.weights", N_("{params} parameters, {each} bytes each on this card"),
                   c->graph->params, weights),
         "weights");
    if (tv_job_trains(&c->job))
        training_lines(a, c, out, &l);
    if (out->term_bytes[TV_TERM_KV] > 0)
        line(a, &l, TV_TERM_KV, N_("KV cache"), out->term_bytes[TV_TERM_KV],
             TV_TEXT(a, "ledger.kv", N_("{batch} sequences of {tokens} tokens, {each} a token"),
                     tv_arg_num("batch", TV_ARG_COUNT, c->job.batch),
                     tv_arg_num("tokens", TV_ARG_COUNT, (double)c->job.seq + (double)c->job.gen),
                     tv_arg_num("each", TV_ARG_MEMORY, tv_ledger_kv_per_token(c))),
             "KV cache");
    moving_lines(a, out, &l);
    out->lines = l.v;
    out->n_lines = l.n;
}
