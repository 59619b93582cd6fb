/* The catalogue of Xid codes: in order, without overlaps, and as docs/xid.md shows it. */
#include "testing.h"

#include "base/file.h"
#include "diagnose/xid_table.h"

static void rows_are_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < tv_xid_n; i++) {
        const tv_xid_row *row = &tv_xid_rows[i];
        assert_true(row->first <= row->last);
        assert_true(i == 0 || tv_xid_rows[i - 1].last < row->first);
        assert_ptr_equal(tv_xid_named(row->first), row);
        assert_ptr_equal(tv_xid_named(row->last), row);
        assert_true(row->name && row->meaning && row->action);
    }
    assert_null(tv_xid_named(9999));
    assert_null(tv_xid_named(12));
}

static void put_row(tv_buf *b, const tv_xid_row *row)
{
    tv_puts(b, "| ");
    tv_put_u64(b, row->first);
    if (row->last != row->first) {
        tv_putc(b, '-');
        tv_put_u64(b, row->last);
    }
    tv_puts(b, " | `");
    tv_puts(b, row->name);
    tv_puts(b, "` | ");
    tv_puts(b, row->meaning);
    tv_puts(b, " | ");
    tv_puts(b, row->action);
    tv_puts(b, " | ");
    tv_puts(b, row->then ? row->then : "");
    tv_puts(b, " | ");
    tv_puts(b, tv_xid_class_name(row->kind));
    tv_puts(b, " | ");
    tv_puts(b, row->rule ? row->rule : "X00");
    tv_puts(b, " |\n");
}

static void the_page_shows_the_table(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_str page;
    assert_ok(a, tv_file_read(a, TV_S("docs/xid.md"), (size_t)1 << 20, &page));
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < tv_xid_n; i++)
        put_row(&b, &tv_xid_rows[i]);
    if (!tv_str_ends(page, tv_buf_str(&b)))
        fail_msg("docs/xid.md does not end with\n%.*s", TV_FMT(tv_buf_str(&b)));
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_in_order),
        cmocka_unit_test(the_page_shows_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
