/* Models that come as a program: an exported or captured graph. What is known of the model is what
 * its graph, run for its shapes, shows. Knows sources and settings; the way from steps to ops is in
 * program_lower.c. */
#include "family.h"
#include "pieces.h"
#include "program_lower.h"

#include <math.h>

/* What a model keeps between builds. */
typedef struct program_spec {
    const tv_program *program;
    tv_trials usual;        /* at the program's own sizes */
    const double *kv_width; /* per input: elements a token in the cache; NULL: none */
    double seq, image_h, image_w;
    tv_arena *scratch; /* given back after each build */
} program_spec;

/* ---- building ---- */

static bool at_usual_sizes(const program_spec *x, const tv_run_sizes *s)
{
    const bool seq = !(s->seq > 0) || !(fabs(s->seq - x->seq) > 0);
    const bool h = !(s->image_h > 0) || !(fabs(s->image_h - x->image_h) > 0);
    const bool w = !(s->image_w > 0) || !(fabs(s->image_w - x->image_w) > 0);
    return seq && h && w;
}

/* The first floating type among stored weights, or the first of 16 bit among what is computed. */
static tv_dtype type_among(const tv_program *p, tv_value_role role)
{
    for (size_t i = 0; i < p->n_values; i++) {
        const tv_dtype t = p->values[i].dtype;
        const bool half = t == TV_F16 || t == TV_BF16;
        if (p->values[i].role == role &&
            (role == TV_VALUE_WEIGHT ? tv_dtype_of(t)->is_float : half))
            return t;
    }
    return TV_DTYPE_UNKNOWN;
}

/* The types and kept tensors of a capture hold where the job trains in the types it was taken in:
 * all in one type, or under autocast. */
static bool as_recorded(const tv_program *p, const tv_setting *set)
{
    const tv_dtype compute = set->policy.compute == TV_TF32 ? TV_F32 : set->policy.compute;
    const tv_dtype half = type_among(p, TV_VALUE_TEMP);
    return p->training && set->phase == TV_PHASE_TRAIN && set->trainable == TV_TRAIN_ALL &&
           set->policy.param == type_among(p, TV_VALUE_WEIGHT) && compute == (half ? half : TV_F32);
}

static size_t storages_of(const tv_program *p)
{
    size_t most = 0;
    for (size_t i = 0; i < p->n_values; i++)
        if (p->values[i].storage > most)
            most = p->values[i].storage;
    return most <= 4 * p->n_values ? most + 1 : 0;
}

static void open_recorded(tv_lower *l)
{
    l->recorded = as_recorded(l->program, l->set);
    if (!l->recorded)
        return;
    tv_setting *set = tv_new(l->a, tv_setting, 1);
    *set = *l->set;
    set->policy.autocast = false; /* its casts are among the recorded operators */
    l->set = set;
    l->n_recorded = storages_of(l->program);
    l->recorded_storage = tv_new(l->a, uint32_t, l->n_recorded + 1);
    l->weight_storage = tv_new(l->a, bool, l->n_recorded + 1);
    for (size_t i = 0; i < l->n_recorded; i++)
        l->recorded_storage[i] = TV_NONE;
    for (size_t i = 0; i < l->program->n_values; i++) {
        const tv_value *v = &l->program->values[i];
        if (v->role == TV_VALUE_WEIGHT && v->storage && v->storage < l->n_recorded)
            l->weight_storage[v->storage] = true;
    }
}

static tv_err *no_length(tv_arena *a, double asked, double own)
{
    return tv_hint(TV_FAIL(a, TV_USAGE, "program.seq", N_("the graph does not take {asked} tokens"),
                           tv_arg_num("asked", TV_ARG_COUNT, asked)),
                   TV_TEXT(a, "program.seq.try", N_("It takes {own}: try --seq {own}."),
                           tv_arg_num("own", TV_ARG_NUMBER, own)));
}

static tv_err *no_image(tv_arena *a, double asked, double own)
{
    return tv_hint(TV_FAIL(a, TV_USAGE, "program.image",
                           N_("the graph does not take images of {asked} pixels a side"),
                           tv_arg_num("asked", TV_ARG_COUNT, asked)),
                   TV_TEXT(a, "program.image.try", N_("It takes {own}: try --image {own}."),
                           tv_arg_num("own", TV_ARG_NUMBER, own)));
}

/* Some programs take one length or one size only, whatever their symbols say: the run then fails,
 * or takes their own. */
