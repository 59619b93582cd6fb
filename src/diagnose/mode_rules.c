/* Modes of the card and of the system around it: WSL, Windows, MIG, compute and persistence mode.
 */
#include <math.h>

#include "cards.h"

/* ---- S13, S14, I11 ---- */

/* Windows' driver is fine and WSL's own nvidia-smi runs, but finds a foreign library first. */
static bool is_wsl_failure(const tv_sighting *s)
{
    const tv_note *f = &s->facts;
    return tv_noted_is(f, "platform", "wsl") || tv_noted_str(f, "second_line").n;
}

static void judge_wsl_driver(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "nvidia-smi"); s;
         s = tv_scene_next(s, "nvidia-smi"))
        if (tv_noted_is(&s->facts, "cuda", "ERR!") && tv_noted_is(&s->facts, "platform", "wsl")) {
            tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "cuda"));
            f->weight = 0.5;
            tv_found_str(q, f, "driver", tv_noted_str(&s->facts, "driver"));
            return;
        }
    for (const tv_sighting *s = tv_scene_first(q->scene, "smi-failure"); s;
         s = tv_scene_next(s, "smi-failure")) {
        if (!is_wsl_failure(s) ||
            tv_str_has(tv_noted_str(&s->facts, "error"), TV_S("blocked by the operating system")) ||
            tv_str_has(tv_noted_str(&s->facts, "error"), TV_S("mismatch")))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        f->severity = TV_CRITICAL;
        f->weight = 0.6;
        f->cause = N_("nvidia-smi of WSL cannot reach the driver, although the driver lives on the "
                      "Windows side: a Linux driver package in the distribution hides the library "
                      "that WSL puts in /usr/lib/wsl/lib, or the Windows driver is missing.");
        return;
    }
}

static void judge_wsl_gaps(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++) {
        const tv_note *util = tv_noted(all.v[i].note, "util_frac");
        if (tv_noted_is(&all.v[i].s->facts, "platform", "wsl") && util &&
            isnan(tv_card_num(&all.v[i], "util_frac")))
            tv_card_hit_add(q, &hits, &all.v[i], "util_frac", 1);
    }
    (void)tv_cards_found(q, rule, &hits);
}

static void judge_wddm(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++)
        if (tv_card_says(&all.v[i], "driver_model", "WDDM"))
            tv_card_hit_add(q, &hits, &all.v[i], "driver_model", 1);
    (void)tv_cards_found(q, rule, &hits);
}

/* ---- S15 ---- */

static const tv_sighting *busy_error(const tv_inquiry *q)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "install-error"); s;
         s = tv_scene_next(s, "install-error"))
        if (tv_noted_is(&s->facts, "what", "devices-busy"))
            return s;
    return NULL;
}

static void judge_compute_mode(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *error = busy_error(q);
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    bool prohibited = false;
    for (size_t i = 0; i < all.n; i++) {
        const bool none = tv_card_says(&all.v[i], "compute_mode", "Prohibited");
        const bool one = tv_card_says(&all.v[i], "compute_mode", "Exclusive_Process") ||
                         tv_card_says(&all.v[i], "compute_mode", "Exclusive_Thread");
        if (!none && !one)
            continue;
        tv_card_hit_add(q, &hits, &all.v[i], "compute_mode", none ? 2 : 1);
        prohibited = prohibited || none;
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f) {
        if (error) {
            tv_ask(q, "nvidia-smi --query-gpu=index,compute_mode --format=csv",
                   N_("Whether the card lets only one process in, or none."));
        }
        return;
    }
    const tv_card *card = hits.v[hits.worst].card;
    tv_found_str(q, f, "mode", tv_noted_str(card->note, "compute_mode"));
    if (error)
        tv_found_also(q, f, error, NULL);
    f->severity = error ? TV_CRITICAL : prohibited ? TV_WARNING : TV_INFO;
    if (!error && !prohibited)
        f->cause = N_("{cards} is in compute mode {mode}: one process at a time. A second one gets "
                      "\"all CUDA-capable devices are busy or unavailable\".");
}

/* ---- S16, S17 ---- */

static bool mig_is_on(const tv_card *card)
{
    return tv_str_is(tv_noted_str(card->note, "mig"), "Enabled");
}

static size_t slices_of(const tv_card *card)
{
    const tv_note *list = tv_noted(&card->s->facts, "mig_devices");
    const double index = tv_card_num(card, "index");
    size_t n = 0;
    for (const tv_note *slice = list ? list->first : NULL; slice; slice = slice->next)
        n += isnan(index) || tv_noted_num(slice, "gpu") == index;
    return n;
}

static void judge_no_slices(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++)
        if (mig_is_on(&all.v[i]) && tv_noted(&all.v[i].s->facts, "mig_devices") &&
            slices_of(&all.v[i]) == 0)
            tv_card_hit_add(q, &hits, &all.v[i], "mig", 1);
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (f)
        f->weight = 0.7;
}

