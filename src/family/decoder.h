/* Text decoders: the record between a configuration and its op list. A configuration (HF, GGUF or
 * an opaque number of parameters) is translated into this record; the graph is written from it. */
#ifndef TV_DECODER_H
#define TV_DECODER_H

#include "desc/emit.h"
#include "family.h"

/* What mixes tokens in a layer. */
typedef enum tv_mixer {
    TV_MIX_NONE,
    TV_MIX_ATTENTION,  /* MHA, GQA, MQA, sliding windows */
    TV_MIX_LATENT,     /* multi-head latent attention (DeepSeek) */
    TV_MIX_CROSS,      /* keys and values come from a tower */
    TV_MIX_MAMBA,      /* selective scan with a low-rank step */
    TV_MIX_MAMBA2,     /* state-space duality, heads and groups */
    TV_MIX_DELTA,      /* gated delta rule, key and value heads */
    TV_MIX_KDA,        /* gated delta rule with a decay per channel (Kimi) */
    TV_MIX_CONV,       /* gated short convolution (LFM2) */
    TV_MIX_COMPRESSED, /* one shared key-value head, grouped low-rank output, compressed far
                          tokens (DeepSeek V4) */
} tv_mixer;

typedef enum tv_qk_norm {
    TV_QK_NONE,
    TV_QK_HEAD,  /* one weight of head_dim for all heads */
    TV_QK_HEADS, /* a weight of head_dim per head (Cohere, StableLM) */
    TV_QK_WIDE,  /* one norm over all heads together (OLMo 2, MiniMax M2) */
    TV_QK_PLAIN, /* without weights (Llama 4) */
} tv_qk_norm;

typedef struct tv_decoder_mix {
    tv_mixer kind;
    /* attention */
    double heads, kv_heads, head_dim, v_dim; /* v_dim 0: as head_dim */
    double window;                           /* tokens, 0: all */
    bool qkv_bias, out_bias;
    bool fused;    /* q, k, v in one matrix */
    bool gate;     /* the query projection also yields a gate on the output */
    bool sinks;    /* one learned logit per head */
    bool k_is_v;   /* values are the keys before rotation: no v projection (Gemma 4) */
    bool v_norm;   /* values are normalised without weights (Gemma 4) */
    bool reads_kv; /* uses an earlier layer's keys and values (Gemma 3n) */
    bool no_rope;
    bool softmax_16; /* the module keeps the scores' type in its softmax */
    bool no_kernel;  /* modules that write the scores out: ALiBi of Bloom and MPT, sinks */
    tv_qk_norm qk_norm;
    /* latent attention; head_dim is nope + rope */
    double q_rank, kv_rank, rope_dim;
    bool latent_gate; /* a gate of heads·v_dim on the output */
    /* an indexer picks the keys that attention sees (DeepSeek V3.2 and later) */
    double index_heads, index_dim, index_keys;
    bool index_flat; /* keys and queries projected from the hidden state (MiniMax M3) */
    /* compressed attention */
    double out_rank, out_groups, compress;
    /* scans */
    double inner; /* channels (Mamba), heads·value width (the others) */
    double state; /* numbers per channel, or the key width of a head */
    double conv;  /* taps */
    double dt_rank, groups, scan_heads, key_heads, key_dim, value_dim;
    bool conv_bias, scan_bias, scan_norms, split_proj;
    double filter_conv; /* taps of a convolution before attention (Yuan) */
    /* cross attention */
    double tower_width, tower_tokens;
} tv_decoder_mix;

typedef struct tv_decoder_mlp {
    double inter; /* dense width; 0: none */
    bool gated;
    bool bias;
    bool fused; /* gate and up in one matrix */
    tv_act act;
    double experts, top_k, expert_inter; /* 0: dense */
    double shared_inter;
    bool shared_gate, router_bias, expert_bias;
    bool beside;   /* dense and experts side by side (Gemma 4) */
    double latent; /* experts work at this width; 0: hidden */
    bool latent_norm;
} tv_decoder_mlp;

typedef struct tv_decoder_layer {
    const char *name;
    tv_decoder_mix mix;
    tv_decoder_mlp mlp;
    bool pre_mix, post_mix; /* norms before the mixer and on its output */
    bool pre_mlp, post_mlp;
    bool after_add;    /* norms follow the residual additions instead (BERT order) */
    bool parallel;     /* mixer and MLP read the same input; pre_mlp: a norm of its own */
    double extra;      /* parameters of no matrix: gates, scales */
    double side_input; /* width of the per-layer embedding that joins (Gemma 4), 0: none */
    double streams;    /* residual streams of hyper-connections; 0 and 1: one */
} tv_decoder_layer;

