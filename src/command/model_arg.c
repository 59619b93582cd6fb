/* What MODEL means: a path that exists wins over a built-in name. */
#include "model_arg.h"

#include "adapter_arg.h"
#include "family/family.h"
#include "family/state_dict.h"
#include "read/builtin.h"
#include "read/reader.h"

static const tv_err *no_model(tv_request *r)
{
    return tv_hint(TV_FAIL0(r->a, TV_USAGE, "model.none", N_("no model was named")),
                   TV_TEXT0("model.none.try", N_("Name a file, a folder or a built-in model "
                                                 "(trivet models), or give --params 7e9.")));
}

static const tv_err *unknown_model(tv_request *r, tv_str name)
{
    tv_err *e =
        TV_FAIL(r->a, TV_UNAVAILABLE, "model.unknown",
                N_("\"{name}\" is neither a file nor a built-in model"), tv_arg_str("name", name));
    tv_str near[3];
    const size_t n = tv_builtin_near(r->a, name, near);
    tv_buf b = tv_buf_in(r->a);
    for (size_t i = 0; i < n; i++) {
        if (i)
            tv_puts(&b, ", ");
        tv_put(&b, near[i]);
    }
    if (n)
        return tv_hint(e, TV_TEXT(r->a, "model.unknown.near", N_("Did you mean {names}?"),
                                  tv_arg_str("names", tv_buf_str(&b))));
    return tv_hint(e, TV_TEXT0("model.unknown.try", N_("trivet models lists the built-in ones.")));
}

const tv_err *tv_source_argument(tv_request *r, const tv_args *args, const tv_model_options *o,
                                 const tv_source **source)
{
    if (args->n == 0) {
        if (o->params > 0)
            return tv_read_params(r->a, o->params, source);
        return no_model(r);
    }
    const tv_str name = args->v[0];
    if (o->params > 0)
        return tv_hint(
            TV_FAIL0(r->a, TV_USAGE, "model.twice", N_("both a model and --params are given")),
            TV_TEXT0("model.twice.try", N_("Leave one of them out.")));
    if (tv_str_is(name, "-") || tv_file_stat(r->a, name).exists)
        return tv_read_model(r->a, name, source);
    TV_TRY(tv_builtin_find(r->a, name, source));
    return *source ? NULL : unknown_model(r, name);
}

static tv_json *members(tv_arena *a, const tv_json *j)
{
    tv_json *v = tv_new(a, tv_json, j->n + 1);
    for (size_t i = 0; i < j->n; i++)
        v[i] = j->items[i];
    return v;
}

/* The record with another number of classes among its variables. */
static const tv_source *with_classes(tv_arena *a, const tv_source *s, double classes)
{
    tv_source *copy = tv_new(a, tv_source, 1);
    tv_json *record = tv_new(a, tv_json, 1), *top = members(a, s->config);
    for (size_t i = 0; i < s->config->n; i++) {
        if (!tv_str_is(top[i].key, "vars"))
            continue;
        tv_json *vars = members(a, &top[i]);
        for (size_t k = 0; k < top[i].n; k++)
            if (tv_str_is(vars[k].key, "classes"))
                vars[k].number = classes;
        top[i].items = vars;
    }
    *copy = *s;
    *record = *s->config;
    record->items = top;
    copy->config = record;
    return copy;
}

/* A state dict whose names are a built-in model's, and whose parameters come to the same number,
 * is that model. */
static const tv_err *twin_of(tv_request *r, const tv_source *source, const tv_model **out)
{
    const tv_str name = tv_state_dict_builtin(r->a, source);
    const tv_source *builtin = NULL;
    *out = NULL;
    if (name.n == 0)
        return NULL;
    TV_TRY(tv_builtin_find(r->a, name, &builtin));
    const double classes = tv_state_dict_classes(source);
    if (builtin && builtin->config && classes > 0)
        builtin = with_classes(r->a, builtin, classes);
    const tv_model *m = NULL;
    if (!builtin || tv_family_model(r->a, builtin, &m) ||
        m->params != tv_state_dict_count(source).params)
        return NULL;
    tv_model *twin = tv_new(r->a, tv_model, 1);
    *twin = *m;
    twin->name = source->name;
    twin->source = source->path;
    tv_family_warn(r->a, twin,
                   TV_TEXT(r->a, "state.builtin",
                           N_("no configuration: the tensors are those of {name}, whose image size "
                              "is taken"),
                           tv_arg_str("name", name)));
    for (size_t i = 0; i < source->n_warnings; i++)
        tv_family_warn(r->a, twin, source->warnings[i]);
    *out = twin;
    return NULL;
}

const tv_err *tv_model_of(tv_request *r, const tv_source *source, const tv_model_options *o,
                          const tv_model **out)
{
    if (source->adapter)
        return tv_adapter_argument(r, source->adapter, o->base, out);
    if (o->base.n)
        return tv_hint(TV_FAIL0(r->a, TV_USAGE, "model.base",
                                N_("--base goes with an adapter, and the model is none")),
                       TV_TEXT0("model.base.try", N_("Leave it out.")));
    TV_TRY(twin_of(r, source, out));
    return *out ? NULL : tv_family_model(r->a, source, out);
}

const tv_err *tv_model_argument(tv_request *r, const tv_args *args, const tv_model_options *o,
                                const tv_model **out)
{
    const tv_source *source = NULL;
    TV_TRY(tv_source_argument(r, args, o, &source));
    return tv_model_of(r, source, o, out);
}
