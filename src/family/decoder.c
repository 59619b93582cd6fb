/* The decoder family: text models that read a sequence and yield the next token (or a vector). It
 * claims configurations by their class or their keys, fills the model's shape and counts its
 * parameters by building the graph once. */
#include "decoder.h"

/* ---- layers ---- */

/* Field by field: the padding between fields is not defined. */
static bool same_attention(const tv_decoder_mix *x, const tv_decoder_mix *y)
{
    return x->kind == y->kind && x->heads == y->heads && x->kv_heads == y->kv_heads &&
           x->head_dim == y->head_dim && x->v_dim == y->v_dim && x->window == y->window &&
           x->qkv_bias == y->qkv_bias && x->out_bias == y->out_bias && x->fused == y->fused &&
           x->gate == y->gate && x->sinks == y->sinks && x->k_is_v == y->k_is_v &&
           x->v_norm == y->v_norm && x->reads_kv == y->reads_kv && x->no_rope == y->no_rope &&
           x->softmax_16 == y->softmax_16 && x->no_kernel == y->no_kernel &&
           x->qk_norm == y->qk_norm && x->q_rank == y->q_rank && x->kv_rank == y->kv_rank &&
           x->rope_dim == y->rope_dim && x->latent_gate == y->latent_gate &&
           x->index_heads == y->index_heads && x->index_dim == y->index_dim &&
           x->index_keys == y->index_keys && x->index_flat == y->index_flat &&
           x->out_rank == y->out_rank && x->out_groups == y->out_groups &&
           x->compress == y->compress && x->filter_conv == y->filter_conv &&
           x->tower_width == y->tower_width && x->tower_tokens == y->tower_tokens;
}

static bool same_scan(const tv_decoder_mix *x, const tv_decoder_mix *y)
{
    return x->inner == y->inner && x->state == y->state && x->conv == y->conv &&
           x->dt_rank == y->dt_rank && x->groups == y->groups && x->scan_heads == y->scan_heads &&
           x->key_heads == y->key_heads && x->key_dim == y->key_dim &&
           x->value_dim == y->value_dim && x->conv_bias == y->conv_bias &&
           x->scan_bias == y->scan_bias && x->scan_norms == y->scan_norms &&
           x->split_proj == y->split_proj;
}

static bool same_mlp(const tv_decoder_mlp *x, const tv_decoder_mlp *y)
{
    return x->inter == y->inter && x->gated == y->gated && x->bias == y->bias &&
           x->fused == y->fused && x->act == y->act && x->experts == y->experts &&
           x->top_k == y->top_k && x->expert_inter == y->expert_inter &&
           x->shared_inter == y->shared_inter && x->shared_gate == y->shared_gate &&
           x->router_bias == y->router_bias && x->expert_bias == y->expert_bias &&
           x->beside == y->beside && x->latent == y->latent && x->latent_norm == y->latent_norm;
}

static bool same_layer(const tv_decoder_layer *x, const tv_decoder_layer *y)
{
    return same_attention(&x->mix, &y->mix) && same_scan(&x->mix, &y->mix) &&
           same_mlp(&x->mlp, &y->mlp) && x->pre_mix == y->pre_mix && x->post_mix == y->post_mix &&
           x->pre_mlp == y->pre_mlp && x->post_mlp == y->post_mlp && x->after_add == y->after_add &&
           x->parallel == y->parallel && x->extra == y->extra && x->side_input == y->side_input &&
           x->streams == y->streams;
}

void tv_decoder_push(tv_arena *a, tv_decoder_stack *stack, tv_decoder_layer layer)
{
    uint32_t kind = 0;
    while (kind < stack->n && !same_layer(&stack->v[kind], &layer))
        kind++;
    if (kind == stack->n)
        *tv_push(a, stack) = layer;
    struct {
        uint32_t *v;
        size_t n, cap;
    } order = {stack->order, stack->n_order, stack->cap_order};
    *tv_push(a, &order) = kind;
    stack->order = order.v;
    stack->n_order = order.n;
    stack->cap_order = order.cap;
}

