/* The intake against hostile inputs: archives within archives, cut and lying ones, bombs, links in
 * circles, pipes and devices, texts of other encodings. The marker is a line that the reader of
 * loader logs knows. */
#include "testing.h"

#include "codec/stream.h"
#include "trace/needles.h"
#include "trace/sheet.h"
#include "trace/trace.h"

#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define MARK "RuntimeError: DataLoader worker (pid(s) 77) is killed by signal: Bus error.\n"

typedef struct place {
    tv_arena *a;
    char root[64];
    tv_scene scene;
} place;

static place *open_place(void)
{
    tv_arena *a = test_arena();
    place *p = tv_new(a, place, 1);
    p->a = a;
    (void)snprintf(p->root, sizeof p->root, "/tmp/trivet-intake-XXXXXX");
    assert_non_null(mkdtemp(p->root));
    return p;
}

static void close_place(place *p)
{
    char command[160];
    (void)snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", p->root, p->root);
    assert_int_equal(system(command), 0);
    tv_arena_close(p->a);
}

static tv_str at(const place *p, const char *name)
{
    return tv_path_join(p->a, tv_str_of(p->root), tv_str_of(name));
}

static void put(const place *p, const char *name, tv_str text)
{
    assert_ok(p->a, tv_file_write(p->a, at(p, name), text));
}

static size_t seen(const place *p)
{
    size_t n = 0;
    for (const tv_sighting *s = tv_scene_first(&p->scene, NULL); s; s = tv_scene_next(s, NULL))
        n++;
    return n;
}

static void look(place *p, const char *name)
{
    p->scene = (tv_scene){0};
    assert_ok(p->a, tv_trace_read(p->a, *name ? at(p, name) : tv_str_of(p->root), &p->scene));
}

static tv_str damage(const place *p, size_t i)
{
    const tv_note *file = p->scene.files.first;
    while (file && i--)
        file = file->next;
    return tv_noted_str(file, "damage");
}

/* ---- containers, made by hand ---- */

static tv_str gzipped(tv_arena *a, tv_str text)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    const size_t cap = deflateBound(&z, text.n) + 64;
    char *to = tv_new(a, char, cap);
    z.next_in = (unsigned char *)(uintptr_t)text.p;
    z.avail_in = (unsigned)text.n;
    z.next_out = (unsigned char *)to;
    z.avail_out = (unsigned)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t n = cap - z.avail_out;
    (void)deflateEnd(&z);
    return (tv_str){to, n};
}

static tv_str zstded(tv_arena *a, tv_str text)
{
    const size_t cap = ZSTD_compressBound(text.n);
    char *to = tv_new(a, char, cap);
    const size_t n = ZSTD_compress(to, cap, text.p, text.n, 3);
    assert_false(ZSTD_isError(n));
    return (tv_str){to, n};
}

static void put_member(tv_buf *b, const char *name, char type, tv_str text, uint64_t claimed)
{
    char h[512] = {0};
    (void)snprintf(h, 100, "%s", name);
    (void)snprintf(h + 100, 8, "0000644");
    (void)snprintf(h + 124, 12, "%011llo", (unsigned long long)claimed);
    memset(h + 148, ' ', 8);
    h[156] = type;
    memcpy(h + 257, "ustar", 6);
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof h; i++)
        sum += (unsigned char)h[i];
    (void)snprintf(h + 148, 8, "%06o", sum);
    tv_put(b, (tv_str){h, sizeof h});
    tv_put(b, text);
    tv_put_repeat(b, (tv_str){"\0", 1}, (512 - text.n % 512) % 512);
}

static tv_str tarred(tv_arena *a, const char *name, tv_str text)
{
    tv_buf b = tv_buf_in(a);
    put_member(&b, name, '0', text, text.n);
    tv_put_repeat(&b, (tv_str){"\0", 1}, 1024);
    return tv_buf_str(&b);
}

/* ---- archives ---- */

static void test_nested(void **state)
{
    (void)state;
    place *p = open_place();
    tv_arena *a = p->a;
    const tv_str inner = tarred(a, "node1/train.log.zst", zstded(a, TV_S("x\n" MARK)));
    put(p, "all.tar.gz", gzipped(a, tarred(a, "inner.tgz", gzipped(a, inner))));
    look(p, "all.tar.gz");
    assert_int_equal(seen(p), 1);
    const tv_sighting *s = tv_scene_first(&p->scene, NULL);
    assert_int_equal(s->line, 2);
    assert_true(tv_str_ends(s->file, TV_S("all.tar.gz:inner.tgz:node1/train.log.zst")));
    close_place(p);
}

