/* Memory of servers and of frameworks with pools: vLLM's key-value budget, llama.cpp's buffers,
 * the pools of TensorFlow, JAX, ONNX Runtime and Paddle. */
#include <math.h>
#include <string.h>

#include "oom_ledger.h"

static const tv_sighting *first_oom(const tv_inquiry *q)
{
    return tv_scene_first(q->scene, "oom");
}

static const tv_sighting *next_oom(const tv_sighting *s)
{
    return tv_scene_next(s, "oom");
}

static bool is_of(const tv_sighting *s, const char *framework)
{
    return tv_noted_is(&s->facts, "framework", framework);
}

/* ---- vLLM and SGLang ---- */

/* The account that the same log printed, where it did. */
static const tv_sighting *vllm_log_of(const tv_inquiry *q, tv_str file)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "vllm-log"); s;
         s = tv_scene_next(s, "vllm-log"))
        if (tv_str_eq(s->file, file))
            return s;
    return NULL;
}

/* vLLM's blocks hold 16 tokens. */
static double whole_blocks(double tokens)
{
    return floor(tokens / 16) * 16;
}

/* The utilisation at which the asked length fits, if the card has that much. */
static double enough_utilization(const tv_inquiry *q, const tv_sighting *s)
{
    const tv_sighting *log = vllm_log_of(q, s->file);
    if (!log)
        return (double)NAN;
    const double total = tv_noted_num(&log->facts, "gpu_total_bytes");
    const double now = tv_noted_num(&log->facts, "gpu_memory_utilization");
    const double lacks =
        tv_noted_num(&s->facts, "kv_needed_bytes") - tv_noted_num(&s->facts, "kv_available_bytes");
    const double needs = ceil((now + lacks / total) * 100) / 100;
    return needs <= 0.97 ? needs : (double)NAN;
}

static void judge_kv_budget(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_oom(q); s; s = next_oom(s)) {
        if (!tv_oom_layer_is(s, "KV cache budget"))
            continue;
        const tv_note *facts = &s->facts;
        tv_finding *f = tv_found(q, rule, s, NULL);
        const double length = tv_noted_num(facts, "max_seq_len");
        double fits = tv_noted_num(facts, "kv_tokens");
        if (isnan(fits))
            fits = tv_noted_num(facts, "estimated_max_len");
        tv_found_num(q, f, "max_seq_len", TV_ARG_COUNT, length);
        tv_found_num(q, f, "fits_tokens", TV_ARG_COUNT, fits);
        tv_found_num(q, f, "kv_needed_bytes", TV_ARG_MEMORY,
                     tv_noted_num(facts, "kv_needed_bytes"));
        tv_found_num(q, f, "kv_available_bytes", TV_ARG_MEMORY,
                     tv_noted_num(facts, "kv_available_bytes"));
        if (fits >= 16)
            tv_found_num(q, f, "max_model_len", TV_ARG_NUMBER, whole_blocks(fits));
        tv_found_num(q, f, "utilization", TV_ARG_NUMBER, enough_utilization(q, s));
        if (is_of(s, "sglang"))
            tv_found_str(q, f, "sglang", TV_S("sglang"));
        else
            tv_found_str(q, f, "vllm", TV_S("vllm"));
        if (isnan(length) || isnan(fits))
            f->cause =
                N_("After the weights and the largest batch nothing of the server's share of "
                   "the card is left for the key-value cache.");
    }
}

