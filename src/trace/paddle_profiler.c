/* What Paddle's profilers print: the timer's Perf Summary, the views of Profiler.summary() and the
 * report of Paddle 1.x. One sighting holds the views of one run; a view that comes a second time
 * begins the next run. The timer's max and min are not consistent, and may be inf: they are kept,
 * nothing is reckoned with them. */
#include <math.h>
#include <string.h>

#include "profiler_cell.h"
#include "trace.h"

typedef enum view {
    VIEW_NONE,
    VIEW_PERF,
    VIEW_DEVICE,
    VIEW_OVERVIEW,
    VIEW_MODEL,
    VIEW_DISTRIBUTION,
    VIEW_OPERATOR,
    VIEW_KERNEL,
    VIEW_MEMCPY,
    VIEW_USER,
    VIEW_REPORT, /* Paddle 1.x */
    VIEW_N,
} view;

enum { MOST_OPS = 200 };

typedef struct run {
    tv_reading *r;
    tv_sighting *s;
    view now;
    bool had[VIEW_N];
    double unit_s;
    bool has_cpu, has_gpu; /* groups of five of the table */
    bool gpu_half;         /* of the overview */
    bool no_calls;         /* its table has none: 2.3 and before */
} run;

static tv_note *facts_of(run *g, size_t i)
{
    if (!g->s) {
        g->s = tv_see(g->r, "paddle-profiler", i);
        (void)tv_note_str(g->r->a, &g->s->facts, "framework", TV_S("paddle"));
    }
    return &g->s->facts;
}

/* ---- which view ---- */

typedef struct title_row {
    const char *words;
    view view;
} title_row;

static const title_row titles[] = {
    {"Perf Summary", VIEW_PERF},
    {"Device Summary", VIEW_DEVICE},
    {"Overview Summary", VIEW_OVERVIEW},
    {"Model Summary", VIEW_MODEL},
    {"Distribution Summary", VIEW_DISTRIBUTION},
    {"Operator Summary", VIEW_OPERATOR},
    {"Kernel Summary", VIEW_KERNEL},
    {"Memory Manipulation Summary", VIEW_MEMCPY},
    {"UserDefined Summary", VIEW_USER},
    {"Profiling Report", VIEW_REPORT},
};

static void finish(run *g);

static void begin_view(run *g, size_t i, view v)
{
    if (g->had[v]) {
        tv_reading *r = g->r;
        finish(g);
        *g = (run){.r = r};
    }
    g->had[v] = true;
    g->now = v;
    g->unit_s = v == VIEW_PERF ? 1 : 1e-3;
    g->gpu_half = false;
    g->has_cpu = g->has_gpu = false;
    (void)facts_of(g, i);
}

/* Titles stand between rules: "------Model Summary------", "====Perf Summary====". */
static bool take_title(run *g, size_t i, tv_str line)
{
    for (size_t k = 0; k < sizeof titles / sizeof *titles; k++) {
        tv_str rest;
        if (!tv_past(line, titles[k].words, &rest))
            continue;
        const tv_str head = tv_str_take(line, line.n - rest.n - strlen(titles[k].words));
        if (!tv_is_rule(tv_str_cut(head, '>').head) && head.n)
            continue;
        begin_view(g, i, titles[k].view);
        return true;
    }
    return false;
}

static double unit_of(tv_str word)
{
    if (tv_str_starts(word, TV_S("ms")))
        return 1e-3;
    if (tv_str_starts(word, TV_S("us")))
        return 1e-6;
    return tv_str_starts(word, TV_S("ns")) ? 1e-9 : 1;
}

/* "Time unit: ms", "Time Unit: s, IPS Unit: steps/s" */
static bool take_unit(run *g, size_t i, tv_str line)
{
    tv_str rest;
    if (!tv_past(line, "Time unit: ", &rest) && !tv_past(line, "Time Unit: ", &rest))
        return false;
    g->unit_s = unit_of(rest);
    const tv_str ips = tv_enclosed(line, "IPS Unit: ", NULL);
    if (ips.n && g->now == VIEW_PERF)
        (void)tv_note_str(g->r->a, facts_of(g, i), "ips_unit", ips);
    return true;
}

/* ---- the timer ---- */

static void note_cell(run *g, tv_note *in, const char *key, const tv_cell *cell, double factor)
{
    if (cell->is_inf)
        (void)tv_note_null(g->r->a, in, key);
    else
        (void)tv_note_num(g->r->a, in, key, cell->v * factor);
}

