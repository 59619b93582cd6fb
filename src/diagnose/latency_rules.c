/* Latency of requests: the first one, those after a pause, and the slow tail. */
#include <math.h>
#include <string.h>

#include "diagnose.h"

static bool clocks_are_locked(const tv_scene *scene, const tv_sighting **at)
{
    *at = tv_scene_first(scene, "clock-lock");
    return *at != NULL;
}

/* ---- I04: the first one ---- */

static void judge_first(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "latency"); s;
         s = tv_scene_next(s, "latency")) {
        const double first = tv_noted_num(&s->facts, "first_s");
        const double median = tv_noted_num(&s->facts, "median_s");
        if (!(first >= 1) || !(first >= 10 * median))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "first_s"));
        tv_found_num(q, f, "first_s", TV_ARG_SECONDS, first);
        tv_found_num(q, f, "median_s", TV_ARG_SECONDS, median);
        tv_found_num(q, f, "times", TV_ARG_NUMBER, first / median);
        f->weight = 0.3;
    }
}

/* ---- I01, I02: after a pause ---- */

static bool slows_after_idle(const tv_sighting *s)
{
    const double late = tv_noted_num(&s->facts, "after_idle.median_s");
    const double close = tv_noted_num(&s->facts, "after_idle.close_median_s");
    return tv_noted_num(&s->facts, "after_idle.calls") >= 2 &&
           tv_noted_num(&s->facts, "after_idle.close_calls") >= 4 && late >= 2 * close;
}

static void judge_idle(tv_inquiry *q, const tv_rule *rule, bool locked)
{
    const tv_sighting *lock;
    if (clocks_are_locked(q->scene, &lock) != locked)
        return;
    for (const tv_sighting *s = tv_scene_first(q->scene, "latency"); s;
         s = tv_scene_next(s, "latency")) {
        if (!slows_after_idle(s))
            continue;
        const double late = tv_noted_num(&s->facts, "after_idle.median_s");
        const double close = tv_noted_num(&s->facts, "after_idle.close_median_s");
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "after_idle"));
        if (lock)
            tv_found_also(q, f, lock, NULL);
        tv_found_num(q, f, "after_idle_s", TV_ARG_SECONDS, late);
        tv_found_num(q, f, "median_s", TV_ARG_SECONDS, close);
        tv_found_num(q, f, "idle_s", TV_ARG_SECONDS, tv_noted_num(&s->facts, "after_idle.idle_s"));
        tv_found_num(q, f, "times", TV_ARG_NUMBER, late / close);
        f->weight = 0.6;
        if (!locked)
            tv_ask(q, "nvidia-smi --query-gpu=clocks.sm,clocks.max.sm,pstate --format=csv -l 1",
                   N_("While it is idle and during the first request: the clock must be low before "
                      "and rise with it."));
    }
}

static void judge_i01(tv_inquiry *q, const tv_rule *rule)
{
    judge_idle(q, rule, false);
}

static void judge_i02(tv_inquiry *q, const tv_rule *rule)
{
    judge_idle(q, rule, true);
}

/* ---- the slow tail ---- */

static const tv_sighting *with_tail(const tv_scene *scene)
{
    for (const tv_sighting *s = tv_scene_first(scene, "latency"); s;
         s = tv_scene_next(s, "latency")) {
        const double median = tv_noted_num(&s->facts, "median_s");
        const double p99 = tv_noted_num(&s->facts, "p99_s");
        if (median > 0 && p99 >= 3 * median)
            return s;
    }
    return NULL;
}

static void put_tail(tv_inquiry *q, tv_finding *f, const tv_sighting *tail)
{
    const double median = tv_noted_num(&tail->facts, "median_s");
    const double p99 = tv_noted_num(&tail->facts, "p99_s");
    tv_found_also(q, f, tail, tv_noted(&tail->facts, "p99_s"));
    tv_found_num(q, f, "p99_s", TV_ARG_SECONDS, p99);
    tv_found_num(q, f, "median_s", TV_ARG_SECONDS, median);
    tv_found_num(q, f, "times", TV_ARG_NUMBER, p99 / median);
    f->weight = 0.4;
}