void tv_decoder_close_stack(tv_decoder *d, const tv_decoder_stack *stack)
{
    d->kinds = stack->v;
    d->n_kinds = (uint32_t)stack->n;
    d->order = stack->order;
    d->n_layers = (uint32_t)stack->n_order;
}

/* ---- counting ---- */

static tv_setting counting_setting(void)
{
    return (tv_setting){
        .phase = TV_PHASE_PREFILL,
        .policy = {.param = TV_BF16, .base = TV_BF16, .compute = TV_BF16, .stream = TV_BF16},
        .kernel = TV_KERNEL_FLASH,
        .seq = 1,
        .dropout = 0,
    };
}

typedef struct tally {
    double all, active, embedding, matrices, experts;
} tally;

static tally count(tv_arena *a, const tv_graph *g)
{
    tally t = {0};
    uint32_t *counts = tv_new(a, uint32_t, g->n_blocks + 1);
    tv_graph_counts(g, counts);
    for (size_t i = 0; i < g->n_weights; i++) {
        const tv_weight *w = &g->weights[i];
        double n = w->elements * tv_weight_copies(g, counts, w);
        t.all += n;
        t.active += n;
        if (w->role == TV_WEIGHT_EMBEDDING)
            t.embedding += n;
        if (w->role == TV_WEIGHT_MATRIX)
            t.matrices += n;
        if (w->role == TV_WEIGHT_EXPERT)
            t.experts += n;
    }
    for (size_t i = 0; i < g->n_ops; i++) { /* only the chosen experts work for a token */
        const tv_op *op = &g->ops[i];
        if (!(op->experts > 0))
            continue;
        for (uint32_t w = op->first_weight; w < op->first_weight + op->n_weights; w++) {
            double n = g->weights[w].elements * tv_weight_copies(g, counts, &g->weights[w]);
            t.active -= n * (1 - op->expert_top_k / op->experts);
        }
    }
    return t;
}

/* ---- shape ---- */

static const tv_decoder_layer *first_with(const tv_decoder *d, bool experts)
{
    for (uint32_t i = 0; i < d->n_kinds; i++) {
        const tv_decoder_layer *l = &d->kinds[i];
        if (experts ? l->mlp.experts > 0 : l->mix.heads > 0)
            return l;
    }
    return NULL;
}

static double widest_mlp(const tv_decoder *d)
{
    double w = 0;
    for (uint32_t i = 0; i < d->n_kinds; i++)
        if (d->kinds[i].mlp.inter > w)
            w = d->kinds[i].mlp.inter;
    return w;
}

static void fill_shape(const tv_decoder *d, tv_model *m)
{
    const tv_decoder_layer *attends = first_with(d, false), *routed = first_with(d, true);
    m->layers = d->n_layers;
    m->hidden = d->hidden;
    m->vocab = d->vocab;
    m->intermediate = widest_mlp(d);
    m->max_seq = d->max_seq;
    if (attends) {
        m->heads = attends->mix.heads;
        m->kv_heads = attends->mix.kv_heads;
        m->head_dim = attends->mix.head_dim;
    }
    if (routed) {
        m->experts = routed->mlp.experts;
        m->experts_per_token = routed->mlp.top_k;
        if (!(m->intermediate > 0))
            m->intermediate = routed->mlp.expert_inter;
    }
    m->generates = d->head == TV_HEAD_LM;
    m->default_seq = d->max_seq > 0 && d->max_seq < 2048 ? (uint32_t)d->max_seq : 2048;
}

/* Bytes of the files where no tensor list says so. */
static double bytes_when_stored(const tv_model *m, const tally *t)
{
    double each = tv_dtype_bytes(m->stored);
    if (!(m->quant.bytes_per_weight > 0))
        return each * t->all;
    double packed = m->quant.experts_only ? t->experts : t->matrices + t->experts;
    return each > 0 ? m->quant.bytes_per_weight * packed + each * (t->all - packed) : 0;
}

/* ---- parts that do not run ---- */

