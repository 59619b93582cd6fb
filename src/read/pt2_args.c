/* Arguments of an exported node: a union whose one key says the kind. Tensors become operands in a
 * slot with the argument's name, everything else an attribute of that name. Kinds that say nothing
 * about shapes or cost (tokens, scripted objects) are passed over. */
#include "pt2_parts.h"

#include <math.h>

/* ---- numbers ---- */

/* Python writes numbers without end as words, newer files as strings. */
static double number_of(const tv_pt2_read *r, tv_json_event event)
{
    if (event.type == TV_JSON_NUMBER)
        return tv_str_double(event.s).v;
    tv_str s = event.s;
    if (event.type == TV_JSON_NULL)
        s = tv_str_drop(r->scan.text, (size_t)event.offset);
    if (tv_str_starts(s, TV_S("-Inf")))
        return -(double)INFINITY;
    return tv_str_starts(s, TV_S("Inf")) ? (double)INFINITY : (double)NAN;
}

static int64_t flag_of(tv_json_event event)
{
    return event.type == TV_JSON_TRUE;
}

/* ---- lists of plain things ---- */

typedef struct ints {
    int64_t *v;
    size_t n, cap;
} ints;

typedef struct floats {
    double *v;
    size_t n, cap;
} floats;

typedef struct strings {
    tv_str *v;
    size_t n, cap;
} strings;

typedef struct dims {
    tv_dim *v;
    size_t n, cap;
} dims;

static const tv_err *list_opens(tv_pt2_read *r, tv_json_event event)
{
    if (event.type != TV_JSON_ARRAY)
        return tv_pt2_broken(r, "pt2.no-list", N_("an argument's list is no list"), event.offset);
    return NULL;
}

/* Lists of lists (as_int_lists) are read flat: their elements in order. */
static const tv_err *read_ints(tv_pt2_read *r, tv_json_event event, ints *list)
{
    TV_TRY(list_opens(r, event));
    for (unsigned depth = 1; depth;) {
        TV_TRY(tv_json_next(&r->scan, &event));
        if (event.type == TV_JSON_ARRAY) {
            depth++;
        } else if (event.type == TV_JSON_CLOSE) {
            depth--;
        } else if (event.type == TV_JSON_TRUE || event.type == TV_JSON_FALSE) {
            *tv_push(r->scratch, list) = flag_of(event);
        } else {
            int64_t v = 0;
            TV_TRY(tv_pt2_whole(r, event, &v));
            *tv_push(r->scratch, list) = v;
        }
    }
    return NULL;
}

static const tv_err *read_floats(tv_pt2_read *r, tv_json_event event, floats *list)
{
    TV_TRY(list_opens(r, event));
    for (unsigned depth = 1; depth;) {
        TV_TRY(tv_json_next(&r->scan, &event));
        if (event.type == TV_JSON_ARRAY)
            depth++;
        else if (event.type == TV_JSON_CLOSE)
            depth--;
        else if (event.type == TV_JSON_OBJECT)
            TV_TRY(tv_json_skip(&r->scan, event));
        else
            *tv_push(r->scratch, list) = number_of(r, event);
    }
    return NULL;
}

