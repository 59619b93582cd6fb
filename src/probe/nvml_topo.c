/* The number behind NV is that of the links between two cards; where they end in switches, that of
 * the links that a card has to them. */
#include "nvml_topo.h"

#include "nvml_lists.h"
#include "nvml_xml.h"

enum { most_links = 32, most_words = 16, word_bits = 8 * sizeof(unsigned long) };

/* nvmlGpuTopologyLevel_t */
static const char *level_word(unsigned level)
{
    switch (level) {
    case 10:
        return "PIX";
    case 20:
        return "PXB";
    case 30:
        return "PHB";
    case 40:
        return "NODE";
    case 50:
        return "SYS";
    }
    return "N/A";
}

static bool link_is_up(const tv_nvml *n, tv_nvml_handle device, unsigned link)
{
    unsigned active = 0;
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetNvLinkState");
    return call.symbol && call.count_of(device, link, &active) == TV_NVML_OK && active == 1;
}

/* nvmlIntNvLinkDeviceType_t: 0 a card, 2 a switch */
static bool ends_in_switch(const tv_nvml *n, tv_nvml_handle device, unsigned link)
{
    unsigned type = 255;
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetNvLinkRemoteDeviceType");
    return call.symbol && call.count_of(device, link, &type) == TV_NVML_OK && type == 2;
}

typedef struct links {
    unsigned direct, to_switch;
} links;

static links links_between(const tv_nvml *n, tv_nvml_handle x, tv_str y_bus)
{
    links l = {0};
    for (unsigned k = 0; k < most_links; k++) {
        if (!link_is_up(n, x, k))
            continue;
        if (ends_in_switch(n, x, k))
            l.to_switch++;
        else if (y_bus.n && tv_str_eq_nocase(tv_nvml_link_end(n, x, k), y_bus))
            l.direct++;
    }
    return l;
}

/* nvmlGpuP2PStatus_t of one capability: 0 read, 2 NVLink */
static int p2p(const tv_nvml *n, tv_nvml_handle x, tv_nvml_handle y, unsigned capability)
{
    unsigned status = 6;
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetP2PStatus");
    if (!call.symbol || call.pair_of(x, y, capability, &status) != TV_NVML_OK)
        return -1;
    return (int)status;
}

/* Yields whether the place of the two is known. */
static bool put_cell(const tv_nvml *n, tv_nvml_handle x, tv_nvml_handle y, tv_buf *b)
{
    const links l = links_between(n, x, tv_nvml_bus(n, y));
    const unsigned n_links = l.direct ? l.direct : p2p(n, x, y, 2) == 0 ? l.to_switch : 0;
    unsigned level = 0;
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetTopologyCommonAncestor");
    if (n_links) {
        tv_puts(b, "NV");
        tv_put_u64(b, n_links);
    } else if (call.symbol && call.pair(x, y, &level) == TV_NVML_OK) {
        tv_puts(b, level_word(level));
    } else {
        tv_puts(b, "N/A");
        return false;
    }
    return true;
}

/* "0-15,32-47" of a mask; "N/A": not told. */
static void put_cpus(const tv_nvml *n, tv_nvml_handle x, tv_buf *b)
{
    unsigned long mask[most_words] = {0};
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetCpuAffinity");
    const bool known = x && call.symbol && call.words(x, most_words, mask) == TV_NVML_OK;
    bool some = false;
    for (size_t i = 0; known && i < most_words * word_bits; i++) {
        if (!(mask[i / word_bits] >> i % word_bits & 1))
            continue;
        size_t end = i;
        while (end + 1 < most_words * word_bits &&
               (mask[(end + 1) / word_bits] >> (end + 1) % word_bits & 1))
            end++;
        tv_puts(b, some ? "," : "");
        tv_put_u64(b, i);
        if (end > i) {
            tv_putc(b, '-');
            tv_put_u64(b, end);
        }
        some = true;
        i = end;
    }
    tv_puts(b, some ? "" : "N/A");
}

static void put_numa(const tv_nvml *n, tv_nvml_handle x, tv_buf *b)
{
    unsigned long mask[4] = {0};
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetMemoryAffinity");
    bool some = false;
    if (x && call.symbol && call.words_of(x, 4, mask, 0) == TV_NVML_OK)
        for (size_t i = 0; i < 4 * word_bits; i++)
            if (mask[i / word_bits] >> i % word_bits & 1) {
                tv_puts(b, some ? "," : "");
                tv_put_u64(b, i);
                some = true;
            }
    tv_puts(b, some ? "" : "N/A");
}

static void put_label(tv_buf *b, unsigned i)
{
    tv_puts(b, "GPU");
    tv_put_u64(b, i);
}

static void put_head(const tv_nvml_gpus *gpus, tv_buf *b)
{
    for (unsigned i = 0; i < gpus->n; i++) {
        tv_putc(b, '\t');
        put_label(b, i);
    }
}

/* nvidia-smi's own words for the reasons */
static const char *p2p_word(int status)
{
    static const char *const words[] = {"OK", "CNS", "GNS", "TNS", "DR", "NS"};
    return status >= 0 && status < 6 ? words[status] : "U";
}

