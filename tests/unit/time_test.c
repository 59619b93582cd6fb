/* Time of a step: invariants on a small decoder, plausibility on a known card, the balance. */
#include "testing.h"

#include "desc/emit.h"
#include "predict/predict.h"

/* ---- a decoder written by hand ---- */

typedef struct sizes {
    double hidden, heads, kv_heads, inter, vocab;
    size_t layers;
} sizes;

static const sizes seven_b = {4096, 32, 32, 11008, 32000, 32};
static const sizes small = {512, 8, 8, 2048, 8000, 4};

static tv_val linear(tv_emit *e, const char *name, double in, double out, bool row, tv_val x)
{
    const tv_linear l = {.name = name, .in = in, .out = out, .shard = TV_SHARD_TENSOR, .row = row};
    return tv_emit_linear(e, &l, x);
}

static tv_val layer(tv_emit *e, const sizes *s, tv_val x)
{
    const double h = s->hidden, d = h / s->heads;
    x = tv_emit_block(e, "layer", TV_STAGE_BODY, x);
    tv_val n = tv_emit_norm(e, "norm1", TV_NORM_RMS, x, h, true, false);
    const tv_val q = linear(e, "q", h, h, false, n);
    const tv_val k = linear(e, "k", h, d * s->kv_heads, false, n);
    const tv_val v = linear(e, "v", h, d * s->kv_heads, false, n);
    const tv_attention t = {.name = "attention",
                            .heads = s->heads,
                            .kv_heads = s->kv_heads,
                            .head_dim = d,
                            .causal = true,
                            .dropout = -1,
                            .shard = TV_SHARD_TENSOR};
    const tv_val o = linear(e, "o", h, h, true, tv_emit_attention(e, &t, q, k, v));
    x = tv_emit_add(e, "add1", x, o);
    n = tv_emit_norm(e, "norm2", TV_NORM_RMS, x, h, true, false);
    const tv_val gate =
        tv_emit_act(e, "act", TV_ACT_SILU, linear(e, "gate", h, s->inter, false, n));
    const tv_val up = linear(e, "up", h, s->inter, false, n);
    x = tv_emit_add(e, "add2", x,
                    linear(e, "down", s->inter, h, true, tv_emit_mul(e, "mul", gate, up)));
    if (e->set->phase != TV_PHASE_TRAIN)
        tv_emit_cache(e, 2 * d * s->kv_heads, s->kv_heads, 0, 0);
    return tv_emit_end(e, x);
}

static tv_graph *decoder(tv_arena *a, const tv_setting *set, const sizes *s)
{
    tv_emit *e = tv_new(a, tv_emit, 1);
    *e = tv_emit_open(a, set);
    const double tokens = tv_emit_tokens(e);
    tv_val x = tv_emit_input(e, "ids", tokens, TV_I64);
    (void)tv_emit_block(e, "embed", TV_STAGE_EMBED, tv_no_val);
    x = tv_emit_embedding(e, "embedding", x, s->vocab, s->hidden, tv_form_per_batch(tokens));
    x = tv_emit_end(e, x);
    tv_emit_order(e, 0, 1);
    x = layer(e, s, x);
    tv_emit_order(e, 1, s->layers);
    x = tv_emit_block(e, "head", TV_STAGE_HEAD, x);
    e->role = TV_WEIGHT_HEAD;
    tv_val y = linear(e, "lm_head", s->hidden, s->vocab, false, x);
    tv_emit_cross_entropy(e, "loss", y, s->vocab, tokens);
    (void)tv_emit_end(e, y);
    tv_emit_order(e, 2, 1);
    return tv_emit_close(e);
}

/* ---- cards and cases ---- */

static tv_fact fact(double v)
{
    return tv_fact_of(v, TV_CATALOG, TV_S("test"));
}

static tv_device card(double bf16, double bandwidth, int capability)
{
    tv_device d = {.slug = TV_S("card"), .compute_capability = capability};
    d.rate_flops[TV_RATE_BF16_TENSOR] = fact(bf16);
    d.rate_flops[TV_RATE_FP16_TENSOR] = fact(bf16);
    d.rate_flops[TV_RATE_FP32] = fact(bf16 / 16);
    d.mem_bytes_per_s = fact(bandwidth);
    d.board_w = fact(400);
    d.pcie_gen = fact(4);
    d.pcie_lanes = fact(16);
    return d;
}

