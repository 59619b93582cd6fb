/* The lists that the readers of one model fill, and the checks that do not depend on a format. */
#include "gather.h"

#include <stdlib.h>

tv_gather tv_gather_in(tv_arena *a, tv_str path)
{
    return (tv_gather){.a = a, .source = {.path = tv_str_copy(a, path)}};
}

uint32_t tv_gather_file(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    *tv_push(g->a, &g->files) = (tv_source_file){tv_str_copy(g->a, path), bytes.n};
    *tv_push(g->a, &g->views) = bytes;
    return (uint32_t)(g->files.n - 1);
}

void tv_gather_warn(tv_gather *g, tv_text text)
{
    *tv_push(g->a, &g->warnings) = text;
}

void tv_gather_room(tv_gather *g, size_t n)
{
    tv_tensor_list *list = &g->tensors;
    if (n <= list->cap - list->n)
        return;
    /* Half as much again: a model of many files does not copy the list for each. */
    const size_t cap = list->n + n + list->cap / 2;
    tv_tensor *v = tv_new(g->a, tv_tensor, cap);
    for (size_t i = 0; i < list->n; i++)
        v[i] = list->v[i];
    list->v = v;
    list->cap = cap;
}

const tv_err *tv_broken(tv_gather *g, tv_str file, const char *id, const char *msgid,
                        uint64_t offset)
{
    return tv_fail_at(g->a, TV_INPUT, TV_TEXT0(id, msgid), file, offset);
}

bool tv_is_plain_name(tv_str name)
{
    if (name.n == 0 || tv_str_is(name, ".") || tv_str_is(name, ".."))
        return false;
    return !tv_str_cut(name, '/').found && !tv_str_cut(name, '\0').found;
}

bool tv_is_inside(tv_str path)
{
    tv_cut c = tv_str_cut(path, '/');
    while (c.found && tv_is_plain_name(c.head))
        c = tv_str_cut(c.tail, '/');
    return !c.found && tv_is_plain_name(c.head);
}

tv_part tv_part_of(tv_str path, tv_str ending)
{
    enum { tail = sizeof "-00001-of-00003" - 1, width = 5 };
    if (!tv_str_ends(path, ending) || path.n < ending.n + tail)
        return (tv_part){0};
    const tv_str stem = tv_str_take(path, path.n - ending.n - tail);
    const tv_str numbers = tv_str_take(tv_str_drop(path, stem.n), tail);
    const tv_str of = tv_str_drop(numbers, 1 + width);
    if (numbers.p[0] != '-' || !tv_str_starts(of, TV_S("-of-")))
        return (tv_part){0};
    const tv_u64_read part = tv_str_u64(tv_str_take(tv_str_drop(numbers, 1), width));
    const tv_u64_read count = tv_str_u64(tv_str_drop(of, 4));
    if (!part.ok || !count.ok || part.v == 0 || part.v > count.v)
        return (tv_part){0};
    return (tv_part){stem, part.v, count.v};
}

/* ---- what is no data ---- */

bool tv_is_lfs_pointer(tv_bytes_view bytes)
{
    const tv_str text = {(const char *)bytes.p, bytes.n};
    return bytes.n && tv_str_starts(text, TV_S("version https://git-lfs"));
}

void tv_warn_pointer(tv_gather *g, tv_str name)
{
    tv_gather_warn(g, TV_TEXT(g->a, "read.lfs-pointer-beside",
                              N_("{file} is a git-LFS pointer, the weights were not fetched: sizes "
                                 "come from the configuration"),
                              tv_arg_str("file", name)));
}

/* git stores a symbolic link as the path it points to; checked out without link support, the
 * path is all there is. */
static bool is_link_text(tv_str path, tv_bytes_view bytes)
{
    const tv_str text = {(const char *)bytes.p, bytes.n};
    if (bytes.n < 4 || bytes.n > 1024 || !tv_str_cut(text, '/').found)
        return false;
    for (size_t i = 0; i < bytes.n; i++)
        if (bytes.p[i] < 0x20 || bytes.p[i] > 0x7e)
            return false;
    const tv_str name = tv_path_name(path);
    size_t dot = name.n;
    while (dot && name.p[dot - 1] != '.')
        dot--;
    return dot && tv_str_ends(text, tv_str_drop(name, dot - 1));
}

static const tv_err *not_data(tv_gather *g, tv_str path, const char *id, const char *msgid,
                              const char *hint)
{
    tv_err *e = tv_fail_at(g->a, TV_INPUT, TV_TEXT0(id, msgid), tv_str_copy(g->a, path), 0);
    return tv_hint(e, TV_TEXT0(id, hint));
}

static const tv_err *refuse_pointer(tv_gather *g, tv_str path)
{
    return not_data(g, path, "read.lfs-pointer",
                    N_("a git-LFS pointer stands here instead of the data"),
                    N_("Run `git lfs pull` in that repository, or name its config.json to go "
                       "without the weights."));
}

