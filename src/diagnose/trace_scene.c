/* Questions that several rules ask of a profile: which one, what share, who was late. Knows notes,
 * no file. */
#include "trace_scene.h"

#include <math.h>
#include <string.h>

enum { most_ranks = 64, least_collectives = 8 };

const tv_sighting *tv_trace_next(const tv_inquiry *q, const tv_sighting *s)
{
    s = s ? tv_scene_next(s, "trace") : tv_scene_first(q->scene, "trace");
    while (s && !(tv_noted_num(&s->facts, "gpu_busy_sum_s") > 0))
        s = tv_scene_next(s, "trace");
    return s;
}

double tv_trace_num(const tv_sighting *s, const char *path)
{
    return tv_noted_num(&s->facts, path);
}

double tv_trace_share(const tv_sighting *s, double seconds)
{
    const bool steps = tv_trace_num(s, "steps") >= 1;
    const double whole = tv_trace_num(s, steps ? "window_s" : "host_span_s");
    return whole > 0 ? seconds / whole : (double)NAN;
}

double tv_trace_per_step(const tv_sighting *s, double count)
{
    const double steps = tv_trace_num(s, "steps");
    return steps >= 1 ? count / steps : count;
}

double tv_trace_rank(const tv_sighting *s)
{
    const double rank = tv_trace_num(s, "rank");
    return isnan(rank) ? tv_trace_num(s, "rank_in_name") : rank;
}

void tv_trace_evidence(tv_inquiry *q, tv_finding *f, const tv_sighting *s, const char *what,
                       double seconds, double of_seconds)
{
    tv_buf b = tv_buf_in(q->a);
    const double rank = tv_trace_rank(s);
    if (!isnan(rank)) {
        tv_puts(&b, "rank ");
        tv_put_fixed(&b, rank, 0);
        tv_puts(&b, ": ");
    }
    tv_puts(&b, what);
    tv_putc(&b, ' ');
    tv_put_short(&b, seconds, 4);
    tv_puts(&b, " s");
    if (of_seconds > 0) {
        tv_puts(&b, " of ");
        tv_put_short(&b, of_seconds, 4);
        tv_puts(&b, " s");
    }
    tv_found_text(q, f, s->file, tv_buf_str(&b));
}

/* PCI Express by generation, bytes a second and lane after line coding (PCI-SIG base
 * specifications 1.1 to 6.0). */
double tv_pcie_link(const tv_inquiry *q)
{
    static const double lane[] = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};
    double best = (double)NAN;
    for (const tv_sighting *s = tv_scene_first(q->scene, "device-record"); s;
         s = tv_scene_next(s, "device-record")) {
        const double gen = tv_noted_num(&s->facts, "pcie_gen");
        const double lanes = tv_noted_num(&s->facts, "pcie_lanes");
        if (!(gen >= 1 && gen < (double)(sizeof lane / sizeof *lane)) || !(lanes >= 1))
            continue;
        const double link = lane[(int)gen] * lanes;
        best = best >= link ? best : link;
    }
    return best;
}

/* ---- ranks side by side ---- */

typedef struct rank_line {
    const tv_sighting *s;
    const tv_note *next; /* of nccl_dur_s */
    size_t last;         /* how often it came last */
} rank_line;

/* Profiles of one job: they say different ranks, and hold collectives. */
static size_t list_ranks(const tv_inquiry *q, rank_line *v)
{
    size_t n = 0;
    for (const tv_sighting *s = NULL; (s = tv_trace_next(q, s)) && n < most_ranks;) {
        const tv_note *durs = tv_noted(&s->facts, "nccl_dur_s");
        const double rank = tv_trace_rank(s);
        bool fresh = durs && durs->n > 0 && !isnan(rank);
        for (size_t i = 0; i < n && fresh; i++)
            fresh = fabs(tv_trace_rank(v[i].s) - rank) > 0.5;
        if (fresh)
            v[n++] = (rank_line){s, durs->first, 0};
    }
    return n;
}

/* All ranks leave a collective at about the same time, so that who is in it longest came first, and
 * who is in it shortest came last: no clock is compared with another. */
bool tv_trace_skew(const tv_inquiry *q, tv_rank_skew *out)
{
    rank_line v[most_ranks];
    *out = (tv_rank_skew){.ranks = list_ranks(q, v)};
    if (out->ranks < 2)
        return false;
    double waits = 0, all = 0;
    for (;; out->collectives++) {
        double least = (double)INFINITY, sum = 0;
        size_t last = 0;
        bool more = true;
        for (size_t i = 0; i < out->ranks && more; i++) {
            more = v[i].next != NULL;
            if (!more)
                break;
            const double dur = v[i].next->number;
            v[i].next = v[i].next->next;
            sum += dur;
            last = dur < least ? i : last;
            least = dur < least ? dur : least;
        }
        if (!more)
            break;
        v[last].last++;
        waits += sum - least * (double)out->ranks;
        all += sum;
    }
    if (out->collectives < least_collectives || !(all > 0))
        return false;
    size_t late = 0;
    for (size_t i = 1; i < out->ranks; i++)
        late = v[i].last > v[late].last ? i : late;
    out->share = waits / all;
    out->waits_s = waits / (double)out->ranks;
    out->late = v[late].s;
    out->late_share = (double)v[late].last / (double)out->collectives;
    return true;
}
