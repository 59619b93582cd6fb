/* The PyTorch reader against the facts of the collected checkpoints, which come from a walker of
 * their own and from torch.load; against what a generator writes; and folders. */
#include "lines.h"

#include "read/reader.h"

#define FIXTURES TEST_BUILD "/torch_files/"

/* ---- the collection ---- */

static size_t n_checked, n_rows;

static double fact(const tv_json *row, const char *key)
{
    return tv_json_num(tv_json_path(row, key), 0);
}

typedef struct totals {
    double tensors, elements;
} totals;

static totals totals_of(const tv_source *s)
{
    totals t = {(double)s->n_tensors, 0};
    for (size_t i = 0; i < s->n_tensors; i++)
        t.elements += (double)s->tensors[i].elements;
    for (size_t i = 0; i < s->n_extras; i++) {
        t.tensors += (double)s->extras[i].n_tensors;
        t.elements += s->extras[i].elements;
    }
    return t;
}

static double type_count(const tv_source *s, tv_dtype type)
{
    double n = 0;
    for (size_t i = 0; i < s->n_tensors; i++)
        n += s->tensors[i].dtype == type;
    return n;
}

static void same_types(const tv_source *s, const tv_json *types)
{
    static const struct {
        const char *key;
        tv_dtype type;
    } names[] = {{"Float", TV_F32}, {"Double", TV_F64}, {"Half", TV_F16},  {"BFloat16", TV_BF16},
                 {"Long", TV_I64},  {"Int", TV_I32},    {"Short", TV_I16}, {"Char", TV_I8},
                 {"Byte", TV_U8},   {"Bool", TV_BOOL}};
    for (size_t i = 0; s->n_extras == 0 && i < types->n; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (tv_str_is(types->items[i].key, names[k].key))
                assert_true(type_count(s, names[k].type) == types->items[i].number);
}

static void same_facts(tv_str path, const tv_source *s, const tv_json *row)
{
    const totals t = totals_of(s);
    const double views = fact(row, "facts.unique_storages");
    if (t.tensors != fact(row, "facts.tensors") || t.elements != fact(row, "facts.elements"))
        fail_msg("%.*s: %g tensors, %g elements", TV_FMT(path), t.tensors, t.elements);
    same_types(s, tv_json_path(row, "facts.dtypes"));
    if (fact(row, "facts.storage_bytes") > 0 &&
        s->storage_bytes != fact(row, "facts.storage_bytes"))
        fail_msg("%.*s: storages of %g bytes", TV_FMT(path), s->storage_bytes);
    if (fact(row, "facts.unique_storage_elements") == t.elements && views == t.tensors)
        assert_true(s->tensor_bytes <= s->storage_bytes);
}

static void check_row(tv_arena *a, const tv_json *row)
{
    const tv_str kind = test_member(row, "kind");
    if (!tv_str_starts(kind, TV_S("torch-")))
        return;
    const tv_str path = tv_str_join(a, TV_S("../shared/data/models/"), test_member(row, "path"));
    const tv_source *s = NULL;
    const tv_err *e = tv_read_model(a, path, &s);
    n_rows++;
    if (tv_str_is(kind, "torch-broken")) {
        assert_non_null(e);
        assert_true(e->hint.msgid != NULL);
    } else {
        assert_ok(a, e);
        same_facts(path, s, row);
    }
    n_checked++;
}

static void collected_checkpoints_hold_their_facts(void **state)
{
    (void)state;
    const char *manifest = test_shared("models/MANIFEST.jsonl");
    if (!manifest)
        return;
    (void)test_lines(manifest, check_row);
    print_message("checkpoints: %zu of %zu\n", n_checked, n_rows);
    assert_true(n_rows >= 50);
}

/* ---- what the generator wrote ---- */

static void same_dims(tv_str path, const tv_tensor *t, const tv_json *want)
{
    if (!tv_str_eq(t->name, want->key) || t->rank != want->n)
        fail_msg("%.*s: \"%.*s\" of rank %u", TV_FMT(path), TV_FMT(t->name), t->rank);
    for (uint32_t i = 0; i < t->rank; i++)
        assert_int_equal(t->dims[i], tv_json_u64(tv_json_at(want, i)).v);
}

static void same_extras(tv_str path, const tv_source *s, const tv_json *want)
{
    if (s->n_extras != want->n)
        fail_msg("%.*s: %zu extras", TV_FMT(path), s->n_extras);
    for (size_t i = 0; i < want->n; i++) {
        const tv_source_extra *x = &s->extras[i];
        assert_true(tv_str_eq(x->name, want->items[i].key));
        assert_true((double)x->n_tensors == want->items[i].items[0].number);
        assert_true(x->elements == want->items[i].items[1].number);
        assert_true(x->bytes == want->items[i].items[2].number);
    }
}

static bool warns(const tv_source *s, tv_str id)
{
    for (size_t i = 0; i < s->n_warnings; i++)
        if (tv_str_eq(tv_str_of(s->warnings[i].id), id))
            return true;
    return false;
}

static void same_source(tv_str path, const tv_source *s, const tv_json *row)
{
    const tv_json *names = tv_json_get(row, "names");
    const double bytes = tv_json_num(tv_json_get(row, "bytes"), -1);
    const tv_str warning = test_member(row, "warning");
    size_t shares = 0;
    if (s->n_tensors != names->n || s->tensor_bytes != bytes)
        fail_msg("%.*s: %zu tensors, %g bytes", TV_FMT(path), s->n_tensors, s->tensor_bytes);
    /* JSON keeps the generator's order, which is by name */
    for (size_t i = 0; i < names->n; i++) {
        same_dims(path, &s->tensors[i], &names->items[i]);
        shares += s->tensors[i].shares;
    }
    assert_true(s->storage_bytes == tv_json_num(tv_json_get(row, "storage"), bytes));
    assert_true((double)shares == tv_json_num(tv_json_get(row, "shares"), 0));
    same_extras(path, s, tv_json_get(row, "extras"));
    if (warning.n ? !warns(s, warning) : s->n_warnings > 0)
        fail_msg("%.*s: %s", TV_FMT(path), s->n_warnings ? s->warnings[0].id : "no warning");
}

static void check_written(tv_arena *a, const tv_json *row)
{
    const tv_str path = tv_str_join(a, TV_S(FIXTURES), test_member(row, "path"));
    const tv_str id = test_member(row, "id");
    const tv_source *s = NULL;
    const tv_err *e = tv_read_model(a, path, &s);
    if (!id.n) {
        assert_ok(a, e);
        same_source(path, s, row);
        return;
    }
    if (!e || !tv_str_eq(tv_str_of(e->what.id), id))
        fail_msg("%.*s: %s", TV_FMT(path), e ? e->what.id : "no error");
    assert_true(e->file.n > 0);
}

static void written_checkpoints_read_back(void **state)
{
    (void)state;
    print_message("checkpoints: %zu\n", test_lines(FIXTURES "torch.jsonl", check_written));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_checkpoints_read_back),
        cmocka_unit_test(collected_checkpoints_hold_their_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
