/* The guides' rules of thumb, worked with the job's own numbers, beside our figure and the reason
 * for the difference. F-numbers are the entries of docs/factcheck.md. */
#include "size_extras.h"

#include "predict/predict.h"

static void add(tv_arena *a, tv_size_extras *x, tv_thumb t)
{
    *tv_push(a, &x->thumbs) = t;
}

static tv_arg gb(const char *name, double v)
{
    return tv_arg_num(name, TV_ARG_DISK, v);
}

static double per_param(const tv_case *c)
{
    const tv_policy *p = &c->policy;
    const double w = tv_dtype_bytes(p->param), g = tv_dtype_bytes(p->grad);
    return w + g + tv_predict_state_bytes(c->job.optimizer, p->state, p->master);
}

/* Weights, gradients and optimizer states, wherever in a step they peak. */
static double states(const tv_case *c)
{
    const double trained = c->graph->trainable_params, params = c->graph->params;
    if (!tv_job_trains(&c->job))
        return params * tv_dtype_bytes(c->policy.param);
    return trained * per_param(c) + (params - trained) * tv_dtype_bytes(c->policy.param);
}

/* F01, F02: three times four bytes per parameter. */
static void times_twelve(tv_arena *a, const tv_case *c, tv_size_extras *x)
{
    const double params = c->graph->params, ours = states(c);
    add(a, x,
        (tv_thumb){
            .rule = "F01",
            .guide =
                TV_TEXT(a, "thumb.f01", N_("parameters x 4 bytes x 3 = {guide} for the model part"),
                        gb("guide", params * 12)),
            .guide_bytes = params * 12,
            .ours_bytes = ours,
            .why =
                TV_TEXT(a, "thumb.f01.why",
                        N_("Adam keeps two moments: fp32 training holds 4 + 4 + 8 = 16 bytes per "
                           "parameter; 12 fits SGD with momentum. This job: {each} bytes for each "
                           "trained parameter, {ours} in all"),
                        tv_arg_num("each", TV_ARG_NUMBER, per_param(c)), gb("ours", ours)),
        });
}

/* F03: one tensor of batch x sequence x width taken for all activations. */
static void one_tensor(tv_arena *a, const tv_case *c, const tv_memory *m, tv_size_extras *x)
{
    if (!(c->model->hidden > 0) || !c->job.seq)
        return;
    const double one = (double)c->job.batch * (double)c->job.seq * c->model->hidden * 4;
    add(a, x,
        (tv_thumb){
            .rule = "F03",
            .guide = TV_TEXT(a, "thumb.f03",
                             N_("activations = batch x sequence x width x 4 bytes = {guide}"),
                             gb("guide", one)),
            .guide_bytes = one,
            .ours_bytes = m->saved_bytes,
            .why =
                TV_TEXT(a, "thumb.f03.why",
                        N_("that is one tensor; every layer keeps many for backward: {ours} here"),
                        gb("ours", m->saved_bytes)),
        });
}

/* F46-F49: gradients inside the batch term, no optimizer. */
static void four_parts(tv_arena *a, const tv_case *c, const tv_memory *m, tv_size_extras *x)
{
    const double e = tv_dtype_bytes(c->policy.compute);
    const double params = c->graph->params, act = m->term_bytes[TV_TERM_ACTIVATIONS];
    const double sum = params * e * 4 + act;
    add(a, x,
        (tv_thumb){
            .rule = "F47",
            .guide = TV_TEXT(
                a, "thumb.f47",
                N_("weights {w} + activations {act} + gradients {w} + AdamW at the same "
                   "precision {opt} = {sum}"),
                gb("w", params * e), gb("act", act), gb("opt", params * e * 2), gb("sum", sum)),
            .guide_bytes = sum,
            .ours_bytes = m->allocated_peak_bytes,
            .why =
                TV_TEXT(a, "thumb.f47.why",
                        N_("gradients do not grow with the batch; frameworks keep moments in fp32 "
                           "under mixed precision (16 bytes per parameter: {mixed} before "
                           "activations)"),
                        gb("mixed", params * 16)),
        });
}

/* F123: bytes of the weights, times two to three. */
static void redundancy(tv_arena *a, const tv_case *c, const tv_memory *m, tv_size_extras *x)
{
    const double params = c->graph->params;
    const double each = tv_dtype_bytes(c->policy.compute) <= 2 ? 2 : 4;
    add(a, x,
        (tv_thumb){
            .rule = "F123",
            .guide = TV_TEXT(a, "thumb.f123",
                             N_("parameters x {each} bytes, times 2 to 3 = {low} to {high}"),
                             tv_arg_num("each", TV_ARG_NUMBER, each), gb("low", params * each * 2),
                             gb("high", params * each * 3)),
            .guide_bytes = params * each * 2,
            .guide_high_bytes = params * each * 3,
            .ours_bytes = m->total_bytes,
            .why =
                TV_TEXT(a, "thumb.f123.why",
                        N_("inference needs the weights ({weights}) and the cache; full training "
                           "with Adam {full} of states and the activations on top; adapters lie "
                           "between"),
                        gb("weights", params * 2), gb("full", params * 16)),
        });
}

static const char *guide_tier(double params)
{
    if (params < 10e6)
        return N_("a 24 GB consumer card");
    return params < 100e6 ? N_("an A100 40 GB") : N_("an H100 80 GB");
}

/* F53 and F119: cards by number of parameters. */
static void tiers(tv_arena *a, const tv_case *c, const tv_memory *m, tv_size_extras *x)
{
    const double params = c->graph->params;
    add(a, x,
        (tv_thumb){
            .rule = "F53",
            .guide = TV_TEXT(a, "thumb.f53", N_("by size alone: {tier}"),
                             tv_arg_word("tier", guide_tier(params))),
            .ours_bytes = m->total_bytes,
            .why = TV_TEXT(a, "thumb.f53.why",
                           N_("a number of parameters does not choose a card: method, batch and "
                              "length do. This job needs {ours}"),
                           gb("ours", m->total_bytes)),
        });
    const double tier = params < 100e6 ? 12e9 : params <= 3e9 ? 24e9 : 40e9;
    add(a, x,
        (tv_thumb){
            .rule = "F119",
            .guide =
                TV_TEXT(a, "thumb.f119",
                        N_("below 100 M 12 GB, up to 3 B 24 GB, above 40 or 80 GB: here {guide}"),
                        gb("guide", tier)),
            .guide_bytes = tier,
            .ours_bytes = m->total_bytes,
            .why =
                TV_TEXT(a, "thumb.f119.why",
                        N_("full training of 3 B holds 48 GB of states; 7 B with adapters fits 24 "
                           "GB, 7 B in 4 bit 8 GB. This job's states: {states}"),
                        gb("states", states(c))),
        });
}

void tv_size_thumbs(tv_arena *a, const tv_case *c, const tv_estimate *e, tv_size_extras *x)
{
    const tv_memory *m = &e->memory;
    redundancy(a, c, m, x);
    tiers(a, c, m, x);
    if (!tv_job_trains(&c->job))
        return;
    times_twelve(a, c, x);
    one_tensor(a, c, m, x);
    four_parts(a, c, m, x);
}
