/* The time of a step: kernels against the host that issues them, block by block, then what no
 * other lane hides of optimizer, communication and data. docs/model.md, "time of a step". */
#include "predict.h"

#include <math.h>

#include "lanes.h"
#include "state.h"

static double at_least(double v, double low)
{
    return v > low ? v : low;
}

/* Bytes a step of the optimizer moves per trained parameter: fused kernels read gradient,
 * parameter and moments once and write them back (28 for fp32 Adam); foreach passes over the lists
 * eight times (80). */
double tv_optimizer_bytes(const tv_job *job, const tv_policy *policy)
{
    const double state = tv_predict_state_bytes(job->optimizer, policy->state, policy->master);
    const double fused =
        2 * state + tv_dtype_bytes(policy->grad) + 2 * tv_dtype_bytes(policy->param);
    const bool adam = job->optimizer == TV_OPT_ADAMW || job->optimizer == TV_OPT_ADAM ||
                      job->optimizer == TV_OPT_AMSGRAD || job->optimizer == TV_OPT_DEFAULT;
    if (job->optimizer_form == TV_FORM_FUSED || !adam)
        return fused;
    return fused * 80.0 / 28.0;
}

/* ---- lanes of one pass ---- */

typedef struct pass {
    double device_s; /* kernels */
    double launch_s; /* device waits for the host */
    double issue_s;  /* host */
} pass;

static void add_block(pass *p, double device_s, double issue_s, double count)
{
    p->device_s += device_s * count;
    p->issue_s += issue_s * count;
    p->launch_s += at_least(issue_s - device_s, 0) * count;
}

/* Forward, what recompute runs again, backward; blocks in order, so each waits for its own host
 * work only where that is longer than its kernels. */
static pass training_pass(const tv_case *c, const tv_lanes *lanes)
{
    pass p = {0};
    for (size_t i = 0; i < lanes->n_blocks; i++) {
        const tv_block_lane *b = &lanes->blocks[i];
        const bool body = c->graph->blocks[i].stage == TV_STAGE_BODY;
        add_block(&p, b->forward_s, b->issue_forward_s, b->count);
        add_block(&p, b->backward_s, b->issue_backward_s, b->count);
        if (c->job.recompute == TV_RECOMPUTE_FULL && body)
            add_block(&p, b->forward_s, b->issue_forward_s, b->count);
        else
            p.device_s += b->region_s * b->count;
        if (c->job.recompute == TV_RECOMPUTE_SELECTIVE)
            p.device_s += b->core_s * b->count;
    }
    return p;
}

static pass forward_pass(const tv_lanes *lanes, bool replayed)
{
    pass p = {0};
    for (size_t i = 0; i < lanes->n_blocks; i++) {
        const tv_block_lane *b = &lanes->blocks[i];
        add_block(&p, b->forward_s, replayed ? 0 : b->issue_forward_s, b->count);
    }
    return p;
}

static double tensor_comm(const tv_lanes *lanes)
{
    double s = 0;
    for (size_t i = 0; i < lanes->n_blocks; i++)
        s += lanes->blocks[i].comm_forward_s * lanes->blocks[i].count;
    return s;
}

/* ---- facts ---- */

/* The host's share is known to a quarter at best: it is another machine's Python. */
static const double host_sigma = 0.25;

static tv_fact timed(double v, double kernel_s, double sigma, double host_s, tv_tier tier)
{
    tv_fact f = tv_fact_of(v, TV_COMPUTED, TV_S("time of a step"));
    const double a = sigma * kernel_s, b = host_sigma * host_s;
    const double wrong = sqrt(a * a + b * b);
    f.lo = at_least(v - wrong, v * 0.2);
    f.hi = v + wrong;
    f.tier = tier;
    return f;
}

static tv_fact rate_of(double work, tv_fact s)
{
    tv_fact f = s;
    f.v = s.v > 0 ? work / s.v : 0;
    f.lo = s.hi > 0 ? work / s.hi : 0;
    f.hi = s.lo > 0 ? work / s.lo : 0;
    return f;
}

