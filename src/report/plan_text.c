/* `plan` as a page: the answer first, its three grades, what holds it back, the next step; then
 * the ranked choices, why the others lost, and what would make a card fit. */
#include "report.h"

#include <math.h>

#include "base/message.h"
#include "base/unit.h"

#define CHOICES_FIRST 10
#define CHOICES_EXPLAIN 60
#define REJECTED_FIRST 8
#define COLUMNS_MOST 12

typedef void (*put_value)(tv_buf *b, double v);

static tv_str shown(tv_arena *a, put_value put, double v)
{
    tv_buf b = tv_buf_in(a);
    put(&b, v);
    return tv_buf_str(&b);
}

static tv_str known_or_dash(tv_arena *a, put_value put, tv_fact f)
{
    return tv_known(f) ? shown(a, put, f.v) : TV_S("?");
}

static tv_str say(const tv_page *page, const char *msgid)
{
    return tv_str_of(tv_message(page->lang, msgid));
}

static tv_str text(const tv_page *page, tv_text t)
{
    return tv_text_in(page->b->a, page->lang, t);
}

static void put_money(tv_buf *b, double v)
{
    if (fabs(v) >= 100)
        tv_put_count(b, v);
    else
        tv_put_fixed(b, v, 2);
}

/* ---- the answer ---- */

static tv_text answer(const tv_page *page, const tv_choice *c)
{
    tv_arena *a = page->b->a;
    const tv_memory *m = &c->estimate.memory;
    return TV_TEXT(a, "plan.answer",
                   N_("{machine}: needs {need} ({low} .. {high}) of {have} per card, {headroom}"),
                   tv_arg_str("machine", tv_machine_line(a, &c->machine)),
                   tv_arg_num("need", TV_ARG_MEMORY, m->total_bytes),
                   tv_arg_num("low", TV_ARG_MEMORY, m->low_bytes),
                   tv_arg_num("high", TV_ARG_MEMORY, m->high_bytes),
                   tv_arg_num("have", TV_ARG_MEMORY, m->capacity_bytes),
                   tv_arg_str("headroom", text(page, c->headroom)));
}

static void put_speed(const tv_page *page, const tv_choice *c)
{
    tv_arena *a = page->b->a;
    const tv_time *t = &c->estimate.time;
    if (!tv_known(t->step_s))
        return;
    tv_page_text(page, TV_PLAIN, 2,
                 TV_TEXT(a, "plan.step", N_("{step} per step ({low} .. {high})"),
                         tv_arg_num("step", TV_ARG_SECONDS, t->step_s.v),
                         tv_arg_num("low", TV_ARG_SECONDS, t->step_s.lo),
                         tv_arg_num("high", TV_ARG_SECONDS, t->step_s.hi)));
    if (t->epoch_s > 0 && t->run_s > 0)
        tv_page_text(page, TV_PLAIN, 2,
                     TV_TEXT(a, "plan.run", N_("{epoch} per epoch, {run} for the run"),
                             tv_arg_num("epoch", TV_ARG_SECONDS, t->epoch_s),
                             tv_arg_num("run", TV_ARG_SECONDS, t->run_s)));
}

static void put_answer(const tv_page *page, const tv_plan_view *view)
{
    tv_arena *a = page->b->a;
    const tv_plan *plan = view->plan;
    tv_page_text(page, TV_BOLD, 0, plan->question);
    if (plan->n_choices == 0) {
        tv_putc(page->b, '\n');
        tv_page_text(
            page, TV_RED, 2,
            plan->most_gpus <= 1
                ? TV_TEXT(a, "plan.none.one",
                          N_("no single card holds this job as asked: it needs {need}"),
                          tv_arg_num("need", TV_ARG_MEMORY, plan->need_bytes))
                : TV_TEXT(a, "plan.none",
                          N_("no card, and no {gpus} of them, holds this job as asked; on one "
                             "card it needs {need}"),
                          tv_arg_num("gpus", TV_ARG_NUMBER, plan->most_gpus),
                          tv_arg_num("need", TV_ARG_MEMORY, plan->need_bytes)));
        return;
    }
    const tv_choice *best = &plan->choices[0];
    tv_page_wrap(page, TV_DIM, 0, tv_job_line(a, &best->estimate));
    tv_putc(page->b, '\n');
    tv_page_text(page, TV_GREEN, 2, answer(page, best));
    put_speed(page, best);
    for (size_t i = 0; i < best->n_notes; i++)
        tv_page_text(page, TV_DIM, 2, best->notes[i]);
    tv_page_grades(page, &best->estimate, plan->remedies, plan->n_remedies);
}

