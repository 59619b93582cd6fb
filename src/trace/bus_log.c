/* The kernel prints an error on up to five lines: the announcement, severity and layer, the
 * device with its status word, and one line for each bit that is set. Old kernels say Corrected,
 * new ones Correctable; the words are kept. */
#include "bus_log.h"

#include <math.h>

#include "kernel_line.h"

enum { ERRORS_MOST = 2000 };

bool tv_bus_line_is(tv_str line)
{
    return tv_holds(line, "PCIe Bus Error:") || tv_holds(line, "AER:") ||
           tv_holds(line, "error status/mask=") || tv_holds(line, "aer_status:") ||
           tv_holds(line, "available PCIe bandwidth");
}

/* "pcieport 0000:00:03.1: ": the driver and the device that speak. */
static void read_speaker(tv_aer_log *aer, tv_str text)
{
    tv_str rest = text;
    const tv_str driver = tv_take_word(&rest);
    const tv_str pci = tv_take_pci(&rest);
    if (!pci.n)
        return;
    aer->driver = driver;
    aer->port = pci;
}

static void put(tv_arena *a, tv_note *map, const char *key, tv_str s)
{
    if (s.n)
        (void)tv_note_str(a, map, key, s);
    else
        (void)tv_note_null(a, map, key);
}

static void add_error(tv_reading *r, tv_aer_log *aer, tv_note *facts, double bit, tv_str name,
                      size_t i)
{
    tv_note *list = tv_note_list(r->a, facts, "aer");
    aer->named = true;
    if (list->n >= ERRORS_MOST)
        return;
    tv_note *error = tv_at(r, tv_note_map(r->a, list, NULL), i);
    put(r->a, error, "port", aer->port);
    put(r->a, error, "severity", aer->severity);
    put(r->a, error, "layer", aer->layer);
    (void)tv_note_num(r->a, error, "bit", bit);
    put(r->a, error, "name", name);
    put(r->a, error, "driver", aer->driver);
    if (aer->agent.n)
        put(r->a, error, "agent", aer->agent);
}

/* Names of the bits of a correctable status word, for logs that print only the word (PCI Express
 * Base Specification, Correctable Error Status Register). */
static tv_str correctable_name(unsigned bit)
{
    switch (bit) {
    case 0:
        return TV_S("RxErr");
    case 6:
        return TV_S("BadTLP");
    case 7:
        return TV_S("BadDLLP");
    case 8:
        return TV_S("Rollover");
    case 12:
        return TV_S("Timeout");
    case 13:
        return TV_S("NonFatalErr");
    }
    return (tv_str){0};
}

static void add_word(tv_reading *r, tv_aer_log *aer, tv_note *facts, uint64_t word, size_t i)
{
    for (unsigned bit = 0; bit < 32; bit++)
        if (word >> bit & 1)
            add_error(r, aer, facts, bit, correctable_name(bit), i);
}

void tv_bus_end(tv_reading *r, tv_aer_log *aer, tv_note *facts)
{
    if (aer->open && !aer->named && aer->status)
        add_word(r, aer, facts, aer->status, aer->line);
    if (aer->open && !aer->named)
        add_error(r, aer, facts, (double)NAN, (tv_str){0}, aer->line);
    aer->open = false;
}

/* "PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)", older
 * "id=00e4(Receiver ID)" */
static void read_error(tv_reading *r, tv_aer_log *aer, tv_note *facts, tv_str text, size_t i)
{
    tv_bus_end(r, aer, facts);
    *aer = (tv_aer_log){.open = true, .line = i};
    read_speaker(aer, text);
    aer->severity = tv_enclosed(text, "severity=", ",");
    const tv_str layer = tv_enclosed(text, "type=", ",");
    aer->layer = layer.n ? layer : tv_enclosed(text, "type=", NULL);
    tv_str rest;
    if (tv_past(text, "type=", &rest)) {
        const tv_str agent = tv_enclosed(rest, "(", ")");
        if (tv_str_ends(agent, TV_S(" ID")))
            aer->agent = agent;
    }
    tv_count_up(r->a, facts, "count");
}

/* "   device [1022:1453] error status/mask=00001000/00006000" */
static void read_device(tv_reading *r, tv_aer_log *aer, tv_note *facts, tv_str text, size_t i)
{
    const tv_str device = tv_enclosed(text, "device [", "]");
    if (device.n == 9 && !tv_noted(facts, "device"))
        (void)tv_at(r, tv_note_str(r->a, facts, "device", device), i);
    const tv_str word = tv_enclosed(text, "status/mask=", "/");
    for (size_t k = 0; k < word.n && k < 8; k++) {
        const char c = (char)(word.p[k] | 32);
        const int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
        aer->status = aer->status << 4 | (uint32_t)v;
    }
}

