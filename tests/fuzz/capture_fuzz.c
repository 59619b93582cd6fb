/* Captures: any bytes end in a program whose every index is inside its lists, or in an error with
 * its place. */
#include "reading.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_ids(const tv_program *p, const uint32_t *ids, size_t n, bool optional)
{
    for (size_t i = 0; i < n; i++)
        must(ids[i] < p->n_values || (optional && ids[i] == TV_NO_VALUE));
}

static void check_node(const tv_program *p, const tv_node *n)
{
    check_ids(p, n->inputs, n->n_inputs, true);
    check_ids(p, n->outputs, n->n_outputs, true);
    check_ids(p, n->saved, n->n_saved, false);
    must(n->region <= p->n_regions);
    for (size_t i = 0; i < n->n_input_slots; i++) {
        const tv_slot s = n->input_slots[i];
        must(s.first <= n->n_inputs && s.n <= n->n_inputs - s.first);
    }
}

static void check(tv_arena *a, const uint8_t *data, size_t size)
{
    tv_gather g = tv_gather_in(a, TV_S("/nowhere/input"));
    const tv_source *s = NULL;
    const tv_err *e = tv_read_capture(&g, TV_S("/nowhere/input"), (tv_bytes_view){data, size});
    if (!e)
        e = tv_gather_done(&g, &s);
    fuzz_check(a, e);
    must(!e || !e->has_offset || e->offset <= size);
    if (e)
        return;
    const tv_program *p = s->program;
    for (size_t i = 0; i < p->main->n_nodes; i++)
        check_node(p, &p->main->nodes[i]);
    check_ids(p, p->main->inputs, p->main->n_inputs, false);
    check_ids(p, p->main->outputs, p->main->n_outputs, false);
    for (size_t i = 0; i < p->n_regions; i++)
        check_ids(p, p->regions[i].keeps, p->regions[i].n_keeps, false);
    fuzz_warnings(a, s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        check(a, data, size);
    }
    tv_arena_close(a);
    return 0;
}
