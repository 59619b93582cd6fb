/* Paddle's layers: products of matrices, convolutions, pooling, norms, embeddings, resizing,
 * dropout. */
#include "program_paddle.h"

#include <math.h>

/* ---- products ---- */

/* x as a matrix: its first `axes` axes and the rest. */
static const tv_err *as_matrix(tv_running *r, uint32_t x, int64_t axes, uint32_t *y)
{
    const tv_shape *s = tv_run_shape(r, x);
    tv_shape m = {.rank = 2, .d = {1, 1}};
    for (uint32_t i = 0; i < s->rank; i++)
        m.d[(int64_t)i >= axes] *= s->d[i];
    return tv_rule_view(r, x, &m, y);
}

/* mul: both operands as matrices, the result with the axes of both. */
static const tv_err *product(tv_running *r, int64_t x_axes, int64_t y_axes, uint32_t x, uint32_t y,
                             uint32_t bias, uint32_t *z)
{
    const tv_shape *xs = tv_run_shape(r, x), *ys = tv_run_shape(r, y);
    tv_shape out = {0};
    bool fits = true;
    x_axes = x_axes < 0 ? x_axes + (int64_t)xs->rank : x_axes;
    if (x_axes + 1 == (int64_t)xs->rank && y_axes == 1 && ys->rank == 2)
        return tv_rule_linear(r, true, x, y, bias, z);
    for (uint32_t i = 0; fits && (int64_t)i < x_axes && i < xs->rank; i++)
        fits = tv_shape_push(&out, xs->d[i]);
    for (uint32_t i = (uint32_t)y_axes; fits && i < ys->rank; i++)
        fits = tv_shape_push(&out, ys->d[i]);
    if (!fits)
        return tv_run_fail(r, "program.reshape-rank", N_("a tensor has too many dimensions"));
    TV_TRY(as_matrix(r, x, x_axes, &x));
    TV_TRY(as_matrix(r, y, y_axes, &y));
    TV_TRY(tv_rule_matmul(r, (tv_matmul_call){0}, x, y, bias, z));
    return tv_rule_view(r, *z, &out, z);
}

PD_RULE(mul)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), y = tv_pd_in(r, n, "Y", 1);
    uint32_t z = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    TV_TRY(product(r, tv_pd_attr_int(r, n, "x_num_col_dims", 1),
                   tv_pd_attr_int(r, n, "y_num_col_dims", 1), x, y, TV_NO_VALUE, &z));
    tv_pd_out(r, n, "Out", 0, z);
    return NULL;
}

PD_RULE(fc)
{
    const uint32_t x = tv_pd_in(r, n, "Input", 0), w = tv_pd_in(r, n, "W", 1);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w));
    TV_TRY(product(r, tv_pd_attr_int(r, n, "in_num_col_dims", 1), 1, x, w,
                   tv_pd_in(r, n, "Bias", 2), &y));
    TV_TRY(tv_pd_activate(r, tv_node_string(n, "activation_type"), y, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(matmul)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), y = tv_pd_in(r, n, "Y", 1);
    tv_matmul_call call = {0};
    uint32_t z = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    call.transpose_x = tv_pd_attr_num(r, n, "trans_x|transpose_X|transpose_x", 0) != 0;
    call.transpose_y = tv_pd_attr_num(r, n, "trans_y|transpose_Y|transpose_y", 0) != 0;
    TV_TRY(tv_rule_matmul(r, call, x, y, TV_NO_VALUE, &z));
    tv_pd_out(r, n, "Out", 0, z);
    return NULL;
}

