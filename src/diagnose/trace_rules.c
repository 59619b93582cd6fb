/* What a profile says of one process: copies that block, launches, reads of single numbers, memory
 * that grows, checkpoints, and how much of the work is matrix work. */
#include "trace_scene.h"

#include <math.h>

#include "base/unit.h"

static void put_weight(tv_finding *f, double share)
{
    f->weight = share > 1 ? 1 : share > 0 ? share : 0;
}

/* ---- D06 ---- */

typedef struct pageable {
    double in, out; /* copies to and from the device */
    double cost;    /* share of the time in which the host stands for them */
} pageable;

static pageable pageable_of(const tv_sighting *s)
{
    pageable p = {tv_trace_num(s, "pageable_htod"), tv_trace_num(s, "pageable_dtoh"), 0};
    const double calls = tv_trace_share(s, tv_trace_num(s, "pageable_call_s"));
    const double copies = tv_trace_share(s, tv_trace_num(s, "pageable_htod_s"));
    p.cost = calls > copies || isnan(copies) ? calls : copies;
    return p;
}

static void judge_pageable(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *most = NULL;
    pageable of_most = {0};
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s));) {
        const pageable p = pageable_of(s);
        if (!(p.in + p.out >= 1) || (most && !(p.cost > of_most.cost)))
            continue;
        most = s;
        of_most = p;
    }
    if (!most)
        return;
    tv_finding *f = tv_found(q, rule, NULL, NULL);
    if (!(of_most.cost >= 0.02))
        f->severity = TV_INFO;
    put_weight(f, of_most.cost);
    tv_found_num(q, f, "cost_frac", TV_ARG_RATIO, of_most.cost);
    tv_found_num(q, f, "call_s", TV_ARG_SECONDS, tv_trace_num(most, "pageable_call_s"));
    tv_trace_evidence(q, f, most, "host in calls that copy pageable memory",
                      tv_trace_num(most, "pageable_call_s"), tv_trace_num(most, "host_span_s"));
    if (of_most.in >= 1) {
        tv_found_num(q, f, "to_device", TV_ARG_COUNT, of_most.in);
        tv_found_num(q, f, "to_device_bytes", TV_ARG_DISK,
                     tv_trace_num(most, "pageable_htod_bytes"));
    }
    if (of_most.out >= 1)
        tv_found_num(q, f, "to_host", TV_ARG_COUNT, of_most.out);
    if (of_most.in >= 1 && of_most.out >= 1)
        f->cause = N_("{to_device} copies to the device and {to_host} back go through pageable "
                      "memory: each makes the host wait for the stream and runs below the speed "
                      "of the link. The host stands in them {cost_frac} of the time.");
    else if (of_most.out >= 1)
        f->cause = N_("{to_host} copies go from the device to pageable memory (.item(), .cpu(), a "
                      "print): each one makes the host wait until the device has done all that "
                      "was queued. The host stands in them {cost_frac} of the time.");
}

/* ---- D07 ---- */

static void judge_link(tv_inquiry *q, const tv_rule *rule)
{
    const double link = tv_pcie_link(q);
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s));) {
        const double rate = tv_trace_num(s, "htod_large_bytes_per_s");
        if (!(rate < 0.4 * link))
            continue;
        tv_finding *f = tv_found(q, rule, NULL, NULL);
        tv_found_num(q, f, "rate_bytes_per_s", TV_ARG_RATE, rate);
        tv_found_num(q, f, "link_bytes_per_s", TV_ARG_RATE, link);
        tv_found_num(q, f, "of_link_frac", TV_ARG_RATIO, rate / link);
        put_weight(f, tv_trace_share(s, tv_trace_num(s, "exposed_copy_s")));
        tv_buf b = tv_buf_in(q->a);
        tv_puts(&b, "large pinned copies to the device: ");
        tv_put_short(&b, rate * 1e-9, 4);
        tv_puts(&b, " GB/s");
        tv_found_text(q, f, s->file, tv_buf_str(&b));
        tv_ask(q, "nvidia-smi -q -d PCI",
               N_("Under load: the link's generation and width beside their maximum."));
        return;
    }
}

/* ---- D16 ---- */

