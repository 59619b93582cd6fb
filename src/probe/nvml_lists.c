/* Structures of NVML, declared here as the interface lays them out; buffers that it fills are never
 * smaller than any version of them. */
#include "nvml_lists.h"

#include <limits.h>
#include <string.h>

#include "nvml_xml.h"

/* ---- small steps ---- */

static void open_element(tv_buf *b, const char *tag)
{
    tv_putc(b, '<');
    tv_puts(b, tag);
    tv_puts(b, ">\n");
}

static void close_element(tv_buf *b, const char *tag)
{
    tv_puts(b, "</");
    tv_puts(b, tag);
    tv_puts(b, ">\n");
}

/* A number with its unit; where the call failed its words. */
static void put_number(const tv_nvml *n, tv_buf *b, const char *tag, int status, double v,
                       const char *unit)
{
    tv_buf text = tv_buf_in(n->a);
    tv_put_double(&text, v);
    tv_puts(&text, unit);
    tv_nvml_element(b, tag, status ? tv_str_of(tv_nvml_words(status)) : tv_buf_str(&text));
}

static void put_memory_size(const tv_nvml *n, tv_buf *b, const char *tag, int status,
                            unsigned long long bytes)
{
    /* whole MiB, as nvidia-smi prints them; an unknown amount is all ones */
    const int known = bytes == ULLONG_MAX ? TV_NVML_NOT_SUPPORTED : status;
    put_number(n, b, tag, known, (double)(bytes >> 20), " MiB");
}

static void put_yes(tv_buf *b, const char *tag, int status, bool yes)
{
    tv_nvml_element(b, tag, tv_str_of(status ? tv_nvml_words(status) : yes ? "Yes" : "No"));
}

/* ---- place on the bus ---- */

/* nvmlPciInfo_t of any version begins with the legacy address, and _v3 ends with the long one. */
typedef struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char address[32];
    char spare[64];
} pci_info;

typedef int (*caller)(const tv_nvml_call *f, tv_nvml_handle device, unsigned link, void *to);

static tv_str whole_address(const tv_nvml *n, const char *names, caller call, tv_nvml_handle device,
                            unsigned link)
{
    pci_info info = {0};
    const tv_nvml_call f = tv_nvml_find(n, names);
    if (!f.symbol || call(&f, device, link, &info) != TV_NVML_OK)
        return (tv_str){0};
    info.address[sizeof info.address - 1] = 0;
    info.legacy[sizeof info.legacy - 1] = 0;
    const char *text = info.address[0] ? info.address : info.legacy;
    return tv_str_copy(n->a, tv_str_of(text));
}

static int call_block(const tv_nvml_call *f, tv_nvml_handle device, unsigned link, void *to)
{
    (void)link;
    return f->block(device, to);
}

static int call_below(const tv_nvml_call *f, tv_nvml_handle device, unsigned link, void *to)
{
    return f->below(device, link, to);
}

tv_str tv_nvml_bus(const tv_nvml *n, tv_nvml_handle device)
{
    return whole_address(n, "nvmlDeviceGetPciInfo_v3|nvmlDeviceGetPciInfo_v2|nvmlDeviceGetPciInfo",
                         call_block, device, 0);
}

tv_str tv_nvml_link_end(const tv_nvml *n, tv_nvml_handle device, unsigned link)
{
    return whole_address(n, "nvmlDeviceGetNvLinkRemotePciInfo_v2|nvmlDeviceGetNvLinkRemotePciInfo",
                         call_below, device, link);
}

void tv_nvml_pci(const tv_nvml *n, tv_nvml_handle device, tv_buf *b)
{
    const tv_str bus = tv_nvml_bus(n, device);
    if (bus.n)
        tv_nvml_element(b, "pci_bus_id", bus);
}

/* ---- memory and utilisation ---- */

typedef struct memory {
    unsigned long long total, free, used;
} memory;

typedef struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
} memory_v2;

