/* What the emitter's files share; nobody else includes it. */
#ifndef TV_EMIT_PARTS_H
#define TV_EMIT_PARTS_H

#include "emit.h"

/* A handful of storages being collected for one op. */
typedef struct tv_few {
    uint32_t v[16];
    size_t n;
} tv_few;

/* A weight being declared. */
typedef struct tv_weight_plan {
    const char *name;
    tv_weight_role role;
    double rows, cols, count;
    tv_shard shard;
    bool no_quant;
    bool adapter;
} tv_weight_plan;

void tv_few_add(tv_few *f, uint32_t storage);
bool tv_emit_trains(const tv_emit *e);
/* Autocast decides about this op's input: casts at matmuls, fp32 at norms. */
bool tv_emit_autocast(const tv_emit *e);
/* The type that values have where matrices are multiplied (TF32 is stored as F32). */
tv_dtype tv_emit_matmul_dtype(const tv_emit *e);
const char *tv_emit_path(tv_emit *e, const char *name);
tv_form tv_emit_bytes(tv_form n, tv_dtype dtype);
tv_form tv_emit_val_bytes(tv_val v);
tv_shard tv_emit_shard_of(const tv_emit *e, tv_val v);
/* A storage of the current block. */
uint32_t tv_emit_storage(tv_emit *e, const char *what, tv_form bytes, tv_dtype dtype,
                         tv_shard shard, bool grad);
/* The policy keeps such a weight in its quantised base type (as long as it is frozen). */
bool tv_emit_quantised(const tv_emit *e, tv_weight_plan plan);
tv_weight *tv_emit_declare(tv_emit *e, tv_op *op, tv_weight_plan plan);
/* A cast copy (x itself when it has that type already). */
tv_val tv_emit_cast(tv_emit *e, const char *what, tv_val x, tv_dtype dtype);
/* Autocast's 16-bit copy of a weight; TV_NONE where there is none. kept: the weight trains. */
tv_val tv_emit_cast_weight(tv_emit *e, double elements, bool kept);
/* An op that streams activations: x (and y) in, one value out; saves what is listed. */
typedef struct tv_stream {
    tv_op_kind kind;
    const char *name, *what;
    tv_val x, y; /* y.storage TV_NONE: one input */
    tv_form n;   /* elements put out */
    tv_dtype dtype;
    tv_few saved;
    bool saves_out;
    double flop_per_out;
    tv_form temp_forward, temp_backward; /* bytes */
    double extra_forward_bytes_per_out;  /* traffic of the intermediate passes */
    double extra_backward_bytes_per_out;
    int launches, backward_launches;
    bool core;
} tv_stream;

tv_val tv_emit_stream(tv_emit *e, const tv_stream *s);

/* Is the path one of the comma-separated names (or ends with ".name", or fits it as a glob)? */
bool tv_emit_name_in(tv_str path, tv_str names);
/* A module that is trained whole beside adapters. */
bool tv_emit_is_saved(const tv_emit *e, const char *path);

#endif
