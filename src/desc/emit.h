/* Puts ops on a graph with the autograd rules of the frameworks in one place: what a linear, a
 * norm, an attention saves for backward under the setting's precision policy, what it casts, what
 * it needs while it runs. Families and graph readers speak to this and never count saved bytes
 * themselves. Rules: docs/model.md, sections "activation ledger" and "autocast". */
#ifndef TV_EMIT_H
#define TV_EMIT_H

#include "base/err.h"
#include "graph.h"
#include "setting.h"

/* A value in flight: a storage, its element count per B, its type. */
typedef struct tv_val {
    uint32_t storage; /* TV_NONE: no value */
    tv_form n;
    tv_dtype dtype;
    bool grad; /* depends on something trainable */
} tv_val;

typedef struct tv_emit {
    tv_arena *a;
    const tv_setting *set;
    tv_graph *g;
    size_t cap_blocks, cap_order, cap_storages, cap_ops, cap_weights, cap_ids;
    uint32_t block;      /* kind being written */
    const char *prefix;  /* module path put before op names; "" at the start */
    tv_shard act_shard;  /* shard of the activations that ops put out from here on */
    tv_weight_role role; /* role of the next linear's weight: MATRIX unless set */
    bool frozen;         /* parts that are not trained whatever the task (vision tower, VAE) */
    bool shared;         /* weights of the block are one set for all repetitions */
} tv_emit;

tv_emit tv_emit_open(tv_arena *a, const tv_setting *set);
/* Sums parameters and yields the graph. */
tv_graph *tv_emit_close(tv_emit *e);

/* ---- blocks ---- */

/* Starts a block kind; in is the running value (its storage becomes the formal input) or the
 * zero-like tv_no_val. Returns the value to compute with. */
tv_val tv_emit_block(tv_emit *e, const char *name, tv_stage stage, tv_val in);
/* Ends the kind and names what it hands on. Returns that value for the next kind. */
tv_val tv_emit_end(tv_emit *e, tv_val out);
/* Appends n repetitions of a kind (index in g->blocks) to the order. */
void tv_emit_order(tv_emit *e, uint32_t kind, size_t n);
/* Cache width per token, heads it divides over, window, recurrent state of the current kind. */
void tv_emit_cache(tv_emit *e, double kv_width, double kv_heads, double window, double state_bytes);

extern const tv_val tv_no_val;

/* ---- values ---- */

/* The batch itself: elements per sample, resident for the whole step, no gradient. */
tv_val tv_emit_input(tv_emit *e, const char *what, double per_sample, tv_dtype dtype);
/* Makes a block-local value visible to other blocks (a U-Net skip, the encoder's output). */
void tv_emit_global(tv_emit *e, tv_val v);
/* A view: same storage, fewer elements; costs nothing. */
tv_val tv_emit_view(tv_val v, tv_form n);
/* Tokens of the phase: seq per B, or 1 when decoding. */
double tv_emit_tokens(const tv_emit *e);

/* ---- weights ---- */

/* Declares a parameter that no op below declares (positions, class token, scan parameters). */
void tv_emit_weight(tv_emit *e, const char *name, tv_weight_role role, double rows, double cols,
                    double count, tv_shard shard);
/* Buffers that are no parameters (running statistics): bytes added to frozen_buffers_bytes. */
void tv_emit_buffer(tv_emit *e, double bytes);

/* ---- layers ---- */

typedef struct tv_linear {
    const char *name;
    double in, out;
    tv_form rows; /* m; zero: elements of x / in */
    bool bias;
    tv_shard shard;   /* NONE, or TENSOR with row = false (columns cut) or true (rows cut) */
    bool row;         /* row-parallel: an all-reduce follows under tensor parallelism */
    bool tied;        /* the weight belongs to an embedding already declared */
    bool tied_bias;   /* so does the bias */
    bool keep_fp32;   /* computed in fp32 whatever the policy (routers) */
    bool no_adapter;  /* never a LoRA target */
    bool no_quant;    /* stays 16-bit under a quantised policy */
    const char *path; /* whole module path, for LoRA patterns; NULL: name and the prefix */
} tv_linear;

tv_val tv_emit_linear(tv_emit *e, const tv_linear *l, tv_val x);

/* Look-up of `tokens` rows of width; saves the indices. */
tv_val tv_emit_embedding(tv_emit *e, const char *name, tv_val ids, double vocab, double width,
                         tv_form tokens);

