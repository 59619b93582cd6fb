/* ONNX: constants, branches, loops, sequences, optionals, random numbers. */
#include <math.h>

#include "program_onnx.h"

/* ---- constants ---- */

static uint32_t numbers(tv_running *r, tv_dtype dtype, size_t n, const double *v, bool scalar)
{
    tv_shape shape = scalar ? (tv_shape){0} : tv_shape_of(1, (int64_t[]){(int64_t)n});
    return tv_run_make_data(r, dtype, &shape, v);
}

static uint32_t list_of(tv_running *r, const tv_attr *a)
{
    double *v = tv_new(tv_run_arena(r), double, a->n ? a->n : 1);
    for (size_t i = 0; i < a->n; i++)
        v[i] = a->kind == TV_ATTR_FLOATS ? a->u.floats[i] : (double)a->u.ints[i];
    return numbers(r, a->kind == TV_ATTR_FLOATS ? TV_F32 : TV_I64, a->n, v, false);
}

static const tv_err *constant(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    for (size_t i = 0; i < n->n_attrs && y == TV_NO_VALUE; i++) {
        const tv_attr *a = &n->attrs[i];
        double number = a->kind == TV_ATTR_FLOAT ? a->u.f : (double)a->u.i;
        if (a->kind == TV_ATTR_VALUE)
            return tv_opset_done(r, n, tv_run_of(r, a->u.value));
        if (a->kind == TV_ATTR_INT || a->kind == TV_ATTR_FLOAT)
            y = numbers(r, a->kind == TV_ATTR_INT ? TV_I64 : TV_F32, 1, &number, true);
        else if (a->kind == TV_ATTR_INTS || a->kind == TV_ATTR_FLOATS)
            y = list_of(r, a);
        else if (a->kind == TV_ATTR_STRING)
            y = tv_run_make(r, TV_DTYPE_UNKNOWN, &(tv_shape){0});
        else if (a->kind == TV_ATTR_STRINGS) {
            tv_shape line = tv_shape_of(1, (int64_t[]){(int64_t)a->n});
            y = tv_run_make(r, TV_DTYPE_UNKNOWN, &line);
        }
    }
    TV_TRY(tv_run_need(r, y));
    tv_run_constant(r, y);
    return tv_opset_done(r, n, y);
}

static const tv_err *constant_of_shape(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const tv_attr *a = tv_node_attr(n, "value");
    uint32_t given = a && a->kind == TV_ATTR_VALUE ? tv_run_of(r, a->u.value) : TV_NO_VALUE;
    tv_dtype dtype = given != TV_NO_VALUE ? tv_run_at(r, given)->dtype : TV_F32;
    uint32_t in = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, in));
    size_t count = 0;
    bool known = true;
    const int64_t *d = tv_opset_ints(r, n, NULL, 0, &count, &known);
    if (!known || count > TV_LIMIT_RANK)
        return tv_opset_guess(r, n, &dtype, &(tv_shape){0}, 1);
    tv_shape shape = tv_shape_of((uint32_t)count, d);
    uint32_t y = tv_rule_full(r, dtype, &shape, tv_run_scalar(r, given, 0));
    if (tv_run_at(r, in)->constant)
        tv_run_constant(r, y);
    return tv_opset_done(r, n, y);
}

/* Caffe2's fills, in old files. */
static const tv_err *given_fill(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const int64_t *d = NULL;
    size_t count = tv_node_ints(n, "shape", &d);
    tv_shape shape = tv_shape_of(count < TV_LIMIT_RANK ? (uint32_t)count : TV_LIMIT_RANK, d);
    uint32_t y = tv_run_make(r, TV_F32, &shape);
    tv_run_constant(r, y);
    return tv_opset_done(r, n, y);
}

static const tv_err *range(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t first = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, first));
    double start = tv_run_scalar(r, first, (double)NAN);
    double limit = tv_run_scalar(r, tv_run_in(r, n, 1), (double)NAN);
    double delta = tv_run_scalar(r, tv_run_in(r, n, 2), (double)NAN);
    double count = ceil((limit - start) / delta);
    tv_dtype dtype = tv_run_at(r, first)->dtype;
    if (!isfinite(count))
        return tv_opset_guess(r, n, &dtype, &(tv_shape){.rank = 1, .d = {1}}, 1);
    uint32_t y = tv_rule_range(r, dtype, start, delta, count);
    bool constant = true;
    for (size_t i = 0; i < 3; i++)
        constant = constant && tv_run_at(r, tv_run_in(r, n, i))->constant;
    if (constant)
        tv_run_constant(r, y);
    return tv_opset_done(r, n, y);
}

