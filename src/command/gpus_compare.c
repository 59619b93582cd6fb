/* `trivet gpus compare`: cards side by side, ratios only in the same mode, and what each number of
 * a maker's table decides. With a model both are reckoned and the workload's own limit decides. */
#include "gpus_compare.h"

#include "base/message.h"
#include "model_arg.h"
#include "predict/predict.h"

#define CARDS_MOST 8

typedef struct comparing {
    tv_gpus_run *g;
    tv_card_list cards;
    tv_comparison out;
    tv_texts_list remarks;
} comparing;

/* ---- which cards ---- */

static const tv_err *too_many(tv_arena *a)
{
    return TV_FAIL(a, TV_USAGE, "compare.many", N_("more than {most} cards are not compared"),
                   tv_arg_num("most", TV_ARG_NUMBER, CARDS_MOST));
}

/* A name that stands for several cards gives a column to each. */
static const tv_err *add_cards(comparing *c, const tv_str *names, size_t n)
{
    tv_arena *a = c->g->r->a;
    for (size_t i = 0; i < n; i++) {
        tv_naming found = {0};
        TV_TRY(tv_catalog_find(c->g->market.catalog, names[i], 0, &found));
        for (size_t k = 0; k < tv_naming_count(found); k++)
            *tv_push(a, &c->cards) = tv_naming_at(found, k);
    }
    if (c->cards.n < 2)
        return tv_hint(
            TV_FAIL0(a, TV_USAGE, "compare.one", N_("compare needs two cards")),
            TV_TEXT0("compare.one.try", N_("Name them: trivet gpus compare rtx-4090 a100-40gb")));
    return c->cards.n > CARDS_MOST ? too_many(a) : NULL;
}

/* ---- ratios ---- */

static const tv_err *mode_named(tv_arena *a, tv_str key, tv_rate *mode)
{
    for (tv_rate r = 0; r < TV_RATE_COUNT; r++)
        if (tv_str_is(key, tv_rate_key(r))) {
            *mode = r;
            return NULL;
        }
    tv_buf b = tv_buf_in(a);
    for (tv_rate r = 0; r < TV_RATE_COUNT; r++) {
        tv_puts(&b, r ? ", " : "");
        tv_puts(&b, tv_rate_key(r));
    }
    return tv_hint(TV_FAIL(a, TV_USAGE, "compare.mode", N_("no rate is called \"{mode}\""),
                           tv_arg_str("mode", key)),
                   TV_TEXT(a, "compare.mode.names", N_("known are {names}"),
                           tv_arg_str("names", tv_buf_str(&b))));
}

static const tv_err *modes_differ(tv_arena *a, tv_rate x, tv_rate y)
{
    return tv_hint(
        TV_FAIL(a, TV_USAGE, "compare.modes-differ",
                N_("{x} and {y} are different modes: their ratio says nothing of the cards"),
                tv_arg_word("x", tv_rate_name(x)), tv_arg_word("y", tv_rate_name(y))),
        TV_TEXT0("compare.modes-differ.try",
                 N_("Name one mode for both, such as --mode fp16_tensor.")));
}

/* --mode KEY or KEY,KEY: two different ones are refused (R038). */
static const tv_err *stated_mode(const comparing *c, bool *stated, tv_rate *mode)
{
    tv_arena *a = c->g->r->a;
    const tv_cut cut = tv_str_cut(c->g->o->mode, ',');
    *stated = c->g->o->mode.n > 0;
    if (!*stated)
        return NULL;
    TV_TRY(mode_named(a, tv_str_trim(cut.head), mode));
    if (!cut.found)
        return NULL;
    tv_rate other;
    TV_TRY(mode_named(a, tv_str_trim(cut.tail), &other));
    return other == *mode ? NULL : modes_differ(a, *mode, other);
}

/* The first mode that both cards have, of those that training uses; else each card's own. */
static void common_mode(const tv_device *x, const tv_device *y, tv_rate *x_mode, tv_rate *y_mode)
{
    static const tv_rate order[] = {TV_RATE_FP16_TENSOR, TV_RATE_BF16_TENSOR};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (tv_known(x->rate_flops[order[i]]) && tv_known(y->rate_flops[order[i]])) {
            *x_mode = *y_mode = order[i];
            return;
        }
    *x_mode = tv_card_training_rate(x).mode;
    *y_mode = tv_card_training_rate(y).mode;
}

