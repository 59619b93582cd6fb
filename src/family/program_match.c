/* Modules that an export took apart are found again: activations, norms, biases, attention (in a
 * file of its own). A pattern is looked for from the step that gives it away; every value inside it
 * has one reader, so that nothing else is lost. Knows functions, not dialects. */
#include "program_lower.h"

#include <math.h>

/* ---- looking around ---- */

const tv_step *tv_lower_maker(const tv_lower *l, uint32_t v)
{
    return v == TV_NO_VALUE || l->maker[v] == TV_NO_VALUE ? NULL : &l->run->steps[l->maker[v]];
}

uint32_t tv_lower_index(const tv_lower *l, const tv_step *s)
{
    return (uint32_t)(s - l->run->steps);
}

const tv_step *tv_lower_sole_user(const tv_lower *l, uint32_t v)
{
    if (v == TV_NO_VALUE || l->uses[v] != 1 || l->is_output[v])
        return NULL;
    const tv_step *s = &l->run->steps[l->user[v]];
    return l->absorbed[l->user[v]] ? NULL : s;
}

static uint32_t out_of(const tv_step *s)
{
    return s->n_out ? s->out[0] : TV_NO_VALUE;
}

static uint32_t in_of(const tv_step *s, size_t i)
{
    return i < s->n_in ? s->in[i] : TV_NO_VALUE;
}

static double elements(const tv_lower *l, uint32_t v)
{
    return v == TV_NO_VALUE ? 0 : tv_shape_elements(&l->run->values[v].shape);
}

static double raw_number(tv_dtype t, const unsigned char *p, size_t n)
{
    union {
        uint32_t u;
        float f;
    } four = {0};
    union {
        uint64_t u;
        double f;
    } eight = {0};
    for (size_t i = 0; i < n && i < 8; i++)
        eight.u |= (uint64_t)p[i] << (8 * i);
    four.u = (uint32_t)eight.u;
    if (t == TV_F32 && n >= 4)
        return (double)four.f;
    if (t == TV_F64 && n >= 8)
        return eight.f;
    if (t == TV_BF16 && n >= 2) {
        four.u = (uint32_t)(eight.u & 0xffff) << 16;
        return (double)four.f;
    }
    if (t == TV_F16 && n >= 2) {
        const int exponent = (int)(eight.u >> 10 & 31);
        const double m = (double)(eight.u & 1023) / 1024;
        const double x = exponent ? ldexp(1 + m, exponent - 15) : ldexp(m, -14);
        return eight.u >> 15 & 1 ? -x : x;
    }
    return t == TV_I64 || t == TV_I32
               ? (double)(int64_t)(t == TV_I32 ? (int32_t)four.u : (int64_t)eight.u)
               : (double)NAN;
}

bool tv_lower_scalar(const tv_lower *l, uint32_t v, double *x)
{
    if (v == TV_NO_VALUE)
        return false;
    const tv_run_value *r = &l->run->values[v];
    if (tv_shape_elements(&r->shape) != 1)
        return false;
    if (r->data) {
        *x = r->data[0];
        return true;
    }
    const tv_value *from = r->from;
    if (from && from->role == TV_VALUE_WEIGHT && from->data.n) {
        *x = raw_number(from->dtype, from->data.p, from->data.n);
        return true;
    }
    *x = (double)NAN;
    return r->constant && r->weight == TV_NO_VALUE;
}

bool tv_lower_scaled(const tv_lower *l, const tv_step *s, uint32_t *x, double *factor)
{
    double c = 0;
    if (s && s->kind == TV_STEP_UNARY && s->u.unary.fn == TV_FN_SCALE) {
        *x = in_of(s, 0);
        *factor = s->u.unary.a;
        return !(fabs(s->u.unary.b) > 0);
    }
    if (!s || s->kind != TV_STEP_BINARY || s->n_in < 2)
        return false;
    if (s->u.binary.fn == TV_FN2_DIV && tv_lower_scalar(l, s->in[1], &c)) {
        *x = s->in[0];
        *factor = 1 / c;
        return true;
    }
    for (size_t i = 0; i < 2 && s->u.binary.fn == TV_FN2_MUL; i++)
        if (tv_lower_scalar(l, s->in[1 - i], factor)) {
            *x = s->in[i];
            return true;
        }
    return false;
}

