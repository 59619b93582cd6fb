/* Accelerators, servers, links, disks and prices as the catalogue knows them. Every number is a
 * fact; unknown stays unknown. Rates are dense; bandwidths of links are one direction unless the
 * name says both. */
#ifndef TV_DEVICE_H
#define TV_DEVICE_H

#include "fact.h"

typedef enum tv_rate {
    TV_RATE_FP64,
    TV_RATE_FP64_TENSOR,
    TV_RATE_FP32,
    TV_RATE_TF32,
    TV_RATE_FP16,             /* vector units */
    TV_RATE_FP16_TENSOR,      /* fp32 accumulate: what training uses */
    TV_RATE_FP16_TENSOR_FP16, /* fp16 accumulate */
    TV_RATE_BF16_TENSOR,
    TV_RATE_FP8_TENSOR, /* fp32 accumulate where the card tells them apart */
    TV_RATE_FP8_TENSOR_FP16,
    TV_RATE_FP6_TENSOR,
    TV_RATE_FP4_TENSOR,
    TV_RATE_INT8_TENSOR,
    TV_RATE_INT8_DP4A,
    TV_RATE_COUNT,
} tv_rate;

const char *tv_rate_name(tv_rate r); /* "fp16 tensor, fp32 accumulate" (a msgid) */
const char *tv_rate_key(tv_rate r);  /* "fp16_tensor": as in JSON */

typedef enum tv_fabric_shape {
    TV_FABRIC_UNKNOWN,
    TV_FABRIC_BRIDGE, /* joins pairs (H200 NVL: pairs or fours) */
    TV_FABRIC_MESH,   /* every card has links to each of the others */
    TV_FABRIC_SWITCH, /* all pairs at full rate */
    TV_FABRIC_TORUS,
} tv_fabric_shape;

typedef struct tv_price {
    tv_str currency; /* "USD", "CNY" */
    double value;
    tv_str date;
    tv_str channel;
    tv_str source;
} tv_price;

typedef struct tv_device {
    tv_str slug; /* "nvidia-a100-sxm4-80gb" */
    tv_str vendor;
    tv_str name;
    const tv_str *aliases;
    size_t n_aliases;
    const tv_str *pci_ids;
    size_t n_pci_ids;
    tv_str arch;
    tv_str chip;
    int compute_capability; /* 89 for 8.9; 0: not CUDA or unknown */
    tv_str launch_date;
    tv_str segment; /* "datacenter", "consumer", "professional", "laptop", "edge" ... */
    tv_str use_class;
    tv_str form_factor;
    tv_str mem_type;
    int ecc;           /* 1 yes, 0 no, -1 unknown */
    int p2p_over_pcie; /* likewise: driver policy */
    tv_fact mem_bytes;
    tv_fact mem_usable_bytes;
    tv_fact mem_bytes_per_s;
    tv_fact mem_measured_bytes_per_s;
    tv_fact rate_flops[TV_RATE_COUNT]; /* FLOP/s (OP/s for int8), dense */
    tv_fact measured_bf16_flops;
    tv_fact sparse_multiple;
    tv_fact cuda_cores;
    tv_fact sm_count;
    tv_fact l2_bytes;
    tv_fact boost_hz;
    tv_fact pcie_gen;
    tv_fact pcie_lanes;
    tv_str fabric; /* "NVLink", "xGMI", "HCCS" ..., "none"; empty: unknown. The
                      nvlink_ facts are those of this link */
    tv_fabric_shape fabric_shape;
    tv_fact nvlink_bytes_per_s; /* one direction, all links of the card together */
    tv_fact nvlink_both_bytes_per_s;
    tv_fact nvlink_links;
    tv_fact nvlink_gen;
    int nvlink_group; /* cards that links join: 2 = bridge pair, 8 = switch board ... 0 unknown */
    tv_fact board_w;
    tv_fact board_min_w;
    tv_fact mig_max;
    tv_fact max_temp_c, slowdown_temp_c, shutdown_temp_c, mem_max_temp_c;
    tv_fact msrp_usd;       /* as_of: the day of that price */
    const tv_price *prices; /* list and street prices, newest first */
    size_t n_prices;
    const tv_str *notes; /* ids of remarks: tv_catalog_remark says them in a language */
    size_t n_notes;
    tv_str confidence;
    const void *record; /* the JSON record, for `gpus show --json` */
} tv_device;

/* A name that stands for several cards. */
typedef struct tv_device_group {
    tv_str slug;
    tv_str name;
    const tv_device *const *members;
    size_t n_members;
} tv_device_group;

typedef enum tv_link_kind {
    TV_LINK_NONE,
    TV_LINK_NVSWITCH, /* all pairs at full rate */
    TV_LINK_NVLINK,   /* bridge or mesh */
    TV_LINK_PCIE_P2P,
    TV_LINK_PCIE_HOST, /* staged through host memory */
    TV_LINK_FABRIC,    /* a vendor's own scale-up link */
    TV_LINK_NETWORK,
} tv_link_kind;

/* How the cards of one job talk. */
typedef struct tv_link {
    tv_link_kind kind;
    tv_str name;
    tv_fact bytes_per_s; /* one direction, per card */
    double latency_s;
    bool in_network_reduction; /* NVLink SHARP */
    uint32_t group;            /* cards that share this link; 0: all */
} tv_link;

typedef struct tv_server {
    tv_str slug;
    tv_str name;
    tv_str kind;
    tv_str gpu; /* slug of the card; empty: any */
    uint32_t gpu_count;
    tv_str cpu_model;
    tv_fact cpu_cores;
    tv_fact sockets;
    tv_fact ram_bytes;
    tv_fact node_w;
    tv_fact network_bytes_per_s;
    tv_str nvlink_topology;
    tv_str pcie_topology;
    tv_link intra; /* between the cards */
    tv_link inter; /* between nodes */
    const tv_str *notes;
    size_t n_notes;
    const void *record;
} tv_server;

typedef struct tv_disk {
    tv_str id;
    tv_str name;
    tv_str kind;
    tv_fact read_bytes_per_s;
    tv_fact write_bytes_per_s;
    tv_fact read_iops;
    tv_fact latency_s;
    tv_fact open_s; /* cost of opening one small file */
} tv_disk;

/* One offer of a cloud. */
typedef struct tv_offer {
    tv_str provider, region, instance;
    tv_str gpu;
    uint32_t gpu_count;
    double vcpu, ram_bytes;
    double node_per_h;      /* on demand, in currency; 0 unknown */
    double node_spot_per_h; /* 0 unknown */
    tv_str currency;
    tv_str date; /* empty: the source gives none */
    tv_str source;
    tv_str note;
} tv_offer;

/* Usable memory: what nvidia-smi prints where known, else the nominal size. */
static inline double tv_device_memory(const tv_device *d)
{
    return tv_known(d->mem_usable_bytes) ? d->mem_usable_bytes.v : d->mem_bytes.v;
}

#endif
