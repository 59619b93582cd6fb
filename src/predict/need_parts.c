/* Amounts with bounds, and their sums. */
#include "need_parts.h"

#include "ledger.h"
#include "outside.h"

static const double gib = 1073741824.0;

tv_fact tv_between(double low, double v, double high)
{
    return (tv_fact){.v = v,
                     .lo = low,
                     .hi = high,
                     .origin = TV_COMPUTED,
                     .tier = TV_TIER_PRIOR,
                     .source = TV_S("Build phases")};
}

void tv_part_add(tv_parts *p, const char *name, bool host, tv_fact bytes)
{
    if (bytes.hi > 0)
        *tv_push(p->a, &p->lines) = (tv_need_line){name, host, bytes};
}

void tv_part_note(tv_parts *p, tv_text t)
{
    *tv_push(p->a, &p->notes) = t;
}

void tv_part_context(tv_parts *p, const tv_device *d)
{
    const tv_range r = tv_outside_context(d);
    tv_part_add(p, N_("driver context"), false, tv_between(r.lo, r.v, r.hi));
}

void tv_part_process(tv_parts *p)
{
    tv_part_add(p, N_("the process itself"), true, tv_between(0.4 * gib, 0.6 * gib, 3 * gib));
}

/* The parts may all be at their worst at once: bounds add. */
static tv_fact total(const tv_parts *p, bool host)
{
    tv_fact sum = tv_between(0, 0, 0);
    for (size_t i = 0; i < p->lines.n; i++) {
        const tv_need_line *l = &p->lines.v[i];
        if (l->host != host)
            continue;
        sum.v += l->bytes.v;
        sum.lo += l->bytes.lo;
        sum.hi += l->bytes.hi;
    }
    return sum.v > 0 ? sum : (tv_fact){0};
}

void tv_parts_finish(const tv_parts *p, tv_life_need *out)
{
    out->device_bytes = total(p, false);
    out->host_bytes = total(p, true);
    out->lines = p->lines.v;
    out->n_lines = p->lines.n;
    out->notes = p->notes.v;
    out->n_notes = p->notes.n;
}

tv_run_bytes tv_run_bytes_of(tv_arena *scratch, const tv_case *c)
{
    const tv_walk w = tv_memory_walk(scratch, c, c->job.batch, false);
    return (tv_run_bytes){
        .weights = w.term_bytes[TV_TERM_WEIGHTS],
        .moving = w.term_bytes[TV_TERM_ACTIVATIONS] + w.term_bytes[TV_TERM_LOGITS] +
                  w.term_bytes[TV_TERM_TEMPORARIES],
    };
}
