/* The manifest of the collected model files: each row is read and held to its facts. */
#ifndef TV_MANIFEST_H
#define TV_MANIFEST_H

#include "testing.h"

#include "base/json.h"
#include "read/reader.h"

#define MODELS "../shared/data/models/"

typedef struct entry {
    tv_arena *a;
    tv_str path;
    tv_str file;
    const tv_json *facts;
    const tv_source *s;
    const tv_err *e;
} entry;

typedef struct kind_case {
    const char *kind;
    size_t n; /* in the manifest */
    bool reads;
    void (*check)(const entry *x);
} kind_case;

static inline void test_manifest_row(const kind_case *k, const tv_json *row)
{
    entry x = {.a = test_arena()};
    x.path = tv_json_str(tv_json_get(row, "path"));
    x.file = tv_path_join(x.a, TV_S(MODELS), x.path);
    x.facts = tv_json_get(row, "facts");
    x.e = tv_read_model(x.a, x.file, &x.s);
    if (k->reads)
        assert_ok(x.a, x.e);
    k->check(&x);
    tv_arena_close(x.a);
}

/* Every row of the manifest whose kind is listed is checked, and there are as many as stated. */
static inline void test_manifest_holds(const kind_case *kinds, size_t n_kinds)
{
    if (!test_shared("models/MANIFEST.jsonl"))
        return;
    tv_arena *a = test_arena();
    tv_str text;
    size_t *seen = tv_new(a, size_t, n_kinds);
    assert_ok(a, tv_file_read(a, TV_S(MODELS "MANIFEST.jsonl"), (size_t)16 << 20, &text));
    while (text.n) {
        const tv_cut line = tv_str_cut(text, '\n');
        const tv_json *row = NULL;
        assert_ok(a, tv_json_parse(a, TV_S("manifest"), line.head, &row));
        for (size_t i = 0; i < n_kinds; i++) {
            if (!tv_str_is(tv_json_str(tv_json_get(row, "kind")), kinds[i].kind))
                continue;
            test_manifest_row(&kinds[i], row);
            seen[i]++;
        }
        text = line.tail;
    }
    for (size_t i = 0; i < n_kinds; i++) {
        print_message("# %s: %zu of %zu\n", kinds[i].kind, seen[i], kinds[i].n);
        assert_int_equal(seen[i], kinds[i].n);
    }
    tv_arena_close(a);
}

#endif
