/* The reading of one exported program's JSON while it goes on: shared by pt2_graph.c (names,
 * values, nodes), pt2_program.c (signature) and pt2_args.c (arguments and their kinds). */
#ifndef TV_PT2_PARTS_H
#define TV_PT2_PARTS_H

#include "pt2.h"

/* Symbols whose bounds are kept. Exports have one per dynamic dimension; those that a program makes
 * on its way (sizes that depend on data) may be more, and need none. */
#define TV_PT2_SYMBOLS 256

typedef struct tv_pt2_values {
    tv_value *v;
    size_t n, cap;
} tv_pt2_values;

typedef struct tv_pt2_ids {
    uint32_t *v;
    size_t n, cap;
} tv_pt2_ids;

/* The reading of a whole document. */
typedef struct tv_pt2_read {
    tv_arena *a;       /* what is kept */
    tv_arena *scratch; /* unescaped strings; rewound after each node and value */
    tv_json_scan scan;
    tv_pt2_values values;
    struct {
        tv_symbol *v;
        size_t n, cap;
    } symbols;
    size_t n_nodes;
    bool in_strides;   /* of which only the example counts */
    int64_t last_size; /* of the size that was read last, at the example; 0: not stated */
} tv_pt2_read;

/* A name of a graph: a tensor, or a symbolic number that stands for an expression. */
typedef struct tv_pt2_name {
    tv_str name;
    uint32_t value; /* TV_NO_VALUE: no tensor so far */
    bool symbolic;
    tv_dim dim; /* of a symbolic number, when it was stated */
} tv_pt2_name;

/* A symbolic number that a node names before the file says what it is. */
typedef struct tv_pt2_pending {
    tv_dim *at;
    uint32_t name; /* index in the graph's names */
} tv_pt2_pending;

/* One graph; bodies of conditions and loops have names of their own. */
typedef struct tv_pt2_scope {
    tv_pt2_read *r;
    struct {
        tv_pt2_name *v;
        size_t n, cap;
    } names;
    uint32_t *slots; /* hash table of names: index + 1 */
    size_t n_slots;
    struct {
        tv_pt2_pending *v;
        size_t n, cap;
    } pending;
    tv_pt2_ids inputs, outputs;
    struct {
        tv_node *v;
        size_t n, cap;
    } nodes;
} tv_pt2_scope;

/* A node while it is read. */
typedef struct tv_pt2_node {
    tv_node node;
    tv_pt2_ids inputs, outputs;
    struct {
        tv_slot *v;
        size_t n, cap;
    } slots;
    struct {
        tv_attr *v;
        size_t n, cap;
    } attrs;
} tv_pt2_node;

const tv_err *tv_pt2_broken(tv_pt2_read *r, const char *id, const char *msgid,
                            uint64_t offset) TV_CHECKED;
const tv_err *tv_pt2_too_many(tv_pt2_read *r, const char *id, const char *msgid) TV_CHECKED;
/* A copy as long as it is; lists grow in the scratch arena. */
void *tv_pt2_copy(tv_arena *a, const void *v, size_t n, size_t size);
/* A string that outlives the scratch: a view of the text, or a copy. */
tv_str tv_pt2_keep(tv_pt2_read *r, tv_str s);
/* The next event, which must have this type. */
const tv_err *tv_pt2_expect(tv_pt2_read *r, tv_json_type type, tv_json_event *event) TV_CHECKED;
const tv_err *tv_pt2_skip_next(tv_pt2_read *r) TV_CHECKED;
/* A string value; null and other types give the empty one. */
const tv_err *tv_pt2_text(tv_pt2_read *r, tv_str *s) TV_CHECKED;
const tv_err *tv_pt2_whole(tv_pt2_read *r, tv_json_event event, int64_t *v) TV_CHECKED;

/* The name's index in the scope, made when new. */
const tv_err *tv_pt2_name_of(tv_pt2_scope *g, tv_str name, uint32_t *index) TV_CHECKED;
bool tv_pt2_find(const tv_pt2_scope *g, tv_str name, uint32_t *index);
/* The tensor of that name, made when new. */
const tv_err *tv_pt2_value_of(tv_pt2_scope *g, tv_str name, uint32_t *value) TV_CHECKED;
/* A symbol occurs; example: its value when the program was taken, 0 where nothing says so. */
void tv_pt2_note_example(tv_pt2_read *r, tv_str name, int64_t example);
/* {"as_int": 3} or {"as_expr": {...}}: a size. */
const tv_err *tv_pt2_read_size(tv_pt2_read *r, tv_json_event event, tv_dim *dim) TV_CHECKED;

/* The union that event opens: an argument of a node, as operands or as an attribute. */
const tv_err *tv_pt2_read_argument(tv_pt2_scope *g, tv_pt2_node *x, tv_str name,
                                   tv_json_event event) TV_CHECKED;
/* A union that names tensors: values are appended, in order; symbolic numbers become values of
 * their own where `symbols` says so. */
const tv_err *tv_pt2_read_names(tv_pt2_scope *g, tv_json_event event, bool symbols,
                                tv_pt2_ids *ids) TV_CHECKED;
/* A graph, from its opening event. */
const tv_err *tv_pt2_read_body(tv_pt2_read *r, tv_json_event event, tv_str name,
                               const tv_body **body, tv_pt2_scope *g) TV_CHECKED;

#endif
