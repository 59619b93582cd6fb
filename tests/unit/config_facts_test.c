/* Every decoder configuration of the collection: the reader's facts (layers, widths, heads, ...),
 * parameter counts to the last digit, active parameters, and that every phase's graph holds the
 * same parameters. Other families' configurations are left to their own tests. */
#include "testing.h"

#include "family/family.h"
#include "read/reader.h"

/* Model types that are encoders, encoder-decoders or vision models. */
static const char *const other_types[] = {"albert",
                                          "bart",
                                          "beit",
                                          "bert",
                                          "clip",
                                          "clip_text_model",
                                          "clip_vision_model",
                                          "deberta-v2",
                                          "dinov2",
                                          "distilbert",
                                          "roberta",
                                          "siglip_vision_model",
                                          "switch_transformers",
                                          "t5",
                                          "whisper",
                                          NULL};

/* Facts that differ from ours, and why. */
typedef struct exception {
    const char *path; /* part of it */
    const char *field;
    const char *why;
} exception;

static const char latent[] = "latent attention: keys have nope + rope, hidden/heads means nothing";
static const char routed[] = "no layer is dense: the experts' width is shown";
static const char widest[] = "the dense layers' width is shown, the fact is the experts'";
static const char half[] = "intermediate_size counts gate and up together";

static const exception exceptions[] = {
    {"/DeepSeek-R1/", "head_dim", latent},
    {"/DeepSeek-V3.1-NVFP4/", "head_dim", latent},
    {"/DeepSeek-V3.2/", "head_dim", latent},
    {"/DeepSeek-V3/", "head_dim", latent},
    {"/GLM-4.7-Flash/", "head_dim", latent},
    {"/GLM-5-FP8/", "head_dim", latent},
    {"/GLM-5/", "head_dim", latent},
    {"/Kimi-K2-Instruct/", "head_dim", latent},
    {"/Kimi-K2-Thinking/", "head_dim", latent},
    {"/Kimi-K2.5/", "head_dim", latent},
    {"/Kimi-K3/", "head_dim", latent},
    {"/Llama-4-Maverick-17B-128E-Instruct/", "intermediate", widest},
    {"/MiniMax-M3-NVFP4/", "intermediate", widest},
    {"/Qwen3-235B-A22B/", "intermediate", routed},
    {"/Qwen3-30B-A3B-FP8/", "intermediate", routed},
    {"/Qwen3-30B-A3B/", "intermediate", routed},
    {"/Qwen3-Coder-480B-A35B-Instruct/", "intermediate", routed},
    {"/Qwen3-Next-80B-A3B-Instruct/", "intermediate", routed},
    {"/Qwen3-Next-80B-A3B-Thinking/", "intermediate", routed},
    {"/Qwen3-VL-30B-A3B-Instruct/", "intermediate", routed},
    {"/deepseek-v2-lite/", "head_dim", latent},
    {"/glm-5.2-fp8/", "head_dim", latent},
    {"/ipex-reduced-deepseekv2/", "head_dim", latent},
    {"/llama4/", "intermediate", widest},
    {"/minicpm3-4b/", "head_dim", latent},
    {"/ollama-minicpm3-4b/", "head_dim", latent},
    {"/qwen-7b/", "intermediate", half},
    {"/rtp-qwen-7b/", "intermediate", half},
    {"/simai-deepseek-v3-edited/", "head_dim", latent},
    {"/simai-qwen3-235b-fp8-wrong-model-type/", "intermediate", routed},
    {"/Kimi-K2-Thinking/", "params",
     "abridged: without topk_method the oracle left out the router's 60·384 correction biases"},
};

static bool excepted(tv_str path, const char *field)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (tv_str_has(path, tv_str_of(exceptions[i].path)) &&
            tv_str_is(tv_str_of(field), exceptions[i].field))
            return true;
    return false;
}

typedef struct one {
    tv_arena *a;
    tv_str path;
    const tv_json *facts;
    const tv_model *m;
} one;

typedef void (*check)(const one *o);

static bool ours(tv_str path, const tv_json *facts)
{
    return !tv_family_in(tv_json_str(tv_json_get(facts, "model_type")), other_types) &&
           !tv_str_has(path, TV_S("roberta"));
}

static tv_str manifest(tv_arena *a)
{
    tv_str text = {0};
    const char *path = test_shared("models/MANIFEST.jsonl");
    if (path)
        assert_ok(a, tv_file_read(a, tv_str_of(path), (size_t)64 << 20, &text));
    return text;
}

static void run_one(tv_str path, const tv_json *facts, check fn)
{
    tv_arena *a = test_arena();
    tv_str full = tv_str_join(a, TV_S("../shared/data/models/"), path);
    const tv_source *s;
    const tv_model *m;
    assert_ok(a, tv_read_model(a, full, &s));
    assert_ok(a, tv_family_model(a, s, &m));
    if (!tv_str_is(tv_str_of(m->family), "decoder"))
        fail_msg("%.*s: family %s", TV_FMT(path), m->family);
    const one o = {a, path, facts, m};
    fn(&o);
    tv_arena_close(a);
}

