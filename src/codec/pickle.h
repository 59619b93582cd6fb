/* Python pickles, protocols 0 to 5, read without executing anything: a call is kept as the name of
 * what would be called and its arguments. What the names mean is the caller's business. */
#ifndef TV_PICKLE_H
#define TV_PICKLE_H

#include "base/file.h"

typedef enum tv_pickle_kind {
    TV_PICKLE_NONE,
    TV_PICKLE_BOOL,
    TV_PICKLE_INT,
    TV_PICKLE_BIG_INT, /* more than 64 bits: s is its little-endian bytes, or its decimal text */
    TV_PICKLE_FLOAT,
    TV_PICKLE_STR,   /* UTF-8 that nobody has checked; Python 2's byte strings too */
    TV_PICKLE_BYTES, /* bytes and bytearray */
    TV_PICKLE_TUPLE,
    TV_PICKLE_LIST,
    TV_PICKLE_DICT, /* items: key, value, key, value ... in the order of writing */
    TV_PICKLE_SET,
    TV_PICKLE_GLOBAL,     /* a class or function: s is "module.name" */
    TV_PICKLE_OBJECT,     /* what a call or a class makes: see tv_pickle_object */
    TV_PICKLE_PERSISTENT, /* something kept outside: items[0] is its id */
} tv_pickle_kind;

typedef struct tv_pickle_node tv_pickle_node;

/* callee(*args), then __setstate__(state), append(items) and [key] = value. */
typedef struct tv_pickle_object {
    const tv_pickle_node *callee; /* a global, in every file that Python writes */
    const tv_pickle_node *args;   /* a tuple */
    const tv_pickle_node *state;  /* NULL: none */
    tv_pickle_node *items;        /* a list: appended or added; NULL: none */
    tv_pickle_node *pairs;        /* a dict: set by key; NULL: none */
} tv_pickle_object;

/* Nodes may be shared and may contain themselves: who walks bounds the depth and the visits. */
struct tv_pickle_node {
    tv_pickle_kind kind;
    uint32_t id; /* counts from 0 within the reader: for marks of visited nodes */
    uint32_t n;  /* of items */
    uint32_t cap;
    uint64_t offset; /* of the opcode, in the file */
    union {
        bool b;
        int64_t i;
        double f;
        tv_str s;
        const tv_pickle_node **items;
        tv_pickle_object *object;
    };
};

typedef struct tv_pickle_names {
    tv_str *v;
    size_t n;
    size_t cap;
} tv_pickle_names;

/* A reader over one or several pickles that follow each other. Strings are views of bytes. */
typedef struct tv_pickle {
    tv_str file; /* for messages */
    tv_bytes_view bytes;
    uint64_t base;           /* where bytes begin in that file */
    size_t at;               /* where the next pickle begins */
    uint32_t n_nodes;        /* so far */
    tv_pickle_names globals; /* each class and function that is named, once, even where what it
                                makes is dropped again; the first TV_LIMIT_PICKLE_GLOBALS */
} tv_pickle;

/* True where the bytes begin as a pickle of protocol 2 or later does. */
bool tv_pickle_is(tv_bytes_view bytes);

/* Reads the pickle at p->at and moves behind it. */
const tv_err *tv_pickle_next(tv_arena *a, tv_pickle *p, const tv_pickle_node **root) TV_CHECKED;

/* ---- look-ups; a node may be NULL, what is not there is NULL ---- */

const tv_pickle_node *tv_pickle_at(const tv_pickle_node *node, size_t i);
/* The value behind a text key of a dict, or of an object's pairs; the last one written. */
const tv_pickle_node *tv_pickle_get(const tv_pickle_node *node, const char *key);
/* The dict itself, or the pairs of an object (OrderedDict and its kin). */
const tv_pickle_node *tv_pickle_pairs(const tv_pickle_node *node);
/* The name of what an object is made by ("collections.OrderedDict"); empty: no such object. */
tv_str tv_pickle_class(const tv_pickle_node *node);
/* The arguments of a call of that name. */
const tv_pickle_node *tv_pickle_args(const tv_pickle_node *node, const char *callee);
/* Values with a fallback for another kind. */
tv_str tv_pickle_str(const tv_pickle_node *node);
int64_t tv_pickle_int(const tv_pickle_node *node, int64_t fallback);

#endif
