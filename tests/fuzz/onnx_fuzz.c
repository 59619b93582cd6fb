/* ONNX: any bytes end in a program whose every index is inside its lists, and in tensors that lie
 * inside the file where their data is there, or in an error with its place. */
#include "programs.h"

/* Contents that were kept are readable to their end, and fit the shape. */
static void check_values(const tv_program *p)
{
    volatile unsigned sum = 0;
    for (size_t i = 0; i < p->n_values; i++) {
        const tv_value *v = &p->values[i];
        for (size_t k = 0; k < v->data.n; k++)
            sum = sum + v->data.p[k];
        const tv_u64_read bytes = tv_dtype_tensor_bytes(v->dtype, tv_value_elements(v), 4);
        must(v->data.n == 0 || !bytes.ok || bytes.v == v->data.n || v->dtype == TV_F6_E2M3 ||
             v->dtype == TV_F6_E3M2);
    }
}

static const tv_err *read_and_check(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    TV_TRY(tv_read_onnx(g, path, bytes));
    const tv_program *p = g->source.program;
    check_values(p);
    for (size_t i = 0; i < p->n_functions; i++) {
        fuzz_body(p, p->functions[i].body, 0);
        for (size_t k = 0; k < p->functions[i].n_defaults; k++)
            fuzz_attr(p, &p->functions[i].defaults[k], 0);
    }
    for (size_t i = 0; i < g->tensors.n; i++)
        must(g->tensors.v[i].offset <= bytes.n && g->tensors.v[i].rank <= TV_LIMIT_RANK);
    fuzz_document(g->a, g->source.metadata);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        fuzz_read_program(a, read_and_check, data, size);
    }
    tv_arena_close(a);
    return 0;
}
