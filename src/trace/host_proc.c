/* Files of /proc and /etc that say what a host is and how full it is, by the file's name or by
 * words that no other text has: a folder of copies is read like the host itself. */
#include "glean.h"
#include "trace.h"

#include <math.h>
#include <string.h>

typedef struct number_row {
    const char *title; /* what the line begins with */
    const char *key;
    double factor;
} number_row;

/* What begins with the first text and ends the file's name with the second, or stands on a line. */
static bool is_named(const tv_reading *r, const char *name)
{
    return tv_str_ends(r->sheet->file, tv_str_of(name)) || tv_str_is(r->sheet->file, name + 1);
}

static tv_sighting *host_at(tv_reading *r, tv_sighting **s, size_t i)
{
    if (!*s)
        *s = tv_see(r, "host", i);
    return *s;
}

/* Lines "Title:  number [unit]" of a table. */
static void read_rows(tv_reading *r, const number_row *rows, size_t n, tv_sighting **s)
{
    for (size_t i = 0; i < r->sheet->n; i++)
        for (size_t k = 0; k < n; k++) {
            const tv_str title = tv_str_of(rows[k].title);
            tv_str rest = tv_str_drop(r->sheet->v[i].s, title.n);
            if (!tv_str_starts(r->sheet->v[i].s, title))
                continue;
            const tv_double_read v = tv_take_number(&rest);
            tv_note *facts = &host_at(r, s, i)->facts;
            if (v.ok && !tv_noted(facts, rows[k].key))
                (void)tv_at(r, tv_note_num(r->a, facts, rows[k].key, v.v * rows[k].factor), i);
        }
}

/* ---- /proc/meminfo ---- */

static const number_row meminfo[] = {
    {"MemTotal:", "mem_total_bytes", 1024},
    {"MemFree:", "mem_free_bytes", 1024},
    {"MemAvailable:", "mem_available_bytes", 1024},
    {"Cached:", "page_cache_bytes", 1024},
    {"Dirty:", "dirty_bytes", 1024},
    {"SwapTotal:", "swap_total_bytes", 1024},
    {"SwapFree:", "swap_free_bytes", 1024},
    {"Shmem:", "shmem_bytes", 1024},
    {"Mlocked:", "mlocked_bytes", 1024},
    {"CommitLimit:", "commit_limit_bytes", 1024},
    {"Committed_AS:", "committed_bytes", 1024},
    {"HugePages_Total:", "huge_pages", 1},
    {"HugePages_Free:", "huge_pages_free", 1},
    {"Hugepagesize:", "huge_page_bytes", 1024},
};

static void read_meminfo(tv_reading *r)
{
    tv_sighting *s = NULL;
    read_rows(r, meminfo, sizeof meminfo / sizeof *meminfo, &s);
}

/* ---- /proc/loadavg: "0.51 0.60 0.72 3/1287 40121" ---- */

static void read_loadavg(tv_reading *r)
{
    if (!is_named(r, "/proc/loadavg") || !r->sheet->n)
        return;
    static const char *const keys[] = {"load_1min", "load_5min", "load_15min"};
    tv_str words[5];
    if (tv_words(r->sheet->v[0].s, words, 5) != 5)
        return;
    tv_note *facts = &tv_see(r, "host", 0)->facts;
    for (size_t i = 0; i < 3; i++)
        if (tv_str_double(words[i]).ok)
            (void)tv_at(r, tv_note_num(r->a, facts, keys[i], tv_str_double(words[i]).v), 0);
}

/* ---- /proc/self/status: where this process may run ---- */

/* "0-7,64-71": how many. */
static double listed(tv_str list)
{
    double n = 0;
    while (list.n) {
        const tv_cut item = tv_str_cut(list, ',');
        const tv_cut range = tv_str_cut(item.head, '-');
        const tv_u64_read from = tv_str_u64(tv_str_trim(range.head));
        const tv_u64_read to = range.found ? tv_str_u64(tv_str_trim(range.tail)) : from;
        if (!from.ok || !to.ok || to.v < from.v)
            return (double)NAN;
        n += (double)(to.v - from.v) + 1;
        list = item.tail;
    }
    return n;
}

/* Whether a bit of a long hexadecimal number is set. */
static bool has_bit(tv_str hex, unsigned bit)
{
    const unsigned digit = bit / 4;
    if (digit >= hex.n)
        return false;
    const char c = hex.p[hex.n - 1 - digit];
    const unsigned v = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10);
    return v < 16 && (v >> bit % 4 & 1);
}