static void judge_startup(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_oom(q); s; s = next_oom(s)) {
        const tv_note *facts = &s->facts;
        if (!is_of(s, "vllm") || !tv_oom_layer_is(s, "device shared with other processes"))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        const double free = tv_noted_num(facts, "free_bytes");
        const double total = tv_noted_num(facts, "total_bytes");
        const double fits = floor((free / total - 0.02) * 100) / 100;
        tv_found_num(q, f, "total_bytes", TV_ARG_MEMORY, total);
        tv_found_num(q, f, "free_bytes", TV_ARG_MEMORY, free);
        tv_found_num(q, f, "taken_bytes", TV_ARG_MEMORY, fmax(total - free, 0));
        tv_found_num(q, f, "asked_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "requested_bytes"));
        tv_found_num(q, f, "asked_frac", TV_ARG_NUMBER, tv_noted_num(facts, "utilization"));
        if (fits > 0.05)
            tv_found_num(q, f, "utilization", TV_ARG_NUMBER, fits);
        f->weight = tv_share(total - free, total);
    }
}

static void judge_preemption(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "vllm-log"); s;
         s = tv_scene_next(s, "vllm-log")) {
        const double n = tv_noted_num(&s->facts, "preemptions");
        if (!(n >= 1))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "preemption_mode"));
        tv_found_num(q, f, "preemptions", TV_ARG_COUNT, n);
        tv_found_num(q, f, "kv_usage_frac", TV_ARG_RATIO,
                     tv_noted_num(&s->facts, "kv_usage_peak_frac"));
        const double running = tv_noted_num(&s->facts, "running_peak");
        if (running >= 2)
            tv_found_num(q, f, "max_num_seqs", TV_ARG_NUMBER, floor(running / 2));
        tv_found_str(q, f, "mode", tv_noted_str(&s->facts, "preemption_mode"));
    }
}

/* ---- llama.cpp ---- */

/* "CUDA0", or the number of the device, or the backend's silence. */
static tv_str where_of(tv_inquiry *q, const tv_note *facts)
{
    const tv_str buffer = tv_noted_str(facts, "buffer");
    const double device = tv_noted_num(facts, "device");
    if (buffer.n || isnan(device))
        return buffer.n ? buffer : TV_S("GPU");
    tv_buf b = tv_buf_in(q->a);
    tv_puts(&b, "GPU ");
    tv_put_double(&b, device);
    return tv_buf_str(&b);
}

static void put_llama(tv_inquiry *q, tv_finding *f, const tv_note *facts)
{
    tv_found_num(q, f, "tried_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "tried_bytes"));
    tv_found_num(q, f, "device", TV_ARG_NUMBER, tv_noted_num(facts, "device"));
    tv_found_num(q, f, "kv_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "kv_self_bytes"));
    tv_found_str(q, f, "where", where_of(q, facts));
    tv_found_num(q, f, "copies", TV_ARG_NUMBER, tv_noted_num(facts, "n_copies"));
}

static void judge_workspace(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_oom(q); s; s = next_oom(s)) {
        const tv_note *facts = &s->facts;
        const tv_str stage = tv_noted_str(facts, "stage");
        if (!is_of(s, "llama.cpp") || tv_str_is(stage, "weights") ||
            tv_noted_is(facts, "memory", "pinned host"))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        put_llama(q, f, facts);
        if (!stage.n || isnan(tv_noted_num(facts, "tried_bytes"))) {
            f->sure = TV_MEDIUM;
            f->cause =
                N_("{where} refused memory to llama.cpp after the model had been placed: the "
                   "workspace or the key-value cache had no room left.");
        } else if (tv_str_is(stage, "KV cache")) {
            f->cause = N_("The weights fit, the key-value cache of {tried_bytes} did not: it grows "
                          "with the context and the number of parallel sequences.");
        } else if (tv_noted_num(facts, "n_copies") > 1) {
            f->cause =
                N_("The workspace of {tried_bytes} on {where} did not fit; weights and "
                   "key-value cache did. Pipeline parallelism keeps {copies} copies of it: a "
                   "build with one needs far less.");
        }
    }
}

static void judge_weights(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_oom(q); s; s = next_oom(s)) {
        if (!is_of(s, "llama.cpp") || !tv_noted_is(&s->facts, "stage", "weights"))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        put_llama(q, f, &s->facts);
        const double on = tv_noted_num(&s->facts, "layers_on_gpu");
        if (on >= 2)
            tv_found_num(q, f, "layers", TV_ARG_NUMBER, floor(on * 0.8));
        if (isnan(tv_noted_num(&s->facts, "tried_bytes")))
            f->cause =
                N_("A buffer of weights on {where} was refused: the layers given to that card "
                   "do not fit.");
    }
}

