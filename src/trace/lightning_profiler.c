/* What Lightning's own profilers print: the table of SimpleProfiler (with bars, with or without
 * counts) and the sums of AdvancedProfiler. The facts are those of a key_averages table as far as
 * they go; the loader's share is taken of the epochs. */
#include <math.h>
#include <string.h>

#include "profiler_cell.h"
#include "trace.h"

enum { MOST_FIELDS = 8, MOST_ROWS = 400, COLUMN_NONE = -1 };

typedef struct columns {
    int action, mean, calls, total, percent;
} columns;

typedef struct reading {
    tv_reading *r;
    tv_sighting *s;
    columns at;
    size_t rows;
    double total_s, sum_s, epoch_s, loader_s, loader_calls;
    const tv_note *loader;
} reading;

/* Fields of a line with bars; those of an outer frame are empty and left out. */
static size_t bar_fields(tv_str line, tv_str *v)
{
    size_t n = tv_fields(line, '|', v, MOST_FIELDS);
    if (n > MOST_FIELDS)
        return 0;
    if (n && !v[0].n) {
        memmove(v, v + 1, (n - 1) * sizeof *v);
        n--;
    }
    return n && !v[n - 1].n ? n - 1 : n;
}

static bool take_head(tv_str line, columns *at)
{
    tv_str v[MOST_FIELDS];
    const size_t n = bar_fields(line, v);
    *at = (columns){COLUMN_NONE, COLUMN_NONE, COLUMN_NONE, COLUMN_NONE, COLUMN_NONE};
    for (size_t i = 0; i < n; i++) {
        if (tv_str_is(v[i], "Action"))
            at->action = (int)i;
        else if (tv_str_starts(v[i], TV_S("Mean duration")))
            at->mean = (int)i;
        else if (tv_str_starts(v[i], TV_S("Num calls")))
            at->calls = (int)i;
        else if (tv_str_starts(v[i], TV_S("Total time")))
            at->total = (int)i;
        else if (tv_str_starts(v[i], TV_S("Percentage")))
            at->percent = (int)i;
    }
    return at->action >= 0 && at->total >= 0;
}

static bool is_loader(tv_str name)
{
    return tv_str_has(name, TV_S("train_dataloader_next")) || tv_str_is(name, "get_train_batch") ||
           tv_str_is(name, "[TrainingEpochLoop].train_next");
}

static void add_row(reading *g, size_t i, tv_str name, double calls, double total_s, double frac)
{
    tv_arena *a = g->r->a;
    if (!g->s) {
        g->s = tv_see(g->r, "key_averages", i);
        (void)tv_note_str(a, &g->s->facts, "framework", TV_S("pytorch"));
        (void)tv_note_str(a, &g->s->facts, "wrapper", TV_S("lightning"));
        (void)tv_note_null(a, &g->s->facts, "device_column");
    }
    if (tv_str_is(name, "Total")) {
        g->total_s = total_s;
        return;
    }
    g->sum_s += total_s;
    if (g->rows >= MOST_ROWS)
        return;
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, "row");
    tv_put_u64(&b, g->rows++);
    tv_note *row = tv_at(g->r, tv_note_map(a, &g->s->facts, tv_cstr(a, tv_buf_str(&b))), i);
    (void)tv_note_str(a, row, "name", name);
    (void)tv_note_num(a, row, "cpu_total_s", total_s);
    if (calls > 0) {
        (void)tv_note_num(a, row, "calls", calls);
        (void)tv_note_num(a, row, "cpu_avg_s", total_s / calls);
    }
    if (!isnan(frac))
        (void)tv_note_num(a, row, "cpu_total_frac", frac);
    if (tv_str_is(name, "run_training_epoch"))
        g->epoch_s = total_s;
    if (is_loader(name)) {
        g->loader = row;
        g->loader_s = total_s;
        g->loader_calls = calls;
    }
}

static tv_str field(const tv_str *v, size_t n, int at)
{
    return at >= 0 && (size_t)at < n ? v[at] : (tv_str){0};
}