static tv_fact over(tv_fact x, tv_fact y)
{
    if (!tv_known(x) || !tv_known(y) || !(y.v > 0))
        return (tv_fact){0};
    return tv_fact_of(x.v / y.v, TV_COMPUTED, (tv_str){0});
}

static const tv_err *fill_ratios(comparing *c)
{
    const tv_device *first = c->cards.v[0];
    tv_card_ratio *v = tv_new(c->g->r->a, tv_card_ratio, c->cards.n);
    tv_rate mode = TV_RATE_FP16_TENSOR;
    bool stated = false;
    TV_TRY(stated_mode(c, &stated, &mode));
    for (size_t i = 1; i < c->cards.n; i++) {
        const tv_device *d = c->cards.v[i];
        tv_card_ratio *r = &v[i - 1];
        *r = (tv_card_ratio){.card = d, .mode = mode, .first_mode = mode};
        if (!stated)
            common_mode(d, first, &r->mode, &r->first_mode);
        r->compute = tv_rule_rate_ratio(d, r->mode, first, r->first_mode);
        r->memory = over(d->mem_bytes, first->mem_bytes);
        r->bandwidth = over(d->mem_bytes_per_s, first->mem_bytes_per_s);
        if (tv_known(d->cuda_cores) && tv_known(first->cuda_cores))
            r->cores = d->cuda_cores.v / first->cuda_cores.v;
    }
    c->out.ratios = v;
    return NULL;
}

/* ---- a job ---- */

static const tv_err *estimate_on(comparing *c, tv_arena *scratch, const tv_device *d,
                                 tv_card_job *out)
{
    tv_arena *a = c->g->r->a;
    tv_machine *machine = tv_new(a, tv_machine, 1);
    tv_case *prepared = tv_new(a, tv_case, 1);
    tv_estimate *estimate = tv_new(a, tv_estimate, 1);
    TV_TRY(tv_market_machine(&c->g->market, a, d, 1, 1, machine));
    out->blocked = tv_predict_case(a, c->out.model, &c->g->o->job, machine, NULL, prepared);
    if (out->blocked)
        return NULL;
    tv_predict_estimate(a, scratch, prepared, estimate);
    tv_market_price(&c->g->market, a, estimate);
    out->estimate = estimate;
    return NULL;
}

static const tv_err *fill_jobs(comparing *c)
{
    const tv_gpus_options *o = c->g->o;
    if (!o->model.n && !(o->params.params > 0))
        return NULL;
    tv_str name = o->model;
    const tv_args args = {.v = &name, .n = o->model.n ? 1 : 0};
    tv_arena *scratch = tv_arena_child(c->g->r->a, TV_LIMIT_ARENA_BYTES);
    tv_card_job *jobs = tv_new(c->g->r->a, tv_card_job, c->cards.n);
    TV_TRY(tv_model_argument(c->g->r, &args, &o->params, &c->out.model));
    for (size_t i = 0; i < c->cards.n; i++)
        TV_TRY(estimate_on(c, scratch, c->cards.v[i], &jobs[i]));
    c->out.jobs = jobs;
    return NULL;
}

/* ---- the five numbers of a maker's table (R221) ---- */

typedef struct bounds {
    bool any, memory, compute, bandwidth, slot;
} bounds;

/* What holds the named job back on any of the cards. */
static bounds bounds_of(const comparing *c)
{
    bounds b = {0};
    for (size_t i = 0; c->out.jobs && i < c->cards.n; i++) {
        const tv_estimate *e = c->out.jobs[i].estimate;
        if (!e)
            continue;
        b.any = true;
        b.memory = b.memory || e->memory.verdict != TV_FITS;
        b.compute = b.compute || e->balance.bottleneck == TV_BOUND_COMPUTE;
        b.bandwidth = b.bandwidth || e->balance.bottleneck == TV_BOUND_MEMORY;
        b.slot = b.slot || e->balance.bottleneck == TV_BOUND_HOST_COPY;
    }
    return b;
}

