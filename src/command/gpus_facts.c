/* What follows from a card's record: the rate that training uses, number formats with the reason
 * for each, its links like for like, the limits that a table of numbers does not show. */
#include "gpus.h"

#include <math.h>

#include "base/message.h"
#include "base/unit.h"
#include "cost/cost.h"

/* ---- units ---- */

int tv_card_has_tensor_cores(const tv_device *d)
{
    static const tv_rate matrix[] = {TV_RATE_FP16_TENSOR, TV_RATE_FP16_TENSOR_FP16,
                                     TV_RATE_BF16_TENSOR, TV_RATE_INT8_TENSOR,
                                     TV_RATE_FP8_TENSOR,  TV_RATE_FP4_TENSOR};
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++)
        if (tv_known(d->rate_flops[matrix[i]]))
            return 1;
    for (size_t i = 0; i < d->n_notes; i++)
        if (tv_str_starts(d->notes[i], TV_S("no-tensor-cores")))
            return 0;
    /* Volta, 7.0, was the first with them. */
    if (d->compute_capability > 0)
        return d->compute_capability >= 70;
    return -1;
}

static tv_fact larger(tv_fact x, tv_fact y)
{
    return tv_known(y) && (!tv_known(x) || y.v > x.v) ? y : x;
}

tv_card_rate tv_card_training_rate(const tv_device *d)
{
    const tv_fact fp16 = d->rate_flops[TV_RATE_FP16_TENSOR];
    const tv_fact bf16 = d->rate_flops[TV_RATE_BF16_TENSOR];
    tv_card_rate r = {.mode = TV_RATE_FP16_TENSOR, .fact = larger(fp16, bf16)};
    if (tv_known(bf16) && (!tv_known(fp16) || bf16.v > fp16.v))
        r.mode = TV_RATE_BF16_TENSOR;
    if (tv_known(r.fact) || tv_card_has_tensor_cores(d) != 0)
        return r;
    const tv_fact vector = d->rate_flops[TV_RATE_FP16], fp32 = d->rate_flops[TV_RATE_FP32];
    r.vector = true;
    r.fact = larger(fp32, vector);
    r.mode =
        tv_known(vector) && (!tv_known(fp32) || vector.v > fp32.v) ? TV_RATE_FP16 : TV_RATE_FP32;
    return r;
}

tv_fact tv_card_ridge(const tv_device *d, tv_fact rate)
{
    if (!tv_known(rate) || !tv_known(d->mem_bytes_per_s))
        return (tv_fact){0};
    return tv_fact_of(rate.v / d->mem_bytes_per_s.v, TV_COMPUTED, TV_S("docs/model.md"));
}

tv_str tv_card_missing(tv_arena *a, tv_lang lang, const tv_device *d)
{
    const struct {
        const char *word;
        bool known;
    } needed[] = {
        {N_("memory"), tv_known(d->mem_bytes) || tv_known(d->mem_usable_bytes)},
        {N_("memory bandwidth"), tv_known(d->mem_bytes_per_s)},
        {N_("16-bit rate"), tv_known(tv_card_training_rate(d).fact)},
    };
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (needed[i].known)
            continue;
        tv_puts(&b, b.n ? ", " : "");
        tv_puts(&b, tv_message(lang, needed[i].word));
    }
    return tv_buf_str(&b);
}

/* ---- number formats ---- */

const char *tv_support_name(tv_support s)
{
    static const char *const names[] = {"unknown", "no", "slow", "yes"};
    return names[s];
}

/* Matrix units take a format from some compute capability on (source: nv-cuda-rn, trt-rtx; the
 * rows of data/compat.json "precision"). slow_from: on the vector units from here on. */
typedef struct format_row {
    const char *dtype;
    int from, slow_from;
    int rate, slow_rate; /* tv_rate; -1: none */
} format_row;

