/* What the readers find in the collection of real files against its manifest: every configuration,
 * index, safetensors and GGUF file, and every broken one. What configurations mean is the
 * families' (config_facts_test.c). */
#include "manifest.h"

static void wrong(const entry *x, const char *what)
{
    fail_msg("%.*s: %s differs", TV_FMT(x->path), what);
}

/* A stated fact must hold; one that is absent or null is not asked. */
static void same_count(const entry *x, const char *key, double got)
{
    const tv_json *want = tv_json_get(x->facts, key);
    if (tv_json_is_num(want) && want->number != got)
        fail_msg("%.*s: %s is %.17g, the manifest says %.17g", TV_FMT(x->path), key, got,
                 want->number);
}

static bool warned(const tv_source *s, const char *id)
{
    for (size_t i = 0; i < s->n_warnings; i++)
        if (strcmp(s->warnings[i].id, id) == 0)
            return true;
    return false;
}

/* ---- tensors ---- */

static double elements_of(const tv_source *s)
{
    double n = 0;
    for (size_t i = 0; i < s->n_tensors; i++)
        n += (double)s->tensors[i].elements;
    return n;
}

static uint64_t first_data(const tv_source *s)
{
    uint64_t at = UINT64_MAX;
    for (size_t i = 0; i < s->n_tensors; i++)
        at = s->tensors[i].offset < at ? s->tensors[i].offset : at;
    return at;
}

static void same_types(const entry *x, const char *key)
{
    const tv_json *want = tv_json_get(x->facts, key);
    size_t named = 0;
    for (size_t k = 0; k < want->n; k++) {
        const tv_dtype type = tv_dtype_named(want->items[k].key);
        size_t n = 0;
        for (size_t i = 0; i < x->s->n_tensors; i++)
            n += x->s->tensors[i].dtype == type;
        if (type == TV_DTYPE_UNKNOWN || (double)n != want->items[k].number)
            wrong(x, key);
        named += n;
    }
    if (want->n == 0 || named != x->s->n_tensors)
        wrong(x, key);
}

static void check_safetensors(const entry *x)
{
    const tv_source *s = x->s;
    size_t scalars = 0, empty = 0;
    for (size_t i = 0; i < s->n_tensors; i++) {
        scalars += s->tensors[i].rank == 0;
        empty += s->tensors[i].elements == 0;
    }
    const double header = (double)first_data(s) - 8;
    same_count(x, "tensors", (double)s->n_tensors);
    same_count(x, "parameters", elements_of(s));
    same_count(x, "tensor_bytes", s->tensor_bytes);
    same_count(x, "header_bytes", header);
    same_count(x, "data_section_bytes", (double)s->files[0].bytes - 8 - header);
    same_count(x, "scalar_tensors", (double)scalars);
    same_count(x, "zero_element_tensors", (double)empty);
    same_count(x, "holes_or_overlaps", warned(s, "read.gaps"));
    same_types(x, "dtypes");
    const tv_json *metadata = tv_json_get(x->facts, "metadata");
    if (metadata->n != (s->metadata ? s->metadata->n : 0))
        wrong(x, "metadata");
    for (size_t i = 0; i < metadata->n; i++)
        if (!tv_str_eq(metadata->items[i].s, s->metadata->items[i].s))
            wrong(x, "metadata");
}

static void check_gguf(const entry *x)
{
    const tv_source *s = x->s;
    const tv_json *stated = tv_json_get(x->facts, "hparams");
    same_count(x, "n_tensors", (double)s->n_tensors);
    same_count(x, "n_kv", (double)s->metadata->n);
    same_count(x, "parameters", elements_of(s));
    same_count(x, "data_offset", (double)first_data(s));
    same_count(
        x, "tokens",
        tv_json_num(tv_json_get(tv_json_get(s->metadata, "tokenizer.ggml.tokens"), "n"), -1));
    same_types(x, "tensor_types");
    if (!tv_str_eq(tv_json_str(tv_json_get(x->facts, "architecture")),
                   tv_json_str(tv_json_get(s->metadata, "general.architecture"))))
        wrong(x, "architecture");
    if (stated->n == 0)
        wrong(x, "hparams");
    for (size_t i = 0; i < stated->n; i++) {
        const char *key = tv_cstr(x->a, stated->items[i].key);
        if (tv_json_num(tv_json_get(s->metadata, key), -1) != stated->items[i].number)
            wrong(x, key);
    }
}

/* ---- documents ---- */

static void same_text(const entry *x, const tv_json *got, const tv_json *want, const char *what)
{
    if (want->type != got->type && want->type == TV_JSON_STRING)
        wrong(x, what);
    if (want->type == TV_JSON_STRING && !tv_str_eq(got->s, want->s))
        wrong(x, what);
}

