/* Lists of expectations: one JSON object a line, written by a generator. */
#ifndef TV_LINES_H
#define TV_LINES_H

#include "testing.h"

#include "base/file.h"
#include "base/json.h"

/* Calls check for each line, with an arena of its own; yields the number of lines. */
static inline size_t test_lines(const char *path, void (*check)(tv_arena *a, const tv_json *row))
{
    tv_arena *outer = test_arena();
    tv_str text;
    size_t n = 0;
    assert_ok(outer, tv_file_read(outer, tv_str_of(path), (size_t)64 << 20, &text));
    while (text.n) {
        const tv_cut line = tv_str_cut(text, '\n');
        tv_arena *a = test_arena();
        const tv_json *row = NULL;
        assert_ok(a, tv_json_parse(a, TV_S("list"), line.head, &row));
        check(a, row);
        tv_arena_close(a);
        text = line.tail;
        n++;
    }
    tv_arena_close(outer);
    return n;
}

static inline tv_str test_member(const tv_json *row, const char *key)
{
    return tv_json_str(tv_json_get(row, key));
}

#endif
