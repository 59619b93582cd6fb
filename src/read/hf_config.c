/* config.json and its kin (diffusers components, ERNIE's and PaddleNLP's names for it): parsed and
 * sorted by kind. What the keys mean is the families' business. */
#include "gather.h"

#include "builtin.h"
#include "paddle.h"

/* model_index.json: the class of a pipeline, and components as [library, class]. */
static bool is_pipeline(tv_str path, const tv_json *doc)
{
    const tv_str class_name = tv_json_str(tv_json_get(doc, "_class_name"));
    if (class_name.n == 0)
        return false;
    return tv_str_is(tv_path_name(path), "model_index.json") ||
           tv_str_ends(class_name, TV_S("Pipeline"));
}

typedef struct other_json {
    const char *key; /* its presence tells */
    const char *what;
    const char *hint;
    bool scheduler; /* so does a class that is one */
} other_json;

/* JSON files that lie beside models and describe none. */
static const other_json others[] = {
    {"tokenizer_class", N_("a tokenizer's settings, not a model"),
     N_("Name the folder, or config.json in it."), false},
    {"added_tokens_decoder", N_("a tokenizer's settings, not a model"),
     N_("Name the folder, or config.json in it."), false},
    {"num_train_timesteps", N_("a scheduler's settings, not a model"),
     N_("Name the pipeline's folder, or model_index.json in it."), true},
};

static const tv_err *refuse(tv_gather *g, tv_str path, const char *id, const char *msgid,
                            const char *hint, tv_code code)
{
    tv_err *e = tv_fail(g->a, code, TV_TEXT0(id, msgid));
    return tv_hint(tv_in_file(e, path), TV_TEXT0(id, hint));
}

static bool describes_a_model(const tv_json *doc)
{
    return tv_json_has(doc, "model_type") || tv_json_has(doc, "architectures");
}

static const tv_err *check_document(tv_gather *g, tv_str path, const tv_json *doc)
{
    if (doc->type != TV_JSON_OBJECT || doc->n == 0)
        return refuse(g, path, "config.no-object", N_("no configuration: the JSON is no object"),
                      N_("Name a model's config.json, or its folder."), TV_INPUT);
    if (describes_a_model(doc))
        return NULL; /* a speech model's own configuration may name its tokenizer class */
    const bool scheduler =
        tv_str_ends(tv_json_str(tv_json_get(doc, "_class_name")), TV_S("Scheduler"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (tv_json_has(doc, others[i].key) || (scheduler && others[i].scheduler))
            return refuse(g, path, "config.not-a-model", others[i].what, others[i].hint,
                          TV_UNSUPPORTED);
    return NULL;
}

static const tv_err *read_quantization(tv_gather *g, tv_str folder)
{
    const tv_str path = tv_path_join(g->a, folder, TV_S("hf_quant_config.json"));
    if (!tv_file_stat(g->a, path).exists)
        return NULL;
    return tv_json_parse_file(g->a, path, &g->source.quantization);
}

/* Our own schema (docs/models.md) lists layers, or holds a configuration of the usual kind. */
static const tv_json *unwrap(tv_gather *g, const tv_json *doc)
{
    if (tv_json_get(doc, "variants")->n > 1)
        tv_gather_warn(g, TV_TEXT0("record.variants",
                                   N_("the file describes several variants; the first is taken")));
    doc = tv_record_first(g->a, doc);
    const tv_json *config = tv_json_get(doc, "config");
    g->source.name = tv_json_str(tv_json_get(doc, "name"));
    if (config->type == TV_JSON_OBJECT)
        return config;
    g->source.kind = TV_SOURCE_BUILTIN;
    return doc;
}

/* Sets kind and config from a document that is no pipeline. */
static void take_document(tv_gather *g, const tv_json *doc)
{
    if (tv_str_starts(tv_json_str(tv_json_get(doc, "schema")), TV_S("trivet.model/")))
        doc = unwrap(g, doc);
    g->source.config = doc;
    if (g->source.kind != TV_SOURCE_BUILTIN)
        g->source.kind =
            tv_json_has(doc, "_class_name") ? TV_SOURCE_DIFFUSERS : TV_SOURCE_HF_CONFIG;
}

const tv_err *tv_read_config(tv_gather *g, tv_str path)
{
    const tv_json *doc = NULL;
    TV_TRY(tv_json_parse_file(g->a, path, &doc));
    if (tv_is_paddle_settings(doc))
        return tv_read_paddle_served(g, path, doc);
    if (tv_is_adapter_config(doc)) {
        tv_take_adapter(g, path, doc);
        return NULL;
    }
    TV_TRY(check_document(g, path, doc));
    const tv_str folder = tv_path_folder(path);
    if (is_pipeline(path, doc))
        return tv_read_pipeline(g, folder, doc);
    take_document(g, doc);
    return read_quantization(g, folder);
}

const tv_err *tv_read_config_beside(tv_gather *g, tv_str path)
{
    const tv_str name = tv_path_name(path);
    const tv_str config = tv_path_join(g->a, tv_path_folder(path), TV_S("config.json"));
    if (!tv_str_starts(name, TV_S("model")) &&
        !tv_str_starts(name, TV_S("diffusion_pytorch_model")) &&
        !tv_str_starts(name, TV_S("pytorch_model")))
        return NULL;
    return tv_file_stat(g->a, config).exists ? tv_read_config(g, config) : NULL;
}

const tv_err *tv_read_description(tv_arena *a, tv_str name, tv_str text, const tv_source **out)
{
    tv_gather g = tv_gather_in(a, name);
    const tv_json *doc = NULL;
    TV_TRY(tv_json_parse(a, g.source.path, text, &doc));
    TV_TRY(check_document(&g, g.source.path, doc));
    take_document(&g, doc);
    if (g.source.name.n == 0)
        g.source.name = tv_model_name(a, g.source.path, false, doc);
    return tv_gather_done(&g, out);
}

/* A file that was named: the weights beside it are part of the model, and a pointer to weights
 * that were not fetched is no reason to refuse. */
static const tv_err *read(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    (void)bytes;
    TV_TRY(tv_read_config(g, path));
    if (g->source.n_components || g->source.kind == TV_SOURCE_BUILTIN || g->source.program)
        return NULL;
    g->pointers_allowed = true;
    return tv_read_weights_beside(g, tv_path_folder(path));
}

static bool probe(tv_str name, tv_bytes_view bytes)
{
    const tv_str text = tv_str_trim(tv_str_take((tv_str){(const char *)bytes.p, bytes.n}, 256));
    return tv_str_ends(name, TV_S(".json")) || tv_str_starts(text, TV_S("{"));
}

const tv_format tv_format_config = {
    .name = "config.json",
    .summary = N_("Hugging Face, diffusers or ERNIE configuration"),
    .probe = probe,
    .read = read,
};
