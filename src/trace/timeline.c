/* Gathering: names are numbered, work is packed into the store, waits and steps are listed, and
 * what needs no order is summed up at once. */
#include "timeline_parts.h"

#include <math.h>
#include <string.h>

#include "base/limits.h"

/* Copies that are large enough for the link to show its speed, those that a program makes to look
 * at a number, and collectives that are all latency. */
static const double large_copy_bytes = 4194304;
static const double small_copy_bytes = 4096;
static const double small_collective_bytes = 262144;

enum { first_slots = 1024 };

/* ---- histograms: buckets of a sixteenth octave ---- */

enum { parts = 16, part_bits = 4 };

void tv_histogram_add(tv_histogram *h, int64_t ns)
{
    const uint64_t v = ns > 0 ? (uint64_t)ns : 0;
    unsigned bucket = (unsigned)v;
    if (v >= parts) {
        const unsigned octave = 63 - (unsigned)__builtin_clzll(v);
        bucket = (octave - part_bits + 1) * parts + (unsigned)(v >> (octave - part_bits) & 15);
    }
    h->v[bucket < TV_HISTOGRAM ? bucket : TV_HISTOGRAM - 1]++;
    h->n++;
}

/* The middle of a bucket, in nanoseconds. */
static double bucket_ns(unsigned bucket)
{
    if (bucket < 2 * parts)
        return bucket;
    const unsigned octave = bucket / parts + part_bits - 1;
    return ldexp(parts + 0.5 + bucket % parts, (int)octave - part_bits);
}

double tv_histogram_quantile(const tv_histogram *h, double share)
{
    if (!h->n)
        return (double)NAN;
    const double wanted = share * (double)h->n;
    double sum = 0;
    for (unsigned i = 0; i < TV_HISTOGRAM; i++) {
        sum += (double)h->v[i];
        if (sum >= wanted)
            return bucket_ns(i) * 1e-9;
    }
    return bucket_ns(TV_HISTOGRAM - 1) * 1e-9;
}

/* ---- opening ---- */

tv_timeline *tv_timeline_open(tv_arena *a)
{
    tv_arena *own = tv_arena_child(a, TV_LIMIT_TIMELINE_BYTES + ((size_t)96 << 20));
    const tv_mark blank = tv_arena_mark(own);
    tv_timeline *t = tv_new(own, tv_timeline, 1);
    t->a = own;
    t->blank = blank;
    t->store = tv_store_open(own, TV_LIMIT_TIMELINE_BYTES);
    t->comm_group = (double)NAN;
    t->n_slots = first_slots;
    t->slots = tv_new(own, uint32_t, first_slots);
    /* The first numbers stand for what comes when there are too many names. */
    for (int c = 0; c < TV_CLASSES; c++)
        *tv_push(own, &t->names) = (tv_named_work){.is = (tv_kernel_class)c};
    return t;
}

/* ---- names ---- */

/* Eight bytes at a time: names are long, and there is one an event. */
static uint64_t hash_of(tv_str s)
{
    static const uint64_t factor = 0x9e3779b97f4a7c15u;
    uint64_t h = s.n * factor;
    while (s.n >= 8) {
        uint64_t word;
        memcpy(&word, s.p, 8);
        h = (h ^ word) * factor;
        h ^= h >> 29;
        s = tv_str_drop(s, 8);
    }
    uint64_t word = 0;
    if (s.n)
        memcpy(&word, s.p, s.n);
    h = (h ^ word) * factor;
    return h ^ h >> 32;
}

static void grow_slots(tv_timeline *t)
{
    t->n_slots *= 2;
    t->slots = tv_new(t->a, uint32_t, t->n_slots);
    for (size_t i = TV_CLASSES; i < t->names.n; i++) {
        size_t at = t->names.v[i].hash & (t->n_slots - 1);
        while (t->slots[at])
            at = (at + 1) & (t->n_slots - 1);
        t->slots[at] = (uint32_t)i;
    }
}

static uint32_t new_name(tv_timeline *t, tv_str name, uint64_t hash, size_t at)
{
    const tv_kernel_class is = tv_kernel_class_of(name);
    if (t->names.n >= TV_LIMIT_TIMELINE_NAMES)
        return (uint32_t)is;
    const tv_str kept = tv_str_copy(t->a, tv_str_take(name, TV_LIMIT_TIMELINE_NAME_BYTES));
    const uint32_t number = (uint32_t)t->names.n;
    *tv_push(t->a, &t->names) =
        (tv_named_work){.hash = hash, .length = name.n, .s = kept, .is = is};
    t->slots[at] = number;
    if (t->names.n * 2 > t->n_slots)
        grow_slots(t);
    return number;
}

