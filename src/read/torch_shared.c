/* When every tensor of a checkpoint was found: which of them share their data, what the storages
 * hold that no tensor shows, what is handed over and what is only reported. */
#include "torch.h"

#include <stdlib.h>

static int by_place(const void *x, const void *y)
{
    const tv_torch_leaf *p = *(tv_torch_leaf *const *)x, *q = *(tv_torch_leaf *const *)y;
    if (p->storage != q->storage)
        return p->storage < q->storage ? -1 : 1;
    if (p->begin != q->begin)
        return p->begin < q->begin ? -1 : 1;
    if (p->group != q->group)
        return p->group < q->group ? -1 : 1;
    return (p > q) - (p < q);
}

/* Marks tensors whose data another one shows already; sums what each storage shows. */
static void find_shared(tv_torch *t)
{
    const size_t n = t->leaves.n;
    tv_torch_leaf **v = tv_new(t->g->a, tv_torch_leaf *, n ? n : 1);
    for (size_t i = 0; i < n; i++)
        v[i] = &t->leaves.v[i];
    qsort(v, n, sizeof *v, by_place);
    uint64_t covered = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || v[i]->storage != v[i - 1]->storage)
            covered = 0;
        if (!v[i]->storage || v[i]->end == v[i]->begin)
            continue;
        tv_torch_storage *s = &t->storages.v[v[i]->storage - 1];
        if (v[i]->end > covered)
            s->seen += v[i]->end - (v[i]->begin > covered ? v[i]->begin : covered);
        if (v[i]->begin < covered) {
            v[i]->t.shares = true;
            v[i]->t.bytes = 0;
        }
        covered = v[i]->end > covered ? v[i]->end : covered;
    }
}

static bool all_start(const tv_torch *t, tv_str prefix)
{
    bool some = false;
    for (size_t i = 0; i < t->leaves.n; i++) {
        const tv_torch_leaf *leaf = &t->leaves.v[i];
        if (leaf->group == 0 && !tv_str_starts(leaf->t.name, prefix))
            return false;
        some = some || leaf->group == 0;
    }
    return some;
}

/* DataParallel and torch.compile wrap a model in a module of these names. */
static void drop_wrappers(tv_torch *t)
{
    static const char *const wrappers[] = {"module.", "_orig_mod.", "module._orig_mod."};
    for (size_t k = 0; k < sizeof wrappers / sizeof *wrappers; k++) {
        const tv_str prefix = tv_str_of(wrappers[k]);
        if (!all_start(t, prefix))
            continue;
        for (size_t i = 0; i < t->leaves.n; i++)
            if (t->leaves.v[i].group == 0)
                t->leaves.v[i].t.name = tv_str_drop(t->leaves.v[i].t.name, prefix.n);
    }
}

static void warn_unseen(tv_torch *t, double stored, double unseen)
{
    if (unseen > 0.01 * stored)
        tv_gather_warn(t->g,
                       TV_TEXT(t->g->a, "torch.unseen",
                               N_("{file} stores {bytes} that its tensors do not show: views of "
                                  "larger tensors were saved without a copy"),
                               tv_arg_str("file", tv_path_name(t->path)),
                               tv_arg_num("bytes", TV_ARG_DISK, unseen)));
}

static void sum_storages(tv_torch *t)
{
    double stored = 0, unseen = 0;
    for (size_t i = 0; i < t->storages.n; i++) {
        stored += (double)t->storages.v[i].bytes;
        unseen += (double)(t->storages.v[i].bytes - t->storages.v[i].seen);
    }
    t->g->source.storage_bytes += stored;
    warn_unseen(t, stored, unseen);
}

static void hand_over(tv_torch *t)
{
    tv_gather_room(t->g, t->leaves.n);
    for (size_t i = 0; i < t->leaves.n; i++) {
        const tv_torch_leaf *leaf = &t->leaves.v[i];
        if (leaf->group == 0) {
            *tv_push(t->g->a, &t->g->tensors) = leaf->t;
            continue;
        }
        tv_source_extra *extra = &t->extras.v[leaf->group - 1];
        extra->n_tensors++;
        extra->elements += (double)leaf->t.elements;
        extra->bytes += (double)leaf->t.bytes;
    }
}

static void warn_extras(tv_torch *t)
{
    tv_source *s = &t->g->source;
    for (size_t i = 0; i < t->extras.n; i++) {
        const tv_source_extra *x = &t->extras.v[i];
        tv_gather_warn(
            t->g, TV_TEXT(t->g->a, "torch.extra",
                          N_("{file} also holds \"{name}\" ({n} tensors, {bytes}), which "
                             "is no part of the model"),
                          tv_arg_str("file", tv_path_name(t->path)), tv_arg_str("name", x->name),
                          tv_arg_num("n", TV_ARG_COUNT, (double)x->n_tensors),
                          tv_arg_num("bytes", TV_ARG_DISK, x->bytes)));
    }
    /* Of several files the first one's. */
    if (t->extras.n && !s->extras) {
        s->extras = t->extras.v;
        s->n_extras = t->extras.n;
    }
}

const tv_err *tv_torch_finish(tv_torch *t)
{
    const size_t before = t->g->tensors.n;
    find_shared(t);
    drop_wrappers(t);
    sum_storages(t);
    hand_over(t);
    warn_extras(t);
    tv_torch_judge_names(t);
    if (t->g->tensors.n > before)
        return NULL;
    tv_err *e = tv_fail(t->g->a, TV_INPUT,
                        TV_TEXT0("torch.no-tensors", N_("the file holds no tensors of a model")));
    return tv_hint(
        tv_in_file(e, t->path),
        TV_TEXT0("torch.no-tensors",
                 N_("Name the file with the weights: training arguments, optimizer states "
                    "and schedulers lie in files of their own.")));
}
