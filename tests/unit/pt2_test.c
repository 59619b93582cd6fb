/* Exported programs: the archives that tests/gen/pt2_files.py writes by hand, what the arguments of
 * a node become, and Python's text for expressions and module paths. */
#include "lines.h"

#include "read/pt2.h"

#define FIXTURES TEST_BUILD "/pt2_files/"

/* ---- archives ---- */

static const tv_value *named(const tv_program *p, const char *name)
{
    for (size_t i = 0; i < p->n_values; i++)
        if (tv_str_is(p->values[i].name, name))
            return &p->values[i];
    fail_msg("no value %s", name);
    return NULL;
}

static void same_dims(const tv_value *v, const tv_json *want)
{
    assert_true(v->shaped);
    assert_int_equal(v->rank, want->n);
    for (uint32_t i = 0; i < v->rank; i++) {
        const tv_json *d = tv_json_at(want, i);
        if (d->type == TV_JSON_STRING)
            assert_true(v->dims[i].size < 0 && tv_str_eq(v->dims[i].symbol, d->s));
        else
            assert_int_equal(v->dims[i].size, tv_json_u64(d).v);
    }
}

static void same_weights(const tv_program *p, const tv_json *row)
{
    uint64_t params = 0, buffers = 0, frozen = 0;
    for (size_t i = 0; i < p->n_values; i++) {
        const tv_value *v = &p->values[i];
        if (v->role != TV_VALUE_WEIGHT)
            continue;
        params += v->buffer ? 0 : tv_value_elements(v);
        buffers += v->buffer ? tv_value_elements(v) : 0;
        frozen += v->frozen;
        if (tv_json_bool(tv_json_get(row, "contents"), false))
            assert_int_equal(v->data.n > 0, v->buffer);
    }
    assert_int_equal(params, tv_json_u64(tv_json_get(row, "params")).v);
    assert_int_equal(buffers, tv_json_u64(tv_json_get(row, "buffers")).v);
    assert_int_equal(frozen, tv_json_num(tv_json_get(row, "frozen"), 0));
}

static void same_program(const tv_source *s, const tv_json *row)
{
    const tv_program *p = s->program;
    assert_int_equal(s->kind, TV_SOURCE_PROGRAM);
    assert_int_equal(p->dialect, TV_DIALECT_ATEN);
    assert_int_equal(p->main->n_nodes, tv_json_u64(tv_json_get(row, "nodes")).v);
    assert_int_equal(p->main->n_inputs, tv_json_u64(tv_json_get(row, "inputs")).v);
    assert_int_equal(p->main->n_outputs, tv_json_u64(tv_json_get(row, "outputs")).v);
    assert_true(tv_str_is(p->values[p->main->outputs[0]].name, "add"));
    same_dims(&p->values[p->main->inputs[0]], tv_json_get(row, "input"));
    same_dims(named(p, "view"), tv_json_get(row, "view"));
    same_weights(p, row);
    assert_int_equal(s->n_tensors, 5);
    assert_int_equal((int)s->tensor_bytes, 48 + 16 + 16 + 16 + 1);
    assert_int_equal(s->n_warnings, tv_json_num(tv_json_get(row, "warnings"), 0));
    assert_int_equal(p->n_symbols, 1);
    assert_true(tv_str_is(p->symbols[0].name, "s0"));
    assert_int_equal(p->symbols[0].max, 64);
    assert_int_equal(p->symbols[0].example, 2);
}

static void check(tv_arena *a, const tv_json *row)
{
    const tv_str path = tv_str_join(a, TV_S(FIXTURES), test_member(row, "path"));
    const tv_str id = test_member(row, "id");
    const tv_source *s = NULL;
    const tv_err *e = tv_read_model(a, path, &s);
    if (id.n && (!e || !tv_str_eq(tv_str_of(e->what.id), id)))
        fail_msg("%.*s: %s", TV_FMT(path), e ? e->what.id : "no error");
    if (id.n)
        return;
    assert_ok(a, e);
    same_program(s, row);
}

static void archives_are_read(void **state)
{
    (void)state;
    print_message("archives: %zu\n", test_lines(FIXTURES "pt2s.jsonl", check));
}

/* ---- arguments ---- */

static const tv_program *example(tv_arena *a)
{
    const tv_source *s = NULL;
    assert_ok(a, tv_read_model(a, TV_S(FIXTURES "since-2.9.pt2"), &s));
    return s->program;
}

static void assert_value(const tv_program *p, uint32_t v, const char *name)
{
    assert_true(v < p->n_values);
    assert_true(tv_str_is(p->values[v].name, name));
}

static void operands_stand_in_named_slots(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_program *p = example(a);
    const tv_node *linear = &p->main->nodes[1], *index = &p->main->nodes[4];
    assert_true(tv_str_is(linear->op, "aten.linear.default"));
    assert_true(tv_str_is(linear->name, "layers.0.fc"));
    assert_value(p, tv_node_in_slot(linear, "weight", 0), "layers.0.fc.weight");
    assert_value(p, tv_node_in(linear, 2), "layers.0.fc.bias");
    assert_value(p, tv_node_out(linear, 0), "linear");
    assert_int_equal(index->input_slots[1].n, 2);
    assert_int_equal(tv_node_in_slot(index, "indices", 0), TV_NO_VALUE);
    assert_value(p, tv_node_in_slot(index, "indices", 1), "index");
    assert_int_equal(p->main->nodes[3].n_outputs, 2);
    tv_arena_close(a);
}

