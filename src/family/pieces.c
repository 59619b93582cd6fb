/* Shared parts of the families. Knows how transformer modules are written; no model's numbers. */
#include "pieces.h"

#include <stdarg.h>

static const tv_json *first_of(const tv_json *c, const char *key, va_list more)
{
    const char *k = key;
    while (k) {
        if (tv_json_has(c, k))
            return tv_json_get(c, k);
        k = va_arg(more, const char *);
    }
    return tv_json_get(c, key);
}

const tv_json *tv_cfg(const tv_json *c, const char *key, ...)
{
    va_list more;
    va_start(more, key);
    const tv_json *j = first_of(c, key, more);
    va_end(more);
    return j;
}

double tv_cfg_num(const tv_json *c, double fallback, const char *key, ...)
{
    va_list more;
    va_start(more, key);
    const tv_json *j = first_of(c, key, more);
    va_end(more);
    return tv_json_num(j, fallback);
}

tv_act tv_cfg_act(tv_str name, tv_act fallback)
{
    static const struct {
        const char *name;
        tv_act act;
    } acts[] = {
        {"gelu", TV_ACT_GELU},
        {"gelu_python", TV_ACT_GELU},
        {"gelu_pytorch_tanh", TV_ACT_GELU},
        {"gelu-approximate", TV_ACT_GELU},
        {"gelu_new", TV_ACT_GELU_NEW},
        {"gelu_fast", TV_ACT_GELU_NEW},
        {"gelu_10", TV_ACT_GELU},
        {"quick_gelu", TV_ACT_QUICK_GELU},
        {"relu", TV_ACT_RELU},
        {"relu6", TV_ACT_RELU6},
        {"leaky_relu", TV_ACT_LEAKY_RELU},
        {"silu", TV_ACT_SILU},
        {"swish", TV_ACT_SILU},
        {"hard_swish", TV_ACT_HARDSWISH},
        {"hardswish", TV_ACT_HARDSWISH},
        {"hard_sigmoid", TV_ACT_HARDSIGMOID},
        {"hardsigmoid", TV_ACT_HARDSIGMOID},
        {"sigmoid", TV_ACT_SIGMOID},
        {"tanh", TV_ACT_TANH},
        {"relu2", TV_ACT_RELU2},
        {"mish", TV_ACT_MISH},
    };
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (tv_str_is(name, acts[i].name))
            return acts[i].act;
    return fallback;
}

double tv_cfg_at(const tv_json *j, size_t i, double fallback)
{
    if (tv_json_is_num(j))
        return j->number;
    return tv_json_num(tv_json_at(j, i), fallback);
}

double tv_cfg_labels(const tv_json *c)
{
    const tv_json *labels = tv_json_get(c, "id2label");
    if (labels->type == TV_JSON_OBJECT && labels->n)
        return (double)labels->n;
    return tv_cfg_num(c, 2, "num_labels", "num_classes", NULL);
}

bool tv_cfg_architecture_has(const tv_json *c, tv_str word)
{
    return tv_str_has(tv_json_str(tv_json_at(tv_json_get(c, "architectures"), 0)), word);
}

tv_dtype tv_cfg_dtype(const tv_json *c)
{
    return tv_dtype_named(tv_json_str(tv_cfg(c, "torch_dtype", "dtype", NULL)));
}

double tv_dropout(const tv_setting *set, double of_model)
{
    return set->dropout >= 0 ? set->dropout : of_model;
}

double tv_attn_part_inner(const tv_attn_part *p)
{
    return p->heads * p->head_dim;
}

static tv_val project(tv_emit *e, const char *name, double in, double out, bool bias, tv_val x)
{
    return tv_emit_linear(
        e, &(tv_linear){.name = name, .in = in, .out = out, .bias = bias, .shard = TV_SHARD_TENSOR},
        x);
}

typedef struct qkv {
    tv_val q, k, v;
} qkv;

static qkv project_qkv(tv_emit *e, const tv_attn_part *p, tv_val x, tv_val memory)
{
    double inner = tv_attn_part_inner(p);
    if (p->fused) {
        tv_val all = project(e, p->fused, p->hidden, 3 * inner, p->q_bias, x);
        tv_val third = tv_emit_view(all, tv_form_scale(all.n, 1.0 / 3));
        return (qkv){third, third, third};
    }
    double kv_hidden = p->kv_hidden > 0 ? p->kv_hidden : p->hidden;
    tv_val keys_in = memory.storage == TV_NONE ? x : memory;
    qkv r = {0};
    r.q = project(e, p->names.q, p->hidden, inner, p->q_bias, x);
    r.k = project(e, p->names.k, kv_hidden, inner, p->k_bias, keys_in);
    r.v = project(e, p->names.v, kv_hidden, inner, p->v_bias, keys_in);
    return r;
}

