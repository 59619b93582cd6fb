/* Rows of operator and collective tables: one kernel, or one collective, against the predictor. */
#ifndef TV_VALIDATE_OPS_H
#define TV_VALIDATE_OPS_H

#include "validate_case.h"

/* False: *reason says why the row is not predicted. */
bool tv_operator_judge(tv_validator *v, const tv_row *row, tv_row_verdict *out, tv_str *reason);
bool tv_collective_judge(tv_validator *v, const tv_row *row, tv_row_verdict *out, tv_str *reason);

#endif
