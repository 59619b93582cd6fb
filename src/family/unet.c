/* The convolutional classes of diffusers: UNet2DConditionModel and AutoencoderKL. Knows their
 * blocks and configuration keys (attention_head_dim is the number of heads there). Does not know
 * what an op saves or costs (desc/emit.h). */
#include "diffusion.h"

#include <math.h>

#define LEVELS 8
#define SKIPS 64

typedef struct unet {
    tv_emit *e;
    const tv_json *c;
    double groups, dropout;
    tv_act act;
    double time;        /* width of the time embedding; 0: none (autoencoder) */
    double cross, text; /* width and number of the condition's tokens */
    bool linear_projection;
    tv_val temb, states;
    tv_val v;
    double ch;
    tv_grid grid;
    struct {
        tv_val v;
        double ch;
        tv_grid grid;
    } skips[SKIPS];
    size_t n_skips;
} unet;

static double area(tv_grid g)
{
    return g.h * g.w;
}

static tv_val conv(unet *u, const char *name, double in, double out, double kernel, tv_val v)
{
    return tv_emit_conv(u->e,
                        &(tv_conv){.name = name,
                                   .in = in,
                                   .out = out,
                                   .kernel = kernel,
                                   .positions = area(u->grid),
                                   .bias = true},
                        v);
}

static tv_val linear(unet *u, const char *name, double in, double out, bool bias, tv_val v)
{
    return tv_emit_linear(u->e, &(tv_linear){.name = name, .in = in, .out = out, .bias = bias}, v);
}

static tv_val group_norm(unet *u, const char *name, double width, tv_val v)
{
    return tv_emit_norm(u->e, name, TV_NORM_GROUP, v, width, true, true);
}

/* norm, act, conv, time, norm, act, dropout, conv; the sum with what came in. */
static void put_resnet(unet *u, double out)
{
    tv_emit *e = u->e;
    tv_val side = u->v;
    tv_val v = tv_emit_act(e, "act1", u->act, group_norm(u, "norm1", u->ch, side));
    v = conv(u, "conv1", u->ch, out, 9, v);
    if (u->time > 0) {
        tv_val t = tv_emit_act(e, "time_act", u->act, u->temb);
        v = tv_emit_add(e, "add_time", v, linear(u, "time_emb_proj", u->time, out, true, t));
    }
    v = tv_emit_act(e, "act2", u->act, group_norm(u, "norm2", out, v));
    v = tv_emit_dropout(e, "dropout", tv_dropout(e->set, u->dropout), v);
    v = conv(u, "conv2", out, out, 9, v);
    if (u->ch != out)
        side = conv(u, "conv_shortcut", u->ch, out, 1, side);
    u->v = tv_emit_add(e, "residual", v, side);
    u->ch = out;
}

/* ---- transformer inside the U-Net ---- */

static const tv_attn_names names1 = {.q = "attn1.to_q",
                                     .k = "attn1.to_k",
                                     .v = "attn1.to_v",
                                     .core = "attn1",
                                     .out = "attn1.to_out.0"};
static const tv_attn_names names2 = {.q = "attn2.to_q",
                                     .k = "attn2.to_k",
                                     .v = "attn2.to_v",
                                     .core = "attn2",
                                     .out = "attn2.to_out.0"};

static void put_transformer_block(unet *u, double heads, bool cross_only)
{
    tv_layer_part p = {
        .attn = {.names = names1,
                 .hidden = u->ch,
                 .heads = heads,
                 .head_dim = u->ch / heads,
                 .q_tokens = area(u->grid),
                 .k_tokens = cross_only ? u->text : area(u->grid),
                 .kv_hidden = cross_only ? u->cross : 0,
                 .cross = cross_only,
                 .out_bias = true},
        .mlp = {.fused = "ff.net.0.proj",
                .down = "ff.net.2",
                .hidden = u->ch,
                .inter = 4 * u->ch,
                .act = TV_ACT_GELU,
                .bias = true},
        .norm = TV_NORM_LAYER,
        .norm_bias = true,
    };
    tv_attn_part second = p.attn;
    second.names = names2;
    second.k_tokens = u->text;
    second.kv_hidden = u->cross;
    second.cross = true;
    u->v = tv_emit_half(u->e, &p, &p.attn, "norm1", u->v, cross_only ? u->states : tv_no_val);
    u->v = tv_emit_half(u->e, &p, &second, "norm2", u->v, u->states);
    u->v = tv_emit_half(u->e, &p, NULL, "norm3", u->v, tv_no_val);
}

