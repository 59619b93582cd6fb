/* Text encoders: BERT, RoBERTa, ERNIE (also PaddleNLP's own configuration files), ELECTRA,
 * DistilBERT, ALBERT, DeBERTa-v2, and what is built of them (sentence embedders).
 * Knows their configuration keys, modules and heads. Does not know what an op saves or costs
 * (desc/emit.h), nor any model's numbers.
 *
 * Layers are post-norm: attention, add, norm, feed forward, add, norm. The head is the one that
 * `architectures` names; a bare encoder gets its pooler, and in training a small classifier. */
#include "family.h"
#include "pieces.h"

typedef enum head_kind {
    HEAD_NONE,
    HEAD_MLM,
    HEAD_PRETRAIN, /* masked words and sentence pairs */
    HEAD_CLASSES,  /* one label a sequence */
    HEAD_TOKENS,   /* one label a token */
    HEAD_SPAN,     /* start and end of an answer */
    HEAD_REPLACED, /* ELECTRA: was this token replaced */
} head_kind;

typedef struct encoder_spec {
    double layers, hidden, heads, inter, vocab, embed, positions, token_types, task_types;
    double groups; /* > 0: layers share the parameters of so many groups (ALBERT) */
    tv_act act;
    double dropout, attention_dropout;
    bool pooler; /* the class has one; used by bare encoders and sentence heads */
    head_kind head;
    double labels;
    bool tied;
    double relative_buckets; /* > 0: disentangled attention (DeBERTa) */
    bool share_att_key;
    bool c2p, p2c;
} encoder_spec;

static const char *const types[] = {
    "bert",    "roberta",        "xlm-roberta",     "camembert",  "ernie", "ernie_m",
    "electra", "distilbert",     "albert",          "deberta-v2", "mpnet", "megatron-bert",
    "nezha",   "xlm-roberta-xl", "bert-generation", NULL,
};

/* PaddleNLP 2.x nests: init_args[0] holds the encoder's keys, init_class the head's class. */
static const tv_json *config_of(const tv_source *s)
{
    const tv_json *inner = tv_json_at(tv_json_get(s->config, "init_args"), 0);
    if (tv_json_has(inner, "init_args"))
        inner = tv_json_at(tv_json_get(inner, "init_args"), 0);
    return tv_json_has(inner, "hidden_size") ? inner : s->config;
}

static unsigned claims(const tv_source *s)
{
    if (s->kind != TV_SOURCE_HF_CONFIG)
        return 0;
    tv_str type = tv_family_type(s);
    if (tv_family_in(type, types))
        return 90;
    const tv_json *c = config_of(s);
    tv_str architecture = tv_family_architecture(s);
    if (!type.n &&
        (tv_str_has(architecture, TV_S("Bert")) || tv_str_has(architecture, TV_S("Roberta")) ||
         tv_str_has(architecture, TV_S("Ernie")) || tv_str_has(architecture, TV_S("Electra"))))
        return 80;
    /* The 2018 form: no type, no class, but an encoder's keys. */
    bool keys = tv_json_has(c, "hidden_size") && tv_json_has(c, "num_hidden_layers") &&
                tv_json_has(c, "hidden_dropout_prob") && tv_json_has(c, "vocab_size");
    return !type.n && !architecture.n && keys ? 60 : 0;
}

static head_kind head_named(const tv_json *c, tv_str name)
{
    static const struct {
        const char *word;
        head_kind head;
    } heads[] = {
        {"Discriminator", HEAD_REPLACED},    {"ElectraForPreTraining", HEAD_REPLACED},
        {"ForPreTraining", HEAD_PRETRAIN},   {"ForPretraining", HEAD_PRETRAIN},
        {"ForMaskedLM", HEAD_MLM},           {"LMHeadModel", HEAD_MLM},
        {"ForCausalLM", HEAD_MLM},           {"ForSequenceClassification", HEAD_CLASSES},
        {"ForMultipleChoice", HEAD_CLASSES}, {"ForTokenClassification", HEAD_TOKENS},
        {"ForQuestionAnswering", HEAD_SPAN},
    };
    (void)c;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (tv_str_has(name, tv_str_of(heads[i].word)))
            return heads[i].head;
    return HEAD_NONE;
}

