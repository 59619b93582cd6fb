/* What nvidia-smi -q says, as text or as XML: both are headings with keys below them. */
#ifndef TV_SMI_LOG_H
#define TV_SMI_LOG_H

#include "smi_parts.h"

enum { TV_SMI_DEPTH = 12 };

/* The headings above a key, outermost first, as slugs. */
typedef struct tv_smi_path {
    char slug[TV_SMI_DEPTH][TV_SMI_SLUG];
    size_t length[TV_SMI_DEPTH];
    size_t n;
} tv_smi_path;

/* The record that is being read; s is NULL between records. */
typedef struct tv_smi_log {
    tv_reading *r;
    tv_sighting *s;
    tv_note *gpus, *card, *slice, *process;
    size_t n_gpus;
    bool implicit;  /* no line has named the card */
    bool aggregate; /* the last heading of memory errors */
} tv_smi_log;

void tv_smi_path_push(tv_smi_path *path, tv_str text);
bool tv_smi_path_has(const tv_smi_path *path, const char *slug);
tv_str tv_smi_path_top(const tv_smi_path *path);

void tv_smi_log_begin(tv_smi_log *log, size_t i);
/* A card begins; bus empty where it is not said. */
void tv_smi_log_gpu(tv_smi_log *log, tv_str bus, size_t i);
/* A heading, or an element that holds others. */
void tv_smi_log_heading(tv_smi_log *log, const tv_smi_path *path, size_t i);
/* A key with its value; yields whether it means something here. With open false nothing is begun
 * by keys that other texts have as well. */
bool tv_smi_log_value(tv_smi_log *log, const tv_smi_path *path, tv_str key, tv_str value, size_t i);
void tv_smi_log_end(tv_smi_log *log);

#endif
