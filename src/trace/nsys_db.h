/* An nsys export as a database: opened so that nothing in it can act, and read table by table. */
#ifndef TV_NSYS_DB_H
#define TV_NSYS_DB_H

#include "trace.h"

/* Reads a database that lies in memory. */
const tv_err *tv_nsys_read(tv_arena *a, tv_str name, tv_bytes_view bytes,
                           tv_scene *scene) TV_CHECKED;

#endif