static void put_memory(const tv_nvml *n, tv_nvml_handle device, tv_buf *b)
{
    memory_v2 m = {.version = (unsigned)sizeof m | 2u << 24};
    tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetMemoryInfo_v2");
    int status = call.symbol ? call.block(device, &m) : TV_NVML_MISSING;
    bool reserved = status == TV_NVML_OK;
    if (status) {
        memory old = {0};
        call = tv_nvml_find(n, "nvmlDeviceGetMemoryInfo");
        status = call.symbol ? call.block(device, &old) : TV_NVML_MISSING;
        m = (memory_v2){.total = old.total, .free = old.free, .used = old.used};
    }
    put_memory_size(n, b, "total", status, m.total);
    if (reserved)
        put_memory_size(n, b, "reserved", status, m.reserved);
    put_memory_size(n, b, "used", status, m.used);
    put_memory_size(n, b, "free", status, m.free);
}

void tv_nvml_memory(const tv_nvml *n, tv_nvml_handle device, tv_buf *b)
{
    open_element(b, "fb_memory_usage");
    put_memory(n, device, b);
    close_element(b, "fb_memory_usage");
    memory bar1 = {0}; /* the same shape: total, free, used */
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetBAR1MemoryInfo");
    const int status = call.symbol ? call.block(device, &bar1) : TV_NVML_MISSING;
    open_element(b, "bar1_memory_usage");
    put_memory_size(n, b, "total", status, bar1.total);
    put_memory_size(n, b, "used", status, bar1.used);
    put_memory_size(n, b, "free", status, bar1.free);
    close_element(b, "bar1_memory_usage");
}

void tv_nvml_utilization(const tv_nvml *n, tv_nvml_handle device, tv_buf *b)
{
    unsigned rates[2] = {0};
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetUtilizationRates");
    const int status = call.symbol ? call.block(device, rates) : TV_NVML_MISSING;
    open_element(b, "utilization");
    put_number(n, b, "gpu_util", status, rates[0], " %");
    put_number(n, b, "memory_util", status, rates[1], " %");
    close_element(b, "utilization");
}

/* ---- numbered fields ---- */

typedef struct field_value {
    unsigned id;
    unsigned scope;
    long long time;
    long long latency;
    unsigned
        type; /* 0 double, 1 unsigned, 2 unsigned long, 3 unsigned long long, 4 long long, 5 int */
    int status;
    union {
        double real;
        unsigned count;
        unsigned long longer;
        unsigned long long wide;
        long long wide_number;
        int number;
    } v;
} field_value;

int tv_nvml_field(const tv_nvml *n, tv_nvml_handle device, unsigned id, double *v)
{
    field_value f = {.id = id};
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetFieldValues");
    const int status = call.symbol ? call.fields(device, 1, &f) : TV_NVML_MISSING;
    if (status || f.status)
        return status ? status : f.status;
    /* margins of temperatures are signed, whatever type the driver names */
    const bool margin = id >= 193 && id <= 196;
    *v = f.type == 0   ? f.v.real
         : f.type == 2 ? (double)f.v.longer
         : f.type == 3 ? (double)f.v.wide
         : f.type == 4 ? (double)f.v.wide_number
         : margin      ? (double)f.v.number
         : f.type == 5 ? (double)f.v.number
                       : (double)f.v.count;
    return TV_NVML_OK;
}

/* ---- heat ---- */

void tv_nvml_margin(const tv_nvml *n, tv_nvml_handle device, tv_buf *b)
{
    struct {
        unsigned version;
        int margin;
    } m = {8u | 1u << 24, 0};
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetMarginTemperature");
    const int status = call.symbol ? call.block(device, &m) : TV_NVML_MISSING;
    put_number(n, b, "gpu_temp_tlimit", status, m.margin, " C");
}

/* ---- memory pages: fields 29 to 31 ---- */

void tv_nvml_retired(const tv_nvml *n, tv_nvml_handle device, tv_buf *b)
{
    static const unsigned ids[] = {29, 30, 31};
    static const char *const tags[] = {"multiple_single_bit_retirement", "double_bit_retirement"};
    double v = 0;
    open_element(b, "retired_pages");
    for (size_t i = 0; i < 2; i++) {
        const int status = tv_nvml_field(n, device, ids[i], &v);
        open_element(b, tags[i]);
        put_number(n, b, "retired_count", status, v, "");
        close_element(b, tags[i]);
    }
    const int status = tv_nvml_field(n, device, ids[2], &v);
    put_yes(b, "pending_retirement", status, v > 0);
    close_element(b, "retired_pages");
}

