/* The Paddle readers on small files that tests/gen/paddle_files.py wrote (the fuzzers' corpus):
 * what is found in them, and the error with its byte where they are wrong. */
#include "testing.h"

#include "codec/yaml_doc.h"
#include "read/paddle.h"

#define CORPUS "tests/fuzz/corpus/"

typedef const tv_err *reader(tv_gather *g, tv_str path, tv_bytes_view bytes);

typedef struct got {
    const tv_source *s;
    const tv_err *e;
    tv_bytes_view bytes;
} got;

static got read_bytes(tv_arena *a, reader *read, tv_str path, tv_bytes_view bytes)
{
    got x = {.bytes = bytes};
    tv_gather g = tv_gather_in(a, path);
    x.e = read(&g, path, bytes);
    if (!x.e)
        x.e = tv_gather_done(&g, &x.s);
    return x;
}

static got read_file(tv_arena *a, reader *read, const char *name)
{
    tv_bytes_view bytes;
    const tv_str path = tv_str_join(a, TV_S(CORPUS), tv_str_of(name));
    assert_ok(a, tv_file_map(a, path, &bytes));
    return read_bytes(a, read, path, bytes);
}

static const tv_value *value_of(const tv_program *p, const char *name)
{
    for (size_t i = 0; i < p->n_values; i++)
        if (tv_str_is(p->values[i].name, name))
            return &p->values[i];
    fail_msg("no value %s", name);
    return NULL;
}

/* ---- ProgramDesc ---- */

static void a_program_is_read(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const got x = read_file(a, tv_read_paddle_model, "paddle_program/fc");
    assert_ok(a, x.e);
    const tv_program *p = x.s->program;
    assert_int_equal(x.s->kind, TV_SOURCE_PROGRAM);
    assert_str(p->producer, "paddle 3.1.1");
    assert_int_equal(p->main->n_nodes, 2);
    assert_int_equal(p->main->n_inputs, 1);
    assert_int_equal(p->main->n_outputs, 1);
    assert_str(p->values[p->main->inputs[0]].name, "x");
    assert_str(p->values[p->main->outputs[0]].name, "fc_0.tmp_1");
    const tv_node *mul = &p->main->nodes[0];
    assert_str(mul->op, "mul");
    assert_str(mul->name, "fc_0");
    assert_int_equal(tv_node_int(mul, "x_num_col_dims", 0), 1);
    assert_null(tv_node_attr(mul, "op_callstack"));
    assert_str(p->values[tv_node_in_slot(mul, "Y", 0)].name, "fc_0.w_0");
    assert_int_equal(tv_node_in_slot(mul, "Bias", 0), TV_NO_VALUE);
    assert_int_equal(value_of(p, "x")->dims[0].size, -1);
    assert_int_equal(value_of(p, "fc_0.w_0")->role, TV_VALUE_WEIGHT);
    assert_int_equal(x.s->n_tensors, 2); /* from the program: no parameters lie beside it */
    assert_true(x.s->tensor_bytes == 60);
    tv_arena_close(a);
}

static void attributes_of_every_kind(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const got x = read_file(a, tv_read_paddle_model, "paddle_program/statistics");
    assert_ok(a, x.e);
    const tv_program *p = x.s->program;
    const tv_node *n = &p->main->nodes[0];
    const int64_t *v = NULL;
    assert_close(tv_node_float(n, "epsilon", 0), 1e-5, 1e-6);
    assert_int_equal(tv_node_int(n, "is_test", 0), 1);
    assert_str(tv_node_string(n, "data_layout"), "NCHW");
    assert_int_equal(tv_node_ints(n, "longs", &v), 2);
    assert_true(v[0] == (int64_t)1 << 40 && v[1] == -1);
    assert_true(tv_node_attr(n, "doubles")->u.floats[0] == 0.5);
    assert_true(tv_node_float(n, "double", 0) == 2.5);
    assert_int_equal(tv_node_ints(n, "flags", &v), 2);
    assert_true(tv_node_attr(n, "floats")->u.floats[1] == 2.5);
    assert_str(tv_node_attr(n, "names")->u.strings[1], "b");
    assert_true(tv_node_int(n, "long", 0) == (int64_t)1 << 33);
    assert_int_equal(tv_node_attr(n, "dtype")->u.dtype, TV_F32);
    assert_str(p->values[tv_node_attr(n, "value")->u.value].name, "x");
    assert_int_equal(tv_node_attr(n, "values")->n, 2);
    /* What the forward pass itself writes is a statistic; a flag has no gradient. */
    assert_true(value_of(p, "bn.w_1")->buffer && value_of(p, "bn.w_2")->buffer);
    assert_false(value_of(p, "bn.w_0")->buffer);
    assert_true(value_of(p, "flag")->buffer);
    tv_arena_close(a);
}