typedef enum tv_decoder_head {
    TV_HEAD_LM,
    TV_HEAD_NONE,    /* a base model: hidden states come out */
    TV_HEAD_CLASSES, /* one vector per sequence or token */
} tv_decoder_head;

/* What a class calls its matrices: adapters are aimed at these names. */
typedef struct tv_decoder_names {
    const char *type; /* model_type; NULL: every other */
    const char *qkv, *q, *k, *v, *out;
    const char *gate_up, *gate, *up, *down;
} tv_decoder_names;

typedef struct tv_decoder {
    const tv_decoder_names *names;
    double hidden, vocab;
    double embed_width; /* 0: hidden (OPT 350m differs) */
    double positions;   /* learned ones, 0: none */
    double token_types;
    double max_seq;
    tv_norm_kind norm;
    bool norm_bias;
    bool norm_plain; /* norms without weights (OLMo) */
    bool norm_one;   /* weights are stored as w - 1 and applied in fp32 (Gemma) */
    bool embed_norm, final_norm;
    bool embed_scale;
    bool tied, head_bias;
    tv_decoder_head head;
    double classes;
    double embed_dropout, residual_dropout, attention_dropout; /* 0: none */
    double side_width, side_vocab; /* per-layer embeddings (Gemma 4): width, rows; 0: none */
    double expert_bytes; /* per weight of experts stored narrower than the rest; 0: alike */
    double mtp;          /* multi-token prediction modules in the files */
    bool mtp_other;      /* of layers that the record does not describe */
    bool mtp_embeds;     /* each with a copy of embedding and head */
    double spare;        /* parameters that no layer explains (opaque models) */
    double extra_rows;   /* rows of the embedding beyond the head's vocabulary (mllama) */
    const tv_decoder_layer *kinds;
    uint32_t n_kinds;
    const uint32_t *order; /* n_layers indices into kinds */
    uint32_t n_layers;
} tv_decoder;

/* A set of layers while it is made: equal layers share a kind. */
typedef struct tv_decoder_stack {
    tv_decoder_layer *v;
    size_t n, cap;
    uint32_t *order;
    size_t n_order, cap_order;
} tv_decoder_stack;

void tv_decoder_push(tv_arena *a, tv_decoder_stack *stack, tv_decoder_layer layer);
void tv_decoder_close_stack(tv_decoder *d, const tv_decoder_stack *stack);

/* What a class of models leaves unsaid in its configuration; see docs/model.md. */
enum {
    TV_TRAIT_TIED = 1 << 0,
    TV_TRAIT_QKV_BIAS = 1 << 1,
    TV_TRAIT_OUT_BIAS = 1 << 2,
    TV_TRAIT_MLP_BIAS = 1 << 3,
    TV_TRAIT_BIASES = TV_TRAIT_QKV_BIAS | TV_TRAIT_OUT_BIAS | TV_TRAIT_MLP_BIAS,
    TV_TRAIT_PLAIN_MLP = 1 << 4,  /* up and down without a gate */
    TV_TRAIT_LAYER_NORM = 1 << 5, /* torch's LayerNorm, with bias unless NORM_FLAT */
    TV_TRAIT_NORM_FLAT = 1 << 6,  /* LayerNorm without bias */
    TV_TRAIT_NORM_PLAIN = 1 << 7, /* norms without weights */
    TV_TRAIT_GEMMA_NORM = 1 << 8,
    TV_TRAIT_POST_NORMS = 1 << 9, /* norms on the outputs of mixer and MLP too */
    TV_TRAIT_NO_PRE_NORMS = 1 << 10,
    TV_TRAIT_PARALLEL = 1 << 11,  /* mixer and MLP side by side */
    TV_TRAIT_TWO_NORMS = 1 << 12, /* ... each with a norm of its own */
    TV_TRAIT_FUSED_QKV = 1 << 13,
    TV_TRAIT_FUSED_MLP = 1 << 14,
    TV_TRAIT_EMBED_SCALE = 1 << 15,
    TV_TRAIT_EMBED_NORM = 1 << 16,
    TV_TRAIT_HEAD_BIAS = 1 << 17,
    TV_TRAIT_LEARNED = 1 << 18, /* learned positions */
    TV_TRAIT_NO_ROPE = 1 << 19,
    TV_TRAIT_SINKS = 1 << 20,
    TV_TRAIT_GATE = 1 << 21,      /* gated attention output */
    TV_TRAIT_AFTER_ADD = 1 << 22, /* norms after the residual addition */
    TV_TRAIT_SHARED_GATE = 1 << 23,
    TV_TRAIT_ROUTER_BIAS = 1 << 24,
    TV_TRAIT_EXPERT_BIAS = 1 << 25,
    TV_TRAIT_HALF_INTER = 1 << 26, /* the stated width is gate and up together (Qwen 1) */
    TV_TRAIT_SOFTMAX_16 = 1 << 27, /* softmax in the scores' own type */
    TV_TRAIT_NO_KERNEL = 1 << 28,  /* attention is always written out */
};

