/* `trivet gpus compare --json`. */
#include "gpus_compare.h"

static void put_fact(tv_json_out *w, const char *key, tv_fact f)
{
    tv_json_key(w, key);
    if (tv_known(f))
        tv_json_put_num(w, f.v);
    else
        tv_json_put_null(w);
}

static void put_ratio(tv_json_out *w, const tv_card_ratio *r, tv_str against)
{
    static const char *const states[] = {"unknown", "same-mode", "refused: modes differ"};
    tv_json_begin(w, '{');
    tv_json_key(w, "card");
    tv_json_put_str(w, r->card->slug);
    tv_json_key(w, "against");
    tv_json_put_str(w, against);
    tv_json_key(w, "mode");
    if (r->compute.state == TV_RATIO_OK)
        tv_json_put_str(w, tv_str_of(tv_rate_key(r->mode)));
    else
        tv_json_put_null(w);
    tv_json_key(w, "state");
    tv_json_put_str(w, tv_str_of(states[r->compute.state]));
    put_fact(w, "compute",
             r->compute.state == TV_RATIO_OK ? tv_fact_of(r->compute.v, TV_COMPUTED, (tv_str){0})
                                             : (tv_fact){0});
    put_fact(w, "bandwidth", r->bandwidth);
    put_fact(w, "memory", r->memory);
    tv_json_end(w, '}');
}

static void put_parameters(const tv_gpus_run *g, tv_json_out *w, const tv_comparison *c)
{
    tv_json_key(w, "parameters");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < TV_PARAMETERS; i++) {
        const tv_parameter *p = &c->parameters[i];
        tv_json_begin(w, '{');
        tv_json_key(w, "id");
        tv_json_put_str(w, tv_str_of(p->id));
        tv_json_key(w, "decides");
        tv_json_put_text(w, g->r->lang, p->decides);
        tv_json_key(w, "binds");
        if (p->binds < 0)
            tv_json_put_null(w);
        else
            tv_json_put_bool(w, p->binds != 0);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

static void put_job(const tv_gpus_run *g, tv_json_out *w, const tv_device *d,
                    const tv_card_job *job)
{
    static const char *const verdicts[] = {"unknown", "fits", "tight", "no"};
    const tv_estimate *e = job->estimate;
    tv_json_begin(w, '{');
    tv_json_key(w, "card");
    tv_json_put_str(w, d->slug);
    tv_json_key(w, "verdict");
    tv_json_put_str(w, tv_str_of(e ? verdicts[e->memory.verdict] : "no"));
    put_fact(w, "need_bytes",
             e ? tv_fact_of(e->memory.total_bytes, TV_COMPUTED, (tv_str){0}) : (tv_fact){0});
    put_fact(w, "step_s", e ? e->time.step_s : (tv_fact){0});
    put_fact(w, "samples_per_s", e ? e->time.samples_per_s : (tv_fact){0});
    put_fact(w, "decode_tokens_per_s", e ? e->time.decode_tokens_per_s : (tv_fact){0});
    tv_json_key(w, "bottleneck");
    if (e)
        tv_json_put_str(w, tv_str_of(tv_bound_name(e->balance.bottleneck)));
    else
        tv_json_put_null(w);
    tv_json_key(w, "reason");
    if (e)
        tv_json_put_null(w);
    else
        tv_json_put_text(w, g->r->lang, job->blocked->what);
    tv_json_end(w, '}');
}

static void put_jobs(const tv_gpus_run *g, tv_json_out *w, const tv_comparison *c)
{
    tv_json_key(w, "job");
    if (!c->jobs) {
        tv_json_put_null(w);
        return;
    }
    tv_json_begin(w, '{');
    tv_json_key(w, "model");
    tv_json_put_str(w, c->model->name);
    tv_json_key(w, "cards");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < c->n; i++)
        put_job(g, w, c->cards[i], &c->jobs[i]);
    tv_json_end(w, ']');
    tv_json_end(w, '}');
}

/* R115: what consumer and professional cards differ in, apart from speed. */
static void put_classes(tv_json_out *w, const tv_comparison *c)
{
    static const char *const only[] = {"memory", "ecc", "cooling", "licence", "nvlink"};
    tv_json_key(w, "differ_only_in");
    if (!c->consumer_and_professional) {
        tv_json_put_null(w);
        return;
    }
    tv_json_begin(w, '[');
    for (size_t i = 0; i < sizeof only / sizeof *only; i++)
        tv_json_put_str(w, tv_str_of(only[i]));
    tv_json_end(w, ']');
}

void tv_compare_json(const tv_gpus_run *g, const tv_comparison *c)
{
    tv_json_out w = tv_json_write(g->r->out);
    tv_json_begin(&w, '{');
    tv_json_key(&w, "cards");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < c->n; i++)
        tv_json_card(g, &w, c->cards[i], NULL, 0);
    tv_json_end(&w, ']');
    tv_json_key(&w, "ratios");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i + 1 < c->n; i++)
        put_ratio(&w, &c->ratios[i], c->cards[0]->slug);
    tv_json_end(&w, ']');
    put_parameters(g, &w, c);
    put_classes(&w, c);
    put_jobs(g, &w, c);
    tv_json_key(&w, "remarks");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < c->n_remarks; i++)
        tv_json_put_text(&w, g->r->lang, c->remarks[i]);
    tv_json_end(&w, ']');
    tv_json_end(&w, '}');
}