static const tv_err *read_strings(tv_pt2_read *r, tv_json_event event, strings *list)
{
    TV_TRY(list_opens(r, event));
    for (;;) {
        TV_TRY(tv_json_next(&r->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        TV_TRY(tv_json_skip(&r->scan, event));
        *tv_push(r->scratch, list) = tv_pt2_keep(r, event.s);
    }
}

/* ---- symbolic numbers ---- */

/* {"as_name": "sym_size_int"}, {"as_int": 3}, {"as_float": 0.5}, {"as_bool": true}. *name is the
 * index of the name, or TV_NO_VALUE for a plain number. */
static const tv_err *read_symbolic(tv_pt2_scope *g, tv_json_event event, double *plain,
                                   uint32_t *name)
{
    tv_pt2_read *r = g->r;
    *name = TV_NO_VALUE;
    if (event.type != TV_JSON_OBJECT)
        return tv_pt2_broken(r, "pt2.no-union", N_("an argument does not say its kind"),
                             event.offset);
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        TV_TRY(tv_json_next(&r->scan, &event));
        if (tv_str_is(key.s, "as_name") && event.type == TV_JSON_STRING)
            TV_TRY(tv_pt2_name_of(g, event.s, name));
        else if (event.type == TV_JSON_TRUE || event.type == TV_JSON_FALSE)
            *plain = (double)flag_of(event);
        else if (event.type == TV_JSON_NUMBER)
            *plain = number_of(r, event);
        else
            TV_TRY(tv_json_skip(&r->scan, event));
    }
}

static const tv_err *read_dim(tv_pt2_scope *g, tv_json_event event, dims *list, uint32_t *name)
{
    double plain = 0;
    TV_TRY(read_symbolic(g, event, &plain, name));
    /* Names are resolved when the graph is over: see resolve() in pt2_graph.c. */
    *tv_push(g->r->scratch, list) =
        *name == TV_NO_VALUE ? (tv_dim){.size = (int64_t)plain} : (tv_dim){.size = -1};
    return NULL;
}

static void wait_for(tv_pt2_scope *g, tv_dim *at, uint32_t name)
{
    if (name != TV_NO_VALUE)
        *tv_push(g->r->a, &g->pending) = (tv_pt2_pending){at, name};
}

/* Plain integers stay INTS: most lists of "symbolic" integers have none. */
static void add_dims(tv_pt2_scope *g, tv_attr *at, const dims *list, const tv_pt2_ids *names)
{
    bool symbolic = false;
    for (size_t i = 0; i < names->n; i++)
        symbolic = symbolic || names->v[i] != TV_NO_VALUE;
    at->n = list->n;
    if (symbolic) {
        tv_dim *kept = tv_new(g->r->a, tv_dim, list->n);
        for (size_t i = 0; i < list->n; i++) {
            kept[i] = list->v[i];
            wait_for(g, &kept[i], names->v[i]);
        }
        at->kind = TV_ATTR_DIMS;
        at->u.dims = kept;
        return;
    }
    int64_t *v = tv_new(g->r->a, int64_t, list->n);
    for (size_t i = 0; i < list->n; i++)
        v[i] = list->v[i].size;
    at->kind = TV_ATTR_INTS;
    at->u.ints = v;
}

static const tv_err *read_symbolic_list(tv_pt2_scope *g, tv_json_event event, tv_attr *at)
{
    dims list = {0};
    tv_pt2_ids names = {0};
    TV_TRY(list_opens(g->r, event));
    for (;;) {
        uint32_t name = TV_NO_VALUE;
        TV_TRY(tv_json_next(&g->r->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            break;
        TV_TRY(read_dim(g, event, &list, &name));
        *tv_push(g->r->scratch, &names) = name;
    }
    add_dims(g, at, &list, &names);
    return NULL;
}

static const tv_err *read_symbolic_one(tv_pt2_scope *g, tv_json_event event, bool whole,
                                       tv_attr *at)
{
    double plain = 0;
    uint32_t name = TV_NO_VALUE;
    TV_TRY(read_symbolic(g, event, &plain, &name));
    if (name == TV_NO_VALUE) {
        at->kind = whole ? TV_ATTR_INT : TV_ATTR_FLOAT;
        if (whole)
            at->u.i = (int64_t)plain;
        else
            at->u.f = plain;
        return NULL;
    }
    tv_dim *dim = tv_new(g->r->a, tv_dim, 1);
    dim->size = -1;
    wait_for(g, dim, name);
    at->kind = TV_ATTR_DIMS;
    at->n = 1;
    at->u.dims = dim;
    return NULL;
}

/* ---- tensors ---- */

static const tv_err *read_tensor_name(tv_pt2_scope *g, tv_json_event event, uint32_t *value)
{
    tv_pt2_read *r = g->r;
    *value = TV_NO_VALUE;
    if (event.type == TV_JSON_STRING) /* until 2.3, in lists of optional tensors */
        return tv_pt2_value_of(g, event.s, value);
    if (event.type != TV_JSON_OBJECT)
        return tv_pt2_broken(r, "pt2.no-tensor", N_("a tensor is not given by its name"),
                             event.offset);
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        TV_TRY(tv_json_next(&r->scan, &event));
        if (tv_str_is(key.s, "name") && event.type == TV_JSON_STRING)
            TV_TRY(tv_pt2_value_of(g, event.s, value));
        else
            TV_TRY(tv_json_skip(&r->scan, event));
    }
}

/* {"as_tensor": {"name": "x"}} or {"as_none": true}. */
static const tv_err *read_optional(tv_pt2_scope *g, tv_json_event event, uint32_t *value)
{
    tv_pt2_read *r = g->r;
    *value = TV_NO_VALUE;
    if (event.type != TV_JSON_OBJECT)
        return tv_pt2_broken(r, "pt2.no-union", N_("an argument does not say its kind"),
                             event.offset);
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        const bool tensor = tv_str_is(key.s, "as_tensor");
        TV_TRY(tv_json_next(&r->scan, &event));
        if (tensor)
            TV_TRY(read_tensor_name(g, event, value));
        else
            TV_TRY(tv_json_skip(&r->scan, event));
    }
}

static const tv_err *read_tensors(tv_pt2_scope *g, tv_json_event event, bool optional,
                                  tv_pt2_ids *ids)
{
    TV_TRY(list_opens(g->r, event));
    for (unsigned depth = 1; depth;) {
        uint32_t value = TV_NO_VALUE;
        TV_TRY(tv_json_next(&g->r->scan, &event));
        if (event.type == TV_JSON_ARRAY) {
            depth++;
            continue;
        }
        if (event.type == TV_JSON_CLOSE) {
            depth--;
            continue;
        }
        if (optional)
            TV_TRY(read_optional(g, event, &value));
        else
            TV_TRY(read_tensor_name(g, event, &value));
        *tv_push(g->r->scratch, ids) = value;
    }
    return NULL;
}

/* A symbolic number that a body takes or puts out keeps its place there as a scalar. */
static const tv_err *read_symbol_value(tv_pt2_scope *g, tv_json_event event, tv_pt2_ids *ids)
{
    double plain = 0;
    uint32_t name = TV_NO_VALUE;
    TV_TRY(read_symbolic(g, event, &plain, &name));
    if (name == TV_NO_VALUE)
        return NULL;
    uint32_t value = 0;
    TV_TRY(tv_pt2_value_of(g, g->names.v[name].name, &value));
    g->r->values.v[value].dtype = TV_I64;
    g->r->values.v[value].shaped = true;
    *tv_push(g->r->scratch, ids) = value;
    return NULL;
}

static const tv_err *read_name_kind(tv_pt2_scope *g, tv_str kind, tv_json_event event, bool symbols,
                                    tv_pt2_ids *ids)
{
    uint32_t value = TV_NO_VALUE;
    if (tv_str_is(kind, "as_tensors") || tv_str_is(kind, "as_nested_tensors"))
        return read_tensors(g, event, false, ids);
    if (tv_str_is(kind, "as_optional_tensors"))
        return read_tensors(g, event, true, ids);
    if (symbols && (tv_str_is(kind, "as_sym_int") || tv_str_is(kind, "as_sym_bool") ||
                    tv_str_is(kind, "as_sym_float")))
        return read_symbol_value(g, event, ids);
    if (tv_str_is(kind, "as_tensor"))
        TV_TRY(read_tensor_name(g, event, &value));
    else if (tv_str_is(kind, "as_optional_tensor"))
        TV_TRY(read_optional(g, event, &value));
    else
        TV_TRY(tv_json_skip(&g->r->scan, event));
    if (value != TV_NO_VALUE || tv_str_is(kind, "as_none") || tv_str_is(kind, "as_optional_tensor"))
        *tv_push(g->r->scratch, ids) = value;
    return NULL;
}

const tv_err *tv_pt2_read_names(tv_pt2_scope *g, tv_json_event event, bool symbols, tv_pt2_ids *ids)
{
    tv_pt2_read *r = g->r;
    if (event.type != TV_JSON_OBJECT)
        return tv_pt2_broken(r, "pt2.no-union", N_("an argument does not say its kind"),
                             event.offset);
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        const tv_str kind = tv_pt2_keep(r, key.s);
        TV_TRY(tv_json_next(&r->scan, &event));
        TV_TRY(read_name_kind(g, kind, event, symbols, ids));
    }
}

