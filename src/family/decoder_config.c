/* A Hugging Face config.json to the decoder record: widths, head counts, biases, norms, what ties
 * to what. Which layer is of what kind is decided in decoder_layers.c. Knows keys, not models. */
#include "decoder.h"

#include <math.h>

/* ---- looking keys up ---- */

static const char *const text_parts[] = {"text_config", "language_config", "llm_config",
                                         "thinker_config", NULL};

static const tv_json *nested_text(const tv_json *j)
{
    for (size_t i = 0; text_parts[i]; i++) {
        const tv_json *part = tv_json_get(j, text_parts[i]);
        if (part->type == TV_JSON_OBJECT && part->n)
            return nested_text(part);
    }
    return j;
}

tv_config tv_config_of(const tv_source *s)
{
    tv_config c = {.top = s->config, .text = nested_text(s->config)};
    c.type = tv_json_str(tv_json_get(c.text, "model_type"));
    if (!c.type.n)
        c.type = tv_json_str(tv_json_get(c.top, "model_type"));
    return c;
}

static const tv_json *first_of(const tv_json *j, const char *keys)
{
    const tv_json *found = tv_json_get(NULL, "");
    tv_str rest = tv_str_of(keys);
    while (rest.n) {
        tv_cut cut = tv_str_cut(rest, '|');
        char key[64];
        if (cut.head.n < sizeof key) {
            for (size_t i = 0; i < cut.head.n; i++)
                key[i] = cut.head.p[i];
            key[cut.head.n] = 0;
            found = tv_json_path(j, key);
            if (found->type != TV_JSON_END && found->type != TV_JSON_NULL)
                return found;
        }
        rest = cut.tail;
    }
    return found;
}

const tv_json *tv_config_get(const tv_config *c, const char *keys)
{
    return first_of(c->text, keys);
}

double tv_config_num(const tv_config *c, const char *keys, double fallback)
{
    return tv_json_num(tv_config_get(c, keys), fallback);
}

bool tv_config_bool(const tv_config *c, const char *keys, bool fallback)
{
    return tv_json_bool(tv_config_get(c, keys), fallback);
}

tv_str tv_config_str(const tv_config *c, const char *keys)
{
    return tv_json_str(tv_config_get(c, keys));
}

/* Keys that a multimodal configuration may state once for all of its parts. */
static const tv_json *outer(const tv_config *c, const char *keys)
{
    const tv_json *inner = first_of(c->text, keys);
    return inner->type == TV_JSON_END || inner->type == TV_JSON_NULL ? first_of(c->top, keys)
                                                                     : inner;
}

/* ---- class ---- */

/* Sizes of classes that nested configurations leave out because they are the defaults. */
typedef struct class_sizes {
    const char *type;
    double hidden, layers, heads, kv_heads, head_dim, inter, positions;
} class_sizes;

static const class_sizes default_sizes[] = {
    {"gemma2", 2304, 26, 8, 4, 256, 9216, 8192},
    {"gemma3_text", 2304, 26, 8, 4, 256, 9216, 131072},
    {"gpt2", 768, 12, 12, 12, 64, 0, 1024},
    {"llama", 4096, 32, 32, 32, 128, 11008, 2048},
    {"mistral", 4096, 32, 32, 8, 128, 14336, 131072},
    {"mllama_text_model", 4096, 40, 32, 8, 128, 14336, 131072},
    {"qwen2", 4096, 32, 32, 32, 128, 22016, 32768},
    {"qwen3_5_moe_text", 2048, 40, 16, 2, 256, 0, 32768},
    {"qwen3_5_text", 4096, 32, 16, 4, 256, 12288, 32768},
};

static const class_sizes *sizes_of(tv_str type)
{
    static const class_sizes none = {0};
    for (size_t i = 0; i < sizeof default_sizes / sizeof *default_sizes; i++)
        if (tv_str_is(type, default_sizes[i].type))
            return &default_sizes[i];
    return &none;
}

/* A class nobody has listed is read by its keys, with these traits. */
static const tv_decoder_class plain_class = {.type = "", .architecture = "", .act = TV_ACT_SILU};

