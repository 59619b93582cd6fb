/* What the Paddle readers find in the collection of real files against its manifest: programs,
 * parameters, the JSON form, settings for serving, and what must be refused. */
#include "manifest.h"

static void same(const entry *x, const char *key, double got)
{
    const tv_json *want = tv_json_get(x->facts, key);
    const double n = tv_json_is_num(want) ? want->number : 0; /* null: the file has none */
    if (n != got)
        fail_msg("%.*s: %s is %.17g, the manifest says %.17g", TV_FMT(x->path), key, got, n);
}

/* {"FP32": 288, ...}: how many of the tensors are of each type. */
static void same_types(const entry *x, const char *key)
{
    const tv_json *want = tv_json_get(x->facts, key);
    size_t all = 0;
    for (size_t k = 0; k < want->n; k++) {
        const tv_str name = want->items[k].key;
        const tv_dtype type = tv_str_is(name, "f4") ? TV_F32 : tv_dtype_named(name);
        size_t n = 0;
        for (size_t i = 0; i < x->s->n_tensors; i++)
            n += x->s->tensors[i].dtype == type;
        if ((double)n != want->items[k].number)
            fail_msg("%.*s: %zu tensors of type %.*s", TV_FMT(x->path), n, TV_FMT(name));
        all += n;
    }
    assert_int_equal(all, x->s->n_tensors);
}

static double elements_of(const tv_source *s)
{
    double n = 0;
    for (size_t i = 0; i < s->n_tensors; i++)
        n += (double)s->tensors[i].elements;
    return n;
}

/* ---- programs ---- */

typedef struct op_count {
    tv_str op;
    size_t n;
} op_count;

typedef struct op_counts {
    op_count *v;
    size_t n, cap;
} op_counts;

static void count_op(tv_arena *a, op_counts *list, tv_str op)
{
    for (size_t i = 0; i < list->n; i++) {
        if (!tv_str_eq(list->v[i].op, op))
            continue;
        list->v[i].n++;
        return;
    }
    *tv_push(a, list) = (op_count){op, 1};
}

static size_t count_of(const op_counts *list, tv_str op)
{
    for (size_t i = 0; i < list->n; i++)
        if (tv_str_eq(list->v[i].op, op))
            return list->v[i].n;
    return 0;
}

/* Feed and fetch operators are the main body's inputs and outputs. */
static op_counts count_ops(const entry *x)
{
    const tv_body *main = x->s->program->main;
    op_counts list = {0};
    for (size_t i = 0; i < main->n_nodes; i++)
        count_op(x->a, &list, main->nodes[i].op);
    for (size_t i = 0; i < main->n_inputs; i++)
        count_op(x->a, &list, TV_S("feed"));
    for (size_t i = 0; i < main->n_outputs; i++)
        count_op(x->a, &list, TV_S("fetch"));
    return list;
}

static void check_ops(const entry *x)
{
    const op_counts ops = count_ops(x);
    const tv_json *top = tv_json_get(x->facts, "top_ops");
    const tv_body *main = x->s->program->main;
    same(x, "ops", (double)(main->n_nodes + main->n_inputs + main->n_outputs));
    same(x, "op_types", (double)ops.n);
    assert_true(top->n > 0);
    for (size_t i = 0; i < top->n; i++)
        if ((double)count_of(&ops, top->items[i].key) != top->items[i].number)
            fail_msg("%.*s: %zu operators %.*s", TV_FMT(x->path), count_of(&ops, top->items[i].key),
                     TV_FMT(top->items[i].key));
}

/* {"x": ["FP32", [-1, 3]]}. */
static void check_ends(const entry *x, const char *key, const uint32_t *values, size_t n)
{
    const tv_json *want = tv_json_get(x->facts, key);
    assert_int_equal(n, want->n);
    for (size_t i = 0; i < n; i++) {
        const tv_value *v = &x->s->program->values[values[i]];
        const tv_json *one = tv_json_get(want, tv_cstr(x->a, v->name));
        const tv_json *dims = tv_json_at(one, 1);
        if (v->dtype != tv_dtype_named(tv_json_str(tv_json_at(one, 0))) || v->rank != dims->n)
            fail_msg("%.*s: %.*s has another type or rank", TV_FMT(x->path), TV_FMT(v->name));
        for (uint32_t k = 0; k < v->rank; k++)
            assert_true((double)v->dims[k].size == tv_json_at(dims, k)->number);
    }
}

static void check_no_paths(const entry *x)
{
    const tv_body *main = x->s->program->main;
    for (size_t i = 0; i < main->n_nodes; i++)
        assert_null(tv_node_attr(&main->nodes[i], "op_callstack"));
}

