/* Columns of operator tables to ops of the predictor's own kind, and of collective tables to a
 * link. Shapes only: nothing here looks at the measured time, except that the tables of streaming
 * kernels state their traffic as a rate. */
#include "validate_ops.h"

#include <math.h>

#include "catalog/catalog.h"
#include "predict/predict.h"

/* 90 % of a normal distribution lie within this many sigmas. */
static const double sigmas = 1.645;

typedef struct op_row {
    tv_arena *a;
    const tv_row *row;
    tv_op ops[2]; /* experts are two products */
    size_t n_ops;
    double batch, cached;
    tv_str reason;
} op_row;

static double number(const op_row *r, const char *column, double otherwise)
{
    const tv_double_read v = tv_str_double(tv_row_text(r->a, r->row, tv_str_of(column)));
    return v.ok ? v.v : otherwise;
}

static tv_str text(const op_row *r, const char *column)
{
    return tv_row_text(r->a, r->row, tv_str_of(column));
}

/* A dtype word: what multiplies, what a value and a weight take. */
typedef struct widths {
    const char *word;
    tv_dtype compute;
    double value_bytes, weight_bytes;
} widths;

static const widths dtypes[] = {
    {"fp32", TV_F32, 4, 4},
    {"fp16", TV_F16, 2, 2},
    {"bf16", TV_BF16, 2, 2},
    {"fp8", TV_F8_E4M3, 1, 1},
    {"fp8_block", TV_F8_E4M3, 1, 1},
    {"sq", TV_I8, 1, 1},
    {"int8_wo", TV_BF16, 2, 1},
    {"int4_wo", TV_BF16, 2, 0.5 + 2.5 / 128},
    {"w4a16_mxfp4", TV_BF16, 2, 0.5 + 1.0 / 32},
    {"nvfp4", TV_F4, 0.5 + 1.0 / 16, 0.5 + 1.0 / 16},
};

static const widths *widths_of(op_row *r)
{
    const tv_str word = text(r, "dtype");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (tv_str_is(word, dtypes[i].word))
            return &dtypes[i];
    r->reason = TV_S(N_("a precision that is not modelled"));
    return NULL;
}

static tv_form whole(double v)
{
    return (tv_form){.a = v};
}

static tv_op *next_op(op_row *r, tv_op_kind kind, const widths *w)
{
    tv_op *op = &r->ops[r->n_ops++];
    *op = (tv_op){.kind = kind, .compute = w->compute, .launches = 1, .groups = 1};
    return op;
}

static void product(op_row *r, const widths *w, double m, double n, double k, double groups)
{
    tv_op *op = next_op(r, TV_OP_GEMM, w);
    op->m = whole(m);
    op->n = n;
    op->k = k;
    op->groups = groups;
    op->flop = whole(2 * m * n * k * groups);
    op->read_bytes = whole(m * k * groups * w->value_bytes);
    op->write_bytes = whole(m * n * groups * fmax(2, w->value_bytes));
    op->weight_bytes = n * k * groups * w->weight_bytes;
}

static void gemm(op_row *r, const widths *w)
{
    product(r, w, number(r, "m", 0), number(r, "n", 0), number(r, "k", 0), number(r, "b", 1));
}

static void conv(op_row *r, const widths *w)
{
    const double side = number(r, "hw", 0);
    const double kernel = number(r, "kernel_size", 0);
    const double stride = fmax(1, number(r, "stride", 1));
    const double out = floor((side + 2 * number(r, "pad", 0) - kernel) / stride) + 1;
    const double b = number(r, "b", 0);
    const double in = number(r, "c_in", 0);
    tv_op *op = next_op(r, TV_OP_CONV, w);
    op->m = whole(b * out * out);
    op->n = number(r, "c_out", 0);
    op->k = in * kernel * kernel;
    op->flop = whole(2 * op->m.a * op->n * op->k);
    op->read_bytes = whole(b * in * side * side * w->value_bytes);
    op->write_bytes = whole(op->m.a * op->n * w->value_bytes);
    op->weight_bytes = op->n * op->k * w->weight_bytes;
}

static double kv_bytes(const op_row *r, const widths *w)
{
    return tv_str_is(text(r, "kv_dtype"), "fp8") ? 1 : w->value_bytes;
}