static tv_str architecture_of(const tv_config *c)
{
    tv_str name = tv_json_str(tv_json_at(tv_json_get(c->text, "architectures"), 0));
    return name.n ? name : tv_json_str(tv_json_at(tv_json_get(c->top, "architectures"), 0));
}

/* model_type and architecture may disagree: the architecture is what gets built. */
static const tv_decoder_class *choose_class(tv_arena *a, const tv_config *c, tv_model *m)
{
    tv_str name = architecture_of(c);
    const tv_decoder_class *by_type = tv_decoder_class_of(c->type);
    const tv_decoder_class *by_name = name.n ? tv_decoder_class_of_architecture(name) : NULL;
    bool nested = c->text != c->top;
    if (by_type && by_name && !nested && by_type != by_name &&
        (by_type->traits != by_name->traits || by_type->qk_norm != by_name->qk_norm)) {
        tv_family_warn(a, m,
                       TV_TEXT(a, "decoder.disagree",
                               N_("model_type {type} and architecture {name} disagree; the "
                                  "architecture is taken"),
                               tv_arg_str("type", c->type), tv_arg_str("name", name)));
        return by_name;
    }
    if (by_type)
        return by_type;
    if (by_name)
        return by_name;
    tv_family_warn(a, m,
                   TV_TEXT(a, "decoder.unlisted",
                           N_("the model class {name} is not in the table of classes; what the "
                              "configuration does not state is taken as in Llama"),
                           tv_arg_str("name", c->type.n ? c->type : name)));
    return &plain_class;
}

/* ---- head ---- */

static bool ends_any(tv_str s, const char *const *ends)
{
    for (size_t i = 0; ends[i]; i++)
        if (tv_str_ends(s, tv_str_of(ends[i])))
            return true;
    return false;
}

static void read_head(const tv_config *c, tv_decoder *d)
{
    static const char *const classifiers[] = {"ForSequenceClassification", "ForTokenClassification",
                                              "ForClassification", NULL};
    static const char *const rewards[] = {"RewardModel", "ForReward", NULL};
    tv_str name = architecture_of(c);
    if (ends_any(name, rewards)) {
        d->head = TV_HEAD_CLASSES;
        d->classes = 1;
    } else if (ends_any(name, classifiers)) {
        d->head = TV_HEAD_CLASSES;
        const tv_json *labels = tv_config_get(c, "id2label");
        d->classes = tv_config_num(c, "num_labels", labels->n ? (double)labels->n : 2);
    } else if (tv_str_ends(name, TV_S("Model")) && !tv_str_starts(name, TV_S("ChatGLM")) &&
               !tv_str_ends(name, TV_S("LMHeadModel"))) {
        d->head = TV_HEAD_NONE; /* ChatGLM's own class ends so, and has a head */
    }
}

/* ---- widths ---- */

#define WIDTH_LIMIT 1e8 /* no width of a model reaches it; keeps products of two exact */

typedef struct width_key {
    const char *what;
    double *value;
} width_key;

static const tv_err *check_widths(tv_arena *a, const tv_source *s, const width_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v = *keys[i].value;
        if (v > 0 && v < WIDTH_LIMIT && v == floor(v))
            continue;
        tv_err *e =
            v == 0 ? TV_FAIL(a, TV_INPUT, "decoder.missing",
                             N_("the configuration does not state the {what}"),
                             tv_arg_word("what", keys[i].what))
                   : TV_FAIL(a, TV_INPUT, "decoder.width", N_("the {what} of {v} makes no sense"),
                             tv_arg_word("what", keys[i].what), tv_arg_num("v", TV_ARG_NUMBER, v));
        return tv_in_file(e, s->path);
    }
    return NULL;
}

