/* One row of nvidia-smi's table: a card's name, its state, its MIG mode; a MIG device; a process.
 */
#include "smi_table_rows.h"

#include <math.h>
#include <string.h>

/* ---- cells ---- */

/* A bar at i: its length in bytes, 0 for none. */
static size_t bar_at(tv_str s, size_t i)
{
    if (s.p[i] == '|')
        return 1;
    if (s.n - i >= 3 &&
        (memcmp(s.p + i, "\xef\xbd\x9c", 3) == 0 || memcmp(s.p + i, "\xe2\x94\x82", 3) == 0))
        return 3;
    return 0;
}

size_t tv_smi_cells(tv_str s, tv_str cells[TV_SMI_CELLS])
{
    size_t n = 0, begin = 0;
    bool any = false;
    for (size_t i = 0; i < s.n && n < TV_SMI_CELLS;) {
        const size_t bar = bar_at(s, i);
        if (bar && i > begin)
            cells[n++] = tv_str_trim(tv_str_span(s.p + begin, s.p + i));
        any = any || bar;
        i += bar ? bar : 1;
        begin = bar ? i : begin;
    }
    if (any && begin < s.n && n < TV_SMI_CELLS)
        cells[n++] = tv_str_trim(tv_str_drop(s, begin));
    return any ? n : 0;
}

static bool is_index(tv_str word)
{
    const tv_u64_read v = tv_str_u64(word);
    return v.ok && word.n <= 4;
}

static bool in_words(tv_str word, const char *const *list)
{
    for (size_t i = 0; list[i]; i++)
        if (tv_str_is(word, list[i]))
            return true;
    return false;
}

/* ---- the table ---- */

void tv_smi_table_begin(tv_smi_table *t, size_t i)
{
    tv_reading *r = t->r;
    *t = (tv_smi_table){.r = r, .last_row = i};
    t->s = tv_see(r, "nvidia-smi", i);
}

/* A first row that stands without a title opens a table of its own. */
static void need(tv_smi_table *t, size_t i)
{
    if (!t->s)
        tv_smi_table_begin(t, i);
    t->last_row = i;
}

/* ---- a card ---- */

/* "0  NVIDIA H100 PCIe   On" */
static void put_name(tv_smi_table *t, tv_str cell, size_t i)
{
    static const char *const models[] = {"WDDM", "TCC", "MCDM", NULL};
    static const char *const modes[] = {"On", "Off", "N/A", "ERR!", NULL};
    tv_str words[16];
    size_t n = tv_words(cell, words, 16);
    if (n > 16 || !n || !is_index(words[0]))
        return;
    tv_smi_put(t->r, t->card, "index", TV_SMI_NUMBER, words[0], i);
    const tv_str last = words[n - 1];
    tv_str name = tv_str_span(words[0].p + words[0].n, cell.p + cell.n);
    if (n > 1 && (in_words(last, models) || in_words(last, modes))) {
        name.n -= last.n;
        if (in_words(last, models)) {
            tv_smi_put(t->r, t->card, "driver_model", TV_SMI_WORD, last, i);
            t->windows = true;
        } else {
            tv_smi_put(t->r, t->card, "persistence", TV_SMI_SWITCH, last, i);
        }
    }
    tv_smi_put(t->r, t->card, "name", TV_SMI_WORD, tv_str_trim(name), i);
}

/* 0, "N/A", "Off": a number where it is one. */
static void put_ecc(tv_smi_table *t, tv_str cell, size_t i)
{
    const tv_u64_read v = tv_str_u64(cell);
    tv_smi_put(t->r, t->card, "ecc", v.ok ? TV_SMI_NUMBER : TV_SMI_TEXT, cell, i);
}

/* The same card again, without a title between: the next table of a log whose titles are cut. */
static bool is_again(const tv_smi_table *t, tv_str bus)
{
    if (t->gpus)
        for (const tv_note *card = t->gpus->first; card; card = card->next)
            if (tv_str_eq(tv_noted_str(card, "bus"), bus))
                return true;
    return false;
}

