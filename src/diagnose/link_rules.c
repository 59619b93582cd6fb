/* The card's own links: PCIe generation and width, replays, and the error counters of NVLink. */
#include <math.h>

#include "cards.h"
#include "narrow_links.h"

/* ---- H05, H06, H07 ---- */

/* What card and slot can do together; what only one of them can is no fault. */
static double most_gen(const tv_card *card)
{
    double most = tv_card_num(card, "link_gen_max");
    const char *const others[] = {"link_gen_device_max", "link_gen_host_max"};
    for (size_t i = 0; i < 2; i++) {
        const double v = tv_card_num(card, others[i]);
        if (v < most)
            most = v;
    }
    return most;
}

static bool gen_is_low(const tv_card *card)
{
    return tv_card_num(card, "link_gen") < most_gen(card);
}

static bool width_is_low(const tv_card *card)
{
    return tv_card_num(card, "link_width") < tv_card_num(card, "link_width_max");
}

static void put_link(tv_inquiry *q, tv_finding *f, const tv_card *card)
{
    tv_found_num(q, f, "gen", TV_ARG_NUMBER, tv_card_num(card, "link_gen"));
    tv_found_num(q, f, "gen_max", TV_ARG_NUMBER, most_gen(card));
    tv_found_num(q, f, "lanes", TV_ARG_NUMBER, tv_card_num(card, "link_width"));
    tv_found_num(q, f, "lanes_max", TV_ARG_NUMBER, tv_card_num(card, "link_width_max"));
    tv_found_str(q, f, "bus", tv_noted_str(card->note, "bus"));
}

static void judge_slow_link(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++)
        if (gen_is_low(&all.v[i]) && tv_card_is_busy(&all.v[i]))
            tv_card_hit_add(q, &hits, &all.v[i], "link_gen",
                            most_gen(&all.v[i]) - tv_card_num(&all.v[i], "link_gen"));
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    f->weight = 0.5;
    put_link(q, f, hits.v[hits.worst].card);
}

static void judge_idle_link(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++)
        if (gen_is_low(&all.v[i]) && !width_is_low(&all.v[i]) && !tv_card_is_busy(&all.v[i]))
            tv_card_hit_add(q, &hits, &all.v[i], "link_gen", 1);
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    put_link(q, f, hits.v[hits.worst].card);
    const tv_card *card = hits.v[hits.worst].card;
    if (tv_card_perf(card) < 5) /* not clearly asleep */
        tv_ask(q,
               "nvidia-smi --query-gpu=index,pstate,utilization.gpu,pcie.link.gen.current,"
               "pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max --format=csv -l 1",
               N_("Read the link once more while the job runs: only then must it be at its "
                  "maximum."));
}

static void judge_narrow_link(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++)
        if (width_is_low(&all.v[i]))
            tv_card_hit_add(q, &hits, &all.v[i], "link_width",
                            tv_card_num(&all.v[i], "link_width_max") /
                                tv_card_num(&all.v[i], "link_width"));
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f) {
        tv_narrow_links(q, rule);
        return;
    }
    f->weight = hits.badness >= 4 ? 0.5 : 0.3;
    put_link(q, f, hits.v[hits.worst].card);
    tv_found_num(q, f, "share", TV_ARG_RATIO, 1 / hits.badness);
}

/* ---- H27 ---- */

/* Replays per minute and lane that NVIDIA's own health check allows, by generation. */
static double replay_limit_per_min(const tv_card *card)
{
    static const double per_lane[] = {0.15, 0.3, 0.48, 0.96, 1.92, 3.84};
    const double gen = tv_card_num(card, "link_gen"), width = tv_card_num(card, "link_width");
    const size_t row = gen >= 1 && gen <= 6 ? (size_t)gen - 1 : 4;
    return ceil(per_lane[row] * (width >= 1 && width <= 32 ? width : 16));
}

