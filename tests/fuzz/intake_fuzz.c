/* Any bytes as a document: unpacked, cut into lines, searched, and read by every reader. */
#include "base/err.h"
#include "base/limits.h"
#include "trace/trace.h"

#include <setjmp.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    jmp_buf landing;
    tv_arena *a = tv_arena_open((size_t)512 << 20);
    if (!a)
        return 0;
    tv_arena_guard(a, &landing);
    if (setjmp(landing) == 0) {
        tv_scene *scene = tv_new(a, tv_scene, 1);
        const tv_err *e =
            tv_trace_document(a, TV_S("fuzz"), (tv_str){(const char *)data, size}, scene);
        (void)e;
    }
    tv_arena_close(a);
    return 0;
}
