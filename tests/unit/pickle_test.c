/* The pickle reader against Python's own unpickler on what tests/gen/pickle_files.py writes, the
 * instructions that only old writers used, and each kind of damage with its place. */
#include "lines.h"

#include "codec/pickle.h"

#define FIXTURES TEST_BUILD "/pickle_files/"

enum { depth_limit = 12 }; /* the generator's */

static void put_hex(tv_buf *b, tv_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        tv_putc(b, "0123456789abcdef"[(unsigned char)s.p[i] >> 4]);
        tv_putc(b, "0123456789abcdef"[s.p[i] & 15]);
    }
}

static void put_node(tv_buf *b, const tv_pickle_node *x, unsigned depth);

static void put_list(tv_buf *b, const char *brackets, const tv_pickle_node *x, unsigned depth)
{
    const bool pairs = brackets[0] == '{';
    tv_putc(b, brackets[0]);
    for (size_t i = 0; i < x->n; i++) {
        if (i)
            tv_putc(b, pairs && i % 2 ? ':' : ',');
        put_node(b, x->items[i], depth);
    }
    tv_putc(b, brackets[1]);
}

static void put_object(tv_buf *b, const tv_pickle_object *x, unsigned depth)
{
    tv_putc(b, 'o');
    put_node(b, x->callee, depth);
    put_list(b, "()", x->args, depth + 1);
    if (x->state) {
        tv_putc(b, '!');
        put_node(b, x->state, depth);
    }
    if (x->items)
        put_list(b, "[]", x->items, depth + 1);
    if (x->pairs)
        put_list(b, "{}", x->pairs, depth);
}

static void put_float(tv_buf *b, double v)
{
    char bytes[8];
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (char)(bits >> (56 - 8 * i));
    tv_putc(b, 'f');
    put_hex(b, (tv_str){bytes, 8});
}

