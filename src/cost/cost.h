/* Money and energy of a job, from facts that the caller found: rent, purchase, electricity, the
 * five hidden costs, rent against buy. Reads no price list and no clock. Formulas: docs/model.md,
 * Cost. Amounts are in one currency each; a conversion needs a rate that somebody stated. */
#ifndef TV_COST_H
#define TV_COST_H

#include "desc/estimate.h"

/* Older prices are shown with a warning (R136). */
#define TV_COST_STALE_DAYS 90

/* A year that is not a leap year. */
#define TV_HOURS_PER_YEAR 8760.0

/* ---- currencies ---- */

/* v of one currency in another; ok is false when they differ and the rate between them is not
 * known. cny_per_usd: 0 unknown. */
tv_double_read tv_cost_convert(double v, tv_str from, tv_str to, double cny_per_usd);

/* ---- rent ---- */

/* What `gpus` cards of one machine cost an hour from an offer: whole instances are rented. Offers
 * without the name of an instance quote a card and are taken several times; an instance that holds
 * fewer cards gives 0. */
double tv_cost_node_per_h(const tv_offer *o, uint32_t gpus, bool spot);

/* A run on machines that may be taken away. */
typedef struct tv_spot {
    double run_h;
    double per_h;
    double interruptions_per_h;
    double checkpoint_h; /* between two checkpoints: half of it is lost each time */
    double restart_h;    /* until it runs again */
} tv_spot;

/* Hours paid for; unknown when interruptions eat all of the time. */
tv_fact tv_cost_spot_hours(const tv_spot *s);
tv_fact tv_cost_spot_run(const tv_spot *s);

/* ---- own ---- */

/* Watts at the cards to money an hour. */
double tv_cost_power_per_h(double watts, double pue, double kwh_price);
/* The same for a year; unknown where the watts or the price are. */
tv_fact tv_cost_energy_year(tv_fact board_w, double cards, double hours, double pue,
                            double kwh_price);

/* Hours of use after which owning is cheaper than renting; unknown when it never is. */
tv_fact tv_cost_break_even_h(double price, double fixed_hidden, double rent_per_h,
                             double running_per_h);

/* The newest price of a card that can be turned into `currency` (else the newest of all): a street
 * price or the list price. value 0: none known. */
tv_price tv_cost_card_price(const tv_device *d, tv_str currency, double cny_per_usd);

/* ---- hidden costs ---- */

/* Five rows [reconstructed]: the guide announces a table of five and does not show it. */
typedef enum tv_hidden {
    TV_HIDDEN_ELECTRICITY,
    TV_HIDDEN_COOLING,
    TV_HIDDEN_NETWORK,
    TV_HIDDEN_OPERATION,
    TV_HIDDEN_IDLE,
    TV_HIDDEN_COUNT,
} tv_hidden;

const char *tv_hidden_id(tv_hidden h);   /* "electricity": the interface's word */
const char *tv_hidden_name(tv_hidden h); /* a msgid */

typedef struct tv_hidden_sum {
    double total;     /* of what is known */
    double share;     /* of the base; 0 without one */
    size_t n_unknown; /* rows that are missing in the total */
} tv_hidden_sum;

tv_hidden_sum tv_cost_hidden_sum(const tv_hidden_cost *v, size_t n, double base);

/* ---- work for money and energy ---- */

/* Joules for one unit of work at rate_per_s units a second, and units per joule (QPS per watt). */
double tv_cost_energy_per_work_j(double watts, double rate_per_s);
double tv_cost_work_per_joule(double watts, double rate_per_s);
/* Money for a million units. */
double tv_cost_per_million(double per_h, double rate_per_s);

/* ---- all of it ---- */

typedef struct tv_cost_input {
    const tv_device *device;
    uint32_t gpus, nodes;
    tv_str currency;       /* of the answer, and of the amounts that the user states */
    double cny_per_usd;    /* 0 unknown */
    const tv_offer *offer; /* the cheapest for these cards; NULL: none */
    int offer_age_days;    /* -1: not judged */
    double offer_per_h;    /* of all cards, in the offer's currency */
    bool offers_smaller;   /* there are offers, but none recent that holds a node's cards */
    double spot_per_h;     /* likewise; 0 unknown */
    tv_price card;         /* of one card; value 0: unknown */
    int card_age_days;
    double run_s;                         /* 0 unknown */
    double kwh_price;                     /* 0 unknown */
    double pue;                           /* 0: 1, the cards alone */
    double hours_per_year;                /* 0: all of them */
    tv_fact hidden_year[TV_HIDDEN_COUNT]; /* stated by the user; electricity is computed else */
} tv_cost_input;

/* An answer is in one currency: the wanted one where the prices can be turned into it, else that
 * of the offer (of the card, without an offer), and a note says so. */
void tv_cost_fill(tv_arena *a, const tv_cost_input *in, tv_cost *out);

#endif
