/* Any bytes through the redaction: nothing is read past the end. */
#include "base/limits.h"
#include "probe/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = tv_arena_open((size_t)512 << 20);
    if (!a)
        return 0;
    const tv_redact_names names = {.host = TV_S("trainbox.lab"), .user = TV_S("alice")};
    tv_document document = {TV_S("fuzz"), {(const char *)data, size < 65536 ? size : 65536}};
    const tv_documents all = {&document, 1, 1};
    tv_documents clean = {0};
    tv_redact(a, &names, &all, &clean);
    tv_arena_close(a);
    return 0;
}
