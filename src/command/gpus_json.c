/* A card's record as JSON: plain values under the record's keys, who says each of them beside
 * that, and what follows from them. Unknown is null. */
#include "gpus.h"

#include <stddef.h>

#include "base/unit.h"

typedef struct fact_field {
    const char *key;
    size_t offset;
} fact_field;

#define FACT(name)                                                                                 \
    {                                                                                              \
#name, offsetof(tv_device, name)                                                           \
    }

static const fact_field fact_fields[] = {
    FACT(mem_bytes),
    FACT(mem_usable_bytes),
    FACT(mem_bytes_per_s),
    FACT(mem_measured_bytes_per_s),
    FACT(measured_bf16_flops),
    FACT(sparse_multiple),
    FACT(cuda_cores),
    FACT(sm_count),
    FACT(l2_bytes),
    FACT(boost_hz),
    FACT(pcie_gen),
    FACT(pcie_lanes),
    FACT(nvlink_bytes_per_s),
    FACT(nvlink_both_bytes_per_s),
    FACT(nvlink_links),
    FACT(nvlink_gen),
    FACT(board_w),
    FACT(board_min_w),
    FACT(mig_max),
    FACT(max_temp_c),
    FACT(slowdown_temp_c),
    FACT(shutdown_temp_c),
    FACT(mem_max_temp_c),
    FACT(msrp_usd),
};

enum { N_FACTS = sizeof fact_fields / sizeof *fact_fields };

typedef struct text_field {
    const char *key;
    size_t offset;
} text_field;

#define TEXT(name)                                                                                 \
    {                                                                                              \
#name, offsetof(tv_device, name)                                                           \
    }

static const text_field text_fields[] = {
    TEXT(slug),        TEXT(name),        TEXT(vendor),  TEXT(arch),
    TEXT(chip),        TEXT(launch_date), TEXT(segment), TEXT(use_class),
    TEXT(form_factor), TEXT(mem_type),    TEXT(fabric),  TEXT(confidence),
};

enum { N_TEXTS = sizeof text_fields / sizeof *text_fields };

static tv_fact fact_at(const tv_device *d, size_t i)
{
    return *(const tv_fact *)(const void *)((const char *)d + fact_fields[i].offset);
}

static tv_str text_at(const tv_device *d, size_t i)
{
    return *(const tv_str *)(const void *)((const char *)d + text_fields[i].offset);
}

/* ---- what differs ---- */

typedef struct key_list {
    const char **v;
    size_t n;
    size_t cap;
} key_list;

static bool same_fact(tv_fact x, tv_fact y)
{
    return tv_known(x) == tv_known(y) && !(x.v < y.v) && !(x.v > y.v);
}

typedef bool (*same_at)(const tv_device *x, const tv_device *y, size_t i);

static bool same_text_at(const tv_device *x, const tv_device *y, size_t i)
{
    return tv_str_eq(text_at(x, i), text_at(y, i));
}

static bool same_fact_at(const tv_device *x, const tv_device *y, size_t i)
{
    return same_fact(fact_at(x, i), fact_at(y, i));
}

static bool same_rate_at(const tv_device *x, const tv_device *y, size_t i)
{
    return same_fact(x->rate_flops[i], y->rate_flops[i]);
}

static const char *const whole_keys[] = {"compute_capability", "ecc", "p2p_over_pcie",
                                         "fabric_shape", "nvlink_group"};
enum { N_WHOLE = sizeof whole_keys / sizeof *whole_keys };

static bool same_whole_at(const tv_device *x, const tv_device *y, size_t i)
{
    const int pairs[N_WHOLE][2] = {
        {x->compute_capability, y->compute_capability},
        {x->ecc, y->ecc},
        {x->p2p_over_pcie, y->p2p_over_pcie},
        {(int)x->fabric_shape, (int)y->fabric_shape},
        {x->nvlink_group, y->nvlink_group},
    };
    return pairs[i][0] == pairs[i][1];
}

static bool all_same(const tv_device *const *v, size_t n, same_at same, size_t i)
{
    for (size_t k = 1; k < n; k++)
        if (!same(v[0], v[k], i))
            return false;
    return true;
}

