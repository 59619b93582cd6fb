/* Tables, lists and CSV of nvidia-smi and rocm-smi, dmon, ipmitool, metrics: any bytes end in notes
 * that can be written. Each reader is handed the lines directly, needles or not. */
#include "fuzzing.h"

#include <string.h>

#include "trace/sheet.h"

static const char *const ours[] = {"nvidia-smi",    "nvidia-smi -q",   "nvidia-smi --format=csv",
                                   "nvidia-smi -L", "nvidia-smi dmon", "ipmitool",
                                   "prometheus",    "rocm-smi"};

static bool is_ours(const tv_log_format *format)
{
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(format->name, ours[i]) == 0)
            return true;
    return false;
}

static void check(tv_arena *a, const uint8_t *data, size_t size)
{
    tv_scene scene = {0};
    tv_sheet sheet = {0};
    tv_sheet_fill(a, &sheet, TV_S("smi.txt"), 1, (tv_str){(const char *)data, size});
    tv_reading r = {a, &scene, &sheet};
    for (size_t i = 0; tv_log_formats[i]; i++)
        if (is_ours(tv_log_formats[i]))
            tv_log_formats[i]->read(&r);
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