static void judge_saves(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s));) {
        const double save_s = tv_trace_num(s, "save_s");
        const double share = save_s / tv_trace_num(s, "host_span_s");
        if (!(share >= 0.10))
            continue;
        tv_finding *f = tv_found(q, rule, NULL, NULL);
        put_weight(f, share);
        tv_found_num(q, f, "saves", TV_ARG_COUNT, tv_trace_num(s, "saves"));
        tv_found_num(q, f, "save_s", TV_ARG_SECONDS, save_s);
        tv_found_num(q, f, "save_frac", TV_ARG_RATIO, share);
        tv_found_num(q, f, "interval_s", TV_ARG_SECONDS, tv_trace_num(s, "save_interval_s"));
        tv_trace_evidence(q, f, s, "writing checkpoints", save_s, tv_trace_num(s, "host_span_s"));
        return;
    }
}

/* ---- T01 ---- */

static bool is_launch_bound(const tv_sighting *s)
{
    const double host = tv_trace_num(s, "host_wait_share");
    return tv_trace_num(s, "steps") >= 3 && tv_trace_num(s, "kernels") >= 300 && host >= 0.30 &&
           tv_trace_num(s, "shares.data") < TV_DATA_FINDING &&
           host > tv_trace_num(s, "exposed_comm_share") &&
           tv_trace_num(s, "kernel_median_s") < 30e-6 &&
           tv_trace_num(s, "launch_delay_median_s") < 50e-6 &&
           !(tv_trace_share(s, tv_trace_num(s, "sync_call_s")) >= 0.3);
}

static void judge_launches(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s));) {
        if (!is_launch_bound(s))
            continue;
        tv_finding *f = tv_found(q, rule, NULL, NULL);
        const double host = tv_trace_num(s, "host_wait_share");
        put_weight(f, host);
        tv_found_num(q, f, "host_frac", TV_ARG_RATIO, host);
        tv_found_num(q, f, "kernel_s", TV_ARG_SECONDS, tv_trace_num(s, "kernel_median_s"));
        tv_found_num(q, f, "delay_s", TV_ARG_SECONDS, tv_trace_num(s, "launch_delay_median_s"));
        tv_found_num(q, f, "per_step", TV_ARG_COUNT,
                     floor(tv_trace_per_step(s, tv_trace_num(s, "kernels"))));
        tv_trace_evidence(q, f, s, "device idle until the host had launched the next kernel",
                          tv_trace_num(s, "host_wait_s"), tv_trace_num(s, "window_s"));
        return;
    }
}

/* ---- T02 ---- */

static void judge_reads(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s));) {
        const double items = tv_trace_num(s, "item_calls");
        const double small = tv_trace_num(s, "small_dtoh");
        const double reads = items >= small || isnan(small) ? items : small;
        const double per_step = tv_trace_per_step(s, reads);
        if (!(per_step >= (tv_trace_num(s, "steps") >= 1 ? 3 : 20)))
            continue;
        tv_finding *f = tv_found(q, rule, NULL, NULL);
        const double waits = tv_trace_num(s, "item_s") + tv_trace_num(s, "sync_call_s");
        const double share = tv_trace_share(s, waits);
        if (!(share >= 0.03))
            f->severity = TV_INFO;
        put_weight(f, share);
        tv_found_num(q, f, "reads", TV_ARG_COUNT, reads);
        tv_found_num(q, f, "per_step", TV_ARG_NUMBER, per_step);
        tv_found_num(q, f, "wait_frac", TV_ARG_RATIO, share);
        tv_trace_evidence(q, f, s, "host waiting for the device to read numbers back", waits,
                          tv_trace_num(s, "window_s"));
        return;
    }
}

/* ---- T03 ---- */

static void judge_memory(tv_inquiry *q, const tv_rule *rule)
{
    static const double least_growth_bytes = 67108864;
    for (const tv_sighting *s = tv_scene_first(q->scene, "trace"); s;
         s = tv_scene_next(s, "trace")) {
        const double growth = tv_trace_num(s, "mem_growth_bytes");
        const double peak = tv_trace_num(s, "mem_peak_bytes");
        if (!tv_noted_bool(&s->facts, "mem_grows", false) || !(growth >= least_growth_bytes) ||
            !(growth >= 0.05 * peak) || !(tv_trace_num(s, "steps") >= 4))
            continue;
        tv_finding *f = tv_found(q, rule, NULL, NULL);
        put_weight(f, growth / peak);
        tv_found_num(q, f, "growth_bytes", TV_ARG_MEMORY, growth);
        tv_found_num(q, f, "peak_bytes", TV_ARG_MEMORY, peak);
        tv_found_num(q, f, "step_bytes", TV_ARG_MEMORY,
                     tv_trace_num(s, "mem_slope_bytes_per_step"));
        tv_buf b = tv_buf_in(q->a);
        tv_puts(&b, "allocated memory, low-water mark: ");
        tv_put_memory(&b, growth);
        tv_puts(&b, " more at the end");
        tv_found_text(q, f, s->file, tv_buf_str(&b));
        return;
    }
}

