/* Any configuration ends in a decoder or an error; a decoder's graphs are finite and hold the
 * model's parameters in every phase. */
#include "fuzzing.h"

#include "family/family.h"
#include "read/reader.h"

#include <math.h>

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void build(tv_arena *a, const tv_model *m, tv_phase phase)
{
    const tv_setting set = {
        .phase = phase,
        .policy = {.param = TV_BF16,
                   .base = TV_BF16,
                   .compute = TV_BF16,
                   .stream = TV_BF16,
                   .grad = TV_BF16,
                   .state = TV_BF16},
        .kernel = TV_KERNEL_FLASH,
        .seq = 64,
        .dropout = -1,
    };
    tv_graph *g;
    if (m->build(a, m, &set, &g))
        return;
    must(isfinite(g->params) && g->params == m->params);
    for (size_t i = 0; i < g->n_ops; i++)
        must(isfinite(tv_form_at(g->ops[i].flop, 1, 1)) && tv_form_at(g->ops[i].flop, 1, 1) >= 0);
}

static const tv_err *model_of(tv_arena *a, tv_str text, const tv_model **m)
{
    const tv_source *s;
    TV_TRY(tv_read_description(a, TV_S("input"), text, &s));
    return tv_family_model(a, s, m);
}

static void check(tv_arena *a, tv_str text)
{
    const tv_model *m;
    const tv_err *e = model_of(a, text, &m);
    fuzz_check(a, e);
    if (e || !tv_str_is(tv_str_of(m->family), "decoder"))
        return;
    must(isfinite(m->params) && m->params >= 0 && m->active_params <= m->params);
    build(a, m, TV_PHASE_TRAIN);
    build(a, m, TV_PHASE_PREFILL);
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
