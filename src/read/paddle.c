/* Paddle's inference models: which files belong together. A program (.pdmodel, __model__, the JSON
 * of PIR), its parameters (.pdiparams, __params__, or one file each) and the settings for serving
 * it; any of them may be named. */
#include "paddle.h"

static bool exists(tv_gather *g, tv_str path)
{
    const tv_file_info info = tv_file_stat(g->a, path);
    return info.exists && !info.is_dir;
}

static tv_str stem_of(tv_str path, const char *ending)
{
    const tv_str end = tv_str_of(ending);
    return tv_str_ends(path, end) ? tv_str_take(path, path.n - end.n) : (tv_str){0};
}

bool tv_is_paddle_model_name(tv_str name)
{
    return tv_str_is(name, "__model__") || tv_str_ends(name, TV_S(".__model__"));
}

/* ---- parameters ---- */

/* Where the parameters of a program lie; empty: not in one file. */
static tv_str parameters_of(tv_gather *g, tv_str program)
{
    static const char *const endings[] = {".pdmodel", ".json"};
    const tv_str folder = tv_path_folder(program);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const tv_str stem = stem_of(program, endings[i]);
        const tv_str path = tv_str_join(g->a, stem, TV_S(".pdiparams"));
        if (stem.n && exists(g, path))
            return path;
    }
    static const char *const names[] = {"__params__", "params"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tv_str path = tv_path_join(g->a, folder, tv_str_of(names[i]));
        if (tv_is_paddle_model_name(tv_path_name(program)) && exists(g, path))
            return path;
    }
    return (tv_str){0};
}

static const tv_err *read_weights(tv_gather *g, tv_str program, uint32_t file, tv_paddle_program *p)
{
    const tv_str path = parameters_of(g, program);
    size_t there = 0;
    if (path.n) {
        tv_bytes_view bytes;
        const bool allowed = g->pointers_allowed;
        g->pointers_allowed = true; /* the shapes stand in the program */
        const tv_err *e = tv_gather_map(g, path, &bytes);
        g->pointers_allowed = allowed;
        TV_TRY(e);
        if (!tv_is_lfs_pointer(bytes))
            return tv_read_paddle_records(g, path, bytes, p);
        tv_gather_warn(g, TV_TEXT(g->a, "paddle.pointer",
                                  N_("{file} is a git-LFS pointer, the weights were not fetched: "
                                     "sizes come from the program"),
                                  tv_arg_str("file", tv_path_name(path))));
    } else if (tv_is_paddle_model_name(tv_path_name(program))) {
        TV_TRY(tv_read_paddle_files(g, tv_path_folder(program), p, &there));
    }
    return there ? NULL : tv_paddle_list(g, p, file);
}

/* ---- programs ---- */

static const tv_err *read_program(tv_gather *g, tv_str path, tv_bytes_view bytes,
                                  tv_paddle_program *p)
{
    const tv_err *e = tv_is_paddle_pir(bytes) ? tv_read_paddle_pir(g, path, bytes, p)
                                              : tv_read_paddle_desc(g, path, bytes, p);
    if (!e || e->code != TV_INPUT)
        return e;
    tv_err *told = tv_while(g->a, e, TV_TEXT0("paddle.reading", N_("reading the Paddle program")));
    return tv_hint(told, TV_TEXT0("paddle.reading",
                                  N_("Fetch the file again: it is cut short, damaged or no Paddle "
                                     "program.")));
}

const tv_err *tv_read_paddle_model(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    tv_paddle_program p = {0};
    tv_program *program = tv_new(g->a, tv_program, 1);
    TV_TRY(read_program(g, path, bytes, &p));
    const uint32_t file = tv_gather_file(g, path, bytes);
    TV_TRY(read_weights(g, path, file, &p));
    TV_TRY(tv_read_paddle_settings(g, tv_path_folder(path), &p));
    *program = p.program;
    g->source.kind = TV_SOURCE_PROGRAM;
    g->source.paddle = true;
    g->source.program = program;
    return NULL;
}

static const tv_err *read_mapped(tv_gather *g, tv_str path)
{
    tv_bytes_view bytes;
    TV_TRY(tv_gather_map(g, path, &bytes));
    return tv_read_paddle_model(g, path, bytes);
}

/* ---- parameters that were named ---- */

/* The program beside a file of parameters; empty: none. */
static tv_str program_of(tv_gather *g, tv_str parameters)
{
    static const char *const endings[] = {".pdmodel", ".json"};
    const tv_str stem = stem_of(parameters, ".pdiparams");
    for (size_t i = 0; stem.n && i < sizeof endings / sizeof *endings; i++) {
        const tv_str path = tv_str_join(g->a, stem, tv_str_of(endings[i]));
        if (exists(g, path))
            return path;
    }
    const tv_str old = tv_path_join(g->a, tv_path_folder(parameters), TV_S("__model__"));
    return tv_str_is(tv_path_name(parameters), "__params__") && exists(g, old) ? old : (tv_str){0};
}

const tv_err *tv_read_paddle_parameters(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    const tv_str program = program_of(g, path);
    if (program.n)
        return read_mapped(g, program);
    g->source.kind = TV_SOURCE_CHECKPOINT;
    g->source.paddle = true;
    tv_gather_warn(g, TV_TEXT0("paddle.unnamed",
                               N_("the tensors have no names: these stand in the program, which is "
                                  "not beside the parameters")));
    return tv_read_paddle_records(g, path, bytes, NULL);
}

/* ---- folders ---- */

static tv_str named(const tv_dir *dir, const char *name)
{
    for (size_t i = 0; i < dir->n; i++)
        if (!dir->v[i].is_dir && tv_str_is(dir->v[i].name, name))
            return dir->v[i].name;
    return (tv_str){0};
}

static tv_str ending_in(const tv_dir *dir, const char *ending)
{
    for (size_t i = 0; i < dir->n; i++)
        if (!dir->v[i].is_dir && tv_str_ends(dir->v[i].name, tv_str_of(ending)))
            return dir->v[i].name;
    return (tv_str){0};
}

/* A JSON that is the program of the parameters beside it. */
static tv_str pir_of(tv_gather *g, tv_str folder, const tv_dir *dir)
{
    for (size_t i = 0; i < dir->n; i++) {
        const tv_str name = dir->v[i].name;
        tv_bytes_view bytes;
        if (dir->v[i].is_dir || !tv_str_ends(name, TV_S(".json")) || dir->v[i].bytes < 32)
            continue;
        if (tv_file_map(g->a, tv_path_join(g->a, folder, name), &bytes) == NULL &&
            tv_is_paddle_pir(bytes))
            return name;
    }
    return (tv_str){0};
}

const tv_err *tv_read_paddle_folder(tv_gather *g, tv_str folder, const tv_dir *dir, bool *found)
{
    tv_str name = pir_of(g, folder, dir);
    if (name.n == 0)
        name = ending_in(dir, ".pdmodel");
    if (name.n == 0)
        name = named(dir, "__model__");
    const tv_str parameters = name.n ? name : ending_in(dir, ".pdiparams");
    *found = parameters.n > 0;
    if (!*found)
        return NULL;
    const tv_str path = tv_path_join(g->a, folder, parameters);
    if (name.n)
        return read_mapped(g, path);
    tv_bytes_view bytes;
    TV_TRY(tv_gather_map(g, path, &bytes));
    return tv_read_paddle_parameters(g, path, bytes);
}
