/* Runs every file of a corpus folder, and each of its prefixes at a few cuts, through a fuzz
 * target. A crash is the failure; the sanitizers turn silent mistakes into one. Prints TAP. */
#include "fuzzing.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

/* Inputs end where a heap block ends, so that a read past the end is seen. */
static void feed(const char *bytes, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy)
        abort();
    if (n)
        memcpy(copy, bytes, n);
    (void)LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static void feed_cut(tv_str text)
{
    feed(text.p, text.n);
    for (size_t k = 1; k < 8; k++)
        feed(text.p, text.n * k / 8);
    for (size_t k = 1; k <= 8 && k <= text.n; k++)
        feed(text.p, text.n - k);
}

static bool replay(tv_arena *a, tv_str folder, tv_str name)
{
    tv_str text = {0};
    const tv_err *e = tv_file_read(a, tv_path_join(a, folder, name), (size_t)16 << 20, &text);
    if (e)
        return false;
    feed_cut(text);
    return true;
}

int main(int argc, char **argv)
{
    tv_arena *a = fuzz_arena();
    tv_dir files = {0};
    if (argc != 2 || tv_dir_list(a, tv_str_of(argv[1]), &files) || files.n == 0) {
        (void)puts("1..1\nnot ok 1 - the corpus is empty");
        return 1;
    }
    int failed = 0;
    (void)printf("1..%zu\n", files.n);
    for (size_t i = 0; i < files.n; i++) {
        /* The name first: it tells which input a crash came from. */
        (void)printf("# %.*s\n", TV_FMT(files.v[i].name));
        (void)fflush(stdout);
        const bool ok = replay(a, tv_str_of(argv[1]), files.v[i].name);
        failed += !ok;
        (void)printf("%s %zu - %.*s\n", ok ? "ok" : "not ok", i + 1, TV_FMT(files.v[i].name));
    }
    tv_arena_close(a);
    return failed ? 1 : 0;
}
