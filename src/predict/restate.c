/* The ledger with terms of the user's own. */
#include "restate.h"

#include "ledger.h"

static const char *const names[TV_TERM_COUNT] = {
    [TV_TERM_ACTIVATIONS] = "activations",
    [TV_TERM_LOGITS] = "logits",
    [TV_TERM_TEMPORARIES] = "temporaries",
    [TV_TERM_WORKSPACE] = "workspace",
    [TV_TERM_KV] = "kv",
    [TV_TERM_WEIGHTS] = "weights",
    [TV_TERM_GRADIENTS] = "gradients",
    [TV_TERM_OPTIMIZER] = "optimizer",
    [TV_TERM_COMM_BUFFERS] = "comm_buffers",
};

const char *tv_term_name(tv_term term)
{
    return term < TV_TERM_COUNT ? names[term] : "";
}

tv_term tv_term_named(tv_str name)
{
    for (tv_term t = 0; t < TV_TERM_COUNT; t++)
        if (tv_str_is(name, names[t]))
            return t;
    return TV_TERM_COUNT;
}

static bool states(const tv_stated_term *terms, size_t n, tv_term term)
{
    for (size_t i = 0; i < n; i++)
        if (terms[i].term == term)
            return true;
    return false;
}

static void sum_up(tv_memory *m)
{
    const double spread_below = m->total_bytes - m->low_bytes;
    const double spread_above = m->high_bytes - m->total_bytes;
    m->allocated_peak_bytes = 0;
    for (int t = 0; t < TV_TERM_COUNT; t++)
        m->allocated_peak_bytes += m->term_bytes[t];
    m->reserved_peak_bytes = m->allocated_peak_bytes + m->fragmentation_bytes;
    m->total_bytes = m->reserved_peak_bytes + m->context_bytes + m->nccl_bytes;
    m->low_bytes = m->total_bytes - spread_below;
    m->high_bytes = m->total_bytes + spread_above;
    m->verdict = tv_memory_verdict(m);
}

void tv_memory_restate(const tv_case *c, const tv_stated_term *terms, size_t n, tv_memory *m)
{
    if (n == 0)
        return;
    if (states(terms, n, TV_TERM_ACTIVATIONS)) {
        m->term_bytes[TV_TERM_TEMPORARIES] = 0;
        m->term_bytes[TV_TERM_LOGITS] = 0; /* part of what was stated */
        m->fragmentation_bytes = 0;
    }
    if (tv_job_trains(&c->job))
        m->term_bytes[TV_TERM_GRADIENTS] = tv_ledger_gradient_bytes(c);
    for (size_t i = 0; i < n; i++)
        m->term_bytes[terms[i].term] = terms[i].bytes;
    m->peak_at = TV_TEXT0("peak.stated", N_("the sum of the terms, some of them stated"));
    sum_up(m);
}
