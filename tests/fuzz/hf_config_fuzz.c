/* JSON beside models: any text is a description, an index of weights, or an error. */
#include "reading.h"

static void describe(tv_arena *a, const uint8_t *data, size_t size)
{
    const tv_source *s = NULL;
    const tv_err *e = tv_read_description(a, TV_S("input"), (tv_str){(const char *)data, size}, &s);
    fuzz_check(a, e);
    if (e)
        return;
    if (s->kind == TV_SOURCE_NONE || !s->config || s->config->type != TV_JSON_OBJECT ||
        s->n_tensors)
        abort();
    fuzz_warnings(a, s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        describe(a, data, size);
        fuzz_read(a, tv_read_weight_index, data, size);
    }
    tv_arena_close(a);
    return 0;
}