/* x·y + bias, with an activation: fused_gemm_epilogue. */
PD_RULE(gemm_epilogue)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), w = tv_pd_in(r, n, "Y", 1),
                   bias = tv_pd_in(r, n, "Bias", 2);
    tv_matmul_call call = {0};
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w));
    call.transpose_x = tv_pd_attr_num(r, n, "trans_x", 0) != 0;
    call.transpose_y = tv_pd_attr_num(r, n, "trans_y", 0) != 0;
    TV_TRY(tv_rule_matmul(r, call, x, w, bias, &y));
    TV_TRY(tv_pd_activate(r, tv_node_string(n, "activation"), y, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(addmm)
{
    const uint32_t c = tv_pd_in(r, n, "Input", 0), x = tv_pd_in(r, n, "X", 1),
                   y = tv_pd_in(r, n, "Y", 2);
    uint32_t z = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    TV_TRY(tv_rule_matmul(r, (tv_matmul_call){0}, x, y, TV_NO_VALUE, &z));
    if (c != TV_NO_VALUE)
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, c, z, &z));
    tv_pd_out(r, n, "Out", 0, z);
    return NULL;
}

/* The last axes multiplied and summed. */
PD_RULE(dot)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), y = tv_pd_in(r, n, "Y", 1);
    const int64_t last = -1;
    uint32_t z = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_MUL}, x, y, &z));
    TV_TRY(tv_rule_reduce(r, (tv_reduce_call){.kind = TV_REDUCE_SUM}, z, &last, 1, &z));
    tv_pd_out(r, n, "Out", 0, z);
    return NULL;
}

PD_RULE(einsum)
{
    const tv_pd_list x = tv_pd_in_list(r, n, "Operands", 0);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_rule_einsum(r, tv_node_string(n, "equation"), x.v, x.n, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* x_i · W_o · y_i for each output: two products. */
PD_RULE(bilinear)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), y = tv_pd_in(r, n, "Y", 1),
                   w = tv_pd_in(r, n, "Weight", 2);
    uint32_t flat = TV_NO_VALUE, z = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    TV_TRY(tv_run_need(r, w));
    const tv_shape *ws = tv_run_shape(r, w), *xs = tv_run_shape(r, x);
    if (ws->rank != 3 || xs->rank < 1)
        return tv_run_fail(r, "program.bilinear", N_("a weight of three axes is expected"));
    const int64_t outs = ws->d[0], in = ws->d[1], other = ws->d[2], rows = xs->d[0];
    TV_TRY(tv_rule_view(r, w, &(tv_shape){.rank = 2, .d = {outs * other, in}}, &flat));
    TV_TRY(tv_rule_linear(r, false, x, flat, TV_NO_VALUE, &z));
    TV_TRY(tv_rule_view(r, z, &(tv_shape){.rank = 3, .d = {rows, outs, other}}, &z));
    TV_TRY(tv_rule_view(r, y, &(tv_shape){.rank = 3, .d = {rows, other, 1}}, &flat));
    TV_TRY(tv_rule_matmul(r, (tv_matmul_call){0}, z, flat, TV_NO_VALUE, &z));
    TV_TRY(tv_rule_view(r, z, &(tv_shape){.rank = 2, .d = {rows, outs}}, &z));
    const uint32_t bias = tv_pd_in(r, n, "Bias", 3);
    if (bias != TV_NO_VALUE)
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, z, bias, &z));
    tv_pd_out(r, n, "Out", 0, z);
    return NULL;
}

/* x by a packed weight [out, in] with scales: the arithmetic is the dense one's. */
PD_RULE(weight_only)
{
    const uint32_t x = tv_pd_in(r, n, "x", 0), w = tv_pd_in(r, n, "weight", 1);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w));
    tv_shape s = *tv_run_shape(r, x);
    const tv_shape *ws = tv_run_shape(r, w);
    const bool four = tv_pd_attr_is(r, n, "weight_dtype", "int4");
    if (s.rank == 0 || ws->rank != 2)
        return tv_run_unknown(r, n);
    const double k = (double)s.d[s.rank - 1];
    s.d[s.rank - 1] = four ? ws->d[0] * 2 : ws->d[0];
    tv_shape scales = {0};
    tv_dtype dtype = TV_DTYPE_UNKNOWN;
    if (tv_pd_declared(r, n, "out", 0, 0, &scales, &dtype) && scales.rank == s.rank &&
        scales.d[s.rank - 1] > 0)
        s.d[s.rank - 1] = scales.d[s.rank - 1];
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, &s);
    tv_step step = {.kind = TV_STEP_MATMUL};
    step.u.matmul.groups = 1;
    step.u.matmul.n = (double)s.d[s.rank - 1];
    step.u.matmul.m = tv_shape_elements(&s) / fmax(step.u.matmul.n, 1);
    step.u.matmul.k = k;
    tv_run_push(r, &step, (uint32_t[]){x, w}, 2, &y, 1);
    tv_pd_out(r, n, "out", 0, y);
    return NULL;
}

