/* What else the kernel complains of on a training host: storage, memory, the IOMMU, the network
 * card, crashes in the CUDA libraries, and traces of a sudden end. One sighting a file, one list
 * for each kind of trouble, alike complaints counted. */
#include "kernel_line.h"

#include <string.h>

typedef struct trouble_log {
    tv_reading *r;
    tv_sighting *s;
} trouble_log;

static tv_note *item_of(trouble_log *log, const char *list, const char *key, tv_str word, size_t i)
{
    if (!log->s)
        log->s = tv_see_once(log->r, "kernel", i);
    return tv_tally(log->r, tv_note_list(log->r->a, &log->s->facts, list), key, word, i);
}

static void put(trouble_log *log, tv_note *item, const char *key, tv_str s)
{
    if (item && s.n)
        (void)tv_note_str(log->r->a, item, key, s);
}

/* ---- storage ---- */

/* "nfs: server 10.0.0.5 not responding, still trying", "... OK" */
static bool read_nfs(trouble_log *log, tv_str text, size_t i)
{
    tv_str rest;
    if (!tv_past(text, "nfs: server ", &rest) && !tv_past(text, "lockd: server ", &rest))
        return false;
    const tv_str server = tv_take_word(&rest);
    const bool lost = tv_holds(rest, "not responding");
    if (!lost && !tv_holds(rest, " OK"))
        return false;
    tv_note *item = item_of(log, lost ? "nfs" : "nfs_back", "server", server, i);
    if (lost && tv_holds(rest, "timed out"))
        put(log, item, "what", TV_S("timed out"));
    return true;
}

typedef struct disk_row {
    const char *words;  /* in the text */
    const char *before; /* the device's name stands behind these; NULL: the word before words */
    const char *what;
} disk_row;

static const disk_row disks[] = {
    {"Buffer I/O error on dev", "on dev ", "I/O error"},
    {"Buffer I/O error on device", "on device ", "I/O error"},
    {"critical medium error, dev ", "dev ", "medium error"},
    {"I/O error, dev ", "dev ", "I/O error"},
    {"Remounting filesystem read-only", "fs (", "read-only"},
    {"EXT4-fs error (device ", "(device ", "filesystem error"},
    {"metadata I/O error", "XFS (", "filesystem error"},
    {"Corruption of in-memory data", "XFS (", "filesystem error"},
    {"BTRFS error (device ", "(device ", "filesystem error"},
    {"controller is down; will reset", "nvme ", "controller reset"},
    {"Device not ready; aborting", "nvme ", "controller reset"},
    {"Removing after probe failure", "nvme ", "controller lost"},
    {"Disk failure on ", "Disk failure on ", "disk failure"},
    {": failed command: ", NULL, "failed command"},
};

