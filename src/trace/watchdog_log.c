/* Collectives that did not end: what PyTorch's watchdogs of every version say of them, and of the
 * stores and Gloo's connections that ranks meet through. */
#include "glean.h"
#include "trace.h"

#include <math.h>
#include <string.h>

typedef struct watch {
    tv_reading *r;
    tv_note *facts;
} watch;

static void begin(watch *w, size_t i)
{
    if (!w->facts)
        w->facts = &tv_see(w->r, "watchdog", i)->facts;
}

static void once_str(watch *w, const char *key, tv_str s, size_t i)
{
    if (s.n && !tv_noted(w->facts, key))
        (void)tv_at(w->r, tv_note_str(w->r->a, w->facts, key, s), i);
}

static void once_num(watch *w, const char *key, tv_double_read v, size_t i)
{
    if (v.ok && !tv_noted(w->facts, key))
        (void)tv_at(w->r, tv_note_num(w->r->a, w->facts, key, v.v), i);
}

/* ---- who speaks ---- */

/* "[rank3]:" of the launcher names the rank of the job, "[Rank 3]" and "[PG 1 Rank 3]" that of the
 * group. */
static tv_double_read rank_of(tv_str s)
{
    tv_str rest;
    for (tv_str at = s; tv_past(at, "[rank", &at);) {
        const tv_double_read job = tv_number_past(at, at.n && *at.p == '=' ? "=" : "");
        if (job.ok)
            return job;
    }
    while (tv_past(s, "Rank ", &rest)) {
        const tv_double_read r = tv_take_number(&rest);
        if (r.ok && tv_str_starts(rest, TV_S("]")))
            return r;
        s = rest;
    }
    return (tv_double_read){0};
}

/* Kept in order. */
static void add_rank(watch *w, const char *key, double rank)
{
    tv_note *list = tv_note_list(w->r->a, w->facts, key);
    for (const tv_note *item = list->first; item; item = item->next)
        if (fabs(item->number - rank) < 0.5)
            return;
    if (list->n >= 1024)
        return;
    (void)tv_note_num(w->r->a, list, NULL, rank);
    double carried = rank;
    for (tv_note *item = list->first; item; item = item->next)
        if (item->number > carried || !item->next) {
            const double v = item->number;
            item->number = carried;
            carried = v;
        }
}

/* A rank of a job and a few of its groups; more are a repetition. */
enum { MOST_EVENTS = 512 };

/* The event of that rank and process group. */
static tv_note *event_of(watch *w, tv_double_read rank, tv_double_read seq, size_t i)
{
    tv_note *events = tv_note_list(w->r->a, w->facts, "events");
    if (events->n >= MOST_EVENTS)
        return events->last;
    for (tv_note *item = events->first; item; item = item->next) {
        const double other = tv_noted_num(item, "seq");
        const bool same_rank =
            rank.ok ? fabs(tv_noted_num(item, "rank") - rank.v) < 0.5 : !tv_noted(item, "rank");
        if (same_rank && (!seq.ok || isnan(other) || fabs(other - seq.v) < 0.5))
            return item;
    }
    tv_note *event = tv_note_map(w->r->a, events, NULL);
    (void)tv_at(w->r, event, i);
    if (rank.ok)
        (void)tv_note_num(w->r->a, event, "rank", rank.v);
    return event;
}

static void both_num(watch *w, tv_note *event, const char *key, tv_double_read v, size_t i)
{
    if (!v.ok)
        return;
    if (!tv_noted(event, key))
        (void)tv_note_num(w->r->a, event, key, v.v);
    once_num(w, key, v, i);
}

/* ---- the wordings ---- */

static tv_str format_of(tv_str s)
{
    if (tv_holds(s, "[PG ID "))
        return TV_S("2.6+ (PG ID/GUID)");
    if (tv_holds(s, "[PG "))
        return TV_S("2.4/2.5 (PG n Rank m)");
    return (tv_str){0};
}

