/* zip: any bytes end in entries that lie inside the file, or in an error with its place. */
#include "fuzzing.h"

#include "codec/zip.h"

static const tv_err *read_all(tv_arena *a, const tv_zip *z)
{
    for (size_t i = 0; i < z->n; i++) {
        const tv_zip_entry *x = &z->entries[i];
        tv_bytes_view bytes = {0};
        if (tv_zip_find(z, x->name) != x || x->packed_bytes > z->bytes.n)
            abort();
        TV_TRY(tv_zip_read(a, z, x, (size_t)1 << 20, &bytes));
        if (bytes.n != x->bytes)
            abort();
        for (size_t k = 0; k < bytes.n; k++)
            (void)*(const volatile unsigned char *)&bytes.p[k];
    }
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_zip z;
        tv_arena_guard(a, &landing);
        const tv_err *e = tv_zip_open(a, TV_S("input"), (tv_bytes_view){data, size}, &z);
        e = e ? e : read_all(a, &z);
        fuzz_check(a, e);
        if (e && e->has_offset && e->offset > size)
            abort();
    }
    tv_arena_close(a);
    return 0;
}