/* ---- TensorFlow and JAX ---- */

static bool is_bfc(const tv_sighting *s)
{
    return is_of(s, "tensorflow") || tv_noted_is(&s->facts, "allocator", "bfc");
}

static void judge_probe(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_oom(q); s; s = next_oom(s)) {
        const tv_note *fatal = tv_noted(&s->facts, "fatal");
        if (!is_bfc(s) || !fatal || fatal->yes || tv_noted(&s->facts, "pool_refused_bytes"))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        tv_found_num(q, f, "tried_bytes", TV_ARG_MEMORY, tv_noted_num(&s->facts, "tried_bytes"));
    }
}

/* The largest memory of a card that the documents name; NaN: none. */
static double card_bytes(const tv_inquiry *q)
{
    double most = (double)NAN;
    for (const tv_sighting *s = tv_scene_first(q->scene, "device-record"); s;
         s = tv_scene_next(s, "device-record"))
        most = fmax(most, tv_noted_num(&s->facts, "mem_bytes"));
    return most;
}

/* No card that these frameworks still run on has less than 2 GiB of it: a smaller pool was capped
 * when it was made. */
#define SMALL_POOL_BYTES (2.0 * 1024 * 1024 * 1024)

static bool is_capped(const tv_inquiry *q, const tv_sighting *s)
{
    if (tv_oom_layer_is(s, "pool already full") || tv_oom_layer_is(s, "pool capped"))
        return true;
    const double limit = tv_noted_num(&s->facts, "limit_bytes");
    const double card = card_bytes(q);
    return is_bfc(s) && (limit < SMALL_POOL_BYTES || limit < 0.5 * card) &&
           !tv_noted_is(&s->facts, "memory", "pinned host");
}

