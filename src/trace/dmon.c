/* nvidia-smi dmon and pmon, and the sample program of DCGM that prints the same: the columns are
 * what the header says, in any order; rows of hours are summed up as they pass. */
#include <math.h>
#include <string.h>

#include "smi_series.h"

enum { MOST_COLUMNS = 48, MOST_CARDS = 256, MOST_PROCESSES = 1024 };

typedef struct monitor {
    tv_reading *r;
    tv_sighting *s;
    bool processes;
    tv_str names[MOST_COLUMNS];
    tv_str units[MOST_COLUMNS];
    const char *facts[MOST_COLUMNS];
    size_t n_columns, n_before; /* of them date and time stand first */
    size_t rows, last_row;
    tv_smi_series *cards;
    size_t n_cards;
    tv_smi_span sm;
} monitor;

/* ---- columns ---- */

typedef struct unit_row {
    const char *unit;
    const char *suffix;
    double factor;
} unit_row;

static const unit_row unit_rows[] = {
    {"W", "_w", 1},
    {"C", "_c", 1},
    {"%", "_frac", 0.01},
    {"MB", "_bytes", 0x1p20},
    {"MB/s", "_bytes_per_s", 1e6},
    {"GB/s", "_bytes_per_s", 1e9},
};

static const unit_row *unit_of(tv_str unit)
{
    for (size_t i = 0; i < sizeof unit_rows / sizeof *unit_rows; i++)
        if (tv_str_is(unit, unit_rows[i].unit))
            return &unit_rows[i];
    return NULL;
}

/* Without a line of units, by the names that have had them. */
static tv_str usual_unit(tv_str name)
{
    static const struct {
        const char *names;
        const char *unit;
    } usual[] = {
        {"pwr", "W"},           {"temp|gtemp|mtemp", "C"}, {"sm|mem|enc|dec|jpg|ofa|pviol", "%"},
        {"fb|bar1|ccpm", "MB"}, {"rxpci|txpci", "MB/s"},
    };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (tv_smi_among(usual[i].names, name))
            return tv_str_of(usual[i].unit);
    return (tv_str){0};
}

static void name_facts(monitor *m)
{
    tv_arena *a = m->r->a;
    for (size_t k = 0; k < m->n_columns; k++) {
        if (!m->units[k].n)
            m->units[k] = usual_unit(m->names[k]);
        const unit_row *unit = unit_of(m->units[k]);
        tv_buf b = tv_buf_in(a);
        tv_put(&b, m->names[k]);
        if (unit)
            tv_puts(&b, unit->suffix);
        m->facts[k] = tv_cstr(a, tv_buf_str(&b));
    }
}

static tv_str past_hash(tv_str s)
{
    return tv_str_starts(s, TV_S("#")) ? tv_str_trim(tv_str_drop(s, 1)) : s;
}

/* "# gpu   pwr  temp ...", "#Date Time gpu pwr ..." */
static bool read_header(monitor *m, tv_str s, size_t i)
{
    tv_str words[MOST_COLUMNS];
    const size_t n = tv_words(past_hash(s), words, MOST_COLUMNS);
    size_t first = 0;
    while (first < n && first < 3 && !tv_str_is(words[first], "gpu"))
        first++;
    if (n > MOST_COLUMNS || first >= n || !tv_str_is(words[first], "gpu") || n < first + 3)
        return false;
    const bool processes = tv_str_is(words[first + 1], "pid");
    bool same = m->s && processes == m->processes && n - first == m->n_columns;
    for (size_t k = first; same && k < n; k++)
        same = tv_str_eq(words[k], m->names[k - first]);
    if (same)
        return true; /* it is printed again every screenful */
    tv_reading *r = m->r;
    *m = (monitor){.r = r, .processes = processes, .n_before = first};
    m->s = tv_see(r, processes ? "pmon" : "dmon", i);
    m->last_row = i;
    tv_note *columns = tv_note_list(r->a, &m->s->facts, "columns");
    for (size_t k = first; k < n; k++) {
        m->names[m->n_columns++] = tv_str_copy(r->a, words[k]);
        (void)tv_note_str(r->a, columns, NULL, words[k]);
    }
    return true;
}

