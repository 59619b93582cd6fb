/* One source (a descriptor, memory, or a part of another stream), one optional inflater behind it,
 * and a window of at most TV_STREAM_PIECE bytes. */
#include "stream.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

#include "zlib_memory.h"

enum { piece_bytes = 1 << 18, peek_bytes = 1 << 16 };

typedef enum packing { PLAIN, GZIP, ZSTD, DEFLATE } packing;

struct tv_stream {
    tv_arena *a;
    tv_str name;
    int fd;     /* -1: none */
    bool waits; /* a pipe, not a file */
    tv_bytes_view memory;
    tv_stream *outer; /* a part of it */
    uint64_t outer_left;
    tv_stream *root; /* the outermost one, which counts for all of its parts: */
    uint64_t taken;  /* bytes that came from the source */
    uint64_t inflated;

    packing packing;
    z_stream z;
    ZSTD_DStream *zstd;
    bool member_over;   /* the inflater stands between two members */
    unsigned char *raw; /* what was read and not yet inflated */
    size_t raw_at, raw_n;
    bool raw_end;

    unsigned char *window; /* what is ready */
    size_t at, n;
    uint64_t delivered;
    const tv_err *damage;
};

/* ---- the source ---- */

static const tv_err *read_fd(tv_stream *s, unsigned char *to, size_t n, size_t *got)
{
    ssize_t k;
    while ((k = read(s->fd, to, n)) < 0) {
        struct pollfd writer = {.fd = s->fd, .events = POLLIN};
        if (errno == EAGAIN && s->waits) /* a pipe whose other end has not written yet */
            (void)poll(&writer, 1, -1);
        else if (errno != EINTR)
            break;
    }
    if (k < 0)
        return tv_in_file(TV_FAIL(s->a, TV_UNAVAILABLE, "stream.read", N_("cannot be read: {why}"),
                                  tv_arg_str("why", tv_errno_text(s->a, errno))),
                          s->name);
    *got = (size_t)k;
    return NULL;
}

static const tv_err *read_part(tv_stream *s, unsigned char *to, size_t n, size_t *got)
{
    tv_stream *o = s->outer;
    *got = 0;
    tv_bytes_view head;
    if (!s->outer_left)
        return NULL;
    TV_TRY(tv_stream_peek(o, 1, &head));
    size_t k = o->n - o->at;
    k = k < n ? k : n;
    k = k < s->outer_left ? k : (size_t)s->outer_left;
    memcpy(to, o->window + o->at, k);
    o->at += k;
    o->delivered += k;
    s->outer_left -= k;
    *got = k;
    return NULL;
}

static const tv_err *read_source(tv_stream *s, unsigned char *to, size_t n, size_t *got)
{
    if (s->outer)
        return read_part(s, to, n, got);
    if (s->fd >= 0)
        return read_fd(s, to, n, got);
    const size_t k = s->memory.n < n ? s->memory.n : n;
    if (k)
        memcpy(to, s->memory.p, k);
    s->memory.p += k;
    s->memory.n -= k;
    *got = k;
    return NULL;
}

static const tv_err *fill_raw(tv_stream *s)
{
    if (s->raw_at < s->raw_n || s->raw_end)
        return NULL;
    s->raw_at = s->raw_n = 0;
    TV_TRY(read_source(s, s->raw, piece_bytes, &s->raw_n));
    s->taken += s->raw_n;
    s->raw_end = s->raw_n == 0;
    return NULL;
}

/* ---- inflating ---- */

static void free_zstd(void *zstd)
{
    (void)ZSTD_freeDStream(zstd);
}

static void damaged(tv_stream *s, const char *why)
{
    s->damage = tv_fail_at(
        s->a, TV_INPUT,
        TV_TEXT(s->a, "stream.damaged", N_("its compressed data {why}"), tv_arg_word("why", why)),
        s->name, s->delivered + s->n);
    s->raw_end = true;
    s->raw_at = s->raw_n;
}

/* One step of zlib; false: nothing more comes. */
static bool step_gzip(tv_stream *s, size_t room)
{
    if (s->member_over) {
        if (s->packing == DEFLATE || s->raw_n - s->raw_at < 2 || s->raw[s->raw_at] != 0x1f)
            return false; /* padding behind the last member */
        (void)inflateReset(&s->z);
        s->member_over = false;
    }
    s->z.next_in = s->raw + s->raw_at;
    s->z.avail_in = (unsigned)(s->raw_n - s->raw_at);
    s->z.next_out = s->window + s->n;
    s->z.avail_out = (unsigned)room;
    const int status = inflate(&s->z, Z_NO_FLUSH);
    s->n += room - s->z.avail_out;
    s->raw_at = s->raw_n - s->z.avail_in;
    s->member_over = status == Z_STREAM_END;
    if (status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR)
        return true;
    damaged(s, N_("is damaged"));
    return false;
}

