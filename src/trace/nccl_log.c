/* NCCL's and RCCL's logs of every version, and what UCX and libibverbs say of locked memory. Finds
 * the lines and their prefixes; nccl_info.c and nccl_warn.c read them. */
#include "nccl_parts.h"

#include <math.h>
#include <string.h>

/* ---- prefixes ---- */

/* The launcher's: "[rank3]:", "[1,3]<stdout>:" of Open MPI, "3: " of srun. */
static double rank_before(tv_str s)
{
    s = tv_str_trim(s);
    tv_double_read r = {0};
    if (tv_str_starts(s, TV_S("[rank")))
        r = tv_number_past(s, "[rank");
    else if (tv_str_starts(s, TV_S("[1,")))
        r = tv_number_past(s, "[1,");
    else {
        tv_str rest = s;
        const tv_u64_read n = tv_take_u64(&rest);
        if (n.ok && n.v < 100000 && tv_str_starts(rest, TV_S(": ")))
            r = (tv_double_read){(double)n.v, true};
    }
    return r.ok ? r.v : (double)NAN;
}

/* "host-a:2143:2561": yields the host. */
static tv_str host_of(tv_str word)
{
    size_t colons = 0;
    const char *first = NULL;
    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] == ':') {
            colons++;
            first = first ? first : word.p + i;
        } else if (colons && (word.p[i] < '0' || word.p[i] > '9')) {
            return (tv_str){0};
        }
    return colons == 2 && first > word.p ? tv_str_span(word.p, first) : (tv_str){0};
}

static void read_prefix(tv_nccl_line *line, tv_str before)
{
    tv_str words[16], rest;
    if (tv_past(before, "<stdout>:", &rest) || tv_past(before, "<stderr>:", &rest))
        before = rest; /* Open MPI's tag */
    size_t n = tv_words(before, words, 16);
    n = n < 16 ? n : 16;
    for (size_t i = 0; i < n; i++) {
        const tv_str w = words[i], host = host_of(w);
        const tv_str inner = tv_enclosed(w, "[", "]");
        if (host.n && w.p[0] != '[')
            line->host = host;
        else if (inner.n && tv_str_u64(inner).ok && inner.n + 2 == w.n)
            line->device = (double)tv_str_u64(inner).v;
        else if (i + 1 < n && w.p[0] == '[' && w.n == 11 && w.p[5] == '-')
            line->stamped = true;
        if (i + 1 == n && !host.n) {
            const tv_cut cut = tv_str_cut(w, ':');
            const tv_u64_read number = tv_str_u64(cut.tail);
            if (number.ok && tv_holds(cut.head, ".")) {
                line->file = cut.head;
                line->line = (double)number.v;
            }
        }
    }
}

/* "NCCL INFO ..." wherever it stands in the line. */
static bool read_line(const tv_sheet *sheet, size_t i, tv_nccl_line *line)
{
    static const char *const levels[] = {"NCCL WARN ", "NCCL INFO ", "NCCL TRACE ", "NCCL ABORT ",
                                         "NCCL VERSION "};
    const tv_str s = sheet->v[i].s;
    *line = (tv_nccl_line){.at = i, .device = (double)NAN, .rank = rank_before(s)};
    tv_str text;
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        if (!tv_past(s, levels[k], &text))
            continue;
        line->level = tv_str_of(levels[k] + 5);
        line->level.n--;
        line->text = tv_str_trim(text);
        read_prefix(line, tv_str_span(s.p, text.p - strlen(levels[k])));
        return true;
    }
    /* the version alone goes to standard output */
    const char *const alone[] = {"NCCL version ", "RCCL version"};
    for (size_t k = 0; k < 2; k++)
        if (tv_str_starts(tv_bare(s), tv_str_of(alone[k]))) {
            line->level = TV_S("VERSION");
            line->text = tv_bare(s);
            return true;
        }
    return false;
}

static tv_nccl begin(tv_reading *r, size_t i)
{
    return (tv_nccl){.r = r, .facts = &tv_see(r, "nccl", i)->facts};
}

/* ---- errors that a framework prints in its own words ---- */

/* "..., unhandled system error, NCCL version 2.18.1", then "ncclSystemError: ...", "Last error:"
 * and NCCL's own last complaint. */
