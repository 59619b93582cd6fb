/* Reads model records. Knows their frame (schema, name, aliases, variants, config or layers); what
 * config and layers mean is the families' business. The records are text that the build embeds. */
#include "builtin.h"

#include <stdlib.h>
#include <string.h>

#define NEAR 3 /* edits that still count as a slip */

extern const char tv_models_start[];
extern const char tv_models_end[];

/* ---- one record and its variant ---- */

static const tv_json *member(const tv_json *object, tv_str key)
{
    for (size_t i = 0; object && object->type == TV_JSON_OBJECT && i < object->n; i++)
        if (tv_str_eq(object->items[i].key, key))
            return &object->items[i];
    return NULL;
}

static bool dropped(tv_str key)
{
    return tv_str_is(key, "variants");
}

/* base with over's members laid on top, objects member by member. */
static tv_json merged(tv_arena *a, const tv_json *base, const tv_json *over)
{
    tv_json out = *base;
    tv_json *items = tv_new(a, tv_json, base->n + over->n);
    size_t n = 0;
    for (size_t i = 0; i < base->n; i++) {
        const tv_json *new = member(over, base->items[i].key);
        if (dropped(base->items[i].key))
            continue;
        bool both = new &&new->type == TV_JSON_OBJECT && base->items[i].type == TV_JSON_OBJECT;
        items[n] = !new ? base->items[i] : both ? merged(a, &base->items[i], new) : *new;
        items[n++].key = base->items[i].key;
    }
    for (size_t i = 0; i < over->n; i++)
        if (!member(base, over->items[i].key))
            items[n++] = over->items[i];
    out.items = items;
    out.n = n;
    return out;
}

static const tv_json *whole(tv_arena *a, const tv_json *record, const tv_json *variant)
{
    static const tv_json nothing = {.type = TV_JSON_OBJECT};
    tv_json *doc = tv_new(a, tv_json, 1);
    *doc = merged(a, record, variant ? variant : &nothing);
    return doc;
}

static const tv_err *source_of(tv_arena *a, tv_str path, const tv_json *doc, tv_source **out)
{
    tv_source *s = tv_new(a, tv_source, 1);
    const tv_json *config = tv_json_get(doc, "config");
    bool is_config = config->type == TV_JSON_OBJECT;
    s->path = path;
    s->name = tv_json_str(tv_json_get(doc, "name"));
    s->config = is_config ? config : doc;
    s->kind = !is_config                           ? TV_SOURCE_BUILTIN
              : tv_json_has(config, "_class_name") ? TV_SOURCE_DIFFUSERS
                                                   : TV_SOURCE_HF_CONFIG;
    s->quantization = tv_json_has(doc, "quantization") ? tv_json_get(doc, "quantization") : NULL;
    if (!is_config && !tv_json_has(doc, "layers"))
        return tv_in_file(TV_FAIL0(a, TV_INPUT, "record.empty",
                                   N_("the model record has neither config nor layers")),
                          path);
    *out = s;
    return NULL;
}

const tv_json *tv_record_first(tv_arena *a, const tv_json *doc)
{
    const tv_json *variants = tv_json_get(doc, "variants");
    return variants->n ? whole(a, doc, &variants->items[0]) : doc;
}

/* ---- all that are built in ---- */

typedef struct builtin_list {
    tv_builtin *v;
    size_t n, cap;
} builtin_list;

static tv_builtin entry(const tv_json *record, const tv_json *variant)
{
    const tv_json *own = variant ? variant : record;
    tv_str source = tv_json_str(tv_json_get(own, "source"));
    return (tv_builtin){
        .name = tv_json_str(tv_json_get(own, "name")),
        .aliases = tv_json_get(own, "aliases"),
        .source = source.n ? source : tv_json_str(tv_json_get(record, "source")),
        .params = tv_json_num(tv_json_get(own, "params"), 0),
        .record = record,
        .variant = variant,
    };
}

