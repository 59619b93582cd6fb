/* Phases and their cards. The first job is weighed by plan.c; here the phases after it are reckoned
 * on the cards that it ranked. */
#include "phases.h"

#include <math.h>

#include "predict/ledger.h"

typedef struct lives {
    tv_arena *a;
    tv_arena *scratch;
    const tv_life_query *q;
    tv_life_plan *out;
    bool trains;
    struct {
        tv_life_stage *v;
        size_t n, cap;
    } stages;
    struct {
        tv_text *v;
        size_t n, cap;
    } notes;
} lives;

static void note(lives *l, tv_text t)
{
    *tv_push(l->a, &l->notes) = t;
}

/* ---- needs on a card ---- */

static bool case_on(lives *l, const tv_search *s, const tv_device *d, uint32_t gpus, tv_case *out)
{
    tv_machine *machine = tv_new(l->a, tv_machine, 1);
    return !s->machine(s->ctx, l->a, d, gpus, s->nodes, machine) &&
           !tv_predict_case(l->a, s->model, s->job, machine, s->dataset, out);
}

static void served_memory(lives *l, const tv_case *c, tv_memory *m)
{
    const tv_walk w = tv_memory_quick_walk(l->scratch, c);
    tv_memory_from_walk(l->a, c, &w, m);
}

static tv_fact stated(double bytes)
{
    return tv_fact_of(bytes, TV_STATED, TV_S("--phase"));
}

/* The need of a phase of the served job; false: the card cannot run the job at all. */
static bool need_on(lives *l, tv_life phase, const tv_device *d, double source_bytes,
                    tv_life_need *out)
{
    tv_case c;
    *out = (tv_life_need){.phase = phase};
    if (!case_on(l, l->q->serve, d, 1, &c))
        return false;
    if (phase == TV_LIFE_SERVE) {
        tv_memory m;
        served_memory(l, &c, &m);
        tv_predict_run(&m, phase, out);
    } else if (phase == TV_LIFE_BUILD) {
        tv_predict_build(l->a, l->scratch, &c, l->q->deploy, source_bytes, out);
    } else {
        tv_predict_export(l->a, l->scratch, &c, l->q->deploy, source_bytes, out);
    }
    if (l->q->stated_bytes[phase] > 0)
        out->device_bytes = stated(l->q->stated_bytes[phase]);
    return true;
}

static bool holds(const tv_life_need *n, const tv_device *d)
{
    return !tv_known(n->device_bytes) || n->device_bytes.v <= tv_device_memory(d);
}

static bool card_holds(lives *l, tv_life phase, const tv_device *d, double source_bytes)
{
    tv_life_need n;
    return need_on(l, phase, d, source_bytes, &n) && holds(&n, d);
}

/* ---- cards ---- */

static bool stated_fits(const lives *l, tv_life phase, const tv_device *d)
{
    return l->q->stated_bytes[phase] <= tv_device_memory(d);
}

/* The best card of the ranking that holds every later phase as well. */
static void one_for_all(lives *l, double source_bytes)
{
    const tv_plan *ranked = l->q->ranked;
    for (size_t i = 0; i < ranked->n_choices; i++) {
        const tv_device *d = ranked->choices[i].machine.device;
        if (!stated_fits(l, l->trains ? TV_LIFE_TRAIN : TV_LIFE_SERVE, d) ||
            !card_holds(l, TV_LIFE_SERVE, d, source_bytes) ||
            !card_holds(l, TV_LIFE_BUILD, d, source_bytes))
            continue;
        l->out->one = d;
        l->out->one_gpus = ranked->choices[i].machine.gpus;
        return;
    }
}

/* Where the serving card cannot build: the smallest card of its capability that can, else any from
 * Ampere on (the builder's compatibility levels). */
static const tv_device *builder_for(lives *l, const tv_device *serve, double source_bytes)
{
    const tv_search *s = l->q->serve;
    const tv_device *best = NULL;
    for (int level = 0; level < 2 && !best; level++)
        for (size_t i = 0; i < s->n_devices; i++) {
            const tv_device *d = s->devices[i];
            const int cc = d->compute_capability;
            const bool same = cc > 0 && cc == serve->compute_capability;
            const bool later = cc >= 80 && serve->compute_capability >= 80;
            if (!(level ? later : same) || tv_device_memory(d) <= tv_device_memory(serve) ||
                (best && tv_device_memory(d) >= tv_device_memory(best)))
                continue;
            best = card_holds(l, TV_LIFE_BUILD, d, source_bytes) ? d : best;
        }
    return best;
}

typedef struct split {
    const tv_choice *train, *serve;
    const tv_device *build;
} split;

