/* rocm-smi --showtopo: link types between cards, and their memory nodes, as a topology like that of
 * nvidia-smi. Weights and hops are passed over: the link type says what a job needs to know. */
#include "topo_table.h"

#include <string.h>

static void reset(tv_topo *t, size_t line)
{
    t->line = line;
    t->n_columns = t->n_rows = t->n_legend = t->indent = 0;
    t->has_cpu = t->has_gpu_numa = t->headless = t->tabs = t->pcie_only = false;
    t->has_numa = false;
    t->p2p_of = (tv_str){0};
}

static bool read_heads(tv_topo *t, tv_str line)
{
    tv_str words[TV_TOPO_MOST];
    const size_t n = tv_words(line, words, TV_TOPO_MOST);
    if (!n || n > TV_TOPO_MOST)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!tv_topo_is_gpu(words[i]))
            return false;
    for (size_t i = 0; i < n; i++)
        t->columns[t->n_columns++] = words[i];
    return true;
}

/* "GPU0   0   XGMI   PCIE" */
static bool read_row(tv_topo *t, tv_str line, size_t i)
{
    tv_str words[TV_TOPO_MOST + 1];
    const size_t n = tv_words(line, words, TV_TOPO_MOST + 1);
    if (n != t->n_columns + 1 || !tv_topo_is_gpu(words[0]) || t->n_rows >= TV_TOPO_MOST)
        return false;
    tv_topo_row *row = &t->rows[t->n_rows++];
    row->label = words[0];
    row->line = i;
    row->n = 0;
    row->cpu = row->numa = row->gpu_numa = (tv_str){0};
    for (size_t k = 1; k < n; k++)
        row->cells[row->n++] = tv_str_is(words[k], "0") ? TV_S("X") : words[k];
    return true;
}

/* "GPU[1]  : (Topology) Numa Node: 1", "GPU 1 : ..." */
static void read_node(tv_topo *t, tv_str line)
{
    tv_str rest;
    if (!tv_past(line, "(Topology) Numa Node:", &rest))
        return;
    tv_double_read gpu = tv_number_past(line, "GPU[");
    if (!gpu.ok)
        gpu = tv_number_past(line, "GPU");
    const tv_str node = tv_str_trim(rest);
    for (size_t i = 0; gpu.ok && i < t->n_rows; i++) {
        const tv_u64_read own = tv_str_u64(tv_str_drop(t->rows[i].label, 3));
        if (own.ok && gpu.v >= 0 && (double)own.v - gpu.v < 0.5 && gpu.v - (double)own.v < 0.5 &&
            !tv_str_is(node, "-1")) {
            t->rows[i].numa = node;
            t->has_numa = true;
        }
    }
}

static bool is_heading(tv_str line)
{
    return tv_str_starts(line, TV_S("====")) || tv_str_starts(line, TV_S("----"));
}

static size_t read_table(tv_reading *r, tv_topo *t, size_t i)
{
    const tv_sheet *sheet = r->sheet;
    reset(t, i);
    for (i++; i < sheet->n && i < t->line + 4 && !t->n_columns; i++)
        if (!read_heads(t, tv_bare(sheet->v[i].s)) && is_heading(tv_bare(sheet->v[i].s)))
            return i;
    for (; i < sheet->n && t->n_rows < t->n_columns; i++)
        if (!read_row(t, tv_bare(sheet->v[i].s), i))
            break;
    if (!t->n_rows)
        return i;
    const size_t end = i + 2 * TV_TOPO_MOST + 8;
    for (size_t k = i; k < sheet->n && k < end; k++) {
        if (tv_holds(sheet->v[k].s, "between two GPUs"))
            break;
        read_node(t, sheet->v[k].s);
    }
    tv_topo_note(r, t);
    return i;
}

static void read(tv_reading *r)
{
    tv_topo *t = tv_new(r->a, tv_topo, 1);
    for (size_t i = 0; i < r->sheet->n;)
        i = tv_holds(r->sheet->v[i].s, "Link Type between two GPUs") ? read_table(r, t, i) : i + 1;
}

static const char *const needles[] = {"Link Type between two GPUs", NULL};

extern const tv_log_format tv_log_format_rocm_topo_log;
const tv_log_format tv_log_format_rocm_topo_log = {"rocm-topo", needles, read};
