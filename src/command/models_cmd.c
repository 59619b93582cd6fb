/* trivet models: what is built in, and one model in full. A file or folder may be shown, too. */
#include "command.h"

#include "base/message.h"
#include "base/unit.h"
#include "held_tensors.h"
#include "family/family.h"
#include "model_arg.h"
#include "read/builtin.h"
#include "report/report.h"

/* ---- the list ---- */

static tv_str aliases_of(tv_arena *a, const tv_builtin *b)
{
    tv_buf out = tv_buf_in(a);
    for (size_t i = 0; i < b->aliases->n; i++) {
        if (i)
            tv_puts(&out, ", ");
        tv_put(&out, tv_json_str(&b->aliases->items[i]));
    }
    return tv_buf_str(&out);
}

static bool wanted(tv_arena *a, const tv_builtin *b, tv_str part)
{
    return part.n == 0 || tv_str_has(tv_str_lower(a, b->name), part) ||
           tv_str_has(tv_str_lower(a, aliases_of(a, b)), part);
}

static tv_str params_text(tv_arena *a, double params)
{
    tv_buf b = tv_buf_in(a);
    if (params > 0)
        tv_put_params(&b, params);
    else
        tv_puts(&b, "–");
    return tv_buf_str(&b);
}

static void list_text(tv_request *r, const tv_builtins *all, tv_str part)
{
    static const tv_column columns[] = {
        {.head = N_("model")},
        {.head = N_("parameters"), .right = true},
        {.head = N_("also called"), .flex = true},
    };
    tv_table t = {.columns = columns, .n_columns = 3};
    const tv_page page = tv_page_on(r, r->out);
    for (size_t i = 0; i < all->n; i++) {
        if (!wanted(r->a, &all->v[i], part))
            continue;
        tv_table_add(r->a, &t, TV_PLAIN, all->v[i].name);
        tv_table_add(r->a, &t, TV_PLAIN, params_text(r->a, all->v[i].params));
        tv_table_add(r->a, &t, TV_DIM, aliases_of(r->a, &all->v[i]));
    }
    tv_table_put(&page, &t, 0);
}

static void put_known(tv_json_out *w, const char *key, double v)
{
    tv_json_key(w, key);
    if (v > 0)
        tv_json_put_num(w, v);
    else
        tv_json_put_null(w);
}

static void put_str(tv_json_out *w, const char *key, tv_str s)
{
    tv_json_key(w, key);
    if (s.n)
        tv_json_put_str(w, s);
    else
        tv_json_put_null(w);
}

static void list_json(tv_request *r, const tv_builtins *all, tv_str part)
{
    tv_json_out w = tv_json_write(r->out);
    tv_json_begin(&w, '{');
    tv_json_key(&w, "models");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < all->n; i++) {
        const tv_builtin *b = &all->v[i];
        if (!wanted(r->a, b, part))
            continue;
        tv_json_begin(&w, '{');
        put_str(&w, "name", b->name);
        tv_json_key(&w, "aliases");
        tv_json_begin(&w, '[');
        for (size_t k = 0; k < b->aliases->n; k++)
            tv_json_put_str(&w, tv_json_str(&b->aliases->items[k]));
        tv_json_end(&w, ']');
        put_known(&w, "params", b->params);
        put_str(&w, "source", b->source);
        tv_json_end(&w, '}');
    }
    tv_json_end(&w, ']');
    tv_json_end(&w, '}');
}

static const tv_err *list(tv_request *r, tv_str part)
{
    tv_builtins all = {0};
    TV_TRY(tv_builtin_list(r->a, &all));
    part = tv_str_lower(r->a, part);
    if (r->json)
        list_json(r, &all, part);
    else
        list_text(r, &all, part);
    return NULL;
}

/* ---- one model ---- */

typedef struct shape_row {
    const char *key;   /* in JSON */
    const char *label; /* msgid */
    double v;
} shape_row;

#define SHAPE_ROWS 13

