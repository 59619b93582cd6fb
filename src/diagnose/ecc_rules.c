/* Errors of the card's memory: the counters that the card keeps, and the Xids that tell of them. */
#include <math.h>

#include "cards.h"
#include "xid_seen.h"

/* ---- Xids of any file ---- */

typedef struct xid_place {
    const tv_sighting *s;
    const tv_note *event;
    tv_str where; /* the card */
} xid_place;

/* The first event with one of the codes (0 ends the list), in kernel logs or metrics. */
static xid_place xid_among(const tv_inquiry *q, const double *codes)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "xid"); s; s = tv_scene_next(s, "xid")) {
        const tv_note *events = tv_noted(&s->facts, "events");
        for (const tv_note *e = events ? events->first : NULL; e; e = e->next)
            for (size_t k = 0; codes[k] > 0; k++)
                if (tv_noted_num(e, "xid") == codes[k])
                    return (xid_place){s, e, tv_noted_str(e, "pci")};
    }
    return (xid_place){0};
}

static void found_xid(tv_inquiry *q, tv_finding *f, const xid_place *x)
{
    tv_found_num(q, f, "xid", TV_ARG_NUMBER, tv_noted_num(x->event, "xid"));
    if (!x->where.n)
        return;
    /* Metrics know the card's number, kernel logs its place on the bus. */
    const bool number = tv_str_starts(x->where, TV_S("index "));
    const tv_str id = number ? tv_str_drop(x->where, 6) : tv_pci_bus_id(q->a, x->where);
    tv_found_str(q, f, "cards", number ? tv_str_join(q->a, TV_S("GPU "), id) : x->where);
    tv_found_str(q, f, "gpus", id);
    tv_found_str(q, f, "gpu", id);
}

/* ---- counters ---- */

static bool any_above(const tv_card *card, const char *const *facts, double above, const char **hit,
                      double *value)
{
    for (size_t i = 0; facts[i]; i++) {
        const double v = tv_card_num(card, facts[i]);
        if (v > above) {
            *hit = facts[i];
            *value = v;
            return true;
        }
    }
    return false;
}

static tv_card_hits counted(tv_inquiry *q, const char *const *facts, double above)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++) {
        const char *fact;
        double v;
        if (any_above(&all.v[i], facts, above, &fact, &v))
            tv_card_hit_add(q, &hits, &all.v[i], fact, v);
    }
    return hits;
}

static tv_card_hits flagged(tv_inquiry *q, const char *const *facts)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++)
        for (size_t k = 0; facts[k]; k++)
            if (tv_card_bool(&all.v[i], facts[k])) {
                tv_card_hit_add(q, &hits, &all.v[i], facts[k], 1);
                break;
            }
    return hits;
}

/* One finding for what the counters and what the log says. */
static tv_finding *found_either(tv_inquiry *q, const tv_rule *rule, const tv_card_hits *hits,
                                const xid_place *x, const char *cause_of_xid)
{
    tv_finding *f = tv_cards_found(q, rule, hits);
    if (f && x->s) {
        tv_found_also(q, f, x->s, x->event);
    } else if (x->s) {
        f = tv_found(q, rule, x->s, x->event);
        tv_found_word(q, f, "cards", N_("the GPU"));
        f->cause = cause_of_xid;
        found_xid(q, f, x);
    }
    return f;
}

/* ---- H15 ---- */

static const char *const uncorrected_now[] = {"dram_uncorr_volatile",
                                              "sram_uncorr_volatile",
                                              "double_bit_volatile",
                                              "device_double_bit_volatile",
                                              "ecc",
                                              NULL};
static const char *const uncorrected_ever[] = {"dram_uncorr_aggregate", "double_bit_aggregate",
                                               "sram_uncorr_aggregate", NULL};

static void judge_uncorrected(tv_inquiry *q, const tv_rule *rule)
{
    static const double codes[] = {48, 95, 140, 171, 172, 0};
    const tv_card_hits hits = counted(q, uncorrected_now, 0);
    const xid_place x = xid_among(q, codes);
    tv_finding *f =
        found_either(q, rule, &hits, &x,
                     N_("Xid {xid} on {cards}: memory of the card returned data that error "
                        "correction could not repair. Results since then are not to be trusted."));
    if (f) {
        f->weight = 0.9;
        tv_found_num(q, f, "errors", TV_ARG_COUNT, hits.n ? hits.badness : (double)NAN);
        return;
    }
    const tv_card_hits past = counted(q, uncorrected_ever, 0);
    f = tv_cards_found(q, rule, &past);
    if (!f)
        return;
    f->severity = TV_INFO;
    f->cause =
        N_("{cards} has counted {errors} uncorrectable memory errors in its life, none since "
           "the driver was loaded.");
    tv_found_num(q, f, "errors", TV_ARG_COUNT, past.badness);
}

