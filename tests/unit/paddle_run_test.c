/* Paddle's programs run for their shapes: every shape that a program states itself must be what the
 * rules work out, for every variable of every collected program; no operator is unknown but the
 * custom one. */
#include "testing.h"

#include "base/json.h"
#include "family/family.h"
#include "family/program_run.h"
#include "read/reader.h"

#define MODELS "../shared/data/models/"

typedef struct tally {
    size_t same, differ, guessed, open, unwritten;
} tally;

static bool same_shape(const tv_value *v, const tv_shape *s)
{
    bool same = v->rank == s->rank;
    for (uint32_t i = 0; same && i < v->rank; i++)
        same = v->dims[i].size < 0 || v->dims[i].size == s->d[i];
    return same;
}

static void show(const tv_value *v, const tv_shape *s)
{
    print_message("#   %.*s:", TV_FMT(v->name));
    for (uint32_t i = 0; i < v->rank; i++)
        print_message(" %lld", (long long)v->dims[i].size);
    print_message(" but");
    for (uint32_t i = 0; i < s->rank; i++)
        print_message(" %lld", (long long)s->d[i]);
    print_message("\n");
}

static void compare(const tv_program *p, const tv_run *run, tally *t)
{
    for (size_t i = 0; i < p->n_values; i++) {
        const tv_value *v = &p->values[i];
        if (v->role != TV_VALUE_TEMP || !v->shaped || v->list)
            continue;
        if (run->of[i] == TV_NO_VALUE) {
            t->unwritten++;
            continue;
        }
        const tv_run_value *got = &run->values[run->of[i]];
        if (same_shape(v, &got->shape)) {
            t->same++;
        } else if (got->guessed) {
            t->guessed++;
        } else {
            t->differ++;
            show(v, &got->shape);
        }
    }
}

static bool runs(const char *kind)
{
    return strcmp(kind, "paddle-pdmodel") == 0 || strcmp(kind, "paddle-pir-json") == 0;
}

static void run_one(tv_str path, tally *t)
{
    tv_arena *a = test_arena();
    const tv_source *s = NULL;
    const tv_run *run = NULL;
    const tv_run_sizes sizes = {0}; /* what is stated; the batch is 1 where it is open */
    const bool custom = tv_str_has(path, TV_S("custom_gap"));
    tally own = {0};
    assert_ok(a, tv_read_model(a, path, &s));
    assert_ok(a, tv_program_run(a, s->program, &sizes, &run));
    compare(s->program, run, &own);
    print_message("# %.*s: %zu steps, %zu shapes the same, %zu differ, %zu guessed, %zu not "
                  "written\n",
                  TV_FMT(path), run->n_steps, own.same, own.differ, own.guessed, own.unwritten);
    for (size_t i = 0; i < run->n_unknown; i++)
        print_message("#   unknown: %.*s\n", TV_FMT(run->unknown[i].op));
    assert_int_equal(run->n_unknown, custom);
    t->same += own.same;
    t->differ += own.differ;
    t->guessed += own.guessed;
    tv_arena_close(a);
}

static void stated_shapes_are_worked_out(void **state)
{
    (void)state;
    if (!test_shared("models/MANIFEST.jsonl"))
        return;
    tv_arena *a = test_arena();
    tv_str text;
    tally t = {0};
    size_t n = 0;
    assert_ok(a, tv_file_read(a, TV_S(MODELS "MANIFEST.jsonl"), (size_t)16 << 20, &text));
    while (text.n) {
        const tv_cut line = tv_str_cut(text, '\n');
        const tv_json *row = NULL;
        assert_ok(a, tv_json_parse(a, TV_S("manifest"), line.head, &row));
        text = line.tail;
        if (!runs(tv_cstr(a, tv_json_str(tv_json_get(row, "kind")))))
            continue;
        run_one(tv_path_join(a, TV_S(MODELS), tv_json_str(tv_json_get(row, "path"))), &t);
        n++;
    }
    print_message("# %zu programs: %zu of %zu stated shapes\n", n, t.same,
                  t.same + t.differ + t.guessed);
    assert_int_equal(n, 10);
    assert_int_equal(t.differ, 0);
    tv_arena_close(a);
}

/* A program that is written for a batch of two: each sample costs half of it. */
static void a_fixed_batch_is_shared_out(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_source *s = NULL;
    const tv_model *m = NULL;
    tv_graph *g = NULL;
    double flop = 0;
    assert_ok(a, tv_read_model(a, TV_S("tests/fuzz/corpus/paddle_program/two.pdmodel"), &s));
    assert_ok(a, tv_family_model(a, s, &m));
    const tv_setting set = {.phase = TV_PHASE_PREFILL,
                            .policy = {.precision = TV_PRECISION_FP32,
                                       .param = TV_F32,
                                       .base = TV_F32,
                                       .compute = TV_F32,
                                       .stream = TV_F32,
                                       .grad = TV_F32,
                                       .state = TV_F32}};
    assert_ok(a, m->build(a, m, &set, &g));
    for (size_t i = 0; i < g->n_ops; i++)
        if (g->ops[i].kind == TV_OP_GEMM)
            flop += tv_form_at(g->ops[i].flop, 1, 0);
    assert_close(flop, 2 * 4 * 3, 1e-9);
    tv_arena_close(a);
}

/* Every rule is in the document, and nobody counts them by hand. */
static void rules_are_documented(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_str doc;
    size_t n = 0;
    assert_ok(a, tv_file_read(a, TV_S("docs/operators.md"), (size_t)1 << 20, &doc));
    for (size_t t = 0; tv_rule_tables[t]; t++)
        for (size_t i = 0; i < tv_rule_tables[t]->n; i++) {
            const char *op = tv_rule_tables[t]->rules[i].op;
            if (tv_rule_tables[t]->dialect != TV_DIALECT_PADDLE || op[0] == '*')
                continue;
            tv_buf quoted = tv_buf_in(a);
            tv_puts(&quoted, "`");
            tv_puts(&quoted, op);
            tv_puts(&quoted, "`");
            if (!tv_str_has(doc, tv_buf_str(&quoted)))
                fail_msg("docs/operators.md lacks %s", op);
            n++;
        }
    tv_buf count = tv_buf_in(a);
    tv_put_u64(&count, n);
    tv_puts(&count, " operators, under the names of ProgramDesc");
    print_message("# %zu operators of Paddle\n", n);
    assert_true(n >= 200 && tv_str_has(doc, tv_buf_str(&count)));
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stated_shapes_are_worked_out),
        cmocka_unit_test(a_fixed_batch_is_shared_out),
        cmocka_unit_test(rules_are_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
