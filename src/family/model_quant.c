/* How a model's matrices are stored when a configuration says that they are quantised: in
 * quantization_config (at the top or in the text part), or in hf_quant_config.json beside it.
 * Bytes per weight include scales and zero points; sources: docs/model.md, "quantised weights". */
#include "decoder.h"

typedef struct storage_rule {
    const char *algo; /* as modelopt, compressed-tensors and others write it */
    tv_dtype dtype;
    double bytes_per_weight;
} storage_rule;

static const storage_rule rules[] = {
    {"FP8", TV_F8_E4M3, 1},
    {"FP8_PER_CHANNEL_PER_TOKEN", TV_F8_E4M3, 1},
    {"MXFP4", TV_MXFP4, 0.5 + 1.0 / 32},
    {"MXFP8", TV_F8_E4M3, 1 + 1.0 / 32},
    {"NVFP4", TV_NVFP4, 0.5 + 1.0 / 16},
    {"W4A16_AWQ", TV_U4, 0.5 + 2.5 / 128},
    {"W4A8_AWQ", TV_U4, 0.5 + 2.5 / 128},
    {"W8A8_SQ_PER_CHANNEL", TV_I8, 1},
    {"fbgemm_fp8", TV_F8_E4M3, 1},
    {"mxfp4", TV_MXFP4, 0.5 + 1.0 / 32},
    {"mxfp4-pack-quantized", TV_MXFP4, 0.5 + 1.0 / 32},
    {"nvfp4-pack-quantized", TV_NVFP4, 0.5 + 1.0 / 16},
};

static bool apply_rule(tv_str algo, tv_quant *q)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (tv_str_is(algo, rules[i].algo)) {
            q->dtype = rules[i].dtype;
            q->bytes_per_weight = rules[i].bytes_per_weight;
            return true;
        }
    return false;
}

static void integer_bits(tv_quant *q, double bits, double group, bool zero_points)
{
    q->dtype = bits <= 4 ? (zero_points ? TV_U4 : TV_I4) : TV_I8;
    q->bytes_per_weight = bits / 8;
    if (group > 0) /* a 16-bit scale and, where there are any, a zero point per group */
        q->bytes_per_weight += (2 + (zero_points ? bits / 8 : 0)) / group;
}

static void fp8_blocks(const tv_json *j, tv_quant *q)
{
    const tv_json *block = tv_json_get(j, "weight_block_size");
    double elements = tv_json_num(tv_json_at(block, 0), 0) * tv_json_num(tv_json_at(block, 1), 0);
    q->dtype = TV_F8_E4M3;
    q->bytes_per_weight = elements > 0 ? 1 + 4 / elements : 1; /* one F32 scale per block */
}

static void bitsandbytes(const tv_json *j, tv_quant *q)
{
    if (tv_json_bool(tv_json_get(j, "load_in_8bit"), false)) {
        q->dtype = TV_I8;
        q->bytes_per_weight = 1;
        return;
    }
    bool twice = tv_json_bool(tv_json_get(j, "bnb_4bit_use_double_quant"), false);
    const tv_str kind = tv_json_str(tv_json_get(j, "bnb_4bit_quant_type"));
    q->dtype = tv_str_is(kind, "fp4") ? TV_F4 : TV_NF4;
    q->bytes_per_weight = twice ? 0.5 + 1.0 / 64 + 4.0 / (64 * 256) : 0.5 + 4.0 / 64;
}

static void first_group(const tv_json *j, tv_quant *q)
{
    const tv_json *groups = tv_json_get(j, "config_groups");
    const tv_json *group = groups->n ? &groups->items[0] : tv_json_get(NULL, "");
    const tv_json *weights = tv_json_get(group, "weights");
    if (apply_rule(tv_json_str(tv_json_get(group, "format")), q) ||
        apply_rule(tv_json_str(tv_json_get(j, "format")), q))
        return;
    double bits = tv_json_num(tv_json_get(weights, "num_bits"), 0);
    double size = tv_json_num(tv_json_get(weights, "group_size"), 0);
    if (tv_str_is(tv_json_str(tv_json_get(weights, "type")), "float") && bits == 8) {
        q->dtype = TV_F8_E4M3;
        q->bytes_per_weight = 1;
    } else if (bits > 0) {
        integer_bits(q, bits, size, !tv_json_bool(tv_json_get(weights, "symmetric"), true));
    }
}

