/* iostat of every layout, vmstat, top, free, sums of nsys, launch's gpu.log. */
#include "sights.h"

#define NO ((double)NAN)

typedef struct iostat_case {
    const char *text;
    double samples, r_s, r_bytes_per_s, wait_s, queue, util;
} iostat_case;

static const iostat_case iostats[] = {
    /* sysstat 10, megabytes, decimal comma */
    {"Device:         rrqm/s   wrqm/s     r/s     w/s    rMB/s    wMB/s avgrq-sz avgqu-sz   await "
     "r_await w_await  svctm  %util\n"
     "sda               1,00     0,50  118,50    2,00     7,00     0,02   118,10     1,92   15,90  "
     " "
     "16,10    4,00   8,10  97,60\n",
     1, 118.5, 7 * 1048576.0, 0.0161, 1.92, 0.976},
    /* sectors, no r_await */
    {"Device:    rrqm/s wrqm/s   r/s   w/s  rsec/s  wsec/s avgrq-sz avgqu-sz   await  svctm  "
     "%util\n"
     "sda          0.00   0.00 10.00  0.00  100.00    0.00    10.00     0.50    5.00   1.00  "
     "10.00\n",
     1, 10, 51200, NO, 0.5, 0.1},
    /* 11.6 to 12.0 */
    {"Device            r/s     w/s     rkB/s     wkB/s   rrqm/s   wrqm/s  %rrqm  %wrqm r_await "
     "w_await aqu-sz rareq-sz wareq-sz  svctm  %util\n"
     "sda             10.00    0.00    100.00      0.00     0.00     0.00   0.00   0.00    2.00    "
     "0.00   0.02    10.00     0.00   1.00   1.00\n",
     1, 10, 102400, 0.002, 0.02, 0.01},
    /* -h of sysstat 12: units in the cells, the name last, three tables */
    {"     r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device\n"
     "   10.00      1.5M     0.00   0.0%    2.00   153.6k sda\n\n"
     "     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz Device\n"
     "    0.00      0.0k     0.00   0.0%    0.00     0.0k sda\n\n"
     "  aqu-sz  %util Device\n"
     "    0.02   1.0% sda\n",
     1, 10, 1.5 * 1048576, 0.002, 0.02, 0.01},
    /* -h of sysstat 10 and 11: the name on a line of its own */
    {"Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   await "
     "r_await w_await  svctm  %util\n"
     "sda\n"
     "                  0.00     0.50   10.00    2.00   100.00     0.02   118.10     1.92   15.90  "
     " "
     "2.00    4.00   8.10  50.00\n",
     1, 10, 102400, 0.002, 1.92, 0.5},
    /* the first of two reports is since boot */
    {"Linux 5.15.0 (host) \t01/02/24 \t_x86_64_\t(8 CPU)\n\n"
     "Device  r/s  rkB/s  r_await  aqu-sz  %util\n"
     "sda  1.00  10.00  0.10  0.01  0.10\n\n"
     "Device  r/s  rkB/s  r_await  aqu-sz  %util\n"
     "sda  50.00  100.00  9.00  1.50  80.00\n",
     2, 50, 102400, 0.009, 1.5, 0.8},
    /* JSON */
    {"{\"sysstat\": {\"hosts\": [{\"nodename\": \"n\", \"number-of-cpus\": 8, \"statistics\": [\n"
     "{\"disk\": [{\"disk_device\": \"sda\", \"r/s\": 1.0, \"rkB/s\": 1.0, \"r_await\": 1.0, "
     "\"aqu-sz\": 1.0, \"util\": 1.0}]},\n"
     "{\"disk\": [{\"disk_device\": \"sda\", \"r/s\": 10.0, \"rkB/s\": 20.0, \"r_await\": 9.0, "
     "\"aqu-sz\": 1.5, \"util\": 50.0}]}]}]}}\n",
     2, 10, 20480, 0.009, 1.5, 0.5},
};

static void every_iostat_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof iostats / sizeof *iostats; i++) {
        tv_arena *a = test_arena();
        const iostat_case *c = &iostats[i];
        const tv_note *facts = sight(sights_of(a, c->text), "iostat", 0);
        assert_fact(facts, "samples", c->samples);
        assert_fact(facts, "sda.r_s", c->r_s);
        assert_fact(facts, "sda.r_bytes_per_s", c->r_bytes_per_s);
        assert_fact(facts, "sda.r_await_s", c->wait_s);
        assert_fact(facts, "sda.aqu_sz", c->queue);
        assert_fact(facts, "sda.util_frac", c->util);
        tv_arena_close(a);
    }
}

