/* Environment variables that slow a job down or are not what they were meant to be: left over from
 * debugging, misspelt, or invented. */
#include <string.h>

#include "diagnose.h"

/* Calls one(q, rule, s, note) for every variable that a shell, a command or a script sets. */
typedef void variable_judge(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                            const tv_note *variable);

static void each_variable(tv_inquiry *q, const tv_rule *rule, variable_judge *one)
{
    for (const tv_sighting *s = q->scene->first; s; s = s->next) {
        const bool shell = strcmp(s->kind, "environ") == 0;
        if (!shell && strcmp(s->kind, "command") != 0 && strcmp(s->kind, "script") != 0)
            continue;
        const tv_note *vars = tv_noted(&s->facts, shell ? "vars" : "env");
        for (const tv_note *v = vars ? vars->first : NULL; v; v = v->next)
            if (v->key && v->type == TV_NOTE_STR)
                one(q, rule, s, v);
    }
}

/* ---- S22: left over from debugging ---- */

typedef struct slow_row {
    const char *name;
    const char *values; /* words between blanks; NULL: any that is not empty or 0 */
    const char *effect;
    double weight;
} slow_row;

static const slow_row slow[] = {
    {"CUDA_LAUNCH_BLOCKING", "1",
     N_("every kernel is waited for: the CPU and the GPU never overlap"), 0.9},
    {"HIP_LAUNCH_BLOCKING", "1",
     N_("every kernel is waited for: the CPU and the GPU never overlap"), 0.9},
    {"AMD_SERIALIZE_KERNEL", "1 2 3",
     N_("every kernel is waited for: the CPU and the GPU never overlap"), 0.9},
    {"FLAGS_benchmark", "1 true True", N_("Paddle waits for the device after every operator"), 0.9},
    {"FLAGS_check_nan_inf", "1 2 true True", N_("Paddle checks every output for NaN"), 0.7},
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", NULL,
     N_("every tensor is a cudaMalloc of its own: the cache is off"), 0.9},
    {"PYTORCH_NO_HIP_MEMORY_CACHING", NULL,
     N_("every tensor is a cudaMalloc of its own: the cache is off"), 0.9},
    {"NCCL_P2P_DISABLE", "1",
     N_("GPUs exchange over host memory instead of NVLink or PCIe peer to peer"), 0.6},
    {"NCCL_P2P_LEVEL", "LOC 0",
     N_("GPUs exchange over host memory instead of NVLink or PCIe peer to peer"), 0.6},
    {"NCCL_SHM_DISABLE", "1", N_("ranks of one host talk over the network"), 0.7},
    {"NCCL_IB_DISABLE", "1", N_("hosts talk over TCP instead of InfiniBand or RoCE"), 0.6},
    {"NCCL_NET_GDR_LEVEL", "LOC 0", N_("data goes through host memory on the way to the network"),
     0.4},
    {"NCCL_DEBUG", "TRACE", N_("NCCL logs every call"), 0.5},
    {"NCCL_MAX_NCHANNELS", "1 2", N_("collectives use a fraction of the links"), 0.5},
    {"NCCL_MAX_CTAS", "1 2", N_("collectives use a fraction of the links"), 0.5},
    {"NCCL_PROTO", "LL", N_("the protocol for small messages is forced on large ones"), 0.5},
    {"NCCL_BLOCKING_WAIT", "1", N_("every collective blocks the CPU"), 0.4},
    {"TORCH_NCCL_BLOCKING_WAIT", "1", N_("every collective blocks the CPU"), 0.4},
    {"TORCH_DISTRIBUTED_DEBUG", "DETAIL", N_("every collective is checked across ranks first"),
     0.6},
    {"TORCH_CPP_LOG_LEVEL", "INFO", N_("the libraries log every step"), 0.1},
    {"CUDA_DEVICE_WAITS_ON_EXCEPTION", "1",
     N_("a fault stops the process and waits for a debugger"), 0.3},
    {"NVIDIA_TF32_OVERRIDE", "0", N_("TF32 is off: FP32 matrix products run without tensor cores"),
     0.6},
    {"PYTORCH_JIT", "0", N_("compiled functions run in Python"), 0.3},
    {"TORCH_COMPILE_DISABLE", "1", N_("torch.compile does nothing"), 0.3},
    {"TORCHDYNAMO_DISABLE", "1", N_("torch.compile does nothing"), 0.3},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", "platform",
     N_("JAX allocates and frees each buffer on the device"), 0.7},
    {"VLLM_TRACE_FUNCTION", "1", N_("vLLM logs every function call"), 0.8},
    {"TF_GPU_ALLOCATOR", "cuda_malloc", N_("every tensor is a cudaMalloc of its own"), 0.7},
    {"TF_ENABLE_GPU_GARBAGE_COLLECTION", "false", N_("memory is returned late"), 0.1},
};

