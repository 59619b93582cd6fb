/* What the fuzz targets of captured texts share: the bytes are read as one document, what was seen
 * is written as JSON, and every rule judges it. */
#ifndef TV_DOCUMENTS_H
#define TV_DOCUMENTS_H

#include <setjmp.h>
#include <string.h>

#include "fuzzing.h"

#include "diagnose/diagnose.h"
#include "trace/sheet.h"
#include "trace/trace.h"

static inline void fuzz_findings(tv_arena *a, const tv_diagnosis *d)
{
    for (size_t i = 0; i < d->findings.n; i++) {
        const tv_finding *f = d->findings.v[i];
        const tv_text cause = {f->rule->id, f->cause, f->values.v, f->values.n};
        if (tv_text_in(a, TV_ZH, cause).n == 0)
            abort();
        for (size_t k = 0; k < TV_MOST_STEPS; k++)
            if (f->rule->steps[k].command)
                (void)tv_step_command(a, f->rule->steps[k].command, f);
    }
}

/* What was seen can be written. */
static inline void fuzz_sightings(tv_arena *a, const tv_scene *scene)
{
    for (const tv_sighting *s = tv_scene_first(scene, NULL); s; s = tv_scene_next(s, NULL)) {
        tv_buf b = tv_buf_in(a);
        tv_json_out w = tv_json_write(&b);
        tv_json_note(&w, &s->facts);
        if (!s->kind || b.n < 2)
            abort();
    }
}

static inline void fuzz_scene(tv_arena *a, const tv_scene *scene)
{
    tv_diagnosis diagnosis;
    fuzz_sightings(a, scene);
    tv_diagnose(a, scene, &diagnosis);
    fuzz_findings(a, &diagnosis);
}

static inline bool fuzz_named(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* The readers of those names look at the text, whether or not it holds what they are asked for:
 * to look for the needles of all would take longer than the reading. */
static inline void fuzz_readers(tv_arena *a, tv_str text, const char *const *names, tv_scene *scene)
{
    tv_sheet sheet;
    tv_sheet_fill(a, &sheet, TV_S("log"), 1, text);
    tv_reading r = {a, scene, &sheet};
    for (size_t f = 0; tv_log_formats[f]; f++)
        if (fuzz_named(tv_log_formats[f]->name, names))
            tv_log_formats[f]->read(&r);
}

/* One input through a check; a spent budget ends it. */
static inline int fuzz_guarded(tv_str text, void (*check)(tv_arena *a, tv_str text))
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        check(a, text);
    }
    tv_arena_close(a);
    return 0;
}

/* The bytes as a document of that name: every reader may find its own in it, every rule judges. */
static inline void fuzz_document(tv_arena *a, const char *name, tv_str text)
{
    tv_scene scene = {0};
    fuzz_check(a, tv_trace_document(a, tv_str_of(name), text, &scene));
    fuzz_scene(a, &scene);
}

#endif
