/* The layer list of a decoder configuration: which layer mixes tokens how, which has experts, what
 * repeats. Knows the key words that configurations use for it. */
#include "decoder.h"

#include <math.h>

typedef struct plan {
    const tv_config *c;
    const tv_decoder_class *k;
    const tv_decoder *d;
    tv_decoder_layer base; /* attention and the dense MLP as most layers have them */
    tv_decoder_mlp moe;    /* the MLP of layers with experts */
    double window;         /* stated, before it is decided who uses it */
    bool single;           /* a layer is either a mixer or an MLP */
} plan;

/* ---- small readers ---- */

static bool contains(const tv_json *list, double v)
{
    for (size_t i = 0; i < list->n; i++)
        if (tv_json_num(tv_json_at(list, i), -1) == v)
            return true;
    return false;
}

static double or_else(double v, double fallback)
{
    return v != 0 ? v : fallback; /* senseless ones are refused later */
}

/* Bits per configuration: a number, a list per layer, or absent. */
static double per_layer(const tv_json *j, size_t i, double fallback)
{
    return j->type == TV_JSON_ARRAY ? tv_json_num(tv_json_at(j, i), fallback)
                                    : tv_json_num(j, fallback);
}

typedef struct act_word {
    const char *word;
    tv_act act;
} act_word;

static const act_word act_words[] = {
    {"geglu", TV_ACT_GELU},
    {"gegelu", TV_ACT_GELU},
    {"gelu", TV_ACT_GELU},
    {"gelu_10", TV_ACT_GELU},
    {"gelu_fast", TV_ACT_GELU_NEW}, /* both are written in Python, operation by operation */
    {"gelu_new", TV_ACT_GELU_NEW},
    {"gelu_pytorch_tanh", TV_ACT_GELU},
    {"quick_gelu", TV_ACT_QUICK_GELU},
    {"relu", TV_ACT_RELU},
    {"relu2", TV_ACT_RELU2},
    {"relu_squared", TV_ACT_RELU2},
    {"sigmoid", TV_ACT_SIGMOID},
    {"silu", TV_ACT_SILU},
    {"situ", TV_ACT_SILU},
    {"swiglu", TV_ACT_SILU},
    {"swigluoai", TV_ACT_SILU},
    {"swish", TV_ACT_SILU},
    {"tanh", TV_ACT_TANH},
};

static tv_act activation(const plan *p)
{
    if (tv_str_is(p->c->type, "bloom")) /* its own autograd function: one kernel's worth */
        return p->k->act;
    tv_str word = tv_config_str(p->c, "hidden_activation|mlp_hidden_act|hidden_act|"
                                      "activation_function|activation|ffn_config.ffn_act_fn");
    for (size_t i = 0; i < sizeof act_words / sizeof *act_words; i++)
        if (tv_str_is(word, act_words[i].word))
            return act_words[i].act;
    return p->k->act;
}

/* ---- attention ---- */

static double kv_heads(const plan *p, double heads)
{
    const tv_config *c = p->c;
    if (tv_str_is(c->type, "falcon")) {
        if (tv_config_bool(c, "new_decoder_architecture", false))
            return tv_config_num(c, "num_kv_heads", heads);
        return tv_config_bool(c, "multi_query", true) ? 1 : heads;
    }
    if (tv_str_is(c->type, "gpt_bigcode"))
        return tv_config_bool(c, "multi_query", true) ? 1 : heads;
    if (tv_str_is(c->type, "bloom"))
        return heads; /* such keys may stand in copies; the class has none */
    if (tv_config_bool(c, "multi_query_attention", false))
        return tv_config_num(c, "multi_query_group_num", 1);
    return or_else(tv_config_num(c,
                                 "num_key_value_heads|num_kv_heads|attn_config.kv_n_heads|"
                                 "multi_query_group_num",
                                 0),
                   heads);
}

static tv_qk_norm qk_norm(const plan *p)
{
    const tv_config *c = p->c;
    bool uses = tv_config_bool(c, "use_qk_norm|qk_layernorm", p->k->qk_norm != TV_QK_NONE);
    if (!uses)
        return TV_QK_NONE;
    if (tv_str_is(tv_config_str(c, "qk_norm_type"), "per_layer"))
        return TV_QK_WIDE;
    if (p->k->qk_norm != TV_QK_NONE)
        return p->k->qk_norm;
    bool per_head = (p->k->traits & TV_TRAIT_LAYER_NORM) != 0;
    return per_head ? TV_QK_HEADS : TV_QK_HEAD;
}

