/* The raw memory timeline of PyTorch's profiler (export_memory_timeline): entries of
 * [time_ns, action, bytes, category], where what is freed counts negative. */
#include "base/json.h"
#include "timeline.h"
#include "whole_text.h"

static bool is_memory(const tv_input *in)
{
    tv_str head = tv_whole_text_head(in);
    if (head.n < 8 || *head.p != '[')
        return false;
    head = tv_str_trim(tv_str_drop(head, 1));
    const tv_cut entry = tv_str_cut(head, ']');
    size_t commas = 0;
    for (size_t i = 1; i < entry.head.n; i++) {
        const char c = entry.head.p[i];
        commas += c == ',';
        if ((c < '0' || c > '9') && c != ',' && c != ' ' && c != '-' && c != '\n')
            return false;
    }
    return entry.found && entry.head.n && *entry.head.p == '[' && commas == 3;
}

/* The numbers of one entry; false: it is none. */
static bool read_entry(tv_json_scan *scan, double v[4])
{
    tv_json_event event;
    size_t n = 0;
    while (!tv_json_next(scan, &event) && event.type == TV_JSON_NUMBER) {
        const tv_double_read d = tv_str_double(event.s);
        if (n < 4 && d.ok)
            v[n] = d.v;
        n++;
    }
    return n == 4 && event.type == TV_JSON_CLOSE;
}

static const tv_err *read_memory(tv_arena *a, tv_input *in, tv_scene *scene)
{
    tv_whole_text w;
    TV_TRY(tv_whole_text_take(a, in, &w));
    tv_sighting *s =
        tv_scene_add(a, scene, "trace", in->name, 0, TV_S("memory timeline of PyTorch"));
    (void)tv_note_str(a, &s->facts, "profile", TV_S("memory-timeline"));
    (void)tv_note_str(a, &s->facts, "top_level", TV_S("list"));
    tv_json_scan scan = tv_json_open(w.own, in->name, w.text);
    tv_timeline *t = tv_timeline_open(a);
    tv_json_event event;
    double total = 0, v[4] = {0};
    size_t entries = 0;
    if (!tv_json_next(&scan, &event) && event.type == TV_JSON_ARRAY)
        while (!tv_json_next(&scan, &event) && event.type == TV_JSON_ARRAY &&
               read_entry(&scan, v)) {
            entries++;
            total += v[2];
            if (v[0] >= 0 && v[0] < 9e18)
                tv_timeline_memory(t, 0, (int64_t)v[0], total, 0);
        }
    (void)tv_note_num(a, &s->facts, "entries", (double)entries);
    tv_timeline_memory_facts(t, a, &s->facts);
    (void)tv_note_bool(a, &s->facts, "cut", w.cut);
    return NULL;
}

extern const tv_dump_format tv_dump_format_memory_timeline;
const tv_dump_format tv_dump_format_memory_timeline = {"memory-timeline", is_memory, read_memory};
