/* Logs of trainings, as the usual libraries print them: one row per dialect, which names the texts
 * that tell it and the words before its numbers. What a line does not say stays unknown. Lines of
 * validation are passed over. */
#include <math.h>
#include <string.h>

#include "glean.h"
#include "train_run.h"

/* ---- values ---- */

static bool is_word_char(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_';
}

/* What stands behind a key that is a word of its own: its mark (':', '=', '":') is passed. */
static bool past_key(tv_str line, const char *key, tv_str *rest)
{
    const size_t n = strlen(key);
    const char *from = line.p;
    const char *end = line.p + line.n;
    for (const char *hit; from < end && (hit = memmem(from, (size_t)(end - from), key, n));
         from = hit + 1) {
        tv_str t = tv_str_span(hit + n, end);
        if ((hit > line.p && is_word_char(hit[-1])) || (t.n && is_word_char(*t.p)))
            continue;
        while (t.n && strchr(" \t\"':=", *t.p) && *t.p)
            t = tv_str_drop(t, 1);
        *rest = t;
        return true;
    }
    return false;
}

/* "0.41", "0.41s", "412 ms", with the running average that may stand behind it: "(0.39)". */
static double time_at(tv_str s, double unit_s)
{
    tv_str t = s;
    tv_double_read r = tv_take_seconds(&t);
    if (!r.ok) {
        t = s;
        r = tv_take_number(&t);
        r.v *= unit_s;
    }
    if (!r.ok)
        return (double)NAN;
    const tv_str open = tv_str_trim(tv_str_take(t, 40));
    tv_str inner;
    /* timm: "0.41s,  620.10/s  (0.43s, 595.30/s)" */
    if (open.n && (*open.p == '(' || *open.p == ',') && tv_past(open, "(", &inner)) {
        tv_double_read average = tv_take_seconds(&inner);
        if (!average.ok) {
            average = tv_take_number(&inner);
            average.v *= unit_s;
        }
        if (average.ok)
            return average.v;
    }
    return r.v;
}

enum { MOST_KEYS = 4 };

typedef const char *keys[MOST_KEYS];

static double time_of(tv_str line, const keys k, double unit_s)
{
    tv_str rest;
    for (size_t i = 0; i < MOST_KEYS && k[i]; i++)
        if (past_key(line, k[i], &rest)) {
            const double v = time_at(rest, unit_s);
            if (!isnan(v))
                return v;
        }
    return (double)NAN;
}

static double number_of(tv_str line, const keys k)
{
    tv_str rest;
    for (size_t i = 0; i < MOST_KEYS && k[i]; i++)
        if (past_key(line, k[i], &rest)) {
            const tv_double_read r = tv_take_number(&rest);
            if (r.ok)
                return r.v;
        }
    return (double)NAN;
}

static double bytes_of(tv_str line, const keys k, double unit_bytes)
{
    tv_str rest;
    for (size_t i = 0; i < MOST_KEYS && k[i]; i++)
        if (past_key(line, k[i], &rest)) {
            tv_str t = rest;
            const tv_double_read plain = tv_take_number(&t);
            const tv_double_read r = tv_take_bytes(&rest);
            if (r.ok && plain.ok)
                return t.n == rest.n ? r.v * unit_bytes : r.v;
        }
    return (double)NAN;
}

/* ---- dialects ---- */

typedef struct dialect {
    const char *name;
    const char *framework;
    keys marks; /* all of them */
    keys data, time, memory, samples;
    double time_unit_s;
    double mem_unit_bytes;
    bool mem_is_peak;
    void (*more)(tv_str line, tv_moment *m); /* what the words alone do not give */
} dialect;

static double fraction_head(tv_str s)
{
    const tv_double_read r = tv_take_number(&s);
    return r.ok ? r.v : (double)NAN;
}

/* "Epoch [1][50/7330]", "Epoch: [0][ 10/5005]", "epoch: [5/500], iter: 11550", "Train: 0 [ 50/1251"
 */
