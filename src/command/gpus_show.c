/* `trivet gpus show`: one card in full, the members of a name that stands for several, or what an
 * amount of memory is enough for. */
#include "gpus.h"

#include "base/message.h"
#include "base/unit.h"
#include "cost/cost.h"
#include "predict/rules.h"

static tv_str say(const tv_page *page, const char *msgid)
{
    return tv_str_of(tv_message(page->lang, msgid));
}

static tv_str text(const tv_page *page, tv_text t)
{
    return tv_text_in(page->b->a, page->lang, t);
}

static void put_pair(const tv_page *page, tv_table *t, const char *label, tv_str value)
{
    if (!value.n)
        return;
    tv_table_add(page->b->a, t, TV_DIM, say(page, label));
    tv_table_add(page->b->a, t, TV_PLAIN, value);
}

static const tv_column pair_columns[] = {{0}, {.flex = true}};

static tv_table pairs(void)
{
    return (tv_table){.columns = pair_columns, .n_columns = 2};
}

/* "24 GiB [wiki-nv]": the value with its source. */
static tv_str sourced(tv_arena *a, tv_str value, tv_fact f)
{
    if (!tv_known(f) || !f.source.n)
        return value;
    return tv_str_join(a, value, tv_str_join(a, tv_str_join(a, TV_S(" ["), f.source), TV_S("]")));
}

static tv_str yes_no(const tv_page *page, int v)
{
    return say(page, v > 0 ? N_("yes") : v == 0 ? N_("no") : N_("unknown"));
}

/* ---- identity ---- */

static tv_str joined(tv_arena *a, const tv_str *parts, size_t n)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < n; i++) {
        if (!parts[i].n)
            continue;
        tv_puts(&b, b.n ? ", " : "");
        tv_put(&b, parts[i]);
    }
    return tv_buf_str(&b);
}

static void put_head(const tv_page *page, const tv_device *d)
{
    tv_arena *a = page->b->a;
    const tv_str parts[] = {d->arch, d->chip, d->form_factor, d->segment, d->launch_date};
    tv_page_put(page, TV_BOLD, d->name);
    tv_page_put(page, TV_DIM, tv_str_join(a, TV_S("  "), d->slug));
    tv_putc(page->b, '\n');
    tv_page_wrap(page, TV_DIM, 2, joined(a, parts, sizeof parts / sizeof *parts));
    const tv_str cc = tv_card_capability(a, d);
    if (cc.n)
        tv_page_text(
            page, TV_DIM, 2,
            TV_TEXT(a, "show.capability", N_("compute capability {cc}"), tv_arg_str("cc", cc)));
}

/* ---- memory ---- */

static tv_str capacity(tv_arena *a, const tv_device *d)
{
    tv_buf b = tv_buf_in(a);
    tv_put(&b, sourced(a, tv_show_memory(a, d->mem_bytes), d->mem_bytes));
    if (d->mem_type.n) {
        tv_puts(&b, ", ");
        tv_put(&b, d->mem_type);
    }
    return tv_buf_str(&b);
}

static void put_memory(const tv_page *page, const tv_device *d)
{
    tv_arena *a = page->b->a;
    tv_table t = pairs();
    tv_page_head(page, N_("memory"));
    put_pair(page, &t, N_("capacity"), capacity(a, d));
    if (tv_known(d->mem_usable_bytes))
        put_pair(page, &t, N_("as the driver reports it"),
                 sourced(a, tv_show_memory(a, d->mem_usable_bytes), d->mem_usable_bytes));
    put_pair(page, &t, N_("bandwidth"),
             sourced(a, tv_show_rate(a, d->mem_bytes_per_s), d->mem_bytes_per_s));
    if (tv_known(d->mem_measured_bytes_per_s))
        put_pair(
            page, &t, N_("measured"),
            sourced(a, tv_show_rate(a, d->mem_measured_bytes_per_s), d->mem_measured_bytes_per_s));
    put_pair(page, &t, N_("error correction (ECC)"), yes_no(page, d->ecc));
    tv_table_put(page, &t, 2);
}

