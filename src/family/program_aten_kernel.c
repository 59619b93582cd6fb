/* ATen's big kernels: products, convolutions, pools, norms, attention, recurrent layers, look-ups
 * of embeddings, resizing, losses. */
#include "program_aten.h"

#include <math.h>

#include "program_running.h"

static const tv_err *out_rest(tv_running *r, const tv_node *n, uint32_t y, uint32_t x)
{
    tv_aten_out(r, n, 0, y);
    tv_aten_rest(r, n, 1, x);
    return NULL;
}

/* ---- products ---- */

/* mm, bmm, matmul, mv, dot ...: the two operands come first, whatever they are called. */
static const tv_err *product(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_matmul(r, (tv_matmul_call){.dtype = tv_aten_dtype(r, n, 0, TV_DTYPE_UNKNOWN)},
                          tv_run_in(r, n, 0), tv_run_in(r, n, 1), TV_NO_VALUE, &y));
    return out_rest(r, n, y, TV_NO_VALUE);
}

/* self + a·b. beta 0 reads no self. A self of the result's own rank is a sum, not a bias. */
static const tv_err *added_product(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    static const char *const names[][2] = {
        {"mat1", "mat2"}, {"batch1", "batch2"}, {"mat", "vec"}, {"vec1", "vec2"}};
    const uint32_t self = tv_aten_in(r, n, "self");
    const uint32_t a = tv_aten_in(r, n, names[rule->arg][0]);
    const uint32_t b = tv_aten_in(r, n, names[rule->arg][1]);
    const bool reads = tv_aten_num(r, n, "beta", 1) != 0 && self != TV_NO_VALUE;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_matmul(r, (tv_matmul_call){.dtype = tv_aten_dtype(r, n, 0, TV_DTYPE_UNKNOWN)}, a,
                          b, reads ? self : TV_NO_VALUE, &y));
    return out_rest(r, n, y, TV_NO_VALUE);
}

static const tv_err *linear(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    const uint32_t w = tv_aten_in(r, n, "weight"), b = tv_aten_in(r, n, "bias");
    uint32_t y = TV_NO_VALUE, turned = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, w));
    const tv_run_value *weight = tv_run_at(r, w);
    if (weight->weight != TV_NO_VALUE || weight->shape.rank == 2)
        TV_TRY(tv_rule_linear(r, false, x, w, b, &y));
    else { /* of one row, or of several */
        TV_TRY(tv_rule_view(r, w, &weight->shape, &turned));
        TV_TRY(tv_rule_matmul(r, (tv_matmul_call){.transpose_y = true}, x, turned, b, &y));
    }
    return out_rest(r, n, y, TV_NO_VALUE);
}

static const tv_err *einsum(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t in[64], y = TV_NO_VALUE;
    const size_t count = tv_aten_list(r, n, "tensors", in, 64);
    TV_TRY(tv_rule_einsum(r, tv_node_string(n, "equation"), in, count, &y));
    return out_rest(r, n, y, TV_NO_VALUE);
}

/* Vector by vector to a matrix. */
static const tv_err *outer(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t a = TV_NO_VALUE, b = TV_NO_VALUE, y = TV_NO_VALUE;
    TV_TRY(tv_rule_unsqueeze(r, tv_run_in(r, n, 0), (int64_t[]){1}, 1, &a));
    TV_TRY(tv_rule_unsqueeze(r, tv_run_in(r, n, 1), (int64_t[]){0}, 1, &b));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MUL}, a, b, &y));
    return out_rest(r, n, y, TV_NO_VALUE);
}

/* Packed weights: one product whose second operand may be stored turned. */
static const tv_err *packed_product(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_run_in(r, n, 0), w = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w));
    const tv_shape *s = tv_run_shape(r, x);
    const uint32_t y = tv_aten_make(r, n, 0, x);
    const tv_shape *out = tv_run_shape(r, y);
    if (!s->rank || !out->rank)
        return tv_run_unknown(r, n);
    const double k = (double)s->d[s->rank - 1], columns = (double)out->d[out->rank - 1];
    tv_step step = {.kind = TV_STEP_MATMUL};
    step.u.matmul.groups = 1;
    step.u.matmul.n = columns;
    step.u.matmul.k = k;
    step.u.matmul.m = columns > 0 ? tv_shape_elements(out) / columns : 0;
    tv_run_push(r, &step, (uint32_t[]){x, w}, 2, &y, 1);
    return out_rest(r, n, y, TV_NO_VALUE);
}

/* ---- windows ---- */