/* "|   reader_cost   |     0.01236     |     0.01277     |       inf       |" */
static bool take_timer(run *g, size_t i, tv_str line)
{
    static const struct {
        const char *name, *keys[3], *inf;
        bool time;
    } rows[] = {
        {"reader_cost",
         {"reader_cost_avg_s", "reader_cost_max_s", "reader_cost_min_s"},
         "min_reader_cost",
         true},
        {"batch_cost",
         {"batch_cost_avg_s", "batch_cost_max_s", "batch_cost_min_s"},
         "min_batch_cost",
         true},
        {"ips", {"ips_avg", "ips_max", "ips_min"}, "min_ips", false},
    };
    tv_str fields[8];
    const size_t n = tv_fields(line, '|', fields, 8);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (n < 5 || !tv_str_is(fields[1], rows[k].name))
            continue;
        tv_note *facts = facts_of(g, i);
        for (size_t c = 0; c < 3; c++) {
            const tv_cell cell = tv_cell_number(fields[2 + c]);
            if (cell.ok)
                note_cell(g, facts, rows[k].keys[c], &cell, rows[k].time ? g->unit_s : 1);
            if (cell.ok && cell.is_inf && c == 2)
                (void)tv_note_str(g->r->a, facts, rows[k].inf, TV_S("inf"));
            if (cell.ok && cell.is_inf)
                (void)tv_note_bool(g->r->a, facts, "has_inf", true);
        }
        return true;
    }
    return false;
}

static bool take_ratio(run *g, size_t i, tv_str line)
{
    tv_str rest;
    if (!tv_past(line, "Reader Ratio:", &rest))
        return false;
    const tv_cell cell = tv_cell_frac(rest);
    if (!cell.ok)
        return false;
    (void)tv_at(g->r, tv_note_num(g->r->a, facts_of(g, i), "reader_ratio_frac", cell.v), i);
    return true;
}

/* ---- tables of "Total / Avg / Max / Min / Ratio(%)" ---- */

typedef struct five {
    tv_cell v[5];
} five;

static tv_str last_word(tv_str *s)
{
    *s = tv_str_trim(*s);
    size_t from = s->n;
    while (from && s->p[from - 1] != ' ' && s->p[from - 1] != '\t' && s->p[from - 1] != '/')
        from--;
    const tv_str word = tv_str_drop(*s, from);
    *s = tv_str_take(*s, from);
    return word;
}

/* Five cells with bars between them, from the right. */
static bool take_five(tv_str *s, five *out)
{
    tv_str t = *s;
    for (size_t k = 5; k-- > 0;) {
        out->v[k] = tv_cell_number(last_word(&t));
        if (!out->v[k].ok)
            return false;
        t = tv_str_trim(t);
        if (k && (!t.n || t.p[t.n - 1] != '/'))
            return false;
        if (k)
            t = tv_str_take(t, t.n - 1);
    }
    *s = t;
    return true;
}

static bool take_five_head(run *g, tv_str line)
{
    tv_str cpu, gpu;
    const bool has_cpu = tv_past(line, "CPU Total / Avg", &cpu);
    const bool has_gpu = tv_past(line, "GPU Total / Avg", &gpu);
    if (!has_cpu && !has_gpu)
        return false;
    g->has_cpu = has_cpu;
    g->has_gpu = has_gpu;
    return true;
}

static void note_five(run *g, tv_note *in, const char *const *keys, const five *v)
{
    for (size_t k = 0; k < 5; k++)
        if (v->v[k].ok && !isnan(v->v[k].v))
            (void)tv_note_num(g->r->a, in, keys[k], v->v[k].v * (k == 4 ? 0.01 : g->unit_s));
}

/* "Dataloader" -> "dataloader", "CPU(Process)" -> "cpu_process" */
static const char *key_of(tv_arena *a, tv_str name)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < name.n && b.n < 60; i++) {
        const char c = name.p[i];
        const bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        if (letter || (c >= '0' && c <= '9'))
            tv_putc(&b, letter ? (char)(c | 32) : c);
        else if (b.n && b.p[b.n - 1] != '_' && i + 1 < name.n)
            tv_putc(&b, '_');
    }
    return tv_cstr(a, tv_buf_str(&b));
}