static double block_params(const tv_graph *g, uint32_t block)
{
    double n = 0;
    for (size_t i = 0; i < g->n_weights; i++)
        if (g->weights[i].block == block)
            n += g->weights[i].elements;
    return n;
}

/* A module: one layer of the last kind, a projection of two hidden states to one, three norms. */
static void mtp_part(tv_arena *a, const tv_decoder *d, const tv_graph *g, tv_model *m)
{
    if (!(d->mtp > 0))
        return;
    uint32_t last = d->order[d->n_layers - 1] + 1; /* block 0 is the embedding */
    double each = block_params(g, last) + 2 * d->hidden * d->hidden + 3 * d->hidden;
    if (d->mtp_embeds)
        each += 2 * d->vocab * d->hidden;
    tv_family_part(a, m,
                   (tv_part){
                       .name = TV_S("multi-token prediction"),
                       .params = d->mtp_other ? 0 : d->mtp * each,
                       .why = TV_TEXT(a, "decoder.mtp",
                                      N_("{n} module(s) may be in the files; they are not part of "
                                         "what runs"),
                                      tv_arg_num("n", TV_ARG_COUNT, d->mtp)),
                   });
}

/* Experts in fewer bytes than the other matrices: the mean over both stands for all. */
static void average_storage(const tv_decoder *d, const tally *t, tv_model *m)
{
    double all = t->matrices + t->experts;
    if (!(d->expert_bytes > 0) || !(m->quant.bytes_per_weight > 0) || !(all > 0))
        return;
    m->quant.bytes_per_weight =
        (t->experts * d->expert_bytes + t->matrices * m->quant.bytes_per_weight) / all;
    m->quant.dtype = TV_MXFP4;
}

const tv_err *tv_decoder_finish(tv_arena *a, const tv_source *s, tv_decoder *d, tv_model *m)
{
    m->spec = d;
    m->build = tv_decoder_build;
    fill_shape(d, m);
    tv_setting set = counting_setting();
    tv_graph *g;
    TV_TRY(tv_decoder_build(a, m, &set, &g));
    tally t = count(a, g);
    m->params = t.all;
    m->active_params = t.active;
    m->embedding_params = t.embedding;
    mtp_part(a, d, g, m);
    average_storage(d, &t, m);
    if (s->n_tensors) {
        m->stored_bytes = s->tensor_bytes;
        m->stored_exact = true;
    } else {
        m->stored_bytes = bytes_when_stored(m, &t);
    }
    return NULL;
}

/* ---- sane numbers ---- */

#define MOST                                                                                       \
    1e9 /* no width or count of a model reaches it; products of three stay exact enough            \
         */

static bool sane(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(v[i] >= 0 && v[i] <= MOST))
            return false;
    return true;
}

static bool sane_mix(const tv_decoder_mix *m)
{
    const double v[] = {m->heads,       m->kv_heads,     m->head_dim,
                        m->v_dim,       m->window,       m->q_rank,
                        m->kv_rank,     m->rope_dim,     m->index_heads,
                        m->index_dim,   m->index_keys,   m->out_rank,
                        m->out_groups,  m->compress,     m->inner,
                        m->state,       m->conv,         m->dt_rank,
                        m->groups,      m->scan_heads,   m->key_heads,
                        m->key_dim,     m->value_dim,    m->filter_conv,
                        m->tower_width, m->tower_tokens, m->head_dim - m->rope_dim};
    bool attends = m->kind == TV_MIX_ATTENTION || m->kind == TV_MIX_LATENT ||
                   m->kind == TV_MIX_CROSS || m->kind == TV_MIX_COMPRESSED;
    bool scans = m->kind != TV_MIX_NONE && !attends;
    return sane(v, sizeof v / sizeof *v) && (!attends || (m->heads >= 1 && m->head_dim >= 1)) &&
           (!scans || m->inner >= 1) && (m->kind != TV_MIX_COMPRESSED || m->out_groups >= 1);
}

