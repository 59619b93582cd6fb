/* PyTorch checkpoints: any bytes end in tensors that do not take more than their storages, or in
 * an error with its place. */
#include "reading.h"

static void check(const tv_source *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const tv_tensor *t = &s->tensors[i];
        if (t->rank > TV_LIMIT_RANK || (t->shares && t->bytes))
            abort();
        sum += (double)t->bytes;
    }
    if (sum != s->tensor_bytes)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        tv_gather g = tv_gather_in(a, TV_S("/nowhere/input"));
        const tv_source *s = NULL;
        const tv_err *e = tv_read_torch(&g, TV_S("/nowhere/input"), (tv_bytes_view){data, size});
        if (!e)
            e = tv_gather_done(&g, &s);
        fuzz_check(a, e);
        if (!e) {
            check(s);
            fuzz_warnings(a, s);
        }
    }
    tv_arena_close(a);
    return 0;
}
