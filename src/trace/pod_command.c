/* Kubernetes manifests and compose files, as far as they say what a container gets of the machine.
 * They are read line by line: what is pasted is often a piece, or indented anew. */
#include <string.h>

#include "commands.h"

typedef struct pod {
    tv_reading *r;
    tv_sighting *s; /* the container that is read; NULL: none yet */
    bool compose;
    size_t service_indent; /* of a compose file's services */
    bool in_services;
    bool in_limits; /* under "limits:" */
    bool in_env;
    bool in_memlock;
    size_t block_indent; /* of "limits:", "environment:", "ulimits:" */
    tv_str env_name;     /* of "- name: X", whose value comes next */
    bool shm_mounted, shm_memory;
    tv_arena *scratch;
    tv_words_of *words; /* of one program at a time */
    size_t programs;
} pod;

/* More programs than containers have. */
enum { MOST_PROGRAMS = 64 };

static size_t indent_of(tv_str line)
{
    size_t n = 0;
    while (n < line.n && line.p[n] == ' ')
        n++;
    return n;
}

typedef struct pair {
    tv_str key, value;
    bool item; /* "- key: value" */
    size_t indent;
} pair;

static pair pair_of(tv_str line)
{
    pair p = {.indent = indent_of(line)};
    tv_str s = tv_str_trim(line);
    if (tv_str_starts(s, TV_S("- "))) {
        p.item = true;
        s = tv_str_trim(tv_str_drop(s, 2));
    }
    const tv_cut cut = tv_str_cut(s, ':');
    if (cut.found && (!cut.tail.n || *cut.tail.p == ' ')) {
        tv_str rest;
        tv_str value = tv_str_trim(cut.tail);
        if (tv_past(value, " #", &rest))
            value = tv_str_trim(tv_str_take(value, value.n - rest.n - 2));
        p.key = tv_unquoted(cut.head);
        p.value = tv_unquoted(value);
    } else {
        p.value = tv_unquoted(s);
    }
    return p;
}

static void put_str(pod *p, const char *key, tv_str value, size_t i)
{
    if (value.n)
        (void)tv_at(p->r, tv_note_str(p->r->a, &p->s->facts, key, value), i);
}

static void put_bytes(pod *p, const char *key, tv_str value, size_t i)
{
    tv_str s = value;
    if (tv_str_ends(s, TV_S("i"))) /* "8Gi" */
        s = tv_str_take(s, s.n - 1);
    const tv_double_read v = tv_take_bytes(&s);
    if (v.ok)
        (void)tv_at(p->r, tv_note_num(p->r->a, &p->s->facts, key, v.v), i);
}

/* "500m" is half a CPU. */
static void put_cpus(pod *p, tv_str value, size_t i)
{
    tv_str s = value;
    const tv_double_read v = tv_take_number(&s);
    if (v.ok)
        (void)tv_at(p->r,
                    tv_note_num(p->r->a, &p->s->facts, "cpus",
                                tv_str_starts(s, TV_S("m")) ? v.v / 1000 : v.v),
                    i);
}

static void finish(pod *p)
{
    if (!p->s)
        return;
    tv_note *facts = &p->s->facts;
    if (p->shm_mounted && p->shm_memory)
        (void)tv_note_str(p->r->a, facts, "shm_mount", TV_S("emptyDir Memory"));
    p->s = NULL;
    p->shm_mounted = p->shm_memory = false;
    p->in_env = p->in_limits = p->in_memlock = false;
    p->env_name = (tv_str){0};
}

static void begin(pod *p, const char *tool, size_t i)
{
    finish(p);
    p->s = tv_see(p->r, "command", i);
    (void)tv_note_str(p->r->a, &p->s->facts, "tool", tv_str_of(tool));
}

static bool is_gpu_resource(tv_str key)
{
    return tv_str_starts(key, TV_S("nvidia.com/")) || tv_str_starts(key, TV_S("amd.com/gpu")) ||
           tv_str_starts(key, TV_S("aliyun.com/gpu")) || tv_str_starts(key, TV_S("tencent.com/")) ||
           tv_str_starts(key, TV_S("volcano.sh/vgpu"));
}

