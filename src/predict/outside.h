/* Memory outside the framework's allocator, and inside it without being a tensor: CUDA context,
 * collective library buffers, library workspaces. */
#ifndef TV_OUTSIDE_H
#define TV_OUTSIDE_H

#include "predict.h"

typedef struct tv_range {
    double v, lo, hi;
} tv_range;

/* Context and lazily loaded kernels of one process on a card. */
tv_range tv_outside_context(const tv_device *device);

/* Buffers of the collective library for the communicators of a job. 0 for one card. */
tv_range tv_outside_nccl(const tv_machine *machine, double communicators);

/* cuBLAS workspaces in the framework's pool: one per handle; backward runs in a thread of its own.
 */
double tv_outside_cublas(const tv_device *device, bool trains);

#endif