const tv_err *tv_gather_map(tv_gather *g, tv_str path, tv_bytes_view *bytes)
{
    TV_TRY(tv_file_map(g->a, path, bytes));
    g->mapped = bytes->p;
    if (bytes->n == 0)
        return not_data(g, path, "read.empty", N_("the file is empty"),
                        N_("Fetch it again: nothing was written."));
    if (tv_is_lfs_pointer(*bytes))
        return g->pointers_allowed ? NULL : refuse_pointer(g, path);
    if (is_link_text(path, *bytes))
        return not_data(g, path, "read.link-text",
                        N_("the path of a symbolic link stands here instead of the data"),
                        N_("Fetch the file that the link points to."));
    return NULL;
}

/* ---- where the data lies ---- */

typedef struct extent {
    uint64_t begin;
    uint64_t end;
    size_t index;
} extent;

static int by_begin(const void *x, const void *y)
{
    const extent *p = x, *q = y;
    if (p->begin != q->begin)
        return p->begin < q->begin ? -1 : 1;
    if (p->end != q->end)
        return p->end < q->end ? -1 : 1;
    return (p->index > q->index) - (p->index < q->index);
}

static extent *sorted_extents(tv_gather *g, size_t first, size_t n)
{
    extent *v = tv_new(g->a, extent, n ? n : 1);
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        const tv_tensor *t = &g->tensors.v[first + i];
        v[i] = (extent){t->offset, t->offset + t->bytes, first + i};
        sorted = sorted && (i == 0 || by_begin(&v[i - 1], &v[i]) < 0);
    }
    if (!sorted)
        qsort(v, n, sizeof *v, by_begin);
    return v;
}

static const tv_err *overlap(tv_gather *g, const extent *x, const extent *y)
{
    const tv_tensor *one = &g->tensors.v[x->index], *two = &g->tensors.v[y->index];
    return tv_fail_at(g->a, TV_INPUT,
                      TV_TEXT(g->a, "read.overlap",
                              N_("the data of \"{one}\" and \"{two}\" overlap"),
                              tv_arg_str("one", one->name), tv_arg_str("two", two->name)),
                      g->files.v[two->file].path, y->begin);
}

static void warn_gaps(tv_gather *g, size_t n, uint64_t bytes)
{
    if (n == 0)
        return;
    const tv_str path = g->files.v[g->files.n - 1].path;
    tv_gather_warn(g, TV_TEXT(g->a, "read.gaps",
                              N_("{file} holds {bytes} that belong to no tensor (gaps: {n})"),
                              tv_arg_str("file", tv_path_name(path)),
                              tv_arg_num("bytes", TV_ARG_DISK, (double)bytes),
                              tv_arg_num("n", TV_ARG_COUNT, (double)n)));
}

const tv_err *tv_gather_check(tv_gather *g, size_t first, tv_data_area area)
{
    const size_t n = g->tensors.n - first;
    const tv_mark mark = tv_arena_mark(g->a);
    extent *v = sorted_extents(g, first, n);
    uint64_t at = area.begin, gap_bytes = 0;
    size_t gaps = 0, last = 0;
    for (size_t i = 0; i < n; i++) {
        tv_tensor *t = &g->tensors.v[v[i].index];
        if (v[i].begin < at && v[i].end > v[i].begin)
            return overlap(g, &v[last], &v[i]);
        if (v[i].begin > at && v[i].begin - at >= area.slack) {
            gaps++;
            gap_bytes += v[i].begin - at;
        }
        if (area.fill && t->dtype == TV_DTYPE_UNKNOWN) {
            t->bytes = (i + 1 < n ? v[i + 1].begin : area.end) - v[i].begin;
            v[i].end = v[i].begin + t->bytes;
        }
        if (v[i].end >= at) {
            at = v[i].end;
            last = i;
        }
    }
    if (area.end > at && area.end - at >= area.slack) {
        gaps++;
        gap_bytes += area.end - at;
    }
    tv_arena_rewind(g->a, mark);
    warn_gaps(g, gaps, gap_bytes);
    return NULL;
}

/* ---- names ---- */

static int by_tensor_name(const void *x, const void *y)
{
    const tv_tensor *p = x, *q = y;
    const int order = tv_str_cmp(p->name, q->name);
    return order ? order : (p->file > q->file) - (p->file < q->file);
}

static void sort_tensors(tv_gather *g)
{
    const tv_tensor_list *list = &g->tensors;
    size_t i = 1;
    while (i < list->n && by_tensor_name(&list->v[i - 1], &list->v[i]) <= 0)
        i++;
    if (i < list->n)
        qsort(list->v, list->n, sizeof *list->v, by_tensor_name);
}