static bool is_one_of(tv_str value, const char *words)
{
    tv_str rest = tv_str_of(words);
    while (rest.n) {
        const tv_cut cut = tv_str_cut(rest, ' ');
        if (tv_str_eq_nocase(value, cut.head))
            return true;
        rest = cut.tail;
    }
    return false;
}

static bool is_set_to(const slow_row *row, tv_str value)
{
    if (row->values)
        return is_one_of(value, row->values);
    return value.n && !tv_str_is(value, "0");
}

static void found_variable(tv_inquiry *q, tv_finding *f, const tv_note *v)
{
    tv_found_str(q, f, "variable", tv_str_of(v->key));
    tv_found_str(q, f, "value", v->s);
}

/* "0,0,1", "", "-1", "0 1": what is not a list of different cards. */
static const char *odd_devices(tv_str value)
{
    uint64_t seen = 0;
    if (!value.n || tv_str_is(value, "-1") || tv_str_is(value, "NoDevFiles") ||
        tv_str_is(value, "none"))
        return N_("no card is visible");
    if (value.n && (tv_str_starts(value, TV_S("GPU-")) || tv_str_starts(value, TV_S("MIG-"))))
        return NULL;
    while (value.n) {
        const tv_cut cut = tv_str_cut(value, ',');
        const tv_u64_read i = tv_str_u64(tv_str_trim(cut.head));
        if (!i.ok && tv_str_trim(cut.head).n &&
            (*tv_str_trim(cut.head).p == '$' || *tv_str_trim(cut.head).p == '{'))
            return NULL; /* a shell fills it in */
        if (!i.ok)
            return N_("what stands behind the first word that is no number is not visible");
        if (i.v < 64 && seen >> i.v & 1)
            return N_("a card named twice makes all of them invisible");
        seen |= i.v < 64 ? (uint64_t)1 << i.v : 0;
        value = cut.tail;
    }
    return NULL;
}

static void leftover(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s, const tv_note *v)
{
    const char *effect = NULL;
    double weight = 0.5;
    for (size_t i = 0; i < sizeof slow / sizeof *slow && !effect; i++)
        if (strcmp(v->key, slow[i].name) == 0 && is_set_to(&slow[i], v->s)) {
            effect = slow[i].effect;
            weight = slow[i].weight;
        }
    if (!effect && strcmp(v->key, "CUDA_VISIBLE_DEVICES") == 0)
        effect = odd_devices(v->s);
    if (!effect)
        return;
    tv_finding *f = tv_found(q, rule, s, v);
    found_variable(q, f, v);
    tv_found_word(q, f, "effect", effect);
    if (!v->s.n)
        f->cause = N_("{variable} is set to nothing: {effect}.");
    f->weight = weight;
}

static void judge_s22(tv_inquiry *q, const tv_rule *rule)
{
    each_variable(q, rule, leftover);
}

/* ---- L12: a backend for CPUs under GPUs ---- */