static void put_group(watch *w, tv_note *event, tv_str s, size_t i)
{
    tv_double_read pg = tv_number_past(s, "[PG ID ");
    if (!pg.ok)
        pg = tv_number_past(s, "[PG ");
    both_num(w, event, "pg", pg, i);
    tv_str rest;
    once_num(w, "pg_guid", tv_number_past(s, "PG GUID "), i);
    if (tv_past(s, "PG GUID ", &rest))
        once_str(w, "pg_name", tv_enclosed(rest, "(", ")"), i);
    const tv_str format = format_of(s);
    if (format.n)
        (void)tv_note_str(w->r->a, w->facts, "format", format);
}

/* "TensorShape=[1024, 8]" */
static tv_double_read elements_of(tv_str s)
{
    tv_str rest;
    if (!tv_past(s, "TensorShape=[", &rest))
        return (tv_double_read){0};
    tv_double_read product = {1, true};
    for (unsigned i = 0; i < 16; i++) {
        const tv_u64_read v = tv_take_u64(&rest);
        if (!v.ok)
            return i ? product : (tv_double_read){0};
        product.v *= (double)v.v;
        if (!tv_str_starts(rest, TV_S(",")))
            break;
        rest = tv_str_drop(rest, 1);
    }
    return product;
}

/* Scatter and gather name the world: one side holds as many times the other. */
static void put_sizes(watch *w, tv_note *event, tv_str s, size_t i)
{
    const tv_double_read in = tv_number_past(s, "NumelIn="), out = tv_number_past(s, "NumelOut=");
    const tv_double_read shape = elements_of(s);
    both_num(w, event, "numel_in", in, i);
    both_num(w, event, "numel_out", out, i);
    if (shape.ok)
        both_num(w, event, "numel", shape, i);
    if (!in.ok || !out.ok || in.v < 1 || out.v < 1)
        return;
    const double ratio = in.v > out.v ? in.v / out.v : out.v / in.v;
    const tv_str op = tv_enclosed(s, "OpType=", ",");
    if (fabs(in.v - out.v) < 0.5)
        both_num(w, event, "numel", in, i);
    else if ((tv_holds(op, "SCATTER") || tv_holds(op, "GATHER")) &&
             fabs(ratio - round(ratio)) < 1e-9)
        once_num(w, "world_size_inferred", (tv_double_read){ratio, true}, i);
}

/* "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=.., OpType=.., ...) ran for .." */
static bool read_timeout(watch *w, tv_str s, size_t i)
{
    tv_str work;
    if (!tv_past(s, "caught collective operation timeout: ", &work) &&
        !tv_past(s, "Caught collective operation timeout: ", &work))
        return false;
    begin(w, i);
    const tv_double_read rank = rank_of(s), seq = tv_number_past(work, "SeqNum=");
    tv_note *event = event_of(w, rank, seq, i);
    both_num(w, event, "seq", seq, i);
    const tv_str op = tv_enclosed(work, "OpType=", ",");
    if (op.n && !tv_noted(event, "optype"))
        (void)tv_note_str(w->r->a, event, "optype", op);
    once_str(w, "optype", op, i);
    put_sizes(w, event, work, i);
    tv_double_read limit = tv_number_past(work, "Timeout(ms)=");
    limit.v /= 1000;
    both_num(w, event, "timeout_s", limit, i);
    tv_double_read ran = tv_number_past(work, "ran for ");
    ran.v /= 1000;
    both_num(w, event, "ran_s", ran, i);
    put_group(w, event, s, i);
    if (!tv_noted(w->facts, "format"))
        (void)tv_note_str(w->r->a, w->facts, "format_of_work",
                          tv_holds(work, "NumelIn=") ? TV_S("2.1+ (Numel)")
                                                     : TV_S("<= 2.0 (TensorShape)"));
    if (rank.ok)
        add_rank(w, "ranks_waiting", rank.v);
    return true;
}

/* Paddle: "group_key:..,group_ranks:[0,1],global_rank:1,local_rank:1,comm_count:51,op:ALLREDUCE,
 * started:1,completed:0,numel:1024,nranks:2" */
