/* A diffusers pipeline: model_index.json names the components, each lies in a folder of its own.
 * Tokenizers, schedulers and processors hold no weights and are passed over. */
#include "gather.h"

typedef struct component_list {
    tv_component *v;
    size_t n;
    size_t cap;
} component_list;

static bool holds_no_weights(tv_str class_name)
{
    static const char *const kinds[] = {"Tokenizer",        "TokenizerFast", "Scheduler",
                                        "FeatureExtractor", "Processor",     "ImageProcessor"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (tv_str_ends(class_name, tv_str_of(kinds[i])))
            return true;
    return tv_str_has(class_name, TV_S("Scheduler"));
}

static void warn_absent(tv_gather *g, tv_str name, tv_str class_name)
{
    tv_gather_warn(g, TV_TEXT(g->a, "pipeline.absent",
                              N_("the pipeline's part {name} ({class}) is not there: it is left "
                                 "out"),
                              tv_arg_str("name", name), tv_arg_str("class", class_name)));
}

/* The component's own files, read like a folder of their own. */
static const tv_err *read_part(tv_gather *g, tv_str folder, tv_str name, tv_component *part)
{
    const tv_str path = tv_path_join(g->a, folder, name);
    tv_gather own = tv_gather_in(g->a, path);
    const tv_str config = tv_path_join(g->a, path, TV_S("config.json"));
    own.pointers_allowed = g->pointers_allowed;
    own.depth = g->depth;
    TV_TRY(tv_read_config(&own, config));
    TV_TRY(tv_read_weights_beside(&own, path));
    own.source.name = name;
    for (size_t i = 0; i < own.warnings.n; i++)
        tv_gather_warn(g, own.warnings.v[i]);
    return tv_gather_done(&own, &part->source);
}

static bool has_config(tv_gather *g, tv_str folder, tv_str name)
{
    const tv_str path = tv_path_join(g->a, folder, name);
    const tv_str config = tv_path_join(g->a, path, TV_S("config.json"));
    const tv_file_info info = tv_file_stat(g->a, config);
    return info.exists && !info.is_dir;
}

const tv_err *tv_read_pipeline(tv_gather *g, tv_str folder, const tv_json *doc)
{
    component_list parts = {0};
    if (g->depth++)
        return tv_in_file(
            TV_FAIL0(g->a, TV_INPUT, "pipeline.nested", N_("a pipeline inside a pipeline")),
            folder);
    for (size_t i = 0; i < doc->n; i++) {
        const tv_json *value = &doc->items[i];
        const tv_str class_name = tv_json_str(tv_json_at(value, 1));
        if (value->n != 2 || class_name.n == 0 || holds_no_weights(class_name))
            continue;
        if (!tv_is_plain_name(value->key))
            return tv_fail_at(g->a, TV_INPUT,
                              TV_TEXT(g->a, "read.bad-name",
                                      N_("\"{name}\" is no name of a file in this folder"),
                                      tv_arg_str("name", value->key)),
                              tv_path_join(g->a, folder, TV_S("model_index.json")), value->offset);
        if (!has_config(g, folder, value->key)) {
            warn_absent(g, value->key, class_name);
            continue;
        }
        tv_component part = {.name = value->key, .class_name = class_name};
        TV_TRY(read_part(g, folder, value->key, &part));
        *tv_push(g->a, &parts) = part;
    }
    g->source.kind = TV_SOURCE_DIFFUSERS;
    g->source.config = doc;
    g->source.components = parts.v;
    g->source.n_components = parts.n;
    g->source.name = tv_model_name(g->a, folder, true, doc);
    return NULL;
}
