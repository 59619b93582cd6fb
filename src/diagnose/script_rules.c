/* Training scripts: what a reader saw in their lines, judged. Whether it costs anything depends on
 * the job; each finding names the line and what to write instead. */
#include <math.h>
#include <string.h>

#include "diagnose.h"

/* ---- observations of the reader, one rule each ---- */

typedef struct lint_row {
    const char *id;
    const char *what;
    double weight;
} lint_row;

static const lint_row lints[] = {
    {"L01", "data-parallel", 0.6},
    {"L03", "no-set-epoch", 0.3},
    {"L05", "load-without-map", 0.4},
    {"L09", "no-no-grad", 0.5},
    {"L10", "loss-kept", 0.6},
    {"L11", "no-zero-grad", 0.9},
    {"L22", "collective-in-branch", 0.9},
    {"L23", "save-by-all", 0.2},
    {"L24", "anomaly-detection", 0.8},
    {"L24", "deterministic", 0.3},
    {"L24", "cudnn-off", 0.8},
    {"L25", "retain-graph", 0.2},
    {"L26", "synchronize-each-step", 0.3},
    {"L26", "empty-cache-each-step", 0.4},
    {"L27", "paddle-no-init", 0.8},
    {"L28", "unused-parameters", 0.1},
};

static const lint_row *lint_of(const tv_rule *rule, const tv_note *n)
{
    for (size_t i = 0; i < sizeof lints / sizeof *lints; i++)
        if (strcmp(lints[i].id, rule->id) == 0 && tv_noted_is(n, "what", lints[i].what))
            return &lints[i];
    return NULL;
}

static tv_finding *found_line(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                              const tv_note *n)
{
    tv_finding *f = tv_found(q, rule, s, n);
    tv_found_num(q, f, "line", TV_ARG_NUMBER, tv_noted_num(n, "line"));
    tv_found_str(q, f, "replacement", tv_noted_str(n, "fix"));
    return f;
}

static void judge_lint(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "script"); s;
         s = tv_scene_next(s, "script")) {
        const tv_note *list = tv_noted(&s->facts, "lint");
        for (const tv_note *n = list ? list->first : NULL; n; n = n->next) {
            const lint_row *row = lint_of(rule, n);
            if (!row)
                continue;
            tv_finding *f = found_line(q, rule, s, n);
            f->weight = row->weight;
            /* beside DistributedDataParallel it is what runs without a launcher */
            if (strcmp(row->what, "data-parallel") == 0 &&
                tv_noted_bool(&s->facts, "distributed", false))
                f->severity = TV_INFO;
        }
    }
}

static const tv_note *noted_lint(const tv_sighting *s, const char *what)
{
    const tv_note *list = tv_noted(&s->facts, "lint");
    for (const tv_note *n = list ? list->first : NULL; n; n = n->next)
        if (tv_noted_is(n, "what", what))
            return n;
    return NULL;
}

/* ---- L02: the same data on every rank ---- */

static bool is_training_loader(const tv_note *loader)
{
    return !tv_noted_bool(loader, "validation", false);
}

static void judge_sampler(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "script"); s;
         s = tv_scene_next(s, "script")) {
        const tv_note *facts = &s->facts;
        if (!tv_noted_bool(facts, "distributed", false) || tv_noted_bool(facts, "managed", false) ||
            tv_noted_bool(facts, "distributed_sampler", false) ||
            tv_noted_bool(facts, "iterable_data", false))
            continue;
        const tv_note *list = tv_noted(facts, "loaders");
        const tv_note *loader = list ? list->first : NULL;
        while (loader && (!is_training_loader(loader) || tv_noted_bool(loader, "sampler", false)))
            loader = loader->next;
        if (!loader)
            continue;
        tv_finding *f = tv_found(q, rule, s, loader);
        const bool paddle = tv_noted_is(facts, "framework", "paddle");
        tv_found_str(q, f, "replacement",
                     paddle ? TV_S("DataLoader(dataset, batch_sampler=paddle.io."
                                   "DistributedBatchSampler(dataset, batch_size, shuffle=True))")
                            : TV_S("DataLoader(dataset, batch_size, "
                                   "sampler=DistributedSampler(dataset, shuffle=True))"));
        f->weight = 0.8;
    }
}

/* ---- L04: ranks without a card of their own ---- */

