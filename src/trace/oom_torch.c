/* PyTorch's memory errors with sizes, from 1.0 on: CUDA, HIP, XPU and NPU in one grammar per era,
 * and Apple's MPS. Knows nothing of errors without sizes (oom_bare.c). */
#include <math.h>

#include "glean.h"
#include "oom_parts.h"
#include "trace.h"

/* ---- a figure ---- */

static double nan_or(tv_double_read v)
{
    /* NVML's "not available" is printed as 17179869184 GiB. */
    return v.ok && v.v < 0x1p60 ? v.v : (double)NAN;
}

/* The size that stands before a text: "8.57 MiB already allocated". */
static double size_before(tv_str text, const char *what)
{
    tv_str rest;
    if (!tv_past(text, what, &rest))
        return (double)NAN;
    tv_str head = tv_str_trim(tv_str_span(text.p, rest.p - tv_str_of(what).n));
    size_t blanks = 0, n = head.n;
    while (n && blanks < 2) {
        blanks += head.p[n - 1] == ' ';
        n -= blanks < 2;
    }
    head = tv_str_drop(head, n);
    while (head.n && (*head.p < '0' || *head.p > '9'))
        head = tv_str_drop(head, 1);
    return nan_or(tv_take_bytes(&head));
}

/* "GPU 1 has", "(GPU 0;", "NPU 3": the number behind the device's word. */
static tv_u64_read device_of(tv_str text)
{
    static const char *const words[] = {"GPU ", "NPU ", "XPU ", "device "};
    tv_str rest;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        tv_str at = text;
        while (tv_past(at, words[i], &rest)) {
            const tv_u64_read n = tv_take_u64(&rest);
            if (n.ok)
                return n;
            at = rest;
        }
    }
    return (tv_u64_read){0};
}

/* ---- up to 2.0: all in brackets ---- */

static void read_brackets(tv_reading *r, tv_note *facts, tv_str text, bool hinted,
                          tv_oom_account *c)
{
    c->total = size_before(text, "total capacity");
    c->allocated = size_before(text, "already allocated");
    c->free = size_before(text, "free;");
    if (isnan(c->free))
        c->free = size_before(text, "free)");
    c->allowed = size_before(text, "allowed");
    const double reserved = size_before(text, "reserved in total");
    const double cached = size_before(text, "cached");
    if (!isnan(reserved)) {
        c->unused = reserved - c->allocated;
        (void)tv_note_num(r->a, facts, "reserved_bytes", reserved);
        tv_oom_word(r, facts, "format",
                    hinted ? "reserved + max_split_size_mb (1.10-2.0)" : "reserved (1.4-1.9)");
        if (!isnan(c->unused))
            (void)tv_note_num(r->a, facts, "reserved_unallocated_bytes", fmax(c->unused, 0));
        (void)tv_note_num(r->a, facts, "outside_this_process_bytes", c->total - c->free - reserved);
    } else if (!isnan(cached)) {
        c->unused = cached;
        tv_oom_word(r, facts, "format", "cached (<=1.3)");
        (void)tv_note_num(r->a, facts, "cached_unused_bytes", cached);
        (void)tv_note_num(r->a, facts, "outside_this_allocator_bytes",
                          c->total - c->free - c->allocated - cached);
    }
}

/* ---- 2.1 and later: sentences ---- */

/* How far the whole process may exceed what its allocator holds, for an entry to be the process
 * itself seen from a container. */
#define SELF_BELOW_BYTES (0.06 * 1024 * 1024 * 1024)
#define SELF_ABOVE_BYTES (2.0 * 1024 * 1024 * 1024)

/* "Process P has S memory in use." each; yields how many. */
static size_t read_processes(tv_reading *r, tv_note *facts, tv_str text)
{
    tv_str rest = text;
    size_t n = 0;
    while (tv_past(rest, "Process ", &rest)) {
        tv_str at = rest;
        const tv_u64_read pid = tv_take_u64(&at);
        tv_str size;
        if (!pid.ok || !tv_past(tv_str_take(at, 8), "has ", &size))
            continue;
        size = tv_str_span(size.p, text.p + text.n);
        const double bytes = nan_or(tv_take_bytes(&size));
        tv_note *line = tv_note_map(r->a, tv_note_list(r->a, facts, "process_lines"), NULL);
        (void)tv_note_num(r->a, line, "pid", (double)pid.v);
        (void)tv_note_num(r->a, line, "bytes", bytes);
        n++;
    }
    return n;
}

