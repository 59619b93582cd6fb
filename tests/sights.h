/* A pasted text through the readers: what was seen. */
#ifndef TV_SIGHTS_H
#define TV_SIGHTS_H

#include "testing.h"

#include "trace/trace.h"

static inline tv_scene *sights_of(tv_arena *a, const char *text)
{
    tv_scene *scene = tv_new(a, tv_scene, 1);
    assert_ok(a, tv_trace_document(a, TV_S("paste.txt"), tv_str_of(text), scene));
    return scene;
}

/* The k-th sighting of a kind; fails where there is none. */
static inline const tv_note *sight(const tv_scene *scene, const char *kind, size_t k)
{
    const tv_sighting *s = tv_scene_first(scene, kind);
    while (s && k--)
        s = tv_scene_next(s, kind);
    if (!s)
        fail_msg("no %s was seen", kind);
    return &s->facts;
}

static inline size_t sights_n(const tv_scene *scene, const char *kind)
{
    size_t n = 0;
    for (const tv_sighting *s = tv_scene_first(scene, kind); s; s = tv_scene_next(s, kind))
        n++;
    return n;
}

/* NaN as wanted: must not be there as a number. */
static inline void assert_fact(const tv_note *facts, const char *path, double want)
{
    const double got = tv_noted_num(facts, path);
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-9 + 1e-6 * fabs(want)))
        fail_msg("%s: got %.10g, want %.10g", path, got, want);
}

static inline void assert_word(const tv_note *facts, const char *path, const char *want)
{
    const tv_str got = tv_noted_str(facts, path);
    if (!tv_str_is(got, want))
        fail_msg("%s: got \"%.*s\", want \"%s\"", path, TV_FMT(got), want);
}

#endif
