/* Regular expressions over module names, as adapters and quantisation settings write them. */
#include "testing.h"

#include "base/pattern.h"

typedef struct match_case {
    const char *pattern, *text;
    bool whole, start; /* found as fullmatch, as match */
} match_case;

static void patterns_match_as_python_matches_them(void **state)
{
    (void)state;
    static const match_case cases[] = {
        {"", "", true, true},
        {"", "a", false, true},
        {"abc", "abc", true, true},
        {"abc", "abcd", false, true},
        {"a.c", "axc", true, true},
        {"a\\.c", "axc", false, false},
        {".*q_proj", "model.layers.0.self_attn.q_proj", true, true},
        {".*\\.layers\\.\\d+\\.self_attn\\.(q|v)_proj", "model.layers.17.self_attn.v_proj", true,
         true},
        {".*\\.layers\\.\\d+\\.self_attn\\.(q|v)_proj", "model.layers.17.self_attn.k_proj", false,
         false},
        {"(?:q|k|v)_proj", "k_proj", true, true},
        {"a|b|cd", "cd", true, true},
        {"a|ab", "ab", true, true},
        {"a*", "aaaa", true, true},
        {"a+", "", false, false},
        {"ab?c", "ac", true, true},
        {"(ab)+", "ababab", true, true},
        {"(ab)+", "ababa", false, true},
        {"(a|b)*c", "abbac", true, true},
        {"[abc]+", "cab", true, true},
        {"[^.]+", "model.layers", false, true},
        {"[a-z_0-9]+", "q_proj2", true, true},
        {"layers\\.[0-3]\\.", "layers.2.", true, true},
        {"layers\\.(1[0-9]|2[0-7])\\..*", "layers.25.mlp", true, true},
        {"layers\\.(1[0-9]|2[0-7])\\..*", "layers.28.mlp", false, false},
        {"\\d{2,3}", "123", true, true},
        {"\\d{2}", "123", false, true},
        {"\\d{2,}", "1", false, false},
        {"^lm_head$", "lm_head", true, true},
        {"vision.*", "vision_tower.0", true, true},
        {".*?gate$", "mlp.gate", true, true},
        {"(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaa", false, false},
        {"(.*)(.*)x", "yyyx", true, true},
        {"[]a]+", "]a", true, true},
        {"()*", "", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tv_str p = tv_str_of(cases[i].pattern), s = tv_str_of(cases[i].text);
        const tv_match whole = tv_pattern_match(p, s), start = tv_pattern_match_start(p, s);
        if (whole.found != cases[i].whole || start.found != cases[i].start)
            fail_msg("%s on %s: %d, %d", cases[i].pattern, cases[i].text, whole.found, start.found);
    }
}

static void what_is_not_understood_says_so(void **state)
{
    (void)state;
    static const char *const patterns[] = {"(?!a)b", "(?<=a)b", "(?P<x>a)", "\\bword", "(a)\\1",
                                           "[abc",   "(abc",    "a**",      "*a",      "a\\"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        const tv_match m = tv_pattern_match(tv_str_of(patterns[i]), TV_S("aab"));
        if (m.found || m.understood)
            fail_msg("%s was understood", patterns[i]);
    }
}

static void no_pattern_runs_long(void **state)
{
    (void)state;
    const tv_str text = TV_S("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    const tv_match m = tv_pattern_match(TV_S("(a|a)*(a|a)*(a|a)*b"), text);
    assert_false(m.found);
    assert_false(m.understood);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_as_python_matches_them),
        cmocka_unit_test(what_is_not_understood_says_so),
        cmocka_unit_test(no_pattern_runs_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