typedef struct bench {
    tv_arena *a;
    tv_device device;
    tv_machine machine;
    tv_model model;
    tv_setting set;
    tv_case c;
} bench;

static bench *case_of(tv_arena *a, const sizes *s, tv_task task, uint32_t batch, uint32_t seq)
{
    bench *b = tv_new(a, bench, 1);
    b->a = a;
    b->device = card(312e12, 2039e9, 80);
    b->machine = (tv_machine){.device = &b->device, .gpus = 1, .nodes = 1};
    b->machine.intra = (tv_link){.kind = TV_LINK_NVSWITCH, .bytes_per_s = fact(300e9)};
    b->machine.inter = (tv_link){.kind = TV_LINK_NETWORK, .bytes_per_s = fact(25e9)};
    tv_policy p = {.precision = TV_PRECISION_BF16,
                   .param = TV_BF16,
                   .base = TV_BF16,
                   .compute = TV_BF16,
                   .stream = TV_BF16,
                   .grad = TV_BF16,
                   .state = TV_F32,
                   .kv = TV_BF16};
    const bool trains = task == TV_TASK_TRAIN;
    b->set = (tv_setting){.phase = trains ? TV_PHASE_TRAIN : TV_PHASE_PREFILL,
                          .policy = p,
                          .kernel = TV_KERNEL_FLASH,
                          .seq = seq,
                          .dropout = -1,
                          .trainable = trains ? TV_TRAIN_ALL : TV_TRAIN_NONE};
    b->c = (tv_case){.model = &b->model, .machine = &b->machine, .policy = p, .setting = b->set};
    b->c.job = (tv_job){.task = task, .batch = batch, .seq = seq, .gen = 128, .accum = 1};
    b->c.graph = decoder(a, &b->set, s);
    if (!trains) {
        tv_setting *decode = tv_new(a, tv_setting, 1);
        *decode = b->set;
        decode->phase = TV_PHASE_DECODE;
        b->c.decode = decoder(a, decode, s);
    }
    return b;
}

static tv_time time_of(const bench *b)
{
    tv_time t;
    tv_predict_time(b->a, &b->c, &(tv_memory){0}, &t);
    return t;
}

static void assert_sums(const tv_time *t)
{
    const double sum =
        t->compute_s + t->launch_s + t->optimizer_s + t->comm_exposed_s + t->data_exposed_s;
    assert_close(sum, t->step_s.v, 1e-9);
    double kinds = 0;
    for (int k = 0; k < TV_OP_KIND_COUNT; k++)
        kinds += t->by_kind_s[k];
    assert_close(t->math_bound_s + t->memory_bound_s, kinds, 1e-9);
}

/* ---- tests ---- */

/* 7 B in pure bf16, eager with flash attention: published MFU of such runs is 0.35-0.6 (A100). */
static void training_is_plausible(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_time t = time_of(case_of(a, &seven_b, TV_TASK_TRAIN, 4, 2048));
    assert_sums(&t);
    print_message("7B, 4 x 2048, A100: %.3f s, MFU %.2f, GEMM share %.2f, host wait %.3f\n",
                  t.step_s.v, t.mfu.v, t.gemm_share, t.launch_s);
    assert_true(t.mfu.v > 0.3 && t.mfu.v < 0.75);
    assert_true(t.step_s.lo < t.step_s.v && t.step_s.v < t.step_s.hi);
    /* 6·P·tokens plus attention */
    assert_close(t.flop, 6 * 6.6e9 * 8192, 0.15);
    tv_arena_close(a);
}

static void decoding_is_plausible(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    bench *b = case_of(a, &seven_b, TV_TASK_INFER, 1, 512);
    b->c.job.engine = TV_ENGINE_VLLM;
    const tv_time t = time_of(b);
    print_message("7B decode on A100, vLLM: %.1f ms a token; first %.1f ms\n", t.itl_s.v * 1e3,
                  t.ttft_s.v * 1e3);
    /* 13 GB of weights over 2.04 TB/s is 6.5 ms; published: 0.63 of that rate */
    assert_true(t.itl_s.v > 6.5e-3 && t.itl_s.v < 14e-3);
    b->c.job.engine = TV_ENGINE_EAGER;
    const tv_time eager = time_of(b);
    print_message("eager: %.1f ms a token\n", eager.itl_s.v * 1e3);
    assert_true(eager.itl_s.v > 12e-3 && eager.itl_s.v < 40e-3);
    tv_arena_close(a);
}

