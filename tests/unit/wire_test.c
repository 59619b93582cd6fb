/* The protobuf walk: values as they are written, and each kind of damage with its id and offset. */
#include "testing.h"

#include "codec/wire.h"

typedef struct bad_case {
    const char *bytes;
    size_t n;
    const char *id;
    uint64_t offset;
} bad_case;

#define BAD(bytes, id, offset)                                                                     \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, id, offset                                                       \
    }

static tv_wire wire_of(tv_arena *a, const void *bytes, size_t n)
{
    return tv_wire_in(a, TV_S("f"), (tv_bytes_view){bytes, n});
}

static const tv_err *walk(tv_wire w, size_t *n)
{
    tv_wire_field f;
    bool more = true;
    for (*n = 0; more; *n += more)
        TV_TRY(tv_wire_next(&w, &f, &more));
    return NULL;
}

static void damage_has_its_id_and_offset(void **state)
{
    (void)state;
    static const bad_case cases[] = {
        BAD("\x08", "wire.short", 1),
        BAD("\x08\x80", "wire.short", 2),
        BAD("\x80", "wire.short", 1),
        BAD("\x0d\x01\x02\x03", "wire.short", 4),
        BAD("\x09\x01\x02\x03\x04\x05\x06\x07", "wire.short", 8),
        BAD("\x08\x01\x0a\x03"
            "ab",
            "wire.length", 3),
        BAD("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "wire.length", 1),
        BAD("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "wire.varint", 1),
        BAD("\x00\x01", "wire.number", 0),
        BAD("\xff\xff\xff\xff\x7f\x01", "wire.number", 0),
        BAD("\x0e\x01", "wire.type", 0),
        BAD("\x0f\x01", "wire.type", 0),
        BAD("\x0c", "wire.group", 0),
        BAD("\x0b\x14", "wire.group", 1),
        BAD("\x0b\x08\x01", "wire.short", 3),
        BAD("\x0b\x0e\x01\x0c", "wire.type", 1),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_arena *a = test_arena();
        size_t n = 0;
        const tv_err *e = walk(wire_of(a, cases[i].bytes, cases[i].n), &n);
        assert_non_null(e);
        assert_string_equal(e->what.id, cases[i].id);
        assert_int_equal(e->offset, cases[i].offset);
        tv_arena_close(a);
    }
}

static void groups_are_skipped(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    /* 1: group {2: 5, 3: group {}}, 4: 7 */
    static const char bytes[] = "\x0b\x10\x05\x1b\x1c\x0c\x20\x07";
    tv_wire w = wire_of(a, bytes, sizeof bytes - 1);
    tv_wire_field f;
    bool more = false;
    assert_ok(a, tv_wire_next(&w, &f, &more));
    assert_true(more);
    assert_int_equal(f.number, 4);
    assert_int_equal(f.v, 7);
    assert_int_equal(f.at, 6);
    assert_ok(a, tv_wire_next(&w, &f, &more));
    assert_false(more);
    char deep[400];
    memset(deep, 0x0b, sizeof deep);
    size_t n = 0;
    const tv_err *e = walk(wire_of(a, deep, sizeof deep), &n);
    assert_non_null(e);
    assert_string_equal(e->what.id, "wire.too-deep");
    tv_arena_close(a);
}

static tv_wire_field field_of(tv_arena *a, const void *bytes, size_t n, tv_wire *w)
{
    *w = wire_of(a, bytes, n);
    tv_wire_field f;
    bool more = false;
    assert_ok(a, tv_wire_next(w, &f, &more));
    assert_true(more);
    return f;
}

static void scalars_read_as_written(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_wire w;
    uint64_t u = 0;
    int64_t i = 0;
    int32_t small = 0;
    bool yes = false;
    double d = 0;
    tv_str s = {0};
    tv_wire_field f = field_of(a, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, &w);
    assert_ok(a, tv_wire_u64(&w, &f, &u));
    assert_true(u == UINT64_MAX);
    assert_ok(a, tv_wire_i64(&w, &f, &i));
    assert_true(i == -1);
    assert_ok(a, tv_wire_i32(&w, &f, &small));
    assert_int_equal(small, -1);
    assert_ok(a, tv_wire_bool(&w, &f, &yes));
    assert_true(yes);
    f = field_of(a, "\x0d\x00\x00\xc0\x3f", 5, &w);
    assert_ok(a, tv_wire_f32(&w, &f, &d));
    assert_close(d, 1.5, 0);
    f = field_of(a, "\x09\x00\x00\x00\x00\x00\x00\xf8\xbf", 9, &w);
    assert_ok(a, tv_wire_f64(&w, &f, &d));
    assert_close(d, -1.5, 0);
    f = field_of(a, "\x0a\x02hi", 4, &w);
    assert_ok(a, tv_wire_str(&w, &f, &s));
    assert_str(s, "hi");
    const tv_err *e = tv_wire_u64(&w, &f, &u);
    assert_non_null(e);
    assert_string_equal(e->what.id, "wire.other-type");
    assert_int_equal(e->offset, 0);
    tv_arena_close(a);
}

/* A message within a message keeps the offsets of the file. */
static void messages_nest(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    static const char bytes[] = "\x10\x01\x0a\x04\x0a\x02\x08\x80";
    tv_wire w = wire_of(a, bytes, sizeof bytes - 1), inner, innermost;
    tv_wire_field f;
    bool more = false;
    assert_ok(a, tv_wire_next(&w, &f, &more));
    assert_ok(a, tv_wire_next(&w, &f, &more));
    assert_ok(a, tv_wire_enter(&w, &f, &inner));
    assert_ok(a, tv_wire_next(&inner, &f, &more));
    assert_int_equal(f.at, 4);
    assert_ok(a, tv_wire_enter(&inner, &f, &innermost));
    const tv_err *e = tv_wire_next(&innermost, &f, &more);
    assert_non_null(e);
    assert_string_equal(e->what.id, "wire.short");
    assert_int_equal(e->offset, 8);
    f = (tv_wire_field){.number = 1, .type = TV_WIRE_BYTES, .bytes = TV_S("")};
    tv_wire at = w;
    unsigned depth = 0;
    while (!(e = tv_wire_enter(&at, &f, &inner))) {
        at = inner;
        depth++;
    }
    assert_string_equal(e->what.id, "wire.too-deep");
    assert_int_equal(depth, TV_LIMIT_WIRE_DEPTH - 1);
    tv_arena_close(a);
}

/* Packed and unpacked fields of one list, in their order; only the first `keep` are stored. */
static void repeated_scalars_join(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    static const char bytes[] = "\x08\x05\x0a\x04\x96\x01\x00\x07\x08\x09";
    for (size_t keep = 0; keep < 7; keep++) {
        static const int64_t want[] = {5, 150, 0, 7, 9};
        tv_wire w = wire_of(a, bytes, sizeof bytes - 1);
        tv_wire_ints list = {.keep = keep};
        tv_wire_field f;
        bool more = true;
        for (;;) {
            assert_ok(a, tv_wire_next(&w, &f, &more));
            if (!more)
                break;
            assert_ok(a, tv_wire_add_ints(&w, &f, &list));
        }
        assert_int_equal(list.n, 5);
        assert_int_equal(list.kept, keep < 5 ? keep : 5);
        for (size_t i = 0; i < list.kept; i++)
            assert_true(list.v[i] == want[i]);
    }
    tv_arena_close(a);
}

static void repeated_floats_join(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    static const char bytes[] = "\x0a\x08\x00\x00\x80\x3f\x00\x00\x00\x40"
                                "\x0d\x00\x00\x40\x40";
    for (size_t keep = 0; keep < 5; keep++) {
        tv_wire w = wire_of(a, bytes, sizeof bytes - 1);
        tv_wire_floats list = {.keep = keep};
        tv_wire_field f;
        bool more = true;
        for (;;) {
            assert_ok(a, tv_wire_next(&w, &f, &more));
            if (!more)
                break;
            assert_ok(a, tv_wire_add_floats(&w, &f, 4, &list));
        }
        assert_int_equal(list.n, 3);
        assert_int_equal(list.kept, keep < 3 ? keep : 3);
        for (size_t i = 0; i < list.kept; i++)
            assert_close(list.v[i], (double)i + 1, 0);
    }
    tv_arena_close(a);
}

static void damaged_lists_are_errors(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_wire w;
    tv_wire_field f = field_of(a, "\x0a\x02\x01\x80", 4, &w);
    for (size_t keep = 0; keep < 3; keep++) {
        tv_wire_ints list = {.keep = keep};
        const tv_err *e = tv_wire_add_ints(&w, &f, &list);
        assert_non_null(e);
        assert_string_equal(e->what.id, "wire.short");
        assert_int_equal(e->offset, 4);
    }
    tv_wire_floats list = {.keep = 1};
    f = field_of(a, "\x0a\x03\x01\x02\x03", 5, &w);
    const tv_err *e = tv_wire_add_floats(&w, &f, 4, &list);
    assert_non_null(e);
    assert_string_equal(e->what.id, "wire.short");
    f = field_of(a, "\x0d\x01\x02\x03\x04", 5, &w);
    e = tv_wire_add_floats(&w, &f, 8, &list);
    assert_non_null(e);
    assert_string_equal(e->what.id, "wire.other-type");
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_has_its_id_and_offset), cmocka_unit_test(groups_are_skipped),
        cmocka_unit_test(scalars_read_as_written),      cmocka_unit_test(messages_nest),
        cmocka_unit_test(repeated_scalars_join),        cmocka_unit_test(repeated_floats_join),
        cmocka_unit_test(damaged_lists_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