/* Deeper than anybody packs: it ends, and what lies beyond is no longer an archive. */
static void test_deep(void **state)
{
    (void)state;
    place *p = open_place();
    tv_str text = TV_S(MARK);
    for (unsigned depth = 0; depth < 40; depth++)
        text = tarred(p->a, "next.tar", text);
    put(p, "deep.tar", text);
    look(p, "deep.tar");
    assert_int_equal(p->scene.files.n, 1);
    close_place(p);
}

static void test_cut(void **state)
{
    (void)state;
    place *p = open_place();
    tv_buf b = tv_buf_in(p->a);
    tv_puts(&b, MARK);
    uint32_t x = 1; /* what does not pack well, so that the cut falls behind the first block */
    for (size_t i = 0; i < 400000; i++)
        tv_putc(&b, (char)('a' + (x = x * 1664525u + 1013904223u, x >> 24) % 26));
    const tv_str gz = gzipped(p->a, tv_buf_str(&b)), zst = zstded(p->a, tv_buf_str(&b));
    put(p, "cut.gz", tv_str_take(gz, gz.n / 2));
    look(p, "cut.gz");
    assert_int_equal(seen(p), 1);
    assert_str(damage(p, 0), "its compressed data ends too early");
    put(p, "cut.zst", tv_str_take(zst, zst.n * 2 / 3));
    look(p, "cut.zst");
    assert_str(damage(p, 0), "its compressed data ends too early");
    put(p, "head.gz", tv_str_take(gz, 4));
    look(p, "head.gz");
    assert_int_equal(seen(p), 0);
    close_place(p);
}

static void test_damaged(void **state)
{
    (void)state;
    place *p = open_place();
    const tv_str gz = gzipped(p->a, TV_S(MARK MARK MARK));
    char *bytes = tv_new(p->a, char, gz.n);
    memcpy(bytes, gz.p, gz.n);
    memset(bytes + 12, 0xff, gz.n - 20);
    put(p, "bad.gz", (tv_str){bytes, gz.n});
    look(p, "bad.gz");
    assert_str(damage(p, 0), "its compressed data is damaged");
    close_place(p);
}

static void test_lying_tars(void **state)
{
    (void)state;
    place *p = open_place();
    tv_buf b = tv_buf_in(p->a);
    put_member(&b, "a", '0', TV_S(MARK), 077777777777u); /* 8 GiB, it says */
    put(p, "huge.tar", tv_buf_str(&b));
    look(p, "huge.tar");
    assert_int_equal(seen(p), 1);

    b = tv_buf_in(p->a);
    for (unsigned i = 0; i < 3000; i++) /* headers for headers */
        put_member(&b, "././@LongLink", 'L', TV_S("name"), 4);
    put_member(&b, "a", '0', TV_S(MARK), sizeof MARK - 1);
    put(p, "names.tar", tv_buf_str(&b));
    look(p, "names.tar");
    assert_int_equal(seen(p), 0);

    b = tv_buf_in(p->a);
    put_member(&b, "link", '2', (tv_str){0}, 0);
    put_member(&b, "pipe", '6', (tv_str){0}, 0);
    put_member(&b, "two\nlines\033[2J", '0', TV_S(MARK), sizeof MARK - 1);
    put(p, "names.tar", tv_buf_str(&b));
    look(p, "names.tar");
    assert_int_equal(seen(p), 1);
    const tv_str file = tv_scene_first(&p->scene, NULL)->file;
    assert_true(tv_str_ends(file, TV_S(":two?lines?[2J")));
    close_place(p);
}

/* ---- bombs ---- */

/* 4 GiB of one byte in 4 MiB: it is left after the first GiB. */
static void test_gzip_bomb(void **state)
{
    (void)state;
    place *p = open_place();
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    FILE *f = fopen(tv_cstr(p->a, at(p, "bomb.gz")), "wb");
    assert_non_null(f);
    static unsigned char zeros[1 << 20], out[1 << 16];
    memset(zeros, '\n', sizeof zeros);
    for (unsigned i = 0; i < 1536; i++) {
        z.next_in = zeros;
        z.avail_in = sizeof zeros;
        while (z.avail_in) {
            z.next_out = out;
            z.avail_out = sizeof out;
            assert_int_equal(deflate(&z, Z_NO_FLUSH), Z_OK);
            assert_true(fwrite(out, 1, sizeof out - z.avail_out, f) == sizeof out - z.avail_out);
        }
    }
    (void)deflateEnd(&z);
    assert_int_equal(fclose(f), 0);
    tv_stream *s;
    tv_bytes_view piece;
    assert_ok(p->a, tv_stream_open(p->a, at(p, "bomb.gz"), &s));
    do
        assert_ok(p->a, tv_stream_next(s, &piece));
    while (piece.n);
    assert_non_null(tv_stream_damage(s));
    assert_true(tv_stream_at(s) <= TV_LIMIT_INFLATE_FREE_BYTES + (1 << 20));
    close_place(p);
}