static void where(tv_str line, tv_moment *m)
{
    static const char *const epochs[] = {"epoch", "Epoch", "Epoch(train)", "Train Epoch", "Train"};
    static const char *const steps[] = {"global_step", "global step", "iter",     "Iter",
                                        "iteration",   "step",        "batch_id", "update"};
    tv_str rest;
    for (size_t i = 0; isnan(m->epoch) && i < sizeof epochs / sizeof *epochs; i++)
        if (past_key(line, epochs[i], &rest)) {
            while (rest.n && strchr("[ (", *rest.p) && *rest.p)
                rest = tv_str_drop(rest, 1);
            m->epoch = fraction_head(rest);
            /* "[1][50/7330]": the step stands in the next brackets */
            tv_str next;
            const tv_str near = tv_str_take(rest, 24);
            if (isnan(m->step) && !isnan(m->epoch) && tv_past(near, "[", &next))
                m->step = fraction_head(next);
        }
    for (size_t i = 0; isnan(m->step) && i < sizeof steps / sizeof *steps; i++)
        if (past_key(line, steps[i], &rest))
            m->step = fraction_head(rest);
}

/* timm: "Time: 0.412s,  620.10/s  (0.43s, 595.30/s)" */
static void timm_rate(tv_str line, tv_moment *m)
{
    tv_str rest;
    where(line, m);
    if (past_key(line, "Time", &rest) && tv_take_seconds(&rest).ok && rest.n && *rest.p == ',') {
        rest = tv_str_drop(rest, 1);
        const tv_double_read r = tv_take_number(&rest);
        if (r.ok && tv_str_starts(rest, TV_S("/s")))
            m->samples_per_s = r.v;
    }
}

/* OpenCLIP: "Batch (t): 0.812, 123.4/s, 61.7/s/gpu" */
static void clip_rate(tv_str line, tv_moment *m)
{
    tv_str rest;
    where(line, m);
    if (!past_key(line, "Batch (t)", &rest) || !tv_take_number(&rest).ok || !rest.n)
        return;
    rest = tv_str_drop(rest, 1);
    const tv_double_read r = tv_take_number(&rest);
    if (r.ok && tv_str_starts(rest, TV_S("/s")))
        m->samples_per_s = r.v;
}

/* "fwd: 120.1 | bwd: 240.3 | bwd_inner: 200.1 | bwd_allreduce: 40.1 | step: 12.1": of a whole step;
 * the lines of micro-steps say the same in parts and are left out. */
static void deepspeed_parts(tv_str line, tv_moment *m)
{
    static const keys forward = {"fwd"}, backward = {"bwd"}, reduce = {"bwd_allreduce"},
                      step = {"step"};
    m->step_s =
        time_of(line, forward, 1e-3) + time_of(line, backward, 1e-3) + time_of(line, step, 1e-3);
    m->comm_s = time_of(line, reduce, 1e-3);
}

/* The whole batch over the time. */
static void megatron_rate(tv_str line, tv_moment *m)
{
    static const keys batch = {"global batch size", "global_batch_size"};
    where(line, m);
    m->batch = number_of(line, batch);
    m->samples_per_s = m->batch / m->step_s;
}

static void per_second(tv_str line, tv_moment *m)
{
    static const keys steps = {"train_steps_per_second", "interval_steps_per_second",
                               "train_speed(iter/s)", "ups"};
    const double v = number_of(line, steps);
    if (isnan(m->step_s) && v > 0)
        m->step_s = 1 / v;
    where(line, m);
}

static void token_rate(tv_str line, tv_moment *m)
{
    static const keys tokens = {"tps", "wps", "tokens_per_second", "tok/s"};
    m->tokens_per_s = number_of(line, tokens);
    where(line, m);
}

/* Paddle: "ips: 655 tokens/s" counts tokens. */
static void paddle_rate(tv_str line, tv_moment *m)
{
    tv_str rest;
    where(line, m);
    if (!past_key(line, "ips", &rest) || !tv_take_number(&rest).ok)
        return;
    if (tv_str_starts(tv_str_trim(rest), TV_S("token"))) {
        m->tokens_per_s = m->samples_per_s;
        m->samples_per_s = (double)NAN;
    }
}

