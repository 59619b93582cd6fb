/* What an Xid means: the codes that have a rule of their own, and every other one through the
 * catalogue. The first event on a GPU is the cause; what cleans up behind it is not told again. */
#include "diagnose.h"
#include "xid_seen.h"
#include "xid_table.h"

#include <math.h>

static double sum_of(const tv_xid_list *list, unsigned code, tv_str pci)
{
    double n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].code == code && (!pci.n || tv_str_eq(list->v[i].pci, pci)))
            n += list->v[i].n;
    return n;
}

/* Of all logs: a GPU that two files tell of is told once. */
static bool is_first(const tv_xid_list *list, size_t i)
{
    for (size_t k = 0; k < i && list->v[i].first; k++)
        if (list->v[k].first && list->v[k].code == list->v[i].code &&
            (tv_pci_same(list->v[k].pci, list->v[i].pci) ||
             tv_str_eq(list->v[k].pci, list->v[i].pci)))
            return false;
    return list->v[i].first;
}

static size_t gpus_of(const tv_xid_list *list, bool (*is)(unsigned code))
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const tv_xid_seen *x = &list->v[i];
        bool known = !is(x->code) || x->follows || !x->first;
        for (size_t k = 0; k < i && !known; k++)
            known = list->v[k].first && is(list->v[k].code) && !list->v[k].follows &&
                    tv_pci_same(list->v[k].pci, x->pci);
        n += !known;
    }
    return n;
}

/* ---- H13: fallen off the bus ---- */

static bool found_lost(const tv_inquiry *q, tv_str pci)
{
    for (size_t i = 0; i < q->out->findings.n; i++) {
        const tv_finding *f = q->out->findings.v[i];
        if (!tv_str_is(tv_str_of(f->rule->id), "H13"))
            continue;
        for (size_t k = 0; k < f->values.n; k++)
            if (tv_str_is(tv_str_of(f->values.v[k].name), "pci") &&
                tv_pci_same(f->values.v[k].s, pci))
                return true;
    }
    return false;
}

static tv_finding *add_lost(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                            const tv_note *at, tv_str pci)
{
    tv_finding *f = tv_found(q, rule, s, at);
    tv_found_str(q, f, "pci", pci);
    tv_found_str(q, f, "bus_id", tv_pci_bus_id(q->a, pci));
    return f;
}

static void lost_without_code(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "xid"); s; s = tv_scene_next(s, "xid")) {
        const tv_note *list = tv_noted(&s->facts, "bus_losses");
        for (const tv_note *item = list ? list->first : NULL; item; item = item->next)
            if (!found_lost(q, tv_noted_str(item, "pci")))
                (void)add_lost(q, rule, s, item, tv_noted_str(item, "pci"));
    }
}

static void lost_by_lspci(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "lspci"); s;
         s = tv_scene_next(s, "lspci")) {
        const tv_note *list = tv_noted(&s->facts, "devices");
        for (const tv_note *d = list ? list->first : NULL; d; d = d->next)
            if (tv_noted_bool(d, "dead", false) && tv_noted_bool(d, "gpu", false) &&
                !found_lost(q, tv_noted_str(d, "bdf")))
                (void)add_lost(q, rule, s, d, tv_noted_str(d, "bdf"));
    }
}

static const char *const unreachable =
    N_("nvidia-smi finds the GPU at {pci} in the driver's list and cannot talk to it ({error}). "
       "Most often it has fallen off the bus, from heat, power or its seat; the kernel's log says "
       "whether.");

static void lost_by_smi(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "smi-failure"); s;
         s = tv_scene_next(s, "smi-failure")) {
        const tv_str pci = tv_noted_str(&s->facts, "pci");
        const tv_str error = tv_noted_str(&s->facts, "error");
        const bool lost = tv_str_is(error, "GPU is lost");
        if ((!lost && !(pci.n && tv_str_is(error, "Unknown Error"))) ||
            (pci.n ? found_lost(q, pci) : tv_has_found(q, "H13")))
            continue;
        tv_finding *f = add_lost(q, rule, s, NULL, pci);
        tv_found_str(q, f, "error", error);
        if (!lost) {
            f->sure = TV_MEDIUM;
            f->cause = unreachable;
            tv_ask(q, "sudo dmesg -T | grep -iE 'NVRM|AER|pcieport'",
                   N_("It shows whether the GPU fell off the bus, and what stood before it."));
        }
    }
}

