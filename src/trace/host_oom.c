/* The host's own memory: the kernel's OOM killer, limits of control groups and jobs, containers
 * that end with 137, and programs that the system refuses memory. */
#include "glean.h"
#include "oom_parts.h"
#include "trace.h"

/* ---- one event: its lines stand close together ---- */

enum { EVENT_LINES = 400 };

typedef struct event {
    tv_sighting *s;
    size_t last;
    bool closed; /* a further victim is another event */
} event;

static tv_note *facts_of(tv_reading *r, event *e, size_t i)
{
    if (!e->s || i - e->last > EVENT_LINES) {
        e->s = tv_see(r, "host-oom", i);
        tv_oom_word(r, &e->s->facts, "kind", "host-oom");
        e->closed = false;
    }
    e->last = i;
    return &e->s->facts;
}

/* The surer word stays. */
static void set_scope(tv_reading *r, tv_note *facts, const char *scope, bool cgroup)
{
    const tv_str old = tv_noted_str(facts, "scope");
    if (old.n && !tv_str_is(old, "unknown") &&
        !(tv_str_is(old, "cgroup") && tv_str_starts(tv_str_of(scope), TV_S("cgroup"))))
        return;
    tv_oom_word(r, facts, "scope", scope);
    tv_oom_word(r, facts, "layer", cgroup ? "container/job memory limit" : "host memory");
}

static const char *cgroup_scope(tv_str path)
{
    return tv_holds(path, "slurm")                                    ? "cgroup (slurm)"
           : tv_holds(path, "kubepods")                               ? "cgroup (kubernetes)"
           : tv_holds(path, "docker") || tv_holds(path, "containerd") ? "cgroup (docker)"
                                                                      : "cgroup";
}

/* A victim starts a new event where one has been named already. */
static tv_note *victim(tv_reading *r, event *e, size_t i, tv_u64_read pid)
{
    const tv_note *old = e->s ? tv_noted(&e->s->facts, "killed_pid") : NULL;
    const bool same = old && pid.ok && old->number >= (double)pid.v && old->number <= (double)pid.v;
    if (e->s && e->closed && !same)
        e->s = NULL;
    tv_note *facts = facts_of(r, e, i);
    if (pid.ok)
        (void)tv_note_num(r->a, facts, "killed_pid", (double)pid.v);
    return facts;
}

/* ---- the kernel ---- */

/* "key=value," */
static tv_str value_of(tv_str line, const char *key)
{
    tv_str rest;
    if (!tv_past(line, key, &rest))
        return (tv_str){0};
    return tv_str_trim(tv_str_cut(rest, ',').head);
}

static void read_constraint(tv_reading *r, event *e, size_t i, tv_str line)
{
    const tv_str pid_text = value_of(line, ",pid=");
    tv_note *facts = victim(r, e, i, tv_str_u64(pid_text));
    const tv_str constraint = value_of(line, "constraint=");
    (void)tv_note_str(r->a, facts, "constraint", constraint);
    const tv_str task = value_of(line, ",task=");
    if (task.n)
        (void)tv_note_str(r->a, facts, "killed_name", task);
    const tv_str cgroup = value_of(line, "task_memcg=");
    if (cgroup.n)
        (void)tv_note_str(r->a, facts, "cgroup", cgroup);
    const bool memcg = tv_str_is(constraint, "CONSTRAINT_MEMCG");
    set_scope(r, facts, memcg ? cgroup_scope(cgroup) : "global", memcg);
}

typedef struct size_row {
    const char *word;
    const char *key;
} size_row;

static void read_killed(tv_reading *r, event *e, size_t i, tv_str line)
{
    static const size_row rows[] = {
        {"total-vm:", "total_vm_bytes"},
        {"anon-rss:", "anon_rss_bytes"},
        {"file-rss:", "file_rss_bytes"},
        {"shmem-rss:", "shmem_rss_bytes"},
    };
    tv_str rest;
    if (!tv_past(line, "illed process ", &rest) && !tv_past(line, "Kill process ", &rest))
        return;
    tv_note *facts = victim(r, e, i, tv_take_u64(&rest));
    const tv_str name = tv_enclosed(rest, "(", ")");
    if (name.n)
        (void)tv_note_str(r->a, facts, "killed_name", name);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        tv_oom_put(r, facts, rows[k].key, tv_bytes_past(line, rows[k].word));
    tv_oom_put(r, facts, "oom_score_adj", tv_number_past(line, "oom_score_adj:"));
    const bool memcg = tv_holds_nocase(line, "memory cgroup out of memory");
    if (memcg || !tv_noted(facts, "scope"))
        set_scope(r, facts, memcg ? "cgroup" : "global", memcg);
    e->closed = tv_holds(line, "illed process ");
}