static bool step_zstd(tv_stream *s, size_t room)
{
    ZSTD_inBuffer in = {s->raw, s->raw_n, s->raw_at};
    ZSTD_outBuffer out = {s->window + s->n, room, 0};
    const size_t status = ZSTD_decompressStream(s->zstd, &out, &in);
    s->n += out.pos;
    s->raw_at = in.pos;
    if (ZSTD_isError(status)) {
        damaged(s, N_("is damaged"));
        return false;
    }
    s->member_over = status == 0;
    return true;
}

/* What is packed within what is packed counts together: a bomb hides in layers. */
static bool is_bomb(const tv_stream *root)
{
    return root->inflated > TV_LIMIT_INFLATE_FREE_BYTES &&
           root->inflated / TV_LIMIT_INFLATE_RATIO > root->taken;
}

static bool step(tv_stream *s, size_t room)
{
    const size_t before = s->n;
    const bool more = s->packing == ZSTD ? step_zstd(s, room) : step_gzip(s, room);
    s->root->inflated += s->n - before;
    if (!is_bomb(s->root))
        return more;
    s->n = before;
    damaged(s, N_("inflates far beyond what data does"));
    return false;
}

/* Refills the window behind what is not delivered yet. */
static const tv_err *inflate_more(tv_stream *s, size_t enough)
{
    while (s->n - s->at < enough) {
        TV_TRY(fill_raw(s));
        if (s->raw_at == s->raw_n && s->raw_end) {
            if (!s->member_over && !s->damage)
                damaged(s, N_("ends too early"));
            return NULL;
        }
        if (!step(s, piece_bytes - s->n))
            return NULL;
    }
    return NULL;
}

static const tv_err *copy_more(tv_stream *s, size_t enough)
{
    while (s->n - s->at < enough && !s->raw_end) {
        const size_t left = s->raw_n - s->raw_at; /* what the look at the first bytes left */
        size_t got = left < piece_bytes - s->n ? left : piece_bytes - s->n;
        if (left) {
            memcpy(s->window + s->n, s->raw + s->raw_at, got);
            s->raw_at += got;
        } else {
            TV_TRY(read_source(s, s->window + s->n, piece_bytes - s->n, &got));
            s->raw_end = got == 0;
            s->taken += got;
        }
        s->n += got;
    }
    return NULL;
}

/* At least `enough` bytes in the window, where there are so many. */
static const tv_err *fill(tv_stream *s, size_t enough)
{
    if (s->n - s->at >= enough)
        return NULL;
    if (s->at) {
        memmove(s->window, s->window + s->at, s->n - s->at);
        s->n -= s->at;
        s->at = 0;
    }
    return s->packing == PLAIN ? copy_more(s, enough) : inflate_more(s, enough);
}

/* ---- opening ---- */

static const tv_err *begin_zlib(tv_stream *s, packing how, int window_bits)
{
    s->packing = how;
    s->z = (z_stream){.zalloc = tv_zlib_alloc, .zfree = tv_zlib_free, .opaque = s->a};
    if (inflateInit2(&s->z, window_bits) != Z_OK)
        return TV_FAIL0(s->a, TV_SYSTEM, "stream.zlib", N_("zlib does not start"));
    return NULL;
}

static const tv_err *begin(tv_stream *s)
{
    s->raw = tv_new(s->a, unsigned char, piece_bytes);
    s->window = tv_new(s->a, unsigned char, piece_bytes);
    while (s->raw_n < 4 && !s->raw_end) {
        size_t got = 0;
        TV_TRY(read_source(s, s->raw + s->raw_n, piece_bytes - s->raw_n, &got));
        s->raw_end = got == 0;
        s->raw_n += got;
        s->taken += got;
    }
    static const unsigned char zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    if (s->raw_n >= 3 && s->raw[0] == 0x1f && s->raw[1] == 0x8b && s->raw[2] == 8) {
        TV_TRY(begin_zlib(s, GZIP, 16 + MAX_WBITS));
    } else if (s->raw_n >= 4 && memcmp(s->raw, zstd_magic, 4) == 0) {
        s->packing = ZSTD;
        s->zstd = ZSTD_createDStream();
        if (!s->zstd)
            return TV_FAIL0(s->a, TV_SYSTEM, "stream.zstd", N_("zstd does not start"));
        tv_defer(s->a, free_zstd, s->zstd);
    }
    s->raw_end = s->raw_end && s->raw_at == s->raw_n;
    return NULL;
}

static tv_stream *made(tv_arena *a, tv_str name)
{
    tv_stream *s = tv_new(a, tv_stream, 1);
    s->a = a;
    s->name = name;
    s->fd = -1;
    s->root = s;
    return s;
}

