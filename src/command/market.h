/* The catalogue as a job meets it: which machine holds a card, how its cards talk, what it costs.
 * Fills nouns for search and predict, which know no catalogue. */
#ifndef TV_MARKET_H
#define TV_MARKET_H

#include "catalog/catalog.h"
#include "desc/estimate.h"
#include "desc/request.h"
#include "job_options.h"

typedef struct tv_market {
    tv_request *r;
    tv_catalog *catalog;
    const tv_machine_options *machine;
    const tv_money_options *money;
    tv_offer_list offers; /* sorted by card */
} tv_market;

const tv_err *tv_market_open(tv_request *r, const tv_machine_options *machine,
                             const tv_money_options *money, tv_market *out) TV_CHECKED;

/* The machine that holds `gpus` of a card per node; ctx is a tv_market. */
const tv_err *tv_market_machine(void *ctx, tv_arena *a, const tv_device *d, uint32_t gpus,
                                uint32_t nodes, tv_machine *machine) TV_CHECKED;

/* Reads every offer, --prices included, and sorts them; tv_market_open does it. */
const tv_err *tv_market_read_offers(tv_market *m) TV_CHECKED;

/* Fills est->cost from offers, prices and the money options; ctx is a tv_market. */
void tv_market_price(void *ctx, tv_arena *a, tv_estimate *est);

/* Every card that --gpu names ("a,b"; groups give all their members), or the whole catalogue. */
typedef struct tv_card_list {
    const tv_device **v;
    size_t n;
    size_t cap;
} tv_card_list;

const tv_err *tv_market_cards(tv_market *m, tv_card_list *cards) TV_CHECKED;

#endif