static const char *const lost_after_errors =
    N_("The GPU at {pci} no longer answers on PCI Express (Xid 79), and its link reported {aer} "
       "errors before that: the connection is the first suspect (seat, riser, slot, cable), then "
       "power and heat.");

static void judge_lost(tv_inquiry *q, const tv_rule *rule)
{
    const tv_xid_list list = tv_xids_seen(q);
    for (size_t i = 0; i < list.n; i++) {
        const tv_xid_seen *x = &list.v[i];
        if (x->code != 79 || found_lost(q, x->pci))
            continue;
        tv_finding *f = add_lost(q, rule, x->s, x->event, x->pci);
        tv_found_event(q, f, x);
        const tv_note *aer = tv_noted(&x->s->facts, "aer.0");
        if (aer && aer->line < x->event->line) {
            f->cause = lost_after_errors;
            tv_found_num(q, f, "aer", TV_ARG_COUNT, tv_noted_num(&x->s->facts, "count"));
            tv_found_also(q, f, x->s, aer);
        }
    }
    lost_without_code(q, rule);
    lost_by_lspci(q, rule);
    lost_by_smi(q, rule);
}

/* ---- H21: NVLink ---- */

static bool is_nvlink(unsigned code)
{
    return code == 74 || (code >= 144 && code <= 150);
}

static const char *const nvlink_nonfatal =
    N_("NVLink reported errors that it recovered from (nonfatal, Xid {xid} at {pci}). Traffic went "
       "on; a count that grows names a link that is about to fail.");
static const char *const nvlink_peer = N_(
    "NVLink reported a fatal error (Xid {xid} at {pci}, link {link}), and its sub-code {subcode} "
    "points at the device on the other end of the link.");
static const char *const nvswitch_fatal =
    N_("An NVSwitch reported a fatal error (SXid {sxid} at {pci}, link {link}). GPUs on that link "
       "stall, and jobs that use them end.");
static const char *const nvswitch_nonfatal =
    N_("An NVSwitch reported an error that it recovered from (SXid {sxid} at {pci}, link {link}).");

static void judge_switches(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "sxid"); s; s = tv_scene_next(s, "sxid")) {
        const tv_note *list = tv_noted(&s->facts, "events");
        const tv_note *worst = list ? list->first : NULL;
        for (const tv_note *e = worst; e; e = e->next)
            if (tv_noted_is(e, "severity", "Fatal") && !tv_noted_is(worst, "severity", "Fatal"))
                worst = e;
        if (!worst)
            continue;
        const bool fatal = tv_noted_is(worst, "severity", "Fatal");
        tv_finding *f = tv_found(q, rule, s, worst);
        f->cause = fatal ? nvswitch_fatal : nvswitch_nonfatal;
        f->severity = fatal ? TV_CRITICAL : TV_INFO;
        tv_found_num(q, f, "sxid", TV_ARG_NUMBER, tv_noted_num(worst, "sxid"));
        tv_found_str(q, f, "pci", tv_noted_str(worst, "pci"));
        tv_found_num(q, f, "link", TV_ARG_NUMBER, tv_noted_num(worst, "link"));
        tv_found_num(q, f, "events", TV_ARG_COUNT, (double)list->n);
    }
}

/* Sub-code 37 asks to look at the peer. */
enum { SUBCODE_PEER = 37 };

