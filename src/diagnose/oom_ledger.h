/* The account of one out-of-memory message, as the values of a finding: what the card has, what
 * others, the context and the allocator hold of it, and what was asked for. */
#ifndef TV_OOM_LEDGER_H
#define TV_OOM_LEDGER_H

#include "diagnose.h"

/* Adds what the message states; where it does not state all, the cause is `in_part`. */
void tv_oom_ledger(tv_inquiry *q, tv_finding *f, const tv_sighting *s, const char *in_part);
/* The allocator's unused memory under any of its names; NaN: not stated. */
double tv_oom_unused(const tv_note *facts);
/* True where the message's layer is that word. */
bool tv_oom_layer_is(const tv_sighting *s, const char *layer);
/* a / b, or 0 where either is unknown. */
double tv_share(double a, double b);

#endif
