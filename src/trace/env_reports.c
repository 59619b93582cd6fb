/* Short reports of environments: nvcc --version, what Paddle and YOLO print when they start,
 * Lightning's list, and answers of Python to one question at a time. Same facts as collect_env. */
#include "env_words.h"

#include <string.h>

typedef struct report {
    tv_reading *r;
    tv_sighting *s; /* of answers that belong together; NULL: none yet */
    size_t last;
} report;

/* Answers further apart than this are of another session. */
enum { NEAR_LINES = 40 };

static tv_note *facts_at(report *p, size_t i)
{
    if (!p->s || i - p->last > NEAR_LINES)
        p->s = tv_see(p->r, "collect_env", i);
    p->last = i;
    return &p->s->facts;
}

static void put(const report *p, tv_note *facts, const char *key, tv_str value, size_t i)
{
    tv_note *note = tv_env_is_unknown(value) ? tv_note_null(p->r->a, facts, key)
                                             : tv_note_str(p->r->a, facts, key, value);
    (void)tv_at(p->r, note, i);
}

static void put_torch(const report *p, tv_note *facts, tv_str version, size_t i)
{
    version = tv_env_version(version);
    if (!version.n)
        return;
    put(p, facts, "torch", version, i);
    const tv_str build = tv_env_cuda_of(p->r->a, version);
    if (build.n || tv_env_is_cpu_build(version))
        put(p, facts, "cuda_build", build, i);
    if (tv_env_is_cpu_build(version))
        (void)tv_note_str(p->r->a, facts, "cause", TV_S("cpu-only build"));
}

/* ---- lines that say all by themselves ---- */

/* "Cuda compilation tools, release 11.7, V11.7.64" */
static void read_nvcc(report *p, size_t i, tv_str s)
{
    tv_str rest;
    if (!tv_str_starts(s, TV_S("Cuda compilation tools, release ")))
        return;
    tv_str version = tv_enclosed(s, "release ", ",");
    if (tv_past(s, ", V", &rest) && tv_env_version(rest).n)
        version = tv_env_version(rest);
    put(p, &tv_see(p->r, "collect_env", i)->facts, "runtime", version, i);
}

/* "Please NOTE: device: 0, GPU Compute Capability: 8.6, Driver API Version: 11.6, Runtime API
 * Version: 11.2" */
static void read_paddle(report *p, size_t i, tv_str s)
{
    tv_str rest;
    if (!tv_past(s, "GPU Compute Capability: ", &rest) && !tv_past(s, "CUDA Capability: ", &rest))
        return;
    if (p->s && tv_noted(&p->s->facts, "torch"))
        p->s = NULL;
    tv_note *facts = facts_at(p, i);
    (void)tv_note_str(p->r->a, facts, "framework", TV_S("paddle"));
    put(p, facts, "capability", tv_env_version(tv_str_cut(rest, ',').head), i);
    if (tv_past(s, "Driver API Version: ", &rest))
        put(p, facts, "driver_max_cuda", tv_env_version(rest), i);
    if (tv_past(s, "Runtime API Version: ", &rest))
        put(p, facts, "cuda_build", tv_env_version(rest), i);
    if (i + 1 < p->r->sheet->n && tv_past(p->r->sheet->v[i + 1].s, "cuDNN Version: ", &rest))
        put(p, facts, "cudnn", tv_env_version(rest), i + 1);
}

/* "PaddlePaddle works well on 2 GPUs." */
static void read_check(report *p, size_t i, tv_str s)
{
    const tv_double_read n = tv_number_past(s, "PaddlePaddle works well on ");
    if (!n.ok)
        return;
    tv_note *facts = facts_at(p, i);
    const bool gpu = tv_holds(s, "GPU");
    (void)tv_note_str(p->r->a, facts, "framework", TV_S("paddle"));
    (void)tv_at(p->r, tv_note_bool(p->r->a, facts, "cuda_available", gpu), i);
    if (gpu)
        (void)tv_note_num(p->r->a, facts, "gpu_count", n.v);
}