bool tv_lower_shifted(const tv_lower *l, const tv_step *s, uint32_t *x, double *term)
{
    if (s && s->kind == TV_STEP_UNARY && s->u.unary.fn == TV_FN_SCALE) {
        *x = in_of(s, 0);
        *term = s->u.unary.b;
        return fabs(s->u.unary.b) > 0 && !(fabs(s->u.unary.a - 1) > 0);
    }
    if (!s || s->kind != TV_STEP_BINARY || s->u.binary.fn != TV_FN2_ADD || s->n_in < 2)
        return false;
    for (size_t i = 0; i < 2; i++)
        if (tv_lower_scalar(l, s->in[1 - i], term)) {
            *x = s->in[i];
            return true;
        }
    return false;
}

static bool is_fn(const tv_step *s, tv_fn fn)
{
    return s && s->kind == TV_STEP_UNARY && s->u.unary.fn == fn;
}

static bool is_fn2(const tv_step *s, tv_fn2 fn)
{
    return s && s->kind == TV_STEP_BINARY && s->u.binary.fn == fn && s->n_in >= 2;
}

/* The other factor or term of a step that reads v. */
static uint32_t other_of(const tv_step *s, uint32_t v)
{
    return s->in[0] == v ? s->in[1] : s->in[0];
}

/* x² in whichever way it is written. */
static bool is_square(const tv_lower *l, const tv_step *s, uint32_t *x)
{
    double power = 0;
    if (!s)
        return false;
    *x = in_of(s, 0);
    if (is_fn(s, TV_FN_SQUARE))
        return true;
    if (is_fn(s, TV_FN_POW))
        return fabs(s->u.unary.a - 2) < 1e-6;
    if (is_fn2(s, TV_FN2_POW))
        return tv_lower_scalar(l, s->in[1], &power) && fabs(power - 2) < 1e-6;
    return is_fn2(s, TV_FN2_MUL) && s->in[0] == s->in[1];
}

/* ---- items ---- */

tv_item *tv_lower_push(tv_lower *l, tv_item_kind kind, uint32_t step, const uint32_t *in,
                       size_t n_in, uint32_t out)
{
    uint32_t *ins = tv_new(l->a, uint32_t, n_in + 1);
    uint32_t *outs = tv_new(l->a, uint32_t, 1);
    for (size_t i = 0; i < n_in; i++)
        ins[i] = in[i];
    outs[0] = out;
    tv_item *t = tv_push(l->a, &l->items);
    *t = (tv_item){
        .kind = kind,
        .step = step,
        .in = ins,
        .n_in = n_in,
        .out = outs,
        .n_out = 1,
        .weight = TV_NO_VALUE,
        .bias = TV_NO_VALUE,
        .norm_step = TV_NO_VALUE,
        .kv_source = TV_NO_VALUE,
    };
    return t;
}

static void absorb(tv_lower *l, const tv_step *s)
{
    l->absorbed[tv_lower_index(l, s)] = true;
}

/* Steps between, so that they are marked only when the whole pattern holds. */
typedef struct trail {
    const tv_step *v[24];
    size_t n;
} trail;

static void note(trail *t, const tv_step *s)
{
    if (t->n < sizeof t->v / sizeof *t->v)
        t->v[t->n++] = s;
}

static void absorb_all(tv_lower *l, const trail *t)
{
    for (size_t i = 0; i < t->n; i++)
        absorb(l, t->v[i]);
}

static void found_act(tv_lower *l, trail *t, const tv_step *last, tv_act act, uint32_t x)
{
    note(t, last);
    absorb_all(l, t);
    tv_item *item = tv_lower_push(l, TV_ITEM_ACT, tv_lower_index(l, last), &x, 1, out_of(last));
    item->act = act;
}

/* x behind a scaling that only this pattern reads. */
static uint32_t unscaled(tv_lower *l, uint32_t v, trail *t)
{
    uint32_t x = v;
    double factor = 0;
    const tv_step *s = tv_lower_maker(l, v);
    if (l->uses[v] != 1 || !tv_lower_scaled(l, s, &x, &factor))
        return v;
    note(t, s);
    return x;
}

