/* A bounded look at a folder of data. Names are read level by level, so that an early end leaves
 * whole folders of one level unread, and their siblings say how much they hold. Sizes are taken
 * from every file at first and then from every second, fourth ... file: an unbiased sample of
 * bounded length. Knows nothing of samples inside a file. */
#include "probe.h"

#include "file_kind.h"

#include "base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files between two doublings of the stride: 16 doublings stay under TV_LIMIT_SCAN_FILES. */
#define SCAN_STRIDE_FILES (TV_LIMIT_SCAN_FILES / 16)

/* On a slow disk taking sizes would eat the time for the names: each half second doubles the
 * stride as well. */
#define SCAN_STRIDE_SECONDS 0.5

/* Names between two looks at the clock. */
#define SCAN_TICK 256

/* A file that is read in one go by any disk: below it the cost of opening decides
 * (128 KiB: the usual read-ahead of Linux). */
#define SMALL_FILE_BYTES 131072.0

/* Levels that are told apart when the rest is extrapolated. */
#define LEVELS 16

/* Files of one array kind from which each is taken for one sample. */
#define ARRAYS_ARE_SAMPLES 100

typedef struct folder {
    const char *path;
    size_t level;
} folder;

typedef struct sized {
    double bytes;
    double weight; /* files that this one stands for */
    tv_codec_kind kind;
} sized;

/* One open directory at a time; closed by the arena when a budget ends in between. */
typedef struct open_folder {
    DIR *d;
} open_folder;

typedef struct scan {
    tv_request *r;
    tv_arena *a; /* scratch */
    struct {
        folder *v;
        size_t n, cap;
    } folders; /* all that were met; the first `next` are read */
    size_t next;
    struct {
        sized *v;
        size_t n, cap;
    } sizes;
    double names;
    double named[TV_CODEC_COUNT];  /* files by extension */
    double opened[TV_CODEC_COUNT]; /* of them, files whose first bytes were looked at */
    double found[TV_CODEC_COUNT][TV_CODEC_COUNT];
    double level_folders[LEVELS], level_files[LEVELS], level_below[LEVELS];
    double stride;
    size_t left_in_stride;
    double start_s;
    double widen_s; /* when the stride doubles next */
    double unreadable;
    tv_str unreadable_first;
    open_folder *handle;
    bool stopped;
    bool cancelled;
} scan;

static void close_folder(void *what)
{
    open_folder *o = what;
    if (o->d)
        (void)closedir(o->d);
    o->d = NULL;
}

static double elapsed_s(const scan *s)
{
    return s->r->clock_s ? s->r->clock_s(s->r->clock_ctx) - s->start_s : 0;
}

/* Every SCAN_TICK names: the clock, and whether anyone still waits. */
static void tick(scan *s)
{
    const double gone = elapsed_s(s);
    if (gone > s->widen_s) {
        s->widen_s = gone + SCAN_STRIDE_SECONDS;
        s->stride *= 2;
    }
    if (gone > TV_SCAN_SECONDS || s->names >= TV_LIMIT_SCAN_NAMES)
        s->stopped = true;
    if (s->r->progress &&
        !s->r->progress(s->r->progress_ctx, TV_TEXT0("scan", N_("looking at the data")),
                        gone < TV_SCAN_SECONDS ? gone / TV_SCAN_SECONDS : 1))
        s->cancelled = true;
}

/* ---- one file ---- */

/* The 1st, 2nd, 4th, 8th ... file of a kind: few, and from all over the folder. */
static bool is_looked_into(double count)
{
    const uint64_t n = (uint64_t)count;
    return n && (n & (n - 1)) == 0;
}

static void look_into(scan *s, int at, const char *name, tv_codec_kind kind)
{
    unsigned char head[TV_KIND_HEAD_BYTES];
    const int fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    const ssize_t got = read(fd, head, sizeof head);
    (void)close(fd);
    if (got <= 0)
        return;
    s->opened[kind]++;
    s->found[kind][tv_kind_by_bytes(head, (size_t)got)]++;
}

