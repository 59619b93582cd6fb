/* The execution trace that PyTorch's profiler writes beside its own: what was called with which
 * tensors. Only what it is and how much of it there is. */
#include "base/json.h"
#include "whole_text.h"

static bool is_execution(const tv_input *in)
{
    const tv_str head = tv_whole_text_head(in);
    return head.n && *head.p == '{' && tv_str_has(head, TV_S("\"schema\"")) &&
           tv_str_has(head, TV_S("\"nodes\"")) && tv_str_has(head, TV_S("\"rf_id\""));
}

/* The nodes of the list that was just opened; an error ends the count where the text does. */
static size_t count_nodes(tv_json_scan *scan)
{
    size_t n = 0;
    tv_json_event event;
    while (!tv_json_next(scan, &event) && event.type == TV_JSON_OBJECT) {
        n++;
        if (tv_json_skip(scan, event))
            break;
    }
    return n;
}

static void read_members(tv_arena *a, tv_json_scan *scan, tv_note *facts)
{
    tv_json_event event;
    if (tv_json_next(scan, &event) || event.type != TV_JSON_OBJECT)
        return;
    while (!tv_json_next(scan, &event) && event.type == TV_JSON_KEY) {
        const tv_str key = event.s;
        if (tv_json_next(scan, &event))
            return;
        if (tv_str_is(key, "schema") && event.type == TV_JSON_STRING)
            (void)tv_note_str(a, facts, "schema", event.s);
        if (tv_str_is(key, "pid") && event.type == TV_JSON_NUMBER)
            (void)tv_note_num(a, facts, "pid", tv_str_double(event.s).v);
        if (tv_str_is(key, "nodes") && event.type == TV_JSON_ARRAY)
            (void)tv_note_num(a, facts, "nodes", (double)count_nodes(scan));
        else if (tv_json_skip(scan, event))
            return;
    }
}

static const tv_err *read_execution(tv_arena *a, tv_input *in, tv_scene *scene)
{
    tv_whole_text w;
    TV_TRY(tv_whole_text_take(a, in, &w));
    tv_sighting *s =
        tv_scene_add(a, scene, "trace", in->name, 0, TV_S("execution trace of PyTorch"));
    (void)tv_note_str(a, &s->facts, "profile", TV_S("execution-trace"));
    tv_json_scan scan = tv_json_open(w.own, in->name, w.text);
    scan.lenient = true;
    scan.raw = true;
    read_members(a, &scan, &s->facts);
    (void)tv_note_bool(a, &s->facts, "cut", w.cut);
    return NULL;
}

extern const tv_dump_format tv_dump_format_execution_trace;
const tv_dump_format tv_dump_format_execution_trace = {"execution-trace", is_execution,
                                                       read_execution};