static bool read_paddle(watch *w, tv_str s, size_t i)
{
    if (!tv_holds(s, "group_key:") || !tv_holds(s, ",comm_count:"))
        return false;
    begin(w, i);
    const tv_double_read rank = tv_number_past(s, "global_rank:");
    const tv_double_read seq = tv_number_past(s, ",comm_count:");
    if (tv_number_past(s, ",completed:").v > 0.5)
        return true;
    tv_note *event = event_of(w, rank, seq, i);
    both_num(w, event, "seq", seq, i);
    const tv_str op = tv_enclosed(s, ",op:", ",");
    if (op.n && !tv_noted(event, "optype"))
        (void)tv_note_str(w->r->a, event, "optype", op);
    once_str(w, "optype", op, i);
    once_str(w, "pg_name", tv_enclosed(s, "group_key:", ","), i);
    once_str(w, "format", TV_S("paddle (group_key)"), i);
    both_num(w, event, "numel", tv_number_past(s, ",numel:"), i);
    once_num(w, "world_size_inferred", tv_number_past(s, ",nranks:"), i);
    if (rank.ok)
        add_rank(w, "ranks_waiting", rank.v);
    return true;
}

static tv_double_read behind(tv_str s, const char *const *needles)
{
    for (; *needles; needles++) {
        const tv_double_read r = tv_number_past(s, *needles);
        if (r.ok)
            return r;
    }
    return (tv_double_read){0};
}

/* "... detected by watchdog at work: n, last enqueued NCCL work: e, last completed NCCL work: c",
 * "Timeout at NCCL work: n, ...", "at work sequence id: n PG status: last enqueued work: e, ..." */
static bool read_progress(watch *w, tv_str s, size_t i)
{
    static const char *const at[] = {"watchdog at work sequence id: ", "watchdog at work: ",
                                     "Timeout at NCCL work: ", "timeout at work: ", NULL};
    static const char *const enqueued[] = {
        "last enqueued NCCL work: ", "last enqueued work: ", NULL};
    static const char *const completed[] = {
        "last completed NCCL work: ", "last completed work: ", NULL};
    const tv_double_read last = behind(s, enqueued), done = behind(s, completed);
    if (!last.ok && !done.ok)
        return false;
    begin(w, i);
    const tv_double_read rank = rank_of(s), seq = behind(s, at);
    tv_note *event = event_of(w, rank, seq, i);
    both_num(w, event, "seq", seq, i);
    both_num(w, event, "last_enqueued", last, i);
    both_num(w, event, "last_completed", done, i);
    put_group(w, event, s, i);
    if (rank.ok && seq.ok)
        add_rank(w, "ranks_waiting", rank.v);
    return true;
}

/* "ProcessGroupNCCL's watchdog got stuck for 480 seconds" */
static bool read_stuck(watch *w, tv_str s, size_t i)
{
    const tv_double_read stuck = tv_number_past(s, "watchdog got stuck for ");
    if (!stuck.ok)
        return false;
    begin(w, i);
    once_num(w, "watchdog_stuck_s", stuck, i);
    const tv_double_read rank = rank_of(s);
    if (rank.ok)
        add_rank(w, "ranks_stuck", rank.v);
    return true;
}

/* ---- stores ---- */

/* "(10.1.1.1, 29500)", "host:29500" behind a text */
static void put_address(watch *w, tv_str s, const char *needle, size_t i)
{
    tv_str rest;
    if (!tv_past(s, needle, &rest))
        return;
    rest = tv_str_trim(rest);
    tv_str address = tv_str_starts(rest, TV_S("(")) ? tv_enclosed(rest, "(", ")") : (tv_str){0};
    if (!address.n) {
        size_t k = 0;
        while (k < rest.n && rest.p[k] != ' ' && rest.p[k] != '(' && rest.p[k] != ',')
            k++;
        address = tv_str_take(rest, k);
    }
    while (address.n && address.p[address.n - 1] == '.')
        address.n--;
    once_str(w, "store_address", address, i);
}

static void put_store(watch *w, const char *state, tv_str s, size_t i)
{
    begin(w, i);
    once_str(w, "store", tv_str_of(state), i);
    const tv_double_read number = tv_number_past(s, "errno: ");
    once_num(w, "store_errno", number, i);
    const tv_str text = tv_enclosed(s, "errno: ", ")");
    once_str(w, "store_errno_text", tv_str_trim(tv_str_cut(text, '-').tail), i);
}