static void read_dist_error(tv_nccl *n, size_t i)
{
    const tv_sheet *sheet = n->r->sheet;
    tv_arena *a = n->r->a;
    const tv_str s = sheet->v[i].s;
    if (tv_noted(n->facts, "framework_error"))
        return;
    tv_str rest;
    (void)tv_past(s, "NCCL error in: ", &rest);
    tv_note *error = tv_note_map(a, n->facts, "framework_error");
    (void)tv_at(n->r, error, i);
    (void)tv_note_str(a, error, "text", tv_str_take(rest, 400));
    const tv_str version = tv_enclosed(s, "NCCL version ", "");
    if (version.n && !tv_noted(n->facts, "version")) {
        tv_str word = version;
        (void)tv_note_str(a, n->facts, "version", tv_take_word(&word));
    }
    for (size_t k = i + 1; k < sheet->n && k < i + 6; k++) {
        const tv_str line = tv_bare(sheet->v[k].s);
        if (tv_str_starts(line, TV_S("nccl")) && tv_holds(line, "Error"))
            (void)tv_note_str(a, error, "result_name", tv_str_cut(line, ':').head);
        if (!tv_str_starts(line, TV_S("Last error")))
            continue;
        tv_nccl_line last = {.at = k, .device = (double)NAN, .rank = rank_before(sheet->v[k].s)};
        last.text = tv_enclosed(line, ":", "");
        if (!last.text.n && k + 1 < sheet->n) {
            last.at = k + 1;
            last.text = tv_str_trim(tv_bare(sheet->v[k + 1].s));
        }
        if (last.text.n)
            tv_nccl_warned(n, &last);
        return;
    }
}

/* Results that a framework names without NCCL's own words. */
static void put_result(tv_nccl *n, double code, size_t i)
{
    static const char *const names[] = {
        "ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
        "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
        "ncclRemoteError",   "ncclInProgress",         "ncclTimeout"};
    if (!(code >= 1) || code > 8 || tv_noted(n->facts, "nccl_result"))
        return;
    (void)tv_at(n->r, tv_note_num(n->r->a, n->facts, "nccl_result", code), i);
    (void)tv_note_str(n->r->a, n->facts, "result_name", tv_str_of(names[(size_t)code]));
}

static double code_of(tv_str s)
{
    static const char *const words[] = {"unhandled cuda error", "unhandled system error",
                                        "internal error",       "invalid argument",
                                        "invalid usage",        "remote process exited"};
    tv_double_read r = tv_number_past(s, "NCCL error(");
    if (!r.ok)
        r = tv_number_past(s, "Nccl error(");
    if (!r.ok)
        r = tv_number_past(s, "NCCL Error ");
    for (size_t i = 0; !r.ok && i < sizeof words / sizeof *words; i++)
        if (tv_holds(s, words[i]))
            return (double)(i + 1);
    return r.ok ? r.v : (double)NAN;
}

static bool is_foreign_error(tv_str s)
{
    static const char *const needles[] = {"NCCL error(",     "Nccl error(",  "NCCL Error ",
                                          "NCCL operation ", "NCCL error: ", "NCCL error /"};
    for (size_t i = 0; i < sizeof needles / sizeof *needles; i++)
        if (tv_holds(s, needles[i]))
            return true;
    return false;
}

/* Paddle: "(External) NCCL error(2), unhandled system error.", JAX: "NCCL operation ... failed: ...
 * Last NCCL warning(error) log entry (may be unrelated) 'Cuda failure 2 'out of memory''", others:
 * "NCCL Error 2: unhandled system error" */
static void read_foreign(tv_nccl *n, size_t i)
{
    const tv_str s = n->r->sheet->v[i].s;
    put_result(n, code_of(s), i);
    if (!tv_noted(n->facts, "framework_error")) {
        tv_note *error = tv_note_map(n->r->a, n->facts, "framework_error");
        (void)tv_at(n->r, error, i);
        (void)tv_note_str(n->r->a, error, "text", tv_str_take(tv_bare(s), 400));
    }
    tv_str rest;
    if (!tv_past(s, "Last NCCL warning(error) log entry", &rest))
        return;
    tv_nccl_line last = {.at = i, .device = (double)NAN, .rank = rank_before(s)};
    last.text = tv_enclosed(rest, "'", "");
    while (last.text.n && (last.text.p[last.text.n - 1] == '.' ||
                           (tv_str_ends(last.text, TV_S("''")) && last.text.n > 1)))
        last.text.n--;
    if (last.text.n)
        tv_nccl_warned(n, &last);
}

/* ---- locked memory ---- */

