/* iostat -x of every sysstat, as text and as JSON: columns by their header, so -m, -s, -y and -h
 * read alike. %util is kept and decides nothing (sysstat/sysstat#187). */
#include "iostat.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "profiler_cell.h"
#include "trace.h"

/* Documents of one sheet: each is looked for up to the sheet's end. */
enum { MOST_COLUMNS = 40, MOST_DOCUMENTS = 8 };

typedef struct head {
    tv_str names[MOST_COLUMNS];
    size_t n;
    bool device_last; /* the -h form of sysstat 12 */
} head;

typedef struct watch {
    tv_reading *r;
    tv_sighting *s;
    tv_iostat_reports all;
    head head;
    bool banner;  /* "Linux ...": reports begin here, the first one since boot */
    bool skipped; /* -y: it is not printed */
    size_t columns;
    bool flush;
    bool old;
    tv_note *cpu; /* of the report that comes */
    tv_str alone; /* a device's name on a line of its own */
    uint64_t alone_at;
    tv_str cpu_names[8];
    size_t n_cpu_names;
} watch;

/* ---- lines ---- */

static tv_str without_colon(tv_str s)
{
    return tv_str_ends(s, TV_S(":")) ? tv_str_take(s, s.n - 1) : s;
}

static bool take_head(tv_str line, head *h)
{
    *h = (head){0};
    h->n = tv_words(line, h->names, MOST_COLUMNS);
    if (h->n < 3 || h->n > MOST_COLUMNS)
        return false;
    h->device_last = tv_str_is(without_colon(h->names[h->n - 1]), "Device");
    if (!h->device_last && !tv_str_is(without_colon(h->names[0]), "Device"))
        return false;
    for (size_t i = 0; i < h->n; i++)
        if (tv_str_ends(h->names[i], TV_S("/s")) || tv_str_is(h->names[i], "%util") ||
            tv_str_is(h->names[i], "tps"))
            return true;
    return false;
}

static double power_of(char c)
{
    static const char units[] = "kMGT";
    const char *at = c ? strchr(units, c) : NULL;
    double v = 1;
    for (const char *p = units; at && p <= at; p++)
        v *= 1024;
    return v;
}

/* "5.3k", "0.1%", "12,50": *scaled where a unit stands with it. */
static bool take_cell(tv_str s, double *v, bool *scaled)
{
    const tv_double_read r = tv_take_number(&s);
    *v = r.v;
    *scaled = false;
    if (!r.ok)
        return false;
    if (s.n == 1 && strchr("kMGT", *s.p)) {
        *v = r.v * power_of(*s.p);
        *scaled = true;
        return true;
    }
    return !s.n || tv_str_is(s, "%");
}

/* The report that is being read; a device that is there already begins the next one. */
static tv_note *device_of(watch *w, tv_str name, size_t line)
{
    tv_arena *a = w->r->a;
    const char *key = tv_cstr(a, name);
    tv_iostat_report *last = w->all.n ? &w->all.v[w->all.n - 1] : NULL;
    tv_note *device = tv_note_map(a, last->devices, key);
    if (!device->line)
        (void)tv_at(w->r, device, line);
    return device;
}

static void begin_report(watch *w, size_t line)
{
    tv_arena *a = w->r->a;
    tv_iostat_report *report = tv_push(a, &w->all);
    report->devices = tv_new(a, tv_note, 1);
    report->devices->type = TV_NOTE_MAP;
    report->since_boot = w->banner && !w->skipped && w->all.n == 1;
    report->line = w->r->sheet->first_line + line;
    report->cpu = w->cpu;
    w->cpu = NULL;
}

/* -h prints a report in three tables under heads of their own: they belong to one report while the
 * columns are new to it. */
static bool continues(const watch *w, const head *h)
{
    if (!w->all.n || w->cpu)
        return false;
    const tv_note *first = w->all.v[w->all.n - 1].devices->first;
    const bool reads = tv_noted(first, "r_s") || tv_noted(first, "tps");
    for (size_t i = 0; i < h->n; i++)
        if (tv_str_is(h->names[i], "r/s") || tv_str_is(h->names[i], "tps") ||
            tv_str_is(h->names[i], "rrqm/s"))
            return false;
    return first && reads;
}

static void take_report_head(watch *w, size_t i, const head *h)
{
    if (!w->s)
        w->s = tv_see(w->r, "iostat", i);
    if (!continues(w, h)) {
        begin_report(w, i);
        w->columns = 0;
    }
    w->columns = w->columns ? w->columns + h->n - 1 : h->n;
    w->head = *h;
    for (size_t k = 0; k < h->n; k++) {
        w->flush = w->flush || tv_str_is(h->names[k], "f/s");
        w->old = w->old || tv_str_is(h->names[k], "avgrq-sz");
    }
}

