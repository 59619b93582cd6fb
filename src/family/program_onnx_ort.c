/* ONNX Runtime's contributed operators (com.microsoft): fused arithmetic, norms, products. */
#include "program_onnx.h"

/* ---- activations that follow something ---- */

static bool act_named(tv_str name, tv_fn *fn)
{
    static const struct {
        const char *name;
        tv_fn fn;
    } acts[] = {
        {"Relu", TV_FN_RELU},           {"Sigmoid", TV_FN_SIGMOID},
        {"Tanh", TV_FN_TANH},           {"LeakyRelu", TV_FN_LEAKY_RELU},
        {"Clip", TV_FN_CLIP},           {"HardSigmoid", TV_FN_HARDSIGMOID},
        {"HardSwish", TV_FN_HARDSWISH}, {"Elu", TV_FN_ELU},
        {"Softplus", TV_FN_SOFTPLUS},   {"Gelu", TV_FN_GELU},
        {"FastGelu", TV_FN_GELU_TANH},  {"relu", TV_FN_RELU},
        {"gelu", TV_FN_GELU},           {"silu", TV_FN_SILU},
        {"swiglu", TV_FN_SILU},
    };
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (tv_str_is(name, acts[i].name)) {
            *fn = acts[i].fn;
            return true;
        }
    return false;
}

static const tv_err *activated(tv_running *r, const tv_node *n, const char *attr, uint32_t x,
                               uint32_t *y)
{
    tv_fn fn = TV_FN_RELU;
    *y = x;
    if (!act_named(tv_node_string(n, attr), &fn))
        return NULL;
    return tv_rule_fn(r, (tv_fn_call){.fn = fn, .inplace = true}, x, y);
}

static const tv_err *with_bias(tv_running *r, uint32_t x, uint32_t bias, uint32_t *y)
{
    *y = x;
    if (bias == TV_NO_VALUE)
        return NULL;
    return tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, x, bias, y);
}

/* x (+ bias), then a function: one kernel. */
static const tv_err *bias_act(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = TV_NO_VALUE;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, tv_run_in(r, n, 0)));
    TV_TRY(with_bias(r, tv_run_in(r, n, 0), tv_run_in(r, n, 1), &x));
    TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = (tv_fn)rule->arg}, x, &y));
    return tv_opset_done(r, n, y);
}

/* The width halves: one half gates the other. */
static const tv_err *bias_split_gelu(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, tv_run_in(r, n, 0)));
    TV_TRY(with_bias(r, tv_run_in(r, n, 0), tv_run_in(r, n, 1), &x));
    const tv_shape *s = tv_run_shape(r, x);
    if (!s->rank || s->d[s->rank - 1] % 2)
        return tv_run_fail_shapes(r, "program.blocks", N_("{x} does not divide into blocks"), s,
                                  NULL);
    int64_t half = s->d[s->rank - 1] / 2;
    uint32_t parts[2];
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_split(r, -1, (int64_t[]){half, half}, 2, true, x, parts));
    TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = TV_FN_GELU}, parts[1], &parts[1]));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MUL}, parts[0], parts[1], &y));
    return tv_opset_done(r, n, y);
}

/* x + bias (+ residual) */
static const tv_err *bias_add(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_many(r, TV_FN2_ADD, false, tv_opset_operands(r, n), n->n_inputs, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *bias_softmax(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = TV_NO_VALUE;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, tv_run_in(r, n, 0)));
    TV_TRY(with_bias(r, tv_run_in(r, n, 0), tv_run_in(r, n, 1), &x));
    TV_TRY(tv_rule_softmax(r, false, -1, x, &y));
    return tv_opset_done(r, n, y);
}

/* x, bias, residual, ratio */
static const tv_err *bias_dropout(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, tv_run_in(r, n, 0)));
    TV_TRY(with_bias(r, tv_run_in(r, n, 0), tv_run_in(r, n, 1), &x));
    if (tv_run_training(r))
        TV_TRY(tv_rule_dropout(r, tv_run_scalar(r, tv_run_in(r, n, 3), 0.5), x, &x));
    if (tv_node_out(n, 1) != TV_NO_VALUE)
        tv_run_out(r, n, 1, tv_run_make(r, TV_BOOL, tv_run_shape(r, x)));
    TV_TRY(with_bias(r, x, tv_run_in(r, n, 2), &x));
    return tv_opset_done(r, n, x);
}

/* ---- norms ---- */

enum { SKIP_LAYER, SKIP_RMS };

