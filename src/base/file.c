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

static void close_handle(void *what)
{
    (void)close((int)(intptr_t)what);
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

const tv_err *tv_file_read(tv_arena *a, tv_str path, size_t limit, tv_str *text)
{
    if (tv_str_is(path, "-"))
        return read_all(a, STDIN_FILENO, TV_S("standard input"), limit, text);
    const int fd = open(tv_cstr(a, path), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cannot(a, path, errno);
    tv_defer(a, close_handle, (void *)(intptr_t)fd);
    struct stat st;
    if (fstat(fd, &st) != 0)
        return cannot(a, path, errno);
    if (S_ISDIR(st.st_mode))
        return cannot(a, path, EISDIR);
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > limit)
        return too_large(a, path, limit);
    return read_all(a, fd, path, limit, text);
}

typedef struct mapping {
    void *p;
    size_t n;
} mapping;

static void unmap(void *what)
{
    const mapping *m = what;
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
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return cannot(a, path, errno);
    mapping *m = tv_new(a, mapping, 1);
    *m = (mapping){p, (size_t)st.st_size};
    tv_defer(a, unmap, m);
    *bytes = (tv_bytes_view){p, (size_t)st.st_size};
    return NULL;
}

const tv_err *tv_file_map(tv_arena *a, tv_str path, tv_bytes_view *bytes)
{
    const int fd = open(tv_cstr(a, path), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cannot(a, path, errno);
    const tv_err *e = map_handle(a, fd, path, bytes);
    (void)close(fd);
    return e;
}

static int by_name(const void *x, const void *y)
{
    return tv_str_cmp(((const tv_dir_entry *)x)->name, ((const tv_dir_entry *)y)->name);
}

static void close_dir(void *what)
{
    (void)closedir(what);
}

const tv_err *tv_dir_list(tv_arena *a, tv_str path, tv_dir *dir)
{
    DIR *d = opendir(tv_cstr(a, path));
    if (!d)
        return cannot(a, path, errno);
    *dir = (tv_dir){0};
    for (const struct dirent *entry; (entry = readdir(d));) {
        const tv_str name = tv_str_of(entry->d_name);
        if (tv_str_is(name, ".") || tv_str_is(name, ".."))
            continue;
        struct stat st;
        if (fstatat(dirfd(d), entry->d_name, &st, 0) != 0)
            continue;
        *tv_push(a, dir) = (tv_dir_entry){
            tv_str_copy(a, name),
            S_ISDIR(st.st_mode),
            (uint64_t)st.st_size,
        };
    }
    close_dir(d);
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