static void judge_capped(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_oom(q); s; s = next_oom(s)) {
        if (!is_capped(q, s))
            continue;
        const tv_note *facts = &s->facts;
        tv_finding *f = tv_found(q, rule, s, tv_noted(facts, "limit_bytes"));
        double limit = tv_noted_num(facts, "limit_bytes");
        if (isnan(limit))
            limit = tv_noted_num(facts, "allowed_bytes");
        tv_found_num(q, f, "limit_bytes", TV_ARG_MEMORY, limit);
        tv_found_num(q, f, "in_use_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "in_use_bytes"));
        tv_found_num(q, f, "tried_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "tried_bytes"));
        const bool jax = is_of(s, "jax");
        if (jax)
            tv_found_str(q, f, "xla_prefix", TV_S("XLA_PYTHON_CLIENT"));
        else if (is_bfc(s))
            tv_found_str(q, f, "tf_prefix", TV_S("TF"));
        if (isnan(limit)) {
            f->cause = N_("{tried_bytes} were refused, which any card has: the pool was full or "
                          "small already when this program asked. Another process, or a framework "
                          "that takes most of the card at start, holds it.");
            f->sure = TV_MEDIUM;
            tv_ask(
                q, "nvidia-smi",
                N_("What the card holds before the program starts: that is not in the message."));
        } else if (isnan(tv_noted_num(facts, "in_use_bytes"))) {
            f->cause =
                N_("This program may use {limit_bytes} of the card and no more: a limit that "
                   "it was given, not the card.");
        }
    }
}

static void judge_program(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_oom(q); s; s = next_oom(s)) {
        if (!is_of(s, "jax") || !tv_oom_layer_is(s, "compiled program needs more"))
            continue;
        const tv_note *facts = &s->facts;
        tv_finding *f = tv_found(q, rule, s, NULL);
        double needs = tv_noted_num(facts, "total_bytes");
        if (isnan(needs))
            needs = tv_noted_num(facts, "used_bytes");
        if (isnan(needs))
            needs = tv_noted_num(facts, "tried_bytes");
        tv_found_num(q, f, "needs_bytes", TV_ARG_MEMORY, needs);
        tv_found_num(q, f, "temp_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "temp_bytes"));
        tv_found_num(q, f, "capacity_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "capacity_bytes"));
        tv_found_num(q, f, "free_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "free_bytes"));
        tv_found_num(q, f, "largest_bytes", TV_ARG_MEMORY,
                     tv_noted_num(facts, "peak_buffers.0.bytes"));
        tv_found_str(q, f, "largest_op", tv_noted_str(facts, "peak_buffers.0.op"));
    }
}

/* A fatal refusal of the best-fit allocator whose pool is no small one. */
static void judge_tensorflow(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_oom(q); s; s = next_oom(s)) {
        const tv_note *facts = &s->facts;
        if (!is_bfc(s) || is_capped(q, s) || !tv_noted_bool(facts, "fatal", true) ||
            tv_noted_is(facts, "memory", "pinned host"))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        tv_found_str(q, f, "shape", tv_noted_str(facts, "shape"));
        tv_found_num(q, f, "tried_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "tried_bytes"));
        tv_found_num(q, f, "limit_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "limit_bytes"));
        tv_found_num(q, f, "in_use_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "in_use_bytes"));
    }
}

/* ---- ONNX Runtime, Paddle ---- */

static void judge_arena(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_oom(q); s; s = next_oom(s)) {
        const double tried = tv_noted_num(&s->facts, "tried_bytes");
        if (!is_of(s, "onnxruntime") || tv_oom_layer_is(s, "program bug: impossible request"))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        tv_found_num(q, f, "tried_bytes", TV_ARG_MEMORY, tried);
        tv_found_str(q, f, "op", tv_noted_str(&s->facts, "op"));
        tv_found_str(q, f, "node", tv_noted_str(&s->facts, "node"));
        if (isnan(tried))
            f->cause =
                N_("The card refused memory to ONNX Runtime. Its arena grows by powers of two "
                   "and keeps what it has; convolutions ask for the largest workspace.");
    }
}

static void judge_paddle(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = first_oom(q); s; s = next_oom(s)) {
        if (!is_of(s, "paddle") || tv_noted_is(&s->facts, "format", "bare"))
            continue;
        const tv_note *facts = &s->facts;
        tv_finding *f = tv_found(q, rule, s, NULL);
        const double limit = tv_noted_num(facts, "limit_bytes");
        const double allocated = tv_noted_num(facts, "allocated_bytes");
        const double gpu = tv_noted_num(facts, "gpu");
        tv_found_num(q, f, "tried_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "tried_bytes"));
        tv_found_num(q, f, "allocated_bytes", TV_ARG_MEMORY, allocated);
        tv_found_num(q, f, "free_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "free_bytes"));
        tv_found_num(q, f, "total_bytes", TV_ARG_MEMORY, tv_noted_num(facts, "total_bytes"));
        tv_found_num(q, f, "gpu", TV_ARG_NUMBER, isnan(gpu) ? 0 : gpu);
        if (!isnan(limit)) {
            tv_found_num(q, f, "limit_bytes", TV_ARG_MEMORY, limit);
            f->cause = N_("FLAGS_gpu_memory_limit_mb allows {limit_bytes}: {tried_bytes} more were "
                          "refused by that limit, not by the card.");
            f->sure = TV_HIGH;
        } else if (tv_noted_bool(facts, "contradiction_free_exceeds_tried", false)) {
            f->cause = N_("{tried_bytes} were refused while {free_bytes} are said to be free: the "
                          "pool asks the card for larger pieces than the tensor "
                          "(FLAGS_fraction_of_gpu_memory_to_use), or another process ended in "
                          "between.");
        } else if (isnan(tv_noted_num(facts, "free_bytes"))) {
            f->cause = N_("The message is cut: it tells only that Paddle was refused memory.");
        } else if (isnan(allocated)) {
            f->cause =
                N_("{tried_bytes} were asked for, {free_bytes} are free. The message does not "
                   "say who holds the rest of the card: this program or others.");
        }
        tv_ask(q, "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv",
               N_("Paddle counts other processes' memory as allocated: the list of processes tells "
                  "them apart."));
    }
}

static const tv_rule rules[] = {
    {
        .id = "O17",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The key-value cache cannot hold one sequence of the asked length"),
        .cause =
            N_("A request of {max_seq_len} tokens may come, and what the server's share of the "
               "card leaves after the weights holds {fits_tokens} tokens."),
        .decided = N_("The server refuses to start: the cache holds fewer tokens, or has fewer "
                      "bytes, than the longest sequence needs."),
        .unless = NULL,
        .source = "https://github.com/QwenLM/Qwen3/issues/295",
        .steps =
            {{.command = "{vllm} serve MODEL --max-model-len {max_model_len}",
              .why = N_("The longest length that fits now.")},
             {.command = "{vllm} serve MODEL --gpu-memory-utilization {utilization}",
              .why = N_("The share at which the whole length fits, by the log's own figures.")},
             {.command = "{vllm} serve MODEL --gpu-memory-utilization 0.95 --kv-cache-dtype fp8",
              .why = N_("A larger share (at most what is free of the card) and a cache of half "
                        "the size.")},
             {.command = "{vllm} serve MODEL --tensor-parallel-size 2",
              .why = N_("Weights and cache over two cards.")},
             {.command = "python3 -m {sglang}.launch_server --model-path MODEL "
                         "--mem-fraction-static 0.9",
              .why = N_("A larger share for weights and cache; a shorter --context-length does "
                        "the same.")}},
        .judge = judge_kv_budget,
    },
    {
        .id = "O18",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The card is taken before the server starts"),
        .cause =
            N_("{free_bytes} of {total_bytes} are free, {taken_bytes} are taken by something "
               "else, and the server wants {asked_bytes} ({asked_frac} of the card). Often it is "
               "the engine process of an earlier start that was not ended."),
        .decided = N_("vLLM's own check at start: free memory is less than the desired "
                      "utilisation."),
        .unless = NULL,
        .source = "https://docs.vllm.ai/en/stable/configuration/conserving_memory.html",
        .steps = {{.command = "nvidia-smi --query-compute-apps=pid,process_name,used_memory "
                              "--format=csv",
                   .why = N_("See whose it is. End a leftover of your own by its number; ask its "
                             "owner otherwise, for a job that is stopped loses its work.")},
                  {.command = "vllm serve MODEL --gpu-memory-utilization {utilization}",
                   .why = N_("Or take what is free, less 2 %.")}},
        .outranks = "O17",
        .judge = judge_startup,
    },
    {
        .id = "I07",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Requests are preempted: the key-value cache is too small for the load"),
        .cause = N_("{preemptions} times a running request lost its place in the cache and had to "
                    "be computed again: it shows as stalls in the middle of an answer, never as an "
                    "error."),
        .decided = N_("The server's log tells of preemptions (vLLM) or retractions (SGLang)."),
        .unless = NULL,
        .source = "https://docs.vllm.ai/en/stable/configuration/optimization.html",
        .steps = {{.command = "vllm serve MODEL --max-num-seqs {max_num_seqs}",
                   .why =
                       N_("Half of the requests that ran at the peak: fewer at once, none thrown "
                          "out.")},
                  {.command = "vllm serve MODEL --gpu-memory-utilization 0.95 --kv-cache-dtype fp8",
                   .why = N_("More cache: a larger share of the card, half the bytes per token.")},
                  {.why = N_("Tensor parallelism leaves each card more room for the cache.")}},
        .judge = judge_preemption,
    },
    {
        .id = "O19",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("llama.cpp: the workspace does not fit, the weights do"),
        .cause = N_("The compute buffer of {tried_bytes} on {where} was refused after the "
                    "weights had been loaded. Its size follows the micro-batch and the context."),
        .decided = N_("The graph allocator complains (ggml_gallocr), or the key-value cache does."),
        .unless = N_("alloc_tensor_range means weights (O20)."),
        .source = "https://github.com/ggml-org/llama.cpp/issues/16725",
        .steps = {{.command = "llama-server -m MODEL -b 512 -ub 256 -fa on",
                   .why =
                       N_("Half the micro-batch, and flash attention: the workspace shrinks with "
                          "both.")},
                  {.command = "llama-server -m MODEL -c 8192 -ctk q8_0 -ctv q8_0",
                   .why = N_("A shorter context, and a cache of half the size.")},
                  {.command = "cmake -B build -DGGML_CUDA=ON -DGGML_SCHED_MAX_COPIES=1",
                   .why = N_("Where pipeline parallelism keeps several copies: a build with one.")},
                  {.command = "llama-server -m MODEL --tensor-split 1,1",
                   .why =
                       N_("On unequal cards give the smallest one less: parts in the order of the "
                          "devices.")}},
        .judge = judge_workspace,
    },
    {
        .id = "O20",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("llama.cpp: too many layers for this card"),
        .cause = N_("The weights' buffer of {tried_bytes} on {where} was refused: the layers given "
                    "to that card do not fit."),
        .decided = N_("alloc_tensor_range or the loader complains of a buffer of weights."),
        .unless = N_("ggml_gallocr means the workspace (O19)."),
        .source = "https://github.com/ggml-org/llama.cpp/issues/20431",
        .steps = {{.command = "llama-server -m MODEL -ngl {layers}",
                   .why = N_("A fifth fewer layers on the card; the rest runs on the host.")},
                  {.why = N_("Otherwise: a lower -ngl, --tensor-split by free memory, or a smaller "
                             "quantisation.")}},
        .judge = judge_weights,
    },
    {
        .id = "O22",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The framework's pool is far smaller than the card"),
        .cause = N_("The pool ends at {limit_bytes} and {in_use_bytes} of it are in use: it was "
                    "capped when it was made, by what others held at that moment or by a fraction "
                    "that was set."),
        .decided = N_("The pool's limit is below 2 GiB or below half of the named card, or a limit "
                      "of the program's own is reached, or a small request is refused."),
        .unless = N_("A large compiled program that does not fit is O23."),
        .source = "https://github.com/tensorflow/tensorflow/issues/3304",
        .steps = {{.command = "nvidia-smi --query-compute-apps=pid,process_name,used_memory "
                              "--format=csv",
                   .why = N_("What holds the card when the program starts.")},
                  {.command = "export {tf_prefix}_FORCE_GPU_ALLOW_GROWTH=true",
                   .undo = "unset TF_FORCE_GPU_ALLOW_GROWTH",
                   .why = N_("The pool grows with the need; remove per_process_gpu_memory_fraction "
                             "from the program.")},
                  {.command = "export {xla_prefix}_PREALLOCATE=false",
                   .undo = "unset XLA_PYTHON_CLIENT_PREALLOCATE",
                   .why =
                       N_("JAX takes three quarters of the card at start, also from a second JAX "
                          "process; XLA_PYTHON_CLIENT_MEM_FRACTION sets another share.")},
                  {.why =
                       N_("PyTorch: set_per_process_memory_fraction; CuPy: CUPY_GPU_MEMORY_LIMIT: "
                          "raise or remove them.")}},
        .judge = judge_capped,
    },
    {
        .id = "O23",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The compiled program needs more than the device has"),
        .cause =
            N_("XLA's plan of buffers needs {needs_bytes} at once. It is known before the first "
               "step: nothing leaks."),
        .decided = N_("JAX is refused 1 GiB or more, or the plan's total or the device's capacity "
                      "says so."),
        .unless = N_("A small program that is refused met a full pool (O22)."),
        .source = "https://docs.jax.dev/en/latest/gpu_memory_allocation.html",
        .steps = {{.why = N_("jax.checkpoint (rematerialisation) around the layers, or a smaller "
                             "batch: temporaries shrink.")},
                  {.why = N_("jit(..., donate_argnums=...) for parameters and states: results take "
                             "the place of inputs.")},
                  {.why =
                       N_("The list of peak buffers names the operations: the largest is first.")}},
        .judge = judge_program,
    },
    {
        .id = "O35",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("TensorFlow's pool is full"),
        .cause = N_("A tensor was refused, and the pool is no small one: the model and its "
                    "activations need more than the card gives."),
        .decided = N_("OOM when allocating tensor, or a fatal refusal of the best-fit allocator, "
                      "with a pool that is not capped."),
        .unless = N_("Warnings that call themselves no failure (O21); a small limit (O22)."),
        .source = "https://www.tensorflow.org/guide/gpu",
        .steps = {{.why = N_("Halve the batch or the input size; mixed precision "
                             "(mixed_float16).")},
                  {.command = "nvidia-smi",
                   .why = N_("Whether others hold a part of the card (O04).")}},
        .judge = judge_tensorflow,
    },
    {
        .id = "O24",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("ONNX Runtime's arena does not fit"),
        .cause =
            N_("{tried_bytes} were refused. The arena grows by powers of two and keeps what it "
               "has, and convolutions ask for the largest workspace: the peak is far above what "
               "the model needs."),
        .decided = N_("BFCArena or the CUDA provider refuses memory, of a possible size."),
        .unless = N_("A size that no card has is a mistake of the program (O07)."),
        .source = "https://github.com/microsoft/onnxruntime/issues/16307",
        .steps = {{.why = N_("Provider options: arena_extend_strategy=kSameAsRequested, "
                             "gpu_mem_limit, cudnn_conv_use_max_workspace=0; without them the "
                             "defaults are back.")},
                  {.why =
                       N_("Run the largest shape first, or fixed shapes: the arena does not grow "
                          "around holes then.")}},
        .judge = judge_arena,
    },
    {
        .id = "O25",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("Paddle: the card is full"),
        .cause =
            N_("{tried_bytes} were refused on GPU {gpu}: {allocated_bytes} are taken, "
               "{free_bytes} are free. Paddle reckons taken as total minus available, so other "
               "processes' memory is in it."),
        .decided = N_("Paddle's message; who holds the memory is not in it."),
        .unless = N_("Other processes on the card (O04) look the same in this message."),
        .source = "https://github.com/PaddlePaddle/Paddle/issues/42228",
        .steps = {{.command = "nvidia-smi --query-compute-apps=pid,process_name,used_memory "
                              "--format=csv -i {gpu}",
                   .why = N_("Whether others hold it.")},
                  {.command = "export FLAGS_allocator_strategy=auto_growth",
                   .undo = "unset FLAGS_allocator_strategy",
                   .why = N_("The pool grows with the need instead of by a fraction of the card.")},
                  {.why = N_("Then a smaller batch, recompute, AMP.")}},
        .judge = judge_paddle,
    },
    {
        .id = "O21",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("TensorFlow tried a workspace that did not fit, and went on"),
        .cause = N_("{tried_bytes} for a faster algorithm were refused; another one was taken. It "
                    "is no failure."),
        .decided = N_("The message says so itself, and no fatal one follows."),
        .unless = NULL,
        .source = "https://www.tensorflow.org/guide/gpu",
        .steps = {{.why = N_("Nothing; a slightly smaller batch may be faster.")}},
        .judge = judge_probe,
    },
};

extern const tv_rule_group tv_rule_group_server_memory_rules;
const tv_rule_group tv_rule_group_server_memory_rules = {
    "server-memory", N_("Memory of servers and pools"), rules, sizeof rules / sizeof *rules};
