/* Tables of torch's, Lightning's and Paddle's profilers in every shape that they have had. */
#include "sights.h"

#define NO ((double)NAN)

/* ---- torch ---- */

typedef struct torch_case {
    const char *text;
    const char *device; /* NULL: no device columns */
    double rows, self_cpu_s, calls, device_total_s;
    const char *device_total; /* the key of row0 */
} torch_case;

static const torch_case torch[] = {
    /* 1.7 and later */
    {"-----  -----\n"
     "   Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg     Self CUDA  "
     " "
     "Self CUDA %    CUDA total  CUDA time avg    # of Calls  \n"
     "-----  -----\n"
     "   aten::mm   10.00%   1.500ms   12.00%   2.000ms   20.000us   3.000ms   50.00%   3.000ms   "
     "30.000us   100  \n",
     "CUDA", 1, 1.5e-3, 100, 3e-3, "cuda_total_s"},
    /* names of the device; memory columns with units apart; negative and missing cells */
    {"Name  Self CPU %  Self CPU  CPU total %  CPU total  CPU time avg  Self XPU  Self XPU %  XPU "
     "total  XPU time avg  CPU Mem  Self CPU Mem  XPU Mem  Self XPU Mem  # of Calls\n"
     "aten::add one two  NaN%  -1.000us  --  2.000us  1.000us  0.000us  NaN%  5.000us  2.5us  "
     "-3.75 "
     "Kb  0 b  1.20 Gb  512 b  2\n",
     "XPU", 1, -1e-6, 2, 5e-6, "xpu_total_s"},
    /* up to 1.6: left aligned */
    {"Name    Self CPU total %  Self CPU total   CPU total %      CPU total        CPU time avg    "
     " "
     "CUDA total %     CUDA total       CUDA time avg    Number of Calls  \n"
     "mm      98.09%            518.336ms        98.88%           522.511ms        5.225ms         "
     " "
     "49.89%           790.885ms        7.909ms          100              \n",
     "CUDA", 1, 0.518336, 100, 0.790885, "cuda_total_s"},
    /* no percent columns, shapes, FLOPs */
    {"Name  Self CPU  CPU total  CPU time avg  # of Calls  Input Shapes  Total KFLOPs\n"
     "aten::conv2d  171.000us  52.260ms  2.613ms  20  [[5, 3, 224, 224], [64], [], 2]  4720.640\n"
     "aten::add_  1.0ms  1.0ms  27.8us  28  [[1], [1], []]  --\n",
     NULL, 2, 171e-6, 20, NO, NULL},
    /* blanks were lost in a paste, a logger stands before it */
    {"[rank0]: Name Self CPU % Self CPU CPU total % CPU total CPU time avg # of Calls\n"
     "[rank0]: ProfilerStep* 50.64% 5.776ms 100.00% 11.407ms 126.744us 90\n",
     NULL, 1, 5.776e-3, 90, NO, NULL},
    /* source locations behind the calls */
    {"Name  Self CPU %  Self CPU  CPU total %  CPU total  CPU time avg  # of Calls  Source "
     "Location\n"
     "aten::mm  10.00%  1.0ms  12.00%  2.0ms  20.0us  100  model.py(12): forward\n"
     "                                                     train.py(40): step\n"
     "aten::add  1.00%  0.1ms  2.00%  0.2ms  2.0us  100  model.py(13): forward\n",
     NULL, 2, 1e-3, 100, NO, NULL},
};

static void torch_tables_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof torch / sizeof *torch; i++) {
        tv_arena *a = test_arena();
        const torch_case *c = &torch[i];
        const tv_note *facts = sight(sights_of(a, c->text), "key_averages", 0);
        assert_word(facts, "device_column", c->device ? c->device : "");
        assert_fact(facts, "rows", c->rows);
        assert_fact(facts, "row0.self_cpu_s", c->self_cpu_s);
        assert_fact(facts, "row0.calls", c->calls);
        if (c->device_total)
            assert_fact(tv_noted(facts, "row0"), c->device_total, c->device_total_s);
        tv_arena_close(a);
    }
}

static void cells_without_numbers_are_unknown(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_note *facts = sight(sights_of(a, torch[1].text), "key_averages", 0);
    assert_word(facts, "row0.name", "aten::add one two");
    assert_fact(facts, "row0.self_cpu_frac", NO);
    assert_fact(facts, "row0.cpu_mem_bytes", -3840);
    assert_fact(facts, "row0.xpu_mem_bytes", 1.2 * 1073741824.0);
    assert_fact(sight(sights_of(a, torch[3].text), "key_averages", 0), "row0.flop", 4720640);
    tv_arena_close(a);
}