uint32_t tv_timeline_name(tv_timeline *t, tv_str name)
{
    const uint64_t hash = hash_of(name);
    size_t at = hash & (t->n_slots - 1);
    while (t->slots[at]) {
        const tv_named_work *n = &t->names.v[t->slots[at]];
        if (n->hash == hash && n->length == name.n && memcmp(n->s.p, name.p, n->s.n) == 0)
            return t->slots[at];
        at = (at + 1) & (t->n_slots - 1);
    }
    return new_name(t, name, hash, at);
}

tv_kernel_class tv_timeline_class(const tv_timeline *t, uint32_t name)
{
    return name < t->names.n ? t->names.v[name].is : TV_CLASS_OTHER;
}

/* ---- work ---- */

static unsigned device_of(tv_timeline *t, uint32_t device)
{
    for (unsigned i = 0; i < t->n_devices; i++)
        if (t->devices[i] == device)
            return i;
    if (t->n_devices == TV_MOST_DEVICES)
        return TV_MOST_DEVICES - 1;
    t->devices[t->n_devices] = device;
    return t->n_devices++;
}

/* The time since the bias, or negative where it does not fit. */
static int64_t packed_time(tv_timeline *t, int64_t at_ns)
{
    if (!t->begun) {
        t->begun = true;
        t->bias = at_ns > INT64_MIN + TV_TIME_SPAN ? at_ns - TV_TIME_SPAN / 2 : INT64_MIN;
    }
    if (at_ns < t->bias || (uint64_t)at_ns - (uint64_t)t->bias >= (uint64_t)TV_TIME_SPAN)
        return -1;
    return at_ns - t->bias;
}

static void count_copy(tv_copies *c, const tv_work *w)
{
    c->n++;
    c->ns += w->dur_ns;
    c->pageable += w->pageable;
    c->pinned += w->pinned;
    if (w->pageable)
        c->pageable_ns += w->dur_ns;
    if (isnan(w->bytes))
        return;
    c->with_bytes++;
    c->bytes += w->bytes;
    c->small += w->bytes < small_copy_bytes;
    if (w->pageable)
        c->pageable_bytes += w->bytes;
    if (w->pinned && w->bytes >= large_copy_bytes) {
        c->large_bytes += w->bytes;
        c->large_ns += w->dur_ns;
    }
}

static void count_work(tv_timeline *t, const tv_work *w)
{
    tv_named_work *name = &t->names.v[w->name];
    name->n++;
    name->sum_ns += w->dur_ns;
    name->most_ns = w->dur_ns > name->most_ns ? w->dur_ns : name->most_ns;
    t->work_ns += w->dur_ns;
    t->by_class[name->is]++;
    t->by_class_ns[name->is] += w->dur_ns;
    t->negative_streams = t->negative_streams || w->stream < 0;
    if (w->way != TV_COPY_NONE) {
        count_copy(&t->copies[w->way], w);
        return;
    }
    t->kernels++;
    t->kernel_ns += w->dur_ns;
    t->comm_kernels += name->is == TV_CLASS_COMMUNICATION;
    if (name->is != TV_CLASS_COMMUNICATION)
        tv_histogram_add(&t->kernel_durs, w->dur_ns);
}

void tv_timeline_work(tv_timeline *t, const tv_work *w)
{
    const int64_t start = packed_time(t, w->start_ns);
    if (start < 0 || w->dur_ns < 0 || w->dur_ns > TV_LIMIT_TIMELINE_DUR_NS ||
        w->name >= t->names.n) {
        t->dropped++;
        return;
    }
    const int64_t dur = w->dur_ns < TV_PIECE_MOST_NS ? w->dur_ns : TV_PIECE_MOST_NS;
    const tv_piece p = {
        .start_low = (uint32_t)start,
        .start_high = (uint16_t)(start >> 32),
        .more = (uint16_t)(device_of(t, w->device) << 10 | (unsigned)(dur >> 32)),
        .dur_low = (uint32_t)dur,
        .link = (uint32_t)w->call,
        .what = w->name << 12 | (w->pageable ? TV_PIECE_PAGEABLE : 0u),
    };
    if (!tv_store_piece(t->store, &p))
        t->dropped++;
    if (t->first_ns == 0 && t->last_ns == 0)
        t->first_ns = w->start_ns;
    t->first_ns = w->start_ns < t->first_ns ? w->start_ns : t->first_ns;
    const int64_t end = w->start_ns + dur;
    t->last_ns = end > t->last_ns || t->work_ns == 0 ? end : t->last_ns;
    count_work(t, w);
}

