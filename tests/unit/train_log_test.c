/* Logs of trainings: every dialect's line, and what a run of them adds up to. */
#include "sights.h"

typedef struct line_case {
    const char *line;
    const char *dialect;
    double data_s, step_s, samples_per_s, mem_bytes;
} line_case;

#define NO ((double)NAN)
#define MIB 1048576.0

static const line_case lines[] = {
    {"2021-05-01 12:00:00,123 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.978e-03, eta: 1 day, "
     "2:02:14, time: 0.384, data_time: 0.050, memory: 3900, loss: 1.2",
     "mmengine", 0.05, 0.384, NO, 3900 * MIB},
    {"08/01 12:00:00 - mmengine - INFO - Epoch(train)  [1][  50/7330]  lr: 2.0e-03  eta: 12:00:00  "
     "time: 0.4113  data_time: 0.0102  memory: 6320  loss: 0.9",
     "mmengine", 0.0102, 0.4113, NO, 6320 * MIB},
    {"{\"lr\": 0.002, \"data_time\": 0.0102, \"loss\": 1.1, \"time\": 0.4113, \"epoch\": 1, "
     "\"memory\": 6320, \"step\": 50}",
     "mmengine", 0.0102, 0.4113, NO, 6320 * MIB},
    {"[06/01 12:00:00 d2.utils.events]:  eta: 1:02:03  iter: 19  total_loss: 5.2  time: 0.2137  "
     "last_time: 0.2100  data_time: 0.0123  last_data_time: 0.0035  lr: 0.0001  max_mem: 3500M",
     "detectron2", 0.0123, 0.2137, NO, 3500 * MIB},
    {"eta: 2:00:00  iter: 20  loss: 1.0 (1.1)  time: 0.3010 (0.3500)  data: 0.0080 (0.0200)  lr: "
     "0.002  max mem: 3501",
     "torchvision", 0.02, 0.35, NO, 3501 * MIB},
    {"Epoch: [0]  [  10/7329]  eta: 2:10:30  lr: 0.000200  loss: 2.0 (3.0)  time: 0.6010  data: "
     "0.0080  max mem: 3500",
     "torchvision", 0.008, 0.601, NO, 3500 * MIB},
    {"Epoch: [0][  10/5005]\tTime  0.412 ( 1.234)\tData  0.001 ( 0.400)\tLoss 6.9e+00 (7.0e+00)",
     "torch-example", 0.4, 1.234, NO, NO},
    {"Epoch: [0][0/2228]\tTime 1.500s (1.600s)\tSpeed 21.3 samples/s\tData 0.900s (0.800s)\tLoss 1",
     "torch-example", 0.8, 1.6, 21.3, NO},
    {"Train: 0 [  50/1251 (  4%)]  Loss: 6.93 (6.93)  Time: 0.412s,  620.10/s  (0.430s, 595.30/s)  "
     "LR: 1.000e-05  Data: 0.012 (0.034)",
     "timm", 0.034, 0.43, 620.1, NO},
    {"Train: [0/300][0/1251]\teta 12:00 lr 0.000001\t time 0.5000 (0.8000)\tloss 6.9 (6.9)\tmem "
     "10000MB",
     "swin", NO, 0.8, NO, 10000 * MIB},
    {"Train Epoch: 0 [ 512/10000 (5%)] Data (t): 0.012 Batch (t): 0.812, 123.4/s, 61.7/s/gpu LR: 1",
     "open-clip", 0.012, 0.812, 123.4, NO},
    {"[05/01 12:00:00] ppdet.engine INFO: Epoch: [0] [  20/1222] learning_rate: 0.000333 loss: 1.2 "
     "eta: 3:14:12 batch_cost: 0.6234 data_cost: 0.3012 ips: 12.8322 images/s, max_mem_reserved: "
     "8000 MB, max_mem_allocated: 6000 MB",
     "paddle", 0.3012, 0.6234, 12.8322, 6000 * MIB},
    {"[2022/08/08 16:28:28] ppocr INFO: epoch: [1/200], global_step: 10, lr: 0.000006, loss: 1.87, "
     "avg_reader_cost: 0.28200 s, avg_batch_cost: 0.82318 s, avg_samples: 8.0, ips: 9.71838 "
     "samples/s, eta: 0:51:59",
     "paddle", 0.282, 0.82318, 9.71838, NO},
    {"[2021/02/23 22:52:57] root INFO: epoch: [5/500], iter: 11550, lr: 0.001000, loss: 4.88, "
     "reader_cost: 5.33854 s, batch_cost: 5.97875 s, samples: 960, ips: 16.05686",
     "paddle", 5.33854, 5.97875, 16.05686, NO},
    {"[2022/01/01 10:00:00] ppcls INFO: [Train][Epoch 1/120][Iter: 10/1252]lr(LinearWarmup): 0.01, "
     "loss: 6.9, batch_cost: 0.58204s, reader_cost: 0.43212, ips: 109.9 samples/s, eta: 1:00",
     "paddle", 0.43212, 0.58204, 109.9, NO},
    {"2022-01-01 10:00:00 [INFO]\t[TRAIN] epoch: 1, iter: 10/1000, loss: 1.2, lr: 0.01, "
     "batch_cost: "
     "0.3123, reader_cost: 0.1011, ips: 12.8 samples/sec | ETA 00:05:09",
     "paddle", 0.1011, 0.3123, 12.8, NO},
    {"epoch:[  1/80 ] train step:20   loss: 5.9 lr: 0.01 batch_cost: 0.51 sec, reader_cost: 0.31 "
     "sec, ips: 31.2 instance/sec, eta: 1:00",
     "paddle", 0.31, 0.51, 31.2, NO},
    {" reader_cost: 0.01236 s batch_cost: 0.03228 s ips: 30.982 samples/s", "paddle", 0.01236,
     0.03228, 30.982, NO},
    {"Epoch: 1, Iter: 10/100, Loss VisionLAN: 0.1, avg_reader_cost: 0.2, avg_batch_cost: 0.5, "
     "avg_ips: 64.0",
     "paddle", 0.2, 0.5, 64, NO},
    {"[deepspeed] epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=220.5, "
     "CurrSamplesPerSec=222.8, MemAllocated=0.5GB, MaxMemAllocated=1.36GB",
     "deepspeed", NO, NO, 222.8, 0.5 * 1073741824.0},
    {"[2024-06-21 10:50:42,168] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: 100.0 | "
     "bwd: 200.0 | bwd_inner: 150.0 | bwd_allreduce: 50.0 | step: 20.0",
     "deepspeed", NO, 0.32, NO, NO},
    {" iteration       10/    1000 | consumed samples:          160 | elapsed time per iteration "
     "(ms): 500.0 | learning rate: 0.0 | global batch size:    16 | loss scale: 8388608.0 |",
     "megatron", NO, 0.5, 32, NO},
    {"[2024-06-21 10:50:42][INFO][training:1609] -  iteration=       1/  317892 | "
     "elapsed_time_per_iteration_ms=2000.0 | global_batch_size=   64 | lm_loss=11",
     "megatron", NO, 2, 32, NO},
    {"[Rank 0] (after 10 iterations) memory (MB) | allocated: 1000.5 | max allocated: 2000 | "
     "reserved: 2100.0 | max reserved: 2100.0",
     "megatron", NO, NO, NO, 1000.5 * MIB},
    {"{'train_runtime': 123.4, 'train_samples_per_second': 81.0, 'train_steps_per_second': 2.5, "
     "'train_loss': 0.5, 'epoch': 3.0}",
     "transformers", NO, 0.4, 81, NO},
    {"  train_samples_per_second =     81.25", "transformers", NO, NO, 81.25, NO},
    {"{'loss': 1.2, 'epoch': 0.1, 'memory(GiB)': 14.5, 'train_speed(iter/s)': 0.5}", "transformers",
     NO, 2, NO, 14.5 * 1073741824.0},
    {"step: 10  loss: 7.2000  memory: 20.50GiB(25.4%)  tps: 3,210  mfu: 40.10%", "torchtitan", NO,
     NO, NO, 20.5 * 1073741824.0},
    {"iter 10: loss 4.2000, time 123.45ms, mfu 12.30%", "nanogpt", NO, 0.12345, NO, NO},
    {"  3/300   3.52G   0.0423   0.0512   23   640: 100%|####| 925/925 [02:10<00:00, 8.0it/s]",
     "ultralytics", NO, 0.125, NO, 3.52e9},
    {"Epoch 0:  10%|#         | 100/1000 [00:30<04:30,  4.00it/s, loss=2.1, v_num=0]",
     "progress-bar", NO, 0.25, NO, NO},
    {"Epoch 3:  10%|#         | 100/1000 [00:30<04:30,  2.50s/it, v_num=0]", "progress-bar", NO,
     2.5, NO, NO},
    {"1875/1875 [==============================] - 3s 2ms/step - loss: 0.29", "keras", NO, 0.002,
     NO, NO},
};