/* Decoding: K and V of the other side lie in the cache since the prompt. */
static qkv project_cached_cross(tv_emit *e, const tv_attn_part *p, tv_val x)
{
    double inner = tv_attn_part_inner(p);
    double kv_hidden = p->kv_hidden > 0 ? p->kv_hidden : p->hidden;
    qkv r = {.k = tv_no_val, .v = tv_no_val};
    r.q = project(e, p->names.q, p->hidden, inner, p->q_bias, x);
    tv_emit_weight(e, p->names.k, TV_WEIGHT_MATRIX, inner, kv_hidden, 1, TV_SHARD_TENSOR);
    tv_emit_weight(e, p->names.v, TV_WEIGHT_MATRIX, inner, kv_hidden, 1, TV_SHARD_TENSOR);
    if (p->k_bias)
        tv_emit_weight(e, "k.bias", TV_WEIGHT_BIAS, 1, inner, 1, TV_SHARD_TENSOR);
    if (p->v_bias)
        tv_emit_weight(e, "v.bias", TV_WEIGHT_BIAS, 1, inner, 1, TV_SHARD_TENSOR);
    return r;
}

tv_val tv_emit_attn_part(tv_emit *e, const tv_attn_part *p, tv_val x, tv_val memory)
{
    bool cached = p->cross && e->set->phase == TV_PHASE_DECODE;
    qkv r = cached ? project_cached_cross(e, p, x) : project_qkv(e, p, x, memory);
    if (p->qk_norm_width > 0) {
        r.q = tv_emit_norm(e, "norm_q", p->qk_norm, r.q, p->qk_norm_width, true, false);
        r.k = tv_emit_norm(e, "norm_k", p->qk_norm, r.k, p->qk_norm_width, true, false);
    }
    if (p->rope) {
        r.q = tv_emit_rope(e, "rope_q", r.q);
        r.k = tv_emit_rope(e, "rope_k", r.k);
    }
    double repeat = p->repeat > 0 ? p->repeat : 1;
    tv_val out = tv_emit_attention(e,
                                   &(tv_attention){
                                       .name = p->names.core,
                                       .heads = p->heads * repeat,
                                       .kv_heads = p->heads * repeat,
                                       .head_dim = p->head_dim,
                                       .q_tokens = p->q_tokens,
                                       .k_tokens = p->k_tokens,
                                       .causal = p->causal,
                                       .dropout = p->dropout > 0 ? p->dropout : -1,
                                       .cross = p->cross,
                                       .softmax_fp32 = p->softmax_fp32,
                                       .no_kernel = p->no_kernel,
                                       .shard = TV_SHARD_TENSOR,
                                   },
                                   r.q, r.k, r.v);
    if (!p->names.out)
        return out;
    return tv_emit_linear(e,
                          &(tv_linear){.name = p->names.out,
                                       .in = tv_attn_part_inner(p),
                                       .out = p->hidden,
                                       .bias = p->out_bias,
                                       .shard = TV_SHARD_TENSOR,
                                       .row = true},
                          out);
}

static tv_val gated(tv_emit *e, const tv_mlp_part *p, tv_val x)
{
    if (p->fused) {
        tv_val both = project(e, p->fused, p->hidden, 2 * p->inter, p->bias, x);
        tv_val half = tv_emit_view(both, tv_form_scale(both.n, 0.5));
        return tv_emit_mul(e, "gated", tv_emit_act(e, "act", p->act, half), half);
    }
    tv_val gate = project(e, p->gate, p->hidden, p->inter, p->bias, x);
    tv_val act = tv_emit_act(e, "act", p->act, gate);
    tv_val up = project(e, p->up, p->hidden, p->inter, p->bias, x);
    return tv_emit_mul(e, "gated", act, up);
}

tv_val tv_emit_mlp_part(tv_emit *e, const tv_mlp_part *p, tv_val x)
{
    tv_val mid =
        p->gate || p->fused
            ? gated(e, p, x)
            : tv_emit_act(e, "act", p->act, project(e, p->up, p->hidden, p->inter, p->bias, x));
    mid = tv_emit_dropout(e, "act_dropout", p->act_dropout, mid);
    return tv_emit_linear(e,
                          &(tv_linear){.name = p->down,
                                       .in = p->inter,
                                       .out = p->hidden,
                                       .bias = p->bias,
                                       .shard = TV_SHARD_TENSOR,
                                       .row = true},
                          mid);
}

