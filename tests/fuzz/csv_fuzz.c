/* Any bytes through gzip (where they look like it) and the csv cursor: an answer or one error. */
#include "base/err.h"
#include "base/limits.h"
#include "codec/csv.h"
#include "codec/gzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const tv_err *run(tv_arena *a, tv_str text)
{
    tv_csv csv;
    TV_TRY(tv_csv_open(a, TV_S("fuzz"), text, &csv));
    bool more = true;
    while (more)
        TV_TRY(tv_csv_next(&csv, &more));
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = tv_arena_open((size_t)64 << 20);
    if (!a)
        return 0;
    tv_str text = {(const char *)data, size};
    const tv_bytes_view bytes = {data, size};
    const tv_err *e = NULL;
    if (tv_gzip_is(bytes))
        e = tv_gzip_read(a, TV_S("fuzz"), bytes, (size_t)1 << 20, &text);
    if (!e)
        e = run(a, text);
    (void)e;
    tv_arena_close(a);
    return 0;
}
