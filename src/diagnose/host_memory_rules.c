/* Memory that is not the card's: shared memory, pinned memory, and the host's own. */
#include <math.h>

#include "diagnose.h"

/* ---- the host's OOM killer ---- */

static const tv_sighting *first_host(const tv_inquiry *q)
{
    return tv_scene_first(q->scene, "host-oom");
}

static const tv_sighting *next_host(const tv_sighting *s)
{
    return tv_scene_next(s, "host-oom");
}

static bool starts(const tv_sighting *s, const char *path, const char *word)
{
    return tv_str_starts(tv_noted_str(&s->facts, path), tv_str_of(word));
}

static void put_victim(tv_inquiry *q, tv_finding *f, const tv_note *facts)
{
    tv_found_num(q, f, "pid", TV_ARG_NUMBER, tv_noted_num(facts, "killed_pid"));
    tv_found_str(q, f, "program", tv_noted_str(facts, "killed_name"));
    tv_found_num(q, f, "rss_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "anon_rss_bytes"));
    tv_found_num(q, f, "shmem_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "shmem_rss_bytes"));
}

static bool is_card_error(const tv_inquiry *q)
{
    return tv_scene_first(q->scene, "oom") != NULL;
}

static void judge_global(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_host(q); s; s = next_host(s)) {
        const bool sure =
            tv_noted_is(&s->facts, "scope", "global") || tv_noted_is(&s->facts, "scope", "ray");
        const bool guess = tv_noted_is(&s->facts, "scope", "unknown") &&
                           !tv_noted(&s->facts, "exit_status") && !is_card_error(q);
        if (!sure && !guess)
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        put_victim(q, f, &s->facts);
        const bool told = tv_noted(&s->facts, "killed_name") && tv_noted(&s->facts, "killed_pid") &&
                          tv_noted(&s->facts, "anon_rss_bytes");
        if (sure && told)
            continue;
        if (sure) {
            f->cause =
                N_("The host's memory was used up, and a process was ended to save the rest. "
                   "The card is not involved.");
            continue;
        }
        f->cause = N_("A process was ended by signal 9 while nothing else explains it: most often "
                      "that is the kernel, when the host's memory runs out.");
        f->sure = TV_LOW;
        tv_ask(q, "dmesg -T | grep -i -A2 oom-kill",
               N_("The kernel writes down what it ended, and whether the host or a limit ran "
                  "out."));
    }
}

/* How much the limit should be: what was in use and a quarter. */
static void put_limit(tv_inquiry *q, tv_finding *f, const tv_note *facts)
{
    const double limit = tv_noted_num(facts, "cgroup_limit_bytes");
    tv_found_num(q, f, "limit_bytes", TV_ARG_MEMORY, limit);
    if (limit > 0 && limit < 0x1p50)
        tv_found_num(q, f, "more_gib", TV_ARG_NUMBER, ceil(limit * 1.5 / 0x1p30));
}

static void judge_cgroup(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_host(q); s; s = next_host(s)) {
        const bool sure = starts(s, "scope", "cgroup");
        const bool guess = tv_noted_is(&s->facts, "scope", "unknown") &&
                           tv_noted(&s->facts, "exit_status") && !is_card_error(q);
        if (!sure && !guess)
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        put_victim(q, f, &s->facts);
        put_limit(q, f, &s->facts);
        tv_found_str(q, f, "step", tv_noted_str(&s->facts, "step"));
        if (starts(s, "scope", "cgroup (slurm"))
            tv_found_str(q, f, "slurm", TV_S("sbatch"));
        else if (starts(s, "scope", "cgroup (kube"))
            tv_found_str(q, f, "kubernetes", TV_S("kubectl"));
        else
            tv_found_str(q, f, "container", TV_S("docker"));
        if (sure)
            continue;
        f->sure = TV_LOW;
        f->cause =
            N_("A container or rank ended with status 137 or -9, that is signal 9: most often "
               "a memory limit of the container or job. The kernel's log would tell.");
        tv_ask(q, "dmesg -T | grep -i -A2 oom-kill",
               N_("The kernel writes down what it ended, and whether the host or a limit ran "
                  "out."));
    }
}

static void judge_refused(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_host(q); s; s = next_host(s)) {
        if (!tv_noted_is(&s->facts, "scope", "refused"))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        const double tried = tv_noted_num(&s->facts, "tried_bytes");
        tv_found_str(q, f, "error", tv_noted_str(&s->facts, "error"));
        tv_found_num(q, f, "tried_bytes", TV_ARG_MEMORY, tried);
        tv_found_num(q, f, "available_bytes", TV_ARG_MEMORY,
                     tv_noted_num(&s->facts, "available_bytes"));
        if (tv_noted_is(&s->facts, "error", "WinError 1455"))
            f->cause =
                N_("Windows' page file is too small: every process that loads PyTorch commits "
                   "several GB, loader workers too.");
    }
}