/* ---- the host ---- */

bool tv_call_waits(tv_str name)
{
    static const char *const waits[] = {
        "StreamSynchronize", "DeviceSynchronize", "EventSynchronize",
        "CtxSynchronize",    "ThreadSynchronize",
    };
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (tv_str_has(name, tv_str_of(waits[i])))
            return true;
    return false;
}

/* cudaMalloc, cudaFree, hipMalloc, cuMemCreate ...; the stream-ordered ones do not wait. */
static bool call_allocates(tv_str name)
{
    static const char *const names[] = {"cudaMalloc",    "cudaFree",     "hipMalloc",  "hipFree",
                                        "cuMemAlloc_v2", "cuMemFree_v2", "cuMemCreate"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tv_str_is(name, names[i]))
            return true;
    return false;
}

static tv_call_kind call_kind(tv_str name)
{
    const bool launches = tv_str_has(name, TV_S("Launch")) || tv_str_has(name, TV_S("launch"));
    return (tv_call_kind){
        .waits = tv_call_waits(name),
        .launches = launches,
        .puts_work =
            launches || tv_str_has(name, TV_S("Memcpy")) || tv_str_has(name, TV_S("Memset")),
        .allocates = call_allocates(name),
    };
}

tv_call_kind tv_timeline_call_kind(tv_timeline *t, tv_str name)
{
    for (size_t i = 0; i < t->n_call_names; i++) {
        const size_t at = (t->last_call_name + i) % t->n_call_names;
        if (tv_str_eq(t->call_names[at].name, name)) {
            t->last_call_name = at;
            return t->call_names[at].kind;
        }
    }
    const tv_call_kind kind = call_kind(name);
    if (t->n_call_names < TV_CALL_NAMES && name.n <= TV_LIMIT_TIMELINE_NAME_BYTES)
        t->call_names[t->n_call_names++] = (tv_call_name){tv_str_copy(t->a, name), kind};
    return kind;
}

static void add_call(tv_timeline *t, int64_t start_ns, int64_t dur_ns, uint64_t call)
{
    const int64_t start = packed_time(t, start_ns);
    if (start < 0 || !(uint32_t)call)
        return;
    const int64_t dur = dur_ns / TV_CALL_DUR_NS;
    tv_store_call(t->store, &(tv_call){
                                .number = (uint32_t)call,
                                .start_low = (uint32_t)start,
                                .start_high = (uint16_t)(start >> 32),
                                .dur = (uint16_t)(dur < UINT16_MAX ? dur : UINT16_MAX),
                            });
}

static void add_span(tv_timeline *t, tv_spans *s, int64_t start_ns, int64_t dur_ns)
{
    if (s->n >= TV_LIMIT_TIMELINE_SPANS) {
        s->more++;
        return;
    }
    *tv_push(t->a, s) = (tv_span_ns){start_ns, start_ns + dur_ns};
}

static void count_call(tv_timeline *t, tv_str name, int64_t dur_ns, bool waits)
{
    t->calls++;
    t->call_ns += dur_ns;
    if (waits) {
        t->waits++;
        t->wait_ns += dur_ns;
    }
    const tv_call_kind kind = tv_timeline_call_kind(t, name);
    if (kind.allocates) {
        t->mallocs++;
        t->malloc_ns += dur_ns;
    }
    if (kind.launches) {
        t->launches++;
        t->launch_ns += dur_ns;
    }
    if (dur_ns > t->longest_call_ns || !t->longest_call.n) {
        t->longest_call_ns = dur_ns;
        /* Seldom: the longest so far grows a few dozen times. */
        t->longest_call = tv_str_copy(t->a, tv_str_take(name, TV_LIMIT_TIMELINE_NAME_BYTES));
    }
}

static void saw_host(tv_timeline *t, int64_t start_ns, int64_t dur_ns)
{
    const int64_t end = start_ns + dur_ns;
    if (!t->host_seen)
        t->host = (tv_span_ns){start_ns, end};
    t->host_seen = true;
    t->host.start = start_ns < t->host.start ? start_ns : t->host.start;
    t->host.end = end > t->host.end ? end : t->host.end;
}

