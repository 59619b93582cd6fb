/* lspci: which devices there are, how their links stand, and what their bridges do with traffic
 * between peers. A device begins where a line begins with its address; what belongs to it follows,
 * indented or not. */
#include "kernel_line.h"

#include <math.h>

enum { DEVICES_MOST = 1024 };

typedef struct listing {
    tv_reading *r;
    tv_sighting *s;
    tv_note *device; /* the one that is being read */
} listing;

static tv_note *facts_of(listing *l, size_t i)
{
    if (!l->s)
        l->s = tv_see_once(l->r, "lspci", i);
    return &l->s->facts;
}

static void put(listing *l, tv_note *in, const char *key, tv_str s)
{
    if (s.n)
        (void)tv_note_str(l->r->a, in, key, s);
}

/* ---- the head: "41:00.0 3D controller [0302]: NVIDIA Corporation GA100 [10de:20b5] (rev a1)" ----
 */

static bool is_gpu_class(tv_str kind)
{
    return tv_str_starts(kind, TV_S("VGA compatible")) || tv_str_starts(kind, TV_S("3D ")) ||
           tv_str_starts(kind, TV_S("Display ")) || tv_str_starts(kind, TV_S("0300")) ||
           tv_str_starts(kind, TV_S("0302")) || tv_str_starts(kind, TV_S("0380"));
}

static bool hex4(tv_str s)
{
    if (s.n < 4)
        return false;
    for (size_t i = 0; i < 4; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || ((s.p[i] | 32) >= 'a' && (s.p[i] | 32) <= 'f')))
            return false;
    return true;
}

/* The last "[10de:20b5]" of the line, or "10de:20b5" of -n. */
static tv_str ids_of(tv_str name)
{
    for (size_t i = name.n; i >= 9; i--) {
        const tv_str t = tv_str_drop(name, i - 9);
        const bool edge = i == 9 || name.p[i - 10] == '[';
        if (edge && hex4(t) && t.p[4] == ':' && hex4(tv_str_drop(t, 5)))
            return tv_str_take(t, 9);
    }
    return (tv_str){0};
}

typedef struct head {
    tv_str bdf, kind, name;
} head;

static bool head_of(tv_str line, head *h)
{
    tv_str rest = line;
    h->bdf = tv_take_pci(&rest);
    if (!h->bdf.n || !tv_holds(h->bdf, ".") || !tv_str_starts(rest, TV_S(" ")))
        return false;
    rest = tv_str_trim(rest);
    const bool quoted = tv_str_starts(rest, TV_S("\"")); /* -mm */
    if (quoted) {
        h->kind = tv_enclosed(rest, "\"", "\"");
        tv_str name;
        (void)tv_past(rest, "\" \"", &name);
        h->name = name;
        return h->kind.n > 0;
    }
    tv_str name;
    if (!tv_past(rest, ": ", &name))
        return false;
    h->kind = tv_str_take(rest, rest.n - name.n - 2);
    h->name = name;
    const bool word =
        h->kind.n && h->kind.n < 64 &&
        ((h->kind.p[0] >= 'A' && h->kind.p[0] <= 'Z') || h->kind.p[0] == '3' || hex4(h->kind));
    return word && !tv_holds(h->kind, "(") && !tv_holds(h->kind, "=");
}

static bool is_nvidia(const head *h, tv_str ids)
{
    return tv_holds(h->name, "NVIDIA") || tv_holds(h->name, "nVidia") ||
           tv_str_starts(ids, TV_S("10de:"));
}

static void count_gpu(listing *l, tv_note *facts, tv_note *device, const head *h)
{
    (void)tv_note_bool(l->r->a, device, "nvidia", true);
    if (tv_holds(h->name, "NVSwitch") || tv_str_starts(h->kind, TV_S("Bridge")))
        tv_count_up(l->r->a, facts, "nvswitches");
    if (!is_gpu_class(h->kind))
        return;
    (void)tv_note_bool(l->r->a, device, "gpu", true);
    tv_count_up(l->r->a, facts, "gpus_on_bus");
    if (tv_holds(h->name, "(rev ff)")) /* every register reads as ones: it does not answer */
        (void)tv_note_bool(l->r->a, device, "dead", true);
}

/* Run twice (with -vv, with -t), a device is told once. */
static tv_note *device_of(tv_note *list, tv_str bdf)
{
    for (tv_note *device = list->first; device; device = device->next)
        if (bdf.n && tv_str_eq(tv_noted_str(device, "bdf"), bdf))
            return device;
    return NULL;
}

