/* The phases of a model's life as part of a page: a table, the most demanding one, the cards, and
 * with --explain what each is made of. Reckons nothing. */
#include "report.h"

#include "base/message.h"
#include "base/unit.h"

typedef void (*put_value)(tv_buf *b, double v);

static tv_str shown(tv_arena *a, put_value put, double v)
{
    tv_buf b = tv_buf_in(a);
    put(&b, v);
    return tv_buf_str(&b);
}

static tv_str say(const tv_page *page, const char *msgid)
{
    return tv_str_of(tv_message(page->lang, msgid));
}

/* "9.1 GiB (8.6 GiB .. 9.7 GiB)"; the interval where there is one. */
static tv_str amount(tv_arena *a, tv_fact f)
{
    tv_buf b = tv_buf_in(a);
    if (!tv_known(f))
        return TV_S("-");
    tv_put_memory(&b, f.v);
    if (f.hi > f.lo) {
        tv_puts(&b, " (");
        tv_put_memory(&b, f.lo);
        tv_puts(&b, " .. ");
        tv_put_memory(&b, f.hi);
        tv_puts(&b, ")");
    }
    return tv_buf_str(&b);
}

static tv_str machine(tv_arena *a, const tv_device *d, uint32_t gpus)
{
    const tv_machine m = {.device = d, .gpus = gpus};
    return d ? tv_machine_line(a, &m) : (tv_str){0};
}

static const char *verdict_word(tv_verdict v)
{
    static const char *const words[] = {N_("unknown"), N_("fits"), N_("tight"), N_("no")};
    return words[v];
}

static tv_style verdict_style(tv_verdict v)
{
    static const tv_style styles[] = {TV_PLAIN, TV_GREEN, TV_YELLOW, TV_RED};
    return styles[v];
}

static void add_stage(const tv_page *page, tv_table *t, const tv_life_stage *s, bool worst)
{
    tv_arena *a = page->b->a;
    const bool card = tv_known(s->need.device_bytes);
    tv_table_add(a, t, worst ? TV_BOLD : TV_PLAIN, say(page, tv_life_words(s->need.phase)));
    tv_table_add(a, t, worst ? TV_BOLD : TV_PLAIN, amount(a, s->need.device_bytes));
    tv_table_add(a, t, verdict_style(s->verdict),
                 card ? say(page, verdict_word(s->verdict)) : (tv_str){0});
    tv_table_add(a, t, TV_PLAIN,
                 tv_known(s->need.host_bytes) ? shown(a, tv_put_memory, s->need.host_bytes.v)
                                              : TV_S("-"));
}

static void put_table(const tv_page *page, const tv_life_plan *p)
{
    static const tv_column columns[] = {{N_("phase"), false, false},
                                        {N_("on one card"), true, false},
                                        {NULL, false, false},
                                        {N_("main memory"), true, false}};
    tv_table t = {.columns = columns, .n_columns = 4};
    for (size_t i = 0; i < p->n_stages; i++)
        add_stage(page, &t, &p->stages[i], i == p->worst && p->n_stages > 1);
    tv_table_put(page, &t, 2);
}

static void put_requirement(const tv_page *page, const tv_life_plan *p)
{
    tv_arena *a = page->b->a;
    if (p->n_stages < 2 || !tv_known(p->requirement_bytes))
        return;
    tv_page_text(page, TV_BOLD, 2,
                 TV_TEXT(a, "life.requirement",
                         N_("reserve {need} on the card: {phase} is the most demanding phase"),
                         tv_arg_num("need", TV_ARG_MEMORY, p->requirement_bytes.v),
                         tv_arg_word("phase", tv_life_words(p->stages[p->worst].need.phase))));
}

static bool searched(const tv_life_plan *p)
{
    for (size_t i = 0; i < p->n_stages; i++)
        if (p->stages[i].chosen)
            return true;
    return p->one != NULL;
}

/* One card for everything, and a card for each phase. */
static void put_cards(const tv_page *page, const tv_life_plan *p)
{
    tv_arena *a = page->b->a;
    if (!searched(p))
        return;
    if (p->one)
        tv_page_text(page, TV_GREEN, 2,
                     TV_TEXT(a, "life.one", N_("one card for every phase: {machine}"),
                             tv_arg_str("machine", machine(a, p->one, p->one_gpus))));
    else
        tv_page_text(page, TV_YELLOW, 2,
                     TV_TEXT0("life.none", N_("none of these cards holds every phase")));
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < p->n_stages; i++) {
        const tv_life_stage *s = &p->stages[i];
        if (b.n)
            tv_puts(&b, page->lang == TV_ZH ? "；" : "; ");
        tv_put(&b, say(page, tv_life_words(s->need.phase)));
        tv_puts(&b, page->lang == TV_ZH ? "：" : ": ");
        tv_put(&b, s->chosen ? machine(a, s->chosen, s->chosen_gpus) : say(page, N_("none")));
    }
    tv_page_text(page, TV_PLAIN, 2,
                 TV_TEXT(a, "life.split", N_("a card for each: {cards}"),
                         tv_arg_str("cards", tv_buf_str(&b))));
}