static void judge_nvlink(tv_inquiry *q, const tv_rule *rule)
{
    const tv_xid_list list = tv_xids_seen(q);
    const tv_xid_seen *worst = NULL;
    double n = 0;
    for (size_t i = 0; i < list.n; i++) {
        const tv_xid_seen *x = &list.v[i];
        if (!is_nvlink(x->code) || x->follows)
            continue;
        n += x->n;
        const bool mild = tv_str_starts(tv_noted_str(x->event, "severity"), TV_S("Non"));
        if (!worst || (!mild && tv_str_starts(tv_noted_str(worst->event, "severity"), TV_S("Non"))))
            worst = x;
    }
    if (worst) {
        const bool mild = tv_str_starts(tv_noted_str(worst->event, "severity"), TV_S("Non"));
        tv_finding *f = tv_found(q, rule, worst->s, worst->event);
        const double subcode = tv_noted_num(worst->event, "subcode");
        tv_found_event(q, f, worst);
        tv_found_num(q, f, "link", TV_ARG_NUMBER, tv_noted_num(worst->event, "link"));
        tv_found_num(q, f, "subcode", TV_ARG_NUMBER, subcode);
        tv_found_num(q, f, "events", TV_ARG_COUNT, n);
        tv_found_num(q, f, "gpus", TV_ARG_COUNT, (double)gpus_of(&list, is_nvlink));
        if (mild) {
            f->severity = TV_WARNING;
            f->cause = nvlink_nonfatal;
        } else if ((int)(subcode > 0 ? subcode : 0) == SUBCODE_PEER) {
            f->cause = nvlink_peer;
        }
        for (size_t i = 0; i < list.n; i++)
            if (is_nvlink(list.v[i].code) && !list.v[i].follows)
                tv_found_also(q, f, list.v[i].s, list.v[i].event);
    }
    judge_switches(q, rule);
}

/* ---- codes that are judged alike: one finding a GPU ---- */

static void judge_codes(tv_inquiry *q, const tv_rule *rule, const unsigned *codes, size_t n_codes)
{
    const tv_xid_list list = tv_xids_seen(q);
    for (size_t i = 0; i < list.n; i++) {
        const tv_xid_seen *x = &list.v[i];
        bool mine = false;
        for (size_t k = 0; k < n_codes; k++)
            mine = mine || x->code == codes[k];
        if (!mine || x->follows || !is_first(&list, i))
            continue;
        tv_finding *f = tv_found(q, rule, x->s, x->event);
        tv_found_event(q, f, x);
        tv_found_num(q, f, "events", TV_ARG_COUNT, sum_of(&list, x->code, x->pci));
        tv_found_num(q, f, "gpu", TV_ARG_NUMBER, tv_noted_num(x->event, "gpu_index"));
        tv_found_num(q, f, "timeout_s", TV_ARG_SECONDS, tv_noted_num(x->event, "timeout_s"));
        tv_found_str(q, f, "function", tv_noted_str(x->event, "function_name"));
        for (size_t k = i + 1; k < list.n; k++)
            if (list.v[k].code == x->code && tv_pci_same(list.v[k].pci, x->pci))
                tv_found_also(q, f, list.v[k].s, list.v[k].event);
    }
}

static void judge_pmu(tv_inquiry *q, const tv_rule *rule)
{
    static const unsigned codes[] = {61, 62};
    judge_codes(q, rule, codes, 2);
}

static void judge_gsp(tv_inquiry *q, const tv_rule *rule)
{
    static const unsigned codes[] = {119, 120};
    judge_codes(q, rule, codes, 2);
}

static const char *const no_cable =
    N_("The driver says that a card has no auxiliary power: a cable is missing or loose. It is not "
       "brought up, or does not reach its clocks.");

static void judge_cable(tv_inquiry *q, const tv_rule *rule)
{
    static const unsigned codes[] = {54};
    judge_codes(q, rule, codes, 1);
    for (const tv_sighting *s = tv_scene_first(q->scene, "xid"); s; s = tv_scene_next(s, "xid")) {
        const tv_note *flag = tv_noted(&s->facts, "power_cable_missing");
        if (flag)
            tv_found(q, rule, s, flag)->cause = no_cable;
    }
    for (const tv_sighting *s = tv_scene_first(q->scene, "smi-failure"); s;
         s = tv_scene_next(s, "smi-failure"))
        if (tv_noted_is(&s->facts, "error", "power cables"))
            tv_found(q, rule, s, NULL)->cause = no_cable;
}