static const tv_err *check_sizes(tv_arena *a, const program_spec *x, const tv_setting *set,
                                 const tv_run *r, const tv_err *failed)
{
    const double seq = set->phase == TV_PHASE_DECODE ? 0 : set->seq, image = set->image_h;
    if (seq > 0 && (r ? r->has_seq && fabs(r->seq - seq) > 0 : fabs(x->seq - seq) > 0))
        return no_length(a, seq, x->seq);
    if (image > 0 &&
        (r ? r->has_image && fabs(r->image_h - image) > 0 : fabs(x->image_h - image) > 0))
        return no_image(a, image, x->image_h);
    return failed;
}

static const tv_err *trials_for(tv_arena *a, const program_spec *x, const tv_setting *set,
                                tv_trials *out)
{
    const bool decode = set->phase == TV_PHASE_DECODE && x->kv_width;
    const tv_run_sizes sizes = {
        .seq = decode ? 1 : set->seq,
        .image_h = set->image_h,
        .image_w = set->image_w,
        .training = x->program->training && set->phase == TV_PHASE_TRAIN,
    };
    if (!decode && !sizes.training && at_usual_sizes(x, &sizes)) {
        *out = x->usual;
        return NULL;
    }
    return tv_trials_run(a, x->program, &sizes, decode, out);
}

static const tv_err *lower(tv_arena *a, const program_spec *x, const tv_setting *set,
                           const tv_trials *t, tv_lower *l, tv_graph **graph)
{
    *l = (tv_lower){.a = x->scratch,
                    .keep = a,
                    .program = x->program,
                    .t = t,
                    .set = set,
                    .kv_width = x->kv_width};
    open_recorded(l);
    TV_TRY(tv_lower_graph(l, graph));
    (*graph)->guessed_share = l->all_bytes > 0 ? l->guessed_bytes / l->all_bytes : 0;
    return NULL;
}

/* An error may lie in the scratch, so that it is given back only where there is none. */
static const tv_err *build(tv_arena *a, const tv_model *m, const tv_setting *set, tv_graph **graph)
{
    const program_spec *x = m->spec;
    const tv_mark mark = tv_arena_mark(x->scratch);
    tv_trials t;
    tv_lower l;
    const tv_err *failed = trials_for(x->scratch, x, set, &t);
    TV_TRY(check_sizes(a, x, set, failed ? NULL : t.run[0], failed));
    TV_TRY(lower(a, x, set, &t, &l, graph));
    tv_arena_rewind(x->scratch, mark);
    return NULL;
}

/* ---- the model ---- */

/* Elements that one more cached token adds to each input. */
static const tv_err *find_cache(tv_arena *a, program_spec *x)
{
    const tv_run *usual = x->usual.run[0];
    if (!usual->has_past || x->usual.scaled)
        return NULL;
    tv_trials t;
    const tv_run_sizes one = {.seq = 1};
    TV_TRY(tv_trials_run(x->scratch, x->program, &one, true, &t));
    if (t.n < 4)
        return NULL;
    double *width = tv_new(a, double, t.run[0]->n_inputs + 1);
    bool any = false;
    for (size_t i = 0; i < t.run[0]->n_inputs; i++) {
        const uint32_t v = t.run[0]->inputs[i];
        if (v == TV_NO_VALUE || !tv_dtype_of(t.run[0]->values[v].dtype)->is_float)
            continue;
        width[i] = tv_trials_elements(&t, v).c;
        any = any || width[i] > 0;
    }
    x->kv_width = any ? width : NULL;
    return NULL;
}

static void sizes_of(tv_model *m, program_spec *x)
{
    const tv_run *r = x->usual.run[0];
    x->seq = r->has_seq ? r->seq : 0;
    x->image_h = r->has_image ? r->image_h : 0;
    x->image_w = r->has_image ? r->image_w : 0;
    m->default_seq = (uint32_t)x->seq;
    m->image_h = (uint32_t)x->image_h;
    m->image_w = (uint32_t)x->image_w;
    m->image_c = r->has_image ? (uint32_t)r->image_c : 0;
    m->generates = x->kv_width != NULL;
}

typedef struct stored {
    double bytes;  /* of every weight */
    double packed; /* elements in integers that stand for numbers, and their bytes */
    double packed_bytes;
    double by_type[TV_DTYPE_COUNT];
    size_t folded; /* convolutions that hold a batch norm */
    double folded_params;
} stored;

