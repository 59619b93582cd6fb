/* trivet gpus: the catalogue of accelerators. Options and words; the pages are in gpus_list.c,
 * gpus_show.c and gpus_compare.c. */
#include "command.h"

#include <stddef.h>

#include "gpus.h"

static const tv_option rows[] = {
    {
        .name = "fits",
        .kind = TV_OPTION_BYTES,
        .offset = offsetof(tv_gpus_options, fits_bytes),
        .help = N_("list only cards with at least so much memory"),
    },
    {
        .name = "mode",
        .kind = TV_OPTION_TEXT,
        .offset = offsetof(tv_gpus_options, mode),
        .value = "RATE",
        .help = N_("compare in this mode, such as fp16_tensor or fp16_tensor_fp16acc"),
        .otherwise = N_("the first that both cards are known in"),
    },
    {
        .name = "model",
        .kind = TV_OPTION_TEXT,
        .offset = offsetof(tv_gpus_options, model),
        .value = "MODEL",
        .help = N_("compare by a job with this model (a file, a folder or a built-in name)"),
    },
};

static const tv_option_group groups[] = {
    {N_("Catalogue"), rows, sizeof rows / sizeof *rows, 0},
    {N_("Model"), tv_model_rows, TV_MODEL_ROWS, offsetof(tv_gpus_options, params)},
    {N_("Job"), tv_job_rows, TV_JOB_ROWS, offsetof(tv_gpus_options, job)},
    {N_("Money"), tv_money_rows, TV_MONEY_ROWS, offsetof(tv_gpus_options, money)},
};

static void defaults(void *options)
{
    tv_job_unsaid(&((tv_gpus_options *)options)->job);
}

static bool is_job_row(const tv_option *row)
{
    return row >= tv_job_rows && row < tv_job_rows + TV_JOB_ROWS;
}

/* What would have no effect is refused: only compare with a model reckons a job. */
static const tv_err *check_job(const tv_gpus_run *g, const tv_args *args, bool compares)
{
    const bool reckons = compares && (g->o->model.n || g->o->params.params > 0);
    for (size_t i = 0; i < args->stated.n && !reckons; i++) {
        const tv_str name = tv_str_of(args->stated.v[i]->name);
        const bool idle = (is_job_row(args->stated.v[i]) && !tv_str_is(name, "task")) ||
                          tv_str_is(name, "model") || tv_str_is(name, "params");
        if (idle)
            return tv_hint(TV_FAIL(g->r->a, TV_USAGE, "gpus.idle",
                                   N_("--{name} has no effect here"), tv_arg_str("name", name)),
                           TV_TEXT0("gpus.idle.try",
                                    N_("A job is reckoned by: trivet gpus compare A B --model "
                                       "NAME; for one card ask trivet size.")));
    }
    return NULL;
}

static const tv_err *bad_word(tv_request *r, const tv_args *args)
{
    static const char *const words[] = {"list", "show", "compare"};
    tv_str word = args->v[0];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_str_is(word, words[i]) && args->n > 1)
            word = args->v[args->n - 1];
    return tv_hint(TV_FAIL(r->a, TV_USAGE, "gpus.word",
                           N_("gpus does not know what to do with \"{word}\""),
                           tv_arg_str("word", word)),
                   TV_TEXT0("gpus.word.try", N_("Say list, show NAME or compare A B.")));
}

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    const tv_machine_options none = {0};
    tv_gpus_run g = {.r = r, .o = options};
    const tv_str word = args->n ? args->v[0] : TV_S("list");
    TV_TRY(check_job(&g, args, tv_str_is(word, "compare")));
    TV_TRY(tv_market_open(r, &none, &g.o->money, &g.market));
    if (tv_str_is(word, "list") && args->n < 2)
        return tv_gpus_list(&g);
    if (tv_str_is(word, "show") && args->n == 2)
        return tv_gpus_show(&g, args->v[1]);
    if (tv_str_is(word, "compare"))
        return tv_gpus_compare(&g, args->v + 1, args->n - 1);
    return bad_word(r, args);
}

extern const tv_command tv_command_gpus;
const tv_command tv_command_gpus = {
    .name = "gpus",
    .summary = N_("the catalogue of accelerators: list, show one, compare some"),
    .usage = "[list | show NAME | compare A B ...]",
    .details = N_(
        "NAME is a slug, a product name as nvidia-smi prints it, a PCI id such as 10de:2684, or "
        "part of a name; show takes an amount of memory such as 12GB too and says what it is "
        "enough for. Rates are dense and carry their mode; links are named one way and both ways. "
        "What is not known is shown as unknown, and cards of which not enough is known are listed "
        "apart. --task and --budget filter the list."),
    .groups = groups,
    .n_groups = sizeof groups / sizeof *groups,
    .options_size = sizeof(tv_gpus_options),
    .defaults = defaults,
    .max_args = 9,
    .run = run,
};
