/* What the fuzz targets of the readers share: the bytes are read as one file, and what is said to
 * have been read must be possible. */
#ifndef TV_READING_H
#define TV_READING_H

#include "fuzzing.h"

#include "base/json.h"
#include "read/gather.h"

typedef const tv_err *fuzz_reader(tv_gather *g, tv_str path, tv_bytes_view bytes);

/* Tensors lie inside the file, one after the other by name, and add up. */
static inline void fuzz_tensors(const tv_source *s, size_t file_bytes)
{
    double sum = 0;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const tv_tensor *t = &s->tensors[i];
        if (t->offset > file_bytes || t->bytes > file_bytes - t->offset || t->rank > TV_LIMIT_RANK)
            abort();
        if (i && tv_str_cmp(s->tensors[i - 1].name, t->name) >= 0)
            abort();
        sum += (double)t->bytes;
    }
    if (sum != s->tensor_bytes || sum > (double)file_bytes)
        abort();
}

/* What was read can be written as JSON and read back, or refused: names that are no UTF-8 may
 * become equal. */
static inline void fuzz_document(tv_arena *a, const tv_json *doc)
{
    const tv_json *again = NULL;
    if (!doc)
        return;
    tv_buf b = tv_buf_in(a);
    tv_json_out w = tv_json_write(&b);
    tv_json_put_tree(&w, doc);
    fuzz_check(a, tv_json_parse(a, TV_S("output"), tv_buf_str(&b), &again));
}

static inline void fuzz_warnings(tv_arena *a, const tv_source *s)
{
    for (size_t i = 0; i < s->n_warnings; i++)
        if (tv_text_in(a, TV_ZH, s->warnings[i]).n == 0)
            abort();
}

static inline void fuzz_read(tv_arena *a, fuzz_reader *read, const uint8_t *data, size_t size)
{
    tv_gather g = tv_gather_in(a, TV_S("/nowhere/input"));
    const tv_source *s = NULL;
    const tv_err *e = read(&g, TV_S("/nowhere/input"), (tv_bytes_view){data, size});
    if (!e)
        e = tv_gather_done(&g, &s);
    fuzz_check(a, e);
    if (e && e->has_offset && e->offset > size)
        abort();
    if (e)
        return;
    fuzz_tensors(s, size);
    fuzz_document(a, s->metadata);
    fuzz_warnings(a, s);
}

#endif
