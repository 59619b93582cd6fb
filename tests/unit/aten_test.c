/* Rules of ATen's operators. tests/aten/cases.jsonl holds calls as programs of one node, with the
 * types and shapes that torch gave them (bench/aten_cases.py): the rules get the inputs alone and
 * must find the same. */
#include "lines.h"

#include "family/program_aten.h"
#include "read/pt2.h"

#define CASES "tests/aten/cases.jsonl"

/* Rules whose result the file's statement decides: it depends on data or on conventions that only
 * the exporter knows. They must not fail; what they put out without a statement is a guess. */
static bool is_stated(tv_str op)
{
    static const char *const names[] = {
        "aten.masked_select",  "aten.nonzero",     "aten.unique",        "aten._unique2",
        "aten.kthvalue",       "aten.median",      "aten.one_hot",       "aten.im2col",
        "aten.col2im",         "aten.diag",        "aten.hstack",        "aten.block_diag",
        "aten.cartesian_prod", "aten.as_strided",  "aten.view_as_",      "aten.complex",
        "aten.rot90",          "aten.cdist",       "aten._fft",          "aten.tril_indices",
        "aten.triu_indices",   "aten.hann",        "aten.embedding_bag", "aten._embedding_bag",
        "aten.diagonal",       "aten.affine_grid", "aten.real",          "aten.imag",
        "aten.where.default",  "torchvision.nms",  "aten.stft",          "aten.fft",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tv_str_starts(op, tv_str_of(names[i])))
            return true;
    return false;
}

/* Seeds, statistics and empty tensors beside the result have no shape of their own rule. */
static bool is_by_product(const tv_node *n, size_t i)
{
    return i > 0 && (tv_str_has(n->op, TV_S("norm")) || tv_str_has(n->op, TV_S("attention")) ||
                     tv_str_has(n->op, TV_S("dropout")) || tv_str_has(n->op, TV_S("forward")) ||
                     tv_str_has(n->op, TV_S("max.dim")) || tv_str_has(n->op, TV_S("min.dim")) ||
                     tv_str_has(n->op, TV_S("cummax")) || tv_str_has(n->op, TV_S("cummin")));
}

static tv_str program_text(tv_arena *a, const tv_json *row)
{
    tv_buf b = tv_buf_in(a);
    tv_json_out w = tv_json_write(&b);
    tv_json_put_tree(&w, tv_json_get(row, "program"));
    return tv_buf_str(&b);
}

/* Of the calls so far; every wrong one is named before the test fails. */
static size_t n_outputs, n_wrong;

static void wrong(tv_str op, tv_str what)
{
    print_error("%.*s: %.*s\n", TV_FMT(op), TV_FMT(what));
    n_wrong++;
}

static void same_output(const tv_run *run, const tv_node *n, size_t i, const tv_json *want)
{
    const tv_json *dims = tv_json_at(want, 1);
    n_outputs++;
    if (i >= run->n_outputs || run->outputs[i] == TV_NO_VALUE) {
        wrong(n->op, TV_S("an output is missing"));
        return;
    }
    const tv_run_value *v = &run->values[run->outputs[i]];
    bool same = v->shape.rank == dims->n;
    for (size_t k = 0; same && k < dims->n; k++)
        same = (uint64_t)v->shape.d[k] == tv_json_u64(tv_json_at(dims, k)).v;
    if (!same)
        wrong(n->op, TV_S("an output has another shape"));
}

static void check(tv_arena *a, const tv_json *row)
{
    const tv_str op = test_member(row, "op");
    const tv_json *want = tv_json_get(row, "want");
    tv_pt2_graph g;
    const tv_run *run = NULL;
    assert_ok(a, tv_pt2_read_graph(a, op, program_text(a, row), &g));
    const tv_node *n = &g.program->main->nodes[0];
    const tv_err *e = tv_program_run(a, g.program, &(tv_run_sizes){0}, &run);
    if (e) {
        tv_buf b = tv_buf_in(a);
        tv_put_err(&b, TV_EN, e);
        wrong(op, tv_buf_str(&b));
        return;
    }
    if (run->n_unknown)
        wrong(op, TV_S("it has no rule"));
    if (is_stated(op))
        return;
    for (size_t i = 0; i < want->n; i++)
        if (!is_by_product(n, i))
            same_output(run, n, i, tv_json_at(want, i));
}