static bool take_values(watch *w, size_t i, tv_str name, const tv_str *cells, size_t from)
{
    double v[MOST_COLUMNS];
    bool scaled[MOST_COLUMNS];
    for (size_t k = 0; k + 1 < w->head.n; k++)
        if (!take_cell(cells[k], &v[k], &scaled[k]))
            return false;
    tv_note *device = device_of(w, name, i);
    for (size_t k = 0; k + 1 < w->head.n; k++)
        (void)tv_iostat_value(w->r->a, device, w->head.names[k + from], v[k], scaled[k]);
    return true;
}

static bool take_device(watch *w, size_t i, tv_str line)
{
    tv_str words[MOST_COLUMNS];
    const size_t n = tv_words(line, words, MOST_COLUMNS);
    if (!w->head.n || !n || n > MOST_COLUMNS)
        return false;
    if (n == w->head.n)
        return w->head.device_last ? take_values(w, i, words[n - 1], words, 0)
                                   : take_values(w, i, words[0], words + 1, 1);
    /* The -h form of sysstat 10 and 11: the name alone, its values below. */
    if (n + 1 == w->head.n && w->alone.n && w->alone_at + 1 == i)
        return take_values(w, i, w->alone, words, 1);
    w->alone = n == 1 ? words[0] : (tv_str){0};
    w->alone_at = i;
    return n == 1;
}

/* ---- avg-cpu ---- */

static bool take_cpu(watch *w, tv_str line)
{
    tv_str rest, words[8];
    if (tv_past(line, "avg-cpu:", &rest)) {
        w->n_cpu_names = tv_words(rest, w->cpu_names, 8);
        return true;
    }
    if (!w->n_cpu_names || !line.n)
        return false;
    const size_t n = tv_words(line, words, 8);
    const size_t names = w->n_cpu_names;
    w->n_cpu_names = 0;
    if (n != names || n > 8)
        return false;
    tv_note *cpu = tv_new(w->r->a, tv_note, 1);
    cpu->type = TV_NOTE_MAP;
    for (size_t k = 0; k < n; k++) {
        double v;
        bool scaled;
        if (take_cell(words[k], &v, &scaled))
            tv_iostat_cpu(w->r->a, cpu, w->cpu_names[k], v);
    }
    w->cpu = cpu;
    return true;
}

/* ---- a paste ---- */

static void note_cpus(watch *w, tv_str banner)
{
    tv_str rest;
    if (!tv_past(banner, " CPU)", &rest))
        return;
    size_t end = banner.n - rest.n - strlen(" CPU)");
    size_t from = end;
    while (from && banner.p[from - 1] >= '0' && banner.p[from - 1] <= '9')
        from--;
    const tv_u64_read n = tv_str_u64(tv_str_span(banner.p + from, banner.p + end));
    if (n.ok && w->s)
        (void)tv_note_num(w->r->a, &w->s->facts, "cpus", (double)n.v);
}

static void end_watch(watch *w, tv_str banner)
{
    if (!w->s)
        return;
    tv_arena *a = w->r->a;
    tv_note *facts = &w->s->facts;
    if (w->cpu && w->all.n && !w->all.v[w->all.n - 1].cpu)
        w->all.v[w->all.n - 1].cpu = w->cpu;
    tv_iostat_facts(a, facts, &w->all);
    note_cpus(w, banner);
    if (w->columns)
        (void)tv_note_num(a, facts, "columns", (double)w->columns);
    (void)tv_note_bool(a, facts, "has_flush_columns", w->flush);
    if (w->old)
        (void)tv_note_str(a, facts, "format", TV_S("sysstat<=11.5"));
}

/* "$ iostat -xmy 1 3" */
static bool is_command(tv_str line, bool *skipped)
{
    tv_str rest, word;
    if (!tv_past(line, "iostat ", &rest) || !tv_holds(rest, "-"))
        return false;
    for (tv_words(rest, &word, 1); word.n; tv_words(rest, &word, 1)) {
        if (word.n > 1 && word.p[0] == '-' && word.p[1] != '-' && memchr(word.p, 'y', word.n))
            *skipped = true;
        rest = tv_str_drop(rest, (size_t)(word.p - rest.p) + word.n);
        word = (tv_str){0};
    }
    return true;
}

/* "Linux 5.15.0-91-generic (host)     01/02/24     _x86_64_    (16 CPU)"; the last two came with
 * sysstat 9. */
static bool is_banner(tv_str line)
{
    return tv_str_starts(line, TV_S("Linux ")) && line.n > 8 && line.p[6] >= '0' &&
           line.p[6] <= '9' && tv_holds(line, "(") && tv_holds(line, ")");
}