static uint32_t window_axes(const tv_running *r, uint32_t weight)
{
    const uint32_t rank = tv_run_shape(r, weight)->rank;
    return rank >= 3 && rank - 2 <= TV_WINDOW_AXES ? rank - 2 : 0;
}

static void read_padding(tv_running *r, const tv_node *n, uint32_t axes, tv_window *w)
{
    const tv_str mode = tv_node_string(n, "padding");
    if (tv_str_is(mode, "same"))
        w->mode = TV_PAD_SAME_UPPER;
    if (mode.n)
        return;
    tv_aten_per_axis(r, n, "padding", 0, axes, w->before);
    tv_aten_per_axis(r, n, "padding", 0, axes, w->after);
}

/* A sample alone gets a batch of one and gives it back. */
static const tv_err *with_batch(tv_running *r, uint32_t x, uint32_t axes, uint32_t *y, bool *alone)
{
    *alone = tv_run_shape(r, x)->rank == axes + 1;
    *y = x;
    return *alone ? tv_rule_unsqueeze(r, x, (int64_t[]){0}, 1, y) : NULL;
}

enum { CONV_PLAIN, CONV_TRANSPOSED, CONV_STATED };

static const tv_err *conv(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_aten_first(r, n);
    const uint32_t weight = tv_aten_in(r, n, "weight");
    bool alone = false;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, weight));
    const uint32_t axes = window_axes(r, weight);
    if (!axes)
        return tv_run_unknown(r, n);
    tv_conv_call call = {.w.axes = axes, .groups = tv_aten_int(r, n, "groups", 1)};
    call.transposed = rule->arg == CONV_TRANSPOSED ||
                      (rule->arg == CONV_STATED && tv_aten_flag(r, n, "transposed"));
    tv_aten_per_axis(r, n, "stride", 1, axes, call.w.stride);
    tv_aten_per_axis(r, n, "dilation", 1, axes, call.w.dilation);
    tv_aten_per_axis(r, n, "output_padding", 0, axes, call.extra);
    read_padding(r, n, axes, &call.w);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(with_batch(r, x, axes, &x, &alone));
    TV_TRY(tv_rule_conv(r, &call, x, weight, tv_aten_in(r, n, "bias"), &y));
    if (alone)
        TV_TRY(tv_rule_squeeze(r, y, (int64_t[]){0}, 1, &y));
    return out_rest(r, n, y, x);
}

/* The sampled positions make it a gather before the product: its cost is the convolution's, and the
 * columns are written out. */
static const tv_err *deform_conv(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n), weight = tv_aten_in(r, n, "weight");
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, weight));
    if (tv_run_shape(r, weight)->rank != 4)
        return tv_run_unknown(r, n);
    tv_conv_call call = {
        .w.axes = 2,
        .w.stride = {tv_aten_int(r, n, "stride_h", 1), tv_aten_int(r, n, "stride_w", 1)},
        .w.dilation = {tv_aten_int(r, n, "dilation_h", 1), tv_aten_int(r, n, "dilation_w", 1)},
        .w.before = {tv_aten_int(r, n, "pad_h", 0), tv_aten_int(r, n, "pad_w", 0)},
        .w.after = {tv_aten_int(r, n, "pad_h", 0), tv_aten_int(r, n, "pad_w", 0)},
        .groups = tv_aten_int(r, n, "groups", 1),
    };
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_conv(r, &call, x, weight, tv_aten_in(r, n, "bias"), &y));
    return out_rest(r, n, y, x);
}

/* arg: axes, doubled, plus one for a maximum. */
static const tv_err *pool(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_aten_first(r, n), y = TV_NO_VALUE, indices = TV_NO_VALUE;
    const uint32_t axes = (uint32_t)rule->arg / 2;
    const int64_t *stride = NULL;
    bool alone = false;
    TV_TRY(tv_run_need(r, x));
    tv_pool_call call = {.w.axes = axes, .max = rule->arg % 2 != 0};
    tv_aten_per_axis(r, n, "kernel_size", 1, axes, call.w.kernel);
    tv_aten_per_axis(r, n, "dilation", 1, axes, call.w.dilation);
    tv_aten_per_axis(r, n, "stride", 1, axes, call.w.stride);
    if (!tv_aten_ints(r, n, "stride", &stride))
        for (uint32_t i = 0; i < axes; i++)
            call.w.stride[i] = call.w.kernel[i];
    read_padding(r, n, axes, &call.w);
    call.w.ceil = tv_aten_flag(r, n, "ceil_mode");
    const bool two = call.max && n->n_outputs > 1;
    TV_TRY(with_batch(r, x, axes, &x, &alone));
    TV_TRY(tv_rule_pool(r, &call, x, &y, two ? &indices : NULL));
    if (alone)
        TV_TRY(tv_rule_squeeze(r, y, (int64_t[]){0}, 1, &y));
    tv_aten_out(r, n, 0, y);
    if (two && !alone)
        tv_aten_out(r, n, 1, indices);
    else
        tv_aten_rest(r, n, 1, x);
    return NULL;
}

