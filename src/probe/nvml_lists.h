/* What NVML tells in structures and lists: memory, utilisation, processes, MIG devices, pages. */
#ifndef TV_NVML_LISTS_H
#define TV_NVML_LISTS_H

#include "nvml_calls.h"

#include "base/buf.h"

void tv_nvml_pci(const tv_nvml *n, tv_nvml_handle device, tv_buf *b);
void tv_nvml_memory(const tv_nvml *n, tv_nvml_handle device, tv_buf *b);
void tv_nvml_utilization(const tv_nvml *n, tv_nvml_handle device, tv_buf *b);
void tv_nvml_retired(const tv_nvml *n, tv_nvml_handle device, tv_buf *b);
void tv_nvml_remapped(const tv_nvml *n, tv_nvml_handle device, tv_buf *b);
void tv_nvml_margin(const tv_nvml *n, tv_nvml_handle device, tv_buf *b);
void tv_nvml_mig(const tv_nvml *n, tv_nvml_handle device, tv_buf *b);
void tv_nvml_fabric(const tv_nvml *n, tv_nvml_handle device, tv_buf *b);
void tv_nvml_processes(const tv_nvml *n, tv_nvml_handle device, tv_buf *b);

/* Where a NVLink ends: the address of a card, a switch or a processor; empty: not told. */
tv_str tv_nvml_link_end(const tv_nvml *n, tv_nvml_handle device, unsigned link);

/* One of the numbered fields; yields the status. */
int tv_nvml_field(const tv_nvml *n, tv_nvml_handle device, unsigned id, double *v);

#endif
