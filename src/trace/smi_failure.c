/* nvidia-smi, NVML, the container runtime and CUDA saying that they cannot work: one sighting for
 * each message. What stands beside it in the same paste (both versions, the upgrade that parted
 * them) belongs to it. */
#include "package_line.h"

#include <string.h>

enum { CHANGES = 64 };

typedef struct failure {
    const char *words; /* in the line */
    const char *error; /* canonical; NULL: what stands behind the words */
    const char *source;
} failure;

static const failure failures[] = {
    {"couldn't communicate with the NVIDIA driver", "couldn't communicate with the NVIDIA driver",
     "nvidia-smi"},
    {"NVIDIA-SMI has failed because it couldn't communicate",
     "couldn't communicate with the NVIDIA driver", "nvidia-smi"},
    {"NVIDIA-SMI couldn't find libnvidia-ml.so", "couldn't find libnvidia-ml.so", "nvidia-smi"},
    {"river/library version mismatch", "Driver/library version mismatch", "nvidia-smi"},
    {"Failed to initialize NVML: ", NULL, "nvidia-smi"},
    {"Unable to determine the device handle for GPU", NULL, "nvidia-smi"},
    {"Unable to determine the device handle for gpu", NULL, "nvidia-smi"},
    {"GPU is lost", "GPU is lost", "nvidia-smi"},
    {"does not have the necessary power cables", "power cables", "nvidia-smi"},
    {"system not yet initialized", "system not yet initialized", "cuda"},
    {"CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized", "cuda"},
    {"cudaErrorSystemNotReady", "system not yet initialized", "cuda"},
    {"unsupported display driver / cuda driver combination",
     "unsupported display driver / cuda driver combination", "cuda"},
    {"CUDA unknown error - this may be due to an incorrectly set up environment",
     "CUDA unknown error", "cuda"},
    {"CUDA_ERROR_UNKNOWN", "CUDA unknown error", "cuda"},
    {"cudaErrorUnknown", "CUDA unknown error", "cuda"},
    {"nvml error: driver not loaded", "Driver Not Loaded", "container"},
    {"nvml error: insufficient permissions", "Insufficient Permissions", "container"},
    {"nvml error: unknown error", "Unknown Error", "container"},
};

static tv_str up_to(tv_str s, const char *ends)
{
    size_t n = 0;
    while (n < s.n && !(s.p[n] && strchr(ends, s.p[n])))
        n++;
    return tv_str_trim(tv_str_take(s, n));
}

static tv_str bare_error(tv_str s)
{
    s = tv_str_trim(s);
    if (tv_str_starts(s, TV_S("(")))
        s = tv_str_drop(s, 1);
    return up_to(s, ".()\"\\");
}

static const failure *failure_in(tv_str line)
{
    for (size_t k = 0; k < sizeof failures / sizeof *failures; k++)
        if (tv_holds(line, failures[k].words))
            return &failures[k];
    static const failure none = {"No devices were found", "No devices were found", "nvidia-smi"};
    return tv_str_starts(tv_bare(line), TV_S("No devices were found")) ? &none : NULL;
}

/* ---- the parts of a message ---- */

/* "... for GPU0000:07:00.0: Unknown Error", "... for GPU 0000:07:00.0: GPU is lost.  Reboot ..." */
static void read_handle(tv_reading *r, tv_note *facts, tv_str line)
{
    tv_str rest;
    if (!tv_past(line, "device handle for GPU", &rest) &&
        !tv_past(line, "device handle for gpu", &rest))
        return;
    (void)tv_note_bool(r->a, facts, "no_space_after_GPU", !tv_str_starts(rest, TV_S(" ")));
    tv_str word = tv_take_word(&rest);
    while (word.n && word.p[word.n - 1] == ':')
        word.n--;
    if (tv_str_u64(word).ok) { /* "GPU1: 0000:82:00.0: Unknown Error" of later drivers */
        word = tv_take_word(&rest);
        while (word.n && word.p[word.n - 1] == ':')
            word.n--;
    }
    (void)tv_note_str(r->a, facts, "pci", word);
    (void)tv_note_str(r->a, facts, "error", bare_error(rest));
}

static void read_error(tv_reading *r, tv_note *facts, const failure *f, tv_str line)
{
    tv_str rest;
    (void)tv_past(line, f->words, &rest);
    if (f->error)
        (void)tv_note_str(r->a, facts, "error", tv_str_of(f->error));
    else
        (void)tv_note_str(r->a, facts, "error", bare_error(rest));
    read_handle(r, facts, line);
    (void)tv_note_str(r->a, facts, "source", tv_str_of(f->source));
}