static const tv_err *eye_like(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_dtype dtype = tv_opset_dtype(tv_node_int(n, "dtype", 0));
    uint32_t y = tv_run_make(r, dtype ? dtype : tv_run_at(r, x)->dtype, tv_run_shape(r, x));
    tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY}, NULL, 0, &y, 1);
    return tv_opset_done(r, n, y);
}

/* ---- random numbers ---- */

static const tv_err *random_of(tv_running *r, const tv_node *n, const tv_shape *shape,
                               tv_dtype dtype)
{
    uint32_t y = tv_run_make(r, dtype, shape);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY}, NULL, 0, &y, 1);
    return tv_opset_done(r, n, y);
}

static const tv_err *random_shape(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const int64_t *d = NULL;
    size_t count = tv_node_ints(n, "shape", &d);
    tv_shape shape = tv_shape_of(count < TV_LIMIT_RANK ? (uint32_t)count : TV_LIMIT_RANK, d);
    return random_of(r, n, &shape, tv_opset_dtype(tv_node_int(n, "dtype", 1)));
}

static const tv_err *random_like(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_dtype dtype = tv_opset_dtype(tv_node_int(n, "dtype", 0));
    return random_of(r, n, tv_run_shape(r, x), dtype ? dtype : tv_run_at(r, x)->dtype);
}

static const tv_err *multinomial(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    tv_shape shape =
        tv_shape_of(2, (int64_t[]){s->rank ? s->d[0] : 1, tv_node_int(n, "sample_size", 1)});
    uint32_t y = tv_run_make(r, tv_opset_dtype(tv_node_int(n, "dtype", 6)), &shape);
    TV_TRY(tv_rule_route(r, &x, 1, &y, 1));
    return tv_opset_done(r, n, y);
}

/* ---- branches and loops ---- */

static const tv_body *body_of(const tv_node *n, const char *name)
{
    const tv_attr *a = tv_node_attr(n, name);
    return a && a->kind == TV_ATTR_BODY ? a->u.body : NULL;
}

static const tv_err *no_body(tv_running *r)
{
    return tv_run_fail(r, "program.body", N_("a subgraph is missing"));
}

/* A branch has no inputs of its own; where a file lists some, they are outer values by name. */
static void bind_by_name(tv_running *r, const tv_body *b)
{
    const tv_program *p = tv_run_program(r);
    for (size_t i = 0; i < b->n_inputs; i++) {
        if (b->inputs[i] >= p->n_values)
            continue;
        tv_str name = p->values[b->inputs[i]].name;
        for (uint32_t v = 0; v < p->n_values; v++)
            if (v != b->inputs[i] && tv_str_eq(p->values[v].name, name) &&
                tv_run_of(r, v) != TV_NO_VALUE)
                tv_run_bind(r, b->inputs[i], tv_run_of(r, v));
    }
}

static const tv_err *branch(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const tv_body *yes = body_of(n, "then_branch");
    const tv_body *no = body_of(n, "else_branch");
    if (!yes || !no)
        return no_body(r);
    bind_by_name(r, yes);
    bind_by_name(r, no);
    double known = tv_run_scalar(r, tv_run_in(r, n, 0), -1);
    const tv_body *chosen = NULL;
    TV_TRY(tv_run_branch(r, yes, no, known < 0 ? -1 : known != 0, &chosen));
    for (size_t i = 0; i < n->n_outputs && i < chosen->n_outputs; i++)
        tv_run_out(r, n, i, tv_run_of(r, chosen->outputs[i]));
    return NULL;
}

/* What a loop puts out for one value of its body's last run: one per trip, stacked. */
static uint32_t stacked(tv_running *r, uint32_t x, double trips, int64_t axis)
{
    const tv_run_value *v = tv_run_at(r, x);
    tv_shape shape = v->shape;
    uint32_t at = 0;
    if (tv_shape_unsqueeze(&v->shape, &axis, 1, &shape) && tv_shape_axis(axis, shape.rank, &at))
        shape.d[at] = trips < 1e12 ? (int64_t)trips : 0;
    uint32_t y = tv_run_make(r, v->dtype, &shape);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY}, &x, 1, &y, 1);
    return y;
}

/* State that changes from trip to trip has no contents that hold for all of them. */
static const tv_err *without_contents(tv_running *r, uint32_t x, uint32_t *y)
{
    *y = x;
    if (x == TV_NO_VALUE || tv_run_at(r, x)->list || !tv_run_data(r, x))
        return NULL;
    *y = tv_run_make(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x));
    return NULL;
}