/* "0,1" without a letter: numbers mean whole cards. */
static bool are_numbers(tv_str value)
{
    bool comma = false;
    for (size_t i = 0; i < value.n; i++) {
        comma = comma || value.p[i] == ',';
        if (value.p[i] != ',' && (value.p[i] < '0' || value.p[i] > '9'))
            return false;
    }
    return comma;
}

static const tv_sighting *needs_whole_cards(const tv_inquiry *q, const tv_note **at)
{
    static const char *const kinds[] = {"nccl", "watchdog"};
    for (const tv_sighting *s = tv_scene_first(q->scene, "environ"); s;
         s = tv_scene_next(s, "environ"))
        if (are_numbers(tv_noted_str(&s->facts, "vars.CUDA_VISIBLE_DEVICES"))) {
            *at = tv_noted(&s->facts, "vars.CUDA_VISIBLE_DEVICES");
            return s;
        }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (tv_scene_first(q->scene, kinds[i]))
            return tv_scene_first(q->scene, kinds[i]);
    return NULL;
}

static void judge_slices_together(tv_inquiry *q, const tv_rule *rule)
{
    const tv_note *at = NULL;
    const tv_sighting *other = needs_whole_cards(q, &at);
    if (!other)
        return;
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++)
        if (mig_is_on(&all.v[i]) && slices_of(&all.v[i]))
            tv_card_hit_add(q, &hits, &all.v[i], "mig", 1);
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (f)
        tv_found_also(q, f, other, at);
}

/* ---- S23 ---- */

static bool is_server_card(const tv_inquiry *q, const tv_card *card)
{
    return tv_noted_is(tv_card_record(q, card), "segment", "datacenter") ||
           tv_str_starts(card->name, TV_S("Tesla"));
}

static void judge_persistence(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    double took_s = (double)NAN;
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        const double took = tv_noted_num(&card->s->facts, "took_s");
        const tv_str platform = tv_noted_str(&card->s->facts, "platform");
        if (!tv_card_says(card, "persistence", "Off") || platform.n ||
            (!(took >= 2) && !is_server_card(q, card)))
            continue;
        tv_card_hit_add(q, &hits, card, "persistence", took >= 2 ? took : 0);
        if (took >= 2)
            took_s = took;
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    tv_found_num(q, f, "took_s", TV_ARG_SECONDS, took_s);
    if (isnan(took_s)) {
        f->severity = TV_INFO;
        f->cause = N_("Persistence mode is off on {cards}: while no process uses it the driver "
                      "unloads its state, and the next start takes seconds longer.");
    }
}

