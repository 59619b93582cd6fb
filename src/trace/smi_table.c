/* The table of nvidia-smi, drivers 319 to 590, Linux, Windows and WSL, whole or in pieces: rows are
 * recognised by what their cells hold, never by columns, so that indentation, collapsed blanks and
 * a cut head or tail do no harm. */
#include <string.h>

#include "smi_table_rows.h"

static bool is_rule(tv_str s)
{
    size_t dashes = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (!strchr("+-=|: ", s.p[i]) || !s.p[i])
            return false;
        dashes += s.p[i] == '-' || s.p[i] == '=';
    }
    return dashes >= 8;
}

/* How wide the columns of a rule are; yields how many there are. */
static size_t segments(tv_str s, size_t *widths, size_t cap)
{
    size_t n = 0, run = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '-' || s.p[i] == '=') {
            run++;
            continue;
        }
        if (run && n < cap)
            widths[n++] = run;
        run = 0;
    }
    return n;
}

static bool is_title(tv_str s)
{
    tv_str rest;
    if (!tv_past(s, "NVIDIA-SMI ", &rest))
        return false;
    return tv_smi_is_version(tv_take_word(&rest));
}

static void put_version(tv_smi_table *t, const char *key, tv_str s, const char *const *labels,
                        size_t i)
{
    for (size_t k = 0; labels[k]; k++) {
        tv_str rest;
        if (!tv_past(s, labels[k], &rest))
            continue;
        rest = tv_str_trim(rest);
        size_t n = 0;
        while (n < rest.n && rest.p[n] != ' ' && rest.p[n] != '|')
            n++;
        if (n) {
            (void)tv_at(t->r, tv_note_str(t->r->a, &t->s->facts, key, tv_str_take(rest, n)), i);
            return;
        }
    }
    (void)tv_note_null(t->r->a, &t->s->facts, key);
}

/* "Thu Mar 28 12:49:52 2019", which stands above the title. */
static void put_time(tv_smi_table *t, size_t i)
{
    static const char days[] = "Mon Tue Wed Thu Fri Sat Sun ";
    for (size_t back = 1; back <= 2 && back <= i; back++) {
        const tv_str s = tv_bare(t->r->sheet->v[i - back].s);
        char day[5] = {0};
        if (s.n < 16 || s.n > 40)
            continue;
        memcpy(day, s.p, 4);
        if (day[3] == ' ' && strstr(days, day)) {
            (void)tv_note_str(t->r->a, &t->s->facts, "time", s);
            return;
        }
    }
}

static void begin_titled(tv_smi_table *t, tv_str s, size_t i)
{
    static const char *const smi[] = {"NVIDIA-SMI ", NULL};
    static const char *const driver[] = {"Driver Version:", "KMD Version:", NULL};
    static const char *const cuda[] = {"CUDA Version:", "CUDA UMD Version:", NULL};
    tv_smi_table_begin(t, i);
    put_version(t, "smi", s, smi, i);
    put_version(t, "driver", s, driver, i);
    put_version(t, "cuda", s, cuda, i);
    put_time(t, i);
    t->titled = true;
    t->title_line = i;
}

static void read_rule(tv_smi_table *t, tv_str s, size_t i)
{
    if (!t->s)
        return;
    size_t widths[4] = {0};
    const size_t n = segments(s, widths, 4);
    if (n == 3 && t->part == TV_SMI_CARDS && !t->first_width) {
        t->first_width = widths[0];
        t->second_width = widths[1];
    }
    if (t->titled && i == t->title_line + 1)
        t->plus_below_title = s.p[0] == '+';
}

/* "real    0m8.113s": what the shell's time says of the command. */
static void put_real_time(tv_smi_table *t, tv_str s, size_t i)
{
    tv_str rest;
    if (!t->s || !tv_str_starts(s, TV_S("real")) || !tv_past(s, "real", &rest))
        return;
    const tv_double_read first = tv_take_number(&rest);
    if (!first.ok)
        return;
    double seconds = first.v;
    if (rest.n && *rest.p == 'm') {
        rest = tv_str_drop(rest, 1);
        const tv_double_read second = tv_take_number(&rest);
        seconds = first.v * 60 + (second.ok ? second.v : 0);
    }
    (void)tv_at(t->r, tv_note_num(t->r->a, &t->s->facts, "took_s", seconds), i);
}

static void read_line(tv_smi_table *t, tv_str s, size_t i)
{
    put_real_time(t, s, i);
    tv_str cells[TV_SMI_CELLS] = {0};
    if (is_title(s)) {
        tv_smi_table_end(t);
        begin_titled(t, s, i);
        return;
    }
    if (is_rule(s)) {
        read_rule(t, s, i);
        return;
    }
    const size_t n = tv_smi_cells(s, cells);
    if (n)
        tv_smi_table_row(t, cells, n, i);
    else if (t->s && i > t->last_row + 12)
        tv_smi_table_end(t);
}

/* The line without what quotes it: "> " of a reply, "# " of a comment, a quotation mark. */
static tv_str unquoted(tv_str s)
{
    size_t n = 0;
    while (n < s.n && n < 6 && strchr("> '\"`#*", s.p[n]))
        n++;
    return n && n < s.n && (s.p[n] == '|' || s.p[n] == '+') ? tv_str_drop(s, n) : s;
}

static void read(tv_reading *r)
{
    tv_smi_table t = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str s = unquoted(tv_bare(r->sheet->v[i].s));
        if (s.n)
            read_line(&t, s, i);
    }
    tv_smi_table_end(&t);
}

static const char *const needles[] = {
    "NVIDIA-SMI ", "Persistence-M", "Pwr:Usage/Cap", "MIG devices:",         "MiB |",
    "0.0 Off |",   "0.0  On |",     "0.0 On |",      "GPU-Util  Compute M.", "Volatile Uncorr. ECC",
    NULL};

extern const tv_log_format tv_log_format_smi_table;
const tv_log_format tv_log_format_smi_table = {"nvidia-smi", needles, read};
