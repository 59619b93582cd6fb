/* `size` as a page: first the answer, the three grades, what holds it back and what to do next;
 * then the ledger; with --explain every line with its formula and every fact with its source. */
#include "report.h"

#include <math.h>

#include "base/message.h"
#include "base/unit.h"

#define BAR_CELLS 24
/* A gain beyond this says only that nothing else takes time. */
#define WHOLE_STEP 2.0

/* ---- small pieces ---- */

typedef void (*put_value)(tv_buf *b, double v);

static tv_str shown(tv_arena *a, put_value put, double v)
{
    tv_buf b = tv_buf_in(a);
    put(&b, v);
    return tv_buf_str(&b);
}

static void put_two(tv_buf *b, double v)
{
    tv_put_short(b, v, 3);
}

/* "12.3 ms (11.0 ms .. 14.1 ms)"; the interval only where there is one. */
static tv_str range(tv_arena *a, put_value put, tv_fact f)
{
    tv_buf b = tv_buf_in(a);
    put(&b, f.v);
    if (f.hi > f.lo) {
        tv_puts(&b, " (");
        put(&b, f.lo);
        tv_puts(&b, " .. ");
        put(&b, f.hi);
        tv_putc(&b, ')');
    }
    return tv_buf_str(&b);
}

static tv_str say(const tv_page *page, const char *msgid)
{
    return tv_str_of(tv_message(page->lang, msgid));
}

static tv_str text(const tv_page *page, tv_text t)
{
    return tv_text_in(page->b->a, page->lang, t);
}

/* ---- the head: what is run on what ---- */

static void join(tv_buf *b, tv_str s)
{
    if (s.n == 0)
        return;
    if (b->n)
        tv_puts(b, ", ");
    tv_put(b, s);
}

static void join_count(tv_buf *b, const char *word, double n)
{
    if (!(n > 0))
        return;
    join(b, tv_str_of(word));
    tv_putc(b, ' ');
    tv_put_double(b, n);
}

static void join_parallel(tv_buf *b, const tv_parallel *p)
{
    join_count(b, "tp", p->tp > 1 ? p->tp : 0);
    join_count(b, "pp", p->pp > 1 ? p->pp : 0);
    join_count(b, "cp", p->cp > 1 ? p->cp : 0);
    join_count(b, "ep", p->ep > 1 ? p->ep : 0);
}

/* The job in the interface's own words, so that it can be typed again. */
tv_str tv_job_line(tv_arena *a, const tv_estimate *est)
{
    const tv_job *job = est->job;
    const bool trains = tv_job_trains(job);
    tv_buf b = tv_buf_in(a);
    join(&b, tv_str_of(tv_task_name(job->task)));
    join(&b, tv_str_of(tv_precision_name(est->policy.precision ? est->policy.precision
                                                               : job->precision)));
    join_count(&b, "batch", job->batch);
    join_count(&b, "accum", job->accum > 1 ? job->accum : 0);
    join_count(&b, "seq", job->seq);
    join_count(&b, "gen", trains ? 0 : job->gen);
    if (job->image_h) {
        join_count(&b, "image", job->image_h);
        tv_putc(&b, 'x');
        tv_put_u64(&b, job->image_w);
    }
    if (trains) {
        join(&b, tv_str_of(tv_optimizer_name(job->optimizer)));
        join_count(&b, "lora-rank", tv_job_adapts(job) ? job->lora_rank : 0);
        if (job->recompute != TV_RECOMPUTE_NONE)
            join(&b,
                 tv_str_join(a, TV_S("recompute "), tv_str_of(tv_recompute_name(job->recompute))));
        if (job->loss != TV_LOSS_STANDARD)
            join(&b, tv_str_join(a, TV_S("loss "), tv_str_of(tv_loss_name(job->loss))));
        if (est->machine->gpus > 1 || est->machine->nodes > 1)
            join(&b, tv_str_of(tv_strategy_name(job->strategy)));
    }
    join_parallel(&b, &job->parallel);
    join(&b, tv_str_of(tv_framework_name(job->framework)));
    if (job->engine != TV_ENGINE_EAGER)
        join(&b, tv_str_of(tv_engine_name(job->engine)));
    return tv_buf_str(&b);
}

