/* Heat: what slows cards down, which one is hotter than its equals, and the air of the chassis.
 * The card's own limits come first; a product's table only where the card prints none. */
#include <math.h>
#include <string.h>

#include "cards.h"

/* A card within this of its slowdown point will pass it in a warm hour. */
static const double margin_c = 5;
/* Slowdown points that cards of the data centre print start at 87 C (V100), those of consumer
 * cards at 92 C: used where neither the card nor the catalogue states one. */
static const double usual_datacenter_c = 87;
static const double usual_consumer_c = 92;

/* ---- H01 ---- */

typedef struct heat {
    const char *fact; /* NULL: not hot */
    double badness, limit_c, margin_c;
    tv_confidence sure;
} heat;

static heat by_reasons(const tv_card *card)
{
    const bool hw = tv_card_bool(card, "reasons.hw_thermal");
    if (hw || tv_card_bool(card, "reasons.sw_thermal"))
        return (heat){hw ? "reasons.hw_thermal" : "reasons.sw_thermal", 300, (double)NAN,
                      (double)NAN, TV_HIGH};
    const double violation = card->series ? tv_noted_num(card->series, "thermal_violation_max")
                                          : tv_card_num(card, "thermal_violation");
    if (violation > 0)
        return (heat){"thermal_violation", 250, (double)NAN, (double)NAN, TV_HIGH};
    const tv_note *cause = tv_noted(card->note, "reasons.hw_thermal");
    const tv_note *brake = tv_noted(card->note, "reasons.hw_power_brake");
    /* Old drivers only say that the hardware slows down. */
    if (tv_card_bool(card, "reasons.hw_slowdown") && !cause && !brake)
        return (heat){"reasons.hw_slowdown", 200, (double)NAN, (double)NAN,
                      card->temp_c >= 80 ? TV_HIGH : TV_MEDIUM};
    return (heat){0};
}

static heat by_limit(const char *fact, double limit_c, double left_c, tv_confidence at_limit,
                     double within_c)
{
    if (!(left_c <= within_c))
        return (heat){0};
    return (heat){fact, 100 - left_c, limit_c, left_c, left_c <= 0 ? at_limit : TV_MEDIUM};
}

static heat by_temperature(const tv_inquiry *q, const tv_card *card)
{
    const double slowdown = tv_card_num(card, "slowdown_c");
    if (!isnan(slowdown))
        return by_limit("temp_c", slowdown, slowdown - card->temp_c, TV_HIGH, margin_c);
    if (tv_card_is_mobile(card)) /* laptops run at their limit by design */
        return (heat){0};
    const double tlimit = tv_card_num(card, "tlimit_c");
    const double at = tv_card_num(card, "slowdown_tlimit_c");
    if (!isnan(tlimit) && !isnan(at))
        return by_limit("tlimit_c", (double)NAN, tlimit - at, TV_HIGH, margin_c);
    const tv_note *record = tv_card_record(q, card);
    const double stated = tv_noted_num(record, "slowdown_temp_c");
    if (!isnan(stated))
        return by_limit("temp_c", stated, stated - card->temp_c, TV_HIGH, margin_c);
    if (tv_noted_is(&card->s->facts, "vendor", "amd"))
        return (heat){0}; /* junctions of these cards are built for 100 C and more */
    const bool consumer = tv_str_has(card->name, TV_S("GeForce")) || !card->name.n;
    const double usual = consumer ? usual_consumer_c : usual_datacenter_c;
    return by_limit("temp_c", usual, usual - card->temp_c, TV_MEDIUM, 0);
}

static heat heat_of(const tv_inquiry *q, const tv_card *card)
{
    const heat h = by_reasons(card);
    return h.fact ? h : by_temperature(q, card);
}