static void put_transformer(unet *u, double heads, double depth, bool cross_only)
{
    tv_val side = u->v;
    tv_val v = group_norm(u, "norm", u->ch, u->v);
    u->v = u->linear_projection ? linear(u, "proj_in", u->ch, u->ch, true, v)
                                : conv(u, "proj_in", u->ch, u->ch, 1, v);
    for (double i = 0; i < depth; i++)
        put_transformer_block(u, heads, cross_only);
    v = u->linear_projection ? linear(u, "proj_out", u->ch, u->ch, true, u->v)
                             : conv(u, "proj_out", u->ch, u->ch, 1, u->v);
    u->v = tv_emit_add(u->e, "residual", v, side);
}

/* ---- blocks of the graph ---- */

static void open_kind(unet *u, const char *name, tv_stage stage)
{
    u->v = tv_emit_block(u->e, name, stage, u->v);
}

static void close_kind(unet *u, bool is_skip)
{
    if (is_skip)
        tv_emit_global(u->e, u->v);
    u->v = tv_emit_end(u->e, u->v);
    tv_emit_runs(u->e, 1);
    if (!is_skip || u->n_skips == SKIPS)
        return;
    u->skips[u->n_skips].v = u->v;
    u->skips[u->n_skips].ch = u->ch;
    u->skips[u->n_skips++].grid = u->grid;
}

static void shrink(unet *u, bool is_skip)
{
    u->grid = (tv_grid){ceil(u->grid.h / 2), ceil(u->grid.w / 2)};
    open_kind(u, "downsampler", TV_STAGE_BODY);
    u->v = conv(u, "downsample.conv", u->ch, u->ch, 9, u->v);
    close_kind(u, is_skip);
}

static void enlarge(unet *u, tv_grid to)
{
    u->grid = to;
    open_kind(u, "upsampler", TV_STAGE_BODY);
    u->v = tv_emit_resize(u->e, "upsample", u->v, u->ch * area(to));
    u->v = conv(u, "upsample.conv", u->ch, u->ch, 9, u->v);
    close_kind(u, false);
}

typedef struct level {
    double ch, heads, depth, layers;
    bool attends, cross_only;
} level;

static bool is_cross(const tv_json *types, size_t i)
{
    return tv_str_has(tv_json_str(tv_json_at(types, i)), TV_S("CrossAttn"));
}

static level level_at(const unet *u, const tv_json *types, size_t i, size_t channel)
{
    const tv_json *c = u->c;
    const tv_json *heads = tv_cfg(c, "num_attention_heads", "attention_head_dim", NULL);
    const tv_json *only = tv_json_get(c, "only_cross_attention");
    const tv_json *one = only->type == TV_JSON_ARRAY ? tv_json_at(only, channel) : only;
    return (level){
        .ch = tv_cfg_at(tv_json_get(c, "block_out_channels"), channel, 320),
        .heads = fmax(1, tv_cfg_at(heads, channel, 8)),
        .depth = tv_cfg_at(tv_json_get(c, "transformer_layers_per_block"), channel, 1),
        .layers = tv_cfg_at(tv_json_get(c, "layers_per_block"), channel, 2),
        .attends = is_cross(types, i),
        .cross_only = tv_json_bool(one, false),
    };
}

static void put_down(unet *u, size_t n)
{
    const tv_json *types = tv_json_get(u->c, "down_block_types");
    for (size_t i = 0; i < n; i++) {
        level l = level_at(u, types, i, i);
        for (double k = 0; k < l.layers; k++) {
            open_kind(u, "down_block", TV_STAGE_BODY);
            put_resnet(u, l.ch);
            if (l.attends)
                put_transformer(u, l.heads, l.depth, l.cross_only);
            close_kind(u, true);
        }
        if (i + 1 < n)
            shrink(u, true);
    }
}

static void put_mid(unet *u, size_t n)
{
    level l = level_at(u, tv_json_get(u->c, "down_block_types"), n - 1, n - 1);
    open_kind(u, "mid_block", TV_STAGE_BODY);
    put_resnet(u, l.ch);
    put_transformer(u, l.heads, l.depth,
                    tv_json_bool(tv_json_get(u->c, "mid_block_only_cross_attention"), false));
    put_resnet(u, l.ch);
    close_kind(u, false);
}

static void put_up(unet *u, size_t n)
{
    const tv_json *types = tv_json_get(u->c, "up_block_types");
    for (size_t i = 0; i < n; i++) {
        level l = level_at(u, types, i, n - 1 - i);
        for (double k = 0; k < l.layers + 1 && u->n_skips; k++) {
            u->n_skips--;
            tv_val both[2] = {u->v, u->skips[u->n_skips].v};
            open_kind(u, "up_block", TV_STAGE_BODY);
            both[0] = u->v;
            u->v = tv_emit_concat(u->e, "concat_skip", both, 2);
            u->ch += u->skips[u->n_skips].ch;
            put_resnet(u, l.ch);
            if (l.attends)
                put_transformer(u, l.heads, l.depth, l.cross_only);
            close_kind(u, false);
        }
        if (i + 1 < n && u->n_skips)
            enlarge(u, u->skips[u->n_skips - 1].grid);
    }
}

