/* What a folder holds: which of its files are the configuration and which are the weights. A
 * folder often holds the same weights several times; one set of them is chosen, in the order in
 * which the frameworks look. */
#include "gather.h"

#include "paddle.h"

typedef struct folder {
    tv_str path;
    tv_dir dir;
} folder;

static bool has(const folder *f, const char *name)
{
    for (size_t i = 0; i < f->dir.n; i++)
        if (!f->dir.v[i].is_dir && tv_str_is(f->dir.v[i].name, name))
            return true;
    return false;
}

static tv_str inside(tv_gather *g, const folder *f, tv_str name)
{
    return tv_path_join(g->a, f->path, name);
}

/* The first name with that ending; exclude: a part that must not be in it (may be empty). */
static tv_str first_with(const folder *f, const char *ending, const char *exclude)
{
    for (size_t i = 0; i < f->dir.n; i++) {
        const tv_dir_entry *entry = &f->dir.v[i];
        const bool excluded = exclude[0] && tv_str_has(entry->name, tv_str_of(exclude));
        if (!entry->is_dir && !excluded && tv_str_ends(entry->name, tv_str_of(ending)))
            return entry->name;
    }
    return (tv_str){0};
}

/* ---- weights ---- */

static const tv_err *read_index(tv_gather *g, const folder *f, tv_str name)
{
    tv_bytes_view bytes;
    const tv_str path = inside(g, f, name);
    TV_TRY(tv_gather_map(g, path, &bytes));
    if (!tv_is_lfs_pointer(bytes))
        return tv_read_weight_index(g, path, bytes);
    tv_warn_pointer(g, name);
    return NULL;
}

static const tv_err *read_one(tv_gather *g, const folder *f, tv_str name)
{
    tv_bytes_view bytes;
    const tv_str path = inside(g, f, name);
    TV_TRY(tv_gather_map(g, path, &bytes));
    if (!tv_is_lfs_pointer(bytes))
        return tv_read_safetensors(g, path, bytes);
    tv_warn_pointer(g, name);
    return NULL;
}

/* Mistral's own layout of the same weights, beside the one that transformers reads. */
static bool is_second_copy(tv_str name)
{
    return tv_str_starts(name, TV_S("consolidated"));
}

/* Parts without an index: their names say how many there must be. */
static const tv_err *check_parts(tv_gather *g, const folder *f, tv_str name, tv_str ending)
{
    const tv_part own = tv_part_of(name, ending);
    uint64_t there = 0;
    for (size_t i = 0; own.count && i < f->dir.n; i++) {
        const tv_part other = tv_part_of(f->dir.v[i].name, ending);
        there += other.count == own.count && tv_str_eq(other.stem, own.stem);
    }
    if (there >= own.count)
        return NULL;
    tv_err *e = tv_fail(g->a, TV_UNAVAILABLE,
                        TV_TEXT(g->a, "read.missing-parts",
                                N_("parts of the model that are there: {n} of {all}"),
                                tv_arg_num("n", TV_ARG_COUNT, (double)there),
                                tv_arg_num("all", TV_ARG_COUNT, (double)own.count)));
    return tv_hint(tv_in_file(e, inside(g, f, name)),
                   TV_TEXT0("read.missing-parts", N_("Fetch the missing files.")));
}

static const tv_err *read_all(tv_gather *g, const folder *f)
{
    bool others = false;
    for (size_t i = 0; i < f->dir.n; i++) {
        const tv_str name = f->dir.v[i].name;
        others = others || (tv_str_ends(name, TV_S(".safetensors")) && !is_second_copy(name));
    }
    for (size_t i = 0; i < f->dir.n; i++) {
        const tv_dir_entry *entry = &f->dir.v[i];
        if (entry->is_dir || !tv_str_ends(entry->name, TV_S(".safetensors")))
            continue;
        if (others && is_second_copy(entry->name))
            continue;
        TV_TRY(check_parts(g, f, entry->name, TV_S(".safetensors")));
        TV_TRY(read_one(g, f, entry->name));
    }
    return NULL;
}