static void each_line_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        tv_arena *a = test_arena();
        const tv_note *facts = sight(sights_of(a, lines[i].line), "train-log", 0);
        assert_word(facts, "dialect", lines[i].dialect);
        assert_fact(facts, "data_s", lines[i].data_s);
        assert_fact(facts, "step_s", lines[i].step_s);
        assert_fact(facts, "samples_per_s", lines[i].samples_per_s);
        assert_fact(facts, "mem_last_bytes", lines[i].mem_bytes);
        tv_arena_close(a);
    }
}

/* Prefixes of loggers and containers change nothing. */
static void prefixes_change_nothing(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"trainer-0  | ", "[rank3]: ", "1: ", "\x1b[32m",
                                           "2024-05-18T19:02:39.123456789Z "};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
            if (strcmp(lines[k].dialect, "ultralytics") == 0)
                continue; /* a bare column of numbers */
            tv_arena *a = test_arena();
            tv_buf b = tv_buf_in(a);
            tv_puts(&b, prefixes[i]);
            tv_puts(&b, lines[k].line);
            tv_puts(&b, "\r\n");
            const tv_note *facts = sight(sights_of(a, tv_cstr(a, tv_buf_str(&b))), "train-log", 0);
            assert_fact(facts, "step_s", lines[k].step_s);
            assert_fact(facts, "data_s", lines[k].data_s);
            tv_arena_close(a);
        }
}

