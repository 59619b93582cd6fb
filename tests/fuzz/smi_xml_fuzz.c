/* What stands between the tags of nvidia-smi -q -x: any bytes, also those that are no XML, end in
 * notes that can be written. */
#include "fuzzing.h"

#include <string.h>

#include "trace/sheet.h"

static void check(tv_arena *a, const uint8_t *data, size_t size)
{
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, "<nvidia_smi_log>");
    tv_put(&b, (tv_str){(const char *)data, size});
    tv_puts(&b, "</nvidia_smi_log>\n");
    tv_scene scene = {0};
    tv_sheet sheet = {0};
    tv_sheet_fill(a, &sheet, TV_S("smi.xml"), 1, tv_buf_str(&b));
    tv_reading r = {a, &scene, &sheet};
    for (size_t i = 0; tv_log_formats[i]; i++)
        if (strcmp(tv_log_formats[i]->name, "nvidia-smi -q -x") == 0)
            tv_log_formats[i]->read(&r);
    for (const tv_sighting *s = scene.first; s; s = s->next) {
        tv_buf out = tv_buf_in(a);
        tv_json_out w = tv_json_write(&out);
        tv_json_note(&w, &s->facts);
        if (!s->kind || !out.n)
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
