/* torch.profiler's printed table, key_averages().table(), of every era: which columns there are is
 * read from the header, cells are taken from the right, because names hold blanks and columns come
 * and go. Knows the words of the table, not what they mean for a verdict (loader_rules.c). */
#include <math.h>
#include <string.h>

#include "key_averages.h"
#include "profiler_cell.h"
#include "trace.h"

typedef enum column_sort {
    COLUMN_NAME,
    COLUMN_FRAC,
    COLUMN_TIME,
    COLUMN_BYTES,
    COLUMN_COUNT,
    COLUMN_FLOP,
    COLUMN_SHAPES,
    COLUMN_TEXT, /* the rest of the line */
} column_sort;

typedef struct column {
    column_sort sort;
    const char *key; /* in the facts; NULL: not kept */
    bool device;
    double factor;
} column;

/* Rows of a table that are kept; a row whose columns are looked for. */
enum { MOST_COLUMNS = 32, MOST_ROWS = 2000, MOST_ROW_BYTES = 4096 };

typedef struct layout {
    column v[MOST_COLUMNS];
    size_t n;
    tv_str device; /* "CUDA"; empty: no device columns */
    bool old;      /* "Self CPU total %", up to 1.6 */
    bool fracs;
    bool self_device;
    bool memory;
} layout;

/* What may stand in a header, the longer ones first. '@' is the device's word. */
typedef struct known_column {
    const char *words;
    column column;
} known_column;

static const known_column known[] = {
    {"Self CPU total %", {COLUMN_FRAC, "self_cpu_frac", false, 0}},
    {"Self CPU total", {COLUMN_TIME, "self_cpu_s", false, 0}},
    {"Self CPU time avg", {COLUMN_TIME, "self_cpu_avg_s", false, 0}},
    {"Self CPU Mem", {COLUMN_BYTES, "self_cpu_mem_bytes", false, 0}},
    {"Self CPU %", {COLUMN_FRAC, "self_cpu_frac", false, 0}},
    {"Self CPU", {COLUMN_TIME, "self_cpu_s", false, 0}},
    {"CPU total %", {COLUMN_FRAC, "cpu_total_frac", false, 0}},
    {"CPU total", {COLUMN_TIME, "cpu_total_s", false, 0}},
    {"CPU time avg", {COLUMN_TIME, "cpu_avg_s", false, 0}},
    {"CPU Mem", {COLUMN_BYTES, "cpu_mem_bytes", false, 0}},
    {"Self @ total %", {COLUMN_FRAC, "self_@_frac", true, 0}},
    {"Self @ total", {COLUMN_TIME, "self_@_s", true, 0}},
    {"Self @ time avg", {COLUMN_TIME, "self_@_avg_s", true, 0}},
    {"Self @ Mem", {COLUMN_BYTES, "self_@_mem_bytes", true, 0}},
    {"Self @ %", {COLUMN_FRAC, "self_@_frac", true, 0}},
    {"Self @", {COLUMN_TIME, "self_@_s", true, 0}},
    {"@ total %", {COLUMN_FRAC, "@_total_frac", true, 0}},
    {"@ total", {COLUMN_TIME, "@_total_s", true, 0}},
    {"@ time avg", {COLUMN_TIME, "@_avg_s", true, 0}},
    {"@ Mem", {COLUMN_BYTES, "@_mem_bytes", true, 0}},
    {"# of Calls", {COLUMN_COUNT, "calls", false, 0}},
    {"Number of Calls", {COLUMN_COUNT, "calls", false, 0}},
    {"Node ID", {COLUMN_COUNT, NULL, false, 0}},
    {"Overload Name", {COLUMN_TEXT, NULL, false, 0}},
    {"Input Shapes", {COLUMN_SHAPES, NULL, false, 0}},
    {"Source Location", {COLUMN_TEXT, NULL, false, 0}},
    {"Total KFLOPs", {COLUMN_FLOP, "flop", false, 1e3}},
    {"Total MFLOPs", {COLUMN_FLOP, "flop", false, 1e6}},
    {"Total GFLOPs", {COLUMN_FLOP, "flop", false, 1e9}},
    {"Total TFLOPs", {COLUMN_FLOP, "flop", false, 1e12}},
    {"Total PFLOPs", {COLUMN_FLOP, "flop", false, 1e15}},
    {"Total FLOPs", {COLUMN_FLOP, "flop", false, 1}},
    {"MFLOPs", {COLUMN_FLOP, "flop", false, 1e6}},
    {"Name", {COLUMN_NAME, NULL, false, 0}},
};

