/* nvidia-smi -q as text: headings by indentation, keys padded up to a colon. Pieces of it, and
 * pastes that lost their indentation, are read by the keys alone. */
#include <string.h>

#include "smi_log.h"

typedef struct query {
    tv_smi_log log;
    tv_smi_path path;
    size_t indent[TV_SMI_DEPTH];
    tv_smi_path last; /* the last heading alone: for pastes without indentation */
    size_t last_known;
} query;

static size_t indent_of(tv_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n && (s.p[i] == ' ' || s.p[i] == '\t'); i++)
        n += s.p[i] == '\t' ? 4 : 1;
    return n;
}

static void pop_to(query *q, size_t indent)
{
    while (q->path.n && q->indent[q->path.n - 1] >= indent)
        q->path.n--;
}

/* "GPU 00000000:10:1C.0" */
static tv_str bus_of(tv_str s)
{
    tv_str words[3];
    if (tv_words(s, words, 3) == 2 && tv_str_is(words[0], "GPU") && tv_smi_is_bus(words[1]))
        return words[1];
    return (tv_str){0};
}

/* A few words without a colon. */
static bool is_heading(tv_str s)
{
    if (!s.n || s.n > 48)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        const bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        if (!letter && !(i && strchr(" .-/()0123456789", c)))
            return false;
    }
    return true;
}

static void read_heading(query *q, tv_str s, size_t indent, size_t i)
{
    pop_to(q, indent);
    if (q->path.n < TV_SMI_DEPTH)
        q->indent[q->path.n] = indent;
    tv_smi_path_push(&q->path, s);
    q->last.n = 0;
    tv_smi_path_push(&q->last, s);
    tv_smi_log_heading(&q->log, &q->path, i);
}

static void read_key(query *q, tv_str s, size_t colon, size_t indent, size_t i)
{
    char buffer[TV_SMI_SLUG];
    const tv_str key = tv_smi_slug(tv_str_trim(tv_str_take(s, colon)), buffer);
    const tv_str value = tv_str_trim(tv_str_drop(s, colon + 1));
    pop_to(q, indent);
    if (tv_smi_log_value(&q->log, &q->path, key, value, i) ||
        tv_smi_log_value(&q->log, &q->last, key, value, i))
        q->last_known = i;
}

static void read_line(query *q, tv_str line, size_t i)
{
    const tv_str s = tv_str_trim(line);
    const size_t indent = indent_of(line);
    if (tv_holds(s, "NVSMI LOG")) {
        tv_smi_log_end(&q->log);
        tv_smi_log_begin(&q->log, i);
        q->path.n = q->last.n = 0;
        q->last_known = i;
        return;
    }
    const tv_str bus = bus_of(s);
    if (bus.n) {
        tv_smi_log_gpu(&q->log, bus, i);
        q->path.n = q->last.n = 0;
        q->last_known = i;
        return;
    }
    if (q->log.s && (i > q->last_known + 60 || tv_str_starts(s, TV_S("$ ")) ||
                     tv_str_starts(s, TV_S("| NVIDIA-SMI"))))
        tv_smi_log_end(&q->log);
    const char *colon = memchr(s.p, ':', s.n);
    if (colon && colon > s.p && (colon[-1] == ' ' || colon[-1] == '\t'))
        read_key(q, s, (size_t)(colon - s.p), indent, i);
    else if (!colon && is_heading(s))
        read_heading(q, s, indent, i);
}

static void read(tv_reading *r)
{
    query q = {.log = {.r = r}};
    for (size_t i = 0; i < r->sheet->n; i++)
        if (r->sheet->v[i].s.n)
            read_line(&q, r->sheet->v[i].s, i);
    tv_smi_log_end(&q.log);
}

static const char *const needles[] = {"NVSMI LOG",
                                      "Product Name  ",
                                      "GPU Current Temp",
                                      "GPU Slowdown Temp",
                                      "GPU T.Limit Temp",
                                      "Remapped Rows",
                                      "Retired Pages",
                                      "Clocks Throttle Reasons",
                                      "Clocks Event Reasons",
                                      "ECC Errors",
                                      "GPU Link Info",
                                      "Power Readings",
                                      "FB Memory Usage",
                                      "Performance State  ",
                                      "Persistence Mode  ",
                                      "Compute Mode  ",
                                      "Replays Since Reset",
                                      "Default Applications Clocks",
                                      "Applications Clocks",
                                      "Max Clocks",
                                      "Attached GPUs  ",
                                      "HW Slowdown  ",
                                      "Power Draw  ",
                                      "MIG Mode",
                                      NULL};

extern const tv_log_format tv_log_format_smi_query;
const tv_log_format tv_log_format_smi_query = {"nvidia-smi -q", needles, read};
