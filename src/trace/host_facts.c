/* What the host's probe found that is no file: lines "key: value" under its own heading. */
#include "glean.h"
#include "trace.h"

#include <string.h>

typedef enum fact_kind { WORD, NUMBER, YES, LIST, PAIRS, RUNS } fact_kind;

typedef struct fact_row {
    const char *line;
    const char *key;
    fact_kind kind;
} fact_row;

static const fact_row rows[] = {
    {"kernel", "kernel_release", WORD},
    {"machine", "machine", WORD},
    {"root", "is_root", YES},
    {"shm_bytes", "shm_bytes", NUMBER},
    {"shm_free_bytes", "shm_free_bytes", NUMBER},
    {"secure_boot", "secure_boot", WORD},
    {"device_nodes", "device_nodes", LIST},
    {"infiniband_nodes", "infiniband_nodes", YES},
    {"container", "container", WORD},
    {"toolkit", "container_toolkit", LIST},
    {"cdi", "cdi_specs", LIST},
    {"engine", "container_engines", LIST},
    {"fabric_manager", "fabric_manager_running", RUNS},
    {"fabric_manager_program", "fabric_manager_program", WORD},
    {"persistence_daemon", "persistence_daemon_running", RUNS},
    {"mps", "mps_running", RUNS},
    {"dcgm", "dcgm_running", RUNS},
    {"exporter", "exporter_running", RUNS},
    {"opensm", "opensm_running", RUNS},
    {"pci_devices", "pci_devices_n", NUMBER},
    {"pci_nvidia_gpus", "pci_nvidia_gpus_n", NUMBER},
    {"pci_amd_gpus", "pci_amd_gpus_n", NUMBER},
    {"pci_gpus_without_driver", "pci_gpus_without_driver_n", NUMBER},
    {"pci_gpu_driver", "pci_gpu_driver", WORD},
    {"nvswitches", "nvswitches_n", NUMBER},
    {"driver", "driver_loaded", YES},
    {"nvml", "nvml", WORD},
    {"nvml_error", "nvml_error", NUMBER},
    {"nvml_gpus", "nvml_gpus_n", NUMBER},
    {"nvidia_smi", "nvidia_smi", WORD},
    {"unseen", "unseen", PAIRS},
};

static void put_words(tv_reading *r, tv_note *list, tv_str value)
{
    while (value.n) {
        const tv_cut word = tv_str_cut(value, ' ');
        if (word.head.n)
            (void)tv_note_str(r->a, list, NULL, word.head);
        value = word.tail;
    }
}

/* "kernel log: /dev/kmsg: Operation not permitted" */
static void put_pair(tv_reading *r, tv_note *list, tv_str value, size_t i)
{
    tv_str why = {0};
    tv_note *pair = tv_at(r, tv_note_map(r->a, list, NULL), i);
    const bool known = tv_past(value, ": ", &why);
    (void)tv_note_str(r->a, pair, "what", known ? tv_str_take(value, value.n - why.n - 2) : value);
    (void)tv_note_str(r->a, pair, "why", why);
}

static void put(tv_reading *r, tv_note *facts, const fact_row *row, tv_str value, size_t i)
{
    tv_arena *a = r->a;
    const tv_double_read v = tv_str_double(value);
    switch (row->kind) {
    case WORD:
        (void)tv_at(r, tv_note_str(a, facts, row->key, value), i);
        return;
    case NUMBER:
        if (v.ok)
            (void)tv_at(r, tv_note_num(a, facts, row->key, v.v), i);
        return;
    case YES:
        (void)tv_at(r, tv_note_bool(a, facts, row->key, tv_str_is(value, "yes")), i);
        return;
    case RUNS:
        (void)tv_at(r, tv_note_bool(a, facts, row->key, tv_str_is(value, "running")), i);
        return;
    case LIST:
        put_words(r, tv_at(r, tv_note_list(a, facts, row->key), i), value);
        return;
    case PAIRS:
        put_pair(r, tv_note_list(a, facts, row->key), value, i);
        return;
    }
}

static void read(tv_reading *r)
{
    tv_note *facts = NULL;
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        if (tv_str_starts(line, TV_S("trivet host facts "))) {
            facts = &tv_see(r, "host", i)->facts;
            (void)tv_note_list(r->a, facts, "unseen");
            continue;
        }
        const tv_cut cut = tv_str_cut(line, ':');
        for (size_t k = 0; facts && cut.found && k < sizeof rows / sizeof *rows; k++)
            if (tv_str_is(cut.head, rows[k].line))
                put(r, facts, &rows[k], tv_str_trim(cut.tail), i);
    }
}

static const char *const needles[] = {"trivet host facts ", NULL};

extern const tv_log_format tv_log_format_host_facts;
const tv_log_format tv_log_format_host_facts = {"host", needles, read};
