/* Pickles: any bytes end in nodes that can be walked, or in an error with its place. */
#include "fuzzing.h"

#include "codec/pickle.h"

typedef struct walk {
    const tv_pickle *p;
    bool *seen;
    size_t bytes;
} walk;

static void visit(walk *w, const tv_pickle_node *x, unsigned depth);

static void visit_object(walk *w, const tv_pickle_object *x, unsigned depth)
{
    if (!x->callee || !x->args || x->args->kind != TV_PICKLE_TUPLE)
        abort();
    visit(w, x->callee, depth);
    visit(w, x->args, depth);
    visit(w, x->state, depth);
    visit(w, x->items, depth);
    visit(w, x->pairs, depth);
}

static void visit(walk *w, const tv_pickle_node *x, unsigned depth)
{
    if (!x || depth > TV_LIMIT_PICKLE_DEPTH)
        return;
    if (x->id >= w->p->n_nodes)
        abort();
    if (w->seen[x->id])
        return;
    w->seen[x->id] = true;
    switch (x->kind) {
    case TV_PICKLE_STR:
    case TV_PICKLE_BYTES:
    case TV_PICKLE_BIG_INT:
    case TV_PICKLE_GLOBAL:
        for (size_t i = 0; i < x->s.n; i++)
            w->bytes += (unsigned char)x->s.p[i];
        break;
    case TV_PICKLE_DICT:
        if (x->n % 2)
            abort();
        __attribute__((fallthrough));
    case TV_PICKLE_TUPLE:
    case TV_PICKLE_LIST:
    case TV_PICKLE_SET:
    case TV_PICKLE_PERSISTENT:
        for (size_t i = 0; i < x->n; i++)
            visit(w, x->items[i], depth + 1);
        break;
    case TV_PICKLE_OBJECT:
        visit_object(w, x->object, depth + 1);
        break;
    case TV_PICKLE_NONE:
    case TV_PICKLE_BOOL:
    case TV_PICKLE_INT:
    case TV_PICKLE_FLOAT:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_pickle p = {.file = TV_S("input"), .bytes = {data, size}};
        const tv_pickle_node *root = NULL;
        tv_arena_guard(a, &landing);
        const tv_err *e = tv_pickle_next(a, &p, &root);
        fuzz_check(a, e);
        if (e && e->has_offset && e->offset > size)
            abort();
        walk w = {.p = &p, .seen = tv_new(a, bool, p.n_nodes + 1)};
        if (!e)
            visit(&w, root, 0);
    }
    tv_arena_close(a);
    return 0;
}
