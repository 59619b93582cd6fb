/* What a card is worth to the job that runs on it: bought too large, paid for while idle, busy
 * without computing; and whether a profile is long enough to say so. Looks at use over time and at
 * profiles; knows prices only where the scene holds a product's record. */
#include <math.h>
#include <string.h>

#include "cards.h"

/* A series shorter than this says nothing of how a card is used. */
enum { least_samples = 10 };
/* Hours of a month, for prices by the hour. */
static const double month_h = 730;

static bool is_watched(const tv_card *card)
{
    return card->series && tv_noted_num(card->series, "samples") >= least_samples &&
           card->used_bytes > 0x1p30;
}

static void name_card(tv_inquiry *q, tv_finding *f, const tv_card *card)
{
    tv_found_str(q, f, "gpu", card->label.n ? card->label : TV_S("0"));
    tv_found_num(q, f, "util_frac", TV_ARG_RATIO, card->util_frac);
}

/* ---- U02, U03: too large, idle ---- */

static void judge_too_large(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        const double held = card->used_bytes / card->total_bytes;
        if (!is_watched(card) || !(card->util_frac < 0.40) || !(held < 0.40))
            continue;
        tv_finding *f = tv_found(q, rule, card->s, card->note);
        name_card(q, f, card);
        tv_found_num(q, f, "memory_frac", TV_ARG_RATIO, held);
        tv_found_num(q, f, "used_bytes", TV_ARG_MEMORY, card->used_bytes);
    }
}

static void judge_idle_money(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        const double price = tv_noted_num(tv_card_record(q, card), "usd_per_h");
        if (!is_watched(card) || !(card->util_frac < 0.30) || isnan(price))
            continue;
        tv_finding *f = tv_found(q, rule, card->s, card->note);
        name_card(q, f, card);
        tv_found_num(q, f, "usd_per_h", TV_ARG_NUMBER, price);
        tv_found_num(q, f, "idle_usd_per_month", TV_ARG_NUMBER,
                     round((1 - card->util_frac) * price * month_h));
    }
}

/* ---- U04: busy is not full ---- */

static void judge_busy(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        const double sm = tv_card_num(card, "sm_active_frac");
        const double dram = tv_card_num(card, "dram_active_frac");
        if (!(card->util_frac >= 0.90) || !(sm < 0.50))
            continue;
        tv_finding *f = tv_found(q, rule, card->s, card->note);
        name_card(q, f, card);
        tv_found_num(q, f, "sm_active_frac", TV_ARG_RATIO, sm);
        tv_found_num(q, f, "dram_active_frac", TV_ARG_RATIO, dram);
        tv_found_word(q, f, "bound",
                      dram >= 0.70  ? N_("memory bandwidth")
                      : isnan(dram) ? N_("not known without DCGM_FI_PROF_DRAM_ACTIVE")
                                    : N_("small or waiting kernels"));
    }
}

/* ---- U05: copies ---- */

/* The share of the device's time that a table of operators gives to copies. */
static double copy_share(const tv_sighting *s, const tv_note **at)
{
    double share = 0;
    for (const tv_note *row = s->facts.first; row; row = row->next) {
        if (row->type != TV_NOTE_MAP || strncmp(row->key, "row", 3) != 0)
            continue;
        const double frac = tv_noted_num(row, "self_cuda_frac");
        if (!tv_noted_is(row, "name", "aten::copy_") || isnan(frac))
            continue;
        share += frac;
        *at = row;
    }
    return share;
}

static void judge_copies(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "key_averages"); s;
         s = tv_scene_next(s, "key_averages")) {
        const tv_note *at = NULL;
        const double share = copy_share(s, &at);
        if (share < 0.10)
            continue;
        tv_finding *f = tv_found(q, rule, s, at);
        f->weight = share;
        tv_found_num(q, f, "copy_frac", TV_ARG_RATIO, share);
    }
}

/* ---- U06: overlap ---- */

