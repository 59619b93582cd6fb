/* Kineto's categories of every era, Paddle's, and the rows of TensorFlow and JAX that are told by
 * the names of processes and threads. Names and numbers only: nothing is reckoned here. */
#include "chrome_event.h"

#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "glean.h"
#include "op_flop.h"

typedef struct known_cat {
    const char *name;
    tv_event_is is;
} known_cat;

static const known_cat known_cats[] = {
    /* PyTorch since 2022 */
    {"kernel", TV_EVENT_KERNEL},
    {"gpu_memcpy", TV_EVENT_MEMCPY},
    {"gpu_memset", TV_EVENT_MEMSET},
    {"cpu_op", TV_EVENT_OP},
    {"cuda_runtime", TV_EVENT_RUNTIME},
    {"cuda_driver", TV_EVENT_RUNTIME},
    {"hip_runtime", TV_EVENT_RUNTIME},
    {"xpu_runtime", TV_EVENT_RUNTIME},
    {"xpu_driver", TV_EVENT_RUNTIME},
    {"mtia_runtime", TV_EVENT_RUNTIME},
    {"privateuse1_runtime", TV_EVENT_RUNTIME},
    {"cuda_sync", TV_EVENT_SYNC},
    {"xpu_sync", TV_EVENT_SYNC},
    {"user_annotation", TV_EVENT_MARK},
    {"gpu_user_annotation", TV_EVENT_DEVICE_MARK},
    {"python_function", TV_EVENT_PYTHON},
    {"cpu_instant_event", TV_EVENT_MEMORY},
    {"ac2g", TV_EVENT_PASSED},
    {"fwdbwd", TV_EVENT_PASSED},
    {"overhead", TV_EVENT_PASSED},
    {"Trace", TV_EVENT_PASSED},
    {"external_correlation", TV_EVENT_PASSED},
    {"cuda_profiler_range", TV_EVENT_PASSED},
    {"cuda_event", TV_EVENT_PASSED},
    {"collective_comm", TV_EVENT_PASSED},
    {"hardware_counters", TV_EVENT_PASSED},
    /* before */
    {"Kernel", TV_EVENT_KERNEL},
    {"Memcpy", TV_EVENT_MEMCPY},
    {"Memset", TV_EVENT_MEMSET},
    {"Operator", TV_EVENT_OP},
    {"Runtime", TV_EVENT_RUNTIME},
    {"async_gpu", TV_EVENT_PASSED},
    {"forward_backward", TV_EVENT_PASSED},
    /* Paddle */
    {"OperatorInner", TV_EVENT_OP},
    {"PythonOp", TV_EVENT_OP},
    {"CudaRuntime", TV_EVENT_RUNTIME},
    {"ProfileStep", TV_EVENT_STEP},
    {"Dataloader", TV_EVENT_LOADER},
    {"UserDefined", TV_EVENT_MARK},
    {"PythonUserDefined", TV_EVENT_MARK},
    {"Forward", TV_EVENT_PASSED},
    {"Backward", TV_EVENT_PASSED},
    {"Optimization", TV_EVENT_PASSED},
    {"Communication", TV_EVENT_PASSED},
    {"async", TV_EVENT_PASSED},
    {"Allocate", TV_EVENT_MEMORY},
    {"Free", TV_EVENT_MEMORY},
    {"ReservedAllocate", TV_EVENT_MEMORY},
    {"ReservedFree", TV_EVENT_MEMORY},
};

void tv_trace_tally_open(tv_arena *a, tv_timeline *timeline, tv_trace_tally *out)
{
    *out = (tv_trace_tally){.a = a, .timeline = timeline};
    out->lanes = tv_new(a, tv_trace_lane, TV_TRACE_LANES);
}

/* ---- categories ---- */

