/* The reader of captures: a small one field by field, and broken ones with their errors. */
#include "testing.h"

#include "read/gather.h"

#define HEAD                                                                                       \
    "{\"schema\":\"trivet.capture/1\",\"framework\":\"torch\",\"version\":\"2.1.0\","              \
    "\"train\":true,\"name\":\"Net\",\"batch\":{\"symbol\":\"B\",\"sample\":2,\"run\":2},"         \
    "\"notes\":[\"attention: math\"],"
#define LISTS                                                                                      \
    "\"modules\":[[\"\",\"Net\"],[\"fc\",\"Linear\"]],\"parameters\":[[\"w\",0,1],[\"f\",1,0]],"   \
    "\"buffers\":[[\"b\",2]],\"inputs\":[3],\"outputs\":[6],"                                      \
    "\"operators\":[[\"aten.addmm.default\",[\"self\",\"mat1\",\"mat2\"]],"                        \
    "[\"aten.cat.default\",[\"tensors\"]]],\"regions\":[[3]],"
#define VALUES                                                                                     \
    "\"values\":[[\"f32\",[4,5],0,1],[\"f32\",[5],1],[\"i64\",[],2],[\"f32\",[\"2*B+1\",4],3],"    \
    "[\"f32\",[\"2*B+1\",5],4,1],[\"f32\",[1],5],[\"f32\",[\"4*B+2\",5],6,1]],"
#define OPS                                                                                        \
    "\"ops\":[{\"o\":0,\"i\":[1,3,0],\"p\":[4],\"m\":1,\"s\":[3,0],\"r\":1,\"a\":{\"beta\":1,"     \
    "\"alpha\":0.5,\"dtype\":\"bf16\",\"size\":[\"B\",-1],\"ends\":\"3*B\",\"mode\":\"Big\","      \
    "\"flag\":true,\"pad\":[0,1],\"scale\":[0.5,2]}},"                                             \
    "{\"o\":1,\"i\":[[4,null,5]],\"p\":[6]}]}"

static const tv_err *read_text(tv_arena *a, const char *text, const tv_source **out)
{
    tv_gather g = tv_gather_in(a, TV_S("/nowhere/net.json"));
    const tv_bytes_view bytes = {(const uint8_t *)text, strlen(text)};
    TV_TRY(tv_read_capture(&g, TV_S("net.json"), bytes));
    return tv_gather_done(&g, out);
}

static const tv_program *good(tv_arena *a)
{
    const tv_source *s = NULL;
    assert_ok(a, read_text(a, HEAD LISTS VALUES OPS, &s));
    assert_int_equal(s->kind, TV_SOURCE_PROGRAM);
    assert_true(tv_str_is(s->name, "Net"));
    assert_int_equal(s->n_warnings, 1);
    assert_non_null(s->program);
    return s->program;
}

static void reads_values(void **state)
{
    tv_arena *a = test_arena();
    (void)state;
    const tv_program *p = good(a);
    assert_int_equal(p->dialect, TV_DIALECT_ATEN);
    assert_true(p->training && tv_str_is(p->batch_symbol, "B"));
    assert_true(tv_str_is(p->producer, "torch 2.1.0"));
    assert_int_equal(p->n_values, 7);
    const tv_value *v = p->values;
    assert_true(v[0].role == TV_VALUE_WEIGHT && !v[0].frozen && !v[0].buffer && v[0].grad);
    assert_true(v[1].role == TV_VALUE_WEIGHT && v[1].frozen && !v[1].buffer && !v[1].grad);
    assert_true(v[2].role == TV_VALUE_WEIGHT && v[2].buffer && v[2].rank == 0 && v[2].shaped);
    assert_true(v[3].role == TV_VALUE_INPUT && v[3].dtype == TV_F32 && v[3].grad_known);
    assert_true(v[3].dims[0].size == -1 && tv_str_is(v[3].dims[0].symbol, "2*B+1"));
    assert_int_equal(v[3].dims[1].size, 4);
    assert_int_equal(v[4].role, TV_VALUE_TEMP);
    assert_true(v[5].role == TV_VALUE_WEIGHT && v[5].buffer); /* nobody wrote it */
    assert_int_equal(v[6].storage, 7);
    tv_arena_close(a);
}

static void reads_operators(void **state)
{
    tv_arena *a = test_arena();
    (void)state;
    const tv_program *p = good(a);
    assert_int_equal(p->main->n_nodes, 2);
    const tv_node *n = &p->main->nodes[0];
    assert_true(tv_str_is(n->op, "aten.addmm.default") && tv_str_is(n->name, "fc"));
    assert_int_equal(tv_node_in_slot(n, "mat1", 0), 3);
    assert_int_equal(tv_node_in_slot(n, "mat2", 0), 0);
    assert_true(n->saved_known && n->n_saved == 2 && n->saved[1] == 0);
    assert_int_equal(n->region, 1);
    assert_int_equal(p->n_regions, 1);
    assert_int_equal(p->regions[0].keeps[0], 3);
    n = &p->main->nodes[1];
    assert_int_equal(n->n_input_slots, 1);
    assert_int_equal(tv_node_in_slot(n, "tensors", 1), TV_NO_VALUE);
    assert_int_equal(tv_node_in_slot(n, "tensors", 2), 5);
    assert_true(n->saved_known && n->n_saved == 0 && n->region == 0);
    tv_arena_close(a);
}

