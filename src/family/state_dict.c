/* Names that frameworks give to the parts of known architectures (transformers, timm, torchvision,
 * Meta's Llama), with the dimensions read from shapes. Every width but that of one attention head
 * is in them. Matrices may be stored either way round (Paddle, GPT-2): a width is a tensor's
 * elements over the hidden width. */
#include "state_dict.h"

#include <math.h>
#include <stdlib.h>

typedef struct dict {
    tv_arena *a;
    const tv_source *s;
    tv_str root;  /* before the name of the stack: "model." */
    tv_str stack; /* up to the layer's number: "model.layers." */
    double layers;
    double hidden;
    tv_buf out; /* the configuration's text */
    tv_text guess;
} dict;

static int by_name(const void *key, const void *tensor)
{
    return tv_str_cmp(*(const tv_str *)key, ((const tv_tensor *)tensor)->name);
}

static const tv_tensor *find(const dict *d, tv_str name)
{
    if (!d->s->n_tensors)
        return NULL;
    return bsearch(&name, d->s->tensors, d->s->n_tensors, sizeof *d->s->tensors, by_name);
}

/* A tensor of one layer, or of the whole model. */
static const tv_tensor *in_layer(const dict *d, double layer, const char *name)
{
    tv_buf b = tv_buf_in(d->a);
    tv_put(&b, d->stack);
    tv_put_u64(&b, (uint64_t)layer);
    tv_putc(&b, '.');
    tv_puts(&b, name);
    return find(d, tv_buf_str(&b));
}

static const tv_tensor *in_root(const dict *d, const char *name)
{
    const tv_tensor *t = find(d, tv_str_join(d->a, d->root, tv_str_of(name)));
    return t ? t : find(d, tv_str_of(name));
}

/* The first tensor with that ending, wherever it stands. */
static const tv_tensor *ending(const dict *d, const char *end)
{
    for (size_t i = 0; i < d->s->n_tensors; i++) {
        const tv_str name = d->s->tensors[i].name, e = tv_str_of(end);
        if (tv_str_ends(name, e) && (name.n == e.n || name.p[name.n - e.n - 1] == '.'))
            return &d->s->tensors[i];
    }
    return NULL;
}

static double width(const dict *d, const tv_tensor *t)
{
    return t && d->hidden > 0 ? (double)t->elements / d->hidden : 0;
}

static bool plain(const tv_tensor *t)
{
    return t && tv_dtype_of(t->dtype)->is_float;
}

/* ---- the stack of layers ---- */

/* Finds "STACK" + "0." + probe. */
static bool find_stack(dict *d, const char *stack, const char *probe)
{
    tv_buf b = tv_buf_in(d->a);
    tv_puts(&b, stack);
    tv_puts(&b, "0.");
    tv_puts(&b, probe);
    const tv_tensor *t = ending(d, tv_cstr(d->a, tv_buf_str(&b)));
    if (!plain(t))
        return false;
    d->root = tv_str_take(t->name, t->name.n - b.n);
    d->stack = tv_str_join(d->a, d->root, tv_str_of(stack));
    d->layers = 1;
    while (d->layers < TV_LIMIT_LAYERS && in_layer(d, d->layers, probe))
        d->layers++;
    return true;
}

/* ---- writing ---- */

static void put_number(dict *d, const char *key, double v)
{
    tv_puts(&d->out, ",\"");
    tv_puts(&d->out, key);
    tv_puts(&d->out, "\":");
    tv_put_double(&d->out, v);
}

static void put_bool(dict *d, const char *key, bool v)
{
    tv_puts(&d->out, ",\"");
    tv_puts(&d->out, key);
    tv_puts(&d->out, v ? "\":true" : "\":false");
}

static void begin(dict *d, const char *type, const char *architecture)
{
    tv_puts(&d->out, "{\"model_type\":\"");
    tv_puts(&d->out, type);
    tv_puts(&d->out, "\",\"architectures\":[\"");
    tv_puts(&d->out, architecture);
    tv_puts(&d->out, "\"]");
    put_number(d, "hidden_size", d->hidden);
    put_number(d, "num_hidden_layers", d->layers);
}

