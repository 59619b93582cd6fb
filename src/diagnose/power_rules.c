/* Power: caps below the product's own, unequal caps, brakes, and clocks that stay low without a
 * reason. */
#include <math.h>

#include "cards.h"

static bool near(double x, double y, double share)
{
    return fabs(x - y) <= share * (x > y ? x : y);
}

/* The limit the card ships with: its own word, or the product table's. */
typedef struct usual {
    double w; /* NaN: unknown */
    bool own;
} usual;

static usual default_of(const tv_inquiry *q, const tv_card *card)
{
    const double own = tv_card_num(card, "default_w");
    if (!isnan(own))
        return (usual){own, true};
    if (tv_card_is_mobile(card))
        return (usual){(double)NAN, false};
    return (usual){tv_noted_num(tv_card_record(q, card), "tdp_w"), false};
}

/* Cards of one product vary with their maker, so the table's figure needs more room. */
static bool is_capped(const tv_inquiry *q, const tv_card *card)
{
    const usual d = default_of(q, card);
    return card->cap_w < (d.own ? 0.97 : 0.95) * d.w;
}

/* ---- H03 ---- */

static void judge_power_bound(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        const bool at_limit = card->power_w >= 0.97 * card->cap_w;
        const bool said =
            tv_card_bool(card, "reasons.sw_power_cap") && card->power_w >= 0.9 * card->cap_w;
        if ((at_limit || said) && card->util_frac >= 0.5 && !is_capped(q, card))
            tv_card_hit_add(q, &hits, card, said ? "reasons.sw_power_cap" : "power_w",
                            card->power_w / card->cap_w);
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    const tv_card *card = hits.v[hits.worst].card;
    tv_found_num(q, f, "power_w", TV_ARG_WATTS, card->power_w);
    tv_found_num(q, f, "cap_w", TV_ARG_WATTS, card->cap_w);
}

/* ---- H04 ---- */

static bool same_cap(const tv_card *x, const tv_card *y)
{
    return tv_str_eq(x->name, y->name) && near(x->cap_w, y->cap_w, 0.005);
}

static void found_capped(tv_inquiry *q, const tv_rule *rule, const tv_cards *all, size_t first)
{
    const tv_card *card = &all->v[first];
    const usual d = default_of(q, card);
    tv_card_hits hits = {0};
    for (size_t i = first; i < all->n; i++)
        if (same_cap(&all->v[i], card) && is_capped(q, &all->v[i]))
            tv_card_hit_add(q, &hits, &all->v[i], "cap_w", 1);
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    f->sure = d.own ? TV_HIGH : TV_MEDIUM;
    f->weight = 0.3 * (1 - card->cap_w / d.w);
    tv_found_num(q, f, "cap_w", TV_ARG_WATTS, card->cap_w);
    tv_found_num(q, f, "default_w", TV_ARG_WATTS, d.w);
    tv_found_num(q, f, "now_w", TV_ARG_NUMBER, card->cap_w);
    tv_found_num(q, f, "full_w", TV_ARG_NUMBER, d.w);
    tv_found_num(q, f, "share", TV_ARG_RATIO, card->cap_w / d.w);
    tv_found_word(q, f, "default_from",
                  d.own ? N_("the card's own default") : N_("from the product table"));
    if (!d.own)
        tv_ask(q, "nvidia-smi -q -d POWER",
               N_("The card's own default limit: makers of one product differ."));
}

static void judge_capped(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    for (size_t i = 0; i < all.n && i < 1024; i++) {
        bool first = is_capped(q, &all.v[i]);
        for (size_t k = 0; k < i && first; k++)
            first = !same_cap(&all.v[k], &all.v[i]) || !is_capped(q, &all.v[k]);
        if (first)
            found_capped(q, rule, &all, i);
    }
}

/* ---- H09 ---- */

static void judge_brake(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0}, past = {0};
    for (size_t i = 0; i < all.n; i++) {
        const double s = tv_card_num(&all.v[i], "counters.hw_power_brake_s");
        if (tv_card_bool(&all.v[i], "reasons.hw_power_brake"))
            tv_card_hit_add(q, &hits, &all.v[i], "reasons.hw_power_brake", 1);
        else if (s >= 60)
            tv_card_hit_add(q, &past, &all.v[i], "counters.hw_power_brake_s", s);
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (f || !(f = tv_cards_found(q, rule, &past)))
        return;
    f->severity = TV_INFO;
    f->cause = N_("The power brake has held {cards} back for {slowed_s} in all since the driver "
                  "was loaded; not at the moment of this reading.");
    tv_found_num(q, f, "slowed_s", TV_ARG_SECONDS, past.badness);
}