static void prefill(op_row *r, const widths *w)
{
    const double s = number(r, "s", 0);
    const double d = number(r, "d", 0);
    const double b = number(r, "b", 0);
    const double h = number(r, "h", 0);
    const double window = number(r, "window", 0);
    const double full = window > 0 && window < s ? window * (s - window) + window * window / 2
                                                 : s * s / 2; /* the causal half */
    tv_op *op = next_op(r, TV_OP_ATTENTION, w);
    op->m = whole(s);
    op->n = s;
    op->k = d;
    op->groups = b * h;
    op->window = window;
    op->flop = whole(4 * b * h * full * d);
    op->read_bytes = whole(b * s * d * (h * 2 + 2 * number(r, "h_kv", h) * kv_bytes(r, w)));
    op->write_bytes = whole(b * s * d * h * 2);
}

static void decode(op_row *r, const widths *w)
{
    const double d = number(r, "d", 0);
    const double h = number(r, "h", 0);
    r->batch = number(r, "b", 0);
    r->cached = number(r, "s", 0);
    tv_op *op = next_op(r, TV_OP_ATTENTION, w);
    op->m = (tv_form){.b = 1};
    op->k = d;
    op->groups = h;
    op->window = number(r, "window", 0);
    op->flop = (tv_form){.c = 4 * h * d};
    op->read_bytes = (tv_form){.b = 2 * h * d};
    op->write_bytes = (tv_form){.b = 2 * h * d};
    op->kv_read_bytes = (tv_form){.c = 2 * number(r, "h_kv", h) * d * kv_bytes(r, w)};
}

static void experts(op_row *r, const widths *w)
{
    const double ranks = fmax(1, number(r, "moe_ep", 1));
    const double inter = number(r, "inter", 0) / fmax(1, number(r, "moe_tp", 1));
    const double hidden = number(r, "hidden", 0);
    const double each = number(r, "experts", 0) / ranks;
    const double rows = number(r, "tokens", 0) * number(r, "topk", 0) / ranks;
    product(r, w, rows, 2 * inter, hidden, 1);
    product(r, w, rows, hidden, inter, 1);
    for (size_t i = 0; i < r->n_ops; i++) {
        r->ops[i].experts = each;
        r->ops[i].expert_top_k = number(r, "topk", 0);
        r->ops[i].weight_bytes *= each;
    }
}

static void streaming(op_row *r, const widths *w)
{
    static const struct {
        const char *word;
        tv_op_kind kind;
    } kinds[] = {
        {"elementwise", TV_OP_ELEMENTWISE},
        {"layernorm", TV_OP_NORM},
        {"softmax", TV_OP_SOFTMAX},
        {"embedding", TV_OP_EMBEDDING},
    };
    const double rate = number(r, "gbps", 0) * 1e9; /* traffic over time: gives the traffic */
    double bytes = rate * number(r, "time_us", 0) * 1e-6;
    if (bytes <= 0) /* one pass in, one out */
        bytes = 2 * number(r, "rows", 0) * number(r, "cols", 0) * w->value_bytes;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!tv_str_is(text(r, "op"), kinds[i].word))
            continue;
        tv_op *op = next_op(r, kinds[i].kind, w);
        op->read_bytes = whole(bytes);
        return;
    }
    r->reason = TV_S(N_("a benchmark of bandwidth, not an operator of a model"));
}

static bool read_op(op_row *r)
{
    static const struct {
        const char *word;
        void (*read)(op_row *r, const widths *w);
    } readers[] = {
        {"gemm", gemm},
        {"conv2d", conv},
        {"attention_prefill", prefill},
        {"attention_decode", decode},
        {"moe", experts},
    };
    const widths *w = widths_of(r);
    if (!w)
        return false;
    r->batch = 1;
    for (size_t i = 0; i < sizeof readers / sizeof *readers && !r->n_ops; i++)
        if (tv_str_is(text(r, "op"), readers[i].word))
            readers[i].read(r, w);
    if (!r->n_ops)
        streaming(r, w);
    for (size_t i = 0; i < r->n_ops; i++)
        if (!(tv_form_at(tv_form_add(r->ops[i].flop, r->ops[i].read_bytes), r->batch, r->cached) >
              0))
            r->reason = TV_S(N_("the shape is not stated"));
    return !r->reason.n;
}