/* ---- windows ---- */

static int64_t entry(const tv_pd_ints *v, size_t i, int64_t fallback)
{
    if (v->n == 0)
        return fallback;
    const int64_t x = v->v[i < v->n ? i : v->n - 1];
    return x == PD_OPEN ? fallback : x;
}

/* paddings: one per axis, a pair per axis, or pairs for all axes of the tensor. */
static void read_padding(const tv_pd_ints *p, uint32_t axes, bool last, tv_window *w)
{
    const bool pairs = p->n == 2 * (size_t)axes, all = p->n == 2 * (size_t)axes + 4;
    const size_t first = all ? (last ? 2u : 4u) : 0u;
    for (uint32_t i = 0; i < axes; i++) {
        w->before[i] = pairs || all ? p->v[first + 2 * i] : entry(p, i, 0);
        w->after[i] = pairs || all ? p->v[first + 2 * i + 1] : entry(p, i, 0);
    }
}

static void read_window(tv_running *r, const tv_node *n, uint32_t axes, tv_window *w)
{
    tv_pd_ints stride, dilation, padding;
    const tv_str mode = tv_node_string(n, "padding_algorithm");
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "strides", .place = PD_NONE}, &stride);
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "dilations", .place = PD_NONE}, &dilation);
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "paddings", .place = PD_NONE}, &padding);
    w->axes = axes;
    w->channels_last = tv_pd_channels_last(r, n);
    w->mode = tv_str_is(mode, "SAME")    ? TV_PAD_SAME_UPPER
              : tv_str_is(mode, "VALID") ? TV_PAD_VALID
                                         : TV_PAD_STATED;
    for (uint32_t i = 0; i < axes; i++) {
        w->stride[i] = entry(&stride, i, 1);
        w->dilation[i] = entry(&dilation, i, 1);
    }
    read_padding(&padding, axes, w->channels_last, w);
}

static const tv_err *axes_of(tv_running *r, uint32_t x, uint32_t *axes)
{
    const uint32_t rank = tv_run_shape(r, x)->rank;
    if (rank < 3 || rank - 2 > TV_WINDOW_AXES)
        return tv_run_fail(r, "program.window-rank", N_("no windows slide over so many axes"));
    *axes = rank - 2;
    return NULL;
}

static uint32_t first_of(tv_running *r, const tv_node *n, const char *one, const char *two,
                         int place)
{
    const uint32_t v = tv_pd_in(r, n, one, place);
    return v == TV_NO_VALUE ? tv_pd_in(r, n, two, place) : v;
}

/* What fused convolutions do after: bias, a residual, an activation. */
static const tv_err *conv_tail(tv_running *r, const tv_node *n, uint32_t *y)
{
    const uint32_t residual = tv_pd_in(r, n, "ResidualData", 3);
    tv_str act = tv_node_string(n, "activation");
    if (act.n == 0)
        act = tv_node_string(n, "fuse_activation");
    if (residual != TV_NO_VALUE && tv_str_has(n->op, TV_S("fus")))
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, *y, residual, y));
    return tv_pd_activate(r, act, *y, y);
}

