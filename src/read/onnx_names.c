/* A table of names with open addressing; it doubles when it is half full. */
#include "onnx.h"

typedef struct tv_name_slot {
    tv_str name;
    uint32_t value;
    bool used;
} tv_name_slot;

static tv_name_slot *seek(const tv_names *t, tv_str name)
{
    size_t i = (size_t)tv_str_hash(name) & (t->cap - 1);
    while (t->v[i].used && !tv_str_eq(t->v[i].name, name))
        i = (i + 1) & (t->cap - 1);
    return &t->v[i];
}

static void widen(tv_arena *a, tv_names *t)
{
    const tv_names old = *t;
    t->cap = old.cap ? old.cap * 2 : 16;
    t->v = tv_new(a, tv_name_slot, t->cap);
    for (size_t i = 0; i < old.cap; i++)
        if (old.v[i].used)
            *seek(t, old.v[i].name) = old.v[i];
}

uint32_t *tv_names_slot(tv_arena *a, tv_names *t, tv_str name)
{
    if (t->n >= t->cap / 2)
        widen(a, t);
    tv_name_slot *slot = seek(t, name);
    if (!slot->used) {
        *slot = (tv_name_slot){.name = name, .used = true};
        t->n++;
    }
    return &slot->value;
}

uint32_t tv_names_find(const tv_names *t, tv_str name)
{
    return t->cap ? seek(t, name)->value : 0;
}
