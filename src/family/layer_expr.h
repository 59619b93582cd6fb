/* Small arithmetic in model descriptions: "div8($width * 64)". Names start with a dollar sign.
 * + - * / ( ) and floor ceil round max min div8 ceil8; eq ne gt give 1 or 0. Knows no layers. */
#ifndef TV_LAYER_EXPR_H
#define TV_LAYER_EXPR_H

#include "base/err.h"
#include "base/json.h"

/* Names in scope, innermost first. */
typedef struct tv_scope tv_scope;
struct tv_scope {
    tv_str name;
    double v;
    const tv_scope *next;
};

/* A number, an expression, or a list with one value per repetition (the last one goes on).
 * Absent: fallback. */
const tv_err *tv_layer_value(tv_arena *a, const tv_scope *scope, const tv_json *j,
                             size_t repetition, double fallback, double *v) TV_CHECKED;

#endif