tv_str tv_machine_line(tv_arena *a, const tv_machine *m)
{
    tv_buf b = tv_buf_in(a);
    if (m->nodes > 1) {
        tv_put_u64(&b, m->nodes);
        tv_puts(&b, " × ");
    }
    tv_put_u64(&b, m->gpus ? m->gpus : 1);
    tv_puts(&b, " × ");
    tv_put(&b, m->device->name);
    return tv_buf_str(&b);
}

static void put_title(const tv_page *page, const tv_size_view *view)
{
    tv_arena *a = page->b->a;
    const tv_estimate *est = view->estimate;
    tv_str machine = tv_machine_line(a, est->machine);
    if (view->group)
        machine = view->group->name;
    else if (view->n_members > 1)
        machine = text(page, TV_TEXT(a, "size.several", N_("{n} cards, {first} filled most"),
                                     tv_arg_num("n", TV_ARG_NUMBER, (double)view->n_members),
                                     tv_arg_str("first", est->machine->device->name)));
    tv_page_wrap(
        page, TV_BOLD, 0,
        text(page, TV_TEXT(a, "size.title", N_("{model} ({params} parameters) on {machine}"),
                           tv_arg_str("model", est->model->name),
                           tv_arg_str("params", shown(a, tv_put_params, est->model->params)),
                           tv_arg_str("machine", machine))));
    tv_page_wrap(page, TV_DIM, 0, tv_job_line(a, est));
}

/* ---- the answer ---- */

static tv_text verdict_text(tv_arena *a, const tv_memory *m)
{
    const tv_arg args[] = {
        tv_arg_num("need", TV_ARG_MEMORY, m->total_bytes),
        tv_arg_num("low", TV_ARG_MEMORY, m->low_bytes),
        tv_arg_num("high", TV_ARG_MEMORY, m->high_bytes),
        tv_arg_num("have", TV_ARG_MEMORY, m->capacity_bytes),
        tv_arg_num("missing", TV_ARG_MEMORY, fabs(m->total_bytes - m->capacity_bytes)),
    };
    static const char *const patterns[] = {
        [TV_VERDICT_UNKNOWN] =
            N_("needs {need} ({low} .. {high}) per card; the card's memory is unknown"),
        [TV_FITS] = N_("fits: needs {need} ({low} .. {high}) of {have} per card"),
        [TV_TIGHT] = N_("tight: needs {need} ({low} .. {high}) of {have} per card"),
        [TV_NO_FIT] = N_("does not fit: needs {need} ({low} .. {high}) per card, there are {have}"),
    };
    return tv_text_make(a, "size.verdict", patterns[m->verdict], args, sizeof args / sizeof *args);
}

static tv_style verdict_style(tv_verdict v)
{
    static const tv_style styles[] = {TV_PLAIN, TV_GREEN, TV_YELLOW, TV_RED};
    return styles[v];
}

static void put_verdict(const tv_page *page, const tv_memory *m)
{
    tv_arena *a = page->b->a;
    tv_putc(page->b, '\n');
    tv_page_text(page, verdict_style(m->verdict), 2, verdict_text(a, m));
    if (!(m->capacity_bytes > 0))
        return;
    const double share = m->total_bytes / m->capacity_bytes;
    tv_puts(page->b, "  ");
    tv_page_put(page, verdict_style(m->verdict), tv_bar(a, share > 1 ? 1 : share, 40));
    const double cells = share > 1 ? 40 : ceil(share * 40);
    tv_page_put(
        page, TV_DIM,
        tv_str_take(TV_S("········································"), (size_t)(40 - cells) * 2));
    tv_putc(page->b, ' ');
    tv_put_percent(page->b, share);
    tv_putc(page->b, '\n');
}