/* The whole is called "Total Time" up to 2.3. */
static const char *part_key(tv_arena *a, tv_str name)
{
    return tv_str_is(name, "Total Time") ? "profilestep" : key_of(a, name);
}

static tv_note *row_note(run *g, size_t i, tv_str name)
{
    tv_arena *a = g->r->a;
    tv_note *facts = facts_of(g, i);
    if (g->now == VIEW_MODEL)
        return tv_note_map(a, tv_note_map(a, facts, "model"), part_key(a, name));
    static const char *const lists[VIEW_N] = {[VIEW_OPERATOR] = "operators",
                                              [VIEW_KERNEL] = "kernels",
                                              [VIEW_MEMCPY] = "copies",
                                              [VIEW_USER] = "user_events"};
    tv_note *list = lists[g->now] ? tv_note_list(a, facts, lists[g->now]) : NULL;
    if (!list || list->n >= MOST_OPS)
        return NULL;
    tv_note *row = tv_note_map(a, list, NULL);
    (void)tv_note_str(a, row, "name", name);
    return row;
}

static bool take_five_row(run *g, size_t i, tv_str line)
{
    static const char *const cpu_keys[] = {"cpu_total_s", "cpu_avg_s", "cpu_max_s", "cpu_min_s",
                                           "cpu_frac"};
    static const char *const gpu_keys[] = {"gpu_total_s", "gpu_avg_s", "gpu_max_s", "gpu_min_s",
                                           "gpu_frac"};
    five cpu = {0}, gpu = {0};
    tv_str s = line;
    if (!(g->has_cpu || g->has_gpu) || (g->has_gpu && !take_five(&s, &gpu)) ||
        (g->has_cpu && !take_five(&s, &cpu)))
        return false;
    const tv_cell calls = tv_cell_number(last_word(&s));
    const tv_str name = tv_str_trim(s);
    if (!calls.ok || !name.n)
        return false;
    /* Without a title the table is known by its first row. */
    const bool whole = tv_str_is(name, "ProfileStep") || tv_str_is(name, "Total Time");
    if (whole && (g->now == VIEW_NONE || g->now == VIEW_PERF)) {
        const bool has_cpu = g->has_cpu, has_gpu = g->has_gpu;
        begin_view(g, i, VIEW_MODEL);
        g->has_cpu = has_cpu;
        g->has_gpu = has_gpu;
    }
    tv_note *row = row_note(g, i, name);
    if (!row)
        return true;
    (void)tv_at(g->r, row, i);
    if (!isnan(calls.v))
        (void)tv_note_num(g->r->a, row, "calls", calls.v);
    note_five(g, row, cpu_keys, &cpu);
    note_five(g, row, gpu_keys, &gpu);
    return true;
}

/* ---- device, overview, distribution: name and one to three numbers ---- */

static bool take_device_row(run *g, size_t i, tv_str line)
{
    const tv_cell cell = tv_cell_frac(last_word(&line));
    const tv_str name = tv_str_trim(line);
    if (!cell.ok || !(tv_str_starts(name, TV_S("CPU(")) || tv_str_starts(name, TV_S("GPU"))))
        return false;
    tv_buf b = tv_buf_in(g->r->a);
    tv_puts(&b, key_of(g->r->a, name));
    tv_puts(&b, "_util_frac");
    (void)tv_at(g->r,
                tv_note_num(g->r->a, tv_note_map(g->r->a, facts_of(g, i), "device"),
                            tv_cstr(g->r->a, tv_buf_str(&b)), cell.v),
                i);
    return true;
}

static bool take_overview_row(run *g, size_t i, tv_str line)
{
    if (tv_holds(line, "GPU Time")) {
        g->gpu_half = true;
        return true;
    }
    if (tv_holds(line, "CPU Time") && tv_holds(line, "Event Type")) {
        g->no_calls = !tv_holds(line, "Calls");
        return true;
    }
    const tv_cell frac = tv_cell_number(last_word(&line));
    const tv_cell time = tv_cell_number(last_word(&line));
    const bool overview = g->now == VIEW_OVERVIEW;
    const bool with_calls = overview && !g->no_calls;
    const tv_cell calls = with_calls ? tv_cell_number(last_word(&line)) : (tv_cell){.ok = true};
    const tv_str name = tv_str_trim(line);
    if (!frac.ok || !time.ok || !calls.ok || !name.n || isnan(time.v))
        return false;
    tv_arena *a = g->r->a;
    tv_note *row =
        tv_note_map(a, tv_note_map(a, facts_of(g, i), overview ? "overview" : "distribution"),
                    part_key(a, name));
    (void)tv_at(g->r, row, i);
    if (with_calls && !isnan(calls.v))
        (void)tv_note_num(a, row, "calls", calls.v);
    (void)tv_note_num(a, row,
                      !overview     ? "total_s"
                      : g->gpu_half ? "gpu_s"
                                    : "cpu_s",
                      time.v * g->unit_s);
    (void)tv_note_num(a, row, "frac", frac.v / 100);
    return true;
}

