/* `trivet gpus list`: the cards that are known well enough, the largest memory first, then the
 * 16-bit rate; the others apart. Core counts rank nothing. */
#include "gpus.h"

#include <stdlib.h>

#include "base/message.h"
#include "base/unit.h"
#include "cost/cost.h"

typedef struct row {
    const tv_device *d;
    tv_card_rate rate;
    tv_price price;
    tv_str missing; /* not empty: not ranked */
} row;

typedef struct rows {
    row *v;
    size_t n;
    size_t cap;
} rows;

/* Why cards are not in the list, and how many. */
typedef enum left_out {
    LEFT_SMALL,
    LEFT_MEMORY_UNKNOWN,
    LEFT_NOT_FOR_TRAINING,
    LEFT_NOT_FOR_SERVERS,
    LEFT_DEAR,
    LEFT_PRICE_UNKNOWN,
    LEFT_COUNT,
} left_out;

static const struct {
    const char *id;
    const char *msgid;
} reasons[LEFT_COUNT] = {
    [LEFT_SMALL] = {"list.small", N_("{count} cards have less memory")},
    [LEFT_MEMORY_UNKNOWN] = {"list.memory-unknown", N_("{count} cards of unknown memory")},
    [LEFT_NOT_FOR_TRAINING] = {"list.not-for-training",
                               N_("{count} laptop parts, edge modules and Apple chips: training is "
                                  "not judged on them")},
    [LEFT_NOT_FOR_SERVERS] = {"list.not-for-servers", N_("{count} are no data-centre cards")},
    [LEFT_DEAR] = {"list.dear", N_("{count} cost more than the budget")},
    [LEFT_PRICE_UNKNOWN] = {"list.price-unknown",
                            N_("{count} have no price in this currency (--fx converts)")},
};

typedef struct selection {
    rows ranked, unranked;
    size_t left[LEFT_COUNT];
} selection;

static bool trains(tv_task task)
{
    return task == TV_TASK_TRAIN || task == TV_TASK_FINETUNE || task == TV_TASK_LORA ||
           task == TV_TASK_QLORA;
}

/* Shows the INT8 rate instead of the price. */
static bool infers(const tv_gpus_run *g)
{
    return g->o->job.task == TV_TASK_INFER || g->o->job.task == TV_TASK_SERVE;
}

static bool is_any_of(tv_str s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tv_str_is(s, words[i]))
            return true;
    return false;
}

/* LEFT_COUNT: it stays. */
static left_out task_reason(const tv_gpus_run *g, const tv_device *d)
{
    static const char *const portable[] = {"laptop", "laptop/desktop", "edge"};
    static const char *const central[] = {"datacenter", "cloud-only"};
    if (trains(g->o->job.task) && is_any_of(d->segment, portable, 3))
        return LEFT_NOT_FOR_TRAINING;
    if (g->o->job.task == TV_TASK_SERVE && !is_any_of(d->segment, central, 2))
        return LEFT_NOT_FOR_SERVERS;
    return LEFT_COUNT;
}

static left_out reason_of(const tv_gpus_run *g, const row *r)
{
    const tv_gpus_options *o = g->o;
    const double memory = tv_device_memory(r->d);
    if (o->fits_bytes > 0 && !(memory > 0))
        return LEFT_MEMORY_UNKNOWN;
    if (o->fits_bytes > 0 && memory < o->fits_bytes)
        return LEFT_SMALL;
    if (o->money.budget > 0) {
        const tv_str wanted =
            o->money.currency == TV_CNY || (!o->money.currency && g->r->lang == TV_ZH)
                ? TV_S("CNY")
                : TV_S("USD");
        if (!(r->price.value > 0) || !tv_str_eq(r->price.currency, wanted))
            return LEFT_PRICE_UNKNOWN;
        if (r->price.value > o->money.budget)
            return LEFT_DEAR;
    }
    return task_reason(g, r->d);
}

static double key_of(double v)
{
    return v > 0 ? v : 0;
}