/* ---- the ranked choices ---- */

static tv_style headroom_style(const tv_choice *c)
{
    return c->estimate.memory.verdict == TV_FITS ? TV_GREEN : TV_YELLOW;
}

/* What is worth a column: nothing that no choice knows. */
typedef struct shown_columns {
    bool step, run, hour, each_run, bound;
} shown_columns;

static tv_fact work_per_s(const tv_time *t)
{
    return tv_known(t->decode_tokens_per_s) ? t->decode_tokens_per_s : t->samples_per_s;
}

static void put_rate(tv_buf *b, double v)
{
    tv_put_short(b, v, 3);
}

/* Narrow pages leave out what the others imply. */
#define WIDE 100

static shown_columns columns_for(const tv_page *page, const tv_plan *plan, size_t n)
{
    shown_columns on = {.bound = page->width >= WIDE};
    for (size_t i = 0; i < n; i++) {
        const tv_estimate *e = &plan->choices[i].estimate;
        on.run = on.run || e->time.run_s > 0;
        on.hour = on.hour || tv_known(e->cost.per_hour);
        on.each_run = on.each_run || tv_known(e->cost.per_run);
    }
    const bool wide = page->width >= WIDE;
    on.step = wide || !on.run;
    on.hour = on.hour && (wide || !on.each_run);
    return on;
}

static void add_choice(const tv_page *page, tv_table *t, shown_columns on, const tv_choice *c,
                       size_t rank)
{
    tv_arena *a = page->b->a;
    const tv_estimate *e = &c->estimate;
    tv_buf number = tv_buf_in(a);
    tv_put_u64(&number, rank);
    const double share = e->memory.total_bytes / e->memory.capacity_bytes;
    const tv_fact run =
        tv_fact_of(e->time.run_s, e->time.run_s > 0 ? TV_COMPUTED : TV_UNKNOWN, (tv_str){0});
    tv_table_add(a, t, TV_DIM, tv_buf_str(&number));
    tv_table_add(a, t, rank == 1 ? TV_BOLD : TV_PLAIN, tv_machine_line(a, &c->machine));
    tv_table_add(a, t, headroom_style(c), shown(a, tv_put_percent, share));
    tv_table_add(a, t, headroom_style(c), text(page, c->headroom));
    if (on.step)
        tv_table_add(a, t, TV_PLAIN, known_or_dash(a, tv_put_seconds, e->time.step_s));
    tv_table_add(a, t, TV_PLAIN, known_or_dash(a, put_rate, work_per_s(&e->time)));
    if (on.run)
        tv_table_add(a, t, TV_PLAIN, known_or_dash(a, tv_put_seconds, run));
    if (on.hour)
        tv_table_add(a, t, TV_PLAIN, known_or_dash(a, put_money, e->cost.per_hour));
    if (on.each_run)
        tv_table_add(a, t, TV_PLAIN, known_or_dash(a, put_money, e->cost.per_run));
    if (on.bound)
        tv_table_add(a, t, TV_DIM, say(page, tv_bound_words(e->balance.bottleneck)));
}

static size_t choice_columns(tv_column *columns, shown_columns on)
{
    size_t n = 0;
    columns[n++] = (tv_column){NULL, true, false};
    columns[n++] = (tv_column){N_("cards"), false, true};
    columns[n++] = (tv_column){N_("memory"), true, false};
    columns[n++] = (tv_column){N_("headroom"), false, false};
    if (on.step)
        columns[n++] = (tv_column){N_("step"), true, false};
    columns[n++] = (tv_column){N_("per s"), true, false};
    if (on.run)
        columns[n++] = (tv_column){N_("run"), true, false};
    if (on.hour)
        columns[n++] = (tv_column){N_("per h"), true, false};
    if (on.each_run)
        columns[n++] = (tv_column){N_("per run"), true, false};
    if (on.bound)
        columns[n++] = (tv_column){N_("held back by"), false, false};
    return n;
}

