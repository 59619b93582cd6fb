/* Diffusion transformers over latent patches, diffusers' classes: Flux, SD3, HunyuanDiT, PixArt
 * and plain DiT. Knows their modules and configuration keys; every norm is scaled, shifted and
 * gated by a condition. Does not know what an op saves or costs (desc/emit.h). */
#include "diffusion.h"

#include <math.h>

typedef struct dit {
    tv_emit *e;
    double width, heads, head_dim;
    double image, text; /* tokens */
    tv_val cond;        /* one vector a sample */
    bool qk_norm;
} dit;

static double num(const tv_json *c, const char *key, double fallback)
{
    return tv_json_num(tv_json_get(c, key), fallback);
}

static tv_val linear(dit *d, const char *name, double in, double out, bool bias, tv_val v)
{
    return tv_emit_linear(
        d->e,
        &(tv_linear){.name = name, .in = in, .out = out, .bias = bias, .shard = TV_SHARD_TENSOR},
        v);
}

static tv_val condition_layers(dit *d, const char *name, double in, double hidden, double out,
                               tv_val v)
{
    v = linear(d, name, in, hidden, true, v);
    return linear(d, name, hidden, out, true, tv_emit_act(d->e, "silu", TV_ACT_SILU, v));
}

static void plain_weight(dit *d, const char *name, double rows, double cols)
{
    tv_emit_weight(d->e, name, TV_WEIGHT_OTHER, rows, cols, 1, TV_SHARD_NONE);
}

/* silu and one linear layer give n vectors of the width. */
static tv_val modulation(dit *d, const char *name, double n)
{
    tv_val act = tv_emit_act(d->e, "silu", TV_ACT_SILU, d->cond);
    return linear(d, name, d->width, n * d->width, true, act);
}

static tv_val part_of(const dit *d, tv_val mod)
{
    return tv_emit_view(mod, tv_form_per_batch(d->width));
}

/* norm without parameters · (1 + scale) + shift */
static tv_val modulated(dit *d, const char *name, tv_val v, tv_val mod)
{
    v = tv_emit_norm(d->e, name, TV_NORM_LAYER, v, d->width, false, false);
    v = tv_emit_mul(d->e, "scale", v, part_of(d, mod));
    return tv_emit_add(d->e, "shift", v, part_of(d, mod));
}

static tv_val gated(dit *d, tv_val x, tv_val part, tv_val mod)
{
    part = tv_emit_mul(d->e, "gate", part, part_of(d, mod));
    return tv_emit_add(d->e, "residual", x, part);
}

static tv_val feed_forward(dit *d, const char *up, const char *down, double inter, tv_val v)
{
    return tv_emit_mlp_part(d->e,
                            &(tv_mlp_part){.up = up,
                                           .down = down,
                                           .hidden = d->width,
                                           .inter = inter,
                                           .act = TV_ACT_GELU,
                                           .bias = true},
                            v);
}

typedef struct streams {
    tv_val q, k, v;
} streams;

static streams project(dit *d, const char *const names[3], double in, tv_val x)
{
    const double inner = d->heads * d->head_dim;
    streams s;
    s.q = linear(d, names[0], in, inner, true, x);
    s.k = linear(d, names[1], in, inner, true, x);
    s.v = linear(d, names[2], in, inner, true, x);
    if (d->qk_norm) {
        s.q = tv_emit_norm(d->e, "norm_q", TV_NORM_RMS, s.q, d->head_dim, true, false);
        s.k = tv_emit_norm(d->e, "norm_k", TV_NORM_RMS, s.k, d->head_dim, true, false);
    }
    return s;
}

static tv_val joined(dit *d, const char *name, tv_val x, tv_val y)
{
    const tv_val both[2] = {x, y};
    return tv_emit_concat(d->e, name, both, 2);
}

