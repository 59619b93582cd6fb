/* The matrices of nvidia-smi topo -m, -mp and -p2p: who sits how far from whom. Columns are told by
 * the header's words, not by their place: pastes turn tabs into any number of blanks. What the
 * words mean for a job is the rules' business. */
#include "topo_table.h"

#include <string.h>

/* ---- words ---- */

bool tv_topo_is_gpu(tv_str word)
{
    return tv_str_starts(word, TV_S("GPU")) && word.n > 3 && word.n < 7 &&
           tv_str_u64(tv_str_drop(word, 3)).ok;
}

static bool is_nv(tv_str word)
{
    return word.n > 2 && word.n < 6 && tv_str_starts(word, TV_S("NV")) &&
           tv_str_u64(tv_str_drop(word, 2)).ok;
}

static bool is_one_of(tv_str word, const char *const *words)
{
    for (; *words; words++)
        if (tv_str_is(word, *words))
            return true;
    return false;
}

static bool is_link(tv_str word)
{
    static const char *const links[] = {"X",   "PIX", "PXB", "PHB", "NODE",
                                        "SYS", "SOC", "C2C", NULL};
    return is_nv(word) || is_one_of(word, links);
}

static bool is_p2p(tv_str word)
{
    static const char *const states[] = {"X", "OK", "CNS", "GNS", "TNS", "NS", "DR", "U", NULL};
    return is_one_of(word, states);
}

static bool is_cell(tv_str word)
{
    return is_link(word) || is_p2p(word);
}

/* A card or an adapter as the table names it: GPU3, NIC0, mlx5_bond_0, hfi1_0. */
static bool is_label(tv_str word)
{
    if (!word.n || word.n > 32 || is_cell(word))
        return false;
    return tv_topo_is_gpu(word) || tv_str_starts(word, TV_S("NIC")) ||
           (tv_holds(word, "_") || (word.p[0] >= 'a' && word.p[0] <= 'z'));
}

/* ---- the header ---- */

static void add_column(tv_topo *t, tv_str word)
{
    if (t->n_columns < TV_TOPO_MOST)
        t->columns[t->n_columns++] = word;
}

/* Takes the labels and the titles of the last columns; false: the line is no header. */
static bool read_titles(tv_topo *t, tv_str line)
{
    tv_str words[TV_TOPO_MOST + 8];
    const size_t n = tv_words(line, words, sizeof words / sizeof *words);
    if (n > sizeof words / sizeof *words)
        return false;
    size_t i = 0;
    for (; i < n && is_label(words[i]); i++)
        add_column(t, words[i]);
    for (; i + 1 < n; i++) {
        t->has_cpu |= tv_str_is(words[i], "CPU") && tv_str_is(words[i + 1], "Affinity");
        t->has_numa |= tv_str_is(words[i], "NUMA") && tv_str_is(words[i + 1], "Affinity");
        t->has_gpu_numa |= tv_str_is(words[i], "NUMA") && tv_str_is(words[i + 1], "ID");
    }
    return true;
}

static bool begins_header(tv_str line)
{
    tv_str words[3];
    const size_t n = tv_words(line, words, 3);
    if (!n || !tv_topo_is_gpu(words[0]))
        return false;
    if (n == 1)
        return true; /* topo -p2p of one card, or a header that was wrapped very early */
    return is_label(words[1]) || tv_str_is(words[1], "CPU");
}

/* A terminal that is too narrow breaks the header: its second part is labels or titles alone. */
static bool goes_on(tv_str line)
{
    tv_str words[2];
    const size_t n = tv_words(line, words, 2);
    if (!n)
        return false;
    if (tv_str_is(words[0], "CPU") || tv_str_is(words[0], "NUMA"))
        return true;
    return is_label(words[0]) && (n == 1 || is_label(words[1]) || tv_str_is(words[1], "CPU"));
}

/* ---- rows ---- */

