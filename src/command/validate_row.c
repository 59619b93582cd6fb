/* Columns to job fields, words to enumerations, metrics to SI units. */
#include "validate_row.h"

tv_rows_kind tv_rows_kind_of(const tv_csv *csv)
{
    static const struct {
        const char *columns[3];
        tv_rows_kind kind;
    } signs[] = {
        {{"batch_per_gpu", "metric", "seq_len"}, TV_ROWS_TRAINING},
        {{"prompt_len", "metric", "gen_len"}, TV_ROWS_INFERENCE},
        {{"message_bytes", "op", "gpus"}, TV_ROWS_COLLECTIVES},
        {{"op", "dtype", "gpu"}, TV_ROWS_OPERATORS},
    };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t found = 0;
        for (size_t k = 0; k < 3; k++)
            found += tv_csv_column(csv, signs[i].columns[k]) < csv->n_names;
        if (found == 3)
            return signs[i].kind;
    }
    return TV_ROWS_NONE;
}

typedef struct metric_row {
    const char *name;
    tv_measure measure;
    tv_measure infer; /* the same column of an inference job; NONE: as measure */
    double scale;
} metric_row;

static const metric_row metrics[] = {
    {"mem_peak_bytes_allocated", TV_MEASURE_ALLOCATED, TV_MEASURE_NONE, 1},
    {"mem_peak_bytes_reserved", TV_MEASURE_RESERVED, TV_MEASURE_NONE, 1},
    {"mem_p99_bytes_reserved", TV_MEASURE_RESERVED, TV_MEASURE_NONE, 1},
    {"mem_peak_bytes_process", TV_MEASURE_TOTAL, TV_MEASURE_NONE, 1},
    {"mem_peak_bytes_unspecified", TV_MEASURE_ALLOCATED, TV_MEASURE_NONE, 1},
    {"mem_unspecified", TV_MEASURE_ALLOCATED, TV_MEASURE_NONE, 1},
    {"step_ms", TV_MEASURE_STEP, TV_MEASURE_LATENCY, 1e-3},
    {"samples_per_s", TV_MEASURE_SAMPLES, TV_MEASURE_RATE, 1},
    {"tokens_per_s", TV_MEASURE_TOKENS, TV_MEASURE_ALL_TOKENS, 1},
    {"tokens_per_s_per_gpu", TV_MEASURE_TOKENS_PER_GPU, TV_MEASURE_NONE, 1},
    {"mfu", TV_MEASURE_MFU, TV_MEASURE_NONE, 1},
    {"latency_ms", TV_MEASURE_LATENCY, TV_MEASURE_NONE, 1e-3},
    {"requests_per_s", TV_MEASURE_RATE, TV_MEASURE_NONE, 1},
    {"total_tokens_per_s", TV_MEASURE_ALL_TOKENS, TV_MEASURE_NONE, 1},
    {"ttft_ms", TV_MEASURE_TTFT, TV_MEASURE_NONE, 1e-3},
    {"itl_ms", TV_MEASURE_ITL, TV_MEASURE_NONE, 1e-3},
    {"prefill_tokens_per_s", TV_MEASURE_PREFILL, TV_MEASURE_NONE, 1},
    {"decode_tokens_per_s", TV_MEASURE_DECODE, TV_MEASURE_NONE, 1},
};

/* What is read from: the row, the rules, and whether a default was needed. */
typedef struct reading {
    tv_arena *a;
    const tv_rules *rules;
    const tv_row *row;
    bool assumed;
    tv_str reason; /* of the first field that cannot be used */
} reading;

static tv_str say(reading *r, const char *field)
{
    const tv_said said = tv_rules_said(r->rules, r->a, r->row, field);
    if (said.text.n && said.assumed)
        r->assumed = true;
    return said.text;
}

/* A whole number, or otherwise where nobody says. */
static uint32_t count(reading *r, const char *field, uint32_t otherwise)
{
    const tv_str s = say(r, field);
    const tv_double_read v = tv_str_double(s);
    if (!s.n || !v.ok || v.v < 0 || v.v > 4e9)
        return otherwise;
    return (uint32_t)v.v;
}

static double number(reading *r, const char *field, double otherwise)
{
    const tv_str s = say(r, field);
    const tv_double_read v = tv_str_double(s);
    return s.n && v.ok ? v.v : otherwise;
}

/* The value of a word; otherwise where nobody says. A word that is not ours becomes the reason. */
static int word(reading *r, tv_str s, const char *(*name_of)(int), int n, int otherwise, tv_str why)
{
    if (!s.n)
        return otherwise;
    for (int i = 0; i < n; i++)
        if (tv_str_eq_nocase(s, tv_str_of(name_of(i))))
            return i;
    if (!r->reason.n)
        r->reason = why;
    return otherwise;
}

static const char *task_word(int v)
{
    return tv_task_name((tv_task)v);
}

static const char *precision_word(int v)
{
    return tv_precision_name((tv_precision)v);
}

static const char *optimizer_word(int v)
{
    return tv_optimizer_name((tv_optimizer)v);
}

