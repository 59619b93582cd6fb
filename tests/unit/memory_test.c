/* The allocator's rules, and what must hold of every ledger whatever the model: parts sum, more
 * never needs less, recompute orders, sharding and pipelines shrink, accumulation keeps gradients.
 */
#include "testing.h"

#include "family/family.h"
#include "predict/ledger.h"
#include "predict/pool.h"
#include "predict/restate.h"
#include "read/builtin.h"

#define MIB 1048576.0

/* ---- the pool ---- */

typedef struct pool_case {
    tv_pool_kind kind;
    double request;
    double counted;  /* what the allocator counts */
    double reserved; /* after this one request */
} pool_case;

static void pools_round_as_their_frameworks(void **state)
{
    (void)state;
    static const pool_case cases[] = {
        {TV_POOL_NONE, 1000, 1024, 1024},
        {TV_POOL_EXACT, 1000, 1000, 1000},
        {TV_POOL_TORCH, 1, 512, 2 * MIB},
        {TV_POOL_TORCH, MIB, MIB, 2 * MIB},
        {TV_POOL_TORCH, MIB + 1, MIB + 512, 20 * MIB},
        {TV_POOL_TORCH, 19.5 * MIB, 20 * MIB, 20 * MIB}, /* the rest is under 1 MiB: not split */
        {TV_POOL_TORCH, 30 * MIB, 30 * MIB, 30 * MIB},
        {TV_POOL_TORCH, 30 * MIB + 1, 30 * MIB + 512, 32 * MIB}, /* cut: the rest is over 1 MiB */
        {TV_POOL_EXPANDABLE, 30 * MIB, 30 * MIB, 40 * MIB},
        {TV_POOL_PADDLE, 1000, 1024, 1024},
        {TV_POOL_PADDLE, 30 * MIB + 1, 30 * MIB + 256, 30 * MIB + 256},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_arena *a = test_arena();
        tv_pool *p = tv_pool_open(a, cases[i].kind);
        uint32_t block;
        const double got = tv_pool_alloc(p, cases[i].request, &block);
        assert_close(got, cases[i].counted, 1e-12);
        assert_close(tv_pool_reserved(p), cases[i].reserved, 1e-12);
        tv_pool_free(p, block, got);
        assert_true(fabs(tv_pool_allocated(p)) < 1);
        tv_arena_close(a);
    }
}

/* Freed neighbours join: what was cut into four serves one large request again. */
static void freed_blocks_join_and_are_used_again(void **state)
{
    (void)state;
    for (tv_pool_kind kind = TV_POOL_TORCH; kind <= TV_POOL_PADDLE; kind++) {
        tv_arena *a = test_arena();
        tv_pool *p = tv_pool_open(a, kind);
        uint32_t big, part[4];
        const double whole = tv_pool_alloc(p, 40 * MIB, &big);
        tv_pool_free(p, big, whole);
        const double reserved = tv_pool_reserved(p);
        double sizes[4];
        for (int i = 0; i < 4; i++)
            sizes[i] = tv_pool_alloc(p, 10 * MIB, &part[i]);
        assert_close(tv_pool_reserved(p), reserved, 1e-12);
        tv_pool_free(p, part[1], sizes[1]);
        tv_pool_free(p, part[3], sizes[3]);
        tv_pool_free(p, part[2], sizes[2]);
        tv_pool_free(p, part[0], sizes[0]);
        (void)tv_pool_alloc(p, 40 * MIB, &big);
        assert_close(tv_pool_reserved(p), reserved, 1e-12);
        tv_arena_close(a);
    }
}

