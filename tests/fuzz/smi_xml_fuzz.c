/* What stands between the tags of nvidia-smi -q -x: any bytes, also those that are no XML, end in
 * notes that can be written. */
#include "documents.h"

static void check(tv_arena *a, tv_str text)
{
    static const char *const names[] = {"nvidia-smi -q -x", NULL};
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, "<nvidia_smi_log>");
    tv_put(&b, text);
    tv_puts(&b, "</nvidia_smi_log>\n");
    tv_scene scene = {0};
    fuzz_readers(a, tv_buf_str(&b), names, &scene);
    fuzz_sightings(a, &scene);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_guarded((tv_str){(const char *)data, size}, check);
}
