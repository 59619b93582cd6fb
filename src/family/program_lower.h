/* From the steps of a run to ops: what the parts of the program family share. A program is run at
 * a few batch sizes (trials); what was one module before the export is found again (match), views
 * are told from copies (layout), the list is cut into blocks (units), and each item is put on a
 * graph through desc/emit.h (ops). Nothing here knows a dialect's operators. */
#ifndef TV_PROGRAM_LOWER_H
#define TV_PROGRAM_LOWER_H

#include "program_run.h"

#include "desc/model.h"
#include "desc/source.h"

/* ---- trials ---- */

#define TV_TRIALS 4

/* The same program at several sizes: every quantity becomes a form by what it was at each. */
typedef struct tv_trials {
    const tv_run *run[TV_TRIALS];
    double batch[TV_TRIALS];
    double past[TV_TRIALS];
    size_t n;    /* 1: linear in the batch; 3: batches b, b + 1, b + 2; 4: one more cached length */
    bool scaled; /* the program states its batch, or its steps change with it */
} tv_trials;

/* seq, image sizes and training of `sizes` are taken; its batch and past are the trials' own.
 * cached: inputs hold so many earlier tokens, and the forms say how things grow with them. */
const tv_err *tv_trials_run(tv_arena *a, const tv_program *p, const tv_run_sizes *sizes,
                            bool cached, tv_trials *out) TV_CHECKED;
/* The form through what the quantity was at each trial. */
tv_form tv_trials_fit(const tv_trials *t, const double q[TV_TRIALS]);
tv_form tv_trials_elements(const tv_trials *t, uint32_t value);

/* ---- items ---- */

typedef enum tv_item_kind {
    TV_ITEM_STEP,       /* one step as it is */
    TV_ITEM_ALIAS,      /* no kernel: the output is in[0]'s memory */
    TV_ITEM_CONTIGUOUS, /* a view that strides cannot express: written out */
    TV_ITEM_ATTENTION,  /* in: q, k, v, then whatever masks the scores */
    TV_ITEM_NORM,       /* in: x; weight and bias apart */
    TV_ITEM_ACT,        /* in: x */
} tv_item_kind;

/* A step, or what was found to be one module before it was exported as several. */
typedef struct tv_item {
    tv_item_kind kind;
    uint32_t step; /* the last of its steps: gives place, name and repetitions */
    const uint32_t *in, *out;
    size_t n_in, n_out;
    uint32_t weight, bias; /* run values; TV_NO_VALUE: none */
    tv_act act;
    tv_norm_kind norm;
    uint32_t norm_step;      /* the step with the statistics, for their number; else TV_NO_VALUE */
    double width;            /* of a found norm */
    uint32_t scores, values; /* attention: steps of the two products */
    bool causal, learned_mask, upcast;
    double dropout;
    uint32_t kv_source; /* attention: the keys before they were repeated to all heads */
    bool in_place;      /* found to be writable over its input */
    bool copies_in;     /* in[0] must be written out before a product reads it */
    bool folded_norm;   /* a convolution that a batch norm was folded into */
    tv_str path;        /* module path */
    const char *name;   /* path inside its block */
    uint32_t segment;
} tv_item;

/* ---- parameters ---- */

typedef struct tv_lowered_param {
    const tv_value *from; /* as stored */
    tv_str name;
    bool parameter; /* else a constant or a buffer */
    bool declared;  /* on the graph being written */
    bool used;
    uint32_t weight; /* on the graph being written: 1 + index; 0: not settled */
    double elements;
    double stored_bytes; /* with scales of quantisation */
} tv_lowered_param;

/* ---- segments ---- */

typedef struct tv_segment {
    uint32_t first, n; /* items */
    tv_str unit;       /* key of its container; empty: none */
    tv_stage stage;
    uint32_t in, out;     /* roots handed on; TV_NO_VALUE: none */
    const double *tokens; /* what must agree for two segments to be one kind */
    size_t n_tokens;
} tv_segment;

typedef struct tv_lower {
    tv_arena *a;    /* given back when the graph is written */
    tv_arena *keep; /* names that the graph refers to */
    const tv_program *program;
    const tv_trials *t;
    const tv_run *run; /* the first trial */
    const tv_setting *set;
    const double *kv_width; /* per input of the main graph: elements a token in the cache */
    bool recorded;          /* a capture whose types and saved tensors are taken as they are */

    /* by run value */
    uint32_t *maker; /* step; TV_NO_VALUE: none */
    uint32_t *uses;
    uint32_t *user; /* the last step that reads it */
    bool *is_output;
    uint32_t *item_of; /* item that puts it out; TV_NO_VALUE: none */
    uint32_t *root;    /* the value whose memory it is */
    int64_t (*stride)[TV_LIMIT_RANK];
    tv_lowered_param *param; /* by the run value that stands for the parameter */
    uint32_t *param_of;      /* of a weight operand; TV_NO_VALUE: none */

    struct { /* parameters that only constants are made from */
        const tv_value **v;
        size_t n, cap;
    } behind;

    bool *absorbed; /* by step */
    struct {
        tv_item *v;
        size_t n, cap;
    } items;
    struct {
        tv_segment *v;
        size_t n, cap;
    } segments;

    /* while a graph is written */
    tv_emit *e;
    tv_val *val;                /* by root */
    uint32_t *made_in;          /* by root: segment; TV_NO_VALUE: an input, or never */
    bool *global;               /* by root: read beyond the next segment */
    uint32_t *recorded_storage; /* by number of a capture's storage; TV_NONE: none yet */
    uint32_t *run_of;           /* by program value: the run value that it is; TV_NO_VALUE: none */
    bool *weight_storage;       /* by the same number: a weight's own */
    size_t n_recorded;
    uint32_t item_op;                /* first op of the item that is being written */
    double guessed_bytes, all_bytes; /* forward traffic at the first trial's batch */
    double guessed_flop, all_flop;
} tv_lower;

