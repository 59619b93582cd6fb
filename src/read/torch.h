/* Between the files of the PyTorch reader: containers find pickles and the sizes of storages
 * (torch.c: zip; torch_legacy.c: stream and tar), torch_state.c finds the tensors in the pickled
 * objects, torch_shared.c sorts what they share, torch_names.c says what the classes in them are.
 * Only for src/read. */
#ifndef TV_TORCH_H
#define TV_TORCH_H

#include "codec/pickle.h"
#include "codec/zip.h"
#include "gather.h"

/* One allocation of a checkpoint; tensors are views of it. */
typedef struct tv_torch_storage {
    tv_str key;
    tv_dtype dtype; /* unknown: untyped, elements are bytes */
    tv_str dtype_text;
    uint64_t elements;
    uint64_t bytes;  /* elements times the type's size */
    uint64_t offset; /* in the file; 0 not looked for */
    uint64_t seen;   /* bytes that tensors show */
} tv_torch_storage;

typedef struct tv_torch_storages {
    tv_torch_storage *v;
    size_t n;
    size_t cap;
    uint32_t *slots; /* hash table of keys: index + 1 */
    size_t n_slots;
} tv_torch_storages;

/* A tensor with its place, until it is known which share their data. */
typedef struct tv_torch_leaf {
    tv_tensor t;
    uint32_t storage; /* index + 1; 0: none */
    uint32_t group;   /* 0 the model; others index the extras + 1 */
    uint64_t begin;   /* of the bytes it covers in its storage */
    uint64_t end;
} tv_torch_leaf;

typedef struct tv_torch_leaves {
    tv_torch_leaf *v;
    size_t n;
    size_t cap;
} tv_torch_leaves;

typedef struct tv_torch_extras {
    tv_source_extra *v;
    size_t n;
    size_t cap;
} tv_torch_extras;

typedef struct tv_torch tv_torch;
struct tv_torch {
    tv_gather *g;
    tv_str path;
    uint32_t file;
    tv_pickle pickle;
    tv_torch_storages storages;
    tv_torch_leaves leaves;
    tv_torch_extras extras;
    /* What the container knows of a storage that was met first; NULL: checked later. */
    const tv_err *(*find)(tv_torch *t, tv_torch_storage *s, uint64_t at);
    const tv_zip *zip; /* and the folder in it that holds the storages, with its '/' */
    tv_str folder;
    /* tar: a tensor that lies outside the pickle, by its key */
    const tv_torch_leaf *outside;
    size_t n_outside;
    const tv_str *outside_keys;
    size_t visits;
    bool unnamed; /* a single tensor */
};

/* The storage of that key, made where it is new. *made says so. */
tv_torch_storage *tv_torch_storage_of(tv_torch *t, tv_str key, bool *made);

/* Finds the tensors of an object that was pickled, sorts the model's from the rest and hands them
 * to the gatherer. */
const tv_err *tv_torch_take(tv_torch *t, const tv_pickle_node *root) TV_CHECKED;
/* Tensors of a further object (a TorchScript's constants); prefix: of their names. */
const tv_err *tv_torch_walk(tv_torch *t, const tv_pickle_node *node, tv_str prefix) TV_CHECKED;
/* When everything was walked: which tensors share data, sums, warnings. */
const tv_err *tv_torch_finish(tv_torch *t) TV_CHECKED;

/* "torch.FloatStorage", "torch.cuda.HalfTensor": the element type; false: no such class. */
bool tv_torch_type_of_class(tv_str name, tv_dtype *dtype, tv_str *text);

/* Warns of names that would run code, and of classes that are not known. */
void tv_torch_judge_names(tv_torch *t);

/* The containers besides zip. */
bool tv_torch_is_legacy(tv_bytes_view bytes);
bool tv_torch_is_tar(tv_bytes_view bytes);
const tv_err *tv_torch_read_legacy(tv_torch *t, tv_bytes_view bytes) TV_CHECKED;
const tv_err *tv_torch_read_tar(tv_torch *t, tv_bytes_view bytes) TV_CHECKED;

#endif
