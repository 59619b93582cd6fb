/* Encoders with a decoder that looks at them: T5, mT5, UMT5, Switch, BART, mBART, Pegasus, Marian,
 * Whisper; and T5's encoder alone, as image pipelines use it. Knows configuration keys and modules.
 * Does not know what an op saves or costs (desc/emit.h).
 *
 * When decoding only the decoder runs; the encoder's weights stay and its keys and values are kept
 * per sequence in every decoder layer. */
#include "family.h"
#include "pieces.h"

#include <math.h>

typedef struct side {
    double layers, heads, inter;
    double sparse_step; /* every n-th layer has experts; 0: none */
} side;

typedef struct pair_spec {
    side enc, dec;
    bool has_decoder, has_head;
    double width, head_dim, vocab;
    tv_act act;
    bool gated, bias, k_bias, tied, rms;
    bool post_norm, final_norm, embed_norm;
    double positions_enc, positions_dec; /* learned tables; 0: none */
    double buckets;                      /* relative position bias; 0: none */
    bool buckets_every_layer;
    double experts;
    double mels, frames; /* Whisper's audio input */
    double dropout, attention_dropout, act_dropout;
    bool upcast;    /* softmax in fp32 */
    bool no_kernel; /* a bias on the scores */
} pair_spec;

static const char *const t5_types[] = {"t5", "mt5", "umt5", "switch_transformers", "longt5", NULL};
static const char *const bart_types[] = {"bart",       "mbart",   "pegasus", "marian", "m2m_100",
                                         "blenderbot", "whisper", "plbart",  NULL};

static unsigned claims(const tv_source *s)
{
    if (s->kind != TV_SOURCE_HF_CONFIG)
        return 0;
    tv_str type = tv_family_type(s);
    if (tv_family_in(type, t5_types) || tv_family_in(type, bart_types))
        return 90;
    bool both =
        tv_json_has(s->config, "encoder_layers") && tv_json_has(s->config, "decoder_layers");
    return both && tv_json_has(s->config, "d_model") ? 60 : 0;
}

/* ---- reading ---- */

static void read_t5(pair_spec *x, const tv_source *s)
{
    const tv_json *c = s->config;
    tv_str act = tv_json_str(tv_cfg(c, "dense_act_fn", "feed_forward_proj", NULL));
    tv_str proj = tv_json_str(tv_json_get(c, "feed_forward_proj"));
    x->gated = tv_json_bool(tv_json_get(c, "is_gated_act"), tv_str_starts(proj, TV_S("gated")));
    if (tv_str_starts(act, TV_S("gated-"))) /* "gated-gelu" means the tanh form in Python */
        act = tv_str_is(act, "gated-gelu") ? TV_S("gelu_new") : tv_str_drop(act, 6);
    x->act = tv_cfg_act(act, TV_ACT_RELU);
    x->width = tv_cfg_num(c, 512, "d_model", NULL);
    x->head_dim = tv_cfg_num(c, 64, "d_kv", NULL);
    double layers = tv_cfg_num(c, 6, "num_layers", NULL);
    double heads = tv_cfg_num(c, 8, "num_heads", NULL);
    double inter = tv_cfg_num(c, 2048, "d_ff", NULL);
    x->enc = (side){layers, heads, inter, tv_cfg_num(c, 0, "encoder_sparse_step", NULL)};
    x->dec = (side){tv_cfg_num(c, layers, "num_decoder_layers", NULL), heads, inter,
                    tv_cfg_num(c, 0, "decoder_sparse_step", NULL)};
    x->experts = tv_cfg_num(c, 0, "num_experts", NULL);
    x->buckets = tv_cfg_num(c, 32, "relative_attention_num_buckets", NULL);
    x->buckets_every_layer = tv_str_is(tv_family_type(s), "umt5");
    x->rms = x->final_norm = x->no_kernel = x->upcast = true;
    x->dropout = x->attention_dropout = x->act_dropout = tv_cfg_num(c, 0.1, "dropout_rate", NULL);
    x->tied = tv_json_bool(tv_json_get(c, "tie_word_embeddings"), true);
    tv_str architecture = tv_family_architecture(s);
    x->has_decoder = architecture.n > 0 && !tv_str_has(architecture, TV_S("Encoder"));
    x->has_head = tv_str_has(architecture, TV_S("ForConditionalGeneration")) ||
                  tv_str_has(architecture, TV_S("LMHead"));
}

