/* Bytes piece by piece: a file, standard input or memory, inflated as they come where they are
 * gzip or zstd (told by their first bytes). Memory does not grow with the input. */
#ifndef TV_STREAM_H
#define TV_STREAM_H

#include "base/file.h"

typedef struct tv_stream tv_stream;

/* Opens a file ("-": standard input); closed with the arena. Of what is no file only pipes and
 * terminals are read. A stream that inflates beyond TV_LIMIT_INFLATE_RATIO, with everything that is
 * packed within it, ends as damaged. */
const tv_err *tv_stream_open(tv_arena *a, tv_str path, tv_stream **out) TV_CHECKED;
/* Over bytes in memory, which must outlive the stream. */
const tv_err *tv_stream_over(tv_arena *a, tv_str name, tv_bytes_view bytes,
                             tv_stream **out) TV_CHECKED;
/* Over bytes that are deflated without a header, as the entries of a zip archive are. */
const tv_err *tv_stream_deflated(tv_arena *a, tv_str name, tv_bytes_view bytes,
                                 tv_stream **out) TV_CHECKED;
/* The next n bytes of another stream, as a stream of its own (a member of an archive), inflated
 * where they are compressed themselves. The outer one must not be read before the part is. */
const tv_err *tv_stream_part(tv_arena *a, tv_stream *outer, tv_str name, uint64_t n,
                             tv_stream **out) TV_CHECKED;

/* The next piece, valid until the next call; empty at the end. Damage after some bytes were
 * delivered ends the stream; tv_stream_damage then says so. */
const tv_err *tv_stream_next(tv_stream *s, tv_bytes_view *piece) TV_CHECKED;
/* Up to n bytes (at most 64 KiB) that will be delivered next, without taking them. */
const tv_err *tv_stream_peek(tv_stream *s, size_t n, tv_bytes_view *head) TV_CHECKED;
/* Exactly n bytes, or fewer at the end, copied to memory of the caller's. */
const tv_err *tv_stream_read(tv_stream *s, void *to, size_t n, size_t *got) TV_CHECKED;
/* The same into the arena. */
const tv_err *tv_stream_take(tv_stream *s, tv_arena *a, size_t n, tv_str *bytes) TV_CHECKED;
/* Passes over what is left of n bytes. */
const tv_err *tv_stream_skip(tv_stream *s, uint64_t n) TV_CHECKED;

uint64_t tv_stream_at(const tv_stream *s);          /* bytes delivered so far, inflated */
bool tv_stream_is_packed(const tv_stream *s);       /* it is compressed */
const tv_err *tv_stream_damage(const tv_stream *s); /* NULL: whole so far */

#endif
