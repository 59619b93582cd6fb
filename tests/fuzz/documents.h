/* What the fuzz targets of captured texts share: the bytes are read as one document, what was seen
 * is written as JSON, and every rule judges it. */
#ifndef TV_DOCUMENTS_H
#define TV_DOCUMENTS_H

#include <setjmp.h>

#include "fuzzing.h"

#include "diagnose/diagnose.h"
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

static inline void fuzz_scene(tv_arena *a, tv_str name, tv_str text)
{
    tv_scene scene = {0};
    tv_diagnosis diagnosis;
    fuzz_check(a, tv_trace_document(a, name, text, &scene));
    for (const tv_sighting *s = tv_scene_first(&scene, NULL); s; s = tv_scene_next(s, NULL)) {
        tv_buf b = tv_buf_in(a);
        tv_json_out w = tv_json_write(&b);
        tv_json_note(&w, &s->facts);
        if (b.n < 2)
            abort();
    }
    tv_diagnose(a, &scene, &diagnosis);
    fuzz_findings(a, &diagnosis);
}

static inline int fuzz_doctor(const uint8_t *data, size_t size, const char *name)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        fuzz_scene(a, tv_str_of(name), (tv_str){(const char *)data, size});
    }
    tv_arena_close(a);
    return 0;
}

#endif
