/* Any bytes as a document for the doctor; what begins like trace events goes the whole way, and is
 * read as trace events in any case. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    const tv_str text = {(const char *)data, size};
    fuzz_check(a, scan(a, text));
    tv_scene *scene = tv_new(a, tv_scene, 1);
    fuzz_check(a, tv_trace_document(a, TV_S("rank0.json"), text, scene));
    tv_arena_close(a);
    return 0;
}
