/* From a job as asked to a case with everything decided; every choice is listed in defaults. */
#include "predict.h"

#include <math.h>

/* Where PEFT puts adapters when nobody says: query and value, or the joined projection
 * (peft/utils/constants.py, the mapping of model types to target modules). */
#define PEFT_TARGETS "q_proj,v_proj,query_key_value,qkv_proj,c_attn,query,value,Wqkv,q,v"

typedef struct resolver {
    tv_arena *a;
    const tv_model *model;
    const tv_machine *machine;
    tv_case *c;
    struct {
        tv_text *v;
        size_t n, cap;
    } defaults;
    size_t targets_default; /* where the note on --lora-targets stands: the last one */
} resolver;

static void took(resolver *r, const char *field, tv_str value)
{
    *tv_push(r->a, &r->defaults) =
        TV_TEXT(r->a, field, N_("{field} was not stated: {value} is taken"),
                tv_arg_str("field", tv_str_of(field)), tv_arg_str("value", value));
}

static void took_number(resolver *r, const char *field, double v)
{
    tv_buf b = tv_buf_in(r->a);
    tv_put_double(&b, v);
    took(r, field, tv_buf_str(&b));
}

static uint32_t or_default(resolver *r, const char *field, uint32_t v, uint32_t fallback)
{
    if (v || !fallback)
        return v;
    took_number(r, field, fallback);
    return fallback;
}

static void choose_task(resolver *r)
{
    tv_job *job = &r->c->job;
    if (job->task != TV_TASK_DEFAULT)
        return;
    job->task = r->model->adapter     ? TV_TASK_LORA
                : r->model->generates ? TV_TASK_INFER
                                      : TV_TASK_TRAIN;
    took(r, "task", tv_str_of(tv_task_name(job->task)));
}

/* Compute capability that decides about kernels; other vendors' cards of the 16-bit era behave
 * like 8.0. */
static int capability(const tv_device *d)
{
    if (!d)
        return 80;
    if (d->compute_capability)
        return d->compute_capability;
    return tv_known(d->rate_flops[TV_RATE_BF16_TENSOR]) ? 80 : 70;
}

static tv_precision training_precision(const resolver *r)
{
    const int cc = capability(r->machine->device);
    if (cc >= 80)
        return TV_PRECISION_AMP_BF16;
    return cc >= 70 ? TV_PRECISION_AMP_FP16 : TV_PRECISION_FP32;
}

static tv_precision serving_precision(const resolver *r)
{
    if (r->model->stored != TV_DTYPE_UNKNOWN || r->model->quant.method.n)
        return TV_PRECISION_AS_STORED;
    return capability(r->machine->device) >= 80 ? TV_PRECISION_BF16 : TV_PRECISION_FP16;
}

/* Packed weights are unpacked to whatever 16-bit type the card multiplies, and a bf16 file is
 * served in fp16 where there is no bf16. */
static void sixteen_bit_of(const resolver *r, tv_policy *p)
{
    const bool free = p->base || p->precision == TV_PRECISION_AS_STORED;
    if (!free || p->compute != TV_BF16 || capability(r->machine->device) >= 80)
        return;
    const bool fp32 = p->param == TV_F32; /* 4-bit training keeps the rest in fp32 */
    p->compute = TV_F16;
    if (!fp32)
        p->param = p->stream = p->grad = TV_F16;
    p->kv = p->kv == TV_BF16 ? TV_F16 : p->kv;
}

/* Paddle's own files are run by Paddle; whatever else is there by torch. */
static void choose_framework(resolver *r)
{
    tv_job *job = &r->c->job;
    if (job->framework != TV_FRAMEWORK_DEFAULT)
        return;
    job->framework = r->model->framework ? r->model->framework : TV_TORCH;
    if (r->model->framework)
        took(r, "framework", tv_str_of(tv_framework_name(job->framework)));
}