/* Published decoders above a width of 2,048 have heads of 128, smaller ones and all encoders 64. */
static double guess_head(dict *d, double q, double kv, bool decoder)
{
    double head = decoder && d->hidden > 2048 ? 128 : 64;
    while (head > 1 && (fmod(q, head) != 0 || fmod(kv, head) != 0))
        head = head / 2;
    d->guess =
        TV_TEXT(d->a, "state.head",
                N_("shapes do not tell how wide one attention head is: {head} is taken "
                   "({n} heads)"),
                tv_arg_num("head", TV_ARG_COUNT, head), tv_arg_num("n", TV_ARG_COUNT, q / head));
    return head;
}

/* ---- decoders of Llama's kind ---- */

typedef struct llama_names {
    const char *stack, *q, *k, *o, *gate, *up, *embed, *norm, *head;
} llama_names;

static const llama_names llama_kinds[] = {
    {"layers.", "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.o_proj.weight",
     "mlp.gate_proj.weight", "mlp.up_proj.weight", "embed_tokens.weight", "norm.weight",
     "lm_head.weight"},
    {"layers.", "attention.wq.weight", "attention.wk.weight", "attention.wo.weight",
     "feed_forward.w1.weight", "feed_forward.w3.weight", "tok_embeddings.weight", "norm.weight",
     "output.weight"},
};

/* Experts: a router of [experts, hidden] and their matrices. */
typedef struct experts {
    double n, inter;
    const char *type;
} experts;

static experts find_experts(const dict *d)
{
    const tv_tensor *router = in_layer(d, d->layers - 1, "mlp.gate.weight");
    const tv_tensor *up = in_layer(d, d->layers - 1, "mlp.experts.0.up_proj.weight");
    const tv_tensor *other = in_layer(d, d->layers - 1, "block_sparse_moe.gate.weight");
    const tv_tensor *w1 = in_layer(d, d->layers - 1, "block_sparse_moe.experts.0.w1.weight");
    const tv_tensor *all = in_layer(d, d->layers - 1, "mlp.experts.gate_up_proj");
    const bool q_norm = in_layer(d, 0, "self_attn.q_norm.weight");
    if (plain(router) && plain(up) && q_norm)
        return (experts){width(d, router), width(d, up), "qwen3_moe"};
    /* transformers 5 joins the experts' matrices: [experts, 2·width, hidden] */
    if (plain(router) && plain(all) && all->rank == 3)
        return (experts){width(d, router), width(d, all) / (2 * width(d, router)),
                         q_norm ? "qwen3_moe" : "mixtral"};
    if (plain(other) && plain(w1))
        return (experts){width(d, other), width(d, w1), "mixtral"};
    return (experts){0};
}

static void put_experts(dict *d, const experts *x)
{
    const double each = x->n < 16 ? 2 : 8;
    put_number(d, tv_str_is(tv_str_of(x->type), "mixtral") ? "num_local_experts" : "num_experts",
               x->n);
    put_number(d, "num_experts_per_tok", each);
    put_number(d, "moe_intermediate_size", x->inter);
    d->guess = TV_TEXT(d->a, "state.experts",
                       N_("shapes do not tell how many of the {n} experts a token uses: {each} are "
                          "taken"),
                       tv_arg_num("n", TV_ARG_COUNT, x->n), tv_arg_num("each", TV_ARG_COUNT, each));
}

/* Norms and biases tell the classes of one shape apart. */
static const char *llama_type(const dict *d, const experts *x, const tv_tensor *q_norm)
{
    if (x->n > 0)
        return x->type;
    if (in_layer(d, 0, "pre_feedforward_layernorm.weight"))
        return q_norm ? "gemma3_text" : "gemma2";
    if (q_norm)
        return "qwen3";
    const bool q_bias = in_layer(d, 0, "self_attn.q_proj.bias");
    return q_bias && !in_layer(d, 0, "self_attn.o_proj.bias") ? "qwen2" : "llama";
}

