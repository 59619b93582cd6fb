/* The allocator's blocks: a list per segment in address order, and free lists by size. Rules:
 * c10/cuda/CUDACachingAllocator.cpp (round_size, get_allocation_size, should_split) and Paddle's
 * auto_growth_best_fit_allocator.cc. */
#include "pool.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { none = -1 };

#define MIB 1048576.0
static const double small_limit = MIB, small_segment = 2 * MIB, large_limit = 10 * MIB,
                    large_segment = 20 * MIB, large_round = 2 * MIB, torch_round = 512,
                    paddle_round = 256;

typedef struct chunk {
    double bytes;
    int32_t previous, next; /* in its segment */
    bool used;
    bool small;
} chunk;

typedef struct free_list {
    int32_t *v; /* sorted by size, then age */
    size_t n, cap;
} free_list;

struct tv_pool {
    tv_arena *a;
    tv_pool_kind kind;
    struct {
        chunk *v;
        size_t n, cap;
    } chunks;
    int32_t spare;     /* recycled chunk records, linked by next */
    free_list free[2]; /* large, small */
    int32_t tail[2];   /* expandable: the last chunk of the growing segment */
    double allocated, reserved, reserved_peak;
};

tv_pool *tv_pool_open(tv_arena *a, tv_pool_kind kind)
{
    tv_pool *p = tv_new(a, tv_pool, 1);
    p->a = a;
    p->kind = kind;
    p->spare = none;
    p->tail[0] = p->tail[1] = none;
    return p;
}

static double round_up(double v, double to)
{
    return ceil(v / to) * to;
}

static int32_t new_chunk(tv_pool *p, double bytes, bool small)
{
    int32_t i = p->spare;
    if (i != none) {
        p->spare = p->chunks.v[i].next;
    } else {
        (void)tv_push(p->a, &p->chunks);
        i = (int32_t)p->chunks.n - 1;
    }
    p->chunks.v[i] = (chunk){bytes, none, none, false, small};
    return i;
}

static void drop_chunk(tv_pool *p, int32_t i)
{
    p->chunks.v[i].next = p->spare;
    p->spare = i;
}

static bool before(const tv_pool *p, int32_t x, double bytes, int32_t y)
{
    const double have = p->chunks.v[x].bytes;
    return have < bytes || (have <= bytes && x < y);
}

static size_t position(const tv_pool *p, const free_list *l, double bytes, int32_t i)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (before(p, l->v[middle], bytes, i))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void put_free(tv_pool *p, int32_t i)
{
    free_list *l = &p->free[p->chunks.v[i].small];
    const size_t at = position(p, l, p->chunks.v[i].bytes, i);
    (void)tv_push(p->a, l);
    memmove(l->v + at + 1, l->v + at, (l->n - 1 - at) * sizeof *l->v);
    l->v[at] = i;
    p->chunks.v[i].used = false;
}

static void take_free(tv_pool *p, int32_t i)
{
    free_list *l = &p->free[p->chunks.v[i].small];
    const size_t at = position(p, l, p->chunks.v[i].bytes, i);
    assert(at < l->n && l->v[at] == i);
    memmove(l->v + at, l->v + at + 1, (l->n - 1 - at) * sizeof *l->v);
    l->n--;
}

static double rounded(const tv_pool *p, double bytes)
{
    return round_up(bytes, p->kind == TV_POOL_PADDLE ? paddle_round : torch_round);
}

static double segment_bytes(const tv_pool *p, double bytes, bool small)
{
    if (p->kind == TV_POOL_PADDLE)
        return bytes;
    if (p->kind == TV_POOL_EXPANDABLE)
        return round_up(bytes, small ? small_segment : large_segment);
    if (small)
        return small_segment;
    return bytes < large_limit ? large_segment : round_up(bytes, large_round);
}