static tv_val attend(dit *d, double q_tokens, double k_tokens, bool cross, streams s)
{
    return tv_emit_attention(d->e,
                             &(tv_attention){.name = "attn",
                                             .heads = d->heads,
                                             .kv_heads = d->heads,
                                             .head_dim = d->head_dim,
                                             .q_tokens = q_tokens,
                                             .k_tokens = k_tokens,
                                             .cross = cross,
                                             .dropout = -1,
                                             .shard = TV_SHARD_TENSOR},
                             s.q, s.k, s.v);
}

static const char *const own[3] = {"attn.to_q", "attn.to_k", "attn.to_v"};
static const char *const added[3] = {"attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj"};

/* Two streams that share one attention; the last block of SD3 drops the text afterwards. */
static void put_double(dit *d, bool rope, bool drops_text, tv_val *image, tv_val *text)
{
    tv_emit *e = d->e;
    const double all = d->image + d->text;
    tv_val mod = modulation(d, "norm1.linear", 6);
    tv_val mod_text = modulation(d, "norm1_context.linear", drops_text ? 2 : 6);
    streams a = project(d, own, d->width, modulated(d, "norm1", *image, mod));
    streams b = project(d, added, d->width, modulated(d, "norm1_context", *text, mod_text));
    streams s = {joined(d, "q", b.q, a.q), joined(d, "k", b.k, a.k), joined(d, "v", b.v, a.v)};
    if (rope) {
        s.q = tv_emit_rope(e, "rope_q", s.q);
        s.k = tv_emit_rope(e, "rope_k", s.k);
    }
    const double inner = d->heads * d->head_dim;
    tv_val out = attend(d, all, all, false, s);
    tv_val image_out = tv_emit_view(out, tv_form_per_batch(d->image * inner));
    image_out = linear(d, "attn.to_out.0", inner, d->width, true, image_out);
    *image = gated(d, *image, image_out, mod);
    tv_val f = modulated(d, "norm2", *image, mod);
    *image = gated(d, *image, feed_forward(d, "ff.net.0.proj", "ff.net.2", 4 * d->width, f), mod);
    if (drops_text)
        return;
    tv_val text_out = tv_emit_view(out, tv_form_per_batch(d->text * inner));
    text_out = linear(d, "attn.to_add_out", inner, d->width, true, text_out);
    *text = gated(d, *text, text_out, mod_text);
    f = modulated(d, "norm2_context", *text, mod_text);
    f = feed_forward(d, "ff_context.net.0.proj", "ff_context.net.2", 4 * d->width, f);
    *text = gated(d, *text, f, mod_text);
}

/* A block hands on one value: both streams as one storage. */
static tv_val run_doubles(dit *d, double n, bool rope, bool last_drops, tv_val v)
{
    for (int last = 0; last < 2; last++) {
        const double times = last ? (last_drops ? 1 : 0) : n - (last_drops ? 1 : 0);
        if (times <= 0)
            continue;
        v = tv_emit_block(d->e, last ? "last_block" : "transformer_block", TV_STAGE_BODY, v);
        tv_val image = tv_emit_view(v, tv_form_per_batch(d->image * d->width));
        tv_val text = tv_emit_view(v, tv_form_per_batch(d->text * d->width));
        put_double(d, rope, last, &image, &text);
        v = last ? image : joined(d, "streams", text, image);
        v = tv_emit_end(d->e, v);
        tv_emit_runs(d->e, times);
    }
    return v;
}

static tv_val put_single(dit *d, tv_val x)
{
    const double all = d->image + d->text;
    tv_val mod = modulation(d, "norm.linear", 3);
    tv_val n = modulated(d, "norm", x, mod);
    tv_val mlp = linear(d, "proj_mlp", d->width, 4 * d->width, true, n);
    mlp = tv_emit_act(d->e, "act_mlp", TV_ACT_GELU, mlp);
    streams s = project(d, own, d->width, n);
    s.q = tv_emit_rope(d->e, "rope_q", s.q);
    s.k = tv_emit_rope(d->e, "rope_k", s.k);
    tv_val out = joined(d, "attention and mlp", attend(d, all, all, false, s), mlp);
    out = linear(d, "proj_out", 5 * d->width, d->width, true, out);
    return gated(d, x, out, mod);
}