static void judge_device(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "script"); s;
         s = tv_scene_next(s, "script")) {
        const tv_note *n = noted_lint(s, "no-set-device");
        if (!n)
            continue;
        tv_finding *f = found_line(q, rule, s, n);
        f->weight = 0.5;
        if (tv_noted_bool(n, "names_device", false)) {
            f->severity = TV_INFO;
            f->cause = N_("Tensors are sent to the rank's own card, but the process never makes it "
                          "the current one: calls that name no card (barriers, empty_cache, "
                          "torch.load) still open a context on GPU 0.");
        }
    }
}

/* ---- O15: GPU 0 carries the others ---- */

static const tv_sighting *oom_on_gpu0(const tv_scene *scene)
{
    for (const tv_sighting *s = tv_scene_first(scene, "oom"); s; s = tv_scene_next(s, "oom"))
        if (tv_noted_is(&s->facts, "framework", "pytorch") &&
            fabs(tv_noted_num(&s->facts, "gpu")) < 0.5)
            return s;
    return NULL;
}

static bool oom_elsewhere(const tv_scene *scene)
{
    for (const tv_sighting *s = tv_scene_first(scene, "oom"); s; s = tv_scene_next(s, "oom"))
        if (tv_noted_num(&s->facts, "gpu") > 0.5)
            return true;
    return false;
}

static void judge_gpu0_script(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *oom = oom_on_gpu0(q->scene);
    for (const tv_sighting *s = tv_scene_first(q->scene, "script"); s && oom;
         s = tv_scene_next(s, "script")) {
        const tv_note *device = noted_lint(s, "no-set-device");
        const tv_note *load = noted_lint(s, "load-without-map");
        if (!device && !load)
            continue;
        tv_finding *f = tv_found(q, rule, oom, NULL);
        tv_found_also(q, f, s, device ? device : load);
        tv_found_str(q, f, "replacement", tv_noted_str(device ? device : load, "fix"));
        f->weight = 0.7;
        if (oom_elsewhere(q->scene))
            f->sure = TV_LOW;
        return;
    }
}

typedef struct seen_pids {
    double pid[64];
    size_t n;
    size_t shared; /* of them, also on GPU 0 */
    double bytes;  /* that they take there */
} seen_pids;

static bool is_process_of(const tv_note *p, bool gpu0)
{
    const double gpu = tv_noted_num(p, "gpu");
    const bool graphics = tv_noted_is(p, "type", "G");
    return !graphics && (gpu0 ? gpu < 0.5 : gpu > 0.5);
}

/* Processes that compute on another card and hold memory on GPU 0 as well. */
static seen_pids ranks_on_gpu0(const tv_note *list, const tv_note **first)
{
    seen_pids seen = {0};
    for (const tv_note *p = list->first; p; p = p->next)
        if (is_process_of(p, false) && seen.n < 64)
            seen.pid[seen.n++] = tv_noted_num(p, "pid");
    for (const tv_note *p = list->first; p; p = p->next)
        for (size_t i = 0; i < seen.n && is_process_of(p, true); i++)
            if (fabs(tv_noted_num(p, "pid") - seen.pid[i]) < 0.5) {
                const double bytes = tv_noted_num(p, "used_bytes");
                seen.bytes += isnan(bytes) ? 0 : bytes;
                *first = seen.shared++ ? *first : p;
                break;
            }
    return seen;
}

static void judge_gpu0_processes(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "nvidia-smi"); s;
         s = tv_scene_next(s, "nvidia-smi")) {
        const tv_note *list = tv_noted(&s->facts, "processes");
        const tv_note *first = NULL;
        if (!list || list->type != TV_NOTE_LIST)
            continue;
        const seen_pids seen = ranks_on_gpu0(list, &first);
        if (seen.shared < 2)
            continue;
        tv_finding *f = tv_found(q, rule, s, first);
        f->cause = N_("{ranks} processes that compute on other cards hold {gpu0_bytes} on GPU 0 as "
                      "well: each opened a context there before, or without, choosing its own "
                      "card. GPU 0 runs out of memory first.");
        tv_found_num(q, f, "ranks", TV_ARG_NUMBER, (double)seen.shared);
        tv_found_num(q, f, "gpu0_bytes", TV_ARG_MEMORY, seen.bytes);
        f->severity = oom_on_gpu0(q->scene) ? TV_CRITICAL : TV_WARNING;
        f->weight = 0.8;
    }
}

static void judge_o15(tv_inquiry *q, const tv_rule *rule)
{
    judge_gpu0_script(q, rule);
    judge_gpu0_processes(q, rule);
}

