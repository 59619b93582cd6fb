/* Training that waits for its data: who loads, and what the wait costs. Storage itself is judged in
 * storage_rules.c; both look at the same waits. */
#include "waits.h"

#include <math.h>
#include <string.h>

#define ASK_WORKERS "py-spy top --subprocesses --pid PID"
#define ASK_DISKS "iostat -xy 5 2"

static void ask_which(tv_inquiry *q, const tv_host_load *load)
{
    if (!load->s)
        tv_ask(q, ASK_DISKS,
               N_("While the training runs: read waits of milliseconds and a queue speak for the "
                  "storage, waits of a tenth of that and full cores for decoding."));
    tv_ask(q, ASK_WORKERS,
           N_("Shows where the loader's processes stand: in read and open it is the storage, in "
              "decoding and transforms the CPU."));
}

static void put_wait(tv_inquiry *q, tv_finding *f, const tv_wait *w)
{
    f->weight = w->share > 1 ? 1 : w->share;
    tv_found_num(q, f, "wait_frac", TV_ARG_RATIO, w->share);
    tv_found_num(q, f, "batch_wait_s", TV_ARG_SECONDS, w->batch_s);
    if (w->share > 0 && w->share < 0.999)
        tv_found_num(q, f, "gain_times", TV_ARG_NUMBER, 1 / (1 - w->share));
}

/* ---- D01 ---- */

static void judge_main_process(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = q->scene->first; s; s = s->next) {
        tv_wait w;
        if (!tv_wait_of(s, &w) || !(w.share >= TV_WAIT_FINDING) || w.hidden ||
            !(w.loader == TV_LOADER_MAIN || w.guessed))
            continue;
        tv_finding *f = tv_found(q, rule, s, w.at);
        put_wait(q, f, &w);
        tv_found_num(q, f, "batches", TV_ARG_COUNT, tv_noted_num(&s->facts, "row0.calls"));
        if (!w.guessed)
            continue;
        f->sure = TV_LOW;
        f->cause = N_("Of the steps {wait_frac} belongs to no operator at all: the loop stands "
                      "between two batches. That is the wait for the next batch, most often "
                      "because the loader works in the training process (num_workers=0).");
        tv_ask(q, ASK_WORKERS,
               N_("Shows where the loader's processes stand: in read and open it is the storage, "
                  "in decoding and transforms the CPU."));
    }
}

/* ---- D02 ---- */

static void judge_decode(tv_inquiry *q, const tv_rule *rule)
{
    const tv_host_load load = tv_host_load_of(q->scene);
    for (const tv_sighting *s = q->scene->first; s; s = s->next) {
        tv_wait w;
        if (!tv_wait_of(s, &w) || !(w.share >= TV_WAIT_FINDING) || w.hidden || w.guessed ||
            w.loader == TV_LOADER_MAIN || tv_noted_is(&s->facts, "framework", "paddle"))
            continue;
        if (tv_storage_waits(&load))
            continue; /* D03, D09 */
        tv_finding *f = tv_wait_found(q, rule, s);
        if (f) {
            tv_found_also(q, f, s, w.at);
            continue;
        }
        f = tv_found(q, rule, s, w.at);
        put_wait(q, f, &w);
        if (tv_cpu_is_full(&load)) {
            tv_found_num(q, f, "cpu_idle_frac", TV_ARG_RATIO, load.idle_frac);
            continue;
        }
        f->sure = load.s && load.read_wait_s < 1e-3 ? TV_MEDIUM : TV_LOW;
        f->cause =
            N_("Every step waits {wait_frac} of its time for the next batch: the loader does "
               "not keep up. Most often that is decoding and transforming on the CPU; "
               "storage is not excluded by what was given.");
        ask_which(q, &load);
    }
}

/* ---- D04 ---- */

