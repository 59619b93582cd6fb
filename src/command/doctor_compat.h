/* What driver, CUDA build, wheel and card allow each other, beside what was seen. */
#ifndef TV_DOCTOR_COMPAT_H
#define TV_DOCTOR_COMPAT_H

#include "command.h"

#include "desc/finding.h"

/* Adds a sighting of kind "compat" for every environment, list of packages or installation error
 * that names a driver or a CUDA build (docs/facts/compat.md). After tv_doctor_devices: the cards'
 * compute capabilities come from its records. */
const tv_err *tv_doctor_compat(tv_request *r, tv_scene *scene) TV_CHECKED;

#endif
