/* Collectives that did not end: who is missing, who does something else, and where ranks fail to
 * meet. */
#include "comm.h"

#include <math.h>
#include <string.h>

/* ---- all ranks' words, from any number of logs ---- */

enum { MOST_RANKS = 1024 };

typedef struct waiter {
    double rank; /* NaN: not told */
    double seq;
    tv_str op;
    double numel;
    double pg;
    const tv_sighting *s;
    const tv_note *event;
} waiter;

typedef struct waiters {
    waiter *v;
    size_t n;
    double world; /* NaN: not known */
} waiters;

static void add_events(waiters *w, const tv_sighting *s)
{
    const tv_note *list = tv_noted(&s->facts, "events");
    for (const tv_note *e = list ? list->first : NULL; e && w->n < MOST_RANKS; e = e->next) {
        if (isnan(tv_noted_num(e, "seq")) && !tv_noted(e, "optype"))
            continue;
        w->v[w->n++] = (waiter){
            .rank = tv_noted_num(e, "rank"),
            .seq = tv_noted_num(e, "seq"),
            .op = tv_noted_str(e, "optype"),
            .numel = tv_noted_num(e, "numel_in"),
            .pg = tv_noted_num(e, "pg"),
            .s = s,
            .event = e,
        };
    }
}

/* How many ranks the job has, from whoever tells it: the largest. */
static void add_world(waiters *w, const tv_sighting *s)
{
    static const char *const keys[] = {"world_size", "nranks", "world_size_inferred"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const double v = tv_noted_num(&s->facts, keys[i]);
        if (!isnan(v) && (isnan(w->world) || v > w->world) && v <= 1e6)
            w->world = v;
    }
}

static waiters gather(tv_inquiry *q)
{
    waiters w = {.v = tv_new(q->a, waiter, MOST_RANKS), .world = (double)NAN};
    for (const tv_sighting *s = tv_scene_first(q->scene, "watchdog"); s;
         s = tv_scene_next(s, "watchdog")) {
        add_events(&w, s);
        add_world(&w, s);
    }
    for (const tv_sighting *s = tv_scene_first(q->scene, "nccl"); s; s = tv_scene_next(s, "nccl"))
        add_world(&w, s);
    for (const tv_sighting *s = tv_scene_first(q->scene, "flight"); s;
         s = tv_scene_next(s, "flight")) {
        add_world(&w, s);
        add_events(&w, s);
    }
    return w;
}

/* ---- do they wait for the same thing ---- */

static bool is_same_group(const waiter *x, const waiter *y)
{
    return isnan(x->pg) || isnan(y->pg) || fabs(x->pg - y->pg) < 0.5;
}

/* Only of an all-reduce all ranks must bring as much. */
static bool is_other_size(const waiter *x, const waiter *y)
{
    const bool reduce = tv_str_is(x->op, "ALLREDUCE") || tv_str_is(x->op, "all_reduce");
    return reduce && tv_str_eq(x->op, y->op) && fabs(x->numel - y->numel) > 0.5;
}

static bool is_other_work(const waiter *x, const waiter *y)
{
    /* the flight recorder counts and names them otherwise than the watchdog */
    if (strcmp(x->s->kind, y->s->kind) != 0)
        return false;
    if (!is_same_group(x, y) || isnan(x->rank) || isnan(y->rank) || fabs(x->rank - y->rank) < 0.5)
        return false;
    if (!isnan(x->seq) && !isnan(y->seq) && fabs(x->seq - y->seq) > 0.5)
        return true;
    if (x->op.n && y->op.n && !tv_str_eq(x->op, y->op))
        return true;
    return is_other_size(x, y);
}

/* The two that differ, the one that is behind first; NULL: all wait for the same. */
static const waiter *differing(const waiters *w, const waiter **other)
{
    for (size_t i = 1; i < w->n; i++)
        if (is_other_work(&w->v[0], &w->v[i])) {
            const bool first = w->v[0].seq <= w->v[i].seq;
            *other = first ? &w->v[i] : &w->v[0];
            return first ? &w->v[0] : &w->v[i];
        }
    return NULL;
}

