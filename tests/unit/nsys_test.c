/* Exports of nsys: what the generator wrote is found again, from a file and from memory, and what
 * is damaged or no export yields nothing. */
#include "sights.h"

#include "base/file.h"
#include "trace/nsys_db.h"

static const char *const folder = TEST_BUILD "/nsys_files/";

static const char *file_named(tv_arena *a, const char *name)
{
    return tv_cstr(a, tv_str_join(a, tv_str_of(folder), tv_str_of(name)));
}

static tv_scene *read_file(tv_arena *a, const char *name)
{
    tv_scene *scene = tv_new(a, tv_scene, 1);
    assert_ok(a, tv_trace_read(a, tv_str_of(file_named(a, name)), scene));
    return scene;
}

static void check_loading(const tv_note *facts)
{
    assert_word(facts, "profile", "nsys");
    assert_fact(facts, "kernels", 10);
    assert_fact(facts, "kernel_s", 5 * 0.036);
    assert_fact(facts, "steps", 5);
    assert_fact(facts, "step_median_s", 0.1);
    assert_fact(facts, "pageable_htod", 5);
    assert_fact(facts, "loader_single", 5);
    assert_fact(facts, "shares.data", 0.6);
    assert_fact(facts, "shares.gemm", 0.26);
    assert_fact(facts, "sync_calls", 5);
    assert_word(facts, "gpu_names.0", "NVIDIA A100-SXM4-80GB");
}

static void a_file_is_read(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    check_loading(sight(read_file(a, "loading.sqlite"), "trace", 0));
    tv_arena_close(a);
}

static void bytes_are_read(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_str bytes;
    tv_scene *scene = tv_new(a, tv_scene, 1);
    assert_ok(a, tv_file_read(a, tv_str_of(file_named(a, "loading.sqlite")), 1 << 20, &bytes));
    assert_ok(a, tv_trace_document(a, TV_S("x"), bytes, scene));
    check_loading(sight(scene, "trace", 0));
    tv_arena_close(a);
}

static void names_may_stand_in_the_columns(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_note *facts = sight(read_file(a, "computing.sqlite"), "trace", 0);
    assert_fact(facts, "kernels", 5);
    assert_fact(facts, "shares.gemm", 0.98);
    tv_arena_close(a);
}

static void views_are_no_tables(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    assert_int_equal(sights_n(read_file(a, "other.sqlite"), "trace"), 0);
    tv_arena_close(a);
}

/* Every byte may be any other: something or nothing is read, and it ends. */
static void damage_ends_well(void **state)
{
    (void)state;
    tv_arena *outer = test_arena();
    tv_str bytes;
    assert_ok(outer,
              tv_file_read(outer, tv_str_of(file_named(outer, "loading.sqlite")), 1 << 20, &bytes));
    uint64_t seed = 7;
    for (unsigned i = 0; i < 200; i++) {
        tv_arena *a = test_arena();
        unsigned char *copy = tv_new(a, unsigned char, bytes.n);
        memcpy(copy, bytes.p, bytes.n);
        for (unsigned k = 0; k < 4; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            copy[100 + (seed >> 33) % (bytes.n - 100)] = (unsigned char)(seed >> 20);
        }
        tv_scene *scene = tv_new(a, tv_scene, 1);
        assert_ok(a, tv_nsys_read(a, TV_S("x"), (tv_bytes_view){copy, bytes.n - i * 16}, scene));
        tv_arena_close(a);
    }
    tv_arena_close(outer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(bytes_are_read),
        cmocka_unit_test(names_may_stand_in_the_columns),
        cmocka_unit_test(views_are_no_tables),
        cmocka_unit_test(damage_ends_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
