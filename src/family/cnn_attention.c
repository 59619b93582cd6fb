/* Attention over the positions of a map, for the networks that join convolutions and transformers
 * (detectors that ask with queries, attention in a backbone). What it saves is desc/emit.h's. */
#include "cnn.h"

/* A saved value by the member's name; found is false where the member is not there. */
static const tv_err *named(tv_cnn_run *r, const tv_json *j, const char *key, bool *found,
                           tv_feature *f)
{
    *found = tv_json_has(j, key);
    return *found ? tv_cnn_saved(r, j, tv_json_get(j, key), f) : NULL;
}

/* Positions are added to what is compared, never to what is taken. */
static const tv_err *add_positions(tv_cnn_run *r, const tv_json *j, const char *key,
                                   const tv_feature *x, tv_val *v)
{
    tv_feature pos = {0};
    bool found = false;
    *v = x->v;
    TV_TRY(named(r, j, key, &found, &pos));
    if (found && (pos.c != x->c || tv_cnn_positions(&pos) != tv_cnn_positions(x)))
        return tv_cnn_bad(r, j,
                          TV_TEXT0("layers.positions",
                                   N_("positions must have the shape of what they are added to")));
    if (found)
        *v = tv_emit_add(r->e, key, x->v, pos.v);
    return NULL;
}

static tv_val project(tv_cnn_run *r, const char *name, const tv_feature *x, tv_val v, double out)
{
    return tv_emit_linear(r->e,
                          &(tv_linear){.name = name,
                                       .in = x->c,
                                       .out = out,
                                       .rows = tv_form_per_batch(tv_cnn_positions(x)),
                                       .bias = true},
                          v);
}

const tv_err *tv_cnn_attention(tv_cnn_run *r, const tv_scope *scope, const tv_json *j,
                               tv_feature *f)
{
    tv_layer_call c = {j, scope};
    double heads = 0, p = 0;
    bool crosses = false;
    tv_feature with = *f;
    tv_val q, k;
    TV_TRY(tv_cnn_value(r, c, "heads", 0, 8, &heads));
    TV_TRY(tv_cnn_value(r, c, "p", 0, 0, &p));
    TV_TRY(named(r, j, "with", &crosses, &with));
    if (heads < 1 || f->c / heads < 1)
        return tv_cnn_bad(r, j,
                          TV_TEXT0("layers.heads", N_("attention needs at least one channel "
                                                      "for each head")));
    TV_TRY(add_positions(r, j, "pos", f, &q));
    if (crosses)
        TV_TRY(add_positions(r, j, "with_pos", &with, &k));
    else
        k = q;
    const tv_val query = project(r, "q", f, q, f->c), key = project(r, "k", &with, k, f->c);
    const tv_val value = project(r, "v", &with, with.v, f->c);
    const tv_attention t = {.name = "attention",
                            .heads = heads,
                            .kv_heads = heads,
                            .head_dim = f->c / heads,
                            .q_tokens = tv_cnn_positions(f),
                            .k_tokens = tv_cnn_positions(&with),
                            .dropout = tv_dropout(r->e->set, p),
                            .cross = true}; /* nothing is cached */
    f->v = project(r, "out", f, tv_emit_attention(r->e, &t, query, key, value), f->c);
    return NULL;
}

/* A value that no layer computed: learned queries, or fixed numbers (sine positions, zeros) of the
 * current shape or of rows by width. It is saved under a name; the current value goes on. */
const tv_err *tv_cnn_table(tv_cnn_run *r, const tv_scope *scope, const tv_json *j, tv_feature *f)
{
    tv_layer_call c = {j, scope};
    tv_saved *s = tv_new(r->a, tv_saved, 1);
    double rows = 0, width = 0;
    TV_TRY(tv_cnn_value(r, c, "rows", 0, 0, &rows));
    TV_TRY(tv_cnn_value(r, c, "width", 0, f->c, &width));
    s->name = tv_json_str(tv_json_get(j, "as"));
    s->f = *f;
    s->f.c = width;
    if (rows > 0) {
        s->f.d[0] = rows;
        s->f.d[1] = s->f.d[2] = 1;
    }
    const double elements = tv_cnn_elements(&s->f);
    if (!s->name.n || !(elements >= 1 && elements <= 1e12))
        return tv_cnn_bad(r, j, TV_TEXT0("layers.table", N_("a table needs a name and a size")));
    if (tv_json_bool(tv_json_get(j, "learned"), true))
        tv_emit_weight(r->e, tv_cstr(r->a, s->name), TV_WEIGHT_OTHER, tv_cnn_positions(&s->f),
                       width, 1, TV_SHARD_NONE);
    s->f.v = tv_no_val;
    s->f.v.n = tv_form_per_batch(elements);
    s->f.v.dtype = r->e->set->policy.stream;
    s->next = (tv_saved *)(uintptr_t)r->saved;
    r->saved = s;
    return NULL;
}
