/* The host's probe: a library of our own in the place of NVIDIA's, small folders in the place of
 * "/", and records that are read back. */
#include "testing.h"

#include "diagnose/diagnose.h"
#include "probe/bundle.h"
#include "probe/probe.h"
#include "trace/trace.h"

#include "base/file.h"

#include <sys/stat.h>
#include <unistd.h>

typedef struct world {
    tv_arena *a;
    tv_request r;
    char root[64];
    tv_documents all;
    tv_scene scene;
} world;

static world *open_world(void)
{
    tv_arena *a = test_arena();
    world *w = tv_new(a, world, 1);
    w->a = a;
    w->r = (tv_request){.a = a, .today = TV_S("2026-12-01"), .home = TV_S("/home/alice")};
    (void)snprintf(w->root, sizeof w->root, "/tmp/trivet-host-XXXXXX");
    assert_non_null(mkdtemp(w->root));
    return w;
}

static void close_world(world *w)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", w->root);
    assert_int_equal(system(command), 0);
    tv_arena_close(w->a);
}

static tv_str below(const world *w, const char *name)
{
    return tv_str_join(w->a, tv_str_of(w->root), tv_str_of(name));
}

/* A file below the root with the folders above it. */
static void put(const world *w, const char *name, tv_str text)
{
    const tv_str path = below(w, name);
    char command[512];
    (void)snprintf(command, sizeof command, "mkdir -p '%.*s'", TV_FMT(tv_path_folder(path)));
    assert_int_equal(system(command), 0);
    assert_ok(w->a, tv_file_write(w->a, path, text));
}

static void look(world *w, const char *nvml, const char *answers)
{
    if (answers)
        assert_int_equal(setenv("TRIVET_FAKE_NVML", answers, 1), 0);
    const tv_host_place place = {
        .root = tv_str_of(w->root),
        .nvml = tv_str_of(nvml),
        .path = below(w, "/bin"),
    };
    w->all = (tv_documents){0};
    w->scene = (tv_scene){0};
    tv_probe_host(&w->r, &place, &w->all);
    for (size_t i = 0; i < w->all.n; i++)
        assert_ok(w->a, tv_trace_document(w->a, w->all.v[i].name, w->all.v[i].text, &w->scene));
}

static const tv_document *document(const world *w, const char *name)
{
    for (size_t i = 0; i < w->all.n; i++)
        if (tv_str_is(w->all.v[i].name, name))
            return &w->all.v[i];
    return NULL;
}

static const tv_note *fact(const world *w, const char *kind, const char *path)
{
    for (const tv_sighting *s = tv_scene_first(&w->scene, kind); s; s = tv_scene_next(s, kind))
        if (tv_noted(&s->facts, path))
            return tv_noted(&s->facts, path);
    return NULL;
}

static double number(const world *w, const char *kind, const char *path)
{
    return tv_noted_num(fact(w, kind, path), "");
}

static void assert_word(const world *w, const char *kind, const char *path, const char *want)
{
    assert_str(tv_noted_str(fact(w, kind, path), ""), want);
}

#define FAKE TEST_BUILD "/../fake_nvml/fake_nvml.so"
#define FAKE_OLD TEST_BUILD "/../fake_nvml/fake_nvml_old.so"
#define ANSWERS "tests/fake_nvml/"

/* ---- NVML ---- */

