/* The JSON of a torch.export program becomes a tv_program: its graph (pt2_graph.c), the signature
 * that says what the graph's inputs are, and the bounds of its symbols. One pass over the text.
 * Schema: torch/_export/serde/schema.py, versions 1 to 8. */
#include "pt2_parts.h"

/* ---- the signature ---- */

typedef struct spec {
    tv_str name;   /* in the graph */
    tv_str target; /* in the module */
    tv_pt2_role role;
} spec;

typedef struct signature {
    struct {
        spec *v;
        size_t n, cap;
    } weights;
    struct {
        tv_str *v;
        size_t n, cap;
    } outputs; /* what the user gets, and a loss */
    bool has_outputs;
} signature;

/* The text of the first "name" or "as_name" inside the value that event opened. */
static const tv_err *find_name(tv_pt2_read *r, tv_json_event event, tv_str *name)
{
    if (event.type != TV_JSON_OBJECT && event.type != TV_JSON_ARRAY)
        return NULL;
    bool next = false;
    for (const unsigned outside = r->scan.depth - 1; r->scan.depth > outside;) {
        TV_TRY(tv_json_next(&r->scan, &event));
        if (next && event.type == TV_JSON_STRING && name->n == 0)
            *name = tv_pt2_keep(r, event.s);
        next = event.type == TV_JSON_KEY &&
               (tv_str_is(event.s, "name") || tv_str_is(event.s, "as_name"));
    }
    return NULL;
}

static const tv_err *read_spec(tv_pt2_read *r, tv_str *name, tv_str *target)
{
    tv_json_event event;
    TV_TRY(tv_json_next(&r->scan, &event));
    if (event.type != TV_JSON_OBJECT)
        return tv_json_skip(&r->scan, event);
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        if (tv_str_ends(key.s, TV_S("_name"))) {
            TV_TRY(tv_pt2_text(r, target));
        } else if (tv_str_is(key.s, "arg")) {
            TV_TRY(tv_json_next(&r->scan, &event));
            TV_TRY(find_name(r, event, name));
        } else {
            TV_TRY(tv_pt2_skip_next(r));
        }
    }
}

static tv_pt2_role role_of(tv_str kind)
{
    if (tv_str_is(kind, "parameter"))
        return TV_PT2_PARAMETER;
    if (tv_str_is(kind, "buffer"))
        return TV_PT2_BUFFER;
    return tv_str_is(kind, "tensor_constant") ? TV_PT2_CONSTANT : TV_PT2_TENSOR_ROLES;
}

/* input_specs or output_specs: [{"parameter": {"arg": {"name": ...}, "parameter_name": ...}}] */
static const tv_err *read_specs(tv_pt2_read *r, signature *s, bool outputs)
{
    tv_json_event event;
    TV_TRY(tv_pt2_expect(r, TV_JSON_ARRAY, &event));
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        if (event.type != TV_JSON_OBJECT)
            return tv_pt2_broken(r, "pt2.expected-object", N_("expected an object"), event.offset);
        for (;;) {
            TV_TRY(tv_json_next(&r->scan, &key));
            if (key.type == TV_JSON_CLOSE)
                break;
            spec x = {.role = role_of(key.s)};
            const bool shown = tv_str_is(key.s, "user_output") || tv_str_is(key.s, "loss_output");
            TV_TRY(read_spec(r, &x.name, &x.target));
            if (outputs && shown && x.name.n)
                *tv_push(r->a, &s->outputs) = x.name;
            else if (!outputs && x.role != TV_PT2_TENSOR_ROLES)
                *tv_push(r->a, &s->weights) = x;
        }
    }
}