/* ---- shared memory ---- */

/* Docker's default. */
#define SHM_DEFAULT_BYTES (64.0 * 1024 * 1024)

static bool is_shm_failure(const tv_note *facts)
{
    return tv_noted_is(facts, "layer", "/dev/shm too small");
}

static void judge_shm(tv_inquiry *q, const tv_rule *rule)
{
    tv_finding *failure = NULL;
    for (const tv_sighting *s = tv_scene_first(q->scene, "shm"); s; s = tv_scene_next(s, "shm")) {
        const tv_note *facts = &s->facts;
        const double size = tv_noted_num(facts, "size_bytes");
        const double used = tv_noted_num(facts, "use_frac");
        const bool failed = is_shm_failure(facts);
        const bool full = used >= 0.80;
        const bool small = size > 0 && size <= SHM_DEFAULT_BYTES;
        if (!failed && !full && !small)
            continue;
        if (failed && failure) {
            tv_found_also(q, failure, s, NULL);
            continue;
        }
        tv_finding *f = tv_found(q, rule, s, NULL);
        failure = failed ? f : failure;
        tv_found_num(q, f, "pid", TV_ARG_NUMBER, tv_noted_num(facts, "worker_pid"));
        tv_found_num(q, f, "size_bytes", TV_ARG_MEMORY, size);
        tv_found_num(q, f, "used_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "used_bytes"));
        tv_found_num(q, f, "used_frac", TV_ARG_RATIO, used);
        if (failed)
            continue;
        if (full)
            f->cause =
                N_("/dev/shm holds {size_bytes} and is {used_frac} full: loader workers that "
                   "hand over batches through it hang or end by a bus error.");
        else
            f->cause = N_("/dev/shm has {size_bytes}, the default of a container: the first loader "
                          "with workers can fill it.");
        if (!full)
            f->severity = TV_WARNING;
    }
}

static void judge_worker(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "worker-lost"); s;
         s = tv_scene_next(s, "worker-lost")) {
        if (!starts(s, "signal", "Killed") || is_card_error(q) || tv_has_found(q, "O28"))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        tv_found_num(q, f, "pid", TV_ARG_NUMBER, tv_noted_num(&s->facts, "worker_pid"));
        tv_found_num(q, f, "workers", TV_ARG_NUMBER, (double)tv_noted_n(&s->facts, "worker_pids"));
        tv_ask(q, "dmesg -T | grep -i -A2 oom-kill",
               N_("The kernel writes down what it ended, and whether the host or a limit ran "
                  "out."));
    }
}

/* ---- pinned memory ---- */

static void judge_pinned(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "oom"); s; s = tv_scene_next(s, "oom")) {
        const tv_note *facts = &s->facts;
        if (!tv_noted_is(facts, "memory", "pinned host"))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        tv_found_num(q, f, "tried_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "tried_bytes"));
        const tv_str error = tv_noted_str(facts, "error");
        tv_found_str(q, f, "error", error.n ? error : TV_S("out of memory"));
        if (tv_noted_bool(facts, "fatal", true)) {
            f->severity = TV_CRITICAL;
            f->cause =
                N_("The pool of pinned host memory is exhausted: it is taken from the host's "
                   "own, and cannot be swapped out.");
        }
    }
}

