/* PyTorch checkpoints: .pt, .pth, .bin, .ckpt. Four containers hold the same kind of pickle; this
 * file knows the present one (zip: data.pkl and one entry per storage) and sends the others on.
 * TorchScript archives are the same with code beside; the code is neither run nor read.
 * Layout: torch/serialization.py, "_save". */
#include "torch.h"

/* A pickle is small beside its storages: 30 nodes and 300 bytes per tensor. */
static const size_t pickle_limit = (size_t)1 << 31;

static const tv_err *no_checkpoint(tv_gather *g, tv_str path, const char *id, const char *msgid)
{
    tv_err *e = tv_fail(g->a, TV_UNSUPPORTED, TV_TEXT0(id, msgid));
    return tv_hint(tv_in_file(e, path),
                   TV_TEXT0("torch.instead",
                            N_("Name the model's config.json, or give the size with --params.")));
}

/* ---- zip ---- */

/* The entry "FOLDER/name" with the shortest folder; *folder keeps its '/'. */
static const tv_zip_entry *entry_in_root(const tv_zip *zip, const char *name, tv_str *folder)
{
    const tv_zip_entry *best = NULL;
    const tv_str own = tv_str_of(name);
    for (size_t i = 0; i < zip->n; i++) {
        const tv_zip_entry *x = &zip->entries[i];
        if (!tv_str_ends(x->name, own) || (best && best->name.n <= x->name.n))
            continue;
        if (x->name.n > own.n && x->name.p[x->name.n - own.n - 1] != '/')
            continue;
        best = x;
        *folder = tv_str_take(x->name, x->name.n - own.n);
    }
    return best;
}

static const tv_err *storage_in_zip(tv_torch *t, tv_torch_storage *s, uint64_t at)
{
    const tv_mark mark = tv_arena_mark(t->g->a);
    const tv_str name = tv_str_join(t->g->a, t->folder, s->key);
    const tv_zip_entry *x = tv_zip_find(t->zip, name);
    const bool there = x && x->bytes >= s->bytes;
    tv_arena_rewind(t->g->a, mark);
    if (there)
        return NULL;
    return tv_fail_at(t->g->a, TV_INPUT,
                      TV_TEXT(t->g->a, "torch.no-storage",
                              N_("the archive lacks the data of storage {key}, or a part of it"),
                              tv_arg_str("key", s->key)),
                      t->path, at);
}

static const tv_err *open_pickle(tv_torch *t, const tv_zip_entry *x, const char *data,
                                 const tv_pickle_node **root)
{
    tv_arena *a = t->g->a;
    tv_bytes_view bytes = {0};
    uint64_t at = 0;
    TV_TRY(tv_zip_read(a, t->zip, x, pickle_limit, &bytes));
    TV_TRY(tv_zip_data(a, t->zip, x, &at));
    /* Where the entry was deflated, places within it are all there is. */
    const uint64_t base = x->method == 0 ? at : 0;
    const tv_pickle_names names = t->pickle.globals;
    t->pickle =
        (tv_pickle){.file = t->path, .bytes = bytes, .base = base, .n_nodes = 0, .globals = names};
    t->folder =
        tv_str_join(a, tv_str_take(x->name, x->name.n - tv_path_name(x->name).n), tv_str_of(data));
    return tv_pickle_next(a, &t->pickle, root);
}

/* A TorchScript's tensors that are no attributes: they are loaded with it. */
static const tv_err *read_constants(tv_torch *t, tv_str folder)
{
    const tv_str name = tv_str_join(t->g->a, folder, TV_S("constants.pkl"));
    const tv_zip_entry *x = tv_zip_find(t->zip, name);
    const tv_pickle_node *root = NULL;
    if (!x)
        return NULL;
    TV_TRY(open_pickle(t, x, "constants/", &root));
    t->visits = 0;
    /* Keys of the constants' storages count from 0 again. */
    const size_t first = t->storages.n;
    for (size_t i = 0; i < first; i++)
        t->storages.v[i].key = tv_str_join(t->g->a, TV_S("data/"), t->storages.v[i].key);
    t->storages.n_slots = 0;
    return tv_torch_walk(t, root, TV_S("constants"));
}

static bool is_script(const tv_zip *zip, tv_str folder)
{
    for (size_t i = 0; i < zip->n; i++)
        if (tv_str_starts(zip->entries[i].name, folder) &&
            tv_str_starts(tv_str_drop(zip->entries[i].name, folder.n), TV_S("code/")))
            return true;
    return false;
}

