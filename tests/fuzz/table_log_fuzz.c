/* Printed tables of profilers, iostat, vmstat, nsys stats, logs of trainings, recorded scalars: any
 * bytes end in notes that can be written. The formats are asked without looking for their needles:
 * that would take longer than the reading. */
#include "fuzzing.h"

#include <string.h>

#include "trace/sheet.h"
#include "trace/trace.h"

static bool is_table(const char *name)
{
    static const char *const names[] = {
        "key-averages",   "lightning-profiler", "paddle-profiler", "launch-gpu-log", "iostat",
        "loader-workers", "train-log",          "nsys-stats",      "cpu-load"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static void read_text(tv_arena *a, tv_str text, tv_scene *scene)
{
    tv_sheet sheet;
    tv_sheet_fill(a, &sheet, TV_S("fuzz"), 1, text);
    tv_reading r = {a, scene, &sheet};
    for (size_t i = 0; tv_log_formats[i]; i++)
        if (is_table(tv_log_formats[i]->name))
            tv_log_formats[i]->read(&r);
}

static void read_scalars(tv_arena *a, tv_str bytes, tv_scene *scene)
{
    tv_input in = {.name = TV_S("vdlrecords.1.log"), .head = bytes};
    const tv_bytes_view view = {(const unsigned char *)bytes.p, bytes.n};
    const tv_err *e = tv_stream_over(a, in.name, view, &in.stream);
    for (size_t i = 0; !e && tv_dump_formats[i]; i++)
        if (strcmp(tv_dump_formats[i]->name, "scalars") == 0 && tv_dump_formats[i]->is(&in))
            e = tv_dump_formats[i]->read(a, &in, scene);
    fuzz_check(a, e);
}

static void check(tv_arena *a, const uint8_t *data, size_t size)
{
    tv_scene scene = {0};
    const tv_str text = {(const char *)data, size};
    read_text(a, text, &scene);
    read_scalars(a, text, &scene);
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
