/* Units read and written; texts with named arguments in two languages. */
#include "testing.h"

#include "base/message.h"
#include "base/unit.h"

typedef struct read_case {
    const char *text;
    double want; /* < 0: refused */
} read_case;

static void bytes_are_read(void **state)
{
    (void)state;
    static const read_case cases[] = {
        {"80GB", 80e9}, {"80 GiB", 80 * 0x1p30},
        {"512", 512},   {"1.5tb", 1.5e12},
        {"7e9", 7e9},   {"GB", -1},
        {"8 XB", -1},   {"", -1},
        {"1e3MB", 1e9}, {"--1", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tv_double_read r = tv_read_bytes(tv_str_of(cases[i].text));
        assert_int_equal(r.ok, cases[i].want >= 0);
        if (r.ok)
            assert_close(r.v, cases[i].want, 1e-12);
    }
    assert_close(tv_read_count(TV_S("7B")).v, 7e9, 1e-12);
    assert_close(tv_read_count(TV_S("110M")).v, 110e6, 1e-12);
    assert_close(tv_read_seconds(TV_S("5min")).v, 300, 1e-12);
}

typedef struct write_case {
    void (*put)(tv_buf *b, double v);
    double v;
    const char *want;
} write_case;

static void numbers_are_written(void **state)
{
    (void)state;
    static const write_case cases[] = {
        {tv_put_memory, 11.2e9, "10.43 GiB"},   {tv_put_count, 671026419200, "671,026,419,200"},
        {tv_put_percent, 0.376, "38 %"},        {tv_put_seconds, 0.0123, "12.3 ms"},
        {tv_put_seconds, 15120, "4.20 h"},      {tv_put_flops, 312e12, "312.0 TFLOP/s"},
        {tv_put_disk, 11.2e9, "11.2 GB"},       {tv_put_double, 0.1, "0.1"},
        {tv_put_params, 8190735360, "8.191 B"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_arena *a = test_arena();
        tv_buf b = tv_buf_in(a);
        cases[i].put(&b, cases[i].v);
        assert_str(tv_buf_str(&b), cases[i].want);
        tv_arena_close(a);
    }
}

static void texts_fill_named_arguments(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_text t =
        TV_TEXT(a, "x", "needs {need}, {gpu} has {other}",
                tv_arg_num("need", TV_ARG_MEMORY, 2 * 0x1p30), tv_arg_str("gpu", TV_S("A100")));
    assert_str(tv_text_in(a, TV_EN, t), "needs 2.000 GiB, A100 has {other}");
    assert_string_equal(tv_message(TV_ZH, "hint: "), "提示：");
    assert_string_equal(tv_message(TV_ZH, "no such message"), "no such message");
    tv_arena_close(a);
}

static void globs_match(void **state)
{
    (void)state;
    assert_true(tv_str_glob(TV_S("model.layers.3.q_proj"), TV_S("*q_proj")));
    assert_true(tv_str_glob(TV_S("*x"), TV_S("*x")));
    assert_false(tv_str_glob(TV_S("q_projx"), TV_S("*q_proj")));
    assert_true(tv_str_glob(TV_S("abc"), TV_S("a?c")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_read),
        cmocka_unit_test(numbers_are_written),
        cmocka_unit_test(texts_fill_named_arguments),
        cmocka_unit_test(globs_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
