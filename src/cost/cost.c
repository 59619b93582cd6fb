/* The sums of cost.h. Unknown stays unknown: a missing price, wattage or rate makes the amount
 * unknown, never 0. */
#include "cost.h"

#include <math.h>

static tv_fact computed(double v, const char *source)
{
    return tv_fact_of(v, TV_COMPUTED, tv_str_of(source));
}

/* ---- currencies ---- */

tv_double_read tv_cost_convert(double v, tv_str from, tv_str to, double cny_per_usd)
{
    if (tv_str_eq(from, to))
        return (tv_double_read){v, true};
    if (!(cny_per_usd > 0))
        return (tv_double_read){0};
    if (tv_str_is(from, "USD") && tv_str_is(to, "CNY"))
        return (tv_double_read){v * cny_per_usd, true};
    if (tv_str_is(from, "CNY") && tv_str_is(to, "USD"))
        return (tv_double_read){v / cny_per_usd, true};
    return (tv_double_read){0};
}

/* ---- rent ---- */

double tv_cost_node_per_h(const tv_offer *o, uint32_t gpus, bool spot)
{
    const double node = spot ? o->node_spot_per_h : o->node_per_h;
    if (!o->gpu_count || !(node > 0) || !gpus)
        return 0;
    if (o->gpu_count >= gpus)
        return node;
    if (o->instance.n)
        return 0;
    return node * ceil((double)gpus / (double)o->gpu_count);
}

/* docs/model.md, Cost: T = h + rate·T·loss, so T = h / (1 - rate·loss) with loss = checkpoint/2 +
 * restart. */
tv_fact tv_cost_spot_hours(const tv_spot *s)
{
    const double lost = s->interruptions_per_h * (s->checkpoint_h / 2 + s->restart_h);
    if (!(s->run_h > 0) || !(lost < 1))
        return (tv_fact){0};
    return computed(s->run_h / (1 - lost), "docs/model.md, Cost: spot");
}

tv_fact tv_cost_spot_run(const tv_spot *s)
{
    tv_fact f = tv_cost_spot_hours(s);
    if (!tv_known(f) || !(s->per_h > 0))
        return (tv_fact){0};
    return computed(f.v * s->per_h, "docs/model.md, Cost: spot");
}

/* ---- own ---- */

double tv_cost_power_per_h(double watts, double pue, double kwh_price)
{
    return watts / 1000 * pue * kwh_price;
}

tv_fact tv_cost_energy_year(tv_fact board_w, double cards, double hours, double pue,
                            double kwh_price)
{
    if (!tv_known(board_w) || !(board_w.v > 0) || !(kwh_price > 0) || !(cards > 0))
        return (tv_fact){0};
    const double watts = board_w.v * cards;
    return computed(tv_cost_power_per_h(watts, pue, kwh_price) * hours,
                    "docs/model.md, Cost: electricity");
}

tv_fact tv_cost_break_even_h(double price, double fixed_hidden, double rent_per_h,
                             double running_per_h)
{
    if (!(price > 0) || !(rent_per_h > running_per_h))
        return (tv_fact){0};
    return computed((price + fixed_hidden) / (rent_per_h - running_per_h),
                    "docs/model.md, Cost: rent against buy");
}

static tv_price list_price(const tv_device *d)
{
    if (!tv_known(d->msrp_usd))
        return (tv_price){0};
    return (tv_price){.currency = TV_S("USD"),
                      .value = d->msrp_usd.v,
                      .date = d->msrp_usd.as_of,
                      .channel = TV_S("list price"),
                      .source = d->msrp_usd.source};
}

static bool is_better(const tv_price *p, const tv_price *best, tv_str currency, double rate)
{
    if (!(p->value > 0) || !(best->value > 0))
        return p->value > 0;
    const bool p_fits = tv_cost_convert(1, p->currency, currency, rate).ok;
    const bool best_fits = tv_cost_convert(1, best->currency, currency, rate).ok;
    if (p_fits != best_fits)
        return p_fits;
    return tv_str_cmp(p->date, best->date) > 0; /* dates of the catalogue sort as text */
}

tv_price tv_cost_card_price(const tv_device *d, tv_str currency, double cny_per_usd)
{
    tv_price best = list_price(d);
    for (size_t i = 0; i < d->n_prices; i++)
        if (is_better(&d->prices[i], &best, currency, cny_per_usd))
            best = d->prices[i];
    return best;
}

/* ---- hidden costs ---- */