static const tv_err *read_safetensors_of(tv_gather *g, const folder *f)
{
    static const char *const usual[] = {"model.safetensors", "diffusion_pytorch_model.safetensors"};
    static const char *const indexes[] = {"model.safetensors.index.json",
                                          "diffusion_pytorch_model.safetensors.index.json"};
    for (size_t i = 0; i < 2; i++)
        if (has(f, usual[i]))
            return read_one(g, f, tv_str_of(usual[i]));
    for (size_t i = 0; i < 2; i++)
        if (has(f, indexes[i]))
            return read_index(g, f, tv_str_of(indexes[i]));
    const tv_str index = first_with(f, ".safetensors.index.json", "");
    if (index.n)
        return read_index(g, f, index);
    return read_all(g, f);
}

/* A file of weights that belongs to training, not to the model. */
static bool is_training_state(tv_str name)
{
    static const char *const starts[] = {"training_args", "optimizer", "scheduler", "rng_state",
                                         "scaler"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (tv_str_starts(name, tv_str_of(starts[i])))
            return true;
    return false;
}

/* The first file with that ending that may be a model. */
static tv_str first_model(const folder *f, const char *ending)
{
    for (size_t i = 0; i < f->dir.n; i++) {
        const tv_dir_entry *entry = &f->dir.v[i];
        if (!entry->is_dir && tv_str_ends(entry->name, tv_str_of(ending)) &&
            !is_training_state(entry->name))
            return entry->name;
    }
    return (tv_str){0};
}

static void warn_not_read(tv_gather *g, tv_str name)
{
    tv_gather_warn(g, TV_TEXT(g->a, "read.weights-not-read",
                              N_("{file} is not read: sizes come from the configuration"),
                              tv_arg_str("file", name)));
}

/* Beside a configuration a file that is no checkpoint after all is passed over. */
static const tv_err *read_torch_file(tv_gather *g, const folder *f, tv_str name)
{
    tv_bytes_view bytes;
    const tv_str path = inside(g, f, name);
    TV_TRY(tv_gather_map(g, path, &bytes));
    if (tv_is_lfs_pointer(bytes)) {
        tv_warn_pointer(g, name);
        return NULL;
    }
    if (tv_is_torch(bytes) || !g->source.config)
        return tv_read_torch(g, path, bytes);
    warn_not_read(g, name);
    return NULL;
}

/* "pytorch_model-00001-of-00002.bin" without an index: all parts of the first one's stem. */
static const tv_err *read_torch_parts(tv_gather *g, const folder *f, tv_str name)
{
    const tv_part own = tv_part_of(name, TV_S(".bin"));
    if (own.count == 0)
        return read_torch_file(g, f, name);
    TV_TRY(check_parts(g, f, name, TV_S(".bin")));
    for (size_t i = 0; i < f->dir.n; i++) {
        const tv_part other = tv_part_of(f->dir.v[i].name, TV_S(".bin"));
        if (other.count == own.count && tv_str_eq(other.stem, own.stem))
            TV_TRY(read_torch_file(g, f, f->dir.v[i].name));
    }
    return NULL;
}

static const tv_err *read_state(tv_gather *g, const folder *f, tv_str name)
{
    tv_bytes_view bytes;
    const tv_str path = inside(g, f, name);
    TV_TRY(tv_gather_map(g, path, &bytes));
    if (!tv_is_lfs_pointer(bytes))
        return tv_read_paddle_state(g, path, bytes);
    tv_warn_pointer(g, name);
    return NULL;
}

/* Paddle's state dict: PaddleNLP's own name for it, else all parts of the first. */
static const tv_err *read_states(tv_gather *g, const folder *f)
{
    const tv_str first = first_with(f, ".pdparams", "");
    const tv_part own = tv_part_of(first, TV_S(".pdparams"));
    if (first.n == 0 || has(f, "model_state.pdparams"))
        return first.n ? read_state(g, f, TV_S("model_state.pdparams")) : NULL;
    if (own.count == 0)
        return read_state(g, f, first);
    for (size_t i = 0; i < f->dir.n; i++) {
        const tv_part part = tv_part_of(f->dir.v[i].name, TV_S(".pdparams"));
        if (!f->dir.v[i].is_dir && part.count == own.count && tv_str_eq(part.stem, own.stem))
            TV_TRY(read_state(g, f, f->dir.v[i].name));
    }
    return NULL;
}

static const tv_err *read_torch_of(tv_gather *g, const folder *f)
{
    static const char *const usual[] = {"pytorch_model.bin", "diffusion_pytorch_model.bin",
                                        "adapter_model.bin"};
    static const char *const endings[] = {".bin", ".pt", ".pth", ".ckpt"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (has(f, usual[i]))
            return read_torch_file(g, f, tv_str_of(usual[i]));
    const tv_str index = first_with(f, ".bin.index.json", "");
    if (index.n)
        return read_index(g, f, index);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const tv_str name = first_model(f, endings[i]);
        if (name.n)
            return read_torch_parts(g, f, name);
    }
    return NULL;
}

/* Weights in a format that is not read beside a configuration. */
static void warn_other_weights(tv_gather *g, const folder *f)
{
    static const char *const endings[] = {".msgpack", ".h5"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const tv_str name = first_model(f, endings[i]);
        if (name.n == 0)
            continue;
        warn_not_read(g, name);
        return;
    }
}

static bool nothing_yet(const tv_gather *g)
{
    return g->tensors.n == 0 && g->files.n == 0 && g->source.stated_total_size == 0;
}

static const tv_err *read_weights(tv_gather *g, const folder *f)
{
    TV_TRY(read_safetensors_of(g, f));
    if (nothing_yet(g))
        TV_TRY(read_torch_of(g, f));
    if (nothing_yet(g))
        TV_TRY(read_states(g, f));
    if (nothing_yet(g))
        warn_other_weights(g, f);
    return NULL;
}

const tv_err *tv_read_weights_beside(tv_gather *g, tv_str path)
{
    folder f = {.path = path};
    TV_TRY(tv_dir_list(g->a, path, &f.dir));
    return read_weights(g, &f);
}

/* ---- one file that is a whole model ---- */

/* "name-00002-of-00005.gguf": a later part of a model whose first part stands in the list too. */
static bool is_later_part(tv_str name)
{
    return tv_part_of(name, TV_S(".gguf")).part > 1;
}

/* A vision projector goes with a model, it is none. */
static bool is_projector(tv_str name)
{
    return tv_str_starts(name, TV_S("mmproj"));
}

/* msgid: "the folder holds {n} ... models: {names}". */
static const tv_err *several(tv_gather *g, const folder *f, const char *msgid, tv_str names,
                             size_t n)
{
    tv_err *e =
        tv_fail(g->a, TV_USAGE,
                TV_TEXT(g->a, "read.several-models", msgid,
                        tv_arg_num("n", TV_ARG_COUNT, (double)n), tv_arg_str("names", names)));
    return tv_hint(tv_in_file(e, f->path),
                   TV_TEXT0("read.several-models", N_("Name one of these files.")));
}

/* The files of a folder that alone are a whole model, and their reader. */
typedef struct whole_kind {
    const char *ending;
    bool (*passed_over)(tv_str name); /* NULL: none is */
    const char *several;              /* msgid */
    const tv_err *(*read)(tv_gather *g, tv_str path, tv_bytes_view bytes);
} whole_kind;

static bool no_gguf_model(tv_str name)
{
    return is_later_part(name) || is_projector(name);
}

static const whole_kind gguf_files = {
    .ending = ".gguf",
    .passed_over = no_gguf_model,
    .several = N_("the folder holds {n} GGUF models: {names}"),
    .read = tv_read_gguf,
};

/* Without a configuration and without weights of their own. */
static const whole_kind onnx_files = {
    .ending = ".onnx",
    .several = N_("the folder holds {n} ONNX models: {names}"),
    .read = tv_read_onnx,
};

static const tv_err *read_whole(tv_gather *g, const folder *f, const whole_kind *kind, bool *found)
{
    tv_buf names = tv_buf_in(g->a);
    tv_str only = {0};
    size_t n = 0;
    for (size_t i = 0; i < f->dir.n; i++) {
        const tv_dir_entry *entry = &f->dir.v[i];
        if (entry->is_dir || !tv_str_ends(entry->name, tv_str_of(kind->ending)) ||
            (kind->passed_over && kind->passed_over(entry->name)))
            continue;
        tv_puts(&names, n++ ? ", " : "");
        tv_put(&names, entry->name);
        only = entry->name;
    }
    *found = n > 0;
    if (n > 1)
        return several(g, f, kind->several, tv_buf_str(&names), n);
    if (n == 0)
        return NULL;
    tv_bytes_view bytes;
    const tv_str path = inside(g, f, only);
    TV_TRY(tv_gather_map(g, path, &bytes));
    return kind->read(g, path, bytes);
}

/* ---- the folder ---- */

static tv_str config_of(const folder *f)
{
    static const char *const names[] = {"config.json", "ernie_config.json", "model_config.json",
                                        "bert_config.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has(f, names[i]))
            return tv_str_of(names[i]);
    return (tv_str){0};
}

static const tv_format *format_of(tv_str name)
{
    const tv_format *format = NULL;
    for (size_t i = 0; (format = tv_format_at(i)) != NULL; i++)
        if (!format->read && format->probe(name, (tv_bytes_view){0}))
            return format;
    return NULL;
}

static const tv_err *nothing_to_read(tv_gather *g, const folder *f)
{
    tv_err *e = NULL;
    for (size_t i = 0; !e && i < f->dir.n; i++) {
        const tv_format *format = f->dir.v[i].is_dir ? NULL : format_of(f->dir.v[i].name);
        if (!format)
            continue;
        e = tv_fail(g->a, TV_UNSUPPORTED,
                    TV_TEXT(g->a, "read.format-not-read", N_("{format} files are not read yet"),
                            tv_arg_word("format", format->summary)));
        tv_hint(e, TV_TEXT0("read.format-not-read", format->instead));
        return tv_in_file(e, inside(g, f, f->dir.v[i].name));
    }
    e = tv_fail(g->a, TV_INPUT, TV_TEXT0("read.no-model", N_("the folder holds no model")));
    return tv_hint(tv_in_file(e, f->path),
                   TV_TEXT0("read.no-model",
                            N_("Name a folder with config.json, model_index.json, .safetensors or "
                               ".gguf files.")));
}

/* A hub cache keeps each revision in snapshots/; with one revision there is no doubt. */
static tv_str snapshot_of(tv_gather *g, tv_str path)
{
    tv_dir dir;
    const tv_str snapshots = tv_path_join(g->a, path, TV_S("snapshots"));
    const tv_file_info info = tv_file_stat(g->a, snapshots);
    if (!info.is_dir || tv_dir_list(g->a, snapshots, &dir) || dir.n != 1 || !dir.v[0].is_dir)
        return (tv_str){0};
    return tv_path_join(g->a, snapshots, dir.v[0].name);
}

static const tv_err *read_listed(tv_gather *g, const folder *f)
{
    if (has(f, "model_index.json"))
        return tv_read_config(g, inside(g, f, TV_S("model_index.json")));
    const tv_str config = config_of(f);
    const bool safetensors = first_with(f, ".safetensors", "").n > 0;
    bool found = false;
    if (!safetensors)
        TV_TRY(read_whole(g, f, &gguf_files, &found));
    if (!found && config.n == 0)
        TV_TRY(tv_read_paddle_folder(g, f->path, &f->dir, &found));
    if (found)
        return NULL;
    if (config.n)
        TV_TRY(tv_read_config(g, inside(g, f, config)));
    if (g->source.program)
        return NULL; /* the configuration was that of a program beside it */
    TV_TRY(read_weights(g, f));
    if (config.n == 0 && g->files.n == 0)
        TV_TRY(read_whole(g, f, &onnx_files, &found));
    if (found)
        return NULL;
    if (config.n == 0 && g->files.n == 0 && !has(f, "adapter_config.json"))
        return nothing_to_read(g, f);
    if (config.n)
        return NULL;
    if (g->source.kind == TV_SOURCE_NONE)
        g->source.kind = TV_SOURCE_SAFETENSORS;
    return tv_warn_adapter(g, f->path);
}

const tv_err *tv_read_folder(tv_gather *g, tv_str path)
{
    folder f = {.path = path};
    TV_TRY(tv_dir_list(g->a, path, &f.dir));
    const tv_str snapshot = snapshot_of(g, path);
    if (snapshot.n && config_of(&f).n == 0) {
        f.path = snapshot;
        TV_TRY(tv_dir_list(g->a, snapshot, &f.dir));
        const tv_str name = tv_path_name(path);
        if (tv_str_starts(name, TV_S("models--")))
            g->source.name = tv_str_drop(name, sizeof "models--" - 1);
    }
    return read_listed(g, &f);
}