/* "pcieport 0000:00:03.1:    [12] Timeout               (First)" */
static bool read_bit(tv_reading *r, tv_aer_log *aer, tv_note *facts, tv_str text, size_t i)
{
    tv_str rest = text;
    (void)tv_take_word(&rest);
    if (tv_take_pci(&rest).n && tv_str_starts(rest, TV_S(":")))
        text = tv_str_trim(tv_str_drop(rest, 1));
    if (tv_str_starts(text, TV_S("AER:")))
        text = tv_str_trim(tv_str_drop(text, 4));
    if (!tv_str_starts(text, TV_S("[")))
        return false;
    rest = tv_str_drop(text, 1);
    const tv_u64_read bit = tv_take_u64(&rest);
    if (!bit.ok || bit.v > 31 || !tv_str_starts(rest, TV_S("]")))
        return false;
    rest = tv_str_trim(tv_str_drop(rest, 1));
    tv_str name = rest;
    for (size_t k = 0; k < rest.n; k++)
        if (rest.p[k] == '(' || (k + 1 < rest.n && rest.p[k] == ' ' && rest.p[k + 1] == ' ')) {
            name = tv_str_take(rest, k);
            break;
        }
    add_error(r, aer, facts, (double)bit.v, tv_str_trim(name), i);
    return true;
}

bool tv_bus_more(tv_reading *r, tv_aer_log *aer, tv_note *facts, tv_str text, size_t i)
{
    return aer->open && i - aer->line <= 40 && tv_holds(text, "[") &&
           read_bit(r, aer, facts, text, i);
}

/* "nvidia 0000:41:00.0: AER: aer_status: 0x00001000, aer_mask: 0x00006000": firmware first */
static void read_status(tv_reading *r, tv_aer_log *aer, tv_note *facts, tv_str text, size_t i)
{
    tv_str rest;
    tv_bus_end(r, aer, facts);
    *aer = (tv_aer_log){.line = i};
    read_speaker(aer, text);
    (void)tv_past(text, "aer_status:", &rest);
    const tv_u64_read word = tv_take_u64(&rest);
    if (!word.ok)
        return;
    tv_count_up(r->a, facts, "count");
    const uint64_t correctable = 0xf1c1; /* the register's defined bits */
    aer->severity = word.v & ~correctable ? TV_S("Uncorrectable") : TV_S("Correctable");
    add_word(r, aer, facts, word.v, i);
}

/* "31.506 Gb/s available PCIe bandwidth, limited by 2.5 GT/s PCIe x16 link at 0000:00:03.1
 * (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)" */
static void read_limit(tv_reading *r, tv_note *facts, tv_str text, size_t i)
{
    tv_str rest = text;
    const tv_str driver = tv_take_word(&rest);
    const tv_str pci = tv_take_pci(&rest);
    if (!pci.n || !tv_holds(text, "limited by"))
        return;
    tv_note *list = tv_note_list(r->a, facts, "pcie_limited");
    tv_note *item = tv_tally(r, list, "pci", pci, i);
    if (!item)
        return;
    put(r->a, item, "driver", driver);
    const tv_double_read have = tv_number_past(rest, ": ");
    const tv_double_read could = tv_number_past(rest, "(capable of ");
    if (have.ok)
        (void)tv_note_num(r->a, item, "available_bytes_per_s", have.v * 1e9 / 8);
    if (could.ok)
        (void)tv_note_num(r->a, item, "capable_bytes_per_s", could.v * 1e9 / 8);
    tv_str by;
    (void)tv_past(text, "limited by ", &by);
    const tv_double_read speed = tv_take_number(&by);
    const tv_double_read width = tv_number_past(by, " x");
    if (speed.ok)
        (void)tv_note_num(r->a, item, "limit_gt_per_s", speed.v);
    if (width.ok)
        (void)tv_note_num(r->a, item, "limit_lanes", width.v);
    tv_str at;
    if (tv_past(text, "(capable of ", &at)) {
        const tv_double_read lanes = tv_number_past(at, " x");
        if (lanes.ok)
            (void)tv_note_num(r->a, item, "capable_lanes", lanes.v);
    }
    if (tv_past(text, "link at ", &at))
        put(r->a, item, "at", tv_take_pci(&at));
}

/* "pcieport 0000:00:03.1: AER: Corrected error received: 0000:00:00.0" */
static void read_announcement(tv_reading *r, tv_note *facts, tv_str text, size_t i)
{
    tv_str rest = text;
    (void)tv_take_word(&rest);
    const tv_str port = tv_take_pci(&rest);
    if (port.n && tv_holds(text, "rror"))
        (void)tv_tally(r, tv_note_list(r->a, facts, "aer_ports"), "port", port, i);
}

void tv_bus_line(tv_reading *r, tv_aer_log *aer, tv_note *facts, tv_str text, size_t i)
{
    if (tv_holds(text, "available PCIe bandwidth"))
        read_limit(r, facts, text, i);
    else if (tv_holds(text, "PCIe Bus Error:"))
        read_error(r, aer, facts, text, i);
    else if (tv_holds(text, "error status/mask="))
        read_device(r, aer, facts, text, i);
    else if (tv_holds(text, "aer_status:"))
        read_status(r, aer, facts, text, i);
    else if (!tv_bus_more(r, aer, facts, text, i))
        read_announcement(r, facts, text, i);
}
