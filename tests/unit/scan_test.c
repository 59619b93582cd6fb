/* The scan of a data folder: small trees built in a temporary folder. */
#include "testing.h"

#include "probe/file_kind.h"
#include "probe/probe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct tree {
    tv_arena *a;
    tv_request r;
    tv_buf err;
    char root[64];
    double now_s;    /* what the clock shows */
    double tick_s;   /* and how far it moves at each look */
    unsigned looks;  /* at progress */
    unsigned cancel; /* the look at which it says no; 0: never */
} tree;

static double clock_s(void *ctx)
{
    tree *t = ctx;
    t->now_s += t->tick_s;
    return t->now_s;
}

static bool progress(void *ctx, tv_text what, double done)
{
    tree *t = ctx;
    assert_non_null(what.msgid);
    assert_true(done >= 0 && done <= 1);
    return ++t->looks != t->cancel;
}

static tree *open_tree(void)
{
    tv_arena *a = test_arena();
    tree *t = tv_new(a, tree, 1);
    t->a = a;
    t->err = tv_buf_in(a);
    t->r = (tv_request){.a = a, .err = &t->err};
    (void)snprintf(t->root, sizeof t->root, "/tmp/trivet-scan-XXXXXX");
    assert_non_null(mkdtemp(t->root));
    return t;
}

static void close_tree(tree *t)
{
    char command[256];
    (void)snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", t->root, t->root);
    assert_int_equal(system(command), 0);
    tv_arena_close(t->a);
}

static const char *at(const tree *t, const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", t->root, name);
    return path;
}

static void add_dir(const tree *t, const char *name)
{
    assert_int_equal(mkdir(at(t, name), 0777), 0);
}

/* A file of `bytes` bytes that starts with `head`. */
static void add_file(const tree *t, const char *name, const void *head, size_t n, off_t bytes)
{
    const int fd = open(at(t, name), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, head, n), n);
    assert_int_equal(ftruncate(fd, bytes), 0);
    assert_int_equal(close(fd), 0);
}

#define JPEG "\xFF\xD8\xFF\xE0"
#define PNG "\x89PNG\r\n\x1A\n"

static void add_files(const tree *t, const char *dir, const char *ext, int n, off_t bytes)
{
    for (int i = 0; i < n; i++) {
        char name[128];
        (void)snprintf(name, sizeof name, "%s/%04d%s", dir, i, ext);
        add_file(t, name, JPEG, 4, bytes);
    }
}

static void pictures_are_counted_and_measured(void **state)
{
    (void)state;
    tree *t = open_tree();
    add_dir(t, "train");
    add_dir(t, "train/cat");
    add_dir(t, "train/dog");
    add_files(t, "train/cat", ".jpg", 60, 100000);
    add_files(t, "train/dog", ".JPEG", 40, 300000);
    add_file(t, "labels.csv", "a,b\n", 4, 4);
    add_file(t, ".DS_Store", "x", 1, 1000000);
    tv_dataset d;
    assert_ok(t->a, tv_probe_dataset(&t->r, tv_str_of(t->root), &d));
    assert_true(d.scanned && !d.sampled);
    assert_close(d.files, 101, 0);
    assert_close(d.total_bytes, 60 * 100000.0 + 40 * 300000.0 + 4, 0);
    assert_int_equal(d.main_codec, TV_CODEC_JPEG);
    assert_close(d.by_codec_files[TV_CODEC_JPEG], 100, 0);
    assert_close(d.by_codec_files[TV_CODEC_TEXT], 1, 0);
    assert_close(d.samples, 100, 0);
    assert_close(d.sample_bytes, 180000, 0);
    assert_close(d.size_p10, 100000, 0);
    assert_close(d.size_p90, 300000, 0);
    assert_close(d.small_files, 61.0 / 101, 1e-12);
    assert_int_equal(t->err.n, 0);
    close_tree(t);
}

