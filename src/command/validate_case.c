/* Models, cards and predictions behind the rows, each made once. */
#include "validate_case.h"

#include <string.h>

#include "catalog/catalog.h"
#include "family/family.h"
#include "predict/predict.h"
#include "read/builtin.h"

typedef struct known_model {
    const tv_json *rule;
    tv_str filled; /* what the row added to the configuration */
    double weight_bytes;
    const tv_model *model; /* NULL: reason */
    tv_str reason;
} known_model;

/* One configuration on one card. */
typedef struct outcome {
    tv_str key;
    uint64_t hash;
    tv_str reason; /* empty: predicted */
    double allocated, reserved, total, low, high;
    tv_fact step, samples, tokens, mfu, ttft, itl, prefill, decode;
    uint32_t batch, seq, gen;
    bool generates;
} outcome;

struct tv_validator {
    tv_request *r;
    tv_arena *a;
    tv_arena *work; /* one prediction, rewound after it (the catalogue reads late into its own) */
    tv_arena *scratch;
    tv_catalog *catalog;
    struct {
        known_model *v;
        size_t n, cap;
    } models;
    struct {
        outcome *v;
        size_t n, cap;
    } outcomes;
};

const tv_err *tv_validator_open(tv_request *r, tv_validator **v)
{
    tv_validator *out = tv_new(r->a, tv_validator, 1);
    *out = (tv_validator){.r = r, .a = r->a};
    out->work = tv_arena_child(r->a, TV_LIMIT_ARENA_BYTES);
    out->scratch = tv_arena_child(r->a, TV_LIMIT_ARENA_BYTES);
    TV_TRY(tv_catalog_open(r->a, r->home, &out->catalog));
    *v = out;
    return NULL;
}

struct tv_catalog *tv_validator_catalog(tv_validator *v)
{
    return v->catalog;
}

tv_arena *tv_validator_arena(tv_validator *v)
{
    return v->a;
}

/* ---- models ---- */

/* The rule's configuration with the row's own values written in. False: the row lacks one. */
static bool fill(tv_validator *v, const tv_json *rule, const tv_row *row, tv_json *config,
                 tv_buf *key)
{
    const tv_json *base = tv_json_get(rule, "config");
    const tv_json *list = tv_json_get(rule, "fill");
    *config = *base;
    if (!list->n)
        return true;
    tv_json *items = tv_new(v->a, tv_json, base->n + list->n);
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const tv_str text = tv_str_copy(v->a, tv_row_text(v->a, row, list->items[i].key));
        const tv_double_read number = tv_str_double(text);
        if (!text.n || !number.ok)
            return false;
        items[n++] = (tv_json){
            .type = TV_JSON_NUMBER, .key = list->items[i].s, .s = text, .number = number.v};
        tv_put(key, text);
        tv_putc(key, '|');
    }
    for (size_t i = 0; i < base->n; i++)
        if (tv_json_get(list, tv_cstr(v->a, base->items[i].key))->type == TV_JSON_END)
            items[n++] = base->items[i];
    for (size_t i = list->n; i < n; i++)
        for (size_t k = 0; k < list->n; k++)
            if (tv_str_eq(items[i].key, items[k].key))
                items[i--] = items[--n];
    config->items = items;
    config->n = n;
    return true;
}

static const tv_err *source_of(tv_validator *v, const tv_json *rule, const tv_json *config,
                               const tv_source **source)
{
    if (tv_json_has(rule, "use")) {
        const tv_str name = tv_json_str(tv_json_get(rule, "use"));
        TV_TRY(tv_builtin_find(v->a, name, source));
        if (*source)
            return NULL;
        return TV_FAIL(v->a, TV_UNAVAILABLE, "validate.no-builtin",
                       N_("no built-in model is named {name}"), tv_arg_str("name", name));
    }
    tv_source *s = tv_new(v->a, tv_source, 1);
    *s = (tv_source){.kind = TV_SOURCE_HF_CONFIG,
                     .path = tv_json_str(tv_json_get(rule, "name")),
                     .name = tv_json_str(tv_json_get(rule, "name")),
                     .config = tv_new(v->a, tv_json, 1)};
    memcpy((tv_json *)(uintptr_t)s->config, config, sizeof *config);
    *source = s;
    return NULL;
}

