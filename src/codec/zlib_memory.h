/* zlib's memory out of an arena: what z_stream calls with the arena as its opaque. */
#ifndef TV_ZLIB_MEMORY_H
#define TV_ZLIB_MEMORY_H

#include "base/arena.h"

static inline void *tv_zlib_alloc(void *a, unsigned items, unsigned size)
{
    return tv_alloc(a, items, size);
}

static inline void tv_zlib_free(void *a, void *p)
{
    (void)a;
    (void)p;
}

#endif