const char *tv_hidden_id(tv_hidden h)
{
    switch (h) {
    case TV_HIDDEN_ELECTRICITY:
        return "electricity";
    case TV_HIDDEN_COOLING:
        return "cooling";
    case TV_HIDDEN_NETWORK:
        return "network";
    case TV_HIDDEN_OPERATION:
        return "operation";
    case TV_HIDDEN_IDLE:
        return "idle";
    case TV_HIDDEN_COUNT:
        break;
    }
    return "";
}

const char *tv_hidden_name(tv_hidden h)
{
    switch (h) {
    case TV_HIDDEN_ELECTRICITY:
        return N_("electricity");
    case TV_HIDDEN_COOLING:
        return N_("cooling, rack and room");
    case TV_HIDDEN_NETWORK:
        return N_("network and storage");
    case TV_HIDDEN_OPERATION:
        return N_("operation, labour and downtime");
    case TV_HIDDEN_IDLE:
        return N_("idle time, depreciation and migration");
    case TV_HIDDEN_COUNT:
        break;
    }
    return "";
}

tv_hidden_sum tv_cost_hidden_sum(const tv_hidden_cost *v, size_t n, double base)
{
    tv_hidden_sum sum = {0};
    for (size_t i = 0; i < n; i++) {
        if (v[i].known)
            sum.total += v[i].amount;
        else
            sum.n_unknown++;
    }
    sum.share = base > 0 ? sum.total / base : 0;
    return sum;
}

/* ---- work for money and energy ---- */

double tv_cost_energy_per_work_j(double watts, double rate_per_s)
{
    return rate_per_s > 0 ? watts / rate_per_s : 0;
}

double tv_cost_work_per_joule(double watts, double rate_per_s)
{
    return watts > 0 ? rate_per_s / watts : 0;
}

double tv_cost_per_million(double per_h, double rate_per_s)
{
    return rate_per_s > 0 ? per_h / 3600 / rate_per_s * 1e6 : 0;
}

/* ---- all of it ---- */

typedef struct filler {
    tv_arena *a;
    const tv_cost_input *in;
    tv_cost *out;
    struct {
        tv_text *v;
        size_t n, cap;
    } notes;
} filler;

static void note(filler *f, tv_text t)
{
    *tv_push(f->a, &f->notes) = t;
}

/* What a price is in before any conversion: the offer's currency, the card's, the wanted one. */
static tv_str own_currency(const tv_cost_input *in)
{
    if (in->offer)
        return in->offer->currency;
    return in->card.value > 0 ? in->card.currency : in->currency;
}

static void choose_currency(filler *f)
{
    const tv_str own = own_currency(f->in);
    f->out->currency = f->in->currency;
    if (tv_cost_convert(1, own, f->in->currency, f->in->cny_per_usd).ok)
        return;
    f->out->currency = own;
    note(f, TV_TEXT(f->a, "cost.no-rate",
                    N_("prices are in {own}: without an exchange rate (--fx) they are not turned "
                       "into {wanted}"),
                    tv_arg_str("own", own), tv_arg_str("wanted", f->in->currency)));
}

/* A dated price, turned into the answer's currency. */
static tv_fact priced(const filler *f, double v, tv_str currency, tv_str source, tv_str date)
{
    const tv_double_read r = tv_cost_convert(v, currency, f->out->currency, f->in->cny_per_usd);
    if (!r.ok || !(v > 0))
        return (tv_fact){0};
    tv_fact fact = tv_fact_of(r.v, TV_CATALOG, source);
    fact.as_of = date;
    return fact;
}

static tv_str join(tv_arena *a, tv_str x, const char *between, tv_str y)
{
    if (!x.n || !y.n)
        return x.n ? x : y;
    return tv_str_join(a, tv_str_join(a, x, tv_str_of(between)), y);
}

static void fill_rent(filler *f)
{
    const tv_offer *o = f->in->offer;
    tv_cost *out = f->out;
    if (!o && f->in->offers_smaller)
        note(f, TV_TEXT(f->a, "cost.no-machine",
                        N_("no offer of the last year holds {n} of this card in one machine"),
                        tv_arg_num("n", TV_ARG_COUNT, f->in->gpus)));
    if (!o)
        return;
    out->offer = join(f->a, join(f->a, o->provider, " ", o->instance), ", ", o->region);
    out->price_date = o->date;
    out->price_source = o->source;
    out->stale = f->in->offer_age_days > TV_COST_STALE_DAYS;
    out->per_hour = priced(f, f->in->offer_per_h, o->currency, o->source, o->date);
    out->spot_per_hour = priced(f, f->in->spot_per_h, o->currency, o->source, o->date);
    if (!(f->in->run_s > 0) || !tv_known(out->per_hour))
        return;
    out->per_run = computed(out->per_hour.v * f->in->run_s / 3600, "docs/model.md, Cost: rent");
    out->per_run.as_of = o->date;
}

