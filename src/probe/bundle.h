/* A record of a host: its documents in a folder, redacted, with a manifest. The folder is read like
 * any other folder of captured files, or replayed as the host itself. */
#ifndef TV_BUNDLE_H
#define TV_BUNDLE_H

#include "desc/document.h"
#include "desc/request.h"

#include "base/err.h"

/* Makes the folder and writes the documents and manifest.json. A folder that holds anything is
 * refused (TV_USAGE). */
const tv_err *tv_bundle_write(tv_request *r, tv_str folder, const tv_documents *all) TV_CHECKED;

/* The documents that the manifest lists, under the names that they had on the host. Fails where it
 * is no record (TV_INPUT) or not there (TV_UNAVAILABLE). */
const tv_err *tv_bundle_read(tv_arena *a, tv_str folder, tv_documents *all) TV_CHECKED;

#endif