static void set_mfu(const tv_case *c, tv_time *t)
{
    const tv_fact peak = tv_predict_rate(c->machine->device, c->policy.compute);
    if (tv_known(peak) && t->flop > 0)
        t->mfu = rate_of(t->flop / peak.v, t->step_s);
}

static void set_kinds(const tv_lanes *lanes, tv_time *t)
{
    double all = 0;
    for (int k = 0; k < TV_OP_KIND_COUNT; k++) {
        t->by_kind_s[k] = lanes->by_kind_s[k];
        all += lanes->by_kind_s[k];
    }
    const double dense = lanes->by_kind_s[TV_OP_GEMM] + lanes->by_kind_s[TV_OP_CONV] +
                         lanes->by_kind_s[TV_OP_ATTENTION];
    t->gemm_share = all > 0 ? dense / all : 0;
    t->math_bound_s = lanes->math_s;
    t->memory_bound_s = lanes->memory_s;
}

/* ---- data ---- */

static void add_data(const tv_case *c, double samples, double busy_s, tv_time *t)
{
    const tv_data_time d = tv_data_side(c, samples);
    t->storage_s = d.storage_s;
    t->decode_s = d.decode_s;
    t->copy_s = d.copy_s;
    t->data_s = d.slowest_s;
    t->data_exposed_s = at_least(d.slowest_s - busy_s, 0);
}

static void set_run(const tv_case *c, tv_time *t)
{
    const double samples = c->job.samples > 0 ? c->job.samples
                           : c->dataset       ? c->dataset->samples
                                              : 0;
    if (samples <= 0 || !(t->samples_per_s.v > 0))
        return;
    t->epoch_s = samples / t->samples_per_s.v;
    t->run_s = t->epoch_s * (c->job.epochs > 0 ? c->job.epochs : 1);
}

/* ---- training ---- */

static double optimizer_s(const tv_case *c, const tv_degrees *d)
{
    const double bytes_per_s = c->machine->device->mem_bytes_per_s.v * 0.85;
    double params = c->graph->trainable_params / (d->tp * d->pp);
    if (c->job.strategy != TV_STRATEGY_DDP && c->job.strategy != TV_STRATEGY_DEFAULT)
        params /= d->data;
    if (!(bytes_per_s > 0))
        return 0;
    return params * tv_optimizer_bytes(&c->job, &c->policy) / bytes_per_s;
}

static void training_time(tv_arena *a, const tv_case *c, tv_time *t)
{
    const tv_degrees d = tv_degrees_of(c);
    const double micro = at_least(c->job.accum, 1);
    const tv_lanes lanes = tv_lanes_of(a, c, c->graph, c->job.batch, 0);
    const pass p = training_pass(c, &lanes);
    const double bubble = 1 + (d.pp - 1) / micro;
    const tv_comm_time comm = tv_communicate(c, &lanes, micro);
    t->compute_s = p.device_s * micro * bubble / d.pp + comm.tax_s;
    t->launch_s = p.launch_s * micro * bubble / d.pp;
    t->issue_s = p.issue_s * micro;
    t->optimizer_s = optimizer_s(c, &d);
    t->comm_s = comm.total_s;
    t->comm_exposed_s = comm.exposed_s;
    t->flop = (lanes.flop_forward + lanes.flop_backward) * micro / d.pp;
    const double busy_s = t->compute_s + t->launch_s + t->optimizer_s + t->comm_exposed_s;
    add_data(c, c->job.batch * micro, busy_s, t);
    const double host_s = fmin(p.issue_s * micro, t->launch_s * 4) + t->data_exposed_s;
    t->step_s = timed(busy_s + t->data_exposed_s, t->compute_s, lanes.sigma, host_s, lanes.tier);
    const double samples = (double)c->job.batch * micro * d.data;
    t->samples_per_s = rate_of(samples, t->step_s);
    if (c->graph->tokens_per_sample > 1)
        t->tokens_per_s = rate_of(samples * c->graph->tokens_per_sample, t->step_s);
    set_kinds(&lanes, t);
    set_mfu(c, t);
    set_run(c, t);
}

