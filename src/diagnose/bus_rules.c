/* The bus: errors on links, GPUs that did not come up, address space, and bridges that redirect
 * traffic between peers. */
#include "diagnose.h"
#include "xid_seen.h"

#include <math.h>

/* ---- H08: link errors ---- */

typedef struct port_errors {
    tv_str port;
    double n;
    double uncorrectable;
    const tv_note *first;
    tv_str name; /* of the first */
    bool other;  /* no GPU's port */
} port_errors;

enum { PORTS = 32 };

/* Drivers of other devices report their own links. */
static bool of_gpu(const tv_scene *scene, tv_str driver, tv_str port)
{
    if (tv_str_is(driver, "nvidia"))
        return true;
    if (driver.n && !tv_str_is(driver, "pcieport") && !tv_pci_is_gpu(scene, port))
        return false;
    return tv_pci_above_gpu(scene, port) != TV_ABOVE_NO;
}

static size_t errors_by_port(const tv_scene *scene, const tv_sighting *s, port_errors *v)
{
    const tv_note *aer = tv_noted(&s->facts, "aer");
    size_t n = 0;
    for (const tv_note *e = aer ? aer->first : NULL; e; e = e->next) {
        const tv_str port = tv_noted_str(e, "port");
        size_t k = 0;
        while (k < n && !tv_str_eq(v[k].port, port))
            k++;
        if (k == PORTS)
            continue;
        if (k == n) {
            v[n++] = (port_errors){.port = port, .first = e, .name = tv_noted_str(e, "name")};
            v[k].other = !of_gpu(scene, tv_noted_str(e, "driver"), port);
        }
        v[k].n++;
        v[k].uncorrectable += !tv_str_starts(tv_noted_str(e, "severity"), TV_S("Correct"));
    }
    return n;
}

/* The line where a GPU was lost; 0: none. */
static uint64_t lost_at(const tv_sighting *s)
{
    const tv_note *losses = tv_noted(&s->facts, "bus_losses.0");
    const tv_note *events = tv_noted(&s->facts, "events");
    for (const tv_note *e = events ? events->first : NULL; e; e = e->next)
        if (tv_noted_num(e, "xid") > 78 && tv_noted_num(e, "xid") < 80)
            return e->line;
    return losses ? losses->line : 0;
}

static const char *const uncorrectable = N_(
    "The link at {port} reported {errors} errors, {uncorrectable} of them not correctable (first: "
    "{error}). A transfer was lost: the device may stop or fall off the bus.");

static void judge_link_errors(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "xid"); s; s = tv_scene_next(s, "xid")) {
        port_errors v[PORTS];
        const size_t n = errors_by_port(q->scene, s, v);
        const uint64_t lost = lost_at(s);
        for (size_t k = 0; k < n; k++) {
            if (v[k].other ||
                (lost && v[k].first->line > lost)) /* a dead card's bus errors follow from it */
                continue;
            tv_finding *f = tv_found(q, rule, s, v[k].first);
            tv_found_str(q, f, "port", v[k].port);
            tv_found_str(q, f, "error", v[k].name);
            tv_found_num(q, f, "errors", TV_ARG_COUNT, v[k].n);
            if (v[k].uncorrectable > 0) {
                f->cause = uncorrectable;
                tv_found_num(q, f, "uncorrectable", TV_ARG_COUNT, v[k].uncorrectable);
            } else if (v[k].n < 2) {
                f->severity = TV_INFO;
            }
            f->weight = v[k].n < 1000 ? v[k].n / 1000 : 1;
            if (tv_pci_above_gpu(q->scene, v[k].port) == TV_ABOVE_UNKNOWN) {
                f->sure = TV_MEDIUM;
                if (f->severity > TV_INFO)
                    tv_ask(q, "lspci -tv", N_("It shows which device stands below the port."));
            }
            for (const tv_note *e = v[k].first->next; e; e = e->next)
                if (tv_str_eq(tv_noted_str(e, "port"), v[k].port))
                    tv_found_also(q, f, s, e);
        }
    }
}