static void read_status(tv_reading *r)
{
    tv_sighting *s = NULL;
    for (size_t i = 0; i < r->sheet->n && is_named(r, "/proc/self/status"); i++) {
        const tv_str cpus = tv_enclosed(r->sheet->v[i].s, "Cpus_allowed_list:", NULL);
        const tv_str nodes = tv_enclosed(r->sheet->v[i].s, "Mems_allowed_list:", NULL);
        if (cpus.n) {
            tv_note *facts = &host_at(r, &s, i)->facts;
            (void)tv_at(r, tv_note_str(r->a, facts, "cpus_allowed", cpus), i);
            (void)tv_at(r, tv_note_num(r->a, facts, "cpus_allowed_n", listed(cpus)), i);
        }
        const tv_str may = tv_enclosed(r->sheet->v[i].s, "CapEff:", NULL);
        if (may.n) /* bit 14 is CAP_IPC_LOCK: limits of locked memory do not hold */
            (void)tv_at(
                r, tv_note_bool(r->a, &host_at(r, &s, i)->facts, "may_lock", has_bit(may, 14)), i);
        if (nodes.n)
            (void)tv_at(r, tv_note_str(r->a, &host_at(r, &s, i)->facts, "mems_allowed", nodes), i);
    }
}

/* ---- /proc/mounts: file systems that data lie on, shared memory ---- */

static bool is_remote(tv_str type)
{
    static const char *const types[] = {
        "nfs",    "nfs4",         "lustre",     "gpfs",         "cifs",          "smb3", "ceph",
        "beegfs", "fuse.juicefs", "fuse.s3fs",  "fuse.gcsfuse", "fuse.rclone",   "9p",   "virtiofs",
        "wekafs", "fuse.ceph",    "fuse.cosfs", "fuse.ossfs",   "fuse.blobfuse2"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (tv_str_is(type, types[i]))
            return true;
    return false;
}

static void read_mount(tv_reading *r, tv_sighting **s, size_t i)
{
    tv_str words[6];
    if (tv_words(r->sheet->v[i].s, words, 6) != 6 || words[1].p[0] != '/')
        return;
    if (tv_str_is(words[1], "/dev/shm")) {
        const tv_double_read size = tv_bytes_past(words[3], "size=");
        if (size.ok)
            (void)tv_at(r, tv_note_num(r->a, &host_at(r, s, i)->facts, "shm_mount_bytes", size.v),
                        i);
    } else if (is_remote(words[2])) {
        tv_note *mounts = tv_note_list(r->a, &host_at(r, s, i)->facts, "remote_mounts");
        tv_note *mount = tv_at(r, tv_note_map(r->a, mounts, NULL), i);
        (void)tv_note_str(r->a, mount, "at", words[1]);
        (void)tv_note_str(r->a, mount, "type", words[2]);
    }
}

static void read_mounts(tv_reading *r)
{
    tv_sighting *s = NULL;
    for (size_t i = 0; i < r->sheet->n && is_named(r, "/proc/mounts"); i++)
        read_mount(r, &s, i);
}

/* ---- the driver: "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  ..." ----
 */

static bool is_version(tv_str word)
{
    size_t dots = 0;
    for (size_t i = 0; i < word.n; i++) {
        if (word.p[i] != '.' && (word.p[i] < '0' || word.p[i] > '9'))
            return false;
        dots += word.p[i] == '.';
    }
    return dots == 1 || dots == 2;
}

static void read_driver(tv_reading *r)
{
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str text = tv_enclosed(r->sheet->v[i].s, "NVRM version:", NULL);
        tv_str words[32];
        const size_t n = text.n ? tv_words(text, words, 32) : 0;
        for (size_t k = 0; k < n && k < 32; k++) {
            if (!is_version(words[k]))
                continue;
            tv_note *facts = &tv_see(r, "host", i)->facts;
            (void)tv_at(r, tv_note_str(r->a, facts, "module_version", words[k]), i);
            (void)tv_at(r,
                        tv_note_str(r->a, facts, "module_flavour",
                                    tv_holds(text, "Open Kernel Module") ? TV_S("open")
                                                                         : TV_S("proprietary")),
                        i);
            break;
        }
    }
}