static void faster_hardware_is_never_slower(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    static const uint32_t batches[] = {1, 3, 8, 32};
    for (size_t i = 0; i < 4; i++) {
        bench *b = case_of(a, &small, TV_TASK_TRAIN, batches[i], 512);
        b->machine.gpus = 8;
        const double base = time_of(b).step_s.v;
        b->device.mem_bytes_per_s.v *= 1.3;
        assert_true(time_of(b).step_s.v <= base * 1.0000001);
        b->device.mem_bytes_per_s.v /= 1.3;
        b->device.rate_flops[TV_RATE_BF16_TENSOR].v *= 1.3;
        b->device.board_w.v *= 1.3;
        assert_true(time_of(b).step_s.v <= base * 1.0000001);
        b->machine.intra.bytes_per_s.v *= 1.3;
        assert_true(time_of(b).step_s.v <= base * 1.0000001);
    }
    tv_arena_close(a);
}

static void more_work_is_never_faster(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_time before = {0};
    for (uint32_t batch = 1; batch <= 64; batch *= 2) {
        const tv_time t = time_of(case_of(a, &small, TV_TASK_TRAIN, batch, 256));
        assert_sums(&t);
        assert_true(t.flop > before.flop);
        assert_true(t.step_s.v >= before.step_s.v * 0.999);
        before = t;
    }
    bench *b = case_of(a, &small, TV_TASK_TRAIN, 8, 256);
    const double none = time_of(b).step_s.v;
    b->c.job.recompute = TV_RECOMPUTE_SELECTIVE;
    const double selective = time_of(b).step_s.v;
    b->c.job.recompute = TV_RECOMPUTE_FULL;
    assert_true(none <= selective && selective <= time_of(b).step_s.v);
    tv_arena_close(a);
}

/* R081's setting: 8 cards, 102 MB; the ring's wire time is a lower bound of any answer. */
static void collectives_respect_the_wire(void **state)
{
    (void)state;
    const tv_link links[] = {
        {.kind = TV_LINK_NVSWITCH, .bytes_per_s = fact(300e9)},
        {.kind = TV_LINK_PCIE_P2P, .bytes_per_s = fact(31.5e9)},
        {.kind = TV_LINK_PCIE_HOST, .bytes_per_s = fact(31.5e9)},
        {.kind = TV_LINK_NETWORK, .bytes_per_s = fact(25e9)},
    };
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        double last = 0;
        for (double bytes = 256; bytes < 1e10; bytes *= 1.7) {
            const double s = tv_predict_collective(TV_COLL_ALL_REDUCE, bytes, 8, &links[i]);
            assert_true(s >= 1.75 * bytes / links[i].bytes_per_s.v * 0.95);
            assert_true(s >= last * 0.97); /* the table's protocols may cross, barely */
            last = s;
        }
        assert_true(tv_predict_collective(TV_COLL_ALL_REDUCE, 1e6, 1, &links[i]) == 0);
    }
}

static void data_can_hold_a_step_back(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    bench *b = case_of(a, &small, TV_TASK_TRAIN, 32, 128);
    const tv_disk disk = {.read_bytes_per_s = fact(100e6), .read_iops = fact(100)};
    b->machine.disk = &disk;
    b->c.job.sample_bytes = 500e3;
    b->c.job.samples = 1e6;
    const tv_time t = time_of(b);
    assert_sums(&t);
    assert_true(t.data_exposed_s > 0);
    tv_balance balance;
    tv_predict_balance(a, &b->c,
                       &(tv_memory){.verdict = TV_FITS, .total_bytes = 1, .capacity_bytes = 2}, &t,
                       &balance);
    assert_int_equal(balance.bottleneck, TV_BOUND_STORAGE);
    assert_close(balance.share_compute + balance.share_communication + balance.share_data, 1, 1e-9);
    assert_true(balance.gain_if_removed > 0);
    bool says_dali = false, says_vram = false;
    for (size_t i = 0; i < balance.n_advice; i++) {
        says_dali = says_dali || strcmp(balance.advice[i].id, "dali-still-reads") == 0;
        says_vram = says_vram || strcmp(balance.advice[i].id, "no-more-memory") == 0;
    }
    assert_true(says_dali && says_vram); /* R067, R029 */
    tv_arena_close(a);
}