static void close_fd(void *stream)
{
    (void)close(((tv_stream *)stream)->fd);
}

const tv_err *tv_stream_open(tv_arena *a, tv_str path, tv_stream **out)
{
    tv_stream *s = made(a, path);
    *out = s;
    if (tv_str_is(path, "-")) {
        s->fd = STDIN_FILENO;
        s->waits = true;
        return begin(s);
    }
    s->fd = open(tv_cstr(a, path), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (s->fd < 0)
        return tv_in_file(TV_FAIL(a, TV_UNAVAILABLE, "stream.open", N_("cannot be opened: {why}"),
                                  tv_arg_str("why", tv_errno_text(a, errno))),
                          path);
    tv_defer(a, close_fd, s);
    /* A device may never end, and reading one may have effects. */
    struct stat st;
    if (fstat(s->fd, &st) != 0 || S_ISBLK(st.st_mode) || (S_ISCHR(st.st_mode) && !isatty(s->fd)))
        return tv_in_file(TV_FAIL0(a, TV_UNAVAILABLE, "stream.device", N_("is a device, no file")),
                          path);
    s->waits = !S_ISREG(st.st_mode);
    return begin(s);
}

const tv_err *tv_stream_over(tv_arena *a, tv_str name, tv_bytes_view bytes, tv_stream **out)
{
    tv_stream *s = made(a, name);
    s->memory = bytes;
    *out = s;
    return begin(s);
}

const tv_err *tv_stream_deflated(tv_arena *a, tv_str name, tv_bytes_view bytes, tv_stream **out)
{
    tv_stream *s = made(a, name);
    s->memory = bytes;
    *out = s;
    s->raw = tv_new(a, unsigned char, piece_bytes);
    s->window = tv_new(a, unsigned char, piece_bytes);
    return begin_zlib(s, DEFLATE, -MAX_WBITS);
}

const tv_err *tv_stream_part(tv_arena *a, tv_stream *outer, tv_str name, uint64_t n,
                             tv_stream **out)
{
    tv_stream *s = made(a, name);
    s->outer = outer;
    s->root = outer->root;
    s->outer_left = n;
    *out = s;
    return begin(s);
}

/* ---- reading ---- */

const tv_err *tv_stream_next(tv_stream *s, tv_bytes_view *piece)
{
    TV_TRY(fill(s, 1));
    *piece = (tv_bytes_view){s->window + s->at, s->n - s->at};
    s->delivered += piece->n;
    s->at = s->n;
    return NULL;
}

const tv_err *tv_stream_peek(tv_stream *s, size_t n, tv_bytes_view *head)
{
    n = n < peek_bytes ? n : peek_bytes;
    TV_TRY(fill(s, n));
    const size_t have = s->n - s->at;
    *head = (tv_bytes_view){s->window + s->at, have < n ? have : n};
    return NULL;
}

/* Delivers at most n bytes of what is ready. */
static const tv_err *some(tv_stream *s, uint64_t n, tv_bytes_view *piece)
{
    TV_TRY(fill(s, 1));
    const size_t have = s->n - s->at;
    *piece = (tv_bytes_view){s->window + s->at, have < n ? have : (size_t)n};
    s->delivered += piece->n;
    s->at += piece->n;
    return NULL;
}

const tv_err *tv_stream_read(tv_stream *s, void *to, size_t n, size_t *got)
{
    *got = 0;
    while (*got < n) {
        tv_bytes_view piece;
        TV_TRY(some(s, n - *got, &piece));
        if (!piece.n)
            break;
        memcpy((char *)to + *got, piece.p, piece.n);
        *got += piece.n;
    }
    return NULL;
}

const tv_err *tv_stream_take(tv_stream *s, tv_arena *a, size_t n, tv_str *bytes)
{
    tv_buf b = tv_buf_in(a);
    while (b.n < n) {
        tv_bytes_view piece;
        TV_TRY(some(s, n - b.n, &piece));
        if (!piece.n)
            break;
        tv_put(&b, (tv_str){(const char *)piece.p, piece.n});
    }
    *bytes = tv_buf_str(&b);
    return NULL;
}

const tv_err *tv_stream_skip(tv_stream *s, uint64_t n)
{
    while (n) {
        tv_bytes_view piece;
        TV_TRY(some(s, n, &piece));
        if (!piece.n)
            break;
        n -= piece.n;
    }
    return NULL;
}

uint64_t tv_stream_at(const tv_stream *s)
{
    return s->delivered;
}

bool tv_stream_is_packed(const tv_stream *s)
{
    return s->packing != PLAIN;
}

const tv_err *tv_stream_damage(const tv_stream *s)
{
    return s->damage;
}