/* ---- L06, L07: loaders ---- */

static bool loads_in_memory(const tv_sighting *s)
{
    return tv_noted_bool(&s->facts, "in_memory_data", false) ||
           !tv_noted_bool(&s->facts, "uses_gpu", false);
}

static void judge_workers(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "script"); s;
         s = tv_scene_next(s, "script")) {
        const tv_note *list = tv_noted(&s->facts, "loaders");
        const tv_note *loader = list ? list->first : NULL;
        for (; loader && !loads_in_memory(s); loader = loader->next) {
            const double workers = tv_noted_num(loader, "workers");
            if (isnan(workers) || workers > 0 || !is_training_loader(loader))
                continue;
            tv_finding *f = tv_found(q, rule, s, loader);
            const bool paddle = tv_noted_is(&s->facts, "framework", "paddle");
            tv_found_str(q, f, "replacement",
                         paddle
                             ? TV_S("num_workers=4, use_shared_memory=True")
                             : TV_S("num_workers=4, persistent_workers=True, prefetch_factor=4"));
            f->weight = 0.5;
            break;
        }
    }
}

static void judge_pinned(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "script"); s;
         s = tv_scene_next(s, "script")) {
        const tv_note *list = tv_noted(&s->facts, "loaders");
        if (tv_noted_is(&s->facts, "framework", "paddle") ||
            tv_noted_bool(&s->facts, "managed", false) || loads_in_memory(s))
            continue;
        for (const tv_note *loader = list ? list->first : NULL; loader; loader = loader->next) {
            if (tv_noted_bool(loader, "pin_memory", true) || !is_training_loader(loader))
                continue;
            tv_finding *f = tv_found(q, rule, s, loader);
            tv_found_str(q, f, "replacement",
                         TV_S("pin_memory=True ... x.to(device, non_blocking=True)"));
            f->weight = 0.2;
            break;
        }
    }
}

/* ---- L08: waits ---- */

static void judge_waits(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "script"); s;
         s = tv_scene_next(s, "script")) {
        const tv_note *n = noted_lint(s, "sync-each-step");
        if (!n)
            continue;
        tv_finding *f = found_line(q, rule, s, n);
        const double calls = tv_noted_num(n, "calls");
        tv_found_num(q, f, "calls", TV_ARG_NUMBER, calls);
        if (calls < 3)
            f->severity = TV_INFO; /* one wait a step costs what one launch queue holds */
        f->weight = 0.2;
    }
}

/* ---- L21: what batch_size means ---- */

static double ranks_of(const tv_scene *scene)
{
    for (const tv_sighting *c = tv_scene_first(scene, "command"); c;
         c = tv_scene_next(c, "command")) {
        const tv_double_read n = tv_str_double(tv_noted_str(&c->facts, "nproc_per_node"));
        if (n.ok && n.v > 1)
            return n.v;
    }
    return (double)NAN;
}

static void judge_batch(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "script"); s;
         s = tv_scene_next(s, "script")) {
        const tv_note *parallel = noted_lint(s, "data-parallel");
        const tv_note *list = tv_noted(&s->facts, "loaders");
        const tv_note *loader = list ? list->first : NULL;
        while (loader && (!is_training_loader(loader) || isnan(tv_noted_num(loader, "batch"))))
            loader = loader->next;
        if (!loader || (!parallel && !tv_noted_bool(&s->facts, "distributed", false)))
            continue;
        tv_finding *f = tv_found(q, rule, s, loader);
        const double batch = tv_noted_num(loader, "batch"), ranks = ranks_of(q->scene);
        tv_found_num(q, f, "batch", TV_ARG_COUNT, batch);
        if (parallel)
            f->cause = N_("batch_size={batch} is split over all cards by DataParallel. With "
                          "DistributedDataParallel it is the size on each rank: divide it by the "
                          "number of ranks to keep the learning rate's meaning.");
        else if (!isnan(ranks)) {
            tv_found_num(q, f, "ranks", TV_ARG_COUNT, ranks);
            tv_found_num(q, f, "global_batch", TV_ARG_COUNT, batch * ranks);
            f->cause = N_("batch_size={batch} is the size on each rank: {ranks} ranks make "
                          "{global_batch} samples a step, and the learning rate belongs to that.");
        }
    }
}