/* Counters since the driver was loaded: told, for nobody knows when it was. */
static void judge_past_heat(tv_inquiry *q, const tv_rule *rule, const tv_cards *all)
{
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all->n; i++) {
        const tv_card *card = &all->v[i];
        const double hw_s = tv_card_num(card, "counters.hw_thermal_s");
        const double sw_s = tv_card_num(card, "counters.sw_thermal_s");
        const double s = (isnan(hw_s) ? 0 : hw_s) + (isnan(sw_s) ? 0 : sw_s);
        if (s >= 60)
            tv_card_hit_add(q, &hits, card,
                            hw_s > 0 ? "counters.hw_thermal_s" : "counters.sw_thermal_s", s);
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    f->severity = TV_INFO;
    f->cause = N_("Heat has slowed {cards} for {slowed_s} in all since the driver was loaded; not "
                  "at the moment of this reading.");
    tv_found_num(q, f, "slowed_s", TV_ARG_SECONDS, hits.badness);
    tv_ask(q, "nvidia-smi -q -d PERFORMANCE,TEMPERATURE",
           N_("Read it once more under load: a counter that grows says that heat is slowing the "
              "card now."));
}

static void judge_heat(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    heat worst = {0};
    for (size_t i = 0; i < all.n; i++) {
        const heat h = heat_of(q, &all.v[i]);
        if (!h.fact)
            continue;
        if (!hits.n || h.badness > hits.badness)
            worst = h;
        tv_card_hit_add(q, &hits, &all.v[i], h.fact, h.badness);
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f) {
        judge_past_heat(q, rule, &all);
        return;
    }
    const tv_card *card = hits.v[hits.worst].card;
    f->sure = worst.sure;
    f->weight = 0.8;
    tv_found_num(q, f, "temp_c", TV_ARG_NUMBER, card->temp_c);
    tv_found_num(q, f, "limit_c", TV_ARG_NUMBER, worst.limit_c);
    tv_found_num(q, f, "margin_c", TV_ARG_NUMBER, worst.margin_c);
    tv_found_num(q, f, "cap_w", TV_ARG_WATTS, card->cap_w);
    if (!isnan(card->cap_w) && !isnan(card->power_w)) {
        const double least = tv_card_num(card, "min_w");
        const double lower = floor(0.85 * card->cap_w);
        tv_found_num(q, f, "lower_w", TV_ARG_NUMBER, lower < least ? least : lower);
        tv_found_num(q, f, "now_w", TV_ARG_NUMBER, card->cap_w);
    }
    if (!isnan(worst.limit_c))
        f->cause = N_("{cards} at {temp_c} C, {margin_c} C below the {limit_c} C at which the card "
                      "slows itself down: a straggler in every job that waits for all cards.");
    else if (!isnan(worst.margin_c))
        f->cause = N_("{cards} is {margin_c} C short of the point at which the card slows itself "
                      "down (T.Limit margin): a straggler in every job that waits for all cards.");
}

/* ---- H02 ---- */

static double memory_limit_of(const tv_inquiry *q, const tv_card *card, bool *own)
{
    const double printed = tv_card_num(card, "mem_max_op_c");
    *own = !isnan(printed);
    if (*own)
        return printed;
    const tv_note *record = tv_card_record(q, card);
    const double stated = tv_noted_num(record, "mem_max_temp_c");
    if (!isnan(stated))
        return stated;
    const tv_str type = tv_noted_str(record, "mem_type");
    return tv_str_starts(type, TV_S("HBM")) ? 95 : tv_str_is(type, "GDDR6X") ? 104 : 105;
}

static void judge_memory_heat(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    double limit_c = (double)NAN, temp_c = (double)NAN;
    bool all_own = true;
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        const double most = card->series ? tv_noted_num(card->series, "mem_temp_max_c")
                                         : tv_card_num(card, "mem_temp_c");
        bool own;
        const double limit = memory_limit_of(q, card, &own);
        const double left = limit - most;
        if (!(left <= (own ? margin_c : 0)))
            continue;
        if (!hits.n || -left > hits.badness) {
            limit_c = limit;
            temp_c = most;
        }
        all_own = all_own && own;
        tv_card_hit_add(q, &hits, card, "mem_temp_c", -left);
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    f->sure = all_own && hits.badness >= 0 ? TV_HIGH : TV_MEDIUM;
    f->weight = 0.5;
    tv_found_num(q, f, "mem_temp_c", TV_ARG_NUMBER, temp_c);
    tv_found_num(q, f, "limit_c", TV_ARG_NUMBER, limit_c);
}