/* Calls fn for every decoder configuration; returns how many there were. */
static int for_each(check fn)
{
    tv_arena *a = test_arena();
    tv_str rest = manifest(a);
    int n = 0;
    while (rest.n) {
        tv_cut cut = tv_str_cut(rest, '\n');
        rest = cut.tail;
        if (!cut.head.n)
            continue;
        const tv_json *row;
        assert_ok(a, tv_json_parse(a, TV_S("MANIFEST.jsonl"), cut.head, &row));
        const tv_json *facts = tv_json_get(row, "facts");
        tv_str path = tv_json_str(tv_json_get(row, "path"));
        if (!tv_str_is(tv_json_str(tv_json_get(row, "kind")), "hf-config") || !ours(path, facts))
            continue;
        run_one(path, facts, fn);
        n++;
    }
    tv_arena_close(a);
    return n;
}

static int checked, skipped_facts;

static void fact(const one *o, const char *field, double want, double got)
{
    if (!(want > 0))
        return;
    bool known = excepted(o->path, field);
    if (want != got && !known)
        fail_msg("%.*s: %s %.17g, the fact is %.17g", TV_FMT(o->path), field, got, want);
    if (want == got && known)
        fail_msg("%.*s: %s is right; the exception is not needed", TV_FMT(o->path), field);
    checked++;
    skipped_facts += known;
}

static double fact_num(const one *o, const char *key)
{
    return tv_json_num(tv_json_get(o->facts, key), 0);
}

static void check_facts(const one *o)
{
    const tv_model *m = o->m;
    double head_dim = fact_num(o, "head_dim_stated");
    if (!(head_dim > 0))
        head_dim = fact_num(o, "head_dim_if_derived");
    fact(o, "layers", fact_num(o, "layers"), m->layers);
    fact(o, "hidden", fact_num(o, "hidden"), m->hidden);
    fact(o, "heads", fact_num(o, "heads"), m->heads);
    fact(o, "kv_heads", fact_num(o, "kv_heads"), m->kv_heads);
    fact(o, "head_dim", head_dim, m->head_dim);
    fact(o, "intermediate", fact_num(o, "intermediate"), m->intermediate);
    fact(o, "vocab", fact_num(o, "vocab"), m->vocab);
    fact(o, "experts", fact_num(o, "experts"), m->experts);
    fact(o, "experts_per_token", fact_num(o, "experts_per_token"), m->experts_per_token);
}

static void facts_of_every_config(void **state)
{
    (void)state;
    checked = skipped_facts = 0;
    int n = for_each(check_facts);
    print_message("%d configurations, %d facts, of which %d explained exceptions\n", n, checked,
                  skipped_facts);
}

static int counted, exact;

static void check_params(const one *o)
{
    double want = fact_num(o, "computed_parameters");
    double active = fact_num(o, "computed_active_parameters");
    if (!(want > 0))
        return;
    counted++;
    exact += o->m->params == want;
    if (excepted(o->path, "params"))
        assert_close(o->m->params, want, 1e-3);
    else if (o->m->params != want)
        fail_msg("%.*s: %.17g parameters, computed are %.17g", TV_FMT(o->path), o->m->params, want);
    if (active > 0)
        assert_close(o->m->active_params, active, 2e-6); /* the oracle leaves router biases out */
}

static void parameter_counts(void **state)
{
    (void)state;
    counted = exact = 0;
    (void)for_each(check_params);
    print_message("%d of %d parameter counts to the last digit\n", exact, counted);
}

/* What files hold beside the model, to the last digit: their stated total less ours. */
static const char *const explained_by_parts[] = {
    "/GLM-4.5/",
    "/GLM-4.7-Flash/",
    "/Qwen3-Next-80B-A3B-Instruct/",
    "/GLM-5/",
    "/MiMo-7B-Base/",
    "/Qwen3-VL-2B-Instruct/",
    "/Qwen3.5-27B/",
    "/Qwen3.5-35B-A3B/",
    "/gemma3/",
    "/llama3-2-11b-vision/",
    "/llava-1.5-7b-hf/",
    "/qwen2-vl-7b/",
    "/qwen2.5-vl-7b/",
};

static int explained;

static void check_parts(const one *o)
{
    double left = fact_num(o, "stated_parameters") - o->m->params;
    for (size_t i = 0; i < sizeof explained_by_parts / sizeof *explained_by_parts; i++) {
        if (!tv_str_has(o->path, tv_str_of(explained_by_parts[i])))
            continue;
        explained++;
        for (size_t k = 0; k < o->m->n_parts; k++)
            left -= o->m->parts[k].params;
        if (left != 0)
            fail_msg("%.*s: %.17g parameters are not explained", TV_FMT(o->path), left);
    }
}

