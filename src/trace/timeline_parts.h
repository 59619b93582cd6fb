/* What the timeline's own files share: what was gathered while reading, and what the sweep makes
 * of it. */
#ifndef TV_TIMELINE_PARTS_H
#define TV_TIMELINE_PARTS_H

#include "timeline.h"
#include "timeline_store.h"

typedef struct tv_span_ns {
    int64_t start, end;
} tv_span_ns;

typedef struct tv_spans {
    tv_span_ns *v;
    size_t n, cap;
    uint64_t more; /* that found no room */
} tv_spans;

/* One name with what it took. */
typedef struct tv_named_work {
    uint64_t hash;
    size_t length; /* of the whole name; s is cut */
    tv_str s;
    tv_kernel_class is;
    uint64_t n;
    int64_t sum_ns, most_ns;
} tv_named_work;

typedef struct tv_names {
    tv_named_work *v;
    size_t n, cap;
} tv_names;

typedef struct tv_step_mark {
    int64_t number;
    tv_span_ns at;
} tv_step_mark;

typedef struct tv_step_marks {
    tv_step_mark *v;
    size_t n, cap;
} tv_step_marks;

/* What the device does at one time, as bits of a mask. */
enum {
    TV_DOES_GEMM = 1,
    TV_DOES_CONV = 2,
    TV_DOES_ATTENTION = 4,
    TV_DOES_OTHER = 8,
    TV_DOES_COMMUNICATION = 16,
    TV_DOES_COPY = 32,
    TV_DOES_COMPUTE = 15,
    TV_GROUPS = 6,
    TV_MASKS = 64,
};

typedef struct tv_copies {
    uint64_t n;
    uint64_t pageable, pinned;
    int64_t ns, pageable_ns;
    double bytes, pageable_bytes; /* of those that tell */
    uint64_t with_bytes;
    double large_bytes; /* pinned and at least TV_COPY_LARGE_BYTES */
    int64_t large_ns;
    uint64_t small; /* pageable or not, under TV_COPY_SMALL_BYTES */
} tv_copies;

/* Durations by their logarithm, sixteen to an octave: a median to 3 %. */
enum { TV_HISTOGRAM = 1024 };
typedef struct tv_histogram {
    uint64_t v[TV_HISTOGRAM];
    uint64_t n;
} tv_histogram;

void tv_histogram_add(tv_histogram *h, int64_t ns);
double tv_histogram_quantile(const tv_histogram *h, double share); /* seconds; NaN: empty */

/* A call's name with what it does; a runtime has some hundred calls, a profile a dozen. */
enum { TV_CALL_NAMES = 64 };
typedef struct tv_call_name {
    tv_str name;
    tv_call_kind kind;
} tv_call_name;

enum { TV_COMM_NAMES = 12, TV_COMM_KEPT = 256, TV_DTYPES = 8, TV_MEMORY_BINS = 256 };

typedef struct tv_comm_sum {
    tv_str name;
    uint64_t n, sized, small;
    double bytes, wire_bytes; /* bytes times the factor of the algorithm: bus bandwidth */
    double sized_s;
    int64_t ns;
} tv_comm_sum;

/* Allocated bytes by time: the lowest and the highest of each of equal spans. */
typedef struct tv_memory_line {
    bool seen;
    int64_t begin, bin_ns;
    size_t n; /* bins in use */
    double low[TV_MEMORY_BINS], high[TV_MEMORY_BINS];
    double peak_bytes, peak_reserved_bytes;
    uint64_t events;
} tv_memory_line;

typedef struct tv_flops {
    tv_str dtype;
    double flop;
} tv_flops;

struct tv_timeline {
    tv_arena *a;
    tv_mark blank; /* of the arena, before the timeline itself */
    tv_store *store;
    tv_names names;
    uint32_t *slots; /* a hash table of names, a power of two */
    size_t n_slots;
    size_t name_bytes;

    bool begun;
    int64_t bias;              /* what is taken off a start before it is packed */
    int64_t first_ns, last_ns; /* of device work, without the bias */
    uint64_t dropped;          /* outside of the span that is kept, or without room */
    uint64_t kernels, sets;
    int64_t kernel_ns, work_ns;
    uint64_t comm_kernels;
    int64_t by_class_ns[TV_CLASSES];
    uint64_t by_class[TV_CLASSES];
    uint32_t devices[TV_MOST_DEVICES]; /* as the profile numbers them */
    unsigned n_devices;
    bool negative_streams;
    tv_copies copies[TV_COPY_SET + 1];
    tv_histogram kernel_durs;

    tv_spans loader, saves;
    int64_t loader_ns;
    uint64_t loader_single, loader_multi, loader_any;
    int64_t save_ns;
    tv_call_name call_names[TV_CALL_NAMES];
    size_t n_call_names, last_call_name;
    uint64_t calls, launches, waits, items, mallocs;
    int64_t call_ns, wait_ns, item_ns, launch_ns, malloc_ns;
    tv_str longest_call;
    int64_t longest_call_ns;
    bool host_seen;
    tv_span_ns host; /* the first and the last of the host's events */

    tv_step_marks steps, device_steps;

    tv_comm_sum comm[TV_COMM_NAMES];
    size_t n_comm;
    uint64_t collectives;
    double comm_in_elements;
    tv_str comm_dtype; /* of all of them; empty: none or several */
    bool comm_dtypes;  /* several */
    double comm_group;
    bool comm_groups;

    tv_memory_line memory[TV_MOST_DEVICES];
    double flop[TV_CLASSES];
    uint64_t flop_ops[TV_CLASSES];
    tv_flops dtypes[TV_DTYPES];
    size_t n_dtypes;
};

/* What the sweep finds. Times of several devices are summed; `devices` says of how many. */
typedef struct tv_swept {
    int64_t all_ns[TV_MASKS];    /* over the whole profile */
    int64_t window_ns[TV_MASKS]; /* over the steps */
    tv_span_ns window;           /* the steps; without steps the device's span */
    bool steps;
    unsigned devices;
    int64_t data_ns;      /* no work, and the host waits for a batch: over the window */
    int64_t host_ns;      /* no work, and the host had not yet launched what came next */
    int64_t longest_idle; /* a gap of the window */
    uint64_t gaps;        /* of a microsecond and more */
    tv_histogram delays;  /* launch to start */
    struct {
        int64_t start, dur;
    } comm[TV_COMM_KEPT]; /* the first communication kernels in the order of time */
    size_t n_comm;
    uint64_t graph_kernels;
} tv_swept;

void tv_timeline_sweep(tv_timeline *t, tv_swept *out);

/* Sorts spans, and joins those that meet. */
void tv_spans_merge(tv_spans *s);

#endif