static void fill_parameters(comparing *c)
{
    const bounds b = bounds_of(c);
    const int no = b.any ? 0 : -1;
    const tv_parameter all[TV_PARAMETERS] = {
        {"memory", N_("memory"),
         TV_TEXT0("compare.memory",
                  N_("whether the job runs at all: weights, gradients, states and activations must "
                     "fit. What is left over makes nothing faster, but it allows a larger batch.")),
         b.memory ? 1 : no},
        {"generation", N_("tensor core generation"),
         TV_TEXT0(
             "compare.generation",
             N_("which number formats run fast: FP16 from Volta, INT8 from Turing, BF16 and "
                "TF32 from Ampere, FP8 from Ada and Hopper, FP4 from Blackwell. It counts only "
                "for formats that the job uses.")),
         no},
        {"fp16", N_("FP16 rate"),
         TV_TEXT0(
             "compare.fp16",
             N_("how fast matrix products run when they are large: training, and reading long "
                "prompts. Compare the dense rate with FP32 accumulate; makers also print twice "
                "(FP16 accumulate) and four times (sparsity) as much.")),
         b.compute ? 1 : no},
        {"nvlink", N_("NVLink"),
         TV_TEXT0("compare.nvlink",
                  N_("how fast cards exchange gradients and slices of layers. One card alone does "
                     "not use it, and it does not make two memories one.")),
         no},
        {"pcie", "PCIe",
         TV_TEXT0("compare.pcie",
                  N_("how fast inputs and offloaded states reach the card, and how fast cards "
                     "without NVLink talk. Half the lanes or one generation less halves it.")),
         b.slot ? 1 : no},
    };
    for (size_t i = 0; i < TV_PARAMETERS; i++)
        c->out.parameters[i] = all[i];
}

/* ---- what to take from it ---- */

static bool is_segment(const tv_device *d, const char *word)
{
    return tv_str_is(d->segment, word);
}

/* R114, R115. */
static void judge_classes(comparing *c)
{
    bool consumer = false, professional = false;
    for (size_t i = 0; i < c->cards.n; i++) {
        consumer = consumer || is_segment(c->cards.v[i], "consumer");
        professional = professional || is_segment(c->cards.v[i], "workstation") ||
                       is_segment(c->cards.v[i], "datacenter");
    }
    c->out.consumer_and_professional = consumer && professional;
}

/* The members of one name often have the same ratios: said once. */
static bool said_before(const comparing *c, size_t i)
{
    const tv_card_ratio *v = c->out.ratios;
    for (size_t k = 0; k < i; k++)
        if (v[k].compute.state == v[i].compute.state && v[k].mode == v[i].mode &&
            !(v[k].compute.v < v[i].compute.v) && !(v[k].compute.v > v[i].compute.v) &&
            !(v[k].bandwidth.v < v[i].bandwidth.v) && !(v[k].bandwidth.v > v[i].bandwidth.v) &&
            !(v[k].cores < v[i].cores) && !(v[k].cores > v[i].cores))
            return true;
    return false;
}

static tv_arg times(tv_arena *a, const char *name, double v)
{
    tv_buf b = tv_buf_in(a);
    tv_put_short(&b, v, 2);
    return tv_arg_str(name, tv_buf_str(&b));
}

/* R031: more cores and a lower rate, or the other way round. */
static void remark_cores(comparing *c)
{
    const tv_device *first = c->cards.v[0];
    for (size_t i = 0; i + 1 < c->cards.n; i++) {
        const tv_card_ratio *r = &c->out.ratios[i];
        const bool against =
            (r->cores > 1 && r->compute.v < 1) || (r->cores < 1 && r->compute.v > 1);
        if (r->compute.state != TV_RATIO_OK || !(r->cores > 0) || !against || said_before(c, i))
            continue;
        *tv_push(c->g->r->a, &c->remarks) = TV_TEXT(
            c->g->r->a, "compare.cores",
            N_("CUDA cores do not rank cards: {x} has {x_cores}, {y} has {y_cores}, and yet {x} is "
               "{ratio} times {y} in {mode}"),
            tv_arg_str("x", r->card->name),
            tv_arg_num("x_cores", TV_ARG_COUNT, r->card->cuda_cores.v),
            tv_arg_str("y", first->name), tv_arg_num("y_cores", TV_ARG_COUNT, first->cuda_cores.v),
            times(c->g->r->a, "ratio", r->compute.v), tv_arg_word("mode", tv_rate_name(r->mode)));
    }
}

