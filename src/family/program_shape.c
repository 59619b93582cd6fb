/* Arithmetic on shapes. Sizes are bounded (2^62 elements), so that products are exact. */
#include "program_shape.h"

double tv_shape_elements(const tv_shape *s)
{
    double n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        n *= (double)s->d[i];
    return n;
}

int64_t tv_shape_count(const tv_shape *s)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        if (__builtin_mul_overflow(n, s->d[i], &n) || n > INT64_MAX / 2)
            return -1;
    return n;
}

int64_t tv_shape_times(int64_t x, int64_t y)
{
    int64_t z = 0;
    return __builtin_mul_overflow(x, y, &z) || z > INT64_MAX / 2 ? INT64_MAX / 2 : z;
}

bool tv_shape_same(const tv_shape *x, const tv_shape *y)
{
    if (x->rank != y->rank)
        return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->d[i] != y->d[i])
            return false;
    return true;
}

tv_shape tv_shape_of(uint32_t rank, const int64_t *d)
{
    tv_shape s = {.rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        s.d[i] = d[i];
    return s;
}

bool tv_shape_push(tv_shape *s, int64_t d)
{
    if (s->rank == TV_LIMIT_RANK)
        return false;
    s->d[s->rank++] = d;
    return true;
}

bool tv_shape_axis(int64_t axis, uint32_t rank, uint32_t *out)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return false;
    *out = (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
    return true;
}

bool tv_shape_axes(const int64_t *axes, size_t n, uint32_t rank, bool set[TV_LIMIT_RANK])
{
    for (uint32_t i = 0; i < TV_LIMIT_RANK; i++)
        set[i] = n == 0 && i < rank;
    for (size_t i = 0; i < n; i++) {
        uint32_t axis = 0;
        if (!tv_shape_axis(axes[i], rank, &axis))
            return false;
        set[axis] = true;
    }
    return true;
}

static int64_t from_back(const tv_shape *s, uint32_t i)
{
    return i < s->rank ? s->d[s->rank - 1 - i] : 1;
}

bool tv_shape_broadcast(const tv_shape *x, const tv_shape *y, tv_shape *out)
{
    tv_shape z = {.rank = x->rank > y->rank ? x->rank : y->rank};
    for (uint32_t i = 0; i < z.rank; i++) {
        int64_t a = from_back(x, i);
        int64_t b = from_back(y, i);
        if (a != b && a != 1 && b != 1)
            return false;
        z.d[z.rank - 1 - i] = a == 1 ? b : a;
    }
    *out = z;
    return true;
}

/* What -1 stands for: the elements that the other sizes leave. */
static bool fill_rest(const tv_shape *x, tv_shape *z, int64_t rest)
{
    int64_t have = tv_shape_count(x);
    int64_t stated = 1;
    for (uint32_t i = 0; i < z->rank; i++)
        if ((int64_t)i != rest && __builtin_mul_overflow(stated, z->d[i], &stated))
            return false;
    if (have < 0)
        return false;
    if (rest < 0)
        return stated == have;
    if (stated == 0) {
        z->d[rest] = 0;
        return have == 0;
    }
    z->d[rest] = have / stated;
    return have % stated == 0;
}

bool tv_shape_reshape(const tv_shape *x, const int64_t *target, size_t n, bool zero_copies,
                      tv_shape *out)
{
    if (n > TV_LIMIT_RANK)
        return false;
    tv_shape z = {.rank = (uint32_t)n};
    int64_t rest = -1;
    for (uint32_t i = 0; i < z.rank; i++) {
        z.d[i] = target[i];
        if (target[i] == 0 && zero_copies) {
            if (i >= x->rank)
                return false;
            z.d[i] = x->d[i];
        }
        if (target[i] < -1 || (target[i] == -1 && rest >= 0))
            return false;
        if (target[i] == -1)
            rest = i;
    }
    if (!fill_rest(x, &z, rest))
        return false;
    *out = z;
    return true;
}

bool tv_shape_reduce(const tv_shape *x, const int64_t *axes, size_t n, bool keep, tv_shape *out)
{
    bool gone[TV_LIMIT_RANK];
    if (!tv_shape_axes(axes, n, x->rank, gone))
        return false;
    tv_shape z = {0};
    for (uint32_t i = 0; i < x->rank; i++)
        if (!gone[i] || keep)
            z.d[z.rank++] = gone[i] ? 1 : x->d[i];
    *out = z;
    return true;
}

bool tv_shape_squeeze(const tv_shape *x, const int64_t *axes, size_t n, tv_shape *out)
{
    bool gone[TV_LIMIT_RANK];
    if (!tv_shape_axes(axes, n, x->rank, gone))
        return false;
    tv_shape z = {0};
    for (uint32_t i = 0; i < x->rank; i++) {
        if (n && gone[i] && x->d[i] != 1)
            return false;
        if (!gone[i] || x->d[i] != 1)
            z.d[z.rank++] = x->d[i];
    }
    *out = z;
    return true;
}

bool tv_shape_unsqueeze(const tv_shape *x, const int64_t *axes, size_t n, tv_shape *out)
{
    if (n > TV_LIMIT_RANK - x->rank)
        return false;
    bool fresh[TV_LIMIT_RANK] = {false};
    tv_shape z = {.rank = x->rank + (uint32_t)n};
    for (size_t i = 0; i < n; i++) {
        uint32_t axis = 0;
        if (!tv_shape_axis(axes[i], z.rank, &axis) || fresh[axis])
            return false;
        fresh[axis] = true;
    }
    uint32_t from = 0;
    for (uint32_t i = 0; i < z.rank; i++)
        z.d[i] = fresh[i] ? 1 : x->d[from++];
    *out = z;
    return true;
}

bool tv_shape_permute(const tv_shape *x, const int64_t *order, size_t n, tv_shape *out)
{
    if (order && n != x->rank)
        return false;
    tv_shape z = {.rank = x->rank};
    bool used[TV_LIMIT_RANK] = {false};
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t from = x->rank - 1 - i;
        if (order && (!tv_shape_axis(order[i], x->rank, &from) || used[from]))
            return false;
        used[from] = true;
        z.d[i] = x->d[from];
    }
    *out = z;
    return true;
}

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* NumPy: negative positions count from the end, then both ends are cut to the axis. */
int64_t tv_shape_slice(int64_t size, int64_t start, int64_t end, int64_t step, int64_t *first)
{
    if (step == 0)
        step = 1;
    if (step == INT64_MIN)
        step = -INT64_MAX;
    if (start < 0)
        start = start < -size ? -1 : start + size;
    if (end < 0)
        end = end < -size ? -1 : end + size;
    if (step > 0) {
        start = clamp(start, 0, size);
        end = clamp(end, 0, size);
    } else {
        start = clamp(start, -1, size - 1);
        end = clamp(end, -1, size - 1);
    }
    *first = start;
    int64_t reach = step > 0 ? end - start : start - end;
    int64_t stride = step > 0 ? step : -step;
    return reach > 0 ? (reach - 1) / stride + 1 : 0;
}