/* ---- activations ---- */

/* 1 + inner, times x (or x/2), times one half. */
static bool gated_by_one_plus(tv_lower *l, const tv_step *inner, uint32_t x, trail *t,
                              const tv_step **last)
{
    uint32_t plus_in = 0, half_in = 0;
    double one = 0, half = 0;
    const tv_step *plus = tv_lower_sole_user(l, out_of(inner));
    if (!tv_lower_shifted(l, plus, &plus_in, &one))
        return false;
    const tv_step *product = tv_lower_sole_user(l, out_of(plus));
    uint32_t from = out_of(plus);
    if (tv_lower_scaled(l, product, &half_in, &half)) { /* (1 + inner)/2 first */
        note(t, product);
        from = out_of(product);
        product = tv_lower_sole_user(l, from);
    }
    if (!is_fn2(product, TV_FN2_MUL))
        return false;
    const uint32_t beside = other_of(product, from);
    if (beside != x && unscaled(l, beside, t) != x)
        return false;
    note(t, plus);
    *last = product;
    const tv_step *halved = tv_lower_sole_user(l, out_of(product));
    if (beside == x && from == out_of(plus) && tv_lower_scaled(l, halved, &half_in, &half)) {
        note(t, product);
        *last = halved;
    }
    return true;
}

static bool match_erf(tv_lower *l, const tv_step *s)
{
    trail t = {0};
    const tv_step *last = NULL;
    const uint32_t x = unscaled(l, in_of(s, 0), &t);
    if (!gated_by_one_plus(l, s, x, &t, &last))
        return false;
    note(&t, s);
    found_act(l, &t, last, TV_ACT_GELU, x);
    return true;
}

/* x + 0.0447·x³, inside the hyperbolic tangent. */
static bool is_cubic(tv_lower *l, uint32_t v, trail *t, uint32_t *x, bool *power)
{
    double c = 0;
    const uint32_t sum = unscaled(l, v, t);
    const tv_step *add = tv_lower_maker(l, sum);
    if (!is_fn2(add, TV_FN2_ADD) || l->uses[sum] != 1)
        return false;
    for (size_t i = 0; i < 2; i++) {
        trail side = {0};
        const uint32_t cube = unscaled(l, add->in[i], &side);
        const tv_step *p = tv_lower_maker(l, cube);
        uint32_t squared = 0;
        const bool by_power =
            is_fn(p, TV_FN_POW) || (is_fn2(p, TV_FN2_POW) && tv_lower_scalar(l, p->in[1], &c));
        const bool by_products =
            is_fn2(p, TV_FN2_MUL) && (is_square(l, tv_lower_maker(l, p->in[0]), &squared) ||
                                      is_square(l, tv_lower_maker(l, p->in[1]), &squared));
        if (!by_power && !by_products)
            continue;
        *x = add->in[1 - i];
        *power = by_power;
        if ((by_power ? p->in[0] : squared) != *x)
            continue;
        for (size_t k = 0; k < side.n; k++)
            note(t, side.v[k]);
        note(t, p);
        for (size_t k = 0; by_products && k < 2; k++)
            if (is_square(l, tv_lower_maker(l, p->in[k]), &squared))
                note(t, tv_lower_maker(l, p->in[k]));
        note(t, add);
        return true;
    }
    return false;
}

/* torch's kernel is exported as products; GPT-2's own Python function keeps its power of three. */
static bool match_tanh(tv_lower *l, const tv_step *s)
{
    trail t = {0};
    uint32_t x = TV_NO_VALUE;
    bool power = false;
    const tv_step *last = NULL;
    if (!is_cubic(l, in_of(s, 0), &t, &x, &power) || !gated_by_one_plus(l, s, x, &t, &last))
        return false;
    note(&t, s);
    found_act(l, &t, last, power ? TV_ACT_GELU_NEW : TV_ACT_GELU, x);
    return true;
}