/* ---- H11 ---- */

/* Both at the limit that their own makers gave them: no one has set anything. */
static bool by_maker(const tv_inquiry *q, const tv_card *low, const tv_card *high)
{
    const double own_low = tv_card_num(low, "default_w"), own_high = tv_card_num(high, "default_w");
    if (!isnan(own_low) && !isnan(own_high))
        return near(low->cap_w, own_low, 0.01) && near(high->cap_w, own_high, 0.01);
    const double stated = tv_noted_num(tv_card_record(q, low), "tdp_w");
    return low->cap_w >= 0.97 * stated && high->cap_w <= 1.3 * stated;
}

/* The lowest cap of each product against the highest of its equals. */
static void judge_unequal(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    const tv_card *low = NULL, *high = NULL;
    for (size_t i = 0; i < all.n; i++)
        for (size_t k = 0; k < all.n && all.n <= 1024; k++) {
            const tv_card *x = &all.v[i], *y = &all.v[k];
            if (!x->name.n || tv_card_is_mobile(x) || !tv_card_same(x, y) ||
                !(x->cap_w < 0.97 * y->cap_w))
                continue;
            if (!low || y->cap_w - x->cap_w > high->cap_w - low->cap_w) {
                low = x;
                high = y;
            }
        }
    if (!low)
        return;
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++)
        if (tv_card_same(&all.v[i], high) && all.v[i].cap_w < 0.97 * high->cap_w)
            tv_card_hit_add(q, &hits, &all.v[i], "cap_w", -all.v[i].cap_w);
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    tv_found_also(q, f, high->s, tv_noted(high->note, "cap_w"));
    f->weight = 0.9 * (1 - low->cap_w / high->cap_w) + 0.1;
    tv_found_num(q, f, "low_w", TV_ARG_WATTS, low->cap_w);
    tv_found_num(q, f, "high_w", TV_ARG_WATTS, high->cap_w);
    tv_found_num(q, f, "now_w", TV_ARG_NUMBER, low->cap_w);
    tv_found_num(q, f, "equal_w", TV_ARG_NUMBER, high->cap_w);
    tv_found_str(q, f, "other", high->label);
    if (by_maker(q, low, high)) {
        f->severity = TV_INFO;
        f->cause = N_("{cards} may draw {low_w}, GPU {other} of the same product {high_w}: each at "
                      "the limit that its maker gave it. The slowest sets the pace of a job over "
                      "all of them.");
    }
}

/* ---- H29 ---- */

static double fastest_of(const tv_inquiry *q, const tv_card *card, bool *own)
{
    const double most = tv_card_num(card, "max_sm_mhz");
    *own = !isnan(most);
    return *own ? most : tv_noted_num(tv_card_record(q, card), "boost_hz") / 1e6;
}

static bool is_throttled(const tv_card *card)
{
    static const char *const reasons[] = {
        "reasons.sw_power_cap",   "reasons.hw_slowdown", "reasons.hw_thermal", "reasons.sw_thermal",
        "reasons.hw_power_brake", "reasons.sync_boost",  "reasons.idle"};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (tv_card_bool(card, reasons[i]))
            return true;
    return tv_card_num(card, "thermal_violation") > 0;
}

static void judge_low_clock(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    double fastest = (double)NAN;
    bool set = false, sure = false;
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        bool own;
        const double most = fastest_of(q, card, &own);
        const bool app = tv_card_bool(card, "reasons.app_clocks");
        const int perf = tv_card_perf(card);
        if (!(card->sm_clock < (own ? 0.7 : 0.6) * most) || !(card->util_frac >= 0.8) || perf > 2 ||
            is_throttled(card) || card->power_w >= 0.8 * card->cap_w || tv_card_is_mobile(card))
            continue;
        tv_card_hit_add(q, &hits, card, app ? "reasons.app_clocks" : "sm_mhz",
                        1 - card->sm_clock / most);
        if (hits.worst == hits.n - 1) {
            fastest = most;
            set = app;
            sure = own && tv_noted(card->note, "reasons");
        }
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    const tv_card *card = hits.v[hits.worst].card;
    f->sure = set ? TV_HIGH : sure ? TV_MEDIUM : TV_LOW;
    f->weight = 0.6 * hits.badness;
    tv_found_num(q, f, "clock_mhz", TV_ARG_NUMBER, card->sm_clock);
    tv_found_num(q, f, "most_mhz", TV_ARG_NUMBER, fastest);
    tv_found_num(q, f, "power_w", TV_ARG_WATTS, card->power_w);
    if (set)
        f->cause = N_("{cards} runs at {clock_mhz} of {most_mhz} MHz because application clocks "
                      "are set; neither heat nor power holds it back.");
}