static void begin_card(tv_smi_table *t, const tv_str *cells, size_t n, size_t k, size_t i)
{
    tv_str words[4];
    const size_t n_words = tv_words(cells[k], words, 4);
    if (t->s && (is_again(t, words[0]) || (t->gpus && t->gpus->n >= TV_SMI_MOST_CARDS)))
        tv_smi_table_end(t);
    need(t, i);
    t->part = TV_SMI_CARDS;
    t->gpus = tv_note_list(t->r->a, &t->s->facts, "gpus");
    t->card = tv_at(t->r, tv_note_map(t->r->a, t->gpus, NULL), i);
    t->card_line = i;
    t->bus_cell = k;
    t->rows_of_card = 1;
    (void)tv_note_null(t->r->a, t->card, "index");
    (void)tv_note_null(t->r->a, t->card, "name");
    if (k > 0)
        put_name(t, cells[k - 1], i);
    tv_smi_put(t->r, t->card, "bus", TV_SMI_WORD, words[0], i);
    if (n_words > 1)
        tv_smi_put(t->r, t->card, "disp", TV_SMI_SWITCH, words[1], i);
    if (k + 1 < n)
        put_ecc(t, cells[k + 1], i);
}

/* "a / b"; where it is neither, what stands there instead. */
static void put_usage(tv_smi_table *t, tv_note *in, const char *used, const char *total,
                      tv_str cell, size_t i)
{
    tv_str rest;
    const bool parted = tv_past(cell, "B /", &rest) || tv_past(cell, "B/", &rest);
    const tv_str head = parted ? tv_str_span(cell.p, rest.p - 1) : (tv_str){0};
    tv_str number = head;
    const bool known = parted && tv_take_number(&number).ok;
    tv_smi_put(t->r, in, used, TV_SMI_BYTES, known ? tv_str_cut(head, '/').head : (tv_str){0}, i);
    tv_smi_put(t->r, in, total, TV_SMI_BYTES, known ? rest : (tv_str){0}, i);
    if (!known && cell.n && !tv_holds(cell, "/"))
        (void)tv_at(t->r, tv_note_str(t->r->a, in, "memory", cell), i);
}

/* Where the bar between usage and cap stands: a slash that is not the one of "N/A". */
static size_t slash_in(tv_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '/' && !(i > 0 && s.p[i - 1] == 'N' && i + 1 < s.n && s.p[i + 1] == 'A'))
            return i;
    return s.n;
}

/* "30%   42C    P8    30W / 230W" */
static void put_state(tv_smi_table *t, tv_str cell, size_t i)
{
    tv_str words[4];
    const size_t n = tv_words(cell, words, 3);
    const char *const facts[] = {"fan_frac", "temp_c", "perf"};
    const tv_smi_kind kinds[] = {TV_SMI_SHARE, TV_SMI_NUMBER, TV_SMI_WORD};
    for (size_t k = 0; k < 3 && k < n; k++)
        tv_smi_put(t->r, t->card, facts[k], kinds[k], words[k], i);
    if (n < 3)
        return;
    const tv_str power = tv_str_trim(tv_str_span(words[2].p + words[2].n, cell.p + cell.n));
    const size_t slash = slash_in(power);
    tv_smi_put(t->r, t->card, "power_w", TV_SMI_NUMBER, tv_str_trim(tv_str_take(power, slash)), i);
    tv_smi_put(t->r, t->card, "cap_w", TV_SMI_NUMBER,
               slash < power.n ? tv_str_trim(tv_str_drop(power, slash + 1)) : (tv_str){0}, i);
}

