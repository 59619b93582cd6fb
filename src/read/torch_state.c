/* Tensors in a pickled object: which calls rebuild one, how state dicts, modules and anything else
 * nest, and which part of a checkpoint is the model. The rebuild
 * functions and the order of their arguments: torch/_utils.py, torch/_tensor.py (2.9). */
#include "torch.h"

typedef struct walk {
    tv_torch *t;
    tv_buf path;
    uint32_t group;
    unsigned depth;
} walk;

static const tv_err *visit(walk *w, const tv_pickle_node *x);

static const tv_err *wrong(tv_torch *t, const tv_pickle_node *x, const char *id, const char *msgid)
{
    return tv_broken(t->g, t->path, id, msgid, x ? x->offset : t->pickle.base);
}

/* ---- storages ---- */

static void index_storages(tv_torch *t, size_t n_slots)
{
    tv_torch_storages *list = &t->storages;
    list->n_slots = n_slots;
    list->slots = tv_new(t->g->a, uint32_t, n_slots);
    for (size_t i = 0; i < list->n; i++) {
        size_t at = tv_str_hash(list->v[i].key) & (n_slots - 1);
        while (list->slots[at])
            at = (at + 1) & (n_slots - 1);
        list->slots[at] = (uint32_t)(i + 1);
    }
}

tv_torch_storage *tv_torch_storage_of(tv_torch *t, tv_str key, bool *made)
{
    tv_torch_storages *list = &t->storages;
    if (2 * list->n >= list->n_slots)
        index_storages(t, list->n_slots ? 2 * list->n_slots : 64);
    size_t at = tv_str_hash(key) & (list->n_slots - 1);
    while (list->slots[at] && !tv_str_eq(list->v[list->slots[at] - 1].key, key))
        at = (at + 1) & (list->n_slots - 1);
    *made = list->slots[at] == 0;
    if (!*made)
        return &list->v[list->slots[at] - 1];
    tv_torch_storage *s = tv_push(t->g->a, list);
    list->slots[at] = (uint32_t)list->n;
    s->key = key;
    return s;
}

/* A storage's key is text in most files, a number in the oldest. */
static tv_str key_of(tv_torch *t, const tv_pickle_node *x)
{
    if (!x || x->kind != TV_PICKLE_INT)
        return tv_pickle_str(x);
    tv_buf b = tv_buf_in(t->g->a);
    tv_put_u64(&b, (uint64_t)x->i);
    return tv_buf_str(&b);
}

static bool storage_size(tv_torch_storage *s)
{
    const tv_dtype type = s->dtype ? s->dtype : TV_U8;
    const tv_u64_read bytes = tv_dtype_tensor_bytes(type, s->elements, s->elements);
    s->bytes = bytes.v;
    return bytes.ok;
}

/* ('storage', class, key, location, elements, view): see torch/serialization.py. */
static const tv_err *storage_of_id(tv_torch *t, const tv_pickle_node *id, uint32_t *index)
{
    bool made = false;
    const tv_pickle_node *kind = tv_pickle_at(id, 1), *count = tv_pickle_at(id, 4);
    const tv_str key = key_of(t, tv_pickle_at(id, 2));
    if (!tv_str_is(tv_pickle_str(tv_pickle_at(id, 0)), "storage") || key.n == 0 || !kind ||
        kind->kind != TV_PICKLE_GLOBAL || tv_pickle_int(count, -1) < 0)
        return wrong(t, id, "torch.storage", N_("a storage is not described as PyTorch does"));
    tv_torch_storage *s = tv_torch_storage_of(t, key, &made);
    *index = (uint32_t)(s - t->storages.v) + 1;
    if (!made)
        return NULL;
    (void)tv_torch_type_of_class(kind->s, &s->dtype, &s->dtype_text);
    s->elements = (uint64_t)count->i;
    if (!storage_size(s))
        return wrong(t, id, "torch.huge", N_("a tensor is larger than any file"));
    return t->find ? t->find(t, s, id->offset) : NULL;
}