/* ---- H25: GPUs that did not come up ---- */

static const tv_sighting *smi_of(const tv_scene *scene, double *gpus)
{
    static const char *const kinds[] = {"nvidia-smi", "smi-q"};
    for (size_t k = 0; k < 2; k++)
        for (const tv_sighting *s = tv_scene_first(scene, kinds[k]); s;
             s = tv_scene_next(s, kinds[k]))
            if (tv_noted_n(&s->facts, "gpus") > 0) {
                *gpus = (double)tv_noted_n(&s->facts, "gpus");
                return s;
            }
    return NULL;
}

static double gpus_on_bus(const tv_scene *scene, const tv_sighting **at)
{
    double most = (double)NAN;
    for (const tv_sighting *s = tv_scene_first(scene, "lspci"); s; s = tv_scene_next(s, "lspci")) {
        const double listed = tv_noted_num(&s->facts, "gpus_on_bus");
        const double tree = tv_noted_num(&s->facts, "gpus_in_tree");
        const double n = listed > 0 ? listed : tree;
        if (n > 0 && !(most >= n)) {
            most = n;
            *at = s;
        }
    }
    return most;
}

static const char *const did_not_start =
    N_("The driver could not initialise the GPU at {pci} (RmInitAdapter failed, code {code}, "
       "{tries} times): it is on the bus and cannot be used.");
static const char *const no_devices = N_(
    "nvidia-smi reaches the driver and the driver has no usable GPU: none is on the bus, or none "
    "could be initialised. The kernel's log says which.");

static bool judge_init_failures(tv_inquiry *q, const tv_rule *rule)
{
    bool any = false;
    for (const tv_sighting *s = tv_scene_first(q->scene, "xid"); s; s = tv_scene_next(s, "xid")) {
        const tv_note *list = tv_noted(&s->facts, "init_failures");
        for (const tv_note *item = list ? list->first : NULL; item; item = item->next) {
            tv_finding *f = tv_found(q, rule, s, item);
            const tv_str code = tv_noted_str(item, "code");
            f->cause = did_not_start;
            tv_found_str(q, f, "pci", tv_noted_str(item, "pci"));
            tv_found_str(q, f, "code", code.n ? code : TV_S("?"));
            tv_found_num(q, f, "tries", TV_ARG_COUNT, tv_noted_num(item, "n"));
            any = true;
        }
    }
    return any;
}

static void judge_missing(tv_inquiry *q, const tv_rule *rule)
{
    if (judge_init_failures(q, rule))
        return;
    const tv_sighting *bus = NULL;
    double seen = (double)NAN;
    const double there = gpus_on_bus(q->scene, &bus);
    const tv_sighting *smi = smi_of(q->scene, &seen);
    if (smi && bus && there > seen) {
        tv_finding *f = tv_found(q, rule, smi, NULL);
        f->sure = TV_MEDIUM;
        tv_found_also(q, f, bus, NULL);
        tv_found_num(q, f, "seen", TV_ARG_COUNT, seen);
        tv_found_num(q, f, "on_bus", TV_ARG_COUNT, there);
        tv_ask(q, "sudo dmesg -T | grep -iE 'NVRM|AER|pcieport'",
               N_("It shows why the driver left the GPU out."));
        return;
    }
    for (const tv_sighting *s = tv_scene_first(q->scene, "smi-failure"); s;
         s = tv_scene_next(s, "smi-failure")) {
        if (!tv_noted_is(&s->facts, "error", "No devices were found"))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        f->cause = no_devices;
        f->sure = TV_MEDIUM;
        tv_ask(q, "sudo dmesg -T | grep -iE 'NVRM|AER|pcieport'",
               N_("It shows why the driver left the GPU out."));
        return;
    }
}

