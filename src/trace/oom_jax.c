/* JAX and XLA: RESOURCE_EXHAUSTED with the compiler's account of the buffers, on GPUs and TPUs.
 * The best-fit allocator's own lines are oom_bfc.c's. */
#include <math.h>

#include "glean.h"
#include "oom_parts.h"
#include "trace.h"

/* ---- the compiler's account ---- */

typedef struct buffer_row {
    const char *word;
    const char *key;
} buffer_row;

static void read_assignment(tv_reading *r, tv_note *facts, tv_str line)
{
    static const buffer_row rows[] = {
        {"parameter allocation:", "parameter_bytes"},
        {"constant allocation:", "constant_bytes"},
        {"maybe_live_out allocation:", "live_out_bytes"},
        {"preallocated temp allocation:", "temp_bytes"},
        {"total allocation:", "total_bytes"},
    };
    tv_str rest;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (tv_past(line, rows[k].word, &rest)) {
            tv_oom_put(r, facts, rows[k].key, tv_take_bytes(&rest));
            return;
        }
    if (!tv_past(line, "total fragmentation:", &rest))
        return;
    tv_oom_put(r, facts, "fragmentation_bytes", tv_take_bytes(&rest));
    const tv_double_read percent = tv_number_past(rest, "(");
    if (percent.ok)
        (void)tv_note_num(r->a, facts, "fragmentation_frac", percent.v / 100);
}

/* "Buffer 1:", "Size: 2.00GiB", "Operator: op_name="...": the largest first. */
static void read_buffers(tv_reading *r, tv_note *facts, tv_str line)
{
    enum { MOST_BUFFERS = 20 };
    tv_note *list = tv_note_list(r->a, facts, "peak_buffers");
    tv_str rest = line;
    if (tv_str_starts(line, TV_S("Size:")) && list->n < MOST_BUFFERS) {
        rest = tv_str_drop(line, 5);
        const tv_double_read size = tv_take_bytes(&rest);
        if (size.ok)
            (void)tv_note_num(r->a, tv_note_map(r->a, list, NULL), "bytes", size.v);
    } else if (list->last) {
        const tv_str op = tv_enclosed(line, "op_name=\"", "\"");
        const tv_str shape = tv_enclosed(line, "Shape:", NULL);
        if (op.n)
            (void)tv_note_str(r->a, list->last, "op", op);
        if (shape.n && tv_str_starts(line, TV_S("Shape:")))
            (void)tv_note_str(r->a, list->last, "shape", shape);
    }
}

/* ---- the message ---- */

static bool is_message(tv_str line)
{
    return (tv_holds(line, "RESOURCE_EXHAUSTED") || tv_holds(line, "ResourceExhausted") ||
            tv_holds(line, "Resource exhausted")) &&
           !tv_holds(line, "OOM when allocating tensor") &&
           (tv_holds_nocase(line, "out of memory") || tv_holds_nocase(line, "ran out of memory") ||
            tv_holds(line, "Attempting to ") || tv_holds(line, "Failed to allocate request for"));
}

/* "Attempting to reserve 12.50G at the bottom of memory. That was not possible. There are 8.00G
 * free, 0B reserved, ...", "Used 20.5G of 15.48G hbm. Exceeded hbm capacity by 5.02G." */
static void read_tpu(tv_reading *r, tv_note *facts, tv_str text)
{
    tv_str rest;
    if (tv_past(text, "Attempting to ", &rest)) {
        (void)tv_take_word(&rest);
        tv_oom_put(r, facts, "tried_bytes", tv_take_bytes(&rest));
        tv_oom_put(r, facts, "free_bytes", tv_bytes_past(rest, "There are "));
        tv_oom_word(r, facts, "device_kind", "tpu");
    }
    if (tv_past(text, "Used ", &rest) && tv_holds(rest, "Exceeded ")) {
        tv_oom_put(r, facts, "used_bytes", tv_take_bytes(&rest));
        tv_oom_put(r, facts, "capacity_bytes", tv_bytes_past(rest, " of "));
        tv_oom_put(r, facts, "exceeded_bytes", tv_bytes_past(rest, "capacity by "));
        tv_oom_word(r, facts, "device_kind", "tpu");
    }
}

