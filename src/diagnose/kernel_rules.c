/* What the kernel says of the host around the GPUs: sudden ends, memory, network cards, storage,
 * crashes in the CUDA libraries. */
#include "diagnose.h"
#include "xid_seen.h"

#include <math.h>

typedef void item_judge(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                        const tv_note *item);

static void each(tv_inquiry *q, const tv_rule *rule, const char *list_name, item_judge *judge)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "kernel"); s;
         s = tv_scene_next(s, "kernel")) {
        const tv_note *list = tv_noted(&s->facts, list_name);
        for (const tv_note *item = list ? list->first : NULL; item; item = item->next)
            judge(q, rule, s, item);
    }
}

/* ---- H12 ---- */

static bool has_gpu(const tv_scene *scene)
{
    static const char *const kinds[] = {"xid", "nvidia-smi", "smi-q", "train-log", "dmon"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (tv_scene_first(scene, kinds[k]))
            return true;
    return false;
}

static void judge_sudden(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = tv_scene_first(q->scene, "kernel");
    while (s && !tv_noted_n(&s->facts, "sudden_ends"))
        s = tv_scene_next(s, "kernel");
    if (!s || tv_has_found(q, "H13"))
        return;
    const tv_note *list = tv_noted(&s->facts, "sudden_ends");
    tv_finding *f = tv_found(q, rule, s, list->first);
    double n = 0;
    for (const tv_note *item = list->first; item; item = item->next) {
        tv_found_also(q, f, s, item);
        n += tv_noted_num(item, "n");
    }
    tv_found_num(q, f, "signs", TV_ARG_COUNT, n);
    tv_found_str(q, f, "sign", tv_noted_str(list->first, "what"));
    if (!has_gpu(q->scene))
        f->sure = TV_LOW;
    tv_ask(q, "sudo ipmitool sel elist",
           N_("The board's own log survives a power loss: it names power supplies and resets."));
}

/* ---- H33 ---- */

/* mcelog's default: a page is taken out of use after 10 corrected errors in a day. */
static const double corrected_burst = 10;

static const char *const uncorrected_memory = N_(
    "The host's memory had {uncorrected} uncorrectable errors ({dimm}). Data in memory was lost; "
    "programs that met it end or compute with wrong values.");

static void judge_dimm(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                       const tv_note *item)
{
    const double corrected = tv_noted_num(item, "corrected");
    const double uncorrected = tv_noted_num(item, "uncorrected");
    tv_finding *f = tv_found(q, rule, s, item);
    tv_found_str(q, f, "dimm", tv_noted_str(item, "dimm"));
    tv_found_num(q, f, "corrected", TV_ARG_COUNT, corrected);
    tv_found_num(q, f, "uncorrected", TV_ARG_COUNT, uncorrected);
    if (uncorrected > 0) {
        f->severity = TV_CRITICAL;
        f->cause = uncorrected_memory;
    } else if (corrected < corrected_burst) {
        f->severity = TV_INFO;
    }
}

static const char *const machine_check =
    N_("The processor reported {events} machine checks ({what}). Corrected ones cost nothing now; "
       "many of them, or one that is not corrected, mean failing memory or a failing processor.");

static void judge_check(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                        const tv_note *item)
{
    const bool bad = tv_noted_is(item, "what", "uncorrected");
    tv_finding *f = tv_found(q, rule, s, item);
    f->cause = machine_check;
    f->severity = bad                                          ? TV_CRITICAL
                  : tv_noted_num(item, "n") >= corrected_burst ? TV_WARNING
                                                               : TV_INFO;
    f->sure = bad ? TV_HIGH : TV_MEDIUM;
    tv_found_num(q, f, "events", TV_ARG_COUNT, tv_noted_num(item, "n"));
    tv_found_str(q, f, "what", tv_noted_str(item, "what"));
    tv_ask(q, "sudo ras-mc-ctl --errors", N_("It names the memory module that fails."));
}

static void judge_memory(tv_inquiry *q, const tv_rule *rule)
{
    each(q, rule, "edac", judge_dimm);
    each(q, rule, "machine_checks", judge_check);
}

/* ---- H34 ---- */

static const char *const hot_module =
    N_("The network card at {pci} reports a module above its temperature limit: the link is cut or "
       "slowed to save it.");
static const char *const low_slot_power =
    N_("The network card at {pci} says that the slot gives it too little power: it may keep its "
       "modules off or reset under load.");
static const char *const nic_fault =
    N_("The firmware of the network card at {pci} reports a fault: the card stops until it is "
       "reset.");
static const char *const bad_cable =
    N_("The network card at {pci} reports its cable or module as faulty or unplugged.");

static void judge_nic(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s, const tv_note *item)
{
    const tv_str what = tv_noted_str(item, "what");
    const double n = tv_noted_num(item, "n");
    const bool down = tv_str_is(what, "link down");
    /* one loss is how a port starts without a peer; two are a flap */
    if (tv_str_is(what, "link up") || (down && n < 2))
        return;
    tv_finding *f = tv_found(q, rule, s, item);
    tv_found_str(q, f, "pci", tv_noted_str(item, "pci"));
    tv_found_str(q, f, "interface", tv_noted_str(item, "interface"));
    tv_found_num(q, f, "events", TV_ARG_COUNT, n);
    tv_found_num(q, f, "slot_w", TV_ARG_WATTS, tv_noted_num(item, "slot_w"));
    if (tv_str_is(what, "module temperature"))
        f->cause = hot_module;
    else if (tv_str_is(what, "slot power"))
        f->cause = low_slot_power;
    else if (tv_str_is(what, "firmware fault"))
        f->cause = nic_fault;
    else if (!down)
        f->cause = bad_cable;
    if (tv_str_is(what, "firmware fault"))
        f->severity = TV_CRITICAL;
    if (tv_str_is(what, "slot power"))
        f->sure = TV_MEDIUM;
}

static void judge_nics(tv_inquiry *q, const tv_rule *rule)
{
    each(q, rule, "nics", judge_nic);
}

/* ---- C31 ---- */

static void judge_crash(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                        const tv_note *item)
{
    static const char *const libraries[] = {"libnccl",   "libcuda", "libcudnn",
                                            "libcublas", "librccl", "libnvidia"};
    const tv_str library = tv_noted_str(item, "library");
    for (size_t k = 0; k < sizeof libraries / sizeof *libraries; k++) {
        if (!tv_str_starts(library, tv_str_of(libraries[k])))
            continue;
        tv_finding *f = tv_found(q, rule, s, item);
        tv_found_str(q, f, "library", library);
        tv_found_str(q, f, "process", tv_noted_str(item, "process"));
        tv_found_num(q, f, "events", TV_ARG_COUNT, tv_noted_num(item, "n"));
        if (k > 0)
            f->sure = TV_LOW;
        return;
    }
}

static void judge_crashes(tv_inquiry *q, const tv_rule *rule)
{
    each(q, rule, "segfaults", judge_crash);
}

/* ---- D12, D13 ---- */

static void judge_server(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                         const tv_note *item)
{
    tv_finding *f = tv_found(q, rule, s, item);
    tv_found_str(q, f, "server", tv_noted_str(item, "server"));
    tv_found_num(q, f, "events", TV_ARG_COUNT, tv_noted_num(item, "n"));
}

static void judge_nfs(tv_inquiry *q, const tv_rule *rule)
{
    each(q, rule, "nfs", judge_server);
}

static bool grave(tv_str what)
{
    return tv_str_is(what, "medium error") || tv_str_is(what, "read-only") ||
           tv_str_is(what, "controller lost") || tv_str_is(what, "disk failure") ||
           tv_str_is(what, "filesystem error");
}

static void judge_disk(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                       const tv_note *item)
{
    tv_finding *f = tv_found(q, rule, s, item);
    const tv_note *list = tv_noted(item, "what");
    tv_buf b = tv_buf_in(q->a);
    f->severity = TV_WARNING;
    for (const tv_note *w = list ? list->first : NULL; w; w = w->next) {
        if (b.n)
            tv_puts(&b, ", ");
        tv_put(&b, w->s);
        if (grave(w->s))
            f->severity = TV_CRITICAL;
        tv_found_also(q, f, s, w);
    }
    const tv_str device = tv_noted_str(item, "device");
    tv_found_str(q, f, "device", device);
    tv_found_str(q, f, tv_str_starts(device, TV_S("nvme")) ? "nvme" : "disk", device);
    tv_found_str(q, f, "what", tv_buf_str(&b));
    tv_found_num(q, f, "events", TV_ARG_COUNT, tv_noted_num(item, "n"));
}

static void judge_disks(tv_inquiry *q, const tv_rule *rule)
{
    each(q, rule, "disks", judge_disk);
}

static const tv_rule rules[] = {
    {
        .id = "H12",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The machine went off without a word"),
        .cause = N_("The log ends abruptly and the next start finds what was not closed ({sign}), "
                    "with no error of a GPU before it. Under load the usual reason is the power "
                    "supply: recent cards draw up to twice their limit for milliseconds, and its "
                    "protection trips."),
        .decided =
            N_("A journal that was not closed, a filesystem that had to be recovered, or "
               "\"crash\" in last -x, and no lost GPU in the same files. Without any sign of "
               "a GPU the confidence is low."),
        .unless =
            N_("Somebody pulled the plug or pressed the button; the board's log (ipmitool sel) "
               "tells."),
        .source = "https://github.com/pytorch/pytorch/issues/3022",
        .steps =
            {{.command = "sudo nvidia-smi -pm 1",
              .undo = "sudo nvidia-smi -pm 0",
              .why = N_("Keep the driver loaded, so that the next setting stays.")},
             {.command = "sudo nvidia-smi -lgc 300,1500",
              .undo = "sudo nvidia-smi -rgc",
              .why =
                  N_("A test: without the highest clocks the peaks are gone. If the machine stays "
                     "up, the power supply is too weak or its cables are shared.")},
             {.command = "sudo ipmitool sel elist",
              .why = N_("See whether the board recorded a power fault.")},
             {.why = N_("Give each card its own cables from the supply; sum of the cards' limits "
                        "times 1.2, plus the processor, plus 15 % must fit the supply.")}},
        .judge = judge_sudden,
    },
    {
        .id = "H33",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The host's memory reports errors"),
        .cause = N_("The memory module {dimm} had {corrected} corrected errors. They cost little "
                    "each, but a module that needs correcting often fails soon."),
        .decided =
            N_("EDAC, rasdaemon or mcelog count 10 or more corrected errors of a module "
               "(mcelog's default threshold), or any that is not corrected (critical). Fewer "
               "are told for completeness."),
        .unless = NULL,
        .source = "https://github.com/openstreetmap/operations/issues/300",
        .steps = {{.command = "sudo ras-mc-ctl --errors",
                   .why = N_("See which module and how often; mcelog --client on older hosts.")},
                  {.why =
                       N_("Re-seat the module or replace it at the next stop; until then keep no "
                          "only copy of a result in memory for long.")}},
        .judge = judge_memory,
    },
    {
        .id = "H34",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("A network card or its module is in trouble"),
        .cause = N_("The link of the network card at {pci} went down {events} times: collectives "
                    "over it stall or time out."),
        .decided = N_("Two or more losses of the same port's link; a module above its temperature "
                      "limit; too little power from the slot; a fault of cable or firmware."),
        .unless = N_("One loss at start is a port without a peer."),
        .source = "https://github.com/leptonai/gpud",
        .steps = {{.command = "ibstat", .why = N_("See which ports are up, and at which rate.")},
                  {.command = "sudo mlxlink -d {pci} -m -c",
                   .why = N_("See temperature, power and error counters of the module.")},
                  {.why =
                       N_("Re-seat or replace the cable or module, clean the optics, improve the "
                          "airflow over them; for slot power use a slot of 75 W.")}},
        .judge = judge_nics,
    },
    {
        .id = "C31",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("A program crashed inside a CUDA library"),
        .cause =
            N_("{process} crashed inside {library} ({events} times). Most often two versions of "
               "the library are mixed, or this version has a bug."),
        .decided = N_("The kernel's segfault line names libnccl (or, less surely, another CUDA "
                      "library)."),
        .unless = N_("A crash elsewhere that damaged memory first also ends there."),
        .source = "https://github.com/sgl-project/sglang/issues/2803",
        .steps = {{.command = "python -c 'import torch; print(torch.__version__, "
                              "torch.cuda.nccl.version())'",
                   .why = N_("See which version the program was built with.")},
                  {.command = "pip list | grep -i -E 'nccl|cuda|cudnn|torch'",
                   .why = N_("See whether another one is installed beside it; LD_LIBRARY_PATH may "
                             "bring a third.")},
                  {.why = N_("Install the one that the framework's wheel asks for, in a fresh "
                             "environment, so that the old one stays for going back.")}},
        .outranks = "C18",
        .judge = judge_crashes,
    },
    {
        .id = "D12",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("A file server does not answer"),
        .cause = N_("The NFS server {server} did not answer ({events} times): every read from it "
                    "waits, and so does the loader."),
        .decided = N_("The kernel's line \"nfs: server ... not responding\"."),
        .unless = NULL,
        .source = "https://github.com/leptonai/gpud",
        .steps = {{.command = "nfsstat -c", .why = N_("See retransmissions and calls.")},
                  {.command = "ping -c 5 {server}",
                   .why = N_("See whether the network reaches it.")},
                  {.why = N_("Have the server's load and network looked at; copy the data set to a "
                             "local disk for training.")}},
        .judge = judge_nfs,
    },
    {
        .id = "D13",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("A disk is failing"),
        .cause =
            N_("The disk or filesystem {device} reports trouble ({what}, {events} lines): reads "
               "repeat or fail, and data may be lost."),
        .decided =
            N_("The kernel reports time-outs or resets of an NVMe drive, I/O or medium errors, "
               "a filesystem error or a remount as read-only. Medium errors, read-only and "
               "lost controllers are critical."),
        .unless = N_("Optical drives, floppy and loop devices are left out."),
        .source = "https://github.com/leptonai/gpud",
        .steps = {{.command = "sudo nvme smart-log /dev/{nvme}",
                   .why = N_("Look at media errors, spare and wear.")},
                  {.command = "sudo smartctl -a /dev/{disk}",
                   .why = N_("Look at reallocated and pending sectors.")},
                  {.why =
                       N_("Save checkpoints and data elsewhere now; then replace the disk, or its "
                          "cable or slot if its own counters are clean.")}},
        .judge = judge_disks,
    },
};

extern const tv_rule_group tv_rule_group_kernel_rules;
const tv_rule_group tv_rule_group_kernel_rules = {"kernel", N_("The host, by its kernel"), rules,
                                                  sizeof rules / sizeof *rules};