static void test_cards(void **state)
{
    (void)state;
    world *w = open_world();
    look(w, FAKE, ANSWERS "two_a100.txt");
    assert_word(w, "host", "nvml", "loaded");
    assert_close(number(w, "host", "nvml_gpus_n"), 2, 0);
    assert_word(w, "smi-q", "driver", "535.183.01");
    assert_word(w, "smi-q", "cuda", "12.2");
    assert_word(w, "smi-q", "gpus.0.bus", "00000000:41:00.0");
    assert_word(w, "smi-q", "gpus.0.compute_mode", "Exclusive_Process");
    assert_word(w, "smi-q", "gpus.0.persistence", "Off");
    assert_close(number(w, "smi-q", "gpus.0.temp_c"), 91, 0);
    assert_close(number(w, "smi-q", "gpus.0.slowdown_c"), 89, 0);
    assert_close(number(w, "smi-q", "gpus.0.mem_temp_c"), 88, 0);
    assert_close(number(w, "smi-q", "gpus.0.power_w"), 395.12, 1e-9);
    assert_close(number(w, "smi-q", "gpus.0.min_w"), 100, 0);
    assert_close(number(w, "smi-q", "gpus.0.max_w"), 400, 0);
    assert_close(number(w, "smi-q", "gpus.0.used_bytes"), 80530636800.0, 0);
    assert_close(number(w, "smi-q", "gpus.0.reserved_bytes"), 1073741824.0, 0);
    assert_close(number(w, "smi-q", "gpus.0.dram_corr_aggregate"), 44, 0);
    assert_close(number(w, "smi-q", "gpus.0.link_width"), 16, 0);
    assert_close(number(w, "smi-q", "gpus.0.replays"), 3, 0);
    const tv_note *card = fact(w, "smi-q", "gpus.0");
    assert_true(tv_noted_bool(card, "reasons.hw_thermal", false));
    assert_false(tv_noted_bool(card, "reasons.hw_power_brake", true));
    assert_true(tv_noted_bool(card, "remap_pending", false));
    assert_close(number(w, "smi-q", "processes.0.pid"), 4711, 0);
    assert_close(number(w, "smi-q", "processes.0.used_bytes"), 80530636800.0, 0);
    /* not supported is unknown, never 0 */
    assert_int_equal(fact(w, "smi-q", "gpus.0.fan_frac")->type, TV_NOTE_NULL);
    assert_int_equal(fact(w, "smi-q", "gpus.1.remap_pending") ? 1 : 0, 0);
    close_world(w);
}

static void test_topology(void **state)
{
    (void)state;
    world *w = open_world();
    look(w, FAKE, ANSWERS "two_a100.txt");
    assert_word(w, "topo", "links.0-1", "NV2");
    assert_word(w, "topo", "gpu1_cpu_affinity", "16-31");
    assert_word(w, "topo", "p2p.0-1", "OK");
    assert_close(number(w, "nvlink", "gpus.0.links.1.bytes_per_s"), 25.781e9, 1e-9);
    close_world(w);
}

/* A library from before most functions came: what it lacks is unknown, the rest is there. */
static void test_missing_symbols(void **state)
{
    (void)state;
    world *w = open_world();
    look(w, FAKE_OLD, ANSWERS "two_a100.txt");
    assert_word(w, "smi-q", "gpus.0.bus", "0000:41:00.0");
    assert_close(number(w, "smi-q", "gpus.0.temp_c"), 91, 0);
    assert_close(number(w, "smi-q", "gpus.0.total_bytes"), 85899345920.0, 0);
    assert_close(number(w, "smi-q", "processes.0.pid"), 4711, 0);
    assert_int_equal(fact(w, "smi-q", "gpus.0.replays")->type, TV_NOTE_NULL);
    assert_int_equal(fact(w, "smi-q", "gpus.0.dram_corr_volatile")->type, TV_NOTE_NULL);
    assert_null(document(w, "topo.txt")); /* nothing is known of the pairs */
    assert_null(document(w, "nvlink.txt"));
    close_world(w);
}

static void test_mismatch(void **state)
{
    (void)state;
    world *w = open_world();
    put(w, "/proc/driver/nvidia/version",
        TV_S("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Fri Feb 14\n"));
    look(w, FAKE, ANSWERS "mismatch.txt");
    assert_close(number(w, "host", "nvml_error"), 18, 0);
    assert_word(w, "host", "module_version", "570.124.06");
    assert_word(w, "host", "module_flavour", "proprietary");
    assert_word(w, "smi-failure", "error", "Driver/library version mismatch");
    assert_true(
        tv_str_has(document(w, "nvidia-smi.txt")->text, TV_S("NVML library version: 570.124.04")));
    close_world(w);
}

/* On a host without a card a library that does not start is no failure. */
static void test_no_card_no_failure(void **state)
{
    (void)state;
    world *w = open_world();
    look(w, FAKE, ANSWERS "mismatch.txt");
    assert_null(document(w, "nvidia-smi.txt"));
    assert_null(tv_scene_first(&w->scene, "smi-failure"));
    close_world(w);
}

