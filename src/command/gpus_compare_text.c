/* The page of `trivet gpus compare`. */
#include "gpus_compare.h"

#include <math.h>

#include "base/message.h"
#include "base/unit.h"
#include "cost/cost.h"

/* A page holds so many cards beside each other at most; more are put below. */
#define CARDS_WIDE 4
#define COLUMNS_MOST (CARDS_WIDE + 1)
/* Columns that the labels take, and that the widest value takes at least. */
#define LABEL_WIDTH 28
#define VALUE_WIDTH 15

static tv_str say(const tv_page *page, const char *msgid)
{
    return tv_str_of(tv_message(page->lang, msgid));
}

static tv_str text(const tv_page *page, tv_text t)
{
    return tv_text_in(page->b->a, page->lang, t);
}

typedef tv_str (*show_value)(const tv_gpus_run *g, const tv_page *page, const tv_device *d);

static tv_str memory_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    (void)page;
    return tv_show_memory(g->r->a, d->mem_bytes);
}

static tv_str bandwidth_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    (void)page;
    return tv_show_rate(g->r->a, d->mem_bytes_per_s);
}

static tv_str ridge_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    (void)page;
    return tv_show_number(g->r->a, tv_card_ridge(d, tv_card_training_rate(d).fact), 3);
}

static tv_str capability_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    const tv_str cc = tv_card_capability(g->r->a, d);
    return cc.n ? cc : say(page, N_("not CUDA"));
}

static tv_str fabric_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    tv_arena *a = g->r->a;
    if (tv_str_is(d->fabric, "none"))
        return say(page, N_("none"));
    if (!tv_known(d->nvlink_bytes_per_s))
        return TV_S("?");
    return tv_str_join(a, tv_str_join(a, d->fabric, TV_S(" ")),
                       tv_show_rate(a, d->nvlink_bytes_per_s));
}

static tv_str group_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    if (tv_str_is(d->fabric, "none"))
        return TV_S("–");
    if (d->nvlink_group <= 0)
        return TV_S("?");
    if (d->fabric_shape == TV_FABRIC_BRIDGE)
        return text(page, TV_TEXT(g->r->a, "compare.bridge", N_("{n}, bridge"),
                                  tv_arg_num("n", TV_ARG_NUMBER, d->nvlink_group)));
    return tv_show_number(g->r->a, tv_fact_of(d->nvlink_group, TV_CATALOG, (tv_str){0}), 3);
}

static tv_str slot_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    tv_fact wire = {0}, reached = {0};
    (void)page;
    if (!tv_known(d->pcie_gen) || !tv_known(d->pcie_lanes) ||
        tv_catalog_pcie(g->market.catalog, (int)d->pcie_gen.v, (int)d->pcie_lanes.v, &wire,
                        &reached))
        return TV_S("?");
    return tv_show_rate(g->r->a, wire);
}

static tv_str ecc_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    (void)g;
    return say(page, d->ecc > 0 ? N_("yes") : d->ecc == 0 ? N_("no") : N_("unknown"));
}

static tv_str cooling_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    (void)g;
    const bool server = tv_str_has(d->form_factor, TV_S("passive")) ||
                        tv_str_starts(d->form_factor, TV_S("SXM")) ||
                        tv_str_starts(d->form_factor, TV_S("OAM"));
    if (server)
        return say(page, N_("server airflow"));
    return tv_str_is(d->segment, "consumer") || tv_str_has(d->form_factor, TV_S("active"))
               ? say(page, N_("its own fans"))
               : TV_S("?");
}

static tv_str licence_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    (void)g;
    if (!tv_str_is(d->vendor, "NVIDIA"))
        return TV_S("?");
    return say(page,
               tv_str_is(d->segment, "consumer") ? N_("no data centres") : N_("no such limit"));
}

static tv_str watts_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    (void)page;
    return tv_known(d->board_w)
               ? tv_str_join(g->r->a, tv_show_number(g->r->a, d->board_w, 4), TV_S(" W"))
               : TV_S("?");
}

static tv_str cores_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    tv_buf b = tv_buf_in(g->r->a);
    (void)page;
    if (!tv_known(d->cuda_cores))
        return TV_S("?");
    tv_put_count(&b, d->cuda_cores.v);
    return tv_buf_str(&b);
}

