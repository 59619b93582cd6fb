/* Takes a text from its stream into an arena of its own. Knows no format. */
#include "whole_text.h"

/* As much of a file as is looked at: an execution trace of a large model takes 30 MB a step, a
 * memory timeline 40 bytes an allocation. */
enum { text_bytes = 48 << 20, scratch_bytes = 96 << 20 };

const tv_err *tv_whole_text_take(tv_arena *a, tv_input *in, tv_whole_text *w)
{
    w->own = tv_arena_child(a, (size_t)scratch_bytes + 2 * (size_t)text_bytes);
    TV_TRY(tv_stream_take(in->stream, w->own, text_bytes, &w->text));
    w->cut = w->text.n == text_bytes || tv_stream_damage(in->stream) != NULL;
    return NULL;
}

tv_str tv_whole_text_head(const tv_input *in)
{
    return tv_str_trim(tv_str_take(in->head, 4096));
}
