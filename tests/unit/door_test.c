/* The door: options before and behind the command, errors to status and JSON, and what is left
 * when memory ends at any point. */
#include "testing.h"

#include "trivet.h"

#include "base/json.h"
#include "command/command.h"
#include "command/door.h"

typedef struct run_case {
    const char *words[6];
    int status;
    const char *out; /* what stdout begins with */
    const char *err; /* what stderr begins with */
} run_case;

static int count_words(const char *const *words)
{
    int n = 0;
    while (n < 6 && words[n])
        n++;
    return n;
}

static void requests_are_answered(void **state)
{
    (void)state;
    static const run_case cases[] = {
        {{"trivet", "--version"}, 0, "trivet " TV_VERSION "\n", ""},
        {{"trivet", "version"}, 0, "trivet " TV_VERSION "\n", ""},
        {{"trivet", "version", "-V"}, 0, "trivet " TV_VERSION "\n", ""},
        {{"trivet", "help"}, 0, "Usage: trivet COMMAND", ""},
        {{"trivet", "-h"}, 0, "Usage: trivet COMMAND", ""},
        {{"trivet", "help", "version"}, 0, "Usage: trivet version", ""},
        {{"trivet", "version", "--help"}, 0, "Usage: trivet version", ""},
        {{"trivet", "--lang", "zh", "help"}, 0, "用法：", ""},
        {{"trivet"}, 2, "", "Usage: trivet COMMAND"},
        {{"trivet", "verzion"},
         2,
         "",
         "trivet: unknown command \"verzion\"\nhint: Did you mean version?"},
        {{"trivet", "--json", "nothing-like-it"}, 2, "{\n  \"error\"", "trivet: unknown command"},
        {{"trivet", "version", "--lang", "xx"}, 2, "", "trivet: --lang cannot be \"xx\""},
        {{"trivet", "version", "more"}, 2, "", "trivet: unexpected \"more\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trivet_options options;
        trivet_defaults(&options);
        trivet_reply *reply = NULL;
        const int status =
            trivet_run(&options, count_words(cases[i].words), cases[i].words, &reply);
        assert_non_null(reply);
        assert_int_equal(status, cases[i].status);
        assert_true(tv_str_starts(tv_str_of(trivet_reply_out(reply)), tv_str_of(cases[i].out)));
        assert_true(tv_str_starts(tv_str_of(trivet_reply_err(reply)), tv_str_of(cases[i].err)));
        assert_int_equal(strlen(trivet_reply_out(reply)), trivet_reply_out_size(reply));
        assert_int_equal(trivet_reply_out_size(reply) == 0, *cases[i].out == '\0');
        assert_int_equal(trivet_reply_err_size(reply) == 0, *cases[i].err == '\0');
        trivet_reply_free(reply);
    }
}

static void the_locale_chooses_the_language(void **state)
{
    (void)state;
    static const char *const words[] = {"trivet", "help"};
    trivet_options options;
    trivet_defaults(&options);
    options.locale = "zh_CN.UTF-8";
    trivet_reply *reply = NULL;
    assert_int_equal(trivet_run(&options, 2, words, &reply), 0);
    assert_true(tv_str_starts(tv_str_of(trivet_reply_out(reply)), TV_S("用法：")));
    trivet_reply_free(reply);
}

/* An options struct of an older, shorter version: the fields it does not have stay unread. */
static void older_callers_are_served(void **state)
{
    (void)state;
    static const char *const words[] = {"trivet", "help"};
    trivet_options options;
    trivet_defaults(&options);
    options.size = offsetof(trivet_options, colour);
    options.budget_bytes = 1;
    trivet_reply *reply = NULL;
    assert_int_equal(trivet_run(&options, 2, words, &reply), 0);
    trivet_reply_free(reply);
}

/* One request whose k-th allocation fails: a clean end, and true once k is beyond the last. */
static bool ends_cleanly(const char *const *words, uint64_t k)
{
    trivet_options options;
    trivet_defaults(&options);
    tv_arena *a = test_arena();
    tv_arena_fail_at(a, k);
    trivet_reply *reply = NULL;
    const int status = tv_door_run(a, &options, count_words(words), words, &reply);
    if (status != 0 && reply) {
        assert_int_equal(status, TV_LIMIT);
        assert_int_equal(trivet_reply_out_size(reply), 0);
        assert_true(tv_str_starts(tv_str_of(trivet_reply_err(reply)), TV_S("trivet: ")));
    } else if (status != 0) {
        assert_int_equal(status, TV_SYSTEM);
    }
    trivet_reply_free(reply);
    return status == 0;
}

/* The k-th allocation fails, for every k until the request gets through. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; tv_commands[i]; i++) {
        const char *const words[6] = {"trivet", tv_commands[i]->name, "--help", "--lang", "zh"};
        uint64_t k = 1;
        while (!ends_cleanly(words, k))
            assert_true(++k < 100000);
    }
}

/* Requests that read files, the catalogue and a model: every early allocation, then each that is
 * an eighth further on (there are many thousands). */
static void long_requests_end_cleanly_too(void **state)
{
    (void)state;
    static const char *const requests[][6] = {
        {"trivet", "models"},
        {"trivet", "size", "bert-base", "--gpu", "rtx-4090"},
        {"trivet", "size", "examples/small-net.json", "--gpu", "rtx-4090"},
        {"trivet", "plan", "examples/small-net.json", "--json"},
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        uint64_t k = 1;
        while (!ends_cleanly(requests[i], k)) {
            k += 1 + k / 8;
            assert_true(k < 1000000000);
        }
    }
}

static void a_small_budget_is_a_limit(void **state)
{
    (void)state;
    static const char *const words[] = {"trivet", "help"};
    trivet_options options;
    trivet_defaults(&options);
    options.budget_bytes = 4096;
    trivet_reply *reply = NULL;
    assert_int_equal(trivet_run(&options, 2, words, &reply), TV_LIMIT);
    assert_string_equal(trivet_reply_err(reply),
                        "trivet: the request needs more memory than it may take\n");
    trivet_reply_free(reply);
}

/* Every row is usable: named, told, and readable in help. */
static void commands_are_complete(void **state)
{
    (void)state;
    for (size_t i = 0; tv_commands[i]; i++) {
        const tv_command *c = tv_commands[i];
        assert_non_null(c->name);
        assert_non_null(c->summary);
        assert_non_null(c->usage);
        assert_non_null(c->run);
        assert_true(c->min_args <= c->max_args);
        assert_ptr_equal(tv_command_find(tv_str_of(c->name)), c);
        tv_option_walk walk = {.command = c};
        for (const tv_option *row; (row = tv_option_next(&walk));) {
            tv_option_walk other = {.command = c};
            size_t same = 0;
            for (const tv_option *at; (at = tv_option_next(&other));)
                same += strcmp(at->name, row->name) == 0;
            if (same != 1)
                fail_msg("%s: --%s stands twice", c->name, row->name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_answered),
        cmocka_unit_test(the_locale_chooses_the_language),
        cmocka_unit_test(older_callers_are_served),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(long_requests_end_cleanly_too),
        cmocka_unit_test(a_small_budget_is_a_limit),
        cmocka_unit_test(commands_are_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