/* ---- H26: address space ---- */

/* Below this a window belongs to a small device: BAR1 of a compute card has 256 MiB at least. */
static const double gpu_window_bytes = 0x1p28;

static tv_finding *no_room(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                           const tv_note *at, tv_str pci)
{
    tv_finding *f = tv_found(q, rule, s, at);
    tv_found_str(q, f, "pci", pci.n ? pci : TV_S("?"));
    tv_found_num(q, f, "bar", TV_ARG_NUMBER, tv_noted_num(at, "bar"));
    return f;
}

static void judge_regions(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "xid"); s; s = tv_scene_next(s, "xid")) {
        const tv_note *list = tv_noted(&s->facts, "bars");
        for (const tv_note *bar = list ? list->first : NULL; bar; bar = bar->next)
            (void)no_room(q, rule, s, bar, tv_noted_str(bar, "pci"));
    }
    for (const tv_sighting *s = tv_scene_first(q->scene, "lspci"); s;
         s = tv_scene_next(s, "lspci")) {
        const tv_note *list = tv_noted(&s->facts, "devices");
        for (const tv_note *d = list ? list->first : NULL; d; d = d->next) {
            const tv_note *bars = tv_noted_bool(d, "gpu", false) ? tv_noted(d, "bars") : NULL;
            for (const tv_note *bar = bars ? bars->first : NULL; bar; bar = bar->next)
                if (tv_noted_bool(bar, "unassigned", false))
                    (void)no_room(q, rule, s, bar, tv_noted_str(d, "bdf"));
        }
    }
}

static void judge_room(tv_inquiry *q, const tv_rule *rule)
{
    judge_regions(q, rule);
    for (const tv_sighting *s = tv_scene_first(q->scene, "kernel"); s;
         s = tv_scene_next(s, "kernel")) {
        const tv_note *list = tv_noted(&s->facts, "bar_failures");
        for (const tv_note *bar = list ? list->first : NULL; bar; bar = bar->next) {
            const tv_str pci = tv_noted_str(bar, "pci");
            const bool gpu = tv_pci_is_gpu(q->scene, pci);
            const bool other = !gpu && tv_pci_device(q->scene, pci, NULL);
            if (other || (!gpu && !(tv_noted_num(bar, "bytes") >= gpu_window_bytes)))
                continue;
            tv_finding *f = no_room(q, rule, s, bar, pci);
            if (!gpu)
                f->sure = TV_MEDIUM;
        }
    }
}

/* ---- C01: bridges that redirect ---- */

typedef struct acs_bits {
    const char *name;
    unsigned bit;
} acs_bits;

/* PCI Express Base Specification, ACS Control Register. */
static const acs_bits acs_names[] = {
    {"SrcValid", 0x1},     {"TransBlk", 0x2},    {"ReqRedir", 0x4},     {"CmpltRedir", 0x8},
    {"UpstreamFwd", 0x10}, {"EgressCtrl", 0x20}, {"DirectTrans", 0x40},
};

static unsigned acs_of(const tv_note *device)
{
    const tv_note *list = tv_noted(device, "acs");
    unsigned bits = 0;
    for (const tv_note *flag = list ? list->first : NULL; flag; flag = flag->next)
        for (size_t k = 0; k < sizeof acs_names / sizeof *acs_names; k++)
            if (tv_str_is(flag->s, acs_names[k].name))
                bits |= acs_names[k].bit;
    return bits;
}

/* Requests or completions go up to the root complex instead of straight to the peer. */
static bool redirects(unsigned bits)
{
    return (bits & 0xc) != 0;
}

static tv_str names_of(tv_arena *a, unsigned bits)
{
    tv_buf b = tv_buf_in(a);
    for (size_t k = 0; k < sizeof acs_names / sizeof *acs_names; k++)
        if (bits & acs_names[k].bit) {
            if (b.n)
                tv_puts(&b, ", ");
            tv_puts(&b, acs_names[k].name);
        }
    return tv_buf_str(&b);
}

