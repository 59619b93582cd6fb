/* Look-ups in a program's nodes. */
#include "program.h"

#include "base/str.h"

const tv_attr *tv_node_attr(const tv_node *n, const char *name)
{
    for (size_t i = 0; i < n->n_attrs; i++)
        if (tv_str_is(n->attrs[i].name, name))
            return &n->attrs[i];
    return NULL;
}

int64_t tv_node_int(const tv_node *n, const char *name, int64_t fallback)
{
    const tv_attr *a = tv_node_attr(n, name);
    return a && a->kind == TV_ATTR_INT ? a->u.i : fallback;
}

double tv_node_float(const tv_node *n, const char *name, double fallback)
{
    const tv_attr *a = tv_node_attr(n, name);
    if (a && a->kind == TV_ATTR_FLOAT)
        return a->u.f;
    return a && a->kind == TV_ATTR_INT ? (double)a->u.i : fallback;
}

tv_str tv_node_string(const tv_node *n, const char *name)
{
    const tv_attr *a = tv_node_attr(n, name);
    return a && a->kind == TV_ATTR_STRING ? a->u.s : (tv_str){0};
}

size_t tv_node_ints(const tv_node *n, const char *name, const int64_t **v)
{
    const tv_attr *a = tv_node_attr(n, name);
    if (a && a->kind == TV_ATTR_INTS) {
        *v = a->u.ints;
        return a->n;
    }
    if (a && a->kind == TV_ATTR_INT) {
        *v = &a->u.i;
        return 1;
    }
    return 0;
}

uint32_t tv_node_in(const tv_node *n, size_t i)
{
    return i < n->n_inputs ? n->inputs[i] : TV_NO_VALUE;
}

uint32_t tv_node_out(const tv_node *n, size_t i)
{
    return i < n->n_outputs ? n->outputs[i] : TV_NO_VALUE;
}

static uint32_t in_slot(const tv_slot *slots, size_t n_slots, const uint32_t *values, tv_str slot,
                        size_t i)
{
    for (size_t s = 0; s < n_slots; s++)
        if (tv_str_eq(slots[s].name, slot))
            return i < slots[s].n ? values[slots[s].first + i] : TV_NO_VALUE;
    return TV_NO_VALUE;
}

uint32_t tv_node_in_slot(const tv_node *n, const char *slot, size_t i)
{
    return in_slot(n->input_slots, n->n_input_slots, n->inputs, tv_str_of(slot), i);
}

uint32_t tv_node_out_slot(const tv_node *n, const char *slot, size_t i)
{
    return in_slot(n->output_slots, n->n_output_slots, n->outputs, tv_str_of(slot), i);
}

uint64_t tv_value_elements(const tv_value *v)
{
    uint64_t n = v->shaped ? 1 : 0;
    for (uint32_t i = 0; i < v->rank && n; i++)
        if (v->dims[i].size < 0 || __builtin_mul_overflow(n, (uint64_t)v->dims[i].size, &n))
            return 0;
    return n;
}
