/* GGUF: the metadata keys of an architecture become the configuration keys that the decoder family
 * reads, and what the tensor table shows (tied heads, biases, norms on q and k, layer kinds) is
 * stated beside them. Key names: github.com/ggml-org/ggml docs/gguf.md and llama.cpp's
 * gguf-py/gguf/constants.py. Knows no tensor data. */
#include "decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* llama.cpp's architecture words and the class whose traits they have. */
typedef struct arch_class {
    const char *arch, *type;
} arch_class;

static const arch_class arch_classes[] = {
    {"arcee", "arcee"},
    {"baichuan", "baichuan"},
    {"bitnet", "bitnet"},
    {"bloom", "bloom"},
    {"chatglm", "chatglm"},
    {"codeshell", "gpt_bigcode"},
    {"cohere2", "cohere2"},
    {"command-r", "cohere"},
    {"dbrx", "dbrx"},
    {"deci", "nemotron-nas"},
    {"deepseek", "llama"},
    {"deepseek2", "deepseek_v2"},
    {"dots1", "dots1"},
    {"ernie4_5", "ernie4_5"},
    {"ernie4_5-moe", "ernie4_5_moe"},
    {"exaone", "exaone"},
    {"exaone4", "exaone4"},
    {"falcon", "falcon"},
    {"falcon-h1", "falcon_h1"},
    {"gemma", "gemma"},
    {"gemma2", "gemma2"},
    {"gemma3", "gemma3_text"},
    {"gemma3n", "gemma3n"},
    {"gemma4", "gemma4_text"},
    {"glm4", "glm4"},
    {"glm4moe", "glm4_moe"},
    {"gpt-oss", "gpt_oss"},
    {"gpt2", "gpt2"},
    {"gptj", "gptj"},
    {"gptneox", "gpt_neox"},
    {"granite", "granite"},
    {"granitehybrid", "granitemoehybrid"},
    {"granitemoe", "granitemoe"},
    {"hunyuan-dense", "hunyuan_v1_dense"},
    {"hunyuan-moe", "hunyuan_v1_moe"},
    {"internlm2", "internlm2"},
    {"jamba", "jamba"},
    {"kimi-linear", "kimi_linear"},
    {"lfm2", "lfm2"},
    {"llama", "llama"},
    {"llama4", "llama4_text"},
    {"mamba", "mamba"},
    {"mamba2", "mamba2"},
    {"mimo2", "mimo_v2_flash"},
    {"minicpm", "minicpm"},
    {"minicpm3", "minicpm3"},
    {"minimax-m2", "minimax_m2"},
    {"mpt", "mpt"},
    {"nemotron", "nemotron"},
    {"nemotron_h", "nemotron_h"},
    {"nemotron_h_moe", "nemotron_h"},
    {"olmo", "olmo"},
    {"olmo2", "olmo2"},
    {"olmoe", "olmoe"},
    {"phi2", "phi"},
    {"phi3", "phi3"},
    {"phimoe", "phimoe"},
    {"qwen", "qwen"},
    {"qwen2", "qwen2"},
    {"qwen2moe", "qwen2_moe"},
    {"qwen2vl", "qwen2_vl"},
    {"qwen3", "qwen3"},
    {"qwen35", "qwen3_5_text"},
    {"qwen35moe", "qwen3_5_moe_text"},
    {"qwen3moe", "qwen3_moe"},
    {"qwen3next", "qwen3_next"},
    {"qwen3vl", "qwen3_vl_text"},
    {"qwen3vlmoe", "qwen3_vl_moe_text"},
    {"rwkv6", "rwkv6"},
    {"rwkv7", "rwkv7"},
    {"seed_oss", "seed_oss"},
    {"smollm3", "smollm3"},
    {"stablelm", "stablelm"},
    {"starcoder", "gpt_bigcode"},
    {"starcoder2", "starcoder2"},
    {"xverse", "xverse"},
};

/* A metadata key behind the architecture's name, and the configuration key it becomes. */
typedef struct key_pair {
    const char *gguf, *config;
} key_pair;

