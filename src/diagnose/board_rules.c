/* The board and its box beyond what the driver calls an error: heat with air to spare, voltages,
 * stress tests, and cards that are not what they say. */
#include <math.h>

#include "cards.h"

/* ---- H38: hot, and the fan has room ---- */

static bool is_consumer(const tv_inquiry *q, const tv_card *card)
{
    return tv_noted_is(tv_card_record(q, card), "segment", "consumer");
}

/* The driver of a GeForce card lets it reach 83 C before its fan gives all. */
static double warm_c(const tv_inquiry *q, const tv_card *card)
{
    return is_consumer(q, card) ? 84 : 80;
}

static void judge_fan(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        const double fan = tv_card_num(card, "fan_frac");
        if (!(card->temp_c > warm_c(q, card)) || !(fan < 0.80) || tv_card_is_mobile(card))
            continue;
        tv_finding *f = tv_found(q, rule, card->s, card->note);
        tv_found_str(q, f, "gpu", card->label.n ? card->label : TV_S("0"));
        tv_found_num(q, f, "temp_c", TV_ARG_NUMBER, card->temp_c);
        tv_found_num(q, f, "fan_frac", TV_ARG_RATIO, fan);
    }
}

/* ---- H39: stress tests ---- */

static void judge_stress(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "stress-test"); s;
         s = tv_scene_next(s, "stress-test")) {
        const tv_note *verdicts = tv_noted(&s->facts, "verdicts");
        for (const tv_note *gpu = verdicts ? verdicts->first : NULL; gpu; gpu = gpu->next) {
            if (!tv_noted_bool(gpu, "faulty", false))
                continue;
            tv_finding *f = tv_found(q, rule, s, gpu);
            tv_found_num(q, f, "gpu", TV_ARG_NUMBER, tv_noted_num(gpu, "index"));
        }
        const tv_note *errors = tv_noted(&s->facts, "errors");
        double index = 0;
        for (const tv_note *n = errors ? errors->first : NULL; n; n = n->next, index++) {
            if (!(n->number > 0))
                continue;
            tv_finding *f = tv_found(q, rule, s, n);
            tv_found_num(q, f, "gpu", TV_ARG_NUMBER, index);
            tv_found_num(q, f, "errors", TV_ARG_COUNT, n->number);
        }
    }
}

/* ---- H40: +12 V ---- */

static void judge_voltage(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "ipmi"); s; s = tv_scene_next(s, "ipmi")) {
        const tv_note *sensors = tv_noted(&s->facts, "sensors");
        for (const tv_note *n = sensors ? sensors->first : NULL; n; n = n->next) {
            const double volts = tv_noted_num(n, "value");
            /* ATX allows 5 %: 11.4 to 12.6 V; 11.8 V under load is the guide's warning. */
            if (!tv_str_eq_nocase(tv_noted_str(n, "unit"), TV_S("Volts")) || !(volts > 10) ||
                !(volts < 11.8) || !tv_str_has(tv_noted_str(n, "name"), TV_S("12")))
                continue;
            tv_finding *f = tv_found(q, rule, s, n);
            f->severity = volts < 11.4 ? TV_CRITICAL : TV_WARNING;
            tv_found_str(q, f, "sensor", tv_noted_str(n, "name"));
            tv_found_num(q, f, "volts", TV_ARG_NUMBER, volts);
        }
    }
}

/* ---- H41: another card than it says ---- */

static void judge_identity(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        const double stated = tv_noted_num(tv_card_record(q, card), "mem_bytes");
        if (!card->listed || !(stated > 0) || !(card->total_bytes > 0) ||
            fabs(card->total_bytes / stated - 1) < 0.10 || tv_card_says(card, "mig", "Enabled"))
            continue;
        tv_finding *f = tv_found(q, rule, card->s, card->note);
        tv_found_str(q, f, "gpu", card->label.n ? card->label : TV_S("0"));
        tv_found_str(q, f, "product", card->name);
        tv_found_num(q, f, "shown_bytes", TV_ARG_MEMORY, card->total_bytes);
        tv_found_num(q, f, "stated_bytes", TV_ARG_MEMORY, stated);
    }
}