static void judge_replays(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0}, once = {0};
    double limit = 0;
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        const double samples = tv_noted_num(card->series, "samples");
        const double gained = tv_noted_num(card->series, "replays_gained");
        /* dmon and loops take a sample a second unless told otherwise. */
        const double per_min = gained / (samples - 1) * 60;
        const double limit_here = replay_limit_per_min(card);
        if (samples > 1 && gained > 0 && per_min > limit_here) {
            tv_card_hit_add(q, &hits, card, "replays", per_min);
            limit = limit_here;
        } else if (isnan(samples) && tv_card_num(card, "replays") >= 1000) {
            tv_card_hit_add(q, &once, card, "replays", tv_card_num(card, "replays"));
        }
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (f) {
        f->weight = 0.5;
        tv_found_num(q, f, "per_min", TV_ARG_NUMBER, hits.badness);
        tv_found_num(q, f, "limit_per_min", TV_ARG_NUMBER, limit);
    } else if ((f = tv_cards_found(q, rule, &once))) {
        f->severity = TV_INFO;
        f->sure = TV_LOW;
        f->cause =
            N_("{cards} has repeated {replays} PCIe packets since it was reset. Whether that "
               "is many depends on how long ago that was.");
        tv_found_num(q, f, "replays", TV_ARG_COUNT, once.badness);
        tv_ask(q, "nvidia-smi dmon -s et -c 60",
               N_("A minute of the replay counter under load: a healthy link repeats a handful."));
    }
}

/* ---- C30 ---- */

typedef struct link_error {
    const tv_sighting *s;
    const tv_note *card, *link;
    const char *fact;
    double n, before; /* NaN: read once */
} link_error;

static const char *const grave[] = {"recoveries",       "replays",        "recovery_failures",
                                    "malformed_errors", "overrun_errors", "effective_errors",
                                    "rx_errors",        "ecc_errors"};
static const char *const frequent[] = {"crc_errors", "crc_data_errors", "integrity_errors"};

static const tv_note *link_of(const tv_sighting *s, const tv_note *card, const tv_note *link)
{
    const tv_note *cards = tv_noted(&s->facts, "gpus");
    for (const tv_note *c = cards ? cards->first : NULL; c; c = c->next) {
        if (tv_noted_num(c, "index") != tv_noted_num(card, "index"))
            continue;
        const tv_note *links = tv_noted(c, "links");
        for (const tv_note *l = links ? links->first : NULL; l; l = l->next)
            if (tv_noted_num(l, "link") == tv_noted_num(link, "link"))
                return l;
    }
    return NULL;
}

/* What an earlier reading of the same link says. */
static double earlier(const tv_inquiry *q, const link_error *e)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "nvlink"); s && s != e->s;
         s = tv_scene_next(s, "nvlink")) {
        const tv_note *link = link_of(s, e->card, e->link);
        if (link && !isnan(tv_noted_num(link, e->fact)))
            return tv_noted_num(link, e->fact);
    }
    return (double)NAN;
}

static bool better(const link_error *x, const link_error *y)
{
    const bool rising = !isnan(x->before), other = !isnan(y->before);
    return rising != other ? rising : x->n > y->n;
}

static void look(const tv_inquiry *q, link_error *worst, const link_error *seen, double at_least)
{
    link_error e = *seen;
    e.n = tv_noted_num(e.link, e.fact);
    e.before = earlier(q, &e);
    const bool rising = e.n > e.before;
    if (!rising && (!isnan(e.before) || !(e.n >= at_least)))
        return;
    if (!worst->s || better(&e, worst))
        *worst = e;
}

static void look_at_link(const tv_inquiry *q, link_error *worst, link_error seen)
{
    for (size_t i = 0; i < sizeof grave / sizeof *grave; i++) {
        seen.fact = grave[i];
        look(q, worst, &seen, 1);
    }
    for (size_t i = 0; i < sizeof frequent / sizeof *frequent; i++) {
        seen.fact = frequent[i]; /* single ones are within what the link is built for */
        look(q, worst, &seen, 100);
    }
}