/* A storage that was saved as a stream of its own within the pickle
 * (torch.storage._load_from_bytes): only its type is needed, its size is in the tensor. */
static const tv_err *storage_of_bytes(tv_torch *t, const tv_pickle_node *x, uint32_t *index)
{
    const tv_pickle_node *data = tv_pickle_at(x, 0), *root = NULL;
    if (!data || data->kind != TV_PICKLE_BYTES)
        return wrong(t, x, "torch.storage", N_("a storage is not described as PyTorch does"));
    tv_pickle inner = {.file = t->path,
                       .bytes = {(const unsigned char *)data->s.p, data->s.n},
                       .base = data->offset};
    for (size_t i = 0; i < 4; i++)
        TV_TRY(tv_pickle_next(t->g->a, &inner, &root));
    tv_buf key = tv_buf_in(t->g->a);
    tv_puts(&key, "bytes ");
    tv_put_u64(&key, data->offset);
    bool made = false;
    tv_torch_storage *s = tv_torch_storage_of(t, tv_buf_str(&key), &made);
    *index = (uint32_t)(s - t->storages.v) + 1;
    const tv_pickle_node *id = tv_pickle_at(root, 0), *kind = tv_pickle_at(id, 1);
    const int64_t n = tv_pickle_int(tv_pickle_at(id, 4), -1);
    if (!root || root->kind != TV_PICKLE_PERSISTENT || n < 0 || !kind ||
        kind->kind != TV_PICKLE_GLOBAL)
        return wrong(t, x, "torch.storage", N_("a storage is not described as PyTorch does"));
    (void)tv_torch_type_of_class(kind->s, &s->dtype, &s->dtype_text);
    s->elements = (uint64_t)n;
    return storage_size(s) && s->bytes <= data->s.n
               ? NULL
               : wrong(t, x, "torch.huge", N_("a tensor is larger than any file"));
}

static const tv_err *storage_of(tv_torch *t, const tv_pickle_node *x, uint32_t *index)
{
    const tv_pickle_node *bytes = tv_pickle_args(x, "torch.storage._load_from_bytes");
    if (bytes)
        return storage_of_bytes(t, bytes, index);
    /* TypedStorage(wrap_storage=...) around it in some writers */
    if (!x || x->kind != TV_PICKLE_PERSISTENT)
        return wrong(t, x, "torch.storage", N_("a storage is not described as PyTorch does"));
    return storage_of_id(t, x->items[0], index);
}

/* ---- a tensor ---- */

static const tv_err *read_dims(tv_torch *t, const tv_pickle_node *size, tv_tensor *x)
{
    x->elements = 1;
    if (!size || (size->kind != TV_PICKLE_TUPLE && size->kind != TV_PICKLE_LIST))
        return wrong(t, size, "torch.shape", N_("the shape of a tensor is no tuple of counts"));
    if (size->n > TV_LIMIT_RANK)
        return tv_fail_at(t->g->a, TV_LIMIT,
                          TV_TEXT0("safetensors.rank", N_("a tensor has too many dimensions")),
                          t->path, size->offset);
    for (uint32_t i = 0; i < size->n; i++) {
        const int64_t d = tv_pickle_int(size->items[i], -1);
        if (d < 0)
            return wrong(t, size, "torch.shape", N_("the shape of a tensor is no tuple of counts"));
        x->dims[x->rank++] = (uint64_t)d;
        if (__builtin_mul_overflow(x->elements, (uint64_t)d, &x->elements))
            return wrong(t, size, "torch.huge", N_("a tensor is larger than any file"));
    }
    return NULL;
}

