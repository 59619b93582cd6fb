/* Attention that was exported as product, scale, mask, softmax, product: found from its softmax,
 * so that the kernel of the user's framework is judged and not the export's pieces. */
#include "program_lower.h"

#include <math.h>

typedef struct found {
    const tv_step *scores, *values;
    const tv_step *between[40]; /* absorbed with them */
    size_t n_between;
    uint32_t q, k, v;
    uint32_t masks[6];
    size_t n_masks;
    double dropout;
    bool upcast;
} found;

static bool note(found *f, const tv_step *s)
{
    if (f->n_between == sizeof f->between / sizeof *f->between)
        return false;
    f->between[f->n_between++] = s;
    return true;
}

static double elements(const tv_lower *l, uint32_t v)
{
    return v == TV_NO_VALUE ? 0 : tv_shape_elements(&l->run->values[v].shape);
}

static bool is_cast(const tv_step *s)
{
    return s->kind == TV_STEP_COPY && s->u.layout.kind == TV_LAYOUT_CAST;
}

static bool only_shape(const tv_step *s)
{
    return s->kind == TV_STEP_VIEW &&
           (s->u.layout.kind == TV_LAYOUT_RESHAPE || s->u.layout.kind == TV_LAYOUT_EXPAND);
}

static void mask(const tv_lower *l, found *f, uint32_t v)
{
    double x;
    if (v != TV_NO_VALUE && !tv_lower_scalar(l, v, &x) && f->n_masks < 6)
        f->masks[f->n_masks++] = v;
}

/* The operand that the scores came along: as many elements as come out, and made by a step. */
static uint32_t scores_side(const tv_lower *l, found *f, const tv_step *s)
{
    const bool where = s->u.binary.fn == TV_FN2_COUNT;
    const double whole = elements(l, s->out[0]);
    uint32_t side = TV_NO_VALUE;
    for (size_t i = where ? 1 : 0; i < s->n_in && side == TV_NO_VALUE; i++)
        if (s->in[i] != TV_NO_VALUE && elements(l, s->in[i]) >= whole &&
            !l->run->values[s->in[i]].constant && l->uses[s->in[i]] == 1)
            side = s->in[i];
    for (size_t i = 0; i < s->n_in; i++)
        if (s->in[i] != side)
            mask(l, f, s->in[i]);
    return side;
}

/* From the softmax's input back to the product. */
static bool back_to_scores(const tv_lower *l, found *f, uint32_t v)
{
    for (int steps = 0; steps < 16 && v != TV_NO_VALUE && l->uses[v] == 1; steps++) {
        const tv_step *s = tv_lower_maker(l, v);
        if (!s || l->absorbed[tv_lower_index(l, s)])
            return false;
        if (s->kind == TV_STEP_MATMUL) {
            f->scores = s;
            return s->n_in >= 2 && !tv_lower_is_weight(l, s->in[0]) &&
                   !tv_lower_is_weight(l, s->in[1]);
        }
        if (!note(f, s))
            return false;
        if (s->kind == TV_STEP_BINARY)
            v = scores_side(l, f, s);
        else if (is_cast(s) || only_shape(s) ||
                 (s->kind == TV_STEP_UNARY && s->u.unary.fn == TV_FN_SCALE))
            v = s->in[0];
        else
            return false;
        f->upcast = f->upcast || is_cast(s);
    }
    return false;
}

/* softmax -> is-nan -> where: rows without any key are set to zero. */
static const tv_step *past_nan_guard(const tv_lower *l, found *f, uint32_t v, uint32_t *at)
{
    *at = v;
    if (l->uses[v] != 2)
        return tv_lower_sole_user(l, v);
    const tv_step *where = &l->run->steps[l->user[v]];
    if (where->kind != TV_STEP_BINARY || where->u.binary.fn != TV_FN2_COUNT)
        return NULL;
    const tv_step *test = tv_lower_maker(l, where->in[0]);
    if (!test || test->kind != TV_STEP_UNARY || test->u.unary.fn != TV_FN_IS_NAN ||
        test->in[0] != v || !note(f, test) || !note(f, where))
        return NULL;
    *at = where->out[0];
    return tv_lower_sole_user(l, *at);
}

static bool on_to_values(const tv_lower *l, found *f, uint32_t v)
{
    uint32_t at = v;
    const tv_step *s = past_nan_guard(l, f, v, &at);
    for (int steps = 0; steps < 10 && s; steps++) {
        if (s->kind == TV_STEP_MATMUL) {
            f->values = s;
            f->v = s->n_in >= 2 ? s->in[1] : TV_NO_VALUE;
            return f->v != TV_NO_VALUE && s->in[0] == at && !tv_lower_is_weight(l, f->v);
        }
        if (s->kind == TV_STEP_DROPOUT)
            f->dropout = s->u.dropout.p;
        else if (!is_cast(s) && !only_shape(s))
            return false;
        if (!note(f, s))
            return false;
        at = s->out[0];
        s = tv_lower_sole_user(l, at);
    }
    return false;
}

/* A scale on q or k before the product belongs to the kernel. */
static uint32_t unscaled(const tv_lower *l, found *f, uint32_t v)
{
    double factor;
    uint32_t x = v;
    for (int i = 0; i < 2 && l->uses[v] == 1; i++) {
        const tv_step *s = tv_lower_maker(l, v);
        if (!tv_lower_scaled(l, s, &x, &factor) || l->absorbed[tv_lower_index(l, s)] || !note(f, s))
            return v;
        v = x;
    }
    return v;
}

