/* Transformers over image patches and the text towers that come with them: ViT, DeiT, BEiT, DINOv2,
 * CLIP, SigLIP. Knows their configuration keys and modules. Does not know what an op saves or
 * costs (desc/emit.h). Windows and shrinking stages (Swin) are in swin.c. */
#include "family.h"
#include "pieces.h"

#include <math.h>

typedef struct tower {
    double layers, hidden, heads, inter;
    tv_act act;
    double dropout, attention_dropout;
    /* images */
    double image, patch, channels;
    double extra_tokens;                /* class and distillation tokens */
    bool patch_bias, mask_token, table; /* table: learned positions */
    bool pre_norm;                      /* CLIP norms the embeddings too */
    bool post_norm;
    bool k_bias, layer_scale, swiglu;
    double relative;   /* rows of a bias table per layer and head (BEiT); 0: none */
    bool pooling_head; /* SigLIP's attention pooling */
    /* text */
    double vocab, positions;
    bool causal;
    double text_head; /* SigLIP's linear head; 0: none */
} tower;

typedef struct vision_spec {
    bool has_image, has_text;
    tower image, text;
    double project; /* width of the shared space; 0: none */
    double image_project, text_project;
    double scalars; /* logit scale and bias */
    double extra;   /* parameters beside the towers (safety checker's concepts) */
    bool pooler;    /* ViT's dense and tanh */
    bool pool_norm; /* BEiT: norm of the mean */
    bool classifier;
    double classifier_in; /* in widths: DINOv2 takes the class token and the mean */
    double classifiers;
    double labels;
} vision_spec;

static const char *const types[] = {
    "vit",
    "deit",
    "beit",
    "dinov2",
    "clip",
    "clip_vision_model",
    "clip_text_model",
    "siglip",
    "siglip_vision_model",
    "siglip_text_model",
    "vit_msn",
    "chinese_clip",
    NULL,
};

static unsigned claims(const tv_source *s)
{
    if (s->kind != TV_SOURCE_HF_CONFIG)
        return 0;
    if (tv_family_in(tv_family_type(s), types))
        return 90;
    bool dual = tv_json_has(s->config, "text_config") && tv_json_has(s->config, "vision_config") &&
                tv_json_has(s->config, "projection_dim");
    return dual ? 60 : 0;
}

/* ---- reading ---- */

static void read_common(tower *t, const tv_json *c, double hidden, double heads, double layers)
{
    t->layers = tv_cfg_num(c, layers, "num_hidden_layers", NULL);
    t->hidden = tv_cfg_num(c, hidden, "hidden_size", NULL);
    t->heads = tv_cfg_num(c, heads, "num_attention_heads", NULL);
    double ratio = tv_cfg_num(c, 4, "mlp_ratio", NULL);
    t->inter = tv_cfg_num(c, ratio * t->hidden, "intermediate_size", NULL);
    t->act = tv_cfg_act(tv_json_str(tv_json_get(c, "hidden_act")), TV_ACT_GELU);
    t->dropout = tv_cfg_num(c, 0, "hidden_dropout_prob", NULL);
    t->attention_dropout =
        tv_cfg_num(c, 0, "attention_probs_dropout_prob", "attention_dropout", NULL);
    t->k_bias = true;
}

static void read_image(tower *t, const tv_json *c, double patch)
{
    read_common(t, c, 768, 12, 12);
    t->image = tv_cfg_at(tv_json_get(c, "image_size"), 0, 224);
    t->patch = tv_cfg_at(tv_json_get(c, "patch_size"), 0, patch);
    t->channels = tv_cfg_num(c, 3, "num_channels", NULL);
}

static void read_clip_text(tower *t, const tv_json *c)
{
    read_common(t, c, 512, 8, 12);
    if (!tv_json_has(c, "hidden_act"))
        t->act = TV_ACT_QUICK_GELU;
    t->vocab = tv_cfg_num(c, 49408, "vocab_size", NULL);
    t->positions = tv_cfg_num(c, 77, "max_position_embeddings", NULL);
    t->causal = true;
    t->post_norm = true;
}

static void read_clip_image(tower *t, const tv_json *c)
{
    read_image(t, c, 32);
    if (!tv_json_has(c, "hidden_act"))
        t->act = TV_ACT_QUICK_GELU;
    t->extra_tokens = 1;
    t->table = t->pre_norm = t->post_norm = true;
}

static void read_siglip_image(tower *t, const tv_json *c)
{
    read_image(t, c, 16);
    t->patch_bias = t->table = t->post_norm = true;
    t->pooling_head = tv_json_bool(tv_json_get(c, "vision_use_head"), true);
}

