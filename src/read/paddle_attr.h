/* One attribute of a Paddle operator as the protobuf holds it: every number and text, before it is
 * known what the numbers refer to. Only for src/read. */
#ifndef TV_PADDLE_ATTR_H
#define TV_PADDLE_ATTR_H

#include "paddle.h"

#include "codec/wire.h"

/* framework.proto, AttrType. */
enum tv_paddle_attr_type {
    TV_PADDLE_INT,
    TV_PADDLE_FLOAT,
    TV_PADDLE_STRING,
    TV_PADDLE_INTS,
    TV_PADDLE_FLOATS,
    TV_PADDLE_STRINGS,
    TV_PADDLE_BOOL,
    TV_PADDLE_BOOLS,
    TV_PADDLE_BLOCK,
    TV_PADDLE_LONG,
    TV_PADDLE_BLOCKS,
    TV_PADDLE_LONGS,
    TV_PADDLE_DOUBLES,
    TV_PADDLE_VAR,
    TV_PADDLE_VARS,
    TV_PADDLE_DOUBLE,
    TV_PADDLE_SCALAR,
    TV_PADDLE_SCALARS,
};

typedef struct tv_paddle_attr {
    tv_str name;
    tv_wire_ints ints;
    tv_wire_floats floats;
    struct {
        tv_str *v;
        size_t n;
        size_t cap;
    } strings;
    uint64_t type;
} tv_paddle_attr;

/* Bookkeeping of the framework that no cost follows from; call stacks are most of a file and
 * carry the author's paths. */
bool tv_paddle_passes_over(tv_str name);

/* The field is one attribute of an operator. Of one that is passed over, the name alone is read. */
const tv_err *tv_paddle_read_attr(const tv_wire *w, const tv_wire_field *f,
                                  tv_paddle_attr *raw) TV_CHECKED;

/* What needs nothing but the attribute itself: all but blocks and variables. */
void tv_paddle_take_attr(const tv_paddle_attr *raw, tv_attr *attr);

#endif
