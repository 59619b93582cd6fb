/* Single values of /sys and /proc/sys, as `grep . FILE...` prints them and as the host's probe
 * writes them: "/sys/bus/pci/devices/0000:41:00.0/numa_node:1". */
#include "glean.h"
#include "trace.h"

#include <math.h>
#include <string.h>

typedef struct host_sys {
    tv_reading *r;
    tv_note *facts; /* NULL: nothing seen yet */
    size_t i;
    tv_str value;
    double quota; /* of the last control group, in microseconds of a period */
} host_sys;

static tv_note *facts_of(host_sys *h)
{
    if (!h->facts)
        h->facts = &tv_see(h->r, "host", h->i)->facts;
    return h->facts;
}

static void put(host_sys *h, tv_note *in, const char *key)
{
    tv_str rest = h->value;
    const tv_double_read v = tv_take_number(&rest);
    tv_arena *a = h->r->a;
    if (v.ok && !rest.n)
        (void)tv_at(h->r, tv_note_num(a, in, key, v.v), h->i);
    else
        (void)tv_at(h->r, tv_note_str(a, in, key, h->value), h->i);
}

static void put_scaled(host_sys *h, tv_note *in, const char *key, double factor)
{
    tv_str rest = h->value;
    const tv_double_read v = tv_take_number(&rest);
    if (v.ok)
        (void)tv_at(h->r, tv_note_num(h->r->a, in, key, v.v * factor), h->i);
}

/* The item of a list whose member `key` is that text; made where there is none. */
static tv_note *item(host_sys *h, const char *list, const char *key, tv_str name)
{
    tv_note *items = tv_note_list(h->r->a, facts_of(h), list);
    for (tv_note *at = items->first; at; at = at->next)
        if (tv_str_eq(tv_noted_str(at, key), name))
            return at;
    tv_note *fresh = tv_at(h->r, tv_note_map(h->r->a, items, NULL), h->i);
    (void)tv_note_str(h->r->a, fresh, key, name);
    return fresh;
}

/* ---- PCI ---- */

/* "0x030200" */
static double hex(tv_str s)
{
    const tv_u64_read v = tv_take_u64(&s);
    return v.ok ? (double)v.v : (double)NAN;
}

typedef struct plain_row {
    const char *file;
    const char *key;
    double factor; /* 0: as it stands */
} plain_row;

static const plain_row pci_rows[] = {
    {"numa_node", "numa_node", 0},
    {"local_cpulist", "cpus", 0},
    {"current_link_speed", "link_transfers_per_s", 1e9}, /* "16.0 GT/s PCIe" */
    {"max_link_speed", "link_max_transfers_per_s", 1e9},
    {"current_link_width", "link_width", 0},
    {"max_link_width", "link_width_max", 0},
    {"driver", "driver", 0},
    {"iommu_group", "iommu_group", 0},
    {"enable", "enabled_n", 0},
    {"power_state", "power_state", 0},
};

static bool put_row(host_sys *h, tv_note *in, const plain_row *rows, size_t n, tv_str file)
{
    for (size_t k = 0; k < n; k++) {
        if (!tv_str_is(file, rows[k].file))
            continue;
        if (rows[k].factor > 0)
            put_scaled(h, in, rows[k].key, rows[k].factor);
        else
            put(h, in, rows[k].key);
        return true;
    }
    return false;
}

static void see_pci(host_sys *h, tv_str rest)
{
    const tv_cut cut = tv_str_cut(rest, '/');
    if (!cut.found)
        return;
    if (tv_str_is(cut.tail, "acs_ctl")) { /* bits 2 to 4 send traffic between peers upwards */
        const double control = hex(h->value);
        tv_note *bridge = item(h, "acs_bridges", "bus", cut.head);
        (void)tv_at(h->r, tv_note_num(h->r->a, bridge, "control", control), h->i);
        (void)tv_note_bool(h->r->a, bridge, "redirects", ((unsigned)control & 0x1c) != 0);
        return;
    }
    tv_note *device = item(h, "pci", "bus", cut.head);
    if (tv_str_is(cut.tail, "vendor") || tv_str_is(cut.tail, "device") ||
        tv_str_is(cut.tail, "class"))
        (void)tv_at(h->r,
                    tv_note_str(h->r->a, device,
                                tv_str_is(cut.tail, "vendor")   ? "vendor"
                                : tv_str_is(cut.tail, "device") ? "device"
                                                                : "class",
                                h->value),
                    h->i);
    else
        (void)put_row(h, device, pci_rows, sizeof pci_rows / sizeof *pci_rows, cut.tail);
}

