/* The driver that is loaded, the one that is installed, and what keeps them from working. */
#include "diagnose.h"
#include "xid_seen.h"

#include <math.h>

/* ---- what several files say of the driver ---- */

typedef struct driver_view {
    const tv_sighting *failure; /* that names a mismatch */
    tv_str loaded, library, package, time, by;
    const tv_sighting *loaded_at, *library_at, *upgrade_at;
    const tv_note *upgrade;
} driver_view;

static const tv_sighting *failure_of(const tv_scene *scene, const char *error)
{
    for (const tv_sighting *s = tv_scene_first(scene, "smi-failure"); s;
         s = tv_scene_next(s, "smi-failure"))
        if (tv_noted_is(&s->facts, "error", error))
            return s;
    return NULL;
}

/* The first sighting whose facts have that word. */
static const tv_sighting *with(const tv_scene *scene, const char *kind, const char *key)
{
    for (const tv_sighting *s = tv_scene_first(scene, kind); s; s = tv_scene_next(s, kind))
        if (tv_noted_str(&s->facts, key).n)
            return s;
    return NULL;
}

static tv_str word(const tv_sighting *s, const char *key)
{
    return s ? tv_noted_str(&s->facts, key) : (tv_str){0};
}

/* The last driver package that was changed. */
static void find_upgrade(const tv_scene *scene, driver_view *v)
{
    for (const tv_sighting *s = tv_scene_first(scene, "driver"); s;
         s = tv_scene_next(s, "driver")) {
        const tv_note *list = tv_noted(&s->facts, "upgrades");
        const tv_note *last = list ? list->last : NULL;
        if (!last)
            continue;
        for (const tv_note *u = list->first; u; u = u->next) /* the first of its step */
            if (tv_str_eq(tv_noted_str(u, "time"), tv_noted_str(last, "time"))) {
                last = u;
                break;
            }
        v->upgrade_at = s;
        v->upgrade = last;
    }
    if (!v->upgrade)
        return;
    v->package = tv_noted_str(v->upgrade, "package");
    v->time = tv_noted_str(v->upgrade, "time");
    v->by = tv_noted_str(v->upgrade, "by");
    if (!v->loaded.n)
        v->loaded = tv_noted_str(v->upgrade, "from");
    if (!v->library.n)
        v->library = tv_noted_str(v->upgrade, "to");
}

static driver_view view_of(const tv_scene *scene)
{
    static const char *const kinds[] = {"driver", "xid", "smi-failure"};
    driver_view v = {0};
    for (size_t k = 0; k < 3; k++) {
        const tv_sighting *loaded = with(scene, kinds[k], "loaded_kernel_module");
        const tv_sighting *library = with(scene, kinds[k], "library");
        if (loaded && !v.loaded.n) {
            v.loaded_at = loaded;
            v.loaded = word(loaded, "loaded_kernel_module");
        }
        if (library && !v.library.n) {
            v.library_at = library;
            v.library = word(library, "library");
        }
    }
    const tv_sighting *log = with(scene, "xid", "driver");
    if (!v.loaded.n && log) {
        v.loaded_at = log;
        v.loaded = word(log, "driver");
    }
    find_upgrade(scene, &v);
    v.failure = failure_of(scene, "Driver/library version mismatch");
    if (!v.failure)
        v.failure = failure_of(scene, "unsupported display driver / cuda driver combination");
    if (!v.library.n && v.failure)
        v.library = word(v.failure, "nvml_version_line");
    return v;
}

/* "570.124.04" and "570.124.06": alike up to the last component. */
static bool last_differs(tv_str x, tv_str y)
{
    size_t dots = 0, same = 0;
    while (same < x.n && same < y.n && x.p[same] == y.p[same])
        dots += x.p[same++] == '.';
    return dots == 2 && !tv_str_eq(x, y);
}

