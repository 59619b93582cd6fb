/* Programs built by hand, run for their shapes: what each node becomes, what is assumed, what is
 * refused. */
#include "testing.h"

#include "family/program_run.h"
#include "read/reader.h"

/* ---- a small builder ---- */

#define MOST 64

typedef struct graph {
    tv_arena *a;
    tv_value values[MOST];
    tv_node nodes[MOST];
    uint32_t inputs[MOST], outputs[MOST];
    tv_body main;
    tv_opset opset;
    tv_program p;
} graph;

static graph *graph_open(tv_arena *a, int64_t opset)
{
    graph *g = tv_new(a, graph, 1);
    g->a = a;
    g->opset = (tv_opset){.version = opset};
    g->main = (tv_body){.inputs = g->inputs, .outputs = g->outputs, .nodes = g->nodes};
    g->p = (tv_program){.dialect = TV_DIALECT_ONNX,
                        .values = g->values,
                        .main = &g->main,
                        .opsets = &g->opset,
                        .n_opsets = 1};
    return g;
}

/* dims: numbers and names, "2,seq,16". */
static void set_dims(graph *g, tv_value *v, const char *dims)
{
    tv_dim *d = tv_new(g->a, tv_dim, TV_LIMIT_RANK);
    tv_cut cut = {.tail = tv_str_of(dims)};
    while (cut.tail.n) {
        cut = tv_str_cut(cut.tail, ',');
        tv_u64_read n = tv_str_u64(cut.head);
        d[v->rank++] =
            n.ok ? (tv_dim){.size = (int64_t)n.v} : (tv_dim){.size = -1, .symbol = cut.head};
    }
    v->dims = d;
    v->shaped = true;
}

static uint32_t value(graph *g, const char *name, tv_value_role role, tv_dtype dtype,
                      const char *dims)
{
    uint32_t i = (uint32_t)g->p.n_values++;
    g->values[i] = (tv_value){.name = tv_str_of(name), .role = role, .dtype = dtype};
    if (dims)
        set_dims(g, &g->values[i], dims);
    return i;
}

static uint32_t input(graph *g, const char *name, tv_dtype dtype, const char *dims)
{
    uint32_t v = value(g, name, TV_VALUE_INPUT, dtype, dims);
    g->inputs[g->main.n_inputs++] = v;
    return v;
}

static uint32_t weight(graph *g, const char *name, const char *dims)
{
    return value(g, name, TV_VALUE_WEIGHT, TV_F32, dims);
}

static uint32_t whole_numbers(graph *g, const int64_t *v, size_t n)
{
    tv_buf b = tv_buf_in(g->a);
    tv_put_u64(&b, n);
    uint32_t made = value(g, "constant", TV_VALUE_WEIGHT, TV_I64, tv_cstr(g->a, tv_buf_str(&b)));
    int64_t *copy = tv_new(g->a, int64_t, n);
    memcpy(copy, v, n * sizeof *copy);
    g->values[made].data = (tv_bytes_view){(const unsigned char *)copy, n * sizeof *copy};
    return made;
}

/* One output, named after the operator. */
static uint32_t node(graph *g, const char *op, const uint32_t *in, size_t n_in,
                     const tv_attr *attrs, size_t n_attrs)
{
    uint32_t out = value(g, op, TV_VALUE_TEMP, TV_DTYPE_UNKNOWN, NULL);
    uint32_t *operands = tv_new(g->a, uint32_t, n_in + 1);
    if (n_in)
        memcpy(operands, in, n_in * sizeof *operands);
    operands[n_in] = out;
    tv_attr *copy = tv_new(g->a, tv_attr, n_attrs + 1);
    if (n_attrs)
        memcpy(copy, attrs, n_attrs * sizeof *copy);
    g->nodes[g->main.n_nodes++] = (tv_node){.op = tv_str_of(op),
                                            .inputs = operands,
                                            .n_inputs = n_in,
                                            .outputs = &operands[n_in],
                                            .n_outputs = 1,
                                            .attrs = copy,
                                            .n_attrs = n_attrs};
    return out;
}