/* ---- processors and memory nodes ---- */

static void see_cpu(host_sys *h, tv_str rest)
{
    tv_note *cpu = tv_note_map(h->r->a, facts_of(h), "cpu");
    static const plain_row rows[] = {
        {"online", "online", 0},
        {"smt/active", "smt", 0},
        {"cpu0/cpufreq/scaling_driver", "driver", 0},
        {"cpu0/cpufreq/energy_performance_preference", "preference", 0},
        {"cpu0/cpufreq/scaling_max_freq", "max_hz", 1e3},
        {"cpu0/cpufreq/cpuinfo_max_freq", "hardware_max_hz", 1e3},
    };
    if (put_row(h, cpu, rows, sizeof rows / sizeof *rows, rest) ||
        !tv_str_ends(rest, TV_S("/cpufreq/scaling_governor")))
        return;
    /* the first one stands for all, unless they differ */
    tv_note *governors = tv_note_map(h->r->a, cpu, "governors");
    const char *name = tv_cstr(h->r->a, h->value);
    const double before = tv_noted_num(governors, name);
    (void)tv_at(h->r, tv_note_num(h->r->a, governors, name, isnan(before) ? 1 : before + 1), h->i);
    if (!tv_noted(cpu, "governor"))
        (void)tv_at(h->r, tv_note_str(h->r->a, cpu, "governor", h->value), h->i);
}

/* "Node 0 MemTotal:  131870440 kB" */
static void see_node(host_sys *h, tv_str rest)
{
    const tv_cut cut = tv_str_cut(rest, '/');
    if (!tv_str_starts(cut.head, TV_S("node")))
        return;
    tv_note *node = item(h, "numa_nodes", "node", tv_str_drop(cut.head, 4));
    const tv_double_read kib = tv_number_past(h->value, "MemTotal:");
    if (tv_str_is(cut.tail, "meminfo") && kib.ok)
        (void)tv_at(h->r, tv_note_num(h->r->a, node, "mem_bytes", kib.v * 1024), h->i);
    else if (tv_str_is(cut.tail, "cpulist") || tv_str_is(cut.tail, "distance"))
        (void)tv_at(h->r,
                    tv_note_str(h->r->a, node,
                                tv_str_is(cut.tail, "distance") ? "distance" : "cpus", h->value),
                    h->i);
}

/* ---- InfiniBand, network, disks, sensors ---- */

/* "4: ACTIVE", "200 Gb/sec (4X HDR)" */
static void see_infiniband(host_sys *h, tv_str rest)
{
    tv_str part[5];
    const size_t n = tv_fields(rest, '/', part, 5);
    if (n == 3 && tv_str_is(part[2], "numa_node")) {
        put(h, item(h, "ib_devices", "device", part[0]), "numa_node");
        return;
    }
    if (n < 4 || n > 5 || !tv_str_is(part[1], "ports"))
        return;
    const tv_str name = tv_str_take(rest, (size_t)(part[2].p + part[2].n - rest.p));
    tv_note *port = item(h, "ib_ports", "port", name);
    const tv_cut state = tv_str_cut(h->value, ':');
    if (tv_str_is(part[3], "state") || tv_str_is(part[3], "phys_state"))
        (void)tv_at(h->r,
                    tv_note_str(h->r->a, port, tv_str_is(part[3], "state") ? "state" : "phys_state",
                                tv_str_trim(state.tail)),
                    h->i);
    else if (tv_str_is(part[3], "rate"))
        put_scaled(h, port, "rate_bytes_per_s", 1e9 / 8);
    else if (tv_str_is(part[3], "link_layer"))
        put(h, port, "link_layer");
    else if (n == 5 && tv_str_is(part[4], "link_downed"))
        put(h, port, "link_downed");
    else if (n == 5 && tv_str_is(part[4], "symbol_error"))
        put(h, port, "symbol_errors");
}

static void see_net(host_sys *h, tv_str rest)
{
    const tv_cut cut = tv_str_cut(rest, '/');
    tv_note *net = item(h, "interfaces", "name", cut.head);
    if (tv_str_is(cut.tail, "speed"))
        put_scaled(h, net, "rate_bytes_per_s", 1e6 / 8);
    else if (tv_str_is(cut.tail, "operstate"))
        put(h, net, "state");
    else if (tv_str_is(cut.tail, "mtu"))
        put(h, net, "mtu_bytes");
}