static void put_end(dit *d, double out, tv_val v)
{
    v = tv_emit_block(d->e, "head", TV_STAGE_HEAD, v);
    v = tv_emit_view(v, tv_form_per_batch(d->image * d->width));
    v = modulated(d, "norm_out", v, modulation(d, "norm_out.linear", 2));
    v = linear(d, "proj_out", d->width, out, true, v);
    if (tv_trains(d->e->set))
        tv_emit_pointwise_loss(d->e, "mse_loss", v);
    tv_emit_end(d->e, v);
    tv_emit_runs(d->e, 1);
}

static tv_val stream_input(dit *d, const char *what, double n)
{
    return tv_emit_input(d->e, what, n, d->e->set->policy.stream);
}

static tv_val condition_end(dit *d, tv_val cond)
{
    tv_emit_global(d->e, cond);
    cond = tv_emit_end(d->e, cond);
    tv_emit_runs(d->e, 1);
    return cond;
}

#define TIME_CHANNELS 256.0 /* sinusoidal steps in every class here */

void tv_put_flux(tv_emit *e, const tv_diffusion *m, const tv_setting *set)
{
    const tv_json *c = m->c;
    const tv_grid g = tv_diffusion_grid(m, set);
    dit d = {.e = e, .heads = num(c, "num_attention_heads", 24), .qk_norm = true};
    d.head_dim = num(c, "attention_head_dim", 128);
    d.width = d.heads * d.head_dim;
    d.text = tv_diffusion_text(m, set);
    d.image = ceil(g.h / 2) * ceil(g.w / 2); /* latents are packed two by two */
    const double in = num(c, "in_channels", 64), w = d.width;
    tv_emit_block(e, "conditions", TV_STAGE_EMBED, tv_no_val);
    tv_val cond = condition_layers(&d, "timestep_embedder", TIME_CHANNELS, w, w,
                                   stream_input(&d, "time", TIME_CHANNELS));
    if (tv_json_bool(tv_json_get(c, "guidance_embeds"), false))
        cond = tv_emit_add(e, "add_guidance", cond,
                           condition_layers(&d, "guidance_embedder", TIME_CHANNELS, w, w,
                                            stream_input(&d, "guidance", TIME_CHANNELS)));
    const double pooled = num(c, "pooled_projection_dim", 768);
    tv_val p = condition_layers(&d, "text_embedder", pooled, w, w,
                                stream_input(&d, "pooled text", pooled));
    d.cond = condition_end(&d, tv_emit_add(e, "add_text", cond, p));
    tv_emit_block(e, "embedders", TV_STAGE_EMBED, tv_no_val);
    const double joint = num(c, "joint_attention_dim", 4096);
    tv_val image = linear(&d, "x_embedder", in, w, true, stream_input(&d, "latents", in * d.image));
    tv_val text = linear(&d, "context_embedder", joint, w, true,
                         stream_input(&d, "text states", joint * d.text));
    tv_val v = tv_emit_end(e, joined(&d, "streams", text, image));
    tv_emit_runs(e, 1);
    v = run_doubles(&d, num(c, "num_layers", 19), true, false, v);
    const double singles = num(c, "num_single_layers", 38);
    if (singles > 0) {
        v = tv_emit_block(e, "single_block", TV_STAGE_BODY, v);
        v = tv_emit_end(e, put_single(&d, v));
        tv_emit_runs(e, singles);
    }
    put_end(&d, num(c, "out_channels", in), v);
}

static tv_val patch_embed(dit *d, double in, double patch, bool known)
{
    tv_val v = stream_input(d, "latents", in * d->image * patch * patch);
    (void)known;
    return tv_emit_conv(d->e,
                        &(tv_conv){.name = "pos_embed.proj",
                                   .in = in,
                                   .out = d->width,
                                   .kernel = patch * patch,
                                   .positions = d->image,
                                   .bias = true},
                        v);
}