/* x + skip (+ bias), then a norm; the sum may be put out for the next residual. */
static const tv_err *skip_norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t sum = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, tv_run_in(r, n, 0)));
    TV_TRY(with_bias(r, tv_run_in(r, n, 0), tv_run_in(r, n, 1), &sum));
    bool rms = rule->arg == SKIP_RMS;
    TV_TRY(with_bias(r, sum, tv_run_in(r, n, rms ? 3 : 4), &sum));
    const tv_shape *s = tv_run_shape(r, sum);
    tv_norm_call call = {.kind = rms ? TV_NORM_RMS_FUSED : TV_NORM_LAYER,
                         .axis = s->rank ? s->rank - 1 : 0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_norm(r, &call, sum, tv_run_in(r, n, 2), rms ? TV_NO_VALUE : tv_run_in(r, n, 3),
                        &y));
    tv_shape rows = *s;
    if (rows.rank)
        rows.d[rows.rank - 1] = 1;
    for (size_t i = 1; i < 3; i++)
        if (tv_node_out(n, i) != TV_NO_VALUE)
            tv_run_out(r, n, i, tv_run_make(r, TV_F32, &rows));
    tv_run_out(r, n, 3, sum);
    return tv_opset_done(r, n, y);
}

static const tv_err *simple_norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    tv_norm_call call = {.kind = TV_NORM_RMS_FUSED};
    if (!tv_shape_axis(tv_node_int(n, "axis", -1), s->rank, &call.axis))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), s, NULL);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_norm(r, &call, x, tv_run_in(r, n, 1), TV_NO_VALUE, &y));
    tv_shape rows = *s;
    for (uint32_t i = call.axis; i < rows.rank; i++)
        rows.d[i] = 1;
    if (tv_node_out(n, 1) != TV_NO_VALUE)
        tv_run_out(r, n, 1, tv_run_make(r, TV_F32, &rows));
    return tv_opset_done(r, n, y);
}

/* Channels last unless said otherwise; then SiLU where `activation` is 1. The skip form adds first
 * and puts the sum out. */
static const tv_err *group_norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    if (rule->arg) {
        TV_TRY(with_bias(r, x, tv_run_in(r, n, 3), &x));
        TV_TRY(with_bias(r, x, tv_run_in(r, n, 4), &x));
        tv_run_out(r, n, 1, x);
    }
    tv_norm_call call = {.kind = TV_NORM_GROUP,
                         .groups = tv_node_int(n, "groups", 1),
                         .channels_last = tv_node_int(n, "channels_last", 1) != 0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_norm(r, &call, x, tv_run_in(r, n, 1), tv_run_in(r, n, 2), &y));
    if (tv_node_int(n, "activation", 0))
        TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = TV_FN_SILU, .inplace = true}, y, &y));
    return tv_opset_done(r, n, y);
}

/* ids, segments, word, position and segment tables, weight, bias, mask */
static const tv_err *embed_norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t ids = tv_run_in(r, n, 0);
    uint32_t sum = TV_NO_VALUE;
    TV_TRY(tv_rule_gather(r, 0, tv_run_in(r, n, 2), ids, &sum));
    uint32_t positions = tv_run_in(r, n, 3);
    if (positions != TV_NO_VALUE) {
        const tv_shape *s = tv_run_shape(r, sum);
        uint32_t rows = TV_NO_VALUE;
        tv_slice first = {.axis = 0, .end = s->rank > 1 ? s->d[1] : 1};
        TV_TRY(tv_rule_slice(r, &first, 1, true, positions, &rows));
        TV_TRY(with_bias(r, sum, rows, &sum));
    }
    uint32_t segments = tv_run_in(r, n, 1);
    if (segments != TV_NO_VALUE && tv_run_in(r, n, 4) != TV_NO_VALUE) {
        uint32_t rows = TV_NO_VALUE;
        TV_TRY(tv_rule_gather(r, 0, tv_run_in(r, n, 4), segments, &rows));
        TV_TRY(with_bias(r, sum, rows, &sum));
    }
    const tv_shape *s = tv_run_shape(r, sum);
    tv_norm_call call = {.kind = TV_NORM_LAYER, .axis = s->rank ? s->rank - 1 : 0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_norm(r, &call, sum, tv_run_in(r, n, 5), tv_run_in(r, n, 6), &y));
    tv_shape lengths = tv_shape_of(1, (int64_t[]){s->rank ? s->d[0] : 1});
    if (tv_node_out(n, 1) != TV_NO_VALUE)
        tv_run_out(r, n, 1, tv_run_make(r, TV_I32, &lengths));
    tv_run_out(r, n, 2, sum);
    return tv_opset_done(r, n, y);
}

