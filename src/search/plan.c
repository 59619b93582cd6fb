/* Every card, one to eight of them: the memory gate first, then time and money, then the ranking.
 * A card stands in the ranking once, with the count that suits the goal best; the other counts
 * stand beside it. A fact that is not known never ranks a card: it is listed apart. */
#include "space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Samples per optimizer step when nobody says: usual for fine-tuning on text, and for training on
 * images the size that the published recipes start from. */
#define EFFECTIVE_SEQUENCES 32u
#define EFFECTIVE_IMAGES 256u

/* Share of the card above which a job that fits leaves no room, and below which there is plenty
 * (the rule "fits with 30 % margin"). */
#define ROOM_WELL 0.90
#define ROOM_SPARE 0.70

/* A card that computes this much faster than its FP32 units has matrix units for the precision
 * (vector units at half width give exactly 2). */
#define MATRIX_UNITS 2.01

/* What more cards must gain before they are preferred to fewer. */
#define MORE_CARDS_GAIN 1.02

typedef struct run {
    tv_space space;
    const tv_search *s;
    bool trains;
    const tv_err *first; /* why the first class could not run the job */
    struct {
        tv_choice *v;
        size_t n, cap;
    } choices;
    struct {
        tv_rejection *v;
        size_t n, cap;
    } rejected;
} run;

/* ---- words ---- */

const char *tv_goal_name(tv_goal goal)
{
    static const char *const names[] = {N_("best value"), N_("cheapest"), N_("fastest")};
    return names[goal];
}

tv_text tv_search_headroom(const tv_memory *m)
{
    const double share = m->capacity_bytes > 0 ? m->total_bytes / m->capacity_bytes : 1;
    if (!tv_search_holds(m))
        return TV_TEXT0("headroom.none", N_("does not run"));
    if (m->verdict == TV_TIGHT || share > ROOM_WELL)
        return TV_TEXT0("headroom.just", N_("just runs"));
    if (share > ROOM_SPARE)
        return TV_TEXT0("headroom.well", N_("runs well"));
    return TV_TEXT0("headroom.spare", N_("room to spare"));
}

/* ---- what the search takes for unsaid ---- */

static uint32_t effective_batch(const tv_search *s)
{
    return s->model->default_seq || s->job->seq ? EFFECTIVE_SEQUENCES : EFFECTIVE_IMAGES;
}

static uint32_t ranks_of(const tv_machine *m)
{
    return (m->gpus ? m->gpus : 1) * (m->nodes ? m->nodes : 1);
}

/* Shapes for n cards, in order of preference. Batch 0: still to be chosen. */
static size_t shapes_for(const run *r, const tv_class_case *of, const tv_machine *machine,
                         tv_shape *shapes)
{
    const tv_job *asked = r->s->job, *job = &of->c.job;
    const uint32_t ranks = ranks_of(machine);
    const uint32_t batch = asked->batch || r->trains ? asked->batch : job->batch;
    shapes[0] = (tv_shape){job->strategy, job->parallel.tp, batch, job->accum};
    if (!r->trains) {
        if (ranks > 1 && asked->parallel.tp <= 1 && r->s->model->heads > 0)
            shapes[0].tp = machine->gpus;
        return 1;
    }
    if (ranks == 1 || asked->strategy != TV_STRATEGY_DEFAULT || asked->parallel.tp > 1)
        return 1;
    shapes[0].strategy = TV_STRATEGY_DDP;
    shapes[1] = shapes[0];
    shapes[1].strategy = job->framework == TV_PADDLE ? TV_STRATEGY_ZERO3 : TV_STRATEGY_FSDP;
    return 2;
}

/* Tensor parallelism needs heads that divide; models without heads run as one copy per card. */
static bool can_split(const run *r, uint32_t gpus)
{
    const double heads = r->s->model->heads;
    if (r->trains || gpus == 1 || r->s->job->parallel.tp > 1 || heads <= 0)
        return true;
    return heads >= gpus && fmod(heads, gpus) == 0;
}

/* What of the states must lie on one card, whatever the batch. */
static double least_states(const tv_class_case *of, const tv_shape *shape, uint32_t ranks)
{
    const bool whole_copy = shape->strategy == TV_STRATEGY_DDP && shape->tp <= 1 &&
                            of->c.job.parallel.pp <= 1 && of->c.job.parallel.ep <= 1;
    return whole_copy ? of->states_bytes : of->states_bytes / ranks;
}

