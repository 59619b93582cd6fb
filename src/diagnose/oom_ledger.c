/* Only sums of what a message states. */
#include "oom_ledger.h"

#include <math.h>

double tv_oom_unused(const tv_note *facts)
{
    const double unused = tv_noted_num(facts, "reserved_unallocated_bytes");
    return isnan(unused) ? tv_noted_num(facts, "cached_unused_bytes") : unused;
}

double tv_share(double a, double b)
{
    return b > 0 && !isnan(a) ? a / b : 0;
}

bool tv_oom_layer_is(const tv_sighting *s, const char *layer)
{
    return tv_noted_is(&s->facts, "layer", layer);
}

static void put(tv_inquiry *q, tv_finding *f, const char *name, double v)
{
    tv_found_num(q, f, name, TV_ARG_MEMORY, v);
}

void tv_oom_ledger(tv_inquiry *q, tv_finding *f, const tv_sighting *s, const char *in_part)
{
    const tv_note *facts = &s->facts;
    const double total = tv_noted_num(facts, "total_bytes");
    const double free = tv_noted_num(facts, "free_bytes");
    const double allocated = tv_noted_num(facts, "allocated_bytes");
    const double tried = tv_noted_num(facts, "tried_bytes");
    const double unused = tv_oom_unused(facts);
    put(q, f, "total_bytes", total);
    put(q, f, "others_bytes", tv_noted_num(facts, "others_bytes"));
    put(q, f, "context_bytes", tv_noted_num(facts, "non_pytorch_bytes"));
    put(q, f, "outside_bytes", fmax(total - free - allocated - unused, 0));
    put(q, f, "allocated_bytes", allocated);
    put(q, f, "frag_bytes", unused);
    put(q, f, "free_bytes", free);
    put(q, f, "tried_bytes", tried);
    put(q, f, "usable_bytes", free + unused);
    put(q, f, "missing_bytes", fmax(tried - free - unused, 0));
    tv_found_num(q, f, "gpu", TV_ARG_NUMBER, tv_noted_num(facts, "gpu"));
    if (isnan(total - free - allocated - unused - tried))
        f->cause = in_part;
}