/* Elements from the first to the last, both counted. */
static const tv_err *read_extent(tv_torch *t, const tv_pickle_node *stride, const tv_tensor *x,
                                 uint64_t *extent)
{
    *extent = x->elements ? 1 : 0;
    if (!stride || stride->n != x->rank || stride->kind != TV_PICKLE_TUPLE)
        return wrong(t, stride, "torch.strides",
                     N_("the strides of a tensor do not fit its shape"));
    for (uint32_t i = 0; x->elements && i < x->rank; i++) {
        const int64_t step = tv_pickle_int(stride->items[i], -1);
        uint64_t reach = 0;
        if (step < 0)
            return wrong(t, stride, "torch.strides",
                         N_("the strides of a tensor do not fit its shape"));
        if (__builtin_mul_overflow(x->dims[i] - 1, (uint64_t)step, &reach) ||
            __builtin_add_overflow(*extent, reach, extent))
            return wrong(t, stride, "torch.huge", N_("a tensor is larger than any file"));
    }
    return NULL;
}

/* Bytes of n elements of a storage's type; the type of an untyped one is the tensor's. */
static bool span_bytes(const tv_torch_leaf *leaf, uint64_t n, uint64_t *bytes)
{
    const tv_u64_read r = tv_dtype_tensor_bytes(leaf->t.dtype ? leaf->t.dtype : TV_U8, n, n);
    *bytes = r.v;
    return r.ok;
}

static const tv_err *place(tv_torch *t, const tv_pickle_node *x, uint64_t offset, uint64_t extent,
                           tv_torch_leaf *leaf)
{
    const tv_torch_storage *s = &t->storages.v[leaf->storage - 1];
    uint64_t last = 0, full = 0;
    if (__builtin_add_overflow(offset, extent, &last) || !span_bytes(leaf, offset, &leaf->begin) ||
        !span_bytes(leaf, last, &leaf->end) || !span_bytes(leaf, leaf->t.elements, &full))
        return wrong(t, x, "torch.huge", N_("a tensor is larger than any file"));
    if (leaf->t.elements && leaf->end > s->bytes)
        return wrong(t, x, "torch.beyond", N_("a tensor reaches beyond the end of its storage"));
    const uint64_t covered = leaf->end - leaf->begin;
    leaf->t.bytes = full < covered ? full : covered; /* a dimension of stride 0 takes nothing */
    leaf->t.offset = s->offset ? s->offset + leaf->begin : 0;
    return NULL;
}

static const tv_err *push_leaf(walk *w, const tv_torch_leaf *leaf)
{
    tv_torch *t = w->t;
    if (t->leaves.n == TV_LIMIT_TENSORS)
        return tv_fail(t->g->a, TV_LIMIT,
                       TV_TEXT0("read.too-many-tensors", N_("the model has too many tensors")));
    tv_torch_leaf *slot = tv_push(t->g->a, &t->leaves);
    *slot = *leaf;
    slot->group = w->group;
    slot->t.file = t->file;
    slot->t.name = tv_str_copy(t->g->a, w->path.n ? tv_buf_str(&w->path) : TV_S("tensor"));
    t->unnamed = t->unnamed || w->path.n == 0;
    return NULL;
}

static void take_type(tv_torch_leaf *leaf, tv_dtype type, tv_str text)
{
    leaf->t.dtype = type;
    leaf->t.dtype_text = type ? (tv_str){0} : text;
}

/* storage, offset, size, stride ...; dtype_at: of the untyped ones. */
static const tv_err *rebuild(walk *w, const tv_pickle_node *args, int dtype_at)
{
    tv_torch_leaf leaf = {0};
    uint64_t extent = 0;
    tv_torch *t = w->t;
    TV_TRY(storage_of(t, tv_pickle_at(args, 0), &leaf.storage));
    const tv_torch_storage *s = &t->storages.v[leaf.storage - 1];
    const tv_pickle_node *type = dtype_at ? tv_pickle_at(args, (size_t)dtype_at) : NULL;
    take_type(&leaf, s->dtype, s->dtype_text);
    if (type && type->kind == TV_PICKLE_GLOBAL)
        take_type(&leaf, tv_dtype_named(type->s), type->s);
    const int64_t offset = tv_pickle_int(tv_pickle_at(args, 1), -1);
    if (offset < 0)
        return wrong(t, args, "torch.shape", N_("the shape of a tensor is no tuple of counts"));
    TV_TRY(read_dims(t, tv_pickle_at(args, 2), &leaf.t));
    TV_TRY(read_extent(t, tv_pickle_at(args, 3), &leaf.t, &extent));
    TV_TRY(place(t, args, (uint64_t)offset, extent, &leaf));
    return push_leaf(w, &leaf);
}