static void blocks_become_bodies(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const got x = read_file(a, tv_read_paddle_model, "paddle_program/loop");
    assert_ok(a, x.e);
    const tv_program *p = x.s->program;
    const tv_attr *sub = tv_node_attr(&p->main->nodes[1], "sub_block");
    assert_int_equal(sub->kind, TV_ATTR_BODY);
    assert_int_equal(sub->u.body->n_nodes, 4);
    /* An inner node reads the outer value; an array is a list. */
    assert_int_equal(sub->u.body->nodes[0].inputs[0], tv_node_in(&p->main->nodes[1], 0));
    assert_true(value_of(p, "all")->list);
    assert_int_equal(value_of(p, "unheard")->role, TV_VALUE_INPUT);
    tv_arena_close(a);
}

static void training_programs_lose_their_backward(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const got x = read_file(a, tv_read_paddle_model, "paddle_program/training");
    assert_ok(a, x.e);
    assert_int_equal(x.s->program->main->n_nodes, 2);
    assert_int_equal(x.s->n_tensors, 1); /* neither the moments nor the learning rate */
    assert_int_equal(x.s->n_warnings, 1);
    assert_string_equal(x.s->warnings[0].id, "paddle.training");
    tv_arena_close(a);
}

/* ---- parameters ---- */

static void records_without_names(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const got x = read_file(a, tv_read_paddle_parameters, "paddle_params/two");
    assert_ok(a, x.e);
    assert_int_equal(x.s->kind, TV_SOURCE_CHECKPOINT);
    assert_int_equal(x.s->n_tensors, 2);
    assert_str(x.s->tensors[0].name, "#0000001");
    assert_int_equal(x.s->tensors[1].rank, 2);
    assert_true(x.s->tensors[1].bytes == 48);
    assert_true(x.s->tensors[1].offset + 48 == x.bytes.n);
    const got kinds = read_file(a, tv_read_paddle_parameters, "paddle_params/kinds");
    assert_ok(a, kinds.e);
    assert_true(kinds.s->tensor_bytes == 1 + 16 + 2);
    tv_arena_close(a);
}

/* The program asks for fc_0.b_0 [3] and fc_0.w_0 [4, 3], in this order. */
static const tv_err *against(tv_arena *a, tv_bytes_view bytes)
{
    tv_bytes_view program;
    tv_paddle_program p = {0};
    const tv_str path = TV_S(CORPUS "paddle_program/fc");
    assert_ok(a, tv_file_map(a, path, &program));
    tv_gather g = tv_gather_in(a, path);
    assert_ok(a, tv_read_paddle_desc(&g, path, program, &p));
    return tv_read_paddle_records(&g, TV_S("x.pdiparams"), bytes, &p);
}

static void wrong_with(const tv_err *e, const char *id, uint64_t offset)
{
    if (!e)
        fail_msg("%s was read", id);
    while (e->cause) /* what was being done stands around what was wrong */
        e = e->cause;
    assert_string_equal(e->what.id, id);
    assert_true(e->has_offset);
    assert_int_equal(e->offset, offset);
}

static void records_are_held_to_the_program(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_bytes_view two;
    assert_ok(a, tv_file_map(a, TV_S(CORPUS "paddle_params/two"), &two));
    /* 20 bytes before the description, "08 05 10 03", 3 floats. */
    const size_t first = 20 + 4 + 12;
    assert_ok(a, against(a, two));
    wrong_with(against(a, (tv_bytes_view){two.p, first}), "paddle.too-few", first);
    wrong_with(against(a, (tv_bytes_view){two.p, two.n - 1}), "safetensors.cut-short", two.n - 1);
    wrong_with(against(a, (tv_bytes_view){two.p, 10}), "paddle.cut-short", 10);
    wrong_with(against(a, (tv_bytes_view){two.p + first, two.n - first}), "paddle.other-shape", 0);
    unsigned char *more = tv_new(a, unsigned char, two.n + 2);
    for (size_t i = 0; i < two.n; i++)
        more[i] = two.p[i];
    wrong_with(against(a, (tv_bytes_view){more, two.n + 2}), "paddle.too-many", two.n);
    more[0] = 1;
    wrong_with(against(a, (tv_bytes_view){more, two.n}), "paddle.no-record", 0);
    tv_arena_close(a);
}

