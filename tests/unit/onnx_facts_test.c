/* Every ONNX file of the collection against its manifest: versions, counts, operators, inputs and
 * outputs; of the broken ones, what the reader can tell. */
#include "testing.h"

#include "base/json.h"
#include "read/reader.h"

#define MODELS "../shared/data/models/"

static tv_arena *arena;

static bool warned(const tv_source *s, const char *id)
{
    for (size_t i = 0; i < s->n_warnings; i++)
        if (strcmp(s->warnings[i].id, id) == 0)
            return true;
    return false;
}

typedef struct entry {
    tv_str path;
    const tv_json *facts;
    const tv_source *s;
} entry;

static void differs(const entry *x, const char *key)
{
    fail_msg("%.*s: %s differs from the manifest", TV_FMT(x->path), key);
}

/* The manifest lists the six most frequent operators; n_op_types counts them all. */
static void same_numbers(const entry *x, const char *key)
{
    const bool partly = strcmp(key, "ops") == 0;
    const tv_json *want = tv_json_get(x->facts, key), *got = tv_json_get(x->s->metadata, key);
    if (want->type != TV_JSON_OBJECT)
        return;
    if (!partly && want->n != got->n)
        differs(x, key);
    for (size_t i = 0; i < want->n; i++) {
        const char *name = tv_cstr(arena, want->items[i].key);
        if (tv_json_num(tv_json_get(got, name), -1) != want->items[i].number)
            differs(x, key);
    }
}

/* "?" and -1 are dimensions that nothing is known of. */
static bool same_dim(const tv_json *want, const tv_json *got)
{
    if (want->type == TV_JSON_NUMBER && want->number >= 0)
        return got->type == TV_JSON_NUMBER && got->number == want->number;
    if (want->type == TV_JSON_NUMBER || tv_str_is(want->s, "?"))
        return got->type == TV_JSON_NULL;
    return tv_str_eq(want->s, got->s);
}

static bool same_value(const tv_json *want, const tv_json *got)
{
    if (want->type == TV_JSON_STRING) /* "<sequence_type>" */
        return tv_str_is(tv_json_str(tv_json_at(got, 0)), "sequence");
    const tv_json *dims = tv_json_at(want, 1), *own = tv_json_at(got, 1);
    if (!tv_str_eq(tv_json_str(tv_json_at(want, 0)), tv_json_str(tv_json_at(got, 0))))
        return false;
    if ((dims->type == TV_JSON_ARRAY) != (own->type == TV_JSON_ARRAY) || dims->n != own->n)
        return false;
    for (size_t i = 0; i < dims->n; i++)
        if (!same_dim(&dims->items[i], &own->items[i]))
            return false;
    return true;
}

static void same_values(const entry *x, const char *key)
{
    const tv_json *want = tv_json_get(x->facts, key), *got = tv_json_get(x->s->metadata, key);
    if (want->type != TV_JSON_OBJECT)
        return;
    if (want->n != got->n)
        differs(x, key);
    for (size_t i = 0; i < want->n; i++)
        if (!same_value(&want->items[i], tv_json_get(got, tv_cstr(arena, want->items[i].key))))
            differs(x, key);
}

/* Weights that are listed: those that are stored, and of the constants those that look like
 * weights. A tree ensemble keeps its own in attributes. */
static void check_tensors(const entry *x)
{
    const tv_json *m = x->s->metadata;
    const double stored = tv_json_num(tv_json_get(m, "initializer_elements"), 0) +
                          tv_json_num(tv_json_get(m, "subgraph_initializer_elements"), 0);
    const double constants = tv_json_num(tv_json_get(m, "constant_elements"), 0);
    double listed = 0;
    for (size_t i = 0; i < x->s->n_tensors; i++)
        listed += (double)x->s->tensors[i].elements;
    const bool sparse = tv_json_num(tv_json_get(m, "sparse_initializers"), 0) > 0;
    const bool trees = tv_str_has(x->path, TV_S("tree_ensemble"));
    if (!sparse && !trees && (listed < stored || listed > stored + constants))
        differs(x, "tensors");
}

