/* What would make a job fit, in order of cost: first what changes no result, then what costs
 * time, then what changes the method, then more hardware. Each change is predicted, not guessed,
 * except offload, whose bytes follow from the ledger and whose time is its traffic. */
#include "search.h"

#include "predict/ledger.h"

#include <math.h>
#include <string.h>

/* Host memory that a CPU optimizer streams through, bytes per second: two channels of DDR4-3200
 * give 51.2 GB/s, of which about half is reached by one pass of mixed reads and writes. */
#define HOST_BYTES_PER_S 25e9
/* What a pinned copy over PCIe 4.0 x16 reaches (docs/model.md, "links"). */
#define PCIE_BYTES_PER_S 25e9

typedef struct changed {
    tv_job job;
    uint32_t gpus, nodes;
    tv_str option; /* how it is typed */
    tv_text what;
} changed;

typedef struct remedies {
    tv_arena *a;
    tv_arena *scratch;
    const tv_search *s;
    const tv_case *now;
    double now_bytes;
    double now_s_per_sample;
    bool quick;
    struct {
        tv_remedy *v;
        size_t n, cap;
    } list;
} remedies;

/* ---- judging a change ---- */

static double seconds_per_sample(const tv_time *t, const tv_job *job, double ranks)
{
    if (!tv_known(t->step_s))
        return 0;
    const double accum = job->accum ? job->accum : 1;
    return t->step_s.v / (job->batch * accum * ranks);
}

typedef struct outcome {
    bool known;
    tv_memory memory;
    double s_per_sample;
} outcome;

static outcome predict(remedies *r, const changed *to)
{
    outcome o = {0};
    tv_machine *machine = tv_new(r->a, tv_machine, 1);
    tv_case *c = tv_new(r->a, tv_case, 1);
    const tv_device *d = r->now->machine->device;
    if (r->s->machine(r->s->ctx, r->a, d, to->gpus, to->nodes, machine) ||
        tv_predict_case(r->a, r->now->model, &to->job, machine, r->now->dataset, c))
        return o;
    tv_time time = {0};
    const tv_walk walk = r->quick ? tv_memory_quick_walk(r->scratch, c)
                                  : tv_memory_walk(r->scratch, c, c->job.batch, true);
    tv_memory_from_walk(r->a, c, &walk, &o.memory);
    tv_predict_time(r->a, c, &o.memory, &time);
    o.known = true;
    o.s_per_sample = seconds_per_sample(&time, &c->job, (double)to->gpus * to->nodes);
    return o;
}

static void add(remedies *r, tv_text what, double bytes, double slowdown, bool fits)
{
    if (fits || bytes < 0.99 * r->now_bytes) /* a change without effect is no remedy */
        *tv_push(r->a, &r->list) = (tv_remedy){what, bytes, slowdown, fits};
}

static bool try_change(remedies *r, const changed *to)
{
    const outcome o = predict(r, to);
    if (!o.known)
        return false;
    const double slowdown = r->now_s_per_sample > 0 ? o.s_per_sample / r->now_s_per_sample : 0;
    add(r, to->what, o.memory.total_bytes, slowdown, tv_search_holds(&o.memory));
    return tv_search_holds(&o.memory);
}

static bool says(const remedies *r, changed *to, const char *id, const char *msgid)
{
    to->what = TV_TEXT(r->a, id, msgid, tv_arg_str("option", to->option));
    return true;
}

/* ---- single changes: each says whether it applies ---- */

static bool to_amp(const remedies *r, changed *to)
{
    const tv_precision p = r->now->policy.precision;
    const int cc = r->now->machine->device->compute_capability;
    if ((p != TV_PRECISION_FP32 && p != TV_PRECISION_TF32) || (cc && cc < 70))
        return false;
    to->job.precision = !cc || cc >= 80 ? TV_PRECISION_AMP_BF16 : TV_PRECISION_AMP_FP16;
    to->option =
        tv_str_join(r->a, TV_S("--precision "), tv_str_of(tv_precision_name(to->job.precision)));
    return says(r, to, "remedy.amp", N_("mixed precision: {option}"));
}

static bool to_fused_attention(const remedies *r, changed *to)
{
    if (r->now->setting.kernel != TV_KERNEL_EAGER || r->now->model->heads <= 0)
        return false;
    to->job.attention = TV_ATTENTION_SDPA;
    to->option = TV_S("--attention sdpa");
    return says(r, to, "remedy.attention", N_("fused attention: {option}"));
}

