/* vLLM (V0 and V1) and SGLang: refusals to start, which name the figures of the key-value cache's
 * budget, and the log's own account of that budget and of preemptions. PyTorch's own memory error
 * within such a log is oom_torch.c's. */
#include <math.h>

#include "glean.h"
#include "oom_parts.h"
#include "trace.h"

/* ---- refusals ---- */

static tv_note *refusal(tv_reading *r, size_t i, const char *layer)
{
    tv_sighting *s = tv_see(r, "oom", i);
    tv_oom_word(r, &s->facts, "framework", "vllm");
    tv_oom_word(r, &s->facts, "layer", layer);
    return &s->facts;
}

/* "The model's max seq len (32768) is larger than the maximum number of tokens that can be stored
 * in KV cache (7344)." */
static void read_tokens(tv_reading *r, size_t i, tv_str text)
{
    tv_note *facts = refusal(r, i, "KV cache budget");
    tv_oom_word(r, facts, "format", "V0");
    tv_oom_put(r, facts, "max_seq_len", tv_number_past(text, "max seq len ("));
    tv_oom_put(r, facts, "kv_tokens", tv_number_past(text, "KV cache ("));
}

/* "To serve at least one request with the model's max seq len (131072), 1.45 GiB KV cache is
 * needed, which is larger than the available KV cache memory (0.2 GiB)." */
static void read_needed(tv_reading *r, size_t i, tv_str text)
{
    tv_note *facts = refusal(r, i, "KV cache budget");
    tv_oom_word(r, facts, "format", "V1");
    const tv_double_read length = tv_number_past(text, "max seq len (");
    tv_str rest = text;
    tv_double_read needs = {0};
    if (tv_past(text, "max seq len (", &rest) && tv_past(rest, "),", &rest)) {
        rest = tv_str_trim(rest);
        if (tv_str_starts(rest, TV_S("(")))
            rest = tv_str_drop(rest, 1);
        needs = tv_take_bytes(&rest);
    }
    const tv_double_read have = tv_bytes_past(text, "available KV cache memory (");
    tv_double_read fits = tv_number_past(text, "estimated maximum model length is ");
    tv_oom_put(r, facts, "max_seq_len", length);
    tv_oom_put(r, facts, "kv_needed_bytes", needs);
    tv_oom_put(r, facts, "kv_available_bytes", have);
    if (!fits.ok && length.ok && needs.ok && have.ok && needs.v > 0)
        fits = (tv_double_read){floor(have.v / needs.v * length.v), true};
    tv_oom_put(r, facts, "estimated_max_len", fits);
}

/* "Free memory on device cuda:0 (12.18/23.56 GiB) on startup is less than desired GPU memory
 * utilization (0.92, 21.67 GiB)." */
static void read_startup(tv_reading *r, size_t i, tv_str text)
{
    tv_note *facts = refusal(r, i, "device shared with other processes");
    tv_str rest;
    if (!tv_past(text, "Free memory on device", &rest))
        return;
    const tv_str device = tv_str_trim(tv_str_cut(rest, '(').head);
    if (device.n && device.n < 16)
        (void)tv_note_str(r->a, facts, "device", device);
    rest = tv_str_cut(rest, '(').tail;
    tv_double_read free = tv_take_number(&rest);
    const bool slash = rest.n && *rest.p == '/';
    rest = slash ? tv_str_drop(rest, 1) : rest;
    tv_str unit = rest;
    const tv_double_read number = tv_take_number(&unit);
    const tv_double_read total = tv_take_bytes(&rest);
    if (free.ok && slash && total.ok && number.ok && number.v > 0) {
        free.v *= total.v / number.v;
        tv_oom_put(r, facts, "free_bytes", free);
        tv_oom_put(r, facts, "total_bytes", total);
        (void)tv_note_num(r->a, facts, "max_utilization_that_fits",
                          floor(free.v / total.v * 1000) / 1000);
    }
    if (!tv_past(rest, "utilization (", &rest))
        return;
    tv_oom_put(r, facts, "utilization", tv_take_number(&rest));
    if (rest.n && *rest.p == ',')
        rest = tv_str_drop(rest, 1);
    tv_oom_put(r, facts, "requested_bytes", tv_take_bytes(&rest));
}

static void read_blocks_none(tv_reading *r, size_t i, tv_str text)
{
    tv_note *facts = refusal(r, i, "KV cache budget");
    (void)tv_note_num(r->a, facts, "kv_available_bytes", 0);
    tv_oom_word(r, facts, "error", "No available memory for the cache blocks");
    (void)text;
}