/* ---- H30, H31: faults of kernels ---- */

static bool is_fault(unsigned code)
{
    return code == 13 || code == 31 || code == 43 || code == 45;
}

static void judge_switch_timeout(tv_inquiry *q, const tv_rule *rule)
{
    static const unsigned codes[] = {109};
    judge_codes(q, rule, codes, 1);
}

/* One place (GPC, TPC, SM) that faults in two or more programs is suspect itself. */
typedef struct place {
    tv_str pci;
    double gpc, tpc, sm;
} place;

static bool same_number(double x, double y)
{
    return (isnan(x) && isnan(y)) || !(x < y || x > y);
}

static place place_of(const tv_xid_seen *x)
{
    return (place){x->pci, tv_noted_num(x->event, "gpc"), tv_noted_num(x->event, "tpc"),
                   tv_noted_num(x->event, "sm")};
}

static bool at_place(const tv_xid_seen *x, const place *p)
{
    const place own = place_of(x);
    return !isnan(own.gpc) && tv_str_eq(own.pci, p->pci) && same_number(own.gpc, p->gpc) &&
           same_number(own.tpc, p->tpc);
}

static bool other_process(const tv_xid_seen *x, const tv_xid_seen *y)
{
    const double a = tv_noted_num(x->event, "pid"), b = tv_noted_num(y->event, "pid");
    return !isnan(a) && !isnan(b) && (a < b || a > b);
}

static const tv_xid_seen *repeated_place(const tv_xid_list *list)
{
    for (size_t i = 0; i < list->n && i < 500; i++) {
        const tv_xid_seen *x = &list->v[i];
        if (!is_fault(x->code) || isnan(tv_noted_num(x->event, "gpc")))
            continue;
        const place p = place_of(x);
        bool elsewhere = false, again = false;
        for (size_t k = 0; k < list->n && k < 2000; k++) {
            if (!is_fault(list->v[k].code) || isnan(tv_noted_num(list->v[k].event, "gpc")))
                continue;
            elsewhere = elsewhere || !at_place(&list->v[k], &p);
            again = again || (at_place(&list->v[k], &p) && other_process(x, &list->v[k]));
        }
        if (again && !elsewhere)
            return x;
    }
    return NULL;
}

static const char *const many_gpus =
    N_("Kernels faulted on {gpus} GPUs (Xid {xid} first, {events} events): the same program "
       "faulting on several cards is a fault of the program, its libraries or its data, not of the "
       "cards.");
static const char *const one_place =
    N_("Kernels of different processes faulted on the same part of the GPU at {pci} (GPC {gpc}, "
       "TPC {tpc}) and nowhere else: the card itself is suspect.");
static const char *const only_removed =
    N_("The driver removed a program's channels (Xid 45) with no error before it in this log: that "
       "happens when a program is killed or ends while kernels run.");
static const char *const only_reset =
    N_("The driver reset the channels of a program (Xid 43) with no other error before it: the "
       "program did something that the GPU refused. The card goes on working.");

static const tv_xid_seen *first_fault(const tv_xid_list *list, bool (*among)(unsigned code))
{
    for (size_t i = 0; i < list->n; i++)
        if (among(list->v[i].code) && !list->v[i].follows)
            return &list->v[i];
    return NULL;
}

static bool is_kernel_fault(unsigned code)
{
    return code == 13 || code == 31;
}

