/* The shared rows. Names are the interface's; words come from desc/. */
#include "job_options.h"

#include <assert.h>
#include <stddef.h>

#include "base/limits.h"

static const char *task_word(int v)
{
    return tv_task_name((tv_task)v);
}

static const char *framework_word(int v)
{
    return tv_framework_name((tv_framework)v);
}

static const char *engine_word(int v)
{
    return tv_engine_name((tv_engine)v);
}

static const char *precision_word(int v)
{
    return tv_precision_name((tv_precision)v);
}

static const char *optimizer_word(int v)
{
    return tv_optimizer_name((tv_optimizer)v);
}

static const char *form_word(int v)
{
    static const char *const words[] = {"", "foreach", "fused", "loop"};
    return words[v];
}

static const char *recompute_word(int v)
{
    return tv_recompute_name((tv_recompute)v);
}

static const char *attention_word(int v)
{
    return tv_attention_name((tv_attention_impl)v);
}

static const char *loss_word(int v)
{
    return tv_loss_name((tv_loss_variant)v);
}

static const char *adapter_word(int v)
{
    static const char *const words[] = {"", "beside", "merged"};
    return words[v];
}

static const char *strategy_word(int v)
{
    return tv_strategy_name((tv_strategy)v);
}

/* Formats that engines keep a cache in. */
static const char *kv_word(int v)
{
    static const char *const words[TV_DTYPE_COUNT] = {
        [TV_F32] = "fp32",  [TV_F16] = "fp16",  [TV_BF16] = "bf16", [TV_F8_E4M3] = "fp8",
        [TV_I8] = "int8",   [TV_I4] = "int4",   [TV_Q8_0] = "q8_0", [TV_Q5_1] = "q5_1",
        [TV_Q5_0] = "q5_0", [TV_Q4_1] = "q4_1", [TV_Q4_0] = "q4_0", [TV_IQ4_NL] = "iq4_nl",
    };
    return words[v];
}

static const char *currency_word(int v)
{
    return tv_currency_name((tv_currency)v);
}

static const char *aim_word(int v)
{
    return tv_aim_name((tv_aim)v);
}

/* A word sets an int: every enumeration that a row fills has that size. */
static_assert(sizeof(tv_task) == sizeof(int) && sizeof(tv_dtype) == sizeof(int) &&
                  sizeof(tv_aim) == sizeof(int),
              "enumerations are ints");
/* --image fills height and width at once. */
static_assert(offsetof(tv_job, image_w) == offsetof(tv_job, image_h) + sizeof(uint32_t),
              "height and width lie side by side");

const tv_option tv_model_rows[TV_MODEL_ROWS] = {
    {
        .name = "params",
        .kind = TV_OPTION_NUMBER,
        .offset = offsetof(tv_model_options, params),
        .help = N_("number of parameters, in place of MODEL"),
    },
    {
        .name = "base",
        .kind = TV_OPTION_TEXT,
        .offset = offsetof(tv_model_options, base),
        .value = "MODEL",
        .help = N_("the model that an adapter joins"),
        .otherwise = N_("as the adapter says"),
    },
};