/* Inside a container the process does not find its own number in the driver's list and calls
 * itself a stranger: the entry that is as large as what it holds is its own. */
static void find_self(tv_reading *r, tv_note *facts, tv_oom_account *c)
{
    const tv_note *lines = tv_noted(facts, "process_lines");
    const double own = c->allocated + c->unused;
    const tv_note *self = NULL;
    for (const tv_note *line = lines ? lines->first : NULL; line; line = line->next) {
        const double bytes = tv_noted_num(line, "bytes");
        const double best = self ? tv_noted_num(self, "bytes") : (double)INFINITY;
        if (bytes - own >= -SELF_BELOW_BYTES && bytes - own <= SELF_ABOVE_BYTES && bytes < best &&
            own > 0)
            self = line;
    }
    (void)tv_note_bool(r->a, facts, "process_is_self", self != NULL && lines->n == 1);
    if (!self)
        return;
    c->self = tv_noted_num(self, "bytes");
    (void)tv_note_num(r->a, facts, "self_pid", tv_noted_num(self, "pid"));
}

static const char *format_of(tv_str text, bool processes)
{
    if (tv_holds(text, "capacty"))
        return "2.1 capacty";
    if (tv_holds(text, "private pools"))
        return "2.4+ private pools";
    return processes ? "2.2+" : "2.2+ without process clause";
}

static void read_sentences(tv_reading *r, tv_note *facts, tv_str text, tv_oom_account *c)
{
    c->total = nan_or(tv_bytes_past(text, "total capacity of "));
    if (isnan(c->total))
        c->total = nan_or(tv_bytes_past(text, "total capacty of "));
    c->free = nan_or(tv_bytes_past(text, "of which "));
    c->allocated = nan_or(tv_bytes_past(text, "Of the allocated memory "));
    c->unused = size_before(text, "is reserved by PyTorch but unallocated");
    c->self = nan_or(tv_bytes_past(text, "this process has "));
    c->allowed = size_before(text, "allowed");
    c->private_pools = size_before(text, "allocated in private pools");
    const size_t n = read_processes(r, facts, text);
    const bool clause = !isnan(c->self);
    (void)tv_note_bool(r->a, facts, "process_clause", n || clause);
    (void)tv_note_bool(r->a, facts, "self_clause", clause);
    tv_oom_word(r, facts, "format", format_of(text, n || clause));
    if (clause) {
        (void)tv_note_num(r->a, facts, "process_in_use_bytes", c->self);
        (void)tv_note_num(r->a, facts, "self_in_use_bytes", c->self);
    } else if (n) {
        find_self(r, facts, c);
    }
    if (!isnan(c->unused))
        (void)tv_note_num(r->a, facts, "reserved_unallocated_bytes", c->unused);
    if (!isnan(c->private_pools))
        (void)tv_note_num(r->a, facts, "private_pools_bytes", c->private_pools);
}

/* ---- one message ---- */

static const char *vendor_of(tv_str text)
{
    return tv_holds(text, "HIP out of memory")   ? "amd"
           : tv_holds(text, "XPU out of memory") ? "intel"
           : tv_holds(text, "NPU out of memory") ? "huawei"
                                                 : NULL;
}

static void put(tv_reading *r, tv_note *facts, const char *key, double v)
{
    if (!isnan(v))
        (void)tv_note_num(r->a, facts, key, v);
}

/* Which of the allocator's settings the message itself speaks of. */
static void read_hint(tv_reading *r, tv_note *facts, tv_str text)
{
    static const char *const hints[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
                                        "PYTORCH_ALLOC_CONF"};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (tv_holds(text, hints[i])) {
            tv_oom_word(r, facts, "hint", hints[i]);
            return;
        }
}

/* Where the process stood: its traceback, its server, its rank. */
static void read_place(tv_reading *r, tv_note *facts, size_t i)
{
    tv_oom_word(r, facts, "server", tv_oom_server(r->sheet, i));
    tv_oom_word(r, facts, "during", tv_oom_during(r->sheet, i));
    const tv_u64_read rank = tv_oom_rank(r->sheet->v[i].s);
    if (rank.ok)
        (void)tv_note_num(r->a, facts, "rank", (double)rank.v);
}

