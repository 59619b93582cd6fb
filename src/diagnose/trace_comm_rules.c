/* Communication in profiles: exposed, small, on one process, and who makes the others wait. The
 * loader is looked at first: a rank that waits for data makes all others wait in a collective. */
#include "trace_scene.h"

#include <math.h>

/* From which share of the time in collectives on waiting is the matter, not bandwidth. */
static const double skew_finding = 0.30;

static double exposed_share(const tv_sighting *s)
{
    return tv_trace_num(s, "exposed_comm_share");
}

static bool data_waits(const tv_sighting *s)
{
    return tv_trace_num(s, "shares.data") >= TV_DATA_FINDING;
}

/* The profile with the largest exposed share that no loader explains. */
static const tv_sighting *most_exposed(const tv_inquiry *q)
{
    const tv_sighting *most = NULL;
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s));)
        if (exposed_share(s) > TV_COMM_FINDING && !data_waits(s) &&
            tv_trace_num(s, "compute_union_s") > 0 &&
            (!most || exposed_share(s) > exposed_share(most)))
            most = s;
    return most;
}

static void put_exposed(tv_inquiry *q, tv_finding *f, const tv_sighting *most)
{
    f->weight = exposed_share(most) < 1 ? exposed_share(most) : 1;
    tv_found_num(q, f, "exposed_frac", TV_ARG_RATIO, exposed_share(most));
    tv_found_num(q, f, "exposed_s", TV_ARG_SECONDS, tv_trace_num(most, "exposed_comm_s"));
    tv_found_num(q, f, "window_s", TV_ARG_SECONDS, tv_trace_num(most, "window_s"));
    tv_found_num(q, f, "overlap_frac", TV_ARG_RATIO, tv_trace_num(most, "overlap"));
    tv_found_num(q, f, "busbw_bytes_per_s", TV_ARG_RATE,
                 tv_trace_num(most, "busbw_bytes_per_s_total"));
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s));)
        if (exposed_share(s) > TV_COMM_FINDING)
            tv_trace_evidence(q, f, s, "communication with no computation beside it",
                              tv_trace_num(s, "exposed_comm_s"), tv_trace_num(s, "window_s"));
}

/* One direction of the fastest link that the card has: NVLink's, or the slot's. */
static double link_bytes_per_s(const tv_inquiry *q)
{
    double best = (double)NAN;
    for (const tv_sighting *s = tv_scene_first(q->scene, "device-record"); s;
         s = tv_scene_next(s, "device-record")) {
        const double nvlink = tv_noted_num(&s->facts, "nvlink_bytes_per_s");
        best = best >= nvlink ? best : nvlink;
    }
    return isnan(best) ? tv_pcie_link(q) : best;
}

/* ---- C21 ---- */

static void judge_exposed(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *most = most_exposed(q);
    tv_rank_skew skew;
    if (!most || (tv_trace_skew(q, &skew) && skew.share >= skew_finding))
        return;
    tv_finding *f = tv_found(q, rule, NULL, NULL);
    put_exposed(q, f, most);
    const double busbw = tv_trace_num(most, "busbw_bytes_per_s_total");
    const double link = link_bytes_per_s(q);
    tv_found_num(q, f, "link_bytes_per_s", TV_ARG_RATE, link);
    if (busbw >= 0.5 * link) {
        f->sure = TV_HIGH;
        return;
    }
    f->cause = N_("Communication that no computation hides takes {exposed_frac} of the steps "
                  "({exposed_s} of {window_s}). A collective also contains waiting for the last "
                  "rank, so that one profile cannot tell a slow link from a late rank.");
    tv_ask(q, "trivet trace rank0.json rank1.json",
           N_("Give the profiles of all ranks: whoever is in the collectives for the shortest time "
              "is the one that the others wait for."));
}

/* ---- C22 ---- */

static void judge_skew(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *most = most_exposed(q);
    tv_rank_skew skew;
    if (!most || !tv_trace_skew(q, &skew) || skew.share < skew_finding)
        return;
    tv_finding *f = tv_found(q, rule, NULL, NULL);
    put_exposed(q, f, most);
    tv_found_num(q, f, "wait_frac", TV_ARG_RATIO, skew.share);
    tv_found_num(q, f, "wait_s", TV_ARG_SECONDS, skew.waits_s);
    tv_found_num(q, f, "late_rank", TV_ARG_NUMBER, tv_trace_rank(skew.late));
    tv_found_num(q, f, "late_frac", TV_ARG_RATIO, skew.late_share);
    tv_found_num(q, f, "ranks", TV_ARG_COUNT, (double)skew.ranks);
}

/* ---- C23 ---- */