/* ---- H10 ---- */

static bool alike(double x, double y, double share)
{
    return fabs(x - y) <= share * (x > y ? x : y);
}

/* Both work alike at the same power, and the hotter one is the slower one. */
static bool is_held_back(const tv_card *hot, const tv_card *cool)
{
    return tv_card_same(hot, cool) && hot->util_frac >= 0.5 && cool->util_frac >= 0.5 &&
           fabs(hot->util_frac - cool->util_frac) <= 0.1 &&
           alike(hot->power_w, cool->power_w, 0.1) && hot->temp_c - cool->temp_c > 8 &&
           hot->sm_clock < 0.98 * cool->sm_clock;
}

static void judge_hot_straggler(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    const tv_card *hot = NULL, *cool = NULL;
    double gap = 0;
    for (size_t i = 0; i < all.n; i++)
        for (size_t k = 0; k < all.n && all.n <= 1024; k++) {
            const double slower = 1 - all.v[i].sm_clock / all.v[k].sm_clock;
            if (is_held_back(&all.v[i], &all.v[k]) && slower > gap) {
                hot = &all.v[i];
                cool = &all.v[k];
                gap = slower;
            }
        }
    if (!hot)
        return;
    tv_finding *f = tv_found(q, rule, hot->s, hot->note);
    tv_found_also(q, f, cool->s, cool->note);
    f->weight = 0.7;
    tv_found_str(q, f, "gpu", hot->label);
    tv_found_str(q, f, "other", cool->label);
    tv_found_num(q, f, "temp_c", TV_ARG_NUMBER, hot->temp_c);
    tv_found_num(q, f, "other_temp_c", TV_ARG_NUMBER, cool->temp_c);
    tv_found_num(q, f, "gap_c", TV_ARG_NUMBER, hot->temp_c - cool->temp_c);
    tv_found_num(q, f, "clock_mhz", TV_ARG_NUMBER, hot->sm_clock);
    tv_found_num(q, f, "other_clock_mhz", TV_ARG_NUMBER, cool->sm_clock);
    tv_found_num(q, f, "gap_mhz", TV_ARG_NUMBER, cool->sm_clock - hot->sm_clock);
    tv_found_num(q, f, "slower", TV_ARG_RATIO, gap);
    tv_found_num(q, f, "power_w", TV_ARG_WATTS, hot->power_w);
    tv_found_num(q, f, "other_power_w", TV_ARG_WATTS, cool->power_w);
}

/* ---- H14 ---- */

static bool is_passive(const tv_inquiry *q, const tv_card *card)
{
    static const char *const names[] = {
        "Tesla T4",   "Tesla P4",  "Tesla P40",  "Tesla P100-PCIE", "Tesla V100-PCIE", "Tesla M40",
        "Tesla M60",  "Tesla K80", "NVIDIA A2",  "NVIDIA A10",      "NVIDIA A16",      "NVIDIA A30",
        "NVIDIA A40", "NVIDIA L4", "NVIDIA L40", "NVIDIA L40S"};
    if (tv_noted_bool(tv_card_record(q, card), "passive", false))
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tv_str_is(card->name, names[i]))
            return true;
    return false;
}

static void judge_passive(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        const double slowdown = tv_card_num(card, "slowdown_c");
        const double hot = isnan(slowdown) ? 90 : slowdown - 3;
        if (card->temp_c >= (hot < 90 ? hot : 90) && is_passive(q, card))
            tv_card_hit_add(q, &hits, card, "temp_c", card->temp_c);
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    f->weight = 0.9;
    tv_found_num(q, f, "temp_c", TV_ARG_NUMBER, hits.badness);
}