static void judge_reader(tv_inquiry *q, const tv_rule *rule)
{
    static const char *const kinds[] = {"paddle-profiler", "train-log"};
    for (size_t k = 0; k < 2; k++)
        for (const tv_sighting *s = tv_scene_first(q->scene, kinds[k]); s;
             s = tv_scene_next(s, kinds[k])) {
            const tv_note *facts = &s->facts;
            const char *key =
                tv_noted(facts, "reader_ratio_frac") ? "reader_ratio_frac" : "dataloader_frac";
            const double share = tv_noted_num(facts, key);
            const double least = strcmp(key, "reader_ratio_frac") == 0 ? 0.10 : 0.20;
            if (!tv_noted_is(facts, "framework", "paddle") || !(share > least))
                continue;
            const tv_note *at = tv_noted(facts, key);
            const tv_note *place = at && at->line ? at : tv_noted(facts, "model.dataloader");
            tv_finding *f = tv_wait_found(q, rule, s);
            if (f) {
                tv_found_also(q, f, s, place);
                continue;
            }
            f = tv_found(q, rule, s, place);
            const tv_wait w = {
                s,     at,   TV_LOADER_UNKNOWN, share, tv_noted_num(facts, "reader_cost_avg_s"),
                false, false};
            put_wait(q, f, &w);
            const double gpu = tv_noted_num(facts, "gpu_busy_frac");
            tv_found_num(q, f, "gpu_busy_frac", TV_ARG_RATIO, gpu);
            if (!isnan(gpu))
                f->cause = N_("The reader takes {wait_frac} of the step, and the GPU works in only "
                              "{gpu_busy_frac} of it: training waits for data. Hidden behind the "
                              "computation the wait would leave at most {gain_times} times the "
                              "speed.");
            if (tv_noted_bool(facts, "has_inf", false))
                tv_found_word(q, f, "timer_note",
                              N_("the timer's max and min do not fit its avg: only avg is used"));
        }
}

/* ---- D14 ---- */

/* The cores that a container or an affinity mask leaves; NaN: not seen. */
static double allowed_cpus(const tv_inquiry *q, const tv_sighting **where, const tv_note **at)
{
    static const char *const paths[] = {"cgroup.cpu_limit", "cpus_allowed_n"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        for (const tv_sighting *s = tv_scene_first(q->scene, "host"); s;
             s = tv_scene_next(s, "host"))
            if (tv_noted_num(&s->facts, paths[i]) > 0) {
                *where = s;
                *at = tv_noted(&s->facts, paths[i]);
                return (*at)->number;
            }
    return (double)NAN;
}

/* A script's or a command's own number of workers against them. */
static void judge_stated_workers(tv_inquiry *q, const tv_rule *rule)
{
    static const struct {
        const char *kind, *path;
    } places[] = {{"script", "loaders.0.workers"}, {"command", "workers"}};
    const tv_sighting *where = NULL;
    const tv_note *limit = NULL;
    const double cpus = allowed_cpus(q, &where, &limit);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (const tv_sighting *s = tv_scene_first(q->scene, places[i].kind); s;
             s = tv_scene_next(s, places[i].kind)) {
            const double workers = tv_noted_num(&s->facts, places[i].path);
            if (!(workers > cpus))
                continue;
            tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "loaders.0"));
            tv_found_also(q, f, where, limit);
            tv_found_num(q, f, "workers", TV_ARG_NUMBER, workers);
            tv_found_num(q, f, "cpus", TV_ARG_NUMBER, cpus);
        }
}

static void judge_worker_count(tv_inquiry *q, const tv_rule *rule)
{
    judge_stated_workers(q, rule);
    for (const tv_sighting *s = tv_scene_first(q->scene, "loader-workers"); s;
         s = tv_scene_next(s, "loader-workers")) {
        const double workers = tv_noted_num(&s->facts, "workers");
        const double cpus = tv_noted_num(&s->facts, "cpus");
        if (!(workers > cpus))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        tv_found_num(q, f, "workers", TV_ARG_NUMBER, workers);
        tv_found_num(q, f, "cpus", TV_ARG_NUMBER, cpus);
    }
}

