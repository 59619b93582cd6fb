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

static inline void fuzz_scene(tv_arena *a, const tv_scene *scene)
{
    tv_diagnosis diagnosis;
    for (const tv_sighting *s = tv_scene_first(scene, NULL); s; s = tv_scene_next(s, NULL)) {
        tv_buf b = tv_buf_in(a);
        tv_json_out w = tv_json_write(&b);
        tv_json_note(&w, &s->facts);
        if (b.n < 2)
            abort();
    }
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

/* The readers of those names look at the text, whether or not it holds what they are asked for. */
static inline int fuzz_doctor(const uint8_t *data, size_t size, const char *const *names)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        tv_scene scene = {0};
        tv_sheet sheet;
        tv_sheet_fill(a, &sheet, TV_S("log"), 1, (tv_str){(const char *)data, size});
        tv_reading r = {a, &scene, &sheet};
        for (size_t f = 0; tv_log_formats[f]; f++)
            if (fuzz_named(tv_log_formats[f]->name, names))
                tv_log_formats[f]->read(&r);
        fuzz_scene(a, &scene);
    }
    tv_arena_close(a);
    return 0;
}

#endif
