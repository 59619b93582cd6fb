/* Any bytes as trace events, and as whatever profile they look like. */
#include <string.h>

#include "fuzzing.h"

#include "trace/chrome_event.h"
#include "trace/trace.h"

static const tv_err *scan(tv_arena *a, tv_str text)
{
    tv_stream *stream;
    TV_TRY(tv_stream_over(a, TV_S("fuzz"), (tv_bytes_view){(const unsigned char *)text.p, text.n},
                          &stream));
    tv_event_scan *s = tv_event_scan_open(a, stream);
    tv_trace_tally *tally = tv_new(a, tv_trace_tally, 1);
    tv_timeline *timeline = tv_timeline_open(a);
    tv_trace_tally_open(a, timeline, tally);
    for (tv_scanned now = {0};;) {
        TV_TRY(tv_event_scan_next(s, &now));
        if (now.what == TV_SCAN_END)
            break;
        if (now.what == TV_SCAN_EVENT)
            tv_trace_count(tally, &now.event);
    }
    tv_note facts = {.type = TV_NOTE_MAP};
    tv_timeline_facts(timeline, a, &facts);
    return NULL;
}

/* The readers of profiles, each where it knows its format again; asking all readers of text takes a
 * hundred times as long. */
static const tv_err *read(tv_arena *a, tv_str text)
{
    static const char *const names[] = {"chrome-trace", "execution-trace", "memory-timeline"};
    for (size_t i = 0; tv_dump_formats[i]; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            tv_input in = {.name = TV_S("rank0.json"), .head = tv_str_take(text, 65536)};
            if (strcmp(tv_dump_formats[i]->name, names[k]) != 0 || !tv_dump_formats[i]->is(&in))
                continue;
            TV_TRY(tv_stream_over(
                a, in.name, (tv_bytes_view){(const unsigned char *)text.p, text.n}, &in.stream));
            tv_scene *scene = tv_new(a, tv_scene, 1);
            TV_TRY(tv_dump_formats[i]->read(a, &in, scene));
        }
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    const tv_str text = {(const char *)data, size};
    fuzz_check(a, scan(a, text));
    fuzz_check(a, read(a, text));
    tv_arena_close(a);
    return 0;
}
