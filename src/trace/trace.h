/* The readers' face: captured text and traces -> sightings. A reader recognises its format by
 * itself in any mixture of pasted text, and writes down what stands there; what it means is the
 * rules' business. Inputs are hostile: a reader that meets nonsense notes less, it never fails. */
#ifndef TV_TRACE_H
#define TV_TRACE_H

#include "codec/stream.h"
#include "desc/finding.h"

/* ---- text ---- */

typedef struct tv_line {
    tv_str s;   /* no terminal colours, entities decoded, wide colons and blanks made plain, no
                   blanks at the end */
    tv_str raw; /* as it stands in the file, without the line end */
} tv_line;

/* The lines of a file, or of a part of a long one. Views live as long as the read call. */
typedef struct tv_sheet {
    tv_str file;
    tv_line *v;
    size_t n;
    uint64_t first_line; /* the number of v[0] */
} tv_sheet;

typedef struct tv_reading {
    tv_arena *a;     /* of what is kept */
    tv_scene *scene; /* where it goes */
    const tv_sheet *sheet;
} tv_reading;

/* A format of text. read looks through the whole sheet and adds every sighting that it finds. */
typedef struct tv_log_format {
    const char *name;
    /* It is only asked where one of these texts occurs (NULL at the end); they must be exact and as
     * long as the format allows: "CUDA out of memory". A text that begins with '/' and ends a
     * file's name is a needle in the name: "/proc/meminfo". */
    const char *const *needles;
    void (*read)(tv_reading *r);
} tv_log_format;

/* Generated from the list in src/meson.build; NULL at the end. */
extern const tv_log_format *const tv_log_formats[];

/* A new sighting that begins on line i of the sheet. */
tv_sighting *tv_see(tv_reading *r, const char *kind, size_t i);
/* Gives a note the place of line i, and yields it. */
tv_note *tv_at(const tv_reading *r, tv_note *note, size_t i);

/* ---- files of their own kind: traces, databases, pickles ---- */

typedef struct tv_input {
    tv_str name;       /* for messages and evidence */
    tv_str path;       /* of the file itself; empty: a part of an archive, or standard input */
    tv_str head;       /* the first bytes, inflated (up to 64 KiB) */
    tv_stream *stream; /* from the first byte, inflated */
} tv_input;

typedef struct tv_dump_format {
    const char *name;
    bool (*is)(const tv_input *in);
    const tv_err *(*read)(tv_arena *a, tv_input *in, tv_scene *scene);
} tv_dump_format;

extern const tv_dump_format *const tv_dump_formats[];

/* ---- the whole ---- */

/* Reads a file, a folder (all files below it), an archive or standard input ("-"), plain or
 * compressed, and adds what is recognised. Files that hold nothing known are listed in
 * scene->files all the same. Fails only where the path itself cannot be read
 * (TV_UNAVAILABLE). */
const tv_err *tv_trace_read(tv_arena *a, tv_str path, tv_scene *scene) TV_CHECKED;
/* A document that is already in memory: this host's own, an upload. */
const tv_err *tv_trace_document(tv_arena *a, tv_str name, tv_str text, tv_scene *scene) TV_CHECKED;

#endif
