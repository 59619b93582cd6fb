/* Commands that start jobs and containers: what they forgot to ask for. Judged from the command
 * alone; with a matching error elsewhere it becomes that error's evidence. */
#include <math.h>
#include <string.h>

#include "diagnose.h"

static const tv_note *facts_of(const tv_sighting *s)
{
    return &s->facts;
}

static bool holds_any(tv_str s, const char *const *words)
{
    for (; *words; words++)
        if (tv_str_has(s, tv_str_of(*words)))
            return true;
    return false;
}

static bool is_tool(const tv_sighting *c, const char *tool)
{
    return tv_noted_is(facts_of(c), "tool", tool);
}

/* ---- what runs ---- */

static const char *const frameworks[] = {"pytorch",   "torch",        "paddle", "tensorflow",
                                         "deepspeed", "vllm",         "sglang", "megatron",
                                         "nemo",      "lmdeploy",     "triton", "huggingface",
                                         "axolotl",   "llamafactory", NULL};
static const char *const gpu_words[] = {
    "cuda",  "gpu", "nvcr.io/nvidia", "vllm/vllm-openai", "lmsysorg/sglang", "-cu11", "-cu12",
    "-cu13", NULL};
static const char *const cpu_words[] = {"cpu", "rocm", "xpu",      "amd",     "ascend",
                                        "npu", "hpu",  "jupyter/", "busybox", NULL};

static bool looks_only(const tv_note *facts)
{
    static const char *const words[] = {"nvidia-smi", "nvcc ", "dcgm", "nvtop", "hostname", NULL};
    return holds_any(tv_noted_str(facts, "program"), words) ||
           holds_any(tv_noted_str(facts, "image"), words);
}

/* Training or serving with a framework that hands batches or tensors over shared memory. */
static bool runs_framework(const tv_note *facts)
{
    return !looks_only(facts) &&
           (holds_any(tv_noted_str(facts, "image"), frameworks) || tv_noted(facts, "launcher"));
}

static bool asks_gpu(const tv_note *facts)
{
    const tv_str asked = tv_noted_str(facts, "gpus_asked");
    return (asked.n && !tv_str_is(asked, "0")) || tv_noted_is(facts, "runtime", "nvidia") ||
           tv_noted_bool(facts, "privileged", false) ||
           tv_noted(facts, "env.NVIDIA_VISIBLE_DEVICES");
}

static bool wants_gpu(const tv_note *facts)
{
    const tv_str image = tv_noted_str(facts, "image");
    if (looks_only(facts) || holds_any(image, cpu_words))
        return false;
    return holds_any(image, gpu_words) || tv_str_starts(image, TV_S("pytorch/pytorch"));
}

/* "docker run -it" -> "docker run --gpus all -it": the first line as it must be written. */
static void put_line(tv_inquiry *q, tv_finding *f, const tv_sighting *s, const char *flag)
{
    static const char *const marks[] = {" run ", " create "};
    const char *const begin = s->text.p;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const size_t n = strlen(marks[i]);
        const char *hit = s->text.n ? memmem(begin, s->text.n, marks[i], n) : NULL;
        if (!hit)
            continue;
        const size_t head = (size_t)(hit - begin) + n;
        tv_buf b = tv_buf_in(q->a);
        tv_put(&b, tv_str_take(s->text, head));
        tv_puts(&b, flag);
        tv_putc(&b, ' ');
        tv_put(&b, tv_str_drop(s->text, head));
        tv_found_str(q, f, "replacement", tv_buf_str(&b));
        return;
    }
}

/* ---- /dev/shm ---- */

static bool shares_memory(const tv_note *facts)
{
    const tv_str ipc = tv_noted_str(facts, "ipc");
    const double shm = tv_noted_num(facts, "shm_bytes");
    return tv_str_is(ipc, "host") || tv_str_starts(ipc, TV_S("container:")) ||
           tv_str_is(ipc, "shareable") || tv_noted(facts, "shm_mount") || shm > 64.0 * 0x1p20;
}

typedef struct loading {
    double workers, batch, prefetch;
} loading;

static double first_known(double x, double y)
{
    return isnan(x) ? y : x;
}

