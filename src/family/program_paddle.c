/* Operands, attributes and outputs of Paddle's operators in their two forms. */
#include "program_paddle.h"

#include <math.h>

static bool pir(const tv_running *r)
{
    return tv_run_program(r)->pir;
}

/* ---- operands ---- */

/* Operators of later versions write their slots in small letters. */
static const tv_slot *slot_named(const tv_slot *slots, size_t n, const char *name)
{
    for (size_t i = 0; *name && i < n; i++)
        if (tv_str_eq_nocase(slots[i].name, tv_str_of(name)))
            return &slots[i];
    return NULL;
}

static const tv_slot *slot_at(const tv_slot *slots, size_t n, int place)
{
    return place >= 0 && (size_t)place < n ? &slots[place] : NULL;
}

static const tv_slot *in_slot(const tv_running *r, const tv_node *n, const char *slot, int place)
{
    return pir(r) ? slot_at(n->input_slots, n->n_input_slots, place)
                  : slot_named(n->input_slots, n->n_input_slots, slot);
}

static const tv_slot *out_slot(const tv_running *r, const tv_node *n, const char *slot, int place)
{
    return pir(r) ? slot_at(n->output_slots, n->n_output_slots, place)
                  : slot_named(n->output_slots, n->n_output_slots, slot);
}

uint32_t tv_pd_in(tv_running *r, const tv_node *n, const char *slot, int place)
{
    const tv_slot *s = in_slot(r, n, slot, place);
    return s && s->n ? tv_run_in(r, n, s->first) : TV_NO_VALUE;
}

uint32_t tv_pd_main(tv_running *r, const tv_node *n)
{
    static const char *const slots[] = {"X", "Input", "In", "Logits", "Emission", "Values"};
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        const uint32_t v = tv_pd_in(r, n, slots[i], 0);
        if (v != TV_NO_VALUE)
            return v;
    }
    return tv_run_in(r, n, 0);
}

tv_pd_list tv_pd_in_list(tv_running *r, const tv_node *n, const char *slot, int place)
{
    const tv_slot *s = in_slot(r, n, slot, place);
    tv_pd_list list = {.v = tv_new(tv_run_arena(r), uint32_t, s ? s->n + 1 : 1)};
    for (uint32_t i = 0; s && i < s->n; i++) {
        list.v[list.n] = tv_run_in(r, n, s->first + i);
        list.n += list.v[list.n] != TV_NO_VALUE;
    }
    return list;
}

/* ---- outputs ---- */

size_t tv_pd_out_count(const tv_running *r, const tv_node *n, const char *slot, int place)
{
    const tv_slot *s = out_slot(r, n, slot, place);
    return s ? s->n : 0;
}

bool tv_pd_declared(tv_running *r, const tv_node *n, const char *slot, int place, size_t i,
                    tv_shape *shape, tv_dtype *dtype)
{
    const tv_slot *s = out_slot(r, n, slot, place);
    const uint32_t value = s && i < s->n ? n->outputs[s->first + i] : TV_NO_VALUE;
    if (value == TV_NO_VALUE)
        return false;
    const tv_value *v = &tv_run_program(r)->values[value];
    *dtype = v->dtype;
    if (!v->shaped || v->rank > TV_LIMIT_RANK)
        return false;
    shape->rank = v->rank;
    for (uint32_t k = 0; k < v->rank; k++)
        shape->d[k] = v->dims[k].size;
    return true;
}

void tv_pd_out_at(tv_running *r, const tv_node *n, const char *slot, int place, size_t i,
                  uint32_t v)
{
    const tv_slot *s = out_slot(r, n, slot, place);
    tv_shape declared = {0};
    tv_dtype dtype = TV_DTYPE_UNKNOWN;
    if (!s || i >= s->n || v == TV_NO_VALUE)
        return;
    const bool old_scalar = tv_run_shape(r, v)->rank == 0 &&
                            tv_pd_declared(r, n, slot, place, i, &declared, &dtype) &&
                            declared.rank == 1;
    if (old_scalar) {
        uint32_t one = v;
        if (tv_rule_view(r, v, &(tv_shape){.rank = 1, .d = {1}}, &one) == NULL)
            v = one;
    }
    tv_run_out(r, n, s->first + i, v);
}

void tv_pd_out(tv_running *r, const tv_node *n, const char *slot, int place, uint32_t v)
{
    tv_pd_out_at(r, n, slot, place, 0, v);
}

