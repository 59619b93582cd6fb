/* What a user prints to see the state of the driver's module: /proc/driver/nvidia/version,
 * modinfo, dkms status, modprobe's refusals, Secure Boot, the fabric manager, and the package
 * manager's history. One sighting a file. */
#include "driver_log.h"
#include "kernel_line.h"
#include "package_line.h"

enum { CHANGES = 64 };

typedef struct state {
    tv_reading *r;
    tv_sighting *s;
} state;

static tv_note *facts_of(state *st, size_t i)
{
    if (!st->s)
        st->s = tv_see_once(st->r, "driver", i);
    return &st->s->facts;
}

static void put(state *st, const char *key, tv_str s, size_t i)
{
    if (s.n)
        (void)tv_at(st->r, tv_note_str(st->r->a, facts_of(st, i), key, s), i);
}

static void put_yes(state *st, const char *key, bool yes, size_t i)
{
    (void)tv_at(st->r, tv_note_bool(st->r->a, facts_of(st, i), key, yes), i);
}

/* ---- one reader for each kind of line; true: it was one ---- */

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun ..." */
static bool read_proc(state *st, tv_str line, size_t i)
{
    tv_str rest;
    if (!tv_past(line, "NVRM version:", &rest))
        return false;
    bool open = false;
    const tv_str version = tv_module_version(rest, &open);
    put(st, "loaded_kernel_module", version, i);
    if (version.n)
        put(st, "module_flavor", open ? TV_S("open") : TV_S("proprietary"), i);
    return true;
}

/* "filename:       /lib/modules/5.15.0-78-generic/updates/dkms/nvidia.ko", "version: 535.54.03",
 * "license: NVIDIA" */
static bool read_modinfo(state *st, tv_str line, size_t i)
{
    tv_str rest;
    if (!tv_past(line, "filename:", &rest) || !tv_holds(rest, "/nvidia.ko"))
        return false;
    put(st, "module_for_kernel", tv_enclosed(rest, "/lib/modules/", "/"), i);
    for (size_t k = i + 1; k < st->r->sheet->n && k <= i + 12; k++) {
        const tv_str next = tv_bare(st->r->sheet->v[k].s);
        if (tv_str_starts(next, TV_S("version:")))
            put(st, "module_on_disk", tv_str_trim(tv_str_drop(next, 8)), k);
        if (tv_str_starts(next, TV_S("license:")))
            put(st, "disk_module_flavor",
                tv_holds(next, "GPL") ? TV_S("open") : TV_S("proprietary"), k);
    }
    return true;
}

/* "$ modinfo -F version nvidia" and the answer, "modinfo: ERROR: Module nvidia not found." */
static bool read_modinfo_field(state *st, tv_str line, size_t i)
{
    if (tv_holds(line, "modinfo: ERROR: Module nvidia not found")) {
        put_yes(st, "module_missing", true, i);
        return true;
    }
    if (!tv_holds(line, "modinfo -F version nvidia") || i + 1 >= st->r->sheet->n)
        return false;
    put(st, "module_on_disk", tv_driver_version_of(tv_bare(st->r->sheet->v[i + 1].s)), i + 1);
    return true;
}

/* "nvidia/535.54.03, 5.15.0-78-generic, x86_64: installed", older "nvidia, 460.56, 5.4.0-70-...,
 * x86_64: installed", "nvidia/535.54.03: added" */