static bool write_llama(dict *d, const llama_names *n)
{
    if (!find_stack(d, n->stack, n->q))
        return false;
    const tv_tensor *embed = in_root(d, n->embed), *q = in_layer(d, 0, n->q);
    const tv_tensor *k = in_layer(d, 0, n->k), *up = in_layer(d, 0, n->up);
    const tv_tensor *q_norm = in_layer(d, 0, "self_attn.q_norm.weight");
    const tv_tensor *head = in_root(d, n->head);
    if (!plain(embed) || embed->rank != 2 || !plain(k) || !in_root(d, n->norm))
        return false;
    d->hidden = (double)embed->dims[1];
    const experts x = find_experts(d);
    if (x.n == 0 && (!plain(up) || !in_layer(d, 0, n->gate)))
        return false;
    const double q_width = width(d, q), kv_width = width(d, k);
    const bool per_head = q_norm && (double)q_norm->elements < q_width;
    const double one = per_head ? (double)q_norm->elements : guess_head(d, q_width, kv_width, true);
    begin(d, llama_type(d, &x, per_head ? q_norm : NULL), "StateDictForCausalLM");
    put_number(d, "vocab_size", (double)embed->dims[0]);
    put_number(d, "head_dim", one);
    put_number(d, "num_attention_heads", q_width / one);
    put_number(d, "num_key_value_heads", kv_width / one);
    put_number(d, "intermediate_size", up && x.n == 0 ? width(d, up) : x.inter);
    put_bool(d, "tie_word_embeddings", !head || head->shares || embed->shares);
    if (in_layer(d, 0, "self_attn.o_proj.bias"))
        put_bool(d, "attention_bias", true);
    put_bool(d, "mlp_bias", in_layer(d, 0, "mlp.up_proj.bias") != NULL);
    if (x.n > 0)
        put_experts(d, &x);
    return true;
}

static bool write_llamas(dict *d)
{
    return write_llama(d, &llama_kinds[0]) || write_llama(d, &llama_kinds[1]);
}

/* ---- GPT-2 ---- */

static bool write_gpt2(dict *d)
{
    if (!find_stack(d, "h.", "attn.c_attn.weight"))
        return false;
    const tv_tensor *words = in_root(d, "wte.weight"), *places = in_root(d, "wpe.weight");
    const tv_tensor *up = in_layer(d, 0, "mlp.c_fc.weight");
    if (!plain(words) || !plain(places) || !plain(up) || words->rank != 2 || places->rank != 2 ||
        !in_layer(d, 0, "attn.c_attn.bias"))
        return false;
    d->hidden = (double)words->dims[1];
    const double head = guess_head(d, d->hidden, d->hidden, false);
    begin(d, "gpt2", "GPT2LMHeadModel");
    put_number(d, "n_embd", d->hidden);
    put_number(d, "n_layer", d->layers);
    put_number(d, "n_head", d->hidden / head);
    put_number(d, "n_positions", (double)places->dims[0]);
    put_number(d, "n_inner", width(d, up));
    put_number(d, "vocab_size", (double)words->dims[0]);
    return true;
}

/* ---- BERT ---- */

static const char *bert_class(const dict *d)
{
    if (ending(d, "cls.predictions.transform.dense.weight"))
        return ending(d, "cls.seq_relationship.weight") ? "BertForPreTraining" : "BertForMaskedLM";
    if (ending(d, "qa_outputs.weight"))
        return "BertForQuestionAnswering";
    if (ending(d, "classifier.weight"))
        return ending(d, "pooler.dense.weight") ? "BertForSequenceClassification"
                                                : "BertForTokenClassification";
    return "BertModel";
}