/* Not the host's disks. */
static bool is_other_medium(tv_str device)
{
    static const char *const names[] = {"sr", "fd", "loop", "ram", "zram", "mtd"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (tv_str_starts(device, tv_str_of(names[k])))
            return true;
    return false;
}

static tv_str device_name(tv_str s)
{
    size_t n = 0;
    while (n < s.n && (s.p[n] == '-' || s.p[n] == '_' || (s.p[n] >= '0' && s.p[n] <= '9') ||
                       ((s.p[n] | 32) >= 'a' && (s.p[n] | 32) <= 'z')))
        n++;
    return tv_str_take(s, n);
}

static void add_disk(trouble_log *log, tv_str device, const char *what, size_t i)
{
    if (!device.n || is_other_medium(device))
        return;
    tv_note *item = item_of(log, "disks", "device", device, i);
    if (!item)
        return;
    tv_note *list = tv_note_list(log->r->a, item, "what");
    for (const tv_note *w = list->first; w; w = w->next)
        if (tv_str_is(w->s, what))
            return;
    (void)tv_at(log->r, tv_note_str(log->r->a, list, NULL, tv_str_of(what)), i);
}

static bool read_disk(trouble_log *log, tv_str text, size_t i)
{
    /* "nvme nvme0: I/O 123 QID 4 timeout, aborting" */
    tv_str rest;
    if (tv_past(text, "nvme nvme", &rest) && tv_holds(text, " timeout, ")) {
        (void)tv_past(text, "nvme ", &rest);
        add_disk(log, device_name(rest), "timeout", i);
        return true;
    }
    for (size_t k = 0; k < sizeof disks / sizeof *disks; k++) {
        if (!tv_holds(text, disks[k].words))
            continue;
        if (!disks[k].before)
            add_disk(log, device_name(text), disks[k].what, i);
        else if (tv_past(text, disks[k].before, &rest))
            add_disk(log, device_name(rest), disks[k].what, i);
        return true;
    }
    return false;
}

/* ---- memory ---- */

/* "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 ...)" */
static bool read_edac(trouble_log *log, tv_str text, size_t i)
{
    tv_str rest;
    if (!tv_past(text, "EDAC ", &rest) || !tv_str_starts(rest, TV_S("MC")))
        return false;
    const tv_cut controller = tv_str_cut(rest, ':');
    rest = controller.tail;
    const tv_double_read n = tv_take_number(&rest);
    tv_str kind = tv_take_word(&rest);
    if (!n.ok || (!tv_str_is(kind, "CE") && !tv_str_is(kind, "UE")))
        return false;
    tv_str at;
    const tv_str dimm = tv_past(rest, " on ", &at) ? tv_str_cut(at, ' ').head : controller.head;
    tv_note *item = item_of(log, "edac", "dimm", dimm, i);
    if (!item)
        return true;
    const bool corrected = tv_str_is(kind, "CE");
    const char *key = corrected ? "corrected" : "uncorrected";
    const double old = tv_noted_num(item, key);
    (void)tv_note_num(log->r->a, item, key, (old > 0 ? old : 0) + n.v);
    return true;
}

/* rasdaemon's log and ras-mc-ctl's summary: "mc_event: ... 1 Corrected error: memory read error on
 * DIMM_A1", "Corrected on DIMM Label(s): 'DIMM_A1' location: 0:1:0:-1 errors: 123" */
static bool read_ras(trouble_log *log, tv_str text, size_t i)
{
    tv_str rest = {0};
    tv_str dimm = {0};
    double n = 1;
    if (tv_past(text, " DIMM Label(s): '", &rest)) {
        dimm = tv_enclosed(text, "Label(s): '", "'");
        const tv_double_read count = tv_number_past(rest, "errors: ");
        n = count.ok ? count.v : 1;
    } else if (tv_past(text, "mc_event:", &rest)) {
        tv_str at;
        dimm = tv_past(rest, " on ", &at) ? tv_take_word(&at) : tv_enclosed(rest, "label: ", " ");
    } else {
        return false;
    }
    tv_note *item = item_of(log, "edac", "dimm", dimm.n ? dimm : TV_S("memory"), i);
    if (!item)
        return true;
    const bool bad = tv_holds(text, "Uncorrected") || tv_holds(text, "Fatal");
    const char *key = bad ? "uncorrected" : "corrected";
    const double old = tv_noted_num(item, key);
    (void)tv_note_num(log->r->a, item, key, (old > 0 ? old : 0) + n);
    return true;
}

/* "mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: be00000000800400": bit 61 of the status
 * is "uncorrected" (Intel SDM volume 3B, IA32_MCi_STATUS). */
static bool is_uncorrected(tv_str status)
{
    const char c = status.n == 16 ? (char)(status.p[0] | 32) : '0';
    const int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
    return (v & 2) != 0;
}

static void add_machine_check(trouble_log *log, bool bad, size_t i)
{
    (void)item_of(log, "machine_checks", "what", bad ? TV_S("uncorrected") : TV_S("corrected"), i);
}

static bool read_machine_check(trouble_log *log, tv_str text, size_t i)
{
    tv_str rest;
    if (tv_past(text, "Machine Check", &rest) && tv_past(rest, "Bank ", &rest)) {
        (void)tv_past(rest, ": ", &rest);
        add_machine_check(log, is_uncorrected(tv_take_word(&rest)), i);
        return true;
    }
    if (tv_past(text, "[Hardware Error]: event severity: ", &rest)) {
        add_machine_check(log, !tv_str_starts(rest, TV_S("corrected")), i);
        return true;
    }
    if (tv_past(text, "STATUS ", &rest) && tv_holds(text, "MCGSTATUS")) { /* mcelog */
        add_machine_check(log, is_uncorrected(tv_take_word(&rest)), i);
        return true;
    }
    if (tv_holds(text, "Machine check events logged")) {
        (void)item_of(log, "machine_checks", "what", TV_S("logged"), i);
        return true;
    }
    if (tv_holds(text, "corrected DIMM memory error count exceeded threshold") ||
        tv_holds(text, "emory failure: 0x")) {
        add_machine_check(log, tv_holds(text, "emory failure"), i);
        return true;
    }
    return false;
}

/* ---- IOMMU ---- */

/* "AMD-Vi: Event logged [IO_PAGE_FAULT device=41:00.0 domain=0x13 address=0x... flags=0x20]",
 * "nvidia 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=...", "DMAR: [DMA Read NO_PASID]
 * Request device [41:00.0] fault addr 0x..." */
static bool read_iommu(trouble_log *log, tv_str text, size_t i)
{
    const bool amd = tv_holds(text, "IO_PAGE_FAULT");
    if (!amd && !(tv_holds(text, "DMAR:") && tv_holds(text, "Request device [")))
        return false;
    tv_str rest;
    tv_str device = {0};
    if (!amd && tv_past(text, "Request device [", &rest))
        device = tv_take_pci(&rest);
    else if (tv_past(text, "device=", &rest))
        device = tv_take_pci(&rest);
    tv_str speaker = text;
    const tv_str driver = tv_take_word(&speaker);
    const tv_str own = tv_take_pci(&speaker);
    if (!device.n)
        device = own;
    tv_note *item = item_of(log, "iommu_faults", "pci", device, i);
    put(log, item, "what", amd ? TV_S("IO_PAGE_FAULT") : TV_S("DMAR"));
    if (own.n)
        put(log, item, "driver", driver);
    if (tv_past(text, amd ? "address=" : "fault addr ", &rest))
        put(log, item, "address", tv_take_word(&rest));
    return true;
}

/* ---- network cards ---- */

typedef struct nic_row {
    const char *words;
    const char *what;
} nic_row;

static const nic_row nics[] = {
    {"Link down", "link down"},
    {"link down", "link down"},
    {"Link up", "link up"},
    {"High Temperature", "module temperature"},
    {"high temperature", "module temperature"},
    {"High temperatures on sensors", "module temperature"},
    {"insufficient power on the PCIe slot", "slot power"},
    {"Cable error", "cable error"},
    {"Cable unplugged", "cable unplugged"},
    {"handling bad device", "firmware fault"},
    {"Health issue observed", "firmware fault"},
};

static bool read_nic(trouble_log *log, tv_str text, size_t i)
{
    tv_str rest;
    const bool mlx = tv_past(text, "mlx5_core ", &rest) || tv_past(text, "mlx4_core ", &rest) ||
                     tv_past(text, "bnxt_en ", &rest) || tv_past(text, "infiniband ", &rest);
    if (!mlx)
        return false;
    const tv_str device = tv_take_pci(&rest);
    for (size_t k = 0; k < sizeof nics / sizeof *nics; k++) {
        if (!tv_holds(text, nics[k].words))
            continue;
        char key[96];
        size_t n = 0;
        const tv_str parts[] = {device, TV_S(" "), tv_str_of(nics[k].what)};
        for (size_t p = 0; p < 3; p++)
            for (size_t c = 0; c < parts[p].n && n < sizeof key; c++)
                key[n++] = parts[p].p[c];
        tv_note *item = item_of(log, "nics", "event", (tv_str){key, n}, i);
        put(log, item, "pci", device);
        put(log, item, "what", tv_str_of(nics[k].what));
        tv_str name = rest;
        put(log, item, "interface",
            tv_str_starts(rest, TV_S(" ")) ? tv_take_word(&name) : (tv_str){0});
        const tv_double_read watts = tv_number_past(text, "PCIe slot (");
        if (item && watts.ok)
            (void)tv_note_num(log->r->a, item, "slot_w", watts.v);
        return true;
    }
    return true;
}

/* ---- crashes ---- */

/* "python3[1234]: segfault at 18 ip 00007f... sp ... error 4 in libnccl.so.2.18.3[7f...+...]" */
static bool read_segfault(trouble_log *log, tv_str text, size_t i)
{
    tv_str rest;
    if (!tv_past(text, "segfault at ", &rest) && !tv_past(text, "general protection", &rest))
        return false;
    tv_str at;
    if (!tv_past(rest, " in ", &at))
        return true;
    tv_str library = tv_str_cut(at, '[').head;
    tv_note *item = item_of(log, "segfaults", "library", tv_str_trim(library), i);
    tv_str process = tv_str_cut(text, '[').head;
    if (tv_str_starts(process, TV_S("traps: ")))
        process = tv_str_drop(process, 7);
    put(log, item, "process", tv_str_trim(process));
    return true;
}

/* ---- a sudden end, sleep, and room for BARs ---- */

static bool read_end(trouble_log *log, tv_str text, size_t i)
{
    static const struct {
        const char *words, *what;
    } rows[] = {
        {"corrupted or uncleanly shut down", "journal not closed"},
        {"recovery required on readonly filesystem", "filesystem recovered"},
        {"BERT: Error records from previous boot", "firmware error record"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (tv_holds(text, rows[k].words)) {
            (void)item_of(log, "sudden_ends", "what", tv_str_of(rows[k].what), i);
            return true;
        }
    /* last -x: "root pts/0 10.0.0.2 Mon May  1 10:00 - crash  (02:14)" */
    if (tv_holds(text, "- crash") && tv_holds(text, "(")) {
        (void)item_of(log, "sudden_ends", "what", TV_S("crash"), i);
        return true;
    }
    return false;
}

static bool read_sleep(trouble_log *log, tv_str text, size_t i)
{
    if (!tv_holds(text, "PM: suspend exit") &&
        !tv_holds(text, "Waking up from system sleep state") &&
        !tv_holds(text, "PM: hibernation exit") && !tv_holds(text, "PM: Finishing wakeup"))
        return false;
    (void)item_of(log, "wakeups", "what", TV_S("wakeup"), i);
    return true;
}

/* "pci 0000:41:00.0: BAR 1: no space for [mem size 0x1000000000 64bit pref]", newer "BAR 1 [mem
 * size ...]: can't assign; no space" */
static bool read_bar(trouble_log *log, tv_str text, size_t i)
{
    if (!tv_holds(text, "BAR ") || !tv_holds(text, "[mem size 0x") ||
        !(tv_holds(text, "no space") || tv_holds(text, "failed to assign") ||
          tv_holds(text, "can't assign")))
        return false;
    tv_str rest = text;
    (void)tv_take_word(&rest);
    const tv_str pci = tv_take_pci(&rest);
    tv_note *item = item_of(log, "bar_failures", "pci", pci, i);
    tv_str size;
    if (item && tv_past(text, "[mem size ", &size)) {
        const tv_u64_read bytes = tv_take_u64(&size);
        if (bytes.ok)
            (void)tv_note_num(log->r->a, item, "bytes", (double)bytes.v);
    }
    const tv_double_read bar = tv_number_past(text, "BAR ");
    if (item && bar.ok)
        (void)tv_note_num(log->r->a, item, "bar", bar.v);
    return true;
}

static bool read_heat(trouble_log *log, tv_str text, size_t i)
{
    if (!tv_holds(text, "temperature above threshold"))
        return false;
    (void)item_of(log, "cpu_heat", "what", TV_S("above threshold"), i);
    return true;
}

typedef struct trouble {
    const char *needle;
    bool (*read)(trouble_log *log, tv_str text, size_t i);
} trouble;

static const trouble troubles[] = {
    {"server ", read_nfs},
    {"rror", read_disk},
    {"nvme", read_disk},
    {"Remounting filesystem", read_disk},
    {"failed command: ", read_disk},
    {"Corruption of in-memory", read_disk},
    {"Disk failure on ", read_disk},
    {"EDAC ", read_edac},
    {"Label(s): '", read_ras},
    {"mc_event:", read_ras},
    {"achine ", read_machine_check},
    {"[Hardware Error]", read_machine_check},
    {"MCGSTATUS", read_machine_check},
    {"emory failure: 0x", read_machine_check},
    {"DIMM memory error count", read_machine_check},
    {"IO_PAGE_FAULT", read_iommu},
    {"DMAR:", read_iommu},
    {"mlx5_core ", read_nic},
    {"mlx4_core ", read_nic},
    {"bnxt_en ", read_nic},
    {"infiniband ", read_nic},
    {"segfault at ", read_segfault},
    {"general protection", read_segfault},
    {"uncleanly shut down", read_end},
    {"recovery required", read_end},
    {"BERT: ", read_end},
    {"- crash", read_end},
    {"PM: ", read_sleep},
    {"BAR ", read_bar},
    {"temperature above threshold", read_heat},
};

static void read_line(trouble_log *log, size_t i)
{
    const tv_str s = log->r->sheet->v[i].s;
    tv_str text = {0};
    for (size_t k = 0; k < sizeof troubles / sizeof *troubles; k++) {
        if (!tv_holds(s, troubles[k].needle))
            continue;
        if (!text.n)
            text = tv_kernel_line_of(s).text;
        if (troubles[k].read(log, text, i))
            return;
    }
}

static void read(tv_reading *r)
{
    trouble_log log = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++)
        read_line(&log, i);
}

static const char *const needles[] = {
    "nfs: server ",
    "lockd: server ",
    "Buffer I/O error on dev",
    "critical medium error, dev ",
    "I/O error, dev ",
    "Remounting filesystem read-only",
    "EXT4-fs error (device ",
    "metadata I/O error",
    "Corruption of in-memory data",
    "BTRFS error (device ",
    "nvme nvme",
    "Disk failure on ",
    ": failed command: ",
    "EDAC MC",
    " DIMM Label(s): '",
    "mc_event:",
    "Machine Check",
    "Machine check events logged",
    "[Hardware Error]: event severity: ",
    "MCGSTATUS",
    "DIMM memory error count exceeded",
    "emory failure: 0x",
    "IO_PAGE_FAULT",
    "Request device [",
    "mlx5_core ",
    "mlx4_core ",
    "bnxt_en ",
    "infiniband ",
    "segfault at ",
    "traps: ",
    "uncleanly shut down",
    "recovery required on readonly",
    "BERT: Error records",
    "- crash",
    "PM: suspend exit",
    "PM: hibernation exit",
    "PM: Finishing wakeup",
    "system sleep state",
    "[mem size 0x",
    "temperature above threshold",
    NULL,
};

extern const tv_log_format tv_log_format_kernel_trouble;
const tv_log_format tv_log_format_kernel_trouble = {"kernel-trouble", needles, read};
