/* Loader workers that a signal ended: PyTorch's own words for it. */
#include "glean.h"
#include "trace.h"

static void read_worker(tv_reading *r, size_t i, tv_str line)
{
    const tv_double_read pid = tv_number_past(line, "(pid(s) ");
    const tv_str cause = tv_enclosed(line, "killed by signal: ", ".");
    tv_sighting *s = tv_see(r, "worker-lost", i);
    tv_note *facts = &s->facts;
    (void)tv_note_str(r->a, facts, "framework", TV_S("pytorch"));
    if (pid.ok)
        (void)tv_note_num(r->a, facts, "worker_pid", pid.v);
    if (cause.n)
        (void)tv_note_str(r->a, facts, "signal", cause);
    else
        (void)tv_note_null(r->a, facts, "signal");
}

static void read(tv_reading *r)
{
    for (size_t i = 0; i < r->sheet->n; i++)
        if (tv_holds(r->sheet->v[i].s, "DataLoader worker (pid"))
            read_worker(r, i, r->sheet->v[i].s);
}

static const char *const needles[] = {"DataLoader worker (pid", NULL};

extern const tv_log_format tv_log_format_worker_log;
const tv_log_format tv_log_format_worker_log = {"worker-log", needles, read};