static dit patch_dit(tv_emit *e, const tv_diffusion *m, const tv_setting *set, double heads,
                     double head_dim)
{
    const tv_grid g = tv_diffusion_grid(m, set);
    const double patch = num(m->c, "patch_size", 2);
    dit d = {.e = e};
    d.heads = num(m->c, "num_attention_heads", heads);
    d.head_dim = num(m->c, "attention_head_dim", head_dim);
    d.width = d.heads * d.head_dim;
    d.text = tv_diffusion_text(m, set);
    d.image = fmax(1, floor(g.h / patch)) * fmax(1, floor(g.w / patch));
    return d;
}

void tv_put_sd3(tv_emit *e, const tv_diffusion *m, const tv_setting *set)
{
    const tv_json *c = m->c;
    dit d = patch_dit(e, m, set, 18, 64);
    const double w = d.width, in = num(c, "in_channels", 16), patch = num(c, "patch_size", 2);
    d.qk_norm = tv_json_str(tv_json_get(c, "qk_norm")).n > 0;
    tv_emit_block(e, "conditions", TV_STAGE_EMBED, tv_no_val);
    tv_val cond = condition_layers(&d, "timestep_embedder", TIME_CHANNELS, w, w,
                                   stream_input(&d, "time", TIME_CHANNELS));
    const double pooled = num(c, "pooled_projection_dim", 2048);
    tv_val p = condition_layers(&d, "text_embedder", pooled, w, w,
                                stream_input(&d, "pooled text", pooled));
    d.cond = condition_end(&d, tv_emit_add(e, "add_text", cond, p));
    tv_emit_block(e, "embedders", TV_STAGE_EMBED, tv_no_val);
    const double joint = num(c, "joint_attention_dim", 4096);
    tv_val image = patch_embed(&d, in, patch, true);
    tv_val text = linear(&d, "context_embedder", joint, w, true,
                         stream_input(&d, "text states", joint * d.text));
    const double side = num(c, "pos_embed_max_size", 96);
    tv_emit_buffer(e, 4 * side * side * w); /* fixed sine table */
    tv_val v = tv_emit_end(e, joined(&d, "streams", text, image));
    tv_emit_runs(e, 1);
    v = run_doubles(&d, num(c, "num_layers", 18), false, true, v);
    put_end(&d, patch * patch * num(c, "out_channels", in), v);
}

/* ---- cross-attending blocks ---- */

static tv_val cross_attend(dit *d, double kv_width, tv_val states, tv_val x)
{
    const double inner = d->heads * d->head_dim;
    streams s;
    s.q = linear(d, "attn2.to_q", d->width, inner, true, x);
    s.k = linear(d, "attn2.to_k", kv_width, inner, true, states);
    s.v = linear(d, "attn2.to_v", kv_width, inner, true, states);
    if (d->qk_norm) {
        s.q = tv_emit_norm(d->e, "attn2.norm_q", TV_NORM_LAYER, s.q, d->head_dim, true, true);
        s.k = tv_emit_norm(d->e, "attn2.norm_k", TV_NORM_LAYER, s.k, d->head_dim, true, true);
    }
    tv_val out = attend(d, d->image, d->text, true, s);
    return linear(d, "attn2.to_out.0", inner, d->width, true, out);
}

static tv_val self_attend(dit *d, bool rope, tv_val x)
{
    const double inner = d->heads * d->head_dim;
    bool norm = d->qk_norm;
    d->qk_norm = false;
    streams s = project(d, own, d->width, x);
    d->qk_norm = norm;
    if (norm) {
        s.q = tv_emit_norm(d->e, "attn1.norm_q", TV_NORM_LAYER, s.q, d->head_dim, true, true);
        s.k = tv_emit_norm(d->e, "attn1.norm_k", TV_NORM_LAYER, s.k, d->head_dim, true, true);
    }
    if (rope) {
        s.q = tv_emit_rope(d->e, "rope_q", s.q);
        s.k = tv_emit_rope(d->e, "rope_k", s.k);
    }
    return linear(d, "attn.to_out.0", inner, d->width, true,
                  attend(d, d->image, d->image, false, s));
}

