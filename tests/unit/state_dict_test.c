/* Architectures from the names and shapes of tensors alone. Parameter counts are sums over the
 * tensors that are put in. */
#include "testing.h"

#include <stdlib.h>

#include "family/family.h"
#include "family/state_dict.h"

typedef struct shelf {
    tv_arena *a;
    tv_tensor *v;
    size_t n, cap;
    double elements;
} shelf;

/* Dimensions that are 0 are not there; "#" in the name counts 0 .. layers-1. */
typedef struct row {
    const char *name;
    uint64_t dims[4];
} row;

static void put(shelf *s, tv_str name, const row *r)
{
    tv_tensor *t = tv_push(s->a, s);
    *t = (tv_tensor){.name = name, .dtype = TV_F32, .elements = 1};
    for (; t->rank < 4 && r->dims[t->rank]; t->rank++) {
        t->dims[t->rank] = r->dims[t->rank];
        t->elements *= r->dims[t->rank];
    }
    t->bytes = 4 * t->elements;
    s->elements += (double)t->elements;
}

static int by_name(const void *x, const void *y)
{
    return tv_str_cmp(((const tv_tensor *)x)->name, ((const tv_tensor *)y)->name);
}

static tv_source source_of(shelf *s, const row *rows, size_t layers)
{
    for (const row *r = rows; r->name; r++) {
        const tv_cut c = tv_str_cut(tv_str_of(r->name), '#');
        for (size_t i = 0; i < (c.found ? layers : 1); i++) {
            tv_buf b = tv_buf_in(s->a);
            tv_put(&b, c.head);
            if (c.found)
                tv_put_u64(&b, i);
            tv_put(&b, c.tail);
            put(s, tv_buf_str(&b), r);
        }
    }
    qsort(s->v, s->n, sizeof *s->v, by_name);
    return (tv_source){.kind = TV_SOURCE_CHECKPOINT,
                       .name = TV_S("x"),
                       .path = TV_S("x.pt"),
                       .tensors = s->v,
                       .n_tensors = s->n,
                       .tensor_bytes = 4 * s->elements};
}

static const row llama[] = {{"model.embed_tokens.weight", {1000, 256}},
                            {"model.layers.#.self_attn.q_proj.weight", {256, 256}},
                            {"model.layers.#.self_attn.k_proj.weight", {128, 256}},
                            {"model.layers.#.self_attn.v_proj.weight", {128, 256}},
                            {"model.layers.#.self_attn.o_proj.weight", {256, 256}},
                            {"model.layers.#.mlp.gate_proj.weight", {704, 256}},
                            {"model.layers.#.mlp.up_proj.weight", {704, 256}},
                            {"model.layers.#.mlp.down_proj.weight", {256, 704}},
                            {"model.layers.#.input_layernorm.weight", {256}},
                            {"model.layers.#.post_attention_layernorm.weight", {256}},
                            {"model.norm.weight", {256}},
                            {"lm_head.weight", {1000, 256}},
                            {NULL, {0}}};

/* The same as Paddle stores it: matrices the other way round, another root. */
static const row paddle[] = {{"llama.embed_tokens.weight", {1000, 256}},
                             {"llama.layers.#.self_attn.q_proj.weight", {256, 256}},
                             {"llama.layers.#.self_attn.k_proj.weight", {256, 128}},
                             {"llama.layers.#.self_attn.v_proj.weight", {256, 128}},
                             {"llama.layers.#.self_attn.o_proj.weight", {256, 256}},
                             {"llama.layers.#.mlp.gate_proj.weight", {256, 704}},
                             {"llama.layers.#.mlp.up_proj.weight", {256, 704}},
                             {"llama.layers.#.mlp.down_proj.weight", {704, 256}},
                             {"llama.layers.#.input_layernorm.weight", {256}},
                             {"llama.layers.#.post_attention_layernorm.weight", {256}},
                             {"llama.norm.weight", {256}},
                             {"lm_head.weight", {256, 1000}},
                             {NULL, {0}}};

/* Tied, and with a norm per head, whose width is the head's. */
static const row qwen[] = {{"model.embed_tokens.weight", {1000, 256}},
                           {"model.layers.#.self_attn.q_proj.weight", {512, 256}},
                           {"model.layers.#.self_attn.k_proj.weight", {128, 256}},
                           {"model.layers.#.self_attn.v_proj.weight", {128, 256}},
                           {"model.layers.#.self_attn.o_proj.weight", {256, 512}},
                           {"model.layers.#.self_attn.q_norm.weight", {128}},
                           {"model.layers.#.self_attn.k_norm.weight", {128}},
                           {"model.layers.#.mlp.gate_proj.weight", {704, 256}},
                           {"model.layers.#.mlp.up_proj.weight", {704, 256}},
                           {"model.layers.#.mlp.down_proj.weight", {256, 704}},
                           {"model.layers.#.input_layernorm.weight", {256}},
                           {"model.layers.#.post_attention_layernorm.weight", {256}},
                           {"model.norm.weight", {256}},
                           {NULL, {0}}};

