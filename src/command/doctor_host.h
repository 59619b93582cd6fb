/* This host as the doctor's input: looked at, recorded, or replayed from a record. */
#ifndef TV_DOCTOR_HOST_H
#define TV_DOCTOR_HOST_H

#include "desc/finding.h"
#include "desc/request.h"
#include "options.h"

#include "base/err.h"

typedef struct tv_doctor_host {
    bool host;     /* beside the files that are named */
    tv_str record; /* a folder that is written; empty: none */
    tv_str replay; /* a folder that was recorded; empty: none */
    tv_str nvml;   /* the library to load; empty: the system's */
} tv_doctor_host;

enum { TV_DOCTOR_HOST_ROWS = 4 };
extern const tv_option tv_doctor_host_rows[TV_DOCTOR_HOST_ROWS];

/* Adds to the scene what the options ask for; without files and without --replay this host. */
const tv_err *tv_doctor_host_read(tv_request *r, const tv_doctor_host *o, size_t n_files,
                                  tv_scene *scene) TV_CHECKED;

#endif
