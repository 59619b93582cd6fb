/* What one of PyTorch's operations calculates, from the shapes that its profile tells. */
#ifndef TV_OP_FLOP_H
#define TV_OP_FLOP_H

#include "kernel_class.h"

typedef struct tv_op_flop {
    tv_kernel_class is;
    double flop;  /* 0: none that is known */
    tv_str dtype; /* as the profile names it */
} tv_op_flop;

/* Operations that others are made of count, not those made of others: nothing counts twice. */
tv_op_flop tv_op_flop_of(tv_str name, tv_str args);

#endif
