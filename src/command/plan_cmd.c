/* trivet plan: every card that can hold the job, ranked for the user's aim; why the others lost;
 * what would make it fit; the cards for the later stages of the same model. */
#include "command.h"

#include "deploy_options.h"
#include "job_options.h"
#include "market.h"
#include "model_arg.h"
#include "reach.h"
#include "size_extras.h"

#include "report/report.h"
#include "search/phases.h"

typedef struct plan_options {
    tv_model_options model;
    tv_job job;
    tv_deploy_options deploy;
    tv_machine_options machine;
    tv_money_options money;
    tv_any_options any;
} plan_options;

static const tv_option_group groups[] = {
    {N_("Model"), tv_model_rows, TV_MODEL_ROWS, offsetof(plan_options, model)},
    {N_("Job"), tv_job_rows, TV_JOB_ROWS, offsetof(plan_options, job)},
    {N_("After training"), tv_deploy_rows, TV_DEPLOY_ROWS, offsetof(plan_options, deploy)},
    {N_("Machine"), tv_machine_rows, TV_MACHINE_ROWS, offsetof(plan_options, machine)},
    {N_("Money"), tv_money_rows, TV_MONEY_ROWS, offsetof(plan_options, money)},
    {N_("Any command"), tv_any_rows, TV_ANY_ROWS, offsetof(plan_options, any)},
};

static void defaults(void *options)
{
    tv_job_unsaid(&((plan_options *)options)->job);
}

typedef struct plan_run {
    tv_request *r;
    const plan_options *o;
    tv_arena *scratch;
    tv_market market;
    const tv_model *model;
    const tv_dataset *dataset;
    tv_card_list cards;
    tv_size_extras extras;
    tv_stage_pick stages[3];
    size_t n_stages;
    tv_card_list serve_cards; /* --serve-gpu, or those of --gpu */
    tv_deploy deploy;
    tv_life_plan *phases; /* NULL: nothing comes after */
    tv_formats_view formats;
} plan_run;

static tv_goal goal_of(tv_aim aim)
{
    switch (aim) {
    case TV_AIM_DEFAULT:
    case TV_AIM_VALUE:
    case TV_AIM_COUNT:
        return TV_GOAL_VALUE;
    case TV_AIM_CHEAPEST:
        return TV_GOAL_CHEAPEST;
    case TV_AIM_FASTEST:
        return TV_GOAL_FASTEST;
    }
    return TV_GOAL_VALUE;
}

static const uint32_t all_counts[] = {1, 2, 4, 8};

static tv_search search_of(plan_run *p, const tv_job *job)
{
    const plan_options *o = p->o;
    const bool fixed = o->machine.gpus > 0;
    return (tv_search){
        .model = p->model,
        .job = job,
        .dataset = p->dataset,
        .devices = p->cards.v,
        .n_devices = p->cards.n,
        .counts = fixed ? &o->machine.gpus : all_counts,
        .n_counts = fixed ? 1 : sizeof all_counts / sizeof *all_counts,
        .nodes = o->machine.nodes ? o->machine.nodes : 1,
        .goal = goal_of(o->any.aim),
        .budget = o->money.budget,
        .deadline_s = o->money.deadline_s,
        .machine = tv_market_machine,
        .price = tv_market_price,
        .ctx = &p->market,
    };
}

/* ---- stages ---- */

/* The same model later in its life: validated with the training shapes, then served. */
static void stage(plan_run *p, const char *name, const tv_job *job)
{
    tv_plan *plan = tv_new(p->r->a, tv_plan, 1);
    tv_search search = search_of(p, job);
    search.deadline_s = 0; /* the limits are the training run's */
    search.budget = 0;
    if (tv_search_plan(p->r->a, p->scratch, &search, plan) || !plan->n_choices)
        return;
    p->stages[p->n_stages++] = (tv_stage_pick){name, &plan->choices[0]};
}