/* The micro-batch: as stated, else the largest power of two that divides the step and leaves some
 * room, else the largest that fits. */
static tv_memory fit_batch(run *r, const tv_class_case *of, tv_shape *shape, const tv_machine *m)
{
    if (shape->batch)
        return tv_space_memory(&r->space, of, shape, m);
    const uint32_t whole = effective_batch(r->s), ranks = ranks_of(m);
    tv_shape widest = {0};
    /* States are there at every optimizer step: where they alone are too many, only the least
     * need is of interest. */
    const bool hopeless = least_states(of, shape, ranks) > tv_device_memory(m->device);
    for (uint32_t batch = whole > ranks && !hopeless ? whole / ranks : 1; batch; batch /= 2) {
        shape->batch = batch;
        shape->accum = r->s->job->accum ? r->s->job->accum : whole / (batch * ranks);
        shape->accum = shape->accum ? shape->accum : 1;
        const tv_memory memory = tv_space_memory(&r->space, of, shape, m);
        if (memory.verdict == TV_FITS && memory.total_bytes <= ROOM_WELL * memory.capacity_bytes)
            return memory;
        if (tv_search_holds(&memory) && !widest.batch)
            widest = *shape;
        if (batch == 1 && !widest.batch)
            return memory;
    }
    *shape = widest;
    return tv_space_memory(&r->space, of, shape, m);
}

/* ---- one configuration ---- */

static tv_text note_states(tv_arena *a, const tv_case *c, double states, double ranks)
{
    return TV_TEXT(a, "note.sharded",
                   N_("{states} of weights, gradients and optimizer states divided over {n} cards "
                      "by {strategy}: {each} each"),
                   tv_arg_num("states", TV_ARG_DISK, states), tv_arg_num("n", TV_ARG_NUMBER, ranks),
                   tv_arg_str("strategy", tv_str_of(tv_strategy_name(c->job.strategy))),
                   tv_arg_num("each", TV_ARG_DISK, states / ranks));
}

static bool shards(tv_strategy strategy)
{
    return strategy == TV_STRATEGY_ZERO1 || strategy == TV_STRATEGY_ZERO2 ||
           strategy == TV_STRATEGY_ZERO3 || strategy == TV_STRATEGY_FSDP ||
           strategy == TV_STRATEGY_HSDP;
}

static void add_notes(run *r, const tv_case *c, tv_choice *out)
{
    tv_arena *a = r->space.a;
    tv_text *notes = tv_new(a, tv_text, 4);
    size_t n = 0;
    const double ranks = ranks_of(c->machine);
    const double run_s = out->estimate.time.run_s;
    if (r->trains && ranks > 1 && shards(c->job.strategy))
        notes[n++] = note_states(a, c, tv_search_states(r->space.scratch, c), ranks);
    if (run_s > 0)
        notes[n++] = TV_TEXT(a, "note.runs", N_("{n} runs a day"),
                             tv_arg_num("n", TV_ARG_NUMBER, 86400 / run_s));
    const tv_str segment = c->machine->device->segment;
    if (r->trains && tv_str_is(segment, "laptop"))
        notes[n++] = TV_TEXT0("note.laptop", N_("a laptop part: its power limit decides the speed, "
                                                "so treat the time as a lower bound"));
    out->notes = notes;
    out->n_notes = n;
}

static void chose(tv_arena *a, tv_text *all, size_t *n, const char *field, tv_str value)
{
    size_t i = 0;
    while (i < *n && !tv_str_is(tv_str_of(all[i].id), field))
        i++;
    *n = i == *n ? i + 1 : *n;
    all[i] = TV_TEXT(a, field, N_("{field} was not stated: {value} is taken"),
                     tv_arg_str("field", tv_str_of(field)), tv_arg_str("value", value));
}

static tv_str number(tv_arena *a, double v)
{
    tv_buf b = tv_buf_in(a);
    tv_put_double(&b, v);
    return tv_buf_str(&b);
}