static const tv_err *stands_twice(tv_gather *g, const tv_tensor *x, const tv_tensor *y)
{
    const tv_bytes_view view = g->views.v[y->file];
    const bool one_file = x->file == y->file;
    const char *later = one_file && x->name.p > y->name.p ? x->name.p : y->name.p;
    tv_err *e =
        tv_fail(g->a, TV_INPUT,
                TV_TEXT(g->a, "read.duplicate-tensor", N_("the tensor \"{name}\" stands twice"),
                        tv_arg_str("name", y->name)));
    /* A name that was unescaped no longer lies in the file. */
    const uintptr_t base = (uintptr_t)view.p, p = (uintptr_t)later;
    if (p >= base && p - base < view.n) {
        e->offset = p - base;
        e->has_offset = true;
    }
    return tv_in_file(e, g->files.v[y->file].path);
}

static bool same_shape(const tv_tensor *x, const tv_tensor *y)
{
    bool same = x->dtype == y->dtype && x->rank == y->rank && x->bytes == y->bytes;
    for (uint32_t i = 0; same && i < x->rank; i++)
        same = x->dims[i] == y->dims[i];
    return same;
}

static void warn_copies(tv_gather *g, size_t n, size_t different, tv_str name)
{
    if (n)
        tv_gather_warn(g,
                       TV_TEXT(g->a, "read.copies",
                               N_("tensors that stand in more than one file, each counted "
                                  "once: {n} (\"{name}\")"),
                               tv_arg_num("n", TV_ARG_COUNT, (double)n), tv_arg_str("name", name)));
    if (different)
        tv_gather_warn(g, TV_TEXT(g->a, "read.name-clash",
                                  N_("tensors that differ in type or shape from file to file: {n}; "
                                     "the first file's are taken, name one file to be sure"),
                                  tv_arg_num("n", TV_ARG_COUNT, (double)different)));
}

/* Leaves one tensor per name, the first file's. */
static const tv_err *distinct(tv_gather *g)
{
    tv_tensor_list *list = &g->tensors;
    size_t kept = 0, copies = 0, different = 0;
    tv_str example = {0};
    for (size_t i = 0; i < list->n; i++) {
        const tv_tensor *t = &list->v[i];
        const tv_tensor *before = kept ? &list->v[kept - 1] : NULL;
        if (!before || !tv_str_eq(before->name, t->name)) {
            list->v[kept++] = *t;
            continue;
        }
        if (before->file == t->file || g->source.kind == TV_SOURCE_GGUF)
            return stands_twice(g, before, t);
        copies++;
        different += !same_shape(before, t);
        example = example.n ? example : t->name;
    }
    list->n = kept;
    warn_copies(g, copies, different, example);
    return NULL;
}

const tv_err *tv_gather_done(tv_gather *g, const tv_source **out)
{
    tv_source *s = tv_new(g->a, tv_source, 1);
    sort_tensors(g);
    TV_TRY(distinct(g));
    *s = g->source;
    s->tensors = g->tensors.n ? g->tensors.v : NULL;
    s->n_tensors = g->tensors.n;
    for (size_t i = 0; i < s->n_tensors; i++)
        s->tensor_bytes += (double)s->tensors[i].bytes;
    if (s->adapter) {
        tv_adapter *x = tv_new(g->a, tv_adapter, 1);
        *x = *s->adapter;
        tv_measure_adapter(s, x);
        s->adapter = x;
    }
    s->files = g->files.v;
    s->n_files = g->files.n;
    s->warnings = g->warnings.v;
    s->n_warnings = g->warnings.n;
    *out = s;
    return NULL;
}

static tv_str without_extension(tv_str name)
{
    size_t dot = name.n;
    while (dot && name.p[dot - 1] != '.')
        dot--;
    return dot > 1 ? tv_str_take(name, dot - 1) : name;
}

static bool says_nothing(tv_str name)
{
    return name.n == 0 || tv_str_is(name, ".") || tv_str_is(name, "..") || tv_str_is(name, "/");
}

/* The names that every model's files have: their folder says more. */
static bool is_generic(tv_str name)
{
    static const char *const names[] = {"model", "model_index", "pytorch_model",
                                        "diffusion_pytorch_model"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tv_str_is(name, names[i]))
            return true;
    return tv_str_ends(name, TV_S("config")) || tv_str_has(name, TV_S(".safetensors"));
}

tv_str tv_model_name(tv_arena *a, tv_str path, bool is_dir, const tv_json *config)
{
    const tv_str file = tv_path_name(path);
    tv_str name = file;
    if (!is_dir) {
        name = without_extension(file);
        const tv_part part = tv_part_of(name, TV_S(""));
        name = part.count ? part.stem : name;
        name = is_generic(name) ? tv_path_name(tv_path_folder(path)) : name;
    }
    if (says_nothing(name))
        name = tv_path_name(tv_json_str(tv_json_get(config, "_name_or_path")));
    if (says_nothing(name))
        name = tv_json_str(tv_json_get(config, "model_type"));
    if (says_nothing(name))
        name = is_dir ? TV_S("model") : without_extension(file);
    return tv_str_copy(a, name);
}
