/* One accelerator's record: its keys, their ranges, and what follows from them (CUDA cores). */
#include "records.h"

#include <math.h>
#include <stddef.h>

typedef struct fact_key {
    const char *key;
    size_t offset;
    double min;
    double max;
} fact_key;

#define FACT(name, min_, max_)                                                                     \
    {                                                                                              \
#name, offsetof(tv_device, name), (min_), (max_)                                           \
    }

/* Ranges are sanity: a slip of a factor of 1000 must not pass. */
static const fact_key fact_keys[] = {
    FACT(mem_bytes, 1e8, 4e12),
    FACT(mem_usable_bytes, 1e8, 4e12),
    FACT(mem_bytes_per_s, 1e9, 1e14),
    FACT(mem_measured_bytes_per_s, 1e9, 1e14),
    FACT(measured_bf16_flops, 1e11, 1e17),
    FACT(sparse_multiple, 1, 8),
    FACT(sm_count, 1, 4096),
    FACT(l2_bytes, 1e4, 1e10),
    FACT(boost_hz, 1e8, 1e10),
    FACT(pcie_gen, 1, 8),
    FACT(pcie_lanes, 1, 32),
    FACT(nvlink_bytes_per_s, 1e9, 1e13),
    FACT(nvlink_links, 1, 256),
    FACT(nvlink_gen, 1, 16),
    FACT(board_w, 1, 5000),
    FACT(board_min_w, 1, 5000),
    FACT(mig_max, 1, 64),
    FACT(max_temp_c, 20, 150),
    FACT(slowdown_temp_c, 20, 150),
    FACT(shutdown_temp_c, 20, 150),
    FACT(mem_max_temp_c, 20, 150),
    FACT(msrp_usd, 10, 1e7),
    FACT(cuda_cores, 1, 1e6),
};

typedef struct text_key {
    const char *key;
    size_t offset;
} text_key;

#define TEXT(name)                                                                                 \
    {                                                                                              \
#name, offsetof(tv_device, name)                                                           \
    }

static const text_key text_keys[] = {
    TEXT(slug),        TEXT(vendor),      TEXT(name),    TEXT(arch),
    TEXT(chip),        TEXT(launch_date), TEXT(segment), TEXT(use_class),
    TEXT(form_factor), TEXT(mem_type),    TEXT(fabric),  TEXT(confidence),
};

/* FP32 lanes of one multiprocessor by compute capability (source: cuda-guide). */
typedef struct lanes_row {
    int from, to;
    int lanes;
} lanes_row;

static const lanes_row lanes_table[] = {
    {30, 37, 192}, {50, 53, 128}, {60, 60, 64},  {61, 62, 128},
    {70, 75, 64},  {80, 80, 64},  {86, 89, 128}, {90, 129, 128},
};

static void fill_cuda_cores(tv_device *d)
{
    if (tv_known(d->cuda_cores) || !tv_known(d->sm_count))
        return;
    for (size_t i = 0; i < sizeof lanes_table / sizeof *lanes_table; i++)
        if (d->compute_capability >= lanes_table[i].from &&
            d->compute_capability <= lanes_table[i].to)
            d->cuda_cores =
                tv_fact_of(d->sm_count.v * lanes_table[i].lanes, TV_COMPUTED, TV_S("cuda-guide"));
}

static const tv_err *bad_value(const tv_catalog *c, const tv_record *r, const tv_json *j,
                               const char *id, const char *msgid)
{
    return tv_record_fail(c, r, j, TV_TEXT(c->a, id, msgid, tv_arg_str("key", j->key)));
}

static tv_origin origin_of(tv_str source)
{
    return tv_str_is(source, "derived") ? TV_COMPUTED : TV_CATALOG;
}

const tv_err *tv_record_fact(const tv_catalog *c, const tv_record *r, const tv_json *j, double min,
                             double max, tv_fact *fact)
{
    *fact = (tv_fact){0};
    if (j->type == TV_JSON_END || j->type == TV_JSON_NULL)
        return NULL;
    const bool plain = tv_json_is_num(j);
    const tv_json *number = plain ? j : tv_json_at(j, 0);
    if (!tv_json_is_num(number))
        return bad_value(c, r, j, "catalog.no-number",
                         N_("\"{key}\" is neither a number nor [number, source]"));
    if (!(number->number >= min && number->number <= max))
        return bad_value(c, r, j, "catalog.out-of-range", N_("\"{key}\" is out of range"));
    const tv_str source = tv_json_str(tv_json_at(j, 1));
    if (plain || !source.n) {
        *fact = tv_fact_of(number->number, TV_STATED, r->file);
        return NULL;
    }
    tv_source_note note;
    (void)tv_catalog_source(c, source, &note);
    *fact = tv_fact_of(number->number, origin_of(source), source);
    fact->as_of = note.date;
    return NULL;
}

static const tv_err *read_texts(const tv_catalog *c, const tv_record *r, const tv_json *j,
                                const tv_str **v, size_t *n)
{
    if (j->type != TV_JSON_ARRAY)
        return bad_value(c, r, j, "catalog.no-texts", N_("\"{key}\" is no list of texts"));
    tv_str *texts = tv_new(c->a, tv_str, j->n);
    for (size_t i = 0; i < j->n; i++)
        if (!(texts[i] = tv_json_str(&j->items[i])).n)
            return bad_value(c, r, j, "catalog.no-texts", N_("\"{key}\" is no list of texts"));
    *v = texts;
    *n = j->n;
    return NULL;
}