static bool read_dkms(state *st, tv_str line, size_t i)
{
    const tv_str s = tv_bare(line);
    if (!tv_str_starts(s, TV_S("nvidia/")) && !tv_str_starts(s, TV_S("nvidia, ")) &&
        !tv_str_starts(s, TV_S("nvidia-current")) && !tv_str_starts(s, TV_S("nvidia-srv")))
        return false;
    const tv_cut cut = tv_str_cut(s, ':');
    static const char *const words[] = {"installed", "built", "added", "broken"};
    const tv_str word = tv_take_word(&(tv_str){cut.tail.p, cut.tail.n});
    bool known = false;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        known = known || tv_str_is(word, words[k]);
    if (!cut.found || !known)
        return false;
    tv_str f[4] = {{0}};
    const size_t n = tv_fields(cut.head, ',', f, 4);
    const bool slash = tv_holds(f[0], "/");
    const tv_str version = slash ? tv_str_cut(f[0], '/').tail : n > 1 ? f[1] : (tv_str){0};
    const tv_str kernel = slash ? n > 1 ? f[1] : (tv_str){0} : n > 2 ? f[2] : (tv_str){0};
    tv_note *list = tv_note_list(st->r->a, facts_of(st, i), "dkms");
    tv_note *item = tv_tally(st->r, list, "line", s, i);
    if (!item)
        return true;
    (void)tv_note_str(st->r->a, item, "version", version);
    if (kernel.n)
        (void)tv_note_str(st->r->a, item, "kernel", kernel);
    (void)tv_note_str(st->r->a, item, "state", word);
    return true;
}

