/* What is no file of /proc or /sys: shared memory, device nodes, Secure Boot, containers, and the
 * programs and services that belong to a GPU. Programs are looked for, never run. */
#include "host_parts.h"

#include "base/file.h"

#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

static void see_system(tv_host *h)
{
    struct utsname u;
    if (uname(&u) != 0)
        return;
    tv_host_fact(h, "kernel", tv_str_of(u.release));
    tv_host_fact(h, "machine", tv_str_of(u.machine));
    tv_host_fact(h, "root", geteuid() == 0 ? TV_S("yes") : TV_S("no"));
}

static void see_shm(tv_host *h)
{
    struct statvfs s;
    if (statvfs(tv_cstr(h->a, tv_host_path(h, "/dev/shm")), &s) != 0) {
        tv_host_unseen(h, "/dev/shm", TV_S("not there"));
        return;
    }
    tv_host_number(h, "shm_bytes", (uint64_t)s.f_blocks * s.f_frsize);
    tv_host_number(h, "shm_free_bytes", (uint64_t)s.f_bavail * s.f_frsize);
}

/* The variable's last byte is the value, the four before it are attributes (UEFI 2.10, 3.3). */
static void see_secure_boot(tv_host *h)
{
    static const char path[] =
        "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    tv_str text, why;
    if (!tv_host_has(h, "/sys/firmware/efi"))
        tv_host_fact(h, "secure_boot", TV_S("no EFI"));
    else if (tv_host_read(h, path, 16, &text, &why) && text.n == 5)
        tv_host_fact(h, "secure_boot", text.p[4] == 1 ? TV_S("on") : TV_S("off"));
    else
        tv_host_unseen(h, "Secure Boot", why.n ? why : TV_S("its EFI variable is not there"));
}

static void see_nodes(tv_host *h)
{
    static const char *const patterns[] = {"nvidia*", "kfd", "dxg"};
    tv_dir dir = {0};
    tv_buf b = tv_buf_in(h->a);
    const tv_err *e = tv_dir_list(h->a, tv_host_path(h, "/dev"), &dir);
    if (e)
        return;
    for (size_t i = 0; i < dir.n; i++)
        for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++)
            if (tv_str_glob(dir.v[i].name, tv_str_of(patterns[k]))) {
                tv_puts(&b, b.n ? " " : "");
                tv_put(&b, dir.v[i].name);
            }
    tv_host_fact(h, "device_nodes", tv_buf_str(&b));
    tv_host_fact(h, "infiniband_nodes",
                 tv_host_has(h, "/dev/infiniband") ? TV_S("yes") : TV_S("no"));
}

static void see_container(tv_host *h)
{
    tv_str text;
    const char *by = NULL;
    if (tv_host_has(h, "/.dockerenv"))
        by = "docker";
    else if (tv_host_has(h, "/run/.containerenv"))
        by = "podman";
    else if (tv_host_has(h, "/var/run/secrets/kubernetes.io") ||
             tv_host_has(h, "/run/secrets/kubernetes.io"))
        by = "kubernetes";
    else if (tv_host_read(h, "/proc/1/cgroup", 4096, &text, NULL) &&
             (tv_str_has(text, TV_S("kubepods")) || tv_str_has(text, TV_S("/docker")) ||
              tv_str_has(text, TV_S("/lxc")) || tv_str_has(text, TV_S("libpod"))))
        by = "cgroup";
    tv_host_fact(h, "container", by ? tv_str_of(by) : TV_S("no"));
}

/* ---- programs and services ---- */

typedef struct thing_row {
    const char *key;
    const char *path;
} thing_row;

/* Where the packages of NVIDIA, Docker, containerd and Podman put them. */
static const thing_row things[] = {
    {"toolkit", "/usr/bin/nvidia-ctk"},
    {"toolkit", "/usr/bin/nvidia-container-cli"},
    {"toolkit", "/usr/bin/nvidia-container-runtime"},
    {"toolkit", "/usr/local/nvidia/toolkit/nvidia-container-runtime"},
    {"toolkit", "/etc/nvidia-container-runtime/config.toml"},
    {"cdi", "/etc/cdi/nvidia.yaml"},
    {"cdi", "/var/run/cdi/nvidia.yaml"},
    {"cdi", "/run/cdi/nvidia.yaml"},
    {"engine", "/usr/bin/dockerd"},
    {"engine", "/usr/bin/containerd"},
    {"engine", "/usr/bin/podman"},
    {"engine", "/usr/bin/crio"},
    {"engine", "/usr/local/bin/k3s"},
    {"fabric_manager_program", "/usr/bin/nv-fabricmanager"},
};

static void see_things(tv_host *h)
{
    for (size_t i = 0; i < sizeof things / sizeof *things; i++)
        if (tv_host_has(h, things[i].path))
            tv_host_fact(h, things[i].key, tv_str_of(things[i].path));
}

/* Names of processes as the kernel cuts them, to 15 characters. */
static const thing_row services[] = {
    {"fabric_manager", "nv-fabricmanage"},
    {"persistence_daemon", "nvidia-persiste"},
    {"mps", "nvidia-cuda-mps"},
    {"dcgm", "nv-hostengine"},
    {"exporter", "dcgm-exporter"},
    {"opensm", "opensm"},
};

enum { most_processes = 100000 };

static bool is_number(tv_str s)
{
    return tv_str_u64(s).ok;
}

static void see_services(tv_host *h)
{
    bool runs[sizeof services / sizeof *services] = {false};
    tv_dir dir = {0};
    const tv_err *e = tv_dir_list(h->a, tv_host_path(h, "/proc"), &dir);
    for (size_t i = 0; !e && i < dir.n && i < most_processes; i++) {
        if (!is_number(dir.v[i].name))
            continue;
        const tv_mark mark = tv_arena_mark(h->a);
        tv_buf path = tv_buf_in(h->a);
        tv_puts(&path, "/proc/");
        tv_put(&path, dir.v[i].name);
        tv_puts(&path, "/comm");
        tv_str name;
        const bool ok = tv_host_read(h, tv_cstr(h->a, tv_buf_str(&path)), 64, &name, NULL);
        for (size_t k = 0; ok && k < sizeof services / sizeof *services; k++)
            runs[k] = runs[k] || tv_str_is(tv_str_trim(name), services[k].path);
        tv_arena_rewind(h->a, mark);
    }
    if (e)
        return;
    for (size_t k = 0; k < sizeof services / sizeof *services; k++)
        tv_host_fact(h, services[k].key, runs[k] ? TV_S("running") : TV_S("not running"));
}

void tv_host_software(tv_host *h)
{
    see_system(h);
    see_shm(h);
    see_secure_boot(h);
    see_nodes(h);
    see_container(h);
    see_things(h);
    see_services(h);
    h->driver = tv_host_has(h, "/proc/driver/nvidia/version");
    tv_host_fact(h, "driver", h->driver ? TV_S("yes") : TV_S("no"));
}