static void see_block(host_sys *h, tv_str rest)
{
    const tv_cut cut = tv_str_cut(rest, '/');
    if (tv_str_starts(cut.head, TV_S("loop")) || tv_str_starts(cut.head, TV_S("ram")))
        return;
    tv_note *disk = item(h, "disks", "name", cut.head);
    if (tv_str_is(cut.tail, "queue/rotational"))
        (void)tv_at(h->r, tv_note_bool(h->r->a, disk, "rotates", tv_str_is(h->value, "1")), h->i);
    else if (tv_str_is(cut.tail, "size"))
        put_scaled(h, disk, "bytes", 512); /* always in sectors of 512 bytes */
    else if (tv_str_is(cut.tail, "device/model"))
        (void)tv_at(h->r, tv_note_str(h->r->a, disk, "model", h->value), h->i);
}

/* hwmon3/temp1_input: thousandths of a degree */
static void see_sensor(host_sys *h, tv_str rest)
{
    const tv_cut cut = tv_str_cut(rest, '/');
    tv_note *chip = item(h, "sensors", "chip", cut.head);
    if (tv_str_is(cut.tail, "name")) {
        (void)tv_note_str(h->r->a, chip, "name", h->value);
        return;
    }
    const double v = tv_str_double(h->value).ok ? tv_str_double(h->value).v / 1000 : (double)NAN;
    const char *key = tv_str_ends(cut.tail, TV_S("_input"))  ? "hottest_c"
                      : tv_str_ends(cut.tail, TV_S("_crit")) ? "critical_c"
                                                             : NULL;
    const double before = key ? tv_noted_num(chip, key) : (double)NAN;
    const bool input = key && tv_str_ends(cut.tail, TV_S("_input"));
    if (key && v > 0 && (isnan(before) || (input ? v > before : v < before)))
        (void)tv_at(h->r, tv_note_num(h->r->a, chip, key, v), h->i);
}

/* ---- control groups: the narrowest limit holds ---- */

static void narrow(host_sys *h, const char *key, double v)
{
    tv_note *group = tv_note_map(h->r->a, facts_of(h), "cgroup");
    const double before = tv_noted_num(group, key);
    if (v >= 0 && (isnan(before) || v < before))
        (void)tv_at(h->r, tv_note_num(h->r->a, group, key, v), h->i);
}

/* The first one is the process's own group. */
static void put_own(host_sys *h, const char *key)
{
    tv_note *group = tv_note_map(h->r->a, facts_of(h), "cgroup");
    if (!tv_noted(group, key))
        put(h, group, key);
}

static void see_group(host_sys *h, tv_str rest)
{
    const char *last = rest.n ? memrchr(rest.p, '/', rest.n) : NULL;
    const tv_str name = last ? tv_str_span(last + 1, rest.p + rest.n) : rest;
    const tv_double_read v = tv_str_double(h->value);
    if (tv_str_is(name, "memory.max") || tv_str_is(name, "memory.high")) {
        if (v.ok)
            narrow(h, "mem_limit_bytes", v.v);
    } else if (tv_str_is(name, "memory.limit_in_bytes")) {
        if (v.ok && v.v < 0x1p62) /* PAGE_COUNTER_MAX: none */
            narrow(h, "mem_limit_bytes", v.v);
    } else if (tv_str_is(name, "memory.current") || tv_str_is(name, "memory.usage_in_bytes")) {
        put_own(h, "mem_used_bytes");
    } else if (tv_str_is(name, "cpu.max")) { /* "200000 100000", "max 100000" */
        tv_str words[2];
        if (tv_words(h->value, words, 2) == 2 && tv_str_double(words[0]).ok &&
            tv_str_double(words[1]).v > 0)
            narrow(h, "cpu_limit", tv_str_double(words[0]).v / tv_str_double(words[1]).v);
    } else if (tv_str_is(name, "cpu.cfs_quota_us")) {
        h->quota = v.ok ? v.v : 0; /* -1: none */
    } else if (tv_str_is(name, "cpu.cfs_period_us")) {
        if (v.ok && v.v > 0 && h->quota > 0)
            narrow(h, "cpu_limit", h->quota / v.v);
    } else if (tv_str_is(name, "pids.max")) {
        if (v.ok)
            narrow(h, "pids_limit", v.v);
    } else if (tv_str_is(name, "cpuset.cpus.effective")) {
        put_own(h, "cpus");
    }
}

/* ---- single settings ---- */

