/* Who and where a host is, taken out of its documents: names of hosts and users, home folders,
 * addresses, serial numbers, UUIDs, keys. The same text becomes the same stand-in in every document
 * ("host-1", "GPU-uuid-2"), so that what one file says of a card still fits the other. Places on
 * the PCI bus, names of devices and of products stay. */
#ifndef TV_REDACT_H
#define TV_REDACT_H

#include "desc/document.h"

/* Names that are known beforehand and are found wherever they stand. */
typedef struct tv_redact_names {
    tv_str host;
    tv_str user;
} tv_redact_names;

void tv_redact(tv_arena *a, const tv_redact_names *names, const tv_documents *all,
               tv_documents *clean);

#endif