static const tv_sighting *api_mismatch(const tv_scene *scene)
{
    for (const tv_sighting *s = tv_scene_first(scene, "xid"); s; s = tv_scene_next(s, "xid"))
        if (tv_noted_num(&s->facts, "api_mismatches") > 0)
            return s;
    return NULL;
}

static void add_versions(tv_inquiry *q, tv_finding *f, const driver_view *v)
{
    tv_found_str(q, f, "loaded", v->loaded);
    tv_found_str(q, f, "library", v->library);
    tv_found_str(q, f, "package", v->package);
    tv_found_str(q, f, "time", v->time);
    tv_found_str(q, f, "by", v->by);
    if (v->loaded_at)
        tv_found_also(q, f, v->loaded_at, tv_noted(&v->loaded_at->facts, "loaded_kernel_module"));
    if (v->library_at)
        tv_found_also(q, f, v->library_at, tv_noted(&v->library_at->facts, "library"));
    if (v->upgrade)
        tv_found_also(q, f, v->upgrade_at, v->upgrade);
}

/* ---- S01, S02 ---- */

static const char *const by_upgrade = N_(
    "The driver's libraries were replaced while the old module stayed loaded: {package} went to "
    "{library} at {time} ({by}), the loaded module is {loaded}. Programs that run already keep the "
    "old libraries and go on; whatever starts now fails.");
static const char *const both_known =
    N_("The loaded kernel module is {loaded}, the libraries are {library}. Programs that were "
       "started before go on; whatever starts now fails until module and libraries are the same "
       "version.");

static void judge_mismatch(tv_inquiry *q, const tv_rule *rule)
{
    const driver_view v = view_of(q->scene);
    const tv_sighting *api = api_mismatch(q->scene);
    const bool parted = last_differs(v.loaded, v.library) && !v.upgrade;
    if ((!v.failure && !api) || parted)
        return;
    tv_finding *f = v.failure ? tv_found(q, rule, v.failure, NULL)
                              : tv_found(q, rule, api, tv_noted(&api->facts, "library"));
    add_versions(q, f, &v);
    const bool both = v.loaded.n && v.library.n;
    if (both && v.package.n && v.time.n) {
        f->cause = by_upgrade;
        if (!v.by.n)
            tv_found_word(q, f, "by", N_("the package manager"));
    } else if (both) {
        f->cause = both_known;
    } else {
        tv_ask(q, "cat /proc/driver/nvidia/version; modinfo -F version nvidia",
               N_("The loaded module and the installed one: where they differ, a restart of the "
                  "module is all that is needed."));
    }
}

static void judge_last_component(tv_inquiry *q, const tv_rule *rule)
{
    const driver_view v = view_of(q->scene);
    const tv_sighting *api = api_mismatch(q->scene);
    if ((!v.failure && !api) || !last_differs(v.loaded, v.library) || v.upgrade)
        return;
    tv_finding *f = tv_found(q, rule, v.failure ? v.failure : api, NULL);
    add_versions(q, f, &v);
}

/* ---- S03, S04, S05 ---- */

static bool any_yes(const tv_scene *scene, const char *kind, const char *key,
                    const tv_sighting **at)
{
    for (const tv_sighting *s = tv_scene_first(scene, kind); s; s = tv_scene_next(s, kind))
        if (tv_noted_bool(&s->facts, key, false)) {
            *at = s;
            return true;
        }
    return false;
}

static const char *const secure_boot_on =
    N_("nvidia-smi cannot reach the driver, and Secure Boot is on: a module without an enrolled "
       "signature is refused. Whether that is so here, modprobe says.");