static stored count_stored(const tv_lower *l)
{
    stored s = {0};
    for (size_t i = 0; i < l->program->n_values; i++) {
        const tv_value *v = &l->program->values[i];
        if (v->role == TV_VALUE_WEIGHT)
            s.bytes += (double)tv_value_elements(v) * tv_dtype_bytes(v->dtype);
    }
    for (size_t v = 0; v < l->run->n_values; v++) {
        const tv_lowered_param *p = &l->param[v];
        if (!p->parameter || !p->from)
            continue;
        s.by_type[p->from->dtype] += p->stored_bytes;
        if (!tv_dtype_of(p->from->dtype)->is_float) {
            s.packed += p->elements;
            s.packed_bytes += p->stored_bytes;
        }
    }
    for (size_t i = 0; i < l->items.n; i++)
        if (l->items.v[i].folded_norm) {
            s.folded++;
            s.folded_params += tv_lower_step(l, l->items.v[i].step)->u.conv.out_channels;
        }
    return s;
}

static tv_dtype most_of(const stored *s)
{
    tv_dtype best = TV_DTYPE_UNKNOWN;
    for (int t = 1; t < TV_DTYPE_COUNT; t++)
        if (s->by_type[t] > s->by_type[best])
            best = (tv_dtype)t;
    return best;
}

static void say_unknown(tv_arena *a, tv_model *m, const tv_lower *l)
{
    const tv_run *r = l->run;
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < r->n_unknown && i < 8; i++) {
        tv_puts(&b, i ? ", " : "");
        tv_put(&b, r->unknown[i].op);
    }
    if (r->n_unknown > 8)
        tv_puts(&b, ", ...");
    if (r->n_unknown)
        tv_family_warn(
            a, m,
            TV_TEXT(a, "program.unknown",
                    N_("unknown operators: {names}; {bytes} of the traffic and {flop} of the "
                       "FLOPs rest on them and are bounded by their tensors only"),
                    tv_arg_str("names", tv_buf_str(&b)),
                    tv_arg_num("bytes", TV_ARG_RATIO,
                               l->all_bytes > 0 ? l->guessed_bytes / l->all_bytes : 0),
                    tv_arg_num("flop", TV_ARG_RATIO,
                               l->all_flop > 0 ? l->guessed_flop / l->all_flop : 0)));
}

/* An output matrix of the token table's shape, turned: exporters store a tied one a second time. */
static void say_tied(tv_arena *a, tv_model *m, const tv_lower *l)
{
    double rows = 0, cols = 0;
    for (size_t i = 0; i < l->items.n; i++) {
        const tv_item *t = &l->items.v[i];
        const tv_step *s = tv_lower_step(l, t->step);
        if (t->kind != TV_ITEM_STEP || t->n_in < 2 || t->in[0] == TV_NO_VALUE)
            continue;
        const tv_shape *table = &l->run->values[t->in[0]].shape;
        if (s->kind == TV_STEP_GATHER && tv_lower_is_weight(l, t->in[0]) && table->rank == 2 &&
            (double)table->d[0] > rows) {
            rows = (double)table->d[0];
            cols = (double)table->d[1];
        }
        const bool turned = s->kind == TV_STEP_MATMUL && rows > 1024 &&
                            !(fabs(s->u.matmul.n - rows) > 0) && !(fabs(s->u.matmul.k - cols) > 0);
        const uint32_t w = turned ? t->in[1] : TV_NO_VALUE;
        if (!tv_lower_is_weight(l, w) || !tv_str_has(l->param[l->param_of[w]].name, TV_S("::")))
            continue;
        tv_family_warn(a, m,
                       TV_TEXT(a, "program.tied",
                               N_("the output matrix has the shape of the token table: where the "
                                  "two are one tensor, the model has {n} parameters less than the "
                                  "file"),
                               tv_arg_num("n", TV_ARG_COUNT, rows * cols)));
        return;
    }
}

static bool has_dropout(const tv_run *run)
{
    for (size_t i = 0; i < run->n_steps; i++)
        if (run->steps[i].kind == TV_STEP_DROPOUT && run->steps[i].u.dropout.p > 0)
            return true;
    return false;
}

