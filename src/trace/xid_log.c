/* The driver's lines in a kernel log, and the bus errors around them: Xid events, a GPU that is
 * lost without one, initialisation, versions, AER. One sighting a file: events in the order of the
 * log, a burst of one fault as one event with a count. */
#include "bus_log.h"
#include "driver_log.h"
#include "kernel_line.h"
#include "xid_message.h"

#include <math.h>

enum { PLACES = 16 };

typedef struct xid_log {
    tv_reading *r;
    tv_sighting *s; /* made with the first line that belongs to it */
    tv_xid_message last;
    tv_note *last_event;
    uint64_t places[PLACES]; /* multiprocessors that faulted */
    size_t n_places;
    tv_aer_log aer;
} xid_log;

static tv_note *facts_of(xid_log *log, size_t i)
{
    if (!log->s)
        log->s = tv_see_once(log->r, "xid", i);
    return &log->s->facts;
}

static void note_clock(xid_log *log, tv_note *facts, const tv_kernel_line *line)
{
    tv_arena *a = log->r->a;
    if (line->format && !tv_noted(facts, "time_format"))
        (void)tv_note_str(a, facts, "time_format", tv_str_of(line->format));
    if (!isnan(line->ts_s) && !tv_noted(facts, "ts_s"))
        (void)tv_note_num(a, facts, "ts_s", line->ts_s);
    if (line->host_missing)
        (void)tv_note_bool(a, facts, "kernel_host_missing", true);
}

/* ---- Xid ---- */

static void note_form(tv_arena *a, tv_note *facts, tv_pid_form form)
{
    static const char *const words[] = {"no pid (450 and older, or no process)",
                                        "pid without name (470-510)", "pid and name (515+)"};
    const tv_str old = tv_noted_str(facts, "format");
    if (!old.n || tv_str_is(old, words[TV_PID_NONE]))
        (void)tv_note_str(a, facts, "format", tv_str_of(words[form]));
}

static bool is_fault(unsigned code)
{
    return code == 13 || code == 31 || code == 43 || code == 45;
}

static void note_place(xid_log *log, tv_note *facts, const tv_xid_message *m)
{
    if (!m->place.n || log->n_places >= PLACES)
        return;
    const uint64_t hash = tv_str_hash(m->place);
    for (size_t k = 0; k < log->n_places; k++)
        if (log->places[k] == hash)
            return;
    log->places[log->n_places++] = hash;
    if (log->n_places < 3)
        return;
    (void)tv_note_bool(log->r->a, facts, "many_sms", true);
}

static void note_event(xid_log *log, tv_note *facts, const tv_xid_message *m,
                       const tv_kernel_line *line, size_t i)
{
    tv_arena *a = log->r->a;
    tv_note *events = tv_note_list(a, facts, "events");
    tv_count_up(a, facts, "events_n");
    if (log->last_event && tv_xid_message_same(&log->last, m)) {
        tv_count_up(a, log->last_event, "n");
        return;
    }
    if (events->n >= TV_LIMIT_NOTE_ITEMS)
        return;
    tv_note *event = tv_at(log->r, tv_note_map(a, events, NULL), i);
    tv_xid_message_note(a, m, event);
    (void)tv_note_num(a, event, "n", 1);
    if (!isnan(line->ts_s))
        (void)tv_note_num(a, event, "ts_s", line->ts_s);
    if (line->clock.n)
        (void)tv_note_str(a, event, "time", line->clock);
    log->last = *m;
    log->last_event = event;
}

static void read_xid(xid_log *log, const tv_kernel_line *line, tv_str text, size_t i)
{
    tv_xid_message m;
    if (!tv_xid_message_read(text, &m))
        return;
    tv_note *facts = facts_of(log, i);
    note_clock(log, facts, line);
    note_form(log->r->a, facts, m.pid_form);
    note_place(log, facts, &m);
    note_event(log, facts, &m, line, i);
}