static void read_whisper(pair_spec *x, const tv_json *c)
{
    x->mels = tv_cfg_num(c, 80, "num_mel_bins", NULL);
    x->positions_enc = tv_cfg_num(c, 1500, "max_source_positions", NULL);
    x->positions_dec = tv_cfg_num(c, 448, "max_target_positions", NULL);
    x->frames = 2 * x->positions_enc;
    x->k_bias = false;
    x->post_norm = x->embed_norm = false;
    x->final_norm = true;
}

static void read_bart(pair_spec *x, const tv_source *s)
{
    const tv_json *c = s->config;
    tv_str type = tv_family_type(s);
    x->width = tv_cfg_num(c, 1024, "d_model", NULL);
    x->enc = (side){tv_cfg_num(c, 12, "encoder_layers", NULL),
                    tv_cfg_num(c, 16, "encoder_attention_heads", NULL),
                    tv_cfg_num(c, 4 * x->width, "encoder_ffn_dim", NULL), 0};
    x->dec = (side){tv_cfg_num(c, x->enc.layers, "decoder_layers", NULL),
                    tv_cfg_num(c, x->enc.heads, "decoder_attention_heads", NULL),
                    tv_cfg_num(c, x->enc.inter, "decoder_ffn_dim", NULL), 0};
    x->head_dim = x->width / x->enc.heads;
    x->act = tv_cfg_act(tv_json_str(tv_json_get(c, "activation_function")), TV_ACT_GELU);
    x->bias = x->k_bias = x->has_decoder = x->has_head = true;
    x->tied = tv_json_bool(tv_json_get(c, "tie_word_embeddings"), true);
    bool pre = tv_str_is(type, "mbart") || tv_str_is(type, "pegasus") ||
               tv_str_is(type, "m2m_100") || tv_str_is(type, "blenderbot");
    x->post_norm = !pre;
    x->final_norm = pre;
    x->embed_norm = tv_str_is(type, "bart") || tv_str_is(type, "mbart") || !type.n;
    bool offset = tv_str_is(type, "bart") || tv_str_is(type, "mbart") || !type.n;
    bool fixed =
        tv_str_is(type, "pegasus") || tv_str_is(type, "marian") || tv_str_is(type, "m2m_100");
    double positions = tv_cfg_num(c, 1024, "max_position_embeddings", NULL);
    x->positions_enc = x->positions_dec = fixed ? 0 : positions + (offset ? 2 : 0);
    x->dropout = tv_cfg_num(c, 0.1, "dropout", NULL);
    x->attention_dropout = tv_cfg_num(c, 0, "attention_dropout", NULL);
    x->act_dropout = tv_cfg_num(c, 0, "activation_dropout", NULL);
    if (tv_str_is(type, "whisper"))
        read_whisper(x, c);
}

/* ---- graph ---- */

static const tv_attn_names self_names = {
    .q = "SelfAttention.q_proj",
    .k = "SelfAttention.k_proj",
    .v = "SelfAttention.v_proj",
    .core = "SelfAttention",
    .out = "SelfAttention.o_proj",
};
static const tv_attn_names cross_names = {
    .q = "EncDecAttention.q_proj",
    .k = "EncDecAttention.k_proj",
    .v = "EncDecAttention.v_proj",
    .core = "EncDecAttention",
    .out = "EncDecAttention.o_proj",
};

static tv_norm_kind norm_of(const pair_spec *x)
{
    return x->rms ? TV_NORM_RMS : TV_NORM_LAYER;
}

