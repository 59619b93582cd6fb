/* Built-in models: parameters as published, saved bytes and FLOPs against known figures. */
#include "family/family.h"
#include "graph_sums.h"
#include "read/builtin.h"

static const tv_model *model_named(tv_arena *a, const char *name)
{
    const tv_source *s = NULL;
    const tv_model *m = NULL;
    assert_ok(a, tv_builtin_find(a, tv_str_of(name), &s));
    if (!s)
        fail_msg("no built-in model %s", name);
    assert_ok(a, tv_family_model(a, s, &m));
    return m;
}

static void params_are_as_published(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_builtins all = {0};
    size_t stated = 0, wrong = 0;
    assert_ok(a, tv_builtin_list(a, &all));
    for (size_t i = 0; i < all.n; i++) {
        tv_mark mark = tv_arena_mark(a);
        const tv_model *m = model_named(a, tv_cstr(a, all.v[i].name));
        if (all.v[i].params > 0 && m->params != all.v[i].params) {
            print_error("%.*s: %.0f, published %.0f\n", TV_FMT(all.v[i].name), m->params,
                        all.v[i].params);
            wrong++;
        }
        stated += all.v[i].params > 0;
        tv_arena_rewind(a, mark);
    }
    print_message("%zu built-in models, %zu with a published count\n", all.n, stated);
    assert_int_equal(wrong, 0);
    tv_arena_close(a);
}

static tv_graph *graph_of(tv_arena *a, const tv_model *m, tv_setting set)
{
    tv_graph *g = NULL;
    if (set.kernel != TV_KERNEL_EAGER && set.policy.compute == TV_F32)
        set.kernel = TV_KERNEL_EFFICIENT;
    assert_ok(a, m->build(a, m, &set, &g));
    return g;
}

/* Bytes per token and width that a post-norm layer keeps, as measured with saved-tensor hooks:
 * 66 + 9x in fp32, 34 + 5x in 16 bit, 42 + 7x under autocast (x = heads·s/h); 64 + 4x, 32 + 2x,
 * 40 + 6x without dropout. Norm statistics (16 bytes a token) and the log-sum-exp come on top. */
static void bert_layer_keeps_what_was_measured(void **state)
{
    (void)state;
    static const struct {
        tv_precision precision;
        double dropout, base, per_x;
    } cases[] = {
        {TV_PRECISION_FP32, 0.1, 66, 9},     {TV_PRECISION_FP16, 0.1, 34, 5},
        {TV_PRECISION_AMP_FP16, 0.1, 42, 7}, {TV_PRECISION_FP32, 0, 64, 4},
        {TV_PRECISION_FP16, 0, 32, 2},       {TV_PRECISION_AMP_FP16, 0, 40, 6},
    };
    tv_arena *a = test_arena();
    const tv_model *m = model_named(a, "bert-base");
    const double s = 512, h = 768, x = 12 * s / h;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int fused = 0; fused < 2; fused++) {
            tv_setting set = {.phase = TV_PHASE_TRAIN,
                              .policy = test_policy(cases[i].precision),
                              .kernel = fused ? TV_KERNEL_FLASH : TV_KERNEL_EAGER,
                              .seq = 512,
                              .dropout = cases[i].dropout};
            const tv_graph *g = graph_of(a, m, set);
            double kept = test_block_saved(a, g, 1, 16) / (16 * s * h);
            double extra = (16 + (fused ? 4 * 12 : 0)) / h;
            assert_close(kept, cases[i].base + (fused ? 0 : cases[i].per_x * x) + extra, 1e-9);
        }
    tv_arena_close(a);
}

/* Bytes kept per image, FP32: 86.0 MB at 224x224; 1.79 MB at 32x32 with the ImageNet stem; 25.6 MB
 * with the 3x3 stem (measured with saved-tensor hooks, the image itself included). */