static tv_trace_cat *cat_of(tv_trace_tally *t, tv_str name)
{
    if (t->n_cats && tv_str_eq(t->cats[t->last_cat].name, name))
        return &t->cats[t->last_cat];
    size_t i = 0;
    while (i < t->n_cats && !tv_str_eq(t->cats[i].name, name))
        i++;
    if (i == t->n_cats) {
        if (i == TV_TRACE_CATS - 1) /* the last one stands for the rest */
            return &t->cats[TV_TRACE_CATS - 1];
        tv_trace_cat *c = &t->cats[t->n_cats++];
        c->name = tv_str_copy(t->a, tv_str_take(name, 64));
        for (size_t k = 0; k < sizeof known_cats / sizeof *known_cats; k++)
            if (tv_str_is(name, known_cats[k].name))
                c->is = known_cats[k].is;
    }
    t->last_cat = i;
    return &t->cats[i];
}

/* ---- numbers of events ---- */

static int64_t whole(tv_str s, int64_t otherwise)
{
    const bool minus = s.n && *s.p == '-';
    const char *p = s.p + minus, *end = s.p + s.n;
    if (p == end || *p < '0' || *p > '9')
        return otherwise;
    uint64_t v = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        v = v < UINT64_MAX / 16 ? v * 10 + (uint64_t)(*p - '0') : v;
    v &= INT64_MAX;
    return minus ? -(int64_t)v : (int64_t)v;
}

static bool key_is(tv_str key, const char *name, size_t n)
{
    return key.n == n && memcmp(key.p, name, n) == 0;
}
#define KEY(key, literal) key_is((key), "" literal, sizeof(literal) - 1)

static int64_t dur_of(const tv_event *e)
{
    return e->has_dur ? e->dur_ns : 0;
}

/* ---- the device's work ---- */

typedef struct work_args {
    tv_work work;
    tv_collective collective;
    bool told; /* the profile tells what the collective is */
} work_args;

static void read_collective(tv_collective *c, tv_str key, tv_str value, bool *told)
{
    if (KEY(key, "Collective name")) {
        c->name = value;
        *told = true;
    } else if (KEY(key, "In msg nelems")) {
        c->in_elements = tv_read_number(value);
    } else if (KEY(key, "Out msg nelems")) {
        c->out_elements = tv_read_number(value);
    } else if (KEY(key, "dtype")) {
        c->dtype = value;
    } else if (KEY(key, "Group size")) {
        c->group_size = tv_read_number(value);
    }
}

/* stream, device and correlation; then, where they are wanted, bytes or the collective. */
static void read_work_args(const tv_event *e, work_args *w, bool is_copy, bool is_collective)
{
    unsigned left = 3;
    tv_arg_scan scan = tv_args_of(e->args);
    tv_str key, value;
    while ((left || is_copy || is_collective) && tv_args_next(&scan, &key, &value)) {
        if (KEY(key, "stream")) {
            w->work.stream = whole(value, 0);
            left--;
        } else if (KEY(key, "device")) {
            w->work.device = (uint32_t)whole(value, 0);
            left--;
        } else if (KEY(key, "correlation") || KEY(key, "correlation id")) {
            w->work.call = (uint64_t)whole(value, 0);
            left--;
        } else if (is_copy && KEY(key, "bytes")) {
            w->work.bytes = tv_read_number(value);
        } else if (is_collective) {
            read_collective(&w->collective, key, value, &w->told);
        }
        left = left > 3 ? 0 : left;
    }
}

static tv_copy_way way_of(tv_str name)
{
    if (tv_str_has(name, TV_S("HtoD")) || tv_str_has(name, TV_S("HostToDevice")) ||
        tv_str_has(name, TV_S("MEMCPY_HtoD")) || tv_str_has(name, TV_S("H2D")))
        return TV_COPY_HTOD;
    if (tv_str_has(name, TV_S("DtoH")) || tv_str_has(name, TV_S("DeviceToHost")) ||
        tv_str_has(name, TV_S("D2H")))
        return TV_COPY_DTOH;
    if (tv_str_has(name, TV_S("DtoD")) || tv_str_has(name, TV_S("DeviceToDevice")) ||
        tv_str_has(name, TV_S("D2D")))
        return TV_COPY_DTOD;
    if (tv_str_has(name, TV_S("PtoP")) || tv_str_has(name, TV_S("P2P")))
        return TV_COPY_PTOP;
    return TV_COPY_OTHER;
}

