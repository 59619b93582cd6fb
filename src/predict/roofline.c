/* Seconds of one op on a card: the larger of math and traffic on an ideal card, divided by the
 * utilisation that kernels of that shape were measured at. Knows nothing of steps or hosts. */
#include "efficiency.h"
#include "predict.h"

#include <math.h>

/* A kernel alone on the device takes this long however small it is: queued launches 1.6-2.6 us,
 * in a CUDA graph 0.9-1.3 us (RRZE gpu-benches). */
static const double kernel_floor_s = 1.6e-6;

/* ---- rates ---- */

static tv_fact first_known(const tv_device *d, const tv_rate *rates, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tv_known(d->rate_flops[rates[i]]))
            return d->rate_flops[rates[i]];
    return (tv_fact){0};
}

#define FIRST_KNOWN(device, ...)                                                                   \
    first_known((device), (const tv_rate[]){__VA_ARGS__},                                          \
                sizeof((const tv_rate[]){__VA_ARGS__}) / sizeof(tv_rate))

tv_fact tv_predict_rate(const tv_device *device, tv_dtype compute)
{
    switch ((int)compute) {
    case TV_F64:
        return FIRST_KNOWN(device, TV_RATE_FP64_TENSOR, TV_RATE_FP64);
    case TV_F32:
        return FIRST_KNOWN(device, TV_RATE_FP32);
    case TV_TF32:
        return FIRST_KNOWN(device, TV_RATE_TF32, TV_RATE_FP32);
    case TV_F16:
        if (!tv_known(device->rate_flops[TV_RATE_FP16_TENSOR]) &&
            device->rate_flops[TV_RATE_FP32].v > device->rate_flops[TV_RATE_FP16].v)
            return device->rate_flops[TV_RATE_FP32]; /* libraries multiply in fp32 there */
        return FIRST_KNOWN(device, TV_RATE_FP16_TENSOR, TV_RATE_FP16, TV_RATE_FP32);
    case TV_BF16:
        /* without the units cards emulate it at the fp32 rate */
        return FIRST_KNOWN(device, TV_RATE_BF16_TENSOR, TV_RATE_FP32);
    case TV_F8_E4M3:
    case TV_F8_E5M2:
        return FIRST_KNOWN(device, TV_RATE_FP8_TENSOR, TV_RATE_FP8_TENSOR_FP16);
    case TV_I8:
    case TV_U8:
        return FIRST_KNOWN(device, TV_RATE_INT8_TENSOR, TV_RATE_INT8_DP4A);
    case TV_F4:
    case TV_NVFP4:
    case TV_MXFP4:
        return FIRST_KNOWN(device, TV_RATE_FP4_TENSOR);
    }
    return (tv_fact){0};
}

static tv_width width_of(tv_dtype compute)
{
    if (compute == TV_F32 || compute == TV_F64)
        return TV_WIDTH_32;
    const double bytes = tv_dtype_bytes(compute);
    if (compute == TV_TF32 || bytes >= 2)
        return TV_WIDTH_16;
    return bytes >= 1 ? TV_WIDTH_8 : TV_WIDTH_4;
}

/* Narrow weights under 16-bit activations have kernels of their own. Integer products reach their
 * roof as 16-bit ones do; the 8-bit tables hold fp8 with scaling done on the way. */
static tv_width gemm_width(const tv_op *op)
{
    if (op->compute == TV_I8 || op->compute == TV_U8)
        return TV_WIDTH_16;
    const tv_width w = width_of(op->compute);
    const double weights = op->n * op->k * fmax(1, op->experts);
    if (w != TV_WIDTH_16 || op->weight_bytes <= 0 || weights <= 0)
        return w;
    const double each = op->weight_bytes / weights;
    return each < 0.8 ? TV_WIDTH_W4 : each < 1.6 ? TV_WIDTH_W8 : w;
}

/* ---- one kernel ---- */

typedef struct kernel {
    tv_table_kind table;
    tv_width width; /* of the table */
    tv_width power; /* of the multiplies */
    double flop, bytes;
    double shape[3];
    double factor; /* of the table's utilisation */
} kernel;

typedef struct kernel_time {
    double s, math_s, stream_s;
    tv_tier tier;
    double spread;
} kernel_time;

static kernel_time run(const kernel *k, const tv_device *d, double peak)
{
    kernel_time t = {0};
    const double bandwidth = d->mem_bytes_per_s.v;
    const double fed = tv_efficiency_sustained(d, k->power, peak);
    t.math_s = k->flop > 0 && peak > 0 ? k->flop / (peak * fed) : 0;
    t.stream_s = bandwidth > 0 ? k->bytes / bandwidth : 0;
    const double ideal = fmax(t.math_s, t.stream_s);
    if (ideal <= 0)
        return t;
    const tv_util u = tv_efficiency(k->table, k->width, d, k->shape);
    const double share = u.u * (k->factor > 0 ? k->factor : 1);
    t.s = fmax(kernel_floor_s, u.floor_s) + ideal / fmax(share, 1e-3);
    t.tier = u.tier;
    t.spread = u.spread;
    return t;
}