static void read_norms(const tv_config *c, const tv_decoder_class *k, tv_decoder *d)
{
    bool layer = k->traits & TV_TRAIT_LAYER_NORM;
    if (tv_config_get(c, "rmsnorm")->type != TV_JSON_END && tv_str_is(c->type, "chatglm"))
        layer = !tv_config_bool(c, "rmsnorm", true);
    d->norm = layer ? TV_NORM_LAYER
              : (k->traits & TV_TRAIT_GEMMA_NORM) || tv_config_bool(c, "use_gemma_norm", false)
                  ? TV_NORM_RMS_GEMMA
                  : TV_NORM_RMS;
    d->norm_bias = layer && !(k->traits & TV_TRAIT_NORM_FLAT);
    if (tv_str_is(c->type, "mpt") && tv_config_bool(c, "no_bias", true))
        d->norm_bias = false;
    d->norm_plain = k->traits & TV_TRAIT_NORM_PLAIN;
    d->embed_norm = k->traits & TV_TRAIT_EMBED_NORM;
    d->final_norm = !tv_str_is(c->type, "git") && tv_config_bool(c, "do_layer_norm_before", true) &&
                    tv_config_bool(c, "post_layer_norm", true);
}

static void read_dropout(const tv_config *c, const tv_decoder_class *k, tv_decoder *d)
{
    d->embed_dropout = tv_config_num(
        c, "embd_pdrop|embedding_dropout|embedding_dropout_prob|embed_dropout", k->dropout);
    d->residual_dropout =
        tv_config_num(c,
                      "resid_pdrop|residual_dropout|hidden_dropout|hidden_dropout_prob|"
                      "ffn_dropout_prob|dropout",
                      k->dropout);
    d->attention_dropout = tv_config_num(
        c, "attn_pdrop|attention_dropout|attention_probs_dropout_prob|attention_dropout_prob",
        k->dropout);
    if (tv_str_is(c->type, "opt")) /* its embedding has none, its attention no class default */
        d->embed_dropout = 0;
    if (tv_str_is(c->type, "opt") && !tv_json_is_num(tv_config_get(c, "attention_dropout")))
        d->attention_dropout = 0;
}

static double vocabulary(const tv_config *c, const tv_decoder_class *k)
{
    double v = tv_config_num(c, "padded_vocab_size|vocab_size", 0);
    if (!(v > 0))
        v = tv_json_num(outer(c, "vocab_size"), 0);
    return v > 0 ? v : k->vocab;
}

static void read_positions(const tv_config *c, const tv_decoder_class *k, tv_decoder *d)
{
    d->max_seq = tv_config_num(c,
                               "max_position_embeddings|n_positions|seq_length|max_seq_len|"
                               "max_sequence_length|model_max_length",
                               sizes_of(c->type)->positions);
    /* llm-foundry's MPT learns positions where it does without ALiBi. */
    bool without_alibi = tv_str_is(c->type, "mpt") &&
                         !tv_config_bool(c, "attn_config.alibi", true) &&
                         tv_config_bool(c, "learned_pos_emb", true);
    if (!(k->traits & TV_TRAIT_LEARNED) && !without_alibi)
        return;
    d->positions = d->max_seq;
    if (tv_str_is(c->type, "opt"))
        d->positions += 2; /* its position table keeps two rows for padding */
}

static bool is_tied(const tv_config *c, const tv_decoder_class *k)
{
    return tv_json_bool(outer(c, "tie_word_embeddings"), k->traits & TV_TRAIT_TIED);
}

static double layer_count(const tv_config *c)
{
    double n = tv_config_num(c, "num_hidden_layers|num_layers|n_layer|n_layers",
                             sizes_of(c->type)->layers);
    if (n == 0)
        n = (double)tv_config_get(c, "layers_block_type|layer_types|block_configs")->n;
    if (n == 0)
        n = (double)tv_config_str(c, "hybrid_override_pattern").n;
    return n;
}

/* Widths that were not stated and come from the class: said once. */
static void warn_defaults(tv_arena *a, const tv_config *c, tv_model *m)
{
    bool hidden = tv_json_is_num(tv_config_get(c, "hidden_size|n_embd|n_embed|d_model"));
    bool vocab = tv_json_is_num(tv_config_get(c, "padded_vocab_size|vocab_size")) ||
                 tv_json_is_num(outer(c, "vocab_size"));
    if (hidden && vocab)
        return;
    tv_family_warn(
        a, m,
        TV_TEXT(a, "decoder.defaults",
                N_("{what} is not stated; the default of class {type} is taken"),
                tv_arg_word("what", hidden ? N_("the vocabulary size") : N_("some width")),
                tv_arg_str("type", c->type)));
}

