/* Exported programs: an archive, or the JSON that lies in one. Any bytes end in a program whose
 * indices are all its own, or in an error with words. */
#include "fuzzing.h"

#include "read/pt2.h"

static void ids(const tv_program *p, const uint32_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] >= p->n_values && v[i] != TV_NO_VALUE)
            abort();
}

static void attr(const tv_attr *x)
{
    double sum = 0;
    if (x->kind == TV_ATTR_DIMS)
        for (size_t i = 0; i < x->n; i++)
            sum += (double)x->u.dims[i].size + (double)x->u.dims[i].symbol.n;
    if (x->kind == TV_ATTR_INTS)
        for (size_t i = 0; i < x->n; i++)
            sum += (double)x->u.ints[i];
    if (sum > 1e300)
        abort();
}

static void body(const tv_program *p, const tv_body *b, unsigned depth)
{
    if (depth > TV_LIMIT_JSON_DEPTH)
        abort();
    ids(p, b->inputs, b->n_inputs);
    ids(p, b->outputs, b->n_outputs);
    for (size_t i = 0; i < b->n_nodes; i++) {
        const tv_node *n = &b->nodes[i];
        ids(p, n->inputs, n->n_inputs);
        ids(p, n->outputs, n->n_outputs);
        for (size_t k = 0; k < n->n_input_slots; k++)
            if (n->input_slots[k].first > n->n_inputs ||
                n->input_slots[k].n > n->n_inputs - n->input_slots[k].first)
                abort();
        for (size_t k = 0; k < n->n_attrs; k++) {
            attr(&n->attrs[k]);
            if (n->attrs[k].kind == TV_ATTR_BODY)
                body(p, n->attrs[k].u.body, depth + 1);
        }
    }
}

static void program(const tv_program *p, tv_bytes_view file)
{
    body(p, p->main, 0);
    for (size_t i = 0; i < p->n_values; i++) {
        const tv_value *v = &p->values[i];
        if (v->rank > TV_LIMIT_RANK || (v->data.n && (v->data.p < file.p || v->data.n > file.n)))
            abort();
    }
}

static void archive(tv_arena *a, tv_bytes_view bytes)
{
    tv_gather g = tv_gather_in(a, TV_S("/nowhere/input"));
    const tv_source *s = NULL;
    const tv_err *e = tv_read_pt2(&g, TV_S("/nowhere/input"), bytes);
    if (!e)
        e = tv_gather_done(&g, &s);
    fuzz_check(a, e);
    if (e)
        return;
    program(s->program, bytes);
    for (size_t i = 0; i < s->n_tensors; i++)
        if (s->tensors[i].offset > bytes.n || s->tensors[i].rank > TV_LIMIT_RANK)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        if (tv_zip_is((tv_bytes_view){data, size})) {
            archive(a, (tv_bytes_view){data, size});
        } else {
            tv_pt2_graph graph;
            const tv_err *e =
                tv_pt2_read_graph(a, TV_S("input"), (tv_str){(const char *)data, size}, &graph);
            fuzz_check(a, e);
            if (e && e->has_offset && e->offset > size)
                abort();
            if (!e)
                program(graph.program, (tv_bytes_view){data, size});
        }
    }
    tv_arena_close(a);
    return 0;
}
