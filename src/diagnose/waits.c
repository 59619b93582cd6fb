/* Waiting for data and what the host did meanwhile, from whichever document told it. Knows no
 * rule. */
#include "waits.h"

#include <math.h>
#include <string.h>

static bool is_kind(const tv_sighting *s, const char *kind)
{
    return strcmp(s->kind, kind) == 0;
}

/* Device time over the time of the steps: with the device busy, a wait of the CPU costs nothing. */
static bool device_is_busy(const tv_note *facts)
{
    double host_s = tv_noted_num(facts, "profilerstep.cpu_total_s");
    if (isnan(host_s))
        host_s = tv_noted_num(facts, "self_cpu_total_s");
    return tv_noted_num(facts, "self_device_total_s") >= 0.9 * host_s;
}

static bool wait_of_table(const tv_sighting *s, tv_wait *out)
{
    const tv_note *facts = &s->facts;
    const tv_str loader = tv_noted_str(facts, "loader");
    out->at = tv_noted(facts, "loader");
    out->share = tv_noted_num(facts, "loader_frac");
    out->batch_s = tv_noted_num(facts, "loader_batch_s");
    out->hidden = device_is_busy(facts);
    if (tv_str_starts(loader, TV_S("single")))
        out->loader = TV_LOADER_MAIN;
    else if (tv_str_starts(loader, TV_S("worker")))
        out->loader = TV_LOADER_WORKERS;
    if (loader.n)
        return true;
    if (!tv_noted_is(facts, "layer", "data loading (inferred)"))
        return false;
    out->at = tv_noted(facts, "profilerstep");
    out->share = tv_noted_num(facts, "step_gap_frac");
    out->guessed = true;
    return true;
}

static bool wait_of_log(const tv_sighting *s, tv_wait *out)
{
    const tv_note *facts = &s->facts;
    out->share = tv_noted_num(facts, "data_frac");
    out->batch_s = tv_noted_num(facts, "data_s");
    out->at = tv_noted(facts, "data_s");
    return !isnan(out->share);
}

/* Of a timeline it is known whether the device stood still meanwhile. */
static bool wait_of_trace(const tv_sighting *s, tv_wait *out)
{
    const tv_note *facts = &s->facts;
    const double exposed = tv_noted_num(facts, "shares.data");
    out->share = isnan(exposed) ? tv_noted_num(facts, "data_wait_share") : exposed;
    out->at = tv_noted(facts, "data_wait_s");
    out->batch_s = tv_noted_num(facts, "data_wait_s") / tv_noted_num(facts, "data_waits");
    if (tv_noted_num(facts, "loader_single") > 0)
        out->loader = TV_LOADER_MAIN;
    else if (tv_noted_num(facts, "loader_multi") > 0)
        out->loader = TV_LOADER_WORKERS;
    return out->at && tv_noted_num(facts, "steps") >= 1;
}

bool tv_wait_of(const tv_sighting *s, tv_wait *out)
{
    *out = (tv_wait){.s = s, .share = (double)NAN, .batch_s = (double)NAN};
    if (is_kind(s, "key_averages"))
        return wait_of_table(s, out);
    if (is_kind(s, "trace"))
        return wait_of_trace(s, out);
    if (is_kind(s, "train-log"))
        return wait_of_log(s, out);
    return false;
}

tv_finding *tv_wait_found(const tv_inquiry *q, const tv_rule *rule, const tv_sighting *s)
{
    for (size_t i = 0; is_kind(s, "train-log") && i < q->out->findings.n; i++) {
        tv_finding *f = q->out->findings.v[i];
        if (f->rule == rule && f->evidence.n && tv_str_eq(f->evidence.v[0].file, s->file))
            return f;
    }
    return NULL;
}

/* ---- the host ---- */

static void take_cpu(tv_host_load *load, const tv_note *facts)
{
    if (isnan(load->idle_frac))
        load->idle_frac = tv_noted_num(facts, "idle_frac");
    if (isnan(load->iowait_frac))
        load->iowait_frac = tv_noted_num(facts, "iowait_frac");
    if (isnan(load->system_frac))
        load->system_frac = tv_noted_num(facts, "system_frac");
}

/* In the latest report, the device that delivers most. */
static void take_disks(tv_host_load *load, const tv_sighting *s)
{
    for (const tv_note *d = s->facts.first; d; d = d->next) {
        const double bytes = tv_noted_num(d, "r_bytes_per_s");
        if (d->type != TV_NOTE_MAP || isnan(bytes) ||
            (load->device && bytes <= load->read_bytes_per_s))
            continue;
        load->s = s;
        load->device = d;
        load->read_bytes_per_s = bytes;
        load->read_wait_s = tv_noted_num(d, "r_await_s");
        if (isnan(load->read_wait_s))
            load->read_wait_s = tv_noted_num(d, "await_s");
        load->queue = tv_noted_num(d, "aqu_sz");
    }
}

tv_host_load tv_host_load_of(const tv_scene *scene)
{
    static const char *const kinds[] = {"vmstat", "cpu-load"};
    const double unknown = (double)NAN;
    tv_host_load load = {unknown, unknown, unknown, unknown, unknown, unknown, NULL, NULL};
    for (const tv_sighting *s = tv_scene_first(scene, "iostat"); s;
         s = tv_scene_next(s, "iostat")) {
        if (tv_noted_bool(&s->facts, "since_boot", false) && tv_noted_num(&s->facts, "samples") < 2)
            continue;
        take_cpu(&load, &s->facts);
        take_disks(&load, s);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (const tv_sighting *s = tv_scene_first(scene, kinds[i]); s;
             s = tv_scene_next(s, kinds[i]))
            take_cpu(&load, &s->facts);
    return load;
}

/* NVMe answers in 0.1 ms, SATA flash in 0.5 ms: 2 ms is a queue or an arm. */
bool tv_storage_waits(const tv_host_load *load)
{
    return load->iowait_frac >= 0.15 ||
           (load->read_wait_s >= 2e-3 && load->read_bytes_per_s >= 1e6);
}

bool tv_cpu_is_full(const tv_host_load *load)
{
    return load->idle_frac <= 0.10 && !(load->iowait_frac >= 0.10);
}
