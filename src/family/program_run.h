/* Running a program for its shapes. At stated sizes (batch, sequence, image) every value gets a
 * concrete shape, small integer tensors get their contents, and every node becomes steps: generic
 * operations that no longer know which dialect they came from. One rule per operator name and
 * dialect writes shapes and steps at once (program_onnx*.c, program_paddle*.c, program_aten*.c);
 * program_lower.c turns steps into ops. Nothing here counts bytes, FLOPs or saved tensors. */
#ifndef TV_PROGRAM_RUN_H
#define TV_PROGRAM_RUN_H

#include "base/err.h"
#include "base/limits.h"
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
    bool constant;      /* rests on weights and constants alone: the same for every input */
    /* sequences and tensor arrays: their elements so far; shape is the first element's */
    bool list;
    const uint32_t *items;
    size_t n_items;
} tv_run_value;

/* ---- steps ---- */

/* No step stands for work that the GPU does not do in every run: outputs whose contents are known
 * (arithmetic on shapes, which runs on the host); in exported graphs (ONNX, Paddle) whatever rests
 * on constants alone, which frameworks fold when they load the file; views and copies of a weight,
 * whose result carries `weight`. Such values still appear as operands: look at `constant`, `data`
 * and `weight` before asking who made them. */

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

/* Functions of one tensor. */
typedef enum tv_fn {
    TV_FN_RELU,
    TV_FN_RELU6,
    TV_FN_LEAKY_RELU,
    TV_FN_ELU,
    TV_FN_SELU,
    TV_FN_CELU,
    TV_FN_GELU,
    TV_FN_GELU_TANH,
    TV_FN_QUICK_GELU,
    TV_FN_SILU,
    TV_FN_HARDSWISH,
    TV_FN_HARDSIGMOID,
    TV_FN_SIGMOID,
    TV_FN_LOG_SIGMOID,
    TV_FN_TANH,
    TV_FN_MISH,
    TV_FN_SOFTPLUS,
    TV_FN_SOFTSIGN,
    TV_FN_THRESHOLDED_RELU,
    TV_FN_SHRINK,
    TV_FN_CLIP,
    TV_FN_EXP,
    TV_FN_EXPM1,
    TV_FN_LOG,
    TV_FN_LOG1P,
    TV_FN_LOG2,
    TV_FN_LOG10,
    TV_FN_SQRT,
    TV_FN_RSQRT,
    TV_FN_RECIPROCAL,
    TV_FN_SQUARE,
    TV_FN_ABS,
    TV_FN_NEG,
    TV_FN_SIGN,
    TV_FN_FLOOR,
    TV_FN_CEIL,
    TV_FN_ROUND,
    TV_FN_TRUNC,
    TV_FN_ERF,
    TV_FN_LGAMMA,
    TV_FN_SIN,
    TV_FN_COS,
    TV_FN_TAN,
    TV_FN_ASIN,
    TV_FN_ACOS,
    TV_FN_ATAN,
    TV_FN_SINH,
    TV_FN_COSH,
    TV_FN_ASINH,
    TV_FN_ACOSH,
    TV_FN_ATANH,
    TV_FN_NOT, /* boolean result */
    TV_FN_BIT_NOT,
    TV_FN_IS_NAN,     /* boolean result */
    TV_FN_IS_INF,     /* boolean result */
    TV_FN_SCALE,      /* a·x + b with plain numbers */
    TV_FN_POW,        /* a plain exponent */
    TV_FN_QUANTIZE,   /* to integers with a scale */
    TV_FN_DEQUANTIZE, /* back */
    TV_FN_COUNT,
} tv_fn;

/* Functions of two tensors, broadcast against each other. */
typedef enum tv_fn2 {
    TV_FN2_ADD,
    TV_FN2_SUB,
    TV_FN2_MUL,
    TV_FN2_DIV, /* of integers: towards zero */
    TV_FN2_FLOOR_DIV,
    TV_FN2_MOD,  /* sign of the divisor */
    TV_FN2_FMOD, /* sign of the dividend */
    TV_FN2_POW,
    TV_FN2_MIN,
    TV_FN2_MAX,
    TV_FN2_EQUAL, /* from here to NOT_EQUAL: boolean result */
    TV_FN2_LESS,
    TV_FN2_LESS_EQUAL,
    TV_FN2_GREATER,
    TV_FN2_GREATER_EQUAL,
    TV_FN2_NOT_EQUAL,
    TV_FN2_AND, /* logical: boolean result */
    TV_FN2_OR,
    TV_FN2_XOR,
    TV_FN2_BIT_AND,
    TV_FN2_BIT_OR,
    TV_FN2_BIT_XOR,
    TV_FN2_SHIFT_LEFT,
    TV_FN2_SHIFT_RIGHT,
    TV_FN2_ATAN2,
    TV_FN2_PRELU, /* y broadcasts to x only: a slope per channel */
    TV_FN2_COUNT,
} tv_fn2;