static bool to_fused_loss(const remedies *r, changed *to)
{
    if (r->now->job.loss != TV_LOSS_STANDARD || r->now->model->vocab <= 0)
        return false;
    to->job.loss = TV_LOSS_FUSED;
    to->option = TV_S("--loss fused");
    return says(r, to, "remedy.loss", N_("a loss that never holds all logits: {option}"));
}

static bool to_selective(const remedies *r, changed *to)
{
    if (r->now->job.recompute != TV_RECOMPUTE_NONE || r->now->setting.kernel != TV_KERNEL_EAGER)
        return false;
    to->job.recompute = TV_RECOMPUTE_SELECTIVE;
    to->option = TV_S("--recompute selective");
    return says(r, to, "remedy.selective", N_("recompute the attention scores: {option}"));
}

static bool to_full(const remedies *r, changed *to)
{
    if (r->now->job.recompute == TV_RECOMPUTE_FULL)
        return false;
    to->job.recompute = TV_RECOMPUTE_FULL;
    to->option = TV_S("--recompute full");
    return says(r, to, "remedy.recompute", N_("recompute every block: {option}"));
}

static bool to_8bit(const remedies *r, changed *to)
{
    const tv_optimizer o = r->now->job.optimizer;
    if ((o != TV_OPT_ADAMW && o != TV_OPT_ADAM) || r->now->job.framework == TV_PADDLE)
        return false;
    to->job.optimizer = TV_OPT_ADAMW8BIT;
    to->option = TV_S("--optimizer adamw8bit");
    return says(r, to, "remedy.8bit", N_("8-bit optimizer states: {option}"));
}

static bool to_lora(const remedies *r, changed *to)
{
    const tv_task task = r->now->job.task;
    if ((task != TV_TASK_TRAIN && task != TV_TASK_FINETUNE) || r->now->model->heads <= 0)
        return false;
    to->job.task = TV_TASK_LORA;
    to->job.precision = TV_PRECISION_DEFAULT;
    to->option = TV_S("--task lora");
    return says(r, to, "remedy.lora", N_("train adapters only: {option}"));
}

static bool to_qlora(const remedies *r, changed *to)
{
    if (r->now->job.task == TV_TASK_QLORA || r->now->model->heads <= 0)
        return false;
    to->job.task = TV_TASK_QLORA;
    to->job.precision = TV_PRECISION_DEFAULT;
    to->option = TV_S("--task qlora");
    return says(r, to, "remedy.qlora", N_("adapters on a 4-bit base: {option}"));
}

static bool to_int8(const remedies *r, changed *to)
{
    const tv_precision p = r->now->policy.precision;
    if (r->now->policy.base || p == TV_PRECISION_INT8 || p == TV_PRECISION_INT4)
        return false;
    to->job.precision = TV_PRECISION_INT8;
    to->option = TV_S("--precision int8");
    return says(r, to, "remedy.int8", N_("8-bit weights: {option}"));
}

static bool to_int4(const remedies *r, changed *to)
{
    if (r->now->policy.base || r->now->policy.precision == TV_PRECISION_INT4)
        return false;
    to->job.precision = TV_PRECISION_INT4;
    to->option = TV_S("--precision int4");
    return says(r, to, "remedy.int4", N_("4-bit weights: {option}"));
}

static bool to_small_cache(const remedies *r, changed *to)
{
    if (!r->now->model->generates || tv_dtype_bytes(r->now->policy.kv) <= 1)
        return false;
    to->job.kv = TV_F8_E4M3;
    to->option = TV_S("--kv fp8");
    return says(r, to, "remedy.kv", N_("an 8-bit cache: {option}"));
}

typedef bool (*change)(const remedies *r, changed *to);

static changed unchanged(const remedies *r)
{
    const tv_machine *m = r->now->machine;
    return (changed){
        .job = r->now->job,
        .gpus = m->gpus ? m->gpus : 1,
        .nodes = m->nodes ? m->nodes : 1,
    };
}

static void try_each(remedies *r, const change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        changed to = unchanged(r);
        if (changes[i](r, &to))
            (void)try_change(r, &to);
    }
}

/* ---- changes with a size of their own ---- */