static tv_layer_part layer_of(const tv_emit *e, const pair_spec *x, const side *s)
{
    return (tv_layer_part){
        .attn = {.names = self_names,
                 .hidden = x->width,
                 .heads = s->heads,
                 .head_dim = x->rms ? x->head_dim : x->width / s->heads,
                 .q_bias = x->bias,
                 .k_bias = x->k_bias,
                 .v_bias = x->bias,
                 .out_bias = x->bias,
                 .dropout = tv_dropout(e->set, x->attention_dropout),
                 .no_kernel = x->no_kernel,
                 .softmax_fp32 = x->upcast},
        .mlp = {.up = x->gated ? "wi_1" : "fc1",
                .gate = x->gated ? "wi_0" : NULL,
                .down = x->gated ? "wo" : "fc2",
                .hidden = x->width,
                .inter = s->inter,
                .act = x->act,
                .bias = x->bias,
                .act_dropout = tv_dropout(e->set, x->act_dropout)},
        .norm = norm_of(x),
        .norm_bias = !x->rms,
        .norm1 = "layer_norm",
        .norm2 = "final_layer_norm",
        .post_norm = x->post_norm,
        .dropout = tv_dropout(e->set, x->dropout),
    };
}

static tv_val put_experts(tv_emit *e, const pair_spec *x, const side *s, tv_val v)
{
    tv_val n = tv_emit_norm(e, "layer_norm", norm_of(x), v, x->width, true, !x->rms);
    n = tv_emit_moe(e,
                    &(tv_moe){.name = "experts",
                              .hidden = x->width,
                              .inter = s->inter,
                              .experts = x->experts,
                              .top_k = 1,
                              .act = x->act},
                    n);
    n = tv_emit_dropout(e, "dropout", tv_dropout(e->set, x->dropout), n);
    return tv_emit_add(e, "residual", n, v);
}

static tv_val put_feed_forward(tv_emit *e, const pair_spec *x, const side *s,
                               const tv_layer_part *p, bool sparse, tv_val v)
{
    return sparse ? put_experts(e, x, s, v) : tv_emit_half(e, p, NULL, p->norm2, v, tv_no_val);
}

static tv_val put_words(tv_emit *e, const pair_spec *x, const char *name, double tokens,
                        double positions, bool known)
{
    tv_form rows = tv_form_per_batch(tokens);
    tv_val ids = tv_emit_input(e, name, tokens, TV_I64);
    tv_val v = tv_emit_embedding(e, "shared", ids, x->vocab, x->width, rows);
    if (known) { /* the other side declared the table */
        e->g->n_weights--;
        e->g->ops[e->g->n_ops - 1].n_weights = 0;
    }
    if (positions > 0)
        v = tv_emit_add(e, "add_positions", v,
                        tv_emit_embedding(e, "embed_positions", ids, positions, x->width,
                                          (tv_form){.a = tokens}));
    if (x->embed_norm)
        v = tv_emit_norm(e, "layernorm_embedding", TV_NORM_LAYER, v, x->width, true, true);
    return tv_emit_dropout(e, "dropout", tv_dropout(e->set, x->dropout), v);
}

/* Two convolutions over the spectrogram, the second with stride two. */
static tv_val put_audio(tv_emit *e, const pair_spec *x)
{
    tv_val v = tv_emit_input(e, "spectrogram", x->mels * x->frames, e->set->policy.stream);
    tv_conv first = {.name = "conv1",
                     .in = x->mels,
                     .out = x->width,
                     .kernel = 3,
                     .positions = x->frames,
                     .bias = true};
    tv_conv second = {.name = "conv2",
                      .in = x->width,
                      .out = x->width,
                      .kernel = 3,
                      .positions = x->positions_enc,
                      .bias = true};
    v = tv_emit_act(e, "gelu", TV_ACT_GELU, tv_emit_conv(e, &first, v));
    v = tv_emit_act(e, "gelu", TV_ACT_GELU, tv_emit_conv(e, &second, v));
    tv_emit_weight(e, "embed_positions", TV_WEIGHT_OTHER, x->positions_enc, x->width, 1,
                   TV_SHARD_NONE);
    v = tv_emit_add(e, "add_positions", v, tv_no_val);
    return tv_emit_dropout(e, "dropout", tv_dropout(e->set, x->dropout), v);
}