static split each_its_own(lives *l, const tv_plan *served, double source_bytes)
{
    const tv_plan *ranked = l->q->ranked;
    split s = {0};
    for (size_t i = 0; i < ranked->n_choices && !s.train; i++)
        if (stated_fits(l, l->trains ? TV_LIFE_TRAIN : TV_LIFE_SERVE,
                        ranked->choices[i].machine.device))
            s.train = &ranked->choices[i];
    const tv_choice *able = NULL; /* serves, and builds for itself */
    for (size_t i = 0; i < served->n_choices && !able; i++) {
        const tv_choice *c = &served->choices[i];
        const tv_device *d = c->machine.device;
        if (!stated_fits(l, TV_LIFE_SERVE, d))
            continue;
        s.serve = s.serve ? s.serve : c;
        able = card_holds(l, TV_LIFE_BUILD, d, source_bytes) ? c : NULL;
    }
    if (s.serve && s.serve != able) /* a build is done once: another card may do it */
        s.build = builder_for(l, s.serve->machine.device, source_bytes);
    if (able && !s.build) {
        s.serve = able;
        s.build = able->machine.device;
    }
    return s;
}

/* ---- the stages ---- */

static void stage(lives *l, const tv_life_need *n, const tv_device *card, uint32_t gpus,
                  const tv_device *chosen, uint32_t chosen_gpus)
{
    *tv_push(l->a, &l->stages) = (tv_life_stage){
        .need = *n,
        .stated = l->q && l->q->stated_bytes[n->phase] > 0,
        .card = card,
        .gpus = gpus,
        .verdict = card ? tv_life_verdict(n, tv_device_memory(card)) : TV_VERDICT_UNKNOWN,
        .chosen = chosen,
        .chosen_gpus = chosen_gpus,
    };
}

static bool exists(const tv_life_need *n)
{
    return tv_known(n->device_bytes) || tv_known(n->host_bytes);
}

static void settle(lives *l)
{
    tv_life_plan *out = l->out;
    out->stages = l->stages.v;
    out->n_stages = l->stages.n;
    for (size_t i = 0; i < l->stages.n; i++) {
        const tv_fact need = l->stages.v[i].need.device_bytes;
        if (!tv_known(need) || need.v <= out->requirement_bytes.v)
            continue;
        out->requirement_bytes = need;
        out->worst = i;
    }
    out->notes = l->notes.v;
    out->n_notes = l->notes.n;
}

static void train_stage(lives *l, const tv_memory *m, const tv_device *card, uint32_t gpus,
                        const split *s)
{
    tv_life_need n;
    tv_predict_run(m, TV_LIFE_TRAIN, &n);
    if (l->q->stated_bytes[TV_LIFE_TRAIN] > 0)
        n.device_bytes = stated(l->q->stated_bytes[TV_LIFE_TRAIN]);
    stage(l, &n, card, gpus, s->train ? s->train->machine.device : NULL,
          s->train ? s->train->machine.gpus : 0);
}

static void later_stages(lives *l, const tv_device *card, double source_bytes, const split *s)
{
    static const tv_life phases[] = {TV_LIFE_EXPORT, TV_LIFE_BUILD, TV_LIFE_SERVE};
    const tv_device *serve = s->serve ? s->serve->machine.device : NULL;
    const tv_device *train = s->train ? s->train->machine.device : NULL;
    const tv_device *const own[] = {l->trains ? train : serve, s->build, serve};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        tv_life_need n;
        if (!need_on(l, phases[i], card, source_bytes, &n) || !exists(&n))
            continue;
        stage(l, &n, card, 1, own[i],
              phases[i] == TV_LIFE_SERVE && s->serve ? s->serve->machine.gpus : 1);
    }
}

/* ---- words ---- */

static void split_notes(lives *l, const split *s, tv_dtype trained_in, const tv_policy *served)
{
    const tv_device *serve = s->serve ? s->serve->machine.device : NULL;
    const tv_device *from = l->trains && s->train ? s->train->machine.device : s->build;
    if (!serve || !from)
        return;
    tv_text notes[TV_LIFE_NOTES];
    const size_t n =
        tv_life_moves(l->a, from, trained_in, serve, served, l->q->deploy->target, notes);
    for (size_t i = 0; i < n; i++)
        note(l, notes[i]);
    if (s->build && s->build != serve)
        note(l, TV_TEXT(l->a, "life.build-elsewhere",
                        s->build->compute_capability == serve->compute_capability
                            ? N_("{serve} holds the engine but not its build: build it once on "
                                 "{build} with hardware compatibility level same compute "
                                 "capability, or lower --max-batch, --max-seq or --workspace")
                            : N_("{serve} holds the engine but not its build: build it once on "
                                 "{build} with hardware compatibility level Ampere+, or lower "
                                 "--max-batch, --max-seq or --workspace"),
                        tv_arg_str("serve", serve->name), tv_arg_str("build", s->build->name)));
}

/* Phases that the card of the ranking does not hold. */
static void warn_phases(lives *l)
{
    for (size_t i = 0; i < l->stages.n; i++) {
        const tv_life_stage *s = &l->stages.v[i];
        if (!s->card || !tv_known(s->need.device_bytes) || s->verdict == TV_FITS)
            continue;
        const double have = tv_device_memory(s->card);
        const tv_arg args[] = {
            tv_arg_word("phase", tv_life_words(s->need.phase)),
            tv_arg_num("need", TV_ARG_MEMORY, s->need.device_bytes.v),
            tv_arg_num("high", TV_ARG_MEMORY, s->need.device_bytes.hi),
            tv_arg_num("have", TV_ARG_MEMORY, have),
            tv_arg_str("gpu", s->card->name),
        };
        note(l, tv_text_make(l->a, "life.short",
                             s->need.device_bytes.v > have
                                 ? N_("{phase} needs {need}, {gpu} has {have}")
                                 : N_("{phase} may need up to {high}, {gpu} has {have}"),
                             args, sizeof args / sizeof *args));
    }
}