static void shape_of(const tv_model *m, shape_row *rows)
{
    const shape_row all[SHAPE_ROWS] = {
        {"params", N_("parameters"), m->params},
        {"active_params", N_("active per token"), m->active_params},
        {"embedding_params", N_("of them embeddings"), m->embedding_params},
        {"layers", N_("layers"), m->layers},
        {"hidden", N_("width"), m->hidden},
        {"heads", N_("heads"), m->heads},
        {"kv_heads", N_("key-value heads"), m->kv_heads},
        {"head_dim", N_("head width"), m->head_dim},
        {"intermediate", N_("feed-forward width"), m->intermediate},
        {"vocab", N_("vocabulary"), m->vocab},
        {"experts", N_("experts"), m->experts},
        {"experts_per_token", N_("experts per token"), m->experts_per_token},
        {"max_seq", N_("longest sequence"), m->max_seq},
    };
    for (size_t i = 0; i < SHAPE_ROWS; i++)
        rows[i] = all[i];
}

static void add_row(tv_arena *a, tv_table *t, const tv_page *page, const char *label, tv_str value)
{
    tv_table_add(a, t, TV_DIM, tv_str_of(tv_message(page->lang, label)));
    tv_table_add(a, t, TV_PLAIN, value);
}

static void shape_rows(tv_request *r, tv_table *t, const tv_page *page, const tv_model *m)
{
    shape_row rows[SHAPE_ROWS];
    shape_of(m, rows);
    for (size_t i = 0; i < SHAPE_ROWS; i++) {
        tv_buf b = tv_buf_in(r->a);
        if (!(rows[i].v > 0) || (i == 1 && m->active_params == m->params))
            continue;
        tv_put_count(&b, rows[i].v);
        add_row(r->a, t, page, rows[i].label, tv_buf_str(&b));
    }
    if (m->image_h) {
        tv_buf b = tv_buf_in(r->a);
        tv_put_u64(&b, m->image_h);
        tv_puts(&b, " × ");
        tv_put_u64(&b, m->image_w);
        add_row(r->a, t, page, N_("image"), tv_buf_str(&b));
    }
}

static void show_text(tv_request *r, const tv_model *m, const tv_source *s)
{
    static const tv_column columns[] = {{0}, {.flex = true}};
    const tv_page page = tv_page_on(r, r->out);
    tv_table t = {.columns = columns, .n_columns = 2};
    tv_page_put(&page, TV_BOLD, m->name);
    tv_putc(r->out, '\n');
    if (m->family)
        add_row(r->a, &t, &page, N_("family"), tv_str_of(m->family));
    add_row(r->a, &t, &page, N_("source"), m->source);
    shape_rows(r, &t, &page, m);
    if (m->stored != TV_DTYPE_UNKNOWN)
        add_row(r->a, &t, &page, N_("stored as"), tv_str_of(tv_dtype_of(m->stored)->name));
    if (m->stored_bytes > 0) {
        tv_buf b = tv_buf_in(r->a);
        tv_put_memory(&b, m->stored_bytes);
        add_row(r->a, &t, &page, N_("weights"), tv_buf_str(&b));
    }
    tv_held_rows(r->a, &t, &page, s);
    tv_table_put(&page, &t, 2);
    if (m->n_parts)
        tv_page_head(&page, N_("Parts"));
    for (size_t i = 0; i < m->n_parts; i++) {
        tv_buf b = tv_buf_in(r->a);
        tv_put(&b, m->parts[i].name);
        tv_puts(&b, "  ");
        tv_put_count(&b, m->parts[i].params);
        tv_puts(&b, m->parts[i].in_total ? "  " : "  + ");
        tv_put_text(&b, r->lang, m->parts[i].why);
        tv_page_wrap(&page, TV_PLAIN, 2, tv_buf_str(&b));
    }
    for (size_t i = 0; i < m->n_warnings; i++)
        tv_page_text(&page, TV_YELLOW, 0, m->warnings[i]);
}