static const tv_err *rebuild_plain(walk *w, const tv_pickle_node *args)
{
    return rebuild(w, args, 0);
}

static const tv_err *rebuild_v3(walk *w, const tv_pickle_node *args)
{
    return rebuild(w, args, 6);
}

/* No data: dtype and size alone (meta tensors), at the given arguments. */
static const tv_err *rebuild_empty(walk *w, const tv_pickle_node *args)
{
    tv_torch_leaf leaf = {0};
    const tv_pickle_node *type = tv_pickle_at(args, 0);
    if (type && type->kind == TV_PICKLE_GLOBAL)
        take_type(&leaf, tv_dtype_named(type->s), type->s);
    TV_TRY(read_dims(w->t, tv_pickle_at(args, 1), &leaf.t));
    if (!span_bytes(&leaf, leaf.t.elements, &leaf.t.bytes))
        return wrong(w->t, args, "torch.huge", N_("a tensor is larger than any file"));
    return push_leaf(w, &leaf);
}

static const tv_err *rebuild_inner(walk *w, const tv_pickle_node *args)
{
    return visit(w, tv_pickle_at(args, 0));
}

/* ---- paths ---- */

static size_t enter(walk *w, tv_str name)
{
    const size_t before = w->path.n;
    if (before && name.n)
        tv_putc(&w->path, '.');
    tv_put(&w->path, name);
    return before;
}

static void leave(walk *w, size_t before)
{
    w->path.n = before;
}

static const tv_err *visit_named(walk *w, tv_str name, const tv_pickle_node *x)
{
    const size_t before = enter(w, name);
    TV_TRY(visit(w, x));
    leave(w, before);
    return NULL;
}

/* Indices and values are tensors of their own. */
static const tv_err *rebuild_sparse(walk *w, const tv_pickle_node *args)
{
    static const char *const parts[2][3] = {{"indices", "values", NULL},
                                            {"crow_indices", "col_indices", "values"}};
    const tv_pickle_node *data = tv_pickle_at(args, 1);
    /* COO: indices, values, size ...; compressed: crow, col, values, size */
    const tv_pickle_node *third = tv_pickle_at(data, 2);
    const bool compressed = third && third->kind == TV_PICKLE_OBJECT;
    for (size_t i = 0; i < 3 && parts[compressed][i]; i++)
        TV_TRY(visit_named(w, tv_str_of(parts[compressed][i]), tv_pickle_at(data, i)));
    return NULL;
}

static const tv_err *rebuild_quantised(walk *w, const tv_pickle_node *args)
{
    TV_TRY(rebuild(w, args, 0));
    return visit_named(w, TV_S("quantizer"), tv_pickle_at(args, 4));
}

typedef const tv_err *rebuild_fn(walk *w, const tv_pickle_node *args);
static rebuild_fn *rebuild_of(tv_str name);

/* function, class, its arguments, state: subclasses that wrap other tensors keep them in there. */
static const tv_err *rebuild_typed(walk *w, const tv_pickle_node *args)
{
    const tv_pickle_node *inner = tv_pickle_at(args, 0);
    rebuild_fn *run = inner && inner->kind == TV_PICKLE_GLOBAL ? rebuild_of(inner->s) : NULL;
    if (run && run != rebuild_typed)
        return run(w, tv_pickle_at(args, 2));
    return visit(w, tv_pickle_at(args, 3));
}