static void explain_choices(const tv_page *page, const tv_plan *plan, size_t limit)
{
    tv_arena *a = page->b->a;
    const tv_estimate *best = &plan->choices[0].estimate;
    tv_page_wrap(page, TV_DIM, 2,
                 say(page, tv_known(best->time.decode_tokens_per_s)
                               ? N_("per s: generated tokens each second over all cards")
                               : N_("per s: samples each second over all cards")));
    if (best->cost.currency.n)
        tv_page_text(page, TV_DIM, 2,
                     TV_TEXT(a, "plan.money",
                             N_("money in {currency}; ? is a price or rate that is not known"),
                             tv_arg_str("currency", best->cost.currency)));
    if (plan->n_choices > limit)
        tv_page_text(page, TV_DIM, 2,
                     TV_TEXT(a, "plan.more", N_("{n} further choices: --explain or --json"),
                             tv_arg_num("n", TV_ARG_COUNT, (double)(plan->n_choices - limit))));
}

static void put_choices(const tv_page *page, const tv_plan_view *view)
{
    const tv_plan *plan = view->plan;
    size_t limit = view->shown ? view->shown : view->explain ? CHOICES_EXPLAIN : CHOICES_FIRST;
    if (limit > plan->n_choices)
        limit = plan->n_choices;
    if (limit == 0)
        return;
    tv_column columns[COLUMNS_MOST];
    const shown_columns on = columns_for(page, plan, limit);
    tv_table t = {.columns = columns, .n_columns = choice_columns(columns, on)};
    for (size_t i = 0; i < limit; i++)
        add_choice(page, &t, on, &plan->choices[i], i + 1);
    tv_page_head(page, N_("the choices, best first"));
    tv_table_put(page, &t, 2);
    explain_choices(page, plan, limit);
}

/* ---- those that lost ---- */

static bool lost_for(const tv_rejection *r, const char *id)
{
    return r->reason.id && tv_str_is(tv_str_of(r->reason.id), id);
}

static bool chosen(const tv_plan *plan, const tv_device *d)
{
    for (size_t i = 0; i < plan->n_choices; i++)
        if (plan->choices[i].machine.device == d)
            return true;
    return false;
}

/* One line a card: the count that it lost with by least, where no count won. */
static bool stands_for_card(const tv_plan *plan, size_t at)
{
    const tv_rejection *r = &plan->rejected[at];
    if (lost_for(r, "unknown") || chosen(plan, r->device))
        return false;
    for (size_t i = 0; i < at; i++)
        if (plan->rejected[i].device == r->device)
            return false;
    return true;
}

static void put_rejected(const tv_page *page, const tv_plan *plan, bool all)
{
    static const tv_column columns[] = {
        {N_("cards"), false, false}, {N_("too little by"), true, false}, {N_("why"), false, true}};
    tv_arena *a = page->b->a;
    tv_table t = {.columns = columns, .n_columns = 3};
    size_t shown_n = 0, left = 0;
    for (size_t i = 0; i < plan->n_rejected; i++) {
        const tv_rejection *r = &plan->rejected[i];
        if (!stands_for_card(plan, i))
            continue;
        if (!all && shown_n == REJECTED_FIRST) {
            left++;
            continue;
        }
        shown_n++;
        const tv_machine m = {.device = r->device, .gpus = r->gpus};
        tv_table_add(a, &t, TV_PLAIN, tv_machine_line(a, &m));
        tv_table_add(a, &t, TV_PLAIN,
                     r->by_bytes > 0 ? shown(a, tv_put_memory, r->by_bytes) : (tv_str){0});
        tv_table_add(a, &t, TV_DIM, text(page, r->reason));
    }
    if (shown_n == 0)
        return;
    tv_page_head(page, N_("ruled out, the nearest first"));
    tv_table_put(page, &t, 2);
    if (left)
        tv_page_text(page, TV_DIM, 2,
                     TV_TEXT(a, "plan.ruled-out", N_("and {n} more: --explain or --json"),
                             tv_arg_num("n", TV_ARG_COUNT, (double)left)));
}