/* ---- one argument ---- */

static tv_attr *new_attr(tv_pt2_scope *g, tv_pt2_node *x, tv_str name, tv_attr_kind kind)
{
    tv_attr *at = tv_push(g->r->scratch, &x->attrs);
    at->name = name;
    at->kind = kind;
    return at;
}

static const tv_err *read_operands(tv_pt2_scope *g, tv_pt2_node *x, tv_str name, tv_str kind,
                                   tv_json_event event)
{
    const size_t first = x->inputs.n;
    TV_TRY(read_name_kind(g, kind, event, false, &x->inputs));
    const size_t n = x->inputs.n - first;
    if (n == 1 && x->inputs.v[first] == TV_NO_VALUE && !tv_str_is(kind, "as_optional_tensors")) {
        x->inputs.n = first; /* not given: no slot, as for an argument that is left out */
        return NULL;
    }
    *tv_push(g->r->scratch, &x->slots) = (tv_slot){name, (uint32_t)first, (uint32_t)n};
    return NULL;
}

static const tv_err *read_graph_argument(tv_pt2_scope *g, tv_pt2_node *x, tv_str name,
                                         tv_json_event event)
{
    tv_pt2_read *r = g->r;
    tv_str called = {0};
    const tv_body *body = NULL;
    if (event.type != TV_JSON_OBJECT)
        return tv_pt2_broken(r, "pt2.no-graph", N_("a graph is no object"), event.offset);
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            break;
        if (tv_str_is(key.s, "name")) {
            TV_TRY(tv_pt2_text(r, &called));
        } else if (tv_str_is(key.s, "graph")) {
            TV_TRY(tv_json_next(&r->scan, &event));
            TV_TRY(tv_pt2_read_body(r, event, called, &body, NULL));
        } else {
            TV_TRY(tv_pt2_skip_next(r));
        }
    }
    if (body)
        new_attr(g, x, name, TV_ATTR_BODY)->u.body = body;
    return NULL;
}