static void judge_overlap(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "paddle-profiler"); s;
         s = tv_scene_next(s, "paddle-profiler")) {
        const tv_note *both = tv_noted(&s->facts, "distribution.overlap");
        const double comm_s = tv_noted_num(&s->facts, "distribution.communication.total_s");
        const double overlap_s = tv_noted_num(both, "total_s");
        const double exposed = tv_noted_num(&s->facts, "exposed_comm_frac");
        if (!(comm_s > 0) || !(overlap_s / comm_s < 0.60) || exposed < 0.05 ||
            tv_has_found(q, "D04"))
            continue;
        tv_finding *f = tv_found(q, rule, s, both);
        f->weight = isnan(exposed) ? 0 : exposed;
        tv_found_num(q, f, "overlap_frac", TV_ARG_RATIO, overlap_s / comm_s);
        tv_found_num(q, f, "comm_s", TV_ARG_SECONDS, comm_s);
        tv_found_num(q, f, "overlap_s", TV_ARG_SECONDS, overlap_s);
    }
}

/* ---- U07: too short a profile ---- */

static double steps_of(const tv_sighting *s)
{
    const double steps = tv_noted_num(&s->facts, "steps");
    if (!isnan(steps))
        return steps;
    const double calls = tv_noted_num(&s->facts, "profilerstep.calls");
    return isnan(calls) ? tv_noted_num(&s->facts, "model.profilestep.calls") : calls;
}

static void judge_short(tv_inquiry *q, const tv_rule *rule)
{
    static const char *const kinds[] = {"trace", "key_averages", "paddle-profiler"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (const tv_sighting *s = tv_scene_first(q->scene, kinds[k]); s;
             s = tv_scene_next(s, kinds[k])) {
            const double steps = steps_of(s);
            if (!(steps > 0) || steps >= 10)
                continue;
            tv_finding *f = tv_found(q, rule, s, NULL);
            tv_found_num(q, f, "steps", TV_ARG_COUNT, steps);
        }
}

/* ---- I12: jitter ---- */

static void judge_jitter(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "latency"); s;
         s = tv_scene_next(s, "latency")) {
        const double median_s = tv_noted_num(&s->facts, "median_s");
        const double p99_s = tv_noted_num(&s->facts, "p99_s");
        if (!(p99_s >= 2 * median_s) || !(median_s > 0))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "p99_s"));
        f->weight = fmin(1, p99_s / median_s / 10);
        tv_found_num(q, f, "p50_s", TV_ARG_SECONDS, median_s);
        tv_found_num(q, f, "p99_s", TV_ARG_SECONDS, p99_s);
        tv_found_num(q, f, "ratio", TV_ARG_NUMBER, round(p99_s / median_s * 10) / 10);
        tv_ask(q, "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv",
               N_("Whether another process shares the card: the most common reason of a long "
                  "tail."));
    }
}

/* ---- the rows ---- */