typedef enum tv_reduce_kind {
    TV_REDUCE_SUM,
    TV_REDUCE_MEAN,
    TV_REDUCE_MAX,
    TV_REDUCE_MIN,
    TV_REDUCE_PROD,
    TV_REDUCE_L1,
    TV_REDUCE_L2,
    TV_REDUCE_LOG_SUM,
    TV_REDUCE_LOG_SUM_EXP,
    TV_REDUCE_SUM_SQUARE,
    TV_REDUCE_VARIANCE,
    TV_REDUCE_ANY,     /* boolean result */
    TV_REDUCE_ALL,     /* boolean result */
    TV_REDUCE_ARG_MAX, /* index result */
    TV_REDUCE_ARG_MIN,
} tv_reduce_kind;

/* What a VIEW or COPY does to the layout; a reader of steps may know better than the dialect
 * whether the framework writes it out (ONNX has no strides, torch's transpose is only strides). */
typedef enum tv_layout {
    TV_LAYOUT_OTHER,   /* pad, tile, roll, flip, one-hot: written out by everybody */
    TV_LAYOUT_RESHAPE, /* same elements in the same order */
    TV_LAYOUT_PERMUTE, /* see order */
    TV_LAYOUT_SLICE,   /* part of in[0] along axis: slice, split; an axis less: select */
    TV_LAYOUT_EXPAND,
    TV_LAYOUT_CAST,
    TV_LAYOUT_CONCAT,
    TV_LAYOUT_CLONE, /* asked for by name: contiguous, clone */
} tv_layout;

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
            tv_layout kind;
            uint8_t order[TV_LIMIT_RANK]; /* PERMUTE: axis of in[0] that each axis of out[0] is */
            uint8_t axis;                 /* SLICE, CONCAT */
        } layout;                         /* VIEW and COPY */
        struct {
            tv_fn fn;
            double a, b; /* plain numbers of SCALE, POW, CLIP */
            tv_keeps keeps;
            bool is_act; /* one of emit's activations */
            tv_act act;
            bool inplace;
            double flop_per_element;
        } unary;
        struct {
            tv_fn2 fn;     /* COUNT: where, in[0] is the condition */
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
            tv_reduce_kind kind;
            bool keeps_indices; /* max, min */
            bool keeps_input;   /* prod, l2 norm, log-sum-exp */
        } reduce;
        struct {
            uint8_t axis;   /* of in[0] */
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
    double past;  /* cached tokens, where inputs hold keys and values of earlier ones; 0: none */
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
    const uint32_t *of; /* program value -> run value that last stood for it; TV_NO_VALUE: none */
    tv_unknown_op *unknown;
    size_t n_unknown;
    size_t n_stated, n_differ; /* ATen: outputs whose shape the file states at these sizes, and
                                  those for which a rule gave another: the statement holds */
    bool batch_fixed; /* the program states its batch and does not survive another: every sample
                         costs 1/batch_stated of the program */
    double batch_stated;
    bool has_seq, has_image, has_past;     /* inputs have such an axis */
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
    int arg; /* for rules that serve several operators: a tv_fn, a tv_act ... */
};

/* Rules of one dialect and domain. Rows in any order; a name occurs once. The tables are listed
 * in program_rules.c. An operator without a row of its own is looked for again without what
 * decorates its name: ATen's overload ("aten.add.Tensor" as "aten.add"), then the underscore of
 * in-place forms ("relu_"). */
typedef struct tv_rule_table {
    tv_dialect dialect;
    const char *domain; /* ONNX; "" elsewhere */
    const tv_rule *rules;
    size_t n;
} tv_rule_table;

extern const tv_rule_table *const tv_rule_tables[]; /* NULL at the end */

/* ---- a rule reads ---- */

tv_arena *tv_run_arena(const tv_running *r);
const tv_program *tv_run_program(const tv_running *r);
bool tv_run_training(const tv_running *r);
/* Version of an operator set that the program imports; 0: not imported. */
int64_t tv_run_opset(const tv_running *r, const char *domain);