static void judge_small(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s));) {
        const double sized = tv_trace_num(s, "collectives_sized");
        const double small = tv_trace_num(s, "small_collectives");
        const double per_step = tv_trace_per_step(s, small);
        if (!(small >= 50) || !(small >= 0.5 * sized) || !(per_step >= 20))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        if (!(exposed_share(s) >= 0.05))
            f->severity = TV_INFO;
        f->weight = exposed_share(s) > 0 ? exposed_share(s) : 0;
        tv_found_num(q, f, "small", TV_ARG_COUNT, small);
        tv_found_num(q, f, "sized", TV_ARG_COUNT, sized);
        tv_found_num(q, f, "per_step", TV_ARG_NUMBER, per_step);
        tv_found_num(q, f, "exposed_frac", TV_ARG_RATIO, exposed_share(s));
        return; /* the other ranks do the same */
    }
}

/* ---- C24 ---- */

static void judge_data_parallel(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s));) {
        if (!tv_noted_bool(&s->facts, "data_parallel", false))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        tv_found_num(q, f, "calls", TV_ARG_COUNT, tv_trace_num(s, "data_parallel_calls"));
        tv_found_num(q, f, "devices", TV_ARG_COUNT, tv_trace_num(s, "device_count"));
        const double exposed = exposed_share(s);
        f->weight = exposed > 0 ? exposed : 0;
        return;
    }
}

/* ---- T04 ---- */

static double compute_per_step(const tv_sighting *s)
{
    return tv_trace_per_step(s, tv_trace_num(s, "compute_union_s"));
}

typedef struct rank_range {
    const tv_sighting *most;
    double mean; /* of the others */
    size_t n;
} rank_range;

static rank_range slowest(const tv_inquiry *q)
{
    rank_range r = {0};
    double sum = 0;
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s));) {
        const double v = compute_per_step(s);
        if (!(v > 0) || isnan(tv_trace_rank(s)) || !(tv_trace_num(s, "nccl_kernels") > 0))
            continue;
        r.n++;
        sum += v;
        r.most = !r.most || v > compute_per_step(r.most) ? s : r.most;
    }
    if (r.n > 1)
        r.mean = (sum - compute_per_step(r.most)) / (double)(r.n - 1);
    return r;
}

static void judge_straggler(tv_inquiry *q, const tv_rule *rule)
{
    const rank_range r = slowest(q);
    if (r.n < 2 || !(compute_per_step(r.most) > 1.08 * r.mean))
        return;
    tv_finding *f = tv_found(q, rule, NULL, NULL);
    const double slow = compute_per_step(r.most);
    f->weight = 1 - r.mean / slow;
    tv_found_num(q, f, "rank", TV_ARG_NUMBER, tv_trace_rank(r.most));
    tv_found_num(q, f, "compute_s", TV_ARG_SECONDS, slow);
    tv_found_num(q, f, "others_s", TV_ARG_SECONDS, r.mean);
    tv_found_num(q, f, "slower_frac", TV_ARG_RATIO, slow / r.mean - 1);
    tv_found_num(q, f, "other_ranks", TV_ARG_COUNT, (double)(r.n - 1));
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s));)
        tv_trace_evidence(q, f, s, "computing per step", compute_per_step(s), 0);
    tv_ask(q,
           "nvidia-smi --query-gpu=index,temperature.gpu,clocks.sm,power.draw,power.limit "
           "--format=csv -l 5",
           N_("Run it on the slow rank's host and on another during training: heat and power caps "
              "show as a lower clock at the same load."));
}

