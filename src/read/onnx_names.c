/* A table of names with open addressing; it doubles when it is half full. */
#include "onnx.h"

typedef struct tv_name_slot {
    tv_str name;
    uint32_t value;
    uint32_t tag; /* bits of the hash, so that few names are compared; 0: free */
} tv_name_slot;

static tv_name_slot *seek(const tv_names *t, tv_str name, uint64_t hash)
{
    const uint32_t tag = (uint32_t)(hash >> 32) | 1;
    /* FNV's low bits are those of the last characters: the high ones are mixed in */
    size_t i = (size_t)(hash ^ hash >> 29) & (t->cap - 1);
    while (t->v[i].tag && (t->v[i].tag != tag || !tv_str_eq(t->v[i].name, name)))
        i = (i + 1) & (t->cap - 1);
    return &t->v[i];
}

static void widen(tv_arena *a, tv_names *t, size_t cap)
{
    const tv_names old = *t;
    t->cap = cap;
    t->v = tv_new(a, tv_name_slot, t->cap);
    for (size_t i = 0; i < old.cap; i++)
        if (old.v[i].tag)
            *seek(t, old.v[i].name, tv_str_hash(old.v[i].name)) = old.v[i];
}

void tv_names_room(tv_arena *a, tv_names *t, size_t n)
{
    size_t cap = t->cap ? t->cap : 16;
    while (cap / 2 < t->n + n)
        cap *= 2;
    if (cap > t->cap)
        widen(a, t, cap);
}

uint32_t *tv_names_slot(tv_arena *a, tv_names *t, tv_str name)
{
    const uint64_t hash = tv_str_hash(name);
    if (t->n >= t->cap / 2)
        tv_names_room(a, t, 1);
    tv_name_slot *slot = seek(t, name, hash);
    if (!slot->tag) {
        *slot = (tv_name_slot){.name = name, .tag = (uint32_t)(hash >> 32) | 1};
        t->n++;
    }
    return &slot->value;
}

uint32_t tv_names_find(const tv_names *t, tv_str name)
{
    return t->cap ? seek(t, name, tv_str_hash(name))->value : 0;
}
