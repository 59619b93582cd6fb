/* Kernel logs and what the driver's tools say: any bytes end in sightings that can be written and
 * judged. */
#include "documents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"xid-log",      "sxid-log",    "kernel-trouble",
                                        "driver-state", "smi-failure", NULL};
    return fuzz_doctor(data, size, names);
}