void tv_timeline_host(tv_timeline *t, tv_host_kind kind, tv_str name, int64_t start_ns,
                      int64_t dur_ns, uint64_t call)
{
    if (dur_ns < 0 || dur_ns > TV_LIMIT_TIMELINE_DUR_NS || start_ns > INT64_MAX - dur_ns)
        return;
    saw_host(t, start_ns, dur_ns);
    switch (kind) {
    case TV_HOST_CALL:
    case TV_HOST_SYNC:
        count_call(t, name, dur_ns, kind == TV_HOST_SYNC);
        add_call(t, start_ns, dur_ns, call);
        return;
    case TV_HOST_LOADER:
    case TV_HOST_LOADER_SINGLE:
    case TV_HOST_LOADER_MULTI:
        t->loader_any += kind == TV_HOST_LOADER;
        t->loader_single += kind == TV_HOST_LOADER_SINGLE;
        t->loader_multi += kind == TV_HOST_LOADER_MULTI;
        add_span(t, &t->loader, start_ns, dur_ns);
        return;
    case TV_HOST_SAVE:
        add_span(t, &t->saves, start_ns, dur_ns);
        return;
    case TV_HOST_ITEM:
        t->items++;
        t->item_ns += dur_ns;
        return;
    }
}

void tv_timeline_step(tv_timeline *t, int64_t number, int64_t start_ns, int64_t dur_ns,
                      bool on_device)
{
    tv_step_marks *marks = on_device ? &t->device_steps : &t->steps;
    if (dur_ns < 0 || dur_ns > TV_LIMIT_TIMELINE_DUR_NS || start_ns > INT64_MAX - dur_ns ||
        marks->n >= TV_LIMIT_TIMELINE_STEPS)
        return;
    *tv_push(t->a, marks) = (tv_step_mark){number, {start_ns, start_ns + dur_ns}};
}

/* ---- collectives ---- */

