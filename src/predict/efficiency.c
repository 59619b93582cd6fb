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
    const bool narrow = width == TV_WIDTH_W4 || width == TV_WIDTH_W8;
    if (narrow && t->width == TV_WIDTH_16)
        far += 8; /* the own generation's 16-bit kernels before another's narrow ones */
    else if (t->width != width)
        far += 1000 + 10 * abs((int)t->width - (int)width);
    if (t->arch)
        return tv_str_is(d->arch, t->arch) ? far : far + 100000;
    if (d->compute_capability == 0) /* another maker: Ampere's table stands in */
        return far + 500 + abs(t->compute_capability - 80);
    if (t->fed < 0.6 && t->compute_capability != d->compute_capability)
        far += 20; /* a throttled card says little about others */
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

/* Picojoules that a FLOP costs the whole board while its math units run without pause: board watts
 * over peak and over the share of it that the best tenth of large products reached (0.95 taken as
 * unthrottled) on each generation's calibrate card: T4, V100, A100 PCIe in fp32; A100, A40, L40S,
 * H100, B200, RTX PRO 6000 in 16 bit; 8 and 4 bit likewise. Assumed: fp32 from Ada on (scaled with
 * the process), tensor units up to Turing. docs/model.md, "power". */
typedef struct energy {
    int from_capability;
    double pj;
} energy;

static const energy wide_energy[] = {{89, 7.5}, {80, 14.5}, {0, 16.6}};
static const energy tensor_energy[] = {{120, 1.35}, {100, 0.56}, {90, 0.8}, {89, 1.29},
                                       {86, 2.38},  {80, 1.33},  {0, 2.5}};

static double pj_needed(int capability, tv_width width)
{
    const energy *e = width == TV_WIDTH_32 ? wide_energy : tensor_energy;
    while (capability < e->from_capability)
        e++;
    return e->pj * (width == TV_WIDTH_8 ? 0.6 : width == TV_WIDTH_4 ? 0.35 : 1);
}

double tv_efficiency_sustained(const tv_device *device, tv_width width, double peak_flops)
{
    const int capability = device->compute_capability;
    if (capability == 0 || !tv_known(device->board_w) || peak_flops <= 0)
        return 1;
    return fmin(1, device->board_w.v / peak_flops * 1e12 / pj_needed(capability, width));
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

tv_util tv_efficiency(tv_table_kind kind, tv_width width, const tv_device *device,
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
    u.floor_s = f.table->floor_s;
    u.spread = f.table->spread;
    if (outside)
        u.tier = TV_TIER_EXTRAPOLATED, u.spread = hypot(u.spread, 0.15);
    if (f.far >= 5)
        u.tier = TV_TIER_PRIOR, u.spread = hypot(u.spread, f.far >= 500 ? 0.3 : 0.15);
    const bool math = kind == TV_TABLE_GEMM || kind == TV_TABLE_PREFILL || kind == TV_TABLE_CONV;
    if (math && f.far >= 500 && !f.table->arch)
        u.u *= foreign_ratio(device);
    u.u = fmin(u.u, 1.2);
    return u;
}
