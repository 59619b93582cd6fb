/* What the doctor's command adds to a scene before the rules see it: facts that no captured file
 * holds. */
#ifndef TV_DOCTOR_JOIN_H
#define TV_DOCTOR_JOIN_H

#include "desc/finding.h"
#include "desc/request.h"

/* One sighting of kind "device-record" for each product that the scene names and the catalogue
 * knows (docs/facts/device-record.md). A name that stands for several cards is told apart by the
 * memory beside it; where that fails, no record is added: rules do without. */
const tv_err *tv_doctor_devices(tv_request *r, tv_scene *scene) TV_CHECKED;

#endif
