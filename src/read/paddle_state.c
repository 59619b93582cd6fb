/* Paddle's state dicts (.pdparams, .pdopt): a pickle of NumPy arrays by name, in dicts that may
 * stand within each other. Nothing is executed: an array is told by the names of what would be
 * called. Under protocol 2 the bytes are text, one character for each.
 * Layout: Paddle, python/paddle/framework/io.py and io_utils.py; numpy.ndarray.__reduce__. */
#include "gather.h"

#include <string.h>

#include "codec/pickle.h"

/* Dicts within dicts: a checkpoint of model and optimizer has three. Parts of large arrays have
 * 2^30 bytes each. */
enum { most_depth = 8, most_parts = 4096 };

#define NAME_TABLE TV_S("StructuredToParameterName@@")
#define BIG_ARRAYS "UnpackBigParamInfor@@"

typedef struct state {
    tv_gather *g;
    tv_str path;
    tv_bytes_view bytes;
    uint32_t file;
    bool *seen; /* by the ids of nodes: dicts that were walked, arrays that were listed */
    size_t parts;
} state;

static const tv_err *broken(const state *s, const char *id, const char *msgid,
                            const tv_pickle_node *at)
{
    return tv_broken(s->g, s->path, id, msgid, at ? at->offset : 0);
}

/* ---- arrays ---- */

static bool is_array(const tv_pickle_node *node)
{
    return tv_str_ends(tv_pickle_class(node), TV_S("core.multiarray._reconstruct"));
}

/* 'f4', '<f4', 'b1' ...; Paddle keeps bfloat16 as 16 plain bits. */
static tv_dtype element_type(tv_str name)
{
    static const struct {
        const char *name;
        tv_dtype type;
    } names[] = {
        {"f2", TV_F16}, {"f4", TV_F32},  {"f8", TV_F64}, {"i1", TV_I8},    {"i2", TV_I16},
        {"i4", TV_I32}, {"i8", TV_I64},  {"u1", TV_U8},  {"u2", TV_BF16},  {"u4", TV_U32},
        {"u8", TV_U64}, {"b1", TV_BOOL}, {"c8", TV_C64}, {"c16", TV_C128},
    };
    if (name.n && (name.p[0] == '<' || name.p[0] == '|' || name.p[0] == '='))
        name = tv_str_drop(name, 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tv_str_is(name, names[i].name))
            return names[i].type;
    return TV_DTYPE_UNKNOWN;
}

static const tv_err *take_shape(const state *s, const tv_pickle_node *shape, tv_tensor *t)
{
    if (!shape || shape->kind != TV_PICKLE_TUPLE)
        return broken(s, "state.no-shape", N_("an array has no shape"), shape);
    if (shape->n > TV_LIMIT_RANK)
        return tv_fail_at(s->g->a, TV_LIMIT,
                          TV_TEXT0("program.rank", N_("a tensor has too many dimensions")), s->path,
                          shape->offset);
    t->rank = shape->n;
    t->elements = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        const int64_t dim = tv_pickle_int(tv_pickle_at(shape, i), -1);
        if (dim < 0 || __builtin_mul_overflow(t->elements, (uint64_t)dim, &t->elements))
            return broken(s, "safetensors.shape-overflow", N_("a shape is larger than any file"),
                          shape);
        t->dims[i] = (uint64_t)dim;
    }
    return NULL;
}

/* The stored bytes: as they are, or as a text of one character each, which takes one or two bytes
 * in the file. */
