/* model.safetensors.index.json, pytorch_model.bin.index.json: which shard holds which tensor. The
 * shards are read where they are there; where none is, the total size that the index states is all
 * that is known. */
#include "gather.h"

#include <stdlib.h>

typedef struct shard_list {
    tv_str *v;
    size_t n;
    size_t cap;
} shard_list;

typedef struct index_scan {
    tv_gather *g;
    tv_json_scan scan;
    shard_list shards; /* in the order of their first tensor */
    uint64_t total_size;
    bool has_map;
    size_t entries;
} index_scan;

static const tv_err *wrong(index_scan *s, const char *id, const char *msgid, uint64_t at)
{
    return tv_broken(s->g, s->scan.file, id, msgid, at);
}

/* Shards follow each other in the map almost always: the last ones are looked at first. */
static bool known_shard(const index_scan *s, tv_str name)
{
    for (size_t i = s->shards.n; i-- > 0;)
        if (tv_str_eq(s->shards.v[i], name))
            return true;
    return false;
}

static const tv_err *add_shard(index_scan *s, tv_json_event event)
{
    if (event.type != TV_JSON_STRING)
        return wrong(s, "index.no-name", N_("a tensor's file is no text"), event.offset);
    s->entries++;
    if (s->shards.n && tv_str_eq(s->shards.v[s->shards.n - 1], event.s))
        return NULL;
    if (known_shard(s, event.s))
        return NULL;
    if (!tv_is_inside(event.s))
        return tv_fail_at(s->g->a, TV_INPUT,
                          TV_TEXT(s->g->a, "read.bad-name",
                                  N_("\"{name}\" is no name of a file in this folder"),
                                  tv_arg_str("name", event.s)),
                          s->scan.file, event.offset);
    if (s->shards.n == TV_LIMIT_SHARDS)
        return wrong(s, "index.too-many", N_("the model has too many files"), event.offset);
    *tv_push(s->g->a, &s->shards) = event.s;
    return NULL;
}

