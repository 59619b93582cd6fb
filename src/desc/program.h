/* A program: a model's own graph as a file on disk holds it (ONNX, Paddle's ProgramDesc and PIR, an
 * exported or captured PyTorch module). Readers write it with the operator names and attributes of
 * its dialect; the program family runs shapes through it and turns it into an op list. Says nothing
 * about what an operator means. */
#ifndef TV_PROGRAM_H
#define TV_PROGRAM_H

#include "base/file.h"
#include "base/json.h"
#include "dtype.h"

typedef enum tv_dialect {
    TV_DIALECT_NONE,
    TV_DIALECT_ONNX,   /* op "Conv", domain "" or "com.microsoft" ... */
    TV_DIALECT_PADDLE, /* op "conv2d"; PIR's "pd_op.conv2d" without its prefix, see `pir` */
    TV_DIALECT_ATEN,   /* op "aten.convolution.default"; torch.export and captures */
} tv_dialect;

/* One dimension. size >= 0: stated. Else unknown, and symbol names it or is an expression over
 * symbols ("batch", "2*s0+1"); empty: nothing is known. */
typedef struct tv_dim {
    int64_t size;
    tv_str symbol;
} tv_dim;

typedef enum tv_value_role {
    TV_VALUE_TEMP,   /* put out by a node */
    TV_VALUE_INPUT,  /* the user's data */
    TV_VALUE_WEIGHT, /* stored in the file or beside it: parameter or buffer, see `buffer` */
    TV_VALUE_NULL,   /* an optional input that is not given */
} tv_value_role;

/* A tensor of the program; index in tv_program.values. */
typedef struct tv_value {
    tv_str name;
    tv_value_role role;
    tv_dtype dtype;
    tv_str dtype_text; /* as the file writes it, when dtype is unknown */
    bool shaped;       /* rank and dims are stated */
    uint32_t rank;
    const tv_dim *dims;
    /* Sizes that the settings beside the file serve this input with, for dims that are not stated
       (rank of them; 0: not said). NULL: none. */
    const int64_t *usual;
    bool buffer;  /* a weight that no gradient reaches: running statistics, tables */
    bool frozen;  /* stated not trainable */
    bool list;    /* a sequence or tensor array; dims are an element's */
    bool strided; /* torch.export: its elements do not lie in the order of its axes */
    /* Contents, little-endian in the value's dtype, where the reader kept them: tensors of at most
     * TV_LIMIT_PROGRAM_CONST_ELEMENTS (shapes, axes, scales). Empty: not kept. */
    tv_bytes_view data;
    uint32_t storage; /* captures: values with the same number share memory; 0: unknown */
    /* captures: whether a gradient flows to it is known, and whether it does */
    bool grad_known, grad;
} tv_value;

#define TV_NO_VALUE UINT32_MAX

typedef struct tv_body tv_body;

typedef enum tv_attr_kind {
    TV_ATTR_NONE,
    TV_ATTR_INT, /* booleans too */
    TV_ATTR_FLOAT,
    TV_ATTR_STRING,
    TV_ATTR_INTS,
    TV_ATTR_FLOATS,
    TV_ATTR_STRINGS,
    TV_ATTR_VALUE, /* a tensor: index in values (its data as kept), or a value named by an
                      attribute */
    TV_ATTR_VALUES,
    TV_ATTR_BODY, /* a subgraph */
    TV_ATTR_BODIES,
    TV_ATTR_DTYPE, /* Paddle, ATen: a type by name; ONNX writes an int */
    TV_ATTR_DIMS,  /* ATen: integers of which some are symbolic; a single one has n = 1 */
    TV_ATTR_REF,   /* inside a local function: the attribute u.s of the call */
} tv_attr_kind;

typedef struct tv_attr {
    tv_str name;
    tv_attr_kind kind;
    size_t n; /* of the lists */
    union {
        int64_t i;
        double f;
        tv_str s;
        tv_dtype dtype;
        uint32_t value;
        const tv_body *body;
        const int64_t *ints;
        const double *floats;
        const tv_str *strings;
        const uint32_t *values;
        const tv_body *const *bodies;
        const tv_dim *dims;
    } u;
} tv_attr;

/* The operands that belong to one slot of an operator. ONNX has one slot per operand in order;
 * Paddle names its slots ("Filter") and some hold several. ATen names the arguments of its schema
 * ("self", "tensors"): an absent slot is an argument that is not given or is no tensor, and then an
 * attribute may have the name ("other" of add.Tensor). */