size_t tv_card_differences(tv_arena *a, const tv_device *const *v, size_t n, const char ***keys)
{
    key_list list = {0};
    for (size_t i = 2; i < N_TEXTS; i++) /* all have a slug and a name of their own */
        if (!all_same(v, n, same_text_at, i))
            *tv_push(a, &list) = text_fields[i].key;
    for (size_t i = 0; i < N_WHOLE; i++)
        if (!all_same(v, n, same_whole_at, i))
            *tv_push(a, &list) = whole_keys[i];
    for (size_t i = 0; i < N_FACTS; i++)
        if (!all_same(v, n, same_fact_at, i))
            *tv_push(a, &list) = fact_fields[i].key;
    for (size_t i = 0; i < TV_RATE_COUNT; i++)
        if (!all_same(v, n, same_rate_at, i))
            *tv_push(a, &list) = tv_rate_key((tv_rate)i);
    *keys = list.v;
    return list.n;
}

/* ---- writing ---- */

static void put_fact(tv_json_out *w, tv_fact f)
{
    if (tv_known(f))
        tv_json_put_num(w, f.v);
    else
        tv_json_put_null(w);
}

static void put_text(tv_json_out *w, tv_str s)
{
    if (s.n)
        tv_json_put_str(w, s);
    else
        tv_json_put_null(w);
}

static void member_text(tv_json_out *w, const char *key, tv_str s)
{
    tv_json_key(w, key);
    put_text(w, s);
}

static void member_num(tv_json_out *w, const char *key, double v, bool known)
{
    tv_json_key(w, key);
    put_fact(w, known ? tv_fact_of(v, TV_CATALOG, (tv_str){0}) : (tv_fact){0});
}

static void put_texts(tv_json_out *w, const char *key, const tv_str *v, size_t n)
{
    tv_json_key(w, key);
    tv_json_begin(w, '[');
    for (size_t i = 0; i < n; i++)
        tv_json_put_str(w, v[i]);
    tv_json_end(w, ']');
}

static void put_yes_no(tv_json_out *w, const char *key, int v)
{
    tv_json_key(w, key);
    if (v < 0)
        tv_json_put_null(w);
    else
        tv_json_put_bool(w, v != 0);
}

/* The ids of sources that were named, each once. */
typedef struct id_list {
    tv_str *v;
    size_t n;
    size_t cap;
} id_list;

static void note_id(tv_arena *a, id_list *ids, tv_str id)
{
    for (size_t i = 0; i < ids->n; i++)
        if (tv_str_eq(ids->v[i], id))
            return;
    if (id.n)
        *tv_push(a, ids) = id;
}

static void put_provenance(tv_json_out *w, tv_str key, tv_fact f)
{
    tv_json_key_str(w, key);
    tv_json_begin(w, '{');
    member_text(w, "origin", tv_str_of(tv_origin_name(f.origin)));
    member_text(w, "source", f.source);
    member_text(w, "as_of", f.as_of);
    tv_json_end(w, '}');
}

static void provenance(const tv_gpus_run *g, tv_json_out *w, const tv_device *d, id_list *ids)
{
    tv_arena *a = g->r->a;
    tv_json_key(w, "provenance");
    tv_json_begin(w, '{');
    for (size_t i = 0; i < N_FACTS; i++) {
        const tv_fact f = fact_at(d, i);
        if (!tv_known(f))
            continue;
        put_provenance(w, tv_str_of(fact_fields[i].key), f);
        note_id(a, ids, f.source);
    }
    for (size_t i = 0; i < TV_RATE_COUNT; i++) {
        if (!tv_known(d->rate_flops[i]))
            continue;
        put_provenance(w, tv_str_join(a, TV_S("rate_flops."), tv_str_of(tv_rate_key((tv_rate)i))),
                       d->rate_flops[i]);
        note_id(a, ids, d->rate_flops[i].source);
    }
    const tv_json *texts = tv_json_get(d->record, "sources");
    for (size_t i = 0; i < texts->n; i++) {
        const tv_str id = tv_json_str(&texts->items[i]);
        put_provenance(w, texts->items[i].key, tv_fact_of(0, TV_CATALOG, id));
        note_id(a, ids, id);
    }
    tv_json_end(w, '}');
}

