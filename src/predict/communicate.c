/* What a training step sends between cards and how much of it compute hides: gradient buckets,
 * sharded parameters, pipeline stages, nodes. docs/model.md, "communication". */
#include "lanes.h"

#include <math.h>

static const double bucket_bytes = 25 * 1048576.0; /* DDP's default cap (torch reducer) */

/* Share of the multiprocessors that communication kernels take from compute beside them:
 * 15 % on NVLink, 2 % on a network (Calculon's values); PCIe taken between. */
static double tax_of(const tv_link *link)
{
    switch (link->kind) {
    case TV_LINK_NVSWITCH:
    case TV_LINK_NVLINK:
    case TV_LINK_FABRIC:
        return 0.15;
    case TV_LINK_PCIE_P2P:
    case TV_LINK_PCIE_HOST:
        return 0.05;
    case TV_LINK_NETWORK:
    case TV_LINK_NONE:
        return 0.02;
    }
    return 0;
}

/* ---- groups ---- */

typedef struct group {
    const tv_machine *m;
    double in_node; /* members on one node */
    double nodes;
} group;

static group data_group(const tv_case *c, const tv_degrees *d)
{
    group g = {.m = c->machine, .nodes = c->machine->nodes > 1 ? c->machine->nodes : 1};
    g.nodes = fmin(g.nodes, d->data);
    g.in_node = fmax(1, d->data / g.nodes);
    return g;
}

/* Over nodes: reduce inside, exchange a card's share outside, gather inside. */
static double collective(const group *g, tv_collective_kind kind, double bytes)
{
    if (g->nodes <= 1)
        return tv_predict_collective(kind, bytes, g->in_node, &g->m->intra);
    const double outside = tv_predict_collective(kind, bytes / g->in_node, g->nodes, &g->m->inter);
    if (g->in_node <= 1)
        return outside;
    if (kind != TV_COLL_ALL_REDUCE)
        return outside + tv_predict_collective(kind, bytes, g->in_node, &g->m->intra);
    return outside +
           tv_predict_collective(TV_COLL_REDUCE_SCATTER, bytes, g->in_node, &g->m->intra) +
           tv_predict_collective(TV_COLL_ALL_GATHER, bytes, g->in_node, &g->m->intra);
}

static const tv_link *slowest_link(const group *g)
{
    return g->nodes > 1 ? &g->m->inter : &g->m->intra;
}

/* ---- data parallel ---- */

static double gradients_of(const tv_lanes *lanes, double stages)
{
    double bytes = 0;
    for (size_t i = 0; i < lanes->n_blocks; i++)
        bytes += lanes->blocks[i].grad_bytes * lanes->blocks[i].count;
    return bytes / stages;
}

/* Buckets leave as backward fills them; the last one leaves when backward ends. */
static tv_comm_time reduced(const group *g, const tv_case *c, const tv_lanes *lanes,
                            tv_collective_kind kind, double stages)
{
    const double bytes = gradients_of(lanes, stages);
    if (bytes <= 0)
        return (tv_comm_time){0};
    const double each = fmin(bytes, bucket_bytes);
    const double one_s = collective(g, kind, each);
    tv_comm_time t = {.total_s = one_s * bytes / each};
    const double hiding_s = lanes->backward_s / stages * (1 - each / bytes);
    t.exposed_s = fmax(one_s, t.total_s - hiding_s);
    t.tax_s = tax_of(slowest_link(g)) * fmin(t.total_s - t.exposed_s, hiding_s);
    (void)c;
    return t;
}

/* One block's parameters are gathered while the one before computes; its gradients are scattered
 * while the next computes. */
static tv_comm_time sharded(const group *g, const tv_lanes *lanes, double micro)
{
    tv_comm_time t = {0};
    double first_s = 0;
    for (size_t i = 0; i < lanes->n_blocks; i++) {
        const tv_block_lane *b = &lanes->blocks[i];
        if (b->count <= 0)
            continue;
        const double gather_s = collective(g, TV_COLL_ALL_GATHER, b->weight_bytes);
        const double scatter_s = collective(g, TV_COLL_REDUCE_SCATTER, b->grad_bytes);
        t.total_s += b->count * (2 * gather_s + scatter_s);
        t.exposed_s += b->count * (fmax(0, gather_s - b->forward_s) +
                                   fmax(0, gather_s + scatter_s - b->backward_s));
        first_s = first_s > 0 ? first_s : gather_s;
    }
    t.exposed_s = fmin(t.total_s, t.exposed_s + first_s);
    t.tax_s = tax_of(slowest_link(g)) * (t.total_s - t.exposed_s);
    return (tv_comm_time){t.total_s * micro, t.exposed_s * micro, t.tax_s * micro};
}

static tv_comm_time plus(tv_comm_time x, tv_comm_time y)
{
    return (tv_comm_time){x.total_s + y.total_s, x.exposed_s + y.exposed_s, x.tax_s + y.tax_s};
}

/* Hybrid: sharded inside a node, the shard's gradients summed over nodes. */
static tv_comm_time hybrid(const group *g, const tv_case *c, const tv_lanes *lanes, double micro)
{
    const group inside = {.m = g->m, .in_node = g->in_node, .nodes = 1};
    const group outside = {.m = g->m, .in_node = 1, .nodes = g->nodes};
    tv_comm_time t = inside.in_node > 1 ? sharded(&inside, lanes, micro) : (tv_comm_time){0};
    if (g->nodes > 1)
        t = plus(t, reduced(&outside, c, lanes, TV_COLL_ALL_REDUCE, g->in_node));
    return t;
}

static tv_comm_time data_parallel(const tv_case *c, const tv_degrees *d, const tv_lanes *lanes,
                                  double micro)
{
    const group g = data_group(c, d);
    tv_comm_time t = {0};
    switch (c->job.strategy) {
    case TV_STRATEGY_DEFAULT:
    case TV_STRATEGY_DDP:
        return reduced(&g, c, lanes, TV_COLL_ALL_REDUCE, d->pp);
    case TV_STRATEGY_ZERO1:
    case TV_STRATEGY_ZERO2:
        /* updated parameters come back after the step: nothing left to hide them */
        t.total_s = collective(&g, TV_COLL_ALL_GATHER, gradients_of(lanes, d->pp));
        t.exposed_s = t.total_s;
        return plus(t, reduced(&g, c, lanes, TV_COLL_REDUCE_SCATTER, d->pp));
    case TV_STRATEGY_ZERO3:
    case TV_STRATEGY_FSDP:
        return sharded(&g, lanes, micro);
    case TV_STRATEGY_HSDP:
        return hybrid(&g, c, lanes, micro);
    }
    return t;
}

/* ---- tensor parallel ---- */

static tv_comm_time tensor_parallel(const tv_lanes *lanes, double micro, double stages)
{
    double s = 0;
    for (size_t i = 0; i < lanes->n_blocks; i++) {
        const tv_block_lane *b = &lanes->blocks[i];
        s += (b->comm_forward_s + b->comm_backward_s) * b->count;
    }
    s *= micro / stages;
    return (tv_comm_time){.total_s = s, .exposed_s = s};
}

tv_comm_time tv_communicate(const tv_case *c, const tv_lanes *lanes, double micro)
{
    const tv_degrees d = tv_degrees_of(c);
    if (d.cards <= 1)
        return (tv_comm_time){0};
    tv_comm_time t = tensor_parallel(lanes, micro, d.pp);
    return d.data > 1 ? plus(t, data_parallel(c, &d, lanes, micro)) : t;
}