static int by_memory_then_rate(const void *x, const void *y)
{
    const row *p = x, *q = y;
    const double keys[][2] = {
        {key_of(p->d->mem_bytes.v), key_of(q->d->mem_bytes.v)},
        {key_of(p->rate.fact.v), key_of(q->rate.fact.v)},
        {key_of(p->d->mem_bytes_per_s.v), key_of(q->d->mem_bytes_per_s.v)},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] > keys[i][1] || keys[i][0] < keys[i][1])
            return keys[i][0] > keys[i][1] ? -1 : 1;
    return tv_str_cmp(p->d->slug, q->d->slug);
}

static const tv_err *select_cards(tv_gpus_run *g, selection *s)
{
    tv_device_list all = {0};
    tv_arena *a = g->r->a;
    TV_TRY(tv_catalog_devices(g->market.catalog, &all));
    *s = (selection){0};
    for (size_t i = 0; i < all.n; i++) {
        const tv_device *d = &all.v[i];
        const row r = {
            .d = d,
            .rate = tv_card_training_rate(d),
            .price = tv_gpus_price(g, d),
            .missing = tv_card_missing(a, g->r->lang, d),
        };
        const left_out why = reason_of(g, &r);
        if (why < LEFT_COUNT)
            s->left[why]++;
        else
            *tv_push(a, r.missing.n ? &s->unranked : &s->ranked) = r;
    }
    if (s->ranked.n)
        qsort(s->ranked.v, s->ranked.n, sizeof *s->ranked.v, by_memory_then_rate);
    return NULL;
}

/* ---- text ---- */

/* Lower bounds of the memory headings; 12 GB cards print a little less than 12 GiB. */
static const double tiers_bytes[] = {
    80 * 0x1p30, 48 * 0x1p30, 24 * 0x1p30, 16 * 0x1p30, 12 * 0x1p30, 8 * 0x1p30, 0};

static size_t tier_of(const tv_device *d)
{
    const double memory = tv_known(d->mem_bytes) ? d->mem_bytes.v : d->mem_usable_bytes.v;
    size_t i = 0;
    while (tiers_bytes[i] > memory * 1.0001)
        i++;
    return i;
}

static tv_arg bound_arg(tv_arena *a, const char *name, double bytes)
{
    return tv_arg_str(name, tv_show_memory(a, tv_fact_of(bytes, TV_CATALOG, (tv_str){0})));
}

static void put_tier(const tv_page *page, size_t tier)
{
    tv_arena *a = page->b->a;
    const tv_arg low = bound_arg(a, "low", tiers_bytes[tier]);
    const tv_arg high = bound_arg(a, "high", tier ? tiers_bytes[tier - 1] : 0);
    const tv_text t = tier == 0 ? TV_TEXT(a, "list.tier-top", N_("{low} and more"), low)
                      : tiers_bytes[tier] > 0
                          ? TV_TEXT(a, "list.tier", N_("{low} to under {high}"), low, high)
                          : TV_TEXT(a, "list.tier-bottom", N_("under {high}"), high);
    tv_putc(page->b, '\n');
    tv_page_text(page, TV_BOLD, 0, t);
}

static tv_str rate_text(tv_arena *a, const tv_card_rate *rate)
{
    const tv_str v = tv_show_flops(a, rate->fact);
    return rate->vector ? tv_str_join(a, v, TV_S(" *")) : tv_str_join(a, v, TV_S("  "));
}

static void add_row(const tv_gpus_run *g, tv_table *t, const row *r)
{
    tv_arena *a = g->r->a;
    const tv_device *d = r->d;
    tv_table_add(a, t, TV_PLAIN, d->slug);
    tv_table_add(a, t, TV_PLAIN, tv_show_memory(a, d->mem_bytes));
    tv_buf b = tv_buf_in(a);
    tv_put_giga(&b, d->mem_bytes_per_s.v);
    tv_table_add(a, t, TV_PLAIN, tv_buf_str(&b));
    tv_table_add(a, t, r->rate.vector ? TV_DIM : TV_PLAIN, rate_text(a, &r->rate));
    tv_table_add(a, t, TV_PLAIN, tv_show_number(a, d->board_w, 4));
    tv_table_add(a, t, TV_PLAIN,
                 infers(g) ? tv_show_flops(a, d->rate_flops[TV_RATE_INT8_TENSOR])
                           : tv_show_price(a, &r->price));
}