static bool read_store(watch *w, tv_str s, size_t i)
{
    if (tv_holds(s, "RendezvousConnectionError") || tv_holds(s, "RendezvousTimeoutError")) {
        put_store(w, tv_holds(s, "Timeout") ? "connect-timeout" : "connect-failed", s, i);
        return true;
    }
    if (tv_holds(s, "Using the loopback address") && tv_holds(s, "resolve hostname")) {
        begin(w, i);
        once_str(w, "gloo_interface", TV_S("loopback"), i);
        return true;
    }
    if (tv_holds(s, "server socket has failed to ") || tv_holds(s, "Address already in use")) {
        if (!tv_holds(s, "in use") && !tv_holds(s, "errno"))
            return false;
        put_store(w, tv_holds(s, "in use") ? "port-taken" : "cannot-listen", s, i);
        put_address(w, s, "failed to bind to ", i);
        return true;
    }
    if (tv_holds(s, "client socket has ")) {
        put_store(w, tv_holds(s, "timed out") ? "connect-timeout" : "connect-failed", s, i);
        tv_double_read limit = tv_number_past(s, "timed out after ");
        if (limit.ok && tv_holds(s, "ms while"))
            limit.v /= 1000;
        once_num(w, "store_timeout_s", limit, i);
        put_address(w, s, "network address of ", i);
        put_address(w, s, "connect to ", i);
        return true;
    }
    const tv_str joined = tv_enclosed(s, "waiting for clients. ", " clients joined");
    if (joined.n) {
        put_store(w, "clients-missing", s, i);
        tv_str rest = joined;
        once_num(w, "clients_joined", tv_take_number(&rest), i);
        if (tv_str_starts(rest, TV_S("/"))) {
            rest = tv_str_drop(rest, 1);
            once_num(w, "world_size", tv_take_number(&rest), i);
        }
        return true;
    }
    return false;
}

static bool read_gloo(watch *w, tv_str s, size_t i)
{
    if (!tv_holds(s, "gloo") && !tv_holds(s, "Gloo"))
        return false;
    const bool timed = tv_holds(s, "Timed out waiting"), full = tv_holds(s, "connectFullMesh");
    if (!timed && !full && !tv_holds(s, "Connection closed by peer") &&
        !tv_holds(s, "Connection reset by peer") && !tv_holds(s, "connect timeout") &&
        !tv_holds(s, "Connection refused"))
        return false;
    begin(w, i);
    once_str(w, "gloo",
             timed                                                      ? TV_S("timeout")
             : full                                                     ? TV_S("connect-failed")
             : tv_holds(s, "refused") || tv_holds(s, "connect timeout") ? TV_S("connect-failed")
                                                                        : TV_S("peer-gone"),
             i);
    put_address(w, s, "by peer ", i);
    once_str(w, "gloo_peer", tv_enclosed(s, "[", "]:"), i);
    return true;
}

/* ---- the launcher ---- */

/* torchrun's last words: below "Root Cause (first observed failure):" one value a line */
static bool read_first_failure(watch *w, size_t i)
{
    const tv_sheet *sheet = w->r->sheet;
    if (!tv_holds(sheet->v[i].s, "Root Cause (first observed failure)"))
        return false;
    begin(w, i);
    if (tv_noted(w->facts, "first_failure"))
        return true;
    tv_arena *a = w->r->a;
    tv_note *first = tv_note_map(a, w->facts, "first_failure");
    (void)tv_at(w->r, first, i);
    for (size_t k = i + 1; k < sheet->n && k < i + 10; k++) {
        const tv_str s = tv_str_trim(tv_bare(sheet->v[k].s));
        const tv_cut cut = tv_str_cut(s, ':');
        const tv_str key = tv_str_trim(cut.head), value = tv_str_trim(cut.tail);
        tv_str number = value;
        const tv_double_read v = tv_take_number(&number);
        if (tv_str_is(key, "host"))
            (void)tv_note_str(a, first, "host", value);
        else if (tv_str_is(key, "rank") && v.ok)
            (void)tv_note_num(a, first, "rank", v.v);
        else if (tv_str_is(key, "exitcode") && v.ok) {
            (void)tv_at(w->r, tv_note_num(a, first, "exitcode", v.v), k);
            const tv_double_read pid = tv_number_past(value, "pid: ");
            if (pid.ok)
                (void)tv_note_num(a, first, "pid", pid.v);
        } else if (tv_str_is(key, "traceback") && tv_holds(value, "Signal "))
            (void)tv_note_str(a, first, "signal", tv_enclosed(value, "(", ")"));
    }
    return true;
}