/* ---- T06 ---- */

typedef struct host_bound {
    const tv_note *at;
    double host_s; /* the loader's part taken out */
    double device_s;
    double kernel_s; /* mean; NaN: not known */
} host_bound;

static bool paddle_host(const tv_sighting *s, host_bound *b)
{
    const tv_note *facts = &s->facts;
    const double step_s = tv_noted_num(facts, "model.profilestep.cpu_total_s");
    const double loader_s = tv_noted_num(facts, "model.dataloader.cpu_total_s");
    b->at = tv_noted(facts, "model.optimization");
    b->host_s = step_s - (isnan(loader_s) ? 0 : loader_s);
    b->device_s = tv_noted_num(facts, "gpu_busy_frac") * step_s;
    b->kernel_s = (double)NAN;
    return b->device_s > 0 && b->device_s < 0.3 * b->host_s;
}

/* Short kernels, and a host that takes far longer to hand them out than they run. */
static bool torch_host(const tv_sighting *s, host_bound *b)
{
    const tv_note *facts = &s->facts;
    const double launches = tv_noted_num(facts, "launches");
    const double loader_s = tv_noted_num(facts, "loader_s");
    const double sync_s = tv_noted_num(facts, "sync_cpu_s");
    double host_s = tv_noted_num(facts, "profilerstep.cpu_total_s");
    if (isnan(host_s))
        host_s = tv_noted_num(facts, "self_cpu_total_s");
    const double malloc_s = tv_noted_num(facts, "device_malloc_cpu_s");
    b->at = NULL;
    b->host_s = host_s - (isnan(loader_s) ? 0 : loader_s);
    b->device_s = tv_noted_num(facts, "self_device_total_s");
    b->kernel_s = b->device_s / launches;
    return launches >= 100 && b->kernel_s < 30e-6 && b->device_s > 0 &&
           b->device_s < 0.4 * b->host_s && !(sync_s > 0.3 * b->host_s) &&
           !(malloc_s > 0.2 * b->host_s);
}

/* Sums of nsys: the host's time is that within the API. */
static bool nsys_host(const tv_sighting *s, host_bound *b)
{
    const tv_note *facts = &s->facts;
    b->at = NULL;
    b->host_s = tv_noted_num(facts, "runtime_s");
    b->device_s = tv_noted_num(facts, "kernel_s");
    b->kernel_s = tv_noted_num(facts, "kernel_mean_s");
    return tv_noted_num(facts, "launches") >= 100 && b->kernel_s < 30e-6 &&
           b->device_s < 0.4 * b->host_s &&
           !(tv_noted_num(facts, "sync_call_s") > 0.3 * b->host_s) &&
           !(tv_noted_num(facts, "device_malloc_s") > 0.2 * b->host_s);
}

static void judge_launch(tv_inquiry *q, const tv_rule *rule)
{
    static const struct {
        const char *kind;
        bool (*of)(const tv_sighting *s, host_bound *b);
    } sorts[] = {
        {"paddle-profiler", paddle_host}, {"key_averages", torch_host}, {"nsys", nsys_host}};
    for (size_t k = 0; k < sizeof sorts / sizeof *sorts; k++)
        for (const tv_sighting *s = tv_scene_first(q->scene, sorts[k].kind); s;
             s = tv_scene_next(s, sorts[k].kind)) {
            host_bound b;
            if (!sorts[k].of(s, &b))
                continue;
            tv_finding *f = tv_found(q, rule, s, b.at);
            f->weight = 0.5 * (1 - b.device_s / b.host_s);
            tv_found_num(q, f, "device_frac", TV_ARG_RATIO, b.device_s / b.host_s);
            tv_found_num(q, f, "host_s", TV_ARG_SECONDS, b.host_s);
            tv_found_num(q, f, "device_s", TV_ARG_SECONDS, b.device_s);
            tv_found_num(q, f, "kernel_s", TV_ARG_SECONDS, b.kernel_s);
        }
}