static const plain_row settings[] = {
    {"/sys/class/dmi/id/sys_vendor", "vendor", 0},
    {"/sys/class/dmi/id/product_name", "product_name", 0},
    {"/sys/class/dmi/id/bios_version", "bios_version", 0},
    {"/sys/class/dmi/id/bios_date", "bios_date", 0},
    {"/sys/hypervisor/type", "hypervisor", 0},
    {"/sys/kernel/mm/transparent_hugepage/enabled", "transparent_huge_pages", 0},
    {"/sys/module/nvidia/version", "loaded_driver", 0},
    {"/proc/sys/kernel/numa_balancing", "numa_balancing", 0},
    {"/proc/sys/kernel/pid_max", "pid_max", 0},
    {"/proc/sys/vm/overcommit_memory", "overcommit", 0},
    {"/proc/sys/vm/overcommit_ratio", "overcommit_percent", 0},
    {"/proc/sys/vm/swappiness", "swappiness", 0},
    {"/proc/sys/vm/max_map_count", "max_map_count", 0},
    {"/proc/sys/vm/zone_reclaim_mode", "zone_reclaim", 0},
};

typedef struct place_row {
    const char *folder;
    void (*see)(host_sys *h, tv_str rest);
} place_row;

static const place_row places[] = {
    {"/sys/bus/pci/devices/", see_pci},
    {"/sys/devices/system/cpu/", see_cpu},
    {"/sys/devices/system/node/", see_node},
    {"/sys/class/infiniband/", see_infiniband},
    {"/sys/class/net/", see_net},
    {"/sys/block/", see_block},
    {"/sys/class/hwmon/", see_sensor},
    {"/sys/fs/cgroup/", see_group},
};

static void see_module(host_sys *h, tv_str rest)
{
    const tv_cut cut = tv_str_cut(rest, '/');
    (void)item(h, "modules_seen", "name", cut.head);
}

/* "/sys/kernel/iommu_groups/7/type:DMA-FQ": how many translate, and how many pass through */
static void see_iommu(host_sys *h, tv_str rest)
{
    if (!tv_str_ends(rest, TV_S("/type")))
        return;
    const bool passes = tv_str_is(h->value, "identity");
    tv_note *iommu = tv_note_map(h->r->a, facts_of(h), "iommu");
    static const char *const keys[] = {"groups_n", "passing_n"};
    for (size_t k = 0; k < 2; k++) {
        const double before = tv_noted_num(iommu, keys[k]);
        (void)tv_at(
            h->r,
            tv_note_num(h->r->a, iommu, keys[k], (isnan(before) ? 0 : before) + (k == 0 || passes)),
            h->i);
    }
}

/* "path:value", split at the first colon that is not one of a bus address. */
static bool part_line(tv_str line, tv_str *path, tv_str *value)
{
    static const char pci[] = "/sys/bus/pci/devices/";
    if (!tv_str_starts(line, TV_S("/sys/")) && !tv_str_starts(line, TV_S("/proc/sys/")))
        return false;
    size_t from = 0;
    if (tv_str_starts(line, tv_str_of(pci))) {
        const tv_cut bus = tv_str_cut(tv_str_drop(line, sizeof pci - 1), '/');
        from = sizeof pci - 1 + bus.head.n;
    }
    const char *colon = line.n > from ? memchr(line.p + from, ':', line.n - from) : NULL;
    if (!colon)
        return false;
    *path = tv_str_span(line.p, colon);
    *value = tv_str_trim(tv_str_span(colon + 1, line.p + line.n));
    return true;
}

static void read(tv_reading *r)
{
    host_sys h = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++) {
        tv_str path;
        if (!part_line(r->sheet->v[i].s, &path, &h.value))
            continue;
        h.i = i;
        for (size_t k = 0; k < sizeof settings / sizeof *settings; k++)
            if (tv_str_is(path, settings[k].file))
                (void)put_row(&h, facts_of(&h), &settings[k], 1, path);
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
            const tv_str folder = tv_str_of(places[k].folder);
            if (tv_str_starts(path, folder))
                places[k].see(&h, tv_str_drop(path, folder.n));
        }
        if (tv_str_starts(path, TV_S("/sys/module/")))
            see_module(&h, tv_str_drop(path, 12));
        if (tv_str_starts(path, TV_S("/sys/kernel/iommu_groups/")))
            see_iommu(&h, tv_str_drop(path, 25));
    }
}

static const char *const needles[] = {"sys/bus/pci/devices/",
                                      "sys/devices/system/cpu/",
                                      "sys/devices/system/node/",
                                      "sys/class/infiniband/",
                                      "sys/class/net/",
                                      "sys/class/hwmon/",
                                      "sys/class/dmi/id/",
                                      "sys/block/",
                                      "sys/fs/cgroup/",
                                      "sys/kernel/",
                                      "sys/module/",
                                      "proc/sys/",
                                      NULL};

extern const tv_log_format tv_log_format_host_sys;
const tv_log_format tv_log_format_host_sys = {"host: /sys", needles, read};