static void attention_biases(const plan *p, tv_decoder_mix *mix)
{
    const tv_config *c = p->c;
    uint32_t traits = p->k->traits;
    mix->qkv_bias = traits & TV_TRAIT_QKV_BIAS;
    mix->out_bias = traits & TV_TRAIT_OUT_BIAS;
    bool qkv_only = tv_str_is(c->type, "glm4_moe") || tv_str_is(c->type, "qwen2_moe") ||
                    tv_str_is(c->type, "glm") || tv_str_is(c->type, "glm4") ||
                    tv_str_is(c->type, "mimo");
    const tv_json *all = tv_config_get(c, "attention_bias|use_bias|bias|enable_bias");
    bool ignored = tv_str_is(c->type, "phi3small"); /* its modules have biases whatever it says */
    if (!ignored && (all->type == TV_JSON_TRUE || all->type == TV_JSON_FALSE)) {
        mix->qkv_bias = all->type == TV_JSON_TRUE;
        mix->out_bias = qkv_only ? mix->out_bias : mix->qkv_bias;
    }
    mix->qkv_bias = tv_config_bool(c, "add_qkv_bias|qkv_bias|use_qkv_bias", mix->qkv_bias);
    mix->out_bias = tv_config_bool(c, "add_bias_linear|attention_out_bias", mix->out_bias);
    if (tv_str_is(c->type, "mpt") && tv_config_bool(c, "no_bias", true))
        mix->qkv_bias = mix->out_bias = false;
}

/* Keys of latent attention that are there but empty mean ordinary attention. */
static bool is_latent(const tv_config *c)
{
    return tv_config_bool(c, "use_mla", true) && tv_config_num(c, "kv_lora_rank", 0) > 0 &&
           tv_config_num(c, "qk_nope_head_dim", 0) + tv_config_num(c, "qk_rope_head_dim", 0) > 0;
}

static void latent_widths(const plan *p, tv_decoder_mix *mix)
{
    const tv_config *c = p->c;
    mix->kind = TV_MIX_LATENT;
    mix->q_rank = tv_config_num(c, "q_lora_rank", 0);
    mix->kv_rank = tv_config_num(c, "kv_lora_rank", 0);
    mix->rope_dim = tv_config_num(c, "qk_rope_head_dim", 0);
    mix->head_dim = tv_config_num(c, "qk_nope_head_dim", 0) + mix->rope_dim;
    mix->v_dim = tv_config_num(c, "v_head_dim", p->d->hidden / mix->heads);
    mix->kv_heads = mix->heads;
    mix->latent_gate = tv_config_bool(c, "mla_use_output_gate", false);
    mix->no_rope = tv_config_bool(c, "mla_use_nope", false);
}

static void indexer(const plan *p, tv_decoder_mix *mix)
{
    mix->index_heads = tv_config_num(p->c, "index_n_heads", 0);
    mix->index_dim = tv_config_num(p->c, "index_head_dim", 0);
    mix->index_keys = tv_config_num(p->c, "index_topk", 0);
}

static void base_attention(plan *p)
{
    const tv_config *c = p->c;
    tv_decoder_mix *mix = &p->base.mix;
    mix->kind = TV_MIX_ATTENTION;
    mix->heads = tv_config_num(c, "num_attention_heads|n_head|n_heads|num_heads",
                               p->d->hidden == 4096 ? 32 : 0);
    mix->kv_heads = kv_heads(p, mix->heads);
    mix->head_dim = or_else(tv_config_num(c, "head_dim|attention_head_dim|kv_channels", 0),
                            mix->heads > 0 ? floor(p->d->hidden / mix->heads) : 0);
    mix->v_dim = tv_config_num(c, "v_head_dim", 0);
    mix->qk_norm = qk_norm(p);
    mix->fused = p->k->traits & TV_TRAIT_FUSED_QKV;
    mix->gate = tv_config_bool(c, "attn_output_gate", p->k->traits & TV_TRAIT_GATE);
    mix->sinks = p->k->traits & TV_TRAIT_SINKS;
    mix->no_rope = p->k->traits & TV_TRAIT_NO_ROPE;
    mix->softmax_16 = p->k->traits & TV_TRAIT_SOFTMAX_16;
    mix->no_kernel = (p->k->traits & TV_TRAIT_NO_KERNEL) && /* MPT without ALiBi has kernels */
                     tv_config_bool(c, "attn_config.alibi", true);
    attention_biases(p, mix);
    if (tv_str_is(c->type, "yuan"))
        mix->filter_conv = 2; /* its localised filtering has two taps */
    if (is_latent(c))
        latent_widths(p, mix);
    if (tv_config_num(c, "o_lora_rank", 0) > 0) {
        mix->kind = TV_MIX_COMPRESSED;
        mix->q_rank = tv_config_num(c, "q_lora_rank", 0);
        mix->rope_dim = tv_config_num(c, "qk_rope_head_dim", 0);
        mix->out_rank = tv_config_num(c, "o_lora_rank", 0);
        mix->out_groups = tv_config_num(c, "o_groups", 1);
    }
    indexer(p, mix);
}

