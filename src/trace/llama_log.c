/* llama.cpp and ollama: the budget lines of a model that is loaded, and the buffer that did not
 * fit. The name of the buffer tells the backend (functions keep "cuda" in their names on every
 * one); which function complains tells what the buffer was for. */
#include <math.h>

#include "glean.h"
#include "oom_parts.h"
#include "trace.h"

/* One load of a model: what is known of its budget so far. */
typedef struct load {
    tv_sighting *log;   /* the budget; NULL: no line of it yet */
    tv_sighting *oom;   /* the failure that is being told */
    size_t oom_line;    /* its last line */
    bool decimal_comma; /* the program ran under such a locale */
} load;

static tv_note *budget(tv_reading *r, load *l, size_t i)
{
    if (!l->log) {
        l->log = tv_see(r, "llama-log", i);
        tv_oom_word(r, &l->log->facts, "framework", "llama.cpp");
    }
    return &l->log->facts;
}

/* ---- the budget ---- */

/* "CUDA0 model buffer size = 4095.06 MiB": the buffer's word is the last before what. */
static tv_str buffer_before(tv_str line, const char *what)
{
    tv_str rest;
    if (!tv_past(line, what, &rest))
        return (tv_str){0};
    tv_str head = tv_str_trim(tv_str_span(line.p, rest.p - tv_str_of(what).n));
    size_t n = head.n;
    while (n && head.p[n - 1] != ' ')
        n--;
    return tv_str_drop(head, n);
}

static void add_buffer(tv_reading *r, load *l, size_t i, tv_str line, const char *what,
                       const char *key)
{
    const tv_double_read bytes = tv_bytes_past(line, "size =");
    const tv_str name = buffer_before(line, what);
    if (!bytes.ok || !name.n)
        return;
    tv_note *item = tv_note_map(r->a, tv_note_list(r->a, budget(r, l, i), key), NULL);
    (void)tv_note_str(r->a, item, "buffer", name);
    (void)tv_at(r, tv_note_num(r->a, item, "bytes", bytes.v), i);
}

/* "KV self size = 1024.00 MiB, K (f16): …", later "size = 1024.00 MiB ( 8192 cells, …" */
static bool read_kv(tv_reading *r, load *l, size_t i, tv_str line)
{
    const tv_double_read old = tv_bytes_past(line, "KV self size  =");
    const bool newer = tv_holds(line, "cells,") && tv_holds(line, "layers");
    const tv_double_read bytes = old.ok  ? old
                                 : newer ? tv_bytes_past(line, " size =")
                                         : tv_bytes_past(line, "KV self size =");
    if (!bytes.ok)
        return false;
    const double before = newer ? tv_noted_num(budget(r, l, i), "kv_self_bytes") : (double)NAN;
    (void)tv_note_num(r->a, budget(r, l, i), "kv_self_bytes",
                      bytes.v + (isnan(before) ? 0 : before));
    const tv_str type = tv_enclosed(line, "K (", ")");
    if (type.n && type.n < 12)
        (void)tv_note_str(r->a, budget(r, l, i), "kv_type", type);
    return true;
}

typedef struct number_row {
    const char *text;
    const char *key;
} number_row;

