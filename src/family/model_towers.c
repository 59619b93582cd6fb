/* Vision towers of multimodal decoders: parameters counted from the tower's own configuration and
 * reported apart. Formulas are confirmed to the last digit by the totals of published files where
 * docs/model.md, "towers", says so. Knows shapes only; what a tower computes is not modelled. */
#include "decoder.h"

#include <math.h>

typedef struct tower {
    const tv_json *j;
    double text; /* width of the decoder */
    double h, f, n, patch, image;
} tower;

static double num(const tv_json *j, const char *key, double fallback)
{
    return tv_json_num(tv_json_get(j, key), fallback);
}

static double patches(const tower *t)
{
    return floor(t->image / t->patch) * floor(t->image / t->patch);
}

/* Attention and a plain MLP with biases, two LayerNorms. */
static double vit_layer(double h, double f)
{
    return 4 * (h * h + h) + 2 * h * f + f + h + 4 * h;
}

/* CLIP: class token, learned positions, norms before and after; LLaVA's two-layer projector. */
static double clip_tower(const tower *t)
{
    double embed = 3 * t->patch * t->patch * t->h + t->h + (patches(t) + 1) * t->h;
    double projector = t->h * t->text + t->text + t->text * t->text + t->text;
    return embed + t->n * vit_layer(t->h, t->f) + 4 * t->h + projector;
}

/* SigLIP in Gemma 3: patch bias, positions, one norm; a projection without bias and its norm. */
static double siglip_tower(const tower *t)
{
    double embed = 3 * t->patch * t->patch * t->h + t->h + patches(t) * t->h;
    return embed + t->n * vit_layer(t->h, t->f) + 2 * t->h + t->h * t->text + t->h;
}

static double qwen_patch(const tower *t)
{
    double frames = num(t->j, "temporal_patch_size", 2);
    double channels = num(t->j, "in_chans", num(t->j, "in_channels", 3));
    return channels * frames * t->patch * t->patch * t->h;
}

/* Four patches become one token: a norm, then two layers at four times the width. */
static double qwen_merger(const tower *t, double norm, double out)
{
    double side = num(t->j, "spatial_merge_size", 2), wide = side * side * t->h;
    return norm + wide * wide + wide + wide * out + out;
}

static double qwen2_tower(const tower *t)
{
    tower own = *t;
    own.h = num(t->j, "embed_dim", 1280); /* hidden_size is the decoder's width here */
    own.f = own.h * num(t->j, "mlp_ratio", 4);
    return qwen_patch(&own) + own.n * vit_layer(own.h, own.f) +
           qwen_merger(&own, 2 * own.h, t->text);
}

/* RMSNorm and a gated MLP with biases. */
static double qwen25_tower(const tower *t)
{
    double layer = 4 * (t->h * t->h + t->h) + 3 * t->h * t->f + 2 * t->f + t->h + 2 * t->h;
    return qwen_patch(t) + t->n * layer +
           qwen_merger(t, t->h, num(t->j, "out_hidden_size", t->text));
}

/* Learned positions, a patch bias; mergers of inner layers (deepstack) norm at full width. */
static double qwen3_tower(const tower *t)
{
    double out = num(t->j, "out_hidden_size", t->text);
    double side = num(t->j, "spatial_merge_size", 2);
    double deep = (double)tv_json_get(t->j, "deepstack_visual_indexes")->n;
    double embed = qwen_patch(t) + t->h + num(t->j, "num_position_embeddings", 0) * t->h;
    return embed + t->n * vit_layer(t->h, t->f) + qwen_merger(t, 2 * t->h, out) +
           deep * qwen_merger(t, 2 * side * side * t->h, out);
}

/* Tiles: gated positions per tile, plain and gated layers without attention biases. */
static double mllama_tower(const tower *t)
{
    double global = num(t->j, "num_global_layers", 8), tiles = num(t->j, "max_num_tiles", 4);
    double ratios = (double)tv_json_get(t->j, "supported_aspect_ratios")->n + 1;
    double rows = patches(t) + 1, layer = vit_layer(t->h, t->f) - 4 * t->h;
    double positions = rows * t->h + ratios * tiles * rows * t->h + 1;
    double tile_positions = 2 * (ratios * tiles * t->h + 1);
    double out = num(t->j, "vision_output_dim", 7680);
    return 3 * t->patch * t->patch * t->h + t->h + positions + tile_positions + 4 * t->h +
           (t->n + global) * layer + 2 * global + out * t->text + t->text;
}

/* Gemma 4: gated MLP and norms as in its decoder, positions per axis, no biases. */
static double gemma4_tower(const tower *t)
{
    double layer = 4 * t->h * t->h + 3 * t->h * t->f + 4 * t->h + 2 * num(t->j, "head_dim", 72);
    double positions = 2 * num(t->j, "position_embedding_size", 0) * t->h;
    return 3 * t->patch * t->patch * t->h + positions + t->n * layer + t->h * t->text;
}