static void reads_attributes(void **state)
{
    tv_arena *a = test_arena();
    (void)state;
    const tv_node *n = &good(a)->main->nodes[0];
    assert_int_equal(tv_node_int(n, "beta", 0), 1);
    assert_true(tv_node_float(n, "alpha", 0) == 0.5);
    assert_int_equal(tv_node_attr(n, "dtype")->u.dtype, TV_BF16);
    const tv_attr *size = tv_node_attr(n, "size");
    assert_int_equal(size->kind, TV_ATTR_DIMS);
    assert_true(tv_str_is(size->u.dims[0].symbol, "B") && size->u.dims[1].size == -1);
    assert_int_equal(tv_node_attr(n, "ends")->kind, TV_ATTR_DIMS);
    assert_true(tv_str_is(tv_node_string(n, "mode"), "Big"));
    assert_int_equal(tv_node_int(n, "flag", 0), 1);
    const int64_t *pad = NULL;
    assert_int_equal(tv_node_ints(n, "pad", &pad), 2);
    assert_int_equal(pad[1], 1);
    const tv_attr *scale = tv_node_attr(n, "scale");
    assert_true(scale->kind == TV_ATTR_FLOATS && scale->u.floats[1] == 2);
    tv_arena_close(a);
}

/* Paddle's operators name their results too, and one may be a list or absent. */
static void reads_slots_of_results(void **state)
{
    static const char text[] =
        "{\"schema\":\"trivet.capture/1\",\"framework\":\"paddle\",\"pir\":true,\"train\":false,"
        "\"values\":[[\"f32\",[4,4],0],[\"f32\",[4,2],1],[\"f32\",[4,2],2]],\"modules\":[],"
        "\"parameters\":[],\"buffers\":[],\"inputs\":[0],\"outputs\":[2],"
        "\"operators\":[[\"split\",[\"x\"],[\"mask\",\"out\"]]],"
        "\"ops\":[{\"o\":0,\"i\":[0],\"p\":[null,[1,2]]}]}";
    tv_arena *a = test_arena();
    const tv_source *s = NULL;
    (void)state;
    assert_ok(a, read_text(a, text, &s));
    const tv_node *n = &s->program->main->nodes[0];
    assert_true(s->program->dialect == TV_DIALECT_PADDLE && s->program->pir);
    assert_int_equal(n->n_outputs, 2);
    assert_int_equal(tv_node_out_slot(n, "out", 1), 2);
    assert_int_equal(tv_node_out_slot(n, "mask", 0), TV_NO_VALUE);
    assert_false(n->saved_known);
    tv_arena_close(a);
}

typedef struct broken {
    const char *text;
    const char *id;
} broken;

#define EMPTY_TAIL                                                                                 \
    "\"modules\":[],\"operators\":[],\"ops\":[],\"parameters\":[],\"buffers\":[],\"inputs\":[],"   \
    "\"outputs\":[]"

static const broken broken_ones[] = {
    {"{\"schema\":\"trivet.capture/2\"}", "capture.version"},
    {HEAD "\"values\":[]}", "capture.section"},
    {HEAD "\"values\":{}}", "capture.section"},
    {HEAD "\"values\":[[\"f32\",[1]]]," EMPTY_TAIL "}", "capture.value"},
    {HEAD "\"values\":[[\"f32\",3,0]]," EMPTY_TAIL "}", "capture.shape"},
    {HEAD "\"values\":[[\"f32\",[1,1,1,1,1,1,1,1,1],0]]," EMPTY_TAIL "}", "capture.shape"},
    {HEAD "\"values\":[[\"f32\",[-1],0]]," EMPTY_TAIL "}", "capture.dim"},
    {HEAD "\"values\":[[\"f32\",[1.5],0]]," EMPTY_TAIL "}", "capture.dim"},
    {HEAD LISTS "\"values\":[[\"f32\",[1],0]],\"ops\":[]}", "capture.index"},
    {HEAD LISTS VALUES "\"ops\":[{\"o\":0,\"i\":[9]}]}", "capture.index"},
    {HEAD LISTS VALUES "\"ops\":[{\"o\":0,\"s\":[7]}]}", "capture.index"},
    {HEAD LISTS VALUES "\"ops\":[{\"o\":2}]}", "capture.op"},
    {HEAD LISTS VALUES "\"ops\":[{\"o\":0,\"r\":2}]}", "capture.op"},
    {HEAD LISTS VALUES "\"ops\":[{\"o\":1,\"i\":[1,2]}]}", "capture.arguments"},
    {HEAD LISTS VALUES "\"ops\":[{\"o\":1,\"p\":[3]}]}", "capture.twice"},
    {HEAD LISTS VALUES "\"ops\":[{\"o\":1,\"p\":[4,4]}]}", "capture.twice"},
};

static void says_what_is_broken(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken_ones / sizeof *broken_ones; i++) {
        tv_arena *a = test_arena();
        const tv_source *s = NULL;
        const tv_err *e = read_text(a, broken_ones[i].text, &s);
        if (!e || strcmp(e->what.id, broken_ones[i].id) != 0)
            fail_msg("case %zu: %s, want %s", i, e ? e->what.id : "read", broken_ones[i].id);
        tv_arena_close(a);
    }
}

/* No cut reads past the end or is taken for the whole. */
static void cuts_fail(void **state)
{
    static const char text[] = HEAD LISTS VALUES OPS;
    (void)state;
    for (size_t n = 0; n + 1 < sizeof text - 1; n++) {
        tv_arena *a = test_arena();
        char cut[sizeof text];
        memcpy(cut, text, n);
        cut[n] = 0;
        const tv_source *s = NULL;
        assert_non_null(read_text(a, cut, &s));
        tv_arena_close(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_values),     cmocka_unit_test(reads_operators),
        cmocka_unit_test(reads_attributes), cmocka_unit_test(says_what_is_broken),
        cmocka_unit_test(cuts_fail),        cmocka_unit_test(reads_slots_of_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
