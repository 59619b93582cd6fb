/* A table of elements, in the order of nvidia-smi's document, with the function that fills each.
 * A function that the library lacks, or that this card does not support, is "N/A"; another error is
 * said in its words. */
#include "nvml_xml.h"

#include <string.h>

#include "nvml_lists.h"

typedef enum how {
    OPEN, /* an element that holds others */
    CLOSE,
    TEXT,
    COUNT,
    WIDE,     /* 64 bits */
    COUNT_OF, /* with a kind: which clock, which sensor */
    SECOND,   /* the second of two counts: what is pending */
    ERRORS,   /* memory errors: type, counter, location packed into `of` */
    FIELD,    /* by the number of a field */
    BIT,      /* of the mask of reasons */
    CALL,     /* a part of its own */
} how;

typedef enum form {
    PLAIN,
    ENABLED,
    ACTIVE,
    CELSIUS,
    WATTS, /* of milliwatts */
    MEGAHERTZ,
    PERCENT,
    LANES,
    PSTATE,
    COMPUTE_MODE,
} form;

typedef struct row {
    how asked;
    const char *tag;
    const char *names;
    unsigned of;
    form as;
    void (*call)(const tv_nvml *n, tv_nvml_handle device, tv_buf *b);
} row;

#define ERRORS_OF(type, counter, location) ((type) << 16 | (counter) << 8 | (location))
enum { CORRECTED, UNCORRECTED };
enum { VOLATILE, AGGREGATE };
enum { DRAM = 2, SRAM = 7 };
enum { GRAPHICS, SM, MEMORY, VIDEO };
enum { SHUTDOWN, SLOWDOWN, MEMORY_MAX, GPU_MAX };

#define TEMPERATURE "nvmlDeviceGetTemperatureThreshold"
#define ECC "nvmlDeviceGetMemoryErrorCounter"

