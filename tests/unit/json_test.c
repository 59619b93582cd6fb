/* The scanner's errors at their exact offsets, documents, and round trips through the writer. */
#include "testing.h"

#include "base/json.h"

typedef struct bad_case {
    const char *text;
    const char *id;
    uint64_t offset;
} bad_case;

static void bad_text_names_its_offset(void **state)
{
    (void)state;
    static const bad_case cases[] = {
        {"", "json.short", 0},
        {"[1,2", "json.short", 4},
        {"[1 2]", "json.no-comma", 3},
        {"{\"a\" 1}", "json.no-colon", 5},
        {"{a:1}", "json.no-key", 1},
        {"[1,]", "json.trailing-comma", 3},
        {"[01]", "json.bad-number", 1},
        {"\"abc", "json.open-string", 4},
        {"\"a\x01\"", "json.control", 2},
        {"\"\\x\"", "json.bad-escape", 1},
        {"{} x", "json.more", 3},
        {"{\"k\":1,\"k\":2}", "json.duplicate-key", 11},
        {"nul", "json.unexpected", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_arena *a = test_arena();
        const tv_json *doc = NULL;
        const tv_err *e = tv_json_parse(a, TV_S("f"), tv_str_of(cases[i].text), &doc);
        assert_non_null(e);
        assert_string_equal(e->what.id, cases[i].id);
        assert_int_equal(e->offset, cases[i].offset);
        assert_int_equal(e->code, TV_INPUT);
        tv_arena_close(a);
    }
}

static void deep_nesting_is_an_error(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_buf b = tv_buf_in(a);
    tv_put_repeat(&b, TV_S("["), 100000);
    const tv_json *doc = NULL;
    const tv_err *e = tv_json_parse(a, TV_S(""), tv_buf_str(&b), &doc);
    assert_non_null(e);
    assert_string_equal(e->what.id, "json.too-deep");
    tv_arena_close(a);
}

static void documents_read_back(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_json *doc = NULL;
    assert_ok(a, tv_json_parse(a, TV_S(""),
                               TV_S("{\"a\":{\"b\":[1,2.5,-3e2]},\"s\":\"x\\u00e9\\n\","
                                    "\"big\":18446744073709551615,\"n\":null,\"t\":true}"),
                               &doc));
    assert_true(tv_json_at(tv_json_path(doc, "a.b"), 2)->number == -300);
    assert_str(tv_json_str(tv_json_get(doc, "s")), "x\xC3\xA9\n");
    assert_true(tv_json_u64(tv_json_get(doc, "big")).v == UINT64_MAX);
    assert_false(tv_json_has(doc, "n"));
    assert_true(tv_json_bool(tv_json_get(doc, "t"), false));
    assert_true(tv_json_num(tv_json_path(doc, "a.none.c"), 7) == 7);
    tv_arena_close(a);
}

static void writer_round_trips(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_json *doc = NULL;
    const tv_str text = TV_S("{\n  \"a\": [\n    1,\n    0.1,\n    \"q\\\"\\\\\"\n  ],\n  \"e\": "
                             "{},\n  \"n\": null\n}\n");
    assert_ok(a, tv_json_parse(a, TV_S(""), text, &doc));
    tv_buf b = tv_buf_in(a);
    tv_json_out w = tv_json_write(&b);
    tv_json_put_tree(&w, doc);
    assert_str(tv_buf_str(&b), text.p);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_text_names_its_offset),
        cmocka_unit_test(deep_nesting_is_an_error),
        cmocka_unit_test(documents_read_back),
        cmocka_unit_test(writer_round_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
