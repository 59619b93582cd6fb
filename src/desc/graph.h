/* The typed op list: everything that is computed about a model comes from it. A graph is a few
 * block kinds (embed, layer kinds, head) and the order in which they run; the full walk reads it
 * op by op, the search reads it folded by kind. Byte sizes already hold the precision policy, the
 * sequence length or image size and the attention kernel; what stays open is the batch B and, when
 * decoding, the tokens K that are in the KV cache. */
#ifndef TV_GRAPH_H
#define TV_GRAPH_H

#include "dtype.h"

/* a + b·B + c·B·K + d·B²; B sequences or samples on the rank, K cached tokens. */
typedef struct tv_form {
    double a;
    double b;
    double c;
    double d;
} tv_form;

static inline double tv_form_at(tv_form f, double batch, double cached)
{
    return f.a + batch * (f.b + f.c * cached + f.d * batch);
}

static inline tv_form tv_form_scale(tv_form f, double by)
{
    return (tv_form){f.a * by, f.b * by, f.c * by, f.d * by};
}

static inline tv_form tv_form_add(tv_form x, tv_form y)
{
    return (tv_form){x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d};
}

static inline tv_form tv_form_per_batch(double b)
{
    return (tv_form){.b = b};
}

/* How a quantity is divided over the ranks of tensor, context and expert parallelism. */
typedef enum tv_shard {
    TV_SHARD_NONE,     /* every rank holds it whole */
    TV_SHARD_TENSOR,   /* divided by the tensor-parallel degree */
    TV_SHARD_KV_HEADS, /* ceil(heads / degree): the graph's kv_heads says how many there are */
    TV_SHARD_SEQUENCE, /* divided only where sequence parallelism is on */
    TV_SHARD_EXPERT,   /* divided by the expert-parallel (else tensor-parallel) degree */
    TV_SHARD_VOCAB,    /* divided by the tensor-parallel degree after padding */
} tv_shard;

/* The ledger's line that a storage belongs to. */
typedef enum tv_term {
    TV_TERM_ACTIVATIONS,
    TV_TERM_LOGITS,
    TV_TERM_TEMPORARIES,
    TV_TERM_WORKSPACE,
    TV_TERM_KV,
    TV_TERM_WEIGHTS,
    TV_TERM_GRADIENTS,
    TV_TERM_OPTIMIZER,
    TV_TERM_COMM_BUFFERS,
    TV_TERM_COUNT,
} tv_term;

#define TV_NONE UINT32_MAX

/* One allocation. Views and in-place results share their base's storage. */
typedef struct tv_storage {
    const char *what; /* for --explain: "q", "softmax output", "fp32 copy of the norm input" */
    tv_form bytes;
    tv_dtype dtype;
    tv_shard shard;
    tv_term term;
    uint32_t kind; /* the block kind it lives in; TV_NONE: global (skips, encoder output, inputs) */
    bool grad;     /* a gradient of the same size flows back to it */
    bool resident; /* stays for the whole step: the batch itself */
    bool held;     /* stays from when it is written to the end of the step: what the pass returns */
    bool cast_cache; /* autocast's 16-bit copy of a weight: stays until its backward, or until
                        the forward pass ends when nobody saved it */
} tv_storage;

typedef enum tv_op_kind {
    TV_OP_GEMM,      /* m·n·k, `groups` times */
    TV_OP_CONV,      /* as implicit GEMM: m = output positions, n = output channels per group */
    TV_OP_ATTENTION, /* a fused kernel: m = query tokens, n = keys seen, k = head dim, groups =
                        heads */
    TV_OP_NORM,
    TV_OP_SOFTMAX,
    TV_OP_ELEMENTWISE,
    TV_OP_COPY, /* casts, contiguous, concat */
    TV_OP_EMBEDDING,
    TV_OP_ROUTING, /* top-k, permute, unpermute */
    TV_OP_SCAN,    /* recurrent and state-space kernels */
    TV_OP_POOL,
    TV_OP_RESIZE,
    TV_OP_LOSS,
    TV_OP_COLLECTIVE,
    TV_OP_KIND_COUNT,
} tv_op_kind;

typedef enum tv_collective_kind {
    TV_COLL_NONE,
    TV_COLL_ALL_REDUCE,
    TV_COLL_ALL_GATHER,
    TV_COLL_REDUCE_SCATTER,
    TV_COLL_ALL_TO_ALL,
    TV_COLL_SEND,
} tv_collective_kind;

/* A run of indices in the graph's pool. */
typedef struct tv_ids {
    uint32_t first;
    uint32_t n;
} tv_ids;