static void add_size(scan *s, double bytes, tv_codec_kind kind)
{
    *tv_push(s->a, &s->sizes) = (sized){bytes, s->stride, kind};
    if (--s->left_in_stride)
        return;
    s->left_in_stride = SCAN_STRIDE_FILES;
    s->stride *= 2;
}

static void add_file(scan *s, int at, const char *name, const struct stat *known)
{
    const tv_codec_kind kind = tv_kind_by_name(tv_str_of(name));
    s->named[kind]++;
    s->names++;
    struct stat st;
    if (is_looked_into(s->named[kind]))
        look_into(s, at, name, kind);
    if ((uint64_t)s->names % (uint64_t)s->stride)
        return;
    if (known)
        add_size(s, (double)known->st_size, kind);
    else if (fstatat(at, name, &st, 0) == 0)
        add_size(s, (double)st.st_size, kind);
}

/* ---- one folder ---- */

static size_t level_of(const folder *f)
{
    return f->level < LEVELS ? f->level : LEVELS - 1;
}

static void add_folder(scan *s, const folder *parent, const char *name)
{
    s->level_below[level_of(parent)]++;
    const tv_str path =
        tv_str_join(s->a, tv_str_join(s->a, tv_str_of(parent->path), TV_S("/")), tv_str_of(name));
    *tv_push(s->a, &s->folders) = (folder){tv_cstr(s->a, path), parent->level + 1};
}

/* Files and links to files count; folders are read later; links to folders, sockets and pipes are
 * passed over. */
static void add_entry(scan *s, const folder *f, int at, const struct dirent *entry)
{
    const char *name = entry->d_name;
    if (name[0] == '.')
        return;
    struct stat st;
    switch (entry->d_type) {
    case DT_REG:
        add_file(s, at, name, NULL);
        return;
    case DT_DIR:
        add_folder(s, f, name);
        return;
    default:
        break;
    }
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return;
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    if (S_ISDIR(st.st_mode))
        add_folder(s, f, name);
    else if (S_ISREG(st.st_mode) ||
             (S_ISLNK(st.st_mode) && fstatat(at, name, &st, 0) == 0 && S_ISREG(st.st_mode)))
        add_file(s, at, name, &st);
}

static void read_folder(scan *s, folder f)
{
    const size_t level = level_of(&f);
    const double before = s->names;
    s->handle->d = opendir(f.path);
    if (!s->handle->d) {
        if (!(s->unreadable++ > 0))
            s->unreadable_first = tv_str_of(f.path);
        return;
    }
    const int at = dirfd(s->handle->d);
    size_t seen = 0;
    for (const struct dirent *e; !s->stopped && !s->cancelled && (e = readdir(s->handle->d));) {
        add_entry(s, &f, at, e);
        if (++seen % SCAN_TICK == 0)
            tick(s);
    }
    close_folder(s->handle);
    s->level_files[level] += s->names - before;
    s->level_folders[level]++;
}

static void read_tree(scan *s)
{
    while (s->next < s->folders.n && !s->stopped && !s->cancelled) {
        read_folder(s, s->folders.v[s->next++]);
        tick(s);
    }
}

/* ---- the sum ---- */

/* Files in a folder of a level: the mean of those that were read, else of the level above. */
static double files_in_one(const scan *s, size_t level)
{
    while (level && !(s->level_folders[level] > 0))
        level--;
    return s->level_folders[level] > 0 ? s->level_files[level] / s->level_folders[level] : 0;
}

/* Files in the folders that were met but not read, and in the folders that they hold in turn if
 * they are like their siblings; deeper ones are not foreseen. */
static double files_unread(const scan *s)
{
    double files = 0;
    for (size_t i = s->next; i < s->folders.n; i++) {
        const size_t level = level_of(&s->folders.v[i]);
        files += files_in_one(s, level);
        if (level + 1 < LEVELS && s->level_folders[level] > 0)
            files += s->level_below[level] / s->level_folders[level] * files_in_one(s, level + 1);
    }
    return files;
}

static double known_share(const scan *s, tv_codec_kind kind)
{
    return s->opened[TV_CODEC_OTHER] > 0
               ? s->found[TV_CODEC_OTHER][kind] / s->opened[TV_CODEC_OTHER]
               : 0;
}

