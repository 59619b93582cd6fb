/* The same small networks as a graph and as a configuration or description: parameters, FLOPs and
 * kept bytes must agree; what exports lose and what nobody knows is said. The files are written by
 * tests/gen/program_files.py. */
#include "family/family.h"
#include "graph_sums.h"
#include "read/reader.h"

static const tv_model *model_of(tv_arena *a, const char *file)
{
    const tv_source *s = NULL;
    const tv_model *m = NULL;
    char path[512];
    (void)snprintf(path, sizeof path, TEST_BUILD "/program_files/%s", file);
    assert_ok(a, tv_read_model(a, tv_str_of(path), &s));
    assert_ok(a, tv_family_model(a, s, &m));
    return m;
}

static const tv_graph *graph_of(tv_arena *a, const tv_model *m, const tv_setting *set)
{
    tv_graph *g = NULL;
    assert_ok(a, m->build(a, m, set, &g));
    return g;
}

static tv_setting training(tv_precision precision, tv_kernel kernel, uint32_t seq)
{
    return (tv_setting){.phase = TV_PHASE_TRAIN,
                        .policy = test_policy(precision),
                        .kernel = kernel,
                        .seq = seq,
                        .lora_rank = 4,
                        .lora_dtype = TV_F32};
}

static bool warned(const tv_model *m, const char *id)
{
    for (size_t i = 0; i < m->n_warnings; i++)
        if (strcmp(m->warnings[i].id, id) == 0)
            return true;
    return false;
}

/* more: bytes a sample that x keeps beyond y. */
static void same_sums(tv_arena *a, const tv_graph *x, const tv_graph *y, double more)
{
    assert_close(x->trainable_params, y->trainable_params, 0);
    assert_close(test_graph_flop(a, x), test_graph_flop(a, y), 1e-12);
    for (double batch = 1; batch < 4; batch++)
        assert_close(test_graph_saved(a, x, batch), test_graph_saved(a, y, batch) + more * batch,
                     1e-12);
}

/* predict.md's invariant: the same model by another path gives the same list. */
static void graph_equals_configuration(void **state)
{
    static const struct {
        const char *graph, *other;
        uint32_t seq;
    } pairs[] = {{"encoder.onnx", "encoder", 16},
                 {"encoder.onnx", "encoder", 8},
                 {"network.onnx", "network.json", 0}};
    static const tv_precision precisions[] = {TV_PRECISION_FP32, TV_PRECISION_AMP_FP16,
                                              TV_PRECISION_FP16};
    static const tv_kernel kernels[] = {TV_KERNEL_EFFICIENT, TV_KERNEL_EAGER};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (size_t p = 0; p < 3; p++)
            for (size_t k = 0; k < 2; k++) {
                tv_arena *a = test_arena();
                const tv_setting set = training(precisions[p], kernels[k], pairs[i].seq);
                /* a graph has token types as an input of their own, which a lookup keeps */
                same_sums(a, graph_of(a, model_of(a, pairs[i].graph), &set),
                          graph_of(a, model_of(a, pairs[i].other), &set), 8.0 * pairs[i].seq);
                tv_arena_close(a);
            }
}

static void equal_layers_are_one_kind(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_setting set = training(TV_PRECISION_FP32, TV_KERNEL_EFFICIENT, 16);
    static const char *const files[] = {"encoder.onnx", "network.onnx"};
    for (size_t i = 0; i < 2; i++) {
        const tv_graph *g = graph_of(a, model_of(a, files[i]), &set);
        uint32_t counts[3] = {0};
        assert_int_equal(g->n_blocks, 3);
        tv_graph_counts(g, counts);
        assert_int_equal(counts[1], 3);
        assert_int_equal(g->blocks[0].stage, TV_STAGE_EMBED);
        assert_int_equal(g->blocks[2].stage, TV_STAGE_HEAD);
    }
    tv_arena_close(a);
}

/* A folded norm comes back in training; the file holds fewer numbers, and the model says so. */
static void folded_norms_train_again(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_setting set = training(TV_PRECISION_FP32, TV_KERNEL_EFFICIENT, 0);
    const tv_model *folded = model_of(a, "network-folded.onnx");
    const tv_model *whole = model_of(a, "network.onnx");
    same_sums(a, graph_of(a, folded, &set), graph_of(a, whole, &set), 0);
    assert_true(warned(folded, "program.folded"));
    assert_false(warned(whole, "program.folded"));
    assert_true(folded->params == whole->params - 7 * 8); /* a bias for a weight and a bias */
    tv_arena_close(a);
}

/* A convolution in front of an instance norm had no batch norm, whatever its scope is called. */
static void instance_norms_are_not_folded(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_setting set = training(TV_PRECISION_FP32, TV_KERNEL_EFFICIENT, 0);
    const tv_model *graph = model_of(a, "network-instance.onnx");
    const tv_model *record = model_of(a, "network-instance.json");
    assert_false(warned(graph, "program.folded"));
    assert_true(graph->params == record->params);
    const tv_graph *x = graph_of(a, graph, &set), *y = graph_of(a, record, &set);
    assert_close(x->trainable_params, y->trainable_params, 0);
    assert_close(test_graph_flop(a, x), test_graph_flop(a, y), 1e-12);
    /* what the kernels keep of their statistics is not the same; no copy of a map is missing */
    assert_close(test_graph_saved(a, x, 2), test_graph_saved(a, y, 2), 0.1);
    tv_arena_close(a);
}

