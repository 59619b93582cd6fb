/* Who waits for data, and whether the CPU or the storage is to blame: what the rules of loading and
 * of storage both ask. */
#ifndef TV_WAITS_H
#define TV_WAITS_H

#include "diagnose.h"

typedef enum tv_loader {
    TV_LOADER_UNKNOWN,
    TV_LOADER_MAIN,    /* in the training process itself */
    TV_LOADER_WORKERS, /* in processes of its own */
} tv_loader;

/* One document that says how long the training waits for data. */
typedef struct tv_wait {
    const tv_sighting *s;
    const tv_note *at;
    tv_loader loader;
    double share;   /* of a step, or of the CPU's time; NaN: not known */
    double batch_s; /* the wait for one batch; NaN: not known */
    bool guessed;   /* time of no operator, not a loader's row */
    bool hidden;    /* the device is busy all the same */
} tv_wait;

/* The wait that a sighting shows; false: it shows none. */
bool tv_wait_of(const tv_sighting *s, tv_wait *out);
/* The first share of a sighting that is called a finding. */
#define TV_WAIT_FINDING 0.10

/* A long log is read part by part, and each part is a sighting of its own: the finding that an
 * earlier part of the same log made for the rule; NULL: none. */
tv_finding *tv_wait_found(const tv_inquiry *q, const tv_rule *rule, const tv_sighting *s);

/* What the host did meanwhile: NaN where nothing was seen. */
typedef struct tv_host_load {
    double idle_frac;
    double iowait_frac;
    double system_frac;
    double read_wait_s; /* of the device that is read most */
    double read_bytes_per_s;
    double queue;
    const tv_sighting *s; /* where the disks were seen; NULL: nowhere */
    const tv_note *device;
} tv_host_load;

tv_host_load tv_host_load_of(const tv_scene *scene);
/* Reads have to wait: by the waiting itself, never by %util. */
bool tv_storage_waits(const tv_host_load *load);
/* The cores are full. */
bool tv_cpu_is_full(const tv_host_load *load);

#endif