static const tv_err *make_model(tv_validator *v, const tv_json *rule, const tv_json *config,
                                double weight_bytes, const tv_model **model)
{
    const tv_source *source = NULL;
    TV_TRY(source_of(v, rule, config, &source));
    TV_TRY(tv_family_model(v->a, source, model));
    if (weight_bytes <= 0)
        return NULL;
    tv_model *quantised = tv_new(v->a, tv_model, 1);
    *quantised = **model;
    quantised->quant =
        (tv_quant){.method = TV_S("gguf"), .dtype = TV_Q4_K, .bytes_per_weight = weight_bytes};
    *model = quantised;
    return NULL;
}

static tv_str error_text(tv_arena *a, const tv_err *e)
{
    while (e->cause)
        e = e->cause;
    return tv_text_in(a, TV_EN, e->what);
}

static const known_model *model_of(tv_validator *v, const tv_json *rule, const tv_row *row,
                                   double weight_bytes)
{
    tv_json config = {0};
    tv_buf key = tv_buf_in(v->a);
    const bool whole = fill(v, rule, row, &config, &key);
    const tv_str filled = tv_buf_str(&key);
    for (size_t i = 0; i < v->models.n; i++) {
        const known_model *m = &v->models.v[i];
        if (m->rule == rule && tv_str_eq(m->filled, filled) && m->weight_bytes >= weight_bytes &&
            m->weight_bytes <= weight_bytes)
            return m;
    }
    known_model *m = tv_push(v->a, &v->models);
    *m = (known_model){.rule = rule, .filled = filled, .weight_bytes = weight_bytes};
    if (!whole) {
        m->reason = TV_S(N_("width, depth or heads of the model are not in the row"));
        return m;
    }
    const tv_err *e = make_model(v, rule, &config, weight_bytes, &m->model);
    if (e) {
        m->model = NULL;
        m->reason = error_text(v->a, e);
    }
    return m;
}

/* ---- predictions ---- */

static void put_number(tv_buf *b, double n)
{
    tv_put_double(b, n);
    tv_putc(b, '|');
}

static tv_str key_of(tv_arena *a, const known_model *m, const tv_want *w, const tv_device *d,
                     size_t index)
{
    const tv_job *j = &w->job;
    const double numbers[] = {(double)index,
                              j->task,
                              j->framework,
                              j->engine,
                              j->precision,
                              j->batch,
                              j->accum,
                              j->seq,
                              j->gen,
                              j->image_h,
                              j->image_w,
                              j->optimizer,
                              j->optimizer_form,
                              j->recompute,
                              j->attention,
                              j->loss,
                              j->strategy,
                              j->parallel.tp,
                              j->parallel.pp,
                              j->parallel.cp,
                              j->parallel.ep,
                              j->lora_rank,
                              j->lora_dropout,
                              j->dropout,
                              j->kv,
                              j->master,
                              j->lora_dtype,
                              j->logits_all,
                              w->gpus,
                              w->nodes};
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_number(&b, numbers[i]);
    tv_put(&b, m->filled);
    tv_put(&b, d->slug);
    tv_putc(&b, '|');
    tv_put(&b, j->lora_targets);
    return tv_buf_str(&b);
}

static const tv_err *machine_of(tv_validator *v, const tv_want *w, const tv_device *d,
                                tv_machine *m)
{
    *m = (tv_machine){.device = d, .gpus = w->gpus, .nodes = w->nodes};
    if (w->gpus * w->nodes == 1)
        return NULL;
    TV_TRY(tv_catalog_server_for(v->catalog, d, w->gpus, &m->server));
    TV_TRY(tv_catalog_link(v->catalog, d, m->server, w->gpus, &m->intra));
    if (w->nodes > 1 && m->server)
        m->inter = tv_catalog_network(m->server->network_bytes_per_s);
    return NULL;
}

