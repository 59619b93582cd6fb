/* One printk may take several lines of the log, of which only the first has a time: they are read
 * as one sentence. */
#include "driver_log.h"

#include <math.h>
#include <string.h>

#include "kernel_line.h"

typedef struct sentence {
    char text[1024];
    size_t n;
} sentence;

static void add(sentence *s, tv_str part)
{
    if (s->n && s->n < sizeof s->text)
        s->text[s->n++] = ' ';
    for (size_t i = 0; i < part.n && s->n < sizeof s->text; i++)
        s->text[s->n++] = part.p[i];
}

/* A line that begins a message of its own. */
static bool begins(tv_str text)
{
    static const char *const heads[] = {
        "Xid ",        "GPU at ",        "GPU 0",     "The NVIDIA",   "loading ",  "API mismatch",
        "None of the", "Open nvidia.ko", "GPU Board", "This PCI I/O", "No NVIDIA", "RmInit"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (tv_str_starts(text, tv_str_of(heads[i])))
            return true;
    return false;
}

/* The message that begins on line i; some loggers cut the module's name from the later lines. */
static tv_str whole(const tv_reading *r, tv_str text, size_t i, sentence *s)
{
    add(s, text);
    for (size_t k = i + 1; k < r->sheet->n && k <= i + 9; k++) {
        tv_str rest;
        if (!tv_past(r->sheet->v[k].s, "NVRM: ", &rest) || begins(tv_str_trim(rest)))
            break;
        add(s, tv_str_trim(rest));
    }
    return (tv_str){s->text, s->n};
}

static void put_once(tv_reading *r, tv_note *facts, const char *key, tv_str s, size_t i)
{
    if (s.n && !tv_noted_str(facts, key).n)
        (void)tv_at(r, tv_note_str(r->a, facts, key, s), i);
}

tv_str tv_module_version(tv_str text, bool *open)
{
    static const char *const heads[] = {"Kernel Module for ", "Kernel Module",
                                        "Driver for UNIX platforms", "Mode Setting Driver for "};
    tv_str rest;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (!tv_past(text, heads[i], &rest))
            continue;
        *open = tv_holds(text, "Open Kernel");
        tv_str word = tv_take_word(&rest);
        if (word.n && !(word.p[0] >= '0' && word.p[0] <= '9'))
            word = tv_take_word(&rest); /* the machine's name stood first: x86_64, aarch64 */
        if (word.n && word.p[0] >= '0' && word.p[0] <= '9' && tv_holds(word, "."))
            return word;
    }
    return (tv_str){0};
}

/* ---- one message each ---- */

static void lost(tv_reading *r, tv_note *facts, tv_str pci, size_t i)
{
    tv_note *list = tv_note_list(r->a, facts, "bus_losses");
    (void)tv_tally(r, list, "pci", pci, i);
    put_once(r, facts, "pci", pci, i);
}

/* "The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:26b5) installed in this system has fallen off the bus
 * ...", "... is not supported by open nvidia.ko because it does not include the required GPU System
 * Processor (GSP)." */
static void read_installed(tv_reading *r, tv_note *facts, tv_str text, size_t i)
{
    sentence s = {0};
    text = whole(r, text, i, &s);
    tv_str rest;
    tv_str pci = {0};
    if (tv_past(text, "The NVIDIA GPU ", &rest))
        pci = tv_take_pci(&rest);
    if (tv_holds(text, "fallen off the bus"))
        lost(r, facts, pci, i);
    else if (tv_holds(text, "not supported") || tv_holds(text, "Legacy driver") ||
             tv_holds(text, "requires use of the NVIDIA open")) {
        tv_note *list = tv_note_list(r->a, facts, "unsupported");
        tv_note *item = tv_tally(r, list, "pci", pci, i);
        if (!item)
            return;
        const bool open = tv_holds(text, "by open") || tv_holds(text, "Open nvidia.ko");
        const bool needs_open = tv_holds(text, "requires use of the NVIDIA open");
        (void)tv_note_str(r->a, item, "by",
                          needs_open ? TV_S("needs open")
                          : open     ? TV_S("open")
                                     : TV_S("release"));
        const tv_str legacy = tv_enclosed(text, "through the NVIDIA ", " Legacy");
        const tv_str release = tv_enclosed(text, "not supported by the ", " ");
        if (legacy.n)
            (void)tv_note_str(r->a, item, "legacy_branch", legacy);
        if (release.n && release.p[0] >= '0' && release.p[0] <= '9')
            (void)tv_note_str(r->a, item, "release", release);
    } else {
        return;
    }
    put_once(r, facts, "pci", pci, i);
    put_once(r, facts, "pci_id", tv_enclosed(text, "PCI ID: ", ")"), i);
}

