/* ONNX: classic learning (ai.onnx.ml) and text. Shapes, and steps that move data: such models take
 * no GPU to speak of. */
#include "program_onnx.h"

static const tv_err *put(tv_running *r, const tv_node *n, size_t i, tv_dtype dtype,
                         const tv_shape *shape)
{
    uint32_t y = tv_run_make(r, dtype, shape);
    TV_TRY(tv_rule_route(r, tv_opset_operands(r, n), n->n_inputs, &y, 1));
    tv_run_out(r, n, i, y);
    return NULL;
}

/* One result per element. */
static const tv_err *same(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_dtype dtype = rule->arg ? (tv_dtype)rule->arg : tv_run_at(r, x)->dtype;
    return put(r, n, 0, dtype, tv_run_shape(r, x));
}

static size_t list_length(const tv_node *n, const char *name);

/* The type of the values that keys are mapped to. */
static const tv_err *labels(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const tv_attr *tensor = tv_node_attr(n, "values_tensor");
    tv_dtype dtype = list_length(n, "values_floats")    ? TV_F32
                     : list_length(n, "values_strings") ? TV_DTYPE_UNKNOWN
                                                        : TV_I64;
    if (tensor && tensor->kind == TV_ATTR_VALUE)
        dtype = tv_run_at(r, tv_run_of(r, tensor->u.value))->dtype;
    return put(r, n, 0, dtype, tv_run_shape(r, x));
}

static size_t list_length(const tv_node *n, const char *name)
{
    const tv_attr *a = tv_node_attr(n, name);
    bool list =
        a && (a->kind == TV_ATTR_INTS || a->kind == TV_ATTR_STRINGS || a->kind == TV_ATTR_FLOATS);
    return list ? a->n : 0;
}

static int64_t samples(const tv_shape *s)
{
    return s->rank > 1 ? s->d[0] : 1;
}

static size_t classes_of(const tv_node *n)
{
    static const char *const names[] = {"classlabels_strings", "classlabels_ints",
                                        "classlabels_int64s", "class_ids"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (list_length(n, names[i]))
            return list_length(n, names[i]);
    return 2;
}

/* A label and scores per sample. */
static const tv_err *classifier(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    int64_t rows = samples(tv_run_shape(r, x));
    bool text = list_length(n, "classlabels_strings") > 0;
    tv_shape labels = tv_shape_of(1, &rows);
    tv_shape scores = tv_shape_of(2, (int64_t[]){rows, (int64_t)classes_of(n)});
    TV_TRY(put(r, n, 0, text ? TV_DTYPE_UNKNOWN : TV_I64, &labels));
    return put(r, n, 1, TV_F32, &scores);
}

static const tv_err *regressor(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    int64_t targets = tv_node_int(n, "targets", tv_node_int(n, "n_targets", 1));
    tv_shape shape = tv_shape_of(2, (int64_t[]){samples(tv_run_shape(r, x)), targets});
    return put(r, n, 0, TV_F32, &shape);
}

/* [samples, features of all operands]. */
static const tv_err *vectorizer(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    const int64_t *widths = NULL;
    size_t count = tv_node_ints(n, "inputdimensions", &widths);
    int64_t width = 0;
    for (size_t i = 0; i < n->n_inputs; i++) {
        uint32_t part = tv_run_in(r, n, i);
        if (part == TV_NO_VALUE)
            continue;
        const tv_shape *s = tv_run_shape(r, part);
        int64_t own = i < count ? tv_shape_times(widths[i], 1) : s->rank ? s->d[s->rank - 1] : 1;
        width += own > 0 && own < ((int64_t)1 << 40) ? own : 0;
    }
    tv_shape shape = tv_shape_of(2, (int64_t[]){samples(tv_run_shape(r, x)), width});
    return put(r, n, 0, TV_F32, &shape);
}

static const tv_err *one_hot(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    size_t classes = list_length(n, "cats_int64s") + list_length(n, "cats_strings");
    tv_shape shape = *tv_run_shape(r, x);
    if (!tv_shape_push(&shape, (int64_t)classes))
        return tv_run_unknown(r, n);
    return put(r, n, 0, TV_F32, &shape);
}

/* Chosen columns. */
static const tv_err *extractor(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    uint32_t which = tv_run_in(r, n, 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, which));
    tv_shape shape = *tv_run_shape(r, x);
    if (!shape.rank)
        return tv_run_unknown(r, n);
    int64_t count = tv_shape_count(tv_run_shape(r, which));
    shape.d[shape.rank - 1] = count;
    if (shape.rank == 1)
        shape = tv_shape_of(2, (int64_t[]){1, count});
    return put(r, n, 0, tv_run_at(r, x)->dtype, &shape);
}