static const format_row formats[TV_CARD_DTYPES] = {
    {"fp16", 70, 53, TV_RATE_FP16_TENSOR, TV_RATE_FP16},
    {"bf16", 80, 0, TV_RATE_BF16_TENSOR, -1},
    {"tf32", 80, 0, TV_RATE_TF32, -1},
    {"int8", 75, 61, TV_RATE_INT8_TENSOR, TV_RATE_INT8_DP4A},
    {"fp8", 89, 0, TV_RATE_FP8_TENSOR, -1},
    {"fp6", 100, 0, TV_RATE_FP6_TENSOR, -1},
    {"fp4", 100, 0, TV_RATE_FP4_TENSOR, -1},
    {"sparsity", 80, 0, -1, -1},
};

static tv_fact rate_at(const tv_device *d, int rate)
{
    return rate >= 0 ? d->rate_flops[rate] : (tv_fact){0};
}

static tv_text capability_text(tv_arena *a, const char *id, const char *msgid, const tv_device *d,
                               int need)
{
    const tv_device needed = {.compute_capability = need};
    return TV_TEXT(a, id, msgid, tv_arg_str("need", tv_card_capability(a, &needed)),
                   tv_arg_str("have", tv_card_capability(a, d)));
}

/* Without matrix units a narrow format is at best as fast as the vector units make it. */
static void judge_slow(tv_arena *a, const tv_device *d, const format_row *f, tv_card_dtype *out)
{
    const tv_fact fp32 = d->rate_flops[TV_RATE_FP32];
    out->support = TV_SUPPORT_SLOW;
    out->rate = rate_at(d, f->slow_rate);
    const double times = tv_known(out->rate) && tv_known(fp32) ? out->rate.v / fp32.v : 0;
    if (times >= 1)
        out->why = TV_TEXT(a, "dtype.vector-times",
                           N_("no tensor cores for it: vector units, {times} times the FP32 rate"),
                           tv_arg_num("times", TV_ARG_NUMBER, floor(times * 10 + 0.5) / 10));
    else if (times > 0)
        out->why = TV_TEXT(a, "dtype.vector-part",
                           N_("no tensor cores for it: vector units, 1/{part} of the FP32 rate"),
                           tv_arg_num("part", TV_ARG_NUMBER, floor(1 / times + 0.5)));
    else
        out->why = TV_TEXT0("dtype.vector", N_("no tensor cores for it: vector units"));
}

static void judge_cuda(tv_arena *a, const tv_device *d, const format_row *f, tv_card_dtype *out)
{
    const int cc = d->compute_capability;
    if (cc >= f->from && tv_card_has_tensor_cores(d) != 0) {
        out->support = TV_SUPPORT_YES;
        out->why =
            capability_text(a, "dtype.since", N_("since compute capability {need}"), d, f->from);
    } else if (f->slow_from && cc >= f->slow_from) {
        judge_slow(a, d, f, out);
    } else if (cc >= f->from) {
        out->support = TV_SUPPORT_NO;
        out->why = TV_TEXT0("dtype.no-units", N_("this chip has no tensor cores"));
    } else {
        out->support = TV_SUPPORT_NO;
        out->why = capability_text(a, "dtype.needs",
                                   N_("needs compute capability {need}, this card has {have}"), d,
                                   f->from);
    }
}

static void judge(tv_arena *a, const tv_device *d, const format_row *f, tv_card_dtype *out)
{
    const bool sparsity = f->rate < 0;
    *out = (tv_card_dtype){.dtype = f->dtype, .rate = rate_at(d, f->rate)};
    if (d->compute_capability > 0) {
        judge_cuda(a, d, f, out);
    } else if (sparsity ? tv_known(d->sparse_multiple) && d->sparse_multiple.v > 1
                        : tv_known(out->rate)) {
        out->support = TV_SUPPORT_YES;
        out->why = TV_TEXT0("dtype.listed", N_("its rate is known"));
    } else {
        out->why = TV_TEXT0("dtype.not-listed", N_("no source says so: not taken for granted"));
    }
}

