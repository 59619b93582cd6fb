/* What tools measured of copies: CUDA's bandwidthTest, nvbandwidth, p2pBandwidthLatencyTest, and
 * perftest's ib_*_bw. One sighting per run; a numactl in front of it is part of it. */
#include "glean.h"
#include "trace.h"

#include <math.h>
#include <string.h>

typedef struct bench {
    tv_reading *r;
    tv_note *facts;  /* of the run that is open; NULL: none */
    tv_note pending; /* what a command line said before the run printed anything */
    bool commanded;
    const char *direction; /* key of the table that is open; NULL: none */
    double unit;           /* bytes per second of a number */
    tv_str test;           /* nvbandwidth's */
    tv_note *matrix;       /* that is being read; NULL: none */
    bool connectivity;     /* of noughts and ones */
    double least, most;
} bench;

static void open_run(bench *b, const char *tool, size_t i)
{
    b->facts = &tv_see(b->r, "bandwidth", i)->facts;
    (void)tv_note_str(b->r->a, b->facts, "tool", tv_str_of(tool));
    if (b->commanded)
        for (const tv_note *item = b->pending.first; item; item = item->next)
            (void)tv_note_num(b->r->a, b->facts, item->key, item->number);
    b->commanded = false;
    b->direction = NULL;
    b->matrix = NULL;
    b->test = (tv_str){0};
}

static bool is_tool(const bench *b, const char *tool)
{
    return b->facts && tv_noted_is(b->facts, "tool", tool);
}

/* ---- the command ---- */

static tv_double_read option(tv_str s, const char *letter, const char *word)
{
    const tv_double_read r = tv_number_past(s, letter);
    return r.ok ? r : tv_number_past(s, word);
}

/* "$ numactl -m0 -N0 ./bandwidthTest": begins a run of its own. */
static bool read_command(bench *b, tv_str s, size_t i)
{
    static const char *const tools[] = {"bandwidthTest", "nvbandwidth", "p2pBandwidthLatencyTest"};
    const char *tool = NULL;
    for (size_t k = 0; k < sizeof tools / sizeof *tools; k++)
        tool = tv_holds(s, tools[k]) ? tools[k] : tool;
    const bool bound = tv_holds(s, "numactl") || tv_holds(s, "taskset");
    const bool typed = tv_holds(s, "$ ") || tv_holds(s, "# ") || tv_holds(s, "./") || bound;
    if (!tool || !typed || tv_holds(s, "Running"))
        return false;
    b->pending = (tv_note){.type = TV_NOTE_MAP};
    const tv_double_read node = option(s, "-N", "--cpunodebind="),
                         mem = option(s, "-m", "--membind=");
    const tv_double_read device = tv_number_past(s, "--device=");
    if (bound && node.ok)
        (void)tv_note_num(b->r->a, &b->pending, "cpu_node", node.v);
    if (bound && mem.ok)
        (void)tv_note_num(b->r->a, &b->pending, "mem_node", mem.v);
    if (device.ok)
        (void)tv_note_num(b->r->a, &b->pending, "device", device.v);
    b->commanded = true;
    open_run(b, tool, i);
    return true;
}

/* ---- bandwidthTest ---- */

static const char *direction_of(tv_str s)
{
    if (tv_holds_nocase(s, "host to device") || tv_holds(s, "H2D") || tv_holds(s, "HtoD"))
        return "h2d_bytes_per_s";
    if (tv_holds_nocase(s, "device to host") || tv_holds(s, "D2H") || tv_holds(s, "DtoH"))
        return "d2h_bytes_per_s";
    if (tv_holds_nocase(s, "device to device") || tv_holds(s, "D2D"))
        return "d2d_bytes_per_s";
    return NULL;
}

/* bandwidthTest's MB are 2^20 bytes (bandwidthTest.cu of CUDA 5 to 10), its GB 10^9. */
static bool read_heading(bench *b, tv_str s, size_t i)
{
    const bool begins = tv_holds(s, "[CUDA Bandwidth Test]");
    const bool table = tv_holds(s, "Bandwidth") && direction_of(s) && tv_holds(s, "evice(s)");
    if (begins || (table && !is_tool(b, "bandwidthTest"))) {
        if (!is_tool(b, "bandwidthTest") || tv_noted(b->facts, "h2d_bytes_per_s"))
            open_run(b, "bandwidthTest", i);
        b->unit = 0x1p20;
    }
    if (table)
        b->direction = direction_of(s);
    if (tv_holds(s, "PINNED Memory") || tv_holds(s, "PAGEABLE Memory"))
        (void)(b->facts ? tv_note_bool(b->r->a, b->facts, "pinned", tv_holds(s, "PINNED")) : NULL);
    if (tv_holds(s, "Bandwidth(GB/s)"))
        b->unit = 1e9;
    else if (tv_holds(s, "Bandwidth(MB/s)"))
        b->unit = 0x1p20;
    return begins || table;
}