static bool sane_layer(const tv_decoder_layer *l)
{
    const tv_decoder_mlp *m = &l->mlp;
    const double v[] = {m->inter,        m->experts, m->top_k, m->expert_inter,
                        m->shared_inter, m->latent,  l->extra, l->side_input};
    return sane(v, sizeof v / sizeof *v) && sane_mix(&l->mix) && l->streams >= 0 &&
           l->streams <= 16 && (m->experts == 0 || m->top_k <= m->experts);
}

static const tv_err *check_numbers(tv_arena *a, const tv_source *s, const tv_decoder *d)
{
    const double v[] = {d->hidden,  d->vocab,      d->embed_width, d->positions,
                        d->max_seq, d->classes,    d->side_width,  d->side_vocab,
                        d->mtp,     d->extra_rows, d->token_types};
    bool ok = d->n_layers > 0 && sane(v, sizeof v / sizeof *v) && d->hidden >= 1;
    for (uint32_t i = 0; ok && i < d->n_kinds; i++)
        ok = sane_layer(&d->kinds[i]);
    if (ok)
        return NULL;
    return tv_in_file(TV_FAIL0(a, TV_INPUT, "decoder.numbers",
                               N_("a width or a count of the configuration makes no sense")),
                      s->path);
}

/* ---- the row ---- */

static const char *const other_families[] = {"encoder",   "encoder-decoder", "cnn",
                                             "diffusion", "vision",          NULL};

static bool is_generator(tv_str architecture)
{
    static const char *const ends[] = {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration",
                                       NULL};
    for (size_t i = 0; ends[i]; i++)
        if (tv_str_ends(architecture, tv_str_of(ends[i])))
            return true;
    return false;
}

static unsigned claims_gguf(const tv_source *s)
{
    static const char *const encoders[] = {
        "bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2",     "neo-bert", "modern-bert",
        "t5",   "t5encoder",  "clip",           "wavtokenizer-dec", NULL};
    tv_str arch = tv_json_str(tv_json_get(s->metadata, "general.architecture"));
    if (tv_decoder_knows_arch(arch))
        return 90;
    return arch.n && !tv_family_in(arch, encoders) ? 20 : 0;
}

static unsigned claims(const tv_source *s)
{
    tv_str stated = tv_json_str(tv_json_get(s->config, "family"));
    if (s->kind == TV_SOURCE_PARAMS || tv_family_in(stated, other_families))
        return 0;
    if (s->kind == TV_SOURCE_GGUF)
        return claims_gguf(s);
    if (!s->config || s->config->type != TV_JSON_OBJECT)
        return 0;
    if (tv_str_is(stated, "decoder"))
        return 100;
    tv_config c = tv_config_of(s);
    if (tv_json_bool(tv_json_get(c.top, "is_encoder_decoder"), false))
        return 0;
    if (tv_decoder_class_of(c.type))
        return 90;
    tv_str architecture = tv_family_architecture(s);
    if (tv_decoder_class_of_architecture(architecture))
        return 80;
    bool keys = tv_config_num(&c, "num_hidden_layers|n_layer|n_layers|num_layers", 0) > 0 &&
                tv_config_num(&c, "hidden_size|n_embd|d_model", 0) > 0 &&
                tv_config_num(&c, "num_attention_heads|n_head|n_heads", 0) > 0;
    if (!keys)
        return 0;
    return is_generator(architecture) ? 50 : 15;
}

static const tv_err *make(tv_arena *a, const tv_source *s, tv_model *m)
{
    tv_decoder *d = tv_new(a, tv_decoder, 1);
    if (s->kind == TV_SOURCE_GGUF)
        TV_TRY(tv_decoder_from_gguf(a, s, m, d));
    else
        TV_TRY(tv_decoder_from_config(a, s, m, d));
    TV_TRY(check_numbers(a, s, d));
    TV_TRY(tv_decoder_finish(a, s, d, m));
    if (s->n_tensors)
        tv_decoder_compare_files(a, s, d, m);
    return NULL;
}

const tv_family tv_family_decoder = {
    .name = "decoder",
    .summary = N_("text decoders: GPT, Llama, Qwen, DeepSeek, Gemma and their kin"),
    .claims = claims,
    .make = make,
};