const tv_option tv_job_rows[TV_JOB_ROWS] = {
    {
        .name = "task",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_job, task),
        .help = N_("what is done with the model"),
        .otherwise = N_("train, or infer where the weights are quantised"),
        .word = task_word,
        .n_words = TV_TASK_SERVE + 1,
    },
    {
        .name = "framework",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_job, framework),
        .help = N_("whose memory rules hold"),
        .otherwise = N_("paddle for Paddle's own files, else torch"),
        .word = framework_word,
        .n_words = TV_PADDLE + 1,
    },
    {
        .name = "engine",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_job, engine),
        .help = N_("what runs the model"),
        .otherwise = "eager",
        .word = engine_word,
        .n_words = TV_ENGINE_PADDLE_INFERENCE + 1,
    },
    {
        .name = "precision",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_job, precision),
        .help = N_("number formats of weights and arithmetic"),
        .otherwise = N_("chosen by the card"),
        .word = precision_word,
        .n_words = TV_PRECISION_COUNT,
    },
    {
        .name = "batch",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_job, batch),
        .help = N_("samples at a time on each GPU; sequences at once when serving"),
        .otherwise = "1",
        .low = 1,
        .high = 1000000,
    },
    {
        .name = "accum",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_job, accum),
        .help = N_("batches whose gradients are added before a step"),
        .otherwise = "1",
        .low = 1,
        .high = 1000000,
    },
    {
        .name = "seq",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_job, seq),
        .help = N_("tokens per sequence"),
        .otherwise = N_("as the model suggests"),
        .low = 1,
        .high = 100000000,
    },
    {
        .name = "gen",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_job, gen),
        .help = N_("tokens to generate for each request"),
        .low = 1,
        .high = 100000000,
    },
    {
        .name = "image",
        .kind = TV_OPTION_SIZE,
        .offset = offsetof(tv_job, image_h),
        .help = N_("height and width of the image"),
        .otherwise = N_("as the model suggests"),
        .low = 1,
        .high = 65536,
    },
    {
        .name = "optimizer",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_job, optimizer),
        .help = N_("what updates the weights"),
        .otherwise = "adamw",
        .word = optimizer_word,
        .n_words = TV_OPT_COUNT,
    },
    {
        .name = "optimizer-form",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_job, optimizer_form),
        .help = N_("how the update is written"),
        .otherwise = N_("as the framework does"),
        .word = form_word,
        .n_words = TV_FORM_LOOP + 1,
    },
    {
        .name = "recompute",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_job, recompute),
        .help = N_("activations that are computed again instead of kept"),
        .otherwise = "none",
        .word = recompute_word,
        .n_words = TV_RECOMPUTE_FULL + 1,
    },
    {
        .name = "attention",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_job, attention),
        .help = N_("how attention is computed"),
        .otherwise = "sdpa",
        .word = attention_word,
        .n_words = TV_ATTENTION_FLASH + 1,
    },
    {
        .name = "loss",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_job, loss),
        .help = N_("how the loss over the vocabulary is computed"),
        .otherwise = "standard",
        .word = loss_word,
        .n_words = TV_LOSS_FUSED + 1,
    },
    {
        .name = "dropout",
        .kind = TV_OPTION_NUMBER,
        .offset = offsetof(tv_job, dropout),
        .value = "P",
        .help = N_("dropout of the model"),
        .otherwise = N_("as its configuration says"),
        .low = 0,
        .high = 1,
    },
    {
        .name = "lora-rank",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_job, lora_rank),
        .value = "R",
        .help = N_("rank of the adapters"),
        .otherwise = "16",
        .low = 1,
        .high = 65536,
    },
    {
        .name = "lora-targets",
        .kind = TV_OPTION_TEXT,
        .offset = offsetof(tv_job, lora_targets),
        .value = "PATTERN",
        .help = N_("modules that get adapters: comma-separated patterns with * and ?"),
        .otherwise = N_("the projections of attention, as PEFT takes them"),
    },
    {
        .name = "lora-dropout",
        .kind = TV_OPTION_NUMBER,
        .offset = offsetof(tv_job, lora_dropout),
        .value = "P",
        .help = N_("dropout before the adapters"),
        .otherwise = "0",
        .low = 0,
        .high = 1,
    },
    {
        .name = "adapter",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_job, adapter),
        .help = N_("inference with an adapter: beside the weights, or merged into them"),
        .otherwise = "beside",
        .word = adapter_word,
        .n_words = TV_ADAPTER_MERGED + 1,
    },
    {
        .name = "strategy",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_job, strategy),
        .help = N_("how several GPUs share a training job"),
        .otherwise = "ddp",
        .word = strategy_word,
        .n_words = TV_STRATEGY_HSDP + 1,
    },
    {
        .name = "tp",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_job, parallel.tp),
        .help = N_("tensor-parallel degree"),
        .otherwise = "1",
        .low = 1,
        .high = TV_LIMIT_GPUS,
    },
    {
        .name = "pp",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_job, parallel.pp),
        .help = N_("pipeline stages"),
        .otherwise = "1",
        .low = 1,
        .high = TV_LIMIT_GPUS,
    },
    {
        .name = "cp",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_job, parallel.cp),
        .help = N_("context-parallel degree"),
        .otherwise = "1",
        .low = 1,
        .high = TV_LIMIT_GPUS,
    },
    {
        .name = "ep",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_job, parallel.ep),
        .help = N_("expert-parallel degree"),
        .otherwise = "1",
        .low = 1,
        .high = TV_LIMIT_GPUS,
    },
    {
        .name = "kv",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_job, kv),
        .help = N_("number format of the KV cache"),
        .otherwise = N_("as the weights are computed"),
        .word = kv_word,
        .n_words = TV_DTYPE_COUNT,
    },
    {
        .name = "samples",
        .kind = TV_OPTION_NUMBER,
        .offset = offsetof(tv_job, samples),
        .help = N_("samples in the data set"),
    },
    {
        .name = "epochs",
        .kind = TV_OPTION_NUMBER,
        .offset = offsetof(tv_job, epochs),
        .help = N_("passes over the data set"),
        .otherwise = "1",
    },
    {
        .name = "data",
        .kind = TV_OPTION_TEXT,
        .offset = offsetof(tv_job, data_dir),
        .value = "DIR",
        .help = N_("folder of the data set: counted and sampled"),
    },
    {
        .name = "sample-bytes",
        .kind = TV_OPTION_BYTES,
        .offset = offsetof(tv_job, sample_bytes),
        .help = N_("size of one sample on disk"),
    },
    {
        .name = "loader-workers",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_job, loader_workers),
        .help = N_("processes that load data, for each GPU"),
        .low = 0,
        .high = 4096,
    },
    {
        .name = "prefetch",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_job, prefetch),
        .help = N_("batches that each of them keeps ready"),
        .otherwise = "2",
        .low = 0,
        .high = 4096,
    },
    {
        .name = "checkpoint-hours",
        .kind = TV_OPTION_NUMBER,
        .offset = offsetof(tv_job, checkpoint_hours),
        .value = "H",
        .help = N_("hours between checkpoints"),
    },
};