/* ERNIE 4.5 VL: a ViT as Qwen2's, then a resampler that joins four patches, then two frames, each
 * by two layers and a norm, and a projection with a norm. Source: ERNIE and PaddleFormers,
 * modeling_ernie4_5_vl (DFNRopeVisionTransformer, VariableResolutionResamplerModel). */
static double ernie_tower(const tower *t)
{
    tower own = *t;
    own.h = num(t->j, "embed_dim", num(t->j, "hidden_size", 1280));
    own.f = own.h * num(t->j, "mlp_ratio", 4);
    const double side = num(t->j, "spatial_merge_size", 2), wide = side * side * own.h;
    const double two = wide * wide + wide;
    const double spatial = 2 * two + 2 * wide;
    const double temporal = 2 * wide * wide + wide + two + 2 * wide;
    const double channels = num(t->j, "in_channels", 3);
    return channels * t->patch * t->patch * own.h + own.n * vit_layer(own.h, own.f) + 2 * own.h +
           spatial + temporal + wide * t->text + t->text + t->text;
}

typedef struct tower_kind {
    const char *model_type; /* of the whole configuration */
    double (*count)(const tower *t);
} tower_kind;

static const tower_kind kinds[] = {
    {"ernie4_5_moe_vl", ernie_tower},
    {"ernie4_5_vl_moe", ernie_tower},
    {"gemma3", siglip_tower},
    {"gemma4", gemma4_tower},
    {"llava", clip_tower},
    {"mllama", mllama_tower},
    {"qwen2_5_vl", qwen25_tower},
    {"qwen2_vl", qwen2_tower},
    {"qwen3_5", qwen3_tower},
    {"qwen3_5_moe", qwen3_tower},
    {"qwen3_vl", qwen3_tower},
    {"qwen3_vl_moe", qwen3_tower},
};

static double count_tower(tv_str type, const tower *t)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (tv_str_is(type, kinds[i].model_type))
            return kinds[i].count(t);
    return 0;
}

static tower tower_of(const tv_json *j, double text)
{
    tower t = {.j = j, .text = text};
    t.h = num(j, "hidden_size", num(j, "width", num(j, "vt_hidden_size", 0)));
    t.f = num(j, "intermediate_size", 0);
    t.n = num(j, "num_hidden_layers", num(j, "depth", num(j, "layers", 0)));
    t.patch = num(j, "patch_size", 14);
    t.image = num(j, "image_size", 224);
    return t;
}

/* Experts of a second modality: the lists of ERNIE 4.5 VL give their number, width and layers. */
static void add_image_experts(tv_arena *a, const tv_source *s, double text, tv_model *m)
{
    const tv_json *experts = tv_json_get(s->config, "moe_num_experts");
    const tv_json *width = tv_json_get(s->config, "moe_intermediate_size");
    const tv_json *start = tv_json_get(s->config, "moe_layer_start_index");
    const tv_json *end = tv_json_get(s->config, "moe_layer_end_index");
    const double layers = num(s->config, "num_hidden_layers", 0);
    if (experts->type != TV_JSON_ARRAY || experts->n < 2 || width->n < 2)
        return;
    const double first = tv_json_num(tv_json_at(start, 1), tv_json_num(start, 0));
    const double last = fmin(tv_json_num(tv_json_at(end, 1), tv_json_num(end, -1)), layers - 1);
    const double n = fmax((last < 0 ? layers - 1 : last) - first + 1, 0);
    const double each = tv_json_num(tv_json_at(experts, 1), 0);
    tv_family_part(
        a, m,
        (tv_part){
            .name = TV_S("experts of images"),
            .params = n * each * (3 * text * tv_json_num(tv_json_at(width, 1), 0) + text),
            .why = TV_TEXT0("decoder.image-experts",
                            N_("take the tokens of images in the place of the experts of "
                               "text; their memory is not in the prediction")),
        });
}

void tv_towers_of(tv_arena *a, const tv_source *s, double text_hidden, tv_model *m)
{
    static const char *const parts[] = {"vision_config", "audio_config", "gen_vision_config", NULL};
    tv_str type = tv_json_str(tv_json_get(s->config, "model_type"));
    for (size_t i = 0; parts[i]; i++) {
        const tv_json *j = tv_json_get(s->config, parts[i]);
        if (j->type != TV_JSON_OBJECT)
            continue;
        tower t = tower_of(j, text_hidden);
        double n = i == 0 ? count_tower(type, &t) : 0;
        tv_part part = {
            .name = i == 1 ? TV_S("audio tower") : TV_S("vision tower"),
            .params = n,
            .why = n > 0 ? TV_TEXT0("decoder.tower",
                                    N_("runs beside the decoder when there is an image; its memory "
                                       "and time are not in the prediction"))
                         : TV_TEXT0("decoder.tower.unknown",
                                    N_("stated in the configuration, but its parameters cannot be "
                                       "counted from it")),
        };
        tv_family_part(a, m, part);
    }
    add_image_experts(a, s, text_hidden, m);
}