static void read_siglip_text(tower *t, const tv_json *c)
{
    read_common(t, c, 768, 12, 12);
    t->vocab = tv_cfg_num(c, 32000, "vocab_size", NULL);
    t->positions = tv_cfg_num(c, 64, "max_position_embeddings", NULL);
    t->post_norm = true;
    t->text_head = tv_cfg_num(c, t->hidden, "projection_size", NULL);
}

static void read_clip(vision_spec *x, const tv_json *c, tv_str architecture)
{
    const tv_json *text = tv_json_get(c, "text_config");
    const tv_json *image = tv_json_get(c, "vision_config");
    x->project = tv_cfg_num(c, 512, "projection_dim", NULL);
    x->has_image = true;
    read_clip_image(&x->image, image);
    x->image_project = x->project;
    if (tv_str_has(architecture, TV_S("SafetyChecker"))) {
        x->extra = 20 * x->project + 20; /* 17 concepts and 3 special ones, with a threshold each */
        return;
    }
    x->has_text = true;
    read_clip_text(&x->text, text);
    x->text_project = x->project;
    x->scalars = 1;
}

static void read_siglip(vision_spec *x, const tv_json *c)
{
    x->has_image = x->has_text = true;
    read_siglip_image(&x->image, tv_json_get(c, "vision_config"));
    read_siglip_text(&x->text, tv_json_get(c, "text_config"));
    x->project = x->image.hidden;
    x->scalars = 2;
}

static void read_plain(vision_spec *x, const tv_json *c, tv_str type)
{
    tower *t = &x->image;
    bool beit = tv_str_is(type, "beit");
    bool dino = tv_str_is(type, "dinov2");
    bool labels = tv_cfg_architecture_has(c, TV_S("ForImageClassification"));
    read_image(t, c, dino ? 14 : 16);
    t->patch_bias = t->post_norm = true;
    t->extra_tokens = tv_str_is(type, "deit") ? 2 : 1;
    t->table = !beit || tv_json_bool(tv_json_get(c, "use_absolute_position_embeddings"), false);
    t->k_bias = !beit;
    t->layer_scale = dino || (beit && tv_cfg_num(c, 0.1, "layer_scale_init_value", NULL) > 0);
    t->mask_token = dino || (beit && tv_json_bool(tv_json_get(c, "use_mask_token"), false));
    t->swiglu = tv_json_bool(tv_json_get(c, "use_swiglu_ffn"), false);
    if (t->swiglu) /* two thirds, rounded up to a multiple of eight */
        t->inter =
            floor((floor(t->hidden * tv_cfg_num(c, 4, "mlp_ratio", NULL) * 2 / 3) + 7) / 8) * 8;
    double side = floor(t->image / t->patch);
    if (beit && tv_json_bool(tv_json_get(c, "use_relative_position_bias"), false))
        t->relative = (2 * side - 1) * (2 * side - 1) + 3;
    x->pool_norm = beit && tv_json_bool(tv_json_get(c, "use_mean_pooling"), true);
    if (x->pool_norm)
        t->post_norm = false;
    x->classifier = labels;
    x->classifier_in = dino ? 2 : 1;
    x->classifiers = tv_cfg_architecture_has(c, TV_S("WithTeacher")) ? 2 : 1;
    x->pooler =
        !labels && !beit && !dino && tv_json_bool(tv_json_get(c, "add_pooling_layer"), true);
    x->has_image = true;
}

static void read_spec(vision_spec *x, const tv_source *s)
{
    const tv_json *c = s->config;
    tv_str type = tv_family_type(s);
    tv_str architecture = tv_family_architecture(s);
    bool projects = tv_str_has(architecture, TV_S("WithProjection"));
    double project = projects ? tv_cfg_num(c, 512, "projection_dim", NULL) : 0;
    x->labels = tv_cfg_labels(c);
    x->classifier_in = x->classifiers = 1;
    if (tv_str_is(type, "clip_text_model")) {
        x->has_text = true;
        read_clip_text(&x->text, c);
        x->text_project = project;
    } else if (tv_str_is(type, "siglip_text_model")) {
        x->has_text = true;
        read_siglip_text(&x->text, c);
    } else if (tv_str_is(type, "clip_vision_model")) {
        x->has_image = true;
        read_clip_image(&x->image, c);
        x->image_project = project;
    } else if (tv_str_is(type, "siglip_vision_model")) {
        x->has_image = true;
        read_siglip_image(&x->image, c);
    } else if (tv_str_is(type, "siglip")) {
        read_siglip(x, c);
    } else if (tv_json_has(c, "vision_config")) {
        read_clip(x, c, architecture);
    } else {
        read_plain(x, c, type);
    }
}