/* ---- attributes ---- */

static const tv_attr *attr_of(const tv_node *n, const char *names)
{
    tv_str rest = tv_str_of(names);
    while (rest.n) {
        const tv_cut c = tv_str_cut(rest, '|');
        for (size_t i = 0; i < n->n_attrs; i++)
            if (tv_str_eq(n->attrs[i].name, c.head))
                return &n->attrs[i];
        rest = c.tail;
    }
    return NULL;
}

double tv_pd_attr_num(tv_running *r, const tv_node *n, const char *names, double fallback)
{
    const tv_attr *a = attr_of(n, names);
    (void)r;
    if (!a)
        return fallback;
    if (a->kind == TV_ATTR_INT)
        return (double)a->u.i;
    if (a->kind == TV_ATTR_FLOAT)
        return a->u.f;
    if (a->kind == TV_ATTR_INTS && a->n == 1)
        return (double)a->u.ints[0];
    if (a->kind == TV_ATTR_FLOATS && a->n >= 1)
        return a->u.floats[0];
    if (a->kind != TV_ATTR_STRING)
        return fallback;
    const tv_double_read read = tv_str_double(a->u.s); /* fill_constant's str_value */
    return read.ok ? read.v : fallback;
}

bool tv_pd_attr_is(tv_running *r, const tv_node *n, const char *name, const char *word)
{
    (void)r;
    return tv_str_is(tv_node_string(n, name), word);
}

tv_dtype tv_pd_attr_dtype(const tv_node *n, const char *names, tv_dtype fallback)
{
    const tv_attr *a = attr_of(n, names);
    if (!a || a->kind != TV_ATTR_DTYPE || a->u.dtype == TV_DTYPE_UNKNOWN)
        return fallback;
    return a->u.dtype;
}

/* ---- numbers ---- */

static void push(tv_pd_ints *out, bool known, double v)
{
    if (out->n == PD_MOST) {
        out->known = false;
        return;
    }
    const bool fits = known && fabs(v) < 9e18;
    out->v[out->n++] = fits ? (int64_t)v : PD_OPEN;
    out->known = out->known && fits;
}

static void push_tensor(tv_running *r, uint32_t v, tv_pd_ints *out)
{
    const double *data = tv_run_data(r, v);
    const double n = tv_shape_elements(tv_run_shape(r, v));
    out->given = true;
    for (size_t i = 0; i < PD_MOST && (double)i < n; i++)
        push(out, data != NULL, data ? data[i] : 0);
}

static void push_attr(tv_running *r, const tv_node *n, const char *names, tv_pd_ints *out)
{
    const tv_attr *a = attr_of(n, names);
    const int64_t *v = NULL;
    if (!a || a->kind == TV_ATTR_FLOATS || a->kind == TV_ATTR_STRING)
        return;
    const size_t count = tv_run_attr_ints(r, n, tv_cstr(tv_run_arena(r), a->name), &v);
    out->given = a->kind != TV_ATTR_NONE;
    for (size_t i = 0; i < count; i++)
        push(out, true, (double)v[i]);
}

void tv_pd_read_ints(tv_running *r, const tv_node *n, tv_pd_where w, tv_pd_ints *out)
{
    const tv_pd_list list = tv_pd_in_list(r, n, w.list ? w.list : "", w.place);
    out->n = 0;
    out->given = false;
    out->known = true;
    for (size_t i = 0; i < list.n; i++)
        push_tensor(r, list.v[i], out);
    const uint32_t tensor =
        out->given ? TV_NO_VALUE : tv_pd_in(r, n, w.tensor ? w.tensor : "", PD_NONE);
    if (tensor != TV_NO_VALUE)
        push_tensor(r, tensor, out);
    if (!out->given && w.attr)
        push_attr(r, n, w.attr, out);
}

double tv_pd_read_num(tv_running *r, const tv_node *n, tv_pd_where w, double fallback)
{
    const uint32_t v = tv_pd_in(r, n, w.tensor ? w.tensor : "", w.place);
    if (v != TV_NO_VALUE)
        return tv_run_scalar(r, v, fallback);
    return w.attr ? tv_pd_attr_num(r, n, w.attr, fallback) : fallback;
}