static const row rows[] = {
    {TEXT, "product_name", "nvmlDeviceGetName", 0, PLAIN, NULL},
    {COUNT, "display_active", "nvmlDeviceGetDisplayActive", 0, ENABLED, NULL},
    {COUNT, "persistence_mode", "nvmlDeviceGetPersistenceMode", 0, ENABLED, NULL},
    {OPEN, "mig_mode", NULL, 0, PLAIN, NULL},
    {COUNT, "current_mig", "nvmlDeviceGetMigMode", 2, ENABLED, NULL},
    {SECOND, "pending_mig", "nvmlDeviceGetMigMode", 0, ENABLED, NULL},
    {CLOSE, "mig_mode", NULL, 0, PLAIN, NULL},
    {CALL, NULL, NULL, 0, PLAIN, tv_nvml_mig},
    {TEXT, "serial", "nvmlDeviceGetSerial", 0, PLAIN, NULL},
    {TEXT, "uuid", "nvmlDeviceGetUUID", 0, PLAIN, NULL},
    {COUNT, "minor_number", "nvmlDeviceGetMinorNumber", 0, PLAIN, NULL},
    {TEXT, "vbios_version", "nvmlDeviceGetVbiosVersion", 0, PLAIN, NULL},
    {TEXT, "gsp_firmware_version", "nvmlDeviceGetGspFirmwareVersion", 0, PLAIN, NULL},
    {OPEN, "pci", NULL, 0, PLAIN, NULL},
    {CALL, NULL, NULL, 0, PLAIN, tv_nvml_pci},
    {OPEN, "pci_gpu_link_info", NULL, 0, PLAIN, NULL},
    {OPEN, "pcie_gen", NULL, 0, PLAIN, NULL},
    {COUNT, "max_link_gen", "nvmlDeviceGetMaxPcieLinkGeneration", 0, PLAIN, NULL},
    {COUNT, "current_link_gen", "nvmlDeviceGetCurrPcieLinkGeneration", 0, PLAIN, NULL},
    {COUNT, "max_device_link_gen", "nvmlDeviceGetGpuMaxPcieLinkGeneration", 0, PLAIN, NULL},
    {CLOSE, "pcie_gen", NULL, 0, PLAIN, NULL},
    {OPEN, "link_widths", NULL, 0, PLAIN, NULL},
    {COUNT, "max_link_width", "nvmlDeviceGetMaxPcieLinkWidth", 0, LANES, NULL},
    {COUNT, "current_link_width", "nvmlDeviceGetCurrPcieLinkWidth", 0, LANES, NULL},
    {CLOSE, "link_widths", NULL, 0, PLAIN, NULL},
    {CLOSE, "pci_gpu_link_info", NULL, 0, PLAIN, NULL},
    {COUNT, "replay_counter", "nvmlDeviceGetPcieReplayCounter", 0, PLAIN, NULL},
    {FIELD, "replay_rollover_counter", NULL, 95, PLAIN, NULL},
    {CLOSE, "pci", NULL, 0, PLAIN, NULL},
    {COUNT, "fan_speed", "nvmlDeviceGetFanSpeed", 0, PERCENT, NULL},
    {COUNT, "performance_state", "nvmlDeviceGetPerformanceState|nvmlDeviceGetPowerState", 0, PSTATE,
     NULL},
    {OPEN, "clocks_event_reasons", NULL, 0, PLAIN, NULL},
    {BIT, "clocks_event_reason_gpu_idle", NULL, 0x1, ACTIVE, NULL},
    {BIT, "clocks_event_reason_applications_clocks_setting", NULL, 0x2, ACTIVE, NULL},
    {BIT, "clocks_event_reason_sw_power_cap", NULL, 0x4, ACTIVE, NULL},
    {BIT, "clocks_event_reason_hw_slowdown", NULL, 0x8, ACTIVE, NULL},
    {BIT, "clocks_event_reason_hw_thermal_slowdown", NULL, 0x40, ACTIVE, NULL},
    {BIT, "clocks_event_reason_hw_power_brake_slowdown", NULL, 0x80, ACTIVE, NULL},
    {BIT, "clocks_event_reason_sync_boost", NULL, 0x10, ACTIVE, NULL},
    {BIT, "clocks_event_reason_sw_thermal_slowdown", NULL, 0x20, ACTIVE, NULL},
    {BIT, "clocks_event_reason_display_clocks_setting", NULL, 0x100, ACTIVE, NULL},
    {CLOSE, "clocks_event_reasons", NULL, 0, PLAIN, NULL},
    {CALL, NULL, NULL, 0, PLAIN, tv_nvml_memory},
    {COUNT, "compute_mode", "nvmlDeviceGetComputeMode", 0, COMPUTE_MODE, NULL},
    {CALL, NULL, NULL, 0, PLAIN, tv_nvml_utilization},
    {OPEN, "ecc_mode", NULL, 0, PLAIN, NULL},
    {COUNT, "current_ecc", "nvmlDeviceGetEccMode", 2, ENABLED, NULL},
    {SECOND, "pending_ecc", "nvmlDeviceGetEccMode", 0, ENABLED, NULL},
    {CLOSE, "ecc_mode", NULL, 0, PLAIN, NULL},
    {OPEN, "ecc_errors", NULL, 0, PLAIN, NULL},
    {OPEN, "volatile", NULL, 0, PLAIN, NULL},
    {ERRORS, "sram_correctable", ECC, ERRORS_OF(CORRECTED, VOLATILE, SRAM), PLAIN, NULL},
    {ERRORS, "sram_uncorrectable", ECC, ERRORS_OF(UNCORRECTED, VOLATILE, SRAM), PLAIN, NULL},
    {ERRORS, "dram_correctable", ECC, ERRORS_OF(CORRECTED, VOLATILE, DRAM), PLAIN, NULL},
    {ERRORS, "dram_uncorrectable", ECC, ERRORS_OF(UNCORRECTED, VOLATILE, DRAM), PLAIN, NULL},
    {CLOSE, "volatile", NULL, 0, PLAIN, NULL},
    {OPEN, "aggregate", NULL, 0, PLAIN, NULL},
    {ERRORS, "sram_correctable", ECC, ERRORS_OF(CORRECTED, AGGREGATE, SRAM), PLAIN, NULL},
    {ERRORS, "sram_uncorrectable", ECC, ERRORS_OF(UNCORRECTED, AGGREGATE, SRAM), PLAIN, NULL},
    {ERRORS, "dram_correctable", ECC, ERRORS_OF(CORRECTED, AGGREGATE, DRAM), PLAIN, NULL},
    {ERRORS, "dram_uncorrectable", ECC, ERRORS_OF(UNCORRECTED, AGGREGATE, DRAM), PLAIN, NULL},
    {CLOSE, "aggregate", NULL, 0, PLAIN, NULL},
    {CLOSE, "ecc_errors", NULL, 0, PLAIN, NULL},
    {CALL, NULL, NULL, 0, PLAIN, tv_nvml_retired},
    {CALL, NULL, NULL, 0, PLAIN, tv_nvml_remapped},
    {OPEN, "temperature", NULL, 0, PLAIN, NULL},
    {COUNT_OF, "gpu_temp", "nvmlDeviceGetTemperature", 0, CELSIUS, NULL},
    {CALL, NULL, NULL, 0, PLAIN, tv_nvml_margin},
    {COUNT_OF, "gpu_temp_max_threshold", TEMPERATURE, SHUTDOWN, CELSIUS, NULL},
    {COUNT_OF, "gpu_temp_slow_threshold", TEMPERATURE, SLOWDOWN, CELSIUS, NULL},
    {COUNT_OF, "gpu_temp_max_gpu_threshold", TEMPERATURE, GPU_MAX, CELSIUS, NULL},
    {FIELD, "gpu_temp_max_tlimit_threshold", NULL, 193, CELSIUS, NULL},
    {FIELD, "gpu_temp_slow_tlimit_threshold", NULL, 194, CELSIUS, NULL},
    {FIELD, "gpu_temp_max_gpu_tlimit_threshold", NULL, 196, CELSIUS, NULL},
    {FIELD, "memory_temp", NULL, 82, CELSIUS, NULL},
    {COUNT_OF, "gpu_temp_max_mem_threshold", TEMPERATURE, MEMORY_MAX, CELSIUS, NULL},
    {FIELD, "gpu_temp_max_mem_tlimit_threshold", NULL, 195, CELSIUS, NULL},
    {CLOSE, "temperature", NULL, 0, PLAIN, NULL},
    {OPEN, "gpu_power_readings", NULL, 0, PLAIN, NULL},
    {COUNT, "power_draw", "nvmlDeviceGetPowerUsage", 0, WATTS, NULL},
    {FIELD, "instant_power_draw", NULL, 186, WATTS, NULL},
    {COUNT, "current_power_limit", "nvmlDeviceGetEnforcedPowerLimit", 0, WATTS, NULL},
    {COUNT, "requested_power_limit", "nvmlDeviceGetPowerManagementLimit", 0, WATTS, NULL},
    {COUNT, "default_power_limit", "nvmlDeviceGetPowerManagementDefaultLimit", 0, WATTS, NULL},
    {COUNT, "min_power_limit", "nvmlDeviceGetPowerManagementLimitConstraints", 2, WATTS, NULL},
    {SECOND, "max_power_limit", "nvmlDeviceGetPowerManagementLimitConstraints", 0, WATTS, NULL},
    {CLOSE, "gpu_power_readings", NULL, 0, PLAIN, NULL},
    {OPEN, "clocks", NULL, 0, PLAIN, NULL},
    {COUNT_OF, "graphics_clock", "nvmlDeviceGetClockInfo", GRAPHICS, MEGAHERTZ, NULL},
    {COUNT_OF, "sm_clock", "nvmlDeviceGetClockInfo", SM, MEGAHERTZ, NULL},
    {COUNT_OF, "mem_clock", "nvmlDeviceGetClockInfo", MEMORY, MEGAHERTZ, NULL},
    {COUNT_OF, "video_clock", "nvmlDeviceGetClockInfo", VIDEO, MEGAHERTZ, NULL},
    {CLOSE, "clocks", NULL, 0, PLAIN, NULL},
    {OPEN, "applications_clocks", NULL, 0, PLAIN, NULL},
    {COUNT_OF, "graphics_clock", "nvmlDeviceGetApplicationsClock", GRAPHICS, MEGAHERTZ, NULL},
    {COUNT_OF, "mem_clock", "nvmlDeviceGetApplicationsClock", MEMORY, MEGAHERTZ, NULL},
    {CLOSE, "applications_clocks", NULL, 0, PLAIN, NULL},
    {OPEN, "default_applications_clocks", NULL, 0, PLAIN, NULL},
    {COUNT_OF, "graphics_clock", "nvmlDeviceGetDefaultApplicationsClock", GRAPHICS, MEGAHERTZ,
     NULL},
    {COUNT_OF, "mem_clock", "nvmlDeviceGetDefaultApplicationsClock", MEMORY, MEGAHERTZ, NULL},
    {CLOSE, "default_applications_clocks", NULL, 0, PLAIN, NULL},
    {OPEN, "max_clocks", NULL, 0, PLAIN, NULL},
    {COUNT_OF, "graphics_clock", "nvmlDeviceGetMaxClockInfo", GRAPHICS, MEGAHERTZ, NULL},
    {COUNT_OF, "sm_clock", "nvmlDeviceGetMaxClockInfo", SM, MEGAHERTZ, NULL},
    {COUNT_OF, "mem_clock", "nvmlDeviceGetMaxClockInfo", MEMORY, MEGAHERTZ, NULL},
    {CLOSE, "max_clocks", NULL, 0, PLAIN, NULL},
    {CALL, NULL, NULL, 0, PLAIN, tv_nvml_fabric},
    {CALL, NULL, NULL, 0, PLAIN, tv_nvml_processes},
};

