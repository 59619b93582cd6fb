/* nvidia-smi --query-gpu and --query-compute-apps as CSV, with any list of fields, with or without
 * units and header; without one the command itself must stand above. Loops are summed up. */
#include <string.h>

#include "smi_series.h"

enum { MOST_FIELDS = 64, MOST_CARDS = 512, MOST_PROCESSES = 4096 };

typedef struct listing {
    tv_reading *r;
    tv_sighting *s;
    bool processes;
    const tv_smi_field *fields[MOST_FIELDS];
    tv_str names[MOST_FIELDS];
    size_t n_fields;
    size_t index, bus, uuid, time; /* columns; n_fields: none */
    tv_str last_time;
    size_t of_time; /* rows with that time so far */
    size_t rows, last_row;
    tv_smi_series *cards;
    size_t n_cards;
} listing;

/* "power.draw [W]" -> "power.draw" */
static tv_str without_unit(tv_str field)
{
    const char *bracket = memchr(field.p, '[', field.n);
    return tv_str_trim(bracket ? tv_str_span(field.p, bracket) : field);
}

static bool is_of_process(tv_str name)
{
    return tv_smi_among("pid|process_name|used_gpu_memory|used_memory", name);
}

static size_t column_of(const listing *l, const char *names)
{
    for (size_t k = 0; k < l->n_fields; k++)
        if (tv_smi_among(names, l->names[k]))
            return k;
    return l->n_fields;
}

static void begin(listing *l, const tv_str *names, size_t n, size_t i)
{
    tv_reading *r = l->r;
    *l = (listing){.r = r, .n_fields = n, .last_row = i};
    l->s = tv_see(r, "smi-q", i);
    for (size_t k = 0; k < n; k++) {
        l->names[k] = tv_str_copy(r->a, names[k]);
        l->fields[k] = tv_smi_query_field(l->names[k]);
        l->processes = l->processes || tv_str_is(names[k], "pid");
    }
    l->index = column_of(l, "index");
    l->bus = column_of(l, "pci.bus_id|gpu_bus_id|pci.bus");
    l->uuid = column_of(l, "uuid|gpu_uuid");
    l->time = column_of(l, "timestamp");
}

/* Every field has the letters of one, half of them are known, and one is no common word. */
static bool are_names(const tv_str *names, size_t n)
{
    size_t known = 0, telling = 0;
    for (size_t k = 0; k < n; k++) {
        for (size_t c = 0; c < names[k].n; c++)
            if (!((names[k].p[c] >= 'a' && names[k].p[c] <= 'z') || names[k].p[c] == '_' ||
                  names[k].p[c] == '.' || (names[k].p[c] >= '0' && names[k].p[c] <= '9')))
                return false;
        const bool is_known = tv_smi_query_field(names[k]) || is_of_process(names[k]);
        known += is_known;
        telling +=
            is_known && !tv_smi_among("name|index|timestamp|count|uuid|serial|pid", names[k]);
    }
    return telling && 2 * known >= n;
}

/* ---- where a list of fields stands ---- */

static bool read_header(listing *l, tv_str s, size_t i)
{
    tv_str names[MOST_FIELDS];
    const size_t n = tv_fields(s, ',', names, MOST_FIELDS);
    if (n > MOST_FIELDS)
        return false;
    for (size_t k = 0; k < n; k++)
        names[k] = without_unit(names[k]);
    /* One word alone is a header where it is a name that nothing else has. */
    if (!are_names(names, n) || (n == 1 && !memchr(names[0].p, '.', names[0].n)))
        return false;
    begin(l, names, n, i);
    return true;
}

static bool read_command(listing *l, tv_str s, size_t i)
{
    tv_str rest;
    if (!tv_holds(s, "noheader") ||
        (!tv_past(s, "--query-gpu", &rest) && !tv_past(s, "--query-compute-apps", &rest)))
        return false;
    rest = tv_str_trim(tv_str_drop(rest, 1)); /* "=" or a blank */
    if (rest.n && (rest.p[0] == '"' || rest.p[0] == '\''))
        rest = tv_str_drop(rest, 1);
    size_t end = 0;
    while (end < rest.n && !strchr(" \t\"'", rest.p[end]))
        end++;
    tv_str names[MOST_FIELDS];
    const size_t n = tv_fields(tv_str_take(rest, end), ',', names, MOST_FIELDS);
    if (n > MOST_FIELDS || !are_names(names, n))
        return false;
    begin(l, names, n, i);
    return true;
}

/* ---- rows ---- */

/* What tells one card from another in this listing; empty: nothing does. */
static tv_str key_of(listing *l, const tv_str *values)
{
    const size_t columns[] = {l->index, l->uuid, l->bus};
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
        if (columns[k] < l->n_fields)
            return values[columns[k]];
    tv_buf b = tv_buf_in(l->r->a);
    tv_putc(&b, '#');
    if (l->time < l->n_fields) { /* the cards of one round have the same time */
        if (!tv_str_eq(values[l->time], l->last_time)) {
            l->last_time = tv_str_copy(l->r->a, values[l->time]);
            l->of_time = 0;
        }
        tv_put_u64(&b, l->of_time++);
    } else {
        tv_put_u64(&b, l->rows < 16 ? l->rows : 0);
    }
    return tv_buf_str(&b);
}

