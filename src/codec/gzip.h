/* gzip (RFC 1952): whole texts, bounded by the caller. Knows nothing of what they hold. */
#ifndef TV_GZIP_H
#define TV_GZIP_H

#include "base/file.h"

/* True where the bytes begin as a gzip member does. */
bool tv_gzip_is(tv_bytes_view bytes);

/* Inflates every member of a gzip file into the arena; more than limit bytes is an error, and so
 * are bytes behind the last member. file names the input in messages. */
const tv_err *tv_gzip_read(tv_arena *a, tv_str file, tv_bytes_view bytes, size_t limit,
                           tv_str *text) TV_CHECKED;

#endif
