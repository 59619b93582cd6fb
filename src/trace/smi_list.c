/* nvidia-smi -L, and nvidia-smi nvlink with states or error counters: cards by name, links or MIG
 * devices below them. */
#include <math.h>
#include <string.h>

#include "smi_parts.h"

typedef struct list {
    tv_reading *r;
    tv_sighting *s; /* of -L; becomes "nvlink" with the first link */
    bool links;
    tv_note *gpus, *card;
    size_t last_row;
} list;

/* "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-...)" */
static bool read_card(list *l, tv_str s, size_t i)
{
    tv_str rest = s;
    if (!tv_str_starts(s, TV_S("GPU ")) || !tv_past(s, "GPU ", &rest))
        return false;
    const tv_u64_read index = tv_take_u64(&rest);
    tv_str after;
    if (!index.ok || !tv_str_starts(rest, TV_S(":")) || !tv_past(rest, "(UUID:", &after))
        return false;
    const tv_str name = tv_str_trim(tv_str_span(rest.p + 1, after.p - strlen("(UUID:")));
    tv_arena *a = l->r->a;
    if (!l->s || (index.v == 0 && l->gpus && l->gpus->n)) {
        *l = (list){.r = l->r};
        l->s = tv_see(l->r, "smi-q", i);
        l->gpus = tv_note_list(a, &l->s->facts, "gpus");
    }
    l->card = tv_at(l->r, tv_note_map(a, l->gpus, NULL), i);
    (void)tv_note_num(a, l->card, "index", (double)index.v);
    tv_smi_put(l->r, l->card, "name", TV_SMI_WORD, name, i);
    tv_smi_put(l->r, l->card, "uuid", TV_SMI_WORD, tv_str_trim(tv_str_cut(after, ')').head), i);
    return true;
}

/* "  MIG 1g.5gb Device 0: (UUID: MIG-...)", older "MIG 1g.5gb      Device  0: ..." */
static bool read_slice(list *l, tv_str s, size_t i)
{
    tv_str words[6];
    const size_t n = tv_words(s, words, 6);
    if (!l->card || n < 4 || !tv_str_is(words[0], "MIG") || !tv_str_is(words[2], "Device"))
        return false;
    tv_arena *a = l->r->a;
    tv_note *slice =
        tv_at(l->r, tv_note_map(a, tv_note_list(a, &l->s->facts, "mig_devices"), NULL), i);
    (void)tv_note_num(a, slice, "gpu", tv_noted_num(l->card, "index"));
    tv_smi_put(l->r, slice, "profile", TV_SMI_WORD, words[1], i);
    tv_smi_put(l->r, slice, "dev", TV_SMI_NUMBER, words[3], i);
    tv_smi_put(l->r, slice, "uuid", TV_SMI_WORD, tv_enclosed(s, "(UUID:", ")"), i);
    return true;
}

/* ---- links ---- */

static tv_note *link_of(list *l, uint64_t number, size_t i)
{
    tv_arena *a = l->r->a;
    tv_note *links = tv_note_list(a, l->card, "links");
    for (tv_note *link = links->first; link; link = link->next)
        if (tv_noted_num(link, "link") == (double)number)
            return link;
    tv_note *link = tv_at(l->r, tv_note_map(a, links, NULL), i);
    (void)tv_note_num(a, link, "link", (double)number);
    return link;
}

static void put_counter(list *l, tv_note *link, tv_str what, tv_double_read v, size_t i)
{
    static const struct {
        const char *text;
        const char *fact;
    } counters[] = {
        {"Replay Errors", "replays"},
        {"Recovery Errors", "recoveries"},
        {"CRC Errors", "crc_errors"},
        {"CRC FLIT Errors", "crc_errors"},
        {"CRC Data Errors", "crc_data_errors"},
        {"ECC Errors", "ecc_errors"},
        {"Malformed packet Errors", "malformed_errors"},
        {"Buffer overrun Errors", "overrun_errors"},
        {"Rx Errors", "rx_errors"},
        {"Rx remote Errors", "rx_remote_errors"},
        {"Rx General Errors", "rx_general_errors"},
        {"Local link integrity Errors", "integrity_errors"},
        {"Link recovery successful events", "recovered"},
        {"Link recovery failed events", "recovery_failures"},
        {"Effective Errors", "effective_errors"},
        {"Symbol Errors", "symbol_errors"},
    };
    for (size_t k = 0; k < sizeof counters / sizeof *counters; k++)
        if (tv_str_eq_nocase(what, tv_str_of(counters[k].text))) {
            (void)tv_at(l->r, tv_note_num(l->r->a, link, counters[k].fact, v.v), i);
            return;
        }
}

/* "Link 0: 26.562 GB/s", "Link 1: <inactive>", "Link 0: Replay Errors: 0" */
static bool read_link(list *l, tv_str s, size_t i)
{
    tv_str rest;
    if (!l->card || !tv_str_starts(s, TV_S("Link ")) || !tv_past(s, "Link ", &rest))
        return false;
    const tv_u64_read number = tv_take_u64(&rest);
    if (!number.ok || number.v > 127) /* 18 per card so far */
        return false;
    rest = tv_str_trim(tv_str_starts(rest, TV_S(":")) || tv_str_starts(rest, TV_S(","))
                           ? tv_str_drop(rest, 1)
                           : rest);
    tv_note *link = link_of(l, number.v, i);
    tv_str value = rest;
    const tv_double_read rate = tv_take_number(&value);
    if (tv_holds(rest, "inactive") || tv_holds(rest, "inActive")) {
        (void)tv_note_bool(l->r->a, link, "active", false);
        (void)tv_at(l->r, link, i);
    } else if (rate.ok && tv_holds(value, "GB/s")) {
        (void)tv_note_bool(l->r->a, link, "active", true);
        (void)tv_note_num(l->r->a, link, "bytes_per_s", rate.v * 1e9);
    } else {
        const tv_cut cut = tv_str_cut(rest, ':');
        value = cut.tail;
        const tv_double_read v = tv_take_number(&value);
        if (cut.found && v.ok)
            put_counter(l, link, tv_str_trim(cut.head), v, i);
    }
    if (!l->links) { /* what began as a list of cards is one of links */
        l->links = true;
        l->s->kind = "nvlink";
    }
    return true;
}

static void read(tv_reading *r)
{
    list l = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str s = tv_bare(r->sheet->v[i].s);
        if (!s.n)
            continue;
        if (read_card(&l, s, i) || read_slice(&l, s, i) || read_link(&l, s, i))
            l.last_row = i;
        else if (tv_holds(s, "all links are inActive") && l.s) {
            l.s->kind = "nvlink";
            (void)tv_at(r, tv_note_bool(r->a, &l.s->facts, "all_inactive", true), i);
        } else if (l.s && i > l.last_row + 8) {
            l = (list){.r = r};
        }
    }
}

static const char *const needles[] = {"(UUID: GPU-", "(UUID:GPU-", NULL};

extern const tv_log_format tv_log_format_smi_list;
const tv_log_format tv_log_format_smi_list = {"nvidia-smi -L", needles, read};