/* Paddle writes the duration behind each name: "gemm[0.012 ms]". */
static tv_str bare_name(tv_str name)
{
    if (!tv_str_ends(name, TV_S(" ms]")))
        return name;
    const char *open = memrchr(name.p, '[', name.n);
    return open ? tv_str_span(name.p, open) : name;
}

static void count_work(tv_trace_tally *t, const tv_event *e, tv_event_is is)
{
    const tv_str name = bare_name(e->name);
    work_args w = {.work = {.name = tv_timeline_name(t->timeline, name),
                            .start_ns = e->ts_ns,
                            .dur_ns = dur_of(e),
                            .device = (uint32_t)whole(e->pid, 0),
                            .stream = whole(e->tid, 0),
                            .bytes = (double)NAN},
                   .collective = {.in_elements = (double)NAN,
                                  .out_elements = (double)NAN,
                                  .group_size = (double)NAN}};
    const tv_kernel_class class = tv_timeline_class(t->timeline, w.work.name);
    if (is == TV_EVENT_KERNEL && (class == TV_CLASS_MEMCPY || class == TV_CLASS_MEMSET))
        is = class == TV_CLASS_MEMCPY ? TV_EVENT_MEMCPY : TV_EVENT_MEMSET;
    read_work_args(e, &w, is == TV_EVENT_MEMCPY,
                   is == TV_EVENT_KERNEL && class == TV_CLASS_COMMUNICATION);
    if (is == TV_EVENT_MEMSET)
        w.work.way = TV_COPY_SET;
    if (is == TV_EVENT_MEMCPY) {
        w.work.way = way_of(name);
        w.work.pageable = tv_str_has(name, TV_S("ageable"));
        w.work.pinned = tv_str_has(name, TV_S("inned"));
    }
    t->negative_streams = t->negative_streams || w.work.stream < 0;
    tv_timeline_work(t->timeline, &w.work);
    if (!w.told)
        return;
    w.collective.start_ns = e->ts_ns;
    w.collective.dur_ns = dur_of(e);
    tv_timeline_collective(t->timeline, &w.collective);
}

/* ---- the host's calls ---- */

static void count_call(tv_trace_tally *t, const tv_event *e)
{
    const tv_str name = bare_name(e->name);
    t->hip_calls += tv_str_starts(name, TV_S("hip"));
    t->cuda_calls += tv_str_starts(name, TV_S("cu"));
    uint64_t call = 0;
    const tv_call_kind kind = tv_timeline_call_kind(t->timeline, name);
    if (kind.puts_work) {
        tv_arg_scan scan = tv_args_of(e->args);
        tv_str key, value;
        while (tv_args_next(&scan, &key, &value))
            if (KEY(key, "correlation") || KEY(key, "correlation id")) {
                call = (uint64_t)whole(value, 0);
                break;
            }
    }
    tv_timeline_host(t->timeline, kind.waits ? TV_HOST_SYNC : TV_HOST_CALL, name, e->ts_ns,
                     dur_of(e), call);
}

static void count_sync(tv_trace_tally *t, const tv_event *e)
{
    t->syncs++;
    if (e->tid.n && *e->tid.p == '-')
        t->negative_streams = true;
    tv_arg_scan scan = tv_args_of(e->args);
    tv_str key, value;
    while (!t->negative_streams && tv_args_next(&scan, &key, &value))
        if (KEY(key, "stream"))
            t->negative_streams = whole(value, 0) < 0;
    for (size_t i = 0; i < t->n_sync_kinds; i++)
        if (tv_str_eq(t->sync_kinds[i], e->name))
            return;
    if (t->n_sync_kinds < TV_TRACE_SYNC_KINDS)
        t->sync_kinds[t->n_sync_kinds++] = tv_str_copy(t->a, tv_str_take(e->name, 64));
}

/* ---- what the host did, by its names ---- */

static void count_host(tv_trace_tally *t, const tv_event *e, tv_host_kind kind)
{
    tv_timeline_host(t->timeline, kind, e->name, e->ts_ns, dur_of(e), 0);
}

