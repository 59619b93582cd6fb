/* libyaml's events put together to a document in the arena. An alias is a copy of the anchor's
 * node, whose members are shared: aliases of aliases cost nothing. */
#include "yaml_doc.h"

#include <math.h>
#include <yaml.h>

typedef struct anchor {
    tv_str name;
    tv_json node;
} anchor;

typedef struct reader {
    tv_arena *a;
    tv_str file;
    yaml_parser_t parser;
    yaml_event_t event;
    struct {
        anchor *v;
        size_t n;
        size_t cap;
    } anchors;
    unsigned depth;
} reader;

typedef struct node_list {
    tv_json *v;
    size_t n;
    size_t cap;
} node_list;

static void close_reader(void *what)
{
    reader *r = what;
    yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
}

static const tv_err *bad(reader *r, const char *id, const char *msgid)
{
    return tv_fail_at(r->a, TV_INPUT, TV_TEXT0(id, msgid), r->file, r->event.start_mark.index);
}

static const tv_err *next(reader *r)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event))
        return NULL;
    const yaml_parser_t *p = &r->parser;
    const bool marked = p->error == YAML_SCANNER_ERROR || p->error == YAML_PARSER_ERROR;
    return tv_fail_at(r->a, TV_INPUT,
                      TV_TEXT(r->a, "yaml.malformed", N_("malformed YAML: {what}"),
                              tv_arg_str("what", tv_str_copy(r->a, tv_str_of(p->problem)))),
                      r->file, marked ? p->problem_mark.index : p->problem_offset);
}

static tv_str own(const reader *r, const unsigned char *p, size_t n)
{
    return tv_str_copy(r->a, (tv_str){(const char *)p, n});
}

/* YAML 1.1's words, as PyYAML reads them where they occur in such files. */
static void read_plain(tv_json *node)
{
    static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes", "on", "On"};
    static const char *const no[] = {"false", "False", "FALSE", "no", "No", "off", "Off"};
    const tv_str s = node->s;
    if (s.n == 0 || tv_str_is(s, "~") || tv_str_eq_nocase(s, TV_S("null")))
        node->type = TV_JSON_NULL;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (tv_str_is(s, yes[i]))
            node->type = TV_JSON_TRUE;
        if (tv_str_is(s, no[i]))
            node->type = TV_JSON_FALSE;
    }
    const tv_double_read r = tv_str_double(s);
    if (!r.ok || !isfinite(r.v))
        return;
    node->type = TV_JSON_NUMBER;
    node->number = r.v;
}

static void read_scalar(const reader *r, tv_json *node)
{
    node->type = TV_JSON_STRING;
    node->s = own(r, r->event.data.scalar.value, r->event.data.scalar.length);
    if (r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        read_plain(node);
}

static const tv_err *read_alias(reader *r, tv_json *node)
{
    const tv_str name = tv_str_of((const char *)r->event.data.alias.anchor);
    for (size_t i = r->anchors.n; i-- > 0;) {
        if (!tv_str_eq(r->anchors.v[i].name, name))
            continue;
        *node = r->anchors.v[i].node;
        return NULL;
    }
    return bad(r, "yaml.alias", N_("an alias stands before its anchor"));
}

static void keep_anchor(reader *r, tv_str name, const tv_json *node)
{
    if (name.n)
        *tv_push(r->a, &r->anchors) = (anchor){name, *node};
}

static const tv_err *read_node(reader *r, tv_json *node);

static const tv_err *check_key(reader *r, const node_list *list, tv_str key)
{
    /* Settings have a few dozen keys. */
    for (size_t i = 0; i < list->n && list->n < 4096; i++)
        if (tv_str_eq(list->v[i].key, key))
            return bad(r, "yaml.twice", N_("a key stands twice"));
    return NULL;
}

static const tv_err *read_key(reader *r, const node_list *list, tv_str *key)
{
    if (r->event.type != YAML_SCALAR_EVENT)
        return bad(r, "yaml.key", N_("a key is no text"));
    *key = own(r, r->event.data.scalar.value, r->event.data.scalar.length);
    TV_TRY(check_key(r, list, *key));
    return next(r);
}

/* The events up to the end of the list that has just begun. */
static const tv_err *read_list(reader *r, tv_json *node)
{
    const bool map = node->type == TV_JSON_OBJECT;
    node_list list = {0};
    if (++r->depth > TV_LIMIT_JSON_DEPTH)
        return bad(r, "json.too-deep", N_("nested too deeply"));
    for (;;) {
        tv_json item = {0};
        tv_str key = {0};
        TV_TRY(next(r));
        if (r->event.type == YAML_MAPPING_END_EVENT || r->event.type == YAML_SEQUENCE_END_EVENT)
            break;
        if (map)
            TV_TRY(read_key(r, &list, &key));
        TV_TRY(read_node(r, &item));
        item.key = key;
        *tv_push(r->a, &list) = item;
    }
    r->depth--;
    node->items = list.v;
    node->n = list.n;
    return NULL;
}

/* The node that the current event begins. */
static const tv_err *read_node(reader *r, tv_json *node)
{
    const yaml_event_t *e = &r->event;
    tv_str name = {0};
    *node = (tv_json){.offset = e->start_mark.index};
    if (e->type == YAML_ALIAS_EVENT)
        return read_alias(r, node);
    if (e->type == YAML_SCALAR_EVENT) {
        read_scalar(r, node);
        if (e->data.scalar.anchor)
            name = tv_str_copy(r->a, tv_str_of((const char *)e->data.scalar.anchor));
    } else if (e->type == YAML_MAPPING_START_EVENT) {
        node->type = TV_JSON_OBJECT;
        if (e->data.mapping_start.anchor)
            name = tv_str_copy(r->a, tv_str_of((const char *)e->data.mapping_start.anchor));
        TV_TRY(read_list(r, node));
    } else if (e->type == YAML_SEQUENCE_START_EVENT) {
        node->type = TV_JSON_ARRAY;
        if (e->data.sequence_start.anchor)
            name = tv_str_copy(r->a, tv_str_of((const char *)e->data.sequence_start.anchor));
        TV_TRY(read_list(r, node));
    } else {
        return bad(r, "yaml.layout", N_("the YAML ends where a value is expected"));
    }
    keep_anchor(r, name, node);
    return NULL;
}

static const tv_err *read_document(reader *r, tv_json *root)
{
    TV_TRY(next(r)); /* the stream */
    TV_TRY(next(r)); /* the document */
    if (r->event.type == YAML_STREAM_END_EVENT)
        return NULL;
    TV_TRY(next(r));
    return read_node(r, root);
}

const tv_err *tv_yaml_parse(tv_arena *a, tv_str file, tv_str text, const tv_json **doc)
{
    reader *r = tv_new(a, reader, 1);
    tv_json *root = tv_new(a, tv_json, 1);
    r->a = a;
    r->file = file;
    if (!yaml_parser_initialize(&r->parser))
        return TV_FAIL0(a, TV_SYSTEM, "yaml.memory", N_("no memory for reading YAML"));
    tv_defer(a, close_reader, r);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)(text.n ? text.p : ""), text.n);
    const tv_err *e = read_document(r, root);
    close_reader(r);
    *doc = root;
    return e;
}
