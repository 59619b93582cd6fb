/* The order of a body's nodes. ONNX asks that a node stands behind those whose values it reads;
 * files that were edited by hand or by a tool break the rule. The sort walks the nodes in the
 * file's order and puts before each what it reads. */
#include "onnx.h"

enum { fresh, open, placed };

typedef struct sorting {
    tv_onnx *o;
    const tv_body *body;
    const tv_capture *captures; /* sorted by reader, as they were noted */
    size_t n_captures;
    const uint32_t *first; /* captures of a node begin here */
    unsigned char *state;
    uint32_t *stack;
    uint32_t *next; /* the operand of a node that is looked at next */
    tv_node *out;
    size_t n_out;
} sorting;

/* Where the captures of each node begin; one more at the end. */
static uint32_t *first_captures(tv_arena *a, const tv_scope *scope, size_t n)
{
    uint32_t *first = tv_new(a, uint32_t, n + 2);
    size_t k = 0;
    for (size_t i = 0; i <= n; i++) {
        while (k < scope->captures.n && scope->captures.v[k].reader < i)
            k++;
        first[i] = (uint32_t)k;
    }
    return first;
}

/* The k-th node that node i waits for; false behind the last one. */
static bool operand(const sorting *s, uint32_t i, uint32_t k, uint32_t *producer)
{
    const tv_node *node = &s->body->nodes[i];
    if (k < node->n_inputs) {
        const uint32_t value = node->inputs[k];
        *producer = TV_NO_VALUE;
        if (value == TV_NO_VALUE)
            return true;
        const uint32_t p = s->o->producers.v[value];
        /* a value of an enclosing body has a producer there: only its own outputs count */
        if (p >= s->body->n_nodes)
            return true;
        const tv_node *other = &s->body->nodes[p];
        for (size_t j = 0; j < other->n_outputs; j++)
            if (other->outputs[j] == value)
                *producer = p;
        return true;
    }
    const size_t c = s->first[i] + (k - node->n_inputs);
    if (c >= s->first[i + 1])
        return false;
    *producer = s->captures[c].producer;
    return true;
}

/* True where the nodes wait for each other. */
static bool place_with_operands(sorting *s, uint32_t root)
{
    size_t depth = 0;
    s->stack[depth++] = root;
    s->state[root] = open;
    while (depth) {
        const uint32_t i = s->stack[depth - 1];
        uint32_t p = TV_NO_VALUE;
        if (!operand(s, i, s->next[i]++, &p)) {
            s->state[i] = placed;
            s->out[s->n_out++] = s->body->nodes[i];
            depth--;
        } else if (p != TV_NO_VALUE && s->state[p] == open) {
            return true;
        } else if (p != TV_NO_VALUE && s->state[p] == fresh) {
            s->state[p] = open;
            s->stack[depth++] = p;
        }
    }
    return false;
}

const tv_err *tv_onnx_sort(tv_onnx *o, const tv_scope *scope, uint64_t at, tv_body *body)
{
    tv_arena *a = o->g->a;
    const size_t n = body->n_nodes;
    sorting s = {.o = o,
                 .body = body,
                 .captures = scope->captures.v,
                 .n_captures = scope->captures.n,
                 .first = first_captures(a, scope, n),
                 .state = tv_new(a, unsigned char, n + 1),
                 .stack = tv_new(a, uint32_t, n + 1),
                 .next = tv_new(a, uint32_t, n + 1),
                 .out = tv_new(a, tv_node, n + 1)};
    for (size_t i = 0; i < n; i++)
        if (s.state[i] == fresh && place_with_operands(&s, (uint32_t)i))
            return tv_onnx_named(o, at, "onnx.cycle",
                                 N_("nodes of the graph \"{name}\" wait for each other"),
                                 body->name);
    body->nodes = s.out;
    return NULL;
}