static tv_str hex4(tv_arena *a, unsigned bits)
{
    tv_buf b = tv_buf_in(a);
    for (unsigned k = 4; k--;)
        tv_putc(&b, "0123456789abcdef"[bits >> (4 * k) & 15]);
    return tv_buf_str(&b);
}

typedef struct bridges {
    const tv_sighting *s[8];
    const tv_note *v[8];
    unsigned bits[8];
    size_t n;     /* that are kept */
    size_t total; /* that redirect */
} bridges;

static void gather(tv_inquiry *q, bridges *out)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "lspci"); s;
         s = tv_scene_next(s, "lspci")) {
        const tv_note *list = tv_noted(&s->facts, "devices");
        for (const tv_note *d = list ? list->first : NULL; d; d = d->next) {
            const unsigned bits = acs_of(d);
            const tv_str bdf = tv_noted_str(d, "bdf");
            if (!redirects(bits) || (bdf.n && !tv_noted_bool(d, "bridge", false)) ||
                (bdf.n && tv_pci_above_gpu(q->scene, bdf) == TV_ABOVE_NO))
                continue;
            out->total++;
            if (out->n == sizeof out->v / sizeof *out->v)
                continue;
            out->s[out->n] = s;
            out->v[out->n] = d;
            out->bits[out->n++] = bits;
        }
    }
}

/* How the GPUs reach each other. */
typedef struct paths {
    const tv_sighting *s;
    size_t pcie, nvlink, far;
} paths;

static paths paths_of(const tv_scene *scene)
{
    paths p = {0};
    p.s = tv_scene_first(scene, "topo");
    const tv_note *links = p.s ? tv_noted(&p.s->facts, "links") : NULL;
    for (const tv_note *link = links ? links->first : NULL; link; link = link->next) {
        if (!link->key || link->key[0] < '0' || link->key[0] > '9') /* a NIC takes part */
            continue;
        if (tv_str_starts(link->s, TV_S("NV")))
            p.nvlink++;
        else if (tv_str_is(link->s, "SYS") || tv_str_is(link->s, "SOC"))
            p.far++;
        else
            p.pcie++;
    }
    const tv_str all = p.s ? tv_noted_str(&p.s->facts, "all_links") : (tv_str){0};
    if (p.pcie + p.nvlink + p.far == 0 && all.n) {
        p.nvlink += tv_str_starts(all, TV_S("NV"));
        p.far += tv_str_is(all, "SYS");
        p.pcie += !p.nvlink && !p.far;
    }
    return p;
}

static bool hangs(const tv_inquiry *q)
{
    if (tv_scene_first(q->scene, "watchdog") || tv_has_found(q, "C03"))
        return true;
    for (const tv_sighting *s = tv_scene_first(q->scene, "nvidia-smi"); s;
         s = tv_scene_next(s, "nvidia-smi")) {
        const tv_note *gpus = tv_noted(&s->facts, "gpus");
        size_t spinning = 0;
        for (const tv_note *gpu = gpus ? gpus->first : NULL; gpu; gpu = gpu->next)
            spinning += tv_noted_num(gpu, "util_frac") >= 0.99 &&
                        tv_noted_num(gpu, "power_w") < 0.45 * tv_noted_num(gpu, "power_limit_w");
        if (spinning >= 2)
            return true;
    }
    return false;
}

static tv_str bridge_names(tv_arena *a, const bridges *all)
{
    tv_buf b = tv_buf_in(a);
    for (size_t k = 0; k < all->n; k++) {
        const tv_str bdf = tv_noted_str(all->v[k], "bdf");
        if (b.n && bdf.n)
            tv_puts(&b, ", ");
        tv_put(&b, bdf);
    }
    if (all->total > all->n && b.n)
        tv_puts(&b, ", ...");
    return b.n ? tv_buf_str(&b) : TV_S("?");
}