/* ---- H35 ---- */

static void judge_waking(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++) {
        const double most = tv_card_num(&all.v[i], "max_sm_mhz");
        const bool slow = tv_card_perf(&all.v[i]) >= 5 || all.v[i].sm_clock < 0.25 * most;
        if (all.v[i].util_frac >= 0.02 && slow && !all.v[i].series)
            tv_card_hit_add(q, &hits, &all.v[i], "util_frac", all.v[i].util_frac);
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (f)
        tv_found_num(q, f, "util", TV_ARG_RATIO, hits.badness);
}

/* ---- I08 ---- */

static bool differ_by_power_alone(const tv_card *x, const tv_card *y)
{
    const double mem_x = tv_card_num(x, "mem_util_frac"), mem_y = tv_card_num(y, "mem_util_frac");
    return x->name.n && tv_card_same(x, y) && x->util_frac >= 0.95 && y->util_frac >= 0.95 &&
           near(x->sm_clock, y->sm_clock, 0.02) && fabs(mem_x - mem_y) <= 0.1 &&
           near(x->cap_w, y->cap_w, 0.01) && x->power_w < 0.75 * y->power_w;
}

static void judge_hidden_state(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    for (size_t i = 0; i < all.n && all.n <= 1024; i++)
        for (size_t k = 0; k < all.n; k++) {
            const tv_card *x = &all.v[i], *y = &all.v[k];
            if (!differ_by_power_alone(x, y))
                continue;
            tv_finding *f = tv_found(q, rule, x->s, tv_noted(x->note, "power_w"));
            tv_found_also(q, f, y->s, tv_noted(y->note, "power_w"));
            tv_found_str(q, f, "gpu", x->label);
            tv_found_str(q, f, "other", y->label);
            tv_found_num(q, f, "power_w", TV_ARG_WATTS, x->power_w);
            tv_found_num(q, f, "other_power_w", TV_ARG_WATTS, y->power_w);
            tv_found_num(q, f, "clock_mhz", TV_ARG_NUMBER, x->sm_clock);
            return;
        }
}

