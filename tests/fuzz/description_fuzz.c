/* Any description or configuration that is no text decoder: a model with finite graphs, or an
 * error. */
#include "fuzzing.h"

#include "family/family.h"
#include "read/reader.h"

#include <math.h>
#include <setjmp.h>

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void build(tv_arena *a, const tv_model *m, tv_phase phase)
{
    const tv_setting set = {
        .phase = phase,
        .policy = {.param = TV_F32,
                   .base = TV_F32,
                   .compute = TV_F16,
                   .stream = TV_F32,
                   .grad = TV_F32,
                   .state = TV_F32,
                   .kv = TV_F16,
                   .autocast = true},
        .kernel = TV_KERNEL_EAGER,
        .seq = 16,
        .dropout = -1,
    };
    tv_graph *g = NULL;
    if (m->build(a, m, &set, &g))
        return;
    must(isfinite(g->params) && g->params >= 0);
    must(phase != TV_PHASE_PREFILL || g->params == m->params);
    for (size_t i = 0; i < g->n_ops; i++)
        must(isfinite(tv_form_at(g->ops[i].flop, 1, 1)) && tv_form_at(g->ops[i].flop, 1, 1) >= 0);
    for (size_t i = 0; i < g->n_storages; i++)
        must(isfinite(tv_form_at(g->storages[i].bytes, 1, 1)));
}

static void check(tv_arena *a, tv_str text)
{
    const tv_source *s = NULL;
    const tv_model *m = NULL;
    const tv_err *e = tv_read_description(a, TV_S("input"), text, &s);
    if (!e)
        e = tv_family_model(a, s, &m);
    fuzz_check(a, e);
    if (e || tv_str_is(tv_str_of(m->family), "decoder"))
        return;
    build(a, m, TV_PHASE_TRAIN);
    build(a, m, TV_PHASE_PREFILL);
    if (m->generates)
        build(a, m, TV_PHASE_DECODE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        check(a, (tv_str){(const char *)data, size});
    }
    tv_arena_close(a);
    return 0;
}
