/* Which family a source belongs to. Knows the table of families and nothing of any of them. */
#include "family.h"

#include "state_dict.h"

static const tv_family *best_claim(const tv_source *s)
{
    const tv_family *best = NULL;
    unsigned most = 0;
    for (size_t i = 0; tv_families[i]; i++) {
        unsigned claim = tv_families[i]->claims(s);
        if (claim > most) {
            most = claim;
            best = tv_families[i];
        }
    }
    return best;
}

static const tv_err *unknown_source(tv_arena *a, const tv_source *s)
{
    tv_str type = tv_family_type(s);
    if (!type.n)
        type = tv_family_architecture(s);
    tv_err *e = type.n
                    ? TV_FAIL(a, TV_UNSUPPORTED, "family.unknown",
                              N_("no family knows the model type {type}"), tv_arg_str("type", type))
                    : TV_FAIL0(a, TV_UNSUPPORTED, "family.none",
                               N_("nothing in the files says what kind of model this is"));
    return tv_hint(tv_in_file(e, s->path),
                   TV_TEXT0("family.hint", N_("State a number of parameters with --params, or name "
                                              "a built-in model (trivet models).")));
}

static const tv_err *make(tv_arena *a, const tv_source *s, const tv_family *family, tv_model **out)
{
    tv_model *m = tv_new(a, tv_model, 1);
    m->family = family->name;
    m->name = s->name;
    m->source = s->path;
    m->model_type = tv_family_type(s);
    m->stated_params = s->stated_params;
    m->framework = s->paddle ? TV_PADDLE : TV_FRAMEWORK_DEFAULT;
    m->file = s->program ? s->metadata : NULL;
    TV_TRY(family->make(a, s, m));
    for (size_t i = 0; i < s->n_warnings; i++)
        tv_family_warn(a, m, s->warnings[i]);
    *out = m;
    return NULL;
}

/* Tensors alone: the architecture that their names and shapes say, where its parameters come to
 * the same number; *out stays NULL otherwise. */
static const tv_err *from_names(tv_arena *a, const tv_source *s, const tv_model **out)
{
    const tv_source *again = NULL;
    tv_model *m = NULL;
    TV_TRY(tv_state_dict_source(a, s, &again));
    const tv_family *family = again ? best_claim(again) : NULL;
    if (!family || make(a, again, family, &m))
        return NULL;
    const double held = tv_state_dict_count(s).params;
    if (m->params < 0.99 * held || m->params > 1.01 * held)
        return NULL;
    m->model_type = (tv_str){0}; /* the files say none */
    *out = m;
    return NULL;
}

const tv_err *tv_family_model(tv_arena *a, const tv_source *s, const tv_model **out)
{
    *out = NULL;
    TV_TRY(from_names(a, s, out));
    if (*out)
        return NULL;
    const tv_family *family = best_claim(s);
    tv_model *m = NULL;
    if (!family)
        return unknown_source(a, s);
    TV_TRY(make(a, s, family, &m));
    *out = m;
    return NULL;
}

tv_str tv_family_type(const tv_source *s)
{
    tv_str type = tv_json_str(tv_json_get(s->config, "model_type"));
    return type.n ? type : tv_json_str(tv_json_get(s->metadata, "general.architecture"));
}

tv_str tv_family_architecture(const tv_source *s)
{
    tv_str first = tv_json_str(tv_json_at(tv_json_get(s->config, "architectures"), 0));
    return first.n ? first : tv_json_str(tv_json_get(s->config, "_class_name"));
}

bool tv_family_in(tv_str s, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (tv_str_is(s, words[i]))
            return true;
    return false;
}

void tv_family_part(tv_arena *a, tv_model *m, tv_part part)
{
    tv_part *parts = tv_new(a, tv_part, m->n_parts + 1);
    for (size_t i = 0; i < m->n_parts; i++)
        parts[i] = m->parts[i];
    parts[m->n_parts++] = part;
    m->parts = parts;
}

void tv_family_warn(tv_arena *a, tv_model *m, tv_text warning)
{
    tv_text *warnings = tv_new(a, tv_text, m->n_warnings + 1);
    for (size_t i = 0; i < m->n_warnings; i++)
        warnings[i] = m->warnings[i];
    warnings[m->n_warnings++] = warning;
    m->warnings = warnings;
}
