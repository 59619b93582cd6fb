/* The main graph's inputs at a run's sizes: which axis is the batch, the sequence, the height ...
 * told from symbols, names, rank and type, and what each then measures. Says what it assumed. */
#include "program_running.h"

typedef enum axis_kind {
    AXIS_OTHER, /* nothing is known: 1 where it is not stated */
    AXIS_BATCH,
    AXIS_SEQ,
    AXIS_PAST, /* filled part of a key-value cache */
    AXIS_CHANNELS,
    AXIS_DEPTH,
    AXIS_HEIGHT,
    AXIS_WIDTH,
    AXIS_KIND_COUNT,
} axis_kind;

typedef struct axes {
    axis_kind v[TV_LIMIT_RANK];
    bool image;
} axes;

/* What the program itself says of each kind; 0: nothing. */
typedef struct sizes {
    double stated[AXIS_KIND_COUNT];
    double v[AXIS_KIND_COUNT];
    bool some[AXIS_KIND_COUNT]; /* an input has such an axis */
    bool signal;                /* the sequence is one of samples, not of tokens */
    bool open[AXIS_KIND_COUNT]; /* and leaves its size open */
} sizes;

/* ---- names ---- */

static bool has(tv_str s, const char *part)
{
    return tv_str_has(s, tv_str_of(part));
}

static bool has_any(tv_str s, const char *const *parts)
{
    for (; *parts; parts++)
        if (has(s, *parts))
            return true;
    return false;
}

static axis_kind kind_of_name(tv_arena *a, tv_str symbol)
{
    static const char *const sequence[] = {"seq",   "len",    "time",  "token",
                                           "frame", "sample", "audio", NULL};
    static const struct {
        const char *name;
        axis_kind kind;
    } words[] = {
        {"n", AXIS_BATCH}, {"b", AXIS_BATCH},    {"bs", AXIS_BATCH}, {"bsz", AXIS_BATCH},
        {"t", AXIS_SEQ},   {"s", AXIS_SEQ},      {"l", AXIS_SEQ},    {"h", AXIS_HEIGHT},
        {"w", AXIS_WIDTH}, {"c", AXIS_CHANNELS}, {"d", AXIS_DEPTH},
    };
    tv_str s = tv_str_lower(a, symbol);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_str_is(s, words[i].name))
            return words[i].kind;
    if (has(s, "past") && !has(s, "total"))
        return AXIS_PAST;
    if (has(s, "batch"))
        return AXIS_BATCH;
    if (has(s, "height"))
        return AXIS_HEIGHT;
    if (has(s, "width"))
        return AXIS_WIDTH;
    if (has(s, "channel"))
        return AXIS_CHANNELS;
    return has_any(s, sequence) ? AXIS_SEQ : AXIS_OTHER;
}

static bool is_whole(tv_dtype t)
{
    return t == TV_I64 || t == TV_I32 || t == TV_I16 || t == TV_I8 || t == TV_U8 || t == TV_BOOL ||
           t == TV_U64 || t == TV_U32 || t == TV_U16;
}

/* ---- positions ---- */

static int64_t stated(const tv_value *v, uint32_t axis)
{
    return v->dims[axis].size;
}

static bool looks_last(const tv_value *v)
{
    int64_t last = stated(v, v->rank - 1);
    int64_t first = stated(v, 1);
    return last >= 1 && last <= 4 && (first < 0 || first > 4);
}

static void place_image(const tv_value *v, axes *x)
{
    uint32_t spatial = v->rank - 2;
    uint32_t first = looks_last(v) ? 1 : 2;
    x->v[0] = AXIS_BATCH;
    x->v[looks_last(v) ? v->rank - 1 : 1] = AXIS_CHANNELS;
    x->v[first + spatial - 2] = AXIS_HEIGHT;
    x->v[first + spatial - 1] = AXIS_WIDTH;
    if (spatial == 3)
        x->v[first] = AXIS_DEPTH;
    x->image = true;
}

/* [3, height, width] without a batch. */
static bool is_bare_image(const tv_value *v)
{
    int64_t c = stated(v, 0);
    bool open = stated(v, 1) < 0 || stated(v, 1) == stated(v, 2);
    return (c == 3 || c == 1) && open && !is_whole(v->dtype) && stated(v, 1) != 1;
}