/* "100%   E. Process" */
static void put_load(tv_smi_table *t, tv_str cell, size_t i)
{
    tv_str words[3];
    const size_t n = tv_words(cell, words, 3);
    if (!n)
        return;
    tv_smi_put(t->r, t->card, "util_frac", TV_SMI_SHARE, words[0], i);
    tv_str mode = tv_str_trim(tv_str_span(words[0].p + words[0].n, cell.p + cell.n));
    if (tv_str_is(mode, "E. Process"))
        mode = TV_S("Exclusive_Process");
    else if (tv_str_is(mode, "E. Thread"))
        mode = TV_S("Exclusive_Thread");
    tv_smi_put(t->r, t->card, "compute_mode", TV_SMI_WORD, mode, i);
}

/* The second and the third row of a card: the state, and the MIG mode below it. */
static bool continue_card(tv_smi_table *t, const tv_str *cells, size_t n, size_t i)
{
    const size_t k = t->bus_cell;
    if (!t->card || i > t->card_line + 4 || k < 1 || n < k + 1)
        return false;
    if (t->rows_of_card == 1 && cells[k - 1].n) {
        put_state(t, cells[k - 1], i);
        put_usage(t, t->card, "used_bytes", "total_bytes", cells[k], i);
        if (k + 1 < n)
            put_load(t, cells[k + 1], i);
        t->rows_of_card = 2;
        if (t->lines_per_gpu < 2)
            t->lines_per_gpu = 2;
        return true;
    }
    if (t->rows_of_card == 2 && !cells[k - 1].n && n > k + 1 && cells[k + 1].n) {
        tv_smi_put(t->r, t->card, "mig", TV_SMI_TEXT, cells[k + 1], i);
        t->rows_of_card = 3;
        t->lines_per_gpu = 3;
        return true;
    }
    return false;
}

/* ---- a MIG device ---- */

static void put_counts(tv_smi_table *t, tv_str cell, const char *const *facts, size_t i)
{
    tv_str words[8];
    const size_t n = tv_words(cell, words, 8);
    for (size_t k = 0; facts[k] && k < n && k < 8; k++)
        tv_smi_put(t->r, t->slice, facts[k], TV_SMI_NUMBER, words[k], i);
}

static bool read_slice(tv_smi_table *t, const tv_str *cells, size_t n, size_t i)
{
    static const char *const own[] = {"gpu", "gi", "ci", "dev", NULL};
    static const char *const units[] = {"sm", "ecc", NULL};
    static const char *const shared[] = {"ce", "enc", "dec", "ofa", "jpg", NULL};
    tv_str words[5];
    const size_t n_words = tv_words(cells[0], words, 5);
    if (n >= 2 && n_words == 4 && is_index(words[0]) && is_index(words[1]) && is_index(words[2]) &&
        is_index(words[3])) {
        need(t, i);
        t->part = TV_SMI_MIG;
        t->slice = tv_at(
            t->r, tv_note_map(t->r->a, tv_note_list(t->r->a, &t->s->facts, "mig_devices"), NULL),
            i);
        put_counts(t, cells[0], own, i);
        put_usage(t, t->slice, "used_bytes", "total_bytes", cells[1], i);
        if (n > 2)
            put_counts(t, cells[2], units, i);
        if (n > 3)
            put_counts(t, cells[3], shared, i);
        return true;
    }
    if (t->slice && !cells[0].n && n > 1 && tv_holds(cells[1], "iB") &&
        !tv_noted(t->slice, "bar1_used_bytes")) {
        put_usage(t, t->slice, "bar1_used_bytes", "bar1_total_bytes", cells[1], i);
        return true;
    }
    return false;
}

/* ---- a process ---- */

/* Where the type stands: 2 in the old tables, 4 in those with GI and CI, 0 for none. */
static size_t type_among(const tv_str *words, size_t n)
{
    static const char *const types[] = {"C", "G", "C+G", "M+C", "M", "C+M", "N/A", NULL};
    if (n > 4 && in_words(words[4], types) && tv_str_u64(words[3]).ok &&
        !tv_str_is(words[4], "N/A"))
        return 4;
    if (n > 2 && in_words(words[2], types) && tv_str_u64(words[1]).ok)
        return 2;
    return 0;
}

