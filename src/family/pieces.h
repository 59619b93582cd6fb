/* What several families share: looking up configuration fields that go by many names, and the
 * attention and feed-forward parts of a transformer layer as modules write them. Knows no model. */
#ifndef TV_PIECES_H
#define TV_PIECES_H

#include "desc/emit.h"
#include "desc/model.h"

/* ---- configuration ---- */

/* The first of the keys that is present and not null; the list ends with NULL. */
const tv_json *tv_cfg(const tv_json *c, const char *key, ...) __attribute__((sentinel));
double tv_cfg_num(const tv_json *c, double fallback, const char *key, ...)
    __attribute__((sentinel));
/* The activation that a name means ("gelu_new", "silu" ...). */
tv_act tv_cfg_act(tv_str name, tv_act fallback);
/* Element of a list, or the number itself where one stands for all. */
double tv_cfg_at(const tv_json *j, size_t i, double fallback);
/* Number of labels of a classification head: id2label, num_labels, else 2. */
double tv_cfg_labels(const tv_json *c);
/* True where an architecture's name holds the word ("ForMaskedLM"). */
bool tv_cfg_architecture_has(const tv_json *c, tv_str word);
/* torch_dtype or dtype, else unknown. */
tv_dtype tv_cfg_dtype(const tv_json *c);

/* ---- setting ---- */

static inline bool tv_trains(const tv_setting *set)
{
    return set->phase == TV_PHASE_TRAIN;
}
/* The setting's dropout where stated, else the model's. */
double tv_dropout(const tv_setting *set, double of_model);

/* ---- attention ---- */

typedef struct tv_attn_names {
    const char *q, *k, *v, *out, *core;
} tv_attn_names;

typedef struct tv_attn_part {
    tv_attn_names names;
    const char *fused; /* one projection for q, k and v together; NULL: three */
    double hidden;     /* width of the queries' input and of the output */
    double kv_hidden;  /* width of the keys' input; 0: hidden */
    double heads, head_dim;
    double repeat; /* windows per sample: heads·repeat kernels of q_tokens each; 0: 1 */
    double q_tokens, k_tokens; /* 0: the phase's */
    bool q_bias, k_bias, v_bias, out_bias;
    double dropout;
    bool causal, cross, no_kernel, softmax_fp32;
    tv_norm_kind qk_norm; /* where qk_norm_width > 0 */
    double qk_norm_width;
    bool rope;
} tv_attn_part;

/* Projections, attention, output projection. memory: where keys come from; tv_no_val: x itself.
 * When decoding, cross attention's keys were made before: no projections of them. */
tv_val tv_emit_attn_part(tv_emit *e, const tv_attn_part *p, tv_val x, tv_val memory);
double tv_attn_part_inner(const tv_attn_part *p);

/* ---- feed forward ---- */

typedef struct tv_mlp_part {
    const char *up, *gate, *down; /* gate NULL: plain */
    const char *fused;            /* gate and up in one matrix; NULL: apart */
    double hidden, inter;
    tv_act act;
    bool bias;
    double act_dropout;
} tv_mlp_part;

tv_val tv_emit_mlp_part(tv_emit *e, const tv_mlp_part *p, tv_val x);

/* ---- layers ---- */

typedef struct tv_layer_part {
    tv_attn_part attn;
    tv_mlp_part mlp;
    tv_norm_kind norm;
    bool norm_bias;
    const char *norm1, *norm2;
    bool post_norm;   /* norm after the addition (BERT, BART) instead of before the part */
    double dropout;   /* behind each part */
    bool layer_scale; /* a learned factor per channel behind each part */
} tv_layer_part;

/* Self attention and feed forward, each with its residual. */
tv_val tv_emit_layer_part(tv_emit *e, const tv_layer_part *p, tv_val x);
/* One half: attn (over memory, or x itself), or the feed forward where attn is NULL; with its norm,
 * dropout and addition in the order that post_norm says. */
tv_val tv_emit_half(tv_emit *e, const tv_layer_part *p, const tv_attn_part *attn, const char *norm,
                    tv_val x, tv_val memory);

/* ---- models ---- */

/* The block kind just ended runs n times from here. */
void tv_emit_runs(tv_emit *e, double n);

/* Fp32 inference with fused attention: what sizes that do not depend on a job are taken from. */
tv_setting tv_plain_setting(void);

/* Builds the graph once for inference and takes the parameter counts from it; bytes from the
 * source's tensors where it has them. Call it last. */
const tv_err *tv_count_params(tv_arena *a, tv_model *m, const tv_source *s) TV_CHECKED;

#endif