static void later_stages(plan_run *p, const tv_plan *plan)
{
    if (!plan->n_choices)
        return;
    const bool trains = tv_job_trains(&plan->choices[0].job);
    p->stages[p->n_stages++] = (tv_stage_pick){trains ? "train" : "infer", &plan->choices[0]};
    if (!trains)
        return;
    tv_job *job = tv_new(p->r->a, tv_job, 2);
    job[0] = p->o->job;
    job[0].task = TV_TASK_INFER;
    job[0].precision = TV_PRECISION_DEFAULT;
    job[0].optimizer = TV_OPT_DEFAULT;
    job[0].recompute = TV_RECOMPUTE_NONE;
    job[0].strategy = TV_STRATEGY_DEFAULT;
    job[1] = job[0];
    job[1].batch = 1;
    job[1].accum = 1;
    stage(p, "validate", &job[0]);
    stage(p, "infer", &job[1]);
}

/* The training cards kept for serving cost more than the cards that serving needs. */
static void warn_overspend(plan_run *p)
{
    const tv_choice *train = NULL, *infer = NULL;
    for (size_t i = 0; i < p->n_stages; i++) {
        const tv_str name = tv_str_of(p->stages[i].stage);
        train = tv_str_is(name, "train") ? p->stages[i].choice : train;
        infer = tv_str_is(name, "infer") ? p->stages[i].choice : infer;
    }
    if (!train || !infer)
        return;
    const tv_cost *high = &train->estimate.cost, *low = &infer->estimate.cost;
    if (!tv_known(high->per_hour) || !tv_known(low->per_hour) ||
        high->per_hour.v <= low->per_hour.v)
        return;
    *tv_push(p->r->a, &p->extras.remarks) =
        TV_TEXT(p->r->a, "stages.overspend",
                N_("serving on the training cards would overspend by {extra}: {gpu} does it for "
                   "{low} instead of {high} {currency} an hour"),
                tv_arg_num("extra", TV_ARG_RATIO, high->per_hour.v / low->per_hour.v - 1),
                tv_arg_str("gpu", infer->machine.device->name),
                tv_arg_num("low", TV_ARG_NUMBER, low->per_hour.v),
                tv_arg_num("high", TV_ARG_NUMBER, high->per_hour.v),
                tv_arg_str("currency", high->currency));
}

/* ---- phases ---- */

/* A job that names an engine but no target is built into that engine. */
static tv_deploy deploy_of(const plan_run *p, bool trains)
{
    tv_deploy d = p->o->deploy.deploy;
    if (d.target == TV_TARGET_UNSAID && !trains)
        d.target = tv_life_target_of(p->o->job.engine);
    return d;
}

static const tv_err *serving_cards(plan_run *p)
{
    p->serve_cards = p->cards;
    if (!p->o->deploy.serve_gpu.n)
        return NULL;
    tv_machine_options machine = p->o->machine;
    machine.gpu = p->o->deploy.serve_gpu;
    tv_market market = p->market;
    market.machine = &machine;
    return tv_market_cards(&market, &p->serve_cards);
}

static bool states_phases(const plan_run *p)
{
    return p->o->deploy.phase.n > 0;
}

static bool resolved_trains(const plan_run *p, const tv_plan *plan)
{
    if (plan->n_choices)
        return tv_job_trains(&plan->choices[0].job);
    const tv_task task = p->o->job.task;
    return tv_job_trains(&p->o->job) || (task == TV_TASK_DEFAULT && !p->model->generates);
}

static tv_search serve_search(plan_run *p, const tv_job *job)
{
    tv_search search = search_of(p, job);
    search.devices = p->serve_cards.v;
    search.n_devices = p->serve_cards.n;
    search.deadline_s = 0; /* the limits are the training run's */
    search.budget = 0;
    return search;
}