static bool class_has_pooler(tv_str type)
{
    static const char *const without[] = {"distilbert", "electra", "deberta-v2", NULL};
    return !tv_family_in(type, without);
}

static void read_relative(encoder_spec *x, const tv_json *c)
{
    if (!tv_json_bool(tv_json_get(c, "relative_attention"), false))
        return;
    double buckets = tv_cfg_num(c, -1, "position_buckets", NULL);
    double distance = tv_cfg_num(c, -1, "max_relative_positions", NULL);
    x->relative_buckets = buckets > 0 ? buckets : distance > 0 ? distance : x->positions;
    x->share_att_key = tv_json_bool(tv_json_get(c, "share_att_key"), false);
    const tv_json *kinds = tv_json_get(c, "pos_att_type");
    tv_str joined = tv_json_str(kinds);
    x->c2p = tv_str_has(joined, TV_S("c2p"));
    x->p2c = tv_str_has(joined, TV_S("p2c"));
    for (size_t i = 0; i < kinds->n && kinds->type == TV_JSON_ARRAY; i++) {
        x->c2p |= tv_str_is(tv_json_str(&kinds->items[i]), "c2p");
        x->p2c |= tv_str_is(tv_json_str(&kinds->items[i]), "p2c");
    }
    if (!tv_json_bool(tv_json_get(c, "position_biased_input"), false))
        x->positions = 0;
}

static void read_shape(encoder_spec *x, const tv_json *c)
{
    x->layers = tv_cfg_num(c, 0, "num_hidden_layers", "n_layers", "num_layers", NULL);
    x->hidden = tv_cfg_num(c, 0, "hidden_size", "dim", "d_model", NULL);
    x->heads = tv_cfg_num(c, 0, "num_attention_heads", "n_heads", NULL);
    x->inter = tv_cfg_num(c, 4 * x->hidden, "intermediate_size", "hidden_dim", NULL);
    x->vocab = tv_cfg_num(c, 0, "vocab_size", NULL);
    x->embed = tv_cfg_num(c, x->hidden, "embedding_size", NULL);
    x->positions = tv_cfg_num(c, 512, "max_position_embeddings", NULL);
    x->dropout = tv_cfg_num(c, 0.1, "hidden_dropout_prob", "dropout", NULL);
    x->attention_dropout =
        tv_cfg_num(c, 0.1, "attention_probs_dropout_prob", "attention_dropout", NULL);
    x->act = tv_cfg_act(tv_json_str(tv_cfg(c, "hidden_act", "activation", NULL)), TV_ACT_GELU);
}

static void read_spec(encoder_spec *x, const tv_source *s)
{
    const tv_json *c = config_of(s);
    tv_str type = tv_family_type(s);
    read_shape(x, c);
    bool ernie = tv_json_has(c, "task_type_vocab_size");
    x->task_types = tv_cfg_num(c, 0, "task_type_vocab_size", NULL);
    if (tv_json_has(c, "use_task_id") && !tv_json_bool(tv_json_get(c, "use_task_id"), true))
        x->task_types = 0;
    bool plain = tv_str_is(type, "distilbert") || tv_str_is(type, "mpnet");
    double types_default = plain ? 0 : ernie ? 4 : 2;
    x->token_types =
        tv_cfg_num(c, types_default, ernie ? "sent_type_vocab_size" : "type_vocab_size",
                   "type_vocab_size", NULL);
    if (tv_str_is(type, "albert"))
        x->groups = tv_cfg_num(c, 1, "num_hidden_groups", NULL);
    read_relative(x, c);
    tv_str class_name = tv_json_str(tv_json_get(s->config, "init_class"));
    if (!class_name.n)
        class_name = tv_family_architecture(s);
    x->head = head_named(c, class_name);
    bool electra = tv_str_has(class_name, TV_S("Electra"));
    x->pooler = class_has_pooler(type) && !electra;
    x->labels = x->head == HEAD_SPAN ? 2 : x->head == HEAD_NONE ? 2 : tv_cfg_labels(c);
    x->tied = tv_json_bool(tv_json_get(c, "tie_word_embeddings"), true);
}