/* ---- the rows ---- */

static const tv_rule rules[] = {
    {
        .id = "H38",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The card is hot while its fan has room"),
        .cause =
            N_("GPU {gpu} is at {temp_c} C with its fan at {fan_frac}: the heat does not reach "
               "the air (dust, dried paste, a fan curve that is too quiet)."),
        .decided = N_("More than 80 C (84 C for GeForce cards, whose target is 83 C) with the fan "
                      "below 80 %."),
        .unless = N_("Cards without a fan depend on the chassis instead (H14); a slowdown that the "
                     "driver reports is H01."),
        .source = "trivet, requirements R183",
        .steps = {{.command = "nvidia-smi -q -d TEMPERATURE,PERFORMANCE -i {gpu}",
                   .why = N_("How far the card's own limits are.")},
                  {.why = N_("Clean the heat sink and look at the air's way: in at the front, out "
                             "at the back, no card breathing its neighbour's air. If a clean card "
                             "stays hot, renew the thermal paste.")}},
        .judge = judge_fan,
    },
    {
        .id = "H39",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A stress test computed wrong results"),
        .cause = N_("GPU {gpu} gave other results for the same computation under load: its memory "
                    "or its chip is damaged or runs outside its limits."),
        .decided = N_("gpu-burn counts errors for a card, or calls it FAULTY."),
        .unless = N_("An overclocked card may be healthy at its default clocks: test it there."),
        .source = "https://github.com/wilicc/gpu-burn",
        .steps = {{.command = "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT -i {gpu}",
                   .why = N_("What the card itself counts.")},
                  {.command = "dcgmi diag -r 3 -i {gpu}",
                   .why = N_("The vendor's own test, which a warranty case asks for.")},
                  {.why = N_("Do not trust results computed on it; return the card.")}},
        .judge = judge_stress,
    },
    {
        .id = "H40",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The 12 V supply sags"),
        .cause = N_("{sensor} reads {volts} V: under 11.8 V the supply is near its end or "
                    "overloaded, under 11.4 V it is out of its specification and cards drop out."),
        .decided = N_("A 12 V sensor of ipmitool below 11.8 V (critical below 11.4 V, the 5 % of "
                      "the ATX specification)."),
        .unless = N_("Some boards scale a sensor wrongly: a multimeter at a connector settles it."),
        .source = "https://edc.intel.com/content/www/us/en/design/ipla/software-development-"
                  "platforms/client/platforms/alder-lake-desktop/"
                  "atx12vo-12v-only-desktop-power-supply-design-guide/",
        .steps = {{.command = "ipmitool sensor | grep -i -E '12V|PSU|Power'",
                   .why = N_("Read it under load and idle: a healthy supply differs by less than "
                             "0.2 V.")},
                  {.why = N_("Spread the cards over more cables, lower their power limits, replace "
                             "the supply.")}},
        .outranks = "H12 H13",
        .judge = judge_voltage,
    },
    {
        .id = "H41",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The card is not what its name says"),
        .cause = N_("GPU {gpu} calls itself {product}, which has {stated_bytes}, and shows "
                    "{shown_bytes}: a modified card, a wrong name in its firmware, or a virtual "
                    "part of one."),
        .decided = N_("The memory that nvidia-smi shows is 10 % or more away from every product of "
                      "that name in the catalogue."),
        .unless = N_("A vGPU or a MIG instance shows its share; a new product may be missing from "
                     "the catalogue."),
        .source = "trivet, requirements R197",
        .steps = {{.command =
                       "nvidia-smi --query-gpu=name,vbios_version,memory.total,pci.device_id,"
                       "pci.sub_device_id --format=csv",
                   .why = N_("The device id names the chip, the subsystem id the board's maker.")},
                  {.command = "lspci -nn -d 10de:",
                   .why = N_("The same from the bus: compare with the product's record.")}},
        .judge = judge_identity,
    },
};

extern const tv_rule_group tv_rule_group_board_rules;
const tv_rule_group tv_rule_group_board_rules = {"board", N_("The board, its air and its power"),
                                                 rules, sizeof rules / sizeof *rules};