void tv_nvml_remapped(const tv_nvml *n, tv_nvml_handle device, tv_buf *b)
{
    unsigned rows[4] = {0}, banks[5] = {0};
    tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetRemappedRows");
    int status =
        call.symbol ? call.count4(device, &rows[0], &rows[1], &rows[2], &rows[3]) : TV_NVML_MISSING;
    if (status) {
        tv_nvml_element(b, "remapped_rows", tv_str_of(tv_nvml_words(status)));
        return;
    }
    open_element(b, "remapped_rows");
    put_number(n, b, "remapped_row_corr", status, rows[0], "");
    put_number(n, b, "remapped_row_unc", status, rows[1], "");
    put_yes(b, "remapped_row_pending", status, rows[2] != 0);
    put_yes(b, "remapped_row_failure", status, rows[3] != 0);
    call = tv_nvml_find(n, "nvmlDeviceGetRowRemapperHistogram");
    status = call.symbol ? call.block(device, banks) : TV_NVML_MISSING;
    static const char *const tags[] = {"row_remapper_histogram_max", "row_remapper_histogram_high",
                                       "row_remapper_histogram_partial",
                                       "row_remapper_histogram_low", "row_remapper_histogram_none"};
    open_element(b, "row_remapper_histogram");
    for (size_t i = 0; i < 5; i++)
        put_number(n, b, tags[i], status, banks[i], " bank(s)");
    close_element(b, "row_remapper_histogram");
    close_element(b, "remapped_rows");
}

/* ---- the fabric of NVSwitch systems ---- */

void tv_nvml_fabric(const tv_nvml *n, tv_nvml_handle device, tv_buf *b)
{
    struct {
        unsigned char cluster[16];
        int status;
        unsigned clique;
        unsigned char state;
        unsigned char spare[64];
    } f = {0};
    static const char *const states[] = {"N/A", "Not Started", "In Progress", "Completed"};
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetGpuFabricInfo");
    const int status = call.symbol ? call.block(device, &f) : TV_NVML_MISSING;
    open_element(b, "fabric");
    tv_nvml_element(b, "state",
                    tv_str_of(status        ? tv_nvml_words(status)
                              : f.state < 4 ? states[f.state]
                                            : "Unknown"));
    tv_nvml_element(b, "status",
                    tv_str_of(status || f.state < 3 ? "N/A"
                              : f.status            ? tv_nvml_words(f.status)
                                                    : "Success"));
    close_element(b, "fabric");
}

/* ---- processes ---- */

typedef struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} process;

typedef struct process_v1 {
    unsigned pid;
    unsigned long long used;
} process_v1;

enum { most_processes = 512 };

static void put_process(const tv_nvml *n, tv_buf *b, const process *p, const char *type)
{
    char name[256] = "";
    const tv_nvml_call call = tv_nvml_find(n, "nvmlSystemGetProcessName");
    if (!call.symbol || call.name_of(p->pid, name, sizeof name - 1) != TV_NVML_OK)
        name[0] = 0;
    open_element(b, "process_info");
    const int no_gi = p->gpu_instance == UINT_MAX ? TV_NVML_NOT_SUPPORTED : TV_NVML_OK;
    put_number(n, b, "gpu_instance_id", no_gi, p->gpu_instance, "");
    const int no_ci = p->compute_instance == UINT_MAX ? TV_NVML_NOT_SUPPORTED : TV_NVML_OK;
    put_number(n, b, "compute_instance_id", no_ci, p->compute_instance, "");
    put_number(n, b, "pid", TV_NVML_OK, p->pid, "");
    tv_nvml_element(b, "type", tv_str_of(type));
    tv_nvml_element(b, "process_name", tv_str_of(name));
    put_memory_size(n, b, "used_memory", TV_NVML_OK, p->used);
    close_element(b, "process_info");
}

static int list_old(const tv_nvml *n, tv_nvml_handle device, const char *names, process *v,
                    unsigned *count)
{
    process_v1 *old = tv_new(n->a, process_v1, most_processes);
    const tv_nvml_call call = tv_nvml_find(n, names);
    const int status = call.symbol ? call.list(device, count, old) : TV_NVML_MISSING;
    for (unsigned i = 0; status == TV_NVML_OK && i < *count && i < most_processes; i++)
        v[i] = (process){old[i].pid, old[i].used, UINT_MAX, UINT_MAX};
    return status;
}