/* ---- what the job was doing ---- */

/* Long phases that one rank does alone; the last one that was logged before the time-out. */
static tv_str phase_of(tv_str s)
{
    static const char *const words[][2] = {
        {"aving model checkpoint", "checkpoint"},
        {"aving checkpoint", "checkpoint"},
        {"ave checkpoint", "checkpoint"},
        {"saving to ", "checkpoint"},
        {"unning Evaluation", "evaluation"},
        {"***** Running eval", "evaluation"},
        {"unning tokenizer", "tokenising"},
        {"okenizing", "tokenising"},
        {"alidation sanity check", "evaluation"},
        {"Map (num_proc", "tokenising"},
        {"Evaluating", "evaluation"},
        {"Generating train split", "tokenising"},
        {"alidating", "evaluation"},
        {"Downloading", "download"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_holds(s, words[i][0]))
            return tv_str_of(words[i][1]);
    return (tv_str){0};
}

/* A terminal may have broken the line: what belongs together is joined again. */
static tv_str whole_of(tv_reading *r, size_t i)
{
    tv_str s = r->sheet->v[i].s, work;
    for (size_t k = i + 1; k < r->sheet->n && k < i + 4 && s.n < 4096; k++) {
        const bool open = tv_past(s, "collective operation timeout: ", &work)
                              ? !tv_holds(work, "before timing out")
                              : tv_past(s, "last enqueued ", &work) && !tv_holds(work, "completed");
        const tv_str next = r->sheet->v[k].s;
        if (!open || !next.n || tv_holds(next, "[Rank ") || tv_holds(next, "[E"))
            break;
        s = tv_str_join(r->a, s, next);
    }
    return s;
}

static void read(tv_reading *r)
{
    watch w = {.r = r};
    tv_str phase = {0};
    size_t phase_at = 0;
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str s = whole_of(r, i);
        const bool before = !w.facts;
        if (read_timeout(&w, s, i) || read_progress(&w, s, i) || read_paddle(&w, s, i) ||
            read_stuck(&w, s, i) || read_store(&w, s, i) || read_gloo(&w, s, i) ||
            read_first_failure(&w, i)) {
            /* the last thing that was logged: nothing of a step came after it; a bar of progress
             * stands in the same line */
            const tv_str bar = phase_of(tv_str_take(s, 200));
            if (before && bar.n) {
                phase = bar;
                phase_at = i;
            }
            if (before && w.facts && phase.n && i - phase_at < 12) {
                tv_note *note = tv_note_str(r->a, w.facts, "phase", phase);
                (void)tv_at(r, note, phase_at);
            }
            continue;
        }
        const tv_str now = phase_of(s);
        if (now.n) {
            phase = now;
            phase_at = i;
        }
    }
    if (w.facts && !tv_noted(w.facts, "format") && tv_noted(w.facts, "format_of_work"))
        (void)tv_note_str(r->a, w.facts, "format", tv_noted_str(w.facts, "format_of_work"));
}

static const char *const needles[] = {"aught collective operation timeout: ",
                                      "last enqueued NCCL work: ",
                                      "last enqueued work: ",
                                      "last completed NCCL work: ",
                                      "watchdog got stuck for ",
                                      ",comm_count:",
                                      "server socket has failed to ",
                                      "client socket has ",
                                      "waiting for clients. ",
                                      "Address already in use",
                                      "Root Cause (first observed failure)",
                                      "RendezvousConnectionError",
                                      "RendezvousTimeoutError",
                                      "Using the loopback address",
                                      "gloo",
                                      "Gloo",
                                      NULL};

extern const tv_log_format tv_log_format_watchdog_log;
const tv_log_format tv_log_format_watchdog_log = {"watchdog", needles, read};