static tv_val two_layers(unet *u, double in, double out, tv_val v)
{
    v = linear(u, "linear_1", in, out, true, v);
    return linear(u, "linear_2", out, out, true, tv_emit_act(u->e, "act", u->act, v));
}

/* Time, size and class conditions; the sum goes to every residual block. */
static void put_conditions(unet *u, double c0)
{
    tv_emit *e = u->e;
    const tv_json *c = u->c;
    tv_emit_block(e, "conditions", TV_STAGE_EMBED, tv_no_val);
    tv_val t = tv_emit_input(e, "time", c0, e->set->policy.stream);
    t = two_layers(u, c0, u->time, t);
    double classes = tv_cfg_num(c, 0, "num_class_embeds", NULL);
    if (classes > 0) {
        tv_val id = tv_emit_input(e, "class", 1, TV_I64);
        t = tv_emit_add(
            e, "add_class", t,
            tv_emit_embedding(e, "class_embedding", id, classes, u->time, tv_form_per_batch(1)));
    }
    double more = tv_cfg_num(c, 0, "projection_class_embeddings_input_dim", NULL);
    if (tv_str_is(tv_json_str(tv_json_get(c, "addition_embed_type")), "text_time") && more > 0) {
        tv_val a = tv_emit_input(e, "sizes and pooled text", more, e->set->policy.stream);
        t = tv_emit_add(e, "add_sizes", t, two_layers(u, more, u->time, a));
    }
    double hid = tv_cfg_num(c, 0, "encoder_hid_dim", NULL);
    double in = hid > 0 ? hid : u->cross;
    u->states = tv_emit_input(e, "text states", u->text * in, e->set->policy.stream);
    if (hid > 0) {
        u->states = linear(u, "encoder_hid_proj", hid, u->cross, true, u->states);
        tv_emit_global(e, u->states);
    }
    tv_emit_global(e, t);
    u->temb = tv_emit_end(e, t);
    tv_emit_runs(e, 1);
}

static size_t levels(const tv_json *c)
{
    size_t n = tv_json_get(c, "block_out_channels")->n;
    return n > LEVELS ? LEVELS : n;
}

static unet unet_open(tv_emit *e, const tv_diffusion *d, const tv_setting *set)
{
    const tv_json *c = d->c;
    return (unet){
        .e = e,
        .c = c,
        .groups = tv_cfg_num(c, 32, "norm_num_groups", NULL),
        .dropout = tv_cfg_num(c, 0, "dropout", NULL),
        .act = tv_cfg_act(tv_json_str(tv_json_get(c, "act_fn")), TV_ACT_SILU),
        .cross = tv_cfg_num(c, 1280, "cross_attention_dim", NULL),
        .text = tv_diffusion_text(d, set),
        .linear_projection = tv_json_bool(tv_json_get(c, "use_linear_projection"), false),
        .grid = tv_diffusion_grid(d, set),
    };
}

void tv_put_unet(tv_emit *e, const tv_diffusion *d, const tv_setting *set)
{
    unet u = unet_open(e, d, set);
    const size_t n = levels(d->c);
    const double c0 = tv_cfg_at(tv_json_get(d->c, "block_out_channels"), 0, 320);
    const double in = tv_cfg_num(d->c, 4, "in_channels", NULL);
    const double out = tv_cfg_num(d->c, 4, "out_channels", NULL);
    u.time = 4 * c0;
    put_conditions(&u, c0);
    tv_emit_block(e, "conv_in", TV_STAGE_EMBED, tv_no_val);
    u.v = tv_emit_input(e, "latents", in * area(u.grid), set->policy.stream);
    u.v = conv(&u, "conv_in", in, c0, 9, u.v);
    u.ch = c0;
    close_kind(&u, true);
    put_down(&u, n);
    put_mid(&u, n);
    put_up(&u, n);
    open_kind(&u, "head", TV_STAGE_HEAD);
    tv_val v = tv_emit_act(e, "conv_act", u.act, group_norm(&u, "conv_norm_out", u.ch, u.v));
    u.v = conv(&u, "conv_out", u.ch, out, 9, v);
    if (tv_trains(set))
        tv_emit_pointwise_loss(e, "mse_loss", u.v);
    close_kind(&u, false);
}