static void read_sizes(tv_reading *r, tv_note *facts, tv_str text)
{
    static const char *const marks[] = {"trying to allocate ", "Out of memory allocating ",
                                        "out of memory allocating "};
    tv_double_read tried = {0};
    for (size_t k = 0; k < sizeof marks / sizeof *marks && !tried.ok; k++)
        tried = tv_bytes_past(text, marks[k]);
    tv_str rest;
    if (!tried.ok && tv_past(text, "Failed to allocate request for ", &rest)) {
        tried = tv_number_past(rest, "(");
        if (!tried.ok)
            tried = tv_take_bytes(&rest);
    }
    tv_oom_put(r, facts, "tried_bytes", tried);
    const tv_double_read device = tv_number_past(text, "device ordinal ");
    tv_oom_put(r, facts, "gpu", device);
    const tv_str name = tv_enclosed(text, "executable_name='", "'");
    if (name.n)
        (void)tv_note_str(r->a, facts, "executable", name);
    read_tpu(r, facts, text);
}

/* A program of this size should find room in any pool: what refuses it is full of other things. */
#define SMALL_PROGRAM_BYTES (1024.0 * 1024 * 1024)

static void judge(tv_reading *r, tv_note *facts)
{
    const double tried = tv_noted_num(facts, "tried_bytes");
    const double total = tv_noted_num(facts, "total_bytes");
    const double needs = isnan(total) ? tried : fmax(total, isnan(tried) ? 0 : tried);
    if (tv_noted(facts, "exceeded_bytes") || needs >= SMALL_PROGRAM_BYTES)
        tv_oom_word(r, facts, "layer", "compiled program needs more");
    else if (needs > 0)
        tv_oom_word(r, facts, "layer", "pool already full");
}

static tv_sighting *begin(tv_reading *r, size_t i, tv_str text)
{
    tv_sighting *s = tv_see(r, "oom", i);
    tv_oom_word(r, &s->facts, "framework", "jax");
    read_sizes(r, &s->facts, text);
    return s;
}

static bool is_account(tv_str line)
{
    return tv_holds(line, "BufferAssignment OOM Debugging") ||
           tv_holds(line, "BufferAssignment stats:");
}

static void read(tv_reading *r)
{
    static const char *const ends[] = {"bytes", "GiB", "MiB", "free", "hbm", "KiB", NULL};
    tv_oom_seen *seen = tv_new(r->a, tv_oom_seen, 1);
    tv_sighting *s = NULL;
    bool buffers = false;
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = tv_bare(r->sheet->v[i].s);
        if (is_message(line)) {
            tv_str text;
            if (!tv_past(tv_oom_joined(r, i, ends), "xhausted", &text) &&
                !tv_past(tv_oom_joined(r, i, ends), "EXHAUSTED", &text))
                continue;
            if (s)
                judge(r, &s->facts);
            tv_sighting *old = tv_oom_again(r, seen, text);
            s = old ? old : begin(r, i, text);
            if (!old)
                tv_oom_remember(seen, text, s);
            buffers = false;
        } else if (!s && is_account(line)) {
            s = begin(r, i, line);
        } else if (s && tv_holds(line, "Peak buffers:")) {
            buffers = true;
        } else if (s && tv_holds(line, "allocation:")) {
            read_assignment(r, &s->facts, line);
        } else if (s && tv_holds(line, "total fragmentation:")) {
            read_assignment(r, &s->facts, line);
        } else if (s && buffers) {
            read_buffers(r, &s->facts, line);
        }
    }
    if (s)
        judge(r, &s->facts);
}

static const char *const needles[] = {"RESOURCE_EXHAUSTED: ",    "ResourceExhausted: ",
                                      "Resource exhausted: ",    "BufferAssignment OOM Debugging",
                                      "BufferAssignment stats:", NULL};

extern const tv_log_format tv_log_format_oom_jax;
const tv_log_format tv_log_format_oom_jax = {"oom-jax", needles, read};
