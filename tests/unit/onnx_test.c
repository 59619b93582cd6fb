/* ONNX: models put together by hand, one construct each, and damage with its id. The collection of
 * real files is held in onnx_facts_test.c. */
#include "testing.h"

#include "base/json.h"
#include "codec/wire.h"
#include "read/gather.h"

/* ---- writing messages ---- */

static tv_arena *arena; /* of the running test */

static tv_str text_of(const tv_buf *b)
{
    return tv_str_copy(arena, tv_buf_str(b));
}

static void put_varint(tv_buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        tv_putc(b, (char)((v & 0x7f) | 0x80));
    tv_putc(b, (char)v);
}

/* A number's field. */
static tv_str num(unsigned field, int64_t v)
{
    tv_buf b = tv_buf_in(arena);
    put_varint(&b, field << 3);
    put_varint(&b, (uint64_t)v);
    return text_of(&b);
}

/* A field of bytes, a text or a message. */
static tv_str msg(unsigned field, tv_str s)
{
    tv_buf b = tv_buf_in(arena);
    put_varint(&b, field << 3 | 2);
    put_varint(&b, s.n);
    tv_put(&b, s);
    return text_of(&b);
}

static tv_str txt(unsigned field, const char *s)
{
    return msg(field, tv_str_of(s));
}

static tv_str f32(unsigned field, float v)
{
    tv_buf b = tv_buf_in(arena);
    put_varint(&b, field << 3 | 5);
    tv_put(&b, (tv_str){(const char *)&v, 4});
    return text_of(&b);
}

#define CAT(...) cat((const tv_str[]){__VA_ARGS__, {NULL, 1}})
static tv_str cat(const tv_str *parts)
{
    tv_buf b = tv_buf_in(arena);
    for (; parts->p || parts->n == 0; parts++)
        tv_put(&b, *parts);
    return text_of(&b);
}

static tv_str dims_of(const char *dims)
{
    tv_str out = TV_S("");
    for (tv_cut c = tv_str_cut(tv_str_of(dims), ' '); c.head.n; c = tv_str_cut(c.tail, ' '))
        out = CAT(out, num(1, (int64_t)tv_str_u64(c.head).v));
    return out;
}

/* A ValueInfoProto with a tensor type: dims are numbers, names, "-1", "?" (neither) or NULL. */
static tv_str value(const char *name, int type, const char *dims)
{
    tv_str shape = TV_S("");
    for (tv_cut c = tv_str_cut(tv_str_of(dims ? dims : ""), ' '); c.head.n;
         c = tv_str_cut(c.tail, ' ')) {
        const tv_u64_read n = tv_str_u64(c.head);
        tv_str dim = TV_S("");
        if (n.ok)
            dim = num(1, (int64_t)n.v);
        else if (tv_str_is(c.head, "-1"))
            dim = num(1, -1);
        else if (!tv_str_is(c.head, "?"))
            dim = msg(2, c.head);
        shape = CAT(shape, msg(1, dim));
    }
    const tv_str tensor = CAT(num(1, type), dims ? msg(2, shape) : TV_S(""));
    return CAT(txt(1, name), msg(2, msg(1, tensor)));
}

static tv_str names(unsigned field, const char *list)
{
    tv_str out = TV_S("");
    for (tv_cut c = tv_str_cut(tv_str_of(list), ' '); c.head.n; c = tv_str_cut(c.tail, ' '))
        out = CAT(out, msg(field, tv_str_is(c.head, "-") ? TV_S("") : c.head));
    return out;
}

/* A NodeProto as a field of a graph; "-" is an operand that is not given. */
static tv_str node(const char *op, const char *in, const char *out, tv_str attrs)
{
    return msg(1, CAT(names(1, in), names(2, out), txt(4, op), attrs));
}

static tv_str attr(const char *name, int type, tv_str fields)
{
    return msg(5, CAT(txt(1, name), fields, type ? num(20, type) : TV_S("")));
}

/* An initializer with raw data of that many zeros. */
static tv_str weight(const char *name, int type, const char *dims, size_t bytes)
{
    char *zeros = tv_new(arena, char, bytes + 1);
    return msg(5, CAT(dims_of(dims), num(2, type), txt(8, name), msg(9, (tv_str){zeros, bytes})));
}

static tv_str model_with(tv_str graph, tv_str more)
{
    return CAT(num(1, 8), txt(2, "pytorch"), txt(3, "2.1"), msg(7, CAT(txt(2, "g"), graph)),
               msg(8, CAT(txt(1, ""), num(2, 17))), more);
}

static tv_str model(tv_str graph)
{
    return model_with(graph, TV_S(""));
}