typedef enum tv_norm_kind {
    TV_NORM_LAYER,     /* torch/Paddle layer_norm kernel */
    TV_NORM_RMS,       /* written in Python: fp32 copy, normalised, output (Llama, Qwen, Mistral) */
    TV_NORM_RMS_GEMMA, /* weight applied in fp32 */
    TV_NORM_RMS_FUSED,
    TV_NORM_GROUP,
    TV_NORM_BATCH,
    TV_NORM_BATCH_FROZEN,
} tv_norm_kind;

/* width: parameters of the weight (and of the bias for LAYER, GROUP, BATCH). affine false: none. */
tv_val tv_emit_norm(tv_emit *e, const char *name, tv_norm_kind kind, tv_val x, double width,
                    bool affine, bool bias);

/* The same with what a foreign graph knows better. */
typedef struct tv_norm {
    const char *name;
    tv_norm_kind kind;
    double width;
    tv_form rows; /* of statistics (groups, instances); zero: as tv_emit_norm takes them */
    bool affine, bias;
    bool tied; /* weight and bias are declared elsewhere */
} tv_norm;

tv_val tv_emit_norm_of(tv_emit *e, const tv_norm *n, tv_val x);

typedef enum tv_act {
    TV_ACT_RELU,
    TV_ACT_RELU_INPLACE,
    TV_ACT_RELU6,
    TV_ACT_LEAKY_RELU,
    TV_ACT_LEAKY_RELU_INPLACE,
    TV_ACT_GELU,       /* one kernel, exact or tanh */
    TV_ACT_GELU_NEW,   /* written in Python (GPT-2 class): saves 5 copies */
    TV_ACT_QUICK_GELU, /* x·sigmoid(1.702 x): 3 copies */
    TV_ACT_SILU,
    TV_ACT_HARDSWISH,
    TV_ACT_HARDSIGMOID,
    TV_ACT_SIGMOID,
    TV_ACT_TANH,
    TV_ACT_RELU2,
    TV_ACT_MISH,
    TV_ACT_SOFTPLUS,
} tv_act;

tv_val tv_emit_act(tv_emit *e, const char *name, tv_act act, tv_val x);
tv_val tv_emit_mul(tv_emit *e, const char *name, tv_val x, tv_val y);
/* Saves nothing. The result takes the wider type. */
tv_val tv_emit_add(tv_emit *e, const char *name, tv_val x, tv_val y);
/* p < 0: nothing is emitted and x is returned, as for p = 0 and outside training. */
tv_val tv_emit_dropout(tv_emit *e, const char *name, double p, tv_val x);
tv_val tv_emit_softmax(tv_emit *e, const char *name, tv_val x);
tv_val tv_emit_contiguous(tv_emit *e, const char *name, tv_val x);
tv_val tv_emit_concat(tv_emit *e, const char *name, const tv_val *parts, size_t n);
/* Rotary embedding of q or k: saves nothing (the tables are constants). */
tv_val tv_emit_rope(tv_emit *e, const char *name, tv_val x);
/* x scaled by something of no size (layer scale is a mul with a weight). */
tv_val tv_emit_scale(tv_emit *e, const char *name, tv_val x, double weight_width);

typedef struct tv_attention {
    const char *name;
    double heads, kv_heads, head_dim; /* head_dim of q and k */
    double v_dim;                     /* 0: as head_dim */
    double q_tokens, k_tokens;        /* per sample; 0: the phase's tokens. When decoding, self
                                         attention sees k_tokens + K */
    bool causal;
    double window;     /* 0: all */
    double dropout;    /* of the probabilities; < 0: none */
    bool cross;        /* keys come from elsewhere: not cached per decoded token */
    bool softmax_fp32; /* the module upcasts the scores (HF decoders do) */
    bool no_kernel;    /* biases or shapes that fused kernels refuse */
    tv_shard shard;
} tv_attention;

/* q, k, v to the heads' joined output. Under a fused kernel saves q, k, v, output and the
 * log-sum-exp; eager saves the scores' path. The contiguous copy after it is the family's. */
tv_val tv_emit_attention(tv_emit *e, const tv_attention *t, tv_val q, tv_val k, tv_val v);

typedef struct tv_conv {
    const char *name;
    double in, out;   /* channels */
    double kernel;    /* kernel volume: 9 for 3x3 */
    double groups;    /* 0: 1 */
    double positions; /* output positions per sample: h·w (·d) */
    bool bias;
    bool transposed;
    tv_form rows; /* output positions of all samples; zero: positions per sample */
    bool tied;    /* the weight is declared elsewhere */
    bool tied_bias;
} tv_conv;

tv_val tv_emit_conv(tv_emit *e, const tv_conv *c, tv_val x);
/* max: keeps 8-byte indices per output; average keeps its input; global average of torch >= 2
 * keeps nothing. out: elements per sample. window: kernel volume. */