static bool match_sigmoid(tv_lower *l, const tv_step *s)
{
    trail t = {0};
    const uint32_t in = in_of(s, 0);
    const uint32_t x = unscaled(l, in, &t);
    const tv_step *product = tv_lower_sole_user(l, out_of(s));
    if (!is_fn2(product, TV_FN2_MUL))
        return false;
    const uint32_t beside = other_of(product, out_of(s));
    if (beside != x && beside != in)
        return false;
    note(&t, s);
    found_act(l, &t, product, beside == in ? TV_ACT_SILU : TV_ACT_QUICK_GELU, beside);
    return true;
}

/* clip(x + 3, 0, 6), times x, over 6 in either order; without x: the gate itself. */
static bool match_clip(tv_lower *l, const tv_step *s)
{
    trail t = {0};
    uint32_t x = 0, scaled = 0;
    double three = 0, sixth = 0;
    const tv_step *plus = tv_lower_maker(l, in_of(s, 0));
    if (!tv_lower_shifted(l, plus, &x, &three) || fabs(three - 3) > 1e-6 ||
        l->uses[in_of(s, 0)] != 1)
        return false;
    note(&t, plus);
    note(&t, s);
    const tv_step *next = tv_lower_sole_user(l, out_of(s));
    if (is_fn2(next, TV_FN2_MUL) && other_of(next, out_of(s)) == x) {
        const tv_step *over = tv_lower_sole_user(l, out_of(next));
        if (!tv_lower_scaled(l, over, &scaled, &sixth))
            return false;
        note(&t, next);
        found_act(l, &t, over, TV_ACT_HARDSWISH, x);
        return true;
    }
    if (!tv_lower_scaled(l, next, &scaled, &sixth))
        return false;
    const tv_step *product = tv_lower_sole_user(l, out_of(next));
    const bool swish = is_fn2(product, TV_FN2_MUL) && other_of(product, out_of(next)) == x;
    if (swish)
        note(&t, next);
    found_act(l, &t, swish ? product : next, swish ? TV_ACT_HARDSWISH : TV_ACT_HARDSIGMOID, x);
    return true;
}

static bool match_gate(tv_lower *l, const tv_step *s, tv_act act)
{
    trail t = {0};
    const uint32_t x = in_of(s, 0);
    const tv_step *product = tv_lower_sole_user(l, out_of(s));
    if (!is_fn2(product, TV_FN2_MUL) || other_of(product, out_of(s)) != x)
        return false;
    note(&t, s);
    found_act(l, &t, product, act, x);
    return true;
}

/* x·tanh(softplus(x)). */
static bool match_softplus(tv_lower *l, const tv_step *s)
{
    trail t = {0};
    const tv_step *tanh = tv_lower_sole_user(l, out_of(s));
    if (!is_fn(tanh, TV_FN_TANH))
        return false;
    const tv_step *product = tv_lower_sole_user(l, out_of(tanh));
    if (!is_fn2(product, TV_FN2_MUL) || other_of(product, out_of(tanh)) != in_of(s, 0))
        return false;
    note(&t, s);
    note(&t, tanh);
    found_act(l, &t, product, TV_ACT_MISH, in_of(s, 0));
    return true;
}

static bool match_unary(tv_lower *l, const tv_step *s)
{
    switch ((int)s->u.unary.fn) {
    case TV_FN_ERF:
        return match_erf(l, s);
    case TV_FN_TANH:
        return match_tanh(l, s);
    case TV_FN_SIGMOID:
        return match_sigmoid(l, s);
    case TV_FN_HARDSIGMOID:
        return match_gate(l, s, TV_ACT_HARDSWISH);
    case TV_FN_CLIP:
    case TV_FN_RELU6:
        return match_clip(l, s);
    case TV_FN_SOFTPLUS:
        return match_softplus(l, s);
    }
    return false;
}

/* ---- norms ---- */

/* Behind casts that only pass the value on. */
static const tv_step *user_past_casts(tv_lower *l, uint32_t v, trail *t, uint32_t *at)
{
    *at = v;
    const tv_step *s = tv_lower_sole_user(l, v);
    while (s && s->kind == TV_STEP_COPY && s->u.layout.kind == TV_LAYOUT_CAST) {
        note(t, s);
        *at = out_of(s);
        s = tv_lower_sole_user(l, *at);
    }
    return s;
}

/* Mean of squares, plus epsilon, root, its reciprocal: yields the value that x is multiplied with
 * (or divided by). */