/* ---- the header ---- */

static tv_str past_space(tv_str s)
{
    while (s.n && (*s.p == ' ' || *s.p == '\t'))
        s = tv_str_drop(s, 1);
    return s;
}

/* A word of a header; any run of blanks in s stands for one. */
static bool takes_words(tv_str *s, const char *words, tv_str *device)
{
    tv_str t = *s;
    for (const char *p = words; *p;) {
        if (*p == ' ') {
            const tv_str rest = past_space(t);
            if (rest.n == t.n)
                return false;
            t = rest;
            p++;
        } else if (*p == '@') {
            const tv_str word = tv_take_word(&t);
            if (!word.n || tv_str_is(word, "CPU") || tv_str_is(word, "Self"))
                return false;
            *device = word;
            p++;
        } else {
            if (!t.n || *t.p != *p)
                return false;
            t = tv_str_drop(t, 1);
            p++;
        }
    }
    if (t.n && *t.p != ' ' && *t.p != '\t')
        return false;
    *s = t;
    return true;
}

static const char *device_key(tv_arena *a, const char *pattern, tv_str device)
{
    tv_buf b = tv_buf_in(a);
    for (const char *p = pattern; *p; p++)
        if (*p == '@')
            tv_put(&b, tv_str_lower(a, device));
        else
            tv_putc(&b, *p);
    return tv_cstr(a, tv_buf_str(&b));
}

static bool add_column(tv_arena *a, layout *t, tv_str *s)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        tv_str device = {0};
        const column *c = &known[i].column;
        if (!takes_words(s, known[i].words, &device))
            continue;
        /* One table has one device. */
        if (device.n && t->device.n && !tv_str_eq(device, t->device))
            return false;
        column *at = &t->v[t->n++];
        *at = *c;
        if (device.n) {
            t->device = device;
            at->key = device_key(a, c->key, device);
            t->self_device = t->self_device || strncmp(c->key, "self_@_s", 8) == 0;
        }
        t->old = t->old || tv_str_is(tv_str_of(known[i].words), "Self CPU total");
        t->fracs = t->fracs || c->sort == COLUMN_FRAC;
        t->memory = t->memory || c->sort == COLUMN_BYTES;
        return true;
    }
    return false;
}

/* The columns, where the whole line is a header. What stands before "Name" is a logger's. */
static bool take_header(tv_arena *a, tv_str line, layout *t)
{
    tv_str s;
    *t = (layout){0};
    if (!tv_past(line, "Name", &s) ||
        !(tv_holds(s, "CPU total") || tv_holds(s, "Self CPU") || tv_holds(s, "CPU time avg")))
        return false;
    t->v[t->n++].sort = COLUMN_NAME;
    for (s = past_space(s); s.n && t->n < MOST_COLUMNS; s = past_space(s))
        if (!add_column(a, t, &s))
            break;
    /* A header that the terminal's edge cut is one all the same. */
    return t->n >= 3;
}

/* ---- rows ---- */

typedef struct row {
    tv_str name;
    tv_cell cells[MOST_COLUMNS];
    bool bare_zero; /* a percent cell printed as 0: its total was zero */
} row;

static tv_str last_token(tv_str s, tv_str *rest)
{
    size_t end = s.n;
    while (end && (s.p[end - 1] == ' ' || s.p[end - 1] == '\t'))
        end--;
    size_t from = end;
    while (from && s.p[from - 1] != ' ' && s.p[from - 1] != '\t')
        from--;
    *rest = tv_str_take(s, from);
    return tv_str_span(s.p + from, s.p + end);
}

/* "3.75 Kb": a unit that stands apart belongs to the number before it. */
static tv_str last_measure(tv_str s, tv_str *rest)
{
    static const char *const units[] = {"b", "Kb", "Mb", "Gb", "Tb", "KB", "MB", "GB", "B"};
    const tv_str word = last_token(s, rest);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (tv_str_is(word, units[i])) {
            const tv_str number = last_token(*rest, rest);
            return tv_str_span(number.p, word.p + word.n);
        }
    return word;
}

/* Shapes begin at a bracket behind a whole number: the calls. */
static bool drop_shapes(tv_str *s)
{
    for (size_t i = s->n; i-- > 1;) {
        tv_str rest;
        if (s->p[i] != '[' || (s->p[i - 1] != ' ' && s->p[i - 1] != '\t'))
            continue;
        const tv_str before = last_token(tv_str_take(*s, i), &rest);
        if (!tv_str_u64(before).ok)
            continue;
        *s = tv_str_take(*s, i);
        return true;
    }
    return false;
}