/* "EnableGpuFirmware: 18", "RegistryDwords: \"\"" */
static void read_params(tv_reading *r)
{
    tv_note *params = NULL;
    for (size_t i = 0; i < r->sheet->n && is_named(r, "/proc/driver/nvidia/params"); i++) {
        const tv_cut cut = tv_str_cut(r->sheet->v[i].s, ':');
        const tv_str key = tv_str_trim(cut.head);
        if (!cut.found || !key.n || tv_holds(key, " "))
            continue;
        if (!params)
            params = tv_note_map(r->a, &tv_see(r, "host", i)->facts, "module_params");
        const tv_str value = tv_str_trim(cut.tail);
        const tv_double_read v = tv_str_double(value);
        tv_note *note = v.ok ? tv_note_num(r->a, params, tv_cstr(r->a, key), v.v)
                             : tv_note_str(r->a, params, tv_cstr(r->a, key), value);
        (void)tv_at(r, note, i);
    }
}

/* ---- the kernel and what it was started with ---- */

static void read_cmdline(tv_reading *r)
{
    if (!is_named(r, "/proc/cmdline") || !r->sheet->n)
        return;
    static const char *const wanted[] = {"iommu=",
                                         "intel_iommu=",
                                         "amd_iommu=",
                                         "pci=",
                                         "pcie_aspm=",
                                         "nouveau.modeset=",
                                         "rd.driver.blacklist=",
                                         "modprobe.blacklist=",
                                         "isolcpus=",
                                         "nohz_full=",
                                         "mitigations=",
                                         "processor.max_cstate=",
                                         "intel_idle.max_cstate=",
                                         "intel_pstate=",
                                         "transparent_hugepage=",
                                         "numa_balancing="};
    tv_note *facts = &tv_see(r, "host", 0)->facts;
    tv_note *args = tv_note_list(r->a, facts, "kernel_args");
    tv_str rest = r->sheet->v[0].s;
    while (rest.n) {
        const tv_cut word = tv_str_cut(rest, ' ');
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
            if (tv_str_starts(word.head, tv_str_of(wanted[k])))
                (void)tv_at(r, tv_note_str(r->a, args, NULL, word.head), 0);
        rest = word.tail;
    }
}

static void read_release(tv_reading *r)
{
    for (size_t i = 0; i < r->sheet->n && is_named(r, "/etc/os-release"); i++) {
        tv_str name = tv_enclosed(r->sheet->v[i].s, "PRETTY_NAME=", NULL);
        if (!name.n)
            continue;
        if (name.n >= 2 && name.p[0] == '"')
            name = tv_str_take(tv_str_drop(name, 1), name.n - 2);
        (void)tv_at(r, tv_note_str(r->a, &tv_see(r, "host", i)->facts, "distribution", name), i);
        return;
    }
}

/* ---- pressure: "some avg10=0.00 avg60=0.12 avg300=0.05 total=123" ---- */

static void read_pressure(tv_reading *r)
{
    static const struct {
        const char *file;
        const char *some;
        const char *full;
    } files[] = {
        {"/proc/pressure/cpu", "cpu_stall_frac", NULL},
        {"/proc/pressure/io", "io_stall_frac", "io_full_stall_frac"},
        {"/proc/pressure/memory", "mem_stall_frac", "mem_full_stall_frac"},
    };
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        tv_sighting *s = NULL;
        for (size_t i = 0; i < r->sheet->n && is_named(r, files[k].file); i++) {
            const tv_str line = r->sheet->v[i].s;
            const char *key = tv_str_starts(line, TV_S("some "))   ? files[k].some
                              : tv_str_starts(line, TV_S("full ")) ? files[k].full
                                                                   : NULL;
            const tv_double_read v = tv_number_past(line, "avg60=");
            if (key && v.ok)
                (void)tv_at(r, tv_note_num(r->a, &host_at(r, &s, i)->facts, key, v.v / 100), i);
        }
    }
}

static void read(tv_reading *r)
{
    read_meminfo(r);
    read_loadavg(r);
    read_status(r);
    read_mounts(r);
    read_driver(r);
    read_params(r);
    read_cmdline(r);
    read_release(r);
    read_pressure(r);
}

static const char *const needles[] = {"/proc/meminfo",         "MemAvailable:",
                                      "/proc/loadavg",         "/proc/self/status",
                                      "/proc/mounts",          "/proc/driver/nvidia/version",
                                      "NVRM version:",         "/proc/driver/nvidia/params",
                                      "/proc/cmdline",         "/etc/os-release",
                                      "/proc/pressure/cpu",    "/proc/pressure/io",
                                      "/proc/pressure/memory", NULL};

extern const tv_log_format tv_log_format_host_proc;
const tv_log_format tv_log_format_host_proc = {"host: /proc", needles, read};