/* "... Python-3.10.12 torch-2.2.1+cu121 CUDA:0 (Tesla T4, 15102MiB)" */
static void read_yolo(report *p, size_t i, tv_str s)
{
    tv_str rest;
    if (!tv_holds(s, "Python-") || !tv_past(s, " torch-", &rest))
        return;
    tv_note *facts = &tv_see(p->r, "collect_env", i)->facts;
    put_torch(p, facts, rest, i);
    const bool cuda = tv_holds(rest, " CUDA:");
    (void)tv_at(p->r, tv_note_bool(p->r->a, facts, "cuda_available", cuda), i);
    const tv_str name = tv_str_trim(tv_str_cut(tv_enclosed(rest, "(", ")"), ',').head);
    if (cuda && name.n)
        (void)tv_note_str(p->r->a, tv_note_list(p->r->a, facts, "gpus"), NULL, name);
}

/* ---- Lightning's list ---- */

static tv_str entry_of(tv_str s, const char *key)
{
    tv_str value = {0};
    bool colon = false;
    return tv_env_entry(tv_env_bare(s), key, &value, &colon) && colon ? value : (tv_str){0};
}

/* "* CUDA:" with "- GPU:", names, "- available:", "- version:" below it. */
static void read_lightning(report *p, size_t i)
{
    const tv_sheet *sheet = p->r->sheet;
    tv_note *facts = &tv_see(p->r, "collect_env", i)->facts;
    tv_note *gpus = tv_note_list(p->r->a, facts, "gpus");
    bool names = false;
    for (size_t k = i + 1; k < sheet->n && k < i + 40; k++) {
        const tv_str s = sheet->v[k].s, bare = tv_env_bare(s);
        const tv_str available = entry_of(s, "available"), version = entry_of(s, "version");
        if (tv_str_is(bare, "GPU:"))
            names = true;
        else if (available.n)
            (void)tv_at(p->r,
                        tv_note_bool(p->r->a, facts, "cuda_available", tv_env_truth(available).yes),
                        k);
        else if (version.n && !tv_noted(facts, "cuda_build"))
            put(p, facts, "cuda_build", version, k);
        else if (entry_of(s, "torch").n)
            put_torch(p, facts, entry_of(s, "torch"), k);
        else if (names && bare.n && !tv_holds(bare, ":"))
            (void)tv_note_str(p->r->a, gpus, NULL, bare);
        names = names && !available.n;
    }
}

/* ---- one question, one answer ---- */

typedef struct question {
    const char *code;
    const char *key;
} question;

static const question questions[] = {
    {"torch.__version__", "torch"},
    {"torch.version.cuda", "cuda_build"},
    {"torch.cuda.is_available()", "cuda_available"},
    {"torch.cuda.device_count()", "gpu_count"},
    {"torch.cuda.get_device_name", "gpus"},
    {"torch.cuda.get_arch_list()", "wheel_arches"},
    {"torch.cuda.get_device_capability", "capability"},
    {"torch.backends.cudnn.version()", "cudnn"},
    {"torch.__file__", "torch_file"},
    {"sys.executable", "python_path"},
    {"paddle.__version__", "paddle"},
    {"paddle.is_compiled_with_cuda()", "paddle_with_cuda"},
    {"paddle.device.is_compiled_with_cuda()", "paddle_with_cuda"},
    {"paddle.version.cuda()", "cuda_build"},
};

static const question *question_in(tv_str code)
{
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (tv_holds(code, questions[i].code))
            return &questions[i];
    return NULL;
}

/* "['sm_50', 'sm_60']" */
static void put_arches(const report *p, tv_note *facts, tv_str s, size_t i)
{
    tv_note *list = tv_at(p->r, tv_note_list(p->r->a, facts, "wheel_arches"), i);
    tv_str rest = s;
    while (tv_past(rest, "'", &rest)) {
        tv_str next = rest;
        const tv_str word = tv_take_word(&next);
        if (word.n < 16 &&
            (tv_str_starts(word, TV_S("sm_")) || tv_str_starts(word, TV_S("compute_"))))
            (void)tv_note_str(p->r->a, list, NULL, word);
    }
}

/* "(12, 0)" -> "12.0" */
static void put_capability(const report *p, tv_note *facts, tv_str s, size_t i)
{
    const double major = tv_number_past(s, "(").v, minor = tv_number_past(s, ", ").v;
    if (!(major >= 1 && major < 100 && minor >= 0 && minor < 10))
        return;
    tv_buf b = tv_buf_in(p->r->a);
    tv_put_u64(&b, (uint64_t)major);
    tv_putc(&b, '.');
    tv_put_u64(&b, (uint64_t)minor);
    put(p, facts, "capability", tv_buf_str(&b), i);
}

