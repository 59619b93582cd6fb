/* The containers before PyTorch 1.6: a stream of pickles with the storages behind it (magic number
 * 0x1950a86a20f9469cfc6c, since 0.1.10), and a tar archive of four members (before that).
 * Layout: torch/serialization.py, "_legacy_save" and "legacy_load". */
#include "torch.h"

#include <string.h>

static const unsigned char magic[] = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                      0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

bool tv_torch_is_legacy(tv_bytes_view bytes)
{
    return bytes.n > 2 + sizeof magic && bytes.p[0] == 0x80 &&
           memcmp(bytes.p + 2, magic, sizeof magic) == 0;
}

static const tv_err *broken(tv_torch *t, const char *id, const char *msgid, uint64_t at)
{
    return tv_broken(t->g, t->path, id, msgid, at);
}

/* 64-bit little-endian, as every machine that wrote such files. */
static bool take_u64(tv_bytes_view b, size_t *at, uint64_t *v)
{
    if (*at > b.n || b.n - *at < 8)
        return false;
    *v = 0;
    for (size_t i = 8; i-- > 0;)
        *v = *v << 8 | b.p[*at + i];
    *at += 8;
    return true;
}

static const tv_err *cut_short(tv_torch *t, const tv_torch_storage *s, uint64_t end)
{
    return tv_fail_at(t->g->a, TV_INPUT,
                      TV_TEXT(t->g->a, "torch.cut-short",
                              N_("the file ends inside the data of storage {key}"),
                              tv_arg_str("key", s->key)),
                      t->path, end);
}

/* An element count, then the data; `at` is moved behind it. */
static const tv_err *place_storage(tv_torch *t, tv_torch_storage *s, tv_bytes_view b, uint64_t base,
                                   size_t *at)
{
    uint64_t n = 0;
    if (!take_u64(b, at, &n))
        return cut_short(t, s, base + b.n);
    if (n != s->elements)
        return broken(t, "torch.count", N_("a storage has another size than its tensors say"),
                      base + *at - 8);
    s->offset = base + *at;
    if (s->bytes > b.n - *at)
        return cut_short(t, s, base + b.n);
    *at += (size_t)s->bytes;
    return NULL;
}

/* ---- the stream ---- */

static const tv_err *check_storages(tv_torch *t, const tv_pickle_node *keys)
{
    size_t at = t->pickle.at;
    if (!keys || keys->kind != TV_PICKLE_LIST)
        return broken(t, "torch.keys", N_("the list of storages is none"), t->pickle.at);
    for (size_t i = 0; i < keys->n; i++) {
        bool made = false;
        tv_torch_storage *s = tv_torch_storage_of(t, tv_pickle_str(keys->items[i]), &made);
        if (made)
            return broken(t, "torch.keys", N_("the list of storages is none"),
                          keys->items[i]->offset);
        TV_TRY(place_storage(t, s, t->pickle.bytes, 0, &at));
    }
    for (size_t i = 0; i < t->leaves.n; i++) {
        tv_torch_leaf *leaf = &t->leaves.v[i];
        const uint64_t offset = leaf->storage ? t->storages.v[leaf->storage - 1].offset : 0;
        leaf->t.offset = offset ? offset + leaf->begin : 0;
    }
    return NULL;
}

const tv_err *tv_torch_read_legacy(tv_torch *t, tv_bytes_view bytes)
{
    const tv_pickle_node *version = NULL, *info = NULL, *root = NULL, *keys = NULL;
    t->pickle = (tv_pickle){.file = t->path, .bytes = bytes};
    TV_TRY(tv_pickle_next(t->g->a, &t->pickle, &version)); /* the magic number */
    TV_TRY(tv_pickle_next(t->g->a, &t->pickle, &version));
    TV_TRY(tv_pickle_next(t->g->a, &t->pickle, &info));
    if (tv_pickle_int(version, 0) != 1001)
        return broken(t, "torch.version", N_("an unknown version of PyTorch's old format"),
                      version->offset);
    TV_TRY(tv_pickle_next(t->g->a, &t->pickle, &root));
    TV_TRY(tv_pickle_next(t->g->a, &t->pickle, &keys));
    TV_TRY(tv_torch_take(t, root));
    TV_TRY(check_storages(t, keys));
    return tv_torch_finish(t);
}

