/* torch.export archives, inside: the graph's JSON, its expressions, and the tensors beside it.
 * Only for src/read. */
#ifndef TV_PT2_H
#define TV_PT2_H

#include "codec/zip.h"
#include "gather.h"

/* What an input of the graph stands for. */
typedef enum tv_pt2_role {
    TV_PT2_PARAMETER,
    TV_PT2_BUFFER,   /* in the state dict, unless it is not persistent */
    TV_PT2_CONSTANT, /* a tensor that the code made while it was traced */
    TV_PT2_TENSOR_ROLES,
} tv_pt2_role;

/* A stored tensor that the graph reads. */
typedef struct tv_pt2_weight {
    tv_str name; /* as the module calls it: "layer1.0.conv1.weight" */
    tv_pt2_role role;
    tv_value *at; /* its value in the program, for contents and storage */
    bool found;   /* in a table of the archive */
} tv_pt2_weight;

typedef struct tv_pt2_graph {
    const tv_program *program;
    tv_pt2_weight *weights; /* in the order of the signature */
    size_t n_weights;
    tv_str verifier; /* "TRAINING", "ATEN", "CORE_ATEN", or empty */
} tv_pt2_graph;

/* The JSON of an exported program, schema versions 1 to 8. file is for messages. */
const tv_err *tv_pt2_read_graph(tv_arena *a, tv_str file, tv_str text,
                                tv_pt2_graph *out) TV_CHECKED;

/* A size or stride as the file writes it: sympy's printed form ("2*s0 + 1") is kept, its
 * constructor form ("Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))") is turned into
 * the printed one. What cannot be read is kept as it is. */
tv_str tv_pt2_expression(tv_arena *a, tv_str text);

/* A module's path from the stack of modules that a node carries
 * ("L__self__,,M;L__self___layer1,layer1.0,torch.nn.Conv2d": "layer1.0"). */
tv_str tv_pt2_module(tv_arena *a, tv_str stack);

/* The schema's number of an element type. */
tv_dtype tv_pt2_dtype(uint64_t number);

#endif
