/* The tensors of the files beside what the configuration says: which of them are the model, which
 * are buffers, scales, copies of a tied head, prediction modules or towers. A difference that
 * remains is said. Reads names and shapes only. */
#include "decoder.h"

typedef struct group {
    const char *name;
    const char *why; /* a msgid */
    double elements;
} group;

enum {
    GROUP_MODEL,
    GROUP_BUFFERS,
    GROUP_SCALES,
    GROUP_HEAD_COPY,
    GROUP_MODULES,
    GROUP_TOWERS,
    GROUP_COUNT,
};

static const group empty_groups[GROUP_COUNT] = {
    [GROUP_MODEL] = {"model", NULL, 0},
    [GROUP_BUFFERS] = {"buffers", N_("tables and masks in the files that are no parameters"), 0},
    [GROUP_SCALES] = {"scales", N_("scales and zero points of quantised weights"), 0},
    [GROUP_HEAD_COPY] = {"head copy",
                         N_("the files store the output head although it is tied to the embedding"),
                         0},
    [GROUP_MODULES] = {"multi-token prediction", N_("in the files; not part of what runs"), 0},
    [GROUP_TOWERS] = {"vision tower",
                      N_("runs beside the decoder when there is an image; its memory and time are "
                         "not in the prediction"),
                      0},
};

static bool has_any(tv_str name, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (tv_str_has(name, tv_str_of(words[i])))
            return true;
    return false;
}

static bool ends_any(tv_str name, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (tv_str_ends(name, tv_str_of(words[i])))
            return true;
    return false;
}

static bool is_buffer(const tv_tensor *t)
{
    static const char *const ends[] = {"inv_freq",
                                       "position_ids",
                                       "token_type_ids",
                                       "num_batches_tracked",
                                       "masked_bias",
                                       "rope_freqs.weight",
                                       NULL};
    static const char *const parts[] = {"rope_factors_", "rotary_emb.", NULL};
    if (ends_any(t->name, ends) || has_any(t->name, parts))
        return true;
    bool mask = t->dtype == TV_BOOL || t->dtype == TV_I64 ||
                (t->dtype == TV_U8 && tv_str_ends(t->name, TV_S("attn.bias")));
    return mask;
}

static bool is_scale(tv_str name)
{
    static const char *const ends[] = {
        "weight_scale_inv", "weight_scale", "weight_scale_2", "input_scale", "weight_shape",
        "weight_zero_point", "qzeros", "g_idx", ".scales", "_scales", "k_scale", "v_scale",
        /* bitsandbytes */
        ".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map",
        ".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4", ".SCB",
        ".weight_format",
        /* compressed-tensors, quanto */
        "weight_global_scale", "input_global_scale", "weight_g_idx", "input_zero_point",
        "output_scale", "weight._scale", "weight._shift", NULL};
    return ends_any(name, ends);
}

/* "model.layers.61.…": the number behind "layers." (or ".h.", "blk."); -1: none. */
static double layer_number(tv_str name)
{
    for (size_t i = 0; i + 7 < name.n; i++) {
        tv_str rest = tv_str_drop(name, i);
        if (!tv_str_starts(rest, TV_S("layers.")))
            continue;
        tv_u64_read n = tv_str_u64(tv_str_cut(tv_str_drop(rest, 7), '.').head);
        return n.ok ? (double)n.v : -1;
    }
    return -1;
}

static int group_of(const tv_tensor *t, const tv_decoder *d)
{
    static const char *const towers[] = {
        "visual.", "vision_", "mm_projector", "multi_modal_projector", "audio_tower",
        "vision.", NULL};
    if (is_buffer(t))
        return GROUP_BUFFERS;
    if (is_scale(t->name))
        return GROUP_SCALES;
    if (has_any(t->name, towers))
        return GROUP_TOWERS;
    if (tv_str_starts(t->name, TV_S("mtp")) || tv_str_has(t->name, TV_S(".mtp.")) ||
        tv_str_has(t->name, TV_S("mtp_layers")) || layer_number(t->name) >= d->n_layers)
        return GROUP_MODULES;
    if (d->tied && (tv_str_is(t->name, "lm_head.weight") || tv_str_is(t->name, "output.weight")))
        return GROUP_HEAD_COPY;
    return GROUP_MODEL;
}

/* Packed integers hold several weights per element: their number says nothing. */
static bool is_packed(const tv_source *s)
{
    for (size_t i = 0; i < s->n_tensors; i++) {
        const tv_tensor *t = &s->tensors[i];
        bool integer = t->dtype == TV_I32 || t->dtype == TV_U8 || t->dtype == TV_I8;
        if (integer && t->rank >= 2 && !is_buffer(t))
            return true;
    }
    return false;
}

static bool has_part(const tv_model *m, const char *name)
{
    for (size_t i = 0; i < m->n_parts; i++)
        if (tv_str_is(m->parts[i].name, name) && m->parts[i].params > 0)
            return true;
    return false;
}

static tv_dtype widest_use(const tv_source *s)
{
    double bytes[TV_DTYPE_COUNT] = {0};
    tv_dtype best = TV_DTYPE_UNKNOWN;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const tv_tensor *t = &s->tensors[i];
        bytes[t->dtype] += (double)t->bytes;
        if (tv_dtype_of(t->dtype)->is_float && bytes[t->dtype] > bytes[best])
            best = t->dtype;
    }
    return best;
}

void tv_decoder_compare_files(tv_arena *a, const tv_source *s, const tv_decoder *d, tv_model *m)
{
    group groups[GROUP_COUNT];
    for (size_t i = 0; i < GROUP_COUNT; i++)
        groups[i] = empty_groups[i];
    for (size_t i = 0; i < s->n_tensors; i++)
        if (!s->tensors[i].shares) /* a tied head, once */
            groups[group_of(&s->tensors[i], d)].elements += (double)s->tensors[i].elements;
    for (size_t i = GROUP_BUFFERS; i < GROUP_COUNT; i++)
        if (groups[i].elements > 0 && !has_part(m, groups[i].name))
            tv_family_part(a, m,
                           (tv_part){.name = tv_str_of(groups[i].name),
                                     .params = groups[i].elements,
                                     .why = {.id = "files.part", .msgid = groups[i].why}});
    if (!m->stored)
        m->stored = widest_use(s);
    double held = groups[GROUP_MODEL].elements;
    if (held == m->params || is_packed(s))
        return;
    tv_family_warn(a, m,
                   TV_TEXT(a, "files.differ",
                           N_("the files hold {held} parameters of the model, its configuration "
                              "makes {made}"),
                           tv_arg_num("held", TV_ARG_COUNT, held),
                           tv_arg_num("made", TV_ARG_COUNT, m->params)));
}
