/* A program at several batch sizes, and the forms through what its quantities were there. Knows
 * nothing of what the quantities mean. */
#include "program_lower.h"

#include <math.h>

/* Batches of one would hide what depends on the batch behind broadcasting. */
enum { first_batch = 2, larger_batch = 16 };
static const double some_past = 64, more_past = 96;

static bool same_steps(const tv_run *x, const tv_run *y)
{
    if (x->n_steps != y->n_steps || x->n_values != y->n_values || x->n_outputs != y->n_outputs)
        return false;
    for (size_t i = 0; i < x->n_steps; i++) {
        const tv_step *s = &x->steps[i], *o = &y->steps[i];
        if (s->kind != o->kind || s->n_in != o->n_in || s->n_out != o->n_out)
            return false;
        for (size_t k = 0; k < s->n_in; k++)
            if (s->in[k] != o->in[k])
                return false;
        for (size_t k = 0; k < s->n_out; k++)
            if (s->out[k] != o->out[k])
                return false;
    }
    return true;
}

/* The inputs have no batch to vary: the program works on one sample. */
static bool same_inputs(const tv_run *x, const tv_run *y)
{
    bool same = x->n_inputs > 0;
    for (size_t i = 0; i < x->n_inputs && same; i++) {
        const uint32_t v = x->inputs[i];
        same = v == TV_NO_VALUE || !(fabs(tv_shape_elements(&x->values[v].shape) -
                                          tv_shape_elements(&y->values[v].shape)) > 0);
    }
    return same;
}

static void alone(tv_trials *t, const tv_run *run, double batch)
{
    t->run[0] = run;
    t->batch[0] = batch > 0 ? batch : 1;
    t->n = 1;
    t->scaled = true;
}

/* Three batches from `first` on; *agree: the steps are the same at each. */
static const tv_err *try_from(tv_arena *a, const tv_program *p, const tv_run_sizes *sizes,
                              bool cached, double first, tv_trials *out, bool *agree)
{
    tv_run_sizes at = *sizes;
    const size_t n = cached ? 4 : 3;
    *out = (tv_trials){0};
    *agree = true;
    for (size_t i = 0; i < n; i++) {
        at.batch = first + (double)(i < 3 ? i : 0);
        at.past = !cached ? 0 : i < 3 ? some_past : more_past;
        TV_TRY(tv_program_run(a, p, &at, &out->run[i]));
        out->batch[i] = at.batch;
        out->past[i] = at.past;
        /* Also where the first batch is by chance the one that the program is written for. */
        if (out->run[i]->batch_fixed) {
            alone(out, out->run[i], out->run[i]->batch_stated);
            return NULL;
        }
        if (i == 1 && same_inputs(out->run[0], out->run[1])) {
            alone(out, out->run[0], 1);
            return NULL;
        }
        if (i > 0 && !same_steps(out->run[0], out->run[i])) {
            alone(out, out->run[0], first);
            *agree = false;
            return NULL;
        }
    }
    out->n = n;
    return NULL;
}

const tv_err *tv_trials_run(tv_arena *a, const tv_program *p, const tv_run_sizes *sizes,
                            bool cached, tv_trials *out)
{
    bool agree = false;
    TV_TRY(try_from(a, p, sizes, cached, first_batch, out, &agree));
    if (agree)
        return NULL;
    /* Small tensors whose contents are worked out cross the limit for that between the batches. */
    tv_trials larger;
    const tv_err *failed = try_from(a, p, sizes, cached, larger_batch, &larger, &agree);
    if (!failed && agree)
        *out = larger;
    return NULL;
}

static double clean(double x, double beside)
{
    return fabs(x) <= 1e-9 * fabs(beside) ? 0 : x;
}

tv_form tv_trials_fit(const tv_trials *t, const double q[TV_TRIALS])
{
    if (t->n < 3)
        return (tv_form){.b = q[0] / t->batch[0]};
    const double at = t->batch[0];
    const double d = clean((q[2] - 2 * q[1] + q[0]) / 2, q[0]);
    double b = clean(q[1] - q[0] - d * (2 * at + 1), q[0]);
    const double c = t->n < 4 ? 0 : clean((q[3] - q[0]) / (at * (t->past[3] - t->past[0])), q[0]);
    const double a = clean(q[0] - b * at - d * at * at, q[0]);
    b = clean(b - c * t->past[0], b);
    return (tv_form){.a = a, .b = b, .c = c, .d = d};
}

tv_form tv_trials_elements(const tv_trials *t, uint32_t value)
{
    double q[TV_TRIALS] = {0};
    for (size_t i = 0; i < t->n; i++)
        q[i] = tv_shape_elements(&t->run[i]->values[value].shape);
    return tv_trials_fit(t, q);
}