static const tv_err *rebuild_nested(walk *w, const tv_pickle_node *args)
{
    static const char *const parts[] = {"buffer", "sizes", "strides", "offsets"};
    for (size_t i = 0; i < 4; i++)
        TV_TRY(visit_named(w, tv_str_of(parts[i]), tv_pickle_at(args, i)));
    return NULL;
}

static const struct {
    const char *name;
    rebuild_fn *run;
} rebuilds[] = {
    {"_rebuild_tensor", rebuild_plain},
    {"_rebuild_tensor_v2", rebuild_plain},
    {"_rebuild_tensor_v3", rebuild_v3},
    {"_rebuild_parameter", rebuild_inner},
    {"_rebuild_parameter_with_state", rebuild_inner},
    {"_rebuild_qtensor", rebuild_quantised},
    {"_rebuild_sparse_tensor", rebuild_sparse},
    {"_rebuild_sparse_csr_tensor", rebuild_sparse},
    {"_rebuild_meta_tensor_no_storage", rebuild_empty},
    {"_rebuild_device_tensor_from_numpy", rebuild_inner},
    {"_rebuild_device_tensor_from_cpu_tensor", rebuild_inner},
    {"_rebuild_xla_tensor", rebuild_inner},
    {"_rebuild_nested_tensor", rebuild_nested},
    {"_rebuild_from_type", rebuild_typed},
    {"_rebuild_from_type_v2", rebuild_typed},
};

static rebuild_fn *rebuild_of(tv_str name)
{
    if (!tv_str_starts(name, TV_S("torch.")))
        return NULL;
    for (size_t i = 0; i < sizeof rebuilds / sizeof *rebuilds; i++) {
        const tv_str own = tv_str_of(rebuilds[i].name);
        if (tv_str_ends(name, own) && name.p[name.n - own.n - 1] == '.')
            return rebuilds[i].run;
    }
    return NULL;
}

/* ---- NumPy arrays ---- */

/* dtype('f4', False, True): a kind and a width. */
static void take_numpy_type(tv_torch_leaf *leaf, const tv_pickle_node *x)
{
    static const struct {
        const char *code, *dtype;
    } codes[] = {{"f2", "float16"},   {"f4", "float32"},    {"f8", "float64"}, {"i1", "int8"},
                 {"i2", "int16"},     {"i4", "int32"},      {"i8", "int64"},   {"u1", "uint8"},
                 {"u2", "uint16"},    {"u4", "uint32"},     {"u8", "uint64"},  {"b1", "bool"},
                 {"c8", "complex64"}, {"c16", "complex128"}};
    const tv_str code = tv_pickle_str(tv_pickle_at(tv_pickle_args(x, "numpy.dtype"), 0));
    take_type(leaf, TV_DTYPE_UNKNOWN, code);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (tv_str_is(code, codes[i].code))
            take_type(leaf, tv_dtype_named(tv_str_of(codes[i].dtype)), code);
}

static bool is_array(const tv_pickle_node *x)
{
    const tv_str name = tv_pickle_class(x);
    return (tv_str_is(name, "numpy.core.multiarray._reconstruct") ||
            tv_str_is(name, "numpy._core.multiarray._reconstruct")) &&
           x->object->state && x->object->state->kind == TV_PICKLE_TUPLE;
}

/* State: version, shape, dtype, order, data. */
static const tv_err *visit_array(walk *w, const tv_pickle_node *x)
{
    tv_torch_leaf leaf = {0};
    const tv_pickle_node *state = x->object->state;
    take_numpy_type(&leaf, tv_pickle_at(state, 2));
    if (!leaf.t.dtype)
        return NULL; /* arrays of objects or of texts */
    TV_TRY(read_dims(w->t, tv_pickle_at(state, 1), &leaf.t));
    if (!span_bytes(&leaf, leaf.t.elements, &leaf.t.bytes))
        return wrong(w->t, x, "torch.huge", N_("a tensor is larger than any file"));
    return push_leaf(w, &leaf);
}

/* ---- nesting ---- */