/* Names without a known extension are what the files that were opened showed. */
static void share_out(const scan *s, double by_kind[TV_CODEC_COUNT])
{
    const double nameless = by_kind[TV_CODEC_OTHER];
    if (!(s->opened[TV_CODEC_OTHER] > 0))
        return;
    by_kind[TV_CODEC_OTHER] = 0;
    for (tv_codec_kind k = 0; k < TV_CODEC_COUNT; k++)
        by_kind[k] += nameless * known_share(s, k);
}

static void sum_kinds(const scan *s, double grown, tv_dataset *out)
{
    double weight[TV_CODEC_COUNT] = {0}, bytes[TV_CODEC_COUNT] = {0};
    for (size_t i = 0; i < s->sizes.n; i++) {
        weight[s->sizes.v[i].kind] += s->sizes.v[i].weight;
        bytes[s->sizes.v[i].kind] += s->sizes.v[i].weight * s->sizes.v[i].bytes;
    }
    for (tv_codec_kind k = 0; k < TV_CODEC_COUNT; k++) {
        out->by_codec_files[k] = s->named[k] * grown;
        /* names are counted, so the sample only has to say how large a file is */
        out->by_codec_bytes[k] =
            weight[k] > 0 ? out->by_codec_files[k] * (bytes[k] / weight[k]) : 0;
    }
    share_out(s, out->by_codec_files);
    share_out(s, out->by_codec_bytes);
    for (tv_codec_kind k = 0; k < TV_CODEC_COUNT; k++) {
        out->files += out->by_codec_files[k];
        out->total_bytes += out->by_codec_bytes[k];
        if (out->by_codec_bytes[k] > out->by_codec_bytes[out->main_codec])
            out->main_codec = k;
    }
}

static int by_size(const void *x, const void *y)
{
    const double p = ((const sized *)x)->bytes, q = ((const sized *)y)->bytes;
    return (p > q) - (p < q);
}

static double quantile(const sized *v, size_t n, double whole, double share)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += v[i].weight;
        if (sum >= share * whole)
            return v[i].bytes;
    }
    return n ? v[n - 1].bytes : 0;
}

static void sum_sizes(scan *s, tv_dataset *out)
{
    sized *v = s->sizes.v;
    const size_t n = s->sizes.n;
    if (!n)
        return;
    qsort(v, n, sizeof *v, by_size);
    double whole = 0, small = 0;
    for (size_t i = 0; i < n; i++) {
        whole += v[i].weight;
        if (v[i].bytes < SMALL_FILE_BYTES)
            small += v[i].weight;
    }
    out->small_files = small / whole;
    out->size_p10 = quantile(v, n, whole, 0.1);
    out->size_p50 = quantile(v, n, whole, 0.5);
    out->size_p90 = quantile(v, n, whole, 0.9);
}

/* A picture, a clip or a volume a file; many arrays are samples, few are whole sets; the number of
 * samples inside a record file or a text is not known from outside. */
static void count_samples(tv_dataset *out)
{
    const double files = out->by_codec_files[out->main_codec];
    if (!tv_kind_is_single(out->main_codec) &&
        !(out->main_codec == TV_CODEC_ARRAY && files >= ARRAYS_ARE_SAMPLES))
        return;
    out->samples = files;
    out->sample_bytes = files > 0 ? out->by_codec_bytes[out->main_codec] / files : 0;
}

/* ---- warnings ---- */

static void warn(tv_request *r, tv_text t)
{
    if (!r->err)
        return;
    tv_puts(r->err, "trivet: ");
    tv_put_text(r->err, r->lang, t);
    tv_putc(r->err, '\n');
}

static void warn_unreadable(const scan *s)
{
    if (s->unreadable > 0)
        warn(s->r, TV_TEXT(s->r->a, "scan.unreadable",
                           N_("folders of the data that cannot be read: {n}; the first is {path}"),
                           tv_arg_num("n", TV_ARG_COUNT, s->unreadable),
                           tv_arg_str("path", s->unreadable_first)));
}