/* The program of a container: "command: [...]", "args: [...]", "command: torchrun ...". */
static void read_program(pod *p, tv_str value, size_t i)
{
    if (p->programs++ >= MOST_PROGRAMS)
        return;
    tv_buf b = tv_buf_in(p->scratch);
    for (size_t k = 0; k < value.n; k++) {
        const char c = value.p[k];
        if (c != '[' && c != ']' && !(c == ',' && k + 1 < value.n && value.p[k + 1] == ' '))
            tv_putc(&b, c);
    }
    tv_words_of *w = p->words;
    tv_str rest;
    tv_shell_words(p->scratch, tv_buf_str(&b), w, &rest);
    const tv_command_line c = {p->r, i, &p->s->facts, p->scratch};
    (void)tv_launch_note(&c, w->v, w->n);
    tv_loading_note(&c, w->v, w->n);
}

/* Items of "args:" and "environment:" that stand alone. */
static void read_item(pod *p, tv_str value, size_t i)
{
    const tv_command_line c = {p->r, i, &p->s->facts, p->scratch};
    const tv_assignment set = tv_shell_assignment(value);
    if (set.name.n && tv_is_known_variable(set.name))
        tv_env_note(&c, set.name, set.value);
    else if (tv_holds(value, ".py") || tv_holds(value, "torchrun") || tv_holds(value, "--"))
        read_program(p, value, i);
    else if (p->compose && tv_holds(value, ":/dev/shm"))
        put_str(p, "shm_mount", value, i);
    else if (p->compose && tv_holds(value, "infiniband"))
        put_str(p, "infiniband", TV_S("mapped"), i);
    else if (p->compose && tv_str_is(value, "gpu"))
        put_str(p, "gpus_asked", TV_S("all"), i);
}

static void read_resource(pod *p, const pair *e, size_t i)
{
    if (is_gpu_resource(e->key)) {
        put_str(p, "gpus_asked", e->value, i);
        tv_str s = e->value;
        const tv_double_read n = tv_take_number(&s);
        if (n.ok)
            (void)tv_note_num(p->r->a, &p->s->facts, "gpus_per_node", n.v);
    } else if (p->in_limits && tv_str_is(e->key, "memory")) {
        put_bytes(p, "memory_bytes", e->value, i);
    } else if (p->in_limits && (tv_str_is(e->key, "cpu") || tv_str_is(e->key, "cpus"))) {
        put_cpus(p, e->value, i);
    } else if (p->in_memlock && tv_str_is(e->key, "soft")) {
        put_str(p, "memlock", e->value, i);
    }
}

static void read_env(pod *p, const pair *e, size_t i)
{
    const tv_command_line c = {p->r, i, &p->s->facts, p->scratch};
    if (tv_str_is(e->key, "name") && e->item) {
        p->env_name = tv_str_copy(p->r->a, e->value);
    } else if (tv_str_is(e->key, "value") && tv_is_known_variable(p->env_name)) {
        tv_env_note(&c, p->env_name, e->value);
        p->env_name = (tv_str){0};
    } else if (p->compose && p->in_env && tv_is_known_variable(e->key)) {
        tv_env_note(&c, e->key, e->value);
    }
}