static bool begin(listing *l, tv_str line, size_t i)
{
    head h = {{0}, {0}, {0}};
    if (!head_of(line, &h))
        return false;
    tv_note *facts = facts_of(l, i);
    tv_note *list = tv_note_list(l->r->a, facts, "devices");
    l->device = device_of(list, h.bdf);
    if (l->device || list->n >= DEVICES_MOST)
        return true;
    tv_note *device = l->device = tv_at(l->r, tv_note_map(l->r->a, list, NULL), i);
    const tv_str ids = ids_of(h.name);
    put(l, device, "bdf", h.bdf);
    put(l, device, "class", h.kind);
    put(l, device, "name", h.name);
    put(l, device, "ids", ids);
    if (tv_holds(h.kind, "bridge") || tv_str_starts(h.kind, TV_S("0604")))
        (void)tv_note_bool(l->r->a, device, "bridge", true);
    if (is_nvidia(&h, ids))
        count_gpu(l, facts, device, &h);
    return true;
}

/* ---- what belongs to a device ---- */

/* "LnkCap: Port #0, Speed 16GT/s, Width x16, ASPM ..." */
static void read_link(listing *l, tv_str line, const char *speed_key, const char *lanes_key)
{
    const tv_double_read speed = tv_number_past(line, "Speed ");
    const tv_double_read lanes = tv_number_past(line, "Width x");
    if (speed.ok)
        (void)tv_note_num(l->r->a, l->device, speed_key, speed.v);
    if (lanes.ok)
        (void)tv_note_num(l->r->a, l->device, lanes_key, lanes.v);
}

static void read_capability(listing *l, tv_str line, size_t i)
{
    (void)i;
    read_link(l, line, "link_max_gt_per_s", "link_max_lanes");
}

/* "LnkSta: Speed 2.5GT/s (downgraded), Width x8 (downgraded)" */
static void read_status(listing *l, tv_str line, size_t i)
{
    read_link(l, line, "link_gt_per_s", "link_lanes");
    const tv_note *d = l->device;
    const double speed = tv_noted_num(d, "link_gt_per_s"),
                 top = tv_noted_num(d, "link_max_gt_per_s");
    const double lanes = tv_noted_num(d, "link_lanes"), most = tv_noted_num(d, "link_max_lanes");
    const tv_str before = tv_enclosed(line, "Speed ", ",");
    const tv_str behind = tv_enclosed(line, "Width ", NULL);
    (void)tv_at(l->r,
                tv_note_bool(l->r->a, l->device, "speed_downgraded",
                             tv_holds(before, "(downgraded)") || speed < top),
                i);
    (void)tv_at(l->r,
                tv_note_bool(l->r->a, l->device, "width_downgraded",
                             tv_holds(behind, "(downgraded)") || lanes < most),
                i);
}

/* "ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ ...": the bits that are set. */
static void read_flags(listing *l, tv_str line, const char *key, size_t i)
{
    tv_note *list = tv_note_list(l->r->a, l->device, key);
    if (list->n)
        return;
    (void)tv_at(l->r, list, i);
    tv_str w[24];
    const size_t n = tv_words(line, w, 24);
    for (size_t k = 0; k < n && k < 24; k++)
        if (w[k].n > 1 && w[k].p[w[k].n - 1] == '+')
            (void)tv_note_str(l->r->a, list, NULL, tv_str_take(w[k], w[k].n - 1));
}

static void read_acs(listing *l, tv_str line, size_t i)
{
    read_flags(l, line, "acs", i);
}

static void read_errors(listing *l, tv_str line, size_t i)
{
    read_flags(l, line, "device_errors", i);
}

static void read_correctable(listing *l, tv_str line, size_t i)
{
    read_flags(l, line, "correctable_errors", i);
}

/* "Region 1: Memory at 38c000000000 (64-bit, prefetchable) [size=64G]" */
static void read_region(listing *l, tv_str line, size_t i)
{
    tv_note *list = tv_note_list(l->r->a, l->device, "bars");
    if (list->n >= 16)
        return;
    tv_note *bar = tv_at(l->r, tv_note_map(l->r->a, list, NULL), i);
    const tv_double_read index = tv_number_past(line, "Region ");
    const tv_double_read bytes = tv_bytes_past(line, "[size=");
    const bool lacks = tv_holds(line, "<unassigned>") || tv_holds(line, "<ignored>");
    if (index.ok)
        (void)tv_note_num(l->r->a, bar, "bar", index.v);
    (void)tv_note_num(l->r->a, bar, "bytes", bytes.ok ? bytes.v : (double)NAN);
    if (lacks)
        (void)tv_note_bool(l->r->a, bar, "unassigned", true);
}

static void read_driver(listing *l, tv_str line, size_t i)
{
    tv_str rest;
    if (tv_past(line, "in use:", &rest))
        (void)tv_at(l->r, tv_note_str(l->r->a, l->device, "driver", tv_str_trim(rest)), i);
}

static void read_modules(listing *l, tv_str line, size_t i)
{
    (void)i;
    put(l, l->device, "modules", tv_enclosed(line, "modules:", NULL));
}

static void read_numa(listing *l, tv_str line, size_t i)
{
    (void)i;
    const tv_double_read node = tv_number_past(line, "node:");
    if (node.ok)
        (void)tv_note_num(l->r->a, l->device, "numa_node", node.v);
}

