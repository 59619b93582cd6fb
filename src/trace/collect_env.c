/* Environment reports: collect_env of PyTorch and of the projects that took it over, and what
 * transformers, accelerate, mmcv, detectron2, Lightning and Paddle print about themselves. The
 * names differ, the facts do not. Some reports are typed by hand: colons may be missing. */
#include "env_words.h"

#include <string.h>

typedef enum env_field {
    ENV_TORCH,
    ENV_BUILD,
    ENV_ROCM_BUILD,
    ENV_AVAILABLE,
    ENV_RUNTIME,
    ENV_DRIVER,
    ENV_GPUS,
    ENV_CUDNN,
    ENV_OS,
    ENV_PYTHON,
    ENV_PADDLE,
    ENV_PADDLE_CUDA,
    ENV_CPUS,
    ENV_NUMA,
    ENV_CPU_MODEL,
    ENV_VLLM,
    ENV_TRANSFORMERS,
    ENV_TORCH_AND_GPU, /* "2.1.0+cu118 (True)" */
    ENV_NVCC,
    ENV_NCCL,
    ENV_FIELDS,
} env_field;

typedef struct env_phrase {
    const char *phrase;
    env_field field;
    bool bare; /* the colon may be missing: a table, or typed by hand */
} env_phrase;

/* The longer phrases first where one begins another. */
static const env_phrase phrases[] = {
    {"PyTorch version (GPU?)", ENV_TORCH_AND_GPU, false},
    {"PyTorch version (accelerator?)", ENV_TORCH_AND_GPU, false},
    {"PyTorch version (CUDA available)", ENV_TORCH_AND_GPU, false},
    {"PyTorch version", ENV_TORCH, true},
    {"Torch version", ENV_TORCH, false},
    {"PyTorch", ENV_TORCH, true},
    {"CUDA used to build PyTorch", ENV_BUILD, true},
    {"PyTorch CUDA version", ENV_BUILD, false},
    {"ROCM used to build PyTorch", ENV_ROCM_BUILD, true},
    {"Is CUDA available", ENV_AVAILABLE, true},
    {"CUDA available", ENV_AVAILABLE, true},
    {"GPU available", ENV_AVAILABLE, true},
    {"CUDA runtime version", ENV_RUNTIME, true},
    {"Nvidia driver version", ENV_DRIVER, true},
    {"Driver version", ENV_DRIVER, true},
    {"GPU models and configuration", ENV_GPUS, true},
    {"Nvidia driver List", ENV_GPUS, false},
    {"GPU type", ENV_GPUS, false},
    {"Using GPU type", ENV_GPUS, false},
    {"Accelerator", ENV_GPUS, false},
    {"cuDNN version", ENV_CUDNN, true},
    {"OS", ENV_OS, false},
    {"Python version", ENV_PYTHON, true},
    {"Paddle version", ENV_PADDLE, true},
    {"PaddlePaddle version", ENV_PADDLE, true},
    {"Paddle With CUDA", ENV_PADDLE_CUDA, true},
    {"CPU(s)", ENV_CPUS, false},
    {"NUMA node(s)", ENV_NUMA, false},
    {"Model name", ENV_CPU_MODEL, false},
    {"vLLM Version", ENV_VLLM, false},
    {"transformers version", ENV_TRANSFORMERS, false},
    {"`transformers` version", ENV_TRANSFORMERS, false},
    {"transformers` version", ENV_TRANSFORMERS, false},
    {"NVCC", ENV_NVCC, true},
    {"CUDA version", ENV_RUNTIME, false},
};

enum { MOST_GPUS = 64 };

typedef struct env_value {
    bool seen;
    size_t line;
    tv_str s;
} env_value;

typedef struct env_block {
    env_value v[ENV_FIELDS];
    tv_str gpus[MOST_GPUS];
    size_t n_gpus;
    size_t n;     /* fields that are seen */
    size_t begin; /* the first line */
    size_t last;
    bool in_gpus; /* the lines after "GPU models and configuration" */
    bool wide;    /* colons of the wide form, as Chinese input methods type them */
} env_block;

/* ---- writing ---- */