static void with_batch(const remedies *r, changed *to, uint32_t batch)
{
    const tv_job *job = &r->now->job;
    const uint32_t accum = job->accum ? job->accum : 1;
    to->job.batch = batch;
    to->job.accum = accum * (job->batch / batch);
    to->what = TV_TEXT(
        r->a, "remedy.batch", N_("batch {b} with {n} accumulated: a step keeps its {all} samples"),
        tv_arg_num("b", TV_ARG_NUMBER, batch), tv_arg_num("n", TV_ARG_NUMBER, to->job.accum),
        tv_arg_num("all", TV_ARG_NUMBER, (double)batch * to->job.accum));
}

/* The largest half, quarter ... that fits; the smallest where none does. */
static void try_batch(remedies *r)
{
    const uint32_t batch = r->now->job.batch;
    for (uint32_t by = 2; by <= batch; by *= 2) {
        if (batch % by)
            return;
        changed to = unchanged(r);
        with_batch(r, &to, batch / by);
        const bool last = batch % (by * 2) != 0 || by * 2 > batch;
        const outcome o = predict(r, &to);
        if (!o.known || (!tv_search_holds(&o.memory) && !last))
            continue;
        const double slowdown = r->now_s_per_sample > 0 ? o.s_per_sample / r->now_s_per_sample : 0;
        add(r, to.what, o.memory.total_bytes, slowdown, tv_search_holds(&o.memory));
        return;
    }
}

static void try_fewer_sequences(remedies *r)
{
    changed to = unchanged(r);
    if (to.job.batch < 2)
        return;
    to.job.batch = 1;
    to.what = TV_TEXT0("remedy.one", N_("one sequence at a time: --batch 1"));
    (void)try_change(r, &to);
}

static void try_more_cards(remedies *r, bool trains)
{
    static const uint32_t counts[] = {2, 4, 8};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        changed to = unchanged(r);
        if (counts[i] <= to.gpus)
            continue;
        to.gpus = counts[i];
        const tv_strategy sharded =
            to.job.framework == TV_PADDLE ? TV_STRATEGY_ZERO3 : TV_STRATEGY_FSDP;
        if (trains)
            to.job.strategy = sharded;
        else if (r->now->model->heads > 0 && fmod(r->now->model->heads, counts[i]) == 0)
            to.job.parallel.tp = counts[i];
        else
            return;
        to.what = TV_TEXT(r->a, "remedy.cards",
                          trains ? N_("{n} such cards, states sharded over them: --strategy {how}")
                                 : N_("{n} such cards, weights split over them: --tp {n}"),
                          tv_arg_num("n", TV_ARG_NUMBER, counts[i]),
                          tv_arg_str("how", tv_str_of(tv_strategy_name(sharded))));
        if (try_change(r, &to))
            return;
    }
}

/* Where one server is not enough: several of eight cards each. */
static void try_more_servers(remedies *r)
{
    static const uint32_t counts[] = {2, 4, 8, 16};
    for (size_t i = 0; i < r->list.n; i++) {
        const char *id = r->list.v[i].what.id;
        const bool other_method = !strcmp(id, "remedy.lora") || !strcmp(id, "remedy.qlora");
        if (r->list.v[i].fits && !other_method)
            return;
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        changed to = unchanged(r);
        to.gpus = 8;
        to.nodes = counts[i];
        to.job.strategy = to.job.framework == TV_PADDLE ? TV_STRATEGY_ZERO3 : TV_STRATEGY_FSDP;
        to.what = TV_TEXT(r->a, "remedy.servers",
                          N_("{n} servers of 8 such cards, states sharded over all: --gpus 8 "
                             "--nodes {n} --strategy {how}"),
                          tv_arg_num("n", TV_ARG_NUMBER, counts[i]),
                          tv_arg_str("how", tv_str_of(tv_strategy_name(to.job.strategy))));
        if (try_change(r, &to))
            return;
    }
}

/* Optimizer states and their update on the host: gradients go down, weights come back, and the
 * host streams weight, gradient and both moments once. */
