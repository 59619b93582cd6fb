/* A caching allocator simulated: the blocks and segments that PyTorch's or Paddle's pool would
 * make of a sequence of requests. Constants: docs/model.md, "allocators". */
#ifndef TV_POOL_H
#define TV_POOL_H

#include "base/arena.h"

typedef enum tv_pool_kind {
    TV_POOL_NONE,       /* no cache: only rounds to 512 bytes */
    TV_POOL_EXACT,      /* no cache and no rounding: the bytes of the tensors themselves */
    TV_POOL_TORCH,      /* 2 MiB and 20 MiB segments, best fit */
    TV_POOL_EXPANDABLE, /* PyTorch with expandable segments */
    TV_POOL_PADDLE,     /* auto_growth best fit: chunk = request, always split */
} tv_pool_kind;

typedef struct tv_pool tv_pool;

tv_pool *tv_pool_open(tv_arena *a, tv_pool_kind kind);
/* Hands out a block for a request; *block names it for tv_pool_free. Returns the bytes that the
 * allocator counts as allocated (its block, unsplit remainder included). 0 bytes: no block. */
double tv_pool_alloc(tv_pool *p, double bytes, uint32_t *block);
/* bytes: what tv_pool_alloc returned. */
void tv_pool_free(tv_pool *p, uint32_t block, double bytes);
double tv_pool_allocated(const tv_pool *p);
double tv_pool_reserved(const tv_pool *p);
double tv_pool_reserved_peak(const tv_pool *p);
/* Forgets the peak so far: it starts again from what is reserved now. */
void tv_pool_mark(tv_pool *p);

#endif