/* "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", what Lightning and TensorFlow
 * call it, and Python's own frame. */
static bool count_loader(tv_trace_tally *t, const tv_event *e)
{
    const tv_str name = e->name;
    if (tv_str_starts(name, TV_S("enumerate(Data"))) {
        const bool single = tv_str_has(name, TV_S("_SingleProcess"));
        const bool multi = tv_str_has(name, TV_S("_MultiProcess"));
        count_host(t, e,
                   single  ? TV_HOST_LOADER_SINGLE
                   : multi ? TV_HOST_LOADER_MULTI
                           : TV_HOST_LOADER);
        return true;
    }
    if (tv_str_ends(name, TV_S("dataloader_next")) || tv_str_ends(name, TV_S("val_next")) ||
        tv_str_is(name, "IteratorGetNext") ||
        (tv_str_ends(name, TV_S(": __next__")) && tv_str_has(name, TV_S("/dataloader.py")))) {
        count_host(t, e, TV_HOST_LOADER);
        return true;
    }
    return false;
}

static bool count_save(tv_trace_tally *t, const tv_event *e)
{
    const tv_str name = e->name;
    const bool is =
        tv_str_has(name, TV_S("save_checkpoint")) || tv_str_has(name, TV_S("checkpoint_save")) ||
        tv_str_is(name, "torch.save") || tv_str_is(name, "save_model") ||
        tv_str_is(name, "checkpoint") ||
        (tv_str_ends(name, TV_S(": save")) && tv_str_has(name, TV_S("/serialization.py")));
    if (is)
        count_host(t, e, TV_HOST_SAVE);
    return is;
}

static int64_t step_number(tv_str name)
{
    const tv_cut cut = tv_str_cut(name, '#');
    return cut.found ? whole(cut.tail, -1) : -1;
}

static void count_mark(tv_trace_tally *t, const tv_event *e, bool on_device)
{
    if (tv_str_starts(e->name, TV_S("ProfilerStep#")) ||
        tv_str_starts(e->name, TV_S("ProfileStep"))) {
        tv_timeline_step(t->timeline, step_number(e->name), e->ts_ns, dur_of(e), on_device);
        return;
    }
    if (on_device)
        return;
    if (!count_loader(t, e))
        (void)count_save(t, e);
}

static void count_op(tv_trace_tally *t, const tv_event *e)
{
    const tv_str name = e->name;
    if (tv_str_starts(name, TV_S("aten::"))) {
        if (tv_str_is(name, "aten::_local_scalar_dense"))
            count_host(t, e, TV_HOST_ITEM);
        const tv_op_flop flop = tv_op_flop_of(name, e->args);
        t->gemm_ops += flop.flop > 0 && flop.is == TV_CLASS_GEMM;
        tv_timeline_flop(t->timeline, flop.is, flop.dtype, flop.flop);
        return;
    }
    /* nn.DataParallel's own functions, each step anew. */
    static const char *const replicas[] = {"DataParallel.forward", "Scatter", "Gather",
                                           "Broadcast"};
    for (size_t i = 0; i < sizeof replicas / sizeof *replicas; i++)
        if (tv_str_is(name, replicas[i])) {
            t->replicas++;
            t->replica_kinds |= 1u << i;
        }
    t->searches +=
        tv_str_starts(name, TV_S("cudnnFind")) || tv_str_starts(name, TV_S("miopenFind"));
    if (*name.p == 'P' || *name.p == 'e' || *name.p == '[' || *name.p == 'I')
        count_mark(t, e, false);
}

static void count_python(tv_trace_tally *t, const tv_event *e)
{
    const char last = e->name.p[e->name.n - 1];
    if (last == '_')
        (void)count_loader(t, e);
    else if (last == 'e' || last == 't')
        (void)count_save(t, e);
}

/* ---- memory ---- */

