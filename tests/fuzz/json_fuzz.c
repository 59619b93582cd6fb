/* The JSON scanner: any bytes end in a document or an error; a document written and read again is
 * the same document. */
#include "fuzzing.h"

#include <unistr.h>

#include "base/json.h"

static tv_str written(tv_arena *a, const tv_json *doc)
{
    tv_buf b = tv_buf_in(a);
    tv_json_out w = tv_json_write(&b);
    tv_json_put_tree(&w, doc);
    return tv_buf_str(&b);
}

static void check(tv_arena *a, tv_str text)
{
    const tv_json *doc = NULL, *again = NULL;
    const tv_err *e = tv_json_parse(a, TV_S("input"), text, &doc);
    fuzz_check(a, e);
    if (e)
        return;
    /* Bytes that are no UTF-8 are written as U+FFFD, which may make two keys one. */
    if (u8_check((const uint8_t *)text.p, text.n))
        return;
    const tv_str first = written(a, doc);
    if (tv_json_parse(a, TV_S("output"), first, &again) || !tv_str_eq(written(a, again), first))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        check(a, (tv_str){(const char *)data, size});
    }
    tv_arena_close(a);
    return 0;
}
