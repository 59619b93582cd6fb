/* One card's state as NVML tells it, in the form of `nvidia-smi -q -x`: what reads the one reads
 * the other. */
#ifndef TV_NVML_XML_H
#define TV_NVML_XML_H

#include "nvml_calls.h"

#include "base/buf.h"

/* An element with its text, escaped. */
void tv_nvml_element(tv_buf *b, const char *tag, tv_str text);
/* The card's address on the PCI bus, "00000000:41:00.0"; empty: not told. */
tv_str tv_nvml_bus(const tv_nvml *n, tv_nvml_handle device);
/* <gpu>...</gpu>. *lost is set where a call said that the card is lost. */
void tv_nvml_gpu(const tv_nvml *n, tv_nvml_handle device, tv_buf *b, bool *lost);

#endif