static void put_text(tv_reading *r, tv_note *facts, const char *key, const env_value *v, tv_str s)
{
    if (!v->seen)
        return;
    tv_note *note =
        tv_env_is_unknown(s) ? tv_note_null(r->a, facts, key) : tv_note_str(r->a, facts, key, s);
    (void)tv_at(r, note, v->line);
}

static tv_str first_word(tv_str s)
{
    const tv_str version = tv_env_version(s);
    return version.n ? version : s;
}

static void put_build(tv_reading *r, tv_note *facts, const env_block *b)
{
    const env_value *said = &b->v[ENV_BUILD];
    const env_value *torch = &b->v[ENV_TORCH];
    tv_str build = said->seen ? first_word(said->s) : (tv_str){0};
    if (!said->seen)
        build = tv_env_cuda_of(r->a, torch->s);
    const bool cpu = tv_env_is_cpu_build(torch->s);
    if (!said->seen && !build.n && !cpu)
        return;
    const env_value *at = said->seen ? said : torch;
    tv_note *note = tv_env_is_unknown(build) ? tv_note_null(r->a, facts, "cuda_build")
                                             : tv_note_str(r->a, facts, "cuda_build", build);
    (void)tv_at(r, note, at->line);
}

static void put_truth(tv_reading *r, tv_note *facts, const char *key, const env_value *v)
{
    const tv_env_yes truth = tv_env_truth(v->s);
    if (v->seen && truth.said)
        (void)tv_at(r, tv_note_bool(r->a, facts, key, truth.yes), v->line);
    else if (v->seen)
        (void)tv_at(r, tv_note_null(r->a, facts, key), v->line);
}

static void put_number(tv_reading *r, tv_note *facts, const char *key, const env_value *v)
{
    tv_str s = v->s;
    const tv_double_read n = tv_take_number(&s);
    if (v->seen && n.ok)
        (void)tv_at(r, tv_note_num(r->a, facts, key, n.v), v->line);
}

static void put_gpus(tv_reading *r, tv_note *facts, const env_block *b)
{
    if (!b->v[ENV_GPUS].seen && !b->n_gpus)
        return;
    tv_note *note =
        b->n_gpus ? tv_note_list(r->a, facts, "gpus") : tv_note_null(r->a, facts, "gpus");
    (void)tv_at(r, note, b->v[ENV_GPUS].seen ? b->v[ENV_GPUS].line : b->begin);
    for (size_t i = 0; i < b->n_gpus; i++)
        (void)tv_note_str(r->a, note, NULL, b->gpus[i]);
}

static bool unknown_field(const env_block *b, env_field field)
{
    return b->v[field].seen && tv_env_is_unknown(b->v[field].s);
}

/* A build that names no CUDA, and no ROCm either, is one for the CPU. */
static bool is_cpu_only(const env_block *b, const tv_note *facts)
{
    const tv_note *build = tv_noted(facts, "cuda_build");
    const bool torch = b->v[ENV_TORCH].seen && !unknown_field(b, ENV_TORCH);
    const bool rocm = b->v[ENV_ROCM_BUILD].seen && !unknown_field(b, ENV_ROCM_BUILD);
    const bool hip = tv_holds(b->v[ENV_TORCH].s, "rocm");
    return torch && build && build->type == TV_NOTE_NULL && !rocm && !hip &&
           !tv_noted_bool(facts, "cuda_available", false);
}