/* Version 1 maps the graph's names to the module's. */
static const tv_err *read_name_map(tv_pt2_read *r, signature *s, tv_pt2_role role)
{
    tv_json_event event;
    TV_TRY(tv_pt2_expect(r, TV_JSON_OBJECT, &event));
    for (;;) {
        spec x = {.role = role};
        TV_TRY(tv_json_next(&r->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        x.name = tv_pt2_keep(r, event.s);
        TV_TRY(tv_pt2_text(r, &x.target));
        *tv_push(r->a, &s->weights) = x;
    }
}

static const tv_err *read_user_outputs(tv_pt2_read *r, signature *s)
{
    tv_json_event event;
    TV_TRY(tv_pt2_expect(r, TV_JSON_ARRAY, &event));
    for (;;) {
        TV_TRY(tv_json_next(&r->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        if (event.type == TV_JSON_STRING)
            *tv_push(r->a, &s->outputs) = tv_pt2_keep(r, event.s);
        TV_TRY(tv_json_skip(&r->scan, event));
    }
}

static const tv_err *read_signature(tv_pt2_read *r, signature *s)
{
    tv_json_event event;
    TV_TRY(tv_pt2_expect(r, TV_JSON_OBJECT, &event));
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        const bool outputs = tv_str_is(key.s, "output_specs") || tv_str_is(key.s, "user_outputs");
        s->has_outputs = s->has_outputs || outputs;
        if (tv_str_is(key.s, "input_specs"))
            TV_TRY(read_specs(r, s, false));
        else if (tv_str_is(key.s, "output_specs"))
            TV_TRY(read_specs(r, s, true));
        else if (tv_str_is(key.s, "inputs_to_parameters"))
            TV_TRY(read_name_map(r, s, TV_PT2_PARAMETER));
        else if (tv_str_is(key.s, "inputs_to_buffers"))
            TV_TRY(read_name_map(r, s, TV_PT2_BUFFER));
        else if (tv_str_is(key.s, "inputs_to_lifted_tensor_constants"))
            TV_TRY(read_name_map(r, s, TV_PT2_CONSTANT));
        else if (tv_str_is(key.s, "user_outputs"))
            TV_TRY(read_user_outputs(r, s));
        else
            TV_TRY(tv_pt2_skip_next(r));
    }
}

/* ---- the whole ---- */

typedef struct document {
    tv_pt2_read *r;
    tv_pt2_scope g; /* the main graph */
    const tv_body *main;
    signature signature;
    tv_program *program;
    tv_pt2_graph *out;
} document;

static const tv_err *read_graph_module(document *d)
{
    tv_pt2_read *r = d->r;
    tv_json_event event;
    TV_TRY(tv_pt2_expect(r, TV_JSON_OBJECT, &event));
    for (;;) {
        tv_json_event key;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        if (tv_str_is(key.s, "graph")) {
            if (d->main)
                return tv_pt2_broken(r, "pt2.graph-twice", N_("the graph stands twice"),
                                     key.offset);
            TV_TRY(tv_json_next(&r->scan, &event));
            TV_TRY(tv_pt2_read_body(r, event, TV_S("main"), &d->main, &d->g));
        } else if (tv_str_is(key.s, "signature")) {
            TV_TRY(read_signature(r, &d->signature));
        } else {
            TV_TRY(tv_pt2_skip_next(r));
        }
    }
}

/* Bounds that do not fit a whole number ("int_oo", -1 for none) count as none. */
static const tv_err *read_bound(tv_pt2_read *r, int64_t *v)
{
    tv_json_event event;
    TV_TRY(tv_json_next(&r->scan, &event));
    const tv_u64_read u = tv_str_u64(event.s);
    *v = event.type == TV_JSON_NUMBER && u.ok && u.v < INT64_MAX / 2 ? (int64_t)u.v : 0;
    return tv_json_skip(&r->scan, event);
}

static const tv_err *read_ranges(tv_pt2_read *r)
{
    tv_json_event event;
    TV_TRY(tv_pt2_expect(r, TV_JSON_OBJECT, &event));
    for (;;) {
        tv_json_event key, inner;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            return NULL;
        const tv_str name = tv_pt2_keep(r, key.s);
        int64_t min = 0, max = 0;
        TV_TRY(tv_pt2_expect(r, TV_JSON_OBJECT, &event));
        for (;;) {
            TV_TRY(tv_json_next(&r->scan, &inner));
            if (inner.type == TV_JSON_CLOSE)
                break;
            if (tv_str_is(inner.s, "min_val"))
                TV_TRY(read_bound(r, &min));
            else if (tv_str_is(inner.s, "max_val"))
                TV_TRY(read_bound(r, &max));
            else
                TV_TRY(tv_pt2_skip_next(r));
        }
        tv_pt2_note_example(r, name, 0);
        for (size_t i = 0; i < r->symbols.n; i++)
            if (tv_str_eq(r->symbols.v[i].name, name)) {
                r->symbols.v[i].min = min;
                r->symbols.v[i].max = max;
            }
    }
}

static const tv_err *read_opsets(document *d)
{
    tv_pt2_read *r = d->r;
    struct {
        tv_opset *v;
        size_t n, cap;
    } list = {0};
    tv_json_event event;
    TV_TRY(tv_pt2_expect(r, TV_JSON_OBJECT, &event));
    for (;;) {
        tv_json_event key;
        int64_t version = 0;
        TV_TRY(tv_json_next(&r->scan, &key));
        if (key.type == TV_JSON_CLOSE)
            break;
        const tv_str domain = tv_pt2_keep(r, key.s);
        TV_TRY(tv_json_next(&r->scan, &event));
        TV_TRY(tv_pt2_whole(r, event, &version));
        *tv_push(r->a, &list) = (tv_opset){domain, version};
    }
    d->program->opsets = list.v;
    d->program->n_opsets = list.n;
    return NULL;
}

/* schema_version: 1 in the first releases, {"major": 8, "minor": 20} since. A later major number
 * is a format that nobody here has seen. */
static const tv_err *read_version(tv_pt2_read *r)
{
    tv_json_event event;
    int64_t major = 0;
    TV_TRY(tv_json_next(&r->scan, &event));
    const uint64_t at = event.offset;
    if (event.type == TV_JSON_NUMBER) {
        TV_TRY(tv_pt2_whole(r, event, &major));
    } else if (event.type == TV_JSON_OBJECT) {
        for (;;) {
            tv_json_event key;
            TV_TRY(tv_json_next(&r->scan, &key));
            if (key.type == TV_JSON_CLOSE)
                break;
            const bool is_major = tv_str_is(key.s, "major");
            TV_TRY(tv_json_next(&r->scan, &event));
            if (is_major)
                TV_TRY(tv_pt2_whole(r, event, &major));
            else
                TV_TRY(tv_json_skip(&r->scan, event));
        }
    } else {
        TV_TRY(tv_json_skip(&r->scan, event));
    }
    enum { newest = 8 };
    if (major <= newest)
        return NULL;
    return tv_fail_at(r->a, TV_UNSUPPORTED,
                      TV_TEXT(r->a, "pt2.version",
                              N_("schema version {n} of torch.export is not known"),
                              tv_arg_num("n", TV_ARG_COUNT, (double)major)),
                      r->scan.file, at);
}

static const tv_err *read_torch_version(document *d)
{
    tv_str version = {0};
    TV_TRY(tv_pt2_text(d->r, &version));
    d->program->producer = tv_str_join(d->r->a, TV_S("torch "), version);
    return NULL;
}

static const tv_err *read_verifiers(document *d)
{
    tv_json_event event;
    TV_TRY(tv_pt2_expect(d->r, TV_JSON_ARRAY, &event));
    for (;;) {
        TV_TRY(tv_json_next(&d->r->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        if (event.type == TV_JSON_STRING && !d->out->verifier.n)
            d->out->verifier = tv_pt2_keep(d->r, event.s);
        TV_TRY(tv_json_skip(&d->r->scan, event));
    }
}

static const tv_err *read_member(document *d, tv_str key)
{
    tv_pt2_read *r = d->r;
    if (tv_str_is(key, "graph_module"))
        return read_graph_module(d);
    if (tv_str_is(key, "range_constraints"))
        return read_ranges(r);
    if (tv_str_is(key, "opset_version"))
        return read_opsets(d);
    if (tv_str_is(key, "schema_version"))
        return read_version(r);
    if (tv_str_is(key, "torch_version"))
        return read_torch_version(d);
    if (tv_str_is(key, "verifiers"))
        return read_verifiers(d);
    if (tv_str_is(key, "dialect"))
        return tv_pt2_text(r, &d->out->verifier);
    return tv_pt2_skip_next(r);
}

/* What the graph's inputs are. Exports of torch 2.3 and older state requires_grad of no parameter:
 * then none is frozen. */
static const tv_err *roles(document *d)
{
    tv_pt2_read *r = d->r;
    const signature *s = &d->signature;
    tv_value *values = r->values.v;
    tv_pt2_weight *weights = tv_new(r->a, tv_pt2_weight, s->weights.n);
    bool any_trains = false;
    for (size_t i = 0; i < s->weights.n; i++) {
        const spec *x = &s->weights.v[i];
        uint32_t index = 0;
        if (!tv_pt2_find(&d->g, x->name, &index) || d->g.names.v[index].value == TV_NO_VALUE)
            return tv_fail_at(r->a, TV_INPUT,
                              TV_TEXT(r->a, "pt2.no-input",
                                      N_("the signature names \"{name}\", which the graph does "
                                         "not have"),
                                      tv_arg_str("name", x->name)),
                              r->scan.file, r->scan.at);
        tv_value *v = &values[d->g.names.v[index].value];
        weights[i] = (tv_pt2_weight){.name = x->target, .role = x->role, .at = v};
        v->role = TV_VALUE_WEIGHT;
        v->name = x->target.n ? x->target : v->name;
        v->buffer = x->role != TV_PT2_PARAMETER;
        any_trains = any_trains || (!v->buffer && !v->frozen);
    }
    for (size_t i = 0; i < r->values.n; i++)
        if (values[i].role != TV_VALUE_WEIGHT || values[i].buffer || !any_trains)
            values[i].frozen = false;
    d->out->weights = weights;
    d->out->n_weights = s->weights.n;
    return NULL;
}

static void ends_of(document *d, tv_body *main)
{
    tv_pt2_read *r = d->r;
    tv_pt2_ids inputs = {0}, outputs = {0};
    for (size_t i = 0; i < d->g.inputs.n; i++) {
        tv_value *v = &r->values.v[d->g.inputs.v[i]];
        if (v->role == TV_VALUE_WEIGHT)
            continue;
        v->role = TV_VALUE_INPUT;
        *tv_push(r->a, &inputs) = d->g.inputs.v[i];
    }
    for (size_t i = 0; i < d->signature.outputs.n; i++) {
        uint32_t index = 0;
        /* Symbolic numbers are no tensors. */
        if (tv_pt2_find(&d->g, d->signature.outputs.v[i], &index) &&
            d->g.names.v[index].value != TV_NO_VALUE && !d->g.names.v[index].symbolic)
            *tv_push(r->a, &outputs) = d->g.names.v[index].value;
    }
    main->inputs = inputs.v;
    main->n_inputs = inputs.n;
    if (d->signature.has_outputs) {
        main->outputs = outputs.v;
        main->n_outputs = outputs.n;
    }
}

static const tv_err *finish(document *d)
{
    tv_pt2_read *r = d->r;
    if (!d->main)
        return tv_pt2_broken(r, "pt2.graph-missing", N_("no exported program: it has no graph"), 0);
    TV_TRY(roles(d));
    tv_body *main = tv_new(r->a, tv_body, 1);
    *main = *d->main;
    ends_of(d, main);
    tv_program *p = d->program;
    p->dialect = TV_DIALECT_ATEN;
    p->values = r->values.v;
    p->n_values = r->values.n;
    p->main = main;
    p->symbols = r->symbols.v;
    p->n_symbols = r->symbols.n;
    if (!p->producer.n)
        p->producer = TV_S("torch");
    d->out->program = p;
    return NULL;
}

const tv_err *tv_pt2_read_graph(tv_arena *a, tv_str file, tv_str text, tv_pt2_graph *out)
{
    *out = (tv_pt2_graph){0};
    tv_pt2_read r = {.a = a, .scratch = tv_arena_child(a, TV_LIMIT_ARENA_BYTES)};
    r.scan = tv_json_open(r.scratch, file, text);
    r.scan.lenient = true; /* Python writes numbers without end as words */
    document d = {.r = &r, .program = tv_new(a, tv_program, 1), .out = out};
    tv_json_event event;
    TV_TRY(tv_pt2_expect(&r, TV_JSON_OBJECT, &event));
    for (;;) {
        TV_TRY(tv_json_next(&r.scan, &event));
        if (event.type == TV_JSON_CLOSE)
            break;
        TV_TRY(read_member(&d, event.s));
    }
    TV_TRY(tv_json_next(&r.scan, &event));
    return finish(&d);
}