static void answer(report *p, const question *ask, tv_str value, size_t i)
{
    const tv_str plain = tv_unquoted(value);
    const tv_env_yes truth = tv_env_truth(plain);
    if (!plain.n || tv_str_starts(plain, TV_S(">>>")) || tv_str_starts(plain, TV_S("Traceback")))
        return;
    tv_note *facts = facts_at(p, i);
    if (strcmp(ask->key, "torch") == 0) {
        put_torch(p, facts, plain, i);
    } else if (strcmp(ask->key, "cuda_available") == 0 ||
               strcmp(ask->key, "paddle_with_cuda") == 0) {
        if (truth.said)
            (void)tv_at(p->r, tv_note_bool(p->r->a, facts, ask->key, truth.yes), i);
    } else if (strcmp(ask->key, "gpu_count") == 0) {
        tv_str number = plain;
        const tv_double_read n = tv_take_number(&number);
        if (n.ok)
            (void)tv_at(p->r, tv_note_num(p->r->a, facts, ask->key, n.v), i);
    } else if (strcmp(ask->key, "gpus") == 0) {
        (void)tv_note_str(p->r->a, tv_note_list(p->r->a, facts, "gpus"), NULL, plain);
    } else if (strcmp(ask->key, "wheel_arches") == 0) {
        put_arches(p, facts, value, i);
    } else if (strcmp(ask->key, "capability") == 0) {
        put_capability(p, facts, value, i);
    } else {
        put(p, facts, ask->key, plain, i);
    }
}

/* print(a, b, c): as many words on the next line; a name of a card takes what is left. */
static void answers(report *p, tv_str code, size_t i)
{
    const tv_sheet *sheet = p->r->sheet;
    size_t at = i;
    for (tv_str rest = code; tv_past(rest, "print(", &rest);) {
        if (++at >= sheet->n)
            return;
        tv_str asked[8] = {{0}}, words[16] = {{0}};
        size_t n = tv_fields(tv_str_cut(rest, ';').head, ',', asked, 8);
        const tv_str line = tv_str_trim(sheet->v[at].s);
        const size_t n_words = tv_words(line, words, 16);
        n = n < 8 ? n : 8;
        if (n == 1) {
            const question *ask = question_in(asked[0]);
            if (ask)
                answer(p, ask, line, at);
            continue;
        }
        for (size_t k = 0; k < n && k < n_words && k < 16; k++) {
            const question *ask = question_in(asked[k]);
            const bool last = k + 1 == n;
            if (ask)
                answer(p, ask, last ? tv_str_span(words[k].p, line.p + line.n) : words[k], at);
            if (ask && strcmp(ask->key, "gpus") == 0)
                break; /* names have blanks */
        }
    }
}

static void read_question(report *p, size_t i, tv_str s)
{
    tv_str rest;
    if (tv_holds(s, "print(") && (tv_holds(s, " -c ") || tv_str_starts(s, TV_S(">>> ")))) {
        answers(p, s, i);
    } else if (tv_str_starts(s, TV_S(">>> ")) || tv_str_starts(s, TV_S("In ["))) {
        const question *ask = question_in(s);
        if (!ask || tv_holds(s, " = ") || i + 1 >= p->r->sheet->n)
            return;
        tv_str value = tv_str_trim(p->r->sheet->v[i + 1].s);
        if (tv_str_starts(value, TV_S("Out[")) && tv_past(value, "]: ", &rest))
            value = rest;
        answer(p, ask, value, i + 1);
    }
}

static void read(tv_reading *r)
{
    report *p = tv_new(r->a, report, 1);
    p->r = r;
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str s = tv_bare(r->sheet->v[i].s);
        read_nvcc(p, i, s);
        read_paddle(p, i, s);
        read_check(p, i, s);
        read_yolo(p, i, s);
        read_question(p, i, s);
        if (tv_str_is(s, "* CUDA:"))
            read_lightning(p, i);
    }
}

static const char *const needles[] = {"Cuda compilation tools, release",
                                      "GPU Compute Capability: ",
                                      "CUDA Capability: ",
                                      "PaddlePaddle works well on ",
                                      " torch-",
                                      "* CUDA:",
                                      "torch.cuda.is_available()",
                                      "torch.__version__",
                                      "torch.version.cuda",
                                      "torch.cuda.get_arch_list()",
                                      "paddle.__version__",
                                      "paddle.is_compiled_with_cuda()",
                                      NULL};

extern const tv_log_format tv_log_format_env_reports;
const tv_log_format tv_log_format_env_reports = {"env-reports", needles, read};