typedef struct tv_op {
    tv_op_kind kind;
    const char *name; /* module path inside its block: "self_attn.q_proj" */
    uint32_t block;   /* block kind */

    tv_form flop;     /* forward; a multiply-add counts two */
    double backward;  /* backward FLOPs as a multiple of the forward ones: 0 nothing flows back,
                         1 the input's gradient only, 2 input and weight, 2.5 flash attention */
    tv_dtype compute; /* type of the multiplies */
    tv_form m;        /* shape for the efficiency tables, see the kinds above; a batched product
                         has m constant and its groups per B */
    double n;
    double k;
    double groups;
    double window; /* attention: forms are evaluated with at most this many cached tokens; 0: all */

    tv_form read_bytes; /* activations read and written by the forward kernels */
    tv_form write_bytes;
    tv_form backward_bytes; /* activation traffic of the backward kernels */
    double weight_bytes;    /* parameters streamed once per call; for experts: all of them */
    double experts;         /* > 0: of weight_bytes only the distinct experts hit are read ... */
    double expert_top_k;    /* ... with this many per token and m tokens */
    tv_form kv_read_bytes;  /* cache traffic when decoding */
    tv_form kv_write_bytes;

    uint32_t first_weight; /* the parameters it uses: a run in the graph's weights */
    uint32_t n_weights;
    tv_ids reads; /* storages; liveness and gradients follow from reads, writes and saved */
    tv_ids writes;
    tv_ids saved;               /* kept from forward to this op's backward */
    tv_form temp_forward_bytes; /* alive only while the op runs */
    tv_form temp_backward_bytes;
    tv_shard temp_shard;

    tv_shard shard;    /* how flop and streams divide */
    uint16_t launches; /* kernels issued forward, and backward */
    uint16_t backward_launches;
    tv_collective_kind collective; /* TV_OP_COLLECTIVE: over the tensor-parallel group, or the
                                      expert group for all-to-all; bytes per rank */
    tv_form collective_bytes;
    bool attention_core; /* what selective recompute drops and runs again */
    uint32_t region;     /* operators with the same number lie under a checkpoint of the program's
                            own: they run again in backward; 0: they do not */
    bool grad_reuses_saved; /* backward writes the input's gradient over what was saved (Paddle's
                               cross entropy, in-place activations) */
} tv_op;

typedef enum tv_weight_role {
    TV_WEIGHT_MATRIX, /* linear or convolution: what quantisation touches */
    TV_WEIGHT_EXPERT, /* the same, one of many experts */
    TV_WEIGHT_EMBEDDING,
    TV_WEIGHT_HEAD, /* output projection to the vocabulary */
    TV_WEIGHT_NORM,
    TV_WEIGHT_BIAS,
    TV_WEIGHT_OTHER,   /* positions, class tokens, scan parameters */
    TV_WEIGHT_ADAPTER, /* LoRA A and B */
} tv_weight_role;

/* A parameter tensor, or `count` equal ones (experts). */
typedef struct tv_weight {
    const char *name;
    uint32_t block;
    tv_weight_role role;
    double elements; /* of all `count` tensors together */
    double count;
    double rows; /* of one tensor, as a matrix (rows·cols = elements / count) */
    double cols;
    tv_dtype dtype;  /* in memory under the policy */
    double bytes;    /* in memory under the policy, scales of quantisation included */
    tv_dtype stored; /* in the file; TV_DTYPE_UNKNOWN when no file says so */
    bool trainable;
    bool shared; /* one tensor for all repetitions of its block (tied or cross-layer shared) */
    tv_shard shard;
} tv_weight;

typedef enum tv_stage { TV_STAGE_EMBED, TV_STAGE_BODY, TV_STAGE_HEAD } tv_stage;

/* A block kind: the unit that repeats, recomputes and shards. Its formal input is whatever the
 * block before it put out. */
typedef struct tv_block {
    const char *name;
    tv_stage stage;
    uint32_t first_op, n_ops;
    uint32_t first_storage, n_storages;
    uint32_t first_weight, n_weights;
    uint32_t in;  /* storage that stands for the previous block's output; TV_NONE: none */
    uint32_t out; /* storage handed on; TV_NONE: hands on what it got */
    /* state kept between tokens, per layer of this kind */
    double kv_width;    /* elements per token (K and V together; latent width for MLA); 0: none */
    double kv_heads;    /* 0: not divided over ranks (MLA) */
    double kv_window;   /* tokens, 0: all */
    double state_bytes; /* recurrent state per sequence */
} tv_block;

typedef struct tv_graph {
    tv_block *blocks;
    size_t n_blocks;
    uint32_t *order; /* block kinds as they run, one entry per layer */
    size_t n_order;
    tv_storage *storages;
    size_t n_storages;
    tv_op *ops;
    size_t n_ops;
    tv_weight *weights;
    size_t n_weights;
    uint32_t *ids; /* the pool of tv_ids */
    size_t n_ids;
    double tokens_per_sample; /* sequence length, or 0 for images */
    double heads;             /* query heads, for ceil rules */
    double params;            /* sum over weights with repetition */
    double trainable_params;
    double frozen_buffers_bytes; /* running statistics, rotary tables */
    double guessed_share; /* of the forward traffic: what rests on guesses (unknown operators) */
} tv_graph;

/* How often each block kind stands in the order. counts has n_blocks entries. */
void tv_graph_counts(const tv_graph *g, uint32_t *counts);

/* Number of copies of a weight in the model (1 for a shared one). */
double tv_weight_copies(const tv_graph *g, const uint32_t *counts, const tv_weight *w);

#endif
