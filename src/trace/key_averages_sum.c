/* The rows of a torch.profiler table -> what the rules ask for. A share of the loader is taken of
 * the steps where the table has them, else of the CPU's whole time. */
#include "key_averages.h"

#include <math.h>
#include <string.h>

typedef enum loader_sort { LOADER_NONE, LOADER_SINGLE, LOADER_MULTI, LOADER_ANY } loader_sort;

typedef struct sums {
    loader_sort loader;
    const tv_note *loader_row;
    const tv_note *step_row;
    double launches, launch_s;
    double sync_s, syncs;
    double items; /* reads of one value from the device */
    double mallocs, malloc_s;
    double finds; /* searches for a convolution's algorithm */
    double self_sum_s;
    bool device_s; /* some device time is not zero */
} sums;

static bool begins(tv_str name, const char *with)
{
    return tv_str_starts(name, tv_str_of(with));
}

/* Names are cut at 55 characters, or where the user said. */
static loader_sort loader_of(tv_str name)
{
    if (begins(name, "enumerate(DataLoader)#_Single"))
        return LOADER_SINGLE;
    if (begins(name, "enumerate(DataLoader)#_Multi"))
        return LOADER_MULTI;
    if (begins(name, "enumerate(DataL") || tv_str_has(name, TV_S("train_dataloader_next")) ||
        tv_str_has(name, TV_S("get_train_batch")))
        return LOADER_ANY;
    return LOADER_NONE;
}

static double zero(double v)
{
    return isnan(v) ? 0 : v;
}

static double calls_of(const tv_note *row)
{
    return zero(tv_noted_num(row, "calls"));
}

static void add_runtime(sums *m, const tv_note *row, tv_str name)
{
    const double self_s = zero(tv_noted_num(row, "self_cpu_s"));
    if (begins(name, "cudaLaunchKernel") || begins(name, "hipLaunchKernel") ||
        begins(name, "cuLaunchKernel") || begins(name, "hipExtModuleLaunchKernel") ||
        begins(name, "hipModuleLaunchKernel") || begins(name, "cudaGraphLaunch")) {
        m->launches += calls_of(row);
        m->launch_s += self_s;
    }
    if (begins(name, "cudaDeviceSynchronize") || begins(name, "cudaStreamSynchronize") ||
        begins(name, "cudaEventSynchronize") || begins(name, "hipDeviceSynchronize") ||
        begins(name, "hipStreamSynchronize")) {
        m->syncs += calls_of(row);
        m->sync_s += self_s;
    }
    if (begins(name, "aten::_local_scalar_dense"))
        m->items += calls_of(row);
    if (tv_str_is(name, "cudaMalloc") || tv_str_is(name, "cudaFree") ||
        tv_str_is(name, "hipMalloc")) {
        m->mallocs += calls_of(row);
        m->malloc_s += self_s;
    }
    if (tv_str_has(name, TV_S("cudnnFind")) || tv_str_has(name, TV_S("cudnnGetConvolution")) ||
        tv_str_has(name, TV_S("miopenFindConvolution")))
        m->finds += calls_of(row);
}

static void add(sums *m, const tv_note *row, const char *device_total, const char *device_self)
{
    const tv_str name = tv_noted_str(row, "name");
    const loader_sort loader = loader_of(name);
    if (loader != LOADER_NONE && !m->loader_row) {
        m->loader = loader;
        m->loader_row = row;
    }
    if (begins(name, "ProfilerStep") && !m->step_row)
        m->step_row = row;
    add_runtime(m, row, name);
    m->self_sum_s += zero(tv_noted_num(row, "self_cpu_s"));
    m->device_s = m->device_s || zero(tv_noted_num(row, device_total)) > 0 ||
                  zero(tv_noted_num(row, device_self)) > 0;
}

static const char *device_name(tv_arena *a, const char *before, tv_str device, const char *after)
{
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, before);
    tv_put(&b, tv_str_lower(a, device));
    tv_puts(&b, after);
    return tv_cstr(a, tv_buf_str(&b));
}

static void copy_num(tv_arena *a, tv_note *to, const tv_note *from, const char *key)
{
    const tv_note *note = tv_noted(from, key);
    if (note && note->type == TV_NOTE_NUMBER)
        (void)tv_note_num(a, to, key, note->number);
}

static void note_step(tv_arena *a, tv_note *facts, const sums *m)
{
    if (!m->step_row)
        return;
    tv_note *step = tv_note_map(a, facts, "profilerstep");
    (void)tv_note_place(a, step, m->step_row->line, m->step_row->text);
    copy_num(a, step, m->step_row, "self_cpu_s");
    copy_num(a, step, m->step_row, "cpu_total_s");
    copy_num(a, step, m->step_row, "cpu_avg_s");
    copy_num(a, step, m->step_row, "self_cpu_frac");
    copy_num(a, step, m->step_row, "calls");
    const double total_s = tv_noted_num(m->step_row, "cpu_total_s");
    const double calls = tv_noted_num(m->step_row, "calls");
    if (calls > 0 && total_s > 0)
        (void)tv_note_num(a, facts, "step_s", total_s / calls);
}

