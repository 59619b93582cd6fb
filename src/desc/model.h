/* A model: what a family made of a source. Its graph is built on demand, for a setting. */
#ifndef TV_MODEL_H
#define TV_MODEL_H

#include "fact.h"
#include "graph.h"
#include "setting.h"
#include "source.h"

/* Parameters that are in the files but not in what runs (MTP layers, unused heads), or the other
 * way round, or a tower of its own: reported apart, with the reason. */
typedef struct tv_part {
    tv_str name;
    double params;
    bool in_total; /* counted in tv_model.params */
    tv_text why;
} tv_part;

/* How the weights of matrices are stored when they are quantised. */
typedef struct tv_quant {
    tv_str method; /* "fp8", "gptq", "awq", "mxfp4", "compressed-tensors" ...; empty: none */
    tv_dtype dtype;
    double bytes_per_weight; /* scales and zero points included */
    bool experts_only;
    tv_dtype kv; /* stated for the cache, or unknown */
} tv_quant;

typedef struct tv_model tv_model;
struct tv_model {
    tv_str name;
    const char *family; /* "decoder", "encoder", "encoder-decoder", "cnn", "diffusion", "opaque" */
    tv_str model_type; /* as the file says; for messages only, never for decisions below families */
    tv_str source;     /* path or built-in record */
    double params;     /* of what runs */
    double active_params; /* per token; equals params without experts */
    double embedding_params;
    double stated_params; /* from a file or an option; 0 unknown */
    const tv_part *parts;
    size_t n_parts;
    tv_dtype stored;     /* main dtype of the files; unknown when no file says so */
    double stored_bytes; /* exact, from tensors; else computed for `stored`; 0 unknown */
    bool stored_exact;
    tv_quant quant;
    tv_framework framework; /* that wrote the files; default: they do not say */
    /* shape, for reports and reader facts; 0 = does not apply or unknown */
    double layers, hidden, heads, kv_heads, head_dim, intermediate, vocab, experts,
        experts_per_token;
    double max_seq;
    uint32_t default_seq; /* what a job takes when nobody says: 0 no sequence */
    uint32_t default_target_seq;
    uint32_t image_h, image_w, image_c;
    bool generates;            /* decodes token by token with a cache */
    const tv_adapter *adapter; /* joins the model: what a job takes where nobody says otherwise */
    const tv_json *file;       /* programs: what the file says of itself; NULL: nothing */
    const tv_text *warnings;
    size_t n_warnings;

    /* Builds the op list; the graph lives in a. */
    const tv_err *(*build)(tv_arena *a, const tv_model *m, const tv_setting *set, tv_graph **graph);
    const void *spec; /* the family's own record */
};

#endif