static void put_int(tv_buf *b, int64_t v)
{
    if (v < 0)
        tv_putc(b, '-');
    tv_put_u64(b, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static void put_node(tv_buf *b, const tv_pickle_node *x, unsigned depth)
{
    if (depth > depth_limit) {
        tv_puts(b, "...");
        return;
    }
    switch (x->kind) {
    case TV_PICKLE_NONE:
        tv_puts(b, "None");
        return;
    case TV_PICKLE_BOOL:
        tv_puts(b, x->b ? "True" : "False");
        return;
    case TV_PICKLE_INT:
        put_int(b, x->i);
        return;
    case TV_PICKLE_BIG_INT:
        tv_puts(b, "big");
        return;
    case TV_PICKLE_FLOAT:
        put_float(b, x->f);
        return;
    case TV_PICKLE_STR:
        tv_putc(b, 's');
        put_hex(b, x->s);
        return;
    case TV_PICKLE_BYTES:
        tv_putc(b, 'b');
        put_hex(b, x->s);
        return;
    case TV_PICKLE_TUPLE:
        put_list(b, "()", x, depth + 1);
        return;
    case TV_PICKLE_LIST:
        put_list(b, "[]", x, depth + 1);
        return;
    case TV_PICKLE_DICT:
        put_list(b, "{}", x, depth + 1);
        return;
    case TV_PICKLE_SET:
        put_list(b, "<>", x, depth + 1);
        return;
    case TV_PICKLE_GLOBAL:
        tv_putc(b, 'g');
        tv_put(b, x->s);
        return;
    case TV_PICKLE_OBJECT:
        put_object(b, x->object, depth + 1);
        return;
    case TV_PICKLE_PERSISTENT:
        tv_putc(b, 'p');
        put_node(b, x->items[0], depth + 1);
        return;
    }
}

static const tv_err *read_bytes(tv_arena *a, tv_bytes_view bytes, tv_str *text)
{
    tv_pickle p = {.file = TV_S("f"), .bytes = bytes, .base = 100};
    const tv_pickle_node *root = NULL;
    tv_buf b = tv_buf_in(a);
    TV_TRY(tv_pickle_next(a, &p, &root));
    put_node(&b, root, 0);
    *text = tv_buf_str(&b);
    assert_int_equal(p.at, bytes.n);
    return NULL;
}

static void check(tv_arena *a, const tv_json *row)
{
    const tv_str path = tv_str_join(a, TV_S(FIXTURES), test_member(row, "path"));
    const tv_str want = test_member(row, "text");
    tv_bytes_view bytes = {0};
    tv_str got = {0};
    assert_ok(a, tv_file_map(a, path, &bytes));
    assert_ok(a, read_bytes(a, bytes, &got));
    if (!tv_str_eq(got, want))
        fail_msg("%.*s: got %.*s, want %.*s", TV_FMT(path), TV_FMT(tv_str_take(got, 400)),
                 TV_FMT(tv_str_take(want, 400)));
}

static void pickles_read_as_python_reads_them(void **state)
{
    (void)state;
    print_message("pickles: %zu\n", test_lines(FIXTURES "pickles.jsonl", check));
}

typedef struct text_case {
    tv_str bytes;
    const char *text;
} text_case;

#define CASE(bytes, text)                                                                          \
    {                                                                                              \
        {(bytes), sizeof(bytes) - 1}, (text)                                                       \
    }

static void old_instructions_are_known(void **state)
{
    (void)state;
    static const text_case cases[] = {
        CASE("S'a\\x41\\n\\'b\\\\'\np0\n.", "s61410a27625c"),
        CASE("S\"it's\"\n.", "s69742773"),
        CASE("U\003abc.", "s616263"),
        CASE("T\003\0\0\0abc.", "s616263"),
        CASE("Vx\\u00e9\xe9\n.", "s78c3a9c3a9"),
        CASE("I01\n.", "True"),
        CASE("I-7\n.", "-7"),
        CASE("L12345678901234567890L\n.", "big"),
        CASE("Finf\n.", "f7ff0000000000000"),
        CASE("(I1\nI2\ni__main__\nC\n.", "og__main__.C(1,2)"),
        CASE("(c__main__\nC\nI1\no.", "og__main__.C(1)"),
        CASE("(lp0\nI1\nag0\na.", "[1,[1,[1,[1,[1,[1,[1,[1,[1,[1,[1,[1,[...,...]]]]]]]]]]]]]"),
        CASE("(dp0\nI1\nI2\ns.", "{1:2}"),
        CASE("P7\n.", "ps37"),
        CASE("I1\nI2\n0.", "1"),
        CASE("I1\n(I2\nI3\n1.", "1"),
        CASE("I1\n2\x86.", "(1,1)"),
        CASE("\x82\x05.", "gcopyreg.extension.5"),
        CASE("\x8a\x01\xff.", "-1"),
        CASE("\x8a\0.", "0"),
        CASE("cos\nsystem\n(S'echo'\ntR.", "ogos.system(s6563686f)"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_arena *a = test_arena();
        tv_str got = {0};
        const tv_bytes_view bytes = {(const unsigned char *)cases[i].bytes.p, cases[i].bytes.n};
        assert_ok(a, read_bytes(a, bytes, &got));
        assert_str(got, cases[i].text);
        tv_arena_close(a);
    }
}

typedef struct bad_case {
    tv_str bytes;
    const char *id;
    uint64_t offset;
} bad_case;

#define BAD(bytes, id, offset)                                                                     \
    {                                                                                              \
        {(bytes), sizeof(bytes) - 1}, (id), (offset)                                               \
    }

static void damage_has_its_place(void **state)
{
    (void)state;
    static const bad_case cases[] = {
        BAD("", "pickle.cut", 0),
        BAD("\x80", "pickle.cut", 1),
        BAD("N", "pickle.cut", 1),
        BAD("X\xff\xff\xff\xff.", "pickle.cut", 6),
        BAD("\x8e\xff\xff\xff\xff\xff\xff\xff\xff.", "pickle.cut", 10),
        BAD("\x95\x09\0\0\0\0\0\0\0N.", "pickle.cut", 11),
        BAD("I1", "pickle.cut", 2),
        BAD(".", "pickle.empty-stack", 0),
        BAD("N(.", "pickle.empty-stack", 2),
        BAD("NR.", "pickle.empty-stack", 1),
        BAD("(Na.", "pickle.empty-stack", 2),
        BAD("(Ne.", "pickle.empty-stack", 2),
        BAD("Nt.", "pickle.no-mark", 1),
        BAD("Ne.", "pickle.no-mark", 1),
        BAD("NNa.", "pickle.target", 2),
        BAD("](Nu.", "pickle.odd", 3),
        BAD("(Nd.", "pickle.odd", 2),
        BAD("h\0.", "pickle.memo", 0),
        BAD("Nr\xff\xff\xff\xff.", "pickle.memo-far", 1),
        BAD("NN\x93.", "pickle.name", 2),
        BAD("cx\ny\nNR.", "pickle.args", 6),
        BAD("NNb.", "pickle.build", 2),
        BAD("\x80\x06N.", "pickle.protocol", 0),
        BAD("\x97.", "pickle.opcode", 0),
        BAD("\xff.", "pickle.opcode", 0),
        BAD("Iabc\n.", "pickle.number", 0),
        BAD("Fabc\n.", "pickle.number", 0),
        BAD("L\n.", "pickle.number", 0),
        BAD("Sabc\n.", "pickle.quotes", 0),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_arena *a = test_arena();
        tv_str got = {0};
        const tv_bytes_view bytes = {(const unsigned char *)cases[i].bytes.p, cases[i].bytes.n};
        const tv_err *e = read_bytes(a, bytes, &got);
        if (!e || strcmp(e->what.id, cases[i].id) != 0 || e->offset != 100 + cases[i].offset)
            fail_msg("case %zu: %s at %d", i, e ? e->what.id : "no error",
                     e ? (int)e->offset - 100 : 0);
        tv_arena_close(a);
    }
}

static void pickles_follow_each_other(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const char text[] = "\x80\x02K\x01.\x80\x02}q\x00U\x01wK\x05s.rest";
    tv_pickle p = {.bytes = {(const unsigned char *)text, sizeof text - 1}};
    const tv_pickle_node *x = NULL;
    assert_true(tv_pickle_is(p.bytes));
    assert_ok(a, tv_pickle_next(a, &p, &x));
    assert_int_equal(tv_pickle_int(x, 0), 1);
    assert_ok(a, tv_pickle_next(a, &p, &x));
    assert_int_equal(tv_pickle_int(tv_pickle_get(x, "w"), 0), 5);
    assert_null(tv_pickle_get(x, "absent"));
    assert_int_equal(p.bytes.n - p.at, 4);
    assert_int_equal(p.n_nodes, 4);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pickles_read_as_python_reads_them),
        cmocka_unit_test(old_instructions_are_known),
        cmocka_unit_test(damage_has_its_place),
        cmocka_unit_test(pickles_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
