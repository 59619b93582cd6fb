/* An out-of-memory message says how much was live and what was asked for on top; the prediction
 * says what the job needs and of what. Where they agree the largest term is the explanation; where
 * the message has more, the batch or the length that would need as much is solved for. */
#include "doctor_model.h"

#include <math.h>
#include <string.h>

#include "market.h"
#include "model_arg.h"

#include "predict/ledger.h"
#include "search/search.h"

/* A message and a prediction agree within the spread of docs/accuracy.md's p90. */
#define AGREES_WITHIN 0.15
/* A longer sequence or a larger batch than this is not solved for. */
#define MOST_SEQ 1048576u
#define MOST_BATCH 65536u

typedef struct oom {
    const tv_sighting *sighting;
    double total_bytes; /* of the card */
    double seen_bytes;  /* live in the framework, and the request on top; NaN: not stated */
    double free_bytes;  /* what others leave of the card */
} oom;

typedef struct reckoning {
    tv_request *r;
    const tv_doctor_job *o;
    tv_arena *scratch;
    tv_market market;
    const tv_model *model;
    oom message;
    tv_device device; /* the card with the memory that this job had of it */
    tv_machine machine;
    tv_case c;
    tv_estimate estimate;
    tv_finding *finding;
} reckoning;

/* ---- the message ---- */

static double or_zero(double v)
{
    return isnan(v) ? 0 : v;
}

static bool find_oom(const tv_scene *scene, oom *out)
{
    for (const tv_sighting *s = tv_scene_first(scene, "oom"); s; s = tv_scene_next(s, "oom")) {
        const tv_note *facts = &s->facts;
        const double total = tv_noted_num(facts, "total_bytes");
        if (!(total > 0))
            continue;
        const double others = or_zero(tv_noted_num(facts, "others_bytes"));
        *out = (oom){.sighting = s,
                     .total_bytes = total,
                     .seen_bytes = tv_noted_num(facts, "allocated_bytes") +
                                   tv_noted_num(facts, "tried_bytes"),
                     .free_bytes = total - (others > 0.05 * total ? others : 0)};
        return true;
    }
    return false;
}

/* An impossible request (O07) is no matter of what the job needs. */
static tv_finding *memory_finding(const tv_diagnosis *d)
{
    for (size_t i = 0; i < d->findings.n; i++) {
        tv_finding *f = d->findings.v[i];
        if (f->rule->id[0] == 'O' && f->severity > TV_INFO)
            return strcmp(f->rule->id, "O07") != 0 ? f : NULL;
    }
    return NULL;
}

/* ---- the card ---- */

/* The product that the documents name, where they name one. */
static tv_str named_card(const tv_scene *scene)
{
    const tv_sighting *first = tv_scene_first(scene, "device-record");
    return first && !tv_scene_next(first, "device-record") ? tv_noted_str(&first->facts, "slug")
                                                           : (tv_str){0};
}

/* Memory does not depend on the card beyond its class: the closest in size stands for it. A program
 * sees a little less than the nominal size (a T4's 16 GB are 14.76 GiB under ECC). */
static const tv_err *card_of_size(reckoning *k, const tv_device **out)
{
    tv_device_list all = {0};
    TV_TRY(tv_catalog_devices(k->market.catalog, &all));
    double best = 0.10;
    *out = NULL;
    for (size_t i = 0; i < all.n; i++) {
        const double more = tv_device_memory(&all.v[i]) / k->message.total_bytes - 1;
        const double off = fabs(more);
        if (!tv_str_eq_nocase(all.v[i].vendor, TV_S("nvidia")) || off >= best || more < -0.01)
            continue;
        best = off;
        *out = &all.v[i];
    }
    if (*out)
        return NULL;
    return tv_hint(TV_FAIL(k->r->a, TV_USAGE, "doctor.no-card",
                           N_("the documents do not say which card has {total}"),
                           tv_arg_num("total", TV_ARG_MEMORY, k->message.total_bytes)),
                   TV_TEXT0("doctor.no-card.try", N_("Name it with --gpu.")));
}