static void check_config(const entry *x)
{
    const tv_json *type = tv_json_get(x->facts, "model_type");
    const tv_json *want = tv_json_get(x->facts, "architectures");
    const tv_json *got = tv_json_get(x->s->config, "architectures");
    if (x->s->kind != TV_SOURCE_HF_CONFIG)
        wrong(x, "kind");
    same_text(x, tv_json_get(x->s->config, "model_type"), type, "model_type");
    if (want->type == TV_JSON_ARRAY && want->n != got->n)
        wrong(x, "architectures");
    for (size_t i = 0; want->type == TV_JSON_ARRAY && i < want->n; i++)
        same_text(x, tv_json_at(got, i), tv_json_at(want, i), "architectures");
}

static void check_diffusers(const entry *x)
{
    if (x->s->kind != TV_SOURCE_DIFFUSERS)
        wrong(x, "kind");
    same_text(x, tv_json_get(x->s->config, "_class_name"), tv_json_get(x->facts, "architectures"),
              "_class_name");
}

static void check_pipeline(const entry *x)
{
    const tv_json *keys = tv_json_get(x->facts, "keys");
    if (x->s->kind != TV_SOURCE_DIFFUSERS || x->s->n_components == 0)
        wrong(x, "components");
    if (x->s->config->n != keys->n)
        wrong(x, "keys");
    for (size_t i = 0; i < keys->n; i++)
        if (!tv_str_eq(x->s->config->items[i].key, keys->items[i].s))
            wrong(x, "keys");
}

static void check_index(const entry *x)
{
    same_count(x, "total_size", (double)x->s->stated_total_size);
    for (size_t i = 0; i < x->s->n_warnings; i++) {
        const tv_text t = x->s->warnings[i];
        if (strcmp(t.id, "index.no-shards") != 0)
            continue;
        same_count(x, "shards", t.args[1].v);
        same_count(x, "tensors", t.args[2].v);
        return;
    }
    wrong(x, "the warning that no shard is there");
}

/* hf_quant_config.json is found from the config.json beside it. */
static void check_quantization(const entry *x)
{
    const tv_source *s = NULL;
    assert_ok(x->a, tv_read_model(x->a, tv_path_folder(x->file), &s));
    const tv_json *keys = tv_json_get(x->facts, "keys");
    if (!s->quantization || s->quantization->n != keys->n)
        wrong(x, "quantization");
}

/* ---- what must be refused ---- */

static void refused_with(const entry *x, const char *id, tv_code code)
{
    if (!x->e)
        fail_msg("%.*s was read", TV_FMT(x->path));
    if (strcmp(x->e->what.id, id) != 0 || x->e->code != code)
        fail_msg("%.*s: refused as %s", TV_FMT(x->path), x->e->what.id);
}

static void check_pointer(const entry *x)
{
    /* One is no pointer but the text of a symbolic link. */
    const bool link = tv_str_ends(x->path, TV_S(".safetensors"));
    refused_with(x, link ? "read.link-text" : "read.lfs-pointer", TV_INPUT);
}

static void check_broken_json(const entry *x)
{
    refused_with(x, "json.short", TV_INPUT);
    assert_int_equal(x->e->offset, 712);
}

static void check_broken_gguf(const entry *x)
{
    const bool filtered = tv_str_ends(x->path, TV_S("utf8-mangled.gguf"));
    refused_with(x, filtered ? "gguf.text-filter" : "gguf.short", TV_INPUT);
}

/* The adapter beside its base model, which may not be there. */
static void check_adapter(const entry *x)
{
    if (!x->s->adapter || x->s->adapter->kind.n == 0)
        wrong(x, "the adapter");
}

static void check_no_model(const entry *x)
{
    refused_with(x, "config.not-a-model", TV_UNSUPPORTED);
}

/* ---- the manifest ---- */

static const kind_case kinds[] = {
    {"hf-config", 199, true, check_config},
    {"bert-config", 1, true, check_config},
    {"ernie-config", 6, true, check_config},
    {"paddlenlp-model-config", 1, true, check_config},
    {"diffusers-config", 28, true, check_diffusers},
    {"diffusers-model-index", 13, true, check_pipeline},
    {"sharded-index", 8, true, check_index},
    {"safetensors", 21, true, check_safetensors},
    {"gguf", 1, true, check_gguf},
    {"hf-quant-config", 3, true, check_quantization},
    {"gguf-broken", 2, false, check_broken_gguf},
    {"lfs-pointer", 3, false, check_pointer},
    {"broken-json", 1, false, check_broken_json},
    {"peft-adapter-config", 2, true, check_adapter},
    {"diffusers-scheduler", 14, false, check_no_model},
};
static void the_manifest_holds(void **state)
{
    (void)state;
    test_manifest_holds(kinds, sizeof kinds / sizeof *kinds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_manifest_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