/* ---- rates ---- */

static void put_rates(const tv_page *page, const tv_device *d)
{
    tv_arena *a = page->b->a;
    static const tv_column columns[] = {
        {.head = N_("mode")},
        {.head = N_("TFLOP/s"), .right = true},
        {.head = N_("ridge FLOP/byte"), .right = true},
        {.head = N_("source")},
    };
    tv_table t = {.columns = columns, .n_columns = 4};
    tv_page_head(page, N_("rates, dense (TOP/s for INT8)"));
    for (tv_rate r = 0; r < TV_RATE_COUNT; r++) {
        const tv_fact f = d->rate_flops[r];
        if (!tv_known(f))
            continue;
        tv_table_add(a, &t, TV_PLAIN, say(page, tv_rate_name(r)));
        tv_table_add(a, &t, TV_PLAIN, tv_show_flops(a, f));
        tv_table_add(a, &t, TV_PLAIN, tv_show_number(a, tv_card_ridge(d, f), 3));
        tv_table_add(a, &t, TV_DIM, f.source);
    }
    if (!t.n)
        tv_page_text(page, TV_DIM, 2, TV_TEXT0("show.no-rate", N_("none is known")));
    tv_table_put(page, &t, 2);
    if (tv_known(d->measured_bf16_flops))
        tv_page_text(page, TV_PLAIN, 2,
                     TV_TEXT(a, "show.measured-bf16",
                             N_("best measured BF16 matrix product: {rate} [{source}]"),
                             tv_arg_num("rate", TV_ARG_FLOPS, d->measured_bf16_flops.v),
                             tv_arg_str("source", d->measured_bf16_flops.source)));
    if (t.n)
        tv_page_text(
            page, TV_DIM, 2,
            TV_TEXT0("show.ridge", N_("ridge: work per byte of memory traffic above which "
                                      "the rate, below which the bandwidth is the limit")));
}

static void put_dtypes(const tv_page *page, const tv_device *d)
{
    tv_arena *a = page->b->a;
    tv_card_dtype v[TV_CARD_DTYPES];
    static const tv_column columns[] = {{0}, {0}, {.right = true}, {.flex = true}};
    static const char *const words[] = {N_("unknown"), N_("no"), N_("slow"), N_("yes")};
    static const tv_style styles[] = {TV_DIM, TV_RED, TV_YELLOW, TV_GREEN};
    tv_table t = {.columns = columns, .n_columns = 4};
    tv_card_dtypes(a, d, v);
    tv_page_head(page, N_("number formats"));
    for (size_t i = 0; i < TV_CARD_DTYPES; i++) {
        tv_table_add(a, &t, TV_PLAIN, tv_str_of(v[i].dtype));
        tv_table_add(a, &t, styles[v[i].support], say(page, words[v[i].support]));
        tv_table_add(a, &t, TV_PLAIN, tv_known(v[i].rate) ? tv_show_flops(a, v[i].rate) : TV_S(""));
        tv_table_add(a, &t, TV_DIM, text(page, v[i].why));
    }
    tv_table_put(page, &t, 2);
}

/* ---- links ---- */

/* A number of GB/s without its unit: the sentence says it. */
static tv_arg giga(tv_arena *a, const char *name, double bytes_per_s)
{
    tv_buf b = tv_buf_in(a);
    tv_put_giga(&b, bytes_per_s);
    return tv_arg_str(name, tv_buf_str(&b));
}

