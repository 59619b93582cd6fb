/* Recurrent mixers as ops: selective scans, state-space duality, delta rules, short convolutions.
 * The state that a sequence keeps between tokens: taps - 1 columns of the convolution in the
 * stream's type and one fp32 state (docs/model.md, "recurrent state"). */
#include "decoder.h"

static tv_form tokens_of(const tv_decoder *d, tv_val x)
{
    return tv_form_scale(x.n, 1 / d->hidden);
}

static tv_val part(tv_val v, tv_form tokens, double width)
{
    return tv_emit_view(v, tv_form_scale(tokens, width));
}

static tv_val linear(tv_emit *e, const char *name, double in, double out, bool bias, bool row,
                     tv_form rows, tv_val x)
{
    tv_linear l = {.name = name,
                   .in = in,
                   .out = out,
                   .rows = rows,
                   .bias = bias,
                   .shard = TV_SHARD_TENSOR,
                   .row = row};
    return tv_emit_linear(e, &l, x);
}

/* A causal convolution per channel, then SiLU. */
static tv_val short_conv(tv_emit *e, const char *name, const tv_decoder_mix *m, double width,
                         tv_val x)
{
    tv_conv c = {.name = name,
                 .in = width,
                 .out = width,
                 .kernel = m->conv,
                 .groups = width,
                 .positions = tv_emit_tokens(e),
                 .bias = m->conv_bias};
    return tv_emit_conv(e, &c, x);
}

static void keep_state(tv_emit *e, const tv_decoder_mix *m, double conv_width, double state)
{
    double taps = m->conv > 1 ? m->conv - 1 : 0;
    double bytes = taps * conv_width * tv_dtype_bytes(e->set->policy.stream) + 4 * state;
    tv_emit_cache(e, 0, 0, 0, bytes);
}

static void vector(tv_emit *e, const char *name, double n)
{
    tv_emit_weight(e, name, TV_WEIGHT_OTHER, n, 1, 1, TV_SHARD_TENSOR);
}

static tv_val mamba(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x)
{
    tv_form t = tokens_of(d, x);
    double inner = m->inner;
    tv_val xz = linear(e, "mamba.in_proj", d->hidden, 2 * inner, m->scan_bias, false, t, x);
    tv_val h = short_conv(e, "mamba.conv1d", m, inner, part(xz, t, inner));
    h = tv_emit_act(e, "mamba.conv_act", TV_ACT_SILU, h);
    double params = m->dt_rank + 2 * m->state;
    tv_val dbc = linear(e, "mamba.x_proj", inner, params, false, true, t, h);
    tv_val dt = part(dbc, t, m->dt_rank);
    if (m->scan_norms) {
        dt = tv_emit_norm(e, "mamba.dt_layernorm", d->norm, dt, m->dt_rank, true, false);
        tv_val b = part(dbc, t, m->state);
        (void)tv_emit_norm(e, "mamba.b_layernorm", d->norm, b, m->state, true, false);
        (void)tv_emit_norm(e, "mamba.c_layernorm", d->norm, b, m->state, true, false);
    }
    (void)linear(e, "mamba.dt_proj", m->dt_rank, inner, true, false, t, dt);
    tv_emit_weight(e, "mamba.A_log", TV_WEIGHT_OTHER, inner, m->state, 1, TV_SHARD_TENSOR);
    vector(e, "mamba.D", inner);
    h = tv_emit_scan(e, "mamba.scan", h, inner, inner, m->state);
    tv_val gate = tv_emit_act(e, "mamba.gate", TV_ACT_SILU, part(xz, t, inner));
    h = tv_emit_mul(e, "mamba.gated", h, gate);
    keep_state(e, m, inner, inner * m->state);
    return linear(e, "mamba.out_proj", inner, d->hidden, m->scan_bias, true, t, h);
}

static tv_val mamba2(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x)
{
    tv_form t = tokens_of(d, x);
    double conv_width = m->inner + 2 * m->groups * m->state;
    tv_val all = linear(e, "mamba.in_proj", d->hidden, m->inner + conv_width + m->scan_heads,
                        m->scan_bias, false, t, x);
    tv_val h = short_conv(e, "mamba.conv1d", m, conv_width, part(all, t, conv_width));
    h = tv_emit_act(e, "mamba.conv_act", TV_ACT_SILU, h);
    vector(e, "mamba.dt_bias", m->scan_heads);
    vector(e, "mamba.A_log", m->scan_heads);
    vector(e, "mamba.D", m->scan_heads);
    h = tv_emit_scan(e, "mamba.scan", h, m->inner, m->inner, m->state);
    tv_val gate = tv_emit_act(e, "mamba.gate", TV_ACT_SILU, part(all, t, m->inner));
    h = tv_emit_mul(e, "mamba.gated", h, gate);
    h = tv_emit_norm(e, "mamba.norm", TV_NORM_RMS, h, m->inner, true, false);
    keep_state(e, m, conv_width, m->inner * m->state);
    return linear(e, "mamba.out_proj", m->inner, d->hidden, m->scan_bias, true, t, h);
}

/* Key width per value head times value width: one matrix per head. */
static double delta_state(const tv_decoder_mix *m)
{
    return m->scan_heads * m->key_dim * m->value_dim;
}