void tv_card_dtypes(tv_arena *a, const tv_device *d, tv_card_dtype *out)
{
    for (size_t i = 0; i < TV_CARD_DTYPES; i++)
        judge(a, d, &formats[i], &out[i]);
}

/* ---- links ---- */

tv_fact tv_card_slot_nominal(const tv_device *d)
{
    /* GT/s of a lane, one bit each (source: the PCI Express generations). */
    static const double lane_bits_per_s[] = {0, 2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9};
    const double gen = tv_known(d->pcie_gen) ? d->pcie_gen.v : 0;
    if (!(gen >= 1 && gen <= 6) || !tv_known(d->pcie_lanes))
        return (tv_fact){0};
    return tv_fact_of(lane_bits_per_s[(int)gen] / 8 * d->pcie_lanes.v, TV_COMPUTED,
                      TV_S("derived"));
}

/* ---- frameworks ---- */

typedef struct stack_row {
    const char *vendor;
    tv_card_stack stack;
} stack_row;

/* Where a framework's own wheels stop and plug-ins begin (sources: pytorch-release, paddle-docs,
 * the device list of PaddleCustomDevice). */
static const stack_row stacks[] = {
    {"AMD",
     {N_("ROCm wheels, Linux"), N_("no wheel for these cards (the ROCm build is for Hygon DCU)"),
      TV_SUPPORT_YES, TV_SUPPORT_NO}},
    {"Apple",
     {N_("MPS back end: prototypes, not training runs"),
      N_("macOS wheels are CPU only; the MPS plug-in is experimental"), TV_SUPPORT_SLOW,
      TV_SUPPORT_NO}},
    {"Huawei",
     {N_("torch_npu plug-in on CANN"), N_("PaddleCustomDevice plug-in: npu"), TV_SUPPORT_SLOW,
      TV_SUPPORT_SLOW}},
    {"Kunlunxin (Baidu)",
     {N_("the maker's own build"), N_("paddlepaddle-xpu wheels for the P800 line"), TV_SUPPORT_SLOW,
      TV_SUPPORT_YES}},
    {"Cambricon",
     {N_("torch_mlu plug-in"), N_("PaddleCustomDevice plug-in: mlu"), TV_SUPPORT_SLOW,
      TV_SUPPORT_SLOW}},
    {"Hygon",
     {N_("the maker's DTK build"), N_("DCU build, on ROCm"), TV_SUPPORT_SLOW, TV_SUPPORT_YES}},
    {"Iluvatar CoreX",
     {N_("the maker's CoreX build; NVIDIA wheels do not run"),
      N_("PaddleCustomDevice plug-in: iluvatar_gpu"), TV_SUPPORT_SLOW, TV_SUPPORT_SLOW}},
    {"MetaX",
     {N_("the maker's MACA build"), N_("PaddleCustomDevice plug-in: metax_gpu"), TV_SUPPORT_SLOW,
      TV_SUPPORT_SLOW}},
    {"Enflame",
     {N_("the maker's plug-in"), N_("PaddleCustomDevice plug-in: gcu"), TV_SUPPORT_SLOW,
      TV_SUPPORT_SLOW}},
    {"Moore Threads",
     {N_("torch_musa plug-in"), N_("no wheel known"), TV_SUPPORT_SLOW, TV_SUPPORT_UNKNOWN}},
    {"Biren",
     {N_("the maker's own build"), N_("no wheel known"), TV_SUPPORT_SLOW, TV_SUPPORT_UNKNOWN}},
    {"Intel",
     {N_("XPU wheels (Arc, Data Center GPU) or the Gaudi plug-in"),
      N_("PaddleCustomDevice plug-in: intel_gpu, intel_hpu"), TV_SUPPORT_YES, TV_SUPPORT_SLOW}},
    {"Google", {N_("PyTorch/XLA; rented only"), N_("none"), TV_SUPPORT_SLOW, TV_SUPPORT_NO}},
    {"AWS", {N_("Neuron SDK; rented only"), N_("none"), TV_SUPPORT_SLOW, TV_SUPPORT_NO}},
};