/* From the command's own options, else from the script that lies beside it. */
static loading loading_of(const tv_scene *scene, const tv_note *facts)
{
    loading l = {tv_noted_num(facts, "workers"), tv_noted_num(facts, "batch"),
                 tv_noted_num(facts, "prefetch")};
    const tv_sighting *script = tv_scene_first(scene, "script");
    const tv_note *loader = script ? tv_noted(facts_of(script), "loaders.0") : NULL;
    if (loader) {
        l.workers = first_known(l.workers, tv_noted_num(loader, "workers"));
        l.batch = first_known(l.batch, tv_noted_num(loader, "batch"));
        l.prefetch = first_known(l.prefetch, tv_noted_num(loader, "prefetch"));
    }
    l.prefetch = first_known(l.prefetch, 2); /* the default of torch.utils.data.DataLoader */
    return l;
}

/* A picture of 3 x 224 x 224 in float32: what is assumed where nothing says what a sample is. */
static const double sample_bytes = 3.0 * 224 * 224 * 4;

/* Workers x prefetched batches x batch x 2, the rule of R072, rounded up; 8 GiB at least. */
static void put_shm(tv_inquiry *q, tv_finding *f, const tv_note *facts, tv_buf *size)
{
    const loading l = loading_of(q->scene, facts);
    const double need = l.workers * l.prefetch * l.batch * sample_bytes * 2;
    double gib = 8;
    if (!isnan(need) && need > 0 && need < 0x1p44) {
        tv_found_num(q, f, "workers", TV_ARG_COUNT, l.workers);
        tv_found_num(q, f, "batch", TV_ARG_COUNT, l.batch);
        tv_found_num(q, f, "prefetch", TV_ARG_COUNT, l.prefetch);
        tv_found_num(q, f, "sample_bytes", TV_ARG_MEMORY, sample_bytes);
        tv_found_num(q, f, "need_bytes", TV_ARG_MEMORY, need);
        gib = fmax(gib, ceil(need / 0x1p30));
    }
    tv_put_u64(size, (uint64_t)gib);
    tv_found_num(q, f, "shm_bytes", TV_ARG_MEMORY, gib * 0x1p30);
}

static bool has_bus_error(const tv_scene *scene)
{
    for (const tv_sighting *s = tv_scene_first(scene, "worker-lost"); s;
         s = tv_scene_next(s, "worker-lost"))
        if (tv_noted_is(facts_of(s), "signal", "Bus error"))
            return true;
    return tv_scene_first(scene, "shm") != NULL;
}

/* The shared memory that ran out is this container's. */
static void strengthen(tv_inquiry *q, const char *id, const tv_sighting *s)
{
    for (size_t i = 0; i < q->out->findings.n; i++)
        if (strcmp(q->out->findings.v[i]->rule->id, id) == 0)
            tv_found_also(q, q->out->findings.v[i], s, NULL);
}

static void found_shm(tv_inquiry *q, const tv_rule *rule, const tv_sighting *c, const char *prefix,
                      const char *suffix)
{
    tv_finding *f = tv_found(q, rule, c, NULL);
    tv_buf flag = tv_buf_in(q->a), size = tv_buf_in(q->a);
    put_shm(q, f, facts_of(c), &size);
    tv_puts(&flag, prefix);
    tv_put(&flag, tv_buf_str(&size));
    tv_puts(&flag, suffix);
    tv_putc(&flag, 0);
    tv_found_str(q, f, "flag", tv_str_take(tv_buf_str(&flag), flag.n - 1));
    if (is_tool(c, "docker"))
        put_line(q, f, c, flag.p);
    f->weight = 0.5;
    if (isnan(tv_noted_num(facts_of(c), "workers")) && !tv_scene_first(q->scene, "script"))
        f->sure = TV_MEDIUM; /* whether workers run is not known */
    if (has_bus_error(q->scene)) {
        f->sure = TV_HIGH;
        strengthen(q, "O28", c);
        strengthen(q, "C05", c);
    }
}

static void judge_docker_shm(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *c = tv_scene_first(q->scene, "command"); c;
         c = tv_scene_next(c, "command"))
        if (is_tool(c, "docker") && runs_framework(facts_of(c)) && !shares_memory(facts_of(c)))
            found_shm(q, rule, c, "--shm-size=", "g");
}