/* ---- H16, H17, H18, H19, H20 ---- */

/* The counters of any card say whether a row still waits. */
static bool any_remap_counters(tv_inquiry *q)
{
    const tv_cards all = tv_cards_of(q);
    for (size_t i = 0; i < all.n; i++) {
        const tv_note *pending = tv_noted(all.v[i].note, "remap_pending");
        if (pending && pending->type == TV_NOTE_BOOL)
            return true;
    }
    return false;
}

static void judge_remap_pending(tv_inquiry *q, const tv_rule *rule)
{
    static const char *const repairs[] = {"remap_pending", "channel_repair_pending",
                                          "tpc_repair_pending", NULL};
    static const double recorded[] = {63, 0}, failed[] = {64, 0};
    const tv_card_hits all = flagged(q, repairs);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++)
        if (!tv_card_bool(all.v[i].card, "remap_failure"))
            tv_card_hit_add(q, &hits, all.v[i].card, all.v[i].fact, 1);
    xid_place x = xid_among(q, recorded);
    if (!hits.n && (any_remap_counters(q) || xid_among(q, failed).s))
        x = (xid_place){0};
    tv_finding *f = found_either(
        q, rule, &hits, &x,
        N_("Xid {xid} on {cards}: the driver has recorded a broken piece of memory, and "
           "a spare one takes its place at the next reset. Nothing has failed; it is no "
           "reason to return the card."));
    if (!f)
        return;
    f->weight = 0.5;
    if (!hits.n) {
        f->sure = TV_MEDIUM;
        tv_ask(q, "nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT",
               N_("Whether the repair still waits for a reset, and whether one has ever failed."));
        return;
    }
    const tv_card *card = hits.v[hits.worst].card;
    tv_found_num(q, f, "corrected_rows", TV_ARG_COUNT, tv_card_num(card, "remap_corr"));
    tv_found_num(q, f, "uncorrected_rows", TV_ARG_COUNT, tv_card_num(card, "remap_uncorr"));
}

static void judge_remap_failed(tv_inquiry *q, const tv_rule *rule)
{
    static const char *const failures[] = {"remap_failure", "unrepairable_memory", NULL};
    static const double codes[] = {64, 0};
    const tv_card_hits hits = flagged(q, failures);
    const xid_place x = xid_among(q, codes);
    tv_finding *f =
        found_either(q, rule, &hits, &x,
                     N_("Xid {xid} on {cards}: a broken part of the memory could not be replaced "
                        "by a spare one."));
    if (!f)
        return;
    f->weight = 1;
    if (!hits.n) { /* the counters decide; the Xid alone is no reason to swap hardware */
        f->sure = TV_MEDIUM;
        tv_ask(q, "nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT,ECC",
               N_("Whether remapping has really failed: the counters decide, not the Xid alone."));
    }
}

static void judge_sram(tv_inquiry *q, const tv_rule *rule)
{
    static const char *const threshold[] = {"sram_threshold_exceeded", NULL};
    static const char *const counters[] = {"sram_uncorr_aggregate", NULL};
    const tv_card_hits said = flagged(q, threshold);
    const tv_card_hits many = counted(q, counters, 4);
    tv_finding *f = tv_cards_found(q, rule, said.n ? &said : &many);
    if (!f)
        return;
    const tv_card_hits *hits = said.n ? &said : &many;
    f->sure = said.n ? TV_HIGH : TV_MEDIUM;
    tv_found_num(q, f, "errors", TV_ARG_COUNT,
                 tv_card_num(hits->v[hits->worst].card, "sram_uncorr_aggregate"));
    if (said.n)
        f->cause =
            N_("{cards} says that its threshold of uncorrectable errors in on-chip memory is "
               "exceeded: the maker's condition for replacing it.");
}

/* NVIDIA replaces cards of that era at 60 retired pages. */
static const double most_pages = 60;