/* ---- the graph ---- */

static const tv_attn_names bert_names = {
    .q = "attention.self.query",
    .k = "attention.self.key",
    .v = "attention.self.value",
    .core = "attention.self",
    .out = "attention.output.dense",
};

static tv_val put_embeddings(tv_emit *e, const encoder_spec *x, double tokens)
{
    tv_form rows = tv_form_per_batch(tokens);
    tv_emit_block(e, "embeddings", TV_STAGE_EMBED, tv_no_val);
    tv_val ids = tv_emit_input(e, "token ids", tokens, TV_I64);
    tv_val v = tv_emit_embedding(e, "word_embeddings", ids, x->vocab, x->embed, rows);
    if (x->token_types > 0)
        v = tv_emit_add(
            e, "add_types", v,
            tv_emit_embedding(e, "token_type_embeddings", ids, x->token_types, x->embed, rows));
    if (x->positions > 0)
        v = tv_emit_add(e, "add_positions", v,
                        tv_emit_embedding(e, "position_embeddings", ids, x->positions, x->embed,
                                          (tv_form){.a = tokens}));
    if (x->task_types > 0)
        v = tv_emit_add(
            e, "add_tasks", v,
            tv_emit_embedding(e, "task_type_embeddings", ids, x->task_types, x->embed, rows));
    bool projected = x->embed != x->hidden;
    v = tv_emit_norm(e, "LayerNorm", TV_NORM_LAYER, v, x->embed, true, true);
    v = tv_emit_dropout(e, "dropout", tv_dropout(e->set, x->dropout), v);
    if (projected)
        v = tv_emit_linear(
            e,
            &(tv_linear){
                .name = "embeddings_project", .in = x->embed, .out = x->hidden, .bias = true},
            v);
    if (x->relative_buckets > 0) { /* one table for all layers, normed once (DeBERTa-v2) */
        tv_emit_weight(e, "rel_embeddings", TV_WEIGHT_OTHER, 2 * x->relative_buckets, x->hidden, 1,
                       TV_SHARD_NONE);
        tv_emit_weight(e, "rel_embeddings.LayerNorm", TV_WEIGHT_NORM, 2, x->hidden, 1,
                       TV_SHARD_NONE);
    }
    v = tv_emit_end(e, v);
    tv_emit_runs(e, 1);
    return v;
}

/* One of the two position terms of disentangled attention: scores against 2·buckets relative
 * positions, gathered to the token grid (He et al. 2021, eq. 4). */
static void put_position_scores(tv_emit *e, const encoder_spec *x, const char *name, double tokens,
                                tv_val side)
{
    double width = x->hidden / x->heads;
    double spots = 2 * x->relative_buckets;
    tv_form n = tv_form_per_batch(x->heads * tokens * spots);
    tv_op *op = tv_emit_op(e, TV_OP_GEMM, name);
    op->flop = tv_form_scale(n, 2 * width);
    op->backward = tv_trains(e->set) ? 2 : 0;
    op->compute = e->set->policy.compute;
    op->m = tv_form_per_batch(tokens);
    op->n = spots;
    op->k = width;
    op->groups = x->heads;
    double element = tv_dtype_bytes(side.dtype);
    op->read_bytes = tv_form_scale(side.n, element);
    op->write_bytes = tv_form_scale(n, element);
    op->backward_bytes = tv_form_scale(n, 2 * element);
    op->temp_forward_bytes = tv_form_scale(n, element);
    op->temp_backward_bytes = tv_form_scale(n, element);
    op->shard = TV_SHARD_TENSOR;
    op->temp_shard = TV_SHARD_TENSOR;
    op->launches = 3; /* product, gather, add */
    op->backward_launches = 4;
    tv_emit_reads(e, op, &side.storage, 1);
    if (side.grad)
        tv_emit_saves(e, op, &side.storage, 1);
}

