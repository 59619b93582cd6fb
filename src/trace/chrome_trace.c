/* Profiles in Chrome's trace event format: PyTorch (Kineto and before), Paddle, TensorFlow, JAX,
 * ROCm. Reads the outer object's members and the events in one pass; what the events mean stands in
 * chrome_event.c, what comes of them in the timeline. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "chrome_event.h"
#include "trace.h"

enum { scratch_bytes = 64 << 20, most_devices_listed = 64 };

typedef struct outer {
    tv_arena *a;       /* of what is kept */
    tv_arena *scratch; /* of one member */
    tv_str file;
    tv_note *facts;
    bool ranked;
    bool amd, nvidia;
} outer;

/* ---- members of the outer object ---- */

static void note_word(outer *o, tv_note *in, const char *key, const tv_json *j)
{
    if (j->type == TV_JSON_STRING)
        (void)tv_note_str(o->a, in, key, j->s);
    else if (j->type == TV_JSON_NUMBER)
        (void)tv_note_num(o->a, in, key, j->number);
}

static bool has_nocase(tv_arena *a, tv_str s, const char *part)
{
    return tv_str_has(tv_str_lower(a, s), tv_str_of(part));
}

static void note_vendor(outer *o, tv_str name)
{
    static const char *const amd[] = {"amd", "radeon", "instinct", "gfx", "mi250", "mi300"};
    static const char *const nvidia[] = {"nvidia", "tesla", "geforce", "quadro", "rtx"};
    for (size_t i = 0; i < sizeof amd / sizeof *amd; i++)
        o->amd = o->amd || has_nocase(o->scratch, name, amd[i]);
    for (size_t i = 0; i < sizeof nvidia / sizeof *nvidia; i++)
        o->nvidia = o->nvidia || has_nocase(o->scratch, name, nvidia[i]);
}

static void put_devices(outer *o, const tv_json *list)
{
    if (list->type != TV_JSON_ARRAY)
        return;
    tv_note *gpus = tv_note_list(o->a, o->facts, "gpus");
    tv_note *names = tv_note_list(o->a, o->facts, "devices");
    for (size_t i = 0; i < list->n && i < most_devices_listed; i++) {
        const tv_json *d = tv_json_at(list, i);
        const tv_str name = tv_json_str(tv_json_get(d, "name"));
        tv_note *gpu = tv_note_map(o->a, gpus, NULL);
        (void)tv_note_num(o->a, gpu, "index", tv_json_num(tv_json_get(d, "id"), (double)i));
        (void)tv_note_str(o->a, gpu, "name", name);
        const double bytes = tv_json_num(tv_json_get(d, "totalGlobalMem"), (double)NAN);
        (void)tv_note_num(o->a, gpu, "mem_bytes", bytes);
        static const char *const counts[] = {"numSms", "multiProcessorCount", "smCount"};
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            if (tv_json_has(d, counts[k]))
                (void)tv_note_num(o->a, gpu, "sms", tv_json_num(tv_json_get(d, counts[k]), 0));
        (void)tv_note_str(o->a, names, NULL, name);
        note_vendor(o, name);
    }
}

static void put_distributed(outer *o, const tv_json *d)
{
    static const char *const keys[] = {"backend", "rank", "world_size", "pg_count", "nccl_version"};
    if (d->type != TV_JSON_OBJECT)
        return;
    tv_note *map = tv_note_map(o->a, o->facts, "distributed");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const tv_json *v = tv_json_get(d, keys[i]);
        note_word(o, map, keys[i], v);
        note_word(o, o->facts, keys[i], v);
    }
    o->ranked = tv_json_is_num(tv_json_get(d, "rank"));
}

/* Members that are facts as they stand, under our names. */
static const struct {
    const char *member, *fact;
} plain[] = {
    {"schemaVersion", "schema_version"},
    {"displayTimeUnit", "display_time_unit"},
    {"traceName", "trace_name"},
    {"record_shapes", "record_shapes"},
    {"with_stack", "with_stack"},
    {"with_flops", "with_flops"},
    {"profile_memory", "profile_memory"},
    {"cupti_version", "cupti_version"},
    {"cuda_runtime_version", "cuda_runtime_version"},
    {"cuda_driver_version", "cuda_driver_version"},
    {"hip_runtime_version", "hip_runtime_version"},
};