static void explain(const tv_page *page, const tv_life_plan *p)
{
    tv_arena *a = page->b->a;
    static const tv_column columns[] = {{NULL, false, false},
                                        {NULL, false, false},
                                        {NULL, true, false},
                                        {N_("at least"), true, false},
                                        {N_("at most"), true, false}};
    for (size_t i = 0; i < p->n_stages; i++) {
        const tv_life_need *n = &p->stages[i].need;
        tv_table t = {.columns = columns, .n_columns = 5};
        for (size_t k = 0; k < n->n_lines; k++) {
            const tv_need_line *l = &n->lines[k];
            tv_table_add(a, &t, TV_PLAIN, say(page, l->name));
            tv_table_add(a, &t, TV_DIM, say(page, l->host ? N_("main memory") : N_("card")));
            tv_table_add(a, &t, TV_PLAIN, shown(a, tv_put_memory, l->bytes.v));
            tv_table_add(a, &t, TV_DIM, shown(a, tv_put_memory, l->bytes.lo));
            tv_table_add(a, &t, TV_DIM, shown(a, tv_put_memory, l->bytes.hi));
        }
        if (n->n_lines == 0)
            continue;
        tv_page_head(page, tv_life_words(n->phase));
        tv_table_put(page, &t, 2);
    }
}

void tv_page_phases(const tv_page *page, const tv_life_plan *p, bool all)
{
    if (!p || p->n_stages == 0)
        return;
    tv_page_head(page, N_("the phases of the model's life"));
    put_table(page, p);
    put_requirement(page, p);
    put_cards(page, p);
    for (size_t i = 0; i < p->n_notes; i++)
        tv_page_text(page, TV_PLAIN, 2, p->notes[i]);
    if (all)
        explain(page, p);
}

/* ---- number formats ---- */

static void add_format(const tv_page *page, tv_table *t, const tv_format_effect *e)
{
    tv_arena *a = page->b->a;
    tv_table_add(a, t, TV_PLAIN, tv_str_of(tv_precision_name(e->precision)));
    if (!e->runs) {
        for (int i = 0; i < 4; i++)
            tv_table_add(a, t, TV_DIM, TV_S("-"));
        tv_table_add(a, t, TV_DIM, say(page, N_("no")));
        return;
    }
    tv_table_add(a, t, TV_PLAIN, shown(a, tv_put_memory, e->weights_bytes));
    tv_table_add(a, t, TV_PLAIN, shown(a, tv_put_memory, e->total_bytes));
    tv_table_add(a, t, TV_PLAIN, e->bound_s > 0 ? shown(a, tv_put_seconds, e->bound_s) : TV_S("?"));
    tv_table_add(a, t, TV_PLAIN,
                 tv_known(e->step_s) ? shown(a, tv_put_seconds, e->step_s.v) : TV_S("?"));
    tv_table_add(a, t, e->holds ? TV_GREEN : TV_RED, say(page, e->holds ? N_("yes") : N_("no")));
}

void tv_page_formats(const tv_page *page, const tv_formats_view *v)
{
    static const tv_column columns[] = {
        {N_("format"), false, false},  {N_("weights"), true, false},   {N_("memory"), true, false},
        {N_("at least"), true, false}, {N_("predicted"), true, false}, {N_("fits"), false, false},
    };
    tv_arena *a = page->b->a;
    if (v->n == 0)
        return;
    tv_table t = {.columns = columns, .n_columns = 6};
    for (size_t i = 0; i < v->n; i++)
        add_format(page, &t, &v->v[i]);
    tv_page_head(page, N_("what the number format changes, before a larger card"));
    tv_page_text(page, TV_DIM, 2,
                 TV_TEXT(a, "formats.what",
                         v->per_token
                             ? N_("on {gpu}; at least: the weights read once for each token")
                             : N_("on {gpu}; at least: the weights read once for each pass"),
                         tv_arg_str("gpu", v->device->name)));
    tv_table_put(page, &t, 2);
}
