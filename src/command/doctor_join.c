/* Product names in the facts -> records of the catalogue. Rules may not look there themselves. */
#include "doctor_join.h"

#include <math.h>
#include <string.h>

#include "catalog/catalog.h"

typedef struct joining {
    tv_request *r;
    tv_scene *scene;
    tv_catalog *catalog;
    tv_offer_list offers;
} joining;

static void put_fact(tv_arena *a, tv_note *facts, const char *key, tv_fact f)
{
    (void)tv_note_num(a, facts, key, tv_known(f) ? f.v : (double)NAN);
}

/* Data-centre cards for slots have no fan of their own (NVIDIA's product briefs of T4, A10, L4,
 * L40S, A100 PCIe: "passive heat sink"). */
static bool is_passive(const tv_device *d)
{
    return tv_str_is(d->segment, "datacenter") && tv_str_starts(d->form_factor, TV_S("PCIe"));
}

static void describe(tv_arena *a, tv_note *facts, const tv_device *d)
{
    (void)tv_note_str(a, facts, "slug", d->slug);
    (void)tv_note_str(a, facts, "vendor", d->vendor);
    (void)tv_note_str(a, facts, "arch", d->arch);
    (void)tv_note_str(a, facts, "segment", d->segment);
    (void)tv_note_str(a, facts, "form_factor", d->form_factor);
    (void)tv_note_str(a, facts, "mem_type", d->mem_type);
    (void)tv_note_bool(a, facts, "passive", is_passive(d));
    if (d->compute_capability)
        (void)tv_note_num(a, facts, "compute_capability", d->compute_capability / 10.0);
    if (d->p2p_over_pcie >= 0)
        (void)tv_note_bool(a, facts, "p2p_over_pcie", d->p2p_over_pcie);
    if (d->fabric.n)
        (void)tv_note_str(a, facts, "fabric", d->fabric);
    put_fact(a, facts, "tdp_w", d->board_w);
    put_fact(a, facts, "mem_bytes", d->mem_bytes);
    put_fact(a, facts, "mem_usable_bytes", d->mem_usable_bytes);
    put_fact(a, facts, "mem_bytes_per_s", d->mem_bytes_per_s);
    put_fact(a, facts, "fp32_flop_per_s", d->rate_flops[TV_RATE_FP32]);
    put_fact(a, facts, "tf32_flop_per_s", d->rate_flops[TV_RATE_TF32]);
    put_fact(a, facts, "fp16_flop_per_s", d->rate_flops[TV_RATE_FP16_TENSOR]);
    put_fact(a, facts, "bf16_flop_per_s", d->rate_flops[TV_RATE_BF16_TENSOR]);
    put_fact(a, facts, "pcie_gen", d->pcie_gen);
    put_fact(a, facts, "pcie_lanes", d->pcie_lanes);
    put_fact(a, facts, "boost_hz", d->boost_hz);
    put_fact(a, facts, "nvlink_bytes_per_s", d->nvlink_bytes_per_s);
    put_fact(a, facts, "max_temp_c", d->max_temp_c);
    put_fact(a, facts, "slowdown_temp_c", d->slowdown_temp_c);
    put_fact(a, facts, "shutdown_temp_c", d->shutdown_temp_c);
    put_fact(a, facts, "mem_max_temp_c", d->mem_max_temp_c);
}

static bool is_known(const tv_scene *scene, tv_str name)
{
    for (const tv_sighting *s = tv_scene_first(scene, "device-record"); s;
         s = tv_scene_next(s, "device-record"))
        if (tv_str_eq(tv_noted_str(&s->facts, "name"), name))
            return true;
    return false;
}

/* Names are cut by nvidia-smi ("NVIDIA GeForce RTX 3060 ..."): what stands before the dots may
 * begin several products, which the memory tells apart or nothing does. */
static tv_str whole_name(tv_str name)
{
    return tv_str_ends(name, TV_S("...")) ? tv_str_trim(tv_str_take(name, name.n - 3)) : name;
}

/* Of the products that a name stands for the one whose memory is nearest: that it has another
 * amount is for a rule to say. */
static const tv_device *nearest(tv_naming found, double total_bytes)
{
    const tv_device *best = NULL;
    for (size_t i = 0; i < tv_naming_count(found); i++) {
        const tv_device *d = tv_naming_at(found, i);
        if (!best ||
            fabs(tv_device_memory(d) - total_bytes) < fabs(tv_device_memory(best) - total_bytes))
            best = d;
    }
    return best;
}

static bool find(joining *j, tv_str name, double total_bytes, const tv_device **d)
{
    tv_naming found = {0};
    if (total_bytes > 0 && !tv_catalog_device(j->catalog, name, total_bytes, d))
        return true;
    if (tv_catalog_find(j->catalog, name, 0, &found) || (found.group && !(total_bytes > 0)))
        return false;
    *d = nearest(found, total_bytes);
    return true;
}

/* The cheapest offer for one card, on demand, in dollars. */
static void put_price(joining *j, tv_note *facts, const tv_device *d)
{
    const tv_offer_query query = {.gpu = d->slug, .currency = TV_S("USD"), .today = j->r->today};
    const tv_offer *o = tv_offer_cheapest(j->offers, &query);
    if (!o)
        return;
    (void)tv_note_num(j->r->a, facts, "usd_per_h", tv_offer_gpu_per_h(o, false));
    (void)tv_note_str(j->r->a, facts, "price_source", o->provider);
    (void)tv_note_str(j->r->a, facts, "price_date", o->date);
}

static void look_up(joining *j, tv_str name, double total_bytes)
{
    const tv_device *d = NULL;
    if (!name.n || is_known(j->scene, name) || !find(j, whole_name(name), total_bytes, &d))
        return; /* an unknown product is no mistake of the user's here */
    tv_sighting *s =
        tv_scene_add(j->r->a, j->scene, "device-record", TV_S("catalogue"), 0, d->name);
    (void)tv_note_str(j->r->a, &s->facts, "name", name);
    describe(j->r->a, &s->facts, d);
    put_price(j, &s->facts, d);
}

static bool is_list_of_gpus(const tv_note *note)
{
    return note->type == TV_NOTE_LIST && note->key && strcmp(note->key, "gpus") == 0;
}

/* gpus: a list of names, or of maps with a name and perhaps a memory size. */
static void look_up_gpus(joining *j, const tv_note *gpus)
{
    for (const tv_note *gpu = gpus->first; gpu; gpu = gpu->next)
        if (gpu->type == TV_NOTE_STR)
            look_up(j, gpu->s, 0);
        else
            look_up(j, tv_noted_str(gpu, "name"), tv_noted_num(gpu, "total_bytes"));
}

const tv_err *tv_doctor_devices(tv_request *r, tv_scene *scene)
{
    joining j = {.r = r, .scene = scene};
    TV_TRY(tv_catalog_open(r->a, r->home, &j.catalog));
    TV_TRY(tv_catalog_offers(j.catalog, (tv_str){0}, &j.offers));
    const tv_sighting *last = scene->last; /* what is added below names nothing new */
    for (const tv_sighting *s = scene->first; s; s = s == last ? NULL : s->next) {
        for (const tv_note *note = s->facts.first; note; note = note->next)
            if (is_list_of_gpus(note))
                look_up_gpus(&j, note);
        look_up(&j, tv_noted_str(&s->facts, "product"), tv_noted_num(&s->facts, "total_bytes"));
        look_up(&j, tv_noted_str(&s->facts, "model"), (double)NAN);
    }
    return NULL;
}
