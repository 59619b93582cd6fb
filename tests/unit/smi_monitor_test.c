/* CSV, lists, links, dmon, pmon, the chassis and metrics: any columns, any order, loops summed up.
 */
#include "sights.h"

static const double none = (double)NAN;

static void csv_is_read_by_its_header(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene =
        sights_of(a, "name, pci.bus_id, temperature.gpu, power.draw [W], power.limit [W], "
                     "memory.used [MiB], utilization.gpu [%], fan.speed [%], "
                     "clocks_throttle_reasons.active\n"
                     "NVIDIA A30, 00000000:3B:00.0, 41, 30.50 W, 165.00 W, 7 MiB, 3 %, [N/A], "
                     "0x0000000000000001\n"
                     "NVIDIA A30, 00000000:86:00.0, [Unknown Error], [Not Supported], 165.00 W, "
                     "9 MiB, 5 %, [N/A], 0x0000000000000024\n");
    const tv_note *f = sight(scene, "smi-q", 0);
    assert_int_equal(tv_noted_n(f, "gpus"), 2);
    assert_word(f, "gpus.0.name", "NVIDIA A30");
    assert_fact(f, "gpus.0.power_w", 30.5);
    assert_fact(f, "gpus.0.cap_w", 165);
    assert_fact(f, "gpus.0.used_bytes", 7340032);
    assert_fact(f, "gpus.0.util_frac", 0.03);
    assert_fact(f, "gpus.0.fan_frac", none);
    assert_true(tv_noted_bool(f, "gpus.0.reasons.idle", false));
    assert_fact(f, "gpus.1.temp_c", none);
    assert_true(tv_noted_bool(f, "gpus.1.reasons.sw_thermal", false));
    assert_true(tv_noted_bool(f, "gpus.1.reasons.sw_power_cap", false));
    assert_false(tv_noted_bool(f, "gpus.1.reasons.idle", true));
    tv_arena_close(a);
}

static void csv_without_a_header_is_read_by_its_command(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene =
        sights_of(a, "$ nvidia-smi --query-gpu=index,memory.total,memory.free,compute_mode "
                     "--format=csv,noheader,nounits\n"
                     "0, 40960, 12, Prohibited\n1, 40960, 40950, Default\n");
    const tv_note *f = sight(scene, "smi-q", 0);
    assert_fact(f, "gpus.0.total_bytes", 42949672960);
    assert_fact(f, "gpus.1.free_bytes", 42939187200);
    assert_word(f, "gpus.0.compute_mode", "Prohibited");
    tv_arena_close(a);
}

static void loops_are_summed_up(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, "timestamp, utilization.gpu [%], power.draw [W]\n");
    for (int t = 0; t < 5; t++)
        for (int g = 0; g < 2; g++) {
            char line[128];
            (void)snprintf(line, sizeof line, "2024/01/01 00:00:0%d.000, %d %%, %d.00 W\n", t,
                           20 * t, 100 + 50 * g);
            tv_puts(&b, line);
        }
    const tv_note *f = sight(sights_of(a, tv_cstr(a, tv_buf_str(&b))), "smi-q", 0);
    assert_int_equal(tv_noted_n(f, "gpus"), 2);
    assert_fact(f, "gpus.0.series.samples", 5);
    assert_fact(f, "gpus.0.series.util_mean_frac", 0.4);
    assert_fact(f, "gpus.0.series.util_max_frac", 0.8);
    assert_fact(f, "gpus.1.series.power_mean_w", 150);
    tv_arena_close(a);
}

static void processes_are_listed(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene = sights_of(a, "pid, process_name, used_gpu_memory [MiB]\n"
                                         "3121, python, 11201 MiB\n77, [Not Found], [N/A]\n");
    const tv_note *f = sight(scene, "smi-q", 0);
    assert_fact(f, "processes.0.pid", 3121);
    assert_fact(f, "processes.0.used_bytes", 11745099776);
    assert_fact(f, "processes.1.used_bytes", none);
    tv_arena_close(a);
}

