/* What the host's processors do: vmstat, top's summary lines, mpstat and sar. The first line of
 * vmstat is the mean since boot and is left out where another one follows. */
#include <math.h>
#include <string.h>

#include "glean.h"
#include "trace.h"

enum { MOST_COLUMNS = 24 };

typedef struct column_row {
    const char *name, *key;
    double factor;
} column_row;

/* ---- tables with a header: vmstat, mpstat, sar ---- */

static const column_row vmstat_columns[] = {
    {"r", "running", 1},
    {"b", "blocked", 1},
    {"us", "user_frac", 0.01},
    {"sy", "system_frac", 0.01},
    {"id", "idle_frac", 0.01},
    {"wa", "iowait_frac", 0.01},
    {"st", "steal_frac", 0.01},
    {"si", "swap_in_bytes_per_s", 1024},
    {"so", "swap_out_bytes_per_s", 1024},
};

static const column_row share_columns[] = {
    {"%usr", "user_frac", 0.01},      {"%user", "user_frac", 0.01},
    {"%sys", "system_frac", 0.01},    {"%system", "system_frac", 0.01},
    {"%iowait", "iowait_frac", 0.01}, {"%steal", "steal_frac", 0.01},
    {"%idle", "idle_frac", 0.01},
};

typedef struct table {
    const column_row *rows[MOST_COLUMNS]; /* NULL: not kept */
    size_t n;
    double sum[MOST_COLUMNS];
    double first[MOST_COLUMNS];
    size_t samples;
    size_t line;
    bool all_only; /* mpstat: rows of single processors are passed over */
} table;

static bool take_head(table *t, tv_str line, const column_row *known, size_t n_known)
{
    tv_str v[MOST_COLUMNS];
    *t = (table){0};
    t->n = tv_words(line, v, MOST_COLUMNS);
    size_t found = 0;
    for (size_t i = 0; i < t->n && i < MOST_COLUMNS; i++) {
        t->all_only = t->all_only || tv_str_is(v[i], "CPU");
        for (size_t k = 0; k < n_known; k++)
            if (tv_str_is(v[i], known[k].name)) {
                t->rows[i] = &known[k];
                found++;
            }
    }
    return t->n <= MOST_COLUMNS && found >= 4;
}

static bool take_values(table *t, tv_str line)
{
    tv_str v[MOST_COLUMNS];
    double x[MOST_COLUMNS] = {0};
    if (tv_words(line, v, MOST_COLUMNS) != t->n)
        return false;
    bool all = !t->all_only;
    for (size_t i = 0; i < t->n; i++) {
        all = all || tv_str_is(v[i], "all");
        const tv_double_read r = tv_take_number(&v[i]);
        if (t->rows[i] && (!r.ok || v[i].n))
            return false;
        x[i] = r.v;
    }
    if (!all)
        return true;
    for (size_t i = 0; i < t->n; i++) {
        t->sum[i] += x[i];
        if (!t->samples)
            t->first[i] = x[i];
    }
    t->samples++;
    return true;
}

static void end_table(tv_reading *r, table *t, bool skips_first, const char *kind)
{
    if (!t->samples)
        return;
    tv_sighting *s = tv_see(r, kind, t->line);
    const bool skip = skips_first && t->samples > 1;
    const double n = (double)(t->samples - skip);
    (void)tv_note_num(r->a, &s->facts, "samples", n);
    if (skips_first && t->samples == 1)
        (void)tv_note_bool(r->a, &s->facts, "since_boot", true);
    for (size_t i = 0; i < t->n; i++)
        if (t->rows[i])
            (void)tv_note_num(r->a, &s->facts, t->rows[i]->key,
                              (t->sum[i] - (skip ? t->first[i] : 0)) / n * t->rows[i]->factor);
    *t = (table){0};
}

static void read_tables(tv_reading *r, const column_row *known, size_t n_known, const char *mark,
                        bool skips_first, const char *kind)
{
    table t = {0};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        table next;
        if (tv_holds(line, mark) && take_head(&next, line, known, n_known)) {
            /* Headers come again every screen. */
            if (t.n == next.n && t.samples)
                continue;
            end_table(r, &t, skips_first, kind);
            t = next;
            t.line = i;
        } else if (t.n && line.n && !take_values(&t, line) && t.samples) {
            end_table(r, &t, skips_first, kind);
        }
    }
    end_table(r, &t, skips_first, kind);
}

/* ---- top ---- */