static const tv_err *take_data(const state *s, const tv_pickle_node *data, tv_tensor *t)
{
    const tv_pickle_node *text = tv_pickle_at(tv_pickle_args(data, "_codecs.encode"), 0);
    const bool raw = data && data->kind == TV_PICKLE_BYTES;
    const tv_str held = raw ? data->s : tv_pickle_str(text ? text : data);
    const tv_u64_read bytes = tv_dtype_tensor_bytes(t->dtype, t->elements, t->elements);
    if (!raw && !text && !(data && data->kind == TV_PICKLE_STR))
        return broken(s, "state.no-data", N_("an array has no bytes"), data);
    t->bytes = t->dtype == TV_DTYPE_UNKNOWN ? held.n : bytes.v;
    if (!bytes.ok && t->dtype != TV_DTYPE_UNKNOWN)
        return broken(s, "safetensors.shape-overflow", N_("a shape is larger than any file"), data);
    if (raw ? held.n != t->bytes : held.n < t->bytes || held.n / 2 > t->bytes)
        return broken(s, "state.size", N_("an array's bytes do not fit its shape and type"), data);
    t->offset = held.n ? (uint64_t)((const unsigned char *)held.p - s->bytes.p) : 0;
    return NULL;
}

/* _reconstruct(...), then the state (1, shape, dtype, fortran, data). */
static const tv_err *read_array(const state *s, const tv_pickle_node *node, tv_tensor *t)
{
    const tv_pickle_node *parts = node->object->state;
    const tv_pickle_node *type = tv_pickle_args(tv_pickle_at(parts, 2), "numpy.dtype");
    const tv_str name = tv_pickle_str(tv_pickle_at(type, 0));
    t->file = s->file;
    t->dtype = element_type(name);
    if (name.n == 0)
        return broken(s, "state.no-type", N_("an array has no element type"), node);
    if (t->dtype == TV_DTYPE_UNKNOWN)
        t->dtype_text = name;
    TV_TRY(take_shape(s, tv_pickle_at(parts, 1), t));
    return take_data(s, tv_pickle_at(parts, 4), t);
}

static const tv_err *list_array(state *s, tv_str name, const tv_pickle_node *node)
{
    tv_tensor t = {.name = name};
    TV_TRY(read_array(s, node, &t));
    *tv_push(s->g->a, &s->g->tensors) = t;
    return NULL;
}

/* ---- arrays above 4 GiB under protocol 2 and 3 ---- */

/* {"slices": [names of the parts], "OriginShape": (...)}: one array of that shape. */
static const tv_err *join_parts(state *s, const tv_pickle_node *dict, tv_str name,
                                const tv_pickle_node *info)
{
    const tv_pickle_node *names = tv_pickle_get(info, "slices");
    tv_tensor whole = {.name = name, .file = s->file};
    for (uint32_t i = 0; names && i < names->n; i++) {
        const tv_str key = tv_pickle_str(tv_pickle_at(names, i));
        const tv_pickle_node *part = tv_pickle_get(dict, tv_cstr(s->g->a, key));
        tv_tensor t = {.name = key};
        if (s->parts++ >= most_parts || !is_array(part) || s->seen[part->id])
            return broken(s, "state.parts", N_("the parts of a large array are not there"), info);
        TV_TRY(read_array(s, part, &t));
        s->seen[part->id] = true;
        whole.dtype = t.dtype;
        whole.dtype_text = t.dtype_text;
        whole.bytes += t.bytes;
        whole.offset = i ? whole.offset : t.offset;
    }
    TV_TRY(take_shape(s, tv_pickle_get(info, "OriginShape"), &whole));
    *tv_push(s->g->a, &s->g->tensors) = whole;
    return NULL;
}

static const tv_err *join_all(state *s, const tv_pickle_node *dict)
{
    const tv_pickle_node *infos = tv_pickle_pairs(tv_pickle_get(dict, BIG_ARRAYS));
    for (uint32_t i = 0; infos && i + 1 < infos->n; i += 2)
        TV_TRY(
            join_parts(s, dict, tv_pickle_str(tv_pickle_at(infos, i)), tv_pickle_at(infos, i + 1)));
    return NULL;
}

/* ---- dicts ---- */