/* ---- H28 ---- */

static bool is_supply(tv_str name)
{
    tv_str s = name;
    return tv_str_has(s, TV_S("PSU")) || tv_str_has(s, TV_S("Power Supply")) ||
           tv_str_starts(s, TV_S("PS")) || tv_str_has(s, TV_S("Pwr Supply"));
}

static bool is_fault(tv_str text)
{
    static const char *const words[] = {"Failure detected",
                                        "Predictive failure",
                                        "Redundancy Lost",
                                        "Redundancy lost",
                                        "Power Supply AC lost",
                                        "AC lost",
                                        "Non-redundant",
                                        "Configuration error",
                                        "Non-critical going high",
                                        "Upper Critical going high",
                                        "Lower Critical going low",
                                        "Upper Non-recoverable going high"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_str_has(text, tv_str_of(words[i])))
            return true;
    return false;
}

/* The state of a supply in the sensor list, as bits: presence 1, failure 2, predicted 4, no input
 * 8 (IPMI 2.0, table 42-3, type 08h); ipmitool prints them as the first two digits. */
static bool supply_failed(const tv_note *sensor)
{
    const tv_str status = tv_noted_str(sensor, "status");
    const tv_str digits = tv_str_drop(status, 2);
    if (!is_supply(tv_noted_str(sensor, "name")) || !tv_str_starts(status, TV_S("0x")) ||
        digits.n != 4)
        return false;
    const char low = digits.p[1];
    const int bits = low >= 'a' ? low - 'a' + 10 : low >= 'A' ? low - 'A' + 10 : low - '0';
    return (bits & 0xe) != 0;
}

static bool out_of_range(const tv_note *sensor)
{
    static const char *const bad[] = {"cr", "nr", "lcr", "lnr", "ucr", "unr"};
    const tv_str status = tv_noted_str(sensor, "status");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (tv_str_is(status, bad[i]) && !isnan(tv_noted_num(sensor, "value")))
            return true;
    const double v = tv_noted_num(sensor, "value");
    return v <= tv_noted_num(sensor, "lcr") || v >= tv_noted_num(sensor, "ucr");
}

/* Asserted and never taken back. */
static bool still_asserted(const tv_note *event)
{
    if (!tv_noted_bool(event, "asserted", false) || !is_fault(tv_noted_str(event, "event")))
        return false;
    size_t n = 0; /* a log that is longer than any controller's is no log */
    for (const tv_note *later = event->next; later && n < 4096; later = later->next, n++)
        if (!tv_noted_bool(later, "asserted", true) &&
            tv_str_eq(tv_noted_str(later, "sensor"), tv_noted_str(event, "sensor")) &&
            tv_str_eq(tv_noted_str(later, "event"), tv_noted_str(event, "event")))
            return false;
    return true;
}

static void found_part(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s, const tv_note *at,
                       tv_str part, tv_str state)
{
    tv_finding *f = tv_found(q, rule, s, at);
    f->severity = TV_CRITICAL;
    f->weight = 0.6;
    f->cause = N_("The chassis reports {part}: {state}. A supply, fan or sensor out of its range "
                  "lets the board brake the cards or switch off.");
    tv_found_str(q, f, "part", part);
    tv_found_str(q, f, "state", state);
}

static void judge_parts(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s)
{
    const tv_note *sensors = tv_noted(&s->facts, "sensors");
    for (const tv_note *n = sensors ? sensors->first : NULL; n; n = n->next) {
        const tv_str text = tv_noted_str(n, "text");
        if (supply_failed(n))
            found_part(q, rule, s, n, tv_noted_str(n, "name"), TV_S("failure"));
        else if (out_of_range(n))
            found_part(q, rule, s, n, tv_noted_str(n, "name"), TV_S("critical"));
        else if (is_supply(tv_noted_str(n, "name")) && is_fault(text))
            found_part(q, rule, s, n, tv_noted_str(n, "name"), text);
    }
    const tv_note *events = tv_noted(&s->facts, "events");
    for (const tv_note *n = events ? events->first : NULL; n; n = n->next)
        if (still_asserted(n))
            found_part(q, rule, s, n, tv_noted_str(n, "sensor"), tv_noted_str(n, "event"));
}

