/* The arena: blocks of growing size, a deferred list, a budget. */
#include "arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct block {
    struct block *previous;
    size_t size;
    size_t used;
    max_align_t data[];
} block;

typedef struct deferred {
    struct deferred *next;
    void (*run)(void *);
    void *what;
} deferred;

struct tv_arena {
    block *top;
    deferred *later;
    deferred unlisted; /* what tv_defer is about to put on the list */
    jmp_buf *landing;
    size_t budget;
    size_t total;
    size_t peak;
    uint64_t fail_countdown;
};

enum { first_block_bytes = 64 * 1024 };

tv_arena *tv_arena_open(size_t budget_bytes)
{
    tv_arena *a = calloc(1, sizeof *a);
    if (a)
        a->budget = budget_bytes;
    return a;
}

void tv_arena_close(tv_arena *a)
{
    if (!a)
        return;
    for (deferred *d = a->later; d; d = d->next)
        d->run(d->what);
    for (block *b = a->top; b;) {
        block *previous = b->previous;
        free(b);
        b = previous;
    }
    free(a);
}

void tv_arena_guard(tv_arena *a, jmp_buf *landing)
{
    a->landing = landing;
}

static _Noreturn void spent(tv_arena *a, int why)
{
    if (a->unlisted.run)
        a->unlisted.run(a->unlisted.what);
    a->unlisted = (deferred){0};
    if (a->landing)
        longjmp(*a->landing, why);
    abort();
}

static void close_child(void *what)
{
    tv_arena_close(what);
}

tv_arena *tv_arena_child(tv_arena *parent, size_t budget_bytes)
{
    tv_arena *child = tv_arena_open(budget_bytes);
    if (!child)
        spent(parent, TV_SPENT_SYSTEM);
    child->landing = parent->landing;
    tv_defer(parent, close_child, child);
    return child;
}

/* A block is as large as everything before it, so that a request needs few of them. */
static void add_block(tv_arena *a, size_t need)
{
    size_t size = a->top ? a->top->size * 2 : (size_t)first_block_bytes;
    if (size > ((size_t)8 << 20))
        size = (size_t)8 << 20;
    if (size < need)
        size = need;
    block *b = malloc(sizeof *b + size);
    if (!b)
        spent(a, TV_SPENT_SYSTEM);
    b->previous = a->top;
    b->size = size;
    b->used = 0;
    a->top = b;
}

void *tv_alloc(tv_arena *a, size_t count, size_t size)
{
    assert(size > 0);
    if (a->fail_countdown && --a->fail_countdown == 0)
        spent(a, TV_SPENT_BUDGET);
    if (count > (SIZE_MAX / 2) / size)
        spent(a, TV_SPENT_BUDGET);
    const size_t align = sizeof(max_align_t);
    size_t need = (count * size + align - 1) / align * align;
    if (need > a->budget || a->total > a->budget - need)
        spent(a, TV_SPENT_BUDGET);
    if (!a->top || need > a->top->size - a->top->used)
        add_block(a, need);
    unsigned char *at = (unsigned char *)a->top->data + a->top->used;
    a->top->used += need;
    a->total += need;
    if (a->total > a->peak)
        a->peak = a->total;
    return memset(at, 0, need);
}

void *tv_grow(tv_arena *a, const void *old, size_t used, size_t *cap, size_t size)
{
    size_t next = *cap ? *cap * 2 : 8;
    void *fresh = tv_alloc(a, next, size);
    if (used)
        memcpy(fresh, old, used * size);
    *cap = next;
    return fresh;
}

void tv_defer(tv_arena *a, void (*run)(void *), void *what)
{
    /* Where there is no room for the entry, what it would have closed is closed at once. */
    a->unlisted = (deferred){.run = run, .what = what};
    deferred *d = tv_new(a, deferred, 1);
    a->unlisted = (deferred){0};
    d->next = a->later;
    d->run = run;
    d->what = what;
    a->later = d;
}

tv_mark tv_arena_mark(const tv_arena *a)
{
    return (tv_mark){a->top, a->later, a->top ? a->top->used : 0, a->total};
}

void tv_arena_rewind(tv_arena *a, tv_mark mark)
{
    for (; a->later != mark.later; a->later = a->later->next)
        a->later->run(a->later->what);
    while (a->top && a->top != mark.block) {
        block *previous = a->top->previous;
        free(a->top);
        a->top = previous;
    }
    if (a->top)
        a->top->used = mark.used;
    a->total = mark.total;
}

size_t tv_arena_used(const tv_arena *a)
{
    return a->total;
}

size_t tv_arena_peak(const tv_arena *a)
{
    return a->peak;
}

void tv_arena_fail_at(tv_arena *a, uint64_t k)
{
    a->fail_countdown = k;
}
