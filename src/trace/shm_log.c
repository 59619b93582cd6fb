/* Shared memory and the loader's workers that live by it: bus errors, workers that a signal ended
 * (PyTorch's and Paddle's words), refusals of /dev/shm, and what df and mount say of it. */
#include <math.h>

#include "glean.h"
#include "oom_parts.h"
#include "trace.h"

/* ---- workers ---- */

typedef struct workers {
    tv_sighting *bus;    /* those that shared memory ended */
    tv_sighting *killed; /* those that the host ended */
} workers;

static tv_sighting *shm_sighting(tv_reading *r, workers *w, size_t i)
{
    if (w->bus)
        return w->bus;
    w->bus = tv_see(r, "shm", i);
    tv_oom_word(r, &w->bus->facts, "kind", "shm");
    tv_oom_word(r, &w->bus->facts, "layer", "/dev/shm too small");
    return w->bus;
}

static void add_worker(tv_reading *r, tv_note *facts, tv_str signal, tv_double_read pid, size_t i)
{
    if (!tv_noted(facts, "signal") && signal.n)
        (void)tv_note_str(r->a, facts, "signal", signal);
    if (!pid.ok)
        return;
    if (!tv_noted(facts, "worker_pid"))
        (void)tv_note_num(r->a, facts, "worker_pid", pid.v);
    tv_note *pids = tv_note_list(r->a, facts, "worker_pids");
    for (const tv_note *seen = pids->first; seen; seen = seen->next)
        if (seen->number >= pid.v && seen->number <= pid.v)
            return;
    if (pids->n < 64)
        (void)tv_at(r, tv_note_num(r->a, pids, NULL, pid.v), i);
}

/* "DataLoader worker (pid 325) is killed by signal: Bus error.", "DataLoader worker (pid(s) 7, 9)
 * exited unexpectedly", Paddle's "DataLoader process (pid   1. If run DataLoader ..." */
static void read_worker(tv_reading *r, size_t i, tv_str line, workers *w)
{
    tv_str rest;
    tv_double_read pid = {0};
    if (tv_past(line, "(pid", &rest)) {
        while (rest.n && (*rest.p < '0' || *rest.p > '9') && *rest.p != '.')
            rest = tv_str_drop(rest, 1);
        pid = tv_take_number(&rest);
    }
    tv_str signal = tv_enclosed(line, "killed by signal: ", ".");
    if (!signal.n)
        signal = tv_enclosed(line, "killed by signal: ", NULL);
    const bool bus = tv_str_starts(signal, TV_S("Bus error"));
    if (!bus && !w->killed) {
        w->killed = tv_see(r, "worker-lost", i);
        tv_oom_word(r, &w->killed->facts, "kind", "worker-lost");
    }
    tv_note *facts = bus ? &shm_sighting(r, w, i)->facts : &w->killed->facts;
    if (bus)
        signal = TV_S("Bus error");
    tv_oom_word(r, facts, "framework", tv_holds(line, "DataLoader process") ? "paddle" : "pytorch");
    add_worker(r, facts, signal, pid, i);
    if (!bus && !signal.n)
        tv_oom_word(r, facts, "end", "exited unexpectedly");
}

/* ---- refusals ---- */

static bool is_refusal(tv_str line)
{
    if (tv_holds_nocase(line, "nccl"))
        return false; /* told by NCCL's own reader */
    if (tv_holds(line, "insufficient shared memory") || tv_holds(line, "out of shared memory") ||
        tv_holds(line, "insufficient shared storage space"))
        return true;
    const bool torch = tv_holds(line, "</torch_") || tv_holds(line, "/dev/shm/");
    return torch && (tv_holds(line, "unable to write to file") ||
                     tv_holds(line, "No space left on device") ||
                     (tv_holds(line, "unable to mmap") && !tv_holds(line, "Too many")) ||
                     (tv_holds(line, "unable to resize") && tv_holds(line, "mapped")));
}

static void read_refusal(tv_reading *r, size_t i, tv_str line, workers *w)
{
    tv_note *facts = &shm_sighting(r, w, i)->facts;
    if (!tv_noted(facts, "framework"))
        tv_oom_word(r, facts, "framework",
                    tv_holds(line, "shared storage space") ? "paddle" : "pytorch");
    if (tv_holds(line, "bus error") && !tv_noted(facts, "signal"))
        tv_oom_word(r, facts, "signal", "Bus error");
    const tv_double_read bytes = tv_number_past(line, "unable to mmap ");
    tv_oom_put(r, facts, "tried_bytes", bytes);
}

/* ---- df, mount, docker inspect ---- */

