/* Arguments and results of ATen's operators, as torch.export and captures write them: operands in
 * slots and attributes with the names of the operator's schema, results with stated shapes. */
#include "program_aten.h"

#include <math.h>

#include "program_running.h"

/* ---- arguments ---- */

uint32_t tv_aten_in(const tv_running *r, const tv_node *n, const char *name)
{
    return tv_run_in_slot(r, n, name, 0);
}

uint32_t tv_aten_first(const tv_running *r, const tv_node *n)
{
    return tv_run_in(r, n, 0);
}

size_t tv_aten_list(const tv_running *r, const tv_node *n, const char *name, uint32_t *out,
                    size_t max)
{
    for (size_t s = 0; s < n->n_input_slots; s++) {
        if (!tv_str_is(n->input_slots[s].name, name))
            continue;
        const size_t count = n->input_slots[s].n < max ? n->input_slots[s].n : max;
        for (size_t i = 0; i < count; i++)
            out[i] = tv_run_in(r, n, n->input_slots[s].first + i);
        return count;
    }
    return 0;
}

double tv_aten_num(tv_running *r, const tv_node *n, const char *name, double fallback)
{
    const tv_attr *a = tv_node_attr(n, name);
    if (a && a->kind == TV_ATTR_DIMS && a->n == 1) {
        const int64_t v = tv_run_dim(r, a->u.dims);
        return v >= 0 || !a->u.dims[0].symbol.n ? (double)v : fallback;
    }
    if (a && a->kind == TV_ATTR_INTS && a->n == 1)
        return (double)a->u.ints[0];
    return tv_node_float(n, name, fallback);
}

int64_t tv_aten_int(tv_running *r, const tv_node *n, const char *name, int64_t fallback)
{
    const tv_attr *a = tv_node_attr(n, name);
    if (a && a->kind == TV_ATTR_INT)
        return a->u.i;
    const double v = tv_aten_num(r, n, name, (double)NAN);
    return v > -9e15 && v < 9e15 ? (int64_t)v : fallback;
}

bool tv_aten_flag(tv_running *r, const tv_node *n, const char *name)
{
    return tv_aten_int(r, n, name, 0) != 0;
}

bool tv_aten_has(const tv_node *n, const char *name)
{
    return tv_node_attr(n, name) != NULL;
}

size_t tv_aten_ints(tv_running *r, const tv_node *n, const char *name, const int64_t **v)
{
    *v = NULL;
    return tv_run_attr_ints(r, n, name, v);
}

void tv_aten_per_axis(tv_running *r, const tv_node *n, const char *name, int64_t fallback,
                      uint32_t axes, int64_t *out)
{
    const int64_t *v = NULL;
    const size_t count = tv_aten_ints(r, n, name, &v);
    for (uint32_t i = 0; i < axes; i++)
        out[i] = count == 0 ? fallback : i < count ? v[i] : v[count - 1];
}

uint32_t tv_aten_operand(tv_running *r, const tv_node *n, const char *name, uint32_t like)
{
    const uint32_t v = tv_aten_in(r, n, name);
    const tv_attr *a = tv_node_attr(n, name);
    if (v != TV_NO_VALUE || !a)
        return v;
    const double number = tv_aten_num(r, n, name, (double)NAN);
    const bool whole = a->kind == TV_ATTR_INT || a->kind == TV_ATTR_DIMS;
    tv_dtype dtype = whole ? TV_I64 : TV_F32;
    if (like != TV_NO_VALUE && (whole || tv_dtype_of(tv_run_at(r, like)->dtype)->is_float))
        dtype = tv_run_at(r, like)->dtype;
    const uint32_t made = isnan(number) ? tv_run_make(r, dtype, &(tv_shape){0})
                                        : tv_run_make_data(r, dtype, &(tv_shape){0}, &number);
    tv_run_constant(r, made);
    return made;
}

static tv_str base_name(tv_str op)
{
    size_t dots = 0, end = op.n;
    for (size_t i = 0; i < op.n; i++)
        if (op.p[i] == '.' && ++dots == 2)
            end = i;
    return tv_str_take(op, end);
}

bool tv_aten_inplace(const tv_node *n)
{
    const tv_str name = base_name(n->op);
    /* "__and__" is Python's name for a function that is not in place. */
    return tv_str_ends(name, TV_S("_")) && !tv_str_ends(name, TV_S("__"));
}

/* ---- results ---- */

static const tv_value *output(const tv_running *r, const tv_node *n, size_t i)
{
    const uint32_t v = tv_node_out(n, i);
    return v < r->p->n_values ? &r->p->values[v] : NULL;
}

tv_dtype tv_aten_dtype(tv_running *r, const tv_node *n, size_t i, tv_dtype fallback)
{
    const tv_attr *a = tv_node_attr(n, "dtype");
    const tv_value *v = output(r, n, i);
    if (a && a->kind == TV_ATTR_DTYPE && a->u.dtype)
        return a->u.dtype;
    return v && v->dtype ? v->dtype : fallback;
}

static bool stated_shape(tv_running *r, const tv_value *v, tv_shape *s)
{
    if (!v || !v->shaped || v->rank > TV_LIMIT_RANK)
        return false;
    s->rank = v->rank;
    for (uint32_t i = 0; i < v->rank; i++) {
        s->d[i] = tv_run_dim(r, &v->dims[i]);
        if (s->d[i] < 0)
            return false;
    }
    return true;
}

