/* Arithmetic on shapes alone: broadcasting, windows, reshapes, slices. Knows no tensors and no
 * operators; false is "these shapes do not go together". */
#ifndef TV_PROGRAM_SHAPE_H
#define TV_PROGRAM_SHAPE_H

#include "program_run.h"

/* Elements as an integer; -1: no rank of its own, or beyond 2^62. */
int64_t tv_shape_count(const tv_shape *s);
/* The product, at most 2^62. */
int64_t tv_shape_times(int64_t x, int64_t y);
bool tv_shape_same(const tv_shape *x, const tv_shape *y);
tv_shape tv_shape_of(uint32_t rank, const int64_t *d);
bool tv_shape_push(tv_shape *s, int64_t d); /* false: the rank is at its limit */

/* -1 is the last axis. */
bool tv_shape_axis(int64_t axis, uint32_t rank, uint32_t *out);
/* A list of axes as a set; none: all of them. */
bool tv_shape_axes(const int64_t *axes, size_t n, uint32_t rank, bool set[TV_LIMIT_RANK]);

/* NumPy's broadcasting. out may be x or y. */
bool tv_shape_broadcast(const tv_shape *x, const tv_shape *y, tv_shape *out);
bool tv_shape_reshape(const tv_shape *x, const int64_t *target, size_t n, bool zero_copies,
                      tv_shape *out);
bool tv_shape_reduce(const tv_shape *x, const int64_t *axes, size_t n, bool keep, tv_shape *out);
bool tv_shape_squeeze(const tv_shape *x, const int64_t *axes, size_t n, tv_shape *out);
bool tv_shape_unsqueeze(const tv_shape *x, const int64_t *axes, size_t n, tv_shape *out);
/* order NULL: reversed. */
bool tv_shape_permute(const tv_shape *x, const int64_t *order, size_t n, tv_shape *out);

/* Elements that NumPy's slice of an axis of `size` takes, and its first element. */
int64_t tv_shape_slice(int64_t size, int64_t start, int64_t end, int64_t step, int64_t *first);

/* One axis of a sliding window; -1: nothing fits. Padding as stated unless mode says otherwise. */
int64_t tv_shape_slide(const tv_window *w, uint32_t axis, int64_t size);
/* The same backwards, for transposed convolutions. */
int64_t tv_shape_slide_back(const tv_window *w, uint32_t axis, int64_t size, int64_t extra);

#endif
