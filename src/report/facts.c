/* The facts of an estimate as one flat list: what the catalogue said, what the user stated, what
 * was assumed and what came out. Names are language-free. */
#include "report.h"

typedef struct fact_list {
    tv_named_fact *v;
    size_t n;
    size_t cap;
} fact_list;

static void add(tv_arena *a, fact_list *list, const char *name, const char *unit, tv_fact fact)
{
    if (tv_known(fact))
        *tv_push(a, list) = (tv_named_fact){name, unit, fact};
}

/* Was this field of the job assumed? The ids of defaults are option names. */
static bool assumed(const tv_job *job, const char *name)
{
    for (size_t i = 0; i < job->n_defaults; i++)
        if (tv_str_is(tv_str_of(job->defaults[i].id), name))
            return true;
    return false;
}

static void add_job(tv_arena *a, fact_list *list, const tv_job *job, const char *name, double v)
{
    if (v > 0)
        add(a, list, name, "",
            tv_fact_of(v, assumed(job, name) ? TV_ASSUMED : TV_STATED, (tv_str){0}));
}

static void add_device(tv_arena *a, fact_list *list, const tv_device *d)
{
    add(a, list, "gpu.mem_bytes", "B", d->mem_bytes);
    add(a, list, "gpu.mem_usable_bytes", "B", d->mem_usable_bytes);
    add(a, list, "gpu.mem_bytes_per_s", "B/s", d->mem_bytes_per_s);
    add(a, list, "gpu.mem_measured_bytes_per_s", "B/s", d->mem_measured_bytes_per_s);
    for (int r = 0; r < TV_RATE_COUNT; r++)
        add(a, list, tv_rate_key((tv_rate)r), "OP/s", d->rate_flops[r]);
    add(a, list, "gpu.pcie_gen", "", d->pcie_gen);
    add(a, list, "gpu.pcie_lanes", "", d->pcie_lanes);
    add(a, list, "gpu.nvlink_bytes_per_s", "B/s", d->nvlink_bytes_per_s);
    add(a, list, "gpu.nvlink_both_bytes_per_s", "B/s", d->nvlink_both_bytes_per_s);
    add(a, list, "gpu.board_w", "W", d->board_w);
}

static void add_time(tv_arena *a, fact_list *list, const tv_time *t)
{
    add(a, list, "time.step_s", "s", t->step_s);
    add(a, list, "time.samples_per_s", "1/s", t->samples_per_s);
    add(a, list, "time.tokens_per_s", "1/s", t->tokens_per_s);
    add(a, list, "time.mfu", "", t->mfu);
    add(a, list, "time.ttft_s", "s", t->ttft_s);
    add(a, list, "time.itl_s", "s", t->itl_s);
    add(a, list, "time.prefill_tokens_per_s", "1/s", t->prefill_tokens_per_s);
    add(a, list, "time.decode_tokens_per_s", "1/s", t->decode_tokens_per_s);
    add(a, list, "time.requests_per_s", "1/s", t->requests_per_s);
}

static void add_cost(tv_arena *a, fact_list *list, const tv_cost *c)
{
    const char *unit = c->currency.n ? tv_cstr(a, c->currency) : "";
    add(a, list, "cost.per_hour", unit, c->per_hour);
    add(a, list, "cost.spot_per_hour", unit, c->spot_per_hour);
    add(a, list, "cost.per_run", unit, c->per_run);
    add(a, list, "cost.buy", unit, c->buy);
    add(a, list, "cost.energy_per_year", unit, c->energy_per_year);
    add(a, list, "cost.total_year", unit, c->total_year);
}

static void add_model(tv_arena *a, fact_list *list, const tv_model *m)
{
    if (m->params > 0)
        add(a, list, "model.params", "", tv_fact_of(m->params, TV_COMPUTED, m->source));
    if (m->stated_params > 0)
        add(a, list, "model.stated_params", "", tv_fact_of(m->stated_params, TV_STATED, m->source));
    if (m->stored_bytes > 0)
        add(a, list, "model.weights_bytes", "B",
            tv_fact_of(m->stored_bytes, m->stored_exact ? TV_STATED : TV_COMPUTED, m->source));
}

const tv_named_fact *tv_report_facts(tv_arena *a, const tv_estimate *est, size_t *n)
{
    fact_list list = {0};
    const tv_job *job = est->job;
    if (est->model)
        add_model(a, &list, est->model);
    add_job(a, &list, job, "batch", job->batch);
    add_job(a, &list, job, "accum", job->accum);
    add_job(a, &list, job, "seq", job->seq);
    add_job(a, &list, job, "gen", job->gen);
    add_job(a, &list, job, "samples", job->samples);
    add_job(a, &list, job, "epochs", job->epochs);
    add_job(a, &list, job, "sample-bytes", job->sample_bytes);
    add_job(a, &list, job, "lora-rank", job->lora_rank);
    add_device(a, &list, est->machine->device);
    add(a, &list, "link.intra_bytes_per_s", "B/s", est->machine->intra.bytes_per_s);
    add(a, &list, "link.inter_bytes_per_s", "B/s", est->machine->inter.bytes_per_s);
    if (est->machine->disk) {
        add(a, &list, "disk.read_bytes_per_s", "B/s", est->machine->disk->read_bytes_per_s);
        add(a, &list, "disk.read_iops", "1/s", est->machine->disk->read_iops);
    }
    add(a, &list, "memory.total_bytes", "B",
        (tv_fact){.v = est->memory.total_bytes,
                  .lo = est->memory.low_bytes,
                  .hi = est->memory.high_bytes,
                  .origin = TV_COMPUTED,
                  .source = TV_S("docs/model.md")});
    add_time(a, &list, &est->time);
    add_cost(a, &list, &est->cost);
    *n = list.n;
    return list.v;
}