static const tv_err *adaptive_pool(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_aten_first(r, n), y = TV_NO_VALUE, indices = TV_NO_VALUE;
    const uint32_t axes = (uint32_t)rule->arg / 2;
    bool alone = false;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(with_batch(r, x, axes, &x, &alone));
    const tv_shape *s = tv_run_shape(r, x);
    if (s->rank != axes + 2)
        return tv_run_unknown(r, n);
    tv_pool_call call = {.w.axes = axes, .max = rule->arg % 2 != 0};
    tv_aten_per_axis(r, n, "output_size", 0, axes, call.adaptive);
    for (uint32_t i = 0; i < axes; i++) /* None keeps the size */
        if (call.adaptive[i] <= 0)
            call.adaptive[i] = s->d[2 + i];
    const bool two = call.max && n->n_outputs > 1;
    TV_TRY(tv_rule_pool(r, &call, x, &y, two ? &indices : NULL));
    if (alone)
        TV_TRY(tv_rule_squeeze(r, y, (int64_t[]){0}, 1, &y));
    tv_aten_out(r, n, 0, y);
    if (two && !alone)
        tv_aten_out(r, n, 1, indices);
    else
        tv_aten_rest(r, n, 1, x);
    return NULL;
}

/* Sizes stated, or factors; the names of both differ from form to form. arg: nearest. */
static const tv_err *resize(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    const int64_t *sizes = NULL;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    tv_shape s = *tv_run_shape(r, x);
    const size_t count = tv_aten_ints(r, n, "output_size", &sizes);
    const tv_attr *factors = tv_node_attr(n, "scale_factors");
    for (uint32_t i = 2; i < s.rank; i++) {
        if (i - 2 < count)
            s.d[i] = sizes[i - 2];
        else if (factors && factors->kind == TV_ATTR_FLOATS && i - 2 < factors->n)
            s.d[i] = (int64_t)floor((double)s.d[i] * factors->u.floats[i - 2]);
    }
    TV_TRY(tv_rule_resize(r, rule->arg != 0, &s, x, &y));
    return out_rest(r, n, y, x);
}

/* Samples an image where a grid says. */
static const tv_err *grid_sample(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n), grid = tv_aten_in(r, n, "grid");
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, grid));
    tv_shape s = *tv_run_shape(r, x);
    const tv_shape *g = tv_run_shape(r, grid);
    if (g->rank != s.rank)
        return tv_run_unknown(r, n);
    for (uint32_t i = 2; i < s.rank; i++)
        s.d[i] = g->d[i - 1];
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &s);
    tv_step step = {.kind = TV_STEP_RESIZE};
    step.u.resize.nearest = tv_aten_int(r, n, "interpolation_mode", 0) == 1;
    tv_run_push(r, &step, (uint32_t[]){x, grid}, 2, &y, 1);
    return out_rest(r, n, y, x);
}

/* Regions of a feature map, resampled to one size: as many as there are boxes. */
static const tv_err *roi(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n), rois = tv_aten_in(r, n, "rois");
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, rois));
    const tv_shape *s = tv_run_shape(r, x), *boxes = tv_run_shape(r, rois);
    const int64_t h = tv_aten_int(r, n, "pooled_height", 1),
                  w = tv_aten_int(r, n, "pooled_width", 1);
    if (s->rank != 4 || boxes->rank != 2)
        return tv_run_unknown(r, n);
    const tv_shape out = tv_shape_of(4, (int64_t[]){boxes->d[0], s->d[1], h, w});
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &out);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_RESIZE}, (uint32_t[]){x, rois}, 2, &y, 1);
    return out_rest(r, n, y, x);
}

/* ---- norms ---- */

/* Running statistics are used as they are where a training capture says so; an export for inference
 * is trained with statistics of the batch, like any other. */
static tv_norm_kind batch_kind(tv_running *r, const tv_node *n, bool stated_frozen)
{
    const bool training = tv_aten_flag(r, n, "training");
    const bool frozen = stated_frozen || (tv_aten_has(n, "training") && !training);
    return frozen && tv_run_program(r)->training ? TV_NORM_BATCH_FROZEN : TV_NORM_BATCH;
}

static const tv_err *batch_norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    uint32_t y = TV_NO_VALUE;
    const tv_norm_call call = {.kind = batch_kind(r, n, rule->arg != 0)};
    TV_TRY(tv_rule_norm(r, &call, x, tv_aten_in(r, n, "weight"), tv_aten_in(r, n, "bias"), &y));
    return out_rest(r, n, y, x);
}