static void judge_pod_shm(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *c = tv_scene_first(q->scene, "command"); c;
         c = tv_scene_next(c, "command")) {
        const bool compose = is_tool(c, "compose");
        if ((!compose && !is_tool(c, "kubernetes")) || !runs_framework(facts_of(c)) ||
            shares_memory(facts_of(c)) || !asks_gpu(facts_of(c)))
            continue;
        if (compose)
            found_shm(q, rule, c, "shm_size: ", "gb");
        else
            found_shm(q, rule, c,
                      "emptyDir: {medium: Memory, sizeLimit: ", "Gi} mounted at /dev/shm");
    }
}

/* ---- GPUs ---- */

static void judge_docker_gpus(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *c = tv_scene_first(q->scene, "command"); c;
         c = tv_scene_next(c, "command")) {
        const bool compose = is_tool(c, "compose");
        if ((!compose && !is_tool(c, "docker")) || !wants_gpu(facts_of(c)) || asks_gpu(facts_of(c)))
            continue;
        tv_finding *f = tv_found(q, rule, c, NULL);
        tv_found_str(q, f, "image", tv_noted_str(facts_of(c), "image"));
        if (compose)
            tv_found_str(q, f, "replacement",
                         TV_S("deploy: {resources: {reservations: {devices: [{driver: nvidia, "
                              "count: all, capabilities: [gpu]}]}}}"));
        else
            put_line(q, f, c, "--gpus all");
        f->weight = 0.7;
    }
}

static void judge_pod_gpus(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *c = tv_scene_first(q->scene, "command"); c;
         c = tv_scene_next(c, "command")) {
        if (!is_tool(c, "kubernetes") || asks_gpu(facts_of(c)) || !wants_gpu(facts_of(c)))
            continue;
        tv_finding *f = tv_found(q, rule, c, NULL);
        tv_found_str(q, f, "image", tv_noted_str(facts_of(c), "image"));
        tv_found_str(q, f, "replacement", TV_S("resources: {limits: {nvidia.com/gpu: 1}}"));
        f->weight = 0.7;
    }
}

/* ---- locked memory ---- */

static bool is_unlimited(tv_str value)
{
    return tv_str_is(value, "-1") || tv_str_is(value, "unlimited") || tv_str_is(value, "-1:-1");
}

static void judge_memlock(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *c = tv_scene_first(q->scene, "command"); c;
         c = tv_scene_next(c, "command")) {
        const tv_note *facts = facts_of(c);
        const bool rdma = tv_noted(facts, "infiniband") || tv_noted(facts, "env.NCCL_IB_HCA") ||
                          tv_noted(facts, "env.NCCL_IB_GID_INDEX");
        if ((!is_tool(c, "docker") && !is_tool(c, "compose")) || !rdma ||
            tv_noted_bool(facts, "privileged", false) ||
            is_unlimited(tv_noted_str(facts, "memlock")))
            continue;
        tv_finding *f = tv_found(q, rule, c, NULL);
        if (is_tool(c, "docker"))
            put_line(q, f, c, "--ulimit memlock=-1 --cap-add=IPC_LOCK");
        else
            tv_found_str(q, f, "replacement", TV_S("ulimits: {memlock: -1}"));
        strengthen(q, "C06", c);
        f->weight = 0.5;
    }
}

/* ---- as many processes as cards ---- */

/* "0,1,2" -> 3; "all", "$X": unknown. */
static double count_of_list(tv_str s)
{
    double n = 0;
    tv_str rest = s;
    if (tv_str_starts(rest, TV_S("device=")))
        rest = tv_str_drop(rest, 7);
    for (; rest.n; n++) {
        const tv_cut cut = tv_str_cut(rest, ',');
        const tv_str item = tv_str_trim(cut.head);
        if (!tv_str_u64(item).ok && !tv_str_starts(item, TV_S("GPU-")))
            return (double)NAN;
        rest = cut.tail;
    }
    return n > 0 ? n : (double)NAN;
}