static void count_memory(tv_trace_tally *t, const tv_event *e)
{
    double allocated = (double)NAN, reserved = (double)NAN, type = 1;
    uint32_t device = 0;
    tv_arg_scan scan = tv_args_of(e->args);
    tv_str key, value;
    while (tv_args_next(&scan, &key, &value)) {
        if (KEY(key, "Total Allocated") || KEY(key, "current_allocated"))
            allocated = tv_read_number(value);
        else if (KEY(key, "Total Reserved") || KEY(key, "current_reserved"))
            reserved = tv_read_number(value);
        else if (KEY(key, "Device Type"))
            type = tv_read_number(value);
        else if (KEY(key, "Device Id"))
            device = (uint32_t)whole(value, 0);
        else if (KEY(key, "place") && !tv_str_has(value, TV_S("gpu")) &&
                 !tv_str_has(value, TV_S("GPU")))
            type = 0;
    }
    if (type > 0) /* 0 is the host */
        tv_timeline_memory(t->timeline, device, e->ts_ns, allocated, reserved);
}

/* ---- rows without a category ---- */

static tv_trace_lane *lane_of(tv_trace_tally *t, tv_str pid, tv_str tid, bool make)
{
    uint64_t hash = tv_str_hash(pid) * 31 + (tid.n ? tv_str_hash(tid) : 7);
    hash += hash == 0;
    size_t at = hash % TV_TRACE_LANES;
    while (t->lanes[at].hash && t->lanes[at].hash != hash)
        at = (at + 1) % TV_TRACE_LANES;
    if (t->lanes[at].hash || !make)
        return t->lanes[at].hash ? &t->lanes[at] : NULL;
    if (t->n_lanes >= TV_TRACE_LANES / 2)
        return NULL;
    t->n_lanes++;
    t->lanes[at].hash = hash;
    return &t->lanes[at];
}

static tv_str name_in(tv_str args)
{
    tv_arg_scan scan = tv_args_of(args);
    tv_str key, value;
    while (tv_args_next(&scan, &key, &value))
        if (KEY(key, "name"))
            return value;
    return (tv_str){0};
}

/* "/device:GPU:0" of TensorFlow and JAX; of its older timeline only the rows of all streams and of
 * copies, for the others repeat them. */
static void name_process(tv_trace_tally *t, const tv_event *e)
{
    const tv_str name = name_in(e->args);
    tv_trace_lane *lane = lane_of(t, e->pid, (tv_str){0}, true);
    if (!lane)
        return;
    lane->is = TV_EVENT_OP;
    tv_str rest = {0};
    if (!tv_past(name, "GPU:", &rest) && !tv_past(name, "gpu:", &rest))
        return;
    lane->device = (uint32_t)whole(rest, 0);
    const bool one_stream =
        tv_str_has(rest, TV_S("/stream:")) && !tv_str_has(rest, TV_S("stream:all"));
    const bool launches = tv_str_ends(rest, TV_S(" Compute")) && !tv_str_has(rest, TV_S("/"));
    lane->is = one_stream ? TV_EVENT_PASSED : launches ? TV_EVENT_OP : TV_EVENT_KERNEL;
}

/* Of a device's threads only the streams are work; the rest sums up the same by modules and
 * scopes. */
static void name_thread(tv_trace_tally *t, const tv_event *e)
{
    const tv_trace_lane *process = lane_of(t, e->pid, (tv_str){0}, false);
    if (!process || process->is != TV_EVENT_KERNEL)
        return;
    const tv_str name = name_in(e->args);
    tv_trace_lane *lane = lane_of(t, e->pid, e->tid, true);
    if (!lane)
        return;
    lane->device = process->device;
    lane->steps = tv_str_is(name, "Steps");
    const bool stream = tv_str_has(name, TV_S("tream")) || tv_str_is(name, "XLA Ops");
    lane->is = lane->steps ? TV_EVENT_STEP : stream ? TV_EVENT_KERNEL : TV_EVENT_PASSED;
}

