/* Swin: attention inside windows, four stages that halve the grid and double the width. Knows the
 * configuration keys and modules. Does not know what an op saves or costs (desc/emit.h). */
#include "family.h"
#include "pieces.h"

#include <math.h>

#define STAGES 8

typedef struct swin_spec {
    double embed, image, patch, channels, window, ratio;
    double depths[STAGES], heads[STAGES];
    size_t stages;
    tv_act act;
    double dropout, attention_dropout;
    bool classifier;
    double labels;
} swin_spec;

static unsigned claims(const tv_source *s)
{
    return s->kind == TV_SOURCE_HF_CONFIG && tv_str_is(tv_family_type(s), "swin") ? 90 : 0;
}

static const tv_attn_names names = {
    .q = "attention.self.query",
    .k = "attention.self.key",
    .v = "attention.self.value",
    .core = "attention.self",
    .out = "attention.output.dense",
};

typedef struct stage {
    double width, heads, h, w; /* grid of tokens */
} stage;

/* Small grids are one window; others are padded to whole windows. */
static tv_layer_part layer_of(const tv_emit *e, const swin_spec *x, const stage *s)
{
    double side = fmin(x->window, fmin(s->h, s->w));
    double windows = ceil(s->h / side) * ceil(s->w / side);
    return (tv_layer_part){
        .attn = {.names = names,
                 .hidden = s->width,
                 .heads = s->heads,
                 .head_dim = s->width / s->heads,
                 .repeat = windows,
                 .q_tokens = side * side,
                 .k_tokens = side * side,
                 .q_bias = true,
                 .k_bias = true,
                 .v_bias = true,
                 .out_bias = true,
                 .dropout = tv_dropout(e->set, x->attention_dropout),
                 .no_kernel = true}, /* a bias and a mask on the scores */
        .mlp = {.up = "intermediate.dense",
                .down = "output.dense",
                .hidden = s->width,
                .inter = x->ratio * s->width,
                .act = x->act,
                .bias = true},
        .norm = TV_NORM_LAYER,
        .norm_bias = true,
        .norm1 = "layernorm_before",
        .norm2 = "layernorm_after",
        .dropout = tv_dropout(e->set, x->dropout),
    };
}

static tv_val put_layer(tv_emit *e, const swin_spec *x, const stage *s, tv_val v)
{
    tv_layer_part p = layer_of(e, x, s);
    tv_emit_weight(e, "relative_position_bias_table", TV_WEIGHT_OTHER,
                   (2 * x->window - 1) * (2 * x->window - 1), s->heads, 1, TV_SHARD_NONE);
    tv_val n = tv_emit_norm(e, p.norm1, TV_NORM_LAYER, v, s->width, true, true);
    n = tv_emit_contiguous(e, "windows", n); /* cut, and shifted in every second layer */
    n = tv_emit_attn_part(e, &p.attn, n, tv_no_val);
    n = tv_emit_contiguous(e, "grid", n);
    v = tv_emit_add(e, "residual", n, v);
    return tv_emit_half(e, &p, NULL, p.norm2, v, tv_no_val);
}

static tv_val put_merge(tv_emit *e, stage *s, tv_val v)
{
    v = tv_emit_block(e, "downsample", TV_STAGE_BODY, v);
    s->h = ceil(s->h / 2);
    s->w = ceil(s->w / 2);
    v = tv_emit_contiguous(e, "four neighbours", v);
    v = tv_emit_norm(e, "downsample.norm", TV_NORM_LAYER, v, 4 * s->width, true, true);
    v = tv_emit_linear(
        e, &(tv_linear){.name = "downsample.reduction", .in = 4 * s->width, .out = 2 * s->width},
        v);
    s->width *= 2;
    v = tv_emit_end(e, v);
    tv_emit_runs(e, 1);
    return v;
}

static tv_val put_patches(tv_emit *e, const swin_spec *x, const stage *s)
{
    double area = x->patch * x->patch, cells = s->h * s->w;
    tv_emit_block(e, "patch_embeddings", TV_STAGE_EMBED, tv_no_val);
    tv_val v = tv_emit_input(e, "images", cells * area * x->channels, e->set->policy.stream);
    v = tv_emit_conv(e,
                     &(tv_conv){.name = "projection",
                                .in = x->channels,
                                .out = s->width,
                                .kernel = area,
                                .positions = cells,
                                .bias = true},
                     v);
    v = tv_emit_norm(e, "embeddings.norm", TV_NORM_LAYER, v, s->width, true, true);
    v = tv_emit_end(e, v);
    tv_emit_runs(e, 1);
    return v;
}