static tv_cell cell_of(const column *c, tv_str s)
{
    switch (c->sort) {
    case COLUMN_FRAC:
        return tv_cell_frac(s);
    case COLUMN_TIME:
        return tv_cell_time(s, 0);
    case COLUMN_BYTES:
        return tv_cell_bytes(s);
    case COLUMN_COUNT:
    case COLUMN_FLOP: {
        tv_cell cell = tv_cell_number(s);
        if (c->sort == COLUMN_FLOP)
            cell.v *= c->factor;
        return cell;
    }
    case COLUMN_NAME:
    case COLUMN_SHAPES:
    case COLUMN_TEXT:
        break;
    }
    return (tv_cell){0};
}

/* Free text at the end (source locations) is passed over: rows are tried from every place where
 * a column could end. */
static bool take_cells(const layout *t, tv_str s, size_t columns, row *out)
{
    for (size_t k = columns; k-- > 1;) {
        const column *c = &t->v[k];
        if (c->sort == COLUMN_SHAPES) {
            if (!drop_shapes(&s))
                return false;
            continue;
        }
        if (c->sort == COLUMN_TEXT) /* "Overload Name": a word or nothing, behind the name */
            continue;
        const tv_str cell = c->sort == COLUMN_BYTES ? last_measure(s, &s) : last_token(s, &s);
        out->cells[k] = cell_of(c, cell);
        if (!out->cells[k].ok)
            return false;
        out->bare_zero = out->bare_zero || (c->sort == COLUMN_FRAC && tv_str_is(cell, "0"));
    }
    out->name = tv_str_trim(s);
    return out->name.n > 0;
}

static bool take_row(const layout *t, tv_str line, row *out)
{
    size_t n = t->n;
    bool text = false;
    while (n > 1 && t->v[n - 1].sort == COLUMN_TEXT) {
        n--;
        text = true;
    }
    *out = (row){0};
    if (take_cells(t, line, n, out))
        return true;
    line = tv_str_take(line, text ? MOST_ROW_BYTES : 0);
    for (size_t end = line.n; end > 1; end--) {
        *out = (row){0};
        if (line.p[end - 1] != ' ' && (end == line.n || line.p[end] == ' ') &&
            take_cells(t, tv_str_take(line, end), n, out))
            return true;
    }
    return false;
}

/* The overload's name is a column of its own, two blanks from the name. */
static tv_str name_alone(const layout *t, tv_str name)
{
    const char *gap = name.n ? memmem(name.p, name.n, "  ", 2) : NULL;
    return t->n > 1 && t->v[1].sort == COLUMN_TEXT && gap ? tv_str_span(name.p, gap) : name;
}

/* ---- facts ---- */

typedef struct reading {
    tv_reading *r;
    const layout *t;
    tv_sighting *s;
    size_t rows;
    bool bare_zero;
    bool gpu_rows; /* names that only a run with a GPU has */
    unsigned idle; /* lines in a row that are no rows */
} reading;

static const char *row_key(tv_arena *a, size_t i)
{
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, "row");
    tv_put_u64(&b, i);
    return tv_cstr(a, tv_buf_str(&b));
}

static void note_row(const reading *g, tv_note *in, const row *w)
{
    for (size_t k = 1; k < g->t->n; k++)
        if (g->t->v[k].key && w->cells[k].ok)
            (void)tv_note_num(g->r->a, in, g->t->v[k].key, w->cells[k].v);
}

