/* Counting over a graph. */
#include "graph.h"

void tv_graph_counts(const tv_graph *g, uint32_t *counts)
{
    for (size_t i = 0; i < g->n_blocks; i++)
        counts[i] = 0;
    for (size_t i = 0; i < g->n_order; i++)
        counts[g->order[i]]++;
}

double tv_weight_copies(const tv_graph *g, const uint32_t *counts, const tv_weight *w)
{
    if (w->block == TV_NONE || w->block >= g->n_blocks)
        return 1;
    const uint32_t n = counts[w->block];
    return w->shared && n ? 1 : (double)n;
}
