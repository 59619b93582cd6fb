/* Traces hold the answer already. A table of operators is sorted into the same classes by its
 * names: times of the device belong to the operators themselves, not to those around them. What a
 * table does not tell stays unknown. */
#include "trace_summary.h"

#include <math.h>
#include <string.h>

#include "desc/estimate.h"
#include "trace/kernel_class.h"

enum { most_rows = 200 };

static void put(tv_arena *a, tv_note *out, const char *key, double v)
{
    (void)tv_note_num(a, out, key, v);
}

static void copy(tv_arena *a, tv_note *in, const char *key, const tv_note *note)
{
    switch (note ? note->type : TV_NOTE_NULL) {
    case TV_NOTE_NULL:
        (void)tv_note_null(a, in, key);
        return;
    case TV_NOTE_NUMBER:
        (void)tv_note_num(a, in, key, note->number);
        return;
    case TV_NOTE_BOOL:
        (void)tv_note_bool(a, in, key, note->yes);
        return;
    case TV_NOTE_STR:
        (void)tv_note_str(a, in, key, note->s);
        return;
    case TV_NOTE_LIST:
    case TV_NOTE_MAP:
        break;
    }
    tv_note *fresh =
        note->type == TV_NOTE_LIST ? tv_note_list(a, in, key) : tv_note_map(a, in, key);
    for (const tv_note *item = note->first; item; item = item->next)
        copy(a, fresh, item->key, item);
}

static void begin(tv_arena *a, tv_note *out, const tv_sighting *s)
{
    out->type = TV_NOTE_MAP;
    (void)tv_note_str(a, out, "file", s->file);
    (void)tv_note_str(a, out, "kind", tv_str_of(s->kind));
}

static void put_grade(tv_arena *a, tv_note *out, double share)
{
    static const char *const words[] = {
        [TV_GRADE_UNKNOWN] = "",
        [TV_GRADE_GOOD] = "good",
        [TV_GRADE_FAIR] = "fair",
        [TV_GRADE_POOR] = "poor",
    };
    put(a, out, "gemm_share", share);
    if (isnan(share))
        (void)tv_note_null(a, out, "grade");
    else
        (void)tv_note_str(a, out, "grade", tv_str_of(words[tv_grade_of_gemm_share(share)]));
}

/* ---- traces ---- */

static void of_trace(tv_arena *a, const tv_note *facts, size_t top, tv_note *out)
{
    static const char *const keys[] = {
        "window_s",
        "shares",
        "gemm_share",
        "grade",
        "exposed_comm_share",
        "overlap",
        "layer",
        "host_wait_share",
        "data_wait_share",
        "compute_union_s",
        "nccl_union_s",
        "exposed_comm_s",
        "overlap_s",
        "busy_union_s",
        "idle_s",
        "kernels",
        "kernel_median_s",
        "launch_delay_median_s",
        "item_calls",
        "sync_calls",
        "pageable_htod",
        "pageable_dtoh",
        "htod_bytes_per_s",
        "dtoh_bytes_per_s",
        "busbw_bytes_per_s_total",
        "by_collective",
        "classes",
        "mem_peak_bytes",
        "mem_slope_bytes_per_step",
        "flop_per_s",
        "gemm_flop_per_s",
        "flop_dtype",
        "devices",
        "device_count",
        "events",
        "damaged",
        "cut",
    };
    const double rank = tv_noted_num(facts, "rank");
    put(a, out, "rank", isnan(rank) ? tv_noted_num(facts, "rank_in_name") : rank);
    put(a, out, "steps", tv_noted_num(facts, "steps"));
    put(a, out, "step_s", tv_noted_num(facts, "step_median_s"));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        copy(a, out, keys[i], tv_noted(facts, keys[i]));
    tv_note *list = tv_note_list(a, out, "top");
    const tv_note *all = tv_noted(facts, "top");
    for (const tv_note *k = all ? all->first : NULL; k && list->n < top; k = k->next)
        copy(a, list, NULL, k);
}

/* ---- tables of operators ---- */

typedef struct op_row {
    tv_str name;
    double self_s, calls;
    tv_kernel_class is;
} op_row;

typedef struct op_rows {
    op_row v[most_rows];
    size_t n;
    double all_s; /* the device's whole time; NaN: not told */
} op_rows;