static tv_str price_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    tv_arena *a = g->r->a;
    const tv_price p = tv_gpus_price(g, d);
    (void)page;
    if (!(p.value > 0))
        return TV_S("?");
    return tv_show_price(a, &p);
}

static tv_str price_day_of(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    const tv_price p = tv_gpus_price(g, d);
    (void)page;
    return p.value > 0 && p.date.n ? p.date : TV_S("?");
}

/* How many cards from here on stand beside each other. */
static size_t cards_beside(const tv_page *page, const tv_device *const *cards, size_t n)
{
    int used = LABEL_WIDTH;
    size_t i = 0;
    for (; i < n && i < CARDS_WIDE; i++) {
        const int name = tv_width(cards[i]->name);
        used += 2 + (name > VALUE_WIDTH ? name : VALUE_WIDTH);
        if (used > page->width && i > 0)
            break;
    }
    return i;
}

typedef struct line {
    const char *label; /* msgid */
    show_value show;
} line;

/* ---- a table of some lines over some cards ---- */

static tv_table table_for(const tv_page *page, tv_column *columns, const tv_device *const *cards,
                          size_t n)
{
    tv_table t = {.columns = columns, .n_columns = n + 1};
    columns[0] = (tv_column){0};
    tv_table_add(page->b->a, &t, TV_DIM, TV_S(""));
    for (size_t i = 0; i < n; i++) {
        columns[i + 1] = (tv_column){.right = true, .flex = i + 1 == n};
        tv_table_add(page->b->a, &t, TV_BOLD, cards[i]->name);
    }
    return t;
}

static void add_line(const tv_gpus_run *g, const tv_page *page, tv_table *t, const line *l,
                     const tv_device *const *cards, size_t n)
{
    tv_table_add(g->r->a, t, TV_DIM, say(page, l->label));
    for (size_t i = 0; i < n; i++)
        tv_table_add(g->r->a, t, TV_PLAIN, l->show(g, page, cards[i]));
}

static void add_rates(const tv_gpus_run *g, const tv_page *page, tv_table *t,
                      const tv_device *const *cards, size_t n)
{
    tv_arena *a = g->r->a;
    for (tv_rate r = 0; r < TV_RATE_COUNT; r++) {
        bool any = false;
        for (size_t i = 0; i < n; i++)
            any = any || tv_known(cards[i]->rate_flops[r]);
        if (!any)
            continue;
        tv_table_add(a, t, TV_DIM, say(page, tv_rate_name(r)));
        for (size_t i = 0; i < n; i++)
            tv_table_add(a, t, TV_PLAIN, tv_show_flops(a, cards[i]->rate_flops[r]));
    }
}

static void put_table(const tv_gpus_run *g, const tv_page *page, const tv_device *const *cards,
                      size_t n)
{
    static const line before[] = {
        {N_("memory"), memory_of},
        {N_("memory bandwidth"), bandwidth_of},
        {N_("compute capability"), capability_of},
    };
    static const line after[] = {
        {N_("ridge FLOP/byte"), ridge_of}, {N_("between cards, one way"), fabric_of},
        {N_("joins at most"), group_of},   {N_("PCIe, one way"), slot_of},
        {N_("board power"), watts_of},     {N_("price"), price_of},
        {N_("price of"), price_day_of},    {N_("CUDA cores (no measure)"), cores_of},
    };
    tv_column columns[COLUMNS_MOST];
    tv_table t = table_for(page, columns, cards, n);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        add_line(g, page, &t, &before[i], cards, n);
    add_rates(g, page, &t, cards, n);
    for (size_t i = 0; i < sizeof after / sizeof *after; i++)
        add_line(g, page, &t, &after[i], cards, n);
    tv_table_put(page, &t, 0);
    tv_putc(page->b, '\n');
}

/* ---- ratios ---- */

static tv_str times(tv_arena *a, bool known, double v)
{
    tv_buf b = tv_buf_in(a);
    if (!known)
        return TV_S("?");
    tv_puts(&b, "× ");
    tv_put_short(&b, v, 2);
    return tv_buf_str(&b);
}

