/* Look-ups in the facts of a topology. */
#include "comm.h"

#include <math.h>

tv_reach tv_reach_of(tv_str word)
{
    static const char *const words[] = {"NV", "PIX", "PXB", "PHB", "NODE", "SYS"};
    if (tv_str_starts(word, TV_S("NV")) || tv_str_is(word, "C2C") || tv_str_is(word, "XGMI"))
        return TV_REACH_NVLINK;
    if (tv_str_is(word, "SOC"))
        return TV_REACH_SYS;
    for (unsigned i = 1; i < sizeof words / sizeof *words; i++)
        if (tv_str_is(word, words[i]))
            return (tv_reach)i;
    return TV_REACH_UNKNOWN;
}

const tv_sighting *tv_topo_seen(const tv_scene *scene, const tv_sighting *from)
{
    const tv_sighting *s = from ? tv_scene_next(from, "topo") : tv_scene_first(scene, "topo");
    while (s && !tv_noted(&s->facts, "links"))
        s = tv_scene_next(s, "topo");
    return s;
}

size_t tv_topo_gpus(const tv_sighting *topo)
{
    const double n = tv_noted_num(&topo->facts, "gpus");
    return n > 0 && n < 128 ? (size_t)n : 0;
}

static tv_str word_between(const tv_sighting *topo, size_t x, size_t y)
{
    char path[32];
    const size_t low = x < y ? x : y, high = x < y ? y : x;
    size_t n = 0;
    const size_t ends[2] = {low, high};
    for (unsigned i = 0; i < 2; i++) {
        if (ends[i] >= 1000)
            return (tv_str){0};
        if (ends[i] >= 100)
            path[n++] = (char)('0' + ends[i] / 100);
        if (ends[i] >= 10)
            path[n++] = (char)('0' + ends[i] / 10 % 10);
        path[n++] = (char)('0' + ends[i] % 10);
        path[n++] = i ? '\0' : '-';
    }
    return tv_noted_str(tv_noted(&topo->facts, "links"), path);
}

tv_reach tv_topo_reach(const tv_sighting *topo, size_t x, size_t y)
{
    return tv_reach_of(word_between(topo, x, y));
}

size_t tv_topo_nvlinks(const tv_sighting *topo, size_t x, size_t y)
{
    const tv_str word = word_between(topo, x, y);
    const tv_u64_read r = tv_str_u64(tv_str_drop(word, 2));
    return tv_str_starts(word, TV_S("NV")) && r.ok && r.v < 1000 ? (size_t)r.v : 0;
}

void tv_topo_counts(const tv_sighting *topo, size_t *counts)
{
    const size_t n = tv_topo_gpus(topo);
    for (size_t i = 0; i <= TV_REACH_UNKNOWN; i++)
        counts[i] = 0;
    for (size_t x = 0; x < n; x++)
        for (size_t y = x + 1; y < n; y++)
            counts[tv_topo_reach(topo, x, y)]++;
}

tv_reach tv_topo_nic_reach(const tv_sighting *topo, size_t gpu)
{
    char key[8];
    size_t n = 0;
    if (gpu >= 10)
        key[n++] = (char)('0' + gpu / 10 % 10);
    key[n++] = (char)('0' + gpu % 10);
    key[n] = '\0';
    return tv_reach_of(tv_noted_str(tv_noted(&topo->facts, "near_nic_link"), key));
}

void tv_found_str_or(tv_inquiry *q, tv_finding *f, const char *name, tv_str s, const char *msgid)
{
    if (s.n)
        tv_found_str(q, f, name, s);
    else
        tv_found_word(q, f, name, msgid);
}

void tv_found_num_or(tv_inquiry *q, tv_finding *f, const char *name, tv_arg_kind kind, double v,
                     const char *msgid)
{
    if (isnan(v))
        tv_found_word(q, f, name, msgid);
    else
        tv_found_num(q, f, name, kind, v);
}

bool tv_nccl_is_local(const tv_sighting *nccl)
{
    const tv_note *paths = tv_noted(&nccl->facts, "transports");
    if (!paths || !paths->n || tv_noted_n(&nccl->facts, "hosts") > 1)
        return false;
    for (const tv_note *path = paths->first; path; path = path->next)
        if (tv_str_starts(tv_str_of(path->key), TV_S("NET")))
            return false;
    return true;
}

tv_str tv_numbers(tv_arena *a, const tv_note *list)
{
    tv_buf b = tv_buf_in(a);
    for (const tv_note *item = list ? list->first : NULL; item; item = item->next) {
        if (b.n)
            tv_putc(&b, ',');
        if (item->type == TV_NOTE_NUMBER && item->number >= 0 && item->number < 1e15)
            tv_put_u64(&b, (uint64_t)item->number);
    }
    return tv_buf_str(&b);
}
