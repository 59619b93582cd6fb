/* TensorFlow's memory errors, and the statistics of the best-fit allocator that JAX and XLA share
 * with it. One sighting per pool and dump: the lines of one event stand close together. */
#include "glean.h"
#include "oom_parts.h"
#include "trace.h"

/* ---- one event ---- */

/* Lines of one dump are at most this far apart; a long list of chunks lies between. */
enum { DUMP_LINES = 4000 };

typedef struct pool {
    tv_sighting *s;
    size_t last; /* the line that was added last */
} pool;

static tv_note *facts_of(tv_reading *r, pool *p, size_t i)
{
    if (!p->s || i - p->last > DUMP_LINES) {
        p->s = tv_see(r, "oom", i);
        tv_oom_word(r, &p->s->facts, "allocator", "bfc");
    }
    p->last = i;
    return &p->s->facts;
}

static const char *framework_of(tv_str line)
{
    return tv_holds(line, "external/") || tv_holds(line, "xla/tsl") || tv_holds(line, "jax") ||
                   tv_holds(line, "XLA_PYTHON") || tv_holds(line, "third_party/tsl")
               ? "jax"
           : tv_holds(line, "tensorflow") ? "tensorflow"
                                          : NULL;
}

/* The first word that tells wins: what follows are lines of the same program. */
static void name_framework(tv_reading *r, tv_note *facts, tv_str line)
{
    if (!tv_noted(facts, "framework"))
        tv_oom_word(r, facts, "framework", framework_of(line));
}

/* "GPU_0_bfc", "GPU:1" */
static void read_device(tv_reading *r, tv_note *facts, tv_str line)
{
    static const char *const marks[] = {"GPU_", "GPU:", "device ordinal "};
    tv_str rest;
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
        if (!tv_past(line, marks[k], &rest))
            continue;
        const tv_u64_read n = tv_take_u64(&rest);
        if (n.ok) {
            (void)tv_note_num(r->a, facts, "gpu", (double)n.v);
            return;
        }
    }
}

/* ---- its lines ---- */

/* "OOM when allocating tensor with shape[64,1024] and type float on /job:..." */
static void read_tensor(tv_reading *r, tv_note *facts, tv_str line)
{
    const tv_str shape = tv_enclosed(line, "shape[", "]");
    if (shape.n)
        (void)tv_note_str(r->a, facts, "shape", shape);
    tv_str rest;
    if (tv_past(line, "and type ", &rest))
        (void)tv_note_str(r->a, facts, "dtype", tv_take_word(&rest));
    const tv_str op = tv_enclosed(line, "[Op:", "]");
    if (op.n)
        (void)tv_note_str(r->a, facts, "op", op);
    if (tv_holds(line, "cuda_host_bfc") || tv_holds(line, "gpu_host_bfc"))
        tv_oom_word(r, facts, "memory", "pinned host");
    (void)tv_note_bool(r->a, facts, "fatal", true);
}

/* "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.05GiB (rounded to 2200000000)
 * requested by op X" */
static void read_ran_out(tv_reading *r, tv_note *facts, tv_str line)
{
    const bool harmless = tv_holds(line, "not a failure");
    if (harmless && tv_noted_bool(facts, "fatal", false))
        return;
    const tv_double_read rounded = tv_number_past(line, "rounded to ");
    tv_oom_put(r, facts, "tried_bytes",
               rounded.ok ? rounded : tv_bytes_past(line, "trying to allocate "));
    (void)tv_note_bool(r->a, facts, "fatal", !harmless);
    const tv_str op = tv_enclosed(line, "requested by op ", NULL);
    if (op.n)
        (void)tv_note_str(r->a, facts, "op", op);
    if (tv_holds(line, "cuda_host_bfc") || tv_holds(line, "gpu_host_bfc"))
        tv_oom_word(r, facts, "memory", "pinned host");
}

typedef struct stat_row {
    const char *word;
    const char *key;
} stat_row;

