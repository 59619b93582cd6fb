/* One pass over the work in the order of time. Per device it is known until when each group
 * (matrix work, communication, copies ...) is covered; between two starts the set of covered groups
 * changes at most once a group, and each stretch is added to the sum of its set. Unions, overlaps
 * and exclusive shares are sums over sets. */
#include "timeline_parts.h"

#include <stdlib.h>

typedef struct lane {
    bool begun;
    bool inside; /* between its first and its last work */
    int64_t at;  /* swept up to here */
    int64_t until[TV_GROUPS];
} lane;

typedef struct sweep {
    tv_timeline *t;
    tv_swept *out;
    lane lanes[TV_MOST_DEVICES];
    size_t loader_at; /* the first wait that may still touch what comes */
} sweep;

/* ---- spans ---- */

static int by_start(const void *x, const void *y)
{
    const int64_t a = ((const tv_span_ns *)x)->start, b = ((const tv_span_ns *)y)->start;
    return (a > b) - (a < b);
}

void tv_spans_merge(tv_spans *s)
{
    if (!s->n)
        return;
    qsort(s->v, s->n, sizeof *s->v, by_start);
    size_t kept = 0;
    for (size_t i = 1; i < s->n; i++) {
        if (s->v[i].start <= s->v[kept].end)
            s->v[kept].end = s->v[i].end > s->v[kept].end ? s->v[i].end : s->v[kept].end;
        else
            s->v[++kept] = s->v[i];
    }
    s->n = kept + 1;
}

static int64_t overlap(int64_t a0, int64_t a1, int64_t b0, int64_t b1)
{
    const int64_t start = a0 > b0 ? a0 : b0, end = a1 < b1 ? a1 : b1;
    return end > start ? end - start : 0;
}

/* How much of [from, to) the host waits for a batch. */
static int64_t loading(const tv_spans *s, int64_t from, int64_t to)
{
    size_t low = 0, high = s->n; /* the first wait that ends behind `from` */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->v[middle].end > from)
            high = middle;
        else
            low = middle + 1;
    }
    int64_t sum = 0;
    for (size_t i = low; i < s->n && s->v[i].start < to; i++)
        sum += overlap(from, to, s->v[i].start, s->v[i].end);
    return sum;
}

/* ---- a stretch of one device ---- */

/* Nothing runs in [from, to). `launched`: when the host put the next work on the device; what lies
 * behind that is the device's own delay. */
static void add_gap(sweep *w, int64_t from, int64_t to, int64_t launched)
{
    tv_swept *out = w->out;
    from = from > out->window.start ? from : out->window.start;
    to = to < out->window.end ? to : out->window.end;
    if (to <= from)
        return;
    out->gaps += to - from >= 1000;
    out->longest_idle = to - from > out->longest_idle ? to - from : out->longest_idle;
    out->data_ns += loading(&w->t->loader, from, to);
    launched = launched < to ? launched : to;
    if (launched > from)
        out->host_ns += launched - from - loading(&w->t->loader, from, launched);
}

static void advance(sweep *w, lane *l, int64_t to, int64_t launched)
{
    while (l->at < to) {
        int64_t next = to;
        unsigned mask = 0;
        for (unsigned g = 0; g < TV_GROUPS; g++)
            if (l->until[g] > l->at) {
                mask |= 1u << g;
                next = l->until[g] < next ? l->until[g] : next;
            }
        if (l->inside)
            w->out->all_ns[mask] += next - l->at;
        w->out->window_ns[mask] += overlap(l->at, next, w->out->window.start, w->out->window.end);
        if (!mask)
            add_gap(w, l->at, next, launched);
        l->at = next;
    }
}

static unsigned group_of(tv_kernel_class c)
{
    static const unsigned char groups[TV_CLASSES] = {
        [TV_CLASS_GEMM] = 0,          [TV_CLASS_CONV] = 1,      [TV_CLASS_ATTENTION] = 2,
        [TV_CLASS_NORM] = 3,          [TV_CLASS_OTHER] = 3,     [TV_CLASS_ELEMENTWISE] = 3,
        [TV_CLASS_REDUCE] = 3,        [TV_CLASS_EMBEDDING] = 3, [TV_CLASS_OPTIMIZER] = 3,
        [TV_CLASS_COMMUNICATION] = 4, [TV_CLASS_MEMCPY] = 5,    [TV_CLASS_MEMSET] = 5,
    };
    return groups[c];
}

static void keep_comm(sweep *w, int64_t start, int64_t dur)
{
    if (w->out->n_comm < TV_COMM_KEPT) {
        w->out->comm[w->out->n_comm].start = start;
        w->out->comm[w->out->n_comm++].dur = dur;
    }
}

static void take(sweep *w, const tv_piece *p)
{
    lane *l = &w->lanes[tv_piece_device(p)];
    const int64_t start = tv_piece_start(p) + w->t->bias, end = start + tv_piece_dur(p);
    const bool linked = p->link != TV_LINK_UNKNOWN;
    const int64_t delay = linked ? (int64_t)p->link * TV_LINK_UNIT_NS : 0;
    if (linked)
        tv_histogram_add(&w->out->delays, delay);
    if (!l->begun) {
        l->begun = true;
        l->at = w->out->steps && w->out->window.start < start ? w->out->window.start : start;
    }
    /* Without a link nobody knows what the device waited for. */
    advance(w, l, start, linked ? start - delay : INT64_MIN);
    l->inside = true;
    const tv_kernel_class is = w->t->names.v[tv_piece_name(p)].is;
    const unsigned g = group_of(is);
    l->until[g] = end > l->until[g] ? end : l->until[g];
    if (is == TV_CLASS_COMMUNICATION)
        keep_comm(w, start, tv_piece_dur(p));
}

static void finish(sweep *w, lane *l)
{
    int64_t end = l->at;
    for (unsigned g = 0; g < TV_GROUPS; g++)
        end = l->until[g] > end ? l->until[g] : end;
    advance(w, l, end, INT64_MIN);
    l->inside = false;
    if (w->out->steps)
        advance(w, l, w->out->window.end, INT64_MIN);
    w->out->devices++;
}

/* ---- the window ---- */

static void set_window(const tv_timeline *t, tv_swept *out)
{
    const tv_step_marks *m = t->steps.n ? &t->steps : &t->device_steps;
    out->steps = m->n > 0;
    out->window = (tv_span_ns){t->first_ns, t->last_ns};
    for (size_t i = 0; i < m->n; i++) {
        const tv_span_ns s = m->v[i].at;
        if (i == 0)
            out->window = s;
        out->window.start = s.start < out->window.start ? s.start : out->window.start;
        out->window.end = s.end > out->window.end ? s.end : out->window.end;
    }
}

void tv_timeline_sweep(tv_timeline *t, tv_swept *out)
{
    *out = (tv_swept){0};
    tv_spans_merge(&t->loader);
    tv_spans_merge(&t->saves);
    set_window(t, out);
    tv_store_end(t->store);
    sweep *w = tv_new(t->a, sweep, 1);
    w->t = t;
    w->out = out;
    for (unsigned i = 0; i < TV_MOST_DEVICES; i++)
        for (unsigned g = 0; g < TV_GROUPS; g++)
            w->lanes[i].until[g] = INT64_MIN;
    for (const tv_piece *p; (p = tv_store_next(t->store));)
        take(w, p);
    for (unsigned i = 0; i < TV_MOST_DEVICES; i++)
        if (w->lanes[i].begun)
            finish(w, &w->lanes[i]);
}