static tv_smi_series *card_of(listing *l, tv_str key, size_t i)
{
    for (size_t k = 0; k < l->n_cards; k++)
        if (tv_str_eq(l->cards[k].key, key))
            return &l->cards[k];
    if (l->n_cards >= MOST_CARDS)
        return NULL;
    tv_arena *a = l->r->a;
    if (!l->cards)
        l->cards = tv_new(a, tv_smi_series, MOST_CARDS);
    tv_smi_series *card = &l->cards[l->n_cards++];
    card->key = tv_str_copy(a, key);
    card->card = tv_at(l->r, tv_note_map(a, tv_note_list(a, &l->s->facts, "gpus"), NULL), i);
    return card;
}

/* A throttle that was active once in a loop stays in the facts. */
static void keep_reasons(tv_arena *a, tv_note *card, const tv_note *row)
{
    const tv_note *reasons = tv_noted(row, "reasons");
    tv_note *kept = tv_note_map(a, card, "reasons");
    for (const tv_note *n = reasons ? reasons->first : NULL; n; n = n->next)
        if (n->type == TV_NOTE_BOOL && n->yes && !tv_noted_bool(kept, n->key, false))
            (void)tv_note_place(a, tv_note_bool(a, kept, n->key, true), n->line, n->text);
}

static void read_card(listing *l, const tv_str *values, size_t i)
{
    tv_arena *a = l->r->a;
    tv_smi_series *card = card_of(l, key_of(l, values), i);
    if (!card)
        return;
    const bool first = card->rows++ == 0;
    tv_note later = {.type = TV_NOTE_MAP};
    tv_note *row = first ? card->card : &later;
    if (first)
        (void)tv_note_null(a, row, "index");
    for (size_t k = 0; k < l->n_fields; k++)
        if (l->fields[k])
            tv_smi_put(l->r, row, l->fields[k]->fact, l->fields[k]->kind, values[k], i);
    tv_smi_finish(a, row);
    for (const tv_note *n = row->first; n; n = n->next)
        if (n->type == TV_NOTE_NUMBER)
            tv_smi_series_see(card, n->key, n->number);
    if (!first && later.first && tv_noted(&later, "reasons"))
        keep_reasons(a, card->card, &later);
}

static void read_process(listing *l, const tv_str *values, size_t i)
{
    static const struct {
        const char *names;
        const char *fact;
        tv_smi_kind kind;
    } columns[] = {
        {"pid", "pid", TV_SMI_NUMBER},
        {"process_name|name", "name", TV_SMI_WORD},
        {"used_gpu_memory|used_memory", "used_bytes", TV_SMI_BYTES},
        {"gpu_uuid", "uuid", TV_SMI_WORD},
        {"gpu_bus_id", "bus", TV_SMI_WORD},
        {"gpu_name", "gpu_name", TV_SMI_WORD},
    };
    tv_arena *a = l->r->a;
    if (l->rows >= MOST_PROCESSES)
        return;
    tv_note *p = tv_at(l->r, tv_note_map(a, tv_note_list(a, &l->s->facts, "processes"), NULL), i);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        const size_t k = column_of(l, columns[c].names);
        if (k < l->n_fields)
            tv_smi_put(l->r, p, columns[c].fact, columns[c].kind, values[k], i);
    }
}

static bool read_row(listing *l, tv_str s, size_t i)
{
    tv_str values[MOST_FIELDS];
    const size_t n = tv_fields(s, ',', values, MOST_FIELDS);
    if (n != l->n_fields || !s.n)
        return false;
    if (l->processes)
        read_process(l, values, i);
    else
        read_card(l, values, i);
    l->rows++;
    l->last_row = i;
    return true;
}

/* ---- the end ---- */

static void end(listing *l)
{
    tv_reading *r = l->r;
    if (l->s && l->processes) {
        (void)tv_note_list(r->a, &l->s->facts, "processes");
    } else if (l->s) {
        for (size_t k = 0; k < l->n_cards; k++)
            tv_smi_series_put(r->a, &l->cards[k]);
        if (l->n_cards == 1)
            tv_smi_copy(r->a, l->cards[0].card, &l->s->facts);
    }
    *l = (listing){.r = r};
}

static void read(tv_reading *r)
{
    listing l = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str s = tv_bare(r->sheet->v[i].s);
        if (!s.n)
            continue;
        listing fresh = {.r = r};
        if (read_command(&fresh, s, i) || read_header(&fresh, s, i)) {
            const bool asked = l.s && !l.rows && l.n_fields == fresh.n_fields;
            if (!asked)
                end(&l);
            l = fresh;
            continue;
        }
        if (l.s && !read_row(&l, s, i) && i > l.last_row + 4)
            end(&l);
    }
    end(&l);
}

static const char *const needles[] = {"utilization.gpu",
                                      "utilization.memory",
                                      "memory.total",
                                      "memory.used",
                                      "memory.free",
                                      "temperature.gpu",
                                      "temperature.memory",
                                      "power.draw",
                                      "power.limit",
                                      "pci.bus_id",
                                      "clocks.sm",
                                      "clocks.gr",
                                      "clocks.current",
                                      "clocks.max",
                                      "--query-gpu",
                                      "--query-compute-apps",
                                      "used_gpu_memory",
                                      "used_memory",
                                      "pcie.link",
                                      "clocks_event_reasons.",
                                      "clocks_throttle_reasons.",
                                      "retired_pages.",
                                      "remapped_rows.",
                                      "ecc.errors.",
                                      "fan.speed",
                                      "driver_version",
                                      "compute_cap",
                                      "mig.mode",
                                      NULL};

extern const tv_log_format tv_log_format_smi_csv;
const tv_log_format tv_log_format_smi_csv = {"nvidia-smi --format=csv", needles, read};
