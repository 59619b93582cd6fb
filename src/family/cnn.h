/* What the parts of the cnn family share: values with their shape, the running interpretation of a
 * description, and the layers that cnn_layers.c knows. */
#ifndef TV_CNN_H
#define TV_CNN_H

#include "family.h"
#include "layer_expr.h"
#include "pieces.h"

#define TV_AXES 3

/* A value with its shape per sample. */
typedef struct tv_feature {
    tv_val v;
    double c;
    double d[TV_AXES]; /* 1 for axes that are not there */
} tv_feature;

typedef struct tv_saved {
    tv_str name;
    tv_feature f;
    struct tv_saved *next;
} tv_saved;

typedef struct tv_cnn_spec {
    tv_str path;
    const tv_json *doc;
    const tv_scope *vars;
    double channels;
    double size[TV_AXES];
    unsigned axes;
} tv_cnn_spec;

typedef struct tv_cnn_run {
    tv_arena *a;
    tv_emit *e;
    const tv_cnn_spec *x;
    const tv_saved *saved;
    size_t n_saved;
    unsigned depth;
    unsigned steps;
    bool open;   /* a block kind is being written */
    bool loaded; /* the value is no output of the kind before: a kind begun here has no input */
    size_t entry, last_body; /* top-level position, and that of the last block entry */
    bool any_body;
} tv_cnn_run;

typedef struct tv_layer_call {
    const tv_json *j;
    const tv_scope *scope;
} tv_layer_call;

typedef const tv_err *(*tv_put_layer)(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                                      tv_feature *f);

/* The plain layer of that name; NULL: none. */
tv_put_layer tv_cnn_layer(tv_str op);

double tv_cnn_positions(const tv_feature *f);
double tv_cnn_elements(const tv_feature *f);
/* A member of the call's object, evaluated in its scope. */
const tv_err *tv_cnn_value(tv_cnn_run *r, tv_layer_call c, const char *key, size_t axis,
                           double fallback, double *v) TV_CHECKED;
tv_err *tv_cnn_bad(tv_cnn_run *r, const tv_json *j, tv_text what);
const tv_err *tv_cnn_act(tv_cnn_run *r, const tv_json *j, tv_str name, tv_feature *f) TV_CHECKED;
/* Layers of cnn_attention.c. */
const tv_err *tv_cnn_attention(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                               tv_feature *f) TV_CHECKED;
const tv_err *tv_cnn_table(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                           tv_feature *f) TV_CHECKED;
/* What was saved under a name. */
const tv_err *tv_cnn_saved(tv_cnn_run *r, const tv_json *j, const tv_json *name,
                           tv_feature *f) TV_CHECKED;

#endif