/* ---- windows ---- */

static double stated_window(const plan *p)
{
    const tv_config *c = p->c;
    double w = tv_config_num(c, "sliding_window|sliding_window_size|attention_chunk_size", 0);
    bool off_by_default = tv_str_starts(c->type, TV_S("qwen"));
    if (!tv_config_bool(c, "use_sliding_window", !off_by_default))
        return 0;
    return w >= p->d->max_seq && p->d->max_seq > 0 ? 0 : w; /* wider than any sequence */
}

/* Configurations without a list of layer types: the class knows the period. */
static bool window_by_period(const plan *p, size_t i)
{
    const tv_config *c = p->c;
    double period = tv_config_num(c, "sliding_window_pattern|_sliding_window_pattern", 0);
    if (tv_str_is(c->type, "gemma2") || tv_str_is(c->type, "gpt_oss"))
        return i % 2 == 0;
    if (!(period > 0) && tv_str_starts(c->type, TV_S("gemma3")))
        period = 6;
    if (!(period > 0) && (tv_str_is(c->type, "cohere2") || tv_str_starts(c->type, TV_S("llama4"))))
        period = 4;
    if (!(period > 0))
        return true;
    return fmod((double)i + 1, period) != 0;
}

/* ---- scans ---- */

static tv_decoder_mix mamba(const plan *p)
{
    const tv_config *c = p->c;
    double expand = tv_config_num(c, "mamba_expand|expand", 2);
    return (tv_decoder_mix){
        .kind = TV_MIX_MAMBA,
        .inner = expand * p->d->hidden,
        .state = tv_config_num(c, "mamba_d_state|state_size|ssm_state_size", 16),
        .conv = tv_config_num(c, "mamba_d_conv|conv_kernel", 4),
        .dt_rank = tv_config_num(c, "mamba_dt_rank|time_step_rank", ceil(p->d->hidden / 16)),
        .conv_bias = tv_config_bool(c, "mamba_conv_bias|use_conv_bias", true),
        .scan_bias = tv_config_bool(c, "mamba_proj_bias|use_bias", false),
        .scan_norms = tv_str_is(c->type, "jamba"),
    };
}

static tv_decoder_mix mamba2(const plan *p)
{
    const tv_config *c = p->c;
    double heads = tv_config_num(c, "mamba_num_heads|mamba_n_heads|num_heads", 0);
    double width = tv_config_num(c, "mamba_head_dim|mamba_d_head|head_dim", 64);
    double inner = tv_config_num(c, "mamba_d_ssm", heads * width);
    return (tv_decoder_mix){
        .kind = TV_MIX_MAMBA2,
        .inner = inner,
        .scan_heads = heads > 0 ? heads : inner / width,
        .state = tv_config_num(c, "ssm_state_size|mamba_d_state|state_size", 128),
        .conv = tv_config_num(c, "conv_kernel|mamba_d_conv", 4),
        .groups = tv_config_num(c, "n_groups|mamba_n_groups", 1),
        .conv_bias = tv_config_bool(c, "use_conv_bias|mamba_conv_bias", true),
        .scan_bias = tv_config_bool(c, "mamba_proj_bias|use_bias", false),
        .scan_norms = true,
    };
}

static tv_decoder_mix delta(const plan *p)
{
    const tv_config *c = p->c;
    tv_decoder_mix mix = {
        .kind = TV_MIX_DELTA,
        .key_heads = tv_config_num(c, "linear_num_key_heads", 16),
        .scan_heads = tv_config_num(c, "linear_num_value_heads", 32),
        .key_dim = tv_config_num(c, "linear_key_head_dim", 128),
        .value_dim = tv_config_num(c, "linear_value_head_dim", 128),
        .conv = tv_config_num(c, "linear_conv_kernel_dim", 4),
        .split_proj = tv_str_starts(c->type, TV_S("qwen3_5")),
    };
    mix.inner = mix.scan_heads * mix.value_dim;
    mix.state = mix.key_dim;
    return mix;
}