static tv_card_stack cuda_stack(int cc)
{
    /* pytorch-release: the cu126 wheels are the last with 5.0 to 7.0; paddle-docs: FP16 wants 7.0
     */
    if (cc < 50)
        return (tv_card_stack){N_("no current wheel holds kernels for it"),
                               N_("no current wheel holds kernels for it"), TV_SUPPORT_NO,
                               TV_SUPPORT_NO};
    if (cc < 75)
        return (tv_card_stack){N_("CUDA 12.6 wheels only: CUDA 13 dropped this generation"),
                               N_("CUDA 11.8 and 12.6 wheels only"), TV_SUPPORT_YES,
                               TV_SUPPORT_YES};
    if (cc >= 100)
        return (tv_card_stack){N_("CUDA 12.8 wheels or newer"), N_("CUDA 12.9 wheels or newer"),
                               TV_SUPPORT_YES, TV_SUPPORT_YES};
    return (tv_card_stack){N_("CUDA wheels"), N_("CUDA wheels"), TV_SUPPORT_YES, TV_SUPPORT_YES};
}

tv_card_stack tv_card_frameworks(const tv_device *d)
{
    if (tv_str_is(d->vendor, "NVIDIA") && d->compute_capability > 0)
        return cuda_stack(d->compute_capability);
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
        if (tv_str_is(d->vendor, stacks[i].vendor))
            return stacks[i].stack;
    return (tv_card_stack){N_("no wheel known"), N_("no wheel known"), TV_SUPPORT_UNKNOWN,
                           TV_SUPPORT_UNKNOWN};
}

/* ---- remarks ---- */

static void add(tv_arena *a, tv_texts_list *list, const char *id, const char *msgid)
{
    *tv_push(a, list) = (tv_text){.id = id, .msgid = msgid};
}

static bool is_laptop(const tv_device *d)
{
    return tv_str_is(d->segment, "laptop") || tv_str_has(d->name, TV_S("Laptop")) ||
           tv_str_has(d->name, TV_S("Max-Q"));
}

static void remark_units(tv_arena *a, const tv_device *d, tv_texts_list *out)
{
    const int cc = d->compute_capability;
    const tv_fact half = d->rate_flops[TV_RATE_FP16_TENSOR];
    const tv_fact full = d->rate_flops[TV_RATE_FP16_TENSOR_FP16];
    const tv_fact vector = d->rate_flops[TV_RATE_FP16], fp32 = d->rate_flops[TV_RATE_FP32];
    if (tv_card_has_tensor_cores(d) == 0 && tv_known(vector) && vector.v > fp32.v * 1.5)
        add(a, out, "card.vector-fp16",
            N_("no tensor cores: AMP saves memory and gains at most the vector units' doubled FP16 "
               "rate"));
    else if (tv_card_has_tensor_cores(d) == 0)
        add(a, out, "card.no-tensor-cores",
            N_("no tensor cores: AMP saves memory only, it is not faster"));
    if (cc > 0 && cc < 70)
        add(a, out, "card.paddle-fp16",
            N_("Paddle's FP16 needs compute capability 7.0: train in FP32 here"));
    if (cc == 61 || cc == 62)
        add(a, out, "card.fp16-64th", N_("FP16 arithmetic runs at 1/64 of the FP32 rate"));
    if (cc >= 70 && cc < 80)
        add(a, out, "card.no-bf16",
            N_("no BF16: use FP16 with loss scaling; bf16 recipes do not run fast here"));
    if (tv_known(half) && tv_known(full) && full.v > half.v * 1.5)
        *tv_push(a, out) = TV_TEXT(
            a, "card.half-accumulate",
            N_("FP16 with FP32 accumulate, which training uses, runs at {half}; the {full} that is "
               "often quoted accumulates in FP16"),
            tv_arg_num("half", TV_ARG_FLOPS, half.v), tv_arg_num("full", TV_ARG_FLOPS, full.v));
    if (tv_known(d->sparse_multiple) && d->sparse_multiple.v > 1)
        *tv_push(a, out) =
            TV_TEXT(a, "card.sparse",
                    N_("makers also print {times} times these rates: with 2:4 structured sparsity, "
                       "which ordinary training and inference do not have"),
                    tv_arg_num("times", TV_ARG_NUMBER, d->sparse_multiple.v));
}

