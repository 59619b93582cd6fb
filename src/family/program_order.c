/* The order of a body's nodes. Files should list a node behind what it reads; some do not, and
 * some go round in circles. */
#include "program_running.h"

typedef struct walk {
    tv_running *r;
    const tv_body *b;
    uint32_t stamp;
} walk;

/* Calls seen(w, value) for every value that a node reads, its subgraphs' reads included; stops at
 * false. */
typedef bool visit(void *context, uint32_t value);

static bool each_read(const tv_node *n, unsigned depth, visit *seen, void *context);

static bool each_body_read(const tv_body *b, unsigned depth, visit *seen, void *context)
{
    for (size_t i = 0; i < b->n_nodes; i++)
        if (!each_read(&b->nodes[i], depth + 1, seen, context))
            return false;
    for (size_t i = 0; i < b->n_outputs; i++)
        if (!seen(context, b->outputs[i]))
            return false;
    return true;
}

static bool each_read(const tv_node *n, unsigned depth, visit *seen, void *context)
{
    for (size_t i = 0; i < n->n_inputs; i++)
        if (!seen(context, n->inputs[i]))
            return false;
    for (size_t i = 0; i < n->n_attrs && depth < TV_LIMIT_PROGRAM_DEPTH; i++) {
        const tv_attr *a = &n->attrs[i];
        if (a->kind == TV_ATTR_BODY && !each_body_read(a->u.body, depth, seen, context))
            return false;
        for (size_t j = 0; a->kind == TV_ATTR_BODIES && j < a->n; j++)
            if (!each_body_read(a->u.bodies[j], depth, seen, context))
                return false;
    }
    return true;
}

static bool is_made_here(const walk *w, uint32_t value)
{
    return value < w->r->p->n_values && w->r->maker[value].stamp == w->stamp;
}

typedef struct check {
    const walk *w;
    uint32_t node;
} check;

static bool is_behind(void *context, uint32_t value)
{
    const check *c = context;
    return !is_made_here(c->w, value) || c->w->r->maker[value].node < c->node;
}

/* Depth first: what a node reads is placed before it. A node is pushed by each reader that finds it
 * new, opened when it comes to the top, and placed when it is at the top again. */
typedef struct sorting {
    const walk *w;
    uint32_t *order;
    size_t n;
    unsigned char *state; /* 0 new, 1 open, 2 placed */
    uint32_t *v;          /* the stack */
    size_t n_stack, cap;
    bool circle;
} sorting;

static void push(sorting *s, uint32_t node)
{
    if (s->n_stack == s->cap)
        s->v = tv_grow(s->w->r->a, s->v, s->n_stack, &s->cap, sizeof *s->v);
    s->v[s->n_stack++] = node;
}

static bool open_maker(void *context, uint32_t value)
{
    sorting *s = context;
    if (!is_made_here(s->w, value))
        return true;
    uint32_t maker = s->w->r->maker[value].node;
    s->circle = s->circle || s->state[maker] == 1;
    if (s->state[maker] == 0)
        push(s, maker);
    return !s->circle;
}

static void place_from(sorting *s, uint32_t start)
{
    push(s, start);
    while (s->n_stack && !s->circle) {
        uint32_t node = s->v[s->n_stack - 1];
        if (s->state[node] == 0) {
            s->state[node] = 1;
            each_read(&s->w->b->nodes[node], 0, open_maker, s);
            continue;
        }
        s->n_stack--;
        if (s->state[node] == 1)
            s->order[s->n++] = node;
        s->state[node] = 2;
    }
}

static const tv_err *sorted(const walk *w, const uint32_t **order)
{
    size_t n = w->b->n_nodes;
    sorting s = {
        .w = w, .order = tv_new(w->r->a, uint32_t, n), .state = tv_new(w->r->a, unsigned char, n)};
    for (uint32_t i = 0; i < n && !s.circle; i++)
        if (s.state[i] == 0)
            place_from(&s, i);
    if (s.circle)
        return tv_run_fail(w->r, "program.circle",
                           N_("nodes read each other's outputs in a circle"));
    *order = s.order;
    return NULL;
}

const tv_err *tv_run_order(tv_running *r, const tv_body *b, const uint32_t **order)
{
    walk w = {.r = r, .b = b, .stamp = ++r->stamp};
    *order = NULL;
    for (uint32_t i = 0; i < b->n_nodes; i++)
        for (size_t j = 0; j < b->nodes[i].n_outputs; j++) {
            uint32_t v = b->nodes[i].outputs[j];
            if (v < r->p->n_values)
                r->maker[v] = (tv_maker){w.stamp, i};
        }
    for (uint32_t i = 0; i < b->n_nodes; i++) {
        check c = {&w, i};
        if (!each_read(&b->nodes[i], 0, is_behind, &c))
            return sorted(&w, order);
    }
    return NULL;
}
