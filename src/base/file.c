/* Files through the system's calls; every failure becomes one sentence. */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static tv_err *cannot(tv_arena *a, tv_str path, int number)
{
    const bool missing = number == ENOENT || number == ENOTDIR;
    tv_err *e = tv_fail(a, missing ? TV_UNAVAILABLE : TV_SYSTEM,
                        TV_TEXT(a, "file.cannot-read", N_("cannot read: {reason}"),
                                tv_arg_str("reason", tv_errno_text(a, number))));
    return tv_in_file(e, path);
}

/* Deferred before it is opened: an allocation that fails in between leaves nothing open. */
typedef struct handle {
    int fd;
    bool open;
} handle;

static void close_handle(void *what)
{
    handle *h = what;
    if (h->open)
        (void)close(h->fd);
    h->open = false;
}

static handle *open_handle(tv_arena *a, tv_str path)
{
    handle *h = tv_new(a, handle, 1);
    tv_defer(a, close_handle, h);
    h->fd = open(tv_cstr(a, path), O_RDONLY | O_CLOEXEC);
    h->open = h->fd >= 0;
    return h;
}

tv_file_info tv_file_stat(tv_arena *a, tv_str path)
{
    struct stat st;
    if (stat(tv_cstr(a, path), &st) != 0)
        return (tv_file_info){0};
    return (tv_file_info){true, S_ISDIR(st.st_mode), (uint64_t)st.st_size};
}

static tv_err *too_large(tv_arena *a, tv_str path, size_t limit)
{
    return tv_in_file(TV_FAIL(a, TV_LIMIT, "file.too-large",
                              N_("larger than the limit of {limit} for this kind of file"),
                              tv_arg_num("limit", TV_ARG_DISK, (double)limit)),
                      path);
}

static const tv_err *read_all(tv_arena *a, int fd, tv_str path, size_t limit, tv_str *text)
{
    tv_buf b = tv_buf_in(a);
    char chunk[65536];
    for (;;) {
        const ssize_t got = read(fd, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return cannot(a, path, errno);
        if (got == 0)
            break;
        if ((size_t)got > limit - b.n)
            return too_large(a, path, limit);
        tv_put(&b, (tv_str){chunk, (size_t)got});
    }
    *text = tv_buf_str(&b);
    return NULL;
}

static const tv_err *read_handle(tv_arena *a, int fd, tv_str path, size_t limit, tv_str *text)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return cannot(a, path, errno);
    if (S_ISDIR(st.st_mode))
        return cannot(a, path, EISDIR);
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > limit)
        return too_large(a, path, limit);
    return read_all(a, fd, path, limit, text);
}

const tv_err *tv_file_read(tv_arena *a, tv_str path, size_t limit, tv_str *text)
{
    if (tv_str_is(path, "-"))
        return read_all(a, STDIN_FILENO, TV_S("standard input"), limit, text);
    handle *h = open_handle(a, path);
    if (!h->open)
        return cannot(a, path, errno);
    const tv_err *e = read_handle(a, h->fd, path, limit, text);
    close_handle(h);
    return e;
}

static tv_err *cannot_write(tv_arena *a, tv_str path, int number)
{
    return tv_in_file(TV_FAIL(a, TV_SYSTEM, "file.cannot-write", N_("cannot write: {reason}"),
                              tv_arg_str("reason", tv_errno_text(a, number))),
                      path);
}

const tv_err *tv_file_write(tv_arena *a, tv_str path, tv_str text)
{
    const int fd = open(tv_cstr(a, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return cannot_write(a, path, errno);
    while (text.n) {
        const ssize_t put = write(fd, text.p, text.n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            const int number = errno;
            (void)close(fd);
            return cannot_write(a, path, number);
        }
        text = tv_str_drop(text, (size_t)put);
    }
    return close(fd) == 0 ? NULL : cannot_write(a, path, errno);
}

typedef struct mapping {
    void *p;
    size_t n;
} mapping;

static void unmap(void *what)
{
    const mapping *m = what;
    if (m->n)
        (void)munmap(m->p, m->n);
}

static const tv_err *map_handle(tv_arena *a, int fd, tv_str path, tv_bytes_view *bytes)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return cannot(a, path, errno);
    if (S_ISDIR(st.st_mode))
        return cannot(a, path, EISDIR);
    *bytes = (tv_bytes_view){0};
    if (st.st_size == 0)
        return NULL;
    mapping *m = tv_new(a, mapping, 1);
    tv_defer(a, unmap, m);
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return cannot(a, path, errno);
    *m = (mapping){p, (size_t)st.st_size};
    *bytes = (tv_bytes_view){p, (size_t)st.st_size};
    return NULL;
}

const tv_err *tv_file_map(tv_arena *a, tv_str path, tv_bytes_view *bytes)
{
    handle *h = open_handle(a, path);
    if (!h->open)
        return cannot(a, path, errno);
    const tv_err *e = map_handle(a, h->fd, path, bytes);
    close_handle(h);
    return e;
}

void tv_file_forget(tv_bytes_view bytes)
{
    if (bytes.n)
        (void)madvise((void *)(uintptr_t)bytes.p, bytes.n, MADV_DONTNEED);
}

static int by_name(const void *x, const void *y)
{
    return tv_str_cmp(((const tv_dir_entry *)x)->name, ((const tv_dir_entry *)y)->name);
}

typedef struct open_dir {
    DIR *d;
} open_dir;

static void close_dir(void *what)
{
    open_dir *o = what;
    if (o->d)
        (void)closedir(o->d);
    o->d = NULL;
}

static void list_entries(tv_arena *a, DIR *d, tv_dir *dir)
{
    for (const struct dirent *entry; (entry = readdir(d));) {
        const tv_str name = tv_str_of(entry->d_name);
        struct stat st;
        if (tv_str_is(name, ".") || tv_str_is(name, "..") ||
            fstatat(dirfd(d), entry->d_name, &st, 0) != 0)
            continue;
        *tv_push(a, dir) = (tv_dir_entry){
            tv_str_copy(a, name),
            S_ISDIR(st.st_mode),
            (uint64_t)st.st_size,
        };
    }
}

const tv_err *tv_dir_list(tv_arena *a, tv_str path, tv_dir *dir)
{
    open_dir *o = tv_new(a, open_dir, 1);
    tv_defer(a, close_dir, o);
    o->d = opendir(tv_cstr(a, path));
    if (!o->d)
        return cannot(a, path, errno);
    *dir = (tv_dir){0};
    list_entries(a, o->d, dir);
    close_dir(o);
    if (dir->n)
        qsort(dir->v, dir->n, sizeof *dir->v, by_name);
    return NULL;
}

tv_str tv_path_join(tv_arena *a, tv_str folder, tv_str name)
{
    if (folder.n == 0 || tv_str_starts(name, TV_S("/")))
        return tv_str_copy(a, name);
    if (!tv_str_ends(folder, TV_S("/")))
        folder = tv_str_join(a, folder, TV_S("/"));
    return tv_str_join(a, folder, name);
}

static size_t last_slash(tv_str path)
{
    size_t n = path.n;
    while (n && path.p[n - 1] != '/')
        n--;
    return n;
}

tv_str tv_path_folder(tv_str path)
{
    const size_t n = last_slash(path);
    if (n == 0)
        return TV_S(".");
    return tv_str_take(path, n > 1 ? n - 1 : 1);
}

tv_str tv_path_name(tv_str path)
{
    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    return tv_str_drop(path, last_slash(path));
}
