/* The arena: zeroed memory, a budget, scratch use, and what is deferred. */
#include "testing.h"

static unsigned runs;

static void count(void *what)
{
    runs = runs * 10 + *(unsigned *)what;
}

static void defer_number(tv_arena *a, unsigned number)
{
    unsigned *n = tv_new(a, unsigned, 1);
    *n = number;
    tv_defer(a, count, n);
}

static void what_is_deferred_runs_newest_first(void **state)
{
    (void)state;
    runs = 0;
    tv_arena *a = test_arena();
    defer_number(a, 1);
    defer_number(a, 2);
    tv_arena_close(a);
    assert_int_equal(runs, 21);
}

static void rewinding_runs_what_came_after_the_mark(void **state)
{
    (void)state;
    runs = 0;
    tv_arena *a = test_arena();
    defer_number(a, 1);
    const tv_mark mark = tv_arena_mark(a);
    defer_number(a, 2);
    tv_new(a, char, 1 << 20); /* a block of its own, which goes */
    defer_number(a, 3);
    tv_arena_rewind(a, mark);
    assert_int_equal(runs, 32);
    assert_int_equal(tv_arena_used(a), mark.total);
    tv_arena_close(a);
    assert_int_equal(runs, 321);
}

static void memory_is_zero_after_a_rewind(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_new(a, char, 8);
    const tv_mark mark = tv_arena_mark(a);
    memset(tv_new(a, char, 64), 7, 64);
    tv_arena_rewind(a, mark);
    const char *again = tv_new(a, char, 64);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(again[i], 0);
    tv_arena_close(a);
}

static void a_spent_budget_goes_to_the_guard(void **state)
{
    (void)state;
    jmp_buf landing;
    volatile int reached = 0;
    tv_arena *a = tv_arena_open(4096);
    assert_non_null(a);
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        tv_new(a, char, 4096);
        reached = 1;
        tv_new(a, char, 1);
        reached = 2;
    }
    assert_int_equal(reached, 1);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_deferred_runs_newest_first),
        cmocka_unit_test(rewinding_runs_what_came_after_the_mark),
        cmocka_unit_test(memory_is_zero_after_a_rewind),
        cmocka_unit_test(a_spent_budget_goes_to_the_guard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
