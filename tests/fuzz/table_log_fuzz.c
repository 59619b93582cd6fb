/* Printed tables of profilers, iostat, vmstat, nsys stats, logs of trainings, recorded scalars: any
 * bytes end in notes that can be written. The formats are asked without looking for their needles:
 * that would take longer than the reading. */
#include "documents.h"

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

static void check(tv_arena *a, tv_str text)
{
    static const char *const names[] = {
        "key-averages",   "lightning-profiler", "paddle-profiler", "launch-gpu-log", "iostat",
        "loader-workers", "train-log",          "nsys-stats",      "cpu-load",       NULL};
    tv_scene scene = {0};
    fuzz_readers(a, text, names, &scene);
    read_scalars(a, text, &scene);
    fuzz_sightings(a, &scene);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_guarded((tv_str){(const char *)data, size}, check);
}