static void word_fault(tv_inquiry *q, tv_finding *f, const tv_xid_list *list, const tv_xid_seen *x)
{
    const size_t gpus = gpus_of(list, is_fault);
    const tv_xid_seen *at = repeated_place(list);
    if (x->code == 45) {
        f->cause = only_removed;
        f->severity = TV_INFO;
    } else if (x->code == 43) {
        f->cause = only_reset;
        f->severity = TV_WARNING;
    } else if (gpus > 1) {
        f->cause = many_gpus;
    } else if (at) {
        f->cause = one_place;
        tv_found_num(q, f, "gpc", TV_ARG_NUMBER, tv_noted_num(at->event, "gpc"));
        tv_found_num(q, f, "tpc", TV_ARG_NUMBER, tv_noted_num(at->event, "tpc"));
    }
    tv_found_num(q, f, "gpus", TV_ARG_COUNT, (double)gpus);
}

static void judge_fault(tv_inquiry *q, const tv_rule *rule)
{
    const tv_xid_list list = tv_xids_seen(q);
    const tv_xid_seen *x = first_fault(&list, is_kernel_fault);
    if (!x)
        x = first_fault(&list, is_fault);
    if (!x)
        return;
    tv_finding *f = tv_found(q, rule, x->s, x->event);
    double n = 0;
    for (size_t i = 0; i < list.n; i++)
        if (is_fault(list.v[i].code) && !list.v[i].follows) {
            n += list.v[i].n;
            tv_found_also(q, f, list.v[i].s, list.v[i].event);
        }
    tv_found_event(q, f, x);
    tv_found_str(q, f, "what", tv_noted_str(x->event, "what"));
    tv_found_num(q, f, "events", TV_ARG_COUNT, n);
    word_fault(q, f, &list, x);
}

/* ---- H32: what the driver asks for ---- */

static const char *const recovered =
    N_("The driver says that the GPU at {pci} needs no recovery any more (Xid 154).");

static void word_action(tv_inquiry *q, tv_finding *f, tv_str action, tv_str bus_id)
{
    tv_found_str(q, f, "action", action);
    if (tv_str_is(action, "None")) {
        f->severity = TV_INFO;
        f->cause = recovered;
    } else if (tv_str_is(action, "Node Reboot Required")) {
        tv_found_str(q, f, "reboot", TV_S("reboot"));
    } else if (tv_str_is(action, "GPU Reset Required")) {
        tv_found_str(q, f, "reset_bus_id", bus_id);
    } else {
        tv_found_str(q, f, "drain_bus_id", bus_id);
    }
}

static void judge_action(tv_inquiry *q, const tv_rule *rule)
{
    const tv_xid_list list = tv_xids_seen(q);
    for (size_t i = 0; i < list.n; i++) {
        const tv_xid_seen *x = &list.v[i];
        bool last = x->code == 154;
        for (size_t k = i + 1; k < list.n && last; k++)
            last = list.v[k].code != 154 || !tv_pci_same(list.v[k].pci, x->pci);
        const tv_str action = tv_noted_str(x->event, "to_action");
        if (!last || !action.n)
            continue;
        tv_finding *f = tv_found(q, rule, x->s, x->event);
        tv_found_event(q, f, x);
        word_action(q, f, action, tv_pci_bus_id(q->a, x->pci));
    }
}

/* ---- X00: every other code ---- */

static tv_severity severity_of(tv_xid_class kind)
{
    switch (kind) {
    case TV_XID_HARDWARE:
        return TV_CRITICAL;
    case TV_XID_APPLICATION:
    case TV_XID_DRIVER:
    case TV_XID_NVLINK:
        return TV_WARNING;
    case TV_XID_INFO:
        return TV_INFO;
    }
    return TV_WARNING;
}

static const char *const not_known =
    N_("The driver reported Xid {xid} at {pci} ({events} times), a code that is not in the "
       "catalogue of this version of trivet: {message}");
static const char *const with_then =
    N_("The driver reported Xid {xid} ({name}, class {class}) at {pci}, {events} times: {meaning}. "
       "{action} {then}");

