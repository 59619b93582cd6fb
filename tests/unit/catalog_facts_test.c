/* Look-ups as people write names, the figures that guides get wrong, and every number of the
 * collected catalogue against ours where that collection is there. */
#include "testing.h"

#include "base/file.h"
#include "catalog/catalog.h"

static tv_catalog *opened(tv_arena *a)
{
    tv_catalog *c = NULL;
    assert_ok(a, tv_catalog_open(a, (tv_str){0}, &c));
    return c;
}

static const tv_device *card(tv_arena *a, tv_catalog *c, const char *name, double bytes)
{
    const tv_device *d = NULL;
    assert_ok(a, tv_catalog_device(c, tv_str_of(name), bytes, &d));
    return d;
}

typedef struct name_case {
    const char *name;
    double mem_bytes;
    const char *slug;
} name_case;

static void names_are_found(void **state)
{
    (void)state;
    static const name_case cases[] = {
        {"nvidia-rtx-4090", 0, "nvidia-rtx-4090"},
        {"rtx-4090", 0, "nvidia-rtx-4090"},
        {"RTX 4090", 0, "nvidia-rtx-4090"},
        {"NVIDIA GeForce RTX 4090", 0, "nvidia-rtx-4090"},
        {"NVIDIA A100-SXM4-80GB", 0, "nvidia-a100-sxm4-80gb"},
        {"10de:20b2", 0, "nvidia-a100-sxm4-80gb"},
        {"rtx-3060", 12 * 0x1p30, "nvidia-rtx-3060-12gb"},
        {"a100-sxm4-40gb", 0, "nvidia-a100-sxm4-40gb"},
    };
    tv_arena *a = test_arena();
    tv_catalog *c = opened(a);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_str(card(a, c, cases[i].name, cases[i].mem_bytes)->slug, cases[i].slug);
    tv_arena_close(a);
}

/* A name for several is a group; where one card is wanted its members are listed. */
static void several_are_told_apart(void **state)
{
    (void)state;
    static const char *const names[] = {"a100", "nvidia-a100-80gb", "v100", "nvidia-h100-80gb"};
    tv_arena *a = test_arena();
    tv_catalog *c = opened(a);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tv_naming found = {0};
        assert_ok(a, tv_catalog_find(c, tv_str_of(names[i]), 0, &found));
        assert_non_null(found.group);
        assert_true(tv_naming_count(found) >= 2);
        const tv_device *one = NULL;
        const tv_err *e = tv_catalog_device(c, tv_str_of(names[i]), 0, &one);
        assert_non_null(e);
        assert_int_equal(e->code, TV_USAGE);
        tv_buf b = tv_buf_in(a);
        tv_put_err(&b, TV_EN, e);
        assert_true(tv_str_has(tv_buf_str(&b), tv_naming_at(found, 0)->slug));
    }
    const tv_device *none = NULL;
    const tv_err *e = tv_catalog_device(c, TV_S("rtx-4900"), 0, &none);
    assert_non_null(e);
    assert_int_equal(e->code, TV_USAGE);
    tv_arena_close(a);
}

typedef enum what { MEMORY, BANDWIDTH, LINK, LINK_GROUP, RATE } what;

typedef struct fact_case {
    const char *slug;
    what what;
    tv_rate rate;
    double want; /* < 0: unknown */
} fact_case;

static double value_of(const tv_device *d, const fact_case *f)
{
    tv_fact x = {0};
    switch (f->what) {
    case MEMORY:
        x = d->mem_bytes;
        break;
    case BANDWIDTH:
        x = d->mem_bytes_per_s;
        break;
    case LINK:
        x = d->nvlink_bytes_per_s;
        break;
    case LINK_GROUP:
        return d->nvlink_group;
    case RATE:
        x = d->rate_flops[f->rate];
        break;
    }
    return tv_known(x) ? x.v : -1;
}