/* What a bare number of df counts: told by the table's head. */
typedef struct df_unit {
    double bytes;
    bool inodes;
} df_unit;

static df_unit unit_of(tv_str head)
{
    static const struct {
        const char *word;
        double bytes;
    } rows[] = {
        {"1K-blocks", 0x1p10}, {"1024-blocks", 0x1p10}, {"512-blocks", 512},  {"1M-blocks", 0x1p20},
        {"1G-blocks", 0x1p30}, {"1B-blocks", 1},        {"1048576-", 0x1p20}, {"1MB-blocks", 1e6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tv_holds(head, rows[i].word))
            return (df_unit){rows[i].bytes, false};
    return (df_unit){0x1p10, tv_holds(head, "IUsed") || tv_holds(head, "IFree")};
}

static double df_size(tv_str word, df_unit unit)
{
    tv_str rest = word;
    const tv_double_read v = tv_take_bytes(&rest);
    if (!v.ok || rest.n > 1)
        return (double)NAN;
    const char last = word.p[word.n - 1];
    return last >= '0' && last <= '9' ? v.v * (v.v > 0 ? unit.bytes : 1) : v.v;
}

/* "shm  1.0G  883M  142M  87% /dev/shm": read from the right, for a type may stand in between. */
static void read_df(tv_reading *r, size_t i, tv_str line, df_unit unit)
{
    tv_str words[12];
    const size_t n = tv_words(line, words, 12);
    if (n < 5 || n > 12 || !tv_str_is(words[n - 1], "/dev/shm") || unit.inodes)
        return;
    tv_str share = words[n - 2];
    const tv_double_read used = tv_take_number(&share);
    const double size = df_size(words[n - 5], unit);
    if (!used.ok || !tv_str_is(share, "%") || isnan(size))
        return;
    tv_sighting *s = tv_see(r, "shm", i);
    tv_note *facts = &s->facts;
    tv_oom_word(r, facts, "kind", "shm");
    (void)tv_note_num(r->a, facts, "size_bytes", size);
    (void)tv_note_num(r->a, facts, "used_bytes", df_size(words[n - 4], unit));
    (void)tv_note_num(r->a, facts, "avail_bytes", df_size(words[n - 3], unit));
    (void)tv_note_num(r->a, facts, "use_frac", used.v / 100);
    tv_oom_word(r, facts, "mount", "/dev/shm");
}

/* "shm on /dev/shm type tmpfs (rw,nosuid,size=65536k)", "tmpfs /dev/shm tmpfs rw,size=65536k 0 0",
 * and a container's "ShmSize": 67108864 */
static void read_mount(tv_reading *r, size_t i, tv_str line)
{
    tv_double_read size = {0};
    if (tv_holds(line, "/dev/shm ") && tv_holds(line, "tmpfs"))
        size = tv_bytes_past(line, "size=");
    else if (tv_holds(line, "\"ShmSize\": "))
        size = tv_number_past(line, "\"ShmSize\": ");
    if (!size.ok)
        return;
    tv_note *facts = &tv_see(r, "shm", i)->facts;
    tv_oom_word(r, facts, "kind", "shm");
    (void)tv_note_num(r->a, facts, "size_bytes", size.v);
    tv_oom_word(r, facts, "mount", "/dev/shm");
}

static void read_line(tv_reading *r, size_t i, tv_str line, workers *w, df_unit *unit)
{
    if (tv_str_starts(line, TV_S("Filesystem")))
        *unit = unit_of(line);
    else if (tv_holds(line, "DataLoader worker (pid") ||
             (tv_holds(line, "DataLoader process (pid") && tv_holds(line, "signal")))
        read_worker(r, i, line, w);
    else if (is_refusal(line))
        read_refusal(r, i, line, w);
    else if (tv_str_ends(line, TV_S(" /dev/shm")))
        read_df(r, i, line, *unit);
    else if (tv_holds(line, "size=") || tv_holds(line, "ShmSize"))
        read_mount(r, i, line);
}

static void read(tv_reading *r)
{
    workers w = {0};
    df_unit unit = {0x1p10, false};
    for (size_t i = 0; i < r->sheet->n; i++)
        read_line(r, i, tv_bare(r->sheet->v[i].s), &w, &unit);
}

static const char *const needles[] = {"DataLoader worker (pid",
                                      "DataLoader process (pid",
                                      "insufficient shared memory",
                                      "insufficient shared storage space",
                                      "out of shared memory",
                                      "</torch_",
                                      "dev/shm",
                                      "\"ShmSize\": ",
                                      NULL};

extern const tv_log_format tv_log_format_shm_log;
const tv_log_format tv_log_format_shm_log = {"shm-log", needles, read};
