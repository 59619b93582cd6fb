/* A diagnosis as JSON. `facts` is what stands in the documents under language-free names: of
 * several sightings the first that knows a name is taken; `sightings` has each of them apart. */
#include "doctor_out.h"

#include <string.h>

#include "base/message.h"

tv_text tv_finding_text(const tv_finding *f, const char *msgid)
{
    return (tv_text){f->rule->id, msgid, f->values.v, f->values.n};
}

bool tv_step_fits(const tv_step *step, const tv_finding *f)
{
    if (step->command)
        return tv_step_holds(step->command, f) && (!step->why || tv_step_holds(step->why, f));
    return step->why && tv_step_holds(step->why, f);
}

static void put_message(tv_json_out *w, tv_lang lang, const char *key, const char *msgid)
{
    tv_json_key(w, key);
    tv_json_put_str(w, tv_str_of(tv_message(lang, msgid)));
}

static void put_str(tv_json_out *w, const char *key, tv_str s)
{
    tv_json_key(w, key);
    tv_json_put_str(w, s);
}

static void put_line(tv_json_out *w, uint64_t line)
{
    tv_json_key(w, "line");
    if (line)
        tv_json_put_num(w, (double)line);
    else
        tv_json_put_null(w);
}

static void put_evidence(tv_json_out *w, const tv_evidences *all)
{
    tv_json_key(w, "evidence");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < all->n; i++) {
        tv_json_begin(w, '{');
        put_str(w, "file", all->v[i].file);
        put_line(w, all->v[i].line);
        put_str(w, "text", all->v[i].text);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

static void put_values(tv_json_out *w, tv_lang lang, const tv_values *all)
{
    tv_json_key(w, "values");
    tv_json_begin(w, '{');
    for (size_t i = 0; i < all->n; i++) {
        const tv_arg *arg = &all->v[i];
        tv_json_key(w, arg->name);
        if (arg->kind == TV_ARG_STR)
            tv_json_put_str(w, arg->s);
        else if (arg->kind == TV_ARG_WORD)
            tv_json_put_str(w, tv_str_of(tv_message(lang, tv_cstr(w->b->a, arg->s))));
        else
            tv_json_put_num(w, arg->v);
    }
    tv_json_end(w, '}');
}

/* Commands as they are typed; a step without one is its sentence. */
static void put_fix(tv_json_out *w, tv_lang lang, const tv_finding *f)
{
    tv_arena *a = w->b->a;
    tv_json_key(w, "fix");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < TV_MOST_STEPS; i++) {
        const tv_step *step = &f->rule->steps[i];
        if (!tv_step_fits(step, f))
            continue;
        tv_json_put_str(w, step->command ? tv_step_command(a, step->command, f)
                                         : tv_text_in(a, lang, tv_finding_text(f, step->why)));
    }
    if (f->remedy.msgid)
        tv_json_put_str(w, tv_text_in(a, lang, f->remedy));
    tv_json_end(w, ']');
    tv_json_key(w, "undo");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < TV_MOST_STEPS; i++) {
        const tv_step *step = &f->rule->steps[i];
        if (tv_step_fits(step, f) && step->undo && tv_step_holds(step->undo, f))
            tv_json_put_str(w, tv_step_command(a, step->undo, f));
    }
    tv_json_end(w, ']');
}

static void put_finding(tv_json_out *w, tv_lang lang, const tv_finding *f)
{
    tv_json_begin(w, '{');
    put_str(w, "id", tv_str_of(f->rule->id));
    put_str(w, "severity", tv_str_of(tv_severity_name(f->severity)));
    put_str(w, "confidence", tv_str_of(tv_confidence_name(f->sure)));
    put_message(w, lang, "title", f->rule->title);
    put_str(w, "cause", tv_text_in(w->b->a, lang, tv_finding_text(f, f->cause)));
    tv_json_key(w, "because");
    if (f->because)
        tv_json_put_str(w, tv_str_of(f->because->id));
    else
        tv_json_put_null(w);
    put_evidence(w, &f->evidence);
    put_values(w, lang, &f->values);
    put_fix(w, lang, f);
    put_str(w, "source", tv_str_of(f->rule->source));
    tv_json_end(w, '}');
}

/* ---- facts ---- */

static void put_facts(tv_json_out *w, const tv_scene *scene)
{
    tv_note seen = {.type = TV_NOTE_MAP}; /* the names that are written already */
    tv_json_key(w, "facts");
    tv_json_begin(w, '{');
    for (const tv_sighting *s = scene->first; s; s = s->next) {
        if (!s->line && strcmp(s->kind, "device-record") == 0)
            continue; /* the catalogue's, not the document's */
        for (const tv_note *note = s->facts.first; note; note = note->next) {
            if (tv_noted_bool(&seen, note->key, false))
                continue;
            (void)tv_note_bool(w->b->a, &seen, note->key, true);
            tv_json_key(w, note->key);
            tv_json_note(w, note);
        }
    }
    tv_json_end(w, '}');
}

static void put_sightings(tv_json_out *w, const tv_scene *scene)
{
    tv_json_key(w, "sightings");
    tv_json_begin(w, '[');
    for (const tv_sighting *s = scene->first; s; s = s->next) {
        tv_json_begin(w, '{');
        put_str(w, "kind", tv_str_of(s->kind));
        put_str(w, "file", s->file);
        put_line(w, s->line);
        tv_json_key(w, "facts");
        tv_json_note(w, &s->facts);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

void tv_doctor_json(const tv_request *req, tv_buf *b, const tv_diagnosis *d)
{
    tv_json_out w = tv_json_write(b);
    tv_json_begin(&w, '{');
    tv_json_key(&w, "findings");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < d->findings.n; i++)
        put_finding(&w, req->lang, d->findings.v[i]);
    tv_json_end(&w, ']');
    tv_json_key(&w, "asks");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < d->asks.n; i++) {
        tv_json_begin(&w, '{');
        put_str(&w, "command", tv_str_of(d->asks.v[i].command));
        put_message(&w, req->lang, "why", d->asks.v[i].why);
        tv_json_end(&w, '}');
    }
    tv_json_end(&w, ']');
    put_facts(&w, d->scene);
    put_sightings(&w, d->scene);
    tv_json_key(&w, "files");
    tv_json_note(&w, &d->scene->files);
    tv_json_end(&w, '}');
    tv_putc(b, '\n');
}
