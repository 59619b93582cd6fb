/* Documents built on the scanner, and look-ups in them. */
#include "json.h"

#include <math.h>
#include <stdlib.h>

#include "file.h"

typedef struct node_list {
    tv_json *v;
    size_t n;
    size_t cap;
} node_list;

static const tv_err *build(tv_json_scan *s, tv_json_event event, tv_json *node);

typedef struct key_at {
    tv_str key;
    uint64_t offset;
} key_at;

static int by_key(const void *x, const void *y)
{
    return tv_str_cmp(((const key_at *)x)->key, ((const key_at *)y)->key);
}

static const tv_err *duplicate(tv_json_scan *s, key_at k)
{
    return tv_fail_at(s->a, TV_INPUT,
                      TV_TEXT(s->a, "json.duplicate-key", N_("the key \"{key}\" stands twice"),
                              tv_arg_str("key", k.key)),
                      s->file, k.offset);
}

static const tv_err *check_keys(tv_json_scan *s, const tv_json *node)
{
    if (node->n < 2)
        return NULL;
    key_at *keys = tv_new(s->a, key_at, node->n);
    for (size_t i = 0; i < node->n; i++)
        keys[i] = (key_at){node->items[i].key, node->items[i].offset};
    qsort(keys, node->n, sizeof *keys, by_key);
    for (size_t i = 1; i < node->n; i++)
        if (tv_str_eq(keys[i - 1].key, keys[i].key))
            return duplicate(s, keys[i]);
    return NULL;
}

static const tv_err *build_list(tv_json_scan *s, tv_json *node)
{
    node_list list = {0};
    const bool object = node->type == TV_JSON_OBJECT;
    for (;;) {
        tv_json_event event;
        tv_str key = {0};
        TV_TRY(tv_json_next(s, &event));
        if (event.type == TV_JSON_CLOSE)
            break;
        if (object) {
            key = event.s;
            TV_TRY(tv_json_next(s, &event));
        }
        if (list.n == TV_LIMIT_JSON_MEMBERS)
            return tv_fail_at(s->a, TV_LIMIT,
                              TV_TEXT0("json.too-many", N_("too many members in one list")),
                              s->file, event.offset);
        tv_json item = {.key = key};
        TV_TRY(build(s, event, &item));
        item.key = key;
        *tv_push(s->a, &list) = item;
    }
    node->items = list.v;
    node->n = list.n;
    return object ? check_keys(s, node) : NULL;
}

static const tv_err *build(tv_json_scan *s, tv_json_event event, tv_json *node)
{
    *node = (tv_json){.type = event.type, .s = event.s, .offset = event.offset};
    if (event.type == TV_JSON_NUMBER) {
        const tv_double_read r = tv_str_double(event.s);
        node->number = r.ok ? r.v : (double)NAN;
    }
    if (event.type == TV_JSON_OBJECT || event.type == TV_JSON_ARRAY)
        return build_list(s, node);
    return NULL;
}

const tv_err *tv_json_value(tv_json_scan *s, tv_json_event event, tv_json *node)
{
    return build(s, event, node);
}

static const tv_err *parse(tv_json_scan *s, const tv_json **doc)
{
    tv_json_event event;
    tv_json *root = tv_new(s->a, tv_json, 1);
    TV_TRY(tv_json_next(s, &event));
    TV_TRY(build(s, event, root));
    TV_TRY(tv_json_next(s, &event));
    *doc = root;
    return NULL;
}

const tv_err *tv_json_parse(tv_arena *a, tv_str file, tv_str text, const tv_json **doc)
{
    tv_json_scan s = tv_json_open(a, file, text);
    return parse(&s, doc);
}

const tv_err *tv_json_parse_file(tv_arena *a, tv_str path, const tv_json **doc)
{
    tv_str text;
    TV_TRY(tv_file_read(a, path, TV_LIMIT_JSON_DOC_BYTES, &text));
    tv_json_scan s = tv_json_open(a, path, text);
    s.lenient = true;
    return parse(&s, doc);
}

static const tv_json absent = {0};

static const tv_json *member(const tv_json *j, tv_str key)
{
    if (!j || j->type != TV_JSON_OBJECT)
        return &absent;
    for (size_t i = 0; i < j->n; i++)
        if (tv_str_eq(j->items[i].key, key))
            return &j->items[i];
    return &absent;
}

const tv_json *tv_json_get(const tv_json *j, const char *key)
{
    return member(j, tv_str_of(key));
}

const tv_json *tv_json_path(const tv_json *j, const char *path)
{
    tv_cut c = tv_str_cut(tv_str_of(path), '.');
    j = member(j, c.head);
    while (c.found) {
        c = tv_str_cut(c.tail, '.');
        j = member(j, c.head);
    }
    return j;
}

const tv_json *tv_json_at(const tv_json *j, size_t i)
{
    return j && j->type == TV_JSON_ARRAY && i < j->n ? &j->items[i] : &absent;
}

bool tv_json_has(const tv_json *j, const char *key)
{
    const tv_json *m = tv_json_get(j, key);
    return m->type != TV_JSON_END && m->type != TV_JSON_NULL;
}

bool tv_json_is_num(const tv_json *j)
{
    return j && j->type == TV_JSON_NUMBER && isfinite(j->number);
}

double tv_json_num(const tv_json *j, double fallback)
{
    return tv_json_is_num(j) ? j->number : fallback;
}

bool tv_json_bool(const tv_json *j, bool fallback)
{
    if (j && j->type == TV_JSON_TRUE)
        return true;
    return j && j->type == TV_JSON_FALSE ? false : fallback;
}

tv_str tv_json_str(const tv_json *j)
{
    return j && j->type == TV_JSON_STRING ? j->s : (tv_str){0};
}

tv_u64_read tv_json_u64(const tv_json *j)
{
    if (!j || j->type != TV_JSON_NUMBER)
        return (tv_u64_read){0, false};
    return tv_str_u64(j->s);
}