static const tv_err *read_bytes(tv_str path, tv_str bytes, const tv_source **s)
{
    tv_gather g = tv_gather_in(arena, path);
    const tv_bytes_view view = {(const unsigned char *)bytes.p, bytes.n};
    TV_TRY(tv_read_onnx(&g, path, view));
    return tv_gather_done(&g, s);
}

static const tv_source *read_model(tv_str bytes)
{
    const tv_source *s = NULL;
    assert_ok(arena, read_bytes(TV_S("m.onnx"), bytes, &s));
    assert_non_null(s->program);
    return s;
}

static int open_arena(void **state)
{
    (void)state;
    arena = test_arena();
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    tv_arena_close(arena);
    return 0;
}

static bool warned(const tv_source *s, const char *id)
{
    for (size_t i = 0; i < s->n_warnings; i++)
        if (strcmp(s->warnings[i].id, id) == 0)
            return true;
    return false;
}

static const tv_tensor *tensor_named(const tv_source *s, const char *name)
{
    for (size_t i = 0; i < s->n_tensors; i++)
        if (tv_str_is(s->tensors[i].name, name))
            return &s->tensors[i];
    fail_msg("no tensor \"%s\"", name);
    return NULL;
}

/* ---- graphs ---- */

static void a_graph_becomes_a_program(void **state)
{
    (void)state;
    const tv_source *s = read_model(
        model(CAT(node("Conv", "x w -", "y", attr("pads", 7, msg(8, TV_S("\x01\x02")))),
                  node("Relu", "y", "z", TV_S("")), weight("w", 1, "4 3 1 1", 48),
                  msg(11, value("x", 1, "batch 3 ? -1")), msg(11, value("w", 1, "4 3 1 1")),
                  msg(12, value("z", 1, NULL)), msg(13, value("y", 1, "batch 4 0 8")))));
    const tv_program *p = s->program;
    assert_int_equal(s->kind, TV_SOURCE_PROGRAM);
    assert_int_equal(p->dialect, TV_DIALECT_ONNX);
    assert_str(p->producer, "pytorch 2.1");
    assert_int_equal(p->n_opsets, 1);
    assert_int_equal(p->opsets[0].version, 17);
    assert_int_equal(p->main->n_inputs, 1); /* the weight is none */
    const tv_value *x = &p->values[p->main->inputs[0]];
    assert_int_equal(x->role, TV_VALUE_INPUT);
    assert_int_equal(x->dtype, TV_F32);
    assert_int_equal(x->rank, 4);
    assert_str(x->dims[0].symbol, "batch");
    assert_true(x->dims[0].size < 0 && x->dims[2].size < 0 && x->dims[3].size < 0);
    assert_int_equal(x->dims[1].size, 3);
    assert_int_equal(p->main->n_nodes, 2);
    const tv_node *conv = &p->main->nodes[0];
    assert_str(conv->op, "Conv");
    assert_int_equal(conv->n_inputs, 3);
    assert_int_equal(conv->inputs[2], TV_NO_VALUE);
    const int64_t *pads = NULL;
    assert_int_equal(tv_node_ints(conv, "pads", &pads), 2);
    assert_int_equal(pads[1], 2);
    const tv_value *w = &p->values[conv->inputs[1]];
    assert_int_equal(w->role, TV_VALUE_WEIGHT);
    assert_int_equal(w->data.n, 48);
    const tv_value *y = &p->values[conv->outputs[0]];
    assert_int_equal(y->dims[2].size, 0);
    const tv_value *z = &p->values[p->main->outputs[0]];
    assert_false(z->shaped);
    assert_int_equal(z->dtype, TV_F32);
    assert_int_equal(p->main->nodes[1].outputs[0], p->main->outputs[0]);
    assert_int_equal(s->n_tensors, 1);
    assert_int_equal(s->tensors[0].bytes, 48);
    assert_int_equal(s->n_warnings, 0);
}