#define NODE(g, op, ...)                                                                           \
    node((g), (op), (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4,  \
         NULL, 0)

static void output(graph *g, uint32_t v)
{
    g->outputs[g->main.n_outputs++] = v;
}

static tv_attr ints(const char *name, size_t n, const int64_t *v)
{
    return (tv_attr){.name = tv_str_of(name), .kind = TV_ATTR_INTS, .n = n, .u.ints = v};
}

static tv_attr one(const char *name, int64_t v)
{
    return (tv_attr){.name = tv_str_of(name), .kind = TV_ATTR_INT, .u.i = v};
}

static tv_attr body(const char *name, const tv_body *b)
{
    return (tv_attr){.name = tv_str_of(name), .kind = TV_ATTR_BODY, .u.body = b};
}

static const tv_run *run_with(graph *g, tv_run_sizes sizes)
{
    const tv_run *run = NULL;
    assert_ok(g->a, tv_program_run(g->a, &g->p, &sizes, &run));
    return run;
}

static const tv_run *run(graph *g)
{
    return run_with(g, (tv_run_sizes){0});
}

static void assert_out(const tv_run *r, size_t i, const char *want)
{
    const tv_shape *s = &r->values[r->outputs[i]].shape;
    char got[128] = "";
    for (uint32_t k = 0; k < s->rank; k++)
        (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s%lld", k ? "," : "",
                       (long long)s->d[k]);
    assert_string_equal(got, want);
}

static const tv_step *step_of(const tv_run *r, tv_step_kind kind)
{
    for (size_t i = 0; i < r->n_steps; i++)
        if (r->steps[i].kind == kind)
            return &r->steps[i];
    return NULL;
}

static bool warns(const tv_run *r, const char *id)
{
    for (size_t i = 0; i < r->n_warnings; i++)
        if (strcmp(r->warnings[i].id, id) == 0)
            return true;
    return false;
}

static void assert_refused(graph *g, const char *id)
{
    const tv_run *r = NULL;
    const tv_err *e = tv_program_run(g->a, &g->p, &(tv_run_sizes){0}, &r);
    assert_non_null(e);
    for (; e->cause; e = e->cause)
        ;
    assert_string_equal(e->what.id, id);
}

/* ---- sizes ---- */

static graph *convolution(tv_arena *a, const char *dims)
{
    graph *g = graph_open(a, 17);
    uint32_t x = input(g, "image", TV_F32, dims);
    uint32_t w = weight(g, "w", "64,3,7,7");
    static const int64_t strides[] = {2, 2};
    static const int64_t pads[] = {3, 3, 3, 3};
    const tv_attr attrs[] = {ints("strides", 2, strides), ints("pads", 4, pads)};
    output(g, node(g, "Conv", (uint32_t[]){x, w}, 2, attrs, 2));
    return g;
}

static void images_take_their_sizes(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    graph *g = convolution(a, "N,3,height,width");
    const tv_run *r = run(g);
    assert_out(r, 0, "1,64,112,112");
    assert_true(r->has_image && !r->has_seq && warns(r, "program.assumed"));
    const tv_step *conv = step_of(r, TV_STEP_CONV);
    assert_non_null(conv);
    assert_close(conv->u.conv.positions, 112 * 112, 0);
    assert_close(conv->u.conv.kernel, 49, 0);
    r = run_with(g, (tv_run_sizes){.batch = 8, .image_h = 320, .image_w = 256});
    assert_out(r, 0, "8,64,160,128");
    assert_int_equal(r->n_warnings, 0);
    /* Stated sizes give way to asked ones. */
    r = run_with(convolution(a, "1,3,224,224"), (tv_run_sizes){.batch = 4, .image_h = 128});
    assert_out(r, 0, "4,64,64,64");
    assert_false(r->batch_fixed);
    tv_arena_close(a);
}

static void symbols_hold_one_value(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    graph *g = graph_open(a, 17);
    uint32_t ids = input(g, "input_ids", TV_I64, "batch,sequence_length");
    uint32_t mask = input(g, "mask", TV_F32, "batch,past_len + sequence_length");
    uint32_t past = input(g, "past_key", TV_F32, "batch,4,past_len,16");
    uint32_t table = weight(g, "table", "1000,32");
    output(g, NODE(g, "Gather", table, ids));
    output(g, NODE(g, "Neg", mask));
    output(g, NODE(g, "Neg", past));
    const tv_run *r = run_with(g, (tv_run_sizes){.batch = 2, .seq = 10, .past = 6});
    assert_out(r, 0, "2,10,32");
    assert_out(r, 1, "2,16");
    assert_out(r, 2, "2,4,6,16");
    assert_true(r->has_seq && r->has_past);
    const tv_step *gather = step_of(r, TV_STEP_GATHER);
    assert_true(gather && gather->u.gather.embedding);
    tv_arena_close(a);
}

/* Flattens to a stated [2, 3072]: no batch but 2 fits the product behind it. */
static void a_written_batch_is_told(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    graph *g = graph_open(a, 17);
    uint32_t x = input(g, "image", TV_F32, "2,3,32,32");
    uint32_t shape = whole_numbers(g, (int64_t[]){2, 3072}, 2);
    uint32_t flat = NODE(g, "Reshape", x, shape);
    uint32_t left = weight(g, "left", "10,2");
    output(g, NODE(g, "MatMul", left, flat));
    const tv_run *r = run_with(g, (tv_run_sizes){.batch = 6});
    assert_true(r->batch_fixed);
    assert_close(r->batch_stated, 2, 0);
    assert_out(r, 0, "10,3072");
    assert_true(warns(r, "program.batch-fixed"));
    /* The reshape alone survives: its leading 2 is the batch. */
    g->main.n_outputs = 0;
    g->main.n_nodes = 1;
    output(g, flat);
    r = run_with(g, (tv_run_sizes){.batch = 6});
    assert_false(r->batch_fixed);
    assert_out(r, 0, "6,3072");
    tv_arena_close(a);
}

/* ---- contents ---- */

/* Shape -> Gather -> Mul -> Concat -> Reshape: as exporters write a flatten. */
static void shapes_are_reckoned_on_the_host(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    graph *g = graph_open(a, 17);
    uint32_t x = input(g, "x", TV_F32, "batch,12,seq,64");
    uint32_t shape = NODE(g, "Shape", x);
    uint32_t batch = NODE(g, "Gather", shape, whole_numbers(g, (int64_t[]){0}, 1));
    uint32_t seq = NODE(g, "Gather", shape, whole_numbers(g, (int64_t[]){2}, 1));
    uint32_t rows = NODE(g, "Mul", batch, seq);
    uint32_t width = whole_numbers(g, (int64_t[]){768}, 1);
    const tv_attr axis[] = {one("axis", 0)};
    uint32_t target = node(g, "Concat", (uint32_t[]){rows, width}, 2, axis, 1);
    output(g, NODE(g, "Reshape", x, target));
    const tv_run *r = run_with(g, (tv_run_sizes){.batch = 3, .seq = 5});
    assert_out(r, 0, "15,768");
    /* Nothing but the view is left for the GPU. */
    assert_int_equal(r->n_steps, 1);
    assert_int_equal(r->steps[0].kind, TV_STEP_VIEW);
    tv_arena_close(a);
}

static void weights_stay_weights(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    graph *g = graph_open(a, 17);
    uint32_t x = input(g, "x", TV_F32, "batch,16");
    uint32_t w = weight(g, "w", "32,16");
    uint32_t scaled = NODE(g, "Mul", w, weight(g, "scale", "32,1"));
    uint32_t turned = NODE(g, "Transpose", w);
    output(g, NODE(g, "MatMul", x, turned));
    output(g, NODE(g, "MatMul", NODE(g, "Relu", x), NODE(g, "Transpose", scaled)));
    const tv_run *r = run(g);
    assert_int_equal(r->n_steps, 3); /* two products and the activation */
    const tv_step *first = step_of(r, TV_STEP_MATMUL);
    const tv_run_value *operand = &r->values[first->in[1]];
    assert_true(operand->constant && operand->weight != TV_NO_VALUE);
    assert_str(r->values[operand->weight].from->name, "w");
    tv_arena_close(a);
}

/* ---- order, branches, loops, functions ---- */

static void nodes_are_put_in_order(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    graph *g = graph_open(a, 17);
    uint32_t x = input(g, "x", TV_F32, "batch,4");
    uint32_t y = NODE(g, "Relu", x);
    uint32_t z = NODE(g, "Neg", y);
    output(g, NODE(g, "Add", z, y));
    tv_node last = g->nodes[0];
    g->nodes[0] = g->nodes[2];
    g->nodes[2] = last;
    const tv_run *r = run(g);
    assert_int_equal(r->n_steps, 3);
    assert_int_equal(r->steps[0].kind, TV_STEP_UNARY);
    assert_int_equal(r->steps[2].kind, TV_STEP_BINARY);
    /* The first reads what the last writes and the other way round. */
    uint32_t *operand = tv_new(a, uint32_t, 1);
    operand[0] = g->outputs[0];
    g->nodes[2].inputs = operand;
    assert_refused(g, "program.circle");
    tv_arena_close(a);
}

static void a_missing_operand_is_an_error(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    graph *g = graph_open(a, 17);
    uint32_t x = input(g, "x", TV_F32, "batch,4");
    uint32_t nobody = value(g, "nobody", TV_VALUE_TEMP, TV_F32, "1,4");
    output(g, NODE(g, "Add", x, nobody));
    assert_refused(g, "program.unwritten");
    tv_arena_close(a);
    a = test_arena();
    g = graph_open(a, 17);
    x = input(g, "x", TV_F32, "batch,4");
    output(g, NODE(g, "MatMul", x, weight(g, "w", "5,4")));
    assert_refused(g, "program.matmul");
    tv_arena_close(a);
}

/* A branch that squares and one that multiplies by a matrix. */
static void the_dearer_branch_counts(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    graph *g = graph_open(a, 17);
    uint32_t x = input(g, "x", TV_F32, "batch,4");
    uint32_t flag = input(g, "flag", TV_BOOL, "");
    uint32_t cheap = NODE(g, "Relu", x);
    uint32_t dear = NODE(g, "MatMul", x, weight(g, "w", "4,4"));
    const tv_body yes = {.outputs = &cheap, .n_outputs = 1, .nodes = &g->nodes[0], .n_nodes = 1};
    const tv_body no = {.outputs = &dear, .n_outputs = 1, .nodes = &g->nodes[1], .n_nodes = 1};
    const tv_attr attrs[] = {body("then_branch", &yes), body("else_branch", &no)};
    output(g, node(g, "If", &flag, 1, attrs, 2));
    g->main.nodes = &g->nodes[2];
    g->main.n_nodes = 1;
    const tv_run *r = run(g);
    assert_true(warns(r, "program.branch"));
    assert_int_equal(r->n_steps, 1);
    assert_int_equal(r->steps[0].kind, TV_STEP_MATMUL);
    tv_arena_close(a);
}

static void loops_run_as_often_as_stated(void **state)
{
    (void)state;
    static const double asked[] = {0, 5};
    for (size_t i = 0; i < 4; i++) {
        tv_arena *a = test_arena();
        graph *g = graph_open(a, 17);
        uint32_t x = input(g, "x", TV_F32, "batch,4");
        uint32_t inner[3] = {value(g, "i", TV_VALUE_INPUT, TV_I64, ""),
                             value(g, "go", TV_VALUE_INPUT, TV_BOOL, ""),
                             value(g, "h", TV_VALUE_INPUT, TV_F32, NULL)};
        uint32_t h = NODE(g, "MatMul", inner[2], weight(g, "w", "4,4"));
        uint32_t out[3] = {inner[1], h, h};
        const tv_body b = {.inputs = inner,
                           .n_inputs = 3,
                           .outputs = out,
                           .n_outputs = 3,
                           .nodes = g->nodes,
                           .n_nodes = 1};
        const tv_attr attrs[] = {body("body", &b)};
        uint32_t count =
            i < 2 ? whole_numbers(g, (int64_t[]){7}, 1) : input(g, "trips", TV_I64, "");
        uint32_t last = node(g, "Loop", (uint32_t[]){count, TV_NO_VALUE, x}, 3, attrs, 1);
        uint32_t all = value(g, "all", TV_VALUE_TEMP, TV_F32, NULL);
        uint32_t *outs = tv_new(a, uint32_t, 2);
        outs[0] = last;
        outs[1] = all;
        g->nodes[1].outputs = outs;
        g->nodes[1].n_outputs = 2;
        g->main.nodes = &g->nodes[1];
        g->main.n_nodes = 1;
        output(g, last);
        output(g, all);
        const tv_run *r = run_with(g, (tv_run_sizes){.trips = asked[i % 2]});
        double want = i < 2 ? 7 : i == 3 ? 5 : 1;
        assert_close(step_of(r, TV_STEP_MATMUL)->times, want, 0);
        assert_int_equal(warns(r, "program.trips"), i == 2);
        assert_out(r, 0, "1,4");
        assert_out(r, 1, i < 2 ? "7,1,4" : i == 3 ? "5,1,4" : "1,1,4");
        tv_arena_close(a);
    }
}

/* Called twice, with a different attribute each time. */
static void functions_take_the_calls_attributes(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    graph *g = graph_open(a, 17);
    uint32_t formal = value(g, "formal", TV_VALUE_INPUT, TV_F32, NULL);
    const tv_attr refers[] = {{.name = TV_S("perm"), .kind = TV_ATTR_REF, .u.s = TV_S("order")}};
    uint32_t inner = node(g, "Transpose", &formal, 1, refers, 1);
    const tv_body b = {.inputs = &formal,
                       .n_inputs = 1,
                       .outputs = &inner,
                       .n_outputs = 1,
                       .nodes = g->nodes,
                       .n_nodes = 1};
    const tv_function f = {.domain = TV_S("own"), .name = TV_S("Turn"), .body = &b};
    g->p.functions = &f;
    g->p.n_functions = 1;
    uint32_t x = input(g, "x", TV_F32, "2,3,4");
    const int64_t order[] = {0, 2, 1};
    const tv_attr given[] = {ints("order", 3, order)};
    uint32_t y = node(g, "Turn", &x, 1, given, 1);
    uint32_t z = node(g, "Turn", &y, 1, NULL, 0);
    g->nodes[1].domain = g->nodes[2].domain = TV_S("own");
    output(g, y);
    output(g, z);
    g->main.nodes = &g->nodes[1];
    g->main.n_nodes = 2;
    const tv_run *r = run(g);
    assert_out(r, 0, "2,4,3");
    assert_out(r, 1, "3,4,2");
    assert_int_equal(r->n_steps, 2);
    tv_arena_close(a);
}

/* ---- operators without a rule ---- */

static void the_unknown_is_named(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    graph *g = graph_open(a, 17);
    uint32_t x = input(g, "x", TV_F32, "batch,4");
    uint32_t y = NODE(g, "Mystery", x);
    uint32_t z = NODE(g, "Mystery", y);
    set_dims(g, &g->values[z], "batch,9");
    g->nodes[0].domain = g->nodes[1].domain = TV_S("my.ops");
    output(g, y);
    output(g, z);
    const tv_run *r = run_with(g, (tv_run_sizes){.batch = 3});
    assert_int_equal(r->n_unknown, 1);
    assert_str(r->unknown[0].op, "my.ops.Mystery");
    assert_int_equal(r->unknown[0].n, 2);
    assert_out(r, 0, "3,4"); /* as its operand */
    assert_out(r, 1, "3,9"); /* as the program states */
    assert_true(r->values[r->outputs[0]].guessed);
    tv_arena_close(a);
}

/* ---- ONNX Runtime's operators ---- */

typedef struct contributed {
    const char *op;
    const char *in[8];  /* sizes; "-": not given; a leading w: a weight */
    const char *out[4]; /* sizes of the outputs */
    const char *attrs;  /* "num_heads=4,k=2" */
    const char *steps;  /* kinds of the steps, one letter each: see letters */
} contributed;

/* As their documentation states them: github.com/microsoft/onnxruntime, docs/ContribOperators.md.
 */
static const contributed contributed_cases[] = {
    {"SkipLayerNormalization",
     {"2,7,32", "2,7,32", "w32", "w32", "w32"},
     {"2,7,32", "2,7,1", "2,7,1", "2,7,32"},
     "",
     "++n"},
    {"SkipSimplifiedLayerNormalization", {"2,7,32", "2,7,32", "w32"}, {"2,7,32"}, "", "+n"},
    {"SimplifiedLayerNormalization", {"2,7,32", "w32"}, {"2,7,32"}, "", "n"},
    {"EmbedLayerNormalization",
     {"2,7", "2,7", "w100,32", "w16,32", "w2,32", "w32", "w32"},
     {"2,7,32", "2", "2,7,32"},
     "",
     "g+g+n"},
    {"BiasGelu", {"2,7,32", "w32"}, {"2,7,32"}, "", "+u"},
    {"FastGelu", {"2,7,32"}, {"2,7,32"}, "", "u"},
    {"BiasSplitGelu", {"2,7,64", "w64"}, {"2,7,32"}, "", "+vu*"},
    {"FusedMatMul", {"2,8,7", "2,8,5"}, {"2,7,5"}, "transA=1", "m"},
    {"FusedConv", {"1,3,8,8", "w4,3,3,3", "w4", "1,4,6,6"}, {"1,4,6,6"}, "", "c+"},
    {"NhwcConv", {"1,8,8,3", "w4,3,3,3"}, {"1,6,6,4"}, "", "c"},
    {"GroupNorm", {"1,8,8,32", "w32", "w32"}, {"1,8,8,32"}, "groups=4,activation=1", "nu"},
    {"Attention", {"2,7,32", "w32,96", "w96"}, {"2,7,32", "2,2,4,7,8"}, "num_heads=4", "ma"},
    {"Attention",
     {"2,7,32", "w32,96", "w96", "-", "2,2,4,5,8"},
     {"2,7,32", "2,2,4,12,8"},
     "num_heads=4",
     "ma"},
    {"MultiHeadAttention",
     {"2,7,32", "2,9,32", "2,9,48"},
     {"2,7,48", "2,4,9,8", "2,4,9,12"},
     "num_heads=4",
     "a"},
    {"MultiHeadAttention", {"2,7,4,3,8"}, {"2,7,32"}, "num_heads=4", "a"},
    {"GroupQueryAttention",
     {"2,7,32", "2,7,16", "2,7,16", "2,2,5,8", "2,2,5,8"},
     {"2,7,32", "2,2,12,8", "2,2,12,8"},
     "num_heads=4,kv_num_heads=2",
     "a"},
    {"GroupQueryAttention", {"2,7,64"}, {"2,7,32"}, "num_heads=4,kv_num_heads=2", "a"},
    {"RotaryEmbedding", {"2,7,32", "2,7", "w16,4", "w16,4"}, {"2,7,32"}, "", "*"},
    {"MatMulNBits", {"2,7,64", "w48,2,16", "w96"}, {"2,7,48"}, "K=64,N=48,bits=4", "m"},
    {"MoE", {"14,32", "14,8", "w8,64,32", "-", "w8,32,64"}, {"14,32"}, "k=2", "mm"},
    {"QuickGelu", {"2,7,32"}, {"2,7,32"}, "", "u"},
    {"Rfft", {"2,16"}, {"2,9,2"}, "", "s"},
    {"Irfft", {"2,9,2"}, {"2,16"}, "", "s"},
};

static char letter_of(const tv_step *s)
{
    static const char letters[TV_STEP_KIND_COUNT] = {
        [TV_STEP_VIEW] = 'v',   [TV_STEP_COPY] = 'k',    [TV_STEP_UNARY] = 'u',
        [TV_STEP_MATMUL] = 'm', [TV_STEP_CONV] = 'c',    [TV_STEP_NORM] = 'n',
        [TV_STEP_GATHER] = 'g', [TV_STEP_ROUTE] = 'r',   [TV_STEP_ATTENTION] = 'a',
        [TV_STEP_SCAN] = 's',   [TV_STEP_UNKNOWN] = '?',
    };
    if (s->kind == TV_STEP_BINARY)
        return s->u.binary.product ? '*' : '+';
    return letters[s->kind] ? letters[s->kind] : '!';
}

static size_t read_attrs(const char *text, tv_attr *attrs)
{
    size_t n = 0;
    tv_cut rest = {.tail = tv_str_of(text)};
    while (rest.tail.n) {
        rest = tv_str_cut(rest.tail, ',');
        const tv_cut pair = tv_str_cut(rest.head, '=');
        attrs[n++] = (tv_attr){
            .name = pair.head, .kind = TV_ATTR_INT, .u.i = (int64_t)tv_str_u64(pair.tail).v};
    }
    return n;
}

static void run_contributed(const contributed *c)
{
    tv_arena *a = test_arena();
    graph *g = graph_open(a, 17);
    uint32_t in[8];
    size_t n = 0;
    for (; n < 8 && c->in[n]; n++) {
        bool stored = c->in[n][0] == 'w';
        /* Ids are whole numbers where the operator looks rows up. */
        tv_dtype dtype = strncmp(c->op, "Embed", 5) == 0 && n < 2 ? TV_I64 : TV_F32;
        in[n] = *c->in[n] == '-' ? TV_NO_VALUE
                : stored         ? weight(g, "w", c->in[n] + 1)
                                 : input(g, "x", dtype, c->in[n]);
    }
    tv_attr attrs[8];
    (void)node(g, c->op, in, n, attrs, read_attrs(c->attrs, attrs));
    uint32_t outs[4];
    size_t n_outs = 0;
    for (; n_outs < 4 && c->out[n_outs]; n_outs++) {
        outs[n_outs] = value(g, "y", TV_VALUE_TEMP, TV_F32, NULL);
        output(g, outs[n_outs]);
    }
    g->nodes[0].domain = TV_S("com.microsoft");
    g->nodes[0].outputs = outs;
    g->nodes[0].n_outputs = n_outs;
    const tv_run *r = run(g);
    char steps[32] = "";
    for (size_t i = 0; i < r->n_steps && i < sizeof steps - 1; i++)
        steps[i] = letter_of(&r->steps[i]);
    if (strcmp(steps, c->steps) != 0)
        fail_msg("%s became %s, not %s", c->op, steps, c->steps);
    for (size_t i = 0; i < n_outs; i++)
        assert_out(r, i, c->out[i]);
    tv_arena_close(a);
}

static void contributed_operators_run(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof contributed_cases / sizeof *contributed_cases; i++)
        run_contributed(&contributed_cases[i]);
}

