/* What one event of a profile means: which profiler's words its category and names are. Fills a
 * timeline and counts. Inside the reader of traces. */
#ifndef TV_CHROME_EVENT_H
#define TV_CHROME_EVENT_H

#include "event_scan.h"
#include "timeline.h"

enum { TV_TRACE_CATS = 64, TV_TRACE_LANES = 4096, TV_TRACE_SYNC_KINDS = 12, TV_PHASES = 128 };

/* What an event is, by its category. */
typedef enum tv_event_is {
    TV_EVENT_UNTOLD, /* no category, or one that says nothing: the process and thread decide */
    TV_EVENT_PASSED, /* counted only */
    TV_EVENT_OP,
    TV_EVENT_PYTHON,
    TV_EVENT_RUNTIME,
    TV_EVENT_KERNEL,
    TV_EVENT_MEMCPY,
    TV_EVENT_MEMSET,
    TV_EVENT_SYNC,
    TV_EVENT_MARK,        /* the user's, or the profiler's steps */
    TV_EVENT_DEVICE_MARK, /* the same on the device's rows */
    TV_EVENT_STEP,
    TV_EVENT_LOADER,
    TV_EVENT_MEMORY,
} tv_event_is;

typedef struct tv_trace_cat {
    tv_str name;
    tv_event_is is;
    uint64_t n;         /* of all phases */
    uint64_t completes; /* of those with a duration */
} tv_trace_cat;

/* A process or thread by its name: what its events without a category are. */
typedef struct tv_trace_lane {
    uint64_t hash; /* 0: free */
    tv_event_is is;
    uint32_t device;
    bool steps;
} tv_trace_lane;

typedef struct tv_trace_tally {
    tv_arena *a;
    tv_timeline *timeline;
    tv_trace_cat cats[TV_TRACE_CATS];
    size_t n_cats;
    size_t last_cat; /* events of a kind come in a row */
    tv_trace_lane *lanes;
    size_t n_lanes;
    uint64_t events;
    uint64_t phases[TV_PHASES];
    uint64_t syncs;
    tv_str sync_kinds[TV_TRACE_SYNC_KINDS];
    size_t n_sync_kinds;
    bool negative_streams;
    bool fractions; /* a time stamp with decimals */
    bool spanned;
    int64_t first_ns, last_ns; /* of everything with a duration */
    uint64_t too_long;         /* durations that no profile has */
    uint64_t cuda_calls, hip_calls;
    uint64_t gemm_ops;
    uint64_t replicas;      /* nn.DataParallel at work: scatter, replicate, gather */
    unsigned replica_kinds; /* a bit for each of their names */
    uint64_t searches;      /* for algorithms: cudnnFind and its like */
} tv_trace_tally;

void tv_trace_tally_open(tv_arena *a, tv_timeline *timeline, tv_trace_tally *out);
void tv_trace_count(tv_trace_tally *t, const tv_event *e);

#endif
