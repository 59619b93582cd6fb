/* Moments of a training's log -> facts. Medians, because the first moments hold start-up costs and
 * some hold a checkpoint. */
#include "train_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tv_moment tv_moment_none(size_t line)
{
    const double none = (double)NAN;
    return (tv_moment){none, none, none, none, none, none, none, none, none, line};
}

bool tv_moment_any(const tv_moment *m)
{
    return !isnan(m->data_s) || !isnan(m->step_s) || !isnan(m->samples_per_s) ||
           !isnan(m->tokens_per_s) || !isnan(m->mem_bytes);
}

void tv_train_add(tv_train_run *run, const tv_moment *m)
{
    const size_t stride = run->stride ? run->stride : 1;
    run->last = *m;
    if (run->seen++ % stride)
        return;
    if (run->n == TV_MOST_MOMENTS) {
        for (size_t i = 0; i < TV_MOST_MOMENTS / 2; i++)
            run->v[i] = run->v[2 * i];
        run->n = TV_MOST_MOMENTS / 2;
        run->stride = 2 * stride;
        if ((run->seen - 1) % run->stride)
            return;
    }
    run->v[run->n++] = *m;
}

bool tv_train_restarts(const tv_train_run *run, const tv_moment *m)
{
    const tv_moment *last = &run->last;
    if (!run->seen)
        return false;
    if (m->epoch < last->epoch - 1)
        return true;
    /* Ranks that write into one file are a little out of step: that is no new run. */
    return m->epoch <= last->epoch && last->step >= 40 && m->step < last->step / 4;
}

/* ---- sums ---- */

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

typedef double pick(const tv_moment *m);

static double data_of(const tv_moment *m)
{
    return m->data_s;
}

static double step_of(const tv_moment *m)
{
    return m->step_s;
}

static double comm_of(const tv_moment *m)
{
    return m->comm_s;
}

static double samples_of(const tv_moment *m)
{
    return m->samples_per_s;
}

static double tokens_of(const tv_moment *m)
{
    return m->tokens_per_s;
}

static double batch_of(const tv_moment *m)
{
    return m->batch;
}

/* Of the moments from..to; the very first is left out where there are more. */
static double median(const tv_train_run *run, pick *of, double epoch)
{
    double v[TV_MOST_MOMENTS];
    size_t n = 0, skipped = 0;
    for (size_t i = 0; i < run->n; i++) {
        const double x = of(&run->v[i]);
        const bool other = !isnan(epoch) && !(fabs(run->v[i].epoch - epoch) < 0.5);
        if (isnan(x) || other)
            continue;
        v[n++] = x;
    }
    if (!n)
        return (double)NAN;
    if (n > 2 && isnan(epoch))
        skipped = 1;
    qsort(v + skipped, n - skipped, sizeof *v, by_value);
    const size_t k = n - skipped;
    return k % 2 ? v[skipped + k / 2] : (v[skipped + k / 2 - 1] + v[skipped + k / 2]) / 2;
}

/* The sum of waits over the sum of steps: loaders deliver several batches at once, so that a median
 * wait of nothing hides long ones. */
static double data_share(const tv_train_run *run, double epoch)
{
    double data_s = 0, step_s = 0;
    size_t n = 0;
    for (size_t i = 0; i < run->n; i++) {
        const tv_moment *m = &run->v[i];
        const bool other = !isnan(epoch) && !(fabs(m->epoch - epoch) < 0.5);
        if (isnan(m->data_s) || !(m->step_s > 0) || other)
            continue;
        if (n++ == 0 && run->n > 2 && isnan(epoch))
            continue;
        data_s += m->data_s;
        step_s += m->step_s;
    }
    if (step_s > 0)
        return data_s / step_s;
    /* Megatron prints the two in lines of their own. */
    return median(run, data_of, epoch) / median(run, step_of, epoch);
}

static void put(tv_arena *a, tv_note *facts, const char *key, double v)
{
    if (!isnan(v))
        (void)tv_note_num(a, facts, key, v);
}

static const tv_moment *first_with(const tv_train_run *run, pick *of)
{
    for (size_t i = 0; i < run->n; i++)
        if (!isnan(of(&run->v[i])))
            return &run->v[i];
    return NULL;
}

