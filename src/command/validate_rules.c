/* Matching of rows against the two tables of data/validation. */
#include "validate_rules.h"

extern const char tv_data_validation_models_json_start[], tv_data_validation_models_json_end[];
extern const char tv_data_validation_defaults_json_start[], tv_data_validation_defaults_json_end[];

const tv_err *tv_rules_read(tv_arena *a, tv_str models, tv_str defaults, tv_rules *rules)
{
    const tv_json *m = NULL;
    const tv_json *d = NULL;
    TV_TRY(tv_json_parse(a, TV_S("validation/models.json"), models, &m));
    TV_TRY(tv_json_parse(a, TV_S("validation/defaults.json"), defaults, &d));
    *rules = (tv_rules){.models = tv_json_get(m, "map"),
                        .no_model = tv_json_get(m, "skip"),
                        .set = tv_json_get(d, "set"),
                        .leave = tv_json_get(d, "skip")};
    return NULL;
}

const tv_err *tv_rules_built_in(tv_arena *a, tv_rules *rules)
{
    return tv_rules_read(
        a, tv_str_span(tv_data_validation_models_json_start, tv_data_validation_models_json_end),
        tv_str_span(tv_data_validation_defaults_json_start, tv_data_validation_defaults_json_end),
        rules);
}

static tv_str joined(tv_arena *a, const tv_json *list)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            tv_putc(&b, ',');
        tv_put(&b, tv_json_at(list, i)->s);
    }
    return tv_buf_str(&b);
}

static tv_str node_text(tv_arena *a, const tv_json *j)
{
    switch (j->type) {
    case TV_JSON_STRING:
    case TV_JSON_NUMBER:
        return j->s;
    case TV_JSON_TRUE:
        return TV_S("true");
    case TV_JSON_FALSE:
        return TV_S("false");
    case TV_JSON_ARRAY:
        return joined(a, j);
    case TV_JSON_END:
    case TV_JSON_NULL:
    case TV_JSON_KEY:
    case TV_JSON_OBJECT:
    case TV_JSON_CLOSE:
        return (tv_str){0};
    }
    return (tv_str){0};
}

static tv_str known(tv_str s)
{
    return tv_str_is(s, "unknown") ? (tv_str){0} : s;
}

tv_str tv_row_text(tv_arena *a, const tv_row *row, tv_str field)
{
    if (tv_str_starts(field, TV_S("extra."))) {
        const tv_str key = tv_str_drop(field, 6);
        for (size_t i = 0; row->extra && i < row->extra->n; i++)
            if (tv_str_eq(row->extra->items[i].key, key))
                return known(node_text(a, &row->extra->items[i]));
        return (tv_str){0};
    }
    for (size_t i = 0; i < row->csv->n_names; i++)
        if (tv_str_eq(row->csv->names[i], field))
            return known(row->csv->fields[i]);
    return (tv_str){0};
}

/* A pattern of globs separated by '|'. */
static bool any_glob(tv_str s, tv_str patterns)
{
    for (;;) {
        const tv_cut cut = tv_str_cut(patterns, '|');
        if (tv_str_glob(s, cut.head))
            return true;
        if (!cut.found)
            return false;
        patterns = cut.tail;
    }
}

static bool applies(tv_arena *a, const tv_json *rule, const tv_row *row)
{
    const tv_json *repo = tv_json_get(rule, "repo");
    if (tv_json_str(repo).n && !any_glob(tv_row_text(a, row, TV_S("repo")), tv_json_str(repo)))
        return false;
    const tv_json *when = tv_json_get(rule, "when");
    for (size_t i = 0; i < when->n; i++)
        if (!any_glob(tv_row_text(a, row, when->items[i].key), when->items[i].s))
            return false;
    return true;
}

/* "below": {"time_us": 100}: the column holds a number under that. */
static bool below(tv_arena *a, const tv_json *rule, const tv_row *row)
{
    const tv_json *limits = tv_json_get(rule, "below");
    for (size_t i = 0; i < limits->n; i++) {
        const tv_double_read v = tv_str_double(tv_row_text(a, row, limits->items[i].key));
        if (!v.ok || v.v >= limits->items[i].number)
            return false;
    }
    return true;
}

static bool names_model(const tv_json *rule, tv_str model)
{
    const tv_json *patterns = tv_json_get(rule, "models");
    for (size_t i = 0; i < patterns->n; i++)
        if (tv_str_glob(model, tv_json_at(patterns, i)->s))
            return true;
    return false;
}

static const tv_json *find_model(tv_arena *a, const tv_json *rules, const tv_row *row)
{
    const tv_str model = tv_row_text(a, row, TV_S("model"));
    for (size_t i = 0; i < rules->n; i++)
        if (names_model(tv_json_at(rules, i), model) && applies(a, tv_json_at(rules, i), row))
            return tv_json_at(rules, i);
    return NULL;
}

const tv_json *tv_rules_model(const tv_rules *rules, tv_arena *a, const tv_row *row, tv_str *reason)
{
    const tv_json *rule = find_model(a, rules->models, row);
    if (rule)
        return rule;
    const tv_json *none = find_model(a, rules->no_model, row);
    *reason = none ? tv_json_str(tv_json_get(none, "reason"))
                   : TV_S(N_("no built-in model is known for this name"));
    return NULL;
}

tv_str tv_rules_leave(const tv_rules *rules, tv_arena *a, const tv_row *row)
{
    for (size_t i = 0; i < rules->leave->n; i++)
        if (applies(a, tv_json_at(rules->leave, i), row) &&
            below(a, tv_json_at(rules->leave, i), row))
            return tv_json_str(tv_json_get(tv_json_at(rules->leave, i), "reason"));
    return (tv_str){0};
}

/* "@extra.rank" stands for another field of the row. */
static tv_str value_of(tv_arena *a, const tv_json *rule, const tv_row *row)
{
    const tv_str s = node_text(a, tv_json_get(rule, "value"));
    if (s.n && s.p[0] == '@')
        return tv_row_text(a, row, tv_str_drop(s, 1));
    return s;
}

tv_said tv_rules_said(const tv_rules *rules, tv_arena *a, const tv_row *row, const char *field)
{
    const tv_str own = tv_row_text(a, row, tv_str_of(field));
    for (size_t i = 0; i < rules->set->n; i++) {
        const tv_json *rule = tv_json_at(rules->set, i);
        if (own.n && !tv_json_bool(tv_json_get(rule, "replaces"), false))
            continue;
        if (!tv_str_is(tv_json_str(tv_json_get(rule, "field")), field) || !applies(a, rule, row))
            continue;
        const tv_str value = value_of(a, rule, row);
        if (value.n)
            return (tv_said){value, tv_json_bool(tv_json_get(rule, "assumed"), false)};
    }
    return (tv_said){own, false};
}