static bool read_transfer(bench *b, tv_str s, size_t i)
{
    tv_str rest = s;
    const tv_u64_read size = tv_take_u64(&rest);
    if (!is_tool(b, "bandwidthTest") || !size.ok || size.v < 256)
        return false;
    const tv_double_read rate = tv_take_number(&rest);
    const char *key = direction_of(rest) ? direction_of(rest) : b->direction;
    if (!rate.ok || !key)
        return false;
    /* of several sizes the last, largest one counts */
    (void)tv_at(b->r,
                tv_note_num(b->r->a, b->facts, key, rate.v * (b->unit > 0 ? b->unit : 0x1p20)), i);
    (void)tv_note_num(b->r->a, b->facts, "transfer_bytes", (double)size.v);
    return true;
}

/* ---- matrices ---- */

/* "0  1  2": the cards' numbers above the figures */
static bool is_column_heads(const bench *b, const tv_str *words, size_t n)
{
    if (b->matrix->n)
        return false;
    for (size_t k = 0; k < n; k++) {
        const tv_u64_read v = tv_str_u64(words[k]);
        if (!v.ok || v.v != k)
            return false;
    }
    return !b->connectivity;
}

/* The row of a matrix: its number, then as many figures as there are columns. */
static bool read_matrix_row(bench *b, tv_str s)
{
    tv_str words[130];
    const size_t n = tv_words(s, words, 130);
    if (!b->matrix || n < 2 || n > 129 || !tv_str_u64(words[0]).ok)
        return false;
    if (is_column_heads(b, words, n))
        return true;
    tv_note *row = tv_note_list(b->r->a, b->matrix, NULL);
    const uint64_t own = tv_str_u64(words[0]).v;
    for (size_t k = 1; k < n; k++) {
        const tv_double_read v = tv_str_double(words[k]);
        if (!v.ok) {
            (void)tv_note_null(b->r->a, row, NULL);
            continue;
        }
        (void)tv_note_num(b->r->a, row, NULL, v.v * b->unit);
        if ((own == k - 1 && !b->direction) || v.v <= 0)
            continue; /* a card with itself */
        b->least = isnan(b->least) || v.v < b->least ? v.v : b->least;
        b->most = isnan(b->most) || v.v > b->most ? v.v : b->most;
    }
    return true;
}

static void open_matrix(bench *b, tv_note *in, const char *key, double unit)
{
    b->matrix = tv_note_list(b->r->a, in, key);
    b->connectivity = false;
    b->unit = unit;
    b->least = b->most = (double)NAN;
}

static void close_matrix(bench *b, tv_note *in, const char *least, const char *most)
{
    if (b->matrix && !isnan(b->least)) {
        (void)tv_note_num(b->r->a, in, least, b->least * b->unit);
        (void)tv_note_num(b->r->a, in, most, b->most * b->unit);
    }
    b->matrix = NULL;
}

/* ---- nvbandwidth ---- */

