/* One arena per request: memory that is given out piece by piece and freed whole.
 * Knows nothing of what it holds. Only this module calls malloc. */
#ifndef TV_ARENA_H
#define TV_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tv_arena tv_arena;

/* A place to return to (see tv_arena_rewind). */
typedef struct tv_mark {
    void *block;
    void *later;
    size_t used;
    size_t total;
} tv_mark;

/* Opens an arena that may hand out budget_bytes. NULL: the system has no memory. */
tv_arena *tv_arena_open(size_t budget_bytes);

/* A second arena for scratch: same landing place, closed with its parent. Never NULL. */
tv_arena *tv_arena_child(tv_arena *parent, size_t budget_bytes);

/* Runs the deferred list, newest first, and frees everything. */
void tv_arena_close(tv_arena *a);

/* Why the guard is reached: the value that setjmp yields there. */
enum { TV_SPENT_BUDGET = 1, TV_SPENT_SYSTEM = 2 };

/* The door's landing place for a spent budget; without one a spent budget aborts. */
void tv_arena_guard(tv_arena *a, jmp_buf *landing);

/* count·size zeroed bytes, aligned for any type. Never NULL: a spent budget goes to the guard. */
void *tv_alloc(tv_arena *a, size_t count, size_t size);
#define tv_new(a, type, count) ((type *)tv_alloc((a), (count), sizeof(type)))

/* A larger copy of an array; *cap grows by half or more. */
void *tv_grow(tv_arena *a, const void *old, size_t used, size_t *cap, size_t size);

/* Appends a zeroed element to a list {T *v; size_t n, cap;} and yields its address. */
#define tv_push(a, list)                                                                           \
    ((void)((list)->n == (list)->cap ? ((list)->v = tv_grow((a), (list)->v, (list)->n,             \
                                                            &(list)->cap, sizeof *(list)->v))      \
                                     : (list)->v),                                                 \
     &(list)->v[(list)->n++])

/* Calls run(what) when the arena closes: for files, maps and handles. */
void tv_defer(tv_arena *a, void (*run)(void *), void *what);

/* Scratch use: everything allocated after the mark is given back, and what was deferred after it
 * is run: files and maps opened since are closed. */
tv_mark tv_arena_mark(const tv_arena *a);
void tv_arena_rewind(tv_arena *a, tv_mark mark);

/* Bytes handed out now, and the most at any time. */
size_t tv_arena_used(const tv_arena *a);
size_t tv_arena_peak(const tv_arena *a);

/* Tests: the k-th allocation from now on behaves as a spent budget (0 turns it off). */
void tv_arena_fail_at(tv_arena *a, uint64_t k);

#endif