static void links_to_folders_are_not_followed(void **state)
{
    (void)state;
    tree *t = open_tree();
    add_dir(t, "a");
    add_files(t, "a", ".jpg", 3, 1000);
    assert_int_equal(symlink("..", at(t, "a/up")), 0);
    assert_int_equal(symlink(t->root, at(t, "a/root")), 0);
    assert_int_equal(symlink("0000.jpg", at(t, "a/again.jpg")), 0);
    assert_int_equal(symlink("nowhere", at(t, "a/broken.jpg")), 0);
    assert_int_equal(mkfifo(at(t, "a/pipe.jpg"), 0666), 0);
    tv_dataset d;
    assert_ok(t->a, tv_probe_dataset(&t->r, tv_str_of(t->root), &d));
    assert_close(d.files, 4, 0);
    assert_close(d.total_bytes, 4000, 0);
    close_tree(t);
}

static void an_unreadable_folder_is_a_warning(void **state)
{
    (void)state;
    tree *t = open_tree();
    add_dir(t, "open");
    add_dir(t, "shut");
    add_files(t, "open", ".png", 2, 10);
    assert_int_equal(chmod(at(t, "shut"), 0), 0);
    assert_int_equal(chmod(t->root, 0755), 0);
    const uid_t me = geteuid();
    if (me == 0) /* who may read every folder; nobody may not */
        assert_int_equal(seteuid(65534), 0);
    tv_dataset d;
    const tv_err *e = tv_probe_dataset(&t->r, tv_str_of(t->root), &d);
    if (me == 0)
        assert_int_equal(seteuid(me), 0);
    assert_ok(t->a, e);
    assert_close(d.files, 2, 0);
    assert_true(tv_str_has(tv_buf_str(&t->err), TV_S("shut")));
    close_tree(t);
}

static void what_is_not_there_is_said(void **state)
{
    (void)state;
    tree *t = open_tree();
    tv_dataset d;
    const tv_err *e = tv_probe_dataset(&t->r, TV_S("/tmp/trivet-no-such-folder"), &d);
    assert_non_null(e);
    assert_int_equal(e->code, TV_UNAVAILABLE);
    e = tv_probe_dataset(&t->r, tv_str_of(t->root), &d);
    assert_non_null(e);
    assert_int_equal(e->code, TV_INPUT);
    assert_string_equal(e->what.id, "scan.empty");
    add_file(t, "a.jpg", "", 0, 0);
    e = tv_probe_dataset(&t->r, tv_str_of(t->root), &d);
    assert_non_null(e);
    assert_int_equal(e->code, TV_INPUT);
    assert_string_equal(e->what.id, "scan.no-bytes");
    close_tree(t);
}

static void one_file_is_a_data_set(void **state)
{
    (void)state;
    tree *t = open_tree();
    add_file(t, "shard-000.tar", "x", 1, 5000000);
    tv_dataset d;
    assert_ok(t->a, tv_probe_dataset(&t->r, tv_str_of(at(t, "shard-000.tar")), &d));
    assert_close(d.files, 1, 0);
    assert_close(d.total_bytes, 5000000, 0);
    assert_int_equal(d.main_codec, TV_CODEC_RECORD);
    assert_false(d.samples > 0); /* nobody knows how many lie in it */
    close_tree(t);
}

/* Names that say nothing are told by their first bytes, names that lie are warned of. */
static void first_bytes_tell(void **state)
{
    (void)state;
    tree *t = open_tree();
    for (int i = 0; i < 20; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "hash%d", i);
        add_file(t, name, PNG, 8, 1000);
    }
    tv_dataset d;
    assert_ok(t->a, tv_probe_dataset(&t->r, tv_str_of(t->root), &d));
    assert_int_equal(d.main_codec, TV_CODEC_PNG);
    assert_close(d.by_codec_files[TV_CODEC_PNG], 20, 1e-12);
    assert_close(d.samples, 20, 1e-12);
    add_dir(t, "named");
    for (int i = 0; i < 8; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "named/%d.jpg", i);
        add_file(t, name, PNG, 8, 100000);
    }
    assert_ok(t->a, tv_probe_dataset(&t->r, tv_str_of(t->root), &d));
    assert_int_equal(d.main_codec, TV_CODEC_JPEG);
    assert_true(tv_str_has(tv_buf_str(&t->err), TV_S("JPEG and hold PNG")));
    close_tree(t);
}