static void footers_belong_to_their_table(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene = sights_of(a, "Name  Self CPU  CPU total  CPU time avg  # of Calls\n"
                                         "aten::a  1.0ms  2.0ms  1.0us  2\n"
                                         "Self CPU time total: 67.016ms\n"
                                         "Self CUDA time total: 12.5ms\n\n"
                                         "Name  Self CPU  CPU total  CPU time avg  # of Calls\n"
                                         "aten::b  1.0ms  2.0ms  1.0us  3\n"
                                         "Self CPU time total: 1.5s\n");
    assert_int_equal(sights_n(scene, "key_averages"), 2);
    assert_fact(sight(scene, "key_averages", 0), "self_cpu_total_s", 0.067016);
    assert_fact(sight(scene, "key_averages", 0), "self_device_total_s", 0.0125);
    assert_fact(sight(scene, "key_averages", 1), "self_cpu_total_s", 1.5);
    assert_fact(sight(scene, "key_averages", 1), "self_device_total_s", NO);
    tv_arena_close(a);
}

static void prose_is_no_table(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "The Name of the column is Self CPU and CPU total\nis what counts.\n",
        "CPU total 5 10 15\nName\n",
        "| Name | CPU total | CPU time avg |\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tv_arena *a = test_arena();
        const tv_scene *scene = sights_of(a, texts[i]);
        if (sights_n(scene, "key_averages"))
            assert_fact(sight(scene, "key_averages", 0), "rows", 0);
        tv_arena_close(a);
    }
}

/* ---- Lightning ---- */

static void lightning_tables_are_read(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_note *facts = sight(
        sights_of(
            a, "Action  |  Mean duration (s)  |Num calls  |  Total time (s)  |  Percentage %  |\n"
               "---------------------------------------------------------------\n"
               "Total   |  -  |_  |  60.0  |  100 %  |\n"
               "---------------------------------------------------------------\n"
               "run_training_epoch  |  5.0  |10  |  50.0  |  83.3  |\n"
               "get_train_batch  |  0.02  |1000  |  20.0  |  33.3  |\n"),
        "key_averages", 0);
    assert_word(facts, "format", "lightning-simple");
    assert_fact(facts, "loader_frac", 0.4);
    assert_fact(facts, "row1.calls", 1000);
    const tv_note *deep = sight(
        sights_of(a, "Profile stats for: get_train_batch\n"
                     "         4869394 function calls (4863767 primitive calls) in 18.893 seconds\n"
                     "Profile stats for: run_training_epoch\n"
                     "         9 function calls in 37.786 seconds\n"),
        "key_averages", 0);
    assert_word(deep, "format", "lightning-advanced");
    assert_fact(deep, "loader_frac", 0.5);
    tv_arena_close(a);
}

/* ---- Paddle ---- */

static void paddle_views_are_read(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_note *facts = sight(
        sights_of(
            a, "-------------------Device Summary-------------------\n"
               "CPU(Process)                    77.13               \n"
               "GPU2                            55.50               \n"
               "----------------------Overview Summary----------------------\n"
               "Time unit: ms\n"
               "Event Type                 Calls       CPU Time      Ratio (%)\n"
               "ProfileStep                8           4945.15       100.00\n"
               "  Dataloader               8           1819.15       36.79\n"
               "                           Calls       GPU Time      Ratio (%)\n"
               "  Kernel                   13688       2744.61       55.50\n"
               "-----------------Distribution Summary-----------------\n"
               "Time unit: ms\n"
               "Name                       Total Time    Ratio (%)\n"
               "  Communication            257.23        5.20\n"
               "  Computation              2526.52       51.09\n"
               "  Overlap                  39.13         0.79\n"
               "------------Memory Manipulation Summary------------\n"
               "Time unit: ms\n"
               "Name  Calls  CPU Total / Avg / Max / Min / Ratio(%)  GPU Total / Avg / Max / Min / "
               "Ratio(%)\n"
               "GpuMemcpySync:GPU->CPU  48  1519.87 / 31.66 / 213.82 / 0.02 / 30.73  0.08 / 0.00 / "
               "0.00 / 0.00 / 0.00\n"),
        "paddle-profiler", 0);
    assert_fact(facts, "device.cpu_process_util_frac", 0.7713);
    assert_fact(facts, "device.gpu2_util_frac", 0.555);
    assert_fact(facts, "overview.dataloader.cpu_s", 1.81915);
    assert_fact(facts, "overview.kernel.gpu_s", 2.74461);
    assert_fact(facts, "dataloader_frac", 0.3679);
    assert_fact(facts, "gpu_busy_frac", 0.555);
    assert_fact(facts, "exposed_comm_frac", 0.0441);
    assert_fact(facts, "forced_syncs", 48);
    tv_arena_close(a);
}