typedef struct entry {
    tv_str key;
    const tv_pickle_node *value;
} entry;

static tv_str key_text(tv_torch *t, const tv_pickle_node *x)
{
    if (x && x->kind == TV_PICKLE_INT)
        return key_of(t, x);
    const tv_str s = tv_pickle_str(x);
    return s.n ? s : TV_S("?");
}

/* Entry i of a dict, or of an ordered dict; Python 2 wrote those as a list of pairs. */
static bool entry_at(tv_torch *t, const tv_pickle_node *x, size_t i, entry *out)
{
    const tv_pickle_node *pairs = tv_pickle_pairs(x);
    if (pairs && 2 * i + 1 < pairs->n) {
        *out = (entry){key_text(t, pairs->items[2 * i]), pairs->items[2 * i + 1]};
        return true;
    }
    const tv_pickle_node *list =
        pairs ? NULL : tv_pickle_at(tv_pickle_args(x, "collections.OrderedDict"), 0);
    const tv_pickle_node *pair = tv_pickle_at(list, i);
    if (!pair || pair->n != 2)
        return false;
    *out = (entry){key_text(t, tv_pickle_at(pair, 0)), tv_pickle_at(pair, 1)};
    return true;
}

static bool is_dict(const tv_pickle_node *x)
{
    return tv_pickle_pairs(x) || tv_pickle_args(x, "collections.OrderedDict");
}

static bool is_module(const tv_pickle_node *x)
{
    const tv_pickle_node *state = x && x->kind == TV_PICKLE_OBJECT ? x->object->state : NULL;
    return tv_pickle_get(state, "_parameters") && tv_pickle_get(state, "_modules");
}

static const tv_err *visit_entries(walk *w, const tv_pickle_node *x)
{
    entry e;
    for (size_t i = 0; entry_at(w->t, x, i, &e); i++)
        TV_TRY(visit_named(w, e.key, e.value));
    return NULL;
}

static const tv_err *visit_module(walk *w, const tv_pickle_node *x)
{
    static const char *const parts[] = {"_parameters", "_buffers", "_modules"};
    for (size_t i = 0; i < 3; i++)
        TV_TRY(visit_entries(w, tv_pickle_get(x->object->state, parts[i])));
    return NULL;
}

static const tv_err *visit_items(walk *w, const tv_pickle_node *x)
{
    for (size_t i = 0; i < x->n; i++) {
        const size_t before = w->path.n;
        const tv_pickle_kind kind = x->items[i]->kind;
        if (kind < TV_PICKLE_TUPLE) /* a number or a text */
            continue;
        if (before)
            tv_putc(&w->path, '.');
        tv_put_u64(&w->path, i);
        TV_TRY(visit(w, x->items[i]));
        leave(w, before);
    }
    return NULL;
}

static const tv_err *visit_object(walk *w, const tv_pickle_node *x)
{
    const tv_pickle_object *o = x->object;
    rebuild_fn *run = rebuild_of(tv_pickle_class(x));
    if (run)
        return run(w, o->args);
    if (is_array(x))
        return visit_array(w, x);
    if (is_module(x))
        return visit_module(w, x);
    if (is_dict(x))
        return visit_entries(w, x);
    TV_TRY(visit_items(w, o->args));
    TV_TRY(visit(w, o->state));
    TV_TRY(visit(w, o->items));
    return visit(w, o->pairs);
}

/* A tensor of the tar container, or a storage by itself. */
static const tv_err *visit_outside(walk *w, const tv_pickle_node *x)
{
    tv_torch *t = w->t;
    const tv_pickle_node *id = x->items[0];
    const tv_str key = key_of(t, id);
    for (size_t i = 0; key.n && i < t->n_outside; i++)
        if (tv_str_eq(t->outside_keys[i], key))
            return push_leaf(w, &t->outside[i]);
    if (!tv_str_is(tv_pickle_str(tv_pickle_at(id, 0)), "storage"))
        return NULL;
    tv_torch_leaf leaf = {0};
    TV_TRY(storage_of_id(t, id, &leaf.storage));
    const tv_torch_storage *s = &t->storages.v[leaf.storage - 1];
    take_type(&leaf, s->dtype, s->dtype_text);
    leaf.t.rank = 1;
    leaf.t.dims[0] = leaf.t.elements = s->elements;
    TV_TRY(place(t, x, 0, s->elements, &leaf));
    return push_leaf(w, &leaf);
}