static void judge_secure_boot(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "driver"); s;
         s = tv_scene_next(s, "driver"))
        if (tv_noted_is(&s->facts, "modprobe_refusal", "key rejected")) {
            (void)tv_found(q, rule, s, tv_noted(&s->facts, "modprobe_refusal"));
            return;
        }
    const tv_sighting *failure =
        failure_of(q->scene, "couldn't communicate with the NVIDIA driver");
    const tv_sighting *on = NULL;
    if (!failure || !any_yes(q->scene, "driver", "secure_boot", &on))
        return;
    tv_finding *f = tv_found(q, rule, failure, NULL);
    tv_found_also(q, f, on, tv_noted(&on->facts, "secure_boot"));
    f->sure = TV_MEDIUM;
    f->cause = secure_boot_on;
    tv_ask(q, "sudo modprobe nvidia", N_("It says whether the key was rejected."));
}

static void judge_nouveau(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "xid"); s; s = tv_scene_next(s, "xid")) {
        if (!tv_noted_is(&s->facts, "conflict", "nouveau"))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "unprobed_devices"));
        tv_found_str(q, f, "pci", tv_noted_str(&s->facts, "pci"));
        tv_found_num(q, f, "devices", TV_ARG_COUNT, tv_noted_num(&s->facts, "unprobed_devices"));
        if (!tv_noted_n(&s->facts, "nouveau"))
            f->sure = TV_MEDIUM; /* the message names several suspects */
        else
            tv_found_also(q, f, s, tv_noted(&s->facts, "nouveau.0"));
        return;
    }
    for (const tv_sighting *s = tv_scene_first(q->scene, "lspci"); s;
         s = tv_scene_next(s, "lspci")) {
        const tv_note *list = tv_noted(&s->facts, "devices");
        for (const tv_note *d = list ? list->first : NULL; d; d = d->next)
            if (tv_noted_bool(d, "gpu", false) && tv_noted_is(d, "driver", "nouveau")) {
                tv_finding *f = tv_found(q, rule, s, tv_noted(d, "driver"));
                tv_found_str(q, f, "pci", tv_noted_str(d, "bdf"));
                tv_found_num(q, f, "devices", TV_ARG_COUNT, 1);
                return;
            }
    }
}

/* dkms built the module for other kernels than the one that runs. */
static bool lacks_module(const tv_scene *scene, const tv_sighting **at, tv_str *kernel)
{
    const tv_sighting *missing = NULL;
    if (any_yes(scene, "driver", "module_missing", &missing)) {
        *at = missing;
        *kernel = tv_noted_str(&missing->facts, "running_kernel");
        return true;
    }
    const tv_sighting *running = with(scene, "driver", "running_kernel");
    *kernel = word(running, "running_kernel");
    const tv_sighting *dkms = NULL;
    for (const tv_sighting *s = tv_scene_first(scene, "driver"); s;
         s = tv_scene_next(s, "driver")) {
        const tv_note *list = tv_noted(&s->facts, "dkms");
        for (const tv_note *item = list ? list->first : NULL; item; item = item->next) {
            dkms = s;
            if (kernel->n && tv_noted_is(item, "state", "installed") &&
                tv_str_eq(tv_noted_str(item, "kernel"), *kernel))
                return false;
        }
    }
    *at = dkms;
    return dkms && kernel->n;
}

static const char *const built_for_others =
    N_("The running kernel {kernel} has no NVIDIA module: it was built for another kernel, or not "
       "at all. A kernel update without the headers does that.");

static void judge_no_module(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *failure =
        failure_of(q->scene, "couldn't communicate with the NVIDIA driver");
    const tv_sighting *lacks = NULL;
    const tv_sighting *wsl = NULL;
    tv_str kernel = {0};
    const bool missing = lacks_module(q->scene, &lacks, &kernel);
    if (any_yes(q->scene, "driver", "wsl", &wsl) || tv_has_found(q, "S03") ||
        tv_has_found(q, "S04") || (!failure && !(missing && lacks)))
        return;
    tv_finding *f = tv_found(q, rule, failure ? failure : lacks, NULL);
    tv_found_str(q, f, "kernel", kernel);
    if (missing) {
        if (kernel.n)
            f->cause = built_for_others;
        tv_found_also(q, f, lacks, tv_noted(&lacks->facts, "dkms.0"));
        return;
    }
    f->sure = TV_LOW;
    tv_ask(q,
           "uname -r; dkms status; sudo modprobe nvidia; mokutil --sb-state; lsmod | grep -E "
           "'nvidia|nouveau'",
           N_("It tells a module that is missing from one that Secure Boot refuses and from a "
              "driver that nouveau keeps out."));
}