/* "Limit:    503270604": the first word is the whole name, or it is another program's line. */
static bool read_stat(tv_reading *r, pool *p, size_t i, tv_str line)
{
    static const stat_row rows[] = {
        {"Limit:", "limit_bytes"},
        {"InUse:", "in_use_bytes"},
        {"MaxInUse:", "max_in_use_bytes"},
        {"NumAllocs:", "num_allocs"},
        {"MaxAllocSize:", "max_alloc_bytes"},
        {"Reserved:", "reserved_bytes"},
        {"LargestFreeBlock:", "largest_free_bytes"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        tv_str rest;
        if (!tv_str_starts(line, tv_str_of(rows[k].word)) || !tv_past(line, ":", &rest))
            continue;
        tv_str at = rest;
        const tv_double_read v = tv_take_number(&at);
        if (!v.ok || tv_str_trim(at).n)
            return false;
        tv_note *facts = facts_of(r, p, i);
        (void)tv_note_num(r->a, facts, rows[k].key, v.v);
        return true;
    }
    return false;
}

/* "Sum Total of in-use chunks: 479.76MiB" */
static void read_sum(tv_reading *r, pool *p, size_t i, tv_str line)
{
    tv_note *facts = facts_of(r, p, i);
    tv_oom_put(r, facts, "sum_in_use_bytes", tv_bytes_past(line, "in-use chunks: "));
    name_framework(r, facts, line);
}

/* "failed to allocate 3.40G (3650722304 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY": the pool is
 * asked for at start, and then for less; not fatal. */
static void read_pool_refused(tv_reading *r, pool *p, size_t i, tv_str line)
{
    tv_note *facts = facts_of(r, p, i);
    name_framework(r, facts, line);
    const tv_double_read exact = tv_number_past(line, "(");
    if (!tv_noted(facts, "pool_refused_bytes"))
        tv_oom_put(r, facts, "pool_refused_bytes",
                   exact.ok ? exact : tv_bytes_past(line, "failed to allocate "));
    if (!tv_noted(facts, "fatal"))
        (void)tv_note_bool(r->a, facts, "fatal", false);
}

static void read_line(tv_reading *r, pool *p, size_t i, tv_str line)
{
    if (tv_holds(line, "Sum Total of in-use chunks")) {
        read_sum(r, p, i, line);
    } else if (tv_holds(line, "OOM when allocating tensor")) {
        tv_note *facts = facts_of(r, p, i);
        if (tv_noted(facts, "shape"))
            return; /* the same error, told again further up */
        tv_oom_word(r, facts, "framework", "tensorflow");
        read_tensor(r, facts, line);
        read_device(r, facts, line);
    } else if (tv_holds(line, "ran out of memory trying to allocate")) {
        tv_note *facts = facts_of(r, p, i);
        name_framework(r, facts, line);
        read_ran_out(r, facts, line);
        read_device(r, facts, line);
    } else if (tv_holds(line, "failed to allocate ") &&
               tv_holds(line, "CUDA_ERROR_OUT_OF_MEMORY")) {
        read_pool_refused(r, p, i, line);
    } else {
        (void)read_stat(r, p, i, tv_bare(line));
    }
}

/* The pool's size at start: "Created device /job:... with 480 MB memory". */
static void read_created(tv_reading *r, size_t i, tv_str line)
{
    tv_str rest;
    if (!tv_past(line, "device:GPU:", &rest) || !tv_past(rest, " with ", &rest))
        return;
    const tv_double_read v = tv_take_bytes(&rest);
    if (!v.ok || !tv_str_starts(tv_str_trim(rest), TV_S("memory")))
        return;
    tv_sighting *s = tv_see(r, "tf-pool", i);
    (void)tv_note_num(r->a, &s->facts, "pool_at_start_bytes", v.v);
}

static void finish(tv_reading *r, const pool *p)
{
    if (!p->s)
        return;
    tv_note *facts = &p->s->facts;
    if (!tv_noted(facts, "framework") && tv_noted(facts, "limit_bytes"))
        tv_oom_word(r, facts, "framework", "tensorflow");
}

static void read(tv_reading *r)
{
    pool p = {0};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        if (tv_holds(line, "Created ") && tv_holds(line, " memory"))
            read_created(r, i, line);
        else
            read_line(r, &p, i, line);
    }
    finish(r, &p);
}

static const char *const needles[] = {"bfc_allocator",
                                      "OOM when allocating tensor",
                                      "ran out of memory trying to allocate",
                                      "Sum Total of in-use chunks",
                                      "MaxAllocSize:",
                                      "from device: CUDA_ERROR_OUT_OF_MEMORY",
                                      "Created TensorFlow device",
                                      NULL};

extern const tv_log_format tv_log_format_oom_bfc;
const tv_log_format tv_log_format_oom_bfc = {"oom-bfc", needles, read};