/* ---- autoencoder ---- */

/* One head over all cells, biases everywhere. */
static void put_cell_attention(unet *u)
{
    static const tv_attn_names names = {
        .q = "to_q", .k = "to_k", .v = "to_v", .core = "attention", .out = "to_out.0"};
    tv_val side = u->v;
    tv_val v = group_norm(u, "group_norm", u->ch, side);
    v = tv_emit_attn_part(u->e,
                          &(tv_attn_part){.names = names,
                                          .hidden = u->ch,
                                          .heads = 1,
                                          .head_dim = u->ch,
                                          .q_tokens = area(u->grid),
                                          .k_tokens = area(u->grid),
                                          .q_bias = true,
                                          .k_bias = true,
                                          .v_bias = true,
                                          .out_bias = true},
                          v, tv_no_val);
    u->v = tv_emit_add(u->e, "residual", v, side);
}

static void put_vae_mid(unet *u)
{
    open_kind(u, "mid_block", TV_STAGE_BODY);
    put_resnet(u, u->ch);
    if (tv_json_bool(tv_json_get(u->c, "mid_block_add_attention"), true))
        put_cell_attention(u);
    put_resnet(u, u->ch);
    close_kind(u, false);
}

static void put_vae_end(unet *u, const char *name, double out)
{
    open_kind(u, name, TV_STAGE_BODY);
    tv_val v = tv_emit_act(u->e, "conv_act", u->act, group_norm(u, "conv_norm_out", u->ch, u->v));
    u->v = conv(u, "conv_out", u->ch, out, 9, v);
}

static void put_vae_encoder(unet *u, const double *ch, size_t n, double layers, double latent)
{
    const double in = tv_cfg_num(u->c, 3, "in_channels", NULL);
    tv_emit_block(u->e, "encoder.conv_in", TV_STAGE_EMBED, tv_no_val);
    u->v = tv_emit_input(u->e, "images", in * area(u->grid), u->e->set->policy.stream);
    u->v = conv(u, "conv_in", in, ch[0], 9, u->v);
    u->ch = ch[0];
    close_kind(u, false);
    for (size_t i = 0; i < n; i++) {
        for (double k = 0; k < layers; k++) {
            open_kind(u, "encoder.down_block", TV_STAGE_BODY);
            put_resnet(u, ch[i]);
            close_kind(u, false);
        }
        if (i + 1 < n)
            shrink(u, false);
    }
    put_vae_mid(u);
    put_vae_end(u, "encoder.out", 2 * latent);
    if (tv_json_bool(tv_json_get(u->c, "use_quant_conv"), true))
        u->v = conv(u, "quant_conv", 2 * latent, 2 * latent, 1, u->v);
    u->v = tv_emit_view(u->v, tv_form_scale(u->v.n, 0.5));
    close_kind(u, false);
}

static void put_vae_decoder(unet *u, const double *ch, size_t n, double layers, double latent)
{
    open_kind(u, "decoder.conv_in", TV_STAGE_BODY);
    if (tv_json_bool(tv_json_get(u->c, "use_post_quant_conv"), true))
        u->v = conv(u, "post_quant_conv", latent, latent, 1, u->v);
    u->v = conv(u, "conv_in", latent, ch[n - 1], 9, u->v);
    u->ch = ch[n - 1];
    close_kind(u, false);
    put_vae_mid(u);
    for (size_t i = n; i-- > 0;) {
        for (double k = 0; k < layers + 1; k++) {
            open_kind(u, "decoder.up_block", TV_STAGE_BODY);
            put_resnet(u, ch[i]);
            close_kind(u, false);
        }
        if (i > 0)
            enlarge(u, (tv_grid){u->grid.h * 2, u->grid.w * 2});
    }
    put_vae_end(u, "head", tv_cfg_num(u->c, 3, "out_channels", NULL));
    if (tv_trains(u->e->set))
        tv_emit_pointwise_loss(u->e, "reconstruction_loss", u->v);
    close_kind(u, false);
}

void tv_put_autoencoder(tv_emit *e, const tv_diffusion *d, const tv_setting *set)
{
    unet u = unet_open(e, d, set);
    const size_t n = levels(d->c);
    double ch[LEVELS] = {0};
    for (size_t i = 0; i < n; i++)
        ch[i] = tv_cfg_at(tv_json_get(d->c, "block_out_channels"), i, 64);
    const double layers = tv_cfg_num(d->c, 1, "layers_per_block", NULL);
    const double latent = tv_cfg_num(d->c, 4, "latent_channels", NULL);
    put_vae_encoder(&u, ch, n, layers, latent);
    put_vae_decoder(&u, ch, n, layers, latent);
}
