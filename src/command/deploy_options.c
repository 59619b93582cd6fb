/* The rows about what comes after training; words come from desc/. */
#include "deploy_options.h"

#include <stddef.h>

#include "base/unit.h"
#include "desc/job.h"

static const char *target_word(int v)
{
    return tv_target_name((tv_target)v);
}

static const char *precision_word(int v)
{
    return tv_precision_name((tv_precision)v);
}

const tv_option tv_deploy_rows[TV_DEPLOY_ROWS] = {
    {
        .name = "deploy",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_deploy_options, deploy.target),
        .help =
            N_("what the model is exported to or built into, so that those phases are held too"),
        .otherwise = N_("asked"),
        .word = target_word,
        .n_words = TV_TARGET_COUNT,
    },
    {
        .name = "serve-precision",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_deploy_options, deploy.precision),
        .help = N_("number formats of the model that is served"),
        .otherwise = N_("chosen by the card"),
        .word = precision_word,
        .n_words = TV_PRECISION_COUNT,
    },
    {
        .name = "max-batch",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_deploy_options, deploy.max_batch),
        .help = N_("largest batch that the engine must run (its optimisation profile)"),
        .otherwise = N_("the job's, or 1 after training"),
        .low = 1,
        .high = 1000000,
    },
    {
        .name = "max-seq",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_deploy_options, deploy.max_seq),
        .help = N_("longest sequence that the engine must run"),
        .otherwise = N_("the job's"),
        .low = 1,
        .high = 100000000,
    },
    {
        .name = "workspace",
        .kind = TV_OPTION_BYTES,
        .offset = offsetof(tv_deploy_options, deploy.workspace_bytes),
        .help = N_("what one kernel may take while the engine is built"),
        .otherwise = N_("the whole card; 1 GiB with paddle-tensorrt"),
    },
    {
        .name = "serve-gpu",
        .kind = TV_OPTION_TEXT,
        .offset = offsetof(tv_deploy_options, serve_gpu),
        .value = "SLUG[,SLUG]",
        .help = N_("cards to serve on"),
        .otherwise = N_("those of --gpu"),
    },
    {
        .name = "phase",
        .kind = TV_OPTION_TEXTS,
        .offset = offsetof(tv_deploy_options, phase),
        .value = "NAME=BYTES",
        .help = N_("what a phase needs by your own figure: train, export, build or serve; may be "
                   "repeated"),
    },
};

static const tv_err *bad_phase(tv_arena *a, tv_str text)
{
    return tv_hint(TV_FAIL(a, TV_USAGE, "phase.bad", N_("--phase {text}: not NAME=BYTES"),
                           tv_arg_str("text", text)),
                   TV_TEXT0("phase.try", N_("Write --phase build=20GB; the names are train, "
                                            "export, build and serve.")));
}

static tv_life life_named(tv_str name)
{
    for (tv_life v = 0; v < TV_LIFE_COUNT; v++)
        if (tv_str_is(name, tv_life_name(v)) && v != TV_LIFE_VALIDATE)
            return v;
    return TV_LIFE_COUNT;
}

static const tv_err *read_phase(tv_arena *a, tv_str text, double *stated)
{
    const tv_cut c = tv_str_cut(text, '=');
    const tv_double_read bytes = tv_read_bytes(c.tail);
    const tv_life phase = life_named(tv_str_trim(c.head));
    if (!c.found || !bytes.ok || !(bytes.v > 0) || phase == TV_LIFE_COUNT)
        return bad_phase(a, text);
    stated[phase] = bytes.v;
    return NULL;
}

const tv_err *tv_deploy_stated(tv_arena *a, const tv_deploy_options *o, double *stated)
{
    for (size_t i = 0; i < o->phase.n; i++)
        TV_TRY(read_phase(a, o->phase.v[i], stated));
    return NULL;
}