tv_val tv_emit_pool(tv_emit *e, const char *name, bool max, tv_val x, double out, double window);
tv_val tv_emit_global_pool(tv_emit *e, const char *name, tv_val x, double out);
tv_val tv_emit_resize(tv_emit *e, const char *name, tv_val x, double out);
/* The same with the elements put out as a form. */
tv_val tv_emit_pool_to(tv_emit *e, const char *name, bool max, tv_val x, tv_form out,
                       double window);
tv_val tv_emit_global_pool_to(tv_emit *e, const char *name, tv_val x, tv_form out);
tv_val tv_emit_resize_to(tv_emit *e, const char *name, tv_val x, tv_form out);

typedef struct tv_moe {
    const char *name;
    double hidden, inter; /* of one expert */
    double experts, top_k;
    double shared_inter; /* width of the always-on experts together; 0: none */
    bool gated;          /* gate, up, down; else up, down */
    bool bias;
    bool shared_gate; /* a one-column gate on the shared experts (Qwen2-MoE) */
    bool router_bias;
    tv_act act;
} tv_moe;

/* Router, permute, experts, unpermute, shared experts. */
tv_val tv_emit_moe(tv_emit *e, const tv_moe *m, tv_val x);

/* Recurrent kernels: `inner` channels with `state` numbers each, saves its inputs and one state
 * per chunk. in_bytes streams are taken from x. */
tv_val tv_emit_scan(tv_emit *e, const char *name, tv_val x, double out_width, double inner,
                    double state);

/* Cross entropy over `classes`; rows per sample. Emits the loss ops by the setting's variant
 * (standard, chunked, fused with the head's linear) and Paddle's in-place form. hidden is the
 * width of the head's input (for the fused form). fp32_logits: the model output is upcast first
 * (old HF). */
void tv_emit_cross_entropy(tv_emit *e, const char *name, tv_val logits, double classes,
                           double rows);
/* MSE, BCE and the like: saves input and target. */
void tv_emit_pointwise_loss(tv_emit *e, const char *name, tv_val x);

/* ---- ops of foreign graphs (emit_foreign.c) ---- */

/* A parameter among the operands of an op: a bias, a table, a factor per channel. */
typedef struct tv_param {
    const char *name;
    tv_weight_role role;
    double rows, cols;
} tv_param;

/* An op over activations of which the reader knows the autograd rule: what it keeps. */
typedef struct tv_foreign {
    tv_op_kind kind;
    const char *name, *what;
    const tv_val *in;
    size_t n_in;
    uint32_t saves_in; /* bit i: in[i] is kept, where something flows back */
    bool saves_out;
    tv_form saves_bytes; /* further bytes kept: masks, indices */
    tv_form n;           /* elements put out */
    tv_dtype dtype;
    tv_form flop;
    bool constant; /* nothing flows back: comparisons, indices */
    bool in_place; /* writes over in[0] */
    const tv_param *params;
    size_t n_params;
    int launches, backward_launches; /* 0: one */
} tv_foreign;

tv_val tv_emit_foreign(tv_emit *e, const tv_foreign *f);

/* `groups` products of m·k by k·n of two activations, or of one and `groups` matrices of a
 * parameter (y of no storage, param stated). */
typedef struct tv_product {
    const char *name, *what;
    tv_form groups, m;
    double n, k;
    tv_form out, flop;
    const tv_param *param;
    bool core; /* belongs to an attention */
} tv_product;

tv_val tv_emit_product(tv_emit *e, const tv_product *p, tv_val x, tv_val y);
/* An input of the program: elements as a form. */
tv_val tv_emit_input_of(tv_emit *e, const char *what, tv_form n, tv_dtype dtype);
/* A tensor of the open block that only backward sees (recorded masks, statistics). */
tv_val tv_emit_kept(tv_emit *e, const char *what, tv_form n, tv_dtype dtype);
/* Rows of a table that is declared elsewhere (a tied embedding). */
tv_val tv_emit_lookup(tv_emit *e, const char *name, tv_val ids, double vocab, double width,
                      tv_form tokens);

/* For readers of foreign graphs: an op with everything stated. */
tv_op *tv_emit_op(tv_emit *e, tv_op_kind kind, const char *name);
tv_val tv_emit_out(tv_emit *e, tv_op *op, const char *what, tv_form n, tv_dtype dtype, bool grad);
void tv_emit_reads(tv_emit *e, tv_op *op, const uint32_t *storages, size_t n);
void tv_emit_saves(tv_emit *e, tv_op *op, const uint32_t *storages, size_t n);

#endif