static void other_csv_is_left_alone(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene =
        sights_of(a, "step,loss,driver_version_note\n1,2,3\nname,memory.total_x\n");
    assert_int_equal(sights_n(scene, "smi-q"), 0);
    tv_arena_close(a);
}

#define CARD "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1b2c3d4e-0000-0000-0000-000000000000)\n"

static void lists_name_cards_and_instances(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene =
        sights_of(a, CARD "  MIG 3g.20gb     Device  0: (UUID: MIG-aaaa-bbbb)\n"
                          "  MIG 1c.3g.20gb Device 1: (UUID: MIG-GPU-cccc/1/0)\n"
                          "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-ffff)\n");
    const tv_note *f = sight(scene, "smi-q", 0);
    assert_word(f, "gpus.1.name", "NVIDIA A100-SXM4-40GB");
    assert_word(f, "mig_devices.0.profile", "3g.20gb");
    assert_fact(f, "mig_devices.1.dev", 1);
    assert_fact(f, "mig_devices.1.gpu", 0);
    tv_arena_close(a);
}

static void links_have_states_and_counters(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene = sights_of(a, CARD "\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n");
    const tv_note *f = sight(scene, "nvlink", 0);
    assert_fact(f, "gpus.0.links.0.bytes_per_s", 25e9);
    assert_true(tv_noted_bool(f, "gpus.0.links.0.active", false));
    assert_false(tv_noted_bool(f, "gpus.0.links.1.active", true));
    scene = sights_of(a, CARD "\t Link 3: Replay Errors: 4\n\t Link 3: Recovery Errors: 0\n"
                              "\t Link 3: CRC Errors: 12\n\t Link 4: Rx Errors: 2\n");
    f = sight(scene, "nvlink", 0);
    assert_fact(f, "gpus.0.links.0.link", 3);
    assert_fact(f, "gpus.0.links.0.replays", 4);
    assert_fact(f, "gpus.0.links.0.crc_errors", 12);
    assert_fact(f, "gpus.0.links.1.rx_errors", 2);
    tv_arena_close(a);
}

static void dmon_is_read_by_its_header(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene = sights_of(a, "#Date       Time        gpu    pwr  gtemp  mtemp     sm  "
                                         " mclk   pclk  pviol  tviol  rxpci\n"
                                         "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %  "
                                         "  MHz    MHz      %   bool   MB/s\n"
                                         " 20240102   10:00:00      0    250     70     81     90  "
                                         " 9501   1700      3      0    100\n"
                                         " 20240102   10:00:00      1      -     30      -      0  "
                                         "  405    210      0      0      0\n"
                                         "#Date       Time        gpu    pwr  gtemp  mtemp     sm  "
                                         " mclk   pclk  pviol  tviol  rxpci\n"
                                         " 20240102   10:00:01      0    260     72     83     94  "
                                         " 9501   1690      5      1    200\n");
    const tv_note *f = sight(scene, "dmon", 0);
    assert_int_equal(sights_n(scene, "dmon"), 1);
    assert_fact(f, "gpus", 2);
    assert_fact(f, "samples", 2);
    assert_fact(f, "gpu0.pwr_w", 250);
    assert_fact(f, "gpu0.mtemp_c", 81);
    assert_fact(f, "gpu0.pviol_frac", 0.03);
    assert_fact(f, "gpu0.rxpci_bytes_per_s", 1e8);
    assert_fact(f, "gpu1.pwr_w", none);
    assert_fact(f, "cards.0.series.util_mean_frac", 0.92);
    assert_fact(f, "cards.0.series.thermal_violation_max", 1);
    assert_fact(f, "cards.0.series.mem_temp_max_c", 83);
    tv_arena_close(a);
}

/* Pages put the comment sign before every line. */
static void dmon_rows_may_be_quoted(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_note *f = sight(
        sights_of(a, "# gpu    pwr  gtemp  mtemp     sm\n# Idx      W      C      C      %\n"
                     "#   0     21     37      -     23\n#   0     22     37      -     25\n"),
        "dmon", 0);
    assert_fact(f, "samples", 2);
    assert_fact(f, "sm_mean_frac", 0.24);
    tv_arena_close(a);
}

