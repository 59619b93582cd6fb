/* The zip reader against Python's zipfile on archives that tests/gen/archive_files.py writes:
 * every entry of the good ones, the error's id of the broken ones, every cut of a good one. */
#include "lines.h"

#include "codec/zip.h"

#include <zlib.h>

#define FIXTURES TEST_BUILD "/archive_files/"

enum { limit = 1 << 28 };

static void same_entry(tv_arena *a, const tv_zip *z, const tv_zip_entry *x, const tv_json *want)
{
    tv_bytes_view bytes = {0};
    uint64_t at = 0;
    assert_true(tv_str_eq(x->name, test_member(want, "name")));
    assert_ptr_equal(tv_zip_find(z, x->name), x);
    assert_int_equal(x->bytes, tv_json_u64(tv_json_get(want, "bytes")).v);
    assert_int_equal(x->packed_bytes, tv_json_u64(tv_json_get(want, "packed")).v);
    assert_int_equal(x->method, tv_json_u64(tv_json_get(want, "method")).v);
    assert_ok(a, tv_zip_data(a, z, x, &at));
    assert_int_equal(at, tv_json_u64(tv_json_get(want, "data")).v);
    assert_ok(a, tv_zip_read(a, z, x, limit, &bytes));
    assert_int_equal(bytes.n, x->bytes);
    assert_int_equal(crc32_z(0, bytes.p, bytes.n), tv_json_u64(tv_json_get(want, "crc")).v);
}

static const tv_err *read_all(tv_arena *a, const tv_zip *z)
{
    for (size_t i = 0; i < z->n; i++) {
        tv_bytes_view bytes = {0};
        TV_TRY(tv_zip_read(a, z, &z->entries[i], limit, &bytes));
    }
    return NULL;
}

static tv_str path_of(tv_arena *a, const tv_json *row)
{
    return tv_str_join(a, TV_S(FIXTURES), test_member(row, "path"));
}

static void check(tv_arena *a, const tv_json *row)
{
    const tv_json *want = tv_json_get(row, "entries");
    const tv_str id = test_member(row, "id"), path = path_of(a, row);
    tv_bytes_view bytes = {0};
    tv_zip z;
    assert_ok(a, tv_file_map(a, path, &bytes));
    const tv_err *e = tv_zip_open(a, path, bytes, &z);
    e = e ? e : read_all(a, &z);
    if (!id.n)
        assert_ok(a, e);
    if (id.n && (!e || !tv_str_eq(tv_str_of(e->what.id), id)))
        fail_msg("%.*s: %s", TV_FMT(path), e ? e->what.id : "no error");
    if (e)
        return;
    assert_int_equal(z.n, want->n);
    for (size_t i = 0; i < z.n; i++)
        same_entry(a, &z, &z.entries[i], tv_json_at(want, i));
    assert_null(tv_zip_find(&z, TV_S("absent")));
}

static void archives_read_as_zipfile_reads_them(void **state)
{
    (void)state;
    print_message("archives: %zu\n", test_lines(FIXTURES "zips.jsonl", check));
}

static void every_cut_is_an_error(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_bytes_view bytes = {0};
    assert_ok(a, tv_file_map(a, TV_S(FIXTURES "plain.zip"), &bytes));
    for (size_t n = 0; n < bytes.n; n++) {
        tv_zip z;
        const tv_mark mark = tv_arena_mark(a);
        assert_non_null(tv_zip_open(a, TV_S("cut"), (tv_bytes_view){bytes.p, n}, &z));
        tv_arena_rewind(a, mark);
    }
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(archives_read_as_zipfile_reads_them),
        cmocka_unit_test(every_cut_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
