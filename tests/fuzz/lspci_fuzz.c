/* lspci's text: any bytes end in sightings that can be written and judged. */
#include "documents.h"

static void check(tv_arena *a, tv_str text)
{
    static const char *const names[] = {"lspci", NULL};
    tv_scene scene = {0};
    fuzz_readers(a, text, names, &scene);
    fuzz_scene(a, &scene);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_guarded((tv_str){(const char *)data, size}, check);
}