static tv_decoder_mix kda(const plan *p)
{
    const tv_config *c = p->c;
    double heads = tv_config_num(c, "linear_attn_config.num_heads", p->base.mix.heads);
    double width = tv_config_num(c, "linear_attn_config.head_dim", 128);
    return (tv_decoder_mix){
        .kind = TV_MIX_KDA,
        .key_heads = heads,
        .scan_heads = heads,
        .key_dim = width,
        .value_dim = width,
        .inner = heads * width,
        .state = width,
        .conv = tv_config_num(c, "linear_attn_config.short_conv_kernel_size", 4),
        .split_proj = tv_config_bool(c, "linear_attn_config.use_full_rank_gate", false),
    };
}

static tv_decoder_mix short_conv(const plan *p)
{
    return (tv_decoder_mix){
        .kind = TV_MIX_CONV,
        .inner = tv_config_num(p->c, "conv_dim", p->d->hidden),
        .conv = tv_config_num(p->c, "conv_L_cache", 3),
        .conv_bias = tv_config_bool(p->c, "conv_bias", false),
    };
}

static tv_decoder_mix cross(const plan *p)
{
    tv_decoder_mix mix = p->base.mix;
    mix.kind = TV_MIX_CROSS;
    mix.qk_norm = TV_QK_HEAD;
    mix.no_rope = true;
    mix.tower_width = p->d->hidden;
    double side = tv_json_num(tv_json_path(p->c->top, "vision_config.image_size"), 560) /
                  tv_json_num(tv_json_path(p->c->top, "vision_config.patch_size"), 14);
    double tiles = tv_json_num(tv_json_path(p->c->top, "vision_config.max_num_tiles"), 4);
    mix.tower_tokens = tiles * (floor(side) * floor(side) + 1);
    return mix;
}

/* ---- MLP ---- */

static double dense_width(const plan *p)
{
    const tv_config *c = p->c;
    double w = tv_config_num(c,
                             "intermediate_size_mlp|dense_intermediate_size|"
                             "intermediate_size|ffn_dim|n_inner|ff_intermediate_size|"
                             "ffn_hidden_size|ffn_config.ffn_hidden_size",
                             0);
    if (w == 0 && tv_config_num(c, "expansion_ratio", 0) > 0)
        w = tv_config_num(c, "expansion_ratio", 0) * p->d->hidden;
    if (w == 0)
        w = p->k->inter_of_hidden * p->d->hidden;
    if (w == 0 && p->d->hidden == 4096 && tv_str_is(c->type, "llama"))
        w = 11008; /* the class default, met in nested configurations */
    if (tv_config_bool(c, "block_auto_adjust_ff_dim", false)) { /* LFM2: two thirds, rounded up */
        double unit = or_else(tv_config_num(c, "block_multiple_of", 0), 256);
        w = floor(2 * w / 3) * tv_config_num(c, "block_ffn_dim_multiplier", 1);
        w = ceil(floor(w) / unit) * unit;
    }
    if (tv_str_is(c->type, "granitemoehybrid") && !(tv_config_num(c, "num_local_experts", 0) > 0))
        w = tv_config_num(c, "shared_intermediate_size",
                          w); /* then the shared MLP is the only one */
    bool half = (p->k->traits & TV_TRAIT_HALF_INTER) &&
                tv_json_is_num(tv_config_get(c, "intermediate_size"));
    return half ? w / 2 : w;
}

static void base_mlp(plan *p)
{
    const tv_config *c = p->c;
    uint32_t traits = p->k->traits;
    tv_decoder_mlp *mlp = &p->base.mlp;
    mlp->inter = dense_width(p);
    mlp->gated = !(traits & TV_TRAIT_PLAIN_MLP);
    mlp->fused = traits & TV_TRAIT_FUSED_MLP;
    mlp->bias = traits & TV_TRAIT_MLP_BIAS;
    const tv_json *all = tv_config_get(c, "use_bias|bias|enable_bias");
    if ((all->type == TV_JSON_TRUE || all->type == TV_JSON_FALSE) &&
        !tv_str_is(c->type, "internlm2") && !tv_str_is(c->type, "nemotron_h"))
        mlp->bias = all->type == TV_JSON_TRUE;
    mlp->bias = tv_config_bool(c, "mlp_bias|add_bias_linear", mlp->bias);
    if (tv_str_is(c->type, "mpt") && tv_config_bool(c, "no_bias", true))
        mlp->bias = false;
    mlp->act = activation(p);
}