static void read_open_only(tv_reading *r, tv_note *facts, tv_str text, size_t i)
{
    (void)text;
    tv_note *list = tv_note_list(r->a, facts, "unsupported");
    tv_note *item = tv_tally(r, list, "pci", (tv_str){0}, i);
    if (item)
        (void)tv_note_str(r->a, item, "by", TV_S("open"));
}

/* "The NVIDIA probe routine was not called for 1 device(s).", "... failed for 1 device(s)." */
static void read_probe(tv_reading *r, tv_note *facts, tv_str text, size_t i)
{
    const bool called = !tv_holds(text, "not called");
    const tv_double_read n = tv_number_past(text, " for ");
    if (n.ok)
        (void)tv_at(
            r, tv_note_num(r->a, facts, called ? "failed_devices" : "unprobed_devices", n.v), i);
    sentence s = {0};
    if (!called && tv_holds(whole(r, text, i, &s), "nouveau"))
        (void)tv_note_bool(r->a, facts, "probe_names_nouveau", true);
}

/* "GPU 0000:2b:00.0: GPU has fallen off the bus.", "GPU 0000:41:00.0: RmInitAdapter failed!
 * (0x26:0x56:1463)" */
static void read_gpu(tv_reading *r, tv_note *facts, tv_str text, size_t i)
{
    tv_str rest = tv_str_drop(text, tv_str_starts(text, TV_S("GPU at ")) ? 7 : 4);
    const tv_str pci = tv_take_pci(&rest);
    if (tv_holds(text, "fallen off the bus")) {
        lost(r, facts, pci, i);
    } else if (tv_holds(text, "RmInitAdapter failed") || tv_holds(text, "rm_init_adapter failed")) {
        tv_note *list = tv_note_list(r->a, facts, "init_failures");
        tv_note *item = tv_tally(r, list, "pci", pci, i);
        const tv_str code = tv_enclosed(text, "failed! (", ")");
        if (item && code.n)
            (void)tv_note_str(r->a, item, "code", code);
        put_once(r, facts, "pci", pci, i);
    }
}

static void read_api(tv_reading *r, tv_note *facts, tv_str text, size_t i)
{
    sentence s = {0};
    text = whole(r, text, i, &s);
    tv_str rest;
    if (!tv_past(text, "has the version ", &rest))
        return;
    tv_str library = tv_take_word(&rest);
    tv_str module = {0};
    if (tv_past(rest, "the version ", &rest))
        module = tv_take_word(&rest);
    while (library.n && library.p[library.n - 1] == '.')
        library.n--;
    while (module.n && module.p[module.n - 1] == '.')
        module.n--;
    tv_count_up(r->a, facts, "api_mismatches");
    put_once(r, facts, "library", library, i);
    put_once(r, facts, "loaded_kernel_module", module, i);
    put_once(r, facts, "client", tv_enclosed(text, "the client '", "'"), i);
}

/* "This PCI I/O region assigned to your NVIDIA device is invalid: BAR1 is 0M @ 0x0
 * (PCI:0000:0b:00.0)" */
static void read_region(tv_reading *r, tv_note *facts, tv_str text, size_t i)
{
    sentence s = {0};
    text = whole(r, text, i, &s);
    tv_str rest;
    if (!tv_past(text, " BAR", &rest))
        return;
    tv_note *list = tv_note_list(r->a, facts, "bars");
    tv_str at;
    const tv_str pci = tv_past(rest, "(PCI:", &at) ? tv_take_pci(&at) : (tv_str){0};
    tv_note *item = tv_tally(r, list, "pci", pci, i);
    if (!item)
        return;
    const tv_double_read bar = tv_take_number(&rest);
    const tv_double_read bytes = tv_bytes_past(rest, "is ");
    if (bar.ok)
        (void)tv_note_num(r->a, item, "bar", bar.v);
    if (bytes.ok)
        (void)tv_note_num(r->a, item, "bytes", bytes.v);
    put_once(r, facts, "pci", pci, i);
}