/* ---- S06 ---- */

static const char *const open_cannot =
    N_("The open kernel module does not support the GPU at {pci} ({pci_id}): it has no system "
       "processor (GSP), or the module is not released for it. It needs the proprietary module.");
static const char *const needs_open =
    N_("The GPU at {pci} ({pci_id}) works only with the open kernel modules, and the proprietary "
       "one is loaded. Blackwell and newer cards need the open ones.");
static const char *const legacy = N_(
    "The GPU at {pci} ({pci_id}) is no longer supported by this driver: it belongs to the legacy "
    "branch {branch}.");

static void judge_unsupported(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "xid"); s; s = tv_scene_next(s, "xid")) {
        const tv_note *list = tv_noted(&s->facts, "unsupported");
        for (const tv_note *item = list ? list->first : NULL; item; item = item->next) {
            tv_finding *f = tv_found(q, rule, s, item);
            const tv_str pci = tv_noted_str(item, "pci");
            const tv_str id = tv_noted_str(&s->facts, "pci_id");
            const tv_str branch = tv_noted_str(item, "legacy_branch");
            tv_found_str(q, f, "pci", pci.n ? pci : TV_S("?"));
            tv_found_str(q, f, "pci_id", id.n ? id : TV_S("?"));
            tv_found_str(q, f, "release", tv_noted_str(item, "release"));
            tv_found_str(q, f, "branch", branch);
            if (tv_noted_is(item, "by", "open")) {
                f->cause = open_cannot;
                tv_found_str(q, f, "to_proprietary", TV_S("nvidia-driver"));
            } else if (tv_noted_is(item, "by", "needs open")) {
                f->cause = needs_open;
                tv_found_str(q, f, "to_open", TV_S("nvidia-open"));
            } else if (branch.n) {
                f->cause = legacy;
            }
        }
    }
}

/* ---- S12, S18, S19, C17 ---- */

static void judge_unknown_error(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "smi-failure"); s;
         s = tv_scene_next(s, "smi-failure"))
        if (tv_noted_is(&s->facts, "error", "Unknown Error") && !tv_noted_str(&s->facts, "pci").n) {
            (void)tv_found(q, rule, s, NULL);
            tv_ask(q, "nvidia-smi -L",
                   N_("Run it on the host: if it works there, the container lost its device nodes; "
                      "if not, the GPU or the driver is the matter."));
            return;
        }
}

static bool fabric_is_down(const tv_scene *scene, const tv_sighting **at)
{
    for (const tv_sighting *s = tv_scene_first(scene, "driver"); s;
         s = tv_scene_next(s, "driver")) {
        const tv_str state = tv_noted_str(&s->facts, "fabric_manager");
        if (state.n && !tv_str_is(state, "active") && !tv_str_is(state, "activating")) {
            *at = s;
            return true;
        }
    }
    return false;
}

static void judge_not_ready(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = failure_of(q->scene, "system not yet initialized");
    if (!s)
        return;
    (void)tv_found(q, rule, s, NULL);
    tv_ask(q, "systemctl status nvidia-fabricmanager; cat /proc/driver/nvidia/version",
           N_("The service must run, and its version must be the driver's."));
}

static double switches(const tv_scene *scene)
{
    double n = 0;
    for (const tv_sighting *s = tv_scene_first(scene, "lspci"); s; s = tv_scene_next(s, "lspci")) {
        const double here = tv_noted_num(&s->facts, "nvswitches");
        n = here > n ? here : n;
    }
    return n;
}