/* Objects may be shared and may contain themselves: the number of visits is bounded by a few per
 * object, which plain nesting never reaches. */
static const tv_err *too_tangled(tv_torch *t, const tv_pickle_node *x)
{
    return tv_fail_at(
        t->g->a, TV_LIMIT,
        TV_TEXT0("torch.tangled", N_("the objects of the checkpoint contain each other "
                                     "too often")),
        t->path, x->offset);
}

static const tv_err *visit_kind(walk *w, const tv_pickle_node *x)
{
    switch (x->kind) {
    case TV_PICKLE_TUPLE:
    case TV_PICKLE_LIST:
    case TV_PICKLE_SET:
        return visit_items(w, x);
    case TV_PICKLE_DICT:
        return visit_entries(w, x);
    case TV_PICKLE_OBJECT:
        return visit_object(w, x);
    case TV_PICKLE_PERSISTENT:
        return visit_outside(w, x);
    case TV_PICKLE_NONE:
    case TV_PICKLE_BOOL:
    case TV_PICKLE_INT:
    case TV_PICKLE_BIG_INT:
    case TV_PICKLE_FLOAT:
    case TV_PICKLE_STR:
    case TV_PICKLE_BYTES:
    case TV_PICKLE_GLOBAL:
        break;
    }
    return NULL;
}

static const tv_err *visit(walk *w, const tv_pickle_node *x)
{
    if (!x || w->depth == TV_LIMIT_PICKLE_DEPTH)
        return NULL;
    if (++w->t->visits > (size_t)w->t->pickle.n_nodes * 8 + 4096)
        return too_tangled(w->t, x);
    w->depth++;
    TV_TRY(visit_kind(w, x));
    w->depth--;
    return NULL;
}

const tv_err *tv_torch_walk(tv_torch *t, const tv_pickle_node *node, tv_str prefix)
{
    walk w = {.t = t, .path = tv_buf_in(t->g->a)};
    tv_put(&w.path, prefix);
    return visit(&w, node);
}

/* ---- which part is the model ---- */

static bool holds_tensor(tv_torch *t, const tv_pickle_node *x, unsigned depth, unsigned *budget)
{
    entry e;
    if (!x || depth > 5 || *budget == 0)
        return false;
    --*budget;
    if (x->kind == TV_PICKLE_PERSISTENT || is_array(x) || is_module(x) ||
        rebuild_of(tv_pickle_class(x)))
        return true;
    if (x->kind == TV_PICKLE_LIST || x->kind == TV_PICKLE_TUPLE)
        for (size_t i = 0; i < x->n; i++)
            if (holds_tensor(t, x->items[i], depth + 1, budget))
                return true;
    for (size_t i = 0; entry_at(t, x, i, &e); i++)
        if (holds_tensor(t, e.value, depth + 1, budget))
            return true;
    const bool object = x->kind == TV_PICKLE_OBJECT;
    return object && (holds_tensor(t, x->object->state, depth + 1, budget) ||
                      holds_tensor(t, x->object->args, depth + 1, budget));
}

static bool has_tensors(tv_torch *t, const tv_pickle_node *x)
{
    unsigned budget = 20000;
    return holds_tensor(t, x, 0, &budget);
}

/* What training scripts call the model, the surer names first. */
static const char *const model_keys[] = {
    "state_dict", "model_state_dict", "model",         "module",  "net",     "network",
    "params_ema", "params",           "generator",     "g_ema",   "ema",     "model_ema",
    "weights",    "model_state",      "model_weights", "student", "teacher", NULL};