static const char *nv_key(tv_str test)
{
    static const char *const rows[][2] = {
        {"host_to_device_memcpy_ce", "h2d_bytes_per_s"},
        {"device_to_host_memcpy_ce", "d2h_bytes_per_s"},
        {"device_to_device_memcpy_read_ce", "p2p_bytes_per_s"},
        {"device_to_device_memcpy_write_ce", "p2p_bytes_per_s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tv_str_is(test, rows[i][0]))
            return rows[i][1];
    return NULL;
}

static void end_nv_test(bench *b)
{
    if (!is_tool(b, "nvbandwidth") || !b->test.n || !b->matrix)
        return;
    tv_note *test =
        tv_note_map(b->r->a, tv_note_map(b->r->a, b->facts, "tests"), tv_cstr(b->r->a, b->test));
    const double least = b->least * b->unit;
    close_matrix(b, test, "least_bytes_per_s", "most_bytes_per_s");
    const char *key = nv_key(b->test);
    if (key && !isnan(least) && !tv_noted(b->facts, key)) /* the slowest card counts */
        (void)tv_note_num(b->r->a, b->facts, key, least);
}

static bool read_nvbandwidth(bench *b, tv_str s, size_t i)
{
    if (tv_holds(s, "nvbandwidth Version")) {
        if (!is_tool(b, "nvbandwidth") || tv_noted_n(b->facts, "tests"))
            open_run(b, "nvbandwidth", i);
        return true;
    }
    if (tv_str_starts(s, TV_S("Running ")) && tv_holds(s, "_")) {
        end_nv_test(b);
        if (!is_tool(b, "nvbandwidth"))
            open_run(b, "nvbandwidth", i);
        tv_str rest = tv_str_drop(s, 8);
        b->test = tv_take_word(&rest);
        while (b->test.n && b->test.p[b->test.n - 1] == '.')
            b->test.n--;
        return true;
    }
    if (!is_tool(b, "nvbandwidth"))
        return false;
    if (tv_holds(s, "bandwidth (GB/s)") && b->test.n) {
        tv_note *tests = tv_note_map(b->r->a, b->facts, "tests");
        if (tests->n >= 256)
            return true;
        tv_note *test = tv_note_map(b->r->a, tests, tv_cstr(b->r->a, b->test));
        (void)tv_at(b->r, test, i);
        open_matrix(b, test, "bytes_per_s", 1e9);
        b->direction = tv_holds(s, "CPU(row)") ? "cpu" : NULL;
        return true;
    }
    const tv_double_read sum =
        tv_str_starts(s, TV_S("SUM ")) ? tv_number_past(s, "_ce ") : (tv_double_read){0};
    if (tv_str_starts(s, TV_S("SUM "))) {
        end_nv_test(b);
        if (sum.ok && b->test.n)
            (void)tv_note_num(b->r->a,
                              tv_note_map(b->r->a, tv_note_map(b->r->a, b->facts, "tests"),
                                          tv_cstr(b->r->a, b->test)),
                              "sum_bytes_per_s", sum.v * 1e9);
        return true;
    }
    return false;
}

/* ---- p2pBandwidthLatencyTest ---- */

typedef struct p2p_row {
    const char *title;
    const char *on, *key, *least, *most;
    double unit;
} p2p_row;

static const p2p_row p2p_rows[] = {
    {"Unidirectional", "P2P=Disabled", "uni_host_bytes_per_s", "uni_host_least_bytes_per_s",
     "uni_host_most_bytes_per_s", 1e9},
    {"Unidirectional", "P2P=Enabled", "uni_p2p_bytes_per_s", "uni_p2p_least_bytes_per_s",
     "uni_p2p_most_bytes_per_s", 1e9},
    {"Bidirectional", "P2P=Disabled", "bi_host_bytes_per_s", "bi_host_least_bytes_per_s",
     "bi_host_most_bytes_per_s", 1e9},
    {"Bidirectional", "P2P=Enabled", "bi_p2p_bytes_per_s", "bi_p2p_least_bytes_per_s",
     "bi_p2p_most_bytes_per_s", 1e9},
    {"P2P=Disabled Latency", "P2P=Disabled", "host_latency_s", "host_latency_least_s",
     "host_latency_most_s", 1e-6},
    {"P2P=Enabled Latency", "P2P=Enabled", "p2p_latency_s", "p2p_latency_least_s",
     "p2p_latency_most_s", 1e-6},
};

static const p2p_row *p2p_row_of(tv_str s)
{
    if (tv_holds(s, "Matrix") || tv_holds(s, "Bandwidth (P2P"))
        for (size_t i = 0; i < sizeof p2p_rows / sizeof *p2p_rows; i++)
            if (tv_holds(s, p2p_rows[i].title) && tv_holds(s, p2p_rows[i].on))
                return &p2p_rows[i];
    return NULL;
}

static void count_access(bench *b, tv_str s)
{
    const bool cannot = tv_holds(s, "CANNOT Access Peer Device");
    const char *key = cannot ? "p2p_pairs_refused" : "p2p_pairs_allowed";
    const double n = tv_noted_num(b->facts, key);
    (void)tv_note_num(b->r->a, b->facts, key, isnan(n) ? 1 : n + 1);
}

static bool read_p2p(bench *b, tv_str s, size_t i, const p2p_row **open)
{
    const p2p_row *row = p2p_row_of(s);
    const bool begins = tv_holds(s, "GPU Bandwidth Latency Test]");
    if (begins || ((row || tv_holds(s, "P2P Connectivity Matrix")) &&
                   !is_tool(b, "p2pBandwidthLatencyTest"))) {
        if (!is_tool(b, "p2pBandwidthLatencyTest") || tv_noted(b->facts, "uni_host_bytes_per_s"))
            open_run(b, "p2pBandwidthLatencyTest", i);
        *open = NULL;
    }
    if (!is_tool(b, "p2pBandwidthLatencyTest"))
        return begins;
    if (tv_holds(s, "Access Peer Device=")) {
        count_access(b, s);
        return true;
    }
    if (row) {
        *open = row;
        open_matrix(b, b->facts, row->key, row->unit);
        (void)tv_at(b->r, b->matrix, i);
        return true;
    }
    if (tv_holds(s, "P2P Connectivity Matrix")) {
        *open = NULL;
        open_matrix(b, b->facts, "p2p_allowed", 1);
        b->connectivity = true;
        return true;
    }
    return begins;
}

/* ---- perftest ---- */

static bool read_perftest(bench *b, tv_str s, size_t i)
{
    static const char *const tests[][2] = {
        {"RDMA_Write BW Test", "ib_write_bw"},
        {"RDMA_Read BW Test", "ib_read_bw"},
        {"Send BW Test", "ib_send_bw"},
        {"RDMA_Write Bidirectional BW Test", "ib_write_bw"},
    };
    for (size_t k = 0; k < sizeof tests / sizeof *tests; k++)
        if (tv_holds(s, tests[k][0])) {
            open_run(b, tests[k][1], i);
            return true;
        }
    if (!b->facts || !tv_str_starts(tv_noted_str(b->facts, "tool"), TV_S("ib_")))
        return false;
    tv_str rest;
    if (tv_past(s, "Device", &rest) && tv_past(rest, ": ", &rest) && !tv_noted(b->facts, "dev"))
        (void)tv_note_str(b->r->a, b->facts, "dev", tv_take_word(&rest));
    if (tv_past(s, "Link type", &rest) && tv_past(rest, ": ", &rest))
        (void)tv_note_str(b->r->a, b->facts, "link_type", tv_take_word(&rest));
    if (tv_holds(s, "BW average")) {
        b->unit = tv_holds(s, "Gb/sec") ? 1e9 / 8 : 0x1p20;
        b->direction = "bw_bytes_per_s";
        return true;
    }
    tv_str words[5];
    if (!b->direction || tv_words(s, words, 5) < 4 || !tv_str_u64(words[0]).ok)
        return false;
    const tv_double_read rate = tv_str_double(words[3]);
    const double before = tv_noted_num(b->facts, "bw_bytes_per_s");
    if (rate.ok && !(before > rate.v * b->unit)) {
        (void)tv_at(b->r, tv_note_num(b->r->a, b->facts, "bw_bytes_per_s", rate.v * b->unit), i);
        (void)tv_note_num(b->r->a, b->facts, "transfer_bytes", (double)tv_str_u64(words[0]).v);
    }
    return true;
}

/* "Device 0: Tesla P100-PCIE-16GB", "Device: 0, NVIDIA RTX A6000, pciBusID: 1, ..." */
static void read_product(bench *b, tv_str s)
{
    tv_str rest;
    if (!b->facts || tv_noted(b->facts, "product"))
        return;
    tv_str name = {0};
    if (tv_str_starts(s, TV_S("Device: ")) && tv_past(s, ", ", &rest))
        name = tv_str_trim(tv_str_cut(rest, ',').head);
    else if (tv_str_starts(s, TV_S("Device ")) && tv_past(s, ": ", &rest))
        name = tv_str_trim(tv_str_cut(rest, '(').head);
    if (name.n && name.n < 80)
        (void)tv_note_str(b->r->a, b->facts, "product", name);
}

/* ---- the sheet ---- */

/* A run of junk must not fill the scene. */
enum { MOST_RUNS = 256 };

static size_t runs_in(const tv_scene *scene)
{
    size_t n = 0;
    for (const tv_sighting *s = tv_scene_first(scene, "bandwidth"); s;
         s = tv_scene_next(s, "bandwidth"))
        n++;
    return n;
}

static void read(tv_reading *r)
{
    bench b = {.r = r, .unit = 0x1p20};
    const p2p_row *open = NULL;
    size_t runs = runs_in(r->scene);
    for (size_t i = 0; i < r->sheet->n && runs < MOST_RUNS; i++) {
        const tv_str s = tv_str_trim(tv_bare(r->sheet->v[i].s));
        if (!s.n)
            continue;
        const tv_note *before = b.facts;
        if (read_matrix_row(&b, s))
            continue;
        if (b.matrix && open) {
            if (tv_holds(s, "D\\D") || tv_str_starts(s, TV_S("GPU ")))
                continue; /* titles; what the processor saw ("CPU") ends the matrix */
            close_matrix(&b, b.facts, open->least, open->most);
            open = NULL;
        }
        read_product(&b, s);
        if (!read_command(&b, r->sheet->v[i].s, i) && !read_p2p(&b, s, i, &open) &&
            !read_nvbandwidth(&b, s, i) && !read_perftest(&b, s, i) && !read_heading(&b, s, i))
            (void)read_transfer(&b, s, i);
        runs += b.facts != before;
    }
    if (b.matrix && open)
        close_matrix(&b, b.facts, open->least, open->most);
    end_nv_test(&b);
}

static const char *const needles[] = {"bandwidthTest",
                                      "CUDA Bandwidth Test",
                                      "nvbandwidth",
                                      "_memcpy_ce",
                                      "P2P Connectivity Matrix",
                                      "GPU Bandwidth Latency Test]",
                                      "P2P=Disabled",
                                      "Host to Device Bandwidth",
                                      "BW average",
                                      NULL};

extern const tv_log_format tv_log_format_bandwidth_log;
const tv_log_format tv_log_format_bandwidth_log = {"bandwidth", needles, read};