static void test_lost(void **state)
{
    (void)state;
    world *w = open_world();
    look(w, FAKE, ANSWERS "lost.txt");
    const tv_str failures = document(w, "nvidia-smi.txt")->text;
    assert_true(tv_str_has(failures, TV_S("Unable to determine the device handle for GPU")));
    assert_true(tv_str_has(failures, TV_S("GPU is lost")));
    assert_word(w, "smi-q", "gpus.0.bus", "00000000:C1:00.0");
    assert_close(number(w, "smi-q", "gpus.0.power_w"), 70, 0);
    assert_int_equal(fact(w, "smi-q", "gpus.0.temp_c")->type, TV_NOTE_NULL);
    assert_int_equal(fact(w, "smi-q", "gpus.0.util_frac")->type, TV_NOTE_NULL);
    assert_int_equal(fact(w, "smi-q", "gpus.0.total_bytes")->type, TV_NOTE_NULL);
    close_world(w);
}

/* ---- nvidia-smi in its place ---- */

static void put_program(const world *w, const char *text)
{
    put(w, "/bin/nvidia-smi", tv_str_of(text));
    assert_int_equal(chmod(tv_cstr(w->a, below(w, "/bin/nvidia-smi")), 0755), 0);
}

static void test_program(void **state)
{
    (void)state;
    world *w = open_world();
    put_program(w, "#!/bin/sh\n[ \"$1 $2\" = \"-q -x\" ] || exit 2\n"
                   "echo '<nvidia_smi_log><driver_version>550.1</driver_version>"
                   "<attached_gpus>1</attached_gpus><gpu id=\"00000000:01:00.0\">"
                   "<product_name>NVIDIA L4</product_name></gpu></nvidia_smi_log>'\n");
    look(w, "/nonexistent/libnvidia-ml.so.1", NULL);
    assert_word(w, "host", "nvml", "no library");
    assert_word(w, "smi-q", "gpus.0.name", "NVIDIA L4");
    close_world(w);
}

static void test_program_fails(void **state)
{
    (void)state;
    world *w = open_world();
    put_program(w, "#!/bin/sh\necho \"NVIDIA-SMI has failed because it couldn't communicate with "
                   "the NVIDIA driver.\"\nexit 9\n");
    look(w, "/nonexistent/libnvidia-ml.so.1", NULL);
    assert_word(w, "smi-failure", "error", "couldn't communicate with the NVIDIA driver");
    close_world(w);
}

static bool is_found(const world *w, const char *id)
{
    tv_diagnosis d;
    tv_diagnose(w->a, &w->scene, &d);
    for (size_t i = 0; i < d.findings.n; i++)
        if (strcmp(d.findings.v[i]->rule->id, id) == 0)
            return true;
    return false;
}

static void test_nothing(void **state)
{
    (void)state;
    world *w = open_world();
    look(w, "/nonexistent/libnvidia-ml.so.1", NULL);
    assert_true(is_found(w, "S24"));
    const tv_note *unseen = fact(w, "host", "unseen");
    assert_true(unseen && unseen->n >= 4); /* NVML, nvidia-smi, /proc, the kernel's log */
    close_world(w);
}

/* ---- /proc and /sys ---- */

static void put_device(const world *w, const char *bus, const char *class, const char *vendor,
                       const char *width)
{
    static const char *const names[] = {
        "class",          "vendor",         "current_link_width", "device", "current_link_speed",
        "max_link_speed", "max_link_width", "numa_node"};
    const char *const values[] = {
        class, vendor, width, "0x20b5\n", "16.0 GT/s PCIe\n", "16.0 GT/s PCIe\n", "16\n", "1\n"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", bus, names[i]);
        put(w, path, tv_str_of(values[i]));
    }
}

