/* `plan --json`: {question, need, choices, rejected, stages, report}. Each choice has the members
 * of `size --json`. Unknown is null, never 0. */
#include "report.h"

static void put_known(tv_json_out *w, const char *key, double v)
{
    tv_json_key(w, key);
    if (v > 0)
        tv_json_put_num(w, v);
    else
        tv_json_put_null(w);
}

static void put_text(tv_json_out *w, tv_lang lang, const char *key, tv_text t)
{
    tv_json_key(w, key);
    if (t.msgid)
        tv_json_put_text(w, lang, t);
    else
        tv_json_put_null(w);
}

static void put_texts(tv_json_out *w, tv_lang lang, const char *key, const tv_text *v, size_t n)
{
    tv_json_key(w, key);
    tv_json_begin(w, '[');
    for (size_t i = 0; i < n; i++)
        tv_json_put_text(w, lang, v[i]);
    tv_json_end(w, ']');
}

static void put_bool(tv_json_out *w, const char *key, bool v)
{
    tv_json_key(w, key);
    tv_json_put_bool(w, v);
}

/* Capacity, speed, acceleration: suitability apart from price. */
static void put_axes(tv_json_out *w, const tv_choice *c)
{
    const tv_memory *m = &c->estimate.memory;
    tv_json_key(w, "axes");
    tv_json_begin(w, '{');
    put_bool(w, "capacity", m->verdict == TV_FITS);
    put_known(w, "capacity_share", m->capacity_bytes > 0 ? m->total_bytes / m->capacity_bytes : 0);
    put_known(w, "speed", c->speed);
    put_bool(w, "acceleration", c->accelerated);
    tv_json_end(w, '}');
    put_bool(w, "pareto", c->pareto);
}