bool tv_aten_stated(tv_running *r, const tv_node *n, size_t i, uint32_t x, tv_shape *s)
{
    const tv_value *v = output(r, n, i);
    if (!stated_shape(r, v, s))
        return false;
    const int64_t was = (int64_t)r->batch_stated, is = (int64_t)r->batch;
    if (was == is || was <= 0 || x == TV_NO_VALUE || !s->rank || v->dims[0].size < 0)
        return true;
    const tv_shape *from = tv_run_shape(r, x);
    const bool leads = from->rank && from->d[0] > 0 && from->d[0] % is == 0;
    if (leads && !tv_run_at(r, x)->constant && s->d[0] % was == 0 && (was > 1 || s->d[0] == 1))
        s->d[0] = s->d[0] / was * is;
    return true;
}

/* Every input has the shape that the program states: what it states of inner values holds too. */
static bool at_own_sizes(tv_running *r)
{
    for (size_t i = 0; i < r->p->main->n_inputs; i++) {
        const uint32_t input = r->p->main->inputs[i];
        const uint32_t v = tv_run_of(r, input);
        tv_shape s = {0};
        if (v == TV_NO_VALUE || !stated_shape(r, &r->p->values[input], &s) ||
            !tv_shape_same(&s, tv_run_shape(r, v)))
            return false;
    }
    return true;
}

/* The file knows better; once, it is said where. */
static void correct(tv_running *r, const tv_node *n, tv_run_value *x, const tv_shape *s)
{
    if (r->out->n_differ++ == 0)
        tv_run_warn(r, TV_TEXT(r->a, "program.stated",
                               N_("{op} states another shape than it should put out: the "
                                  "statement holds"),
                               tv_arg_str("op", n->op)));
    x->shape = *s;
    x->data = NULL;
    x->guessed = false;
}

void tv_aten_out(tv_running *r, const tv_node *n, size_t i, uint32_t v)
{
    const tv_value *to = output(r, n, i);
    tv_shape s = {0};
    if (!to || v == TV_NO_VALUE)
        return;
    tv_run_value *x = tv_running_at(r, v);
    if (x->from) { /* a value that has a name already: another one for the same thing */
        uint32_t again = TV_NO_VALUE;
        again = tv_run_make(r, x->dtype, &x->shape);
        tv_run_view_of(r, again, v);
        tv_run_value *y = tv_running_at(r, again);
        y->data = x->data;
        y->constant = x->constant;
        y->guessed = x->guessed;
        x = y;
        v = again;
    }
    if (to->dtype && to->dtype != x->dtype && !x->list)
        x->dtype = to->dtype;
    if (stated_shape(r, to, &s) && at_own_sizes(r)) {
        r->out->n_stated++;
        if (!tv_shape_same(&s, &x->shape))
            correct(r, n, x, &s);
    }
    tv_run_out(r, n, i, v);
}

uint32_t tv_aten_make(tv_running *r, const tv_node *n, size_t i, uint32_t x)
{
    tv_shape s = {0};
    const bool stated = tv_aten_stated(r, n, i, x, &s);
    if (!stated && x != TV_NO_VALUE)
        s = *tv_run_shape(r, x);
    const tv_dtype dtype =
        tv_aten_dtype(r, n, i, x == TV_NO_VALUE ? TV_F32 : tv_run_at(r, x)->dtype);
    const uint32_t v = tv_run_make(r, dtype, &s);
    if (!stated)
        tv_run_guess(r, v);
    return v;
}

void tv_aten_rest(tv_running *r, const tv_node *n, size_t i, uint32_t x)
{
    for (; i < n->n_outputs; i++) {
        const tv_value *to = output(r, n, i);
        if (!to)
            continue;
        tv_shape s = {0};
        if (!tv_aten_stated(r, n, i, x, &s))
            s = (tv_shape){0};
        tv_run_out(r, n, i, tv_run_make(r, to->dtype ? to->dtype : TV_F32, &s));
    }
}

/* ---- rules that serve many ---- */

static size_t operands(const tv_running *r, const tv_node *n, uint32_t *in, size_t max)
{
    const size_t count = n->n_inputs < max ? n->n_inputs : max;
    for (size_t i = 0; i < count; i++)
        in[i] = tv_run_in(r, n, i);
    return count;
}

enum { MANY = 64 };

const tv_err *tv_aten_copied(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t in[MANY];
    const size_t count = operands(r, n, in, MANY);
    const uint32_t y = tv_aten_make(r, n, 0, tv_aten_first(r, n));
    tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY}, in, count, &y, 1);
    tv_aten_out(r, n, 0, y);
    tv_aten_rest(r, n, 1, tv_aten_first(r, n));
    return NULL;
}

const tv_err *tv_aten_routed(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t in[MANY], out[MANY];
    const size_t count = operands(r, n, in, MANY);
    const size_t n_out = n->n_outputs < MANY ? n->n_outputs : MANY;
    const uint32_t x = tv_aten_first(r, n);
    for (size_t i = 0; i < n_out; i++)
        out[i] = tv_aten_make(r, n, i, x);
    TV_TRY(tv_rule_route(r, in, count, out, n_out));
    for (size_t i = 0; i < n_out; i++)
        tv_aten_out(r, n, i, out[i]);
    return NULL;
}

const tv_err *tv_aten_same(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_view(r, x, tv_run_shape(r, x), &y));
    tv_aten_out(r, n, 0, y);
    return NULL;
}
