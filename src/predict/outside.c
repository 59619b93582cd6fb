/* Constants outside the ledger of tensors; sources in docs/model.md, "outside the allocator". */
#include "outside.h"

static const double mib = 1048576.0, gib = 1073741824.0;

typedef struct context_row {
    int from; /* compute capability */
    tv_range bytes;
} context_row;

/* A100: 0.47 GiB lazily loaded, 0.92 eagerly (torch 2.1, CUDA 12.1; stas00/ml-engineering); V100:
 * 0.39 GiB of non-torch memory (vllm#11251); 457 MiB is what Ollama reserves. Other rows lie
 * between and are assumed. */
static const context_row contexts[] = {
    {90, {0.52 * 1073741824.0, 0.40 * 1073741824.0, 0.95 * 1073741824.0}},
    {80, {0.47 * 1073741824.0, 0.35 * 1073741824.0, 0.92 * 1073741824.0}},
    {70, {0.39 * 1073741824.0, 0.28 * 1073741824.0, 0.80 * 1073741824.0}},
    {0, {0.35 * 1073741824.0, 0.20 * 1073741824.0, 0.70 * 1073741824.0}},
};

tv_range tv_outside_context(const tv_device *device)
{
    const int cc = device ? device->compute_capability : 80;
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++)
        if (cc >= contexts[i].from)
            return contexts[i].bytes;
    return contexts[3].bytes;
}

/* 12 MiB per channel for the ring and again for the tree; NVLink SHARP adds 16 channels' heads:
 * 256 MiB on eight H100 (nccl init.cc, device.h; docs/model.md). */
tv_range tv_outside_nccl(const tv_machine *machine, double communicators)
{
    if ((double)machine->gpus * machine->nodes <= 1)
        return (tv_range){0};
    double channels = 4;
    switch (machine->intra.kind) {
    case TV_LINK_NVSWITCH:
    case TV_LINK_FABRIC:
        channels = 24;
        break;
    case TV_LINK_NVLINK:
        channels = 12;
        break;
    case TV_LINK_NONE:
    case TV_LINK_PCIE_P2P:
    case TV_LINK_PCIE_HOST:
    case TV_LINK_NETWORK:
        break;
    }
    const double ring = 12 * mib * channels;
    const double sharp = machine->intra.in_network_reduction ? 256 * mib : 0;
    const double fixed = 64 * mib;
    tv_range r = {ring + fixed + sharp, ring + fixed / 2, 2 * ring + fixed + sharp + 0.3 * gib};
    r.v *= communicators;
    r.lo *= communicators;
    r.hi *= communicators;
    return r;
}

/* CublasHandlePool.cpp: 2·4 MiB + 8·16 KiB; 32 MiB on compute capability 9.0. */
double tv_outside_cublas(const tv_device *device, bool trains)
{
    const double one = device && device->compute_capability == 90 ? 33554432 : 8519680;
    return trains ? 2 * one : one;
}