/* Twenty equal folders; the clock ends the scan after some of them. */
static void an_early_end_extrapolates(void **state)
{
    (void)state;
    tree *t = open_tree();
    for (int i = 0; i < 20; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "class%02d", i);
        add_dir(t, name);
        add_files(t, name, ".jpg", 10, 2000);
    }
    t->r.clock_s = clock_s;
    t->r.clock_ctx = t;
    t->tick_s = 0.6;
    tv_dataset d;
    assert_ok(t->a, tv_probe_dataset(&t->r, tv_str_of(t->root), &d));
    assert_true(d.sampled);
    assert_close(d.files, 200, 1e-12);
    assert_close(d.total_bytes, 400000, 1e-12);
    assert_close(d.samples, 200, 1e-12);
    close_tree(t);
}

static void progress_may_cancel(void **state)
{
    (void)state;
    tree *t = open_tree();
    add_dir(t, "a");
    add_files(t, "a", ".jpg", 3, 10);
    t->r.progress = progress;
    t->r.progress_ctx = t;
    tv_dataset d;
    assert_ok(t->a, tv_probe_dataset(&t->r, tv_str_of(t->root), &d));
    assert_true(t->looks > 0);
    t->cancel = t->looks + 1;
    const tv_err *e = tv_probe_dataset(&t->r, tv_str_of(t->root), &d);
    assert_non_null(e);
    assert_string_equal(e->what.id, "scan.cancelled");
    close_tree(t);
}

static void names_and_marks(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        tv_codec_kind kind;
    } names[] = {
        {"a.JPG", TV_CODEC_JPEG},
        {"a.tar", TV_CODEC_RECORD},
        {"train.tfrecord-00001-of-00100", TV_CODEC_RECORD},
        {"data.mdb", TV_CODEC_RECORD},
        {"a", TV_CODEC_OTHER},
        {".jpg", TV_CODEC_OTHER},
        {"a.", TV_CODEC_OTHER},
        {"x.npy", TV_CODEC_ARRAY},
        {"x.jsonl", TV_CODEC_TEXT},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(tv_kind_by_name(tv_str_of(names[i].name)), names[i].kind);
    static const struct {
        const char *bytes;
        size_t n;
        tv_codec_kind kind;
    } heads[] = {
        {JPEG, 4, TV_CODEC_JPEG},
        {JPEG, 2, TV_CODEC_OTHER},
        {"RIFF\x10\0\0\0WEBPVP8 ", 16, TV_CODEC_WEBP},
        {"RIFF\x10\0\0\0WAVEfmt ", 16, TV_CODEC_AUDIO},
        {"\0\0\0\x20"
         "ftypisom",
         12, TV_CODEC_VIDEO},
        {"{\"a\": 1}\n", 9, TV_CODEC_TEXT},
        {"", 0, TV_CODEC_OTHER},
        {"\0\0\0", 3, TV_CODEC_OTHER},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        assert_int_equal(tv_kind_by_bytes((const unsigned char *)heads[i].bytes, heads[i].n),
                         heads[i].kind);
    for (tv_codec_kind k = 0; k < TV_CODEC_COUNT; k++)
        assert_true(strlen(tv_kind_name(k)) > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_counted_and_measured),
        cmocka_unit_test(links_to_folders_are_not_followed),
        cmocka_unit_test(an_unreadable_folder_is_a_warning),
        cmocka_unit_test(what_is_not_there_is_said),
        cmocka_unit_test(one_file_is_a_data_set),
        cmocka_unit_test(first_bytes_tell),
        cmocka_unit_test(an_early_end_extrapolates),
        cmocka_unit_test(progress_may_cancel),
        cmocka_unit_test(names_and_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