static const tv_rule rules[] = {
    {
        .id = "T04",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("One rank computes more slowly than the others"),
        .cause =
            N_("Rank {rank} computes {compute_s} a step, the mean of the other {other_ranks} "
               "is {others_s}: {slower_frac} more. In lock-step training the slowest rank sets "
               "the speed of all, and the others wait for it in their collectives."),
        .decided = N_("Profiles of two or more ranks: the union of computing kernels per step of "
                      "one rank is more than 8 % above the mean of the others."),
        .unless = N_("Unequal work looks alike: pipeline stages, experts, longer sequences on one "
                     "rank. Compare clocks and temperatures before the hardware is blamed."),
        .source = "https://hta.readthedocs.io/en/latest/",
        .steps = {{.command = "nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE,POWER",
                   .why = N_("On the slow rank's host, under load: throttling, a lower power limit "
                             "or a hot card.")},
                  {.why = N_("If clocks are alike, make the work alike: bucket by length, balance "
                             "stages and experts.")}},
        .judge = judge_straggler,
    },
    {
        .id = "C21",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Communication takes a large part of the step"),
        .cause = N_("Communication that no computation hides takes {exposed_frac} of the steps "
                    "({exposed_s} of {window_s}), and the bus bandwidth of {busbw_bytes_per_s} is "
                    "near what the link carries: it is bound by bandwidth."),
        .decided =
            N_("In a profile with steps, kernels of NCCL or RCCL without computation beside them "
               "cover more than 20 % of the steps, and waiting for data less than 10 %. Sure "
               "where the bus bandwidth reaches half of the link."),
        .unless = N_("A collective contains waiting for the last rank: with large skew between the "
                     "ranks it is C22. A loader that waits on one rank shows as communication on "
                     "all others."),
        .source = "https://hta.readthedocs.io/en/latest/source/features/comm_comp_overlap.html",
        .steps =
            {{.why = N_("Accumulate gradients over several batches (no_sync): fewer exchanges for "
                        "the same number of samples.")},
             {.command = "DistributedDataParallel(model, bucket_cap_mb=100, "
                         "gradient_as_bucket_view=True)",
              .why = N_("Larger buckets use the link better; measure both ways, since they also "
                        "start later. Undo: the default is 25.")},
             {.why = N_("Less to send: bf16 or compressed gradients (a communication hook), a "
                        "lower ZeRO stage, sharding within a node only (HSDP).")},
             {.command = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH python train.py",
              .why = N_("See over which transport each channel runs: SHM or a socket where NVLink "
                        "or InfiniBand is possible is the first thing to mend.")}},
        .judge = judge_exposed,
    },
    {
        .id = "C22",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The ranks wait for one another in their collectives"),
        .cause = N_("{wait_frac} of the time in collectives is waiting for the last rank "
                    "({wait_s} a rank), not transfer. Rank {late_rank} comes last in {late_frac} "
                    "of them. Of the steps, exposed communication takes {exposed_frac}."),
        .decided = N_("Profiles of two or more ranks of a job, one of them with more than 20 % "
                      "exposed communication: all leave a collective together, so that the "
                      "time that a rank spends in it beyond the shortest is waiting. 30 % or more "
                      "of it is."),
        .unless = N_("Pipeline stages wait by design. One profile alone cannot tell (C21)."),
        .source = "https://github.com/AMD-AGI/TraceLens",
        .steps = {{.why = N_("Look at what rank {late_rank} does before its collectives: its "
                             "loader, its checkpoints, its logging, longer samples.")},
                  {.command = "nvidia-smi --query-gpu=index,temperature.gpu,clocks.sm,power.draw,"
                              "power.limit --format=csv -l 5",
                   .why = N_("Compare the card of the late rank with the others under load.")}},
        .outranks = "C21",
        .judge = judge_skew,
    },
    {
        .id = "C23",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Many small collectives"),
        .cause = N_("{small} of {sized} collectives carry less than 256 KiB, {per_step} a step: "
                    "each costs its start, not its bytes."),
        .decided = N_("Half or more of the collectives whose size the profile tells carry less "
                      "than 256 KiB, 50 or more of them and 20 or more a step."),
        .unless = N_("Tensor parallelism of small batches, and synchronised batch norms, are made "
                     "of small collectives."),
        .source = "https://github.com/pytorch/pytorch/issues/118421",
        .steps = {{.command = "DistributedDataParallel(model, bucket_cap_mb=100, "
                              "gradient_as_bucket_view=True)",
                   .why = N_("Gathers gradients before they are sent. Undo: the default is 25.")},
                  {.why = N_("Fuse what is exchanged by hand: one flat tensor instead of one a "
                             "parameter; log metrics every N steps.")}},
        .judge = judge_small,
    },
    {
        .id = "C24",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("nn.DataParallel copies the model in every step"),
        .cause = N_("One process drives all cards: in each step it broadcasts the parameters, "
                    "scatters the batch and gathers the results ({calls} such calls in the "
                    "profile). The first card does more, and Python's lock holds the others back."),
        .decided = N_("The profile names DataParallel.forward, or two of Broadcast, Scatter and "
                      "Gather as operations."),
        .unless = N_("Programs with operations of their own of these names."),
        .source = "https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html",
        .steps = {{.command = "torchrun --standalone --nproc-per-node=gpu train.py",
                   .why = N_("One process a card, the model in DistributedDataParallel, and a "
                             "DistributedSampler.")}},
        .judge = judge_data_parallel,
    },
};

extern const tv_rule_group tv_rule_group_trace_comm_rules;
const tv_rule_group tv_rule_group_trace_comm_rules = {
    "trace-communication", N_("Communication in profiles"), rules, sizeof rules / sizeof *rules};