/* What the search chose stands among the defaults. */
static void list_chosen(tv_arena *a, const tv_job *asked, tv_job *job)
{
    tv_text *all = tv_new(a, tv_text, job->n_defaults + 4);
    size_t n = 0;
    for (; n < job->n_defaults; n++)
        all[n] = job->defaults[n];
    if (!asked->batch)
        chose(a, all, &n, "batch", number(a, job->batch));
    if (!asked->accum && job->accum)
        chose(a, all, &n, "accum", number(a, job->accum));
    if (asked->strategy == TV_STRATEGY_DEFAULT && job->strategy != TV_STRATEGY_DEFAULT)
        chose(a, all, &n, "strategy", tv_str_of(tv_strategy_name(job->strategy)));
    if (asked->parallel.tp == 0 && job->parallel.tp > 1)
        chose(a, all, &n, "tp", number(a, job->parallel.tp));
    job->defaults = all;
    job->n_defaults = n;
}

static void fill_choice(run *r, const tv_class_case *of, const tv_shape *shape,
                        const tv_machine *machine, const tv_memory *memory, tv_choice *out)
{
    tv_arena *a = r->space.a;
    tv_machine *kept = tv_new(a, tv_machine, 1);
    tv_job *job = tv_new(a, tv_job, 1);
    *kept = *machine;
    tv_case c = tv_space_bind(of, shape, kept);
    list_chosen(a, r->s->job, &c.job);
    *job = c.job;
    tv_estimate *e = &out->estimate;
    *e = (tv_estimate){.model = c.model,
                       .job = job,
                       .machine = kept,
                       .graph = c.graph,
                       .policy = c.policy,
                       .memory = *memory};
    tv_predict_time(a, &c, &e->memory, &e->time);
    tv_predict_balance(a, &c, &e->memory, &e->time, &e->balance);
    tv_predict_grades(a, &c, &e->memory, &e->time, &e->grades);
    if (r->s->price)
        r->s->price(r->s->ctx, a, e);
    out->job = *job;
    out->machine = *kept;
    out->headroom = tv_search_headroom(memory);
    add_notes(r, &c, out);
}

/* ---- ranking ---- */

static double throughput(const tv_estimate *e)
{
    if (tv_known(e->time.requests_per_s))
        return e->time.requests_per_s.v;
    if (tv_known(e->time.decode_tokens_per_s))
        return e->time.decode_tokens_per_s.v;
    if (tv_known(e->time.samples_per_s))
        return e->time.samples_per_s.v;
    return tv_known(e->time.step_s) && e->time.step_s.v > 0 ? 1 / e->time.step_s.v : 0;
}

static double score_of(tv_goal goal, const tv_estimate *e)
{
    const double work = throughput(e);
    const double hour = tv_known(e->cost.per_hour) ? e->cost.per_hour.v : 0;
    switch (goal) {
    case TV_GOAL_FASTEST:
        return work;
    case TV_GOAL_CHEAPEST:
        if (tv_known(e->cost.per_run) && e->cost.per_run.v > 0)
            return 1 / e->cost.per_run.v;
        return hour > 0 ? 1 / hour : 0;
    case TV_GOAL_VALUE:
        return hour > 0 ? work * 3600 / hour : 0;
    }
    return 0;
}

/* Sure before tight, priced before unpriced; then the score; then the name, so that equal choices
 * always come in the same order. */
static int tier(const tv_choice *c)
{
    return (c->score > 0 ? 0 : 2) + (c->estimate.memory.verdict == TV_FITS ? 0 : 1);
}

static int better_first(const void *x, const void *y)
{
    const tv_choice *p = x, *q = y;
    if (tier(p) != tier(q))
        return tier(p) - tier(q);
    if (p->score != q->score)
        return p->score > q->score ? -1 : 1;
    const double a = throughput(&p->estimate), b = throughput(&q->estimate);
    if (a != b)
        return a > b ? -1 : 1;
    const int order = tv_str_cmp(p->machine.device->slug, q->machine.device->slug);
    return order ? order : (int)p->machine.gpus - (int)q->machine.gpus;
}

static bool is_unknown(tv_text reason)
{
    return reason.id && tv_str_is(tv_str_of(reason.id), "unknown");
}

static int nearest_first(const void *x, const void *y)
{
    const tv_rejection *p = x, *q = y;
    const bool unknown_p = is_unknown(p->reason), unknown_q = is_unknown(q->reason);
    if (unknown_p != unknown_q)
        return unknown_p ? 1 : -1;
    if (p->by_bytes != q->by_bytes)
        return p->by_bytes < q->by_bytes ? -1 : 1;
    const int order = tv_str_cmp(p->device->slug, q->device->slug);
    return order ? order : (int)p->gpus - (int)q->gpus;
}

/* ---- the gates ---- */