static void attributes_of_every_kind(void **state)
{
    (void)state;
    const tv_str tensor = CAT(num(1, 2), num(2, 7), msg(7, TV_S("\x05\x06")));
    const tv_str type = msg(1, CAT(num(1, 10), msg(2, msg(1, num(1, 9)))));
    const tv_source *s = read_model(model(CAT(
        node("Op", "", "y",
             CAT(attr("f", 1, f32(2, 0.5f)), attr("i", 2, num(3, -4)), attr("zero", 2, TV_S("")),
                 attr("s", 3, txt(4, "hi")), attr("t", 4, msg(5, tensor)),
                 attr("fs", 6, CAT(f32(7, 1), f32(7, 2))), attr("is", 7, CAT(num(8, 1), num(8, 2))),
                 attr("ss", 8, CAT(txt(9, "a"), txt(9, "b"))),
                 attr("ts", 9, CAT(msg(10, tensor), msg(10, tensor))),
                 attr("tp", 13, msg(14, type)), attr("none", 7, TV_S("")),
                 attr("untyped", 0, num(3, 7)),
                 attr("gs", 10, CAT(msg(11, txt(2, "one")), msg(11, txt(2, "two")))))),
        msg(12, value("y", 1, NULL)))));
    const tv_program *p = s->program;
    const tv_node *n = &p->main->nodes[0];
    assert_close(tv_node_float(n, "f", 0), 0.5, 0);
    assert_int_equal(tv_node_int(n, "i", 0), -4);
    assert_int_equal(tv_node_int(n, "zero", 9), 0);
    assert_int_equal(tv_node_int(n, "untyped", 0), 7);
    assert_str(tv_node_string(n, "s"), "hi");
    const tv_attr *t = tv_node_attr(n, "t");
    assert_int_equal(t->kind, TV_ATTR_VALUE);
    const tv_value *kept = &p->values[t->u.value];
    assert_int_equal(kept->data.n, 16);
    assert_int_equal(kept->data.p[8], 6);
    assert_int_equal(tv_node_attr(n, "fs")->kind, TV_ATTR_FLOATS);
    assert_close(tv_node_attr(n, "fs")->u.floats[1], 2, 0);
    const int64_t *v = NULL;
    assert_int_equal(tv_node_ints(n, "is", &v), 2);
    assert_int_equal(v[1], 2);
    assert_int_equal(tv_node_attr(n, "none")->kind, TV_ATTR_INTS);
    assert_int_equal(tv_node_attr(n, "none")->n, 0);
    assert_int_equal(tv_node_attr(n, "ss")->kind, TV_ATTR_STRINGS);
    assert_str(tv_node_attr(n, "ss")->u.strings[1], "b");
    assert_int_equal(tv_node_attr(n, "ts")->kind, TV_ATTR_VALUES);
    assert_int_equal(tv_node_attr(n, "ts")->n, 2);
    const tv_value *tp = &p->values[tv_node_attr(n, "tp")->u.value];
    assert_int_equal(tp->dtype, TV_F16);
    assert_int_equal(tp->dims[0].size, 9);
    assert_int_equal(tv_node_attr(n, "gs")->kind, TV_ATTR_BODIES);
    assert_str(tv_node_attr(n, "gs")->u.bodies[1]->name, "two");
}

/* Inner graphs read outer values, hide outer names, and hold weights of their own. */
static void subgraphs_see_what_is_around_them(void **state)
{
    (void)state;
    const tv_str inner =
        CAT(txt(2, "then"), node("Add", "x w", "a", TV_S("")), node("Mul", "a y", "b", TV_S("")),
            weight("w", 1, "2", 8), msg(11, value("x", 1, "2")), msg(12, value("b", 1, NULL)));
    const tv_str hiding = CAT(txt(2, "else"), node("Neg", "w", "x", TV_S("")),
                              weight("w", 1, "2", 8), msg(12, value("x", 1, NULL)));
    const tv_source *s = read_model(model(CAT(
        node("Relu", "x", "y", TV_S("")),
        node("If", "c", "z",
             CAT(attr("then_branch", 5, msg(6, inner)), attr("else_branch", 5, msg(6, hiding)))),
        msg(11, value("x", 1, "2")), msg(11, value("c", 9, "")), msg(12, value("z", 1, "2")))));
    const tv_program *p = s->program;
    const tv_node *branch = &p->main->nodes[1];
    const tv_body *then_body = tv_node_attr(branch, "then_branch")->u.body;
    const tv_body *else_body = tv_node_attr(branch, "else_branch")->u.body;
    assert_int_equal(then_body->nodes[0].inputs[0], p->main->inputs[0]);
    assert_int_equal(then_body->n_inputs, 0); /* a branch is given nothing */
    assert_int_equal(then_body->nodes[1].inputs[1], p->main->nodes[0].outputs[0]);
    assert_int_equal(else_body->outputs[0], else_body->nodes[0].outputs[0]);
    assert_int_not_equal(else_body->outputs[0], p->main->inputs[0]);
    assert_int_equal(s->n_tensors, 2);
    (void)tensor_named(s, "w");
    (void)tensor_named(s, "w#2");
    assert_close(tv_json_num(tv_json_get(s->metadata, "subgraphs"), 0), 2, 0);
    assert_close(tv_json_num(tv_json_get(s->metadata, "n_subgraph_nodes"), 0), 3, 0);
    assert_close(tv_json_num(tv_json_get(s->metadata, "subgraph_initializer_elements"), 0), 4, 0);
}