/* Mixed precision names an algorithm per module: the commonest one stands for the model. */
static void commonest(const tv_json *j, tv_quant *q)
{
    const tv_json *modules = tv_json_get(j, "quantized_layers");
    size_t most = 0;
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        size_t n = 0;
        for (size_t i = 0; i < modules->n; i++)
            n += tv_str_is(tv_json_str(tv_json_get(&modules->items[i], "quant_algo")),
                           rules[r].algo);
        if (n > most) {
            most = n;
            q->dtype = rules[r].dtype;
            q->bytes_per_weight = rules[r].bytes_per_weight;
        }
    }
}

/* A 16-bit scale and a 16-bit zero point or shift per group. */
static void shifted_bits(tv_quant *q, double bits, double group)
{
    q->dtype = bits <= 2 ? TV_U2 : bits <= 4 ? TV_U4 : TV_I8;
    q->bytes_per_weight = bits / 8 + (group > 0 ? 4 / group : 0);
}

/* transformers' HqqConfig: the parameters of one tag, or of the first. */
static void hqq(const tv_json *j, tv_quant *q)
{
    const tv_json *c = tv_json_get(j, "quant_config");
    const tv_json *w = tv_json_get(c, "weight_quant_params");
    if (w->type != TV_JSON_OBJECT && c->n)
        w = tv_json_get(&c->items[0], "weight_quant_params");
    shifted_bits(q, tv_json_num(tv_json_get(w, "nbits"), 4),
                 tv_json_num(tv_json_get(w, "group_size"), 64));
}

/* A word like "int4", "float8" or "int4_weight_only" and a group of 128 unless stated. */
static void by_word(tv_quant *q, tv_str word, double group)
{
    const bool four = tv_str_has(word, TV_S("int4")) || tv_str_has(word, TV_S("Int4"));
    const bool weight8 = tv_str_has(word, TV_S("int8")) || tv_str_has(word, TV_S("Int8"));
    if (four) {
        shifted_bits(q, 4, group);
    } else if (tv_str_has(word, TV_S("int2"))) {
        shifted_bits(q, 2, group);
    } else if (tv_str_has(word, TV_S("loat8"))) {
        q->dtype = TV_F8_E4M3;
        q->bytes_per_weight = 1;
    } else if (weight8) {
        q->dtype = TV_I8;
        q->bytes_per_weight = 1;
    }
}

/* torchao: a name with arguments, or since 0.10 a configuration class per module. */
static void torchao(const tv_json *j, tv_quant *q)
{
    const tv_json *type = tv_json_get(j, "quant_type");
    const tv_json *one = tv_json_get(type, "default");
    const double plain = tv_json_num(tv_json_path(j, "quant_type_kwargs.group_size"), 128);
    if (type->type == TV_JSON_STRING)
        by_word(q, tv_json_str(type), plain);
    else
        by_word(q, tv_json_str(tv_json_get(one, "_type")),
                tv_json_num(tv_json_path(one, "_data.group_size"), 128));
}

/* AutoGPTQ's layout under the names that other tools give it. */
static bool is_gptq_like(tv_str method)
{
    static const char *const names[] = {
        "gptq",       "awq",        "gptq_marlin",      "awq_marlin",
        "auto-round", "auto_round", "intel/auto-round", NULL};
    for (size_t i = 0; names[i]; i++)
        if (tv_str_is(method, names[i]))
            return true;
    return false;
}