static bool has_xid(const tv_inquiry *q, double code)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "xid"); s; s = tv_scene_next(s, "xid")) {
        const tv_note *events = tv_noted(&s->facts, "events");
        for (const tv_note *e = events ? events->first : NULL; e; e = e->next)
            if (tv_noted_num(e, "xid") == code)
                return true;
    }
    return false;
}

static void judge_nvlink_metrics(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++)
        if (tv_card_num(&all.v[i], "nvlink_recoveries") > 0)
            tv_card_hit_add(q, &hits, &all.v[i], "nvlink_recoveries", 2);
        else if (tv_card_num(&all.v[i], "nvlink_replays") > 0)
            tv_card_hit_add(q, &hits, &all.v[i], "nvlink_replays", 1);
        else if (tv_card_num(&all.v[i], "nvlink_crc_errors") >= 100)
            tv_card_hit_add(q, &hits, &all.v[i], "nvlink_crc_errors", 0);
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (f)
        f->cause = N_("The NVLink error counters of {cards} are not zero: packets are sent again, "
                      "collectives over these links are slower or fail.");
}

static void judge_nvlink(tv_inquiry *q, const tv_rule *rule)
{
    link_error worst = {0};
    for (const tv_sighting *s = tv_scene_first(q->scene, "nvlink"); s;
         s = tv_scene_next(s, "nvlink")) {
        const tv_note *cards = tv_noted(&s->facts, "gpus");
        for (const tv_note *c = cards ? cards->first : NULL; c; c = c->next) {
            const tv_note *links = tv_noted(c, "links");
            for (const tv_note *l = links ? links->first : NULL; l; l = l->next)
                look_at_link(q, &worst, (link_error){.s = s, .card = c, .link = l});
        }
    }
    if (!worst.s) {
        judge_nvlink_metrics(q, rule);
        return;
    }
    tv_finding *f = tv_found(q, rule, worst.s, tv_noted(worst.link, worst.fact));
    f->sure = !isnan(worst.before) || has_xid(q, 74) ? TV_HIGH : TV_MEDIUM;
    tv_found_num(q, f, "gpu", TV_ARG_NUMBER, tv_noted_num(worst.card, "index"));
    tv_found_num(q, f, "link", TV_ARG_NUMBER, tv_noted_num(worst.link, "link"));
    tv_found_num(q, f, "errors", TV_ARG_COUNT, worst.n);
    if (isnan(worst.before)) {
        tv_ask(q, "nvidia-smi nvlink -e",
               N_("Read the counters twice, before and after a run: those that grow are at work "
                  "now."));
        return;
    }
    tv_found_num(q, f, "before", TV_ARG_COUNT, worst.before);
    f->cause = N_("Link {link} of GPU {gpu}: the error counter has grown from {before} to {errors} "
                  "between two readings. Packets are sent again, collectives over this link are "
                  "slower or fail.");
}

