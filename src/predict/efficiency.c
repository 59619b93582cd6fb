/* Finds a card's utilisation table and reads it: own table, else the nearest generation's, else
 * another width's. Says by the tier how far it had to reach. Interpolates utilisation, never time
 * (docs/model.md, "operator time"). */
#include "efficiency.h"

#include <math.h>
#include <stdlib.h>

/* ---- which table ---- */

/* Smaller is nearer. Own generation and width: 0. */
static int distance(const tv_op_table *t, tv_width width, const tv_device *d)
{
    int far = 0;
    if (t->width != width)
        far += 1000 + 10 * abs((int)t->width - (int)width);
    if (t->arch)
        return tv_str_is(d->arch, t->arch) ? far : far + 100000;
    if (d->compute_capability == 0) /* another maker: Ampere's table stands in */
        return far + 500 + abs(t->compute_capability - 80);
    const int apart = abs(t->compute_capability - d->compute_capability);
    return far + (apart <= 1 || (apart <= 3 && d->compute_capability > 100) ? apart : 10 + apart);
}

typedef struct found {
    const tv_op_table *table;
    int far;
} found;

static found nearest(tv_table_kind kind, tv_width width, const tv_device *d)
{
    found best = {NULL, 0};
    for (size_t i = 0; i < tv_op_table_count; i++) {
        const tv_op_table *t = &tv_op_tables[i];
        if (t->kind != kind)
            continue;
        const int far = distance(t, width, d);
        if (!best.table || far < best.far)
            best = (found){t, far};
    }
    return best;
}

/* ---- reading ---- */

typedef struct place {
    int low;
    double share; /* of the next knot */
    bool outside;
} place;

static place on_axis(tv_op_axis axis, double shape)
{
    place p = {0};
    if (axis.count < 2)
        return p;
    const double x = (log2(shape > 1 ? shape : 1) - axis.first) / axis.step;
    p.outside = x < -0.5 || x > axis.count - 0.5;
    const double held = fmin(fmax(x, 0), axis.count - 1); /* beyond the grid its edge holds */
    p.low = (int)held;
    if (p.low > axis.count - 2)
        p.low = axis.count - 2;
    p.share = held - p.low;
    return p;
}

static double interpolate(const tv_op_table *t, const place at[3])
{
    double sum = 0;
    for (int corner = 0; corner < 8; corner++) {
        double weight = 1;
        int index = 0;
        for (int axis = 0; axis < 3; axis++) {
            const int up = (corner >> axis) & 1;
            weight *= up ? at[axis].share : 1 - at[axis].share;
            index = index * t->axis[axis].count + at[axis].low + up;
        }
        if (weight > 0)
            sum += weight * t->log_util[index];
    }
    return exp(sum / 1000);
}

/* ---- power ---- */

/* Picojoules that a FLOP costs the whole board when its math units run without pause, by
 * generation: 12-16 nm, 7-8 nm, 4-5 nm. fp32 of the first row is what T4's 70 W allowed
 * (NeuSight, 0.42 of peak); the others scale with the process. Assumed, see docs/model.md. */
static double pj_needed(const tv_device *d, tv_width width)
{
    static const double wide[3] = {20.5, 12.0, 9.3};
    static const double tensor[3] = {2.5, 1.7, 1.1};
    const int cc = d->compute_capability;
    const int row = cc < 80 ? 0 : cc < 89 ? 1 : 2;
    const double scale = width == TV_WIDTH_8 ? 0.5 : width == TV_WIDTH_4 ? 0.25 : 1;
    return (width == TV_WIDTH_32 ? wide[row] : tensor[row]) * scale;
}

double tv_efficiency_sustained(const tv_device *device, tv_width width, double peak_flops)
{
    if (device->compute_capability == 0 || !tv_known(device->board_w) || peak_flops <= 0)
        return 1;
    return fmin(1, device->board_w.v / peak_flops * 1e12 / pj_needed(device, width));
}

/* Share of its generation's table that this card's power budget leaves. */
static double power_ratio(const tv_op_table *t, tv_width width, const tv_device *d, double peak)
{
    if (width != t->width || t->arch || t->pj_per_flop <= 0 || peak <= 0)
        return tv_efficiency_sustained(d, width, peak);
    const double of_table = fmin(1, (double)t->pj_per_flop / pj_needed(d, width));
    return fmin(1, tv_efficiency_sustained(d, width, peak) / of_table);
}

/* ---- doors ---- */

/* Without an own table a card's best measured matmul tells how good its libraries are: NVIDIA's
 * reach 0.87 of peak on A100 (ml-engineering). Makers without a measurement: assumed 0.75 of it. */
static double foreign_ratio(const tv_device *d)
{
    if (d->compute_capability > 0)
        return 1;
    const double peak = d->rate_flops[TV_RATE_BF16_TENSOR].v;
    if (!tv_known(d->measured_bf16_flops) || peak <= 0)
        return 0.75;
    return fmin(1.1, fmax(0.4, d->measured_bf16_flops.v / peak / 0.87));
}

tv_util tv_efficiency(tv_table_kind kind, tv_width width, const tv_device *device, double peak,
                      const double shape[3])
{
    const found f = nearest(kind, width, device);
    if (!f.table)
        return (tv_util){.u = 0.7, .tier = TV_TIER_PRIOR, .spread = 0.4};
    place at[3];
    bool outside = false;
    for (int i = 0; i < 3; i++) {
        at[i] = on_axis(f.table->axis[i], shape[i]);
        outside = outside || at[i].outside;
    }
    tv_util u = {.u = interpolate(f.table, at), .tier = TV_TIER_INTERPOLATED};
    u.spread = (double)f.table->spread;
    if (outside)
        u.tier = TV_TIER_EXTRAPOLATED, u.spread = hypot(u.spread, 0.15);
    if (f.far >= 5)
        u.tier = TV_TIER_PRIOR, u.spread = hypot(u.spread, f.far >= 500 ? 0.3 : 0.15);
    const bool math = kind == TV_TABLE_GEMM || kind == TV_TABLE_PREFILL || kind == TV_TABLE_CONV;
    if (math)
        u.u *= power_ratio(f.table, width, device, peak);
    if (math && f.far >= 500 && !f.table->arch)
        u.u *= foreign_ratio(device);
    u.u = fmin(u.u, 1.2);
    return u;
}