static const tv_err *read_rates(const tv_catalog *c, const tv_record *r, const tv_json *j,
                                tv_device *d)
{
    for (size_t i = 0; i < j->n; i++) {
        size_t rate = 0;
        while (rate < TV_RATE_COUNT && !tv_str_is(j->items[i].key, tv_rate_key((tv_rate)rate)))
            rate++;
        if (rate == TV_RATE_COUNT)
            return bad_value(c, r, &j->items[i], "catalog.unknown-key",
                             N_("a record has no key \"{key}\""));
        TV_TRY(tv_record_fact(c, r, &j->items[i], 1e8, 1e17, &d->rate_flops[rate]));
    }
    return NULL;
}

/* "8.9" is 89, "12.0" is 120. */
static const tv_err *read_capability(const tv_catalog *c, const tv_record *r, const tv_json *j,
                                     tv_device *d)
{
    const tv_cut cut = tv_str_cut(tv_json_str(j), '.');
    const tv_u64_read major = tv_str_u64(cut.head), minor = tv_str_u64(cut.tail);
    if (!cut.found || !major.ok || !minor.ok || major.v > 99 || minor.v > 9)
        return bad_value(c, r, j, "catalog.capability",
                         N_("\"{key}\" is no compute capability such as \"8.9\""));
    d->compute_capability = (int)(major.v * 10 + minor.v);
    return NULL;
}

static const tv_err *read_shape(const tv_catalog *c, const tv_record *r, const tv_json *j,
                                tv_device *d)
{
    static const char *const names[] = {"", "bridge", "mesh", "switch", "torus"};
    for (size_t i = 1; i < sizeof names / sizeof *names; i++)
        if (tv_str_is(tv_json_str(j), names[i])) {
            d->fabric_shape = (tv_fabric_shape)i;
            return NULL;
        }
    return bad_value(c, r, j, "catalog.shape",
                     N_("\"{key}\" is none of bridge, mesh, switch, torus"));
}

static int yes_no(const tv_json *j)
{
    return j->type == TV_JSON_TRUE ? 1 : j->type == TV_JSON_FALSE ? 0 : -1;
}

static const tv_err *read_group(const tv_catalog *c, const tv_record *r, const tv_json *j,
                                tv_device *d)
{
    tv_fact group;
    TV_TRY(tv_record_fact(c, r, j, 2, 1e5, &group));
    d->nvlink_group = tv_known(group) ? (int)group.v : 0;
    return NULL;
}

static const tv_err *read_special(const tv_catalog *c, const tv_record *r, const tv_json *j,
                                  tv_device *d)
{
    if (tv_str_is(j->key, "aliases"))
        return read_texts(c, r, j, &d->aliases, &d->n_aliases);
    if (tv_str_is(j->key, "pci_ids"))
        return read_texts(c, r, j, &d->pci_ids, &d->n_pci_ids);
    if (tv_str_is(j->key, "remarks"))
        return read_texts(c, r, j, &d->notes, &d->n_notes);
    if (tv_str_is(j->key, "rate_flops") && j->type == TV_JSON_OBJECT)
        return read_rates(c, r, j, d);
    if (tv_str_is(j->key, "compute_capability"))
        return read_capability(c, r, j, d);
    if (tv_str_is(j->key, "fabric_shape"))
        return read_shape(c, r, j, d);
    if (tv_str_is(j->key, "nvlink_group"))
        return read_group(c, r, j, d);
    if (tv_str_is(j->key, "ecc"))
        d->ecc = yes_no(j);
    else if (tv_str_is(j->key, "p2p_over_pcie"))
        d->p2p_over_pcie = yes_no(j);
    else if (!tv_str_is(j->key, "sources") && !tv_str_is(j->key, "msrp_date"))
        return bad_value(c, r, j, "catalog.unknown-key", N_("a record has no key \"{key}\""));
    return NULL;
}

static const tv_err *read_member(const tv_catalog *c, const tv_record *r, const tv_json *j,
                                 tv_device *d)
{
    for (size_t i = 0; i < sizeof fact_keys / sizeof *fact_keys; i++)
        if (tv_str_is(j->key, fact_keys[i].key))
            return tv_record_fact(c, r, j, fact_keys[i].min, fact_keys[i].max,
                                  (tv_fact *)(void *)((char *)d + fact_keys[i].offset));
    for (size_t i = 0; i < sizeof text_keys / sizeof *text_keys; i++)
        if (tv_str_is(j->key, text_keys[i].key)) {
            if (j->type != TV_JSON_STRING)
                return bad_value(c, r, j, "catalog.no-text", N_("\"{key}\" is no text"));
            *(tv_str *)(void *)((char *)d + text_keys[i].offset) = j->s;
            return NULL;
        }
    return read_special(c, r, j, d);
}

const tv_err *tv_device_read(const tv_catalog *c, const tv_record *r, tv_device *d)
{
    *d = (tv_device){.ecc = -1, .p2p_over_pcie = -1, .record = r->json};
    for (size_t i = 0; i < r->json->n; i++)
        TV_TRY(read_member(c, r, &r->json->items[i], d));
    if (!d->slug.n)
        return tv_record_fail(c, r, r->json,
                              TV_TEXT(c->a, "catalog.no-id", N_("a record has no \"{key}\""),
                                      tv_arg_str("key", TV_S("slug"))));
    if (!d->name.n)
        d->name = d->slug;
    d->msrp_usd.as_of = tv_json_str(tv_json_get(r->json, "msrp_date"));
    d->nvlink_both_bytes_per_s = d->nvlink_bytes_per_s;
    d->nvlink_both_bytes_per_s.v *= 2;
    d->nvlink_both_bytes_per_s.lo *= 2;
    d->nvlink_both_bytes_per_s.hi *= 2;
    fill_cuda_cores(d);
    return NULL;
}