/* What else a training state holds. */
static const char *const other_keys[] = {"optimizer",
                                         "optimizer_state_dict",
                                         "optimizer_states",
                                         "optimizer_state",
                                         "optim",
                                         "optimizers",
                                         "lr_scheduler",
                                         "lr_schedulers",
                                         "scheduler",
                                         "scaler",
                                         "grad_scaler",
                                         "amp",
                                         "callbacks",
                                         "loops",
                                         "rng_state",
                                         "cuda_rng_state",
                                         "random_rng_state",
                                         "rng_states",
                                         "criterion",
                                         "loss",
                                         "metrics",
                                         "hyper_parameters",
                                         NULL};

static bool is_one_of(tv_str s, const char *const *words)
{
    for (; *words; words++)
        if (tv_str_is(s, *words))
            return true;
    return false;
}

static const tv_pickle_node *preferred(tv_torch *t, const tv_pickle_node *x, tv_str *key)
{
    entry e;
    for (size_t k = 0; model_keys[k]; k++)
        for (size_t i = 0; entry_at(t, x, i, &e); i++) {
            const bool nested = is_dict(e.value) || is_module(e.value) ||
                                (e.value && e.value->kind == TV_PICKLE_OBJECT &&
                                 !rebuild_of(tv_pickle_class(e.value)));
            if (tv_str_is(e.key, model_keys[k]) && nested && has_tensors(t, e.value)) {
                *key = e.key;
                return e.value;
            }
        }
    return NULL;
}

static const tv_err *take_extra(tv_torch *t, tv_str name, const tv_pickle_node *x)
{
    walk w = {.t = t, .path = tv_buf_in(t->g->a)};
    tv_push(t->g->a, &t->extras)->name = name;
    w.group = (uint32_t)t->extras.n;
    tv_put(&w.path, name);
    TV_TRY(visit(&w, x));
    return NULL;
}

/* An optimiser's state that was saved by itself. */
static bool is_optimiser(const tv_pickle_node *x)
{
    return tv_pickle_get(x, "param_groups") && tv_pickle_get(x, "state");
}

static const tv_err *take_rest(tv_torch *t, const tv_pickle_node *x, tv_str model,
                               const tv_pickle_node **only)
{
    entry e;
    size_t n = 0;
    bool nested = false;
    for (size_t i = 0; entry_at(t, x, i, &e); i++) {
        if (model.n ? tv_str_eq(e.key, model) : !is_one_of(e.key, other_keys)) {
            const bool tensors = has_tensors(t, e.value);
            n += tensors;
            nested = tensors ? is_dict(e.value) || is_module(e.value) : nested;
            *only = tensors ? e.value : *only;
            continue;
        }
        if (has_tensors(t, e.value))
            TV_TRY(take_extra(t, e.key, e.value));
    }
    if (n != 1 || !nested)
        *only = NULL;
    return NULL;
}

static const tv_err *visit_model_entries(tv_torch *t, const tv_pickle_node *x)
{
    walk w = {.t = t, .path = tv_buf_in(t->g->a)};
    entry e;
    for (size_t i = 0; entry_at(t, x, i, &e); i++)
        if (!is_one_of(e.key, other_keys))
            TV_TRY(visit_named(&w, e.key, e.value));
    return NULL;
}

const tv_err *tv_torch_take(tv_torch *t, const tv_pickle_node *root)
{
    enum { deepest = 4 };
    for (unsigned depth = 0; depth < deepest && is_dict(root) && !is_module(root); depth++) {
        const tv_pickle_node *only = NULL;
        tv_str key = {0};
        if (is_optimiser(root))
            return take_extra(t, TV_S("optimizer"), root);
        (void)preferred(t, root, &key);
        TV_TRY(take_rest(t, root, key, &only));
        if (!only)
            return visit_model_entries(t, root);
        root = only;
    }
    return tv_torch_walk(t, root, (tv_str){0});
}