/* How many cards the command itself can use; NaN: it does not say. */
static double cards_of_command(const tv_note *facts)
{
    const double visible = count_of_list(tv_noted_str(facts, "env.CUDA_VISIBLE_DEVICES"));
    const double asked = tv_noted_num(facts, "gpus_per_node");
    const tv_str gpus = tv_noted_str(facts, "gpus_asked");
    if (!isnan(visible))
        return visible;
    if (!isnan(asked))
        return asked;
    const tv_u64_read number = tv_str_u64(gpus);
    if (number.ok && number.v > 0)
        return (double)number.v;
    return tv_str_starts(gpus, TV_S("device=")) ? count_of_list(gpus) : (double)NAN;
}

/* Cards of the host, where one document lists them. */
static double cards_seen(const tv_scene *scene, const tv_sighting **at)
{
    static const char *const kinds[] = {"nvidia-smi", "smi-q", "collect_env"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const tv_sighting *s = tv_scene_first(scene, kinds[i]);
        const tv_note *gpus = s ? tv_noted(facts_of(s), "gpus") : NULL;
        if (gpus && gpus->type == TV_NOTE_LIST && gpus->n && !tv_scene_next(s, kinds[i])) {
            *at = s;
            return (double)gpus->n;
        }
    }
    return (double)NAN;
}

/* A launcher and the lines of Slurm's above it are one command. */
static double cards_of_job(const tv_scene *scene, const tv_sighting *c, const tv_sighting **at)
{
    const double own = cards_of_command(facts_of(c));
    if (!isnan(own))
        return own;
    for (const tv_sighting *s = tv_scene_first(scene, "command"); s;
         s = tv_scene_next(s, "command"))
        if (is_tool(s, "sbatch") && tv_str_eq(s->file, c->file) &&
            !isnan(tv_noted_num(facts_of(s), "gpus_per_node"))) {
            *at = s;
            return tv_noted_num(facts_of(s), "gpus_per_node");
        }
    return cards_seen(scene, at);
}

static double processes_of(const tv_note *facts)
{
    const tv_double_read n = tv_str_double(tv_noted_str(facts, "nproc_per_node"));
    return n.ok ? n.v : (double)NAN;
}

static void judge_processes(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *c = tv_scene_first(q->scene, "command"); c;
         c = tv_scene_next(c, "command")) {
        const tv_sighting *at = NULL;
        const double processes = processes_of(facts_of(c));
        if (isnan(processes))
            continue;
        const double cards = cards_of_job(q->scene, c, &at);
        if (isnan(cards) || processes <= cards)
            continue;
        tv_finding *f = tv_found(q, rule, c, NULL);
        if (at)
            tv_found_also(q, f, at, NULL);
        tv_found_num(q, f, "processes", TV_ARG_COUNT, processes);
        tv_found_num(q, f, "cards", TV_ARG_COUNT, cards);
        f->weight = 0.9;
    }
}

/* ---- meeting points ---- */

static bool is_local(tv_str host)
{
    host = tv_str_cut(host, ':').head;
    return tv_str_is(host, "localhost") || tv_str_is(host, "127.0.0.1") ||
           tv_str_is(host, "0.0.0.0");
}

static double nodes_of(const tv_note *facts)
{
    const tv_str text = tv_noted_str(facts, "nnodes");
    const tv_cut cut = tv_str_cut(text, ':'); /* "1:4": elastic */
    const tv_double_read n = tv_str_double(cut.found ? cut.tail : text);
    return n.ok ? n.v : (double)NAN;
}

static const char *wrong_meeting(const tv_note *facts)
{
    const tv_str end = tv_noted_str(facts, "rdzv_endpoint");
    const tv_str given = tv_noted_str(facts, "master_addr");
    const tv_str addr = given.n ? given : tv_noted_str(facts, "env.MASTER_ADDR");
    const bool torch = tv_noted_is(facts, "launcher", "torchrun") ||
                       tv_noted_is(facts, "launcher", "torch.distributed.launch") ||
                       tv_noted_is(facts, "launcher", "accelerate");
    const bool deepspeed = tv_noted(facts, "hostfile") != NULL;
    if (!torch || deepspeed)
        return NULL;
    if (tv_noted_bool(facts, "standalone", false))
        return N_("--standalone means one host");
    if (is_local(end) || is_local(addr))
        return N_("localhost is another machine on each host");
    if (!end.n && !addr.n)
        return N_("no host to meet at is named, so each one meets itself at localhost:29500");
    if (!end.n && !tv_noted(facts, "node_rank"))
        return N_("no --node_rank is given, so every host takes itself for the first");
    return NULL;
}

