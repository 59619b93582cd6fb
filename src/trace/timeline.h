/* A profile's timeline, whoever wrote it: the work of the devices and the waits of the host go in,
 * in any order; the split of the step, unions, overlaps, the top kernels and what else the rules
 * ask of a sighting of the kind `trace` come out (docs/facts/trace.md). Times are whole nanoseconds
 * of one clock. A piece of device work takes 32 bytes; past TV_LIMIT_TIMELINE_BYTES sorted runs
 * lie in a temporary file. */
#ifndef TV_TIMELINE_H
#define TV_TIMELINE_H

#include "desc/note.h"
#include "kernel_class.h"

typedef struct tv_timeline tv_timeline;

/* Everything lies in an arena of its own, below a, that tv_timeline_facts empties. */
tv_timeline *tv_timeline_open(tv_arena *a);

/* ---- what went on ---- */

/* The number of a kernel's name, for tv_work; it is classified once. */
uint32_t tv_timeline_name(tv_timeline *t, tv_str name);
tv_kernel_class tv_timeline_class(const tv_timeline *t, uint32_t name);

typedef enum tv_copy_way {
    TV_COPY_NONE, /* a kernel */
    TV_COPY_OTHER,
    TV_COPY_HTOD,
    TV_COPY_DTOH,
    TV_COPY_DTOD,
    TV_COPY_PTOP,
    TV_COPY_SET, /* memset */
} tv_copy_way;

/* One kernel, copy or set on a device. */
typedef struct tv_work {
    uint32_t name;
    int64_t start_ns;
    int64_t dur_ns;
    uint32_t device;
    int64_t stream;
    uint64_t call; /* the correlation number of the API call that put it there; 0: unknown */
    tv_copy_way way;
    bool pageable; /* the host's end of the copy is no pinned memory */
    bool pinned;
    double bytes; /* of a copy; NaN: not told */
} tv_work;

void tv_timeline_work(tv_timeline *t, const tv_work *w);

/* What the host did. */
typedef enum tv_host_kind {
    TV_HOST_CALL,          /* a runtime or driver call; `call` links it to its work */
    TV_HOST_SYNC,          /* a call that waits for the device: cudaStreamSynchronize ... */
    TV_HOST_LOADER,        /* waits for a batch; which loader is not told */
    TV_HOST_LOADER_SINGLE, /* loads the batch itself */
    TV_HOST_LOADER_MULTI,  /* waits for its workers */
    TV_HOST_SAVE,          /* writes a checkpoint */
    TV_HOST_ITEM,          /* reads a number back: .item(), _local_scalar_dense */
} tv_host_kind;

void tv_timeline_host(tv_timeline *t, tv_host_kind kind, tv_str name, int64_t start_ns,
                      int64_t dur_ns, uint64_t call);

/* True for calls that wait for the device, by name: any of CUDA's, HIP's and their drivers'. */
bool tv_call_waits(tv_str name);

/* What a call does, by its name. */
typedef struct tv_call_kind {
    bool waits;     /* for the device */
    bool launches;  /* a kernel or a graph */
    bool puts_work; /* a kernel, a copy or a set */
    bool allocates; /* memory of the device, and waits for it */
} tv_call_kind;

/* The same for each call of a profile: names are told apart once. */
tv_call_kind tv_timeline_call_kind(tv_timeline *t, tv_str name);

/* One step; of the host's and the device's mark of the same number both may be given. */
void tv_timeline_step(tv_timeline *t, int64_t number, int64_t start_ns, int64_t dur_ns,
                      bool on_device);

/* A collective whose profile tells its size. Sizes are of this rank. */
typedef struct tv_collective {
    tv_str name; /* "allreduce", "_allgather_base", ... */
    int64_t start_ns;
    int64_t dur_ns;
    double in_elements;  /* NaN: not told */
    double out_elements; /* NaN: not told */
    tv_str dtype;
    double group_size; /* NaN: not told */
} tv_collective;

void tv_timeline_collective(tv_timeline *t, const tv_collective *c);

/* The allocator's own count, at one time. */
void tv_timeline_memory(tv_timeline *t, uint32_t device, int64_t at_ns, double allocated_bytes,
                        double reserved_bytes);

/* Multiply-adds times two of one operation whose shapes are told. */
void tv_timeline_flop(tv_timeline *t, tv_kernel_class kind, tv_str dtype, double flop);

/* ---- what comes of it ---- */

/* Sorts and sweeps, writes the facts and gives the memory back. The timeline is over then. */
void tv_timeline_facts(tv_timeline *t, tv_arena *a, tv_note *facts);

/* The same of a profile that holds nothing but memory. */
void tv_timeline_memory_facts(tv_timeline *t, tv_arena *a, tv_note *facts);

#endif
