/* What the readers of nvidia-smi, dmon, ipmitool and Prometheus find: every layout, era and
 * wording, whole, cut, and with what loggers and pages put around it. A case is a text and facts as
 * JSON. */
#include "pasted.h"

/* ---- the table ---- */

#define HEAD_A                                                                                     \
    "+------------------------------------------------------+\n"                                   \
    "| NVIDIA-SMI 331.62     Driver Version: 331.62         |\n"                                   \
    "|-------------------------------+----------------------+----------------------+\n"            \
    "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"            \
    "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |\n"            \
    "|===============================+======================+======================|\n"
#define HEAD_C                                                                                     \
    "+-----------------------------------------------------------------------------+\n"            \
    "| NVIDIA-SMI 470.103.01   Driver Version: 470.103.01   CUDA Version: 11.4     |\n"            \
    "|-------------------------------+----------------------+----------------------+\n"            \
    "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"            \
    "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |\n"            \
    "|                               |                      |               MIG M. |\n"            \
    "|===============================+======================+======================|\n"
#define ROWS_C                                                                                     \
    "|   0  NVIDIA A100-SXM...  On   | 00000000:07:00.0 Off |                    0 |\n"            \
    "| N/A   61C    P0   398W / 400W |  70110MiB / 81251MiB |    100%   E. Process |\n"            \
    "|                               |                      |             Enabled* |\n"            \
    "+-------------------------------+----------------------+----------------------+\n"            \
    "|   1  NVIDIA A100-SXM...  On   | 00000000:0F:00.0 Off |                    2 |\n"            \
    "|ERR!  ERR!  ERR!   ERR! / 400W |      3MiB / 81251MiB |     ERR!      Default|\n"            \
    "|                               |                      |             Disabled |\n"            \
    "+-------------------------------+----------------------+----------------------+\n"
#define HEAD_F                                                                                     \
    "+-----------------------------------------------------------------------------------------+"  \
    "\n"                                                                                           \
    "| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     "   \
    "|\n"                                                                                          \
    "+-----------------------------------------+------------------------+----------------------+"  \
    "\n"                                                                                           \
    "| GPU  Name                  Driver-Model | Bus-Id          Disp.A | Volatile Uncorr. ECC "   \
    "|\n"                                                                                          \
    "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. "   \
    "|\n"                                                                                          \
    "|                                         |                        |               MIG M. "   \
    "|\n"                                                                                          \
    "|=========================================+========================+======================|"  \
    "\n"