/* ---- folders ---- */

static void test_folders(void **state)
{
    (void)state;
    place *p = open_place();
    assert_int_equal(mkdir(tv_cstr(p->a, at(p, "sub")), 0777), 0);
    put(p, "sub/a.log", TV_S(MARK));
    put(p, "empty", (tv_str){0});
    put(p, "b\nb.log", TV_S(MARK));
    put(p, "junk.bin", (tv_str){"\0\1\2\377\376\0\0\n\0", 9});
    assert_int_equal(mkfifo(tv_cstr(p->a, at(p, "pipe")), 0600), 0);
    assert_int_equal(symlink(".", tv_cstr(p->a, at(p, "loop"))), 0);
    assert_int_equal(symlink("/", tv_cstr(p->a, at(p, "sub/root"))), 0);
    assert_int_equal(symlink("nowhere", tv_cstr(p->a, at(p, "dangling"))), 0);
    assert_int_equal(symlink("/dev/zero", tv_cstr(p->a, at(p, "zero"))), 0);
    assert_int_equal(symlink("self", tv_cstr(p->a, at(p, "self"))), 0);
    look(p, "");
    assert_int_equal(seen(p), 2);
    assert_int_equal(p->scene.files.n, 4);
    close_place(p);
}

static void test_unreadable(void **state)
{
    (void)state;
    place *p = open_place();
    put(p, "a.log", TV_S(MARK));
    put(p, "secret.log", TV_S(MARK));
    assert_int_equal(chmod(tv_cstr(p->a, at(p, "secret.log")), 0), 0);
    look(p, "");
    const size_t want = geteuid() == 0 ? 2 : 1; /* root reads all */
    assert_int_equal(seen(p), want);
    assert_int_equal(p->scene.files.n, 2);
    close_place(p);
}

static void test_named(void **state)
{
    (void)state;
    place *p = open_place();
    static const char *const refused[] = {"/dev/zero", "/dev/urandom", "/nonexistent/x"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const tv_err *e = tv_trace_read(p->a, tv_str_of(refused[i]), &p->scene);
        assert_non_null(e);
        assert_int_equal(e->code, TV_UNAVAILABLE);
    }
    assert_int_equal(mkfifo(tv_cstr(p->a, at(p, "pipe")), 0600), 0);
    look(p, "pipe"); /* nobody writes: it is empty */
    assert_int_equal(seen(p), 0);
    close_place(p);
}

/* ---- text ---- */

static void test_utf16(void **state)
{
    (void)state;
    place *p = open_place();
    for (unsigned big = 0; big < 2; big++) {
        tv_buf b = tv_buf_in(p->a);
        tv_puts(&b, big ? "\xfe\xff" : "\xff\xfe");
        const char *text = "one\r\n" MARK;
        for (size_t i = 0; text[i]; i++) {
            tv_putc(&b, big ? '\0' : text[i]);
            tv_putc(&b, big ? text[i] : '\0');
        }
        tv_putc(&b, 'x'); /* half a unit */
        put(p, "w.txt", tv_buf_str(&b));
        look(p, "w.txt");
        assert_int_equal(seen(p), 1);
        assert_int_equal(tv_scene_first(&p->scene, NULL)->line, 2);
    }
    /* a lone half of a pair, a pair, a character of three bytes */
    put(p, "w.txt", (tv_str){"\xff\xfe\x00\xd8x\x00\x3d\xd8\x00\xde\x2d\x4e\n\x00", 14});
    look(p, "w.txt");
    close_place(p);
}

/* A text longer than a sheet: lines at its seams are whole, numbers of lines go on. */
static void test_long(void **state)
{
    (void)state;
    place *p = open_place();
    tv_buf b = tv_buf_in(p->a);
    size_t line = 1, marks = 0;
    while (b.n < TV_LIMIT_SHEET_BYTES * 2 + 12345) {
        tv_put_repeat(&b, TV_S("."), line % 97);
        const bool mark = line % 50021 == 0;
        tv_puts(&b, mark ? MARK : "\n");
        marks += mark;
        line++;
    }
    tv_puts(&b, MARK);
    put(p, "long.txt", tv_buf_str(&b));
    look(p, "long.txt");
    assert_true(marks > 4 && seen(p) >= 3); /* in each part at least one */
    for (const tv_sighting *s = tv_scene_first(&p->scene, NULL); s; s = tv_scene_next(s, NULL))
        assert_true(s->line % 50021 == 0 || s->line == line);
    close_place(p);
}