static double pages_of(const tv_card *card)
{
    const double single = tv_card_num(card, "retired_single");
    const double twice = tv_card_num(card, "retired_double");
    return (isnan(single) ? 0 : single) + (isnan(twice) ? 0 : twice);
}

static void judge_pages(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++)
        if (pages_of(&all.v[i]) >= most_pages)
            tv_card_hit_add(q, &hits, &all.v[i], "retired_double", pages_of(&all.v[i]));
        else if (tv_card_bool(&all.v[i], "retired_pending"))
            tv_card_hit_add(q, &hits, &all.v[i], "retired_pending", pages_of(&all.v[i]));
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    tv_found_num(q, f, "pages", TV_ARG_COUNT, hits.badness);
    if (hits.badness >= most_pages) {
        f->severity = TV_CRITICAL;
        f->cause = N_("{cards} has retired {pages} pages of its memory; at 60 the card is to be "
                      "replaced.");
    }
}

static void judge_corrected(tv_inquiry *q, const tv_rule *rule)
{
    static const char *const counters[] = {"dram_corr_volatile", "sram_corr_volatile",
                                           "single_bit_volatile", "device_single_bit_volatile",
                                           NULL};
    static const double codes[] = {92, 0};
    const tv_card_hits hits = counted(q, counters, 1000);
    const xid_place x = xid_among(q, codes);
    tv_finding *f =
        found_either(q, rule, &hits, &x,
                     N_("Xid {xid} on {cards}: the rate of corrected memory errors is high."));
    if (!f)
        return;
    f->sure = x.s ? TV_MEDIUM : TV_LOW;
    tv_found_num(q, f, "errors", TV_ARG_COUNT, hits.n ? hits.badness : (double)NAN);
}

/* ---- X42 ---- */

static void judge_video(tv_inquiry *q, const tv_rule *rule)
{
    static const double codes[] = {42, 0};
    for (const tv_sighting *s = tv_scene_first(q->scene, "prometheus"); s;
         s = tv_scene_next(s, "prometheus"))
        if (tv_noted_num(&s->facts, "xid") == 42) {
            tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "xid"));
            tv_found_num(q, f, "gpu", TV_ARG_NUMBER, tv_noted_num(&s->facts, "gpu"));
            tv_found_str(q, f, "driver", tv_noted_str(&s->facts, "driver"));
            tv_found_num(q, f, "window_s", TV_ARG_SECONDS, tv_noted_num(&s->facts, "window_s"));
            return;
        }
    const xid_place x = xid_among(q, codes);
    if (x.s) {
        tv_finding *f = tv_found(q, rule, x.s, x.event);
        found_xid(q, f, &x);
    }
}