/* Bytes of an element, by any framework's word for it; NaN where it is none that we know. */
static double element_bytes(tv_str dtype)
{
    static const struct {
        const char *word;
        double bytes;
    } sizes[] = {
        {"Float", 4},   {"Half", 2},    {"BFloat16", 2},     {"Double", 8},         {"Long", 8},
        {"Int", 4},     {"Short", 2},   {"Char", 1},         {"Byte", 1},           {"Bool", 1},
        {"float32", 4}, {"float16", 2}, {"float64", 8},      {"float", 4},          {"half", 2},
        {"double", 8},  {"int32", 4},   {"int64", 8},        {"int8", 1},           {"uint8", 1},
        {"uint32", 4},  {"uint64", 8},  {"ComplexFloat", 8}, {"ComplexDouble", 16},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (tv_str_eq_nocase(dtype, tv_str_of(sizes[i].word)))
            return sizes[i].bytes;
    return tv_str_starts(dtype, TV_S("Float8")) ? 1 : (double)NAN;
}

/* What one rank contributes by the convention of nccl-tests, and what of it crosses the wire:
 * docs/model.md, collectives. */
typedef struct collective_size {
    double bytes, factor;
} collective_size;

static collective_size size_of(const tv_collective *c)
{
    const double each = element_bytes(c->dtype);
    const double in = c->in_elements * each, out = c->out_elements * each;
    const double most = isnan(in) || out > in ? out : in;
    const double n = c->group_size;
    if (tv_str_has(c->name, TV_S("allreduce")) || tv_str_has(c->name, TV_S("all_reduce")))
        return (collective_size){in, 2 * (n - 1) / n};
    if (tv_str_has(c->name, TV_S("gather")) || tv_str_has(c->name, TV_S("scatter")) ||
        tv_str_has(c->name, TV_S("all_to_all")) || tv_str_has(c->name, TV_S("alltoall")))
        return (collective_size){most, (n - 1) / n};
    return (collective_size){most, 1};
}

static tv_comm_sum *comm_of(tv_timeline *t, tv_str name)
{
    for (size_t i = 0; i < t->n_comm; i++)
        if (tv_str_eq(t->comm[i].name, name))
            return &t->comm[i];
    if (t->n_comm == TV_COMM_NAMES)
        return &t->comm[TV_COMM_NAMES - 1];
    tv_comm_sum *sum = &t->comm[t->n_comm++];
    sum->name = tv_str_copy(t->a, tv_str_take(name, 64));
    return sum;
}

static void note_kinds(tv_timeline *t, const tv_collective *c)
{
    if (t->collectives == 0) {
        t->comm_dtype = tv_str_copy(t->a, tv_str_take(c->dtype, 32));
        t->comm_group = c->group_size;
    }
    if (!tv_str_eq(t->comm_dtype, tv_str_take(c->dtype, 32)))
        t->comm_dtypes = true;
    if (t->comm_group > c->group_size || t->comm_group < c->group_size)
        t->comm_groups = true;
}

void tv_timeline_collective(tv_timeline *t, const tv_collective *c)
{
    if (c->dur_ns < 0 || c->dur_ns > TV_LIMIT_TIMELINE_DUR_NS)
        return;
    note_kinds(t, c);
    t->collectives++;
    if (!isnan(c->in_elements))
        t->comm_in_elements += c->in_elements;
    tv_comm_sum *sum = comm_of(t, c->name);
    sum->n++;
    sum->ns += c->dur_ns;
    const collective_size size = size_of(c);
    if (isnan(size.bytes) || !(size.bytes >= 0))
        return;
    sum->sized++;
    sum->sized_s += (double)c->dur_ns * 1e-9;
    sum->bytes += size.bytes;
    sum->wire_bytes += size.bytes * size.factor;
    sum->small += size.bytes < small_collective_bytes;
}

/* ---- memory ---- */

/* Twice as long spans: pairs are joined. */
static void widen(tv_memory_line *m)
{
    for (size_t i = 0; i < TV_MEMORY_BINS / 2; i++) {
        const size_t k = 2 * i;
        const bool first = !isnan(m->low[k]), second = !isnan(m->low[k + 1]);
        m->low[i] = !first                                ? m->low[k + 1]
                    : second && m->low[k + 1] < m->low[k] ? m->low[k + 1]
                                                          : m->low[k];
        m->high[i] = !first                                  ? m->high[k + 1]
                     : second && m->high[k + 1] > m->high[k] ? m->high[k + 1]
                                                             : m->high[k];
    }
    m->bin_ns *= 2;
    m->n = (m->n + 1) / 2;
}

static void begin_memory(tv_memory_line *m, int64_t at_ns)
{
    m->seen = true;
    m->begin = at_ns;
    m->bin_ns = 100000; /* 0.1 ms: 26 ms before they widen */
    for (size_t i = 0; i < TV_MEMORY_BINS; i++)
        m->low[i] = m->high[i] = (double)NAN;
}

void tv_timeline_memory(tv_timeline *t, uint32_t device, int64_t at_ns, double allocated_bytes,
                        double reserved_bytes)
{
    tv_memory_line *m = &t->memory[device < TV_MOST_DEVICES ? device : TV_MOST_DEVICES - 1];
    if (!m->seen)
        begin_memory(m, at_ns);
    if (at_ns < m->begin)
        at_ns = m->begin;
    if (at_ns > INT64_MAX / 2 || at_ns - m->begin > TV_LIMIT_TIMELINE_DUR_NS ||
        isnan(allocated_bytes))
        return;
    while ((at_ns - m->begin) / m->bin_ns >= TV_MEMORY_BINS) {
        widen(m);
        for (size_t i = TV_MEMORY_BINS / 2; i < TV_MEMORY_BINS; i++)
            m->low[i] = m->high[i] = (double)NAN;
    }
    const size_t bin = (size_t)((at_ns - m->begin) / m->bin_ns);
    m->n = bin + 1 > m->n ? bin + 1 : m->n;
    m->events++;
    if (!(m->low[bin] <= allocated_bytes))
        m->low[bin] = allocated_bytes;
    if (!(m->high[bin] >= allocated_bytes))
        m->high[bin] = allocated_bytes;
    m->peak_bytes = allocated_bytes > m->peak_bytes ? allocated_bytes : m->peak_bytes;
    if (reserved_bytes > m->peak_reserved_bytes)
        m->peak_reserved_bytes = reserved_bytes;
}

/* ---- arithmetic ---- */

void tv_timeline_flop(tv_timeline *t, tv_kernel_class kind, tv_str dtype, double flop)
{
    if (!(flop > 0))
        return;
    t->flop[kind] += flop;
    t->flop_ops[kind]++;
    for (size_t i = 0; i < t->n_dtypes; i++)
        if (tv_str_eq(t->dtypes[i].dtype, dtype)) {
            t->dtypes[i].flop += flop;
            return;
        }
    if (t->n_dtypes < TV_DTYPES)
        t->dtypes[t->n_dtypes++] = (tv_flops){tv_str_copy(t->a, tv_str_take(dtype, 32)), flop};
}