static tv_str fabric_line(const tv_page *page, const tv_device *d)
{
    tv_arena *a = page->b->a;
    if (tv_str_is(d->fabric, "none"))
        return say(page, N_("none"));
    if (!d->fabric.n)
        return say(page, N_("unknown"));
    if (!tv_known(d->nvlink_bytes_per_s))
        return text(page, TV_TEXT(a, "show.fabric-unknown", N_("{name}, its rate is not known"),
                                  tv_arg_str("name", d->fabric)));
    return sourced(
        a,
        text(page, TV_TEXT(a, "show.fabric",
                           N_("{name}: {one} GB/s one way, {both} GB/s both ways "
                              "together"),
                           tv_arg_str("name", d->fabric), giga(a, "one", d->nvlink_bytes_per_s.v),
                           giga(a, "both", d->nvlink_both_bytes_per_s.v))),
        d->nvlink_bytes_per_s);
}

static tv_str group_line(const tv_page *page, const tv_device *d)
{
    tv_arena *a = page->b->a;
    const double n = d->nvlink_group;
    switch (d->fabric_shape) {
    case TV_FABRIC_UNKNOWN:
        return (tv_str){0};
    case TV_FABRIC_BRIDGE:
        return text(page, TV_TEXT(a, "show.group-bridge", N_("{n}, by a bridge"),
                                  tv_arg_num("n", TV_ARG_NUMBER, n)));
    case TV_FABRIC_MESH:
        return text(page, TV_TEXT(a, "show.group-mesh", N_("{n}, each with links to the others"),
                                  tv_arg_num("n", TV_ARG_NUMBER, n)));
    case TV_FABRIC_SWITCH:
        return text(page, TV_TEXT(a, "show.group-switch",
                                  N_("{n}, through switches: every pair at the full rate"),
                                  tv_arg_num("n", TV_ARG_NUMBER, n)));
    case TV_FABRIC_TORUS:
        return say(page, N_("a torus of many"));
    }
    return (tv_str){0};
}

static tv_str slot_line(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    tv_arena *a = page->b->a;
    tv_fact wire = {0}, reached = {0};
    const int lanes = tv_known(d->pcie_lanes) ? (int)d->pcie_lanes.v : 0;
    if (!tv_known(d->pcie_gen) || !lanes)
        return say(page, N_("unknown"));
    if (tv_catalog_pcie(g->market.catalog, (int)d->pcie_gen.v, lanes, &wire, &reached) ||
        !tv_known(wire))
        return text(page, TV_TEXT(a, "show.slot", N_("gen {gen} × {lanes}"),
                                  tv_arg_num("gen", TV_ARG_NUMBER, d->pcie_gen.v),
                                  tv_arg_num("lanes", TV_ARG_NUMBER, lanes)));
    return text(page,
                TV_TEXT(a, "show.slot-rate",
                        N_("gen {gen} × {lanes}: {wire} GB/s one way ({both} GB/s both ways), "
                           "about {reached} GB/s reached"),
                        tv_arg_num("gen", TV_ARG_NUMBER, d->pcie_gen.v),
                        tv_arg_num("lanes", TV_ARG_NUMBER, lanes), giga(a, "wire", wire.v),
                        giga(a, "both", 2 * wire.v), giga(a, "reached", reached.v)));
}

/* R077: like for like, and where the larger number that goes round comes from. */
static void put_link_ratio(const tv_page *page, const tv_device *d)
{
    const tv_fact slot = tv_card_slot_nominal(d);
    if (!tv_known(d->nvlink_bytes_per_s) || !tv_known(slot))
        return;
    const tv_link_ratio ratio =
        tv_rule_link_ratio(d->nvlink_both_bytes_per_s.v, true, slot.v, false);
    tv_arena *a = page->b->a;
    tv_buf one = tv_buf_in(a);
    tv_put_short(&one, ratio.one_way, 2);
    tv_page_text(
        page, TV_DIM, 2,
        TV_TEXT(a, "show.link-ratio",
                N_("{name} {one} against PCIe {slot} GB/s, both one way as makers state them: "
                   "{ratio} times. {both} / {slot} = {headline} sets both directions of one link "
                   "against one direction of the other."),
                tv_arg_str("name", d->fabric), giga(a, "one", d->nvlink_bytes_per_s.v),
                giga(a, "slot", slot.v), tv_arg_str("ratio", tv_buf_str(&one)),
                giga(a, "both", d->nvlink_both_bytes_per_s.v),
                tv_arg_num("headline", TV_ARG_NUMBER, ratio.headline)));
}