/* What an operator's own kernels are. */
static tv_kernel_class op_class(tv_str name)
{
    static const struct {
        const char *part;
        tv_kernel_class is;
    } parts[] = {
        {"nccl:", TV_CLASS_COMMUNICATION},
        {"c10d::", TV_CLASS_COMMUNICATION},
        {"c_allreduce", TV_CLASS_COMMUNICATION},
        {"attention", TV_CLASS_ATTENTION},
        {"flash_attn", TV_CLASS_ATTENTION},
        {"conv", TV_CLASS_CONV},
        {"addmm", TV_CLASS_GEMM},
        {"::mm", TV_CLASS_GEMM},
        {"bmm", TV_CLASS_GEMM},
        {"_mm", TV_CLASS_GEMM},
        {"matmul", TV_CLASS_GEMM},
        {"linear", TV_CLASS_GEMM},
        {"::mv", TV_CLASS_GEMM},
        {"emcpy", TV_CLASS_MEMCPY},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (tv_str_has(name, tv_str_of(parts[i].part)))
            return parts[i].is;
    return TV_CLASS_ELEMENTWISE;
}

static bool is_operator(tv_str name)
{
    return tv_str_starts(name, TV_S("aten::")) || tv_str_starts(name, TV_S("nccl:"));
}

static double class_s(const op_rows *rows, tv_kernel_class is)
{
    double sum = 0;
    for (size_t i = 0; i < rows->n; i++)
        sum += rows->v[i].is == is ? rows->v[i].self_s : 0;
    return sum;
}

static void put_rows(tv_arena *a, tv_note *out, const op_rows *rows, size_t top)
{
    bool taken[most_rows] = {false};
    tv_note *list = tv_note_list(a, out, "top");
    for (size_t k = 0; k < top && k < rows->n; k++) {
        size_t best = rows->n;
        for (size_t i = 0; i < rows->n; i++)
            if (!taken[i] && (best == rows->n || rows->v[i].self_s > rows->v[best].self_s))
                best = i;
        if (best == rows->n || !(rows->v[best].self_s > 0))
            return;
        taken[best] = true;
        const op_row *r = &rows->v[best];
        tv_note *row = tv_note_map(a, list, NULL);
        (void)tv_note_str(a, row, "name", r->name);
        (void)tv_note_str(a, row, "class", tv_str_of(tv_kernel_class_name(r->is)));
        put(a, row, "count", r->calls);
        put(a, row, "total_s", r->self_s);
        put(a, row, "mean_s", r->calls > 0 ? r->self_s / r->calls : (double)NAN);
        put(a, row, "share", r->self_s / rows->all_s);
    }
}

/* Shares of the steps where the table tells how long they are; the device's work is taken as one
 * after the other. */
static void put_shares(tv_arena *a, tv_note *out, const op_rows *rows, double steps_s,
                       double data_share)
{
    const double gemm = class_s(rows, TV_CLASS_GEMM), conv = class_s(rows, TV_CLASS_CONV);
    const double attention = class_s(rows, TV_CLASS_ATTENTION);
    const double comm = class_s(rows, TV_CLASS_COMMUNICATION);
    const double copies = class_s(rows, TV_CLASS_MEMCPY);
    const double rest = rows->all_s - gemm - conv - attention - comm - copies;
    const double whole = steps_s > rows->all_s ? steps_s : rows->all_s;
    const double idle = 1 - rows->all_s / whole;
    const double data = isnan(data_share) ? 0 : data_share < idle ? data_share : idle;
    const struct {
        const char *key;
        double v;
    } shares[] = {
        {"gemm", gemm / whole},
        {"conv", conv / whole},
        {"attention", attention / whole},
        {"elementwise", (rest > 0 ? rest : 0) / whole},
        {"memcpy", copies / whole},
        {"communication", comm / whole},
        {"idle", isnan(steps_s) ? (double)NAN : idle - data},
        {"data", isnan(data_share) ? (double)NAN : data},
    };
    tv_note *map = tv_note_map(a, out, "shares");
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        put(a, map, shares[i].key, whole > 0 ? shares[i].v : (double)NAN);
    if (!(whole > 0))
        put(a, map, "data", data_share);
    const double compute = rows->all_s - comm - copies;
    put_grade(a, out, compute > 0 ? (gemm + conv + attention) / compute : (double)NAN);
}

static const char *const row_keys[] = {"self_cuda_s", "self_device_s", "self_xpu_s",
                                       "self_hpu_s",  "self_mtia_s",   "self_privateuse1_s"};

static double self_of(const tv_note *row)
{
    for (size_t i = 0; i < sizeof row_keys / sizeof *row_keys; i++) {
        const double v = tv_noted_num(row, row_keys[i]);
        if (!isnan(v))
            return v;
    }
    return (double)NAN;
}

/* "row0", "row1", ... */
static bool is_row(const tv_note *note)
{
    return note->type == TV_NOTE_MAP && note->key && strncmp(note->key, "row", 3) == 0 &&
           note->key[3] >= '0' && note->key[3] <= '9';
}

static void of_table(tv_arena *a, const tv_note *facts, size_t top, tv_note *out)
{
    op_rows *rows = tv_new(a, op_rows, 1);
    double sum = 0;
    for (const tv_note *row = facts->first; row && rows->n < most_rows; row = row->next) {
        const tv_str name = is_row(row) ? tv_noted_str(row, "name") : (tv_str){0};
        const double self = self_of(row);
        if (!is_operator(name) || !(self >= 0))
            continue;
        rows->v[rows->n++] = (op_row){name, self, tv_noted_num(row, "calls"), op_class(name)};
        sum += self;
    }
    rows->all_s = tv_noted_num(facts, "self_device_total_s");
    if (!(rows->all_s >= sum))
        rows->all_s = sum;
    const double steps = tv_noted_num(facts, "profilerstep.calls");
    const double step_s = tv_noted_num(facts, "step_s");
    put(a, out, "rank", (double)NAN);
    put(a, out, "steps", steps);
    put(a, out, "step_s", step_s);
    put(a, out, "window_s", steps * step_s);
    put_shares(a, out, rows, steps * step_s, tv_noted_num(facts, "loader_frac"));
    put(a, out, "exposed_comm_share", (double)NAN);
    put(a, out, "overlap", (double)NAN);
    copy(a, out, "layer", tv_noted(facts, "layer"));
    put(a, out, "data_wait_share", tv_noted_num(facts, "loader_frac"));
    put_rows(a, out, rows, top);
}

/* ---- Paddle's summary ---- */

static void take_list(const tv_note *list, op_rows *rows, bool kernels)
{
    for (const tv_note *row = list ? list->first : NULL; row && rows->n < most_rows;
         row = row->next) {
        const tv_str name = tv_noted_str(row, "name");
        const double s = tv_noted_num(row, "gpu_total_s");
        if (!name.n || !(s >= 0))
            continue;
        const tv_kernel_class is = kernels ? tv_kernel_class_of(name) : op_class(name);
        rows->v[rows->n++] =
            (op_row){name, s, tv_noted_num(row, "calls"),
                     is == TV_CLASS_GEMM || is == TV_CLASS_CONV || is == TV_CLASS_ATTENTION ||
                             is == TV_CLASS_COMMUNICATION || is == TV_CLASS_MEMCPY
                         ? is
                         : TV_CLASS_ELEMENTWISE};
    }
}

static void of_paddle(tv_arena *a, const tv_note *facts, size_t top, tv_note *out)
{
    op_rows *rows = tv_new(a, op_rows, 1);
    take_list(tv_noted(facts, "kernels"), rows, true);
    if (!rows->n)
        take_list(tv_noted(facts, "operators"), rows, false);
    for (size_t i = 0; i < rows->n; i++)
        rows->all_s += rows->v[i].self_s;
    const double gpu = tv_noted_num(facts, "model.profilestep.gpu_total_s");
    rows->all_s = gpu > rows->all_s ? gpu : rows->all_s;
    const double steps = tv_noted_num(facts, "model.profilestep.calls");
    const double step_s = tv_noted_num(facts, "step_s");
    const double comm = tv_noted_num(facts, "distribution.communication.total_s");
    double data = tv_noted_num(facts, "dataloader_frac");
    if (isnan(data))
        data = tv_noted_num(facts, "reader_ratio_frac");
    put(a, out, "rank", (double)NAN);
    put(a, out, "steps", steps);
    put(a, out, "step_s", isnan(step_s) ? tv_noted_num(facts, "batch_cost_avg_s") : step_s);
    put(a, out, "window_s", steps * step_s);
    if (rows->n) {
        put_shares(a, out, rows, steps * step_s, data);
    } else { /* the views that tell classes are not there */
        tv_note *map = tv_note_map(a, out, "shares");
        static const char *const unknown[] = {"gemm",   "conv",          "attention", "elementwise",
                                              "memcpy", "communication", "idle"};
        for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
            put(a, map, unknown[i], (double)NAN);
        put(a, map, "data", data);
        put_grade(a, out, (double)NAN);
    }
    copy(a, out, "exposed_comm_share", tv_noted(facts, "exposed_comm_frac"));
    put(a, out, "overlap",
        comm > 0 ? tv_noted_num(facts, "distribution.overlap.total_s") / comm : (double)NAN);
    copy(a, out, "layer", tv_noted(facts, "layer"));
    put(a, out, "data_wait_share", data);
    put_rows(a, out, rows, top);
}

bool tv_trace_summary(tv_arena *a, const tv_sighting *s, size_t top, tv_note *out)
{
    const bool trace = strcmp(s->kind, "trace") == 0 || strcmp(s->kind, "nsys") == 0;
    const bool table = strcmp(s->kind, "key_averages") == 0;
    if (!trace && !table && strcmp(s->kind, "paddle-profiler") != 0)
        return false;
    begin(a, out, s);
    if (trace)
        of_trace(a, &s->facts, top, out);
    else if (table)
        of_table(a, &s->facts, top, out);
    else
        of_paddle(a, &s->facts, top, out);
    return true;
}
