/* Any bytes through the intake's own parts: inflated, walked as an archive within archives, made
 * UTF-8, cut into lines and cleaned. The readers have targets of their own. */
#include "base/err.h"
#include "base/limits.h"
#include "codec/tar.h"
#include "trace/sheet.h"
#include "trace/wide_text.h"

#include <assert.h>
#include <setjmp.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const tv_err *walk(tv_arena *a, tv_stream *s, unsigned depth);

static const tv_err *walk_text(tv_arena *a, tv_stream *s)
{
    tv_wide_text wide = {0};
    TV_TRY(tv_wide_text_begin(&wide, s));
    char *text = tv_new(a, char, 65536);
    while (!wide.over) {
        size_t n;
        TV_TRY(tv_wide_text_read(&wide, s, text, 65536, &n));
        assert(n <= 65536);
        (void)tv_is_binary((tv_str){text, n});
        size_t lines = 0;
        for (tv_str rest = {text, n}; rest.n;) {
            const tv_lines_cut cut = tv_cut_lines(rest, 7);
            tv_sheet sheet;
            assert(cut.head.n + cut.tail.n == rest.n && cut.head.n);
            tv_sheet_fill(a, &sheet, TV_S("fuzz"), 1, cut.head);
            assert(sheet.n <= cut.n + 1);
            lines += cut.n;
            rest = cut.tail;
        }
        assert(lines == tv_count_lines((tv_str){text, n}));
    }
    return NULL;
}

static const tv_err *walk_tar(tv_arena *a, tv_stream *s, unsigned depth)
{
    tv_tar tar = tv_tar_open(a, s);
    for (bool more = true; more;) {
        TV_TRY(tv_tar_next(&tar, &more));
        tv_stream *part;
        if (!more)
            break;
        TV_TRY(tv_stream_part(a, s, tar.name, tar.bytes, &part));
        TV_TRY(walk(a, part, depth + 1));
        assert(tv_stream_at(part) <= TV_LIMIT_INFLATE_FREE_BYTES);
    }
    return NULL;
}

static const tv_err *walk(tv_arena *a, tv_stream *s, unsigned depth)
{
    tv_bytes_view head;
    TV_TRY(tv_stream_peek(s, 512, &head));
    return depth < 4 && tv_tar_is(head) ? walk_tar(a, s, depth) : walk_text(a, s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    jmp_buf landing;
    tv_arena *a = tv_arena_open((size_t)256 << 20);
    if (!a)
        return 0;
    tv_arena_guard(a, &landing);
    if (setjmp(landing) == 0) {
        tv_stream *s;
        const tv_err *e = tv_stream_over(a, TV_S("fuzz"), (tv_bytes_view){data, size}, &s);
        if (!e)
            e = walk(a, s, 0);
        (void)e;
    }
    tv_arena_close(a);
    return 0;
}