/* Multi-token prediction modules: DeepSeek's way stores a copy of embedding and head with each. */
static void read_mtp(const tv_config *c, tv_decoder *d)
{
    /* The published files of this class hold one, whether their configuration says so or not. */
    double usual = tv_str_is(c->type, "glm4_moe_lite") ? 1 : 0;
    d->mtp = tv_config_num(c, "num_nextn_predict_layers", usual);
    d->mtp_embeds = d->mtp > 0 && !tv_str_is(c->type, "glm_moe_dsa") &&
                    tv_config_num(c, "kv_lora_rank|n_routed_experts", 0) > 0;
    d->mtp_other = tv_config_get(c, "mtp_layers_block_type")->n > 0;
    if (!(d->mtp > 0))
        d->mtp = tv_config_num(c, "mtp_num_hidden_layers|num_mtp_modules",
                               tv_str_is(c->type, "qwen3_next") ? 1 : 0);
}

const tv_err *tv_decoder_from_config(tv_arena *a, const tv_source *s, tv_model *m, tv_decoder *d)
{
    tv_config c = tv_config_of(s);
    if (tv_decoder_not_modelled(c.type))
        return tv_in_file(TV_FAIL(a, TV_UNSUPPORTED, "decoder.class",
                                  N_("the layers of class {type} are not modelled"),
                                  tv_arg_str("type", c.type)),
                          s->path);
    const tv_decoder_class *k = choose_class(a, &c, m);
    if (*k->type)
        c.type = tv_str_of(k->type); /* from here on one class, wherever its name came from */
    const class_sizes *sizes = sizes_of(c.type);
    double layers = layer_count(&c);
    d->names = tv_decoder_names_of(tv_str_of(k->type));
    d->hidden = tv_config_num(&c, "hidden_size|n_embd|n_embed|d_model", sizes->hidden);
    d->vocab = vocabulary(&c, k);
    const width_key keys[] = {{N_("hidden size"), &d->hidden},
                              {N_("number of layers"), &layers},
                              {N_("vocabulary size"), &d->vocab}};
    TV_TRY(check_widths(a, s, keys, sizeof keys / sizeof *keys));
    if (layers > TV_LIMIT_LAYERS)
        return TV_FAIL(a, TV_LIMIT, "decoder.layers", N_("{n} layers are more than {most}"),
                       tv_arg_num("n", TV_ARG_COUNT, layers),
                       tv_arg_num("most", TV_ARG_COUNT, TV_LIMIT_LAYERS));
    d->n_layers = (uint32_t)layers;
    d->embed_width = tv_config_num(&c, "word_embed_proj_dim", 0);
    if (d->embed_width == d->hidden)
        d->embed_width = 0;
    d->embed_scale = k->traits & TV_TRAIT_EMBED_SCALE;
    d->side_width = tv_config_num(&c, "hidden_size_per_layer_input", 0);
    d->side_vocab = tv_config_num(&c, "vocab_size_per_layer_input", d->vocab);
    d->tied = is_tied(&c, k);
    d->head_bias = tv_config_bool(&c, "lm_head_bias", k->traits & TV_TRAIT_HEAD_BIAS);
    if (tv_str_is(c.type, "mllama_text_model"))
        d->extra_rows = 8; /* its embedding has eight rows for image tokens that the head lacks */
    read_head(&c, d);
    read_norms(&c, k, d);
    read_dropout(&c, k, d);
    read_positions(&c, k, d);
    warn_defaults(a, &c, m);
    m->stored = tv_dtype_named(tv_json_str(outer(&c, "torch_dtype|dtype|params_dtype")));
    TV_TRY(tv_decoder_layers(a, &c, k, d));
    read_mtp(&c, d);
    m->quant = tv_quant_of(s);
    if (tv_str_is(tv_config_str(&c, "expert_dtype"), "fp4"))
        d->expert_bytes = 0.5 + 1.0 / 32; /* blocks of 32 with a one-byte scale */
    tv_towers_of(a, s, d->hidden, m);
    return NULL;
}