static void resnet_keeps_what_was_measured(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t image;
        double bytes;
    } cases[] = {
        {"resnet-50", 224, 86.0e6},
        {"resnet-50", 32, 1.79e6},
        {"resnet50-cifar", 0, 25.6e6},
    };
    tv_arena *a = test_arena();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_setting set = {.phase = TV_PHASE_TRAIN,
                          .policy = test_policy(TV_PRECISION_FP32),
                          .image_h = cases[i].image,
                          .image_w = cases[i].image,
                          .dropout = -1};
        const tv_model *m = model_named(a, cases[i].name);
        const tv_graph *g = graph_of(a, m, set);
        /* A batch of 8: batch norm keeps its statistics (212 kB) once per batch. */
        assert_close(test_graph_saved(a, g, 8) / 8, cases[i].bytes, 0.005);
    }
    tv_arena_close(a);
}

/* timm's hrnet_w18 under saved-tensor hooks, batch 2: 126.76 MB an image. Its stages end in maps
 * that are saved for the next ones: every repetition before them keeps its own. */
static void saved_maps_do_not_stand_for_the_ones_before(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_setting set = {
        .phase = TV_PHASE_TRAIN, .policy = test_policy(TV_PRECISION_FP32), .dropout = -1};
    const tv_graph *g = graph_of(a, model_named(a, "hrnet-w18"), set);
    assert_close(test_graph_saved(a, g, 2) / 2, 126.76e6, 0.015);
    tv_arena_close(a);
}

/* Multiply-adds of one forward pass as published, within 2 %. torchvision's model pages call them
 * GFLOPS; ultralytics' GFLOPs count two per multiply-add and are halved here. */
static void multiply_adds_are_as_published(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double macs;
        const char *source;
    } cases[] = {
        {"resnet-18", 1.814e9, "torchvision"},
        {"resnet-50", 4.089e9, "torchvision"},
        {"resnet-152", 11.514e9, "torchvision"},
        {"resnext101-32x8d", 16.414e9, "torchvision"},
        {"vgg-16", 15.470e9, "torchvision"},
        {"alexnet", 0.714e9, "torchvision"},
        {"mobilenet-v2", 0.301e9, "torchvision"},
        {"mobilenet-v3-large", 0.217e9, "torchvision"},
        {"mobilenet-v3-small", 0.057e9, "torchvision"},
        {"efficientnet-b0", 0.386e9, "torchvision"},
        {"efficientnet-b1", 0.687e9, "torchvision, at 240x240"},
        {"efficientnet-b2", 1.088e9, "torchvision, at 288x288"},
        {"efficientnet-b3", 1.827e9, "torchvision, at 300x300"},
        {"efficientnet-b4", 4.394e9, "torchvision, at 380x380"},
        {"efficientnet-b5", 10.266e9, "torchvision, at 456x456"},
        {"efficientnet-b6", 19.068e9, "torchvision, at 528x528"},
        {"efficientnet-b7", 37.746e9, "torchvision"},
        {"densenet-121", 2.834e9, "torchvision"},
        {"convnext-tiny", 4.456e9, "torchvision"},
        {"vit-base-16", 17.564e9, "torchvision; attention's two products included"},
        {"vit-large-16", 61.555e9, "torchvision; attention's two products included"},
        {"swin-t", 4.491e9, "torchvision"},
        {"swin-b", 15.431e9, "torchvision"},
        {"xception", 8.40e9, "timm legacy_xception at 299x299"},
        {"yolov5n", 4.5e9 / 2, "ultralytics/yolov5 at 640x640"},
        {"yolov5s", 16.5e9 / 2, "ultralytics/yolov5 at 640x640"},
        {"yolov5m", 49.0e9 / 2, "ultralytics/yolov5 at 640x640"},
        {"yolov5l", 109.1e9 / 2, "ultralytics/yolov5 at 640x640"},
        {"yolov5x", 205.7e9 / 2, "ultralytics/yolov5 at 640x640"},
        {"yolov8n", 8.7e9 / 2, "ultralytics, at 640x640"},
        {"yolov8s", 28.6e9 / 2, "ultralytics, at 640x640"},
        {"yolov8m", 78.9e9 / 2, "ultralytics, at 640x640"},
        {"yolov8l", 165.2e9 / 2, "ultralytics, at 640x640"},
        {"yolov8x", 257.8e9 / 2, "ultralytics, at 640x640"},
        {"ssd300-vgg16", 34.858e9, "torchvision"},
        {"efficientdet-d0", 2.54e9, "Tan et al. 2019, table 2, at 512x512"},
        {"hrnet-w18", 4.32e9, "timm, at 224x224"},
        {"hrnet-w32", 8.97e9, "timm, at 224x224"},
        {"hrnet-w48", 17.34e9, "timm, at 224x224"},
        {"detr-resnet-50", 91.932e9, "transformers' module, torch's own counter, at 800x1216"},
        {"dit-xl-2", 118.64e9, "Peebles and Xie 2022, table 4, latents 32x32"},
    };
    tv_arena *a = test_arena();
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_setting set = {
            .phase = TV_PHASE_PREFILL, .policy = test_policy(TV_PRECISION_FP32), .dropout = -1};
        const tv_model *m = model_named(a, cases[i].name);
        double macs = test_graph_flop(a, graph_of(a, m, set)) / 2;
        if (!(fabs(macs / cases[i].macs - 1) <= 0.02)) {
            print_error("%s: %.4g multiply-adds, %s says %.4g\n", cases[i].name, macs,
                        cases[i].source, cases[i].macs);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    tv_arena_close(a);
}