static void rules_find_what_torch_finds(void **state)
{
    (void)state;
    n_outputs = n_wrong = 0;
    const size_t n = test_lines(CASES, check);
    print_message("calls: %zu, outputs: %zu of %zu\n", n, n_outputs - n_wrong, n_outputs);
    assert_int_equal(n_wrong, 0);
    assert_true(n > 400);
}

/* ---- the tables ---- */

static const tv_rule_table *const tables[] = {
    &tv_rules_aten_index, &tv_rules_aten_kernel, &tv_rules_aten_layout,
    &tv_rules_aten_make,  &tv_rules_aten_math,   &tv_rules_aten_order,
};

static void a_name_has_one_rule(void **state)
{
    (void)state;
    const char *names[1024];
    size_t n = 0;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (size_t i = 0; i < tables[t]->n; i++) {
            assert_true(n < sizeof names / sizeof *names);
            for (size_t k = 0; k < n; k++)
                if (strcmp(names[k], tables[t]->rules[i].op) == 0)
                    fail_msg("%s stands twice", names[k]);
            names[n++] = tables[t]->rules[i].op;
        }
    print_message("operators: %zu\n", n);
    assert_true(n >= 250);
}

/* ---- sizes that are asked for ---- */

static const char two_symbols[] =
    "{\"graph_module\":{\"graph\":{\"inputs\":[{\"as_tensor\":{\"name\":\"x\"}}],"
    "\"outputs\":[{\"as_tensor\":{\"name\":\"y\"}}],\"nodes\":["
    "{\"target\":\"torch.ops.aten.view.default\",\"inputs\":[{\"name\":\"self\",\"arg\":"
    "{\"as_tensor\":{\"name\":\"x\"}}},{\"name\":\"size\",\"arg\":{\"as_sym_ints\":["
    "{\"as_name\":\"n\"},{\"as_int\":-1}]}}],\"outputs\":[{\"as_tensor\":{\"name\":\"y\"}}],"
    "\"metadata\":{}}],\"tensor_values\":{\"x\":{\"dtype\":7,\"sizes\":[{\"as_expr\":"
    "{\"expr_str\":\"s0\",\"hint\":{\"as_int\":2}}},{\"as_int\":3},{\"as_int\":4}]},"
    "\"y\":{\"dtype\":7,\"sizes\":[{\"as_expr\":{\"expr_str\":\"3*s0\"}},{\"as_int\":4}]}},"
    "\"sym_int_values\":{\"n\":{\"as_expr\":{\"expr_str\":\"3*s0\"}}}}}}";

static void symbols_follow_the_batch(void **state)
{
    (void)state;
    static const double batches[] = {0, 2, 4, 7, 64};
    tv_arena *a = test_arena();
    tv_pt2_graph g;
    assert_ok(a, tv_pt2_read_graph(a, TV_S("two"), tv_str_of(two_symbols), &g));
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        const tv_run *run = NULL;
        const double b = batches[i] > 0 ? batches[i] : 2;
        assert_ok(a, tv_program_run(a, g.program, &(tv_run_sizes){.batch = batches[i]}, &run));
        assert_int_equal(run->values[run->outputs[0]].shape.d[0], (int64_t)(3 * b));
        assert_int_equal(run->n_stated, 1);
        assert_int_equal(run->n_differ, 0);
    }
    tv_arena_close(a);
}

/* A statement that the rule contradicts is kept, counted and said. */
static void the_statement_holds(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_buf b = tv_buf_in(a);
    tv_str text = tv_str_of(two_symbols);
    const tv_str wrong = TV_S("3*s0\"}},{\"as_int\":4}]}},");
    const char *at = strstr(two_symbols, wrong.p);
    assert_non_null(at);
    tv_put(&b, tv_str_take(text, (size_t)(at - two_symbols)));
    tv_puts(&b, "5*s0\"}},{\"as_int\":4}]}},");
    tv_put(&b, tv_str_drop(text, (size_t)(at - two_symbols) + wrong.n));
    tv_pt2_graph g;
    const tv_run *run = NULL;
    assert_ok(a, tv_pt2_read_graph(a, TV_S("wrong"), tv_buf_str(&b), &g));
    assert_ok(a, tv_program_run(a, g.program, &(tv_run_sizes){0}, &run));
    assert_int_equal(run->n_differ, 1);
    assert_int_equal(run->values[run->outputs[0]].shape.d[0], 10);
    assert_int_equal(run->n_warnings, 1);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_find_what_torch_finds),
        cmocka_unit_test(a_name_has_one_rule),
        cmocka_unit_test(symbols_follow_the_batch),
        cmocka_unit_test(the_statement_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