static void put_links(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    tv_table t = pairs();
    tv_page_head(page, N_("links"));
    put_pair(page, &t, N_("between cards"), fabric_line(page, d));
    put_pair(page, &t, N_("joins at most"), group_line(page, d));
    put_pair(page, &t, "PCIe", slot_line(g, page, d));
    put_pair(page, &t, N_("peer access over PCIe"), yes_no(page, d->p2p_over_pcie));
    tv_table_put(page, &t, 2);
    put_link_ratio(page, d);
}

/* ---- power, software, price ---- */

static tv_str watts(const tv_page *page, const tv_device *d)
{
    tv_arena *a = page->b->a;
    if (!tv_known(d->board_w))
        return say(page, N_("unknown"));
    if (!tv_known(d->board_min_w))
        return sourced(a, tv_str_join(a, tv_show_number(a, d->board_w, 4), TV_S(" W")), d->board_w);
    return sourced(a,
                   text(page, TV_TEXT(a, "show.watts", N_("{low} to {high}"),
                                      tv_arg_num("low", TV_ARG_WATTS, d->board_min_w.v),
                                      tv_arg_num("high", TV_ARG_WATTS, d->board_w.v))),
                   d->board_w);
}

static tv_str stack_line(const tv_page *page, const char *how, tv_support support)
{
    static const char *const levels[] = {N_("unknown"), N_("none"), N_("plug-in or fork"),
                                         N_("wheels")};
    tv_arena *a = page->b->a;
    return text(page, TV_TEXT(a, "show.stack", N_("{level}: {how}"),
                              tv_arg_word("level", levels[support]), tv_arg_word("how", how)));
}

static tv_str confidence(const tv_page *page, tv_str word)
{
    static const char *const words[] = {N_("high"), N_("medium"), N_("low")};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_str_is(word, words[i]))
            return say(page, words[i]);
    return word;
}

static void put_rest(const tv_page *page, const tv_device *d)
{
    tv_arena *a = page->b->a;
    const tv_card_stack s = tv_card_frameworks(d);
    tv_table t = pairs();
    tv_page_head(page, N_("power and software"));
    put_pair(page, &t, N_("board power"), watts(page, d));
    if (tv_known(d->mig_max))
        put_pair(page, &t, N_("MIG instances"), tv_show_number(a, d->mig_max, 3));
    if (tv_known(d->slowdown_temp_c))
        put_pair(page, &t, N_("slows down at"),
                 tv_str_join(a, tv_show_number(a, d->slowdown_temp_c, 3), TV_S(" °C")));
    put_pair(page, &t, "PyTorch", stack_line(page, s.torch, s.on_torch));
    put_pair(page, &t, "PaddlePaddle", stack_line(page, s.paddle, s.on_paddle));
    put_pair(page, &t, N_("CUDA cores"),
             tv_known(d->cuda_cores)
                 ? text(page, TV_TEXT(a, "show.cores",
                                      N_("{n} (says little: rank by rates and "
                                         "bandwidth)"),
                                      tv_arg_num("n", TV_ARG_COUNT, d->cuda_cores.v)))
                 : (tv_str){0});
    put_pair(page, &t, N_("confidence"), confidence(page, d->confidence));
    tv_table_put(page, &t, 2);
}

static void add_price(const tv_gpus_run *g, tv_table *t, const tv_price *p)
{
    tv_arena *a = g->r->a;
    const int age = tv_date_age_days(p->date, g->r->today);
    const bool stale = age > TV_COST_STALE_DAYS;
    tv_table_add(a, t, TV_PLAIN, tv_show_price(a, p));
    tv_table_add(a, t, stale ? TV_YELLOW : TV_PLAIN, p->date.n ? p->date : TV_S("?"));
    tv_table_add(a, t, TV_DIM, p->source);
    tv_table_add(a, t, TV_DIM, p->channel);
}

