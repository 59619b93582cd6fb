/* Model records: the ones that are built in, and the same records in a user's own file
 * ("schema": "trivet.model/1", docs/models.md). A record may describe several variants. */
#ifndef TV_BUILTIN_H
#define TV_BUILTIN_H

#include "base/err.h"
#include "desc/source.h"

/* One name that can be asked for: a record with one of its variants laid over it. */
typedef struct tv_builtin {
    tv_str name;
    const tv_json *aliases; /* array, or the absent node */
    tv_str source;          /* where the facts come from */
    double params;          /* as published; 0 not stated */
    const tv_json *record;
    const tv_json *variant; /* NULL: the record alone */
} tv_builtin;

typedef struct tv_builtins {
    const tv_builtin *v; /* sorted by name */
    size_t n;
} tv_builtins;

/* Everything that is built in. */
const tv_err *tv_builtin_list(tv_arena *a, tv_builtins *list) TV_CHECKED;

/* The record that a name or an alias means; case, '-', '_', ' ' and an owner before '/' do not
 * matter. *source is NULL (and no error) where no record has the name. */
const tv_err *tv_builtin_find(tv_arena *a, tv_str name, const tv_source **source) TV_CHECKED;

/* Names that are spelled nearly so, nearest first, at most three; for "did you mean". */
size_t tv_builtin_near(tv_arena *a, tv_str name, tv_str near[3]);

/* A record with the first of its variants laid over it; the record itself without variants. */
const tv_json *tv_record_first(tv_arena *a, const tv_json *doc);

#endif