/* arg 1: transposed. */
PD_RULE(conv)
{
    const uint32_t x = tv_pd_in(r, n, "Input", 0), w = tv_pd_in(r, n, "Filter", 1);
    const bool biased = !tv_run_program(r)->pir || tv_str_has(n->op, TV_S("fus")) ||
                        tv_str_ends(n->op, TV_S("_bias"));
    const uint32_t bias = biased ? tv_pd_in(r, n, "Bias", 2) : TV_NO_VALUE;
    tv_pd_ints extra, size;
    tv_conv_call call = {.transposed = rule->arg != 0};
    uint32_t y = TV_NO_VALUE, axes = 0;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w));
    TV_TRY(axes_of(r, x, &axes));
    read_window(r, n, axes, &call.w);
    call.groups = tv_pd_attr_int(r, n, "groups", 1);
    tv_pd_read_ints(r, n, (tv_pd_where){.attr = "output_padding", .place = PD_NONE}, &extra);
    tv_pd_read_ints(r, n,
                    (tv_pd_where){"output_size", "OutputSizeTensor", "OutputSizeTensorList",
                                  call.transposed ? 2 : PD_NONE},
                    &size);
    for (uint32_t i = 0; call.transposed && i < axes; i++) {
        call.extra[i] = entry(&extra, i, 0);
        call.out_size[i] = fmax(0, (double)entry(&size, i, 0)) > 0 ? entry(&size, i, 0) : 0;
    }
    TV_TRY(tv_rule_conv(r, &call, x, w, bias, &y));
    TV_TRY(conv_tail(r, n, &y));
    tv_pd_out(r, n, "Output", 0, y);
    return NULL;
}

/* Deformable: a convolution whose taps are looked up at given offsets. */
PD_RULE(deformable_conv)
{
    const uint32_t x = tv_pd_in(r, n, "Input", 0), offset = tv_pd_in(r, n, "Offset", 1);
    const uint32_t w = tv_pd_in(r, n, "Filter", 2), mask = tv_pd_in(r, n, "Mask", 3);
    tv_conv_call call = {0};
    uint32_t y = TV_NO_VALUE, axes = 0;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, w));
    TV_TRY(axes_of(r, x, &axes));
    read_window(r, n, axes, &call.w);
    call.groups = tv_pd_attr_int(r, n, "groups", 1);
    TV_TRY(tv_run_need(r, offset));
    /* The looked-up taps take the operand's place. */
    const uint32_t taps = tv_run_make(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x));
    const uint32_t operands[] = {x, offset, mask};
    TV_TRY(tv_rule_route(r, operands, mask == TV_NO_VALUE ? 2 : 3, &taps, 1));
    TV_TRY(tv_rule_conv(r, &call, taps, w, TV_NO_VALUE, &y));
    tv_pd_out(r, n, "Output", 0, y);
    return NULL;
}

static void read_pool(tv_running *r, const tv_node *n, uint32_t axes, tv_pool_call *call)
{
    tv_pd_ints kernel;
    const bool adaptive = tv_pd_attr_num(r, n, "adaptive", 0) != 0;
    tv_pd_read_ints(r, n,
                    (tv_pd_where){"ksize|kernel_size", NULL, NULL,
                                  tv_node_attr(n, "kernel_size") ? PD_NONE : 1},
                    &kernel);
    read_window(r, n, axes, &call->w);
    call->max = tv_pd_attr_is(r, n, "pooling_type", "max") || tv_str_has(n->op, TV_S("max"));
    call->global = tv_pd_attr_num(r, n, "global_pooling", 0) != 0;
    call->w.ceil = tv_pd_attr_num(r, n, "ceil_mode", 0) != 0;
    call->w.keeps_tail = true;
    call->index_dtype = TV_I32;
    for (uint32_t i = 0; i < axes; i++) {
        call->w.kernel[i] = entry(&kernel, i, 1);
        call->adaptive[i] = adaptive ? entry(&kernel, i, 1) : 0;
        /* -1: as large as the operand's axis is handled by the window of one. */
        if (call->adaptive[i] < 0)
            call->adaptive[i] = 0;
    }
}

PD_RULE(pool)
{
    const uint32_t x = first_of(r, n, "X", "x", 0);
    tv_pool_call call = {0};
    uint32_t y = TV_NO_VALUE, mask = TV_NO_VALUE, axes = 0;
    const bool indices = tv_pd_out_count(r, n, "Mask", 1) > 0;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(axes_of(r, x, &axes));
    read_pool(r, n, axes, &call);
    TV_TRY(tv_rule_pool(r, &call, x, &y, indices ? &mask : NULL));
    tv_pd_out(r, n, "Out", 0, y);
    tv_pd_out(r, n, "Mask", 1, mask);
    return NULL;
}

