/* Out of memory on the card, PyTorch's messages and their kin: which layer ran out, from the
 * outside in, with the arithmetic. The reader has done the sums (facts: layer). */
#include <math.h>

#include "oom_ledger.h"

static const tv_sighting *first_oom(const tv_inquiry *q)
{
    return tv_scene_first(q->scene, "oom");
}

static const tv_sighting *next_oom(const tv_sighting *s)
{
    return tv_scene_next(s, "oom");
}

/* Of several messages with the same verdict the first is shown with the places of the rest. NULL:
 * none is of the kind; s is the first one. */
static tv_finding *found_where(tv_inquiry *q, const tv_rule *rule,
                               bool (*is)(const tv_inquiry *q, const tv_sighting *s),
                               const tv_sighting **s)
{
    tv_finding *f = NULL;
    for (const tv_sighting *oom = first_oom(q); oom; oom = next_oom(oom)) {
        if (!is(q, oom))
            continue;
        if (f) {
            tv_found_also(q, f, oom, NULL);
            continue;
        }
        f = tv_found(q, rule, oom, NULL);
        *s = oom;
    }
    return f;
}

#define IN_PART N_("The message states only a part of the figures; those that it states lead here.")

/* ---- O01 ---- */

/* The setting came with 1.10, expandable segments with 2.0's successor. */
static void name_settings(tv_inquiry *q, tv_finding *f, const tv_note *facts)
{
    const tv_str format = tv_noted_str(facts, "format");
    const tv_str hint = tv_noted_str(facts, "hint");
    if (tv_str_starts(format, TV_S("reserved +")))
        tv_found_str(q, f, "split_setting", TV_S("PYTORCH_CUDA_ALLOC_CONF"));
    else if (tv_str_starts(format, TV_S("2.")))
        tv_found_str(q, f, "alloc_setting",
                     hint.n && !tv_noted_is(facts, "format", "2.1 capacty")
                         ? hint
                         : TV_S("PYTORCH_CUDA_ALLOC_CONF"));
    else
        tv_found_str(q, f, "old_format", format);
}

static bool is_fragmented(const tv_inquiry *q, const tv_sighting *s)
{
    (void)q;
    return tv_oom_layer_is(s, "allocator fragmentation");
}

static void judge_fragmentation(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = NULL;
    tv_finding *f = found_where(q, rule, is_fragmented, &s);
    if (!f)
        return;
    tv_oom_ledger(q, f, s, IN_PART);
    name_settings(q, f, &s->facts);
    f->weight = tv_share(tv_oom_unused(&s->facts), tv_noted_num(&s->facts, "total_bytes"));
}

/* ---- O02, O03 ---- */

static bool is_large(const tv_inquiry *q, const tv_sighting *s)
{
    (void)q;
    return tv_oom_layer_is(s, "one request too large");
}

static void judge_large_request(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = NULL;
    tv_finding *f = found_where(q, rule, is_large, &s);
    if (!f)
        return;
    tv_oom_ledger(q, f, s, IN_PART);
    f->weight = 0.5;
}