static void judge_chassis(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "ipmi"); s; s = tv_scene_next(s, "ipmi")) {
        judge_parts(q, rule, s);
        const double inlet = tv_noted_num(&s->facts, "inlet_c");
        if (!(inlet > 27))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "inlet_c"));
        f->severity = inlet > 35 ? TV_WARNING : TV_INFO;
        f->sure = inlet > 35 ? TV_HIGH : TV_MEDIUM;
        tv_found_num(q, f, "inlet_c", TV_ARG_NUMBER, inlet);
        f->cause = inlet > 35
                       ? N_("The air that enters the chassis has {inlet_c} C, above the 35 C that "
                            "servers are built for: every card runs hotter by as much.")
                       : N_("The air that enters the chassis has {inlet_c} C: allowed (35 C), but "
                            "warmer than the 27 C that ASHRAE recommends.");
    }
}

/* ---- I05 ---- */

static void judge_jitter(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *server = tv_serving(q);
    if (!server)
        return;
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        const heat h = by_reasons(card);
        if (h.fact)
            tv_card_hit_add(q, &hits, card, h.fact, h.badness);
        else if (tv_card_bool(card, "reasons.hw_power_brake"))
            tv_card_hit_add(q, &hits, card, "reasons.hw_power_brake", 1);
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (f)
        tv_found_also(q, f, server, NULL);
}

