/* tar archives (ustar, GNU and pax names) as they stream by: one member after another. */
#ifndef TV_TAR_H
#define TV_TAR_H

#include "stream.h"

typedef struct tv_tar {
    tv_arena *a;
    tv_stream *stream;
    tv_str name;      /* of the member that was just entered */
    uint64_t bytes;   /* its size */
    uint64_t next_at; /* where the next header begins in the stream */
} tv_tar;

/* True where the bytes begin as a tar archive does (a header whose checksum holds). */
bool tv_tar_is(tv_bytes_view head);
tv_tar tv_tar_open(tv_arena *a, tv_stream *stream);
/* Enters the next regular file; *more is false at the end. What was left of the last one is passed
 * over. Its bytes are the next ones of the stream. A damaged header ends the archive. */
const tv_err *tv_tar_next(tv_tar *tar, bool *more) TV_CHECKED;

#endif