static bool has_rank(const waiters *w, double rank)
{
    for (size_t i = 0; i < w->n; i++)
        if (fabs(w->v[i].rank - rank) < 0.5)
            return true;
    return false;
}

/* Old versions do not tell the group: a rank that waits in several numbers has several. */
static bool is_several_groups(const waiters *w)
{
    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < i; k++)
            if (isnan(w->v[i].pg) && fabs(w->v[i].rank - w->v[k].rank) < 0.5 &&
                fabs(w->v[i].seq - w->v[k].seq) > 0.5)
                return true;
    return false;
}

static size_t distinct(const waiters *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        bool again = isnan(w->v[i].rank);
        for (size_t k = 0; k < i; k++)
            again |= fabs(w->v[i].rank - w->v[k].rank) < 0.5;
        n += !again;
    }
    return n;
}

static tv_str waiting_text(tv_inquiry *q, const waiters *w)
{
    tv_buf b = tv_buf_in(q->a);
    for (double rank = 0; rank < MOST_RANKS && b.n < 200; rank++)
        if (has_rank(w, rank)) {
            tv_puts(&b, b.n ? "," : "");
            tv_put_u64(&b, (uint64_t)rank);
        }
    return tv_buf_str(&b);
}

static tv_str missing_text(tv_inquiry *q, const waiters *w)
{
    tv_buf b = tv_buf_in(q->a);
    for (double rank = 0; rank < w->world && rank < MOST_RANKS && b.n < 200; rank++)
        if (!has_rank(w, rank)) {
            tv_puts(&b, b.n ? "," : "");
            tv_put_u64(&b, (uint64_t)rank);
        }
    return tv_buf_str(&b);
}

static void put_waiters(tv_inquiry *q, tv_finding *f, const waiters *w)
{
    tv_found_num_or(q, f, "seq", TV_ARG_NUMBER, w->v[0].seq, N_("not told"));
    tv_found_str_or(q, f, "optype", w->v[0].op, N_("collective"));
    tv_found_str_or(q, f, "ranks_waiting", waiting_text(q, w), N_("not told"));
    tv_found_num(q, f, "world_size", TV_ARG_NUMBER, w->world);
    tv_found_num(q, f, "timeout_s", TV_ARG_SECONDS, tv_noted_num(w->v[0].event, "timeout_s"));
    for (size_t i = 1; i < w->n && i < 4; i++)
        tv_found_also(q, f, w->v[i].s, w->v[i].event);
}

/* Groups within a job count their members from 0, the job its ranks: what is told of one does not
 * name ranks of the other. */
static bool is_whole_job(const waiters *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->v[i].rank >= w->world)
            return false;
    return true;
}

/* A pasted log of a few ranks of many names no missing one. */
static bool is_lacking_one(const waiters *w)
{
    const size_t n = distinct(w);
    return is_whole_job(w) && !isnan(w->world) && (double)n < w->world && (double)n * 2 >= w->world;
}

static bool is_complete(const waiters *w)
{
    return !isnan(w->world) && (double)distinct(w) >= w->world && w->world > 1;
}

/* What follows from the others' failure, or from being told to stop. */
static bool is_consequence(tv_str exception, tv_str text)
{
    static const char *const words[] = {"DistBackend", "ChildFailed",     "KeyboardInterrupt",
                                        "SystemExit",  "SignalException", "DistStore"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_str_has(exception, tv_str_of(words[i])))
            return true;
    return tv_str_has(text, TV_S("NCCL")) || tv_str_has(text, TV_S("Watchdog")) ||
           tv_str_has(text, TV_S("Connection reset by peer"));
}

static bool has_waiter_in(const waiters *w, tv_str file)
{
    for (size_t i = 0; i < w->n; i++)
        if (tv_str_eq(w->v[i].s->file, file))
            return true;
    return false;
}

/* How a rank that does not wait ended: an exception of its own, told by its number or by its log.
 */
static const tv_sighting *exception_of_missing(const tv_inquiry *q, const waiters *w)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "traceback"); s;
         s = tv_scene_next(s, "traceback")) {
        const double rank = tv_noted_num(&s->facts, "exception_rank");
        if (is_consequence(tv_noted_str(&s->facts, "exception"),
                           tv_noted_str(&s->facts, "exception_text")))
            continue;
        if (isnan(rank) ? !has_waiter_in(w, s->file) : !has_rank(w, rank))
            return s;
    }
    return NULL;
}