static const tv_note *slow_governor(const tv_scene *scene, const tv_sighting **at)
{
    static const struct {
        const char *kind;
        const char *path;
    } places[] = {{"cpu-power", "governor"}, {"host", "cpu.governor"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (const tv_sighting *s = tv_scene_first(scene, places[i].kind); s;
             s = tv_scene_next(s, places[i].kind)) {
            const tv_note *note = tv_noted(&s->facts, places[i].path);
            *at = s;
            if (note && note->type == TV_NOTE_STR && !tv_str_is(note->s, "performance"))
                return note;
        }
    return NULL;
}

static void judge_governor(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *at;
    const tv_note *governor = slow_governor(q->scene, &at);
    const tv_sighting *tail = with_tail(q->scene);
    if (!governor || !tail)
        return;
    tv_finding *f = tv_found(q, rule, at, governor);
    tv_found_str(q, f, "governor", governor->s);
    put_tail(q, f, tail);
}

static bool serves(const tv_sighting *c)
{
    static const char *const launchers[] = {"vllm", "sglang", "triton", "trtexec", "python"};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (tv_noted_is(&c->facts, "launcher", launchers[i]))
            return true;
    return false;
}

static double nodes_of(const tv_scene *scene, const tv_sighting **at)
{
    static const struct {
        const char *kind;
        const char *path;
    } places[] = {
        {"collect_env", "numa_nodes"}, {"topo", "numa_nodes"}, {"host", "cpu.numa_nodes"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (const tv_sighting *s = tv_scene_first(scene, places[i].kind); s;
             s = tv_scene_next(s, places[i].kind)) {
            const double n = tv_noted_num(&s->facts, places[i].path);
            *at = s;
            if (!isnan(n))
                return n;
        }
    return (double)NAN;
}

static void judge_pinning(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *tail = with_tail(q->scene), *at = NULL;
    if (!tail || !(nodes_of(q->scene, &at) >= 2))
        return;
    for (const tv_sighting *c = tv_scene_first(q->scene, "command"); c;
         c = tv_scene_next(c, "command")) {
        if (!serves(c) || tv_noted(&c->facts, "pinned") || tv_noted(&c->facts, "cpuset"))
            continue;
        tv_finding *f = tv_found(q, rule, c, NULL);
        tv_found_also(q, f, at, NULL);
        tv_found_num(q, f, "nodes", TV_ARG_COUNT, nodes_of(q->scene, &at));
        put_tail(q, f, tail);
        tv_ask(q, "nvidia-smi topo -m",
               N_("Shows which CPUs and which NUMA node are near the GPU."));
        return;
    }
}

static const tv_rule rules[] = {
    {
        .id = "I01",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The first request after a pause is slow: clocks rise only then"),
        .cause = N_("Requests after {idle_s} or more of nothing take {after_idle_s}, {times} times "
                    "the {median_s} of those that follow closely: the GPU has lowered its clocks "
                    "and raises them only when work comes."),
        .decided = N_("In a log with time stamps the median of two or more requests after at least "
                      "5 s of nothing is twice that of requests within 2 s, and nothing says that "
                      "the clocks are locked."),
        .unless = N_("Caches and connections that time out do the same."),
        .source = "https://github.com/NVIDIA/TensorRT/issues/2042",
        .steps = {{.command =
                       "sudo nvidia-smi -pm 1 && sudo nvidia-smi --lock-gpu-clocks="
                       "$(nvidia-smi --query-gpu=clocks.max.sm --format=csv,noheader,nounits "
                       "-i 0)",
                   .undo = "sudo nvidia-smi --reset-gpu-clocks",
                   .why = N_("Keeps the clock up; costs power while idle.")},
                  {.why = N_("Or send a small request every second or two: it keeps the clock up "
                             "without rights.")}},
        .judge = judge_i01,
    },
    {
        .id = "I02",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The first request after a pause is slow although clocks are locked"),
        .cause = N_("Requests after {idle_s} or more of nothing take {after_idle_s}, {times} times "
                    "the {median_s} of those that follow closely, and the GPU's clocks are locked: "
                    "the CPU sleeps deeply, memory clocks and power states come back slowly, or "
                    "pages were taken away."),
        .decided = N_("As I01, with clocks that are locked."),
        .unless = N_("Caches and connections that time out do the same."),
        .source = "https://github.com/microsoft/onnxruntime/issues/13366",
        .steps = {{.command = "sudo cpupower idle-set -D 10",
                   .undo = "sudo cpupower idle-set -E",
                   .why = N_("Turns off sleep states that take longer than 10 us to leave; costs "
                             "power.")},
                  {.command = "sudo cpupower frequency-set -g performance",
                   .undo = "sudo cpupower frequency-set -g powersave",
                   .why = N_("Keeps the CPU's clock up.")},
                  {.why = N_("Send a small request every second or two.")}},
        .judge = judge_i02,
    },
    {
        .id = "I03",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("CPU clocks follow the load, and the tail is slow"),
        .cause =
            N_("The CPU's governor is {governor}. The slowest hundredth of requests takes "
               "{p99_s}, {times} times the median of {median_s}: launching kernels waits for a "
               "CPU that has slowed down."),
        .decided = N_("The governor is not performance, and the 99th percentile is three times the "
                      "median or more."),
        .unless = N_("Requests of very different length have such a tail by themselves; throttling "
                     "(I05) and other jobs on the card (I06) come first."),
        .source = "https://docs.kernel.org/admin-guide/pm/cpufreq.html",
        .steps = {{.command = "sudo cpupower frequency-set -g performance",
                   .undo = "sudo cpupower frequency-set -g {governor}",
                   .why = N_("Until the next start of the machine; measure the tail again.")}},
        .judge = judge_governor,
    },
    {
        .id = "I04",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The first request pays for compiling and warming up"),
        .cause = N_("The first request takes {first_s}, {times} times the median of {median_s}: "
                    "kernels are loaded or compiled, graphs captured and algorithms chosen when "
                    "they are first needed."),
        .decided = N_("The first of eight or more latencies is a second or more and ten times the "
                      "median."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/",
        .steps = {{.why = N_("Before the service says that it is ready, send one request of every "
                             "shape that will come.")},
                  {.command =
                       "export CUDA_CACHE_PATH=/var/cache/cuda CUDA_CACHE_MAXSIZE=4294967296",
                   .undo = "unset CUDA_CACHE_PATH CUDA_CACHE_MAXSIZE",
                   .why = N_("Keeps kernels that the driver compiled; TORCHINDUCTOR_CACHE_DIR and "
                             "TensorRT's timing cache do so for theirs. In containers the folder "
                             "must be a volume.")}},
        .judge = judge_first,
    },
    {
        .id = "I10",
        .severity = TV_WARNING,
        .sure = TV_LOW,
        .title = N_("The server may run far from its GPU"),
        .cause =
            N_("The host has {nodes} NUMA nodes, and the command binds the server to none: the "
               "system moves it between them. The slowest hundredth of requests takes {p99_s}, "
               "{times} times the median of {median_s}."),
        .decided = N_("Two or more NUMA nodes, a server's command without numactl, taskset or "
                      "cpuset, and a 99th percentile of three times the median or more."),
        .unless = N_("A service manager may bind it elsewhere."),
        .source = "https://man7.org/linux/man-pages/man8/numactl.8.html",
        .steps = {{.command = "numactl --cpunodebind=0 --membind=0 COMMAND",
                   .why =
                       N_("With the node that nvidia-smi topo -m shows for the GPU; it binds this "
                          "process only.")}},
        .judge = judge_pinning,
    },
};

extern const tv_rule_group tv_rule_group_latency_rules;
const tv_rule_group tv_rule_group_latency_rules = {"latency", N_("Latency of requests"), rules,
                                                   sizeof rules / sizeof *rules};