/* Steps and kernels of real windows are below a thousand; products with any size stay exact. */
static int64_t bounded(int64_t v, int64_t least)
{
    return clamp(v, least, 1 << 20);
}

typedef struct axis_window {
    int64_t stride, reach, before, after;
} axis_window;

static axis_window window_at(const tv_window *w, uint32_t axis)
{
    bool padded = w->mode == TV_PAD_STATED;
    return (axis_window){
        .stride = bounded(w->stride[axis], 1),
        .reach = bounded(w->dilation[axis], 1) * (bounded(w->kernel[axis], 1) - 1) + 1,
        .before = padded ? bounded(w->before[axis], -(1 << 20)) : 0,
        .after = padded ? bounded(w->after[axis], -(1 << 20)) : 0,
    };
}

int64_t tv_shape_slide(const tv_window *w, uint32_t axis, int64_t size)
{
    axis_window x = window_at(w, axis);
    if (w->mode == TV_PAD_SAME_UPPER || w->mode == TV_PAD_SAME_LOWER)
        return (size + x.stride - 1) / x.stride;
    int64_t room = size + x.before + x.after - x.reach;
    if (room < 0)
        return -1;
    int64_t steps = room / x.stride;
    if (!w->ceil || room % x.stride == 0)
        return steps + 1;
    /* torch and current ONNX leave a window out that begins behind the image; Paddle keeps it. */
    bool begins_inside = w->keeps_tail || (steps + 1) * x.stride < size + x.before;
    return steps + (begins_inside ? 2 : 1);
}

int64_t tv_shape_slide_back(const tv_window *w, uint32_t axis, int64_t size, int64_t extra)
{
    axis_window x = window_at(w, axis);
    if (w->mode == TV_PAD_SAME_UPPER || w->mode == TV_PAD_SAME_LOWER)
        return size * x.stride;
    int64_t out = (size - 1) * x.stride + x.reach - x.before - x.after + bounded(extra, -(1 << 20));
    return out > 0 ? out : -1;
}