static void word_other(tv_inquiry *q, tv_finding *f, const tv_xid_seen *x)
{
    const tv_xid_row *row = tv_xid_named(x->code);
    if (!row) {
        f->cause = not_known;
        f->severity = TV_WARNING;
        f->sure = TV_LOW;
        tv_found_str(q, f, "message", x->event->text);
        return;
    }
    f->severity = severity_of(row->kind);
    tv_found_str(q, f, "name", tv_str_of(row->name));
    tv_found_word(q, f, "class", tv_xid_class_name(row->kind));
    tv_found_word(q, f, "meaning", row->meaning);
    tv_found_word(q, f, "action", row->action);
    if (row->then) {
        f->cause = with_then;
        tv_found_word(q, f, "then", row->then);
    }
}

static void judge_other(tv_inquiry *q, const tv_rule *rule)
{
    const tv_xid_list list = tv_xids_seen(q);
    for (size_t i = 0; i < list.n; i++) {
        const tv_xid_seen *x = &list.v[i];
        const tv_xid_row *row = tv_xid_named(x->code);
        if ((row && row->rule) || x->follows || !is_first(&list, i))
            continue;
        tv_finding *f = tv_found(q, rule, x->s, x->event);
        tv_found_event(q, f, x);
        tv_found_num(q, f, "events", TV_ARG_COUNT, sum_of(&list, x->code, x->pci));
        word_other(q, f, x);
    }
}