static const char *recompute_word(int v)
{
    return tv_recompute_name((tv_recompute)v);
}

static const char *attention_word(int v)
{
    return tv_attention_name((tv_attention_impl)v);
}

static const char *strategy_word(int v)
{
    return tv_strategy_name((tv_strategy)v);
}

static const char *engine_word(int v)
{
    return tv_engine_name((tv_engine)v);
}

static const char *loss_word(int v)
{
    return tv_loss_name((tv_loss_variant)v);
}

static const char *form_word(int v)
{
    static const char *const names[] = {"", "foreach", "fused", "loop"};
    return names[v];
}

#define READ_WORD(r, field, of, n, why)                                                            \
    word((r), say((r), (field)), (of), (int)(n), 0, TV_S(N_(why)))

/* "512", "512x1024". */
static void image(reading *r, tv_want *want)
{
    const tv_str s = say(r, "image_size");
    const tv_cut cut = tv_str_cut(s, 'x');
    const tv_double_read h = tv_str_double(cut.head);
    const tv_double_read w = cut.found ? tv_str_double(cut.tail) : h;
    if (!s.n || !h.ok || !w.ok || h.v < 1 || w.v < 1 || h.v > 65536 || w.v > 65536)
        return;
    want->job.image_h = (uint32_t)h.v;
    want->job.image_w = (uint32_t)w.v;
}

/* Modules are named by the end of their path: "q_proj" is "*q_proj". */
static tv_str targets(tv_arena *a, tv_str names)
{
    tv_buf b = tv_buf_in(a);
    for (tv_cut cut = {.tail = names, .found = names.n > 0}; cut.found;) {
        cut = tv_str_cut(cut.tail, ',');
        if (b.n)
            tv_putc(&b, ',');
        tv_putc(&b, '*');
        tv_put(&b, cut.head);
    }
    return tv_buf_str(&b);
}

static void lora(reading *r, tv_job *job)
{
    if (!tv_job_adapts(job))
        return;
    job->lora_rank = count(r, "lora_rank", 0);
    job->lora_targets = targets(r->a, say(r, "lora_targets"));
    job->lora_dropout = number(r, "lora_dropout", 0);
    job->lora_dtype = tv_dtype_named(say(r, "lora_dtype"));
    if (!job->lora_rank && !r->reason.n)
        r->reason = TV_S(N_("the adapters' rank is not stated"));
}

static void machine(reading *r, tv_want *want)
{
    const uint32_t gpus = count(r, "gpus", 0);
    const uint32_t per_node = count(r, "gpus_per_node", gpus > 8 ? 8 : gpus);
    want->gpu = say(r, "gpu");
    want->gpus = per_node && per_node < gpus ? per_node : gpus;
    want->nodes = want->gpus ? gpus / want->gpus : 0;
    if (!want->gpu.n)
        r->reason = TV_S(N_("the card is not stated"));
    else if (!gpus)
        r->reason = TV_S(N_("the number of cards is not stated"));
    else if (want->gpus * want->nodes != gpus)
        r->reason = TV_S(N_("the cards do not divide evenly over machines"));
}

static tv_framework framework(reading *r)
{
    const tv_str s = say(r, "framework");
    return tv_str_starts(s, TV_S("paddle")) ? TV_PADDLE : TV_TORCH;
}

static tv_engine engine(reading *r)
{
    return (tv_engine)READ_WORD(r, "engine", engine_word, TV_ENGINE_PADDLE_INFERENCE + 1,
                                "an engine that is not modelled");
}

static void training_job(reading *r, tv_want *want)
{
    tv_job *job = &want->job;
    job->task =
        (tv_task)READ_WORD(r, "task", task_word, TV_TASK_SERVE + 1, "a task of another kind");
    job->batch = count(r, "batch_per_gpu", 0);
    job->accum = count(r, "grad_accum", 1);
    job->seq = count(r, "seq_len", 0);
    job->optimizer = (tv_optimizer)READ_WORD(r, "optimizer", optimizer_word, TV_OPT_COUNT,
                                             "an optimizer that is not modelled");
    job->optimizer_form = (tv_optimizer_form)READ_WORD(r, "optimizer_form", form_word, 4,
                                                       "an optimizer that is not modelled");
    job->recompute = (tv_recompute)READ_WORD(r, "recompute", recompute_word, TV_RECOMPUTE_FULL + 1,
                                             "a recompute of another kind");
    job->loss = (tv_loss_variant)READ_WORD(r, "loss", loss_word, TV_LOSS_FUSED + 1,
                                           "a loss that is not modelled");
    job->strategy = (tv_strategy)READ_WORD(r, "strategy", strategy_word, TV_STRATEGY_HSDP + 1,
                                           "a way to shard that is not modelled");
    job->parallel.tp = count(r, "tp", 1);
    job->parallel.pp = count(r, "pp", 1);
    job->parallel.cp = count(r, "cp", 1);
    job->parallel.ep = count(r, "ep", 1);
    job->master = tv_str_is(say(r, "master"), "yes");
    job->engine = engine(r);
    if (tv_str_is(say(r, "compile"), "true"))
        job->engine = TV_ENGINE_COMPILE;
}

