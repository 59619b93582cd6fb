/* Reports of iostat -> facts. A report since boot is an average over weeks and says nothing of
 * now: nothing is derived from it where another one is there. */
#include "iostat.h"

#include <math.h>
#include <string.h>

typedef struct known_column {
    const char *name; /* as sysstat prints it, or as its JSON does */
    const char *key;
    double factor;
} known_column;

#define TV_SECTOR 512.0 /* iostat's sectors, whatever the disk's are */

static const known_column known[] = {
    {"r/s", "r_s", 1},
    {"w/s", "w_s", 1},
    {"d/s", "d_s", 1},
    {"f/s", "f_s", 1},
    {"tps", "tps", 1},
    {"rrqm/s", "rrqm_s", 1},
    {"wrqm/s", "wrqm_s", 1},
    {"drqm/s", "drqm_s", 1},
    {"rqm/s", "rqm_s", 1},
    {"%rrqm", "rrqm_frac", 0.01},
    {"%wrqm", "wrqm_frac", 0.01},
    {"%drqm", "drqm_frac", 0.01},
    {"rrqm", "rrqm_frac", 0.01},
    {"wrqm", "wrqm_frac", 0.01},
    {"drqm", "drqm_frac", 0.01},
    {"rkB/s", "r_bytes_per_s", 1024},
    {"wkB/s", "w_bytes_per_s", 1024},
    {"dkB/s", "d_bytes_per_s", 1024},
    {"kB/s", "bytes_per_s", 1024},
    {"rMB/s", "r_bytes_per_s", 1048576},
    {"wMB/s", "w_bytes_per_s", 1048576},
    {"dMB/s", "d_bytes_per_s", 1048576},
    {"MB/s", "bytes_per_s", 1048576},
    {"rsec/s", "r_bytes_per_s", TV_SECTOR},
    {"wsec/s", "w_bytes_per_s", TV_SECTOR},
    {"dsec/s", "d_bytes_per_s", TV_SECTOR},
    {"sec/s", "bytes_per_s", TV_SECTOR},
    {"kB_read/s", "r_bytes_per_s", 1024},
    {"kB_wrtn/s", "w_bytes_per_s", 1024},
    {"kB_dscd/s", "d_bytes_per_s", 1024},
    {"MB_read/s", "r_bytes_per_s", 1048576},
    {"MB_wrtn/s", "w_bytes_per_s", 1048576},
    {"MB_dscd/s", "d_bytes_per_s", 1048576},
    {"Blk_read/s", "r_bytes_per_s", TV_SECTOR},
    {"Blk_wrtn/s", "w_bytes_per_s", TV_SECTOR},
    {"avgrq-sz", "avgrq_bytes", TV_SECTOR},
    {"rareq-sz", "rareq_bytes", 1024},
    {"wareq-sz", "wareq_bytes", 1024},
    {"dareq-sz", "dareq_bytes", 1024},
    {"areq-sz", "areq_bytes", 1024},
    {"avgqu-sz", "aqu_sz", 1},
    {"aqu-sz", "aqu_sz", 1},
    {"await", "await_s", 1e-3},
    {"r_await", "r_await_s", 1e-3},
    {"w_await", "w_await_s", 1e-3},
    {"d_await", "d_await_s", 1e-3},
    {"f_await", "f_await_s", 1e-3},
    {"svctm", "svctm_s", 1e-3},
    {"%util", "util_frac", 0.01},
    {"util", "util_frac", 0.01},
};

bool tv_iostat_value(tv_arena *a, tv_note *device, tv_str column, double v, bool scaled)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!tv_str_eq(column, tv_str_of(known[i].name)))
            continue;
        /* "5.3M" in the -h form is in bytes already. */
        (void)tv_note_num(a, device, known[i].key, v * (scaled ? 1 : known[i].factor));
        return true;
    }
    return false;
}

void tv_iostat_cpu(tv_arena *a, tv_note *cpu, tv_str column, double percent)
{
    static const struct {
        const char *name, *key;
    } shares[] = {{"user", "user_frac"},     {"nice", "nice_frac"},   {"system", "system_frac"},
                  {"iowait", "iowait_frac"}, {"steal", "steal_frac"}, {"idle", "idle_frac"}};
    if (tv_str_starts(column, TV_S("%")))
        column = tv_str_drop(column, 1);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (tv_str_is(column, shares[i].name))
            (void)tv_note_num(a, cpu, shares[i].key, percent / 100);
}

/* ---- what follows ---- */

static double num(const tv_note *device, const char *key)
{
    return tv_noted_num(device, key);
}

/* Flash behind NVMe says its name; device mapper and md say nothing about what lies under them. */
static bool is_nvme(const char *name)
{
    return name && strncmp(name, "nvme", 4) == 0;
}

