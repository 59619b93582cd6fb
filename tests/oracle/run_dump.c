/* Runs programs for their shapes and prints what came out, for oracles that know better: one JSON
 * object a file on standard output. run_dump [batch=N] [seq=N] [image=N] FILE ... */
#include <setjmp.h>
#include <stdio.h>
#include <time.h>

#include "family/program_run.h"
#include "read/reader.h"

static void put_shape(tv_json_out *w, const tv_shape *s)
{
    tv_json_begin(w, '[');
    for (uint32_t i = 0; i < s->rank; i++)
        tv_json_put_num(w, (double)s->d[i]);
    tv_json_end(w, ']');
}

static void put_values(tv_json_out *w, const tv_run *run)
{
    tv_json_key(w, "values");
    tv_json_begin(w, '{');
    for (size_t i = 0; i < run->n_values; i++) {
        const tv_run_value *v = &run->values[i];
        if (!v->from || !v->from->name.n || v->from->role == TV_VALUE_WEIGHT)
            continue;
        tv_json_key_str(w, v->from->name);
        tv_json_begin(w, '{');
        tv_json_key(w, "shape");
        put_shape(w, &v->shape);
        tv_json_key(w, "dtype");
        tv_json_put_str(w, tv_str_of(v->dtype ? tv_dtype_of(v->dtype)->name : ""));
        tv_json_key(w, "guessed");
        tv_json_put_bool(w, v->guessed);
        tv_json_key(w, "list");
        tv_json_put_bool(w, v->list);
        tv_json_end(w, '}');
    }
    tv_json_end(w, '}');
}

static double gigaflop(const tv_run *run)
{
    double flop = 0;
    for (size_t i = 0; i < run->n_steps; i++) {
        const tv_step *s = &run->steps[i];
        if (s->kind == TV_STEP_MATMUL)
            flop +=
                s->times * 2 * s->u.matmul.groups * s->u.matmul.m * s->u.matmul.n * s->u.matmul.k;
        if (s->kind == TV_STEP_CONV)
            flop += s->times * 2 * s->u.conv.positions * s->u.conv.kernel * s->u.conv.in_channels *
                    s->u.conv.out_channels / s->u.conv.groups;
        if (s->kind == TV_STEP_ATTENTION)
            flop += s->times * 2 * s->u.attention.batch * s->u.attention.heads *
                    s->u.attention.q_tokens * s->u.attention.k_tokens *
                    (s->u.attention.head_dim + s->u.attention.v_dim);
        if (s->kind == TV_STEP_RNN)
            flop += s->times * 2 * s->u.rnn.gates * s->u.rnn.hidden *
                    (s->u.rnn.input + s->u.rnn.hidden) * s->u.rnn.directions * s->u.rnn.steps *
                    s->u.rnn.batch;
    }
    return flop / 1e9;
}

static void put_run(tv_arena *a, tv_json_out *w, const tv_run *run)
{
    tv_json_key(w, "steps");
    tv_json_put_num(w, (double)run->n_steps);
    tv_json_key(w, "guessed_steps");
    double guessed = 0;
    for (size_t i = 0; i < run->n_steps; i++)
        guessed += run->steps[i].guessed;
    tv_json_put_num(w, guessed);
    tv_json_key(w, "gflop");
    tv_json_put_num(w, gigaflop(run));
    tv_json_key(w, "batch_fixed");
    tv_json_put_bool(w, run->batch_fixed);
    tv_json_key(w, "unknown");
    tv_json_begin(w, '{');
    for (size_t i = 0; i < run->n_unknown; i++) {
        tv_json_key_str(w, run->unknown[i].op);
        tv_json_put_num(w, (double)run->unknown[i].n);
    }
    tv_json_end(w, '}');
    tv_json_key(w, "warnings");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < run->n_warnings; i++)
        tv_json_put_str(w, tv_text_in(a, TV_EN, run->warnings[i]));
    tv_json_end(w, ']');
    put_values(w, run);
}

static void put_error(tv_arena *a, tv_json_out *w, const char *key, const tv_err *e)
{
    tv_buf b = tv_buf_in(a);
    tv_put_err(&b, TV_EN, e);
    tv_json_key(w, key);
    tv_json_put_str(w, tv_buf_str(&b));
}

static void dump(tv_arena *a, const char *path, const tv_run_sizes *sizes)
{
    tv_buf b = tv_buf_in(a);
    tv_json_out w = tv_json_write(&b);
    const tv_source *source = NULL;
    const tv_run *run = NULL;
    tv_json_begin(&w, '{');
    tv_json_key(&w, "file");
    tv_json_put_str(&w, tv_str_of(path));
    const tv_err *e = tv_read_model(a, tv_str_of(path), &source);
    if (e) {
        put_error(a, &w, "unread", e);
    } else if (source->program) {
        e = tv_program_run(a, source->program, sizes, &run);
        if (e)
            put_error(a, &w, "error", e);
        else
            put_run(a, &w, run);
    }
    tv_json_end(&w, '}');
    tv_putc(&b, '\n');
    tv_str text = tv_buf_str(&b);
    fwrite(text.p, 1, text.n, stdout);
}

static bool option(const char *arg, const char *name, double *v)
{
    tv_cut cut = tv_str_cut(tv_str_of(arg), '=');
    if (!cut.found || !tv_str_is(cut.head, name))
        return false;
    *v = tv_str_double(cut.tail).v;
    return true;
}

int main(int argc, char **argv)
{
    tv_run_sizes sizes = {0};
    for (int i = 1; i < argc; i++) {
        if (option(argv[i], "batch", &sizes.batch) || option(argv[i], "seq", &sizes.seq) ||
            option(argv[i], "past", &sizes.past) || option(argv[i], "image", &sizes.image_h))
            continue;
        tv_arena *a = tv_arena_open((size_t)1 << 30);
        jmp_buf landing;
        if (!a || setjmp(landing))
            return 1;
        tv_arena_guard(a, &landing);
        dump(a, argv[i], &sizes);
        tv_arena_close(a);
    }
    return 0;
}
