/* The MODEL argument: a file or folder, a built-in name, or --params. */
#ifndef TV_MODEL_ARG_H
#define TV_MODEL_ARG_H

#include "desc/model.h"
#include "desc/request.h"
#include "job_options.h"

/* The first positional word is MODEL unless --params stands for it. */
const tv_err *tv_model_argument(tv_request *r, const tv_args *args, const tv_model_options *o,
                                const tv_model **out) TV_CHECKED;

/* The same, before anybody says what it means as a model. */
const tv_err *tv_source_argument(tv_request *r, const tv_args *args, const tv_model_options *o,
                                 const tv_source **source) TV_CHECKED;

/* What such a source means: an adapter on its base, a built-in model's tensors, a family's own. */
const tv_err *tv_model_of(tv_request *r, const tv_source *source, const tv_model_options *o,
                          const tv_model **out) TV_CHECKED;

#endif
