/* NVSwitch errors in a kernel log: "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal,
 * Link 46 ...". The lines with register dumps that follow the first one are not events. */
#include "kernel_line.h"

#include <math.h>

static tv_str plain_severity(tv_str s)
{
    if (tv_str_starts(s, TV_S("Fatal")))
        return TV_S("Fatal");
    if (tv_str_starts(s, TV_S("Non-fatal")) || tv_str_starts(s, TV_S("Nonfatal")))
        return TV_S("Non-fatal");
    return (tv_str){0};
}

static void read_event(tv_reading *r, tv_note *facts, const tv_kernel_line *line, size_t i)
{
    tv_str rest;
    if (!tv_past(line->text, "SXid (", &rest))
        return;
    const tv_cut where = tv_str_cut(rest, ')');
    tv_str pci = where.head;
    if (tv_str_starts(pci, TV_S("PCI:")))
        pci = tv_str_drop(pci, 4);
    rest = where.tail;
    if (!where.found || !tv_str_starts(rest, TV_S(":")))
        return;
    rest = tv_str_drop(rest, 1);
    const tv_u64_read code = tv_take_u64(&rest);
    if (!code.ok)
        return;
    tv_count_up(r->a, facts, "lines");
    rest = tv_str_starts(rest, TV_S(",")) ? tv_str_trim(tv_str_drop(rest, 1)) : rest;
    if (tv_str_starts(rest, TV_S("Severity ")) || tv_str_starts(rest, TV_S("Data ")))
        return;
    tv_note *events = tv_note_list(r->a, facts, "events");
    if (events->n >= TV_LIMIT_NOTE_ITEMS)
        return;
    tv_note *event = tv_at(r, tv_note_map(r->a, events, NULL), i);
    (void)tv_note_num(r->a, event, "sxid", (double)code.v);
    (void)tv_note_str(r->a, event, "pci", pci);
    const tv_double_read device = tv_number_past(line->text, "nvidia-nvswitch");
    if (device.ok)
        (void)tv_note_num(r->a, event, "switch", device.v);
    const tv_str severity = plain_severity(rest);
    if (severity.n) {
        (void)tv_note_str(r->a, event, "severity", severity);
        rest = tv_str_trim(tv_str_cut(rest, ',').tail);
    }
    tv_str at;
    if (tv_past(rest, "Link ", &at)) {
        const tv_double_read link = tv_take_number(&at);
        if (link.ok) {
            (void)tv_note_num(r->a, event, "link", link.v);
            rest = tv_str_trim(at);
        }
    }
    (void)tv_note_str(r->a, event, "what", rest);
    if (!isnan(line->ts_s))
        (void)tv_note_num(r->a, event, "ts_s", line->ts_s);
    if (line->clock.n)
        (void)tv_note_str(r->a, event, "time", line->clock);
}

static void read(tv_reading *r)
{
    tv_sighting *s = NULL;
    for (size_t i = 0; i < r->sheet->n; i++) {
        if (!tv_holds(r->sheet->v[i].s, "SXid ("))
            continue;
        const tv_kernel_line line = tv_kernel_line_of(r->sheet->v[i].s);
        if (!s)
            s = tv_see_once(r, "sxid", i);
        read_event(r, &s->facts, &line, i);
    }
}

static const char *const needles[] = {"SXid (", NULL};

extern const tv_log_format tv_log_format_sxid_log;
const tv_log_format tv_log_format_sxid_log = {"sxid-log", needles, read};