static bool write_bert(dict *d)
{
    if (!find_stack(d, "encoder.layer.", "attention.self.query.weight"))
        return false;
    const tv_tensor *words = in_root(d, "embeddings.word_embeddings.weight");
    const tv_tensor *places = in_root(d, "embeddings.position_embeddings.weight");
    const tv_tensor *types = in_root(d, "embeddings.token_type_embeddings.weight");
    const tv_tensor *up = in_layer(d, 0, "intermediate.dense.weight");
    const tv_tensor *labels = ending(d, "classifier.weight");
    if (!plain(words) || !plain(places) || !plain(up) || words->rank != 2 || places->rank != 2 ||
        ending(d, "lm_head.dense.weight")) /* RoBERTa's head is another */
        return false;
    d->hidden = (double)words->dims[1];
    const double head = guess_head(d, d->hidden, d->hidden, false);
    begin(d, "bert", bert_class(d));
    put_number(d, "num_attention_heads", d->hidden / head);
    put_number(d, "intermediate_size", width(d, up));
    put_number(d, "vocab_size", (double)words->dims[0]);
    put_number(d, "max_position_embeddings", (double)places->dims[0]);
    put_number(d, "type_vocab_size", types ? (double)types->dims[0] : 0);
    if (labels)
        put_number(d, "num_labels", width(d, labels));
    return true;
}

/* ---- vision transformers ---- */

static bool write_image(dict *d, const tv_tensor *patch, const tv_tensor *table, double extra)
{
    if (!plain(patch) || patch->rank != 4 || patch->dims[2] != patch->dims[3] || !plain(table) ||
        table->rank != 3)
        return false;
    const double side = sqrt((double)table->dims[1] - extra);
    if (side != floor(side))
        return false;
    put_number(d, "patch_size", (double)patch->dims[2]);
    put_number(d, "num_channels", (double)patch->dims[1]);
    put_number(d, "image_size", side * (double)patch->dims[2]);
    return true;
}

static bool write_vit_of(dict *d, const char *stack, const char *probe, const char *const *names)
{
    const tv_tensor *patch = ending(d, names[0]), *table = ending(d, names[1]);
    if (!find_stack(d, stack, probe) || !plain(patch) || !ending(d, names[2]) ||
        in_layer(d, 0, "ls1.gamma"))
        return false;
    d->hidden = (double)patch->dims[0];
    const tv_tensor *up = in_layer(d, 0, names[3]), *head = ending(d, names[4]);
    if (!plain(up))
        return false;
    const double one = guess_head(d, d->hidden, d->hidden, false);
    begin(d, "vit", head ? "ViTForImageClassification" : "ViTModel");
    put_number(d, "num_attention_heads", d->hidden / one);
    put_number(d, "intermediate_size", width(d, up));
    put_bool(d, "add_pooling_layer", ending(d, "pooler.dense.weight") != NULL);
    if (head)
        put_number(d, "num_labels", width(d, head));
    return write_image(d, patch, table, 1);
}

static bool write_vit(dict *d)
{
    static const char *const timm[] = {"patch_embed.proj.weight", "pos_embed", "cls_token",
                                       "mlp.fc1.weight", "head.weight"};
    static const char *const hf[] = {"patch_embeddings.projection.weight", "position_embeddings",
                                     "cls_token", "intermediate.dense.weight", "classifier.weight"};
    return write_vit_of(d, "blocks.", "attn.qkv.weight", timm) ||
           write_vit_of(d, "encoder.layer.", "attention.attention.query.weight", hf);
}

/* ---- all of them ---- */

static bool is_bare(const tv_source *s)
{
    const bool kind = s->kind == TV_SOURCE_SAFETENSORS || s->kind == TV_SOURCE_CHECKPOINT;
    return kind && !s->config && !s->adapter && s->n_tensors > 0;
}

static tv_source *with_config(tv_arena *a, const tv_source *s, const tv_json *config, const dict *d,
                              const char *what)
{
    tv_source *again = tv_new(a, tv_source, 1);
    tv_text *warnings = tv_new(a, tv_text, s->n_warnings + 2);
    *again = *s;
    for (size_t i = 0; i < s->n_warnings; i++)
        warnings[i] = s->warnings[i];
    warnings[again->n_warnings++] =
        TV_TEXT(a, "state.known",
                N_("no configuration: the names and shapes of the tensors are those of {what}, "
                   "{layers} layers of width {width}"),
                tv_arg_str("what", tv_str_of(what)), tv_arg_num("layers", TV_ARG_COUNT, d->layers),
                tv_arg_num("width", TV_ARG_COUNT, d->hidden));
    if (d->guess.msgid)
        warnings[again->n_warnings++] = d->guess;
    again->warnings = warnings;
    again->kind = TV_SOURCE_HF_CONFIG;
    again->config = config;
    return again;
}