typedef struct tv_slot {
    tv_str name; /* empty: positional */
    uint32_t first, n;
} tv_slot;

typedef struct tv_node {
    tv_str op;
    tv_str domain;          /* ONNX: "" is ai.onnx; an overload of a local function is part of op,
                               "name:overload" */
    tv_str name;            /* module path where the file has one, else the file's own name */
    const uint32_t *inputs; /* values; TV_NO_VALUE: optional and not given */
    size_t n_inputs;
    const uint32_t *outputs;
    size_t n_outputs;
    const tv_slot *input_slots; /* NULL: positional */
    size_t n_input_slots;
    const tv_slot *output_slots;
    size_t n_output_slots;
    const tv_attr *attrs;
    size_t n_attrs;
    /* captures: what autograd kept for this node's backward (values); `saved_known` false: the
     * rules of the operator decide */
    bool saved_known;
    const uint32_t *saved;
    size_t n_saved;
    uint32_t region; /* captures: ran under a checkpoint, see regions; 0: it did not */
} tv_node;

/* Captures: nodes with the same region number (index + 1) run again when backward reaches them;
 * until then only what came into the region is kept. Their `saved` is what the second run keeps. */
typedef struct tv_region {
    const uint32_t *keeps;
    size_t n_keeps;
} tv_region;

/* A list of nodes that runs in order: the main graph, a branch, a loop body, a local function.
 * All bodies of a program number their values in one space, so that an inner node may read an outer
 * value. */
struct tv_body {
    tv_str name;
    const uint32_t *inputs; /* without weights */
    size_t n_inputs;
    const uint32_t *outputs;
    size_t n_outputs;
    const tv_node *nodes;
    size_t n_nodes;
};

/* ONNX local functions: called like an operator, values bound by position at each call. */
typedef struct tv_function {
    tv_str domain;
    tv_str name;
    const tv_body *body;
    const tv_str *attributes; /* parameters that inner nodes refer to */
    size_t n_attributes;
    const tv_attr *defaults; /* further parameters, with the values that a call may leave out */
    size_t n_defaults;
} tv_function;

typedef struct tv_opset {
    tv_str domain;
    int64_t version;
} tv_opset;

/* A symbol that dimensions are made of, as the file bounds it. */
typedef struct tv_symbol {
    tv_str name;
    int64_t min, max; /* max 0: without end */
    int64_t example;  /* its value when the program was taken; 0: not stated */
} tv_symbol;

typedef struct tv_program {
    tv_dialect dialect;
    bool pir;
    const tv_value *values;
    size_t n_values;
    const tv_body *main;
    const tv_function *functions;
    size_t n_functions;
    const tv_opset
        *opsets; /* versions of the operator sets; Paddle: one row, its program version */
    size_t n_opsets;
    const tv_symbol *symbols; /* torch.export; may be empty where symbols occur */
    size_t n_symbols;
    tv_str architecture; /* as the settings beside the file call it: "DETR"; for messages only */
    tv_str producer;     /* "pytorch 2.1", "paddle2onnx 1.0" */
    tv_str batch_symbol; /* captures: the symbol that stands for the batch; empty: told from the
                            inputs */
    bool training;       /* captures: taken in training mode, with saved tensors */
    const tv_region *regions;
    size_t n_regions;
} tv_program;

/* The attribute of that name, or NULL. */
const tv_attr *tv_node_attr(const tv_node *n, const char *name);
int64_t tv_node_int(const tv_node *n, const char *name, int64_t fallback);
double tv_node_float(const tv_node *n, const char *name, double fallback);
tv_str tv_node_string(const tv_node *n, const char *name);
/* Integers of a list (a single integer counts as a list of one); 0 when absent. */
size_t tv_node_ints(const tv_node *n, const char *name, const int64_t **v);
/* The i-th input; TV_NO_VALUE where it is not given. */
uint32_t tv_node_in(const tv_node *n, size_t i);
uint32_t tv_node_out(const tv_node *n, size_t i);
/* The i-th value of a named slot (Paddle); TV_NO_VALUE where there is none. */
uint32_t tv_node_in_slot(const tv_node *n, const char *slot, size_t i);
uint32_t tv_node_out_slot(const tv_node *n, const char *slot, size_t i);
/* Elements of a value whose dims are all stated; 0 when not. */
uint64_t tv_value_elements(const tv_value *v);

#endif
