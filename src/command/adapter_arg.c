/* The base is a folder (beside the adapter or where the user stands) or a built-in model; the
 * adapter's target pattern becomes the names of the base's own linear layers. */
#include "adapter_arg.h"

#include "base/pattern.h"
#include "family/family.h"
#include "read/builtin.h"
#include "read/reader.h"

static const tv_err *unknown_base(tv_request *r, const tv_adapter *x, tv_str base)
{
    if (base.n == 0)
        return tv_hint(
            tv_in_file(TV_FAIL0(r->a, TV_USAGE, "adapter.no-base",
                                N_("the adapter does not say which model it belongs to")),
                       x->folder),
            TV_TEXT0("adapter.base", N_("Name the model with --base.")));
    return tv_hint(
        tv_in_file(TV_FAIL(r->a, TV_USAGE, "adapter.base",
                           N_("which model is \"{base}\"? The adapter's base is neither a folder "
                              "here nor a built-in model"),
                           tv_arg_str("base", base)),
                   x->folder),
        TV_TEXT0("adapter.base.try", N_("Name its folder, or a built-in model, with --base.")));
}

/* A path is taken from where the user stands, then from the adapter's folder. */
static tv_str existing(tv_request *r, const tv_adapter *x, tv_str base)
{
    if (base.n == 0 || tv_file_stat(r->a, base).exists)
        return base;
    const tv_str beside = tv_path_join(r->a, x->folder, base);
    return base.p[0] != '/' && tv_file_stat(r->a, beside).exists ? beside : (tv_str){0};
}

static const tv_err *source_of_base(tv_request *r, const tv_adapter *x, tv_str base,
                                    const tv_source **source)
{
    base = base.n ? base : x->base;
    const tv_str path = existing(r, x, base);
    *source = NULL;
    if (path.n)
        TV_TRY(tv_read_model(r->a, path, source));
    else if (base.n)
        TV_TRY(tv_builtin_find(r->a, base, source));
    return *source && !(*source)->adapter ? NULL : unknown_base(r, x, base);
}

/* ---- targets ---- */

static tv_str last_name(tv_str path)
{
    for (tv_cut c = tv_str_cut(path, '.'); c.found; c = tv_str_cut(path, '.'))
        path = c.tail;
    return path;
}

/* Full names in the framework have the layer's number, which a block kind has not: the pattern is
 * tried with the usual beginnings. */
static bool matches(tv_arena *a, tv_str pattern, tv_str path, bool *understood)
{
    static const char *const starts[] = {"",
                                         "model.layers.0.",
                                         "model.layers.0.self_attn.",
                                         "model.layers.0.mlp.",
                                         "layers.0.",
                                         "transformer.h.0.",
                                         "transformer.h.0.attn.",
                                         "encoder.layer.0.attention.self.",
                                         "bert.encoder.layer.0.attention.self.",
                                         "base_model.model.model.layers.0.",
                                         "model.language_model.layers.0."};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const tv_match m = tv_pattern_match(pattern, tv_str_join(a, tv_str_of(starts[i]), path));
        *understood = *understood && m.understood;
        if (m.found)
            return true;
    }
    return false;
}

static tv_setting counting(void)
{
    return (tv_setting){.phase = TV_PHASE_PREFILL,
                        .policy = {.param = TV_BF16, .compute = TV_BF16, .stream = TV_BF16},
                        .kernel = TV_KERNEL_FLASH,
                        .dropout = 0,
                        .trainable = TV_TRAIN_NONE};
}

static const tv_err *find_targets(tv_request *r, const tv_model *m, tv_adapter *x)
{
    const tv_setting set = counting();
    tv_graph *g = NULL;
    tv_buf names = tv_buf_in(r->a);
    bool understood = true;
    TV_TRY(m->build(r->a, m, &set, &g));
    for (size_t i = 0; i < g->n_ops; i++) {
        const tv_op *op = &g->ops[i];
        const tv_str path = tv_str_of(op->name);
        const bool body = g->blocks[op->block].stage == TV_STAGE_BODY;
        if (op->kind != TV_OP_GEMM || !body || op->n_weights == 0 ||
            tv_str_has(tv_buf_str(&names), last_name(path)) ||
            !matches(r->a, x->pattern, path, &understood))
            continue;
        tv_puts(&names, names.n ? "," : "");
        tv_put(&names, last_name(path));
    }
    x->targets = tv_buf_str(&names);
    if (understood && x->targets.n)
        return NULL;
    return tv_hint(
        tv_in_file(TV_FAIL(r->a, TV_UNSUPPORTED, "adapter.pattern",
                           N_("target_modules \"{pattern}\" matches no linear layer of "
                              "{model}, or is written in a way that is not read"),
                           tv_arg_str("pattern", x->pattern), tv_arg_str("model", m->name)),
                   x->folder),
        TV_TEXT0("adapter.pattern.try", N_("Name the modules with --lora-targets.")));
}

/* ---- what the estimate leaves out ---- */

static void tell_differences(tv_request *r, const tv_adapter *x, tv_model *m)
{
    if (x->layers > 0 && x->layers < m->layers)
        tv_family_warn(
            r->a, m,
            TV_TEXT(r->a, "adapter.layers",
                    N_("the adapter joins {n} of {all} layers; the estimate has it in all "
                       "of them and is too high by that"),
                    tv_arg_num("n", TV_ARG_COUNT, x->layers),
                    tv_arg_num("all", TV_ARG_COUNT, m->layers)));
    if (x->ranks_differ)
        tv_family_warn(
            r->a, m,
            TV_TEXT(r->a, "adapter.ranks",
                    N_("the adapter's ranks differ by module (rank_pattern); the largest, "
                       "{rank}, is taken for all"),
                    tv_arg_num("rank", TV_ARG_COUNT, x->rank)));
    if (x->dora)
        tv_family_warn(r->a, m,
                       TV_TEXT0("adapter.dora",
                                N_("DoRA: one magnitude per output and the copies of weights that "
                                   "their norms are computed from are not in the estimate")));
}

static const tv_err *other_kind(tv_request *r, const tv_adapter *x)
{
    return tv_hint(
        tv_in_file(TV_FAIL(r->a, TV_UNSUPPORTED, "adapter.kind",
                           N_("adapters of kind {kind} are not modelled, LoRA and "
                              "AdaLoRA are"),
                           tv_arg_str("kind", x->kind)),
                   x->folder),
        TV_TEXT0("adapter.kind.try", N_("Name the base model; --task lora with --lora-rank and "
                                        "--lora-targets describes an adapter.")));
}

const tv_err *tv_adapter_argument(tv_request *r, const tv_adapter *adapter, tv_str base,
                                  const tv_model **out)
{
    const tv_source *source = NULL;
    const tv_model *plain = NULL;
    if (!tv_str_is(adapter->kind, "LORA") && !tv_str_is(adapter->kind, "ADALORA"))
        return other_kind(r, adapter);
    TV_TRY(source_of_base(r, adapter, base, &source));
    TV_TRY(tv_family_model(r->a, source, &plain));
    tv_model *m = tv_new(r->a, tv_model, 1);
    tv_adapter *x = tv_new(r->a, tv_adapter, 1);
    *m = *plain;
    *x = *adapter;
    if (x->pattern.n)
        TV_TRY(find_targets(r, m, x));
    if (x->all_linear)
        x->targets = TV_S("*");
    m->adapter = x;
    tell_differences(r, x, m);
    *out = m;
    return NULL;
}