static void local_functions_have_parameters(void **state)
{
    (void)state;
    const tv_str ref = msg(5, CAT(txt(1, "alpha"), num(20, 1), txt(21, "slope")));
    const tv_str function = CAT(
        txt(1, "Act"), names(4, "in"), names(5, "out"), names(6, "slope"),
        msg(7, CAT(names(1, "in"), names(2, "out"), txt(4, "LeakyRelu"), ref)), msg(9, num(2, 17)),
        txt(10, "my"), msg(11, CAT(txt(1, "beta"), num(20, 2), num(3, 3))), txt(13, "v2"));
    const tv_str call =
        msg(1, CAT(names(1, "x"), names(2, "y"), txt(4, "Act"), txt(7, "my"), txt(8, "v2")));
    const tv_source *s =
        read_model(model_with(CAT(call, msg(11, value("x", 1, "2")), msg(12, value("y", 1, "2"))),
                              CAT(msg(8, CAT(txt(1, "my"), num(2, 1))), msg(25, function))));
    const tv_program *p = s->program;
    assert_int_equal(p->n_functions, 1);
    const tv_function *f = &p->functions[0];
    assert_str(f->name, "Act:v2");
    assert_str(p->main->nodes[0].op, "Act:v2");
    assert_str(p->main->nodes[0].domain, "my");
    assert_int_equal(f->n_attributes, 1);
    assert_str(f->attributes[0], "slope");
    assert_int_equal(f->n_defaults, 1);
    assert_int_equal(f->defaults[0].u.i, 3);
    const tv_attr *alpha = tv_node_attr(&f->body->nodes[0], "alpha");
    assert_int_equal(alpha->kind, TV_ATTR_REF);
    assert_str(alpha->u.s, "slope");
    assert_int_equal(f->body->n_inputs, 1);
    assert_int_equal(p->values[f->body->inputs[0]].role, TV_VALUE_TEMP);
    assert_int_equal(s->n_warnings, 0);
}

static void unsorted_nodes_are_sorted(void **state)
{
    (void)state;
    const tv_str body =
        CAT(txt(2, "b"), node("Add", "d x", "e", TV_S("")), msg(12, value("e", 1, NULL)));
    const tv_source *s = read_model(model(CAT(
        node("Neg", "b", "c", TV_S("")), node("If", "k", "z", attr("then_branch", 5, msg(6, body))),
        node("Abs", "a", "b", TV_S("")), node("Exp", "x", "a", TV_S("")),
        node("Log", "c", "d", TV_S("")), msg(11, value("x", 1, "2")), msg(11, value("k", 9, "")),
        msg(12, value("z", 1, "2")))));
    static const char *const order[] = {"Exp", "Abs", "Neg", "Log", "If"};
    assert_true(warned(s, "onnx.unsorted"));
    for (size_t i = 0; i < 5; i++)
        assert_str(s->program->main->nodes[i].op, order[i]);
}

static void modules_are_named(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"/layer1/layer1.0/conv1/Conv", "layer1.0.conv1"},
        {"/features/features.0/features.0.0/Conv", "features.0.0"},
        {"/encoder/layer.10/attention/MatMul", "encoder.layer.10.attention"},
        {"/layer1/layer10/Conv", "layer1.layer10"},
        {"/Add_1", "/Add_1"},
        {"Conv_0", "Conv_0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tv_source *s =
            read_model(model(CAT(node("Neg", "x", "y", txt(3, rows[i][0])),
                                 msg(11, value("x", 1, "2")), msg(12, value("y", 1, "2")))));
        assert_str(s->program->main->nodes[0].name, rows[i][1]);
    }
    const tv_str scopes =
        msg(9, CAT(txt(1, "pkg.torch.onnx.name_scopes"),
                   txt(2, "['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d_3']")));
    const tv_source *s =
        read_model(model(CAT(node("Neg", "x", "y", CAT(txt(3, "n"), scopes)),
                             msg(11, value("x", 1, "2")), msg(12, value("y", 1, "2")))));
    assert_str(s->program->main->nodes[0].name, "layer1.0.conv1");
}

/* ---- tensors ---- */

typedef struct type_case {
    int number;
    tv_dtype dtype;
    uint64_t bytes; /* of five elements */
    unsigned field; /* where its numbers may stand, 0: raw only */
    unsigned numbers;
} type_case;