static double cards(const tv_cost_input *in)
{
    return (double)(in->gpus ? in->gpus : 1) * (double)(in->nodes ? in->nodes : 1);
}

static void fill_buy(filler *f)
{
    const tv_price *p = &f->in->card;
    if (!(p->value > 0))
        return;
    f->out->buy = priced(f, p->value * cards(f->in), p->currency, p->source, p->date);
    if (f->in->offer)
        return;
    f->out->price_date = p->date;
    f->out->price_source = p->source;
    f->out->stale = f->in->card_age_days > TV_COST_STALE_DAYS;
}

static double hours(const tv_cost_input *in)
{
    return in->hours_per_year > 0 ? in->hours_per_year : TV_HOURS_PER_YEAR;
}

static void fill_energy(filler *f)
{
    const tv_cost_input *in = f->in;
    const double pue = in->pue > 0 ? in->pue : 1;
    const tv_double_read price =
        tv_cost_convert(in->kwh_price, in->currency, f->out->currency, in->cny_per_usd);
    if (!in->device || !price.ok)
        return;
    f->out->energy_per_year =
        tv_cost_energy_year(in->device->board_w, cards(in), hours(in), pue, price.v);
    if (tv_known(f->out->energy_per_year))
        note(f, TV_TEXT(f->a, "cost.energy",
                        N_("electricity is that of the cards at full board power for {hours} hours "
                           "at PUE {pue}"),
                        tv_arg_num("hours", TV_ARG_COUNT, hours(in)),
                        tv_arg_num("pue", TV_ARG_NUMBER, pue)));
}

static tv_hidden_cost hidden_row(const filler *f, tv_hidden h)
{
    const tv_cost_input *in = f->in;
    tv_hidden_cost row = {.id = tv_hidden_id(h)};
    const tv_fact stated = in->hidden_year[h];
    const tv_double_read r =
        tv_cost_convert(stated.v, in->currency, f->out->currency, in->cny_per_usd);
    if (tv_known(stated) && r.ok) {
        row.known = true;
        row.amount = r.v;
        row.basis = stated.source.n ? stated.source : TV_S("stated");
    } else if (h == TV_HIDDEN_ELECTRICITY && tv_known(f->out->energy_per_year)) {
        row.known = true;
        row.amount = f->out->energy_per_year.v;
        row.basis = f->out->energy_per_year.source;
    }
    return row;
}

static void fill_hidden(filler *f)
{
    tv_hidden_cost *rows = tv_new(f->a, tv_hidden_cost, TV_HIDDEN_COUNT);
    for (tv_hidden h = 0; h < TV_HIDDEN_COUNT; h++)
        rows[h] = hidden_row(f, h);
    f->out->hidden = rows;
    f->out->n_hidden = TV_HIDDEN_COUNT;
}

/* Who says what a kWh or a hidden row costs owns the cards: the first year is purchase and hidden
 * costs. Else a year of rent, for the hours of use. */
static void fill_year(filler *f)
{
    tv_cost *out = f->out;
    const tv_hidden_sum hidden = tv_cost_hidden_sum(out->hidden, out->n_hidden, out->buy.v);
    if (tv_known(out->buy) && hidden.n_unknown < out->n_hidden) {
        out->total_year =
            computed(out->buy.v + hidden.total, "docs/model.md, Cost: first year owned");
        if (hidden.n_unknown)
            note(f, TV_TEXT(f->a, "cost.hidden-unknown",
                            N_("the year is the purchase and the known hidden costs; {n} of {all} "
                               "hidden costs are not known and not in it"),
                            tv_arg_num("n", TV_ARG_COUNT, (double)hidden.n_unknown),
                            tv_arg_num("all", TV_ARG_COUNT, (double)out->n_hidden)));
        return;
    }
    if (!tv_known(out->per_hour))
        return;
    out->total_year =
        computed(out->per_hour.v * hours(f->in), "docs/model.md, Cost: a year of rent");
    note(f, TV_TEXT(f->a, "cost.year-rent", N_("the year is {hours} hours of rent"),
                    tv_arg_num("hours", TV_ARG_COUNT, hours(f->in))));
}

void tv_cost_fill(tv_arena *a, const tv_cost_input *in, tv_cost *out)
{
    *out = (tv_cost){0};
    filler f = {.a = a, .in = in, .out = out};
    choose_currency(&f);
    fill_rent(&f);
    fill_buy(&f);
    fill_energy(&f);
    fill_hidden(&f);
    fill_year(&f);
    out->notes = f.notes.v;
    out->n_notes = f.notes.n;
}
