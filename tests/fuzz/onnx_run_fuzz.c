/* Running an ONNX program for its shapes: any graph that can be read ends in steps whose operands
 * are values of the run and whose numbers are numbers, or in an error. */
#include <math.h>

#include "programs.h"

#include "family/program_run.h"

static void check_value(const tv_run *run, const tv_run_value *v)
{
    must(v->shape.rank <= TV_LIMIT_RANK);
    for (uint32_t i = 0; i < v->shape.rank; i++)
        must(v->shape.d[i] >= 0);
    must(v->base < run->n_values);
    must(v->weight == TV_NO_VALUE || v->weight < run->n_values);
    for (size_t i = 0; i < v->n_items; i++)
        must(v->items[i] < run->n_values);
    volatile double sum = 0;
    double n = v->data ? tv_shape_elements(&v->shape) : 0;
    must(n <= TV_LIMIT_PROGRAM_CONST_ELEMENTS);
    for (size_t i = 0; i < (size_t)n; i++)
        sum = sum + v->data[i];
}

static void check_operands(const tv_run *run, const uint32_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        must(v[i] == TV_NO_VALUE || v[i] < run->n_values);
}

static void check_numbers(const tv_step *s)
{
    must(s->times >= 0 && isfinite(s->times));
    if (s->kind == TV_STEP_MATMUL)
        must(s->u.matmul.groups >= 0 && s->u.matmul.m >= 0 && s->u.matmul.n >= 0 &&
             s->u.matmul.k >= 0);
    if (s->kind == TV_STEP_CONV)
        must(s->u.conv.positions >= 0 && s->u.conv.groups >= 1 && s->u.conv.kernel >= 0);
    if (s->kind == TV_STEP_ATTENTION)
        must(s->u.attention.heads >= 0 && s->u.attention.head_dim >= 0 &&
             s->u.attention.k_tokens >= 0);
    if (s->kind == TV_STEP_NORM)
        must(s->u.norm.rows >= 0 && s->u.norm.width >= 0);
    if (s->kind == TV_STEP_RNN)
        must(s->u.rnn.steps >= 0 && s->u.rnn.hidden >= 0 && s->u.rnn.input >= 0);
}

static const tv_err *read_and_run(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    TV_TRY(tv_read_onnx(g, path, bytes));
    /* Sizes that vary with the input without a second one. */
    unsigned pick = bytes.n ? bytes.p[bytes.n / 2] : 0;
    tv_run_sizes sizes = {.batch = pick & 3,
                          .seq = pick & 4 ? 17 : 0,
                          .image_h = pick & 8 ? 64 : 0,
                          .past = pick & 16 ? 5 : 0,
                          .trips = pick & 32 ? 3 : 0,
                          .training = (pick & 64) != 0};
    const tv_run *run = NULL;
    TV_TRY(tv_program_run(g->a, g->source.program, &sizes, &run));
    for (size_t i = 0; i < run->n_values; i++)
        check_value(run, &run->values[i]);
    check_operands(run, run->inputs, run->n_inputs);
    check_operands(run, run->outputs, run->n_outputs);
    for (size_t i = 0; i < run->n_steps; i++) {
        must(run->steps[i].kind < TV_STEP_KIND_COUNT);
        check_operands(run, run->steps[i].in, run->steps[i].n_in);
        check_operands(run, run->steps[i].out, run->steps[i].n_out);
        check_numbers(&run->steps[i]);
    }
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        fuzz_read_program(a, read_and_run, data, size);
    }
    tv_arena_close(a);
    return 0;
}
