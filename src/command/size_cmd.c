/* trivet size: one configuration in full, on one card or on each member of a group; without
 * --gpu the need and the cards that hold it. */
#include "command.h"

#include <math.h>

#include "deploy_options.h"
#include "job_options.h"
#include "market.h"
#include "model_arg.h"
#include "size_extras.h"

#include "report/report.h"
#include "search/phases.h"

typedef struct size_options {
    tv_model_options model;
    tv_job job;
    tv_deploy_options deploy;
    tv_machine_options machine;
    tv_money_options money;
    tv_any_options any;
} size_options;

static const tv_option_group groups[] = {
    {N_("Model"), tv_model_rows, TV_MODEL_ROWS, offsetof(size_options, model)},
    {N_("Job"), tv_job_rows, TV_JOB_ROWS, offsetof(size_options, job)},
    {N_("After training"), tv_deploy_rows, TV_DEPLOY_ROWS, offsetof(size_options, deploy)},
    {N_("Machine"), tv_machine_rows, TV_MACHINE_ROWS, offsetof(size_options, machine)},
    {N_("Money"), tv_money_rows, TV_MONEY_ROWS, offsetof(size_options, money)},
    {N_("Any command"), tv_any_rows, TV_ANY_ROWS, offsetof(size_options, any)},
};

static void defaults(void *options)
{
    tv_job_unsaid(&((size_options *)options)->job);
}

typedef struct size_run {
    tv_request *r;
    const size_options *o;
    tv_arena *scratch;
    tv_market market;
    const tv_model *model;
    const tv_dataset *dataset;
    tv_size_extras extras;
    tv_life_plan *phases; /* NULL: none but the job's own */
    bool phases_short;    /* a phase of --deploy does not surely fit some card */
    tv_formats_view formats;
} size_run;

static uint32_t gpus_of(const size_options *o)
{
    return o->machine.gpus ? o->machine.gpus : 1;
}

/* ---- phases ---- */

/* The phases around the job: those of --deploy, or of the engine that it names. */
static void phases_on(size_run *s, const tv_case *c, const tv_estimate *e)
{
    tv_deploy d = s->o->deploy.deploy;
    if (d.target == TV_TARGET_UNSAID)
        d.target = tv_life_target_of(c->job.engine);
    if (!c->machine->device || d.target == TV_TARGET_UNSAID || d.target == TV_TARGET_NONE)
        return;
    s->phases = tv_new(s->r->a, tv_life_plan, 1);
    tv_search_life_of(s->r->a, s->scratch, c, &e->memory, &d, s->phases);
    for (size_t i = 0; s->o->deploy.deploy.target && i < s->phases->n_stages; i++)
        s->phases_short = s->phases_short || s->phases->stages[i].verdict != TV_FITS;
}

/* Before a larger card is proposed, and where an engine is chosen for speed. */
static void formats_on(size_run *s, const tv_case *c, const tv_estimate *e)
{
    const bool asked =
        c->job.engine == TV_ENGINE_TENSORRT || c->job.engine == TV_ENGINE_PADDLE_INFERENCE;
    if (!c->machine->device || (e->memory.verdict == TV_FITS && !asked))
        return;
    tv_format_effect *rows = tv_new(s->r->a, tv_format_effect, TV_LIFE_FORMATS);
    s->formats =
        (tv_formats_view){.device = c->machine->device, .v = rows, .per_token = c->decode != NULL};
    s->formats.n = tv_life_formats(s->r->a, s->scratch, c, rows);
}

/* ---- one card ---- */

