/* The readers' face: what the user named (a folder, a file, a number) becomes a tv_source.
 * Readers look at headers only; they list what is there and do not say what it means. */
#ifndef TV_READER_H
#define TV_READER_H

#include "base/file.h"
#include "desc/source.h"

/* Reads a model's files: a folder (Hugging Face, diffusers pipeline, weights alone), config.json
 * or another JSON of its kind, *.safetensors, *.safetensors.index.json, *.gguf (also one part of a
 * split file). Names and texts of the result may be views of maps that live as long as a.
 * Fails: TV_UNAVAILABLE something is not there, TV_INPUT it is broken, TV_UNSUPPORTED the format is
 * known but not read, TV_USAGE the folder holds several models. */
const tv_err *tv_read_model(tv_arena *a, tv_str path, const tv_source **out) TV_CHECKED;

/* A configuration or a description of our own schema that is already in memory (a built-in record,
 * an upload). name is what messages call it. */
const tv_err *tv_read_description(tv_arena *a, tv_str name, tv_str text,
                                  const tv_source **out) TV_CHECKED;

/* A model of which only the number of parameters is known. Fails: not a count (TV_USAGE). */
const tv_err *tv_read_params(tv_arena *a, double params, const tv_source **out) TV_CHECKED;

/* A format of model files. */
typedef struct tv_gather tv_gather;
typedef struct tv_format {
    const char *name;
    const char *summary;
    /* Is it this one? From the file's name (without folder) and its first bytes. */
    bool (*probe)(tv_str name, tv_bytes_view bytes);
    /* NULL: the format is recognised but not read; instead says what to try. */
    const tv_err *(*read)(tv_gather *g, tv_str path, tv_bytes_view bytes);
    const char *instead;
} tv_format;

/* The formats that are read, the more certain probes first (generated); NULL at the end. */
extern const tv_format *const tv_formats[];
/* All formats: those, then the ones that are only recognised. NULL after the last. */
const tv_format *tv_format_at(size_t i);

#endif
