/* What every unit test needs: cmocka and an arena that lives as long as the test. */
#ifndef TV_TESTING_H
#define TV_TESTING_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/limits.h"

static inline tv_arena *test_arena(void)
{
    tv_arena *a = tv_arena_open(TV_LIMIT_ARENA_BYTES);
    assert_non_null(a);
    return a;
}

/* Fails with the error's own words. */
static inline void assert_ok(tv_arena *a, const tv_err *e)
{
    if (!e)
        return;
    tv_buf b = tv_buf_in(a);
    tv_put_err(&b, TV_EN, e);
    fail_msg("%.*s", TV_FMT(tv_buf_str(&b)));
}

static inline void assert_str(tv_str got, const char *want)
{
    if (!tv_str_is(got, want))
        fail_msg("got \"%.*s\", want \"%s\"", TV_FMT(got), want);
}

/* |got - want| <= rel·|want|. */
static inline void assert_close(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want)))
        fail_msg("got %.10g, want %.10g within %g", got, want, rel);
}

/* Where the shared data lies; NULL (with a message) when it is absent. */
static inline const char *test_shared(const char *path)
{
    static char full[512];
    (void)snprintf(full, sizeof full, "../shared/data/%s", path);
    FILE *f = fopen(full, "rb");
    if (!f) {
        print_message("skipped: %s is not there\n", full);
        return NULL;
    }
    (void)fclose(f);
    return full;
}

#endif