static void other_lines_are_none(void **state)
{
    (void)state;
    static const char *const others[] = {
        "Epoch(val) [1][ 50/100]  eta: 0:00:10  time: 0.05  data_time: 0.04  memory: 900",
        "Test: [ 0/391]\tTime  1.412 ( 1.412)\tLoss 1.1\tData 1.0 (1.0) Epoch: [",
        "{\"mode\": \"val\", \"epoch\": 1, \"data_time\": 0.2, \"time\": 0.3, \"memory\": 12}",
        "Downloading: 100%|####| 10.2M/10.2M [00:01<00:00, 9.1MB/s]",
        "Map: 100%|####| 10000/10000 [00:05<00:00, 2000.00 examples/s]",
        "{'eval_loss': 1.2, 'eval_samples_per_second': 100.0, 'eval_steps_per_second': 3.1}",
        "the data: time: eta: nothing",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        tv_arena *a = test_arena();
        assert_int_equal(sights_n(sights_of(a, others[i]), "train-log"), 0);
        tv_arena_close(a);
    }
}

/* The share is that of the sums: a loader that delivers in bursts has a median wait of nothing. */
static void bursts_are_summed(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_buf b = tv_buf_in(a);
    for (unsigned i = 0; i < 40; i++) {
        tv_puts(&b, "Epoch: [0]  [  ");
        tv_put_u64(&b, i * 10);
        tv_puts(&b, "/900]  eta: 0:10:30  loss: 2.0  time: ");
        tv_puts(&b, i % 4 ? "0.5000  data: 0.0000" : "2.5000  data: 2.0000");
        tv_puts(&b, "  max mem: 3500\n");
    }
    const tv_note *facts = sight(sights_of(a, tv_cstr(a, tv_buf_str(&b))), "train-log", 0);
    assert_fact(facts, "moments", 40);
    assert_fact(facts, "data_s", 0);
    /* 9 bursts and 30 others, the first moment left out */
    assert_fact(facts, "data_frac", 9 * 2.0 / (9 * 2.5 + 30 * 0.5));
    tv_arena_close(a);
}