static void read_settings(tv_reading *r, load *l, size_t i, tv_str line)
{
    static const number_row rows[] = {
        {"(n_copies=", "n_copies"},      {" n_ctx         =", "n_ctx"},
        {" n_ctx      =", "n_ctx"},      {" n_ctx =", "n_ctx"},
        {" n_ubatch   =", "n_ubatch"},   {" n_ubatch      =", "n_ubatch"},
        {" n_ubatch =", "n_ubatch"},     {" n_batch    =", "n_batch"},
        {" n_batch       =", "n_batch"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const tv_double_read v = tv_number_past(line, rows[k].text);
        if (v.ok)
            (void)tv_note_num(r->a, budget(r, l, i), rows[k].key, v.v);
    }
    tv_str rest;
    if (tv_past(line, "offloaded ", &rest)) {
        const tv_u64_read some = tv_take_u64(&rest);
        const bool slash = rest.n && *rest.p == '/';
        rest = slash ? tv_str_drop(rest, 1) : rest;
        const tv_u64_read all = tv_take_u64(&rest);
        if (some.ok && slash && all.ok && tv_holds(rest, "layers")) {
            (void)tv_note_num(r->a, budget(r, l, i), "layers_on_gpu", (double)some.v);
            (void)tv_note_num(r->a, budget(r, l, i), "layers", (double)all.v);
        }
    }
}

/* "using device CUDA0 (NVIDIA GeForce RTX 3090) - 23859 MiB free" */
static void read_device(tv_reading *r, load *l, size_t i, tv_str line)
{
    tv_str rest;
    if (!tv_past(line, "using device ", &rest))
        return;
    const tv_str name = tv_take_word(&rest);
    const tv_str product = tv_enclosed(rest, "(", ")");
    const tv_double_read free = tv_bytes_past(rest, ") - ");
    if (!free.ok)
        return;
    tv_note *item = tv_note_map(r->a, tv_note_list(r->a, budget(r, l, i), "devices"), NULL);
    (void)tv_note_str(r->a, item, "device", name);
    (void)tv_note_str(r->a, item, "name", product);
    (void)tv_at(r, tv_note_num(r->a, item, "free_bytes", free.v), i);
}

static void read_budget(tv_reading *r, load *l, size_t i, tv_str line)
{
    if (tv_holds(line, "model buffer size"))
        add_buffer(r, l, i, line, "model buffer size", "model_buffers");
    else if (tv_holds(line, "KV buffer size"))
        add_buffer(r, l, i, line, "KV buffer size", "kv_buffers");
    else if (tv_holds(line, "compute buffer size"))
        add_buffer(r, l, i, line, "compute buffer size", "compute_buffers");
    else if (tv_holds(line, "output buffer size"))
        add_buffer(r, l, i, line, "output buffer size", "output_buffers");
    else if (tv_holds(line, "load_tensors") && tv_holds(line, "buffer size"))
        add_buffer(r, l, i, line, "buffer size", "model_buffers");
    else if (!read_kv(r, l, i, line)) {
        read_device(r, l, i, line);
        read_settings(r, l, i, line);
    }
}

/* ---- what failed ---- */

static bool has_decimal_comma(tv_str line, const char *before)
{
    tv_str rest;
    if (!tv_past(line, before, &rest))
        return false;
    rest = tv_str_trim(rest);
    size_t n = 0;
    while (n < rest.n && rest.p[n] >= '0' && rest.p[n] <= '9')
        n++;
    return n && n < rest.n && rest.p[n] == ',';
}

static void copy_budget(tv_reading *r, const load *l, tv_note *facts)
{
    static const char *const keys[] = {"kv_self_bytes", "n_copies",      "n_ctx", "n_ubatch",
                                       "n_batch",       "layers_on_gpu", "layers"};
    for (size_t k = 0; l->log && k < sizeof keys / sizeof *keys; k++) {
        const double v = tv_noted_num(&l->log->facts, keys[k]);
        if (!isnan(v))
            (void)tv_note_num(r->a, facts, keys[k], v);
    }
}

enum { FAILURE_LINES = 12 };

static tv_note *failure(tv_reading *r, load *l, size_t i, bool fresh)
{
    if (fresh || !l->oom || i - l->oom_line > FAILURE_LINES) {
        l->oom = tv_see(r, "oom", i);
        tv_oom_word(r, &l->oom->facts, "framework", "llama.cpp");
        copy_budget(r, l, &l->oom->facts);
    }
    l->oom_line = i;
    return &l->oom->facts;
}

static void set_buffer(tv_reading *r, tv_note *facts, tv_str name)
{
    static const struct {
        const char *begins;
        const char *vendor;
    } rows[] = {{"ROCm", "amd"},    {"HIP", "amd"},           {"CUDA", "nvidia"},
                {"SYCL", "intel"},  {"Metal", "apple"},       {"MTL", "apple"},
                {"CANN", "huawei"}, {"MUSA", "moore threads"}};
    if (!name.n)
        return;
    (void)tv_note_str(r->a, facts, "buffer", name);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (tv_str_starts(name, tv_str_of(rows[k].begins)))
            tv_oom_word(r, facts, "vendor", rows[k].vendor);
    size_t n = name.n;
    while (n && name.p[n - 1] >= '0' && name.p[n - 1] <= '9')
        n--;
    const tv_u64_read device = tv_str_u64(tv_str_drop(name, n));
    if (device.ok && !tv_noted(facts, "device"))
        (void)tv_note_num(r->a, facts, "device", (double)device.v);
}

static void set_stage(tv_reading *r, tv_note *facts, const char *stage)
{
    static const char *const layers[][2] = {
        {"compute buffer", "runtime workspace"}, {"weights", "weights"}, {"KV cache", "KV cache"}};
    if (tv_noted(facts, "stage"))
        return;
    tv_oom_word(r, facts, "stage", stage);
    for (size_t k = 0; k < sizeof layers / sizeof *layers; k++)
        if (tv_str_is(tv_str_of(stage), layers[k][0]))
            tv_oom_word(r, facts, "layer", layers[k][1]);
}

/* "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 144.00 MiB on device 4: cudaMalloc
 * failed: out of memory" */
static void read_refused(tv_reading *r, load *l, size_t i, tv_str line)
{
    tv_str rest;
    if (!tv_past(line, ": allocating ", &rest))
        return;
    l->decimal_comma = l->decimal_comma || has_decimal_comma(line, ": allocating ");
    tv_note *facts = failure(r, l, i, true);
    tv_oom_put(r, facts, "tried_bytes", tv_take_bytes(&rest));
    tv_oom_put(r, facts, "device", tv_number_past(rest, "on device "));
    if (l->decimal_comma)
        (void)tv_note_bool(r->a, facts, "decimal_comma", true);
}

/* "…: failed to allocate CUDA0 buffer of size 150995968" and what complains of it */
static void read_failed(tv_reading *r, load *l, size_t i, tv_str line)
{
    tv_note *facts = failure(r, l, i, false);
    tv_str rest;
    if (tv_past(line, "failed to allocate ", &rest)) {
        const tv_str name = tv_take_word(&rest);
        if (tv_holds(rest, "buffer of size")) {
            set_buffer(r, facts, name);
            const tv_double_read size = tv_number_past(rest, "of size ");
            tv_oom_put(r, facts, "buffer_bytes", size);
            if (!tv_noted(facts, "tried_bytes"))
                tv_oom_put(r, facts, "tried_bytes", size);
        }
    }
    set_stage(r, facts,
              tv_holds(line, "gallocr") || tv_holds(line, "compute") ? "compute buffer"
              : tv_holds_nocase(line, "kv")                          ? "KV cache"
                                                                     : "weights");
}

/* "error loading model: unable to allocate CUDA0 buffer" */
static void read_unable(tv_reading *r, load *l, size_t i, tv_str line)
{
    tv_note *facts = failure(r, l, i, false);
    tv_str rest;
    if (tv_past(line, "unable to allocate ", &rest) && !tv_noted(facts, "buffer"))
        set_buffer(r, facts, tv_take_word(&rest));
    set_stage(r, facts, "weights");
}

/* "ggml_cuda_host_malloc: failed to allocate 1900,00 MiB of pinned memory: invalid argument": it
 * goes on with pageable memory. */
static void read_pinned(tv_reading *r, load *l, size_t i, tv_str line)
{
    tv_sighting *s = tv_see(r, "oom", i);
    tv_note *facts = &s->facts;
    tv_oom_word(r, facts, "framework", "llama.cpp");
    tv_oom_put(r, facts, "tried_bytes", tv_bytes_past(line, "failed to allocate "));
    tv_oom_word(r, facts, "memory", "pinned host");
    l->decimal_comma = l->decimal_comma || has_decimal_comma(line, "failed to allocate ");
    (void)tv_note_bool(r->a, facts, "decimal_comma",
                       has_decimal_comma(line, "failed to allocate "));
    (void)tv_note_bool(r->a, facts, "fatal", false);
    const tv_str error = tv_enclosed(line, "of pinned memory: ", NULL);
    if (error.n)
        (void)tv_note_str(r->a, facts, "error", error);
}

/* Vulkan, SYCL and Metal have words of their own. */
static bool read_backend(tv_reading *r, load *l, size_t i, tv_str line)
{
    static const char *const marks[] = {"Device memory allocation of size ", "can't allocate ",
                                        "failed to allocate buffer, size ="};
    static const char *const vendors[] = {NULL, "intel", "apple"};
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
        const tv_double_read bytes = tv_bytes_past(line, marks[k]);
        if (!bytes.ok || !(tv_holds(line, "ggml") || k == 2))
            continue;
        tv_note *facts = failure(r, l, i, true);
        (void)tv_note_num(r->a, facts, "tried_bytes", bytes.v);
        tv_oom_word(r, facts, "vendor", vendors[k]);
        return true;
    }
    if (!tv_holds(line, "ErrorOutOfDeviceMemory") &&
        !tv_holds(line, "kIOGPUCommandBufferCallbackErrorOutOfMemory"))
        return false;
    tv_note *facts = failure(r, l, i, false);
    tv_oom_word(r, facts, "error",
                tv_holds(line, "kIOGPU") ? "kIOGPUCommandBufferCallbackErrorOutOfMemory"
                                         : "ErrorOutOfDeviceMemory");
    return true;
}

