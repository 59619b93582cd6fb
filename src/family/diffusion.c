/* Diffusion models as diffusers keeps them: one component, or a pipeline folder whose U-Net or
 * transformer is what is trained; its text encoders and autoencoder are frozen and reported apart.
 * Knows which class is which; the classes are in unet.c and dit.c. */
#include "diffusion.h"

#include <math.h>

typedef struct class_row {
    const char *name;
    void (*put)(tv_emit *e, const tv_diffusion *d, const tv_setting *set);
    double sample; /* cells where the configuration does not say */
    double text;   /* condition tokens of its usual pipeline */
} class_row;

/* Text lengths: CLIP 77; SD3's pipeline adds 256 of T5; Flux's takes 512; Kolors' ChatGLM 256. */
static const class_row classes[] = {
    {"UNet2DConditionModel", tv_put_unet, 64, 77},
    {"AutoencoderKL", tv_put_autoencoder, 0, 0},
    {"FluxTransformer2DModel", tv_put_flux, 128, 512},
    {"SD3Transformer2DModel", tv_put_sd3, 128, 333},
    {"HunyuanDiT2DModel", tv_put_hunyuan, 128, 333},
    {"PixArtTransformer2DModel", tv_put_pixart, 128, 120},
    {"DiTTransformer2DModel", tv_put_pixart, 32, 0},
};

static const class_row *class_of(const tv_json *c)
{
    tv_str name = tv_json_str(tv_json_get(c, "_class_name"));
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (tv_str_is(name, classes[i].name))
            return &classes[i];
    /* old name of DiT and PixArt */
    bool dit = tv_str_is(name, "Transformer2DModel") &&
               tv_str_starts(tv_json_str(tv_json_get(c, "norm_type")), TV_S("ada_norm"));
    return dit ? &classes[5] : NULL;
}

/* What a pipeline trains. */
static const tv_component *trained(const tv_source *s)
{
    static const char *const names[] = {"unet", "transformer", "prior", "decoder", NULL};
    for (size_t k = 0; names[k]; k++)
        for (size_t i = 0; i < s->n_components; i++)
            if (tv_str_is(s->components[i].name, names[k]) && s->components[i].source)
                return &s->components[i];
    return NULL;
}

static const tv_source *subject(const tv_source *s)
{
    const tv_component *c = s->n_components ? trained(s) : NULL;
    return c ? c->source : s;
}

static unsigned claims(const tv_source *s)
{
    if (s->kind != TV_SOURCE_DIFFUSERS)
        return 0;
    return class_of(subject(s)->config) ? 90 : 0;
}

tv_grid tv_diffusion_grid(const tv_diffusion *d, const tv_setting *set)
{
    double h = set->image_h ? set->image_h / d->scale : d->latent;
    double w = set->image_w ? set->image_w / d->scale : set->image_h ? h : d->latent;
    return (tv_grid){fmax(1, floor(h)), fmax(1, floor(w))};
}

double tv_diffusion_text(const tv_diffusion *d, const tv_setting *set)
{
    return set->seq ? set->seq : d->text;
}

static const tv_err *build(tv_arena *a, const tv_model *m, const tv_setting *set, tv_graph **graph)
{
    const tv_diffusion *d = m->spec;
    tv_emit e = tv_emit_open(a, set);
    d->put(&e, d, set);
    e.g->tokens_per_sample = 0;
    e.g->heads = m->heads;
    *graph = tv_emit_close(&e);
    return NULL;
}

/* Text encoders, autoencoder and so on: weights only. The class name that only the pipeline states
 * (T5EncoderModel) is what its absence from the component's own file means, too. */
static const tv_err *add_components(tv_arena *a, const tv_source *s, tv_model *m)
{
    const tv_component *main = trained(s);
    for (size_t i = 0; i < s->n_components; i++) {
        const tv_component *c = &s->components[i];
        const tv_model *part = NULL;
        if (c == main || !c->source || !c->source->config)
            continue;
        if (tv_family_model(a, c->source, &part))
            continue; /* schedulers, tokenizers: nothing to count */
        tv_family_part(a, m,
                       (tv_part){.name = c->name,
                                 .params = part->params,
                                 .why = TV_TEXT0("diffusion.frozen",
                                                 N_("frozen part of the pipeline: its weights are "
                                                    "loaded, not trained"))});
    }
    return NULL;
}

static const tv_err *check_levels(tv_arena *a, const tv_source *s, const tv_json *c,
                                  const class_row *row)
{
    const tv_json *channels = tv_json_get(c, "block_out_channels");
    bool conv = row->put == tv_put_unet || row->put == tv_put_autoencoder;
    double layers = tv_json_num(tv_json_get(c, "num_layers"), 1);
    bool good = conv ? channels->n >= 1 && channels->n <= 8 : layers >= 1 && layers <= 512;
    for (size_t i = 0; conv && good && i < channels->n; i++)
        good = tv_json_num(&channels->items[i], 0) >= 1;
    double repeats = tv_cfg_at(tv_json_get(c, "layers_per_block"), 0, 2);
    double depth = tv_cfg_at(tv_json_get(c, "transformer_layers_per_block"), 0, 1);
    if (good && repeats >= 1 && repeats <= 16 && depth <= 64)
        return NULL;
    return tv_in_file(TV_FAIL0(a, TV_INPUT, "diffusion.shape",
                               N_("the configuration lacks its channels or layers, or they are out "
                                  "of range")),
                      s->path);
}

static void describe(const tv_json *c, const tv_diffusion *d, tv_model *m)
{
    m->layers = tv_cfg_num(c, 0, "num_layers", NULL) + tv_cfg_num(c, 0, "num_single_layers", NULL);
    m->heads = m->kv_heads =
        tv_cfg_at(tv_cfg(c, "num_attention_heads", "attention_head_dim", NULL), 0, 0);
    m->head_dim = tv_cfg_num(c, 0, "attention_head_dim", NULL);
    m->image_h = m->image_w = (uint32_t)(d->latent * d->scale);
    m->image_c = 3;
    m->default_seq = (uint32_t)d->text;
}

static const tv_err *make(tv_arena *a, const tv_source *s, tv_model *m)
{
    const tv_source *own = subject(s);
    const tv_json *c = own->config;
    const class_row *row = class_of(c);
    TV_TRY(check_levels(a, s, c, row));
    tv_diffusion *d = tv_new(a, tv_diffusion, 1);
    bool pixels = row->put == tv_put_autoencoder;
    d->c = c;
    d->put = row->put;
    d->scale = pixels ? 1 : 8; /* every autoencoder here shrinks by eight */
    double cells = tv_cfg_at(tv_json_get(c, "sample_size"), 0, pixels ? 512 : row->sample);
    d->latent = cells;
    d->text = tv_json_has(c, "encoder_hid_dim") ? 256 : row->text;
    m->spec = d;
    m->build = build;
    m->stored = tv_cfg_dtype(c);
    describe(c, d, m);
    TV_TRY(add_components(a, s, m));
    return tv_count_params(a, m, own);
}

const tv_family tv_family_diffusion = {
    .name = "diffusion",
    .summary = N_("diffusers' U-Nets, autoencoders and transformers: Stable Diffusion, Flux, SD3, "
                  "HunyuanDiT, PixArt, DiT"),
    .claims = claims,
    .make = make,
};