/* ---- tar ---- */

enum { tar_block = 512 };

typedef struct member {
    tv_bytes_view bytes;
    uint64_t base;
} member;

bool tv_torch_is_tar(tv_bytes_view bytes)
{
    return bytes.n >= 2 * tar_block && memcmp(bytes.p + 257, "ustar", 5) == 0;
}

/* A field of octal digits, padded with spaces or NULs. */
static bool octal(const unsigned char *p, size_t n, uint64_t *v)
{
    *v = 0;
    for (size_t i = 0; i < n && p[i] != '\0' && p[i] != ' '; i++) {
        if (p[i] < '0' || p[i] > '7')
            return false;
        *v = *v << 3 | (uint64_t)(p[i] - '0');
    }
    return true;
}

static bool find_member(tv_bytes_view b, const char *name, member *out)
{
    for (size_t at = 0; b.n - at >= tar_block && b.p[at];) {
        uint64_t n = 0;
        const unsigned char *head = b.p + at;
        if (!octal(head + 124, 12, &n))
            return false;
        at += tar_block;
        if (n > b.n - at)
            return false;
        if (strncmp((const char *)head, name, 100) == 0) {
            *out = (member){{b.p + at, (size_t)n}, at};
            return true;
        }
        const size_t padded = (size_t)((n + tar_block - 1) / tar_block * tar_block);
        at += padded < b.n - at ? padded : b.n - at;
    }
    return false;
}

static const tv_err *open_member(tv_torch *t, tv_bytes_view bytes, const char *name, member *m,
                                 tv_pickle *p, int64_t *count)
{
    const tv_pickle_node *n = NULL;
    if (!find_member(bytes, name, m))
        return tv_fail_at(t->g->a, TV_INPUT,
                          TV_TEXT(t->g->a, "torch.member",
                                  N_("the archive lacks its part \"{name}\""),
                                  tv_arg_str("name", tv_str_of(name))),
                          t->path, bytes.n);
    *p = (tv_pickle){.file = t->path, .bytes = m->bytes, .base = m->base};
    if (!count)
        return NULL;
    TV_TRY(tv_pickle_next(t->g->a, p, &n));
    *count = tv_pickle_int(n, -1);
    return *count < 0 ? broken(t, "torch.number", N_("a count is none"), m->base) : NULL;
}

static tv_str number_key(tv_torch *t, const tv_pickle_node *x)
{
    tv_buf b = tv_buf_in(t->g->a);
    if (!x || x->kind != TV_PICKLE_INT)
        return tv_pickle_str(x);
    tv_put_u64(&b, (uint64_t)x->i);
    return tv_buf_str(&b);
}

/* (key, location, class), then the storage. */
static const tv_err *read_storages(tv_torch *t, tv_bytes_view bytes)
{
    member m;
    tv_pickle p;
    int64_t count = 0;
    TV_TRY(open_member(t, bytes, "storages", &m, &p, &count));
    for (int64_t i = 0; i < count; i++) {
        const tv_pickle_node *x = NULL;
        bool made = false;
        TV_TRY(tv_pickle_next(t->g->a, &p, &x));
        const tv_pickle_node *kind = tv_pickle_at(x, 2);
        tv_torch_storage *s = tv_torch_storage_of(t, number_key(t, tv_pickle_at(x, 0)), &made);
        if (!made || !kind || kind->kind != TV_PICKLE_GLOBAL ||
            !tv_torch_type_of_class(kind->s, &s->dtype, &s->dtype_text))
            return broken(t, "torch.storage", N_("a storage is not described as PyTorch does"),
                          x->offset);
        size_t at = p.at;
        if (!take_u64(m.bytes, &at, &s->elements))
            return cut_short(t, s, m.base + m.bytes.n);
        const tv_u64_read size = tv_dtype_tensor_bytes(s->dtype, s->elements, s->elements);
        s->bytes = size.v;
        if (!size.ok)
            return broken(t, "torch.huge", N_("a tensor is larger than any file"), m.base + p.at);
        TV_TRY(place_storage(t, s, m.bytes, m.base, &p.at));
    }
    return NULL;
}

