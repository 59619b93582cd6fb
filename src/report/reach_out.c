/* What a card can do: the reference jobs beside its memory, as a page and as JSON. */
#include "report.h"

#include "base/message.h"
#include "base/unit.h"

static tv_str job_words(tv_arena *a, const tv_choice *c)
{
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, tv_task_name(c->job.task));
    tv_putc(&b, ' ');
    tv_puts(&b, tv_precision_name(c->job.precision));
    tv_puts(&b, ", b");
    tv_put_u64(&b, c->job.batch);
    if (c->job.seq) {
        tv_puts(&b, " s");
        tv_put_u64(&b, c->job.seq);
    }
    return tv_buf_str(&b);
}

static tv_str amount(tv_arena *a, void (*put)(tv_buf *b, double v), double v)
{
    tv_buf b = tv_buf_in(a);
    if (v > 0)
        put(&b, v);
    return tv_buf_str(&b);
}

static tv_style style_of(const tv_memory *m)
{
    if (m->total_bytes > m->capacity_bytes)
        return TV_RED;
    return m->verdict == TV_FITS ? TV_GREEN : TV_YELLOW;
}

void tv_reach_text(const tv_request *req, tv_buf *b, const tv_reach_view *view)
{
    static const tv_column columns[] = {
        {N_("model"), false, true},     {N_("job"), false, false},      {N_("memory"), true, false},
        {N_("headroom"), false, false}, {N_("max batch"), true, false},
    };
    tv_arena *a = b->a;
    const tv_page page = tv_page_on(req, b);
    const tv_machine m = {.device = view->device, .gpus = view->gpus};
    tv_page_text(&page, TV_BOLD, 0,
                 TV_TEXT(a, "reach.title", N_("what {machine} can do, {have} per card"),
                         tv_arg_str("machine", tv_machine_line(a, &m)),
                         tv_arg_num("have", TV_ARG_MEMORY, tv_device_memory(view->device))));
    tv_putc(b, '\n');
    tv_table t = {.columns = columns, .n_columns = 5};
    for (size_t i = 0; i < view->n; i++) {
        const tv_choice *c = &view->v[i];
        const tv_memory *need = &c->estimate.memory;
        tv_table_add(a, &t, TV_PLAIN, c->estimate.model->name);
        tv_table_add(a, &t, TV_DIM, job_words(a, c));
        tv_table_add(a, &t, TV_PLAIN, amount(a, tv_put_memory, need->total_bytes));
        tv_table_add(a, &t, style_of(need), tv_text_in(a, req->lang, c->headroom));
        tv_table_add(a, &t, TV_PLAIN, amount(a, tv_put_count, need->max_batch));
    }
    tv_table_put(&page, &t, 2);
    tv_page_wrap(&page, TV_DIM, 2,
                 tv_str_of(tv_message(req->lang, N_("Name a model to plan for it in full."))));
}

static void put_num(tv_json_out *w, const char *key, double v)
{
    tv_json_key(w, key);
    if (v > 0)
        tv_json_put_num(w, v);
    else
        tv_json_put_null(w);
}

static void put_word(tv_json_out *w, const char *key, tv_str s)
{
    tv_json_key(w, key);
    tv_json_put_str(w, s);
}

static void put_task(tv_json_out *w, tv_lang lang, const tv_choice *c)
{
    const tv_memory *m = &c->estimate.memory;
    tv_json_begin(w, '{');
    put_word(w, "model", c->estimate.model->name);
    put_word(w, "task", tv_str_of(tv_task_name(c->job.task)));
    put_word(w, "precision", tv_str_of(tv_precision_name(c->job.precision)));
    put_num(w, "batch", c->job.batch);
    put_num(w, "seq", c->job.seq);
    put_num(w, "total_bytes", m->total_bytes);
    put_num(w, "capacity_bytes", m->capacity_bytes);
    tv_json_key(w, "fits");
    tv_json_put_bool(w, m->total_bytes <= m->capacity_bytes);
    put_num(w, "margin", 1 - m->total_bytes / m->capacity_bytes);
    tv_json_key(w, "headroom");
    tv_json_put_text(w, lang, c->headroom);
    put_num(w, "max_batch", m->max_batch);
    put_num(w, "step_s", tv_known(c->estimate.time.step_s) ? c->estimate.time.step_s.v : 0);
    tv_json_end(w, '}');
}

void tv_reach_json(const tv_request *req, tv_buf *b, const tv_reach_view *view)
{
    tv_json_out w = tv_json_write(b);
    tv_json_begin(&w, '{');
    put_word(&w, "gpu", view->device->slug);
    put_num(&w, "gpus", view->gpus);
    put_num(&w, "mem_bytes", tv_device_memory(view->device));
    tv_json_key(&w, "tasks");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < view->n; i++)
        put_task(&w, req->lang, &view->v[i]);
    tv_json_end(&w, ']');
    tv_json_end(&w, '}');
}