static const key_pair plain_keys[] = {
    {"attention.head_count", "num_attention_heads"},
    {"attention.indexer.head_count", "index_n_heads"},
    {"attention.indexer.key_length", "index_head_dim"},
    {"attention.indexer.top_k", "index_topk"},
    {"attention.key_length", "head_dim"},
    {"attention.kv_lora_rank", "kv_lora_rank"},
    {"attention.q_lora_rank", "q_lora_rank"},
    {"attention.sliding_window", "sliding_window"},
    {"attention.value_length", "v_head_dim"},
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"expert_count", "num_experts"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"expert_used_count", "num_experts_per_tok"},
    {"full_attention_interval", "full_attention_interval"},
    {"interleave_moe_layer_step", "interleave_moe_layer_step"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"nextn_predict_layers", "num_nextn_predict_layers"},
    {"rope.dimension_count", "rotary_dim"},
    {"shortconv.l_cache", "conv_L_cache"},
    {"ssm.conv_kernel", "conv_kernel"},
    {"ssm.group_count", "n_groups"},
    {"ssm.state_size", "ssm_state_size"},
    {"vocab_size", "vocab_size"},
};

typedef struct translation {
    tv_arena *a;
    const tv_source *s;
    tv_str arch;
    struct {
        tv_json *v;
        size_t n, cap;
    } out;
} translation;

/* ---- reading ---- */

static const tv_json *meta(const translation *t, const char *suffix)
{
    tv_str key = tv_str_join(t->a, tv_str_join(t->a, t->arch, TV_S(".")), tv_str_of(suffix));
    return tv_json_get(t->s->metadata, tv_cstr(t->a, key));
}

/* A number, or the largest of a list per layer. */
static double meta_num(const translation *t, const char *suffix)
{
    const tv_json *j = meta(t, suffix);
    double most = tv_json_num(j, 0);
    for (size_t i = 0; j->type == TV_JSON_ARRAY && i < j->n; i++)
        if (tv_json_num(&j->items[i], 0) > most)
            most = tv_json_num(&j->items[i], 0);
    return most;
}

static size_t layer_count(const translation *t)
{
    double n = meta_num(t, "block_count");
    return n > 0 && n <= TV_LIMIT_LAYERS ? (size_t)n : 0;
}

static int by_name(const void *key, const void *item)
{
    return tv_str_cmp(*(const tv_str *)key, ((const tv_tensor *)item)->name);
}

static const tv_tensor *tensor(const translation *t, const char *name)
{
    tv_str key = tv_str_of(name);
    if (!t->s->n_tensors)
        return NULL;
    return bsearch(&key, t->s->tensors, t->s->n_tensors, sizeof *t->s->tensors, by_name);
}

static const tv_tensor *block_tensor(const translation *t, size_t layer, const char *rest)
{
    char name[96];
    int n = snprintf(name, sizeof name, "blk.%zu.%s", layer, rest);
    return n > 0 && (size_t)n < sizeof name ? tensor(t, name) : NULL;
}

/* ---- writing ---- */

static tv_json *state(translation *t, const char *key, tv_json_type type)
{
    tv_json *j = tv_push(t->a, &t->out);
    *j = (tv_json){.type = type, .key = tv_str_of(key)};
    return j;
}

static void state_num(translation *t, const char *key, double v)
{
    state(t, key, TV_JSON_NUMBER)->number = v;
}

static void state_bool(translation *t, const char *key, bool v)
{
    (void)state(t, key, v ? TV_JSON_TRUE : TV_JSON_FALSE);
}

static const char *type_of(tv_str arch)
{
    for (size_t i = 0; i < sizeof arch_classes / sizeof *arch_classes; i++)
        if (tv_str_is(arch, arch_classes[i].arch))
            return arch_classes[i].type;
    return NULL;
}

static void plain(translation *t)
{
    for (size_t i = 0; i < sizeof plain_keys / sizeof *plain_keys; i++) {
        double v = meta_num(t, plain_keys[i].gguf);
        if (v > 0)
            state_num(t, plain_keys[i].config, v);
    }
    double kv = meta_num(t, "attention.head_count_kv"), ff = meta_num(t, "feed_forward_length");
    if (kv > 0) {
        state_num(t, "num_key_value_heads", kv);
        state_bool(t, "new_decoder_architecture", kv > 1); /* Falcon's two ways */
        state_bool(t, "multi_query", kv == 1);
    }
    if (ff > 0)
        state_num(t, "intermediate_size", ff);
}

static void vocabulary(translation *t)
{
    const tv_json *tokens = tv_json_get(t->s->metadata, "tokenizer.ggml.tokens");
    const tv_tensor *embedding = tensor(t, "token_embd.weight");
    double n = tv_json_num(tv_json_get(tokens, "n"), (double)tokens->n);
    if (embedding && embedding->rank == 2)
        n = (double)embedding->dims[0];
    if (n > 0 && !(meta_num(t, "vocab_size") > 0))
        state_num(t, "vocab_size", n);
}

/* ---- widths that other keys or tensors hold ---- */

