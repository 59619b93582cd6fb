/* What decoder classes of transformers (and of the remote code that ships with models) take for
 * granted. One row per model_type. The facts are those of the configuration and modelling classes
 * of that name; rows whose totals are confirmed by the parameter counts of published files are in
 * the table of docs/model.md. Knows no repository's name. */
#include "decoder.h"

#define RMS 0
#define GPT (TV_TRAIT_LAYER_NORM | TV_TRAIT_PLAIN_MLP | TV_TRAIT_BIASES)
#define GEMMA (TV_TRAIT_TIED | TV_TRAIT_GEMMA_NORM | TV_TRAIT_EMBED_SCALE)

/* Sorted by type. */
static const tv_decoder_class classes[] = {
    {"apertus", "Apertus", TV_TRAIT_PLAIN_MLP, TV_ACT_RELU2, TV_QK_HEAD, 0, 0, 0},
    {"arcee", "Arcee", TV_TRAIT_PLAIN_MLP, TV_ACT_RELU2, TV_QK_NONE, 0, 0, 0},
    {"baichuan", "Baichuan", TV_TRAIT_FUSED_QKV, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"bamba", "Bamba", RMS, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"bloom", "Bloom",
     GPT | TV_TRAIT_TIED | TV_TRAIT_FUSED_QKV | TV_TRAIT_EMBED_NORM | TV_TRAIT_NO_ROPE |
         TV_TRAIT_NO_KERNEL,
     TV_ACT_GELU, TV_QK_NONE, 250880, 4, 0},
    {"chatglm", "ChatGLM", TV_TRAIT_QKV_BIAS | TV_TRAIT_FUSED_QKV | TV_TRAIT_FUSED_MLP, TV_ACT_SILU,
     TV_QK_NONE, 65024, 4, 0},
    {"codegen", "CodeGen",
     TV_TRAIT_LAYER_NORM | TV_TRAIT_PLAIN_MLP | TV_TRAIT_MLP_BIAS | TV_TRAIT_PARALLEL |
         TV_TRAIT_FUSED_QKV | TV_TRAIT_HEAD_BIAS,
     TV_ACT_GELU_NEW, TV_QK_NONE, 50400, 4, 0},
    {"cohere", "Cohere",
     TV_TRAIT_TIED | TV_TRAIT_LAYER_NORM | TV_TRAIT_NORM_FLAT | TV_TRAIT_PARALLEL, TV_ACT_SILU,
     TV_QK_NONE, 256000, 0, 0},
    {"cohere2", "Cohere2",
     TV_TRAIT_TIED | TV_TRAIT_LAYER_NORM | TV_TRAIT_NORM_FLAT | TV_TRAIT_PARALLEL, TV_ACT_SILU,
     TV_QK_NONE, 256000, 0, 0},
    {"dbrx", "Dbrx", TV_TRAIT_LAYER_NORM | TV_TRAIT_NORM_FLAT | TV_TRAIT_FUSED_QKV, TV_ACT_SILU,
     TV_QK_NONE, 0, 0, 0},
    {"deepseek_ref", "DeepseekV4", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"deepseek_v2", "DeepseekV2", RMS, TV_ACT_SILU, TV_QK_NONE, 102400, 0, 0},
    {"deepseek_v3", "DeepseekV3", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE, 129280, 0, 0},
    {"deepseek_v32", "DeepseekV32", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE, 129280, 0, 0},
    {"deepseek_v4", "DeepseekV4", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE, 129280, 0, 0},
    {"dots1", "Dots1", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_HEAD, 0, 0, 0},
    {"ernie4_5", "Ernie4_5", TV_TRAIT_TIED, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"ernie4_5_moe", "Ernie4_5_Moe", TV_TRAIT_TIED | TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE,
     0, 0, 0},
    {"ernie4_5_moe_vl", "Ernie4_5_VLMoe", TV_TRAIT_TIED | TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU,
     TV_QK_NONE, 0, 0, 0},
    {"ernie4_5_vl_moe", "Ernie4_5_VLMoe", TV_TRAIT_TIED | TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU,
     TV_QK_NONE, 0, 0, 0},
    {"exaone", "Exaone", RMS, TV_ACT_SILU, TV_QK_NONE, 102400, 0, 0},
    {"exaone4", "Exaone4", TV_TRAIT_NO_PRE_NORMS | TV_TRAIT_POST_NORMS, TV_ACT_SILU, TV_QK_HEAD, 0,
     0, 0},
    {"falcon", "Falcon",
     TV_TRAIT_LAYER_NORM | TV_TRAIT_PLAIN_MLP | TV_TRAIT_TIED | TV_TRAIT_PARALLEL |
         TV_TRAIT_FUSED_QKV,
     TV_ACT_GELU, TV_QK_NONE, 65024, 4, 0},
    {"gemma", "Gemma", GEMMA, TV_ACT_GELU, TV_QK_NONE, 256000, 0, 0},
    {"gemma2", "Gemma2", GEMMA | TV_TRAIT_POST_NORMS, TV_ACT_GELU, TV_QK_NONE, 256000, 0, 0},
    {"gemma3", "Gemma3", GEMMA | TV_TRAIT_POST_NORMS, TV_ACT_GELU, TV_QK_HEAD, 262208, 0, 0},
    {"gemma3_text", "Gemma3", GEMMA | TV_TRAIT_POST_NORMS, TV_ACT_GELU, TV_QK_HEAD, 262208, 0, 0},
    {"gemma4", "Gemma4", GEMMA | TV_TRAIT_POST_NORMS, TV_ACT_GELU, TV_QK_HEAD, 262144, 0, 0},
    {"gemma4_text", "Gemma4", GEMMA | TV_TRAIT_POST_NORMS, TV_ACT_GELU, TV_QK_HEAD, 262144, 0, 0},
    {"git", "Git",
     GPT | TV_TRAIT_LEARNED | TV_TRAIT_NO_ROPE | TV_TRAIT_EMBED_NORM | TV_TRAIT_AFTER_ADD |
         TV_TRAIT_HEAD_BIAS | TV_TRAIT_SOFTMAX_16,
     TV_ACT_GELU, TV_QK_NONE, 30522, 0, 0.1},
    {"glm", "Glm", TV_TRAIT_QKV_BIAS | TV_TRAIT_FUSED_MLP, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"glm4", "Glm4", TV_TRAIT_QKV_BIAS | TV_TRAIT_FUSED_MLP | TV_TRAIT_POST_NORMS, TV_ACT_SILU,
     TV_QK_NONE, 0, 0, 0},
    {"glm4_moe", "Glm4Moe", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"glm4_moe_lite", "Glm4MoeLite", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"glm_moe_dsa", "GlmMoeDsa", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"gpt2", "GPT2",
     GPT | TV_TRAIT_TIED | TV_TRAIT_FUSED_QKV | TV_TRAIT_LEARNED | TV_TRAIT_NO_ROPE |
         TV_TRAIT_SOFTMAX_16,
     TV_ACT_GELU_NEW, TV_QK_NONE, 50257, 4, 0.1},
    {"gpt_bigcode", "GPTBigCode",
     GPT | TV_TRAIT_TIED | TV_TRAIT_FUSED_QKV | TV_TRAIT_LEARNED | TV_TRAIT_NO_ROPE, TV_ACT_GELU,
     TV_QK_NONE, 50257, 4, 0.1},
    {"gpt_neo", "GPTNeo",
     TV_TRAIT_LAYER_NORM | TV_TRAIT_PLAIN_MLP | TV_TRAIT_OUT_BIAS | TV_TRAIT_MLP_BIAS |
         TV_TRAIT_TIED | TV_TRAIT_LEARNED | TV_TRAIT_NO_ROPE,
     TV_ACT_GELU_NEW, TV_QK_NONE, 50257, 4, 0},
    {"gpt_neox", "GPTNeoX",
     GPT | TV_TRAIT_PARALLEL | TV_TRAIT_TWO_NORMS | TV_TRAIT_FUSED_QKV | TV_TRAIT_SOFTMAX_16,
     TV_ACT_GELU, TV_QK_NONE, 50432, 4, 0},
    {"gpt_oss", "GptOss",
     TV_TRAIT_QKV_BIAS | TV_TRAIT_OUT_BIAS | TV_TRAIT_SINKS | TV_TRAIT_ROUTER_BIAS |
         TV_TRAIT_EXPERT_BIAS | TV_TRAIT_NO_KERNEL,
     TV_ACT_SILU, TV_QK_NONE, 201088, 0, 0},
    {"gptj", "GPTJ",
     TV_TRAIT_LAYER_NORM | TV_TRAIT_PLAIN_MLP | TV_TRAIT_MLP_BIAS | TV_TRAIT_PARALLEL |
         TV_TRAIT_HEAD_BIAS,
     TV_ACT_GELU_NEW, TV_QK_NONE, 50400, 4, 0},
    {"granite", "Granite", RMS, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"granitemoe", "GraniteMoe", RMS, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"granitemoehybrid", "GraniteMoeHybrid", RMS, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"hunyuan_v1_dense", "HunYuanDenseV1", RMS, TV_ACT_SILU, TV_QK_HEAD, 0, 0, 0},
    {"hunyuan_v1_moe", "HunYuanMoEV1", RMS, TV_ACT_SILU, TV_QK_HEAD, 0, 0, 0},
    {"internlm2", "InternLM2", TV_TRAIT_FUSED_QKV, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"jamba", "Jamba", RMS, TV_ACT_SILU, TV_QK_NONE, 65536, 0, 0},
    {"kimi_k2", "KimiK2", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE, 163840, 0, 0},
    {"kimi_linear", "KimiLinear", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE, 163840, 0, 0},
    {"lfm2", "Lfm2", TV_TRAIT_TIED, TV_ACT_SILU, TV_QK_HEAD, 0, 0, 0},
    {"llama", "Llama", RMS, TV_ACT_SILU, TV_QK_NONE, 32000, 0, 0},
    {"llama4", "Llama4", RMS, TV_ACT_SILU, TV_QK_PLAIN, 202048, 0, 0},
    {"llama4_text", "Llama4", RMS, TV_ACT_SILU, TV_QK_PLAIN, 202048, 0, 0},
    {"llava", "LlavaLlama", RMS, TV_ACT_SILU, TV_QK_NONE, 32000, 0, 0},
    {"mamba", "Mamba", TV_TRAIT_TIED, TV_ACT_SILU, TV_QK_NONE, 50280, 0, 0},
    {"mamba2", "Mamba2", RMS, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"mimo", "MiMo", TV_TRAIT_QKV_BIAS, TV_ACT_SILU, TV_QK_NONE, 151680, 0, 0},
    {"mimo_v2_flash", "MiMoV2Flash", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE, 152576, 0, 0},
    {"minicpm", "MiniCPM", TV_TRAIT_TIED, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"minicpm3", "MiniCPM3", TV_TRAIT_TIED, TV_ACT_SILU, TV_QK_NONE, 73448, 0, 0},
    {"minimax_m2", "MiniMaxM2", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE, 200064, 0, 0},
    {"minimax_m3_vl", "MiniMaxM3Sparse", TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_NONE, 200064, 0,
     0},
    {"ministral3", "Ministral3", RMS, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"mistral", "Mistral", RMS, TV_ACT_SILU, TV_QK_NONE, 32000, 0, 0},
    {"mixtral", "Mixtral", RMS, TV_ACT_SILU, TV_QK_NONE, 32000, 0, 0},
    {"mllama_text_model", "Mllama", RMS, TV_ACT_SILU, TV_QK_NONE, 128256, 0, 0},
    {"mpt", "Mpt", GPT | TV_TRAIT_TIED | TV_TRAIT_FUSED_QKV | TV_TRAIT_NO_ROPE | TV_TRAIT_NO_KERNEL,
     TV_ACT_GELU, TV_QK_NONE, 50368, 4, 0},
    {"nemotron", "Nemotron", TV_TRAIT_PLAIN_MLP | TV_TRAIT_LAYER_NORM, TV_ACT_RELU2, TV_QK_NONE,
     256000, 0, 0},
    {"nemotron-nas", "DeciLM", RMS, TV_ACT_SILU, TV_QK_NONE, 128256, 0, 0},
    {"nemotron_h", "NemotronH", TV_TRAIT_PLAIN_MLP | TV_TRAIT_NO_ROPE, TV_ACT_RELU2, TV_QK_NONE,
     131072, 0, 0},
    {"olmo", "Olmo", TV_TRAIT_LAYER_NORM | TV_TRAIT_NORM_PLAIN, TV_ACT_SILU, TV_QK_NONE, 50304, 0,
     0},
    {"olmo2", "Olmo2", TV_TRAIT_NO_PRE_NORMS | TV_TRAIT_POST_NORMS, TV_ACT_SILU, TV_QK_WIDE, 0, 0,
     0},
    {"olmo3", "Olmo3", TV_TRAIT_NO_PRE_NORMS | TV_TRAIT_POST_NORMS, TV_ACT_SILU, TV_QK_WIDE, 0, 0,
     0},
    {"olmoe", "Olmoe", RMS, TV_ACT_SILU, TV_QK_WIDE, 50304, 0, 0},
    {"opt", "OPT", GPT | TV_TRAIT_TIED | TV_TRAIT_LEARNED | TV_TRAIT_NO_ROPE | TV_TRAIT_SOFTMAX_16,
     TV_ACT_RELU, TV_QK_NONE, 50272, 4, 0.1},
    {"phi", "Phi", GPT | TV_TRAIT_PARALLEL | TV_TRAIT_HEAD_BIAS, TV_ACT_GELU_NEW, TV_QK_NONE, 51200,
     4, 0},
    {"phi3", "Phi3", TV_TRAIT_FUSED_QKV | TV_TRAIT_FUSED_MLP, TV_ACT_SILU, TV_QK_NONE, 32064, 0, 0},
    {"phi3_v", "Phi3V", TV_TRAIT_FUSED_QKV | TV_TRAIT_FUSED_MLP, TV_ACT_SILU, TV_QK_NONE, 32064, 0,
     0},
    {"phi3small", "Phi3Small",
     TV_TRAIT_TIED | TV_TRAIT_LAYER_NORM | TV_TRAIT_BIASES | TV_TRAIT_FUSED_QKV |
         TV_TRAIT_FUSED_MLP,
     TV_ACT_GELU, TV_QK_NONE, 100352, 0, 0.1},
    {"phi4mm", "Phi4MM", TV_TRAIT_TIED | TV_TRAIT_FUSED_QKV | TV_TRAIT_FUSED_MLP, TV_ACT_SILU,
     TV_QK_NONE, 200064, 0, 0},
    {"phimoe", "PhiMoE", TV_TRAIT_LAYER_NORM, TV_ACT_SILU, TV_QK_NONE, 32064, 0, 0},
    {"qwen", "QWen", TV_TRAIT_QKV_BIAS | TV_TRAIT_FUSED_QKV | TV_TRAIT_HALF_INTER, TV_ACT_SILU,
     TV_QK_NONE, 151936, 0, 0},
    {"qwen2", "Qwen2", TV_TRAIT_QKV_BIAS, TV_ACT_SILU, TV_QK_NONE, 151936, 0, 0},
    {"qwen2_5_vl", "Qwen2_5_VL", TV_TRAIT_QKV_BIAS, TV_ACT_SILU, TV_QK_NONE, 152064, 0, 0},
    {"qwen2_5_vl_text", "Qwen2_5_VL", TV_TRAIT_QKV_BIAS, TV_ACT_SILU, TV_QK_NONE, 152064, 0, 0},
    {"qwen2_moe", "Qwen2Moe", TV_TRAIT_QKV_BIAS | TV_TRAIT_SHARED_GATE, TV_ACT_SILU, TV_QK_NONE,
     151936, 0, 0},
    {"qwen2_vl", "Qwen2VL", TV_TRAIT_QKV_BIAS, TV_ACT_SILU, TV_QK_NONE, 152064, 0, 0},
    {"qwen2_vl_text", "Qwen2VL", TV_TRAIT_QKV_BIAS, TV_ACT_SILU, TV_QK_NONE, 152064, 0, 0},
    {"qwen3", "Qwen3", RMS, TV_ACT_SILU, TV_QK_HEAD, 151936, 0, 0},
    {"qwen3_5", "Qwen3_5", TV_TRAIT_GEMMA_NORM | TV_TRAIT_GATE, TV_ACT_SILU, TV_QK_HEAD, 248320, 0,
     0},
    {"qwen3_5_moe", "Qwen3_5Moe", TV_TRAIT_GEMMA_NORM | TV_TRAIT_GATE | TV_TRAIT_SHARED_GATE,
     TV_ACT_SILU, TV_QK_HEAD, 248320, 0, 0},
    {"qwen3_5_moe_text", "Qwen3_5Moe", TV_TRAIT_GEMMA_NORM | TV_TRAIT_GATE | TV_TRAIT_SHARED_GATE,
     TV_ACT_SILU, TV_QK_HEAD, 248320, 0, 0},
    {"qwen3_5_text", "Qwen3_5", TV_TRAIT_GEMMA_NORM | TV_TRAIT_GATE, TV_ACT_SILU, TV_QK_HEAD,
     248320, 0, 0},
    {"qwen3_moe", "Qwen3Moe", RMS, TV_ACT_SILU, TV_QK_HEAD, 151936, 0, 0},
    {"qwen3_next", "Qwen3Next", TV_TRAIT_GEMMA_NORM | TV_TRAIT_GATE | TV_TRAIT_SHARED_GATE,
     TV_ACT_SILU, TV_QK_HEAD, 151936, 0, 0},
    {"qwen3_vl", "Qwen3VL", RMS, TV_ACT_SILU, TV_QK_HEAD, 151936, 0, 0},
    {"qwen3_vl_moe", "Qwen3VLMoe", RMS, TV_ACT_SILU, TV_QK_HEAD, 151936, 0, 0},
    {"qwen3_vl_moe_text", "Qwen3VLMoe", RMS, TV_ACT_SILU, TV_QK_HEAD, 151936, 0, 0},
    {"qwen3_vl_text", "Qwen3VL", RMS, TV_ACT_SILU, TV_QK_HEAD, 151936, 0, 0},
    {"seed_oss", "SeedOss", TV_TRAIT_QKV_BIAS, TV_ACT_SILU, TV_QK_NONE, 155136, 0, 0},
    {"smollm3", "SmolLM3", TV_TRAIT_TIED, TV_ACT_SILU, TV_QK_NONE, 128256, 0, 0},
    {"stablelm", "StableLm", TV_TRAIT_LAYER_NORM, TV_ACT_SILU, TV_QK_NONE, 50304, 0, 0},
    {"stablelm_epoch", "StableLMEpoch", TV_TRAIT_LAYER_NORM, TV_ACT_SILU, TV_QK_NONE, 50304, 0, 0},
    {"starcoder2", "Starcoder2", GPT | TV_TRAIT_TIED, TV_ACT_GELU, TV_QK_NONE, 49152, 0, 0},
    {"step3p7", "Step3p7Flash", TV_TRAIT_GEMMA_NORM | TV_TRAIT_ROUTER_BIAS, TV_ACT_SILU, TV_QK_HEAD,
     128896, 0, 0},
    {"xverse", "Xverse", RMS, TV_ACT_SILU, TV_QK_NONE, 0, 0, 0},
    {"yuan", "Yuan", TV_TRAIT_TIED, TV_ACT_SILU, TV_QK_NONE, 135040, 0, 0},
};