static double shared_width(const plan *p, double expert)
{
    const tv_config *c = p->c;
    double n = tv_config_num(c,
                             "n_shared_experts|num_shared_experts|num_shared_expert|"
                             "moe_num_shared_experts",
                             0);
    double stated = tv_config_num(c,
                                  "moe_shared_expert_intermediate_size|share_expert_dim|"
                                  "shared_expert_intermediate_size|shared_intermediate_size",
                                  -1);
    if (stated >= 0)
        return stated *
               (n > 1 && tv_config_num(c, "moe_shared_expert_intermediate_size", 0) > 0 ? n : 1);
    if (tv_str_starts(c->type, TV_S("llama4")))
        return expert; /* one shared expert beside the routed ones */
    if (p->k->traits & TV_TRAIT_SHARED_GATE)
        return tv_str_is(c->type, "qwen2_moe") ? 5632 : 512; /* class defaults */
    return n * expert;
}

/* ERNIE's multimodal models give a list: the experts of text, then those of images. */
static double first_num(const tv_config *c, const char *keys, double fallback)
{
    const tv_json *j = tv_config_get(c, keys);
    return tv_json_num(j->type == TV_JSON_ARRAY ? tv_json_at(j, 0) : j, fallback);
}

static void moe_mlp(plan *p)
{
    const tv_config *c = p->c;
    tv_decoder_mlp *moe = &p->moe;
    *moe = p->base.mlp;
    moe->experts = first_num(c,
                             "num_experts|num_local_experts|n_routed_experts|"
                             "moe_num_experts|num_routed_experts|"
                             "ffn_config.moe_num_experts",
                             0);
    if (!(moe->experts > 1) || !tv_config_bool(c, "enable_moe_block", true)) {
        moe->experts = 0;
        return;
    }
    moe->top_k = tv_config_num(c,
                               "num_experts_per_tok|experts_per_token|num_experts_per_token|"
                               "top_k_experts|moe_topk|moe_k|ffn_config.moe_top_k",
                               2);
    moe->expert_inter = first_num(c, "moe_intermediate_size|expert_intermediate_size", 0);
    if (!(moe->expert_inter > 0))
        moe->expert_inter =
            tv_config_num(c, "intermediate_size|ffn_config.ffn_hidden_size", moe->inter);
    moe->shared_inter = shared_width(p, moe->expert_inter);
    moe->shared_gate = p->k->traits & TV_TRAIT_SHARED_GATE;
    moe->expert_bias = p->k->traits & TV_TRAIT_EXPERT_BIAS;
    moe->router_bias = tv_config_bool(c, "use_routing_bias|use_moe_router_bias|moe_use_aux_free",
                                      p->k->traits & TV_TRAIT_ROUTER_BIAS);
    moe->bias = moe->expert_bias;
    moe->beside = tv_str_starts(c->type, TV_S("gemma4"));
    moe->latent = tv_config_num(c, "moe_latent_size|routed_expert_hidden_size", 0);
    moe->latent_norm = tv_config_bool(c, "latent_moe_use_norm", false);
    if (!moe->beside)
        moe->inter = 0;
}

static bool has_experts(const plan *p, size_t i)
{
    const tv_config *c = p->c;
    double at = (double)i;
    if (!(p->moe.experts > 0))
        return false;
    const tv_json *list = tv_config_get(c, "moe_layers");
    if (list->type == TV_JSON_ARRAY && list->n)
        return contains(list, at);
    if (contains(tv_config_get(c, "mlp_only_layers"), at))
        return false;
    if (at < first_num(c, "first_k_dense_replace|num_dense_layers|moe_layer_start_index", 0))
        return false;
    const double end = first_num(c, "moe_layer_end_index", -1); /* ERNIE; -1: to the last */
    if (end >= 0 && at > end)
        return false;
    const tv_json *freq = tv_config_get(c, "moe_layer_freq");
    if (freq->type == TV_JSON_ARRAY)
        return tv_json_num(tv_json_at(freq, i), 1) != 0;
    if (tv_json_num(freq, 1) > 1)
        return fmod(at, tv_json_num(freq, 1)) == 0;
    double period = tv_config_num(c, "expert_layer_period", 0);
    if (period > 0)
        return fmod(at - tv_config_num(c, "expert_layer_offset", 0) + period, period) == 0;
    double step = tv_config_num(c,
                                "interleave_moe_layer_step|decoder_sparse_step|"
                                "moe_layer_interval",
                                1);
    return step > 0 && fmod(at + 1, step) == 0;
}