static void by_method(const tv_json *j, tv_quant *q)
{
    double bits = tv_json_num(tv_json_get(j, "bits"), 4);
    double group = tv_json_num(tv_json_get(j, "group_size"), 128);
    tv_str algo = tv_json_str(tv_json_get(j, "quant_algo"));
    if (tv_str_is(q->method, "fp8"))
        fp8_blocks(j, q);
    else if (tv_str_is(q->method, "compressed-tensors"))
        first_group(j, q);
    else if (tv_str_is(q->method, "bitsandbytes"))
        bitsandbytes(j, q);
    else if (is_gptq_like(q->method))
        integer_bits(q, bits, group, true);
    else if (tv_str_is(q->method, "hqq"))
        hqq(j, q);
    else if (tv_str_is(q->method, "quanto") || tv_str_is(q->method, "eetq"))
        by_word(q, tv_json_str(tv_json_get(j, "weights")), 128);
    else if (tv_str_is(q->method, "torchao"))
        torchao(j, q);
    else if (tv_str_is(q->method, "bitnet"))
        shifted_bits(q, 2, 0);
    else if (tv_str_is(algo, "MIXED_PRECISION"))
        commonest(j, q);
    else if (!apply_rule(algo, q))
        (void)apply_rule(q->method, q);
}

/* ---- what is left out ---- */

static size_t attention_entries(const tv_json *list)
{
    static const char *const queries[] = {"self_attn.q_proj", "self_attn.q_a_proj",
                                          "self_attn.qkv_proj", "mixer.q_proj", NULL};
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        tv_str s = tv_json_str(&list->items[i]);
        if (tv_str_has(s, TV_S("self_attn")) && tv_str_has(s, TV_S("*")))
            return SIZE_MAX; /* a pattern: every layer */
        for (size_t k = 0; queries[k]; k++)
            n += tv_str_has(s, tv_str_of(queries[k])) && !tv_str_has(s, TV_S("vision"));
    }
    return n;
}

/* Attention left out in most layers means that the experts (or the MLPs) are what is packed. */
static bool leaves_attention(const tv_json *j, double layers)
{
    static const char *const lists[] = {"ignore", "modules_to_not_convert", "exclude_modules",
                                        "ignored_layers", NULL};
    for (size_t i = 0; lists[i]; i++) {
        size_t n = attention_entries(tv_json_get(j, lists[i]));
        if (n == SIZE_MAX || (layers > 0 && (double)n >= layers / 2))
            return true;
    }
    return false;
}

static tv_dtype cache_dtype(const tv_json *j)
{
    static const char *const keys[] = {"kv_cache_quant_algo", "kv_cache_scheme",
                                       "kv_cache_quant_method", NULL};
    for (size_t i = 0; keys[i]; i++) {
        const tv_json *v = tv_json_get(j, keys[i]);
        if (tv_str_eq_nocase(tv_json_str(v), TV_S("fp8")))
            return TV_F8_E4M3;
        if (tv_json_num(tv_json_get(v, "num_bits"), 0) == 8)
            return tv_str_is(tv_json_str(tv_json_get(v, "type")), "int") ? TV_I8 : TV_F8_E4M3;
    }
    return TV_DTYPE_UNKNOWN;
}

tv_quant tv_quant_of(const tv_source *s)
{
    tv_quant q = {0};
    tv_config c = tv_config_of(s);
    const tv_json *j = tv_json_get(c.text, "quantization_config");
    if (j->type != TV_JSON_OBJECT)
        j = tv_json_get(c.top, "quantization_config");
    if (j->type != TV_JSON_OBJECT)
        j = tv_json_get(s->quantization, "quantization");
    double bits = tv_config_num(&c, "quantization_bit", 0);
    if (j->type != TV_JSON_OBJECT && !(bits > 0))
        return q;
    q.method = tv_json_str(tv_json_get(j, "quant_method"));
    if (!q.method.n)
        q.method = bits > 0 ? TV_S("integer") : TV_S("modelopt");
    if (bits > 0 && j->type != TV_JSON_OBJECT)
        integer_bits(&q, bits, 0, false);
    else
        by_method(j, &q);
    q.experts_only = leaves_attention(j, tv_config_num(&c, "num_hidden_layers|num_layers", 0));
    q.kv = cache_dtype(j);
    if (!q.kv)
        q.kv = cache_dtype(tv_json_get(s->quantization, "quantization"));
    return q;
}
