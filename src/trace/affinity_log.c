/* Where a process may run: taskset -pc, numactl --show. */
#include "glean.h"
#include "trace.h"

/* "pid 4711's current affinity list: 16-31,48-63" */
static bool read_taskset(tv_reading *r, tv_str s, size_t i)
{
    tv_str rest;
    if (!tv_past(s, " affinity list: ", &rest) || !tv_past(s, "pid ", &s))
        return false;
    tv_note *facts = &tv_see(r, "affinity", i)->facts;
    const tv_double_read pid = tv_take_number(&s);
    if (pid.ok)
        (void)tv_note_num(r->a, facts, "pid", pid.v);
    (void)tv_at(r, tv_note_str(r->a, facts, "cpus", tv_str_trim(rest)), i);
    return true;
}

/* "16 17 18" -> "16,17,18" */
static tv_str with_commas(tv_arena *a, tv_str s)
{
    tv_str words[512];
    size_t n = tv_words(s, words, 512);
    n = n < 512 ? n : 512;
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < n; i++) {
        if (i)
            tv_putc(&b, ',');
        tv_put(&b, words[i]);
    }
    return tv_buf_str(&b);
}

/* numactl --show: "policy: bind", "physcpubind: 16 17", "nodebind: 1", "membind: 1" */
static size_t read_numactl(tv_reading *r, size_t i)
{
    tv_note *facts = &tv_see(r, "affinity", i)->facts;
    const tv_sheet *sheet = r->sheet;
    for (; i < sheet->n; i++) {
        const tv_str s = tv_str_trim(tv_bare(sheet->v[i].s));
        const tv_cut cut = tv_str_cut(s, ':');
        const tv_str value = with_commas(r->a, cut.tail);
        if (tv_str_is(cut.head, "physcpubind"))
            (void)tv_at(r, tv_note_str(r->a, facts, "cpus", value), i);
        else if (tv_str_is(cut.head, "nodebind"))
            (void)tv_note_str(r->a, facts, "cpu_nodes", value);
        else if (tv_str_is(cut.head, "membind"))
            (void)tv_note_str(r->a, facts, "mem_nodes", value);
        else if (!tv_str_is(cut.head, "policy") && !tv_str_is(cut.head, "preferred node") &&
                 !tv_str_is(cut.head, "cpubind") && !tv_str_is(cut.head, "interleavemask") &&
                 !tv_str_is(cut.head, "preferred") && !tv_str_is(cut.head, "interleavenode"))
            break;
    }
    return i;
}

enum { MOST_AFFINITIES = 256 };

static void read(tv_reading *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->sheet->n && n < MOST_AFFINITIES;) {
        const tv_str s = r->sheet->v[i].s;
        if (tv_str_starts(tv_str_trim(tv_bare(s)), TV_S("physcpubind:"))) {
            i = read_numactl(r, i);
            n++;
        } else {
            n += read_taskset(r, s, i);
            i++;
        }
    }
}

static const char *const needles[] = {"physcpubind:", " affinity list: ", NULL};

extern const tv_log_format tv_log_format_affinity_log;
const tv_log_format tv_log_format_affinity_log = {"affinity", needles, read};