/* "python3 invoked oom-killer: gfp_mask=…, order=0, oom_score_adj=0": an event begins. */
static void read_invoked(tv_reading *r, event *e, size_t i, tv_str line)
{
    if (e->closed)
        e->s = NULL;
    tv_note *facts = facts_of(r, e, i);
    const char *end = line.p;
    tv_str rest;
    if (tv_past(line, " invoked oom-killer", &rest))
        end = rest.p - sizeof " invoked oom-killer" + 1;
    tv_str head = tv_str_span(line.p, end);
    while (head.n && !tv_str_has(TV_S(" ]:"), tv_str_drop(head, head.n - 1)))
        head.n--;
    (void)tv_note_str(r->a, facts, "invoked_by", tv_str_span(head.p + head.n, end));
}

/* "memory: usage 8388608kB, limit 8388608kB, failcnt 1204" */
static void read_usage(tv_reading *r, event *e, size_t i, tv_str line)
{
    tv_note *facts = facts_of(r, e, i);
    tv_oom_put(r, facts, "cgroup_usage_bytes", tv_bytes_past(line, "usage "));
    tv_oom_put(r, facts, "cgroup_limit_bytes", tv_bytes_past(line, "limit "));
}

/* ---- Slurm, containers, shells ---- */

static void read_slurm(tv_reading *r, event *e, size_t i, tv_str line)
{
    tv_note *facts = facts_of(r, e, i);
    tv_oom_word(r, facts, "scope", "cgroup (slurm)");
    tv_oom_word(r, facts, "layer", "container/job memory limit");
    tv_oom_put(r, facts, "oom_kill_events", tv_number_past(line, "Detected "));
    tv_str rest;
    tv_str step = {0};
    if (tv_past(line, "StepId=", &rest) || tv_past(line, "step ", &rest))
        step = tv_take_word(&rest);
    while (step.n && step.p[step.n - 1] == '.')
        step.n--;
    if (step.n)
        (void)tv_note_str(r->a, facts, "step", step);
}

/* "script: line 28:  8156 Killed      python3 main.py", or "Killed" alone */
static void read_shell(tv_reading *r, event *e, size_t i, tv_str line)
{
    tv_str words[8];
    const size_t n = tv_words(line, words, 8);
    tv_u64_read pid = {0};
    for (size_t k = 1; k < n && k < 8; k++)
        if (tv_str_is(words[k], "Killed"))
            pid = tv_str_u64(words[k - 1]);
    tv_note *facts = victim(r, e, i, pid);
    tv_oom_word(r, facts, "signal", "Killed");
    set_scope(r, facts, "unknown", false);
    e->closed = false;
}

/* Status 137 is 128 + SIGKILL; launchers print -9. */
static void read_status(tv_reading *r, event *e, size_t i, tv_str line)
{
    tv_note *facts = facts_of(r, e, i);
    tv_oom_word(r, facts, "signal", "Killed");
    const bool sure = tv_holds(line, "OOMKilled");
    if (sure)
        (void)tv_note_bool(r->a, facts, "oom_killed", true);
    else if (!tv_noted(facts, "exit_status"))
        (void)tv_note_num(r->a, facts, "exit_status", 137);
    set_scope(r, facts, sure ? "cgroup (container)" : "unknown", sure);
}

/* ---- programs that were refused ---- */

typedef struct refused_row {
    const char *text;
    const char *error;
} refused_row;

static const refused_row refusals[] = {
    {"DefaultCPUAllocator: ", "DefaultCPUAllocator"},
    {"[Errno 12] Cannot allocate memory", "ENOMEM"},
    {"[WinError 1455]", "WinError 1455"},
    {"std::bad_alloc", "std::bad_alloc"},
    {"numpy.core._exceptions._ArrayMemoryError", "numpy"},
    {"numpy._core._exceptions._ArrayMemoryError", "numpy"},
    {"numpy.core._exceptions.MemoryError", "numpy"},
    {"model requires more system memory", "ollama"},
};