static bool is_amount(tv_str word)
{
    tv_str rest = word;
    return tv_str_is(word, "N/A") || tv_str_is(word, "-") || tv_str_is(word, "[N/A]") ||
           (tv_take_number(&rest).ok && (tv_holds(rest, "iB") || tv_str_is(rest, "MB")));
}

static bool read_process(tv_smi_table *t, tv_str cell, size_t i)
{
    tv_str words[64];
    size_t n = tv_words(cell, words, 64);
    n = n > 64 ? 64 : n;
    const size_t type = type_among(words, n);
    if (!type || !is_index(words[0]))
        return false;
    need(t, i);
    tv_note *list = tv_note_list(t->r->a, &t->s->facts, "processes");
    tv_note *p = tv_at(t->r, tv_note_map(t->r->a, list, NULL), i);
    tv_smi_put(t->r, p, "gpu", TV_SMI_NUMBER, words[0], i);
    if (type == 4) {
        tv_smi_put(t->r, p, "gi", TV_SMI_NUMBER, words[1], i);
        tv_smi_put(t->r, p, "ci", TV_SMI_NUMBER, words[2], i);
    }
    tv_smi_put(t->r, p, "pid", TV_SMI_NUMBER, words[type - 1], i);
    tv_smi_put(t->r, p, "type", TV_SMI_WORD, words[type], i);
    const bool amount = n > type + 1 && is_amount(words[n - 1]);
    const char *from = words[type].p + words[type].n;
    const char *end = amount ? words[n - 1].p : cell.p + cell.n;
    tv_smi_put(t->r, p, "name", TV_SMI_WORD, tv_str_trim(tv_str_span(from, end)), i);
    tv_smi_put(t->r, p, "used_bytes", TV_SMI_BYTES, amount ? words[n - 1] : (tv_str){0}, i);
    return true;
}

/* ---- rows ---- */

static bool read_heads(tv_smi_table *t, const tv_str *cells, size_t n, size_t i)
{
    static const char *const heads[] = {"Persistence-M", "TCC/WDDM", "Driver-Model",
                                        "Pwr:Usage/Cap", "MIG M."};
    bool any = false;
    for (size_t k = 0; k < n; k++)
        for (size_t h = 0; h < sizeof heads / sizeof *heads; h++)
            if (tv_holds(cells[k], heads[h])) {
                any = true;
                t->windows = t->windows || h == 1 || h == 2;
                t->mig_header = t->mig_header || h == 4;
            }
    if (!any && tv_str_starts(cells[0], TV_S("Processes:"))) {
        need(t, i);
        t->part = TV_SMI_PROCESSES;
        t->card = NULL;
        (void)tv_note_list(t->r->a, &t->s->facts, "processes");
        return true;
    }
    if (!any && (tv_str_starts(cells[0], TV_S("MIG devices:")) ||
                 tv_holds(cells[0], "No MIG devices found"))) {
        need(t, i);
        t->part = TV_SMI_MIG;
        t->card = NULL;
        (void)tv_note_list(t->r->a, &t->s->facts, "mig_devices");
        return true;
    }
    t->heads = t->heads || any;
    if (any && t->s)
        t->last_row = i;
    return any;
}

void tv_smi_table_row(tv_smi_table *t, const tv_str *cells, size_t n, size_t i)
{
    const bool open = t->s != NULL;
    const bool windows = t->windows, mig_header = t->mig_header;
    if (read_heads(t, cells, n, i)) {
        if (!open && t->s) {
            t->windows = windows;
            t->mig_header = mig_header;
        }
        return;
    }
    for (size_t k = 0; k < n; k++) {
        tv_str words[2];
        if (tv_words(cells[k], words, 2) && tv_smi_is_bus(words[0])) {
            const bool win = t->windows, mig = t->mig_header;
            begin_card(t, cells, n, k, i);
            t->windows = t->windows || (!open && win);
            t->mig_header = t->mig_header || (!open && mig);
            return;
        }
    }
    if (t->card && continue_card(t, cells, n, i)) {
        t->last_row = i;
        return;
    }
    if (n >= 1 && (read_slice(t, cells, n, i) || (n == 1 && read_process(t, cells[0], i))))
        t->last_row = i;
}