static void reject(run *r, const tv_device *d, uint32_t gpus, tv_text reason, double by_bytes)
{
    *tv_push(r->space.a, &r->rejected) = (tv_rejection){d, gpus, reason, by_bytes};
}

static bool has_rate(const tv_device *d)
{
    for (int i = 0; i < TV_RATE_COUNT; i++)
        if (tv_known(d->rate_flops[i]))
            return true;
    return false;
}

/* What is missing to judge a card; NULL: nothing. */
static const char *missing(const tv_device *d)
{
    if (!tv_known(d->mem_bytes) && !tv_known(d->mem_usable_bytes))
        return N_("its memory size");
    if (!tv_known(d->mem_bytes_per_s))
        return N_("its memory bandwidth");
    return has_rate(d) ? NULL : N_("its arithmetic rates");
}

static tv_text vram_reason(tv_arena *a, const tv_memory *m, uint32_t gpus)
{
    return TV_TEXT(a, "vram",
                   gpus > 1 ? N_("needs {need} on each of {n} cards, has {have}")
                            : N_("needs {need}, has {have}"),
                   tv_arg_num("n", TV_ARG_NUMBER, gpus),
                   tv_arg_num("need", TV_ARG_MEMORY, m->total_bytes),
                   tv_arg_num("have", TV_ARG_MEMORY, m->capacity_bytes));
}

static bool over_limits(run *r, const tv_choice *c, tv_text *why)
{
    tv_arena *a = r->space.a;
    const tv_search *s = r->s;
    const tv_estimate *e = &c->estimate;
    if (s->deadline_s > 0 && e->time.run_s > s->deadline_s) {
        *why = TV_TEXT(a, "deadline", N_("takes {run}, the deadline is {limit}"),
                       tv_arg_num("run", TV_ARG_SECONDS, e->time.run_s),
                       tv_arg_num("limit", TV_ARG_SECONDS, s->deadline_s));
        return true;
    }
    const tv_fact cost = tv_known(e->cost.per_run) ? e->cost.per_run : e->cost.total_year;
    if (s->budget > 0 && tv_known(cost) && cost.v > s->budget) {
        *why = TV_TEXT(a, "budget", N_("costs {cost} {currency}, the budget is {limit}"),
                       tv_arg_num("cost", TV_ARG_COUNT, ceil(cost.v)),
                       tv_arg_str("currency", e->cost.currency),
                       tv_arg_num("limit", TV_ARG_COUNT, s->budget));
        return true;
    }
    return false;
}

/* ---- one card in every count ---- */

typedef struct verdict {
    bool chosen;
    tv_text reason;
    double by_bytes;
} verdict;

static verdict judge(run *r, const tv_device *d, uint32_t gpus, tv_choice *out)
{
    tv_arena *a = r->space.a;
    tv_machine machine = {0};
    const tv_err *e = r->s->machine(r->s->ctx, a, d, gpus, r->s->nodes, &machine);
    const tv_class_case *of = e ? NULL : tv_space_case(&r->space, &machine);
    if (e || of->e)
        return (verdict){.reason = e ? e->what : of->e->what};
    if (!can_split(r, gpus))
        return (verdict){.reason = TV_TEXT0(
                             "split", N_("its attention heads do not divide over so many cards"))};
    tv_shape shapes[2];
    tv_memory memory = {0};
    const size_t n = shapes_for(r, of, &machine, shapes);
    for (size_t i = 0; i < n; i++) {
        memory = fit_batch(r, of, &shapes[i], &machine);
        if (!tv_search_holds(&memory))
            continue;
        fill_choice(r, of, &shapes[i], &machine, &memory, out);
        verdict v = {.chosen = true};
        if (throughput(&out->estimate) <= 0)
            return (verdict){.reason = TV_TEXT0("unknown", N_("its speed in this precision"))};
        if (over_limits(r, out, &v.reason))
            return (verdict){.reason = v.reason};
        out->score = score_of(r->s->goal, &out->estimate);
        return v;
    }
    return (verdict){.reason = vram_reason(a, &memory, gpus),
                     .by_bytes = memory.total_bytes - memory.capacity_bytes};
}

static tv_alternative alternative_of(const tv_choice *c)
{
    return (tv_alternative){.gpus = c->machine.gpus,
                            .verdict = c->estimate.memory.verdict,
                            .total_bytes = c->estimate.memory.total_bytes,
                            .step_s = c->estimate.time.step_s,
                            .run_s = c->estimate.time.run_s,
                            .per_hour = c->estimate.cost.per_hour,
                            .per_run = c->estimate.cost.per_run};
}

