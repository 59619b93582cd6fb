/* Databases in memory, as nsys exports them: any bytes end in notes that can be written. */
#include "documents.h"

#include "trace/nsys_db.h"

static void check(tv_arena *a, tv_str text)
{
    tv_scene scene = {0};
    const tv_bytes_view bytes = {(const unsigned char *)text.p, text.n};
    fuzz_check(a, tv_nsys_read(a, TV_S("fuzz"), bytes, &scene));
    fuzz_sightings(a, &scene);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_guarded((tv_str){(const char *)data, size}, check);
}
