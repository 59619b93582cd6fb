/* What libFuzzer (or replay.c) calls: one input, handled to the end whatever it holds. */
#ifndef TV_FUZZING_H
#define TV_FUZZING_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A small budget: an input that makes a parser ask for more is stopped by the arena. */
static inline tv_arena *fuzz_arena(void)
{
    tv_arena *a = tv_arena_open((size_t)64 << 20);
    if (!a)
        abort();
    return a;
}

/* An error must have words and a code that a caller can act on. */
static inline void fuzz_check(tv_arena *a, const tv_err *e)
{
    if (!e)
        return;
    tv_buf b = tv_buf_in(a);
    tv_put_err(&b, TV_ZH, e);
    if (b.n < 2 || e->code == TV_OK || e->code == TV_BUG)
        abort();
}

#endif
