/* lspci's text: any bytes end in sightings that can be written and judged. */
#include "documents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"lspci", NULL};
    return fuzz_doctor(data, size, names);
}