static const tv_err *layer_norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    const int64_t *shape = NULL;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const size_t count = tv_aten_ints(r, n, "normalized_shape", &shape);
    const uint32_t rank = tv_run_shape(r, x)->rank;
    const tv_norm_call call = {.kind = (tv_norm_kind)rule->arg,
                               .axis = count && count <= rank ? rank - (uint32_t)count : 0};
    TV_TRY(tv_rule_norm(r, &call, x, tv_aten_in(r, n, "weight"), tv_aten_in(r, n, "bias"), &y));
    return out_rest(r, n, y, x);
}

static const tv_err *group_norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    uint32_t y = TV_NO_VALUE;
    const tv_norm_call call = {
        .kind = TV_NORM_GROUP,
        .instance = rule->arg != 0,
        .groups = tv_aten_int(r, n, "num_groups", tv_aten_int(r, n, "group", 1)),
    };
    TV_TRY(tv_rule_norm(r, &call, x, tv_aten_in(r, n, "weight"), tv_aten_in(r, n, "bias"), &y));
    return out_rest(r, n, y, x);
}

/* A weight made of a direction and a length: of weights alone, and once a pass. */
static const tv_err *weight_norm(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t v = tv_run_in(r, n, 0), g = tv_run_in(r, n, 1);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MUL}, v, g, &y));
    return out_rest(r, n, y, v);
}

/* ---- attention ---- */

static const tv_err *attention(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t q = tv_aten_in(r, n, "query"), k = tv_aten_in(r, n, "key");
    const uint32_t v = tv_aten_in(r, n, "value");
    uint32_t mask = tv_aten_in(r, n, "attn_mask"), y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, q));
    if (mask == TV_NO_VALUE)
        mask = tv_aten_in(r, n, "attn_bias");
    if (mask == TV_NO_VALUE)
        mask = tv_aten_in(r, n, "bias");
    const tv_attention_call call = {
        .causal = tv_aten_flag(r, n, "is_causal") || tv_aten_flag(r, n, "custom_mask_type"),
        .dropout = tv_aten_num(r, n, "dropout_p", 0),
        .heads = tv_run_shape(r, q)->rank == 3 ? 1 : 0,
        .heads_third = rule->arg != 0,
    };
    TV_TRY(tv_rule_attention(r, &call, q, k, v, mask, &y));
    return out_rest(r, n, y, q);
}

/* flex_attention(query, key, value, score_mod, block_mask, scale, kernel_options): by place. */
static const tv_err *flex_attention(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t q = tv_run_in(r, n, 0);
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_attention(r, &(tv_attention_call){0}, q, tv_run_in(r, n, 1), tv_run_in(r, n, 2),
                             TV_NO_VALUE, &y));
    return out_rest(r, n, y, q);
}

/* ---- recurrent layers ---- */

/* arg: gates. Sizes come from the weights: w_ih is [gates·hidden, input], w_hh [gates·hidden,
 * hidden]. */
static const tv_err *rnn(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t in[TV_LIMIT_RANK * 128], weights[2] = {TV_NO_VALUE, TV_NO_VALUE};
    uint32_t y = TV_NO_VALUE, h = TV_NO_VALUE, c = TV_NO_VALUE;
    size_t count = 0;
    for (size_t i = 0; i < n->n_inputs && count < sizeof in / sizeof *in; i++)
        in[count++] = tv_run_in(r, n, i);
    TV_TRY(tv_run_need(r, count ? in[0] : TV_NO_VALUE));
    if (tv_aten_list(r, n, "params", weights, 2) < 2 || weights[1] == TV_NO_VALUE ||
        tv_run_shape(r, weights[1])->rank != 2 || tv_run_shape(r, in[0])->rank != 3)
        return tv_run_unknown(r, n);
    const tv_rnn_call call = {
        .gates = rule->arg,
        .hidden = (double)tv_run_shape(r, weights[1])->d[0] / rule->arg,
        .directions = tv_aten_flag(r, n, "bidirectional") ? 2 : 1,
        .layers = (double)tv_aten_int(r, n, "num_layers", 1),
        .batch_first = tv_aten_flag(r, n, "batch_first"),
    };
    TV_TRY(tv_rule_rnn(r, &call, in, count, &y, &h, rule->arg == 4 ? &c : NULL));
    tv_aten_out(r, n, 0, y);
    /* Of the final states torch 2.6 and 2.8 state what their CPU kernel hands back, with an axis
     * more than the module has. */
    tv_run_out(r, n, 1, h);
    if (rule->arg == 4)
        tv_run_out(r, n, 2, c);
    tv_aten_rest(r, n, rule->arg == 4 ? 3 : 2, in[0]);
    return NULL;
}