/* Run values of the node's operands; TV_NO_VALUE where they are not given. */
uint32_t tv_run_in(const tv_running *r, const tv_node *n, size_t i);
uint32_t tv_run_in_slot(const tv_running *r, const tv_node *n, const char *slot, size_t i);
/* The run value that a program's value stands for now (weights are made when first asked for). */
uint32_t tv_run_of(tv_running *r, uint32_t program_value);
/* What is known of a run value. Stays where it is while the run goes on. v must be one. */
const tv_run_value *tv_run_at(const tv_running *r, uint32_t v);
const tv_shape *tv_run_shape(const tv_running *r, uint32_t v);
/* Contents of a small tensor, or NULL. Decoded when first asked for. */
const double *tv_run_data(tv_running *r, uint32_t v);
/* Contents as whole numbers into out, at most max; false: not known, or more than max. */
bool tv_run_ints(tv_running *r, uint32_t v, int64_t *out, size_t max, size_t *n);
/* A known scalar, or fallback. */
double tv_run_scalar(tv_running *r, uint32_t v, double fallback);

/* A dimension at this run's sizes: stated, or its symbol's expression worked out; -1: not known. */
int64_t tv_run_dim(tv_running *r, const tv_dim *d);
/* Integers of an attribute (INT, INTS, DIMS, BOOL as they are; also a tensor's contents), symbols
 * worked out. 0 when absent. */
size_t tv_run_attr_ints(tv_running *r, const tv_node *n, const char *name, const int64_t **v);

/* The shape that the program itself states for an output, at this run's sizes. */
bool tv_run_stated(tv_running *r, const tv_node *n, size_t i, tv_shape *shape);
/* A value for an output whose shape depends on data: as the program states, else `most`. It counts
 * as guessed. */
uint32_t tv_run_make_guess(tv_running *r, const tv_node *n, size_t i, tv_dtype dtype,
                           const tv_shape *most);

/* ---- a rule writes ---- */

/* A new value. Nothing points to it yet. */
uint32_t tv_run_make(tv_running *r, tv_dtype dtype, const tv_shape *shape);
/* A new value with known contents (copied): an integer scalar, a shape ... Elements of shape. */
uint32_t tv_run_make_data(tv_running *r, tv_dtype dtype, const tv_shape *shape, const double *data);
void tv_run_set_data(tv_running *r, uint32_t v, const double *data); /* copied */
/* v shares x's memory; it also stands for x's weight. */
void tv_run_view_of(tv_running *r, uint32_t v, uint32_t x);
/* v holds what the weight x holds, in another form. */
void tv_run_weight_of(tv_running *r, uint32_t v, uint32_t x);
void tv_run_constant(tv_running *r, uint32_t v);
/* The shape of v, and what is computed from it, rests on a guess. */
void tv_run_guess(tv_running *r, uint32_t v);
/* A sequence of run values. */
uint32_t tv_run_make_list(tv_running *r, tv_dtype dtype, const uint32_t *items, size_t n);
/* Names v as what the node puts out. Nothing happens where the output is not given. */
void tv_run_out(tv_running *r, const tv_node *n, size_t i, uint32_t v);
void tv_run_out_slot(tv_running *r, const tv_node *n, const char *slot, size_t i, uint32_t v);
/* For readers of other things than outputs: the program's value stands for v from here on. */
void tv_run_bind(tv_running *r, uint32_t program_value, uint32_t v);
/* Pushes a step like `like` (kind and u are taken) with copies of the operand lists; dropped
 * where no GPU does it, see above. Constancy and guesses spread from inputs to outputs here: call
 * it for every operation, after the outputs' data are set. */
void tv_run_push(tv_running *r, const tv_step *like, const uint32_t *in, size_t n_in,
                 const uint32_t *out, size_t n_out);
void tv_run_warn(tv_running *r, tv_text warning);
/* The operator has no rule for this case: recorded as unknown, cost bounded from its tensors. */
const tv_err *tv_run_unknown(tv_running *r, const tv_node *n) TV_CHECKED;
/* Nodes of a body with the run's current bindings (branches, loops); times: further runs. */
const tv_err *tv_run_body(tv_running *r, const tv_body *b, double times) TV_CHECKED;
/* Runs the branch that costs more, see tv_run_cond; outputs are bound by the caller through
 * bodies' outputs. known < 0: not known. *chosen is the body that counts. */
const tv_err *tv_run_branch(tv_running *r, const tv_body *yes, const tv_body *no, int known,
                            const tv_body **chosen) TV_CHECKED;