static void put_buckets(tv_emit *e, const pair_spec *x, const side *s)
{
    if (x->buckets > 0)
        tv_emit_weight(e, "relative_attention_bias", TV_WEIGHT_OTHER, x->buckets, s->heads, 1,
                       TV_SHARD_NONE);
}

/* Drops what the open kind computes and keeps its weights: a side that does not run. */
static tv_val end_idle(tv_emit *e)
{
    e->g->n_ops = e->g->blocks[e->block].first_op;
    e->g->n_storages = e->g->blocks[e->block].first_storage;
    return tv_emit_end(e, tv_no_val);
}

typedef struct pass {
    tv_emit *e;
    const pair_spec *x;
    double source, target; /* tokens */
    bool idle;             /* the encoder does not run */
} pass;

static tv_val idle_input(const pass *p)
{
    return tv_emit_input(p->e, "idle", p->source * p->x->width, p->e->set->policy.stream);
}

static tv_val end_kind(const pass *p, tv_val v, double n)
{
    v = p->idle ? end_idle(p->e) : tv_emit_end(p->e, v);
    tv_emit_runs(p->e, n);
    return v;
}

static tv_val encoder_layer(const pass *p, const char *name, bool sparse, tv_val v)
{
    tv_layer_part part = layer_of(p->e, p->x, &p->x->enc);
    part.attn.q_tokens = part.attn.k_tokens = p->source;
    v = tv_emit_block(p->e, name, TV_STAGE_BODY, v);
    if (p->idle)
        v = idle_input(p);
    if (p->x->buckets_every_layer)
        put_buckets(p->e, p->x, &p->x->enc);
    v = tv_emit_half(p->e, &part, &part.attn, part.norm1, v, tv_no_val);
    return put_feed_forward(p->e, p->x, &p->x->enc, &part, sparse, v);
}

static double sparse_layers(const pair_spec *x, const side *s)
{
    return x->experts > 0 && s->sparse_step > 0 ? floor(s->layers / s->sparse_step) : 0;
}

/* Layer kinds in their order: dense and sparse ones take turns where there are experts. */
static void alternate(tv_emit *e, uint32_t dense, uint32_t sparse, double layers, double step)
{
    for (double i = 0; i < layers; i++)
        tv_emit_order(e, step > 0 && fmod(i, step) == step - 1 ? sparse : dense, 1);
}

static tv_val put_encoder(const pass *p)
{
    tv_emit *e = p->e;
    const pair_spec *x = p->x;
    tv_emit_block(e, "encoder_embeddings", TV_STAGE_EMBED, tv_no_val);
    tv_val v = x->mels > 0 ? put_audio(e, x)
                           : put_words(e, x, "source ids", p->source, x->positions_enc, false);
    if (!x->buckets_every_layer)
        put_buckets(e, x, &x->enc);
    v = end_kind(p, v, 1);
    double sparse = sparse_layers(x, &x->enc);
    bool split_last = !x->final_norm; /* its output is what the decoder sees */
    uint32_t dense_kind = (uint32_t)e->g->n_blocks;
    v = encoder_layer(p, "encoder_layer", false, v);
    v = p->idle ? end_idle(e) : tv_emit_end(e, v);
    if (sparse > 0) {
        v = encoder_layer(p, "encoder_sparse_layer", true, v);
        v = p->idle ? end_idle(e) : tv_emit_end(e, v);
    }
    alternate(e, dense_kind, dense_kind + 1, x->enc.layers - (split_last ? 1 : 0),
              sparse > 0 ? x->enc.sparse_step : 0);
    if (split_last) {
        v = encoder_layer(p, "encoder_last_layer", false, v);
    } else {
        v = tv_emit_block(e, "encoder_norm", TV_STAGE_BODY, v);
        if (p->idle)
            v = idle_input(p);
        v = tv_emit_norm(e, "final_layer_norm", norm_of(x), v, x->width, true, !x->rms);
        v = tv_emit_dropout(e, "dropout", tv_dropout(e->set, x->dropout), v);
    }
    if (!p->idle)
        tv_emit_global(e, v);
    return end_kind(p, v, 1);
}

