/* Tensors without a configuration: what their names and shapes say of the architecture. */
#ifndef TV_STATE_DICT_H
#define TV_STATE_DICT_H

#include "family.h"

/* A configuration that makes the same tensors, where names and shapes leave no doubt of the
 * architecture; NULL where they do. What had to be guessed (the width of a head, experts per token)
 * is added to the warnings of *again, which is s with that configuration. */
const tv_err *tv_state_dict_source(tv_arena *a, const tv_source *s,
                                   const tv_source **again) TV_CHECKED;

/* The built-in model whose state dict the tensors are by their names ("resnet-50"); empty: none. */
tv_str tv_state_dict_builtin(tv_arena *a, const tv_source *s);

/* Rows of its classifier; 0: none. */
double tv_state_dict_classes(const tv_source *s);

/* Elements that train, and how many of them are convolution kernels. */
typedef struct tv_state_count {
    double params;
    double kernels;
} tv_state_count;
tv_state_count tv_state_dict_count(const tv_source *s);

#endif