static void put_ratios(const tv_gpus_run *g, const tv_page *page, const tv_comparison *c)
{
    static const tv_column columns[] = {
        {.head = N_("against the first")},        {.head = N_("compute"), .right = true},
        {.head = N_("bandwidth"), .right = true}, {.head = N_("memory"), .right = true},
        {.head = N_("compute in"), .flex = true},
    };
    tv_arena *a = g->r->a;
    tv_table t = {.columns = columns, .n_columns = 5};
    for (size_t i = 0; i + 1 < c->n; i++) {
        const tv_card_ratio *r = &c->ratios[i];
        const bool ok = r->compute.state == TV_RATIO_OK;
        tv_table_add(a, &t, TV_PLAIN, r->card->name);
        tv_table_add(a, &t, TV_PLAIN,
                     r->compute.state == TV_RATIO_MODES_DIFFER ? say(page, N_("refused"))
                                                               : times(a, ok, r->compute.v));
        tv_table_add(a, &t, TV_PLAIN, times(a, tv_known(r->bandwidth), r->bandwidth.v));
        tv_table_add(a, &t, TV_PLAIN, times(a, tv_known(r->memory), r->memory.v));
        tv_table_add(a, &t, TV_DIM,
                     say(page, ok ? tv_rate_name(r->mode)
                               : r->compute.state == TV_RATIO_MODES_DIFFER
                                   ? N_("no mode that both are known in")
                                   : N_("not known")));
    }
    tv_page_say(page, TV_BOLD, N_("ratios, the same mode on both sides"));
    tv_putc(page->b, '\n');
    tv_table_put(page, &t, 2);
}

/* ---- the five parameters ---- */

static void put_parameters(const tv_page *page, const tv_comparison *c)
{
    tv_page_head(page, N_("what the five numbers of a maker's table decide"));
    for (size_t i = 0; i < TV_PARAMETERS; i++) {
        const tv_parameter *p = &c->parameters[i];
        tv_buf b = tv_buf_in(page->b->a);
        tv_put(&b, text(page, TV_TEXT(page->b->a, "compare.parameter", N_("{level}: {how}"),
                                      tv_arg_word("level", p->name),
                                      tv_arg_str("how", text(page, p->decides)))));
        if (p->binds >= 0) {
            tv_puts(&b, page->lang == TV_ZH ? "" : " ");
            tv_put(&b, say(page,
                           p->binds ? N_("It binds this job.") : N_("It does not bind this job.")));
        }
        tv_page_wrap(page, p->binds > 0 ? TV_YELLOW : TV_PLAIN, 2, tv_buf_str(&b));
    }
    tv_page_text(page, TV_PLAIN, 2,
                 TV_TEXT0("compare.sixth",
                          N_("Not in that table, and often the limit: memory bandwidth. Decoding, "
                             "and layers of small work per byte, run at its ratio.")));
    if (!c->jobs)
        tv_page_text(page, TV_DIM, 2,
                     TV_TEXT0("compare.name-job",
                              N_("Which of them binds depends on the job: --model NAME --task TASK "
                                 "reckons it on each card.")));
}

/* ---- the job ---- */

static tv_str first_words(const tv_page *page, const tv_err *e)
{
    return text(page, e->what);
}

static void add_job(const tv_gpus_run *g, const tv_page *page, tv_table *t, const tv_device *d,
                    const tv_card_job *job)
{
    static const char *const words[] = {N_("unknown"), N_("fits"), N_("tight"), N_("no")};
    static const tv_style styles[] = {TV_DIM, TV_GREEN, TV_YELLOW, TV_RED};
    tv_arena *a = g->r->a;
    const tv_estimate *e = job->estimate;
    tv_buf need = tv_buf_in(a), step = tv_buf_in(a);
    tv_table_add(a, t, TV_PLAIN, d->name);
    if (!e) {
        tv_table_add(a, t, TV_PLAIN, TV_S(""));
        tv_table_add(a, t, TV_RED, say(page, N_("no")));
        tv_table_add(a, t, TV_PLAIN, TV_S(""));
        tv_table_add(a, t, TV_DIM, first_words(page, job->blocked));
        return;
    }
    tv_put_memory(&need, e->memory.total_bytes);
    if (tv_known(e->time.step_s))
        tv_put_seconds(&step, e->time.step_s.v);
    tv_table_add(a, t, TV_PLAIN, tv_buf_str(&need));
    tv_table_add(a, t, styles[e->memory.verdict], say(page, words[e->memory.verdict]));
    tv_table_add(a, t, TV_PLAIN, step.n ? tv_buf_str(&step) : TV_S("?"));
    tv_table_add(a, t, TV_DIM, say(page, tv_bound_words(e->balance.bottleneck)));
}