/* ---- Paddle 1.x ---- */

/* "  Framework overhead     Total: 2.4     Ratio: 8.9%", "GpuMemcpySync   Calls: 5  Total: ..." */
static bool take_report_sum(run *g, size_t i, tv_str line)
{
    tv_str rest;
    if (!tv_past(line, "Ratio:", &rest) || !tv_holds(line, "Total:"))
        return false;
    const tv_cell frac = tv_cell_frac(rest);
    const tv_double_read total = tv_number_past(line, "Total:");
    const tv_double_read calls = tv_number_past(line, "Calls:");
    const char *end = memmem(line.p, line.n, calls.ok ? "Calls:" : "Total:", 6);
    if (!total.ok || !end)
        return false;
    tv_arena *a = g->r->a;
    tv_note *row = tv_note_map(a, tv_note_map(a, facts_of(g, i), "report"),
                               key_of(a, tv_str_trim(tv_str_span(line.p, end))));
    (void)tv_at(g->r, row, i);
    (void)tv_note_num(a, row, "total_s", total.v * g->unit_s);
    if (calls.ok)
        (void)tv_note_num(a, row, "calls", calls.v);
    if (frac.ok && !isnan(frac.v)) /* "18.2%" or "0.182" */
        (void)tv_note_num(a, row, "frac", tv_holds(rest, "%") ? frac.v : frac.v * 100);
    return true;
}

/* "thread0::conv2d  8  129.4  0.30 (0.0023)  129.1 (0.9976)  0.29 31.2 16.1 0.55" */
static bool take_event(run *g, size_t i, tv_str line)
{
    static const char *const keys[] = {"calls",    "total_s", "cpu_s", "cpu_frac", "gpu_s",
                                       "gpu_frac", "min_s",   "max_s", "avg_s",    "frac"};
    double v[10];
    size_t n = 0;
    tv_str name = {line.p, 0};
    while (name.n < line.n && line.p[name.n] != ' ' && line.p[name.n] != '\t')
        name.n++;
    tv_str s = tv_str_drop(line, name.n);
    while (n < 10) {
        s = tv_str_trim(s);
        if (s.n && (*s.p == '(' || *s.p == ')')) {
            s = tv_str_drop(s, 1);
            continue;
        }
        const tv_double_read r = tv_take_number(&s);
        if (!r.ok)
            break;
        v[n++] = r.v;
    }
    const bool both = n == 10;
    if ((!both && n != 6) || tv_str_trim(s).n)
        return false;
    tv_arena *a = g->r->a;
    tv_note *list = tv_note_list(a, facts_of(g, i), "events");
    if (list->n >= MOST_OPS)
        return true;
    tv_note *row = tv_at(g->r, tv_note_map(a, list, NULL), i);
    (void)tv_note_str(a, row, "name", name);
    for (size_t k = 0; k < n; k++) {
        const char *key = keys[both || k < 2 ? k : k + 4];
        (void)tv_note_num(a, row, key,
                          v[k] * (tv_str_ends(tv_str_of(key), TV_S("_s")) ? g->unit_s : 1));
    }
    return true;
}

/* ---- what follows ---- */

static void finish_model(run *g, tv_note *facts)
{
    tv_arena *a = g->r->a;
    const double step_s = tv_noted_num(facts, "model.profilestep.cpu_total_s");
    const double calls = tv_noted_num(facts, "model.profilestep.calls");
    double gpu_s = tv_noted_num(facts, "model.profilestep.gpu_total_s");
    if (isnan(gpu_s)) /* the whole is not printed: the parts make it */
        gpu_s = tv_noted_num(facts, "model.forward.gpu_total_s") +
                tv_noted_num(facts, "model.backward.gpu_total_s") +
                tv_noted_num(facts, "model.optimization.gpu_total_s");
    const double loader_s = tv_noted_num(facts, "model.dataloader.cpu_total_s");
    if (!(step_s > 0))
        return;
    (void)tv_note_num(a, facts, "dataloader_frac", loader_s / step_s);
    (void)tv_note_num(a, facts, "gpu_busy_frac", gpu_s / step_s);
    if (calls > 0)
        (void)tv_note_num(a, facts, "step_s", step_s / calls);
}