static void put_member(outer *o, tv_str key, tv_str value)
{
    const tv_mark mark = tv_arena_mark(o->scratch);
    const tv_json *j = NULL;
    if (tv_json_parse(o->scratch, o->file, value, &j)) { /* one member less */
        tv_arena_rewind(o->scratch, mark);
        return;
    }
    (void)tv_note_bool(o->a, tv_note_map(o->a, o->facts, "members"),
                       tv_cstr(o->a, tv_str_take(key, 64)), true);
    if (tv_str_is(key, "deviceProperties") || tv_str_is(key, "computeProperties"))
        put_devices(o, j);
    else if (tv_str_is(key, "distributedInfo"))
        put_distributed(o, j);
    else if (tv_str_is(key, "baseTimeNanoseconds") && tv_json_is_num(j))
        (void)tv_note_num(o->a, o->facts, "base_time_s", j->number * 1e-9);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (tv_str_is(key, plain[i].member))
            note_word(o, o->facts, plain[i].fact, j);
    tv_arena_rewind(o->scratch, mark);
}

/* ---- what was counted ---- */

static void put_num(outer *o, const char *key, double v)
{
    (void)tv_note_num(o->a, o->facts, key, v);
}

static void put_cats(outer *o, const tv_trace_tally *t)
{
    const tv_trace_cat *sorted[TV_TRACE_CATS];
    for (size_t i = 0; i < t->n_cats; i++) {
        size_t at = i;
        for (; at > 0 && tv_str_cmp(t->cats[i].name, sorted[at - 1]->name) < 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = &t->cats[i];
    }
    tv_note *cats = tv_note_list(o->a, o->facts, "cats");
    tv_note *counts = tv_note_map(o->a, o->facts, "categories");
    for (size_t i = 0; i < t->n_cats; i++) {
        (void)tv_note_str(o->a, cats, NULL, sorted[i]->name);
        if (sorted[i]->completes)
            (void)tv_note_num(o->a, counts, tv_cstr(o->a, sorted[i]->name),
                              (double)sorted[i]->completes);
    }
    static const char *const phases[] = {"X", "B", "E", "s", "t", "f",
                                         "i", "I", "M", "C", "b", "e"};
    tv_note *map = tv_note_map(o->a, o->facts, "phases");
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        if (t->phases[(unsigned char)*phases[i]])
            (void)tv_note_num(o->a, map, phases[i], (double)t->phases[(unsigned char)*phases[i]]);
}

static int by_text(const tv_str *x, const tv_str *y)
{
    return tv_str_cmp(*x, *y);
}

static void put_syncs(outer *o, tv_trace_tally *t)
{
    if (!t->syncs)
        return;
    put_num(o, "syncs", (double)t->syncs);
    tv_note *kinds = tv_note_list(o->a, o->facts, "sync_kinds");
    for (size_t i = 0; i < t->n_sync_kinds; i++)
        for (size_t k = i; k > 0 && by_text(&t->sync_kinds[k], &t->sync_kinds[k - 1]) < 0; k--) {
            const tv_str held = t->sync_kinds[k];
            t->sync_kinds[k] = t->sync_kinds[k - 1];
            t->sync_kinds[k - 1] = held;
        }
    for (size_t i = 0; i < t->n_sync_kinds; i++)
        (void)tv_note_str(o->a, kinds, NULL, t->sync_kinds[i]);
}

static void put_tally(outer *o, tv_trace_tally *t)
{
    put_num(o, "events", (double)t->events);
    put_cats(o, t);
    if (t->spanned) {
        (void)tv_note_str(o->a, o->facts, "ts_unit",
                          t->fractions ? TV_S("us float") : TV_S("us int"));
        put_num(o, "span_s", (double)(t->last_ns - t->first_ns) * 1e-9);
        const double base = tv_noted_num(o->facts, "base_time_s");
        put_num(o, "start_time_s", (double)t->first_ns * 1e-9 + (isnan(base) ? 0 : base));
    }
    put_syncs(o, t);
    o->amd = o->amd || t->hip_calls > 0;
    o->nvidia = o->nvidia || t->cuda_calls > t->hip_calls;
    if (o->amd || o->nvidia)
        (void)tv_note_str(o->a, o->facts, "vendor", o->amd ? TV_S("amd") : TV_S("nvidia"));
    put_num(o, "too_long_events", (double)t->too_long);
    put_num(o, "gemm_ops", (double)t->gemm_ops);
    put_num(o, "data_parallel_calls", (double)t->replicas);
    /* The first name is nn.DataParallel's own; of the others one may be anybody's. */
    const unsigned kinds = t->replica_kinds;
    (void)tv_note_bool(o->a, o->facts, "data_parallel", kinds & 1 || (kinds & (kinds - 1)));
    put_num(o, "algorithm_searches", (double)t->searches);
    if (t->negative_streams)
        (void)tv_note_bool(o->a, o->facts, "negative_stream_ids", true);
}

/* "rank-70.Mar_25.pt.trace.json.gz", "rank_1.json", "worker0.pt.trace.json": where the profile
 * itself does not say whose it is. */
static void put_rank(outer *o)
{
    static const char *const words[] = {"rank", "worker"};
    if (o->ranked)
        return;
    const tv_str name = tv_path_name(o->file);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = memmem(name.p, name.n, words[i], strlen(words[i]));
        if (!at)
            continue;
        tv_str rest = tv_str_drop(tv_str_span(at, name.p + name.n), strlen(words[i]));
        while (rest.n && (*rest.p == '-' || *rest.p == '_' || *rest.p == '='))
            rest = tv_str_drop(rest, 1);
        size_t n = 0;
        while (n < rest.n && n < 7 && rest.p[n] >= '0' && rest.p[n] <= '9')
            n++;
        const tv_u64_read rank = tv_str_u64(tv_str_take(rest, n));
        if (!rank.ok)
            continue;
        put_num(o, "rank_in_name", (double)rank.v);
        return;
    }
}