/* "CUDA error: out of memory" with the function on the next line; before 2024 "CUDA error 2 at
 * ggml-cuda.cu:7233: out of memory". */
static bool read_plain(tv_reading *r, load *l, size_t i, tv_str line)
{
    const tv_sheet *sheet = r->sheet;
    const bool old = tv_holds(line, "CUDA error 2 at ") && tv_holds(line, "out of memory");
    const bool bare = tv_holds(line, "error: out of memory") &&
                      (tv_holds(line, "CUDA") || tv_holds(line, "ROCm") || tv_holds(line, "HIP"));
    bool llama = old && tv_holds(line, "ggml");
    for (size_t k = i; bare && k < sheet->n && k < i + 4; k++)
        llama =
            llama || tv_holds(sheet->v[k].s, "ggml") || tv_holds(sheet->v[k].s, "current device:");
    if (!llama)
        return false;
    tv_note *facts = failure(r, l, i, true);
    for (size_t k = i; k < sheet->n && k < i + 3; k++)
        tv_oom_put(r, facts, "device", tv_number_past(sheet->v[k].s, "current device: "));
    tv_oom_word(r, facts, "error", "out of memory");
    return true;
}

static bool is_new_load(tv_str line)
{
    return tv_holds(line, "llama_model_loader: loaded meta data") ||
           tv_holds(line, "starting llama server") || tv_holds(line, "starting runner");
}

