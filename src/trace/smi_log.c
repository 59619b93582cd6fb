/* From headings, keys and values to the facts of cards, MIG devices and processes. */
#include "smi_log.h"

#include <math.h>
#include <string.h>

typedef struct plain_field {
    const char *keys;
    const char *fact;
    tv_smi_kind kind;
} plain_field;

/* ---- paths ---- */

void tv_smi_path_push(tv_smi_path *path, tv_str text)
{
    if (path->n >= TV_SMI_DEPTH)
        return;
    const tv_str slug = tv_smi_slug(text, path->slug[path->n]);
    path->length[path->n++] = slug.n;
}

static tv_str at(const tv_smi_path *path, size_t i)
{
    return (tv_str){path->slug[i], path->length[i]};
}

bool tv_smi_path_has(const tv_smi_path *path, const char *slug)
{
    for (size_t i = 0; i < path->n; i++)
        if (tv_smi_among(slug, at(path, i)))
            return true;
    return false;
}

tv_str tv_smi_path_top(const tv_smi_path *path)
{
    return path->n ? at(path, path->n - 1) : (tv_str){0};
}

/* ---- records ---- */

void tv_smi_log_begin(tv_smi_log *log, size_t i)
{
    tv_reading *r = log->r;
    *log = (tv_smi_log){.r = r};
    log->s = tv_see(r, "smi-q", i);
}

static void need(tv_smi_log *log, size_t i)
{
    if (!log->s)
        tv_smi_log_begin(log, i);
    if (!log->card) {
        tv_smi_log_gpu(log, (tv_str){0}, i);
        log->implicit = true;
    }
}

void tv_smi_log_gpu(tv_smi_log *log, tv_str bus, size_t i)
{
    if (log->gpus && bus.n)
        for (const tv_note *card = log->gpus->first; card; card = card->next)
            if (tv_str_eq(tv_noted_str(card, "bus"), bus)) {
                tv_smi_log_end(log); /* the next round of a loop */
                break;
            }
    if (log->n_gpus >= TV_SMI_MOST_CARDS)
        tv_smi_log_end(log);
    if (!log->s)
        tv_smi_log_begin(log, i);
    log->gpus = tv_note_list(log->r->a, &log->s->facts, "gpus");
    log->card = tv_at(log->r, tv_note_map(log->r->a, log->gpus, NULL), i);
    (void)tv_note_null(log->r->a, log->card, "index");
    if (bus.n)
        (void)tv_at(log->r, tv_note_str(log->r->a, log->card, "bus", bus), i);
    log->n_gpus++;
    log->implicit = false;
    log->slice = NULL;
    log->process = NULL;
}

void tv_smi_log_heading(tv_smi_log *log, const tv_smi_path *path, size_t i)
{
    const tv_str top = tv_smi_path_top(path);
    tv_arena *a = log->r->a;
    if (tv_str_is(top, "volatile") || tv_str_is(top, "volatile_count"))
        log->aggregate = false;
    else if (tv_str_is(top, "aggregate"))
        log->aggregate = true;
    if (!log->s || !log->card)
        return;
    if (tv_str_is(top, "mig_device")) {
        log->slice =
            tv_at(log->r, tv_note_map(a, tv_note_list(a, &log->s->facts, "mig_devices"), NULL), i);
        (void)tv_note_num(a, log->slice, "gpu", (double)log->n_gpus - 1);
    } else if (tv_str_is(top, "power_readings")) {
        (void)tv_note_str(a, log->card, "section", TV_S("Power Readings (<=525)"));
    } else if (tv_str_is(top, "gpu_power_readings")) {
        (void)tv_note_str(a, log->card, "section", TV_S("GPU Power Readings (530+)"));
    } else if (tv_str_is(top, "processes")) {
        (void)tv_note_list(a, &log->s->facts, "processes");
    }
}

/* ---- keys ---- */

static bool put_plain(tv_smi_log *log, tv_note *in, const plain_field *fields, size_t n, tv_str key,
                      tv_str value, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (tv_smi_among(fields[k].keys, key)) {
            tv_smi_put(log->r, in, fields[k].fact, fields[k].kind, value, i);
            return true;
        }
    return false;
}

/* What stands above the first card. */
static bool put_head(tv_smi_log *log, tv_str key, tv_str value, size_t i)
{
    static const plain_field fields[] = {
        {"timestamp", "time", TV_SMI_WORD},
        {"driver_version|kmd_version", "driver", TV_SMI_WORD},
        {"cuda_version|cuda_umd_version", "cuda", TV_SMI_TEXT},
        {"attached_gpus", "attached", TV_SMI_NUMBER},
    };
    if (!log->s && tv_str_is(key, "attached_gpus"))
        tv_smi_log_begin(log, i);
    /* "610.57.04 [Deprecated; will be removed ...]" */
    if (tv_smi_among("driver_version|cuda_version", key))
        value = tv_str_trim(tv_str_cut(value, '[').head);
    return log->s &&
           put_plain(log, &log->s->facts, fields, sizeof fields / sizeof *fields, key, value, i);
}