const tv_err *tv_state_dict_source(tv_arena *a, const tv_source *s, const tv_source **again)
{
    static const struct {
        const char *what;
        bool (*write)(dict *d);
    } kinds[] = {
        {"Llama", write_llamas}, {"GPT-2", write_gpt2}, {"BERT", write_bert}, {"ViT", write_vit}};
    *again = NULL;
    for (size_t i = 0; is_bare(s) && i < sizeof kinds / sizeof *kinds; i++) {
        dict d = {.a = a, .s = s, .out = tv_buf_in(a)};
        const tv_json *config = NULL;
        if (!kinds[i].write(&d) || !(d.hidden >= 1))
            continue;
        tv_puts(&d.out, "}");
        TV_TRY(tv_json_parse(a, TV_S("state dict"), tv_buf_str(&d.out), &config));
        *again = with_config(a, s, config, &d, kinds[i].what);
        return NULL;
    }
    return NULL;
}

/* ---- torchvision's ResNets ---- */

static double blocks_of(const dict *d, const char *stage)
{
    double n = 0;
    for (; n < 64; n++) {
        tv_buf b = tv_buf_in(d->a);
        tv_puts(&b, stage);
        tv_put_u64(&b, (uint64_t)n);
        tv_puts(&b, ".conv1.weight");
        if (!find(d, tv_buf_str(&b)))
            break;
    }
    return n;
}

tv_str tv_state_dict_builtin(tv_arena *a, const tv_source *s)
{
    static const struct {
        const char *name;
        double blocks[4];
        bool bottleneck;
    } nets[] = {{"resnet-18", {2, 2, 2, 2}, false},
                {"resnet-34", {3, 4, 6, 3}, false},
                {"resnet-50", {3, 4, 6, 3}, true},
                {"resnet-101", {3, 4, 23, 3}, true},
                {"resnet-152", {3, 8, 36, 3}, true}};
    tv_str name = {0};
    if (!is_bare(s))
        return name;
    const dict d = {.a = a, .s = s};
    const double n[4] = {blocks_of(&d, "layer1."), blocks_of(&d, "layer2."),
                         blocks_of(&d, "layer3."), blocks_of(&d, "layer4.")};
    const bool bottleneck = find(&d, TV_S("layer1.0.conv3.weight")) != NULL;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        bool same = nets[i].bottleneck == bottleneck;
        for (size_t k = 0; k < 4; k++)
            same = same && nets[i].blocks[k] == n[k];
        if (same)
            name = tv_str_of(nets[i].name);
    }
    return name;
}

double tv_state_dict_classes(const tv_source *s)
{
    const dict d = {.s = s};
    const tv_tensor *t = find(&d, TV_S("fc.weight"));
    return t && t->rank == 2 ? (double)t->dims[0] : 0;
}

/* ---- counting ---- */

static bool is_statistic(const tv_tensor *t)
{
    static const char *const ends[] = {"running_mean", "running_var", "num_batches_tracked",
                                       "_mean",        "_variance",   NULL};
    for (size_t i = 0; ends[i]; i++)
        if (tv_str_ends(t->name, tv_str_of(ends[i])))
            return true;
    return t->dtype == TV_I64 || t->dtype == TV_BOOL;
}

tv_state_count tv_state_dict_count(const tv_source *s)
{
    tv_state_count c = {0};
    for (size_t i = 0; i < s->n_tensors; i++) {
        const tv_tensor *t = &s->tensors[i];
        if (t->shares || is_statistic(t))
            continue;
        c.params += (double)t->elements;
        c.kernels += t->rank >= 4 ? (double)t->elements : 0;
    }
    return c;
}
