/* What package managers write down of a change of the NVIDIA driver. */
#ifndef TV_PACKAGE_LINE_H
#define TV_PACKAGE_LINE_H

#include "glean.h"
#include "trace.h"

typedef struct tv_package_change {
    tv_str package;
    tv_str from; /* the driver's version; empty: not said */
    tv_str to;
    tv_str time; /* as written; empty: not said */
    tv_str by;   /* what asked for it: "unattended-upgrade", "apt upgrade"; empty: not said */
    size_t i;    /* line of the sheet */
} tv_package_change;

/* The changes on a sheet, at most cap. One of each package that takes part in a step is told. */
size_t tv_package_changes(const tv_sheet *sheet, tv_package_change *v, size_t cap);
/* "3:460.73.01-0ubuntu0.20.04.1" -> "460.73.01"; empty: it is no driver's version. */
tv_str tv_driver_version_of(tv_str package_version);

#endif
