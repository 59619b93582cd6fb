/* The door of the readers: a path goes to the folder reader or to the first format whose probe
 * knows the file. */
#include "gather.h"

#include <math.h>

const tv_format *tv_format_at(size_t i)
{
    size_t n = 0;
    while (tv_formats[n])
        n++;
    if (i < n)
        return tv_formats[i];
    if (i < n + tv_n_formats_later)
        return &tv_formats_later[i - n];
    /* Last: any other JSON is taken for a configuration. */
    return i == n + tv_n_formats_later ? &tv_format_config : NULL;
}

static const tv_err *not_read(tv_gather *g, tv_str path, const tv_format *format)
{
    tv_err *e = tv_fail(g->a, TV_UNSUPPORTED,
                        TV_TEXT(g->a, "read.format-not-read", N_("{format} files are not read yet"),
                                tv_arg_word("format", format->summary)));
    tv_in_file(e, path);
    return tv_hint(e, TV_TEXT0("read.format-not-read", format->instead));
}

static const tv_err *read_file(tv_gather *g, tv_str path)
{
    tv_bytes_view bytes;
    const tv_str name = tv_path_name(path);
    TV_TRY(tv_gather_map(g, path, &bytes));
    const tv_format *format = NULL;
    for (size_t i = 0; (format = tv_format_at(i)) != NULL; i++)
        if (format->probe(name, bytes))
            break;
    if (format && format->read)
        return format->read(g, path, bytes);
    if (format)
        return not_read(g, path, format);
    tv_err *e = tv_fail(g->a, TV_UNSUPPORTED,
                        TV_TEXT0("read.unknown-format", N_("not a model format that is known")));
    return tv_hint(tv_in_file(e, path),
                   TV_TEXT0("read.unknown-format",
                            N_("Name a folder with config.json, a .safetensors or a .gguf file, or "
                               "give the size with --params.")));
}

static const tv_err *no_such_model(tv_gather *g, tv_str path)
{
    tv_err *e =
        tv_fail(g->a, TV_UNAVAILABLE, TV_TEXT0("read.no-such-file", N_("no such file or folder")));
    return tv_hint(tv_in_file(e, path),
                   TV_TEXT0("read.no-such-file",
                            N_("Give a model's folder or file, the name of a built-in model "
                               "(`trivet models` lists them), or --params 7e9.")));
}

const tv_err *tv_read_model(tv_arena *a, tv_str path, const tv_source **out)
{
    tv_gather g = tv_gather_in(a, path);
    const tv_file_info info = tv_file_stat(a, g.source.path);
    if (!info.exists)
        return no_such_model(&g, g.source.path);
    if (info.is_dir)
        TV_TRY(tv_read_folder(&g, g.source.path));
    else
        TV_TRY(read_file(&g, g.source.path));
    if (g.source.name.n == 0)
        g.source.name = tv_model_name(a, g.source.path, info.is_dir, g.source.config);
    return tv_gather_done(&g, out);
}

const tv_err *tv_read_params(tv_arena *a, double params, const tv_source **out)
{
    /* A quadrillion: a thousand times the largest model that was announced. */
    if (!(params >= 1 && params <= 1e15))
        return TV_FAIL(a, TV_USAGE, "read.params-range",
                       N_("{params} is no number of parameters: give 1 to 1e15, as in 7e9 or 7B"),
                       tv_arg_num("params", TV_ARG_NUMBER, params));
    tv_buf name = tv_buf_in(a);
    tv_put_short(&name, params / 1e9, 3);
    tv_puts(&name, "B");
    tv_source *s = tv_new(a, tv_source, 1);
    s->kind = TV_SOURCE_PARAMS;
    s->name = tv_buf_str(&name);
    s->path = s->name;
    s->stated_params = floor(params + 0.5);
    *out = s;
    return NULL;
}