static void put_sources(const tv_gpus_run *g, tv_json_out *w, const id_list *ids)
{
    tv_json_key(w, "sources");
    tv_json_begin(w, '{');
    for (size_t i = 0; i < ids->n; i++) {
        tv_source_note note;
        if (!tv_catalog_source(g->market.catalog, ids->v[i], &note))
            continue;
        tv_json_key_str(w, note.id);
        tv_json_begin(w, '{');
        member_text(w, "where", note.where);
        member_text(w, "date", note.date);
        member_text(w, "licence", note.licence);
        member_text(w, "grade", note.grade);
        member_text(w, "note", note.note);
        tv_json_end(w, '}');
    }
    tv_json_end(w, '}');
}

static void put_rates(tv_json_out *w, const tv_device *d)
{
    tv_json_key(w, "rate_flops");
    tv_json_begin(w, '{');
    for (size_t i = 0; i < TV_RATE_COUNT; i++) {
        tv_json_key(w, tv_rate_key((tv_rate)i));
        put_fact(w, d->rate_flops[i]);
    }
    tv_json_end(w, '}');
    const tv_card_rate rate = tv_card_training_rate(d);
    tv_json_key(w, "training_rate");
    tv_json_begin(w, '{');
    member_text(w, "mode", tv_known(rate.fact) ? tv_str_of(tv_rate_key(rate.mode)) : (tv_str){0});
    tv_json_key(w, "flops");
    put_fact(w, rate.fact);
    tv_json_key(w, "ridge_flop_per_byte");
    put_fact(w, tv_card_ridge(d, rate.fact));
    tv_json_end(w, '}');
}

static void put_dtypes(const tv_gpus_run *g, tv_json_out *w, const tv_device *d)
{
    tv_card_dtype v[TV_CARD_DTYPES];
    tv_card_dtypes(g->r->a, d, v);
    tv_json_key(w, "dtypes");
    tv_json_begin(w, '{');
    for (size_t i = 0; i < TV_CARD_DTYPES; i++) {
        tv_json_key(w, v[i].dtype);
        tv_json_begin(w, '{');
        member_text(w, "support", tv_str_of(tv_support_name(v[i].support)));
        tv_json_key(w, "flops");
        put_fact(w, v[i].rate);
        tv_json_key(w, "why");
        tv_json_put_text(w, g->r->lang, v[i].why);
        tv_json_end(w, '}');
    }
    tv_json_end(w, '}');
}

static void put_links(const tv_gpus_run *g, tv_json_out *w, const tv_device *d)
{
    static const char *const shapes[] = {"", "bridge", "mesh", "switch", "torus"};
    tv_fact wire = {0}, reached = {0};
    const int lanes = tv_known(d->pcie_lanes) ? (int)d->pcie_lanes.v : 16;
    if (tv_known(d->pcie_gen) &&
        tv_catalog_pcie(g->market.catalog, (int)d->pcie_gen.v, lanes, &wire, &reached))
        wire = reached = (tv_fact){0};
    tv_json_key(w, "links");
    tv_json_begin(w, '{');
    member_text(w, "fabric_shape", tv_str_of(shapes[d->fabric_shape]));
    member_num(w, "nvlink_group", d->nvlink_group, d->nvlink_group > 0);
    tv_json_key(w, "pcie_nominal_bytes_per_s");
    put_fact(w, tv_card_slot_nominal(d));
    tv_json_key(w, "pcie_bytes_per_s");
    put_fact(w, wire);
    member_num(w, "pcie_both_bytes_per_s", wire.v * 2, tv_known(wire));
    tv_json_key(w, "pcie_reached_bytes_per_s");
    put_fact(w, reached);
    tv_json_end(w, '}');
}