/* ---- PIR ---- */

static void lists_are_resolved(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const got x = read_file(a, tv_read_paddle_model, "paddle_pir/lists");
    assert_ok(a, x.e);
    const tv_program *p = x.s->program;
    assert_true(p->pir);
    assert_int_equal(x.s->n_tensors, 2); /* not the one that is not persistable */
    assert_true(value_of(p, "bn.w_1")->buffer);
    assert_int_equal(p->main->n_nodes, 5);
    const tv_node *split = &p->main->nodes[0], *concat = &p->main->nodes[2];
    assert_str(split->op, "split_with_num");
    assert_int_equal(split->n_outputs, 2);
    assert_int_equal(split->inputs[1], TV_NO_VALUE);
    assert_str(concat->name, "Net.Concat");
    assert_int_equal(concat->n_input_slots, 2);
    assert_int_equal(concat->input_slots[0].n, 3);
    assert_int_equal(concat->inputs[0], split->outputs[1]); /* slice 1 */
    assert_int_equal(concat->inputs[1], split->outputs[0]); /* split */
    assert_int_equal(concat->inputs[2], split->outputs[1]);
    assert_true(isinf(tv_node_attr(concat, "list")->u.floats[1]));
    assert_str(tv_node_attr(concat, "words")->u.strings[0], "a\\\"b");
    assert_str(p->main->nodes[4].domain, "custom_op");
    assert_null(tv_node_attr(split, "place"));
    tv_arena_close(a);
}

static void regions_become_bodies(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const got x = read_file(a, tv_read_paddle_model, "paddle_pir/branches");
    assert_ok(a, x.e);
    const tv_body *main = x.s->program->main;
    const tv_attr *both = tv_node_attr(&main->nodes[1], "regions");
    const tv_attr *loop = tv_node_attr(&main->nodes[2], "regions");
    assert_int_equal(both->n, 2);
    assert_int_equal(both->u.bodies[0]->n_nodes, 1);
    assert_int_equal(both->u.bodies[0]->n_outputs, 1);
    assert_int_equal(both->u.bodies[1]->n_nodes, 0);
    assert_int_equal(both->u.bodies[1]->outputs[0], main->inputs[0]);
    assert_int_equal(loop->u.bodies[0]->n_inputs, 1);
    assert_int_equal(loop->u.bodies[0]->n_outputs, 2);
    tv_arena_close(a);
}

/* ---- state dicts ---- */

static void arrays_are_listed(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    got x = read_file(a, tv_read_paddle_state, "paddle_state/bytes");
    assert_ok(a, x.e);
    assert_int_equal(x.s->n_tensors, 2); /* not the table of names */
    assert_int_equal(x.s->tensors[0].dtype, TV_BF16);
    assert_true(x.s->tensors[1].bytes == 24);
    assert_int_equal(x.bytes.p[x.s->tensors[1].offset + 5], 5); /* the data itself */
    x = read_file(a, tv_read_paddle_state, "paddle_state/text");
    assert_ok(a, x.e);
    assert_true(x.s->tensor_bytes == 512); /* 768 bytes as text */
    x = read_file(a, tv_read_paddle_state, "paddle_state/nested");
    assert_ok(a, x.e);
    assert_str(x.s->tensors[0].name, "master_weights.w");
    assert_str(x.s->tensors[1].name, "model.w");
    x = read_file(a, tv_read_paddle_state, "paddle_state/parts");
    assert_ok(a, x.e);
    assert_int_equal(x.s->n_tensors, 1);
    assert_str(x.s->tensors[0].name, "big");
    assert_true(x.s->tensors[0].elements == 12 && x.s->tensors[0].bytes == 48);
    tv_arena_close(a);
}