static void put_counts(tv_json_out *w, const tv_choice *c)
{
    tv_json_key(w, "counts");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < c->n_counts; i++) {
        const tv_alternative *k = &c->counts[i];
        tv_json_begin(w, '{');
        put_known(w, "gpus", k->gpus);
        put_known(w, "total_bytes", k->total_bytes);
        put_known(w, "step_s", tv_known(k->step_s) ? k->step_s.v : 0);
        put_known(w, "run_s", k->run_s);
        put_known(w, "per_hour", tv_known(k->per_hour) ? k->per_hour.v : 0);
        put_known(w, "per_run", tv_known(k->per_run) ? k->per_run.v : 0);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

static void put_choice(tv_json_out *w, tv_lang lang, const tv_choice *c, const tv_dataset *dataset)
{
    tv_json_begin(w, '{');
    tv_json_key(w, "score");
    tv_json_put_num(w, c->score);
    put_text(w, lang, "headroom", c->headroom);
    put_texts(w, lang, "notes", c->notes, c->n_notes);
    put_axes(w, c);
    put_counts(w, c);
    tv_json_estimate(w, lang, &c->estimate, dataset);
    tv_json_end(w, '}');
}

static void put_rejected(tv_json_out *w, tv_lang lang, const tv_plan *plan)
{
    tv_json_key(w, "rejected");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < plan->n_rejected; i++) {
        const tv_rejection *r = &plan->rejected[i];
        tv_json_begin(w, '{');
        tv_json_key(w, "gpu");
        tv_json_put_str(w, r->device->slug);
        put_known(w, "gpus", r->gpus);
        put_text(w, lang, "reason", r->reason);
        put_known(w, "by_bytes", r->by_bytes);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

static void put_need(tv_json_out *w, const tv_plan *plan)
{
    tv_json_key(w, "need");
    tv_json_begin(w, '{');
    put_known(w, "total_bytes", plan->need_bytes);
    put_known(w, "low_bytes", plan->need.low_bytes);
    put_known(w, "high_bytes", plan->need.high_bytes);
    put_known(w, "weights_bytes", plan->need.term_bytes[TV_TERM_WEIGHTS]);
    put_known(w, "gradients_bytes", plan->need.term_bytes[TV_TERM_GRADIENTS]);
    put_known(w, "optimizer_bytes", plan->need.term_bytes[TV_TERM_OPTIMIZER]);
    put_known(w, "states_bytes", plan->states_bytes);
    put_known(w, "sharding", plan->sharding);
    tv_json_end(w, '}');
}

static const tv_choice *pick_of(const tv_plan_view *view, const char *stage)
{
    for (size_t i = 0; i < view->n_stages; i++)
        if (tv_str_is(tv_str_of(view->stages[i].stage), stage))
            return view->stages[i].choice;
    return NULL;
}

static void put_pick(tv_json_out *w, const tv_choice *c)
{
    tv_json_begin(w, '{');
    tv_json_key(w, "gpu");
    tv_json_put_str(w, c->machine.device->slug);
    put_known(w, "gpus", c->machine.gpus);
    put_known(w, "total_bytes", c->estimate.memory.total_bytes);
    put_known(w, "step_s", c->estimate.time.step_s.v);
    put_known(w, "per_hour", c->estimate.cost.per_hour.v);
    tv_json_key(w, "currency");
    tv_json_put_str(w, c->estimate.cost.currency);
    tv_json_end(w, '}');
}

/* Every stage has its key; null where it was not asked or nothing holds it. */
static void put_stages(tv_json_out *w, const tv_plan_view *view)
{
    static const char *const stages[] = {"train", "validate", "infer"};
    tv_json_key(w, "stages");
    tv_json_begin(w, '{');
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        const tv_choice *c = pick_of(view, stages[i]);
        tv_json_key(w, stages[i]);
        if (c)
            put_pick(w, c);
        else
            tv_json_put_null(w);
    }
    tv_json_life_stage(w, view->phases, TV_LIFE_EXPORT);
    tv_json_life_stage(w, view->phases, TV_LIFE_BUILD);
    tv_json_life_stage(w, view->phases, TV_LIFE_SERVE);
    tv_json_end(w, '}');
}

void tv_json_cards(tv_json_out *w, tv_lang lang, const tv_plan *plan)
{
    tv_json_key(w, "cards");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < plan->n_choices; i++) {
        const tv_choice *c = &plan->choices[i];
        tv_json_begin(w, '{');
        tv_json_key(w, "gpu");
        tv_json_put_str(w, c->machine.device->slug);
        put_known(w, "gpus", c->machine.gpus);
        put_text(w, lang, "headroom", c->headroom);
        put_known(w, "total_bytes", c->estimate.memory.total_bytes);
        put_known(w, "capacity_bytes", c->estimate.memory.capacity_bytes);
        put_known(w, "step_s", c->estimate.time.step_s.v);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
    put_rejected(w, lang, plan);
}

void tv_plan_json(const tv_request *req, tv_buf *b, const tv_plan_view *view)
{
    const tv_plan *plan = view->plan;
    tv_json_out w = tv_json_write(b);
    tv_json_begin(&w, '{');
    put_text(&w, req->lang, "question", plan->question);
    put_need(&w, plan);
    tv_json_key(&w, "choices");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < plan->n_choices; i++)
        put_choice(&w, req->lang, &plan->choices[i], view->dataset);
    tv_json_end(&w, ']');
    put_rejected(&w, req->lang, plan);
    put_stages(&w, view);
    tv_json_phases(&w, req->lang, view->phases);
    if (view->formats.n)
        tv_json_formats(&w, req->lang, &view->formats);
    tv_json_remedies(&w, req->lang, plan->remedies, plan->n_remedies);
    if (view->n_thumbs)
        tv_json_thumbs(&w, req->lang, view->thumbs, view->n_thumbs);
    put_texts(&w, req->lang, "remarks", view->remarks, view->n_remarks);
    /* The page that a person reads, without colour. */
    tv_request plain = *req;
    plain.colour = false;
    tv_buf page = tv_buf_in(b->a);
    tv_plan_text(&plain, &page, view);
    tv_json_key(&w, "report");
    tv_json_put_str(&w, tv_buf_str(&page));
    tv_json_end(&w, '}');
}
