/* What a card, or an amount of memory, is enough for: the reference jobs of reach.h are reckoned as
 * `size` does and set against it. */
#include "gpus.h"

#include <math.h>

#include "family/family.h"
#include "predict/predict.h"
#include "reach.h"
#include "read/builtin.h"

static const tv_err *model_of(tv_gpus_run *g, const char *name, const tv_model **model)
{
    const tv_source *source = NULL;
    TV_TRY(tv_builtin_find(g->r->a, tv_str_of(name), &source));
    if (!source)
        return TV_FAIL(g->r->a, TV_BUG, "held.model", N_("no built-in model \"{name}\""),
                       tv_arg_str("name", tv_str_of(name)));
    return tv_family_model(g->r->a, source, model);
}

/* The ledger's own bounds against what is there. */
static tv_verdict verdict_of(const tv_held_job *job)
{
    if (job->high_bytes <= job->have_bytes)
        return TV_FITS;
    return job->low_bytes <= job->have_bytes ? TV_TIGHT : TV_NO_FIT;
}

static void reckon(tv_gpus_run *g, tv_arena *scratch, const tv_rung *u, const tv_model *model,
                   const tv_machine *machine, tv_held_job *out)
{
    tv_job job;
    tv_job_unsaid(&job);
    job.task = u->task;
    job.precision = u->precision;
    job.batch = u->batch;
    job.seq = u->seq;
    out->model = tv_str_of(u->model);
    out->job = u;
    tv_case *c = tv_new(g->r->a, tv_case, 1);
    tv_memory memory = {0};
    if (tv_predict_case(g->r->a, model, &job, machine, NULL, c)) {
        out->blocked = N_("the card lacks its number format");
        return;
    }
    tv_predict_memory(g->r->a, scratch, c, &memory);
    out->need_bytes = memory.total_bytes;
    out->low_bytes = memory.low_bytes;
    out->high_bytes = memory.high_bytes;
    out->verdict = verdict_of(out);
}

const tv_err *tv_gpus_held(tv_gpus_run *g, const tv_device *d, double have_bytes,
                           const tv_held_job **jobs, size_t *n)
{
    tv_arena *scratch = tv_arena_child(g->r->a, TV_LIMIT_ARENA_BYTES);
    size_t count = 0;
    while (tv_reach_ladder[count].model)
        count++;
    tv_held_job *v = tv_new(g->r->a, tv_held_job, count);
    const tv_machine machine = {.device = d, .gpus = 1, .nodes = 1};
    for (size_t i = 0; i < count; i++) {
        const tv_model *model = NULL;
        TV_TRY(model_of(g, tv_reach_ladder[i].model, &model));
        v[i] = (tv_held_job){.have_bytes = have_bytes};
        reckon(g, scratch, &tv_reach_ladder[i], model, &machine, &v[i]);
    }
    *jobs = v;
    *n = count;
    return NULL;
}

tv_str tv_held_words(tv_arena *a, const tv_held_job *j)
{
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, tv_task_name(j->job->task));
    if (j->job->precision) {
        tv_putc(&b, ' ');
        tv_puts(&b, tv_precision_name(j->job->precision));
    }
    tv_puts(&b, ", b");
    tv_put_u64(&b, j->job->batch);
    if (j->job->seq) {
        tv_puts(&b, " s");
        tv_put_u64(&b, j->job->seq);
    }
    return tv_buf_str(&b);
}

void tv_json_held(const tv_gpus_run *g, tv_json_out *w, const tv_held_job *jobs, size_t n)
{
    static const char *const words[] = {"unknown", "fits", "tight", "no"};
    tv_json_begin(w, '[');
    for (size_t i = 0; i < n; i++) {
        const tv_held_job *j = &jobs[i];
        tv_json_begin(w, '{');
        tv_json_key(w, "model");
        tv_json_put_str(w, j->model);
        tv_json_key(w, "job");
        tv_json_put_str(w, tv_held_words(g->r->a, j));
        tv_json_key(w, "need_bytes");
        tv_json_put_num(w, j->blocked ? (double)NAN : j->need_bytes);
        tv_json_key(w, "margin_bytes");
        tv_json_put_num(w, j->blocked ? (double)NAN : j->have_bytes - j->need_bytes);
        tv_json_key(w, "verdict");
        tv_json_put_str(w, tv_str_of(j->blocked ? "no" : words[j->verdict]));
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}