static void remark_place(tv_arena *a, const tv_device *d, tv_texts_list *out)
{
    if (is_laptop(d))
        add(a, out, "card.laptop",
            N_("laptop part: the maker of the laptop sets power and clocks, so the rates are "
               "ceilings; do not judge training on it"));
    if (tv_str_is(d->vendor, "Apple"))
        add(a, out, "card.apple",
            N_("memory is shared with the processor; Paddle runs on the CPU only here and training "
               "is not judged; inference of small models is what it is good for"));
    if (tv_str_has(d->form_factor, TV_S("passive")) || tv_str_starts(d->form_factor, TV_S("SXM")) ||
        tv_str_starts(d->form_factor, TV_S("OAM")))
        add(a, out, "card.passive",
            N_("passively cooled: it needs a server's airflow and reports no fan"));
    if (tv_str_starts(d->form_factor, TV_S("SXM")))
        add(a, out, "card.sxm", N_("comes on a board with its server, not as a card for a slot"));
    if (tv_str_is(d->segment, "consumer") && tv_str_is(d->vendor, "NVIDIA"))
        add(a, out, "card.licence",
            N_("the licence of the GeForce driver does not allow use in a data centre"));
    if (tv_str_is(d->segment, "cloud-only"))
        add(a, out, "card.rented", N_("can be rented, not bought"));
}

static void remark_links(tv_arena *a, const tv_device *d, tv_texts_list *out)
{
    if (d->fabric_shape == TV_FABRIC_BRIDGE)
        add(a, out, "card.bridge",
            N_("NVLink bridges join pairs: three or more of these cards talk over PCIe, whatever "
               "the mainboard; a group of eight needs the SXM form on a switch board"));
    if (tv_str_is(d->fabric, "none") && tv_str_is(d->vendor, "NVIDIA"))
        add(a, out, "card.no-nvlink",
            N_("no NVLink: several of these cards talk over PCIe on every mainboard"));
    if (d->p2p_over_pcie == 0)
        add(a, out, "card.no-p2p",
            N_("the stock driver offers no peer access over PCIe: traffic between cards goes "
               "through host memory"));
}

static void remark_software(tv_arena *a, const tv_device *d, tv_texts_list *out)
{
    const int cc = d->compute_capability;
    if (!tv_str_is(d->vendor, "NVIDIA"))
        add(a, out, "card.not-cuda",
            N_("not a CUDA device: check the framework's support before anything else"));
    else if (cc > 0 && cc < 75)
        add(a, out, "card.cuda13", N_("CUDA 13 dropped this generation: stay on CUDA 12"));
    else if (cc >= 100)
        add(a, out, "card.cuda128", N_("needs CUDA 12.8 or newer"));
}

void tv_card_remarks(tv_arena *a, const tv_device *d, tv_texts_list *out)
{
    remark_units(a, d, out);
    remark_place(a, d, out);
    remark_links(a, d, out);
    remark_software(a, d, out);
}