#define TV_NO_KEYS                                                                                 \
    {                                                                                              \
        NULL                                                                                       \
    }

static const dialect dialects[] = {
    {"paddle",
     "paddle",
     {"batch_cost", "reader_cost"},
     {"avg_reader_cost", "reader_cost"},
     {"avg_batch_cost", "batch_cost"},
     {"max_mem_allocated", "max_mem_reserved"},
     {"ips", "avg_ips"},
     1,
     0x1p20,
     true,
     paddle_rate},
    {"paddle",
     "paddle",
     {"batch_cost", "data_cost"},
     {"data_cost"},
     {"batch_cost"},
     {"max_mem_allocated", "max_mem_reserved"},
     {"ips"},
     1,
     0x1p20,
     true,
     paddle_rate},
    {"paddle",
     "paddle",
     {"batch_cost", "ips"},
     TV_NO_KEYS,
     {"avg_batch_cost", "batch_cost"},
     {"max_mem_allocated", "max_mem_reserved"},
     {"ips"},
     1,
     0x1p20,
     true,
     paddle_rate},
    {"paddlenlp",
     "paddle",
     {"interval_runtime", "interval_steps_per_second"},
     TV_NO_KEYS,
     TV_NO_KEYS,
     {"current_memory_allocated"},
     {"interval_samples_per_second"},
     1,
     0x1p30,
     false,
     per_second},
    {"detectron2",
     "pytorch",
     {"data_time: ", "max_mem: "},
     {"data_time"},
     {"time"},
     {"max_mem"},
     TV_NO_KEYS,
     1,
     0x1p20,
     true,
     where},
    {"mmengine",
     "pytorch",
     {"data_time", "time", "eta"},
     {"data_time"},
     {"time"},
     {"memory"},
     TV_NO_KEYS,
     1,
     0x1p20,
     true,
     where},
    {"mmengine",
     "pytorch",
     {"\"data_time\"", "\"time\""},
     {"data_time"},
     {"time"},
     {"memory"},
     TV_NO_KEYS,
     1,
     0x1p20,
     true,
     where},
    {"timm",
     "pytorch",
     {"Train: ", "Time: ", "Data: "},
     {"Data"},
     {"Time"},
     TV_NO_KEYS,
     TV_NO_KEYS,
     1,
     1,
     true,
     timm_rate},
    {"open-clip",
     "pytorch",
     {"Data (t): ", "Batch (t): "},
     {"Data (t)"},
     {"Batch (t)"},
     TV_NO_KEYS,
     TV_NO_KEYS,
     1,
     1,
     true,
     clip_rate},
    {"torchvision",
     "pytorch",
     {"time: ", "data: ", "eta: "},
     {"data"},
     {"time"},
     {"max mem"},
     TV_NO_KEYS,
     1,
     0x1p20,
     true,
     where},
    {"torch-example",
     "pytorch",
     {"Epoch: [", "Time", "Data"},
     {"Data"},
     {"Time"},
     TV_NO_KEYS,
     {"Speed"},
     1,
     1,
     true,
     where},
    {"torch-example",
     "pytorch",
     {"batch_time", "data_time"},
     {"data_time"},
     {"batch_time"},
     {"memory", "mem"},
     TV_NO_KEYS,
     1,
     0x1p20,
     true,
     where},
    {"swin",
     "pytorch",
     {"Train: [", "time ", "mem "},
     {"data"},
     {"time"},
     {"mem"},
     TV_NO_KEYS,
     1,
     0x1p20,
     true,
     where},
    {"deepspeed",
     "pytorch",
     {"SamplesPerSec="},
     TV_NO_KEYS,
     TV_NO_KEYS,
     {"MemAllocated"},
     {"CurrSamplesPerSec", "RunningAvgSamplesPerSec", "SamplesPerSec"},
     1,
     0x1p30,
     false,
     where},
    {"deepspeed",
     "pytorch",
     {"time (ms) | fwd: ", "| bwd: "},
     TV_NO_KEYS,
     TV_NO_KEYS,
     TV_NO_KEYS,
     TV_NO_KEYS,
     1e-3,
     1,
     false,
     deepspeed_parts},
    {"megatron",
     "pytorch",
     {"elapsed time per iteration (ms)"},
     TV_NO_KEYS,
     {"elapsed time per iteration (ms)"},
     TV_NO_KEYS,
     TV_NO_KEYS,
     1e-3,
     1,
     false,
     megatron_rate},
    {"megatron",
     "pytorch",
     {"elapsed_time_per_iteration_ms"},
     TV_NO_KEYS,
     {"elapsed_time_per_iteration_ms"},
     TV_NO_KEYS,
     TV_NO_KEYS,
     1e-3,
     1,
     false,
     megatron_rate},
    {"megatron",
     "pytorch",
     {"time (ms) | ", "batch-generator: "},
     {"batch-generator"},
     TV_NO_KEYS,
     TV_NO_KEYS,
     TV_NO_KEYS,
     1e-3,
     1,
     false,
     NULL},
    {"megatron",
     "pytorch",
     {"memory (MB) | allocated: "},
     TV_NO_KEYS,
     TV_NO_KEYS,
     {"allocated"},
     TV_NO_KEYS,
     1,
     0x1p20,
     false,
     NULL},
    {"transformers",
     "pytorch",
     {"train_samples_per_second"},
     TV_NO_KEYS,
     TV_NO_KEYS,
     TV_NO_KEYS,
     {"train_samples_per_second"},
     1,
     1,
     false,
     per_second},
    {"transformers",
     "pytorch",
     {"'memory(GiB)'", "'train_speed("},
     TV_NO_KEYS,
     {"train_speed(s/it)"},
     {"memory(GiB)"},
     TV_NO_KEYS,
     1,
     0x1p30,
     true,
     per_second},
    {"fairseq",
     "pytorch",
     {"wps", "ups", "loss"},
     TV_NO_KEYS,
     TV_NO_KEYS,
     TV_NO_KEYS,
     TV_NO_KEYS,
     1,
     1,
     false,
     per_second},
    {"torchtitan",
     "pytorch",
     {"step: ", "memory: ", "ps: ", "loss: "},
     {"data_loading(s)"},
     TV_NO_KEYS,
     {"memory"},
     TV_NO_KEYS,
     1,
     0x1p30,
     true,
     token_rate},
    {"nanogpt",
     "pytorch",
     {"iter ", "loss ", "time ", "ms"},
     TV_NO_KEYS,
     {"time"},
     TV_NO_KEYS,
     TV_NO_KEYS,
     1,
     1,
     false,
     where},
};