static void put_bridges(tv_inquiry *q, tv_finding *f, const bridges *all)
{
    static const char *const names[] = {"bridge", "bridge_2"};
    static const char *const old[] = {"acs_hex", "acs_hex_2"};
    tv_found_num(q, f, "bridges_n", TV_ARG_COUNT, (double)all->total);
    tv_found_str(q, f, "bridges", bridge_names(q->a, all));
    tv_found_str(q, f, "acs", names_of(q->a, all->bits[0]));
    if (!tv_noted_str(all->v[0], "bdf").n)
        tv_ask(q, "sudo lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'",
               N_("It names the bridges: the lines here do not say whose bits they are."));
    for (size_t k = 0; k < all->n; k++) {
        const tv_note *acs = tv_noted(all->v[k], "acs");
        tv_found_also(q, f, all->s[k], all->v[k]);
        tv_found_also(q, f, all->s[k], acs);
        const tv_str bdf = tv_noted_str(all->v[k], "bdf");
        if (k < 2 && bdf.n) {
            tv_found_str(q, f, names[k], bdf);
            tv_found_str(q, f, old[k], hex4(q->a, all->bits[k]));
        }
    }
}

static const char *const only_nics =
    N_("{bridges_n} PCIe bridges redirect traffic between peers ({acs}: {bridges}). The GPUs reach "
       "each other over NVLink, which is not touched; GPUDirect RDMA between a GPU and a network "
       "card is.");
static const char *const not_hung =
    N_("{bridges_n} PCIe bridges redirect traffic between peers through the root complex ({acs}: "
       "{bridges}). Copies from GPU to GPU over PCIe are then slow, wrong or never end; the first "
       "collective may hang.");

static void judge_acs(tv_inquiry *q, const tv_rule *rule)
{
    bridges all = {.n = 0};
    gather(q, &all);
    const paths p = paths_of(q->scene);
    const tv_sighting *bus = NULL;
    const bool several = p.pcie + p.nvlink + p.far > 0 || gpus_on_bus(q->scene, &bus) > 1;
    if (!all.total || !several)
        return;
    tv_finding *f = tv_found(q, rule, all.s[0], all.v[0]);
    put_bridges(q, f, &all);
    if (p.s)
        tv_found_also(q, f, p.s, NULL);
    if (p.s && !p.pcie && !p.far) {
        f->severity = TV_INFO;
        f->cause = only_nics;
    } else if (!hangs(q)) {
        f->severity = TV_WARNING;
        f->cause = not_hung;
        f->sure = p.pcie ? TV_HIGH : TV_MEDIUM;
    }
}

/* ---- C02: IOMMU faults ---- */

static const char *const fault_unknown = N_(
    "The IOMMU refused {faults} accesses of the device at {pci} ({what}). If it is a GPU, copies "
    "between GPUs return zeros or hang.");

static void judge_iommu(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "kernel"); s;
         s = tv_scene_next(s, "kernel")) {
        const tv_note *list = tv_noted(&s->facts, "iommu_faults");
        for (const tv_note *item = list ? list->first : NULL; item; item = item->next) {
            const tv_str pci = tv_noted_str(item, "pci");
            const tv_str driver = tv_noted_str(item, "driver");
            const bool gpu = tv_str_is(driver, "nvidia") || tv_pci_is_gpu(q->scene, pci);
            if (!gpu && ((driver.n && !tv_str_is(driver, "AMD-Vi:") && !tv_str_is(driver, "pci")) ||
                         tv_pci_device(q->scene, pci, NULL)))
                continue;
            tv_finding *f = tv_found(q, rule, s, item);
            tv_found_str(q, f, "pci", pci.n ? pci : TV_S("?"));
            tv_found_str(q, f, "what", tv_noted_str(item, "what"));
            tv_found_str(q, f, "address", tv_noted_str(item, "address"));
            tv_found_num(q, f, "faults", TV_ARG_COUNT, tv_noted_num(item, "n"));
            if (!gpu) {
                f->cause = fault_unknown;
                f->sure = TV_MEDIUM;
                f->severity = TV_WARNING;
                tv_ask(q, "lspci -nn", N_("It names the device that the IOMMU refused."));
            }
        }
    }
}