static tv_val affine_norm(dit *d, const char *name, double width, tv_val v)
{
    return tv_emit_norm(d->e, name, TV_NORM_LAYER, v, width, true, true);
}

/* HunyuanDiT: shift by time, self and cross attention with normed q and k, long skips in the
 * second half. */
static tv_val hunyuan_block(dit *d, const tv_json *c, tv_val states, tv_val skip, tv_val v)
{
    if (skip.storage != TV_NONE) {
        v = affine_norm(d, "skip_norm", 2 * d->width, joined(d, "skip", v, skip));
        v = linear(d, "skip_linear", 2 * d->width, d->width, true, v);
    }
    tv_val shift = modulation(d, "norm1.linear", 1);
    tv_val n = tv_emit_add(d->e, "shift", affine_norm(d, "norm1", d->width, v), shift);
    v = tv_emit_add(d->e, "residual", v, self_attend(d, true, n));
    n = affine_norm(d, "norm2", d->width, v);
    v = tv_emit_add(d->e, "residual", v,
                    cross_attend(d, num(c, "cross_attention_dim", 1024), states, n));
    n = affine_norm(d, "norm3", d->width, v);
    const double inter = floor(d->width * num(c, "mlp_ratio", 4));
    return tv_emit_add(d->e, "residual", v, feed_forward(d, "ff.net.0.proj", "ff.net.2", inter, n));
}

static tv_val hunyuan_conditions(dit *d, const tv_json *c, tv_val *states)
{
    tv_emit *e = d->e;
    const double w = d->width, t5 = num(c, "cross_attention_dim_t5", 2048);
    const double clip = num(c, "cross_attention_dim", 1024);
    const double clip_len = num(c, "text_len", 77), t5_len = num(c, "text_len_t5", 256);
    const double pooled = num(c, "pooled_projection_dim", 1024);
    tv_emit_block(e, "conditions", TV_STAGE_EMBED, tv_no_val);
    tv_val long_text = condition_layers(d, "text_embedder", t5, 4 * t5, clip,
                                        stream_input(d, "T5 states", t5 * t5_len));
    plain_weight(d, "text_embedding_padding", clip_len + t5_len, clip);
    *states = joined(d, "text", stream_input(d, "CLIP states", clip * clip_len), long_text);
    tv_emit_global(e, *states);
    plain_weight(d, "pooler.positional_embedding", t5_len + 1, t5);
    tv_val pool = stream_input(d, "T5 states for pooling", t5);
    for (int i = 0; i < 3; i++)
        (void)linear(d, "pooler.qkv", t5, t5, true, pool);
    pool = linear(d, "pooler.c_proj", t5, pooled, true, pool);
    plain_weight(d, "style_embedder", 1, w);
    const double extra = 6 * TIME_CHANNELS + w + pooled;
    tv_val sizes = stream_input(d, "sizes and style", extra - pooled);
    tv_val cond =
        condition_layers(d, "extra_embedder", extra, 4 * w, w, joined(d, "extra", pool, sizes));
    cond = tv_emit_add(e, "add_time", cond,
                       condition_layers(d, "timestep_embedder", TIME_CHANNELS, w, w,
                                        stream_input(d, "time", TIME_CHANNELS)));
    return condition_end(d, cond);
}

void tv_put_hunyuan(tv_emit *e, const tv_diffusion *m, const tv_setting *set)
{
    const tv_json *c = m->c;
    dit d = patch_dit(e, m, set, 16, 88);
    const double layers = num(c, "num_layers", 40), half = floor(layers / 2);
    const double in = num(c, "in_channels", 4), patch = num(c, "patch_size", 2);
    tv_val states = tv_no_val, skips[TV_LIMIT_LAYERS / 2 + 1];
    d.qk_norm = true;
    d.text = num(c, "text_len", 77) + num(c, "text_len_t5", 256);
    d.cond = hunyuan_conditions(&d, c, &states);
    tv_emit_block(e, "pos_embed", TV_STAGE_EMBED, tv_no_val);
    tv_val v = tv_emit_end(e, patch_embed(&d, in, patch, false));
    tv_emit_runs(e, 1);
    for (double i = 0; i < layers; i++) { /* block i takes what block layers-1-i left */
        const bool takes = i > half;
        v = tv_emit_block(e, takes ? "skip_block" : "block", TV_STAGE_BODY, v);
        v = hunyuan_block(&d, c, states, takes ? skips[(size_t)(layers - i) - 1] : tv_no_val, v);
        if (i < half - 1)
            tv_emit_global(e, v);
        v = tv_emit_end(e, v);
        tv_emit_runs(e, 1);
        if (i < half)
            skips[(size_t)i] = v;
    }
    const bool sigma = tv_json_bool(tv_json_get(c, "learn_sigma"), true);
    put_end(&d, patch * patch * in * (sigma ? 2 : 1), v);
}

