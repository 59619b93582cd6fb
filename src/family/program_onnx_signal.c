/* ONNX: signals (spectra, windows, filters) and pictures as files. */
#include <math.h>

#include "program_onnx.h"

static int64_t scalar_of(tv_running *r, const tv_node *n, size_t i, int64_t fallback)
{
    double v = tv_run_scalar(r, tv_run_in(r, n, i), (double)fallback);
    return v > -1e12 && v < 1e12 ? (int64_t)v : fallback;
}

/* About 5·n·log2(n) per transform; they cost as a scan over the signal does. */
static const tv_err *transformed(tv_running *r, const tv_node *n, const tv_shape *shape,
                                 double length)
{
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, shape);
    tv_step s = {.kind = TV_STEP_SCAN};
    s.u.scan.inner = tv_shape_elements(shape);
    s.u.scan.state = length > 1 ? log2(length) : 1;
    tv_run_push(r, &s, &x, 1, &y, 1);
    return tv_opset_done(r, n, y);
}

/* [batch, signal..., 1 or 2] -> [..., 2], or one real part from half of a spectrum. */
static const tv_err *dft(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = *tv_run_shape(r, x);
    bool old = tv_node_attr(n, "axis") != NULL || tv_run_opset(r, "") < 20;
    int64_t axis = old ? tv_node_int(n, "axis", 1) : scalar_of(r, n, 2, -2);
    uint32_t at = 0;
    if (shape.rank < 2 || !tv_shape_axis(axis, shape.rank, &at))
        return tv_run_fail_shapes(r, "program.axes", N_("an axis is not one of {x}"), &shape, NULL);
    bool onesided = tv_node_int(n, "onesided", 0) != 0;
    bool inverse = tv_node_int(n, "inverse", 0) != 0;
    int64_t length = scalar_of(r, n, 1, shape.d[at]);
    shape.d[at] = onesided && !inverse ? length / 2 + 1 : length;
    shape.d[shape.rank - 1] = onesided && inverse ? 1 : 2;
    return transformed(r, n, &shape, (double)length);
}

/* [batch, signal(, 1 or 2)] in steps of frame_step -> [batch, frames, bins, 2]. */
static const tv_err *stft(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    int64_t step = scalar_of(r, n, 1, 1);
    uint32_t window = tv_run_in(r, n, 2);
    int64_t length = scalar_of(r, n, 3, 0);
    if (length <= 0 && window != TV_NO_VALUE && tv_run_shape(r, window)->rank == 1)
        length = tv_run_shape(r, window)->d[0];
    if (s->rank < 2 || step < 1 || length < 1 || length > s->d[1])
        return tv_run_fail_shapes(r, "program.window", N_("a window does not fit into {x}"), s,
                                  NULL);
    bool complex_signal = s->rank == 3 && s->d[2] == 2;
    bool onesided = tv_node_int(n, "onesided", 1) != 0 && !complex_signal;
    tv_shape shape = tv_shape_of(4, (int64_t[]){s->d[0], (s->d[1] - length) / step + 1,
                                                onesided ? length / 2 + 1 : length, 2});
    return transformed(r, n, &shape, (double)length);
}

static const tv_err *mel_weights(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_shape shape =
        tv_shape_of(2, (int64_t[]){scalar_of(r, n, 1, 0) / 2 + 1, scalar_of(r, n, 0, 0)});
    uint32_t y = tv_run_make(r, tv_opset_dtype(tv_node_int(n, "output_datatype", 1)), &shape);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY}, tv_opset_operands(r, n), n->n_inputs, &y, 1);
    return tv_opset_done(r, n, y);
}

static const tv_err *window(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t size = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, size));
    int64_t count = scalar_of(r, n, 0, 0);
    tv_shape shape = tv_shape_of(1, &count);
    uint32_t y = tv_run_make(r, tv_opset_dtype(tv_node_int(n, "output_datatype", 1)), &shape);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_COPY}, &size, 1, &y, 1);
    return tv_opset_done(r, n, y);
}

/* The picture's size is in its bytes: a guess of a usual one, in three colours. */
static const tv_err *image_decoder(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    tv_shape shape = tv_shape_of(3, (int64_t[]){224, 224, 3});
    return tv_opset_guess(r, n, (tv_dtype[]){TV_U8}, &shape, 1);
}

static const tv_rule rules[] = {
    {"BlackmanWindow", window, 0},
    {"DFT", dft, 0},
    {"HammingWindow", window, 0},
    {"HannWindow", window, 0},
    {"ImageDecoder", image_decoder, 0},
    {"MelWeightMatrix", mel_weights, 0},
    {"STFT", stft, 0},
};

const tv_rule_table tv_rules_onnx_signal = {TV_DIALECT_ONNX, "", rules,
                                            sizeof rules / sizeof *rules};