static const tv_err *predict(tv_validator *v, const tv_model *model, const tv_want *w,
                             const tv_device *d, outcome *out)
{
    tv_machine machine;
    TV_TRY(machine_of(v, w, d, &machine));
    tv_case c;
    TV_TRY(tv_predict_case(v->work, model, &w->job, &machine, NULL, &c));
    tv_memory m = {0};
    tv_predict_memory(v->work, v->scratch, &c, &m);
    tv_time t = {0};
    tv_predict_time(v->work, &c, &m, &t);
    out->allocated = m.allocated_peak_bytes;
    out->reserved = m.reserved_peak_bytes;
    out->total = m.total_bytes;
    out->low = m.low_bytes;
    out->high = m.high_bytes;
    out->step = t.step_s;
    out->samples = t.samples_per_s;
    out->tokens = t.tokens_per_s;
    out->mfu = t.mfu;
    out->ttft = t.ttft_s;
    out->itl = t.itl_s;
    out->prefill = t.prefill_tokens_per_s;
    out->decode = t.decode_tokens_per_s;
    out->batch = c.job.batch;
    out->seq = c.job.seq;
    out->gen = c.job.gen;
    out->generates = model->generates;
    return NULL;
}

static size_t model_index(const tv_validator *v, const known_model *m)
{
    return (size_t)(m - v->models.v);
}

static const outcome *outcome_of(tv_validator *v, const known_model *m, const tv_want *w,
                                 const tv_device *d)
{
    const tv_mark before = tv_arena_mark(v->a);
    const tv_str key = key_of(v->a, m, w, d, model_index(v, m));
    const uint64_t hash = tv_str_hash(key);
    for (size_t i = 0; i < v->outcomes.n; i++)
        if (v->outcomes.v[i].hash == hash && tv_str_eq(v->outcomes.v[i].key, key)) {
            tv_arena_rewind(v->a, before);
            return &v->outcomes.v[i];
        }
    outcome *place = tv_push(v->a, &v->outcomes);
    outcome out = {.key = key, .hash = hash};
    const tv_mark mark = tv_arena_mark(v->work);
    const tv_err *e = predict(v, m->model, w, d, &out);
    if (e)
        out.reason = tv_str_copy(v->a, error_text(v->work, e));
    tv_arena_rewind(v->work, mark);
    *place = out;
    return place;
}

/* ---- a row against its predictions ---- */

typedef struct range {
    double v, lo, hi; /* v 0: not predicted */
} range;

static range fact(tv_fact f)
{
    return tv_known(f) ? (range){f.v, f.lo, f.hi} : (range){0};
}

static range scaled(range x, double by)
{
    return (range){x.v * by, x.lo * by, x.hi * by};
}

static range inverse(range x, double of)
{
    return x.v > 0 ? (range){of / x.v, of / x.hi, of / x.lo} : (range){0};
}

/* The interval of the whole is that of its parts above the context: moved, not scaled. */
static range bytes(const outcome *o, double part, const tv_want *w)
{
    const double by = w->sum ? w->gpus * w->nodes : 1;
    return scaled((range){part, part - (o->total - o->low), part + (o->high - o->total)}, by);
}

static range latency(const outcome *o, const tv_want *w)
{
    const range first = tv_known(o->ttft) ? fact(o->ttft) : fact(o->step);
    if (!o->generates || w->job.gen < 2)
        return first;
    const range each = scaled(fact(o->itl), w->job.gen - 1.0);
    return each.v > 0 ? (range){first.v + each.v, first.lo + each.lo, first.hi + each.hi}
                      : (range){0};
}

