/* An adapter named as MODEL: its base model is looked for, and the two become one model. */
#ifndef TV_ADAPTER_ARG_H
#define TV_ADAPTER_ARG_H

#include "desc/model.h"
#include "desc/request.h"

#include "base/err.h"

/* base: --base, or empty. */
const tv_err *tv_adapter_argument(tv_request *r, const tv_adapter *adapter, tv_str base,
                                  const tv_model **out) TV_CHECKED;

#endif
