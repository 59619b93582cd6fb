/* Trainings that were logged at several counts of cards, and what a log itself says of
 * communication. */
#include "comm.h"

#include <math.h>
#include <string.h>

typedef struct run {
    const tv_sighting *s;
    double gpus;
    double rate;   /* of samples or tokens, over all cards as printed; NaN: not told */
    double step_s; /* NaN: not told */
} run;

/* "ddp_8gpu.log", "gpus=4.txt": a number beside "gpu" in the file's name. */
static double gpus_in_name(tv_str name)
{
    for (size_t i = 0; i + 3 <= name.n; i++) {
        if (!tv_str_eq_nocase((tv_str){name.p + i, 3}, TV_S("gpu")))
            continue;
        size_t k = i;
        while (k && name.p[k - 1] >= '0' && name.p[k - 1] <= '9')
            k--;
        tv_u64_read v = tv_str_u64((tv_str){name.p + k, i - k});
        if (!v.ok) {
            k = i + 3;
            while (k < name.n && strchr("sS_=-", name.p[k]) && name.p[k])
                k++;
            size_t end = k;
            while (end < name.n && name.p[end] >= '0' && name.p[end] <= '9')
                end++;
            v = tv_str_u64((tv_str){name.p + k, end - k});
        }
        if (v.ok && v.v >= 1 && v.v <= 65536)
            return (double)v.v;
    }
    return (double)NAN;
}

static double gpus_of(const tv_inquiry *q, const tv_sighting *s)
{
    const double told = tv_noted_num(&s->facts, "gpus");
    if (!isnan(told))
        return told;
    for (const tv_sighting *n = tv_scene_first(q->scene, "nccl"); n; n = tv_scene_next(n, "nccl"))
        if (tv_str_eq(n->file, s->file) && !isnan(tv_noted_num(&n->facts, "nranks")))
            return tv_noted_num(&n->facts, "nranks");
    return gpus_in_name(s->file);
}

static run run_of(const tv_inquiry *q, const tv_sighting *s, const char *key)
{
    return (run){s, gpus_of(q, s), tv_noted_num(&s->facts, key), tv_noted_num(&s->facts, "step_s")};
}

/* The share of the speed that more cards should have given: by what is processed, or by the time of
 * a step of the same work per card. Where both are told and differ, the kinder one: a log may print
 * the rate of one card. */
static double efficiency_of(const run *few, const run *many, bool *sure)
{
    const double by_rate = many->rate / many->gpus / (few->rate / few->gpus);
    const double by_step = few->step_s / many->step_s;
    *sure = !isnan(by_rate) && !isnan(by_step) && fabs(by_rate - by_step) < 0.1;
    if (isnan(by_rate) || isnan(by_step))
        return isnan(by_rate) ? by_step : by_rate;
    return fmax(by_rate, by_step);
}

#define GOOD_EFFICIENCY 0.8

/* What explains it without any communication, and is named first. */
static bool is_explained(const tv_inquiry *q, const tv_sighting *s)
{
    static const char *const causes[] = {"D01", "D02", "D03", "D04", "D14", "H10", "H11"};
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (tv_has_found(q, causes[i]))
            return true;
    return tv_noted_num(&s->facts, "data_frac") > 0.1;
}

static void report(tv_inquiry *q, const tv_rule *rule, const run *few, const run *many)
{
    bool sure;
    const double efficiency = efficiency_of(few, many, &sure);
    if (!(efficiency < GOOD_EFFICIENCY) || efficiency <= 0)
        return;
    tv_finding *f = tv_found(q, rule, many->s, tv_noted(&many->s->facts, "step_s"));
    tv_found_also(q, f, few->s, tv_noted(&few->s->facts, "step_s"));
    tv_found_num(q, f, "few", TV_ARG_NUMBER, few->gpus);
    tv_found_num(q, f, "many", TV_ARG_NUMBER, many->gpus);
    tv_found_num(q, f, "efficiency_frac", TV_ARG_RATIO, efficiency);
    f->weight = 1 - efficiency;
    if (!sure)
        f->sure = TV_LOW;
    if (is_explained(q, many->s)) {
        f->severity = TV_INFO;
        f->cause = N_("On {many} cards the job reaches {efficiency_frac} of the speed that {few} "
                      "would give times as many. Loading or unequal cards were found as well: mend "
                      "them first, communication is only blamed for what is left.");
        return;
    }
    tv_ask(q, "python train.py --profile",
           N_("A trace of a few steps on all ranks (torch.profiler) parts communication that is "
              "waited for from waiting for a late rank."));
}