static int by_name(const void *x, const void *y)
{
    return tv_str_cmp(((const tv_builtin *)x)->name, ((const tv_builtin *)y)->name);
}

const tv_err *tv_builtin_list(tv_arena *a, tv_builtins *out)
{
    const tv_json *doc = NULL;
    builtin_list list = {0};
    TV_TRY(tv_json_parse(a, TV_S("built-in models"), tv_str_span(tv_models_start, tv_models_end),
                         &doc));
    for (size_t i = 0; i < doc->n; i++) {
        const tv_json *record = &doc->items[i];
        const tv_json *variants = tv_json_get(record, "variants");
        if (!variants->n)
            *tv_push(a, &list) = entry(record, NULL);
        for (size_t k = 0; k < variants->n; k++)
            *tv_push(a, &list) = entry(record, &variants->items[k]);
    }
    if (list.n)
        qsort(list.v, list.n, sizeof *list.v, by_name);
    *out = (tv_builtins){list.v, list.n};
    return NULL;
}

/* "Meta/Llama_2-7B" and "llama-2-7b" are one: lower case, no owner, no separators. */
static tv_str plain(tv_arena *a, tv_str name)
{
    for (tv_cut c = tv_str_cut(name, '/'); c.found; c = tv_str_cut(name, '/'))
        name = c.tail;
    char *p = tv_new(a, char, name.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < name.n; i++)
        if (!strchr("-_ ", name.p[i]))
            p[n++] = name.p[i];
    return tv_str_lower(a, (tv_str){p, n});
}

static bool means(tv_arena *a, const tv_builtin *b, tv_str wanted)
{
    if (tv_str_eq(plain(a, b->name), wanted))
        return true;
    for (size_t i = 0; i < b->aliases->n; i++)
        if (tv_str_eq(plain(a, tv_json_str(&b->aliases->items[i])), wanted))
            return true;
    return false;
}

const tv_err *tv_builtin_find(tv_arena *a, tv_str name, const tv_source **source)
{
    tv_builtins all = {0};
    *source = NULL;
    TV_TRY(tv_builtin_list(a, &all));
    tv_str wanted = plain(a, name);
    for (size_t i = 0; wanted.n && i < all.n; i++) {
        if (!means(a, &all.v[i], wanted))
            continue;
        tv_source *s = NULL;
        tv_str path = tv_str_join(a, TV_S("built-in:"), all.v[i].name);
        TV_TRY(source_of(a, path, whole(a, all.v[i].record, all.v[i].variant), &s));
        *source = s;
        return NULL;
    }
    return NULL;
}

/* ---- did you mean ---- */

typedef struct near_list {
    tv_str *name;
    size_t distance[3];
    size_t n;
} near_list;

static void offer(near_list *l, tv_str name, size_t distance)
{
    size_t at = l->n;
    while (at > 0 && distance < l->distance[at - 1])
        at--;
    if (at == 3)
        return;
    if (l->n < 3)
        l->n++;
    for (size_t i = l->n - 1; i > at; i--) {
        l->name[i] = l->name[i - 1];
        l->distance[i] = l->distance[i - 1];
    }
    l->name[at] = name;
    l->distance[at] = distance;
}

size_t tv_builtin_near(tv_arena *a, tv_str name, tv_str near[3])
{
    tv_builtins all = {0};
    near_list l = {.name = near};
    if (tv_builtin_list(a, &all))
        return 0;
    tv_str wanted = plain(a, name);
    for (size_t i = 0; i < all.n; i++) {
        size_t best = tv_str_distance(a, plain(a, all.v[i].name), wanted, NEAR);
        for (size_t k = 0; k < all.v[i].aliases->n; k++) {
            size_t d = tv_str_distance(a, plain(a, tv_json_str(&all.v[i].aliases->items[k])),
                                       wanted, NEAR);
            best = d < best ? d : best;
        }
        if (best <= NEAR)
            offer(&l, all.v[i].name, best);
    }
    return l.n;
}