static void put_head(tv_emit *e, const swin_spec *x, const stage *s, tv_val v)
{
    v = tv_emit_block(e, "head", TV_STAGE_HEAD, v);
    v = tv_emit_norm(e, "layernorm", TV_NORM_LAYER, v, s->width, true, true);
    v = tv_emit_global_pool(e, "pooler", v, s->width);
    if (x->classifier || tv_trains(e->set))
        v = tv_emit_linear(e,
                           &(tv_linear){.name = "classifier",
                                        .in = s->width,
                                        .out = x->labels,
                                        .bias = true,
                                        .no_adapter = true},
                           v);
    if (tv_trains(e->set))
        tv_emit_cross_entropy(e, "loss", v, x->labels, 1);
    tv_emit_end(e, v);
    tv_emit_runs(e, 1);
}

static const tv_err *build(tv_arena *a, const tv_model *m, const tv_setting *set, tv_graph **graph)
{
    const swin_spec *x = m->spec;
    double h = set->image_h ? set->image_h : x->image;
    double w = set->image_w ? set->image_w : h;
    stage s = {x->embed, x->heads[0], fmax(1, floor(h / x->patch)), fmax(1, floor(w / x->patch))};
    tv_emit e = tv_emit_open(a, set);
    tv_val v = put_patches(&e, x, &s);
    for (size_t i = 0; i < x->stages; i++) {
        s.heads = x->heads[i];
        v = tv_emit_block(&e, "layer", TV_STAGE_BODY, v);
        v = tv_emit_end(&e, put_layer(&e, x, &s, v));
        tv_emit_runs(&e, x->depths[i]);
        if (i + 1 < x->stages)
            v = put_merge(&e, &s, v);
    }
    put_head(&e, x, &s, v);
    e.g->tokens_per_sample = 0;
    e.g->heads = x->heads[0];
    *graph = tv_emit_close(&e);
    return NULL;
}

static bool read_spec(swin_spec *x, const tv_json *c)
{
    const tv_json *depths = tv_json_get(c, "depths");
    const tv_json *heads = tv_json_get(c, "num_heads");
    x->embed = tv_cfg_num(c, 96, "embed_dim", NULL);
    x->image = tv_cfg_at(tv_json_get(c, "image_size"), 0, 224);
    x->patch = tv_cfg_at(tv_json_get(c, "patch_size"), 0, 4);
    x->channels = tv_cfg_num(c, 3, "num_channels", NULL);
    x->window = tv_cfg_num(c, 7, "window_size", NULL);
    x->ratio = tv_cfg_num(c, 4, "mlp_ratio", NULL);
    x->act = tv_cfg_act(tv_json_str(tv_json_get(c, "hidden_act")), TV_ACT_GELU);
    x->dropout = tv_cfg_num(c, 0, "hidden_dropout_prob", NULL);
    x->attention_dropout = tv_cfg_num(c, 0, "attention_probs_dropout_prob", NULL);
    x->classifier = tv_cfg_architecture_has(c, TV_S("ForImageClassification"));
    x->labels = tv_cfg_labels(c);
    x->stages = depths->n;
    bool good = depths->n >= 1 && depths->n <= STAGES && heads->n == depths->n && x->embed >= 1 &&
                x->patch >= 1 && x->window >= 1;
    for (size_t i = 0; good && i < x->stages; i++) {
        x->depths[i] = tv_json_num(&depths->items[i], 0);
        x->heads[i] = tv_json_num(&heads->items[i], 0);
        good = x->depths[i] >= 1 && x->depths[i] <= TV_LIMIT_LAYERS && x->heads[i] >= 1;
    }
    return good;
}

static const tv_err *make(tv_arena *a, const tv_source *s, tv_model *m)
{
    swin_spec *x = tv_new(a, swin_spec, 1);
    if (!read_spec(x, s->config))
        return tv_in_file(TV_FAIL0(a, TV_INPUT, "swin.shape",
                                   N_("depths, num_heads, embed_dim, patch_size or window_size is "
                                      "missing or out of range")),
                          s->path);
    m->spec = x;
    m->build = build;
    for (size_t i = 0; i < x->stages; i++)
        m->layers += x->depths[i];
    m->hidden = x->embed;
    m->heads = m->kv_heads = x->heads[0];
    m->head_dim = x->embed / x->heads[0];
    m->image_h = m->image_w = (uint32_t)x->image;
    m->image_c = (uint32_t)x->channels;
    m->stored = tv_cfg_dtype(s->config);
    if (!x->classifier)
        tv_family_part(
            a, m,
            (tv_part){.name = TV_S("classifier"),
                      .params = x->labels * (x->embed * pow(2, (double)x->stages - 1) + 1),
                      .why = TV_TEXT0("vision.classifier",
                                      N_("training a bare encoder adds a classification head"))});
    return tv_count_params(a, m, s);
}

const tv_family tv_family_swin = {
    .name = "encoder",
    .summary = N_("Swin: attention in windows over shrinking grids"),
    .claims = claims,
    .make = make,
};