static const type_case types[] = {
    {1, TV_F32, 20, 4, 5},         {2, TV_U8, 5, 5, 5},           {3, TV_I8, 5, 5, 5},
    {4, TV_U16, 10, 5, 5},         {5, TV_I16, 10, 5, 5},         {6, TV_I32, 20, 5, 5},
    {7, TV_I64, 40, 7, 5},         {9, TV_BOOL, 5, 5, 5},         {10, TV_F16, 10, 5, 5},
    {11, TV_F64, 40, 10, 5},       {12, TV_U32, 20, 11, 5},       {13, TV_U64, 40, 11, 5},
    {14, TV_C64, 40, 4, 10},       {15, TV_C128, 80, 10, 10},     {16, TV_BF16, 10, 5, 5},
    {17, TV_F8_E4M3, 5, 5, 5},     {18, TV_F8_E4M3FNUZ, 5, 5, 5}, {19, TV_F8_E5M2, 5, 5, 5},
    {20, TV_F8_E5M2FNUZ, 5, 5, 5}, {21, TV_U4, 3, 5, 3},          {22, TV_I4, 3, 5, 3},
    {23, TV_F4, 3, 5, 3},          {24, TV_F8_E8M0, 5, 5, 5},     {25, TV_U2, 2, 5, 2},
    {26, TV_I2, 2, 5, 2},          {27, TV_F6_E2M3, 4, 5, 5},     {28, TV_F6_E3M2, 4, 5, 5},
};

/* Numbers 1, 2, 3 ... in the field where that type has them. */
static tv_str typed(const type_case *t)
{
    tv_buf packed = tv_buf_in(arena);
    for (unsigned i = 1; i <= t->numbers; i++) {
        const float f = (float)i;
        const double d = i;
        if (t->field == 4)
            tv_put(&packed, (tv_str){(const char *)&f, 4});
        else if (t->field == 10)
            tv_put(&packed, (tv_str){(const char *)&d, 8});
        else
            put_varint(&packed, i);
    }
    return msg(t->field, text_of(&packed));
}

static void every_element_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const type_case *t = &types[i];
        const tv_str head = CAT(num(1, 5), num(2, t->number));
        const tv_str raw = weight("raw", t->number, "5", t->bytes);
        const tv_source *s =
            read_model(model(CAT(raw, msg(5, CAT(head, txt(8, "typed"), typed(t))))));
        const tv_tensor *r = tensor_named(s, "raw"), *n = tensor_named(s, "typed");
        print_message("# %d\n", t->number);
        assert_int_equal(r->dtype, t->dtype);
        assert_int_equal(r->bytes, t->bytes);
        assert_int_equal(n->bytes, t->bytes);
        assert_int_equal(n->elements, 5);
        assert_int_equal(s->n_warnings, 0);
        for (size_t k = 0; k < s->program->n_values; k++) {
            const tv_value *v = &s->program->values[k];
            const bool six = t->number > 26; /* its numbers are packed otherwise: not kept */
            if (tv_str_is(v->name, "typed") && !six)
                assert_int_equal(v->data.n, t->bytes);
        }
    }
}

static const tv_value *value_named(const tv_source *s, const char *name)
{
    for (size_t i = 0; i < s->program->n_values; i++)
        if (tv_str_is(s->program->values[i].name, name))
            return &s->program->values[i];
    fail_msg("no value \"%s\"", name);
    return NULL;
}