static void inference_job(reading *r, tv_want *want)
{
    tv_job *job = &want->job;
    job->task = TV_TASK_INFER;
    job->batch = count(r, "batch", 0);
    job->accum = 1;
    job->seq = count(r, "prompt_len", 0);
    job->gen = count(r, "gen_len", 0);
    job->engine = engine(r);
    job->parallel.tp = count(r, "tp", 1);
    job->parallel.pp = count(r, "pp", 1);
    job->kv = tv_dtype_named(say(r, "kv_precision"));
    job->logits_all = tv_str_is(say(r, "logits_all"), "yes");
}

/* What a figure of memory counts where its column does not say. */
static tv_measure counter(reading *r)
{
    const tv_str s = say(r, "counter");
    if (tv_str_is(s, "total"))
        return TV_MEASURE_TOTAL;
    return tv_str_is(s, "reserved") ? TV_MEASURE_RESERVED : TV_MEASURE_ALLOCATED;
}

static bool figure(reading *r, tv_want *want)
{
    const tv_str name = tv_row_text(r->a, r->row, TV_S("metric"));
    const tv_double_read v = tv_str_double(tv_row_text(r->a, r->row, TV_S("value")));
    if (!v.ok || !(v.v > 0)) {
        r->reason = TV_S(N_("the row has no figure"));
        return false;
    }
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        const metric_row *m = &metrics[i];
        if (!tv_str_is(name, m->name))
            continue;
        const bool infer = want->job.task == TV_TASK_INFER && m->infer != TV_MEASURE_NONE;
        want->measure = infer ? m->infer : m->measure;
        want->value = v.v * m->scale;
        if (want->measure == TV_MEASURE_ALLOCATED)
            want->measure = counter(r);
        return true;
    }
    r->reason = TV_S(N_("a figure that is not predicted"));
    return false;
}

/* Serving with layers on several cards that work in turn: as fast as one card, and together as
 * full; so one card stands for them. Training that way is a pipeline and is predicted as one. */
static void layers_in_turn(reading *r, tv_want *want)
{
    if (want->job.parallel.pp < 2 || want->job.task != TV_TASK_INFER)
        return;
    if (want->job.parallel.tp > 1) {
        r->reason = TV_S(N_("layers split over cards are not modelled"));
        return;
    }
    want->job.parallel.pp = 1;
    want->gpus = want->nodes = 1;
}

bool tv_want_read(tv_arena *a, const tv_rules *rules, const tv_row *row, tv_rows_kind kind,
                  tv_want *want, tv_str *reason)
{
    reading r = {.a = a, .rules = rules, .row = row};
    *want = (tv_want){.job = {.dropout = -1}};
    *reason = tv_rules_leave(rules, a, row);
    if (reason->n)
        return false;
    tv_job *job = &want->job;
    if (kind == TV_ROWS_TRAINING)
        training_job(&r, want);
    else
        inference_job(&r, want);
    job->framework = framework(&r);
    job->precision = (tv_precision)READ_WORD(&r, "precision", precision_word, TV_PRECISION_COUNT,
                                             "a precision that is not modelled");
    if (job->precision == TV_PRECISION_DEFAULT && !r.reason.n)
        r.reason = TV_S(N_("the precision is not stated"));
    job->attention =
        (tv_attention_impl)READ_WORD(&r, "attention", attention_word, TV_ATTENTION_FLASH + 1,
                                     "an attention kernel that is not modelled");
    job->dropout = number(&r, "dropout", -1);
    lora(&r, job);
    image(&r, want);
    if (!r.reason.n)
        machine(&r, want);
    if (!r.reason.n)
        layers_in_turn(&r, want);
    want->iterations = tv_str_is(say(&r, "iterations"), "true");
    job->batch *= count(&r, "batch_times", 1);
    want->weight_bytes = number(&r, "weight_bytes", 0);
    want->sum = tv_str_is(say(&r, "mem_scope"), "sum_all_gpus");
    if (!r.reason.n && !job->batch)
        r.reason = TV_S(N_("the batch is not stated"));
    want->assumed = r.assumed;
    const bool ok = !r.reason.n && figure(&r, want);
    *reason = r.reason;
    return ok;
}

const char *tv_precision_class(tv_precision p)
{
    switch (p) {
    case TV_PRECISION_FP32:
    case TV_PRECISION_TF32:
        return "32-bit";
    case TV_PRECISION_AMP_FP16:
    case TV_PRECISION_AMP_BF16:
        return "autocast";
    case TV_PRECISION_BF16:
    case TV_PRECISION_FP16:
        return "16-bit";
    case TV_PRECISION_FP8:
    case TV_PRECISION_INT8:
        return "8-bit";
    case TV_PRECISION_INT4:
    case TV_PRECISION_NF4:
        return "4-bit";
    case TV_PRECISION_DEFAULT:
    case TV_PRECISION_AS_STORED:
    case TV_PRECISION_COUNT:
        return "as stored";
    }
    return "as stored";
}