static void read_sglang(tv_reading *r, size_t i, tv_str text)
{
    tv_sighting *s = tv_see(r, "oom", i);
    tv_oom_word(r, &s->facts, "framework", "sglang");
    tv_oom_word(r, &s->facts, "layer", "KV cache budget");
    tv_oom_word(r, &s->facts, "error", "Not enough memory");
    (void)text;
}

typedef struct refusal_row {
    const char *text;
    void (*read)(tv_reading *r, size_t i, tv_str text);
    const char *ends[3];
} refusal_row;

static const refusal_row refusals[] = {
    {"is larger than the maximum number of tokens", read_tokens, {"KV cache (", NULL}},
    {"To serve at least one request with the model", read_needed, {"GiB). ", "Try", NULL}},
    {"Free memory on device", read_startup, {"GiB). ", "utilization (", NULL}},
    {"No available memory for the cache blocks", read_blocks_none, {"cache blocks", NULL}},
    {"Not enough memory. Please try to increase --mem-fraction-static",
     read_sglang,
     {"--mem", NULL}},
};
enum { N_REFUSALS = sizeof refusals / sizeof *refusals };

/* ---- the log's own account ---- */

typedef struct account {
    tv_sighting *s;
    double preemptions; /* lines that tell of one */
    double counted;     /* the cumulative count that the server prints */
    double retracted;   /* SGLang's word for it */
    double kv_peak, running_peak, waiting_peak;
} account;

static tv_note *facts_of(tv_reading *r, account *c, size_t i)
{
    if (!c->s) {
        c->s = tv_see(r, "vllm-log", i);
        tv_oom_word(r, &c->s->facts, "server",
                    tv_holds(r->sheet->v[i].s, "#") && !tv_holds(r->sheet->v[i].s, "blocks")
                        ? "sglang"
                        : "vllm");
    }
    return &c->s->facts;
}

typedef struct figure_row {
    const char *text;
    const char *key;
    bool bytes;
} figure_row;

static const figure_row figures[] = {
    {"# GPU blocks: ", "gpu_blocks", false},
    {"# CPU blocks: ", "cpu_blocks", false},
    {"GPU KV cache size: ", "kv_cache_tokens", false},
    {"Available KV cache memory: ", "kv_cache_bytes", true},
    {"model weights take ", "weights_bytes", true},
    {"non_torch_memory takes ", "non_torch_bytes", true},
    {"activation peak memory takes ", "activation_peak_bytes", true},
    {"reserved for KV Cache is ", "kv_cache_bytes", true},
    {"Model loading took ", "weights_bytes", true},
    {"Loading model weights took ", "weights_bytes", true},
    {"model weights took ", "weights_bytes", true},
    {"Graph capturing finished in ", "graph_capture_s", false},
    {"max_total_num_tokens=", "kv_cache_tokens", false},
    {"Current free memory ", "free_bytes", true},
};

static bool read_figures(tv_reading *r, account *c, size_t i, tv_str line)
{
    bool some = false;
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++) {
        tv_str rest;
        if (!tv_past(line, figures[k].text, &rest))
            continue;
        const tv_double_read v = figures[k].bytes ? tv_take_bytes(&rest) : tv_take_number(&rest);
        if (v.ok)
            (void)tv_at(r, tv_note_num(r->a, facts_of(r, c, i), figures[k].key, v.v), i);
        some = some || v.ok;
    }
    return some;
}

/* "total_gpu_memory (23.64GiB) x gpu_memory_utilization (0.90) = 21.27GiB", "Maximum concurrency
 * for 32,768 tokens per request: 1.91x" */
static void read_products(tv_reading *r, account *c, size_t i, tv_str line)
{
    const tv_double_read total = tv_bytes_past(line, "total_gpu_memory (");
    if (total.ok) {
        tv_note *facts = facts_of(r, c, i);
        tv_oom_put(r, facts, "gpu_total_bytes", total);
        tv_oom_put(r, facts, "gpu_memory_utilization",
                   tv_number_past(line, "gpu_memory_utilization ("));
        tv_oom_put(r, facts, "budget_bytes", tv_bytes_past(line, "= "));
    }
    tv_str rest;
    if (tv_past(line, "Maximum concurrency for ", &rest)) {
        tv_note *facts = facts_of(r, c, i);
        tv_oom_put(r, facts, "concurrency_tokens", tv_take_number(&rest));
        tv_oom_put(r, facts, "max_concurrency", tv_number_past(rest, "request: "));
    }
    if (tv_holds(line, "Error in memory profiling"))
        (void)tv_at(r, tv_note_bool(r->a, facts_of(r, c, i), "memory_profiling_error", true), i);
}

static void at_least(double *most, tv_double_read v)
{
    if (v.ok && !(v.v < *most))
        *most = v.v;
}