static void judge_meeting(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *c = tv_scene_first(q->scene, "command"); c;
         c = tv_scene_next(c, "command")) {
        const double nodes = nodes_of(facts_of(c));
        const char *why = nodes > 1 ? wrong_meeting(facts_of(c)) : NULL;
        if (!why)
            continue;
        tv_finding *f = tv_found(q, rule, c, NULL);
        tv_found_num(q, f, "nodes", TV_ARG_COUNT, nodes);
        tv_found_word(q, f, "reason", why);
        f->weight = 0.7;
    }
}

/* ---- CPUs ---- */

static double cpus_of(const tv_scene *scene, const tv_sighting *c, const tv_sighting **at)
{
    double cpus = tv_noted_num(facts_of(c), "cpus");
    if (!isnan(cpus))
        return cpus;
    for (const tv_sighting *s = tv_scene_first(scene, "command"); s;
         s = tv_scene_next(s, "command")) {
        const double each = tv_noted_num(facts_of(s), "cpus_per_task");
        const double tasks = first_known(tv_noted_num(facts_of(s), "ntasks_per_node"), 1);
        if (!is_tool(s, "sbatch") || !tv_str_eq(s->file, c->file) || isnan(each))
            continue;
        *at = s;
        return each * tasks;
    }
    for (const tv_sighting *s = tv_scene_first(scene, "collect_env"); s;
         s = tv_scene_next(s, "collect_env")) {
        cpus = tv_noted_num(facts_of(s), "cpus");
        if (isnan(cpus))
            continue;
        *at = s;
        return cpus;
    }
    return (double)NAN;
}

static void judge_cpus(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *c = tv_scene_first(q->scene, "command"); c;
         c = tv_scene_next(c, "command")) {
        const tv_sighting *at = NULL;
        const double workers = tv_noted_num(facts_of(c), "workers");
        const double ranks = first_known(processes_of(facts_of(c)), 1);
        const double cpus = cpus_of(q->scene, c, &at);
        if (isnan(workers) || isnan(cpus) || workers * ranks <= cpus || cpus <= 0)
            continue;
        tv_finding *f = tv_found(q, rule, c, NULL);
        if (at)
            tv_found_also(q, f, at, NULL);
        tv_found_num(q, f, "workers", TV_ARG_COUNT, workers);
        tv_found_num(q, f, "ranks", TV_ARG_COUNT, ranks);
        tv_found_num(q, f, "cpus", TV_ARG_NUMBER, cpus);
        tv_found_num(q, f, "workers_per_rank", TV_ARG_COUNT, fmax(1, floor(cpus / ranks)));
        f->weight = 0.4;
    }
}

static double threads_of(const tv_scene *scene, const tv_sighting *c, const tv_sighting **at,
                         const tv_note **note)
{
    *note = tv_noted(facts_of(c), "env.OMP_NUM_THREADS");
    *at = c;
    for (const tv_sighting *s = tv_scene_first(scene, "environ"); s && !*note;
         s = tv_scene_next(s, "environ")) {
        *note = tv_noted(facts_of(s), "vars.OMP_NUM_THREADS");
        *at = s;
    }
    const tv_double_read n = *note ? tv_str_double((*note)->s) : (tv_double_read){0};
    return n.ok ? n.v : (double)NAN;
}