static void choose_precision(resolver *r)
{
    tv_job *job = &r->c->job;
    const bool trains = tv_job_trains(job);
    if (job->precision == TV_PRECISION_DEFAULT) {
        job->precision = trains ? training_precision(r) : serving_precision(r);
        took(r, "precision", tv_str_of(tv_precision_name(job->precision)));
    }
    r->c->policy = tv_predict_policy(job->precision, job->framework, r->model, trains);
    /* The frozen base is loaded in 16 bit; PEFT's recipe for 4-bit bases casts what is not
     * quantised to fp32 (prepare_model_for_kbit_training). */
    if (job->task == TV_TASK_LORA && r->c->policy.autocast)
        r->c->policy.param = r->c->policy.stream = r->c->policy.compute;
    if (job->task == TV_TASK_QLORA && r->c->policy.base == TV_DTYPE_UNKNOWN) {
        const tv_policy nf4 = tv_predict_policy(TV_PRECISION_NF4, job->framework, r->model, true);
        r->c->policy.base = nf4.base;
        r->c->policy.base_bytes = nf4.base_bytes;
    }
    if (job->master && trains && r->c->policy.param != TV_F32) {
        r->c->policy.master = job->master > 0;
        r->c->policy.state = job->master > 0 ? TV_F32 : r->c->policy.param;
        if (job->master == 2)
            r->c->policy.grad = TV_F32;
    }
    sixteen_bit_of(r, &r->c->policy);
    if (job->kv)
        r->c->policy.kv = job->kv;
}

static const tv_err *check_precision(const resolver *r)
{
    const tv_device *d = r->machine->device;
    const tv_policy *p = &r->c->policy;
    if (!d || !d->compute_capability)
        return NULL;
    const int cc = d->compute_capability;
    const bool bf16 = p->compute == TV_BF16 && r->c->job.precision != TV_PRECISION_AS_STORED;
    const int need = p->compute == TV_F8_E4M3 ? 89 : bf16 ? 80 : p->compute == TV_TF32 ? 80 : 0;
    /* weight-only quantisation computes in whatever 16-bit type the card has */
    if (cc >= need || (p->base && p->compute == TV_BF16))
        return NULL;
    return tv_hint(TV_FAIL(r->a, TV_UNSUPPORTED, "dtype.unsupported",
                           N_("{gpu} (compute capability {cc}) has no {dtype}"),
                           tv_arg_str("gpu", d->name), tv_arg_num("cc", TV_ARG_NUMBER, cc / 10.0),
                           tv_arg_str("dtype", tv_str_of(tv_dtype_of(p->compute)->name))),
                   TV_TEXT0("dtype.try", N_("Try --precision amp-fp16 (7.0 and newer) or fp32.")));
}

static tv_kernel kernel_of(const resolver *r)
{
    const tv_job *job = &r->c->job;
    const tv_dtype t = r->c->policy.compute;
    const bool half = t == TV_F16 || t == TV_BF16 || t == TV_F8_E4M3;
    if (job->attention == TV_ATTENTION_EAGER)
        return TV_KERNEL_EAGER;
    /* Paddle's dygraph layers use the unfused form unless a flash kernel is asked for. */
    if (job->attention == TV_ATTENTION_DEFAULT && job->framework == TV_PADDLE)
        return TV_KERNEL_EAGER;
    if (half && capability(r->machine->device) >= 80)
        return TV_KERNEL_FLASH;
    return TV_KERNEL_EFFICIENT;
}

/* Instruction data is cut to about this length; other jobs take what the model was made for. */
enum { tuning_seq = 1024 };

static uint32_t usual_length(const resolver *r)
{
    const tv_task task = r->c->job.task;
    const bool tunes = r->model->generates &&
                       (task == TV_TASK_FINETUNE || task == TV_TASK_LORA || task == TV_TASK_QLORA);
    const uint32_t own = r->model->default_seq;
    return tunes && own > tuning_seq ? tuning_seq : own;
}

static void choose_lengths(resolver *r)
{
    tv_job *job = &r->c->job;
    const tv_model *m = r->model;
    job->batch = or_default(r, "batch", job->batch, 1);
    if (tv_job_trains(job))
        job->accum = or_default(r, "accum", job->accum, 1);
    else
        job->accum = 1; /* means nothing there, so it is no assumption */
    if (m->default_seq)
        job->seq = or_default(r, "seq", job->seq, usual_length(r));
    if (m->generates && !tv_job_trains(job))
        job->gen = or_default(r, "gen", job->gen, 256);
    if (m->image_h && !job->image_h) {
        job->image_h = m->image_h;
        job->image_w = m->image_w;
        took_number(r, "image", m->image_h);
    }
}

/* ---- adapters ---- */

static void from_adapter(resolver *r, const char *field, tv_str value)
{
    *tv_push(r->a, &r->defaults) =
        TV_TEXT(r->a, field, N_("{field} comes from the adapter: {value}"),
                tv_arg_str("field", tv_str_of(field)), tv_arg_str("value", value));
}