static void check_program(const entry *x)
{
    const tv_program *p = x->s->program;
    assert_int_equal(x->s->kind, TV_SOURCE_PROGRAM);
    assert_int_equal(p->dialect, TV_DIALECT_PADDLE);
    assert_false(p->pir);
    same(x, "program_version", (double)p->opsets[0].version);
    check_ops(x);
    same(x, "vars", (double)p->n_values);
    same(x, "persistable_lod_tensors", (double)x->s->n_tensors);
    same(x, "persistable_elements", elements_of(x->s));
    same_types(x, "persistable_dtypes");
    check_ends(x, "feeds", p->main->inputs, p->main->n_inputs);
    check_ends(x, "fetches", p->main->outputs, p->main->n_outputs);
    check_no_paths(x);
}

static void check_pir(const entry *x)
{
    const tv_program *p = x->s->program;
    const tv_json *names = tv_json_get(x->facts, "parameters");
    assert_true(p->pir);
    same(x, "version", (double)p->opsets[0].version);
    same(x, "ops",
         (double)(p->main->n_nodes + p->main->n_inputs + p->main->n_outputs + x->s->n_tensors));
    same(x, "parameter_elements", elements_of(x->s));
    assert_int_equal(x->s->n_tensors, names->n);
    for (size_t i = 0; i < names->n; i++)
        assert_true(tv_str_eq(x->s->tensors[i].name, tv_json_str(tv_json_at(names, i))));
}

/* ---- parameters ---- */

/* With their program beside them: the same tensors, with names. */
static void check_params(const entry *x)
{
    same(x, "tensors", (double)x->s->n_tensors);
    same(x, "elements", elements_of(x->s));
    same_types(x, "dtypes");
    for (size_t i = 0; i < x->s->n_tensors; i++)
        assert_true(x->s->tensors[i].offset > 0);
}

/* The name table is no tensor; texts of one character per byte count by their shape. */
static void check_state(const entry *x)
{
    const tv_json *keys = tv_json_get(x->facts, "keys");
    size_t named = 0;
    assert_int_equal(x->s->kind, TV_SOURCE_CHECKPOINT);
    same(x, "numpy_arrays", (double)x->s->n_tensors);
    same(x, "elements", elements_of(x->s));
    same_types(x, "dtypes");
    assert_true(x->s->tensor_bytes == 4 * elements_of(x->s));
    for (size_t i = 0; i < x->s->n_tensors; i++)
        for (size_t k = 0; k < keys->n; k++)
            named += tv_str_eq(x->s->tensors[i].name, tv_json_str(tv_json_at(keys, k)));
    assert_int_equal(named, x->s->n_tensors);
}

/* ---- settings ---- */

static void check_settings(const entry *x)
{
    assert_str(x->s->name, "PP-DocLayoutV2");
    assert_str(x->s->program->architecture, "DETR");
    assert_int_equal(x->s->program->main->n_inputs, 3);
    assert_true(elements_of(x->s) == 53047144);
}

static void check_lonely(const entry *x)
{
    if (!x->e)
        fail_msg("%.*s was read", TV_FMT(x->path));
    assert_string_equal(x->e->what.id, "paddle.no-program-beside");
    assert_int_equal(x->e->code, TV_UNAVAILABLE);
    assert_true(tv_str_has(tv_text_in(x->a, TV_EN, x->e->what),
                           tv_json_str(tv_json_get(x->facts, "arch"))));
}

/* ---- the manifest ---- */

static const kind_case kinds[] = {
    {"paddle-pdmodel", 9, true, check_program},
    {"paddle-pdiparams", 5, true, check_params},
    {"paddle-param", 5, true, check_params},
    {"paddle-pdparams", 2, true, check_state},
    {"paddle-pir-json", 1, true, check_pir},
    {"paddlex-inference-yml", 1, true, check_settings},
    {"paddlex-config-json", 1, true, check_settings},
    {"paddledetection-infer-cfg", 1, false, check_lonely},
};
static void the_manifest_holds(void **state)
{
    (void)state;
    test_manifest_holds(kinds, sizeof kinds / sizeof *kinds);
}

/* What serving settings say of open dimensions; the first is the batch and stays the job's. */
static void settings_size_the_inputs(void **state)
{
    (void)state;
    if (!test_shared("models/paddle/PP-DocLayoutV2/inference.pdmodel"))
        return;
    tv_arena *a = test_arena();
    const tv_source *s = NULL;
    assert_ok(a, tv_read_model(a, TV_S(MODELS "paddle/PP-DocLayoutV2"), &s));
    assert_str(s->name, "PP-DocLayoutV2");
    const tv_value *image = NULL;
    for (size_t i = 0; i < s->program->main->n_inputs; i++) {
        const tv_value *v = &s->program->values[s->program->main->inputs[i]];
        image = tv_str_is(v->name, "image") ? v : image;
    }
    assert_non_null(image);
    assert_int_equal(image->dims[0].size, -1);
    assert_int_equal(image->dims[3].size, 800); /* stated by the program itself */
    assert_non_null(image->usual);
    assert_int_equal(image->usual[0], 0);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_manifest_holds),
        cmocka_unit_test(settings_size_the_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
