/* The sweep's sums under the names of docs/facts/trace.md. Nothing is judged here but what one
 * profile says of itself: shares, grades, achieved rates. */
#include "timeline_parts.h"

#include <math.h>
#include <stdlib.h>

#include "desc/estimate.h"

enum { top_kernels = 20, least_memory_bins = 12 };

typedef struct writing {
    const tv_timeline *t;
    const tv_swept *w;
    tv_arena *a;
    tv_note *facts;
    double each; /* devices, as a divisor: sums over devices become means */
} writing;

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

static void put(const writing *o, const char *key, double v)
{
    (void)tv_note_num(o->a, o->facts, key, v);
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : (double)NAN;
}

/* The time in which the device does any of these things; `not`: and none of those. */
static double does_s(const writing *o, const int64_t *masks, unsigned any, unsigned not )
{
    int64_t sum = 0;
    for (unsigned m = 1; m < TV_MASKS; m++)
        if (m & any && !(m & not ))
            sum += masks[m];
    return seconds(sum) / o->each;
}

static double both_s(const writing *o, unsigned x, unsigned y)
{
    int64_t sum = 0;
    for (unsigned m = 1; m < TV_MASKS; m++)
        if (m & x && m & y)
            sum += o->w->all_ns[m];
    return seconds(sum) / o->each;
}

static double window_s(const writing *o)
{
    return seconds(o->w->window.end - o->w->window.start);
}

/* ---- steps ---- */

static int by_number(const void *x, const void *y)
{
    const tv_step_mark *a = x, *b = y;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return (a->at.start > b->at.start) - (a->at.start < b->at.start);
}

/* A step that several threads or processes marked counts once, from its first begin to its last
 * end. Marks without a number (negative) are all different. */
