/* CuPy's memory errors: before 7 "total" holds the refused request too, from 7 on it does not. */
#include <math.h>

#include "glean.h"
#include "oom_parts.h"
#include "trace.h"

/* Many earlier requests lie in the pool: it filled up step by step. */
static const char *layer_of(double tried, double before, double limit)
{
    if (before + tried > limit)
        return "pool capped";
    if (tried > 0x1p50)
        return "program bug: impossible request";
    return before >= 4 * tried ? "leak / accumulation" : NULL;
}

static void read_old(tv_reading *r, tv_note *facts, tv_str text)
{
    const tv_double_read tried = tv_bytes_past(text, "to allocate ");
    const tv_double_read total = tv_bytes_past(text, "(total ");
    tv_oom_word(r, facts, "format", "<7: total includes request");
    tv_oom_put(r, facts, "tried_bytes", tried);
    tv_oom_put(r, facts, "total_incl_request_bytes", total);
    if (!tried.ok || !total.ok || total.v < tried.v)
        return;
    const double before = total.v - tried.v;
    (void)tv_note_num(r->a, facts, "allocated_before_bytes", before);
    tv_oom_word(r, facts, "layer", layer_of(tried.v, before, (double)NAN));
}

static void read_new(tv_reading *r, tv_note *facts, tv_str text)
{
    const tv_double_read tried = tv_bytes_past(text, "ut of memory allocating ");
    const tv_double_read before = tv_bytes_past(text, "allocated so far: ");
    const tv_double_read limit = tv_bytes_past(text, "limit set to: ");
    tv_oom_word(r, facts, "format", "7+");
    tv_oom_put(r, facts, "tried_bytes", tried);
    tv_oom_put(r, facts, "allocated_bytes", before);
    tv_oom_put(r, facts, "allocated_before_bytes", before);
    tv_oom_put(r, facts, "limit_bytes", limit);
    if (tried.ok && before.ok)
        tv_oom_word(r, facts, "layer",
                    layer_of(tried.v, before.v, limit.ok ? limit.v : (double)NAN));
}

static void read(tv_reading *r)
{
    static const char *const ends[] = {"bytes)", "bytes).", "limit set", NULL};
    tv_oom_seen *seen = tv_new(r->a, tv_oom_seen, 1);
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        const bool old = tv_holds(line, "out of memory to allocate ");
        if (!old && !(tv_holds(line, "ut of memory allocating ") && !tv_holds(line, "EXHAUSTED") &&
                      !tv_holds(line, "xhausted")))
            continue;
        const tv_str text = tv_oom_joined(r, i, ends);
        tv_str tail;
        if (!tv_past(text, "ut of memory", &tail))
            continue;
        tv_sighting *s = tv_oom_new(r, seen, i, tail);
        if (!s)
            continue;
        tv_oom_word(r, &s->facts, "framework", "cupy");
        if (old)
            read_old(r, &s->facts, text);
        else
            read_new(r, &s->facts, text);
    }
}

static const char *const needles[] = {"out of memory to allocate ", "ut of memory allocating ",
                                      NULL};

extern const tv_log_format tv_log_format_oom_cupy;
const tv_log_format tv_log_format_oom_cupy = {"oom-cupy", needles, read};