static const tv_err *read_zip(tv_torch *t, tv_bytes_view bytes)
{
    tv_zip zip;
    tv_str folder = {0};
    const tv_pickle_node *root = NULL;
    TV_TRY(tv_zip_open(t->g->a, t->path, bytes, &zip));
    const tv_zip_entry *x = entry_in_root(&zip, "data.pkl", &folder);
    if (!x)
        return no_checkpoint(t->g, t->path, "torch.no-pickle",
                             N_("the archive holds no PyTorch checkpoint (no data.pkl)"));
    t->zip = &zip;
    t->find = storage_in_zip;
    TV_TRY(open_pickle(t, x, "data/", &root));
    const bool script = is_script(&zip, folder);
    if (script) {
        TV_TRY(tv_torch_walk(t, root, (tv_str){0}));
        TV_TRY(read_constants(t, folder));
    } else {
        TV_TRY(tv_torch_take(t, root));
    }
    return tv_torch_finish(t);
}

/* ---- a pickle alone ---- */

static const tv_err *read_pickle(tv_torch *t, tv_bytes_view bytes)
{
    const tv_pickle_node *root = NULL;
    t->pickle = (tv_pickle){.file = t->path, .bytes = bytes};
    TV_TRY(tv_pickle_next(t->g->a, &t->pickle, &root));
    TV_TRY(tv_torch_take(t, root));
    return tv_torch_finish(t);
}

/* Protocols 0 and 1 have no mark at their begin. */
static bool may_be_pickle(tv_bytes_view bytes)
{
    return tv_pickle_is(bytes) || (bytes.n > 4 && (bytes.p[0] == '(' || bytes.p[0] == '}' ||
                                                   bytes.p[0] == 'c' || bytes.p[0] == ']'));
}

bool tv_is_torch(tv_bytes_view bytes)
{
    return tv_zip_is(bytes) || tv_torch_is_legacy(bytes) || tv_torch_is_tar(bytes) ||
           may_be_pickle(bytes);
}

const tv_err *tv_read_torch(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    tv_torch t = {.g = g, .file = tv_gather_file(g, path, bytes)};
    t.path = g->files.v[t.file].path;
    if (g->source.kind == TV_SOURCE_NONE)
        g->source.kind = TV_SOURCE_CHECKPOINT;
    if (tv_zip_is(bytes))
        return read_zip(&t, bytes);
    if (tv_torch_is_legacy(bytes))
        return tv_torch_read_legacy(&t, bytes);
    if (tv_torch_is_tar(bytes))
        return tv_torch_read_tar(&t, bytes);
    if (may_be_pickle(bytes))
        return read_pickle(&t, bytes);
    return no_checkpoint(g, path, "torch.no-checkpoint",
                         N_("no PyTorch checkpoint: neither an archive nor a pickle"));
}

/* ---- a file that was named ---- */

/* "pytorch_model-00002-of-00003.bin": the index that goes with it, if it is there. */
static tv_str index_of_part(tv_gather *g, tv_str path)
{
    const tv_part part = tv_part_of(path, TV_S(".bin"));
    if (part.count == 0)
        return (tv_str){0};
    const tv_str index = tv_str_join(g->a, part.stem, TV_S(".bin.index.json"));
    return tv_file_stat(g->a, index).exists ? index : (tv_str){0};
}

static const tv_err *read(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    TV_TRY(tv_read_config_beside(g, path));
    const tv_str index = index_of_part(g, path);
    if (index.n) {
        TV_TRY(tv_gather_map(g, index, &bytes));
        return tv_read_weight_index(g, index, bytes);
    }
    if (tv_str_starts(tv_path_name(path), TV_S("adapter")))
        TV_TRY(tv_warn_adapter(g, tv_path_folder(path)));
    return tv_read_torch(g, path, bytes);
}

/* An archive without a telling name: torch.save writes data.pkl first. */
static bool begins_with_pickle(tv_bytes_view bytes)
{
    const tv_str head = tv_str_take((tv_str){(const char *)bytes.p, bytes.n}, 256);
    return tv_zip_is(bytes) && tv_str_has(head, TV_S("/data.pkl"));
}

static bool probe(tv_str name, tv_bytes_view bytes)
{
    static const char *const endings[] = {".pt", ".pth", ".bin", ".ckpt", ".pkl"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (tv_str_ends(name, tv_str_of(endings[i])))
            return true;
    return tv_torch_is_legacy(bytes) || begins_with_pickle(bytes);
}

extern const tv_format tv_format_torch;
const tv_format tv_format_torch = {
    .name = "torch",
    .summary = N_("PyTorch checkpoint"),
    .probe = probe,
    .read = read,
};