/* "%Cpu(s): 12.5 us,  3.1 sy,  0.0 ni, 80.1 id,  4.2 wa", "Cpu(s): 12.5%us, ..." */
static bool take_cpu_line(tv_note *facts, tv_arena *a, tv_str line)
{
    static const column_row parts[] = {{"us", "user_frac", 0.01},
                                       {"sy", "system_frac", 0.01},
                                       {"id", "idle_frac", 0.01},
                                       {"wa", "iowait_frac", 0.01},
                                       {"st", "steal_frac", 0.01}};
    tv_str rest, v[12];
    if (!tv_past(line, "Cpu(s):", &rest))
        return false;
    const size_t n = tv_fields(rest, ',', v, 12);
    for (size_t i = 0; i < n && i < 12; i++) {
        const tv_double_read r = tv_take_number(&v[i]);
        tv_str word = tv_str_trim(v[i]);
        if (tv_str_starts(word, TV_S("%")))
            word = tv_str_trim(tv_str_drop(word, 1));
        for (size_t k = 0; r.ok && k < sizeof parts / sizeof *parts; k++)
            if (tv_str_is(word, parts[k].name))
                (void)tv_note_num(a, facts, parts[k].key, r.v * parts[k].factor);
    }
    return true;
}

static void take_load(tv_note *facts, tv_arena *a, tv_str line)
{
    static const char *const keys[] = {"load_1min", "load_5min", "load_15min"};
    tv_str rest;
    if (!tv_past(line, "load average:", &rest) && !tv_past(line, "load averages:", &rest))
        return;
    for (size_t i = 0; i < 3; i++) {
        while (rest.n && (*rest.p == ',' || *rest.p == ' '))
            rest = tv_str_drop(rest, 1);
        const tv_double_read r = tv_take_number(&rest);
        if (!r.ok)
            return;
        (void)tv_note_num(a, facts, keys[i], r.v);
    }
}

static void read_top(tv_reading *r)
{
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        if (!tv_holds(line, "Cpu(s):"))
            continue;
        tv_sighting *s = tv_see(r, "cpu-load", i);
        (void)take_cpu_line(&s->facts, r->a, line);
        for (size_t k = i > 3 ? i - 3 : 0; k < i; k++)
            take_load(&s->facts, r->a, r->sheet->v[k].s);
        return; /* later screens say much the same */
    }
}

/* ---- free ---- */

/* "31Gi", "512M", "65805012": without -h and -b it counts KiB. */
static bool take_size(tv_str *s, double *v)
{
    static const char units[] = "BKMGT";
    const tv_double_read r = tv_take_number(s);
    if (!r.ok)
        return false;
    *v = r.v * 1024;
    const char *at = s->n && *s->p ? strchr(units, *s->p) : NULL;
    if (!at)
        return true;
    *v = r.v;
    for (const char *p = units; p < at; p++)
        *v *= 1024;
    while (s->n && *s->p != ' ')
        *s = tv_str_drop(*s, 1);
    return true;
}

static void read_free(tv_reading *r)
{
    static const char *const keys[] = {"mem_total_bytes",  "mem_used_bytes",
                                       "mem_free_bytes",   "shmem_bytes",
                                       "page_cache_bytes", "mem_available_bytes"};
    for (size_t i = 0; i + 1 < r->sheet->n; i++) {
        const tv_str head = r->sheet->v[i].s;
        tv_str rest;
        double v;
        if (!tv_holds(head, "buff/cache") || !tv_holds(head, "available") ||
            !tv_past(r->sheet->v[i + 1].s, "Mem:", &rest))
            continue;
        tv_sighting *s = tv_see(r, "free", i + 1);
        for (size_t k = 0; k < 6 && take_size(&rest, &v); k++)
            (void)tv_note_num(r->a, &s->facts, keys[k], v);
        return;
    }
}

static void read(tv_reading *r)
{
    read_tables(r, vmstat_columns, sizeof vmstat_columns / sizeof *vmstat_columns, "swpd", true,
                "vmstat");
    read_tables(r, share_columns, sizeof share_columns / sizeof *share_columns, "%idle", false,
                "cpu-load");
    read_top(r);
    read_free(r);
}

static const char *const needles[] = {" swpd ", "Cpu(s):", "%soft", "%nice", "buff/cache", NULL};

extern const tv_log_format tv_log_format_cpu_load;
const tv_log_format tv_log_format_cpu_load = {"cpu-load", needles, read};