/* What nobody said is as the adapter's own files say. */
static void take_adapter(resolver *r)
{
    const tv_adapter *x = r->model->adapter;
    tv_job *job = &r->c->job;
    tv_buf rank = tv_buf_in(r->a);
    if (!x)
        return;
    tv_put_double(&rank, x->rank);
    if (!job->lora_rank && x->rank >= 1 && x->rank <= 65536) {
        job->lora_rank = (uint32_t)x->rank;
        from_adapter(r, "lora-rank", tv_buf_str(&rank));
    }
    if (!job->lora_targets.n && x->targets.n) {
        job->lora_targets = x->targets;
        from_adapter(r, "lora-targets", x->targets);
    }
    if (!(job->lora_dropout > 0) && x->dropout > 0 && x->dropout < 1)
        job->lora_dropout = x->dropout;
}

/* Weights of an adapter that serves stay in the type of its file. */
static void choose_adapter_use(resolver *r)
{
    const tv_adapter *x = r->model->adapter;
    tv_job *job = &r->c->job;
    if (!x || tv_job_trains(job))
        return;
    if (job->adapter == TV_ADAPTER_DEFAULT) {
        job->adapter = TV_ADAPTER_BESIDE;
        took(r, "adapter", TV_S("beside"));
    }
    if (job->adapter == TV_ADAPTER_MERGED)
        return;
    take_adapter(r);
    job->lora_rank = or_default(r, "lora-rank", job->lora_rank, 16);
    if (job->lora_targets.n == 0)
        job->lora_targets = TV_S(PEFT_TARGETS);
    if (!job->lora_dtype && x->dtype)
        job->lora_dtype = x->dtype;
    if (x->bytes > 0)
        *tv_push(r->a, &r->defaults) =
            TV_TEXT(r->a, "adapter.file",
                    N_("the adapter's file holds {params} parameters ({bytes}); merged into the "
                       "weights (--adapter merged) they would take nothing"),
                    tv_arg_num("params", TV_ARG_COUNT, x->params),
                    tv_arg_num("bytes", TV_ARG_MEMORY, x->bytes));
}

static void choose_training(resolver *r)
{
    tv_job *job = &r->c->job;
    if (!tv_job_trains(job))
        return;
    if (job->optimizer == TV_OPT_DEFAULT) {
        job->optimizer = TV_OPT_ADAMW;
        took(r, "optimizer", TV_S("adamw"));
    }
    if (job->strategy == TV_STRATEGY_DEFAULT)
        job->strategy = TV_STRATEGY_DDP;
    if (job->optimizer_form == TV_FORM_DEFAULT)
        job->optimizer_form = job->framework == TV_PADDLE ? TV_FORM_FUSED : TV_FORM_FOREACH;
    if (job->attention == TV_ATTENTION_DEFAULT && r->model->heads > 0) {
        const bool eager = kernel_of(r) == TV_KERNEL_EAGER;
        took(r, "attention", eager ? TV_S("eager") : TV_S("sdpa"));
    }
    if (!tv_job_adapts(job))
        return;
    take_adapter(r);
    job->lora_rank = or_default(r, "lora-rank", job->lora_rank, 16);
    if (job->lora_targets.n == 0) {
        job->lora_targets = TV_S(PEFT_TARGETS);
        r->targets_default = r->defaults.n;
        took(r, "lora-targets", job->lora_targets);
    }
}

static tv_setting setting_of(const resolver *r)
{
    const tv_job *job = &r->c->job;
    const bool trains = tv_job_trains(job), adapts = tv_job_adapts(job);
    return (tv_setting){
        .phase = trains ? TV_PHASE_TRAIN : TV_PHASE_PREFILL,
        .policy = r->c->policy,
        .kernel = kernel_of(r),
        .seq = job->seq,
        .target_seq = r->model->default_target_seq,
        .image_h = job->image_h,
        .image_w = job->image_w,
        .dropout = job->dropout,
        .loss = job->loss,
        .trainable = adapts   ? TV_TRAIN_LORA
                     : trains ? TV_TRAIN_ALL
                              : TV_TRAIN_NONE,
        .lora_rank = job->lora_rank,
        .lora_targets = job->lora_targets,
        .lora_dropout = trains ? job->lora_dropout : 0,
        .lora_beside = job->adapter == TV_ADAPTER_BESIDE && r->model->adapter && !trains,
        .saved_modules = adapts && r->model->adapter ? r->model->adapter->saved : (tv_str){0},
        /* PEFT's autocast_adapter_dtype is on by default */
        .lora_dtype = job->lora_dtype ? job->lora_dtype : TV_F32,
        .keep_logits = true, /* the module's output object lives until the step ends */
        .fused_norm = job->engine != TV_ENGINE_EAGER,
        .last_logits = !trains && !job->logits_all,
    };
}