typedef struct tv_decoder_class {
    const char *type;         /* model_type */
    const char *architecture; /* up to "For...", "Model" or "LMHead..." */
    uint32_t traits;
    tv_act act;
    tv_qk_norm qk_norm;
    double vocab;           /* class default, 0: none */
    double inter_of_hidden; /* width as a multiple of hidden when no key states one */
    double dropout;         /* class default of all three kinds */
} tv_decoder_class;

const tv_decoder_class *tv_decoder_class_of(tv_str type);
/* Never NULL: the usual names where the class has none of its own. */
const tv_decoder_names *tv_decoder_names_of(tv_str type);
bool tv_decoder_not_modelled(tv_str type);
const tv_decoder_class *tv_decoder_class_of_architecture(tv_str architecture);

/* A configuration with its nested text part found. */
typedef struct tv_config {
    const tv_json *top;
    const tv_json *text; /* the part that describes the decoder; may be top */
    tv_str type;         /* of the text part, else of the top */
} tv_config;

tv_config tv_config_of(const tv_source *s);
/* The first present of several keys ("a|b|c"), in the text part and then at the top. */
const tv_json *tv_config_get(const tv_config *c, const char *keys);
double tv_config_num(const tv_config *c, const char *keys, double fallback);
bool tv_config_bool(const tv_config *c, const char *keys, bool fallback);
tv_str tv_config_str(const tv_config *c, const char *keys);

/* Configuration to record. */
const tv_err *tv_decoder_from_config(tv_arena *a, const tv_source *s, tv_model *m,
                                     tv_decoder *d) TV_CHECKED;
/* The layer list of a configuration whose common widths are known. */
const tv_err *tv_decoder_layers(tv_arena *a, const tv_config *c, const tv_decoder_class *kind,
                                tv_decoder *d) TV_CHECKED;
/* GGUF keys and tensors to record. */
const tv_err *tv_decoder_from_gguf(tv_arena *a, const tv_source *s, tv_model *m,
                                   tv_decoder *d) TV_CHECKED;

bool tv_decoder_knows_arch(tv_str arch);

/* Quantisation stated in config.json or beside it. */
tv_quant tv_quant_of(const tv_source *s);
/* Parameters of a vision or audio tower and its projector; adds parts to the model. */
void tv_towers_of(tv_arena *a, const tv_source *s, double text_hidden, tv_model *m);

/* Sorts the tensors of the files into the model and what is beside it; warns where they differ. */
void tv_decoder_compare_files(tv_arena *a, const tv_source *s, const tv_decoder *d, tv_model *m);

/* Fills the model's shape from the record, counts its parameters and hangs the record in. */
const tv_err *tv_decoder_finish(tv_arena *a, const tv_source *s, tv_decoder *d,
                                tv_model *m) TV_CHECKED;
/* The op list. */
const tv_err *tv_decoder_build(tv_arena *a, const tv_model *m, const tv_setting *set,
                               tv_graph **graph) TV_CHECKED;

/* ---- the graph's parts ---- */

tv_val tv_decoder_norm(tv_emit *e, const tv_decoder *d, const char *name, tv_val x, double width);
tv_val tv_decoder_mix_emit(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *mix, tv_val x);
tv_val tv_decoder_mlp_emit(tv_emit *e, const tv_decoder *d, const tv_decoder_mlp *mlp, tv_val x);
tv_val tv_decoder_scan_emit(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *mix, tv_val x);

#endif