static void put_disentangled(tv_emit *e, const encoder_spec *x, double tokens, tv_val v)
{
    double h = x->hidden;
    if (!x->share_att_key && x->c2p) {
        tv_emit_weight(e, "attention.self.pos_key_proj", TV_WEIGHT_MATRIX, h, h, 1,
                       TV_SHARD_TENSOR);
        tv_emit_weight(e, "attention.self.pos_key_proj.bias", TV_WEIGHT_BIAS, 1, h, 1,
                       TV_SHARD_TENSOR);
    }
    if (!x->share_att_key && x->p2c) {
        tv_emit_weight(e, "attention.self.pos_query_proj", TV_WEIGHT_MATRIX, h, h, 1,
                       TV_SHARD_TENSOR);
        tv_emit_weight(e, "attention.self.pos_query_proj.bias", TV_WEIGHT_BIAS, 1, h, 1,
                       TV_SHARD_TENSOR);
    }
    if (x->c2p)
        put_position_scores(e, x, "attention.self.c2p", tokens, v);
    if (x->p2c)
        put_position_scores(e, x, "attention.self.p2c", tokens, v);
}

static tv_val put_layer(tv_emit *e, const encoder_spec *x, double tokens, tv_val in)
{
    double p = tv_dropout(e->set, x->dropout);
    tv_val v = tv_emit_block(e, "layer", TV_STAGE_BODY, in);
    bool relative = x->relative_buckets > 0;
    if (relative)
        put_disentangled(e, x, tokens, v);
    tv_val a =
        tv_emit_attn_part(e,
                          &(tv_attn_part){.names = bert_names,
                                          .hidden = x->hidden,
                                          .heads = x->heads,
                                          .head_dim = x->hidden / x->heads,
                                          .q_tokens = tokens,
                                          .k_tokens = tokens,
                                          .q_bias = true,
                                          .k_bias = true,
                                          .v_bias = true,
                                          .out_bias = true,
                                          .dropout = tv_dropout(e->set, x->attention_dropout),
                                          .no_kernel = relative},
                          v, tv_no_val);
    a = tv_emit_dropout(e, "attention.output.dropout", p, a);
    v = tv_emit_add(e, "attention.output.add", a, v);
    v = tv_emit_norm(e, "attention.output.LayerNorm", TV_NORM_LAYER, v, x->hidden, true, true);
    tv_val f = tv_emit_mlp_part(e,
                                &(tv_mlp_part){.up = "intermediate.dense",
                                               .down = "output.dense",
                                               .hidden = x->hidden,
                                               .inter = x->inter,
                                               .act = x->act,
                                               .bias = true},
                                v);
    f = tv_emit_dropout(e, "output.dropout", p, f);
    v = tv_emit_add(e, "output.add", f, v);
    v = tv_emit_norm(e, "output.LayerNorm", TV_NORM_LAYER, v, x->hidden, true, true);
    return tv_emit_end(e, v);
}

/* ALBERT: layer i uses group floor(i / (layers / groups)). */
static tv_val put_layers(tv_emit *e, const encoder_spec *x, double tokens, tv_val v)
{
    if (x->groups <= 0) {
        v = put_layer(e, x, tokens, v);
        tv_emit_runs(e, x->layers);
        return v;
    }
    e->shared = true;
    for (double g = 0; g < x->groups; g++) {
        v = put_layer(e, x, tokens, v);
        tv_emit_runs(e, x->layers / x->groups);
    }
    e->shared = false;
    return v;
}