static bool take_row(reading *g, size_t i, tv_str line)
{
    tv_str v[MOST_FIELDS];
    const size_t n = bar_fields(line, v);
    const tv_str name = field(v, n, g->at.action);
    const tv_cell total = tv_cell_time(field(v, n, g->at.total), 1);
    if (!name.n || !total.ok || isnan(total.v))
        return false;
    const tv_cell calls = tv_cell_number(field(v, n, g->at.calls));
    const tv_cell mean = tv_cell_time(field(v, n, g->at.mean), 1);
    const tv_cell frac = tv_cell_frac(field(v, n, g->at.percent));
    double count = calls.ok ? calls.v : (double)NAN;
    if (!(count > 0) && mean.v > 0)
        count = round(total.v / mean.v);
    add_row(g, i, name, count, total.v, frac.ok ? frac.v : (double)NAN);
    return true;
}

/* The whole: the epochs, else all that was recorded. */
static void end_table(reading *g, const char *format)
{
    if (!g->s)
        return;
    tv_arena *a = g->r->a;
    tv_note *facts = &g->s->facts;
    (void)tv_note_str(a, facts, "format", tv_str_of(format));
    (void)tv_note_num(a, facts, "rows", (double)g->rows);
    /* The oldest tables have neither; their actions do not nest. A single action is no whole. */
    const double all_s = g->rows >= 3 ? g->sum_s : 0;
    const double whole_s = g->epoch_s > 0 ? g->epoch_s : g->total_s > 0 ? g->total_s : all_s;
    if (g->loader) {
        const double share = g->loader_s / whole_s;
        tv_note *loader = tv_note_str(a, facts, "loader", TV_S("unknown"));
        (void)tv_note_place(a, loader, g->loader->line, g->loader->text);
        (void)tv_note_num(a, facts, "loader_s", g->loader_s);
        if (g->loader_calls > 0)
            (void)tv_note_num(a, facts, "loader_batch_s", g->loader_s / g->loader_calls);
        if (whole_s > 0)
            (void)tv_note_num(a, facts, "loader_frac", share);
        if (whole_s > 0 && share >= 0.3)
            (void)tv_note_str(a, facts, "layer", TV_S("data loading"));
    }
    *g = (reading){.r = g->r};
}

/* "Profile stats for: get_train_batch", then "... function calls ... in 18.893 seconds" */
static bool take_advanced(reading *g, size_t i, tv_str *action)
{
    const tv_str line = g->r->sheet->v[i].s;
    tv_str rest;
    if (tv_past(line, "Profile stats for: ", &rest)) {
        *action = tv_str_trim(rest);
        return true;
    }
    if (!action->n || !tv_holds(line, " function calls ") || !tv_past(line, " in ", &rest))
        return false;
    const tv_double_read r = tv_take_number(&rest);
    if (r.ok && tv_holds(rest, "second"))
        add_row(g, i, *action, (double)NAN, r.v, (double)NAN);
    *action = (tv_str){0};
    return r.ok;
}

static void read_simple(reading *g)
{
    unsigned idle = 0;
    bool inside = false;
    for (size_t i = 0; i < g->r->sheet->n; i++) {
        /* Not tv_bare: "Action  | " looks like a container's name and its bar. */
        const tv_str line = tv_str_trim(g->r->sheet->v[i].s);
        columns at;
        if (tv_holds(line, "Action") && take_head(line, &at)) {
            end_table(g, "lightning-simple");
            g->at = at;
            inside = true;
            idle = 0;
        } else if (inside && line.n && !tv_is_rule(line)) {
            idle = take_row(g, i, line) ? 0 : idle + 1;
            inside = idle < 3;
        }
    }
    end_table(g, "lightning-simple");
}

static void read(tv_reading *r)
{
    reading g = {.r = r};
    read_simple(&g);
    tv_str action = {0};
    for (size_t i = 0; i < r->sheet->n; i++)
        (void)take_advanced(&g, i, &action);
    end_table(&g, "lightning-advanced");
}

static const char *const needles[] = {"Mean duration (s)", "Profile stats for: ", NULL};

extern const tv_log_format tv_log_format_lightning_profiler;
const tv_log_format tv_log_format_lightning_profiler = {"lightning-profiler", needles, read};
