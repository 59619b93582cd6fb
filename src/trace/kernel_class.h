/* What a kernel does, told by its name alone: one table for every library that names kernels. */
#ifndef TV_KERNEL_CLASS_H
#define TV_KERNEL_CLASS_H

#include "base/str.h"

typedef enum tv_kernel_class {
    TV_CLASS_OTHER, /* no telling name: counted with the element-wise work */
    TV_CLASS_GEMM,
    TV_CLASS_CONV,
    TV_CLASS_ATTENTION,
    TV_CLASS_NORM, /* norms and softmax */
    TV_CLASS_ELEMENTWISE,
    TV_CLASS_REDUCE,
    TV_CLASS_EMBEDDING,
    TV_CLASS_OPTIMIZER,
    TV_CLASS_COMMUNICATION,
    TV_CLASS_MEMCPY,
    TV_CLASS_MEMSET,
    TV_CLASSES,
} tv_kernel_class;

tv_kernel_class tv_kernel_class_of(tv_str name);
/* "gemm", "conv", ...: language-free. */
const char *tv_kernel_class_name(tv_kernel_class c);

#endif
