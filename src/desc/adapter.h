/* An adapter as its files describe it: small matrices beside those of a base model. */
#ifndef TV_ADAPTER_H
#define TV_ADAPTER_H

#include "base/text.h"
#include "dtype.h"

typedef struct tv_adapter {
    tv_str folder;
    tv_str base; /* base_model_name_or_path */
    tv_str kind; /* peft_type: "LORA" ... */
    double rank; /* the largest where modules differ; 0 not stated */
    double alpha;
    double dropout;
    tv_str targets; /* comma-separated names; empty: all linear layers */
    tv_str pattern; /* a regular expression over full module names instead; empty: none */
    bool all_linear;
    tv_str saved;  /* comma-separated names of modules that are trained whole */
    double layers; /* that are adapted; 0: all */
    bool ranks_differ;
    bool dora;
    bool rank_stabilised;
    tv_dtype dtype; /* of the file's tensors; unknown: no file */
    double params;  /* in the file; 0 no file */
    double bytes;
} tv_adapter;

#endif