/* ---- I09 ---- */

/* What steady steps cost in calls that allocate, by a table or a timeline. */
typedef struct allocations {
    double steps, steps_s;
    double calls, calls_s, searches;
} allocations;

static bool allocations_of(const tv_sighting *s, allocations *out)
{
    const tv_note *facts = &s->facts;
    const bool table = strcmp(s->kind, "key_averages") == 0;
    if (!table && strcmp(s->kind, "trace") != 0)
        return false;
    *out = (allocations){
        .steps = tv_noted_num(facts, table ? "profilerstep.calls" : "steps"),
        .steps_s = tv_noted_num(facts, table ? "profilerstep.cpu_total_s" : "window_s"),
        .calls = tv_noted_num(facts, "device_mallocs"),
        .calls_s = tv_noted_num(facts, table ? "device_malloc_cpu_s" : "device_malloc_s"),
        .searches = tv_noted_num(facts, "algorithm_searches"),
    };
    return out->steps >= 3;
}

static void judge_searches(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = q->scene->first; s; s = s->next) {
        allocations a;
        if (!allocations_of(s, &a))
            continue;
        const bool allocates = a.calls >= 2 * a.steps && a.calls_s >= 0.05 * a.steps_s;
        if (!allocates && !(a.searches >= a.steps))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        f->weight = a.calls_s > 0 ? a.calls_s / a.steps_s : 0.1;
        tv_found_num(q, f, "allocations_per_step", TV_ARG_NUMBER, a.calls / a.steps);
        tv_found_num(q, f, "allocation_frac", TV_ARG_RATIO, a.calls_s / a.steps_s);
        tv_found_num(q, f, "searches_per_step", TV_ARG_NUMBER, a.searches / a.steps);
    }
}

/* ---- S20 ---- */

static void judge_missing_device(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "key_averages"); s;
         s = tv_scene_next(s, "key_averages")) {
        const tv_note *facts = &s->facts;
        const bool expected = tv_noted_bool(facts, "expected_cuda", false);
        const bool zero = tv_noted_bool(facts, "device_times_missing", false);
        if (!expected && !zero)
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        if (!(tv_noted_num(facts, "launches") > 0) && !zero)
            f->sure = TV_LOW;
    }
}

