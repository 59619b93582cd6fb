/* Depth first, in the order of the names. */
#include "captured.h"

#include "base/limits.h"

#include <sys/stat.h>

static const tv_err *enter(tv_captured_walk *w, tv_str path)
{
    if (w->n >= TV_LIMIT_CAPTURED_DEPTH)
        return NULL;
    tv_captured_folder folder = {.path = path};
    TV_TRY(tv_dir_list(w->a, path, &folder.dir));
    *tv_push(w->a, w) = folder;
    return NULL;
}

tv_captured_walk tv_captured_begin(tv_arena *a, tv_str folder)
{
    tv_captured_walk w = {.a = a};
    w.failed = enter(&w, folder);
    return w;
}

typedef enum entry_kind { OTHER, FILE_ENTRY, FOLDER_ENTRY } entry_kind;

static entry_kind kind_of(tv_arena *a, tv_str path)
{
    struct stat st;
    const char *p = tv_cstr(a, path);
    if (lstat(p, &st) != 0)
        return OTHER;
    if (S_ISDIR(st.st_mode))
        return FOLDER_ENTRY;
    return stat(p, &st) == 0 && S_ISREG(st.st_mode) ? FILE_ENTRY : OTHER;
}

bool tv_captured_next(tv_captured_walk *w, tv_str *file)
{
    while (w->n) {
        tv_captured_folder *f = &w->v[w->n - 1];
        if (f->at == f->dir.n) {
            w->n--;
            continue;
        }
        const tv_str path = tv_path_join(w->a, f->path, f->dir.v[f->at++].name);
        const entry_kind kind = kind_of(w->a, path);
        *file = path;
        if (kind == FILE_ENTRY)
            return true;
        const tv_err *e = kind == FOLDER_ENTRY ? enter(w, path) : NULL;
        (void)e; /* a folder that may not be read holds nothing for us */
    }
    return false;
}

static bool is_control(char c)
{
    return (unsigned char)c < 32 || c == 127;
}

tv_str tv_shown_name(tv_arena *a, tv_str name)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < name.n; i++)
        tv_putc(&b, is_control(name.p[i]) ? '?' : name.p[i]);
    return tv_buf_str(&b);
}