static void latent(translation *t)
{
    if (!(meta_num(t, "attention.kv_lora_rank") > 0))
        return;
    double rope = meta_num(t, "rope.dimension_count");
    /* Newer files state the heads' own widths apart from the latent ones. */
    double key = meta_num(t, "attention.key_length_mla");
    double value = meta_num(t, "attention.value_length_mla");
    key = key > 0 ? key : meta_num(t, "attention.key_length");
    value = value > 0 ? value : meta_num(t, "attention.value_length");
    state_num(t, "qk_rope_head_dim", rope);
    state_num(t, "qk_nope_head_dim", key - rope);
    state_num(t, "v_head_dim", value);
}

static void scans(translation *t)
{
    double inner = meta_num(t, "ssm.inner_size"), rank = meta_num(t, "ssm.time_step_rank");
    double state_size = meta_num(t, "ssm.state_size"), groups = meta_num(t, "ssm.group_count");
    if (!(inner > 0))
        return;
    const char *type = type_of(t->arch);
    bool delta = type && strncmp(type, "qwen3", 5) == 0;
    if (delta) {
        state_num(t, "linear_num_key_heads", groups);
        state_num(t, "linear_num_value_heads", rank);
        state_num(t, "linear_key_head_dim", state_size);
        state_num(t, "linear_value_head_dim", inner / rank);
        state_num(t, "linear_conv_kernel_dim", meta_num(t, "ssm.conv_kernel"));
        return;
    }
    state_num(t, "mamba_expand", inner / meta_num(t, "embedding_length"));
    if (groups > 0) { /* the time step rank counts heads in the second kind of scan */
        state_num(t, "mamba_num_heads", rank);
        state_num(t, "mamba_head_dim", inner / rank);
    } else {
        state_num(t, "mamba_dt_rank", rank);
    }
}

/* ---- what the tensor table shows ---- */

static void from_tensors(translation *t)
{
    if (!t->s->n_tensors)
        return;
    size_t layers = layer_count(t);
    bool qkv_bias = false, out_bias = false, mlp_bias = false, qk_norm = false, router = false;
    for (size_t i = 0; i < layers; i++) {
        qkv_bias =
            qkv_bias || block_tensor(t, i, "attn_q.bias") || block_tensor(t, i, "attn_qkv.bias");
        out_bias = out_bias || block_tensor(t, i, "attn_output.bias");
        mlp_bias = mlp_bias || block_tensor(t, i, "ffn_down.bias");
        qk_norm = qk_norm || block_tensor(t, i, "attn_q_norm.weight");
        router = router || block_tensor(t, i, "exp_probs_b.bias") ||
                 block_tensor(t, i, "ffn_gate_inp.bias");
    }
    state_bool(t, "tie_word_embeddings", !tensor(t, "output.weight"));
    state_bool(t, "lm_head_bias", tensor(t, "output.bias") != NULL);
    state_bool(t, "add_qkv_bias", qkv_bias);
    state_bool(t, "add_bias_linear", out_bias);
    state_bool(t, "mlp_bias", mlp_bias);
    state_bool(t, "use_qk_norm", qk_norm);
    state_bool(t, "use_routing_bias", router);
}

/* ---- lists per layer ---- */

static const char *layer_word(const translation *t, size_t i, double kv)
{
    if (block_tensor(t, i, "attn_q.weight") || block_tensor(t, i, "attn_qkv.weight") ||
        block_tensor(t, i, "attn_q_a.weight") || kv > 0)
        return "attention";
    if (block_tensor(t, i, "shortconv.conv.weight"))
        return "conv";
    if (block_tensor(t, i, "ssm_in.weight"))
        return "mamba";
    if (block_tensor(t, i, "ffn_gate_inp.weight"))
        return "moe";
    return block_tensor(t, i, "ffn_up.weight") ? "mlp" : "mamba";
}

/* Head counts that are zero somewhere say which layers attend. */
static void hybrid(translation *t)
{
    const tv_json *kv = meta(t, "attention.head_count_kv");
    size_t layers = layer_count(t);
    if (kv->type != TV_JSON_ARRAY || kv->n < layers ||
        !(meta_num(t, "ssm.conv_kernel") > 0 || meta_num(t, "shortconv.l_cache") > 0))
        return;
    tv_json *words = tv_new(t->a, tv_json, layers + 1);
    for (size_t i = 0; i < layers; i++)
        words[i] = (tv_json){.type = TV_JSON_STRING,
                             .s = tv_str_of(layer_word(t, i, tv_json_num(&kv->items[i], 0)))};
    tv_json *list = state(t, "layer_types", TV_JSON_ARRAY);
    list->items = words;
    list->n = layers;
}