/* Rotary positions go on past the trained length, badly; learned ones end there. */
static const tv_err *check_lengths(resolver *r)
{
    const tv_job *job = &r->c->job;
    const double total = (double)job->seq + (double)job->gen, max = r->model->max_seq;
    if (max <= 0 || total <= max || !r->model->default_seq)
        return NULL;
    if (r->model->generates) {
        *tv_push(r->a, &r->defaults) = TV_TEXT(
            r->a, "seq", N_("{total} tokens are more than the {max} the model was made for"),
            tv_arg_num("total", TV_ARG_COUNT, total), tv_arg_num("max", TV_ARG_COUNT, max));
        return NULL;
    }
    return tv_hint(TV_FAIL(r->a, TV_USAGE, "seq.too-long",
                           N_("{total} tokens are more than the model's {max}"),
                           tv_arg_num("total", TV_ARG_COUNT, total),
                           tv_arg_num("max", TV_ARG_COUNT, max)),
                   TV_TEXT0("seq.try", N_("Give a smaller --seq or --gen.")));
}

/* The last parts of the body's linear layers, each once: what --lora-targets may name. */
static tv_str linear_names(tv_arena *a, const tv_graph *g)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < g->n_ops; i++) {
        const tv_op *op = &g->ops[i];
        const bool body = g->blocks[op->block].stage == TV_STAGE_BODY;
        if (op->kind != TV_OP_GEMM || !body || op->n_weights == 0)
            continue;
        tv_str name = tv_str_of(op->name);
        for (tv_cut c = tv_str_cut(name, '.'); c.found; c = tv_str_cut(name, '.'))
            name = c.tail;
        if (tv_str_has(tv_buf_str(&b), name))
            continue;
        tv_puts(&b, b.n ? ", " : "");
        tv_put(&b, name);
    }
    return tv_buf_str(&b);
}

/* Patterns that match nothing would train nothing: refused when stated; where PEFT's own list does
 * not fit the model, every linear layer of the body is adapted. */
static const tv_err *check_targets(resolver *r, const tv_graph *g, bool *again)
{
    *again = false;
    if (!tv_job_adapts(&r->c->job) || g->trainable_params > 0)
        return NULL;
    if (tv_str_is(r->c->job.lora_targets, PEFT_TARGETS)) {
        r->c->job.lora_targets = r->c->setting.lora_targets = TV_S("*");
        r->defaults.n = r->targets_default; /* its note is replaced */
        took(r, "lora-targets", TV_S("*"));
        *again = true;
        return NULL;
    }
    return tv_hint(TV_FAIL(r->a, TV_USAGE, "lora.no-target",
                           N_("--lora-targets {targets} names no linear layer"),
                           tv_arg_str("targets", r->c->job.lora_targets)),
                   TV_TEXT(r->a, "lora.targets",
                           N_("The model's are {names}; * stands for any part of a name."),
                           tv_arg_str("names", linear_names(r->a, g))));
}

static const tv_err *build_graphs(resolver *r)
{
    tv_case *c = r->c;
    tv_graph *g = NULL;
    bool again = false;
    TV_TRY(r->model->build(r->a, r->model, &c->setting, &g));
    TV_TRY(check_targets(r, g, &again));
    if (again)
        TV_TRY(r->model->build(r->a, r->model, &c->setting, &g));
    if (again && g->trainable_params <= 0)
        return TV_FAIL0(r->a, TV_UNSUPPORTED, "lora.no-linear",
                        N_("the model has no linear layer that adapters could join"));
    c->graph = g;
    c->job.defaults = r->defaults.v;
    c->job.n_defaults = r->defaults.n;
    if (tv_job_trains(&c->job) || !r->model->generates)
        return NULL;
    tv_setting decode = c->setting;
    decode.phase = TV_PHASE_DECODE;
    tv_graph *d = NULL;
    TV_TRY(r->model->build(r->a, r->model, &decode, &d));
    c->decode = d;
    return NULL;
}

const tv_err *tv_predict_case(tv_arena *a, const tv_model *model, const tv_job *job,
                              const tv_machine *machine, const tv_dataset *dataset, tv_case *out)
{
    *out = (tv_case){.model = model, .job = *job, .machine = machine, .dataset = dataset};
    resolver r = {.a = a, .model = model, .machine = machine, .c = out};
    choose_task(&r);
    choose_framework(&r);
    choose_precision(&r);
    TV_TRY(check_precision(&r));
    choose_lengths(&r);
    TV_TRY(check_lengths(&r));
    choose_training(&r);
    choose_adapter_use(&r);
    out->setting = setting_of(&r);
    out->job.defaults = r.defaults.v;
    out->job.n_defaults = r.defaults.n;
    return build_graphs(&r);
}