static bool inverse_root(tv_lower *l, const tv_step *mean, trail *t, uint32_t *v, bool *divides)
{
    uint32_t x = 0;
    double epsilon = 0;
    if (!mean || mean->kind != TV_STEP_REDUCE || mean->u.reduce.kind != TV_REDUCE_MEAN)
        return false;
    const tv_step *plus = tv_lower_sole_user(l, out_of(mean));
    if (!tv_lower_shifted(l, plus, &x, &epsilon))
        return false;
    note(t, mean);
    note(t, plus);
    const tv_step *root = tv_lower_sole_user(l, out_of(plus));
    if (is_fn(root, TV_FN_RSQRT) || is_fn(root, TV_FN_POW)) {
        note(t, root);
        *v = out_of(root);
        *divides = false;
        return true;
    }
    if (!is_fn(root, TV_FN_SQRT))
        return false;
    note(t, root);
    const tv_step *next = tv_lower_sole_user(l, out_of(root));
    double one = 0;
    const bool turned = is_fn(next, TV_FN_RECIPROCAL) ||
                        (is_fn2(next, TV_FN2_DIV) && tv_lower_scalar(l, next->in[0], &one));
    if (turned)
        note(t, next);
    *v = turned ? out_of(next) : out_of(root);
    *divides = !turned;
    return true;
}

/* A vector parameter that v is multiplied with or that is added to it. */
static bool affine(const tv_lower *l, const tv_step *s, tv_fn2 fn, uint32_t v, uint32_t *w)
{
    if (!is_fn2(s, fn))
        return false;
    *w = other_of(s, v);
    const double n = elements(l, *w), whole = elements(l, out_of(s));
    return *w != v && l->run->values[*w].constant && n > 1 && whole > n && elements(l, v) >= whole;
}

static void norm_item(tv_lower *l, trail *t, const tv_step *last, tv_norm_kind kind, uint32_t x,
                      uint32_t weight, uint32_t bias)
{
    note(t, last);
    absorb_all(l, t);
    tv_item *item = tv_lower_push(l, TV_ITEM_NORM, tv_lower_index(l, last), &x, 1, out_of(last));
    const tv_shape *shape = &l->run->values[x].shape;
    item->norm = kind;
    item->weight = weight;
    item->bias = bias;
    item->width = weight != TV_NO_VALUE ? elements(l, weight)
                  : shape->rank         ? (double)shape->d[shape->rank - 1]
                                        : 1;
}

/* The step that squares d: within a few of the one that made it. */
static const tv_step *square_of(const tv_lower *l, uint32_t d, uint32_t after)
{
    uint32_t x = 0;
    for (size_t i = after + 1; i < l->run->n_steps && i < after + 14; i++)
        if (is_square(l, &l->run->steps[i], &x) && x == d)
            return &l->run->steps[i];
    return NULL;
}

/* x - mean(x), its square's mean, a quotient, weight and bias: a LayerNorm in seven pieces. */
static bool match_layer_norm(tv_lower *l, const tv_step *mean)
{
    trail t = {0};
    const uint32_t x = in_of(mean, 0);
    const tv_step *minus = tv_lower_sole_user(l, out_of(mean));
    if (!is_fn2(minus, TV_FN2_SUB) || minus->in[0] != x)
        return false;
    const uint32_t d = out_of(minus);
    uint32_t inverse = 0;
    const tv_step *square = square_of(l, d, tv_lower_index(l, minus));
    bool divides = false;
    if (!square)
        return false;
    note(&t, mean);
    note(&t, minus);
    note(&t, square);
    uint32_t at = 0;
    if (!inverse_root(l, user_past_casts(l, out_of(square), &t, &at), &t, &inverse, &divides))
        return false;
    const tv_step *product = tv_lower_sole_user(l, inverse);
    if (!is_fn2(product, divides ? TV_FN2_DIV : TV_FN2_MUL) || other_of(product, inverse) != d)
        return false;
    uint32_t weight = TV_NO_VALUE, bias = TV_NO_VALUE;
    const tv_step *last = product;
    const tv_step *scale = user_past_casts(l, out_of(product), &t, &at);
    if (affine(l, scale, TV_FN2_MUL, at, &weight)) {
        note(&t, last);
        last = scale;
        const tv_step *plus = tv_lower_sole_user(l, out_of(scale));
        if (affine(l, plus, TV_FN2_ADD, out_of(scale), &bias)) {
            note(&t, last);
            last = plus;
        }
    } else {
        weight = TV_NO_VALUE;
    }
    norm_item(l, &t, last, TV_NORM_LAYER, x, weight, bias);
    return true;
}