/* modprobe's and the kernel's refusals. */
static bool read_refusal(state *st, tv_str line, size_t i)
{
    static const struct {
        const char *words, *reason;
    } rows[] = {
        {"Key was rejected by service", "key rejected"},
        {"Required key not available", "key rejected"},
        {"Loading of unsigned module is rejected", "key rejected"},
        {"Loading of module with unavailable key is rejected", "key rejected"},
        {"unsigned module loading is restricted", "key rejected"},
        {"Exec format error", "other kernel"},
        {"Invalid module format", "other kernel"},
        {"could not insert 'nvidia': No such device", "no device"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (tv_holds(line, rows[k].words) &&
            (tv_holds(line, "nvidia") || tv_holds(line, "module") || tv_holds(line, "modprobe"))) {
            put(st, "modprobe_refusal", tv_str_of(rows[k].reason), i);
            return true;
        }
    tv_str rest;
    if (tv_past(line, "Bad return status for module build on kernel: ", &rest)) {
        put_yes(st, "module_missing", true, i);
        put(st, "running_kernel", tv_take_word(&rest), i);
        return true;
    }
    if (tv_holds(line, "could not find module by name='nvidia")) {
        put_yes(st, "module_missing", true, i);
        return true;
    }
    if (!tv_past(line, "Module nvidia", &rest) || !tv_str_starts(rest, TV_S(" not found")))
        return false;
    put_yes(st, "module_missing", true, i);
    put(st, "running_kernel", tv_enclosed(rest, "/lib/modules/", NULL), i);
    return true;
}

/* "SecureBoot enabled", "Secure boot: enabled (user)" is another's word for it; "Linux host
 * 5.15.0-79-generic #86-Ubuntu SMP ..." */
static bool read_boot(state *st, tv_str line, size_t i)
{
    const tv_str s = tv_bare(line);
    if (tv_str_starts(s, TV_S("SecureBoot ")) || tv_holds(s, "Secure boot enabled") ||
        tv_holds(s, "Secure boot disabled")) {
        put_yes(st, "secure_boot", tv_holds(s, "enabled"), i);
        return true;
    }
    tv_str w[4];
    if (tv_str_starts(s, TV_S("Linux ")) && tv_words(s, w, 4) >= 4 && w[3].n && w[3].p[0] == '#') {
        put(st, "running_kernel", w[2], i);
        if (tv_holds(w[2], "icrosoft"))
            put_yes(st, "wsl", true, i);
        return true;
    }
    if (!tv_holds(line, "uname -r") || i + 1 >= st->r->sheet->n)
        return false;
    const tv_str next = tv_bare(st->r->sheet->v[i + 1].s);
    if (tv_words(next, w, 4) == 1 && next.p[0] >= '0' && next.p[0] <= '9')
        put(st, "running_kernel", next, i + 1);
    return true;
}

/* systemctl's status of the service, and its log's complaint. */
static bool read_fabric(state *st, tv_str line, size_t i)
{
    if (tv_holds_nocase(line, "fabric manager nvidia gpu driver interface version") ||
        (tv_holds_nocase(line, "fabric manager") && tv_holds(line, "match with driver version"))) {
        tv_str rest;
        put(st, "fabric_manager", TV_S("version mismatch"), i);
        if (tv_past(line, "interface version ", &rest))
            put(st, "fabric_manager_version", tv_take_word(&rest), i);
        if (tv_past(line, "driver version ", &rest))
            put(st, "fabric_driver_version", tv_driver_version_of(tv_take_word(&rest)), i);
        return true;
    }
    if (!tv_holds(line, "nvidia-fabricmanager.service"))
        return false;
    if (tv_holds(line, "could not be found") || tv_holds(line, "not-found")) {
        put(st, "fabric_manager", TV_S("missing"), i);
        return true;
    }
    for (size_t k = i; k < st->r->sheet->n && k <= i + 6; k++) {
        tv_str rest;
        if (!tv_past(st->r->sheet->v[k].s, "Active: ", &rest))
            continue;
        if (!tv_noted_is(facts_of(st, i), "fabric_manager", "version mismatch"))
            put(st, "fabric_manager", tv_take_word(&rest), k); /* active, inactive, failed */
        return true;
    }
    return false;
}

/* "... /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.460.73.01" */
static bool read_library(state *st, tv_str line, size_t i)
{
    tv_str rest;
    if (!tv_past(line, "libnvidia-ml.so.", &rest) && !tv_past(line, "libcuda.so.", &rest))
        return false;
    const tv_str version = tv_driver_version_of(rest);
    if (version.n)
        put(st, "library", version, i);
    return version.n > 0;
}

static void read_changes(state *st)
{
    tv_package_change v[CHANGES];
    const size_t n = tv_package_changes(st->r->sheet, v, CHANGES);
    for (size_t k = 0; k < n; k++) {
        tv_note *list = tv_note_list(st->r->a, facts_of(st, v[k].i), "upgrades");
        if (list->n >= TV_LIMIT_NOTE_ITEMS)
            return;
        tv_note *item = tv_at(st->r, tv_note_map(st->r->a, list, NULL), v[k].i);
        (void)tv_note_str(st->r->a, item, "package", v[k].package);
        if (v[k].from.n)
            (void)tv_note_str(st->r->a, item, "from", v[k].from);
        (void)tv_note_str(st->r->a, item, "to", v[k].to);
        if (v[k].time.n)
            (void)tv_note_str(st->r->a, item, "time", v[k].time);
        if (v[k].by.n)
            (void)tv_note_str(st->r->a, item, "by", v[k].by);
    }
}

static void read(tv_reading *r)
{
    static bool (*const readers[])(state *, tv_str, size_t) = {
        read_proc,    read_modinfo, read_modinfo_field, read_dkms,
        read_refusal, read_boot,    read_fabric,        read_library,
    };
    state st = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++)
        for (size_t k = 0; k < sizeof readers / sizeof *readers; k++)
            if (readers[k](&st, r->sheet->v[i].s, i))
                break;
    read_changes(&st);
}

static const char *const needles[] = {
    "NVRM version:",
    "nvidia.ko",
    "modinfo -F version nvidia",
    "modinfo: ERROR: Module nvidia",
    "nvidia/",
    "nvidia, ",
    "Key was rejected by service",
    "Required key not available",
    "Loading of unsigned module is rejected",
    "Loading of module with unavailable key is rejected",
    "unsigned module loading is restricted",
    "could not insert 'nvidia",
    "could not find module by name='nvidia",
    "Bad return status for module build on kernel: ",
    "Module nvidia",
    "SecureBoot ",
    "Secure boot enabled",
    "Secure boot disabled",
    "nvidia-fabricmanager.service",
    "fabric manager NVIDIA GPU driver",
    "libnvidia-ml.so.",
    "libcuda.so.",
    "Upgrade: ",
    " upgrade libnvidia",
    " upgrade nvidia",
    "Unpacking libnvidia",
    "Unpacking nvidia",
    "[ALPM] upgraded ",
    "Updated: ",
    "uname -r",
    "-generic #",
    "icrosoft-standard-WSL",
    NULL,
};

extern const tv_log_format tv_log_format_driver_state;
const tv_log_format tv_log_format_driver_state = {"driver-state", needles, read};