/* Arguments by key of one node: "kernel_options.block". */
static const tv_err *read_map(tv_pt2_scope *g, tv_pt2_node *x, tv_str name, tv_json_event event)
{
    tv_pt2_read *r = g->r;
    if (event.type != TV_JSON_OBJECT)
        return tv_pt2_broken(r, "pt2.no-union", N_("an argument does not say its kind"),
                             event.offset);
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        const tv_str inner =
            tv_str_join(r->a, name.n ? tv_str_join(r->a, name, TV_S(".")) : name, key.s);
        TV_TRY(tv_json_next(&r->scan, &event));
        TV_TRY(tv_pt2_read_argument(g, x, inner, event));
    }
}

static tv_str memory_format(int64_t number)
{
    static const char *const names[] = {"", "contiguous_format", "channels_last",
                                        "channels_last_3d", "preserve_format"};
    return number > 0 && number < 5 ? tv_str_of(names[number]) : (tv_str){0};
}

static const tv_err *read_device(tv_pt2_read *r, tv_json_event event, tv_str *type)
{
    if (event.type != TV_JSON_OBJECT)
        return tv_json_skip(&r->scan, event);
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        if (tv_str_is(key.s, "type"))
            TV_TRY(tv_pt2_text(r, type));
        else
            TV_TRY(tv_pt2_skip_next(r));
    }
}

/* Kinds that are one plain value. */
static const tv_err *read_scalar(tv_pt2_scope *g, tv_pt2_node *x, tv_str name, tv_str kind,
                                 tv_json_event event)
{
    int64_t v = 0;
    if (tv_str_is(kind, "as_bool")) {
        new_attr(g, x, name, TV_ATTR_INT)->u.i = flag_of(event);
        return tv_json_skip(&g->r->scan, event);
    }
    if (tv_str_is(kind, "as_float")) {
        new_attr(g, x, name, TV_ATTR_FLOAT)->u.f = number_of(g->r, event);
        return tv_json_skip(&g->r->scan, event);
    }
    if (tv_str_is(kind, "as_string") || tv_str_is(kind, "as_operator")) {
        new_attr(g, x, name, TV_ATTR_STRING)->u.s = tv_pt2_keep(g->r, event.s);
        return tv_json_skip(&g->r->scan, event);
    }
    TV_TRY(tv_pt2_whole(g->r, event, &v));
    if (tv_str_is(kind, "as_scalar_type"))
        new_attr(g, x, name, TV_ATTR_DTYPE)->u.dtype = tv_pt2_dtype((uint64_t)v);
    else if (tv_str_is(kind, "as_memory_format"))
        new_attr(g, x, name, TV_ATTR_STRING)->u.s = memory_format(v);
    else
        new_attr(g, x, name, TV_ATTR_INT)->u.i = v;
    return NULL;
}