static void put_jobs(const tv_gpus_run *g, const tv_page *page, const tv_comparison *c)
{
    static const tv_column columns[] = {
        {.head = N_("card")},
        {.head = N_("needs"), .right = true},
        {.head = N_("fits?")},
        {.head = N_("step"), .right = true},
        {.head = N_("held back by"), .flex = true},
    };
    tv_table t = {.columns = columns, .n_columns = 5};
    if (!c->jobs)
        return;
    tv_page_head(page, N_("this job on one of each"));
    for (size_t i = 0; i < c->n; i++)
        if (c->jobs[i].estimate) {
            tv_page_wrap(page, TV_DIM, 2, tv_job_line(g->r->a, c->jobs[i].estimate));
            break;
        }
    for (size_t i = 0; i < c->n; i++)
        add_job(g, page, &t, c->cards[i], &c->jobs[i]);
    tv_table_put(page, &t, 2);
}

/* ---- consumer and professional cards ---- */

static void put_classes(const tv_gpus_run *g, const tv_page *page, const tv_device *const *cards,
                        size_t n)
{
    static const line lines[] = {
        {N_("memory"), memory_of},   {N_("ECC"), ecc_of},       {N_("cooling"), cooling_of},
        {N_("licence"), licence_of}, {N_("NVLink"), fabric_of},
    };
    tv_column columns[COLUMNS_MOST];
    tv_table t = table_for(page, columns, cards, n);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        add_line(g, page, &t, &lines[i], cards, n);
    tv_table_put(page, &t, 2);
}

static void put_prices_note(const tv_gpus_run *g, const tv_page *page, const tv_comparison *c)
{
    int oldest = -1;
    for (size_t i = 0; i < c->n; i++) {
        const tv_price p = tv_gpus_price(g, c->cards[i]);
        const int age = p.value > 0 ? tv_date_age_days(p.date, g->r->today) : -1;
        oldest = age > oldest ? age : oldest;
    }
    if (oldest > TV_COST_STALE_DAYS)
        tv_page_text(page, TV_YELLOW, 2,
                     TV_TEXT(page->b->a, "compare.stale",
                             N_("stale: a price is {days} days old, ask again before you buy"),
                             tv_arg_num("days", TV_ARG_COUNT, oldest)));
}

void tv_compare_text(const tv_gpus_run *g, const tv_comparison *c)
{
    const tv_page page = tv_page_on(g->r, g->r->out);
    for (size_t i = 0, beside = 0; i < c->n; i += beside) {
        beside = cards_beside(&page, c->cards + i, c->n - i);
        put_table(g, &page, c->cards + i, beside);
    }
    put_ratios(g, &page, c);
    put_jobs(g, &page, c);
    tv_page_head(&page, N_("what to take from it"));
    for (size_t i = 0; i < c->n_remarks; i++)
        tv_page_text(&page, TV_PLAIN, 2, c->remarks[i]);
    put_prices_note(g, &page, c);
    put_parameters(&page, c);
    if (!c->consumer_and_professional)
        return;
    tv_page_head(&page, N_("consumer and professional cards"));
    tv_page_text(&page, TV_PLAIN, 2,
                 TV_TEXT0("compare.classes",
                          N_("Where the memory suffices both train equally well. Apart from speed "
                             "they differ in these only:")));
    for (size_t i = 0, beside = 0; i < c->n; i += beside) {
        beside = cards_beside(&page, c->cards + i, c->n - i);
        put_classes(g, &page, c->cards + i, beside);
    }
}