/* ---- the whole ---- */

static void read_nvrm(xid_log *log, const tv_kernel_line *line, tv_str text, size_t i)
{
    if (tv_str_starts(text, TV_S("Xid"))) {
        read_xid(log, line, text, i);
        return;
    }
    if (!tv_driver_line_is(text))
        return;
    tv_note *facts = facts_of(log, i);
    note_clock(log, facts, line);
    tv_driver_line(log->r, facts, text, i);
}

/* The device plugin's word for it: "XidCriticalError: Xid=79 on Device=GPU-...". */
static void read_plugin(xid_log *log, tv_str text, size_t i)
{
    tv_xid_message m;
    if (!tv_xid_message_plugin(text, &m))
        return;
    const tv_kernel_line line = {.ts_s = (double)NAN};
    note_event(log, facts_of(log, i), &m, &line, i);
}

static void read_line(xid_log *log, size_t i)
{
    const tv_str s = log->r->sheet->v[i].s;
    tv_str rest;
    if (tv_past(s, "XidCriticalError: Xid=", &rest)) {
        read_plugin(log, rest, i);
        return;
    }
    const bool nvrm = tv_past(s, "NVRM: ", &rest);
    if (!nvrm && !tv_bus_line_is(s) && !tv_module_line_is(s)) {
        if (log->aer.open)
            (void)tv_bus_more(log->r, &log->aer, &log->s->facts, tv_kernel_line_of(s).text, i);
        return;
    }
    const tv_kernel_line line = tv_kernel_line_of(s);
    if (nvrm) {
        /* in JSON the words end before the next member */
        tv_str inside;
        if (tv_past(line.text, "NVRM: ", &inside))
            rest = inside;
        read_nvrm(log, &line, tv_str_trim(rest), i);
        return;
    }
    tv_note *facts = facts_of(log, i);
    note_clock(log, facts, &line);
    if (tv_module_line_is(s))
        tv_module_line(log->r, facts, line.text, i);
    else
        tv_bus_line(log->r, &log->aer, facts, line.text, i);
}

/* What the log is known by where there is one event that it is about. */
static void sum_up(xid_log *log)
{
    if (!log->s)
        return;
    tv_arena *a = log->r->a;
    tv_note *facts = &log->s->facts;
    const tv_note *events = tv_noted(facts, "events");
    bool faults = events != NULL;
    bool lost = false;
    for (const tv_note *event = events ? events->first : NULL; event; event = event->next) {
        const double code = tv_noted_num(event, "xid");
        faults = faults && is_fault((unsigned)code);
        lost = lost || (unsigned)code == 79;
    }
    if (events)
        (void)tv_note_num(a, facts, "xid", tv_noted_num(events, "0.xid"));
    else if (tv_noted(facts, "nvrm"))
        (void)tv_note_null(a, facts, "xid");
    if (lost && tv_noted_n(facts, "bus_losses"))
        (void)tv_note_bool(a, facts, "duplicate_line", true);
    else if (!events && tv_noted_n(facts, "bus_losses"))
        (void)tv_note_num(a, facts, "equivalent_xid", 79);
    if (faults && tv_noted_bool(facts, "many_sms", false))
        (void)tv_note_str(a, facts, "likely", TV_S("application kernel"));
    tv_driver_sum_up(a, facts);
}

static void read(tv_reading *r)
{
    xid_log log = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++)
        read_line(&log, i);
    if (log.s)
        tv_bus_end(r, &log.aer, &log.s->facts);
    sum_up(&log);
}

static const char *const needles[] = {
    "NVRM: ",    "XidCriticalError: Xid=", "PCIe Bus Error: severity=",
    "AER: ",     "aer_status: 0x",         "available PCIe bandwidth",
    "nouveau 0", "nvidia-modeset: ",       NULL,
};

extern const tv_log_format tv_log_format_xid_log;
const tv_log_format tv_log_format_xid_log = {"xid-log", needles, read};