tv_val tv_emit_half(tv_emit *e, const tv_layer_part *p, const tv_attn_part *attn, const char *norm,
                    tv_val x, tv_val memory)
{
    const double width = p->attn.hidden;
    tv_val v = x;
    if (!p->post_norm)
        v = tv_emit_norm(e, norm, p->norm, v, width, true, p->norm_bias);
    v = attn ? tv_emit_attn_part(e, attn, v, memory) : tv_emit_mlp_part(e, &p->mlp, v);
    if (p->layer_scale)
        v = tv_emit_scale(e, "layer_scale", v, width);
    v = tv_emit_dropout(e, "dropout", p->dropout, v);
    v = tv_emit_add(e, "residual", v, x);
    return p->post_norm ? tv_emit_norm(e, norm, p->norm, v, width, true, p->norm_bias) : v;
}

tv_val tv_emit_layer_part(tv_emit *e, const tv_layer_part *p, tv_val x)
{
    x = tv_emit_half(e, p, &p->attn, p->norm1, x, tv_no_val);
    return tv_emit_half(e, p, NULL, p->norm2, x, tv_no_val);
}

void tv_emit_runs(tv_emit *e, double n)
{
    tv_emit_order(e, (uint32_t)e->g->n_blocks - 1, (size_t)n);
}

/* Parameters of experts that a token does not visit. */
static double resting_params(const tv_model *m, const tv_graph *g, const uint32_t *counts)
{
    double sum = 0;
    for (size_t i = 0; m->experts > 0 && i < g->n_weights; i++)
        if (g->weights[i].role == TV_WEIGHT_EXPERT)
            sum += g->weights[i].elements * tv_weight_copies(g, counts, &g->weights[i]);
    return m->experts > 0 ? sum * (1 - m->experts_per_token / m->experts) : 0;
}

static double embedding_params(const tv_graph *g, const uint32_t *counts)
{
    double sum = 0;
    for (size_t i = 0; i < g->n_weights; i++)
        if (g->weights[i].role == TV_WEIGHT_EMBEDDING)
            sum += g->weights[i].elements * tv_weight_copies(g, counts, &g->weights[i]);
    return sum;
}

/* Sizes that no model has: a quintillion parameters, a negative width. */
static bool out_of_range(const tv_graph *g)
{
    bool wrong = !(g->params >= 0 && g->params <= 1e18);
    for (size_t i = 0; i < g->n_weights && !wrong; i++)
        wrong = !(g->weights[i].elements >= 0 && g->weights[i].elements <= 1e18);
    for (size_t i = 0; i < g->n_storages && !wrong; i++) {
        const double bytes = tv_form_at(g->storages[i].bytes, 1, 1);
        wrong = !(bytes >= 0 && bytes <= 1e21);
    }
    return wrong;
}

tv_setting tv_plain_setting(void)
{
    return (tv_setting){
        .phase = TV_PHASE_PREFILL,
        .policy = {.precision = TV_PRECISION_FP32,
                   .param = TV_F32,
                   .base = TV_F32,
                   .compute = TV_F32,
                   .stream = TV_F32,
                   .grad = TV_F32,
                   .state = TV_F32,
                   .kv = TV_F32},
        .kernel = TV_KERNEL_EFFICIENT,
        .dropout = -1,
        .trainable = TV_TRAIN_NONE,
    };
}

const tv_err *tv_count_params(tv_arena *a, tv_model *m, const tv_source *s)
{
    /* Scratch: only three sums leave this function. */
    tv_mark mark = tv_arena_mark(a);
    const tv_setting set = tv_plain_setting();
    tv_graph *g = NULL;
    TV_TRY(m->build(a, m, &set, &g));
    if (out_of_range(g))
        return tv_in_file(TV_FAIL0(a, TV_INPUT, "model.range",
                                   N_("the sizes in this configuration are out of range")),
                          s->path);
    uint32_t *counts = tv_new(a, uint32_t, g->n_blocks);
    tv_graph_counts(g, counts);
    m->params = g->params;
    m->active_params = g->params - resting_params(m, g, counts);
    m->embedding_params = embedding_params(g, counts);
    tv_arena_rewind(a, mark);
    m->stored_exact = s->tensor_bytes > 0;
    m->stored_bytes = m->stored_exact ? s->tensor_bytes : tv_dtype_bytes(m->stored) * m->params;
    return NULL;
}
