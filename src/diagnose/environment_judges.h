/* What judges of environments, commands and scripts share. */
#ifndef TV_ENVIRONMENT_JUDGES_H
#define TV_ENVIRONMENT_JUDGES_H

#include "diagnose.h"

/* What the compatibility table says of a sighting; NULL: nothing. */
const tv_sighting *tv_compat_of(const tv_scene *scene, const tv_sighting *s);
/* The next installation error of that name behind `after` (NULL: the first). */
const tv_sighting *tv_error_named(const tv_scene *scene, const tv_sighting *after,
                                  const char *what);
/* A card or an NVIDIA driver is seen somewhere. */
bool tv_sees_gpu(const tv_scene *scene);

#endif