static void read_line(tv_reading *r, load *l, size_t i, tv_str line)
{
    if (is_new_load(line))
        *l = (load){.decimal_comma = l->decimal_comma};
    else if (tv_holds(line, "of pinned memory"))
        read_pinned(r, l, i, line);
    else if (tv_holds(line, "alloc failed: out of memory") || tv_holds(line, "Malloc failed:"))
        read_refused(r, l, i, line);
    else if (tv_holds(line, "failed to allocate ") &&
             (tv_holds(line, "buffer of size") || tv_holds(line, "compute buffers") ||
              tv_holds(line, "buffer for kv cache") || tv_holds(line, "compute pp buffers")))
        read_failed(r, l, i, line);
    else if (tv_holds(line, "unable to allocate ") && tv_holds(line, "buffer"))
        read_unable(r, l, i, line);
    else if (!read_backend(r, l, i, line) && !read_plain(r, l, i, line))
        read_budget(r, l, i, line);
}

static void read(tv_reading *r)
{
    load l = {0};
    for (size_t i = 0; i < r->sheet->n; i++)
        read_line(r, &l, i, tv_bare(r->sheet->v[i].s));
}

static const char *const needles[] = {
    "ggml", "llama_", "load_tensors:", "alloc_tensor_range", "llama runner", NULL};

extern const tv_log_format tv_log_format_llama_log;
const tv_log_format tv_log_format_llama_log = {"llama-log", needles, read};
