/* Counts over a source's tensors. Knows no family. */
#include "held_tensors.h"

#include "base/message.h"
#include "base/unit.h"

typedef struct held {
    double count;
    double elements;
    double bytes;
} held;

static void count(const tv_source *s, held by_type[TV_DTYPE_COUNT], held *all)
{
    for (size_t i = 0; i < s->n_tensors; i++) {
        const tv_tensor *t = &s->tensors[i];
        held *h = &by_type[t->dtype];
        h->count++;
        h->elements += (double)t->elements;
        h->bytes += (double)t->bytes;
        all->count++;
        all->elements += (double)t->elements;
        all->bytes += (double)t->bytes;
    }
}

void tv_held_rows(tv_arena *a, tv_table *t, const tv_page *page, const tv_source *s)
{
    held by_type[TV_DTYPE_COUNT] = {{0}}, all = {0};
    count(s, by_type, &all);
    if (s->n_tensors == 0)
        return;
    tv_buf b = tv_buf_in(a);
    tv_put_count(&b, all.count);
    tv_table_add(a, t, TV_DIM, tv_str_of(tv_message(page->lang, N_("tensors"))));
    tv_table_add(a, t, TV_PLAIN, tv_buf_str(&b));
    for (int d = 0; d < TV_DTYPE_COUNT; d++) {
        if (!(by_type[d].count > 0))
            continue;
        tv_table_add(a, t, TV_DIM,
                     d ? tv_str_of(tv_dtype_of((tv_dtype)d)->name)
                       : tv_str_of(tv_message(page->lang, N_("unknown type"))));
        tv_buf v = tv_buf_in(a);
        tv_put_count(&v, by_type[d].elements);
        tv_puts(&v, " (");
        tv_put_memory(&v, by_type[d].bytes);
        tv_puts(&v, ")");
        tv_table_add(a, t, TV_PLAIN, tv_buf_str(&v));
    }
}

static void members(tv_json_out *w, const held *h)
{
    tv_json_key(w, "count");
    tv_json_put_num(w, h->count);
    tv_json_key(w, "elements");
    tv_json_put_num(w, h->elements);
    tv_json_key(w, "bytes");
    tv_json_put_num(w, h->bytes);
}

void tv_held_json(tv_json_out *w, const tv_source *s)
{
    held by_type[TV_DTYPE_COUNT] = {{0}}, all = {0};
    count(s, by_type, &all);
    tv_json_key(w, "tensors");
    if (s->n_tensors == 0) {
        tv_json_put_null(w);
        return;
    }
    tv_json_begin(w, '{');
    tv_json_key(w, "files");
    tv_json_put_num(w, (double)s->n_files);
    members(w, &all);
    tv_json_key(w, "dtypes");
    tv_json_begin(w, '{');
    for (int d = 0; d < TV_DTYPE_COUNT; d++) {
        if (!(by_type[d].count > 0))
            continue;
        tv_json_key(w, d ? tv_dtype_of((tv_dtype)d)->name : "unknown");
        tv_json_begin(w, '{');
        members(w, &by_type[d]);
        tv_json_end(w, '}');
    }
    tv_json_end(w, '}');
    tv_json_end(w, '}');
}