/* x·rsqrt(mean(x²) + e), times a weight. */
static bool match_rms_norm(tv_lower *l, const tv_step *square, uint32_t x)
{
    trail t = {0};
    uint32_t inverse = 0, at = 0, weight = TV_NO_VALUE;
    bool divides = false;
    note(&t, square);
    if (!inverse_root(l, tv_lower_sole_user(l, out_of(square)), &t, &inverse, &divides))
        return false;
    const tv_step *product = tv_lower_sole_user(l, inverse);
    if (!is_fn2(product, divides ? TV_FN2_DIV : TV_FN2_MUL) || other_of(product, inverse) != x)
        return false;
    const tv_step *scale = user_past_casts(l, out_of(product), &t, &at);
    if (!affine(l, scale, TV_FN2_MUL, at, &weight))
        return false;
    note(&t, product);
    const tv_step *cast = tv_lower_maker(l, x); /* the copy in fp32 is the norm's own */
    if (cast && cast->kind == TV_STEP_COPY && cast->u.layout.kind == TV_LAYOUT_CAST &&
        !l->absorbed[tv_lower_index(l, cast)] && l->uses[x] == 2) {
        note(&t, cast);
        x = in_of(cast, 0);
    }
    norm_item(l, &t, scale, TV_NORM_RMS, x, weight, TV_NO_VALUE);
    return true;
}

static const tv_step *past_views(tv_lower *l, uint32_t v, trail *t, uint32_t *at)
{
    *at = v;
    const tv_step *s = tv_lower_sole_user(l, v);
    while (s && s->kind == TV_STEP_VIEW && s->u.layout.kind == TV_LAYOUT_RESHAPE) {
        note(t, s);
        *at = out_of(s);
        s = tv_lower_sole_user(l, *at);
    }
    return s;
}

/* GroupNorm is exported as an instance norm over reshaped groups, with weight and bias behind. */
static bool match_group_norm(tv_lower *l, const tv_step *s)
{
    if (s->u.norm.kind != TV_NORM_GROUP || !s->u.norm.instance)
        return false;
    trail t = {0};
    uint32_t at = 0, x = in_of(s, 0), weight = TV_NO_VALUE, bias = TV_NO_VALUE;
    const tv_step *scale = past_views(l, out_of(s), &t, &at);
    if (!affine(l, scale, TV_FN2_MUL, at, &weight))
        return false;
    const tv_step *plus = tv_lower_sole_user(l, out_of(scale));
    const bool both = affine(l, plus, TV_FN2_ADD, out_of(scale), &bias);
    note(&t, s);
    if (both)
        note(&t, scale);
    const tv_step *view = tv_lower_maker(l, x);
    if (view && view->kind == TV_STEP_VIEW && l->uses[x] == 1) {
        note(&t, view);
        x = in_of(view, 0);
    }
    norm_item(l, &t, both ? plus : scale, TV_NORM_GROUP, x, weight, both ? bias : TV_NO_VALUE);
    l->items.v[l->items.n - 1].norm_step = tv_lower_index(l, s);
    return true;
}

/* ---- products with a bias behind ---- */

static void plain_item(tv_lower *l, const tv_step *s)
{
    tv_item *item = tv_lower_push(l, TV_ITEM_STEP, tv_lower_index(l, s), s->in, s->n_in, out_of(s));
    item->out = s->out;
    item->n_out = s->n_out;
}