static bool read_refused(tv_reading *r, size_t i, tv_str line)
{
    for (size_t k = 0; k < sizeof refusals / sizeof *refusals; k++) {
        if (!tv_holds(line, refusals[k].text))
            continue;
        if (k == 0 && !tv_holds(line, "tried to allocate") && !tv_holds(line, "not enough memory"))
            continue;
        tv_note *facts = &tv_see(r, "host-oom", i)->facts;
        tv_oom_word(r, facts, "kind", "host-oom");
        tv_oom_word(r, facts, "scope", "refused");
        tv_oom_word(r, facts, "layer", "host memory");
        tv_oom_word(r, facts, "error", refusals[k].error);
        tv_double_read tried = tv_bytes_past(line, "tried to allocate ");
        if (!tried.ok)
            tried = tv_bytes_past(line, "Unable to allocate ");
        if (!tried.ok)
            tried = tv_bytes_past(line, "system memory (");
        tv_oom_put(r, facts, "tried_bytes", tried);
        tv_oom_put(r, facts, "available_bytes", tv_bytes_past(line, "available ("));
        return true;
    }
    return false;
}

/* ---- all lines ---- */

static bool is_status(tv_str line)
{
    return (tv_holds(line, "OOMKilled") && !tv_holds_nocase(line, "false")) ||
           tv_holds_nocase(line, "exit code 137") || tv_holds_nocase(line, "exit code: 137") ||
           tv_holds(line, "exited with code 137") || tv_holds_nocase(line, "exit code:    137") ||
           tv_holds(line, "exit status 137") || tv_holds(line, "exitcode  : -9") ||
           tv_holds(line, "exitcode: -9") || tv_holds(line, "Signal 9 (SIGKILL)") ||
           tv_holds(line, "returned 137") || tv_holds(line, "non-zero code: 137");
}

static bool is_shell(tv_str line)
{
    if (tv_str_is(line, "Killed"))
        return true;
    tv_str rest;
    return tv_past(line, ": line ", &rest) && tv_holds(rest, " Killed ");
}

static void read_line(tv_reading *r, event *e, size_t i, tv_str line)
{
    if (tv_holds(line, "oom-kill:constraint="))
        read_constraint(r, e, i, line);
    else if (tv_holds(line, "ut of memory: Kill") || tv_holds(line, "oom_reaper: reaped"))
        read_killed(r, e, i, line);
    else if (tv_holds(line, "memory: usage ") && tv_holds(line, "limit "))
        read_usage(r, e, i, line);
    else if (tv_holds(line, "oom-kill event") || tv_holds(line, "oom_kill event"))
        read_slurm(r, e, i, line);
    else if (tv_holds(line, "low on memory") && tv_holds(line, "killed"))
        set_scope(r, facts_of(r, e, i), "ray", false);
    else if (tv_holds(line, "invoked oom-killer"))
        read_invoked(r, e, i, line);
    else if (is_status(line))
        read_status(r, e, i, line);
    else if (is_shell(line))
        read_shell(r, e, i, line);
}

static void read(tv_reading *r)
{
    event e = {0};
    bool refused = false;
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = tv_bare(r->sheet->v[i].s);
        if (!refused)
            refused = read_refused(r, i, line);
        read_line(r, &e, i, line);
    }
}

static const char *const needles[] = {"oom-kill",
                                      "oom_kill",
                                      "ut of memory: Kill",
                                      "OOMKilled",
                                      "ode 137",
                                      "ODE 137",
                                      "ode: 137",
                                      "ode:    137",
                                      "tatus 137",
                                      "eturned 137",
                                      "SIGKILL",
                                      "exitcode",
                                      "Killed",
                                      "low on memory",
                                      "DefaultCPUAllocator: ",
                                      "Cannot allocate memory",
                                      "[WinError 1455]",
                                      "std::bad_alloc",
                                      "MemoryError",
                                      "more system memory",
                                      NULL};

extern const tv_log_format tv_log_format_host_oom;
const tv_log_format tv_log_format_host_oom = {"host-oom", needles, read};
