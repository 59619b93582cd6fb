/* The kernel's lines in every form that loggers give them: prefixes, the whole grammar of Xid, and
 * what stands around it. A row is a text and the JSON of the facts that must come out of it. */
#include "testing.h"

#include "desc/note.h"
#include "trace/kernel_line.h"
#include "trace/trace.h"

/* ---- prefixes ---- */

typedef struct prefix_case {
    const char *line, *text, *format, *clock;
    double ts_s; /* below 0: none */
    bool host_missing;
} prefix_case;

static void prefixes_are_told_apart(void **state)
{
    (void)state;
    static const prefix_case cases[] = {
        {"NVRM: x", "NVRM: x", NULL, "", -1, false},
        {"[ 1843.308145] NVRM: x", "NVRM: x", "dmesg", "1843.308145", 1843.308145, false},
        {"[Sun Feb 23 16:24:18 2025] NVRM: x", "NVRM: x", "dmesg -T", "Sun Feb 23 16:24:18 2025",
         -1, false},
        {"[  +0.000123] NVRM: x", "NVRM: x", "dmesg -H", "+0.000123", -1, false},
        {"[May18 19:02] NVRM: x", "NVRM: x", "dmesg -H", "May18 19:02", -1, false},
        {"May 18 19:02:39 kernel: NVRM: x", "NVRM: x", "syslog", "May 18 19:02:39", -1, true},
        {"May 18 19:02:39 node-1 kernel: NVRM: x", "NVRM: x", "syslog", "May 18 19:02:39", -1,
         false},
        {"May 18 19:02:39 node-1 kernel: [68183.6] NVRM: x", "NVRM: x", "syslog", "May 18 19:02:39",
         68183.6, false},
        {"May 18 19:02:39.123456 node-1 kernel: NVRM: x", "NVRM: x", "short-precise",
         "May 18 19:02:39.123456", -1, false},
        {"2025-01-25T10:34:54.859532+00:00 node-1 kernel: NVRM: x", "NVRM: x", "iso",
         "2025-01-25T10:34:54.859532+00:00", -1, false},
        {"2025-01-25 10:34:54 node-1 kernel: NVRM: x", "NVRM: x", "iso", "2025-01-25 10:34:54", -1,
         false},
        {"Sat 2025-01-25 10:34:54 UTC node-1 kernel: NVRM: x", "NVRM: x", "syslog",
         "Sat 2025-01-25 10:34:54", -1, false},
        {"1737800094.859532 node-1 kernel: NVRM: x", "NVRM: x", "short-unix", "1737800094.859532",
         -1, false},
        {"kern  :warn  : 2025-01-25T10:34:54,859532+00:00 NVRM: x", "NVRM: x", "dmesg -x",
         "2025-01-25T10:34:54,859532+00:00", -1, false},
        {"kern  :err   : [  100.5] NVRM: x", "NVRM: x", "dmesg -x", "100.5", 100.5, false},
        {"<4>[  100.5] NVRM: x", "NVRM: x", "dmesg", "100.5", 100.5, false},
        {"6,1234,1843308145,-;NVRM: x", "NVRM: x", "kmsg", "", 1843.308145, false},
        {"[  100.5] node-1 kernel: pcieport 0000:00:03.1: x", "pcieport 0000:00:03.1: x", "dmesg",
         "100.5", 100.5, false},
        {"[  100.5] pcieport 0000:00:03.1: x", "pcieport 0000:00:03.1: x", "dmesg", "100.5", 100.5,
         false},
        {"{\"MESSAGE\":\"NVRM: x\",\"__MONOTONIC_TIMESTAMP\":\"5000000\"}", "NVRM: x",
         "journal json", "", 5, false},
        {"    \"MESSAGE\" : \"NVRM: x\",", "NVRM: x", "journal json", "", -1, false},
        {"MESSAGE=NVRM: x", "NVRM: x", "journal export", "", -1, false},
        {"NVRM: Xid (PCI:0000:01:00): 79, x", "NVRM: Xid (PCI:0000:01:00): 79, x", NULL, "", -1,
         false},
        {"", "", NULL, "", -1, false},
        {"[", "[", NULL, "", -1, false},
        {"[]", "[]", NULL, "", -1, false},
        {"<", "<", NULL, "", -1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const prefix_case *c = &cases[i];
        const tv_kernel_line got = tv_kernel_line_of(tv_str_of(c->line));
        const bool format =
            c->format ? got.format && strcmp(got.format, c->format) == 0 : got.format == NULL;
        if (!tv_str_is(got.text, c->text) || !format || !tv_str_is(got.clock, c->clock) ||
            got.host_missing != c->host_missing)
            fail_msg("%s: text \"%.*s\", format %s, clock \"%.*s\"", c->line, TV_FMT(got.text),
                     got.format ? got.format : "none", TV_FMT(got.clock));
        if (c->ts_s < 0 ? !isnan(got.ts_s) : fabs(got.ts_s - c->ts_s) > 1e-9)
            fail_msg("%s: ts_s %g", c->line, got.ts_s);
    }
}

static void addresses_are_taken(void **state)
{
    (void)state;
    static const char *const good[] = {"0000:41:00.0", "41:00.0", "00000000:41:00.0", "0000:41:00",
                                       "c1:00"};
    static const char *const bad[] = {"", "41", "41:", "0000:41", "zz:00.0", "0000:41:0", ":41:00"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tv_str s = tv_str_of(good[i]);
        assert_str(tv_take_pci(&s), good[i]);
        assert_int_equal(s.n, 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tv_str s = tv_str_of(bad[i]);
        assert_int_equal(tv_take_pci(&s).n, 0);
    }
}

/* ---- documents ---- */

/* The facts of the first sighting of a kind, as JSON; "" where there is none. */
static tv_str facts_of(tv_arena *a, const char *text, const char *kind, const char *path)
{
    tv_scene scene = {0};
    assert_ok(a, tv_trace_document(a, TV_S("log"), tv_str_of(text), &scene));
    const tv_sighting *s = tv_scene_first(&scene, kind);
    const tv_note *note = s ? tv_noted(&s->facts, path) : NULL;
    if (!note)
        return (tv_str){0};
    tv_buf b = tv_buf_in(a);
    tv_json_out w = tv_json_write(&b);
    tv_json_note(&w, note);
    return tv_buf_str(&b);
}

typedef struct fact_case {
    const char *text, *kind, *path, *want;
} fact_case;

static void check(const fact_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tv_arena *a = test_arena();
        const tv_str got = facts_of(a, cases[i].text, cases[i].kind, cases[i].path);
        /* written pretty or not, blanks do not matter here */
        tv_buf b = tv_buf_in(a);
        for (size_t k = 0; k < got.n; k++)
            if (got.p[k] != '\n' &&
                !(got.p[k] == ' ' && k && (got.p[k - 1] == ' ' || got.p[k - 1] == '\n')))
                tv_putc(&b, got.p[k]);
        if (!tv_str_is(tv_buf_str(&b), cases[i].want))
            fail_msg("%s\n%s: got %.*s, want %s", cases[i].text, cases[i].path,
                     TV_FMT(tv_buf_str(&b)), cases[i].want);
        tv_arena_close(a);
    }
}

#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))
#define XID "NVRM: Xid (PCI:0000:3b:00"

static void xids_are_read_in_every_form(void **state)
{
    (void)state;
    static const fact_case cases[] = {
        {"NVRM: Xid (0000:03:00): 31, Ch 00000003, engmask 00000101", "xid", "events.0.pci",
         "\"0000:03:00\""},
        {XID " GPU-I:05): 13, pid=1, name=a, Graphics Exception: X", "xid", "events.0.gpu_instance",
         "5"},
        {XID " GPU-I:05 GPU-CI:02): 13, pid=1, name=a, Graphics Exception: X", "xid",
         "events.0.compute_instance", "2"},
        {XID "): 79, GPU has fallen off the bus.", "xid", "events.0.pid", "null"},
        {XID "): 79, GPU has fallen off the bus.", "xid", "format",
         "\"no pid (450 and older, or no process)\""},
        {XID "): 63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate.",
         "xid", "events.0.what", "\"Row Remapper: new row marked\""},
        {XID "): 13, pid='<unknown>', name=<unknown>, Graphics Exception: ESR 0x1=0x2", "xid",
         "events.0.name", "null"},
        {XID "): 43, pid=7, name=ray::Worker, Dict, Ch 00000008", "xid", "events.0.name",
         "\"ray::Worker\""},
        {XID "): 43, pid=7, name=a, b, Ch 00000008", "xid", "events.0.name", "\"a, b\""},
        {XID "): 43, pid=7, name=python, channel 0x00000008", "xid", "events.0.channel",
         "\"00000008\""},
        {XID "): 32, pid=7, name=python, Channel ID 00000018 intr 00040000", "xid",
         "events.0.channel", "\"00000018\""},
        {XID "): 13, pid=7, name=p, Graphics SM Warp Exception on (GPC 7, TPC 3, SM 1): Out Of "
             "Range Address",
         "xid", "events.0.tpc", "3"},
        {XID "): 31, pid=7, name=p, Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC5 "
             "GPCCLIENT_T1_0 faulted @ 0x7f_2000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
         "xid", "events.0.client", "\"GPCCLIENT_T1_0\""},
        {XID "): 31, pid=7, name=p, Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC5 "
             "GPCCLIENT_T1_0 faulted @ 0x7f_2000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
         "xid", "events.0.gpc", "5"},
        {XID "): 94, pid=7, name=p, Contained: SM (0x1,0x2). RST: No, D-RST: Yes", "xid",
         "events.0.drain_needed", "\"Yes\""},
        {XID "): 119, Timeout waiting for RPC from GSP! Expected function 76 (GSP_RM_CONTROL) (0x1 "
             "0x2).",
         "xid", "events.0.function_name", "\"GSP_RM_CONTROL\""},
        {XID "): 119, pid=7, name=p, Timeout after 45s of waiting for RPC response from GPU2 GSP! "
             "Expected function 76 (GSP_RM_CONTROL) sequence 99 (0x1 0x2).",
         "xid", "events.0.sequence", "99"},
        {XID "): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x1 0x0 0x0 0x0 0x0)", "xid",
         "events.0.subcode", "37"},
        {XID "): 144, SAW_MVB Nonfatal XC1 i0 Link -1 (0x00000001 0x00000008)", "xid",
         "events.0.errorstatus", "\"0x00000008\""},
        {XID "): 154, pid='<unknown>', name=<unknown>, GPU recovery action changed from 0x0 (None) "
             "to 0x3 (Drain P2P)",
         "xid", "events.0.to_action", "\"Drain P2P\""},
        {XID "): 45, pid=7, name=p, Ch 00000001 caused by previous Xid 149", "xid",
         "events.0.caused_by_xid", "149"},
        {XID "): 74, pid=7, name=p, NVLink: fatal error detected on link 6(0x10000, 0x0)", "xid",
         "events.0.link", "6"},
        {XID "): 109, pid=7, name=p, Ch 8, errorString CTX SWITCH TIMEOUT, Info 0x5", "xid",
         "events.0.what", "\"CTX SWITCH TIMEOUT\""},
        {XID "): 13, Graphics Exception: ESR 0x1=0x2\n" XID "): 13, Graphics Exception: ESR "
             "0x3=0x2",
         "xid", "events.0.n", "2"},
        {XID "): 13, Graphics Exception: ESR 0x1=0x2\n" XID "): 31, Ch 1, MMU Fault", "xid",
         "events.1.xid", "31"},
        {"> " XID "): 31, name=llama-server, channel 0x00000009, MMU Fault", "xid", "events.0.name",
         "\"llama-server\""},
        {"XidCriticalError: Xid=48 on Device=GPU-aa11, the device will go unhealthy.", "xid",
         "events.0.xid", "48"},
        {"{\"MESSAGE\":\"" XID
         "): 13, pid=1, name=p, Graphics SM Warp Exception on (GPC 0, TPC 1): "
         "Out Of Range Address\",\"PRIORITY\":\"4\"}",
         "xid", "events.0.what", "\"Out Of Range Address\""},
        {XID "): , nothing", "xid", "events", ""},
        {XID, "xid", "events", ""},
        {"NVRM: Xid (): 13, x", "xid", "events", ""},
    };
    CHECK(cases);
}

static void messages_of_several_lines_are_one(void **state)
{
    (void)state;
    static const char lost[] = "[ 1.5] NVRM: The NVIDIA GPU 0000:b3:00.0\r\n"
                               "       NVRM: (PCI ID: 10de:26b5) installed in this system has\r\n"
                               "       NVRM: fallen off the bus and is not responding to commands.";
    static const char api[] = "NVRM: API mismatch: the client 'nvidia-smi' (pid 12)\n"
                              "NVRM: has the version 560.35.03, but this kernel module has\n"
                              "NVRM: the version 560.35.05.  Please make sure that this\n";
    static const char older[] = "NVRM: API mismatch: the client has the version 550.54.14, but\n"
                                "NVRM: this kernel module has the version 545.23.08.  Please\n";
    static const char legacy[] =
        "NVRM: The NVIDIA GeForce 8400 GS GPU installed in this system is\n"
        "NVRM:  supported through the NVIDIA 340.xx Legacy drivers. Please\n"
        "NVRM:  visit http://www.nvidia.com/object/unix.html for more\n";
    static const char region[] = "NVRM: This PCI I/O region assigned to your NVIDIA device is "
                                 "invalid:\nNVRM: BAR1 is 0M @ 0x0 (PCI:0000:0b:00.0)\n";
    static const fact_case cases[] = {
        {lost, "xid", "equivalent_xid", "79"},
        {lost, "xid", "pci_id", "\"10de:26b5\""},
        {lost, "xid", "xid", "null"},
        {api, "xid", "library", "\"560.35.03\""},
        {api, "xid", "loaded_kernel_module", "\"560.35.05\""},
        {api, "xid", "client", "\"nvidia-smi\""},
        {older, "xid", "library", "\"550.54.14\""},
        {older, "xid", "loaded_kernel_module", "\"545.23.08\""},
        {legacy, "xid", "unsupported.0.legacy_branch", "\"340.xx\""},
        {region, "xid", "bars.0.bytes", "0"},
        {region, "xid", "bars.0.pci", "\"0000:0b:00.0\""},
        {"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build",
         "xid", "driver", "\"570.158.01\""},
        {"NVRM: loading NVIDIA UNIX aarch64 Kernel Module  535.54.03  Tue Jun", "xid",
         "module_flavor", "\"proprietary\""},
        {"nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  535.54.03  "
         "Tue",
         "xid", "driver", "\"535.54.03\""},
    };
    CHECK(cases);
}

static void bus_errors_are_put_together(void **state)
{
    (void)state;
    static const char old[] =
        "pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, "
        "id=00e4(Receiver ID)\n"
        "pcieport 0000:00:1c.0:   device [8086:a110] error status/mask=00000001/00002000\n"
        "pcieport 0000:00:1c.0:    [ 0] Receiver Error         (First)\n";
    static const char bare[] =
        "pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, "
        "(Transmitter ID)\n"
        "pcieport 0000:00:1c.0:   device [8086:a110] error status/mask=00001040/00002000\n";
    static const fact_case cases[] = {
        {old, "xid", "aer.0.name", "\"Receiver Error\""},
        {old, "xid", "aer.0.layer", "\"Physical Layer\""},
        {old, "xid", "device", "\"8086:a110\""},
        {bare, "xid", "aer.0.bit", "6"},
        {bare, "xid", "aer.1.name", "\"Timeout\""},
        {bare, "xid", "count", "1"},
        {"nvidia 0000:41:00.0: AER: aer_status: 0x00001000, aer_mask: 0x00006000", "xid",
         "aer.0.name", "\"Timeout\""},
        {"pci 0000:01:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link "
         "at 0000:00:1d.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)",
         "xid", "pcie_limited.0.limit_lanes", "4"},
        {"NVRM: GPU at 0000:02:00.0 has fallen off the bus.", "xid", "bus_losses.0.pci",
         "\"0000:02:00.0\""},
    };
    CHECK(cases);
}

static void other_trouble_is_counted(void **state)
{
    (void)state;
    static const fact_case cases[] = {
        {"nfs: server 10.0.0.5 not responding, timed out", "kernel", "nfs.0.server",
         "\"10.0.0.5\""},
        {"nvme nvme0: I/O tag 12 (100c) opcode 0x2 (I/O Cmd) QID 4 timeout, aborting", "kernel",
         "disks.0.device", "\"nvme0\""},
        {"Buffer I/O error on dev sda1, logical block 0, async page read", "kernel",
         "disks.0.what.0", "\"I/O error\""},
        {"EXT4-fs (sdb1): Remounting filesystem read-only", "kernel", "disks.0.what.0",
         "\"read-only\""},
        {"Buffer I/O error on dev sr0, logical block 0", "kernel", "disks", ""},
        {"EDAC MC0: 3 CE memory read error on CPU_SrcID#0_Chan#1_DIMM#0 (channel:1)", "kernel",
         "edac.0.corrected", "3"},
        {"Corrected on DIMM Label(s): 'DIMM_A1' location: 0:1:0:-1 errors: 123", "kernel",
         "edac.0.corrected", "123"},
        {"mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: be00000000800400", "kernel",
         "machine_checks.0.what", "\"uncorrected\""},
        {"mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: 8c00004000010090", "kernel",
         "machine_checks.0.what", "\"corrected\""},
        {"nvidia 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x2a address=0x7f "
         "flags=0x30]",
         "kernel", "iommu_faults.0.driver", "\"nvidia\""},
        {"AMD-Vi: Event logged [IO_PAGE_FAULT device=41:00.0 domain=0x13 address=0x7f]", "kernel",
         "iommu_faults.0.pci", "\"41:00.0\""},
        {"DMAR: [DMA Read NO_PASID] Request device [41:00.0] fault addr 0xffff", "kernel",
         "iommu_faults.0.what", "\"DMAR\""},
        {"mlx5_core 0000:03:00.0: mlx5_pcie_event:299:(pid 1): Detected insufficient power on the "
         "PCIe slot (27W).",
         "kernel", "nics.0.slot_w", "27"},
        {"python3[12]: segfault at 18 ip 7f sp 7e error 4 in libnccl.so.2.18.3[7f0+5e]", "kernel",
         "segfaults.0.library", "\"libnccl.so.2.18.3\""},
        {"traps: python[9] general protection fault ip:7f sp:7e error:0 in "
         "libcuda.so.535.54.03[7f0+1]",
         "kernel", "segfaults.0.process", "\"python\""},
        {"pci 0000:41:00.0: BAR 1 [mem size 0x1000000000 64bit pref]: can't assign; no space",
         "kernel", "bar_failures.0.bytes", "68719476736"},
        {"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 MC TS crumbstore",
         "sxid", "events.0.link", "46"},
        {"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 MC TS crumbstore",
         "sxid", "events.0.what", "\"MC TS crumbstore\""},
    };
    CHECK(cases);
}

static void failures_and_versions_are_read(void **state)
{
    (void)state;
    static const char history[] =
        "Failed to initialize NVML: Driver/library version mismatch\n"
        "Start-Date: 2021-04-24  06:50:54\n"
        "Commandline: /usr/bin/unattended-upgrade\n"
        "Upgrade: libc6:amd64 (2.31-0ubuntu9.2, 2.31-0ubuntu9.3), libnvidia-gl-460:amd64 "
        "(460.56-0ubuntu0.20.04.1, 460.73.01-0ubuntu0.20.04.1)\n";
    static const fact_case cases[] = {
        {history, "smi-failure", "library", "\"460.73.01\""},
        {history, "smi-failure", "package", "\"libnvidia-gl-460\""},
        {history, "smi-failure", "cause", "\"unattended-upgrade\""},
        {history, "driver", "upgrades.0.from", "\"460.56\""},
        {"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: "
         "535.183",
         "smi-failure", "nvml_version_line", "\"535.183\""},
        {"Unable to determine the device handle for GPU 0000:07:00.0: GPU is lost.  Reboot the "
         "system to recover this GPU",
         "smi-failure", "error", "\"GPU is lost\""},
        {"Unable to determine the device handle for GPU0000:07:00.0: Unknown Error", "smi-failure",
         "no_space_after_GPU", "true"},
        {"Failed to initialize NVML: Insufficient Permissions", "smi-failure", "error",
         "\"Insufficient Permissions\""},
        {"nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: "
         "unknown",
         "smi-failure", "error", "\"Driver/library version mismatch\""},
        {"[2021-04-24T06:50:54+0200] [ALPM] upgraded nvidia-utils (460.56-1 -> 460.73.01-1)",
         "driver", "upgrades.0.to", "\"460.73.01\""},
        {"2021-04-24 06:50:52 upgrade libnvidia-gl-460:amd64 460.56-0u1 460.73.01-0u1", "driver",
         "upgrades.0.time", "\"2021-04-24 06:50:52\""},
        {"nvidia, 460.56, 5.4.0-70-generic, x86_64: installed", "driver", "dkms.0.kernel",
         "\"5.4.0-70-generic\""},
        {"nvidia/535.54.03: added", "driver", "dkms.0.state", "\"added\""},
        {"filename:       /lib/modules/5.15.0-78-generic/updates/dkms/nvidia.ko\nversion:        "
         "535.54.03\nlicense:        NVIDIA",
         "driver", "module_on_disk", "\"535.54.03\""},
        {"modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.1.0-9-amd64",
         "driver", "running_kernel", "\"6.1.0-9-amd64\""},
    };
    CHECK(cases);
}

static void lists_of_devices_are_read(void **state)
{
    (void)state;
    static const char gpu[] =
        "0000:41:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5] "
        "(rev a1)\n"
        "\tRegion 1: Memory at 38c000000000 (64-bit, prefetchable) [size=128G]\n"
        "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported\n"
        "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8 (downgraded)\n"
        "\tKernel driver in use: nvidia\n";
    static const fact_case cases[] = {
        {gpu, "lspci", "gpus_on_bus", "1"},
        {gpu, "lspci", "devices.0.ids", "\"10de:20b5\""},
        {gpu, "lspci", "devices.0.bars.0.bytes", "137438953472"},
        {gpu, "lspci", "devices.0.link_lanes", "8"},
        {gpu, "lspci", "devices.0.width_downgraded", "true"},
        {gpu, "lspci", "devices.0.driver", "\"nvidia\""},
        {"65:00.0 3D controller: NVIDIA Corporation GA100 (rev ff)", "lspci", "devices.0.dead",
         "true"},
        {"41:00.0 0302: 10de:20b5 (rev a1)", "lspci", "gpus_on_bus", "1"},
        {"41:00.0 \"3D controller\" \"NVIDIA Corporation\" \"GA100\" -ra1 \"x\" \"y\"", "lspci",
         "gpus_on_bus", "1"},
        {"ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+", "lspci", "devices.0.acs",
         "[\"SrcValid\",\"ReqRedir\",\"CmpltRedir\",\"UpstreamFwd\"]"},
        {"0000:40:01.1 (ecap 000d @2a0) @2a6 = 000c", "lspci", "devices.0.acs",
         "[\"ReqRedir\",\"CmpltRedir\"]"},
        {" +-01.1-[41]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB]", "lspci", "gpus_in_tree",
         "1"},
    };
    CHECK(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_are_told_apart),
        cmocka_unit_test(addresses_are_taken),
        cmocka_unit_test(xids_are_read_in_every_form),
        cmocka_unit_test(messages_of_several_lines_are_one),
        cmocka_unit_test(bus_errors_are_put_together),
        cmocka_unit_test(other_trouble_is_counted),
        cmocka_unit_test(failures_and_versions_are_read),
        cmocka_unit_test(lists_of_devices_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