static void other_kinds_are_attributes(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_program *p = example(a);
    const tv_node *full = &p->main->nodes[5], *clone = &p->main->nodes[6];
    const int64_t *v = NULL;
    assert_int_equal(tv_node_ints(full, "size", &v), 1);
    assert_int_equal(v[0], 4);
    assert_true(tv_node_float(full, "fill_value", 0) < -1e300);
    assert_int_equal(tv_node_attr(full, "dtype")->u.dtype, TV_F16);
    assert_int_equal(tv_node_int(full, "pin_memory", 7), 0);
    assert_true(tv_str_is(tv_node_string(full, "device"), "cpu"));
    assert_true(tv_str_is(tv_node_string(clone, "memory_format"), "contiguous_format"));
    assert_int_equal(tv_node_int(&p->main->nodes[3], "dim", 0), -1);
    tv_arena_close(a);
}

static void symbols_are_resolved(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_program *p = example(a);
    const tv_attr *size = tv_node_attr(&p->main->nodes[2], "size");
    const tv_attr *other = tv_node_attr(&p->main->nodes[8], "other");
    assert_int_equal(size->kind, TV_ATTR_DIMS);
    assert_int_equal(size->n, 3);
    assert_int_equal(size->u.dims[0].size, -1);
    assert_true(tv_str_is(size->u.dims[0].symbol, "s0"));
    assert_int_equal(size->u.dims[1].size, 2);
    assert_int_equal(other->kind, TV_ATTR_DIMS);
    assert_true(tv_str_is(other->u.dims[0].symbol, "s0"));
    assert_null(tv_node_attr(&p->main->nodes[8], "alpha"));
    tv_arena_close(a);
}

static void inner_graphs_have_names_of_their_own(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_program *p = example(a);
    const tv_node *cond = &p->main->nodes[7];
    const tv_attr *yes = tv_node_attr(cond, "1"), *no = tv_node_attr(cond, "2");
    assert_int_equal(yes->kind, TV_ATTR_BODY);
    assert_int_equal(no->u.body->n_nodes, 1);
    assert_true(tv_str_is(yes->u.body->nodes[0].op, "aten.sin.default"));
    assert_true(yes->u.body->inputs[0] != no->u.body->inputs[0]);
    assert_int_equal(tv_node_in(&yes->u.body->nodes[0], 0), yes->u.body->inputs[0]);
    assert_value(p, tv_node_in_slot(cond, "0", 0), "flag");
    assert_value(p, tv_node_in_slot(cond, "3", 0), "linear");
    tv_arena_close(a);
}

/* ---- text ---- */

static void expressions_are_printed(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"s0", "s0"},
        {"2*s0**2", "2*s0**2"},
        {"Symbol('s77', positive=True, integer=True)", "s77"},
        {"Mul(Integer(16), Symbol('s53', integer=True))", "16*s53"},
        {"Add(Mul(Integer(2), Symbol('s0')), Integer(1))", "2*s0 + 1"},
        {"Mul(Integer(3), Add(Symbol('s0'), Integer(-1)))", "3*(s0 + -1)"},
        {"Mul(Integer(2), Pow(Symbol('s0', integer=True), Integer(2)))", "2*s0**2"},
        {"Mul(Rational(1, 2), Symbol('s0'))", "1/2*s0"},
        {"FloorDiv(Add(Symbol('s0'), Integer(3)), Integer(4))", "FloorDiv(s0 + 3, 4)"},
        {"Max(Integer(1), Mod(Symbol('u0'), Integer(8)))", "Max(1, Mod(u0, 8))"},
        {"Add(Symbol('s0'", "Add(Symbol('s0'"}, /* cut: kept as it is */
        {"Add(Symbol('s0'), )", "Add(Symbol('s0'), )"},
    };
    tv_arena *a = test_arena();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tv_str s = tv_pt2_expression(a, tv_str_of(cases[i][0]));
        if (!tv_str_is(s, cases[i][1]))
            fail_msg("%s: %.*s", cases[i][0], TV_FMT(s));
    }
    tv_arena_close(a);
}

static void module_paths_are_plain(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"L__self__,,model.M", ""},
        {"L__self__,,M;L__self___c,c,torch.nn.Conv2d", "c"},
        {"L__self__,,M;x,blocks.3.attn@2,torch.nn.Linear", "blocks.3.attn"},
        {"L__self__,,M;L__s___b,L['s'].b,torch.nn.BatchNorm2d", "b"},
        {"L__self__,,M;k,L['self'].layer1[0].conv,torch.nn.Conv2d", "layer1.0.conv"},
        {"L__self__,,M;k,getattr(L['self'].layer1, '0').conv1,Conv", "layer1.0.conv1"},
        {"_empty_nn_module_stack_from_metadata_hook,_empty_nn_module_stack_from_metadata_hook,"
         "_empty_nn_module_stack_from_metadata_hook",
         ""},
    };
    tv_arena *a = test_arena();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tv_str s = tv_pt2_module(a, tv_str_of(cases[i][0]));
        if (!tv_str_is(s, cases[i][1]))
            fail_msg("%s: %.*s", cases[i][0], TV_FMT(s));
    }
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(archives_are_read),
        cmocka_unit_test(operands_stand_in_named_slots),
        cmocka_unit_test(other_kinds_are_attributes),
        cmocka_unit_test(symbols_are_resolved),
        cmocka_unit_test(inner_graphs_have_names_of_their_own),
        cmocka_unit_test(expressions_are_printed),
        cmocka_unit_test(module_paths_are_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