static const tv_err *later_phases(plan_run *p, const tv_plan *plan)
{
    const bool trains = resolved_trains(p, plan);
    p->deploy = deploy_of(p, trains);
    TV_TRY(serving_cards(p));
    const bool named = p->deploy.target != TV_TARGET_UNSAID && p->deploy.target != TV_TARGET_NONE;
    if (!named && !states_phases(p) && !p->o->deploy.serve_gpu.n)
        return NULL;
    tv_job *job = tv_new(p->r->a, tv_job, 1);
    *job = tv_life_serve_job(&p->o->job, &p->deploy);
    const tv_search first = search_of(p, &p->o->job), serve = serve_search(p, job);
    tv_life_query q = {.first = &first, .ranked = plan, .serve = &serve, .deploy = &p->deploy};
    TV_TRY(tv_deploy_stated(p->r->a, &p->o->deploy, q.stated_bytes));
    p->phases = tv_new(p->r->a, tv_life_plan, 1);
    tv_search_life(p->r->a, p->scratch, &q, p->phases);
    return NULL;
}

/* Nobody said what comes after training: what an engine would need, and the question. */
static void ask_for_target(plan_run *p, const tv_plan *plan)
{
    if (!plan->n_choices || p->phases || p->deploy.target == TV_TARGET_NONE ||
        !tv_job_trains(&plan->choices[0].job))
        return;
    const tv_choice *best = &plan->choices[0];
    const bool paddle = best->job.framework == TV_PADDLE;
    tv_case c;
    if (tv_predict_case(p->r->a, p->model, &best->job, &best->machine, p->dataset, &c))
        return;
    const tv_deploy d = {.target = paddle ? TV_TARGET_PADDLE_TENSORRT : TV_TARGET_TENSORRT,
                         .max_batch = p->o->deploy.deploy.max_batch};
    tv_life_plan life;
    tv_search_life_of(p->r->a, p->scratch, &c, &best->estimate.memory, &d, &life);
    for (size_t i = 0; i < life.n_stages; i++) {
        const tv_life_need *n = &life.stages[i].need;
        if (n->phase != TV_LIFE_BUILD)
            continue;
        *tv_push(p->r->a, &p->extras.remarks) =
            TV_TEXT(p->r->a, "phases.ask",
                    paddle ? N_("is paddle.jit.to_static or TensorRT planned? Exporting and "
                                "building need memory of their own: a TensorRT build {build} on "
                                "the card and {host} of main memory. Say --deploy "
                                "paddle-inference, paddle-tensorrt, onnx or none")
                           : N_("is an export or an engine planned? Exporting and building need "
                                "memory of their own: a TensorRT build {build} on the card and "
                                "{host} of main memory. Say --deploy tensorrt, onnx, torch-export, "
                                "compile or none"),
                    tv_arg_num("build", TV_ARG_MEMORY, n->device_bytes.v),
                    tv_arg_num("host", TV_ARG_MEMORY, n->host_bytes.v));
    }
}

/* What the number formats would do on the card that does not hold the job, else on the best. */
static void number_formats(plan_run *p, const tv_plan *plan)
{
    const tv_choice *best = plan->n_choices && !plan->remedies_for ? &plan->choices[0] : NULL;
    if (resolved_trains(p, plan))
        return;
    const tv_device *d = best ? best->machine.device : plan->remedies_for;
    const uint32_t gpus = best ? best->machine.gpus : 1;
    tv_machine *machine = tv_new(p->r->a, tv_machine, 1);
    tv_case *c = tv_new(p->r->a, tv_case, 1);
    const tv_job *job = best ? &best->job : &p->o->job;
    if (!d || tv_market_machine(&p->market, p->r->a, d, gpus, p->o->machine.nodes, machine) ||
        tv_predict_case(p->r->a, p->model, job, machine, p->dataset, c))
        return;
    tv_format_effect *rows = tv_new(p->r->a, tv_format_effect, TV_LIFE_FORMATS);
    p->formats = (tv_formats_view){.device = d, .v = rows, .per_token = c->decode != NULL};
    p->formats.n = tv_life_formats(p->r->a, p->scratch, c, rows);
}

/* ---- extras ---- */