static void warn_ceiling(lives *l)
{
    for (size_t i = 0; i < l->stages.n; i++) {
        const tv_life_stage *s = &l->stages.v[i];
        const double ceiling = s->need.ceiling_bytes;
        if (!s->card || s->stated || ceiling <= tv_device_memory(s->card))
            continue;
        note(l, TV_TEXT(l->a, "life.ceiling",
                        N_("with this workspace limit the builder may take {ceiling}, {gpu} has "
                           "{have}: what does not fit is skipped, but other programs on the card "
                           "may be starved; --workspace {left} leaves room"),
                        tv_arg_num("ceiling", TV_ARG_MEMORY, ceiling),
                        tv_arg_str("gpu", s->card->name),
                        tv_arg_num("have", TV_ARG_MEMORY, tv_device_memory(s->card)),
                        tv_arg_num("left", TV_ARG_MEMORY,
                                   fmax(0, l->q->deploy->workspace_bytes -
                                               (ceiling - tv_device_memory(s->card))))));
    }
}

static void need_notes(lives *l)
{
    for (size_t i = 0; i < l->stages.n; i++)
        for (size_t k = 0; k < l->stages.v[i].need.n_notes; k++)
            note(l, l->stages.v[i].need.notes[k]);
}

/* ---- a plan ---- */

static const tv_device *reference_card(const lives *l)
{
    const tv_plan *ranked = l->q->ranked;
    if (ranked->n_choices)
        return ranked->choices[0].machine.device;
    return ranked->remedies_for;
}

void tv_search_life(tv_arena *a, tv_arena *scratch, const tv_life_query *q, tv_life_plan *out)
{
    lives l = {.a = a, .scratch = scratch, .q = q, .out = out};
    *out = (tv_life_plan){.target = q->deploy->target};
    const tv_device *card = reference_card(&l);
    tv_case first = {0}, served = {0};
    if (!card || !case_on(&l, q->first, card, 1, &first) ||
        !case_on(&l, q->serve, card, 1, &served))
        return;
    l.trains = tv_job_trains(&first.job);
    const double source = tv_life_source_bytes(q->first->model, &first);
    tv_plan *ranking = tv_new(a, tv_plan, 1);
    const bool same = !l.trains && q->serve->devices == q->first->devices;
    if (same)
        *ranking = *q->ranked;
    else if (tv_search_plan(a, scratch, q->serve, ranking))
        *ranking = (tv_plan){0};
    one_for_all(&l, source);
    const split s = each_its_own(&l, ranking, source);
    out->serve = s.serve;
    const bool chosen = q->ranked->n_choices > 0;
    const tv_memory *need = chosen ? &q->ranked->choices[0].estimate.memory : &q->ranked->need;
    if (l.trains)
        train_stage(&l, need, card, chosen ? q->ranked->choices[0].machine.gpus : 1, &s);
    later_stages(&l, card, source, &s);
    warn_phases(&l);
    warn_ceiling(&l);
    split_notes(&l, &s, first.policy.compute, &served.policy);
    need_notes(&l);
    settle(&l);
}

void tv_search_life_of(tv_arena *a, tv_arena *scratch, const tv_case *c, const tv_memory *memory,
                       const tv_deploy *d, tv_life_plan *out)
{
    const tv_life_query q = {.deploy = d};
    lives l = {.a = a, .scratch = scratch, .q = &q, .out = out};
    *out = (tv_life_plan){.target = d->target};
    const tv_device *card = c->machine->device;
    tv_case *served = tv_new(a, tv_case, 1);
    const tv_job job = tv_life_serve_job(&c->job, d);
    if (tv_predict_case(a, c->model, &job, c->machine, c->dataset, served))
        return;
    const bool trains = tv_job_trains(&c->job);
    const double source = tv_life_source_bytes(c->model, c);
    tv_life_need n;
    tv_memory m;
    const split none = {0};
    if (trains)
        train_stage(&l, memory, card, c->machine->gpus, &none);
    tv_predict_export(a, scratch, served, d, source, &n);
    if (exists(&n))
        stage(&l, &n, card, 1, NULL, 0);
    tv_predict_build(a, scratch, served, d, source, &n);
    if (exists(&n))
        stage(&l, &n, card, 1, NULL, 0);
    served_memory(&l, served, &m);
    tv_predict_run(trains || d->max_batch || d->max_seq ? &m : memory, TV_LIFE_SERVE, &n);
    stage(&l, &n, card, 1, NULL, 0);
    warn_phases(&l);
    warn_ceiling(&l);
    need_notes(&l);
    settle(&l);
}