/* More cards must earn their place: where the score is much the same, fewer are simpler. */
static bool worth_more_cards(const tv_choice *more, const tv_choice *fewer)
{
    if (tier(more) != tier(fewer))
        return tier(more) < tier(fewer);
    return more->score > fewer->score * MORE_CARDS_GAIN;
}

static void consider(run *r, const tv_device *d)
{
    tv_arena *a = r->space.a;
    const char *unknown = missing(d);
    if (unknown) {
        reject(r, d, 0,
               TV_TEXT(a, "unknown", N_("not known: {what}"), tv_arg_word("what", unknown)), 0);
        return;
    }
    tv_alternative *counts = tv_new(a, tv_alternative, r->s->n_counts);
    size_t n_counts = 0;
    tv_choice best = {0};
    for (size_t i = 0; i < r->s->n_counts; i++) {
        tv_choice c = {0};
        const verdict v = judge(r, d, r->s->counts[i], &c);
        if (v.chosen) {
            counts[n_counts++] = alternative_of(&c);
            if (n_counts == 1 || worth_more_cards(&c, &best))
                best = c;
        } else if (i == 0 || (i + 1 == r->s->n_counts && n_counts == 0 && !is_unknown(v.reason))) {
            reject(r, d, r->s->counts[i], v.reason, v.by_bytes);
        }
    }
    if (n_counts == 0)
        return;
    best.counts = counts;
    best.n_counts = n_counts;
    *tv_push(a, &r->choices) = best;
}

/* ---- the plan ---- */

static void list_defaults(run *r, tv_plan *plan)
{
    tv_arena *a = r->space.a;
    const tv_search *s = r->s;
    tv_text *v = tv_new(a, tv_text, 3);
    size_t n = 0;
    v[n++] = TV_TEXT(a, "plan.goal", N_("ranked for: {goal}"),
                     tv_arg_word("goal", tv_goal_name(s->goal)));
    if (!s->job->batch && r->trains)
        v[n++] = TV_TEXT(a, "plan.batch", N_("{n} samples per optimizer step over all cards"),
                         tv_arg_num("n", TV_ARG_NUMBER, effective_batch(s)));
    if (!(s->budget > 0) && !(s->deadline_s > 0))
        v[n++] = TV_TEXT0("plan.limits", N_("no budget and no deadline"));
    plan->defaults = v;
    plan->n_defaults = n;
}

static tv_text question_of(tv_arena *a, const tv_search *s, const tv_job *job)
{
    return TV_TEXT(a, "plan.question", N_("which GPU for {model}, {task}: {goal}"),
                   tv_arg_str("model", s->model->name),
                   tv_arg_str("task", tv_str_of(tv_task_name(job->task))),
                   tv_arg_word("goal", tv_goal_name(s->goal)));
}

static const tv_class_case *class_on(run *r, const tv_device *d, uint32_t gpus, tv_machine *machine)
{
    const tv_err *e = r->s->machine(r->s->ctx, r->space.a, d, gpus, r->s->nodes, machine);
    const tv_class_case *of = e ? NULL : tv_space_case(&r->space, machine);
    e = e ? e : of->e;
    if (e && !r->first)
        r->first = e;
    return e ? NULL : of;
}

static void shape_on_one(const run *r, const tv_class_case *of, const tv_machine *machine,
                         tv_shape *shape)
{
    tv_shape shapes[2];
    (void)shapes_for(r, of, machine, shapes);
    *shape = shapes[0];
    shape->batch = shape->batch ? shape->batch : 1;
}

/* The largest card that can run the job at all: the need is shown on it. */
static const tv_device *largest_card(run *r)
{
    const tv_device *largest = NULL;
    const tv_search *s = r->s;
    for (size_t i = 0; i < s->n_devices; i++) {
        const tv_device *d = s->devices[i];
        tv_machine machine = {0};
        if (missing(d) || (largest && tv_device_memory(d) <= tv_device_memory(largest)))
            continue;
        if (class_on(r, d, 1, &machine))
            largest = d;
    }
    return largest;
}