/* "Bus: primary=00, secondary=41, subordinate=43, sec-latency=0": what lies below the bridge. */
static void read_buses(listing *l, tv_str line, size_t i)
{
    (void)i;
    put(l, l->device, "secondary", tv_enclosed(line, "secondary=", ","));
    tv_str rest;
    if (tv_past(line, "subordinate=", &rest))
        put(l, l->device, "subordinate", tv_take_word(&rest));
}

static void read_dead(listing *l, tv_str line, size_t i)
{
    (void)line;
    (void)tv_at(l->r, tv_note_bool(l->r->a, l->device, "dead", true), i);
}

typedef struct detail {
    const char *head;
    void (*read)(listing *l, tv_str line, size_t i);
} detail;

static const detail details[] = {
    {"LnkCap:", read_capability},
    {"LnkSta:", read_status},
    {"ACSCtl:", read_acs},
    {"DevSta:", read_errors},
    {"CESta:", read_correctable},
    {"Region ", read_region},
    {"Memory at ", read_region},
    {"Kernel driver in use:", read_driver},
    {"Kernel modules:", read_modules},
    {"NUMA node:", read_numa},
    {"Bus: primary=", read_buses},
    {"!!! Unknown header type", read_dead},
};

/* A line of what grep left: "ACSCtl: ..." without the device that it belongs to. */
static void begin_nameless(listing *l, size_t i)
{
    tv_note *list = tv_note_list(l->r->a, facts_of(l, i), "devices");
    if (list->n < DEVICES_MOST)
        l->device = tv_at(l->r, tv_note_map(l->r->a, list, NULL), i);
}

static void read_detail(listing *l, tv_str line, size_t i)
{
    for (size_t k = 0; k < sizeof details / sizeof *details; k++) {
        if (!tv_str_starts(line, tv_str_of(details[k].head)))
            continue;
        const bool acs = details[k].read == read_acs;
        if (acs && (!l->device || tv_noted(l->device, "acs")))
            begin_nameless(l, i);
        if (l->device)
            details[k].read(l, line, i);
        return;
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void put_acs(listing *l, tv_note *device, unsigned bits, size_t i)
{
    static const char *const names[] = {"SrcValid",    "TransBlk",   "ReqRedir",   "CmpltRedir",
                                        "UpstreamFwd", "EgressCtrl", "DirectTrans"};
    tv_note *acs = tv_at(l->r, tv_note_list(l->r->a, device, "acs"), i);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (bits >> k & 1)
            (void)tv_note_str(l->r->a, acs, NULL, tv_str_of(names[k]));
}

/* setpci -v: "0000:00:07.1 (ecap 000d @2a0) @2a6 = 001d": the ACS control register of a bridge. */
static bool read_setpci(listing *l, tv_str line, size_t i)
{
    tv_str rest = line;
    const tv_str bdf = tv_take_pci(&rest);
    if (!bdf.n || line.n < 4 || !tv_past(rest, "(ecap 000d @", &rest) ||
        !tv_past(rest, ") @", &rest))
        return false;
    unsigned bits = 0;
    for (size_t k = line.n - 4; k < line.n; k++) {
        const int v = hex_digit(line.p[k]);
        if (v < 0)
            return false;
        bits = bits << 4 | (unsigned)v;
    }
    tv_note *list = tv_note_list(l->r->a, facts_of(l, i), "devices");
    if (list->n >= DEVICES_MOST || device_of(list, bdf))
        return true;
    tv_note *device = tv_at(l->r, tv_note_map(l->r->a, list, NULL), i);
    put(l, device, "bdf", bdf);
    (void)tv_note_bool(l->r->a, device, "bridge", true);
    put_acs(l, device, bits, i);
    return true;
}

/* -t: " +-01.1-[41]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB]" */
static void read_tree(listing *l, tv_str line, size_t i)
{
    if (!tv_holds(line, "NVIDIA Corporation ") || !(tv_holds(line, "--") || tv_holds(line, "-[")) ||
        tv_holds(line, "Audio") || tv_holds(line, "USB") || tv_holds(line, "UCSI") ||
        tv_holds(line, "NVSwitch"))
        return;
    tv_count_up(l->r->a, facts_of(l, i), "gpus_in_tree");
}

static void read(tv_reading *r)
{
    listing l = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = tv_str_trim(r->sheet->v[i].s);
        if (!line.n || read_setpci(&l, line, i) || begin(&l, line, i))
            continue;
        if (line.p[0] == '$' || line.p[0] == '#') /* another command's output follows */
            l.device = NULL;
        read_detail(&l, line, i);
        read_tree(&l, line, i);
    }
}

static const char *const needles[] = {
    "VGA compatible controller",
    "3D controller",
    "PCI bridge",
    "ACSCtl:",
    "LnkSta:",
    "(ecap 000d @",
    " 0302: 10de:",
    " 0300: 10de:",
    "\"NVIDIA Corporation\"",
    "0  NVIDIA Corporation ",
    NULL,
};

extern const tv_log_format tv_log_format_lspci;
const tv_log_format tv_log_format_lspci = {"lspci", needles, read};