static void judge_threads(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *c = tv_scene_first(q->scene, "command"); c;
         c = tv_scene_next(c, "command")) {
        const tv_sighting *at, *host = NULL;
        const tv_note *note;
        const double threads = threads_of(q->scene, c, &at, &note);
        const double ranks = processes_of(facts_of(c)), cpus = cpus_of(q->scene, c, &host);
        if (isnan(threads) || isnan(ranks) || isnan(cpus) || cpus <= 0 ||
            threads * ranks <= 1.5 * cpus)
            continue;
        tv_finding *f = tv_found(q, rule, at, note);
        tv_found_also(q, f, c, NULL);
        if (host)
            tv_found_also(q, f, host, NULL);
        tv_found_num(q, f, "threads", TV_ARG_COUNT, threads);
        tv_found_num(q, f, "ranks", TV_ARG_COUNT, ranks);
        tv_found_num(q, f, "cpus", TV_ARG_NUMBER, cpus);
        tv_found_num(q, f, "threads_each", TV_ARG_COUNT, fmax(1, floor(cpus / ranks)));
        f->weight = 0.4;
    }
}

#define DOCKER_RUN "https://docs.docker.com/reference/cli/docker/container/run/"
#define TORCHRUN "https://pytorch.org/docs/stable/elastic/run.html"