static const tv_err *loop(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const tv_body *b = body_of(n, "body");
    if (!b || b->n_inputs < 2 || !b->n_outputs)
        return no_body(r);
    size_t carried = b->n_inputs - 2;
    double most = tv_run_scalar(r, tv_run_in(r, n, 0), -1);
    /* A condition that is false from the start: the body never runs. */
    if (tv_run_scalar(r, tv_run_in(r, n, 1), 1) == 0)
        most = 0;
    if (most > 1e15)
        most = -1;
    double trips = tv_run_trips(r, most);
    tv_run_bind(r, b->inputs[0], tv_run_make(r, TV_I64, &(tv_shape){0}));
    tv_run_bind(r, b->inputs[1], tv_run_make(r, TV_BOOL, &(tv_shape){0}));
    for (size_t i = 0; i < carried; i++) {
        uint32_t x = TV_NO_VALUE;
        TV_TRY(without_contents(r, tv_run_in(r, n, 2 + i), &x));
        tv_run_bind(r, b->inputs[2 + i], x);
    }
    if (trips > 0)
        TV_TRY(tv_run_body(r, b, trips));
    for (size_t i = 0; i < n->n_outputs; i++) {
        bool last = i < carried;
        uint32_t x = trips > 0 && i + 1 < b->n_outputs ? tv_run_of(r, b->outputs[i + 1])
                                                       : tv_run_in(r, n, 2 + i);
        if (x == TV_NO_VALUE)
            continue;
        tv_run_out(r, n, i, last ? x : stacked(r, x, trips, 0));
        if (last && !tv_run_at(r, x)->list && trips > 1 && tv_run_in(r, n, 2 + i) != TV_NO_VALUE &&
            !tv_shape_same(tv_run_shape(r, x), tv_run_shape(r, tv_run_in(r, n, 2 + i))))
            tv_run_guess(r, x);
    }
    return NULL;
}

static int64_t scan_axis(const tv_node *n, const char *name, size_t i)
{
    const int64_t *axes = NULL;
    size_t count = tv_node_ints(n, name, &axes);
    return i < count ? axes[i] : 0;
}

/* One slice of a scanned input. */
static const tv_err *scan_slice(tv_running *r, uint32_t x, int64_t axis, double *trips, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    uint32_t at = 0;
    tv_shape shape = {0};
    if (!tv_shape_axis(axis, v->shape.rank, &at) ||
        !tv_shape_reduce(&v->shape, &axis, 1, false, &shape))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), &v->shape,
                                  NULL);
    *trips = (double)v->shape.d[at];
    *y = tv_run_make(r, v->dtype, &shape);
    if (v->constant)
        tv_run_constant(r, *y);
    return NULL;
}

/* Operator set 8 puts a batch in front and a length before the states; later ones do not. */
static const tv_err *scan(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const tv_body *b = body_of(n, "body");
    bool old = tv_run_opset(r, "") == 8;
    size_t first = old ? 1 : 0;
    size_t scanned = (size_t)tv_node_int(n, "num_scan_inputs", 0);
    if (!b || scanned > b->n_inputs || n->n_inputs < first + b->n_inputs)
        return no_body(r);
    size_t states = b->n_inputs - scanned;
    double trips = 0;
    double batch = 1;
    for (size_t i = 0; i < b->n_inputs; i++) {
        uint32_t x = tv_run_in(r, n, first + i);
        if (old)
            TV_TRY(scan_slice(r, x, 0, &batch, &x));
        if (i >= states)
            TV_TRY(scan_slice(r, x, old ? 0 : scan_axis(n, "scan_input_axes", i - states), &trips,
                              &x));
        tv_run_bind(r, b->inputs[i], x);
    }
    TV_TRY(tv_run_body(r, b, trips * batch));
    for (size_t i = 0; i < n->n_outputs && i < b->n_outputs; i++) {
        uint32_t y = tv_run_of(r, b->outputs[i]);
        TV_TRY(tv_run_need(r, y));
        if (i >= states)
            y = stacked(r, y, trips, old ? 0 : scan_axis(n, "scan_output_axes", i - states));
        tv_run_out(r, n, i, old ? stacked(r, y, batch, 0) : y);
    }
    return NULL;
}

/* ---- sequences ---- */

