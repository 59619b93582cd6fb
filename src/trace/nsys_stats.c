/* What `nsys stats` prints, as CSV or as columns, of any version: sums of kernels, copies and API
 * calls. A report is told by its header. The facts bear the names of a trace's
 * (docs/facts/trace.md) as far as sums go: there is no time line in them. */
#include <math.h>
#include <string.h>

#include "kernel_class.h"
#include "profiler_cell.h"
#include "timeline.h"
#include "trace.h"

enum { MOST_FIELDS = 16, MOST_TOP = 20 };

typedef enum report {
    REPORT_NONE,
    REPORT_KERNELS,
    REPORT_COPIES,
    REPORT_SIZES,
    REPORT_CALLS
} report;

typedef struct columns {
    report is;
    bool csv;
    size_t n;
    int total, count, name;
    double unit; /* of the total: seconds or bytes */
} columns;

typedef struct sums {
    tv_reading *r;
    tv_sighting *s;
    size_t at;
    double kernels, kernel_s, dense_s, work_s, comm_kernels, comm_s;
    double copy_s[3], copies[3], bytes[3]; /* to the device, back, other */
    double launches, launch_s, syncs, sync_s, mallocs, malloc_s, calls, call_s;
    bool seen[REPORT_CALLS + 1];
    size_t top;
} sums;

/* ---- fields ---- */

/* One record of CSV: quotes may hold commas. */
static size_t csv_fields(tv_str line, tv_str *v)
{
    size_t n = 0;
    while (n < MOST_FIELDS) {
        tv_cut cut = tv_str_cut(line, ',');
        if (line.n && *line.p == '"') {
            const tv_cut quoted = tv_str_cut(tv_str_drop(line, 1), '"');
            cut = tv_str_cut(quoted.tail, ',');
            cut.head = quoted.head;
        }
        v[n++] = tv_str_trim(cut.head);
        if (!cut.found)
            break;
        line = cut.tail;
    }
    return n;
}

/* Columns of the printed form stand two blanks apart; the name, last, may hold anything. */
static size_t wide_fields(tv_str line, tv_str *v, size_t most)
{
    size_t n = 0;
    line = tv_str_trim(line);
    while (line.n && n < most) {
        const char *gap = n + 1 < most ? memmem(line.p, line.n, "  ", 2) : NULL;
        v[n++] = gap ? tv_str_span(line.p, gap) : line;
        line = gap ? tv_str_trim(tv_str_span(gap, line.p + line.n)) : (tv_str){0};
    }
    return n;
}