static void test_sys(void **state)
{
    (void)state;
    world *w = open_world();
    put_device(w, "0000:41:00.0", "0x030200\n", "0x10de\n", "8\n");
    put_device(w, "0000:00:1f.0", "0x060100\n", "0x8086\n", "0\n");
    put(w, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", TV_S("powersave\n"));
    put(w, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", TV_S("powersave\n"));
    put(w, "/sys/devices/system/node/node1/meminfo", TV_S("Node 1 MemTotal:  1048576 kB\nx\n"));
    put(w, "/proc/self/cgroup", TV_S("0::/kubepods/pod1/c1\n"));
    put(w, "/sys/fs/cgroup/kubepods/pod1/c1/memory.max", TV_S("max\n"));
    put(w, "/sys/fs/cgroup/kubepods/pod1/memory.max", TV_S("8589934592\n"));
    put(w, "/sys/fs/cgroup/kubepods/pod1/c1/cpu.max", TV_S("350000 100000\n"));
    put(w, "/sys/class/infiniband/mlx5_0/ports/1/state", TV_S("4: ACTIVE\n"));
    put(w, "/sys/class/infiniband/mlx5_0/ports/1/rate", TV_S("400 Gb/sec (4X NDR)\n"));
    put(w, "/sys/class/hwmon/hwmon2/name", TV_S("coretemp\n"));
    put(w, "/sys/class/hwmon/hwmon2/temp1_input", TV_S("61000\n"));
    put(w, "/sys/class/hwmon/hwmon2/temp2_input", TV_S("93500\n"));
    put(w, "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
        (tv_str){"\6\0\0\0\1", 5});
    put(w, "/proc/meminfo", TV_S("MemTotal:  131072 kB\nMemAvailable:  65536 kB\n"));
    put(w, "/var/log/dmesg",
        TV_S("[   12.5] NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.\n"));
    put(w, "/.dockerenv", TV_S("x"));
    look(w, "/nonexistent/libnvidia-ml.so.1", NULL);
    assert_close(number(w, "host", "pci_nvidia_gpus_n"), 1, 0);
    assert_close(number(w, "host", "pci_gpus_without_driver_n"), 1, 0);
    assert_true(tv_noted_n(&tv_scene_first(&w->scene, "lspci")->facts, "devices") == 1);
    assert_word(w, "host", "cpu.governor", "powersave");
    assert_close(number(w, "host", "cpu.governors.powersave"), 2, 0);
    assert_close(number(w, "host", "numa_nodes.0.mem_bytes"), 0x1p30, 0);
    assert_close(number(w, "host", "cgroup.mem_limit_bytes"), 8589934592.0, 0);
    assert_close(number(w, "host", "cgroup.cpu_limit"), 3.5, 1e-12);
    assert_word(w, "host", "ib_ports.0.state", "ACTIVE");
    assert_close(number(w, "host", "ib_ports.0.rate_bytes_per_s"), 50e9, 1e-12);
    assert_close(number(w, "host", "sensors.0.hottest_c"), 93.5, 0);
    assert_word(w, "host", "secure_boot", "on");
    assert_word(w, "host", "container", "docker");
    assert_close(number(w, "host", "mem_available_bytes"), 0x1p26, 0);
    assert_non_null(tv_scene_first(&w->scene, "xid"));
    assert_true(is_found(w, "S26"));
    assert_false(is_found(w, "S24"));
    close_world(w);
}

/* Control groups of the first version: the limit of a group above counts, none is no limit. */
static void test_old_groups(void **state)
{
    (void)state;
    world *w = open_world();
    put(w, "/proc/self/cgroup", TV_S("4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n"));
    put(w, "/sys/fs/cgroup/memory/memory.limit_in_bytes", TV_S("9223372036854771712\n"));
    put(w, "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", TV_S("4294967296\n"));
    put(w, "/sys/fs/cgroup/cpu/docker/ab/cpu.cfs_quota_us", TV_S("150000\n"));
    put(w, "/sys/fs/cgroup/cpu/docker/ab/cpu.cfs_period_us", TV_S("50000\n"));
    put(w, "/sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", TV_S("-1\n"));
    put(w, "/sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", TV_S("100000\n"));
    look(w, "/nonexistent/libnvidia-ml.so.1", NULL);
    assert_close(number(w, "host", "cgroup.mem_limit_bytes"), 4294967296.0, 0);
    assert_close(number(w, "host", "cgroup.cpu_limit"), 3, 1e-12);
    close_world(w);
}

/* ---- records ---- */

static tv_str found_in(tv_arena *a, const tv_documents *all)
{
    tv_scene scene = {.live = true};
    tv_diagnosis d;
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < all->n; i++)
        assert_ok(a, tv_trace_document(a, all->v[i].name, all->v[i].text, &scene));
    tv_diagnose(a, &scene, &d);
    for (size_t i = 0; i < d.findings.n; i++) {
        tv_puts(&b, d.findings.v[i]->rule->id);
        tv_puts(&b, tv_severity_name(d.findings.v[i]->severity));
        tv_put_u64(&b, d.findings.v[i]->evidence.n);
        tv_putc(&b, ' ');
    }
    return tv_buf_str(&b);
}

static void test_record(void **state)
{
    (void)state;
    world *w = open_world();
    put(w, "/proc/meminfo", TV_S("MemTotal:  131072000 kB\nMemAvailable:  65536 kB\n"));
    put(w, "/proc/mounts", TV_S("nas7.lab.example.com:/export/alice /home/alice nfs4 rw 0 0\n"));
    put(w, "/var/log/dmesg",
        TV_S("[   12.5] NVRM: Xid (PCI:0000:41:00): 79, pid=4711, GPU has fallen off the bus.\n"
             "[   13.0] eth0: link up 10.1.2.3 aa:bb:cc:dd:ee:ff\n"));
    look(w, FAKE, ANSWERS "two_a100.txt");
    const tv_str folder = below(w, "/record");
    assert_ok(w->a, tv_bundle_write(&w->r, folder, &w->all));
    tv_documents again = {0};
    assert_ok(w->a, tv_bundle_read(w->a, folder, &again));
    assert_int_equal(again.n, w->all.n);
    const tv_str live = found_in(w->a, &w->all), replayed = found_in(w->a, &again);
    assert_true(live.n > 0);
    assert_str(replayed, tv_cstr(w->a, live));
    static const char *const secret[] = {"alice",    "nas7",       "10.1.2.3",
                                         "aa:bb:cc", "1563221004", "8f3c1a2b"};
    for (size_t i = 0; i < again.n; i++)
        for (size_t k = 0; k < sizeof secret / sizeof *secret; k++)
            if (tv_str_has(again.v[i].text, tv_str_of(secret[k])))
                fail_msg("%.*s tells %s", TV_FMT(again.v[i].name), secret[k]);
    /* never over what is there */
    const tv_err *e = tv_bundle_write(&w->r, folder, &w->all);
    assert_non_null(e);
    assert_int_equal(e->code, TV_USAGE);
    close_world(w);
}

/* A manifest is an input like any other. */
static void test_bad_records(void **state)
{
    (void)state;
    static const char *const manifests[] = {
        "{\"schema\": \"trivet.host/1\", \"documents\": [{\"name\": \"x\", \"file\": "
        "\"../secret\"}]}",
        "{\"schema\": \"trivet.host/1\", \"documents\": [{\"name\": \"x\", \"file\": "
        "\"/etc/passwd\"}]}",
        "{\"schema\": \"trivet.host/1\", \"documents\": [{\"name\": \"x\", \"file\": "
        "\"a/../../secret\"}]}",
        "{\"schema\": \"something\"}",
        "[]",
        "{",
    };
    world *w = open_world();
    put(w, "/secret", TV_S("secret\n"));
    for (size_t i = 0; i < sizeof manifests / sizeof *manifests; i++) {
        put(w, "/record/manifest.json", tv_str_of(manifests[i]));
        tv_documents all = {0};
        const tv_err *e = tv_bundle_read(w->a, below(w, "/record"), &all);
        if (!e)
            fail_msg("taken: %s", manifests[i]);
    }
    tv_documents all = {0};
    const tv_err *e = tv_bundle_read(w->a, below(w, "/absent"), &all);
    assert_non_null(e);
    assert_int_equal(e->code, TV_UNAVAILABLE);
    close_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cards),
        cmocka_unit_test(test_topology),
        cmocka_unit_test(test_missing_symbols),
        cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_no_card_no_failure),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_program),
        cmocka_unit_test(test_program_fails),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_sys),
        cmocka_unit_test(test_old_groups),
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_bad_records),
    };
    return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