bool tv_pd_channels_last(tv_running *r, const tv_node *n)
{
    const tv_attr *a = attr_of(n, "data_format|data_layout");
    (void)r;
    if (!a || a->kind != TV_ATTR_STRING)
        return false;
    return tv_str_is(a->u.s, "NHWC") || tv_str_is(a->u.s, "NDHWC") || tv_str_is(a->u.s, "NLC") ||
           tv_str_is(a->u.s, "NWC");
}

bool tv_pd_inplace(const tv_node *n)
{
    if (n->n_inputs && n->n_outputs && n->inputs[0] == n->outputs[0])
        return true;
    return tv_str_ends(n->op, TV_S("_"));
}

/* ---- values ---- */

uint32_t tv_pd_make_guess(tv_running *r, tv_dtype dtype, const tv_shape *shape)
{
    tv_shape s = *shape;
    for (uint32_t i = 0; i < s.rank; i++)
        s.d[i] = s.d[i] < 0 ? 1 : s.d[i];
    const uint32_t v = tv_run_make(r, dtype, &s);
    tv_run_guess(r, v);
    return v;
}

const tv_err *tv_pd_reshaped(tv_running *r, uint32_t x, const tv_shape *shape, uint32_t *y)
{
    if (tv_shape_count(tv_run_shape(r, x)) == tv_shape_count(shape))
        return tv_rule_view(r, x, shape, y);
    *y = tv_pd_make_guess(r, tv_run_at(r, x)->dtype, shape);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY, .guessed = true}, &x, 1, y, 1);
    return NULL;
}

const tv_err *tv_pd_route(tv_running *r, const tv_node *n, const uint32_t *y, size_t n_y)
{
    uint32_t *x = tv_new(tv_run_arena(r), uint32_t, n->n_inputs + 1);
    size_t count = 0;
    for (size_t i = 0; i < n->n_inputs; i++) {
        x[count] = tv_run_in(r, n, i);
        count += x[count] != TV_NO_VALUE;
    }
    return tv_rule_route(r, x, count, y, n_y);
}

const tv_err *tv_pd_activate(tv_running *r, tv_str name, uint32_t x, uint32_t *y)
{
    static const struct {
        const char *name;
        tv_fn fn;
    } words[] = {
        {"relu", TV_FN_RELU},
        {"relu6", TV_FN_RELU6},
        {"gelu", TV_FN_GELU},
        {"swish", TV_FN_SILU},
        {"silu", TV_FN_SILU},
        {"leaky_relu", TV_FN_LEAKY_RELU},
        {"hard_swish", TV_FN_HARDSWISH},
        {"hardswish", TV_FN_HARDSWISH},
        {"sigmoid", TV_FN_SIGMOID},
        {"tanh", TV_FN_TANH},
        {"hard_sigmoid", TV_FN_HARDSIGMOID},
        {"mish", TV_FN_MISH},
    };
    *y = x;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_str_is(name, words[i].name))
            return tv_rule_fn(r, (tv_fn_call){.fn = words[i].fn, .inplace = true}, x, y);
    return NULL;
}

/* A number of a file as an integer: what no axis or size can be becomes one that none is. */
static int64_t whole(double v, double fallback)
{
    const double limit = 1e15, w = v == v ? v : fallback;
    return (int64_t)(w > limit ? limit : w < -limit ? -limit : w);
}

int64_t tv_pd_attr_int(tv_running *r, const tv_node *n, const char *names, double fallback)
{
    return whole(tv_pd_attr_num(r, n, names, fallback), fallback);
}

int64_t tv_pd_read_int(tv_running *r, const tv_node *n, tv_pd_where where, double fallback)
{
    return whole(tv_pd_read_num(r, n, where, fallback), fallback);
}

const tv_err *tv_pd_as_declared(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t *y = tv_new(tv_run_arena(r), uint32_t, n->n_outputs + 1);
    size_t count = 0;
    (void)rule;
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] == TV_NO_VALUE)
            continue;
        const tv_value *v = &tv_run_program(r)->values[n->outputs[i]];
        tv_shape s = {.rank = v->rank <= TV_LIMIT_RANK ? v->rank : 0};
        for (uint32_t k = 0; k < s.rank; k++)
            s.d[k] = v->dims[k].size;
        y[count] = tv_pd_make_guess(r, v->dtype, &s);
        tv_run_out(r, n, i, y[count++]);
    }
    return tv_pd_route(r, n, y, count);
}
