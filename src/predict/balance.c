/* Which leg holds the step back: each lane is taken away in turn, and the one whose absence
 * shortens the step most is named, with the cheapest change that would shorten it. */
#include "predict.h"

#include <math.h>

typedef struct gains {
    double s[TV_BOUND_COUNT]; /* seconds of the step that removing a lane saves */
} gains;

static tv_bound data_lane(const tv_time *t)
{
    if (t->storage_s >= t->decode_s && t->storage_s >= t->copy_s)
        return TV_BOUND_STORAGE;
    return t->decode_s >= t->copy_s ? TV_BOUND_DECODE : TV_BOUND_HOST_COPY;
}

/* Without kernels the step is as long as the longest other lane. */
static double without_kernels(const tv_time *t)
{
    return fmax(fmax(t->issue_s, t->data_s), t->comm_s) + t->optimizer_s;
}

static gains gains_of(const tv_time *t)
{
    gains g = {0};
    const bool math = t->math_bound_s >= t->memory_bound_s;
    const double step = t->step_s.v;
    g.s[math ? TV_BOUND_COMPUTE : TV_BOUND_MEMORY] = fmax(0, step - without_kernels(t));
    g.s[TV_BOUND_LAUNCH] = t->launch_s;
    g.s[TV_BOUND_COMMUNICATION] = t->comm_exposed_s;
    g.s[data_lane(t)] = t->data_exposed_s;
    return g;
}

/* ---- advice ---- */

typedef struct advice_list {
    tv_text *v;
    size_t n, cap;
} advice_list;

static void say(tv_arena *a, advice_list *l, const char *id, const char *msgid)
{
    *tv_push(a, l) = TV_TEXT0(id, msgid);
}

static void for_kernels(tv_arena *a, const tv_case *c, bool math, advice_list *l)
{
    const bool trains = tv_job_trains(&c->job);
    if (trains && c->policy.compute == TV_F32)
        say(a, l, "use-amp",
            N_("mixed precision (--precision amp-bf16 or amp-fp16): tensor cores "
               "and half the traffic"));
    if (c->setting.kernel == TV_KERNEL_EAGER && c->model->heads > 0)
        say(a, l, "fused-attention", N_("a fused attention kernel (--attention sdpa)"));
    if (!math && c->job.engine == TV_ENGINE_EAGER)
        say(a, l, "compile", N_("fuse the small kernels (torch.compile, --engine compile)"));
    if (!trains && !math)
        say(a, l, "quantise",
            N_("fewer bytes per weight (int8, int4): decoding reads every weight "
               "for every token"));
    if (math)
        say(a, l, "faster-card",
            N_("more matrix throughput is the only lever left: a faster card, "
               "or more of them"));
    else
        say(a, l, "more-bandwidth",
            N_("a card with more memory bandwidth; more matrix throughput "
               "would change little"));
}

static void for_launch(tv_arena *a, const tv_case *c, advice_list *l)
{
    say(a, l, "larger-batch",
        N_("a larger batch: the host issues the same number of kernels for "
           "more work"));
    if (c->job.engine == TV_ENGINE_EAGER)
        say(a, l, "graphs", N_("torch.compile or CUDA graphs: one launch instead of thousands"));
    say(a, l, "no-faster-card", N_("a faster card does not help: it would wait for the same host"));
}

static void for_communication(tv_arena *a, const tv_case *c, advice_list *l)
{
    say(a, l, "accumulate", N_("gradient accumulation: one exchange for several batches"));
    if (c->job.parallel.tp > 1)
        say(a, l, "less-tensor-parallel",
            N_("a smaller tensor-parallel degree, as far as memory "
               "allows"));
    say(a, l, "faster-link", N_("cards joined by NVLink or a switch instead of PCIe"));
}

static void for_storage(tv_arena *a, advice_list *l)
{
    say(a, l, "pack",
        N_("pack small files into records (tar, LMDB, Parquet) and read them in order"));
    say(a, l, "nvme-cache", N_("copy the data to local NVMe, or add memory for the page cache"));
    say(a, l, "dali-still-reads",
        N_("GPU decoders such as DALI do not help here: the source is "
           "read all the same"));
}

static void for_decode(tv_arena *a, advice_list *l)
{
    say(a, l, "more-workers",
        N_("more loader workers (--loader-workers), up to the cores there are"));
    say(a, l, "pre-resize", N_("store the samples at the size that is used"));
    say(a, l, "gpu-decode", N_("decode on the GPU (DALI, nvJPEG)"));
}

static void for_copy(tv_arena *a, advice_list *l)
{
    say(a, l, "pin",
        N_("pinned memory and non_blocking copies; 8-bit samples, converted on the card"));
    /* cheapest first, the card last: the order of the guides' own remedy */
    say(a, l, "memory-channels", N_("fill more of the CPU's memory channels (2 to 4)"));
    say(a, l, "ddr5", N_("DDR5 instead of DDR4 under the loader"));
    say(a, l, "nvme-cache-copy", N_("an NVMe cache for what the page cache cannot hold"));
    say(a, l, "faster-slot", N_("a card with a faster or wider host link, last"));
}

static void advise(tv_arena *a, const tv_case *c, const tv_memory *m, tv_bound bound,
                   advice_list *l)
{
    switch (bound) {
    case TV_BOUND_UNKNOWN:
    case TV_BOUND_COUNT:
        return;
    case TV_BOUND_COMPUTE:
    case TV_BOUND_MEMORY:
        for_kernels(a, c, bound == TV_BOUND_COMPUTE, l);
        break;
    case TV_BOUND_LAUNCH:
        for_launch(a, c, l);
        break;
    case TV_BOUND_COMMUNICATION:
        for_communication(a, c, l);
        break;
    case TV_BOUND_STORAGE:
        for_storage(a, l);
        break;
    case TV_BOUND_DECODE:
        for_decode(a, l);
        break;
    case TV_BOUND_HOST_COPY:
        for_copy(a, l);
        break;
    }
    /* Memory is only the entrance: once the job fits, more of it speeds nothing up. */
    if (m->verdict == TV_FITS && m->total_bytes < 0.7 * m->capacity_bytes)
        say(a, l, "no-more-memory",
            N_("a card with more memory would not help: the job fits with "
               "room to spare"));
}

void tv_predict_balance(tv_arena *a, const tv_case *c, const tv_memory *memory, const tv_time *time,
                        tv_balance *out)
{
    *out = (tv_balance){0};
    const double step = time->step_s.v;
    if (!(step > 0))
        return;
    const gains g = gains_of(time);
    for (tv_bound b = TV_BOUND_COMPUTE; b < TV_BOUND_COUNT; b++)
        if (g.s[b] > g.s[out->bottleneck])
            out->bottleneck = b;
    out->share_communication = time->comm_exposed_s / step;
    out->share_data = time->data_exposed_s / step;
    out->share_compute = 1 - out->share_communication - out->share_data;
    /* Some time always remains: a hundredth of the step stands for what no lane models. */
    const double rest = fmax(step - g.s[out->bottleneck], 0.01 * step);
    out->gain_if_removed = step / rest - 1;
    advice_list list = {0};
    advise(a, c, memory, out->bottleneck, &list);
    out->advice = list.v;
    out->n_advice = list.n;
}