static const tv_err *choose_card(reckoning *k, const tv_scene *scene)
{
    const tv_str stated = k->o->machine.gpu;
    const tv_str name = stated.n ? stated : named_card(scene);
    const tv_device *d = NULL;
    if (name.n)
        TV_TRY(tv_catalog_device(k->market.catalog, name, k->message.total_bytes, &d));
    else
        TV_TRY(card_of_size(k, &d));
    k->device = *d;
    k->device.mem_bytes = k->device.mem_usable_bytes =
        tv_fact_of(k->message.free_bytes, TV_STATED, k->message.sighting->file);
    return NULL;
}

/* ---- the prediction ---- */

static const tv_err *machine_of(void *ctx, tv_arena *a, const tv_device *d, uint32_t gpus,
                                uint32_t nodes, tv_machine *machine)
{
    return tv_market_machine(ctx, a, d, gpus, nodes, machine);
}

static const tv_err *predict(reckoning *k)
{
    const uint32_t gpus = k->o->machine.gpus ? k->o->machine.gpus : 1;
    tv_arena *a = k->r->a;
    TV_TRY(machine_of(&k->market, a, &k->device, gpus, k->o->machine.nodes, &k->machine));
    TV_TRY(tv_predict_case(a, k->model, &k->o->job, &k->machine, NULL, &k->c));
    tv_predict_estimate(a, k->scratch, &k->c, &k->estimate);
    return NULL;
}

static tv_term largest_term(const tv_memory *m)
{
    int largest = 0;
    for (int t = 1; t < TV_TERM_COUNT; t++)
        if (m->term_bytes[t] > m->term_bytes[largest])
            largest = t;
    return (tv_term)largest;
}

/* ---- what the message would fit ---- */

static double live_bytes(reckoning *k, uint32_t batch, uint32_t seq)
{
    const tv_mark mark = tv_arena_mark(k->scratch);
    tv_job job = k->c.job;
    tv_case c;
    double bytes = (double)INFINITY;
    job.batch = batch;
    job.seq = seq;
    if (!tv_predict_case(k->scratch, k->model, &job, &k->machine, NULL, &c)) {
        const tv_walk walk = tv_memory_quick_walk(k->scratch, &c);
        tv_memory m;
        tv_memory_from_walk(k->scratch, &c, &walk, &m);
        bytes = m.allocated_peak_bytes;
    }
    tv_arena_rewind(k->scratch, mark);
    return bytes;
}

/* The smallest batch (or length) of which the prediction reaches what was seen: memory grows with
 * both. 0: none up to the ceiling. */