/* ---- values as nvidia-smi prints them ---- */

static void put_watts(tv_buf *b, double milliwatts)
{
    tv_put_fixed(b, milliwatts / 1000, 2);
    tv_puts(b, " W");
}

static const char *one_of(const char *const *words, size_t n, double v)
{
    return v >= 0 && v < (double)n ? words[(size_t)v] : "Unknown";
}

static void put_value(tv_buf *b, form as, double v)
{
    static const char *const enabled[] = {"Disabled", "Enabled"};
    static const char *const active[] = {"Not Active", "Active"};
    static const char *const modes[] = {"Default", "Exclusive_Thread", "Prohibited",
                                        "Exclusive_Process"};
    switch (as) {
    case PLAIN:
        tv_put_double(b, v);
        return;
    case ENABLED:
        tv_puts(b, one_of(enabled, 2, v));
        return;
    case ACTIVE:
        tv_puts(b, one_of(active, 2, v));
        return;
    case COMPUTE_MODE: /* always by name: the numbers differ between generations of tools */
        tv_puts(b, one_of(modes, 4, v));
        return;
    case WATTS:
        put_watts(b, v);
        return;
    case PSTATE:
        tv_puts(b, v >= 0 && v < 16 ? "P" : "Unknown");
        if (v >= 0 && v < 16)
            tv_put_double(b, v);
        return;
    case CELSIUS:
    case MEGAHERTZ:
    case PERCENT:
    case LANES:
        tv_put_double(b, v);
        tv_puts(b, as == CELSIUS ? " C" : as == MEGAHERTZ ? " MHz" : as == PERCENT ? " %" : "x");
        return;
    }
}