static const tv_rule rules[] = {
    {
        .id = "D01",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The loader works in the training process"),
        .cause = N_("The batches are loaded and decoded by the training process itself "
                    "(num_workers=0): {batch_wait_s} for each, {wait_frac} of the time, while the "
                    "GPU waits. Hidden behind the computation, the training could run up to "
                    "{gain_times} times as fast on this profile."),
        .decided = N_("The row of _SingleProcessDataLoaderIter takes 10 % or more of the steps (or "
                      "of the CPU's time, where the table has no steps) and the device is not busy "
                      "for 90 % of it. Time of the steps that belongs to no operator, 60 % or more "
                      "and 5 ms or more a step, is taken for the same with low confidence."),
        .unless = N_("A device that is busy all the time hides the loading. A notebook's first "
                     "batch holds one-off costs: profile steps after the tenth."),
        .source = "https://github.com/MLforHealth/ClinicalDG/issues/2",
        .steps = {{.command = "DataLoader(..., num_workers=8, persistent_workers=True, "
                              "prefetch_factor=4, pin_memory=True)",
                   .why = N_("Loads in processes of their own: start with 4 to 8 per GPU, no more "
                             "than the cores allow; undo with num_workers=0.")},
                  {.command = "py-spy top --subprocesses --pid PID",
                   .why = N_("If it still waits: which function the workers stand in. Decoding "
                             "calls for smaller stored images or a faster decoder, reading for "
                             "larger files or a nearer disk.")}},
        .outranks = "D05",
        .judge = judge_main_process,
    },
    {
        .id = "D02",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Decoding on the CPU does not keep up"),
        .cause = N_("Every step waits {wait_frac} of its time for the next batch while the cores "
                    "are full ({cpu_idle_frac} idle) and do not wait for disks: decoding and "
                    "transforming is the limit."),
        .decided =
            N_("The wait for a batch (_MultiProcessingDataLoaderIter, data_time of a log) is "
               "10 % or more of the step, and neither iowait (15 %) nor read waits (2 ms) "
               "speak for the storage. High confidence only where the cores are seen full "
               "(10 % idle or less); without any sight of the host it is low."),
        .unless = N_("High iowait or long read waits make it a matter of the storage (D03, D09). A "
                     "busy device hides the wait."),
        .source = "https://github.com/open-mmlab/mmaction2/issues/264",
        .steps = {{.command = "py-spy top --subprocesses --pid PID",
                   .why = N_("Names the function that the workers spend their time in.")},
                  {.why = N_("Store the samples at the size that the model reads (most of a 12 "
                             "megapixel JPEG is decoded in vain for a 224 pixel crop), or use a "
                             "faster decoder (NVIDIA DALI, libjpeg-turbo, ffcv).")},
                  {.why = N_("More workers help only while cores are free: compare num_workers "
                             "with the cores that the job may use (nproc).")}},
        .outranks = "D05",
        .judge = judge_decode,
    },
    {
        .id = "D04",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Paddle's reader holds the training up"),
        .cause = N_("The reader takes {wait_frac} of the step: training waits for data. Hidden "
                    "behind the computation the wait would leave at most {gain_times} times the "
                    "speed."),
        .decided = N_("The Reader Ratio, or reader_cost over batch_cost, is above 10 %, or the "
                      "Dataloader row above 20 % of the ProfileStep row. Max and min of the timer "
                      "are not used: they do not fit its averages and may be inf."),
        .unless = N_("The first interval of a run holds the start of the workers: look at a later "
                     "one."),
        .source = "https://github.com/PaddlePaddle/docs/pull/4694",
        .steps = {{.command = "paddle.io.DataLoader(..., num_workers=4, use_shared_memory=True, "
                              "persistent_workers=True)",
                   .why = N_("Reads in processes of their own; undo with num_workers=0. In PaddleX "
                             "suites it is Train.loader.num_workers or TrainReader's "
                             "worker_num in the YAML file.")},
                  {.command = "py-spy top --subprocesses --pid PID",
                   .why = N_("If the ratio stays: which function the readers stand in.")}},
        .outranks = "D05",
        .judge = judge_reader,
    },
    {
        .id = "D14",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("More loader workers than the job may use cores"),
        .cause =
            N_("{workers} workers share {cpus} cores: they get in each other's way, and in the "
               "way of the training process."),
        .decided = N_("PyTorch's own warning names more workers than cores (it looks at the "
                      "affinity mask), or the workers of a script exceed the cores that the cgroup "
                      "or the affinity mask leaves."),
        .unless = N_("Workers that mostly wait for a network disk may outnumber the cores."),
        .source = "https://pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader",
        .steps = {{.command = "nproc", .why = N_("The cores that this process may use.")},
                  {.command = "cat /sys/fs/cgroup/cpu.max",
                   .why = N_("The container's limit: quota over period is the number of cores; max "
                             "is none.")},
                  {.why = N_("Take num_workers = cores / GPUs of this host, or give the container "
                             "more (docker run --cpus, resources.limits.cpu).")}},
        .judge = judge_worker_count,
    },
    {
        .id = "T06",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The host hands out work more slowly than the GPU does it"),
        .cause = N_("Without the loader the host is busy for {host_s}, the device for {device_s}: "
                    "{device_frac}. The model is small, or made of many small operators, and "
                    "Python and kernel launches set the pace, not the GPU."),
        .decided = N_("Paddle: the GPU time of the ProfileStep row is below 30 % of its CPU time "
                      "without the Dataloader. PyTorch: the device's total is below 40 % of the "
                      "host's, kernels last 30 us or less on average over 100 launches or more, "
                      "and neither waits for the device nor allocations explain the host's time."),
        .unless = N_("A profiler with stacks and shapes slows the host itself: compare with the "
                     "step time of a run without it. Start-up steps look alike."),
        .source = "https://github.com/PaddlePaddle/docs/pull/4694",
        .steps = {{.why = N_("A larger batch per step costs the host nothing: raise it while "
                             "memory and convergence allow.")},
                  {.command = "model = torch.compile(model, mode=\"reduce-overhead\")",
                   .why = N_("PyTorch: fuses operators and replays launches as CUDA graphs; fixed "
                             "shapes needed. Paddle: paddle.jit.to_static. Undo: leave the line "
                             "out.")},
                  {.why =
                       N_("Use the fused or multi-tensor optimizer (fused=True, use_multi_tensor="
                          "True), log less often, and take prints and .item() out of the "
                          "loop.")}},
        .judge = judge_launch,
    },
    {
        .id = "I09",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Memory is allocated, or algorithms are searched for, in every step"),
        .cause = N_("Steady steps still call cudaMalloc, cudaFree or a search for convolution "
                    "algorithms: shapes that change defeat the caches."),
        .decided = N_("Over three or more steps of a profile: two or more cudaMalloc and cudaFree "
                      "a step that take 5 % of it or more, or a search (cudnnFind) in every step."),
        .unless = N_("The first steps allocate what later ones reuse: profile after warming up. A "
                     "cache that is emptied on purpose (torch.cuda.empty_cache) does the same."),
        .source = "https://pytorch.org/docs/stable/backends.html",
        .steps = {{.why = N_("Bring inputs to a few fixed shapes (pad to buckets).")},
                  {.command = "torch.backends.cudnn.benchmark = False",
                   .why =
                       N_("For shapes that vary: each new shape is a new search. Undo: set it to "
                          "True where the shapes are fixed.")},
                  {.command = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                   .undo = "unset PYTORCH_CUDA_ALLOC_CONF",
                   .why = N_("Lets blocks grow in place instead of being freed and allocated "
                             "anew.")}},
        .judge = judge_searches,
    },
    {
        .id = "S20",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The profile shows nothing of the GPU"),
        .cause = N_("The table has no device times though the run used a GPU: CUPTI could not "
                    "start. The GPU's time is unknown, not zero, and no verdict about it can be "
                    "made from this table."),
        .decided =
            N_("No device columns (or only zeros in them) beside rows of the CUDA runtime, or "
               "beside profiler steps of less than a millisecond of CPU time, which only "
               "queue work (low confidence)."),
        .unless = N_("A run on the CPU, and a profiler started with ProfilerActivity.CPU alone, "
                     "have no device columns either."),
        .source = "https://github.com/pytorch/pytorch/issues/124547",
        .steps = {{.command = "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
                   .why = N_("Ask for the device in the first place.")},
                  {.command = "grep RmProfilingAdminOnly /proc/driver/nvidia/params",
                   .why = N_("1: only root may profile.")},
                  {.command = "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo "
                              "tee /etc/modprobe.d/nvidia-profiling.conf",
                   .undo = "sudo rm /etc/modprobe.d/nvidia-profiling.conf",
                   .why = N_("Lets every user profile, after the module is loaded anew (reboot).")},
                  {.command = "dcgmi profile --pause",
                   .undo = "dcgmi profile --resume",
                   .why = N_("DCGM's own profiling holds the counters while it runs.")}},
        .judge = judge_missing_device,
    },
};

extern const tv_rule_group tv_rule_group_loader_rules;
const tv_rule_group tv_rule_group_loader_rules = {"loader", N_("Data loading and launches"), rules,
                                                  sizeof rules / sizeof *rules};
