/* Arithmetic on shapes and on symbolic dimensions, in tables. */
#include "testing.h"

#include "family/program_shape.h"
#include "family/program_symbol.h"

/* {rank, sizes...}; rank -1: the operation refuses. */
typedef int64_t sizes[8];

static tv_shape shape_of(const int64_t *s)
{
    return tv_shape_of((uint32_t)s[0], s + 1);
}

static void assert_shape(const tv_shape *got, const int64_t *want)
{
    assert_int_equal(got->rank, want[0]);
    for (uint32_t i = 0; i < got->rank; i++)
        assert_int_equal(got->d[i], want[1 + i]);
}

static void shapes_broadcast(void **state)
{
    (void)state;
    static const sizes cases[][3] = {
        {{2, 3, 4}, {1, 4}, {2, 3, 4}}, {{3, 5, 1, 4}, {2, 3, 1}, {3, 5, 3, 4}},
        {{0}, {2, 2, 2}, {2, 2, 2}},    {{1, 0}, {1, 1}, {1, 0}},
        {{2, 3, 4}, {1, 3}, {-1}},      {{2, 2, 1}, {2, 3, 1}, {-1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_shape x = shape_of(cases[i][0]);
        tv_shape y = shape_of(cases[i][1]);
        tv_shape z = {0};
        assert_int_equal(tv_shape_broadcast(&x, &y, &z), cases[i][2][0] >= 0);
        if (cases[i][2][0] >= 0)
            assert_shape(&z, cases[i][2]);
    }
}

static void shapes_are_seen_anew(void **state)
{
    (void)state;
    static const struct {
        sizes x, target;
        bool zero_copies;
        sizes want;
    } cases[] = {
        {{3, 2, 3, 4}, {2, 0, -1}, true, {2, 2, 12}},
        {{3, 2, 3, 4}, {3, -1, 2, 2}, true, {3, 6, 2, 2}},
        {{3, 2, 3, 4}, {1, -1}, true, {1, 24}},
        {{0}, {1, 1}, true, {1, 1}},
        {{1, 1}, {0}, true, {0}},
        {{2, 0, 5}, {2, 0, 7}, false, {2, 0, 7}},
        {{3, 2, 3, 4}, {2, 5, -1}, true, {-1}},
        {{3, 2, 3, 4}, {2, -1, -1}, true, {-1}},
        {{1, 4}, {3, 2, 2, 0}, true, {-1}},
        {{2, 4, 4}, {2, 3, 5}, true, {-1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_shape x = shape_of(cases[i].x);
        tv_shape y = {0};
        bool ok = tv_shape_reshape(&x, cases[i].target + 1, (size_t)cases[i].target[0],
                                   cases[i].zero_copies, &y);
        assert_int_equal(ok, cases[i].want[0] >= 0);
        if (ok)
            assert_shape(&y, cases[i].want);
    }
}

static void axes_come_and_go(void **state)
{
    (void)state;
    tv_shape x = tv_shape_of(4, (int64_t[]){2, 1, 3, 1});
    tv_shape y = {0};
    assert_true(tv_shape_squeeze(&x, (int64_t[]){-1}, 1, &y));
    assert_shape(&y, (sizes){3, 2, 1, 3});
    assert_true(tv_shape_squeeze(&x, NULL, 0, &y));
    assert_shape(&y, (sizes){2, 2, 3});
    assert_false(tv_shape_squeeze(&x, (int64_t[]){0}, 1, &y));
    assert_true(tv_shape_unsqueeze(&y, (int64_t[]){0, -1}, 2, &y));
    assert_shape(&y, (sizes){4, 1, 2, 3, 1});
    assert_false(tv_shape_unsqueeze(&x, (int64_t[]){0, 0}, 2, &y));
    assert_true(tv_shape_reduce(&x, (int64_t[]){0, 2}, 2, true, &y));
    assert_shape(&y, (sizes){4, 1, 1, 1, 1});
    assert_true(tv_shape_reduce(&x, (int64_t[]){0, 2}, 2, false, &y));
    assert_shape(&y, (sizes){2, 1, 1});
    assert_false(tv_shape_reduce(&x, (int64_t[]){4}, 1, false, &y));
    assert_true(tv_shape_permute(&x, NULL, 0, &y));
    assert_shape(&y, (sizes){4, 1, 3, 1, 2});
    assert_false(tv_shape_permute(&x, (int64_t[]){0, 0, 1, 2}, 4, &y));
}

static void slices_are_numpys(void **state)
{
    (void)state;
    static const struct {
        int64_t size, start, end, step, n, first;
    } cases[] = {
        {10, 0, 10, 1, 10, 0},
        {10, 2, INT64_MAX, 3, 3, 2},
        {10, -3, INT64_MAX, 1, 3, 7},
        {10, -1, INT64_MIN, -1, 10, 9},
        {10, INT64_MAX, -11, -3, 4, 9},
        {10, 5, 5, 1, 0, 5},
        {10, 8, 2, 1, 0, 8},
        {0, 0, 5, 1, 0, 0},
        {4, -9, 9, 2, 2, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t first = -2;
        assert_int_equal(
            tv_shape_slice(cases[i].size, cases[i].start, cases[i].end, cases[i].step, &first),
            cases[i].n);
        if (cases[i].n)
            assert_int_equal(first, cases[i].first);
    }
}

static void windows_slide(void **state)
{
    (void)state;
    static const struct {
        int64_t size, kernel, stride, dilation, before, after;
        tv_pad_mode mode;
        bool ceil, keeps_tail;
        int64_t want;
    } cases[] = {
        {224, 7, 2, 1, 3, 3, TV_PAD_STATED, false, false, 112},
        {112, 3, 2, 1, 1, 1, TV_PAD_STATED, false, false, 56},
        {5, 2, 2, 1, 0, 0, TV_PAD_STATED, true, false, 3},
        /* The third window would begin in the padding: torch leaves it out, Paddle does not. */
        {4, 1, 3, 1, 0, 1, TV_PAD_STATED, true, false, 2},
        {4, 2, 3, 1, 1, 1, TV_PAD_STATED, true, false, 2},
        {3, 1, 2, 1, 0, 1, TV_PAD_STATED, true, false, 2},
        {3, 1, 2, 1, 0, 1, TV_PAD_STATED, true, true, 3},
        {7, 3, 2, 1, 0, 0, TV_PAD_SAME_UPPER, false, false, 4},
        {7, 3, 2, 1, 9, 9, TV_PAD_VALID, false, false, 3},
        {32, 3, 1, 4, 4, 4, TV_PAD_STATED, false, false, 32},
        {2, 3, 1, 1, 0, 0, TV_PAD_STATED, false, false, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_window w = {.kernel = {cases[i].kernel},
                       .stride = {cases[i].stride},
                       .dilation = {cases[i].dilation},
                       .before = {cases[i].before},
                       .after = {cases[i].after},
                       .mode = cases[i].mode,
                       .ceil = cases[i].ceil,
                       .keeps_tail = cases[i].keeps_tail};
        assert_int_equal(tv_shape_slide(&w, 0, cases[i].size), cases[i].want);
    }
    tv_window up = {.kernel = {4}, .stride = {2}, .before = {1}, .after = {1}};
    assert_int_equal(tv_shape_slide_back(&up, 0, 14, 0), 28);
    assert_int_equal(tv_shape_slide_back(&up, 0, 14, 1), 29);
}

static void symbols_are_reckoned(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double want; /* < 0: no value */
    } cases[] = {
        {"batch", 4},
        {"batch * 3", 12},
        {"2*s0 + 1", 15},
        {"(s0 - 1)//2 + 1", 4},
        {"s0 - s0 // 2", 4},
        {"floor(s0/2) + ceiling(s0/2)", 7},
        {"Max(1, s0 - 10)", 1},
        {"Min(s0, batch, 5)", 4},
        {"Mod(s0, 4)", 3},
        {"s0**2", 49},
        {"past + s0", 7},
        {"p2o.Dim.0", 9},
        {"FloorDiv(s0, 2)", 3},
        {"s0 % batch", 3},
        {"other + 1", -1},
        {"s0 / 0", -1},
        {"s0 +", -1},
        {"((((((((((((((((((((((((((((((((((((((((s0", -1},
        {"", -1},
    };
    tv_arena *a = test_arena();
    tv_symbols t = {0};
    tv_symbols_set(a, &t, TV_S("batch"), 3);
    tv_symbols_set(a, &t, TV_S("batch"), 4);
    tv_symbols_set(a, &t, TV_S("s0"), 7);
    tv_symbols_set(a, &t, TV_S("past"), 0);
    tv_symbols_set(a, &t, TV_S("p2o.Dim.0"), 9);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double v = -1;
        bool ok = tv_symbols_eval(&t, tv_str_of(cases[i].text), &v, NULL);
        if (ok != (cases[i].want >= 0) || (ok && v != cases[i].want))
            fail_msg("%s gave %g", cases[i].text, v);
    }
    tv_str missing = {0};
    double v = 0;
    assert_false(tv_symbols_eval(&t, TV_S("batch * other"), &v, &missing));
    assert_str(missing, "other");
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_broadcast), cmocka_unit_test(shapes_are_seen_anew),
        cmocka_unit_test(axes_come_and_go), cmocka_unit_test(slices_are_numpys),
        cmocka_unit_test(windows_slide),    cmocka_unit_test(symbols_are_reckoned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