static tv_json *member(tv_json *at, const char *key, double v)
{
    *at = (tv_json){.type = TV_JSON_NUMBER, .key = tv_str_of(key), .number = v};
    return at;
}

static tv_json object(const char *key, tv_json *items, size_t n)
{
    return (tv_json){.type = TV_JSON_OBJECT, .key = tv_str_of(key), .items = items, .n = n};
}

static double at_layer(const tv_json *j, size_t i)
{
    return j->type == TV_JSON_ARRAY ? tv_json_num(tv_json_at(j, i), 0) : tv_json_num(j, 0);
}

/* Widths or head counts that vary over the layers of a plain decoder. */
static void variable(translation *t)
{
    const tv_json *kv = meta(t, "attention.head_count_kv"), *ff = meta(t, "feed_forward_length");
    const tv_json *heads = meta(t, "attention.head_count");
    size_t layers = layer_count(t);
    bool scans_too = meta_num(t, "ssm.conv_kernel") > 0 || meta_num(t, "shortconv.l_cache") > 0;
    if ((kv->type != TV_JSON_ARRAY && ff->type != TV_JSON_ARRAY) || scans_too)
        return;
    tv_json *blocks = tv_new(t->a, tv_json, layers + 1);
    for (size_t i = 0; i < layers; i++) {
        tv_json *m = tv_new(t->a, tv_json, 5);
        double k = at_layer(kv, i), f = at_layer(ff, i), q = at_layer(heads, i);
        tv_json none = {.type = TV_JSON_TRUE, .key = TV_S("no_op")};
        m[0] = k > 0 ? *member(&m[0], "n_heads_in_group", q / k) : none;
        m[1] = f > 0 ? *member(&m[1], "intermediate_size", f) : none;
        m[3] = object("attention", &m[0], 1);
        m[4] = object("ffn", &m[1], 1);
        blocks[i] = object("", &m[3], 2);
    }
    tv_json *list = state(t, "block_configs", TV_JSON_ARRAY);
    list->items = blocks;
    list->n = layers;
}

/* ---- storage ---- */

/* Matrices of the blocks, as the file packs them: the commonest type and the mean width. */
static tv_quant storage_of(const tv_source *s)
{
    double bytes[TV_DTYPE_COUNT] = {0}, all = 0, elements = 0;
    tv_dtype best = TV_DTYPE_UNKNOWN;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const tv_tensor *t = &s->tensors[i];
        if (t->rank < 2 || !tv_str_starts(t->name, TV_S("blk.")))
            continue;
        bytes[t->dtype] += (double)t->bytes;
        all += (double)t->bytes;
        elements += (double)t->elements;
        if (bytes[t->dtype] > bytes[best])
            best = t->dtype;
    }
    tv_quant q = {.dtype = best};
    if (best == TV_DTYPE_UNKNOWN || tv_dtype_of(best)->is_float)
        return (tv_quant){0};
    q.method = TV_S("gguf");
    q.bytes_per_weight = elements > 0 ? all / elements : 0;
    return q;
}

static tv_dtype wide_dtype(const tv_source *s)
{
    for (size_t i = 0; i < s->n_tensors; i++)
        if (tv_str_is(s->tensors[i].name, "token_embd.weight"))
            return s->tensors[i].dtype;
    return TV_DTYPE_UNKNOWN;
}

const tv_err *tv_decoder_from_gguf(tv_arena *a, const tv_source *s, tv_model *m, tv_decoder *d)
{
    translation t = {
        .a = a,
        .s = s,
        .arch = tv_json_str(tv_json_get(s->metadata, "general.architecture")),
    };
    const char *type = type_of(t.arch);
    tv_json *word = state(&t, "model_type", TV_JSON_STRING);
    word->s = type ? tv_str_of(type) : t.arch;
    latent(&t); /* the first statement of a key counts */
    plain(&t);
    vocabulary(&t);
    scans(&t);
    from_tensors(&t);
    hybrid(&t);
    variable(&t);
    tv_json config = {.type = TV_JSON_OBJECT, .items = t.out.v, .n = t.out.n};
    tv_source as_config = *s;
    as_config.config = &config;
    TV_TRY(tv_decoder_from_config(a, &as_config, m, d));
    m->model_type = t.arch;
    m->quant = storage_of(s);
    m->stored = m->quant.method.n ? m->quant.dtype : wide_dtype(s);
    double stated = tv_json_num(tv_json_get(s->metadata, "general.parameter_count"), 0);
    if (stated > 0)
        m->stated_params = stated;
    return NULL;
}

bool tv_decoder_knows_arch(tv_str arch)
{
    return type_of(arch) != NULL;
}
