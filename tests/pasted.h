/* Cases of pasted text: a text, and the facts that it must give, as JSON; with what loggers and
 * terminals put around its lines. */
#ifndef TV_PASTED_H
#define TV_PASTED_H

#include "testing.h"

#include "trace/trace.h"

typedef struct want_row {
    const char *path;
    const char *json; /* "absent": no such fact */
} want_row;

enum { MOST_WANTED = 16 };

typedef struct case_row {
    const char *name;
    const char *text;
    const char *kind;
    want_row want[MOST_WANTED];
} case_row;

/* Compact: what the writer puts between members does not matter here. */
static inline tv_str compact(tv_arena *a, const tv_note *note)
{
    tv_buf b = tv_buf_in(a), c = tv_buf_in(a);
    tv_json_out w = tv_json_write(&b);
    tv_json_note(&w, note);
    bool quoted = false;
    for (size_t i = 0; i < b.n; i++) {
        const char k = tv_buf_str(&b).p[i];
        quoted ^= k == '"';
        if (quoted || (k != ' ' && k != '\n'))
            tv_putc(&c, k);
    }
    return tv_buf_str(&c);
}

static inline void check_case(const case_row *row, tv_str text)
{
    tv_arena *a = test_arena();
    tv_scene scene = {0};
    assert_ok(a, tv_trace_document(a, TV_S("pasted.txt"), text, &scene));
    const tv_sighting *s = tv_scene_first(&scene, row->kind);
    if (!row->want[0].path) {
        if (s)
            fail_msg("%s: a %s was seen", row->name, row->kind);
        tv_arena_close(a);
        return;
    }
    if (!s)
        fail_msg("%s: no %s was seen", row->name, row->kind);
    for (const want_row *w = row->want; w->path; w++) {
        const tv_note *note = tv_noted(&s->facts, w->path);
        const tv_str got = note ? compact(a, note) : TV_S("absent");
        if (!tv_str_is(got, w->json))
            fail_msg("%s: %s is %.*s, want %s", row->name, w->path, TV_FMT(got), w->json);
    }
    tv_arena_close(a);
}

/* Every line with something before it, and the line end of Windows behind it. */
static inline tv_str dressed(tv_arena *a, const char *text, const char *before, const char *behind)
{
    tv_buf b = tv_buf_in(a);
    for (tv_cut cut = {.tail = tv_str_of(text), .found = true}; cut.found && cut.tail.n;) {
        cut = tv_str_cut(cut.tail, '\n');
        tv_puts(&b, before);
        tv_put(&b, cut.head);
        tv_puts(&b, behind);
        tv_putc(&b, '\n');
    }
    return tv_buf_str(&b);
}

static inline void check_dressed(const case_row *row, const char *before, const char *behind)
{
    tv_arena *a = test_arena();
    check_case(row, dressed(a, row->text, before, behind));
    tv_arena_close(a);
}

static inline void check_all(const case_row *rows, size_t n, const char *before, const char *behind)
{
    for (size_t i = 0; i < n; i++)
        check_dressed(&rows[i], before, behind);
}

#define N_OF(table) (sizeof(table) / sizeof *(table))

/* Cut anywhere, nothing is read past the end. */
static inline void check_cuts(const case_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const tv_str text = tv_str_of(rows[i].text);
        for (size_t k = 0; k < text.n; k += 7) {
            tv_arena *a = test_arena();
            tv_scene scene = {0};
            const tv_str part = tv_str_copy(a, tv_str_take(text, k));
            assert_ok(a, tv_trace_document(a, TV_S("cut.txt"), part, &scene));
            tv_arena_close(a);
        }
    }
}

#endif