static const tv_rule rules[] = {
    {
        .id = "H13",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A GPU has fallen off the bus"),
        .cause =
            N_("The GPU at {pci} no longer answers on PCI Express (Xid 79, or the same without "
               "a number). That it is lost is certain; why is not: power, heat, its seat or "
               "riser, firmware, or the card."),
        .decided =
            N_("Xid 79; or the driver's lines \"has fallen off the bus\" without a number; or "
               "lspci shows the card with every register reading as ones (rev ff); or "
               "nvidia-smi says that the GPU is lost. An unknown error for one device's "
               "handle counts as likely."),
        .unless =
            N_("A probe that failed because another driver holds the device (S04), or because "
               "the driver does not support it (S06)."),
        .source = "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/387",
        .steps =
            {{.command = "sudo dmesg -T | grep -iE 'NVRM|AER|pcieport'",
              .why = N_("See what stood before the loss: bus errors point at the connection, "
                        "nothing at all points at power.")},
             {.command = "sudo reboot",
              .why = N_("A lost GPU comes back only by a restart, often only after the power was "
                        "off for half a minute. It ends every job on the machine and cannot be "
                        "taken back: let the other GPUs' jobs save first.")},
             {.command = "nvidia-smi -q -d TEMPERATURE,POWER",
              .why =
                  N_("After the restart: are temperatures near their limits, does power swing?")},
             {.command = "sudo nvidia-smi -lgc 300,1500",
              .undo = "sudo nvidia-smi -rgc",
              .why =
                  N_("A test: lower clocks draw less power in peaks. If the loss stays away, look "
                     "at the power supply and its cables.")},
             {.why = N_("Re-seat the card and its cables, try another slot without a riser. If the "
                        "fault moves with the card, have it replaced.")}},
        .outranks = "H25 H32 S05 S12",
        .judge = judge_lost,
    },
    {
        .id = "H21",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("NVLink or NVSwitch reports errors"),
        .cause = N_("NVLink reported a fault (Xid {xid} at {pci}, {events} events). Transfers over "
                    "that link stop, and collectives that use it hang or end."),
        .decided =
            N_("Xid 74, or 144 to 150 with the severity that the line names, or an SXid of an "
               "NVSwitch. A nonfatal one is a warning, a fatal one is critical. Events after "
               "another GPU fell off the bus are its consequence."),
        .unless = N_("The fault may lie at the other end of the link: a sub-code that asks to "
                     "investigate the peer says so."),
        .source = "https://github.com/leptonai/gpud/pull/1174",
        .steps =
            {{.command = "nvidia-smi nvlink -e",
              .why = N_("Count the errors of every link; look at both ends of the worst one.")},
             {.command = "nvidia-smi topo -m", .why = N_("See which GPUs the link joins.")},
             {.command = "sudo nvidia-smi -r -i {bus_id}",
              .why =
                  N_("Reset the GPU when no job uses it: jobs on it end, and that cannot be taken "
                     "back. With NVSwitch all GPUs are reset together.")},
             {.why = N_("If it comes again on the same link: re-seat the bridge or the board, then "
                        "have it replaced.")}},
        .judge = judge_nvlink,
    },
    {
        .id = "H22",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("The GPU's internal controller halted"),
        .cause =
            N_("The controller inside the GPU at {pci} halted (Xid {xid}, {events} times). The "
               "GPU must be reset; if it happens again, the card is suspect."),
        .decided = N_("Xid 62, or 61 on old drivers."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/deploy/xid-errors/index.html",
        .steps = {{.command = "sudo nvidia-smi -r -i {bus_id}",
                   .why =
                       N_("Reset the GPU when no job uses it: jobs on it end, and that cannot be "
                          "taken back.")},
                  {.command = "sudo nvidia-bug-report.sh",
                   .why = N_("If it comes again: collect this for the vendor.")}},
        .outranks = "H32",
        .judge = judge_pmu,
    },
    {
        .id = "H23",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("The GPU's system processor (GSP) stopped answering"),
        .cause = N_("The firmware processor of the GPU at {pci} did not answer the driver (Xid "
                    "{xid}, {events} events). Every program that asks this GPU something waits for "
                    "the time-out, nvidia-smi too."),
        .decided = N_("Xid 119 (an RPC that timed out) or 120 (an error of the firmware)."),
        .unless = N_("After Xid 79 the processor cannot answer: then the lost GPU is the cause "
                     "(H13)."),
        .source = "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1214",
        .steps =
            {{.command = "sudo nvidia-smi -r -i {bus_id}",
              .why = N_("Reset the GPU when no job uses it, or restart the machine with the power "
                        "off in between: jobs on it end, and that cannot be taken back.")},
             {.why = N_("If it comes again: a newer driver of the same branch first.")},
             {.command = "echo 'options nvidia NVreg_EnableGpuFirmware=0' | sudo tee "
                         "/etc/modprobe.d/nvidia-gsp.conf",
              .undo = "sudo rm /etc/modprobe.d/nvidia-gsp.conf",
              .why = N_("Only with the proprietary module: run without this firmware; takes effect "
                        "after a restart. The open module cannot.")},
             {.command = "sudo nvidia-bug-report.sh",
              .why = N_("If it comes again: collect this for the vendor.")}},
        .outranks = "H32",
        .judge = judge_gsp,
    },
    {
        .id = "H24",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A power cable of a GPU is missing"),
        .cause =
            N_("The card at {pci} reports that its auxiliary power is missing (Xid 54): a cable "
               "is not plugged in or is loose."),
        .decided = N_("Xid 54, or the driver's line that the GPU does not have the necessary power "
                      "cables connected."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/deploy/xid-errors/index.html",
        .steps = {{.why = N_("Switch the machine off, plug every auxiliary cable of the card, each "
                             "on a line of its own from the power supply, and start again.")},
                  {.command = "nvidia-smi -q -d POWER",
                   .why = N_("Afterwards: the power limit must be the card's own.")}},
        .outranks = "H25 H13",
        .judge = judge_cable,
    },
    {
        .id = "H31",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("The GPU did not switch contexts in time"),
        .cause =
            N_("The GPU at {pci} could not take a program off its multiprocessors in time (Xid "
               "109, {events} events): a kernel hangs, most often after a fault in it. The GPU "
               "must be reset."),
        .decided = N_("Xid 109, with or without Xid 13 before it."),
        .unless = NULL,
        .source = "https://github.com/leptonai/gpud/pull/46",
        .steps = {{.command = "sudo nvidia-smi -r -i {bus_id}",
                   .why =
                       N_("Reset the GPU when no job uses it: jobs on it end, and that cannot be "
                          "taken back.")},
                  {.command = "CUDA_LAUNCH_BLOCKING=1 python TRAIN.py",
                   .why =
                       N_("Run the same job once with this, to see which kernel faults (slow).")},
                  {.command = "dcgmi diag -r 3 -i {gpu}",
                   .why = N_("If it comes again with other programs: test the card. No job may run "
                             "on it meanwhile.")},
                  {.command = "sudo nvidia-bug-report.sh",
                   .why = N_("If it comes again: collect this for the vendor.")}},
        .outranks = "H30 H32",
        .judge = judge_switch_timeout,
    },
    {
        .id = "H30",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("A kernel of the application faulted"),
        .cause =
            N_("A program's kernel faulted on the GPU at {pci} (Xid {xid}, {events} events): an "
               "illegal address or instruction. That ends the program; the card goes on "
               "working. The program is the first suspect."),
        .decided =
            N_("Only Xid 13, 31, 43 or 45 on that GPU. On several GPUs: the program. The same "
               "GPC and TPC in different processes and no other place: the card. 45 alone: "
               "a program was killed."),
        .unless = N_("After an ECC error, a lost GPU or a firmware error these codes only clean up "
                     "and are not told."),
        .source = "https://github.com/NVIDIA/NVSentinel/issues/271",
        .steps =
            {{.command = "CUDA_LAUNCH_BLOCKING=1 python TRAIN.py",
              .why = N_("Run the same job once with this: the error then names the operator.")},
             {.command = "compute-sanitizer --tool memcheck python TRAIN.py",
              .why = N_("On a short run: it names the kernel and the address.")},
             {.command = "dcgmi diag -r 3",
              .why =
                  N_("Only if other programs fault on the same GPU: test the card. No job may run "
                     "on it meanwhile.")}},
        .outranks = "H32",
        .judge = judge_fault,
    },
    {
        .id = "H32",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The driver names what the GPU needs to recover"),
        .cause = N_("For the GPU at {pci} the driver asks for: {action} (Xid 154)."),
        .decided = N_("The last Xid 154 of a GPU; None is told for completeness."),
        .unless = N_("It is no fault itself: the Xid before it is."),
        .source = "https://docs.nvidia.com/deploy/xid-errors/index.html",
        .steps =
            {{.command = "sudo nvidia-smi -r -i {reset_bus_id}",
              .why =
                  N_("Reset the GPU when no job uses it: jobs on it end, and that cannot be taken "
                     "back.")},
             {.command = "sudo {reboot}",
              .why = N_("Restart the machine: it ends every job and cannot be taken back; let them "
                        "save first.")},
             {.command = "nvidia-smi -q -i {drain_bus_id}",
              .why =
                  N_("Take the GPU out of scheduling, let its jobs end, then do what is named.")}},
        .judge = judge_action,
    },
    {
        .id = "X00",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The driver reported an Xid"),
        .cause =
            N_("The driver reported Xid {xid} ({name}, class {class}) at {pci}, {events} times: "
               "{meaning}. {action}"),
        .decided = N_("Any Xid that has no rule of its own, by the catalogue (docs/xid.md). Class "
                      "hardware is critical, information is told for completeness, a code that is "
                      "not in the catalogue is a warning of low confidence."),
        .unless =
            N_("It may follow from an earlier Xid of the same GPU: the first one is the cause."),
        .source = "https://docs.nvidia.com/deploy/xid-errors/index.html",
        .steps = {{.command = "sudo dmesg -T | grep -i NVRM",
                   .why = N_("See what stood before it: the first error is the cause.")},
                  {.command = "nvidia-smi -q -i {bus_id}",
                   .why = N_("See the GPU's state: ECC counters, pending repairs, clocks.")}},
        .outranks = "H32",
        .judge = judge_other,
    },
};

extern const tv_rule_group tv_rule_group_xid_rules;
const tv_rule_group tv_rule_group_xid_rules = {"xid", N_("What the driver reports (Xid)"), rules,
                                               sizeof rules / sizeof *rules};
