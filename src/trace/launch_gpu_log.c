/* The gpu.log that paddle.distributed.launch writes beside the workers' logs: nvidia-smi's numbers
 * every half minute, one line per card. */
#include <math.h>

#include "glean.h"
#include "trace.h"

enum { MOST_CARDS = 64 };

typedef struct card {
    bool seen;
    size_t line;
    double n, idle_n, util_sum, util_most;
    double total_bytes, used_most_bytes, used_first_bytes, used_last_bytes;
    tv_str name;
} card;

typedef struct reading {
    tv_reading *r;
    card cards[MOST_CARDS];
    size_t first_line;
    bool any;
} reading;

static void add(card *c, size_t i, double util, double total_bytes, double used_bytes)
{
    if (!c->seen) {
        c->line = i;
        c->used_first_bytes = used_bytes;
    }
    c->seen = true;
    c->n++;
    c->util_sum += util;
    c->idle_n += util < 1;
    c->util_most = fmax(c->util_most, util);
    c->total_bytes = total_bytes;
    c->used_most_bytes = fmax(c->used_most_bytes, used_bytes);
    c->used_last_bytes = used_bytes;
}

/* "0,87,32510,21544,10966,2023/05/04 10:11:12.345": index, %, MiB, MiB, MiB, time. */
static bool take_line(reading *g, size_t i, tv_str line)
{
    tv_str v[8];
    double n[5];
    if (tv_fields(line, ',', v, 8) != 6)
        return false;
    for (size_t k = 0; k < 5; k++) {
        tv_str s = v[k];
        const tv_double_read r = tv_take_number(&s);
        if (!r.ok || s.n)
            return false;
        n[k] = r.v;
    }
    if (n[0] < 0 || n[0] >= MOST_CARDS || !tv_holds(v[5], ":"))
        return false;
    add(&g->cards[(size_t)n[0]], i, n[1], n[2] * 1048576, n[3] * 1048576);
    g->any = true;
    return true;
}

/* "0,GPU-...,525.105.17,Tesla V100-SXM2-32GB,...": the cards' names, above the series. */
static void take_name(reading *g, tv_str line)
{
    tv_str v[8];
    if (tv_fields(line, ',', v, 8) != 7 || !tv_str_starts(v[1], TV_S("GPU-")))
        return;
    const tv_u64_read index = tv_str_u64(v[0]);
    if (index.ok && index.v < MOST_CARDS)
        g->cards[index.v].name = v[3];
}

static void note_card(const reading *g, tv_note *list, size_t index)
{
    tv_arena *a = g->r->a;
    const card *c = &g->cards[index];
    tv_note *one = tv_at(g->r, tv_note_map(a, list, NULL), c->line);
    (void)tv_note_num(a, one, "index", (double)index);
    if (c->name.n)
        (void)tv_note_str(a, one, "name", c->name);
    (void)tv_note_num(a, one, "util_frac", c->util_sum / c->n / 100);
    (void)tv_note_num(a, one, "util_most_frac", c->util_most / 100);
    (void)tv_note_num(a, one, "idle_frac", c->idle_n / c->n);
    (void)tv_note_num(a, one, "mem_total_bytes", c->total_bytes);
    (void)tv_note_num(a, one, "mem_used_bytes", c->used_most_bytes);
    (void)tv_note_num(a, one, "mem_first_bytes", c->used_first_bytes);
    (void)tv_note_num(a, one, "mem_last_bytes", c->used_last_bytes);
    (void)tv_note_num(a, one, "samples", c->n);
}

static void read(tv_reading *r)
{
    static const char head[] = "index,utilization_gpu,memory_total,memory_used";
    reading g = {.r = r};
    bool inside = false;
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        if (!inside && tv_holds(line, head)) {
            inside = true;
            g.first_line = i;
        } else if (inside) {
            (void)take_line(&g, i, line);
        } else {
            take_name(&g, line);
        }
    }
    if (!g.any)
        return;
    tv_sighting *s = tv_see(r, "gpu-log", g.first_line);
    (void)tv_note_str(r->a, &s->facts, "framework", TV_S("paddle"));
    tv_note *list = tv_note_list(r->a, &s->facts, "gpus");
    for (size_t k = 0; k < MOST_CARDS; k++)
        if (g.cards[k].seen)
            note_card(&g, list, k);
}

static const char *const needles[] = {"index,utilization_gpu,memory_total", NULL};

extern const tv_log_format tv_log_format_launch_gpu_log;
const tv_log_format tv_log_format_launch_gpu_log = {"launch-gpu-log", needles, read};