static tv_val delta(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x)
{
    tv_form t = tokens_of(d, x);
    double key = m->key_heads * m->key_dim, value = m->inner, conv_width = 2 * key + value;
    tv_val mixed, z;
    if (m->split_proj) {
        mixed = linear(e, "linear_attn.in_proj_qkv", d->hidden, conv_width, false, false, t, x);
        z = linear(e, "linear_attn.in_proj_z", d->hidden, value, false, false, t, x);
        (void)linear(e, "linear_attn.in_proj_b", d->hidden, m->scan_heads, false, false, t, x);
        (void)linear(e, "linear_attn.in_proj_a", d->hidden, m->scan_heads, false, false, t, x);
    } else {
        tv_val all = linear(e, "linear_attn.in_proj_qkvz", d->hidden, conv_width + value, false,
                            false, t, x);
        (void)linear(e, "linear_attn.in_proj_ba", d->hidden, 2 * m->scan_heads, false, false, t, x);
        mixed = part(all, t, conv_width);
        z = part(all, t, value);
    }
    tv_val h = short_conv(e, "linear_attn.conv1d", m, conv_width, mixed);
    h = tv_emit_act(e, "linear_attn.conv_act", TV_ACT_SILU, h);
    vector(e, "linear_attn.dt_bias", m->scan_heads);
    vector(e, "linear_attn.A_log", m->scan_heads);
    h = tv_emit_scan(e, "linear_attn.scan", h, value, value, m->key_dim);
    h = tv_emit_norm(e, "linear_attn.norm", TV_NORM_RMS, h, m->value_dim, true, false);
    h = tv_emit_mul(e, "linear_attn.gated", h, tv_emit_act(e, "linear_attn.gate", TV_ACT_SILU, z));
    keep_state(e, m, conv_width, delta_state(m));
    return linear(e, "linear_attn.out_proj", value, d->hidden, false, true, t, h);
}

static tv_val kda(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x)
{
    static const char *const names[3][3] = {
        {"self_attn.q_proj", "self_attn.q_conv1d", "self_attn.q_act"},
        {"self_attn.k_proj", "self_attn.k_conv1d", "self_attn.k_act"},
        {"self_attn.v_proj", "self_attn.v_conv1d", "self_attn.v_act"},
    };
    tv_form t = tokens_of(d, x);
    double inner = m->inner, width = m->key_dim;
    tv_val qkv[3];
    for (int i = 0; i < 3; i++) {
        qkv[i] = linear(e, names[i][0], d->hidden, inner, false, false, t, x);
        qkv[i] = short_conv(e, names[i][1], m, inner, qkv[i]);
        qkv[i] = tv_emit_act(e, names[i][2], TV_ACT_SILU, qkv[i]);
    }
    tv_val f = linear(e, "self_attn.f_a_proj", d->hidden, width, false, false, t, x);
    (void)linear(e, "self_attn.f_b_proj", width, inner, false, false, t, f);
    (void)linear(e, "self_attn.b_proj", d->hidden, m->scan_heads, false, false, t, x);
    vector(e, "self_attn.A_log", m->scan_heads);
    vector(e, "self_attn.dt_bias", inner);
    tv_val all = tv_emit_concat(e, "self_attn.qkv", qkv, 3);
    tv_val h = tv_emit_scan(e, "self_attn.scan", all, inner, inner, width);
    h = tv_emit_norm(e, "self_attn.o_norm", TV_NORM_RMS, h, m->value_dim, true, false);
    tv_val gate;
    if (m->split_proj) {
        gate = linear(e, "self_attn.g_proj", d->hidden, inner, false, false, t, x);
    } else {
        gate = linear(e, "self_attn.g_a_proj", d->hidden, width, false, false, t, x);
        gate = linear(e, "self_attn.g_b_proj", width, inner, true, false, t, gate);
    }
    gate = tv_emit_act(e, "self_attn.gate", TV_ACT_SIGMOID, gate);
    h = tv_emit_mul(e, "self_attn.gated", h, gate);
    keep_state(e, m, 3 * inner, delta_state(m));
    return linear(e, "self_attn.o_proj", inner, d->hidden, false, true, t, h);
}

/* Two gates around a short convolution (LFM2). */
static tv_val gated_conv(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x)
{
    tv_form t = tokens_of(d, x);
    tv_val all = linear(e, "conv.in_proj", d->hidden, 3 * m->inner, m->conv_bias, false, t, x);
    tv_val h = tv_emit_mul(e, "conv.gate_in", part(all, t, m->inner), part(all, t, m->inner));
    h = short_conv(e, "conv.conv", m, m->inner, h);
    h = tv_emit_mul(e, "conv.gate_out", h, part(all, t, m->inner));
    keep_state(e, m, m->inner, 0);
    return linear(e, "conv.out_proj", m->inner, d->hidden, m->conv_bias, true, t, h);
}

tv_val tv_decoder_scan_emit(tv_emit *e, const tv_decoder *d, const tv_decoder_mix *m, tv_val x)
{
    switch (m->kind) {
    case TV_MIX_MAMBA:
        return mamba(e, d, m, x);
    case TV_MIX_MAMBA2:
        return mamba2(e, d, m, x);
    case TV_MIX_DELTA:
        return delta(e, d, m, x);
    case TV_MIX_KDA:
        return kda(e, d, m, x);
    case TV_MIX_CONV:
        return gated_conv(e, d, m, x);
    case TV_MIX_NONE:
    case TV_MIX_ATTENTION:
    case TV_MIX_LATENT:
    case TV_MIX_CROSS:
    case TV_MIX_COMPRESSED:
        break;
    }
    return x;
}