static void place_three(const tv_value *v, axes *x)
{
    x->v[0] = AXIS_BATCH;
    x->v[1] = stated(v, 1) < 0 ? AXIS_SEQ : AXIS_OTHER;
    x->v[2] = stated(v, 2) < 0 ? AXIS_SEQ : AXIS_OTHER;
    /* [batch, tokens, width] is more common than [batch, channels, time] where nothing is said. */
    if (x->v[1] == AXIS_SEQ && x->v[2] == AXIS_SEQ)
        x->v[2] = AXIS_CHANNELS;
    if (!is_bare_image(v))
        return;
    *x = (axes){.v = {AXIS_CHANNELS, AXIS_HEIGHT, AXIS_WIDTH}, .image = true};
}

static void place_cache(const tv_value *v, axes *x)
{
    x->v[0] = AXIS_BATCH;
    for (uint32_t i = 1; i < v->rank; i++)
        x->v[i] = stated(v, i) < 0 ? AXIS_PAST : AXIS_OTHER;
}

/* alone: the program reads nothing else; then a vector is a signal. */
static void place(tv_arena *a, const tv_value *v, bool alone, axes *x)
{
    static const char *const cache[] = {"past", "cache", "present", NULL};
    tv_str name = tv_str_lower(a, v->name);
    bool lengths = has(name, "len") || has(name, "size") || has(name, "scale");
    if (v->rank >= 3 && has_any(name, cache))
        place_cache(v, x);
    else if (v->rank == 1)
        x->v[0] = is_whole(v->dtype) || lengths || !alone ? AXIS_BATCH : AXIS_SEQ;
    else if (v->rank == 2) {
        x->v[0] = AXIS_BATCH;
        x->v[1] = stated(v, 1) < 0 || is_whole(v->dtype) ? AXIS_SEQ : AXIS_OTHER;
    } else if (v->rank == 3)
        place_three(v, x);
    else if (v->rank >= 4 && (has(name, "mask") || has(name, "bias"))) {
        x->v[0] = AXIS_BATCH;
        x->v[v->rank - 1] = x->v[v->rank - 2] = AXIS_SEQ;
    } else if (v->rank == 4 || v->rank == 5)
        place_image(v, x);
    else if (v->rank > 5)
        x->v[0] = AXIS_BATCH;
}

/* A symbol's own name says more than its place. */
static void rename_axes(tv_running *r, const tv_value *v, axes *x)
{
    for (uint32_t i = 0; i < v->rank; i++) {
        if (v->dims[i].size >= 0 || !tv_symbol_is_name(v->dims[i].symbol))
            continue;
        if (r->p->batch_symbol.n && tv_str_eq(v->dims[i].symbol, r->p->batch_symbol)) {
            x->v[i] = AXIS_BATCH;
            continue;
        }
        axis_kind kind = kind_of_name(r->a, v->dims[i].symbol);
        if (kind != AXIS_OTHER)
            x->v[i] = kind;
    }
}

/* ---- sizes ---- */

static const tv_symbol *symbol_of(const tv_program *p, tv_str name)
{
    for (size_t i = 0; i < p->n_symbols; i++)
        if (tv_str_eq(p->symbols[i].name, name))
            return &p->symbols[i];
    return NULL;
}

static void note_stated(const tv_running *r, const tv_value *v, const axes *x, sizes *s)
{
    for (uint32_t i = 0; i < v->rank; i++) {
        axis_kind kind = x->v[i];
        double size = (double)v->dims[i].size;
        if (v->dims[i].size < 0) {
            const tv_symbol *known = symbol_of(r->p, v->dims[i].symbol);
            size = known ? (double)known->example : v->usual ? (double)v->usual[i] : 0;
            s->open[kind] = true;
        }
        s->some[kind] = true;
        bool bare = v->rank <= 2 || (v->rank == 3 && v->dims[1].size == 1);
        s->signal = s->signal || (kind == AXIS_SEQ && bare && tv_dtype_of(v->dtype)->is_float);
        /* No size at all, rather than one that no axis can have. */
        size = size < 0x1p40 ? size : 0;
        /* A mask's or cache's 1 is no batch of one. */
        if (s->stated[kind] <= 0 && (x->image || v->rank > 1 || size > 1))
            s->stated[kind] = size;
    }
}

/* Sizes that nobody states: small tokens of what such models are made for. */
static double usual(const tv_running *r, const sizes *s, axis_kind kind)
{
    if (kind == AXIS_SEQ && r->plan.seq > 0)
        return r->plan.seq;
    if ((kind == AXIS_HEIGHT || kind == AXIS_WIDTH) && r->plan.image > 0)
        return r->plan.image;
    /* A second of sound */
    if (kind == AXIS_SEQ && s->signal)
        return 16000;
    static const double v[AXIS_KIND_COUNT] = {
        [AXIS_OTHER] = 1,    [AXIS_BATCH] = 1,  [AXIS_SEQ] = 128,    [AXIS_PAST] = 0,
        [AXIS_CHANNELS] = 3, [AXIS_DEPTH] = 16, [AXIS_HEIGHT] = 224, [AXIS_WIDTH] = 224,
    };
    bool latent = s->stated[AXIS_CHANNELS] > 3;
    return latent && (kind == AXIS_HEIGHT || kind == AXIS_WIDTH) ? 64 : v[kind];
}

