/* adapter_config.json as PEFT writes it (peft/tuners/lora/config.py, 0.18), and what the file of
 * the adapter's weights holds. Which model the base is, is not decided here. */
#include "gather.h"

static tv_str joined(tv_arena *a, const tv_json *list)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < list->n; i++) {
        tv_puts(&b, b.n ? "," : "");
        tv_put(&b, tv_json_str(&list->items[i]));
    }
    return tv_buf_str(&b);
}

/* A list of names, "all-linear", or a regular expression. */
static void read_targets(tv_arena *a, const tv_json *j, tv_adapter *x)
{
    const tv_json *targets = tv_json_get(j, "target_modules");
    const tv_str text = tv_json_str(targets);
    if (targets->type == TV_JSON_ARRAY)
        x->targets = joined(a, targets);
    else if (tv_str_is(text, "all-linear"))
        x->all_linear = true;
    else
        x->pattern = text;
}

/* rank_pattern: module names or patterns with ranks of their own. */
static void read_ranks(const tv_json *j, tv_adapter *x)
{
    const tv_json *ranks = tv_json_get(j, "rank_pattern");
    x->rank = tv_json_num(tv_json_get(j, "r"), 0);
    if (tv_str_is(x->kind, "ADALORA")) /* it begins wider and is pruned to target_r */
        x->rank = tv_json_num(tv_json_get(j, "init_r"), x->rank);
    for (size_t i = 0; i < ranks->n; i++) {
        const double r = tv_json_num(&ranks->items[i], 0);
        x->ranks_differ = x->ranks_differ || (r > 0 && r != x->rank);
        x->rank = r > x->rank ? r : x->rank;
    }
}

static tv_adapter *adapter_of(tv_gather *g, tv_str folder, const tv_json *j)
{
    tv_adapter *x = tv_new(g->a, tv_adapter, 1);
    const tv_json *layers = tv_json_get(j, "layers_to_transform");
    *x = (tv_adapter){
        .folder = folder,
        .base = tv_json_str(tv_json_get(j, "base_model_name_or_path")),
        .kind = tv_json_str(tv_json_get(j, "peft_type")),
        .alpha = tv_json_num(tv_json_get(j, "lora_alpha"), 0),
        .dropout = tv_json_num(tv_json_get(j, "lora_dropout"), 0),
        .saved = joined(g->a, tv_json_get(j, "modules_to_save")),
        .layers = layers->type == TV_JSON_ARRAY    ? (double)layers->n
                  : layers->type == TV_JSON_NUMBER ? 1
                                                   : 0,
        .dora = tv_json_bool(tv_json_get(j, "use_dora"), false),
        .rank_stabilised = tv_json_bool(tv_json_get(j, "use_rslora"), false),
    };
    read_targets(g->a, j, x);
    read_ranks(j, x);
    return x;
}

bool tv_is_adapter_config(const tv_json *doc)
{
    return tv_json_has(doc, "peft_type") && !tv_json_has(doc, "model_type");
}

void tv_take_adapter(tv_gather *g, tv_str path, const tv_json *doc)
{
    tv_adapter *x = adapter_of(g, tv_str_copy(g->a, tv_path_folder(path)), doc);
    g->source.adapter = x;
    if (g->source.kind == TV_SOURCE_NONE)
        g->source.kind = TV_SOURCE_SAFETENSORS;
    tv_gather_warn(g, TV_TEXT(g->a, "read.adapter",
                              N_("only an adapter is there: name its base model {base} to count "
                                 "both"),
                              tv_arg_str("base", x->base.n ? x->base : TV_S("?"))));
}

const tv_err *tv_warn_adapter(tv_gather *g, tv_str folder)
{
    const tv_str path = tv_path_join(g->a, folder, TV_S("adapter_config.json"));
    const tv_json *doc = NULL;
    if (!tv_file_stat(g->a, path).exists)
        return NULL;
    TV_TRY(tv_json_parse_file(g->a, path, &doc));
    tv_take_adapter(g, path, doc);
    return NULL;
}

void tv_measure_adapter(tv_source *s, tv_adapter *x)
{
    double most = 0;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const tv_tensor *t = &s->tensors[i];
        x->params += t->shares ? 0 : (double)t->elements;
        x->bytes += (double)t->bytes;
        if ((double)t->bytes > most) {
            most = (double)t->bytes;
            x->dtype = t->dtype;
        }
    }
}