static int32_t grow(tv_pool *p, double bytes, bool small)
{
    int32_t last = p->kind == TV_POOL_EXPANDABLE ? p->tail[small] : none;
    const bool joins = last != none && !p->chunks.v[last].used;
    const double have = joins ? p->chunks.v[last].bytes : 0;
    const double segment = segment_bytes(p, bytes - have, small);
    p->reserved += segment;
    if (p->reserved > p->reserved_peak)
        p->reserved_peak = p->reserved;
    if (joins) {
        take_free(p, last);
        p->chunks.v[last].bytes += segment;
        return last;
    }
    const int32_t i = new_chunk(p, segment, small);
    if (p->kind == TV_POOL_EXPANDABLE) {
        p->chunks.v[i].previous = last;
        if (last != none)
            p->chunks.v[last].next = i;
        p->tail[small] = i;
    }
    return i;
}

static bool splits(const tv_pool *p, double rest, bool small)
{
    if (p->kind == TV_POOL_PADDLE)
        return rest > 0;
    return small || p->kind == TV_POOL_EXPANDABLE ? rest >= torch_round : rest > small_limit;
}

static void split(tv_pool *p, int32_t i, double bytes)
{
    const bool small = p->chunks.v[i].small;
    const double rest = p->chunks.v[i].bytes - bytes;
    if (!splits(p, rest, small))
        return;
    const int32_t j = new_chunk(p, rest, small);
    chunk *whole = &p->chunks.v[i];
    chunk *tail = &p->chunks.v[j];
    tail->previous = i;
    tail->next = whole->next;
    if (tail->next != none)
        p->chunks.v[tail->next].previous = j;
    whole->next = j;
    whole->bytes = bytes;
    if (p->tail[small] == i)
        p->tail[small] = j;
    put_free(p, j);
}

double tv_pool_alloc(tv_pool *p, double bytes, uint32_t *block)
{
    *block = UINT32_MAX;
    if (!(bytes > 0))
        return 0;
    bytes = p->kind == TV_POOL_EXACT ? bytes : rounded(p, bytes);
    if (p->kind == TV_POOL_NONE || p->kind == TV_POOL_EXACT) {
        p->allocated += bytes;
        p->reserved = p->allocated;
        if (p->reserved > p->reserved_peak)
            p->reserved_peak = p->reserved;
        return bytes;
    }
    const bool small = p->kind != TV_POOL_PADDLE && bytes <= small_limit;
    free_list *l = &p->free[small];
    const size_t at = position(p, l, bytes, none);
    int32_t i;
    if (at < l->n) {
        i = l->v[at];
        take_free(p, i);
    } else {
        i = grow(p, bytes, small);
    }
    split(p, i, bytes);
    p->chunks.v[i].used = true;
    p->allocated += p->chunks.v[i].bytes;
    *block = (uint32_t)i;
    return p->chunks.v[i].bytes;
}

/* Joins the chunk behind i into i. */
static void join_next(tv_pool *p, int32_t i)
{
    const int32_t j = p->chunks.v[i].next;
    const bool small = p->chunks.v[i].small;
    p->chunks.v[i].bytes += p->chunks.v[j].bytes;
    p->chunks.v[i].next = p->chunks.v[j].next;
    if (p->chunks.v[i].next != none)
        p->chunks.v[p->chunks.v[i].next].previous = i;
    if (p->tail[small] == j)
        p->tail[small] = i;
    drop_chunk(p, j);
}

void tv_pool_free(tv_pool *p, uint32_t block, double bytes)
{
    p->allocated -= bytes;
    if (p->kind == TV_POOL_NONE || p->kind == TV_POOL_EXACT)
        p->reserved = p->allocated;
    if (block == UINT32_MAX)
        return;
    int32_t i = (int32_t)block;
    const int32_t next = p->chunks.v[i].next, previous = p->chunks.v[i].previous;
    if (next != none && !p->chunks.v[next].used) {
        take_free(p, next);
        join_next(p, i);
    }
    if (previous != none && !p->chunks.v[previous].used) {
        take_free(p, previous);
        join_next(p, previous);
        i = previous;
    }
    put_free(p, i);
}

double tv_pool_allocated(const tv_pool *p)
{
    return p->allocated;
}

double tv_pool_reserved(const tv_pool *p)
{
    return p->reserved;
}

double tv_pool_reserved_peak(const tv_pool *p)
{
    return p->reserved_peak;
}

void tv_pool_mark(tv_pool *p)
{
    p->reserved_peak = p->reserved;
}