/* The need on one card, whatever its size. */
static void need_on_one(run *r, const tv_device *largest, tv_plan *plan)
{
    tv_machine machine = {0};
    const tv_class_case *of = class_on(r, largest, 1, &machine);
    if (!of)
        return;
    tv_shape shape;
    r->trains = tv_job_trains(&of->c.job);
    shape_on_one(r, of, &machine, &shape);
    plan->need = tv_space_memory(&r->space, of, &shape, &machine);
    plan->need_bytes = plan->need.total_bytes;
    plan->states_bytes = tv_search_states(r->space.scratch, &of->c);
    plan->question = question_of(r->space.a, r->s, &of->c.job);
}

static bool small_board(const tv_device *d)
{
    return tv_str_is(d->segment, "edge") || tv_str_is(d->segment, "laptop");
}

/* What the remedies are for: the card that lost alone by least and is not far off, or the largest
 * when none holds it. */
static const tv_device *nearest_lost(const run *r, const tv_device *largest)
{
    if (r->choices.n == 0 && r->s->n_devices > 1)
        return largest;
    for (size_t i = 0; i < r->rejected.n; i++) {
        const tv_rejection *lost = &r->rejected.v[i];
        const bool near = lost->by_bytes < tv_device_memory(lost->device);
        if (lost->by_bytes > 0 && lost->gpus == 1 && (near || r->choices.n == 0) &&
            !small_board(lost->device))
            return lost->device;
    }
    return NULL;
}

static void add_remedies(run *r, const tv_device *d, tv_plan *plan)
{
    tv_machine *machine = tv_new(r->space.a, tv_machine, 1);
    const tv_class_case *of = d ? class_on(r, d, 1, machine) : NULL;
    if (!of)
        return;
    tv_shape shape;
    shape_on_one(r, of, machine, &shape);
    const tv_case c = tv_space_bind(of, &shape, machine);
    tv_estimate now = {.memory = tv_space_memory(&r->space, of, &shape, machine)};
    tv_predict_time(r->space.a, &c, &now.memory, &now.time);
    tv_search_remedies(r->space.a, r->space.scratch, r->s, &c, &now, true, plan);
    plan->remedies_for = d;
}

/* As many as the first screen shows. */
enum { finalists = 10 };

/* The choices that are shown are walked in full, with the allocator. */
static void refine(run *r, tv_choice *choice)
{
    tv_machine machine = choice->machine;
    const tv_class_case *of = tv_space_case(&r->space, &machine);
    const tv_shape shape = {choice->job.strategy, choice->job.parallel.tp, choice->job.batch,
                            choice->job.accum};
    const tv_case c = tv_space_bind(of, &shape, &machine);
    tv_estimate *e = &choice->estimate;
    tv_predict_memory(r->space.a, r->space.scratch, &c, &e->memory);
    tv_predict_grades(r->space.a, &c, &e->memory, &e->time, &e->grades);
    choice->headroom = tv_search_headroom(&e->memory);
}

/* A finalist that the full walk finds too large goes to the others that lost. */
static void refine_finalists(run *r)
{
    for (size_t i = 0; i < r->choices.n && i < finalists;) {
        tv_choice *c = &r->choices.v[i];
        refine(r, c);
        if (tv_search_holds(&c->estimate.memory)) {
            i++;
            continue;
        }
        const tv_memory *m = &c->estimate.memory;
        reject(r, c->machine.device, c->machine.gpus, vram_reason(r->space.a, m, c->machine.gpus),
               m->total_bytes - m->capacity_bytes);
        r->choices.n--;
        memmove(c, c + 1, (r->choices.n - i) * sizeof *c);
    }
}

/* A plan without mixed precision on a card that has it says what it would give. */
static void advise_amp(run *r, tv_choice *best)
{
    tv_machine machine = best->machine;
    const tv_class_case *of = tv_space_case(&r->space, &machine);
    const tv_shape shape = {best->job.strategy, best->job.parallel.tp, best->job.batch,
                            best->job.accum};
    const tv_case c = tv_space_bind(of, &shape, &machine);
    tv_remedy amp = {0};
    if (!r->trains || !tv_search_amp(r->space.a, r->space.scratch, r->s, &c, &best->estimate, &amp))
        return;
    tv_text *notes = tv_new(r->space.a, tv_text, best->n_notes + 1);
    for (size_t i = 0; i < best->n_notes; i++)
        notes[i] = best->notes[i];
    notes[best->n_notes++] = TV_TEXT(r->space.a, "note.amp",
                                     N_("mixed precision would need {need} and {time} of the time"),
                                     tv_arg_num("need", TV_ARG_MEMORY, amp.total_bytes),
                                     tv_arg_num("time", TV_ARG_RATIO, amp.slowdown));
    best->notes = notes;
}