/* ---- one layer ---- */

static bool is_parallel(const plan *p)
{
    const tv_config *c = p->c;
    bool by_class = p->k->traits & TV_TRAIT_PARALLEL;
    return tv_config_bool(c, "parallel_attn|use_parallel_residual", by_class);
}

static void base_layer(plan *p)
{
    const tv_config *c = p->c;
    uint32_t traits = p->k->traits;
    tv_decoder_layer *layer = &p->base;
    layer->name = "layer";
    layer->parallel = is_parallel(p);
    layer->pre_mix = !(traits & TV_TRAIT_NO_PRE_NORMS);
    layer->pre_mlp = layer->pre_mix;
    layer->post_mix = layer->post_mlp = traits & TV_TRAIT_POST_NORMS;
    layer->after_add =
        (traits & TV_TRAIT_AFTER_ADD) || !tv_config_bool(c, "do_layer_norm_before", true);
    if (layer->parallel) {
        bool two = traits & TV_TRAIT_TWO_NORMS;
        if (tv_str_is(c->type, "falcon"))
            two = tv_config_num(c, "num_ln_in_parallel_attn",
                                tv_config_bool(c, "new_decoder_architecture", false) ? 2 : 1) > 1;
        layer->pre_mlp = two;
    }
    layer->streams = tv_config_num(c, "hc_mult", 0);
    base_attention(p);
    base_mlp(p);
    moe_mlp(p);
    p->window = stated_window(p);
    p->single =
        tv_config_str(c, "hybrid_override_pattern").n > 0 || tv_str_is(c->type, "nemotron_h");
}

static const char *pattern_word(char symbol)
{
    switch (symbol) {
    case 'M':
        return "mamba";
    case 'E':
        return "moe";
    case '*':
        return "attention";
    case '-':
        return "mlp";
    default:
        return "";
    }
}

/* The word for what layer i is, from whichever key says so; empty: ordinary. */
static tv_str layer_word(const plan *p, size_t i)
{
    const tv_config *c = p->c;
    tv_str word = tv_json_str(tv_json_at(tv_config_get(c, "layers_block_type|layer_types"), i));
    if (word.n)
        return word;
    tv_str pattern = tv_config_str(c, "hybrid_override_pattern");
    if (i < pattern.n)
        return tv_str_of(pattern_word(pattern.p[i]));
    const tv_json *list = tv_config_get(c, "hybrid_layer_pattern");
    if (list->n)
        return tv_json_num(tv_json_at(list, i), 0) != 0 ? TV_S("sliding_attention")
                                                        : TV_S("full_attention");
    list = tv_config_get(c, "linear_attn_config.full_attn_layers");
    if (list->n) /* counted from one */
        return contains(list, (double)i + 1) ? TV_S("full_attention") : TV_S("kda");
    list = tv_config_get(c, "full_attn_idxs|attn_layer_indices");
    if (list->n)
        return contains(list, (double)i)    ? TV_S("attention")
               : tv_str_is(c->type, "lfm2") ? TV_S("conv")
                                            : TV_S("mamba");
    bool linear = tv_str_is(c->type, "qwen3_next") || tv_str_starts(c->type, TV_S("qwen3_5"));
    double every = tv_config_num(c, "full_attention_interval", linear ? 4 : 0);
    if (every > 0)
        return fmod((double)i + 1, every) == 0 ? TV_S("full_attention") : TV_S("linear_attention");
    every = tv_config_num(c, "attn_layer_period", 0);
    if (every > 0)
        return fmod((double)i, every) == tv_config_num(c, "attn_layer_offset", 0)
                   ? TV_S("attention")
                   : TV_S("mamba");
    if (contains(tv_config_get(c, "cross_attention_layers"), (double)i))
        return TV_S("cross");
    if (tv_str_is(c->type, "mamba") || tv_str_is(c->type, "mamba2"))
        return TV_S("mamba");
    if (p->window > 0)
        return window_by_period(p, i) ? TV_S("sliding_attention") : TV_S("full_attention");
    return TV_S("full_attention");
}

static bool scans_with_heads(const tv_config *c)
{
    return tv_config_num(c, "mamba_num_heads|mamba_n_heads", 0) > 0 || tv_str_is(c->type, "mamba2");
}