static void parts_explain_stated_totals(void **state)
{
    (void)state;
    explained = 0;
    if (for_each(check_parts))
        assert_int_equal(explained, sizeof explained_by_parts / sizeof *explained_by_parts);
    print_message("%d stated totals are the model and its parts to the last digit\n", explained);
}

static double graph_params(const one *o, tv_phase phase)
{
    tv_setting set = {
        .phase = phase,
        .policy = {.param = TV_BF16,
                   .base = TV_BF16,
                   .compute = TV_BF16,
                   .stream = TV_BF16,
                   .grad = TV_BF16,
                   .state = TV_BF16},
        .kernel = TV_KERNEL_FLASH,
        .seq = 128,
        .dropout = -1,
    };
    tv_graph *g;
    assert_ok(o->a, o->m->build(o->a, o->m, &set, &g));
    return g->params;
}

static void check_graphs(const one *o)
{
    static const tv_phase phases[] = {TV_PHASE_TRAIN, TV_PHASE_PREFILL, TV_PHASE_DECODE};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        double got = graph_params(o, phases[i]);
        if (got != o->m->params)
            fail_msg("%.*s: phase %d has %.17g parameters, the model %.17g", TV_FMT(o->path),
                     (int)phases[i], got, o->m->params);
    }
}

static void graphs_hold_the_parameters(void **state)
{
    (void)state;
    print_message("%d configurations\n", for_each(check_graphs));
}

/* ---- what a token leaves in the cache ---- */

typedef struct cache_fact {
    const char *path;
    double whole, window; /* numbers per token over all layers that keep all, or a window */
} cache_fact;

/* Layers that attend × (key + value) heads × width, from the configurations' own lists. */
static const cache_fact cache_facts[] = {
    {"/DeepSeek-V3/", 61 * 576, 0},
    {"/Kimi-K3/", 24 * 576, 0},
    {"/Llama-3.3-70B-Instruct/", 80 * 2 * 8 * 128, 0},
    {"/Llama-3_3-Nemotron-Super-49B-v1/", 49 * 2 * 8 * 128, 0},
    {"/MiMo-V2-Flash/", 9 * 4 * (192 + 128), 39 * 8 * (192 + 128)},
    {"/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16/", 6 * 2 * 2 * 128, 0},
    {"/Qwen3-Next-80B-A3B-Instruct/", 12 * 2 * 2 * 256, 0},
    {"/Qwen3.5-27B/", 16 * 2 * 4 * 256, 0},
    {"/falcon-40b/", 60 * 2 * 8 * 64, 0},
    {"/gemma-2-9b/", 21 * 2 * 8 * 256, 21 * 2 * 8 * 256},
    {"/gemma3/", 10 * 2 * 16 * 128, 52 * 2 * 16 * 128},
    {"/gpt-oss-20b/", 12 * 2 * 8 * 64, 12 * 2 * 8 * 64},
    {"/mistral-7b-v0.1/", 0, 32 * 2 * 8 * 128},
    {"/qwen2-7b/", 28 * 2 * 4 * 128, 0}, /* states a window that it does not use */
    {"/starcoderbase-7b/", 42 * 2 * 128, 0},
};

static int cached;

static void check_cache(const one *o)
{
    for (size_t i = 0; i < sizeof cache_facts / sizeof *cache_facts; i++) {
        if (!tv_str_has(o->path, tv_str_of(cache_facts[i].path)))
            continue;
        tv_setting set = {
            .phase = TV_PHASE_DECODE,
            .policy = {.param = TV_BF16, .base = TV_BF16, .compute = TV_BF16, .stream = TV_BF16},
            .kernel = TV_KERNEL_FLASH,
            .seq = 128};
        tv_graph *g;
        assert_ok(o->a, o->m->build(o->a, o->m, &set, &g));
        double whole = 0, window = 0;
        for (size_t k = 0; k < g->n_order; k++) {
            const tv_block *b = &g->blocks[g->order[k]];
            *(b->kv_window > 0 ? &window : &whole) += b->kv_width;
        }
        if (whole != cache_facts[i].whole || window != cache_facts[i].window)
            fail_msg("%.*s: %g and %g numbers per token", TV_FMT(o->path), whole, window);
        cached++;
    }
}

static void cache_per_token(void **state)
{
    (void)state;
    cached = 0;
    if (for_each(check_cache))
        assert_int_equal(cached, sizeof cache_facts / sizeof *cache_facts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_of_every_config),       cmocka_unit_test(parameter_counts),
        cmocka_unit_test(parts_explain_stated_totals), cmocka_unit_test(cache_per_token),
        cmocka_unit_test(graphs_hold_the_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
