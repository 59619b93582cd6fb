/* What the parts of the ONNX reader share: the state of one file, names, scopes. Only for
 * src/read/onnx*.c. Message and field numbers: github.com/onnx/onnx onnx/onnx.proto. */
#ifndef TV_ONNX_H
#define TV_ONNX_H

#include "codec/wire.h"
#include "gather.h"

/* Values by name: a table that grows. */
typedef struct tv_names {
    struct tv_name_slot *v;
    size_t cap, n;
} tv_names;
/* Makes room for n more names at once. */
void tv_names_room(tv_arena *a, tv_names *t, size_t n);
/* The slot of a name, new ones zeroed; *slot is 0 or what was stored there. */
uint32_t *tv_names_slot(tv_arena *a, tv_names *t, tv_str name);
/* What was stored under a name; 0: nothing. */
uint32_t tv_names_find(const tv_names *t, tv_str name);

/* What the system maps of a file where one byte of it is read: sixteen pages. */
enum { TV_ONNX_AROUND = 16 * 4096 };

typedef struct tv_fields {
    tv_wire_field *v;
    size_t n, cap;
} tv_fields;

/* A node of one body that reads a value of an enclosing body, inside one of its own bodies. */
typedef struct tv_capture {
    uint32_t reader, producer; /* nodes of the enclosing body */
} tv_capture;

/* The names that a body may read: its own, then those of the bodies around it. */
typedef struct tv_scope tv_scope;
struct tv_scope {
    tv_scope *parent;
    tv_names names; /* value + 1 */
    uint32_t at;    /* the node whose inputs are looked up */
    bool late;      /* a node reads what a later one puts out */
    bool branches;  /* the node is an If: its graphs have no inputs of their own */
    struct {
        tv_capture *v;
        size_t n, cap;
    } captures;
    unsigned depth;
};

/* What is counted, for the metadata. */
typedef struct tv_onnx_counts {
    double nodes, subgraphs, subgraph_nodes;
    double initializers, initializer_elements;
    double subgraph_initializers, subgraph_initializer_elements;
    double constants, constant_elements;
    double external, sparse, value_infos, inputs_stored, training;
    double weightless, unknown_types, declared_twice, named_twice;
    tv_str twice; /* an example of each of the last two */
    tv_str same_node;
} tv_onnx_counts;

/* How often each name occurs: operators of the main graph, domains of all nodes, types of the main
 * graph's initializers. */
typedef enum tv_onnx_rows {
    TV_ONNX_OPS,
    TV_ONNX_DOMAINS,
    TV_ONNX_TYPES,
    TV_ONNX_ROWS_COUNT,
} tv_onnx_rows;
typedef struct tv_count_row {
    tv_str name;
    uint32_t n;
} tv_count_row;
typedef struct tv_count_rows {
    tv_count_row *v;
    size_t n, cap;
    tv_names names; /* index + 1 */
} tv_count_rows;

/* A file of external data, opened once. */
typedef struct tv_onnx_external {
    tv_str location;
    uint32_t file;
    bool absent; /* not there, or a git-LFS pointer */
    tv_bytes_view bytes;
} tv_onnx_external;

typedef struct tv_onnx {
    tv_gather *g;
    tv_str path;
    tv_str folder;
    uint32_t file;
    struct {
        tv_value *v;
        size_t n, cap;
    } values;
    struct {
        uint32_t *v; /* beside values: the node of its body that puts it out */
        size_t n, cap;
    } producers;
    size_t n_nodes;    /* over all bodies */
    tv_bytes_view map; /* the file, where it is mapped */
    unsigned stepped;
    tv_names tensors; /* index in the gathered tensors + 1 */
    tv_names files;   /* index in externals + 1 */
    struct {
        tv_onnx_external *v;
        size_t n, cap;
    } externals;
    tv_count_rows rows[TV_ONNX_ROWS_COUNT];
    tv_onnx_counts counts;
    tv_str graph_name;
    int64_t ir_version;
    int64_t model_version;
    tv_str producer_name, producer_version, model_domain;
    struct {
        tv_opset *v;
        size_t n, cap;
    } opsets;
    struct {
        tv_function *v;
        size_t n, cap;
    } functions;
    struct {
        tv_str *v; /* key, value, key, value ... */
        size_t n, cap;
    } properties;
    bool pytorch; /* node names hold module paths */
} tv_onnx;