/* Random traffic: allocated never passes reserved, and all of it comes back. */
static void pools_never_lose_a_block(void **state)
{
    (void)state;
    enum { slots = 64, rounds = 4000 };
    tv_arena *a = test_arena();
    tv_pool *p = tv_pool_open(a, TV_POOL_TORCH);
    uint32_t block[slots] = {0};
    double size[slots] = {0};
    uint64_t seed = 7;
    for (int i = 0; i < rounds; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const size_t k = (size_t)(seed >> 33) % slots;
        if (size[k] > 0) {
            tv_pool_free(p, block[k], size[k]);
            size[k] = 0;
        } else {
            const double request = pow(2, 6 + (double)((seed >> 20) % 21)) + (double)(seed % 999);
            size[k] = tv_pool_alloc(p, request, &block[k]);
            assert_true(size[k] >= request);
        }
        assert_true(tv_pool_allocated(p) <= tv_pool_reserved(p) + 1);
    }
    for (size_t k = 0; k < slots; k++)
        if (size[k] > 0)
            tv_pool_free(p, block[k], size[k]);
    assert_true(fabs(tv_pool_allocated(p)) < 1);
    tv_arena_close(a);
}

/* ---- ledgers ---- */

typedef struct bed {
    tv_arena *a, *scratch;
    tv_machine machine;
    tv_device device;
} bed;

static bed make_bed(void)
{
    bed b = {.a = test_arena(), .scratch = test_arena()};
    b.device = (tv_device){.slug = TV_S("card"), .compute_capability = 80};
    b.device.mem_bytes = tv_fact_of(80 * 0x1p30, TV_STATED, TV_S("test"));
    b.machine = (tv_machine){.gpus = 1, .nodes = 1};
    return b;
}

static void drop_bed(bed *b)
{
    tv_arena_close(b->scratch);
    tv_arena_close(b->a);
}

static tv_job plain_job(void)
{
    return (tv_job){.task = TV_TASK_TRAIN,
                    .precision = TV_PRECISION_AMP_BF16,
                    .batch = 4,
                    .seq = 256,
                    .dropout = -1};
}

static const tv_model *named(bed *b, const char *name)
{
    const tv_source *source = NULL;
    const tv_model *m = NULL;
    assert_ok(b->a, tv_builtin_find(b->a, tv_str_of(name), &source));
    assert_non_null(source);
    assert_ok(b->a, tv_family_model(b->a, source, &m));
    return m;
}

static tv_memory of(bed *b, const tv_model *m, const tv_job *job)
{
    b->machine.device = &b->device;
    tv_case c;
    assert_ok(b->a, tv_predict_case(b->a, m, job, &b->machine, NULL, &c));
    tv_memory out;
    tv_predict_memory(b->a, b->scratch, &c, &out);
    return out;
}

static const char *const models[] = {"bert-base", "llama-3.2-1b", "resnet50", "t5-small",
                                     "qwen1.5-moe-a2.7b"};

static bool known(bed *b, const char *name)
{
    const tv_source *source = NULL;
    assert_ok(b->a, tv_builtin_find(b->a, tv_str_of(name), &source));
    return source != NULL;
}

static void parts_sum_to_the_whole(void **state)
{
    (void)state;
    bed b = make_bed();
    size_t seen = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (!known(&b, models[i]))
            continue;
        seen++;
        const tv_job job = plain_job();
        const tv_memory m = of(&b, named(&b, models[i]), &job);
        double sum = 0;
        for (int t = 0; t < TV_TERM_COUNT; t++) {
            assert_true(m.term_bytes[t] >= 0);
            sum += m.term_bytes[t];
        }
        assert_close(sum, m.allocated_peak_bytes, 1e-9);
        assert_close(m.allocated_peak_bytes + m.fragmentation_bytes, m.reserved_peak_bytes, 1e-9);
        assert_close(m.reserved_peak_bytes + m.context_bytes + m.nccl_bytes, m.total_bytes, 1e-9);
        assert_true(m.low_bytes <= m.total_bytes && m.total_bytes <= m.high_bytes);
        const double most =
            fmax(fmax(m.forward_peak_bytes, m.backward_peak_bytes), m.step_peak_bytes);
        assert_close(most, m.allocated_peak_bytes, 1e-9);
    }
    assert_true(seen >= 3);
    drop_bed(&b);
}

