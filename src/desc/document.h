/* A text with a name: what a probe saw of this machine, as a reader of files takes it. */
#ifndef TV_DOCUMENT_H
#define TV_DOCUMENT_H

#include "base/str.h"

typedef struct tv_document {
    tv_str name; /* "/proc/meminfo", "nvml.json" */
    tv_str text;
} tv_document;

typedef struct tv_documents {
    tv_document *v;
    size_t n;
    size_t cap;
} tv_documents;

#endif