static void slow_backend(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s, const tv_note *v)
{
    const bool paddle = strcmp(v->key, "PADDLE_DISTRI_BACKEND") == 0;
    if (!paddle || !tv_str_eq_nocase(v->s, TV_S("gloo")))
        return;
    tv_finding *f = tv_found(q, rule, s, v);
    found_variable(q, f, v);
    tv_found_str(q, f, "replacement", TV_S("export PADDLE_DISTRI_BACKEND=nccl"));
    f->weight = 0.8;
}

static void judge_backend(tv_inquiry *q, const tv_rule *rule)
{
    each_variable(q, rule, slow_backend);
    for (const tv_sighting *s = tv_scene_first(q->scene, "script"); s;
         s = tv_scene_next(s, "script")) {
        const tv_note *list = tv_noted(&s->facts, "lint");
        for (const tv_note *n = list ? list->first : NULL; n; n = n->next)
            if (tv_noted_is(n, "what", "gloo-on-gpu")) {
                tv_finding *f = tv_found(q, rule, s, n);
                tv_found_str(q, f, "replacement", tv_noted_str(n, "fix"));
                f->weight = 0.8;
            }
    }
}

/* ---- L13: names and values that nothing reads ---- */

typedef struct name_row {
    const char *name;
    const char *meant; /* NULL: nothing like it exists */
} name_row;