/* ---- inference ---- */

static void forward_time(tv_arena *a, const tv_case *c, tv_time *t)
{
    const tv_degrees d = tv_degrees_of(c);
    const tv_engine_cost cost = tv_engine_cost_of(c);
    const tv_lanes lanes = tv_lanes_of(a, c, c->graph, c->job.batch, 0);
    const pass p = forward_pass(&lanes, false);
    t->compute_s = p.device_s;
    t->launch_s = p.launch_s + cost.step_s;
    t->issue_s = p.issue_s + cost.step_s;
    t->comm_s = t->comm_exposed_s = tensor_comm(&lanes);
    t->flop = lanes.flop_forward;
    const double busy_s = t->compute_s + t->launch_s + t->comm_exposed_s;
    add_data(c, c->job.batch, busy_s, t);
    t->step_s = timed(busy_s + t->data_exposed_s, t->compute_s, lanes.sigma,
                      t->launch_s + t->data_exposed_s, lanes.tier);
    const double samples = c->job.batch * d.data;
    t->samples_per_s = rate_of(samples, t->step_s);
    if (c->graph->tokens_per_sample > 1)
        t->tokens_per_s = rate_of(samples * c->graph->tokens_per_sample, t->step_s);
    set_kinds(&lanes, t);
    set_mfu(c, t);
    set_run(c, t);
}

/* Decoding: what a step reads is weights and cache; the mean cache is the prompt and half of what
 * is generated. */
static void decode_time(tv_arena *a, const tv_case *c, tv_time *t)
{
    const tv_degrees d = tv_degrees_of(c);
    const tv_engine_cost cost = tv_engine_cost_of(c);
    t->ttft_s = t->step_s;
    t->prefill_tokens_per_s = t->tokens_per_s;
    const double cached = (double)c->job.seq + (double)c->job.gen / 2;
    const tv_lanes lanes = tv_lanes_of(a, c, c->decode, c->job.batch, cached);
    const pass p = forward_pass(&lanes, cost.graphs);
    t->compute_s = p.device_s;
    t->launch_s = p.launch_s + cost.step_s;
    t->issue_s = p.issue_s + cost.step_s;
    t->comm_s = t->comm_exposed_s = tensor_comm(&lanes);
    t->flop = lanes.flop_forward;
    t->step_s = timed(t->compute_s + t->launch_s + t->comm_exposed_s, t->compute_s, lanes.sigma,
                      t->launch_s, lanes.tier);
    t->itl_s = t->step_s;
    t->decode_tokens_per_s = rate_of(c->job.batch * d.data, t->step_s);
    t->tokens_per_s = t->decode_tokens_per_s;
    tv_fact request = t->ttft_s;
    request.v += t->itl_s.v * c->job.gen;
    request.lo += t->itl_s.lo * c->job.gen;
    request.hi += t->itl_s.hi * c->job.gen;
    t->requests_per_s = rate_of(c->job.batch * d.data, request);
    t->samples_per_s = t->requests_per_s;
    set_kinds(&lanes, t);
    set_mfu(c, t);
    set_run(c, t);
}

void tv_predict_time(tv_arena *a, const tv_case *c, const tv_memory *memory, tv_time *out)
{
    (void)memory;
    *out = (tv_time){0};
    const tv_device *device = c->machine->device;
    if (!device || !tv_known(device->mem_bytes_per_s) ||
        !tv_known(tv_predict_rate(device, c->policy.compute)))
        return; /* unknown stays unknown */
    const tv_mark mark = tv_arena_mark(a);
    if (tv_job_trains(&c->job)) {
        training_time(a, c, out);
    } else {
        forward_time(a, c, out);
        if (c->decode)
            decode_time(a, c, out);
    }
    tv_arena_rewind(a, mark);
}
