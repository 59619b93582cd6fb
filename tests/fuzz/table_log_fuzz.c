/* Printed tables of profilers, iostat, vmstat, nsys stats, logs of trainings, recorded scalars: any
 * bytes end in notes that can be written, or in an error with words. */
#include "fuzzing.h"

#include "trace/trace.h"

static void check(tv_arena *a, const uint8_t *data, size_t size)
{
    tv_scene scene = {0};
    const tv_str text = {(const char *)data, size};
    const tv_err *e = tv_trace_document(a, TV_S("vdlrecords.1.log"), text, &scene);
    fuzz_check(a, e);
    for (const tv_sighting *s = scene.first; s; s = s->next) {
        tv_buf b = tv_buf_in(a);
        tv_json_out w = tv_json_write(&b);
        tv_json_note(&w, &s->facts);
        if (!s->kind || !b.n)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        check(a, data, size);
    }
    tv_arena_close(a);
    return 0;
}