/* The estimate of one card: case, parts, the user's own terms, the price. */
static const tv_err *estimate_on(size_run *s, const tv_device *d, tv_estimate **out)
{
    tv_arena *a = s->r->a;
    tv_machine *machine = tv_new(a, tv_machine, 1);
    tv_case *c = tv_new(a, tv_case, 1);
    *out = tv_new(a, tv_estimate, 1);
    if (d)
        TV_TRY(tv_market_machine(&s->market, a, d, gpus_of(s->o), s->o->machine.nodes, machine));
    else
        *machine = (tv_machine){.gpus = gpus_of(s->o), .nodes = 1};
    TV_TRY(tv_predict_case(a, s->model, &s->o->job, machine, s->dataset, c));
    tv_predict_estimate(a, s->scratch, c, *out);
    if (d) {
        (*out)->memory.max_batch = tv_search_max_batch(s->scratch, c);
        (*out)->memory.max_seq = tv_search_max_seq(s->scratch, c);
    }
    TV_TRY(tv_size_restate(s->r, &s->o->any, c, *out, &s->extras));
    tv_market_price(&s->market, a, *out);
    tv_size_deltas(a, s->scratch, c, *out, &s->extras);
    phases_on(s, c, *out);
    formats_on(s, c, *out);
    if (s->o->any.rule_of_thumb)
        tv_size_thumbs(a, c, *out, &s->extras);
    return NULL;
}

static tv_size_view view_of(const size_run *s, const tv_estimate *estimate)
{
    const tv_size_extras *x = &s->extras;
    return (tv_size_view){
        .estimate = estimate,
        .dataset = s->dataset,
        .deltas = x->deltas.v,
        .n_deltas = x->deltas.n,
        .thumbs = x->thumbs.v,
        .n_thumbs = x->thumbs.n,
        .remarks = x->remarks.v,
        .n_remarks = x->remarks.n,
        .measured_bytes = s->o->any.measured_bytes,
        .measured_s = s->o->any.measured_step_s,
        .explain = s->o->any.explain,
        .phases = s->phases,
        .formats = s->formats,
    };
}

static void show(const size_run *s, const tv_size_view *view)
{
    if (s->r->json)
        tv_size_json(s->r, s->r->out, view);
    else
        tv_size_text(s->r, s->r->out, view);
}

static const tv_err *answered(const size_run *s, tv_verdict verdict)
{
    if (!s->o->any.require || (verdict == TV_FITS && !s->phases_short))
        return NULL;
    return TV_FAIL0(s->r->a, TV_NO, "require.no", N_("the job does not surely fit"));
}

/* ---- with a card ---- */

static tv_search search_of(size_run *s)
{
    return (tv_search){
        .model = s->model,
        .job = &s->o->job,
        .dataset = s->dataset,
        .nodes = s->o->machine.nodes ? s->o->machine.nodes : 1,
        .machine = tv_market_machine,
        .price = tv_market_price,
        .ctx = &s->market,
    };
}

/* What would make it fit, when it does not surely. */
static void add_remedies(size_run *s, const tv_device *d, const tv_estimate *estimate,
                         tv_size_view *view)
{
    if (estimate->memory.verdict == TV_FITS)
        return;
    tv_arena *a = s->r->a;
    tv_machine machine;
    tv_case c;
    if (tv_market_machine(&s->market, a, d, gpus_of(s->o), s->o->machine.nodes, &machine) ||
        tv_predict_case(a, s->model, &s->o->job, &machine, s->dataset, &c))
        return;
    tv_plan plan = {0};
    const tv_search search = search_of(s);
    tv_search_remedies(a, s->scratch, &search, &c, estimate, false, &plan);
    view->remedies = plan.remedies;
    view->n_remedies = plan.n_remedies;
}

/* What is said of the group holds for every member: the bounds are the widest. */
static void widen(tv_estimate *e, const tv_estimate *const *members, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const tv_estimate *m = members[i];
        e->memory.low_bytes = fmin(e->memory.low_bytes, m->memory.low_bytes);
        e->memory.high_bytes = fmax(e->memory.high_bytes, m->memory.high_bytes);
        if (!tv_known(e->time.step_s) || !tv_known(m->time.step_s))
            continue;
        e->time.step_s.lo = fmin(e->time.step_s.lo, m->time.step_s.lo);
        e->time.step_s.hi = fmax(e->time.step_s.hi, m->time.step_s.hi);
    }
}

static double share_of_card(const tv_estimate *e)
{
    return e->memory.total_bytes / fmax(1, e->memory.capacity_bytes);
}

/* Several cards: the one that the job fills most is shown in full, each has a line. A card that
 * cannot run the job is left out; where none can, the first reason is the answer. */
