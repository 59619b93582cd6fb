/* Seconds of one collective over the cards of a link: NCCL's measured share of the link's rate
 * over message size and cards where there is a table, latency plus bytes where there is none.
 * Knows nothing of jobs. docs/model.md, "communication". */
#include "coll_tables.h"
#include "predict.h"

#include <math.h>

/* ---- ideal ---- */

/* Bytes that cross a card's link, per byte of the whole buffer. */
static double traffic(tv_collective_kind kind, double n)
{
    switch (kind) {
    case TV_COLL_ALL_REDUCE:
        return 2 * (n - 1) / n;
    case TV_COLL_ALL_GATHER:
    case TV_COLL_REDUCE_SCATTER:
    case TV_COLL_ALL_TO_ALL:
        return (n - 1) / n;
    case TV_COLL_SEND:
        return 1;
    case TV_COLL_NONE:
        break;
    }
    return 0;
}

/* ---- tables ---- */

static const tv_coll_table *nearest(tv_link_kind link, tv_collective_kind kind, double rate)
{
    const tv_coll_table *best = NULL;
    double apart = 0;
    for (size_t i = 0; i < tv_coll_table_count; i++) {
        const tv_coll_table *t = &tv_coll_tables[i];
        if (t->link != link || t->kind != kind)
            continue;
        const double far = fabs(log(t->link_bytes_per_s / rate));
        if (!best || far < apart)
            best = t, apart = far;
    }
    return best;
}

static double share_at(const tv_coll_table *t, double bytes, double n)
{
    const double x = fmin(fmax((log2(fmax(1, bytes)) - 10) / 2, 0), TV_COLL_SIZES - 1);
    const double y = fmin(fmax(log2(n) - 1, 0), TV_COLL_CARDS - 1);
    const int i = (int)fmin(x, TV_COLL_SIZES - 2), j = (int)fmin(y, TV_COLL_CARDS - 2);
    const double p = x - i, q = y - j;
    const short *v = t->log_share;
    const double low = v[i * TV_COLL_CARDS + j] * (1 - q) + v[i * TV_COLL_CARDS + j + 1] * q;
    const double up =
        v[(i + 1) * TV_COLL_CARDS + j] * (1 - q) + v[(i + 1) * TV_COLL_CARDS + j + 1] * q;
    return exp((low * (1 - p) + up * p) / 1000);
}

/* The table answers for a card of its own rate; another rate keeps the part that is latency (the
 * time of 1 KiB) and scales the rest. */
static double from_table(const tv_coll_table *t, double bytes, double n, double rate)
{
    const double least = 1024;
    const double per = traffic(t->kind, n) / t->link_bytes_per_s;
    const double base_s = least * per / share_at(t, least, n);
    if (bytes <= least)
        return base_s;
    const double s = bytes * per / share_at(t, bytes, n);
    const double wire_s = fmax(0, s - base_s) * t->link_bytes_per_s / rate;
    const double ranks = n > 8 ? log2(n) / 3 : 1; /* beyond the table latency grows by the tree */
    return base_s * ranks + wire_s;
}

/* ---- links without a table ---- */

/* Shares of the one-way rate for large messages and start-up times: through host memory 0.25 of
 * PCIe 4 (aiconfigurator, nccl-tests threads); InfiniBand 0.86-0.96 a NIC, RoCE 0.75; two nodes
 * 35-48 us for the smallest all-reduce (vidur). */
static double by_formula(tv_collective_kind kind, double bytes, double n, const tv_link *link)
{
    const bool network = link->kind == TV_LINK_NETWORK;
    const double share = network ? 0.88 : link->kind == TV_LINK_PCIE_HOST ? 0.3 : 0.75;
    const double hop_s = link->latency_s > 0 ? link->latency_s : network ? 15e-6 : 8e-6;
    const double hops = kind == TV_COLL_SEND ? 1 : 2 * ceil(log2(n));
    return hop_s * hops + bytes * traffic(kind, n) / (link->bytes_per_s.v * share);
}

double tv_predict_collective(tv_collective_kind kind, double bytes, double n, const tv_link *link)
{
    const double rate = link->bytes_per_s.v;
    if (n <= 1 || bytes <= 0 || kind == TV_COLL_NONE || rate <= 0)
        return 0;
    tv_link_kind class = link->kind;
    if (class == TV_LINK_NVLINK || class == TV_LINK_FABRIC)
        class = TV_LINK_NVSWITCH; /* point to point: the same protocols on fewer cards */
    const tv_coll_table *t = kind == TV_COLL_SEND ? NULL : nearest(class, kind, rate);
    return t ? from_table(t, bytes, n, rate) : by_formula(kind, bytes, n, link);
}