static void say_lost(tv_arena *a, tv_model *m, const tv_lower *l, const stored *s)
{
    if (s->folded)
        tv_family_warn(a, m,
                       TV_TEXT(a, "program.folded",
                               N_("{n} batch norms were folded into their convolutions when this "
                                  "was exported: training counts them again, {params} parameters "
                                  "more than the file holds"),
                               tv_arg_num("n", TV_ARG_COUNT, (double)s->folded),
                               tv_arg_num("params", TV_ARG_COUNT, s->folded_params)));
    if (!l->program->training)
        tv_family_warn(
            a, m,
            has_dropout(l->run)
                ? TV_TEXT0("program.training-dropout",
                           N_("an exported graph has no loss: what training adds follows from the "
                              "operators, dropout is what the graph has"))
                : TV_TEXT0("program.inference",
                           N_("an exported graph has no dropout and no loss: what training "
                              "adds follows from the operators, dropout is 0 unless stated")));
    const tv_text loss = tv_lower_loss_words(l);
    if (loss.msgid)
        tv_family_warn(a, m, loss);
    if (l->run->has_seq && !m->generates && l->run->n_outputs && !l->program->training)
        tv_family_warn(a, m,
                       TV_TEXT0("program.no-cache",
                                N_("the graph has no cache of keys and values: it is judged as one "
                                   "pass over the whole sequence")));
    if (l->t->scaled)
        tv_family_warn(a, m,
                       TV_TEXT(a, "program.batch",
                               N_("the graph is made for a batch of {n}; other batches are "
                                  "counted in proportion"),
                               tv_arg_num("n", TV_ARG_COUNT, l->t->batch[0])));
}

static void take_stored(tv_model *m, const tv_source *src, const stored *s)
{
    m->stored = most_of(s);
    m->stored_bytes = src->tensor_bytes > 0 ? src->tensor_bytes : s->bytes;
    m->stored_exact = m->stored_bytes > 0;
    if (s->packed > 0 && m->stored != TV_DTYPE_UNKNOWN && !tv_dtype_of(m->stored)->is_float)
        m->quant = (tv_quant){
            .method = tv_str_of(tv_dtype_of(m->stored)->name),
            .dtype = m->stored,
            .bytes_per_weight = s->packed_bytes / s->packed,
        };
}

/* Layers of the kind that runs most often, as far as there is one. */
static double layers_of(const tv_graph *g)
{
    double body = 0;
    for (size_t i = 0; i < g->n_order; i++)
        body += g->blocks[g->order[i]].stage == TV_STAGE_BODY;
    return body;
}

static const tv_err *describe(tv_arena *a, const tv_source *src, program_spec *x, tv_model *m)
{
    const tv_setting set = tv_plain_setting();
    tv_lower l;
    tv_graph *g = NULL;
    TV_TRY(lower(a, x, &set, &x->usual, &l, &g));
    const stored s = count_stored(&l);
    m->layers = layers_of(g);
    m->heads = m->kv_heads = g->heads;
    for (size_t i = 0; i < l.run->n_warnings; i++)
        tv_family_warn(a, m, l.run->warnings[i]);
    say_unknown(a, m, &l);
    say_lost(a, m, &l, &s);
    say_tied(a, m, &l);
    TV_TRY(tv_count_params(a, m, src));
    take_stored(m, src, &s);
    return NULL;
}

/* Lengths to try where the usual one does not fit the program and nobody stated one: CLIP's 77
 * tokens, short windows, a second of sound at 16 kHz. */
static const tv_err *first_that_fits(tv_arena *a, const tv_program *p, tv_trials *out)
{
    static const double lengths[] = {77, 64, 16, 512, 16000, 160000};
    tv_run_sizes sizes = {0};
    const tv_err *err = tv_trials_run(a, p, &sizes, false, out);
    for (size_t i = 0; err && i < sizeof lengths / sizeof *lengths; i++) {
        sizes.seq = lengths[i];
        if (!tv_trials_run(a, p, &sizes, false, out))
            return NULL;
    }
    return err;
}

static unsigned claims(const tv_source *s)
{
    return s->kind == TV_SOURCE_PROGRAM && s->program && s->program->main ? 100 : 0;
}

static const tv_err *make(tv_arena *a, const tv_source *s, tv_model *m)
{
    program_spec *x = tv_new(a, program_spec, 1);
    x->program = s->program;
    x->scratch = tv_arena_child(a, TV_LIMIT_ARENA_BYTES);
    const tv_err *err = first_that_fits(a, s->program, &x->usual);
    if (!err)
        err = find_cache(a, x);
    if (err)
        return tv_while(a, err,
                        TV_TEXT(a, "program.while", N_("running the graph of {name}"),
                                tv_arg_str("name", m->name)));
    m->spec = x;
    m->build = build;
    sizes_of(m, x);
    return describe(a, s, x, m);
}

extern const tv_family tv_family_traced;
const tv_family tv_family_traced = {
    .name = "program",
    .summary = N_("graphs: ONNX, Paddle and exported or captured PyTorch programs"),
    .claims = claims,
    .make = make,
};