/* Nothing in this graph holds it to the batch that its input states. */
static void a_stated_batch_is_replaced(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_setting set = training(TV_PRECISION_FP32, TV_KERNEL_EFFICIENT, 0);
    const tv_model *fixed = model_of(a, "network-batch.onnx");
    same_sums(a, graph_of(a, fixed, &set), graph_of(a, model_of(a, "network.onnx"), &set), 0);
    tv_arena_close(a);
}

static void an_unknown_operator_is_named(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_setting set = training(TV_PRECISION_FP32, TV_KERNEL_EFFICIENT, 0);
    const tv_model *odd = model_of(a, "network-odd.onnx");
    const tv_graph *g = graph_of(a, odd, &set);
    assert_true(warned(odd, "program.unknown"));
    assert_false(warned(model_of(a, "network.onnx"), "program.unknown"));
    assert_true(g->guessed_share > 0.001 && g->guessed_share < 0.2);
    assert_true(graph_of(a, model_of(a, "network.onnx"), &set)->guessed_share == 0);
    tv_arena_close(a);
}

static void adapters_join_by_module_path(void **state)
{
    static const struct {
        const char *targets;
        double params; /* rank 4 on matrices of 32x32, 32x64 and 64x32, three layers */
    } cases[] = {
        {"query,value", 3 * 2 * 4 * (32 + 32)},
        {"attention.*", 3 * 4 * 4 * (32 + 32)},
        {"bert.encoder.layer.*.intermediate.dense", 3 * 4 * (32 + 64)},
        {"*", 3 * (4 * 4 * (32 + 32) + 2 * 4 * (32 + 64))},
        {"nothing", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_arena *a = test_arena();
        tv_setting set = training(TV_PRECISION_FP32, TV_KERNEL_EFFICIENT, 16);
        set.trainable = TV_TRAIN_LORA;
        set.lora_targets = tv_str_of(cases[i].targets);
        const tv_graph *g = graph_of(a, model_of(a, "encoder.onnx"), &set);
        assert_close(g->trainable_params, cases[i].params, 0);
        tv_arena_close(a);
    }
}

/* Inputs that hold earlier tokens' keys and values are the cache: 3 layers of 2·32 numbers. */
static void earlier_tokens_are_the_cache(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_model *m = model_of(a, "decoder.onnx");
    tv_setting set = {.phase = TV_PHASE_DECODE,
                      .policy = test_policy(TV_PRECISION_FP32),
                      .kernel = TV_KERNEL_EFFICIENT,
                      .seq = 16};
    assert_true(m->generates);
    const tv_graph *g = graph_of(a, m, &set);
    double width = 0, flop = 0, read = 0;
    for (size_t i = 0; i < g->n_order; i++)
        width += g->blocks[g->order[i]].kv_width;
    uint32_t *counts = tv_new(a, uint32_t, g->n_blocks + 1);
    tv_graph_counts(g, counts);
    for (size_t i = 0; i < g->n_ops; i++) {
        const tv_op *op = &g->ops[i];
        const bool multiplies = op->kind == TV_OP_GEMM || op->kind == TV_OP_ATTENTION;
        flop += multiplies ? tv_form_at(op->flop, 2, 100) * counts[op->block] : 0;
        read += tv_form_at(op->kv_read_bytes, 2, 100) * counts[op->block];
    }
    assert_close(width, 3 * 64, 0);
    assert_int_equal(g->n_blocks, 3);
    /* two sequences: matrices of 3·(4·32·32 + 2·32·64) and 32·100, scores and values of 101 keys */
    assert_close(flop, 2 * 2 * (3 * (4096 + 4096) + 3200 + 3 * 2 * 32 * 101), 1e-12);
    assert_close(read, 2 * 100 * 3 * 64 * 4, 1e-12);
    tv_arena_close(a);
}

static void a_length_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_setting set = training(TV_PRECISION_FP32, TV_KERNEL_EFFICIENT, 64);
    const tv_model *m = model_of(a, "encoder.onnx");
    tv_graph *g = NULL;
    const tv_err *e = m->build(a, m, &set, &g);
    assert_non_null(e);
    assert_int_equal(e->code, TV_USAGE);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graph_equals_configuration),
        cmocka_unit_test(equal_layers_are_one_kind),
        cmocka_unit_test(folded_norms_train_again),
        cmocka_unit_test(instance_norms_are_not_folded),
        cmocka_unit_test(a_stated_batch_is_replaced),
        cmocka_unit_test(an_unknown_operator_is_named),
        cmocka_unit_test(adapters_join_by_module_path),
        cmocka_unit_test(earlier_tokens_are_the_cache),
        cmocka_unit_test(a_length_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