static const tv_err *on_several(size_run *s, const tv_card_list *cards, tv_size_view *view)
{
    const tv_estimate **members = tv_new(s->r->a, const tv_estimate *, cards->n);
    const tv_estimate *fullest = NULL;
    const tv_err *first = NULL;
    for (size_t i = 0; i < cards->n; i++) {
        tv_estimate *one = NULL;
        const tv_err *e = estimate_on(s, cards->v[i], &one);
        s->extras.deltas.n = 0;
        s->extras.thumbs.n = 0;
        if (e) {
            first = first ? first : e;
            continue;
        }
        members[view->n_members++] = one;
        if (!fullest || share_of_card(one) > share_of_card(fullest))
            fullest = one;
    }
    if (!fullest)
        return first;
    tv_estimate *all = tv_new(s->r->a, tv_estimate, 1);
    *all = *fullest;
    widen(all, members, view->n_members);
    view->estimate = all;
    view->members = members;
    return NULL;
}

/* The group that --gpu names, where it is one name. */
static const tv_err *named_group(size_run *s, const tv_device_group **group)
{
    *group = NULL;
    if (tv_str_cut(s->o->machine.gpu, ',').found)
        return NULL;
    tv_naming found = {0};
    TV_TRY(tv_catalog_find(s->market.catalog, s->o->machine.gpu, 0, &found));
    *group = found.group;
    return NULL;
}

static const tv_err *on_card(size_run *s)
{
    tv_card_list cards;
    const tv_device_group *group = NULL;
    TV_TRY(named_group(s, &group));
    TV_TRY(tv_market_cards(&s->market, &cards));
    tv_size_view view = view_of(s, NULL);
    view.group = group;
    if (cards.n > 1) {
        TV_TRY(on_several(s, &cards, &view));
    } else {
        tv_estimate *one = NULL;
        TV_TRY(estimate_on(s, cards.v[0], &one));
        view = view_of(s, one);
        add_remedies(s, cards.v[0], one, &view);
    }
    show(s, &view);
    return answered(s, view.estimate->memory.verdict);
}

/* ---- without one ---- */

static const tv_err *on_all(size_run *s)
{
    tv_arena *a = s->r->a;
    tv_card_list cards;
    TV_TRY(tv_market_cards(&s->market, &cards));
    tv_plan *plan = tv_new(a, tv_plan, 1);
    tv_search search = search_of(s);
    tv_job *job = tv_new(a, tv_job, 1); /* the cards are judged by the batch that is shown */
    *job = s->o->job;
    job->batch = job->batch ? job->batch : 1;
    search.job = job;
    const uint32_t count = gpus_of(s->o);
    search.devices = cards.v;
    search.n_devices = cards.n;
    search.counts = &count;
    search.n_counts = 1;
    TV_TRY(tv_search_plan(a, s->scratch, &search, plan));
    tv_estimate *one = NULL;
    TV_TRY(estimate_on(s, plan->n_choices ? plan->choices[0].machine.device : NULL, &one));
    if (!plan->n_choices)
        one->memory.verdict = TV_NO_FIT;
    tv_size_view view = view_of(s, one);
    view.cards = plan;
    show(s, &view);
    return answered(s, plan->n_choices ? TV_FITS : TV_NO_FIT);
}

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    size_run s = {.r = r, .o = options};
    s.scratch = tv_arena_child(r->a, TV_LIMIT_ARENA_BYTES);
    TV_TRY(tv_model_argument(r, args, &s.o->model, &s.model));
    TV_TRY(tv_market_open(r, &s.o->machine, &s.o->money, &s.market));
    TV_TRY(tv_size_dataset(r, &s.o->job, &s.dataset));
    return s.o->machine.gpu.n ? on_card(&s) : on_all(&s);
}

extern const tv_command tv_command_size;
const tv_command tv_command_size = {
    .name = "size",
    .summary = N_("what one configuration needs: memory, time, balance"),
    .usage = "MODEL [JOB] [--gpu SLUG] [--gpus N]",
    .details =
        N_("MODEL is a Hugging Face folder or config.json, a *.safetensors or *.gguf file, a "
           "built-in name (trivet models), or --params N. Without --gpu the need is shown "
           "with the cards that hold it."),
    .groups = groups,
    .n_groups = sizeof groups / sizeof *groups,
    .options_size = sizeof(size_options),
    .defaults = defaults,
    .max_args = 1,
    .run = run,
};