static void pmon_lists_processes(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene =
        sights_of(a, "# gpu         pid   type     sm    mem    enc    dec    command\n"
                     "# Idx           #    C/G      %      %      %      %    name\n"
                     "    0      20912     C     55     21      -      -    python train.py\n"
                     "    1          -     -      -      -      -      -    -\n");
    const tv_note *f = sight(scene, "pmon", 0);
    assert_fact(f, "processes.0.pid", 20912);
    assert_fact(f, "processes.0.sm_frac", 0.55);
    assert_word(f, "processes.0.name", "python train.py");
    assert_fact(f, "processes.1.pid", none);
    tv_arena_close(a);
}

static void chassis_speaks_in_three_lists(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene = sights_of(a, "Inlet Temp       | 24 degrees C      | ok\n"
                                         "CPU2 Temp        | 55 degrees C      | ok\n"
                                         "FAN1             | 8400 RPM          | ok\n"
                                         "PS2 Status       | 0x09              | ok\n"
                                         "FAN3             | no reading        | ns\n");
    const tv_note *f = sight(scene, "ipmi", 0);
    assert_fact(f, "rows", 5);
    assert_fact(f, "inlet_c", 24);
    assert_fact(f, "cpu2_c", 55);
    assert_fact(f, "sensors.2.value", 8400);
    scene = sights_of(a, "Inlet Temp       | 04h | ok  |  7.1 | 26 degrees C\n"
                         "PS1 Status       | C8h | ok  | 10.1 | Presence detected\n");
    assert_fact(sight(scene, "ipmi", 0), "inlet_c", 26);
    scene = sights_of(a, "   a | 05/18/2023 | 19:02:39 | Power Supply #0x62 | Failure detected | "
                         "Asserted\n   b | 05/18/2023 | 19:09:00 | Power Supply #0x62 | Failure "
                         "detected | Deasserted\n");
    f = sight(scene, "ipmi", 0);
    assert_word(f, "events.0.event", "Failure detected");
    assert_true(tv_noted_bool(f, "events.0.asserted", false));
    assert_false(tv_noted_bool(f, "events.1.asserted", true));
    tv_arena_close(a);
}

static void metrics_are_gathered_by_card(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene = sights_of(
        a, "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n"
           "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
           "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA A10\",Hostname=\"h\"} "
           "61\n"
           "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-b\",modelName=\"NVIDIA A10\",Hostname=\"h\"} "
           "64\n"
           "DCGM_FI_DEV_FB_USED{gpu=\"1\",UUID=\"GPU-b\",label=\"a\\\"b\"} 2048 1700000000000\n"
           "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu=\"1\",UUID=\"GPU-b\"} 64\n"
           "DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu=\"0\",UUID=\"GPU-a\"} 1\n"
           "DCGM_FI_DEV_XID_ERRORS{gpu=\"0\",UUID=\"GPU-a\"} 9223372036854775794\n");
    const tv_note *f = sight(scene, "prometheus", 0);
    assert_fact(f, "distinct_devices", 2);
    assert_fact(f, "samples", 6);
    assert_fact(f, "gpus.0.temp_c", 61);
    assert_fact(f, "gpus.1.used_bytes", 2147483648);
    assert_true(tv_noted_bool(f, "gpus.1.reasons.hw_thermal", false));
    assert_true(tv_noted_bool(f, "gpus.0.remap_failure", false));
    assert_fact(f, "xid", none);
    assert_int_equal(tv_noted(f, "values_c") != NULL, 0);
    tv_arena_close(a);
}

static void codes_in_metrics_are_events(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene =
        sights_of(a, "DCGM_FI_DEV_XID_ERRORS{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"h\"} 79\n"
                     "DCGM_FI_DEV_XID_ERRORS{gpu=\"1\",UUID=\"GPU-b\",Hostname=\"h\"} 0\n");
    assert_fact(sight(scene, "prometheus", 0), "xid", 79);
    assert_int_equal(tv_noted_n(sight(scene, "xid", 0), "events"), 1);
    assert_fact(sight(scene, "xid", 0), "events.0.xid", 79);
    tv_arena_close(a);
}