static void put_envelope(const tv_page *page, const tv_size_view *view)
{
    tv_arena *a = page->b->a;
    static const tv_column columns[] = {
        {N_("card"), false, false},    {N_("memory"), true, false}, {N_("of"), true, false},
        {N_("verdict"), false, false}, {N_("step"), true, false},
    };
    static const char *const verdicts[] = {N_("unknown"), N_("fits"), N_("tight"), N_("no")};
    tv_table t = {.columns = columns, .n_columns = 5};
    for (size_t i = 0; i < view->n_members; i++) {
        const tv_estimate *e = view->members[i];
        const bool timed = tv_known(e->time.step_s);
        tv_table_add(a, &t, TV_PLAIN, e->machine->device->name);
        tv_table_add(a, &t, TV_PLAIN, shown(a, tv_put_memory, e->memory.total_bytes));
        tv_table_add(a, &t, TV_PLAIN, shown(a, tv_put_memory, e->memory.capacity_bytes));
        tv_table_add(a, &t, verdict_style(e->memory.verdict),
                     say(page, verdicts[e->memory.verdict]));
        tv_table_add(a, &t, TV_PLAIN,
                     timed ? shown(a, tv_put_seconds, e->time.step_s.v) : say(page, N_("unknown")));
    }
    tv_page_head(page, view->group ? N_("the name stands for several cards") : N_("card by card"));
    tv_table_put(page, &t, 2);
}

/* ---- the three grades, the bottleneck, the next step ---- */

static void add_grade(const tv_page *page, tv_table *t, const char *label, tv_grade grade,
                      tv_text why)
{
    static const char *const words[] = {N_("unknown"), N_("good"), N_("fair"), N_("poor")};
    static const tv_style styles[] = {TV_DIM, TV_GREEN, TV_YELLOW, TV_RED};
    tv_arena *a = page->b->a;
    tv_table_add(a, t, TV_PLAIN, say(page, label));
    tv_table_add(a, t, styles[grade], say(page, words[grade]));
    tv_table_add(a, t, TV_PLAIN, text(page, why));
}

const char *tv_bound_words(tv_bound bound)
{
    static const char *const words[TV_BOUND_COUNT] = {
        [TV_BOUND_UNKNOWN] = N_("unknown"),
        [TV_BOUND_COMPUTE] = N_("compute"),
        [TV_BOUND_MEMORY] = N_("memory bandwidth"),
        [TV_BOUND_LAUNCH] = N_("kernel launches"),
        [TV_BOUND_COMMUNICATION] = N_("communication"),
        [TV_BOUND_STORAGE] = N_("storage"),
        [TV_BOUND_DECODE] = N_("decoding the samples"),
        [TV_BOUND_HOST_COPY] = N_("copies from the host"),
    };
    return words[bound];
}

static tv_text bound_text(tv_arena *a, const tv_estimate *est)
{
    const tv_balance *b = &est->balance;
    if (b->bottleneck == TV_BOUND_UNKNOWN)
        return TV_TEXT0("bound.unknown", N_("not enough is known about the card to say"));
    if (b->gain_if_removed >= WHOLE_STEP)
        return TV_TEXT0("bound.whole", N_("it is the step: all else hides behind it"));
    return TV_TEXT(a, "bound.gain", N_("if it cost nothing, {gain} more work per second"),
                   tv_arg_num("gain", TV_ARG_RATIO, b->gain_if_removed));
}

static tv_text next_step(const tv_estimate *est, const tv_remedy *remedies, size_t n)
{
    const tv_balance *b = &est->balance;
    if (est->memory.verdict == TV_NO_FIT) {
        for (size_t i = 0; i < n; i++)
            if (remedies[i].fits)
                return remedies[i].what;
        return TV_TEXT0("next.none",
                        N_("no single change makes it fit; a larger card or more of them"));
    }
    return b->n_advice ? b->advice[0] : TV_TEXT0("next.run", N_("nothing to change: run it"));
}