/* Memory that ran out or a card that failed on some rank is why it never came. */
static const tv_rule *why_missing(const tv_inquiry *q)
{
    for (size_t i = 0; i < q->out->findings.n; i++) {
        const tv_finding *f = q->out->findings.v[i];
        if (f->severity == TV_CRITICAL && (f->rule->id[0] == 'O' || f->rule->id[0] == 'H'))
            return f->rule;
    }
    return NULL;
}

/* NCCL's own RAS names processes that do not answer. */
static bool judge_lost(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "ras"); s; s = tv_scene_next(s, "ras")) {
        const tv_note *lost = tv_noted(&s->facts, "lost_processes.0");
        if (!lost)
            continue;
        tv_finding *f = tv_found(q, rule, s, lost);
        f->because = why_missing(q);
        f->cause = N_("NCCL's RAS gets no answer from process {pid} on {node} (GPU {gpu}), rank "
                      "{missing}: it crashed, was ended or stopped. The other ranks wait for it.");
        tv_found_num(q, f, "pid", TV_ARG_NUMBER, tv_noted_num(lost, "pid"));
        tv_found_str_or(q, f, "node", tv_noted_str(lost, "node"), N_("not told"));
        tv_found_str_or(q, f, "gpu", tv_noted_str(lost, "gpu"), N_("not told"));
        tv_found_str_or(q, f, "missing", tv_numbers(q->a, tv_noted(&s->facts, "missing_ranks")),
                        N_("not told"));
        return true;
    }
    return false;
}

/* Two reports with the same counts: nothing moves, and some ranks are behind. One report alone may
 * have caught a healthy job between two collectives. */
static bool judge_behind(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *before = NULL;
    for (const tv_sighting *s = tv_scene_first(q->scene, "ras"); s; s = tv_scene_next(s, "ras")) {
        const double most = tv_noted_num(&s->facts, "most_operations");
        const double least = tv_noted_num(&s->facts, "least_operations");
        if (isnan(most) || most - least < 0.5)
            continue;
        const bool stands =
            before && fabs(tv_noted_num(&before->facts, "most_operations") - most) < 0.5;
        if (!stands && !before) {
            before = s;
            tv_ask(
                q, "ncclras; sleep 10; ncclras",
                N_("Counts that differ once mean nothing; counts that stand still name the ranks "
                   "that hang."));
            continue;
        }
        if (!stands)
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "error"));
        tv_found_also(q, f, before, tv_noted(&before->facts, "error"));
        f->because = why_missing(q);
        f->cause = N_("Two reports of NCCL's RAS show the same counts: some ranks launched {least} "
                      "collectives, the others {most}, and nothing moves. Ranks that stand out: "
                      "{missing}.");
        tv_found_num(q, f, "least", TV_ARG_COUNT, least);
        tv_found_num(q, f, "most", TV_ARG_COUNT, most);
        tv_found_str_or(q, f, "missing", tv_numbers(q->a, tv_noted(&s->facts, "outlier_ranks")),
                        N_("not told"));
        return true;
    }
    return false;
}

static void judge_missing(tv_inquiry *q, const tv_rule *rule)
{
    if (judge_lost(q, rule) || judge_behind(q, rule))
        return;
    const waiters w = gather(q);
    const waiter *other;
    if (!w.n || differing(&w, &other) || is_complete(&w))
        return;
    tv_finding *f = tv_found(q, rule, w.v[0].s, w.v[0].event);
    put_waiters(q, f, &w);
    f->because = why_missing(q);
    if (is_lacking_one(&w)) {
        tv_found_str(q, f, "missing", missing_text(q, &w));
        f->cause =
            N_("Ranks {ranks_waiting} wait in the same {optype} (number {seq}) of {world_size} "
               "ranks; rank {missing} never came. It crashed, hangs in its loader or in "
               "Python, or its card failed: the cause is there, not in NCCL.");
    } else {
        f->sure = TV_MEDIUM;
    }
    const tv_sighting *ended = exception_of_missing(q, &w);
    if (ended) {
        tv_found_also(q, f, ended, NULL);
        f->sure = TV_HIGH;
        f->cause =
            N_("Ranks {ranks_waiting} wait in the same {optype} (number {seq}) for a rank that "
               "ended with {exception}: that error is the cause, the time-outs follow from "
               "it.");
        tv_found_str(q, f, "exception", tv_noted_str(&ended->facts, "exception"));
        return;
    }
    tv_ask(q, "py-spy dump --pid PID",
           N_("On the rank that is not in the list, while it hangs: it shows the line it stands "
              "on."));
}

