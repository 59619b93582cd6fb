/* rocm-smi: the concise table of ROCm 2 to 6, and the lines "GPU[n] : key: value" of its options.
 * Cards of AMD have the same facts as others. */
#include <string.h>

#include "smi_parts.h"

enum { MOST_CARDS = 64, MOST_WORDS = 24 };

typedef struct rocm {
    tv_reading *r;
    tv_sighting *s;
    tv_note *gpus;
    bool table; /* below the header of the concise table */
    size_t last_row;
} rocm;

static void begin(rocm *c, size_t i)
{
    tv_reading *r = c->r;
    *c = (rocm){.r = r, .last_row = i};
    c->s = tv_see(r, "smi-q", i);
    (void)tv_note_str(r->a, &c->s->facts, "vendor", TV_S("amd"));
    c->gpus = tv_note_list(r->a, &c->s->facts, "gpus");
}

static tv_note *card_of(rocm *c, tv_str index, size_t i)
{
    tv_str digits = index;
    const tv_u64_read v = tv_take_u64(&digits);
    for (tv_note *card = c->gpus->first; card; card = card->next)
        if (tv_noted_num(card, "index") == (double)v.v)
            return card;
    if (c->gpus->n >= MOST_CARDS)
        return NULL;
    tv_note *card = tv_at(c->r, tv_note_map(c->r->a, c->gpus, NULL), i);
    (void)tv_note_num(c->r->a, card, "index", (double)v.v);
    return card;
}

/* ---- the concise table: the columns at the right are the same in every version ---- */

static bool read_row(rocm *c, tv_str s, size_t i)
{
    static const struct {
        const char *fact;
        tv_smi_kind kind;
    } right[] = {{"util_frac", TV_SMI_SHARE}, {"vram_frac", TV_SMI_SHARE},
                 {"cap_w", TV_SMI_NUMBER},    {"perf_level", TV_SMI_WORD},
                 {"fan_frac", TV_SMI_SHARE},  {"mem_mhz", TV_SMI_NUMBER},
                 {"sm_mhz", TV_SMI_NUMBER}};
    tv_str words[MOST_WORDS];
    const size_t n = tv_words(s, words, MOST_WORDS);
    if (n < 10 || n > MOST_WORDS || !tv_str_u64(words[0]).ok ||
        !tv_str_ends(words[n - 1], TV_S("%")))
        return false;
    tv_note *card = card_of(c, words[0], i);
    if (!card)
        return false;
    for (size_t k = 0; k < sizeof right / sizeof *right; k++)
        tv_smi_put(c->r, card, right[k].fact, right[k].kind, words[n - 1 - k], i);
    for (size_t k = 1; k + 7 < n; k++) {
        const tv_str w = words[k];
        const bool warm = tv_str_ends(w, TV_S("c")) || tv_str_ends(w, TV_S("C"));
        if (warm && !tv_noted(card, "temp_c"))
            tv_smi_put(c->r, card, "temp_c", TV_SMI_NUMBER, w, i);
        else if (tv_str_ends(w, TV_S("W")) && !tv_noted(card, "power_w"))
            tv_smi_put(c->r, card, "power_w", TV_SMI_NUMBER, w, i);
    }
    return true;
}

/* ---- "GPU[0]          : Temperature (Sensor edge) (C): 36.0" ---- */

static bool read_key(rocm *c, tv_str s, size_t i)
{
    static const struct {
        const char *key;
        const char *fact;
        tv_smi_kind kind;
    } keys[] = {
        {"Temperature (Sensor junction) (C)", "temp_c", TV_SMI_NUMBER},
        {"Temperature (Sensor edge) (C)", "edge_c", TV_SMI_NUMBER},
        {"Temperature (Sensor memory) (C)", "mem_temp_c", TV_SMI_NUMBER},
        {"Average Graphics Package Power (W)", "power_w", TV_SMI_NUMBER},
        {"Current Socket Graphics Package Power (W)", "power_w", TV_SMI_NUMBER},
        {"Max Graphics Package Power (W)", "cap_w", TV_SMI_NUMBER},
        {"GPU use (%)", "util_frac", TV_SMI_SHARE},
        {"GPU Memory Allocated (VRAM%)", "vram_frac", TV_SMI_SHARE},
        {"Fan speed (%)", "fan_frac", TV_SMI_SHARE},
        {"Card Series", "name", TV_SMI_WORD},
        {"Card series", "name", TV_SMI_WORD},
        {"PCI Bus", "bus", TV_SMI_WORD},
        {"VRAM Total Memory (B)", "total_bytes", TV_SMI_NUMBER},
        {"VRAM Total Used Memory (B)", "used_bytes", TV_SMI_NUMBER},
    };
    tv_str rest;
    if (!tv_str_starts(s, TV_S("GPU[")) || !tv_past(s, "]", &rest))
        return false;
    const tv_str index = tv_enclosed(s, "GPU[", "]");
    rest = tv_str_trim(rest);
    if (!tv_str_u64(index).ok || !tv_str_starts(rest, TV_S(":")))
        return false;
    const tv_str text = tv_str_trim(tv_str_drop(rest, 1));
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const tv_str key = tv_str_of(keys[k].key);
        if (!tv_str_starts(text, key) || text.n <= key.n)
            continue;
        tv_str value = tv_str_trim(tv_str_drop(text, key.n));
        if (!tv_str_starts(value, TV_S(":")))
            continue;
        if (!c->s)
            begin(c, i);
        tv_note *card = card_of(c, index, i);
        if (card)
            tv_smi_put(c->r, card, keys[k].fact, keys[k].kind, tv_str_trim(tv_str_drop(value, 1)),
                       i);
        return true;
    }
    return c->s != NULL;
}

static void read(tv_reading *r)
{
    rocm c = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str s = tv_bare(r->sheet->v[i].s);
        if (tv_holds(s, "ROCm System Management Interface")) {
            begin(&c, i);
        } else if (tv_holds(s, "End of ROCm SMI Log")) {
            c = (rocm){.r = r};
        } else if (tv_holds(s, "PwrCap") && tv_holds(s, "GPU%")) {
            if (!c.s)
                begin(&c, i);
            c.table = true;
            c.last_row = i;
        } else if ((c.table && read_row(&c, s, i)) || read_key(&c, s, i)) {
            c.last_row = i;
        } else if (c.s && i > c.last_row + 60) {
            c = (rocm){.r = r};
        }
    }
}

static const char *const needles[] = {"ROCm System Management Interface",
                                      "PwrCap  VRAM%",
                                      "GPU use (%)",
                                      "VRAM Total Memory (B)",
                                      "(Sensor edge) (C)",
                                      "(Sensor junction) (C)",
                                      NULL};

extern const tv_log_format tv_log_format_rocm_smi;
const tv_log_format tv_log_format_rocm_smi = {"rocm-smi", needles, read};