static tv_val head_linear(tv_emit *e, const char *name, double in, double out, tv_val x)
{
    return tv_emit_linear(
        e, &(tv_linear){.name = name, .in = in, .out = out, .bias = true, .no_adapter = true}, x);
}

static tv_val pooled(tv_emit *e, const encoder_spec *x, tv_val v)
{
    tv_val first = tv_emit_view(v, tv_form_per_batch(x->hidden));
    return tv_emit_act(e, "pooler.activation", TV_ACT_TANH,
                       head_linear(e, "pooler.dense", x->hidden, x->hidden, first));
}

static void put_word_head(tv_emit *e, const encoder_spec *x, double tokens, tv_val v)
{
    v = head_linear(e, "cls.predictions.transform.dense", x->hidden, x->embed, v);
    v = tv_emit_act(e, "cls.predictions.transform.act", x->act, v);
    v = tv_emit_norm(e, "cls.predictions.transform.LayerNorm", TV_NORM_LAYER, v, x->embed, true,
                     true);
    tv_weight_role role = e->role;
    e->role = TV_WEIGHT_HEAD;
    tv_val logits = tv_emit_linear(e,
                                   &(tv_linear){.name = "cls.predictions.decoder",
                                                .in = x->embed,
                                                .out = x->vocab,
                                                .bias = true,
                                                .tied = x->tied,
                                                .no_adapter = true,
                                                .no_quant = true,
                                                .shard = TV_SHARD_VOCAB},
                                   v);
    e->role = role;
    if (tv_trains(e->set))
        tv_emit_cross_entropy(e, "loss", logits, x->vocab, tokens);
}

static void put_classifier(tv_emit *e, const encoder_spec *x, tv_val v, double rows)
{
    v = tv_emit_dropout(e, "dropout", tv_dropout(e->set, x->dropout), v);
    v = head_linear(e, "classifier", x->hidden, x->labels, v);
    if (tv_trains(e->set))
        tv_emit_cross_entropy(e, "loss", v, x->labels, rows);
}

/* RoBERTa, DistilBERT, ELECTRA and DeBERTa have the dense layer in the head instead of a pooler:
 * the same parameters at the same place. */
static void put_head(tv_emit *e, const encoder_spec *x, double tokens, tv_val in)
{
    tv_val v = tv_emit_block(e, "head", TV_STAGE_HEAD, in);
    switch (x->head) {
    case HEAD_NONE:
        if (x->pooler)
            v = pooled(e, x, v);
        if (tv_trains(e->set))
            put_classifier(e, x, x->pooler ? v : tv_emit_view(v, tv_form_per_batch(x->hidden)), 1);
        break;
    case HEAD_PRETRAIN:
        put_classifier(e, x, pooled(e, x, v), 1);
        put_word_head(e, x, tokens, v);
        break;
    case HEAD_MLM:
        put_word_head(e, x, tokens, v);
        break;
    case HEAD_CLASSES:
        put_classifier(e, x, pooled(e, x, v), 1);
        break;
    case HEAD_TOKENS:
    case HEAD_SPAN:
        put_classifier(e, x, v, tokens);
        break;
    case HEAD_REPLACED:
        v = head_linear(e, "discriminator_predictions.dense", x->hidden, x->hidden, v);
        v = tv_emit_act(e, "discriminator_predictions.act", x->act, v);
        v = head_linear(e, "discriminator_predictions.dense_prediction", x->hidden, 1, v);
        if (tv_trains(e->set))
            tv_emit_pointwise_loss(e, "loss", v);
        break;
    }
    tv_emit_end(e, v);
    tv_emit_runs(e, 1);
}