static const tv_oom_account unknown = {
    (double)NAN, (double)NAN, (double)NAN, (double)NAN,
    (double)NAN, (double)NAN, (double)NAN, (double)NAN,
};

/* The hint of 1.10 to 2.0 may have been wrapped to one of the next lines. */
static bool hint_follows(const tv_sheet *sheet, size_t i)
{
    for (size_t k = i; k < sheet->n && k < i + 4; k++) {
        if (k > i && tv_holds(sheet->v[k].s, "out of memory"))
            return false;
        if (tv_holds(sheet->v[k].s, "max_split_size_mb"))
            return true;
    }
    return false;
}

static void read_message(tv_reading *r, size_t i, tv_str text, tv_oom_seen *seen)
{
    tv_sighting *s = tv_oom_new(r, seen, i, text);
    if (!s)
        return;
    tv_note *facts = &s->facts;
    tv_oom_account c = unknown;
    tv_oom_word(r, facts, "framework", "pytorch");
    tv_oom_word(r, facts, "vendor", vendor_of(text));
    read_place(r, facts, i);
    c.tried = nan_or(tv_bytes_past(text, "Tried to allocate "));
    put(r, facts, "tried_bytes", c.tried);
    const tv_u64_read gpu = device_of(text);
    if (gpu.ok)
        (void)tv_note_num(r->a, facts, "gpu", (double)gpu.v);
    if (tv_holds(text, "already allocated") || tv_holds(text, "total capacity;"))
        read_brackets(r, facts, text, hint_follows(r->sheet, i), &c);
    else
        read_sentences(r, facts, text, &c);
    put(r, facts, "total_bytes", c.total);
    put(r, facts, "allocated_bytes", c.allocated);
    put(r, facts, "free_bytes", c.free);
    put(r, facts, "allowed_bytes", c.allowed);
    read_hint(r, facts, text);
    tv_oom_judge(r, facts, &c);
}

/* "MPS backend out of memory (MPS allocated: S, other allocations: S, max allowed: S). Tried to
 * allocate S on shared pool." */
static void read_apple(tv_reading *r, size_t i, tv_str text, tv_oom_seen *seen)
{
    tv_sighting *s = tv_oom_new(r, seen, i, text);
    if (!s)
        return;
    tv_note *facts = &s->facts;
    tv_oom_word(r, facts, "framework", "pytorch");
    tv_oom_word(r, facts, "vendor", "apple");
    read_place(r, facts, i);
    tv_oom_put(r, facts, "mps_allocated_bytes", tv_bytes_past(text, "MPS allocated: "));
    tv_oom_put(r, facts, "other_bytes", tv_bytes_past(text, "other allocations: "));
    tv_oom_put(r, facts, "max_allowed_bytes", tv_bytes_past(text, "max allowed: "));
    tv_oom_put(r, facts, "tried_bytes", tv_bytes_past(text, "Tried to allocate "));
    const tv_str pool = tv_enclosed(text, " on ", " pool");
    if (pool.n && pool.n < 16)
        (void)tv_note_str(r->a, facts, "pool", pool);
    tv_oom_word(r, facts, "layer", "true capacity");
}

/* The message without what stands before it: the same error is logged at several times. */
static tv_str message_of(tv_str line)
{
    enum { WORD = 13, DEVICE = 5 };
    tv_str rest;
    if (!tv_past(line, "out of memory", &rest))
        return line;
    const size_t before = (size_t)(rest.p - line.p) - WORD;
    return tv_str_drop(line, before > DEVICE ? before - DEVICE : 0);
}

static void read(tv_reading *r)
{
    static const char *const ends[] = {"reserved in total", "but unallocated", "cached)",
                                       "cached;",           " pool",           NULL};
    tv_oom_seen *seen = tv_new(r->a, tv_oom_seen, 1);
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        if (tv_holds(line, "MPS backend out of memory"))
            read_apple(r, i, message_of(tv_oom_joined(r, i, ends)), seen);
        else if (tv_holds(line, "out of memory. Tried to allocate"))
            read_message(r, i, message_of(tv_oom_joined(r, i, ends)), seen);
    }
}

static const char *const needles[] = {"out of memory. Tried to allocate",
                                      "MPS backend out of memory", NULL};

extern const tv_log_format tv_log_format_oom_torch;
const tv_log_format tv_log_format_oom_torch = {"oom-torch", needles, read};