/* ---- real files ---- */

/* What cannot run, and why: inputs without any shape; a product that no sizes make fit (the
 * package's own runtime refuses it too). */
static const char *const unfit[] = {"attention.onnx", "multi_device_attention_head.onnx"};

static bool is_unfit(tv_str name)
{
    for (size_t i = 0; i < sizeof unfit / sizeof *unfit; i++)
        if (tv_str_is(name, unfit[i]))
            return true;
    return false;
}

static void run_file(tv_str path, tv_str name)
{
    tv_arena *a = test_arena();
    const tv_source *source = NULL;
    const tv_run *r = NULL;
    assert_ok(a, tv_read_model(a, path, &source));
    assert_non_null(source->program);
    const tv_err *e = tv_program_run(a, source->program, &(tv_run_sizes){0}, &r);
    if (is_unfit(name))
        assert_non_null(e);
    else
        assert_ok(a, e);
    tv_arena_close(a);
}

static void collected_files_run(void **state)
{
    (void)state;
    static const char *const folders[] = {"burn", "light", "node", "npm", "trt"};
    const char *shared = test_shared("models/MANIFEST.jsonl");
    if (!shared)
        return;
    tv_arena *a = test_arena();
    tv_str root = tv_path_join(a, tv_path_folder(tv_str_of(shared)), TV_S("onnx"));
    size_t n = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        tv_dir dir = {0};
        tv_str folder = tv_path_join(a, root, tv_str_of(folders[i]));
        assert_ok(a, tv_dir_list(a, folder, &dir));
        for (size_t k = 0; k < dir.n; k++)
            if (tv_str_ends(dir.v[k].name, TV_S(".onnx"))) {
                run_file(tv_path_join(a, folder, dir.v[k].name), dir.v[k].name);
                n++;
            }
    }
    print_message("%zu files\n", n);
    assert_true(n >= 70);
    tv_arena_close(a);
}