static const tv_err *build(tv_arena *a, const tv_model *m, const tv_setting *set, tv_graph **graph)
{
    const encoder_spec *x = m->spec;
    double tokens = set->seq ? set->seq : m->default_seq;
    tv_emit e = tv_emit_open(a, set);
    tv_val v = put_embeddings(&e, x, tokens);
    v = put_layers(&e, x, tokens, v);
    put_head(&e, x, tokens, v);
    e.g->tokens_per_sample = tokens;
    e.g->heads = x->heads;
    *graph = tv_emit_close(&e);
    return NULL;
}

/* ---- the model ---- */

/* Parameters of the head beyond the encoder and its pooler. */
static double head_params(const encoder_spec *x)
{
    double dense = x->hidden * (x->hidden + 1);
    double words =
        x->hidden * x->embed + 3 * x->embed + x->vocab + (x->tied ? 0 : x->vocab * x->embed);
    switch (x->head) {
    case HEAD_NONE:
        return 0;
    case HEAD_MLM:
        return words;
    case HEAD_PRETRAIN:
        return words + x->labels * (x->hidden + 1);
    case HEAD_CLASSES:
        return x->labels * (x->hidden + 1) + (x->pooler ? 0 : dense);
    case HEAD_TOKENS:
    case HEAD_SPAN:
        return x->labels * (x->hidden + 1);
    case HEAD_REPLACED:
        return dense + x->hidden + 1;
    }
    return 0;
}

static void add_parts(tv_arena *a, tv_model *m, const encoder_spec *x)
{
    double head = head_params(x);
    if (head > 0)
        tv_family_part(a, m,
                       (tv_part){.name = TV_S("head"),
                                 .params = head,
                                 .in_total = true,
                                 .why = TV_TEXT0("encoder.head",
                                                 N_("the task head that the class name states"))});
    bool unused =
        x->pooler && (x->head == HEAD_MLM || x->head == HEAD_TOKENS || x->head == HEAD_SPAN);
    if (unused)
        tv_family_part(
            a, m,
            (tv_part){.name = TV_S("pooler"),
                      .params = x->hidden * (x->hidden + 1),
                      .why =
                          TV_TEXT0("encoder.pooler",
                                   N_("checkpoints hold a pooler that this class does not run"))});
    if (x->head == HEAD_NONE)
        tv_family_part(
            a, m,
            (tv_part){.name = TV_S("classifier"),
                      .params = x->labels * (x->hidden + 1),
                      .why = TV_TEXT0("encoder.classifier",
                                      N_("training a bare encoder adds a head of two classes"))});
}

static const tv_err *make(tv_arena *a, const tv_source *s, tv_model *m)
{
    encoder_spec *x = tv_new(a, encoder_spec, 1);
    read_spec(x, s);
    if (x->layers < 1 || x->hidden < 1 || x->heads < 1 || x->vocab < 1)
        return tv_in_file(TV_FAIL0(a, TV_INPUT, "encoder.shape",
                                   N_("the configuration of this encoder lacks its layers, width, "
                                      "heads or vocabulary")),
                          s->path);
    if (x->layers > TV_LIMIT_LAYERS)
        return tv_in_file(
            TV_FAIL0(a, TV_LIMIT, "encoder.layers", N_("more layers than any model has")), s->path);
    const tv_json *c = config_of(s);
    m->spec = x;
    m->build = build;
    m->layers = x->layers;
    m->hidden = x->hidden;
    m->heads = x->heads;
    m->kv_heads = x->heads;
    m->head_dim = x->hidden / x->heads;
    m->intermediate = x->inter;
    m->vocab = x->vocab;
    m->max_seq = tv_cfg_num(c, 512, "max_position_embeddings", NULL);
    m->default_seq = m->max_seq < 512 ? (uint32_t)m->max_seq : 512;
    m->stored = tv_cfg_dtype(c);
    add_parts(a, m, x);
    return tv_count_params(a, m, s);
}

const tv_family tv_family_encoder = {
    .name = "encoder",
    .summary = N_("text encoders: BERT, RoBERTa, ERNIE, ELECTRA, DistilBERT, ALBERT, DeBERTa"),
    .claims = claims,
    .make = make,
};