/* PixArt: one modulation for all blocks and a small table in each; plain DiT: cross attention is
 * absent and each block has its own modulation. */
void tv_put_pixart(tv_emit *e, const tv_diffusion *m, const tv_setting *set)
{
    const tv_json *c = m->c;
    dit d = patch_dit(e, m, set, 16, 72);
    const double w = d.width, in = num(c, "in_channels", 4), patch = num(c, "patch_size", 2);
    const double caption = num(c, "caption_channels", 0), cross = num(c, "cross_attention_dim", 0);
    tv_val states = tv_no_val;
    tv_emit_block(e, "conditions", TV_STAGE_EMBED, tv_no_val);
    tv_val cond = condition_layers(&d, "timestep_embedder", TIME_CHANNELS, w, w,
                                   stream_input(&d, "time", TIME_CHANNELS));
    const double classes = num(c, "num_embeds_ada_norm", 0);
    if (cross <= 0 && classes > 0) /* one row more: the empty class */
        plain_weight(&d, "class_embedder", classes + 1, w);
    if (caption > 0) {
        states = stream_input(&d, "text states", caption * d.text);
        states = linear(&d, "caption_projection.linear_1", caption, w, true, states);
        states = tv_emit_act(e, "gelu", TV_ACT_GELU, states);
        states = linear(&d, "caption_projection.linear_2", w, w, true, states);
        tv_emit_global(e, states);
    }
    d.cond = cond;
    if (cross > 0)
        cond = modulation(&d, "adaln_single.linear", 6);
    d.cond = condition_end(&d, cond);
    tv_emit_block(e, "pos_embed", TV_STAGE_EMBED, tv_no_val);
    tv_val v = tv_emit_end(e, patch_embed(&d, in, patch, false));
    tv_emit_runs(e, 1);
    v = tv_emit_block(e, "block", TV_STAGE_BODY, v);
    if (cross > 0)
        plain_weight(&d, "scale_shift_table", 6, w);
    tv_val mod = cross > 0 ? d.cond : modulation(&d, "norm1.linear", 6);
    v = gated(&d, v, self_attend(&d, false, modulated(&d, "norm1", v, mod)), mod);
    if (cross > 0)
        v = tv_emit_add(e, "residual", v,
                        cross_attend(&d, cross, states.storage == TV_NONE ? v : states, v));
    tv_val f = modulated(&d, "norm2", v, mod);
    v = gated(&d, v, feed_forward(&d, "ff.net.0.proj", "ff.net.2", 4 * w, f), mod);
    v = tv_emit_end(e, v);
    tv_emit_runs(e, num(c, "num_layers", 28));
    v = tv_emit_block(e, "head", TV_STAGE_HEAD, v);
    if (cross > 0)
        plain_weight(&d, "scale_shift_table", 2, w);
    tv_val last = cross > 0 ? d.cond : modulation(&d, "proj_out_1", 2);
    v = modulated(&d, "norm_out", v, last);
    v = linear(&d, "proj_out", w, patch * patch * num(c, "out_channels", 2 * in), true, v);
    if (tv_trains(set))
        tv_emit_pointwise_loss(e, "mse_loss", v);
    tv_emit_end(e, v);
    tv_emit_runs(e, 1);
}