void tv_json_price(const tv_gpus_run *g, tv_json_out *w, const tv_price *p)
{
    const int age = tv_date_age_days(p->date, g->r->today);
    if (!(p->value > 0)) {
        tv_json_put_null(w);
        return;
    }
    tv_json_begin(w, '{');
    tv_json_key(w, "value");
    tv_json_put_num(w, p->value);
    member_text(w, "currency", p->currency);
    member_text(w, "date", p->date);
    member_text(w, "channel", p->channel);
    member_text(w, "source", p->source);
    member_num(w, "age_days", age, age >= 0);
    tv_json_end(w, '}');
}

static void put_prices(const tv_gpus_run *g, tv_json_out *w, const tv_device *d)
{
    tv_json_key(w, "prices");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < d->n_prices; i++)
        tv_json_price(g, w, &d->prices[i]);
    if (tv_known(d->msrp_usd))
        tv_json_price(g, w,
                      &(tv_price){.currency = TV_S("USD"),
                                  .value = d->msrp_usd.v,
                                  .date = d->msrp_usd.as_of,
                                  .channel = TV_S("list price"),
                                  .source = d->msrp_usd.source});
    tv_json_end(w, ']');
}

static void put_notes(const tv_gpus_run *g, tv_json_out *w, const tv_device *d)
{
    tv_texts notes = {0};
    if (tv_card_notes(g, d, &notes))
        notes.n = 0;
    put_texts(w, "notes", notes.v, notes.n);
}

static void put_remarks(const tv_gpus_run *g, tv_json_out *w, const tv_device *d)
{
    tv_texts_list list = {0};
    tv_card_remarks(g->r->a, d, &list);
    tv_json_key(w, "remarks");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < list.n; i++)
        tv_json_put_text(w, g->r->lang, list.v[i]);
    tv_json_end(w, ']');
}

static void put_stack(const tv_gpus_run *g, tv_json_out *w, const tv_device *d)
{
    const tv_card_stack s = tv_card_frameworks(d);
    tv_json_key(w, "frameworks");
    tv_json_begin(w, '{');
    const struct {
        const char *key;
        const char *how;
        tv_support support;
    } rows[] = {{"torch", s.torch, s.on_torch}, {"paddle", s.paddle, s.on_paddle}};
    for (size_t i = 0; i < 2; i++) {
        static const char *const levels[] = {"unknown", "none", "plug-in", "wheels"};
        tv_json_key(w, rows[i].key);
        tv_json_begin(w, '{');
        member_text(w, "level", tv_str_of(levels[rows[i].support]));
        tv_json_key(w, "how");
        tv_json_put_text(w, g->r->lang, (tv_text){.id = "card.stack", .msgid = rows[i].how});
        tv_json_end(w, '}');
    }
    tv_json_end(w, '}');
}

void tv_json_card(const tv_gpus_run *g, tv_json_out *w, const tv_device *d, const tv_held_job *jobs,
                  size_t n_jobs)
{
    id_list ids = {0};
    tv_json_begin(w, '{');
    for (size_t i = 0; i < N_TEXTS; i++)
        member_text(w, text_fields[i].key, text_at(d, i));
    put_texts(w, "aliases", d->aliases, d->n_aliases);
    put_texts(w, "pci_ids", d->pci_ids, d->n_pci_ids);
    member_text(w, "compute_capability", tv_card_capability(g->r->a, d));
    put_yes_no(w, "ecc", d->ecc);
    put_yes_no(w, "p2p_over_pcie", d->p2p_over_pcie);
    for (size_t i = 0; i < N_FACTS; i++) {
        tv_json_key(w, fact_fields[i].key);
        put_fact(w, fact_at(d, i));
    }
    put_rates(w, d);
    put_dtypes(g, w, d);
    put_links(g, w, d);
    put_stack(g, w, d);
    put_prices(g, w, d);
    put_remarks(g, w, d);
    put_notes(g, w, d);
    if (n_jobs) {
        tv_json_key(w, "holds");
        tv_json_held(g, w, jobs, n_jobs);
    }
    provenance(g, w, d, &ids);
    put_sources(g, w, &ids);
    tv_json_end(w, '}');
}