static void count_untold(tv_trace_tally *t, tv_event *e)
{
    /* PyTorch's first profiler, up to 1.13 without Kineto */
    if (tv_str_starts(e->pid, TV_S("CUDA ")) || tv_str_starts(e->pid, TV_S("GPU "))) {
        e->pid = e->tid;
        e->tid = (tv_str){0};
        count_work(t, e, TV_EVENT_KERNEL);
        return;
    }
    const tv_trace_lane *lane = lane_of(t, e->pid, e->tid, false);
    if (!lane)
        lane = lane_of(t, e->pid, (tv_str){0}, false);
    if (lane && lane->is == TV_EVENT_PASSED)
        return;
    if (lane && lane->is == TV_EVENT_STEP) {
        tv_timeline_step(t->timeline, whole(e->name, -1), e->ts_ns, dur_of(e), true);
        return;
    }
    if (lane && lane->is == TV_EVENT_KERNEL) {
        /* The process's number is no device's. */
        const tv_str args = e->args;
        e->args = (tv_str){0};
        char text[16];
        size_t n = sizeof text;
        uint32_t d = lane->device;
        do
            text[--n] = (char)('0' + d % 10);
        while ((d /= 10) && n);
        e->pid = (tv_str){text + n, sizeof text - n};
        count_work(t, e, TV_EVENT_KERNEL);
        e->args = args;
        return;
    }
    if (e->name.n)
        count_op(t, e);
}

/* ---- the face ---- */

static void saw(tv_trace_tally *t, const tv_event *e)
{
    const int64_t end = e->ts_ns + dur_of(e);
    if (!t->spanned) {
        t->spanned = true;
        t->first_ns = e->ts_ns;
        t->last_ns = end;
    }
    t->first_ns = e->ts_ns < t->first_ns ? e->ts_ns : t->first_ns;
    t->last_ns = end > t->last_ns ? end : t->last_ns;
    t->fractions = t->fractions || e->ts_fraction;
}

static void count_complete(tv_trace_tally *t, tv_event *e, tv_event_is is)
{
    switch (is) {
    case TV_EVENT_UNTOLD:
        count_untold(t, e);
        return;
    case TV_EVENT_PASSED:
    case TV_EVENT_MEMORY:
        return;
    case TV_EVENT_OP:
        count_op(t, e);
        return;
    case TV_EVENT_PYTHON:
        count_python(t, e);
        return;
    case TV_EVENT_RUNTIME:
        count_call(t, e);
        return;
    case TV_EVENT_KERNEL:
    case TV_EVENT_MEMCPY:
    case TV_EVENT_MEMSET:
        count_work(t, e, is);
        return;
    case TV_EVENT_SYNC:
        count_sync(t, e);
        return;
    case TV_EVENT_MARK:
    case TV_EVENT_DEVICE_MARK:
        count_mark(t, e, is == TV_EVENT_DEVICE_MARK);
        return;
    case TV_EVENT_STEP:
        tv_timeline_step(t->timeline, step_number(bare_name(e->name)), e->ts_ns, dur_of(e), false);
        return;
    case TV_EVENT_LOADER:
        count_host(t, e, TV_HOST_LOADER);
        return;
    }
}

void tv_trace_count(tv_trace_tally *t, const tv_event *event)
{
    tv_event e = *event;
    t->events++;
    t->phases[(unsigned char)e.ph < TV_PHASES ? (unsigned char)e.ph : 0]++;
    tv_event_is is = TV_EVENT_UNTOLD;
    if (e.cat.n) {
        tv_trace_cat *cat = cat_of(t, e.cat);
        cat->n++;
        cat->completes += e.ph == 'X';
        is = cat->is;
    }
    if (e.ph == 'M') {
        if (tv_str_is(e.name, "process_name"))
            name_process(t, &e);
        else if (tv_str_is(e.name, "thread_name"))
            name_thread(t, &e);
        return;
    }
    if (is == TV_EVENT_MEMORY && e.ph != 0 && e.has_ts)
        count_memory(t, &e);
    if (e.ph != 'X' || !e.has_ts || !e.name.n)
        return;
    if (dur_of(&e) < 0 || dur_of(&e) > TV_LIMIT_TIMELINE_DUR_NS ||
        e.ts_ns > INT64_MAX - TV_LIMIT_TIMELINE_DUR_NS) {
        t->too_long++;
        return;
    }
    saw(t, &e);
    count_complete(t, &e, is);
}