/* What guides print wrongly, at its right value (docs/factcheck.md). */
static void guides_figures_are_corrected(void **state)
{
    (void)state;
    static const fact_case cases[] = {
        {"nvidia-a100-pcie-40gb", BANDWIDTH, 0, 1555e9},
        {"nvidia-a100-pcie-80gb", BANDWIDTH, 0, 1935e9},
        {"nvidia-a100-sxm4-80gb", BANDWIDTH, 0, 2039e9},
        {"nvidia-rtx-4090", RATE, TV_RATE_FP32, 82.6e12},
        {"nvidia-rtx-4090", RATE, TV_RATE_FP16_TENSOR, 165.2e12},
        {"nvidia-rtx-4090", RATE, TV_RATE_FP16_TENSOR_FP16, 330.3e12},
        {"nvidia-rtx-3090", RATE, TV_RATE_FP16_TENSOR, 71.2e12},
        {"nvidia-rtx-3090", RATE, TV_RATE_FP16_TENSOR_FP16, 142.3e12},
        {"nvidia-l4", RATE, TV_RATE_INT8_TENSOR, 242e12},
        {"nvidia-t4", RATE, TV_RATE_BF16_TENSOR, -1},
        {"nvidia-titan-rtx", MEMORY, 0, 24 * 0x1p30},
        {"nvidia-p40", BANDWIDTH, 0, 345.6e9},
        {"nvidia-rtx-3090", LINK, 0, 56.25e9},
        {"nvidia-rtx-3090", LINK_GROUP, 0, 2},
        {"nvidia-a100-sxm4-80gb", LINK, 0, 300e9},
        {"nvidia-a100-pcie-80gb", LINK, 0, 300e9},
        {"nvidia-a100-pcie-80gb", LINK_GROUP, 0, 2},
        {"nvidia-rtx-4090", LINK, 0, -1},
        {"nvidia-h100-sxm5-80gb", RATE, TV_RATE_BF16_TENSOR, 989.4e12},
        {"nvidia-h100-sxm5-80gb", RATE, TV_RATE_FP8_TENSOR, 1979e12},
    };
    tv_arena *a = test_arena();
    tv_catalog *c = opened(a);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double got = value_of(card(a, c, cases[i].slug, 0), &cases[i]);
        if (cases[i].want < 0)
            assert_true(got <= 0);
        else
            assert_close(got, cases[i].want, 0.002);
    }
    /* like for like, one way: nine and a half times, not nearly twenty */
    tv_fact wire = {0}, reached = {0};
    assert_ok(a, tv_catalog_pcie(c, 4, 16, &wire, &reached));
    const double nvlink = card(a, c, "nvidia-a100-sxm4-80gb", 0)->nvlink_bytes_per_s.v;
    assert_close(nvlink / wire.v, 9.5, 0.02);
    tv_arena_close(a);
}

/* ---- against the collection ---- */

static bool same(tv_fact ours, const tv_json *theirs)
{
    if (!tv_json_is_num(theirs))
        return true; /* we may know more */
    return tv_known(ours) && fabs(ours.v - theirs->number) <= 0.001 * fabs(theirs->number);
}

static size_t differences(const tv_device *d, const tv_json *j)
{
    static const char *const keys[] = {"fp64", "fp64_tensor", "fp32", "tf32", "fp16_nontensor"};
    static const tv_rate rates[] = {TV_RATE_FP64, TV_RATE_FP64_TENSOR, TV_RATE_FP32, TV_RATE_TF32,
                                    TV_RATE_FP16};
    const tv_json *flops = tv_json_get(j, "flops");
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        wrong += !same(d->rate_flops[rates[i]], tv_json_get(flops, keys[i]));
    wrong += !same(d->rate_flops[TV_RATE_FP16_TENSOR], tv_json_get(flops, "fp16_tensor_fp32acc"));
    wrong += !same(d->rate_flops[TV_RATE_BF16_TENSOR], tv_json_get(flops, "bf16_tensor"));
    wrong += !same(d->rate_flops[TV_RATE_INT8_TENSOR], tv_json_get(flops, "int8_tensor"));
    wrong += !same(d->rate_flops[TV_RATE_FP4_TENSOR], tv_json_get(flops, "fp4_tensor"));
    wrong += !same(d->mem_bytes, tv_json_get(j, "mem_bytes"));
    wrong += !same(d->mem_usable_bytes, tv_json_get(j, "mem_usable_bytes"));
    wrong += !same(d->mem_bytes_per_s, tv_json_get(j, "mem_bw_Bps"));
    wrong += !same(d->board_w, tv_json_get(j, "tdp_w"));
    wrong += !same(d->pcie_gen, tv_json_get(j, "pcie_gen"));
    wrong += !same(d->nvlink_both_bytes_per_s, tv_json_path(j, "nvlink.total_Bps_bidirectional"));
    if (wrong)
        print_message("# %.*s: %zu values differ\n", TV_FMT(d->slug), wrong);
    return wrong;
}

static void the_collection_is_all_here(void **state)
{
    (void)state;
    const char *path = test_shared("catalogue/accelerators.jsonl");
    if (!path)
        return;
    tv_arena *a = test_arena();
    tv_catalog *c = opened(a);
    tv_str text;
    assert_ok(a, tv_file_read(a, tv_str_of(path), (size_t)8 << 20, &text));
    size_t n = 0, wrong = 0;
    for (tv_cut line = tv_str_cut(text, '\n'); line.head.n; line = tv_str_cut(line.tail, '\n')) {
        const tv_json *j = NULL;
        assert_ok(a, tv_json_parse(a, tv_str_of(path), line.head, &j));
        const tv_str slug = tv_json_str(tv_json_get(j, "slug"));
        wrong += differences(card(a, c, tv_cstr(a, slug), 0), j);
        n++;
    }
    print_message("# %zu of %zu records, %zu values differ\n", n, n, wrong);
    assert_true(n >= 200);
    assert_int_equal(wrong, 0);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(several_are_told_apart),
        cmocka_unit_test(guides_figures_are_corrected),
        cmocka_unit_test(the_collection_is_all_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