/* "# Idx     W     C     % ..." */
static bool read_units(monitor *m, tv_str s)
{
    tv_str words[MOST_COLUMNS];
    const size_t n = tv_words(past_hash(s), words, MOST_COLUMNS);
    for (size_t first = 0; first < n && first < 3; first++)
        if (tv_str_is(words[first], "Idx")) {
            for (size_t k = 0; k < m->n_columns && first + k < n; k++)
                m->units[k] = tv_str_copy(m->r->a, words[first + k]);
            return true;
        }
    return false;
}

/* ---- rows ---- */

/* dmon's name of a column -> the fact of a card that other readers have. */
static const char *common_name(tv_str name)
{
    static const struct {
        const char *column;
        const char *fact;
    } rows[] = {
        {"pwr", "power_w"},
        {"temp", "temp_c"},
        {"gtemp", "temp_c"},
        {"mtemp", "mem_temp_c"},
        {"sm", "util_frac"},
        {"mem", "mem_util_frac"},
        {"mclk", "mem_mhz"},
        {"pclk", "sm_mhz"},
        {"fb", "used_bytes"},
        {"rxpci", "rx_bytes_per_s"},
        {"txpci", "tx_bytes_per_s"},
        {"pci", "replays"},
        {"pviol", "power_violation_frac"},
        {"tviol", "thermal_violation"},
        {"sbecc", "single_bit_volatile"},
        {"dbecc", "double_bit_volatile"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tv_str_is(name, rows[i].column))
            return rows[i].fact;
    return NULL;
}

static double value_of(const monitor *m, size_t k, tv_str word)
{
    tv_str rest = word;
    const tv_double_read v = tv_take_number(&rest);
    const unit_row *unit = unit_of(m->units[k]);
    if (!v.ok || rest.n || tv_smi_is_none(word))
        return (double)NAN;
    return unit ? unit->factor == 0.01 ? v.v / 100 : v.v * unit->factor : v.v;
}

static tv_smi_series *card_of(monitor *m, tv_str index, size_t i)
{
    for (size_t k = 0; k < m->n_cards; k++)
        if (tv_str_eq(m->cards[k].key, index))
            return &m->cards[k];
    if (m->n_cards >= MOST_CARDS)
        return NULL;
    tv_arena *a = m->r->a;
    if (!m->cards)
        m->cards = tv_new(a, tv_smi_series, MOST_CARDS);
    tv_smi_series *card = &m->cards[m->n_cards++];
    card->key = tv_str_copy(a, index);
    card->card = tv_at(m->r, tv_note_map(a, tv_note_list(a, &m->s->facts, "cards"), NULL), i);
    return card;
}

static void put_row(monitor *m, tv_note *in, const tv_str *words, size_t i)
{
    for (size_t k = 1; k < m->n_columns; k++)
        (void)tv_at(m->r, tv_note_num(m->r->a, in, m->facts[k], value_of(m, k, words[k])), i);
}

static void read_card(monitor *m, const tv_str *words, size_t i)
{
    tv_arena *a = m->r->a;
    tv_smi_series *card = card_of(m, words[0], i);
    if (!card)
        return;
    if (!m->rows++)
        put_row(m, tv_note_map(a, &m->s->facts, "row0"), words, i);
    const bool first = card->rows++ == 0;
    if (first) {
        const tv_str name = tv_str_join(a, TV_S("gpu"), words[0]);
        put_row(m, tv_at(m->r, tv_note_map(a, &m->s->facts, tv_cstr(a, name)), i), words, i);
        tv_smi_put(m->r, card->card, "index", TV_SMI_NUMBER, words[0], i);
    }
    for (size_t k = 1; k < m->n_columns; k++) {
        const char *fact = common_name(m->names[k]);
        if (!fact)
            continue;
        const double v = value_of(m, k, words[k]);
        if (first)
            (void)tv_at(m->r, tv_note_num(a, card->card, fact, v), i);
        tv_smi_series_see(card, fact, v);
        if (strcmp(fact, "util_frac") == 0)
            tv_smi_span_add(&m->sm, v);
    }
}

static void read_process(monitor *m, const tv_str *words, size_t n, tv_str s, size_t i)
{
    tv_arena *a = m->r->a;
    if (m->rows++ >= MOST_PROCESSES)
        return;
    tv_note *p = tv_at(m->r, tv_note_map(a, tv_note_list(a, &m->s->facts, "processes"), NULL), i);
    for (size_t k = 0; k + 1 < m->n_columns && k < n; k++) {
        const tv_str name = m->names[k];
        if (tv_str_is(name, "type"))
            tv_smi_put(m->r, p, "type", TV_SMI_WORD, words[k], i);
        else
            (void)tv_note_num(a, p, k == 0 ? "gpu" : m->facts[k], value_of(m, k, words[k]));
    }
    if (n >= m->n_columns) {
        const tv_str command = words[m->n_columns - 1];
        tv_smi_put(m->r, p, "name", TV_SMI_WORD, tv_str_span(command.p, s.p + s.n), i);
    }
}

static bool read_row(monitor *m, tv_str s, size_t i)
{
    tv_str words[MOST_COLUMNS + 4];
    size_t n = tv_words(s, words, MOST_COLUMNS + 4);
    if (n > MOST_COLUMNS + 4)
        n = MOST_COLUMNS + 4;
    if (n < m->n_before + 3)
        return false;
    const tv_str *own = words + m->n_before;
    n -= m->n_before;
    if (!tv_str_u64(own[0]).ok || (m->processes ? n + 1 < m->n_columns : n != m->n_columns))
        return false;
    if (!m->facts[0])
        name_facts(m);
    if (m->processes)
        read_process(m, own, n, s, i);
    else
        read_card(m, own, i);
    m->last_row = i;
    return true;
}

/* ---- the end ---- */

static void end(monitor *m)
{
    tv_reading *r = m->r;
    if (m->s && !m->processes && m->n_cards) {
        tv_note *facts = &m->s->facts;
        size_t most = 0;
        for (size_t k = 0; k < m->n_cards; k++) {
            most = m->cards[k].rows > most ? m->cards[k].rows : most;
            tv_smi_series_put(r->a, &m->cards[k]);
        }
        (void)tv_note_num(r->a, facts, "gpus", (double)m->n_cards);
        (void)tv_note_num(r->a, facts, "samples", (double)most);
        (void)tv_note_num(r->a, facts, "sm_mean_frac", tv_smi_span_mean(&m->sm));
    }
    *m = (monitor){.r = r};
}

static void read(tv_reading *r)
{
    monitor m = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str s = tv_str_trim(r->sheet->v[i].s);
        if (!s.n)
            continue;
        const bool hash = s.p[0] == '#';
        if (hash && tv_holds(s, "gpu")) {
            monitor fresh = m;
            if (read_header(&fresh, s, i)) {
                if (fresh.s != m.s)
                    end(&m);
                m = fresh;
                continue;
            }
        }
        if (!m.s || (hash && read_units(&m, s)))
            continue;
        if (!read_row(&m, past_hash(s), i) && i > m.last_row + 40)
            end(&m);
    }
    end(&m);
}

static const char *const needles[] = {"# gpu ", "#gpu ", "Time        gpu", "# Idx", "#Time",
                                      "#Date",  NULL};

extern const tv_log_format tv_log_format_dmon;
const tv_log_format tv_log_format_dmon = {"nvidia-smi dmon", needles, read};