const tv_option tv_machine_rows[TV_MACHINE_ROWS] = {
    {
        .name = "gpu",
        .kind = TV_OPTION_TEXT,
        .offset = offsetof(tv_machine_options, gpu),
        .value = "SLUG[,SLUG]",
        .help = N_("cards to look at"),
    },
    {
        .name = "gpus",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_machine_options, gpus),
        .help = N_("cards in each server"),
        .otherwise = "1",
        .low = 1,
        .high = TV_LIMIT_GPUS,
    },
    {
        .name = "nodes",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_machine_options, nodes),
        .help = N_("servers"),
        .otherwise = "1",
        .low = 1,
        .high = TV_LIMIT_GPUS,
    },
    {
        .name = "server",
        .kind = TV_OPTION_TEXT,
        .offset = offsetof(tv_machine_options, server),
        .value = "SLUG",
        .help = N_("server that holds the cards"),
    },
    {
        .name = "topo",
        .kind = TV_OPTION_TEXT,
        .offset = offsetof(tv_machine_options, topo_file),
        .value = "FILE",
        .help = N_("how the cards are linked: output of nvidia-smi topo -m"),
    },
    {
        .name = "disk",
        .kind = TV_OPTION_TEXT,
        .offset = offsetof(tv_machine_options, disk),
        .value = "CLASS|measured",
        .help = N_("where the data lies"),
    },
    {
        .name = "cpu-cores",
        .kind = TV_OPTION_COUNT,
        .offset = offsetof(tv_machine_options, cpu_cores),
        .help = N_("processor cores of each server"),
        .low = 1,
        .high = 65536,
    },
    {
        .name = "ram",
        .kind = TV_OPTION_BYTES,
        .offset = offsetof(tv_machine_options, ram_bytes),
        .help = N_("main memory of each server"),
    },
};