/* ---- norms ---- */

/* ProgramDesc names them, PIR has x, mean, variance, scale, bias. */
PD_RULE(batch_norm)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const tv_norm_call call = {.kind = TV_NORM_BATCH, .channels_last = tv_pd_channels_last(r, n)};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_norm(r, &call, x, tv_pd_in(r, n, "Scale", 3), tv_pd_in(r, n, "Bias", 4), &y));
    const uint32_t added = rule->arg ? tv_pd_in(r, n, "Z", 5) : TV_NO_VALUE;
    if (added != TV_NO_VALUE)
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, y, added, &y));
    tv_str act = tv_node_string(n, "act_type");
    TV_TRY(tv_pd_activate(r, act.n ? act : tv_node_string(n, "activation"), y, &y));
    tv_pd_out(r, n, "Y", 0, y);
    /* The statistics go on under their names. */
    const uint32_t mean = tv_pd_in(r, n, "Mean", 1), variance = tv_pd_in(r, n, "Variance", 2);
    tv_pd_out(r, n, "MeanOut", 1, mean);
    tv_pd_out(r, n, "VarianceOut", 2, variance);
    return NULL;
}

PD_RULE(layer_norm)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_norm_call call = {.kind = TV_NORM_LAYER};
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const double axis = tv_pd_attr_num(r, n, "begin_norm_axis", 1);
    call.axis = (uint32_t)fmax(axis < 0 ? axis + tv_run_shape(r, x)->rank : axis, 0);
    TV_TRY(tv_rule_norm(r, &call, x, tv_pd_in(r, n, "Scale", 1), tv_pd_in(r, n, "Bias", 2), &y));
    tv_pd_out(r, n, "Y", 0, y);
    return NULL;
}

PD_RULE(group_norm)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    tv_norm_call call = {.kind = TV_NORM_GROUP, .instance = rule->arg != 0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    call.groups = (int64_t)fmax(tv_pd_attr_num(r, n, "groups", 1), 1);
    call.channels_last = tv_pd_channels_last(r, n);
    TV_TRY(tv_rule_norm(r, &call, x, tv_pd_in(r, n, "Scale", 1), tv_pd_in(r, n, "Bias", 2), &y));
    tv_pd_out(r, n, "Y", 0, y);
    return NULL;
}

/* rms_norm(x, bias, residual, norm_weight, norm_bias ...) and fused_rms_norm(x, scale, ...). */
PD_RULE(rms_norm)
{
    uint32_t x = tv_pd_in(r, n, "x", 0), y = TV_NO_VALUE;
    const bool plain = rule->arg != 0;
    const uint32_t residual = plain ? TV_NO_VALUE : tv_pd_in(r, n, "residual", 2);
    tv_norm_call call = {.kind = TV_NORM_RMS_FUSED};
    TV_TRY(tv_run_need(r, x));
    if (residual != TV_NO_VALUE) {
        TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, x, residual, &x));
        tv_pd_out(r, n, "residual_out", 1, x);
    }
    const double axis = tv_pd_attr_num(r, n, "begin_norm_axis", -1);
    call.axis = (uint32_t)fmax(axis < 0 ? axis + tv_run_shape(r, x)->rank : axis, 0);
    TV_TRY(tv_rule_norm(r, &call, x, tv_pd_in(r, n, plain ? "scale" : "norm_weight", plain ? 1 : 3),
                        TV_NO_VALUE, &y));
    tv_pd_out(r, n, plain ? "y" : "out", 0, y);
    return NULL;
}