void tv_page_grades(const tv_page *page, const tv_estimate *est, const tv_remedy *remedies,
                    size_t n)
{
    tv_arena *a = page->b->a;
    static const tv_column columns[] = {
        {NULL, false, false}, {NULL, false, false}, {NULL, false, true}};
    tv_table t = {.columns = columns, .n_columns = 3};
    const tv_grades *g = &est->grades;
    add_grade(page, &t, N_("VRAM"), g->vram, g->vram_text);
    add_grade(page, &t, N_("compute density"), g->density, g->density_text);
    add_grade(page, &t, N_("data and IO"), g->io, g->io_text);
    tv_table_add(a, &t, TV_PLAIN, say(page, N_("bottleneck")));
    tv_table_add(a, &t, TV_BOLD, say(page, tv_bound_words(est->balance.bottleneck)));
    tv_table_add(a, &t, TV_PLAIN, text(page, bound_text(a, est)));
    tv_putc(page->b, '\n');
    tv_table_put(page, &t, 2);
    const tv_text next = next_step(est, remedies, n);
    tv_page_text(
        page, TV_PLAIN, 2,
        TV_TEXT(a, "size.next", N_("next step: {step}"), tv_arg_str("step", text(page, next))));
}

/* ---- the ledger ---- */

typedef struct ledger_row {
    const char *name;
    double bytes;
    bool always;
} ledger_row;

static size_t ledger_rows(const tv_memory *m, ledger_row *rows)
{
    const ledger_row all[] = {
        {tv_term_label(TV_TERM_WEIGHTS), m->term_bytes[TV_TERM_WEIGHTS], true},
        {tv_term_label(TV_TERM_GRADIENTS), m->term_bytes[TV_TERM_GRADIENTS], true},
        {tv_term_label(TV_TERM_OPTIMIZER), m->term_bytes[TV_TERM_OPTIMIZER], true},
        {tv_term_label(TV_TERM_ACTIVATIONS), m->term_bytes[TV_TERM_ACTIVATIONS], true},
        {tv_term_label(TV_TERM_LOGITS), m->term_bytes[TV_TERM_LOGITS], false},
        {tv_term_label(TV_TERM_KV), m->term_bytes[TV_TERM_KV], false},
        {tv_term_label(TV_TERM_COMM_BUFFERS), m->term_bytes[TV_TERM_COMM_BUFFERS], false},
        {tv_term_label(TV_TERM_TEMPORARIES), m->term_bytes[TV_TERM_TEMPORARIES], false},
        {tv_term_label(TV_TERM_WORKSPACE), m->term_bytes[TV_TERM_WORKSPACE], true},
        {N_("fragmentation"), m->fragmentation_bytes, true},
        {N_("driver context"), m->context_bytes, true},
        {N_("NCCL"), m->nccl_bytes, false},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].always || all[i].bytes > 0)
            rows[n++] = all[i];
    return n;
}

static void add_amount(const tv_page *page, tv_table *t, tv_style style, const char *name,
                       double bytes, double total)
{
    tv_arena *a = page->b->a;
    const double share = total > 0 ? bytes / total : 0;
    tv_table_add(a, t, style, say(page, name));
    tv_table_add(a, t, style, bytes > 0 ? shown(a, tv_put_memory, bytes) : TV_S("0"));
    tv_table_add(a, t, style, shown(a, tv_put_percent, share));
    tv_table_add(a, t, style, style == TV_BOLD ? (tv_str){0} : tv_bar(a, share, BAR_CELLS));
}

static void put_ledger(const tv_page *page, const tv_memory *m)
{
    static const tv_column columns[] = {
        {NULL, false, false}, {NULL, true, false}, {NULL, true, false}, {NULL, false, false}};
    tv_table t = {.columns = columns, .n_columns = 4};
    ledger_row rows[16];
    const size_t n = ledger_rows(m, rows);
    for (size_t i = 0; i < n; i++)
        add_amount(page, &t, TV_PLAIN, rows[i].name, rows[i].bytes, m->total_bytes);
    add_amount(page, &t, TV_BOLD, N_("total per card"), m->total_bytes, m->total_bytes);
    tv_page_head(page, N_("memory at the peak"));
    if (m->peak_at.msgid)
        tv_page_text(page, TV_DIM, 2, m->peak_at);
    tv_table_put(page, &t, 2);
}

/* ---- room, time, cost ---- */

static void join_amount(tv_buf *b, tv_arena *a, tv_lang lang, const char *msgid, double v)
{
    if (!(v > 0))
        return;
    join(b, tv_text_in(a, lang, TV_TEXT(a, "room", msgid, tv_arg_num("n", TV_ARG_COUNT, v))));
}