static void read_simple(pod *p, const pair *e, size_t i)
{
    static const struct {
        const char *key;
        const char *fact;
        bool bytes;
    } rows[] = {{"image", "image", false},
                {"runtime", "runtime", false},
                {"runtimeClassName", "runtime", false},
                {"ipc", "ipc", false},
                {"shm_size", "shm_bytes", true},
                {"mem_limit", "memory_bytes", true},
                {"network_mode", "network", false}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (tv_str_is(e->key, rows[k].key)) {
            if (rows[k].bytes)
                put_bytes(p, rows[k].fact, e->value, i);
            else
                put_str(p, rows[k].fact, e->value, i);
        }
    if (tv_str_is(e->key, "hostIPC") && tv_str_is(e->value, "true"))
        put_str(p, "ipc", TV_S("host"), i);
    else if (tv_str_is(e->key, "mountPath") && tv_str_is(e->value, "/dev/shm"))
        p->shm_mounted = true;
    else if (tv_str_is(e->key, "medium") && tv_str_is(e->value, "Memory"))
        p->shm_memory = true;
    else if (tv_str_is(e->key, "sizeLimit"))
        put_bytes(p, "shm_bytes", e->value, i);
    else if (tv_str_is(e->key, "gpus") && p->compose)
        put_str(p, "gpus_asked", e->value, i);
    else if (tv_str_is(e->key, "capabilities") && tv_holds(e->value, "gpu"))
        put_str(p, "gpus_asked", TV_S("all"), i);
    else if (tv_str_is(e->key, "memlock"))
        put_str(p, "memlock", e->value, i);
    else if ((tv_str_is(e->key, "command") || tv_str_is(e->key, "args") ||
              tv_str_is(e->key, "entrypoint")) &&
             e->value.n)
        read_program(p, e->value, i);
}

/* Which block the line opens or leaves. */
static void follow_blocks(pod *p, const pair *e)
{
    if (e->indent <= p->block_indent && !(e->item && e->indent == p->block_indent))
        p->in_limits = p->in_env = p->in_memlock = false;
    if (tv_str_is(e->key, "limits") && !e->value.n)
        p->in_limits = true;
    else if ((tv_str_is(e->key, "environment") || tv_str_is(e->key, "env")) && !e->value.n)
        p->in_env = true;
    else if (tv_str_is(e->key, "memlock") && !e->value.n)
        p->in_memlock = true;
    else
        return;
    p->block_indent = e->indent;
}

static bool is_workload(tv_str kind)
{
    static const char *const kinds[] = {
        "Pod",     "Job",        "Deployment",       "StatefulSet", "DaemonSet", "PyTorchJob",
        "MPIJob",  "TFJob",      "PaddleJob",        "RayCluster",  "RayJob",    "RayService",
        "CronJob", "ReplicaSet", "InferenceService", "TrainJob",    "JobSet",    "LeaderWorkerSet"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (tv_str_is(kind, kinds[i]))
            return true;
    return false;
}

/* Lines that open or end a manifest or a service; true: nothing more to read in it. */
static bool opens(pod *p, const pair *e, size_t i)
{
    if (tv_str_is(e->key, "services") && !e->value.n && !e->item) {
        finish(p);
        p->compose = p->in_services = true;
        p->service_indent = 0;
        return true;
    }
    if (p->in_services && e->key.n && !e->value.n && !e->item) {
        if (!p->service_indent && e->indent)
            p->service_indent = e->indent;
        if (e->indent == p->service_indent && e->indent) {
            begin(p, "compose", i);
            return true;
        }
        if (!e->indent) { /* "volumes:", "networks:" */
            finish(p);
            p->in_services = false;
        }
    }
    if (tv_str_is(e->key, "kind") && !e->item && is_workload(e->value)) {
        p->compose = p->in_services = false;
        begin(p, "kubernetes", i);
        put_str(p, "workload", e->value, i);
        return true;
    }
    return false;
}

static void read_line(pod *p, size_t i)
{
    const tv_str line = p->r->sheet->v[i].s;
    if (tv_str_is(tv_str_trim(line), "---")) {
        finish(p);
        return;
    }
    const tv_str s = tv_str_trim(line);
    if (!s.n || *s.p == '#')
        return;
    const pair e = pair_of(line);
    if (opens(p, &e, i) || !p->s)
        return;
    follow_blocks(p, &e);
    if (!e.key.n) {
        read_item(p, e.value, i);
        return;
    }
    read_simple(p, &e, i);
    read_resource(p, &e, i);
    read_env(p, &e, i);
}

static void read(tv_reading *r)
{
    pod *p = tv_new(r->a, pod, 1);
    p->r = r;
    p->scratch = tv_arena_child(r->a, TV_LIMIT_ARENA_BYTES);
    const tv_mark blank = tv_arena_mark(p->scratch);
    p->words = tv_new(p->scratch, tv_words_of, 1);
    for (size_t i = 0; i < r->sheet->n; i++)
        read_line(p, i);
    finish(p);
    tv_arena_rewind(p->scratch, blank);
}

static const char *const needles[] = {
    "kind: Pod",      "kind: Job",        "kind: Deployment",
    "kind: Stateful", "kind: DaemonSet",  "kind: PyTorchJob",
    "kind: MPIJob",   "kind: PaddleJob",  "kind: Ray",
    "kind: CronJob",  "kind: ReplicaSet", "kind: InferenceService",
    "kind: TFJob",    "kind: TrainJob",   "kind: LeaderWorkerSet",
    "kind: JobSet",   "services:",        NULL};

extern const tv_log_format tv_log_format_pod_command;
const tv_log_format tv_log_format_pod_command = {"pod-command", needles, read};