static const case_row tables[] = {
    {"one line of digits for MB, no type of process, drivers before 340",
     HEAD_A "|   0  Tesla K20m          Off  | 0000:02:00.0     Off |                    0 |\n"
            "| N/A   31C    P0    47W / 225W |     11MB /  4799MB |      0%      Default |\n"
            "+-------------------------------+----------------------+----------------------+\n",
     "nvidia-smi",
     {{"smi", "\"331.62\""},
      {"cuda", "null"},
      {"layout", "\"<=409\""},
      {"lines_per_gpu", "2"},
      {"gpus.0.name", "\"Tesla K20m\""},
      {"gpus.0.bus", "\"0000:02:00.0\""},
      {"gpus.0.used_bytes", "11534336"},
      {"gpus.0.fan_frac", "null"},
      {"gpus.0.ecc", "0"}}},
    {"MIG line, exclusive process, pending mode, ERR! in every cell",
     HEAD_C ROWS_C,
     "nvidia-smi",
     {{"layout", "\"450-529\""},
      {"lines_per_gpu", "3"},
      {"gpus.0.mig", "\"Enabled*\""},
      {"gpus.0.compute_mode", "\"Exclusive_Process\""},
      {"gpus.0.util_frac", "1"},
      {"gpus.0.persistence", "\"On\""},
      {"gpus.1.fan_frac", "null"},
      {"gpus.1.temp_c", "null"},
      {"gpus.1.perf", "null"},
      {"gpus.1.power_w", "null"},
      {"gpus.1.cap_w", "400"},
      {"gpus.1.util_frac", "null"},
      {"gpus.1.compute_mode", "\"Default\""},
      {"gpus.1.ecc", "2"},
      {"unequal_caps", "false"}}},
    {"a head that was cut away",
     ROWS_C,
     "nvidia-smi",
     {{"gpus.0.name", "\"NVIDIA A100-SXM...\""},
      {"gpus.0.power_w", "398"},
      {"gpus.1.index", "1"},
      {"smi", "absent"}}},
    {"Windows, the newest header",
     HEAD_F
     "|   0  NVIDIA GeForce RTX 4070      WDDM  |   00000000:01:00.0  On |                  N/A |\n"
     "|  0%   44C    P8             11W /  200W |    1403MiB /  12282MiB |      2%      Default |\n"
     "|                                         |                        |                  N/A |\n"
     "+-----------------------------------------+------------------------+----------------------+\n"
     "\n"
     "+-----------------------------------------------------------------------------------------+\n"
     "| Processes:                                                                              |\n"
     "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |\n"
     "|        ID   ID                                                               Usage      |\n"
     "|=========================================================================================|\n"
     "|    0   N/A  N/A            1234    C+G   C:\\Program Files\\a b\\chrome.exe          N/A   "
     "  |\n"
     "|    0   N/A  N/A            5678      C   ...n3.11\\python.exe                     N/A     "
     "|\n"
     "+-----------------------------------------------------------------------------------------+"
     "\n",
     "nvidia-smi",
     {{"smi", "\"610.43.02\""},
      {"driver", "\"610.43.02\""},
      {"cuda", "\"13.3\""},
      {"layout", "\"580\""},
      {"platform", "\"windows\""},
      {"gpus.0.driver_model", "\"WDDM\""},
      {"gpus.0.persistence", "absent"},
      {"gpus.0.disp", "\"On\""},
      {"gpus.0.mig", "\"N/A\""},
      {"processes.0.type", "\"C+G\""},
      {"processes.0.name", "\"C:\\\\Program Files\\\\a b\\\\chrome.exe\""},
      {"processes.0.used_bytes", "null"},
      {"processes.1.pid", "5678"}}},
    {"WSL: versions differ",
     "| NVIDIA-SMI 550.76.01              Driver Version: 552.22         CUDA Version: 12.4     "
     "|\n",
     "nvidia-smi",
     {{"versions_differ", "true"}, {"platform", "\"wsl\""}, {"cuda", "\"12.4\""}}},
    {"full-width bars of a web page, blanks collapsed",
     "\xef\xbd\x9c NVIDIA-SMI 535.54.03 Driver Version: 535.54.03 CUDA Version: 12.2 \xef\xbd\x9c\n"
     "\xef\xbd\x9c 0 NVIDIA A10 On \xef\xbd\x9c 00000000:65:00.0 Off \xef\xbd\x9c 0 \xef\xbd\x9c\n"
     "\xef\xbd\x9c 0% 51C P0 61W / 150W \xef\xbd\x9c 9002MiB / 23028MiB \xef\xbd\x9c 37% Default "
     "\xef\xbd\x9c\n",
     "nvidia-smi",
     {{"gpus.0.name", "\"NVIDIA A10\""},
      {"gpus.0.power_w", "61"},
      {"gpus.0.total_bytes", "24146608128"},
      {"layout", "\"530-549\""}}},
    {"processes of the old table, an empty name",
     HEAD_A "|   0  GeForce GTX TIT...  Off  | 0000:05:00.0     Off |                  N/A |\n"
            "| 22%   44C    P8    15W / 250W |   2031MiB / 12287MiB |      0%      Default |\n"
            "+-------------------------------+----------------------+----------------------+\n"
            "\n"
            "+-----------------------------------------------------------------------------+\n"
            "| Processes:                                                       GPU Memory |\n"
            "|  GPU       PID   Type   Process name                             Usage      |\n"
            "|=============================================================================|\n"
            "|    0     20912      C   python                                      2001MiB |\n"
            "|    0     20913      G                                                 18MiB |\n"
            "+-----------------------------------------------------------------------------+\n",
     "nvidia-smi",
     {{"processes.0.pid", "20912"},
      {"processes.0.used_bytes", "2098200576"},
      {"processes.0.gi", "absent"},
      {"processes.1.type", "\"G\""},
      {"processes.1.name", "null"},
      {"processes.1.used_bytes", "18874368"}}},
    {"MIG on, nothing made",
     HEAD_C "|   0  NVIDIA A100-PCI...  On   | 00000000:07:00.0 Off |                   On |\n"
            "| N/A   31C    P0    33W / 250W |      0MiB / 40536MiB |     N/A      Default |\n"
            "|                               |                      |              Enabled |\n"
            "+-------------------------------+----------------------+----------------------+\n"
            "+-----------------------------------------------------------------------------+\n"
            "| MIG devices:                                                                |\n"
            "+------------------+----------------------+-----------+-----------------------+\n"
            "|  No MIG devices found                                                       |\n",
     "nvidia-smi",
     {{"mig_devices", "[]"}, {"gpus.0.mig", "\"Enabled\""}, {"gpus.0.ecc", "\"On\""}}},
    {"a failure is no table",
     "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
     "nvidia-smi",
     {{NULL, NULL}}},
    {"a table of something else",
     "| 0 | hello | 12MiB |\n| 1 | world | 3MiB |\n",
     "nvidia-smi",
     {{NULL, NULL}}},
};