static void judge_order(tv_inquiry *q, const tv_rule *rule)
{
    const waiters w = gather(q);
    const waiter *ahead, *behind = differing(&w, &ahead);
    if (!behind)
        return;
    tv_finding *f = tv_found(q, rule, behind->s, behind->event);
    tv_found_also(q, f, ahead->s, ahead->event);
    if (strcmp(behind->s->kind, "flight") == 0)
        f->sure = TV_HIGH; /* it records what each rank really called */
    else if (is_several_groups(&w))
        f->sure = TV_LOW;
    tv_found_num(q, f, "rank", TV_ARG_NUMBER, behind->rank);
    tv_found_num_or(q, f, "seq", TV_ARG_NUMBER, behind->seq, N_("not told"));
    tv_found_str_or(q, f, "optype", behind->op, N_("collective"));
    tv_found_num(q, f, "other_rank", TV_ARG_NUMBER, ahead->rank);
    tv_found_num_or(q, f, "other_seq", TV_ARG_NUMBER, ahead->seq, N_("not told"));
    tv_found_str_or(q, f, "other_optype", ahead->op, N_("collective"));
    if (is_other_size(behind, ahead) && fabs(behind->seq - ahead->seq) < 0.5) {
        f->cause = N_("Rank {rank} and rank {other_rank} are both in number {seq} ({optype}), but "
                      "bring {numel} and {other_numel} elements: their models or batches differ.");
        tv_found_num(q, f, "numel", TV_ARG_COUNT, behind->numel);
        tv_found_num(q, f, "other_numel", TV_ARG_COUNT, ahead->numel);
    }
    tv_ask(q, "TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun train.py",
           N_("It checks every collective's shape and order on all ranks, and names the first that "
              "differs."));
}

/* NCCL and Gloo notice it themselves when sizes differ. */
static void judge_truncated(tv_inquiry *q, const tv_rule *rule)
{
    if (tv_has_found(q, rule->id))
        return;
    for (const tv_sighting *s = tv_scene_first(q->scene, "nccl"); s; s = tv_scene_next(s, "nccl")) {
        const tv_note *list = tv_noted(&s->facts, "warn");
        for (const tv_note *item = list ? list->first : NULL; item; item = item->next)
            if (tv_noted_is(item, "class", "order")) {
                tv_finding *f = tv_found(q, rule, s, item);
                f->cause = N_("NCCL received a message of another size than it waited for: ranks "
                              "called collectives in different orders or with different sizes, or "
                              "run with different NCCL settings.");
                return;
            }
    }
}

static void judge_order_or_size(tv_inquiry *q, const tv_rule *rule)
{
    judge_order(q, rule);
    judge_truncated(q, rule);
}

static void judge_phase(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "watchdog"); s;
         s = tv_scene_next(s, "watchdog")) {
        const tv_note *phase = tv_noted(&s->facts, "phase");
        if (!phase || !tv_noted_n(&s->facts, "events"))
            continue;
        tv_finding *f = tv_found(q, rule, s, phase);
        tv_found_also(q, f, s, tv_noted(&s->facts, "events.0"));
        tv_found_str(q, f, "phase", phase->s);
        tv_found_num_or(q, f, "timeout_s", TV_ARG_SECONDS, tv_noted_num(&s->facts, "timeout_s"),
                        N_("long"));
        return;
    }
}

static void judge_stalled(tv_inquiry *q, const tv_rule *rule)
{
    const waiters w = gather(q);
    const waiter *other;
    if (!w.n || differing(&w, &other) || !is_complete(&w))
        return;
    tv_finding *f = tv_found(q, rule, w.v[0].s, w.v[0].event);
    put_waiters(q, f, &w);
    tv_ask(q, "NCCL_DEBUG=INFO torchrun train.py",
           N_("The log then names the path of every pair, and the one that gives up."));
}