static const tv_rule rules[] = {
    {
        .id = "H14",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A card without a fan gets no air"),
        .cause = N_("{cards} ({product}) has no fan of its own and is at {temp_c} C: it needs the "
                    "air of a server's fans through its heat sink. In a desktop it heats up until "
                    "it shuts itself off and is lost to the driver."),
        .decided = N_("A passively cooled card at 90 C or more, or within 3 C of its own slowdown "
                      "point."),
        .unless = N_("In a server whose fans are driven by the board, look for a failed fan or a "
                     "missing air duct first (H28)."),
        .source = "https://github.com/pdbear/syno_nvidia_gpu_driver/issues/22",
        .steps = {{.command = "nvidia-smi -q -d TEMPERATURE -i {gpus}",
                   .why = N_("Watch the margin while the job runs.")},
                  {.why = N_("Fit a fan with a shroud that blows through the card, or move the "
                             "card to a server with front-to-back air.")}},
        .outranks = "H01 H02 H10 H13 I05",
        .judge = judge_passive,
    },
    {
        .id = "H01",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Heat slows the card down"),
        .cause = N_("{cards} reports that its clocks are lowered because of heat: a straggler in "
                    "every job that waits for all cards."),
        .decided = N_("A thermal slowdown reason is active, or dmon's tviol is set, or the "
                      "temperature is within 5 C of the card's own slowdown point (T.Limit margin "
                      "on newer cards). Only where the card prints no limit the product's papers "
                      "count, else 87 C (data centre) and 92 C (others)."),
        .unless = N_("A steady temperature at the target of a consumer card (83 to 84 C) is its "
                     "fan curve at work, and laptops run at their limit by design."),
        .source = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
        .steps = {{.command = "nvidia-smi -q -d TEMPERATURE,PERFORMANCE",
                   .why = N_("Limits, margins and the reasons that are active, card by card.")},
                  {.why = N_("Check fans, dust, blocked slots and the air that enters; see the "
                             "chassis sensors with ipmitool sensor.")},
                  {.command = "nvidia-smi -i {gpus} -pl {lower_w}",
                   .undo = "nvidia-smi -i {gpus} -pl {now_w}",
                   .why = N_("A stop-gap until the air is better: less power, less heat, a few "
                             "percent of speed.")}},
        .outranks = "I05 H29",
        .judge = judge_heat,
    },
    {
        .id = "H02",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The memory of the card is too hot"),
        .cause = N_("{cards}: memory at {mem_temp_c} C, limit {limit_c} C. Memory that is too hot "
                    "is refreshed more often and clocked down, and ages."),
        .decided = N_("Memory temperature within 5 C of the card's own maximum; where it prints "
                      "none, at 95 C (HBM), 104 C (GDDR6X) or 105 C (others)."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/deploy/nvidia-smi/index.html",
        .steps = {{.command = "nvidia-smi -q -d TEMPERATURE",
                   .why = N_("Current value and limit.")},
                  {.why = N_("More air over the back plate, new thermal pads on consumer cards, or "
                             "a lower power limit.")}},
        .judge = judge_memory_heat,
    },
    {
        .id = "H10",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("One card is hotter and slower than its equals"),
        .cause = N_("GPU {gpu} is {gap_c} C hotter ({temp_c} against {other_temp_c} C) and "
                    "{gap_mhz} MHz slower ({clock_mhz} against {other_clock_mhz} MHz) than GPU "
                    "{other} at the same load and power ({power_w}, {other_power_w}). Jobs in "
                    "lock-step run at the pace of the slowest: about {slower} lost."),
        .decided = N_("Two cards of one product, both at 50 % or more and within 10 points of each "
                      "other, power within 10 %, more than 8 C apart, the hotter one at least 2 % "
                      "lower in clock."),
        .unless = N_("Different power limits (H11) or different products explain clocks without "
                     "heat."),
        .source = "https://docs.nvidia.com/deploy/nvidia-smi/index.html",
        .steps = {{.why = N_("Look at its place: a slot between two cards, a failed fan, dust, a "
                             "missing slot cover. Swap the two cards: if the heat stays with the "
                             "slot it is the air, if it moves it is the cooler or its paste.")},
                  {.command = "nvidia-smi -lgc 0,{clock_mhz}",
                   .undo = "nvidia-smi -rgc",
                   .why = N_("Until then: the same clock for all saves the fast card's heat, the "
                             "job is no slower.")}},
        .outranks = "C22",
        .judge = judge_hot_straggler,
    },
    {
        .id = "H28",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The chassis reports trouble with air, fans or power supplies"),
        .cause = N_("The chassis reports a sensor out of its range."),
        .decided = N_("A power supply with a failure, lost input or lost redundancy, a sensor at "
                      "or beyond its critical threshold, an event of that kind that was not taken "
                      "back, or inlet air above 35 C (27 C is told as information)."),
        .unless = N_("Empty fan and supply slots are listed by some boards as critical."),
        .source = "https://www.intel.com/content/www/us/en/products/docs/servers/ipmi/"
                  "ipmi-second-gen-interface-spec-v2-rev1-1.html",
        .steps = {{.command = "ipmitool sel elist",
                   .why = N_("When it began, and what came first.")},
                  {.command = "ipmitool sensor", .why = N_("All sensors with their thresholds.")},
                  {.why = N_("Replace the supply or fan; bring the room back below 27 C.")}},
        .outranks = "H01 H09 H12",
        .judge = judge_chassis,
    },
    {
        .id = "I05",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Latency jumps because the card throttles"),
        .cause = N_("{cards} serves requests while its clocks are being lowered: answers that come "
                    "at such a time take longer, the median hides it."),
        .decided = N_("A thermal or power-brake reason is active on a card while an inference "
                      "server is seen."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
        .steps = {{.command = "nvidia-smi --query-gpu=timestamp,index,clocks.sm,temperature.gpu,"
                              "clocks_event_reasons.active --format=csv -l 1",
                   .why = N_("Put it beside the latencies: the jumps should meet the reasons.")}},
        .judge = judge_jitter,
    },
};

extern const tv_rule_group tv_rule_group_heat_rules;
const tv_rule_group tv_rule_group_heat_rules = {"heat", N_("Heat and air"), rules,
                                                sizeof rules / sizeof *rules};