static const tv_err *sequence(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t *items = tv_opset_operands(r, n);
    for (size_t i = 0; i < n->n_inputs; i++)
        TV_TRY(tv_run_need(r, items[i]));
    tv_dtype dtype =
        n->n_inputs ? tv_run_at(r, items[0])->dtype : tv_opset_dtype(tv_node_int(n, "dtype", 1));
    return tv_opset_done(r, n, tv_run_make_list(r, dtype, items, n->n_inputs));
}

static const tv_err *need_list(tv_running *r, uint32_t x)
{
    TV_TRY(tv_run_need(r, x));
    if (!tv_run_at(r, x)->list)
        return tv_run_fail(r, "program.list", N_("the operand is no sequence"));
    return NULL;
}

/* Where a position is not known, the last element stands for all. */
static bool place_in(tv_running *r, uint32_t list, uint32_t position, size_t room, size_t *at)
{
    double count = (double)tv_run_at(r, list)->n_items;
    double p = tv_run_scalar(r, position, (double)NAN);
    if (p < 0)
        p += count;
    bool known = p >= 0 && p < (double)room;
    *at = known ? (size_t)p : room ? room - 1 : 0;
    return known;
}

static const tv_err *sequence_at(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t list = tv_run_in(r, n, 0);
    TV_TRY(need_list(r, list));
    const tv_run_value *v = tv_run_at(r, list);
    size_t at = 0;
    bool known = place_in(r, list, tv_run_in(r, n, 1), v->n_items, &at);
    uint32_t y = v->n_items ? v->items[at] : tv_run_make_guess(r, n, 0, v->dtype, &v->shape);
    if (!known && v->n_items) {
        y = tv_run_make(r, tv_run_at(r, y)->dtype, tv_run_shape(r, y));
        tv_run_guess(r, y);
    }
    return tv_opset_done(r, n, y);
}

static const tv_err *sequence_insert(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t list = tv_run_in(r, n, 0);
    uint32_t x = tv_run_in(r, n, 1);
    TV_TRY(need_list(r, list));
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, list);
    size_t at = v->n_items;
    if (tv_run_in(r, n, 2) != TV_NO_VALUE)
        place_in(r, list, tv_run_in(r, n, 2), v->n_items + 1, &at);
    uint32_t *items = tv_new(tv_run_arena(r), uint32_t, v->n_items + 1);
    for (size_t i = 0; i <= v->n_items; i++)
        items[i] = i == at ? x : v->items[i > at ? i - 1 : i];
    return tv_opset_done(r, n, tv_run_make_list(r, tv_run_at(r, x)->dtype, items, v->n_items + 1));
}

static const tv_err *sequence_erase(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t list = tv_run_in(r, n, 0);
    TV_TRY(need_list(r, list));
    const tv_run_value *v = tv_run_at(r, list);
    size_t at = 0;
    place_in(r, list, tv_run_in(r, n, 1), v->n_items, &at);
    uint32_t *items = tv_new(tv_run_arena(r), uint32_t, v->n_items + 1);
    size_t count = 0;
    for (size_t i = 0; i < v->n_items; i++)
        if (i != at)
            items[count++] = v->items[i];
    return tv_opset_done(r, n, tv_run_make_list(r, v->dtype, items, count));
}

static const tv_err *sequence_length(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t list = tv_run_in(r, n, 0);
    TV_TRY(need_list(r, list));
    double count = (double)tv_run_at(r, list)->n_items;
    return tv_opset_done(r, n, numbers(r, TV_I64, 1, &count, true));
}

/* Parts of a stated size (or of 1); an axis of size 1 may vanish. */
static const tv_err *split_to_sequence(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    int64_t axis = tv_node_int(n, "axis", 0);
    uint32_t at = 0;
    if (!tv_shape_axis(axis, v->shape.rank, &at))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), &v->shape,
                                  NULL);
    uint32_t sizes = tv_run_in(r, n, 1);
    int64_t each = (int64_t)fmin(fmax(tv_run_scalar(r, sizes, 1), 1), 1e12);
    bool listed = sizes != TV_NO_VALUE && tv_run_shape(r, sizes)->rank == 1;
    bool keeps = sizes != TV_NO_VALUE || tv_node_int(n, "keepdims", 1);
    size_t count = 0;
    bool known = true;
    const int64_t *parts = listed ? tv_opset_ints(r, n, NULL, 1, &count, &known) : NULL;
    if (!parts) {
        int64_t size = v->shape.d[at];
        int64_t n_parts = (size + each - 1) / each;
        if (n_parts > (int64_t)TV_LIMIT_PROGRAM_CONST_ELEMENTS)
            return tv_run_unknown(r, n);
        int64_t *own = tv_new(tv_run_arena(r), int64_t, (size_t)n_parts + 1);
        for (; count < (size_t)n_parts; count++)
            own[count] = size - each * (int64_t)count < each ? size - each * (int64_t)count : each;
        parts = own;
    }
    uint32_t *items = tv_new(tv_run_arena(r), uint32_t, count + 1);
    TV_TRY(tv_rule_split(r, axis, parts, count, true, x, items));
    for (size_t i = 0; i < count && !keeps; i++)
        TV_TRY(tv_rule_squeeze(r, items[i], &axis, 1, &items[i]));
    return tv_opset_done(r, n, tv_run_make_list(r, v->dtype, items, count));
}

