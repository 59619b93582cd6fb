/* Who is near whom, and how the links do, in the words of nvidia-smi topo and nvidia-smi nvlink. */
#ifndef TV_NVML_TOPO_H
#define TV_NVML_TOPO_H

#include "nvml_calls.h"

#include "base/buf.h"

enum { TV_NVML_MOST_GPUS = 64 };

typedef struct tv_nvml_gpus {
    tv_nvml_handle v[TV_NVML_MOST_GPUS]; /* NULL: no handle could be had */
    unsigned n;
} tv_nvml_gpus;

/* The matrices of topo -m and topo -p2p r; nothing for fewer than two cards. */
void tv_nvml_put_topo(const tv_nvml *n, const tv_nvml_gpus *gpus, tv_buf *b);
/* Links with their rates and errors, as nvlink -s and nvlink -e print them. */
void tv_nvml_put_links(const tv_nvml *n, const tv_nvml_gpus *gpus, tv_buf *b);

#endif