/* What is exposed is part of what is sent; a slower link never helps; accumulation dilutes it. */
static void communication_is_hidden_or_shown(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    static const tv_strategy strategies[] = {TV_STRATEGY_DDP, TV_STRATEGY_ZERO1, TV_STRATEGY_ZERO3,
                                             TV_STRATEGY_FSDP, TV_STRATEGY_HSDP};
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        bench *b = case_of(a, &small, TV_TASK_TRAIN, 2, 256);
        b->c.job.strategy = strategies[i];
        b->machine.gpus = 8;
        b->machine.nodes = 2;
        const tv_time near = time_of(b);
        assert_true(near.comm_s > 0);
        assert_true(near.comm_exposed_s >= 0 && near.comm_exposed_s <= near.comm_s * 1.0000001);
        b->machine.inter.bytes_per_s = fact(1.25e9);
        const tv_time far = time_of(b);
        assert_true(far.comm_exposed_s >= near.comm_exposed_s);
        assert_true(far.samples_per_s.v <= near.samples_per_s.v);
        b->c.job.accum = 4;
        assert_true(time_of(b).samples_per_s.v >= far.samples_per_s.v * 0.999);
        assert_sums(&far);
    }
    tv_arena_close(a);
}

/* R060: the order of the remedies when the copy to the card binds. */
static void copy_remedies_stand_in_order(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    bench *b = case_of(a, &small, TV_TASK_TRAIN, 32, 128);
    const tv_time t = {.step_s = fact(1),
                       .compute_s = 0.3,
                       .math_bound_s = 0.3,
                       .copy_s = 1,
                       .data_s = 1,
                       .data_exposed_s = 0.7};
    tv_balance balance;
    tv_predict_balance(a, &b->c, &(tv_memory){0}, &t, &balance);
    assert_int_equal(balance.bottleneck, TV_BOUND_HOST_COPY);
    static const char *const want[] = {"pin", "memory-channels", "ddr5", "nvme-cache-copy",
                                       "faster-slot"};
    assert_int_equal(balance.n_advice, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(balance.advice[i].id, want[i]);
    assert_close(balance.gain_if_removed, 1 / 0.3 - 1, 1e-9);
    tv_arena_close(a);
}

/* R040: 72, 45 and 20 % of kernel time. */
static void density_has_three_grades(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    static const double shares[] = {0.72, 0.45, 0.20};
    static const tv_grade want[] = {TV_GRADE_GOOD, TV_GRADE_FAIR, TV_GRADE_POOR};
    for (size_t i = 0; i < 3; i++) {
        const tv_time t = {.step_s = fact(1), .gemm_share = shares[i]};
        tv_grades g;
        tv_predict_grades(a, &(tv_case){0}, &(tv_memory){0}, &t, &g);
        assert_int_equal(g.density, want[i]);
        assert_int_equal(g.vram, TV_GRADE_UNKNOWN);
    }
    tv_arena_close(a);
}

static void an_unknown_card_gets_no_time(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    bench *b = case_of(a, &small, TV_TASK_TRAIN, 1, 128);
    b->device.mem_bytes_per_s = (tv_fact){0};
    const tv_time t = time_of(b);
    assert_false(tv_known(t.step_s));
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_is_plausible),
        cmocka_unit_test(decoding_is_plausible),
        cmocka_unit_test(faster_hardware_is_never_slower),
        cmocka_unit_test(more_work_is_never_faster),
        cmocka_unit_test(collectives_respect_the_wire),
        cmocka_unit_test(data_can_hold_a_step_back),
        cmocka_unit_test(communication_is_hidden_or_shown),
        cmocka_unit_test(copy_remedies_stand_in_order),
        cmocka_unit_test(density_has_three_grades),
        cmocka_unit_test(an_unknown_card_gets_no_time),
    };
    return cmocka_run_group_tests_name("time", tests, NULL, NULL);
}