static void more_never_needs_less(void **state)
{
    (void)state;
    bed b = make_bed();
    const tv_model *m = named(&b, "llama-3.2-1b");
    double last = 0;
    for (uint32_t batch = 1; batch <= 16; batch += 3) {
        tv_job job = plain_job();
        job.batch = batch;
        const double now = of(&b, m, &job).allocated_peak_bytes;
        assert_true(now >= last);
        last = now;
    }
    last = 0;
    for (uint32_t seq = 64; seq <= 1024; seq += 192) {
        tv_job job = plain_job();
        job.seq = seq;
        const double now = of(&b, m, &job).allocated_peak_bytes;
        assert_true(now >= last);
        last = now;
    }
    drop_bed(&b);
}

static void recompute_needs_less(void **state)
{
    (void)state;
    bed b = make_bed();
    const tv_model *m = named(&b, "bert-base");
    double saved[3], peak[3];
    for (tv_recompute r = TV_RECOMPUTE_NONE; r <= TV_RECOMPUTE_FULL; r++) {
        tv_job job = plain_job();
        job.batch = 16;
        job.seq = 512;
        job.attention = TV_ATTENTION_EAGER;
        job.recompute = r;
        const tv_memory x = of(&b, m, &job);
        saved[r] = x.saved_bytes;
        peak[r] = x.allocated_peak_bytes;
    }
    assert_true(saved[TV_RECOMPUTE_FULL] < saved[TV_RECOMPUTE_SELECTIVE]);
    assert_true(saved[TV_RECOMPUTE_SELECTIVE] < saved[TV_RECOMPUTE_NONE]);
    assert_true(peak[TV_RECOMPUTE_FULL] < peak[TV_RECOMPUTE_SELECTIVE]);
    assert_true(peak[TV_RECOMPUTE_SELECTIVE] < peak[TV_RECOMPUTE_NONE]);
    drop_bed(&b);
}

static double on_cards(bed *b, const tv_model *m, tv_strategy strategy, uint32_t gpus,
                       tv_parallel p)
{
    tv_job job = plain_job();
    job.batch = 1;
    job.accum = 8;
    job.strategy = strategy;
    job.parallel = p;
    b->machine.gpus = gpus;
    const tv_memory x = of(b, m, &job);
    b->machine.gpus = 1;
    return x.allocated_peak_bytes;
}

static void sharding_and_stages_shrink(void **state)
{
    (void)state;
    bed b = make_bed();
    const tv_model *m = named(&b, "llama-3.2-1b");
    const tv_parallel none = {0};
    const double ddp = on_cards(&b, m, TV_STRATEGY_DDP, 8, none);
    const double zero1 = on_cards(&b, m, TV_STRATEGY_ZERO1, 8, none);
    const double zero2 = on_cards(&b, m, TV_STRATEGY_ZERO2, 8, none);
    const double fsdp = on_cards(&b, m, TV_STRATEGY_FSDP, 8, none);
    assert_true(zero1 < ddp);
    assert_true(zero2 < zero1);
    assert_true(fsdp < zero2);
    const double one = on_cards(&b, m, TV_STRATEGY_DDP, 1, none);
    const double tp = on_cards(&b, m, TV_STRATEGY_DDP, 4, (tv_parallel){.tp = 4});
    const double pp = on_cards(&b, m, TV_STRATEGY_DDP, 4, (tv_parallel){.pp = 4});
    assert_true(tp < one);
    assert_true(pp < one);
    drop_bed(&b);
}

/* Accumulation keeps the gradients through the forward pass: what activations and gradients need
 * at once grows by the gradients. */
static void accumulation_keeps_gradients(void **state)
{
    (void)state;
    bed b = make_bed();
    const tv_model *m = named(&b, "bert-base");
    tv_job job = plain_job();
    job.precision = TV_PRECISION_FP32;
    job.attention = TV_ATTENTION_EAGER;
    job.batch = 16;
    job.seq = 512;
    job.accum = 1;
    const tv_memory once = of(&b, m, &job);
    job.accum = 4;
    const tv_memory often = of(&b, m, &job);
    const double gradients = 4 * m->params;
    assert_close(often.forward_peak_bytes - once.forward_peak_bytes, gradients, 0.02);
    drop_bed(&b);
}