static const tv_err *read_list(tv_pt2_scope *g, tv_pt2_node *x, tv_str name, tv_str kind,
                               tv_json_event event)
{
    if (tv_str_is(kind, "as_floats") || tv_str_is(kind, "as_float_lists")) {
        floats list = {0};
        TV_TRY(read_floats(g->r, event, &list));
        tv_attr *at = new_attr(g, x, name, TV_ATTR_FLOATS);
        at->n = list.n;
        at->u.floats = tv_pt2_copy(g->r->a, list.v, list.n, sizeof *list.v);
        return NULL;
    }
    if (tv_str_is(kind, "as_strings")) {
        strings list = {0};
        TV_TRY(read_strings(g->r, event, &list));
        tv_attr *at = new_attr(g, x, name, TV_ATTR_STRINGS);
        at->n = list.n;
        at->u.strings = tv_pt2_copy(g->r->a, list.v, list.n, sizeof *list.v);
        return NULL;
    }
    ints list = {0};
    TV_TRY(read_ints(g->r, event, &list));
    tv_attr *at = new_attr(g, x, name, TV_ATTR_INTS);
    at->n = list.n;
    at->u.ints = tv_pt2_copy(g->r->a, list.v, list.n, sizeof *list.v);
    return NULL;
}

typedef const tv_err *read_kind_fn(tv_pt2_scope *g, tv_pt2_node *x, tv_str name, tv_str kind,
                                   tv_json_event event);

static const tv_err *read_sym(tv_pt2_scope *g, tv_pt2_node *x, tv_str name, tv_str kind,
                              tv_json_event event)
{
    tv_attr *at = new_attr(g, x, name, TV_ATTR_NONE);
    if (tv_str_ends(kind, TV_S("s")))
        return read_symbolic_list(g, event, at);
    return read_symbolic_one(g, event, !tv_str_is(kind, "as_sym_float"), at);
}

static const tv_err *read_graph_kind(tv_pt2_scope *g, tv_pt2_node *x, tv_str name, tv_str kind,
                                     tv_json_event event)
{
    if (tv_str_is(kind, "as_graph"))
        return read_graph_argument(g, x, name, event);
    return read_map(g, x, name, event);
}

static const tv_err *read_device_kind(tv_pt2_scope *g, tv_pt2_node *x, tv_str name, tv_str kind,
                                      tv_json_event event)
{
    (void)kind;
    tv_str type = {0};
    TV_TRY(read_device(g->r, event, &type));
    if (type.n)
        new_attr(g, x, name, TV_ATTR_STRING)->u.s = type;
    return NULL;
}

static const struct {
    const char *kind;
    read_kind_fn *read;
} kinds[] = {
    {"as_tensor", read_operands},
    {"as_tensors", read_operands},
    {"as_optional_tensor", read_operands},
    {"as_optional_tensors", read_operands},
    {"as_nested_tensors", read_operands},
    {"as_int", read_scalar},
    {"as_bool", read_scalar},
    {"as_float", read_scalar},
    {"as_string", read_scalar},
    {"as_operator", read_scalar},
    {"as_scalar_type", read_scalar},
    {"as_memory_format", read_scalar},
    {"as_layout", read_scalar},
    {"as_ints", read_list},
    {"as_bools", read_list},
    {"as_int_lists", read_list},
    {"as_floats", read_list},
    {"as_float_lists", read_list},
    {"as_strings", read_list},
    {"as_sym_int", read_sym},
    {"as_sym_ints", read_sym},
    {"as_sym_float", read_sym},
    {"as_sym_floats", read_sym},
    {"as_sym_bool", read_sym},
    {"as_sym_bools", read_sym},
    {"as_device", read_device_kind},
    {"as_graph", read_graph_kind},
    {"as_string_to_argument", read_graph_kind},
};

const tv_err *tv_pt2_read_argument(tv_pt2_scope *g, tv_pt2_node *x, tv_str name,
                                   tv_json_event event)
{
    tv_pt2_read *r = g->r;
    if (event.type != TV_JSON_OBJECT)
        return tv_pt2_broken(r, "pt2.no-union", N_("an argument does not say its kind"),
                             event.offset);
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        size_t i = 0;
        while (i < sizeof kinds / sizeof *kinds && !tv_str_is(key.s, kinds[i].kind))
            i++;
        TV_TRY(tv_json_next(&r->scan, &event));
        if (i == sizeof kinds / sizeof *kinds || event.type == TV_JSON_NULL) {
            /* as_none, as_custom_obj, or a kind that other writers leave null; a float without
             * end is null to the scanner too */
            if (i < sizeof kinds / sizeof *kinds && tv_str_is(key.s, "as_float"))
                TV_TRY(read_scalar(g, x, name, TV_S("as_float"), event));
            TV_TRY(tv_json_skip(&r->scan, event));
            continue;
        }
        TV_TRY(kinds[i].read(g, x, name, tv_str_of(kinds[i].kind), event));
    }
}