/* R038: the ratio that goes round sets FP16 accumulate against FP32 accumulate. */
static void remark_modes(comparing *c)
{
    tv_arena *a = c->g->r->a;
    const tv_device *first = c->cards.v[0];
    for (size_t i = 0; i + 1 < c->cards.n; i++) {
        const tv_card_ratio *r = &c->out.ratios[i];
        if (said_before(c, i))
            continue;
        if (r->compute.state == TV_RATIO_MODES_DIFFER)
            *tv_push(a, &c->remarks) = TV_TEXT(
                a, "compare.not-divided",
                N_("{x} is known in {x_mode}, {y} in {y_mode}: different modes are not "
                   "divided"),
                tv_arg_str("x", r->card->name), tv_arg_word("x_mode", tv_rate_name(r->mode)),
                tv_arg_str("y", first->name), tv_arg_word("y_mode", tv_rate_name(r->first_mode)));
        const tv_fact quoted = r->card->rate_flops[TV_RATE_FP16_TENSOR_FP16];
        const tv_fact half = r->card->rate_flops[TV_RATE_FP16_TENSOR];
        const tv_fact other = first->rate_flops[TV_RATE_FP16_TENSOR];
        if (!tv_known(quoted) || !tv_known(half) || !tv_known(other) || quoted.v < half.v * 1.5)
            continue;
        *tv_push(a, &c->remarks) =
            TV_TEXT(a, "compare.accumulate",
                    N_("do not set the {quoted} of {x} (FP16 accumulate) against the {other} of "
                       "{y} (FP32 accumulate): those are two modes"),
                    tv_arg_num("quoted", TV_ARG_FLOPS, quoted.v), tv_arg_str("x", r->card->name),
                    tv_arg_num("other", TV_ARG_FLOPS, other.v), tv_arg_str("y", first->name));
    }
}

/* R039: both views, and which of them the workload feels. */
static void remark_views(comparing *c)
{
    tv_arena *a = c->g->r->a;
    const tv_device *first = c->cards.v[0];
    for (size_t i = 0; i + 1 < c->cards.n; i++) {
        const tv_card_ratio *r = &c->out.ratios[i];
        if (r->compute.state != TV_RATIO_OK || !tv_known(r->bandwidth) || said_before(c, i))
            continue;
        *tv_push(a, &c->remarks) = TV_TEXT(
            a, "compare.views",
            N_("{x} against {y}: work that the matrix units limit runs up to {compute} times as "
               "fast, work that memory bandwidth limits (decoding, element-wise layers) "
               "{bandwidth} "
               "times"),
            tv_arg_str("x", r->card->name), tv_arg_str("y", first->name),
            times(a, "compute", r->compute.v), times(a, "bandwidth", r->bandwidth.v));
    }
}

static tv_fact work_per_s(const tv_estimate *e)
{
    return tv_known(e->time.decode_tokens_per_s) ? e->time.decode_tokens_per_s
                                                 : e->time.samples_per_s;
}

/* The job decides: whoever holds it, then whoever is faster. */
static void remark_job(comparing *c)
{
    tv_arena *a = c->g->r->a;
    size_t best = c->cards.n;
    for (size_t i = 0; c->out.jobs && i < c->cards.n; i++) {
        const tv_estimate *e = c->out.jobs[i].estimate;
        if (!e || e->memory.verdict == TV_NO_FIT || e->memory.verdict == TV_VERDICT_UNKNOWN ||
            !tv_known(work_per_s(e)))
            continue;
        if (best == c->cards.n || work_per_s(e).v > work_per_s(c->out.jobs[best].estimate).v)
            best = i;
    }
    if (!c->out.jobs)
        return;
    if (best == c->cards.n) {
        *tv_push(a, &c->remarks) =
            TV_TEXT0("compare.none", N_("none of them holds this job as asked"));
        return;
    }
    *tv_push(a, &c->remarks) = TV_TEXT(
        a, "compare.choice", N_("for this job: {gpu}, held back by {bound}"),
        tv_arg_str("gpu", c->cards.v[best]->name),
        tv_arg_word("bound", tv_bound_words(c->out.jobs[best].estimate->balance.bottleneck)));
}

const tv_err *tv_gpus_compare(tv_gpus_run *g, const tv_str *names, size_t n)
{
    comparing c = {.g = g};
    TV_TRY(add_cards(&c, names, n));
    TV_TRY(fill_ratios(&c));
    TV_TRY(fill_jobs(&c));
    fill_parameters(&c);
    judge_classes(&c);
    remark_views(&c);
    remark_modes(&c);
    remark_cores(&c);
    remark_job(&c);
    c.out.cards = c.cards.v;
    c.out.n = c.cards.n;
    c.out.remarks = c.remarks.v;
    c.out.n_remarks = c.remarks.n;
    if (g->r->json)
        tv_compare_json(g, &c.out);
    else
        tv_compare_text(g, &c.out);
    return NULL;
}