static void memory_growth_is_told_from_warming_up(void **state)
{
    (void)state;
    for (unsigned grows = 0; grows < 2; grows++) {
        tv_arena *a = test_arena();
        tv_buf b = tv_buf_in(a);
        for (unsigned i = 0; i < 60; i++) {
            tv_puts(&b, "[06/01 12:00:00 d2.utils.events]:  eta: 1:02:03  iter: ");
            tv_put_u64(&b, i * 20);
            tv_puts(&b, "  total_loss: 5.2  time: 0.2  data_time: 0.01  lr: 0.0001  max_mem: ");
            tv_put_u64(&b, grows ? 3000 + 40 * i : i < 5 ? 2000 + 300 * i : 3500);
            tv_puts(&b, "M\n");
        }
        const tv_note *facts = sight(sights_of(a, tv_cstr(a, tv_buf_str(&b))), "train-log", 0);
        assert_int_equal(tv_noted_bool(facts, "mem_growing", !grows), grows);
        if (grows)
            assert_fact(facts, "mem_growth_bytes_per_step", 2 * MIB);
        tv_arena_close(a);
    }
}

static void runs_are_parted(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_buf b = tv_buf_in(a);
    for (unsigned run = 0; run < 2; run++) {
        tv_puts(&b, run ? "world_size=8\n" : "world_size=1\n");
        for (unsigned i = 1; i < 30; i++) {
            tv_puts(&b, "[2022/08/08 16:28:28] ppocr INFO: epoch: [1/200], global_step: ");
            tv_put_u64(&b, i * 10);
            tv_puts(&b,
                    ", avg_reader_cost: 0.01 s, avg_batch_cost: 0.5 s, avg_samples: 8.0, ips: ");
            tv_puts(&b, run ? "100.0 samples/s\n" : "16.0 samples/s\n");
        }
    }
    const tv_scene *scene = sights_of(a, tv_cstr(a, tv_buf_str(&b)));
    assert_int_equal(sights_n(scene, "train-log"), 2);
    assert_fact(sight(scene, "train-log", 0), "samples_per_s", 16);
    assert_fact(sight(scene, "train-log", 1), "samples_per_s", 100);
    assert_fact(sight(scene, "train-log", 0), "gpus", 1);
    assert_fact(sight(scene, "train-log", 1), "gpus", 8);
    tv_arena_close(a);
}

/* PaddleRec's logger forgets line ends. */
static void glued_lines_are_parted(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_scene *scene = sights_of(
        a,
        "epoch: 0, batch_id: 10, avg_reader_cost: 0.10 sec, avg_batch_cost: 1.0 sec, "
        "avg_samples: 512.0, ips: 512.0 ins/s2022-07-27 17:44:38,114 - INFO - epoch: 0, batch_id: "
        "20, avg_reader_cost: 0.30 sec, avg_batch_cost: 1.0 sec, avg_samples: 512.0, ips: 512.0 "
        "ins/s\n");
    const tv_note *facts = sight(scene, "train-log", 0);
    assert_fact(facts, "moments", 2);
    assert_fact(facts, "reader_ratio_frac", 0.2);
    tv_arena_close(a);
}

static void long_runs_stay_small(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_buf b = tv_buf_in(a);
    for (unsigned i = 0; i < 20000; i++) {
        tv_puts(&b, "iter ");
        tv_put_u64(&b, i);
        tv_puts(&b, ": loss 4.2, time 100.00ms, mfu 12.30%\n");
    }
    const tv_note *facts = sight(sights_of(a, tv_cstr(a, tv_buf_str(&b))), "train-log", 0);
    assert_fact(facts, "moments", 20000);
    assert_fact(facts, "step_s", 0.1);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_read),
        cmocka_unit_test(prefixes_change_nothing),
        cmocka_unit_test(other_lines_are_none),
        cmocka_unit_test(bursts_are_summed),
        cmocka_unit_test(memory_growth_is_told_from_warming_up),
        cmocka_unit_test(runs_are_parted),
        cmocka_unit_test(glued_lines_are_parted),
        cmocka_unit_test(long_runs_stay_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