static const tv_rule rules[] = {
    {
        .id = "S13",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("A Linux driver package hides the driver of WSL"),
        .cause =
            N_("WSL: the Windows driver {driver} answers, but CUDA Version reads ERR!: a Linux "
               "driver package in the distribution puts its own libcuda before the one in "
               "/usr/lib/wsl/lib."),
        .decided =
            N_("nvidia-smi of WSL (its version differs from the driver's) shows CUDA Version: "
               "ERR!, or cannot reach the driver and says so in the two lines that only the "
               "tool of WSL prints."),
        .unless = N_("Outside WSL the same first line means that the kernel module is not loaded "
                     "(S05)."),
        .source = "https://github.com/microsoft/WSL/issues/11589",
        .steps = {{.command = "ldconfig -p | grep libcuda",
                   .why = N_("Only /usr/lib/wsl/lib may be listed.")},
                  {.command = "dpkg -l | grep -i nvidia",
                   .why = N_("Driver packages of Linux (nvidia-driver-*, libnvidia-compute-*) do "
                             "not belong here; toolkits may stay.")},
                  {.command = "sudo apt-get remove --purge 'nvidia-driver-*' 'libnvidia-compute-*'",
                   .undo = "sudo apt-get install nvidia-driver-NNN",
                   .why = N_("Removes them; NNN is the branch that dpkg listed.")},
                  {.command = "wsl --shutdown",
                   .why = N_("In Windows: the next start sees the driver anew. It ends all WSL "
                             "sessions.")}},
        .outranks = "S05 S07 S08",
        .judge = judge_wsl_driver,
    },
    {
        .id = "S16",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("MIG is on, but the card is not divided"),
        .cause = N_("MIG is enabled on {cards} and no instance exists: CUDA sees no device on it."),
        .decided = N_("MIG M. is Enabled and no MIG device of that card is listed."),
        .unless = N_("A listing that was cut before its MIG section is not judged."),
        .source = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/index.html",
        .steps = {{.command = "nvidia-smi mig -lgip -i {gpus}",
                   .why = N_("The profiles that the card offers.")},
                  {.command = "sudo nvidia-smi mig -cgi 9,9 -C -i {gpus}",
                   .undo =
                       "sudo nvidia-smi mig -dci -i {gpus} && sudo nvidia-smi mig -dgi -i {gpus}",
                   .why = N_("Divides it into two halves (profile 9 of an A100 or H100).")},
                  {.command = "sudo nvidia-smi -i {gpus} -mig 0",
                   .undo = "sudo nvidia-smi -i {gpus} -mig 1",
                   .why = N_("Or: the whole card again. It needs a reset while nothing runs.")}},
        .outranks = "S07",
        .judge = judge_no_slices,
    },
    {
        .id = "S15",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The compute mode keeps processes out"),
        .cause = N_("{cards} is in compute mode {mode}: further processes get \"all CUDA-capable "
                    "devices are busy or unavailable\"."),
        .decided = N_("Compute mode Prohibited or exclusive; with CUDA's message in the same files "
                      "it is the cause, an exclusive mode without it is only told."),
        .unless = N_("Schedulers set the exclusive mode on purpose."),
        .source = "https://docs.nvidia.com/deploy/nvidia-smi/index.html",
        .steps = {{.command = "sudo nvidia-smi -i {gpus} -c DEFAULT",
                   .undo = "sudo nvidia-smi -i {gpus} -c {mode}",
                   .why = N_("Lets several processes in. Modes are named, never numbered: the "
                             "number 1 has changed its meaning between drivers.")}},
        .judge = judge_compute_mode,
    },
    {
        .id = "S17",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("MIG instances cannot work together"),
        .cause = N_("{cards} is divided into MIG instances, and a job wants several devices: "
                    "between instances there is no peer-to-peer and no NCCL, and numbers in "
                    "CUDA_VISIBLE_DEVICES reach one instance at most."),
        .decided = N_("MIG instances are listed beside an NCCL log, or beside a "
                      "CUDA_VISIBLE_DEVICES with several numbers."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/index.html",
        .steps = {{.command = "nvidia-smi -L",
                   .why = N_("The UUID of each instance: one process per instance, named by it in "
                             "CUDA_VISIBLE_DEVICES.")},
                  {.command = "sudo nvidia-smi -i {gpus} -mig 0",
                   .undo = "sudo nvidia-smi -i {gpus} -mig 1",
                   .why = N_("Whole cards for jobs over several devices. It needs an idle card; "
                             "instances are to be made again after the undo.")}},
        .judge = judge_slices_together,
    },
    {
        .id = "S23",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Persistence mode is off"),
        .cause = N_("nvidia-smi took {took_s} with persistence mode off on {cards}: the driver "
                    "initialises the card for every first user, and the first CUDA call of a job "
                    "waits as long."),
        .decided = N_("Persistence mode is off and the command is seen to take 2 s or more. On a "
                      "data-centre card without a time it is only told."),
        .unless = N_("With a display on the card the driver stays loaded anyway."),
        .source = "https://docs.nvidia.com/deploy/driver-persistence/index.html",
        .steps = {{.command = "sudo nvidia-smi -pm 1",
                   .undo = "sudo nvidia-smi -pm 0",
                   .why = N_("Until the next reboot.")},
                  {.command = "sudo systemctl enable --now nvidia-persistenced",
                   .undo = "sudo systemctl disable --now nvidia-persistenced",
                   .why = N_("For good.")}},
        .judge = judge_persistence,
    },
    {
        .id = "S14",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("WSL does not show utilisation"),
        .cause = N_("Under WSL utilisation and processes of {cards} are not available: a limit of "
                    "the platform, not a fault."),
        .decided = N_("A listing of WSL whose utilisation is N/A."),
        .unless = NULL,
        .source = "https://github.com/microsoft/WSL/issues/7162",
        .steps = {{.command = "nvidia-smi.exe",
                   .why = N_("The Windows side knows them: run it there, or from WSL with the "
                             "ending .exe.")}},
        .judge = judge_wsl_gaps,
    },
    {
        .id = "I11",
        .severity = TV_INFO,
        .sure = TV_LOW,
        .title = N_("Windows schedules the card (WDDM)"),
        .cause = N_("{cards} is driven by Windows' display model: launches are batched and memory "
                    "is managed by Windows, which adds jitter to short inference calls."),
        .decided = N_("The driver model is WDDM."),
        .unless = NULL,
        .source = "https://github.com/NVIDIA/TensorRT/issues/2107",
        .steps = {{.command = "nvidia-smi -i {gpus} -fdm 1",
                   .undo = "nvidia-smi -i {gpus} -fdm 0",
                   .why = N_("TCC, on cards that allow it and drive no display; it needs "
                             "administrator rights and a restart. Or use Linux.")}},
        .judge = judge_wddm,
    },
};

extern const tv_rule_group tv_rule_group_mode_rules;
const tv_rule_group tv_rule_group_mode_rules = {"modes", N_("Modes of the card"), rules,
                                                sizeof rules / sizeof *rules};
