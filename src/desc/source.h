/* What a reader found on disk, before anybody says what it means: tensors by name, a parsed
 * configuration, key–value metadata. Readers write it, families read it. */
#ifndef TV_SOURCE_H
#define TV_SOURCE_H

#include "adapter.h"
#include "base/json.h"
#include "dtype.h"
#include "program.h"

typedef struct tv_tensor {
    tv_str name;
    tv_dtype dtype;
    tv_str dtype_text; /* as the file writes it, when dtype is unknown */
    uint32_t rank;
    uint64_t dims[TV_LIMIT_RANK]; /* outermost first, whatever the file's order */
    uint64_t elements;
    uint64_t bytes;
    uint32_t file;   /* index in the source's files */
    uint64_t offset; /* of the data in that file; 0 in archives, where looking would touch it */
    bool shares;     /* its data is another tensor's (tied weights, views): bytes is 0 */
} tv_tensor;

typedef struct tv_source_file {
    tv_str path;
    uint64_t bytes;
} tv_source_file;

typedef enum tv_source_kind {
    TV_SOURCE_NONE,
    TV_SOURCE_PARAMS,      /* only a number of parameters is stated */
    TV_SOURCE_HF_CONFIG,   /* config.json, with or without tensors beside it */
    TV_SOURCE_SAFETENSORS, /* tensors without configuration */
    TV_SOURCE_GGUF,
    TV_SOURCE_DIFFUSERS,  /* a diffusers component or pipeline folder */
    TV_SOURCE_BUILTIN,    /* a model description of our own schema */
    TV_SOURCE_PROGRAM,    /* a graph: ONNX, Paddle, exported or captured PyTorch */
    TV_SOURCE_CHECKPOINT, /* a pickled state: tensors, no configuration */
} tv_source_kind;

/* What lies in a checkpoint beside the model: the optimiser's state, a second copy ... */
typedef struct tv_source_extra {
    tv_str name;
    size_t n_tensors;
    double elements;
    double bytes;
} tv_source_extra;

/* A component of a pipeline folder (model_index.json): unet, vae, text_encoder ... */
typedef struct tv_source tv_source;
typedef struct tv_component {
    tv_str name;
    tv_str class_name;
    const tv_source *source;
} tv_component;

struct tv_source {
    tv_source_kind kind;
    tv_str path;                 /* what the user named */
    tv_str name;                 /* a short name to show */
    const tv_json *config;       /* config.json, the model description, or NULL */
    const tv_json *quantization; /* hf_quant_config.json where it stands beside, or NULL */
    const tv_json *metadata;     /* GGUF key–values as an object (long arrays: {"n": count}), or
                                    safetensors' __metadata__ */
    const tv_tensor *tensors;    /* sorted by name; NULL when only a config was read */
    size_t n_tensors;
    const tv_source_file *files;
    size_t n_files;
    bool paddle;          /* PaddlePaddle wrote these files */
    double tensor_bytes;  /* sum over distinct tensors; 0 when there are none */
    double storage_bytes; /* what the tensors' storages take where views leave parts of them
                             unseen; 0: as tensor_bytes */
    const tv_source_extra *extras;
    size_t n_extras;
    double stated_params;       /* --params, or a count that the file states; 0 unknown */
    uint64_t stated_total_size; /* an index's metadata.total_size; 0 absent */
    const tv_program *program;  /* TV_SOURCE_PROGRAM: the graph */
    const tv_adapter *adapter;  /* the tensors are an adapter's, beside a base model's */
    const tv_component *components;
    size_t n_components;
    const tv_text *warnings; /* what was odd in the files */
    size_t n_warnings;
};

#endif