/* ---- what an op asks for ---- */

typedef struct asked {
    double flop, m, groups, bytes, back_bytes, weights;
    double batch, cached;
} asked;

/* Distinct experts that m·top_k draws touch, and so the share of the weights that is read. */
static double experts_share(const tv_op *op, double rows)
{
    if (op->experts <= 0)
        return 1;
    return 1 - pow(1 - 1 / fmax(1, op->experts), rows);
}

static asked ask(const tv_op *op, double batch, double cached)
{
    const double k = op->window > 0 && cached > op->window ? op->window : cached;
    asked q = {.batch = batch, .cached = k};
    q.flop = tv_form_at(op->flop, batch, k);
    q.m = tv_form_at(op->m, batch, k);
    q.groups = fmax(1, op->groups);
    if (op->m.b <= 0 && op->m.a > 0 && op->flop.b > 0)
        q.groups *= batch; /* a batched product: m is one member's */
    q.weights = op->weight_bytes * experts_share(op, q.m);
    q.bytes = tv_form_at(op->read_bytes, batch, k) + tv_form_at(op->write_bytes, batch, k) +
              tv_form_at(op->kv_read_bytes, batch, k) + tv_form_at(op->kv_write_bytes, batch, k) +
              q.weights;
    q.back_bytes = tv_form_at(op->backward_bytes, batch, k);
    return q;
}

/* One product, `groups` of which run at once, at a shape in the table's order. */
static kernel product(const tv_op *op, const asked *q, double m, double n, double k)
{
    /* Experts: each touched one multiplies its own share of the rows. */
    const double hit = op->experts > 0 ? fmax(1, op->experts * experts_share(op, q->m)) : 1;
    return (kernel){
        .table = TV_TABLE_GEMM,
        .width = gemm_width(op),
        .power = width_of(op->compute),
        .flop = q->flop,
        .bytes = q->bytes,
        .shape = {m / (m == q->m ? hit : 1), n * (op->experts > 0 ? hit : q->groups), k},
        .factor = 1,
    };
}

/* Share of a tile of `tile` that n fills. */
static double filled(double n, double tile)
{
    return n / (ceil(n / tile) * tile);
}

/* Convolutions in 16 bit have no table of their own: a large product's utilisation at as many
 * rows, less the tiles that few channels leave part empty and what gathering the window costs
 * (0.85, from VGG on RTX 3090; see docs/accuracy.md). Few channels a group: bytes bind. */
static kernel convolution(const tv_op *op, const asked *q, double m, double n, double k)
{
    kernel c = product(op, q, m, n, k);
    if (op->groups > 1 && op->n < 8) {
        c.table = TV_TABLE_ELEMENTWISE;
        c.shape[0] = q->bytes, c.shape[1] = c.shape[2] = 1;
        c.factor = 0.5; /* depthwise kernels reach about half of the stream rate (assumed) */
        return c;
    }
    if (width_of(op->compute) == TV_WIDTH_32)
        c.table = TV_TABLE_CONV;
    c.shape[0] = m, c.shape[1] = n, c.shape[2] = k;
    if (c.table == TV_TABLE_CONV)
        return c;
    c.factor = 0.85 * filled(n, 64) * filled(k, 32);
    for (int i = 0; i < 3; i++)
        c.shape[i] = fmax(c.shape[i], 512);
    return c;
}

static kernel attention(const tv_op *op, const asked *q)
{
    const bool decode = op->kv_read_bytes.c > 0;
    kernel a = {
        .table = decode ? TV_TABLE_DECODE : TV_TABLE_PREFILL,
        .width = width_of(op->compute),
        .power = width_of(op->compute),
        .flop = q->flop,
        .bytes = q->bytes,
        .factor = 1,
    };
    const double per_key = op->k > 0 ? op->kv_read_bytes.c / (4 * op->k) : 1; /* KV heads, 16 bit */
    a.shape[0] = decode ? op->n + q->cached : q->m;
    a.shape[1] = decode ? q->batch * fmax(1, per_key) : q->groups;
    a.shape[2] = 1;
    return a;
}

