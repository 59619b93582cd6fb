/* Environment reports, installation errors, lists of packages, variables, disks, latencies: any
 * bytes end in notes that can be written, or in an error with words. */
#include "documents.h"

static void check(tv_arena *a, tv_str text)
{
    fuzz_document(a, "report.txt", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_guarded((tv_str){(const char *)data, size}, check);
}