/* ---- settings ---- */

static void yaml_shares_its_aliases(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_str text;
    const tv_json *doc = NULL;
    assert_ok(a, tv_file_read(a, TV_S(CORPUS "yaml/settings"), 1 << 16, &text));
    assert_ok(a, tv_yaml_parse(a, TV_S("s"), text, &doc));
    const tv_json *one = tv_json_path(doc, "Hpi.backend_configs.paddle_infer.trt_dynamic_shapes");
    const tv_json *two = tv_json_path(doc, "Hpi.backend_configs.tensorrt.dynamic_shapes");
    assert_true(one->n == 1 && one->items == two->items);
    assert_true(tv_json_at(tv_json_at(tv_json_get(one, "x"), 1), 2)->number == 736);
    const tv_json *labels = tv_json_get(doc, "label_list");
    const tv_json_type types[] = {TV_JSON_TRUE, TV_JSON_STRING, TV_JSON_NUMBER, TV_JSON_STRING,
                                  TV_JSON_NULL, TV_JSON_NUMBER, TV_JSON_NUMBER};
    assert_int_equal(labels->n, sizeof types / sizeof *types);
    for (size_t i = 0; i < labels->n; i++)
        assert_int_equal(labels->items[i].type, types[i]);
    assert_true(tv_json_at(labels, 5)->number == 1e-3);
    tv_arena_close(a);
}

/* ---- what is wrong ---- */

static const tv_err *read_pir(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    tv_paddle_program p = {0};
    return tv_read_paddle_pir(g, path, bytes, &p);
}

typedef struct wrong {
    const char *name;
    reader *read;
    const char *id;
    uint64_t offset;
} wrong;

static void wrong_files(void **state)
{
    (void)state;
    static const wrong rows[] = {
        {"paddle_program/self", tv_read_paddle_model, "paddle.block", 24},
        {"paddle_params/cut", tv_read_paddle_parameters, "safetensors.cut-short", 105},
        {"paddle_pir/other_magic", read_pir, "pir.magic", 0},
        {"paddle_state/size", tv_read_paddle_state, "state.size", 132},
        {"paddle_state/empty", tv_read_paddle_state, "state.none", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tv_arena *a = test_arena();
        print_message("# %s\n", rows[i].name);
        wrong_with(read_file(a, rows[i].read, rows[i].name).e, rows[i].id, rows[i].offset);
        tv_arena_close(a);
    }
}

/* Every cut of every good file is an error inside the file, never a program of half a file: only a
 * protobuf message may end between two of its fields. */
static void cut_files(void **state)
{
    (void)state;
    static const wrong rows[] = {
        {"paddle_program/fc", tv_read_paddle_model, NULL, 0},
        {"paddle_params/two", tv_read_paddle_parameters, NULL, 0},
        {"paddle_pir/branches", tv_read_paddle_model, NULL, 0},
        {"paddle_state/bytes", tv_read_paddle_state, NULL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tv_arena *outer = test_arena();
        const got whole = read_file(outer, rows[i].read, rows[i].name);
        size_t read = 0;
        assert_ok(outer, whole.e);
        for (size_t n = 0; n < whole.bytes.n; n++) {
            tv_arena *a = test_arena();
            const got x = read_bytes(a, rows[i].read, TV_S("/nowhere/cut"),
                                     (tv_bytes_view){whole.bytes.p, n});
            read += x.e == NULL;
            assert_true(!x.e || !x.e->has_offset || x.e->offset <= n);
            tv_arena_close(a);
        }
        print_message("# %s: %zu of %zu cuts are read\n", rows[i].name, read, whole.bytes.n);
        assert_true(read <= 1);
        tv_arena_close(outer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_is_read),
        cmocka_unit_test(attributes_of_every_kind),
        cmocka_unit_test(blocks_become_bodies),
        cmocka_unit_test(training_programs_lose_their_backward),
        cmocka_unit_test(records_without_names),
        cmocka_unit_test(records_are_held_to_the_program),
        cmocka_unit_test(lists_are_resolved),
        cmocka_unit_test(regions_become_bodies),
        cmocka_unit_test(arrays_are_listed),
        cmocka_unit_test(yaml_shares_its_aliases),
        cmocka_unit_test(wrong_files),
        cmocka_unit_test(cut_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