static const tv_err *concat_from_sequence(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t list = tv_run_in(r, n, 0);
    TV_TRY(need_list(r, list));
    const tv_run_value *v = tv_run_at(r, list);
    int64_t axis = tv_node_int(n, "axis", 0);
    uint32_t y = TV_NO_VALUE;
    if (!v->n_items)
        return tv_run_unknown(r, n);
    TV_TRY(tv_node_int(n, "new_axis", 0) ? tv_rule_stack(r, axis, v->items, v->n_items, &y)
                                         : tv_rule_concat(r, axis, v->items, v->n_items, &y));
    return tv_opset_done(r, n, y);
}

/* The body once, for all elements together. */
static const tv_err *sequence_map(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const tv_body *b = body_of(n, "body");
    uint32_t list = tv_run_in(r, n, 0);
    TV_TRY(need_list(r, list));
    size_t count = tv_run_at(r, list)->n_items;
    if (!b || !count)
        return b ? tv_run_unknown(r, n) : no_body(r);
    for (size_t i = 0; i < b->n_inputs; i++) {
        uint32_t x = tv_run_in(r, n, i);
        bool each = x != TV_NO_VALUE && tv_run_at(r, x)->list && tv_run_at(r, x)->n_items;
        tv_run_bind(r, b->inputs[i], each ? tv_run_at(r, x)->items[0] : x);
    }
    TV_TRY(tv_run_body(r, b, (double)count));
    for (size_t i = 0; i < n->n_outputs && i < b->n_outputs; i++) {
        uint32_t y = tv_run_of(r, b->outputs[i]);
        TV_TRY(tv_run_need(r, y));
        uint32_t *items = tv_new(tv_run_arena(r), uint32_t, count);
        for (size_t k = 0; k < count; k++)
            items[k] = y;
        tv_run_out(r, n, i, tv_run_make_list(r, tv_run_at(r, y)->dtype, items, count));
    }
    return NULL;
}

/* ---- optionals ---- */

static const tv_err *optional(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    return x == TV_NO_VALUE ? tv_run_unknown(r, n) : tv_opset_done(r, n, x);
}

static const tv_err *has_element(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    double yes = tv_run_in(r, n, 0) != TV_NO_VALUE;
    return tv_opset_done(r, n, numbers(r, TV_BOOL, 1, &yes, true));
}

static const tv_rule rules[] = {
    {"Bernoulli", random_like, 0},
    {"ConcatFromSequence", concat_from_sequence, 0},
    {"Constant", constant, 0},
    {"ConstantOfShape", constant_of_shape, 0},
    {"EyeLike", eye_like, 0},
    {"GivenTensorFill", given_fill, 0},
    {"If", branch, 0},
    {"Loop", loop, 0},
    {"Multinomial", multinomial, 0},
    {"Optional", optional, 0},
    {"OptionalGetElement", optional, 0},
    {"OptionalHasElement", has_element, 0},
    {"RandomNormal", random_shape, 0},
    {"RandomNormalLike", random_like, 0},
    {"RandomUniform", random_shape, 0},
    {"RandomUniformLike", random_like, 0},
    {"Range", range, 0},
    {"Scan", scan, 0},
    {"SequenceAt", sequence_at, 0},
    {"SequenceConstruct", sequence, 0},
    {"SequenceEmpty", sequence, 0},
    {"SequenceErase", sequence_erase, 0},
    {"SequenceInsert", sequence_insert, 0},
    {"SequenceLength", sequence_length, 0},
    {"SequenceMap", sequence_map, 0},
    {"SplitToSequence", split_to_sequence, 0},
};

const tv_rule_table tv_rules_onnx_flow = {TV_DIALECT_ONNX, "", rules, sizeof rules / sizeof *rules};