static void put_room(const tv_page *page, const tv_memory *m)
{
    tv_arena *a = page->b->a;
    tv_buf b = tv_buf_in(a);
    join_amount(&b, a, page->lang, N_("largest batch {n}"), m->max_batch);
    join_amount(&b, a, page->lang, N_("longest sequence {n}"), m->max_seq);
    join_amount(&b, a, page->lang, N_("{n} tokens of cache"), m->kv_tokens);
    join_amount(&b, a, page->lang, N_("{n} requests at once"), floor(m->concurrent));
    if (b.n)
        tv_page_wrap(page, TV_PLAIN, 2, tv_buf_str(&b));
}

static void add_part(const tv_page *page, tv_table *t, const char *name, double s, double step)
{
    tv_arena *a = page->b->a;
    if (!(s > 0))
        return;
    tv_table_add(a, t, TV_PLAIN, say(page, name));
    tv_table_add(a, t, TV_PLAIN, shown(a, tv_put_seconds, s));
    tv_table_add(a, t, TV_PLAIN, shown(a, tv_put_percent, s / step));
    tv_table_add(a, t, TV_PLAIN, tv_bar(a, s / step, BAR_CELLS));
}

static void add_rate(const tv_page *page, tv_table *t, const char *name, put_value put, tv_fact f)
{
    tv_arena *a = page->b->a;
    if (!tv_known(f))
        return;
    tv_table_add(a, t, TV_PLAIN, say(page, name));
    tv_table_add(a, t, TV_PLAIN, range(a, put, f));
}

static void put_rates(const tv_page *page, const tv_time *time)
{
    static const tv_column columns[] = {{NULL, false, false}, {NULL, false, false}};
    tv_table t = {.columns = columns, .n_columns = 2};
    add_rate(page, &t, N_("samples per second"), put_two, time->samples_per_s);
    add_rate(page, &t, N_("tokens per second"), put_two, time->tokens_per_s);
    add_rate(page, &t, N_("model FLOPs used"), tv_put_percent, time->mfu);
    add_rate(page, &t, N_("first token"), tv_put_seconds, time->ttft_s);
    add_rate(page, &t, N_("each further token"), tv_put_seconds, time->itl_s);
    add_rate(page, &t, N_("prompt tokens per second"), put_two, time->prefill_tokens_per_s);
    add_rate(page, &t, N_("generated tokens per second"), put_two, time->decode_tokens_per_s);
    add_rate(page, &t, N_("requests per second"), put_two, time->requests_per_s);
    if (time->epoch_s > 0)
        add_rate(page, &t, N_("one epoch"), tv_put_seconds,
                 tv_fact_of(time->epoch_s, TV_COMPUTED, (tv_str){0}));
    if (time->run_s > 0)
        add_rate(page, &t, N_("the whole run"), tv_put_seconds,
                 tv_fact_of(time->run_s, TV_COMPUTED, (tv_str){0}));
    tv_table_put(page, &t, 2);
}

static void put_time(const tv_page *page, const tv_estimate *est)
{
    tv_arena *a = page->b->a;
    const tv_time *time = &est->time;
    tv_page_head(page, N_("time per step"));
    if (!tv_known(time->step_s)) {
        tv_page_wrap(page, TV_DIM, 2,
                     say(page, N_("unknown: no rate or bandwidth is known for this card")));
        return;
    }
    const double step = time->step_s.v;
    tv_page_wrap(page, TV_BOLD, 2, range(a, tv_put_seconds, time->step_s));
    static const tv_column columns[] = {
        {NULL, false, false}, {NULL, true, false}, {NULL, true, false}, {NULL, false, false}};
    tv_table t = {.columns = columns, .n_columns = 4};
    add_part(page, &t, N_("kernels"), time->compute_s, step);
    add_part(page, &t, N_("waiting for launches"), time->launch_s, step);
    add_part(page, &t, N_("optimizer step"), time->optimizer_s, step);
    add_part(page, &t, N_("communication not hidden"), time->comm_exposed_s, step);
    add_part(page, &t, N_("data not hidden"), time->data_exposed_s, step);
    tv_table_put(page, &t, 2);
    put_rates(page, time);
}