static const tv_rule rules[] = {
    {
        .id = "H09",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The power supply or the board brakes the card"),
        .cause = N_("The power brake of {cards} is on: a signal from the power supply or the "
                    "board's controller cuts the clocks to a fraction, whatever the card itself "
                    "would allow."),
        .decided = N_("HW Power Brake Slowdown is active (reason bit 0x80)."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
        .steps = {{.command = "ipmitool sdr type \"Power Supply\"",
                   .why = N_("Are all supplies there, fed and redundant?")},
                  {.command = "ipmitool sel elist",
                   .why = N_("When did the brake begin, and what failed just before?")},
                  {.why = N_("Replace or feed the supply, check the cards' power cables, and lift "
                             "a power limit that the management controller enforces.")}},
        .outranks = "H29 H10 I05",
        .judge = judge_brake,
    },
    {
        .id = "H11",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Cards of one product have different power limits"),
        .cause = N_("{cards} may draw {low_w}, GPU {other} of the same product {high_w}. A job "
                    "over all of them takes a step when the slowest is done: the lowest limit "
                    "sets the pace of all."),
        .decided = N_("Two cards of the same product in one listing whose limits differ by more "
                      "than 3 %. Where each stands at the limit of its maker it is only told."),
        .unless = N_("Different products are not compared, nor are laptops, whose limits move."),
        .source = "https://docs.nvidia.com/deploy/nvidia-smi/index.html",
        .steps = {{.command = "nvidia-smi -i {gpus} -pl {equal_w}",
                   .undo = "nvidia-smi -i {gpus} -pl {now_w}",
                   .why = N_("The same limit for all. It lasts until the next reboot or driver "
                             "reload; look for the script that sets it.")},
                  {.command = "nvidia-smi --query-gpu=index,power.limit,power.default_limit,"
                              "power.max_limit --format=csv",
                   .why = N_("What each card would allow.")}},
        .outranks = "C22",
        .judge = judge_unequal,
    },
    {
        .id = "H04",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The power limit is below the product's default"),
        .cause = N_("{cards} ({product}) may draw {cap_w} of {default_w} ({default_from}), "
                    "{share} of it: somebody has capped it. Compute-bound work loses speed, work "
                    "bound by memory hardly any."),
        .decided = N_("The enforced limit is more than 3 % below the card's own default limit; "
                      "where no default is printed, more than 5 % below the board power of the "
                      "product table."),
        .unless =
            N_("A cap may be meant: a weak supply, heat, or a better ratio of speed to power. "
               "Laptops and cut product names are not judged by the table."),
        .source = "https://docs.nvidia.com/deploy/nvidia-smi/index.html",
        .steps = {{.command = "nvidia-smi -q -d POWER",
                   .why = N_("The card's own default and maximum.")},
                  {.command = "nvidia-smi -i {gpus} -pl {full_w}",
                   .undo = "nvidia-smi -i {gpus} -pl {now_w}",
                   .why = N_("Back to the default, where supply and cooling allow it. It lasts "
                             "until the next reboot or driver reload.")}},
        .judge = judge_capped,
    },
    {
        .id = "H29",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Clocks stay low under load without a reason"),
        .cause = N_("{cards} is busy at {clock_mhz} of {most_mhz} MHz, drawing only {power_w}, and "
                    "no throttle reason is active: clocks were locked by hand, or the card is in a "
                    "slow state that it does not report."),
        .decided = N_("Utilisation of 80 % or more at P0 to P2, SM clock below 70 % of the maximum "
                      "(60 % of the catalogue's boost clock), draw below 80 % of the limit, and no "
                      "reason active but application clocks."),
        .unless = N_("An idle card, or one whose reasons name heat or power, has low clocks for "
                     "that reason."),
        .source = "https://docs.nvidia.com/deploy/nvidia-smi/index.html",
        .steps = {{.command = "nvidia-smi -q -d CLOCK,PERFORMANCE -i {gpus}",
                   .why = N_("Locked and application clocks beside the maximum.")},
                  {.command = "nvidia-smi -i {gpus} -rgc",
                   .undo = "nvidia-smi -i {gpus} -lgc 0,{clock_mhz}",
                   .why = N_("Unlock the graphics clock.")},
                  {.command = "nvidia-smi -i {gpus} -rac",
                   .why = N_("Application clocks back to their default; what was set before is "
                             "listed by the first command, -ac takes it back.")},
                  {.why = N_("If nothing was locked: switch the machine off and on again (a reboot "
                             "does not cut the card's power), then compare power and clocks.")}},
        .judge = judge_low_clock,
    },
    {
        .id = "H03",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("The card runs at its power limit, as it should"),
        .cause = N_("{cards} draws {power_w} of {cap_w}: it works as hard as its limit allows, and "
                    "the clocks follow. This is normal."),
        .decided = N_("Draw within 3 % of the limit under load (or the software power cap is the "
                      "active reason), and the limit is the default."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
        .steps = {{.why = N_("Nothing to do. Where the card's maximum limit is higher, raising it "
                             "buys a few percent.")}},
        .judge = judge_power_bound,
    },
    {
        .id = "H35",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("Utilisation is shown while the clocks are idle"),
        .cause =
            N_("{cards} shows {util} utilisation in an idle state: the reading covers a moment "
               "of drawing or of waking up at low clocks. This is healthy."),
        .decided = N_("Utilisation above 2 % at P5 or deeper, or at less than a quarter of the "
                      "maximum clock, in a single reading."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/deploy/nvidia-smi/index.html",
        .steps = {{.why = N_("Nothing to do; judge speed by a reading under load.")}},
        .judge = judge_waking,
    },
    {
        .id = "I08",
        .severity = TV_INFO,
        .sure = TV_LOW,
        .title = N_("Two equal cards draw different power at the same clocks"),
        .cause = N_("GPU {gpu} draws {power_w}, GPU {other} {other_power_w}, at the same load and "
                    "the same {clock_mhz} MHz: if both do the same work, the one that draws less "
                    "may be in a slow state that no counter shows."),
        .decided = N_("Two cards of one product at 95 % or more, clocks within 2 %, memory load "
                      "within 10 points, equal limits, draw more than 25 % apart."),
        .unless = N_("Different work on the two cards draws different power."),
        .source = "https://github.com/tonyd2wild/DeepSeek-V4.1-Flash-vLLM-DGX-Spark/issues/1",
        .steps = {{.why = N_("Run the same job on both. If the step times differ as well, power "
                             "the machine off and on and compare again.")}},
        .judge = judge_hidden_state,
    },
};

extern const tv_rule_group tv_rule_group_power_rules;
const tv_rule_group tv_rule_group_power_rules = {"power", N_("Power and clocks"), rules,
                                                 sizeof rules / sizeof *rules};