static const tv_rule rules[] = {
    {
        .id = "H08",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The link to a GPU reports errors"),
        .cause = N_("The PCIe port {port} corrected {errors} errors on its link (first: {error}). "
                    "Each costs a repeat; many of them slow every copy and end in a lost GPU. The "
                    "signal is poor: seat, riser, cable, slot."),
        .decided =
            N_("Two or more AER errors on the port above a GPU, on the GPU itself, or on a "
               "port that nothing else tells of; errors after a GPU was lost are not counted. "
               "A single corrected error is told for completeness."),
        .unless = N_("Ports of other devices (their own driver reports them, or lspci shows no GPU "
                     "below them)."),
        .source = "https://github.com/pop-os/pop/issues/3363",
        .steps = {{.command = "sudo lspci -vv -s {port} | grep -E 'LnkCap|LnkSta|CESta'",
                   .why = N_("Look at the link's speed and width, and at the error bits.")},
                  {.why =
                       N_("Re-seat the card, replace or leave out the riser or cable, try another "
                          "slot. Then count again.")},
                  {.why = N_(
                       "A test: set the slot to a lower PCIe generation in the BIOS; if the errors "
                       "stop, the signal is the cause. Set it back afterwards.")},
                  {.command = "sudo nvidia-smi -q -d PCIE",
                   .why = N_("The GPU's own count of replays: it must stay still.")}},
        .outranks = "H27",
        .judge = judge_link_errors,
    },
    {
        .id = "H26",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The BIOS gives a GPU no address space"),
        .cause = N_("The device at {pci} got no room for its memory window: the driver cannot use "
                    "the card. The BIOS keeps large windows below 4 GB, or its area is too small "
                    "for the cards in this machine."),
        .decided = N_("The driver calls a BAR invalid or 0 bytes; lspci shows an unassigned region "
                      "of a GPU; or the kernel finds no space for a window of a GPU (256 MiB and "
                      "more where the device is not known)."),
        .unless = N_("I/O windows of bridges that could not be assigned are harmless."),
        .source = "https://github.com/NVIDIA/open-gpu-kernel-modules",
        .steps = {{.why = N_("In the BIOS: switch on Above 4G Decoding (and Resizable BAR if it is "
                             "offered), or enlarge the MMIO area; note the old settings.")},
                  {.why =
                       N_("If the BIOS has neither: start the kernel once with pci=realloc on its "
                          "command line (edit the boot entry; nothing lasts).")},
                  {.command = "sudo lspci -vv -s {pci} | grep Region",
                   .why = N_("Afterwards: every region has an address.")}},
        .outranks = "H25",
        .judge = judge_room,
    },
    {
        .id = "H25",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A GPU of the machine cannot be used"),
        .cause =
            N_("The bus has {on_bus} NVIDIA GPUs, nvidia-smi shows {seen}: the driver left the "
               "others out."),
        .decided = N_("The driver's log says RmInitAdapter failed; or lspci lists more NVIDIA GPUs "
                      "than nvidia-smi; or nvidia-smi finds no devices."),
        .unless = N_("In a container or a job nvidia-smi shows only the GPUs that were handed in."),
        .source = "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/789",
        .steps = {{.command = "sudo dmesg -T | grep -iE 'NVRM|AER|pcieport'",
                   .why = N_("Find the first error of that GPU at start.")},
                  {.command = "lspci -nnk -d 10de:",
                   .why = N_("See which GPUs are there, and which "
                             "driver holds each.")},
                  {.why = N_(
                       "Power the machine off for half a minute and start again; then re-seat the "
                       "card and its power cables, and try it in another slot.")},
                  {.command = "sudo nvidia-bug-report.sh",
                   .why = N_("If it comes again: collect this for the vendor.")}},
        .judge = judge_missing,
    },
    {
        .id = "C01",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("PCIe bridges redirect traffic between GPUs (ACS)"),
        .cause =
            N_("{bridges_n} PCIe bridges redirect traffic between peers through the root complex "
               "({acs}: {bridges}), so a copy from GPU to GPU never arrives: the GPUs spin and "
               "the first collective never returns."),
        .decided =
            N_("lspci shows ReqRedir or CmpltRedir set in ACSCtl of a bridge above a GPU, and "
               "there is more than one GPU. With NVLink between all pairs it is told for "
               "completeness; without signs of a hang it is a warning."),
        .unless =
            N_("It does not touch pairs that talk over NVLink, nor copies through host memory. "
               "NCCL_SHM_DISABLE is not needed for the stop-gap. Virtual machines that are "
               "given single devices need ACS: leave it on there."),
        .source = "https://github.com/NVIDIA/nccl/issues/2079",
        .steps =
            {{.command = "NCCL_P2P_DISABLE=1 torchrun TRAIN.py",
              .why =
                  N_("Stop-gap and test in one: without peer-to-peer the job runs, slower. Unset "
                     "it afterwards; NCCL_SHM_DISABLE is not needed for it.")},
             {.command = "sudo setpci -s {bridge} ECAP_ACS+6.w=0000",
              .undo = "sudo setpci -s {bridge} ECAP_ACS+6.w={acs_hex}",
              .why =
                  N_("Clear the bits until the next start; repeat for every bridge that is named. "
                     "Not on a host that gives devices to virtual machines.")},
             {.command = "sudo setpci -s {bridge_2} ECAP_ACS+6.w=0000",
              .undo = "sudo setpci -s {bridge_2} ECAP_ACS+6.w={acs_hex_2}",
              .why = N_("The same for the next bridge.")},
             {.why = N_("For good: switch ACS (or the IOMMU, VT-d) off in the BIOS, or start the "
                        "kernel with iommu=pt; note the old settings.")},
             {.command = "sudo lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'",
              .why = N_("Afterwards: no bridge above a GPU shows ReqRedir+ or CmpltRedir+.")}},
        .outranks = "C02 C03 C04 C18",
        .judge = judge_acs,
    },
    {
        .id = "C02",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The IOMMU refuses accesses of a GPU"),
        .cause =
            N_("The IOMMU refused {faults} accesses of the GPU at {pci} ({what}). Copies between "
               "GPUs then return zeros or hang: peer addresses are not translated."),
        .decided =
            N_("IO_PAGE_FAULT or DMAR faults whose device is a GPU (its driver or lspci says "
               "so). A device that nothing names is a warning."),
        .unless = N_("Faults of other devices (USB, network, storage)."),
        .source = "https://github.com/tinygrad/open-gpu-kernel-modules/issues/18",
        .steps = {{.command = "cat /proc/cmdline",
                   .why = N_("See how the IOMMU is set now; keep the line for going back.")},
                  {.why =
                       N_("Start the kernel with iommu=pt (add it to GRUB_CMDLINE_LINUX, run "
                          "update-grub, restart; take it out again to undo), or switch the IOMMU "
                          "off in the BIOS if no virtual machine needs it.")},
                  {.command = "NCCL_P2P_DISABLE=1 torchrun TRAIN.py",
                   .why = N_("Stop-gap: slower, but correct. Unset it afterwards.")}},
        .judge = judge_iommu,
    },
};

extern const tv_rule_group tv_rule_group_bus_rules;
const tv_rule_group tv_rule_group_bus_rules = {"bus", N_("The PCIe bus"), rules,
                                               sizeof rules / sizeof *rules};