/* ---- graph ---- */

static const tv_attn_names names = {
    .q = "self_attn.q_proj",
    .k = "self_attn.k_proj",
    .v = "self_attn.v_proj",
    .core = "self_attn",
    .out = "self_attn.out_proj",
};

static tv_layer_part layer_of(const tv_emit *e, const tower *t, double tokens)
{
    return (tv_layer_part){
        .attn = {.names = names,
                 .hidden = t->hidden,
                 .heads = t->heads,
                 .head_dim = t->hidden / t->heads,
                 .q_tokens = tokens,
                 .k_tokens = tokens,
                 .q_bias = true,
                 .k_bias = t->k_bias,
                 .v_bias = true,
                 .out_bias = true,
                 .causal = t->causal,
                 .dropout = tv_dropout(e->set, t->attention_dropout),
                 .no_kernel = t->relative > 0},
        .mlp = {.up = "mlp.fc1",
                .down = "mlp.fc2",
                .fused = t->swiglu ? "mlp.weights_in" : NULL,
                .hidden = t->hidden,
                .inter = t->inter,
                .act = t->swiglu ? TV_ACT_SILU : t->act,
                .bias = true},
        .norm = TV_NORM_LAYER,
        .norm_bias = true,
        .norm1 = "layer_norm1",
        .norm2 = "layer_norm2",
        .dropout = tv_dropout(e->set, t->dropout),
        .layer_scale = t->layer_scale,
    };
}

static tv_val norm(tv_emit *e, const char *name, tv_val v, double width)
{
    return tv_emit_norm(e, name, TV_NORM_LAYER, v, width, true, true);
}

static double patches_of(const tower *t, const tv_setting *set)
{
    double h = set->image_h ? set->image_h : t->image;
    double w = set->image_w ? set->image_w : set->image_h ? set->image_h : t->image;
    return fmax(1, floor(h / t->patch)) * fmax(1, floor(w / t->patch));
}

static void plain_weight(tv_emit *e, const char *name, double rows, double cols)
{
    if (rows * cols > 0)
        tv_emit_weight(e, name, TV_WEIGHT_OTHER, rows, cols, 1, TV_SHARD_NONE);
}

static tv_val put_patches(tv_emit *e, const tower *t, double patches)
{
    double area = t->patch * t->patch;
    tv_emit_block(e, "patch_embeddings", TV_STAGE_EMBED, tv_no_val);
    tv_val v = tv_emit_input(e, "images", patches * area * t->channels, e->set->policy.stream);
    v = tv_emit_conv(e,
                     &(tv_conv){.name = "patch_embedding",
                                .in = t->channels,
                                .out = t->hidden,
                                .kernel = area,
                                .positions = patches,
                                .bias = t->patch_bias},
                     v);
    plain_weight(e, "class_token", t->extra_tokens, t->hidden);
    plain_weight(e, "mask_token", t->mask_token, t->hidden);
    double own = floor(t->image / t->patch);
    if (t->table)
        plain_weight(e, "position_embedding", own * own + t->extra_tokens, t->hidden);
    if (t->extra_tokens > 0) {
        tv_val parts[2] = {
            tv_emit_view(v, tv_form_per_batch(t->extra_tokens * t->hidden)),
            v,
        };
        v = tv_emit_concat(e, "class_token.concat", parts, 2);
    }
    if (t->table)
        v = tv_emit_add(e, "add_positions", v, tv_no_val);
    if (t->pre_norm)
        v = norm(e, "pre_layernorm", v, t->hidden);
    v = tv_emit_dropout(e, "dropout", tv_dropout(e->set, t->dropout), v);
    v = tv_emit_end(e, v);
    tv_emit_runs(e, 1);
    return v;
}

static tv_val put_words(tv_emit *e, const tower *t, double tokens)
{
    tv_emit_block(e, "text_embeddings", TV_STAGE_EMBED, tv_no_val);
    tv_val ids = tv_emit_input(e, "token ids", tokens, TV_I64);
    tv_val v = tv_emit_embedding(e, "token_embedding", ids, t->vocab, t->hidden,
                                 tv_form_per_batch(tokens));
    tv_val p = tv_emit_embedding(e, "position_embedding", ids, t->positions, t->hidden,
                                 (tv_form){.a = tokens});
    v = tv_emit_end(e, tv_emit_add(e, "add_positions", v, p));
    tv_emit_runs(e, 1);
    return v;
}

