/* zip archives (PKWARE APPNOTE, with Zip64): the list of entries from the central directory alone,
 * and one entry's bytes. Stored entries are views of the file, deflated ones are inflated into the
 * arena up to a limit. Knows nothing of what the entries hold. */
#ifndef TV_ZIP_H
#define TV_ZIP_H

#include "base/file.h"

typedef struct tv_zip_entry {
    tv_str name;    /* a view of the file; '/' between folders, and at the end of one */
    uint64_t bytes; /* as unpacked */
    uint64_t packed_bytes;
    uint64_t header; /* where the entry begins in the file; its data comes behind a local header
                        whose length only tv_zip_data knows */
    uint32_t crc;
    uint16_t method; /* 0 stored, 8 deflated */
    bool encrypted;
} tv_zip_entry;

typedef struct tv_zip {
    tv_str file; /* for messages */
    tv_bytes_view bytes;
    const tv_zip_entry *entries; /* in the order of the directory */
    size_t n;
    const uint32_t *slots; /* hash table of names: index + 1 */
    size_t n_slots;
} tv_zip;

/* True where the bytes begin with an entry, or are an archive without any. */
bool tv_zip_is(tv_bytes_view bytes);

/* Reads the directory; of the rest of the file no page is touched. Every entry lies inside the
 * file, before the directory; a name stands once. */
const tv_err *tv_zip_open(tv_arena *a, tv_str file, tv_bytes_view bytes, tv_zip *zip) TV_CHECKED;

/* NULL: no entry of that name. */
const tv_zip_entry *tv_zip_find(const tv_zip *zip, tv_str name);

/* Where the entry's packed bytes begin in the file: looks at its local header. */
const tv_err *tv_zip_data(tv_arena *a, const tv_zip *zip, const tv_zip_entry *entry,
                          uint64_t *offset) TV_CHECKED;

/* The entry's bytes. Fails: larger than limit (TV_LIMIT), encrypted or of another method
 * (TV_UNSUPPORTED), damaged (TV_INPUT). */
const tv_err *tv_zip_read(tv_arena *a, const tv_zip *zip, const tv_zip_entry *entry, size_t limit,
                          tv_bytes_view *bytes) TV_CHECKED;

#endif