/* ---- products and windows ---- */

static const tv_err *fused_matmul(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_matmul_call call = {.transpose_x = tv_node_int(n, "transA", 0) != 0,
                           .transpose_y = tv_node_int(n, "transB", 0) != 0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_matmul(r, call, tv_run_in(r, n, 0), tv_run_in(r, n, 1), TV_NO_VALUE, &y));
    TV_TRY(activated(r, n, "activation", y, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *fused_gemm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    tv_matmul_call call = {.transpose_x = tv_node_int(n, "transA", 0) != 0,
                           .transpose_y = tv_node_int(n, "transB", 0) != 0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_matmul(r, call, tv_run_in(r, n, 0), tv_run_in(r, n, 1), tv_run_in(r, n, 2), &y));
    if (rule->arg)
        TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = (tv_fn)rule->arg}, y, &y));
    TV_TRY(activated(r, n, "activation", y, &y));
    return tv_opset_done(r, n, y);
}

/* x, weight, bias, and a residual that is added before the activation */
static const tv_err *fused_conv(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    tv_conv_call call = {.w = tv_opset_window(n), .groups = tv_node_int(n, "group", 1)};
    call.w.channels_last = rule->arg != 0;
    call.weight_last = rule->arg != 0;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_conv(r, &call, tv_run_in(r, n, 0), tv_run_in(r, n, 1), tv_run_in(r, n, 2), &y));
    TV_TRY(with_bias(r, y, tv_run_in(r, n, 3), &y));
    TV_TRY(activated(r, n, "activation", y, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *nhwc_pool(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_pool_call call = {.w = tv_opset_window(n), .max = true};
    call.w.channels_last = true;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_pool(r, &call, tv_run_in(r, n, 0), &y, NULL));
    return tv_opset_done(r, n, y);
}

static const tv_err *inverse(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, s);
    tv_step step = {.kind = TV_STEP_SCAN};
    step.u.scan.inner = tv_shape_elements(s);
    step.u.scan.state = s->rank ? (double)s->d[s->rank - 1] : 1;
    tv_run_push(r, &step, &x, 1, &y, 1);
    return tv_opset_done(r, n, y);
}

/* Pairs of real and imaginary parts along the last axis. */
static const tv_err *complex_product(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MUL}, tv_run_in(r, n, 0), tv_run_in(r, n, 1),
                       &y));
    return tv_opset_done(r, n, y);
}

/* Distances of rows to rows. */
static const tv_err *distances(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_matmul(r, (tv_matmul_call){.transpose_y = true}, tv_run_in(r, n, 0),
                          tv_run_in(r, n, 1), TV_NO_VALUE, &y));
    return tv_opset_done(r, n, y);
}

static const tv_err *fft(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = *tv_run_shape(r, x);
    bool back = rule->arg != 0;
    if (shape.rank < (back ? 2u : 1u) || shape.rank == TV_LIMIT_RANK)
        return tv_run_unknown(r, n);
    if (back) {
        shape.rank--;
        shape.d[shape.rank - 1] = (shape.d[shape.rank - 1] - 1) * 2;
    } else {
        shape.d[shape.rank - 1] = shape.d[shape.rank - 1] / 2 + 1;
        shape.d[shape.rank++] = 2;
    }
    uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &shape);
    tv_step s = {.kind = TV_STEP_SCAN};
    s.u.scan.inner = tv_shape_elements(&shape);
    s.u.scan.state = 10;
    tv_run_push(r, &s, &x, 1, &y, 1);
    return tv_opset_done(r, n, y);
}

/* boxes [n, 4] cut from x [batch, c, h, w] to a stated size */
static const tv_err *crop_resize(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t boxes = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, boxes));
    int64_t size[2] = {1, 1};
    size_t count = 0;
    tv_run_ints(r, tv_run_in(r, n, 3), size, 2, &count);
    const tv_shape *s = tv_run_shape(r, x);
    const tv_shape *b = tv_run_shape(r, boxes);
    if (s->rank != 4 || !b->rank)
        return tv_run_unknown(r, n);
    tv_shape shape = tv_shape_of(4, (int64_t[]){b->d[0], s->d[1], size[0], size[1]});
    uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &shape);
    TV_TRY(tv_rule_route(r, (uint32_t[]){x, boxes}, 2, &y, 1));
    return tv_opset_done(r, n, y);
}

/* ---- experts ---- */