static double unit_of(tv_str head)
{
    static const struct {
        const char *word;
        double factor;
    } units[] = {{"(ns)", 1e-9}, {"(us)", 1e-6}, {"(ms)", 1e-3},   {"(s)", 1},
                 {"(MB)", 1e6},  {"(KB)", 1e3},  {"(KiB)", 1024},  {"(MiB)", 1048576},
                 {"(B)", 1},     {"(GB)", 1e9},  {"(GiB)", 0x1p30}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (tv_holds(head, units[i].word))
            return units[i].factor;
    return 0;
}

static bool take_head(tv_str line, columns *c)
{
    tv_str v[MOST_FIELDS];
    *c = (columns){.csv = tv_holds(line, ","), .total = -1, .count = -1, .name = -1};
    c->n = c->csv ? csv_fields(line, v) : wide_fields(line, v, MOST_FIELDS);
    bool kernels = false, calls = false, copies = false;
    for (size_t i = 0; i < c->n; i++) {
        if (tv_str_starts(v[i], TV_S("Total")) && c->total < 0) {
            c->total = (int)i;
            c->unit = unit_of(v[i]);
        }
        kernels = kernels || tv_str_is(v[i], "Instances");
        calls = calls || tv_str_is(v[i], "Num Calls");
        copies = copies || tv_str_is(v[i], "Operation");
        if (tv_str_is(v[i], "Instances") || tv_str_is(v[i], "Num Calls") ||
            tv_str_is(v[i], "Count") || tv_str_is(v[i], "Operations"))
            c->count = (int)i;
        if (tv_str_is(v[i], "Name") || tv_str_is(v[i], "Operation"))
            c->name = (int)i;
    }
    if (c->total < 0 || c->count < 0 || c->name != (int)c->n - 1)
        return false;
    const bool times = tv_holds(v[c->total], "Time");
    if (copies)
        c->is = times ? REPORT_COPIES : REPORT_SIZES;
    else
        c->is = kernels ? REPORT_KERNELS : calls ? REPORT_CALLS : REPORT_NONE;
    /* Oldest: "Total" of sizes counts KiB. */
    if (c->unit <= 0)
        c->unit = times ? 1e-9 : 1024;
    return c->is != REPORT_NONE;
}

/* ---- rows ---- */

static size_t way_of(tv_str name)
{
    if (tv_holds(name, "HtoD") || tv_holds(name, "Host-to-Device"))
        return 0;
    return tv_holds(name, "DtoH") || tv_holds(name, "Device-to-Host") ? 1 : 2;
}

static void add_top(sums *g, size_t i, tv_str name, double count, double total_s)
{
    tv_arena *a = g->r->a;
    if (g->top++ >= MOST_TOP)
        return;
    tv_note *row = tv_at(g->r, tv_note_map(a, tv_note_list(a, &g->s->facts, "top"), NULL), i);
    (void)tv_note_str(a, row, "name", name);
    (void)tv_note_str(a, row, "class", tv_str_of(tv_kernel_class_name(tv_kernel_class_of(name))));
    (void)tv_note_num(a, row, "count", count);
    (void)tv_note_num(a, row, "total_s", total_s);
}

static void add_kernel(sums *g, size_t i, tv_str name, double count, double total_s)
{
    const tv_kernel_class is = tv_kernel_class_of(name);
    add_top(g, i, name, count, total_s);
    g->kernels += count;
    g->kernel_s += total_s;
    if (is == TV_CLASS_COMMUNICATION) {
        g->comm_kernels += count;
        g->comm_s += total_s;
        return;
    }
    g->work_s += total_s;
    if (is == TV_CLASS_GEMM || is == TV_CLASS_CONV || is == TV_CLASS_ATTENTION)
        g->dense_s += total_s;
}

static void add_call(sums *g, tv_str name, double count, double total_s)
{
    g->calls += count;
    g->call_s += total_s;
    if (tv_holds(name, "LaunchKernel") || tv_holds(name, "GraphLaunch")) {
        g->launches += count;
        g->launch_s += total_s;
    } else if (tv_call_waits(name)) {
        g->syncs += count;
        g->sync_s += total_s;
    } else if (tv_str_starts(name, TV_S("cudaMalloc")) || tv_str_starts(name, TV_S("cudaFree"))) {
        g->mallocs += count;
        g->malloc_s += total_s;
    }
}

static bool take_row(sums *g, const columns *c, size_t i, tv_str line)
{
    tv_str v[MOST_FIELDS];
    const size_t n = c->csv ? csv_fields(line, v) : wide_fields(line, v, c->n);
    if (n < c->n)
        return false;
    const tv_cell total = tv_cell_number(v[c->total]), count = tv_cell_number(v[c->count]);
    const tv_str name = v[c->name];
    if (!total.ok || !count.ok || isnan(total.v) || isnan(count.v) || !name.n)
        return false;
    const double sum = total.v * c->unit;
    const size_t way = way_of(name);
    switch (c->is) {
    case REPORT_NONE:
        break;
    case REPORT_KERNELS:
        add_kernel(g, i, name, count.v, sum);
        break;
    case REPORT_COPIES:
        g->copies[way] += count.v;
        g->copy_s[way] += sum;
        break;
    case REPORT_SIZES:
        g->bytes[way] += sum;
        break;
    case REPORT_CALLS:
        add_call(g, name, count.v, sum);
        break;
    }
    return true;
}

/* ---- facts ---- */

static void put(sums *g, const char *key, double v)
{
    if (v > 0)
        (void)tv_note_num(g->r->a, &g->s->facts, key, v);
}

static void end(sums *g)
{
    if (!g->s)
        return;
    static const char *const names[][4] = {{"htod", "htod_s", "htod_bytes", "htod_bytes_per_s"},
                                           {"dtoh", "dtoh_s", "dtoh_bytes", "dtoh_bytes_per_s"}};
    put(g, "kernels", g->kernels);
    put(g, "kernel_s", g->kernel_s);
    put(g, "kernel_mean_s", g->kernel_s / g->kernels);
    put(g, "nccl_kernels", g->comm_kernels);
    put(g, "nccl_kernel_s", g->comm_s);
    if (g->work_s > 0)
        (void)tv_note_num(g->r->a, &g->s->facts, "gemm_share", g->dense_s / g->work_s);
    for (size_t k = 0; k < 2; k++) {
        put(g, names[k][0], g->copies[k]);
        put(g, names[k][1], g->copy_s[k]);
        put(g, names[k][2], g->bytes[k]);
        if (g->copy_s[k] > 0 && g->bytes[k] > 0)
            put(g, names[k][3], g->bytes[k] / g->copy_s[k]);
    }
    put(g, "runtime", g->calls);
    put(g, "runtime_s", g->call_s);
    put(g, "launches", g->launches);
    put(g, "launch_s", g->launch_s);
    put(g, "sync_calls", g->syncs);
    put(g, "sync_call_s", g->sync_s);
    put(g, "device_mallocs", g->mallocs);
    put(g, "device_malloc_s", g->malloc_s);
}

static void read(tv_reading *r)
{
    sums g = {.r = r};
    columns c = {0};
    unsigned idle = 0;
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        columns next;
        if ((tv_holds(line, "Total") && take_head(line, &next))) {
            c = next;
            idle = 0;
            if (g.seen[c.is]) { /* the same report again: the next profile */
                end(&g);
                g = (sums){.r = r};
            }
            g.seen[c.is] = true;
            if (!g.s)
                g.s = tv_see(r, "nsys", i);
        } else if (c.is != REPORT_NONE && line.n && !tv_is_rule(line)) {
            idle = take_row(&g, &c, i, line) ? 0 : idle + 1;
            if (idle > 2)
                c.is = REPORT_NONE;
        }
    }
    end(&g);
}

static const char *const needles[] = {"Total Time (ns)",  "Total (MB)",  "Total (KB)",
                                      "Total,Operations", "Total (KiB)", NULL};

extern const tv_log_format tv_log_format_nsys_stats;
const tv_log_format tv_log_format_nsys_stats = {"nsys-stats", needles, read};