/* _cudnn_rnn(input, weight[], ..., hx, cx, mode, hidden_size, ...): mode 2 is LSTM, 3 GRU. */
static const tv_err *cudnn_rnn(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t in[1024], y = TV_NO_VALUE, h = TV_NO_VALUE, c = TV_NO_VALUE;
    size_t count = 0;
    for (size_t i = 0; i < n->n_inputs && count < sizeof in / sizeof *in; i++)
        in[count++] = tv_run_in(r, n, i);
    TV_TRY(tv_run_need(r, count ? in[0] : TV_NO_VALUE));
    const int64_t mode = tv_aten_int(r, n, "mode", 2);
    const tv_rnn_call call = {
        .gates = mode == 2   ? 4
                 : mode == 3 ? 3
                             : 1,
        .hidden = (double)tv_aten_int(r, n, "hidden_size", 1),
        .directions = tv_aten_flag(r, n, "bidirectional") ? 2 : 1,
        .layers = (double)tv_aten_int(r, n, "num_layers", 1),
        .batch_first = tv_aten_flag(r, n, "batch_first"),
    };
    TV_TRY(tv_rule_rnn(r, &call, in, count, &y, &h, mode == 2 ? &c : NULL));
    tv_aten_out(r, n, 0, y);
    tv_aten_out(r, n, 1, h);
    tv_aten_out(r, n, 2, c);
    tv_aten_rest(r, n, mode == 2 ? 3 : 2, in[0]);
    return NULL;
}

/* One time step: two products, then the gates. */
static const tv_err *rnn_cell(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t hx[2] = {TV_NO_VALUE, TV_NO_VALUE}, a = TV_NO_VALUE, b = TV_NO_VALUE;
    const uint32_t x = tv_aten_first(r, n);
    (void)tv_aten_list(r, n, "hx", hx, 2);
    TV_TRY(tv_rule_linear(r, false, x, tv_aten_in(r, n, "w_ih"), tv_aten_in(r, n, "b_ih"), &a));
    TV_TRY(tv_rule_linear(r, false, hx[0], tv_aten_in(r, n, "w_hh"), tv_aten_in(r, n, "b_hh"), &b));
    const uint32_t state = rule->arg == 4 ? hx[1] : hx[0];
    TV_TRY(tv_run_need(r, state));
    uint32_t out[2] = {tv_aten_make(r, n, 0, state), TV_NO_VALUE};
    if (rule->arg == 4)
        out[1] = tv_aten_make(r, n, 1, state);
    tv_step step = {.kind = TV_STEP_BINARY};
    step.u.binary.product = true;
    tv_run_push(r, &step, (uint32_t[]){a, b, state}, 3, out, rule->arg == 4 ? 2 : 1);
    tv_aten_out(r, n, 0, out[0]);
    tv_aten_out(r, n, 1, out[1]);
    return NULL;
}

/* Gates that are computed already: the products came before. */
static const tv_err *fused_cell(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t in[3] = {tv_run_in(r, n, 0), tv_run_in(r, n, 1), tv_run_in(r, n, 2)};
    uint32_t out[3];
    for (size_t i = 0; i < 3; i++)
        TV_TRY(tv_run_need(r, in[i]));
    const size_t count = rule->arg == 4 ? 3 : 2;
    for (size_t i = 0; i < count; i++)
        out[i] = tv_aten_make(r, n, i, in[2]);
    tv_step step = {.kind = TV_STEP_BINARY};
    step.u.binary.product = true;
    tv_run_push(r, &step, in, 3, out, count);
    for (size_t i = 0; i < count; i++)
        tv_aten_out(r, n, i, out[i]);
    return NULL;
}

/* ---- look-ups ---- */

static const tv_err *embedding(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_gather(r, 0, tv_aten_in(r, n, "weight"), tv_aten_in(r, n, "indices"), &y));
    return out_rest(r, n, y, TV_NO_VALUE);
}

/* Sums of rows: as many rows as bags come out. */
static const tv_err *embedding_bag(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t w = tv_aten_in(r, n, "weight"), ids = tv_aten_in(r, n, "indices");
    TV_TRY(tv_run_need(r, w));
    TV_TRY(tv_run_need(r, ids));
    const uint32_t y = tv_aten_make(r, n, 0, w);
    tv_step step = {.kind = TV_STEP_GATHER};
    step.u.gather.embedding = true;
    tv_run_push(r, &step, (uint32_t[]){w, ids}, 2, &y, 1);
    return out_rest(r, n, y, w);
}