static const tv_rule rules[] = {
    {
        .id = "O26",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The host ran out of memory and the kernel ended a process"),
        .cause = N_("The kernel ended {program} (process {pid}), which held {rss_bytes} of the "
                    "host's memory: RAM and swap of the whole host were used up. The card is not "
                    "involved."),
        .decided =
            N_("The kernel's oom-kill line with CONSTRAINT_NONE (global), or \"Out of memory: "
               "Killed process\". A bare \"Killed\" is a candidate."),
        .unless = N_("CONSTRAINT_MEMCG is a limit of a container or job (O27)."),
        .source = "https://docs.kernel.org/admin-guide/mm/concepts.html",
        .steps = {{.command = "dmesg -T | grep -i -A2 oom-kill",
                   .why = N_("Every victim, with its size.")},
                  {.why = N_("Fewer loader workers; data as memory-mapped arrays instead of Python "
                             "lists; load checkpoints with mmap=True on one rank at a time.")},
                  {.why = N_("More RAM, or swap for the peak while loading.")}},
        .outranks = "O29",
        .judge = judge_global,
    },
    {
        .id = "O27",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The memory limit of the container or job was reached"),
        .cause = N_("The limit of the control group ended the process, not the host and not the "
                    "card. Page cache that is dirty, /dev/shm and every loader worker count "
                    "towards it."),
        .decided =
            N_("CONSTRAINT_MEMCG or \"Memory cgroup out of memory\", Slurm's oom-kill event, "
               "OOMKilled. Status 137 alone is a candidate."),
        .unless = N_("CONSTRAINT_NONE is the whole host (O26)."),
        .source = "https://github.com/ArjunaCluster/ArjunaUsers/issues/52",
        .steps = {{.command = "{slurm} --mem=128G job.sh",
                   .why = N_("Ask for more; sacct -j JOB --format=MaxRSS,ReqMem shows what was "
                             "used.")},
                  {.command = "{kubernetes} describe pod POD",
                   .why = N_("resources.limits.memory of the pod: raise it.")},
                  {.command = "{container} run --memory={more_gib}g IMAGE",
                   .why = N_("Half as much again.")},
                  {.command = "{container} inspect --format '{{.HostConfig.Memory}}' CONTAINER",
                   .why = N_("The limit now (0: none); raise --memory.")},
                  {.why = N_("Or need less: fewer loader workers, smaller prefetch, data as "
                             "memory-mapped arrays.")}},
        .outranks = "O29",
        .judge = judge_cgroup,
    },
    {
        .id = "O28",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("Shared memory is too small for the loader's workers"),
        .cause =
            N_("A loader's worker ended by a bus error: the batches that workers hand over lie "
               "in /dev/shm, and it is full. Containers get 64 MB of it unless told otherwise."),
        .decided =
            N_("A worker of a DataLoader is killed by \"Bus error\", or PyTorch or Paddle name "
               "insufficient shared memory, or df shows /dev/shm 80 % full, or it has a "
               "container's 64 MB (warning)."),
        .unless = N_("A worker killed by \"Killed\" ran out of the host's memory instead (O29)."),
        .source = "https://github.com/pytorch/pytorch/issues/5040",
        .steps = {{.command = "df -h /dev/shm", .why = N_("See how large it is.")},
                  {.command = "docker run --shm-size=16g IMAGE",
                   .why = N_("Give the container more, or share the host's with --ipc=host.")},
                  {.command = "mount -o remount,size=16G /dev/shm",
                   .undo = "mount -o remount,size=50% /dev/shm",
                   .why = N_("On a host or in a privileged container; until the next boot.")},
                  {.why = N_("Kubernetes: an emptyDir with medium: Memory mounted at /dev/shm.")}},
        .judge = judge_shm,
    },
    {
        .id = "O29",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("A loader worker was killed: the host's memory"),
        .cause =
            N_("A loader worker was ended by signal 9 and the card did not complain: the workers' "
               "copies filled the host's memory. Python lists and dicts in the dataset are "
               "copied page by page, because reading them writes their counters."),
        .decided = N_("A DataLoader worker killed by \"Killed\", and no memory error of the card."),
        .unless = N_("\"Bus error\" is shared memory (O28)."),
        .source = "https://github.com/TorchSSL/TorchSSL/issues/4",
        .steps = {{.why = N_("Fewer workers (num_workers) and less prefetch_factor.")},
                  {.why =
                       N_("Keep the dataset's index in numpy or Arrow arrays instead of lists of "
                          "objects.")},
                  {.command = "free -g; ps -eo pid,rss,comm --sort=-rss | head",
                   .why = N_("Watch it grow.")}},
        .judge = judge_worker,
    },
    {
        .id = "O30",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Pinned host memory was refused"),
        .cause =
            N_("{tried_bytes} of page-locked memory were refused ({error}); the program goes on "
               "with pageable memory, so copies to the card are slower. It is no lack of memory "
               "on the card."),
        .decided = N_("\"failed to allocate ... of pinned memory\", or the cuda_host pool is "
                      "exhausted."),
        .unless = NULL,
        .source = "https://github.com/ggml-org/llama.cpp/issues/9629",
        .steps = {{.command = "ulimit -l", .why = N_("The limit of locked memory.")},
                  {.command = "ulimit -l unlimited",
                   .undo = "ulimit -l 8192",
                   .why = N_("For this shell, where the hard limit allows it.")},
                  {.why = N_("Fewer pinned buffers: pin_memory=False, fewer workers, "
                             "GGML_CUDA_NO_PINNED=1.")}},
        .judge = judge_pinned,
    },
    {
        .id = "O34",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The host refused memory to the program"),
        .cause = N_("The program asked the host, not the card, for memory and was refused "
                    "({error})."),
        .decided =
            N_("PyTorch's CPU allocator, numpy, std::bad_alloc, errno 12, Windows error 1455 "
               "or ollama's check of system memory."),
        .unless = NULL,
        .source = "https://docs.kernel.org/mm/overcommit-accounting.html",
        .steps = {{.command = "free -g; ulimit -v", .why = N_("What the host has, and a limit.")},
                  {.why = N_("Load in pieces (mmap=True, memory-mapped arrays), fewer workers; "
                             "Windows: a page file of at least the size of RAM.")}},
        .judge = judge_refused,
    },
};

extern const tv_rule_group tv_rule_group_host_memory_rules;
const tv_rule_group tv_rule_group_host_memory_rules = {"host-memory", N_("Host and shared memory"),
                                                       rules, sizeof rules / sizeof *rules};
