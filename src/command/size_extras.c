/* Terms stated, steps of inputs, the data set. The rules of thumb are in thumbs.c. */
#include "size_extras.h"

#include "base/unit.h"
#include "predict/ledger.h"
#include "predict/restate.h"
#include "probe/probe.h"

/* ---- stated terms ---- */

static const tv_err *bad_term(tv_arena *a, tv_str text)
{
    tv_buf b = tv_buf_in(a);
    for (tv_term t = 0; t < TV_TERM_COUNT; t++) {
        if (t)
            tv_puts(&b, ", ");
        tv_puts(&b, tv_term_name(t));
    }
    return tv_hint(TV_FAIL(a, TV_USAGE, "set.bad", N_("--set {text}: not TERM=BYTES"),
                           tv_arg_str("text", text)),
                   TV_TEXT(a, "set.try",
                           N_("Write --set activations=3.2GB; the terms are {terms}."),
                           tv_arg_str("terms", tv_buf_str(&b))));
}

static const tv_err *read_term(tv_arena *a, tv_str text, tv_stated_term *out)
{
    const tv_cut c = tv_str_cut(text, '=');
    const tv_double_read bytes = tv_read_bytes(c.tail);
    out->term = tv_term_named(tv_str_trim(c.head));
    out->bytes = bytes.v;
    if (!c.found || !bytes.ok || bytes.v < 0 || out->term == TV_TERM_COUNT)
        return bad_term(a, text);
    return NULL;
}

static bool has(const tv_stated_term *terms, size_t n, tv_term term)
{
    for (size_t i = 0; i < n; i++)
        if (terms[i].term == term)
            return true;
    return false;
}

/* A breakdown of one's own usually forgets the optimizer. */
static void warn_missing(tv_request *r, const tv_case *c, const tv_stated_term *terms, size_t n,
                         const tv_estimate *e, tv_size_extras *x)
{
    const bool whole = has(terms, n, TV_TERM_WEIGHTS) && has(terms, n, TV_TERM_GRADIENTS) &&
                       has(terms, n, TV_TERM_ACTIVATIONS);
    if (!tv_job_trains(&c->job) || !whole || has(terms, n, TV_TERM_OPTIMIZER))
        return;
    double stated = 0;
    for (size_t i = 0; i < n; i++)
        stated += terms[i].bytes;
    *tv_push(r->a, &x->remarks) = TV_TEXT(
        r->a, "missing.optimizer",
        N_("the terms stated sum to {stated} without optimizer states, which {optimizer} needs "
           "here: {missing} more"),
        tv_arg_num("stated", TV_ARG_DISK, stated),
        tv_arg_str("optimizer", tv_str_of(tv_optimizer_name(c->job.optimizer))),
        tv_arg_num("missing", TV_ARG_DISK, e->memory.term_bytes[TV_TERM_OPTIMIZER]));
}

const tv_err *tv_size_restate(tv_request *r, const tv_any_options *any, const tv_case *c,
                              tv_estimate *e, tv_size_extras *x)
{
    const size_t n = any->set.n;
    tv_stated_term *terms = tv_new(r->a, tv_stated_term, n + 1);
    for (size_t i = 0; i < n; i++)
        TV_TRY(read_term(r->a, any->set.v[i], &terms[i]));
    tv_memory_restate(c, terms, n, &e->memory);
    if (n)
        tv_predict_grades(r->a, c, &e->memory, &e->time, &e->grades);
    warn_missing(r, c, terms, n, e, x);
    return NULL;
}

/* ---- steps of inputs ---- */

void tv_size_deltas(tv_arena *a, tv_arena *scratch, const tv_case *c, const tv_estimate *e,
                    tv_size_extras *x)
{
    const double now = tv_memory_walk(scratch, c, c->job.batch, false).allocated_peak_bytes;
    const double more = tv_memory_walk(scratch, c, c->job.batch + 1, false).allocated_peak_bytes;
    *tv_push(a, &x->deltas) = (tv_delta){
        TV_TEXT0("delta.batch", N_("one more sample at a time")),
        more - now,
    };
    const double weights = e->memory.term_bytes[TV_TERM_WEIGHTS];
    *tv_push(a, &x->deltas) = (tv_delta){
        TV_TEXT0("delta.weights", N_("weights in half as many bytes")),
        -weights / 2,
    };
    const double moving = e->memory.term_bytes[TV_TERM_ACTIVATIONS];
    *tv_push(a, &x->deltas) = (tv_delta){
        TV_TEXT0("delta.activations", N_("activations in half as many bytes")),
        -moving / 2,
    };
    const double states = e->memory.term_bytes[TV_TERM_OPTIMIZER];
    if (states > 0)
        *tv_push(a, &x->deltas) = (tv_delta){
            TV_TEXT0("delta.states", N_("8-bit optimizer states")),
            -states * 0.75,
        };
}

/* ---- data ---- */

const tv_err *tv_size_dataset(tv_request *r, const tv_job *job, const tv_dataset **dataset)
{
    *dataset = NULL;
    if (job->data_dir.n == 0 && job->samples <= 0 && job->sample_bytes <= 0)
        return NULL;
    tv_dataset *d = tv_new(r->a, tv_dataset, 1);
    if (job->data_dir.n)
        TV_TRY(tv_probe_dataset(r, job->data_dir, d));
    if (job->samples > 0)
        d->samples = job->samples;
    if (job->sample_bytes > 0)
        d->sample_bytes = job->sample_bytes;
    if (!d->scanned && d->samples > 0 && d->sample_bytes > 0)
        d->total_bytes = d->samples * d->sample_bytes;
    *dataset = d;
    return NULL;
}
