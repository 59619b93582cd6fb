/* Tables, lists and CSV of nvidia-smi and rocm-smi, dmon, ipmitool, metrics: any bytes end in notes
 * that can be written. Each reader is handed the lines directly, needles or not. */
#include "documents.h"

static void check(tv_arena *a, tv_str text)
{
    static const char *const names[] = {
        "nvidia-smi",    "nvidia-smi -q",   "nvidia-smi --format=csv",
        "nvidia-smi -L", "nvidia-smi dmon", "ipmitool",
        "prometheus",    "rocm-smi",        NULL};
    tv_scene scene = {0};
    fuzz_readers(a, text, names, &scene);
    fuzz_sightings(a, &scene);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_guarded((tv_str){(const char *)data, size}, check);
}