#define USUAL_QKV "self_attn.qkv_proj", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"
#define USUAL_MLP "mlp.gate_up_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"

static const tv_decoder_names names[] = {
    {"baichuan", "self_attn.W_pack", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
     "self_attn.o_proj", USUAL_MLP},
    {"bloom", "self_attention.query_key_value", NULL, NULL, NULL, "self_attention.dense", NULL,
     NULL, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
    {"chatglm", "self_attention.query_key_value", NULL, NULL, NULL, "self_attention.dense",
     "mlp.dense_h_to_4h", "mlp.gate_proj", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
    {"falcon", "self_attention.query_key_value", NULL, NULL, NULL, "self_attention.dense", NULL,
     NULL, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
    {"gpt2", "attn.c_attn", NULL, NULL, NULL, "attn.c_proj", NULL, NULL, "mlp.c_fc", "mlp.c_proj"},
    {"gpt_bigcode", "attn.c_attn", NULL, NULL, NULL, "attn.c_proj", NULL, NULL, "mlp.c_fc",
     "mlp.c_proj"},
    {"gpt_neox", "attention.query_key_value", NULL, NULL, NULL, "attention.dense", NULL, NULL,
     "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
    {"gptj", NULL, "attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.out_proj", NULL, NULL,
     "mlp.fc_in", "mlp.fc_out"},
    {"internlm2", "attention.wqkv", NULL, NULL, NULL, "attention.wo", NULL, "feed_forward.w1",
     "feed_forward.w3", "feed_forward.w2"},
    {"mpt", "attn.Wqkv", NULL, NULL, NULL, "attn.out_proj", NULL, NULL, "ffn.up_proj",
     "ffn.down_proj"},
    {"opt", USUAL_QKV, "self_attn.out_proj", NULL, NULL, "fc1", "fc2"},
    {"phi", USUAL_QKV, "self_attn.dense", NULL, NULL, "mlp.fc1", "mlp.fc2"},
    {"qwen", "attn.c_attn", NULL, NULL, NULL, "attn.c_proj", NULL, "mlp.w2", "mlp.w1",
     "mlp.c_proj"},
    {"starcoder2", USUAL_QKV, "self_attn.o_proj", NULL, NULL, "mlp.c_fc", "mlp.c_proj"},
    {NULL, USUAL_QKV, "self_attn.o_proj", USUAL_MLP},
};

const tv_decoder_names *tv_decoder_names_of(tv_str type)
{
    size_t i = 0;
    while (names[i].type && !tv_str_is(type, names[i].type))
        i++;
    return &names[i];
}

/* Classes whose layers the record cannot describe: an answer about them would be wrong. */
static const char *const not_modelled[] = {
    "bitnet",     "falcon_h1",       "gemma3n", "gemma3n_text", "minimax",
    "minimax_m1", "minimax_text_01", "rwkv",    "rwkv5",        "rwkv6",
    "rwkv7",      "xlstm",           "zamba",   "zamba2",       NULL,
};

bool tv_decoder_not_modelled(tv_str type)
{
    return tv_family_in(type, not_modelled);
}

const tv_decoder_class *tv_decoder_class_of(tv_str type)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (tv_str_is(type, classes[i].type))
            return &classes[i];
    return NULL;
}

/* Architecture names are the class's stem and what it is for: "Qwen3MoeForCausalLM". */
static bool is_suffix(tv_str rest)
{
    return !rest.n || tv_str_starts(rest, TV_S("For")) || tv_str_starts(rest, TV_S("Model")) ||
           tv_str_starts(rest, TV_S("LMHead"));
}

const tv_decoder_class *tv_decoder_class_of_architecture(tv_str architecture)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        tv_str stem = tv_str_of(classes[i].architecture);
        if (tv_str_starts(architecture, stem) && is_suffix(tv_str_drop(architecture, stem.n)))
            return &classes[i];
    }
    return NULL;
}