static void note_times(tv_reading *r, tv_note *facts, const tv_train_run *run)
{
    tv_arena *a = r->a;
    const double all = (double)NAN;
    const double step_s = median(run, step_of, all), data_s = median(run, data_of, all);
    put(a, facts, "step_s", step_s);
    const tv_moment *first = first_with(run, data_of);
    if (first) {
        /* The line with the longest wait of the steady part is the one to show. */
        const tv_moment *longest = first;
        for (size_t i = 1; i < run->n; i++)
            if (run->v[i].data_s > longest->data_s || longest == first)
                longest = isnan(run->v[i].data_s) ? longest : &run->v[i];
        (void)tv_at(r, tv_note_num(a, facts, "data_s", data_s), longest->line);
        put(a, facts, "data_frac", data_share(run, all));
    }
    put(a, facts, "comm_s", median(run, comm_of, all));
    put(a, facts, "samples_per_s", median(run, samples_of, all));
    put(a, facts, "tokens_per_s", median(run, tokens_of, all));
    put(a, facts, "batch", median(run, batch_of, all));
    if (strcmp(run->framework, "paddle") == 0 && first) {
        put(a, facts, "reader_cost_avg_s", data_s);
        put(a, facts, "batch_cost_avg_s", step_s);
        put(a, facts, "ips_avg", median(run, samples_of, all));
        tv_note *ratio = tv_note_num(a, facts, "reader_ratio_frac", data_share(run, all));
        (void)tv_note_place(a, ratio, tv_noted(facts, "data_s")->line,
                            tv_noted(facts, "data_s")->text);
    }
}

/* The first epochs one by one: a second one that waits as long as the first gets nothing from the
 * page cache. */
static void note_epochs(tv_reading *r, tv_note *facts, const tv_train_run *run)
{
    enum { MOST_EPOCHS = 4 };
    double seen[MOST_EPOCHS];
    size_t n = 0;
    for (size_t i = 0; i < run->n && n < MOST_EPOCHS; i++) {
        const double epoch = floor(run->v[i].epoch);
        if (!isnan(epoch) && (!n || epoch > seen[n - 1] + 0.5))
            seen[n++] = epoch;
    }
    if (n < 2)
        return;
    tv_note *list = tv_note_list(r->a, facts, "epochs");
    for (size_t i = 0; i < n; i++) {
        tv_note *one = tv_note_map(r->a, list, NULL);
        put(r->a, one, "epoch", seen[i]);
        put(r->a, one, "data_frac", data_share(run, seen[i]));
        put(r->a, one, "step_s", median(run, step_of, seen[i]));
    }
}

/* Growth is looked for behind the first tenth: a run fills its pools first. */
static void note_memory(tv_reading *r, tv_note *facts, const tv_train_run *run)
{
    tv_arena *a = r->a;
    const tv_moment *first = NULL, *last = NULL, *middle = NULL;
    size_t n = 0, rises = 0;
    double before = (double)NAN, most = 0;
    for (size_t i = run->n / 10; i < run->n; i++) {
        const tv_moment *m = &run->v[i];
        if (isnan(m->mem_bytes))
            continue;
        first = first ? first : m;
        last = m;
        if (i <= (run->n / 10 + run->n) / 2)
            middle = m;
        n++;
        rises += m->mem_bytes > before;
        before = m->mem_bytes;
        most = fmax(most, m->mem_bytes);
    }
    if (!n)
        return;
    const double grown = last->mem_bytes - first->mem_bytes;
    (void)tv_at(r, tv_note_num(a, facts, "mem_first_bytes", first->mem_bytes), first->line);
    (void)tv_at(r, tv_note_num(a, facts, "mem_last_bytes", last->mem_bytes), last->line);
    put(a, facts, "mem_most_bytes", most);
    (void)tv_note_bool(a, facts, "mem_is_peak", run->mem_is_peak);
    (void)tv_note_num(a, facts, "mem_moments", (double)n);
    if (n < 2)
        return;
    put(a, facts, "mem_rise_frac", (double)rises / (double)(n - 1));
    if (last->step > first->step)
        put(a, facts, "mem_growth_bytes_per_step", grown / (last->step - first->step));
    const bool goes_on = middle && last->mem_bytes - middle->mem_bytes >= 0.25 * grown;
    (void)tv_note_bool(a, facts, "mem_growing",
                       n >= 8 && grown > 0.1 * first->mem_bytes && 2 * rises >= n && goes_on);
}

void tv_train_end(tv_reading *r, const tv_train_run *run)
{
    if (!run->n)
        return;
    tv_arena *a = r->a;
    tv_sighting *s = tv_see(r, "train-log", run->v[0].line);
    tv_note *facts = &s->facts;
    (void)tv_note_str(a, facts, "framework", tv_str_of(run->framework));
    (void)tv_note_str(a, facts, "dialect", tv_str_of(run->dialect));
    (void)tv_note_num(a, facts, "moments", (double)run->seen);
    put(a, facts, "gpus", run->gpus);
    note_times(r, facts, run);
    note_epochs(r, facts, run);
    note_memory(r, facts, run);
}