static void parts_json(tv_request *r, tv_json_out *w, const tv_model *m)
{
    tv_json_key(w, "parts");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < m->n_parts; i++) {
        tv_json_begin(w, '{');
        put_str(w, "name", m->parts[i].name);
        put_known(w, "params", m->parts[i].params);
        tv_json_key(w, "in_total");
        tv_json_put_bool(w, m->parts[i].in_total);
        tv_json_key(w, "why");
        tv_json_put_text(w, r->lang, m->parts[i].why);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
    tv_json_key(w, "warnings");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < m->n_warnings; i++)
        tv_json_put_text(w, r->lang, m->warnings[i]);
    tv_json_end(w, ']');
}

static void show_json(tv_request *r, const tv_model *m, const tv_source *s)
{
    shape_row rows[SHAPE_ROWS];
    tv_json_out w = tv_json_write(r->out);
    shape_of(m, rows);
    tv_json_begin(&w, '{');
    put_str(&w, "name", m->name);
    put_str(&w, "family", m->family ? tv_str_of(m->family) : (tv_str){0});
    put_str(&w, "source", m->source);
    for (size_t i = 0; i < SHAPE_ROWS; i++)
        put_known(&w, rows[i].key, rows[i].v);
    put_known(&w, "image_h", m->image_h);
    put_known(&w, "image_w", m->image_w);
    put_str(&w, "stored", m->stored ? tv_str_of(tv_dtype_of(m->stored)->name) : (tv_str){0});
    put_known(&w, "weights_bytes", m->stored_bytes);
    tv_held_json(&w, s);
    parts_json(r, &w, m);
    if (m->file) {
        tv_json_key(&w, "file");
        tv_json_put_tree(&w, m->file);
    }
    tv_json_end(&w, '}');
}

/* Files that were read and that no family knows are shown for what they hold. */
static const tv_model *nobodys(tv_request *r, const tv_source *s)
{
    tv_model *m = tv_new(r->a, tv_model, 1);
    m->name = s->name;
    m->source = s->path;
    m->file = s->program ? s->metadata : NULL;
    for (size_t i = 0; i < s->n_warnings; i++)
        tv_family_warn(r->a, m, s->warnings[i]);
    tv_family_warn(r->a, m,
                   TV_TEXT0("models.nobodys",
                            N_("nothing in the files says what kind of model this is: name its "
                               "config.json beside them, or a built-in model, to have it judged")));
    return m;
}

static const tv_err *show(tv_request *r, const tv_args *args)
{
    tv_args rest = *args;
    const tv_model *m = NULL;
    const tv_source *s = NULL;
    rest.v++;
    rest.n--;
    TV_TRY(tv_source_argument(r, &rest, &(tv_model_options){0}, &s));
    const tv_err *e = tv_model_of(r, s, &(tv_model_options){0}, &m);
    if (e && (e->code != TV_UNSUPPORTED || s->n_tensors == 0))
        return e;
    if (e)
        m = nobodys(r, s);
    if (r->json)
        show_json(r, m, s);
    else
        show_text(r, m, s);
    return NULL;
}

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    (void)options;
    if (args->n == 0)
        return list(r, (tv_str){0});
    if (tv_str_is(args->v[0], "list"))
        return list(r, args->n > 1 ? args->v[1] : (tv_str){0});
    if (tv_str_is(args->v[0], "show"))
        return show(r, args);
    return tv_hint(TV_FAIL(r->a, TV_USAGE, "models.word", N_("models does not know \"{word}\""),
                           tv_arg_str("word", args->v[0])),
                   TV_TEXT0("models.word.try", N_("Say list, list PART or show NAME.")));
}

extern const tv_command tv_command_models;
const tv_command tv_command_models = {
    .name = "models",
    .summary = N_("list the built-in models, or show one"),
    .usage = "[list [PART] | show MODEL]",
    .details = N_("Without a word every model is listed; PART keeps the names that hold it. show "
                  "takes a built-in name, a file or a folder."),
    .max_args = 2,
    .run = run,
};