static void put_offer(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    tv_offer_list offers = {0};
    if (tv_catalog_offers(g->market.catalog, g->o->money.prices_file, &offers))
        return;
    const tv_offer_query q = {.gpu = d->slug, .today = g->r->today};
    const tv_offer *o = tv_offer_cheapest(offers, &q);
    if (!o)
        return;
    tv_buf price = tv_buf_in(page->b->a);
    const tv_str place[] = {o->provider, o->instance, o->region};
    const tv_str who = joined(page->b->a, place, sizeof place / sizeof *place);
    tv_put_fixed(&price, tv_offer_gpu_per_h(o, false), 2);
    tv_page_text(page, TV_PLAIN, 2,
                 TV_TEXT(page->b->a, "show.rent",
                         N_("rent from {price} {currency} an hour: {provider}, {date} [{source}]"),
                         tv_arg_str("price", tv_buf_str(&price)),
                         tv_arg_str("currency", o->currency), tv_arg_str("provider", who),
                         tv_arg_str("date", o->date.n ? o->date : TV_S("?")),
                         tv_arg_str("source", o->source)));
}

/* The oldest price that is shown decides about the warning (R136). */
static void put_prices(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    static const tv_column columns[] = {{.right = true}, {0}, {0}, {.flex = true}};
    tv_table t = {.columns = columns, .n_columns = 4};
    int oldest = -1;
    tv_page_head(page, N_("prices of one card"));
    for (size_t i = 0; i < d->n_prices; i++) {
        const int age = tv_date_age_days(d->prices[i].date, g->r->today);
        oldest = age > oldest ? age : oldest;
        add_price(g, &t, &d->prices[i]);
    }
    if (tv_known(d->msrp_usd))
        add_price(g, &t,
                  &(tv_price){.currency = TV_S("USD"),
                              .value = d->msrp_usd.v,
                              .date = d->msrp_usd.as_of,
                              .channel = say(page, N_("list price at launch")),
                              .source = d->msrp_usd.source});
    if (!t.n)
        tv_page_text(page, TV_DIM, 2, TV_TEXT0("show.no-price", N_("none is known")));
    tv_table_put(page, &t, 2);
    put_offer(g, page, d);
    if (oldest > TV_COST_STALE_DAYS)
        tv_page_text(page, TV_YELLOW, 2,
                     TV_TEXT(page->b->a, "show.stale",
                             N_("stale: a price is {days} days old, ask again before you buy; "
                                "--prices FILE holds your own"),
                             tv_arg_num("days", TV_ARG_COUNT, oldest)));
    else if (oldest < 0 && t.n && !g->r->today.n)
        tv_page_text(page, TV_DIM, 2,
                     TV_TEXT0("show.no-today", N_("--today DATE judges how old they are")));
}

static const tv_err *put_remarks(const tv_gpus_run *g, const tv_page *page, const tv_device *d)
{
    tv_texts_list list = {0};
    tv_texts notes = {0};
    tv_card_remarks(page->b->a, d, &list);
    TV_TRY(tv_card_notes(g, d, &notes));
    if (list.n || notes.n)
        tv_page_head(page, N_("to know"));
    for (size_t i = 0; i < list.n; i++)
        tv_page_text(page, TV_PLAIN, 2, list.v[i]);
    for (size_t i = 0; i < notes.n; i++)
        tv_page_wrap(page, TV_PLAIN, 2, notes.v[i]);
    return NULL;
}

/* ---- what it is enough for ---- */