/* A kind whose files are mostly something else by their first bytes. */
static void warn_misnamed(const scan *s)
{
    for (tv_codec_kind k = TV_CODEC_OTHER + 1; k < TV_CODEC_COUNT; k++)
        for (tv_codec_kind f = TV_CODEC_OTHER + 1; f < TV_CODEC_COUNT; f++)
            if (f != k && tv_kind_is_single(k) && s->found[k][f] * 2 > s->opened[k])
                warn(s->r, TV_TEXT(s->r->a, "scan.misnamed",
                                   N_("{n} of {all} files looked into are named {named} and hold "
                                      "{found}"),
                                   tv_arg_num("n", TV_ARG_COUNT, s->found[k][f]),
                                   tv_arg_num("all", TV_ARG_COUNT, s->opened[k]),
                                   tv_arg_word("named", tv_kind_name(k)),
                                   tv_arg_word("found", tv_kind_name(f))));
}

/* ---- the face ---- */

static const tv_err *cannot_read(tv_arena *a, tv_str path, int number)
{
    const bool missing = number == ENOENT || number == ENOTDIR;
    return tv_in_file(TV_FAIL(a, missing ? TV_UNAVAILABLE : TV_SYSTEM, "file.cannot-read",
                              N_("cannot read: {reason}"),
                              tv_arg_str("reason", tv_errno_text(a, number))),
                      path);
}

static const tv_err *check_seen(const scan *s, tv_str path)
{
    tv_arena *a = s->r->a;
    if (s->cancelled)
        return tv_in_file(TV_FAIL0(a, TV_UNAVAILABLE, "scan.cancelled", N_("cancelled")), path);
    if (s->names > 0)
        return NULL;
    return tv_hint(
        tv_in_file(TV_FAIL0(a, TV_INPUT, "scan.empty", N_("there is no file in this folder")),
                   path),
        TV_TEXT0("scan.empty-try",
                 N_("Give the folder that holds the samples; hidden files and links to folders do "
                    "not count.")));
}

static const tv_err *check_bytes(const scan *s, tv_str path)
{
    for (size_t i = 0; i < s->sizes.n; i++)
        if (s->sizes.v[i].bytes > 0)
            return NULL;
    return tv_in_file(TV_FAIL0(s->r->a, TV_INPUT, "scan.no-bytes", N_("nothing but empty files")),
                      path);
}

static const tv_err *scan_path(scan *s, tv_str path)
{
    const char *text = tv_cstr(s->a, path);
    struct stat st;
    if (stat(text, &st) != 0)
        return cannot_read(s->r->a, path, errno);
    if (S_ISREG(st.st_mode)) {
        add_file(s, AT_FDCWD, text, &st);
        return check_bytes(s, path);
    }
    DIR *d = opendir(text);
    if (!d)
        return cannot_read(s->r->a, path, errno);
    (void)closedir(d);
    *tv_push(s->a, &s->folders) = (folder){text, 0};
    read_tree(s);
    TV_TRY(check_seen(s, path));
    return check_bytes(s, path);
}

const tv_err *tv_probe_dataset(tv_request *r, tv_str dir, tv_dataset *out)
{
    *out = (tv_dataset){.path = tv_str_copy(r->a, dir), .scanned = true};
    scan s = {
        .r = r, .stride = 1, .left_in_stride = SCAN_STRIDE_FILES, .widen_s = SCAN_STRIDE_SECONDS};
    s.a = tv_arena_child(r->a, TV_LIMIT_ARENA_BYTES);
    s.handle = tv_new(s.a, open_folder, 1);
    tv_defer(s.a, close_folder, s.handle);
    s.start_s = r->clock_s ? r->clock_s(r->clock_ctx) : 0;
    TV_TRY(scan_path(&s, dir));
    const double unread = s.stopped ? files_unread(&s) : 0;
    out->sampled = s.stopped;
    sum_kinds(&s, (s.names + unread) / s.names, out);
    sum_sizes(&s, out);
    count_samples(out);
    out->scan_s = elapsed_s(&s);
    warn_unreadable(&s);
    warn_misnamed(&s);
    return NULL;
}