static void widen(tv_judged *j, double v, double spread, bool first)
{
    const double lo = v / (1 + sigmas * spread);
    const double hi = v * (1 + sigmas * spread);
    j->least = first ? v : fmin(j->least, v);
    j->most = first ? v : fmax(j->most, v);
    j->lo = first ? lo : fmin(j->lo, lo);
    j->hi = first ? hi : fmax(j->hi, hi);
}

static bool find_cards(tv_validator *v, tv_row_verdict *out, tv_naming *found, tv_str *reason)
{
    if (!out->gpu.n)
        *reason = TV_S(N_("the card is not stated"));
    else if (tv_catalog_find(tv_validator_catalog(v), out->gpu, 0, found))
        *reason = TV_S(N_("the catalogue does not know the card"));
    return !reason->n;
}

static bool time_of(const op_row *r, tv_row_verdict *out, tv_str *reason)
{
    const double us = number(r, "time_us", 0);
    out->judged.measured = us * 1e-6;
    out->gpu = text(r, "gpu");
    if (!(us > 0))
        *reason = TV_S(N_("the row has no time"));
    return us > 0;
}

bool tv_operator_judge(tv_validator *v, const tv_row *row, tv_row_verdict *out, tv_str *reason)
{
    op_row r = {.a = tv_validator_arena(v), .row = row};
    *out = (tv_row_verdict){.family = ""};
    tv_naming found;
    if (!time_of(&r, out, reason) || !find_cards(v, out, &found, reason))
        return false;
    if (!read_op(&r)) {
        *reason = r.reason;
        return false;
    }
    const tv_policy policy = {.compute = r.ops[0].compute};
    size_t judged = 0;
    for (size_t i = 0; i < tv_naming_count(found); i++) {
        double s = 0;
        double spread = 0;
        for (size_t k = 0; k < r.n_ops; k++) {
            const tv_op_time t =
                tv_predict_op(&r.ops[k], &policy, tv_naming_at(found, i), r.batch, r.cached);
            s += t.forward_s;
            spread = fmax(spread, t.spread);
        }
        if (s > 0)
            widen(&out->judged, s, spread, judged++ == 0);
    }
    if (!judged)
        *reason = TV_S(N_("the predictor gives no such figure"));
    return judged > 0;
}

static tv_collective_kind collective(tv_str op)
{
    static const struct {
        const char *word;
        tv_collective_kind kind;
    } words[] = {
        {"all_reduce", TV_COLL_ALL_REDUCE},
        {"all_gather", TV_COLL_ALL_GATHER},
        {"reduce_scatter", TV_COLL_REDUCE_SCATTER},
        {"all_to_all", TV_COLL_ALL_TO_ALL},
        {"send_recv", TV_COLL_SEND},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_str_is(op, words[i].word))
            return words[i].kind;
    return TV_COLL_NONE;
}

/* What the predictor assumes of a collective's spread where it states none. */
static const double collective_spread = 0.25;

bool tv_collective_judge(tv_validator *v, const tv_row *row, tv_row_verdict *out, tv_str *reason)
{
    const op_row r = {.a = tv_validator_arena(v), .row = row};
    *out = (tv_row_verdict){.family = ""};
    tv_naming found;
    if (!time_of(&r, out, reason) || !find_cards(v, out, &found, reason))
        return false;
    const double n = number(&r, "gpus", 0);
    const tv_collective_kind kind = collective(text(&r, "op"));
    if (n < 2 || kind == TV_COLL_NONE)
        *reason = TV_S(N_("the number of cards is not stated"));
    else if (number(&r, "nodes", 1) > 1)
        *reason = TV_S(N_("between machines, and their network is not stated"));
    if (reason->n)
        return false;
    tv_catalog *catalog = tv_validator_catalog(v);
    size_t judged = 0;
    for (size_t i = 0; i < tv_naming_count(found); i++) {
        const tv_server *server = NULL;
        tv_link link = {0};
        const tv_device *d = tv_naming_at(found, i);
        if (tv_catalog_server_for(catalog, d, (uint32_t)n, &server) ||
            tv_catalog_link(catalog, d, server, (uint32_t)n, &link))
            continue;
        const double s = tv_predict_collective(kind, number(&r, "message_bytes", 0), n, &link);
        if (s > 0)
            widen(&out->judged, s, collective_spread, judged++ == 0);
    }
    if (!judged)
        *reason = TV_S(N_("the predictor gives no such figure"));
    return judged > 0;
}