static const char *const fabric_mismatch =
    N_("The fabric manager is version {fabric}, the driver {driver}: it refuses to set up the "
       "NVSwitches until both are the same.");
static const char *const no_links =
    N_("The machine has {switches} NVSwitches, and the topology shows no NVLink between its GPUs: "
       "the fabric was not set up. All traffic between GPUs goes over PCIe.");

static bool topology_without_links(const tv_scene *scene, const tv_sighting **at)
{
    for (const tv_sighting *s = tv_scene_first(scene, "topo"); s; s = tv_scene_next(s, "topo"))
        if (tv_noted(&s->facts, "nvlink") && !tv_noted_bool(&s->facts, "nvlink", true) &&
            tv_noted_num(&s->facts, "gpus") > 1) {
            *at = s;
            return true;
        }
    return false;
}

static void judge_fabric(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = NULL;
    const double n = switches(q->scene);
    if (fabric_is_down(q->scene, &s)) {
        const bool mismatch = tv_noted_is(&s->facts, "fabric_manager", "version mismatch");
        const bool needed = mismatch || n > 0 || failure_of(q->scene, "system not yet initialized");
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "fabric_manager"));
        tv_found_str(q, f, "state", tv_noted_str(&s->facts, "fabric_manager"));
        tv_found_str(q, f, "fabric", tv_noted_str(&s->facts, "fabric_manager_version"));
        tv_found_str(q, f, "driver", tv_noted_str(&s->facts, "fabric_driver_version"));
        if (mismatch)
            f->cause = fabric_mismatch;
        if (!needed)
            f->sure = TV_MEDIUM;
        return;
    }
    if (!(n > 0) || !topology_without_links(q->scene, &s))
        return;
    tv_finding *f = tv_found(q, rule, s, NULL);
    f->cause = no_links;
    tv_found_num(q, f, "switches", TV_ARG_COUNT, n);
    tv_ask(q, "systemctl status nvidia-fabricmanager", N_("It says why the fabric is not set up."));
}

static const char *const after_sleep =
    N_("CUDA cannot start (unknown error), and the machine woke from sleep in this log: the module "
       "nvidia_uvm loses its state over a suspend. The driver itself works.");

static void judge_unknown_cuda(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = failure_of(q->scene, "CUDA unknown error");
    if (!s || tv_has_found(q, "H13") || tv_has_found(q, "S18"))
        return;
    tv_finding *f = tv_found(q, rule, s, NULL);
    for (const tv_sighting *k = tv_scene_first(q->scene, "kernel"); k;
         k = tv_scene_next(k, "kernel"))
        if (tv_noted_n(&k->facts, "wakeups")) {
            f->cause = after_sleep;
            f->sure = TV_MEDIUM;
            tv_found_also(q, f, k, tv_noted(&k->facts, "wakeups.0"));
            return;
        }
    f->sure = TV_LOW;
    tv_ask(q, "sudo dmesg -T | grep -iE 'suspend|NVRM|nvidia_uvm'",
           N_("It shows whether the machine slept, or the driver reported an error."));
}