static void unite(tv_step_marks *m)
{
    if (!m->n)
        return;
    qsort(m->v, m->n, sizeof *m->v, by_number);
    size_t kept = 0;
    for (size_t i = 1; i < m->n; i++) {
        tv_step_mark *last = &m->v[kept];
        if (m->v[i].number < 0 || m->v[i].number != last->number)
            m->v[++kept] = m->v[i];
        else if (m->v[i].at.end > last->at.end)
            last->at.end = m->v[i].at.end;
    }
    m->n = kept + 1;
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void put_step_spread(const writing *o, const tv_step_marks *m)
{
    double *v = tv_new(o->t->a, double, m->n);
    double sum = 0;
    for (size_t i = 0; i < m->n; i++)
        sum += v[i] = seconds(m->v[i].at.end - m->v[i].at.start);
    qsort(v, m->n, sizeof *v, by_value);
    put(o, "step_median_s", v[m->n / 2]);
    put(o, "step_min_s", v[0]);
    put(o, "step_max_s", v[m->n - 1]);
    put(o, "step_mean_s", sum / (double)m->n);
}

static void put_marks(const writing *o, const char *key, const tv_step_marks *m)
{
    tv_note *list = tv_note_list(o->a, o->facts, key);
    for (size_t i = 0; i < m->n; i++)
        (void)tv_note_num(o->a, list, NULL, seconds(m->v[i].at.end - m->v[i].at.start));
}

/* One step is a number, several are a list. */
static void put_steps(const writing *o)
{
    const tv_step_marks *m = o->t->steps.n ? &o->t->steps : &o->t->device_steps;
    put(o, "steps", (double)m->n);
    if (m->n == 1)
        put(o, "step_s", seconds(m->v[0].at.end - m->v[0].at.start));
    else if (m->n)
        put_marks(o, "step_s", m);
    if (o->t->device_steps.n)
        put_marks(o, "gpu_step_s", &o->t->device_steps);
    if (m->n)
        put_step_spread(o, m);
}

/* ---- the split ---- */

static void put_unions(const writing *o)
{
    const int64_t *all = o->w->all_ns;
    const double compute = does_s(o, all, TV_DOES_COMPUTE, 0);
    const double comm = does_s(o, all, TV_DOES_COMMUNICATION, 0);
    const double both = both_s(o, TV_DOES_COMPUTE, TV_DOES_COMMUNICATION);
    put(o, "device_span_s", seconds(o->t->last_ns - o->t->first_ns));
    put(o, "busy_union_s", does_s(o, all, TV_MASKS - 1, 0));
    put(o, "compute_union_s", compute);
    put(o, "nccl_union_s", comm);
    put(o, "overlap_s", both);
    put(o, "copy_union_s", does_s(o, all, TV_DOES_COPY, 0));
    put(o, "idle_s", seconds(all[0]) / o->each);
    put(o, "overlap", ratio(both, comm));
}

/* Exclusive: computing covers communication, which covers copies; what is left is waiting. */
static void put_shares(const writing *o)
{
    const int64_t *in = o->w->window_ns;
    const double whole = window_s(o);
    tv_note *shares = tv_note_map(o->a, o->facts, "shares");
    const double comm = does_s(o, in, TV_DOES_COMMUNICATION, TV_DOES_COMPUTE);
    const double copy = does_s(o, in, TV_DOES_COPY, TV_DOES_COMPUTE | TV_DOES_COMMUNICATION);
    const double data = seconds(o->w->data_ns) / o->each;
    const double idle = seconds(in[0]) / o->each;
    const struct {
        const char *key;
        double s;
    } rows[] = {
        {"gemm", does_s(o, in, TV_DOES_GEMM, 0)},
        {"conv", does_s(o, in, TV_DOES_CONV, TV_DOES_GEMM)},
        {"attention", does_s(o, in, TV_DOES_ATTENTION, TV_DOES_GEMM | TV_DOES_CONV)},
        {"elementwise", does_s(o, in, TV_DOES_OTHER, TV_DOES_COMPUTE & ~TV_DOES_OTHER)},
        {"memcpy", copy},
        {"communication", comm},
        {"idle", idle - data},
        {"data", data},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        (void)tv_note_num(o->a, shares, rows[i].key, ratio(rows[i].s, whole));
    put(o, "window_s", whole);
    put(o, "exposed_comm_s", comm);
    put(o, "exposed_copy_s", copy);
    put(o, "data_exposed_s", data);
    put(o, "host_wait_s", seconds(o->w->host_ns) / o->each);
    put(o, "window_idle_s", idle);
    if (!o->w->steps)
        return;
    put(o, "exposed_comm_share", ratio(comm, whole));
    put(o, "nccl_share_of_step", ratio(does_s(o, in, TV_DOES_COMMUNICATION, 0), whole));
    put(o, "idle_share", ratio(idle, whole));
    put(o, "host_wait_share", ratio(seconds(o->w->host_ns) / o->each, whole));
}

static void put_density(const writing *o)
{
    int64_t all = 0;
    for (int c = 0; c < TV_CLASSES; c++)
        if (c != TV_CLASS_COMMUNICATION && c != TV_CLASS_MEMCPY && c != TV_CLASS_MEMSET)
            all += o->t->by_class_ns[c];
    if (all == 0)
        return;
    const int64_t dense = o->t->by_class_ns[TV_CLASS_GEMM] + o->t->by_class_ns[TV_CLASS_CONV] +
                          o->t->by_class_ns[TV_CLASS_ATTENTION];
    const double share = ratio(seconds(dense), seconds(all));
    put(o, "gemm_share", share);
    static const char *const words[] = {
        [TV_GRADE_UNKNOWN] = "",
        [TV_GRADE_GOOD] = "good",
        [TV_GRADE_FAIR] = "fair",
        [TV_GRADE_POOR] = "poor",
    };
    (void)tv_note_str(o->a, o->facts, "grade", tv_str_of(words[tv_grade_of_gemm_share(share)]));
}

static void put_classes(const writing *o)
{
    tv_note *map = tv_note_map(o->a, o->facts, "classes");
    for (int c = 0; c < TV_CLASSES; c++) {
        if (!o->t->by_class[c])
            continue;
        tv_note *row = tv_note_map(o->a, map, tv_kernel_class_name((tv_kernel_class)c));
        (void)tv_note_num(o->a, row, "count", (double)o->t->by_class[c]);
        (void)tv_note_num(o->a, row, "s", seconds(o->t->by_class_ns[c]));
    }
}

/* ---- kernels and copies ---- */

static void put_top(const writing *o)
{
    const tv_named_work *best[top_kernels];
    size_t n = 0;
    for (size_t i = 0; i < o->t->names.n; i++) {
        const tv_named_work *k = &o->t->names.v[i];
        if (!k->n || (n == top_kernels && k->sum_ns <= best[n - 1]->sum_ns))
            continue;
        size_t at = n < top_kernels ? n++ : n - 1;
        for (; at > 0 && best[at - 1]->sum_ns < k->sum_ns; at--)
            best[at] = best[at - 1];
        best[at] = k;
    }
    tv_note *list = tv_note_list(o->a, o->facts, "top");
    for (size_t i = 0; i < n; i++) {
        tv_note *row = tv_note_map(o->a, list, NULL);
        (void)tv_note_str(o->a, row, "name", best[i]->s.n ? best[i]->s : TV_S("(further kernels)"));
        (void)tv_note_str(o->a, row, "class", tv_str_of(tv_kernel_class_name(best[i]->is)));
        (void)tv_note_num(o->a, row, "count", (double)best[i]->n);
        (void)tv_note_num(o->a, row, "total_s", seconds(best[i]->sum_ns));
        (void)tv_note_num(o->a, row, "mean_s", seconds(best[i]->sum_ns) / (double)best[i]->n);
        (void)tv_note_num(o->a, row, "max_s", seconds(best[i]->most_ns));
        (void)tv_note_num(o->a, row, "share",
                          ratio(seconds(best[i]->sum_ns), seconds(o->t->work_ns)));
    }
}

static void put_way(const writing *o, const char *count, const char *bytes, const char *time,
                    const char *rate, const tv_copies *c)
{
    if (!c->n)
        return;
    put(o, count, (double)c->n);
    put(o, time, seconds(c->ns));
    if (!c->with_bytes)
        return;
    put(o, bytes, c->bytes);
    put(o, rate, c->with_bytes == c->n ? ratio(c->bytes, seconds(c->ns)) : (double)NAN);
}

static void put_copies(const writing *o)
{
    const tv_copies *c = o->t->copies;
    uint64_t n = 0, with_bytes = 0;
    for (int w = TV_COPY_OTHER; w < TV_COPY_SET; w++) {
        n += c[w].n;
        with_bytes += c[w].with_bytes;
    }
    put(o, "memcpy", (double)n);
    put(o, "memset", (double)c[TV_COPY_SET].n);
    if (!n)
        return;
    (void)tv_note_bool(o->a, o->facts, "memcpy_has_bytes", with_bytes > 0);
    put_way(o, "htod", "htod_bytes", "htod_s", "htod_bytes_per_s", &c[TV_COPY_HTOD]);
    put_way(o, "dtoh", "dtoh_bytes", "dtoh_s", "dtoh_bytes_per_s", &c[TV_COPY_DTOH]);
    put_way(o, "dtod", "dtod_bytes", "dtod_s", "dtod_bytes_per_s", &c[TV_COPY_DTOD]);
    put_way(o, "ptop", "ptop_bytes", "ptop_s", "ptop_bytes_per_s", &c[TV_COPY_PTOP]);
    put(o, "pageable_htod", (double)c[TV_COPY_HTOD].pageable);
    put(o, "pageable_dtoh", (double)c[TV_COPY_DTOH].pageable);
    put(o, "pinned_htod", (double)c[TV_COPY_HTOD].pinned);
    put(o, "small_dtoh", (double)c[TV_COPY_DTOH].small);
    put(o, "pageable_htod_s", seconds(c[TV_COPY_HTOD].pageable_ns));
    if (c[TV_COPY_HTOD].with_bytes)
        put(o, "pageable_htod_bytes", c[TV_COPY_HTOD].pageable_bytes);
    put(o, "pageable_call_s", seconds(tv_store_pageable_ns(o->t->store)));
    put(o, "htod_large_bytes_per_s",
        ratio(c[TV_COPY_HTOD].large_bytes, seconds(c[TV_COPY_HTOD].large_ns)));
    put(o, "dtoh_large_bytes_per_s",
        ratio(c[TV_COPY_DTOH].large_bytes, seconds(c[TV_COPY_DTOH].large_ns)));
}

static void put_kernels(const writing *o)
{
    const tv_timeline *t = o->t;
    put(o, "kernels", (double)t->kernels);
    put(o, "kernel_s", seconds(t->kernel_ns));
    put(o, "nccl_kernels", (double)t->comm_kernels);
    put(o, "gpu_busy_sum_s", seconds(t->work_ns));
    put(o, "kernel_median_s", tv_histogram_quantile(&t->kernel_durs, 0.5));
    put(o, "launch_delay_median_s", tv_histogram_quantile(&o->w->delays, 0.5));
    uint64_t works = t->kernels;
    for (int w = TV_COPY_OTHER; w <= TV_COPY_SET; w++)
        works += t->copies[w].n;
    put(o, "linked_share", ratio((double)tv_store_linked(t->store), (double)works));
    put(o, "gaps", (double)o->w->gaps);
    put(o, "longest_idle_s", seconds(o->w->longest_idle));
    if (t->n_devices == 1)
        put(o, "device", (double)t->devices[0]);
    put(o, "device_count", (double)t->n_devices);
    (void)tv_note_bool(o->a, o->facts, "negative_stream_ids", t->negative_streams);
    if (t->dropped)
        put(o, "dropped_events", (double)t->dropped);
    if (tv_store_spilled_bytes(t->store))
        put(o, "spilled_bytes", (double)tv_store_spilled_bytes(t->store));
}

/* ---- the host ---- */

static int64_t spans_ns(const tv_spans *s)
{
    int64_t sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += s->v[i].end - s->v[i].start;
    return sum;
}

static void put_saves(const writing *o)
{
    const tv_spans *s = &o->t->saves;
    if (!s->n)
        return;
    put(o, "saves", (double)s->n);
    put(o, "save_s", seconds(spans_ns(s)));
    if (s->n > 1)
        put(o, "save_interval_s",
            seconds(s->v[s->n - 1].start - s->v[0].start) / (double)(s->n - 1));
}

static void put_host(const writing *o)
{
    const tv_timeline *t = o->t;
    put(o, "runtime", (double)t->calls);
    if (t->host_seen)
        put(o, "host_span_s", seconds(t->host.end - t->host.start));
    if (t->calls) {
        put(o, "runtime_s", seconds(t->call_ns));
        put(o, "launches", (double)t->launches);
        put(o, "launch_s", seconds(t->launch_ns));
        put(o, "sync_calls", (double)t->waits);
        put(o, "sync_call_s", seconds(t->wait_ns));
        put(o, "device_mallocs", (double)t->mallocs);
        put(o, "device_malloc_s", seconds(t->malloc_ns));
        tv_note *longest = tv_note_map(o->a, o->facts, "longest_runtime");
        (void)tv_note_str(o->a, longest, "name", t->longest_call);
        (void)tv_note_num(o->a, longest, "dur_s", seconds(t->longest_call_ns));
    }
    put(o, "item_calls", (double)t->items);
    put(o, "item_s", seconds(t->item_ns));
    const uint64_t loads = t->loader_any + t->loader_single + t->loader_multi;
    put(o, "loader_single", (double)t->loader_single);
    put(o, "loader_multi", (double)t->loader_multi);
    if (loads) {
        const double waits = seconds(spans_ns(&t->loader));
        put(o, "data_wait_s", waits);
        put(o, "data_waits", (double)loads);
        put(o, "data_wait_share",
            ratio(waits, o->w->steps ? window_s(o) : seconds(t->host.end - t->host.start)));
    }
    put_saves(o);
}

/* ---- communication ---- */

static void put_comm_sum(const writing *o, tv_note *list, const tv_comm_sum *c)
{
    tv_note *row = tv_note_map(o->a, list, NULL);
    (void)tv_note_str(o->a, row, "name", c->name);
    (void)tv_note_num(o->a, row, "count", (double)c->n);
    (void)tv_note_num(o->a, row, "s", seconds(c->ns));
    (void)tv_note_num(o->a, row, "bytes", c->sized ? c->bytes : (double)NAN);
    (void)tv_note_num(o->a, row, "algbw_bytes_per_s", ratio(c->bytes, c->sized_s));
    (void)tv_note_num(o->a, row, "busbw_bytes_per_s", ratio(c->wire_bytes, c->sized_s));
    (void)tv_note_num(o->a, row, "small", (double)c->small);
}

static void put_collectives(const writing *o)
{
    const tv_timeline *t = o->t;
    if (!t->collectives)
        return;
    double bytes = 0, wire = 0, sized_s = 0, all_s = 0;
    uint64_t small = 0, sized = 0;
    tv_note *list = tv_note_list(o->a, o->facts, "by_collective");
    for (size_t i = 0; i < t->n_comm; i++) {
        const tv_comm_sum *c = &t->comm[i];
        put_comm_sum(o, list, c);
        bytes += c->bytes;
        wire += c->wire_bytes;
        sized_s += c->sized_s;
        all_s += seconds(c->ns);
        small += c->small;
        sized += c->sized;
    }
    put(o, "collectives", (double)t->collectives);
    put(o, "in_nelems_total", t->comm_in_elements);
    put(o, "dur_s_total", all_s);
    put(o, "collective_bytes", sized ? bytes : (double)NAN);
    put(o, "algbw_bytes_per_s_total", ratio(bytes, sized_s));
    put(o, "busbw_bytes_per_s_total", ratio(wire, sized_s));
    put(o, "collectives_sized", (double)sized);
    put(o, "small_collectives", (double)small);
    if (!t->comm_groups)
        put(o, "group_size", t->comm_group);
    if (!t->comm_dtypes && t->comm_dtype.n)
        (void)tv_note_str(o->a, o->facts, "dtype", t->comm_dtype);
}

/* The first communication kernels in order: two ranks' lists are laid side by side. */
static void put_comm_kernels(const writing *o)
{
    if (!o->w->n_comm)
        return;
    tv_note *durs = tv_note_list(o->a, o->facts, "nccl_dur_s");
    tv_note *starts = tv_note_list(o->a, o->facts, "nccl_start_s");
    for (size_t i = 0; i < o->w->n_comm; i++) {
        (void)tv_note_num(o->a, durs, NULL, seconds(o->w->comm[i].dur));
        (void)tv_note_num(o->a, starts, NULL, seconds(o->w->comm[i].start - o->t->first_ns));
    }
}

/* ---- memory ---- */

/* The straight line through the low-water marks of the last three quarters: what a step needs and
 * gives back again is above them, what is never given back lifts them. */
static void put_slope(const writing *o, const tv_memory_line *m)
{
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, third[3] = {0}, of[3] = {0};
    const size_t from = m->n / 4;
    for (size_t i = from; i < m->n; i++) {
        if (isnan(m->low[i]))
            continue;
        const double x = ((double)i + 0.5) * seconds(m->bin_ns), y = m->low[i];
        n++;
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
        const size_t k = (i - from) * 3 / (m->n - from);
        third[k] += y;
        of[k]++;
    }
    const double spread = n * sxx - sx * sx;
    if (n < least_memory_bins || !(spread > 0) || !(of[0] > 0 && of[1] > 0 && of[2] > 0))
        return;
    const double slope = (n * sxy - sx * sy) / spread;
    put(o, "mem_slope_bytes_per_s", slope);
    put(o, "mem_growth_bytes", slope * seconds(m->bin_ns) * (double)(m->n - from));
    const double a = third[0] / of[0], b = third[1] / of[1], c = third[2] / of[2];
    (void)tv_note_bool(o->a, o->facts, "mem_grows", b > a && c > b);
    const tv_note *step = tv_noted(o->facts, "step_median_s");
    if (step)
        put(o, "mem_slope_bytes_per_step", slope * step->number);
}

static void put_memory(const writing *o)
{
    const tv_memory_line *most = NULL;
    for (int i = 0; i < TV_MOST_DEVICES; i++)
        if (o->t->memory[i].seen && (!most || o->t->memory[i].peak_bytes > most->peak_bytes))
            most = &o->t->memory[i];
    if (!most)
        return;
    put(o, "mem_events", (double)most->events);
    put(o, "mem_peak_bytes", most->peak_bytes);
    if (most->peak_reserved_bytes > 0)
        put(o, "mem_reserved_peak_bytes", most->peak_reserved_bytes);
    put_slope(o, most);
}

/* ---- arithmetic ---- */

static void put_flop(const writing *o)
{
    const tv_timeline *t = o->t;
    const double matrix = t->flop[TV_CLASS_GEMM] + t->flop[TV_CLASS_ATTENTION];
    if (!(matrix > 0))
        return;
    put(o, "matrix_flop", matrix);
    /* Products inside of compiled graphs are launched without an operation that tells shapes. */
    if ((double)t->flop_ops[TV_CLASS_GEMM] >= 0.5 * (double)t->by_class[TV_CLASS_GEMM])
        put(o, "gemm_flop_per_s",
            ratio(t->flop[TV_CLASS_GEMM], seconds(t->by_class_ns[TV_CLASS_GEMM])));
    put(o, "flop_per_s", o->w->steps ? ratio(matrix / o->each, window_s(o)) : (double)NAN);
    const tv_flops *most = NULL;
    for (size_t i = 0; i < t->n_dtypes; i++)
        if (!most || t->dtypes[i].flop > most->flop)
            most = &t->dtypes[i];
    if (most && most->dtype.n)
        (void)tv_note_str(o->a, o->facts, "flop_dtype", most->dtype);
}

/* ---- the verdict ---- */

/* Which layer holds the step back. The loader is looked at before communication is blamed: ranks
 * that wait for data make the others wait in a collective. */
static void put_layer(const writing *o)
{
    if (!o->w->steps)
        return;
    const double whole = window_s(o);
    const int64_t *in = o->w->window_ns;
    const double comm = does_s(o, in, TV_DOES_COMMUNICATION, TV_DOES_COMPUTE) / whole;
    const double copy =
        does_s(o, in, TV_DOES_COPY, TV_DOES_COMPUTE | TV_DOES_COMMUNICATION) / whole;
    const double data = seconds(o->w->data_ns) / o->each / whole;
    const double host = seconds(o->w->host_ns) / o->each / whole;
    const char *layer = NULL;
    if (data > 0.1 && data >= comm)
        layer = "data";
    else if (comm > 0.2 && comm >= host)
        layer = "communication";
    else if (copy > 0.2 && copy >= host)
        layer = "copy";
    else if (host > 0.3)
        layer = "host";
    else if (does_s(o, in, TV_DOES_COMPUTE, 0) / whole > 0.5)
        layer = "compute";
    if (layer)
        (void)tv_note_str(o->a, o->facts, "layer", tv_str_of(layer));
    else
        (void)tv_note_null(o->a, o->facts, "layer");
}

static void give_back(tv_timeline *t)
{
    tv_arena *own = t->a;
    const tv_mark blank = t->blank;
    tv_arena_rewind(own, blank);
}

void tv_timeline_memory_facts(tv_timeline *t, tv_arena *a, tv_note *facts)
{
    const writing o = {t, NULL, a, facts, 1};
    put_memory(&o);
    give_back(t);
}

void tv_timeline_facts(tv_timeline *t, tv_arena *a, tv_note *facts)
{
    tv_swept *w = tv_new(t->a, tv_swept, 1);
    unite(&t->steps);
    unite(&t->device_steps);
    tv_timeline_sweep(t, w);
    const writing o = {t, w, a, facts, w->devices ? w->devices : 1};
    put_steps(&o);
    put_kernels(&o);
    put_copies(&o);
    put_host(&o);
    if (t->work_ns > 0) {
        put_unions(&o);
        put_shares(&o);
        put_density(&o);
        put_classes(&o);
        put_top(&o);
        put_layer(&o);
    }
    put_collectives(&o);
    put_comm_kernels(&o);
    put_memory(&o);
    put_flop(&o);
    give_back(t);
}