/* The three axes of suitability, and who is not beaten in both time and money. */
static void mark_choices(run *r)
{
    double fastest = 0;
    for (size_t i = 0; i < r->choices.n; i++) {
        const double work = throughput(&r->choices.v[i].estimate);
        fastest = work > fastest ? work : fastest;
    }
    for (size_t i = 0; i < r->choices.n; i++) {
        tv_choice *c = &r->choices.v[i];
        const tv_estimate *e = &c->estimate;
        c->speed = fastest > 0 ? throughput(e) / fastest : 0;
        c->accelerated = tv_known(tv_predict_rate(c->machine.device, e->policy.compute)) &&
                         tv_predict_rate(c->machine.device, e->policy.compute).v >
                             MATRIX_UNITS * c->machine.device->rate_flops[TV_RATE_FP32].v;
        c->pareto = tv_known(e->cost.per_hour);
        for (size_t k = 0; k < r->choices.n && c->pareto; k++) {
            const tv_estimate *o = &r->choices.v[k].estimate;
            if (!tv_known(o->cost.per_hour))
                continue;
            const double mine = e->cost.per_hour.v / throughput(e);
            const double its = o->cost.per_hour.v / throughput(o);
            const bool no_worse = throughput(o) >= throughput(e) && its <= mine;
            c->pareto = !(no_worse && (throughput(o) > throughput(e) || its < mine));
        }
    }
}

static void rank(run *r)
{
    if (r->choices.n)
        qsort(r->choices.v, r->choices.n, sizeof *r->choices.v, better_first);
}

static run start(tv_arena *a, tv_arena *scratch, const tv_search *s)
{
    return (run){.space = {.a = a, .scratch = scratch, .s = s, .job = *s->job}, .s = s};
}

const tv_err *tv_search_plan(tv_arena *a, tv_arena *scratch, const tv_search *s, tv_plan *plan)
{
    run r = start(a, scratch, s);
    *plan = (tv_plan){.sharding = 1, .most_gpus = s->n_counts ? s->counts[s->n_counts - 1] : 0};
    const tv_device *largest = largest_card(&r);
    if (largest)
        need_on_one(&r, largest, plan);
    else if (r.first)
        return r.first;
    for (size_t i = 0; i < s->n_devices; i++)
        consider(&r, s->devices[i]);
    rank(&r);
    refine_finalists(&r);
    rank(&r); /* the full walk may have turned a sure one into a tight one */
    mark_choices(&r);
    if (r.rejected.n)
        qsort(r.rejected.v, r.rejected.n, sizeof *r.rejected.v, nearest_first);
    plan->choices = r.choices.v;
    plan->n_choices = r.choices.n;
    plan->rejected = r.rejected.v;
    plan->n_rejected = r.rejected.n;
    if (r.choices.n && shards(r.choices.v[0].job.strategy))
        plan->sharding = ranks_of(&r.choices.v[0].machine);
    list_defaults(&r, plan);
    if (r.choices.n)
        advise_amp(&r, &r.choices.v[0]);
    add_remedies(&r, nearest_lost(&r, largest), plan);
    return NULL;
}

const tv_err *tv_search_one(tv_arena *a, tv_arena *scratch, const tv_search *s, const tv_device *d,
                            uint32_t gpus, tv_choice *out)
{
    run r = start(a, scratch, s);
    tv_machine machine = {0};
    const tv_class_case *of = class_on(&r, d, gpus, &machine);
    if (!of)
        return r.first;
    r.trains = tv_job_trains(&of->c.job);
    tv_shape shapes[2];
    const size_t n = shapes_for(&r, of, &machine, shapes);
    for (size_t i = 0; i < n; i++) {
        /* One configuration is shown as asked: an unsaid batch is the resolved default. */
        shapes[i].batch = shapes[i].batch ? shapes[i].batch : of->c.job.batch;
        const tv_memory memory = tv_space_memory(&r.space, of, &shapes[i], &machine);
        if (!tv_search_holds(&memory) && i + 1 < n)
            continue;
        fill_choice(&r, of, &shapes[i], &machine, &memory, out);
        return NULL;
    }
    return NULL;
}