/* ---- T05 ---- */

static void judge_density(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s));) {
        if (!tv_noted_is(&s->facts, "grade", "poor") || !(tv_trace_num(s, "kernels") >= 100))
            continue;
        tv_finding *f = tv_found(q, rule, NULL, NULL);
        const double share = tv_trace_num(s, "gemm_share");
        tv_found_num(q, f, "matrix_frac", TV_ARG_RATIO, share);
        tv_found_str(q, f, "top_kernel", tv_noted_str(&s->facts, "top.0.name"));
        tv_found_num(q, f, "top_frac", TV_ARG_RATIO, tv_trace_num(s, "top.0.share"));
        tv_buf b = tv_buf_in(q->a);
        tv_puts(&b, "matrix work: ");
        tv_put_percent(&b, share);
        tv_puts(&b, " of the kernels' time");
        tv_found_text(q, f, s->file, tv_buf_str(&b));
        return;
    }
}

static const tv_rule rules[] = {
    {
        .id = "D06",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Copies through pageable memory make the host wait"),
        .cause = N_("{to_device} copies to the device come from pageable memory: the driver first "
                    "waits for the stream, then copies through a buffer of its own, so that "
                    "nothing overlaps. The host stands in them {cost_frac} of the time."),
        .decided = N_("The profile names copies \"Pageable -> Device\" or \"Device -> Pageable\", "
                      "and the calls behind them take 2 % of the steps (of the host's time where "
                      "no step is marked) or more; less is told for completeness."),
        .unless = N_("Copies of the start-up (weights, caches) are paid once. ROCm does not tell "
                     "pinned from pageable."),
        .source = "https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html",
        .steps =
            {{.command = "DataLoader(dataset, pin_memory=True)",
              .why = N_("For the {to_device} copies to the device: batches in pinned memory. "
                        "Undo: leave it out; it takes locked host memory.")},
             {.command = "batch = batch.to(device, non_blocking=True)",
              .why = N_("With pinned batches: {to_device} copies that run beside computation.")},
             {.why = N_("For the {to_host} copies back: keep sums on the device and read them "
                        "every N steps (loss.detach(), not loss.item()); pin_memory does not help "
                        "here.")}},
        .outranks = "T02",
        .judge = judge_pageable,
    },
    {
        .id = "D07",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Large copies to the device are far below the link's speed"),
        .cause = N_("Large pinned copies reach {rate_bytes_per_s}, {of_link_frac} of the "
                    "{link_bytes_per_s} that the card's slot carries: a narrower or slower link, "
                    "or memory on the other socket."),
        .decided = N_("Pinned copies to the device of 4 MiB and more run below 40 % of the link "
                      "of the card by its product record."),
        .unless = N_("Several cards behind one switch share its uplink; copies both ways at once "
                     "share the host's memory."),
        .source = "https://github.com/Azure/azurehpc-health-checks",
        .steps = {{.command = "nvidia-smi --query-gpu=index,pcie.link.gen.current,"
                              "pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max "
                              "--format=csv",
                   .why = N_("Under load: an idle card lowers its link.")},
                  {.command = "numactl --cpunodebind=0 --membind=0 python train.py",
                   .why = N_("Bind to the card's NUMA node (nvidia-smi topo -m names it). Undo: "
                             "start without numactl.")}},
        .judge = judge_link,
    },
    {
        .id = "D16",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Checkpoints stop the training"),
        .cause = N_("{saves} checkpoints take {save_s}, {save_frac} of the profile: the training "
                    "stands while they are written."),
        .decided = N_("Spans that write checkpoints (torch.save, save_checkpoint) cover 10 % of "
                      "the profile or more."),
        .unless = N_("A profile taken around a checkpoint shows more of it than the run has: "
                     "compare with the interval between checkpoints."),
        .source = "https://docs.pytorch.org/tutorials/recipes/"
                  "distributed_async_checkpoint_recipe.html",
        .steps = {{.command = "torch.distributed.checkpoint.async_save(state, checkpoint_id=PATH)",
                   .why = N_("Copies to host memory and writes in the background; it needs host "
                             "memory of the checkpoint's size.")},
                  {.why = N_("Or write to a local disk and move the file later, save sharded, or "
                             "save less often.")}},
        .judge = judge_saves,
    },
    {
        .id = "T01",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The device waits for the host to launch its kernels"),
        .cause = N_("{host_frac} of the steps the device is idle because the next kernel was not "
                    "launched yet. Half of the kernels last {kernel_s} or less and start "
                    "{delay_s} after their launch: nothing is queued ahead. {per_step} kernels a "
                    "step are more than Python hands out in that time."),
        .decided = N_("Three or more steps and 300 or more kernels: the device is idle 30 % of the "
                      "steps or more before launches, half of the kernels last under 30 us and "
                      "start within 50 us of their launch, and neither data, communication nor "
                      "waits for the device explain the gaps."),
        .unless = N_("A profiler with stacks and shapes slows the host itself: compare with the "
                     "step time of a run without it."),
        .source = "https://hta.readthedocs.io/en/latest/source/features/"
                  "cuda_kernel_launch_stats.html",
        .steps = {{.why = N_("A larger batch per step costs the host nothing: raise it while "
                             "memory and convergence allow.")},
                  {.command = "model = torch.compile(model, mode=\"reduce-overhead\")",
                   .why = N_("PyTorch: fuses operators and replays launches as CUDA graphs; fixed "
                             "shapes needed. Paddle: paddle.jit.to_static. Undo: leave the line "
                             "out.")},
                  {.why = N_("Take fused optimizers (fused=True), and take .item(), prints and "
                             "synchronisations out of the loop.")}},
        .judge = judge_launches,
    },
    {
        .id = "T02",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Single numbers are read back from the device in every step"),
        .cause = N_("{reads} times the host reads a number back ({per_step} a step: .item(), "
                    ".cpu(), a condition on a tensor). Each read waits until all queued work is "
                    "done: {wait_frac} of the time."),
        .decided = N_("Three or more reads (aten::_local_scalar_dense, or copies to the host under "
                      "4 KiB) a step, or 20 in a profile without steps; a warning where they and "
                      "the synchronising calls take 3 % of the time."),
        .unless = N_("A loop that has waited for the device anyway loses nothing by the read: the "
                     "wait would move elsewhere. pin_memory does not help."),
        .source = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        .steps = {{.why = N_("Add up on the device and read every N steps; log loss.detach().")},
                  {.command = "torch.cuda.set_sync_debug_mode(\"warn\")",
                   .why = N_("Names each line that waits for the device. Undo: "
                             "set_sync_debug_mode(\"default\").")}},
        .judge = judge_reads,
    },
    {
        .id = "T03",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Memory grows from step to step"),
        .cause = N_("What stays allocated between the peaks grows by {growth_bytes} over the "
                    "profile, {step_bytes} a step, at a peak of {peak_bytes}: something is kept "
                    "that the next step does not need."),
        .decided = N_("Over four or more steps the low-water mark of allocated memory rises in "
                      "each third of the profile, by 5 % of the peak and 64 MiB or more."),
        .unless = N_("The first steps fill caches and optimizer states, longer sequences take "
                     "more: profile after warming up."),
        .source = "https://docs.pytorch.org/docs/stable/torch_cuda_memory.html",
        .steps = {{.command = "torch.cuda.memory._record_memory_history(max_entries=100000)",
                   .why = N_("Records who allocates. Undo: "
                             "_record_memory_history(enabled=None).")},
                  {.command = "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")",
                   .why = N_("After some steps; trivet doctor snapshot.pickle names what stays.")},
                  {.why = N_("Usual causes: losses kept with their graph (total += loss), outputs "
                             "in a list, validation without torch.no_grad().")}},
        .judge = judge_memory,
    },
    {
        .id = "T05",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("Little of the device's time is matrix work"),
        .cause = N_("Matrix products, convolutions and attention take {matrix_frac} of the "
                    "kernels' time: memory bandwidth counts, newer tensor cores do not. The "
                    "longest kernel takes {top_frac}."),
        .decided = N_("The share of matrix work in the time of computing kernels is below 30 %, of "
                      "100 kernels or more."),
        .unless = N_("A profile of start-up or of validation says nothing of training."),
        .source = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        .steps = {{.command = "model = torch.compile(model)",
                   .why = N_("Fuses element-wise chains. Undo: leave the line out.")},
                  {.command = "trivet plan MODEL",
                   .why =
                       N_("A card with the same memory bandwidth for less money does the same.")}},
        .judge = judge_density,
    },
};

extern const tv_rule_group tv_rule_group_trace_rules;
const tv_rule_group tv_rule_group_trace_rules = {"trace", N_("Profiles"), rules,
                                                 sizeof rules / sizeof *rules};