static bool is_gpu_name(tv_str name)
{
    static const char *const marks[] = {
        "cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSync", "cudaDeviceSync",
        "cudaMalloc",       "Memcpy HtoD",     "Memcpy DtoH",    "cudaEventRecord",
        "cudaFree",         "hipLaunchKernel", "hipMemcpy",      "hipModuleLaunchKernel",
        "cuLaunchKernel",   "ncclDevKernel",   "ncclKernel",     "Activity Buffer R",
        "aten::cudnn_",     "aten::_cudnn"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (tv_holds(name, marks[i]))
            return true;
    return false;
}

static void add_row(reading *g, size_t i, const row *w)
{
    tv_arena *a = g->r->a;
    tv_note *facts = &g->s->facts;
    const size_t index = g->rows++;
    g->bare_zero = g->bare_zero || w->bare_zero;
    g->gpu_rows = g->gpu_rows || is_gpu_name(w->name);
    if (index >= MOST_ROWS)
        return;
    tv_note *note = tv_at(g->r, tv_note_map(a, facts, row_key(a, index)), i);
    (void)tv_note_str(a, note, "name", name_alone(g->t, w->name));
    (void)tv_note_bool(a, note, "name_truncated", tv_str_ends(w->name, TV_S("...")));
    note_row(g, note, w);
}

/* "Self CPU time total: 67.016ms", "CUDA time total: 3.2s" */
static bool take_footer(reading *g, size_t i, tv_str line)
{
    tv_str rest;
    if (!tv_past(line, " time total:", &rest))
        return false;
    const tv_cell cell = tv_cell_time(rest, 0);
    if (!cell.ok)
        return false;
    tv_arena *a = g->r->a;
    tv_str head = tv_bare(tv_str_take(line, (size_t)(rest.p - line.p) - strlen(" time total:")));
    const bool self = tv_str_starts(head, TV_S("Self "));
    const tv_str word = tv_str_trim(self ? tv_str_drop(head, 5) : head);
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, "self_");
    tv_put(&b, tv_str_lower(a, word));
    tv_puts(&b, "_total_s");
    (void)tv_at(g->r, tv_note_num(a, &g->s->facts, tv_cstr(a, tv_buf_str(&b)), cell.v), i);
    if (!tv_str_is(word, "CPU"))
        (void)tv_note_num(a, &g->s->facts, "self_device_total_s", cell.v);
    return true;
}

/* What the table is, before its rows. */
static void note_layout(reading *g)
{
    tv_arena *a = g->r->a;
    tv_note *facts = &g->s->facts;
    const layout *t = g->t;
    (void)tv_note_str(a, facts, "framework", TV_S("pytorch"));
    (void)tv_note_str(a, facts, "format", t->old ? TV_S("<=1.6") : TV_S(">=1.7"));
    if (t->device.n)
        (void)tv_note_str(a, facts, "device_column", t->device);
    else
        (void)tv_note_null(a, facts, "device_column");
    (void)tv_note_num(a, facts, "rows", 0);
    (void)tv_note_bool(a, facts, "percent_columns", t->fracs);
    (void)tv_note_bool(a, facts, "memory_columns", t->memory);
    if (t->device.n) {
        (void)tv_note_bool(a, facts, "self_cuda", t->self_device);
        (void)tv_note_bool(a, facts, "double_counting", !t->self_device);
    }
}

/* True while the table goes on. */
static bool take_line(reading *g, size_t i)
{
    const tv_str line = g->r->sheet->v[i].s;
    row w;
    layout other;
    if (tv_is_rule(line))
        return true;
    if (take_footer(g, i, line)) {
        g->idle = 0;
        return true;
    }
    if (take_row(g->t, line, &w)) {
        add_row(g, i, &w);
        g->idle = 0;
        return true;
    }
    if (line.n && take_header(g->r->a, line, &other))
        return false;
    return ++g->idle <= 3;
}

static size_t read_table(tv_reading *r, size_t header, const layout *t, bool wrapped)
{
    reading g = {.r = r, .t = t, .s = tv_see(r, "key_averages", header)};
    note_layout(&g);
    if (wrapped)
        (void)tv_note_str(r->a, &g.s->facts, "wrapper", TV_S("lightning"));
    size_t i = header + 1;
    while (i < r->sheet->n && take_line(&g, i))
        i++;
    tv_note *facts = &g.s->facts;
    (void)tv_note_num(r->a, facts, "rows", (double)g.rows);
    if (g.bare_zero)
        (void)tv_note_bool(r->a, facts, "bare_zero_percent_cell", true);
    tv_key_averages_sum(r->a, facts, t->device, g.gpu_rows);
    return i;
}

static void read(tv_reading *r)
{
    bool wrapped = false; /* "FIT Profiler Report": Lightning's */
    for (size_t i = 0; i < r->sheet->n;) {
        const tv_str line = r->sheet->v[i].s;
        layout t;
        wrapped = wrapped || tv_holds(line, "Profiler Report");
        if (tv_holds(line, "Name") && take_header(r->a, line, &t))
            i = read_table(r, i, &t, wrapped);
        else
            i++;
    }
}

static const char *const needles[] = {"CPU total", "Self CPU ", "CPU time avg", NULL};

extern const tv_log_format tv_log_format_key_averages;
const tv_log_format tv_log_format_key_averages = {"key-averages", needles, read};