static void put_p2p(const tv_nvml *n, const tv_nvml_gpus *gpus, tv_buf *b)
{
    tv_puts(b, "\n$ nvidia-smi topo -p2p r\n");
    put_head(gpus, b);
    tv_putc(b, '\n');
    for (unsigned i = 0; i < gpus->n; i++) {
        put_label(b, i);
        for (unsigned k = 0; k < gpus->n; k++) {
            tv_putc(b, '\t');
            tv_puts(b, i == k                     ? "X"
                       : gpus->v[i] && gpus->v[k] ? p2p_word(p2p(n, gpus->v[i], gpus->v[k], 0))
                                                  : "U");
        }
        tv_putc(b, '\n');
    }
    tv_puts(b, "\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n"
               "  GNS  = GPU not supported\n  TNS  = Topology not supported\n"
               "  NS   = Not supported\n  U    = Unknown\n");
}

/* Yields whether any pair's place is known. */
static bool put_matrix(const tv_nvml *n, const tv_nvml_gpus *gpus, tv_buf *b)
{
    bool some = false;
    tv_puts(b, "$ nvidia-smi topo -m\n");
    put_head(gpus, b);
    tv_puts(b, "\tCPU Affinity\tNUMA Affinity\n");
    for (unsigned i = 0; i < gpus->n; i++) {
        put_label(b, i);
        for (unsigned k = 0; k < gpus->n; k++) {
            tv_putc(b, '\t');
            if (i == k)
                tv_puts(b, " X ");
            else if (gpus->v[i] && gpus->v[k])
                some = put_cell(n, gpus->v[i], gpus->v[k], b) || some;
            else
                tv_puts(b, "N/A");
        }
        tv_putc(b, '\t');
        put_cpus(n, gpus->v[i], b);
        tv_putc(b, '\t');
        put_numa(n, gpus->v[i], b);
        tv_putc(b, '\n');
    }
    return some;
}

void tv_nvml_put_topo(const tv_nvml *n, const tv_nvml_gpus *gpus, tv_buf *b)
{
    tv_buf matrix = tv_buf_in(n->a);
    if (gpus->n < 2 || !put_matrix(n, gpus, &matrix))
        return;
    tv_put(b, tv_buf_str(&matrix));
    if (gpus->v[0] && gpus->v[1] && p2p(n, gpus->v[0], gpus->v[1], 0) >= 0)
        put_p2p(n, gpus, b);
}

/* ---- links ---- */

static void put_title(const tv_nvml *n, tv_nvml_handle x, unsigned i, tv_buf *b)
{
    char name[128] = "", uuid[128] = "";
    tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetName");
    if (call.symbol)
        (void)call.text(x, name, sizeof name - 1);
    call = tv_nvml_find(n, "nvmlDeviceGetUUID");
    if (call.symbol)
        (void)call.text(x, uuid, sizeof uuid - 1);
    tv_puts(b, "GPU ");
    tv_put_u64(b, i);
    tv_puts(b, ": ");
    tv_puts(b, name);
    tv_puts(b, " (UUID: ");
    tv_puts(b, uuid);
    tv_puts(b, ")\n");
}

/* Yields false where the card has no such link. */
static bool put_rate(const tv_nvml *n, tv_nvml_handle x, unsigned link, double mbytes_per_s,
                     tv_buf *b)
{
    unsigned active = 0;
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetNvLinkState");
    if (!call.symbol || call.count_of(x, link, &active) != TV_NVML_OK)
        return false;
    tv_puts(b, "\t Link ");
    tv_put_u64(b, link);
    tv_puts(b, ": ");
    if (active && mbytes_per_s > 0) {
        tv_put_fixed(b, mbytes_per_s / 1000, 3);
        tv_puts(b, " GB/s\n");
    } else {
        tv_puts(b, active ? "N/A\n" : "<inactive>\n");
    }
    return true;
}

static void put_errors(const tv_nvml *n, tv_nvml_handle x, unsigned link, tv_buf *b)
{
    /* nvmlNvLinkErrorCounter_t */
    static const char *const names[] = {"Replay Errors", "Recovery Errors", "CRC Errors"};
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetNvLinkErrorCounter");
    for (unsigned kind = 0; call.symbol && kind < 3; kind++) {
        unsigned long long v = 0;
        if (call.wide_of(x, link, kind, &v) != TV_NVML_OK)
            continue;
        tv_puts(b, "\t Link ");
        tv_put_u64(b, link);
        tv_puts(b, ": ");
        tv_puts(b, names[kind]);
        tv_puts(b, ": ");
        tv_put_u64(b, v);
        tv_putc(b, '\n');
    }
}

void tv_nvml_put_links(const tv_nvml *n, const tv_nvml_gpus *gpus, tv_buf *b)
{
    tv_buf rates = tv_buf_in(n->a), errors = tv_buf_in(n->a);
    bool some = false;
    for (unsigned i = 0; i < gpus->n; i++) {
        if (!gpus->v[i])
            continue;
        double rate = 0;
        (void)tv_nvml_field(n, gpus->v[i], 90, &rate); /* the rate that its links have in common */
        put_title(n, gpus->v[i], i, &rates);
        put_title(n, gpus->v[i], i, &errors);
        for (unsigned k = 0; k < most_links; k++) {
            if (!put_rate(n, gpus->v[i], k, rate, &rates))
                break;
            put_errors(n, gpus->v[i], k, &errors);
            some = true;
        }
    }
    if (!some)
        return;
    tv_puts(b, "$ nvidia-smi nvlink -s\n");
    tv_put(b, tv_buf_str(&rates));
    tv_puts(b, "$ nvidia-smi nvlink -e\n");
    tv_put(b, tv_buf_str(&errors));
}