static void put_versions(tv_reading *r, tv_note *facts, const env_block *b)
{
    static const struct {
        const char *key;
        env_field field;
    } rows[] = {
        {"runtime", ENV_RUNTIME},       {"driver", ENV_DRIVER}, {"paddle", ENV_PADDLE},
        {"rocm_build", ENV_ROCM_BUILD}, {"vllm", ENV_VLLM},     {"transformers", ENV_TRANSFORMERS},
        {"python", ENV_PYTHON},         {"nccl", ENV_NCCL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const env_value *v = &b->v[rows[i].field];
        put_text(r, facts, rows[i].key, v, tv_env_is_unknown(v->s) ? v->s : first_word(v->s));
    }
    const env_value *nvcc = &b->v[ENV_NVCC];
    tv_str release = tv_enclosed(nvcc->s, "release ", ",");
    if (nvcc->seen && release.n && !b->v[ENV_RUNTIME].seen)
        put_text(r, facts, "runtime", nvcc, release);
    put_text(r, facts, "cudnn", &b->v[ENV_CUDNN], b->v[ENV_CUDNN].s);
    put_text(r, facts, "os", &b->v[ENV_OS], b->v[ENV_OS].s);
    put_text(r, facts, "cpu_model", &b->v[ENV_CPU_MODEL], b->v[ENV_CPU_MODEL].s);
}

static void flush(tv_reading *r, env_block *b)
{
    const bool framework = b->v[ENV_TORCH].seen || b->v[ENV_PADDLE].seen || b->v[ENV_BUILD].seen ||
                           b->v[ENV_AVAILABLE].seen;
    if (b->n >= 2 && framework) {
        tv_sighting *s = tv_see(r, "collect_env", b->begin);
        tv_note *facts = &s->facts;
        put_text(r, facts, "torch", &b->v[ENV_TORCH], first_word(b->v[ENV_TORCH].s));
        put_build(r, facts, b);
        put_truth(r, facts, "cuda_available", &b->v[ENV_AVAILABLE]);
        put_truth(r, facts, "paddle_with_cuda", &b->v[ENV_PADDLE_CUDA]);
        put_versions(r, facts, b);
        put_gpus(r, facts, b);
        put_number(r, facts, "cpus", &b->v[ENV_CPUS]);
        put_number(r, facts, "numa_nodes", &b->v[ENV_NUMA]);
        (void)tv_note_bool(r->a, facts, "fullwidth_colon", b->wide);
        if (is_cpu_only(b, facts))
            (void)tv_note_str(r->a, facts, "cause", TV_S("cpu-only build"));
    }
    *b = (env_block){0};
}

/* ---- reading ---- */

static void take(env_block *b, env_field field, size_t i, tv_str s)
{
    if (b->v[field].seen)
        return;
    if (!b->n)
        b->begin = i;
    b->v[field] = (env_value){true, i, s};
    b->n++;
    b->last = i;
}

static void add_gpu(env_block *b, tv_str name)
{
    tv_str rest;
    if (tv_past(name, " (UUID", &rest))
        name = tv_str_take(name, (size_t)(rest.p - name.p) - 6);
    if (tv_past(name, " (arch=", &rest))
        name = tv_str_take(name, (size_t)(rest.p - name.p) - 7);
    name = tv_str_trim(name);
    if (name.n && !tv_env_is_unknown(name) && b->n_gpus < MOST_GPUS)
        b->gpus[b->n_gpus++] = name;
}

/* "GPU 0: Tesla T4", "GPU 0,1,2: NVIDIA A100", "GPU 0   Tesla T4 (arch=7.5)" */
static bool gpu_line(tv_str s, size_t *count, tv_str *name)
{
    if (!tv_str_starts(s, TV_S("GPU ")))
        return false;
    tv_str rest = tv_str_drop(s, 4);
    for (*count = 0; tv_take_u64(&rest).ok; rest = tv_str_drop(rest, 1)) {
        ++*count;
        if (!tv_str_starts(rest, TV_S(",")))
            break;
    }
    rest = tv_str_trim(rest);
    if (!*count || !rest.n)
        return false;
    *name = *rest.p == ':' ? tv_str_trim(tv_str_drop(rest, 1)) : rest;
    return name->n > 0;
}

static void take_gpus(env_block *b, size_t i, tv_str value)
{
    size_t count;
    tv_str name;
    take(b, ENV_GPUS, i, value);
    b->in_gpus = true;
    b->n_gpus = 0;
    if (gpu_line(value, &count, &name)) {
        while (count--)
            add_gpu(b, name);
    } else {
        /* transformers and diffusers name the first card, with its memory behind a comma */
        add_gpu(b, tv_str_cut(value, ',').head);
    }
}

/* "2.1.0+cu118 (True)", "2.7.0+cu126 (CUDA)", "not installed (NA)" */
static void take_torch_and_gpu(env_block *b, size_t i, tv_str value)
{
    const tv_cut cut = tv_str_cut(value, '(');
    take(b, ENV_TORCH, i, tv_str_trim(cut.head));
    const tv_cut inner = tv_str_cut(cut.tail, ')');
    if (cut.found && tv_env_truth(inner.head).said)
        take(b, ENV_AVAILABLE, i, tv_str_trim(inner.head));
}

static bool is_version_like(tv_str value)
{
    return tv_env_version(value).n || tv_env_is_unknown(value);
}

static bool takes_value(const env_phrase *row, tv_str value, bool colon)
{
    switch (row->field) {
    case ENV_TORCH:
    case ENV_BUILD:
    case ENV_DRIVER:
    case ENV_RUNTIME:
    case ENV_PADDLE:
        return is_version_like(value) && (colon || (row->bare && value.n));
    case ENV_AVAILABLE:
    case ENV_PADDLE_CUDA:
        return tv_env_truth(value).said || tv_env_is_unknown(value);
    case ENV_GPUS:
        return colon || !value.n;
    case ENV_ROCM_BUILD:
    case ENV_CUDNN:
    case ENV_OS:
    case ENV_PYTHON:
    case ENV_CPUS:
    case ENV_NUMA:
    case ENV_CPU_MODEL:
    case ENV_VLLM:
    case ENV_TRANSFORMERS:
    case ENV_TORCH_AND_GPU:
    case ENV_NVCC:
    case ENV_NCCL:
    case ENV_FIELDS:
        return colon || row->bare;
    }
    return false;
}

/* A key that can only come once: its return begins the next report. */
static bool begins_next(const env_block *b, env_field field)
{
    return b->v[field].seen && (field == ENV_TORCH || field == ENV_BUILD ||
                                field == ENV_AVAILABLE || field == ENV_PADDLE);
}

static void read_entry(tv_reading *r, env_block *b, size_t i, const env_phrase *row, tv_str value)
{
    const env_field shown = row->field == ENV_TORCH_AND_GPU ? ENV_TORCH : row->field;
    if (begins_next(b, shown))
        flush(r, b);
    b->in_gpus = false;
    if (row->field == ENV_GPUS)
        take_gpus(b, i, value);
    else if (row->field == ENV_TORCH_AND_GPU)
        take_torch_and_gpu(b, i, value);
    else
        take(b, row->field, i, value);
}

static const env_phrase *phrase_of(tv_str s, tv_str *value)
{
    for (size_t k = 0; k < sizeof phrases / sizeof *phrases; k++) {
        bool colon = false;
        if (tv_env_entry(s, phrases[k].phrase, value, &colon) &&
            takes_value(&phrases[k], *value, colon))
            return &phrases[k];
    }
    return NULL;
}

/* Reports reach two hundred lines: libraries and processor flags lie between the keys. */
enum { FAR_LINES = 250 };

static bool is_wide(const tv_line *line)
{
    return tv_str_has(line->raw, TV_S("\xef\xbc\x9a"));
}

static void read_line(tv_reading *r, env_block *b, size_t i)
{
    const tv_str s = tv_env_bare(r->sheet->v[i].s);
    size_t count;
    tv_str name, value;
    if (b->n && i - b->last > FAR_LINES)
        flush(r, b);
    if (gpu_line(s, &count, &name)) {
        if (b->n && !tv_str_starts(name, TV_S("GPU ")) && (b->in_gpus || !b->v[ENV_GPUS].seen))
            while (count--)
                add_gpu(b, name);
        b->wide |= b->n && is_wide(&r->sheet->v[i]);
        return;
    }
    const env_phrase *row = phrase_of(s, &value);
    if (row)
        read_entry(r, b, i, row, value);
    else if (s.n)
        b->in_gpus = false;
    b->wide |= row && is_wide(&r->sheet->v[i]);
}

static void read(tv_reading *r)
{
    env_block *b = tv_new(r->a, env_block, 1);
    for (size_t i = 0; i < r->sheet->n; i++)
        read_line(r, b, i);
    flush(r, b);
}

static const char *const needles[] = {"CUDA used to build PyTorch",
                                      "used to build PyTorch",
                                      "Is CUDA available",
                                      "PyTorch version (",
                                      "CUDA available",
                                      "PyTorch debug build",
                                      "PyTorch compiling details",
                                      "Collecting environment information",
                                      "Paddle With CUDA",
                                      "Paddle version",
                                      "GPU models and configuration",
                                      NULL};

extern const tv_log_format tv_log_format_collect_env;
const tv_log_format tv_log_format_collect_env = {"collect_env", needles, read};
