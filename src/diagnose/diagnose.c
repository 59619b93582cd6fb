/* Every rule looks at the scene; then what follows from something else is put below it, and the
 * rest is ordered by severity, certainty and weight. */
#include "diagnose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const tv_rule *tv_rule_named(tv_str id)
{
    for (size_t g = 0; tv_rule_groups[g]; g++)
        for (size_t i = 0; i < tv_rule_groups[g]->n; i++)
            if (tv_str_eq_nocase(id, tv_str_of(tv_rule_groups[g]->rules[i].id)))
                return &tv_rule_groups[g]->rules[i];
    return NULL;
}

/* ---- for judges ---- */

static tv_evidence evidence_of(const tv_sighting *s, const tv_note *at)
{
    if (at && at->line)
        return (tv_evidence){s->file, at->line, at->text};
    return (tv_evidence){s->file, s->line, s->text};
}

tv_finding *tv_found(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s, const tv_note *at)
{
    tv_finding *f = tv_new(q->a, tv_finding, 1);
    f->rule = rule;
    f->severity = rule->severity;
    f->sure = rule->sure;
    f->cause = rule->cause;
    size_t same = 0;
    for (size_t i = 0; i < q->out->findings.n; i++)
        same += q->out->findings.v[i]->rule == rule;
    if (same < TV_LIMIT_FINDINGS_OF_RULE)
        *tv_push(q->a, &q->out->findings) = f;
    if (s)
        tv_found_also(q, f, s, at);
    return f;
}

static bool same_place(const tv_evidence *x, const tv_evidence *y)
{
    return x->line == y->line && tv_str_eq(x->file, y->file) && tv_str_eq(x->text, y->text);
}

void tv_found_also(tv_inquiry *q, tv_finding *f, const tv_sighting *s, const tv_note *at)
{
    const tv_evidence e = evidence_of(s, at);
    for (size_t i = 0; i < f->evidence.n; i++)
        if (same_place(&f->evidence.v[i], &e))
            return;
    if (f->evidence.n < TV_LIMIT_EVIDENCE_OF_FINDING)
        *tv_push(q->a, &f->evidence) = e;
}

void tv_found_text(tv_inquiry *q, tv_finding *f, tv_str file, tv_str text)
{
    if (f->evidence.n < TV_LIMIT_EVIDENCE_OF_FINDING)
        *tv_push(q->a, &f->evidence) = (tv_evidence){.file = file, .text = text};
}

static void put_value(tv_inquiry *q, tv_finding *f, tv_arg arg)
{
    for (size_t i = 0; i < f->values.n; i++)
        if (strcmp(f->values.v[i].name, arg.name) == 0) {
            f->values.v[i] = arg;
            return;
        }
    *tv_push(q->a, &f->values) = arg;
}

void tv_found_num(tv_inquiry *q, tv_finding *f, const char *name, tv_arg_kind kind, double v)
{
    if (!isnan(v))
        put_value(q, f, tv_arg_num(name, kind, v));
}

void tv_found_str(tv_inquiry *q, tv_finding *f, const char *name, tv_str s)
{
    if (s.n)
        put_value(q, f, tv_arg_str(name, s));
}

void tv_found_word(tv_inquiry *q, tv_finding *f, const char *name, const char *msgid)
{
    put_value(q, f, tv_arg_word(name, msgid));
}

bool tv_has_found(const tv_inquiry *q, const char *id)
{
    for (size_t i = 0; i < q->out->findings.n; i++)
        if (strcmp(q->out->findings.v[i]->rule->id, id) == 0)
            return true;
    return false;
}

void tv_ask(tv_inquiry *q, const char *command, const char *why)
{
    for (size_t i = 0; i < q->out->asks.n; i++)
        if (strcmp(q->out->asks.v[i].command, command) == 0)
            return;
    *tv_push(q->a, &q->out->asks) = (tv_asked){command, why};
}

/* ---- ranking ---- */

static bool outranks(const tv_rule *x, const tv_rule *y)
{
    if (!x->outranks || x == y)
        return false;
    const char *hit = x->outranks;
    const size_t n = strlen(y->id);
    while ((hit = strstr(hit, y->id))) {
        const bool begins = hit == x->outranks || hit[-1] == ' ';
        if (begins && (hit[n] == ' ' || !hit[n]))
            return true;
        hit += n;
    }
    return false;
}

/* A finding that is told for completeness explains nothing. */
static void name_causes(tv_findings *all)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->n; k++)
            if (!all->v[i]->because && all->v[k]->severity > TV_INFO &&
                outranks(all->v[k]->rule, all->v[i]->rule))
                all->v[i]->because = all->v[k]->rule;
}

static double score(const tv_finding *f)
{
    return (f->because ? 0 : 100) + 10.0 * (int)f->severity + 2.0 * (int)f->sure + f->weight;
}

static int by_rank(const void *x, const void *y)
{
    const tv_finding *f = *(tv_finding *const *)x;
    const tv_finding *g = *(tv_finding *const *)y;
    /* What is only told stays behind whatever needs action, consequence or not. */
    if ((f->severity == TV_INFO) != (g->severity == TV_INFO))
        return f->severity == TV_INFO ? 1 : -1;
    const double a = score(f), b = score(g);
    if (a > b || b > a)
        return a > b ? -1 : 1;
    return strcmp(f->rule->id, g->rule->id);
}

void tv_diagnose(tv_arena *a, const tv_scene *scene, tv_diagnosis *out)
{
    *out = (tv_diagnosis){.scene = scene};
    tv_inquiry q = {a, scene, out};
    for (size_t g = 0; tv_rule_groups[g]; g++)
        for (size_t i = 0; i < tv_rule_groups[g]->n; i++)
            tv_rule_groups[g]->rules[i].judge(&q, &tv_rule_groups[g]->rules[i]);
    name_causes(&out->findings);
    if (out->findings.n)
        qsort(out->findings.v, out->findings.n, sizeof *out->findings.v, by_rank);
}
