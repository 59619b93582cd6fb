/* Stress tests that compare their results: gpu-burn's progress lines and its last words. */
#include "glean.h"
#include "trace.h"

/* "GPU 3: FAULTY", "GPU 0: OK" */
static bool read_verdict(tv_reading *r, tv_note *gpus, size_t i)
{
    tv_str rest = tv_bare(r->sheet->v[i].s);
    if (!tv_str_starts(rest, TV_S("GPU ")))
        return false;
    rest = tv_str_drop(rest, 4);
    const tv_u64_read index = tv_take_u64(&rest);
    const bool ok = tv_str_is(rest, ": OK");
    if (!index.ok || (!ok && !tv_str_is(rest, ": FAULTY")))
        return false;
    tv_note *gpu = tv_note_map(r->a, gpus, NULL);
    (void)tv_note_num(r->a, gpu, "index", (double)index.v);
    (void)tv_note_bool(r->a, gpu, "faulty", !ok);
    (void)tv_at(r, gpu, i);
    return true;
}

/* "12.5%  proc'd: 100 (9000 Gflop/s) - 98 (8900 Gflop/s)  errors: 0 - 0  temps: 61 C - 70 C": the
 * most over all lines; a count for each card, parted by " - ". */
static void read_progress(tv_reading *r, tv_note *facts, size_t i)
{
    tv_str errors;
    if (!tv_past(r->sheet->v[i].s, "errors: ", &errors))
        return;
    tv_note *most = tv_note_list(r->a, facts, "errors");
    tv_note *at = most->first;
    for (bool more = true; more;) {
        const tv_double_read n = tv_take_number(&errors);
        if (!n.ok)
            return;
        if (!at)
            at = tv_note_num(r->a, most, NULL, n.v);
        if (n.v > at->number) {
            at->number = n.v;
            (void)tv_at(r, at, i);
        }
        at = at->next;
        errors = tv_str_trim(errors);
        /* gpu-burn adds "(WARNING!)" where errors were seen */
        tv_str rest;
        if (tv_str_starts(errors, TV_S("(")) && tv_past(errors, ")", &rest))
            errors = tv_str_trim(rest);
        more = tv_str_starts(errors, TV_S("- "));
        errors = tv_str_drop(errors, more ? 2 : 0);
    }
}

static void read(tv_reading *r)
{
    tv_sighting *s = NULL;
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        const bool progress = tv_holds(line, "proc'd:");
        const bool verdict = tv_holds(line, ": FAULTY") || tv_str_ends(line, TV_S(": OK"));
        if (!progress && !verdict)
            continue;
        if (!s && progress)
            s = tv_see(r, "stress-test", i);
        if (s && progress)
            read_progress(r, &s->facts, i);
        if (s && verdict)
            (void)read_verdict(r, tv_note_list(r->a, &s->facts, "verdicts"), i);
    }
}

static const char *const needles[] = {"proc'd:", NULL};

extern const tv_log_format tv_log_format_burn_log;
const tv_log_format tv_log_format_burn_log = {"burn-log", needles, read};
