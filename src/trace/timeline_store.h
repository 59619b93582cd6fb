/* Records of device work and of the calls that launched it: packed, in chunks, sorted chunk by
 * chunk and merged; what does not fit in memory lies in a temporary file. Inside the timeline. */
#ifndef TV_TIMELINE_STORE_H
#define TV_TIMELINE_STORE_H

#include "base/arena.h"

/* One kernel, copy or set: 20 bytes. Start and duration are whole nanoseconds, the start from a
 * bias below the first event's. */
typedef struct tv_piece {
    uint32_t start_low;
    uint16_t start_high;
    uint16_t more; /* 6 bits of the device, 10 high bits of the duration */
    uint32_t dur_low;
    uint32_t link; /* before the join: the call's number; after it: start minus call, in units */
    uint32_t what; /* 20 bits of the name, 12 of flags */
} tv_piece;

/* One call that puts work on a device: 12 bytes. */
typedef struct tv_call {
    uint32_t number;
    uint32_t start_low;
    uint16_t start_high;
    uint16_t dur; /* in quarters of a microsecond, 16 ms at most */
} tv_call;

enum {
    TV_LINK_UNIT_NS = 32,
    TV_CALL_DUR_NS = 250,
    TV_MOST_DEVICES = 64,
    TV_PIECE_PAGEABLE = 1,
};
#define TV_LINK_UNKNOWN UINT32_MAX
#define TV_PIECE_MOST_NS (((int64_t)1 << 42) - 1)
#define TV_TIME_SPAN ((int64_t)1 << 48)

static inline int64_t tv_piece_start(const tv_piece *p)
{
    return (int64_t)((uint64_t)p->start_high << 32 | p->start_low);
}

static inline int64_t tv_piece_dur(const tv_piece *p)
{
    return (int64_t)((uint64_t)(p->more & 1023) << 32 | p->dur_low);
}

static inline unsigned tv_piece_device(const tv_piece *p)
{
    return p->more >> 10;
}

static inline uint32_t tv_piece_name(const tv_piece *p)
{
    return p->what >> 12;
}

static inline int64_t tv_call_start(const tv_call *c)
{
    return (int64_t)((uint64_t)c->start_high << 32 | c->start_low);
}

typedef struct tv_store tv_store;

tv_store *tv_store_open(tv_arena *a, size_t most_bytes);
/* False: no temporary file can be written where one is needed; the record is dropped. */
bool tv_store_piece(tv_store *s, const tv_piece *p);
void tv_store_call(tv_store *s, const tv_call *c);

/* Ends the adding: links what is not linked yet. The duration of the calls that put pageable
 * copies on a device is summed up on the way. */
void tv_store_end(tv_store *s);
int64_t tv_store_pageable_ns(const tv_store *s);
uint64_t tv_store_linked(const tv_store *s);
uint64_t tv_store_spilled_bytes(const tv_store *s);

/* The next piece in the order of starts; NULL at the end. After tv_store_end. */
const tv_piece *tv_store_next(tv_store *s);

#endif