/* Dimensions, strides and the place in the storage behind (key, storage, class). */
static const tv_err *read_tensor(tv_torch *t, const member *m, size_t *at, tv_torch_leaf *leaf)
{
    uint64_t rank = 0, offset = 0, extent = 1, end = 0;
    const tv_torch_storage *s = &t->storages.v[leaf->storage - 1];
    const tv_dtype_info *type = tv_dtype_of(s->dtype);
    uint64_t strides[TV_LIMIT_RANK] = {0};
    /* 32 bits; the other four bytes are not always zero */
    bool ok = take_u64(m->bytes, at, &rank);
    rank &= UINT32_MAX;
    if (!ok || rank > TV_LIMIT_RANK)
        return broken(t, "torch.shape", N_("the shape of a tensor is no tuple of counts"),
                      m->base + *at);
    leaf->t.dtype = s->dtype;
    leaf->t.rank = (uint32_t)rank;
    leaf->t.elements = 1;
    for (size_t i = 0; ok && i < rank; i++)
        ok = take_u64(m->bytes, at, &leaf->t.dims[i]) &&
             !__builtin_mul_overflow(leaf->t.elements, leaf->t.dims[i], &leaf->t.elements);
    for (size_t i = 0; ok && i < rank; i++)
        ok = take_u64(m->bytes, at, &strides[i]);
    ok = ok && take_u64(m->bytes, at, &offset);
    for (size_t i = 0; ok && leaf->t.elements && i < rank; i++) {
        uint64_t reach = 0;
        ok = !__builtin_mul_overflow(leaf->t.dims[i] - 1, strides[i], &reach) &&
             !__builtin_add_overflow(extent, reach, &extent);
    }
    extent = leaf->t.elements ? extent : 0;
    ok = ok && !__builtin_add_overflow(offset, extent, &end) && end <= s->elements;
    if (!ok)
        return broken(t, "torch.beyond", N_("a tensor reaches beyond the end of its storage"),
                      m->base + *at);
    leaf->begin = offset * type->block_bytes;
    leaf->end = end * type->block_bytes;
    leaf->t.bytes =
        leaf->t.elements < extent ? leaf->t.elements * type->block_bytes : leaf->end - leaf->begin;
    leaf->t.offset = s->offset + leaf->begin;
    return NULL;
}

static const tv_err *read_tensors(tv_torch *t, tv_bytes_view bytes)
{
    member m;
    tv_pickle p;
    int64_t count = 0;
    TV_TRY(open_member(t, bytes, "tensors", &m, &p, &count));
    /* A tensor takes more bytes than that: a false count asks for no memory. */
    const size_t most = m.bytes.n / 16;
    const size_t n = (uint64_t)count < most ? (size_t)count : most;
    tv_torch_leaf *leaves = tv_new(t->g->a, tv_torch_leaf, n ? n : 1);
    tv_str *keys = tv_new(t->g->a, tv_str, n ? n : 1);
    for (size_t i = 0; i < n; i++) {
        const tv_pickle_node *x = NULL;
        bool made = false;
        TV_TRY(tv_pickle_next(t->g->a, &p, &x));
        keys[i] = number_key(t, tv_pickle_at(x, 0));
        const tv_torch_storage *s =
            tv_torch_storage_of(t, number_key(t, tv_pickle_at(x, 1)), &made);
        if (made)
            return broken(t, "torch.storage", N_("a storage is not described as PyTorch does"),
                          x->offset);
        leaves[i].storage = (uint32_t)(s - t->storages.v) + 1;
        TV_TRY(read_tensor(t, &m, &p.at, &leaves[i]));
    }
    t->outside = leaves;
    t->outside_keys = keys;
    t->n_outside = n;
    return NULL;
}

const tv_err *tv_torch_read_tar(tv_torch *t, tv_bytes_view bytes)
{
    member m;
    const tv_pickle_node *root = NULL;
    TV_TRY(read_storages(t, bytes));
    TV_TRY(read_tensors(t, bytes));
    TV_TRY(open_member(t, bytes, "pickle", &m, &t->pickle, NULL));
    TV_TRY(tv_pickle_next(t->g->a, &t->pickle, &root));
    TV_TRY(tv_torch_take(t, root));
    return tv_torch_finish(t);
}