/* The guides' rules beside the best choice, or beside the need when nothing holds the job. */
static const tv_err *thumbs(plan_run *p, const tv_plan *plan)
{
    if (!p->o->any.rule_of_thumb)
        return NULL;
    tv_machine machine = {.gpus = 1, .nodes = 1};
    if (plan->n_choices)
        machine = plan->choices[0].machine;
    tv_case c;
    const tv_job *job = plan->n_choices ? &plan->choices[0].job : &p->o->job;
    TV_TRY(tv_predict_case(p->r->a, p->model, job, &machine, p->dataset, &c));
    tv_estimate e = {0};
    tv_predict_estimate(p->r->a, p->scratch, &c, &e);
    tv_size_thumbs(p->r->a, &c, &e, &p->extras);
    return NULL;
}

static void show(const plan_run *p, const tv_plan *plan)
{
    const tv_plan_view view = {
        .model = p->model,
        .plan = plan,
        .dataset = p->dataset,
        .stages = p->stages,
        .n_stages = p->n_stages,
        .thumbs = p->extras.thumbs.v,
        .n_thumbs = p->extras.thumbs.n,
        .remarks = p->extras.remarks.v,
        .n_remarks = p->extras.remarks.n,
        .explain = p->o->any.explain,
        .phases = p->phases,
        .formats = p->formats,
    };
    if (p->r->json)
        tv_plan_json(p->r, p->r->out, &view);
    else
        tv_plan_text(p->r, p->r->out, &view);
}

/* A card without a model: what it can do. */
static const tv_err *reach(plan_run *p)
{
    const tv_machine_options *o = &p->o->machine;
    TV_TRY(tv_market_open(p->r, o, &p->o->money, &p->market));
    tv_reach what = {
        .req = p->r,
        .scratch = p->scratch,
        .market = &p->market,
        .gpus = o->gpus ? o->gpus : 1,
        .job = &p->o->job,
    };
    TV_TRY(tv_catalog_device(p->market.catalog, o->gpu, 0, &what.device));
    return tv_reach_show(&what);
}

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    plan_run p = {.r = r, .o = options};
    p.scratch = tv_arena_child(r->a, TV_LIMIT_ARENA_BYTES);
    if (args->n == 0 && !(p.o->model.params > 0) && p.o->machine.gpu.n)
        return reach(&p);
    TV_TRY(tv_model_argument(r, args, &p.o->model, &p.model));
    TV_TRY(tv_market_open(r, &p.o->machine, &p.o->money, &p.market));
    TV_TRY(tv_market_cards(&p.market, &p.cards));
    TV_TRY(tv_size_dataset(r, &p.o->job, &p.dataset));
    tv_plan *plan = tv_new(r->a, tv_plan, 1);
    const tv_search search = search_of(&p, &p.o->job);
    TV_TRY(tv_search_plan(r->a, p.scratch, &search, plan));
    later_stages(&p, plan);
    warn_overspend(&p);
    TV_TRY(later_phases(&p, plan));
    ask_for_target(&p, plan);
    number_formats(&p, plan);
    TV_TRY(thumbs(&p, plan));
    show(&p, plan);
    if (plan->n_choices)
        return NULL;
    return TV_FAIL0(r->a, TV_INFEASIBLE, "plan.none", N_("no card holds the job as asked"));
}

extern const tv_command tv_command_plan;
const tv_command tv_command_plan = {
    .name = "plan",
    .summary = N_("which GPUs a job needs, how many, set how, at what cost"),
    .usage = "MODEL [JOB] [MACHINE] [MONEY]",
    .details = N_("Every card of the catalogue that can hold the job is weighed with one to eight "
                  "cards of one server and ranked for --aim. Cards that lose are listed with the "
                  "reason; when none fits, the changes that would make it fit come in order of "
                  "cost. With --gpu and without MODEL: what that card can do."),
    .groups = groups,
    .n_groups = sizeof groups / sizeof *groups,
    .options_size = sizeof(plan_options),
    .defaults = defaults,
    .max_args = 1,
    .run = run,
};