static void cards_of_amd_have_the_same_facts(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene = sights_of(
        a, "======================== ROCm System Management Interface ========================\n"
           "GPU  Temp   AvgPwr  SCLK     MCLK     Fan   Perf  PwrCap  VRAM%  GPU%\n"
           "0    41.0c  38.0W   925Mhz   1000Mhz  0.0%  auto  300.0W   12%   97%\n"
           "1    39.0c  N/A     300Mhz   800Mhz   0.0%  auto  300.0W    0%   0%\n"
           "========================== End of ROCm SMI Log ==========================\n");
    const tv_note *f = sight(scene, "smi-q", 0);
    assert_word(f, "vendor", "amd");
    assert_fact(f, "gpus.0.temp_c", 41);
    assert_fact(f, "gpus.0.power_w", 38);
    assert_fact(f, "gpus.0.cap_w", 300);
    assert_fact(f, "gpus.0.util_frac", 0.97);
    assert_fact(f, "gpus.0.sm_mhz", 925);
    assert_fact(f, "gpus.1.index", 1);
    scene = sights_of(
        a,
        "Device  Node  IDs              Temp        Power     Partitions          SCLK    MCLK    "
        "Fan  Perf  PwrCap  VRAM%  GPU%\n"
        "0       2     0x74a1,   28851  44.0\xc2\xb0"
        "C      140.0W    NPS1, SPX, 0        132Mhz  "
        "900Mhz  0%   auto  750.0W  3%     1%\n");
    f = sight(scene, "smi-q", 0);
    assert_fact(f, "gpus.0.temp_c", 44);
    assert_fact(f, "gpus.0.power_w", 140);
    assert_fact(f, "gpus.0.vram_frac", 0.03);
    scene = sights_of(a, "GPU[0]\t\t: GPU use (%): 25\nGPU[1]\t\t: GPU use (%): 3\n"
                         "GPU[0]\t\t: VRAM Total Memory (B): 17163091968\n");
    f = sight(scene, "smi-q", 0);
    assert_fact(f, "gpus.0.util_frac", 0.25);
    assert_fact(f, "gpus.0.total_bytes", 17163091968);
    assert_fact(f, "gpus.1.util_frac", 0.03);
    tv_arena_close(a);
}

static void nonsense_is_passed_over(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "# gpu pwr temp\n# Idx W C\n x y z\n 0 1\n",
        "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\" 61\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0} 6\nDCGM_FI_X\n",
        "a | b | degrees C | c\n| degrees C\n||||||||||||||\n",
        "GPU 0: (UUID: GPU-\nGPU : x (UUID: GPU-1)\n Link 0: 25 GB/s\n",
        "utilization.gpu,,,\n,,,\n",
        "| 00000000:01:00.0 Off |\n|\n||\n",
        "<nvidia_smi_log><gpu id=\"",
        "GPU Current Temp :\nGPU 00000000:01:00.0\n : \n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tv_arena *a = test_arena();
        assert_non_null(sights_of(a, texts[i]));
        tv_arena_close(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_is_read_by_its_header),
        cmocka_unit_test(csv_without_a_header_is_read_by_its_command),
        cmocka_unit_test(loops_are_summed_up),
        cmocka_unit_test(processes_are_listed),
        cmocka_unit_test(other_csv_is_left_alone),
        cmocka_unit_test(lists_name_cards_and_instances),
        cmocka_unit_test(links_have_states_and_counters),
        cmocka_unit_test(dmon_is_read_by_its_header),
        cmocka_unit_test(dmon_rows_may_be_quoted),
        cmocka_unit_test(pmon_lists_processes),
        cmocka_unit_test(chassis_speaks_in_three_lists),
        cmocka_unit_test(metrics_are_gathered_by_card),
        cmocka_unit_test(codes_in_metrics_are_events),
        cmocka_unit_test(cards_of_amd_have_the_same_facts),
        cmocka_unit_test(nonsense_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