/* UCX: "mlx5_0: ibv_create_cq() failed: Cannot allocate memory. ... (current: 64 kbytes)" */
static void read_ucx(tv_reading *r, size_t i)
{
    tv_nccl n = begin(r, i);
    tv_arena *a = r->a;
    const tv_str s = r->sheet->v[i].s;
    tv_str rest = s, name;
    const bool ucx = tv_past(s, "UCX", &rest);
    (void)tv_note_str(a, n.facts, "tool", ucx ? TV_S("ucx") : TV_S("verbs"));
    rest = tv_str_trim(rest);
    (void)tv_take_word(&rest); /* ERROR */
    const tv_cut dev = tv_str_cut(tv_str_trim(rest), ':');
    if (ucx && dev.found && dev.head.n < 32 && !tv_holds(dev.head, " "))
        (void)tv_note_str(a, n.facts, "dev", dev.head);
    if (tv_past(s, "ibv_", &name)) {
        const tv_str call = tv_take_word(&name);
        (void)tv_note_str(a, n.facts, "call", tv_str_span(call.p - 4, call.p + call.n));
    }
    const tv_errno_word *word = tv_errno_in(s);
    if (word)
        (void)tv_note_str(a, n.facts, "errno_text", tv_str_of(word->text));
    tv_double_read limit = tv_bytes_past(s, "(current: ");
    if (!limit.ok)
        limit = tv_bytes_past(s, "RLIMIT_MEMLOCK is ");
    if (!limit.ok)
        limit = tv_bytes_past(s, "emlock limit: ");
    if (limit.ok)
        (void)tv_note_num(a, n.facts, "memlock_bytes", limit.v);
    (void)tv_note_str(a, n.facts, "cause", TV_S("ulimit -l too small"));
}

static bool is_memlock(tv_str s)
{
    return tv_holds(s, "max locked memory (ulimit -l)") || tv_holds(s, "RLIMIT_MEMLOCK is ") ||
           (tv_holds(s, "Memlock limit:") && !tv_holds(s, "unlimited"));
}

/* ---- the log ---- */

/* A training log's line of a step: the network worked until here. */
static bool is_step(tv_str s)
{
    static const char *const words[] = {"loss", "Loss", "step ", "iter", "Iter", "epoch", "Epoch"};
    if (tv_holds(s, "NCCL"))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        tv_str rest;
        if (tv_past(s, words[i], &rest) && tv_holds(rest, ".") && rest.n < 4096)
            for (size_t k = 0; k + 1 < rest.n; k++)
                if (rest.p[k] >= '0' && rest.p[k] <= '9' && rest.p[k + 1] == '.')
                    return true;
    }
    return false;
}

static void take(tv_nccl *n, tv_reading *r, const tv_nccl_line *line)
{
    if (!n->facts) {
        const bool worked = n->worked;
        *n = begin(r, line->at);
        n->worked = worked;
    }
    if (line->host.n && !tv_noted(n->facts, "host"))
        (void)tv_note_str(r->a, n->facts, "host", line->host);
    if (line->host.n) {
        tv_note *hosts = tv_note_list(r->a, n->facts, "hosts");
        const tv_note *item = hosts->first;
        while (item && !tv_str_eq(item->s, line->host))
            item = item->next;
        if (!item && hosts->n < 64)
            (void)tv_note_str(r->a, hosts, NULL, line->host);
    }
    if (tv_str_is(line->level, "WARN"))
        tv_nccl_warned(n, line);
    else
        tv_nccl_told(n, line);
}

static void read(tv_reading *r)
{
    tv_nccl n = {0};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str s = r->sheet->v[i].s;
        tv_nccl_line line;
        if (is_memlock(s)) {
            read_ucx(r, i);
        } else if (tv_holds(s, "NCCL error in: ")) {
            const bool worked = n.worked;
            if (!n.facts)
                n = begin(r, i);
            n.worked = worked;
            put_result(&n, code_of(s), i);
            read_dist_error(&n, i);
        } else if (tv_holds(s, "CCL") && read_line(r->sheet, i, &line)) {
            take(&n, r, &line);
        } else if (is_foreign_error(s)) {
            if (!n.facts)
                n = begin(r, i);
            read_foreign(&n, i);
        } else if (!n.worked) {
            n.worked = is_step(s);
        }
    }
    if (n.facts)
        tv_nccl_sum(&n);
}

static const char *const needles[] = {
    "NCCL WARN ",         "NCCL INFO ",      "NCCL TRACE ",
    "NCCL ABORT ",        "NCCL VERSION ",   "NCCL version ",
    "RCCL version",       "NCCL error in: ", "NCCL error(",
    "Nccl error(",        "NCCL Error ",     "NCCL operation ",
    "NCCL error: ",       "NCCL error /",    "max locked memory (ulimit -l)",
    "RLIMIT_MEMLOCK is ", "Memlock limit:",  NULL};

extern const tv_log_format tv_log_format_nccl_log;
const tv_log_format tv_log_format_nccl_log = {"nccl", needles, read};