/* A scale and a bias per channel. */
PD_RULE(affine_channel)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const tv_norm_call call = {.kind = TV_NORM_BATCH_FROZEN,
                               .channels_last = tv_pd_channels_last(r, n)};
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_norm(r, &call, x, tv_pd_in(r, n, "Scale", 1), tv_pd_in(r, n, "Bias", 2), &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* Local response: sums over neighbouring channels. */
PD_RULE(lrn)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = TV_FN_SQUARE}, x, &y));
    TV_TRY(tv_rule_cumulative(r, y, &y));
    TV_TRY(tv_rule_fn(r, (tv_fn_call){.fn = TV_FN_POW, .a = 0.75}, y, &y));
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_DIV}, x, y, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(dropout)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    const bool mode = tv_pd_attr_num(r, n, "is_test", 0) != 0 && !tv_run_training(r);
    const tv_pd_where where = {.attr = "dropout_prob|p",
                               .place = tv_node_attr(n, "p") ? PD_NONE : 2};
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_rule_dropout(r, mode ? 0 : tv_pd_read_num(r, n, where, 0.5), x, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* ---- embeddings ---- */

PD_RULE(embedding)
{
    const bool pir = tv_run_program(r)->pir;
    const uint32_t w = tv_pd_in(r, n, "W", tv_str_is(n->op, "c_embedding") ? 0 : 1);
    uint32_t ids = tv_pd_in(r, n, "Ids", tv_str_is(n->op, "c_embedding") ? 1 : 0), y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, w));
    TV_TRY(tv_run_need(r, ids));
    /* The first form's ids end with an axis of size 1. */
    tv_shape s = *tv_run_shape(r, ids);
    if (!pir && tv_str_is(n->op, "lookup_table") && s.rank > 1 && s.d[s.rank - 1] == 1) {
        s.rank--;
        TV_TRY(tv_rule_view(r, ids, &s, &ids));
    }
    TV_TRY(tv_rule_gather(r, 0, w, ids, &y));
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

/* ---- resizing ---- */

typedef struct new_size {
    int64_t v[TV_WINDOW_AXES];
    bool known;
} new_size;

static double scale_at(tv_running *r, const tv_node *n, uint32_t i)
{
    const uint32_t tensor = tv_pd_in(r, n, "Scale", 3);
    const tv_attr *a = tv_node_attr(n, "scale");
    if (tensor != TV_NO_VALUE) {
        const double *data = tv_run_data(r, tensor);
        const int64_t count = tv_shape_count(tv_run_shape(r, tensor));
        return data && count > 0 ? data[(int64_t)i < count ? i : 0] : 0;
    }
    if (a && a->kind == TV_ATTR_FLOATS && a->n)
        return a->u.floats[i < a->n ? i : a->n - 1];
    if (a && a->kind == TV_ATTR_INTS && a->n) /* whole factors of PIR */
        return (double)a->u.ints[i < a->n ? i : a->n - 1];
    return tv_pd_attr_num(r, n, "scale", 0);
}

/* Sizes by tensors, then by factors, then by attributes. */
static new_size wanted_size(tv_running *r, const tv_node *n, const int64_t *old, uint32_t axes)
{
    static const char *const attrs[] = {"out_w", "out_h", "out_d"};
    new_size s = {.known = true};
    tv_pd_ints sizes;
    tv_pd_read_ints(r, n, (tv_pd_where){NULL, "OutSize", "SizeTensor", 2}, &sizes);
    if (!sizes.given)
        tv_pd_read_ints(r, n, (tv_pd_where){NULL, "OutSize", NULL, 1}, &sizes);
    for (uint32_t i = 0; i < axes; i++) {
        const double factor = scale_at(r, n, i);
        const int64_t stated = tv_pd_attr_int(r, n, attrs[axes - 1 - i], -1);
        s.v[i] = stated;
        if (factor > 0)
            s.v[i] = (int64_t)((double)old[i] * factor);
        if (sizes.given && i < sizes.n)
            s.v[i] = sizes.v[i];
        if (s.v[i] <= 0)
            s.known = false;
        s.v[i] = s.v[i] <= 0 ? (stated > 0 ? stated : 2 * old[i]) : s.v[i];
    }
    return s;
}

