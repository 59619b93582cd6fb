/* PaddlePaddle's memory errors of every era. Its MB and GB are powers of 1024, and what it calls
 * allocated is total minus available: other processes are in it. */
#include "glean.h"
#include "oom_parts.h"
#include "trace.h"

/* "on GPU 0", "on NPU 1", "on intel_gpu:0", "GPU 3": the device's number. */
static tv_u64_read device_of(tv_str text)
{
    tv_str rest = text;
    while (tv_past(rest, " on ", &rest)) {
        tv_str at = rest;
        const tv_str word = tv_take_word(&at);
        tv_u64_read n = tv_take_u64(&at);
        tv_str tail;
        if (!n.ok && tv_past(word, ":", &tail))
            n = tv_take_u64(&tail);
        if (n.ok && word.n)
            return n;
    }
    return (tv_u64_read){0};
}

static tv_double_read either(tv_double_read x, tv_double_read y)
{
    return x.ok ? x : y;
}

/* "gpu_memory_limit_mb is 4096" and its kin: a limit of the user's own, in MB. */
static void read_limit(tv_reading *r, tv_note *facts, tv_str text)
{
    tv_str rest;
    if (!tv_past(text, "memory_limit_mb", &rest))
        return;
    while (rest.n && (*rest.p < '0' || *rest.p > '9') && *rest.p != '.')
        rest = tv_str_drop(rest, 1);
    const tv_double_read mib = tv_take_number(&rest);
    if (mib.ok && mib.v > 0)
        (void)tv_note_num(r->a, facts, "limit_bytes", mib.v * 0x1p20);
}

static void read_sizes(tv_reading *r, tv_note *facts, tv_str text)
{
    const tv_double_read tried = tv_bytes_past(text, "Cannot allocate ");
    const tv_double_read free = either(tv_bytes_past(text, "available memory is only "),
                                       tv_bytes_past(text, "available memory is "));
    tv_str head;
    tv_double_read allocated = {0};
    if (tv_past(text, "memory on ", &head))
        allocated = tv_bytes_past(head, ", ");
    if (!tv_holds(text, "memory has been allocated"))
        allocated.ok = false;
    tv_oom_put(r, facts, "tried_bytes", tried);
    const tv_u64_read device = device_of(text);
    if (device.ok)
        (void)tv_note_num(r->a, facts, "gpu", (double)device.v);
    tv_oom_put(r, facts, "allocated_bytes", allocated);
    tv_oom_put(r, facts, "free_bytes", free);
    if (allocated.ok && free.ok)
        (void)tv_note_num(r->a, facts, "total_bytes", allocated.v + free.v);
    if (free.ok && tried.ok && free.v > tried.v * 1.005)
        (void)tv_note_bool(r->a, facts, "contradiction_free_exceeds_tried", true);
}

static const char *format_of(tv_str text)
{
    if (tv_holds(text, "memory has been allocated"))
        return "2.2+";
    if (tv_holds(text, "GPU memory, available memory is"))
        return "1.5-1.6";
    return "1.8-2.1";
}

static void read_message(tv_reading *r, size_t i, tv_str text, tv_oom_seen *seen)
{
    tv_sighting *s = tv_oom_new(r, seen, i, text);
    if (!s)
        return;
    tv_note *facts = &s->facts;
    tv_oom_word(r, facts, "framework", "paddle");
    tv_oom_word(r, facts, "format", format_of(text));
    read_sizes(r, facts, text);
    for (size_t k = i; k < r->sheet->n && k < i + 14; k++)
        read_limit(r, facts, r->sheet->v[k].s);
    const tv_u64_read rank = tv_oom_rank(r->sheet->v[i].s);
    if (rank.ok)
        (void)tv_note_num(r->a, facts, "rank", (double)rank.v);
}

/* "enforce allocating <= available failed, 5368709120 > 1073741824": of Paddle 1.2 and before. */
static void read_enforce(tv_reading *r, size_t i, tv_str line, tv_oom_seen *seen)
{
    tv_str rest;
    if (!tv_past(line, "allocating <= available failed, ", &rest))
        return;
    tv_sighting *s = tv_oom_new(r, seen, i, rest);
    if (!s)
        return;
    tv_note *facts = &s->facts;
    tv_oom_word(r, facts, "framework", "paddle");
    tv_oom_word(r, facts, "format", "<=1.4");
    tv_oom_put(r, facts, "tried_bytes", tv_take_bytes(&rest));
    tv_oom_put(r, facts, "free_bytes", tv_bytes_past(rest, ">"));
}

static bool is_message(tv_str line)
{
    return tv_holds(line, "Cannot allocate ") &&
           (tv_holds(line, "memory on ") || tv_holds(line, "memory, available"));
}

/* The sentence alone: what stands before it differs between the places that print it. */
static tv_str message_of(tv_str text)
{
    tv_str rest;
    if (!tv_past(text, "Cannot allocate ", &rest))
        return text;
    return tv_str_span(rest.p - sizeof "Cannot allocate " + 1, text.p + text.n);
}

static void read(tv_reading *r)
{
    static const char *const ends[] = {"available memory is only", "available memory is", NULL};
    tv_oom_seen *seen = tv_new(r->a, tv_oom_seen, 1);
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        if (tv_holds(line, "allocating <= available failed"))
            read_enforce(r, i, line, seen);
        else if (is_message(line))
            read_message(r, i, message_of(tv_oom_joined(r, i, ends)), seen);
    }
}

static const char *const needles[] = {"Cannot allocate ", "allocating <= available failed", NULL};

extern const tv_log_format tv_log_format_oom_paddle;
const tv_log_format tv_log_format_oom_paddle = {"oom-paddle", needles, read};
