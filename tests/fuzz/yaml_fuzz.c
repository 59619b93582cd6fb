/* YAML: any bytes end in a document that can be written as JSON, or in an error with its place. */
#include "reading.h"

#include "codec/yaml_doc.h"

/* Aliases share members, so that a document may be far larger than its text: only what is small
 * is written out. */
static size_t nodes_of(const tv_json *j, size_t most)
{
    size_t n = 1;
    for (size_t i = 0; i < j->n && n < most; i++)
        n += nodes_of(&j->items[i], most - n);
    return n;
}

static void check(tv_arena *a, const uint8_t *data, size_t size)
{
    const tv_json *doc = NULL;
    const tv_err *e = tv_yaml_parse(a, TV_S("input"), (tv_str){(const char *)data, size}, &doc);
    fuzz_check(a, e);
    if (!e && nodes_of(doc, 10000) < 10000 && doc->type != TV_JSON_END)
        fuzz_document(a, doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        check(a, data, size);
    }
    tv_arena_close(a);
    return 0;
}