PD_RULE(resize)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    uint32_t y = TV_NO_VALUE, axes = 0;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(axes_of(r, x, &axes));
    tv_shape s = *tv_run_shape(r, x);
    const uint32_t first = tv_pd_channels_last(r, n) ? 1 : 2;
    const new_size want = wanted_size(r, n, &s.d[first], axes);
    for (uint32_t i = 0; i < axes; i++)
        s.d[first + i] = want.v[i];
    TV_TRY(tv_rule_resize(r, rule->arg != 0, &s, x, &y));
    if (!want.known)
        tv_run_guess(r, y);
    tv_pd_out(r, n, "Out", 0, y);
    return NULL;
}

PD_RULE(grid_sample)
{
    const uint32_t x = first_of(r, n, "X", "x", 0), grid = tv_pd_in(r, n, "Grid", 1);
    uint32_t y = TV_NO_VALUE;
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, grid));
    tv_shape s = *tv_run_shape(r, x);
    const tv_shape *g = tv_run_shape(r, grid);
    for (uint32_t i = 2; i < s.rank && i - 1 < g->rank; i++)
        s.d[i] = g->d[i - 1];
    tv_step step = {.kind = TV_STEP_RESIZE};
    step.u.resize.nearest = tv_pd_attr_is(r, n, "mode", "nearest");
    y = tv_run_make(r, tv_run_at(r, x)->dtype, &s);
    tv_run_push(r, &step, (uint32_t[]){x, grid}, 2, &y, 1);
    tv_pd_out(r, n, "Output", 0, y);
    return NULL;
}

/* theta [n, 2, 3] and a size to a grid [n, h, w, 2]. */
PD_RULE(affine_grid)
{
    const uint32_t theta = tv_pd_in(r, n, "Theta", 0);
    tv_pd_ints size;
    (void)rule;
    TV_TRY(tv_run_need(r, theta));
    tv_pd_read_ints(r, n, (tv_pd_where){"output_shape", "OutputShape", NULL, 1}, &size);
    tv_shape s = {.rank = 4,
                  .d = {tv_run_shape(r, theta)->d[0], entry(&size, 2, 1), entry(&size, 3, 1), 2}};
    const uint32_t y = tv_run_make(r, tv_run_at(r, theta)->dtype, &s);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "Output", 0, y);
    return NULL;
}

/* ---- quantisation ---- */

/* arg 0: to integers, 1: back, 2: there and back at once, as training does. */
PD_RULE(quantize)
{
    const uint32_t x = first_of(r, n, "X", "Input", 0);
    static const tv_fn fns[] = {TV_FN_QUANTIZE, TV_FN_DEQUANTIZE, TV_FN_QUANTIZE};
    tv_fn_call call = {.fn = fns[rule->arg]};
    tv_shape declared = {0};
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_run_need(r, x));
    const char *out = tv_pd_out_count(r, n, "Y", 0)     ? "Y"
                      : tv_pd_out_count(r, n, "Out", 0) ? "Out"
                                                        : "Output";
    call.dtype = tv_run_at(r, x)->dtype;
    (void)tv_pd_declared(r, n, out, 0, 0, &declared, &call.dtype);
    TV_TRY(tv_rule_fn(r, call, x, &y));
    tv_pd_out(r, n, out, 0, y);
    const uint32_t scale = first_of(r, n, "InScale", "Scale", 1);
    if (scale != TV_NO_VALUE)
        tv_pd_out(r, n, "OutScale", 1, scale);
    return NULL;
}

