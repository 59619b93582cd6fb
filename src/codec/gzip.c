/* Inflate by zlib: its state lives in the arena, the output grows in steps up to the limit. */
#include "gzip.h"

#include <string.h>

/* The header is const-correct only when asked; the input is never written. */
#define ZLIB_CONST
#include <zlib.h>

#include "zlib_memory.h"

bool tv_gzip_is(tv_bytes_view bytes)
{
    return bytes.n >= 2 && bytes.p[0] == 0x1f && bytes.p[1] == 0x8b;
}

static tv_err *broken(tv_arena *a, tv_str file, const char *why, uint64_t offset)
{
    return tv_fail_at(a, TV_INPUT,
                      TV_TEXT(a, "gzip.broken", N_("not a whole gzip file: {reason}"),
                              tv_arg_word("reason", why)),
                      file, offset);
}

static const char *reason(int status)
{
    if (status == Z_BUF_ERROR)
        return N_("it ends too early");
    if (status == Z_DATA_ERROR)
        return N_("its data or checksum is damaged");
    return N_("it needs a dictionary");
}

typedef struct inflating {
    z_stream z;
    const unsigned char *p;
    size_t left; /* input that zlib has not been shown */
    size_t limit;
    tv_buf out;
} inflating;

/* Shows zlib the next piece of the input: its counters are 32 bits wide. */
static void feed(inflating *s)
{
    if (s->z.avail_in || !s->left)
        return;
    const size_t piece = s->left < ((size_t)1 << 30) ? s->left : (size_t)1 << 30;
    s->z.next_in = s->p;
    s->z.avail_in = (unsigned)piece;
    s->p += piece;
    s->left -= piece;
}

/* One member. Yields zlib's status: Z_STREAM_END when it is whole, Z_MEM_ERROR past the limit. */
static int member(inflating *s)
{
    static const size_t step = 65536;
    unsigned char chunk[65536];
    for (;;) {
        feed(s);
        s->z.next_out = chunk;
        s->z.avail_out = (unsigned)step;
        const int status = inflate(&s->z, Z_NO_FLUSH);
        const size_t got = step - s->z.avail_out;
        if (got > s->limit - s->out.n)
            return Z_MEM_ERROR;
        tv_put(&s->out, (tv_str){(const char *)chunk, got});
        if (status != Z_OK)
            return status;
        if (!s->z.avail_in && !s->left && s->z.avail_out)
            return Z_BUF_ERROR;
    }
}

static const tv_err *members(tv_arena *a, tv_str file, tv_bytes_view bytes, inflating *s)
{
    for (;;) {
        const int status = member(s);
        const uint64_t at = bytes.n - s->left - s->z.avail_in;
        if (status == Z_MEM_ERROR)
            return tv_in_file(TV_FAIL(a, TV_LIMIT, "gzip.too-large",
                                      N_("inflates to more than the limit of {limit}"),
                                      tv_arg_num("limit", TV_ARG_DISK, (double)s->limit)),
                              file);
        if (status != Z_STREAM_END)
            return broken(a, file, reason(status), at);
        if (!s->left && !s->z.avail_in)
            return NULL;
        (void)inflateReset(&s->z);
    }
}

const tv_err *tv_gzip_read(tv_arena *a, tv_str file, tv_bytes_view bytes, size_t limit,
                           tv_str *text)
{
    if (!tv_gzip_is(bytes))
        return broken(a, file, N_("it has no gzip header"), 0);
    inflating s = {.z = {.zalloc = tv_zlib_alloc, .zfree = tv_zlib_free, .opaque = a},
                   .p = bytes.p,
                   .left = bytes.n,
                   .limit = limit,
                   .out = tv_buf_in(a)};
    if (inflateInit2(&s.z, 16 + MAX_WBITS) != Z_OK)
        return TV_FAIL0(a, TV_SYSTEM, "gzip.zlib", N_("zlib does not start"));
    TV_TRY(members(a, file, bytes, &s));
    *text = tv_buf_str(&s.out);
    return NULL;
}