/* ---- the tables ---- */

static void rules_are_many_and_unique(void **state)
{
    (void)state;
    size_t standard = 0;
    size_t others = 0;
    for (size_t t = 0; tv_rule_tables[t]; t++) {
        const tv_rule_table *x = tv_rule_tables[t];
        if (x->dialect == TV_DIALECT_ONNX)
            *(*x->domain ? &others : &standard) += x->n;
        for (size_t i = 0; i < x->n; i++)
            for (size_t u = t; tv_rule_tables[u]; u++)
                for (size_t k = u == t ? i + 1 : 0; k < tv_rule_tables[u]->n; k++)
                    if (tv_rule_tables[u]->dialect == x->dialect &&
                        strcmp(tv_rule_tables[u]->domain, x->domain) == 0 &&
                        strcmp(tv_rule_tables[u]->rules[k].op, x->rules[i].op) == 0)
                        fail_msg("%s has two rules", x->rules[i].op);
    }
    print_message("ONNX: %zu operators of the standard, %zu of other domains\n", standard, others);
    assert_true(standard >= 190);
    assert_true(others >= 75);
}

static void rules_are_documented(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_str doc = {0};
    assert_ok(a, tv_file_read(a, TV_S("docs/operators.md"), (size_t)1 << 20, &doc));
    for (size_t t = 0; tv_rule_tables[t]; t++)
        for (size_t i = 0;
             tv_rule_tables[t]->dialect != TV_DIALECT_PADDLE && i < tv_rule_tables[t]->n; i++) {
            tv_buf b = tv_buf_in(a);
            tv_putc(&b, '`');
            tv_puts(&b, tv_rule_tables[t]->rules[i].op);
            tv_putc(&b, '`');
            if (!tv_str_has(doc, tv_buf_str(&b)))
                fail_msg("docs/operators.md does not name %s", tv_rule_tables[t]->rules[i].op);
        }
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_take_their_sizes),
        cmocka_unit_test(symbols_hold_one_value),
        cmocka_unit_test(a_written_batch_is_told),
        cmocka_unit_test(shapes_are_reckoned_on_the_host),
        cmocka_unit_test(weights_stay_weights),
        cmocka_unit_test(nodes_are_put_in_order),
        cmocka_unit_test(a_missing_operand_is_an_error),
        cmocka_unit_test(the_dearer_branch_counts),
        cmocka_unit_test(loops_run_as_often_as_stated),
        cmocka_unit_test(functions_take_the_calls_attributes),
        cmocka_unit_test(the_unknown_is_named),
        cmocka_unit_test(contributed_operators_run),
        cmocka_unit_test(collected_files_run),
        cmocka_unit_test(rules_are_many_and_unique),
        cmocka_unit_test(rules_are_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