static void put_held(const tv_page *page, const tv_held_job *jobs, size_t n)
{
    static const tv_column columns[] = {
        {.head = N_("model"), .flex = true},
        {.head = N_("job")},
        {.head = N_("needs"), .right = true},
        {.head = N_("left"), .right = true},
        {.head = N_("fits?")},
    };
    static const char *const words[] = {N_("unknown"), N_("fits"), N_("tight"), N_("no")};
    static const tv_style styles[] = {TV_DIM, TV_GREEN, TV_YELLOW, TV_RED};
    tv_arena *a = page->b->a;
    tv_table t = {.columns = columns, .n_columns = 5};
    for (size_t i = 0; i < n; i++) {
        const tv_held_job *j = &jobs[i];
        tv_buf left = tv_buf_in(a);
        const tv_fact need = tv_fact_of(j->need_bytes, TV_COMPUTED, (tv_str){0});
        if (!j->blocked)
            tv_put_memory(&left, j->have_bytes - j->need_bytes);
        tv_table_add(a, &t, TV_PLAIN, j->model);
        tv_table_add(a, &t, TV_DIM, tv_held_words(a, j));
        tv_table_add(a, &t, TV_PLAIN, j->blocked ? TV_S("") : tv_show_memory(a, need));
        tv_table_add(a, &t, TV_PLAIN, tv_buf_str(&left));
        tv_table_add(a, &t, styles[j->verdict],
                     say(page, j->blocked ? j->blocked : words[j->verdict]));
    }
    tv_page_head(page, N_("what its memory is enough for"));
    tv_table_put(page, &t, 2);
    tv_page_text(
        page, TV_DIM, 2,
        TV_TEXT0("show.held", N_("reckoned as `trivet size` does, mixed precision where there are "
                                 "tensor cores; ask it for your own job")));
}

/* ---- the answers ---- */

static const tv_err *show_card(tv_gpus_run *g, const tv_device *d)
{
    const tv_held_job *jobs = NULL;
    size_t n = 0;
    const double have = tv_device_memory(d);
    if (have > 0)
        TV_TRY(tv_gpus_held(g, d, have, &jobs, &n));
    if (g->r->json) {
        tv_json_out w = tv_json_write(g->r->out);
        tv_json_card(g, &w, d, jobs, n);
        return NULL;
    }
    const tv_page page = tv_page_on(g->r, g->r->out);
    put_head(&page, d);
    put_memory(&page, d);
    put_rates(&page, d);
    put_dtypes(&page, d);
    put_links(g, &page, d);
    put_rest(&page, d);
    put_prices(g, &page, d);
    TV_TRY(put_remarks(g, &page, d));
    if (n)
        put_held(&page, jobs, n);
    return NULL;
}

static void member_row(const tv_gpus_run *g, tv_table *t, const tv_device *d)
{
    tv_arena *a = g->r->a;
    tv_table_add(a, t, TV_PLAIN, d->slug);
    tv_table_add(a, t, TV_PLAIN, tv_show_memory(a, d->mem_bytes));
    tv_table_add(a, t, TV_PLAIN, tv_show_rate(a, d->mem_bytes_per_s));
    tv_table_add(a, t, TV_PLAIN, tv_show_flops(a, tv_card_training_rate(d).fact));
    tv_buf group = tv_buf_in(a);
    if (d->nvlink_group > 0)
        tv_put_u64(&group, (uint64_t)d->nvlink_group);
    else
        tv_puts(&group, tv_str_is(d->fabric, "none") ? "–" : "?");
    tv_table_add(a, t, TV_PLAIN, tv_buf_str(&group));
    tv_table_add(a, t, TV_PLAIN, tv_show_number(a, d->board_w, 4));
}

static tv_str key_names(tv_arena *a, const char *const *keys, size_t n)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < n; i++) {
        tv_puts(&b, i ? ", " : "");
        tv_puts(&b, keys[i]);
    }
    return tv_buf_str(&b);
}