static void put_affinity(tv_topo *t, tv_topo_row *row, const tv_str *words, size_t n)
{
    const size_t titles = (size_t)t->has_cpu + t->has_numa + t->has_gpu_numa;
    size_t i = 0;
    const bool listed = n && (tv_holds(words[0], "-") || tv_holds(words[0], ",") ||
                              tv_str_starts(words[0], TV_S("0x")));
    /* with the last column there and one word too few the list of processors is what is missing */
    const bool lacks_cpu =
        t->has_gpu_numa && n && n + 1 == titles && tv_str_is(words[n - 1], "N/A");
    if (n && (t->has_cpu || !titles) && !lacks_cpu && (listed || n >= titles))
        row->cpu = words[i++];
    /* "PH0-115": a cell that a narrow terminal wrote over */
    while (row->cpu.n && listed && row->cpu.p[0] >= 'A' && row->cpu.p[0] <= 'Z')
        row->cpu = tv_str_drop(row->cpu, 1);
    /* "0-15, 32-47": a list that was written with blanks */
    while (i < n && i && row->cpu.n && row->cpu.p[row->cpu.n - 1] == ',') {
        row->cpu = tv_str_span(row->cpu.p, words[i].p + words[i].n);
        i++;
    }
    if (i < n)
        row->numa = words[i++];
    if (i < n)
        row->gpu_numa = words[i];
}

/* The cells of a row that begins in words; false: it is none. */
static bool read_row(tv_topo *t, tv_str line)
{
    tv_str words[TV_TOPO_MOST + 16];
    size_t n = tv_words(line, words, sizeof words / sizeof *words);
    if (n < 2 || n > sizeof words / sizeof *words || !is_label(words[0]) || !is_cell(words[1]) ||
        t->n_rows >= TV_TOPO_MOST)
        return false;
    tv_topo_row *row = &t->rows[t->n_rows++];
    row->label = words[0];
    row->n = 0;
    row->cpu = row->numa = row->gpu_numa = (tv_str){0};
    const size_t most = t->n_columns ? t->n_columns : TV_TOPO_MOST;
    size_t i = 1;
    for (; i < n && row->n < most && is_cell(words[i]); i++)
        row->cells[row->n++] = words[i];
    put_affinity(t, row, words + i, n - i);
    return true;
}

/* The rest of a row that a narrow terminal broke. */
static bool read_rest(tv_topo *t, tv_str line)
{
    tv_topo_row *row = t->n_rows ? &t->rows[t->n_rows - 1] : NULL;
    tv_str words[TV_TOPO_MOST + 16];
    const size_t n = tv_words(line, words, sizeof words / sizeof *words);
    if (!row || !n || n > sizeof words / sizeof *words || row->cpu.n)
        return false;
    size_t i = 0;
    for (; i < n && row->n < t->n_columns && is_cell(words[i]); i++)
        row->cells[row->n++] = words[i];
    const bool tail =
        row->n == t->n_columns && i < n && words[i].p[0] >= '0' && words[i].p[0] <= '9';
    if (!i && !tail)
        return false;
    put_affinity(t, row, words + i, n - i);
    return true;
}

static size_t indent_of(tv_str s)
{
    size_t n = 0;
    while (n < s.n && (s.p[n] == ' ' || s.p[n] == '\t'))
        n++;
    return n;
}

/* Without a header the columns are the rows' cards, then adapters. */
static void guess_columns(tv_arena *a, tv_topo *t)
{
    size_t gpus = 0;
    for (size_t i = 0; i < t->n_rows; i++) {
        const tv_str label = t->rows[i].label;
        for (size_t k = 0; tv_topo_is_gpu(label) && k < t->rows[i].n; k++)
            if (tv_str_is(t->rows[i].cells[k], "X") && k + 1 > gpus)
                gpus = k + 1;
    }
    const size_t n = t->n_rows ? t->rows[0].n : 0;
    for (size_t k = 0; k < n; k++) {
        tv_buf b = tv_buf_in(a);
        tv_puts(&b, k < gpus ? "GPU" : "NIC");
        tv_put_u64(&b, k < gpus ? k : k - gpus);
        add_column(t, tv_buf_str(&b));
    }
    t->headless = true;
}

/* ---- the command above ---- */

static void read_command(tv_topo *t, const tv_sheet *sheet, size_t first)
{
    for (size_t back = 1; back <= 3 && back <= first; back++) {
        const tv_str line = sheet->v[first - back].s;
        tv_str rest;
        if (!tv_past(line, "topo ", &rest))
            continue;
        if (tv_holds(rest, "-p2p") || tv_str_starts(tv_str_trim(rest), TV_S("-p ")))
            t->p2p_of = tv_str_trim(tv_enclosed(line, "-p2p", ""));
        else if (tv_holds(rest, "-mp"))
            t->pcie_only = true;
        return;
    }
}