static tv_val put_layers(tv_emit *e, const tower *t, const char *name, double tokens, tv_val v)
{
    tv_layer_part part = layer_of(e, t, tokens);
    v = tv_emit_block(e, name, TV_STAGE_BODY, v);
    plain_weight(e, "relative_position_bias_table", t->relative, t->heads);
    v = tv_emit_layer_part(e, &part, v);
    v = tv_emit_end(e, v);
    tv_emit_runs(e, t->layers);
    return v;
}

static tv_val linear(tv_emit *e, const char *name, double in, double out, bool bias, tv_val v)
{
    return tv_emit_linear(
        e, &(tv_linear){.name = name, .in = in, .out = out, .bias = bias, .no_adapter = true}, v);
}

/* One learned query looks at all tokens; a norm and a feed forward with its residual follow. */
static tv_val put_pooling_head(tv_emit *e, const tower *t, double tokens, tv_val v)
{
    tv_layer_part part = layer_of(e, t, tokens);
    plain_weight(e, "head.probe", 1, t->hidden);
    part.attn.q_tokens = 1;
    part.attn.cross = false;
    tv_val probe = tv_emit_view(v, tv_form_per_batch(t->hidden));
    tv_val pooled = tv_emit_attn_part(e, &part.attn, probe, v);
    return tv_emit_half(e, &part, NULL, "head.layernorm", pooled, tv_no_val);
}

/* What a tower hands to the loss or the caller: one vector a sample. */
static tv_val put_tower_end(tv_emit *e, const tower *t, double project, double tokens, tv_val v)
{
    if (t->post_norm)
        v = norm(e, "post_layernorm", v, t->hidden);
    if (t->pooling_head)
        v = put_pooling_head(e, t, tokens, v);
    tv_val first = tv_emit_view(v, tv_form_per_batch(t->hidden));
    if (t->text_head > 0)
        first = linear(e, "head", t->hidden, t->text_head, true, first);
    if (project > 0)
        first = linear(e, "projection", t->hidden, project, false, first);
    return first;
}

/* Every image against every text of the batch: B² scores. */
static void put_contrast(tv_emit *e, double width, tv_val image, tv_val text)
{
    tv_form n = {.d = 1};
    tv_op *op = tv_emit_op(e, TV_OP_GEMM, "logits_per_image");
    op->flop = tv_form_scale(n, 2 * width);
    op->backward = 2;
    op->backward_launches = 2;
    op->m = tv_form_per_batch(1);
    op->n = 1;
    op->k = width;
    op->read_bytes = tv_form_scale(tv_form_add(image.n, text.n), tv_dtype_bytes(image.dtype));
    op->write_bytes = tv_form_scale(n, 4);
    const uint32_t both[2] = {image.storage, text.storage};
    tv_emit_reads(e, op, both, 2);
    tv_val scores = tv_emit_out(e, op, "similarity", n, TV_F32, true);
    tv_emit_saves(e, op, both, 2);
    tv_emit_pointwise_loss(e, "contrastive_loss", scores);
}

static void put_plain_head(tv_emit *e, const vision_spec *x, double tokens, tv_val v)
{
    const tower *t = &x->image;
    v = put_tower_end(e, t, x->image_project, tokens, v);
    plain_weight(e, "concepts", 1, x->extra);
    double width = x->image_project > 0 ? x->image_project : t->hidden;
    if (x->pooler)
        v = tv_emit_act(e, "pooler.activation", TV_ACT_TANH,
                        linear(e, "pooler.dense", t->hidden, t->hidden, true, v));
    if (x->pool_norm)
        v = norm(e, "pooler.layernorm", v, t->hidden);
    if (!x->classifier && !tv_trains(e->set))
        return;
    double in = x->classifier ? width * x->classifier_in : width;
    v = tv_emit_view(v, tv_form_per_batch(in));
    for (double i = 1; i < x->classifiers && x->classifier; i++)
        (void)linear(e, "distillation_classifier", in, x->labels, true, v);
    v = linear(e, "classifier", in, x->labels, true, v);
    if (tv_trains(e->set))
        tv_emit_cross_entropy(e, "loss", v, x->labels, 1);
}

static tv_val run_image(tv_emit *e, const vision_spec *x, double *tokens)
{
    double patches = patches_of(&x->image, e->set);
    *tokens = patches + x->image.extra_tokens;
    tv_val v = put_patches(e, &x->image, patches);
    return put_layers(e, &x->image, "vision_layer", *tokens, v);
}