/* The loader's share of the run. */
static double loader_share(const tv_note *facts, const sums *m)
{
    const double total_s = tv_noted_num(m->loader_row, "cpu_total_s");
    const double step_s = tv_noted_num(m->step_row, "cpu_total_s");
    if (step_s > 0 && total_s <= step_s)
        return total_s / step_s;
    const double frac = tv_noted_num(m->loader_row, "cpu_total_frac");
    if (!isnan(frac))
        return frac;
    const double all_s = tv_noted_num(facts, "self_cpu_total_s");
    if (all_s > 0 && total_s <= all_s)
        return total_s / all_s;
    return m->self_sum_s > 0 && total_s <= m->self_sum_s ? total_s / m->self_sum_s : (double)NAN;
}

static void note_loader(tv_arena *a, tv_note *facts, const sums *m)
{
    static const char *const words[] = {NULL, "single process (num_workers=0)",
                                        "worker processes (num_workers>0)", "unknown"};
    if (!m->loader_row)
        return;
    tv_note *note = tv_note_str(a, facts, "loader", tv_str_of(words[m->loader]));
    (void)tv_note_place(a, note, m->loader_row->line, m->loader_row->text);
    const double total_s = tv_noted_num(m->loader_row, "cpu_total_s");
    const double calls = calls_of(m->loader_row);
    (void)tv_note_num(a, facts, "loader_s", total_s);
    if (calls > 0)
        (void)tv_note_num(a, facts, "loader_batch_s", total_s / calls);
    const double share = loader_share(facts, m);
    (void)tv_note_num(a, facts, "loader_frac", share);
    if (share >= 0.3)
        (void)tv_note_str(a, facts, "layer", TV_S("data loading"));
}

/* Time of a step that belongs to no operator, where the table names no loader: what stands between
 * two batches is mostly the wait for the next one. */
static void note_gap(tv_arena *a, tv_note *facts, const sums *m, bool gpu_rows)
{
    const double self_s = tv_noted_num(m->step_row, "self_cpu_s");
    const double total_s = tv_noted_num(m->step_row, "cpu_total_s");
    const double calls = tv_noted_num(m->step_row, "calls");
    if (!m->step_row || m->loader_row || !(total_s > 0) || !(calls > 0))
        return;
    (void)tv_note_num(a, facts, "step_gap_frac", self_s / total_s);
    if (self_s / total_s >= 0.6 && self_s / calls >= 5e-3 && !gpu_rows)
        (void)tv_note_str(a, facts, "layer", TV_S("data loading (inferred)"));
}

static void note_count(tv_arena *a, tv_note *facts, const char *key, double v)
{
    if (v > 0)
        (void)tv_note_num(a, facts, key, v);
}

/* Steps of less than a millisecond of CPU time: the CPU only queues work for a device that the
 * table does not show. */
static bool expects_device(const sums *m, bool gpu_rows)
{
    const double avg_s =
        tv_noted_num(m->step_row, "cpu_total_s") / tv_noted_num(m->step_row, "calls");
    return gpu_rows || (m->step_row && avg_s < 1e-3);
}

void tv_key_averages_sum(tv_arena *a, tv_note *facts, tv_str device, bool gpu_rows)
{
    sums m = {0};
    const char *total = device_name(a, "", device, "_total_s");
    const char *self = device_name(a, "self_", device, "_s");
    for (const tv_note *row = facts->first; row; row = row->next)
        if (row->type == TV_NOTE_MAP && row->key && strncmp(row->key, "row", 3) == 0)
            add(&m, row, total, self);
    note_step(a, facts, &m);
    note_loader(a, facts, &m);
    note_gap(a, facts, &m, gpu_rows);
    note_count(a, facts, "launches", m.launches);
    note_count(a, facts, "launch_cpu_s", m.launch_s);
    note_count(a, facts, "syncs", m.syncs);
    note_count(a, facts, "sync_cpu_s", m.sync_s);
    note_count(a, facts, "item_reads", m.items);
    note_count(a, facts, "device_mallocs", m.mallocs);
    note_count(a, facts, "device_malloc_cpu_s", m.malloc_s);
    note_count(a, facts, "algorithm_searches", m.finds);
    if (!device.n && expects_device(&m, gpu_rows))
        (void)tv_note_bool(a, facts, "expected_cuda", true);
    if (device.n && gpu_rows && m.launches > 0 && !m.device_s)
        (void)tv_note_bool(a, facts, "device_times_missing", true);
}
