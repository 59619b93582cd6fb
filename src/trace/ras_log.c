/* Reports of NCCL's RAS (ncclras, 2.24 and later): which processes do not answer, and which ranks
 * are behind. One sighting per report. */
#include "glean.h"
#include "trace.h"

#include <math.h>

typedef struct report {
    tv_reading *r;
    tv_note *facts;     /* NULL: none open */
    double most, least; /* operations that ranks have launched */

} report;

static void open_report(report *p, size_t i)
{
    p->facts = &tv_see(p->r, "ras", i)->facts;
    p->most = p->least = (double)NAN;
}

static void add_rank(report *p, const char *key, double rank)
{
    tv_note *list = tv_note_list(p->r->a, p->facts, key);
    for (const tv_note *item = list->first; item; item = item->next)
        if (fabs(item->number - rank) < 0.5)
            return;
    if (list->n < 256)
        (void)tv_note_num(p->r->a, list, NULL, rank);
}

/* "0   1   4   7-8   32   32   RUNNING  INCOMPLETE" */
static bool read_row(report *p, tv_str s, size_t i)
{
    tv_str w[12];
    const size_t n = tv_words(s, w, 12);
    if (n != 8 || !tv_str_u64(w[0]).ok || !tv_str_u64(w[1]).ok || !tv_str_u64(w[5]).ok)
        return false;
    tv_arena *a = p->r->a;
    tv_note *row = tv_note_map(a, tv_note_list(a, p->facts, "groups"), NULL);
    (void)tv_at(p->r, row, i);
    (void)tv_note_num(a, row, "ranks", (double)tv_str_u64(w[4]).v);
    (void)tv_note_str(a, row, "status", w[6]);
    (void)tv_note_str(a, row, "error", w[7]);
    if (!tv_noted(p->facts, "error") || !tv_str_is(w[7], "OK"))
        (void)tv_at(p->r, tv_note_str(a, p->facts, "error", w[7]), i);
    const double ranks = (double)tv_str_u64(w[4]).v, known = tv_noted_num(p->facts, "world_size");
    if (isnan(known) || ranks > known)
        (void)tv_note_num(a, p->facts, "world_size", ranks);
    return true;
}

/* "Process 3487984 on node 172.16.64.213 managing GPU 5" */
static bool read_process(report *p, tv_str s, size_t i)
{
    if (!tv_str_starts(s, TV_S("Process ")) || !tv_holds(s, " managing GPU"))
        return false;
    tv_arena *a = p->r->a;
    tv_note *list = tv_note_list(a, p->facts, "lost_processes");
    if (list->n >= 256)
        return true;
    tv_note *one = tv_note_map(a, list, NULL);
    (void)tv_at(p->r, one, i);
    const tv_double_read pid = tv_number_past(s, "Process ");
    if (pid.ok)
        (void)tv_note_num(a, one, "pid", pid.v);
    (void)tv_note_str(a, one, "node", tv_enclosed(s, " on node ", " managing"));
    tv_str rest;
    if (tv_past(s, "GPU", &rest))
        (void)tv_note_str(
            a, one, "gpu",
            tv_str_trim(tv_str_starts(rest, TV_S("s")) ? tv_str_drop(rest, 1) : rest));
    return true;
}

/* "26 ranks have launched up to operation 6650", "Rank 7 has launched up to operation 60 -- GPU
 * ..." */
static bool read_count(report *p, tv_str s)
{
    const tv_double_read operation = tv_number_past(s, " launched up to operation ");
    const bool none = tv_holds(s, "have not launched any") || tv_holds(s, "has not launched any");
    if (!operation.ok && !none)
        return false;
    const double v = operation.ok ? operation.v : 0;
    p->most = isnan(p->most) || v > p->most ? v : p->most;
    p->least = isnan(p->least) || v < p->least ? v : p->least;
    const tv_double_read rank =
        tv_str_starts(s, TV_S("Rank ")) ? tv_number_past(s, "Rank ") : (tv_double_read){0};
    if (rank.ok)
        add_rank(p, "outlier_ranks", rank.v);
    return true;
}

static bool read_rank(report *p, tv_str s, bool lost)
{
    const tv_double_read missing = tv_number_past(s, "The missing rank: ");
    tv_str rest;
    if (missing.ok) {
        add_rank(p, "missing_ranks", missing.v);
        return true;
    }
    if (tv_past(s, "The missing ranks: ", &rest)) {
        for (tv_double_read v = tv_take_number(&rest); v.ok; v = tv_take_number(&rest)) {
            add_rank(p, "missing_ranks", v.v);
            if (tv_str_starts(rest, TV_S(",")))
                rest = tv_str_drop(rest, 1);
        }
        return true;
    }
    const tv_double_read rank = tv_number_past(s, "Rank ");
    if (!tv_str_starts(s, TV_S("Rank ")) || !rank.ok || !tv_holds(s, " managed by process "))
        return false;
    add_rank(p, lost ? "missing_ranks" : "outlier_ranks", rank.v);
    return true;
}

static void close_report(report *p)
{
    if (!p->facts)
        return;
    if (!isnan(p->most)) {
        (void)tv_note_num(p->r->a, p->facts, "most_operations", p->most);
        (void)tv_note_num(p->r->a, p->facts, "least_operations", p->least);
    }
    p->facts = NULL;
}

enum { MOST_REPORTS = 256 };

static void read(tv_reading *r)
{
    report p = {.r = r};
    bool lost = false;
    size_t n = 0;
    for (size_t i = 0; i < r->sheet->n && n < MOST_REPORTS; i++) {
        const tv_str s = tv_str_trim(tv_bare(r->sheet->v[i].s));
        if (tv_str_starts(s, TV_S("Communicators... (")) ||
            (!p.facts && tv_holds(s, "Ranks in group")) ||
            (!p.facts && tv_str_starts(s, TV_S("Group ")) && tv_holds(s, "Comms") &&
             tv_holds(s, "Errors"))) {
            close_report(&p);
            open_report(&p, i);
            lost = false;
            n++;
            continue;
        }
        if (!p.facts)
            continue;
        if (tv_str_is(s, "DEAD") || tv_str_ends(s, TV_S("INCOMPLETE")))
            lost = true;
        else if (tv_str_ends(s, TV_S("MISMATCH")))
            lost = false;
        if (tv_str_is(s, "DEAD"))
            (void)tv_at(r, tv_note_bool(r->a, p.facts, "dead", true), i);
        if (!read_row(&p, s, i) && !read_process(&p, s, i) && !read_count(&p, s))
            (void)read_rank(&p, s, lost);
    }
    close_report(&p);
}

static const char *const needles[] = {"Communicators... (", "Missing communicator data from",
                                      "launched up to operation", NULL};

extern const tv_log_format tv_log_format_ras_log;
const tv_log_format tv_log_format_ras_log = {"nccl-ras", needles, read};
