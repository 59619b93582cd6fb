/* Running a program for its shapes. At stated sizes (batch, sequence, image) every value gets a
 * concrete shape, small integer tensors get their contents, and every node becomes steps: generic
 * operations that no longer know which dialect they came from. One rule per operator name and
 * dialect writes shapes and steps at once (program_onnx*.c, program_paddle*.c, program_aten*.c);
 * program_lower.c turns steps into ops. Nothing here counts bytes, FLOPs or saved tensors. */
#ifndef TV_PROGRAM_RUN_H
#define TV_PROGRAM_RUN_H

#include "base/err.h"
#include "base/text.h"
#include "desc/emit.h"
#include "desc/program.h"

/* ---- what is known of a value ---- */

typedef struct tv_shape {
    uint32_t rank;
    int64_t d[TV_LIMIT_RANK]; /* outermost first */
} tv_shape;

double tv_shape_elements(const tv_shape *s);

/* A value of the run. Calls of a local function and copies of a body have values of their own, so
 * the run numbers them itself. */
typedef struct tv_run_value {
    const tv_value *from; /* NULL: made by the run */
    bool known;           /* dtype and shape hold */
    bool guessed;         /* the shape rests on a guess (data-dependent, unknown operator) */
    tv_dtype dtype;
    tv_shape shape;
    const double *data; /* contents where they are known and few; shape.elements of them */
    uint32_t base;      /* views: the run value whose memory this is; itself otherwise */
    uint32_t weight;    /* a weight, or one seen through transpose, reshape, cast, dequantise: the
                           run value of the stored weight; TV_NO_VALUE: none */
} tv_run_value;

/* ---- steps ---- */

typedef enum tv_step_kind {
    TV_STEP_VIEW,   /* no kernel; outputs share memory with in[0] */
    TV_STEP_COPY,   /* moves bytes, saves nothing: transpose, cast, pad, tile, slice, concat, split,
                       one-hot, expand that is written out */
    TV_STEP_UNARY,  /* elementwise on one tensor, see u.unary */
    TV_STEP_BINARY, /* elementwise on two or more with broadcasting, see u.binary */
    TV_STEP_MATMUL, /* every product of matrices: Gemm, MatMul, Einsum, fc, addmm, bmm */
    TV_STEP_CONV,
    TV_STEP_POOL,
    TV_STEP_NORM,
    TV_STEP_SOFTMAX,
    TV_STEP_REDUCE, /* sum, mean, max ... over axes */
    TV_STEP_GATHER, /* look-up of rows: Gather, embedding, index_select; in[0] table, in[1] ids */
    TV_STEP_ROUTE,  /* sort, top-k, unique, non-zero, NMS, scatter: data-dependent moves */
    TV_STEP_RESIZE,
    TV_STEP_RNN,
    TV_STEP_ATTENTION, /* one fused kernel: in q, k, v */
    TV_STEP_DROPOUT,
    TV_STEP_SCAN,    /* state-space and cumulative kernels */
    TV_STEP_LOSS,    /* in logits or predictions, targets */
    TV_STEP_UNKNOWN, /* an operator without a rule: cost bounded from its tensors */
    TV_STEP_KIND_COUNT,
} tv_step_kind;

/* What a unary function keeps for its backward. */
typedef enum tv_keeps {
    TV_KEEPS_NOTHING, /* neg, scale, add a constant, floor */
    TV_KEEPS_INPUT,   /* log, silu, gelu, abs, sin */
    TV_KEEPS_OUTPUT,  /* exp, sqrt, sigmoid, tanh, relu */
    TV_KEEPS_MASK,    /* one byte per element: where, masked fill */
    TV_KEEPS_BOTH,
} tv_keeps;

