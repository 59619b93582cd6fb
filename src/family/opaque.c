/* A model of which only the size is known: a number of parameters, or tensors without a
 * configuration. It is taken to be a plain decoder of exactly that size; everything else about it
 * is assumed by one stated rule, and the model says so.
 *
 * The rule (docs/model.md, "opaque models"): width 128 per layer, as published decoders have
 * between 0.5 and 100 billion parameters; 12·width² parameters per layer (attention 4, gated MLP
 * 8); head width 128; 32,000 tokens, embedding and head apart. The MLP's width takes up the rest,
 * what division leaves over stands in the embedding block as "unassigned", so that the total is
 * exact. */
#include "decoder.h"
#include "state_dict.h"

#include <math.h>

#define WIDTH_PER_LAYER 128.0
#define BODY_PER_WIDTH 12.0
#define TOKENS 32000.0
#define LEAST_PARAMS 1e4 /* below it no transformer has all of its parts */

typedef struct opaque_shape {
    double layers, width, vocab, inter;
} opaque_shape;

static double fixed_params(const opaque_shape *s)
{
    double norms = s->layers * 2 * s->width + s->width;
    return 2 * s->vocab * s->width + s->layers * 4 * s->width * s->width + norms;
}

/* Small models cannot afford the usual vocabulary or width: both shrink until half is left. */
static opaque_shape shape_for(double n)
{
    double body = BODY_PER_WIDTH * WIDTH_PER_LAYER * WIDTH_PER_LAYER;
    opaque_shape s = {.layers = fmax(1, round(cbrt(n / body))), .vocab = TOKENS};
    s.width = s.layers * WIDTH_PER_LAYER;
    while (fixed_params(&s) > 0.5 * n) {
        if (s.vocab > 500)
            s.vocab = floor(s.vocab / 2);
        else
            s.width = s.width / 2;
    }
    s.inter = floor((n - fixed_params(&s)) / (3 * s.layers * s.width));
    return s;
}

static tv_decoder_layer layer_for(const opaque_shape *s)
{
    double heads = fmax(1, s->width / 128);
    return (tv_decoder_layer){
        .name = "layer",
        .mix = {.kind = TV_MIX_ATTENTION,
                .heads = heads,
                .kv_heads = heads,
                .head_dim = s->width / heads},
        .mlp = {.inter = s->inter, .gated = true, .act = TV_ACT_SILU},
        .pre_mix = true,
        .pre_mlp = true,
    };
}

static tv_decoder *decoder_for(tv_arena *a, double n)
{
    opaque_shape s = shape_for(n);
    tv_decoder *d = tv_new(a, tv_decoder, 1);
    tv_decoder_stack stack = {0};
    for (double i = 0; i < s.layers; i++)
        tv_decoder_push(a, &stack, layer_for(&s));
    tv_decoder_close_stack(d, &stack);
    d->names = tv_decoder_names_of((tv_str){0});
    d->hidden = s.width;
    d->vocab = s.vocab;
    d->norm = TV_NORM_RMS;
    d->final_norm = true;
    d->spare = n - fixed_params(&s) - 3 * s.layers * s.width * s.inter;
    return d;
}

static double tensor_elements(const tv_source *s)
{
    return tv_state_dict_count(s).params;
}

/* The type that holds most bytes. */
static tv_dtype main_dtype(const tv_source *s)
{
    double bytes[TV_DTYPE_COUNT] = {0};
    tv_dtype best = TV_DTYPE_UNKNOWN;
    for (size_t i = 0; i < s->n_tensors; i++)
        bytes[s->tensors[i].dtype] += (double)s->tensors[i].bytes;
    for (int t = 1; t < TV_DTYPE_COUNT; t++)
        if (bytes[t] > bytes[best])
            best = (tv_dtype)t;
    return best;
}

static unsigned claims(const tv_source *s)
{
    if (s->kind == TV_SOURCE_PARAMS)
        return 100;
    bool alone =
        !s->config && (s->kind == TV_SOURCE_SAFETENSORS || s->kind == TV_SOURCE_CHECKPOINT);
    return alone && tensor_elements(s) >= LEAST_PARAMS ? 10 : 0;
}

static const tv_err *make(tv_arena *a, const tv_source *s, tv_model *m)
{
    double n = s->kind == TV_SOURCE_PARAMS ? s->stated_params : tensor_elements(s);
    if (!(n >= LEAST_PARAMS) || n > 1e15 || n != floor(n))
        return TV_FAIL(a, TV_USAGE, "opaque.params",
                       N_("{n} is not a number of parameters between 10 thousand and 1e15"),
                       tv_arg_num("n", TV_ARG_NUMBER, n));
    tv_decoder *d = decoder_for(a, n);
    m->stored = main_dtype(s);
    TV_TRY(tv_decoder_finish(a, s, d, m));
    tv_family_warn(a, m,
                   TV_TEXT(a, "opaque.assumed",
                           N_("only the size is known: taken as a decoder of {layers} layers of "
                              "width {width}; activations, cache and time rest on that"),
                           tv_arg_num("layers", TV_ARG_COUNT, d->n_layers),
                           tv_arg_num("width", TV_ARG_COUNT, d->hidden)));
    const tv_state_count count = tv_state_dict_count(s);
    if (count.kernels > 0.2 * count.params)
        tv_family_warn(
            a, m,
            TV_TEXT(a, "opaque.kernels",
                    N_("{share} of the parameters are convolution kernels: weights, "
                       "gradients and optimizer states hold, activations and time do not, "
                       "for sizes of images and strides are not in a state dict; name "
                       "the model, its ONNX file or a capture"),
                    tv_arg_num("share", TV_ARG_RATIO, count.kernels / count.params)));
    return NULL;
}

const tv_family tv_family_opaque = {
    .name = "opaque",
    .summary = N_("models of which only the number of parameters is known"),
    .claims = claims,
    .make = make,
};