/* ---- the legend ---- */

/* "  NIC0: mlx5_0" below "NIC Legend:" (or "Legend:") */
static size_t read_legend(tv_topo *t, const tv_sheet *sheet, size_t i)
{
    const size_t end = i + 24 + TV_TOPO_MOST;
    size_t last = i;
    for (; i < sheet->n && i < end; i++) {
        const tv_str s = tv_str_trim(tv_bare(sheet->v[i].s));
        const tv_cut cut = tv_str_cut(s, ':');
        if (begins_header(s))
            break;
        if (!tv_str_starts(s, TV_S("NIC")) || !cut.found ||
            !tv_str_u64(tv_str_drop(cut.head, 3)).ok)
            continue;
        const tv_str name = tv_str_trim(cut.tail);
        if (t->n_legend < TV_TOPO_MOST && name.n)
            t->legend[t->n_legend++] = (tv_topo_nic){cut.head, name};
        last = i;
    }
    return last;
}

/* ---- one table ---- */

static size_t read_rows(tv_topo *t, const tv_sheet *sheet, size_t i)
{
    size_t blank = 0;
    for (; i < sheet->n && blank < 2 && t->n_rows < TV_TOPO_MOST; i++) {
        const tv_str line = tv_bare(sheet->v[i].s);
        if (!line.n) {
            blank += t->n_rows > 0;
            continue;
        }
        const size_t before = t->n_rows;
        if (!read_row(t, line) && (!t->n_rows || blank || !read_rest(t, line)))
            break;
        blank = 0;
        if (t->n_rows > before) {
            t->rows[before].line = i;
            if (!before)
                t->indent = indent_of(sheet->v[i].s);
        }
        t->tabs |= tv_holds(sheet->v[i].raw, "\t");
    }
    return i;
}

/* Counts alone: clearing every row for each line of junk would take hours. */
static void begin(tv_topo *t, size_t line)
{
    t->line = line;
    t->n_columns = t->n_rows = t->n_legend = t->indent = 0;
    t->has_cpu = t->has_numa = t->has_gpu_numa = t->headless = t->tabs = t->pcie_only = false;
    t->p2p_of = (tv_str){0};
}

static size_t read_table(tv_reading *r, tv_topo *t, size_t i)
{
    const tv_sheet *sheet = r->sheet;
    begin(t, i);
    read_command(t, sheet, i);
    const tv_str line = tv_bare(sheet->v[i].s);
    if (begins_header(line)) {
        if (!read_titles(t, line))
            return i + 1;
        i++;
        while (i < sheet->n && i < t->line + 4 && goes_on(tv_bare(sheet->v[i].s)) &&
               read_titles(t, tv_bare(sheet->v[i].s)))
            i++;
    }
    i = read_rows(t, sheet, i);
    if (!t->n_rows)
        return t->line + 1;
    if (!t->n_columns)
        guess_columns(r->a, t);
    (void)read_legend(t, sheet, i);
    tv_topo_note(r, t);
    return i;
}

/* A row without its header is only trusted when the card's own cell is in it. */
static bool begins_rows(tv_str line)
{
    tv_str words[TV_TOPO_MOST];
    const size_t n = tv_words(line, words, TV_TOPO_MOST);
    if (n < 3 || n > TV_TOPO_MOST || !tv_topo_is_gpu(words[0]) || !is_cell(words[1]))
        return false;
    for (size_t i = 1; i < n && is_cell(words[i]); i++)
        if (tv_str_is(words[i], "X"))
            return true;
    return false;
}

static void read(tv_reading *r)
{
    tv_topo *t = tv_new(r->a, tv_topo, 1);
    for (size_t i = 0; i < r->sheet->n;) {
        const tv_str line = tv_bare(r->sheet->v[i].s);
        i = begins_header(line) || begins_rows(line) ? read_table(r, t, i) : i + 1;
    }
}

static const char *const needles[] = {"CPU Affinity", "GPU0\tGPU1", "GPU0    GPU1", "GPU0 GPU1",
                                      "X    = Self",  "topo -",     "\t X \t",      "     X     ",
                                      "\tX\t",        NULL};

extern const tv_log_format tv_log_format_topo_log;
const tv_log_format tv_log_format_topo_log = {"topo", needles, read};
