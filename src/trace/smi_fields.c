/* The spellings of every field through the drivers' eras: text and XML have different keys, some
 * renamed by later drivers, and queries have names of their own. */
#include "smi_parts.h"

#include <string.h>

#define POWER "power_readings|gpu_power_readings"
#define EVENTS "clocks_throttle_reasons|clocks_event_reasons"
#define COUNTERS "clocks_event_reasons_counters"
#define PAGES "retired_pages"

static const tv_smi_field fields[] = {
    /* who it is */
    {"", "product_name", "name|gpu_name", "name", TV_SMI_WORD},
    {"", "product_brand", "", "brand", TV_SMI_WORD},
    {"", "product_architecture", "", "architecture", TV_SMI_WORD},
    {"", "gpu_uuid|uuid", "uuid|gpu_uuid", "uuid", TV_SMI_WORD},
    {"", "serial_number|serial", "serial|gpu_serial", "serial", TV_SMI_WORD},
    {"", "minor_number", "", "minor", TV_SMI_NUMBER},
    {"", "", "index", "index", TV_SMI_NUMBER},
    {"", "", "count", "count", TV_SMI_NUMBER},
    {"", "", "driver_version", "driver", TV_SMI_WORD},
    {"", "", "timestamp", "time", TV_SMI_WORD},
    {"", "", "compute_cap", "compute_cap", TV_SMI_WORD},
    {"", "vbios_version", "vbios_version", "vbios", TV_SMI_WORD},
    {"pci", "bus_id|pci_bus_id", "pci.bus_id|gpu_bus_id", "bus", TV_SMI_WORD},
    {"", "gsp_firmware_version", "gsp.version", "gsp_firmware", TV_SMI_WORD},
    /* how it is set */
    {"", "display_active", "display_active", "disp", TV_SMI_SWITCH},
    {"", "persistence_mode", "persistence_mode", "persistence", TV_SMI_SWITCH},
    {"", "accounting_mode", "accounting.mode", "accounting", TV_SMI_SWITCH},
    {"", "compute_mode", "compute_mode", "compute_mode", TV_SMI_WORD},
    {"mig_mode", "current|current_mig", "mig.mode.current", "mig", TV_SMI_TEXT},
    {"mig_mode", "pending|pending_mig", "mig.mode.pending", "mig_next", TV_SMI_TEXT},
    {"driver_model", "current|current_dm", "driver_model.current", "driver_model", TV_SMI_WORD},
    {"ecc_mode", "current|current_ecc", "ecc.mode.current", "ecc_mode", TV_SMI_WORD},
    {"ecc_mode", "pending|pending_ecc", "ecc.mode.pending", "ecc_mode_next", TV_SMI_WORD},
    {"gpu_reset_status", "reset_required", "reset_status.reset_required", "reset_required",
     TV_SMI_YES},
    {"", "gpu_recovery_action", "gpu_recovery_action", "recovery_action", TV_SMI_TEXT},
    {"gpu_virtualization_mode", "virtualization_mode", "", "virtualization", TV_SMI_WORD},
    /* the bus */
    {"pcie_generation|pcie_gen", "max|max_link_gen", "pcie.link.gen.max", "link_gen_max",
     TV_SMI_NUMBER},
    {"pcie_generation|pcie_gen", "current|current_link_gen",
     "pcie.link.gen.current|pcie.link.gen.gpucurrent", "link_gen", TV_SMI_NUMBER},
    {"pcie_generation|pcie_gen", "device_max|max_device_link_gen", "pcie.link.gen.gpumax",
     "link_gen_device_max", TV_SMI_NUMBER},
    {"pcie_generation|pcie_gen", "host_max|max_host_link_gen", "pcie.link.gen.hostmax",
     "link_gen_host_max", TV_SMI_NUMBER},
    {"link_width|link_widths", "max|max_link_width", "pcie.link.width.max", "link_width_max",
     TV_SMI_NUMBER},
    {"link_width|link_widths", "current|current_link_width", "pcie.link.width.current",
     "link_width", TV_SMI_NUMBER},
    {"", "replays_since_reset|replay_counter", "", "replays", TV_SMI_NUMBER},
    {"", "replay_number_rollovers|replay_rollover_counter", "", "replay_rollovers", TV_SMI_NUMBER},
    {"", "tx_throughput|tx_util", "", "tx_bytes_per_s", TV_SMI_RATE},
    {"", "rx_throughput|rx_util", "", "rx_bytes_per_s", TV_SMI_RATE},
    /* how it is doing */
    {"", "fan_speed", "fan.speed", "fan_frac", TV_SMI_SHARE},
    {"", "performance_state", "pstate", "perf", TV_SMI_WORD},
    {"utilization", "gpu|gpu_util", "utilization.gpu", "util_frac", TV_SMI_SHARE},
    {"utilization", "memory|memory_util", "utilization.memory", "mem_util_frac", TV_SMI_SHARE},
    {"utilization", "encoder|encoder_util", "utilization.encoder", "enc_frac", TV_SMI_SHARE},
    {"utilization", "decoder|decoder_util", "utilization.decoder", "dec_frac", TV_SMI_SHARE},
    {"fb_memory_usage|memory_usage", "total", "memory.total", "total_bytes", TV_SMI_BYTES},
    {"fb_memory_usage|memory_usage", "used", "memory.used", "used_bytes", TV_SMI_BYTES},
    {"fb_memory_usage|memory_usage", "free", "memory.free", "free_bytes", TV_SMI_BYTES},
    {"fb_memory_usage|memory_usage", "reserved", "memory.reserved", "reserved_bytes", TV_SMI_BYTES},
    {"bar1_memory_usage", "total", "", "bar1_total_bytes", TV_SMI_BYTES},
    {"bar1_memory_usage", "used", "", "bar1_used_bytes", TV_SMI_BYTES},
    /* heat */
    {"", "gpu_current_temp|gpu_temp", "temperature.gpu", "temp_c", TV_SMI_NUMBER},
    {"temperature", "gpu", "", "temp_c", TV_SMI_NUMBER},
    {"", "gpu_t_limit_temp|gpu_current_t_limit_temp|gpu_temp_tlimit", "temperature.gpu.tlimit",
     "tlimit_c", TV_SMI_NUMBER},
    {"", "gpu_shutdown_temp|gpu_temp_max_threshold", "", "shutdown_c", TV_SMI_NUMBER},
    {"", "gpu_slowdown_temp|gpu_temp_slow_threshold", "", "slowdown_c", TV_SMI_NUMBER},
    {"", "gpu_max_operating_temp|gpu_temp_max_gpu_threshold", "", "max_op_c", TV_SMI_NUMBER},
    {"", "gpu_target_temperature|gpu_target_temperature_specification", "", "target_c",
     TV_SMI_NUMBER},
    {"", "gpu_shutdown_t_limit_temp|gpu_temp_max_tlimit_threshold", "", "shutdown_tlimit_c",
     TV_SMI_NUMBER},
    {"", "gpu_slowdown_t_limit_temp|gpu_temp_slow_tlimit_threshold", "", "slowdown_tlimit_c",
     TV_SMI_NUMBER},
    {"", "gpu_max_operating_t_limit_temp|gpu_temp_max_gpu_tlimit_threshold", "", "max_op_tlimit_c",
     TV_SMI_NUMBER},
    {"", "memory_current_temp|memory_temp", "temperature.memory", "mem_temp_c", TV_SMI_NUMBER},
    {"", "memory_max_operating_temp|gpu_temp_max_mem_threshold", "", "mem_max_op_c", TV_SMI_NUMBER},
    {"", "memory_max_operating_t_limit_temp|gpu_temp_max_mem_tlimit_threshold", "",
     "mem_max_op_tlimit_c", TV_SMI_NUMBER},
    /* power */
    {POWER, "power_draw", "power.draw", "power_w", TV_SMI_NUMBER},
    {POWER, "average_power_draw", "power.draw.average", "average_power_w", TV_SMI_NUMBER},
    {POWER, "instantaneous_power_draw|instant_power_draw", "power.draw.instant", "instant_power_w",
     TV_SMI_NUMBER},
    {POWER, "power_limit|current_power_limit", "power.limit", "limit_w", TV_SMI_NUMBER},
    {POWER, "requested_power_limit", "", "requested_w", TV_SMI_NUMBER},
    {POWER, "default_power_limit", "power.default_limit", "default_w", TV_SMI_NUMBER},
    {POWER, "enforced_power_limit", "enforced.power.limit", "enforced_w", TV_SMI_NUMBER},
    {POWER, "min_power_limit", "power.min_limit", "min_w", TV_SMI_NUMBER},
    {POWER, "max_power_limit", "power.max_limit", "max_w", TV_SMI_NUMBER},
    {"module_power_readings", "power_draw|instantaneous_power_draw", "module.power.draw.instant",
     "module_power_w", TV_SMI_NUMBER},
    {"module_power_readings", "current_power_limit", "module.power.limit", "module_limit_w",
     TV_SMI_NUMBER},
    /* clocks */
    {"clocks", "graphics|graphics_clock", "clocks.gr|clocks.current.graphics", "graphics_mhz",
     TV_SMI_NUMBER},
    {"clocks", "sm|sm_clock", "clocks.sm|clocks.current.sm", "sm_mhz", TV_SMI_NUMBER},
    {"clocks", "memory|mem_clock", "clocks.mem|clocks.current.memory", "mem_mhz", TV_SMI_NUMBER},
    {"clocks", "video|video_clock", "clocks.video|clocks.current.video", "video_mhz",
     TV_SMI_NUMBER},
    {"max_clocks", "graphics|graphics_clock", "clocks.max.gr|clocks.max.graphics",
     "max_graphics_mhz", TV_SMI_NUMBER},
    {"max_clocks", "sm|sm_clock", "clocks.max.sm", "max_sm_mhz", TV_SMI_NUMBER},
    {"max_clocks", "memory|mem_clock", "clocks.max.mem|clocks.max.memory", "max_mem_mhz",
     TV_SMI_NUMBER},
    {"applications_clocks", "graphics|graphics_clock",
     "clocks.applications.gr|clocks.applications.graphics", "app_graphics_mhz", TV_SMI_NUMBER},
    {"applications_clocks", "memory|mem_clock",
     "clocks.applications.mem|clocks.applications.memory", "app_mem_mhz", TV_SMI_NUMBER},
    {"default_applications_clocks", "graphics|graphics_clock",
     "clocks.default_applications.gr|clocks.default_applications.graphics",
     "default_app_graphics_mhz", TV_SMI_NUMBER},
    {"max_customer_boost_clocks", "graphics|graphics_clock", "", "boost_graphics_mhz",
     TV_SMI_NUMBER},
    /* why it is slow */
    {"", "", "clocks_event_reasons.active", "reasons", TV_SMI_MASK},
    {EVENTS, "idle|gpu_idle", "clocks_event_reasons.gpu_idle", "reasons.idle", TV_SMI_YES},
    {EVENTS, "applications_clocks_setting", "clocks_event_reasons.applications_clocks_setting",
     "reasons.app_clocks", TV_SMI_YES},
    {EVENTS, "sw_power_cap", "clocks_event_reasons.sw_power_cap", "reasons.sw_power_cap",
     TV_SMI_YES},
    {EVENTS, "hw_slowdown", "clocks_event_reasons.hw_slowdown", "reasons.hw_slowdown", TV_SMI_YES},
    {EVENTS, "hw_thermal_slowdown", "clocks_event_reasons.hw_thermal_slowdown",
     "reasons.hw_thermal", TV_SMI_YES},
    {EVENTS, "hw_power_brake_slowdown", "clocks_event_reasons.hw_power_brake_slowdown",
     "reasons.hw_power_brake", TV_SMI_YES},
    {EVENTS, "sync_boost", "clocks_event_reasons.sync_boost", "reasons.sync_boost", TV_SMI_YES},
    {EVENTS, "sw_thermal_slowdown", "clocks_event_reasons.sw_thermal_slowdown",
     "reasons.sw_thermal", TV_SMI_YES},
    {EVENTS, "display_clock_setting|display_clocks_setting", "", "reasons.display", TV_SMI_YES},
    {COUNTERS, "sw_power_capping|clocks_event_reasons_counters_sw_power_cap",
     "clocks_event_reasons_counters.sw_power_cap", "counters.sw_power_cap_s", TV_SMI_MICROS},
    {COUNTERS, "sync_boost|clocks_event_reasons_counters_sync_boost",
     "clocks_event_reasons_counters.sync_boost", "counters.sync_boost_s", TV_SMI_MICROS},
    {COUNTERS, "sw_thermal_slowdown|clocks_event_reasons_counters_sw_therm_slowdown",
     "clocks_event_reasons_counters.sw_thermal_slowdown", "counters.sw_thermal_s", TV_SMI_MICROS},
    {COUNTERS, "hw_thermal_slowdown|clocks_event_reasons_counters_hw_therm_slowdown",
     "clocks_event_reasons_counters.hw_thermal_slowdown", "counters.hw_thermal_s", TV_SMI_MICROS},
    {COUNTERS, "hw_power_braking|clocks_event_reasons_counters_hw_power_brake",
     "clocks_event_reasons_counters.hw_power_brake_slowdown", "counters.hw_power_brake_s",
     TV_SMI_MICROS},
    /* memory errors, Ampere and later */
    {"volatile", "sram_correctable", "ecc.errors.corrected.volatile.sram", "sram_corr_volatile",
     TV_SMI_NUMBER},
    {"volatile", "sram_uncorrectable", "ecc.errors.uncorrected.volatile.sram",
     "sram_uncorr_volatile", TV_SMI_NUMBER},
    {"volatile", "sram_uncorrectable_parity", "", "sram_uncorr_parity_volatile", TV_SMI_NUMBER},
    {"volatile", "sram_uncorrectable_sec_ded|sram_uncorrectable_secded", "",
     "sram_uncorr_secded_volatile", TV_SMI_NUMBER},
    {"volatile", "dram_correctable", "ecc.errors.corrected.volatile.dram", "dram_corr_volatile",
     TV_SMI_NUMBER},
    {"volatile", "dram_uncorrectable", "ecc.errors.uncorrected.volatile.dram",
     "dram_uncorr_volatile", TV_SMI_NUMBER},
    {"aggregate", "sram_correctable", "ecc.errors.corrected.aggregate.sram", "sram_corr_aggregate",
     TV_SMI_NUMBER},
    {"aggregate", "sram_uncorrectable", "ecc.errors.uncorrected.aggregate.sram",
     "sram_uncorr_aggregate", TV_SMI_NUMBER},
    {"aggregate", "sram_uncorrectable_parity", "", "sram_uncorr_parity_aggregate", TV_SMI_NUMBER},
    {"aggregate", "sram_uncorrectable_sec_ded|sram_uncorrectable_secded", "",
     "sram_uncorr_secded_aggregate", TV_SMI_NUMBER},
    {"aggregate", "dram_correctable", "ecc.errors.corrected.aggregate.dram", "dram_corr_aggregate",
     TV_SMI_NUMBER},
    {"aggregate", "dram_uncorrectable", "ecc.errors.uncorrected.aggregate.dram",
     "dram_uncorr_aggregate", TV_SMI_NUMBER},
    {"aggregate", "sram_threshold_exceeded", "", "sram_threshold_exceeded", TV_SMI_YES},
    {"", "channel_repair_pending", "", "channel_repair_pending", TV_SMI_YES},
    {"", "tpc_repair_pending", "", "tpc_repair_pending", TV_SMI_YES},
    {"", "unrepairable_memory", "", "unrepairable_memory", TV_SMI_YES},
    /* memory errors, up to Volta */
    {"volatile_single_bit", "total", "ecc.errors.corrected.volatile.total", "single_bit_volatile",
     TV_SMI_NUMBER},
    {"volatile_double_bit", "total", "ecc.errors.uncorrected.volatile.total", "double_bit_volatile",
     TV_SMI_NUMBER},
    {"aggregate_single_bit", "total", "ecc.errors.corrected.aggregate.total",
     "single_bit_aggregate", TV_SMI_NUMBER},
    {"aggregate_double_bit", "total", "ecc.errors.uncorrected.aggregate.total",
     "double_bit_aggregate", TV_SMI_NUMBER},
    {"volatile_double_bit", "device_memory", "ecc.errors.uncorrected.volatile.device_memory",
     "device_double_bit_volatile", TV_SMI_NUMBER},
    {"volatile_single_bit", "device_memory", "ecc.errors.corrected.volatile.device_memory",
     "device_single_bit_volatile", TV_SMI_NUMBER},
    {"aggregate_double_bit", "device_memory", "ecc.errors.uncorrected.aggregate.device_memory",
     "device_double_bit_aggregate", TV_SMI_NUMBER},
    {PAGES, "single_bit_ecc", "retired_pages.single_bit_ecc.count|retired_pages.sbe",
     "retired_single", TV_SMI_NUMBER},
    {PAGES, "double_bit_ecc", "retired_pages.double_bit.count|retired_pages.dbe", "retired_double",
     TV_SMI_NUMBER},
    {PAGES, "pending_page_blacklist|pending|pending_retirement|pending_blacklist",
     "retired_pages.pending", "retired_pending", TV_SMI_YES},
    {"multiple_single_bit_retirement", "retired_count", "", "retired_single", TV_SMI_NUMBER},
    {"double_bit_retirement", "retired_count", "", "retired_double", TV_SMI_NUMBER},
    {"remapped_rows", "correctable_error|remapped_row_corr", "remapped_rows.correctable",
     "remap_corr", TV_SMI_NUMBER},
    {"remapped_rows", "uncorrectable_error|remapped_row_unc", "remapped_rows.uncorrectable",
     "remap_uncorr", TV_SMI_NUMBER},
    {"remapped_rows", "pending|remapped_row_pending", "remapped_rows.pending", "remap_pending",
     TV_SMI_YES},
    {"remapped_rows", "remapping_failure_occurred|remapped_row_failure", "remapped_rows.failure",
     "remap_failure", TV_SMI_YES},
    {"bank_remap_availability_histogram|row_remapper_histogram", "max|row_remapper_histogram_max",
     "remapped_rows.histogram.max", "banks.Max", TV_SMI_NUMBER},
    {"bank_remap_availability_histogram|row_remapper_histogram", "high|row_remapper_histogram_high",
     "remapped_rows.histogram.high", "banks.High", TV_SMI_NUMBER},
    {"bank_remap_availability_histogram|row_remapper_histogram",
     "partial|row_remapper_histogram_partial", "remapped_rows.histogram.partial", "banks.Partial",
     TV_SMI_NUMBER},
    {"bank_remap_availability_histogram|row_remapper_histogram", "low|row_remapper_histogram_low",
     "remapped_rows.histogram.low", "banks.Low", TV_SMI_NUMBER},
    {"bank_remap_availability_histogram|row_remapper_histogram", "none|row_remapper_histogram_none",
     "remapped_rows.histogram.none", "banks.None", TV_SMI_NUMBER},
    {"fabric", "state", "fabric.state", "fabric_state", TV_SMI_WORD},
    {"fabric", "status", "fabric.status", "fabric_status", TV_SMI_WORD},
};