static double asked_of(const tv_running *r, axis_kind kind)
{
    if (kind == AXIS_BATCH)
        return r->plan.ask_batch ? r->sizes->batch : 0;
    if (kind == AXIS_PAST)
        return r->sizes->past;
    if (kind == AXIS_SEQ)
        return r->plan.ask_seq ? r->sizes->seq : 0;
    if (!r->plan.ask_image)
        return 0;
    double w = r->sizes->image_w > 0 ? r->sizes->image_w : r->sizes->image_h;
    return kind == AXIS_HEIGHT ? r->sizes->image_h : kind == AXIS_WIDTH ? w : 0;
}

static double asked(const tv_running *r, axis_kind kind)
{
    double v = asked_of(r, kind);
    return v < 0x1p40 ? v : 0x1p40;
}

static void assume(tv_running *r, axis_kind kind, double v)
{
    r->assumed_seq = r->assumed_seq || kind == AXIS_SEQ;
    r->assumed_image = r->assumed_image || kind == AXIS_HEIGHT || kind == AXIS_WIDTH;
    static const char *const what[AXIS_KIND_COUNT] = {
        [AXIS_SEQ] = N_("sequence length"), [AXIS_CHANNELS] = N_("channels"),
        [AXIS_DEPTH] = N_("depth"),         [AXIS_HEIGHT] = N_("image height"),
        [AXIS_WIDTH] = N_("image width"),
    };
    if (what[kind])
        tv_run_warn(r, TV_TEXT(r->a, "program.assumed",
                               N_("the program leaves the {what} open: {v} is assumed"),
                               tv_arg_word("what", what[kind]), tv_arg_num("v", TV_ARG_COUNT, v)));
}

static void settle(tv_running *r, sizes *s)
{
    for (axis_kind kind = AXIS_OTHER; kind < AXIS_KIND_COUNT; kind++) {
        s->v[kind] = asked(r, kind);
        if (s->v[kind] <= 0 && kind != AXIS_OTHER && kind != AXIS_PAST)
            s->v[kind] = s->stated[kind];
        if (s->v[kind] > 0)
            continue;
        s->v[kind] = usual(r, s, kind);
        if (s->open[kind])
            assume(r, kind, s->v[kind]);
    }
    bool cached = asked(r, AXIS_PAST) > 0;
    if (!cached && s->stated[AXIS_PAST] > 0 && !s->open[AXIS_PAST])
        s->v[AXIS_PAST] = s->stated[AXIS_PAST];
    /* An open batch gives way to nothing: its example is no statement. */
    const bool fixed = s->stated[AXIS_BATCH] > 0 && !s->open[AXIS_BATCH];
    r->batch_stated = fixed ? s->stated[AXIS_BATCH] : s->v[AXIS_BATCH];
    r->batch = s->v[AXIS_BATCH];
}

static void say(tv_running *r, const sizes *s)
{
    tv_run *out = r->out;
    out->batch_stated = r->batch_stated;
    out->has_seq = s->some[AXIS_SEQ];
    out->has_past = s->some[AXIS_PAST];
    out->has_image = s->some[AXIS_HEIGHT];
    out->seq = out->has_seq ? s->v[AXIS_SEQ] : 0;
    out->image_h = out->has_image ? s->v[AXIS_HEIGHT] : 0;
    out->image_w = out->has_image ? s->v[AXIS_WIDTH] : 0;
    out->image_c = out->has_image ? s->v[AXIS_CHANNELS] : 0;
}

/* ---- values ---- */

/* The single symbol of an expression takes the number that brings the expression to `target`. */
static void solve(tv_running *r, tv_str expression, tv_str symbol, double target)
{
    double low = 0;
    double high = 1 << 24;
    while (low < high) {
        double middle = (double)(int64_t)((low + high) / 2);
        double v = 0;
        tv_symbols_set(r->a, &r->symbols, symbol, middle);
        if (!tv_symbols_eval(&r->symbols, expression, &v, NULL))
            return;
        if (v < target)
            low = middle + 1;
        else
            high = middle;
    }
    tv_symbols_set(r->a, &r->symbols, symbol, low);
}