static uint32_t solve(reckoning *k, bool length, uint32_t most)
{
    uint32_t low = length ? k->c.job.seq : k->c.job.batch, high = low;
    if (!low)
        return 0;
    do {
        if (high >= most)
            return 0;
        low = high;
        high = high > most / 2 ? most : high * 2;
    } while (live_bytes(k, length ? k->c.job.batch : high, length ? high : k->c.job.seq) <
             k->message.seen_bytes);
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        const double bytes =
            live_bytes(k, length ? k->c.job.batch : middle, length ? middle : k->c.job.seq);
        if (bytes < k->message.seen_bytes)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static tv_text surplus(reckoning *k)
{
    tv_arena *a = k->r->a;
    const uint32_t batch = solve(k, false, MOST_BATCH), seq = solve(k, true, MOST_SEQ);
    const tv_arg need = tv_arg_num("need", TV_ARG_MEMORY, k->estimate.memory.allocated_peak_bytes);
    const tv_arg seen = tv_arg_num("seen", TV_ARG_MEMORY, k->message.seen_bytes);
    if (batch && seq)
        return TV_TEXT(a, "doctor.surplus",
                       N_("As given the job needs {need} live, the message shows {seen}: that is a "
                          "batch of {batch} or a length of {seq}, or tensors that are kept from "
                          "step to step."),
                       need, seen, tv_arg_num("batch", TV_ARG_COUNT, batch),
                       tv_arg_num("seq", TV_ARG_COUNT, seq));
    if (batch)
        return TV_TEXT(a, "doctor.surplus-batch",
                       N_("As given the job needs {need} live, the message shows {seen}: that is a "
                          "batch of {batch}, or tensors that are kept from step to step."),
                       need, seen, tv_arg_num("batch", TV_ARG_COUNT, batch));
    return TV_TEXT(
        a, "doctor.surplus-kept",
        N_("As given the job needs {need} live, the message shows {seen}, which no batch "
           "of it explains: tensors are kept from step to step, or this is another "
           "job."),
        need, seen);
}

static tv_text explained(reckoning *k)
{
    const tv_memory *m = &k->estimate.memory;
    const tv_term term = largest_term(m);
    return TV_TEXT(
        k->r->a, "doctor.explained",
        N_("As given the job needs {need} of {capacity}; the largest part is {term} with "
           "{bytes}, at {peak}."),
        tv_arg_num("need", TV_ARG_MEMORY, m->total_bytes),
        tv_arg_num("capacity", TV_ARG_MEMORY, k->message.free_bytes),
        tv_arg_word("term", tv_term_label(term)),
        tv_arg_num("bytes", TV_ARG_MEMORY, m->term_bytes[term]),
        tv_arg_str("peak", tv_text_in(k->r->a, k->r->lang, m->peak_at)));
}

/* The message can only show what was live when the card was full: less than the need is no
 * contradiction, more is. */
static bool shows_more(const reckoning *k)
{
    const double seen = k->message.seen_bytes;
    return !isnan(seen) && seen > (1 + AGREES_WITHIN) * k->estimate.memory.allocated_peak_bytes;
}

/* ---- the change ---- */

static tv_text remedy(reckoning *k, tv_text why)
{
    tv_arena *a = k->r->a;
    const tv_search search = {
        .model = k->model,
        .job = &k->o->job,
        .nodes = k->machine.nodes,
        .machine = machine_of,
        .price = tv_market_price,
        .ctx = &k->market,
    };
    tv_plan plan = {0};
    const tv_arg because = tv_arg_str("why", tv_text_in(a, k->r->lang, why));
    if (k->estimate.memory.total_bytes <= k->message.free_bytes)
        return why; /* it fits: nothing is to be changed */
    tv_search_remedies(a, k->scratch, &search, &k->c, &k->estimate, false, &plan);
    for (size_t i = 0; i < plan.n_remedies; i++) {
        const tv_remedy *change = &plan.remedies[i];
        if (!change->fits)
            continue;
        *tv_push(a, &k->finding->values) =
            tv_arg_num("remedy_bytes", TV_ARG_MEMORY, change->total_bytes);
        return TV_TEXT(a, "doctor.remedy",
                       N_("{why} The cheapest change that fits: {what}, predicted {bytes}."),
                       because, tv_arg_str("what", tv_text_in(a, k->r->lang, change->what)),
                       tv_arg_num("bytes", TV_ARG_MEMORY, change->total_bytes));
    }
    return TV_TEXT(a, "doctor.no-remedy",
                   N_("{why} No single change makes it fit: trivet plan names cards that hold it."),
                   because);
}

/* ---- the whole ---- */

static void remark(tv_request *r, tv_text t)
{
    tv_put_text(r->err, r->lang, t);
    tv_putc(r->err, '\n');
}

const tv_err *tv_doctor_model(tv_request *r, const tv_doctor_job *o, tv_diagnosis *d)
{
    static const tv_money_options no_money = {0};
    reckoning k = {.r = r, .o = o, .finding = memory_finding(d)};
    tv_args args = {0};
    if (o->model.n)
        *tv_push(r->a, &args) = o->model;
    TV_TRY(tv_model_argument(r, &args, &o->options, &k.model));
    if (!find_oom(d->scene, &k.message) || !k.finding) {
        remark(r, TV_TEXT0("doctor.model-unused",
                           N_("no out-of-memory message here states a card's size: the model was "
                              "not used")));
        return NULL;
    }
    k.scratch = tv_arena_child(r->a, TV_LIMIT_ARENA_BYTES);
    TV_TRY(tv_market_open(r, &o->machine, &no_money, &k.market));
    TV_TRY(choose_card(&k, d->scene));
    TV_TRY(predict(&k));
    *tv_push(r->a, &k.finding->values) =
        tv_arg_num("predicted_bytes", TV_ARG_MEMORY, k.estimate.memory.total_bytes);
    k.finding->remedy = remedy(&k, shows_more(&k) ? surplus(&k) : explained(&k));
    return NULL;
}