static bool put_ranked(const tv_gpus_run *g, const tv_page *page, const rows *list)
{
    bool marked = false;
    const tv_column columns[] = {
        {.head = N_("card"), .flex = true},
        {.head = N_("memory"), .right = true},
        {.head = N_("GB/s"), .right = true},
        {.head = N_("TFLOP/s"), .right = true},
        {.head = N_("W"), .right = true},
        {.head = infers(g) ? N_("INT8 TOP/s") : N_("price"), .right = true},
    };
    for (size_t i = 0; i < list->n;) {
        const size_t tier = tier_of(list->v[i].d);
        tv_table t = {.columns = columns, .n_columns = 6};
        put_tier(page, tier);
        for (; i < list->n && tier_of(list->v[i].d) == tier; i++) {
            add_row(g, &t, &list->v[i]);
            marked = marked || list->v[i].rate.vector;
        }
        tv_table_put(page, &t, 2);
    }
    return marked;
}

static void put_unranked(const tv_page *page, const rows *list)
{
    tv_arena *a = page->b->a;
    static const tv_column columns[] = {{.head = N_("card")},
                                        {.head = N_("not known"), .flex = true}};
    tv_table t = {.columns = columns, .n_columns = 2};
    if (!list->n)
        return;
    tv_page_head(page, N_("not enough known: not ranked"));
    for (size_t i = 0; i < list->n; i++) {
        tv_table_add(a, &t, TV_PLAIN, list->v[i].d->slug);
        tv_table_add(a, &t, TV_DIM, list->v[i].missing);
    }
    tv_table_put(page, &t, 2);
}

static void put_reasons(const tv_page *page, const selection *s)
{
    bool some = false;
    for (size_t i = 0; i < LEFT_COUNT; i++)
        some = some || s->left[i];
    if (some)
        tv_page_head(page, N_("left out"));
    for (size_t i = 0; i < LEFT_COUNT; i++)
        if (s->left[i])
            tv_page_text(page, TV_DIM, 2,
                         TV_TEXT(page->b->a, reasons[i].id, reasons[i].msgid,
                                 tv_arg_num("count", TV_ARG_COUNT, (double)s->left[i])));
}

/* The newest and the oldest day of the prices that are shown. */
static void put_price_note(const tv_gpus_run *g, const tv_page *page, const rows *list)
{
    size_t stale = 0, priced = 0;
    for (size_t i = 0; i < list->n; i++) {
        const tv_price *p = &list->v[i].price;
        priced += p->value > 0;
        stale += p->value > 0 && tv_date_age_days(p->date, g->r->today) > TV_COST_STALE_DAYS;
    }
    if (!priced || infers(g))
        return;
    tv_page_text(page, TV_DIM, 0,
                 TV_TEXT0("list.prices", N_("price: the newest list or street price of one card; "
                                            "`show` gives its day and source")));
    if (stale)
        tv_page_text(page, TV_YELLOW, 0,
                     TV_TEXT(page->b->a, "list.stale",
                             N_("{stale} of {count} prices are more than 90 days old"),
                             tv_arg_num("stale", TV_ARG_COUNT, (double)stale),
                             tv_arg_num("count", TV_ARG_COUNT, (double)priced)));
}

static const tv_err *put_references(tv_gpus_run *g, const tv_page *page, const rows *list)
{
    static const struct {
        const char *class, *msgid;
    } classes[] = {
        {"entry", N_("reference of the entry class: {gpu}")},
        {"advanced", N_("reference of the advanced class: {gpu}")},
        {"datacenter", N_("reference of the data-centre class: {gpu}")},
    };
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < list->n; i++) {
            tv_str class;
            TV_TRY(tv_catalog_reference(g->market.catalog, list->v[i].d->slug, &class));
            if (tv_str_is(class, classes[k].class))
                tv_page_text(page, TV_DIM, 0,
                             TV_TEXT(page->b->a, "list.reference", classes[k].msgid,
                                     tv_arg_str("gpu", list->v[i].d->slug)));
        }
    return NULL;
}