static const tv_rule rules[] = {
    {
        .id = "S01",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("Driver libraries and the loaded kernel module are of different versions"),
        .cause = N_("The libraries of the driver were replaced and the old kernel module stayed "
                    "loaded. Programs that run already keep the old libraries and go on; whatever "
                    "starts now fails."),
        .decided = N_("NVML says \"Driver/library version mismatch\", CUDA says that driver and "
                      "display driver do not go together, or the kernel logs an API mismatch. The "
                      "versions come from /proc/driver/nvidia/version, the kernel's log or the "
                      "package manager's history."),
        .unless =
            N_("Versions that part only in the last component come from two installers (S02)."),
        .source = "https://github.com/lyulyul/shine-cluster/issues/30",
        .steps =
            {{.command = "cat /proc/driver/nvidia/version; modinfo -F version nvidia",
              .why = N_("The loaded module against the installed one.")},
             {.command = "sudo lsof /dev/nvidia*",
              .why = N_("See which jobs still run on the old module: they work, so let them end or "
                        "save before the next step.")},
             {.command = "sudo reboot",
              .why =
                  N_("Loads the new module. It ends every job on the machine and cannot be taken "
                     "back.")},
             {.command = "sudo rmmod nvidia_drm nvidia_modeset nvidia_uvm nvidia && sudo modprobe "
                         "nvidia",
              .why =
                  N_("Instead of a restart, when no program uses a GPU any more (a desktop does); "
                     "it refuses while one does.")},
             {.command = "sudo apt-mark hold {package}",
              .undo = "sudo apt-mark unhold {package}",
              .why = N_("Keeps the driver from being replaced overnight; hold the other nvidia "
                        "packages too and update them at a stop that you choose.")}},
        .outranks = "S05 S08 S19",
        .judge = judge_mismatch,
    },
    {
        .id = "S02",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("Two installers left driver parts of nearly the same version"),
        .cause =
            N_("The loaded module is {loaded}, the libraries are {library}: they differ only in "
               "the last component, which happens when module and libraries come from "
               "different installers. They must be identical."),
        .decided = N_("A version mismatch whose two versions are known and differ in the last "
                      "component only, with no upgrade in the package history."),
        .unless = N_("An upgrade that only waits for a restart (S01)."),
        .source = "https://github.com/tinygrad/open-gpu-kernel-modules/issues/47",
        .steps = {{.command = "cat /proc/driver/nvidia/version; ls -l "
                              "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so*",
                   .why = N_("See both versions in full: NVML prints two components only.")},
                  {.why =
                       N_("Install module and libraries of the identical version from one source "
                          "(packages or the .run file, not both), then restart. Keep the old "
                          "installer for going back.")}},
        .outranks = "S05 S19",
        .judge = judge_last_component,
    },
    {
        .id = "S03",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("Secure Boot refuses the NVIDIA module"),
        .cause = N_("The kernel refused the NVIDIA module because its signature is not enrolled "
                    "(Secure Boot is on). The module exists and is not loaded."),
        .decided = N_("modprobe or the kernel says that the key was rejected or is not available. "
                      "Secure Boot on and a driver that does not answer count as likely."),
        .unless = N_("A module that is missing for this kernel (S05)."),
        .source = "https://github.com/NVIDIA/gpu-driver-container/issues/44",
        .steps = {{.command = "mokutil --sb-state", .why = N_("See whether Secure Boot is on.")},
                  {.command = "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der",
                   .undo = "sudo mokutil --delete /var/lib/shim-signed/mok/MOK.der",
                   .why = N_("Enrol the key that dkms signs with (the path is Ubuntu's; elsewhere "
                             "/var/lib/dkms/mok.pub), restart and confirm it on the blue screen.")},
                  {.why =
                       N_("Or install the distribution's signed module (linux-modules-nvidia), or "
                          "switch Secure Boot off in the BIOS, and note that you did.")}},
        .outranks = "S05 H25",
        .judge = judge_secure_boot,
    },
    {
        .id = "S04",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The nouveau driver holds the GPU"),
        .cause = N_("nouveau took the GPU at {pci} first, so the NVIDIA driver was not asked "
                    "({devices} devices)."),
        .decided = N_("The driver says that its probe routine was not called, and nouveau's lines "
                      "stand in the log or the message names it; or lspci shows nouveau in use."),
        .unless = N_("A probe that failed is not one that was not called: then the GPU or the "
                     "module's flavour is the matter (H13, S06)."),
        .source = "https://github.com/NixOS/nixpkgs/issues/16711",
        .steps =
            {{.command = "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee "
                         "/etc/modprobe.d/blacklist-nouveau.conf",
              .undo = "sudo rm /etc/modprobe.d/blacklist-nouveau.conf",
              .why = N_("Keep nouveau from loading.")},
             {.command = "sudo update-initramfs -u",
              .undo = "sudo rm /etc/modprobe.d/blacklist-nouveau.conf && sudo update-initramfs -u",
              .why = N_("Debian and Ubuntu; elsewhere sudo dracut -f. nouveau is in the early boot "
                        "image as well.")},
             {.command = "sudo reboot",
              .why = N_("It ends every job on the machine and cannot be taken back.")}},
        .outranks = "S05 H25",
        .judge = judge_nouveau,
    },
    {
        .id = "S05",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("No NVIDIA module is loaded"),
        .cause = N_("nvidia-smi cannot reach a driver: the kernel module is not loaded. Most often "
                    "the running kernel is newer than the module that was built."),
        .decided = N_("dkms or modprobe has no module for the running kernel (high); nvidia-smi "
                      "\"couldn't communicate\" alone is a candidate."),
        .unless =
            N_("Secure Boot that refuses the module (S03), nouveau (S04), WSL, where no module "
               "is loaded at all."),
        .source = "https://github.com/mattshma/bigdata/issues/133",
        .steps = {{.command = "uname -r; dkms status",
                   .why = N_("The running kernel, and the kernels "
                             "that the module was built for.")},
                  {.command = "sudo apt install linux-headers-$(uname -r)",
                   .undo = "sudo apt remove linux-headers-$(uname -r)",
                   .why = N_("What dkms needs to build it.")},
                  {.command = "sudo dkms autoinstall && sudo modprobe nvidia",
                   .undo = "sudo modprobe -r nvidia_drm nvidia_modeset nvidia_uvm nvidia",
                   .why = N_("Build and load it.")},
                  {.why =
                       N_("Until then: the older kernel in the boot menu still has its module.")}},
        .outranks = "S19",
        .judge = judge_no_module,
    },
    {
        .id = "S06",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("This driver does not support the GPU"),
        .cause = N_("The driver says that it does not support the GPU at {pci} ({pci_id})."),
        .decided = N_("\"installed in this system is not supported by\" the release or the open "
                      "module, \"requires use of the NVIDIA open kernel modules\", or the note on "
                      "legacy drivers."),
        .unless = N_("\"has fallen off the bus\" begins with the same words and is H13."),
        .source = "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/862",
        .steps =
            {{.command = "lspci -nn -d 10de:", .why = N_("See which GPU it is.")},
             {.command = "apt-cache policy {to_open}",
              .why = N_("Install the open flavour of the same version (nvidia-open, or "
                        "nvidia-driver-NNN-open on Ubuntu), then restart; the other package takes "
                        "it back.")},
             {.command = "apt-cache policy {to_proprietary}",
              .why = N_("Install the proprietary flavour of the same version, then restart; the "
                        "other package takes it back.")},
             {.command = "apt-cache search nvidia-legacy {branch}",
              .why = N_("Install the legacy branch that the message names.")},
             {.why = N_("Otherwise a newer driver: a card is known only to drivers released after "
                        "it.")}},
        .outranks = "H25 S05",
        .judge = judge_unsupported,
    },
    {
        .id = "S12",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("A container lost its GPU devices"),
        .cause =
            N_("NVML reports an unknown error at start. In a container that worked before, the "
               "device rules of its group were reset, which systemctl daemon-reload does."),
        .decided = N_("\"Failed to initialize NVML: Unknown Error\"."),
        .unless = N_("If nvidia-smi fails on the host too, it is not the container."),
        .source = "https://github.com/NVIDIA/nvidia-container-toolkit/issues/48",
        .steps = {{.command = "docker restart CONTAINER",
                   .why = N_(
                       "Brings the devices back for now. It ends the programs in the container and "
                       "cannot be taken back: save first.")},
                  {.command = "docker run --gpus all --device /dev/nvidia0 --device /dev/nvidiactl "
                              "--device /dev/nvidia-uvm IMAGE",
                   .why = N_("For good: name the device nodes, so that systemd knows of them.")},
                  {.why = N_(
                       "Or let the toolkit use CDI, or set \"exec-opts\": "
                       "[\"native.cgroupdriver=cgroupfs\"] in /etc/docker/daemon.json and restart "
                       "docker; keep a copy of the file for going back.")}},
        .judge = judge_unknown_error,
    },
    {
        .id = "C17",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The NVLink fabric is not set up"),
        .cause = N_("The fabric manager is {state}: without it the NVSwitches carry nothing, and "
                    "CUDA does not start on GPUs behind them."),
        .decided =
            N_("The service's status is not active, its log names another driver version, or "
               "the machine has NVSwitches and its topology no NVLink."),
        .unless = N_("Machines without NVSwitch do not need the service."),
        .source = "https://github.com/leptonai/gpud",
        .steps =
            {{.command = "systemctl status nvidia-fabricmanager",
              .why = N_("See why it does not run.")},
             {.command = "cat /proc/driver/nvidia/version; nv-fabricmanager --version",
              .why = N_("Both must be the same version; install the fabric manager of the driver's "
                        "version if they are not.")},
             {.command = "sudo systemctl enable --now nvidia-fabricmanager",
              .undo = "sudo systemctl disable --now nvidia-fabricmanager",
              .why = N_("Start it, now and at every start.")},
             {.command = "nvidia-smi topo -m", .why = N_("Afterwards: NV# between the GPUs.")}},
        .outranks = "S18 S19",
        .judge = judge_fabric,
    },
    {
        .id = "S18",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("CUDA waits for the NVLink fabric"),
        .cause =
            N_("CUDA says that the system is not yet initialised (error 802): on a machine with "
               "NVSwitch the fabric manager does not run, or is of another version than the "
               "driver."),
        .decided = N_("CUDA error 802, \"system not yet initialized\"."),
        .unless = N_("Shortly after a start it may only need a minute."),
        .source = "https://github.com/NVIDIA/DCGM",
        .steps = {{.command = "systemctl status nvidia-fabricmanager",
                   .why = N_("See whether it runs, and what it says.")},
                  {.command = "cat /proc/driver/nvidia/version; nv-fabricmanager --version",
                   .why = N_("Both must be the same version; install the fabric manager of the "
                             "driver's version if they are not.")},
                  {.command = "sudo systemctl enable --now nvidia-fabricmanager",
                   .undo = "sudo systemctl disable --now nvidia-fabricmanager",
                   .why = N_("Start it, now and at every start.")}},
        .outranks = "S19",
        .judge = judge_not_ready,
    },
    {
        .id = "S19",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("CUDA cannot start, the driver can"),
        .cause = N_("CUDA reports an unknown error at start. After a suspend the module nvidia_uvm "
                    "loses its state; a CUDA_VISIBLE_DEVICES that was changed after the program "
                    "started does the same."),
        .decided =
            N_("CUDA error 999 or \"CUDA unknown error\"; with a wake-up in the kernel's log "
               "it is likely, without one a candidate."),
        .unless = N_("A lost GPU (H13) or a fabric that is not set up (S18)."),
        .source = "https://github.com/pytorch/pytorch/issues/49081",
        .steps = {{.command = "nvidia-smi", .why = N_("It works: then it is CUDA's module alone.")},
                  {.command = "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm",
                   .why =
                       N_("Loads the module anew. It refuses while a program uses CUDA: let those "
                          "end first.")}},
        .judge = judge_unknown_cuda,
    },
};

extern const tv_rule_group tv_rule_group_driver_rules;
const tv_rule_group tv_rule_group_driver_rules = {"driver", N_("Driver and its modules"), rules,
                                                  sizeof rules / sizeof *rules};