static tv_table_kind stream_table(tv_op_kind kind)
{
    switch (kind) {
    case TV_OP_NORM:
    case TV_OP_LOSS:
        return TV_TABLE_NORM;
    case TV_OP_SOFTMAX:
        return TV_TABLE_SOFTMAX;
    case TV_OP_EMBEDDING:
    case TV_OP_ROUTING:
        return TV_TABLE_EMBEDDING;
    case TV_OP_GEMM:
    case TV_OP_CONV:
    case TV_OP_ATTENTION:
    case TV_OP_ELEMENTWISE:
    case TV_OP_COPY:
    case TV_OP_SCAN:
    case TV_OP_POOL:
    case TV_OP_RESIZE:
    case TV_OP_COLLECTIVE:
    case TV_OP_KIND_COUNT:
        break;
    }
    return TV_TABLE_ELEMENTWISE;
}

static kernel streaming(const tv_op *op, double bytes, double flop)
{
    return (kernel){
        .table = stream_table(op->kind),
        .width = TV_WIDTH_32,
        .flop = op->kind == TV_OP_SCAN ? flop : 0,
        .bytes = bytes,
        .shape = {bytes / fmax(1, op->launches), 1, 1},
        .factor = 1,
    };
}

/* ---- forward and backward ---- */

static void add(tv_op_time *out, kernel_time t, bool forward)
{
    if (forward) {
        out->math_s = t.math_s;
        out->stream_s = t.stream_s;
        out->tier = t.tier;
        out->spread = t.spread;
        out->forward_s += t.s;
    } else {
        out->backward_s += t.s;
    }
}

/* dx = dy·Wᵀ has (m, k, n), dW = xᵀ·dy has (n, k, m) of the forward's shape. */
static void product_time(const tv_op *op, const asked *q, const tv_device *d, double peak,
                         tv_op_time *out)
{
    const bool conv = op->kind == TV_OP_CONV;
    kernel (*make)(const tv_op *, const asked *, double, double, double) =
        conv ? convolution : product;
    /* Backward products read transposed operands and accumulate in fp32: 0.94 and 0.79 of the
     * forward's utilisation at the same shape (SimuMax on A100: 0.79, 0.74, 0.62). */
    const double dgrad = 0.94, wgrad = 0.79;
    kernel k = make(op, q, q->m, op->n, op->k);
    add(out, run(&k, d, peak), true);
    const double passes = op->backward;
    if (passes <= 0)
        return;
    k = make(op, q, q->m, op->k, op->n);
    k.bytes = q->back_bytes / passes + q->weights;
    k.factor *= dgrad;
    add(out, run(&k, d, peak), false);
    if (passes < 2)
        return;
    k = make(op, q, op->n, op->k, q->m);
    k.bytes = q->back_bytes / passes + q->weights;
    k.factor *= wgrad;
    add(out, run(&k, d, peak), false);
}

static void attention_time(const tv_op *op, const asked *q, const tv_device *d, double peak,
                           tv_op_time *out)
{
    const kernel k = attention(op, q);
    const kernel_time t = run(&k, d, peak);
    add(out, t, true);
    /* Backward kernels reach 0.8 of the forward's rate (FlashAttention-2: 0.5-0.63 against
     * 0.6-0.73 of A100's peak). */
    out->backward_s = op->backward > 0 ? t.s * op->backward / 0.8 : 0;
}

static void stream_time(const tv_op *op, const asked *q, const tv_device *d, double peak,
                        tv_op_time *out)
{
    kernel k = streaming(op, q->bytes, q->flop);
    kernel_time t = run(&k, d, peak);
    t.s = fmax(t.s, kernel_floor_s * op->launches);
    add(out, t, true);
    if (op->backward <= 0 || q->back_bytes <= 0)
        return;
    k = streaming(op, q->back_bytes, q->flop * 2);
    t = run(&k, d, peak);
    t.s = fmax(t.s, kernel_floor_s * op->backward_launches);
    add(out, t, false);
}

tv_op_time tv_predict_op(const tv_op *op, const tv_policy *policy, const tv_device *device,
                         double batch, double cached)
{
    (void)policy; /* dtypes already stand in the op */
    tv_op_time out = {0};
    const asked q = ask(op, batch, cached);
    const double peak = tv_predict_rate(device, op->compute).v;
    switch (op->kind) {
    case TV_OP_GEMM:
    case TV_OP_CONV:
        product_time(op, &q, device, peak, &out);
        break;
    case TV_OP_ATTENTION:
        attention_time(op, &q, device, peak, &out);
        break;
    case TV_OP_NORM:
    case TV_OP_SOFTMAX:
    case TV_OP_ELEMENTWISE:
    case TV_OP_COPY:
    case TV_OP_EMBEDDING:
    case TV_OP_ROUTING:
    case TV_OP_SCAN:
    case TV_OP_POOL:
    case TV_OP_RESIZE:
    case TV_OP_LOSS:
        stream_time(op, &q, device, peak, &out);
        break;
    case TV_OP_COLLECTIVE:
    case TV_OP_KIND_COUNT:
        break;
    }
    return out;
}