/* Sliding layers may have widths of their own (MiMo), full ones too (Gemma 4). */
static void attention_variant(const plan *p, bool slides, tv_decoder_layer *layer)
{
    const tv_config *c = p->c;
    tv_decoder_mix *mix = &layer->mix;
    if (slides) {
        mix->window = p->window;
        mix->heads = tv_config_num(c, "swa_num_attention_heads", mix->heads);
        mix->kv_heads = tv_config_num(c, "swa_num_key_value_heads", mix->kv_heads);
        mix->head_dim = tv_config_num(c, "swa_head_dim", mix->head_dim);
        mix->v_dim = tv_config_num(c, "swa_v_head_dim", mix->v_dim);
        mix->sinks = tv_config_bool(c, "add_swa_attention_sink_bias", mix->sinks);
    } else {
        mix->head_dim = tv_config_num(c, "global_head_dim", mix->head_dim);
        mix->kv_heads = tv_config_num(c, "num_global_key_value_heads", mix->kv_heads);
        mix->k_is_v = tv_config_bool(c, "attention_k_eq_v", false);
        mix->sinks = tv_config_bool(c, "add_full_attention_sink_bias", mix->sinks);
        mix->no_rope = mix->no_rope || tv_str_starts(c->type, TV_S("llama4"));
    }
    mix->v_norm = tv_str_starts(c->type, TV_S("gemma4"));
}

static void compressed_variant(const plan *p, size_t i, tv_decoder_layer *layer)
{
    tv_decoder_mix *mix = &layer->mix;
    mix->window = p->window;
    mix->sinks = true;
    mix->compress = tv_json_num(tv_json_at(tv_config_get(p->c, "compress_ratios"), i), 0);
    if (mix->compress != 4) /* only the fine ratio picks keys; the coarse one attends to all */
        mix->index_heads = mix->index_dim = mix->index_keys = 0;
}

/* MiniMax M3: layers with sparse attention have index projections beside the ordinary ones. */
static void sparse_variant(const plan *p, size_t i, tv_decoder_layer *layer)
{
    const tv_config *c = p->c;
    const tv_json *sparse = tv_config_get(c, "sparse_attention_config");
    if (sparse->type != TV_JSON_OBJECT ||
        per_layer(tv_json_get(sparse, "sparse_attention_freq"), i, 0) == 0)
        return;
    layer->mix.index_flat = true;
    layer->mix.index_heads = tv_json_num(tv_json_get(sparse, "sparse_num_index_heads"), 0);
    layer->mix.index_dim = tv_json_num(tv_json_get(sparse, "sparse_index_dim"), 0);
    layer->mix.index_keys = tv_json_num(tv_json_get(sparse, "sparse_topk_blocks"), 0) *
                            tv_json_num(tv_json_get(sparse, "sparse_block_size"), 0);
}

static void set_mixer(const plan *p, tv_str word, size_t i, tv_decoder_layer *layer)
{
    if (tv_str_is(word, "mamba")) {
        layer->mix = scans_with_heads(p->c) ? mamba2(p) : mamba(p);
        layer->name = "mamba_layer";
    } else if (tv_str_is(word, "linear_attention")) {
        layer->mix = delta(p);
        layer->name = "linear_layer";
    } else if (tv_str_is(word, "kda")) {
        layer->mix = kda(p);
        layer->name = "linear_layer";
    } else if (tv_str_is(word, "conv")) {
        layer->mix = short_conv(p);
        layer->name = "conv_layer";
    } else if (tv_str_is(word, "cross")) {
        layer->mix = cross(p);
        layer->extra = 2; /* the two gates of a cross-attention layer */
        layer->name = "cross_layer";
    } else if (layer->mix.kind == TV_MIX_COMPRESSED) {
        compressed_variant(p, i, layer);
    } else if (layer->mix.kind == TV_MIX_ATTENTION) {
        bool slides = tv_str_is(word, "sliding_attention") || tv_str_is(word, "chunked_attention");
        if (slides && p->window > 0)
            layer->name = "window_layer";
        attention_variant(p, slides, layer);
        sparse_variant(p, i, layer);
    }
}