static tv_val decoder_layer(const pass *p, const char *name, bool sparse, tv_val v, tv_val memory)
{
    tv_emit *e = p->e;
    const pair_spec *x = p->x;
    tv_layer_part part = layer_of(e, x, &x->dec);
    const double inner = tv_attn_part_inner(&part.attn);
    bool decodes = e->set->phase == TV_PHASE_DECODE;
    part.attn.causal = true;
    part.attn.q_tokens = part.attn.k_tokens = decodes ? 0 : p->target;
    tv_attn_part cross = part.attn;
    cross.names = cross_names;
    cross.cross = true;
    cross.causal = false;
    cross.no_kernel = false;
    cross.k_tokens = p->source;
    v = tv_emit_block(e, name, TV_STAGE_BODY, v);
    double kv_bytes = tv_dtype_bytes(e->set->policy.kv);
    tv_emit_cache(e, 2 * inner, x->dec.heads, 0, 2 * inner * p->source * kv_bytes);
    if (x->buckets_every_layer)
        put_buckets(e, x, &x->dec);
    v = tv_emit_half(e, &part, &part.attn, part.norm1, v, tv_no_val);
    v = tv_emit_half(e, &part, &cross, "encoder_attn_layer_norm", v, memory);
    v = put_feed_forward(e, x, &x->dec, &part, sparse, v);
    return tv_emit_end(e, v);
}

static tv_val put_decoder(const pass *p, tv_val memory)
{
    tv_emit *e = p->e;
    const pair_spec *x = p->x;
    tv_emit_block(e, "decoder_embeddings", TV_STAGE_EMBED, tv_no_val);
    tv_val v = put_words(e, x, "target ids", p->target, x->positions_dec, x->mels <= 0);
    if (!x->buckets_every_layer)
        put_buckets(e, x, &x->dec);
    v = tv_emit_end(e, v);
    tv_emit_runs(e, 1);
    uint32_t dense = (uint32_t)e->g->n_blocks;
    v = decoder_layer(p, "decoder_layer", false, v, memory);
    double sparse = sparse_layers(x, &x->dec);
    if (sparse > 0)
        v = decoder_layer(p, "decoder_sparse_layer", true, v, memory);
    alternate(e, dense, dense + 1, x->dec.layers, sparse > 0 ? x->dec.sparse_step : 0);
    return v;
}

static void put_head(const pass *p, tv_val v)
{
    tv_emit *e = p->e;
    const pair_spec *x = p->x;
    v = tv_emit_block(e, "head", TV_STAGE_HEAD, v);
    if (x->final_norm) {
        v = tv_emit_norm(e, "final_layer_norm", norm_of(x), v, x->width, true, !x->rms);
        v = tv_emit_dropout(e, "dropout", tv_dropout(e->set, x->rms ? x->dropout : 0), v);
    }
    if (x->has_head || tv_trains(e->set)) {
        e->role = TV_WEIGHT_HEAD;
        v = tv_emit_linear(e,
                           &(tv_linear){.name = "lm_head",
                                        .in = x->width,
                                        .out = x->vocab,
                                        .tied = x->tied,
                                        .no_adapter = true,
                                        .no_quant = true,
                                        .shard = TV_SHARD_VOCAB},
                           v);
        if (tv_trains(e->set))
            tv_emit_cross_entropy(e, "loss", v, x->vocab, p->target);
    }
    tv_emit_end(e, v);
    tv_emit_runs(e, 1);
}