static void older_paddle_views_are_read(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_note *facts = sight(
        sights_of(a, "---------------Overview Summary---------------\n"
                     "Time unit: ms\n"
                     "Event Type                 CPU Time      Ratio (%)\n"
                     "Total Time                 1000.00       100.00\n"
                     "  Dataloader               400.00        40.00\n"
                     "---------------Model Summary---------------\n"
                     "Time unit: ms\n"
                     "Name  Calls  CPU Total / Avg / Max / Min / Ratio(%)  GPU Total / Avg / Max "
                     "/ Min / Ratio(%)\n"
                     "Total Time  -  1000.00 / - / - / - / 100.00  - / - / - / -/ -\n"
                     "  Dataloader  10  400.00 / 40.0 / 41.0 / 39.0 / 40.00  0.0 / 0.0 / 0.0 / "
                     "0.0 / 0.0\n"
                     "  Forward  10  300.00 / 30.0 / 31.0 / 29.0 / 30.00  100.0 / 10.0 / 10.0 / "
                     "10.0 / 10.0\n"
                     "  Backward  10  200.00 / 20.0 / 21.0 / 19.0 / 20.00  200.0 / 20.0 / 20.0 / "
                     "20.0 / 20.0\n"
                     "  Optimization  10  50.00 / 5.0 / 5.0 / 5.0 / 5.00  50.0 / 5.0 / 5.0 / 5.0 "
                     "/ 5.0\n"),
        "paddle-profiler", 0);
    assert_fact(facts, "dataloader_frac", 0.4);
    assert_fact(facts, "gpu_busy_frac", 0.35);
    tv_arena_close(a);
}

static void timers_keep_inf_out(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_note *facts = sight(
        sights_of(a, "=====================Perf Summary=====================\n"
                     "Time Unit: s, IPS Unit: images/s\n"
                     "|                 |       avg       |       max       |       min       |\n"
                     "|    batch_cost   |     0.10000     |     0.20000     |       inf       |\n"
                     "|       ips       |    640.00000    |    700.00000    |       inf       |\n"),
        "paddle-profiler", 0);
    assert_fact(facts, "batch_cost_avg_s", 0.1);
    assert_fact(facts, "batch_cost_min_s", NO);
    assert_word(facts, "min_batch_cost", "inf");
    assert_word(facts, "ips_unit", "images/s");
    assert_fact(facts, "reader_ratio_frac", NO);
    tv_arena_close(a);
}

static void the_old_report_is_read(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_note *facts = sight(
        sights_of(
            a, "------------------------->     Profiling Report     <-------------------------\n\n"
               "Place: All\nTime unit: ms\n"
               "Sorted by total time in descending order in the same thread\n\n"
               "GpuMemcpy                Calls: 30          Total: 6.28573     Ratio: 18.2%\n"
               "  GpuMemcpySync          Calls: 5           Total: 3.1         Ratio: 9.0%\n\n"
               "Event             Calls  Total    CPU Time (Ratio)     GPU Time (Ratio)      Min. "
               "Max.  Ave.  Ratio.\n"
               "thread0::conv2d   8      129.406  0.304303 (0.002352)  129.101946 (0.997648)  0.29 "
               "31.2  16.1  0.55\n"
               "thread0::feed     8      10.0     0.1 0.3 0.2 0.05\n"),
        "paddle-profiler", 0);
    assert_word(facts, "format", "1.x");
    assert_fact(facts, "report.gpumemcpysync.total_s", 3.1e-3);
    assert_fact(facts, "report.gpumemcpy.frac", 0.182);
    assert_fact(facts, "events.0.gpu_s", 0.129101946);
    assert_fact(facts, "events.0.frac", 0.55);
    assert_fact(facts, "events.1.avg_s", 0.2e-3);
    tv_arena_close(a);
}

static void a_second_run_is_another_sighting(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene = sights_of(
        a, "====Perf Summary====\nReader Ratio: 38.3%\n====Perf Summary====\nReader Ratio: 1.1%\n");
    assert_int_equal(sights_n(scene, "paddle-profiler"), 2);
    assert_fact(sight(scene, "paddle-profiler", 0), "reader_ratio_frac", 0.383);
    assert_fact(sight(scene, "paddle-profiler", 1), "reader_ratio_frac", 0.011);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torch_tables_are_read),
        cmocka_unit_test(cells_without_numbers_are_unknown),
        cmocka_unit_test(footers_belong_to_their_table),
        cmocka_unit_test(prose_is_no_table),
        cmocka_unit_test(lightning_tables_are_read),
        cmocka_unit_test(paddle_views_are_read),
        cmocka_unit_test(older_paddle_views_are_read),
        cmocka_unit_test(timers_keep_inf_out),
        cmocka_unit_test(the_old_report_is_read),
        cmocka_unit_test(a_second_run_is_another_sighting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