/* ---- the end ---- */

static const char *layout_of(const tv_smi_table *t, double version)
{
    if (t->first_width >= 40) {
        if (t->second_width < 24)
            return "530-549";
        return t->plus_below_title || version >= 580 ? "580" : "550-579";
    }
    if (t->first_width || isnan(version)) {
        if (t->mig_header || t->lines_per_gpu == 3)
            return "450-529";
        if (!t->first_width)
            return NULL;
        return tv_noted_str(&t->s->facts, "cuda").n ? "410-449" : "<=409";
    }
    const struct {
        double below;
        const char *name;
    } eras[] = {
        {410, "<=409"}, {450, "410-449"}, {530, "450-529"}, {550, "530-549"}, {580, "550-579"}};
    for (size_t i = 0; i < sizeof eras / sizeof *eras; i++)
        if (version < eras[i].below)
            return eras[i].name;
    return "580";
}

static bool same_product(const tv_note *x, const tv_note *y)
{
    const double a = tv_noted_num(x, "total_bytes"), b = tv_noted_num(y, "total_bytes");
    return tv_noted_str(x, "name").n &&
           tv_str_eq(tv_noted_str(x, "name"), tv_noted_str(y, "name")) &&
           (isnan(a) || isnan(b) || fabs(a - b) < 0x1p30);
}

/* Whether cards of one product have different caps; unknown without two such cards. */
static void put_caps(tv_smi_table *t)
{
    bool any = false, unequal = false;
    for (const tv_note *x = t->gpus->first; x; x = x->next)
        for (const tv_note *y = x->next; y; y = y->next) {
            const double gap = fabs(tv_noted_num(x, "cap_w") - tv_noted_num(y, "cap_w"));
            if (!same_product(x, y) || isnan(gap))
                continue;
            any = true;
            unequal = unequal || gap > 0.02 * tv_noted_num(x, "cap_w");
        }
    if (any)
        (void)tv_note_bool(t->r->a, &t->s->facts, "unequal_caps", unequal);
}

/* Two or more cards fully busy at a draw that no computing has. */
static void put_signature(tv_smi_table *t)
{
    size_t n = 0;
    for (const tv_note *x = t->gpus->first; x; x = x->next)
        n += tv_noted_num(x, "util_frac") >= 0.99 &&
             tv_noted_num(x, "power_w") <= 0.3 * tv_noted_num(x, "cap_w");
    if (n >= 2)
        (void)tv_note_str(t->r->a, &t->s->facts, "signature",
                          TV_S("100% util at idle power: stuck collective"));
}

void tv_smi_table_end(tv_smi_table *t)
{
    tv_reading *r = t->r;
    if (t->s) {
        tv_note *facts = &t->s->facts;
        tv_str smi = tv_noted_str(facts, "smi");
        const tv_str driver = tv_noted_str(facts, "driver");
        const bool differ = smi.n && driver.n && !tv_str_eq(smi, driver);
        if (smi.n && driver.n)
            (void)tv_note_bool(r->a, facts, "versions_differ", differ);
        if (t->windows)
            (void)tv_note_str(r->a, facts, "platform", TV_S("windows"));
        else if (differ) /* only WSL pairs the tool of one system with the driver of another */
            (void)tv_note_str(r->a, facts, "platform", TV_S("wsl"));
        const tv_double_read version = tv_take_number(&smi);
        const char *layout = layout_of(t, version.ok ? version.v : (double)NAN);
        if (layout)
            (void)tv_note_str(r->a, facts, "layout", tv_str_of(layout));
        if (t->lines_per_gpu)
            (void)tv_note_num(r->a, facts, "lines_per_gpu", t->lines_per_gpu);
        if (t->gpus) {
            put_caps(t);
            put_signature(t);
        }
    }
    *t = (tv_smi_table){.r = r};
}
