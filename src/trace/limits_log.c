/* Limits of a process: ulimit -a, ulimit -l on its own, /proc/PID/limits. */
#include "glean.h"
#include "trace.h"

#include <math.h>

typedef struct limit_row {
    const char *title; /* ulimit -a, and /proc without case */
    const char *key;
    double factor; /* of ulimit's unit; /proc tells plain units */
} limit_row;

static const limit_row rows[] = {
    {"max locked memory", "memlock_bytes", 1024},
    {"max memory size", "resident_bytes", 1024},
    {"virtual memory", "address_space_bytes", 1024},
    {"max address space", "address_space_bytes", 1},
    {"stack size", "stack_bytes", 1024},
    {"max stack size", "stack_bytes", 1},
    {"open files", "open_files", 1},
    {"max open files", "open_files", 1},
    {"max user processes", "processes", 1},
    {"max processes", "processes", 1},
    {"file size", "file_bytes", 1024},
};

static void put(tv_reading *r, tv_note *facts, const char *key, tv_str word, double factor,
                size_t i)
{
    const tv_double_read v = tv_str_double(word);
    if (v.ok)
        (void)tv_at(r, tv_note_num(r->a, facts, key, v.v * factor), i);
    else if (tv_str_is(word, "unlimited") || tv_str_is(word, "-1"))
        (void)tv_at(r, tv_note_str(r->a, facts, key, TV_S("unlimited")), i);
}

static const limit_row *row_of(tv_str line)
{
    const limit_row *best = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tv_str title = tv_str_of(rows[i].title);
        if (line.n > title.n && tv_str_eq_nocase(tv_str_take(line, title.n), title) &&
            (!best || title.n > tv_str_of(best->title).n))
            best = &rows[i];
    }
    return best;
}

/* "max locked memory       (kbytes, -l) 64": the last word */
static bool read_ulimit(tv_reading *r, tv_note *facts, tv_str line, size_t i)
{
    tv_str rest;
    const limit_row *row = row_of(line);
    if (!row || (!tv_past(line, ", -", &rest) && !tv_past(line, "(-", &rest)) ||
        !tv_past(rest, ")", &rest))
        return false;
    put(r, facts, row->key, tv_str_trim(rest), row->factor, i);
    return true;
}

/* "Max locked memory         65536                65536                bytes" */
static bool read_proc(tv_reading *r, tv_note *facts, tv_str line, size_t i)
{
    const limit_row *row = tv_str_starts(line, TV_S("Max ")) ? row_of(line) : NULL;
    if (!row)
        return false;
    tv_str words[3];
    if (tv_words(tv_str_drop(line, tv_str_of(row->title).n), words, 3) < 2)
        return false;
    put(r, facts, row->key, words[0], 1, i); /* the soft one is what counts */
    return true;
}

/* "$ ulimit -l" and its answer on the next line that is not empty */
static bool read_command(tv_reading *r, size_t i)
{
    const tv_str line = r->sheet->v[i].s;
    tv_str rest;
    if (!tv_past(line, "ulimit -", &rest) || !tv_str_starts(rest, TV_S("l")) || rest.n > 2)
        return false;
    for (size_t k = i + 1; k < r->sheet->n && k < i + 3; k++) {
        const tv_str answer = tv_str_trim(r->sheet->v[k].s);
        if (!answer.n)
            continue;
        if (!tv_str_u64(answer).ok && !tv_str_is(answer, "unlimited"))
            return false;
        tv_note *facts = &tv_see(r, "limits", k)->facts;
        put(r, facts, "memlock_bytes", answer, 1024, k);
        return true;
    }
    return false;
}

static void read(tv_reading *r)
{
    tv_note *facts = NULL;
    size_t last = 0;
    for (size_t i = 0; i < r->sheet->n; i++) {
        if (read_command(r, i))
            continue;
        const tv_str line = tv_bare(r->sheet->v[i].s);
        const limit_row *row = row_of(line);
        if (!row)
            continue;
        if (!facts || i > last + 24)
            facts = &tv_see(r, "limits", i)->facts;
        last = i;
        if (!read_ulimit(r, facts, line, i))
            (void)read_proc(r, facts, line, i);
    }
}

static const char *const needles[] = {"ulimit -l", "max locked memory", "Max locked memory",
                                      "max user processes", NULL};

extern const tv_log_format tv_log_format_limits_log;
const tv_log_format tv_log_format_limits_log = {"limits", needles, read};