static void put_unknown(const tv_page *page, const tv_plan *plan)
{
    tv_buf b = tv_buf_in(page->b->a);
    for (size_t i = 0; i < plan->n_rejected; i++) {
        if (!lost_for(&plan->rejected[i], "unknown"))
            continue;
        if (b.n)
            tv_puts(&b, page->lang == TV_ZH ? "、" : ", ");
        tv_put(&b, plan->rejected[i].device->name);
    }
    if (b.n == 0)
        return;
    tv_page_head(page, N_("not enough known to judge"));
    tv_page_wrap(page, TV_DIM, 2, tv_buf_str(&b));
}

/* ---- stages, assumptions ---- */

static void put_stages(const tv_page *page, const tv_plan_view *view)
{
    static const tv_column columns[] = {
        {NULL, false, false}, {NULL, false, false}, {NULL, true, false}, {NULL, true, false}};
    static const struct {
        const char *stage;
        const char *words;
    } names[] = {
        {"train", N_("training")}, {"validate", N_("validation")}, {"infer", N_("inference")}};
    tv_arena *a = page->b->a;
    tv_table t = {.columns = columns, .n_columns = 4};
    for (size_t i = 0; i < view->n_stages; i++) {
        const tv_choice *c = view->stages[i].choice;
        const char *words = view->stages[i].stage;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (tv_str_is(tv_str_of(words), names[k].stage))
                words = names[k].words;
        tv_table_add(a, &t, TV_PLAIN, say(page, words));
        tv_table_add(a, &t, TV_PLAIN, c ? tv_machine_line(a, &c->machine) : say(page, N_("none")));
        tv_table_add(a, &t, TV_PLAIN,
                     c ? shown(a, tv_put_memory, c->estimate.memory.total_bytes) : (tv_str){0});
        tv_table_add(a, &t, TV_PLAIN,
                     c ? known_or_dash(a, tv_put_seconds, c->estimate.time.step_s) : (tv_str){0});
    }
    if (view->n_stages < 2)
        return;
    tv_page_head(page, N_("a card for each stage"));
    tv_table_put(page, &t, 2);
}

static void put_texts(const tv_page *page, const char *head, const tv_text *v, size_t n)
{
    if (n == 0)
        return;
    tv_page_head(page, head);
    for (size_t i = 0; i < n; i++)
        tv_page_text(page, TV_PLAIN, 2, v[i]);
}

void tv_page_cards(const tv_page *page, const tv_plan *plan)
{
    const tv_plan_view view = {.plan = plan};
    put_choices(page, &view);
    put_rejected(page, plan, false);
    put_unknown(page, plan);
}

static void put_notes(const tv_page *page, const tv_model *m)
{
    tv_text *v = tv_new(page->b->a, tv_text, m->n_warnings + 1);
    size_t n = 0;
    for (size_t i = 0; i < m->n_warnings; i++)
        if (tv_report_always(m->warnings[i].id))
            v[n++] = m->warnings[i];
    put_texts(page, N_("the model's files"), v, n);
}

void tv_plan_text(const tv_request *req, tv_buf *b, const tv_plan_view *view)
{
    const tv_page page = tv_page_on(req, b);
    const tv_plan *plan = view->plan;
    const tv_choice *best = plan->n_choices ? &plan->choices[0] : NULL;
    put_answer(&page, view);
    put_choices(&page, view);
    if (best)
        tv_page_cost(&page, &best->estimate.cost);
    put_stages(&page, view);
    tv_page_phases(&page, view->phases, view->explain);
    tv_page_formats(&page, &view->formats);
    tv_page_remedies(&page, plan->remedies, plan->n_remedies,
                     plan->remedies_for ? plan->remedies_for->name : (tv_str){0});
    put_rejected(&page, plan, view->explain);
    put_unknown(&page, plan);
    tv_page_thumbs(&page, view->thumbs, view->n_thumbs);
    put_texts(&page, N_("remarks"), view->remarks, view->n_remarks);
    if (best) {
        put_notes(&page, best->estimate.model);
        put_texts(&page, N_("assumed, because nobody said"), best->job.defaults,
                  best->job.n_defaults);
    }
    put_texts(&page, N_("assumed for the choice"), plan->defaults, plan->n_defaults);
}
