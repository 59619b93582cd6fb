/* Who holds the card's memory, from the figures of one message, and which of five layers ran out:
 * host and shared memory are other messages'; here are the card outside the process, the process
 * outside the tensor allocator, and the allocator. */
#include <math.h>

#include "oom_parts.h"

/* Above this no card has memory: a size that is a program's mistake (1000 GiB). */
#define IMPOSSIBLE_BYTES (1000.0 * 1024 * 1024 * 1024)
/* A share of the card that is worth a verdict. */
#define TELLING_SHARE 0.10
/* Live tensors at this share of the card: it is full of them. */
#define FULL_SHARE 0.93
/* What a process may hold beside the allocator before that is a cause of its own. */
#define LARGE_CONTEXT_BYTES (1.5 * 1024 * 1024 * 1024)
/* Figures are printed with two decimals. */
#define ROUNDING 1.005

/* 0 where it is not known: for sums in which the unknown has no part. */
static double known(double v)
{
    return isnan(v) ? 0 : v;
}

typedef struct shares {
    double own;     /* of the allocator: live and unused */
    double others;  /* other processes; an estimate where the message does not part them */
    double context; /* of this process outside the allocator; NaN: not told */
    double outside; /* neither free nor the allocator's */
} shares;

static shares shares_of(const tv_oom_account *c)
{
    shares s = {.own = known(c->allocated) + known(c->unused), .context = (double)NAN};
    const double left = c->total - c->free;
    s.outside = left - s.own;
    if (!isnan(c->self)) {
        s.others = fmax(left - c->self, 0);
        s.context = c->self - s.own;
    } else {
        s.others = fmax(s.outside - TV_OOM_CONTEXT_BYTES, 0);
    }
    return s;
}

/* Free memory that would have held the request several times over, or a card that is hardly used:
 * the card's size is not what refused it. A little more than asked for says nothing, for the driver
 * keeps some and gives it out in pieces of 2 MiB. */
static bool contradicts(const tv_oom_account *c)
{
    const double spare = c->free - c->tried * ROUNDING;
    const double margin = fmax(512.0 * 1024 * 1024, 0.02 * c->total);
    return spare > 0 && (c->total - c->free < 0.5 * c->total || spare > margin);
}

static const char *layer_inside(const tv_oom_account *c, const shares *s)
{
    const double total = c->total;
    /* What is too much of it would have held the request. */
    const double excess = s->context - TV_OOM_CONTEXT_BYTES;
    if (s->context > LARGE_CONTEXT_BYTES && c->allocated < FULL_SHARE * total &&
        c->tried <= known(c->free) + known(c->unused) + excess)
        return "process outside the allocator";
    if (c->private_pools > TELLING_SHARE * total)
        return "CUDA graph pools";
    if (c->allocated >= FULL_SHARE * total)
        return "true capacity";
    if (s->outside > 0.25 * total)
        return "device: capacity too small";
    if (c->tried >= TELLING_SHARE * total && c->tried > known(c->free) + known(c->unused))
        return "one request too large";
    return "true capacity";
}

/* The order is that of the layers, from the outside in; of two that both explain it the one that
 * holds more. */
static const char *layer_of(const tv_oom_account *c, const shares *s)
{
    const double total = c->total;
    if (c->tried > IMPOSSIBLE_BYTES)
        return "program bug: impossible request";
    if (c->allocated > total * ROUNDING || s->own > total * ROUNDING * ROUNDING)
        return "device oversubscribed to host memory";
    if (c->tried > total * ROUNDING)
        return "program bug: impossible request";
    if (s->own + c->tried > c->allowed)
        return "pool capped";
    if (contradicts(c))
        return "host-side limit or stale figure";
    const double frag = known(c->unused);
    const bool fragmented =
        frag + known(c->free) >= c->tried && (frag >= TELLING_SHARE * total || isnan(total));
    const bool shared = s->others > TELLING_SHARE * total;
    if (fragmented && frag > 0 && (!shared || frag > s->others))
        return "allocator fragmentation";
    if (shared)
        return "device shared with other processes";
    if (isnan(total) || isnan(c->tried))
        return NULL;
    return layer_inside(c, s);
}

static void put(tv_reading *r, tv_note *facts, const char *key, double v)
{
    if (!isnan(v))
        (void)tv_note_num(r->a, facts, key, v);
}

void tv_oom_judge(tv_reading *r, tv_note *facts, const tv_oom_account *c)
{
    const shares s = shares_of(c);
    if (c->allocated > c->total * ROUNDING) {
        (void)tv_note_bool(r->a, facts, "allocated_exceeds_total", true);
        tv_oom_word(r, facts, "os_inferred", "windows/wsl");
    }
    if (contradicts(c))
        (void)tv_note_bool(r->a, facts, "contradiction_free_exceeds_tried", true);
    put(r, facts, "free_plus_unallocated_bytes", c->free + c->unused);
    if (!isnan(c->free + c->unused + c->tried))
        (void)tv_note_bool(r->a, facts, "expandable_would_fix",
                           c->free < c->tried && c->free + c->unused >= c->tried);
    put(r, facts, "non_pytorch_bytes", isnan(c->self) ? (double)NAN : fmax(s.context, 0));
    put(r, facts, "others_bytes", isnan(c->total - c->free) ? (double)NAN : s.others);
    tv_oom_word(r, facts, "layer", layer_of(c, &s));
}