/* Trips of a loop that are stated, else sizes.trips, else 1 with a warning. */
double tv_run_trips(tv_running *r, double stated);

/* Errors: the engine adds the operator and the node's name. Shapes are shown where given
 * ({x} and {y} in the message). */
const tv_err *tv_run_fail(tv_running *r, const char *id, const char *msgid) TV_CHECKED;
const tv_err *tv_run_fail_shapes(tv_running *r, const char *id, const char *msgid,
                                 const tv_shape *x, const tv_shape *y) TV_CHECKED;
/* The operand is missing. */
const tv_err *tv_run_need(tv_running *r, uint32_t v) TV_CHECKED;

/* ---- canonical operations: shape, contents and step at once ----
 * Operands are run values (TV_NO_VALUE: not given, where that makes sense); the result is a new
 * run value in *y, to be handed to tv_run_out or to the next operation. */

/* dtype unknown: x's own, or boolean where the function says so. a and b: for the contents of
 * SCALE (a·x + b), POW (a), CLIP (a..b). */
typedef struct tv_fn_call {
    tv_fn fn;
    tv_dtype dtype;
    bool inplace;
    double a, b;
} tv_fn_call;
const tv_err *tv_rule_fn(tv_running *r, tv_fn_call call, uint32_t x, uint32_t *y) TV_CHECKED;

typedef struct tv_fn2_call {
    tv_fn2 fn;
    tv_dtype dtype; /* unknown: promoted from x and y */
    bool inplace;
} tv_fn2_call;
const tv_err *tv_rule_fn2(tv_running *r, tv_fn2_call call, uint32_t x, uint32_t y,
                          uint32_t *z) TV_CHECKED;
/* Sum, Mean, Min, Max of any number of tensors: one step. */
const tv_err *tv_rule_many(tv_running *r, tv_fn2 fn, bool mean, const uint32_t *x, size_t n,
                           uint32_t *y) TV_CHECKED;
/* condition ? x : y. */
const tv_err *tv_rule_where(tv_running *r, uint32_t condition, uint32_t x, uint32_t y,
                            uint32_t *z) TV_CHECKED;
const tv_err *tv_rule_cast(tv_running *r, uint32_t x, tv_dtype dtype, uint32_t *y) TV_CHECKED;

/* Spatial windows. Zeros: stride and dilation 1, no padding, kernel as the weight says. */
typedef enum tv_pad_mode {
    TV_PAD_STATED,
    TV_PAD_SAME_UPPER, /* the odd element at the end */
    TV_PAD_SAME_LOWER,
    TV_PAD_VALID,
} tv_pad_mode;

#define TV_WINDOW_AXES 3

typedef struct tv_window {
    uint32_t axes; /* 0: rank of x - 2 */
    int64_t kernel[TV_WINDOW_AXES];
    int64_t stride[TV_WINDOW_AXES];
    int64_t dilation[TV_WINDOW_AXES];
    int64_t before[TV_WINDOW_AXES]; /* padding */
    int64_t after[TV_WINDOW_AXES];
    tv_pad_mode mode;
    bool ceil;       /* of output sizes */
    bool keeps_tail; /* with ceil: also windows that begin in the padding (Paddle) */
    bool channels_last;
} tv_window;

typedef struct tv_conv_call {
    tv_window w;
    int64_t groups; /* 0: 1 */
    bool transposed;
    bool weight_last;                 /* weight [out, kernel..., in/groups] */
    int64_t extra[TV_WINDOW_AXES];    /* transposed: output padding */
    int64_t out_size[TV_WINDOW_AXES]; /* transposed: stated output sizes; 0: computed */
    tv_dtype dtype;                   /* unknown: x's */
} tv_conv_call;
/* Weight [out, in/groups, kernel...], transposed [in, out/groups, kernel...]. */
const tv_err *tv_rule_conv(tv_running *r, const tv_conv_call *call, uint32_t x, uint32_t weight,
                           uint32_t bias, uint32_t *y) TV_CHECKED;

typedef struct tv_pool_call {
    tv_window w;
    bool max;                         /* else average or Lp */
    bool global;                      /* the whole image: output sizes 1 */
    int64_t adaptive[TV_WINDOW_AXES]; /* output sizes stated; 0: by the window */
    tv_dtype index_dtype;             /* of *indices */
} tv_pool_call;
/* indices NULL or the place for the second output. */
const tv_err *tv_rule_pool(tv_running *r, const tv_pool_call *call, uint32_t x, uint32_t *y,
                           uint32_t *indices) TV_CHECKED;

