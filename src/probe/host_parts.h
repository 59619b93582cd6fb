/* What the parts of the host's probe share: where to look, and where it is written down. */
#ifndef TV_HOST_PARTS_H
#define TV_HOST_PARTS_H

#include "probe.h"

#include "base/limits.h"

typedef struct tv_host {
    tv_arena *a;
    const tv_host_place *place;
    tv_documents *out;
    tv_buf facts;    /* host.txt: lines "key: value" */
    tv_buf sys;      /* sys.txt: lines "path:value" */
    size_t nvidia_n; /* GPUs of NVIDIA on the PCI bus */
    struct {
        tv_str *v;
        size_t n, cap;
    } gpu_bus;             /* their places */
    bool all_have_handles; /* NVML counts as many */
    size_t amd_n;
    size_t switch_n;         /* NVSwitches */
    size_t without_driver_n; /* GPUs that no driver serves */
    tv_str gpu_driver;       /* of the last GPU that has one */
    bool driver;             /* its kernel module is loaded */
    bool smi_wanted;         /* NVML could not be loaded: nvidia-smi may know more */
} tv_host;

/* A path of this machine under the place's root. */
tv_str tv_host_path(const tv_host *h, const char *path);
bool tv_host_has(const tv_host *h, const char *path);
/* A small file of /proc or /sys; false where it cannot be read, with the reason in *why (which may
 * be NULL; empty: it is not there). */
bool tv_host_read(const tv_host *h, const char *path, size_t limit, tv_str *text, tv_str *why);
/* The target of a link, its last name only; empty: no link. */
tv_str tv_host_link(const tv_host *h, const char *path);

void tv_host_document(tv_host *h, const char *name, tv_str text);
/* A line of host.txt. */
void tv_host_fact(tv_host *h, const char *key, tv_str value);
void tv_host_number(tv_host *h, const char *key, uint64_t value);
/* What could not be looked at, and why. */
void tv_host_unseen(tv_host *h, const char *what, tv_str why);
/* The first line of the file goes to sys.txt; false: it is not there. */
bool tv_host_grab(tv_host *h, const char *path);

/* ---- the parts ---- */

void tv_host_files(tv_host *h);
void tv_host_pci(tv_host *h);
void tv_host_kernel_log(tv_host *h);
void tv_host_software(tv_host *h);
void tv_host_nvml(tv_host *h);
void tv_host_smi(tv_host *h);

#endif