/* ---- calls ---- */

typedef struct answer {
    int status;
    double v;
} answer;

static answer ask(const tv_nvml *n, tv_nvml_handle device, const row *r)
{
    const tv_nvml_call call = tv_nvml_find(n, r->names);
    unsigned first = 0, second = 0;
    unsigned long long wide = 0;
    if (!call.symbol)
        return (answer){TV_NVML_MISSING, 0};
    switch (r->asked) {
    case COUNT:
        if (r->of == 2) {
            const int status = call.count2(device, &first, &second);
            return (answer){status, first};
        } else {
            const int status = call.count(device, &first);
            return (answer){status, first};
        }
    case SECOND: {
        const int status = call.count2(device, &first, &second);
        return (answer){status, second};
    }
    case WIDE: {
        const int status = call.wide(device, &wide);
        return (answer){status, (double)wide};
    }
    case COUNT_OF: {
        const int status = call.count_of(device, r->of, &first);
        return (answer){status, first};
    }
    case ERRORS: {
        const int status = call.errors(device, r->of >> 16, r->of >> 8 & 255, r->of & 255, &wide);
        return (answer){status, (double)wide};
    }
    case OPEN:
    case CLOSE:
    case TEXT:
    case FIELD:
    case BIT:
    case CALL:
        break;
    }
    return (answer){TV_NVML_MISSING, 0};
}

