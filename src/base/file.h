/* Files, read only: whole small files, mapped large ones, folders. errno becomes words here. */
#ifndef TV_FILE_H
#define TV_FILE_H

#include "err.h"

typedef struct tv_bytes_view {
    const unsigned char *p;
    size_t n;
} tv_bytes_view;

typedef struct tv_dir_entry {
    tv_str name;
    bool is_dir;
    uint64_t bytes;
} tv_dir_entry;

typedef struct tv_dir {
    tv_dir_entry *v; /* sorted by name */
    size_t n;
    size_t cap;
} tv_dir;

typedef struct tv_file_info {
    bool exists;
    bool is_dir;
    uint64_t bytes;
} tv_file_info;

tv_file_info tv_file_stat(tv_arena *a, tv_str path);

/* The whole file as text; larger than limit is an error. "-" is standard input. */
const tv_err *tv_file_read(tv_arena *a, tv_str path, size_t limit, tv_str *text) TV_CHECKED;

/* Maps a file; unmapped when the arena closes. Only the pages that are touched are read. */
const tv_err *tv_file_map(tv_arena *a, tv_str path, tv_bytes_view *bytes) TV_CHECKED;

/* Gives the pages of a file that tv_file_map mapped back to the system; what is read of it later is
 * fetched again. Never for bytes of another origin: they would be lost. */
void tv_file_forget(tv_bytes_view bytes);

/* Writes a new file, or over an old one. */
const tv_err *tv_file_write(tv_arena *a, tv_str path, tv_str text) TV_CHECKED;

const tv_err *tv_dir_list(tv_arena *a, tv_str path, tv_dir *dir) TV_CHECKED;

tv_str tv_path_join(tv_arena *a, tv_str folder, tv_str name);
/* The folder part of a path ("." when there is none) and its last name. */
tv_str tv_path_folder(tv_str path);
tv_str tv_path_name(tv_str path);

#endif