static tv_text money(tv_arena *a, const tv_cost *c, const char *msgid, tv_fact f)
{
    tv_buf b = tv_buf_in(a);
    tv_put_fixed(&b, f.v, fabs(f.v) < 100 ? 2 : 0);
    return TV_TEXT(a, "cost.amount", msgid, tv_arg_str("amount", tv_buf_str(&b)),
                   tv_arg_str("currency", c->currency));
}

void tv_page_cost(const tv_page *page, const tv_cost *c)
{
    const struct {
        const char *msgid;
        tv_fact fact;
    } rows[] = {
        {N_("{amount} {currency} per hour"), c->per_hour},
        {N_("{amount} {currency} per hour on spot"), c->spot_per_hour},
        {N_("{amount} {currency} per run"), c->per_run},
        {N_("{amount} {currency} to buy the cards"), c->buy},
        {N_("{amount} {currency} a year"), c->total_year},
    };
    tv_arena *a = page->b->a;
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tv_known(rows[i].fact))
            join(&b, text(page, money(a, c, rows[i].msgid, rows[i].fact)));
    if (b.n == 0)
        return;
    tv_page_head(page, N_("cost"));
    tv_page_wrap(page, TV_PLAIN, 2, tv_buf_str(&b));
    if (c->price_date.n)
        tv_page_text(page, c->stale ? TV_YELLOW : TV_DIM, 2,
                     TV_TEXT(a, "cost.date",
                             c->stale ? N_("price of {date}, more than 90 days old: {source}")
                                      : N_("price of {date}: {source}"),
                             tv_arg_str("date", c->price_date),
                             tv_arg_str("source", c->price_source)));
    for (size_t i = 0; i < c->n_notes; i++)
        tv_page_text(page, TV_DIM, 2, c->notes[i]);
}

/* ---- lists ---- */

void tv_page_remedies(const tv_page *page, const tv_remedy *v, size_t n, tv_str card)
{
    static const tv_column columns[] = {{N_("change"), false, true},
                                        {N_("memory"), true, false},
                                        {N_("step time"), true, false},
                                        {N_("fits"), false, false}};
    tv_arena *a = page->b->a;
    tv_table t = {.columns = columns, .n_columns = 4};
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        tv_buf ratio = tv_buf_in(a);
        tv_puts(&ratio, "× ");
        tv_put_short(&ratio, v[i].slowdown, 3);
        tv_table_add(a, &t, TV_PLAIN, text(page, v[i].what));
        tv_table_add(a, &t, TV_PLAIN, shown(a, tv_put_memory, v[i].total_bytes));
        tv_table_add(a, &t, TV_PLAIN, v[i].slowdown > 0 ? tv_buf_str(&ratio) : TV_S("?"));
        tv_table_add(a, &t, v[i].fits ? TV_GREEN : TV_DIM,
                     say(page, v[i].fits ? N_("yes") : N_("no")));
    }
    tv_page_head(page, N_("what would make it fit, the cheapest change first"));
    if (card.n)
        tv_page_text(
            page, TV_DIM, 2,
            TV_TEXT(a, "remedies.card", N_("reckoned on {card}"), tv_arg_str("card", card)));
    tv_table_put(page, &t, 2);
}

void tv_page_thumbs(const tv_page *page, const tv_thumb *v, size_t n)
{
    tv_arena *a = page->b->a;
    if (n == 0)
        return;
    tv_page_head(page, N_("rules of thumb beside this estimate"));
    for (size_t i = 0; i < n; i++) {
        tv_page_text(page, TV_PLAIN, 2,
                     TV_TEXT(a, "thumb.line", "{rule}: {guide}",
                             tv_arg_str("rule", tv_str_of(v[i].rule)),
                             tv_arg_str("guide", text(page, v[i].guide))));
        tv_page_text(page, TV_DIM, 6, v[i].why);
    }
}