/* Errors with a place. tv_onnx_named: one whose text has the argument {name}. */
const tv_err *tv_onnx_broken(tv_onnx *o, uint64_t at, const char *id, const char *msgid) TV_CHECKED;
const tv_err *tv_onnx_named(tv_onnx *o, uint64_t at, const char *id, const char *msgid,
                            tv_str name) TV_CHECKED;

/* A new value. Fails above TV_LIMIT_PROGRAM_VALUES. */
const tv_err *tv_onnx_value(tv_onnx *o, tv_value v, uint32_t producer, uint32_t *index) TV_CHECKED;

/* Makes room for n more values at once. */
void tv_onnx_room(tv_onnx *o, size_t n);

/* Says that `bytes` of the file were stepped over: from time to time the pages around those that
 * were looked at are given back. */
void tv_onnx_stepped(tv_onnx *o, uint64_t bytes);

void tv_onnx_count_row(tv_onnx *o, tv_str name, tv_onnx_rows which);

/* --- onnx_type.c --- */
tv_dtype tv_onnx_element(int64_t number);
/* "FLOAT", "INT4" ...; "type 31" where there is no name. */
tv_str tv_onnx_type_name(tv_onnx *o, int64_t number);
tv_str tv_onnx_type_of(tv_onnx *o, const tv_value *v);
/* A TypeProto: dtype, rank, dims. */
const tv_err *tv_onnx_type(tv_onnx *o, tv_wire w, tv_value *v) TV_CHECKED;
/* A StringStringEntryProto. */
const tv_err *tv_onnx_pair(tv_wire w, tv_str *key, tv_str *value) TV_CHECKED;
/* A ValueInfoProto: name and type. */
const tv_err *tv_onnx_value_info(tv_onnx *o, tv_wire w, tv_value *v) TV_CHECKED;

/* --- onnx_tensor.c --- */
typedef enum tv_onnx_place { TV_ONNX_INITIALIZER, TV_ONNX_SPARSE, TV_ONNX_ATTRIBUTE } tv_onnx_place;
/* A TensorProto (or SparseTensorProto) as a value of the program and, where it is a stored weight,
 * as a tensor of the source. name: instead of the tensor's own, may be empty. */
const tv_err *tv_onnx_tensor(tv_onnx *o, tv_wire w, tv_onnx_place place, tv_str name, tv_value *v,
                             double *elements) TV_CHECKED;
/* One warning for the files that are not there, one for tensors without data ... */
void tv_onnx_warn_tensors(tv_onnx *o);

/* --- onnx_attr.c --- */
/* An AttributeProto. owner: what its tensors are called. */
const tv_err *tv_onnx_attr(tv_onnx *o, tv_wire w, tv_scope *scope, tv_str owner,
                           tv_attr *attr) TV_CHECKED;

/* --- onnx_graph.c --- */
const tv_err *tv_onnx_graph(tv_onnx *o, tv_wire w, tv_scope *parent,
                            const tv_body **body) TV_CHECKED;
const tv_err *tv_onnx_function(tv_onnx *o, tv_wire w, tv_function *f) TV_CHECKED;

/* --- onnx_node.c --- */
/* All nodes of a body: declares what they put out, then looks up what they read. */
const tv_err *tv_onnx_nodes(tv_onnx *o, const tv_wire *w, const tv_fields *fields, tv_scope *scope,
                            tv_body *body) TV_CHECKED;
/* The value that a name means here; TV_NO_VALUE: none. */
uint32_t tv_onnx_resolve(const tv_onnx *o, tv_scope *scope, tv_str name);

/* --- onnx_order.c --- */
/* Sorts nodes so that each stands behind what it reads, otherwise in the file's order. */
const tv_err *tv_onnx_sort(tv_onnx *o, const tv_scope *scope, uint64_t at,
                           tv_body *body) TV_CHECKED;

/* --- onnx_facts.c --- */
/* What `trivet models show` tells of the file. */
const tv_json *tv_onnx_facts(tv_onnx *o, const tv_program *p);

#endif