static void group_text(const tv_gpus_run *g, const tv_device_group *group, const char *const *keys,
                       size_t n_keys)
{
    static const tv_column columns[] = {
        {.head = N_("card"), .flex = true},       {.head = N_("memory"), .right = true},
        {.head = N_("bandwidth"), .right = true}, {.head = N_("TFLOP/s"), .right = true},
        {.head = N_("joins"), .right = true},     {.head = N_("W"), .right = true},
    };
    const tv_page page = tv_page_on(g->r, g->r->out);
    tv_table t = {.columns = columns, .n_columns = 6};
    tv_page_text(&page, TV_BOLD, 0,
                 TV_TEXT(g->r->a, "show.group", N_("\"{name}\" stands for {count} cards"),
                         tv_arg_str("name", group->slug),
                         tv_arg_num("count", TV_ARG_COUNT, (double)group->n_members)));
    for (size_t i = 0; i < group->n_members; i++)
        member_row(g, &t, group->members[i]);
    tv_table_put(&page, &t, 2);
    tv_putc(g->r->out, '\n');
    tv_page_text(&page, TV_PLAIN, 0,
                 TV_TEXT(g->r->a, "show.group-differs", N_("they differ in: {keys}"),
                         tv_arg_str("keys", key_names(g->r->a, keys, n_keys))));
    tv_page_text(&page, TV_DIM, 0,
                 TV_TEXT0("show.group-one", N_("show one of them for all that is known")));
}

static const tv_err *show_group(tv_gpus_run *g, const tv_device_group *group)
{
    const char **keys = NULL;
    const size_t n = tv_card_differences(g->r->a, group->members, group->n_members, &keys);
    if (!g->r->json) {
        group_text(g, group, keys, n);
        return NULL;
    }
    tv_json_out w = tv_json_write(g->r->out);
    tv_json_begin(&w, '{');
    tv_json_key(&w, "group");
    tv_json_put_str(&w, group->slug);
    tv_json_key(&w, "name");
    tv_json_put_str(&w, group->name);
    tv_json_key(&w, "differs");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < n; i++)
        tv_json_put_str(&w, tv_str_of(keys[i]));
    tv_json_end(&w, ']');
    tv_json_key(&w, "members");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < group->n_members; i++)
        tv_json_card(g, &w, group->members[i], NULL, 0);
    tv_json_end(&w, ']');
    tv_json_end(&w, '}');
    return NULL;
}

/* "12GB": no card, but what so much memory is enough for (R025). */
static const tv_err *show_amount(tv_gpus_run *g, double bytes)
{
    const tv_held_job *jobs = NULL;
    size_t n = 0;
    TV_TRY(tv_gpus_held(g, NULL, bytes, &jobs, &n));
    if (g->r->json) {
        tv_json_out w = tv_json_write(g->r->out);
        tv_json_begin(&w, '{');
        tv_json_key(&w, "mem_bytes");
        tv_json_put_num(&w, bytes);
        tv_json_key(&w, "jobs");
        tv_json_held(g, &w, jobs, n);
        tv_json_end(&w, '}');
        return NULL;
    }
    const tv_page page = tv_page_on(g->r, g->r->out);
    tv_page_text(&page, TV_BOLD, 0,
                 TV_TEXT(g->r->a, "show.amount", N_("{gb} ({have}) of memory"),
                         tv_arg_num("gb", TV_ARG_DISK, bytes),
                         tv_arg_num("have", TV_ARG_MEMORY, bytes)));
    tv_page_text(&page, TV_DIM, 0,
                 TV_TEXT0("show.amount-binary",
                          N_("memory of a card that is sold as GB is counted in GiB: 12GiB for a "
                             "card of 12 GB")));
    put_held(&page, jobs, n);
    return NULL;
}

static bool is_amount(tv_str name, double *bytes)
{
    const tv_double_read read = tv_read_bytes(name);
    const bool unit = name.n && (name.p[name.n - 1] == 'B' || name.p[name.n - 1] == 'b');
    *bytes = read.v;
    return unit && read.ok && read.v > 0;
}

const tv_err *tv_gpus_show(tv_gpus_run *g, tv_str name)
{
    double bytes = 0;
    tv_naming found = {0};
    if (is_amount(name, &bytes))
        return show_amount(g, bytes);
    TV_TRY(tv_catalog_find(g->market.catalog, name, 0, &found));
    return found.device ? show_card(g, found.device) : show_group(g, found.group);
}
