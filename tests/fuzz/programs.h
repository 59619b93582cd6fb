/* What the fuzz targets of program readers share: every index of a program is inside its lists,
 * bodies are a tree, and the kept contents fit their lists. */
#ifndef TV_PROGRAMS_H
#define TV_PROGRAMS_H

#include "reading.h"

static inline void must(bool holds)
{
    if (!holds)
        abort();
}

static inline void fuzz_ids(const tv_program *p, const uint32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        must(ids[i] < p->n_values || ids[i] == TV_NO_VALUE);
}

static inline void fuzz_slots(const tv_slot *slots, size_t n_slots, size_t n)
{
    for (size_t i = 0; i < n_slots; i++)
        must(slots[i].first <= n && slots[i].n <= n - slots[i].first);
}

static inline void fuzz_body(const tv_program *p, const tv_body *body, unsigned depth);

static inline void fuzz_attr(const tv_program *p, const tv_attr *attr, unsigned depth)
{
    volatile double sum = 0; /* every kept element is read */
    if (attr->kind == TV_ATTR_INTS)
        for (size_t i = 0; i < attr->n; i++)
            sum = sum + (double)attr->u.ints[i];
    if (attr->kind == TV_ATTR_FLOATS)
        for (size_t i = 0; i < attr->n; i++)
            sum = sum + attr->u.floats[i];
    if (attr->kind == TV_ATTR_STRINGS)
        for (size_t i = 0; i < attr->n; i++)
            sum = sum + (double)(tv_str_hash(attr->u.strings[i]) & 1);
    if (attr->kind == TV_ATTR_STRING)
        sum = sum + (double)(tv_str_hash(attr->u.s) & 1);
    if (attr->kind == TV_ATTR_VALUES)
        fuzz_ids(p, attr->u.values, attr->n);
    if (attr->kind == TV_ATTR_BODY)
        fuzz_body(p, attr->u.body, depth + 1);
    if (attr->kind == TV_ATTR_BODIES)
        for (size_t i = 0; i < attr->n; i++)
            fuzz_body(p, attr->u.bodies[i], depth + 1);
}

static inline void fuzz_body(const tv_program *p, const tv_body *body, unsigned depth)
{
    must(depth <= TV_LIMIT_PROGRAM_DEPTH);
    fuzz_ids(p, body->inputs, body->n_inputs);
    fuzz_ids(p, body->outputs, body->n_outputs);
    for (size_t i = 0; i < body->n_nodes; i++) {
        const tv_node *n = &body->nodes[i];
        must(n->op.n > 0);
        fuzz_ids(p, n->inputs, n->n_inputs);
        fuzz_ids(p, n->outputs, n->n_outputs);
        fuzz_slots(n->input_slots, n->n_input_slots, n->n_inputs);
        fuzz_slots(n->output_slots, n->n_output_slots, n->n_outputs);
        for (size_t k = 0; k < n->n_attrs; k++)
            fuzz_attr(p, &n->attrs[k], depth);
    }
}

static inline void fuzz_program(const tv_program *p)
{
    for (size_t i = 0; i < p->n_values; i++) {
        const tv_value *v = &p->values[i];
        must(v->rank <= TV_LIMIT_RANK && (v->rank == 0 || v->dims));
        for (uint32_t k = 0; k < v->rank; k++)
            must(v->dims[k].size >= -1);
    }
    fuzz_body(p, p->main, 0);
}

/* Reads the bytes as one file and checks the program that comes of them. */
static inline void fuzz_read_program(tv_arena *a, fuzz_reader *read, const uint8_t *data,
                                     size_t size)
{
    tv_gather g = tv_gather_in(a, TV_S("/nowhere/input"));
    const tv_source *s = NULL;
    const tv_err *e = read(&g, TV_S("/nowhere/input"), (tv_bytes_view){data, size});
    if (!e)
        e = tv_gather_done(&g, &s);
    fuzz_check(a, e);
    must(!e || !e->has_offset || e->offset <= size);
    if (e)
        return;
    must(s->program != NULL);
    fuzz_program(s->program);
    fuzz_warnings(a, s);
}

#endif