static void tables_of_every_layout_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        check_case(&tables[i], tv_str_of(tables[i].text));
        check_dressed(&tables[i], "    ", "\r");
        check_dressed(&tables[i], "\x1b[32m", "\x1b[0m");
        check_dressed(&tables[i], "2024-05-18T19:02:39.123456789Z ", "  ");
        check_dressed(&tables[i], "[rank0]: ", "");
        check_dressed(&tables[i], "> ", "");
    }
}

/* watch, and nvidia-smi -l: each table by itself, with or without its title. */
static void tables_below_each_other_are_told_apart(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_scene scene = {0};
    assert_ok(a, tv_trace_document(a, TV_S("f"), TV_S(HEAD_C ROWS_C HEAD_C ROWS_C ROWS_C), &scene));
    size_t n = 0;
    for (const tv_sighting *s = tv_scene_first(&scene, "nvidia-smi"); s;
         s = tv_scene_next(s, "nvidia-smi"), n++)
        assert_int_equal(tv_noted_n(&s->facts, "gpus"), 2);
    assert_int_equal(n, 3);
    tv_arena_close(a);
}

/* ---- -q ---- */

static const case_row queries[] = {
    {"text of 384: throttle reasons, single and double bit, pages",
     "==============NVSMI LOG==============\n"
     "\n"
     "Driver Version                      : 384.145\n"
     "Attached GPUs                       : 1\n"
     "GPU 00000000:1B:00.0\n"
     "    Product Name                    : Tesla V100-PCIE-32GB\n"
     "    Persistence Mode                : Disabled\n"
     "    PCI\n"
     "        Bus Id                      : 00000000:1B:00.0\n"
     "        GPU Link Info\n"
     "            PCIe Generation\n"
     "                Max                 : 3\n"
     "                Current             : 1\n"
     "            Link Width\n"
     "                Max                 : 16x\n"
     "                Current             : 8x\n"
     "        Replays since reset         : 12\n"
     "        Tx Throughput               : 3000 KB/s\n"
     "    Fan Speed                       : N/A\n"
     "    Performance State               : P0\n"
     "    Clocks Throttle Reasons\n"
     "        Idle                        : Not Active\n"
     "        HW Slowdown                 : Active\n"
     "        Unknown                     : Not Active\n"
     "    Ecc Mode\n"
     "        Current                     : Enabled\n"
     "    ECC Errors\n"
     "        Volatile\n"
     "            Single Bit\n"
     "                Device Memory       : 1\n"
     "                Total               : 1\n"
     "            Double Bit\n"
     "                Device Memory       : 0\n"
     "                Total               : 0\n"
     "        Aggregate\n"
     "            Single Bit\n"
     "                Total               : 7\n"
     "    Retired Pages\n"
     "        Single Bit ECC              : 3\n"
     "        Double Bit ECC              : 0\n"
     "        Pending                     : Yes\n"
     "    Power Readings\n"
     "        Power Draw                  : 44.10 W\n"
     "        Enforced Power Limit        : 250.00 W\n",
     "smi-q",
     {{"driver", "\"384.145\""},
      {"gpus.0.index", "0"},
      {"persistence", "\"Off\""},
      {"link_gen", "1"},
      {"link_width", "8"},
      {"link_width_max", "16"},
      {"replays", "12"},
      {"tx_bytes_per_s", "3000000"},
      {"reasons.hw_slowdown", "true"},
      {"ecc_mode", "\"Enabled\""},
      {"single_bit_volatile", "1"},
      {"single_bit_aggregate", "7"},
      {"retired_pending", "true"},
      {"section", "\"Power Readings (<=525)\""},
      {"cap_w", "250"}}},
    {"text of 550: event reasons and counters, T.Limit, module power, SEC-DED",
     "GPU 00000000:19:00.0\n"
     "    Product Name                          : NVIDIA H200\n"
     "    MIG Mode\n"
     "        Current                           : Disabled\n"
     "        Pending                           : Disabled\n"
     "    Clocks Event Reasons\n"
     "        SW Power Cap                      : Active\n"
     "        HW Slowdown                       : Not Active\n"
     "            HW Thermal Slowdown           : Not Active\n"
     "            HW Power Brake Slowdown       : Active\n"
     "    Clocks Event Reasons Counters\n"
     "        HW Thermal Slowdown               : 2500000 us\n"
     "    FB Memory Usage\n"
     "        Total                             : 143771 MiB\n"
     "        Used                              : 5 MiB\n"
     "    Conf Compute Protected Memory Usage\n"
     "        Total                             : 0 MiB\n"
     "        Used                              : 0 MiB\n"
     "    ECC Errors\n"
     "        Volatile\n"
     "            SRAM Uncorrectable Parity     : 1\n"
     "            SRAM Uncorrectable SEC-DED    : 2\n"
     "        Aggregate\n"
     "            SRAM Threshold Exceeded       : Yes\n"
     "    Temperature\n"
     "        GPU Current Temp                  : 51 C\n"
     "        GPU T.Limit Temp                  : 35 C\n"
     "        GPU Slowdown T.Limit Temp         : -2 C\n"
     "    GPU Power Readings\n"
     "        Average Power Draw                : 402.11 W\n"
     "        Instantaneous Power Draw          : 399.00 W\n"
     "        Current Power Limit               : 700.00 W\n"
     "    Module Power Readings\n"
     "        Power Draw                        : N/A\n"
     "    Max Clocks\n"
     "        SM                                : 1980 MHz\n"
     "    Processes\n"
     "        GPU instance ID                   : N/A\n"
     "        Process ID                        : 900\n"
     "            Type                          : C\n"
     "            Name                          : python\n"
     "            Used GPU Memory               : 4000 MiB\n",
     "smi-q",
     {{"product", "\"NVIDIA H200\""},
      {"gpus.0.index", "null"},
      {"reasons.hw_power_brake", "true"},
      {"reasons.hw_thermal", "false"},
      {"counters.hw_thermal_s", "2.5"},
      {"total_bytes", "150754820096"},
      {"used_bytes", "5242880"},
      {"sram_uncorr_volatile", "3"},
      {"sram_threshold_exceeded", "true"},
      {"slowdown_tlimit_c", "-2"},
      {"power_w", "402.11"},
      {"cap_w", "700"},
      {"max_sm_mhz", "1980"},
      {"mig", "\"Disabled\""},
      {"processes.0.name", "\"python\""}}},
    {"text of 610: old names are deprecated in place",
     "==============NVSMI LOG==============\n"
     "Driver Version                                         : 610.57.04 [Deprecated; will be "
     "removed]\n"
     "CUDA Version                                           : 13.3 [Deprecated; will be removed]\n"
     "KMD Version                                            : 610.57.04\n"
     "Attached GPUs                                          : 1\n"
     "GPU 00000000:01:00.0\n"
     "    Temperature\n"
     "        GPU Current Temp                               : 79 C\n"
     "        GPU Current T.Limit Temp                       : 12 C\n"
     "        GPU Target Temperature Specification           : 90 C\n",
     "smi-q",
     {{"driver", "\"610.57.04\""}, {"cuda", "\"13.3\""}, {"tlimit_c", "12"}, {"target_c", "90"}}},
    {"what grep left",
     "        GPU Current Temp                  : 61 C\n"
     "        GPU Current Temp                  : 64 C\n",
     "smi-q",
     {{"gpus.0.temp_c", "61"}, {"gpus.1.temp_c", "64"}}},
    {"keys without their indentation",
     "Product Name : NVIDIA A40\nTemperature\nGPU Current Temp : 40 C\n"
     "Memory Current Temp : N/A\nRemapped Rows\nPending : No\n",
     "smi-q",
     {{"product", "\"NVIDIA A40\""},
      {"temp_c", "40"},
      {"mem_temp_c", "null"},
      {"remap_pending", "false"}}},
    {"XML before 535",
     "<?xml version=\"1.0\" ?>\n"
     "<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v11.dtd\">\n"
     "<nvidia_smi_log>\n"
     "\t<driver_version>470.57.02</driver_version>\n"
     "\t<attached_gpus>1</attached_gpus>\n"
     "\t<gpu id=\"00000000:3B:00.0\">\n"
     "\t\t<product_name>Tesla T4</product_name>\n"
     "\t\t<mig_mode><current_mig>N/A</current_mig></mig_mode>\n"
     "\t\t<pci><pci_gpu_link_info><pcie_gen><max_link_gen>3</max_link_gen>"
     "<current_link_gen>1</current_link_gen></pcie_gen><link_widths>"
     "<max_link_width>16x</max_link_width><current_link_width>8x</current_link_width>"
     "</link_widths></pci_gpu_link_info><rx_util>1000 KB/s</rx_util></pci>\n"
     "\t\t<clocks_throttle_reasons><clocks_throttle_reason_hw_thermal_slowdown>Active"
     "</clocks_throttle_reason_hw_thermal_slowdown></clocks_throttle_reasons>\n"
     "\t\t<utilization><gpu_util>98 %</gpu_util></utilization>\n"
     "\t\t<ecc_errors><volatile><dram_uncorrectable>2</dram_uncorrectable></volatile></"
     "ecc_errors>\n"
     "\t\t<temperature><gpu_temp>90 C</gpu_temp><gpu_temp_slow_threshold>93 C"
     "</gpu_temp_slow_threshold></temperature>\n"
     "\t\t<power_readings><power_draw>66.10 W</power_draw><power_limit>70.00 W</power_limit>"
     "</power_readings>\n"
     "\t\t<processes><process_info><pid>77</pid><process_name>a &amp; b</process_name>"
     "<used_memory>10 MiB</used_memory></process_info></processes>\n"
     "\t</gpu>\n"
     "</nvidia_smi_log>\n",
     "smi-q",
     {{"gpus.0.bus", "\"00000000:3B:00.0\""},
      {"gpus.0.index", "0"},
      {"driver", "\"470.57.02\""},
      {"link_width", "8"},
      {"rx_bytes_per_s", "1000000"},
      {"reasons.hw_thermal", "true"},
      {"util_frac", "0.98"},
      {"dram_uncorr_volatile", "2"},
      {"slowdown_c", "93"},
      {"power_w", "66.1"},
      {"cap_w", "70"},
      {"processes.0.name", "\"a & b\""}}},
    {"XML since 535, MIG, an end that was cut away",
     "<nvidia_smi_log><gpu id=\"00000000:07:00.0\"><mig_devices><mig_device><index>0</index>"
     "<gpu_instance_id>1</gpu_instance_id><device_attributes><shared><multiprocessor_count>42"
     "</multiprocessor_count></shared></device_attributes><fb_memory_usage><total>40192 MiB</total>"
     "<used>13 MiB</used></fb_memory_usage></mig_device></mig_devices>\n"
     "<gpu_power_readings><average_power_draw>80.50 W</average_power_draw>"
     "<current_power_limit>400.00 W</current_power_limit></gpu_power_readings>\n"
     "<remapped_rows><remapped_row_pending>Yes</remapped_row_pending><row_remapper_histogram>"
     "<row_remapper_histogram_max>640 "
     "bank(s)</row_remapper_histogram_max></row_remapper_histogram>\n",
     "smi-q",
     {{"mig_devices.0.gi", "1"},
      {"mig_devices.0.sm", "42"},
      {"mig_devices.0.total_bytes", "42144366592"},
      {"gpus.0.total_bytes", "absent"},
      {"power_w", "80.5"},
      {"remap_pending", "true"},
      {"banks.Max", "640"}}},
    {"XML that defines its own entities is refused",
     "<?xml version=\"1.0\"?><!DOCTYPE nvidia_smi_log [<!ENTITY a \"aaaa\">]><nvidia_smi_log>"
     "<gpu id=\"0\"><product_name>&a;&a;</product_name></gpu></nvidia_smi_log>\n",
     "smi-q",
     {{NULL, NULL}}},
};

static void queries_of_every_era_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        check_case(&queries[i], tv_str_of(queries[i].text));
        check_dressed(&queries[i], "", "\r");
        if (!strstr(queries[i].text, "<nvidia_smi_log>"))
            check_dressed(&queries[i], "    ", "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_every_layout_are_read),
        cmocka_unit_test(tables_below_each_other_are_told_apart),
        cmocka_unit_test(queries_of_every_era_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
