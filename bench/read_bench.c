/* How long and with how much memory a model's files are read: read_bench PATH [TIMES].
 * Prints the best and the first time; the memory is the process's own peak. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/limits.h"
#include "read/reader.h"

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double read_once(const char *path, const char **what, size_t *tensors, size_t *peak)
{
    const double start = now_s();
    tv_arena *a = tv_arena_open(TV_LIMIT_ARENA_BYTES);
    if (!a)
        abort();
    const tv_source *s = NULL;
    const tv_err *e = tv_read_model(a, tv_str_of(path), &s);
    *what = e ? e->what.id : "read";
    *tensors = s ? s->n_tensors : 0;
    *peak = tv_arena_peak(a);
    tv_arena_close(a);
    return now_s() - start;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const tv_double_read times = tv_str_double(tv_str_of(argc > 2 ? argv[2] : "10"));
    const char *what = "";
    size_t tensors = 0, peak = 0;
    const double first = read_once(argv[1], &what, &tensors, &peak);
    struct rusage used;
    (void)getrusage(RUSAGE_SELF, &used);
    double best = first;
    for (int i = 1; i < (int)times.v; i++) {
        const double t = read_once(argv[1], &what, &tensors, &peak);
        best = t < best ? t : best;
    }
    (void)printf("%s: %s, %zu tensors, first %.1f ms, best %.1f ms, peak RSS %.1f MiB, arena %.1f "
                 "MiB\n",
                 argv[1], what, tensors, first * 1e3, best * 1e3, (double)used.ru_maxrss / 1024,
                 (double)peak / 1048576);
    return 0;
}