typedef struct tv_matmul_call {
    bool transpose_x, transpose_y; /* the last two axes */
    tv_dtype dtype;                /* unknown: promoted */
} tv_matmul_call;
/* NumPy's matmul with broadcast batch axes; ranks of one are vectors. bias is added (or not
 * given). */
const tv_err *tv_rule_matmul(tv_running *r, tv_matmul_call call, uint32_t x, uint32_t y,
                             uint32_t bias, uint32_t *z) TV_CHECKED;
/* x [..., in] by a weight [out, in] (or [in, out] where in_first): torch's and Paddle's linear. */
const tv_err *tv_rule_linear(tv_running *r, bool in_first, uint32_t x, uint32_t weight,
                             uint32_t bias, uint32_t *y) TV_CHECKED;
/* An einsum equation, with "..." ("bhid,bhjd->bhij"). */
const tv_err *tv_rule_einsum(tv_running *r, tv_str equation, const uint32_t *x, size_t n,
                             uint32_t *y) TV_CHECKED;

typedef struct tv_norm_call {
    tv_norm_kind kind;
    bool instance;      /* kind GROUP: one group per channel */
    int64_t groups;     /* kind GROUP */
    uint32_t axis;      /* LAYER and RMS: first axis of the normalised part */
    bool channels_last; /* BATCH and GROUP: channels are the last axis */
    /* running mean and variance: in[3] and in[4] of the step */
    const uint32_t *statistics;
    size_t n_statistics;
} tv_norm_call;
/* weight and bias may be missing. The result has x's shape and type. */
const tv_err *tv_rule_norm(tv_running *r, const tv_norm_call *call, uint32_t x, uint32_t weight,
                           uint32_t bias, uint32_t *y) TV_CHECKED;
const tv_err *tv_rule_softmax(tv_running *r, bool log, int64_t axis, uint32_t x,
                              uint32_t *y) TV_CHECKED;
const tv_err *tv_rule_dropout(tv_running *r, double p, uint32_t x, uint32_t *y) TV_CHECKED;

typedef struct tv_reduce_call {
    tv_reduce_kind kind;
    bool keep_axes; /* as axes of size 1 */
    tv_dtype dtype; /* unknown: x's; I64 for indices */
} tv_reduce_call;
/* Without axes: over all. */
const tv_err *tv_rule_reduce(tv_running *r, tv_reduce_call call, uint32_t x, const int64_t *axes,
                             size_t n_axes, uint32_t *y) TV_CHECKED;
/* Cumulative sum, product ...: the shape stays. */
const tv_err *tv_rule_cumulative(tv_running *r, uint32_t x, uint32_t *y) TV_CHECKED;

/* ---- layout ---- */

/* -1 once: what remains; 0: copies x's axis where zero_copies. A view. */
const tv_err *tv_rule_reshape(tv_running *r, uint32_t x, const int64_t *target, size_t n,
                              bool zero_copies, uint32_t *y) TV_CHECKED;
/* To a shape of as many elements that the caller knows: squeeze, flatten, unsqueeze. A view. */
const tv_err *tv_rule_view(tv_running *r, uint32_t x, const tv_shape *shape,
                           uint32_t *y) TV_CHECKED;
const tv_err *tv_rule_squeeze(tv_running *r, uint32_t x, const int64_t *axes, size_t n,
                              uint32_t *y) TV_CHECKED; /* n = 0: all of size 1 */
const tv_err *tv_rule_unsqueeze(tv_running *r, uint32_t x, const int64_t *axes, size_t n,
                                uint32_t *y) TV_CHECKED;
/* Axes first to last into one; last may be rank - 1. */
const tv_err *tv_rule_flatten(tv_running *r, uint32_t x, int64_t first, int64_t last,
                              uint32_t *y) TV_CHECKED;
/* order NULL: reversed. view: strides only, as in eager frameworks; else written out. */
const tv_err *tv_rule_transpose(tv_running *r, uint32_t x, const int64_t *order, size_t n,
                                bool view, uint32_t *y) TV_CHECKED;
/* To shape, with -1 (and 1) keeping x's axis. view: strides only. */
const tv_err *tv_rule_expand(tv_running *r, uint32_t x, const int64_t *shape, size_t n, bool view,
                             uint32_t *y) TV_CHECKED;
const tv_err *tv_rule_concat(tv_running *r, int64_t axis, const uint32_t *x, size_t n,
                             uint32_t *y) TV_CHECKED;
