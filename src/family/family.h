/* The face of families: what a source means as a model. A family translates names and keys of a
 * configuration into generic layers; it decides from configuration fields, never from the name of
 * a repository. Each family is one row in a file of its own and one word in src/meson.build. */
#ifndef TV_FAMILY_H
#define TV_FAMILY_H

#include "base/err.h"
#include "desc/model.h"

typedef struct tv_family {
    const char *name;    /* "decoder", "encoder" ...; becomes tv_model.family */
    const char *summary; /* a msgid: one line for help and documents */
    /* How sure the family is that the source is its own: 0 not at all, 10 a last resort, 50 the
     * keys look right, 90 the type says so. The highest wins; equal ones: the earlier row. */
    unsigned (*claims)(const tv_source *s);
    /* Fills the model (zeroed; name and source are set) in the arena. */
    const tv_err *(*make)(tv_arena *a, const tv_source *s, tv_model *m);
} tv_family;

/* Every family, in the order of the build's list; NULL at the end. */
extern const tv_family *const tv_families[];

/* Makes the model that a source describes. Fails with TV_UNSUPPORTED where no family knows it. */
const tv_err *tv_family_model(tv_arena *a, const tv_source *s, const tv_model **out) TV_CHECKED;

/* ---- shared by families ---- */

/* The configuration's model_type and its first architecture (or diffusers class); empty: none. */
tv_str tv_family_type(const tv_source *s);
tv_str tv_family_architecture(const tv_source *s);
/* True where the text is one of the words in a list that ends with NULL. */
bool tv_family_in(tv_str s, const char *const *words);

/* Lists of a model while it is made: parts and warnings. */
void tv_family_part(tv_arena *a, tv_model *m, tv_part part);
void tv_family_warn(tv_arena *a, tv_model *m, tv_text warning);

#endif