static void finish_overview(run *g, tv_note *facts)
{
    tv_arena *a = g->r->a;
    const double loader = tv_noted_num(facts, "overview.dataloader.frac");
    const double kernels = tv_noted_num(facts, "overview.kernel.frac");
    if (!tv_noted(facts, "dataloader_frac") && !isnan(loader))
        (void)tv_note_num(a, facts, "dataloader_frac", loader);
    if (!tv_noted(facts, "gpu_busy_frac") && !isnan(kernels))
        (void)tv_note_num(a, facts, "gpu_busy_frac", kernels);
    const double exposed = tv_noted_num(facts, "distribution.communication.frac") -
                           tv_noted_num(facts, "distribution.overlap.frac");
    (void)(isnan(exposed) ? NULL : tv_note_num(a, facts, "exposed_comm_frac", exposed));
}

static void finish_copies(run *g, tv_note *facts)
{
    double syncs = 0;
    const tv_note *copies = tv_noted(facts, "copies");
    for (const tv_note *row = copies ? copies->first : NULL; row; row = row->next)
        if (tv_str_starts(tv_noted_str(row, "name"), TV_S("GpuMemcpySync")) &&
            tv_str_ends(tv_noted_str(row, "name"), TV_S("->CPU")) && tv_noted_num(row, "calls") > 0)
            syncs += tv_noted_num(row, "calls");
    if (syncs > 0)
        (void)tv_note_num(g->r->a, facts, "forced_syncs", syncs);
}

static void finish(run *g)
{
    if (!g->s)
        return;
    tv_note *facts = &g->s->facts;
    finish_model(g, facts);
    finish_overview(g, facts);
    finish_copies(g, facts);
    const double reader = tv_noted_num(facts, "reader_ratio_frac");
    const double loader = tv_noted_num(facts, "dataloader_frac");
    if (reader > 0.1 || loader > 0.2)
        (void)tv_note_str(g->r->a, facts, "layer", TV_S("data loading"));
    if (g->had[VIEW_REPORT])
        (void)tv_note_str(g->r->a, facts, "format", TV_S("1.x"));
}

static bool take_row(run *g, size_t i, tv_str line)
{
    switch (g->now) {
    case VIEW_PERF:
        if (take_ratio(g, i, line) || take_timer(g, i, line))
            return true;
        break;
    case VIEW_DEVICE:
        return take_device_row(g, i, line);
    case VIEW_OVERVIEW:
    case VIEW_DISTRIBUTION:
        return take_overview_row(g, i, line);
    case VIEW_REPORT:
        return take_report_sum(g, i, line) || take_event(g, i, line);
    case VIEW_NONE:
    case VIEW_MODEL:
    case VIEW_OPERATOR:
    case VIEW_KERNEL:
    case VIEW_MEMCPY:
    case VIEW_USER:
    case VIEW_N:
        break;
    }
    return take_five_head(g, line) || take_five_row(g, i, line);
}

static void read(tv_reading *r)
{
    run g = {.r = r, .unit_s = 1e-3};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = tv_bare(r->sheet->v[i].s);
        if (!line.n || tv_is_rule(line) || take_title(&g, i, line) || take_unit(&g, i, line))
            continue;
        /* A timer block whose title was cut away. */
        if (g.now == VIEW_NONE && tv_str_starts(line, TV_S("Reader Ratio:")))
            begin_view(&g, i, VIEW_PERF);
        (void)take_row(&g, i, line);
    }
    finish(&g);
}

static const char *const needles[] = {"Perf Summary",         "Reader Ratio:",   "Model Summary",
                                      "Overview Summary",     "CPU Total / Avg", "Profiling Report",
                                      "Distribution Summary", "GPU Total / Avg", NULL};

extern const tv_log_format tv_log_format_paddle_profiler;
const tv_log_format tv_log_format_paddle_profiler = {"paddle-profiler", needles, read};