static const tv_rule rules[] = {
    {
        .id = "O15",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("Every rank takes memory on GPU 0"),
        .cause = N_("GPU 0 ran out of memory, and the script does not give each rank its own card: "
                    "contexts and loaded checkpoints of all ranks pile up on GPU 0."),
        .decided = N_("Out of memory on GPU 0 together with a distributed script that lacks "
                      "set_device or loads checkpoints without map_location; or nvidia-smi shows "
                      "two or more processes that compute on other cards and hold memory on GPU 0 "
                      "too."),
        .unless = N_("When other cards run out of memory as well, the model or the batch is too "
                     "large (O03)."),
        .source = "https://pytorch.org/docs/stable/elastic/run.html",
        .steps = {{.why = N_("Write: {replacement}")},
                  {.why = N_("At the start of each rank, before anything touches CUDA: "
                             "torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])), and "
                             "torch.load(path, map_location=\"cpu\").")},
                  {.command =
                       "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv",
                   .why = N_("Each process must stand under one card.")}},
        .outranks = "O04 L04 L05",
        .judge = judge_o15,
    },
    {
        .id = "L01",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("DataParallel instead of DistributedDataParallel"),
        .cause = N_("nn.DataParallel runs one process with a thread for each card: every step it "
                    "copies the model to all cards, scatters inputs and gathers outputs on GPU 0. "
                    "GPU 0 holds more memory than the others, and Python's lock serialises them."),
        .decided = N_("The script calls DataParallel( of PyTorch. paddle.DataParallel is the "
                      "distributed one and is not meant."),
        .unless = N_("For a quick inference on two cards it does no harm."),
        .source = "https://pytorch.org/docs/stable/generated/torch.nn.DataParallel.html",
        .steps = {{.why = N_("Line {line}: write {replacement}")},
                  {.command = "torchrun --standalone --nproc_per_node=gpu train.py",
                   .why = N_("One process for each card; batch_size then counts for each rank.")}},
        .judge = judge_lint,
    },
    {
        .id = "L02",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Every rank trains on the same data"),
        .cause = N_("The script runs one process for each card, but its loader has no distributed "
                    "sampler: all ranks go through the whole data set, an epoch does the work of "
                    "one card as often as there are ranks."),
        .decided = N_("A process group or DistributedDataParallel, a training loader without "
                      "sampler, and no DistributedSampler anywhere; iterable data sets, Lightning, "
                      "accelerate, DeepSpeed and Trainer are left out."),
        .unless = N_("A data set that splits itself by rank needs no sampler."),
        .source = "https://pytorch.org/docs/stable/data.html",
        .steps = {{.why = N_("Write: {replacement}")}},
        .judge = judge_sampler,
    },
    {
        .id = "L03",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The distributed sampler never changes its order"),
        .cause =
            N_("DistributedSampler shuffles by its epoch number; without set_epoch every epoch "
               "has the same order on every rank."),
        .decided = N_("DistributedSampler is used in a loop over epochs and set_epoch is never "
                      "called."),
        .unless = N_("With shuffle=False the order is meant to stay."),
        .source = "https://pytorch.org/docs/stable/data.html",
        .steps = {{.why = N_("At the start of each epoch: {replacement}")}},
        .judge = judge_lint,
    },
    {
        .id = "L04",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Ranks do not choose their own card"),
        .cause = N_("The script starts a process group but never says which card a rank uses: all "
                    "ranks start on GPU 0. NCCL then reports duplicate GPUs, or GPU 0 runs out of "
                    "memory."),
        .decided = N_("init_process_group without device_id, and neither set_device nor "
                      "CUDA_VISIBLE_DEVICES in the script."),
        .unless = N_("A launcher that gives each process one visible card makes it unnecessary."),
        .source = "https://pytorch.org/docs/stable/elastic/run.html",
        .steps = {{.why = N_("Before line {line}: {replacement}")}},
        .judge = judge_device,
    },
    {
        .id = "L05",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Each rank loads the checkpoint to the card that saved it"),
        .cause = N_("torch.load puts tensors back on the device they were saved from, GPU 0 as a "
                    "rule: with N ranks GPU 0 holds N copies for a while."),
        .decided = N_("torch.load without map_location in a distributed script."),
        .unless = N_("A checkpoint that was saved from the CPU does not do this."),
        .source = "https://pytorch.org/docs/stable/generated/torch.load.html",
        .steps = {{.why = N_("Line {line}: write {replacement}")}},
        .judge = judge_lint,
    },
    {
        .id = "L06",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Data is loaded in the training process itself"),
        .cause =
            N_("The loader has no workers: reading and decoding happen between two steps while "
               "the GPU waits."),
        .decided = N_("A training loader with num_workers=0 or without num_workers, in a script "
                      "that uses a GPU; data sets that lie in memory as tensors are left out."),
        .unless = N_("When a batch takes far less time to make than a step takes, nothing is lost; "
                     "measure the loader's share first."),
        .source = "https://pytorch.org/docs/stable/data.html",
        .steps = {{.why = N_("Write: {replacement}")}},
        .judge = judge_workers,
    },
    {
        .id = "L07",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("Batches go to the card from pageable memory"),
        .cause = N_("Without pin_memory every copy to the card is staged by the driver and waited "
                    "for; pinned batches with non_blocking copies overlap with the step."),
        .decided = N_("A training loader without pin_memory=True in a script that uses a GPU."),
        .unless = N_("Small batches are copied in microseconds either way."),
        .source = "https://pytorch.org/docs/stable/data.html",
        .steps = {{.why = N_("Write: {replacement}")}},
        .judge = judge_pinned,
    },
    {
        .id = "L08",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The training loop waits for the card several times a step"),
        .cause =
            N_("{calls} calls in the training loop (the first on line {line}) fetch a value "
               "from the card: each waits until all queued work is done, and nothing is queued "
               "meanwhile."),
        .decided = N_(".item(), .cpu(), .numpy(), .tolist() or printing a loss in a loop with a "
                      "backward pass, not under a condition on the step; three or more of them are "
                      "a warning, fewer are told."),
        .unless = N_("Large models hide one wait a step."),
        .source = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        .steps = {{.why = N_("Keep values on the card and fetch them every hundred steps: "
                             "{replacement}")}},
        .judge = judge_waits,
    },
    {
        .id = "L09",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Validation keeps everything for a backward pass"),
        .cause =
            N_("The loop on line {line} runs the model without no_grad: activations are kept as "
               "in training although nothing goes backward. Memory peaks in validation."),
        .decided = N_("A loop over data without a backward pass, behind eval() or in a function or "
                      "over a loader named for validation, that calls a model outside no_grad, "
                      "inference_mode or set_grad_enabled."),
        .unless = N_("The caller may have turned gradients off."),
        .source = "https://pytorch.org/docs/stable/notes/autograd.html",
        .steps = {{.why = N_("Put the loop under: {replacement}")}},
        .judge = judge_lint,
    },
    {
        .id = "L10",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Losses are summed with their graphs"),
        .cause =
            N_("Line {line} adds or stores the loss tensor itself: its graph, and all that the "
               "graph holds, stays alive. Memory grows every step until it runs out."),
        .decided = N_("In a training loop a loss is added to a variable that outlives the step, or "
                      "appended to a list, without .item(), .detach() or float()."),
        .unless = N_("A sum of losses that goes backward itself is right and is not meant."),
        .source = "https://pytorch.org/docs/stable/notes/faq.html",
        .steps = {{.why = N_("Line {line}: write {replacement}")}},
        .judge = judge_lint,
    },
    {
        .id = "L11",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Gradients are never cleared"),
        .cause = N_("The loop goes backward (line {line}) and steps, but nothing clears the "
                    "gradients: each step adds to all earlier ones, and training goes wrong."),
        .decided = N_("backward and step in a loop, and no zero_grad, clear_grad or grad = None in "
                      "the whole script."),
        .unless = N_("DeepSpeed's and accelerate's own backward is not meant."),
        .source = "https://pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html",
        .steps = {{.why = N_("Before the backward pass: {replacement}")}},
        .judge = judge_lint,
    },
    {
        .id = "L21",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("What batch_size means in this script"),
        .cause = N_("batch_size={batch} is the size on each rank; the step takes this times the "
                    "number of ranks, and the learning rate belongs to the product."),
        .decided = N_("A number is given as batch_size in a script with DataParallel or with one "
                      "process for each card."),
        .unless = NULL,
        .source = "https://pytorch.org/docs/stable/generated/"
                  "torch.nn.parallel.DistributedDataParallel.html",
        .steps = {{.why = N_("State the batch of the whole step when results or speeds are "
                             "compared.")}},
        .judge = judge_batch,
    },
    {
        .id = "L22",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("A collective that only some ranks reach"),
        .cause = N_("Line {line} calls a collective inside a branch for one rank. The others never "
                    "call it: the job hangs there until the time-out."),
        .decided = N_("barrier, all_reduce, all_gather or the like under a condition on the rank, "
                      "and no counterpart in a branch for the other ranks."),
        .unless = N_("The pattern \"the others wait first, rank 0 joins later\" has a barrier in "
                     "both branches and is right."),
        .source = "https://pytorch.org/docs/stable/distributed.html",
        .steps = {{.why = N_("Move the call out of the branch, so that every rank makes it.")}},
        .outranks = "C18 C19 C39",
        .judge = judge_lint,
    },
    {
        .id = "L23",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Every rank writes the same checkpoint"),
        .cause = N_("Line {line} saves on all ranks at once: the file is written as often as there "
                    "are ranks, and may be damaged."),
        .decided = N_("torch.save in a distributed script, outside any condition on the rank."),
        .unless = N_("A file name with the rank in it, and sharded checkpoints, are right."),
        .source = "https://pytorch.org/tutorials/intermediate/ddp_tutorial.html",
        .steps = {{.why = N_("Write: {replacement}")}},
        .judge = judge_lint,
    },
    {
        .id = "L24",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("A switch for debugging is left on in the script"),
        .cause = N_("Line {line} turns on checks, forces slower deterministic kernels, or turns "
                    "cuDNN off. Steps take longer than they need."),
        .decided = N_("detect_anomaly, use_deterministic_algorithms(True), "
                      "cudnn.deterministic = True or cudnn.enabled = False occurs."),
        .unless = N_("Reproducible runs need the deterministic ones, and pay for them."),
        .source = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        .steps = {{.why = N_("Line {line}: write {replacement}")}},
        .judge = judge_lint,
    },
    {
        .id = "L25",
        .severity = TV_INFO,
        .sure = TV_MEDIUM,
        .title = N_("The graph is kept after the backward pass"),
        .cause = N_("retain_graph=True on line {line} keeps all activations until the loss is "
                    "dropped. In a loop it is needed only for a second backward pass over the same "
                    "graph."),
        .decided = N_("backward(retain_graph=True) in a training loop."),
        .unless = N_("Two losses over one graph, and some adversarial trainings, need it for all "
                     "but the last."),
        .source = "https://pytorch.org/docs/stable/generated/torch.Tensor.backward.html",
        .steps = {{.why = N_("If there is one backward pass: {replacement}")}},
        .judge = judge_lint,
    },
    {
        .id = "L26",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Each step synchronises or empties the cache"),
        .cause =
            N_("Line {line} runs in every step: synchronize stops the overlap of CPU and card; "
               "empty_cache does so too and gives memory back that the next step must ask the "
               "driver for again."),
        .decided = N_("torch.cuda.synchronize or empty_cache in a training loop, not under a "
                      "condition on the step."),
        .unless = N_("Around a time measurement synchronize is right."),
        .source = "https://pytorch.org/docs/stable/notes/cuda.html",
        .steps = {{.why = N_("Line {line}: {replacement}")}},
        .judge = judge_lint,
    },
    {
        .id = "L27",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("paddle.DataParallel without a parallel environment"),
        .cause = N_("The model is wrapped on line {line}, but init_parallel_env or fleet.init is "
                    "never called: every process trains alone."),
        .decided = N_("paddle.DataParallel( occurs and neither init_parallel_env( nor fleet.init( "
                      "does."),
        .unless = N_("The caller of this file may have called it."),
        .source = "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/"
                  "DataParallel_en.html",
        .steps = {{.why = N_("Before the model is made: {replacement}")},
                  {.command = "python -m paddle.distributed.launch --devices 0,1 train.py",
                   .why = N_("The launcher sets the ranks' variables.")}},
        .judge = judge_lint,
    },
    {
        .id = "L28",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("DDP looks for unused parameters in every step"),
        .cause = N_("find_unused_parameters=True on line {line} walks the graph after each forward "
                    "pass. It is needed only where some parameters get no gradient."),
        .decided = N_("find_unused_parameters=True occurs."),
        .unless = N_("Models with branches that are not always taken need it."),
        .source = "https://pytorch.org/docs/stable/generated/"
                  "torch.nn.parallel.DistributedDataParallel.html",
        .steps = {{.why = N_("If every parameter is used: {replacement}")}},
        .judge = judge_lint,
    },
};

extern const tv_rule_group tv_rule_group_script_rules;
const tv_rule_group tv_rule_group_script_rules = {"scripts", N_("Training scripts"), rules,
                                                  sizeof rules / sizeof *rules};