static void judge_stuck(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "watchdog"); s;
         s = tv_scene_next(s, "watchdog")) {
        const tv_note *stuck = tv_noted(&s->facts, "watchdog_stuck_s");
        if (!stuck)
            continue;
        tv_finding *f = tv_found(q, rule, s, stuck);
        tv_found_num(q, f, "stuck_s", TV_ARG_SECONDS, stuck->number);
        tv_found_str_or(q, f, "ranks", tv_numbers(q->a, tv_noted(&s->facts, "ranks_stuck")),
                        N_("not told"));
        if (tv_noted_n(&s->facts, "events"))
            f->severity = TV_WARNING; /* the time-out of a collective says more */
        return;
    }
}

/* ---- who ended first ---- */

/* What the system's way of ending a process says; NULL: the program ended itself. */
static const char *cause_of_exit(double code)
{
    if (fabs(code + 9) < 0.5 || fabs(code - 137) < 0.5)
        return N_("Rank {rank} ended first, by SIGKILL: most often the kernel or the batch system "
                  "ran out of memory for it. What the other ranks report follows from that.");
    if (fabs(code + 7) < 0.5 || fabs(code - 135) < 0.5)
        return N_("Rank {rank} ended first, by SIGBUS: most often /dev/shm or a mapped file is "
                  "full. What the other ranks report follows from that.");
    if (fabs(code + 11) < 0.5 || fabs(code - 139) < 0.5)
        return N_("Rank {rank} ended first, by a segmentation fault in native code: an extension, "
                  "a library of another version, or broken memory.");
    return NULL;
}

static void judge_first(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "watchdog"); s;
         s = tv_scene_next(s, "watchdog")) {
        const tv_note *first = tv_noted(&s->facts, "first_failure");
        const double code = tv_noted_num(first, "exitcode");
        if (!first || isnan(code))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(first, "exitcode"));
        tv_found_num_or(q, f, "rank", TV_ARG_NUMBER, tv_noted_num(first, "rank"), N_("not told"));
        tv_found_num(q, f, "exitcode", TV_ARG_NUMBER, code);
        tv_found_str(q, f, "host", tv_noted_str(first, "host"));
        const char *cause = cause_of_exit(code);
        if (cause)
            f->cause = cause;
        else
            f->severity = TV_INFO; /* its own error stands above and says more */
        return;
    }
}

/* ---- where ranks meet ---- */

static void judge_port(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "watchdog"); s;
         s = tv_scene_next(s, "watchdog")) {
        if (!tv_noted_is(&s->facts, "store", "port-taken"))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "store"));
        tv_found_str_or(q, f, "address", tv_noted_str(&s->facts, "store_address"),
                        N_("its address"));
        return;
    }
}

static bool is_store_failure(const tv_sighting *s)
{
    static const char *const states[] = {"connect-timeout", "connect-failed", "clients-missing"};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (tv_noted_is(&s->facts, "store", states[i]))
            return true;
    return tv_noted_is(&s->facts, "gloo", "connect-failed");
}

static void judge_meeting(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "watchdog"); s;
         s = tv_scene_next(s, "watchdog")) {
        if (!is_store_failure(s))
            continue;
        const tv_note *at = tv_noted(&s->facts, "store");
        tv_finding *f = tv_found(q, rule, s, at ? at : tv_noted(&s->facts, "gloo"));
        tv_found_str_or(q, f, "address", tv_noted_str(&s->facts, "store_address"),
                        N_("the meeting point"));
        tv_found_num(q, f, "joined", TV_ARG_NUMBER, tv_noted_num(&s->facts, "clients_joined"));
        tv_found_num(q, f, "world_size", TV_ARG_NUMBER, tv_noted_num(&s->facts, "world_size"));
        if (tv_noted_is(&s->facts, "store", "clients-missing"))
            f->cause =
                N_("{joined} of {world_size} ranks came to the meeting point; the others were "
                   "not started, died before it, or cannot reach it.");
        else if (!at)
            f->cause =
                N_("Gloo's ranks could not connect to each other: it chose an interface that "
                   "does not join the hosts, or a firewall stands between them.");
        return;
    }
}

