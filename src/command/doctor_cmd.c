/* trivet doctor: captured files, or this host, -> findings. Hands documents to the readers and
 * what they saw to the rules. */
#include "command.h"

#include "doctor_compat.h"
#include "doctor_host.h"
#include "doctor_join.h"
#include "doctor_model.h"

#include "diagnose/diagnose.h"
#include "report/doctor_out.h"
#include "trace/trace.h"

typedef struct doctor_options {
    bool list;
    tv_str explain;
    tv_doctor_host host;
    tv_doctor_job job;
} doctor_options;

static const tv_option rows[] = {
    {.name = "list",
     .kind = TV_OPTION_FLAG,
     .offset = offsetof(doctor_options, list),
     .help = N_("every rule with its confidence and its source")},
    {.name = "explain",
     .kind = TV_OPTION_TEXT,
     .offset = offsetof(doctor_options, explain),
     .value = "ID",
     .help = N_("one rule in full: how it decides, what speaks against it, what to do")},
    {.name = "model",
     .kind = TV_OPTION_TEXT,
     .offset = offsetof(doctor_options, job.model),
     .value = "MODEL",
     .help = N_("the model behind an out-of-memory message: which part fills the card, and the "
                "cheapest change that fits")},
};

static const tv_option_group groups[] = {
    {N_("Options"), rows, sizeof rows / sizeof *rows, 0},
    {N_("This host"), tv_doctor_host_rows, TV_DOCTOR_HOST_ROWS, offsetof(doctor_options, host)},
    {N_("Model"), tv_model_rows, TV_MODEL_ROWS, offsetof(doctor_options, job.options)},
    {N_("Job"), tv_job_rows, TV_JOB_ROWS, offsetof(doctor_options, job.job)},
    {N_("Machine"), tv_machine_rows, TV_MACHINE_ROWS, offsetof(doctor_options, job.machine)},
};

static void defaults(void *options)
{
    tv_job_unsaid(&((doctor_options *)options)->job.job);
}

/* ---- the rules themselves ---- */

static void list_json(const tv_request *r)
{
    tv_json_out w = tv_json_write(r->out);
    tv_json_begin(&w, '[');
    for (size_t g = 0; tv_rule_groups[g]; g++)
        for (size_t i = 0; i < tv_rule_groups[g]->n; i++)
            tv_rule_json(r, &w, &tv_rule_groups[g]->rules[i], tv_rule_groups[g]->name);
    tv_json_end(&w, ']');
    tv_putc(r->out, '\n');
}

static void list_group(const tv_request *r, const tv_rule_group *group)
{
    static const tv_column columns[] = {
        {N_("rule"), false, false},
        {N_("confidence"), false, false},
        {N_("what"), false, true},
        {N_("source"), false, false},
    };
    tv_arena *a = r->a;
    const tv_page page = tv_page_on(r, r->out);
    tv_page_head(&page, group->heading);
    tv_table t = {.columns = columns, .n_columns = 4};
    for (size_t i = 0; i < group->n; i++) {
        const tv_rule *rule = &group->rules[i];
        tv_table_add(a, &t, TV_BOLD, tv_str_of(rule->id));
        tv_table_add(
            a, &t, TV_PLAIN,
            tv_text_in(a, r->lang, TV_TEXT0("rule.sure-word", tv_confidence_name(rule->sure))));
        tv_table_add(a, &t, TV_PLAIN, tv_text_in(a, r->lang, TV_TEXT0(rule->id, rule->title)));
        tv_table_add(a, &t, TV_DIM, tv_str_of(rule->source));
    }
    tv_table_put(&page, &t, 0);
}

static const tv_err *explain(const tv_request *r, tv_str id)
{
    for (size_t g = 0; tv_rule_groups[g]; g++) {
        const tv_rule_group *group = tv_rule_groups[g];
        for (size_t i = 0; i < group->n; i++) {
            if (!tv_str_eq_nocase(id, tv_str_of(group->rules[i].id)))
                continue;
            if (!r->json) {
                tv_rule_text(r, r->out, &group->rules[i], group->heading);
                return NULL;
            }
            tv_json_out w = tv_json_write(r->out);
            tv_rule_json(r, &w, &group->rules[i], group->name);
            tv_putc(r->out, '\n');
            return NULL;
        }
    }
    return tv_hint(TV_FAIL(r->a, TV_USAGE, "doctor.unknown-rule", N_("no rule has the id \"{id}\""),
                           tv_arg_str("id", id)),
                   TV_TEXT0("doctor.list-hint", N_("trivet doctor --list shows them all.")));
}

/* ---- a diagnosis ---- */

static const tv_err *diagnose(tv_request *r, const doctor_options *o, const tv_args *args)
{
    tv_scene *scene = tv_new(r->a, tv_scene, 1);
    for (size_t i = 0; i < args->n; i++)
        TV_TRY(tv_trace_read(r->a, args->v[i], scene));
    TV_TRY(tv_doctor_host_read(r, &o->host, args->n, scene));
    TV_TRY(tv_doctor_devices(r, scene));
    TV_TRY(tv_doctor_compat(r, scene));
    tv_diagnosis *d = tv_new(r->a, tv_diagnosis, 1);
    tv_diagnose(r->a, scene, d);
    if (o->job.model.n || o->job.options.params > 0)
        TV_TRY(tv_doctor_model(r, &o->job, d));
    if (r->json)
        tv_doctor_json(r, r->out, d);
    else
        tv_doctor_text(r, r->out, d);
    return NULL;
}

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    const doctor_options *o = options;
    if (o->explain.n)
        return explain(r, o->explain);
    if (!o->list)
        return diagnose(r, o, args);
    if (r->json)
        list_json(r);
    else
        for (size_t g = 0; tv_rule_groups[g]; g++)
            list_group(r, tv_rule_groups[g]);
    return NULL;
}

extern const tv_command tv_command_doctor;
const tv_command tv_command_doctor = {
    .name = "doctor",
    .summary = N_("what is wrong, from captured files or this host, and the smallest fix"),
    .usage = "[FILE|DIR|-]... [--model MODEL [JOB]]",
    .details = N_("Reads whatever was saved: error messages, logs, nvidia-smi output, kernel logs, "
                  "topologies, profiler tables and traces, in any mixture, whole folders and "
                  "archives. Nothing is ever executed or changed."),
    .groups = groups,
    .n_groups = sizeof groups / sizeof *groups,
    .options_size = sizeof(doctor_options),
    .defaults = defaults,
    .min_args = 0,
    .max_args = 4096,
    .run = run,
};