static void read_load(tv_reading *r, account *c, size_t i, tv_str line)
{
    tv_double_read use = tv_number_past(line, "KV cache usage: ");
    if (use.ok) {
        (void)facts_of(r, c, i);
        use.v /= 100;
        at_least(&c->kv_peak, use);
        at_least(&c->running_peak, tv_number_past(line, "Running: "));
        at_least(&c->waiting_peak, tv_number_past(line, "Waiting: "));
        at_least(&c->waiting_peak, tv_number_past(line, "Pending: "));
    }
    const tv_double_read share = tv_number_past(line, "token usage: ");
    if (share.ok && tv_holds(line, "#")) {
        (void)facts_of(r, c, i);
        at_least(&c->kv_peak, share);
        at_least(&c->running_peak, tv_number_past(line, "#running-req: "));
        at_least(&c->waiting_peak, tv_number_past(line, "#queue-req: "));
    }
}

static void read_preemption(tv_reading *r, account *c, size_t i, tv_str line)
{
    const bool vllm =
        tv_holds(line, "is preempted by PreemptionMode") || tv_holds(line, "Preempted request");
    const bool sglang = tv_holds(line, "KV cache pool is full. Retract requests") ||
                        tv_holds(line, "ecode out of memory happened");
    const tv_double_read counted = tv_number_past(line, "cumulative_preemption_cnt=");
    if (!vllm && !sglang && !counted.ok)
        return;
    tv_note *facts = facts_of(r, c, i);
    if (sglang) {
        const tv_double_read n = tv_number_past(line, "#retracted_reqs: ");
        c->retracted += n.ok ? n.v : 1;
        tv_oom_word(r, facts, "server", "sglang");
    } else {
        c->preemptions++;
    }
    at_least(&c->counted, counted);
    if (!tv_noted(facts, "preemption_mode")) {
        const bool swap = tv_holds(line, "PreemptionMode.SWAP");
        tv_note *mode = tv_note_str(r->a, facts, "preemption_mode",
                                    swap     ? TV_S("swap")
                                    : sglang ? TV_S("retract")
                                             : TV_S("recompute"));
        (void)tv_at(r, mode, i);
    }
}

static void finish(tv_reading *r, const account *c)
{
    if (!c->s)
        return;
    tv_note *facts = &c->s->facts;
    const double n = fmax(c->preemptions, c->counted) + c->retracted;
    if (n > 0)
        (void)tv_note_num(r->a, facts, "preemptions", n);
    (void)tv_note_num(r->a, facts, "kv_usage_peak_frac", c->kv_peak);
    (void)tv_note_num(r->a, facts, "running_peak", c->running_peak);
    (void)tv_note_num(r->a, facts, "waiting_peak", c->waiting_peak);
}

/* ---- all lines ---- */

static bool read_refusal(tv_reading *r, size_t i, tv_str line, tv_oom_seen *seen)
{
    for (size_t k = 0; k < N_REFUSALS; k++) {
        if (!tv_holds(line, refusals[k].text))
            continue;
        const tv_str joined = tv_oom_joined(r, i, refusals[k].ends);
        tv_str tail;
        if (tv_past(joined, refusals[k].text, &tail) && !tv_oom_again(r, seen, tail)) {
            refusals[k].read(r, i, joined);
            tv_oom_remember(seen, tail, r->scene->last);
        }
        return true;
    }
    return false;
}

static void read(tv_reading *r)
{
    tv_oom_seen *seen = tv_new(r->a, tv_oom_seen, 1);
    account c = {.kv_peak = (double)NAN, .running_peak = (double)NAN, .waiting_peak = (double)NAN};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        if (read_refusal(r, i, line, seen))
            continue;
        (void)read_figures(r, &c, i, line);
        read_products(r, &c, i, line);
        read_load(r, &c, i, line);
        read_preemption(r, &c, i, line);
    }
    finish(r, &c);
}

static const char *const needles[] = {"is larger than the maximum number of tokens",
                                      "To serve at least one request with the model",
                                      "Free memory on device",
                                      "No available memory for the cache blocks",
                                      "Please try to increase --mem-fraction-static",
                                      "# GPU blocks: ",
                                      "GPU KV cache size: ",
                                      "Available KV cache memory: ",
                                      "total_gpu_memory (",
                                      "model weights take ",
                                      "Model loading took ",
                                      "oading model weights took ",
                                      "Maximum concurrency for ",
                                      "KV cache usage: ",
                                      "is preempted by PreemptionMode",
                                      "KV cache pool is full",
                                      "ecode out of memory happened",
                                      "max_total_num_tokens=",
                                      "token usage: ",
                                      "Error in memory profiling",
                                      NULL};

extern const tv_log_format tv_log_format_vllm_log;
const tv_log_format tv_log_format_vllm_log = {"vllm-log", needles, read};