/* Joins on a new axis. */
const tv_err *tv_rule_stack(tv_running *r, int64_t axis, const uint32_t *x, size_t n,
                            uint32_t *y) TV_CHECKED;
/* parts: sizes along axis, n of them; y has room for n. */
const tv_err *tv_rule_split(tv_running *r, int64_t axis, const int64_t *parts, size_t n, bool view,
                            uint32_t x, uint32_t *y) TV_CHECKED;
/* NumPy's slices; starts and ends may be negative or past the end. */
typedef struct tv_slice {
    int64_t axis, start, end, step; /* step 0: 1 */
} tv_slice;
const tv_err *tv_rule_slice(tv_running *r, const tv_slice *s, size_t n, bool view, uint32_t x,
                            uint32_t *y) TV_CHECKED;
/* x[..., i, ...]: the axis vanishes. */
const tv_err *tv_rule_select(tv_running *r, int64_t axis, int64_t index, bool view, uint32_t x,
                             uint32_t *y) TV_CHECKED;
/* before and after: one entry per axis of x; negative crops. */
const tv_err *tv_rule_pad(tv_running *r, const int64_t *before, const int64_t *after, size_t n,
                          uint32_t x, uint32_t *y) TV_CHECKED;
const tv_err *tv_rule_tile(tv_running *r, const int64_t *repeats, size_t n, uint32_t x,
                           uint32_t *y) TV_CHECKED;
/* A copy of any shape whose bytes are moved once: roll, flip, space-to-depth, one-hot ... */
const tv_err *tv_rule_copy(tv_running *r, tv_dtype dtype, const tv_shape *shape, const uint32_t *x,
                           size_t n, uint32_t *y) TV_CHECKED;
/* Axis of x replaced by the axes of ids: embedding, index_select, Gather. */
const tv_err *tv_rule_gather(tv_running *r, int64_t axis, uint32_t x, uint32_t ids,
                             uint32_t *y) TV_CHECKED;
/* Data-dependent moves with a stated result: sort, scatter, gather of elements, top-k. */
const tv_err *tv_rule_route(tv_running *r, const uint32_t *x, size_t n, const uint32_t *y,
                            size_t n_y) TV_CHECKED;
/* New sizes of all of x's axes. */
const tv_err *tv_rule_resize(tv_running *r, bool nearest, const tv_shape *shape, uint32_t x,
                             uint32_t *y) TV_CHECKED;
/* The sizes of x as a tensor of integers. */
uint32_t tv_rule_shape_of(tv_running *r, uint32_t x, tv_dtype dtype);
/* start, start + step ... : n elements; contents where they are few. */
uint32_t tv_rule_range(tv_running *r, tv_dtype dtype, double start, double step, double n);
/* A tensor of one number; contents where it is small. fill is what writes it. */
uint32_t tv_rule_full(tv_running *r, tv_dtype dtype, const tv_shape *shape, double number);

/* ---- big kernels ---- */

typedef struct tv_rnn_call {
    double gates; /* 4, 3, 1 */
    double hidden, directions, layers;
    bool batch_first;
} tv_rnn_call;
/* x [steps, batch, input] (or batch first). *y: [steps, batch, directions·hidden] in the same
 * order; final: [layers·directions, batch, hidden]. operands: x and all weights and states, for
 * the step; n of them. */
const tv_err *tv_rule_rnn(tv_running *r, const tv_rnn_call *call, const uint32_t *operands,
                          size_t n, uint32_t *y, uint32_t *final_h, uint32_t *final_c) TV_CHECKED;

typedef struct tv_attention_call {
    bool causal;
    double dropout;
    double heads, kv_heads; /* 0: from the shapes of rank 4; rank 3 needs them */
    bool heads_third;       /* rank 4 is [batch, tokens, heads, dim], not [batch, heads, ...] */
} tv_attention_call;
/* q, k, v of rank 4 or 3 ([batch, tokens, heads·dim]). The result is laid out like q with v's
 * width. extra: mask and the like, for the step. */
const tv_err *tv_rule_attention(tv_running *r, const tv_attention_call *call, uint32_t q,
                                uint32_t k, uint32_t v, uint32_t extra, uint32_t *y) TV_CHECKED;
/* reduced: one number, else one per row. */
const tv_err *tv_rule_loss(tv_running *r, bool cross_entropy, bool reduced, uint32_t x,
                           uint32_t target, uint32_t *y) TV_CHECKED;

#endif