static const tv_err *list_text(tv_gpus_run *g, const selection *s)
{
    const tv_page page = tv_page_on(g->r, g->r->out);
    tv_page_text(&page, TV_BOLD, 0,
                 TV_TEXT(g->r->a, "list.head",
                         N_("{count} cards, the largest memory first, then the 16-bit rate"),
                         tv_arg_num("count", TV_ARG_COUNT, (double)s->ranked.n)));
    tv_page_text(&page, TV_DIM, 0,
                 TV_TEXT0("list.rates", N_("rates are dense, 16-bit inputs with FP32 accumulate: "
                                           "what training uses; cores are not counted")));
    const bool marked = put_ranked(g, &page, &s->ranked);
    put_unranked(&page, &s->unranked);
    put_reasons(&page, s);
    tv_putc(g->r->out, '\n');
    if (marked)
        tv_page_text(
            &page, TV_DIM, 0,
            TV_TEXT0("list.vector", N_("* no tensor cores: the rate of the vector units")));
    TV_TRY(put_references(g, &page, &s->ranked));
    put_price_note(g, &page, &s->ranked);
    return NULL;
}

/* ---- JSON ---- */

static void put_known(tv_json_out *w, const char *key, tv_fact f)
{
    tv_json_key(w, key);
    if (tv_known(f))
        tv_json_put_num(w, f.v);
    else
        tv_json_put_null(w);
}

static void put_str(tv_json_out *w, const char *key, tv_str s)
{
    tv_json_key(w, key);
    if (s.n)
        tv_json_put_str(w, s);
    else
        tv_json_put_null(w);
}

static const tv_err *row_json(tv_gpus_run *g, tv_json_out *w, const row *r)
{
    const tv_device *d = r->d;
    tv_str class;
    TV_TRY(tv_catalog_reference(g->market.catalog, d->slug, &class));
    tv_json_begin(w, '{');
    put_str(w, "slug", d->slug);
    put_str(w, "name", d->name);
    put_str(w, "vendor", d->vendor);
    put_str(w, "segment", d->segment);
    put_str(w, "compute_capability", tv_card_capability(g->r->a, d));
    put_known(w, "mem_bytes", d->mem_bytes);
    put_known(w, "mem_usable_bytes", d->mem_usable_bytes);
    put_known(w, "mem_bytes_per_s", d->mem_bytes_per_s);
    put_str(w, "rate_mode",
            tv_known(r->rate.fact) ? tv_str_of(tv_rate_key(r->rate.mode)) : (tv_str){0});
    put_known(w, "rate_flops", r->rate.fact);
    put_known(w, "int8_flops", d->rate_flops[TV_RATE_INT8_TENSOR]);
    put_known(w, "nvlink_bytes_per_s", d->nvlink_bytes_per_s);
    put_known(w, "board_w", d->board_w);
    tv_json_key(w, "price");
    tv_json_price(g, w, &r->price);
    put_str(w, "reference", class);
    tv_json_key(w, "ranked");
    tv_json_put_bool(w, r->missing.n == 0);
    put_str(w, "missing", r->missing);
    if (g->o->fits_bytes > 0)
        put_known(w, "margin_bytes",
                  tv_fact_of(tv_device_memory(d) - g->o->fits_bytes, TV_COMPUTED, (tv_str){0}));
    tv_json_end(w, '}');
    return NULL;
}

static const tv_err *list_json(tv_gpus_run *g, const selection *s)
{
    tv_json_out w = tv_json_write(g->r->out);
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < s->ranked.n; i++)
        TV_TRY(row_json(g, &w, &s->ranked.v[i]));
    for (size_t i = 0; i < s->unranked.n; i++)
        TV_TRY(row_json(g, &w, &s->unranked.v[i]));
    tv_json_end(&w, ']');
    return NULL;
}

const tv_err *tv_gpus_list(tv_gpus_run *g)
{
    selection s;
    TV_TRY(select_cards(g, &s));
    return g->r->json ? list_json(g, &s) : list_text(g, &s);
}