static void put_damage(outer *o, const tv_event_scan *scan, const tv_stream *stream)
{
    const uint64_t faults = tv_event_scan_damaged(scan);
    const bool cut = tv_event_scan_is_cut(scan) || tv_stream_damage(stream);
    (void)tv_note_bool(o->a, o->facts, "damaged", faults > 0 || cut);
    (void)tv_note_bool(o->a, o->facts, "cut", cut);
    if (faults)
        put_num(o, "damaged_events", (double)faults);
}

static void put_text(outer *o, tv_sighting *s, const tv_trace_tally *t)
{
    tv_buf b = tv_buf_in(o->a);
    tv_puts(&b, "trace of ");
    tv_put_u64(&b, t->events);
    tv_puts(&b, " events, ");
    tv_put_u64(&b, (uint64_t)tv_noted_num(o->facts, "kernels"));
    tv_puts(&b, " kernels, ");
    tv_put_u64(&b, (uint64_t)tv_noted_num(o->facts, "steps"));
    tv_puts(&b, " steps");
    s->text = tv_buf_str(&b);
}

static bool is(const tv_input *in)
{
    return tv_event_scan_is(in->head);
}

static const tv_err *read(tv_arena *a, tv_input *in, tv_scene *scene)
{
    tv_arena *own = tv_arena_child(a, (size_t)scratch_bytes);
    const tv_mark blank = tv_arena_mark(own);
    tv_sighting *s = tv_scene_add(a, scene, "trace", in->name, 0, (tv_str){0});
    outer o = {.a = a, .scratch = tv_arena_child(a, (size_t)scratch_bytes), .file = in->name};
    o.facts = &s->facts;
    (void)tv_note_str(a, o.facts, "profile", TV_S("chrome"));
    tv_timeline *timeline = tv_timeline_open(a);
    tv_trace_tally *tally = tv_new(own, tv_trace_tally, 1);
    tv_trace_tally_open(own, timeline, tally);
    tv_event_scan *scan = tv_event_scan_open(own, in->stream);
    const tv_err *e = NULL;
    for (tv_scanned now = {0}; !(e = tv_event_scan_next(scan, &now)) && now.what != TV_SCAN_END;) {
        if (now.what == TV_SCAN_MEMBER)
            put_member(&o, now.key, now.value);
        else
            tv_trace_count(tally, &now.event);
    }
    tv_timeline_facts(timeline, a, o.facts);
    put_tally(&o, tally);
    put_rank(&o);
    put_damage(&o, scan, in->stream);
    put_text(&o, s, tally);
    tv_arena_rewind(own, blank);
    return e;
}

extern const tv_dump_format tv_dump_format_chrome_trace;
const tv_dump_format tv_dump_format_chrome_trace = {"chrome-trace", is, read};