/* Whether an op of the block that is being written may name a storage. */
static inline bool tv_lower_sees(const tv_lower *l, uint32_t storage)
{
    if (storage >= l->e->g->n_storages)
        return false;
    const uint32_t kind = l->e->g->storages[storage].kind;
    return kind == TV_NONE || kind == l->e->block;
}

static inline const tv_step *tv_lower_step(const tv_lower *l, uint32_t step)
{
    return &l->run->steps[step];
}

static inline const tv_run_value *tv_lower_value(const tv_lower *l, uint32_t v)
{
    return &l->run->values[v];
}

/* True where v stands for a stored weight (operands of products, norms ...). */
static inline bool tv_lower_is_weight(const tv_lower *l, uint32_t v)
{
    return v != TV_NO_VALUE && l->run->values[v].weight != TV_NO_VALUE;
}

/* A number, where v is a tensor of one known or stored element. */
bool tv_lower_scalar(const tv_lower *l, uint32_t v, double *x);

/* Tables that the passes read (program_lower.c). */
void tv_lower_open(tv_lower *l);
/* Steps into items; what was exported in pieces becomes one (program_match.c). */
void tv_lower_match(tv_lower *l);
/* Attention over several steps, ending at the softmax `step`; false: none
 *
 * (program_match_attention.c). */
bool tv_match_attention(tv_lower *l, uint32_t step);
/* Views and copies by strides; the memory that each value lies in (program_layout.c). */
void tv_lower_layout(tv_lower *l);
/* Which stored tensors are parameters; what they are called (program_params.c). */
void tv_lower_params(tv_lower *l);
/* Module paths, segments, what is handed on (program_units.c). */
void tv_lower_units(tv_lower *l);
/* What decides whether a segment is the same kind as another: call it before the segment is
 * written, since parameters that are declared by then count as shared. */
void tv_lower_tokens(tv_lower *l, tv_segment *s);
/* Puts an item's ops on the open block (program_ops.c). */
void tv_lower_item(tv_lower *l, const tv_item *item);
/* A step's quantity as a form. */
typedef double (*tv_quantity)(const tv_run *r, const tv_step *s);
tv_form tv_lower_fit(const tv_lower *l, uint32_t step, tv_quantity of);
/* Attention, found or of one step (program_ops_attention.c). */
void tv_lower_attention(tv_lower *l, const tv_item *item);
/* Replaces what an item's ops, from first_op on, keep by what a capture recorded
 * (program_recorded.c). */
void tv_lower_recorded(tv_lower *l, const tv_item *item, uint32_t first_op);
/* The loss on the main output; does nothing where the program has its own. */
void tv_lower_loss(tv_lower *l);
/* The value that the loss is put on; TV_NO_VALUE: none. */
uint32_t tv_lower_main_output(const tv_lower *l);
/* What the loss would be: words for the model's warnings; msgid NULL: the program has its own. */
tv_text tv_lower_loss_words(const tv_lower *l);

tv_val tv_lower_operand(const tv_lower *l, uint32_t v);
void tv_lower_result(tv_lower *l, uint32_t v, tv_val val);

/* The whole way: the graph of a program for a setting. */
const tv_err *tv_lower_graph(tv_lower *l, tv_graph **graph) TV_CHECKED;

/* Steps that were absorbed belong to an item. */
tv_item *tv_lower_push(tv_lower *l, tv_item_kind kind, uint32_t step, const uint32_t *in,
                       size_t n_in, uint32_t out);
/* The only reader of v among the steps, where v is no output; NULL otherwise. */
const tv_step *tv_lower_sole_user(const tv_lower *l, uint32_t v);
const tv_step *tv_lower_maker(const tv_lower *l, uint32_t v);
uint32_t tv_lower_index(const tv_lower *l, const tv_step *s);
/* x·factor or x + term with a plain number. */
bool tv_lower_scaled(const tv_lower *l, const tv_step *s, uint32_t *x, double *factor);
bool tv_lower_shifted(const tv_lower *l, const tv_step *s, uint32_t *x, double *term);

#endif
