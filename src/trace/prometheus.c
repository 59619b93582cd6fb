/* Metrics of GPUs in Prometheus' text form: dcgm-exporter, and two exporters over nvidia-smi. A
 * card is told by its UUID, or its number and host; the help's name need not be the sample's. */
#include <math.h>
#include <string.h>

#include "smi_parts.h"

enum { MOST_CARDS = 512, MOST_VALUES = 64, MOST_LABELS = 48 };

typedef struct metric_row {
    const char *name;
    const char *fact;
    const char *unit; /* of a list of values: "frac", "c", "w", "bytes", "mhz"; NULL: none */
    double factor;
} metric_row;

static const metric_row metrics[] = {
    {"DCGM_FI_DEV_GPU_UTIL", "util_frac", "frac", 0.01},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", "mem_util_frac", "frac", 0.01},
    {"DCGM_FI_DEV_ENC_UTIL", "enc_frac", "frac", 0.01},
    {"DCGM_FI_DEV_DEC_UTIL", "dec_frac", "frac", 0.01},
    {"DCGM_FI_DEV_GPU_TEMP", "temp_c", "c", 1},
    {"DCGM_FI_DEV_MEMORY_TEMP", "mem_temp_c", "c", 1},
    {"DCGM_FI_DEV_SLOWDOWN_TEMP", "slowdown_c", "c", 1},
    {"DCGM_FI_DEV_SHUTDOWN_TEMP", "shutdown_c", "c", 1},
    {"DCGM_FI_DEV_POWER_USAGE", "power_w", "w", 1},
    {"DCGM_FI_DEV_POWER_MGMT_LIMIT", "limit_w", "w", 1},
    {"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "enforced_w", "w", 1},
    {"DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", "default_w", "w", 1},
    {"DCGM_FI_DEV_SM_CLOCK", "sm_mhz", "mhz", 1},
    {"DCGM_FI_DEV_MEM_CLOCK", "mem_mhz", "mhz", 1},
    {"DCGM_FI_DEV_MAX_SM_CLOCK", "max_sm_mhz", "mhz", 1},
    {"DCGM_FI_DEV_FB_USED", "used_bytes", "bytes", 0x1p20},
    {"DCGM_FI_DEV_FB_FREE", "free_bytes", "bytes", 0x1p20},
    {"DCGM_FI_DEV_FB_TOTAL", "total_bytes", "bytes", 0x1p20},
    {"DCGM_FI_DEV_FB_RESERVED", "reserved_bytes", "bytes", 0x1p20},
    {"DCGM_FI_DEV_FAN_SPEED", "fan_frac", "frac", 0.01},
    {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "replays", NULL, 1},
    {"DCGM_FI_DEV_PCIE_LINK_GEN", "link_gen", NULL, 1},
    {"DCGM_FI_DEV_PCIE_LINK_WIDTH", "link_width", NULL, 1},
    {"DCGM_FI_DEV_PCIE_MAX_LINK_GEN", "link_gen_max", NULL, 1},
    {"DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", "link_width_max", NULL, 1},
    {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "single_bit_volatile", NULL, 1},
    {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "double_bit_volatile", NULL, 1},
    {"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "single_bit_aggregate", NULL, 1},
    {"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "double_bit_aggregate", NULL, 1},
    {"DCGM_FI_DEV_RETIRED_SBE", "retired_single", NULL, 1},
    {"DCGM_FI_DEV_RETIRED_DBE", "retired_double", NULL, 1},
    {"DCGM_FI_DEV_RETIRED_PENDING", "retired_pending", "yes", 1},
    {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "remap_uncorr", NULL, 1},
    {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "remap_corr", NULL, 1},
    {"DCGM_FI_DEV_ROW_REMAP_FAILURE", "remap_failure", "yes", 1},
    {"DCGM_FI_DEV_ROW_REMAP_PENDING", "remap_pending", "yes", 1},
    {"DCGM_FI_DEV_POWER_VIOLATION", "power_violation_s", "s", 1e-9},
    {"DCGM_FI_DEV_THERMAL_VIOLATION", "thermal_violation_s", "s", 1e-9},
    {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "reasons", "mask", 1},
    {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "reasons", "mask", 1},
    {"DCGM_FI_DEV_XID_ERRORS", "xid", NULL, 1},
    {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "nvlink_crc_errors", NULL, 1},
    {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "nvlink_crc_data_errors", NULL, 1},
    {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "nvlink_replays", NULL, 1},
    {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "nvlink_recoveries", NULL, 1},
    {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gr_active_frac", "frac", 1},
    {"DCGM_FI_PROF_SM_ACTIVE", "sm_active_frac", "frac", 1},
    {"DCGM_FI_PROF_SM_OCCUPANCY", "sm_occupancy_frac", "frac", 1},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tensor_active_frac", "frac", 1},
    {"DCGM_FI_PROF_DRAM_ACTIVE", "dram_active_frac", "frac", 1},
    {"DCGM_FI_PROF_PCIE_TX_BYTES", "tx_bytes_per_s", "bytes_per_s", 1},
    {"DCGM_FI_PROF_PCIE_RX_BYTES", "rx_bytes_per_s", "bytes_per_s", 1},
    {"DCGM_FI_PROF_NVLINK_TX_BYTES", "nvlink_tx_bytes_per_s", "bytes_per_s", 1},
    {"DCGM_FI_PROF_NVLINK_RX_BYTES", "nvlink_rx_bytes_per_s", "bytes_per_s", 1},
    /* two exporters that ask NVML or nvidia-smi */
    {"nvidia_gpu_duty_cycle", "util_frac", "frac", 0.01},
    {"nvidia_gpu_temperature_celsius", "temp_c", "c", 1},
    {"nvidia_gpu_power_usage_milliwatts", "power_w", "w", 1e-3},
    {"nvidia_gpu_memory_used_bytes", "used_bytes", "bytes", 1},
    {"nvidia_gpu_memory_total_bytes", "total_bytes", "bytes", 1},
    {"nvidia_gpu_fanspeed_percent", "fan_frac", "frac", 0.01},
    {"nvidia_smi_utilization_gpu_ratio", "util_frac", "frac", 1},
    {"nvidia_smi_utilization_memory_ratio", "mem_util_frac", "frac", 1},
    {"nvidia_smi_temperature_gpu", "temp_c", "c", 1},
    {"nvidia_smi_power_draw_watts", "power_w", "w", 1},
    {"nvidia_smi_enforced_power_limit_watts", "enforced_w", "w", 1},
    {"nvidia_smi_power_default_limit_watts", "default_w", "w", 1},
    {"nvidia_smi_memory_used_bytes", "used_bytes", "bytes", 1},
    {"nvidia_smi_memory_total_bytes", "total_bytes", "bytes", 1},
    {"nvidia_smi_clocks_current_sm_clock_hz", "sm_mhz", "mhz", 1e-6},
    {"nvidia_smi_clocks_max_sm_clock_hz", "max_sm_mhz", "mhz", 1e-6},
};

enum { METRICS = sizeof metrics / sizeof *metrics };

typedef struct sharer {
    tv_str pod; /* the first that the metric came with */
    size_t n;   /* how many different ones in a row */
    double value;
    bool equal;
} sharer;

typedef struct card {
    tv_str key;
    tv_note *note;
    sharer of[METRICS];
} card;

typedef struct scrape {
    tv_reading *r;
    tv_sighting *s;
    size_t last_row;
    card **cards;
    size_t n_cards;
    tv_str metric; /* the first one's name */
    const metric_row *row;
    bool several; /* different metrics */
    bool named;   /* samples carry something that tells cards apart */
    double values[MOST_VALUES];
    size_t n_values;
    double n_samples;
    tv_str typed; /* the last # TYPE or # HELP */
    bool any_typed, mismatch;
    bool shared;
    tv_note *xid_place;
    tv_sighting *xids; /* as a kernel log would tell them */
    double xid, xid_count, window_s;
} scrape;

/* ---- one sample ---- */

typedef struct label {
    tv_str name, value;
} label;

typedef struct sample {
    tv_str name;
    label labels[MOST_LABELS];
    size_t n_labels;
    double value;
    bool known;
} sample;

static bool is_name_char(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == ':';
}

/* {name="value", ...}: backslashes guard quotes. Yields what is behind the brace. */
static bool take_labels(sample *m, tv_str *s)
{
    *s = tv_str_drop(*s, 1);
    for (;;) {
        while (s->n && strchr(" ,\t", *s->p))
            *s = tv_str_drop(*s, 1);
        if (s->n && *s->p == '}') {
            *s = tv_str_drop(*s, 1);
            return true;
        }
        size_t n = 0;
        while (n < s->n && is_name_char(s->p[n]))
            n++;
        const tv_str name = tv_str_take(*s, n);
        *s = tv_str_drop(*s, n);
        if (!n || s->n < 2 || s->p[0] != '=' || s->p[1] != '"')
            return false;
        *s = tv_str_drop(*s, 2);
        n = 0;
        while (n < s->n && s->p[n] != '"')
            n += s->p[n] == '\\' && n + 1 < s->n ? 2 : 1;
        if (n >= s->n)
            return false;
        if (m->n_labels < MOST_LABELS)
            m->labels[m->n_labels++] = (label){name, tv_str_take(*s, n)};
        *s = tv_str_drop(*s, n + 1);
    }
}

static bool take_sample(sample *m, tv_str s)
{
    size_t n = 0;
    *m = (sample){0};
    while (n < s.n && is_name_char(s.p[n]))
        n++;
    m->name = tv_str_take(s, n);
    s = tv_str_drop(s, n);
    if (!n || !s.n || (*s.p != '{' && *s.p != ' ') || (*s.p == '{' && !take_labels(m, &s)))
        return false;
    s = tv_str_trim(s);
    const tv_double_read v = tv_take_number(&s);
    m->value = v.v;
    m->known = v.ok && v.v < 1e17; /* blanks are written as huge numbers */
    return v.ok || tv_str_starts(s, TV_S("NaN"));
}

static tv_str label_of(const sample *m, const char *names)
{
    for (size_t k = 0; k < m->n_labels; k++)
        if (tv_smi_among(names, m->labels[k].name))
            return m->labels[k].value;
    return (tv_str){0};
}

static const metric_row *metric_of(tv_str name)
{
    for (size_t k = 0; k < METRICS; k++)
        if (tv_str_is(name, metrics[k].name))
            return &metrics[k];
    return NULL;
}

static bool is_ours(tv_str name)
{
    return tv_str_starts(name, TV_S("DCGM_")) || tv_str_starts(name, TV_S("nvidia_smi_")) ||
           tv_str_starts(name, TV_S("nvidia_gpu_"));
}

/* ---- cards ---- */

static card *card_of(scrape *c, const sample *m, size_t i)
{
    tv_arena *a = c->r->a;
    const tv_str uuid = label_of(m, "UUID|uuid|gpu_uuid");
    const tv_str number = label_of(m, "gpu|minor_number|index");
    const tv_str host = label_of(m, "Hostname|hostname|instance|node");
    const tv_str slice = label_of(m, "GPU_I_ID");
    c->named = c->named || uuid.n || number.n;
    const tv_str parts[] = {uuid.n ? uuid : tv_str_join(a, number, host), slice};
    const tv_str key = tv_str_join(a, parts[0], parts[1]);
    for (size_t k = 0; k < c->n_cards; k++)
        if (tv_str_eq(c->cards[k]->key, key))
            return c->cards[k];
    if (c->n_cards >= MOST_CARDS)
        return NULL;
    if (!c->cards)
        c->cards = tv_new(a, card *, MOST_CARDS);
    card *fresh = tv_new(a, card, 1);
    c->cards[c->n_cards++] = fresh;
    fresh->key = tv_str_copy(a, key);
    fresh->note = tv_at(c->r, tv_note_map(a, tv_note_list(a, &c->s->facts, "gpus"), NULL), i);
    (void)tv_note_null(a, fresh->note, "index");
    if (number.n)
        tv_smi_put(c->r, fresh->note, "index", TV_SMI_NUMBER, number, i);
    if (uuid.n)
        tv_smi_put(c->r, fresh->note, "uuid", TV_SMI_WORD, uuid, i);
    if (host.n)
        tv_smi_put(c->r, fresh->note, "host", TV_SMI_WORD, host, i);
    if (slice.n)
        tv_smi_put(c->r, fresh->note, "gi", TV_SMI_NUMBER, slice, i);
    const tv_str name = label_of(m, "modelName|name|model");
    if (name.n)
        tv_smi_put(c->r, fresh->note, "name", TV_SMI_WORD, name, i);
    const tv_str bus = label_of(m, "pci_bus_id");
    if (bus.n)
        tv_smi_put(c->r, fresh->note, "bus", TV_SMI_WORD, bus, i);
    return fresh;
}

/* The same metric of the same card for another pod is the same reading once more. */
static void see_pod(scrape *c, card *of, const metric_row *row, const sample *m)
{
    const tv_str pod = label_of(m, "pod|exported_pod|pod_name");
    if (!pod.n)
        return;
    sharer *s = &of->of[row - metrics];
    if (!s->n++) {
        s->pod = tv_str_copy(c->r->a, pod);
        s->value = m->value;
        s->equal = true;
        return;
    }
    s->equal = s->equal && s->value <= m->value && s->value >= m->value;
    if (!tv_str_eq(pod, s->pod) && (c->named || s->equal)) {
        c->shared = true;
        (void)tv_note_num(c->r->a, of->note, "sharers", (double)s->n);
    }
}

static void put_value(scrape *c, card *of, const metric_row *row, const sample *m, size_t i)
{
    tv_arena *a = c->r->a;
    if (!m->known) {
        (void)tv_note_null(a, of->note, row->fact);
    } else if (row->unit && strcmp(row->unit, "mask") == 0) {
        tv_buf b = tv_buf_in(a);
        tv_put_u64(&b, (uint64_t)(m->value > 0 ? m->value : 0));
        tv_smi_put(c->r, of->note, row->fact, TV_SMI_MASK, tv_buf_str(&b), i);
    } else if (row->unit && strcmp(row->unit, "yes") == 0) {
        (void)tv_at(c->r, tv_note_bool(a, of->note, row->fact, m->value > 0), i);
    } else if (strcmp(row->fact, "replays") == 0 && !isnan(tv_noted_num(of->note, "replays"))) {
        const double gained = m->value - tv_noted_num(of->note, "replays");
        tv_note *series = tv_note_map(a, of->note, "series");
        (void)tv_at(c->r, tv_note_num(a, series, "replays_gained", gained), i);
    } else {
        (void)tv_at(c->r, tv_note_num(a, of->note, row->fact, m->value * row->factor), i);
    }
}

/* The rules of the kernel's log judge the code; 42 is told from the metric itself. */
static void put_event(scrape *c, const sample *m, double xid, double n, size_t i)
{
    tv_arena *a = c->r->a;
    if (!(xid >= 1 && xid < 1000) || (xid > 41.5 && xid < 42.5))
        return;
    if (!c->xids)
        c->xids = tv_see(c->r, "xid", i);
    tv_note *events = tv_note_list(a, &c->xids->facts, "events");
    tv_note *event = tv_at(c->r, tv_note_map(a, events, NULL), i);
    (void)tv_note_num(a, event, "xid", xid);
    (void)tv_note_num(a, event, "n", n);
    (void)tv_note_str(a, event, "source", TV_S("prometheus"));
    const tv_str bus = label_of(m, "pci_bus_id");
    const tv_str number = label_of(m, "gpu|minor_number|index");
    if (bus.n)
        (void)tv_note_str(a, event, "pci", bus);
    else if (number.n)
        (void)tv_note_str(a, event, "pci", tv_str_join(a, TV_S("index "), number));
}

/* A code in a label with a count as the value, or the last code as the value. */
static void put_xid(scrape *c, card *of, const sample *m, size_t i)
{
    tv_arena *a = c->r->a;
    const bool last = tv_str_is(m->name, "DCGM_FI_DEV_XID_ERRORS") && !label_of(m, "xid").n;
    tv_str code = label_of(m, "xid");
    const tv_u64_read in_label = tv_take_u64(&code);
    const double xid = last ? m->value : in_label.ok ? (double)in_label.v : (double)NAN;
    if (isnan(xid) || xid <= 0 || !m->known || m->value <= 0)
        return;
    tv_note *place = tv_at(c->r, tv_note_num(a, of->note, "xid", xid), i);
    c->xid_place = c->xid_place ? c->xid_place : place;
    c->xid = xid;
    c->xid_count = m->value;
    tv_str window = label_of(m, "window_size_in_ms");
    const tv_double_read ms = tv_take_number(&window);
    if (ms.ok)
        c->window_s = ms.v / 1e3;
    if (!last)
        (void)tv_note_num(a, of->note, "xid_count", m->value);
    put_event(c, m, xid, last ? 1 : m->value, i);
}

static bool is_xid(tv_str name)
{
    return tv_holds(name, "XID_ERRORS");
}

static void read_sample(scrape *c, const sample *m, size_t i)
{
    tv_arena *a = c->r->a;
    if (!c->s) {
        const tv_str typed = c->typed;
        const bool any = c->any_typed;
        *c = (scrape){.r = c->r, .typed = typed, .any_typed = any};
        c->xid = c->xid_count = c->window_s = (double)NAN;
        c->s = tv_see(c->r, "prometheus", i);
        c->metric = tv_str_copy(a, m->name);
        c->row = metric_of(m->name);
    }
    c->last_row = i;
    c->n_samples++;
    c->several = c->several || !tv_str_eq(c->metric, m->name);
    if (c->typed.n && !tv_str_eq(c->typed, m->name))
        c->mismatch = true;
    const metric_row *row = metric_of(m->name);
    card *of = card_of(c, m, i);
    if (!of)
        return;
    const tv_str driver = label_of(m, "DCGM_FI_DRIVER_VERSION|driver_version");
    if (driver.n && !tv_noted(&c->s->facts, "driver"))
        tv_smi_put(c->r, &c->s->facts, "driver", TV_SMI_WORD, driver, i);
    if (is_xid(m->name))
        put_xid(c, of, m, i);
    else if (row)
        put_value(c, of, row, m, i);
    if (row) {
        see_pod(c, of, row, m);
        if (!c->several && c->n_values < MOST_VALUES)
            c->values[c->n_values++] = m->known ? m->value * row->factor : (double)NAN;
    }
}

/* ---- the end ---- */

static void put_values(scrape *c)
{
    tv_arena *a = c->r->a;
    const bool plain =
        !c->row->unit || strcmp(c->row->unit, "mask") == 0 || strcmp(c->row->unit, "yes") == 0;
    const tv_str key =
        plain ? TV_S("values") : tv_str_join(a, TV_S("values_"), tv_str_of(c->row->unit));
    tv_note *list = tv_note_list(a, &c->s->facts, tv_cstr(a, key));
    for (size_t k = 0; k < c->n_values; k++)
        (void)tv_note_num(a, list, NULL, c->values[k]);
}

static void put_alone(scrape *c)
{
    tv_arena *a = c->r->a;
    tv_note *facts = &c->s->facts;
    const tv_note *only = c->cards[0]->note;
    const double index = tv_noted_num(only, "index");
    if (!isnan(index))
        (void)tv_note_num(a, facts, "gpu", index);
    if (tv_noted_str(only, "name").n)
        (void)tv_note_str(a, facts, "model", tv_noted_str(only, "name"));
}

static void end(scrape *c)
{
    tv_reading *r = c->r;
    if (c->s) {
        tv_note *facts = &c->s->facts;
        (void)tv_note_str(r->a, facts, "metric", c->metric);
        (void)tv_note_num(r->a, facts, "samples", c->n_samples);
        if (c->named)
            (void)tv_note_num(r->a, facts, "distinct_devices", (double)c->n_cards);
        else
            (void)tv_note_str(r->a, facts, "distinct_devices", TV_S("unknown"));
        if (c->any_typed)
            (void)tv_note_bool(r->a, facts, "name_mismatch", c->mismatch);
        if (!c->several && c->row && c->n_values)
            put_values(c);
        if (c->shared)
            (void)tv_note_str(r->a, facts, "warning", TV_S("shared device duplicated per pod"));
        if (c->n_cards == 1)
            put_alone(c);
        if (c->xid_place) {
            (void)tv_note_place(r->a, tv_note_num(r->a, facts, "xid", c->xid), c->xid_place->line,
                                c->xid_place->text);
            (void)tv_note_num(r->a, facts, "value", c->xid_count);
            if (!isnan(c->window_s))
                (void)tv_note_num(r->a, facts, "window_s", c->window_s);
        }
        for (size_t k = 0; k < c->n_cards; k++)
            tv_smi_finish(r->a, c->cards[k]->note);
    }
    *c = (scrape){.r = r};
}

static void read(tv_reading *r)
{
    scrape c = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str s = tv_bare(r->sheet->v[i].s);
        sample m;
        tv_str rest;
        if (tv_str_starts(s, TV_S("#"))) {
            if ((tv_past(s, "# TYPE ", &rest) || tv_past(s, "# HELP ", &rest)) && is_ours(rest)) {
                c.typed = tv_take_word(&rest);
                c.any_typed = true;
            }
            continue;
        }
        if (is_ours(s) && take_sample(&m, s))
            read_sample(&c, &m, i);
        else if (c.s && i > c.last_row + 40)
            end(&c);
    }
    end(&c);
}

static const char *const needles[] = {"DCGM_FI_", "DCGM_EXP_", "nvidia_gpu_", "nvidia_smi_", NULL};

extern const tv_log_format tv_log_format_prometheus;
const tv_log_format tv_log_format_prometheus = {"prometheus", needles, read};