static void contents_of_few_elements_are_kept(void **state)
{
    (void)state;
    static const char minus[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    const tv_source *s = read_model(
        model(CAT(msg(5, CAT(num(1, 1), num(2, 6), txt(8, "i32"), msg(5, (tv_str){minus, 10}))),
                  msg(5, CAT(num(1, 1), num(2, 16), txt(8, "bf16"), msg(5, TV_S("\x80\x7f")))),
                  msg(5, CAT(num(1, 1), num(2, 1), txt(8, "f32"), f32(4, 1.5f))),
                  weight("many", 1, "5000", 20000))));
    assert_memory_equal(value_named(s, "i32")->data.p, "\xff\xff\xff\xff", 4);
    assert_memory_equal(value_named(s, "bf16")->data.p, "\x80\x3f", 2);
    assert_memory_equal(value_named(s, "f32")->data.p, "\x00\x00\xc0\x3f", 4);
    assert_int_equal(value_named(s, "many")->data.n, 0);
    assert_int_equal(tensor_named(s, "many")->bytes, 20000);
}

static void odd_tensors_are_told(void **state)
{
    (void)state;
    const tv_str empty = msg(5, CAT(num(1, 7), num(1, 3), num(2, 1), txt(8, "none")));
    const tv_str strings =
        msg(5, CAT(num(1, 2), num(2, 8), txt(8, "s"), txt(6, "ab"), txt(6, "c")));
    const tv_source *s =
        read_model(model(CAT(empty, strings, weight("odd", 99, "2", 6), weight("scalar", 1, "", 4),
                             weight("zero", 1, "0 4", 0))));
    assert_true(warned(s, "onnx.weightless"));
    assert_true(warned(s, "onnx.unknown-type"));
    assert_int_equal(tensor_named(s, "none")->bytes, 84);
    assert_int_equal(tensor_named(s, "odd")->bytes, 6);
    assert_str(tensor_named(s, "odd")->dtype_text, "type 99");
    assert_int_equal(tensor_named(s, "s")->bytes, 3);
    assert_int_equal(tensor_named(s, "scalar")->elements, 1);
    assert_int_equal(tensor_named(s, "zero")->elements, 0);
}

static void sparse_tensors_keep_their_shape(void **state)
{
    (void)state;
    const tv_str values = CAT(num(1, 2), num(2, 1), txt(8, "w"), f32(4, 1), f32(4, 2));
    const tv_str indices = CAT(num(1, 2), num(2, 7), msg(7, TV_S("\x01\x04")));
    const tv_str sparse = CAT(msg(1, values), msg(2, indices), num(3, 2), num(3, 3));
    const tv_source *s = read_model(model(
        CAT(msg(15, sparse), node("Neg", "w", "y", TV_S("")), msg(12, value("y", 1, "2 3")))));
    assert_int_equal(tensor_named(s, "w")->elements, 6);
    assert_int_equal(tensor_named(s, "w")->bytes, 8 + 16);
    assert_int_equal(value_named(s, "w")->role, TV_VALUE_WEIGHT);
}

/* Constants that hold weights are tensors, numbers that the graph reckons with are not. */
static void constants_hold_weights(void **state)
{
    (void)state;
    char zeros[40] = {0};
    const tv_str w = CAT(num(1, 10), num(2, 1), msg(9, (tv_str){zeros, 40}));
    const tv_str shape = CAT(num(1, 4), num(2, 7), msg(7, TV_S("\x01\x02\x03\x04")));
    const tv_source *s =
        read_model(model(CAT(node("Constant", "", "w", attr("value", 4, msg(5, w))),
                             node("Constant", "", "shape", attr("value", 4, msg(5, shape))),
                             node("Constant", "", "one", attr("value_float", 1, f32(2, 1))),
                             node("Constant", "", "ints", attr("value_ints", 7, num(8, 3))),
                             msg(12, value("w", 1, "10")))));
    assert_int_equal(s->n_tensors, 1);
    assert_str(s->tensors[0].name, "w");
    assert_close(tv_json_num(tv_json_get(s->metadata, "constant_nodes"), 0), 4, 0);
    assert_close(tv_json_num(tv_json_get(s->metadata, "constant_elements"), 0), 14, 0);
}

static void running_statistics_are_buffers(void **state)
{
    (void)state;
    const tv_source *s = read_model(model(CAT(
        node("BatchNormalization", "x scale b mean var", "y", TV_S("")), weight("scale", 1, "2", 8),
        weight("b", 1, "2", 8), weight("mean", 1, "2", 8), weight("var", 1, "2", 8),
        weight("ids", 7, "9", 72), msg(11, value("x", 1, "1 2")), msg(12, value("y", 1, "1 2")))));
    assert_false(value_named(s, "scale")->buffer);
    assert_false(value_named(s, "b")->buffer);
    assert_true(value_named(s, "mean")->buffer);
    assert_true(value_named(s, "var")->buffer);
    assert_true(value_named(s, "ids")->buffer);
}

static void types_of_sequences_and_maps(void **state)
{
    (void)state;
    const tv_str tensor = msg(1, CAT(num(1, 10), msg(2, msg(1, num(1, 3)))));
    const tv_source *s =
        read_model(model(CAT(msg(11, CAT(txt(1, "list"), msg(2, msg(4, msg(1, tensor))))),
                             msg(11, CAT(txt(1, "maybe"), msg(2, msg(9, msg(1, tensor))))),
                             msg(11, CAT(txt(1, "map"), msg(2, msg(5, num(1, 7))))))));
    assert_true(value_named(s, "list")->list);
    assert_int_equal(value_named(s, "list")->dims[0].size, 3);
    assert_false(value_named(s, "maybe")->list);
    assert_int_equal(value_named(s, "maybe")->dtype, TV_F16);
    assert_str(value_named(s, "map")->dtype_text, "map");
}

/* ---- external data ---- */

static tv_str external(const char *name, const char *dims, const char *location, const char *offset,
                       const char *length)
{
    tv_str entries = msg(13, CAT(txt(1, "location"), txt(2, location)));
    if (offset)
        entries = CAT(entries, msg(13, CAT(txt(1, "offset"), txt(2, offset))));
    if (length)
        entries = CAT(entries, msg(13, CAT(txt(1, "length"), txt(2, length))));
    return msg(5, CAT(dims_of(dims), num(2, 1), txt(8, name), entries, num(14, 1)));
}

static void external_data_is_found(void **state)
{
    (void)state;
    const tv_str path = TV_S(TEST_BUILD "/external.onnx");
    char zeros[100] = {0};
    zeros[16] = 9;
    assert_ok(arena, tv_file_write(arena, TV_S(TEST_BUILD "/external.bin"), (tv_str){zeros, 100}));
    const tv_source *s = NULL;
    assert_ok(arena, read_bytes(path,
                                model(CAT(external("a", "4", "external.bin", "16", "16"),
                                          external("b", "21", "./external.bin", "16", NULL),
                                          external("c", "3 3", "absent.bin", NULL, "36"))),
                                &s));
    assert_int_equal(s->n_files, 3); /* the graph, and one file under two names */
    const tv_tensor *a = tensor_named(s, "a");
    assert_int_equal(a->offset, 16);
    assert_true(tv_str_ends(s->files[a->file].path, TV_S("external.bin")));
    assert_int_equal(value_named(s, "a")->data.p[0], 9);
    assert_int_equal(tensor_named(s, "c")->bytes, 36);
    assert_int_equal(tensor_named(s, "c")->file, 0);
    assert_true(warned(s, "onnx.external-absent"));
    assert_close(tv_json_num(tv_json_get(s->metadata, "external"), 0), 3, 0);
}

static void external_data_that_cannot_be(void **state)
{
    (void)state;
    static const struct {
        const char *dims, *location, *offset, *length, *id;
    } cases[] = {
        {"4", "../external.bin", NULL, NULL, "onnx.external-outside"},
        {"4", "/etc/passwd", NULL, NULL, "onnx.external-outside"},
        {"4", "", NULL, NULL, "onnx.external-outside"},
        {"4", "a/../../b", NULL, NULL, "onnx.external-outside"},
        {"4", "external.bin", "96", "16", "onnx.external-short"},
        {"4", "external.bin", "18446744073709551615", NULL, "onnx.external-short"},
        {"4", "external.bin", "0", "20", "onnx.tensor-size"},
        {"4", "external.bin", "-1", NULL, "onnx.external-number"},
        {"4", "external.bin", "0", "x", "onnx.external-number"},
    };
    char zeros[100] = {0};
    assert_ok(arena, tv_file_write(arena, TV_S(TEST_BUILD "/external.bin"), (tv_str){zeros, 100}));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tv_source *s = NULL;
        const tv_err *e = read_bytes(TV_S(TEST_BUILD "/external.onnx"),
                                     model(external("w", cases[i].dims, cases[i].location,
                                                    cases[i].offset, cases[i].length)),
                                     &s);
        print_message("# %s %s\n", cases[i].location, cases[i].id);
        assert_non_null(e);
        assert_string_equal(e->what.id, cases[i].id);
        assert_int_equal(e->code, TV_INPUT);
    }
}

