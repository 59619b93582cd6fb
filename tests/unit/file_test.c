/* Files: what arrives in pieces, what is missing, what is too large. */
#include "testing.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

/* Writes a text to a pipe in pieces of `piece` bytes, each in its own write. */
static pid_t feed(int to, const char *text, size_t piece)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child)
        return child;
    for (size_t n = strlen(text), at = 0; at < n; at += piece) {
        const size_t some = n - at < piece ? n - at : piece;
        if (write(to, text + at, some) != (ssize_t)some)
            _exit(1);
    }
    _exit(0);
}

/* A read may return less than was asked for; the text is whole all the same. */
static void short_reads_are_joined(void **state)
{
    (void)state;
    static const char text[] = "{\"model_type\": \"bert\", \"hidden_size\": 768}\n";
    static const size_t pieces[] = {1, 2, 7, 1000};
    const int keep = dup(STDIN_FILENO);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        tv_arena *a = test_arena();
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        const pid_t child = feed(ends[1], text, pieces[i]);
        assert_int_equal(close(ends[1]), 0);
        assert_true(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
        tv_str got = {0};
        assert_ok(a, tv_file_read(a, TV_S("-"), 4096, &got));
        assert_str(got, text);
        assert_int_equal(close(ends[0]), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        tv_arena_close(a);
    }
    assert_true(keep < 0 || dup2(keep, STDIN_FILENO) == STDIN_FILENO);
    if (keep >= 0)
        assert_int_equal(close(keep), 0);
}

static void a_pipe_ends_at_the_limit(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const int keep = dup(STDIN_FILENO);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = feed(ends[1], "0123456789", 3);
    assert_int_equal(close(ends[1]), 0);
    assert_true(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    tv_str got = {0};
    const tv_err *e = tv_file_read(a, TV_S("-"), 9, &got);
    assert_non_null(e);
    assert_string_equal(e->what.id, "file.too-large");
    assert_int_equal(e->code, TV_LIMIT);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(keep < 0 || dup2(keep, STDIN_FILENO) == STDIN_FILENO);
    if (keep >= 0)
        assert_int_equal(close(keep), 0);
    tv_arena_close(a);
}

typedef struct bad_path {
    const char *path;
    tv_code code;
    const char *want;
} bad_path;

static void paths_that_cannot_be_read_say_why(void **state)
{
    (void)state;
    static const bad_path cases[] = {
        {"tests/no-such-file", TV_UNAVAILABLE,
         "tests/no-such-file: cannot read: No such file or directory\n"},
        {"tests", TV_SYSTEM, "tests: cannot read: Is a directory\n"},
        {"meson.build/x", TV_UNAVAILABLE, "meson.build/x: cannot read: Not a directory\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_arena *a = test_arena();
        tv_str text = {0};
        tv_bytes_view bytes = {0};
        const tv_err *read = tv_file_read(a, tv_str_of(cases[i].path), 4096, &text);
        const tv_err *mapped = tv_file_map(a, tv_str_of(cases[i].path), &bytes);
        assert_non_null(read);
        assert_non_null(mapped);
        assert_int_equal(read->code, cases[i].code);
        assert_int_equal(mapped->code, cases[i].code);
        tv_buf b = tv_buf_in(a);
        tv_put_err(&b, TV_EN, read);
        assert_str(tv_buf_str(&b), cases[i].want);
        tv_arena_close(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_reads_are_joined),
        cmocka_unit_test(a_pipe_ends_at_the_limit),
        cmocka_unit_test(paths_that_cannot_be_read_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
