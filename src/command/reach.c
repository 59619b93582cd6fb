/* The other way round: a card is named and no model. Reference jobs of growing need, each weighed
 * on that card. They are a ladder to read a card's class from, not a limit. */
#include "reach.h"

#include "family/family.h"
#include "read/builtin.h"
#include "report/report.h"
#include "search/search.h"

const tv_rung tv_reach_ladder[] = {
    {"resnet-50", TV_TASK_TRAIN, TV_PRECISION_DEFAULT, 64, 0},
    {"yolov8m", TV_TASK_TRAIN, TV_PRECISION_DEFAULT, 16, 0},
    {"bert-base", TV_TASK_FINETUNE, TV_PRECISION_DEFAULT, 16, 512},
    {"bert-large", TV_TASK_FINETUNE, TV_PRECISION_DEFAULT, 16, 512},
    {"vit-large-16", TV_TASK_TRAIN, TV_PRECISION_DEFAULT, 32, 0},
    {"llama-3.2-1b", TV_TASK_FINETUNE, TV_PRECISION_DEFAULT, 1, 2048},
    {"qwen3-4b", TV_TASK_LORA, TV_PRECISION_DEFAULT, 1, 2048},
    {"llama-3.1-8b", TV_TASK_INFER, TV_PRECISION_INT4, 1, 4096},
    {"llama-3.1-8b", TV_TASK_QLORA, TV_PRECISION_DEFAULT, 1, 2048},
    {"llama-3.1-8b", TV_TASK_INFER, TV_PRECISION_FP16, 1, 4096},
    {"llama-3.1-8b", TV_TASK_LORA, TV_PRECISION_DEFAULT, 1, 2048},
    {"llama-3.1-8b", TV_TASK_FINETUNE, TV_PRECISION_DEFAULT, 1, 2048},
    {"qwen2.5-14b", TV_TASK_INFER, TV_PRECISION_INT4, 1, 4096},
    {"qwen2.5-32b", TV_TASK_INFER, TV_PRECISION_INT4, 1, 4096},
    {"qwen2.5-72b", TV_TASK_INFER, TV_PRECISION_INT4, 1, 4096},
    {"qwen2.5-72b", TV_TASK_QLORA, TV_PRECISION_DEFAULT, 1, 2048},
    {.model = NULL},
};

/* Weighs one rung; false: the card cannot run it at all. */
static bool weigh(const tv_reach *r, const tv_rung *step, tv_choice *out)
{
    tv_arena *a = r->req->a;
    const tv_source *source = NULL;
    const tv_model *model = NULL;
    if (tv_builtin_find(a, tv_str_of(step->model), &source) || !source ||
        tv_family_model(a, source, &model))
        return false;
    tv_job *job = tv_new(a, tv_job, 1);
    *job = *r->job;
    job->task = step->task;
    job->precision = step->precision;
    job->batch = step->batch;
    job->seq = step->seq;
    const tv_search search = {
        .model = model,
        .job = job,
        .nodes = 1,
        .machine = tv_market_machine,
        .price = tv_market_price,
        .ctx = r->market,
    };
    if (tv_search_one(a, r->scratch, &search, r->device, r->gpus, out) || !out->estimate.model)
        return false;
    tv_case c;
    tv_machine machine = out->machine;
    if (!tv_predict_case(a, model, &out->job, &machine, NULL, &c))
        out->estimate.memory.max_batch = tv_search_max_batch(r->scratch, &c);
    return true;
}

const tv_err *tv_reach_show(const tv_reach *r)
{
    enum { n_rungs = sizeof tv_reach_ladder / sizeof *tv_reach_ladder - 1 };
    tv_choice *choices = tv_new(r->req->a, tv_choice, n_rungs);
    size_t n = 0;
    for (size_t i = 0; i < n_rungs; i++)
        n += weigh(r, &tv_reach_ladder[i], &choices[n]);
    const tv_reach_view view = {r->device, r->gpus, choices, n};
    if (r->req->json)
        tv_reach_json(r->req, r->req->out, &view);
    else
        tv_reach_text(r->req, r->req->out, &view);
    return NULL;
}