/* A stated breakdown is a sum: 1.72 + 3.2 + 1.72 + 3.44 GB for 860 M parameters in 16 bit. */
static void stated_terms_sum(void **state)
{
    (void)state;
    bed b = make_bed();
    const tv_model *m = named(&b, "bert-base");
    tv_job job = plain_job();
    job.precision = TV_PRECISION_FP16;
    b.machine.device = &b.device;
    tv_case c;
    assert_ok(b.a, tv_predict_case(b.a, m, &job, &b.machine, NULL, &c));
    tv_memory x;
    tv_predict_memory(b.a, b.scratch, &c, &x);
    const tv_stated_term terms[] = {{TV_TERM_ACTIVATIONS, 3.2e9},
                                    {TV_TERM_WEIGHTS, 1.72e9},
                                    {TV_TERM_GRADIENTS, 1.72e9},
                                    {TV_TERM_OPTIMIZER, 3.44e9}};
    tv_memory_restate(&c, terms, 4, &x);
    assert_close(x.allocated_peak_bytes - x.term_bytes[TV_TERM_WORKSPACE], 10.08e9, 1e-9);
    drop_bed(&b);
}

/* The search's quick walk and the full one count the same tensors. */
static void quick_walk_agrees(void **state)
{
    (void)state;
    bed b = make_bed();
    b.machine.device = &b.device;
    for (size_t i = 0; i < 3; i++) {
        tv_case c;
        const tv_job job = plain_job();
        assert_ok(b.a, tv_predict_case(b.a, named(&b, models[i]), &job, &b.machine, NULL, &c));
        const tv_walk full = tv_memory_walk(b.scratch, &c, job.batch, true);
        const tv_walk quick = tv_memory_quick_walk(b.scratch, &c);
        assert_close(quick.allocated_peak_bytes, full.allocated_peak_bytes, 0.02);
    }
    drop_bed(&b);
}

/* Patterns that name nothing train nothing: an error that lists what there is. */
static void adapters_need_a_target(void **state)
{
    (void)state;
    bed b = make_bed();
    b.machine.device = &b.device;
    tv_job job = plain_job();
    job.task = TV_TASK_LORA;
    job.lora_targets = TV_S("no_such_layer");
    tv_case c;
    const tv_err *e = tv_predict_case(b.a, named(&b, "bert-base"), &job, &b.machine, NULL, &c);
    assert_non_null(e);
    assert_string_equal(e->what.id, "lora.no-target");
    assert_int_equal(e->code, TV_USAGE);
    assert_true(tv_str_has(tv_text_in(b.a, TV_EN, e->hint), TV_S("query, key, value")));
    job.lora_targets = (tv_str){0};
    assert_ok(b.a, tv_predict_case(b.a, named(&b, "bert-base"), &job, &b.machine, NULL, &c));
    assert_true(c.graph->trainable_params > 0);
    e = tv_predict_case(b.a, named(&b, "resnet50"), &job, &b.machine, NULL, &c);
    assert_non_null(e);
    assert_string_equal(e->what.id, "lora.no-linear");
    drop_bed(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_round_as_their_frameworks),
        cmocka_unit_test(freed_blocks_join_and_are_used_again),
        cmocka_unit_test(pools_never_lose_a_block),
        cmocka_unit_test(parts_sum_to_the_whole),
        cmocka_unit_test(more_never_needs_less),
        cmocka_unit_test(recompute_needs_less),
        cmocka_unit_test(sharding_and_stages_shrink),
        cmocka_unit_test(accumulation_keeps_gradients),
        cmocka_unit_test(stated_terms_sum),
        cmocka_unit_test(quick_walk_agrees),
        cmocka_unit_test(adapters_need_a_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