/* Nothing but line ends, and one line without an end: both are bounded. */
static void test_shapes(void **state)
{
    (void)state;
    place *p = open_place();
    tv_buf b = tv_buf_in(p->a);
    tv_put_repeat(&b, TV_S("\n"), 5u << 20);
    tv_puts(&b, MARK);
    put(p, "ends.txt", tv_buf_str(&b));
    look(p, "ends.txt");
    assert_int_equal(seen(p), 1);
    assert_int_equal(tv_scene_first(&p->scene, NULL)->line, (5u << 20) + 1);
    b = tv_buf_in(p->a);
    tv_put_repeat(&b, TV_S("x"), 20u << 20);
    tv_puts(&b, "\n" MARK);
    put(p, "line.txt", tv_buf_str(&b));
    look(p, "line.txt");
    assert_int_equal(seen(p), 1);
    close_place(p);
}

/* ---- sheets and needles ---- */

typedef struct line_case {
    tv_str raw;
    const char *want;
} line_case;

static void test_lines(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    static const line_case cases[] = {
        {{"plain  \t", 8}, "plain"},
        {{"\033[1;31mred\033[0m", 14}, "red"},
        {{"\033]0;title\007text", 14}, "text"},
        {{"10%\r50%\r100%\r", 13}, "100%"},
        {{"a&lt;b&gt; &amp;&nbsp;c", 23}, "a<b> & c"},
        {{"GPU\xef\xbc\x9a 0", 8}, "GPU: 0"},
        {{"bell\007 back\b\b del\177", 17}, "bell back del"},
        {{"\033", 1}, ""},
        {{"x\033[", 3}, "x"},
        {{"x\033[31", 5}, "x"},
        {{"\xef\xbb\xbfmark", 7}, "mark"},
        {{"nul\0byte", 8}, "nulbyte"},
        {{"\xe4\xb8\xad\xe6\x96\x87", 6}, "\xe4\xb8\xad\xe6\x96\x87"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_sheet sheet;
        tv_sheet_fill(a, &sheet, TV_S("x"), 1, cases[i].raw);
        assert_int_equal(sheet.n, 1);
        assert_str(sheet.v[0].s, cases[i].want);
    }
    tv_arena_close(a);
}

static void read_nothing(tv_reading *r)
{
    (void)r;
}

static void test_needles(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    static const char *const first[] = {"abcd", "bcx", NULL};
    static const char *const second[] = {"bc", NULL};
    static const char *const third[] = {"/proc/meminfo", "zz", NULL};
    static const tv_log_format formats[] = {{"first", first, read_nothing},
                                            {"second", second, read_nothing},
                                            {"third", third, read_nothing}};
    static const tv_log_format *const all[] = {&formats[0], &formats[1], &formats[2], NULL};
    const tv_needles *m = tv_needles_of(a, all);
    static const struct {
        const char *name, *text;
        bool hit[3];
    } cases[] = {
        {"x", "aabcd", {true, true, false}},
        {"x", "abcx", {true, true, false}}, /* the end of a longer one that fails */
        {"x", "abce", {false, true, false}},
        {"x", "ab", {false, false, false}},
        {"", "", {false, false, false}},
        {"d/proc/meminfo", "", {false, false, true}},
        {"proc/meminfo", "", {false, false, true}},
        {"xproc/meminfo", "", {false, false, false}},
        {"x", "z zz", {false, false, true}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool hit[3] = {false};
        tv_needles_in(m, tv_str_of(cases[i].name), tv_str_of(cases[i].text), hit);
        for (size_t k = 0; k < 3; k++)
            if (hit[k] != cases[i].hit[k])
                fail_msg("case %zu, format %zu", i, k);
    }
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested),     cmocka_unit_test(test_deep),
        cmocka_unit_test(test_cut),        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_lying_tars), cmocka_unit_test(test_gzip_bomb),
        cmocka_unit_test(test_folders),    cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_named),      cmocka_unit_test(test_utf16),
        cmocka_unit_test(test_long),       cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_lines),      cmocka_unit_test(test_needles),
    };
    return cmocka_run_group_tests_name("intake", tests, NULL, NULL);
}