static void skipping_the_first_report_is_seen(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_note *facts =
        sight(sights_of(a, "$ iostat -xmy 1 1\n"
                           "Linux 5.15.0 (host) \t01/02/24 \t_x86_64_\t(8 CPU)\n\n"
                           "Device  r/s  rMB/s  r_await  aqu-sz  %util\n"
                           "sda  50.00  1.00  9.00  1.50  80.00\n"),
              "iostat", 0);
    assert_false(tv_noted_bool(facts, "since_boot", false));
    assert_fact(facts, "cpus", 8);
    tv_arena_close(a);
}

static void the_host_is_read(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene = sights_of(
        a, "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n"
           " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
           " 2  0      0 120501  10501 330501    0    0    10    20  100  200  3  1 96  0  0\n"
           "14  2      0 120501  10501 330501    0    4 90000    20 9000 2000 80 10  2  8  0\n"
           "16  2      0 120501  10501 330501    0    0 90000    20 9000 2000 82  8  2  8  0\n\n"
           "top - 10:11:12 up 3 days,  2:03,  2 users,  load average: 15.20, 12.10, 8.00\n"
           "%Cpu(s): 12.5 us,  3.1 sy,  0.0 ni, 80.2 id,  4.2 wa,  0.0 hi,  0.0 si,  0.0 st\n"
           "               total        used        free      shared  buff/cache   available\n"
           "Mem:            31Gi        12Gi       1.0Gi       512Mi        18Gi        17Gi\n");
    assert_fact(sight(scene, "vmstat", 0), "iowait_frac", 0.08);
    assert_fact(sight(scene, "vmstat", 0), "running", 15);
    assert_fact(sight(scene, "vmstat", 0), "swap_out_bytes_per_s", 2048);
    assert_fact(sight(scene, "cpu-load", 0), "idle_frac", 0.802);
    assert_fact(sight(scene, "cpu-load", 0), "load_1min", 15.2);
    assert_fact(sight(scene, "free", 0), "mem_total_bytes", 31 * 1073741824.0);
    assert_fact(sight(scene, "free", 0), "shmem_bytes", 512 * 1048576.0);
    tv_arena_close(a);
}

static void sums_of_nsys_are_read(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_note *facts = sight(
        sights_of(a,
                  "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev "
                  "(ns),Name\n"
                  "80.0,400000000,1000,4.0,4,4,4,0,\"void gemm_kernel<1, 2>(int, int)\"\n"
                  "20.0,100000000,1000,1.0,1,1,1,0,vectorized_elementwise_kernel\n\n"
                  "Time(%),Total Time (ns),Num Calls,Average,Minimum,Maximum,Name\n"
                  "90.0,900000000,2000,1,1,1,cudaLaunchKernel\n\n"
                  " Total (MB)  Count  Avg (MB)  Min (MB)  Max (MB)       Operation\n"
                  " ----------  -----  --------  --------  --------  ------------------\n"
                  "    400.000     10    40.000    40.000    40.000  [CUDA memcpy HtoD]\n"),
        "nsys", 0);
    assert_fact(facts, "kernels", 2000);
    assert_fact(facts, "kernel_s", 0.5);
    assert_fact(facts, "gemm_share", 0.8);
    assert_fact(facts, "launch_s", 0.9);
    assert_fact(facts, "htod_bytes", 4e8);
    tv_arena_close(a);
}

static void the_launchers_log_is_read(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_note *facts =
        sight(sights_of(a, "index,utilization_gpu,memory_total,memory_used,memory_free,timestamp\n"
                           "0,0,32510,3,32507,2023/05/04 10:11:12.345\n"
                           "1,97,32510,21544,10966,2023/05/04 10:11:12.345\n"
                           "0,98,32510,21544,10966,2023/05/04 10:11:42.345\n"),
              "gpu-log", 0);
    assert_fact(facts, "gpus.0.util_frac", 0.49);
    assert_fact(facts, "gpus.0.idle_frac", 0.5);
    assert_fact(facts, "gpus.0.mem_used_bytes", 21544 * 1048576.0);
    assert_fact(facts, "gpus.1.samples", 1);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_iostat_is_read),
        cmocka_unit_test(skipping_the_first_report_is_seen),
        cmocka_unit_test(the_host_is_read),
        cmocka_unit_test(sums_of_nsys_are_read),
        cmocka_unit_test(the_launchers_log_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
