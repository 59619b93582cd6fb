/* What the rules of communication share: how far two cards are from each other. */
#ifndef TV_COMM_H
#define TV_COMM_H

#include "diagnose.h"

/* Nearer is less. */
typedef enum tv_reach {
    TV_REACH_NVLINK,
    TV_REACH_PIX,
    TV_REACH_PXB,
    TV_REACH_PHB,
    TV_REACH_NODE,
    TV_REACH_SYS,
    TV_REACH_UNKNOWN,
} tv_reach;

tv_reach tv_reach_of(tv_str word);

/* The first matrix of topo -m (or -mp) after `from` (NULL: of the scene); NULL: none. */
const tv_sighting *tv_topo_seen(const tv_scene *scene, const tv_sighting *from);
/* Between two cards of it. */
tv_reach tv_topo_reach(const tv_sighting *topo, size_t x, size_t y);
size_t tv_topo_gpus(const tv_sighting *topo);
/* How many pairs of cards stand at each reach; counts[TV_REACH_UNKNOWN + 1]. */
void tv_topo_counts(const tv_sighting *topo, size_t *counts);
/* The NVLink word of a pair says how many links: "NV4" 4; 0: none. */
size_t tv_topo_nvlinks(const tv_sighting *topo, size_t x, size_t y);
/* How far the nearest adapter of a card is. */
tv_reach tv_topo_nic_reach(const tv_sighting *topo, size_t gpu);

/* A value that a sentence needs: where the text is empty, or the number not known, the words. */
void tv_found_str_or(tv_inquiry *q, tv_finding *f, const char *name, tv_str s, const char *msgid);
void tv_found_num_or(tv_inquiry *q, tv_finding *f, const char *name, tv_arg_kind kind, double v,
                     const char *msgid);

/* True where a log of NCCL shows paths between ranks of one host alone: the network is not used. */
bool tv_nccl_is_local(const tv_sighting *nccl);

/* A text "0,1,3" of numbers in a list. */
tv_str tv_numbers(tv_arena *a, const tv_note *list);

#endif