static const tv_rule rules[] = {
    {
        .id = "H17",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("Broken memory could not be replaced by spare rows"),
        .cause =
            N_("{cards}: remapping of a broken memory row has failed, no spare is left for it. "
               "The card has to be replaced."),
        .decided = N_("Remapping Failure Occurred: Yes, or Unrepairable Memory: Yes. Xid 64 alone "
                      "makes it likely."),
        .unless = N_("Xid 63 or 64 without the counters is no reason to replace a card."),
        .source = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html",
        .steps = {{.command = "nvidia-smi -q -d ROW_REMAPPER,ECC",
                   .why = N_("Evidence for the return of the card.")},
                  {.why = N_("Drain the node, run the maker's field diagnostic, and have the card "
                             "replaced.")}},
        .outranks = "H15 H16 H18 H20 H30",
        .judge = judge_remap_failed,
    },
    {
        .id = "H15",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("Memory errors that could not be corrected"),
        .cause = N_("{cards} has counted {errors} memory errors that could not be corrected since "
                    "the driver was loaded. Results since then are not to be trusted, and jobs on "
                    "the card may be killed."),
        .decided = N_("An uncorrectable counter (volatile) above zero, or Xid 48, 95, 140, 171 or "
                      "172. Counters of the card's whole life are only told."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html",
        .steps = {{.command = "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT",
                   .why = N_("Which memory, and whether a spare row is waiting.")},
                  {.command = "nvidia-smi -r -i {gpus}",
                   .why = N_("Once the node is drained: the reset puts spare rows in place. It "
                             "ends every process on the card and cannot be taken back; wait for "
                             "running jobs or let their owners stop them.")},
                  {.command = "dcgmi diag -r 3",
                   .why = N_("A memory test before the card works again; if the errors come back, "
                             "have it replaced.")}},
        .outranks = "H16 H20 H30",
        .judge = judge_uncorrected,
    },
    {
        .id = "H16",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("A spare memory row waits for a reset"),
        .cause = N_("{cards}: a broken memory row is to be replaced by a spare one, which happens "
                    "at the next reset of the card. Nothing has failed; it is no reason to return "
                    "the card."),
        .decided = N_("Remapped Rows: Pending is Yes and Remapping Failure Occurred is not (or a "
                      "channel or TPC repair is pending), or Xid 63 without counters."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html",
        .steps = {{.command = "nvidia-smi -r -i {gpus}",
                   .why = N_("When the node is idle. It ends every process on the card and cannot "
                             "be taken back; a reboot does the same.")},
                  {.command = "nvidia-smi -q -d ROW_REMAPPER",
                   .why = N_("Afterwards Pending must say No.")}},
        .judge = judge_remap_pending,
    },
    {
        .id = "H18",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("On-chip memory of the card is failing"),
        .cause = N_("{cards} has counted {errors} uncorrectable errors in on-chip memory (SRAM) in "
                    "its life. More than four make it a candidate for replacement."),
        .decided = N_("SRAM Threshold Exceeded: Yes, or more than 4 aggregate uncorrectable SRAM "
                      "errors."),
        .unless = NULL,
        .source = "https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/"
                  "nvidia/debug.md",
        .steps = {{.command = "nvidia-smi -q -d ECC",
                   .why = N_("Which units the errors came from.")},
                  {.command = "dcgmi diag -r 3",
                   .why = N_("Confirm it on an idle node before returning the card.")}},
        .judge = judge_sram,
    },
    {
        .id = "H19",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Memory pages are being retired"),
        .cause =
            N_("{cards}: a page of memory is to be retired and waits for a reboot; {pages} are "
               "retired already."),
        .decided = N_("Retired Pages: Pending is Yes, or single and double bit retirements reach "
                      "60 (cards up to Volta)."),
        .unless = N_("Cards from Ampere on remap rows instead and show N/A here."),
        .source = "https://docs.nvidia.com/deploy/dynamic-page-retirement/index.html",
        .steps = {{.command = "nvidia-smi -q -d PAGE_RETIREMENT",
                   .why = N_("The counts and causes.")},
                  {.why = N_("Reboot the drained node, or reload the driver; at 60 pages have the "
                             "card replaced.")}},
        .judge = judge_pages,
    },
    {
        .id = "H20",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Many corrected memory errors"),
        .cause = N_("{cards} has corrected {errors} memory errors since the driver was loaded. "
                    "Nothing is lost, but memory that degrades ends in errors that cannot be "
                    "corrected."),
        .decided =
            N_("Xid 92, or a volatile corrected counter above 1,000 (which without a time is "
               "a weak sign)."),
        .unless = N_("A card that has run for months may have collected them slowly."),
        .source = "https://docs.nvidia.com/deploy/xid-errors/index.html",
        .steps = {{.command = "nvidia-smi -q -d ECC,ROW_REMAPPER",
                   .why = N_("Read twice with an hour between: the rate counts.")},
                  {.command = "dcgmi diag -r 3", .why = N_("A memory test on an idle node.")}},
        .judge = judge_corrected,
    },
    {
        .id = "X42",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Xid 42: the video processor raised an exception"),
        .cause = N_("Xid 42 comes from the card's video processor and is known from older driver "
                    "branches. Computing is not touched by it."),
        .decided = N_("The code 42 in a kernel log or in an exporter's metric."),
        .unless = N_("Exporters keep the last code until they are restarted, and tests inject "
                     "codes: without a line in the kernel log it may be neither recent nor real."),
        .source = "https://github.com/NVIDIA/dcgm-exporter/issues/239",
        .steps = {{.command = "dmesg -T | grep -i xid",
                   .why = N_("Whether and when the driver reported it itself.")},
                  {.why = N_("Update the driver if it comes back; for computing nothing is to be "
                             "done.")}},
        .judge = judge_video,
    },
};

extern const tv_rule_group tv_rule_group_ecc_rules;
const tv_rule_group tv_rule_group_ecc_rules = {"memory-errors", N_("Errors of the card's memory"),
                                               rules, sizeof rules / sizeof *rules};