static void put_texts(const tv_page *page, const char *head, const tv_text *v, size_t n)
{
    if (n == 0)
        return;
    tv_page_head(page, head);
    for (size_t i = 0; i < n; i++)
        tv_page_text(page, TV_PLAIN, 2, v[i]);
}

bool tv_report_always(const char *id)
{
    static const char *const starts[] = {"adapter.", "torch.", "opaque.", "state."};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (tv_str_starts(tv_str_of(id), tv_str_of(starts[i])))
            return true;
    return false;
}

/* What was odd or lost in the model's files, as far as it touches this job; everything under
 * --explain. */
static bool touches(const tv_estimate *est, const char *id, bool explain)
{
    static const char *const always[] = {"program.unknown", "program.batch", "program.stated"};
    static const char *const training[] = {"program.folded",           "program.inference",
                                           "program.training-dropout", "program.cross-entropy",
                                           "program.pointwise",        "program.tied"};
    const tv_str name = tv_str_of(id);
    if (tv_report_always(id))
        return true;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (tv_str_is(name, always[i]))
            return true;
    for (size_t i = 0; i < sizeof training / sizeof *training; i++)
        if (tv_str_is(name, training[i]))
            return tv_job_trains(est->job);
    if (tv_str_is(name, "program.no-cache"))
        return !tv_job_trains(est->job);
    return explain;
}

static void put_notes(const tv_page *page, const tv_size_view *view)
{
    const tv_model *m = view->estimate->model;
    tv_text *v = tv_new(page->b->a, tv_text, m->n_warnings + 1);
    size_t n = 0;
    for (size_t i = 0; i < m->n_warnings; i++)
        if (touches(view->estimate, m->warnings[i].id, view->explain))
            v[n++] = m->warnings[i];
    put_texts(page, N_("the model's files"), v, n);
}

static void put_deltas(const tv_page *page, const tv_size_view *view)
{
    tv_arena *a = page->b->a;
    static const tv_column columns[] = {{NULL, false, false}, {NULL, true, false}};
    tv_table t = {.columns = columns, .n_columns = 2};
    for (size_t i = 0; i < view->n_deltas; i++) {
        tv_buf b = tv_buf_in(a);
        tv_putc(&b, view->deltas[i].bytes < 0 ? '-' : '+');
        tv_put_memory(&b, fabs(view->deltas[i].bytes));
        tv_table_add(a, &t, TV_PLAIN, text(page, view->deltas[i].what));
        tv_table_add(a, &t, TV_PLAIN, tv_buf_str(&b));
    }
    if (view->n_deltas == 0)
        return;
    tv_page_head(page, N_("what one step of each input changes"));
    tv_table_put(page, &t, 2);
}

static void put_measured(const tv_page *page, const tv_size_view *view)
{
    tv_arena *a = page->b->a;
    const tv_estimate *est = view->estimate;
    if (view->measured_bytes > 0)
        tv_page_text(
            page, TV_PLAIN, 2,
            TV_TEXT(a, "measured.bytes",
                    N_("you measured {seen} allocated, the estimate is {ours}: {error} off"),
                    tv_arg_num("seen", TV_ARG_MEMORY, view->measured_bytes),
                    tv_arg_num("ours", TV_ARG_MEMORY, est->memory.allocated_peak_bytes),
                    tv_arg_num("error", TV_ARG_RATIO,
                               est->memory.allocated_peak_bytes / view->measured_bytes - 1)));
    if (view->measured_s > 0 && tv_known(est->time.step_s))
        tv_page_text(
            page, TV_PLAIN, 2,
            TV_TEXT(a, "measured.step",
                    N_("you measured {seen} per step, the estimate is {ours}: {error} off"),
                    tv_arg_num("seen", TV_ARG_SECONDS, view->measured_s),
                    tv_arg_num("ours", TV_ARG_SECONDS, est->time.step_s.v),
                    tv_arg_num("error", TV_ARG_RATIO, est->time.step_s.v / view->measured_s - 1)));
}

/* ---- --explain ---- */