static void build_dual(tv_emit *e, const vision_spec *x)
{
    double tokens = 0;
    double words = x->text.positions;
    tv_val image = run_image(e, x, &tokens);
    image = tv_emit_block(e, "vision_head", TV_STAGE_BODY, image);
    image = put_tower_end(e, &x->image, x->image_project, tokens, image);
    tv_emit_global(e, image);
    image = tv_emit_end(e, image);
    tv_emit_runs(e, 1);
    tv_val text = put_layers(e, &x->text, "text_layer", words, put_words(e, &x->text, words));
    text = tv_emit_block(e, "head", TV_STAGE_HEAD, text);
    text = put_tower_end(e, &x->text, x->text_project, words, text);
    plain_weight(e, "logit_scale", 1, x->scalars);
    if (tv_trains(e->set))
        put_contrast(e, x->project, image, text);
    tv_emit_end(e, text);
    tv_emit_runs(e, 1);
}

static void build_text(tv_emit *e, const vision_spec *x)
{
    double tokens = e->set->seq ? e->set->seq : x->text.positions;
    tv_val v = put_layers(e, &x->text, "text_layer", tokens, put_words(e, &x->text, tokens));
    v = tv_emit_block(e, "head", TV_STAGE_HEAD, v);
    v = put_tower_end(e, &x->text, x->text_project, tokens, v);
    if (tv_trains(e->set)) {
        double in = x->text_project > 0 ? x->text_project : x->text.hidden;
        v = linear(e, "classifier", in, x->labels, true, v);
        tv_emit_cross_entropy(e, "loss", v, x->labels, 1);
    }
    tv_emit_end(e, v);
    tv_emit_runs(e, 1);
}

static void build_image(tv_emit *e, const vision_spec *x)
{
    double tokens = 0;
    tv_val v = run_image(e, x, &tokens);
    v = tv_emit_block(e, "head", TV_STAGE_HEAD, v);
    put_plain_head(e, x, tokens, v);
    tv_emit_end(e, tv_no_val);
    tv_emit_runs(e, 1);
}

static const tv_err *build(tv_arena *a, const tv_model *m, const tv_setting *set, tv_graph **graph)
{
    const vision_spec *x = m->spec;
    tv_emit e = tv_emit_open(a, set);
    if (x->has_image && x->has_text)
        build_dual(&e, x);
    else if (x->has_text)
        build_text(&e, x);
    else
        build_image(&e, x);
    e.g->heads = x->has_image ? x->image.heads : x->text.heads;
    e.g->tokens_per_sample = x->has_image ? 0 : set->seq ? set->seq : x->text.positions;
    *graph = tv_emit_close(&e);
    return NULL;
}

static bool sound(const tower *t)
{
    return t->layers >= 1 && t->layers <= TV_LIMIT_LAYERS && t->hidden >= 1 && t->heads >= 1 &&
           t->inter >= 1;
}

static const tv_err *make(tv_arena *a, const tv_source *s, tv_model *m)
{
    vision_spec *x = tv_new(a, vision_spec, 1);
    read_spec(x, s);
    const tower *t = x->has_image ? &x->image : &x->text;
    bool good = (!x->has_image || (sound(&x->image) && x->image.patch >= 1)) &&
                (!x->has_text || sound(&x->text));
    if (!good)
        return tv_in_file(TV_FAIL0(a, TV_INPUT, "vision.shape",
                                   N_("the configuration lacks layers, width, heads or patch size, "
                                      "or they are out of range")),
                          s->path);
    m->spec = x;
    m->build = build;
    m->layers = t->layers;
    m->hidden = t->hidden;
    m->heads = m->kv_heads = t->heads;
    m->head_dim = t->hidden / t->heads;
    m->intermediate = t->inter;
    m->vocab = x->text.vocab;
    m->max_seq = x->text.positions;
    m->default_seq = x->has_image ? 0 : (uint32_t)x->text.positions;
    if (x->has_image) {
        m->image_h = m->image_w = (uint32_t)x->image.image;
        m->image_c = (uint32_t)x->image.channels;
    }
    m->stored = tv_cfg_dtype(s->config);
    if (x->has_image && !x->has_text && !x->classifier)
        tv_family_part(
            a, m,
            (tv_part){.name = TV_S("classifier"),
                      .params = x->labels * (t->hidden + 1),
                      .why = TV_TEXT0("vision.classifier",
                                      N_("training a bare encoder adds a classification head"))});
    return tv_count_params(a, m, s);
}

const tv_family tv_family_vision = {
    .name = "encoder",
    .summary = N_("transformers over image patches: ViT, DeiT, BEiT, DINOv2, CLIP, SigLIP"),
    .claims = claims,
    .make = make,
};