/* ---- damage ---- */

static void refused(tv_str bytes, const char *id)
{
    const tv_source *s = NULL;
    const tv_err *e = read_bytes(TV_S("m.onnx"), bytes, &s);
    print_message("# %s\n", id);
    assert_non_null(e);
    assert_string_equal(e->what.id, id);
}

static void what_no_runtime_takes_is_refused(void **state)
{
    (void)state;
    const tv_str x = msg(11, value("x", 1, "2"));
    refused(num(1, 8), "onnx.no-graph");
    refused(CAT(num(1, 8), txt(7, ""), txt(7, "")), "onnx.two-graphs");
    refused(model(node("Neg", "nothing", "y", TV_S(""))), "onnx.undefined");
    refused(model(CAT(x, node("Neg", "x", "y", TV_S("")), node("Abs", "x", "y", TV_S("")))),
            "onnx.assigned-twice");
    refused(model(CAT(x, node("Neg", "x", "x", TV_S("")))), "onnx.assigned-twice");
    refused(model(CAT(x, node("", "x", "y", TV_S("")))), "onnx.no-operator");
    refused(model(msg(12, value("y", 1, "2"))), "onnx.no-output");
    refused(model(CAT(node("Neg", "b", "a", TV_S("")), node("Abs", "a", "b", TV_S("")))),
            "onnx.cycle");
    refused(model(node("Neg", "a", "a", TV_S(""))), "onnx.cycle");
    refused(model(CAT(weight("w", 1, "2", 8), weight("w", 1, "2", 8))), "onnx.stored-twice");
    refused(model(weight("", 1, "2", 8)), "onnx.nameless");
    refused(model(weight("w", 1, "2", 9)), "onnx.tensor-size");
    refused(model(msg(5, CAT(num(1, 2), num(2, 1), txt(8, "w"), f32(4, 1)))), "onnx.tensor-size");
    refused(model(msg(5, CAT(num(1, -2), num(2, 1), txt(8, "w")))), "onnx.negative-dim");
    refused(model(msg(5, CAT(num(1, INT64_MAX), num(1, 3), num(2, 1), txt(8, "w")))),
            "onnx.shape-overflow");
    refused(model(weight("w", 1, "1 1 1 1 1 1 1 1 1", 4)), "onnx.rank");
}