bool tv_smi_among(const char *list, tv_str word)
{
    while (*list) {
        const char *bar = strchr(list, '|');
        const size_t n = bar ? (size_t)(bar - list) : strlen(list);
        if (n == word.n && memcmp(list, word.p, n) == 0)
            return true;
        list += bar ? n + 1 : n;
    }
    return false;
}

tv_str tv_smi_slug(tv_str text, char buffer[TV_SMI_SLUG])
{
    size_t n = 0;
    for (size_t i = 0; i < text.n && n + 1 < TV_SMI_SLUG; i++) {
        const char c = text.p[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (letter)
            buffer[n++] = c;
        else if (c >= 'A' && c <= 'Z')
            buffer[n++] = (char)(c | 32);
        else if (n && buffer[n - 1] != '_')
            buffer[n++] = '_';
    }
    while (n && buffer[n - 1] == '_')
        n--;
    return (tv_str){buffer, n};
}

/* "clocks_throttle_reason_sw_power_cap" of the XML is "sw_power_cap" of the text. */
static tv_str without_prefix(tv_str key)
{
    static const char *const prefixes[] = {"clocks_throttle_reason_", "clocks_event_reason_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (tv_str_starts(key, tv_str_of(prefixes[i])))
            return tv_str_drop(key, strlen(prefixes[i]));
    return key;
}

const tv_smi_field *tv_smi_field_of(tv_str section, tv_str key)
{
    if (!key.n)
        return NULL;
    key = without_prefix(key);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (tv_smi_among(fields[i].keys, key) &&
            (!*fields[i].sections || tv_smi_among(fields[i].sections, section)))
            return &fields[i];
    return NULL;
}

const tv_smi_field *tv_smi_query_field(tv_str name)
{
    char buffer[96] = "clocks_event_reasons";
    static const char old[] = "clocks_throttle_reasons";
    if (tv_str_starts(name, TV_S("clocks_throttle_reasons")) && name.n < sizeof buffer) {
        const tv_str rest = tv_str_drop(name, sizeof old - 1);
        const size_t begin = strlen(buffer);
        memcpy(buffer + begin, rest.p, rest.n);
        name = (tv_str){buffer, begin + rest.n};
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (name.n && tv_smi_among(fields[i].queries, name))
            return &fields[i];
    return NULL;
}