static const tv_rule rules[] = {
    {
        .id = "C36",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The port where ranks meet is taken"),
        .cause = N_("The first rank could not listen at {address}: another process has the port, "
                    "often an earlier run that has not ended, or a second job with the same "
                    "default port."),
        .decided =
            N_("The store's server, or another listener, reports \"Address already in use\"."),
        .unless = NULL,
        .source = "https://pytorch.org/docs/stable/elastic/run.html",
        .steps = {{.command = "ss -ltnp | grep 29500",
                   .why = N_("Who has it. Make sure that it is a leftover of yours before you end "
                             "it: ending another job's process loses its work.")},
                  {.command = "torchrun --master-port 29501 train.py",
                   .why = N_("Or take another port; --standalone chooses a free one.")}},
        .outranks = "C37 C18",
        .judge = judge_port,
    },
    {
        .id = "C49",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("One rank ended first and took the others with it"),
        .cause =
            N_("Rank {rank} ended first (exit code {exitcode}). Its own error, above in the log "
               "or in its own file, is the cause; what the other ranks report follows from it."),
        .decided =
            N_("torchrun names the first failure; critical where a signal ended it (SIGKILL, "
               "SIGBUS, SIGSEGV), else for information."),
        .unless = N_("SIGABRT is often the watchdog's own: then look at the time-out."),
        .source = "https://pytorch.org/docs/stable/elastic/errors.html",
        .steps = {{.command = "dmesg -T | grep -iE 'oom-kill|killed process|segfault|xid'",
                   .why = N_("On {host}: what the kernel says of that moment.")},
                  {.command = "torchrun --log-dir logs --tee 3 train.py",
                   .why = N_("Each rank's own output in a file.")}},
        .outranks = "C18 C39",
        .judge = judge_first,
    },
    {
        .id = "C20",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("A long phase on one rank outlived the others' patience"),
        .cause =
            N_("The last thing that was logged before the time-out is {phase}: one rank was busy "
               "with it while the others waited {timeout_s} in a collective and gave up."),
        .decided = N_("A line of saving, evaluating, tokenising or downloading stands at most 12 "
                      "lines before the first time-out of the watchdog."),
        .unless =
            N_("When the phase normally takes seconds, the storage or that rank hangs (C18)."),
        .source = "https://github.com/hiyouga/LlamaFactory/issues/2424",
        .steps = {{.command = "torch.distributed.init_process_group(timeout=timedelta(hours=2))",
                   .why = N_("More patience: --ddp_timeout of the Hugging Face trainer.")},
                  {.why =
                       N_("Do the long work before the process group is made, or on all ranks at "
                          "once, and put a barrier behind it.")}},
        .outranks = "C18 C39",
        .judge = judge_phase,
    },
    {
        .id = "C19",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("Ranks do not call the same collectives in the same order"),
        .cause = N_("Rank {rank} waits in number {seq} ({optype}), rank {other_rank} in number "
                    "{other_seq} ({other_optype}): one of them skipped or added a collective, by a "
                    "condition, an uneven number of batches or an exception."),
        .decided =
            N_("Watchdogs of one process group name different numbers or operations; or NCCL "
               "receives a message of the wrong size."),
        .unless =
            N_("A rank that is one collective behind may merely be slow: look whether it still "
               "runs."),
        .source = "https://pytorch.org/docs/stable/distributed.html",
        .steps = {{.command = "TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun train.py",
                   .why = N_("It names the first collective that differs.")},
                  {.command = "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 torchrun train.py",
                   .why = N_("It keeps the last collectives of each rank and dumps them at the "
                             "time-out; give trivet doctor all dumps.")},
                  {.why = N_("With uneven data use drop_last=True or the join context of DDP; keep "
                             "collectives out of conditions that differ by rank.")}},
        .outranks = "C18 C39",
        .judge = judge_order_or_size,
    },
    {
        .id = "C18",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A rank is missing in a collective"),
        .cause =
            N_("Ranks {ranks_waiting} wait in the same {optype} (number {seq}). Whoever is not "
               "in this list never came: that rank crashed, hangs in its loader or in Python, "
               "or its card failed. The cause is there, not in NCCL."),
        .decided =
            N_("All time-outs of the watchdog name the same collective, and fewer ranks than "
               "the job has report one; high where the number of ranks is known. "
               "Or NCCL's RAS misses a process, or shows the same unequal counts twice."),
        .unless =
            N_("Only part of the ranks' logs may have been given. Where all ranks report, see "
               "C39."),
        .source = "https://github.com/XPixelGroup/BasicSR/issues/737",
        .steps = {{.command = "py-spy dump --pid PID",
                   .why = N_("On the missing rank, while it hangs.")},
                  {.command = "dmesg -T | grep -iE 'xid|oom|killed'",
                   .why = N_("On its host: a card that failed, or a process that was ended.")},
                  {.command = "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 torchrun train.py",
                   .why =
                       N_("Run again with the flight recorder: its dumps name the missing rank.")}},
        .outranks = "C03",
        .judge = judge_missing,
    },
    {
        .id = "C39",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("All ranks are in the collective and it does not end"),
        .cause = N_("All {world_size} ranks wait in the same {optype} (number {seq}): nobody is "
                    "missing, the data does not flow. A link, an adapter or peer-to-peer between "
                    "two cards stalls."),
        .decided = N_("As many ranks as the job has report the same collective."),
        .unless =
            N_("A collective of very many bytes over a slow network may only be slow: compare "
               "bytes and time."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        .steps = {{.command = "NCCL_P2P_DISABLE=1 torchrun train.py",
                   .why =
                       N_("A test: if it runs now, peer-to-peer is at fault (C01); slower, so not "
                          "for good.")},
                  {.command = "all_reduce_perf -b 8 -e 1G -f 2 -g 8",
                   .why = N_("The same path without the framework.")}},
        .judge = judge_stalled,
    },
    {
        .id = "C47",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("A call of CUDA or NCCL hangs and blocks the watchdog"),
        .cause =
            N_("PyTorch's watchdog made no progress for {stuck_s} on rank {ranks}: it waits in "
               "a call of CUDA or NCCL that does not return, because the driver or a card "
               "hangs, or another thread holds Python's lock inside such a call."),
        .decided = N_("\"ProcessGroupNCCL's watchdog got stuck\" in the log; a warning only, where "
                      "the time-out of a collective stands beside it."),
        .unless = N_("Very many communicators that are torn down at once take minutes as well."),
        .source = "https://pytorch.org/docs/stable/torch_nccl_environment_variables.html",
        .steps = {{.command = "dmesg -T | grep -i xid",
                   .why = N_("A card that hangs says so there.")},
                  {.command = "py-spy dump --native --pid PID",
                   .why = N_("Which thread stands in which call.")},
                  {.command = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=1800",
                   .undo = "unset TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
                   .why = N_("Only where the call would come back: more patience.")}},
        .judge = judge_stuck,
    },
    {
        .id = "C37",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("Ranks cannot reach the meeting point"),
        .cause = N_("A rank could not connect to {address}: the first rank is not listening there, "
                    "the address is wrong, or a firewall stands between."),
        .decided = N_("The store's client times out or is refused, fewer clients join than the job "
                      "has, or Gloo cannot connect."),
        .unless =
            N_("When the first rank died at its start (port taken, out of memory), that is the "
               "cause."),
        .source = "https://pytorch.org/docs/stable/elastic/run.html",
        .steps = {{.command = "nc -vz MASTER 29500",
                   .why = N_("From the other host: is the port open?")},
                  {.command = "echo $MASTER_ADDR $MASTER_PORT $WORLD_SIZE $RANK",
                   .why = N_("The same address and number of ranks everywhere, each rank once.")},
                  {.command = "export GLOO_SOCKET_IFNAME=eth0",
                   .undo = "unset GLOO_SOCKET_IFNAME",
                   .why = N_("For Gloo, name the interface that joins the hosts.")}},
        .judge = judge_meeting,
    },
};

extern const tv_rule_group tv_rule_group_watchdog_rules;
const tv_rule_group tv_rule_group_watchdog_rules = {
    "collectives", N_("Collectives that do not end"), rules, sizeof rules / sizeof *rules};