static bool put_slice(tv_smi_log *log, const tv_smi_path *path, tv_str key, tv_str value, size_t i)
{
    static const plain_field fields[] = {
        {"index", "dev", TV_SMI_NUMBER},
        {"gpu_instance_id", "gi", TV_SMI_NUMBER},
        {"compute_instance_id", "ci", TV_SMI_NUMBER},
        {"multiprocessor_count", "sm", TV_SMI_NUMBER},
        {"copy_engine_count", "ce", TV_SMI_NUMBER},
        {"encoder_count", "enc", TV_SMI_NUMBER},
        {"decoder_count", "dec", TV_SMI_NUMBER},
        {"ofa_count", "ofa", TV_SMI_NUMBER},
        {"jpg_count", "jpg", TV_SMI_NUMBER},
        {"sram_uncorrectable", "ecc", TV_SMI_NUMBER},
    };
    static const plain_field usage[] = {
        {"total", "total_bytes", TV_SMI_BYTES},
        {"used", "used_bytes", TV_SMI_BYTES},
    };
    static const plain_field bar1[] = {
        {"total", "bar1_total_bytes", TV_SMI_BYTES},
        {"used", "bar1_used_bytes", TV_SMI_BYTES},
    };
    const tv_str top = tv_smi_path_top(path);
    if (tv_str_is(top, "fb_memory_usage"))
        return put_plain(log, log->slice, usage, 2, key, value, i);
    if (tv_str_is(top, "bar1_memory_usage"))
        return put_plain(log, log->slice, bar1, 2, key, value, i);
    return put_plain(log, log->slice, fields, sizeof fields / sizeof *fields, key, value, i);
}

static bool put_process(tv_smi_log *log, tv_str key, tv_str value, size_t i)
{
    static const plain_field fields[] = {
        {"gpu_instance_id", "gi", TV_SMI_NUMBER},
        {"compute_instance_id", "ci", TV_SMI_NUMBER},
        {"type", "type", TV_SMI_WORD},
        {"name|process_name", "name", TV_SMI_WORD},
        {"used_gpu_memory|used_memory", "used_bytes", TV_SMI_BYTES},
    };
    tv_arena *a = log->r->a;
    if (tv_smi_among("process_id|pid", key)) {
        need(log, i);
        log->process =
            tv_at(log->r, tv_note_map(a, tv_note_list(a, &log->s->facts, "processes"), NULL), i);
        (void)tv_note_num(a, log->process, "gpu", (double)log->n_gpus - 1);
        tv_smi_put(log->r, log->process, "pid", TV_SMI_NUMBER, value, i);
        return true;
    }
    return log->process &&
           put_plain(log, log->process, fields, sizeof fields / sizeof *fields, key, value, i);
}

/* "single_bit" below "volatile" is a section of its own. */
static tv_str section_of(const tv_smi_log *log, const tv_smi_path *path, char buffer[TV_SMI_SLUG])
{
    const tv_str top = tv_smi_path_top(path);
    if (!tv_str_is(top, "single_bit") && !tv_str_is(top, "double_bit"))
        return top;
    bool aggregate = log->aggregate;
    if (tv_smi_path_has(path, "volatile"))
        aggregate = false;
    else if (tv_smi_path_has(path, "aggregate"))
        aggregate = true;
    const char *era = aggregate ? "aggregate_" : "volatile_";
    const size_t n = strlen(era);
    memcpy(buffer, era, n);
    memcpy(buffer + n, top.p, top.n);
    return (tv_str){buffer, n + top.n};
}

/* Keys that no other text has open a record without a heading. */
static bool opens(const tv_smi_field *field)
{
    return *field->sections ||
           tv_smi_among("product_name|gpu_uuid|persistence_mode|performance_state|compute_mode|"
                        "gpu_current_temp|gpu_slowdown_temp",
                        (tv_str){field->keys, strcspn(field->keys, "|")});
}

bool tv_smi_log_value(tv_smi_log *log, const tv_smi_path *path, tv_str key, tv_str value, size_t i)
{
    char buffer[TV_SMI_SLUG];
    if (!log->card && put_head(log, key, value, i))
        return true;
    if (log->slice && tv_smi_path_has(path, "mig_device"))
        return put_slice(log, path, key, value, i);
    if (tv_smi_path_has(path, "processes|process_info") && log->s &&
        put_process(log, key, value, i))
        return true;
    if (log->s && tv_smi_among("processes|mig_devices", key)) {
        if (!value.n || tv_str_eq_nocase(value, TV_S("none")))
            (void)tv_note_list(log->r->a, &log->s->facts,
                               tv_str_is(key, "processes") ? "processes" : "mig_devices");
        return true;
    }
    const tv_smi_field *field = tv_smi_field_of(section_of(log, path, buffer), key);
    if (!field || (!log->s && !opens(field)))
        return false;
    need(log, i);
    const tv_note *old = strchr(field->fact, '.') ? NULL : tv_noted(log->card, field->fact);
    if (old && log->implicit && !tv_str_is(key, "bus_id")) {
        tv_smi_log_gpu(log, (tv_str){0}, i);
        log->implicit = true;
    }
    if (!tv_str_is(key, "bus_id") || !old)
        tv_smi_put(log->r, log->card, field->fact, field->kind, value, i);
    return true;
}

/* ---- the end ---- */

static void number_cards(tv_smi_log *log)
{
    const double attached = tv_noted_num(&log->s->facts, "attached");
    const bool all = isnan(attached) ? log->n_gpus > 1 : attached <= (double)log->n_gpus;
    double index = 0;
    for (tv_note *card = log->gpus->first; card; card = card->next, index++) {
        if (all)
            (void)tv_note_num(log->r->a, card, "index", index);
        tv_smi_finish(log->r->a, card);
    }
}

void tv_smi_log_end(tv_smi_log *log)
{
    tv_reading *r = log->r;
    if (log->s && log->gpus) {
        number_cards(log);
        if (log->n_gpus == 1) {
            tv_smi_copy(r->a, log->gpus->first, &log->s->facts);
            const tv_str name = tv_noted_str(log->gpus->first, "name");
            if (name.n)
                (void)tv_note_str(r->a, &log->s->facts, "product", name);
        }
    }
    *log = (tv_smi_log){.r = r};
}