static void read_loading(tv_reading *r, tv_note *facts, tv_str text, size_t i)
{
    bool open = false;
    const tv_str version = tv_module_version(text, &open);
    if (!version.n)
        return;
    /* the last one that was loaded is the one that runs */
    (void)tv_at(r, tv_note_str(r->a, facts, "driver", version), i);
    (void)tv_note_str(r->a, facts, "module_flavor", open ? TV_S("open") : TV_S("proprietary"));
}

static void read_flag(tv_reading *r, tv_note *facts, tv_str text, size_t i)
{
    static const struct {
        const char *words, *key;
    } rows[] = {
        {"likely needs to be reset", "needs_reset_hint"},
        {"power cables connected", "power_cable_missing"},
        {"No NVIDIA GPU found", "no_gpu_found"},
        {"No NVIDIA graphics adapter", "no_gpu_found"},
        {"None of the NVIDIA ", "none_initialized"},
        {"Cannot initialize GSP firmware", "gsp_boot_failed"},
        {"unexpected WPR2 already up", "gsp_boot_failed"},
        {"failed to wait for GFW", "gsp_boot_failed"},
        {"GPU at PCI:", "uuid_present"},
        {"Failed to query fabric", "fabric_failed"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (tv_holds(text, rows[k].words) && !tv_noted(facts, rows[k].key))
            (void)tv_at(r, tv_note_bool(r->a, facts, rows[k].key, true), i);
    tv_str rest;
    if (tv_str_starts(text, TV_S("GPU at PCI:")) && tv_past(text, "PCI:", &rest)) {
        tv_note *list = tv_note_list(r->a, facts, "named_gpus");
        (void)tv_tally(r, list, "pci", tv_take_pci(&rest), i);
    }
}

typedef struct driver_row {
    const char *head; /* NULL: anywhere */
    void (*read)(tv_reading *r, tv_note *facts, tv_str text, size_t i);
} driver_row;

static const driver_row rows[] = {
    {"The NVIDIA probe routine", read_probe},
    {"The NVIDIA ", read_installed},
    {"GPU 0", read_gpu},
    {"GPU at 0", read_gpu},
    {"RmInitAdapter failed!", read_gpu},
    {"API mismatch: ", read_api},
    {"This PCI I/O region", read_region},
    {"loading NVIDIA", read_loading},
    {"Open nvidia.ko is only ready", read_open_only},
};

bool tv_driver_line_is(tv_str text)
{
    return text.n > 0;
}

void tv_driver_line(tv_reading *r, tv_note *facts, tv_str text, size_t i)
{
    (void)tv_note_bool(r->a, facts, "nvrm", true);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (tv_str_starts(text, tv_str_of(rows[k].head))) {
            rows[k].read(r, facts, text, i);
            break;
        }
    read_flag(r, facts, text, i);
}

/* ---- other modules ---- */

bool tv_module_line_is(tv_str line)
{
    return tv_holds(line, "nouveau 0") || tv_holds(line, "nvidia-modeset: Loading");
}

void tv_module_line(tv_reading *r, tv_note *facts, tv_str text, size_t i)
{
    tv_str rest;
    if (tv_past(text, "nouveau ", &rest)) {
        const tv_str pci = tv_take_pci(&rest);
        if (pci.n)
            (void)tv_tally(r, tv_note_list(r->a, facts, "nouveau"), "pci", pci, i);
        return;
    }
    read_loading(r, facts, text, i);
}

void tv_driver_sum_up(tv_arena *a, tv_note *facts)
{
    const bool nouveau = tv_noted_n(facts, "nouveau") > 0;
    if (isnan(tv_noted_num(facts, "unprobed_devices")))
        return;
    /* The message names nouveau among others; only its own lines, or their lack of any other
     * suspect, say that it was it. */
    if (nouveau || tv_noted_bool(facts, "probe_names_nouveau", false))
        (void)tv_note_str(a, facts, "conflict", TV_S("nouveau"));
    if (nouveau && !tv_noted_str(facts, "pci").n)
        (void)tv_note_str(a, facts, "pci", tv_noted_str(facts, "nouveau.0.pci"));
}