/* Remarks of records that repeat what follows from the numbers. */
static bool is_said(tv_str id)
{
    static const char *const said[] = {
        "bridge-pair",     "cuda-12-8", "cuda13-dropped",     "half-accumulate", "laptop-ceiling",
        "no-nvlink",       "no-p2p-30", "no-p2p-40",          "no-p2p-50",       "not-cuda",
        "no-tensor-cores", "slow-fp16", "no-tensor-cores-16", "p100-fp16",       "unified-memory",
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (tv_str_is(id, said[i]))
            return true;
    return false;
}

const tv_err *tv_card_notes(const tv_gpus_run *g, const tv_device *d, tv_texts *out)
{
    for (size_t i = 0; i < d->n_notes; i++) {
        tv_str said;
        if (is_said(d->notes[i]))
            continue;
        TV_TRY(tv_catalog_remark(g->market.catalog, g->r->lang, d->notes[i], &said));
        *tv_push(g->r->a, out) = said.n ? said : d->notes[i];
    }
    return NULL;
}

/* ---- numbers ---- */

typedef void (*put_value)(tv_buf *b, double v);

static tv_str shown(tv_arena *a, tv_fact f, put_value put, const char *unit)
{
    tv_buf b = tv_buf_in(a);
    if (!tv_known(f))
        return TV_S("?");
    put(&b, f.v);
    tv_puts(&b, unit);
    return tv_buf_str(&b);
}

tv_str tv_card_capability(tv_arena *a, const tv_device *d)
{
    tv_buf b = tv_buf_in(a);
    if (d->compute_capability <= 0)
        return (tv_str){0};
    tv_put_u64(&b, (uint64_t)(d->compute_capability / 10));
    tv_putc(&b, '.');
    tv_put_u64(&b, (uint64_t)(d->compute_capability % 10));
    return tv_buf_str(&b);
}

/* "24.00 GiB" is "24 GiB". */
static tv_str without_zeros(tv_arena *a, tv_str s)
{
    const tv_cut point = tv_str_cut(s, '.');
    size_t n = 0, keep = 0;
    while (n < point.tail.n && point.tail.p[n] >= '0' && point.tail.p[n] <= '9') {
        n++;
        keep = point.tail.p[n - 1] != '0' ? n : keep;
    }
    if (!point.found)
        return s;
    tv_str head = point.head;
    if (keep)
        head = tv_str_join(a, tv_str_join(a, head, TV_S(".")), tv_str_take(point.tail, keep));
    return tv_str_join(a, head, tv_str_drop(point.tail, n));
}

tv_str tv_show_memory(tv_arena *a, tv_fact f)
{
    return without_zeros(a, shown(a, f, tv_put_memory, ""));
}

tv_str tv_show_rate(tv_arena *a, tv_fact f)
{
    return shown(a, f, tv_put_giga, " GB/s");
}

tv_str tv_show_flops(tv_arena *a, tv_fact f)
{
    return shown(a, f, tv_put_tera, "");
}

tv_str tv_show_number(tv_arena *a, tv_fact f, int digits)
{
    tv_buf b = tv_buf_in(a);
    if (!tv_known(f))
        return TV_S("?");
    tv_put_short(&b, f.v, digits);
    return without_zeros(a, tv_buf_str(&b));
}

tv_str tv_show_price(tv_arena *a, const tv_price *p)
{
    tv_buf b = tv_buf_in(a);
    if (!(p->value > 0))
        return TV_S("?");
    tv_put_count(&b, floor(p->value + 0.5));
    tv_puts(&b, " ");
    tv_put(&b, p->currency);
    return tv_buf_str(&b);
}

tv_price tv_gpus_price(const tv_gpus_run *g, const tv_device *d)
{
    const tv_gpus_options *o = g->o;
    const bool cny = o->money.currency == TV_CNY ||
                     (o->money.currency == TV_CURRENCY_DEFAULT && g->r->lang == TV_ZH);
    const tv_str currency = cny ? TV_S("CNY") : TV_S("USD");
    tv_price p = tv_cost_card_price(d, currency, o->money.fx);
    const tv_double_read v = tv_cost_convert(p.value, p.currency, currency, o->money.fx);
    if (p.value > 0 && v.ok) {
        p.value = v.v;
        p.currency = currency;
    }
    return p;
}