static const tv_rule rules[] = {
    {
        .id = "L14",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The container gets 64 MB of shared memory"),
        .cause = N_("The command gives neither --shm-size nor --ipc=host: /dev/shm has 64 MB. "
                    "Loader workers hand their batches over there, and NCCL uses it between ranks; "
                    "workers die with a bus error or hang."),
        .decided =
            N_("docker, podman or nerdctl run starts a framework without --shm-size above "
               "64 MB, --ipc=host or a mount at /dev/shm. Size: workers x prefetched batches "
               "x batch x bytes of a sample x 2, at least 8 GiB; a sample that is not known "
               "counts as 3 x 224 x 224 in float32."),
        .unless = N_("With num_workers=0 on one card nothing is shared."),
        .source = DOCKER_RUN,
        .steps = {{.why = N_("Write: {replacement}")},
                  {.why = N_("{workers} workers with {prefetch} batches of {batch} samples of "
                             "{sample_bytes} (assumed) need {need_bytes}.")},
                  {.command = "df -h /dev/shm", .why = N_("Inside the container: must show it.")}},
        .judge = judge_docker_shm,
    },
    {
        .id = "L15",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The container does not ask for GPUs"),
        .cause = N_("The image {image} is made for GPUs, but the command neither has --gpus nor "
                    "another way to get one: the program inside sees none."),
        .decided = N_("docker run or a compose service with an image for CUDA, without --gpus, a "
                      "device, the runtime nvidia or NVIDIA_VISIBLE_DEVICES; commands that only "
                      "look (nvidia-smi) are left out."),
        .unless = N_("Hosts whose default runtime is nvidia give all cards anyway."),
        .source = DOCKER_RUN,
        .steps = {{.why = N_("Write: {replacement}")}},
        .outranks = "E19 S11",
        .judge = judge_docker_gpus,
    },
    {
        .id = "L16",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The pod does not ask for GPUs"),
        .cause = N_("The image {image} is made for GPUs, but no container of this manifest has a "
                    "limit for nvidia.com/gpu: the pod may land on a node without one and sees "
                    "none."),
        .decided = N_("A Kubernetes manifest with an image for CUDA and no GPU resource."),
        .unless = N_("Controllers and head nodes without work on GPUs need none; time-slicing "
                     "plug-ins may use other resource names."),
        .source = "https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/",
        .steps = {{.why = N_("Add to the container: {replacement}")}},
        .judge = judge_pod_gpus,
    },
    {
        .id = "L17",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The pod or service has 64 MB of shared memory"),
        .cause = N_("Nothing larger is mounted at /dev/shm: loader workers and NCCL have 64 MB "
                    "there, and die with a bus error or hang."),
        .decided = N_("A Kubernetes manifest or compose service that asks for GPUs and runs a "
                      "framework, without an emptyDir of medium Memory at /dev/shm, shm_size or "
                      "the host's IPC."),
        .unless = N_("With num_workers=0 on one card nothing is shared."),
        .source = "https://kubernetes.io/docs/concepts/storage/volumes/",
        .steps = {{.why = N_("Add: {flag}")},
                  {.why = N_("{workers} workers with {prefetch} batches of {batch} samples of "
                             "{sample_bytes} (assumed) need {need_bytes}.")},
                  {.command = "df -h /dev/shm", .why = N_("Inside the container: must show it.")}},
        .judge = judge_pod_shm,
    },
    {
        .id = "L18",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("RDMA in a container without locked memory"),
        .cause = N_("The container uses InfiniBand or RoCE but keeps the small default of locked "
                    "memory: registering buffers fails with \"Cannot allocate memory\"."),
        .decided = N_("/dev/infiniband is mapped or NCCL's adapters are named, and memlock is not "
                      "unlimited."),
        .unless = N_("A daemon whose default ulimits allow it needs nothing."),
        .source = "https://github.com/NVIDIA/nccl-tests/issues/206",
        .steps = {{.why = N_("Write: {replacement}")},
                  {.command = "ulimit -l", .why = N_("Inside the container: must say unlimited.")}},
        .judge = judge_memlock,
    },
    {
        .id = "L19",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("More processes than cards"),
        .cause =
            N_("The launcher starts {processes} processes, and there are {cards} cards: the "
               "last ones fail with \"invalid device ordinal\", or NCCL finds two ranks on one "
               "card."),
        .decided =
            N_("--nproc_per_node (or --num_gpus) is larger than the number of cards that the "
               "command, its Slurm lines, or the host's nvidia-smi shows."),
        .unless = N_("Jobs on CPUs with gloo may start as many as they like."),
        .source = TORCHRUN,
        .steps = {{.why = N_("Start {cards} processes, or --nproc_per_node=gpu for as many as are "
                             "visible.")},
                  {.command = "nvidia-smi -L", .why = N_("Shows the cards.")}},
        .outranks = "E04 C25",
        .judge = judge_processes,
    },
    {
        .id = "L20",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The hosts have no place to meet"),
        .cause =
            N_("The job spans {nodes} hosts, but {reason}. Each host waits for the others until "
               "the time-out."),
        .decided =
            N_("A launch over several hosts with --standalone, with localhost as the address, "
               "without an address, or without a node rank."),
        .unless = N_("A scheduler may set MASTER_ADDR and the ranks itself."),
        .source = TORCHRUN,
        .steps = {{.command = "torchrun --nnodes=2 --nproc_per_node=gpu --rdzv_backend=c10d "
                              "--rdzv_endpoint=HOST0:29500 --rdzv_id=job1 train.py",
                   .why =
                       N_("The same command on every host; HOST0 is the name of one of them, and "
                          "its port must be open.")}},
        .outranks = "E03",
        .judge = judge_meeting,
    },
    {
        .id = "L30",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("More loader workers than CPUs that are asked for"),
        .cause = N_("{ranks} ranks with {workers} workers each share {cpus} CPUs: the workers take "
                    "them from each other and from the ranks."),
        .decided = N_("Workers of the command times its processes exceed --cpus, the CPU limit, "
                      "Slurm's --cpus-per-task or the host's CPUs."),
        .unless = N_("Workers that only wait for a slow store may outnumber the CPUs."),
        .source = "https://pytorch.org/docs/stable/data.html",
        .steps = {{.why =
                       N_("Ask for more CPUs, or take {workers_per_rank} workers for each rank at "
                          "most.")},
                  {.command = "nproc", .why = N_("In the container or job: what is allowed.")}},
        .judge = judge_cpus,
    },
    {
        .id = "D15",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("More threads than CPUs"),
        .cause =
            N_("OMP_NUM_THREADS={threads} in each of {ranks} ranks makes more threads than the "
               "{cpus} CPUs can run: they take turns, and every CPU operation slows down."),
        .decided = N_("OMP_NUM_THREADS times the processes of the launcher exceeds one and a half "
                      "times the CPUs of the job or host."),
        .unless = N_("torchrun sets OMP_NUM_THREADS=1 where it is not set."),
        .source = TORCHRUN,
        .steps = {{.command = "export OMP_NUM_THREADS={threads_each}",
                   .undo = "export OMP_NUM_THREADS={threads}",
                   .why = N_("CPUs divided by ranks, before the launcher starts.")}},
        .judge = judge_threads,
    },
};

extern const tv_rule_group tv_rule_group_command_rules;
const tv_rule_group tv_rule_group_command_rules = {"commands", N_("Commands and manifests"), rules,
                                                   sizeof rules / sizeof *rules};
