/* trivet trace: profiles of one or several ranks -> where a step goes. Reading and judging are the
 * doctor's; this command shows the figures themselves. */
#include <math.h>
#include <string.h>

#include "catalog/catalog.h"
#include "command.h"
#include "diagnose/diagnose.h"
#include "diagnose/trace_scene.h"
#include "doctor_join.h"
#include "report/trace_out.h"
#include "trace/trace.h"
#include "trace_summary.h"

typedef struct trace_options {
    uint32_t top;
} trace_options;

static const tv_option rows[] = {
    {.name = "top",
     .kind = TV_OPTION_COUNT,
     .offset = offsetof(trace_options, top),
     .value = "N",
     .help = N_("how many of the longest kernels are listed")},
};

static const tv_option_group groups[] = {
    {N_("Options"), rows, sizeof rows / sizeof *rows, 0},
};

static void defaults(void *options)
{
    ((trace_options *)options)->top = 10;
}

/* The one whose steps last longest: it sets the pace. */
static const tv_note *slowest_of(const tv_note *ranks)
{
    const tv_note *slowest = ranks->first;
    for (const tv_note *r = ranks->first; r; r = r->next)
        if (tv_noted_num(r, "step_s") > tv_noted_num(slowest, "step_s"))
            slowest = r;
    return slowest;
}

/* What the card does at best in the number format of the products: dense rates of its record. */
static double peak_of(const tv_scene *scene, tv_str dtype)
{
    static const struct {
        const char *dtype, *key;
    } rates[] = {
        {"c10::BFloat16", "bf16_flop_per_s"},
        {"c10::Half", "fp16_flop_per_s"},
        {"float", "tf32_flop_per_s"},
    };
    const tv_sighting *record = tv_scene_first(scene, "device-record");
    for (size_t i = 0; record && i < sizeof rates / sizeof *rates; i++)
        if (tv_str_is(dtype, rates[i].dtype))
            return tv_noted_num(&record->facts, rates[i].key);
    return (double)NAN;
}

static void put_skew(const tv_inquiry *q, tv_trace_view *v)
{
    tv_rank_skew skew;
    v->skew = tv_trace_skew(q, &skew);
    if (!v->skew)
        return;
    v->collectives = skew.collectives;
    v->wait_share = skew.share;
    v->wait_s = skew.waits_s;
    v->late_rank = tv_trace_rank(skew.late);
    v->late_share = skew.late_share;
}

static const tv_err *show(tv_request *r, tv_scene *scene, const trace_options *o)
{
    tv_note *ranks = tv_new(r->a, tv_note, 1);
    ranks->type = TV_NOTE_LIST;
    for (const tv_sighting *s = scene->first; s; s = s->next) {
        tv_note *out = tv_new(r->a, tv_note, 1);
        if (!tv_trace_summary(r->a, s, o->top, out))
            continue;
        tv_note *kept = tv_note_map(r->a, ranks, NULL);
        kept->first = out->first;
        kept->last = out->last;
        kept->n = out->n;
    }
    if (!ranks->n)
        return tv_hint(
            TV_FAIL0(r->a, TV_INPUT, "trace.none", N_("no profile is in what was given")),
            TV_TEXT0("trace.none-hint",
                     N_("Give what a profiler wrote: a trace (.json, .json.gz), a "
                        "key_averages table, Paddle's summary or an nsys export.")));
    tv_diagnosis *d = tv_new(r->a, tv_diagnosis, 1);
    tv_diagnose(r->a, scene, d);
    tv_inquiry q = {r->a, scene, d};
    tv_trace_view v = {.ranks = ranks, .slowest = slowest_of(ranks), .diagnosis = d};
    v.peak_flop_per_s = peak_of(scene, tv_noted_str(v.slowest, "flop_dtype"));
    put_skew(&q, &v);
    if (r->json)
        tv_trace_json(r, r->out, &v);
    else
        tv_trace_text(r, r->out, &v);
    return NULL;
}

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    tv_scene *scene = tv_new(r->a, tv_scene, 1);
    for (size_t i = 0; i < args->n; i++)
        TV_TRY(tv_trace_read(r->a, args->v[i], scene));
    TV_TRY(tv_doctor_devices(r, scene));
    return show(r, scene, options);
}

extern const tv_command tv_command_trace;
const tv_command tv_command_trace = {
    .name = "trace",
    .summary = N_("where the time of a training step goes, from profiles of one or several ranks"),
    .usage = "FILE...",
    .details = N_("Reads traces of any size as they stream by (PyTorch, Paddle, ROCm, TensorFlow, "
                  "JAX; plain, gzip, zstd), tables of torch.profiler, Paddle's summaries and nsys "
                  "exports. Several files are several ranks of one job."),
    .groups = groups,
    .n_groups = sizeof groups / sizeof *groups,
    .options_size = sizeof(trace_options),
    .defaults = defaults,
    .min_args = 1,
    .max_args = 4096,
    .run = run,
};