typedef struct tv_step {
    tv_step_kind kind;
    const tv_node *node;
    tv_str name;        /* module path, or the node's name, or "op_17" */
    double times;       /* runs of this step in one run of the program (loop bodies); 1 outside */
    bool guessed;       /* shapes or counts rest on a guess */
    const uint32_t *in; /* run values; TV_NO_VALUE: not given */
    size_t n_in;
    const uint32_t *out;
    size_t n_out;
    union {
        struct {
            tv_keeps keeps;
            bool is_act; /* one of emit's activations */
            tv_act act;
            bool inplace;
            double flop_per_element;
        } unary;
        struct {
            bool product;  /* saves the other operand for each operand that needs a gradient */
            bool division; /* saves both */
            bool compare;  /* boolean result: no gradient */
            bool select;   /* min, max, where: saves a mask */
            bool inplace;
        } binary;
        struct {
            double groups, m, n, k; /* groups products of m·k by k·n; one operand may be broadcast
                                       over the groups */
            bool weight_left;       /* the weight is in[0], not in[1] */
            bool bias;              /* in[2] is added */
        } matmul;
        struct {
            double in_channels, out_channels, kernel, groups; /* kernel: volume */
            double positions; /* output positions of all samples together (input's if transposed) */
            bool transposed;
            bool bias;
        } conv;
        struct {
            bool max, global, average;
            bool indices;  /* the indices are an output */
            double window; /* volume */
        } pool;
        struct {
            tv_norm_kind kind; /* LAYER, RMS_FUSED, GROUP, BATCH, BATCH_FROZEN */
            bool instance;     /* statistics per sample and channel */
            double rows;       /* of statistics */
            double width;      /* parameters of the weight */
            bool affine, bias;
        } norm;
        struct {
            bool log;
        } softmax;
        struct {
            bool keeps_indices; /* max, min */
            bool keeps_input;   /* prod, l2 norm, log-sum-exp */
        } reduce;
        struct {
            bool embedding; /* a weight's rows, with a gradient of the table */
        } gather;
        struct {
            bool nearest;
        } resize;
        struct {
            double gates; /* 4 LSTM, 3 GRU, 1 plain */
            double hidden, input, directions, layers, steps, batch;
        } rnn;
        struct {
            double batch, heads, kv_heads, head_dim, v_dim, q_tokens, k_tokens;
            bool causal;
            double dropout;
        } attention;
        struct {
            double p;
        } dropout;
        struct {
            double inner, state;
        } scan;
        struct {
            bool cross_entropy;
            double classes;
        } loss;
    } u;
} tv_step;

/* ---- a run ---- */

/* Sizes that replace symbols. 0: not stated; the run takes what the program states, else its own
 * default and says so in `assumed`. */
typedef struct tv_run_sizes {
    double batch;
    double seq;
    double image_h, image_w;
    double trips; /* of loops whose count the program does not fix */
    bool training;
} tv_run_sizes;

/* Operators without a rule, by name. */
typedef struct tv_unknown_op {
    tv_str op;
    size_t n;
} tv_unknown_op;

typedef struct tv_run {
    tv_run_value *values;
    size_t n_values;
    tv_step *steps;
    size_t n_steps;
    const uint32_t *inputs; /* run values of the main graph's inputs and outputs */
    size_t n_inputs;
    const uint32_t *outputs;
    size_t n_outputs;
    tv_unknown_op *unknown;
    size_t n_unknown;
    bool batch_fixed; /* the program states its batch and does not survive another: every sample
                         costs 1/batch_stated of the program */
    double batch_stated;
    bool has_seq, has_image;               /* inputs have such an axis */
    double seq, image_h, image_w, image_c; /* that the run used */
    const tv_text *warnings;               /* what was assumed, odd or contradictory */
    size_t n_warnings;
} tv_run;

/* Runs the program. Everything lives in a. Fails (TV_INPUT) where the program contradicts itself:
 * a node reads what nobody wrote, shapes that its operator cannot take; names the node. */
const tv_err *tv_program_run(tv_arena *a, const tv_program *p, const tv_run_sizes *sizes,
                             const tv_run **out) TV_CHECKED;

/* ---- for the rules of a dialect ---- */

typedef struct tv_running tv_running; /* the run in progress */

/* One operator. A rule reads its node, sets the shape of every output and pushes steps. */
typedef struct tv_rule tv_rule;
struct tv_rule {
    const char *op;
    const tv_err *(*run)(tv_running *r, const tv_node *n, const tv_rule *rule);
    int arg; /* for rules that serve several operators: a tv_act, a tv_keeps ... */
};

#endif