static const tv_err *scan_map(index_scan *s, tv_json_event event)
{
    if (event.type != TV_JSON_OBJECT)
        return wrong(s, "index.no-map", N_("weight_map is no object"), event.offset);
    s->has_map = true;
    for (;;) {
        TV_TRY(tv_json_next(&s->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        TV_TRY(tv_json_next(&s->scan, &event));
        TV_TRY(add_shard(s, event));
    }
}

/* total_size is written as a whole number, now and then as 1.2e10 or 12345.0. */
static uint64_t size_of_number(tv_str text)
{
    const tv_u64_read whole = tv_str_u64(text);
    const tv_double_read other = tv_str_double(text);
    if (whole.ok)
        return whole.v;
    return other.ok && other.v > 0 && other.v < 0x1p63 ? (uint64_t)other.v : 0;
}

static const tv_err *scan_metadata(index_scan *s, tv_json_event event)
{
    if (event.type != TV_JSON_OBJECT)
        return tv_json_skip(&s->scan, event);
    for (;;) {
        TV_TRY(tv_json_next(&s->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            return NULL;
        const bool total = tv_str_is(event.s, "total_size");
        TV_TRY(tv_json_next(&s->scan, &event));
        if (total && event.type == TV_JSON_NUMBER)
            s->total_size = size_of_number(event.s);
        TV_TRY(tv_json_skip(&s->scan, event));
    }
}

static const tv_err *scan_index(index_scan *s)
{
    tv_json_event event;
    TV_TRY(tv_json_next(&s->scan, &event));
    if (event.type != TV_JSON_OBJECT)
        return wrong(s, "index.no-object", N_("an index of weights must be an object"), 0);
    for (;;) {
        TV_TRY(tv_json_next(&s->scan, &event));
        if (event.type == TV_JSON_CLOSE)
            break;
        const tv_str key = event.s;
        TV_TRY(tv_json_next(&s->scan, &event));
        if (tv_str_is(key, "weight_map"))
            TV_TRY(scan_map(s, event));
        else if (tv_str_is(key, "metadata"))
            TV_TRY(scan_metadata(s, event));
        else
            TV_TRY(tv_json_skip(&s->scan, event));
    }
    if (!s->has_map || s->entries == 0)
        return wrong(s, "index.no-map", N_("no weight_map: no index of weights"), 0);
    return tv_json_next(&s->scan, &event);
}

/* ---- the shards ---- */

static int by_text(const void *x, const void *y)
{
    return tv_str_cmp(*(const tv_str *)x, *(const tv_str *)y);
}

static tv_str shard_path(index_scan *s, size_t i)
{
    return tv_path_join(s->g->a, tv_path_folder(s->scan.file), s->shards.v[i]);
}

static const tv_err *missing(index_scan *s, size_t i, size_t there)
{
    tv_err *e = tv_fail(s->g->a, TV_UNAVAILABLE,
                        TV_TEXT(s->g->a, "index.missing-shard",
                                N_("files of the model that are missing: {n} of {all}, first "
                                   "{file}"),
                                tv_arg_num("n", TV_ARG_COUNT, (double)(s->shards.n - there)),
                                tv_arg_num("all", TV_ARG_COUNT, (double)s->shards.n),
                                tv_arg_str("file", s->shards.v[i])));
    return tv_hint(tv_in_file(e, shard_path(s, i)),
                   TV_TEXT0("index.missing-shard",
                            N_("Fetch the missing files, or go without the weights: copy "
                               "config.json to a folder of its own.")));
}

static const tv_err *only_the_index(index_scan *s)
{
    tv_gather_warn(s->g,
                   TV_TEXT(s->g->a, "index.no-shards",
                           N_("only the index {file} is there, none of the files it names ({n}, "
                              "with {tensors} tensors)"),
                           tv_arg_str("file", tv_path_name(s->scan.file)),
                           tv_arg_num("n", TV_ARG_COUNT, (double)s->shards.n),
                           tv_arg_num("tensors", TV_ARG_COUNT, (double)s->entries)));
    return NULL;
}

/* Says once how the index and the files differ, if they do. */
static void compare_counts(index_scan *s)
{
    const size_t found = s->g->tensors.n;
    if (found == s->entries)
        return;
    tv_gather_warn(s->g, TV_TEXT(s->g->a, "index.count",
                                 N_("the index names {want} tensors, the files hold {have}"),
                                 tv_arg_num("want", TV_ARG_COUNT, (double)s->entries),
                                 tv_arg_num("have", TV_ARG_COUNT, (double)found)));
}

static bool is_torch(tv_str name)
{
    return tv_str_ends(name, TV_S(".bin")) || tv_str_ends(name, TV_S(".pt")) ||
           tv_str_ends(name, TV_S(".pth"));
}

static const tv_err *read_shard(index_scan *s, tv_str path, tv_bytes_view bytes)
{
    return is_torch(path) ? tv_read_torch(s->g, path, bytes)
                          : tv_read_safetensors(s->g, path, bytes);
}

static const tv_err *read_shards(index_scan *s)
{
    const size_t first = s->g->tensors.n;
    tv_gather_room(s->g, s->entries); /* no more than the index has bytes */
    for (size_t i = 0; i < s->shards.n; i++) {
        tv_bytes_view bytes;
        const tv_str path = shard_path(s, i);
        TV_TRY(tv_gather_map(s->g, path, &bytes));
        if (tv_is_lfs_pointer(bytes)) {
            tv_warn_pointer(s->g, s->shards.v[i]);
            s->g->tensors.n = first; /* half a model is no model */
            return NULL;
        }
        TV_TRY(read_shard(s, path, bytes));
    }
    compare_counts(s);
    return NULL;
}

const tv_err *tv_read_weight_index(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    const tv_str text = {(const char *)bytes.p, bytes.n};
    index_scan s = {.g = g, .scan = tv_json_open(g->a, tv_str_copy(g->a, path), text)};
    TV_TRY(scan_index(&s));
    g->source.stated_total_size = s.total_size;
    const bool torch = is_torch(s.shards.v[0]);
    if (g->source.kind == TV_SOURCE_NONE)
        g->source.kind = torch ? TV_SOURCE_CHECKPOINT : TV_SOURCE_SAFETENSORS;
    qsort(s.shards.v, s.shards.n, sizeof *s.shards.v, by_text);
    size_t there = 0, first_missing = s.shards.n;
    for (size_t i = 0; i < s.shards.n; i++) {
        if (tv_file_stat(g->a, shard_path(&s, i)).exists)
            there++;
        else if (first_missing == s.shards.n)
            first_missing = i;
    }
    if (there == 0 || !(torch || tv_str_ends(s.shards.v[0], TV_S(".safetensors"))))
        return only_the_index(&s);
    if (first_missing < s.shards.n)
        return missing(&s, first_missing, there);
    return read_shards(&s);
}

static const tv_err *read(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    TV_TRY(tv_read_config_beside(g, path));
    return tv_read_weight_index(g, path, bytes);
}

static bool probe(tv_str name, tv_bytes_view bytes)
{
    (void)bytes;
    return tv_str_ends(name, TV_S(".index.json"));
}

extern const tv_format tv_format_weight_index;
const tv_format tv_format_weight_index = {
    .name = "safetensors index",
    .summary = N_("index of sharded weights"),
    .probe = probe,
    .read = read,
};
