/* Paddle programs that are run for their shapes: any program ends in a run whose steps name values
 * that there are, or in an error. */
#include "programs.h"

#include "family/program_run.h"
#include "read/paddle.h"

static void check_run(const tv_run *run)
{
    for (size_t i = 0; i < run->n_steps; i++) {
        const tv_step *s = &run->steps[i];
        for (size_t k = 0; k < s->n_in; k++)
            must(s->in[k] < run->n_values || s->in[k] == TV_NO_VALUE);
        for (size_t k = 0; k < s->n_out; k++)
            must(s->out[k] < run->n_values || s->out[k] == TV_NO_VALUE);
    }
}

static void check(tv_arena *a, const uint8_t *data, size_t size)
{
    tv_gather g = tv_gather_in(a, TV_S("/nowhere/input"));
    const tv_run *run = NULL;
    const tv_err *e = tv_read_paddle_model(&g, TV_S("/nowhere/input"), (tv_bytes_view){data, size});
    if (!e)
        e = tv_program_run(a, g.source.program, &(tv_run_sizes){.batch = 3}, &run);
    fuzz_check(a, e);
    if (!e)
        check_run(run);
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