static const tv_rule rules[] = {
    {
        .id = "U02",
        .severity = TV_INFO,
        .sure = TV_MEDIUM,
        .title = N_("The card is larger than the job"),
        .cause =
            N_("GPU {gpu} works {util_frac} of the time and the job holds {memory_frac} of its "
               "memory ({used_bytes}): neither its compute nor its memory is needed."),
        .decided =
            N_("Over at least ten readings the mean utilisation is below 40 % and the memory "
               "in use below 40 % of the card's."),
        .unless = N_("A job that waits for its data looks the same: what the loader does comes "
                     "first (D01 to D05)."),
        .source = "trivet, requirements R047",
        .steps = {{.command = "trivet plan MODEL --task train --batch N",
                   .why = N_("Cards that hold the job, ranked by what they cost.")},
                  {.why =
                       N_("If the loader is what the card waits for, a larger batch or a cheaper "
                          "card changes nothing: mend the loader first.")}},
        .judge = judge_too_large,
    },
    {
        .id = "U03",
        .severity = TV_INFO,
        .sure = TV_MEDIUM,
        .title = N_("Most of the card's price is paid for waiting"),
        .cause = N_("GPU {gpu} works {util_frac} of the time. At {usd_per_h} USD an hour, the rest "
                    "costs about {idle_usd_per_month} USD a month."),
        .decided = N_("Over at least ten readings the mean utilisation is below 30 %, and the "
                      "catalogue knows an hourly price of the product."),
        .unless = N_("A card that serves requests is sized for its busiest hour."),
        .source = "trivet, requirements R048",
        .steps = {{.why = N_("Let several jobs share the card (MIG, MPS or a queue), or take a "
                             "smaller one.")},
                  {.command = "trivet plan MODEL --aim cheapest",
                   .why = N_("The cheapest card that holds the job.")}},
        .judge = judge_idle_money,
    },
    {
        .id = "U04",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("Utilisation is full, the card is not"),
        .cause =
            N_("GPU {gpu} shows {util_frac} utilisation while its multiprocessors are active "
               "{sm_active_frac} of the time: utilisation only says that some kernel ran. What "
               "bounds it: {bound}."),
        .decided = N_("Utilisation of 90 % or more with SM activity below 50 %; DRAM activity of "
                      "70 % or more means that memory bandwidth is the bound."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html",
        .steps = {{.command = "dcgmi dmon -e 1001,1002,1003,1004,1005 -d 100",
                   .why = N_("Activity of the graphics engine, the multiprocessors, their "
                             "occupancy, the tensor cores and the memory.")},
                  {.why = N_("Bound by memory bandwidth: fuse elementwise kernels (torch.compile), "
                             "keep activations in 16 bit. Bound by small kernels: larger batches, "
                             "CUDA graphs.")}},
        .judge = judge_busy,
    },
    {
        .id = "U05",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Copies take a large part of the device's time"),
        .cause = N_("aten::copy_ takes {copy_frac} of the device's time: data is moved or cast "
                    "again and again instead of staying where and as it is needed."),
        .decided = N_("In a table of operators aten::copy_ has 10 % or more of the device's own "
                      "time."),
        .unless = N_("Under autocast some casts are the price of 16-bit compute: below 10 % they "
                     "are not called."),
        .source = "trivet, requirements R163",
        .steps = {{.why = N_("Move batches once: pin_memory=True and .to(device, "
                             "non_blocking=True).")},
                  {.why = N_("Keep one dtype and one memory format: casts and contiguous() are "
                             "copies; model.to(memory_format=torch.channels_last) goes with inputs "
                             "of the same format.")}},
        .judge = judge_copies,
    },
    {
        .id = "U06",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Communication is not hidden behind computing"),
        .cause = N_("Of {comm_s} of communication only {overlap_s} ({overlap_frac}) runs while "
                    "something is computed; the step waits for the rest."),
        .decided = N_("Paddle's Distribution Summary: overlap below 60 % of communication, and at "
                      "least 5 % of the step exposed."),
        .unless = N_("A job that waits for its reader (D04) shows little overlap too: the reader "
                     "comes first."),
        .source = "https://www.paddlepaddle.org.cn/documentation/docs/en/guides/"
                  "performance_improving/profiling_model.html",
        .steps = {{.why = N_("Let gradients leave in buckets while backward still runs: "
                             "paddle.DataParallel(model, comm_buffer_size=25), or fewer, larger "
                             "accumulated steps.")}},
        .judge = judge_overlap,
    },
    {
        .id = "U07",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("The profile is short"),
        .cause =
            N_("Only {steps} steps are profiled: the first ones search algorithms, fill caches "
               "and start workers, and weigh heavily here."),
        .decided = N_("A trace or table with fewer than ten steps."),
        .unless = NULL,
        .source = "https://docs.pytorch.org/docs/stable/profiler.html",
        .steps = {{.why = N_("Profile at least ten steps after a warm-up: schedule(wait=5, "
                             "warmup=5, active=10).")}},
        .judge = judge_short,
    },
    {
        .id = "I12",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Latency has a long tail"),
        .cause = N_("Half of the answers come within {p50_s}, one in a hundred takes {p99_s} or "
                    "more: {ratio} times as long."),
        .decided = N_("The 99th percentile of one run is twice the median or more."),
        .unless = N_("Requests of very different lengths have a tail of their own: compare equal "
                     "ones."),
        .source = "trivet, requirements R188",
        .steps = {{.command = "nvidia-smi --query-compute-apps=pid,used_memory --format=csv",
                   .why = N_("Another process on the card is the most common reason.")},
                  {.why = N_("Then the clocks (I01), the CPU's governor (I03), requests of lengths "
                             "that were never warmed up (I04), and the queue: above 80 % use the "
                             "tail grows without bound.")}},
        .judge = judge_jitter,
    },
};

extern const tv_rule_group tv_rule_group_worth_rules;
const tv_rule_group tv_rule_group_worth_rules = {"worth", N_("What the card is worth to the job"),
                                                 rules, sizeof rules / sizeof *rules};
