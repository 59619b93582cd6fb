/* `phases` of `plan --json` and `size --json`, and the stages export, build and serve. Unknown is
 * null, never 0. */
#include "report.h"

static void put_if(tv_json_out *w, const char *key, bool known, double v)
{
    tv_json_key(w, key);
    if (known)
        tv_json_put_num(w, v);
    else
        tv_json_put_null(w);
}

static void put_word(tv_json_out *w, const char *key, const char *word)
{
    tv_json_key(w, key);
    if (word)
        tv_json_put_str(w, tv_str_of(word));
    else
        tv_json_put_null(w);
}

static void put_card(tv_json_out *w, const char *key, const tv_device *d)
{
    tv_json_key(w, key);
    if (d)
        tv_json_put_str(w, d->slug);
    else
        tv_json_put_null(w);
}

static const char *verdict_word(tv_verdict v)
{
    static const char *const words[] = {NULL, "fits", "tight", "no"};
    return words[v];
}

static void put_lines(tv_json_out *w, tv_lang lang, const tv_life_need *n)
{
    tv_json_key(w, "parts");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < n->n_lines; i++) {
        const tv_need_line *l = &n->lines[i];
        tv_json_begin(w, '{');
        tv_json_key(w, "what");
        tv_json_put_text(w, lang, (tv_text){.id = l->name, .msgid = l->name});
        put_word(w, "where", l->host ? "host" : "card");
        put_if(w, "bytes", true, l->bytes.v);
        put_if(w, "low_bytes", true, l->bytes.lo);
        put_if(w, "high_bytes", true, l->bytes.hi);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

static void put_amount(tv_json_out *w, const char *key, const char *low, const char *high,
                       tv_fact f)
{
    const bool known = tv_known(f);
    put_if(w, key, known, f.v);
    put_if(w, low, known, f.lo);
    put_if(w, high, known, f.hi);
}

static void put_need(tv_json_out *w, const tv_life_need *n)
{
    put_amount(w, "total_bytes", "low_bytes", "high_bytes", n->device_bytes);
    put_if(w, "ceiling_bytes", n->ceiling_bytes > 0, n->ceiling_bytes);
    put_amount(w, "host_bytes", "host_low_bytes", "host_high_bytes", n->host_bytes);
    put_if(w, "disk_bytes", tv_known(n->disk_bytes), n->disk_bytes.v);
}

static void put_stage(tv_json_out *w, tv_lang lang, const tv_life_stage *s)
{
    tv_json_begin(w, '{');
    put_word(w, "phase", tv_life_name(s->need.phase));
    put_need(w, &s->need);
    put_word(w, "origin", s->stated ? "stated" : "computed");
    put_card(w, "on", s->card);
    put_word(w, "verdict", tv_known(s->need.device_bytes) ? verdict_word(s->verdict) : NULL);
    put_card(w, "gpu", s->chosen);
    put_if(w, "gpus", s->chosen != NULL, s->chosen_gpus);
    put_lines(w, lang, &s->need);
    tv_json_end(w, '}');
}

void tv_json_phases(tv_json_out *w, tv_lang lang, const tv_life_plan *p)
{
    tv_json_key(w, "phases");
    if (!p || p->n_stages == 0) {
        tv_json_put_null(w);
        return;
    }
    tv_json_begin(w, '{');
    put_word(w, "deploy", tv_target_name(p->target));
    put_if(w, "requirement_bytes", tv_known(p->requirement_bytes), p->requirement_bytes.v);
    put_word(w, "worst", tv_life_name(p->stages[p->worst].need.phase));
    put_card(w, "one_card", p->one);
    put_if(w, "one_card_gpus", p->one != NULL, p->one_gpus);
    tv_json_key(w, "each");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < p->n_stages; i++)
        put_stage(w, lang, &p->stages[i]);
    tv_json_end(w, ']');
    tv_json_key(w, "notes");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < p->n_notes; i++)
        tv_json_put_text(w, lang, p->notes[i]);
    tv_json_end(w, ']');
    tv_json_end(w, '}');
}

void tv_json_life_stage(tv_json_out *w, const tv_life_plan *p, tv_life phase)
{
    tv_json_key(w, tv_life_name(phase));
    for (size_t i = 0; p && i < p->n_stages; i++) {
        const tv_life_stage *s = &p->stages[i];
        if (s->need.phase != phase)
            continue;
        tv_json_begin(w, '{');
        put_card(w, "gpu", s->chosen);
        put_if(w, "gpus", s->chosen != NULL, s->chosen_gpus);
        put_need(w, &s->need);
        tv_json_end(w, '}');
        return;
    }
    tv_json_put_null(w);
}

void tv_json_formats(tv_json_out *w, tv_lang lang, const tv_formats_view *v)
{
    tv_json_key(w, "formats");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < v->n; i++) {
        const tv_format_effect *e = &v->v[i];
        tv_json_begin(w, '{');
        put_word(w, "precision", tv_precision_name(e->precision));
        put_card(w, "gpu", v->device);
        tv_json_key(w, "runs");
        tv_json_put_bool(w, e->runs);
        tv_json_key(w, "reason");
        if (e->why.msgid)
            tv_json_put_text(w, lang, e->why);
        else
            tv_json_put_null(w);
        put_if(w, "weights_bytes", e->runs, e->weights_bytes);
        put_if(w, "total_bytes", e->runs, e->total_bytes);
        put_if(w, "bound_s", e->bound_s > 0, e->bound_s);
        put_if(w, "step_s", tv_known(e->step_s), e->step_s.v);
        tv_json_key(w, "fits");
        if (e->runs)
            tv_json_put_bool(w, e->holds);
        else
            tv_json_put_null(w);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}
