/* The protobuf wire format: walks the fields of a message in place, bounded by its bytes. Knows
 * field numbers and wire types, no message of any format.
 * Encoding: protobuf.dev/programming-guides/encoding. */
#ifndef TV_WIRE_H
#define TV_WIRE_H

#include "base/err.h"
#include "base/file.h"

typedef enum tv_wire_type {
    TV_WIRE_VARINT = 0,
    TV_WIRE_FIXED64 = 1,
    TV_WIRE_BYTES = 2, /* text, bytes, a message, packed scalars */
    TV_WIRE_FIXED32 = 5,
} tv_wire_type;

/* A message that is walked. Copying it keeps the place. */
typedef struct tv_wire {
    tv_arena *a;
    tv_str file;      /* for messages */
    const char *base; /* the file's first byte, for offsets */
    const char *p;
    const char *end;
    unsigned depth; /* messages around this one */
} tv_wire;

/* One field. Groups (an old encoding that none of our formats writes) are skipped. */
typedef struct tv_wire_field {
    uint32_t number;
    tv_wire_type type;
    uint64_t v;   /* varint and fixed: the bits */
    tv_str bytes; /* TV_WIRE_BYTES: a view into the file */
    uint64_t at;  /* offset of the field's key */
} tv_wire_field;

tv_wire tv_wire_in(tv_arena *a, tv_str file, tv_bytes_view bytes);

/* The next field; *more is false at the end of the message. Bytes behind a length are not looked
 * at. */
const tv_err *tv_wire_next(tv_wire *w, tv_wire_field *f, bool *more) TV_CHECKED;

/* The message that a field holds, as a walk of its own. */
const tv_err *tv_wire_enter(const tv_wire *w, const tv_wire_field *f, tv_wire *inner) TV_CHECKED;

/* One scalar of a field, checked against its wire type. int32 and enum come sign-extended, as
 * they are written; bool is any bit. */
const tv_err *tv_wire_u64(const tv_wire *w, const tv_wire_field *f, uint64_t *v) TV_CHECKED;
const tv_err *tv_wire_i64(const tv_wire *w, const tv_wire_field *f, int64_t *v) TV_CHECKED;
const tv_err *tv_wire_i32(const tv_wire *w, const tv_wire_field *f, int32_t *v) TV_CHECKED;
const tv_err *tv_wire_bool(const tv_wire *w, const tv_wire_field *f, bool *v) TV_CHECKED;
/* float (32 bits) and double. */
const tv_err *tv_wire_f32(const tv_wire *w, const tv_wire_field *f, double *v) TV_CHECKED;
const tv_err *tv_wire_f64(const tv_wire *w, const tv_wire_field *f, double *v) TV_CHECKED;
/* string and bytes: not checked for UTF-8. */
const tv_err *tv_wire_str(const tv_wire *w, const tv_wire_field *f, tv_str *s) TV_CHECKED;

/* Repeated scalars: each field holds one, or, packed, any number. `n` counts all of them over all
 * fields; only the first `keep` are stored. */
typedef struct tv_wire_ints {
    int64_t *v;
    size_t kept, cap;
    size_t keep;
    uint64_t n;
} tv_wire_ints;
typedef struct tv_wire_floats {
    double *v;
    size_t kept, cap;
    size_t keep;
    uint64_t n;
} tv_wire_floats;

/* int32, int64, uint64, enum, bool. */
const tv_err *tv_wire_add_ints(const tv_wire *w, const tv_wire_field *f,
                               tv_wire_ints *list) TV_CHECKED;
/* float (bytes = 4) and double (bytes = 8). Those that are not kept are counted by their length. */
const tv_err *tv_wire_add_floats(const tv_wire *w, const tv_wire_field *f, unsigned bytes,
                                 tv_wire_floats *list) TV_CHECKED;

/* An error at a field's place. */
const tv_err *tv_wire_broken(const tv_wire *w, const tv_wire_field *f, tv_text what) TV_CHECKED;

#endif
