/* The texts of pickle's protocol 0, which are written with escapes. */
#ifndef TV_PICKLE_TEXT_H
#define TV_PICKLE_TEXT_H

#include "base/str.h"

/* STRING, without its quotes: escapes of Python's repr of bytes. */
tv_str tv_pickle_unescape_bytes(tv_arena *a, tv_str s);

/* UNICODE: "\u" and "\U" escapes only, other bytes are Latin-1; UTF-8 comes out. */
tv_str tv_pickle_unescape_unicode(tv_arena *a, tv_str s);

#endif