static void check_facts(const entry *x)
{
    static const char *const counts[] = {"ir_version",
                                         "n_nodes",
                                         "subgraphs",
                                         "n_subgraph_nodes",
                                         "n_initializers",
                                         "initializer_elements",
                                         "subgraph_initializers",
                                         "subgraph_initializer_elements",
                                         "constant_nodes",
                                         "constant_elements",
                                         "external",
                                         "sparse_initializers",
                                         "n_value_info",
                                         "functions",
                                         "inputs_that_are_initializers"};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const tv_json *want = tv_json_get(x->facts, counts[i]);
        const tv_json *got = tv_json_get(x->s->metadata, counts[i]);
        if (tv_json_is_num(want) && want->number != tv_json_num(got, -1))
            fail_msg("%.*s: %s is %.17g, the manifest says %.17g", TV_FMT(x->path), counts[i],
                     tv_json_num(got, -1), want->number);
    }
    same_numbers(x, "opset");
    same_numbers(x, "init_dtypes");
    same_numbers(x, "ops");
    const tv_json *types = tv_json_get(x->facts, "n_op_types");
    if (tv_json_is_num(types) && types->number != (double)tv_json_get(x->s->metadata, "ops")->n)
        differs(x, "n_op_types");
    same_values(x, "inputs");
    same_values(x, "outputs");
    static const char *const texts[] = {"producer", "graph"};
    for (size_t i = 0; i < 2; i++) {
        const tv_json *want = tv_json_get(x->facts, texts[i]);
        if (want->type == TV_JSON_STRING &&
            !tv_str_eq(tv_str_trim(want->s), tv_json_str(tv_json_get(x->s->metadata, texts[i]))))
            differs(x, texts[i]);
    }
    check_tensors(x);
}

/* What the reader itself can tell; what needs shapes is told where the program is run. */
static void check_broken(const entry *x)
{
    static const char *const rows[][2] = {
        {"dup_value_info", "onnx.declared-twice"}, {"duplicate_node_names", "onnx.named-twice"},
        {"no_import_domains", "onnx.no-opset"},    {"no_name", "onnx.no-name"},
        {"multi_level_errors", "onnx.no-name"},
    };
    check_facts(x);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tv_str_has(x->path, tv_str_of(rows[i][0])) && !warned(x->s, rows[i][1]))
            differs(x, rows[i][1]);
}

/* External data is no model of its own: the models beside it name its files and sizes. */
static void check_external(const entry *x)
{
    const tv_file_info info = tv_file_stat(arena, tv_path_join(arena, TV_S(MODELS), x->path));
    const tv_json *want = tv_json_get(x->facts, "raw_bytes");
    assert_true(info.exists);
    assert_true((double)info.bytes == want->number);
}

typedef struct kind_case {
    const char *kind;
    size_t n;
    bool reads;
    void (*check)(const entry *x);
} kind_case;

static const kind_case kinds[] = {
    {"onnx", 76, true, check_facts},
    {"onnx-broken", 7, true, check_broken},
    {"onnx-external-data", 5, false, check_external},
};
enum { n_kinds = sizeof kinds / sizeof *kinds };

static void check_row(const kind_case *k, const tv_json *row)
{
    tv_arena *kept = arena;
    arena = test_arena();
    entry x = {.path = tv_json_str(tv_json_get(row, "path")), .facts = tv_json_get(row, "facts")};
    if (k->reads)
        assert_ok(arena, tv_read_model(arena, tv_path_join(arena, TV_S(MODELS), x.path), &x.s));
    k->check(&x);
    tv_arena_close(arena);
    arena = kept;
}

static void the_manifest_holds(void **state)
{
    (void)state;
    if (!test_shared("models/MANIFEST.jsonl"))
        return;
    arena = test_arena();
    tv_str text;
    size_t seen[n_kinds] = {0};
    assert_ok(arena, tv_file_read(arena, TV_S(MODELS "MANIFEST.jsonl"), (size_t)16 << 20, &text));
    for (; text.n; text = tv_str_cut(text, '\n').tail) {
        const tv_json *row = NULL;
        assert_ok(arena, tv_json_parse(arena, TV_S("manifest"), tv_str_cut(text, '\n').head, &row));
        for (size_t i = 0; i < n_kinds; i++) {
            if (!tv_str_is(tv_json_str(tv_json_get(row, "kind")), kinds[i].kind))
                continue;
            check_row(&kinds[i], row);
            seen[i]++;
        }
    }
    for (size_t i = 0; i < n_kinds; i++) {
        print_message("# %s: %zu of %zu\n", kinds[i].kind, seen[i], kinds[i].n);
        assert_int_equal(seen[i], kinds[i].n);
    }
    tv_arena_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_manifest_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