static void try_offload(remedies *r, const tv_estimate *now)
{
    const double states = now->memory.term_bytes[TV_TERM_OPTIMIZER];
    const double per_step = now->time.step_s.v;
    if (!(states > 0))
        return;
    const double weights = now->memory.term_bytes[TV_TERM_WEIGHTS];
    const double moved = 2 * weights, streamed = 2 * states + 3 * weights;
    const double extra = moved / PCIE_BYTES_PER_S + streamed / HOST_BYTES_PER_S;
    const double bytes = now->memory.total_bytes - states;
    add(r,
        TV_TEXT(r->a, "remedy.offload",
                N_("optimizer on the host (CPU offload): {states} of host memory, {moved} over "
                   "PCIe each step"),
                tv_arg_num("states", TV_ARG_DISK, states), tv_arg_num("moved", TV_ARG_DISK, moved)),
        bytes, tv_known(now->time.step_s) && per_step > 0 ? (per_step + extra) / per_step : 0,
        bytes <= now->memory.capacity_bytes);
}

/* ---- several at once ---- */

/* Adds one change after the other until it fits: what none reaches alone. */
static void try_together(remedies *r, const change *changes, size_t n)
{
    for (size_t i = 0; i < r->list.n; i++)
        if (r->list.v[i].fits)
            return;
    changed to = unchanged(r);
    if (to.job.batch > 1)
        with_batch(r, &to, 1);
    tv_buf names = tv_buf_in(r->a);
    tv_puts(&names, to.job.batch != r->now->job.batch ? "--batch 1" : "");
    for (size_t i = 0; i < n; i++) {
        if (!changes[i](r, &to))
            continue;
        tv_puts(&names, names.n ? " " : "");
        tv_put(&names, to.option);
        const outcome o = predict(r, &to);
        if (!o.known || !tv_search_holds(&o.memory))
            continue;
        const double slowdown = r->now_s_per_sample > 0 ? o.s_per_sample / r->now_s_per_sample : 0;
        add(r,
            TV_TEXT(r->a, "remedy.together", N_("together: {options}"),
                    tv_arg_str("options", tv_buf_str(&names))),
            o.memory.total_bytes, slowdown, true);
        return;
    }
}

static void for_training(remedies *r, const tv_estimate *now)
{
    static const change free_ones[] = {to_amp, to_fused_attention, to_fused_loss};
    static const change slower[] = {to_selective, to_full, to_8bit};
    static const change all[] = {to_amp, to_fused_attention, to_fused_loss, to_8bit, to_full};
    static const change methods[] = {to_lora, to_qlora};
    try_each(r, free_ones, 1);
    try_batch(r);
    try_each(r, free_ones + 1, 2);
    try_each(r, slower, sizeof slower / sizeof *slower);
    try_together(r, all, sizeof all / sizeof *all);
    try_each(r, methods, sizeof methods / sizeof *methods);
    try_more_cards(r, true);
    try_more_servers(r);
    try_offload(r, now);
}

static void for_inference(remedies *r)
{
    static const change changes[] = {to_small_cache, to_int8, to_int4};
    try_fewer_sequences(r);
    try_each(r, changes, sizeof changes / sizeof *changes);
    try_more_cards(r, false);
}

void tv_search_remedies(tv_arena *a, tv_arena *scratch, const tv_search *s, const tv_case *c,
                        const tv_estimate *now, bool quick, tv_plan *plan)
{
    const double ranks = c->machine->gpus ? c->machine->gpus : 1;
    remedies r = {.a = a, .scratch = scratch, .s = s, .now = c, .quick = quick};
    r.now_bytes = now->memory.total_bytes;
    r.now_s_per_sample = seconds_per_sample(&now->time, &c->job, ranks);
    if (tv_job_trains(&c->job))
        for_training(&r, now);
    else
        for_inference(&r);
    plan->remedies = r.list.v;
    plan->n_remedies = r.list.n;
}

bool tv_search_amp(tv_arena *a, tv_arena *scratch, const tv_search *s, const tv_case *c,
                   const tv_estimate *now, tv_remedy *out)
{
    const double ranks = c->machine->gpus ? c->machine->gpus : 1;
    remedies r = {.a = a, .scratch = scratch, .s = s, .now = c};
    r.now_bytes = now->memory.total_bytes;
    r.now_s_per_sample = seconds_per_sample(&now->time, &c->job, ranks);
    changed to = unchanged(&r);
    if (!to_amp(&r, &to))
        return false;
    (void)try_change(&r, &to);
    if (r.list.n == 0)
        return false;
    *out = r.list.v[0];
    return true;
}