static bool tells(const dialect *d, tv_str line)
{
    for (size_t i = 0; i < MOST_KEYS && d->marks[i]; i++)
        if (!tv_holds(line, d->marks[i]))
            return false;
    return true;
}

static bool is_validation(tv_str line)
{
    static const char *const marks[] = {"Epoch(val)",
                                        "Epoch(test)",
                                        "\"mode\": \"val\"",
                                        "Test: ",
                                        "[Eval]",
                                        "[EVAL]",
                                        "[Eval][",
                                        "eval_samples_per_second",
                                        "[TEST]",
                                        "Val: ",
                                        "test_samples_per_second"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (tv_holds(line, marks[i]))
            return true;
    return false;
}

static const dialect *take_moment(tv_str line, tv_moment *m)
{
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
        const dialect *d = &dialects[i];
        if (!tells(d, line) || is_validation(line))
            continue;
        m->data_s = time_of(line, d->data, d->time_unit_s);
        m->step_s = time_of(line, d->time, d->time_unit_s);
        m->mem_bytes = bytes_of(line, d->memory, d->mem_unit_bytes);
        m->samples_per_s = number_of(line, d->samples);
        if (d->more)
            d->more(line, m);
        if (tv_moment_any(m))
            return d;
    }
    return NULL;
}