static const tv_rule rules[] = {
    {
        .id = "H05",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The PCIe link is slower than it could be, under load"),
        .cause = N_("{cards} works over PCIe generation {gen} (width {lanes}) although card and "
                    "slot can do generation {gen_max}: copies to and from the host, and between "
                    "cards without NVLink, take as much longer."),
        .decided = N_("The current generation is below the maximum of card and host while the card "
                      "is busy: utilisation of 10 % or more, at P0 to P4."),
        .unless = N_("An idle card lowers its link to save power (H06). Where card or host alone "
                     "cannot do more, nothing is wrong."),
        .source = "https://github.com/NVIDIA/NVSentinel/issues/890",
        .steps = {{.command = "lspci -vv -s {bus}",
                   .why = N_("LnkCap is what the card can do, LnkSta what it does; look at the "
                             "bridge above it as well.")},
                  {.command = "dmesg | grep -i -e \"limited by\" -e AER",
                   .why = N_("Where the link is limited, and whether it makes errors.")},
                  {.why = N_("Reseat the card, leave out the riser, try another slot; set the "
                             "slot's generation in the firmware from Auto to the card's.")}},
        .outranks = "H07 D07",
        .judge = judge_slow_link,
    },
    {
        .id = "H07",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The card has fewer PCIe lanes than it is built for"),
        .cause = N_("{cards} uses {lanes} of {lanes_max} lanes, {share} of the bandwidth to the "
                    "host, idle or busy."),
        .decided = N_("The current link width is below the maximum width of the card, in "
                      "nvidia-smi, in lspci's LnkSta, or in the kernel's line at start."),
        .unless = N_("Boards that split 16 lanes over two slots give each card 8 by design, and "
                     "external boxes 4: then only another slot or board helps."),
        .source = "https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/"
                  "nvidia/debug.md",
        .steps = {{.command = "lspci -vv -s {bus}",
                   .why = N_("Compare LnkCap and LnkSta of the card and of the bridge above it.")},
                  {.command = "lspci -tv",
                   .why = N_("Which slot, which bridge, and what shares its lanes.")},
                  {.why = N_("Use the slot with 16 lanes, switch off bifurcation in the firmware, "
                             "reseat the card and clean its contacts.")}},
        .judge = judge_narrow_link,
    },
    {
        .id = "H27",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The PCIe link repeats too many packets"),
        .cause = N_("{cards} repeats about {per_min} PCIe packets a minute; {limit_per_min} are "
                    "allowed for such a link. The signal is bad: riser, contact, cable or slot."),
        .decided = N_("The replay counter grows faster than NVIDIA's health check allows: 0.15, "
                      "0.3, 0.48, 0.96, 1.92, 3.84 per minute and lane for generations 1 to 6. A "
                      "large counter that was read once is told as information."),
        .unless = N_("dmon is taken to print one sample a second; with -d it is slower."),
        .source = "https://github.com/NVIDIA/DCGM",
        .steps = {{.command = "dmesg | grep -i AER",
                   .why = N_("Corrected errors on the same port confirm it.")},
                  {.why = N_("Reseat the card, replace the riser or cable; until then a lower "
                             "generation in the firmware's slot settings is slower and clean.")}},
        .outranks = "D07",
        .judge = judge_replays,
    },
    {
        .id = "C30",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("An NVLink makes errors"),
        .cause = N_("Link {link} of GPU {gpu} has counted {errors} errors. Packets are sent again, "
                    "collectives over this link are slower or fail."),
        .decided = N_("Replay, recovery or packet errors above zero, or 100 CRC errors or more; "
                      "growth between two readings, or Xid 74, makes it certain."),
        .unless = N_("Counters add up since the last reset: old errors say nothing of today."),
        .source = "https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/"
                  "nvidia/debug.md",
        .steps = {{.command = "nvidia-smi nvlink -e -i {gpu}",
                   .why = N_("Read twice, before and after a run.")},
                  {.why = N_("Reseat the bridge or module, or have it replaced if the errors stay "
                             "with it.")}},
        .outranks = "C16 C21",
        .judge = judge_nvlink,
    },
    {
        .id = "H06",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("The PCIe link rests while the card is idle"),
        .cause = N_("{cards} is idle and shows generation {gen} of {gen_max}: the link saves power "
                    "and comes back with the load. This is healthy."),
        .decided = N_("The generation is below its maximum, the width is full, and the card is not "
                      "busy."),
        .unless = NULL,
        .source = "https://github.com/tinygrad/open-gpu-kernel-modules/issues/6",
        .steps = {{.why = N_("Nothing to do; read it once more under load before judging.")}},
        .judge = judge_idle_link,
    },
};

extern const tv_rule_group tv_rule_group_link_rules;
const tv_rule_group tv_rule_group_link_rules = {"links", N_("Links of the card"), rules,
                                                sizeof rules / sizeof *rules};