static const tv_rule rules[] = {
    {"mul", mul, 0},
    {"matmul_with_flatten", mul, 0},
    {"fc", fc, 0},
    {"matmul", matmul, 0},
    {"matmul_v2", matmul, 0},
    {"bmm", matmul, 0},
    {"mv", matmul, 0},
    {"fused_matmul", matmul, 0},
    {"matmul_int8", matmul, 0},
    {"fused_gemm_epilogue", gemm_epilogue, 0},
    {"gemm_epilogue", gemm_epilogue, 0},
    {"linear_v2", gemm_epilogue, 0},
    {"addmm", addmm, 0},
    {"baddbmm", addmm, 0},
    {"dot", dot, 0},
    {"einsum", einsum, 0},
    {"bilinear_tensor_product", bilinear, 0},
    {"bilinear", bilinear, 0},
    {"weight_only_linear", weight_only, 0},
    {"llm_int8_linear", weight_only, 0},
    {"conv1d", conv, 0},
    {"conv2d", conv, 0},
    {"conv3d", conv, 0},
    {"depthwise_conv2d", conv, 0},
    {"conv2d_fusion", conv, 0},
    {"fused_conv2d", conv, 0},
    {"fused_conv2d_add_act", conv, 0},
    {"fused_conv3d", conv, 0},
    {"conv2d_xpu", conv, 0},
    {"conv2d_transpose", conv, 1},
    {"conv3d_transpose", conv, 1},
    {"depthwise_conv2d_transpose", conv, 1},
    {"conv2d_transpose_bias", conv, 1},
    {"deformable_conv", deformable_conv, 0},
    {"deformable_conv_v1", deformable_conv, 0},
    {"pool2d", pool, 0},
    {"pool3d", pool, 0},
    {"lp_pool2d", pool, 0},
    {"max_pool2d_v2", pool, 0},
    {"max_pool2d_with_index", pool, 0},
    {"max_pool3d_with_index", pool, 0},
    {"batch_norm", batch_norm, 0},
    {"sync_batch_norm", batch_norm, 0},
    {"inplace_abn", batch_norm, 0},
    {"fused_batch_norm_act", batch_norm, 0},
    {"fused_bn_add_activation", batch_norm, 1},
    {"layer_norm", layer_norm, 0},
    {"group_norm", group_norm, 0},
    {"instance_norm", group_norm, 1},
    {"rms_norm", rms_norm, 0},
    {"fused_rms_norm", rms_norm, 1},
    {"affine_channel", affine_channel, 0},
    {"data_norm", affine_channel, 0},
    {"lrn", lrn, 0},
    {"dropout", dropout, 0},
    {"dropout_nd", dropout, 0},
    {"lookup_table", embedding, 0},
    {"lookup_table_v2", embedding, 0},
    {"embedding", embedding, 0},
    {"c_embedding", embedding, 0},
    {"nearest_interp", resize, 1},
    {"nearest_interp_v2", resize, 1},
    {"bilinear_interp", resize, 0},
    {"bilinear_interp_v2", resize, 0},
    {"bicubic_interp", resize, 0},
    {"bicubic_interp_v2", resize, 0},
    {"linear_interp", resize, 0},
    {"linear_interp_v2", resize, 0},
    {"trilinear_interp", resize, 0},
    {"trilinear_interp_v2", resize, 0},
    {"grid_sampler", grid_sample, 0},
    {"grid_sample", grid_sample, 0},
    {"affine_grid", affine_grid, 0},
    {"quantize_linear", quantize, 0},
    {"quantize", quantize, 0},
    {"requantize", quantize, 0},
    {"dequantize_linear", quantize, 1},
    {"dequantize", quantize, 1},
    {"dequantize_abs_max", quantize, 1},
    {"fake_quantize_abs_max", quantize, 0},
    {"fake_quantize_range_abs_max", quantize, 0},
    {"fake_quantize_moving_average_abs_max", quantize, 0},
    {"fake_channel_wise_quantize_abs_max", quantize, 0},
    {"fake_dequantize_max_abs", quantize, 1},
    {"fake_channel_wise_dequantize_max_abs", quantize, 1},
    {"fake_quantize_dequantize_abs_max", quantize, 2},
    {"fake_quantize_dequantize_moving_average_abs_max", quantize, 2},
    {"fake_channel_wise_quantize_dequantize_abs_max", quantize, 2},
    {"moving_average_abs_max_scale", quantize, 2},
};

const tv_rule_table tv_rules_paddle_net = {TV_DIALECT_PADDLE, "", rules,
                                           sizeof rules / sizeof *rules};
