/* Tables of nccl-tests and rccl-tests: sizes, times, bus bandwidth, wrong values. */
#include "glean.h"
#include "trace.h"

#include <math.h>

typedef struct table {
    tv_reading *r;
    tv_note *facts; /* NULL: none open */
    double ranks, busbw_most, wrong;
    bool counts_wrong; /* the last column is a count, not the largest difference */
    size_t rows;
    tv_str op;
} table;

static void open_table(table *t, size_t i)
{
    if (t->facts)
        return;
    t->facts = &tv_see(t->r, "nccl-tests", i)->facts;
    t->busbw_most = (double)NAN;
    t->ranks = t->wrong = 0;
    t->rows = 0;
    if (t->op.n)
        (void)tv_note_str(t->r->a, t->facts, "op", t->op);
}

static void close_table(table *t)
{
    if (!t->facts)
        return;
    tv_arena *a = t->r->a;
    if (t->ranks > 0)
        (void)tv_note_num(a, t->facts, "ranks", t->ranks);
    if (t->rows)
        (void)tv_note_num(a, t->facts, "wrong_values", t->wrong);
    t->facts = NULL;
    t->op = (tv_str){0};
}

/* "all_reduce_perf" where the command stands above, or "# nccl-tests version ... all_reduce_perf"
 */
static tv_str op_of(tv_str s)
{
    static const char *const ops[] = {"all_reduce", "all_gather", "reduce_scatter", "alltoall",
                                      "broadcast",  "sendrecv",   "reduce",         "gather",
                                      "scatter",    "hypercube"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        tv_str rest;
        if (tv_past(s, ops[i], &rest) && tv_str_starts(rest, TV_S("_perf")))
            return tv_str_of(ops[i]);
    }
    return (tv_str){0};
}

/* "#  Rank  0 Group  0 Pid  38 on  h device  0 [0x07] Tesla V100-SXM2-32GB" */
static bool read_rank(table *t, tv_str s, size_t i)
{
    tv_str rest, name;
    /* a page may have eaten the mark in front */
    if ((!tv_str_starts(s, TV_S("#")) && !tv_str_starts(s, TV_S("Rank "))) ||
        !tv_past(s, "Rank ", &rest) || !tv_holds(rest, " Pid ") ||
        !tv_past(rest, " device ", &name))
        return false;
    const tv_double_read rank = tv_take_number(&rest);
    if (!rank.ok)
        return false;
    if (t->facts && t->rows)
        close_table(t);
    open_table(t, i);
    t->ranks += 1;
    tv_arena *a = t->r->a;
    const tv_str host = tv_enclosed(rest, " on ", " device");
    tv_note *hosts = tv_note_list(a, t->facts, "hosts");
    const tv_note *item = hosts->first;
    while (item && !tv_str_eq(item->s, host))
        item = item->next;
    if (!item && host.n && hosts->n < 256)
        (void)tv_note_str(a, hosts, NULL, host);
    const tv_str gpu = tv_enclosed(name, "] ", "");
    if (gpu.n && !tv_noted(t->facts, "product"))
        (void)tv_note_str(a, t->facts, "product", gpu);
    return true;
}

/* A wrong count: "0", "0e+00", "N/A" */
static double wrong_of(tv_str s)
{
    const tv_double_read r = tv_str_double(s);
    return r.ok ? r.v : 0;
}

