/* This machine -> facts: what lies in a folder of data; and the machine itself, as documents that
 * the readers of captured files take. Looks, never writes, never changes a setting. */
#ifndef TV_PROBE_H
#define TV_PROBE_H

#include "desc/dataset.h"
#include "desc/document.h"
#include "desc/request.h"

#include "base/err.h"

/* How many files a folder (or one file) of data holds, how large, of which kinds. Names are
 * counted, sizes are taken from a sample of at most TV_LIMIT_SCAN_FILES files, a few files are
 * opened for their first bytes. Ends early, and says so in out->sampled, after TV_SCAN_SECONDS of
 * r->clock_s or TV_LIMIT_SCAN_NAMES names; what was not reached is then extrapolated. Links to
 * folders are not followed; hidden files do not count; a folder below that cannot be read is a
 * warning on r->err. Fails: nothing there (TV_UNAVAILABLE), no file in it (TV_INPUT), cancelled by
 * r->progress (TV_UNAVAILABLE). */
const tv_err *tv_probe_dataset(tv_request *r, tv_str dir, tv_dataset *out) TV_CHECKED;

/* Long enough for a million names on a local disk, short enough to wait for. */
#define TV_SCAN_SECONDS 5.0

/* Where this host is looked at. */
typedef struct tv_host_place {
    tv_str root; /* a folder that stands for "/"; empty: this machine */
    tv_str nvml; /* the library's file; empty: libnvidia-ml.so.1 where the loader finds it */
    tv_str path; /* folders with programs, parted by ':' (nvidia-smi) */
} tv_host_place;

/* The host as documents: NVML (nvidia-smi where it cannot be loaded), /proc, /sys, the kernel's
 * log, limits, containers. What could not be seen stands in them with its reason. */
void tv_probe_host(tv_request *r, const tv_host_place *place, tv_documents *out);

#endif