/* The value itself, or the second of (name of the parameter, value). */
static const tv_pickle_node *value_of(const tv_pickle_node *node)
{
    const bool pair = node && node->kind == TV_PICKLE_TUPLE && node->n == 2 &&
                      tv_pickle_str(tv_pickle_at(node, 0)).n;
    return pair ? tv_pickle_at(node, 1) : node;
}

static tv_str name_in(const state *s, tv_str folder, tv_str key)
{
    if (folder.n == 0)
        return key;
    return tv_str_join(s->g->a, tv_str_join(s->g->a, folder, TV_S(".")), key);
}

static const tv_err *walk(state *s, const tv_pickle_node *node, tv_str folder, unsigned depth)
{
    const tv_pickle_node *dict = tv_pickle_pairs(node);
    if (!dict || s->seen[dict->id] || depth > most_depth)
        return NULL;
    s->seen[dict->id] = true;
    TV_TRY(join_all(s, node));
    for (uint32_t i = 0; i + 1 < dict->n; i += 2) {
        const tv_str key = tv_pickle_str(tv_pickle_at(dict, i));
        const tv_pickle_node *v = value_of(tv_pickle_at(dict, i + 1));
        if (!v || tv_str_eq(key, NAME_TABLE) || tv_str_is(key, BIG_ARRAYS))
            continue;
        if (is_array(v) && !s->seen[v->id]) {
            s->seen[v->id] = true;
            TV_TRY(list_array(s, name_in(s, folder, key), v));
        } else if (tv_pickle_pairs(v)) {
            TV_TRY(walk(s, v, name_in(s, folder, key), depth + 1));
        }
    }
    return NULL;
}

static const tv_err *no_arrays(const state *s)
{
    tv_err *e = tv_fail_at(s->g->a, TV_UNSUPPORTED,
                           TV_TEXT0("state.none", N_("the pickle holds no NumPy arrays by name")),
                           s->path, 0);
    return tv_hint(e, TV_TEXT0("state.none",
                               N_("Paddle's state dicts are read: paddle.save(layer.state_dict(), "
                                  "path).")));
}

const tv_err *tv_read_paddle_state(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    state s = {.g = g, .path = tv_str_copy(g->a, path), .bytes = bytes};
    tv_pickle p = {.file = s.path, .bytes = bytes};
    const tv_pickle_node *root = NULL;
    TV_TRY(tv_pickle_next(g->a, &p, &root));
    s.file = tv_gather_file(g, path, bytes);
    s.seen = tv_new(g->a, bool, p.n_nodes + 1);
    const size_t before = g->tensors.n;
    TV_TRY(walk(&s, root, (tv_str){0}, 0));
    if (g->tensors.n == before)
        return no_arrays(&s);
    g->source.paddle = true;
    if (g->source.kind == TV_SOURCE_NONE)
        g->source.kind = TV_SOURCE_CHECKPOINT;
    if (tv_str_ends(path, TV_S(".pdopt")))
        tv_gather_warn(
            g, TV_TEXT0("state.optimizer", N_("the state of an optimizer, not a model's weights")));
    return NULL;
}

/* A file that was named: the configuration beside it says what the weights are. */
static const tv_err *read(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    static const char *const names[] = {"config.json", "model_config.json", "ernie_config.json"};
    const tv_str folder = tv_path_folder(path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tv_str config = tv_path_join(g->a, folder, tv_str_of(names[i]));
        if (!tv_str_starts(tv_path_name(path), TV_S("model")) || !tv_file_stat(g->a, config).exists)
            continue;
        TV_TRY(tv_read_config(g, config));
        break;
    }
    return tv_read_paddle_state(g, path, bytes);
}

static bool probe(tv_str name, tv_bytes_view bytes)
{
    (void)bytes;
    return tv_str_ends(name, TV_S(".pdparams")) || tv_str_ends(name, TV_S(".pdopt"));
}

extern const tv_format tv_format_paddle_state;
const tv_format tv_format_paddle_state = {
    .name = "pdparams",
    .summary = N_("Paddle state dict"),
    .probe = probe,
    .read = read,
};
