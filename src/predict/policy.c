/* Presets of precision as dtypes per stream. docs/model.md, "precision policies". */
#include "predict.h"

static tv_policy base_policy(tv_precision precision, tv_framework framework)
{
    return (tv_policy){
        .precision = precision,
        .framework = framework,
        .param = TV_F32,
        .compute = TV_F32,
        .stream = TV_F32,
        .grad = TV_F32,
        .state = TV_F32,
        .kv = TV_F32,
    };
}

static tv_policy sixteen(tv_policy p, tv_dtype t, bool trains)
{
    p.param = p.compute = p.stream = p.grad = p.kv = t;
    /* torch's optimizers keep their state in the parameters' type; Paddle's O2 keeps an fp32
     * master copy and fp32 moments (docs/model.md, "Paddle"). */
    const bool paddle = p.framework == TV_PADDLE;
    p.state = paddle ? TV_F32 : t;
    p.master = paddle && trains;
    return p;
}

static tv_policy autocast(tv_policy p, tv_dtype t, bool trains)
{
    if (!trains) /* nobody keeps fp32 weights to serve from */
        return sixteen(p, t, trains);
    p.compute = p.kv = t;
    p.autocast = true;
    return p;
}

/* Weight-only quantisation: matrices shrink, everything else stays 16 bit. */
static tv_policy quantised(tv_policy p, tv_dtype base, double bytes, bool trains)
{
    p = sixteen(p, TV_BF16, trains);
    p.master = false;
    p.base = base;
    p.base_bytes = bytes;
    return p;
}

/* What the file holds: its main type, or its quantised matrices inside a 16-bit model. */
static tv_policy as_stored(tv_policy p, const tv_model *m, bool trains)
{
    const tv_dtype stored = m ? m->stored : TV_DTYPE_UNKNOWN;
    if (m && m->quant.method.n) {
        p = quantised(p, m->quant.dtype, m->quant.bytes_per_weight, trains);
        p.base_experts_only = m->quant.experts_only;
        if (m->quant.kv)
            p.kv = m->quant.kv;
        return p;
    }
    if (stored == TV_F32 || stored == TV_F64)
        return p;
    if (stored == TV_F16 || stored == TV_BF16)
        return sixteen(p, stored, trains);
    p = sixteen(p, TV_F16, trains);
    if (stored != TV_DTYPE_UNKNOWN && m->params > 0 && m->stored_bytes > 0) {
        p.base = stored;
        p.base_bytes = m->stored_bytes / m->params;
    }
    return p;
}

tv_policy tv_predict_policy(tv_precision precision, tv_framework framework, const tv_model *model,
                            bool trains)
{
    tv_policy p = base_policy(precision, framework);
    switch (precision) {
    case TV_PRECISION_DEFAULT:
    case TV_PRECISION_FP32:
    case TV_PRECISION_COUNT:
        break;
    case TV_PRECISION_TF32:
        p.compute = TV_TF32;
        break;
    case TV_PRECISION_AMP_FP16:
        return autocast(p, TV_F16, trains);
    case TV_PRECISION_AMP_BF16:
        return autocast(p, TV_BF16, trains);
    case TV_PRECISION_BF16:
        return sixteen(p, TV_BF16, trains);
    case TV_PRECISION_FP16:
        return sixteen(p, TV_F16, trains);
    case TV_PRECISION_FP8:
        /* one byte a weight, fp32 scale per 128x128 block; multiplies run in fp8 */
        p = quantised(p, TV_F8_E4M3, 1 + 4.0 / (128 * 128), trains);
        if (trains) { /* mixed fp8 training keeps 16-bit weights */
            p.base = TV_DTYPE_UNKNOWN;
            p.base_bytes = 0;
        }
        p.compute = TV_F8_E4M3;
        break;
    case TV_PRECISION_INT8:
        return quantised(p, TV_I8, 1, trains);
    case TV_PRECISION_INT4:
        /* GPTQ/AWQ, groups of 128: 16-bit scale and 4-bit zero point a group */
        return quantised(p, TV_I4, 0.5 + 2.5 / 128, trains);
    case TV_PRECISION_NF4:
        /* block 64, scales quantised again in blocks of 256: 0.5 + 1/64 + 4/(64·256) */
        return quantised(p, TV_NF4, 0.5 + 1.0 / 64 + 4.0 / (64 * 256), trains);
    case TV_PRECISION_AS_STORED:
        return as_stored(p, model, trains);
    }
    return p;
}