/* ---- losses ---- */

static const tv_err *loss(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_aten_first(r, n), y = TV_NO_VALUE;
    uint32_t target = tv_aten_in(r, n, "target");
    if (target == TV_NO_VALUE)
        target = tv_run_in(r, n, 1);
    const bool reduced = tv_aten_int(r, n, "reduction", 1) != 0;
    TV_TRY(tv_rule_loss(r, rule->arg != 0, reduced, x, target, &y));
    return out_rest(r, n, y, x);
}

/* ---- quantised tensors ---- */

static const tv_err *quantise(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    const uint32_t x = tv_aten_first(r, n);
    uint32_t y = TV_NO_VALUE;
    const tv_fn_call call = {.fn = (tv_fn)rule->arg, .dtype = tv_aten_dtype(r, n, 0, TV_I8)};
    TV_TRY(tv_rule_fn(r, call, x, &y));
    return out_rest(r, n, y, x);
}

/* Fourier transforms: 5 n log2 n operations, n the transformed elements. */
static const tv_err *fourier(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    const uint32_t x = tv_aten_first(r, n);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    const uint32_t y = tv_aten_make(r, n, 0, x);
    const double length = s->rank ? (double)s->d[s->rank - 1] : 1;
    tv_step step = {.kind = TV_STEP_UNARY};
    step.u.unary.keeps = TV_KEEPS_NOTHING;
    step.u.unary.flop_per_element = length > 1 ? 5 * log2(length) : 1;
    tv_run_push(r, &step, &x, 1, &y, 1);
    return out_rest(r, n, y, x);
}

enum { MAX = 1 };

