/* What a file of data is, by its name and by its first bytes. */
#ifndef TV_FILE_KIND_H
#define TV_FILE_KIND_H

#include "base/str.h"
#include "desc/dataset.h"

/* By the last extension, without case; TV_CODEC_OTHER: none known. */
tv_codec_kind tv_kind_by_name(tv_str name);

/* Bytes of a file's start that tv_kind_by_bytes can use: tar has its mark at 257. */
#define TV_KIND_HEAD_BYTES 512

/* By the first bytes; TV_CODEC_OTHER: no known mark. */
tv_codec_kind tv_kind_by_bytes(const unsigned char *p, size_t n);

/* "JPEG", "video" ...: a msgid. */
const char *tv_kind_name(tv_codec_kind kind);

/* One sample a file, as loaders of that kind take them. */
bool tv_kind_is_single(tv_codec_kind kind);

#endif
