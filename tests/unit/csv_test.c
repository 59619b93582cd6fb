/* The csv cursor and gzip: round trips, and each kind of damage with its id and offset. */
#include "testing.h"

#include "codec/csv.h"
#include "codec/gzip.h"

typedef struct bad_case {
    const char *text;
    const char *id;
    uint64_t offset;
} bad_case;

static const tv_err *read_all(tv_arena *a, tv_str text, size_t *n)
{
    tv_csv csv;
    TV_TRY(tv_csv_open(a, TV_S("f.csv"), text, &csv));
    bool more = true;
    for (*n = 0; more; *n += more)
        TV_TRY(tv_csv_next(&csv, &more));
    return NULL;
}

static void damage_has_its_id_and_offset(void **state)
{
    (void)state;
    static const bad_case cases[] = {
        {"", "csv.empty", 0},
        {"a,a\n", "csv.same-name", 0},
        {"a,\n", "csv.no-name", 0},
        {"a,b\n1,2,3\n", "csv.fields", 4},
        {"a,b\n1\n", "csv.fields", 4},
        {"a,b\n1,\"2", "csv.open-quote", 6},
        {"a,b\n1,2\"3\n", "csv.stray-quote", 7},
        {"a,b\n1,\"2\"3\n", "csv.after-field", 9},
        {"a,b\r1,2", "csv.after-field", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_arena *a = test_arena();
        size_t n = 0;
        const tv_err *e = read_all(a, tv_str_of(cases[i].text), &n);
        assert_non_null(e);
        assert_string_equal(e->what.id, cases[i].id);
        assert_int_equal(e->offset, cases[i].offset);
        tv_arena_close(a);
    }
}

static void records_read_as_written(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_csv csv;
    assert_ok(a,
              tv_csv_open(a, TV_S("f"),
                          TV_S("\xEF\xBB\xBFid,note,x\r\n1,\"a, \"\"b\"\"\nc\",\r\n\n2,,3"), &csv));
    bool more = false;
    assert_ok(a, tv_csv_next(&csv, &more));
    assert_true(more);
    assert_str(tv_csv_get(&csv, "id"), "1");
    assert_str(tv_csv_get(&csv, "note"), "a, \"b\"\nc");
    assert_str(tv_csv_get(&csv, "x"), "");
    assert_int_equal(csv.line, 2);
    assert_ok(a, tv_csv_next(&csv, &more));
    assert_true(more);
    assert_str(tv_csv_get(&csv, "x"), "3");
    assert_str(tv_csv_get(&csv, "absent"), "");
    assert_int_equal(csv.line, 5);
    assert_ok(a, tv_csv_next(&csv, &more));
    assert_false(more);
    tv_arena_close(a);
}

static void fields_print_and_parse(void **state)
{
    (void)state;
    static const char *const fields[] = {"",           "plain", "a,b", "say \"x\"",
                                         "two\nlines", "cr\r",  "\""};
    const size_t n = sizeof fields / sizeof *fields;
    tv_arena *a = test_arena();
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, "a,b,c,d,e,f,g\n");
    for (size_t i = 0; i < n; i++) {
        tv_csv_put(&b, tv_str_of(fields[i]));
        tv_putc(&b, i + 1 < n ? ',' : '\n');
    }
    tv_csv csv;
    bool more = false;
    assert_ok(a, tv_csv_open(a, TV_S("f"), tv_buf_str(&b), &csv));
    assert_ok(a, tv_csv_next(&csv, &more));
    assert_true(more);
    for (size_t i = 0; i < n; i++)
        assert_str(csv.fields[i], fields[i]);
    tv_arena_close(a);
}

/* "a,b\n1,2\n" by gzip -n, twice (two members are one text). */
static const unsigned char member[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03,
                                       0x4b, 0xd4, 0x49, 0xe2, 0x32, 0xd4, 0x31, 0xe2, 0x02, 0x00,
                                       0x7b, 0x07, 0x97, 0x0a, 0x08, 0x00, 0x00, 0x00};

static void gzip_members_join(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    unsigned char two[2 * sizeof member];
    memcpy(two, member, sizeof member);
    memcpy(two + sizeof member, member, sizeof member);
    tv_str text = {0};
    assert_ok(a, tv_gzip_read(a, TV_S("f"), (tv_bytes_view){two, sizeof two}, 100, &text));
    assert_str(text, "a,b\n1,2\na,b\n1,2\n");
    tv_arena_close(a);
}

static void gzip_damage_is_an_error(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_str text = {0};
    for (size_t n = 0; n < sizeof member; n++) {
        const tv_err *e = tv_gzip_read(a, TV_S("f"), (tv_bytes_view){member, n}, 100, &text);
        assert_non_null(e);
        assert_string_equal(e->what.id, "gzip.broken");
    }
    const tv_err *e = tv_gzip_read(a, TV_S("f"), (tv_bytes_view){member, sizeof member}, 7, &text);
    assert_non_null(e);
    assert_string_equal(e->what.id, "gzip.too-large");
    unsigned char wrong[sizeof member];
    memcpy(wrong, member, sizeof member);
    wrong[20] ^= 1; /* the checksum */
    e = tv_gzip_read(a, TV_S("f"), (tv_bytes_view){wrong, sizeof wrong}, 100, &text);
    assert_non_null(e);
    assert_string_equal(e->what.id, "gzip.broken");
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_has_its_id_and_offset), cmocka_unit_test(records_read_as_written),
        cmocka_unit_test(fields_print_and_parse),       cmocka_unit_test(gzip_members_join),
        cmocka_unit_test(gzip_damage_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