static void judge_scaling_by(tv_inquiry *q, const tv_rule *rule, const char *key)
{
    run few = {0}, many = {0};
    for (const tv_sighting *s = tv_scene_first(q->scene, "train-log"); s;
         s = tv_scene_next(s, "train-log")) {
        const run now = run_of(q, s, key);
        if (!(now.gpus >= 1) || (isnan(now.rate) && isnan(now.step_s)))
            continue;
        if (!few.s || now.gpus < few.gpus)
            few = now;
        if (!many.s || now.gpus > many.gpus)
            many = now;
    }
    if (few.s && many.s && many.gpus > few.gpus)
        report(q, rule, &few, &many);
}

static void judge_scaling(tv_inquiry *q, const tv_rule *rule)
{
    judge_scaling_by(q, rule, "tokens_per_s");
    if (!tv_has_found(q, rule->id))
        judge_scaling_by(q, rule, "samples_per_s");
}

/* DeepSpeed's breakdown and others print the time of the gradients' reduction. */
static void judge_logged(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "train-log"); s;
         s = tv_scene_next(s, "train-log")) {
        const double comm = tv_noted_num(&s->facts, "comm_s");
        const double step = tv_noted_num(&s->facts, "step_s");
        if (!(comm > 0.2 * step))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "comm_s"));
        tv_found_num(q, f, "comm_s", TV_ARG_SECONDS, comm);
        tv_found_num(q, f, "step_s", TV_ARG_SECONDS, step);
        tv_found_num(q, f, "share_frac", TV_ARG_RATIO, comm / step);
        f->weight = comm / step;
        if (is_explained(q, s))
            f->severity = TV_INFO;
    }
}

static const tv_rule rules[] = {
    {
        .id = "C35",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("More cards give less than they should"),
        .cause =
            N_("On {many} cards the job reaches {efficiency_frac} of the speed that {few} would "
               "give times as many. With the same work per card, what is lost is waiting: for "
               "communication, or for the slowest rank."),
        .decided = N_("Logs of runs at two counts of cards: rate per card, or the step's time with "
                      "the same batch per card, falls under 0.8 of that of the smaller run. Medium "
                      "where both agree, low where only one is told."),
        .unless =
            N_("With a fixed batch over all cards the step gets shorter instead. Loading (D01 "
               "to D04) and unequal cards (H10, H11) are named first."),
        .source = "https://github.com/facebookresearch/HolisticTraceAnalysis",
        .steps = {{.command = "NCCL_DEBUG=INFO torchrun train.py",
                   .why =
                       N_("Is the path of each pair the best that topo -m allows (C04, C12, C13, "
                          "C14)?")},
                  {.command = "all_reduce_perf -b 1M -e 1G -f 2 -g 8",
                   .why = N_("What the links give without the job.")},
                  {.why = N_("If the path is right: accumulate gradients over more batches, larger "
                             "buckets, a lower stage of ZeRO, or a faster link.")}},
        .judge = judge_scaling,
    },
    {
        .id = "C45",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The log itself counts much time for communication"),
        .cause =
            N_("{comm_s} of each step of {step_s} ({share_frac}) go into reducing gradients, by "
               "the log's own count."),
        .decided =
            N_("A log that prints the time of the gradients' reduction shows more than a fifth "
               "of the step."),
        .unless = N_("Such breakdowns wait after each part, so that overlap does not show: a trace "
                     "tells what is really exposed."),
        .source = "https://www.deepspeed.ai/docs/config-json/",
        .steps = {{.why = N_("Accumulate over more batches, set overlap_comm, use larger buckets, "
                             "then look at the path (C04, C12 to C14).")}},
        .judge = judge_logged,
    },
};

extern const tv_rule_group tv_rule_group_scaling_rules;
const tv_rule_group tv_rule_group_scaling_rules = {"scaling", N_("Scaling over cards"), rules,
                                                   sizeof rules / sizeof *rules};