static void expert_product(tv_running *r, uint32_t x, uint32_t weight, double rows, double k,
                           double n, uint32_t y)
{
    tv_step s = {.kind = TV_STEP_MATMUL};
    s.u.matmul.groups = 1;
    s.u.matmul.m = rows;
    s.u.matmul.k = k;
    s.u.matmul.n = n;
    tv_run_push(r, &s, (uint32_t[]){x, weight}, 2, &y, 1);
}

/* Every token goes through k experts: x, router, fc1 [experts, inner, width] (or the other way
 * round), bias, fc2, bias, fc3, bias. The quantised form has scales in between. */
static const tv_err *experts(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    bool quantised = rule->arg != 0;
    size_t fc2_at = quantised ? 5 : 4;
    size_t fc3_at = quantised ? 8 : 6;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t router = tv_run_in(r, n, 1);
    uint32_t fc1 = tv_run_in(r, n, 2);
    uint32_t fc2 = tv_run_in(r, n, fc2_at);
    uint32_t fc3 = tv_run_in(r, n, fc3_at);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, router));
    TV_TRY(tv_run_need(r, fc1));
    TV_TRY(tv_run_need(r, fc2));
    const tv_shape *s = tv_run_shape(r, x);
    const tv_shape *w = tv_run_shape(r, fc1);
    if (!s->rank || w->rank != 3)
        return tv_run_unknown(r, n);
    double width = (double)s->d[s->rank - 1];
    double rows = tv_shape_elements(s) / (width > 0 ? width : 1) * (double)tv_node_int(n, "k", 1);
    /* Packed weights have fewer columns than the width; the inner size is the other axis. */
    bool rows_first = (double)w->d[2] == width || quantised;
    double inner = (double)(rows_first ? w->d[1] : w->d[2]);
    bool fused = tv_opset_is(tv_node_string(n, "activation_type"), "swiglu") && fc3 == TV_NO_VALUE;
    tv_dtype dtype = tv_run_at(r, x)->dtype;
    tv_shape wide = tv_shape_of(2, (int64_t[]){(int64_t)rows, (int64_t)inner});
    uint32_t h = tv_run_make(r, dtype, &wide);
    expert_product(r, x, fc1, rows, width, inner, h);
    TV_TRY(activated(r, n, "activation_type", h, &h));
    if (fc3 != TV_NO_VALUE) {
        uint32_t gate = tv_run_make(r, dtype, &wide);
        expert_product(r, x, fc3, rows, width, inner, gate);
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MUL}, h, gate, &h));
    }
    uint32_t y = tv_run_make(r, dtype, s);
    expert_product(r, h, fc2, rows, fused ? inner / 2 : inner, width, y);
    return tv_opset_done(r, n, y);
}

static const tv_rule rules[] = {
    {"BiasAdd", bias_add, 0},
    {"BiasDropout", bias_dropout, 0},
    {"BiasGelu", bias_act, TV_FN_GELU},
    {"BiasSoftmax", bias_softmax, 0},
    {"BiasSplitGelu", bias_split_gelu, 0},
    {"CDist", distances, 0},
    {"ComplexMul", complex_product, 0},
    {"ComplexMulConj", complex_product, 0},
    {"CropAndResize", crop_resize, 0},
    {"EmbedLayerNormalization", embed_norm, 0},
    {"FastGelu", bias_act, TV_FN_GELU_TANH},
    {"FusedConv", fused_conv, 0},
    {"FusedGemm", fused_gemm, 0},
    {"FusedMatMul", fused_matmul, 0},
    {"FusedMatMulActivation", fused_matmul, 0},
    {"GemmFastGelu", fused_gemm, TV_FN_GELU_TANH},
    {"GroupNorm", group_norm, 0},
    {"Inverse", inverse, 0},
    {"Irfft", fft, 1},
    {"MoE", experts, 0},
    {"NhwcConv", fused_conv, 1},
    {"NhwcFusedConv", fused_conv, 1},
    {"NhwcMaxPool", nhwc_pool, 0},
    {"QMoE", experts, 1},
    {"QuickGelu", bias_act, TV_FN_QUICK_GELU},
    {"Rfft", fft, 0},
    {"SimplifiedLayerNormalization", simple_norm, 0},
    {"SkipGroupNorm", group_norm, 1},
    {"SkipLayerNormalization", skip_norm, SKIP_LAYER},
    {"SkipSimplifiedLayerNormalization", skip_norm, SKIP_RMS},
    {"TransposeMatMul", fused_matmul, 0},
};

const tv_rule_table tv_rules_onnx_ort = {TV_DIALECT_ONNX, "com.microsoft", rules,
                                         sizeof rules / sizeof *rules};