/* A map per sample: no tensor; its scores stand for it. */
static const tv_err *zip_map(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_view(r, x, tv_run_shape(r, x), &y));
    return tv_opset_done(r, n, tv_run_make_list(r, TV_F32, &y, 1));
}

/* Sizes that the vocabulary and the texts decide. */
static const tv_err *guess_text(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_shape shape = *tv_run_shape(r, x);
    const int64_t *places = NULL;
    size_t count = tv_node_ints(n, "ngram_indexes", &places);
    int64_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = places[i] > most && places[i] < ((int64_t)1 << 40) ? places[i] : most;
    if (count && shape.rank)
        shape.d[shape.rank - 1] = most + 1;
    tv_dtype types[] = {(tv_dtype)rule->arg, TV_I64};
    return tv_opset_guess(r, n, types, (tv_shape[]){shape, shape}, n->n_outputs > 1 ? 2 : 1);
}

static const tv_err *dictionary(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    size_t words = list_length(n, "string_vocabulary") + list_length(n, "int64_vocabulary");
    tv_shape shape = tv_shape_of(2, (int64_t[]){1, (int64_t)words});
    return tv_opset_guess(r, n, (tv_dtype[]){TV_F32}, &shape, 1);
}

static const tv_err *trees(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t x = tv_run_in(r, n, 0);
    TV_TRY(tv_run_need(r, x));
    tv_shape shape =
        tv_shape_of(2, (int64_t[]){samples(tv_run_shape(r, x)), tv_node_int(n, "n_targets", 1)});
    return put(r, n, 0, tv_run_at(r, x)->dtype, &shape);
}

static const tv_rule ml[] = {
    {"ArrayFeatureExtractor", extractor, 0},
    {"Binarizer", same, 0},
    {"CastMap", dictionary, 0},
    {"CategoryMapper", same, TV_I64},
    {"DictVectorizer", dictionary, 0},
    {"FeatureVectorizer", vectorizer, 0},
    {"Imputer", same, 0},
    {"LabelEncoder", labels, 0},
    {"LinearClassifier", classifier, 0},
    {"LinearRegressor", regressor, 0},
    {"Normalizer", same, TV_F32},
    {"OneHotEncoder", one_hot, 0},
    {"SVMClassifier", classifier, 0},
    {"SVMRegressor", regressor, 0},
    {"Scaler", same, TV_F32},
    {"TreeEnsemble", trees, 0},
    {"TreeEnsembleClassifier", classifier, 0},
    {"TreeEnsembleRegressor", regressor, 0},
    {"ZipMap", zip_map, 0},
};

const tv_rule_table tv_rules_onnx_ml = {TV_DIALECT_ONNX, "ai.onnx.ml", ml, sizeof ml / sizeof *ml};

/* ---- steps of training (ai.onnx.preview.training) ---- */

/* R, T, then groups of as many tensors: X, gradients, states; out come X and the states. */
static const tv_err *optimizer(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    size_t groups = (size_t)rule->arg + 1;
    size_t each = n->n_inputs > 2 ? (n->n_inputs - 2) / groups : 0;
    for (size_t i = 0; i < n->n_outputs && each; i++) {
        size_t group = i / each ? i / each + 1 : 0;
        uint32_t x = tv_run_in(r, n, 2 + group * each + i % each);
        TV_TRY(tv_run_need(r, x));
        TV_TRY(put(r, n, i, tv_run_at(r, x)->dtype, tv_run_shape(r, x)));
    }
    return NULL;
}

static const tv_rule training[] = {
    {"Adagrad", optimizer, 2},
    {"Adam", optimizer, 3},
    {"Momentum", optimizer, 2},
};

const tv_rule_table tv_rules_onnx_training = {TV_DIALECT_ONNX, "ai.onnx.preview.training", training,
                                              sizeof training / sizeof *training};

/* ---- text ---- */

static const tv_err *concat_text(tv_running *r, const tv_node *n, const tv_rule *rule)
{
    (void)rule;
    uint32_t y = TV_NO_VALUE;
    TV_TRY(tv_rule_fn2(r, (tv_fn2_call){.fn = TV_FN2_ADD}, tv_run_in(r, n, 0), tv_run_in(r, n, 1),
                       &y));
    return tv_opset_done(r, n, y);
}

static const tv_rule text[] = {
    {"RegexFullMatch", same, TV_BOOL},
    {"StringConcat", concat_text, 0},
    {"StringNormalizer", guess_text, TV_DTYPE_UNKNOWN},
    {"StringSplit", guess_text, TV_DTYPE_UNKNOWN},
    {"TfIdfVectorizer", guess_text, TV_F32},
};

const tv_rule_table tv_rules_onnx_text = {TV_DIALECT_ONNX, "", text, sizeof text / sizeof *text};
