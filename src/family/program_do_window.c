/* Canonical operations with windows: convolutions, pools, resizing. */
#include "program_running.h"

/* Where the image's axes and its channels are. */
typedef struct image {
    uint32_t axes, first, channels;
} image;

static bool image_of(const tv_shape *x, const tv_window *w, image *m)
{
    m->axes = w->axes ? w->axes : x->rank >= 2 ? x->rank - 2 : 0;
    if (m->axes == 0 || m->axes > TV_WINDOW_AXES || x->rank < m->axes + 1)
        return false;
    /* Without a batch: [channels, ...]. */
    uint32_t lead = x->rank - m->axes - 1;
    if (lead > 1)
        return false;
    m->first = w->channels_last ? lead : lead + 1;
    m->channels = w->channels_last ? x->rank - 1 : lead;
    return true;
}

static double positions_of(const tv_shape *s, const image *m)
{
    double n = m->channels > 0 && s->rank > m->axes + 1 ? (double)s->d[0] : 1;
    for (uint32_t i = 0; i < m->axes; i++)
        n *= (double)s->d[m->first + i];
    return n;
}

static const tv_err *too_small(tv_running *r, const tv_shape *x)
{
    return tv_run_fail_shapes(r, "program.window", N_("a window does not fit into {x}"), x, NULL);
}

/* ---- convolutions ---- */

static uint32_t kernel_axis(const tv_conv_call *c, uint32_t i)
{
    return c->weight_last ? i + 1 : i + 2;
}

static bool conv_sizes(const tv_conv_call *c, const image *m, const tv_window *w, tv_shape *s)
{
    for (uint32_t i = 0; i < m->axes; i++) {
        int64_t size = s->d[m->first + i];
        int64_t out = c->transposed ? tv_shape_slide_back(w, i, size, c->extra[i])
                                    : tv_shape_slide(w, i, size);
        if (c->transposed && c->out_size[i] > 0)
            out = c->out_size[i];
        if (out < 0)
            return false;
        s->d[m->first + i] = out;
    }
    return true;
}

static const tv_err *bad_channels(tv_running *r, const tv_shape *x, const tv_shape *weight)
{
    return tv_run_fail_shapes(r, "program.conv",
                              N_("{x} and the weight {y} do not go together in a convolution"), x,
                              weight);
}

const tv_err *tv_rule_conv(tv_running *r, const tv_conv_call *call, uint32_t x, uint32_t weight,
                           uint32_t bias, uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, weight));
    const tv_run_value *v = tv_run_at(r, x);
    const tv_shape *k = tv_run_shape(r, weight);
    tv_window w = call->w;
    image m = {0};
    if (!image_of(&v->shape, &w, &m) || k->rank != m.axes + 2)
        return bad_channels(r, &v->shape, k);
    int64_t groups = call->groups > 0 ? call->groups : 1;
    int64_t in = v->shape.d[m.channels];
    int64_t first = k->d[0];
    int64_t second = call->weight_last ? k->d[k->rank - 1] : k->d[1];
    bool fits = call->transposed ? first == in : second * groups == in && first % groups == 0;
    if (!fits || in % groups)
        return bad_channels(r, &v->shape, k);
    double volume = 1;
    for (uint32_t i = 0; i < m.axes; i++) {
        w.kernel[i] = k->d[kernel_axis(call, i)];
        volume *= (double)w.kernel[i];
    }
    tv_shape shape = v->shape;
    if (!conv_sizes(call, &m, &w, &shape))
        return too_small(r, &v->shape);
    shape.d[m.channels] = call->transposed ? second * groups : first;
    *y = tv_run_make(r, call->dtype ? call->dtype : v->dtype, &shape);
    tv_step s = {.kind = TV_STEP_CONV};
    s.u.conv.in_channels = (double)in;
    s.u.conv.out_channels = (double)shape.d[m.channels];
    s.u.conv.kernel = volume;
    s.u.conv.groups = (double)groups;
    s.u.conv.positions = positions_of(call->transposed ? &v->shape : &shape, &m);
    s.u.conv.transposed = call->transposed;
    s.u.conv.bias = bias != TV_NO_VALUE;
    tv_run_push(r, &s, (uint32_t[]){x, weight, bias}, s.u.conv.bias ? 3 : 2, y, 1);
    return NULL;
}

/* ---- pools ---- */

static bool pool_sizes(const tv_pool_call *c, const image *m, tv_shape *s, double *window)
{
    for (uint32_t i = 0; i < m->axes; i++) {
        int64_t *size = &s->d[m->first + i];
        int64_t out = c->global            ? 1
                      : c->adaptive[i] > 0 ? c->adaptive[i]
                                           : tv_shape_slide(&c->w, i, *size);
        bool whole = c->global || c->adaptive[i] > 0;
        if (out < 0)
            return false;
        double reach = out > 0 ? (double)*size / (double)out : 1;
        *window *= whole                ? (reach > 1 ? reach : 1)
                   : c->w.kernel[i] > 0 ? (double)c->w.kernel[i]
                                        : 1;
        *size = out;
    }
    return true;
}

const tv_err *tv_rule_pool(tv_running *r, const tv_pool_call *call, uint32_t x, uint32_t *y,
                           uint32_t *indices)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    image m = {0};
    tv_shape shape = v->shape;
    double window = 1;
    if (!image_of(&v->shape, &call->w, &m) || !pool_sizes(call, &m, &shape, &window))
        return too_small(r, &v->shape);
    uint32_t out[2] = {tv_run_make(r, v->dtype, &shape), TV_NO_VALUE};
    if (indices)
        out[1] = tv_run_make(r, call->index_dtype ? call->index_dtype : TV_I64, &shape);
    bool global = call->global;
    for (uint32_t i = 0; i < m.axes && !call->global; i++)
        global = (i == 0 || global) && call->adaptive[i] == 1;
    tv_step s = {.kind = TV_STEP_POOL};
    s.u.pool.max = call->max;
    s.u.pool.average = !call->max;
    s.u.pool.global = global;
    s.u.pool.indices = indices != NULL;
    s.u.pool.window = window;
    tv_run_push(r, &s, &x, 1, out, indices ? 2 : 1);
    *y = out[0];
    if (indices)
        *indices = out[1];
    return NULL;
}

const tv_err *tv_rule_resize(tv_running *r, bool nearest, const tv_shape *shape, uint32_t x,
                             uint32_t *y)
{
    TV_TRY(tv_run_need(r, x));
    const tv_run_value *v = tv_run_at(r, x);
    if (shape->rank != v->shape.rank)
        return tv_run_fail_shapes(r, "program.resize", N_("{x} cannot be resized to {y}"),
                                  &v->shape, shape);
    if (tv_shape_same(shape, &v->shape))
        return tv_rule_view(r, x, shape, y);
    *y = tv_run_make(r, v->dtype, shape);
    tv_step s = {.kind = TV_STEP_RESIZE};
    s.u.resize.nearest = nearest;
    tv_run_push(r, &s, &x, 1, y, 1);
    return NULL;
}