/* The encoder alone: training it takes a classifier of two labels on its mean. */
static void put_encoder_end(const pass *p, tv_val v)
{
    if (!tv_trains(p->e->set))
        return;
    tv_emit_block(p->e, "head", TV_STAGE_HEAD, tv_no_val);
    v = tv_emit_global_pool(p->e, "mean", v, p->x->width);
    v = tv_emit_linear(
        p->e,
        &(tv_linear){
            .name = "classifier", .in = p->x->width, .out = 2, .bias = true, .no_adapter = true},
        v);
    tv_emit_cross_entropy(p->e, "loss", v, 2, 1);
    tv_emit_end(p->e, v);
    tv_emit_runs(p->e, 1);
}

static double target_tokens(const tv_model *m, const tv_setting *set)
{
    if (set->phase == TV_PHASE_DECODE)
        return 1;
    if (set->target_seq)
        return set->target_seq;
    return set->phase == TV_PHASE_TRAIN ? m->default_target_seq : 1;
}

static const tv_err *build(tv_arena *a, const tv_model *m, const tv_setting *set, tv_graph **graph)
{
    const pair_spec *x = m->spec;
    tv_emit e = tv_emit_open(a, set);
    pass p = {.e = &e, .x = x, .target = target_tokens(m, set)};
    p.source = x->mels > 0 ? x->positions_enc : set->seq ? set->seq : m->default_seq;
    p.idle = x->has_decoder && set->phase == TV_PHASE_DECODE;
    tv_val v = put_encoder(&p);
    if (x->has_decoder)
        put_head(&p, put_decoder(&p, p.idle ? tv_no_val : v));
    else
        put_encoder_end(&p, v);
    e.g->tokens_per_sample = p.idle ? 1 : p.source;
    e.g->heads = x->has_decoder ? x->dec.heads : x->enc.heads;
    *graph = tv_emit_close(&e);
    return NULL;
}

/* ---- the model ---- */

static bool sound(const side *s)
{
    return s->layers >= 1 && s->layers <= TV_LIMIT_LAYERS && s->heads >= 1 && s->inter >= 1;
}

static void describe(tv_arena *a, const tv_source *s, const pair_spec *x, tv_model *m)
{
    m->layers = x->enc.layers + (x->has_decoder ? x->dec.layers : 0);
    m->hidden = x->width;
    m->heads = m->kv_heads = x->enc.heads;
    m->head_dim = x->head_dim;
    m->intermediate = x->enc.inter;
    m->vocab = x->vocab;
    m->experts = x->experts;
    m->experts_per_token = x->experts > 0 ? 1 : 0;
    m->max_seq = x->mels > 0
                     ? x->positions_dec
                     : tv_cfg_num(s->config, 0, "n_positions", "max_position_embeddings", NULL);
    m->default_seq = x->mels > 0 ? (uint32_t)x->positions_enc : 512;
    m->default_target_seq = 128;
    m->generates = x->has_decoder;
    m->stored = tv_cfg_dtype(s->config);
    if (!x->has_decoder && !tv_family_architecture(s).n)
        tv_family_warn(a, m,
                       TV_TEXT0("encoder_decoder.no-class",
                                N_("the file names no class: taken as T5's encoder alone, as image "
                                   "pipelines keep it")));
}

static const tv_err *make(tv_arena *a, const tv_source *s, tv_model *m)
{
    pair_spec *x = tv_new(a, pair_spec, 1);
    bool t5 = tv_family_in(tv_family_type(s), t5_types);
    if (t5)
        read_t5(x, s);
    else
        read_bart(x, s);
    x->vocab = tv_cfg_num(s->config, t5 ? 32128 : 50265, "vocab_size", NULL);
    if (!sound(&x->enc) || (x->has_decoder && !sound(&x->dec)) || x->width < 1 || x->vocab < 1)
        return tv_in_file(TV_FAIL0(a, TV_INPUT, "encoder_decoder.shape",
                                   N_("the configuration lacks layers, width or heads, or they are "
                                      "out of range")),
                          s->path);
    m->spec = x;
    m->build = build;
    describe(a, s, x, m);
    return tv_count_params(a, m, s);
}

const tv_family tv_family_encoder_decoder = {
    .name = "encoder-decoder",
    .summary = N_("encoders with a decoder: T5, BART, Whisper and their kin"),
    .claims = claims,
    .make = make,
};