/* Nemotron NAS: every layer states its group size and its width, or that it has none. */
static void block_variant(const plan *p, const tv_json *block, tv_decoder_layer *layer)
{
    const tv_json *attention = tv_json_get(block, "attention");
    const tv_json *ffn = tv_json_get(block, "ffn");
    double group = tv_json_num(tv_json_get(attention, "n_heads_in_group"), 0);
    double mult = tv_json_num(tv_json_get(ffn, "ffn_mult"), 0);
    if (group > 0)
        layer->mix.kv_heads = layer->mix.heads / group;
    if (tv_json_bool(tv_json_get(attention, "no_op"), false)) {
        layer->mix = (tv_decoder_mix){0};
        layer->pre_mix = false;
    }
    if (mult > 0) /* two thirds of the multiple, rounded up to 256 */
        layer->mlp.inter = ceil(floor(2 * mult * p->d->hidden / 3) / 256) * 256;
    layer->mlp.inter = tv_json_num(tv_json_get(ffn, "intermediate_size"), layer->mlp.inter);
    if (tv_json_bool(tv_json_get(ffn, "no_op"), false)) {
        layer->mlp = (tv_decoder_mlp){0};
        layer->pre_mlp = false;
    }
}

/* The experts' side of a Gemma 4 layer: three more norms, a scale per width and one per expert. */
static double beside_extra(const plan *p)
{
    return 4 * p->d->hidden + p->moe.experts;
}

/* Gemma 4's small models: the last layers use earlier keys and values, some with twice the MLP,
 * and every layer reads an embedding of its own. */
static void shared_variant(const plan *p, size_t i, tv_decoder_layer *layer)
{
    const tv_config *c = p->c;
    double shared = tv_config_num(c, "num_kv_shared_layers", 0);
    layer->side_input = p->d->side_width;
    if (!(shared > 0) || (double)i < p->d->n_layers - shared || layer->mix.kind != TV_MIX_ATTENTION)
        return;
    layer->mix.reads_kv = true;
    if (tv_config_bool(c, "use_double_wide_mlp", false))
        layer->mlp.inter *= 2;
}

static tv_decoder_layer layer_at(const plan *p, size_t i)
{
    tv_decoder_layer layer = p->base;
    tv_str word = layer_word(p, i);
    set_mixer(p, word, i, &layer);
    shared_variant(p, i, &layer);
    if (has_experts(p, i)) {
        layer.mlp = p->moe;
        if (layer.name == p->base.name)
            layer.name = "moe_layer";
        else if (layer.mix.window > 0)
            layer.name = "window_moe_layer";
        if (layer.mlp.beside)
            layer.extra += beside_extra(p);
    }
    const tv_json *block = tv_json_at(tv_config_get(p->c, "block_configs"), i);
    if (block->type == TV_JSON_OBJECT)
        block_variant(p, block, &layer);
    if (tv_str_starts(p->c->type, TV_S("mamba")))
        layer.mlp = (tv_decoder_mlp){0};
    if (p->single) {
        bool mlp = tv_str_is(word, "mlp") || tv_str_is(word, "moe");
        if (mlp) {
            layer.mix = (tv_decoder_mix){0};
            layer.mlp = tv_str_is(word, "moe") ? p->moe : p->base.mlp;
            layer.name = tv_str_is(word, "moe") ? "moe_layer" : "mlp_layer";
        } else {
            layer.mlp = (tv_decoder_mlp){0};
            layer.name = layer.mix.kind == TV_MIX_ATTENTION ? "attention_layer" : layer.name;
        }
    }
    if (layer.mix.kind == TV_MIX_NONE)
        layer.pre_mix = layer.post_mix = false;
    if (layer.mlp.inter == 0 && layer.mlp.experts == 0)
        layer.pre_mlp = layer.post_mlp = false;
    return layer;
}

static const tv_err *check_attention(tv_arena *a, const tv_decoder_layer *layer)
{
    const tv_decoder_mix *mix = &layer->mix;
    if (mix->kind != TV_MIX_ATTENTION && mix->kind != TV_MIX_LATENT)
        return NULL;
    if (mix->heads < 1 || mix->head_dim < 1 || mix->kv_heads < 1 || mix->heads > 1e6 ||
        mix->head_dim > 1e6 || mix->kv_heads > 1e6)
        return TV_FAIL0(a, TV_INPUT, "decoder.heads",
                        N_("the configuration does not state the attention heads"));
    return NULL;
}

const tv_err *tv_decoder_layers(tv_arena *a, const tv_config *c, const tv_decoder_class *k,
                                tv_decoder *d)
{
    plan p = {.c = c, .k = k, .d = d};
    base_layer(&p);
    tv_decoder_stack stack = {0};
    for (size_t i = 0; i < d->n_layers; i++) {
        tv_decoder_layer layer = layer_at(&p, i);
        TV_TRY(check_attention(a, &layer));
        tv_decoder_push(a, &stack, layer);
    }
    tv_decoder_close_stack(d, &stack);
    return NULL;
}