/* ---- progress bars ---- */

/* "... 37.2it/s, loss=1.2]", "1.20s/it]": seconds of one iteration. */
static double bar_step_s(tv_str line)
{
    static const struct {
        const char *unit;
        bool inverse;
    } units[] = {{"it/s", true},     {"s/it", false},  {"batch/s", true},
                 {"s/batch", false}, {"step/s", true}, {"s/step", false}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        tv_str rest;
        if (!tv_past(line, units[i].unit, &rest))
            continue;
        const char *end = rest.p - strlen(units[i].unit);
        const char *from = end;
        while (from > line.p && (from[-1] == '.' || (from[-1] >= '0' && from[-1] <= '9')))
            from--;
        const tv_double_read r = tv_str_double(tv_str_span(from, end));
        if (r.ok && r.v > 0)
            return units[i].inverse ? 1 / r.v : r.v;
    }
    return (double)NAN;
}

/* Ultralytics: "  3/300   3.52G   0.0423   0.0512 ...  640: 100%|####| 925/925
 * [02:10<00:00, 7.1it/s]" */
static bool take_yolo(tv_str line, tv_moment *m)
{
    tv_str words[4];
    tv_str s = line;
    if (tv_words(line, words, 4) < 3)
        return false;
    const tv_double_read epoch = tv_take_number(&s);
    if (!epoch.ok || !s.n || *s.p != '/' || !tv_str_ends(words[1], TV_S("G")))
        return false;
    tv_str mem = tv_str_take(words[1], words[1].n - 1);
    const tv_double_read r = tv_take_number(&mem);
    if (!r.ok || mem.n)
        return false;
    m->epoch = epoch.v;
    m->mem_bytes = r.v * 1e9; /* as Ultralytics counts its G */
    m->step_s = bar_step_s(line);
    return true;
}

static bool take_bar(tv_str line, tv_moment *m)
{
    tv_str rest;
    if (!past_key(line, "Epoch", &rest) || !tv_holds(line, "it") || !tv_holds(line, "|"))
        return false;
    m->epoch = fraction_head(rest);
    m->step_s = bar_step_s(line);
    return !isnan(m->step_s);
}

/* Keras: "1875/1875 [====] - 3s 2ms/step - loss: 0.3"; Paddle's hapi: "step 10/60 - ... -
 * 27ms/step" */
static bool take_keras(tv_str line, tv_moment *m)
{
    static const char *const ends[] = {"us/step", "ms/step", "s/step"};
    static const double units[] = {1e-6, 1e-3, 1};
    for (size_t i = 0; i < 3; i++) {
        tv_str rest;
        if (!tv_past(line, ends[i], &rest))
            continue;
        const char *end = rest.p - strlen(ends[i]);
        const char *from = end;
        while (from > line.p && (from[-1] == '.' || (from[-1] >= '0' && from[-1] <= '9')))
            from--;
        const tv_double_read r = tv_str_double(tv_str_span(from, end));
        if (r.ok)
            m->step_s = r.v * units[i];
        return r.ok;
    }
    return false;
}

typedef struct bar_row {
    const char *name;
    const char *framework;
    const char *mark;
    bool (*take)(tv_str line, tv_moment *m);
} bar_row;

static const bar_row bars[] = {
    {"ultralytics", "pytorch", "G ", take_yolo},
    {"progress-bar", "pytorch", "Epoch", take_bar},
    {"keras", "tensorflow", "s/step", take_keras},
};

/* ---- how many devices ---- */

static double gpus_of(tv_str line)
{
    static const keys words = {"World size", "world size", "GPU number", "world_size"};
    tv_str rest;
    const double v = number_of(line, words);
    if (v >= 1 && v <= 100000)
        return v;
    /* timm: "Process 0, total 8, device cuda:0" */
    if (tv_holds(line, "Process ") && tv_past(line, ", total ", &rest)) {
        const tv_double_read r = tv_take_number(&rest);
        if (r.ok && r.v >= 1)
            return r.v;
    }
    return (double)NAN;
}