static double wait_s(const tv_note *device)
{
    const double r = num(device, "r_await_s");
    return isnan(r) ? num(device, "await_s") : r;
}

/* Busy all the time, and yet nobody waits: "never idle" is not "full". */
static bool never_idle_only(const tv_note *device)
{
    return num(device, "util_frac") >= 0.9 && wait_s(device) < 0.3e-3 && num(device, "aqu_sz") < 4;
}

/* Reads that wait for an arm: long, few and slow for what they carry. */
static bool seek_bound(const tv_note *device)
{
    const double r_s = num(device, "r_s");
    double bytes = num(device, "rareq_bytes");
    if (isnan(bytes) && r_s > 0)
        bytes = num(device, "r_bytes_per_s") / r_s;
    return !is_nvme(device->key) && wait_s(device) > 8e-3 && r_s >= 20 && r_s < 600 &&
           bytes < 512.0 * 1024 && num(device, "r_bytes_per_s") < 80e6 &&
           num(device, "util_frac") >= 0.5;
}

static void copy_map(tv_arena *a, tv_note *to, const tv_note *from)
{
    if (from->line)
        (void)tv_note_place(a, to, from->line, from->text);
    for (const tv_note *note = from->first; note; note = note->next)
        if (note->type == TV_NOTE_NUMBER)
            (void)tv_note_num(a, to, note->key, note->number);
}

static const char *sample_key(tv_arena *a, size_t i)
{
    tv_buf b = tv_buf_in(a);
    tv_putc(&b, 's');
    tv_put_u64(&b, i);
    return tv_cstr(a, tv_buf_str(&b));
}

/* The report that stands for the state: the first that is not since boot. */
static const tv_iostat_report *telling(const tv_iostat_reports *all)
{
    for (size_t i = 0; i < all->n; i++)
        if (!all->v[i].since_boot && all->v[i].devices->n)
            return &all->v[i];
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].devices->n)
            return &all->v[i];
    return all->n ? &all->v[0] : NULL;
}

enum { MOST_SAMPLES = 512 };

static void note_samples(tv_arena *a, tv_note *facts, const tv_iostat_reports *all, bool single)
{
    for (size_t i = 0; i < all->n && i < MOST_SAMPLES; i++) {
        tv_note *sample = tv_note_map(a, facts, sample_key(a, i));
        const tv_note *devices = all->v[i].devices;
        if (all->v[i].since_boot)
            (void)tv_note_bool(a, sample, "since_boot", true);
        if (all->v[i].cpu)
            copy_map(a, sample, all->v[i].cpu);
        if (single && devices->first) {
            copy_map(a, sample, devices->first);
            continue;
        }
        for (const tv_note *device = devices->first; device; device = device->next)
            copy_map(a, tv_note_map(a, sample, device->key), device);
    }
}

static void note_verdicts(tv_arena *a, tv_note *facts, const tv_iostat_reports *all)
{
    bool full = false, idle_only = false, seeks = false;
    for (size_t i = 0; i < all->n; i++)
        for (const tv_note *d = all->v[i].since_boot ? NULL : all->v[i].devices->first; d;
             d = d->next) {
            idle_only = idle_only || never_idle_only(d);
            seeks = seeks || seek_bound(d);
            full = full || (num(d, "util_frac") >= 0.9 && !never_idle_only(d));
        }
    if (idle_only && !full)
        (void)tv_note_bool(a, facts, "saturated", false);
    if (seeks)
        (void)tv_note_bool(a, facts, "seek_bound", true);
}

static void note_cpu(tv_arena *a, tv_note *facts, const tv_iostat_reports *all)
{
    const tv_note *cpu = NULL;
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].cpu && (!cpu || (all->v[0].since_boot && cpu == all->v[0].cpu)))
            cpu = all->v[i].cpu;
    if (cpu)
        copy_map(a, facts, cpu);
}

void tv_iostat_facts(tv_arena *a, tv_note *facts, const tv_iostat_reports *all)
{
    const tv_iostat_report *one = telling(all);
    if (!one)
        return;
    const bool single = one->devices->n == 1;
    (void)tv_note_num(a, facts, "samples", (double)all->n);
    (void)tv_note_num(a, facts, "devices", (double)one->devices->n);
    if (single)
        (void)tv_note_str(a, facts, "device", tv_str_of(one->devices->first->key));
    if (all->v[0].since_boot)
        (void)tv_note_bool(a, facts, "since_boot", true);
    note_cpu(a, facts, all);
    for (const tv_note *device = one->devices->first; device; device = device->next)
        copy_map(a, tv_note_map(a, facts, device->key), device);
    note_samples(a, facts, all, single);
    note_verdicts(a, facts, all);
}
