/* A topology matrix -> its facts: pairs, neighbours, adapters, affinities. */
#include "topo_table.h"

#include <string.h>

typedef struct facts_of {
    tv_reading *r;
    tv_arena *a;
    const tv_topo *t;
    tv_note *facts;
    size_t gpu[TV_TOPO_MOST]; /* columns that are cards, in their order */
    size_t n_gpus;
    size_t nic[TV_TOPO_MOST];
    size_t n_nics;
} facts_of;

static const tv_topo_row *row_of(const tv_topo *t, tv_str label)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (tv_str_eq(t->rows[i].label, label))
            return &t->rows[i];
    return NULL;
}

/* What stands between two columns, from whichever row is there; empty: neither is. */
static tv_str cell(const tv_topo *t, size_t x, size_t y)
{
    const tv_topo_row *row = row_of(t, t->columns[x]);
    if (row && y < row->n)
        return row->cells[y];
    row = row_of(t, t->columns[y]);
    return row && x < row->n ? row->cells[x] : (tv_str){0};
}

static bool is_nv(tv_str word)
{
    return tv_str_starts(word, TV_S("NV"));
}

/* Nearer is less; NVLink counts as nearest, what is not known as farthest. */
static unsigned rank_of(tv_str word)
{
    static const char *const order[] = {"X", "NV", "C2C", "PIX", "PXB", "PHB", "NODE", "SYS"};
    if (is_nv(word))
        return 1;
    if (tv_str_is(word, "SOC"))
        return 7;
    for (unsigned i = 0; i < sizeof order / sizeof *order; i++)
        if (tv_str_is(word, order[i]))
            return i;
    return 99;
}

static const char *key_of(tv_arena *a, const char *left, size_t x, const char *right, size_t y)
{
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, left);
    tv_put_u64(&b, x);
    tv_putc(&b, '-');
    tv_puts(&b, right);
    tv_put_u64(&b, y);
    return tv_cstr(a, tv_buf_str(&b));
}

static size_t number_of(tv_str label, size_t fallback)
{
    const tv_u64_read r = tv_str_u64(tv_str_drop(label, 3));
    return r.ok && r.v < 4096 ? (size_t)r.v : fallback;
}

/* NIC2 is 2; an adapter that the table names by its device counts from the left. */
static size_t nic_number(const facts_of *f, size_t k)
{
    const tv_str label = f->t->columns[f->nic[k]];
    return tv_str_starts(label, TV_S("NIC")) ? number_of(label, k) : k;
}

static size_t gpu_number(const facts_of *f, size_t k)
{
    return number_of(f->t->columns[f->gpu[k]], k);
}

static const char *index_key(const facts_of *f, size_t v)
{
    tv_buf b = tv_buf_in(f->a);
    tv_put_u64(&b, v);
    return tv_cstr(f->a, tv_buf_str(&b));
}

/* ---- pairs ---- */

static void put_links(facts_of *f)
{
    tv_note *links = tv_note_map(f->a, f->facts, "links");
    for (size_t x = 0; x < f->n_gpus; x++)
        for (size_t y = x + 1; y < f->n_gpus; y++) {
            const tv_str s = cell(f->t, f->gpu[x], f->gpu[y]);
            if (s.n)
                (void)tv_note_str(f->a, links,
                                  key_of(f->a, "", gpu_number(f, x), "", gpu_number(f, y)), s);
        }
    for (size_t x = 0; x < f->n_gpus; x++)
        for (size_t y = 0; y < f->n_nics; y++) {
            const tv_str s = cell(f->t, f->gpu[x], f->nic[y]);
            if (s.n)
                (void)tv_note_str(f->a, links,
                                  key_of(f->a, "G", gpu_number(f, x), "N", nic_number(f, y)), s);
        }
    for (size_t x = 0; x < f->n_nics; x++)
        for (size_t y = x + 1; y < f->n_nics; y++) {
            const tv_str s = cell(f->t, f->nic[x], f->nic[y]);
            if (s.n)
                (void)tv_note_str(f->a, links,
                                  key_of(f->a, "N", nic_number(f, x), "N", nic_number(f, y)), s);
        }
}

static void put_pair(facts_of *f, tv_note *list, size_t x, size_t y)
{
    tv_note *pair = tv_note_list(f->a, list, NULL);
    (void)tv_note_num(f->a, pair, NULL, (double)gpu_number(f, x));
    (void)tv_note_num(f->a, pair, NULL, (double)gpu_number(f, y));
}