static const name_row unknown_names[] = {
    {"PADDLE_DIST_TYPE", "PADDLE_DISTRI_BACKEND"},
    {"PADDLE_USE_CUDA", NULL},
    {"PYTORCH_CUDA_ALLOCATOR_CONF", "PYTORCH_CUDA_ALLOC_CONF"},
    {"PYTORCH_CUDA_ALLOC_CONFIG", "PYTORCH_CUDA_ALLOC_CONF"},
    {"PYTORCH_CUDA_ALLOC", "PYTORCH_CUDA_ALLOC_CONF"},
    {"PYTORCH_CUDA_MEMORY_CONF", "PYTORCH_CUDA_ALLOC_CONF"},
    {"PYTORCH_CUDA_ALLOC_CONFS", "PYTORCH_CUDA_ALLOC_CONF"},
    {"PYTORCH_CUDA_CONF", "PYTORCH_CUDA_ALLOC_CONF"},
    {"TORCH_CUDA_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"},
    {"CUDA_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"},
    {"CUDA_VISIBLE_DEVICE", "CUDA_VISIBLE_DEVICES"},
    {"CUDA_VISIBLE_GPUS", "CUDA_VISIBLE_DEVICES"},
    {"CUDA_VISIBILE_DEVICES", "CUDA_VISIBLE_DEVICES"},
    {"CUDA_VISABLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
    {"CUDA_LAUNCH_BLOCK", "CUDA_LAUNCH_BLOCKING"},
    {"NCCL_SOCKET_IFACE", "NCCL_SOCKET_IFNAME"},
    {"NCCL_IFNAME", "NCCL_SOCKET_IFNAME"},
    {"NCCL_DISABLE_P2P", "NCCL_P2P_DISABLE"},
    {"NCCL_DISABLE_IB", "NCCL_IB_DISABLE"},
    {"OMP_NUM_THREAD", "OMP_NUM_THREADS"},
    {"MASTER_ADDRESS", "MASTER_ADDR"},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING_", "TORCH_NCCL_ASYNC_ERROR_HANDLING"},
};

/* pytorch/pytorch c10/core/AllocatorConfig and c10/cuda/CUDAAllocatorConfig */
static const char *const allocator_keys[] = {"max_split_size_mb",
                                             "max_non_split_rounding_mb",
                                             "garbage_collection_threshold",
                                             "roundup_power2_divisions",
                                             "roundup_bypass_threshold_mb",
                                             "backend",
                                             "expandable_segments",
                                             "release_lock_on_cudamalloc",
                                             "release_lock_on_hipmalloc",
                                             "pinned_use_cuda_host_register",
                                             "pinned_use_hip_host_register",
                                             "pinned_num_register_threads",
                                             "pinned_use_background_threads",
                                             "pinned_reserve_segment_size_mb",
                                             "graph_capture_record_stream_reuse",
                                             "per_process_memory_fraction",
                                             "throw_on_cudamalloc_oom"};

static bool is_allocator_key(tv_str key)
{
    for (size_t i = 0; i < sizeof allocator_keys / sizeof *allocator_keys; i++)
        if (tv_str_is(key, allocator_keys[i]))
            return true;
    return false;
}

static const char *nearest_key(tv_arena *a, tv_str key)
{
    const char *best = NULL;
    size_t least = 5;
    for (size_t i = 0; i < sizeof allocator_keys / sizeof *allocator_keys; i++) {
        const size_t d = tv_str_distance(a, key, tv_str_of(allocator_keys[i]), 4);
        if (d < least) {
            least = d;
            best = allocator_keys[i];
        }
    }
    return best;
}

/* The setting as it must be written, where that can be told. */
typedef struct setting {
    const char *why; /* NULL: right */
    tv_str right;
} setting;

static setting judge_pair(tv_arena *a, tv_str pair)
{
    const bool colon = tv_str_cut(pair, ':').found;
    const tv_cut cut = tv_str_cut(pair, colon ? ':' : '=');
    const tv_str key = tv_str_trim(cut.head), value = tv_str_trim(cut.tail);
    const char *known = is_allocator_key(key) ? NULL : nearest_key(a, key);
    const bool is_switch = tv_str_is(key, "expandable_segments") ||
                           (known && strcmp(known, "expandable_segments") == 0);
    const bool on = tv_str_eq_nocase(value, TV_S("true")) || tv_str_is(value, "1");
    const bool wrong_case = is_switch && !tv_str_is(value, "True") && !tv_str_is(value, "False");
    setting s = {0};
    tv_buf b = tv_buf_in(a);
    if (known)
        tv_puts(&b, known);
    else
        tv_put(&b, key);
    tv_putc(&b, ':');
    if (wrong_case)
        tv_puts(&b, on ? "True" : "False");
    else
        tv_put(&b, value);
    s.right = tv_buf_str(&b);
    tv_str number = value;
    const bool small =
        tv_str_is(key, "max_split_size_mb") && tv_str_u64(number).ok && tv_str_u64(number).v <= 20;
    if (!is_allocator_key(key))
        s.why = N_("the allocator knows no such option and refuses to start");
    else if (!colon)
        s.why = N_("name and value are parted by a colon, not by an equals sign");
    else if (wrong_case)
        s.why = N_("the value must be True or False, with a capital letter");
    else if (small)
        s.why = N_("max_split_size_mb must be larger than 20");
    if (small)
        s.right = TV_S("max_split_size_mb:128");
    return s;
}

static bool is_allocator_variable(const char *name)
{
    return strcmp(name, "PYTORCH_CUDA_ALLOC_CONF") == 0 ||
           strcmp(name, "PYTORCH_HIP_ALLOC_CONF") == 0 || strcmp(name, "PYTORCH_ALLOC_CONF") == 0;
}

static void put_replacement(tv_inquiry *q, tv_finding *f, const char *name, tv_str value)
{
    tv_buf b = tv_buf_in(q->a);
    tv_puts(&b, name);
    tv_putc(&b, '=');
    tv_put(&b, value);
    tv_found_str(q, f, "replacement", tv_buf_str(&b));
}

static void allocator_value(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                            const tv_note *v)
{
    tv_buf right = tv_buf_in(q->a);
    const char *why = NULL;
    tv_str rest = v->s;
    if (tv_str_has(rest, TV_S("[")) || tv_str_has(rest, TV_S("$")))
        return; /* lists of values, or filled in by a shell */
    while (rest.n) {
        const tv_cut cut = tv_str_cut(rest, ',');
        const setting one = judge_pair(q->a, tv_str_trim(cut.head));
        why = why ? why : one.why;
        if (right.n)
            tv_putc(&right, ',');
        tv_put(&right, one.right);
        rest = cut.tail;
    }
    if (!why)
        return;
    tv_finding *f = tv_found(q, rule, s, v);
    found_variable(q, f, v);
    tv_found_word(q, f, "reason", why);
    put_replacement(q, f, v->key, tv_buf_str(&right));
}

static void unread_name(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s, const tv_note *v)
{
    if (is_allocator_variable(v->key)) {
        allocator_value(q, rule, s, v);
        return;
    }
    for (size_t i = 0; i < sizeof unknown_names / sizeof *unknown_names; i++) {
        if (strcmp(v->key, unknown_names[i].name) != 0)
            continue;
        tv_finding *f = tv_found(q, rule, s, v);
        found_variable(q, f, v);
        tv_found_word(q, f, "reason", N_("nothing reads a variable of this name"));
        if (unknown_names[i].meant)
            put_replacement(q, f, unknown_names[i].meant, v->s);
        else
            tv_found_str(q, f, "unread", tv_str_of(v->key));
        return;
    }
}

static void judge_names(tv_inquiry *q, const tv_rule *rule)
{
    each_variable(q, rule, unread_name);
    for (const tv_sighting *s = tv_scene_first(q->scene, "install-error"); s;
         s = tv_scene_next(s, "install-error"))
        if (tv_noted_is(&s->facts, "what", "alloc-conf")) {
            tv_finding *f = tv_found(q, rule, s, NULL);
            tv_found_str(q, f, "variable", TV_S("PYTORCH_CUDA_ALLOC_CONF"));
            tv_found_word(q, f, "reason",
                          N_("the allocator knows no such option and refuses to start"));
        }
}

static const tv_rule rules[] = {
    {
        .id = "S22",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("A variable left over from debugging slows the job"),
        .cause = N_("{variable} is set to \"{value}\": {effect}."),
        .decided = N_("An environment, a command, a script or NCCL's own log sets a variable that "
                      "serialises the device, turns a transport or a cache off, or logs every "
                      "call; or CUDA_VISIBLE_DEVICES hides cards."),
        .unless = N_("NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1 are the right stop-gaps on machines "
                     "where these transports do not work; keep them until that is repaired."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        .steps = {{.command = "unset {variable}",
                   .undo = "export {variable}={value}",
                   .why = N_("In the shell, image or script that sets it; measure the step before "
                             "and after.")}},
        .judge = judge_s22,
    },
    {
        .id = "L12",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("GPUs communicate with a backend for CPUs"),
        .cause = N_("The collectives of this job run with gloo: every gradient goes to host memory "
                    "and over sockets, while NCCL uses NVLink, PCIe and RDMA directly."),
        .decided =
            N_("PADDLE_DISTRI_BACKEND=gloo is set, or init_process_group names gloo alone in "
               "a script that uses a GPU."),
        .unless = N_("A second group with gloo beside NCCL, for objects and barriers, is right."),
        .source = "https://pytorch.org/docs/stable/distributed.html",
        .steps = {{.why = N_("Use NCCL for tensors on GPUs: {replacement}")}},
        .judge = judge_backend,
    },
    {
        .id = "L13",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("A variable or its value is not what the framework reads"),
        .cause = N_("{variable}: {reason}."),
        .decided = N_("The name is a known misspelling or does not exist (PADDLE_DIST_TYPE, "
                      "PADDLE_USE_CUDA), or the value of PYTORCH_CUDA_ALLOC_CONF does not follow "
                      "option:value,option:value."),
        .unless =
            N_("Scripts may read variables of their own; these names belong to no framework."),
        .source = "https://pytorch.org/docs/stable/notes/cuda.html",
        .steps = {{.command = "export {replacement}",
                   .undo = "unset {variable}",
                   .why = N_("This is how it is spelt.")},
                  {.command = "unset {unread}",
                   .undo = "export {unread}={value}",
                   .why = N_("It has no effect; remove it.")}},
        .judge = judge_names,
    },
};

extern const tv_rule_group tv_rule_group_leftover_rules;
const tv_rule_group tv_rule_group_leftover_rules = {"variables", N_("Environment variables"), rules,
                                                    sizeof rules / sizeof *rules};
