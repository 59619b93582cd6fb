/* Which files of /proc, /sys and /etc say something about training: whole ones become documents,
 * single values lines. */
#include "host_parts.h"

#include "base/file.h"

typedef struct whole_row {
    const char *path;
    size_t limit;  /* what may be of any length is cut: its beginning says enough */
    bool is_asked; /* where it cannot be read, that is told */
} whole_row;

static const whole_row wholes[] = {
    {"/proc/meminfo", 16384, true},
    {"/proc/loadavg", 256, false},
    {"/proc/version", 1024, false},
    {"/proc/cmdline", 4096, false},
    {"/proc/modules", 262144, true},
    {"/proc/mounts", 65536, false},
    {"/proc/diskstats", 65536, false},
    {"/proc/self/status", 8192, true},
    {"/proc/self/limits", 4096, true},
    {"/proc/self/cgroup", 4096, false},
    {"/proc/pressure/cpu", 512, false},
    {"/proc/pressure/io", 512, false},
    {"/proc/pressure/memory", 512, false},
    {"/proc/driver/nvidia/version", 1024, false},
    {"/proc/driver/nvidia/params", 16384, false},
    {"/etc/os-release", 4096, false},
};

/* '*' stands for any run within one name. */
static const char *const values[] = {
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/bios_version",
    "/sys/class/dmi/id/bios_date",
    "/sys/hypervisor/type",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/smt/active",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
    "/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq",
    "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
    "/sys/devices/system/node/node*/cpulist",
    "/sys/devices/system/node/node*/distance",
    "/sys/devices/system/node/node*/meminfo",
    "/sys/class/infiniband/*/node_type",
    "/sys/class/infiniband/*/device/numa_node",
    "/sys/class/infiniband/*/ports/*/state",
    "/sys/class/infiniband/*/ports/*/phys_state",
    "/sys/class/infiniband/*/ports/*/rate",
    "/sys/class/infiniband/*/ports/*/link_layer",
    "/sys/class/infiniband/*/ports/*/counters/link_downed",
    "/sys/class/infiniband/*/ports/*/counters/symbol_error",
    "/sys/class/net/*/operstate",
    "/sys/class/net/*/speed",
    "/sys/class/net/*/mtu",
    "/sys/class/hwmon/*/name",
    "/sys/class/hwmon/*/temp*_label",
    "/sys/class/hwmon/*/temp*_input",
    "/sys/class/hwmon/*/temp*_crit",
    "/sys/block/*/queue/rotational",
    "/sys/block/*/size",
    "/sys/block/*/device/model",
    "/sys/kernel/iommu_groups/*/type",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/module/*nvidia*/version",
    "/sys/module/*nvidia*/refcnt",
    "/sys/module/nv_peer_mem/version",
    "/sys/module/nouveau/refcnt",
    "/sys/module/amdgpu/refcnt",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/pid_max",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/overcommit_ratio",
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/max_map_count",
    "/proc/sys/vm/zone_reclaim_mode",
    "/proc/driver/nvidia/capabilities/gpu*/mig/config",
};

/* Names of one folder that are looked at: the widest, one per CPU, reach 10^3. */
enum { most_names = 4096, most_depth = 12 };

/* Goes down the pattern; `from` is what is settled of it, `rest` the part behind, without its
 * first '/'. */
static void grab_pattern(tv_host *h, tv_str from, tv_str rest, unsigned depth)
{
    const tv_cut cut = tv_str_cut(rest, '/');
    const tv_str here = tv_str_join(h->a, from, TV_S("/"));
    if (!tv_str_has(cut.head, TV_S("*"))) {
        const tv_str next = tv_str_join(h->a, here, cut.head);
        if (cut.found)
            grab_pattern(h, next, cut.tail, depth);
        else
            (void)tv_host_grab(h, tv_cstr(h->a, next));
        return;
    }
    tv_dir dir = {0};
    const tv_err *e = tv_dir_list(h->a, tv_host_path(h, tv_cstr(h->a, here)), &dir);
    if (e || depth == most_depth)
        return;
    for (size_t i = 0; i < dir.n && i < most_names; i++) {
        if (!tv_str_glob(dir.v[i].name, cut.head))
            continue;
        const tv_str next = tv_str_join(h->a, here, dir.v[i].name);
        if (cut.found)
            grab_pattern(h, next, cut.tail, depth + 1);
        else
            (void)tv_host_grab(h, tv_cstr(h->a, next));
    }
}

/* ---- the control group and those above it: the narrowest limit holds ---- */

static void grab_group(tv_host *h, const char *folder, tv_str group, const char *const *names)
{
    for (;;) {
        for (size_t i = 0; names[i]; i++) {
            tv_buf b = tv_buf_in(h->a);
            tv_puts(&b, folder);
            tv_put(&b, group);
            tv_puts(&b, "/");
            tv_puts(&b, names[i]);
            (void)tv_host_grab(h, tv_cstr(h->a, tv_buf_str(&b)));
        }
        if (!group.n)
            return;
        const tv_str above = tv_path_folder(group);
        group = above.n > 1 ? above : (tv_str){0};
    }
}

static void grab_groups(tv_host *h)
{
    static const char *const unified[] = {
        "memory.max", "memory.high", "memory.current",        "memory.swap.max",
        "cpu.max",    "pids.max",    "cpuset.cpus.effective", NULL};
    static const char *const memory[] = {"memory.limit_in_bytes", "memory.usage_in_bytes", NULL};
    static const char *const cpu[] = {"cpu.cfs_quota_us", "cpu.cfs_period_us", NULL};
    tv_str text;
    if (!tv_host_read(h, "/proc/self/cgroup", 4096, &text, NULL))
        return;
    while (text.n) { /* "4:memory:/docker/ab12", "0::/user.slice" */
        const tv_cut line = tv_str_cut(text, '\n');
        const tv_cut id = tv_str_cut(line.head, ':');
        const tv_cut list = tv_str_cut(id.tail, ':');
        const tv_str group = list.tail.n > 1 ? list.tail : (tv_str){0};
        if (list.found && !list.head.n)
            grab_group(h, "/sys/fs/cgroup", group, unified);
        else if (tv_str_is(list.head, "memory"))
            grab_group(h, "/sys/fs/cgroup/memory", group, memory);
        else if (tv_str_is(list.head, "cpu") || tv_str_starts(list.head, TV_S("cpu,")))
            grab_group(h, "/sys/fs/cgroup/cpu", group, cpu);
        text = line.tail;
    }
}

void tv_host_files(tv_host *h)
{
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        tv_str text, why;
        if (tv_host_read(h, wholes[i].path, wholes[i].limit, &text, &why))
            tv_host_document(h, wholes[i].path, text);
        else if (wholes[i].is_asked)
            tv_host_unseen(h, wholes[i].path, why.n ? why : TV_S("not there"));
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        grab_pattern(h, (tv_str){0}, tv_str_of(values[i] + 1), 0);
    grab_groups(h);
}