static const row gpt2[] = {{"transformer.wte.weight", {1000, 128}},
                           {"transformer.wpe.weight", {64, 128}},
                           {"transformer.h.#.ln_1.weight", {128}},
                           {"transformer.h.#.ln_1.bias", {128}},
                           {"transformer.h.#.attn.c_attn.weight", {128, 384}},
                           {"transformer.h.#.attn.c_attn.bias", {384}},
                           {"transformer.h.#.attn.c_proj.weight", {128, 128}},
                           {"transformer.h.#.attn.c_proj.bias", {128}},
                           {"transformer.h.#.ln_2.weight", {128}},
                           {"transformer.h.#.ln_2.bias", {128}},
                           {"transformer.h.#.mlp.c_fc.weight", {128, 512}},
                           {"transformer.h.#.mlp.c_fc.bias", {512}},
                           {"transformer.h.#.mlp.c_proj.weight", {512, 128}},
                           {"transformer.h.#.mlp.c_proj.bias", {128}},
                           {"transformer.ln_f.weight", {128}},
                           {"transformer.ln_f.bias", {128}},
                           {NULL, {0}}};

static const row vit[] = {{"cls_token", {1, 1, 192}},
                          {"pos_embed", {1, 197, 192}},
                          {"patch_embed.proj.weight", {192, 3, 16, 16}},
                          {"patch_embed.proj.bias", {192}},
                          {"blocks.#.norm1.weight", {192}},
                          {"blocks.#.norm1.bias", {192}},
                          {"blocks.#.attn.qkv.weight", {576, 192}},
                          {"blocks.#.attn.qkv.bias", {576}},
                          {"blocks.#.attn.proj.weight", {192, 192}},
                          {"blocks.#.attn.proj.bias", {192}},
                          {"blocks.#.norm2.weight", {192}},
                          {"blocks.#.norm2.bias", {192}},
                          {"blocks.#.mlp.fc1.weight", {768, 192}},
                          {"blocks.#.mlp.fc1.bias", {768}},
                          {"blocks.#.mlp.fc2.weight", {192, 768}},
                          {"blocks.#.mlp.fc2.bias", {192}},
                          {"norm.weight", {192}},
                          {"norm.bias", {192}},
                          {"head.weight", {1000, 192}},
                          {"head.bias", {1000}},
                          {NULL, {0}}};

static const row conv[] = {{"stem.weight", {64, 3, 7, 7}},
                           {"body.#.weight", {64, 64, 3, 3}},
                           {"body.#.running_mean", {64}},
                           {"fc.weight", {10, 64}},
                           {NULL, {0}}};

/* Llama's names with a part that no such model has: nothing is claimed. */
static const row odd[] = {{"model.embed_tokens.weight", {1000, 256}},
                          {"model.layers.#.self_attn.q_proj.weight", {256, 256}},
                          {"model.layers.#.self_attn.k_proj.weight", {128, 256}},
                          {"model.layers.#.mlp.gate_proj.weight", {704, 256}},
                          {"model.layers.#.mlp.up_proj.weight", {704, 256}},
                          {"model.layers.#.side.weight", {4096, 256}},
                          {"model.norm.weight", {256}},
                          {NULL, {0}}};

typedef struct known_case {
    const row *rows;
    size_t layers;
    const char *family;
    double hidden, kv_heads, head_dim, statistics;
    const char *warning;
} known_case;

static bool warns(const tv_model *m, const char *id)
{
    for (size_t i = 0; i < m->n_warnings; i++)
        if (strcmp(m->warnings[i].id, id) == 0)
            return true;
    return false;
}

static void names_and_shapes_say_the_architecture(void **state)
{
    (void)state;
    static const known_case cases[] = {
        {llama, 3, "decoder", 256, 2, 64, 0, "state.head"},
        {paddle, 3, "decoder", 256, 2, 64, 0, "state.head"},
        {qwen, 4, "decoder", 256, 1, 128, 0, "state.known"},
        {gpt2, 2, "decoder", 128, 2, 64, 0, "state.known"},
        {vit, 12, "encoder", 192, 3, 64, 0, "state.known"},
        {conv, 5, "opaque", 0, 0, 0, 5 * 64, "opaque.kernels"},
        {odd, 2, "opaque", 0, 0, 0, 0, "opaque.assumed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const known_case *c = &cases[i];
        shelf s = {.a = test_arena()};
        const tv_source source = source_of(&s, c->rows, c->layers);
        const tv_model *m = NULL;
        assert_ok(s.a, tv_family_model(s.a, &source, &m));
        if (strcmp(m->family, c->family) != 0 || m->params != s.elements - c->statistics)
            fail_msg("case %zu: %s, %.0f of %.0f", i, m->family, m->params, s.elements);
        if (c->hidden > 0) {
            assert_true(m->hidden == c->hidden && m->layers == (double)c->layers);
            assert_true(m->kv_heads == c->kv_heads && m->head_dim == c->head_dim);
        }
        assert_true(warns(m, c->warning));
        tv_arena_close(s.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_shapes_say_the_architecture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
