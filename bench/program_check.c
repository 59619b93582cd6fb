/* Runs programs for their shapes at the sizes they state and says how many of the shapes that a
 * file states its operators' rules give too: program_check PATH... */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "family/program_run.h"
#include "read/reader.h"

static void put_err(tv_arena *a, const char *path, const tv_err *e)
{
    tv_buf b = tv_buf_in(a);
    tv_put_err(&b, TV_EN, e);
    (void)printf("%s: %.*s\n", path, TV_FMT(tv_buf_str(&b)));
}

typedef struct tally {
    size_t all, same;
} tally;

/* Paddle declares every variable: what it states of each, -1 left aside, against the run. */
static tally declared(const tv_program *p, const tv_run *run)
{
    tally t = {0};
    for (size_t i = 0; p->dialect == TV_DIALECT_PADDLE && i < p->n_values; i++) {
        const tv_value *v = &p->values[i];
        if (v->role != TV_VALUE_TEMP || !v->shaped || v->list || run->of[i] == TV_NO_VALUE)
            continue;
        const tv_shape *s = &run->values[run->of[i]].shape;
        bool same = v->rank == s->rank;
        for (uint32_t k = 0; same && k < v->rank; k++)
            same = v->dims[k].size < 0 || v->dims[k].size == s->d[k];
        t.all++;
        t.same += same;
        if (!same)
            (void)printf("  other shape: %.*s, value %zu\n", TV_FMT(v->name), i);
    }
    return t;
}

static void check(const char *path)
{
    tv_arena *a = tv_arena_open(TV_LIMIT_ARENA_BYTES);
    const tv_source *s = NULL;
    const tv_run *run = NULL;
    if (!a)
        abort();
    const tv_err *e = tv_read_model(a, tv_str_of(path), &s);
    if (!e && s->program)
        e = tv_program_run(a, s->program, &(tv_run_sizes){0}, &run);
    if (e)
        put_err(a, path, e);
    if (run) {
        const tally t = declared(s->program, run);
        (void)printf("%s: %zu of %zu shapes, %zu steps\n", path,
                     run->n_stated - run->n_differ + t.same, run->n_stated + t.all, run->n_steps);
        for (size_t i = 0; i < run->n_unknown; i++)
            (void)printf("  unknown: %.*s (%zu)\n", TV_FMT(run->unknown[i].op), run->unknown[i].n);
        for (size_t i = 0; i < run->n_warnings; i++)
            (void)printf("  %.*s\n", TV_FMT(tv_text_in(a, TV_EN, run->warnings[i])));
    }
    tv_arena_close(a);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        check(argv[i]);
    return 0;
}