static void take_line(watch *w, size_t i, tv_str *banner)
{
    const tv_str line = tv_bare(w->r->sheet->v[i].s);
    head h;
    bool skipped = false;
    if (is_banner(line)) {
        end_watch(w, *banner);
        *w = (watch){.r = w->r, .banner = true, .skipped = w->skipped && !w->s};
        *banner = line;
        return;
    }
    if (!w->s && is_command(line, &skipped)) {
        w->skipped = skipped;
        return;
    }
    if (take_cpu(w, line))
        return;
    if (tv_holds(line, "Device") && take_head(line, &h)) {
        take_report_head(w, i, &h);
        return;
    }
    if (line.n)
        (void)take_device(w, i, line);
}

/* ---- JSON ---- */

static void json_statistics(watch *w, size_t line, const tv_json *one)
{
    tv_arena *a = w->r->a;
    const tv_json *cpu = tv_json_get(one, "avg-cpu");
    const tv_json *disks = tv_json_get(one, "disk");
    if (cpu->n) {
        w->cpu = tv_new(a, tv_note, 1);
        w->cpu->type = TV_NOTE_MAP;
        for (size_t i = 0; i < cpu->n; i++)
            tv_iostat_cpu(a, w->cpu, cpu->items[i].key, tv_json_num(&cpu->items[i], (double)NAN));
    }
    begin_report(w, line);
    for (size_t i = 0; i < disks->n; i++) {
        const tv_json *disk = &disks->items[i];
        const tv_str name = tv_json_str(tv_json_get(disk, "disk_device"));
        tv_note *device = name.n ? device_of(w, name, line) : NULL;
        for (size_t k = 0; device && k < disk->n; k++)
            if (tv_json_is_num(&disk->items[k]))
                (void)tv_iostat_value(a, device, disk->items[k].key, disk->items[k].number, false);
    }
}

static void json_host(tv_reading *r, size_t line, const tv_json *host)
{
    watch w = {.r = r, .s = tv_see(r, "iostat", line), .banner = true};
    const tv_json *all = tv_json_get(host, "statistics");
    for (size_t i = 0; i < all->n; i++)
        json_statistics(&w, line, &all->items[i]);
    end_watch(&w, (tv_str){0});
    const double cpus = tv_json_num(tv_json_get(host, "number-of-cpus"), (double)NAN);
    if (cpus > 0)
        (void)tv_note_num(r->a, &w.s->facts, "cpus", cpus);
}

/* From the brace before "sysstat" to its partner. */
static tv_str document_at(const tv_reading *r, size_t i)
{
    const tv_sheet *sheet = r->sheet;
    size_t from = i;
    while (from && i - from < 3 && !tv_holds(sheet->v[from].raw, "{"))
        from--;
    const tv_line *last = &sheet->v[sheet->n - 1];
    const tv_str raw = sheet->v[from].raw;
    const char *open = raw.n ? memchr(raw.p, '{', raw.n) : NULL;
    if (!open)
        return (tv_str){0};
    unsigned depth = 0;
    const char *end = last->raw.p + last->raw.n;
    for (const char *p = open; p < end; p++) {
        depth += *p == '{';
        depth -= *p == '}';
        if (*p == '}' && !depth)
            return tv_str_span(open, p + 1);
    }
    return (tv_str){0};
}

static void read_json(tv_reading *r)
{
    unsigned tries = 0;
    for (size_t i = 0; i < r->sheet->n && tries < MOST_DOCUMENTS; i++) {
        const tv_json *doc = NULL;
        if (!tv_holds(r->sheet->v[i].s, "\"sysstat\""))
            continue;
        tries++;
        const tv_str text = document_at(r, i);
        if (!text.n || tv_json_parse(r->a, r->sheet->file, text, &doc))
            continue;
        const tv_json *hosts = tv_json_path(doc, "sysstat.hosts");
        for (size_t k = 0; k < hosts->n; k++)
            json_host(r, i, &hosts->items[k]);
    }
}

static void read(tv_reading *r)
{
    watch w = {.r = r};
    tv_str banner = {0};
    for (size_t i = 0; i < r->sheet->n; i++)
        take_line(&w, i, &banner);
    end_watch(&w, banner);
    read_json(r);
}

static const char *const needles[] = {"rkB/s",     "rMB/s",           "rsec/s",    "%util",
                                      "kB_read/s", "\"disk_device\"", "MB_read/s", NULL};

extern const tv_log_format tv_log_format_iostat;
const tv_log_format tv_log_format_iostat = {"iostat", needles, read};