/* Which pairs share what; what all pairs share. */
static void put_pairs(facts_of *f)
{
    static const char *const words[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
    static const char *const keys[] = {"pairs_pix", "pairs_pxb", "pairs_phb", "pairs_node",
                                       "pairs_sys"};
    tv_note *lists[5], *nv = tv_note_list(f->a, f->facts, "nvlink_pairs");
    for (size_t i = 0; i < 5; i++)
        lists[i] = tv_note_list(f->a, f->facts, keys[i]);
    tv_str same = {0};
    bool uniform = true;
    for (size_t x = 0; x < f->n_gpus; x++)
        for (size_t y = x + 1; y < f->n_gpus; y++) {
            const tv_str s = cell(f->t, f->gpu[x], f->gpu[y]);
            if (!s.n)
                continue;
            uniform &= !same.n || tv_str_eq(same, s);
            same = s;
            if (is_nv(s))
                put_pair(f, nv, x, y);
            for (size_t i = 0; i < 5; i++)
                if (tv_str_is(s, words[i]) || (i == 4 && tv_str_is(s, "SOC")))
                    put_pair(f, lists[i], x, y);
        }
    if (uniform && same.n) {
        (void)tv_note_str(f->a, f->facts, "gpu_gpu", same);
        (void)tv_note_str(f->a, f->facts, "all_links", same);
    }
}

/* ---- NVLink ---- */

static void put_nvlink(facts_of *f)
{
    double pairs = 0, without = 0;
    bool legacy = false;
    tv_note *degree = tv_note_map(f->a, f->facts, "nv_degree");
    for (size_t x = 0; x < f->n_gpus; x++) {
        double n = 0, seen = 0;
        for (size_t y = 0; y < f->n_gpus; y++) {
            const tv_str s = x == y ? (tv_str){0} : cell(f->t, f->gpu[x], f->gpu[y]);
            legacy |= tv_str_is(s, "SOC");
            seen += s.n > 0;
            n += is_nv(s);
            if (y > x && s.n) {
                pairs += is_nv(s);
                without += !is_nv(s);
            }
        }
        if (seen > 0 && !f->t->pcie_only)
            (void)tv_note_num(f->a, degree, index_key(f, gpu_number(f, x)), n);
    }
    if (legacy)
        (void)tv_note_str(f->a, f->facts, "legacy_soc_equals", TV_S("SYS"));
    (void)tv_note_str(f->a, f->facts, "mode",
                      f->t->pcie_only ? TV_S("-mp (pcie only)") : TV_S("-m"));
    if (f->t->pcie_only) {
        (void)tv_note_bool(f->a, f->facts, "nvlink_unknown", true);
        (void)tv_note_null(f->a, f->facts, "nvlink");
        return;
    }
    (void)tv_note_bool(f->a, f->facts, "nvlink", pairs > 0);
    if (f->n_gpus > 1)
        (void)tv_note_num(f->a, f->facts, "non_nvlink_pairs", without);
}

/* ---- adapters ---- */

static tv_str legend_name(const tv_topo *t, tv_str label)
{
    for (size_t i = 0; i < t->n_legend; i++)
        if (tv_str_eq(t->legend[i].label, label))
            return t->legend[i].name;
    return (tv_str){0};
}

static void put_nic_names(facts_of *f)
{
    bool numbered = f->n_nics > 0;
    for (size_t k = 0; k < f->n_nics; k++)
        numbered &= tv_str_starts(f->t->columns[f->nic[k]], TV_S("NIC"));
    if (!numbered) {
        tv_note *list = tv_note_list(f->a, f->facts, "nic_names");
        for (size_t k = 0; k < f->n_nics; k++)
            (void)tv_note_str(f->a, list, NULL, f->t->columns[f->nic[k]]);
        return;
    }
    if (!f->t->n_legend)
        return;
    tv_note *map = tv_note_map(f->a, f->facts, "nic_names");
    for (size_t k = 0; k < f->n_nics; k++) {
        const tv_str label = f->t->columns[f->nic[k]], name = legend_name(f->t, label);
        if (name.n)
            (void)tv_note_str(f->a, map, tv_cstr(f->a, label), name);
    }
}

static void put_nic(facts_of *f, tv_note *in, const char *key, size_t k)
{
    const tv_str label = f->t->columns[f->nic[k]];
    if (tv_str_starts(label, TV_S("NIC")))
        (void)tv_note_num(f->a, in, key, (double)nic_number(f, k));
    else
        (void)tv_note_str(f->a, in, key, label);
}

/* The nearest adapters of each card. */
static void put_near(facts_of *f)
{
    tv_note *one = tv_note_map(f->a, f->facts, "near_nic");
    tv_note *all = tv_note_map(f->a, f->facts, "near_nics");
    tv_note *link = tv_note_map(f->a, f->facts, "near_nic_link");
    for (size_t x = 0; x < f->n_gpus; x++) {
        const char *key = index_key(f, gpu_number(f, x));
        unsigned best = 98;
        for (size_t k = 0; k < f->n_nics; k++) {
            const unsigned rank = rank_of(cell(f->t, f->gpu[x], f->nic[k]));
            best = rank < best ? rank : best;
        }
        for (size_t k = 0; best < 98 && k < f->n_nics; k++) {
            const tv_str s = cell(f->t, f->gpu[x], f->nic[k]);
            if (rank_of(s) != best)
                continue;
            if (!tv_noted(one, key)) {
                put_nic(f, one, key, k);
                (void)tv_note_str(f->a, link, key, s);
            }
            put_nic(f, tv_note_list(f->a, all, key), NULL, k);
        }
    }
}

/* ---- affinities ---- */

static bool is_known(tv_str s)
{
    return s.n && !tv_str_is(s, "N/A") && !tv_str_is(s, "-");
}

static void put_word(facts_of *f, tv_note *in, const char *key, tv_str s)
{
    const tv_u64_read n = tv_str_u64(s);
    if (!is_known(s))
        (void)tv_note_null(f->a, in, key);
    else if (n.ok)
        (void)tv_note_num(f->a, in, key, (double)n.v);
    else
        (void)tv_note_str(f->a, in, key, s);
}

static void put_cpu(facts_of *f, tv_note *cpus, size_t x, tv_str s)
{
    if (!is_known(s)) {
        (void)tv_note_null(f->a, cpus, NULL);
        return;
    }
    const tv_topo_row *row = row_of(f->t, f->t->columns[f->gpu[x]]);
    tv_note *note = tv_note_str(f->a, cpus, NULL, s);
    if (row)
        (void)tv_at(f->r, note, row->line);
    tv_buf b = tv_buf_in(f->a);
    tv_puts(&b, "gpu");
    tv_put_u64(&b, gpu_number(f, x));
    tv_puts(&b, "_cpu_affinity");
    (void)tv_note_str(f->a, f->facts, tv_cstr(f->a, tv_buf_str(&b)), s);
}

static void put_affinities(facts_of *f)
{
    size_t last = 0;
    bool cpu = f->t->has_cpu, numa = f->t->has_numa;
    for (size_t x = 0; x < f->n_gpus; x++) {
        const tv_topo_row *row = row_of(f->t, f->t->columns[f->gpu[x]]);
        if (row)
            last = x + 1;
        cpu |= row && row->cpu.n;
        numa |= row && f->t->headless && row->numa.n;
    }
    tv_note *cpus = cpu ? tv_note_list(f->a, f->facts, "cpu_affinity") : NULL;
    tv_note *nodes = numa ? tv_note_list(f->a, f->facts, "numa") : NULL;
    tv_note *own = f->t->has_gpu_numa ? tv_note_list(f->a, f->facts, "gpu_numa_ids") : NULL;
    tv_str seen[TV_TOPO_MOST];
    size_t n = 0;
    for (size_t x = 0; x < last; x++) {
        const tv_topo_row *row = row_of(f->t, f->t->columns[f->gpu[x]]);
        const tv_str node = row ? row->numa : (tv_str){0};
        if (cpus)
            put_cpu(f, cpus, x, row ? row->cpu : (tv_str){0});
        if (nodes)
            put_word(f, nodes, NULL, node);
        if (own)
            put_word(f, own, NULL, row ? row->gpu_numa : (tv_str){0});
        bool again = !is_known(node);
        for (size_t i = 0; i < n; i++)
            again |= tv_str_eq(seen[i], node);
        if (!again)
            seen[n++] = node;
    }
    (void)tv_note_bool(f->a, f->facts, "numa_column", numa);
    (void)tv_note_bool(f->a, f->facts, "gpu_numa_column", f->t->has_gpu_numa);
    if (n)
        (void)tv_note_num(f->a, f->facts, "numa_nodes", (double)n);
}

/* Two cards of one memory node have at least its root complex in common: NODE or nearer. */
static void put_odd(facts_of *f)
{
    for (size_t x = 0; x < f->n_gpus; x++)
        for (size_t y = x + 1; y < f->n_gpus; y++) {
            const tv_topo_row *row = row_of(f->t, f->t->columns[f->gpu[x]]);
            const tv_topo_row *other = row_of(f->t, f->t->columns[f->gpu[y]]);
            if (row && other && is_known(row->numa) && tv_str_eq(row->numa, other->numa) &&
                tv_str_is(cell(f->t, f->gpu[x], f->gpu[y]), "SYS")) {
                (void)tv_at(f->r,
                            tv_note_str(f->a, f->facts, "odd", TV_S("SYS inside one NUMA node")),
                            row->line);
                return;
            }
        }
}

/* ---- the whole ---- */

static void put_matrix(facts_of *f)
{
    const tv_topo *t = f->t;
    tv_note *labels = tv_note_list(f->a, f->facts, "labels");
    for (size_t i = 0; i < t->n_columns; i++)
        (void)tv_note_str(f->a, labels, NULL, t->columns[i]);
    tv_note *matrix = tv_note_list(f->a, f->facts, "matrix");
    for (size_t i = 0; i < t->n_columns; i++) {
        tv_note *row = tv_note_list(f->a, matrix, NULL);
        for (size_t k = 0; k < t->n_columns; k++) {
            const tv_str s = i == k ? TV_S("X") : cell(t, i, k);
            if (s.n)
                (void)tv_note_str(f->a, row, NULL, s);
            else
                (void)tv_note_null(f->a, row, NULL);
        }
    }
}

static void put_shape(facts_of *f)
{
    size_t rows = 0;
    for (size_t i = 0; i < f->n_gpus; i++)
        rows += row_of(f->t, f->t->columns[f->gpu[i]]) != NULL;
    (void)tv_note_num(f->a, f->facts, "gpus", (double)f->n_gpus);
    (void)tv_note_num(f->a, f->facts, "nics", (double)f->n_nics);
    (void)tv_note_num(f->a, f->facts, "gpu_rows_present", (double)rows);
    (void)tv_note_bool(f->a, f->facts, "truncated", rows < f->n_gpus || f->t->headless);
    (void)tv_note_str(f->a, f->facts, "separator", f->t->tabs ? TV_S("tab") : TV_S("spaces"));
    (void)tv_note_num(f->a, f->facts, "indented", (double)f->t->indent);
}

/* AMD's tool tells what carries a pair, not how far it goes. */
static bool is_rocm(tv_str word)
{
    return tv_str_is(word, "XGMI") || tv_str_is(word, "PCIE");
}

/* -p2p: what the driver allows between two cards. */
static bool is_p2p_table(const facts_of *f)
{
    for (size_t i = 0; i < f->t->n_rows; i++)
        for (size_t k = 0; k < f->t->rows[i].n; k++) {
            const tv_str s = f->t->rows[i].cells[k];
            if (!tv_str_is(s, "X"))
                return rank_of(s) == 99 && !is_rocm(s);
        }
    return f->t->p2p_of.n > 0;
}

static void put_p2p(facts_of *f)
{
    (void)tv_note_num(f->a, f->facts, "p2p_gpus", (double)f->n_gpus);
    if (f->t->p2p_of.n)
        (void)tv_note_str(f->a, f->facts, "p2p_of", f->t->p2p_of);
    tv_note *pairs = tv_note_map(f->a, f->facts, "p2p");
    tv_str same = {0};
    bool uniform = true;
    for (size_t x = 0; x < f->n_gpus; x++)
        for (size_t y = x + 1; y < f->n_gpus; y++) {
            const tv_str s = cell(f->t, f->gpu[x], f->gpu[y]);
            if (!s.n)
                continue;
            uniform &= !same.n || tv_str_eq(s, same);
            same = s;
            (void)tv_note_str(f->a, pairs, key_of(f->a, "", gpu_number(f, x), "", gpu_number(f, y)),
                              s);
        }
    if (uniform && same.n)
        (void)tv_note_str(f->a, f->facts, "all_p2p", same);
}

/* A capture holds one table per host; a thousand of them tell nothing more. */
static bool is_enough(const tv_scene *scene)
{
    unsigned n = 0;
    for (const tv_sighting *s = tv_scene_first(scene, "topo"); s; s = tv_scene_next(s, "topo"))
        n++;
    return n >= 64;
}

void tv_topo_note(tv_reading *r, const tv_topo *t)
{
    if (is_enough(r->scene))
        return;
    facts_of *f = tv_new(r->a, facts_of, 1);
    f->r = r;
    f->a = r->a;
    f->t = t;
    for (size_t i = 0; i < t->n_columns; i++)
        if (tv_topo_is_gpu(t->columns[i]))
            f->gpu[f->n_gpus++] = i;
        else
            f->nic[f->n_nics++] = i;
    if (!f->n_gpus)
        return;
    f->facts = &tv_see(r, "topo", t->line)->facts;
    if (is_p2p_table(f)) {
        put_p2p(f);
        return;
    }
    put_shape(f);
    put_links(f);
    put_pairs(f);
    put_nvlink(f);
    put_nic_names(f);
    put_near(f);
    put_affinities(f);
    put_odd(f);
    put_matrix(f);
}
