/* The files below a folder: links to folders are not followed, so that nothing outside of it is
 * read and no circle is walked; what is no file (pipes, devices, sockets) is passed over. */
#ifndef TV_CAPTURED_H
#define TV_CAPTURED_H

#include "base/file.h"

typedef struct tv_captured_folder {
    tv_str path;
    tv_dir dir;
    size_t at;
} tv_captured_folder;

typedef struct tv_captured_walk {
    tv_arena *a;
    tv_captured_folder *v; /* the folders that are open, outermost first */
    size_t n;
    size_t cap;
    const tv_err *failed; /* the first folder could not be read */
} tv_captured_walk;

tv_captured_walk tv_captured_begin(tv_arena *a, tv_str folder);
/* The next file; false at the end. */
bool tv_captured_next(tv_captured_walk *walk, tv_str *file);

/* A name without control characters: names come from strangers and are printed. */
tv_str tv_shown_name(tv_arena *a, tv_str name);

#endif