static void graphs_within_graphs_are_bounded(void **state)
{
    (void)state;
    tv_str graph = CAT(txt(2, "g"), TV_S(""));
    for (int i = 0; i < TV_LIMIT_WIRE_DEPTH / 3 + 1; i++)
        graph = CAT(txt(2, "g"), node("Op", "", "y", attr("body", 5, msg(6, graph))));
    refused(model(graph), "wire.too-deep");
}

/* Every cut of a model is an answer or an error, never more. */
static void every_cut_is_an_error(void **state)
{
    (void)state;
    const tv_str whole =
        model(CAT(node("Conv", "x w", "y", attr("pads", 7, msg(8, TV_S("\x01\x02")))),
                  weight("w", 1, "4 3", 48), msg(11, value("x", 1, "batch 3")),
                  msg(12, value("y", 1, NULL))));
    for (size_t n = 0; n < whole.n; n++) {
        const tv_source *s = NULL;
        const tv_err *e = read_bytes(TV_S("m.onnx"), tv_str_copy(arena, tv_str_take(whole, n)), &s);
        assert_true(e || s->program->main->n_nodes == 1);
    }
    refused(tv_str_take(whole, whole.n / 2), "onnx.broken");
}

static void what_runs_anyway_is_a_warning(void **state)
{
    (void)state;
    const tv_str x = msg(11, value("x", 1, "2"));
    const tv_str graph = CAT(
        x, x, node("Neg", "x", "y", txt(3, "same")),
        msg(1, CAT(names(1, "y"), names(2, "z"), txt(3, "same"), txt(4, "Op"), txt(7, "other"))));
    const tv_source *s = NULL;
    assert_ok(arena,
              read_bytes(TV_S("m.onnx"), CAT(num(1, 99), msg(7, graph), msg(20, TV_S(""))), &s));
    assert_true(warned(s, "onnx.no-opset"));
    assert_true(warned(s, "onnx.no-name"));
    assert_true(warned(s, "onnx.declared-twice"));
    assert_true(warned(s, "onnx.named-twice"));
    assert_true(warned(s, "onnx.ir-version"));
    assert_true(warned(s, "onnx.training"));
    assert_int_equal(s->program->main->n_inputs, 1);
    s = read_model(model(graph));
    assert_true(warned(s, "onnx.domain"));
}

/* The k-th allocation fails, for every k: the guard is reached each time. */
static bool read_with_fault(const char *path, uint64_t k)
{
    jmp_buf landing;
    tv_arena *a = test_arena();
    volatile bool spent = false;
    if (setjmp(landing) == 0) {
        const tv_source *s = NULL;
        tv_arena_guard(a, &landing);
        tv_arena_fail_at(a, k);
        assert_null(tv_read_model(a, tv_str_of(path), &s));
    } else {
        spent = true;
    }
    tv_arena_close(a);
    return spent;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "tests/fuzz/corpus/onnx/branches.onnx", "tests/fuzz/corpus/onnx/functions.onnx",
        "tests/fuzz/corpus/onnx/unsorted.onnx", "tests/fuzz/corpus/onnx/types.onnx",
        "tests/fuzz/corpus/onnx/externals.onnx"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        uint64_t k = 1;
        while (read_with_fault(paths[i], k))
            k++;
        assert_true(k > 10);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_arena, close_arena)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_graph_becomes_a_program),
        TEST(attributes_of_every_kind),
        TEST(subgraphs_see_what_is_around_them),
        TEST(local_functions_have_parameters),
        TEST(unsorted_nodes_are_sorted),
        TEST(modules_are_named),
        TEST(every_element_type),
        TEST(contents_of_few_elements_are_kept),
        TEST(odd_tensors_are_told),
        TEST(sparse_tensors_keep_their_shape),
        TEST(constants_hold_weights),
        TEST(running_statistics_are_buffers),
        TEST(types_of_sequences_and_maps),
        TEST(external_data_is_found),
        TEST(external_data_that_cannot_be),
        TEST(what_no_runtime_takes_is_refused),
        TEST(graphs_within_graphs_are_bounded),
        TEST(every_cut_is_an_error),
        TEST(what_runs_anyway_is_a_warning),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