static const tv_rule rules[] = {
    {"aten.mm", product, 0},
    {"aten.bmm", product, 0},
    {"aten.matmul", product, 0},
    {"aten.mv", product, 0},
    {"aten.dot", product, 0},
    {"aten.vdot", product, 0},
    {"aten.inner", product, 0},
    {"aten.linalg_vecdot", product, 0},
    {"aten.linalg_matmul", product, 0},
    {"aten._int_mm", product, 0},
    {"aten._scaled_mm", product, 0},
    {"aten.addmm", added_product, 0},
    {"aten._addmm_activation", added_product, 0},
    {"aten.baddbmm", added_product, 1},
    {"aten.addbmm", added_product, 1},
    {"aten.addmv", added_product, 2},
    {"aten.addr", added_product, 3},
    {"aten.linear", linear, 0},
    {"aten.einsum", einsum, 0},
    {"aten.outer", outer, 0},
    {"aten.ger", outer, 0},
    {"aten._weight_int8pack_mm", packed_product, 0},
    {"aten._weight_int4pack_mm", packed_product, 0},
    {"aten._weight_int4pack_mm_for_cpu", packed_product, 0},
    {"aten._dyn_quant_matmul_4bit", packed_product, 0},
    {"aten._grouped_mm", packed_product, 0},
    {"aten._scaled_grouped_mm", packed_product, 0},
    {"aten.cdist", packed_product, 0},
    {"aten._cdist_forward", packed_product, 0},
    {"aten.convolution", conv, CONV_STATED},
    {"aten._convolution", conv, CONV_STATED},
    {"aten.convolution_overrideable", conv, CONV_STATED},
    {"aten.conv1d", conv, CONV_PLAIN},
    {"aten.conv2d", conv, CONV_PLAIN},
    {"aten.conv3d", conv, CONV_PLAIN},
    {"aten.cudnn_convolution", conv, CONV_PLAIN},
    {"aten.cudnn_convolution_relu", conv, CONV_PLAIN},
    {"aten.miopen_convolution", conv, CONV_PLAIN},
    {"aten.mkldnn_convolution", conv, CONV_PLAIN},
    {"aten.thnn_conv2d", conv, CONV_PLAIN},
    {"aten._slow_conv2d_forward", conv, CONV_PLAIN},
    {"aten.slow_conv3d", conv, CONV_PLAIN},
    {"aten.conv_depthwise3d", conv, CONV_PLAIN},
    {"aten._conv_depthwise2d", conv, CONV_PLAIN},
    {"aten.conv_transpose1d", conv, CONV_TRANSPOSED},
    {"aten.conv_transpose2d", conv, CONV_TRANSPOSED},
    {"aten.conv_transpose3d", conv, CONV_TRANSPOSED},
    {"aten.cudnn_convolution_transpose", conv, CONV_TRANSPOSED},
    {"torchvision.deform_conv2d", deform_conv, 0},
    {"aten.max_pool1d", pool, 2 * 1 + MAX},
    {"aten.max_pool2d", pool, 2 * 2 + MAX},
    {"aten.max_pool3d", pool, 2 * 3 + MAX},
    {"aten.max_pool1d_with_indices", pool, 2 * 1 + MAX},
    {"aten.max_pool2d_with_indices", pool, 2 * 2 + MAX},
    {"aten.max_pool3d_with_indices", pool, 2 * 3 + MAX},
    {"aten.mkldnn_max_pool2d", pool, 2 * 2 + MAX},
    {"aten.avg_pool1d", pool, 2 * 1},
    {"aten.avg_pool2d", pool, 2 * 2},
    {"aten.avg_pool3d", pool, 2 * 3},
    {"aten.adaptive_avg_pool1d", adaptive_pool, 2 * 1},
    {"aten.adaptive_avg_pool2d", adaptive_pool, 2 * 2},
    {"aten.adaptive_avg_pool3d", adaptive_pool, 2 * 3},
    {"aten._adaptive_avg_pool2d", adaptive_pool, 2 * 2},
    {"aten._adaptive_avg_pool3d", adaptive_pool, 2 * 3},
    {"aten.adaptive_max_pool1d", adaptive_pool, 2 * 1 + MAX},
    {"aten.adaptive_max_pool2d", adaptive_pool, 2 * 2 + MAX},
    {"aten.adaptive_max_pool3d", adaptive_pool, 2 * 3 + MAX},
    {"aten.upsample_nearest1d", resize, 1},
    {"aten.upsample_nearest2d", resize, 1},
    {"aten.upsample_nearest3d", resize, 1},
    {"aten._upsample_nearest_exact1d", resize, 1},
    {"aten._upsample_nearest_exact2d", resize, 1},
    {"aten._upsample_nearest_exact3d", resize, 1},
    {"aten.upsample_linear1d", resize, 0},
    {"aten.upsample_bilinear2d", resize, 0},
    {"aten.upsample_bicubic2d", resize, 0},
    {"aten.upsample_trilinear3d", resize, 0},
    {"aten._upsample_bilinear2d_aa", resize, 0},
    {"aten._upsample_bicubic2d_aa", resize, 0},
    {"aten._upsample_lanczos2d_aa", resize, 0},
    {"aten.grid_sampler", grid_sample, 0},
    {"aten.grid_sampler_2d", grid_sample, 0},
    {"aten.grid_sampler_3d", grid_sample, 0},
    {"aten.cudnn_grid_sampler", grid_sample, 0},
    {"torchvision.roi_align", roi, 0},
    {"torchvision.roi_pool", roi, 0},
    {"torchvision.ps_roi_align", roi, 0},
    {"aten.batch_norm", batch_norm, 0},
    {"aten.native_batch_norm", batch_norm, 0},
    {"aten._native_batch_norm_legit", batch_norm, 0},
    {"aten._native_batch_norm_legit_functional", batch_norm, 0},
    {"aten._native_batch_norm_legit_no_training", batch_norm, 1},
    {"aten._batch_norm_with_update", batch_norm, 0},
    {"aten._batch_norm_with_update_functional", batch_norm, 0},
    {"aten._batch_norm_no_update", batch_norm, 1},
    {"aten._batch_norm_impl_index", batch_norm, 0},
    {"aten.cudnn_batch_norm", batch_norm, 0},
    {"aten.miopen_batch_norm", batch_norm, 0},
    {"aten.layer_norm", layer_norm, TV_NORM_LAYER},
    {"aten.native_layer_norm", layer_norm, TV_NORM_LAYER},
    {"aten.rms_norm", layer_norm, TV_NORM_RMS_FUSED},
    {"aten._fused_rms_norm", layer_norm, TV_NORM_RMS_FUSED},
    {"aten.group_norm", group_norm, 0},
    {"aten.native_group_norm", group_norm, 0},
    {"aten.instance_norm", group_norm, 1},
    {"aten._weight_norm", weight_norm, 0},
    {"aten._weight_norm_interface", weight_norm, 0},
    {"aten.scaled_dot_product_attention", attention, 0},
    {"aten._scaled_dot_product_flash_attention", attention, 0},
    {"aten._scaled_dot_product_flash_attention_for_cpu", attention, 0},
    {"aten._scaled_dot_product_efficient_attention", attention, 0},
    {"aten._scaled_dot_product_cudnn_attention", attention, 0},
    {"aten._scaled_dot_product_fused_attention_overrideable", attention, 0},
    {"aten._scaled_dot_product_attention_math", attention, 0},
    {"aten._scaled_dot_product_attention_math_for_mps", attention, 0},
    {"aten._flash_attention_forward", attention, 1},
    {"aten._efficient_attention_forward", attention, 1},
    {"aten._cudnn_attention_forward", attention, 0},
    {"higher_order.flex_attention", flex_attention, 0},
    {"aten.lstm", rnn, 4},
    {"aten.gru", rnn, 3},
    {"aten.rnn_tanh", rnn, 1},
    {"aten.rnn_relu", rnn, 1},
    {"aten._cudnn_rnn", cudnn_rnn, 0},
    {"aten.miopen_rnn", cudnn_rnn, 0},
    {"aten.lstm_cell", rnn_cell, 4},
    {"aten.gru_cell", rnn_cell, 3},
    {"aten.rnn_tanh_cell", rnn_cell, 1},
    {"aten.rnn_relu_cell", rnn_cell, 1},
    {"aten._thnn_fused_lstm_cell", fused_cell, 4},
    {"aten._thnn_fused_gru_cell", fused_cell, 3},
    {"aten.embedding", embedding, 0},
    {"aten.embedding_bag", embedding_bag, 0},
    {"aten._embedding_bag", embedding_bag, 0},
    {"aten._embedding_bag_forward_only", embedding_bag, 0},
    {"aten.cross_entropy_loss", loss, 1},
    {"aten.nll_loss", loss, 1},
    {"aten.nll_loss_forward", loss, 1},
    {"aten.nll_loss_nd", loss, 1},
    {"aten.nll_loss2d", loss, 1},
    {"aten.nll_loss2d_forward", loss, 1},
    {"aten.mse_loss", loss, 0},
    {"aten.l1_loss", loss, 0},
    {"aten.smooth_l1_loss", loss, 0},
    {"aten.huber_loss", loss, 0},
    {"aten.binary_cross_entropy", loss, 0},
    {"aten.binary_cross_entropy_with_logits", loss, 0},
    {"aten.kl_div", loss, 0},
    {"aten.soft_margin_loss", loss, 0},
    {"aten.poisson_nll_loss", loss, 0},
    {"aten.ctc_loss", loss, 0},
    {"aten._ctc_loss", loss, 0},
    {"aten.multi_margin_loss", loss, 0},
    {"aten.hinge_embedding_loss", loss, 0},
    {"aten.cosine_embedding_loss", loss, 0},
    {"aten.triplet_margin_loss", loss, 0},
    {"aten.margin_ranking_loss", loss, 0},
    {"aten.quantize_per_tensor", quantise, TV_FN_QUANTIZE},
    {"aten.quantize_per_channel", quantise, TV_FN_QUANTIZE},
    {"aten.dequantize", quantise, TV_FN_DEQUANTIZE},
    {"aten.fake_quantize_per_tensor_affine", quantise, TV_FN_QUANTIZE},
    {"aten.fake_quantize_per_channel_affine", quantise, TV_FN_QUANTIZE},
    {"quantized_decomposed.quantize_per_tensor", quantise, TV_FN_QUANTIZE},
    {"quantized_decomposed.quantize_per_channel", quantise, TV_FN_QUANTIZE},
    {"quantized_decomposed.quantize_per_token", quantise, TV_FN_QUANTIZE},
    {"quantized_decomposed.dequantize_per_tensor", quantise, TV_FN_DEQUANTIZE},
    {"quantized_decomposed.dequantize_per_channel", quantise, TV_FN_DEQUANTIZE},
    {"quantized_decomposed.dequantize_per_token", quantise, TV_FN_DEQUANTIZE},
    {"quantized_decomposed.dequantize_per_channel_group", quantise, TV_FN_DEQUANTIZE},
    {"aten._fft_r2c", fourier, 0},
    {"aten._fft_c2r", fourier, 0},
    {"aten._fft_c2c", fourier, 0},
    {"aten.fft_fft", fourier, 0},
    {"aten.fft_ifft", fourier, 0},
    {"aten.fft_rfft", fourier, 0},
    {"aten.fft_irfft", fourier, 0},
    {"aten.fft_fft2", fourier, 0},
    {"aten.fft_ifft2", fourier, 0},
    {"aten.fft_rfft2", fourier, 0},
    {"aten.fft_irfft2", fourier, 0},
    {"aten.fft_rfftn", fourier, 0},
    {"aten.fft_irfftn", fourier, 0},
    {"aten.stft", fourier, 0},
    {"aten.istft", fourier, 0},
};

extern const tv_rule_table tv_rules_aten_kernel;
const tv_rule_table tv_rules_aten_kernel = {TV_DIALECT_ATEN, "", rules,
                                            sizeof rules / sizeof *rules};