/* The sum over a graph's weights is the model's number in every phase; training may add a head. */
static void graphs_hold_the_parameters(void **state)
{
    (void)state;
    static const tv_phase phases[] = {TV_PHASE_TRAIN, TV_PHASE_PREFILL, TV_PHASE_DECODE};
    tv_arena *a = test_arena();
    tv_builtins all = {0};
    size_t wrong = 0;
    assert_ok(a, tv_builtin_list(a, &all));
    for (size_t i = 0; i < all.n; i++)
        for (size_t k = 0; k < 3; k++) {
            tv_mark mark = tv_arena_mark(a);
            const tv_model *m = model_named(a, tv_cstr(a, all.v[i].name));
            tv_setting set = {.phase = phases[k],
                              .policy = test_policy(TV_PRECISION_AMP_FP16),
                              .seq = m->default_seq ? 64 : 0,
                              .dropout = -1};
            const tv_graph *g = graph_of(a, m, set);
            double added = 0;
            for (size_t p = 0; k == 0 && p < m->n_parts; p++)
                if (tv_str_is(m->parts[p].name, "classifier"))
                    added = m->parts[p].params;
            bool head = g->params == m->params + added;
            /* an encoder without its decoder has no part that says so */
            bool small = k == 0 && g->params > m->params && g->params < m->params * 1.001;
            if (!head && !small && (k < 2 || m->generates)) {
                print_error("%.*s: phase %zu has %.0f, the model %.0f\n", TV_FMT(all.v[i].name), k,
                            g->params, m->params);
                wrong++;
            }
            tv_arena_rewind(a, mark);
        }
    assert_int_equal(wrong, 0);
    tv_arena_close(a);
}

static void names_are_found_however_they_are_spelled(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_source *s = NULL;
    static const char *const spellings[] = {"bert-base", "BERT_Base", "bert-base-uncased",
                                            "google/bert-base-uncased", NULL};
    for (size_t i = 0; spellings[i]; i++) {
        assert_ok(a, tv_builtin_find(a, tv_str_of(spellings[i]), &s));
        assert_non_null(s);
        assert_str(s->name, "bert-base");
    }
    assert_ok(a, tv_builtin_find(a, TV_S("no-such-model"), &s));
    assert_null(s);
    tv_str near[3];
    assert_true(tv_builtin_near(a, TV_S("resnet-5O"), near) > 0);
    assert_true(tv_str_starts(near[0], TV_S("resnet-5")));
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(params_are_as_published),
        cmocka_unit_test(bert_layer_keeps_what_was_measured),
        cmocka_unit_test(resnet_keeps_what_was_measured),
        cmocka_unit_test(saved_maps_do_not_stand_for_the_ones_before),
        cmocka_unit_test(multiply_adds_are_as_published),
        cmocka_unit_test(graphs_hold_the_parameters),
        cmocka_unit_test(names_are_found_however_they_are_spelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