static void bind_names(tv_running *r, const tv_value *v, const axes *x, const sizes *s)
{
    for (uint32_t i = 0; i < v->rank; i++) {
        tv_str name = v->dims[i].symbol;
        double known = 0;
        if (v->dims[i].size >= 0 || !tv_symbol_is_name(name) ||
            tv_symbols_get(&r->symbols, name, &known))
            continue;
        const tv_symbol *told = symbol_of(r->p, name);
        bool own = x->v[i] == AXIS_OTHER && told && told->example > 0;
        tv_symbols_set(r->a, &r->symbols, name, own ? (double)told->example : s->v[x->v[i]]);
    }
}

static void bind_expressions(tv_running *r, const tv_value *v, const axes *x, const sizes *s)
{
    for (uint32_t i = 0; i < v->rank; i++) {
        tv_str missing = {0};
        double known = 0;
        tv_str text = v->dims[i].symbol;
        if (v->dims[i].size >= 0 || !text.n || tv_symbol_is_name(text) ||
            tv_symbols_eval(&r->symbols, text, &known, &missing) || !missing.n)
            continue;
        solve(r, text, missing, s->v[x->v[i]]);
    }
}

/* A stated size gives way to the asked one where all inputs that state it mean the same. */
static int64_t size_at(tv_running *r, const tv_value *v, const axes *x, const sizes *s, uint32_t i)
{
    axis_kind kind = x->v[i];
    int64_t size = tv_run_dim(r, &v->dims[i]);
    if (size < 0)
        return (int64_t)s->v[kind];
    bool replaceable = v->dims[i].size > 0 && asked(r, kind) > 0;
    return replaceable && (double)size == s->stated[kind] ? (int64_t)s->v[kind] : size;
}

static void open_input(tv_running *r, uint32_t value, const axes *x, const sizes *s)
{
    const tv_value *v = &r->p->values[value];
    tv_shape shape = {.rank = v->rank};
    for (uint32_t i = 0; i < v->rank; i++)
        shape.d[i] = size_at(r, v, x, s, i);
    uint32_t made = tv_run_make(r, v->dtype, &shape);
    if (v->list)
        made = tv_run_make_list(r, v->dtype, &made, 1);
    if (!v->shaped) {
        r->unshaped = v;
        tv_run_guess(r, made);
        tv_run_warn(r, TV_TEXT(r->a, "program.unshaped",
                               N_("the input {name} states no shape: a single number is assumed"),
                               tv_arg_str("name", v->name)));
    }
    tv_run_bind(r, value, made);
}

static const tv_err *check_input(tv_running *r, uint32_t value)
{
    if (value >= r->p->n_values)
        return tv_run_fail(r, "program.input", N_("an input is no value of the program"));
    if (r->p->values[value].rank > TV_LIMIT_RANK)
        return TV_FAIL(r->a, TV_LIMIT, "program.rank", N_("{name} has more axes than {n}"),
                       tv_arg_str("name", r->p->values[value].name),
                       tv_arg_num("n", TV_ARG_COUNT, TV_LIMIT_RANK));
    return NULL;
}

const tv_err *tv_run_open_inputs(tv_running *r)
{
    const tv_body *b = r->p->main;
    axes *x = tv_new(r->a, axes, b->n_inputs ? b->n_inputs : 1);
    uint32_t *made = tv_new(r->a, uint32_t, b->n_inputs ? b->n_inputs : 1);
    sizes s = {0};
    for (size_t i = 0; i < b->n_inputs; i++) {
        TV_TRY(check_input(r, b->inputs[i]));
        const tv_value *v = &r->p->values[b->inputs[i]];
        place(r->a, v, b->n_inputs == 1, &x[i]);
        rename_axes(r, v, &x[i]);
        note_stated(r, v, &x[i], &s);
    }
    settle(r, &s);
    for (size_t i = 0; i < b->n_inputs; i++)
        bind_names(r, &r->p->values[b->inputs[i]], &x[i], &s);
    for (size_t i = 0; i < b->n_inputs; i++)
        bind_expressions(r, &r->p->values[b->inputs[i]], &x[i], &s);
    for (size_t i = 0; i < b->n_inputs; i++) {
        if (tv_run_of(r, b->inputs[i]) == TV_NO_VALUE)
            open_input(r, b->inputs[i], &x[i], &s);
        made[i] = tv_run_of(r, b->inputs[i]);
    }
    r->out->inputs = made;
    r->out->n_inputs = b->n_inputs;
    say(r, &s);
    return NULL;
}