const tv_option tv_money_rows[TV_MONEY_ROWS] = {
    {
        .name = "fx",
        .kind = TV_OPTION_NUMBER,
        .offset = offsetof(tv_money_options, fx),
        .value = "RATE",
        .help = N_("CNY for one USD"),
    },
    {
        .name = "budget",
        .kind = TV_OPTION_NUMBER,
        .offset = offsetof(tv_money_options, budget),
        .value = "AMOUNT",
        .help = N_("most to spend"),
    },
    {
        .name = "currency",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_money_options, currency),
        .help = N_("currency of the answer"),
        .otherwise = N_("CNY in Chinese, else USD"),
        .word = currency_word,
        .n_words = TV_CURRENCY_COUNT,
    },
    {
        .name = "deadline",
        .kind = TV_OPTION_SECONDS,
        .offset = offsetof(tv_money_options, deadline_s),
        .value = "HOURS",
        .help = N_("latest end of the run; 48 is hours, 5d is days"),
        .scale = 3600,
    },
    {
        .name = "hours-per-year",
        .kind = TV_OPTION_NUMBER,
        .offset = offsetof(tv_money_options, hours_per_year),
        .value = "H",
        .help = N_("hours of use in a year"),
        .low = 0,
        .high = 8784,
    },
    {
        .name = "kwh",
        .kind = TV_OPTION_NUMBER,
        .offset = offsetof(tv_money_options, kwh_price),
        .value = "PRICE",
        .help = N_("price of one kWh"),
    },
    {
        .name = "pue",
        .kind = TV_OPTION_NUMBER,
        .offset = offsetof(tv_money_options, pue),
        .value = "X",
        .help = N_("energy of the whole site for each unit of the machines"),
        .low = 1,
        .high = 5,
    },
    {
        .name = "prices",
        .kind = TV_OPTION_TEXT,
        .offset = offsetof(tv_money_options, prices_file),
        .value = "FILE",
        .help = N_("prices of your own"),
    },
};

const tv_option tv_any_rows[TV_ANY_ROWS] = {
    {
        .name = "aim",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_any_options, aim),
        .help = N_("what is best"),
        .otherwise = "value",
        .word = aim_word,
        .n_words = TV_AIM_COUNT,
    },
    {
        .name = "set",
        .kind = TV_OPTION_TEXTS,
        .offset = offsetof(tv_any_options, set),
        .value = "TERM=VALUE",
        .help = N_("a term of the ledger that you know better; may be repeated"),
    },
    {
        .name = "measured-bytes",
        .kind = TV_OPTION_BYTES,
        .offset = offsetof(tv_any_options, measured_bytes),
        .help = N_("peak memory that you measured"),
    },
    {
        .name = "measured-step",
        .kind = TV_OPTION_SECONDS,
        .offset = offsetof(tv_any_options, measured_step_s),
        .help = N_("time of a step that you measured"),
    },
    {
        .name = "rule-of-thumb",
        .kind = TV_OPTION_FLAG,
        .offset = offsetof(tv_any_options, rule_of_thumb),
        .help = N_("show the usual rule of thumb beside the answer, and why they differ"),
    },
    {
        .name = "require",
        .kind = TV_OPTION_FLAG,
        .offset = offsetof(tv_any_options, require),
        .help = N_("exit with 1 where the answer is no"),
    },
    {
        .name = "explain",
        .kind = TV_OPTION_FLAG,
        .offset = offsetof(tv_any_options, explain),
        .help = N_("show every term with its formula and source"),
    },
};

void tv_job_unsaid(tv_job *job)
{
    *job = (tv_job){.dropout = -1};
}

const char *tv_aim_name(tv_aim v)
{
    static const char *const names[TV_AIM_COUNT] = {"", "cheapest", "fastest", "value"};
    return names[v];
}

const char *tv_currency_name(tv_currency v)
{
    static const char *const names[TV_CURRENCY_COUNT] = {"", "CNY", "USD"};
    return names[v];
}
