/* NVIDIA's management library as we call it: prototypes of our own, every one looked up by name at
 * run time. Numbers of enumerations and fields are those of the public interface (nvml.h, API
 * version 12; https://docs.nvidia.com/deploy/nvml-api). */
#ifndef TV_NVML_CALLS_H
#define TV_NVML_CALLS_H

#include "base/str.h"

typedef struct tv_nvml_device *tv_nvml_handle;

typedef enum tv_nvml_status {
    TV_NVML_OK = 0,
    TV_NVML_NOT_SUPPORTED = 3,
    TV_NVML_NO_PERMISSION = 4,
    TV_NVML_DRIVER_NOT_LOADED = 9,
    TV_NVML_GPU_IS_LOST = 15,
    TV_NVML_VERSION_MISMATCH = 18,
    TV_NVML_MISSING = 1000, /* ours: the library has no such function */
} tv_nvml_status;

/* One function of any shape; which one its row tells. */
typedef union tv_nvml_call {
    void *symbol;
    int (*none)(void);
    int (*get_text)(char *to, unsigned length);
    int (*get_count)(unsigned *to);
    int (*get_number)(int *to);
    int (*handle_at)(unsigned index, tv_nvml_handle *to);
    int (*handle_below)(tv_nvml_handle device, unsigned index, tv_nvml_handle *to);
    int (*text)(tv_nvml_handle device, char *to, unsigned length);
    int (*count)(tv_nvml_handle device, unsigned *to);
    int (*count2)(tv_nvml_handle device, unsigned *to, unsigned *second);
    int (*count4)(tv_nvml_handle device, unsigned *a, unsigned *b, unsigned *c, unsigned *d);
    int (*number)(tv_nvml_handle device, int *to);
    int (*wide)(tv_nvml_handle device, unsigned long long *to);
    int (*count_of)(tv_nvml_handle device, unsigned kind, unsigned *to);
    int (*wide_of)(tv_nvml_handle device, unsigned kind, unsigned second, unsigned long long *to);
    int (*errors)(tv_nvml_handle device, unsigned type, unsigned counter, unsigned location,
                  unsigned long long *to);
    int (*block)(tv_nvml_handle device, void *to);
    int (*list)(tv_nvml_handle device, unsigned *n, void *to);
    int (*below)(tv_nvml_handle device, unsigned kind, void *to);
    int (*words)(tv_nvml_handle device, unsigned n, unsigned long *to);
    int (*words_of)(tv_nvml_handle device, unsigned n, unsigned long *to, unsigned scope);
    int (*pair)(tv_nvml_handle x, tv_nvml_handle y, unsigned *to);
    int (*pair_of)(tv_nvml_handle x, tv_nvml_handle y, unsigned kind, unsigned *to);
    int (*fields)(tv_nvml_handle device, int n, void *to);
    int (*name_of)(unsigned pid, char *to, unsigned length);
} tv_nvml_call;

typedef struct tv_nvml {
    void *library;
    tv_arena *a;
} tv_nvml;

/* The first of the names that the library has ("nvmlInit_v2|nvmlInit"); symbol NULL: none. */
tv_nvml_call tv_nvml_find(const tv_nvml *n, const char *names);

/* What nvidia-smi says for a status: "GPU is lost", "N/A". */
const char *tv_nvml_words(int status);

#endif
