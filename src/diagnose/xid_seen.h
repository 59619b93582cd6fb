/* For judges of kernel logs: the Xid events of all files in one list, and which of them only
 * follow from another. */
#ifndef TV_XID_SEEN_H
#define TV_XID_SEEN_H

#include "diagnose.h"

typedef struct tv_xid_seen {
    const tv_sighting *s;
    const tv_note *event;
    unsigned code;
    tv_str pci;
    double n;
    bool follows; /* an earlier event of the same log explains it */
    bool first;   /* of its code on that GPU, in that log */
} tv_xid_seen;

typedef struct tv_xid_list {
    tv_xid_seen *v;
    size_t n;
} tv_xid_list;

tv_xid_list tv_xids_seen(tv_inquiry *q);

/* ---- bus addresses: "0000:41:00", "41:00.0" and "00000000:41:00.0" are one ---- */

typedef struct tv_pci {
    unsigned domain, bus, device;
    int function; /* -1: not said */
    bool ok;
} tv_pci;

tv_pci tv_pci_of(tv_str s);
bool tv_pci_same(tv_str x, tv_str y);
/* As nvidia-smi -i takes it: "0000:41:00.0". */
tv_str tv_pci_bus_id(tv_arena *a, tv_str pci);

/* lspci's device at that address, in any file; NULL: not listed. *of is its sighting. */
const tv_note *tv_pci_device(const tv_scene *scene, tv_str pci, const tv_sighting **of);
/* NVIDIA GPUs that lspci or the driver's log name. */
bool tv_pci_is_gpu(const tv_scene *scene, tv_str pci);
/* A bridge above a GPU: yes, no, or lspci does not tell. */
typedef enum tv_above { TV_ABOVE_UNKNOWN, TV_ABOVE_NO, TV_ABOVE_YES } tv_above;
tv_above tv_pci_above_gpu(const tv_scene *scene, tv_str bridge);

/* Values that most findings of an event share: pci, bus_id, time, process, pid. */
void tv_found_event(tv_inquiry *q, tv_finding *f, const tv_xid_seen *x);

#endif