static bool match_bias(tv_lower *l, const tv_step *s)
{
    const bool left = s->u.matmul.weight_left;
    const uint32_t w = in_of(s, left ? 0 : 1);
    if (s->u.matmul.bias || !tv_lower_is_weight(l, w) || left)
        return false;
    const tv_step *plus = tv_lower_sole_user(l, out_of(s));
    if (!is_fn2(plus, TV_FN2_ADD))
        return false;
    const uint32_t bias = other_of(plus, out_of(s));
    if (!tv_lower_is_weight(l, bias) || fabs(elements(l, bias) - s->u.matmul.n) > 0.5)
        return false;
    absorb(l, plus);
    absorb(l, s);
    tv_item *item =
        tv_lower_push(l, TV_ITEM_STEP, tv_lower_index(l, s), s->in, s->n_in, out_of(plus));
    item->bias = bias;
    return true;
}

/* ---- all ---- */

static bool match_step(tv_lower *l, const tv_step *s)
{
    uint32_t x = 0;
    if (s->kind == TV_STEP_SOFTMAX && tv_match_attention(l, tv_lower_index(l, s)))
        return true;
    if (s->kind == TV_STEP_UNARY && match_unary(l, s))
        return true;
    if (s->kind == TV_STEP_REDUCE && s->u.reduce.kind == TV_REDUCE_MEAN && match_layer_norm(l, s))
        return true;
    if (is_square(l, s, &x) && match_rms_norm(l, s, x))
        return true;
    if (s->kind == TV_STEP_NORM && match_group_norm(l, s))
        return true;
    return s->kind == TV_STEP_MATMUL && match_bias(l, s);
}

/* Items in the order of their last steps (a stable merge: patterns were pushed as found). */
static void sort_items(tv_lower *l)
{
    uint32_t *at = tv_new(l->a, uint32_t, l->run->n_steps + 1);
    for (size_t i = 0; i <= l->run->n_steps; i++)
        at[i] = TV_NO_VALUE;
    for (size_t i = 0; i < l->items.n; i++)
        at[l->items.v[i].step] = (uint32_t)i;
    tv_item *sorted = tv_new(l->a, tv_item, l->items.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < l->run->n_steps; i++)
        if (at[i] != TV_NO_VALUE)
            sorted[n++] = l->items.v[at[i]];
    l->items.v = sorted;
    l->items.n = l->items.cap = n;
}

/* Repeated keys, masks of a kernel that builds its own: what nobody reads any more. */
static void drop_unread(tv_lower *l)
{
    bool *read = tv_new(l->a, bool, l->run->n_values + 1);
    bool *kept = tv_new(l->a, bool, l->items.n + 1);
    for (size_t i = l->items.n; i-- > 0;) {
        const tv_item *t = &l->items.v[i];
        for (size_t k = 0; k < t->n_out; k++)
            kept[i] = kept[i] ||
                      (t->out[k] != TV_NO_VALUE && (read[t->out[k]] || l->is_output[t->out[k]]));
        for (size_t k = 0; k < t->n_in && kept[i]; k++)
            if (t->in[k] != TV_NO_VALUE)
                read[t->in[k]] = true;
    }
    size_t n = 0;
    for (size_t i = 0; i < l->items.n; i++)
        if (kept[i])
            l->items.v[n++] = l->items.v[i];
    l->items.n = n;
}

/* Made of constants alone: when the graph is loaded. */
static bool fills_constant(const tv_lower *l, const tv_step *s)
{
    bool all = s->n_out > 0 && s->out[0] != TV_NO_VALUE && s->kind == TV_STEP_COPY;
    for (size_t i = 0; i < s->n_in && all; i++)
        all = s->in[i] == TV_NO_VALUE || l->run->values[s->in[i]].constant;
    return all && (s->n_in == 0 || l->run->values[s->out[0]].constant);
}

void tv_lower_match(tv_lower *l)
{
    if (!l->recorded)
        for (size_t i = 0; i < l->run->n_steps; i++)
            if (!l->absorbed[i])
                (void)match_step(l, &l->run->steps[i]);
    for (size_t i = 0; i < l->run->n_steps; i++)
        if (!l->absorbed[i] && !fills_constant(l, &l->run->steps[i]))
            plain_item(l, &l->run->steps[i]);
    sort_items(l);
    drop_unread(l);
    for (size_t i = 0; i < l->items.n; i++)
        for (size_t k = 0; k < l->items.v[i].n_out; k++)
            if (l->items.v[i].out[k] != TV_NO_VALUE)
                l->item_of[l->items.v[i].out[k]] = (uint32_t)i;
}