static answer ask_mask(const tv_nvml *n, tv_nvml_handle device, const row *r)
{
    const row mask = {WIDE,
                      NULL,
                      "nvmlDeviceGetCurrentClocksEventReasons|"
                      "nvmlDeviceGetCurrentClocksThrottleReasons",
                      0,
                      PLAIN,
                      NULL};
    const answer whole = ask(n, device, &mask);
    return (answer){whole.status, ((unsigned long long)whole.v & r->of) != 0};
}

static void put_row(const tv_nvml *n, tv_nvml_handle device, tv_buf *b, const row *r, bool *lost)
{
    char text[256] = "";
    answer got = {0};
    tv_buf value = tv_buf_in(n->a);
    if (r->asked == TEXT) {
        const tv_nvml_call call = tv_nvml_find(n, r->names);
        got.status = call.symbol ? call.text(device, text, sizeof text - 1) : TV_NVML_MISSING;
        tv_puts(&value, text);
    } else {
        got = r->asked == FIELD ? (answer){tv_nvml_field(n, device, r->of, &got.v), got.v}
              : r->asked == BIT ? ask_mask(n, device, r)
                                : ask(n, device, r);
        put_value(&value, r->as, got.v);
    }
    *lost = *lost || got.status == TV_NVML_GPU_IS_LOST;
    if (got.status == TV_NVML_GPU_IS_LOST) /* told once, beside the document */
        got.status = TV_NVML_NOT_SUPPORTED;
    tv_nvml_element(b, r->tag,
                    got.status ? tv_str_of(tv_nvml_words(got.status)) : tv_buf_str(&value));
}

void tv_nvml_element(tv_buf *b, const char *tag, tv_str text)
{
    tv_putc(b, '<');
    tv_puts(b, tag);
    tv_putc(b, '>');
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '<')
            tv_puts(b, "&lt;");
        else if (text.p[i] == '>')
            tv_puts(b, "&gt;");
        else if (text.p[i] == '&')
            tv_puts(b, "&amp;");
        else if ((unsigned char)text.p[i] >= 32)
            tv_putc(b, text.p[i]);
    tv_puts(b, "</");
    tv_puts(b, tag);
    tv_puts(b, ">\n");
}

void tv_nvml_gpu(const tv_nvml *n, tv_nvml_handle device, tv_buf *b, bool *lost)
{
    tv_puts(b, "<gpu id=\"");
    tv_put(b, tv_nvml_bus(n, device));
    tv_puts(b, "\">\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        if (r->asked == CALL) {
            r->call(n, device, b);
        } else if (r->asked == OPEN || r->asked == CLOSE) {
            tv_puts(b, r->asked == OPEN ? "<" : "</");
            tv_puts(b, r->tag);
            tv_puts(b, ">\n");
        } else {
            put_row(n, device, b, r, lost);
        }
    }
    tv_puts(b, "</gpu>\n");
}