static void say_apple(tv_inquiry *q, tv_finding *f, const tv_note *facts)
{
    f->cause = N_("Apple's unified memory: {mps_bytes} in PyTorch, {other_bytes} of Metal in the "
                  "same process and {tried_bytes} asked for are more than the {allowed_bytes} that "
                  "PyTorch allows itself. The ratio that the message offers removes that guard and "
                  "can take the whole system down.");
    tv_found_num(q, f, "mps_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "mps_allocated_bytes"));
    tv_found_num(q, f, "other_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "other_bytes"));
    tv_found_num(q, f, "allowed_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "max_allowed_bytes"));
    tv_found_num(q, f, "tried_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "tried_bytes"));
}

static void say_cupy(tv_inquiry *q, tv_finding *f, const tv_note *facts)
{
    f->cause = N_("CuPy's pool held {before_bytes} when {tried_bytes} more were refused; the size "
                  "of the card is not in the message. Either the arrays that are alive need that "
                  "much, or something keeps them alive.");
    f->sure = TV_MEDIUM;
    tv_found_num(q, f, "before_bytes", TV_ARG_MEMORY,
                 tv_noted_num(facts, "allocated_before_bytes"));
    tv_found_num(q, f, "tried_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "tried_bytes"));
    tv_ask(q,
           "python3 -c 'import cupy; p = cupy.get_default_memory_pool(); print(p.used_bytes(), "
           "p.total_bytes())'",
           N_("Run these two calls in the program before the line that fails: used far below total "
              "means cached blocks, used near total means live arrays."));
}

static bool is_capacity(const tv_inquiry *q, const tv_sighting *s)
{
    (void)q;
    return tv_oom_layer_is(s, "true capacity") ||
           tv_oom_layer_is(s, "device: capacity too small") ||
           (tv_noted_is(&s->facts, "framework", "cupy") &&
            !tv_oom_layer_is(s, "program bug: impossible request") &&
            !tv_oom_layer_is(s, "pool capped"));
}

/* A full card with scraps that add up to the request: to join them would not last a step. */
static const char *in_pieces(void)
{
    return N_("Card {total_bytes} = {outside_bytes} context and others + {allocated_bytes} live "
              "tensors + {frag_bytes} held and unused + {free_bytes} free. {tried_bytes} more are "
              "left only in pieces: the job fills this card.");
}

static void judge_capacity(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = NULL;
    tv_finding *f = found_where(q, rule, is_capacity, &s);
    if (!f)
        return;
    if (tv_noted(&s->facts, "mps_allocated_bytes")) {
        say_apple(q, f, &s->facts);
        return;
    }
    if (tv_noted_is(&s->facts, "framework", "cupy")) {
        say_cupy(q, f, &s->facts);
        return;
    }
    tv_oom_ledger(q, f, s, IN_PART);
    if (tv_noted_num(&s->facts, "tried_bytes") <=
        tv_noted_num(&s->facts, "free_bytes") + tv_oom_unused(&s->facts))
        f->cause = in_pieces();
    f->weight = tv_share(tv_noted_num(&s->facts, "allocated_bytes"),
                         tv_noted_num(&s->facts, "total_bytes"));
    if (f->weight < 0.93)
        f->sure = TV_MEDIUM;
}

/* ---- O04, O05 ---- */

static void name_lister(tv_inquiry *q, tv_finding *f, const tv_note *facts)
{
    const double gpu = tv_noted_num(facts, "gpu");
    const char *name = tv_noted_is(facts, "vendor", "amd") ? "amd_gpu"
                       : tv_noted_str(facts, "vendor").n   ? "other_gpu"
                                                           : "nvidia_gpu";
    tv_found_num(q, f, name, TV_ARG_NUMBER, isnan(gpu) ? 0 : gpu);
}

static void name_processes(tv_inquiry *q, tv_finding *f, const tv_note *facts)
{
    const tv_note *lines = tv_noted(facts, "process_lines");
    const double self = tv_noted_num(facts, "self_pid");
    tv_buf b = tv_buf_in(q->a);
    for (const tv_note *line = lines ? lines->first : NULL; line; line = line->next) {
        const double pid = tv_noted_num(line, "pid");
        if (pid >= self && pid <= self)
            continue;
        if (b.n)
            tv_puts(&b, ", ");
        tv_put_double(&b, pid);
    }
    tv_found_str(q, f, "pids", tv_buf_str(&b));
}

/* Others hold a telling share: the layer says so, or another cause is nearer but they count. */
static bool is_shared(const tv_inquiry *q, const tv_sighting *s)
{
    (void)q;
    if (tv_oom_layer_is(s, "device shared with other processes"))
        return !tv_noted_is(&s->facts, "framework", "vllm");
    return tv_oom_layer_is(s, "allocator fragmentation") &&
           tv_noted_num(&s->facts, "others_bytes") > 0.10 * tv_noted_num(&s->facts, "total_bytes");
}

static void judge_others(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = NULL;
    tv_finding *f = found_where(q, rule, is_shared, &s);
    if (!f)
        return;
    tv_oom_ledger(q, f, s, IN_PART);
    name_lister(q, f, &s->facts);
    name_processes(q, f, &s->facts);
    f->weight =
        tv_share(tv_noted_num(&s->facts, "others_bytes"), tv_noted_num(&s->facts, "total_bytes"));
}

static bool is_listed(const tv_inquiry *q, const tv_sighting *s)
{
    (void)q;
    return !isnan(tv_noted_num(&s->facts, "self_pid"));
}

static void judge_container(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = NULL;
    tv_finding *f = found_where(q, rule, is_listed, &s);
    if (!f)
        return;
    const double pid = tv_noted_num(&s->facts, "self_pid");
    tv_oom_ledger(q, f, s, IN_PART);
    tv_found_num(q, f, "pid", TV_ARG_NUMBER, pid);
}

/* ---- O06, O07 ---- */

static bool is_spilled(const tv_inquiry *q, const tv_sighting *s)
{
    (void)q;
    return tv_oom_layer_is(s, "device oversubscribed to host memory");
}

static void judge_spill(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = NULL;
    tv_finding *f = found_where(q, rule, is_spilled, &s);
    if (!f)
        return;
    const double total = tv_noted_num(&s->facts, "total_bytes");
    const double allocated = tv_noted_num(&s->facts, "allocated_bytes");
    tv_oom_ledger(q, f, s, IN_PART);
    f->cause = rule->cause;
    tv_found_num(q, f, "over_bytes", TV_ARG_MEMORY, fmax(allocated - total, 0));
    f->weight = 1;
    /* A reserve above the card with live tensors below it may be rounding. */
    if (!tv_noted_bool(&s->facts, "allocated_exceeds_total", false))
        f->sure = TV_MEDIUM;
}

static bool is_impossible(const tv_inquiry *q, const tv_sighting *s)
{
    (void)q;
    return tv_oom_layer_is(s, "program bug: impossible request");
}

static void judge_impossible(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = NULL;
    tv_finding *f = found_where(q, rule, is_impossible, &s);
    if (!f)
        return;
    const double tried = tv_noted_num(&s->facts, "tried_bytes");
    tv_oom_ledger(q, f, s, rule->cause);
    if (tried < 1000.0 * 1024 * 1024 * 1024) {
        f->sure = TV_MEDIUM;
        f->cause = N_("One request of {tried_bytes} is larger than the whole card of "
                      "{total_bytes}: a shape or an index is wrong, or an operation is made in "
                      "one piece that grows with the square of a length, such as attention "
                      "without a fused kernel.");
    }
    tv_found_str(q, f, "op", tv_noted_str(&s->facts, "op"));
    tv_found_str(q, f, "node", tv_noted_str(&s->facts, "node"));
    f->weight = 1;
}

/* ---- O08, O09 ---- */

static bool is_outside(const tv_inquiry *q, const tv_sighting *s)
{
    (void)q;
    const double context = tv_noted_num(&s->facts, "non_pytorch_bytes");
    const double total = tv_noted_num(&s->facts, "total_bytes");
    return tv_oom_layer_is(s, "process outside the allocator") ||
           (context > 1.5 * 1024 * 1024 * 1024 && context > 0.05 * total);
}

static void judge_outside(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = NULL;
    tv_finding *f = found_where(q, rule, is_outside, &s);
    if (!f)
        return;
    tv_oom_ledger(q, f, s, IN_PART);
    f->weight = tv_share(tv_noted_num(&s->facts, "non_pytorch_bytes"),
                         tv_noted_num(&s->facts, "total_bytes"));
    if (tv_noted_is(&s->facts, "server", "vllm"))
        tv_found_str(q, f, "server", TV_S("vllm"));
}

static bool is_capturing(const tv_sighting *s)
{
    return tv_noted_is(&s->facts, "during", "graph capture");
}

static bool is_graphs(const tv_inquiry *q, const tv_sighting *s)
{
    (void)q;
    const double pools = tv_noted_num(&s->facts, "private_pools_bytes");
    const double total = tv_noted_num(&s->facts, "total_bytes");
    return is_capturing(s) || (pools > 1024.0 * 1024 * 1024 && pools > 0.05 * total);
}

static void judge_graphs(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = NULL;
    tv_finding *f = found_where(q, rule, is_graphs, &s);
    if (!f)
        return;
    const double pools = tv_noted_num(&s->facts, "private_pools_bytes");
    tv_oom_ledger(q, f, s, IN_PART);
    f->cause = is_capturing(s)
                   ? N_("The memory ran out while CUDA graphs were being captured: each "
                        "captured size keeps a pool of its own.")
                   : rule->cause;
    tv_found_num(q, f, "pools_bytes", TV_ARG_MEMORY, pools);
    f->weight = tv_share(pools, tv_noted_num(&s->facts, "total_bytes"));
}

/* ---- O10, O11 ---- */

static bool is_contradiction(const tv_inquiry *q, const tv_sighting *s)
{
    (void)q;
    return tv_oom_layer_is(s, "host-side limit or stale figure");
}

static void judge_contradiction(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = NULL;
    tv_finding *f = found_where(q, rule, is_contradiction, &s);
    if (!f)
        return;
    tv_oom_ledger(q, f, s, rule->cause);
    tv_ask(q, "ulimit -a; cat /sys/fs/cgroup/memory.max; free -g; nvidia-smi",
           N_("The card has room by the message's own figures: limits of the host and what else "
              "starts on the card at that moment would tell."));
}

static bool has_sizes(const tv_inquiry *q, tv_str file)
{
    for (const tv_sighting *s = first_oom(q); s; s = next_oom(s))
        if (!isnan(tv_noted_num(&s->facts, "tried_bytes")) && tv_str_eq(s->file, file))
            return true;
    return false;
}

static bool is_bare(const tv_inquiry *q, const tv_sighting *s)
{
    return tv_noted_is(&s->facts, "format", "bare") && !has_sizes(q, s->file);
}

static void judge_bare(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = NULL;
    tv_finding *f = found_where(q, rule, is_bare, &s);
    if (!f)
        return;
    tv_found_str(q, f, "error", tv_noted_str(&s->facts, "error"));
    tv_found_str(q, f, "asked_by", tv_noted_str(&s->facts, "asked_by"));
    tv_ask(q, "nvidia-smi",
           N_("The error has no sizes: what the card holds just before the program starts tells "
              "whether others fill it."));
}

static const tv_rule rules[] = {
    {
        .id = "O04",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("Other processes hold the card's memory"),
        .cause = N_("Of {total_bytes} on the card this program's allocator holds {allocated_bytes} "
                    "live and {frag_bytes} unused, {free_bytes} are free: about {others_bytes} "
                    "belong to other processes, a desktop or a leftover. {tried_bytes} were asked "
                    "for."),
        .decided = N_("Total minus free minus this process exceeds 10 % of the card. Messages "
                      "without a line for this process count 0.6 GiB for its own context."),
        .unless = N_("Inside a container the process may list itself under another number (O05)."),
        .source = "https://github.com/MVIG-SJTU/AlphAction/issues/58",
        .steps = {{.command = "nvidia-smi --query-compute-apps=pid,process_name,used_memory "
                              "--format=csv -i {nvidia_gpu}",
                   .why = N_("See whose it is. Ask its owner before ending anything: a job that is "
                             "stopped loses its work.")},
                  {.command = "rocm-smi --showpids --showmeminfo vram -d {amd_gpu}",
                   .why = N_("See whose it is. Ask its owner before ending anything: a job that is "
                             "stopped loses its work.")},
                  {.command = "export CUDA_VISIBLE_DEVICES=FREE_GPU",
                   .undo = "unset CUDA_VISIBLE_DEVICES",
                   .why = N_("Or start on another card.")}},
        .judge = judge_others,
    },
    {
        .id = "O06",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The driver has spilled the card's memory into the host's"),
        .cause = N_("{allocated_bytes} are allocated on a card of {total_bytes}: only the Windows "
                    "driver does that (also under WSL), by moving what does not fit into system "
                    "memory. The program was slow long before it failed; the hint in the message "
                    "does not apply."),
        .decided = N_("Allocated memory exceeds the card's total by more than rounding."),
        .unless = N_("Managed memory that a program asks for itself can exceed the card on Linux "
                     "too; PyTorch does not use it."),
        .source = "https://github.com/YingqianWang/iPASSR/issues/9",
        .steps = {{.why = N_("Shrink what is on the card by {over_bytes} and the request: batch, "
                             "resolution, length, precision.")},
                  {.why = N_("NVIDIA Control Panel, Manage 3D settings, \"CUDA - Sysmem Fallback "
                             "Policy\": \"Prefer No Sysmem Fallback\", so that it fails at once "
                             "instead of crawling; \"Driver Default\" takes it back.")}},
        .outranks = "O01 O02 O03 O07 O08",
        .judge = judge_spill,
    },
    {
        .id = "O07",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The request is impossible: a program's mistake"),
        .cause =
            N_("{tried_bytes} were asked for at once: no card has that. A shape or an index is "
               "wrong, or a size was never set. Less batch or a larger card does not help."),
        .decided = N_("More than 1000 GiB in one request, or more than the whole card (medium "
                      "confidence)."),
        .unless = N_("Allocated above total is the Windows driver's spill (O06)."),
        .source = "https://github.com/microsoft/onnxruntime/issues/22702",
        .steps = {{.why =
                       N_("Print the shapes before the line that fails, and look for a swapped "
                          "axis, an index from the data, or a broadcast that multiplies two long "
                          "axes.")}},
        .outranks = "O01 O02 O03 O24",
        .judge = judge_impossible,
    },
    {
        .id = "O01",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("Fragmentation of the allocator"),
        .cause =
            N_("Card {total_bytes} = {outside_bytes} context and others + {allocated_bytes} "
               "live tensors + {frag_bytes} held and unused + {free_bytes} free. The request of "
               "{tried_bytes} fits into the {usable_bytes} that are unused or free; only no "
               "single piece is large enough."),
        .decided = N_("Unused (reserved minus allocated) and free together hold the request, and "
                      "unused is at least 10 % of the card."),
        .unless = N_("Where unused and free together are less than the request, no setting of the "
                     "allocator helps (O02, O03)."),
        .source = "https://docs.pytorch.org/docs/stable/notes/cuda.html",
        .steps = {{.command = "export {alloc_setting}=expandable_segments:True",
                   .undo = "unset {alloc_setting}",
                   .why = N_("Segments that grow in place: the unused pieces join.")},
                  {.command = "export {split_setting}=max_split_size_mb:128",
                   .undo = "unset {split_setting}",
                   .why = N_("Large blocks are no longer split (PyTorch 1.10 to 2.0).")},
                  {.why = N_("PyTorch of this age ({old_format}) has no setting for it: update, or "
                             "keep shapes equal from step to step.")},
                  {.why = N_("Pad inputs to a few fixed lengths or sizes, the largest first.")}},
        .judge = judge_fragmentation,
    },
    {
        .id = "O02",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("One request is larger than what is left"),
        .cause =
            N_("Card {total_bytes} = {outside_bytes} context and others + {allocated_bytes} "
               "live tensors + {frag_bytes} held and unused + {free_bytes} free. One tensor of "
               "{tried_bytes} was asked for; even with every unused piece joined there are "
               "{usable_bytes}, {missing_bytes} too few. No setting of the allocator helps."),
        .decided = N_("The request is at least 10 % of the card and exceeds unused plus free; live "
                      "tensors hold less than 93 %."),
        .unless = N_("Small requests on a full card are O03."),
        .source = "https://github.com/murong-xu/CADS/issues/4",
        .steps = {{.why = N_("Make it in pieces: tiles of the input, a smaller batch, attention or "
                             "loss in chunks.")},
                  {.why = N_("Move results to the host as they come (.cpu()), and use 16-bit "
                             "types.")}},
        .judge = judge_large_request,
    },
    {
        .id = "O03",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The card is full of live tensors"),
        .cause =
            N_("Card {total_bytes} = {outside_bytes} context and others + {allocated_bytes} "
               "live tensors + {frag_bytes} held and unused + {free_bytes} free. {tried_bytes} "
               "more are {missing_bytes} too many: the job needs more than this card has."),
        .decided = N_("Live tensors hold at least 93 % of the card, or no outer layer explains the "
                      "refusal (medium confidence)."),
        .unless = N_("Others' memory (O04), unused pieces that would hold the request (O01) and "
                     "memory beside the allocator (O08) are looked at first."),
        .source = "https://github.com/Wan-Video/Wan2.1/issues/465",
        .steps = {{.why = N_("Halve the batch (with accumulation it is the same training), or the "
                             "length.")},
                  {.why = N_("Training: activation checkpointing, then ZeRO or FSDP, an 8-bit "
                             "optimizer, 16-bit types.")},
                  {.why = N_("Inference: a quantised model, offloading, or several cards.")},
                  {.command = "trivet size MODEL",
                   .why = N_("What the model needs, term by term, and which cards hold it.")}},
        .judge = judge_capacity,
    },
    {
        .id = "O05",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("The process that is named is this one, seen from a container"),
        .cause =
            N_("\"Process {pid}\" holds what this program's allocator holds ({allocated_bytes} "
               "live, {frag_bytes} unused) and a context: the driver prints the host's number "
               "of this very process. There is no stranger to look for."),
        .decided = N_("A process line, no line for this process, and its size is that of allocated "
                      "plus unused, up to 2 GiB more."),
        .unless = N_("A line whose size does not fit is another process (O04)."),
        .source = "https://docs.docker.com/engine/containers/run/",
        .steps = {{.command = "docker run --pid=host IMAGE",
                   .why = N_("Shows true numbers; nothing else is gained by it.")}},
        .judge = judge_container,
    },
    {
        .id = "O08",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("Memory of the process beside the tensor allocator"),
        .cause = N_("This process holds {context_bytes} that PyTorch's allocator did not give out: "
                    "beside a context of 0.3 to 0.6 GiB these are NCCL's buffers, CUDA graphs, "
                    "workspaces of cuBLAS and cuDNN, or a second framework. Card {total_bytes} = "
                    "{outside_bytes} outside the allocator + {allocated_bytes} live + {frag_bytes} "
                    "unused + {free_bytes} free; {tried_bytes} were asked for."),
        .decided = N_("This process minus allocated minus unused exceeds 1.5 GiB."),
        .unless = N_("With live tensors above 93 % of the card the card is full first (O03)."),
        .source = "https://github.com/vllm-project/vllm/issues/9290",
        .steps = {{.command = "{server} serve MODEL --gpu-memory-utilization 0.85",
                   .why = N_("The server sizes its cache before these are made: leave them room.")},
                  {.command = "export NCCL_BUFFSIZE=2097152",
                   .undo = "unset NCCL_BUFFSIZE",
                   .why = N_("Half of NCCL's default buffers; fewer communicators save as much.")},
                  {.command = "export CUBLAS_WORKSPACE_CONFIG=:16:8",
                   .undo = "unset CUBLAS_WORKSPACE_CONFIG",
                   .why = N_("Small workspaces of cuBLAS, at some cost of speed.")},
                  {.why = N_("A second framework in the process (TensorFlow, JAX) takes the whole "
                             "card unless told not to.")}},
        .judge = judge_outside,
    },
    {
        .id = "O09",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("CUDA graphs hold the memory"),
        .cause = N_("{pools_bytes} lie in private pools, which belong to captured CUDA graphs and "
                    "are not given back."),
        .decided = N_("The clause of private pools names more than 1 GiB and 5 % of the card, or "
                      "the traceback stands in a capture."),
        .unless = NULL,
        .source = "https://github.com/vllm-project/vllm/issues/15598",
        .steps = {{.command = "vllm serve MODEL --max-num-seqs 64",
                   .why = N_("Fewer batch sizes are captured.")},
                  {.command = "vllm serve MODEL --enforce-eager",
                   .why = N_("No graphs at all: slower by launch times, but it runs.")},
                  {.why = N_("torch.compile: mode=\"default\" instead of \"reduce-overhead\".")}},
        .judge = judge_graphs,
    },
    {
        .id = "O10",
        .severity = TV_CRITICAL,
        .sure = TV_LOW,
        .title = N_("Refused although the card has room"),
        .cause = N_("{free_bytes} of {total_bytes} are free, and {tried_bytes} were refused: the "
                    "size of the card is not the reason. Candidates are a limit of the host "
                    "(address space, control group, page file), other ranks that start on the card "
                    "at the same moment, or a figure read after another process had ended. A "
                    "smaller batch does not help."),
        .decided = N_("Free exceeds the request, and the card is used by less than half or the "
                      "surplus is above 512 MiB."),
        .unless = N_("A few MiB of surplus say nothing: the driver keeps some for itself."),
        .source = "https://github.com/pytorch/pytorch/issues/16417",
        .steps = {{.command = "ulimit -v; cat /sys/fs/cgroup/memory.max",
                   .why = N_("Limits of the host that a mapping of the card's memory meets.")},
                  {.why = N_("Start the job alone, one rank first. Windows: enlarge the page "
                             "file.")}},
        .judge = judge_contradiction,
    },
    {
        .id = "O11",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("No room for a context or a library's handle"),
        .cause =
            N_("\"{error}\" comes from outside the tensor allocator: each process needs 0.3 to "
               "0.6 GiB for its context, and cuBLAS, cuDNN and NCCL take buffers of their own. "
               "The card was full before they came."),
        .decided = N_("A memory error without sizes, and none with sizes in the same file."),
        .unless = N_("An index outside a table can end as the same cuBLAS error: run once with "
                     "CUDA_LAUNCH_BLOCKING=1 where the card has room."),
        .source = "https://github.com/QwenLM/Qwen3/issues/873",
        .steps = {{.command = "nvidia-smi",
                   .why = N_("What the card holds before the program starts (O04).")},
                  {.why = N_("Fewer processes per card, or leave about 1 GiB free: a smaller batch "
                             "or a smaller pool.")}},
        .judge = judge_bare,
    },
};

extern const tv_rule_group tv_rule_group_oom_rules;
const tv_rule_group tv_rule_group_oom_rules = {"memory", N_("The card's memory"), rules,
                                               sizeof rules / sizeof *rules};