static void put_list(const tv_nvml *n, tv_nvml_handle device, tv_buf *b, const char *names,
                     const char *old_names, const char *type)
{
    process *v = tv_new(n->a, process, most_processes);
    unsigned count = most_processes;
    const tv_nvml_call call = tv_nvml_find(n, names);
    const int status =
        call.symbol ? call.list(device, &count, v) : list_old(n, device, old_names, v, &count);
    for (unsigned i = 0; status == TV_NVML_OK && i < count && i < most_processes; i++)
        put_process(n, b, &v[i], type);
}

void tv_nvml_processes(const tv_nvml *n, tv_nvml_handle device, tv_buf *b)
{
    open_element(b, "processes");
    put_list(n, device, b,
             "nvmlDeviceGetComputeRunningProcesses_v3|nvmlDeviceGetComputeRunningProcesses_v2",
             "nvmlDeviceGetComputeRunningProcesses", "C");
    put_list(n, device, b,
             "nvmlDeviceGetGraphicsRunningProcesses_v3|nvmlDeviceGetGraphicsRunningProcesses_v2",
             "nvmlDeviceGetGraphicsRunningProcesses", "G");
    close_element(b, "processes");
}

/* ---- MIG ---- */

typedef struct attributes {
    unsigned sm, ce, dec, enc, jpg, ofa, gpu_slices, compute_slices;
    unsigned long long memory;
    unsigned char spare[64];
} attributes;

static void put_slice(const tv_nvml *n, tv_nvml_handle slice, tv_buf *b, unsigned index)
{
    unsigned gi = 0, ci = 0;
    attributes at = {0};
    tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetGpuInstanceId");
    const int gi_status = call.symbol ? call.count(slice, &gi) : TV_NVML_MISSING;
    call = tv_nvml_find(n, "nvmlDeviceGetComputeInstanceId");
    const int ci_status = call.symbol ? call.count(slice, &ci) : TV_NVML_MISSING;
    call = tv_nvml_find(n, "nvmlDeviceGetAttributes_v2|nvmlDeviceGetAttributes");
    const int status = call.symbol ? call.block(slice, &at) : TV_NVML_MISSING;
    open_element(b, "mig_device");
    put_number(n, b, "index", TV_NVML_OK, index, "");
    put_number(n, b, "gpu_instance_id", gi_status, gi, "");
    put_number(n, b, "compute_instance_id", ci_status, ci, "");
    open_element(b, "device_attributes");
    open_element(b, "shared");
    put_number(n, b, "multiprocessor_count", status, at.sm, "");
    put_number(n, b, "copy_engine_count", status, at.ce, "");
    put_number(n, b, "encoder_count", status, at.enc, "");
    put_number(n, b, "decoder_count", status, at.dec, "");
    put_number(n, b, "ofa_count", status, at.ofa, "");
    put_number(n, b, "jpg_count", status, at.jpg, "");
    close_element(b, "shared");
    close_element(b, "device_attributes");
    open_element(b, "fb_memory_usage");
    put_memory(n, slice, b);
    close_element(b, "fb_memory_usage");
    close_element(b, "mig_device");
}

void tv_nvml_mig(const tv_nvml *n, tv_nvml_handle device, tv_buf *b)
{
    unsigned most = 0, mode = 0, pending = 0;
    tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetMigMode");
    if (!call.symbol || call.count2(device, &mode, &pending) || !mode) {
        tv_nvml_element(b, "mig_devices", TV_S("None"));
        return;
    }
    call = tv_nvml_find(n, "nvmlDeviceGetMaxMigDeviceCount");
    if (!call.symbol || call.count(device, &most))
        most = 0;
    const tv_nvml_call at = tv_nvml_find(n, "nvmlDeviceGetMigDeviceHandleByIndex");
    open_element(b, "mig_devices");
    bool some = false;
    for (unsigned i = 0; at.symbol && i < most && i < 64; i++) {
        tv_nvml_handle slice = NULL;
        if (at.handle_below(device, i, &slice) != TV_NVML_OK)
            continue;
        put_slice(n, slice, b, i);
        some = true;
    }
    if (!some)
        tv_puts(b, "None\n");
    close_element(b, "mig_devices");
}