/* size count type [redop] [root] then twice: time algbw busbw #wrong */
static bool read_row(table *t, tv_str s, size_t i)
{
    tv_str w[16];
    const size_t n = tv_words(s, w, 16);
    if (n < 7 || n > 14 || !tv_str_u64(w[0]).ok || !tv_str_u64(w[1]).ok)
        return false;
    size_t k = 2;
    while (k < n && !tv_str_double(w[k]).ok)
        k++; /* float sum */
    if (k == 2 || k > 5)
        return false;
    if (n - k == 9 || n - k == 5) /* the root: -1 */
        k++;
    const size_t figures = n - k;
    if (figures != 8 && figures != 4 && figures != 3 && figures != 6)
        return false;
    const size_t half = figures == 8 || figures == 4 ? 4 : 3;
    open_table(t, i);
    tv_arena *a = t->r->a;
    tv_note *rows = tv_note_list(a, t->facts, "rows");
    tv_note *row = tv_note_map(a, rows, NULL);
    (void)tv_at(t->r, row, i);
    (void)tv_note_num(a, row, "bytes", (double)tv_str_u64(w[0]).v);
    for (size_t side = 0; side < figures / half; side++) {
        const tv_str *f = w + k + side * half;
        const tv_double_read time = tv_str_double(f[0]), bus = tv_str_double(f[2]);
        if (time.ok)
            (void)tv_note_num(a, row, side ? "in_place_s" : "time_s", time.v * 1e-6);
        if (bus.ok) {
            (void)tv_note_num(a, row, side ? "in_place_busbw_bytes_per_s" : "busbw_bytes_per_s",
                              bus.v * 1e9);
            if (isnan(t->busbw_most) || bus.v > t->busbw_most) {
                t->busbw_most = bus.v;
                (void)tv_at(t->r, tv_note_num(a, t->facts, "max_busbw_bytes_per_s", bus.v * 1e9),
                            i);
                (void)tv_note_num(a, t->facts, "max_busbw_at_bytes", (double)tv_str_u64(w[0]).v);
            }
        }
        if (half == 4 && t->counts_wrong && wrong_of(f[3]) > 0) {
            t->wrong += wrong_of(f[3]);
            if (!tv_noted(t->facts, "wrong_at"))
                (void)tv_at(t->r, tv_note_num(a, t->facts, "wrong_at", (double)tv_str_u64(w[0]).v),
                            i);
        }
    }
    t->rows++;
    return true;
}

/* "# Out of bounds values : 1 FAILED" */
static bool read_bounds(table *t, tv_str s, size_t i)
{
    tv_double_read v = tv_number_past(s, "Out of bounds values : ");
    if (!v.ok || !t->facts)
        return false;
    if (v.v > t->wrong && tv_holds(s, "FAILED")) {
        t->wrong = v.v;
        if (!tv_noted(t->facts, "wrong_at"))
            (void)tv_at(t->r, tv_note_null(t->r->a, t->facts, "wrong_at"), i);
    }
    return true;
}

static bool read_footer(table *t, tv_str s, size_t i)
{
    const tv_double_read mean = tv_number_past(s, "Avg bus bandwidth");
    tv_double_read v = mean;
    tv_str rest;
    if (!v.ok && tv_past(s, "Avg bus bandwidth", &rest))
        v = tv_number_past(rest, ":");
    if (!v.ok)
        return false;
    open_table(t, i);
    (void)tv_at(t->r, tv_note_num(t->r->a, t->facts, "avg_busbw_bytes_per_s", v.v * 1e9), i);
    close_table(t);
    return true;
}

enum { MOST_TABLES = 256 };

static void read(tv_reading *r)
{
    table t = {.r = r};
    size_t tables = 0;
    for (size_t i = 0; i < r->sheet->n && tables < MOST_TABLES; i++) {
        const tv_str s = tv_str_trim(tv_bare(r->sheet->v[i].s));
        const tv_note *before = t.facts;
        const tv_str op = op_of(s);
        if (op.n && !t.facts)
            t.op = op;
        tv_str rest;
        if (tv_str_starts(s, TV_S("#")) && tv_past(s, "nGpus", &rest)) {
            if (t.facts && t.rows)
                close_table(&t);
            open_table(&t, i);
            const tv_double_read gpus = tv_take_number(&rest);
            if (gpus.ok)
                (void)tv_note_num(r->a, t.facts, "gpus_per_thread", gpus.v);
        } else if (tv_str_starts(s, TV_S("#")) && tv_holds(s, "busbw")) {
            t.counts_wrong = tv_holds(s, "#wrong");
        } else if (!read_rank(&t, s, i) && !read_bounds(&t, s, i) && !read_footer(&t, s, i) &&
                   s.n && *s.p != '#') {
            (void)read_row(&t, s, i);
        }
        tables += t.facts && t.facts != before;
    }
    close_table(&t);
}

static const char *const needles[] = {"Avg bus bandwidth", "busbw", "_perf -", "nGpus", NULL};

extern const tv_log_format tv_log_format_nccl_tests_log;
const tv_log_format tv_log_format_nccl_tests_log = {"nccl-tests", needles, read};