/* Keys that were repeated to all heads: what they were before. */
static uint32_t before_repeat(const tv_lower *l, uint32_t v)
{
    uint32_t at = v, smallest = v;
    for (int i = 0; i < 8; i++) {
        const tv_step *s = tv_lower_maker(l, at);
        if (!s || (s->kind != TV_STEP_VIEW && s->kind != TV_STEP_COPY) || s->n_in != 1)
            break;
        at = s->in[0];
        if (elements(l, at) < elements(l, smallest))
            smallest = at;
        else if (s->u.layout.kind == TV_LAYOUT_SLICE)
            break;
    }
    return smallest;
}

/* ---- masks ---- */

static bool is_triangle(const tv_lower *l, uint32_t v)
{
    const tv_run_value *r = &l->run->values[v];
    const uint32_t n = r->shape.rank;
    if (!r->data || n < 2 || r->shape.d[n - 1] != r->shape.d[n - 2] || r->shape.d[n - 1] < 2)
        return false;
    const int64_t side = r->shape.d[n - 1];
    const double above = r->data[1], below = r->data[side];
    return fabs(above - below) > 0 && !(fabs(r->data[0] - below) > 0);
}

/* A comparison of two ranges, a triangle of a matrix, or a stored square of booleans somewhere
 * above the mask. */
static bool hides_later(const tv_lower *l, uint32_t v, int depth)
{
    if (v == TV_NO_VALUE || depth > 14)
        return false;
    const tv_run_value *r = &l->run->values[v];
    if (is_triangle(l, v))
        return true;
    if (r->from && r->from->role == TV_VALUE_WEIGHT) {
        const uint32_t n = r->shape.rank;
        const bool flags = r->dtype == TV_BOOL || r->dtype == TV_U8;
        return flags && n >= 2 && r->shape.d[n - 1] == r->shape.d[n - 2];
    }
    const tv_step *s = tv_lower_maker(l, v);
    if (!s)
        return false;
    if (tv_str_has(s->node ? s->node->op : (tv_str){0}, TV_S("ril")) || /* Trilu, tril */
        tv_str_has(s->node ? s->node->op : (tv_str){0}, TV_S("riu")))
        return true;
    if (s->kind == TV_STEP_BINARY && s->u.binary.compare && s->u.binary.fn >= TV_FN2_LESS &&
        s->u.binary.fn <= TV_FN2_GREATER_EQUAL)
        return true;
    for (size_t i = 0; i < s->n_in && s->kind != TV_STEP_MATMUL; i++)
        if (hides_later(l, s->in[i], depth + 1))
            return true;
    return false;
}

/* A parameter above the mask: a learned bias on the scores. */
static bool is_learned(const tv_lower *l, uint32_t v, int depth)
{
    if (v == TV_NO_VALUE || depth > 10)
        return false;
    if (tv_lower_is_weight(l, v)) {
        const tv_run_value *w = &l->run->values[l->run->values[v].weight];
        return tv_dtype_of(w->dtype)->is_float && !(w->from && w->from->buffer) &&
               elements(l, v) > 1;
    }
    const tv_step *s = tv_lower_maker(l, v);
    for (size_t i = 0; s && i < s->n_in; i++)
        if (is_learned(l, s->in[i], depth + 1))
            return true;
    return false;
}

bool tv_match_attention(tv_lower *l, uint32_t step)
{
    const tv_step *softmax = tv_lower_step(l, step);
    found f = {.q = TV_NO_VALUE, .k = TV_NO_VALUE, .v = TV_NO_VALUE};
    if (softmax->u.softmax.log || !softmax->n_in || !softmax->n_out ||
        !back_to_scores(l, &f, softmax->in[0]) || !on_to_values(l, &f, softmax->out[0]))
        return false;
    f.q = unscaled(l, &f, f.scores->in[0]);
    f.k = unscaled(l, &f, f.scores->in[1]);
    for (size_t i = 0; i < f.n_between; i++)
        l->absorbed[tv_lower_index(l, f.between[i])] = true;
    l->absorbed[step] = l->absorbed[tv_lower_index(l, f.scores)] = true;
    l->absorbed[tv_lower_index(l, f.values)] = true;
    const uint32_t source = before_repeat(l, f.k);
    const bool fewer = elements(l, source) < elements(l, f.k);
    uint32_t in[9] = {f.q, fewer ? source : f.k, fewer ? before_repeat(l, f.v) : f.v};
    size_t n = 3;
    for (size_t i = 0; i < f.n_masks; i++)
        in[n++] = f.masks[i];
    tv_item *item =
        tv_lower_push(l, TV_ITEM_ATTENTION, tv_lower_index(l, f.values), in, n, f.values->out[0]);
    item->scores = tv_lower_index(l, f.scores);
    item->values = tv_lower_index(l, f.values);
    item->kv_source = fewer ? f.k : TV_NO_VALUE;
    item->dropout = f.dropout;
    item->upcast = f.upcast;
    for (size_t i = 0; i < f.n_masks; i++) {
        item->causal = item->causal || hides_later(l, f.masks[i], 0);
        item->learned_mask = item->learned_mask || is_learned(l, f.masks[i], 0);
    }
    return true;
}