static range predicted(const outcome *o, const tv_want *w)
{
    const double cards = w->gpus * w->nodes;
    const double replicas = cards / (w->job.parallel.tp * w->job.parallel.pp);
    switch (w->measure) {
    case TV_MEASURE_ALLOCATED:
        return bytes(o, o->allocated, w);
    case TV_MEASURE_RESERVED:
        return bytes(o, o->reserved, w);
    case TV_MEASURE_TOTAL:
        return bytes(o, o->total, w);
    case TV_MEASURE_STEP:
        return fact(o->step);
    case TV_MEASURE_SAMPLES:
        return fact(o->samples);
    case TV_MEASURE_TOKENS:
        return fact(o->tokens);
    case TV_MEASURE_TOKENS_PER_GPU:
        return scaled(fact(o->tokens), 1 / cards);
    case TV_MEASURE_MFU:
        return fact(o->mfu);
    case TV_MEASURE_LATENCY:
        return latency(o, w);
    case TV_MEASURE_RATE:
        return inverse(latency(o, w), w->iterations ? 1 : o->batch * replicas);
    case TV_MEASURE_ALL_TOKENS:
        return inverse(latency(o, w),
                       (double)o->batch * (o->seq + (o->generates ? w->job.gen : 0)));
    case TV_MEASURE_TTFT:
        return fact(o->ttft);
    case TV_MEASURE_ITL:
        return fact(o->itl);
    case TV_MEASURE_PREFILL:
        return fact(o->prefill);
    case TV_MEASURE_DECODE:
        return fact(o->decode);
    case TV_MEASURE_NONE:
        break;
    }
    return (range){0};
}

static void widen(tv_judged *j, range x, bool first)
{
    if (first || x.v < j->least)
        j->least = x.v;
    if (first || x.v > j->most)
        j->most = x.v;
    if (first || x.lo < j->lo)
        j->lo = x.lo;
    if (first || x.hi > j->hi)
        j->hi = x.hi;
}

/* A sequence or a picture whose size nobody states is not predicted; a model has its own size of
 * picture only where its name implies it. */
static bool sizes(const tv_json *rule, const tv_model *m, tv_want *w, tv_str *reason)
{
    const tv_json *image = tv_json_get(rule, "image");
    if (!w->job.image_h && image->n == 2) {
        w->job.image_h = (uint32_t)tv_json_num(tv_json_at(image, 0), 0);
        w->job.image_w = (uint32_t)tv_json_num(tv_json_at(image, 1), 0);
    }
    if (m->default_seq && !w->job.seq && w->job.task == TV_TASK_INFER && w->job.gen)
        w->job.seq = 1; /* generation from nothing */
    if (m->default_seq && !w->job.seq)
        *reason = TV_S(N_("the sequence length is not stated"));
    else if (m->image_h && !w->job.image_h)
        *reason = TV_S(N_("the size of the picture is not stated"));
    return !reason->n;
}

static bool judge_cards(tv_validator *v, const known_model *m, const tv_want *w, tv_naming found,
                        tv_row_verdict *out, tv_str *reason)
{
    size_t judged = 0;
    for (size_t i = 0; i < tv_naming_count(found); i++) {
        const outcome *o = outcome_of(v, m, w, tv_naming_at(found, i));
        const range x = o->reason.n ? (range){0} : predicted(o, w);
        if (x.v > 0)
            widen(&out->judged, x, judged++ == 0);
        else if (!reason->n)
            *reason = o->reason.n ? o->reason : TV_S(N_("the predictor gives no such figure"));
    }
    if (judged)
        *reason = (tv_str){0};
    return judged > 0;
}

bool tv_validator_judge(tv_validator *v, const tv_json *rule, const tv_row *row, tv_want *want,
                        tv_row_verdict *out, tv_str *reason)
{
    *out = (tv_row_verdict){.judged = {.measured = want->value}, .gpu = want->gpu};
    const known_model *m = model_of(v, rule, row, want->weight_bytes);
    if (!m->model) {
        *reason = m->reason;
        return false;
    }
    out->family = m->model->family;
    if (!sizes(rule, m->model, want, reason))
        return false;
    tv_naming found;
    if (tv_catalog_find(v->catalog, want->gpu, 0, &found)) {
        *reason = TV_S(N_("the catalogue does not know the card"));
        return false;
    }
    return judge_cards(v, m, want, found, out, reason);
}