/* What follows within a few lines: the second message, the library's version. */
static void read_tail(tv_reading *r, tv_note *facts, size_t i)
{
    for (size_t k = i; k < r->sheet->n && k <= i + 6; k++) {
        const tv_str line = r->sheet->v[k].s;
        const tv_str version = tv_enclosed(line, "NVML library version: ", NULL);
        const tv_str second = tv_enclosed(line, "Failed to properly shut down NVML: ", NULL);
        if (version.n)
            (void)tv_at(r, tv_note_str(r->a, facts, "nvml_version_line", up_to(version, " ()")), k);
        if (second.n) { /* only the nvidia-smi that WSL brings says this */
            (void)tv_at(r, tv_note_str(r->a, facts, "second_line", bare_error(second)), k);
            (void)tv_at(r, tv_note_str(r->a, facts, "platform", TV_S("wsl")), k);
        }
    }
    if (tv_noted_is(facts, "error", "Driver/library version mismatch") &&
        !tv_noted(facts, "nvml_version_line"))
        (void)tv_note_null(r->a, facts, "nvml_version_line");
}

/* The versions are told by the driver itself, or by the packages that were changed. */
static void read_upgrade(tv_reading *r, tv_note *facts)
{
    tv_package_change v[CHANGES];
    const size_t n = tv_package_changes(r->sheet, v, CHANGES);
    if (!n)
        return;
    const tv_package_change *last = &v[n - 1];
    for (size_t k = n; k--;)
        if (tv_str_eq(v[k].time, last->time) && tv_str_eq(v[k].to, last->to))
            last = &v[k]; /* the first package of the last step */
    if (last->from.n)
        (void)tv_at(r, tv_note_str(r->a, facts, "loaded_kernel_module", last->from), last->i);
    (void)tv_at(r, tv_note_str(r->a, facts, "library", last->to), last->i);
    (void)tv_at(r, tv_note_str(r->a, facts, "package", last->package), last->i);
    if (last->by.n)
        (void)tv_note_str(r->a, facts, "cause", last->by);
    if (last->time.n)
        (void)tv_at(r, tv_note_str(r->a, facts, "upgrade_time", last->time), last->i);
}

static bool already(const tv_reading *r, const tv_note *facts, const tv_sighting *self)
{
    for (const tv_sighting *s = tv_scene_first(r->scene, "smi-failure"); s;
         s = tv_scene_next(s, "smi-failure"))
        if (s != self && tv_str_eq(s->file, r->sheet->file) &&
            tv_str_eq(tv_noted_str(&s->facts, "error"), tv_noted_str(facts, "error")) &&
            tv_str_eq(tv_noted_str(&s->facts, "pci"), tv_noted_str(facts, "pci")))
            return true;
    return false;
}

static bool mismatch(const tv_note *facts)
{
    return tv_noted_is(facts, "error", "Driver/library version mismatch");
}

static void read_failure(tv_reading *r, const failure *f, size_t i)
{
    tv_note facts = {.type = TV_NOTE_MAP};
    read_error(r, &facts, f, r->sheet->v[i].s);
    if (already(r, &facts, NULL)) /* a message that a loop prints over and over */
        return;
    read_tail(r, &facts, i);
    if (mismatch(&facts))
        read_upgrade(r, &facts);
    tv_see(r, "smi-failure", i)->facts = facts;
}

static void read(tv_reading *r)
{
    for (size_t i = 0; i < r->sheet->n; i++) {
        const failure *f = failure_in(r->sheet->v[i].s);
        if (f)
            read_failure(r, f, i);
    }
}

static const char *const needles[] = {
    "NVIDIA-SMI has failed because",
    "couldn't communicate with the NVIDIA driver",
    "NVIDIA-SMI couldn't find libnvidia-ml.so",
    "river/library version mismatch",
    "Failed to initialize NVML: ",
    "Unable to determine the device handle for GPU",
    "Unable to determine the device handle for gpu",
    "No devices were found",
    "GPU is lost",
    "does not have the necessary power cables",
    "system not yet initialized",
    "CUDA_ERROR_SYSTEM_NOT_READY",
    "cudaErrorSystemNotReady",
    "unsupported display driver / cuda driver combination",
    "CUDA unknown error - this may be due to",
    "CUDA_ERROR_UNKNOWN",
    "cudaErrorUnknown",
    "nvml error: ",
    NULL,
};

extern const tv_log_format tv_log_format_smi_failure;
const tv_log_format tv_log_format_smi_failure = {"smi-failure", needles, read};