static void explain_ledger(const tv_page *page, const tv_memory *m)
{
    tv_arena *a = page->b->a;
    if (m->n_lines == 0)
        return;
    tv_page_head(page, N_("every term with its formula (sections of docs/model.md)"));
    for (size_t i = 0; i < m->n_lines; i++) {
        const tv_ledger_line *line = &m->lines[i];
        tv_page_text(page, TV_PLAIN, 2,
                     TV_TEXT(a, "explain.line", N_("{term}: {bytes} ({origin}; \"{section}\")"),
                             tv_arg_word("term", line->name),
                             tv_arg_num("bytes", TV_ARG_MEMORY, line->bytes),
                             tv_arg_word("origin", tv_origin_name(line->origin)),
                             tv_arg_str("section", tv_str_of(line->section))));
        tv_page_text(page, TV_DIM, 6, line->formula);
    }
}

/* A fact's value as a person reads it. */
static tv_str fact_value(tv_arena *a, const tv_named_fact *f)
{
    const tv_str unit = tv_str_of(f->unit);
    tv_buf b = tv_buf_in(a);
    if (tv_str_is(unit, "B")) {
        tv_put_memory(&b, f->fact.v);
    } else if (tv_str_is(unit, "B/s")) {
        tv_put_disk(&b, f->fact.v);
        tv_puts(&b, "/s");
    } else if (tv_str_is(unit, "s")) {
        tv_put_seconds(&b, f->fact.v);
    } else if (tv_str_is(unit, "OP/s")) {
        tv_put_short(&b, f->fact.v / 1e12, 4);
        tv_puts(&b, " T/s");
    } else {
        if (f->fact.v == floor(f->fact.v))
            tv_put_count(&b, f->fact.v);
        else
            tv_put_short(&b, f->fact.v, 4);
        tv_puts(&b, unit.n ? " " : "");
        tv_put(&b, unit);
    }
    return tv_buf_str(&b);
}

static void explain_facts(const tv_page *page, const tv_estimate *est)
{
    tv_arena *a = page->b->a;
    static const tv_column columns[] = {{N_("fact"), false, false},
                                        {N_("value"), true, false},
                                        {N_("origin"), false, false},
                                        {N_("source"), false, true}};
    tv_table t = {.columns = columns, .n_columns = 4};
    size_t n = 0;
    const tv_named_fact *facts = tv_report_facts(a, est, &n);
    for (size_t i = 0; i < n; i++) {
        tv_table_add(a, &t, TV_PLAIN, tv_str_of(facts[i].name));
        tv_table_add(a, &t, TV_PLAIN, fact_value(a, &facts[i]));
        tv_table_add(a, &t, TV_DIM, say(page, tv_origin_name(facts[i].fact.origin)));
        tv_table_add(a, &t, TV_DIM, facts[i].fact.source);
    }
    tv_page_head(page, N_("every fact with its source"));
    tv_table_put(page, &t, 2);
}

void tv_size_text(const tv_request *req, tv_buf *b, const tv_size_view *view)
{
    const tv_page page = tv_page_on(req, b);
    const tv_estimate *est = view->estimate;
    put_title(&page, view);
    put_verdict(&page, &est->memory);
    tv_page_grades(&page, est, view->remedies, view->n_remedies);
    put_room(&page, &est->memory);
    put_measured(&page, view);
    if (view->n_members > 1)
        put_envelope(&page, view);
    put_ledger(&page, &est->memory);
    put_time(&page, est);
    tv_page_cost(&page, &est->cost);
    tv_page_phases(&page, view->phases, view->explain);
    tv_page_formats(&page, &view->formats);
    tv_page_remedies(&page, view->remedies, view->n_remedies, (tv_str){0});
    if (view->cards)
        tv_page_cards(&page, view->cards);
    tv_page_thumbs(&page, view->thumbs, view->n_thumbs);
    put_texts(&page, N_("remarks"), view->remarks, view->n_remarks);
    put_notes(&page, view);
    put_texts(&page, N_("assumed, because nobody said"), est->job->defaults, est->job->n_defaults);
    if (!view->explain)
        return;
    put_deltas(&page, view);
    put_texts(&page, N_("advice, the cheapest first"), est->balance.advice, est->balance.n_advice);
    explain_ledger(&page, &est->memory);
    explain_facts(&page, est);
}
