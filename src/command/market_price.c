/* The money of an estimate: the cheapest offer for its cards, the newest price of the card, the
 * user's own rates. Offers are sorted by card once, so that a whole catalogue can be priced. */
#include "market.h"

#include "cost/cost.h"

#include <stdlib.h>

/* Prices without a currency of the user's own: as the rows of the options promise. */
static tv_str wanted_currency(const tv_market *m)
{
    switch (m->money->currency) {
    case TV_CNY:
        return TV_S("CNY");
    case TV_USD:
        return TV_S("USD");
    case TV_CURRENCY_DEFAULT:
    case TV_CURRENCY_COUNT:
        break;
    }
    return m->r->lang == TV_ZH ? TV_S("CNY") : TV_S("USD");
}

/* ---- offers by card ---- */

static int by_gpu(const void *x, const void *y)
{
    const tv_offer *p = x, *q = y;
    const int order = tv_str_cmp(p->gpu, q->gpu);
    if (order)
        return order;
    return tv_str_cmp(q->date, p->date); /* the newest first */
}

const tv_err *tv_market_read_offers(tv_market *m)
{
    tv_offer_list all = {0};
    TV_TRY(tv_catalog_offers(m->catalog, m->money->prices_file, &all));
    tv_offer *sorted = tv_new(m->r->a, tv_offer, all.n + 1);
    for (size_t i = 0; i < all.n; i++)
        sorted[i] = all.v[i];
    if (all.n)
        qsort(sorted, all.n, sizeof *sorted, by_gpu);
    m->offers = (tv_offer_list){sorted, all.n};
    return NULL;
}

static tv_offer_list offers_of(const tv_market *m, tv_str gpu)
{
    size_t low = 0, high = m->offers.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (tv_str_cmp(m->offers.v[mid].gpu, gpu) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    size_t end = low;
    while (end < m->offers.n && tv_str_eq(m->offers.v[end].gpu, gpu))
        end++;
    return (tv_offer_list){m->offers.v + low, end - low};
}

/* ---- the cheapest ---- */

typedef struct rent {
    const tv_offer *offer;
    double per_h;  /* of all cards, in the offer's currency */
    double wanted; /* the same in the wanted currency; in its own where there is no rate */
    bool fits;     /* in the wanted currency */
} rent;

static bool is_cheaper(const rent *x, const rent *best)
{
    if (!best->offer || x->fits != best->fits)
        return !best->offer || x->fits;
    if (x->wanted < best->wanted)
        return true;
    /* two currencies without a rate between them have no order: the first stays */
    return false;
}

static rent rent_of(const tv_market *m, const tv_offer *o, const tv_machine *machine, bool spot)
{
    rent r = {.offer = o};
    r.per_h =
        tv_cost_node_per_h(o, machine->gpus, spot) * (double)(machine->nodes ? machine->nodes : 1);
    const tv_double_read v =
        tv_cost_convert(r.per_h, o->currency, wanted_currency(m), m->money->fx);
    r.fits = v.ok;
    r.wanted = v.ok ? v.v : r.per_h;
    return r;
}

/* Whole instances count, so an instance of eight does not look cheap for one card. */
static rent cheapest(const tv_market *m, const tv_machine *machine)
{
    const tv_offer_list list = offers_of(m, machine->device->slug);
    const tv_offer_query q = {.gpu = machine->device->slug, .today = m->r->today};
    rent best = {0};
    for (size_t i = 0; i < list.n; i++) {
        if (!tv_offer_counts(&list.v[i], &q))
            continue;
        const rent r = rent_of(m, &list.v[i], machine, false);
        if (r.per_h > 0 && is_cheaper(&r, &best))
            best = r;
    }
    return best;
}

void tv_market_price(void *ctx, tv_arena *a, tv_estimate *est)
{
    const tv_market *m = ctx;
    const tv_machine *machine = est->machine;
    if (!machine || !machine->device)
        return;
    const tv_str currency = wanted_currency(m);
    const rent r = cheapest(m, machine);
    tv_cost_input in = {
        .device = machine->device,
        .gpus = machine->gpus,
        .nodes = machine->nodes,
        .currency = currency,
        .cny_per_usd = m->money->fx,
        .offer = r.offer,
        .offer_age_days = r.offer ? tv_date_age_days(r.offer->date, m->r->today) : -1,
        .offer_per_h = r.per_h,
        .card = tv_cost_card_price(machine->device, currency, m->money->fx),
        .run_s = est->time.run_s,
        .kwh_price = m->money->kwh_price,
        .pue = m->money->pue,
        .hours_per_year = m->money->hours_per_year,
    };
    in.offers_smaller = !r.offer && offers_of(m, machine->device->slug).n > 0;
    if (r.offer)
        in.spot_per_h = rent_of(m, r.offer, machine, true).per_h;
    in.card_age_days = tv_date_age_days(in.card.date, m->r->today);
    tv_cost_fill(a, &in, &est->cost);
}