/* ---- a sheet ---- */

enum { MOST_RUNS = 4 };

typedef struct reading {
    tv_reading *r;
    tv_train_run runs[MOST_RUNS]; /* one for each dialect that the sheet mixes */
    size_t n;
    double gpus;
} reading;

static void take(reading *g, const char *dialect_name, const char *framework, bool peak,
                 const tv_moment *m)
{
    tv_train_run *run = NULL;
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->runs[i].dialect, dialect_name) == 0)
            run = &g->runs[i];
    if (run && tv_train_restarts(run, m)) {
        tv_train_end(g->r, run);
        memset(run, 0, sizeof *run);
        run->gpus = g->gpus;
    }
    if (!run && g->n == MOST_RUNS)
        return;
    if (!run) {
        run = &g->runs[g->n++];
        run->gpus = g->gpus;
    }
    run->dialect = dialect_name;
    run->framework = framework;
    if (!isnan(m->mem_bytes))
        run->mem_is_peak = peak;
    tv_train_add(run, m);
}

static void take_line(reading *g, tv_str line, size_t i)
{
    tv_moment m = tv_moment_none(i);
    const dialect *d = take_moment(line, &m);
    if (d) {
        take(g, d->name, d->framework, d->mem_is_peak, &m);
        return;
    }
    for (size_t k = 0; k < sizeof bars / sizeof *bars; k++) {
        m = tv_moment_none(i);
        if (tv_holds(line, bars[k].mark) && !is_validation(line) && bars[k].take(line, &m) &&
            tv_moment_any(&m)) {
            take(g, bars[k].name, bars[k].framework, false, &m);
            return;
        }
    }
    const double gpus = gpus_of(line);
    if (isnan(gpus))
        return;
    g->gpus = gpus;
    for (size_t k = 0; k < g->n; k++)
        if (isnan(g->runs[k].gpus))
            g->runs[k].gpus = gpus;
}

/* Some loggers forget the line end: "... ips: 18.3 ins/s2022-07-27 17:44:38 - INFO - epoch: 0". */
static void take_glued(reading *g, tv_str line, size_t i)
{
    for (;;) {
        tv_str rest, next;
        if (!tv_past(line, "ips: ", &rest) || !tv_past(rest, "batch_cost", &next)) {
            take_line(g, line, i);
            return;
        }
        take_line(g, tv_str_take(line, line.n - rest.n + (rest.n < 24 ? rest.n : 24)), i);
        line = rest;
    }
}

static void read(tv_reading *r)
{
    reading g = {.r = r, .gpus = (double)NAN};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        if (line.n < 8 || line.n > 16384)
            continue;
        if (tv_holds(line, "batch_cost"))
            take_glued(&g, line, i);
        else
            take_line(&g, line, i);
    }
    for (size_t i = 0; i < g.n; i++)
        tv_train_end(r, &g.runs[i]);
}

static const char *const needles[] = {"batch_cost",
                                      "data_time",
                                      "interval_steps_per_second",
                                      "Data: ",
                                      "Data (t): ",
                                      " data: ",
                                      "Epoch: [",
                                      "SamplesPerSec=",
                                      "time (ms) | fwd",
                                      "elapsed time per iteration (ms)",
                                      "elapsed_time_per_iteration_ms",
                                      "memory (MB) | allocated: ",
                                      "train_samples_per_second",
                                      "'memory(GiB)'",
                                      "Train: [",
                                      "GPU_mem",
                                      "gpu_mem",
                                      "s/step",
                                      "it/s",
                                      "s/it",
                                      "wps=",
                                      "\"wps\"",
                                      " mfu: ",
                                      ", mfu ",
                                      NULL};

extern const tv_log_format tv_log_format_train_log;
const tv_log_format tv_log_format_train_log = {"train-log", needles, read};
